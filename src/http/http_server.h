/* The HTTP server: listeners, connections, exchanges. An exchange is one request and its reply. The
 * handler gets it when the whole request was read (body within its limit); it lives until its reply
 * has ended or the peer has disconnected. HTTP/1.1 and HTTP/2 are served at the same address: a TLS
 * client selects by ALPN, one in clear text by beginning with the preface of HTTP/2. http/http2.h
 * describes HTTP/2 streams.
 *
 * Exactly once: every exchange passed to `request` gets exactly one `closed`, after which it must
 * not be used. `closed` comes after the reply was passed to the kernel, or early if the peer
 * disconnected (is_complete false). `closed` and `drained` never run inside a call of this header,
 * except that http_server_free runs every remaining `closed`. A handler may do anything inside its
 * events: reply, end, abort, free the server. A peer that ends its half while an exchange waits for
 * its reply counts as disconnected (and gets 400, in case it still reads).
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
                    http_exchange *exchange); /* after http_stream_write returned BAY_ERR_AGAIN */
} http_handler;

/* Every limit of the server, with its default. */
typedef struct http_server_limits {
    size_t head_bytes;           /* 32 KiB: request line and header fields */
    uint32_t head_fields;        /* 100 */
    size_t body_bytes;           /* 16 MiB */
    size_t held_bytes;           /* 256 MiB: requests with a body in memory; 0: no limit */
    uint32_t connections;        /* 10,000 per listener */
    uint32_t connections_per_ip; /* 0: no separate limit */
    uint32_t head_timeout_ms;    /* 10,000: from first byte to end of head */
    uint32_t body_timeout_ms;    /* 30,000: a body slower than http/pace.h requires … */
    uint32_t body_total_ms;      /* 300,000: … and for all of it */
    uint32_t idle_timeout_ms;    /* 75,000: keep-alive connection without a request */
    uint32_t write_timeout_ms;   /* 60,000: a peer that reads more slowly than required */
    size_t stream_high_bytes;    /* 256 KiB queued on a stream: BAY_ERR_AGAIN */
    size_t stream_max_bytes;     /* 4 MiB queued: the connection is closed (HTTP/2: the stream) */
    size_t reply_bytes;          /* 16 MiB of replies that wait for peers: see reply_account.h */
    /* HTTP/2: per connection. */
    uint32_t streams;         /* 100 concurrently; further ones are refused */
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
    /* Called for each accepted connection. NULL: it is served. Otherwise it gets 403 with this text
     * (static), whatever it requests, and counts towards no limit. Called with `user`; NULL: all
     * are served. */
    const char *(*admit)(void *user, const net_socket *socket);
} http_server_options;

bay_err http_server_new(loop *loop, const http_server_options *options,
                        http_server **out) BAY_MUST_CHECK;
/* "127.0.0.1:8930", "[::1]:0", "localhost:8080"; port 0: any free one. May be called several times.
 */
bay_err http_server_listen(http_server *self, bay_str address, bay_diag *diag) BAY_MUST_CHECK;
uint16_t http_server_port(const http_server *self); /* of the first listener */
/* Of any, in the order of http_server_listen; 0: none. Not while it drains. */
uint16_t http_server_port_at(const http_server *self, size_t index);
uint32_t http_server_connections(const http_server *self);
bool http_server_speaks_http2(void); /* whether it is built in */

/* Drains: stops accepting, answers current requests and those of the next 100 ms with `Connection:
 * close`, then closes idle connections; `done` runs when none is left or `grace_ms` have passed
 * (the rest is then cut). */
void http_server_drain(http_server *self, uint32_t grace_ms, void (*done)(void *argument),
                       void *argument);
void http_server_free(http_server *self); /* cuts the rest; every `closed` runs first */

/* The request. All views live until `closed` (or http_stream_open with release_request). */
bay_str http_exchange_method(const http_exchange *self);
bay_str http_exchange_path(const http_exchange *self);  /* as sent, without the query */
bay_str http_exchange_query(const http_exchange *self); /* without '?' */
bay_str http_exchange_body(const http_exchange *self);
/* The first field of this name (case ignored); `at` NULL: absent. */
bay_str http_exchange_field(const http_exchange *self, bay_str name);
/* The number of fields of this name; if 0, `at` is NULL in the view above. */
size_t http_exchange_field_count(const http_exchange *self, bay_str name);
const http_field *http_exchange_fields(const http_exchange *self, size_t *out_count);
arena *http_exchange_arena(http_exchange *self);       /* freed with the exchange */
bay_str http_exchange_peer(const http_exchange *self); /* address text without port */
/* A part of the client's certificate, when TLS verified one; "" without. In the exchange's
 * arena. */
bay_str http_exchange_client_certificate(http_exchange *self, tls_certificate_part part);
loop *http_exchange_loop(const http_exchange *self);
/* An HTTP/2 stream: its reply may have trailers. Its field names are in lower case, Host has the
 * value of :authority, parts of Cookie are joined. False in a library without HTTP/2. */
bool http_exchange_is_http2(const http_exchange *self);

void http_exchange_set_user(http_exchange *self, void *user); /* the owner's pointer, one word */
void *http_exchange_user(const http_exchange *self);

/* A whole reply. Adds Content-Length, Date and, if needed, Connection. Copies nothing above 4 KiB
 * if it can write at once. The body is borrowed for the call. In HTTP/2 an empty body is one
 * HEADERS frame that ends the stream, without Content-Length. */
void http_exchange_reply(http_exchange *self, int status, const http_field *fields, size_t count,
                         bay_str body);

/* A streamed reply (chunked). With release_request the request's bytes and arena are freed now. */
bay_err http_stream_open(http_exchange *self, int status, const http_field *fields, size_t count,
                         bool release_request) BAY_MUST_CHECK;
/* Queues and sends. BAY_OK; BAY_ERR_AGAIN: accepted, but stop until `drained`; BAY_ERR_CLOSED: not
 * accepted. */
bay_err http_stream_write(http_exchange *self, bay_str bytes);
void http_stream_end(http_exchange *self);
/* The same with trailers; HTTP/1.1 drops them, as its clients need not read them. An invalid one
 * ends the exchange as http_exchange_abort does. */
void http_stream_end_with(http_exchange *self, const http_field *trailers, size_t count);
/* Ends the exchange at once: in HTTP/1.1 the connection, in HTTP/2 the stream. */
void http_exchange_abort(http_exchange *self);

#endif
