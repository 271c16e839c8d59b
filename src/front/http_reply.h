/* The way back of one exchange: it waits, then it is a whole JSON answer or an event stream. Local
 * carriers, HTTP+SSE connections and exchanges relayed to another loop each have one.
 *
 *   waiting ──answer──────────────► over
 *      └──event──► streaming ──end──► over        gone (from either): over, told by ops->gone
 *
 * All replies of a router stand in one of two lists; the streaming one is kept in the order of
 * their last bytes, so one timer and a look at its front keep every quiet stream alive. */
#ifndef FRONT_HTTP_REPLY_H
#define FRONT_HTTP_REPLY_H

#include "auth/principal.h"
#include "base/buf.h"
#include "base/list.h"
#include "http/http_server.h"

typedef struct http_reply http_reply;
struct front_challenge; /* front/front.h */

/* Who looks after an exchange: what its user pointer points to begins with a pointer to one of
 * these, so that exchanges of several kinds meet in one http_server. */
typedef struct http_owner_ops {
    void (*closed)(void *self, http_exchange *exchange, bool is_complete);
    void (*drained)(void *self, http_exchange *exchange);
} http_owner_ops;

typedef struct http_reply_ops {
    /* The peer left before the reply was over. The last event; the exchange is gone. */
    void (*gone)(http_reply *self);
    /* After http_reply_event said BAY_ERR_AGAIN. */
    void (*drained)(http_reply *self);
    /* Streams are to end gracefully. May call http_reply_end, now or later. */
    void (*close)(http_reply *self);
    /* It has waited for as long as a stream may be quiet: the time to begin one, if that can be.
     * Said again and again. May be NULL. */
    void (*quiet)(http_reply *self);
    /* This stream has said nothing, or lasted, for too long, or its caller may not have it any more.
     * Said again for one that is silent. May call http_reply_end, now or later. */
    void (*expired)(http_reply *self);
} http_reply_ops;

typedef struct http_reply_limits {
    uint32_t keep_alive_ms;   /* a comment on a stream that is quiet for so long; 0: none */
    uint32_t stream_idle_ms;  /* a stream without an event; 0: no bound */
    uint32_t stream_total_ms; /* a stream, whatever it says; 0: no bound */
} http_reply_limits;

typedef struct http_replies {
    loop *loop;
    http_reply_limits limits;
    list waiting;   /* longest first */
    list streaming; /* longest quiet first */
    list opened;    /* the same, oldest first, until they were told that they expired */
    loop_timer timer;
    buf text; /* one event, encoded */
    /* Says how a caller who lacks these scopes asks for them; views live as long as the exchange.
     * NULL: nobody knows. */
    void (*challenge)(void *user, http_exchange *exchange, bay_str scopes,
                      struct front_challenge *out);
    void *challenge_user;
} http_replies;

struct http_reply {
    const http_owner_ops *owner; /* first */
    list_link link;
    list_link opened_link;
    http_replies *among;
    http_exchange *exchange; /* NULL: over */
    const http_reply_ops *ops;
    const auth_principal *principal; /* whose it is; counted */
    uint64_t written_ms; /* last bytes; while it waits: since when, or when it was last told */
    uint64_t spoke_ms;   /* last event */
    uint64_t opened_ms;
    bool is_streaming;
    /* Further fields of a stream's head; borrowed until it is opened. */
    const http_field *fields;
    size_t field_count;
};

void http_replies_init(http_replies *self, loop *loop, const http_reply_limits *limits);
/* Every reply that is not over is cut: its `gone` runs. */
void http_replies_fini(http_replies *self);
/* Runs `close` of every open stream once. */
void http_replies_close(http_replies *self);

/* Runs `expired` of every open stream of whose caller this says true. */
void http_replies_end(http_replies *self, principal_test is_over, void *user);

/* Takes the exchange's user pointer, and a reference to its caller. */
void http_reply_begin(http_reply *self, http_replies *among, const http_reply_ops *ops,
                      http_exchange *exchange, const auth_principal *principal);

/* A whole reply. `json` empty: no body. `session` non-empty: the field Mcp-Session-Id. `detail`
 * non-empty: with 403 the scopes that the caller lacks, for the challenge; else the field Allow.
 * Nothing of `self` is used afterwards. */
void http_reply_answer(http_reply *self, int status, bay_str json, bay_str session, bay_str detail);

/* For an answer of the caller's own making: the exchange, from now on without the reply. NULL: the
 * peer is gone. */
http_exchange *http_reply_take(http_reply *self);

/* One event; the first opens the stream and gives the request's memory back. `name` and `id` with
 * `at` NULL are left out; `data` and `id` both without bytes: the stream is opened, nothing is
 * sent. Errors: BAY_ERR_AGAIN: taken, stop until drained; BAY_ERR_CANCELLED: not taken, `gone`
 * follows in a later turn. Threads: the loop's. Source: mcp basic/transports; HTML standard 9.2. */
bay_err http_reply_event(http_reply *self, bay_str name, bay_str data, bay_str id);
/* How long a client that lost the stream is to wait before it comes back; opens the stream. */
bay_err http_reply_retry(http_reply *self, uint32_t retry_ms);
void http_reply_end(http_reply *self);
/* What HEAD gets where GET opens a stream: its head (RFC 9110 section 9.3.2). */
void http_reply_show_stream(http_exchange *exchange);
/* Ends it by closing the connection; no `gone`. */
void http_reply_abort(http_reply *self);

/* An http_handler's events: whoever looks after the exchange hears of it, if anybody does. */
void http_owner_closed(void *router, http_exchange *exchange, bool is_complete);
void http_owner_drained(void *router, http_exchange *exchange);

enum { HTTP_REPLY_FIELDS = 12 };
/* What a browser of an allowed origin needs to see in any reply to `exchange`; nothing for others.
 * Appends up to 3 fields and returns the new count. The Origin was checked before. */
size_t http_reply_cors(const http_exchange *exchange, http_field *fields, size_t count);

#endif
