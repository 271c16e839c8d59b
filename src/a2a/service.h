/* Between those who carry A2A and those who answer: a call is one request of a peer, read, in 1.0,
 * whatever it came in. Endpoints (a2a_transport/router) make calls; an agent (a2a/agent.h), a
 * gateway's relay or a bridge is the service behind it.
 *
 * A carrier gives a call to a service by a2a_service_call, which asks the door first (call/call.h);
 * a call that waits there, or that the door refuses, never reaches the service.
 *
 * Exactly-once: every call given to `call` is ended exactly once by the service, by
 * a2a_call_result, a2a_call_fail or a2a_call_end, also after `gone`; nothing of it is touched
 * afterwards. That may happen inside `call` or later, on the same thread. */
#ifndef A2A_SERVICE_H
#define A2A_SERVICE_H

#include "a2a/event.h"
#include "auth/principal.h"
#include "call/call.h"
#include "wire/header.h"
#include "wire/via.h"

typedef struct a2a_call a2a_call;

typedef struct a2a_call_ops {
    void (*result)(a2a_call *self, bay_str json);
    bay_err (*event)(a2a_call *self, a2a_event *event);
    void (*end)(a2a_call *self);
    void (*fail)(a2a_call *self, const a2a_fault *fault);
    bay_str (*field)(a2a_call *self, bay_str name);
} a2a_call_ops;

typedef struct a2a_service a2a_service;

/* Embedded first in the carrier's own struct. */
struct a2a_call {
    const a2a_call_ops *ops;
    /* What was asked. Views live until the call is ended; those of a stream until its first event
     * was taken: from then on params are missing, texts empty and there is no memory, so that a
     * stream costs no more than itself. */
    a2a_method method;
    a2a_version version;
    a2a_binding binding;
    json_val params; /* 1.0, in normal form; never missing */
    bay_str tenant;  /* of params or path; "" */
    /* Who is calling. Borrowed by the service, and good until the call is ended, also of a stream.
     */
    const auth_principal *principal;
    bay_str extensions;     /* A2A-Extensions as sent; "" */
    bay_str traceparent;    /* W3C, checked; "" */
    uint64_t last_event_id; /* of a client that comes back to a stream; 0: none */
    arena *memory;          /* lives as long as the views */
    /* While `result` runs: what it says, read already; JSON_NONE: its text is all there is. */
    json_val answer;
    bool takes_result;    /* a stream that may as well be one result, where there are no streams */
    bool is_gone;         /* the peer has left: nothing reaches it any more */
    a2a_service *service; /* set by a2a_service_call, as is: */
    call_context context; /* its way past the door */
    /* For the service. */
    void *user;
};

struct a2a_service {
    void (*call)(a2a_service *self, a2a_call *call);
    /* The peer left before the call was ended. The service still ends it. */
    void (*gone)(a2a_service *self, a2a_call *call);
    /* After a2a_call_event said BAY_ERR_AGAIN. */
    void (*drained)(a2a_service *self, a2a_call *call);
    call_door *door;     /* what its calls pass, borrowed; NULL: none */
    call_target *target; /* what they are admitted to, borrowed; NULL: the service itself */
};

/* A carrier's way to a service. The call may have ended when this returns. */
void a2a_service_call(a2a_service *self, a2a_call *call);
/* The peer of a call given so has left. */
void a2a_service_gone(a2a_service *self, a2a_call *call);

/* The call's end for the door; for the functions below. */
void a2a_call_over(a2a_call *self, call_outcome how);

/* The answer of a method that is no stream: 1.0, in normal form. Ends the call. */
static inline void a2a_call_result(a2a_call *self, bay_str json)
{
    a2a_call_over(self, CALL_RESULT);
    self->ops->result(self, json);
}
/* The same by whoever has the value: its text is json_raw. */
static inline void a2a_call_result_val(a2a_call *self, json_val value)
{
    self->answer = value;
    a2a_call_result(self, json_raw(value));
}
/* One event of a stream; the endpoint keeps a reference while it needs it. BAY_OK; BAY_ERR_AGAIN:
 * taken, stop until `drained`; BAY_ERR_CLOSED: the peer is gone, end the call. */
static inline bay_err a2a_call_event(a2a_call *self, a2a_event *event)
{
    return self->ops->event(self, event);
}
/* The stream ends after what was sent. Ends the call. */
static inline void a2a_call_end(a2a_call *self)
{
    a2a_call_over(self, CALL_RESULT);
    self->ops->end(self);
}
/* In the error's form of binding and version; after the first event of a stream as its last event.
 * Ends the call. */
static inline void a2a_call_fail(a2a_call *self, const a2a_fault *fault)
{
    a2a_call_over(self, CALL_ERROR);
    (self->ops->fail)(self, fault); /* in brackets: cmocka has a macro of that name */
}
/* A header field (gRPC: metadata) of the request, by lower-case name; `at` NULL: there is none. */
static inline bay_str a2a_call_field(a2a_call *self, bay_str name)
{
    return self->ops->field(self, name);
}
/* Whom the call came through (RFC 9110 section 7.6.3); "": nobody said so. Lives as long as the
 * call's views. */
static inline bay_str a2a_call_via(a2a_call *self)
{
    bay_str text = a2a_call_field(self, STR("via"));
    return via_is_fine(text) ? text : (bay_str){"", 0};
}
/* What vendors say in the trace that the call belongs to; "" without one, or when it is not well
 * formed. Lives as the call's views do. Source: W3C Trace Context section 3.3. */
static inline bay_str a2a_call_tracestate(a2a_call *self)
{
    bay_str text = {"", 0};
    if (self->traceparent.len > 0) {
        text = a2a_call_field(self, STR("tracestate"));
    }
    return header_tracestate_is_valid(text) ? text : (bay_str){"", 0};
}

#endif
