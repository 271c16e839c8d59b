/* The interface between A2A carriers and services: a call is one parsed request of a peer, in 1.0,
 * whatever form it came in. Carriers (a2a_transport/router) make calls; an agent (a2a/agent.h), a
 * gateway's proxy or a bridge is the service behind them.
 *
 * A carrier passes a call to a service by a2a_service_call, which calls the door first
 * (call/call.h); a call that waits there, or that the door refuses, does not reach the service.
 *
 * Exactly once: the service ends every call that `call` gets exactly once, by a2a_call_result,
 * a2a_call_fail or a2a_call_end, also after `gone`, and does not use it afterwards. That may happen
 * inside `call` or later, on the same thread. */
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

/* The first member of the carrier's own struct. */
struct a2a_call {
    const a2a_call_ops *ops;
    /* The request. Views live until the call is ended; those of a stream until its first event was
     * sent: from then on params are missing, texts are empty and there is no memory, so that an
     * open stream needs little memory. */
    a2a_method method;
    a2a_version version;
    a2a_binding binding;
    json_val params; /* 1.0, in normal form; never missing */
    bay_str tenant;  /* of params or path; "" */
    /* The caller. Borrowed by the service, valid until the call is ended, also for streams. */
    const auth_principal *principal;
    const policy_origin *origin; /* what rules read of where it comes from; NULL: unknown */
    bay_str extensions;          /* A2A-Extensions as sent; "" */
    bay_str traceparent;         /* W3C, checked; "" */
    uint64_t last_event_id;      /* of a client that resumes a stream; 0: none */
    arena *memory;               /* lives as long as the views */
    /* While `result` runs: its value; JSON_NONE: only its text is known. */
    json_val answer;
    bool takes_result;    /* a stream that one result may replace, where there are no streams */
    bool is_gone;         /* the peer has disconnected: nothing reaches it any more */
    a2a_service *service; /* set by a2a_service_call, as is: */
    call_context context; /* its call at the door */
    /* For the service. */
    void *user;
};

struct a2a_service {
    void (*call)(a2a_service *self, a2a_call *call);
    /* The peer has disconnected before the end. The service still ends the call. */
    void (*gone)(a2a_service *self, a2a_call *call);
    /* After a2a_call_event returned BAY_ERR_AGAIN. */
    void (*drained)(a2a_service *self, a2a_call *call);
    call_door *door;     /* the door of its calls, borrowed; NULL: none */
    call_target *target; /* the target of its calls, borrowed; NULL: the service itself */
};

/* Passes a call to a service. The call may have ended when this returns. */
void a2a_service_call(a2a_service *self, a2a_call *call);
/* The peer of a call passed so has disconnected. */
void a2a_service_gone(a2a_service *self, a2a_call *call);

/* Ends the call at the door; for the functions below. */
void a2a_call_over(a2a_call *self, call_outcome how);

/* The answer of a method without a stream: 1.0, in normal form. Ends the call. */
static inline void a2a_call_result(a2a_call *self, bay_str json)
{
    a2a_call_over(self, CALL_RESULT);
    self->ops->result(self, json);
}
/* The same for callers that have the value: its text is json_raw. */
static inline void a2a_call_result_val(a2a_call *self, json_val value)
{
    self->answer = value;
    a2a_call_result(self, json_raw(value));
}
/* One event of a stream; the carrier keeps a reference while it needs it. BAY_OK; BAY_ERR_AGAIN:
 * sent, stop until `drained`; BAY_ERR_CLOSED: the peer has disconnected, end the call. */
static inline bay_err a2a_call_event(a2a_call *self, a2a_event *event)
{
    return self->ops->event(self, event);
}
/* The stream ends after the events sent so far. Ends the call. */
static inline void a2a_call_end(a2a_call *self)
{
    a2a_call_over(self, CALL_RESULT);
    self->ops->end(self);
}
/* Fails in the form of binding and version; after the first event of a stream as its last event.
 * Ends the call. */
static inline void a2a_call_fail(a2a_call *self, const a2a_fault *fault)
{
    a2a_call_over(self, CALL_ERROR);
    (self->ops->fail)(self, fault); /* in brackets: cmocka has a macro of that name */
}
/* A header field (gRPC: metadata) of the request, by lower-case name; `at` NULL: absent. */
static inline bay_str a2a_call_field(a2a_call *self, bay_str name)
{
    return self->ops->field(self, name);
}
/* The gateways a call came through (RFC 9110 section 7.6.3); "": none. Lives as long as the call's
 * views. */
static inline bay_str a2a_call_via(a2a_call *self)
{
    bay_str text = a2a_call_field(self, STR("via"));
    return via_is_fine(text) ? text : (bay_str){"", 0};
}
/* The call's tracestate; "" without a trace, or if it is not valid. Lives as long as the call's
 * views. Source: W3C Trace Context section 3.3. */
static inline bay_str a2a_call_tracestate(a2a_call *self)
{
    bay_str text = {"", 0};
    if (self->traceparent.len > 0) {
        text = a2a_call_field(self, STR("tracestate"));
    }
    return header_tracestate_is_valid(text) ? text : (bay_str){"", 0};
}

#endif
