/* Input requests of a server of 2025-11-25 about a task, for a client of the stateless revision.
 * The server sends them on the stream of tasks/result, so that call stays open while the client
 * polls. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "mcp/inputs.h"
#include "tasks/registry.h"
#include "json/build.h"

enum { TASK_RESULT_REQUEST_MEMORY = 1 << 20, KEY_BYTES = 40 };

/* Moves the due waiters to `due` first: waking one may end others. */
static void take_due(task_result_request *self, uint64_t now_ms, list *due)
{
    LIST_EACH(link, &self->waiters)
    {
        if (CONTAINER_OF(link, task_waiter, link)->until_ms <= now_ms) {
            list_remove(link);
            list_push(due, link);
        }
    }
}

static void wake_all(list *due)
{
    list_link *link;
    while ((link = list_pop(due)) != NULL) {
        task_waiter *waiter = CONTAINER_OF(link, task_waiter, link);
        waiter->wake(waiter);
    }
}

static void result_request_wake(task_result_request *self)
{
    list due;
    list_init(&due);
    take_due(self, UINT64_MAX, &due);
    wake_all(&due);
}

static void input_request_remove(task_result_request *self, task_input_request *question)
{
    list_remove(&question->link);
    self->input_request_count--;
    self->input_request_bytes -= json_raw(question->params).len;
    mem_free(question);
}

static void result_request_free(task_result_request *self)
{
    list_link *link;
    while ((link = list_first(&self->input_requests)) != NULL) {
        input_request_remove(self, CONTAINER_OF(link, task_input_request, link));
    }
    principal_unref(self->call.affinity.principal);
    arena_fini(&self->memory);
    mem_free(self);
}

/* Removes it from the registry; waiters are woken and find no input requests. */
static void result_request_end(task_result_request *self)
{
    list_link *link;
    self->has_ended = true;
    map_remove(&self->registry->result_requests, self->token);
    while ((link = list_first(&self->input_requests)) != NULL) {
        input_request_remove(self, CONTAINER_OF(link, task_input_request, link));
    }
    result_request_wake(self);
    if (self->hold == 0) {
        result_request_free(self);
    }
}

/* Called after something that may have ended it; true: it has ended. */
static bool result_request_release(task_result_request *self)
{
    self->hold--;
    if (self->has_ended && self->hold == 0) {
        result_request_free(self);
        return true;
    }
    return false;
}

static void result_request_done(void *user, const mcp_outcome *outcome)
{
    (void)outcome; /* the next tasks/get shows the task's state */
    result_request_end(user);
}

static void result_request_notified(void *user, mcp_method_id method, json_val params)
{
    (void)user; /* tasks have neither progress nor messages in the stateless revision */
    (void)method;
    (void)params;
}

static char *put(char **at, bay_str text, bay_str *out)
{
    memcpy(*at, text.at, text.len);
    *out = (bay_str){*at, text.len};
    *at += text.len;
    return *at;
}

static bay_err input_request_add(task_result_request *self, const rpc_message *request)
{
    json_builder built;
    json_val params;
    buf key;
    if (self->input_request_count >= TASK_INPUT_REQUESTS) {
        return BAY_ERR_LIMIT;
    }
    buf_init(&key, KEY_BYTES);
    task_write_input_request(json_builder_init(&built, NULL, TASK_INPUT_REQUEST_BYTES),
                             request->params, (bay_str){NULL, 0});
    buf_printf(&key, "q%llx-%u", (unsigned long long)self->salt, ++self->last_key);
    bay_err err = json_builder_view(&built, &params);
    err = err == BAY_OK ? key.err : err;
    if (err == BAY_OK &&
        json_raw(params).len > TASK_INPUT_REQUEST_BYTES - self->input_request_bytes) {
        err = BAY_ERR_LIMIT;
    }
    task_input_request *made = NULL;
    if (err == BAY_OK) {
        made = mem_zalloc(sizeof(*made) + json_clone_bytes(params) + key.len + request->id.len +
                          request->method.len + 1);
        err = made != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (made != NULL) {
        char *at = (char *)(made + 1) + json_clone_bytes(params);
        made->params = json_root(json_clone_at(params, made + 1));
        put(&at, buf_view(&key), &made->key);
        put(&at, request->id, &made->id);
        put(&at, request->method, &made->method);
        list_push(&self->input_requests, &made->link);
        self->input_request_count++;
        self->input_request_bytes += json_raw(params).len;
    }
    json_builder_drop(&built);
    buf_fini(&key);
    return err;
}

static void result_request_asked(void *user, const rpc_message *request)
{
    task_result_request *self = user;
    unsigned needed = mcp_inputs_needed(request->method, request->params);
    if (needed == 0 || (needed & ~self->inputs) != 0) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_METHOD_NOT_FOUND,
                             STR("The client of this task cannot be asked for that"));
        return;
    }
    bay_err err = input_request_add(self, request);
    if (err != BAY_OK) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             err == BAY_ERR_LIMIT ? STR("Too many questions of this task are open")
                                                  : STR("Out of memory"));
        return;
    }
    result_request_wake(self);
}

static void result_request_withdrawn(void *user, bay_str id)
{
    task_result_request *self = user;
    LIST_EACH(link, &self->input_requests)
    {
        task_input_request *question = CONTAINER_OF(link, task_input_request, link);
        if (str_eq(question->id, id)) {
            input_request_remove(self, question);
            return;
        }
    }
}

static const upstream_call_events result_request_events = {.notified = result_request_notified,
                                                           .asked = result_request_asked,
                                                           .withdrawn = result_request_withdrawn,
                                                           .done = result_request_done};

task_result_request *task_result_request_find(const task_registry *self, bay_str token)
{
    return self != NULL ? map_get(&self->result_requests, token) : NULL;
}

static bay_err result_request_fill(task_result_request *self, bay_str token, bay_str id,
                                   const upstream_affinity *affinity)
{
    json_builder made;
    json_val params;
    json_writer *out = json_builder_init(&made, &self->memory, TASK_RESULT_REQUEST_MEMORY);
    json_open_object(out);
    json_key_lit(out, "taskId");
    json_put_str(out, id);
    json_close_object(out);
    bay_err err = json_builder_end(&made, &params);
    err = err == BAY_OK ? arena_dup(&self->memory, token, &self->token) : err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, affinity->identity, &self->call.affinity.identity);
    }
    if (err != BAY_OK) {
        return err;
    }
    self->call.affinity.principal = principal_ref(affinity->principal);
    self->call.affinity.inputs = affinity->inputs;
    self->call.affinity.is_stateless = affinity->is_stateless;
    self->call.affinity.has_session = affinity->has_session;
    self->call.spec = (mcp_call_spec){.method = mcp_method_of(MCP_TASKS_RESULT)->text,
                                      .params = params,
                                      .log_level = MCP_LOG_NONE,
                                      .timeout_ms = TASK_MAX_TTL_MS,
                                      .max_total_ms = TASK_MAX_TTL_MS};
    err = arena_dup(&self->memory, id, &self->call.task);
    self->call.spec.rename = self->call.task;
    return err;
}

bay_err task_result_request_open(task_registry *self, bay_str token, bay_str id, upstream *to,
                                 const upstream_affinity *affinity, uint64_t now_ms,
                                 task_result_request **out)
{
    task_result_request *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    made->registry = self;
    arena_init(&made->memory, TASK_RESULT_REQUEST_MEMORY);
    list_init(&made->input_requests);
    list_init(&made->waiters);
    made->salt = rand_u64();
    made->call.events = &result_request_events;
    made->call.user = made;
    bay_err err = result_request_fill(made, token, id, affinity);
    err = err == BAY_OK ? map_put(&self->result_requests, made->token, made, NULL) : err;
    if (err != BAY_OK) {
        result_request_free(made);
        return err;
    }
    task_result_request_look(made, affinity->inputs, now_ms);
    task_registry_wake(self);
    made->hold++;
    upstream_send(to, &made->call); /* a refusal may come at once */
    if (result_request_release(made)) {
        return BAY_ERR_CLOSED;
    }
    *out = made;
    return BAY_OK;
}

void task_result_request_look(task_result_request *self, unsigned inputs, uint64_t now_ms)
{
    self->inputs = inputs;
    self->until_ms = now_ms + self->registry->answer_ms;
}

void task_result_request_wait(task_result_request *self, task_waiter *waiter, uint64_t until_ms)
{
    waiter->until_ms = until_ms;
    list_push(&self->waiters, &waiter->link);
}

void task_result_request_write(const task_result_request *self, json_writer *out)
{
    json_key_lit(out, "inputRequests");
    json_open_object(out);
    LIST_EACH(link, &self->input_requests)
    {
        const task_input_request *question = CONTAINER_OF(link, task_input_request, link);
        json_key(out, question->key);
        json_open_object(out);
        json_key_lit(out, "method");
        json_put_str(out, question->method);
        json_key_lit(out, "params");
        json_put_val(out, question->params);
        json_close_object(out);
    }
    json_close_object(out);
}

void task_result_request_answer(task_result_request *self, json_val responses)
{
    /* an answer may end the call and with it the result_request: all answers are taken out first */
    list answered;
    self->hold++;
    list_init(&answered);
    LIST_EACH(link, &self->input_requests)
    {
        const task_input_request *question = CONTAINER_OF(link, task_input_request, link);
        if (json_is(json_get(responses, question->key), JSON_OBJECT)) {
            list_remove(link);
            list_push(&answered, link);
        }
    }
    upstream_call *call = &self->call;
    list_link *link;
    json_writer writer;
    buf text;
    buf_init(&text, TASK_ANSWER_BYTES);
    while ((link = list_pop(&answered)) != NULL) {
        task_input_request *question = CONTAINER_OF(link, task_input_request, link);
        self->input_request_count--;
        self->input_request_bytes -= json_raw(question->params).len;
        /* mcp 2025-11-25 tasks, Related Task Metadata */
        buf_clear(&text);
        json_writer_init(&writer, &text);
        task_write_result(&writer, json_get(responses, question->key), call->task);
        upstream_call_answer(call, question->id,
                             text.err == BAY_OK ? buf_view(&text) : (bay_str){NULL, 0},
                             RPC_INTERNAL_ERROR, STR("The answer does not fit into memory"));
        mem_free(question);
    }
    buf_fini(&text);
    (void)result_request_release(self);
}

static task_result_request *first_abandoned(const task_registry *self, uint64_t now_ms)
{
    size_t cursor = 0;
    bay_str token;
    void *result_request;
    while (map_next(&self->result_requests, &cursor, &token, &result_request)) {
        if (((task_result_request *)result_request)->until_ms <= now_ms) {
            return result_request;
        }
    }
    return NULL;
}

void task_result_requests_expire(task_registry *self, uint64_t now_ms)
{
    list due;
    size_t cursor = 0;
    bay_str token;
    void *result_request;
    list_init(&due);
    while (map_next(&self->result_requests, &cursor, &token, &result_request)) {
        take_due(result_request, now_ms, &due);
    }
    wake_all(&due);
    task_result_request *abandoned;
    while ((abandoned = first_abandoned(self, now_ms)) != NULL) {
        upstream_call_cancel(&abandoned->call, STR("nobody comes for the task any more"));
        result_request_end(abandoned);
    }
}

/* ---- cancels that nobody waits for ----------------------------------------------------------- */

typedef struct task_cancel {
    list_link link;
    task_registry *registry;
    upstream_call call;
    arena memory;
} task_cancel;

static void task_cancel_free(task_cancel *self)
{
    list_remove(&self->link);
    self->registry->cancel_count--;
    principal_unref(self->call.affinity.principal);
    arena_fini(&self->memory);
    mem_free(self);
}

static void task_cancel_done(void *user, const mcp_outcome *outcome)
{
    (void)outcome;
    task_cancel_free(user);
}

static const upstream_call_events task_cancel_events = {.notified = result_request_notified,
                                                        .done = task_cancel_done};

void task_cancel_send(task_registry *self, upstream *to, bay_str id,
                      const upstream_affinity *affinity)
{
    task_cancel *made = NULL;
    if (self->cancel_count < TASK_CANCELS) {
        made = mem_zalloc(sizeof(*made));
    }
    if (made == NULL) {
        LOG(LOG_WARN, "task", "%s: a task that nobody waits for was not cancelled",
            upstream_name(to).at);
        return;
    }
    made->registry = self;
    arena_init(&made->memory, TASK_RESULT_REQUEST_MEMORY);
    list_push(&self->cancels, &made->link);
    self->cancel_count++;
    made->call.events = &task_cancel_events;
    made->call.user = made;
    made->call.is_repeatable = true;
    made->call.affinity.principal = principal_ref(affinity->principal);
    made->call.affinity.inputs = affinity->inputs;
    made->call.affinity.is_stateless = affinity->is_stateless;
    made->call.affinity.has_session = affinity->has_session;
    bay_err err = arena_dup(&made->memory, affinity->identity, &made->call.affinity.identity);
    err = err == BAY_OK ? arena_dup(&made->memory, id, &made->call.spec.rename) : err;
    if (err != BAY_OK) {
        task_cancel_free(made);
        return;
    }
    made->call.spec.method = mcp_method_of(MCP_TASKS_CANCEL)->text;
    made->call.spec.params = json_empty_object(); /* renamed to {"taskId":…} */
    made->call.spec.log_level = MCP_LOG_NONE;
    /* mcp 2026-07-28 tasks: every request about a task declares the extension */
    made->call.spec.capabilities = STR("{\"extensions\":{\"" MCP_EXTENSION_TASKS "\":{}}}");
    upstream_send(to, &made->call);
}

void task_cancels_end(task_registry *self)
{
    list_link *link;
    while ((link = list_first(&self->cancels)) != NULL) {
        task_cancel *one = CONTAINER_OF(link, task_cancel, link);
        upstream_call_cancel(&one->call, STR("the gateway is closing"));
        task_cancel_free(one);
    }
}
