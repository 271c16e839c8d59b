/* Waiting for a task of a stateless server, for a client that does not poll: tasks/result of
 * 2025-11-25, or a plain call that the gateway runs as a task. One thing at a time:
 *
 *   look (tasks/get) --working--> pause --timer--> look
 *                    --input_required--> ask the client --all answered--> tasks/update --> look
 *                    --over--> the result, the error
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "tasks/plan.h"

enum { ANSWERS_BYTES = 64 << 20 };

/* A question to the client. It outlives its plan where the client's answer comes late. */
typedef struct task_ask {
    list_link link;
    task_plan *plan; /* NULL: over */
    const mcp_method *method;
    size_t key_len;
    char key[]; /* raw, with its quotes */
} task_ask;

typedef struct task_key {
    list_link link;
    size_t len;
    char key[];
} task_key;

static void look(task_plan *self);
static void wait_a_while(task_plan *self);
static bool step_updated(task_plan *self, mcp_outcome *inout);

void task_wait_end(task_plan *self)
{
    list_link *link;
    if (self->face->loop != NULL && self->timer.function != NULL) {
        loop_timer_stop(self->face->loop, &self->timer);
    }
    while ((link = list_pop(&self->asks)) != NULL) {
        CONTAINER_OF(link, task_ask, link)->plan = NULL; /* its answer frees it */
    }
    while ((link = list_pop(&self->keys)) != NULL) {
        mem_free(CONTAINER_OF(link, task_key, link));
    }
    if (self->answers.max > 0) {
        buf_fini(&self->answers);
    }
}

/* ---- asking the client ----------------------------------------------------------------------- */

static bool was_asked(const task_plan *self, bay_str key)
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

static bay_err remember(task_plan *self, bay_str key)
{
    if (self->key_count >= TASK_KEYS) {
        return BAY_LIMIT;
    }
    task_key *made = mem_alloc(sizeof(*made) + key.len);
    if (made == NULL) {
        return BAY_NOMEM;
    }
    *made = (task_key){.len = key.len};
    memcpy(made->key, key.at, key.len);
    list_push(&self->keys, &made->link);
    self->key_count++;
    return BAY_OK;
}

/* The client cannot answer, or does not: the task waits in vain, so it ends. */
static void give_up(task_plan *self, const char *why)
{
    mcp_outcome outcome;
    self->is_running = true; /* cancelled as the plan ends */
    task_error(self, &outcome, RPC_INTERNAL_ERROR, why);
    task_plan_finish(self, &outcome);
}

static void update(task_plan *self)
{
    buf params;
    buf_init(&params, ANSWERS_BYTES + TASK_ID_BYTES * 8);
    buf_lit(&params, "{\"taskId\":");
    json_quote(&params, self->id);
    buf_lit(&params, ",\"inputResponses\":{");
    buf_str(&params, buf_view(&self->answers));
    buf_lit(&params, "}}");
    if (params.err != BAY_OK || self->answers.err != BAY_OK) {
        give_up(self, "The client's answers are too long, or memory is short");
    } else {
        buf_clear(&self->answers);
        self->step = step_updated;
        task_plan_send(self, MCP_TASKS_UPDATE, buf_view(&params));
    }
    buf_fini(&params);
}

static void keep_key(task_plan *self, const task_ask *ask)
{
    if (self->answers.len > 0) {
        buf_char(&self->answers, ',');
    }
    buf_append(&self->answers, ask->key, ask->key_len);
    buf_char(&self->answers, ':');
}

static void ask_answered(void *user, bay_err err, const rpc_message *response)
{
    task_ask *ask = user;
    task_plan *self = ask->plan;
    bool is_result = err == BAY_OK && response->kind == RPC_RESULT;
    bool is_form = ask->method->id == MCP_ELICITATION;
    list_remove(&ask->link);
    if (self == NULL || err == BAY_CANCELLED) {
        mem_free(ask); /* the request is over */
        return;
    }
    task_plan_hold(self);
    bool is_gone = err != BAY_OK && err != BAY_TIMEOUT;
    if (is_gone) {
        mcp_outcome outcome; /* the task is the client's: it may come back for it */
        task_error(self, &outcome, RPC_INTERNAL_ERROR, "The client is gone");
        task_plan_finish(self, &outcome);
    } else if (is_result) {
        keep_key(self, ask);
        task_write_result(&self->answers, response->result, (bay_str){NULL, 0});
    } else if (is_form) {
        keep_key(self, ask);
        buf_lit(&self->answers, "{\"action\":\"cancel\"}");
    }
    mem_free(ask);
    if (is_gone) {
        task_plan_let_go(self);
        return;
    }
    if (!is_result && !is_form) {
        give_up(self, err == BAY_OK ? "The client refused what the task needs of it"
                                    : "The client did not answer what the task needs of it");
    } else if (list_is_empty(&self->asks) && !self->is_asking && !self->is_over) {
        update(self);
    }
    task_plan_let_go(self);
}

static bay_err ask_one(task_plan *self, bay_str key, json_val wanted)
{
    mcp_request *request = self->way->request;
    bay_str text;
    bay_err err = json_str(json_get(wanted, STR("method")), &self->sent, &text);
    const mcp_method *method =
        err == BAY_OK ? mcp_method_find(text, request->revision->id, MCP_SENDER_SERVER) : NULL;
    if (method == NULL || method->is_notification) {
        return err == BAY_NOMEM ? err : BAY_UNSUPPORTED;
    }
    err = remember(self, key);
    task_ask *ask = err == BAY_OK ? mem_alloc(sizeof(*ask) + key.len) : NULL;
    if (ask == NULL) {
        return err == BAY_OK ? BAY_NOMEM : err;
    }
    *ask = (task_ask){.plan = self, .method = method, .key_len = key.len};
    memcpy(ask->key, key.at, key.len);
    list_push(&self->asks, &ask->link);
    buf plain;
    buf params;
    buf_init(&plain, ANSWERS_BYTES);
    buf_init(&params, ANSWERS_BYTES);
    json_doc doc;
    arena memory;
    arena_init(&memory, ANSWERS_BYTES);
    task_write_question(&plain, json_get(wanted, STR("params")),
                        self->is_run ? (bay_str){NULL, 0} : self->token);
    err = plain.err == BAY_OK ? json_parse(&doc, buf_view(&plain), NULL, &memory, NULL) : plain.err;
    if (err == BAY_OK) {
        question_write_params(&params, method->text, json_root(&doc), request->revision);
        err = params.err;
    }
    if (err == BAY_OK) {
        err = mcp_request_ask(request, method->id, buf_view(&params), ask_answered, ask,
                              task_face_now(self->face));
    }
    arena_fini(&memory);
    buf_fini(&plain);
    buf_fini(&params);
    if (err != BAY_OK) {
        list_remove(&ask->link);
        mem_free(ask);
    }
    return err;
}

/* What was asked before waits for its update to take effect. */
static void ask_client(task_plan *self, json_val inputs)
{
    bay_err err = BAY_OK;
    size_t asked = 0;
    json_iter iter = json_iter_of(inputs);
    self->is_asking = true; /* an answer may come before the last question is out */
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
        give_up(self, err == BAY_UNSUPPORTED
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
    task_plan *self = argument;
    task_plan_hold(self);
    look(self);
    task_plan_let_go(self);
}

static void wait_a_while(task_plan *self)
{
    bay_err err = BAY_UNSUPPORTED;
    if (self->face->loop != NULL) {
        loop_timer_init(&self->timer, wake, self);
        err = loop_timer_start(self->face->loop, &self->timer, self->pace_ms);
    }
    if (err != BAY_OK) {
        mcp_outcome outcome;
        task_fail(&outcome, err, "no timer to wait for the task with");
        task_plan_finish(self, &outcome);
    }
}

static void keep_pace(task_plan *self, json_val task)
{
    double pace = 0;
    if (json_double(json_get(task, STR("pollIntervalMs")), &pace) == BAY_OK && pace >= 0) {
        self->pace_ms = pace < TASK_MIN_PACE_MS   ? TASK_MIN_PACE_MS
                        : pace > TASK_MAX_PACE_MS ? TASK_MAX_PACE_MS
                                                  : (uint32_t)pace;
    }
}

static bool end_well(task_plan *self, json_val result, mcp_outcome *inout)
{
    buf text;
    self->is_running = false;
    if (!json_is(result, JSON_OBJECT)) {
        task_fail(inout, BAY_PROTOCOL, "the task is completed and has no result");
        return false;
    }
    buf_init(&text, TASK_PLAN_MEMORY);
    task_write_result(&text, result, self->is_run ? (bay_str){NULL, 0} : self->token);
    task_plan_result(self, &text, inout);
    buf_fini(&text);
    return false;
}

static bool end_badly(task_plan *self, json_val error, mcp_outcome *inout)
{
    self->is_running = false;
    if (!json_is(error, JSON_OBJECT)) {
        task_error(self, inout, RPC_INTERNAL_ERROR, "The task failed and does not say why");
        return false;
    }
    int64_t code = 0;
    err_ignore(json_int64(json_get(error, STR("code")), &code)); /* dressed by the engine */
    *inout = (mcp_outcome){.kind = MCP_OUTCOME_ERROR, .error = error, .error_code = (int)code};
    return false;
}

static bool step_looked(task_plan *self, mcp_outcome *inout)
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
        task_fail(inout, BAY_PROTOCOL, "the task is in a state that no revision knows");
        return false;
    }
}

/* tasks/update was taken, or not: the next look tells. */
static bool step_updated(task_plan *self, mcp_outcome *inout)
{
    if (inout->kind != MCP_OUTCOME_RESULT) {
        return false;
    }
    look(self);
    return true;
}

static void look(task_plan *self)
{
    self->step = step_looked;
    task_plan_send(self, MCP_TASKS_GET, (bay_str){NULL, 0});
}

void task_wait_begin(task_plan *self)
{
    buf_init(&self->answers, ANSWERS_BYTES);
    look(self);
}
