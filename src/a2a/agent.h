/* The engine of an agent: tasks, their states, history, artifacts, subscribers, paging, push
 * configurations. Sans I/O: calls come from the router, moves from the handler, rows go to a
 * persistence, deliveries to a push_sender; the time is passed in.
 *
 *   SUBMITTED ─► WORKING ⇄ INPUT_REQUIRED, AUTH_REQUIRED ─► COMPLETED, FAILED, CANCELED, REJECTED
 *
 * (SUBMITTED and the interrupted states may be followed by any state; a terminal one by none.)
 *
 * A turn is one message that the handler processes. The handler ends it exactly once
 * (a2a_turn_end); until then it may move its task. A message to a task with an open turn waits for
 * its end, at most a2a_agent_limits.waiting of them.
 *
 * Threads: one. References of handlers to turns are counted (a2a_turn_ref); the task may be removed
 * or canceled before, and then moves return BAY_ERR_STATE.
 *
 * Durability: with a persister the engine sends a client nothing that the persister has not stored.
 * The events of one task stay in order. */
#ifndef A2A_AGENT_H
#define A2A_AGENT_H

#include "a2a/service.h"
#include "auth/principal_key.h"

typedef struct a2a_agent a2a_agent;
typedef struct a2a_turn a2a_turn;

typedef struct a2a_agent_limits {
    uint32_t tasks;         /* 100,000; the oldest terminal ones are removed first, then BUSY */
    uint32_t running;       /* 10,000 concurrent turns: BUSY */
    uint32_t waiting;       /* 16 messages that wait for a task's turn */
    size_t task_bytes;      /* 32 MiB of one task, with history and artifacts */
    size_t total_bytes;     /* 1 GiB of all tasks */
    uint32_t history;       /* 1,000 messages of one task; older ones are dropped from the middle */
    uint32_t artifacts;     /* 1,000 of one task */
    uint32_t subscribers;   /* 10,000 of one task */
    uint32_t push_configs;  /* 100 of one task */
    uint32_t replay_events; /* 1,000 events of one task for clients that reconnect … */
    size_t replay_bytes;    /* … and 1 MiB … */
    size_t replay_total_bytes; /* … and 8 MiB of all tasks; the oldest are dropped first */
    uint64_t task_ttl_ms;      /* 7 days from the last change of a terminal task to its removal */
    uint32_t deduplicate_ms;   /* 600,000: deduplication of messages whose answer was lost */
} a2a_agent_limits;

extern const a2a_agent_limits a2a_agent_default_limits;

/* A part of a task that is stored beside its row: older parts of a long artifact, or a large
 * message. It is named by its overflow (a number that the task never reuses) and its number in
 * that, from 0. */
typedef struct a2a_overflow_block {
    uint64_t overflow;
    uint32_t number;
    bay_str bytes;
} a2a_overflow_block;

/* All that a persister is given of a task at one time. */
typedef struct a2a_put {
    bay_str id;
    bay_str row; /* the task as the engine writes it, without what is in blocks */
    /* New blocks. The row refers only to these blocks and to stored ones. */
    const a2a_overflow_block *blocks;
    size_t block_count;
    /* Overflows that the row does not refer to any more: all their blocks are removed. */
    const uint64_t *gone;
    size_t gone_count;
    a2a_event *const *events; /* new StreamResponses, in order, for replay */
    size_t event_count;
    bool has_events; /* it has events, or had before */
    bool has_blocks; /* the row refers to blocks */
} a2a_put;

/* A task as it was stored. */
typedef struct a2a_kept_task {
    bay_str row;
    const a2a_overflow_block
        *blocks; /* by overflow, then number; blocks that the row does not refer to are removed */
    size_t block_count;
    a2a_event *const *events; /* in order */
    size_t event_count;
} a2a_kept_task;

/* Stores tasks. `kept` is called exactly once for each put that returned BAY_OK, in the order of
 * the puts, also inside it, and also after the agent is freed (no effect then). One put of a task
 * is under way at a time; changes meanwhile go with the next one. */
typedef struct a2a_persistence a2a_persistence;
typedef struct a2a_persistence_ops {
    /* Row and blocks are replaced atomically: a reader finds the blocks that the row refers to, or
     * another row. A failed put leaves the previous row with its blocks. Copies what it needs. */
    bay_err (*put)(a2a_persistence *self, const a2a_put *put, void (*kept)(void *user, bay_err err),
                   void *user);
    /* With its blocks. */
    void (*remove)(a2a_persistence *self, bay_str id);
} a2a_persistence_ops;
struct a2a_persistence {
    const a2a_persistence_ops *ops;
};

typedef struct a2a_handler {
    /* A message arrived: a new task's first one, or one for a task that waits for input. */
    void (*turn)(void *user, a2a_turn *turn);
    /* The client canceled the task: the handler should stop and end its turn. The task is CANCELED
     * already. */
    void (*canceled)(void *user, a2a_turn *turn);
    /* Every event of a task with push configurations, for a push_sender. `config` in 1.0; `form`:
     * the form in which it was registered. NULL: none; then there is no push capability. */
    void (*push)(void *user, bay_str principal, json_val config, a2a_form form, a2a_event *event,
                 bay_str task);
    /* Checks the URL of a configuration. BAY_ERR_DENIED, BAY_ERR_INVALID with `fault`. NULL: all
     * are allowed. */
    bay_err (*push_url)(void *user, bay_str url, a2a_fault *fault);
} a2a_handler;

typedef struct a2a_agent_options {
    a2a_agent_limits limits; /* zero: the default, each */
    const a2a_handler *handler;
    void *user;
    a2a_persistence *persistence; /* NULL: memory only */
    const seal_ring *ring;        /* seals a task's owner in its row; borrowed. NULL: as text */
    json_val card; /* 1.0, normal form: capabilities, skills, modes, required extensions; copied */
    bay_str extended_card;                /* "": none */
    uint64_t (*now)(void *user);          /* wall clock, ms */
    void (*id)(void *user, char out[37]); /* a UUID; NULL: random ones */
    /* Asks for a2a_agent_tick at `at_ms` (wall clock). */
    void (*wake)(void *user, uint64_t at_ms);
} a2a_agent_options;

bay_err a2a_agent_new(const a2a_agent_options *options, a2a_agent **out) BAY_MUST_CHECK;
/* Every open call fails with A2A_E_UNAVAILABLE; turns that the handler still holds return
 * BAY_ERR_CLOSED. Never inside a callback of the agent. */
void a2a_agent_free(a2a_agent *self);
a2a_service *a2a_agent_service(a2a_agent *self);
void a2a_agent_tick(a2a_agent *self);
/* Replaces the card; copied. BAY_ERR_INVALID: not a JSON object. */
bay_err a2a_agent_set_card(a2a_agent *self, json_val card, bay_str extended_card) BAY_MUST_CHECK;

/* Restores a task from its row, before any call. If its turn was running, the handler gets it again
 * (a2a_turn_is_resumed) if may_resume, otherwise the task has FAILED; either happens at the next
 * tick.
 * Errors: BAY_ERR_SYNTAX (not a row of this release, or blocks are missing), BAY_ERR_DUPLICATE,
 * BAY_ERR_LIMIT (more unfinished tasks than the limit; of finished ones the oldest are removed),
 * BAY_ERR_NOMEM. */
bay_err a2a_agent_restore(a2a_agent *self, const a2a_kept_task *kept,
                          bool may_resume) BAY_MUST_CHECK;

/* The bytes that the handler of this caller's task stored last; "": none, or no such task. Valid
 * until the next call of the agent. */
bay_str a2a_agent_remembered(const a2a_agent *self, bay_str task, bay_str principal);

/* ---- a turn, for the handler ----------------------------------------------------------------- */

a2a_turn *a2a_turn_ref(a2a_turn *self);
void a2a_turn_unref(a2a_turn *self);
json_val a2a_turn_message(const a2a_turn *self); /* 1.0 Message; lives as long as the turn */
json_val a2a_turn_request(const a2a_turn *self); /* the whole SendMessageRequest */
bay_str a2a_turn_task_id(const a2a_turn *self);  /* the id, also before the task exists */
bay_str a2a_turn_context_id(const a2a_turn *self);
const auth_principal *a2a_turn_principal(const a2a_turn *self);
bay_str a2a_turn_traceparent(const a2a_turn *self);
bay_str a2a_turn_tracestate(const a2a_turn *self);
bay_str a2a_turn_via(const a2a_turn *self); /* Via of the request; "" */
bay_str a2a_turn_extensions(const a2a_turn *self);
bool a2a_turn_is_new(const a2a_turn *self);      /* the first of its task */
bool a2a_turn_is_resumed(const a2a_turn *self);  /* the process died during it */
bool a2a_turn_is_canceled(const a2a_turn *self); /* its result is not needed any more */
/* Appends the current task: a 1.0 Task. */
bay_err a2a_turn_task(const a2a_turn *self, buf *out) BAY_MUST_CHECK;

/* Answers with a message instead of a task: only before any move below has opened the task.
 * `message`: 1.0, with parts at least; ids and role are set here. Does not end the turn. Errors of
 * all moves: BAY_ERR_STATE (not possible in this state, or canceled), BAY_ERR_CLOSED (the agent is
 * freed), BAY_ERR_LIMIT (of a2a_agent_limits), BAY_ERR_INVALID (invalid message, unknown artifact),
 * BAY_ERR_NOMEM. */
bay_err a2a_turn_reply(a2a_turn *self, json_val message) BAY_MUST_CHECK;
/* Sets the task's state; `message` (may be JSON_NONE) becomes part of the status and the history.
 */
bay_err a2a_turn_status(a2a_turn *self, a2a_state state, json_val message,
                        json_val metadata) BAY_MUST_CHECK;
/* The same with a message of one part, this text; invalid UTF-8 in it is replaced. */
bay_err a2a_turn_reply_text(a2a_turn *self, bay_str text) BAY_MUST_CHECK;
bay_err a2a_turn_status_text(a2a_turn *self, a2a_state state, bay_str text) BAY_MUST_CHECK;
/* A chunk of an artifact: 1.0 Artifact (artifactId, parts, …). append false: replaces it or begins
 * one; true: BAY_ERR_INVALID if no artifact has this id, BAY_ERR_STATE after its last chunk. */
bay_err a2a_turn_artifact(a2a_turn *self, json_val artifact, bool append,
                          bool is_last_chunk) BAY_MUST_CHECK;
/* Bytes of the handler that are stored with the task and that no client sees: at most
 * A2A_TURN_MEMORY_BYTES, replaced as a whole; counted in task_bytes. For sdk's bay_task_remember:
 * the next turn has them, also in another process. BAY_ERR_STATE for a turn that was answered with
 * a message; otherwise as all moves. */
enum { A2A_TURN_MEMORY_BYTES = 64 << 10 };
bay_err a2a_turn_remember(a2a_turn *self, bay_str bytes) BAY_MUST_CHECK;
/* The bytes that were stored last; "": none. Valid until the next a2a_turn_remember. */
bay_str a2a_turn_remembered(const a2a_turn *self);

/* The handler has finished this turn. A task that was not answered, is in no terminal or
 * interrupted state and has no waiting message has FAILED: "the handler ended without an answer".
 * Drops no reference. */
void a2a_turn_end(a2a_turn *self);

#endif
