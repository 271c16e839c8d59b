/* Clients of the gateway's own authorization server (`auth.proxy`). Anybody may register one, so a
 * registration is kept by nobody: the client id is what was registered, sealed. Or the client id is
 * the URL of a document that says the same (a client id metadata document). It grants nothing: a
 * person is asked each time, and is told where the answer goes.
 *
 * For the whole header: Threads: any. Source: RFC 7591, RFC 8252 sections 7 and 8, RFC 9700 section
 * 4.1; draft-ietf-oauth-client-id-metadata-document. */
#ifndef OAUTH_PROXY_CLIENT_H
#define OAUTH_PROXY_CLIENT_H

#include "auth/seal.h"
#include "base/arena.h"
#include "json/json.h"

enum {
    OAUTH_PROXY_REDIRECTS = 8,        /* of one client */
    OAUTH_PROXY_REDIRECT_BYTES = 512, /* of one */
    OAUTH_PROXY_NAME_BYTES = 100,
    OAUTH_PROXY_CLIENT_BYTES = 640, /* of all of it: the client id is in URLs */
    OAUTH_PROXY_BODY_BYTES = 16 << 10,
    OAUTH_PROXY_CLIENT_ID_BYTES = 1024,
    OAUTH_PROXY_DOCUMENT_BYTES = 5 << 10,
};

/* Schemes besides https, and http to this machine, that redirects may have: `cursor`. */
typedef struct oauth_proxy_schemes {
    const bay_str *at;
    size_t count;
} oauth_proxy_schemes;

/* May a scheme be one of these? Not one that runs something, and not the two above. */
bool oauth_proxy_scheme_is_fine(bay_str scheme);

/* NULL: a client may have it. Else why not (static). It is compared byte for byte later, so there
 * are no patterns in it. */
const char *oauth_proxy_redirect_fault(bay_str uri, const oauth_proxy_schemes *schemes);
/* Is it the one that was registered? Byte for byte, but for the port of http on a loopback address
 * (RFC 8252 section 7.3), also by the name localhost, which clients use in spite of section 8.3. */
bool oauth_proxy_redirect_is(bay_str registered, bay_str asked);

/* Views live as long as the arena. */
typedef struct oauth_proxy_client {
    bay_str name; /* as it calls itself; "": it does not */
    bay_str redirects[OAUTH_PROXY_REDIRECTS];
    size_t redirect_count;
} oauth_proxy_client;

/* Registers: `body` is the request. Appends the answer.
 * Errors: BAY_ERR_DENIED with `diag`, and `out_error` the code of RFC 7591 section 3.2.2 (static);
 * BAY_ERR_NOMEM, BAY_ERR_STATE. */
bay_err oauth_proxy_register(const seal_ring *ring, bay_str body,
                             const oauth_proxy_schemes *schemes, uint64_t now_ms, arena *memory,
                             buf *out, const char **out_error, bay_diag *diag) BAY_MUST_CHECK;
/* BAY_ERR_NOT_FOUND: no client of ours; BAY_ERR_NOMEM. */
bay_err oauth_proxy_client_read(const seal_ring *ring, bay_str client_id, uint64_t now_ms,
                                arena *memory, oauth_proxy_client *out) BAY_MUST_CHECK;
/* Is it the URL of a document, as far as its text says? Where it may lead is the fetcher's to check
 * (oauth/document.h). */
bool oauth_proxy_client_is_document(bay_str client_id);
/* What the document at that URL says. BAY_ERR_DENIED with `diag`: it describes another client, or one
 * that cannot be one here. */
bay_err oauth_proxy_document_read(bay_str client_id, json_val root,
                                  const oauth_proxy_schemes *schemes, arena *memory,
                                  oauth_proxy_client *out, bay_diag *diag) BAY_MUST_CHECK;
bool oauth_proxy_client_has(const oauth_proxy_client *self, bay_str redirect_uri);

#endif
