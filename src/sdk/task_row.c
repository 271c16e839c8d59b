/* What is stored of a task while this process has it: its row, the lease on it, and the inbox that
 * other processes leave in the row. The loop's thread throughout.
 *
 * A row is only written over the version that was written or read last. Whoever finds another one
 * there reads it: inbox is acted on, and what another process has ended is not ours any more. */
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "sdk/task_parts.h"
#include "json/build.h"

static const bay_str rows_table = STR_INIT("tasks");
static const bay_str lease_table = STR_INIT("task owners");

static bay_str owner_of(const tasks *self)
{
    return (bay_str){self->owner, TASK_ID_BYTES};
}

/* It is not ours any more: whatever its handler still says is dropped. */
static void lose(task *self, const char *why)
{
    if (self->is_lost) {
        return;
    }
    LOG(LOG_WARN, "tasks", "task %s %s", self->id, why);
    self->is_lost = true;
    if (self->call != NULL) {
        sdk_call_give_up(self->call, &(call_note){.kind = NOTE_ERROR});
    }
}

/* ---- leases and inbox: only where the store is shared */

static void lease_looked_at(void *user, const store_result *result)
{
    task *self = user;
    if (result->err == BAY_ERR_BUSY) {
        lose(self, "is another process's now");
    }
    self->looking--;
    sdk_task_settle(self);
}

/* Also for a lease that ran out while this process was held up: as long as nobody else took the
 * task, it is still ours. */
void sdk_task_take_lease(task *self)
{
    tasks *of = self->of;
    if (of->is_shared && !self->is_lost) {
        self->looking += store_claim(of->store, lease_table, self->record.id, owner_of(of),
                                     TASK_LEASE_MS, lease_looked_at, self) == BAY_OK;
    }
}

static void let_go(void *user, const store_result *result)
{
    tasks *self = user;
    (void)result; /* at worst it runs out */
    self->doing--;
}

void sdk_task_leave_lease(tasks *self, bay_str id)
{
    if (self->is_shared) {
        self->doing +=
            store_release(self->store, lease_table, id, owner_of(self), let_go, self) == BAY_OK;
    }
}

static void inbox_arrived(void *user, const store_result *result)
{
    task *self = user;
    task_record row;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    bool is_ours = !self->is_saving && !self->is_lost && self->version != 0;
    if (is_ours && result->err == BAY_ERR_NOT_FOUND) {
        lose(self, "has expired");
    } else if (is_ours && result->err == BAY_OK && result->rows[0].version != self->version &&
               sdk_task_read_row(result->rows[0].value, self->of->ring, &memory, &row) == BAY_OK) {
        if (sdk_task_is_over(row.status)) {
            lose(self, "was ended by another process");
        } else {
            self->version = result->rows[0].version;
            self->is_dirty = true; /* what was read is taken out of the row */
            sdk_task_inbox_read(self, json_get(row.row, STR("mail")));
        }
    }
    if (self->is_dirty && !self->is_saving && is_ours) {
        sdk_task_save(self);
    }
    arena_fini(&memory);
    self->looking--;
    sdk_task_settle(self);
}

void sdk_task_inbox_look(task *self)
{
    tasks *of = self->of;
    if (of->is_shared && !self->is_saving && !self->is_lost && self->version != 0) {
        self->looking +=
            store_get(of->store, rows_table, self->record.id, inbox_arrived, self) == BAY_OK;
    }
}

/* ---- the client learns of it */

/* A new task as a CreateTaskResult, good until `made` is dropped. */
static bay_err build_seed(const task *self, json_builder *made, json_val *out)
{
    task_record seed = self->record;
    seed.status = TASK_WORKING;
    json_writer *to = json_builder_init(made, NULL, TASK_MAX_ROW);
    json_open_object(to);
    json_key_lit(to, "resultType");
    json_put_str(to, STR("task"));
    sdk_task_put(&seed, false, to);
    json_close_object(to);
    return json_builder_view(made, out);
}

/* Its request is answered with the task, and the handler of a new one runs. */
static void announce(task *self)
{
    static const bay_str no_memory = STR_INIT("Out of memory");
    bay_str none = {NULL, 0};
    mcp_request *request = self->waiting;
    json_builder made;
    json_val seed = JSON_NONE;
    self->waiting = NULL;
    bay_err err = build_seed(self, &made, &seed);
    if (self->call == NULL && err == BAY_OK) {
        mcp_request_result(request, seed);
    } else if (self->call == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, no_memory, none);
    } else if (request->is_cancelled) {
        sdk_task_cancel(self); /* nobody will ever ask for it */
    } else if (err == BAY_OK) {
        mcp_request_part_result(request, seed);
    } else {
        mcp_request_part_error(request, RPC_INTERNAL_ERROR, no_memory, none);
        sdk_task_cancel(self); /* likewise */
    }
    json_builder_drop(&made);
    if (self->is_new && self->call != NULL) {
        self->is_new = false;
        sdk_call_run(self->call);
    }
}

/* What it asked as a task is answered by nobody. */
static void end_questions(bay_call *call)
{
    bool was_running = call->is_running;
    atomic_fetch_add(&call->references, 1);
    call->is_running = true;
    LIST_EACH(link, &call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        if (one->state == QUESTION_ASKED) {
            sdk_call_question_answered(one, BAY_ERR_IO, JSON_NONE);
        }
    }
    if (was_running) {
        sdk_call_unref(call);
    } else {
        sdk_call_returned(call);
    }
}

/* What its handler said before it could be stored is the answer of a plain call. */
static void answer_plainly(const task *self, mcp_request *request, bay_str otherwise)
{
    task_status status = self->record.status;
    if (status == TASK_COMPLETED && self->outcome_value == NULL) {
        request->result_meta = self->outcome_meta;
        mcp_request_result_members(request, self->outcome_members);
    } else if (status == TASK_COMPLETED) {
        mcp_request_result(request, json_root(self->outcome_value));
    } else if (status == TASK_FAILED && self->outcome_value != NULL) {
        mcp_request_error_object(request, json_root(self->outcome_value));
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, otherwise, (bay_str){NULL, 0});
    }
}

/* The row could not be made, or perhaps it was: there is no task. */
static void renounce(task *self, bay_err err)
{
    static const bay_str text = STR_INIT("The task cannot be stored now");
    tasks *of = self->of;
    bay_call *call = self->call;
    mcp_request *request = self->waiting;
    log_write_paced(&of->complaints, loop_time_ms(), LOG_ERROR, "tasks",
                    "a task cannot be stored: %s", bay_err_text(err));
    self->waiting = NULL;
    self->is_lost = true;
    sdk_task_leave_lease(of, self->record.id);
    of->doing +=
        store_remove(of->store, rows_table, self->record.id, STORE_ANY, let_go, of) == BAY_OK;
    if (call == NULL) {
        answer_plainly(self, request, text);
        return;
    }
    self->call = NULL;
    call->task = NULL;
    call->sink = &sdk_request_sink; /* one that runs already goes on as a plain call */
    if (self->is_new) {
        bay_call_error(call, RPC_INTERNAL_ERROR, text.at);
    } else {
        end_questions(call);
    }
}

/* ---- the row */

static void write_requests(task *self)
{
    json_writer out;
    buf_clear(&self->requests);
    json_writer_init(&out, &self->requests);
    json_open_object(&out);
    if (self->call != NULL && self->record.status == TASK_INPUT_REQUIRED) {
        LIST_EACH(link, &self->call->questions)
        {
            const question *one = CONTAINER_OF(link, question, link);
            if (one->state == QUESTION_ASKED) {
                sdk_call_question_put(one, &out);
            }
        }
    }
    self->record.requests = str_from(buf_view(&self->requests), 1);
    if (self->answers != NULL) {
        self->record.answers = str_from(buf_view(&self->answers->text), 1);
    }
}

/* One that outgrew its bounds has failed: that can always be written. */
static bay_err write_row(task *self, buf *out)
{
    bool is_broken = false;
    write_requests(self);
    if (!sdk_task_is_over(self->record.status)) {
        is_broken = self->has_outgrown || self->requests.err == BAY_ERR_LIMIT;
    }
    if (!is_broken) {
        sdk_task_write_row(&self->record, self->of->ring, out);
        is_broken = out->err == BAY_ERR_LIMIT && self->version != 0;
    }
    if (is_broken) {
        self->record.message = (bay_str){NULL, 0};
        sdk_task_set_error(self, RPC_INTERNAL_ERROR,
                           STR("The task outgrew what can be kept of one"), JSON_NONE);
        if (self->call != NULL) {
            atomic_store(&self->call->is_cancelled, true);
        }
        buf_clear(out);
        sdk_task_write_row(&self->record, self->of->ring, out);
    }
    return self->requests.err != BAY_OK && !is_broken ? self->requests.err : out->err;
}

static void tell_failure(task *self, bay_err err)
{
    if (!self->has_failed) {
        log_write_paced(&self->of->complaints, loop_time_ms(), LOG_ERROR, "tasks",
                        "task %s cannot be stored: %s; again and again from now on", self->id,
                        bay_err_text(err));
    }
    self->has_failed = true;
}

static void saved(void *user, const store_result *result)
{
    task *self = user;
    self->looking++;
    self->is_saving = false;
    if (result->err == BAY_OK) {
        self->version = result->version;
        self->has_failed = false;
        if (self->waiting != NULL) {
            announce(self);
        }
        if (self->is_dirty) {
            sdk_task_save(self);
        }
    } else if (self->version == 0) {
        renounce(self, result->err);
    } else if (result->err == BAY_ERR_STATE && result->version == 0) {
        lose(self, "has expired");
    } else if (result->err == BAY_ERR_STATE) {
        self->is_dirty = true;
        sdk_task_inbox_look(self); /* then again */
    } else {
        self->is_dirty = true;
        tell_failure(self, result->err);
    }
    self->looking--;
    sdk_task_settle(self);
}

void sdk_task_save(task *self)
{
    if (self->is_saving || self->is_lost) {
        self->is_dirty = true;
        return;
    }
    buf row;
    buf_init(&row, TASK_MAX_ROW);
    self->record.updated_ms = loop_time_ms();
    bay_err err = write_row(self, &row);
    self->is_dirty = false;
    if (err == BAY_OK) {
        err = store_put(
            self->of->store,
            &(store_put_request){.table = rows_table,
                                 .key = self->record.id,
                                 .value = buf_view(&row),
                                 .expires_at_ms = self->record.created_ms + self->record.ttl_ms,
                                 .expected = self->version},
            saved, self);
    }
    buf_fini(&row);
    self->is_saving = err == BAY_OK;
    if (err != BAY_OK && self->version == 0) {
        renounce(self, err);
    } else if (err != BAY_OK) {
        self->is_dirty = true; /* at the next tick */
        tell_failure(self, err);
    }
}
