/* The front: takes every exchange of one http_server, and does once what has to be done before any
 * protocol sees it. One front per loop and kind of listener.
 *
 *   exchange ─► row of its path ─► Host, Origin ─► Via ─► preflight? ─► identify? ─► the row's
 * serve
 *                                      403          508      204          401 …       404: unknown
 *                                                                         (waits)
 *
 * A table says what there is: patterns of paths, what each needs to know of the caller, and who
 * serves it. What serves a row gets the exchange guarded and its caller identified; it neither
 * guards nor identifies. A path without a row, and a row that says there is no such thing, are
 * answered by the same function, so by the same bytes; nobody is identified for the former.
 *
 * To identify a caller may take a while (keys are fetched, a token is asked about): the exchange is
 * held meanwhile (front_hold), and goes on or is refused later.
 *
 * Invariants
 * - `identify` is asked at most once for an exchange, and never for a row of another need than
 *   FRONT_CALLER. */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include "auth/principal.h"
#include "front/forwarded.h"
#include "front/origin_check.h"
#include "http/http_server.h"

typedef struct http_front http_front;

/* What a row needs to know of who sends a request. */
typedef enum front_need {
    FRONT_PUBLIC, /* nothing: everybody gets the same */
    FRONT_SHARED, /* the same, and pages of any origin may read it: it changes nothing */
    FRONT_CALLER, /* `identify` says who it is, or refuses */
    FRONT_PROVEN, /* what serves it verifies what the request itself carries, as a webhook's token */
} front_need;

/* One request. Views live as long as the exchange. */
typedef struct front_request {
    http_exchange *exchange;
    bay_str path;                    /* as sent, without the query */
    bay_str own;                     /* the same behind front_options.base */
    bay_str name;                    /* what the row's first '*' stands for; "": it has none */
    bay_str rest;                    /* what follows `name`, with its slash; or "" */
    const auth_principal *principal; /* borrowed for the call; NULL: nobody in particular */
    forwarded_request from;          /* whom it is from, through proxies that are trusted */
    http_front *front;               /* the front's own, like the next one */
    const struct front_row *row;
} front_request;

typedef enum front_cause {
    FRONT_GUARD,  /* Host or Origin: 403 */
    FRONT_LOOP,   /* Via: 508 */
    FRONT_DENIED, /* identify: 401, or what it says */
} front_cause;

/* What who is refused is told of how to come in. Views live as long as the exchange; "": not said.
 */
enum { FRONT_CHALLENGES = 2, FRONT_CHALLENGE_FIELDS = FRONT_CHALLENGES + 2 };
typedef struct front_challenge {
    bay_str schemes[FRONT_CHALLENGES]; /* WWW-Authenticate, each a field */
    bay_str nonce;                     /* DPoP-Nonce */
    bay_str retry;                     /* Retry-After */
} front_challenge;

/* Appends up to FRONT_CHALLENGE_FIELDS fields and returns the new count. */
size_t front_challenge_put(const front_challenge *self, http_field *fields, size_t count);

/* Why a request is not served. `text` is static or in the exchange's arena. */
typedef struct front_refusal {
    front_cause cause;
    int status;
    const char *text;
    front_challenge challenge;
} front_refusal;

typedef enum front_verdict {
    FRONT_GO,
    FRONT_REFUSE,
    FRONT_WAIT, /* front_hold_new has it */
} front_verdict;

typedef struct front_row {
    /* A path; "*" in it stands for one segment or the rest of one, never empty, and "**" at its end
     * for whatever follows. The first row that matches counts. */
    bay_str path;
    bool is_absolute; /* it does not begin behind front_options.base */
    front_need need;
    const http_cors
        *cors; /* preflight is answered so, unasked who it is; NULL: OPTIONS is served */
    /* Answers now or later; false: there is no such thing. */
    bool (*serve)(void *user, const front_request *request);
    /* A refusal in the words of the row's protocol; NULL: front_refuse. */
    void (*refuse)(void *user, const front_request *request, const front_refusal *refusal);
} front_row;

typedef front_verdict (*front_identify)(void *user, const front_request *request,
                                        const auth_principal **out_principal, front_refusal *out);

typedef struct front_options {
    const front_row *rows; /* borrowed until front_free */
    size_t row_count;
    const bay_str *base; /* what paths of rows are behind, as it is at the time; NULL: nothing */
    /* Host and Origin that may be named. Empty lists: when the listener is on a loopback address,
     * any loopback name; else Host is free and Origin must be absent or same-origin. Entries are
     * "name" or "name:port" for hosts, whole origins for origins; "*" allows all. Copied. */
    const bay_str *hosts;
    size_t host_count;
    const bay_str *origins;
    size_t origin_count;
    bool is_loopback;
    const listen_names *names; /* with is_loopback: other names of it; NULL: none; borrowed */
    const forwarded_proxies *proxies; /* whose word on that counts; NULL: nobody's; borrowed */
    /* This gateway's pseudonym: requests whose Via names it, or names too many, are refused with
     * 508; "": Via is not looked at. Copied. */
    bay_str via;
    /* Who sends the request: FRONT_GO, with one reference in *out_principal (NULL: nobody in
     * particular), which the front gives back; FRONT_REFUSE: it is refused, as `out` says (401
     * unless it says otherwise); FRONT_WAIT: it is held. NULL: everybody is nobody in
     * particular. */
    front_identify identify;
    /* Answers what there is not; NULL: 404 without a body. */
    void (*unknown)(void *user, http_exchange *exchange);
    void *user;
} front_options;

/* BAY_ERR_INVALID: no rows; BAY_ERR_NOMEM. */
bay_err front_new(const front_options *options, http_front **out) BAY_MUST_CHECK;
/* After its http_server. NULL is fine. */
void front_free(http_front *self);

/* An exchange whose caller is not known yet. */
typedef struct front_hold front_hold;
/* For `identify`, which returns FRONT_WAIT then. `left`: the exchange is over, and the hold is gone
 * after that call. NULL: out of memory. */
front_hold *front_hold_new(const front_request *request, void (*left)(void *user),
                           void *user) BAY_MUST_CHECK;
/* The request, good until front_hold_end. */
const front_request *front_hold_request(const front_hold *self);
/* It goes on (FRONT_GO, with `principal`, borrowed) or is refused. Not within `identify`. */
void front_hold_end(front_hold *self, front_verdict verdict, const auth_principal *principal,
                    const front_refusal *refusal);

/* For http_server_options: handler and user. What serves an exchange later sets its user pointer,
 * as front/http_reply.h says. */
extern const http_handler front_handler;

/* The row of a path; NULL: it has none. Sets `path`, `own`, `name` and `rest` of `out`. */
const front_row *front_find(const front_row *rows, size_t count, bay_str base, bay_str path,
                            front_request *out);

/* A refusal as MCP and plain HTTP read it: 401 without a body, else a JSON-RPC error without an id;
 * in gRPC, whose status is a field, FAILED_PRECONDITION or PERMISSION_DENIED. */
void front_refuse(http_exchange *exchange, const front_refusal *refusal);
/* A JSON-RPC error without an id. */
void front_reply_error(http_exchange *exchange, int status, int code, const char *text);

/* front_via.c. NULL: the request may go on. Else why not (static).
 * Source: RFC 9110 section 7.6.3, RFC 5842 section 7.2 (508). */
const char *front_via_refusal(bay_str own_name, const http_exchange *exchange);

#endif
