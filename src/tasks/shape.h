/* The two shapes of a task: 2025-11-25's core ("legacy": ttl, pollInterval, a nested `task`, the
 * result fetched by tasks/result) and 2026-07-28's extension ("modern": ttlMs, pollIntervalMs,
 * flat, the result inlined). Pure: JSON in, JSON out. Other members are copied unchanged. */
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
/* TASK_STATUSES: not a task, or in a state that no revision has. */
task_status task_status_of(json_val task);
static inline bool task_is_over(task_status status)
{
    return status >= TASK_COMPLETED;
}

/* The task in the answer to a tools/call; missing if it is no CreateTaskResult. */
json_val task_created(json_val result, mcp_era from);

/* Writes the members of a Task into an open object: `task` in the shape of `from`, converted to
 * that of `to`, with the id `token`. `status`: the new status; TASK_STATUSES: unchanged. Members
 * beside the task itself (result, error, inputRequests, _meta, resultType) are omitted unless both
 * shapes are the same. */
void task_put(json_writer *out, json_val task, mcp_era from, mcp_era to, bay_str token,
              task_status status);

/* A whole CreateTaskResult; `result` is one in the shape of `from`. */
void task_write_created(json_writer *out, json_val result, mcp_era from, mcp_era to, bay_str token);

/* A whole result with the related task `token`; empty: without a related task. */
void task_write_result(json_writer *out, json_val result, bay_str token);

/* The params of an input request during a task, likewise; a request for a task in return is
 * omitted. Missing params are an empty object. */
void task_write_input_request(json_writer *out, json_val params, bay_str token);

/* Whether a tool's result has isError. */
bool task_result_is_error(json_val result);

/* "2026-07-28T09:30:00.000Z". Units: ms since 1970. */
void task_put_time(json_writer *out, uint64_t at_ms);

#endif
