/* As whom the gateway calls a server or an agent: `credentials` of the configuration, as authorities of
 * requests. Either the gateway has one credential for all its requests, or each caller has one, which
 * was exchanged for the token that he brought (RFC 8693). Tokens are obtained when a request first
 * needs one, and stay in memory.
 *
 * Threads: the loop's. */
#ifndef UPSTREAM_CREDENTIALS_H
#define UPSTREAM_CREDENTIALS_H

#include "auth/principal.h"
#include "config/config.h"
#include "http/http_client.h"
#include "oauth/authority.h"

enum { UPSTREAM_CALLERS = 1000 /* of one server and loop, whose tokens are kept */ };

/* What users were granted at servers, in the gateway's store (auth/vault.h). */
typedef struct upstream_vault_call upstream_vault_call;
struct upstream_vault_call {
    /* Once, at once or later, unless it was cancelled. `record`: of a read; "": there is none. */
    void (*done)(upstream_vault_call *self, bay_err err, bay_str record);
    void *step; /* the vault's; NULL: nothing is under way */
};
typedef struct upstream_vault {
    /* Reads it, and holds it against other readers until `write` or `release`. */
    void (*read)(void *user, bay_str identity, bay_str server, upstream_vault_call *call);
    void (*write)(void *user, bay_str identity, bay_str server, bay_str record,
                  upstream_vault_call *call);
    void (*release)(void *user, bay_str identity, bay_str server);
    void (*cancel)(void *user, upstream_vault_call *call);
    void *user;
} upstream_vault;

typedef struct upstream_credentials upstream_credentials;

/* For requests to `url`.
 * Owns: the caller; copies all but `tls` and `vault`. Errors: BAY_ERR_INVALID with `diag`, BAY_ERR_UNSUPPORTED
 * (no TLS in this build, and a key), BAY_ERR_NOMEM. */
typedef struct upstream_credentials_options {
    const config_credentials *settings;
    bay_str server; /* its name */
    bay_str url;
    tls_context *tls;
    const upstream_vault *vault; /* of grant: user; outlives it; NULL: there is none */
} upstream_credentials_options;
bay_err upstream_credentials_new(loop *loop, const upstream_credentials_options *options,
                                 upstream_credentials **out, bay_diag *diag) BAY_MUST_CHECK;
void upstream_credentials_free(upstream_credentials *self); /* after the requests; NULL is fine */

/* Of what the gateway asks for itself: lists, cards. NULL of NULL, and where it asks without any. */
http_authority *upstream_credentials_own(upstream_credentials *self);
/* Of a call that `caller` makes; never NULL but of NULL. A caller without a token gets one whose requests
 * fail with BAY_ERR_DENIED; above UPSTREAM_CALLERS, where all are in use, with BAY_ERR_BUSY. Whoever
 * begins a request with it later holds it until then (http_authority_hold). */
http_authority *upstream_credentials_of(upstream_credentials *self, const auth_principal *caller);
/* Of a login by which a user fills the vault: the code flow, by the same client. Views live as long as
 * `self`. */
oauth_authority_options upstream_credentials_login(const upstream_credentials *self);

#endif
