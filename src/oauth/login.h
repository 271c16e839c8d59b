/* Logins of people in browsers at one OpenID provider, on one loop (OpenID Connect Core section 3.1):
 * authorization code with PKCE and nonce, by the OAuth client's machine.
 *
 *   begin ──► metadata ──► where to send the browser, and the attempt, which the browser keeps sealed
 *   finish ─► metadata ──► token ──► ID token ──► keys of the issuer ──► principal
 *
 * Nothing is kept between the two: the browser may come back to another loop, and may never come
 * back. What a step needs from the provider is bounded in time and in number, so that whoever opens
 * many logins makes at most OAUTH_LOGINS requests at once.
 *
 * For the whole header: Threads: the loop's. */
#ifndef OAUTH_LOGIN_H
#define OAUTH_LOGIN_H

#include "auth/principal.h"
#include "oauth/issuer.h"

enum {
    OAUTH_LOGINS = 64,          /* steps of one loop at one time; a further one is refused */
    OAUTH_LOGIN_SPARES = 4,     /* clients that are kept with the provider's metadata */
    OAUTH_LOGIN_MS = 20000,     /* for one step */
    OAUTH_LOGIN_REST_MS = 5000, /* after a provider that could not be reached */
};

typedef struct oauth_login oauth_login;
typedef struct oauth_login_step oauth_login_step;

typedef struct oauth_login_options {
    oauth_issuer *issuer; /* whose ID tokens count; takes a reference */
    bay_str client_id;
    bay_str client_secret; /* "": a public client */
    bay_str scope;         /* "openid" at least */
    const bay_str *allow;  /* where metadata may lead besides, as address_rules_new takes it */
    size_t allow_count;
    const char *ca_file; /* NULL: the system's trust */
    unsigned algorithms; /* of ID tokens, as access_rules */
    uint32_t skew_ms;
    uint64_t session_ms; /* until when a principal is good, from its login */
} oauth_login_options;

/* Owns: the caller; copies. Errors: with `diag`. */
bay_err oauth_login_new(loop *loop, const oauth_login_options *options, oauth_login **out,
                        bay_diag *diag) BAY_MUST_CHECK;
/* Steps that are under way end with BAY_ERR_CANCELLED, inside this call. NULL is fine. */
void oauth_login_free(oauth_login *self);

/* How a step ended. Views live for the call. */
typedef struct oauth_login_outcome {
    bay_err err;
    const char *text;                /* why it failed, for the log: nothing secret */
    bay_str url;                     /* of begin: the provider's page */
    bay_str attempt;                 /* of begin: secret; for oauth_login_finish */
    const auth_principal *principal; /* of finish; borrowed */
} oauth_login_outcome;

/* Once, in a later turn (but for oauth_login_free). It may begin another step, or free the login. */
typedef void (*oauth_login_done)(void *user, const oauth_login_outcome *outcome);

/* `redirect_uri`: where the provider sends the browser back to. Errors: BAY_ERR_BUSY: too many, or
 * the provider was not reached a moment ago; BAY_ERR_NOMEM. `done` is not called then. */
bay_err oauth_login_begin(oauth_login *self, bay_str redirect_uri, oauth_login_done done,
                          void *user, oauth_login_step **out) BAY_MUST_CHECK;
/* `query` of the redirect, without '?'. Errors: BAY_ERR_NOT_FOUND: it is not the redirect of that
 * attempt, or comes too late; nothing was fetched; and the above. */
bay_err oauth_login_finish(oauth_login *self, bay_str attempt, bay_str query, oauth_login_done done,
                           void *user, oauth_login_step **out) BAY_MUST_CHECK;
/* Nobody waits for it any more: `done` is not called. */
void oauth_login_cancel(oauth_login_step *self);

#endif
