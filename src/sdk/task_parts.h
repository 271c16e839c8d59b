/* Tasks (extension io.modelcontextprotocol/tasks): calls that outlive their requests. Shared by the
 * sdk's task files only.
 *
 *   call ──begin──► the row is stored ──► the client gets the task ──► the handler's last word
 *          │                                                            is stored
 *          └─ cannot be stored: the call ends with an error
 *
 * A task's row in the store is what clients see of it; they never see what is not stored yet. While
 * its handler runs, a `task` in this process stands behind it, with a lease on it, renewed: a row
 * that is under way while nobody has the lease is an orphan. Whoever finds one takes it over: runs
 * it again if its tool is resumable, else has it fail.
 *
 * What is for a task of another process goes into its row, as inbox; its owner looks there at each
 * tick. */
#ifndef SDK_TASK_PARTS_H
#define SDK_TASK_PARTS_H

#include "auth/principal_key.h"
#include "base/list.h"
#include "base/log.h"
#include "sdk/server_parts.h"
#include "store/store.h"

enum {
    TASK_ID_BYTES = 32,      /* hexadecimal digits: 128 bits nobody can guess */
    TASK_MAX_ROW = 16 << 20, /* bytes of a stored task */
    TASK_MAX_MESSAGE = 1024, /* bytes of a status message; the rest is cut */
    TASK_LEASE_MS = 10000,   /* an owner that is silent for so long has lost its tasks */
    TASK_TICK_MS = 2500,     /* renewals, inbox, saves that failed */
    TASK_SCAN_ROWS = 100,    /* orphans are looked for in steps of so many rows */
    TASK_MAX_ANSWERS = 1024, /* of one tasks/update: it is refused */
};

typedef enum task_status {
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELLED,
    TASK_STATUSES
} task_status;

/* What the row says. Texts are views: of the call, of `owned`, or of a parsed row. */
typedef struct task_record {
    bay_str id;
    bay_str tool;
    bay_str principal;    /* its identity */
    bay_str arguments;    /* raw object */
    bay_str capabilities; /* raw object: the client's */
    bay_str client_info;  /* raw object or empty */
    task_status status;
    bay_str message;
    uint64_t created_ms; /* wall clock */
    uint64_t updated_ms;
    uint32_t ttl_ms;
    uint32_t poll_ms;
    bay_str requests; /* members of inputRequests: "key":{…},… */
    bay_str answers;  /* members: "key":{…},… given so far */
    bay_str outcome;  /* the result, or the error: a raw object; by status */
    bay_str inbox;    /* members: "cancel":true, "answers":{…}; or empty */
    json_val row;     /* where it was read; missing: nowhere */
} task_record;

typedef struct bay_tasks tasks;

typedef struct task {
    list_link link; /* of tasks.live */
    tasks *of;
    bay_call *call;       /* NULL: it has ended */
    mcp_request *waiting; /* to be answered with the task, once it is stored */
    task_record record;
    char id[TASK_ID_BYTES + 1];
    char message[TASK_MAX_MESSAGE];
    json_builder *answers; /* given so far: an object that stays open; NULL: none */
    /* How it ended: a value, or a text of members and _meta. */
    json_doc *outcome_value;
    buf outcome;
    bay_str outcome_members;
    bay_str outcome_meta;
    buf requests;
    uint64_t version; /* of the row; 0: there is none yet */
    bool is_new;      /* its handler has not been run yet */
    bool is_saving;
    bool is_dirty;     /* to be saved once more */
    bool is_lost;      /* gone, or another process's now: nothing is saved any more */
    bool is_left;      /* to the next process: how its handler ends here does not count */
    bool has_failed;   /* to be stored, and that was told */
    bool has_outgrown; /* an answer could not be kept */
    size_t looking; /* it stays while this is not 0: operations on its lease and inbox, callers */
    json_val asked_before; /* by another process: inputRequests */
    /* A task that runs again has no request of a client's: this one takes its place. */
    mcp_request request;
    json_val arguments;
    arena memory;
} task;

struct bay_tasks {
    bay_server *server;
    store *store;
    list live;
    map by_id; /* of the same */
    size_t live_count;
    size_t doing;   /* operations of the store under way that are not a task's own */
    size_t walking; /* along `live`: nothing is freed meanwhile */
    char owner[TASK_ID_BYTES + 1];
    loop_timer tick;
    uint32_t ticks;
    const seal_ring *ring; /* hides in rows whose they are; NULL: as text */
    seal_ring *row_keys;   /* owned: the ring, where the program gave no keys */
    bool is_shared;        /* the store outlives the process, and others may have it open */
    bool is_scanning;
    bool is_ending;
    bool is_closed;
    log_pace complaints; /* of the store */
};

/* task_record.c */
/* The row: a JSON object. `ring` (may be NULL) hides whose it is. */
void sdk_task_write_row(const task_record *self, const seal_ring *ring, buf *out);
/* Views into the row, and the row as a value; it is parsed into `memory`. BAY_ERR_SYNTAX: it is
 * none of ours. */
bay_err sdk_task_read_row(bay_str row, const seal_ring *ring, arena *memory,
                          task_record *out) BAY_MUST_CHECK;
/* The members of a Task as a client sees it, into an open object; `is_whole`: with what tasks/get
 * adds. */
void sdk_task_put(const task_record *self, bool is_whole, json_writer *out);
static inline bool sdk_task_is_over(task_status status)
{
    return status >= TASK_COMPLETED;
}

/* tasks.c */
task *sdk_tasks_find(const tasks *self, bay_str id);
task *sdk_task_new(tasks *of, bay_call *call); /* in no list yet; NULL: no memory */
/* Texts of the record become its own. */
bay_err sdk_task_keep_texts(task *self) BAY_MUST_CHECK;
bay_err sdk_task_enlist(task *self) BAY_MUST_CHECK;
void sdk_task_free(task *self);
/* Frees it if nothing is left to be done for it. */
void sdk_task_settle(task *self);

/* task_row.c: the row, the lease on it, the inbox in it. */
void sdk_task_save(task *self); /* now, or once more when what is under way is done */
void sdk_task_take_lease(task *self);
void sdk_task_leave_lease(tasks *self, bay_str id);
void sdk_task_inbox_look(task *self);

/* task_sink.c */
extern const call_sink sdk_task_sink;
/* The client's answers to open questions of a task of ours: members of inputResponses. */
void sdk_task_answer(task *self, json_val responses);
void sdk_task_cancel(task *self);
/* What came as inbox; may be missing. */
void sdk_task_inbox_read(task *self, json_val inbox);
/* It has failed, with that error. */
void sdk_task_set_error(task *self, int code, bay_str text, json_val data);
/* Answers given before. What cannot be kept lets the task fail when it is saved. */
void sdk_task_keep_answers(task *self, json_val answers);

/* task_orphans.c */
/* A row that says it is under way, and nobody of ours runs it: takes it over if nobody else has. */
void sdk_task_adopt(tasks *self, bay_str id);
void sdk_tasks_scan(tasks *self); /* for all of those */

#endif
