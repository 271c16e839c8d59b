/* Waits for a task of a stateless server on behalf of a client that does not poll: tasks/result of
 * 2025-11-25, or a call that the gateway runs as a task. One thing at a time:
 *
 *   look (tasks/get) --working--> pause --timer--> look
 *                    --input_required--> ask the client --all answered--> tasks/update --> look
 *                    --over--> the result, the error */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "tasks/continuation.h"

enum { ANSWERS_BYTES = 64 << 20 };

/* An input request to the client. It outlives its continuation if the client's answer comes late.
 */
typedef struct task_ask {
    list_link link;
    task_continuation *continuation; /* NULL: the continuation has ended */
    const mcp_method *method;
    size_t key_len;
    char key[]; /* raw, with its quotes */
} task_ask;

typedef struct task_key {
    list_link link;
    size_t len;
    char key[];
} task_key;

static void wait_look(task_continuation *self);
static void wait_a_while(task_continuation *self);
static bool step_updated(task_continuation *self, mcp_outcome *inout);

static void drop_answers(task_continuation *self)
{
    if (self->has_answers) {
        json_builder_drop(&self->answers);
        self->has_answers = false;
    }
}

void task_wait_end(task_continuation *self)
{
    list_link *link;
    if (self->endpoint->loop != NULL && self->timer.function != NULL) {
        loop_timer_stop(self->endpoint->loop, &self->timer);
    }
    while ((link = list_pop(&self->asks)) != NULL) {
        CONTAINER_OF(link, task_ask, link)->continuation = NULL; /* freed by its answer */
    }
    while ((link = list_pop(&self->keys)) != NULL) {
        mem_free(CONTAINER_OF(link, task_key, link));
    }
    drop_answers(self);
}

/* ---- asking the client ----------------------------------------------------------------------- */

static bool was_asked(const task_continuation *self, bay_str key)
{
    LIST_EACH(link, &self->keys)
    {
        const task_key *one = CONTAINER_OF(link, task_key, link);
        if (str_eq((bay_str){one->key, one->len}, key)) {
            return true;
        }
    }
    return false;
}

static bay_err remember(task_continuation *self, bay_str key)
{
    if (self->key_count >= TASK_KEYS) {
        return BAY_ERR_LIMIT;
    }
    task_key *made = mem_alloc(sizeof(*made) + key.len);
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    *made = (task_key){.len = key.len};
    memcpy(made->key, key.at, key.len);
    list_push(&self->keys, &made->link);
    self->key_count++;
    return BAY_OK;
}

/* The client cannot answer or does not: the task cannot continue, so it ends. */
static void wait_give_up(task_continuation *self, const char *why)
{
    mcp_outcome outcome;
    self->is_running = true; /* cancelled when the continuation ends */
    task_error(self, &outcome, RPC_INTERNAL_ERROR, why);
    task_continuation_finish(self, &outcome);
}

static void update(task_continuation *self)
{
    json_builder made;
    json_val answers = json_empty_object();
    json_val params = JSON_NONE;
    bay_err err = BAY_OK;
    if (self->has_answers) {
        json_close_object(&self->answers.writer);
        err = json_builder_view(&self->answers, &answers);
    }
    arena_reset(&self->sent);
    if (err == BAY_OK) {
        json_writer *out = json_builder_init(&made, &self->sent, ANSWERS_BYTES + TASK_ID_BYTES * 8);
        json_open_object(out);
        json_key_lit(out, "taskId");
        json_put_str(out, self->id);
        json_key_lit(out, "inputResponses");
        json_put_val(out, answers);
        json_close_object(out);
        err = json_builder_end(&made, &params);
    }
    drop_answers(self);
    if (err != BAY_OK) {
        wait_give_up(self, "The client's answers are too long, or memory is short");
    } else {
        self->step = step_updated;
        task_continuation_send(self, MCP_TASKS_UPDATE, params);
    }
}

static void keep_key(task_continuation *self, const task_ask *ask)
{
    if (!self->has_answers) {
        json_open_object(json_builder_init(&self->answers, NULL, ANSWERS_BYTES));
        self->has_answers = true;
    }
    json_key_raw(&self->answers.writer, (bay_str){ask->key, ask->key_len});
}

static void ask_answered(void *user, bay_err err, const rpc_message *response)
{
    task_ask *ask = user;
    task_continuation *self = ask->continuation;
    bool is_result = err == BAY_OK && response->kind == RPC_RESULT;
    bool is_form = ask->method->id == MCP_ELICITATION;
    list_remove(&ask->link);
    if (self == NULL || err == BAY_ERR_CANCELLED) {
        mem_free(ask); /* the request has ended */
        return;
    }
    task_continuation_hold(self);
    bool is_gone = err != BAY_OK && err != BAY_ERR_TIMEOUT;
    if (is_gone) {
        mcp_outcome outcome; /* the task belongs to the client, which may ask for it again */
        task_error(self, &outcome, RPC_INTERNAL_ERROR, "The client is gone");
        task_continuation_finish(self, &outcome);
    } else if (is_result) {
        keep_key(self, ask);
        task_write_result(&self->answers.writer, response->result, (bay_str){NULL, 0});
    } else if (is_form) {
        keep_key(self, ask);
        json_open_object(&self->answers.writer);
        json_key_lit(&self->answers.writer, "action");
        json_put_str(&self->answers.writer, STR("cancel"));
        json_close_object(&self->answers.writer);
    }
    mem_free(ask);
    if (is_gone) {
        task_continuation_let_go(self);
        return;
    }
    if (!is_result && !is_form) {
        wait_give_up(self, err == BAY_OK ? "The client refused what the task needs of it"
                                         : "The client did not answer what the task needs of it");
    } else if (list_is_empty(&self->asks) && !self->is_asking && !self->is_over) {
        update(self);
    }
    task_continuation_let_go(self);
}

static bay_err ask_one(task_continuation *self, bay_str key, json_val wanted)
{
    mcp_request *request = self->way->request;
    bay_str text;
    bay_err err = json_str(json_get(wanted, STR("method")), &self->sent, &text);
    const mcp_method *method =
        err == BAY_OK ? mcp_method_find(text, request->revision->id, MCP_SENDER_SERVER) : NULL;
    if (method == NULL || method->is_notification) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_UNSUPPORTED;
    }
    err = remember(self, key);
    task_ask *ask = err == BAY_OK ? mem_alloc(sizeof(*ask) + key.len) : NULL;
    if (ask == NULL) {
        return err == BAY_OK ? BAY_ERR_NOMEM : err;
    }
    *ask = (task_ask){.continuation = self, .method = method, .key_len = key.len};
    memcpy(ask->key, key.at, key.len);
    list_push(&self->asks, &ask->link);
    json_builder plain;
    json_val plain_params;
    json_writer writer;
    buf params;
    buf_init(&params, ANSWERS_BYTES);
    task_write_input_request(json_builder_init(&plain, NULL, ANSWERS_BYTES),
                             json_get(wanted, STR("params")),
                             self->is_run ? (bay_str){NULL, 0} : self->token);
    err = json_builder_view(&plain, &plain_params);
    if (err == BAY_OK) {
        json_writer_init(&writer, &params);
        input_request_write_params(&writer, method->text, plain_params, request->revision);
        err = params.err;
    }
    if (err == BAY_OK) {
        err = mcp_request_ask(request, method->id, buf_view(&params), ask_answered, ask,
                              task_endpoint_now(self->endpoint));
    }
    json_builder_drop(&plain);
    buf_fini(&params);
    if (err != BAY_OK) {
        list_remove(&ask->link);
        mem_free(ask);
    }
    return err;
}

/* Input requests that were sent before wait for their update to take effect. */
static void ask_client(task_continuation *self, json_val inputs)
{
    bay_err err = BAY_OK;
    size_t asked = 0;
    json_iter iter = json_iter_of(inputs);
    self->is_asking = true; /* an answer may come before the last request was sent */
    while (err == BAY_OK && !self->is_over && json_next(&iter)) {
        if (!was_asked(self, json_raw(iter.key))) {
            err = ask_one(self, json_raw(iter.key), iter.value);
            asked++;
        }
    }
    self->is_asking = false;
    if (self->is_over) {
        return;
    }
    if (err != BAY_OK) {
        wait_give_up(self, err == BAY_ERR_UNSUPPORTED
                               ? "The task needs input that this client cannot be asked for"
                               : "The client could not be asked for what the task needs");
    } else if (asked == 0) {
        wait_a_while(self);
    } else if (list_is_empty(&self->asks)) {
        update(self);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static void wake(void *argument)
{
    task_continuation *self = argument;
    task_continuation_hold(self);
    wait_look(self);
    task_continuation_let_go(self);
}

static void wait_a_while(task_continuation *self)
{
    bay_err err = BAY_ERR_UNSUPPORTED;
    if (self->endpoint->loop != NULL) {
        loop_timer_init(&self->timer, wake, self);
        err = loop_timer_start(self->endpoint->loop, &self->timer, self->pace_ms);
    }
    if (err != BAY_OK) {
        mcp_outcome outcome;
        task_fail(&outcome, err, "no timer to wait for the task with");
        task_continuation_finish(self, &outcome);
    }
}

static void keep_pace(task_continuation *self, json_val task)
{
    double pace = 0;
    if (json_double(json_get(task, STR("pollIntervalMs")), &pace) == BAY_OK && pace >= 0) {
        self->pace_ms = pace < TASK_MIN_PACE_MS   ? TASK_MIN_PACE_MS
                        : pace > TASK_MAX_PACE_MS ? TASK_MAX_PACE_MS
                                                  : (uint32_t)pace;
    }
}

static bool end_well(task_continuation *self, json_val result, mcp_outcome *inout)
{
    json_builder made;
    self->is_running = false;
    if (!json_is(result, JSON_OBJECT)) {
        task_fail(inout, BAY_ERR_PROTOCOL, "the task is completed and has no result");
        return false;
    }
    task_write_result(task_continuation_build(self, &made), result,
                      self->is_run ? (bay_str){NULL, 0} : self->token);
    task_continuation_result(&made, inout);
    return false;
}

static bool end_badly(task_continuation *self, json_val error, mcp_outcome *inout)
{
    self->is_running = false;
    if (!json_is(error, JSON_OBJECT)) {
        task_error(self, inout, RPC_INTERNAL_ERROR, "The task failed and does not say why");
        return false;
    }
    int64_t code = 0;
    err_ignore(json_int64(json_get(error, STR("code")), &code)); /* the engine has adapted it */
    *inout = (mcp_outcome){.kind = MCP_OUTCOME_ERROR, .error = error, .error_code = (int)code};
    return false;
}

static bool step_looked(task_continuation *self, mcp_outcome *inout)
{
    json_val task = inout->result;
    if (inout->kind != MCP_OUTCOME_RESULT) {
        self->is_running = self->is_running && inout->kind == MCP_OUTCOME_FAILED;
        return false;
    }
    task_status status = task_status_of(task);
    if (!self->is_run) {
        bool is_error =
            status == TASK_COMPLETED && task_result_is_error(json_get(task, STR("result")));
        task_show(self, task, MCP_MODERN, is_error ? TASK_FAILED : TASK_STATUSES);
    }
    keep_pace(self, task);
    switch (status) {
    case TASK_WORKING:
        wait_a_while(self);
        return true;
    case TASK_INPUT_REQUIRED:
        ask_client(self, json_get(task, STR("inputRequests")));
        return true;
    case TASK_COMPLETED:
        return end_well(self, json_get(task, STR("result")), inout);
    case TASK_FAILED:
        return end_badly(self, json_get(task, STR("error")), inout);
    case TASK_CANCELLED:
        self->is_running = false;
        task_error(self, inout, RPC_INTERNAL_ERROR, "The task was cancelled");
        return false;
    default:
        task_fail(inout, BAY_ERR_PROTOCOL, "the task is in a state that no revision knows");
        return false;
    }
}

/* Whether tasks/update was accepted: the next tasks/get shows it. */
static bool step_updated(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind != MCP_OUTCOME_RESULT) {
        return false;
    }
    wait_look(self);
    return true;
}

static void wait_look(task_continuation *self)
{
    self->step = step_looked;
    task_continuation_send(self, MCP_TASKS_GET, JSON_NONE);
}

void task_wait_begin(task_continuation *self)
{
    wait_look(self);
}
