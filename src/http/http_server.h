/* The HTTP server: listeners, connections, exchanges. An exchange is one request and its reply; it
 * is handed over when the whole request is read (body within its bound) and lives until its reply
 * has ended or the peer is gone. HTTP/1.1 and HTTP/2 are served at the same address: a TLS client
 * chooses by ALPN, one in clear text by beginning with the preface of HTTP/2. What a stream of
 * HTTP/2 is and does differently is in http/http2.h.
 *
 * Exactly-once: every exchange given to `request` gets exactly one `closed`, after which it must
 * not be touched. `closed` comes after the reply was handed to the kernel, or early when the peer
 * went away (is_complete false). `closed` and `drained` never run inside a call of this header,
 * except that http_server_free runs every `closed` that is left. A handler may do anything inside
 * its events: reply, end, abort, free the server. A peer that ends its half while an exchange waits
 * for its reply counts as gone (and is answered 400, in case it still reads).
 *
 * Memory: an idle connection and an idle stream hold no read buffer and no arena beyond a small
 * struct; the request's body and arena are freed by http_stream_open on request (release_request).
 */
#ifndef HTTP_HTTP_SERVER_H
#define HTTP_HTTP_SERVER_H

#include "net/loop.h"
#include "net/socket.h"
#include "net/tls.h"
#include "wire/field.h" /* http_field */

typedef struct http_server http_server;
typedef struct http_exchange http_exchange;

typedef struct http_handler {
    void (*request)(void *user, http_exchange *exchange);
    void (*closed)(void *user, http_exchange *exchange, bool is_complete);
    void (*drained)(void *user,
                    http_exchange *exchange); /* after http_stream_write said BAY_ERR_AGAIN */
} http_handler;

/* Every bound of the server, with its default. */
typedef struct http_server_limits {
    size_t head_bytes;    /* 32 KiB: request line and header fields */
    uint32_t head_fields; /* 100 */
    size_t body_bytes;    /* 16 MiB */
    size_t held_bytes;    /* 256 MiB: requests with a body whose bytes are still there; 0: free */
    uint32_t connections; /* 10,000 per listener */
    uint32_t connections_per_ip; /* 0: no bound of its own */
    uint32_t head_timeout_ms;    /* 10,000: from first byte to end of head */
    uint32_t body_timeout_ms;    /* 30,000: a body slower than http/pace.h asks for … */
    uint32_t body_total_ms;      /* 300,000: … and for the whole of it */
    uint32_t idle_timeout_ms;    /* 75,000: keep-alive connection without a request */
    uint32_t write_timeout_ms;   /* 60,000: a peer that reads more slowly what we have for it */
    size_t stream_high_bytes;    /* 256 KiB queued on a stream: BAY_ERR_AGAIN */
    size_t stream_max_bytes;     /* 4 MiB queued: the connection is closed (HTTP/2: the stream) */
    size_t reply_bytes;          /* 16 MiB of replies that wait for peers, of all servers of the
                                  * process: whoever has read nothing for longest ends; 0: this */
    /* HTTP/2: of one connection. */
    uint32_t streams;         /* 100 at one time; further ones are refused */
    uint32_t resets;          /* 200 streams that the peer ended early, … */
    uint32_t control_frames;  /* 1,000 SETTINGS, PING, PRIORITY and empty frames … */
    uint32_t flood_window_ms; /* … within 10,000: the connection ends, ENHANCE_YOUR_CALM */
} http_server_limits;

extern const http_server_limits http_server_default_limits;

typedef struct http_server_options {
    http_server_limits limits;
    const http_handler *handler;
    void *user;
    tls_context *tls;   /* NULL: clear text; borrowed */
    bool reuse_port;    /* several loops listen on one address */
    bool is_local_only; /* as socket_listener_options */
    /* Looks at each connection when it is accepted. NULL: it is served. Else it gets 403 with that
     * text (static), whatever it asks for, and counts for none of the limits. Called with `user`;
     * NULL: all are served. */
    const char *(*admit)(void *user, const net_socket *socket);
} http_server_options;

bay_err http_server_new(loop *loop, const http_server_options *options,
                        http_server **out) BAY_MUST_CHECK;
/* "127.0.0.1:8930", "[::1]:0", "localhost:8080"; port 0 takes a free one. More than one is fine. */
bay_err http_server_listen(http_server *self, bay_str address, bay_diag *diag) BAY_MUST_CHECK;
uint16_t http_server_port(const http_server *self); /* of the first listener */
/* Of any, in the order of http_server_listen; 0: there is none. Not while it drains. */
uint16_t http_server_port_at(const http_server *self, size_t index);
uint32_t http_server_connections(const http_server *self);
bool http_server_speaks_http2(void); /* was it built in? */

/* Drain: stop accepting, answer what is under way and what comes within a tenth of a second with
 * `Connection: close`, then close idle connections; `done` once none is left or `grace_ms` have
 * passed (the rest is then cut). */
void http_server_drain(http_server *self, uint32_t grace_ms, void (*done)(void *argument),
                       void *argument);
void http_server_free(http_server *self); /* cuts what is left; every `closed` runs first */

/* The request. All views live until `closed` (or http_stream_open with release_request). */
bay_str http_exchange_method(const http_exchange *self);
bay_str http_exchange_path(const http_exchange *self);  /* as sent, without the query */
bay_str http_exchange_query(const http_exchange *self); /* without '?' */
bay_str http_exchange_body(const http_exchange *self);
/* The first field of that name (any case), `at` NULL when absent. */
bay_str http_exchange_field(const http_exchange *self, bay_str name);
/* How often the field stands there; `at` is NULL in the view above when 0. */
size_t http_exchange_field_count(const http_exchange *self, bay_str name);
const http_field *http_exchange_fields(const http_exchange *self, size_t *out_count);
arena *http_exchange_arena(http_exchange *self);       /* freed with the exchange */
bay_str http_exchange_peer(const http_exchange *self); /* address text without port */
/* A part of the client's certificate, when TLS verified one; "" without. In the exchange's
 * arena. */
bay_str http_exchange_client_certificate(http_exchange *self, tls_certificate_part part);
loop *http_exchange_loop(const http_exchange *self);
/* A stream of HTTP/2: its reply may have trailers. Its field names are in lower case, Host is what
 * :authority said, crumbs of Cookie are joined. False in a library without HTTP/2. */
bool http_exchange_is_http2(const http_exchange *self);

void http_exchange_set_user(http_exchange *self, void *user); /* the owner's pointer, one word */
void *http_exchange_user(const http_exchange *self);

/* A whole reply. Adds Content-Length, Date and, where it applies, Connection. Copies nothing above
 * 4 KiB when it can write at once. The body is borrowed for the call. In HTTP/2 an empty body is
 * one HEADERS frame that ends the stream, without Content-Length. */
void http_exchange_reply(http_exchange *self, int status, const http_field *fields, size_t count,
                         bay_str body);

/* A streamed reply (chunked). With release_request the request's bytes and arena are freed now. */
bay_err http_stream_open(http_exchange *self, int status, const http_field *fields, size_t count,
                         bool release_request) BAY_MUST_CHECK;
/* Queues and sends. BAY_OK; BAY_ERR_AGAIN: taken, but stop until `drained`; BAY_ERR_CLOSED: not
 * taken. */
bay_err http_stream_write(http_exchange *self, bay_str bytes);
void http_stream_end(http_exchange *self);
/* The same with trailers, in HTTP/1.1 without them (they are dropped: nobody has to read them
 * there). One that nobody may send ends the exchange as if it were aborted. */
void http_stream_end_with(http_exchange *self, const http_field *trailers, size_t count);
/* Ends the exchange at once (both forms): in HTTP/1.1 the connection, in HTTP/2 the stream. */
void http_exchange_abort(http_exchange *self);

#endif
