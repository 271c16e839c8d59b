/* The tasks of this process: how they begin, how long they stay, the end of the process. The loop's
 * thread throughout. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/mrtr_state.h"
#include "sdk/row_keys.h"
#include "sdk/task_parts.h"
#include "json/writer.h"

static void draw_id(char *out)
{
    unsigned char bytes[TASK_ID_BYTES / 2];
    rand_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

task *sdk_tasks_find(const tasks *self, bay_str id)
{
    return map_get(&self->by_id, id);
}

/* ---- one of them */

void sdk_task_free(task *self)
{
    if (list_holds(&self->link)) {
        list_remove(&self->link);
        (void)map_remove(&self->of->by_id, self->record.id);
        self->of->live_count--;
    }
    if (self->answers != NULL) {
        json_builder_drop(self->answers);
        mem_free(self->answers);
    }
    mem_free(self->outcome_value);
    buf_fini(&self->outcome);
    buf_fini(&self->requests);
    arena_fini(&self->memory);
    principal_unref(self->request.principal);
    mem_free(self);
}

void sdk_task_settle(task *self)
{
    bool is_stored = !self->is_saving && (!self->is_dirty || self->is_lost);
    if (self->call != NULL || self->waiting != NULL || !is_stored || self->looking > 0 ||
        self->of->walking > 0) {
        return;
    }
    if (!self->is_lost) {
        sdk_task_leave_lease(self->of, self->record.id);
    }
    sdk_task_free(self);
}

/* What may be done to a task may be the end of others: they go when the walk is over. */
static void begin_walk(tasks *self)
{
    self->walking++;
}

static void end_walk(tasks *self)
{
    if (--self->walking > 0) {
        return;
    }
    LIST_EACH(link, &self->live)
    {
        sdk_task_settle(CONTAINER_OF(link, task, link));
    }
}

/* ---- how they begin */

task *sdk_task_new(tasks *of, bay_call *call)
{
    task *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->of = of;
    self->call = call;
    arena_init(&self->memory, (size_t)TASK_MAX_ROW * 16);
    buf_init(&self->outcome, TASK_MAX_ROW);
    buf_init(&self->requests, TASK_MAX_ROW);
    return self;
}

bay_err sdk_task_enlist(task *self)
{
    bay_err err = map_put(&self->of->by_id, self->record.id, self, NULL);
    if (err == BAY_OK) {
        list_push(&self->of->live, &self->link);
        self->of->live_count++;
        err_ignore(loop_timer_start(self->of->server->loop, &self->of->tick, TASK_TICK_MS));
    }
    return err;
}

/* Views of the call or of the row end with it; this task writes its row until later. */
bay_err sdk_task_keep_texts(task *self)
{
    task_record *record = &self->record;
    bay_str *texts[] = {&record->tool,         &record->principal,   &record->arguments,
                        &record->capabilities, &record->client_info, &record->message};
    record->requests = record->inbox = record->answers = record->outcome = (bay_str){NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bay_err err = texts[i]->len == 0 ? BAY_OK : arena_dup(&self->memory, *texts[i], texts[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

/* The call becomes a task: its row is on its way. False: it cannot. */
static bool tasks_begin(bay_call *call, bool is_new)
{
    tasks *of = call->server->tasks;
    bool has_room = of != NULL && !of->is_ending &&
                    of->live_count < sdk_server_setting(call->server, BAY_SERVER_SETTING_MAX_TASKS);
    task *self = has_room ? sdk_task_new(of, call) : NULL;
    if (self == NULL) {
        return false;
    }
    memcpy(self->id, call->task_id, TASK_ID_BYTES);
    self->is_new = is_new;
    self->record = (task_record){
        .id = {self->id, TASK_ID_BYTES},
        .tool = call->entry->key,
        .principal = principal_identity(call->request->principal),
        .arguments = json_raw(call->arguments),
        .capabilities = json_raw(call->request->client_capabilities),
        .client_info = json_raw(call->request->client_info),
        .created_ms = loop_time_ms(),
        .ttl_ms = (uint32_t)sdk_server_setting(call->server, BAY_SERVER_SETTING_TASK_TTL_MS),
        .poll_ms = (uint32_t)sdk_server_setting(call->server, BAY_SERVER_SETTING_TASK_POLL_MS)};
    if (sdk_task_keep_texts(self) != BAY_OK || sdk_task_enlist(self) != BAY_OK) {
        sdk_task_free(self);
        return false;
    }
    self->waiting = call->request;
    call->task = self;
    call->sink = &sdk_task_sink;
    self->looking++;
    sdk_task_take_lease(self);
    sdk_task_save(self);
    self->looking--;
    sdk_task_settle(self);
    return true;
}

void sdk_task_start(bay_call *call)
{
    const tasks *of = call->server->tasks;
    if (of == NULL ||
        of->live_count >= sdk_server_setting(call->server, BAY_SERVER_SETTING_MAX_TASKS)) {
        bay_call_fail(call, "The server has as many tasks as it can hold; try again later.");
        return;
    }
    draw_id(call->task_id);
    atomic_store(&call->is_task, true);
    if (!tasks_begin(call, true)) {
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

/* The handler was told already that it is a task. */
void sdk_task_become(bay_call *call)
{
    if (!atomic_load(&call->is_becoming) || !atomic_exchange(&call->is_becoming, false)) {
        return; /* done already */
    }
    if (!call->is_delivered && !call->is_parted && call->task == NULL &&
        !tasks_begin(call, false)) {
        LOG(LOG_ERROR, "tasks", "\"%.*s\" cannot become a task; it goes on as a plain call",
            BAY_STR(call->entry->key));
    }
    if (call->task != NULL) { /* it has as much time as one now */
        sdk_deadline_stop(call);
        sdk_deadline_start(call);
    }
}

static void become(void *argument)
{
    sdk_task_become(argument);
    sdk_call_unref(argument);
}

/* On the loop it is known at once whether it can be stored. */
static bool become_here(bay_call *call)
{
    if (call->is_parted || !tasks_begin(call, false) || call->task == NULL) {
        return false;
    }
    if (call->timer.heap_index != 0) {
        sdk_deadline_stop(call);
        sdk_deadline_start(call);
    }
    return true;
}

bool bay_call_become_task(bay_call *call)
{
    if (call == NULL || call->task_id[0] != '\0') {
        return call != NULL;
    }
    const bay_server *server = call->server;
    if (call->entry->kind != ENTRY_TOOL || call->entry->task_mode == BAY_TASK_MODE_NEVER ||
        !sdk_task_is_wanted(call->request) || server->tasks == NULL ||
        atomic_load(&call->is_finished) || atomic_load(&call->is_cancelled)) {
        return false;
    }
    draw_id(call->task_id);
    atomic_store(&call->is_task, true);
    bool is_one;
    if (sdk_call_on_loop(call)) {
        is_one = become_here(call);
    } else {
        atomic_fetch_add(&call->references, 1);
        call->begin_task = (loop_message){.function = become, .argument = call};
        atomic_store(&call->is_becoming, true);
        is_one = loop_post_message(server->loop, &call->begin_task) == BAY_OK;
        if (!is_one) {
            atomic_store(&call->is_becoming, false);
            sdk_call_unref(call);
        }
    }
    if (!is_one) {
        call->task_id[0] = '\0';
        atomic_store(&call->is_task, false);
    }
    return is_one;
}

bay_str bay_call_task(bay_call *call)
{
    return call != NULL ? str_of(call->task_id) : (bay_str){NULL, 0};
}

/* ---- all of them */

enum { SCAN_AGAIN = TASK_LEASE_MS / TASK_TICK_MS + 1 }; /* ticks until an old lease has run out */

static void look_after(task *self, uint64_t now)
{
    if (now >= self->record.created_ms + self->record.ttl_ms && !self->is_lost) {
        sdk_task_cancel(self); /* its row is gone already */
        self->is_lost = true;
    }
    if (self->call != NULL) {
        sdk_task_take_lease(self);
        sdk_task_inbox_look(self);
    }
    if (self->is_dirty && !self->is_saving && !self->is_lost) {
        sdk_task_save(self);
    }
}

static void tick(void *argument)
{
    tasks *self = argument;
    uint64_t now = loop_time_ms();
    begin_walk(self);
    LIST_EACH(link, &self->live)
    {
        look_after(CONTAINER_OF(link, task, link), now);
    }
    end_walk(self);
    if (++self->ticks == SCAN_AGAIN) {
        sdk_tasks_scan(self);
    }
    if (self->live_count > 0 || (self->is_shared && self->ticks < SCAN_AGAIN)) {
        err_ignore(loop_timer_start(self->server->loop, &self->tick, TASK_TICK_MS));
    }
}

static bool has_task_tools(const bay_server *server)
{
    const entry_list *tools = &server->lists[ENTRY_TOOL];
    for (size_t i = 0; i < tools->len; i++) {
        if (tools->items[i]->task_mode != BAY_TASK_MODE_NEVER) {
            return true;
        }
    }
    return false;
}

bool sdk_tasks_are_offered(const bay_server *server, const mcp_revision *revision)
{
    return revision->era == MCP_MODERN && has_task_tools(server);
}

/* The keys that the program gave, or else the store's own. */
static bay_err open_keys(tasks *self, bay_diag *diag)
{
    bay_server *server = self->server;
    bay_err err = BAY_OK;
    self->ring = sdk_mrtr_state_keys(server);
    if (self->ring == NULL) {
        err = sdk_row_keys_open(server->open_store, server->store_path, &self->row_keys, diag);
        self->ring = self->row_keys;
    }
    return err;
}

static void on_discarded(void *user)
{
    *(bool *)user = true;
}

/* Of tasks that could not be opened. */
static void discard_store(tasks *self)
{
    bool is_closed = false;
    if (self->store == NULL) {
        return;
    }
    store_close(self->store, on_discarded, &is_closed);
    while (!is_closed) {
        (void)loop_turn(self->server->loop, -1);
    }
    store_free(self->store);
}

bay_err sdk_tasks_open(bay_server *server, bay_diag *diag)
{
    if (!has_task_tools(server)) {
        return BAY_OK;
    }
    tasks *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s", bay_err_text(BAY_ERR_NOMEM));
    }
    uint64_t most = sdk_server_setting(server, BAY_SERVER_SETTING_MAX_TASKS);
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
    if (err == BAY_OK && self->is_shared) {
        err = open_keys(self, diag);
    }
    if (err != BAY_OK) {
        discard_store(self);
        map_fini(&self->by_id);
        mem_free(self);
        return diag->code == err ? err
                                 : diag_set(diag, err, "no store for tasks: %s", bay_err_text(err));
    }
    server->tasks = self;
    if (self->is_shared) {
        sdk_tasks_scan(self);
        err_ignore(loop_timer_start(server->loop, &self->tick, TASK_TICK_MS));
    }
    return BAY_OK;
}

/* The row of one that can be run again stays as it is, for the next process, and the lease with
 * this one until the handler has ended. */
static void stop(task *self)
{
    if (self->is_dirty && !self->is_saving) {
        sdk_task_save(self); /* what could not be stored before */
    }
    if (self->call != NULL) {
        self->is_left = self->of->is_shared && self->call->entry->is_resumable &&
                        !sdk_task_is_over(self->record.status);
        sdk_call_give_up(self->call, &(call_note){.kind = NOTE_ERROR,
                                                  .code = RPC_INTERNAL_ERROR,
                                                  .text = STR("The server was stopped while this "
                                                              "task was under way")});
    }
}

void sdk_tasks_stop(bay_server *server)
{
    tasks *self = server->tasks;
    if (self == NULL || self->is_ending) {
        return;
    }
    self->is_ending = true;
    begin_walk(self);
    LIST_EACH(link, &self->live)
    {
        stop(CONTAINER_OF(link, task, link));
    }
    end_walk(self);
}

static void closed(void *user)
{
    tasks *self = user;
    self->is_closed = true;
}

/* Something in the store is waited for. Each of its operations ends. */
static bool is_busy(const tasks *self)
{
    LIST_EACH(link, &self->live)
    {
        const task *one = CONTAINER_OF(link, task, link);
        if (one->is_saving || one->looking > 0) {
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
    while (is_busy(self)) {
        loop_turn(server->loop, -1);
    }
    loop_timer_stop(server->loop, &self->tick);
    store_close(self->store, closed, self);
    while (!self->is_closed) {
        loop_turn(server->loop, -1);
    }
    LIST_EACH(link, &self->live)
    {
        sdk_task_free(CONTAINER_OF(link, task, link));
    }
    store_free(self->store);
    seal_ring_free(self->row_keys);
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
