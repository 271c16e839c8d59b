/* The HTTP client: pools of connections per origin on one loop. A call is one request and its
 * reply; it ends exactly once, by `end` or by `failed`, unless http_call_cancel ended it first;
 * then its handle is invalid. No event runs inside http_client_call, http_call_cancel, _pause or
 * _resume; an event may do anything: begin calls, cancel, pause, free the client. Members that are
 * NULL are skipped. */
#ifndef HTTP_HTTP_CLIENT_H
#define HTTP_HTTP_CLIENT_H

#include "base/list.h"
#include "http/http_server.h" /* http_field */
#include "net/loop.h"
#include "net/socket.h" /* socket_permit */
#include "net/tls.h"

typedef struct http_client http_client;
typedef struct http_call http_call;

typedef struct http_client_limits {
    uint32_t connections_per_origin; /* 256; further calls queue */
    uint32_t queue_per_origin;       /* 10,000; beyond: BAY_ERR_BUSY */
    uint32_t idle_timeout_ms; /* 4,000, less than servers use: pooled connection without a call */
    uint32_t connect_timeout_ms; /* 10,000: DNS, TCP and TLS together */
    uint32_t head_timeout_ms;    /* 10,000: of a reply's head, from its first byte on; 0: none */
    /* 60,000: a reply's body slower than http/pace.h requires; 0: none. A call's idle_ms has
     * precedence. */
    uint32_t body_timeout_ms;
    size_t head_bytes;    /* 64 KiB */
    uint32_t head_fields; /* 200 */
    size_t body_bytes;    /* 0: no limit, the receiver limits it */
    /* 0: not counted. Bodies of more than REPLY_ROOM_SMALL wait at their source while the account
     * of the process is above this (net/reply_room.h). */
    size_t reply_bytes;
    uint32_t framing_rest_ms; /* 1,000 of silence: then a reply's excess of framing is reset */
    /* HTTP/2: a further connection of one origin is opened when each existing one carries this many
     * calls, or as many as its peer allows. */
    uint32_t streams_per_connection; /* 100 */
    uint32_t http2_connections;      /* 4 per origin; further calls queue */
} http_client_limits;

extern const http_client_limits http_client_default_limits;

/* Proves to an origin who sends a request, where that is not settled once for all (OAuth): each
 * attempt of a call gets fields of its own, and a reply that refuses them may lead to another
 * attempt. While the authority waits for them (for a token endpoint, or a person), nothing is sent
 * and no time-out of the call runs. HTTP/2: replies are not looked at. */
typedef struct http_authority http_authority;

enum { HTTP_AUTHORITY_FIELDS = 2, HTTP_ATTEMPTS = 12 /* of one call */ };

/* The authority's part of a call. */
typedef struct http_grant {
    list_link link;
    uint64_t state[3]; /* 0 at first */
} http_grant;

typedef enum http_verdict {
    HTTP_PASS,   /* the reply is the call's */
    HTTP_AGAIN,  /* another attempt, once there are fields for it */
    HTTP_REFUSE, /* the call fails with BAY_ERR_DENIED and the authority's text */
} http_verdict;

struct http_authority {
    /* Adds at most HTTP_AUTHORITY_FIELDS fields, whose views live until the authority is called
     * next. BAY_ERR_AGAIN: not yet; http_call_authorized or _refused follows, in a later turn,
     * unless `left` ended it. Else the call fails with `diag`. */
    bay_err (*fields)(http_authority *self, http_call *call, http_grant *grant, bay_str method,
                      bay_str url, http_field *out, size_t *out_count, bay_diag *diag);
    /* The head of the reply to the last attempt. */
    http_verdict (*replied)(http_authority *self, http_grant *grant, int status,
                            const http_field *fields, size_t count, bay_diag *diag);
    /* The call that waits for fields is over. */
    void (*left)(http_authority *self, http_grant *grant);
    size_t holders; /* who may still begin a call with it */
};

/* For an authority that its owner frees before those who make calls with it: not while it is held.
 * NULL is fine. */
static inline http_authority *http_authority_hold(http_authority *self)
{
    if (self != NULL) {
        self->holders++;
    }
    return self;
}
static inline void http_authority_release(http_authority *self)
{
    if (self != NULL) {
        self->holders--;
    }
}

typedef struct http_client_options {
    http_client_limits limits;
    tls_context *tls; /* for https; NULL: system trust store; borrowed */
    /* Which addresses may be connected to (net/address); NULL: all. A call without a permitted
     * address fails with BAY_ERR_DENIED. Redirects are never followed: a reply of 3xx is a reply.
     */
    socket_permit permit;
    void *permit_user;
} http_client_options;

typedef struct http_call_events {
    /* Status and fields of the reply; views are valid during the call only. */
    void (*head)(void *user, int status, const http_field *fields, size_t count);
    /* The next bytes of the body; borrowed for the call. */
    void (*body)(void *user, bay_str bytes);
    void (*end)(void *user);
    /* was_sent: bytes of the request may have reached the peer (so a retry may execute it twice).
     */
    void (*failed)(void *user, bay_err err, bool was_sent, const char *text);
    /* HTTP/2: the fields after the body, before `end`; views are valid during the call only. A
     * reply that is only a head has none: they are its fields. */
    void (*trailers)(void *user, const http_field *fields, size_t count);
    /* With an authority: the call begins, or ends, to wait for fields. */
    void (*waits)(void *user, bool is_waiting);
} http_call_events;

typedef struct http_call_spec {
    bay_str method;
    bay_str url;             /* http:// or https://; fragments are not sent */
    const struct uri *parts; /* of `url`, if the caller has them; NULL: it is parsed */
    const http_field *fields;
    size_t field_count;
    bay_str body;       /* copied only if the kernel does not take all of it at once */
    bool may_run_twice; /* a POST may be sent again although it may have been executed */
    bool has_body;      /* send Content-Length even when it is empty */
    /* HTTP/2: by ALPN on https, by prior knowledge on http. If the peer does not support it, the
     * call fails without a fallback. BAY_ERR_UNSUPPORTED in a library without HTTP/2. */
    bool is_http2;
    uint32_t timeout_ms; /* until the reply's head; 0: none */
    /* Of an event stream or a gRPC reply: the time between two reads of the body; 0: none. Of
     * others: the credit of http/pace.h for the body; 0: body_timeout_ms of the limits, or
     * timeout_ms if that is longer. */
    uint32_t idle_ms;
    http_authority *authority; /* NULL: none; outlives the call. The request is kept for it. */
} http_call_spec;

bay_err http_client_new(loop *loop, const http_client_options *options,
                        http_client **out) BAY_MUST_CHECK;
void http_client_free(http_client *self); /* every open call fails with BAY_ERR_CANCELLED first */

loop *http_client_loop(const http_client *self);

/* Nothing of `events` but `waits` runs before this returns. A request on a pooled connection that
 * the peer closed before any byte of a reply came is sent once more on a fresh one, if its method
 * is safe (RFC 9110 section 9.2.2) or the spec says that it may run twice: the peer may have
 * executed it.
 */
bay_err http_client_call(http_client *self, const http_call_spec *spec,
                         const http_call_events *events, void *user, http_call **out,
                         bay_diag *diag) BAY_MUST_CHECK;
/* From the authority, about a call that waits: it is to ask for the fields now, or the call
 * fails. */
void http_call_authorized(http_call *self);
void http_call_refused(http_call *self, bay_err err, const char *text);
/* Ends it without an event; its connection is closed unless the reply was complete. */
void http_call_cancel(http_call *self);
void http_call_pause(http_call *self); /* no more `body` until resumed: back-pressure on the peer */
void http_call_resume(http_call *self);
/* The bytes of an event stream that its owner holds undecoded: like a body's bytes, they are
 * accounted. Of other replies all received bytes are counted. */
void http_call_keep(http_call *self, size_t bytes);

#endif
