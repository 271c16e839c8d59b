/* What http_server.c, http_connection.c and http_exchange.c share. Nobody else includes this.
 *
 *                 data               head and body read
 *     IDLE ----------------> HEAD --------+------------> PENDING --reply--> REPLYING
 *      ^                      | \         |                 |                 ^  |
 *      |                      |  +--> BODY+                 +--> STREAMING ---+  |
 *      |                      |                                             end  |
 *      +--------- keep-alive: the reply is with the kernel ----------------------+
 *     every state --refusal, time-out, close--> CLOSING --the socket is gone--> DEAD
 *     IDLE, HEAD --ALPN, the preface of HTTP/2--> SHARED --> CLOSING (see http/http2.h)
 *
 * Invariants
 * - A connection carries one exchange at a time, unless it is SHARED: then its own exchange is not
 *   used, each stream has one. What the peer sends meanwhile is held (one read at
 *   most) and reading stops until the exchange is over.
 * - `is_given` is true from the call of `request` to the call of `closed`; both come once.
 * - `closed` and `drained` never run inside a call of the handler's owner, except http_server_free.
 * - A reply leaves REPLYING only when its last byte is with the kernel, or gathered for the end
 * of the turn (the socket's high-water mark is one byte except while streaming), so the next
 * request starts with an empty queue.
 * - `memory` is there while the request's bytes are: not in IDLE, not in a stream that released it.
 * - Connections that ended, and a server that was freed inside a callback, are given back when the
 *   outermost entry point is left (`depth` 0). */
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
    DRAIN_LINGER_MS = 100, /* while draining: a request on its way meets no closed connection */
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

/* What one request needs while its bytes are there; recycled. `input` holds the head and, behind
 * it, the decoded body. */
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
    bool is_dispatching; /* inside `request`: the end is noticed when it returns */
    bool is_head_method;
    bool is_chunked;
    bool wants_drained;
    bool is_http2; /* then this begins an http2_stream, else it lies in an http_connection */
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

/* What a connection's peer has not read; only while there is something (http_backlog.c). */
typedef struct http_backlog {
    reply_debt debt;
    struct http_connection *connection;
    buf rest; /* HTTP/1.1: of a reply or stream, behind what the socket has */
    size_t from;
} http_backlog;

typedef struct http_connection {
    list_link link;
    http_server *server;
    http_listener *listener;
    http_address *address; /* NULL: no bound by address */
    net_socket *socket;    /* NULL: gone */
    http_exchange exchange;
    buf held; /* came while an exchange was under way */
    buf cork; /* the start of a stream, until the end of the turn */
    loop_task task;
    struct http2_connection *http2; /* NULL: HTTP/1.1 */
    http_backlog *backlog;          /* NULL: its peer has all that there is for it */
    uint64_t deadline_ms;           /* of the state; 0: none */
    uint64_t body_end_ms;
    uint64_t written; /* all bytes handed to the socket … */
    uint64_t taken;   /* … and what the peer had of them at the last sweep */
    http_state state;
    bool keep_alive;
    bool is_counted;
    bool is_overdue;     /* idle past its time, with bytes unread: these decide */
    const char *refused; /* why it is not served: over a limit, or not admitted; NULL: it is */
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
    uint32_t refused_count; /* over a limit, being told so */
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
/* When a new connection that has not begun a request ends; 0: never. */
uint64_t server_first_deadline(const http_server *self);
void server_forget(http_connection *connection); /* counts down, moves it to the dead */

/* http_connection.c */
http_connection *connection_new(http_server *server, http_listener *listener, net_socket *socket);
void connection_free(http_connection *self);
void connection_set_state(http_connection *self, http_state state);
void connection_sweep(http_connection *self, uint64_t now);
void connection_drain(http_connection *self);
/* Ends it now: `closed` runs inside. The socket is silenced. */
void connection_cut(http_connection *self);
/* Answers with a status and a sentence, then closes so that the peer can read it. */
void connection_refuse(http_connection *self, int status, const char *text);
/* The socket is gone: counts down, tells every exchange that is left. */
void connection_let_go(http_connection *self);
/* Ends it so that the peer can read what was sent. */
void connection_close_gently(http_connection *self);
/* The views of the head follow its bytes when the buffer that holds them has moved from there. */
void http_memory_rebase(http_memory *memory, const char *from);
/* May `more` bytes of a body be taken? All bodies together have a bound. */
bool server_admits(const http_server *self, uint64_t more);
/* Charges what the request holds by now. */
void http_memory_charge(http_server *server, http_memory *memory);
/* The exchange's end will be noticed at the end of the turn, or when `request` returns. */
void connection_settle_later(http_connection *self);

/* http_backlog.c */
extern const reply_book_ops connection_debts;
/* Hands up to four spans to the socket, in pieces; the rest is kept, and no limit asked. BAY_OK:
 * nothing waits; BAY_ERR_AGAIN: something does; BAY_ERR_CLOSED: the connection is lost, its
 * socket's `closed` ends the exchange. connection_account is due afterwards, unless it was
 * BAY_OK. */
bay_err connection_send(http_connection *self, const bay_str *spans, size_t count);
/* The next pieces, once the socket has drained. The same results. */
bay_err connection_send_rest(http_connection *self);
size_t connection_rest_bytes(const http_connection *self);
/* Enters what waits for the peer in the account of the process, which may end this connection or
 * others. False: this one is ending. */
bool connection_account(http_connection *self);
void connection_free_backlog(http_connection *self);
/* Of `sent` bytes that were handed to the socket so far, what its peer has acknowledged since
 * `taken` was noted; notes it anew. */
uint64_t connection_moved(const http_connection *self, uint64_t sent, uint64_t *taken);

/* http_exchange.c */
http_connection *exchange_connection(const http_exchange *self);
void exchange_release_memory(http_exchange *self);
void exchange_flush(http_exchange *self); /* sends what is corked */
/* Writes a head into server->head; falls back to nothing (false) on a field nobody may send. */
bay_err exchange_write_head(http_connection *connection, int status, const http_field *fields,
                            size_t count, int64_t content_length, bool is_chunked, bool will_close);

/* Is it a field that says how the message is framed, and so ours to write? */
bool exchange_field_is_ours(bay_str name);

/* HTTP/2 (http2_server.c; http2_server_none.c in a build without it). */
extern const bool http2_is_built;
/* Do the bytes begin with the preface of HTTP/2? BAY_ERR_AGAIN: as far as they go;
 * BAY_ERR_NOT_FOUND. */
bay_err http2_preface(bay_str bytes);
/* Takes over a connection; `bytes` are what came so far. */
void http2_begin(http_connection *connection, bay_str bytes);
void http2_turn(http_connection *connection); /* the end of the loop's turn */
void http2_sweep(http_connection *connection, uint64_t now);
void http2_warn(http_connection *connection);  /* a drain begins */
void http2_drain(http_connection *connection); /* no new streams */
void http2_end(http_connection *connection);   /* every `closed` that is left */
void http2_free(http_connection *connection);
size_t http2_queued_bytes(const http_connection *connection); /* of all its streams */
uint64_t http2_sent_bytes(const http_connection *connection); /* of them, to the socket so far */
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
