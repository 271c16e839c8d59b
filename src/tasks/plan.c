#include "tasks/plan.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "mcp/inputs.h"

enum { SENT_MEMORY = 1 << 28, WORDS_MEMORY = 1 << 16 };

/* The engines have held these bytes against the configured bounds before. */
static const json_limits any_size = {(size_t)1 << 30, 1024, 64u << 20};

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

task_book *task_face_book(face *self)
{
    if (self->task_book == NULL &&
        task_book_new(self->loop, self->config->timeouts.answer_ms, &self->task_book) != BAY_OK) {
        return NULL;
    }
    return self->task_book;
}

uint64_t task_face_now(const face *self)
{
    return self->loop != NULL ? loop_now_ms(self->loop) : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bay_err parse_into(arena *memory, bay_str text, json_val *out)
{
    bay_str copy;
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    bay_err err = doc != NULL ? arena_dup(memory, text, &copy) : BAY_NOMEM;
    err = err == BAY_OK ? json_parse(doc, copy, &any_size, memory, NULL) : err;
    if (err == BAY_OK) {
        *out = json_root(doc);
    }
    return err;
}

bay_err task_plan_parse(task_plan *self, const buf *text, json_val *out)
{
    return text->err != BAY_OK ? text->err : parse_into(&self->memory, buf_view(text), out);
}

void task_fail(mcp_outcome *out, bay_err err, const char *text)
{
    *out = (mcp_outcome){.kind = MCP_OUTCOME_FAILED, .err = err, .was_sent = true, .text = text};
}

void task_plan_result(task_plan *self, const buf *text, mcp_outcome *out)
{
    json_val result;
    bay_err err = task_plan_parse(self, text, &result);
    if (err == BAY_OK) {
        *out = (mcp_outcome){.kind = MCP_OUTCOME_RESULT, .result = result};
    } else {
        task_fail(out, err, "out of memory");
    }
}

void task_error(task_plan *self, mcp_outcome *out, int code, const char *text)
{
    buf written;
    json_val error;
    buf_init(&written, WORDS_MEMORY);
    buf_printf(&written, "{\"code\":%d,\"message\":", code);
    json_quote(&written, str_of(text));
    buf_char(&written, '}');
    bay_err err = task_plan_parse(self, &written, &error);
    buf_fini(&written);
    if (err == BAY_OK) {
        *out = (mcp_outcome){.kind = MCP_OUTCOME_ERROR, .error = error, .error_code = code};
    } else {
        task_fail(out, err, "out of memory");
    }
}

bay_str task_plan_capabilities(task_plan *self, const mcp_request *request)
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

/* ---- the life of a plan ---------------------------------------------------------------------- */

void task_plan_hold(task_plan *self)
{
    self->hold++;
}

void task_plan_let_go(task_plan *self)
{
    if (--self->hold == 0 && self->is_over) {
        arena_fini(&self->memory);
        arena_fini(&self->sent);
        principal_unref(self->principal);
        mem_free(self);
    }
}

static void plan_done(void *user, const mcp_outcome *outcome)
{
    route *way = user;
    task_plan *self = way->task;
    mcp_outcome told = *outcome;
    task_plan_hold(self);
    if (!self->step(self, &told)) {
        self->events->done(way, &told);
    }
    task_plan_let_go(self);
}

/* By the token of the client's call that began the task, not of the one that waits for it. */
static bool notify_progress(task_plan *self, json_val params)
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
                                                            buf_view(&text)) == BAY_AGAIN;
    buf_fini(&text);
    if (is_slow) {
        upstream_call_pause(&self->way->call, true);
    }
    return true;
}

/* The task's status, where the server says it to a client that knows the task by our name. */
static void notify_status(task_plan *self, json_val params)
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

static void plan_notified(void *user, mcp_method_id method, json_val params)
{
    route *way = user;
    if (method == MCP_N_TASK_STATUS) {
        notify_status(way->task, params);
    } else if (method != MCP_N_PROGRESS || !notify_progress(way->task, params)) {
        way->task->events->notified(user, method, params);
    }
}

/* Its related task is the client's, or nobody's. */
static void plan_asked(void *user, const rpc_message *request)
{
    route *way = user;
    task_plan *self = way->task;
    rpc_message told = *request;
    buf params;
    buf_init(&params, SENT_MEMORY);
    task_write_question(&params, request->params, self->is_run ? (bay_str){NULL, 0} : self->token);
    arena memory;
    arena_init(&memory, SENT_MEMORY);
    bay_err err =
        params.err != BAY_OK ? params.err : parse_into(&memory, buf_view(&params), &told.params);
    buf_fini(&params);
    if (err != BAY_OK || self->events->asked == NULL) {
        upstream_call_answer(&way->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             STR("nobody can be asked during this call"));
    } else {
        self->events->asked(user, &told);
    }
    arena_fini(&memory);
}

/* mcp 2025-11-25 tasks, Related Task Metadata: answers name their task, too. */
bay_str task_answer(route *way, bay_str result)
{
    task_plan *self = way->task;
    json_val answer;
    buf text;
    bay_str named = result;
    if (self->id.len == 0 || result.len == 0) {
        return result;
    }
    buf_init(&text, TASK_PLAN_MEMORY);
    if (parse_into(&self->memory, result, &answer) == BAY_OK) {
        task_write_result(&text, answer, self->id);
        if (text.err != BAY_OK || arena_dup(&self->memory, buf_view(&text), &named) != BAY_OK) {
            named = result; /* better than none */
        }
    }
    buf_fini(&text);
    return named;
}

static void plan_withdrawn(void *user, bay_str id)
{
    route *way = user;
    if (way->task->events->withdrawn != NULL) {
        way->task->events->withdrawn(user, id);
    }
}

static const upstream_call_events plan_events = {
    .notified = plan_notified, .asked = plan_asked, .withdrawn = plan_withdrawn, .done = plan_done};

static bay_str put(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

task_plan *task_plan_new(route *way, bay_str server)
{
    const mcp_request *request = way->request;
    bay_str identity = way->call.affinity.identity;
    /* one block: many a plan only watches a call that makes no task */
    task_plan *self = mem_zalloc(sizeof(*self) + server.len + identity.len);
    if (self == NULL) {
        return NULL;
    }
    char *at = (char *)(self + 1);
    self->server = put(&at, server);
    self->principal = principal_ref(request->principal);
    self->identity = put(&at, identity);
    self->is_session = request->revision->era == MCP_LEGACY;
    arena_init(&self->memory, TASK_PLAN_MEMORY);
    arena_init(&self->sent, SENT_MEMORY);
    self->way = way;
    self->face = way->face;
    self->pace_ms = TASK_PACE_MS;
    list_init(&self->asks);
    list_init(&self->keys);
    self->events = way->call.events;
    way->call.events = &plan_events;
    way->task = self;
    return self;
}

void task_end(route *way)
{
    task_plan *self = way->task;
    way->task = NULL;
    self->is_over = true;
    task_plan_hold(self);
    list_remove(&self->waiter.link);
    task_wait_end(self);
    catalog_source *source = catalog_roster_find(&self->face->roster, self->server);
    task_book *book = self->is_running && source != NULL ? task_face_book(self->face) : NULL;
    if (book != NULL) {
        task_farewell_send(book, source->upstream, self->id, &way->call.affinity);
    }
    task_plan_let_go(self);
}

void task_plan_finish(task_plan *self, const mcp_outcome *outcome)
{
    route *way = self->way;
    mcp_request *request = way->request;
    if (request == NULL) {
        self->events->done(way, outcome); /* it is parked */
        return;
    }
    /* the server may have left: its name is all that is certain */
    route_end(way);
    route_answer(request, self->server, outcome);
}

static bay_err write_name(task_plan *self, json_val *out)
{
    buf text;
    buf_init(&text, 8 * TASK_ID_BYTES);
    buf_lit(&text, "{\"taskId\":");
    json_quote(&text, self->id);
    buf_char(&text, '}');
    bay_err err = text.err == BAY_OK ? parse_into(&self->sent, buf_view(&text), out) : text.err;
    buf_fini(&text);
    return err;
}

void task_plan_send(task_plan *self, mcp_method_id method, bay_str params)
{
    route *way = self->way;
    mcp_call_spec *spec = &way->call.spec;
    mcp_outcome outcome;
    catalog_source *source = catalog_roster_find(&self->face->roster, self->server);
    if (source == NULL) {
        task_fail(&outcome, BAY_CLOSED, "the server has left the gateway");
        task_plan_finish(self, &outcome);
        return;
    }
    json_val written = JSON_NONE;
    arena_reset(&self->sent);
    bay_err err =
        params.len > 0 ? parse_into(&self->sent, params, &written) : write_name(self, &written);
    if (err != BAY_OK) {
        task_fail(&outcome, err, "out of memory");
        task_plan_finish(self, &outcome);
        return;
    }
    bool waits = method == MCP_TASKS_RESULT;
    uint32_t total_ms = self->face->config->timeouts.call_total_ms;
    spec->method = mcp_method_of(method)->text;
    spec->params = written;
    spec->rename = self->id;
    spec->meta = JSON_NONE;
    spec->param_table = NULL;
    spec->timeout_ms = waits ? total_ms : 0;
    spec->max_total_ms = waits ? total_ms : 0;
    spec->progress_of = waits ? self->progress_of : 0;
    way->call.task = waits ? self->id : (bay_str){NULL, 0};
    way->call.is_repeatable = true; /* reads, and cancels of what may be cancelled twice */
    upstream_send(source->upstream, &way->call);
}
