/* Who may call a server or an agent over HTTP: access tokens of authorization servers (OAuth 2.1), API keys, client
 * certificates. One guard serves any number of them.
 *
 *     bay_guard *guard = bay_guard_new("https://tools.example");
 *     bay_guard_issuer(guard, "https://login.example", NULL);
 *     bay_server_guard(server, guard);
 *     bay_guard_free(guard);
 *     bay_tool_scope(bay_server_tool(…), "weather:read");
 *
 * The library answers the rest: 401 with a challenge, protected resource metadata (RFC 9728) at the
 * well-known address of each endpoint, 403 with the scopes that a call needs. A token must be for the
 * address of the endpoint (`aud`, RFC 8707). Over stdio and in process nobody is asked: whoever starts
 * the process is the user, and has every scope.
 *
 * For the whole header: Owns: texts are copied; a guard is counted, and servers keep a reference.
 * Errors: mistakes are kept by the guard, and bay_server_check reports the first. Units: bytes. Threads:
 * a guard is set up by one thread, before it is given to a server; after that it does not change.
 * Source: RFC 6750, 7662, 8705, 8707, 9068, 9449, 9728; MCP basic/authorization. */
#ifndef PATCHBAY_GUARD_H
#define PATCHBAY_GUARD_H

#include <patchbay/agent.h>
#include <patchbay/server.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_guard bay_guard;

/* `public_url`: how clients reach the server, "https://tools.example", without a slash at its end;
 * NULL: as it listens, for a server that only this machine reaches. NULL is returned when out of
 * memory, and taken by every function here. */
BAY_API bay_guard *bay_guard_new(const char *public_url);
BAY_API void bay_guard_free(bay_guard *guard); /* NULL is fine */

/* Takes access tokens of this issuer, named byte for byte as its tokens name it. `keys`: its JWK set,
 * as JSON, the path of a file, or the address of one; NULL: as its metadata says. At most 32. */
BAY_API void bay_guard_issuer(bay_guard *guard, const char *issuer, const char *keys);
/* Of an issuer that was named before: one more name that `aud` may have instead of the endpoint's
 * address. */
BAY_API void bay_guard_audience(bay_guard *guard, const char *issuer, const char *audience);
/* Of an issuer that was named before: tokens that are no JSON Web Tokens are asked about there (RFC
 * 7662), as this client. Of one issuer. */
BAY_API void bay_guard_introspection(bay_guard *guard, const char *issuer, const char *client_id,
                                     const char *client_secret);
/* Takes this API key, "pbk_ID_SECRET" (as `patchbay key new` makes them), in Authorization: Bearer or
 * X-API-Key. `name`: the caller. `scopes` are separated by spaces; NULL: none. Only a digest of it is
 * kept. At most 1,024. */
BAY_API void bay_guard_api_key(bay_guard *guard, const char *key, const char *name,
                               const char *scopes);
/* Takes client certificates that bay_server_tls's `ca_file` signed: the URI (SPIFFE) or the subject is
 * the caller. */
BAY_API void bay_guard_certificates(bay_guard *guard);
/* Scopes without which nobody comes in, separated by spaces. */
BAY_API void bay_guard_scopes(bay_guard *guard, const char *scopes);
/* Takes tokens that are bound to a key of the client, with a proof for each request (DPoP).
 * `is_required`: and no others. */
BAY_API void bay_guard_dpop(bay_guard *guard, bool is_required);

/* Every request over HTTP is checked by it. With bay_server_identify, or on a server that is open on
 * purpose: an error of registration. The guard's own mistakes are errors of registration here. */
BAY_API void bay_server_guard(bay_server *server, bay_guard *guard);
/* Whoever calls the tool must have these scopes, all of them, separated by spaces. It is listed for
 * everybody; without them a call is answered 403 and the scopes, so that clients can ask for them. */
BAY_API void bay_tool_scope(bay_tool *tool, const char *scopes);

/* The same for an agent. The card declares what the guard takes, and no other scheme may be declared:
 * each issuer as an OpenID Connect scheme "oauth", "oauth2", …, API keys as "key", certificates as
 * "certificate"; one of them is enough. Before bay_skill_scope. */
BAY_API void bay_agent_guard(bay_agent *agent, bay_guard *guard);
/* Messages for the skill need these scopes, all of them, separated by spaces; the card says so. */
BAY_API void bay_skill_scope(bay_skill *skill, const char *scopes);

/* Who is calling, besides bay_call_principal (the subject): empty where it is not known. Views live as
 * long as the call. */
BAY_API bay_str bay_call_issuer(bay_call *call); /* who vouches for the subject */
BAY_API bay_str bay_call_client(bay_call *call); /* the OAuth client */
BAY_API bay_str bay_call_scopes(bay_call *call); /* separated by single spaces */
/* Exactly this scope was granted, or the user of this process calls. */
BAY_API bool bay_call_has_scope(bay_call *call, const char *scope);
/* What the token says, as JSON, by a JSON pointer (RFC 6901): "/email". Empty: nothing. */
BAY_API bay_str bay_call_claim(bay_call *call, const char *pointer);

#ifdef __cplusplus
}
#endif
#endif
