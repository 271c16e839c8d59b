#include "tasks/continuation.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "mcp/inputs.h"

enum { SENT_MEMORY = 1 << 28, WORDS_MEMORY = 1 << 16 };

/* ---- who can what ---------------------------------------------------------------------------- */

bool task_client_has_extension(const mcp_request *request)
{
    return request->revision->era == MCP_MODERN &&
           json_is(
               mcp_capability(request->client_capabilities, STR("extensions." MCP_EXTENSION_TASKS)),
               JSON_OBJECT);
}

mcp_era task_server_era(const upstream *of)
{
    const mcp_revision *revision = upstream_revision(of);
    return revision != NULL ? revision->era : MCP_MODERN;
}

bool task_server_has_extension(const upstream *of)
{
    const mcp_revision *revision = upstream_revision(of);
    return revision != NULL && revision->era == MCP_MODERN &&
           upstream_has(of, STR("extensions." MCP_EXTENSION_TASKS));
}

bool task_server_has_core(const upstream *of)
{
    const mcp_revision *revision = upstream_revision(of);
    return revision != NULL && revision->id == MCP_REV_2025_11_25 &&
           upstream_has(of, STR("tasks.requests.tools.call"));
}

task_registry *task_endpoint_registry(endpoint *self)
{
    if (self->task_registry == NULL &&
        task_registry_new(self->loop, self->config->timeouts.answer_ms, &self->task_registry) !=
            BAY_OK) {
        return NULL;
    }
    return self->task_registry;
}

uint64_t task_endpoint_now(const endpoint *self)
{
    return self->loop != NULL ? loop_now_ms(self->loop) : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

json_writer *task_continuation_build(task_continuation *self, json_builder *made)
{
    return json_builder_init(made, &self->memory, TASK_CONTINUATION_MEMORY);
}

void task_fail(mcp_outcome *out, bay_err err, const char *text)
{
    *out = (mcp_outcome){.kind = MCP_OUTCOME_FAILED, .err = err, .was_sent = true, .text = text};
}

void task_continuation_result(json_builder *made, mcp_outcome *out)
{
    json_val result;
    bay_err err = json_builder_end(made, &result);
    if (err == BAY_OK) {
        *out = (mcp_outcome){.kind = MCP_OUTCOME_RESULT, .result = result};
    } else {
        task_fail(out, err, "out of memory");
    }
}

void task_error(task_continuation *self, mcp_outcome *out, int code, const char *text)
{
    json_builder made;
    json_val error;
    json_writer *to = task_continuation_build(self, &made);
    json_open_object(to);
    json_key_lit(to, "code");
    json_put_int(to, code);
    json_key_lit(to, "message");
    json_put_str(to, str_of(text));
    json_close_object(to);
    bay_err err = json_builder_end(&made, &error);
    if (err == BAY_OK) {
        *out = (mcp_outcome){.kind = MCP_OUTCOME_ERROR, .error = error, .error_code = code};
    } else {
        task_fail(out, err, "out of memory");
    }
}

bay_str task_continuation_capabilities(task_continuation *self, const mcp_request *request)
{
    buf text;
    bay_str copy = {NULL, 0};
    json_writer out;
    if (request->revision->era == MCP_MODERN) {
        return json_raw(request->client_capabilities);
    }
    buf_init(&text, WORDS_MEMORY);
    json_writer_init(&out, &text);
    json_open_object(&out);
    mcp_inputs_write(mcp_inputs_of(request->revision, request->client_capabilities),
                     mcp_revision_of(MCP_LATEST), &out);
    json_key_lit(&out, "extensions");
    json_put_raw(&out, STR("{\"" MCP_EXTENSION_TASKS "\":{}}"));
    json_close_object(&out);
    if (text.err != BAY_OK || arena_dup(&self->memory, buf_view(&text), &copy) != BAY_OK) {
        copy = (bay_str){NULL, 0};
    }
    buf_fini(&text);
    return copy;
}

/* ---- the life of a continuation -------------------------------------------------------------- */

void task_continuation_hold(task_continuation *self)
{
    self->hold++;
}

void task_continuation_let_go(task_continuation *self)
{
    if (--self->hold == 0 && self->is_over) {
        arena_fini(&self->memory);
        arena_fini(&self->sent);
        principal_unref(self->principal);
        mem_free(self);
    }
}

static void continuation_done(void *user, const mcp_outcome *outcome)
{
    route *way = user;
    task_continuation *self = way->task;
    mcp_outcome told = *outcome;
    task_continuation_hold(self);
    if (!self->step(self, &told)) {
        self->events->done(way, &told);
    }
    task_continuation_let_go(self);
}

/* Under the token of the client's call that began the task, not of the one that waits for it. */
static bool notify_progress(task_continuation *self, json_val params)
{
    static const bay_str token = STR_INIT("progressToken");
    buf text;
    json_writer out;
    if (self->progress_token.len == 0) {
        return false;
    }
    buf_init(&text, WORDS_MEMORY);
    json_writer_init(&out, &text);
    json_open_object(&out);
    json_key(&out, token);
    json_put_raw(&out, self->progress_token);
    json_put_members(&out, params, &token, 1);
    json_close_object(&out);
    bool is_slow = text.err == BAY_OK && mcp_request_notify(self->way->request, MCP_N_PROGRESS,
                                                            buf_view(&text)) == BAY_ERR_AGAIN;
    buf_fini(&text);
    if (is_slow) {
        upstream_call_pause(&self->way->call, true);
    }
    return true;
}

/* The task's status, for a client that knows the task by the gateway's token. */
static void notify_status(task_continuation *self, json_val params)
{
    buf text;
    json_writer out;
    bool is_his = self->is_session && !self->is_run && self->token.len > 0 &&
                  self->way->request != NULL &&
                  json_str_eq(json_get(params, STR("taskId")), self->id);
    if (!is_his) {
        return;
    }
    buf_init(&text, WORDS_MEMORY);
    json_writer_init(&out, &text);
    json_open_object(&out);
    task_put(&out, params, MCP_LEGACY, MCP_LEGACY, self->token, TASK_STATUSES);
    json_close_object(&out);
    if (text.err == BAY_OK) {
        (void)mcp_request_notify(self->way->request, MCP_N_TASK_STATUS, buf_view(&text));
    }
    buf_fini(&text);
}

static void continuation_notified(void *user, mcp_method_id method, json_val params)
{
    route *way = user;
    if (method == MCP_N_TASK_STATUS) {
        notify_status(way->task, params);
    } else if (method != MCP_N_PROGRESS || !notify_progress(way->task, params)) {
        way->task->events->notified(user, method, params);
    }
}

/* A request of the server about this task, or about none. */
static void continuation_asked(void *user, const rpc_message *request)
{
    route *way = user;
    task_continuation *self = way->task;
    rpc_message told = *request;
    json_builder made;
    json_writer *out = json_builder_init(&made, NULL, SENT_MEMORY);
    task_write_input_request(out, request->params, self->is_run ? (bay_str){NULL, 0} : self->token);
    bay_err err = json_builder_view(&made, &told.params);
    if (err != BAY_OK || self->events->asked == NULL) {
        upstream_call_answer(&way->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             STR("nobody can be asked during this call"));
    } else {
        self->events->asked(user, &told);
    }
    json_builder_drop(&made);
}

/* mcp 2025-11-25 tasks, Related Task Metadata: answers name their task, too. */
json_val task_answer(route *way, json_val result)
{
    task_continuation *self = way->task;
    json_builder made;
    json_val named = result;
    if (self->id.len == 0 || json_is(result, JSON_MISSING)) {
        return result;
    }
    task_write_result(task_continuation_build(self, &made), result, self->id);
    return json_builder_end(&made, &named) == BAY_OK ? named : result; /* better than no result */
}

static void continuation_withdrawn(void *user, bay_str id)
{
    route *way = user;
    if (way->task->events->withdrawn != NULL) {
        way->task->events->withdrawn(user, id);
    }
}

static const upstream_call_events continuation_events = {.notified = continuation_notified,
                                                         .asked = continuation_asked,
                                                         .withdrawn = continuation_withdrawn,
                                                         .done = continuation_done};

task_continuation *task_continuation_new(route *way, bay_str server)
{
    const mcp_request *request = way->request;
    bay_str identity = way->call.affinity.identity;
    /* one block: many continuations only watch a call that creates no task */
    task_continuation *self = mem_zalloc(sizeof(*self) + server.len + identity.len);
    if (self == NULL) {
        return NULL;
    }
    char *at = (char *)(self + 1);
    self->server = str_put(&at, server);
    self->principal = principal_ref(request->principal);
    self->identity = str_put(&at, identity);
    self->is_session = request->revision->era == MCP_LEGACY;
    arena_init(&self->memory, TASK_CONTINUATION_MEMORY);
    arena_init(&self->sent, SENT_MEMORY);
    self->way = way;
    self->endpoint = way->endpoint;
    self->pace_ms = TASK_PACE_MS;
    list_init(&self->asks);
    list_init(&self->keys);
    self->events = way->call.events;
    way->call.events = &continuation_events;
    way->task = self;
    return self;
}

void task_end(route *way)
{
    task_continuation *self = way->task;
    way->task = NULL;
    self->is_over = true;
    task_continuation_hold(self);
    list_remove(&self->waiter.link);
    task_wait_end(self);
    catalog_source *source = catalog_servers_find(&self->endpoint->servers, self->server);
    task_registry *registry =
        self->is_running && source != NULL ? task_endpoint_registry(self->endpoint) : NULL;
    if (registry != NULL) {
        task_cancel_send(registry, source->upstream, self->id, &way->call.affinity);
    }
    task_continuation_let_go(self);
}

void task_continuation_finish(task_continuation *self, const mcp_outcome *outcome)
{
    route *way = self->way;
    mcp_request *request = way->request;
    if (request == NULL) {
        self->events->done(way, outcome); /* it is a suspended_call */
        return;
    }
    /* the server may be removed: only its name is certain to be valid */
    endpoint *of = way->endpoint;
    route_end(way);
    route_answer(of, request, self->server, outcome);
}

static bay_err write_name(task_continuation *self, json_val *out)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, &self->sent, 8 * TASK_ID_BYTES);
    json_open_object(to);
    json_key_lit(to, "taskId");
    json_put_str(to, self->id);
    json_close_object(to);
    return json_builder_end(&made, out);
}

void task_continuation_send(task_continuation *self, mcp_method_id method, json_val params)
{
    route *way = self->way;
    mcp_call_spec *spec = &way->call.spec;
    mcp_outcome outcome;
    catalog_source *source = catalog_servers_find(&self->endpoint->servers, self->server);
    if (source == NULL) {
        task_fail(&outcome, BAY_ERR_CLOSED, "the server has left the gateway");
        task_continuation_finish(self, &outcome);
        return;
    }
    bay_err err = BAY_OK;
    if (json_is(params, JSON_MISSING)) {
        arena_reset(&self->sent);
        err = write_name(self, &params);
    }
    if (err != BAY_OK) {
        task_fail(&outcome, err, "out of memory");
        task_continuation_finish(self, &outcome);
        return;
    }
    bool waits = method == MCP_TASKS_RESULT;
    uint32_t total_ms = self->endpoint->config->timeouts.call_total_ms;
    spec->method = mcp_method_of(method)->text;
    spec->params = params;
    spec->rename = self->id;
    spec->meta = JSON_NONE;
    spec->param_table = NULL;
    spec->timeout_ms = waits ? total_ms : 0;
    spec->max_total_ms = waits ? total_ms : 0;
    spec->progress_of = waits ? self->progress_of : 0;
    way->call.task = waits ? self->id : (bay_str){NULL, 0};
    way->call.is_repeatable = true; /* reads, and cancels, which may be repeated */
    upstream_send(source->upstream, &way->call);
}
