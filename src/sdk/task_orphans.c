/* Tasks that are under way while nobody has the lease on them: their process died. Whoever claims
 * the lease reads the row once more, since its last owner may have ended it meanwhile, and then
 * runs its handler again, or has it fail. The loop's thread throughout. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/task_parts.h"

static const bay_str rows_table = STR_INIT("tasks");
static const bay_str lease_table = STR_INIT("task owners");

typedef struct orphan {
    tasks *of;
    bay_str id; /* in `bytes` */
    char bytes[TASK_ID_BYTES];
} orphan;

/* ---- its handler runs again */

/* A copy of a value of the row, also for the record. */
static bay_err keep(task *self, json_val value, json_val *out, bay_str *out_text)
{
    bay_err err = json_clone_in(value, &self->memory, out);
    if (err == BAY_OK) {
        *out_text = json_raw(*out);
    }
    return err;
}

/* Everything a handler may look at, from the row. */
static bay_err keep_request(task *self, json_val row)
{
    json_val capabilities = JSON_NONE;
    json_val info = JSON_NONE;
    task_record *record = &self->record;
    bay_err err = keep(self, json_get(row, STR("arguments")), &self->arguments, &record->arguments);
    if (err == BAY_OK) {
        err = keep(self, json_get(row, STR("capabilities")), &capabilities, &record->capabilities);
    }
    if (err == BAY_OK) {
        err = keep(self, json_get(row, STR("clientInfo")), &info, &record->client_info);
    }
    if (err == BAY_OK) {
        err = json_clone_in(json_get(row, STR("requests")), &self->memory, &self->asked_before);
    }
    self->request = (mcp_request){.client_info = info, .client_capabilities = capabilities};
    return err;
}

static bay_err make_request(task *self, const entry *tool)
{
    mcp_request *request = &self->request;
    request->server = self->of->server->engine;
    request->revision = mcp_revision_of(MCP_LATEST);
    request->method = mcp_method_of(MCP_TOOLS_CALL);
    request->name = tool->key;
    request->log_level = MCP_LOG_NONE;
    request->memory = &self->memory;
    return principal_of_identity(self->record.principal, &request->principal);
}

static void task_orphans_fail(task *self, int code, bay_str text)
{
    sdk_task_set_error(self, code, text, JSON_NONE);
    sdk_task_save(self);
}

/* The program may be a newer one, with another idea of the arguments. */
static bay_err check_arguments(task *self, const entry *tool)
{
    buf complaint;
    buf_init(&complaint, SCHEMA_FAILURE_BYTES * 2);
    bay_err err = sdk_arguments_check(tool, self->arguments, &complaint);
    buf_fini(&complaint);
    return err;
}

static void run_again(task *self, const entry *tool)
{
    bay_call *call = NULL;
    bay_err err = make_request(self, tool);
    if (err == BAY_OK) {
        err = check_arguments(self, tool);
    }
    if (err == BAY_OK) {
        err = sdk_call_new(self->of->server, tool, &self->request, &call);
    }
    if (err == BAY_ERR_INVALID) {
        task_orphans_fail(self, RPC_INVALID_PARAMS,
                          STR("The arguments do not fit the tool any more"));
        return;
    }
    if (err != BAY_OK) {
        task_orphans_fail(self, RPC_INTERNAL_ERROR, STR("The task cannot be run again"));
        return;
    }
    memcpy(call->task_id, self->id, TASK_ID_BYTES + 1);
    atomic_store(&call->is_task, true);
    call->arguments = self->arguments;
    call->task = self;
    call->sink = &sdk_task_sink;
    self->call = call;
    self->record.status = TASK_WORKING;
    LOG(LOG_INFO, "tasks", "task %s runs again", self->id);
    sdk_call_run(call);
}

/* ---- it is taken over */

static void go_on(task *self, json_val inbox)
{
    const entry *tool = map_get(&self->of->server->lists[ENTRY_TOOL].by_key, self->record.tool);
    self->looking++;
    sdk_task_inbox_read(self, inbox);
    if (sdk_task_is_over(self->record.status)) {
        /* it was cancelled by inbox */
    } else if (tool != NULL && tool->is_resumable) {
        run_again(self, tool);
    } else {
        task_orphans_fail(self, RPC_INTERNAL_ERROR,
                          STR("The server ended while this task was under way"));
    }
    self->looking--;
    sdk_task_settle(self);
}

/* NULL: it cannot be, for now. */
static task *task_orphans_take(tasks *of, const store_row *row, const task_record *record)
{
    task *self = sdk_task_new(of, NULL);
    if (self == NULL) {
        return NULL;
    }
    memcpy(self->id, row->key.at, TASK_ID_BYTES);
    self->version = row->version;
    self->record = *record;
    self->record.id = (bay_str){self->id, TASK_ID_BYTES};
    self->record.row = JSON_NONE; /* it ends before the task */
    self->record.arguments = self->record.capabilities = self->record.client_info = (bay_str){0};
    sdk_task_keep_answers(self, json_get(record->row, STR("answers")));
    if (self->has_outgrown || sdk_task_keep_texts(self) != BAY_OK ||
        keep_request(self, record->row) != BAY_OK || sdk_task_enlist(self) != BAY_OK) {
        sdk_task_free(self);
        return NULL;
    }
    return self;
}

static void orphan_read(void *user, const store_result *result)
{
    orphan *found = user;
    tasks *of = found->of;
    task_record record;
    arena memory;
    task *self = NULL;
    arena_init(&memory, SIZE_MAX);
    of->doing--;
    if (sdk_tasks_find(of, found->id) != NULL) {
        goto done; /* it was found twice */
    }
    if (result->err == BAY_OK && !of->is_ending &&
        sdk_task_read_row(result->rows[0].value, of->ring, &memory, &record) == BAY_OK &&
        str_eq(record.id, found->id) && !sdk_task_is_over(record.status)) {
        self = task_orphans_take(of, &result->rows[0], &record);
    }
    if (self != NULL) {
        go_on(self, json_get(record.row, STR("mail")));
    } else {
        sdk_task_leave_lease(of, found->id);
    }
done:
    arena_fini(&memory);
    mem_free(found);
}

static void orphan_claimed(void *user, const store_result *result)
{
    orphan *found = user;
    tasks *of = found->of;
    bay_err err = result->err;
    if (err == BAY_OK) {
        err = store_get(of->store, rows_table, found->id, orphan_read, found);
    }
    if (err != BAY_OK) { /* somebody has it; or it will be found again */
        of->doing--;
        mem_free(found);
    }
}

void sdk_task_adopt(tasks *self, bay_str id)
{
    if (!self->is_shared || self->is_ending || id.len != TASK_ID_BYTES ||
        sdk_tasks_find(self, id) != NULL) {
        return;
    }
    orphan *found = mem_alloc(sizeof(*found));
    if (found == NULL) {
        return; /* it will be found again */
    }
    found->of = self;
    memcpy(found->bytes, id.at, TASK_ID_BYTES);
    found->id = (bay_str){found->bytes, TASK_ID_BYTES};
    bay_str owner = {self->owner, TASK_ID_BYTES};
    if (store_claim(self->store, lease_table, found->id, owner, TASK_LEASE_MS, orphan_claimed,
                    found) != BAY_OK) {
        mem_free(found);
        return;
    }
    self->doing++;
}

/* ---- all of them */

static void scanned(void *user, const store_result *result);

static void scan_after(tasks *self, bay_str after)
{
    self->is_scanning = store_scan(self->store, rows_table, (bay_str){NULL, 0}, after,
                                   TASK_SCAN_ROWS, scanned, self) == BAY_OK;
    self->doing += self->is_scanning;
}

static void scanned(void *user, const store_result *result)
{
    tasks *self = user;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    self->doing--;
    self->is_scanning = false;
    for (size_t i = 0; result->err == BAY_OK && i < result->count; i++) {
        task_record row;
        if (sdk_task_read_row(result->rows[i].value, self->ring, &memory, &row) == BAY_OK &&
            !sdk_task_is_over(row.status)) {
            sdk_task_adopt(self, result->rows[i].key);
        }
        arena_reset(&memory);
    }
    if (result->err == BAY_OK && result->has_more && result->count > 0 && !self->is_ending) {
        scan_after(self, result->rows[result->count - 1].key);
    }
    arena_fini(&memory);
}

void sdk_tasks_scan(tasks *self)
{
    if (self->is_shared && !self->is_scanning && !self->is_ending) {
        scan_after(self, (bay_str){NULL, 0});
    }
}
