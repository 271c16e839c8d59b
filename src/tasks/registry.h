/* What one endpoint stores of tasks, all of it bounded.
 *
 *   entry           a task of a client of 2025-11-25: what tasks/list shows of it; and the result
 *                   itself if its server has no tasks, or answered at once
 *   result_request  tasks/result of a server of 2025-11-25, kept open because the server sends
 *                   input requests only there: they wait for tasks/get and tasks/update of a
 *                   stateless client
 *
 * Entries belong to an identity (a session, or a principal without one) and end after their ttl. If
 * an identity has too many, its oldest is removed; one identity's entries never remove another's.
 */
#ifndef TASKS_REGISTRY_H
#define TASKS_REGISTRY_H

#include "base/map.h"
#include "net/loop.h"
#include "tasks/shape.h"
#include "upstream/upstream.h"

enum {
    TASK_ENTRIES = 10000,               /* of an endpoint: a further task is not listed or stored */
    TASK_ENTRIES_EACH = 256,            /* of one identity: its oldest is removed */
    TASK_ENTRY_BYTES = 8 * 1024,        /* of a task as it is listed; a longer one is not listed */
    TASK_KEPT_BYTES = 64 << 20,         /* results stored, of an endpoint */
    TASK_KEPT_EACH = 16 << 20,          /* of one identity: its oldest is removed */
    TASK_TTL_MS = 60 * 60 * 1000,       /* of an entry whose task has no ttl … */
    TASK_MAX_TTL_MS = 24 * 3600 * 1000, /* … and the longest */
    TASK_LIST_PAGE = 100,
    TASK_RESULT_REQUESTS = 10000,       /* of an endpoint: a further task gets no input requests */
    TASK_INPUT_REQUESTS = 64,           /* open at once, of one task; further ones are refused */
    TASK_INPUT_REQUEST_BYTES = 4 << 20, /* of one task's open questions */
    TASK_ANSWER_BYTES = 64 << 20,       /* of one answer: above it, the server gets an error */
    TASK_CANCELS = 1024,                /* tasks/cancel requests under way to servers */
    TASK_TICK_MS = 1000,
};

typedef struct task_owner task_owner;

typedef struct task_entry {
    list_link by_owner; /* oldest first */
    list_link by_age;
    task_owner *owner;
    bay_str token;          /* the key; stored after the struct */
    uint64_t number;        /* in the order of making */
    uint64_t expires_at_ms; /* wall clock */
    char *shown;            /* the Task in 2025-11-25's form, raw */
    uint32_t shown_len;
    bool is_cancelled; /* reported as cancelled: it stays cancelled */
    bool is_own;       /* the gateway itself has the result */
    bool is_failure;   /* `kept` is an error object */
    json_doc *kept;
    size_t kept_bytes;
    uint64_t progress_of; /* the server's progress token of the call that began it; 0: none */
    char *progress_token; /* the client's, raw */
} task_entry;

struct task_owner {
    list entries;
    size_t count;
    size_t kept_bytes;
    size_t len;
    char identity[];
};

typedef struct task_input_request {
    list_link link;
    bay_str key; /* in inputRequests */
    bay_str id;  /* raw, the server's */
    bay_str method;
    json_val params; /* stored after the struct, like the other bytes */
} task_input_request;

typedef struct task_registry task_registry;

/* A request that waits for the first input request. */
typedef struct task_waiter {
    list_link link;
    uint64_t until_ms;
    void (*wake)(struct task_waiter *self); /* called once; it is then in no list */
} task_waiter;

typedef struct task_result_request {
    list_link link;
    task_registry *registry;
    bay_str token;
    upstream_call call; /* tasks/result */
    arena memory;
    unsigned inputs; /* input requests that its client accepts */
    list input_requests;
    size_t input_request_count;
    size_t input_request_bytes;
    list waiters;
    uint64_t until_ms; /* end of the time without a tasks/get, after which it ends */
    uint64_t salt;     /* keys are never reused, not even by another result_request of the task */
    uint32_t last_key;
    uint32_t hold; /* > 0: in use */
    bool has_ended;
} task_result_request;

struct task_registry {
    loop *loop; /* may be NULL: no timers */
    uint32_t answer_ms;
    map entries; /* by token */
    map owners;
    map result_requests; /* by token */
    list by_age;
    list cancels;
    size_t cancel_count;
    size_t kept_bytes;
    uint64_t last_entry;
    loop_timer tick;
};

bay_err task_registry_new(loop *on, uint32_t answer_ms, task_registry **out) BAY_MUST_CHECK;

void task_registry_free(task_registry *self); /* NULL is fine */

/* Entries. `shown` and `kept` are copied. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err task_entry_add(task_registry *self, bay_str identity, bay_str token, uint64_t ttl_ms,
                       uint64_t now_ms, task_entry **out) BAY_MUST_CHECK;
bay_err task_entry_show(task_entry *self, bay_str shown) BAY_MUST_CHECK;
bay_err task_entry_follow(task_entry *self, uint64_t progress_of,
                          bay_str progress_token) BAY_MUST_CHECK;
bay_err task_entry_keep(task_registry *self, task_entry *entry, json_val kept,
                        bool is_failure) BAY_MUST_CHECK;
void task_entry_remove(task_registry *self, task_entry *entry);
/* NULL: `identity` has no entry with this token. */
task_entry *task_entry_find(const task_registry *self, bay_str identity, bay_str token);
/* Removes expired entries. Units: ms since 1970. */
void task_registry_expire(task_registry *self, uint64_t now_ms);
/* Members of a tasks/list result: the page after `cursor`. BAY_ERR_INVALID: not a valid cursor. */
bay_err task_registry_list(const task_registry *self, bay_str identity, json_val cursor,
                           buf *out) BAY_MUST_CHECK;

/* Starts its timer if there is anything to expire. */
void task_registry_wake(task_registry *self);

/* result_request.c */
task_result_request *task_result_request_find(const task_registry *self,
                                              bay_str token); /* NULL: none */
/* Opens tasks/result for the server's task `id`. BAY_ERR_LIMIT, BAY_ERR_NOMEM; BAY_ERR_CLOSED: it
 * ended at once. */
bay_err task_result_request_open(task_registry *self, bay_str token, bay_str id, upstream *to,
                                 const upstream_affinity *affinity, uint64_t now_ms,
                                 task_result_request **out) BAY_MUST_CHECK;
/* A client has asked for the task: it stays open for longer. */
void task_result_request_look(task_result_request *self, unsigned inputs, uint64_t now_ms);
void task_result_request_wait(task_result_request *self, task_waiter *waiter, uint64_t until_ms);
/* Writes the member inputRequests. */
void task_result_request_write(const task_result_request *self, json_writer *out);
/* Takes answers from `responses`; those without an input request are ignored. */
void task_result_request_answer(task_result_request *self, json_val responses);
void task_result_requests_expire(task_registry *self, uint64_t now_ms);

/* Sends tasks/cancel without a waiting client. */
void task_cancel_send(task_registry *self, upstream *to, bay_str id,
                      const upstream_affinity *affinity);
void task_cancels_end(task_registry *self);

#endif
