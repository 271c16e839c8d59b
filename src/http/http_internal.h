/* Shared by http_server.c, http_connection.c and http_exchange.c. No other file includes this.
 *
 *                 data               head and body read
 *     IDLE ----------------> HEAD --------+------------> PENDING --reply--> REPLYING
 *      ^                      | \         |                 |                 ^  |
 *      |                      |  +--> BODY+                 +--> STREAMING ---+  |
 *      |                      |                                             end  |
 *      +--------- keep-alive: the reply is with the kernel ----------------------+
 *     every state --refusal, time-out, close--> CLOSING --the socket has ended--> DEAD
 *     IDLE, HEAD --ALPN, the preface of HTTP/2--> SHARED --> CLOSING (see http/http2.h)
 *
 * Invariants
 * - A connection carries one exchange at a time, unless it is SHARED: then its own exchange is not
 *   used, each stream has one. Input that arrives meanwhile is held (at most one read) and reading
 *   stops until the exchange is over.
 * - `is_given` is true from the call of `request` to the call of `closed`; both come once.
 * - `closed` and `drained` never run inside a call of the handler's owner, except http_server_free.
 * - A reply leaves REPLYING only when its last byte is with the kernel, or gathered for the end of
 *   the iteration (the socket's high-water mark is one byte except while streaming), so the next
 *   request starts with an empty queue.
 * - `memory` exists while the request's bytes do: not in IDLE, not in a stream that released it.
 * - Ended connections, and a server that was freed inside a callback, are freed when the outermost
 *   entry point returns (`depth` 0). */
#ifndef HTTP_HTTP_INTERNAL_H
#define HTTP_HTTP_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "http/http_server.h"
#include "http/reply_account.h"
#include "net/socket.h"
#include "wire/http1.h"

enum {
    HTTP_LISTENERS_MAX = 16,
    DRAIN_LINGER_MS = 100,         /* while draining: requests must not meet a closed connection */
    HTTP_PIECE_BYTES = 256 * 1024, /* of a reply that the socket gets at once */
    HTTP_DATE_LINE = 37            /* "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n" */
};

typedef enum http_state {
    HTTP_IDLE,
    HTTP_HEAD,
    HTTP_BODY,
    HTTP_PENDING,
    HTTP_STREAMING,
    HTTP_REPLYING,
    HTTP_SHARED,
    HTTP_CLOSING,
    HTTP_DEAD,
} http_state;

/* Memory of one request while its bytes exist; reused. `input` holds the head and, after it, the
 * decoded body. */
typedef struct http_memory {
    struct http_memory *next;
    http1_parser parser;
    http1_body body;
    http1_head head;
    size_t head_len;
    size_t charged; /* of server->held_bytes */
    buf input;
    arena arena;
    http_field fields[];
} http_memory;

typedef enum http_outcome { HTTP_UNDECIDED, HTTP_COMPLETE, HTTP_CUT } http_outcome;

struct http_exchange {
    void *user;
    http_memory *memory;
    http_outcome outcome;
    bool is_given;
    bool is_dispatching; /* inside `request`: the end is handled when it returns */
    bool is_head_method;
    bool is_chunked;
    bool wants_drained;
    bool is_http2; /* then this begins an http2_stream, otherwise it is in an http_connection */
    uint8_t minor;
};

typedef struct http_listener {
    http_server *server;
    socket_listener *socket;
    uint32_t connections;
} http_listener;

typedef struct http_address {
    uint8_t key[16];
    uint32_t connections;
} http_address;

/* What a connection's peer has not read; only while there is any (http_backlog.c). */
typedef struct http_backlog {
    reply_debt debt;
    struct http_connection *connection;
    buf rest; /* HTTP/1.1: of a reply or stream, after what the socket has */
    size_t from;
} http_backlog;

typedef struct http_connection {
    list_link link;
    http_server *server;
    http_listener *listener;
    http_address *address; /* NULL: no limit by address */
    net_socket *socket;    /* NULL: ended */
    http_exchange exchange;
    buf held; /* arrived during an exchange */
    buf cork; /* the start of a stream, until the end of the iteration */
    loop_task task;
    struct http2_connection *http2; /* NULL: HTTP/1.1 */
    http_backlog *backlog;          /* NULL: its peer has read everything */
    uint64_t deadline_ms;           /* of the state; 0: none */
    uint64_t body_end_ms;
    uint64_t written; /* all bytes passed to the socket … */
    uint64_t taken;   /* … of which the peer had received these at the last sweep */
    http_state state;
    bool keep_alive;
    bool is_counted;
    bool is_overdue;     /* idle past its time, with unread bytes: these decide */
    const char *refused; /* why it is refused: over a limit, or not admitted; NULL: it is served */
    int refused_status;
    char peer[SOCKET_ADDRESS_BYTES];
} http_connection;

struct http_server {
    loop *loop;
    http_server_options options;
    http1_limits limits;
    http_listener listeners[HTTP_LISTENERS_MAX];
    size_t listener_count;
    list connections;
    list dead;
    reply_book *book;
    map addresses;
    uint16_t port;
    size_t held_bytes;
    uint32_t connection_count;
    uint32_t refused_count; /* over a limit, being refused */
    uint32_t sweep_ms;
    loop_timer sweep;
    http_memory *spare;
    uint32_t spare_count;
    buf spare_cork;
    buf head; /* scratch for the heads of replies */
    char date[HTTP_DATE_LINE + 1];
    uint64_t date_until_ms;
    uint32_t depth;
    bool is_freed;
    bool is_draining;
    bool was_high;     /* much was under way since the heap was last trimmed */
    loop_timer linger; /* while draining, before idle connections are closed */
    loop_timer grace;
    loop_task drain_task;
    void (*drain_done)(void *argument);
    void *drain_argument;
};

/* http_server.c */
void server_enter(http_server *self);
void server_leave(http_server *self);               /* may free `self` */
http_memory *server_memory_take(http_server *self); /* NULL: out of memory */
void server_memory_give(http_server *self, http_memory *memory);
bay_str server_date(http_server *self); /* the whole line; until the next call */
/* When a new connection without a request ends; 0: never. */
uint64_t server_first_deadline(const http_server *self);
void server_forget(http_connection *connection); /* counts down, moves it to the ended ones */

/* http_connection.c */
http_connection *connection_new(http_server *server, http_listener *listener, net_socket *socket);
void connection_free(http_connection *self);
void connection_set_state(http_connection *self, http_state state);
void connection_sweep(http_connection *self, uint64_t now);
void connection_drain(http_connection *self);
/* Ends it at once: `closed` runs inside. The socket has no more events. */
void connection_cut(http_connection *self);
/* Answers with a status and a sentence, then closes so that the peer can read it. */
void connection_refuse(http_connection *self, int status, const char *text);
/* The socket has ended: counts down, reports the end to every remaining exchange. */
void connection_let_go(http_connection *self);
/* Ends it so that the peer can read what was sent. */
void connection_close_gently(http_connection *self);
/* Moves the views of the head if the buffer that holds them has moved. */
void http_memory_rebase(http_memory *memory, const char *from);
/* Whether `more` bytes of a body may be accepted: all bodies together are limited. */
bool server_admits(const http_server *self, uint64_t more);
/* Charges what the request holds. */
void http_memory_charge(http_server *server, http_memory *memory);
/* The exchange's end is handled at the end of the iteration, or when `request` returns. */
void connection_settle_later(http_connection *self);

/* http_backlog.c */
extern const reply_book_ops connection_debts;
/* Passes up to four spans to the socket, in pieces; the rest is kept without a limit. BAY_OK:
 * nothing waits; BAY_ERR_AGAIN: something does; BAY_ERR_CLOSED: the connection is lost, its
 * socket's `closed` ends the exchange. connection_account must follow, unless it was BAY_OK. */
bay_err connection_send(http_connection *self, const bay_str *spans, size_t count);
/* The next pieces, when the socket has drained. The same results. */
bay_err connection_send_rest(http_connection *self);
size_t connection_rest_bytes(const http_connection *self);
/* Accounts what waits for the peer, which may end this connection or others. False: this one is
 * ending. */
bool connection_account(http_connection *self);
void connection_free_backlog(http_connection *self);
/* Of `sent` bytes passed to the socket so far, those that its peer has acknowledged since `taken`
 * was noted; notes it again. */
uint64_t connection_moved(const http_connection *self, uint64_t sent, uint64_t *taken);

/* http_exchange.c */
http_connection *exchange_connection(const http_exchange *self);
void exchange_release_memory(http_exchange *self);
void exchange_flush(http_exchange *self); /* sends corked output */
/* Writes a head to server->head; false: a field is not permitted. */
bay_err exchange_write_head(http_connection *connection, int status, const http_field *fields,
                            size_t count, int64_t content_length, bool is_chunked, bool will_close);

/* Whether the field is about message framing, which is set here. */
bool exchange_field_is_ours(bay_str name);

/* HTTP/2 (http2_server.c; http2_server_none.c in a build without it). */
extern const bool http2_is_built;
/* Whether the bytes begin with the preface of HTTP/2. BAY_ERR_AGAIN: so far; BAY_ERR_NOT_FOUND. */
bay_err http2_preface(bay_str bytes);
/* Takes over a connection; `bytes`: the input so far. */
void http2_begin(http_connection *connection, bay_str bytes);
void http2_turn(http_connection *connection); /* the end of the loop iteration */
void http2_sweep(http_connection *connection, uint64_t now);
void http2_warn(http_connection *connection);  /* a drain begins */
void http2_drain(http_connection *connection); /* no new streams */
void http2_end(http_connection *connection);   /* every remaining `closed` */
void http2_free(http_connection *connection);
size_t http2_queued_bytes(const http_connection *connection); /* of all its streams */
uint64_t http2_sent_bytes(const http_connection *connection); /* of them, passed to the socket */
void http2_drop_queued(http_connection *connection);          /* it is ending */
http_connection *http2_exchange_connection(const http_exchange *exchange);
void http2_reply(http_exchange *exchange, int status, const http_field *fields, size_t count,
                 bay_str body);
bay_err http2_stream_open(http_exchange *exchange, int status, const http_field *fields,
                          size_t count, bool release_request);
bay_err http2_stream_write(http_exchange *exchange, bay_str bytes);
void http2_stream_end(http_exchange *exchange, const http_field *trailers, size_t count);
void http2_abort(http_exchange *exchange);

#endif
