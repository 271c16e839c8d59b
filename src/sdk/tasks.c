/* The tasks of this process: from the call that becomes one to its last word in the store; leases,
 * orphans, the end of the process. The loop's thread throughout. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/task_parts.h"
#include "json/writer.h"

static const bay_str rows_table = STR_INIT("tasks");
static const bay_str lease_table = STR_INIT("task owners");

static void save(task *self);

static void draw_id(char *out)
{
    unsigned char bytes[TASK_ID_BYTES / 2];
    rand_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

static bay_str owner_of(const tasks *self)
{
    return (bay_str){self->owner, TASK_ID_BYTES};
}

task *sdk_tasks_find(const tasks *self, bay_str id)
{
    return map_get(&self->by_id, id);
}

static void task_free(task *self)
{
    if (list_holds(&self->link)) {
        list_remove(&self->link);
        (void)map_remove(&self->of->by_id, self->record.id);
        self->of->live_count--;
    }
    buf_fini(&self->answers);
    buf_fini(&self->outcome);
    buf_fini(&self->requests);
    arena_fini(&self->memory);
    mem_free(self);
}

static void free_if_done(task *self)
{
    bool is_settled = !self->is_saving && (!self->is_dirty || self->is_lost) && self->looking == 0;
    if (self->call == NULL && self->waiting == NULL && is_settled) {
        task_free(self);
    }
}

/* ---- leases and mail: only where the store is shared */

static void lease_looked_at(void *user, const store_result *result)
{
    task *self = user;
    self->looking--;
    if ((result->err == BAY_STATE || result->err == BAY_BUSY) && !self->is_lost) {
        LOG(LOG_WARN, "tasks", "task %s is another process's now", self->id);
        self->is_lost = true;
        if (self->call != NULL) {
            sdk_call_give_up(self->call, &(call_note){.kind = NOTE_ERROR});
        }
    }
    free_if_done(self);
}

static void lease_let_go(void *user, const store_result *result)
{
    (void)user;
    (void)result; /* at worst it runs out */
}

static void take_lease(task *self, bool is_first)
{
    tasks *of = self->of;
    if (!of->is_shared || self->is_lost) {
        return;
    }
    bay_err err = is_first ? store_claim(of->store, lease_table, self->record.id, owner_of(of),
                                         TASK_LEASE_MS, lease_looked_at, self)
                           : store_renew(of->store, lease_table, self->record.id, owner_of(of),
                                         TASK_LEASE_MS, lease_looked_at, self);
    self->looking += err == BAY_OK;
}

static void leave_lease(task *self)
{
    tasks *of = self->of;
    if (of->is_shared) {
        err_ignore(store_release(of->store, lease_table, self->record.id, owner_of(of),
                                 lease_let_go, NULL));
    }
}

static void mail_arrived(void *user, const store_result *result)
{
    task *self = user;
    self->looking--;
    task_record row;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    bool is_row = result->err == BAY_OK && !self->is_saving && !self->is_lost &&
                  sdk_task_read_row(result->rows[0].value, &memory, &row) == BAY_OK;
    if (is_row && result->rows[0].version != self->version) {
        self->version = result->rows[0].version;
        self->is_dirty = true; /* what was read is taken out of the row */
        json_doc doc;
        buf text;
        buf_init(&text, TASK_MAX_ROW);
        buf_printf(&text, "{%.*s}", BAY_STR(row.mail));
        if (text.err == BAY_OK &&
            json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK) {
            json_val mail = json_root(&doc);
            sdk_task_answer(self, json_get(mail, STR("answers")));
            if (json_true(json_get(mail, STR("cancel")))) {
                sdk_task_cancel(self);
            }
        }
        buf_fini(&text);
        if (self->is_dirty) {
            save(self);
        }
    } else if (result->err == BAY_NOTFOUND && self->version != 0 && !self->is_saving) {
        self->is_lost = true; /* expired */
    }
    arena_fini(&memory);
    free_if_done(self);
}

static void look_for_mail(task *self)
{
    tasks *of = self->of;
    if (of->is_shared && !self->is_saving && !self->is_lost && self->version != 0) {
        self->looking +=
            store_get(of->store, rows_table, self->record.id, mail_arrived, self) == BAY_OK;
    }
}

/* ---- what is stored */

static void write_requests(task *self)
{
    buf_clear(&self->requests);
    if (self->call != NULL && self->record.status == TASK_INPUT_REQUIRED) {
        LIST_EACH(link, &self->call->questions)
        {
            const question *one = CONTAINER_OF(link, question, link);
            if (one->state == QUESTION_ASKED) {
                buf_lit(&self->requests, ",");
                json_quote(&self->requests, one->key);
                buf_lit(&self->requests, ":{\"method\":");
                json_quote(&self->requests, sdk_call_question_method(one)->text);
                buf_lit(&self->requests, ",\"params\":");
                buf_str(&self->requests, one->params);
                buf_char(&self->requests, '}');
            }
        }
    }
    self->record.requests = str_from(buf_view(&self->requests), 1);
    self->record.answers = str_from(buf_view(&self->answers), 1);
}

/* The client's request is answered with the task. */
static void announce(task *self)
{
    mcp_request *request = self->waiting;
    json_doc doc;
    buf text;
    arena memory;
    self->waiting = NULL;
    buf_init(&text, TASK_MAX_ROW);
    arena_init(&memory, SIZE_MAX);
    buf_lit(&text, "{\"resultType\":\"task\",");
    task_record seed = self->record;
    seed.status = TASK_WORKING;
    sdk_task_write_members(&seed, false, &text);
    buf_char(&text, '}');
    bay_err err = text.err;
    if (err == BAY_OK) {
        err = json_parse(&doc, buf_view(&text), NULL, &memory, NULL);
    }
    if (self->call == NULL && err == BAY_OK) {
        mcp_request_result(request, json_root(&doc));
    } else if (self->call == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
    } else if (request->is_cancelled) {
        sdk_task_cancel(self); /* nobody will ever ask for it */
    } else if (err == BAY_OK) {
        mcp_request_part_result(request, json_root(&doc));
    } else {
        mcp_request_part_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"),
                               (bay_str){NULL, 0});
    }
    arena_fini(&memory);
    buf_fini(&text);
    if (self->is_new && self->call != NULL) {
        self->is_new = false;
        sdk_call_run(self->call);
    }
}

/* The row could not be made: there is no task. */
static void renounce(task *self, bay_err err)
{
    static const bay_str text = STR_INIT("The task cannot be stored now");
    bay_call *call = self->call;
    mcp_request *request = self->waiting;
    LOG(LOG_ERROR, "tasks", "a task cannot be stored: %s", bay_err_text(err));
    self->waiting = NULL;
    self->is_lost = true;
    leave_lease(self);
    if (call == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, text, (bay_str){NULL, 0});
        return;
    }
    self->call = NULL;
    call->task = NULL;
    call->sink = &sdk_request_sink; /* one that runs already goes on as a plain call */
    if (self->is_new) {
        bay_call_error(call, RPC_INTERNAL_ERROR, text.at);
    }
}

static void saved(void *user, const store_result *result)
{
    task *self = user;
    self->is_saving = false;
    if (result->err == BAY_OK) {
        self->version = result->version;
    }
    if (result->err != BAY_OK && self->version == 0) {
        renounce(self, result->err);
    } else if (result->err == BAY_STATE) {
        self->is_dirty = true;
        look_for_mail(self); /* then again */
    } else if (result->err != BAY_OK) {
        LOG(LOG_ERROR, "tasks", "task %s cannot be stored: %s; once more soon", self->id,
            bay_err_text(result->err));
        self->is_dirty = !self->of->is_ending;
    } else {
        if (self->waiting != NULL) {
            announce(self);
        }
        if (self->is_dirty) {
            save(self);
        } else if (self->call == NULL && sdk_task_is_over(self->record.status)) {
            leave_lease(self);
        }
    }
    free_if_done(self);
}

static void save(task *self)
{
    if (self->is_saving || self->is_lost) {
        self->is_dirty = true;
        return;
    }
    buf row;
    buf_init(&row, TASK_MAX_ROW);
    self->record.updated_ms = loop_time_ms();
    write_requests(self);
    sdk_task_write_row(&self->record, &row);
    if (row.err == BAY_LIMIT) {
        self->record.status = TASK_FAILED;
        self->record.outcome =
            STR("{\"code\":-32603,\"message\":\"The result is larger than a task may be\"}");
        buf_clear(&row);
        sdk_task_write_row(&self->record, &row);
    }
    self->is_dirty = false;
    bay_err err = row.err;
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
    }
}

/* ---- where the call's words go */

static void set_outcome(task *self, const call_note *note)
{
    buf *out = &self->outcome;
    if (sdk_task_is_over(self->record.status)) {
        return;
    }
    buf_clear(out);
    self->record.status = TASK_COMPLETED;
    if (note->kind == NOTE_RESULT) {
        buf_lit(out, "{\"resultType\":\"complete\"");
        buf_str(out, note->text.len > 0 ? STR(",") : STR(""));
        buf_str(out, note->text);
        buf_char(out, '}');
    } else if (note->kind == NOTE_OBJECT) {
        buf_str(out, note->text);
    } else {
        self->record.status = TASK_FAILED;
        buf_printf(out, "{\"code\":%lld,\"message\":", (long long)note->code);
        json_quote(out, note->text);
        if (note->data.len > 0) {
            buf_lit(out, ",\"data\":");
            buf_str(out, note->data);
        }
        buf_char(out, '}');
    }
    self->record.outcome = buf_view(out);
    if (out->err != BAY_OK) {
        self->record.status = TASK_FAILED;
        self->record.outcome =
            STR("{\"code\":-32603,\"message\":\"The result is larger than a task may be\"}");
    }
}

static void sink_answer(bay_call *call, const call_note *note)
{
    task *self = call->task;
    mcp_request *request = call->request;
    bool was_over = sdk_task_is_over(self->record.status);
    set_outcome(self, note);
    self->call = NULL;
    call->task = NULL;
    if (request == &self->request) {
        /* ours */
    } else if (request == self->waiting) {
        request->user = NULL;
    } else {
        mcp_request_result_members(request, STR("")); /* it was answered long ago */
    }
    if (!was_over || self->is_dirty) {
        save(self);
    }
    free_if_done(self);
}

static void sink_part(bay_call *call, const call_note *note)
{
    task *self = call->task;
    if (!sdk_task_is_over(self->record.status)) {
        set_outcome(self, note);
        save(self);
    }
    LIST_EACH(link, &call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        if (one->state == QUESTION_ASKED) {
            sdk_call_question_answered(one, BAY_CANCELLED, JSON_NONE);
        }
    }
}

static bay_err sink_message(bay_call *call, const call_note *note)
{
    task *self = call->task;
    if (note->kind == NOTE_TASK_STATUS && !sdk_task_is_over(self->record.status)) {
        size_t len =
            note->text.len < sizeof(self->message) ? note->text.len : sizeof(self->message);
        while (len < note->text.len && len > 0 &&
               ((unsigned char)note->text.at[len] & 0xc0) == 0x80) {
            len--; /* not in the middle of a character */
        }
        memcpy(self->message, note->text.at, len);
        self->record.message = (bay_str){self->message, len};
        save(self);
    }
    return BAY_OK;
}

static void sink_ask(bay_call *call, question *one)
{
    task *self = call->task;
    arena memory;
    json_doc doc;
    buf text;
    arena_init(&memory, SIZE_MAX);
    buf_init(&text, TASK_MAX_ROW);
    buf_printf(&text, "{%.*s}", BAY_STR(str_from(buf_view(&self->answers), 1)));
    json_val given = JSON_NONE;
    if (text.err == BAY_OK && json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK) {
        given = json_get(json_root(&doc), one->key);
    }
    if (!json_is(given, JSON_MISSING)) {
        sdk_call_question_answered(one, BAY_OK, given); /* before the process died */
    } else {
        one->state = QUESTION_ASKED;
        self->record.status = TASK_INPUT_REQUIRED;
        save(self);
    }
    buf_fini(&text);
    arena_fini(&memory);
}

static void sink_pause(bay_call *call)
{
    (void)call; /* a task's questions are never OPEN */
}

const call_sink sdk_task_sink = {
    .answer = sink_answer,
    .part = sink_part,
    .message = sink_message,
    .ask = sink_ask,
    .pause = sink_pause,
};

/* ---- what clients do to it */

static question *answerable(task *self, json_val responses, json_val *out)
{
    if (self->call == NULL) {
        return NULL;
    }
    LIST_EACH(link, &self->call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        *out = json_get(responses, one->key);
        if (one->state == QUESTION_ASKED && !json_is(*out, JSON_MISSING) &&
            sdk_call_question_check(one, *out) == BAY_OK) {
            return one;
        }
    }
    return NULL;
}

void sdk_task_answer(task *self, json_val responses)
{
    json_val response;
    question *one;
    bool is_any = false;
    self->looking++; /* it stays, whatever the handler does */
    while ((one = answerable(self, responses, &response)) != NULL) {
        buf_char(&self->answers, ',');
        json_quote(&self->answers, one->key);
        buf_char(&self->answers, ':');
        buf_str(&self->answers, json_raw(response));
        is_any = true;
        if (!sdk_task_is_over(self->record.status)) {
            self->record.status = TASK_WORKING; /* unless others are still open, see below */
        }
        sdk_call_question_answered(one, BAY_OK, response);
    }
    if (is_any && self->call != NULL && self->record.status == TASK_WORKING &&
        sdk_call_questions_has(self->call, QUESTION_ASKED)) {
        self->record.status = TASK_INPUT_REQUIRED;
    }
    if (is_any) {
        save(self);
    }
    self->looking--;
    free_if_done(self);
}

void sdk_task_cancel(task *self)
{
    if (sdk_task_is_over(self->record.status)) {
        return;
    }
    self->record.status = TASK_CANCELLED;
    save(self);
    if (self->call != NULL) {
        sdk_call_give_up(self->call, &(call_note){.kind = NOTE_ERROR});
    }
}

/* ---- how they begin */

static task *task_new(tasks *of, bay_call *call)
{
    task *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->of = of;
    self->call = call;
    arena_init(&self->memory, TASK_MAX_ROW * 4);
    buf_init(&self->answers, TASK_MAX_ROW);
    buf_init(&self->outcome, TASK_MAX_ROW);
    buf_init(&self->requests, TASK_MAX_ROW);
    return self;
}

static bay_err enlist(task *self)
{
    bay_err err = map_put(&self->of->by_id, self->record.id, self, NULL);
    if (err == BAY_OK) {
        list_push(&self->of->live, &self->link);
        self->of->live_count++;
        err_ignore(loop_timer_start(self->of->server->loop, &self->of->tick, TASK_TICK_MS));
    }
    return err;
}

/* The call becomes a task: its row is on its way. False: it cannot. */
static bool begin(bay_call *call, bool is_new)
{
    tasks *of = call->server->tasks;
    task *self = of != NULL && !of->is_ending ? task_new(of, call) : NULL;
    if (self == NULL) {
        return false;
    }
    uint64_t now = loop_time_ms();
    memcpy(self->id, call->task_id, TASK_ID_BYTES);
    self->is_new = is_new;
    self->record =
        (task_record){.id = {self->id, TASK_ID_BYTES},
                      .tool = call->entry->key,
                      .principal = call->request->principal,
                      .arguments = json_raw(call->arguments),
                      .capabilities = json_raw(call->request->client_capabilities),
                      .client_info = json_raw(call->request->client_info),
                      .created_ms = now,
                      .ttl_ms = (uint32_t)sdk_server_setting(call->server, BAY_TASK_TTL_MS),
                      .poll_ms = (uint32_t)sdk_server_setting(call->server, BAY_TASK_POLL_MS)};
    /* Views of the call end with it; the row is written until later. */
    bay_str *texts[] = {&self->record.principal, &self->record.arguments,
                        &self->record.capabilities, &self->record.client_info};
    bool is_kept = true;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        is_kept = is_kept &&
                  (texts[i]->len == 0 || arena_dup(&self->memory, *texts[i], texts[i]) == BAY_OK);
    }
    if (!is_kept || enlist(self) != BAY_OK) {
        task_free(self);
        return false;
    }
    self->waiting = call->request;
    call->task = self;
    call->sink = &sdk_task_sink;
    take_lease(self, true);
    save(self);
    free_if_done(self);
    return true;
}

void sdk_task_start(bay_call *call)
{
    draw_id(call->task_id);
    tasks *of = call->server->tasks;
    if (of == NULL || of->live_count >= sdk_server_setting(call->server, BAY_MAX_TASKS)) {
        call->task_id[0] = '\0';
        bay_call_fail(call, "The server has as many tasks as it can hold; try again later.");
    } else if (!begin(call, true)) {
        call->task_id[0] = '\0';
        bay_call_error(call, RPC_INTERNAL_ERROR, "The task cannot be begun now");
    }
}

bool sdk_task_is_wanted(const mcp_request *request)
{
    return request->revision->era == MCP_MODERN &&
           json_is(
               mcp_capability(request->client_capabilities, STR("extensions." MCP_EXTENSION_TASKS)),
               JSON_OBJECT);
}

static void become(void *argument)
{
    bay_call *call = argument;
    if (!call->is_delivered && !call->is_parted && call->task == NULL && !begin(call, false)) {
        call->task_id[0] = '\0';
        LOG(LOG_ERROR, "tasks", "\"%.*s\" cannot become a task; it goes on as a plain call",
            BAY_STR(call->entry->key));
    }
    sdk_call_unref(call);
}

bool bay_call_become_task(bay_call *call)
{
    if (call->task_id[0] != '\0') {
        return true;
    }
    const bay_server *server = call->server;
    if (call->entry->kind != ENTRY_TOOL || call->entry->task_mode == BAY_TASK_NEVER ||
        !sdk_task_is_wanted(call->request) || server->tasks == NULL ||
        atomic_load(&call->is_finished) || atomic_load(&call->is_cancelled)) {
        return false;
    }
    draw_id(call->task_id);
    atomic_fetch_add(&call->references, 1);
    call->begin_task = (loop_message){.function = become, .argument = call};
    if (sdk_call_on_loop(call)) {
        become(call);
    } else if (loop_post_message(server->loop, &call->begin_task) != BAY_OK) {
        call->task_id[0] = '\0';
        sdk_call_unref(call);
    }
    return call->task_id[0] != '\0';
}

bay_str bay_call_task(bay_call *call)
{
    return str_of(call->task_id);
}

/* ---- orphans */

typedef struct orphan {
    tasks *of;
    uint64_t version;
    size_t len;
    char row[];
} orphan;

static const entry *tool_named(const bay_server *server, bay_str name)
{
    return map_get(&server->lists[ENTRY_TOOL].by_key, name);
}

static bay_err read_object(task *self, bay_str text, json_doc *out)
{
    return text.len > 0 ? json_parse(out, text, NULL, &self->memory, NULL) : BAY_OK;
}

/* Everything a handler may look at, from the row. */
static bay_err make_request(task *self, const entry *tool)
{
    bay_err err = read_object(self, self->record.arguments, &self->arguments_doc);
    if (err == BAY_OK) {
        err = read_object(self, self->record.capabilities, &self->capabilities_doc);
    }
    if (err == BAY_OK) {
        err = read_object(self, self->record.client_info, &self->info_doc);
    }
    self->request = (mcp_request){
        .server = self->of->server->engine,
        .revision = mcp_revision_of(MCP_LATEST),
        .method = mcp_method_of(MCP_TOOLS_CALL),
        .name = tool->key,
        .client_info = self->info_doc.count > 0 ? json_root(&self->info_doc) : JSON_NONE,
        .client_capabilities =
            self->capabilities_doc.count > 0 ? json_root(&self->capabilities_doc) : JSON_NONE,
        .log_level = MCP_LOG_NONE,
        .principal = self->record.principal,
        .memory = &self->memory,
    };
    return err;
}

static void run_again(task *self, const entry *tool)
{
    bay_call *call = NULL;
    bay_err err = make_request(self, tool);
    if (err == BAY_OK) {
        err = sdk_call_new(self->of->server, tool, &self->request, &call);
    }
    if (err != BAY_OK) {
        self->record.status = TASK_FAILED;
        self->record.outcome = STR("{\"code\":-32603,\"message\":\"Out of memory\"}");
        save(self);
        return;
    }
    memcpy(call->task_id, self->id, TASK_ID_BYTES + 1);
    call->arguments = self->arguments_doc.count > 0 ? json_root(&self->arguments_doc) : JSON_NONE;
    call->task = self;
    call->sink = &sdk_task_sink;
    self->call = call;
    self->record.status = TASK_WORKING;
    LOG(LOG_INFO, "tasks", "task %s runs again", self->id);
    sdk_call_run(call);
}

static void orphan_claimed(void *user, const store_result *result)
{
    orphan *found = user;
    tasks *of = found->of;
    of->doing--;
    bool is_ours = result->err == BAY_OK && !of->is_ending;
    task *self = is_ours ? task_new(of, NULL) : NULL;
    bay_str row = {found->row, found->len};
    bool is_good = self != NULL && arena_dup(&self->memory, row, &row) == BAY_OK &&
                   sdk_task_read_row(row, &self->memory, &self->record) == BAY_OK &&
                   self->record.id.len == TASK_ID_BYTES &&
                   sdk_tasks_find(of, self->record.id) == NULL;
    if (is_good) {
        memcpy(self->id, self->record.id.at, TASK_ID_BYTES);
        self->version = found->version;
        if (self->record.answers.len > 0) {
            buf_char(&self->answers, ',');
            buf_str(&self->answers, self->record.answers);
        }
        self->record.mail = (bay_str){NULL, 0};
        is_good = enlist(self) == BAY_OK;
    }
    mem_free(found);
    if (!is_good) {
        if (self != NULL) {
            task_free(self);
        }
        return;
    }
    const entry *tool = tool_named(of->server, self->record.tool);
    if (tool != NULL && tool->is_resumable) {
        self->looking++;
        run_again(self, tool);
        self->looking--;
    } else {
        self->record.status = TASK_FAILED;
        self->record.outcome = STR("{\"code\":-32603,\"message\":\"The server ended while this "
                                   "task was under way\"}");
        save(self);
    }
    free_if_done(self);
}

void sdk_task_adopt(tasks *self, const store_row *row)
{
    if (!self->is_shared || self->is_ending || sdk_tasks_find(self, row->key) != NULL) {
        return;
    }
    orphan *found = mem_alloc(sizeof(*found) + row->value.len);
    if (found == NULL) {
        return; /* it will be found again */
    }
    *found = (orphan){.of = self, .version = row->version, .len = row->value.len};
    memcpy(found->row, row->value.at, row->value.len);
    if (store_claim(self->store, lease_table, row->key, owner_of(self), TASK_LEASE_MS,
                    orphan_claimed, found) != BAY_OK) {
        mem_free(found);
        return;
    }
    self->doing++;
}

static void scanned(void *user, const store_result *result)
{
    tasks *self = user;
    self->doing--;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    for (size_t i = 0; result->err == BAY_OK && i < result->count; i++) {
        task_record row;
        if (sdk_task_read_row(result->rows[i].value, &memory, &row) == BAY_OK &&
            !sdk_task_is_over(row.status)) {
            sdk_task_adopt(self, &result->rows[i]);
        }
        arena_reset(&memory);
    }
    self->is_scanning = false;
    if (result->err == BAY_OK && result->has_more && result->count > 0 && !self->is_ending &&
        store_scan(self->store, rows_table, (bay_str){NULL, 0}, result->rows[result->count - 1].key,
                   TASK_SCAN_ROWS, scanned, self) == BAY_OK) {
        self->is_scanning = true;
        self->doing++;
    }
    arena_fini(&memory);
}

static void scan(tasks *self)
{
    if (self->is_shared && !self->is_scanning && !self->is_ending &&
        store_scan(self->store, rows_table, (bay_str){NULL, 0}, (bay_str){NULL, 0}, TASK_SCAN_ROWS,
                   scanned, self) == BAY_OK) {
        self->is_scanning = true;
        self->doing++;
    }
}

/* ---- all of them */

enum { SCAN_AGAIN = TASK_LEASE_MS / TASK_TICK_MS + 1 }; /* ticks until an old lease has run out */

static void tick(void *argument)
{
    tasks *self = argument;
    uint64_t now = loop_time_ms();
    LIST_EACH(link, &self->live)
    {
        task *one = CONTAINER_OF(link, task, link);
        one->looking++;
        if (now >= one->record.created_ms + one->record.ttl_ms && one->call != NULL &&
            !one->is_lost) {
            sdk_task_cancel(one); /* its row is gone already */
            one->is_lost = true;
        }
        if (one->call != NULL) {
            take_lease(one, false);
            look_for_mail(one);
        }
        if (one->is_dirty && !one->is_saving && !one->is_lost) {
            save(one);
        }
        one->looking--;
        free_if_done(one);
    }
    if (++self->ticks == SCAN_AGAIN) {
        scan(self);
    }
    if (self->live_count > 0 || (self->is_shared && self->ticks < SCAN_AGAIN)) {
        err_ignore(loop_timer_start(self->server->loop, &self->tick, TASK_TICK_MS));
    }
}

static bool has_task_tools(const bay_server *server)
{
    const entry_list *tools = &server->lists[ENTRY_TOOL];
    for (size_t i = 0; i < tools->len; i++) {
        if (tools->items[i]->task_mode != BAY_TASK_NEVER) {
            return true;
        }
    }
    return false;
}

uint32_t sdk_task_time_ms(const bay_call *call)
{
    return call->task->record.ttl_ms;
}

bool sdk_tasks_are_offered(const bay_server *server, const mcp_revision *revision)
{
    return revision->era == MCP_MODERN && has_task_tools(server);
}

bay_err sdk_tasks_open(bay_server *server, bay_diag *diag)
{
    if (!has_task_tools(server)) {
        return BAY_OK;
    }
    tasks *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_NOMEM, "%s", bay_err_text(BAY_NOMEM));
    }
    uint64_t most = sdk_server_setting(server, BAY_MAX_TASKS);
    store_options options = {.rows = most * 2 + 64, .value_bytes = TASK_MAX_ROW};
    bay_str path = server->store_path;
    self->server = server;
    self->is_shared = path.len > 0;
    list_init(&self->live);
    map_init(&self->by_id, most + 64);
    draw_id(self->owner);
    loop_timer_init(&self->tick, tick, self);
    bay_err err = self->is_shared
                      ? server->open_store(server->loop, path, &options, &self->store, diag)
                      : store_open_memory(server->loop, &options, &self->store);
    if (err != BAY_OK) {
        map_fini(&self->by_id);
        mem_free(self);
        return self == NULL || diag == NULL || diag->code == err
                   ? err
                   : diag_set(diag, err, "no store for tasks: %s", bay_err_text(err));
    }
    server->tasks = self;
    if (self->is_shared) {
        scan(self);
        err_ignore(loop_timer_start(server->loop, &self->tick, TASK_TICK_MS));
    }
    return BAY_OK;
}

void sdk_tasks_stop(bay_server *server)
{
    tasks *self = server->tasks;
    if (self == NULL || self->is_ending) {
        return;
    }
    self->is_ending = true;
    LIST_EACH(link, &self->live)
    {
        task *one = CONTAINER_OF(link, task, link);
        if (one->call == NULL) {
            continue;
        }
        bool will_resume = self->is_shared && one->call->entry->is_resumable;
        one->looking++;
        if (will_resume && !sdk_task_is_over(one->record.status)) {
            one->is_lost = true; /* its row stays as it is, for the next process */
            leave_lease(one);
        }
        sdk_call_give_up(one->call, &(call_note){.kind = NOTE_ERROR,
                                                 .code = RPC_INTERNAL_ERROR,
                                                 .text = STR("The server was stopped while this "
                                                             "task was under way")});
        one->looking--;
        free_if_done(one);
    }
}

static void closed(void *user)
{
    tasks *self = user;
    self->is_closed = true;
}

static bool is_saving(const tasks *self)
{
    LIST_EACH(link, &self->live)
    {
        const task *one = CONTAINER_OF(link, task, link);
        if (one->is_saving) {
            return true;
        }
    }
    return self->doing > 0;
}

void sdk_tasks_free(bay_server *server)
{
    tasks *self = server->tasks;
    if (self == NULL) {
        return;
    }
    sdk_tasks_stop(server);
    while (is_saving(self)) {
        loop_turn(server->loop, -1);
    }
    loop_timer_stop(server->loop, &self->tick);
    store_close(self->store, closed, self);
    while (!self->is_closed) {
        loop_turn(server->loop, -1);
    }
    LIST_EACH(link, &self->live)
    {
        task_free(CONTAINER_OF(link, task, link));
    }
    store_free(self->store);
    map_fini(&self->by_id);
    mem_free(self);
    server->tasks = NULL;
}

/* ---- what a server says of its tasks */

void bay_tool_task(bay_tool *tool, bay_task_mode mode)
{
    if (tool != NULL) {
        tool->task_mode = mode;
    }
}

void bay_tool_resumable(bay_tool *tool)
{
    if (tool != NULL) {
        tool->is_resumable = true;
    }
}
