/* HTTP/2 by nghttp2: shared parts of server and client, and the server's connection. Only files of
 * this module include it; a build without HTTP/2 omits the files that do.
 *
 * A stream, for the server, is an ordinary http_exchange:
 *
 *     HEAD --> BODY --> PENDING --reply--------------------------> REPLYING --> DEAD
 *                          +-----> STREAMING --end, with trailers -----^
 *     every state --reset, abort, time-out, the connection's end--> DEAD
 *
 * Invariants
 * - nghttp2's callbacks only note what happened: a stream joins `ready` (to be handed over), `over`
 *   (`closed` is due) or `thirsty` (`drained` is due). The owner of the handler is called between
 *   two calls of nghttp2, never inside one, so it may do anything, also free the server.
 * - Calls of the handler's owner only queue; nghttp2 writes at the end of the loop iteration, or
 *   when the input has been processed: one write to the socket for all streams.
 * - While the socket's queue is above its mark, nothing more is taken from nghttp2 and nothing is
 *   read: a peer that does not read gets no answers and is disconnected after write_timeout_ms.
 * - A request that is reset in the same read in which it arrived never reaches the handler.
 * - nghttp2 is not called for a session in which an allocation has failed.
 * - nghttp2 enforces flow control; what a stream may not send yet waits in its own `out`, bounded
 *   like the queue of an HTTP/1.1 stream. While more than HTTP2_AHEAD_BYTES of a connection wait,
 *   its requests stay in `ready`. A reply beyond HTTP2_QUEUED_BYTES ends its stream, unless the
 *   peer reads: then, as for all connections together, http/reply_account.h decides which one ends.
 * - A peer that is silent while streams are open gets a PING after a third of write_timeout_ms and
 *   is disconnected if it does not answer in time, so that a long silent stream neither outlives
 *   its peer nor looks dead to intermediaries.
 * - Frames that change nothing and streams that ended early are counted against useful ones: too
 *   many of them end the connection by GOAWAY with ENHANCE_YOUR_CALM.
 * Source: RFC 9113; CVE-2023-44487, CVE-2024-28182, CVE-2025-8671 (known floods). */
#ifndef HTTP_HTTP2_H
#define HTTP_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "http/http_internal.h"

enum {
    HTTP2_HIGH_BYTES = 128 * 1024,         /* in the socket, before more is taken from nghttp2 */
    HTTP2_AHEAD_BYTES = 4 * 1024 * 1024,   /* queued of a connection: its requests wait … */
    HTTP2_QUEUED_BYTES = 16 * 1024 * 1024, /* … and beyond this its streams end */
    HTTP2_SHUT_REQUESTS = 4,               /* concurrent, of a peer whose windows take no reply */
    HTTP2_NARROW_BYTES = 16 * 1024,   /* of a window: its requests wait while much else waits */
    HTTP2_LARGE_BYTES = 16 * 1024,    /* of a reply that is accounted at once */
    HTTP2_WINDOW = 1024 * 1024,       /* what a peer may send ahead, per connection … */
    HTTP2_STREAM_WINDOW = 256 * 1024, /* … and of one stream */
    HTTP2_HEAD_TIMES = 4,          /* a head longer than its limit times this ends the connection */
    HTTP2_TRAILERS = 64,           /* fields after a reply */
    HTTP2_BATCH_BYTES = 64 * 1024, /* written to the socket at once, and a frame more */
    HTTP2_FRAME_HEAD = 9,
    HTTP2_EARNED = 4,           /* frames without effect that one with an effect makes up for */
    HTTP2_DEFLATE_BYTES = 1024, /* of our fields in a connection's compression table */
    HTTP2_SPARE = 8,            /* streams of a connection, kept for reuse while it is busy … */
    HTTP2_SPARE_BYTES = 4096,   /* … with as much of their buffers, each */
};

/* --- for both sides (http2.c) ----------------------------------------------------------------- */

/* The allocations of one session of nghttp2. After a failed allocation the session is not used any
 * more, not even for its own end: nghttp2 is not called for it, and its memory is freed block by
 * block. */
typedef struct http2_heap {
    nghttp2_mem mem; /* for nghttp2 */
    list blocks;
    bool has_failed;
} http2_heap;

void http2_heap_init(http2_heap *self);
/* Ends the session, if any, and frees the rest of its memory. */
void http2_heap_fini(http2_heap *self, nghttp2_session *session);

/* Header fields for nghttp2, which copies them and writes names in lower case. */
typedef struct http2_fields {
    buf values; /* an array of nghttp2_nv */
} http2_fields;

void http2_fields_init(http2_fields *self);
void http2_fields_fini(http2_fields *self);
void http2_fields_clear(http2_fields *self);
/* Unchecked: names and values of this library. Errors stick. */
void http2_fields_add(http2_fields *self, bay_str name, bay_str value);
/* Checked; HTTP/1.1's own fields are omitted. Errors: BAY_ERR_INVALID, BAY_ERR_NOMEM. */
bay_err http2_fields_add_all(http2_fields *self, const http_field *fields,
                             size_t count) BAY_MUST_CHECK;
const nghttp2_nv *http2_fields_at(const http2_fields *self);
size_t http2_fields_count(const http2_fields *self);

/* Passes the session's output to the socket, as far as the socket takes it. BAY_OK: all of it;
 * BAY_ERR_AGAIN: the socket is full, continue when it is drained; otherwise the connection is lost.
 * `scratch` is emptied. */
bay_err http2_pump(nghttp2_session *session, net_socket *socket, buf *scratch,
                   uint64_t *written) BAY_MUST_CHECK;

/* Counts a peer's frames, also those that nghttp2 drops silently: of an unknown type, or of a
 * closed stream. Each frame adds 1 to `useless` (RST_STREAM: to `resets`); http2_meter_earn is
 * called for useful ones. The owner compares the counts with its limits after nghttp2 has read the
 * same bytes. */
typedef struct http2_meter {
    uint64_t window_end_ms; /* when both counts start again */
    uint32_t useless;
    uint32_t resets;
    uint32_t skip;   /* bytes until the next frame's head … */
    uint8_t head[9]; /* … the received part of it */
    uint8_t have;
    bool is_broken; /* a frame that nghttp2 accepts and RFC 9113 does not */
} http2_meter;

/* `is_server`: the peer begins with the preface of RFC 9113 section 3.4. */
void http2_meter_init(http2_meter *self, bool is_server);
void http2_meter_read(http2_meter *self, bay_str bytes, uint64_t now, uint32_t window_ms);
/* A frame with an effect was received, or one of ours was sent. */
void http2_meter_earn(http2_meter *self);
/* A DATA frame of a body that is read: earns by its size, and adds the bytes by which its framing
 * (head and padding) exceeds its data to the body's `excess`. */
void http2_meter_data(http2_meter *self, const nghttp2_frame *frame, size_t *excess);

/* Writes a GOAWAY frame without nghttp2, after whole frames: for a session that failed. */
void http2_write_goaway(net_socket *socket, int32_t last_stream, uint32_t code);
/* The error code for a peer after this failure of nghttp2. */
uint32_t http2_code_of(int failure);

/* --- the server's side ------------------------------------------------------------------------ */

typedef struct http2_connection {
    nghttp2_session *session;
    http2_heap heap;
    http_connection *connection;
    list streams;
    list ready;
    list over;
    list thirsty;
    list gone;  /* streams whose memory is freed when no function uses them any more … */
    list spare; /* … or is reused: at most HTTP2_SPARE */
    uint32_t spare_count;
    uint32_t pending; /* requests with the handler that have no reply yet */
    http2_fields fields;
    size_t queued;         /* of all streams */
    uint64_t sent;         /* of their bytes, passed to the socket so far … */
    uint64_t taken;        /* … of which the peer had received these at the last sweep */
    uint64_t head_end_ms;  /* 0: no head is being received */
    uint64_t stall_end_ms; /* 0: the socket's queue is empty */
    uint64_t heard_ms;     /* when the peer last sent anything */
    http2_meter meter;
    bool is_open;    /* the peer's first SETTINGS came */
    bool is_blocked; /* the socket is full */
    bool is_failing; /* it ends with `code` when nghttp2 has returned */
    bool is_ending;  /* GOAWAY is queued or sent */
    bool is_asked;   /* a PING is open */
    uint32_t code;
} http2_connection;

typedef struct http2_stream {
    http_exchange exchange; /* first */
    http_connection *connection;
    list_link link; /* of all streams */
    list_link turn; /* in ready, over, thirsty or gone */
    http2_fields trailers;
    buf trailer_bytes;
    buf out;
    size_t out_from;
    size_t excess;        /* of the body: as http1_body's */
    size_t head_bytes;    /* of the fields so far, counted as in RFC 9113 section 6.5.2 */
    size_t moved;         /* of `out`, since the last sweep … */
    uint64_t sent_at;     /* … and how much the connection had sent at that time */
    uint64_t deadline_ms; /* of reading the body, or of sending; 0: none */
    uint64_t body_end_ms;
    const char *refusal; /* the reason for refusing the request; NULL: not refused */
    int32_t id;
    uint16_t refused; /* … and with which status */
    uint8_t state;    /* http_state */
    bool is_whole;    /* the request */
    bool is_ended;    /* nothing more is added to `out` */
    bool is_bare;     /* written output is not sent: HEAD, 204, 304 */
    bool is_gone;     /* nghttp2 has closed it */
} http2_stream;

/* http2_server.c */
http2_stream *http2_stream_new(http2_connection *http2, int32_t id);
uint64_t http2_now(const http2_connection *self);

/* http2_request.c: callbacks of nghttp2 that read a request. */
int http2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                    void *user);
int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at,
                  size_t len, void *user);
/* A HEADERS or DATA frame is complete. */
void http2_request_frame(http2_connection *self, const nghttp2_frame *frame);
/* Answers for the handler, which never gets the request. */
void http2_refuse(http2_stream *self, int status, const char *text);

/* http2_reply.c */
/* nghttp2 sends a DATA frame: its bytes go from the stream's queue to the output without nghttp2's
 * own buffer, which would keep that size as long as the connection. */
int http2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                       size_t len, nghttp2_data_source *source, void *user);
void http2_stream_set_state(http2_stream *self, http_state state);
/* Ends it early: the peer is notified, `closed` follows. */
void http2_stream_reset(http2_stream *self, uint32_t code);

#endif
