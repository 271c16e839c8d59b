/* tasks/get, tasks/update and tasks/cancel. Each begins with the row: a task that is not there, or
 * is another caller's, is unknown. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sdk/task_parts.h"
#include "json/writer.h"

enum { INBOX_ATTEMPTS = 8 }; /* when others write the same row meanwhile */

static const bay_str rows_table = STR_INIT("tasks");

/* One request, while the store looks. */
typedef struct task_store_lookup {
    tasks *of;
    mcp_request *request;
    uint32_t attempts;
} task_store_lookup;

static void task_methods_begin(task_store_lookup *self);

static void end(task_store_lookup *self)
{
    self->of->doing--;
    mem_free(self);
}

static void task_methods_refuse(task_store_lookup *self, int code, bay_str text)
{
    mcp_request_error(self->request, code, text, (bay_str){NULL, 0});
    end(self);
}

static void acknowledge(task_store_lookup *self)
{
    mcp_request_result_members(self->request, STR(""));
    end(self);
}

static void show(task_store_lookup *self, const task_record *row)
{
    buf members;
    buf_init(&members, TASK_MAX_ROW + 4096);
    json_writer writer;
    json_writer_init(&writer, &members);
    json_open_object(&writer);
    sdk_task_put(row, true, &writer);
    json_close_object(&writer);
    if (members.err == BAY_OK) { /* without the braces */
        mcp_request_result_members(self->request, (bay_str){members.at + 1, members.len - 2});
    } else {
        mcp_request_error(self->request, RPC_INTERNAL_ERROR, STR("Out of memory"),
                          (bay_str){NULL, 0});
    }
    buf_fini(&members);
    end(self);
}

/* ---- a task of another process: a letter in its row */

static void mailed(void *user, const store_result *result)
{
    task_store_lookup *self = user;
    if (result->err == BAY_ERR_STATE && ++self->attempts < INBOX_ATTEMPTS) {
        task_methods_begin(self);
    } else if (result->err == BAY_OK) {
        acknowledge(self);
    } else {
        task_methods_refuse(self, RPC_INTERNAL_ERROR,
                            STR("The task cannot be reached now; try again"));
    }
}

static void put_answers(json_writer *out, json_val old, json_val responses)
{
    json_key_lit(out, "answers");
    json_open_object(out);
    json_put_members(out, old, NULL, 0);
    json_iter each = json_iter_of(responses);
    while (json_next(&each)) {
        arena memory;
        bay_str key;
        arena_init(&memory, TASK_MAX_ROW);
        if (json_str(each.key, &memory, &key) == BAY_OK &&
            json_is(json_get(old, key), JSON_MISSING)) {
            json_key(out, key);
            json_put_val(out, each.value);
        }
        arena_fini(&memory);
    }
    json_close_object(out);
}

static void inbox(task_store_lookup *self, task_record *row, uint64_t version)
{
    bool is_cancel = self->request->method->id == MCP_TASKS_CANCEL;
    json_val old = json_get(row->row, STR("mail"));
    json_writer writer;
    buf members;
    buf_init(&members, TASK_MAX_ROW);
    json_writer_init(&writer, &members);
    json_open_object(&writer);
    if (is_cancel || json_true(json_get(old, STR("cancel")))) {
        json_key_lit(&writer, "cancel");
        json_put_bool(&writer, true);
    }
    json_val responses =
        is_cancel ? JSON_NONE : json_get(self->request->message.params, STR("inputResponses"));
    put_answers(&writer, json_get(old, STR("answers")), responses);
    json_close_object(&writer);
    row->inbox = members.err == BAY_OK ? (bay_str){members.at + 1, members.len - 2} : row->inbox;
    buf whole;
    buf_init(&whole, TASK_MAX_ROW);
    sdk_task_write_row(row, self->of->ring, &whole);
    bay_err err = members.err != BAY_OK ? members.err : whole.err;
    if (err == BAY_OK) {
        err = store_put(self->of->store,
                        &(store_put_request){.table = rows_table,
                                             .key = row->id,
                                             .value = buf_view(&whole),
                                             .expires_at_ms = row->created_ms + row->ttl_ms,
                                             .expected = version},
                        mailed, self);
    }
    buf_fini(&whole);
    buf_fini(&members);
    if (err != BAY_OK) {
        task_methods_refuse(self, RPC_INTERNAL_ERROR,
                            STR("The task cannot be reached now; try again"));
    }
}

/* ---- here */

static void act(task_store_lookup *self, task_record *row, const store_row *stored)
{
    task *live = sdk_tasks_find(self->of, row->id);
    bool is_over = sdk_task_is_over(row->status);
    if (live == NULL && !is_over) {
        sdk_task_adopt(self->of, row->id); /* if nobody else has it */
    }
    live = live != NULL && live->is_lost ? NULL : live;
    if (self->request->method->id == MCP_TASKS_GET) {
        show(self, row);
    } else if (is_over || (live == NULL && !self->of->is_shared)) {
        acknowledge(self); /* nothing to be done about it any more */
    } else if (live == NULL) {
        inbox(self, row, stored->version);
    } else if (self->request->method->id == MCP_TASKS_CANCEL) {
        sdk_task_cancel(live);
        acknowledge(self);
    } else {
        sdk_task_answer(live, json_get(self->request->message.params, STR("inputResponses")));
        acknowledge(self);
    }
}

static void found(void *user, const store_result *result)
{
    task_store_lookup *self = user;
    task_record row;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    bay_err err = result->err;
    if (err == BAY_OK) {
        err = sdk_task_read_row(result->rows[0].value, self->of->ring, &memory, &row);
    }
    if (err == BAY_OK && !str_eq(row.principal, principal_identity(self->request->principal))) {
        err = BAY_ERR_NOT_FOUND;
    }
    if (err == BAY_OK) {
        act(self, &row, &result->rows[0]);
    } else if (err == BAY_ERR_NOT_FOUND) {
        task_methods_refuse(self, RPC_INVALID_PARAMS, STR("Unknown task"));
    } else {
        task_methods_refuse(self, RPC_INTERNAL_ERROR,
                            STR("The store of tasks cannot be read now; try again"));
    }
    arena_fini(&memory);
}

static void task_methods_begin(task_store_lookup *self)
{
    bay_err err = store_get(self->of->store, rows_table, self->request->name, found, self);
    if (err == BAY_ERR_INVALID) {
        task_methods_refuse(self, RPC_INVALID_PARAMS, STR("Unknown task"));
    } else if (err != BAY_OK) {
        task_methods_refuse(self, RPC_INTERNAL_ERROR, STR("The store of tasks is busy; try again"));
    }
}

void sdk_tasks_request(bay_server *server, mcp_request *request)
{
    bay_str none = {NULL, 0};
    tasks *of = server->tasks;
    if (!sdk_task_is_wanted(request)) {
        mcp_request_error(
            request, MCP_MISSING_CAPABILITY, STR("Missing required client capability"),
            STR("{\"requiredCapabilities\":{\"extensions\":{\"" MCP_EXTENSION_TASKS "\":{}}}}"));
        return;
    }
    json_val responses = json_get(request->message.params, STR("inputResponses"));
    if (request->method->id == MCP_TASKS_UPDATE &&
        (!json_is(responses, JSON_OBJECT) || json_count(responses) > TASK_MAX_ANSWERS)) {
        mcp_request_error(request, RPC_INVALID_PARAMS,
                          STR("tasks/update needs inputResponses, an object of at most 1,024 "
                              "members"),
                          none);
        return;
    }
    if (of == NULL || request->name.len != TASK_ID_BYTES) {
        mcp_request_error(request, RPC_INVALID_PARAMS, STR("Unknown task"), none);
        return;
    }
    task_store_lookup *self = of->is_ending ? NULL : mem_zalloc(sizeof(*self));
    if (self == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR,
                          of->is_ending ? STR("The server is being stopped; try again later")
                                        : STR("Out of memory"),
                          none);
        return;
    }
    *self = (task_store_lookup){.of = of, .request = request};
    of->doing++;
    task_methods_begin(self);
}
