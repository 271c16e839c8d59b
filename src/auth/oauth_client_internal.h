/* The inside of auth/oauth_client.h, for src/auth/oauth_*.c only.
 *
 *   oauth_client.c        life, what comes next, requests and their replies
 *   oauth_discovery.c     RESOURCE, SERVER
 *   oauth_registration.c  REGISTRATION, and which client we are
 *   oauth_authorization.c AUTHORIZATION, DEVICE
 *   oauth_attempt.c       an attempt that is taken up elsewhere
 *   oauth_token.c         TOKEN, EXCHANGE, REVOCATION
 *   oauth_proof.c         what proves: client authentication, proofs of possession */
#ifndef AUTH_OAUTH_CLIENT_INTERNAL_H
#define AUTH_OAUTH_CLIENT_INTERNAL_H

#include "auth/oauth_challenge.h"
#include "auth/oauth_client.h"
#include "auth/oauth_form.h"
#include "json/json.h"

enum {
    OAUTH_STATE_BYTES = 32,  /* of randomness, in state and verifier */
    OAUTH_CACHE_MS = 600000, /* how long metadata is used without reading it again */
    OAUTH_NONCE_MOST = 512,
    OAUTH_MEMORY_BYTES = 1 << 20,
    OAUTH_ASSERTION_MS = 60000,
};

typedef enum oauth_phase {
    OAUTH_IDLE,
    OAUTH_READING_RESOURCE,
    OAUTH_READING_SERVER,
    OAUTH_READING_IDP,
    OAUTH_REGISTERING,
    OAUTH_LISTENING,   /* for the carrier's redirect URI */
    OAUTH_AUTHORIZING, /* the person is in the browser */
    OAUTH_DEVICE_ASKING,
    OAUTH_DEVICE_WAITING,
    OAUTH_DEVICE_POLLING,
    OAUTH_GETTING_SUBJECT,
    OAUTH_EXCHANGING, /* at the identity provider */
    OAUTH_REREADING,
    OAUTH_GETTING_TOKEN,
    OAUTH_REVOKING,
    OAUTH_IS_READY,
    OAUTH_HAS_FAILED,
    OAUTH_PHASES,
} oauth_phase;

typedef enum oauth_purpose {
    OAUTH_TO_GRANT,
    OAUTH_TO_REFRESH,
    OAUTH_TO_REVOKE,
} oauth_purpose;

struct oauth_client {
    oauth_settings settings; /* into `texts` */
    char *texts;             /* wiped */
    size_t texts_len;
    bool may_be_loopback; /* the resource is on this machine, so its servers may be */

    oauth_phase phase;
    oauth_purpose purpose;
    oauth_record record;
    bool is_changed;
    uint64_t generation;  /* of the access token; 0: there is none */
    uint64_t generations; /* how many there were: a number is never used twice */

    arena resource_memory, server_memory, idp_memory; /* of the three documents */
    oauth_resource resource;
    oauth_server server;
    oauth_server idp;
    bool has_resource, has_server, has_idp;
    bool is_legacy; /* no metadata of the resource anywhere: mcp 2025-03-26 */
    uint64_t server_until_ms;
    oauth_candidates candidates;
    size_t candidate;

    buf challenged; /* scope of the last challenge */
    buf pointer;    /* resource_metadata of the last challenge */
    buf refused;    /* the access token that the resource refused; "": none */
    buf wanted;     /* scope of the request under way */
    buf asked;      /* scope of the last authorization request */
    bool is_step_up;
    bool sees_dpop; /* the resource asks for bound tokens */

    buf state, verifier, redirect_uri, code;
    uint64_t read_until_ms; /* what was kept counts as known; settings.reread_ms */
    uint64_t until_ms;      /* of the attempt; FAILED: of the rest */
    buf authorization_url;
    buf device_code, user_code, verification_url;
    uint64_t poll_at_ms, interval_ms;
    bool is_shown;

    buf redirect;        /* the query of a redirect that waits for the server's metadata */
    buf nonce, id_token; /* of a login */

    buf subject, assertion;
    jose_key *key; /* proofs of possession */
    buf server_nonce, resource_nonce;
    bool had_nonce; /* the request under way was refused once for its nonce */

    bay_diag fault;

    /* the request that `next` shows */
    buf body, basic, proof;
};

/* ---- oauth_client.c -------------------------------------------------------------------------- */

void oauth_set_phase(oauth_client *self, oauth_phase phase);
/* FAILED. BAY_ERR_CLASS_RETRY codes are faults that may pass. */
void oauth_fail(oauth_client *self, uint64_t now_ms, bay_err err, const char *format, ...)
    BAY_PRINTF(4, 5);
/* The same for what a function filled in. */
void oauth_fail_with(oauth_client *self, uint64_t now_ms, const bay_diag *diag);
/* A step succeeded or the flow fails with BAY_ERR_NOMEM or whatever else `err` says. */
bool oauth_went(oauth_client *self, uint64_t now_ms, bay_err err);
/* Forgets what belongs to one attempt: verifier, state, code, assertion. */
void oauth_attempt_end(oauth_client *self);
void oauth_text_forget(buf *text);
/* In time that does not depend on where they differ. */
bool oauth_text_same(bay_str one, bay_str other);
/* After a refresh that failed for a reason that may pass: true if the old token still does. */
bool oauth_keeps_going(oauth_client *self, uint64_t now_ms);
/* Is there a way to tokens without a person? */
bool oauth_can_refresh(const oauth_client *self);

/* ---- oauth_discovery.c ----------------------------------------------------------------------- */

void oauth_discovery_begin(oauth_client *self, uint64_t now_ms);
void oauth_server_begin(oauth_client *self, bay_str issuer, uint64_t now_ms);
void oauth_discovery_action(oauth_client *self, oauth_action *out);
void oauth_discovery_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms);
/* The server's metadata is there: what is it for? */
void oauth_server_known(oauth_client *self, uint64_t now_ms);

/* ---- oauth_registration.c -------------------------------------------------------------------- */

void oauth_registration_begin(oauth_client *self, uint64_t now_ms);
void oauth_registration_action(oauth_client *self, oauth_action *out);
void oauth_registration_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms);
/* Who we are at the server; `id` is empty if that is not settled. */
oauth_identity oauth_identity_of(const oauth_client *self);

/* ---- oauth_authorization.c ------------------------------------------------------------------- */

void oauth_authorization_begin(oauth_client *self, uint64_t now_ms);
void oauth_device_begin(oauth_client *self, uint64_t now_ms);
void oauth_device_action(oauth_client *self, oauth_action *out);
/* Until the next look whether the person has entered the code, unless it expires before. */
void oauth_device_wait(oauth_client *self, uint64_t now_ms);
void oauth_device_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms);
/* oauth_attempt.c: the server of the attempt is known. */
void oauth_attempt_go_on(oauth_client *self, uint64_t now_ms);
/* The scope to ask for now, into `wanted`. */
bay_err oauth_scope_choose(oauth_client *self) BAY_MUST_CHECK;

/* ---- oauth_token.c --------------------------------------------------------------------------- */

void oauth_token_begin(oauth_client *self, uint64_t now_ms);
void oauth_exchange_begin(oauth_client *self, uint64_t now_ms);
bay_err oauth_token_action(oauth_client *self, uint64_t now_ms, oauth_action *out) BAY_MUST_CHECK;
void oauth_token_answered(oauth_client *self, int status, bay_str nonce, bay_str body,
                          uint64_t now_ms);
bay_err oauth_revocation_action(oauth_client *self, uint64_t now_ms,
                                oauth_action *out) BAY_MUST_CHECK;
/* `resource`, unless the server must not get it. */
void oauth_put_resource(const oauth_client *self, buf *out, size_t start);
/* The error of an endpoint's answer, as an object; "" if it has none. `description` is shown only
 * if it holds nothing that we keep secret. */
typedef struct oauth_error {
    char code[48];
    char text[160];
} oauth_error;
void oauth_error_read(const oauth_client *self, bay_str body, oauth_error *out);
void oauth_fail_remote(oauth_client *self, uint64_t now_ms, const char *who, int status,
                       const oauth_error *error);

/* ---- oauth_proof.c --------------------------------------------------------------------------- */

/* Adds the client's authentication at `server` to the form, and to the action's fields.
 * BAY_ERR_DENIED with `diag`: we have no method that the server takes. */
bay_err oauth_prove_client(oauth_client *self, const oauth_identity *identity,
                           const oauth_server *server, uint64_t now_ms, buf *form,
                           oauth_action *out, bay_diag *diag) BAY_MUST_CHECK;
/* Loads or makes the key of proofs. */
bay_err oauth_key_need(oauth_client *self) BAY_MUST_CHECK;
/* Appends a DPoP proof. `token` empty: for the token endpoint. */
bay_err oauth_proof_write(oauth_client *self, bay_str method, bay_str url, bay_str token,
                          bay_str nonce, uint64_t now_ms, buf *out) BAY_MUST_CHECK;
/* 32 random bytes in base64url. */
bay_err oauth_random(buf *text) BAY_MUST_CHECK;
bool oauth_uses_dpop(const oauth_client *self);

#endif
