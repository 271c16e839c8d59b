/* What the files of this module share: continuations. A continuation belongs to a route and stands
 * between its call and whoever finishes it: each outcome goes to the continuation's step first,
 * which rewrites it for the client, or takes it and sends the call on. Invariant: between two steps
 * exactly one thing is under way: the call, the timer, questions to the client, or a wait for a
 * result_request. */
#ifndef TASKS_CONTINUATION_H
#define TASKS_CONTINUATION_H

#include "endpoint/endpoint_parts.h"
#include "tasks/registry.h"
#include "tasks/shape.h"
#include "tasks/task.h"
#include "json/build.h"

enum {
    TASK_ID_BYTES = 4096, /* a server's longer id: its task is refused */
    TASK_CONTINUATION_MEMORY = 1 << 30,
    TASK_PACE_MS = 1000, /* of a server that names none */
    TASK_MIN_PACE_MS = 50,
    TASK_MAX_PACE_MS = 60000,
    TASK_KEYS = 1024, /* inputs of one task in its life: it is cancelled */
};

typedef struct task_continuation task_continuation;

/* True: taken, the route lives on. False: the client gets `inout`, whose views live as the
 * continuation. */
typedef bool (*task_step)(task_continuation *self, mcp_outcome *inout);

struct task_continuation {
    route *way;
    endpoint *endpoint;
    const upstream_call_events *events; /* of whoever finishes the route */
    task_step step;
    arena memory;
    arena sent; /* params of what is under way */
    bay_str server;
    const auth_principal *principal; /* counted */
    bay_str identity;                /* whose entries are whose */
    bool is_session;                 /* of a client of the session revisions */
    bay_str id;                      /* the server's */
    bay_str token;                   /* the client's */
    bool wants_task;
    uint64_t progress_of;   /* the server's token of the call that began the task; 0 */
    bay_str progress_token; /* the client's, raw; empty: that of its request */
    bool is_run;            /* the client knows of no task: it gets the result itself */
    bool is_running;        /* the server has a task that nobody else waits for */
    uint32_t hold;
    bool is_over;
    json_val task; /* of tasks/get, while its result is fetched */
    task_waiter waiter;
    /* wait.c */
    loop_timer timer;
    uint32_t pace_ms;
    list asks; /* questions to the client, not answered yet */
    list keys; /* inputs that were asked for before */
    uint32_t key_count;
    bool is_asking;
    json_builder answers; /* inputResponses, once `has_answers` */
    bool has_answers;
};

/* What endpoint_tasks asks for, see there. */
/* Before a tools/call goes to `to`: makes its continuation, if it needs one. */
int task_admit(route *way, upstream *to, const catalog_entry *entry, bay_str *out_text);
/* `result` as it is where the route waits for no task. */
json_val task_answer(route *way, json_val result);
/* The continuation ends with its route: a task that ran for this client alone is cancelled. */
void task_end(route *way);

/* continuation.c */
/* NULL: out of memory. The route's events become the continuation's. */
task_continuation *task_continuation_new(route *way, bay_str server);
/* Sends the route's call anew; `params`, missing: {"taskId":…}, are in the continuation's `sent` or
 * outlive the call. */
void task_continuation_send(task_continuation *self, mcp_method_id method, json_val params);
/* The last word, for the client, where no outcome of the call says it. The continuation is held. */
void task_continuation_finish(task_continuation *self, const mcp_outcome *outcome);
void task_continuation_hold(task_continuation *self);
void task_continuation_let_go(task_continuation *self);
/* The client's last word is a failure of ours. */
void task_fail(mcp_outcome *out, bay_err err, const char *text);
/* An error object of ours. */
void task_error(task_continuation *self, mcp_outcome *out, int code, const char *text);
/* Begins a value of ours in the continuation's memory. */
json_writer *task_continuation_build(task_continuation *self, json_builder *made);
/* What was written becomes the result; without memory, a failure. */
void task_continuation_result(json_builder *made, mcp_outcome *out);
/* What the client and the extension can do, as clientCapabilities; empty: no memory. */
bay_str task_continuation_capabilities(task_continuation *self, const mcp_request *request);
bool task_client_has_extension(const mcp_request *request);
mcp_era task_server_era(const upstream *of);
bool task_server_has_extension(const upstream *of);
bool task_server_has_core(const upstream *of);
/* NULL: no memory. */
task_registry *task_endpoint_registry(endpoint *self);
uint64_t task_endpoint_now(const endpoint *self);

/* name.c: BAY_ERR_DENIED: none of ours, or not this principal's. */
typedef enum task_home {
    TASK_AT_LEGACY = 'l', /* a server of 2025-11-25 */
    TASK_AT_MODERN = 'm',
    TASK_AT_GATEWAY = 'g',
} task_home;
bay_err task_name_seal(const endpoint *of, const auth_principal *principal, task_home home,
                       bay_str server, bay_str id, arena *memory, bay_str *out) BAY_MUST_CHECK;
bay_err task_name_open(const endpoint *of, const auth_principal *principal, bay_str token,
                       arena *memory, task_home *out_home, bay_str *out_server,
                       bay_str *out_id) BAY_MUST_CHECK;

/* call.c: the server has made a task: takes its id and names it. False: `inout` says why not.
 */
bool task_adopt(task_continuation *self, json_val task, mcp_outcome *inout);
/* Keeps what tasks/list shows of it. */
void task_show(task_continuation *self, json_val task, mcp_era from, task_status status);

/* wait.c: looks at the task until it is over. */
void task_wait_begin(task_continuation *self);
void task_wait_end(task_continuation *self);

#endif
