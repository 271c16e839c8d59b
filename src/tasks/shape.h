/* The two shapes of a task on the wire: the core's of 2025-11-25 ("legacy": ttl, pollInterval, a
 * nested `task`, the result fetched by tasks/result) and the extension's of 2026-07-28 ("modern":
 * ttlMs, pollIntervalMs, flat, the result inlined). Pure: JSON in, JSON out. Members that neither
 * shape gives another name go through byte for byte. */
#ifndef TASKS_SHAPE_H
#define TASKS_SHAPE_H

#include "mcp/protocol.h"
#include "json/writer.h"

#define TASK_RELATED "io.modelcontextprotocol/related-task"

typedef enum task_status {
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELLED,
    TASK_STATUSES, /* none of these */
} task_status;

bay_str task_status_text(task_status status);
/* TASK_STATUSES: it is no task, or in a state that no revision knows. */
task_status task_status_of(json_val task);
static inline bool task_is_over(task_status status)
{
    return status >= TASK_COMPLETED;
}

/* The task inside the answer to a tools/call; missing when it is no CreateTaskResult. */
json_val task_created(json_val result, mcp_era from);

/* Members of a Task, into an open object: `task` in the shape of `from`, written in that of `to`,
 * named `token`. `status`: what it says; TASK_STATUSES: as it stands. What the shapes carry beside
 * the task itself (result, error, inputRequests, _meta, resultType) is left out, unless both are
 * the same. */
void task_put(json_writer *out, json_val task, mcp_era from, mcp_era to, bay_str token,
              task_status status);

/* A whole CreateTaskResult; `result` is one in the shape of `from`. */
void task_write_created(json_writer *out, json_val result, mcp_era from, mcp_era to, bay_str token);

/* A whole result, its related task named `token`; empty: with no related task. */
void task_write_result(json_writer *out, json_val result, bay_str token);

/* The params of a question during a task, likewise; the wish that the answer be a task itself is
 * left out. Missing params are an empty object. */
void task_write_input_request(json_writer *out, json_val params, bay_str token);

/* Does a tool's result say that it failed? */
bool task_result_is_error(json_val result);

/* "2026-07-28T09:30:00.000Z". Units: ms since 1970. */
void task_put_time(json_writer *out, uint64_t at_ms);

#endif
