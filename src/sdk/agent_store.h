/* The persister of an agent's tasks on a store: one row a task, with the blocks that the engine
 * cuts as parts of it, and beside it a stream of the events that clients may come back for. A
 * change is kept when its events and its row are written, and what waits together is committed
 * together. A row and its blocks are one change; a row that does not find all its blocks as they
 * were written is not given to the agent, and is said to be damaged.
 *
 * One process at a time serves the tasks of one table. A task's row must fit one value of the store
 * (agent_store_suits makes options under which the largest task does); ids that are longer than
 * STORE_TABLE_BYTES allows for a stream's name (which only clients of 0.1 choose) keep no events:
 * who comes back for such a task after a restart begins with the task as it is. */
#ifndef SDK_AGENT_STORE_H
#define SDK_AGENT_STORE_H

#include "a2a/agent.h"
#include "store/store.h"

enum {
    AGENT_STORE_NAME_BYTES = 24,     /* of the table */
    AGENT_STORE_EVENTS_MS = 3600000, /* how long events are kept for those who come back */
    AGENT_STORE_PAGE = 100,          /* rows that are read at one time */
    AGENT_STORE_BYTES = 1 << 20,     /* of a task's events that are kept … */
    AGENT_STORE_EVENTS = 1000,       /* … and puts that brought some … */
    AGENT_STORE_TRIM = 64,           /* … and until the next so many events came … */
    AGENT_STORE_LARGE = 16 << 10,    /* … or a put with so many bytes of them */
    AGENT_STORE_PENDING = 1 << 16,   /* puts under way at one time */
    AGENT_STORE_VALUE = 64 << 20,    /* of one row, and of one block */
};

/* Bytes of one task's blocks when it is read: more than the largest that may be asked for, with its
 * requests beside it; what was taken must be readable again. */
#define AGENT_STORE_BLOCKS (UINT64_C(3) << 30)

typedef struct agent_store agent_store;

/* Options of a store that is for an agent's tasks: large values, many puts at a time. */
store_options agent_store_suits(void);

/* `table`: whose tasks these are, where agents share a store. Owns: the caller, until
 * agent_store_free; `on` must outlive it. Errors: BAY_ERR_INVALID (no name, or too long a one),
 * BAY_ERR_NOMEM. Threads: the store's loop's, as all functions here. */
bay_err agent_store_new(store *on, bay_str table, agent_store **out) BAY_MUST_CHECK;

/* After the agent was freed and all that was put has been answered, which closing the store does.
 * NULL is allowed. */
void agent_store_free(agent_store *self);
bool agent_store_is_idle(const agent_store *self);

/* For a2a_agent_options. Lives as long as `self`. */
a2a_persistence *agent_store_persistence(agent_store *self);

typedef struct agent_store_loaded {
    bay_err err;    /* of the store or for lack of memory: the agent does not have all its tasks */
    uint64_t tasks; /* that the agent has now */
    uint64_t refused; /* rows that could not be read: damaged, or of a later release; they stay */
} agent_store_loaded;

/* Gives the agent every task of the table (a2a_agent_restore), before it is asked anything. Then
 * `done`, never inside this call. Owns: nothing; both must live until then. Errors: of store_scan;
 * BAY_ERR_STATE while it is loading. */
bay_err agent_store_load(agent_store *self, a2a_agent *agent, bool may_resume,
                         void (*done)(void *user, const agent_store_loaded *loaded),
                         void *user) BAY_MUST_CHECK;

#endif
