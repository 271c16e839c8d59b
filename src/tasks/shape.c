#include "tasks/shape.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"

static const bay_str status_texts[TASK_STATUSES] = {
    [TASK_WORKING] = STR_INIT("working"),     [TASK_INPUT_REQUIRED] = STR_INIT("input_required"),
    [TASK_COMPLETED] = STR_INIT("completed"), [TASK_FAILED] = STR_INIT("failed"),
    [TASK_CANCELLED] = STR_INIT("cancelled"),
};

bay_str task_status_text(task_status status)
{
    CHECK(status < TASK_STATUSES);
    return status_texts[status];
}

task_status task_status_of(json_val task)
{
    json_val status = json_get(task, STR("status"));
    for (int i = 0; i < TASK_STATUSES; i++) {
        if (json_str_eq(status, status_texts[i])) {
            return (task_status)i;
        }
    }
    return TASK_STATUSES;
}

json_val task_created(json_val result, mcp_era from)
{
    if (from == MCP_LEGACY) {
        json_val task = json_get(result, STR("task"));
        return json_is(json_get(task, STR("taskId")), JSON_STRING) ? task : JSON_NONE;
    }
    bool is_task = json_str_eq(json_get(result, STR("resultType")), STR("task")) &&
                   json_is(json_get(result, STR("taskId")), JSON_STRING);
    return is_task ? result : JSON_NONE;
}

static const struct {
    bay_str legacy;
    bay_str modern;
} renamed[] = {
    {STR_INIT("ttl"), STR_INIT("ttlMs")},
    {STR_INIT("pollInterval"), STR_INIT("pollIntervalMs")},
};

/* Members that the other shape lacks or names differently. The status comes last: it stays unless
 * another is given. */
static const bay_str other_members[] = {
    STR_INIT("taskId"),         STR_INIT("ttl"),
    STR_INIT("ttlMs"),          STR_INIT("pollInterval"),
    STR_INIT("pollIntervalMs"), STR_INIT("result"),
    STR_INIT("error"),          STR_INIT("inputRequests"),
    STR_INIT("requestState"),   STR_INIT("resultType"),
    STR_INIT("_meta"),          STR_INIT("status"),
};
static const bay_str own_members[] = {STR_INIT("taskId"), STR_INIT("status")};

void task_put(json_writer *out, json_val task, mcp_era from, mcp_era to, bay_str token,
              task_status status)
{
    bool has_status = status != TASK_STATUSES;
    json_key_lit(out, "taskId");
    json_put_str(out, token);
    if (has_status) {
        json_key_lit(out, "status");
        json_put_str(out, task_status_text(status));
    }
    if (from == to) {
        json_put_members(out, task, own_members, ARRAY_LEN(own_members) - (has_status ? 0 : 1));
        return;
    }
    json_put_members(out, task, other_members, ARRAY_LEN(other_members) - (has_status ? 0 : 1));
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
        json_val value = json_get(task, from == MCP_LEGACY ? renamed[i].legacy : renamed[i].modern);
        bay_str name = to == MCP_LEGACY ? renamed[i].legacy : renamed[i].modern;
        if (!json_is(value, JSON_MISSING)) {
            json_key(out, name);
            json_put_val(out, value);
        } else if (i == 0) { /* required by both shapes */
            json_key(out, name);
            json_put_null(out);
        }
    }
}

/* `_meta` with the related task `token`, or without one; omitted if empty. */
static void put_meta(json_writer *out, json_val meta, bay_str token)
{
    static const bay_str related = STR_INIT(TASK_RELATED);
    bool has_others = json_count(meta) > 1 ||
                      (json_count(meta) == 1 && json_is(json_get(meta, related), JSON_MISSING));
    if (!has_others && token.len == 0) {
        return;
    }
    json_key_lit(out, "_meta");
    json_open_object(out);
    json_put_members(out, meta, &related, 1);
    if (token.len > 0) {
        json_key(out, related);
        json_open_object(out);
        json_key_lit(out, "taskId");
        json_put_str(out, token);
        json_close_object(out);
    }
    json_close_object(out);
}

void task_write_created(json_writer *out, json_val result, mcp_era from, mcp_era to, bay_str token)
{
    static const bay_str nested[] = {STR_INIT("task"), STR_INIT("_meta")};
    json_open_object(out);
    json_val task = task_created(result, from);
    if (to == MCP_LEGACY) {
        json_key_lit(out, "task");
        json_open_object(out);
        task_put(out, task, from, to, token, TASK_STATUSES);
        json_close_object(out);
        if (from == MCP_LEGACY) {
            json_put_members(out, result, nested, ARRAY_LEN(nested));
        }
    } else if (from == MCP_LEGACY) {
        json_key_lit(out, "resultType");
        json_put_str(out, STR("task"));
        task_put(out, task, from, to, token, TASK_STATUSES);
    } else {
        task_put(out, task, from, to, token, TASK_STATUSES); /* including _meta */
        json_close_object(out);
        return;
    }
    json_val meta = json_get(result, STR("_meta"));
    bool is_named = from == MCP_LEGACY && to == MCP_LEGACY &&
                    !json_is(json_get(meta, STR(TASK_RELATED)), JSON_MISSING);
    put_meta(out, meta, is_named ? token : (bay_str){NULL, 0});
    json_close_object(out);
}

static void write_object(json_writer *out, json_val object, bay_str token, const bay_str *except,
                         size_t count)
{
    json_open_object(out);
    json_put_members(out, object, except, count);
    put_meta(out, json_get(object, STR("_meta")), token);
    json_close_object(out);
}

void task_write_result(json_writer *out, json_val result, bay_str token)
{
    static const bay_str meta = STR_INIT("_meta");
    write_object(out, result, token, &meta, 1);
}

void task_write_input_request(json_writer *out, json_val params, bay_str token)
{
    static const bay_str left_out[] = {STR_INIT("_meta"), STR_INIT("task")};
    write_object(out, params, token, left_out, ARRAY_LEN(left_out));
}

bool task_result_is_error(json_val result)
{
    return json_true(json_get(result, STR("isError")));
}

void task_put_time(json_writer *out, uint64_t at_ms)
{
    char text[64];
    struct tm parts;
    time_t seconds = (time_t)(at_ms / 1000);
    gmtime_r(&seconds, &parts);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, sizeof(text) - len, ".%03uZ", (unsigned)(at_ms % 1000));
    json_put_str(out, str_of(text));
}
