/* The engine of an agent: tasks, their states, history, artifacts, subscribers, paging, push
 * configurations. Sans I/O: calls come from endpoints, moves from the handler, rows go to a
 * persistence, deliveries to a push_sender; time is given.
 *
 *   SUBMITTED ─► WORKING ⇄ INPUT_REQUIRED, AUTH_REQUIRED ─► COMPLETED, FAILED, CANCELED, REJECTED
 *
 * (from SUBMITTED and the interrupted states every state may follow; from a terminal one none.)
 *
 * A turn is one message given to the handler. It ends when the handler ends it (a2a_turn_end),
 * which it does exactly once; until then it may move its task. A message to a task whose turn still
 * runs waits for its end, at most a2a_agent_limits.waiting of them.
 *
 * Threads: one. References of handlers to turns are counted (a2a_turn_ref); the task behind them
 * may be gone or canceled, and then moves answer BAY_ERR_STATE.
 *
 * Durability: with a persister nothing that a client is told is told before the persister has it.
 * Events of one task go out in order all the same. */
#ifndef A2A_AGENT_H
#define A2A_AGENT_H

#include "a2a/service.h"
#include "auth/principal_key.h"

typedef struct a2a_agent a2a_agent;
typedef struct a2a_turn a2a_turn;

typedef struct a2a_agent_limits {
    uint32_t tasks;         /* 100,000 kept; the oldest terminal ones go first, then BUSY */
    uint32_t running;       /* 10,000 turns at one time: BUSY */
    uint32_t waiting;       /* 16 messages that wait for a task's turn */
    size_t task_bytes;      /* 32 MiB of one task, with history and artifacts */
    size_t total_bytes;     /* 1 GiB of all tasks */
    uint32_t history;       /* 1,000 messages of one task; older ones are dropped from the middle */
    uint32_t artifacts;     /* 1,000 of one task */
    uint32_t subscribers;   /* 10,000 of one task */
    uint32_t push_configs;  /* 100 of one task */
    uint32_t replay_events; /* 1,000 events of one task for clients that come back … */
    size_t replay_bytes;    /* … and 1 MiB … */
    size_t replay_total_bytes; /* … and 8 MiB of all tasks; the oldest go first */
    uint64_t task_ttl_ms;      /* 7 days from the last change of a terminal task to its removal */
    uint32_t deduplicate_ms;   /* 600,000: a message whose answer the caller could not get (it left,
                                  or   the process died) and that comes again in this time, with the
                                  same   messageId and content, gets the same task. So does one that
                                  comes   again while the first waits for its answer. */
} a2a_agent_limits;

extern const a2a_agent_limits a2a_agent_default_limits;

/* Bytes of a task that stand beside its row: what was added to a long artifact, a large message. It
 * is named by its overflow (which no other thing of the task ever has) and its number in that, from
 * 0.
 */
typedef struct a2a_overflow_block {
    uint64_t overflow;
    uint32_t number;
    bay_str bytes;
} a2a_overflow_block;

/* All that a persister is given of a task at one time. */
typedef struct a2a_put {
    bay_str id;
    bay_str row; /* the task as the engine writes it, but for what is in blocks */
    /* What is new beside the row. It refers to no block that is not here or was not kept before. */
    const a2a_overflow_block *blocks;
    size_t block_count;
    /* Overflows that the row does not know any more: all their blocks. */
    const uint64_t *gone;
    size_t gone_count;
    a2a_event *const *events; /* StreamResponses that brought it there, in order, for replay */
    size_t event_count;
    bool has_events; /* it has some, or had before */
    bool has_blocks; /* the row knows some */
} a2a_put;

/* A task as it was kept. */
typedef struct a2a_kept_task {
    bay_str row;
    const a2a_overflow_block
        *blocks; /* by overflow, then number; those that the row does not know go */
    size_t block_count;
    a2a_event *const *events; /* in order */
    size_t event_count;
} a2a_kept_task;

/* Where tasks are kept. `kept` is said exactly once for each put that returned BAY_OK, in the order
 * of the puts, also inside it, and also after the agent is freed (which does nothing then). One put
 * of a task is under way at a time; what changes meanwhile goes with the next. */
typedef struct a2a_persistence a2a_persistence;
typedef struct a2a_persistence_ops {
    /* Row and blocks come and go in one moment: whoever reads finds the blocks that the row knows,
     * or another row. A put that fails leaves the row before it, with its blocks. Copies what it
     * needs. */
    bay_err (*put)(a2a_persistence *self, const a2a_put *put, void (*kept)(void *user, bay_err err),
                   void *user);
    /* With its blocks. */
    void (*remove)(a2a_persistence *self, bay_str id);
} a2a_persistence_ops;
struct a2a_persistence {
    const a2a_persistence_ops *ops;
};

typedef struct a2a_handler {
    /* A message arrived: a new task's first, or one for a task that waits for input. */
    void (*turn)(void *user, a2a_turn *turn);
    /* The client canceled the task: the handler should stop and end its turn. The task is CANCELED
     * already. */
    void (*canceled)(void *user, a2a_turn *turn);
    /* Every event of a task with push configurations: for a push_sender. `config` in 1.0; `form` is
     * that in which it was registered. NULL: none; then there is no push capability. */
    void (*push)(void *user, bay_str principal, json_val config, a2a_form form, a2a_event *event,
                 bay_str task);
    /* Checks the URL of a configuration. BAY_ERR_DENIED, BAY_ERR_INVALID with `fault`. NULL: all
     * are fine.
     */
    bay_err (*push_url)(void *user, bay_str url, a2a_fault *fault);
} a2a_handler;

typedef struct a2a_agent_options {
    a2a_agent_limits limits; /* zero: the default, each */
    const a2a_handler *handler;
    void *user;
    a2a_persistence *persistence; /* NULL: memory only */
    const seal_ring *ring;        /* seals who owns a task in its row; borrowed. NULL: as text */
    json_val card; /* 1.0, normal form: capabilities, skills, modes, required extensions; copied */
    bay_str extended_card;                /* "": none */
    uint64_t (*now)(void *user);          /* wall clock, ms */
    void (*id)(void *user, char out[37]); /* a UUID; NULL: random ones */
    /* Something is due at `at_ms` (wall clock): call a2a_agent_tick then. */
    void (*wake)(void *user, uint64_t at_ms);
} a2a_agent_options;

bay_err a2a_agent_new(const a2a_agent_options *options, a2a_agent **out) BAY_MUST_CHECK;
/* Every open call fails with A2A_E_UNAVAILABLE; turns that the handler still has answer
 * BAY_ERR_CLOSED. Never inside a callback of the agent. */
void a2a_agent_free(a2a_agent *self);
a2a_service *a2a_agent_service(a2a_agent *self);
void a2a_agent_tick(a2a_agent *self);
/* The card changed; copied. BAY_ERR_INVALID: not a JSON object. */
bay_err a2a_agent_set_card(a2a_agent *self, json_val card, bay_str extended_card) BAY_MUST_CHECK;

/* A task from its row, before any call. One whose turn was running is given to the handler again
 * (a2a_turn_is_resumed) when may_resume, else it has FAILED, and says so; either happens at the
 * next tick. Errors: BAY_ERR_SYNTAX (no row of ours, or of a later release, or one without all its
 * blocks), BAY_ERR_DUPLICATE, BAY_ERR_LIMIT (more tasks that have not ended than there may be; of
 * those that have ended the oldest go), BAY_ERR_NOMEM. */
bay_err a2a_agent_restore(a2a_agent *self, const a2a_kept_task *kept,
                          bool may_resume) BAY_MUST_CHECK;

/* What the handler of that caller's task remembered last; "" when nothing, or when there is no such
 * task. Lives until the agent is called again. */
bay_str a2a_agent_remembered(const a2a_agent *self, bay_str task, bay_str principal);

/* ---- a turn, for the handler ----------------------------------------------------------------- */

a2a_turn *a2a_turn_ref(a2a_turn *self);
void a2a_turn_unref(a2a_turn *self);
json_val a2a_turn_message(const a2a_turn *self); /* 1.0 Message; lives as long as the turn */
json_val a2a_turn_request(const a2a_turn *self); /* the whole SendMessageRequest */
bay_str a2a_turn_task_id(const a2a_turn *self);  /* the id, also while there is no task yet */
bay_str a2a_turn_context_id(const a2a_turn *self);
const auth_principal *a2a_turn_principal(const a2a_turn *self);
bay_str a2a_turn_traceparent(const a2a_turn *self);
bay_str a2a_turn_tracestate(const a2a_turn *self);
bay_str a2a_turn_via(const a2a_turn *self); /* whom the request came through; "" */
bay_str a2a_turn_extensions(const a2a_turn *self);
bool a2a_turn_is_new(const a2a_turn *self);      /* the first of its task */
bool a2a_turn_is_resumed(const a2a_turn *self);  /* the process died during it */
bool a2a_turn_is_canceled(const a2a_turn *self); /* nobody waits for what it makes */
/* The task as it is: a 1.0 Task, appended. */
bay_err a2a_turn_task(const a2a_turn *self, buf *out) BAY_MUST_CHECK;

/* Answers with a message instead of a task: only while the task was not opened by any move below.
 * `message`: 1.0, parts at least; ids and role are filled in. Ends nothing by itself.
 * Errors of all moves: BAY_ERR_STATE (not possible in this state, or canceled), BAY_ERR_CLOSED (the
 * agent is gone), BAY_ERR_LIMIT (of a2a_agent_limits), BAY_ERR_INVALID (no such message, artifact),
 * BAY_ERR_NOMEM. */
bay_err a2a_turn_reply(a2a_turn *self, json_val message) BAY_MUST_CHECK;
/* Moves the task; `message` (may be JSON_NONE) goes with the status and into the history. */
bay_err a2a_turn_status(a2a_turn *self, a2a_state state, json_val message,
                        json_val metadata) BAY_MUST_CHECK;
/* The same with a message, of one part, that is this text; invalid UTF-8 in it is replaced. */
bay_err a2a_turn_reply_text(a2a_turn *self, bay_str text) BAY_MUST_CHECK;
bay_err a2a_turn_status_text(a2a_turn *self, a2a_state state, bay_str text) BAY_MUST_CHECK;
/* A chunk of an artifact: 1.0 Artifact (artifactId, parts, …). append false: replaces or begins;
 * true: BAY_ERR_INVALID when there is none of that id, BAY_ERR_STATE behind its last chunk. */
bay_err a2a_turn_artifact(a2a_turn *self, json_val artifact, bool append,
                          bool is_last_chunk) BAY_MUST_CHECK;
/* Bytes of the handler's own that go with the task's row and that no client sees: at most
 * A2A_TURN_MEMORY_BYTES, replaced whole; counted in task_bytes. For sdk's bay_task_remember: they
 * are there in the next turn, also of another process. BAY_ERR_STATE for a turn that was answered
 * by a message, else as all moves. */
enum { A2A_TURN_MEMORY_BYTES = 64 << 10 };
bay_err a2a_turn_remember(a2a_turn *self, bay_str bytes) BAY_MUST_CHECK;
/* What was remembered last; "" before that. Lives until the next a2a_turn_remember. */
bay_str a2a_turn_remembered(const a2a_turn *self);

/* The handler is done with this turn. A task that was neither answered nor brought to a terminal or
 * interrupted state, and for which no other message waits, has FAILED: "the handler ended without
 * an answer". Drops no reference. */
void a2a_turn_end(a2a_turn *self);

#endif
