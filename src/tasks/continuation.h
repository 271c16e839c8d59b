/* Shared by the files of this module: continuations. A continuation belongs to a route, between its
 * call and the code that finishes it. Each outcome goes to the continuation's step first, which
 * either rewrites it for the client, or takes it and sends another call. Invariant: between two
 * steps exactly one thing is under way: the call, the timer, input requests to the client, or a
 * wait for a result_request. */
#ifndef TASKS_CONTINUATION_H
#define TASKS_CONTINUATION_H

#include "endpoint/endpoint_parts.h"
#include "tasks/registry.h"
#include "tasks/shape.h"
#include "tasks/task.h"
#include "json/build.h"

enum {
    TASK_ID_BYTES = 4096, /* a task with a longer id is refused */
    TASK_CONTINUATION_MEMORY = 1 << 30,
    TASK_PACE_MS = 1000, /* if the server names no interval */
    TASK_MIN_PACE_MS = 50,
    TASK_MAX_PACE_MS = 60000,
    TASK_KEYS = 1024, /* input requests of one task in its life: above it, the task is cancelled */
};

typedef struct task_continuation task_continuation;

/* True: taken; the route continues. False: the client gets `inout`, whose views live as long as the
 * continuation. */
typedef bool (*task_step)(task_continuation *self, mcp_outcome *inout);

struct task_continuation {
    route *way;
    endpoint *endpoint;
    const upstream_call_events *events; /* of the code that finishes the route */
    task_step step;
    arena memory;
    arena sent; /* params of the current call */
    bay_str server;
    const auth_principal *principal; /* counted */
    bay_str identity;                /* the owner of entries */
    bool is_session;                 /* the client uses a session revision */
    bay_str id;                      /* the id that the server gave the task */
    bay_str token;                   /* the token that the client gets */
    bool wants_task;
    uint64_t progress_of;   /* the server's progress token of the call that began it; 0: none */
    bay_str progress_token; /* the client's, raw; empty: that of its request */
    bool is_run;            /* the client knows of no task: it gets the result itself */
    bool is_running;        /* the server has a task that only this continuation waits for */
    uint32_t hold;
    bool is_over;
    json_val task; /* the answer to tasks/get, while its result is fetched */
    task_waiter waiter;
    /* wait.c */
    loop_timer timer;
    uint32_t pace_ms;
    list asks; /* open input requests to the client */
    list keys; /* keys of input requests that were sent before */
    uint32_t key_count;
    bool is_asking;
    json_builder answers; /* inputResponses, once `has_answers` */
    bool has_answers;
};

/* The functions of endpoint_tasks. */
/* Before a tools/call is sent to `to`: creates its continuation, if it needs one. */
int task_admit(route *way, upstream *to, const catalog_entry *entry, bay_str *out_text);
/* Returns `result` unchanged if the route does not wait for a task. */
json_val task_answer(route *way, json_val result);
/* Ends the continuation with its route: a task that ran for this client alone is cancelled. */
void task_end(route *way);

/* continuation.c */
/* NULL: out of memory. The continuation replaces the route's events. */
task_continuation *task_continuation_new(route *way, bay_str server);
/* Sends another call of the route. `params` (missing: {"taskId":…}) are in the continuation's
 * `sent` or outlive the call. */
void task_continuation_send(task_continuation *self, mcp_method_id method, json_val params);
/* Finishes the route with an outcome that is not the call's. The caller holds the continuation. */
void task_continuation_finish(task_continuation *self, const mcp_outcome *outcome);
void task_continuation_hold(task_continuation *self);
void task_continuation_let_go(task_continuation *self);
/* Makes an outcome of a failure in the gateway. */
void task_fail(mcp_outcome *out, bay_err err, const char *text);
/* Makes an outcome with an error object of the gateway. */
void task_error(task_continuation *self, mcp_outcome *out, int code, const char *text);
/* Begins a value in the continuation's memory. */
json_writer *task_continuation_build(task_continuation *self, json_builder *made);
/* Makes the written value the result; without memory, a failure. */
void task_continuation_result(json_builder *made, mcp_outcome *out);
/* The client's capabilities and the extension, as clientCapabilities; empty: out of memory. */
bay_str task_continuation_capabilities(task_continuation *self, const mcp_request *request);
bool task_client_has_extension(const mcp_request *request);
mcp_era task_server_era(const upstream *of);
bool task_server_has_extension(const upstream *of);
bool task_server_has_core(const upstream *of);
/* NULL: out of memory. */
task_registry *task_endpoint_registry(endpoint *self);
uint64_t task_endpoint_now(const endpoint *self);

/* name.c: BAY_ERR_DENIED: not a token of the gateway, or not of this principal. */
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

/* call.c: the server has created a task: stores its id and makes its token. False: `inout` has the
 * error. */
bool task_adopt(task_continuation *self, json_val task, mcp_outcome *inout);
/* Stores what tasks/list shows of it. */
void task_show(task_continuation *self, json_val task, mcp_era from, task_status status);

/* wait.c: polls the task until it is over. */
void task_wait_begin(task_continuation *self);
void task_wait_end(task_continuation *self);

#endif
