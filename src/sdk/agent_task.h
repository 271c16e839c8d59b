/* One turn of a task, as its handler has it. Shared by agent_task.c (life), agent_move.c (moves)
 * and agent_artifact.c.
 *
 *   begun ──► with its handler (holders > 0) ──answer──► answered ──last release──► gone
 *
 * Moves of any thread stand in one queue under the lock; the loop takes them out and makes them, in
 * order. On the loop's thread that happens before the call returns.
 *
 * Invariants
 * - The turn is the loop's, but for its JSON and texts, which do not change.
 * - It is freed on the loop: with no holder, no move and no message under way. */
#ifndef SDK_AGENT_TASK_H
#define SDK_AGENT_TASK_H

#include "sdk/agent_parts.h"

enum {
    TASK_VIEW_BYTES = 256 << 20, /* decoded views of one turn */
    TASK_MOVE_BYTES = 32 << 20,  /* one move: its text, or its JSON */
    /* Moves of one turn that the loop did not make yet, with their indexes; one is always taken. */
    TASK_WAITING_BYTES = 64 << 20,
    TASK_DRAIN_BYTES = 64 << 10, /* of those that it makes at one time, then others have a turn */
    TASK_SKILL_BYTES = 1024,     /* of a skill's id that is remembered */
};

typedef enum move_kind { MOVE_STATUS, MOVE_ARTIFACT, MOVE_REPLY, MOVE_REMEMBER } move_kind;

typedef struct move_request {
    move_kind kind;
    a2a_state state;
    bay_artifact *artifact; /* of MOVE_ARTIFACT */
    bool is_append;
    bool is_last; /* chunk */
    bool ends;    /* the turn */
    bay_str text; /* what is remembered; of MOVE_STATUS and MOVE_REPLY: NULL if there is a value */
    json_val value;
} move_request;

/* One that waits; a copy of its text or value is behind it. */
typedef struct task_move {
    struct task_move *next;
    move_request request;
} task_move;

struct bay_artifact {
    bay_task *task;
    struct bay_artifact *next;
    char id[37];
    char *name;
    char *media_type;
    char *description;
    task_move *waiting; /* its newest chunk; NULL: the loop has taken it, or there is none */
    bool is_begun;
    bool is_closed;
};

struct bay_task {
    /* These two are made once, also for the turns that have this memory later. */
    pthread_mutex_t lock; /* guards moves, and what is said of them */
    pthread_cond_t is_woken;
    bay_agent *agent;
    agent_serving *serving;
    a2a_turn *turn;
    task_move *first; /* guarded, to is_closed */
    task_move *last;
    size_t waiting_bytes;
    bay_artifact *artifacts;
    uint32_t holders;
    bool is_posted;
    bool is_answered; /* a move was taken that ends the turn */
    bool is_moved;    /* any move was taken */
    bool is_closed;   /* the agent ends */
    /* Of the loop. */
    list_link link;
    bool is_mapped;
    bool is_draining;
    bool is_ended;  /* the engine was told */
    bay_err result; /* of the move made last */
    loop_message message_to_loop;
    /* Unchanged from the beginning. */
    agent_job job;
    bay_task_handler_fn handler;
    void *user;
    json_val request;
    bay_message message;
    arena views;
    bay_str skill;
    bay_str remembered;
    buf snapshot; /* the task when the turn began; empty: a new one */
    /* Made when it is asked for, under the lock. */
    bay_message *history;
    size_t history_count;
    bool has_history;
    arena history_views;
    atomic_bool is_cancelled;
};

/* Takes a move, and makes it at once on the loop's thread. */
bay_err sdk_turn_move(bay_task *self, const move_request *request) BAY_MUST_CHECK;
/* agent_move.c: takes a move, under the lock, without making it; BAY_OK: sdk_turn_kick comes after
 * the unlocking. */
bay_err sdk_turn_queue(bay_task *self, const move_request *request);
/* Sees to it that what waits is made. Returns what came of it where that is known. */
bay_err sdk_turn_kick(bay_task *self);
/* The same on the loop's thread; on others, nothing. */
bay_err sdk_turn_make(bay_task *self);
/* Under the lock: has the loop make what waits in a later turn. */
void sdk_turn_post(bay_task *self);

/* agent_artifact.c, under the lock: each artifact that is open gets its last chunk. */
bay_err sdk_artifacts_close(bay_task *self);
void sdk_artifacts_free(bay_task *self);

/* agent_task.c, loop only. */
void sdk_turn_over(bay_task *self); /* the turn has ended for the engine */
void sdk_turn_free(bay_task *self);

/* What is left of turns that are gone, for the next ones. Loop only. */
enum { TASK_FREE_LIST_MAX = 64 };
typedef struct task_free_list {
    list tasks;
    size_t count;
} task_free_list;
void sdk_task_free_list_fini(task_free_list *self);

/* agent_serving.c: the list of all turns. */
list *sdk_agent_tasks(agent_serving *self);
task_free_list *sdk_task_free_list(agent_serving *self);

#endif
