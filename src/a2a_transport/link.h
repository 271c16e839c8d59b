/* A link to an agent: sends calls to one interface of its card over HTTP, in the interface's
 * binding and version, and returns 1.0. Interrupted streams are resumed: by Last-Event-ID if events
 * had ids, otherwise by SubscribeToTask; no event is reported twice. */
#ifndef A2A_TRANSPORT_LINK_H
#define A2A_TRANSPORT_LINK_H

#include "a2a/outbound.h"
#include "http/http_client.h"

typedef struct a2a_link a2a_link;
typedef struct a2a_link_call a2a_link_call;

typedef struct a2a_link_limits {
    size_t answer_bytes;     /* 32 MiB of one answer or event */
    uint32_t timeout_ms;     /* 600,000 until the answer's end, or a stream's first event */
    uint32_t idle_ms;        /* 90,000 between two bytes of a stream; then it is interrupted */
    uint32_t resumes;        /* 8 in a row without an event between them */
    uint32_t first_delay_ms; /* 500 before the first, doubled up to 10,000 */
} a2a_link_limits;

extern const a2a_link_limits a2a_link_default_limits;

/* A call ends exactly once, by `result` (no stream), `end` (a stream that ended normally) or
 * `failed`, unless a2a_link_cancel ended it. No event runs inside a function of this header. */
typedef struct a2a_link_events {
    void (*result)(void *user, json_val result); /* 1.0; valid during the callback */
    /* A StreamResponse (1.0, normal form), as a value; valid during the callback. */
    void (*event)(void *user, json_val event, uint64_t event_id, bool is_last);
    void (*end)(void *user);
    /* `was_sent`: the agent may have executed it. A fault of the agent: err BAY_ERR_REMOTE. */
    void (*failed)(void *user, bay_err err, const a2a_fault *fault, bool was_sent);
} a2a_link_events;

/* The agent's own URL, given that of its card: without the well-known path. */
bay_str a2a_agent_url(bay_str card_url);

/* `http` and `at` (copied) as given; `http` outlives the link. */
bay_err a2a_link_new(loop *loop, http_client *http, const a2a_interface *at,
                     const a2a_link_limits *limits, a2a_link **out) BAY_MUST_CHECK;
void a2a_link_free(a2a_link *self); /* open calls fail with BAY_ERR_CANCELLED first */
const a2a_interface *a2a_link_interface(const a2a_link *self);

typedef struct a2a_link_request {
    a2a_method method;
    json_val params;          /* 1.0, normal form; its tenant is not sent, the interface's is */
    const http_field *fields; /* further header fields: credentials, traceparent, A2A-Extensions */
    size_t field_count;
    /* Of each attempt; NULL: none. It outlives the call. While it waits, the call's time does not
     * run, but over gRPC. */
    http_authority *authority;
    uint64_t last_event_id; /* for SubscribeToTask; 0: none */
    /* The agent has no streams: a stream is replaced by SendMessage and polling of the task. (An
     * agent that refuses streams although its card has them is treated likewise.) */
    bool has_no_stream;
} a2a_link_request;

/* Copies the request. Errors: BAY_ERR_UNSUPPORTED (the version has no such method; see `fault`),
 * BAY_ERR_BUSY, BAY_ERR_NOMEM, BAY_ERR_INVALID. */
bay_err a2a_link_start(a2a_link *self, const a2a_link_request *request,
                       const a2a_link_events *events, void *user, a2a_link_call **out,
                       a2a_fault *fault) BAY_MUST_CHECK;
void a2a_link_cancel(a2a_link_call *call); /* ends it without an event */
void a2a_link_pause(a2a_link_call *call);  /* no more events until resumed */
void a2a_link_resume(a2a_link_call *call);

#endif
