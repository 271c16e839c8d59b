/* Shared by the files of a link to an agent.
 *
 *   link.c                the link, and the owner's functions
 *   link_attempt.c        one attempt: an HTTP exchange (or a gRPC one), until its answer or events
 *   link_retry.c          after an attempt: report, resume, end
 *   link_stream_state.c   what a stream has reported so far
 *
 *   ASKING ──answer──► OVER (result, failed)
 *     │ ▲
 *     │ └──────────────┐
 *     └─head─► STREAMING ──cut──► RESTING ──its time──► ASKING (SubscribeToTask or GetTask)
 *                  └──end, error──► OVER
 *
 * Invariants: an attempt is under way in ASKING and STREAMING only, and only one; a call ends once;
 * a dropped call stays in memory until nothing of the link is on the stack. */
#ifndef A2A_TRANSPORT_LINK_INTERNAL_H
#define A2A_TRANSPORT_LINK_INTERNAL_H

#include "a2a_transport/grpc_link.h"
#include "a2a_transport/link.h"
#include "a2a_transport/link_stream_state.h"
#include "base/arena.h"
#include "base/list.h"
#include "wire/sse.h"

enum {
    A2A_LINK_CALLS = 65536,            /* open at one time */
    A2A_LINK_FIELDS = 64,              /* of one request, given by the owner … */
    A2A_LINK_FIELD_BYTES = 64 << 10,   /* … and their bytes */
    A2A_LINK_PARAMS_BYTES = 64 << 20,  /* of one request */
    A2A_LINK_BODY_BYTES = 192 << 20,   /* … in the agent's form */
    A2A_LINK_HELD_BYTES = 64 << 20,    /* of a stream whose receiver pauses */
    A2A_LINK_EVENT_ID_BYTES = 256,     /* longer ids of events are not sent back */
    A2A_LINK_MEMORY = 256 << 20,       /* to read one answer */
    A2A_LINK_LONGEST_DELAY_MS = 10000, /* between two attempts */
    A2A_LINK_GRACE_MS = 2000,          /* for a stream to end after its last event */
};

typedef enum a2a_link_phase {
    A2A_LINK_ASKING,
    A2A_LINK_STREAMING,
    A2A_LINK_RESTING,
    A2A_LINK_OVER,
} a2a_link_phase;

struct a2a_link {
    loop *loop;
    http_client *http;
    a2a_interface at;
    char *text; /* memory of `at` */
    a2a_link_limits limits;
    list calls;
    list dropped;
    size_t count;
    uint32_t depth; /* of this module's functions on the stack */
    uint64_t last_rpc_id;
    bool subscribes_by_get; /* POST was answered 405 */
    bool posts_whole;       /* a configuration as the whole body was answered 400 */
    bool is_freed;
    arena memory; /* of the answer or event read last: used by one call at a time */
};

struct a2a_link_call {
    list_link link;
    a2a_link *owner;
    const a2a_link_events *events;
    void *user;
    a2a_method method; /* as started */
    a2a_method asking; /* of the current attempt */
    a2a_link_phase phase;
    bool is_paused;
    char *secrets; /* names and values of the fields; wiped at the end */
    size_t secret_bytes;
    http_field *fields;
    size_t field_count;
    http_authority *authority;
    json_doc *params; /* NULL: they are not sent again */
    loop_timer timer;
    uint64_t within_ms; /* of the attempt: what the timer is set to when it goes on … */
    bool is_held;       /* … after the wait for its authorization, when it does not run */
    loop_task drain;

    /* link_attempt.c */
    http_call *http;
    a2a_grpc_sent *grpc;
    uint64_t rpc_id;
    int status;
    bool is_events; /* the reply is a stream of events */
    bool is_over;   /* it ended while its receiver paused: */
    bay_err over_err;
    bool over_was_sent;
    buf body; /* the answer so far; of events: bytes that are not yet decoded */
    sse_decoder decoder;

    /* link_retry.c */
    a2a_stream_state seen;
    buf last_id;          /* of the last event that had one */
    uint64_t last_number; /* the same as a number; 0: not a number */
    buf waiting;          /* events that were read and not reported: waiting_event … */
    size_t waiting_bytes; /* … and their bytes */
    uint32_t failures;    /* in a row */
    uint32_t delay_ms;    /* before the next attempt */
    uint32_t events_read; /* of this attempt */
    bool has_told;        /* an event was reported */
    bool is_resumed;      /* this attempt resumes the stream */
    bool is_finished;     /* the last event was read */
    bool is_checking;     /* the task is polled once more before the end */
    bool lacks_snapshot;  /* resumed without a snapshot: missed events are unknown */
    bool polls;           /* the agent has no SubscribeToTask */
    bool has_no_stream;   /* … and no SendStreamingMessage */
};

/* ---- link.c ---------------------------------------------------------------------------------- */

void a2a_link_enter(a2a_link *self);
void a2a_link_leave(a2a_link *self); /* frees dropped calls */
/* Removes it from everything, without an event; freed later. */
void a2a_link_drop(a2a_link_call *self);

/* ---- link_attempt.c -------------------------------------------------------------------------- */

/* Sends `asking`. Errors: as a2a_link_start; nothing is then under way. */
bay_err a2a_attempt_start(a2a_link_call *self, a2a_fault *fault) BAY_MUST_CHECK;
/* The time that the attempt just started may take. BAY_ERR_NOMEM. */
bay_err a2a_attempt_limit(a2a_link_call *self, uint64_t within_ms) BAY_MUST_CHECK;
/* Ends it without an event. No effect without an attempt. */
void a2a_attempt_stop(a2a_link_call *self);
/* Processes what was held back while the receiver paused. */
void a2a_attempt_drain(a2a_link_call *self);

/* ---- link_retry.c: what attempts tell ---------------------------------------------------
 * The call may be dropped when they return. */

void a2a_link_retry_result(a2a_link_call *self, json_val result);
/* A StreamResponse in normal form; not used after the return. */
void a2a_link_retry_event(a2a_link_call *self, json_val event, bay_str id, bool is_last);
/* … that is the answer of an agent without streams. */
void a2a_link_retry_answer(a2a_link_call *self, json_val event);
void a2a_link_retry_ended(a2a_link_call *self);
/* Drops the waiting events. */
void a2a_link_retry_forget(a2a_link_call *self);
/* `is_passing`: another attempt may succeed. */
void a2a_link_retry_failed(a2a_link_call *self, bay_err err, const a2a_fault *fault, bool was_sent,
                           bool is_passing);
void a2a_link_retry_retry_hint(a2a_link_call *self, int64_t ms);
/* Reports the waiting events; false: paused, or dropped. */
bool a2a_link_retry_tell(a2a_link_call *self);
/* The call's timer. */
void a2a_link_retry_on_timer(void *argument);

#endif
