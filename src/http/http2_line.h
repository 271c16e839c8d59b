/* Shared by the files of HTTP/2's client side: http2_client.c (lines) and http2_call.c (calls).
 * Invariants: http2_client.c. */
#ifndef HTTP_HTTP2_LINE_H
#define HTTP_HTTP2_LINE_H

#include "http/http2.h"
#include "http/http_client_internal.h"

enum {
    HTTP2_TRIES = 3,
    USELESS_MAX = 10000,       /* frames without effect, minus four for each with one … */
    USELESS_WINDOW_MS = 10000, /* … within this time */
};

struct http2_line {
    list_link link; /* in its origin's lines, or the client's dead ones */
    http_client *client;
    http_origin *origin;
    net_socket *socket; /* NULL: ended */
    nghttp2_session *session;
    http2_heap heap;
    list calls;
    list due;
    http2_call *in_head; /* whose head is being received; NULL: none */
    loop_task task;
    buf scratch;
    uint64_t written;
    uint64_t idle_since_ms;
    uint32_t call_count;
    http2_meter meter;
    bool is_connected;
    bool is_blocked;
    bool is_ending; /* it takes no more calls */
    bool is_dropped;
    bool is_failing; /* it ends when nghttp2 has returned */
    bool is_over;    /* the connection has ended, but events of it are pending */
    bool has_served;
};

/* A head or trailers, being read or to be reported. */
typedef struct http2_block {
    buf text;    /* names and values */
    buf lengths; /* theirs */
} http2_block;

struct http2_call {
    http_call *call;
    http2_line *line;  /* NULL: none, or not any more */
    list_link link;    /* of the line's calls */
    list_link turn;    /* in the line's due */
    size_t fields_end; /* in call->request; the body follows */
    size_t body_from;
    http2_block head;
    http2_block trailers;
    buf held; /* of the body, to be reported */
    uint64_t body_bytes;
    uint64_t heard_ms; /* when data came last */
    size_t excess;     /* of the body: as http1_body's */
    size_t head_bytes;
    int32_t id;
    int status;
    uint32_t failure; /* an error code of HTTP/2 */
    uint8_t tries;
    bool has_stream;
    bool has_head;
    bool is_head_due;
    bool is_over; /* the stream is closed */
    bay_err err;  /* what this side found wrong with the reply */
};

/* http2_call.c */
bay_err http2_call_submit(http2_line *line, http2_call *more) BAY_MUST_CHECK;
void http2_call_due(http2_line *line, http2_call *more);
void http2_call_send_again(http2_call *more);
void http2_call_tell(http2_call *more); /* pending events, unless the call is paused */
/* Whether the whole reply was received. */
bool http2_call_is_whole(const http2_call *more);
/* For a session of the client's side. */
void http2_client_callbacks(nghttp2_session_callbacks *callbacks);

#endif
