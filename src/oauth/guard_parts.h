/* What the files of a guard share. */
#ifndef OAUTH_GUARD_PARTS_H
#define OAUTH_GUARD_PARTS_H

#include <stdatomic.h>

#include "oauth/guard.h"

enum {
    GUARD_MEMORY_BYTES = 4 << 20,
    CHECK_MEMORY_BYTES = 1 << 20,
    KEY_REMEMBERED_MS = 10000, /* a revoked API key is looked up again by then */
    CERTIFICATE_REMEMBERED_MS = 600000,
    LOGGED_REFUSALS = 10, /* of one link in a second; the others are counted */
};

/* How a remembered credential was verified, and what it is bound to. */
enum { KIND_TOKEN = 0, KIND_DPOP = 1, KIND_CERTIFICATE = 2, KIND_KEY = 4, KIND_IDENTITY = 8 };

struct oauth_state {
    atomic_uint references;
    token_memory *tokens;
    failure_limit *failures; /* NULL: no bound */
    dpop_replays *proofs;
    uint64_t (*wall)(void);
};

struct oauth_guard {
    atomic_uint references;
    arena memory; /* of everything below */
    oauth_state *state;
    oauth_guard_issuer *issuers;
    size_t issuer_count;
    oauth_grants *grants; /* NULL: none are given out here */
    size_t introspector;  /* of `issuers`: who knows opaque tokens; issuer_count: nobody */
    bool has_keys;
    bool has_certificates;
    oauth_dpop dpop;
    bool has_nonces;
    bool keeps_tokens;
    bay_str scopes;
    access_implied *implied;
    size_t implied_count;
    uint32_t check_ms;
    uint64_t seed; /* of the numbers of endpoints */
};

struct oauth_guard_link {
    oauth_guard *guard;
    loop *loop;
    oauth_issuer_link **issuers; /* in the guard's order */
    oauth_key_find find_key;
    void *key_user;
    list checks; /* the oldest first */
    size_t check_count;
    list introspections;
    size_t introspection_count;
    loop_timer timeout_timer;
    uint64_t logged_since_ms;
    uint32_t logged;
};

/* ---- credentials.c --------------------------------------------------------------------------- */

typedef enum credential_kind {
    CREDENTIAL_NONE,
    CREDENTIAL_TOKEN,
    CREDENTIAL_KEY, /* an API key */
    CREDENTIAL_CERTIFICATE,
} credential_kind;

/* What a request brings. Views live as long as the exchange. */
typedef struct credentials {
    credential_kind kind;
    bay_str text;      /* the token, the key, or the certificate's digest */
    bay_str key_id;    /* of an API key: its public part */
    bool is_dpop;      /* of the scheme DPoP */
    bay_str proof;     /* "": none; or more than one */
    size_t by_field;   /* the issuer whose field it came in; the number of issuers: none */
    const char *fault; /* it cannot be read in one way only: 400 */
} credentials;

void credentials_read(const oauth_guard *guard, http_exchange *exchange, const oauth_place *place,
                      credentials *out);
/* ---- check.c --------------------------------------------------------------------------------- */

typedef struct introspection introspection;

/* A request that is being looked at. */
struct oauth_check {
    list_link link;       /* in guard_link.checks */
    list_link asked_link; /* in asked->checks */
    introspection *asked; /* whose answer it waits for; NULL: none's */
    oauth_guard_link *of;
    http_exchange *exchange;
    oauth_place place;
    credentials brought;
    uint64_t number; /* of its endpoint */
    unsigned char digest[DIGEST_BYTES];
    uint64_t began_ms;
    oauth_wait wait;
    bool has_waited;               /* for a key that was not known */
    bool is_answered;              /* what follows is there */
    bay_err answer;                /* of the introspection or the look-up */
    json_val response;             /* for the callback only */
    api_key key;                   /* that was found; its texts are in `memory` */
    struct key_question *question; /* about an API key; NULL: none is open */
    arena memory;
    oauth_checked done;
    void *user;
};

/* Goes as far as it can; GUARD_WAIT: something was begun that calls check_go_on. */
guard_verdict check_advance(oauth_check *self, const auth_principal **out_principal,
                            oauth_refusal *out_refusal);
/* From an event: advances, and tells the owner when it is over. */
void check_go_on(oauth_check *self);
void check_on_fetched(void *self); /* an issuer's fetch has ended */
void check_free(oauth_check *self);
/* It is good until then: remembers it. Takes `principal`. */
guard_verdict check_believe(oauth_check *self, const auth_principal *principal, unsigned kind,
                            uint64_t until_ms, const auth_principal **out_principal,
                            oauth_refusal *out_refusal);
/* It was looked at, and is not good: the same text is not looked at again for a while. */
guard_verdict check_disbelieve(oauth_check *self, const char *why, oauth_refusal *out);

/* ---- check_token.c, check_key.c -------------------------------------------------------------- */

guard_verdict check_advance_token(oauth_check *self, const auth_principal **out_principal,
                                  oauth_refusal *out_refusal);
guard_verdict check_advance_key(oauth_check *self, const auth_principal **out_principal,
                                oauth_refusal *out_refusal);
guard_verdict check_advance_certificate(oauth_check *self, const auth_principal **out_principal,
                                        oauth_refusal *out_refusal);

/* An API key that is being looked up: outlives a check that is cancelled. */
typedef struct key_question {
    oauth_check *check; /* NULL: cancelled */
    bool is_asking;     /* within the call that asks */
} key_question;

/* ---- settle.c -------------------------------------------------------------------------------- */

uint64_t guard_wall(const oauth_guard *self);
/* `why` is for the log: whoever sent it learns no more than the code. NULL: not logged. */
guard_verdict guard_refuse(oauth_guard_link *self, const oauth_place *place, int status,
                           const char *error, const char *why, oauth_refusal *out);
/* A credential that is not good: it counts against its address. */
guard_verdict guard_refuse_token(oauth_guard_link *self, const oauth_place *place,
                                 const char *error, const char *why, oauth_refusal *out);
guard_verdict guard_refuse_busy(oauth_guard_link *self, const oauth_place *place, uint32_t retry_ms,
                                const char *why, oauth_refusal *out);
/* May a credential from there be verified? */
bool guard_admits(oauth_guard_link *self, const oauth_place *place, oauth_refusal *out);
/* Whether whoever brings a good credential proves what it is bound to, and has the scopes of
 * everybody. Takes `principal`. */
guard_verdict guard_settle(oauth_guard_link *self, http_exchange *exchange,
                           const oauth_place *place, const credentials *brought,
                           const auth_principal *principal, unsigned kind,
                           const auth_principal **out_principal, oauth_refusal *out_refusal);

/* ---- introspection.c ------------------------------------------------------------------------- */

/* Asks about the check's token, or joins who asks already; then check_go_on. Errors: BAY_ERR_BUSY:
 * too many are asked about; BAY_ERR_NOMEM; as oauth_document_start. */
bay_err introspection_ask(oauth_check *check, size_t issuer, bay_str url,
                          bay_diag *diag) BAY_MUST_CHECK;
/* The check waits for no answer any more; a question that nobody waits for is given up. */
void introspection_leave(oauth_check *check);
void introspections_end(oauth_guard_link *self);

#endif
