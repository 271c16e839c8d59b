/* OAuth 2.1 for clients of servers and callers of agents, as MCP defines it in each revision from
 * 2025-03-26 on.
 *
 *     bay_oauth *oauth = bay_oauth_new(BAY_OAUTH_GRANT_BROWSER);
 *     bay_oauth_on_open(oauth, show_in_browser, NULL);
 *     bay_client_options_oauth(options, oauth);
 *     bay_oauth_free(oauth);
 *
 * When the server asks for authorization, the library reads the server's metadata and that of its
 * authorization server, registers the program there if it must, has the person log in, obtains a
 * token and sends it with each request. It refreshes the token before it expires, and asks for
 * further scopes when a request needs them. Requests wait meanwhile; of their time limits only
 * `total_ms` runs. The library opens no browser and stores nothing; the program's callbacks do.
 *
 * Errors of the settings are reported by the connect. Every function accepts NULL.
 * Owns: texts are copied. Secrets are wiped, and never in a log or an error text.
 * Errors: a request whose authorization fails ends with BAY_ERR_DENIED and a text that says why,
 * and what to do. For one minute after that, further requests fail with the same text and no new
 * login begins (5 s if the reason may pass).
 * Units: a text of the settings has at most 4 KiB.
 * Threads: several clients may use the settings once they are complete; callbacks run in the
 * thread that runs the client's loop.
 * Source: mcp basic/authorization of 2025-03-26 to 2026-07-28 and its extensions; RFC 6749, 7523,
 * 7591, 7636, 8252, 8414, 8628, 8693, 8707, 9207, 9449, 9728. */
#ifndef PATCHBAY_OAUTH_H
#define PATCHBAY_OAUTH_H

#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_oauth bay_oauth; /* settings */
/* One login, as callbacks see it. It ends with its client or caller. */
typedef struct bay_login bay_login;
struct bay_client_options;
struct bay_caller_options;

/* How tokens are obtained. */
typedef enum bay_oauth_grant {
    BAY_OAUTH_GRANT_BROWSER,    /* a person logs in, in a browser: authorization code with PKCE */
    BAY_OAUTH_GRANT_DEVICE,     /* a person enters a code, in a browser of another device */
    BAY_OAUTH_GRANT_CLIENT,     /* the program itself: client credentials; needs bay_oauth_client */
    BAY_OAUTH_GRANT_WORKLOAD,   /* the platform's token (of a Kubernetes service account, …) */
    BAY_OAUTH_GRANT_EXCHANGE,   /* token exchange: a token of the subject for one of the server */
    BAY_OAUTH_GRANT_ENTERPRISE, /* an assertion of the enterprise's identity provider; needs
                                   bay_oauth_provider */
} bay_oauth_grant;

BAY_API bay_oauth *bay_oauth_new(bay_oauth_grant grant); /* NULL: out of memory */
BAY_API void bay_oauth_free(bay_oauth *oauth);           /* options that have it keep it */

/* The client id that the program was registered under beforehand. `secret` NULL: a public client,
 * or one with a key. Without bay_oauth_issuer it belongs to the first issuer that a server names,
 * and is sent to no other one after that. */
BAY_API void bay_oauth_client(bay_oauth *oauth, const char *id, const char *secret);
/* The private key with which that client authenticates (private_key_jwt): PEM without a passphrase,
 * or a JWK. `key_id` NULL: the JWK's own, else its thumbprint. */
BAY_API void bay_oauth_key(bay_oauth *oauth, const char *key, const char *key_id);
/* The https URL of the program's client id metadata document, for servers that take one. */
BAY_API void bay_oauth_document(bay_oauth *oauth, const char *url);
/* The authorization server. A server that names another one is refused. */
BAY_API void bay_oauth_issuer(bay_oauth *oauth, const char *issuer);
/* Scopes to ask for, separated by spaces, in place of those that the server proposes. */
BAY_API void bay_oauth_scope(bay_oauth *oauth, const char *scopes);
/* A further parameter of authorization and token requests, for servers that need one ("audience").
 */
BAY_API void bay_oauth_parameter(bay_oauth *oauth, const char *name, const char *value);
/* The redirect URI. Without this the library listens on a loopback address for the time of the
 * login; with it the program receives the redirect, and calls bay_login_redirected. */
BAY_API void bay_oauth_redirect(bay_oauth *oauth, const char *uri);
/* Requires tokens that are bound to a key of the program (DPoP). Without this they are bound only
 * if the server asks for it. */
BAY_API void bay_oauth_dpop(bay_oauth *oauth);
/* The identity provider of BAY_OAUTH_GRANT_ENTERPRISE: its issuer, or (`is_endpoint`) its token
 * endpoint, and the program's client id there. */
BAY_API void bay_oauth_provider(bay_oauth *oauth, const char *url, bool is_endpoint,
                                const char *client_id, const char *secret);

/* Shows `url`, which is one of http or https, to the person: in a browser, or as text. Calls
 * bay_login_decline if that is not possible. */
typedef void (*bay_login_open_fn)(bay_login *login, const char *url, void *user);
BAY_API void bay_oauth_on_open(bay_oauth *oauth, bay_login_open_fn open, void *user);
/* The same with the code to enter there (BAY_OAUTH_GRANT_DEVICE). */
typedef void (*bay_login_code_fn)(bay_login *login, const char *url, const char *code, void *user);
BAY_API void bay_oauth_on_code(bay_oauth *oauth, bay_login_code_fn show, void *user);
/* Gets the token to present (workload, exchange: an access token; enterprise: an ID token), anew
 * for each grant, and calls bay_login_token at once or later. */
typedef void (*bay_login_token_fn)(bay_login *login, void *user);
BAY_API void bay_oauth_on_token(bay_oauth *oauth, bay_login_token_fn get, void *user);
/* Stores registration and tokens, so that the person need not log in again. `load` runs before the
 * first request and before each refresh: it locks the stored record, reads it and calls
 * bay_login_loaded. `save` replaces the record durably and unlocks it; what it returns other than
 * BAY_OK is logged. The record is a secret, and valid for the same target only. */
typedef void (*bay_login_load_fn)(bay_login *login, void *user);
typedef bay_err (*bay_login_save_fn)(bay_login *login, bay_str record, void *user);
BAY_API void bay_oauth_on_store(bay_oauth *oauth, bay_login_load_fn load, bay_login_save_fn save,
                                void *user);

/* ---- a login: from the callbacks, or later --------------------------------------------------- */

/* The URL that the browser was redirected to, or its query. False: it belongs to no authorization
 * request of this login, and changes nothing. */
BAY_API bool bay_login_redirected(bay_login *login, const char *url);
BAY_API void bay_login_decline(bay_login *login, const char *why);
/* NULL: there is none, and the login fails. */
BAY_API void bay_login_token(bay_login *login, const char *token);
BAY_API void bay_login_loaded(bay_login *login, bay_str record); /* empty: nothing is stored */

/* ---- its users ------------------------------------------------------------------------------- */

/* For targets that are URLs. BAY_ERR_INVALID at the connect if the options' header fields have an
 * Authorization, too. NULL: none. */
BAY_API void bay_client_options_oauth(struct bay_client_options *options, bay_oauth *oauth);
BAY_API void bay_caller_options_oauth(struct bay_caller_options *options, bay_oauth *oauth);

#ifdef __cplusplus
}
#endif
#endif
