/* Who comes in: what a request brings (an access token, an API key, a client certificate) makes its
 * principal, or is refused. A guard is what endpoints demand alike: issuers, keys, certificates,
 * DPoP, scopes of everybody. It is shared by all loops; each has a link to it, which verifies and,
 * where something has to be fetched, makes the request wait.
 *
 *   request ─► credentials ─► remembered? ─► good ─────────────────────────────► principal
 *                 │ 400           │ no        └ its binding: DPoP, certificate ──► 401
 *                 │ none: 401     └► failures of the address ─► 429
 *                 │                   ├ JWT: issuer ─► keys ─► claims, signature ─► 401, 503
 *                 │                   ├ opaque: introspection ──────────────────► 401, 503
 *                 │                   └ API key ─────────────────────────────────► 401, 503
 *
 * - The audience of a token is the endpoint's own resource (RFC 8707), always, or a name that the
 *   configuration gives it.
 * - A credential that is not good makes nobody anonymous. A check that cannot decide refuses.
 * - A refusal says nothing about why, beyond the error code; the log does, without the credential.
 *
 * For the whole header: Units: ms. Threads: guards any, links their loop's. */
#ifndef OAUTH_GUARD_H
#define OAUTH_GUARD_H

#include "auth/access_token.h"
#include "auth/api_key.h"
#include "auth/dpop.h"
#include "auth/failure_limit.h"
#include "auth/token_memory.h"
#include "http/http_server.h"
#include "oauth/grants.h"
#include "oauth/issuer.h"

enum {
    OAUTH_ISSUERS = 32,            /* of one guard */
    OAUTH_AUDIENCES = 32,          /* further names of the resource, per issuer */
    OAUTH_CHECKS = 1024,           /* requests of one link that wait; a further one gets 503 */
    OAUTH_CHECK_MS = 15000,        /* for how long each; then 503 */
    OAUTH_INTROSPECTIONS = 64,     /* of one link at one time; a further one gets 503 */
    OAUTH_INTROSPECTED_MS = 60000, /* the longest that an answer is remembered */
    OAUTH_CHALLENGE_BYTES = 4096,
};

/* ---- what all guards of a process share ------------------------------------------------------ */

typedef struct oauth_state oauth_state;

typedef struct oauth_state_options {
    size_t tokens;          /* remembered */
    uint32_t failures;      /* of one address, in a minute; 0: no bound */
    size_t proofs;          /* DPoP proofs that are remembered */
    uint64_t (*wall)(void); /* ms since 1970; NULL: loop_time_ms; for tests */
} oauth_state_options;

/* Owns: the caller, one reference. Errors: BAY_ERR_NOMEM. */
bay_err oauth_state_new(const oauth_state_options *options, oauth_state **out) BAY_MUST_CHECK;
oauth_state *oauth_state_ref(oauth_state *self);
void oauth_state_unref(oauth_state *self); /* NULL is fine */
/* Who brought a token of that issuer is verified anew. */
void oauth_state_forget_issuer(oauth_state *self, bay_str issuer);
size_t oauth_state_tokens(oauth_state *self); /* remembered */

/* ---- guards ---------------------------------------------------------------------------------- */

typedef struct oauth_guard oauth_guard;

/* An issuer, and what is demanded of its tokens. */
typedef struct oauth_guard_issuer {
    oauth_issuer *issuer;     /* the guard takes a reference */
    const bay_str *audiences; /* names of the resource besides its own URL */
    size_t audience_count;
    const bay_str *clients; /* none: any */
    size_t client_count;
    unsigned algorithms; /* as access_rules, and the next three */
    bool is_typed;
    uint32_t skew_ms;
    uint64_t lifetime_ms;
    bay_str client_id; /* as whom it is asked about tokens (RFC 7662); "": it is not */
    bay_str client_secret;
    bool introspects_all; /* also tokens that are JWTs */
    bay_str field;        /* a trusted proxy brings its tokens in this field; "": Authorization */
} oauth_guard_issuer;

typedef enum oauth_dpop { OAUTH_DPOP_OFF, OAUTH_DPOP_ACCEPTED, OAUTH_DPOP_REQUIRED } oauth_dpop;

typedef struct oauth_guard_options {
    oauth_state *state; /* the guard takes a reference */
    const oauth_guard_issuer *issuers;
    size_t issuer_count;
    oauth_grants *grants;  /* tokens that this process gives out; NULL: none; takes a reference */
    bool has_keys;         /* API keys: the links say where they are */
    bool has_certificates; /* client certificates that TLS verified */
    oauth_dpop dpop;
    bool has_nonces;
    bay_str scopes; /* of everybody, separated by spaces */
    const access_implied *implied;
    size_t implied_count;
    bool keeps_tokens; /* principals have their token, to be exchanged for others */
    uint32_t check_ms; /* for how long a request waits; 0: OAUTH_CHECK_MS */
} oauth_guard_options;

/* Owns: the caller, one reference; copies. Errors: BAY_ERR_INVALID with `diag`: nothing is
 * demanded, or two issuers introspect; BAY_ERR_LIMIT; BAY_ERR_NOMEM. */
bay_err oauth_guard_new(const oauth_guard_options *options, oauth_guard **out,
                        bay_diag *diag) BAY_MUST_CHECK;
oauth_guard *oauth_guard_ref(oauth_guard *self); /* NULL is fine, also below */
void oauth_guard_unref(oauth_guard *self);
bool oauth_guard_has_issuers(const oauth_guard *self);
bay_str oauth_guard_scopes(const oauth_guard *self); /* of everybody */

/* ---- a request ------------------------------------------------------------------------------- */

/* Where it came in. Views live as long as the exchange. */
typedef struct oauth_place {
    const bay_str *bases; /* "https://tools.example": as peers reach us; the first one is told */
    size_t base_count;
    bay_str endpoint;      /* "/mcp": bases[0] and this are the resource */
    bool is_part;          /* a token for bases[0] alone is for this endpoint as well */
    bay_str address;       /* of the client, through trusted proxies */
    bool is_by_proxy;      /* a trusted proxy brings it */
    const seal_ring *ring; /* of nonces; outlives the link */
} oauth_place;

typedef enum guard_verdict { GUARD_GOOD, GUARD_REFUSED, GUARD_WAIT } guard_verdict;

/* All texts are static. */
typedef struct oauth_refusal {
    int status;        /* 400, 401, 403, 429, 503 */
    const char *error; /* RFC 6750 section 3.1, RFC 9449 section 7.1; "": nothing was brought */
    const char *description;      /* for a person; "" */
    bool is_dpop;                 /* about a proof, or the lack of one */
    uint32_t retry_s;             /* of 429 and 503 */
    char nonce[DPOP_NONCE_BYTES]; /* for DPoP-Nonce; "" */
} oauth_refusal;

/* Writes the values of up to two WWW-Authenticate fields, appended, each ended by a NUL. `scope`:
 * what is needed; "": not said. `metadata`: the URL of the resource's metadata; "": it has none.
 * Source: RFC 6750 section 3, RFC 9449 section 7.1, RFC 9728 section 5.1. */
size_t oauth_challenges_write(const oauth_guard *self, const oauth_refusal *refusal, bay_str scope,
                              bay_str metadata, buf *out);
/* Appends the URL of the metadata of base and endpoint: the well-known path stands between the host
 * and the rest. */
void oauth_metadata_place(bay_str base, bay_str endpoint, buf *out);
/* Appends the protected resource metadata. Where this process gives out tokens, `base` is an
 * authorization server, and the first one. `scopes`: for basic use, separated by spaces. Source:
 * RFC 9728 section 2. */
void oauth_metadata_write(const oauth_guard *self, bay_str base, bay_str endpoint, bay_str scopes,
                          bay_str name, buf *out);
#define OAUTH_METADATA_PATH "/.well-known/oauth-protected-resource"

/* ---- links ----------------------------------------------------------------------------------- */

typedef struct oauth_guard_link oauth_guard_link;
typedef struct oauth_check oauth_check; /* one that waits */

/* Looks a key up by its public part; `done` is called once, at once or later: BAY_OK,
 * BAY_ERR_NOT_FOUND, or why it could not be looked up. */
typedef void (*oauth_key_done)(void *argument, bay_err err, const api_key *key);
typedef void (*oauth_key_find)(void *user, bay_str id, oauth_key_done done, void *argument);

/* Owns: the caller; the link holds a reference to the guard. `find` NULL: no keys. Errors: as
 * oauth_issuer_link_new. */
bay_err oauth_guard_link_new(loop *loop, oauth_guard *guard, oauth_key_find find, void *user,
                             oauth_guard_link **out, bay_diag *diag) BAY_MUST_CHECK;
/* Requests that wait hear no more: their owner has to end them. NULL is fine. */
void oauth_guard_link_free(oauth_guard_link *self);
oauth_guard *oauth_guard_link_guard(const oauth_guard_link *self);

typedef void (*oauth_checked)(void *user, guard_verdict verdict, const auth_principal *principal,
                              const oauth_refusal *refusal);

/* GUARD_GOOD: *out_principal with one reference for the caller. GUARD_REFUSED: *out_refusal.
 * GUARD_WAIT: *out_check, for oauth_check_wait or oauth_check_cancel, at once. */
guard_verdict oauth_guard_check(oauth_guard_link *self, http_exchange *exchange,
                                const oauth_place *place, const auth_principal **out_principal,
                                oauth_refusal *out_refusal, oauth_check **out_check);
/* `done` is called once, in a later turn, unless oauth_check_cancel comes first; the principal is
 * borrowed for that call. The exchange must live until then. A check that is cancelled while its
 * credential is asked about counts as a failure of its address. */
void oauth_check_wait(oauth_check *self, oauth_checked done, void *user);
void oauth_check_cancel(oauth_check *self);

#endif
