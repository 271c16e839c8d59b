/* A task followed to its end.
 *
 *   "task" --its pace--> LOOKING --working--> (pause) LOOKING
 *                          |  \--input_required--> ASKING --answered--> UPDATING --> LOOKING
 *                          \--completed, failed, cancelled--> the request ends
 *
 * The request stays one request: it looks with tasks/get at the pace that the server wants, lets
 * the client's handlers answer what it asks (each key once in the life of the task) and hands the
 * answers in with tasks/update. Whoever gives up the call that became a task cancels the task;
 * whoever only waited for one by its id does not.
 * The extension is declared in every request unless the caller declared it in his own way.
 * Source: the tasks extension (io.modelcontextprotocol/tasks) of mcp 2026-07-28. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sdk/client_inputs.h"
#include "json/build.h"

enum {
    TASK_PACE_MS = 1000, /* when the server names none */
    TASK_MIN_PACE_MS = 50,
    TASK_MAX_PACE_MS = 60000,
    TASK_MAX_ID = 4096,   /* bytes, raw */
    TASK_MAX_KEYS = 1024, /* inputs of one task */
    TASK_CANCEL_MS = 10000,
};

typedef struct task {
    bay_request *request;
    json_doc *id;
    uint32_t pace_ms;
    bool is_ours;     /* our call made it; else somebody waits for a task he knows */
    bool is_updating; /* what comes next acknowledges tasks/update */
    bool has_ended;   /* there is nothing to cancel any more */
    arena memory;     /* of the keys */
    map known;        /* keys that were asked: raw key -> this */
    inputs *inputs;
} task;

static bay_task_state status_of(json_val status)
{
    static const bay_str texts[] = {
        [BAY_TASK_STATE_WORKING] = STR_INIT("working"),
        [BAY_TASK_STATE_COMPLETED] = STR_INIT("completed"),
        [BAY_TASK_STATE_FAILED] = STR_INIT("failed"),
        [BAY_TASK_STATE_CANCELLED] = STR_INIT("cancelled"),
        [BAY_TASK_STATE_INPUT_REQUIRED] = STR_INIT("input_required"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].len > 0 && json_str_eq(status, texts[i])) {
            return (bay_task_state)i;
        }
    }
    return BAY_TASK_STATE_UNKNOWN;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void task_free(void *held)
{
    task *self = held;
    inputs_free(self->inputs);
    map_fini(&self->known);
    arena_fini(&self->memory);
    mem_free(self->id);
    mem_free(self);
}

static void client_tasks_fail(bay_request *request, bay_err err, const char *text)
{
    bay_diag diag = {0};
    sdk_request_diag(request, &diag, err, text);
    sdk_request_fail(request, &diag, JSON_NONE);
}

/* The task this request follows from now on, or NULL: the request has failed. */
static task *task_new(bay_request *request, json_val result, bool is_ours)
{
    bay_str id = json_raw(json_get(result, STR("taskId")));
    if (!json_is(json_get(result, STR("taskId")), JSON_STRING) || id.len <= 2 ||
        id.len > TASK_MAX_ID) {
        client_tasks_fail(request, BAY_ERR_PROTOCOL,
                          "the server answers with a task that has no usable taskId");
        return NULL;
    }
    task *self = mem_zalloc(sizeof(*self));
    json_doc *copy = NULL;
    if (self == NULL || json_clone(json_get(result, STR("taskId")), &copy) != BAY_OK) {
        mem_free(self);
        mem_free(copy);
        client_tasks_fail(request, BAY_ERR_NOMEM, NULL);
        return NULL;
    }
    self->request = request;
    self->id = copy;
    self->pace_ms = TASK_PACE_MS;
    self->is_ours = is_ours;
    arena_init(&self->memory, CLIENT_MAX_TEXT);
    map_init(&self->known, TASK_MAX_KEYS);
    sdk_request_hold(request, self, task_free);
    sdk_request_follow_task(request);
    return self;
}

/* ---- sending ----------------------------------------------------------------------------------
 */

static void write_params(const task *self, const inputs *answers, json_writer *out)
{
    json_open_object(out);
    json_key_lit(out, "taskId");
    json_put_val(out, json_root(self->id));
    if (answers != NULL) {
        json_key_lit(out, "inputResponses");
        inputs_write(answers, out);
    }
    json_close_object(out);
}

/* The next message about the task; `self` may be gone afterwards. */
static void task_send(task *self, bay_str method, const inputs *answers, uint32_t after_ms)
{
    bay_request *request = self->request;
    bay_diag diag = {0};
    json_builder made;
    json_val params;
    write_params(self, answers, json_builder_init(&made, NULL, CLIENT_MAX_REPLY));
    bay_err err = json_builder_view(&made, &params);
    if (err == BAY_OK) {
        err = after_ms == 0 ? sdk_request_again(request, method, params, &diag)
                            : sdk_request_later(request, method, params, after_ms, &diag);
    }
    json_builder_drop(&made);
    if (err != BAY_OK) {
        client_tasks_fail(request, err, diag.text);
    }
}

static void cancel_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    (void)user;
    (void)call;
    if (outcome->kind != MCP_OUTCOME_RESULT) {
        LOG(LOG_INFO, "client", "a task could not be cancelled at the server");
    }
}

void sdk_task_abandon(bay_request *request)
{
    static const mcp_call_events events = {.done = cancel_done};
    task *self = sdk_request_held(request);
    bay_client *client = sdk_request_client(request);
    mcp_client *engine = sdk_client_engine(client);
    if (self == NULL || !self->is_ours || self->has_ended || engine == NULL) {
        return;
    }
    self->has_ended = true;
    json_builder made;
    json_val params;
    mcp_call *call = NULL;
    write_params(self, NULL, json_builder_init(&made, NULL, CLIENT_MAX_TEXT));
    bay_err err = json_builder_view(&made, &params);
    if (err == BAY_OK) {
        mcp_call_spec spec = {.method = STR("tasks/cancel"),
                              .params = params,
                              .timeout_ms = TASK_CANCEL_MS,
                              .max_total_ms = TASK_CANCEL_MS,
                              .log_level = MCP_LOG_NONE};
        err = mcp_client_call(engine, &spec, &events, NULL, loop_now_ms(client->base.loop), &call,
                              NULL);
    }
    if (err != BAY_OK) {
        LOG(LOG_INFO, "client", "a task could not be cancelled: %s", bay_err_text(err));
    }
    json_builder_drop(&made);
}

/* The request cannot go on with a task that may well go on without it. */
static void client_tasks_give_up(task *self, bay_err err, const char *text)
{
    bay_request *request = self->request;
    sdk_task_abandon(request);
    client_tasks_fail(request, err, text);
}

/* ---- what it asks -----------------------------------------------------------------------------
 */

static bay_err remember_keys(task *self)
{
    for (size_t i = 0; i < inputs_count(self->inputs); i++) {
        bay_str key;
        bay_err err = arena_dup(&self->memory, inputs_key(self->inputs, i), &key);
        err = err == BAY_OK ? map_put(&self->known, key, self, NULL) : err;
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static void answered(void *user, const bay_diag *diag)
{
    task *self = user;
    if (diag != NULL) {
        bay_diag copy = *diag; /* it lies in what is freed now */
        client_tasks_give_up(self, copy.code, copy.text);
        return;
    }
    if (inputs_count(self->inputs) == 0) { /* all of it was answered before: it takes its time */
        task_send(self, STR("tasks/get"), NULL, self->pace_ms);
        return;
    }
    bay_err err = remember_keys(self);
    if (err != BAY_OK) {
        client_tasks_give_up(self, err, "the task asks for too much");
        return;
    }
    self->is_updating = true;
    task_send(self, STR("tasks/update"), self->inputs, 0);
}

static void client_tasks_ask(task *self, json_val result)
{
    bay_diag diag = {0};
    inputs_free(self->inputs);
    self->inputs = NULL;
    bay_err err =
        inputs_ask(sdk_request_client(self->request), json_get(result, STR("inputRequests")),
                   &self->known, answered, self, &self->inputs, &diag);
    if (err != BAY_OK) {
        client_tasks_give_up(self, err, diag.text);
    }
}

/* ---- how it stands ----------------------------------------------------------------------------
 */

static void read_pace(task *self, json_val result)
{
    json_val pace = json_get(result, STR("pollIntervalMs"));
    double ms = 0;
    if (json_double(pace, &ms) == BAY_OK) {
        self->pace_ms = ms < TASK_MIN_PACE_MS   ? TASK_MIN_PACE_MS
                        : ms > TASK_MAX_PACE_MS ? TASK_MAX_PACE_MS
                                                : (uint32_t)ms;
    }
}

static void succeed(task *self, json_val result)
{
    json_val final = json_get(result, STR("result"));
    self->has_ended = true;
    if (json_is(final, JSON_OBJECT)) {
        sdk_request_succeed(self->request, final);
    } else {
        client_tasks_fail(self->request, BAY_ERR_PROTOCOL,
                          "the task was completed without a result");
    }
}

/* A text of the server's for a message to people; empty when there is none. */
static bay_str text_of(json_val value, arena *memory)
{
    bay_str text = {NULL, 0};
    return json_str(value, memory, &text) == BAY_OK ? str_head(text, 150) : (bay_str){NULL, 0};
}

static void end_badly(task *self, json_val result, bay_task_state status)
{
    bay_request *request = self->request;
    json_val error = json_get(result, STR("error"));
    int64_t code = 0;
    bay_diag diag = {0}, text = {0};
    arena memory;
    arena_init(&memory, CLIENT_MAX_PARSED);
    self->has_ended = true;
    if (status == BAY_TASK_STATE_CANCELLED) {
        bay_str why = text_of(json_get(result, STR("statusMessage")), &memory);
        diag_set(&text, BAY_ERR_CANCELLED, "the task was cancelled%s%.*s", why.len > 0 ? ": " : "",
                 BAY_STR(why));
    } else if (json_int64(json_get(error, STR("code")), &code) == BAY_OK) {
        diag_set(&text, BAY_ERR_REMOTE, "the task failed: error %lld: %.*s", (long long)code,
                 BAY_STR(text_of(json_get(error, STR("message")), &memory)));
    } else {
        diag_set(&text, BAY_ERR_PROTOCOL, "the task failed without an error");
    }
    arena_fini(&memory);
    sdk_request_diag(request, &diag, text.code, text.text);
    sdk_request_fail(request, &diag, text.code == BAY_ERR_REMOTE ? error : JSON_NONE);
}

static void look_at(task *self, json_val result)
{
    json_val id = json_get(result, STR("taskId"));
    bay_task_state status = status_of(json_get(result, STR("status")));
    read_pace(self, result);
    if (!str_eq(json_raw(id), self->id->text)) {
        client_tasks_give_up(self, BAY_ERR_PROTOCOL, "the server answers with another task");
        return;
    }
    switch (status) {
    case BAY_TASK_STATE_WORKING:
        task_send(self, STR("tasks/get"), NULL, self->pace_ms);
        return;
    case BAY_TASK_STATE_INPUT_REQUIRED:
        client_tasks_ask(self, result);
        return;
    case BAY_TASK_STATE_COMPLETED:
        succeed(self, result);
        return;
    case BAY_TASK_STATE_FAILED:
    case BAY_TASK_STATE_CANCELLED:
        end_badly(self, result, status);
        return;
    default:
        client_tasks_give_up(self, BAY_ERR_PROTOCOL, "the task is in a state that nobody knows");
        return;
    }
}

void sdk_task_go_on(bay_request *request, json_val result)
{
    bool is_new = json_str_eq(json_get(result, STR("resultType")), STR("task"));
    bool is_look = str_eq(sdk_request_method(request), STR("tasks/get"));
    task *self = sdk_request_held(request);
    bool is_look_answer = str_starts(sdk_request_round_method(request), STR("tasks/"));
    if (is_new && is_look_answer && self != NULL) {
        client_tasks_give_up(self, BAY_ERR_PROTOCOL,
                             "a look at a task was answered by a task, which it cannot be");
        return;
    }
    if (is_new || (self == NULL && is_look)) {
        /* the tasks extension: only the methods it names may be answered by a task */
        if (is_new && (!str_eq(sdk_request_method(request), STR("tools/call")) || is_look_answer)) {
            client_tasks_fail(request, BAY_ERR_PROTOCOL,
                              "it was answered by a task, which it cannot be");
            return;
        }
        self = task_new(request, result, is_new);
        if (self == NULL) {
            return;
        }
    }
    if (is_new) {
        /* What it says of itself has no result yet: a task that is not working is looked at now. */
        bool is_working = status_of(json_get(result, STR("status"))) == BAY_TASK_STATE_WORKING;
        read_pace(self, result);
        task_send(self, STR("tasks/get"), NULL, is_working ? self->pace_ms : 0);
    } else if (self == NULL) {
        client_tasks_fail(request, BAY_ERR_INTERNAL, "a task nobody follows");
    } else if (self->is_updating) {
        self->is_updating = false;
        task_send(self, STR("tasks/get"), NULL, self->pace_ms);
    } else {
        look_at(self, result);
    }
}

/* ---- for programs -----------------------------------------------------------------------------
 */

static bay_request *task_request(bay_client *client, const char *method, bay_str id)
{
    bay_request *request = id.at != NULL ? bay_request_new(client, method, NULL) : NULL;
    if (request != NULL) {
        json_builder made;
        json_writer *to = json_builder_init(&made, NULL, CLIENT_MAX_REPLY);
        json_open_object(to);
        json_key_lit(to, "taskId");
        json_put_str(to, id);
        json_close_object(to);
        sdk_request_set_params(request, &made);
    }
    return request;
}

bay_err bay_client_task_str(bay_client *client, bay_str id, bay_reply **out, bay_diag *diag)
{
    return bay_request_run(task_request(client, "tasks/get", id), out, diag);
}

bay_err bay_client_task(bay_client *client, const char *id, bay_reply **out, bay_diag *diag)
{
    return bay_client_task_str(client, str_of(id), out, diag);
}

bay_err bay_client_task_wait_str(bay_client *client, bay_str id, bay_reply **out, bay_diag *diag)
{
    bay_request *request = task_request(client, "tasks/get", id);
    if (request != NULL) {
        sdk_request_follow_task(request);
    }
    return bay_request_run(request, out, diag);
}

bay_err bay_client_task_wait(bay_client *client, const char *id, bay_reply **out, bay_diag *diag)
{
    return bay_client_task_wait_str(client, str_of(id), out, diag);
}

bay_err bay_client_task_cancel_str(bay_client *client, bay_str id, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_err err = bay_request_run(task_request(client, "tasks/cancel", id), &reply, diag);
    bay_reply_free(reply);
    return err;
}

bay_err bay_client_task_cancel(bay_client *client, const char *id, bay_diag *diag)
{
    return bay_client_task_cancel_str(client, str_of(id), diag);
}

/* A task says so by its resultType, or (the answer to a look) by having a state and dates. */
static bool is_task(const bay_reply *reply)
{
    json_val root = reply != NULL ? reply->root : JSON_NONE;
    return json_is(json_get(root, STR("taskId")), JSON_STRING) &&
           status_of(json_get(root, STR("status"))) != BAY_TASK_STATE_UNKNOWN &&
           (json_str_eq(json_get(root, STR("resultType")), STR("task")) ||
            json_is(json_get(root, STR("createdAt")), JSON_STRING));
}

bay_str bay_reply_task(const bay_reply *reply)
{
    return is_task(reply) ? bay_reply_str(reply, "taskId") : (bay_str){NULL, 0};
}

bay_task_state bay_reply_task_state(const bay_reply *reply)
{
    return is_task(reply) ? status_of(json_get(reply->root, STR("status")))
                          : BAY_TASK_STATE_UNKNOWN;
}
