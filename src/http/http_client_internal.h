/* What http_client.c and http_call.c share. Nobody else includes this.
 *
 * A call:     QUEUED --> CONNECTING --> WAITING --> BODY --> OVER      (OVER also from everywhere)
 *                ^            ^            |  |
 *                |            +-- stale ---+  |  a pooled connection ended before a reply began
 *             no slot                         |
 *           AUTHORIZING <------ refused ------+  with an authority only; a call may begin there
 * A channel (one connection): CONNECTING --> busy (has a call) <--> idle (in the pool) --> dropped
 *
 * Invariants
 * - A call ends by exactly one of `end`, `failed`, http_call_cancel; no event runs inside
 *   http_client_call, http_call_cancel, http_call_pause or http_call_resume.
 * - A channel that is dropped is silent: its socket ends by itself.
 * - A channel goes back to the pool only when its reply was whole, asked for, followed by nothing,
 *   and the request was wholly taken by the kernel.
 * - An origin lives while a call or a channel refers to it (`users`).
 * - An origin has either channels or, of HTTP/2, lines; the same host and port may be two origins.
 * - Dropped channels and calls that are over keep their memory until the outermost entry point is
 *   left (`depth` 0). */
#ifndef HTTP_HTTP_CLIENT_INTERNAL_H
#define HTTP_HTTP_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "http/http_client.h"
#include "net/reply_room.h"
#include "net/socket.h"
#include "wire/http1.h"
#include "wire/uri.h"

typedef struct http2_line http2_line; /* a connection of HTTP/2 */
typedef struct http2_call http2_call; /* the part of a call that only HTTP/2 needs */

typedef struct http_origin {
    list idle;  /* the last one was used last */
    list queue; /* calls without a channel */
    list lines; /* HTTP/2 */
    uint32_t channels;
    uint32_t queued;
    uint32_t users;
    list_link link; /* while origins without users are collected */
    uint16_t port;
    bool is_tls;
    bool is_http2;
    bay_str host; /* into `key` */
    bay_str key;
    char bytes[];
} http_origin;

/* The state of reading a head; reused. */
typedef struct http_reader {
    struct http_reader *next;
    http1_parser parser;
    buf input; /* a head that came in pieces */
    http_field fields[];
} http_reader;

typedef struct http_channel {
    list_link link; /* in the client's busy or dead channels, or its origin's idle ones */
    http_client *client;
    http_origin *origin;
    net_socket *socket; /* NULL: ended */
    http_call *call;    /* NULL: idle */
    http_reader *reader;
    http1_body body;
    buf held; /* arrived while the call was paused */
    loop_task task;
    uint64_t idle_since_ms;
    bay_err end; /* how it ended while the call was paused; BAY_OK: it has not ended */
    bool is_reused;
    bool has_reply_bytes;
    bool keep_alive;
    bool is_dropped;
} http_channel;

/* What a call with an authority is made of, to be made anew. */
typedef struct http_draft {
    http_authority *authority;
    http_grant grant;
    http_call_spec spec; /* its texts and fields follow this struct */
    unsigned attempts;
    bool is_tls;
    bool is_waiting;
    size_t bytes; /* all of it, to wipe */
    http_field fields[];
} http_draft;

typedef enum http_call_state {
    CALL_AUTHORIZING,
    CALL_QUEUED,
    CALL_CONNECTING,
    CALL_WAITING,
    CALL_BODY,
    CALL_OVER,
} http_call_state;

struct http_call {
    list_link link; /* in the client's calls, or its dead ones */
    list_link queue_link;
    http_client *client;
    http_origin *origin;
    http_channel *channel;
    http2_call *http2; /* NULL: HTTP/1.1 */
    http_draft *draft; /* NULL: no authority */
    const http_call_events *events;
    void *user;
    buf request;
    loop_timer timer;
    uint64_t head_end_ms; /* deadline of the head; 0: none */
    uint64_t last_ms;     /* time of the body's last progress */
    uint64_t until_ms;    /* its deadline without progress; 0: the watch begins again */
    reply_room room;      /* the body's account, and whether it waits */
    uint32_t timeout_ms;
    uint32_t idle_ms; /* as in the spec, from begin_body on the effective value; 0: none */
    http_call_state state;
    uint8_t interim; /* 1xx replies so far */
    bool is_in_head; /* the head has begun to arrive and has its own time-out */
    bool is_stream;  /* silence is limited, not the pace */
    bool is_paused;
    bool was_sent;
    bool is_head_method;
    bool may_run_twice;
};

struct http_client {
    loop *loop;
    reply_rooms *rooms; /* NULL: replies are not counted */
    http_client_limits limits;
    http1_limits wire_limits;
    tls_context *tls;
    socket_permit permit;
    void *permit_user;
    bool owns_tls;
    bool is_freed;
    uint32_t depth;
    uint32_t spare_call_count;
    uint32_t spare_reader_count;
    uint32_t sweep_ms;
    map origins;
    list calls;
    list busy; /* channels with a call, or connecting */
    list dead_channels;
    list dead_lines;
    list dead_calls;
    list spare_calls;
    http_reader *spare_readers;
    loop_timer sweep;
    buf key; /* scratch */
};

/* http_client.c */
void http_client_enter(http_client *self);
void http_client_leave(http_client *self); /* may free `self` */
http_reader *client_reader_take(http_client *self);
void client_reader_give(http_client *self, http_reader *reader);
void origin_release(http_client *self, http_origin *origin);
/* Gives waiting calls free connections. */
void origin_kick(http_client *self, http_origin *origin);
void client_arm_sweep(http_client *self);

/* Writes the request and sends it. */
bay_err http_call_go(http_call *self, const http_call_spec *spec, const uri *url, bool is_tls,
                     bay_diag *diag);

/* http_authorized.c */
bay_err call_draft(http_call *self, const http_call_spec *spec, bool is_tls) BAY_MUST_CHECK;
void call_draft_free(http_call *self);
/* The next attempt: sent, or waiting for its fields. */
bay_err call_attempt(http_call *self, bay_diag *diag) BAY_MUST_CHECK;
/* The call is over: nobody waits for fields. */
void call_draft_leave(http_call *self);
/* The head of a reply. True: it is not the owner's; the channel is to be dropped, and then
 * call_again. */
bool call_is_refused(http_call *self, int status, const http_field *fields, size_t count,
                     bay_diag *diag);
void call_again(http_call *self, const bay_diag *diag);

/* http_call.c */
/* Puts the call on a pooled channel, on a new one, or in the queue. */
bay_err http_call_start(http_call *self);
bay_err call_connect(http_call *self);
bool call_send_on(http_call *self, http_channel *channel); /* false: the channel was dropped */
void http_call_fail(http_call *self, bay_err err, const char *text);
void call_on_timer(void *argument);
void channel_drop(http_channel *self);
void channel_free(http_channel *self);

/* The call is not with its peer any more: removes it from everything; its owner is told afterwards.
 */
void call_leave(http_call *self);
/* A head, interim or not, has partly arrived; an interim one is complete. */
void call_begin_head(http_call *self);
void call_end_head(http_call *self);
void call_begin_body(http_call *self, const http_field *fields, size_t count);
void call_moved(http_call *self, size_t bytes); /* that many more bytes of the body arrived */
/* `have` bytes of the body have arrived, and its peer has promised more: from now on call_rests, if
 * the account has no room for them. */
void call_ask(http_call *self, uint64_t have, uint64_t promised);
void call_granted(reply_room *room);
/* Nothing of the body is to be reported or read: paused by its owner, or by the account. */
static inline bool call_rests(const http_call *self)
{
    return self->is_paused || self->room.is_waiting;
}

/* HTTP/2 (http2_client.c; http2_client_none.c in a build without it). */
/* Prepares the request; before http2_call_start. BAY_ERR_UNSUPPORTED: not in this build. */
bay_err http2_call_prepare(http_call *self, const http_call_spec *spec, const uri *url,
                           bool is_tls) BAY_MUST_CHECK;
bay_err http2_call_start(http_call *self) BAY_MUST_CHECK;
void http2_call_leave(http_call *self);  /* of call_leave */
void http2_call_free(http_call *self);   /* the HTTP/2 part of the call */
void http2_call_resume(http_call *self); /* it is not paused any more */
bool http2_origin_has_room(http_client *client, http_origin *origin);
/* Ends lines that were idle for long; true: there are others. */
bool http2_origin_sweep(http_client *client, http_origin *origin, uint64_t now);
void http2_origin_drop(http_origin *origin); /* all its lines; they have no calls */
void http2_lines_free(http_client *client);  /* of dead_lines */

#endif
