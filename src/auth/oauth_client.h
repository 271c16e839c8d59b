/* The client side of OAuth 2.1 for one protected resource, without I/O: it says which request to
 * send, which page to show or how long to wait, and is told what came back. Whoever carries it
 * (oauth/client.h) sends and receives; this decides.
 *
 *   IDLE --challenged--> RESOURCE -> SERVER -> REGISTRATION -> AUTHORIZATION -> TOKEN -> READY
 *     |                     (PRM)     (ASM)                      or DEVICE        |       | ^
 *     |                                  \--> SUBJECT -> EXCHANGE --> TOKEN       |       | |
 *     \--a record with tokens: READY                                              |       | |
 *   READY --expires, or is refused--> SERVER -> TOKEN (refresh) --> READY ---------------/ |
 *   READY --lacks a scope--> AUTHORIZATION (the union) ------------------------------------/
 *   any --fault--> FAILED --rest--> IDLE
 *
 * Invariants
 * - What belongs to one issuer (client id, secret, tokens, code, verifier) is sent to endpoints
 * from
 *   that issuer's checked metadata only.
 * - A verifier and a state are made for one authorization request and wiped when it ends, in
 *   whatever way; a redirect with another state changes nothing.
 * - FAILED is kept for OAUTH_REST_MS, so that requests which fail one after the other do not each
 *   begin a new flow.
 *
 * Times: `now_ms` is the wall clock, ms since 1970. Threads: one at a time.
 * Source: mcp basic/authorization of 2025-03-26 to 2026-07-28; RFC 6749, 7523, 7591, 7636, 8252,
 * 8414, 8628, 8693, 8707, 9207, 9449, 9728; the extensions named at oauth_grant. */
#ifndef AUTH_OAUTH_CLIENT_H
#define AUTH_OAUTH_CLIENT_H

#include "auth/jose.h"
#include "auth/oauth_metadata.h"
#include "auth/oauth_record.h"
#include "wire/field.h"

enum {
    OAUTH_ATTEMPT_MS = 600000, /* a person has this long in the browser */
    OAUTH_REST_MS = 60000,     /* a flow that was refused is not begun again earlier … */
    OAUTH_PAUSE_MS = 5000,     /* … nor one that failed for a reason that may pass */
    OAUTH_KEPT_PAUSE_MS = 200, /* nothing is kept: it is read again after so long */
    OAUTH_STEP_UPS = 2,        /* for one request */
    OAUTH_REFUSALS = 1,        /* of a token, for one request: it gets a new one */
    OAUTH_ACTION_FIELDS = 8,
};

typedef enum oauth_grant {
    OAUTH_CODE,      /* a person in a browser: authorization code with PKCE */
    OAUTH_DEVICE,    /* a person in a browser elsewhere: RFC 8628 */
    OAUTH_CLIENT,    /* the client itself: client credentials (SEP-1046) */
    OAUTH_ASSERTION, /* a token of the platform as the grant: RFC 7523 (SEP-1933) */
    OAUTH_EXCHANGE,  /* a token of the subject for one of this resource: RFC 8693 */
    OAUTH_ID_JAG,    /* an identity provider's assertion, then RFC 7523 (SEP-990) */
    OAUTH_STORED,    /* what a person granted elsewhere: refresh only */
} oauth_grant;

/* Which client we are at one server; texts may be empty. */
typedef struct oauth_identity {
    bay_str id;
    bay_str secret;
    const jose_key *key; /* private_key_jwt; NULL: none; borrowed, outlives the client */
    unsigned method;     /* an oauth_method that is used whatever the metadata says; 0: chosen */
} oauth_identity;

/* Everything is copied but the keys. */
typedef struct oauth_settings {
    oauth_grant grant;
    /* OAUTH_CODE: who the person is, not what may be called: `url` is the issuer, there is no
     * resource, and the answer must have an ID token (OpenID Connect Core section 3.1). */
    bool is_login;
    bay_str url;             /* what is called: the MCP endpoint, the agent */
    oauth_identity identity; /* registered beforehand; `id` empty: not */
    bay_str issuer;          /* the authorization server; "": the resource's metadata names it */
    bay_str document_url;    /* our client id metadata document; "": none */
    bay_str name;            /* client_name of a registration */
    bay_str redirect_uri;    /* "": the carrier is asked to listen */
    bay_str scope;           /* asked for in place of what the server proposes */
    bay_str extra; /* further parameters as a form, for servers that need one (audience=…) */
    /* The identity provider of OAUTH_ID_JAG: its token endpoint, or its issuer. */
    oauth_identity idp;
    bay_str idp_issuer, idp_token_endpoint;
    bool is_eager;   /* does not wait for a challenge */
    bool wants_dpop; /* tokens must be bound to a key */
    /* OAUTH_ID_JAG: the subject's token is an access token, not an ID token. */
    bool is_subject_access;
    /* OAUTH_STORED: what is kept is read before the first request, and again when that is so long ago:
     * others may change it. 0: it was loaded, and stays. */
    uint32_t reread_ms;
    bool is_modern_only; /* no fallback to 2025-03-26: agents, configured servers */
} oauth_settings;

typedef struct oauth_client oauth_client;

bay_err oauth_client_new(const oauth_settings *settings, oauth_client **out,
                         bay_diag *diag) BAY_MUST_CHECK;
void oauth_client_free(oauth_client *self); /* wipes; NULL is fine */

/* What was kept. A record for another resource, or one that does not read, counts as none; an
 * issuer other than the configured one, too. BAY_ERR_NOMEM. */
bay_err oauth_client_load(oauth_client *self, bay_str record) BAY_MUST_CHECK;
const oauth_record *oauth_client_record(const oauth_client *self);
/* The record has changed since this was last called: it is to be kept before the next step. */
bool oauth_client_take_change(oauth_client *self);

/* ---- what to do next ------------------------------------------------------------------------- */

typedef enum oauth_need {
    OAUTH_GO,      /* requests may be sent: oauth_client_authorize */
    OAUTH_REQUEST, /* send this, then oauth_client_answered or _unanswered */
    OAUTH_LISTEN,  /* receive redirects, then oauth_client_listens */
    OAUTH_BROWSER, /* show the URL to the person, then oauth_client_redirected */
    OAUTH_SHOW,    /* show URL and code to the person; then as OAUTH_WAIT */
    OAUTH_WAIT,    /* until `at_ms`, then ask again */
    OAUTH_SUBJECT, /* get the subject's or the platform's token, then oauth_client_subject */
    OAUTH_REREAD,  /* before a refresh: another process may have done it. Load and go on by
                      oauth_client_reread */
    OAUTH_FAILED,  /* oauth_client_fault */
} oauth_need;

/* Views live until the next call with this client. */
typedef struct oauth_action {
    oauth_need need;
    bay_str method; /* OAUTH_REQUEST */
    bay_str url;    /* OAUTH_BROWSER, OAUTH_SHOW: to show; OAUTH_LISTEN: what to prefer, or empty */
    http_field fields[OAUTH_ACTION_FIELDS];
    size_t field_count;
    bay_str body;
    bay_str code;   /* OAUTH_SHOW: what the person types */
    uint64_t at_ms; /* OAUTH_WAIT, OAUTH_BROWSER: until when */
} oauth_action;

/* The same answer until something was told. */
bay_err oauth_client_next(oauth_client *self, uint64_t now_ms, oauth_action *out) BAY_MUST_CHECK;
/* What came for OAUTH_REQUEST. `nonce`: of DPoP-Nonce, or empty. */
void oauth_client_answered(oauth_client *self, int status, bay_str nonce, bay_str body,
                           uint64_t now_ms);
void oauth_client_unanswered(oauth_client *self, bay_err err, const char *text, uint64_t now_ms);
/* `redirect_uri`: where redirects are received, byte for byte as it is sent. */
void oauth_client_listens(oauth_client *self, bay_str redirect_uri, uint64_t now_ms);
/* `query` of the redirect, without '?'. BAY_OK: the flow goes on, or has failed; BAY_ERR_NOT_FOUND:
 * nobody asked for this (another state, a second time, malformed): it changes nothing. */
bay_err oauth_client_redirected(oauth_client *self, bay_str query, uint64_t now_ms) BAY_MUST_CHECK;
/* "state" of the authorization request that waits; empty if there is none. */
bay_str oauth_client_state(const oauth_client *self);
void oauth_client_subject(oauth_client *self, bay_str token, uint64_t now_ms);
void oauth_client_reread(oauth_client *self, uint64_t now_ms);
/* The step cannot be done here: no browser, no listener, no token. */
void oauth_client_give_up(oauth_client *self, bay_err err, const char *text, uint64_t now_ms);
/* Why the last flow failed. */
const bay_diag *oauth_client_fault(const oauth_client *self);

/* Between the authorization request and its redirect nothing needs to be kept here: what the
 * redirect is compared with can be written down, given to the browser or a store, and be taken up by
 * any client with the same settings, on another loop or in another process. It holds the verifier:
 * seal it. */
enum { OAUTH_ATTEMPT_BYTES = 12 << 10 };
/* While OAUTH_BROWSER is wanted: appends it. Errors: BAY_ERR_STATE; those of `out`. */
bay_err oauth_client_attempt_write(const oauth_client *self, buf *out) BAY_MUST_CHECK;
/* Takes it up, with the query of the redirect: reads the server's metadata, then goes on as
 * oauth_client_redirected does. Between flows only. Errors: BAY_ERR_NOT_FOUND: the redirect is not
 * of that attempt, or too late; BAY_ERR_STATE; BAY_ERR_NOMEM. */
bay_err oauth_client_resume(oauth_client *self, bay_str attempt, bay_str query,
                            uint64_t now_ms) BAY_MUST_CHECK;
/* The flow ends without a fault, and tokens are forgotten: the next one begins by
 * oauth_client_begin or oauth_client_resume, whatever `is_eager` said. */
void oauth_client_abandon(oauth_client *self);
/* Of the last answer, until the flow is abandoned or another begins; "" if it had none. Not
 * verified. */
bay_str oauth_client_id_token(const oauth_client *self);
/* That is in the ID token, if it is of this flow. */
bay_str oauth_client_nonce(const oauth_client *self);

/* Begins now, without a challenge; with `anew` also where there are tokens (a login). */
void oauth_client_begin(oauth_client *self, bool anew);
/* Forgets the tokens, and keeps the client. */
void oauth_client_forget(oauth_client *self);
/* Revokes the tokens at the server, then forgets them and the client: OAUTH_GO when it is done,
 * whatever the server said. */
void oauth_client_revoke(oauth_client *self);

/* ---- one request ----------------------------------------------------------------------------- */

/* What one request has been through; zero at first. */
typedef struct oauth_try {
    uint64_t generation; /* of the token it was sent with; 0: none */
    uint8_t step_ups;
    uint8_t refusals;
    bool had_nonce;
} oauth_try;

/* Appends the values of Authorization and DPoP; each stays empty if there is none to send (OAUTH_GO
 * without a token: a server may not ask). A proof is good for one attempt.
 * Errors: BAY_ERR_DENIED: the URL is not of the resource's origin; BAY_ERR_NOMEM,
 * BAY_ERR_UNSUPPORTED. */
bay_err oauth_client_authorize(oauth_client *self, oauth_try *one, bay_str method, bay_str url,
                               uint64_t now_ms, buf *out_authorization,
                               buf *out_proof) BAY_MUST_CHECK;

typedef enum oauth_verdict {
    OAUTH_PASS,   /* the reply is the request's own */
    OAUTH_AGAIN,  /* send it again once oauth_client_next says OAUTH_GO */
    OAUTH_REFUSE, /* this request fails with oauth_client_fault; others go on */
} oauth_verdict;

/* The head of the reply to that request. */
oauth_verdict oauth_client_replied(oauth_client *self, oauth_try *one, int status,
                                   const http_field *fields, size_t count, uint64_t now_ms);

#endif
