/* tasks/get, tasks/update, tasks/cancel, tasks/result, tasks/list. The token of a task says where
 * the task is: at a server, which gets the request in its own revision, or in the gateway, which
 * stores only results. A token that is not valid reaches no server. */
#include "base/err.h"
#include "base/str.h"
#include "mcp/inputs.h"
#include "tasks/continuation.h"

enum { INPUT_REQUEST_WAIT_MS = 2000, LIST_BYTES = 8 << 20 };

static void methods_refuse(mcp_request *request, int code, bay_str text)
{
    mcp_request_error(request, code, text, (bay_str){NULL, 0});
}

static void refuse_unknown(mcp_request *request)
{
    methods_refuse(request, RPC_INVALID_PARAMS, STR("Task not found"));
}

/* ---- answers of servers, by the client's method ---------------------------------------------- */

/* A task in the client's shape. `status`: TASK_STATUSES: unchanged. `more`: inlined members. */
static void say_task(task_continuation *self, json_val task, task_status status, mcp_outcome *inout,
                     const task_result_request *questions)
{
    json_builder made;
    mcp_era from = task_server_era(self->way->call.upstream);
    json_writer *out = task_continuation_build(self, &made);
    json_open_object(out);
    task_put(out, task, from, self->is_session ? MCP_LEGACY : MCP_MODERN, self->token, status);
    if (questions != NULL) {
        task_result_request_write(questions, out);
    }
    json_close_object(out);
    task_continuation_result(&made, inout);
}

/* Same revision: unchanged except for the token. */
static bool step_as_it_is(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind == MCP_OUTCOME_RESULT &&
        !json_is(json_get(inout->result, STR("taskId")), JSON_MISSING)) {
        json_val task = inout->result;
        task_show(self, task, task_server_era(self->way->call.upstream), TASK_STATUSES);
        say_task(self, task, TASK_STATUSES, inout, NULL);
    }
    return false;
}

static bool step_result_as_it_is(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind == MCP_OUTCOME_RESULT) {
        json_builder made;
        task_write_result(task_continuation_build(self, &made), inout->result, self->token);
        task_continuation_result(&made, inout);
    }
    return false;
}

static bool is_task(mcp_outcome *inout)
{
    if (task_status_of(inout->result) == TASK_STATUSES) {
        task_fail(inout, BAY_ERR_PROTOCOL, "the task is in a state that no revision knows");
        return false;
    }
    return true;
}

/* mcp 2025-11-25 tasks: once cancelled, a task stays cancelled; a result with isError makes a task
 * failed. */
static task_status status_for_session(const task_continuation *self, json_val task)
{
    const task_entry *entry =
        task_entry_find(self->endpoint->task_registry, self->identity, self->token);
    task_status status = task_status_of(task);
    if (entry != NULL && entry->is_cancelled) {
        return TASK_CANCELLED;
    }
    bool is_error = status == TASK_COMPLETED && task_result_is_error(json_get(task, STR("result")));
    return is_error ? TASK_FAILED : status;
}

/* tasks/get of a session's client at a stateless server. */
static bool step_get_for_session(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind == MCP_OUTCOME_RESULT && is_task(inout)) {
        json_val task = inout->result;
        task_status status = status_for_session(self, task);
        task_show(self, task, MCP_MODERN, status);
        say_task(self, task, status, inout, NULL);
    }
    return false;
}

/* tasks/get of a stateless client at a server with sessions: the result that tasks/result returned.
 */
static bool step_inlined(task_continuation *self, mcp_outcome *inout)
{
    static const bay_str names[] = {STR_INIT("result"), STR_INIT("error")};
    bool is_error = inout->kind == MCP_OUTCOME_ERROR;
    json_builder made;
    if (inout->kind == MCP_OUTCOME_FAILED) {
        return false;
    }
    json_writer *out = task_continuation_build(self, &made);
    json_open_object(out);
    task_put(out, self->task, MCP_LEGACY, MCP_MODERN, self->token,
             is_error ? TASK_FAILED : TASK_COMPLETED);
    json_key(out, names[is_error]);
    if (is_error) {
        json_put_val(out, inout->error);
    } else {
        task_write_result(out, inout->result, (bay_str){NULL, 0});
    }
    json_close_object(out);
    task_continuation_result(&made, inout);
    return false;
}

/* The first input request has arrived, the time is over, or tasks/result has ended. */
static void waiter_wake(task_waiter *waiter)
{
    task_continuation *self = CONTAINER_OF(waiter, task_continuation, waiter);
    task_result_request *result_request =
        task_result_request_find(self->endpoint->task_registry, self->token);
    bool has_any = result_request != NULL && result_request->input_request_count > 0;
    mcp_outcome outcome;
    task_continuation_hold(self);
    say_task(self, self->task, has_any ? TASK_INPUT_REQUIRED : TASK_WORKING, &outcome,
             has_any ? result_request : NULL);
    task_continuation_finish(self, &outcome);
    task_continuation_let_go(self);
}

/* The task needs input: its input requests arrive on the stream of tasks/result. */
static bool take_input_requests(task_continuation *self, mcp_outcome *inout)
{
    task_registry *registry = task_endpoint_registry(self->endpoint);
    task_result_request *result_request = task_result_request_find(registry, self->token);
    uint64_t now_ms = task_endpoint_now(self->endpoint);
    const upstream_affinity *affinity = &self->way->call.affinity;
    bay_err err = registry != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (result_request == NULL && err == BAY_OK) {
        err = task_result_request_open(registry, self->token, self->id, self->way->call.upstream,
                                       affinity, now_ms, &result_request);
    }
    if (err == BAY_ERR_CLOSED) {
        say_task(self, self->task, TASK_WORKING, inout, NULL); /* the next tasks/get shows it */
        return false;
    }
    if (err != BAY_OK) {
        task_fail(inout, err, "what the task needs of the client could not be asked for");
        return false;
    }
    task_result_request_look(result_request, affinity->inputs, now_ms);
    if (result_request->input_request_count > 0) {
        say_task(self, self->task, TASK_INPUT_REQUIRED, inout, result_request);
        return false;
    }
    self->waiter.wake = waiter_wake;
    task_result_request_wait(result_request, &self->waiter, now_ms + INPUT_REQUEST_WAIT_MS);
    return true;
}

static bool step_get_inlining(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind != MCP_OUTCOME_RESULT || !is_task(inout)) {
        return false;
    }
    task_status status = task_status_of(inout->result);
    if (status == TASK_WORKING || status == TASK_CANCELLED) {
        say_task(self, inout->result, TASK_STATUSES, inout, NULL);
        return false;
    }
    /* it outlives this callback */
    bay_err err = json_clone_in(inout->result, &self->memory, &self->task);
    if (err != BAY_OK) {
        task_fail(inout, err, "out of memory");
        return false;
    }
    if (status == TASK_INPUT_REQUIRED) {
        return take_input_requests(self, inout);
    }
    self->step = step_inlined;
    task_continuation_send(self, MCP_TASKS_RESULT, JSON_NONE);
    return true;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void acknowledge(mcp_outcome *inout)
{
    *inout = (mcp_outcome){.kind = MCP_OUTCOME_RESULT, .result = json_empty_object()};
}

/* A stateless client may cancel a task that is over; a server with sessions returns an error. */
static bool step_cancel_was_late(task_continuation *self, mcp_outcome *inout)
{
    bool is_over = inout->kind == MCP_OUTCOME_RESULT &&
                   task_is_over(task_status_of(inout->result)) &&
                   task_status_of(inout->result) != TASK_STATUSES;
    if (is_over) {
        acknowledge(inout);
    } else if (inout->kind == MCP_OUTCOME_RESULT) {
        task_error(self, inout, RPC_INVALID_PARAMS, "The server does not cancel this task");
    }
    return false;
}

static bool step_cancel_plain(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind == MCP_OUTCOME_ERROR && inout->error_code == RPC_INVALID_PARAMS) {
        self->step = step_cancel_was_late;
        task_continuation_send(self, MCP_TASKS_GET, JSON_NONE);
        return true;
    }
    if (inout->kind == MCP_OUTCOME_RESULT) {
        acknowledge(inout);
    }
    return false;
}

/* A session's client gets the cancelled task; the stateless server has only acknowledged. */
static bool step_cancelled_for_session(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind == MCP_OUTCOME_RESULT) {
        task_show(self, self->task, MCP_MODERN, TASK_CANCELLED);
        task_entry *entry =
            task_entry_find(self->endpoint->task_registry, self->identity, self->token);
        if (entry != NULL) {
            entry->is_cancelled = true;
        }
        say_task(self, self->task, TASK_CANCELLED, inout, NULL);
    }
    return false;
}

/* mcp 2025-11-25 tasks: a task that is over cannot be cancelled. */
static void refuse_cancel(task_continuation *self, mcp_outcome *inout)
{
    task_error(self, inout, RPC_INVALID_PARAMS, "Cannot cancel the task: it is over already");
}

static bool step_cancel_for_session(task_continuation *self, mcp_outcome *inout)
{
    if (inout->kind != MCP_OUTCOME_RESULT || !is_task(inout)) {
        return false;
    }
    if (task_is_over(status_for_session(self, inout->result))) {
        refuse_cancel(self, inout);
        return false;
    }
    bay_err err = json_clone_in(inout->result, &self->memory, &self->task);
    if (err != BAY_OK) {
        task_fail(inout, err, "out of memory");
        return false;
    }
    self->step = step_cancelled_for_session;
    task_continuation_send(self, MCP_TASKS_CANCEL, JSON_NONE);
    return true;
}

/* ---- updates --------------------------------------------------------------------------------- */

static bool has_answers(mcp_request *request)
{
    json_val answers = json_get(request->message.params, STR("inputResponses"));
    json_iter iter = json_iter_of(answers);
    bool is_good = json_is(answers, JSON_OBJECT);
    while (is_good && json_next(&iter)) {
        is_good = json_is(iter.value, JSON_OBJECT);
    }
    return is_good;
}

static void update_result_request(endpoint *self, mcp_request *request)
{
    task_result_request *result_request =
        task_result_request_find(self->task_registry, request->name);
    if (!has_answers(request)) {
        methods_refuse(request, RPC_INVALID_PARAMS,
                       STR("tasks/update needs inputResponses, an object of objects"));
        return;
    }
    if (result_request != NULL) {
        task_result_request_answer(result_request,
                                   json_get(request->message.params, STR("inputResponses")));
    }
    mcp_request_result_members(request, (bay_str){NULL, 0});
}

/* ---- the gateway's own ----------------------------------------------------------------------- */

static void give_own_result(task_continuation *self, const task_entry *entry)
{
    json_builder made;
    mcp_outcome outcome;
    task_write_result(task_continuation_build(self, &made), json_root(entry->kept), self->token);
    task_continuation_result(&made, &outcome);
    task_continuation_finish(self, &outcome);
}

static void request_own(task_continuation *self, mcp_request *request)
{
    mcp_outcome outcome;
    task_registry *registry = self->endpoint->task_registry;
    if (registry != NULL) {
        task_registry_expire(registry, loop_time_ms());
    }
    const task_entry *entry = task_entry_find(registry, self->identity, self->token);
    if (entry == NULL || !entry->is_own) {
        task_error(self, &outcome, RPC_INVALID_PARAMS, "Task not found: its time is over");
        task_continuation_finish(self, &outcome);
    } else if (request->method->id == MCP_TASKS_RESULT) {
        give_own_result(self, entry);
    } else if (request->method->id == MCP_TASKS_LEGACY_GET) {
        /* its content is not read */
        bay_str shown = {entry->shown + 1, entry->shown_len - 2};
        route_end(self->way);
        mcp_request_result_members(request, shown);
    } else {
        refuse_cancel(self, &outcome);
        task_continuation_finish(self, &outcome);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The client's own progress token, from the call that began the task. Without memory no progress is
 * reported. */
static void follow_progress(task_continuation *self)
{
    const task_entry *entry =
        task_entry_find(self->endpoint->task_registry, self->identity, self->token);
    if (entry != NULL && entry->progress_of != 0 &&
        arena_dup(&self->memory, str_of(entry->progress_token), &self->progress_token) == BAY_OK) {
        self->way->call.spec.progress_of = entry->progress_of;
    }
}

/* Selects the step for the server's answer, and the first request to the server. */
static void request_server(task_continuation *self, mcp_request *request, upstream *to, mcp_era era)
{
    bool is_same = (era == MCP_LEGACY) == self->is_session;
    request->user = self->way;
    mcp_method_id method = request->method->id;
    switch (method) {
    case MCP_TASKS_GET:
        self->step = is_same ? step_as_it_is : step_get_inlining;
        break;
    case MCP_TASKS_LEGACY_GET:
        self->step = is_same ? step_as_it_is : step_get_for_session;
        break;
    case MCP_TASKS_CANCEL:
        self->step = is_same ? step_as_it_is : step_cancel_plain;
        break;
    case MCP_TASKS_LEGACY_CANCEL:
        self->step = is_same ? step_as_it_is : step_cancel_for_session;
        method = is_same ? method : MCP_TASKS_GET;
        break;
    case MCP_TASKS_RESULT:
        if (!is_same) {
            task_wait_begin(self);
            return;
        }
        self->step = step_result_as_it_is;
        break;
    default:
        self->step = step_as_it_is;
    }
    if (is_same) { /* the client's own params with the server's id of the task */
        self->way->call.spec.rename = self->id;
        if (method == MCP_TASKS_RESULT) {
            follow_progress(self);
            self->way->call.task = self->id;
            self->way->call.spec.timeout_ms = self->endpoint->config->timeouts.call_total_ms;
        }
        route_send(self->way, to);
    } else {
        task_continuation_send(self, method, JSON_NONE);
    }
}

/* Until the server has connected, its revision is the one in the token. */
static mcp_era era_of(const upstream *of, task_home home)
{
    return upstream_revision(of) != NULL ? task_server_era(of)
           : home == TASK_AT_LEGACY      ? MCP_LEGACY
                                         : MCP_MODERN;
}

static void request_continuation(endpoint *self, mcp_request *request, task_home home, upstream *to,
                                 bay_str server, bay_str id)
{
    route *way = route_new(self, request);
    if (way == NULL) {
        return;
    }
    task_continuation *continuation = task_continuation_new(way, server);
    if (continuation == NULL) {
        route_end(way);
        endpoint_refuse_memory(request);
        return;
    }
    task_continuation_hold(continuation);
    continuation->token = request->name;
    continuation->id = id;
    way->call.affinity.inputs = mcp_inputs_of(request->revision, request->client_capabilities);
    way->call.is_repeatable = true;
    bay_str capabilities = continuation->is_session
                               ? task_continuation_capabilities(continuation, request)
                               : way->call.spec.capabilities;
    if (continuation->is_session && capabilities.len == 0) {
        route_end(way);
        endpoint_refuse_memory(request);
    } else if (home == TASK_AT_GATEWAY) {
        request_own(continuation, request);
    } else {
        way->call.spec.capabilities = capabilities;
        request_server(continuation, request, to, era_of(to, home));
    }
    task_continuation_let_go(continuation);
}

static void request_list(endpoint *self, mcp_request *request)
{
    buf text;
    route *way = route_new(self, request); /* it holds the client's request */
    if (way == NULL) {
        return;
    }
    bay_str identity = way->call.affinity.identity;
    buf_init(&text, LIST_BYTES);
    if (self->task_registry != NULL) {
        task_registry_expire(self->task_registry, loop_time_ms());
    }
    bay_err err = task_registry_list(self->task_registry, identity,
                                     json_get(request->message.params, STR("cursor")), &text);
    route_end(way);
    if (err == BAY_ERR_INVALID) {
        methods_refuse(request, RPC_INVALID_PARAMS, STR("Invalid cursor: list from the start"));
    } else if (err != BAY_OK) {
        endpoint_refuse_memory(request);
    } else {
        mcp_request_result_members(request, buf_view(&text));
    }
    buf_fini(&text);
}

/* mcp 2026-07-28 tasks, Error Handling */
static void refuse_capability(mcp_request *request)
{
    mcp_request_error(
        request, MCP_MISSING_CAPABILITY, STR("Missing required client capability"),
        STR("{\"requiredCapabilities\":{\"extensions\":{\"" MCP_EXTENSION_TASKS "\":{}}}}"));
}

static void task_request(endpoint *self, mcp_request *request)
{
    task_home home = TASK_AT_GATEWAY;
    bay_str server = {NULL, 0};
    bay_str id = {NULL, 0};
    if (request->method->id == MCP_TASKS_LIST) {
        if (mcp_request_admit(request, NULL)) {
            request_list(self, request);
        }
        return;
    }
    if (request->revision->era == MCP_MODERN && !task_client_has_extension(request)) {
        refuse_capability(request);
        return;
    }
    bay_err err = task_name_open(self, request->principal, request->name, request->memory, &home,
                                 &server, &id);
    if (err == BAY_ERR_NOMEM) {
        endpoint_refuse_memory(request);
        return;
    }
    const catalog_source *source =
        err == BAY_OK ? catalog_servers_find(&self->servers, server) : NULL;
    if (err != BAY_OK || (source == NULL && home != TASK_AT_GATEWAY)) {
        refuse_unknown(request);
        return;
    }
    call_target *to = source != NULL ? upstream_target(source->upstream) : NULL;
    if (!mcp_request_admit(request, to)) {
        return;
    }
    if (request->method->id == MCP_TASKS_UPDATE &&
        (home == TASK_AT_GATEWAY || era_of(source->upstream, home) == MCP_LEGACY)) {
        update_result_request(self, request);
    } else {
        request_continuation(self, request, home, source != NULL ? source->upstream : NULL, server,
                             id);
    }
}

/* ---- what an endpoint declares --------------------------------------------------------------- */

/* Without keys no token can be made, so nothing is declared. */
static void task_put_capability(const endpoint *self, const mcp_revision *revision,
                                json_writer *out)
{
    if (self->ring != NULL && revision->id == MCP_REV_2025_11_25) {
        json_key_lit(out, "tasks");
        json_put_raw(out,
                     STR("{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"));
    }
}

static void task_put_extension(const endpoint *self, const mcp_revision *revision, json_writer *out)
{
    if (self->ring != NULL && revision->era == MCP_MODERN) {
        json_key_lit(out, MCP_EXTENSION_TASKS);
        json_put_raw(out, STR("{}"));
    }
}

static void task_forget(endpoint *self)
{
    task_registry_free(self->task_registry);
    self->task_registry = NULL;
}

static size_t task_count(const endpoint *self)
{
    return self->task_registry != NULL ? self->task_registry->entries.len : 0;
}

const endpoint_tasks task_ops = {
    .put_capability = task_put_capability,
    .put_extension = task_put_extension,
    .request = task_request,
    .admit = task_admit,
    .answer = task_answer,
    .end = task_end,
    .forget = task_forget,
    .count = task_count,
};
