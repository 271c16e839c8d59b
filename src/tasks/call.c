/* tools/call: selects the continuation, and handles the task that the server creates. */
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "tasks/continuation.h"

enum { SHOWN_MEMORY = 1 << 20 };

/* ---- a task has been made -------------------------------------------------------------------- */

static uint64_t ttl_of(json_val task, mcp_era from)
{
    double ttl = 0;
    json_val said = json_get(task, from == MCP_LEGACY ? STR("ttl") : STR("ttlMs"));
    if (json_is(said, JSON_NULL)) {
        return TASK_MAX_TTL_MS;
    }
    if (json_double(said, &ttl) != BAY_OK || ttl < 0 || ttl > TASK_MAX_TTL_MS) {
        return ttl > TASK_MAX_TTL_MS ? TASK_MAX_TTL_MS : TASK_TTL_MS;
    }
    return (uint64_t)ttl;
}

void task_show(task_continuation *self, json_val task, mcp_era from, task_status status)
{
    if (!self->is_session) {
        return; /* only 2025-11-25 has tasks/list */
    }
    task_entry *entry = task_entry_find(self->endpoint->task_registry, self->identity, self->token);
    task_registry *registry = entry == NULL ? task_endpoint_registry(self->endpoint) : NULL;
    if (registry != NULL) {
        err_ignore(task_entry_add(registry, self->identity, self->token, ttl_of(task, from),
                                  loop_time_ms(), &entry)); /* then tasks/list does not have it */
    }
    if (entry == NULL) {
        return;
    }
    buf text;
    json_writer out;
    buf_init(&text, SHOWN_MEMORY);
    json_writer_init(&out, &text);
    json_open_object(&out);
    task_put(&out, task, from, MCP_LEGACY, self->token, status);
    json_close_object(&out);
    if (text.err == BAY_OK) {
        err_ignore(task_entry_show(entry, buf_view(&text))); /* then it keeps its previous state */
    }
    buf_fini(&text);
}

bool task_adopt(task_continuation *self, json_val task, mcp_outcome *inout)
{
    bay_str id;
    bay_err err = json_str(json_get(task, STR("taskId")), &self->memory, &id);
    if (err == BAY_OK && id.len > TASK_ID_BYTES) {
        err = BAY_ERR_LIMIT;
    }
    err = err == BAY_OK ? arena_dup(&self->memory, id, &self->id) : err; /* it outlives the text */
    if (err == BAY_OK && task_status_of(task) == TASK_STATUSES) {
        err = BAY_ERR_PROTOCOL;
    }
    if (err == BAY_OK && !self->is_run) {
        mcp_era era = task_server_era(self->way->call.upstream);
        err = task_name_seal(self->endpoint, self->principal,
                             era == MCP_LEGACY ? TASK_AT_LEGACY : TASK_AT_MODERN, self->server,
                             self->id, &self->memory, &self->token);
    }
    if (err != BAY_OK) {
        task_fail(inout, err,
                  err == BAY_ERR_PROTOCOL ? "it made a task in a state that no revision knows"
                  : err == BAY_ERR_LIMIT  ? "it made a task whose id is too long"
                                          : "the task that it made cannot be named");
    }
    return err == BAY_OK;
}

/* A client that asked for a task accepts only a task or an error. */
static void refuse_as_error(task_continuation *self, mcp_outcome *inout)
{
    json_builder made;
    json_val error;
    buf said;
    buf_init(&said, SHOWN_MEMORY);
    buf_printf(&said, "The server \"%.*s\" gave no answer: %.1000s", BAY_STR(self->server),
               inout->text != NULL && inout->text[0] != '\0' ? inout->text
                                                             : bay_err_text(inout->err));
    json_writer *out = task_continuation_build(self, &made);
    json_open_object(out);
    json_key_lit(out, "code");
    json_put_int(out, RPC_INTERNAL_ERROR);
    json_key_lit(out, "message");
    json_put_str(out, buf_view(&said));
    json_key_lit(out, "data");
    json_open_object(out);
    json_key_lit(out, "patchbay/server");
    json_put_str(out, self->server);
    json_key_lit(out, "patchbay/mayHaveRun");
    json_put_bool(out, inout->was_sent);
    json_close_object(out);
    json_close_object(out);
    bay_err said_err = said.err;
    bay_err err = json_builder_end(&made, &error);
    buf_fini(&said);
    if (said_err == BAY_OK && err == BAY_OK) {
        *inout = (mcp_outcome){
            .kind = MCP_OUTCOME_ERROR, .error = error, .error_code = RPC_INTERNAL_ERROR};
    }
}

/* ---- results that the gateway keeps itself --------------------------------------------------- */

static void put_own(json_writer *out, bay_str token, task_status status, uint64_t now_ms,
                    uint64_t ttl_ms)
{
    json_open_object(out);
    json_key_lit(out, "taskId");
    json_put_str(out, token);
    json_key_lit(out, "status");
    json_put_str(out, task_status_text(status));
    json_key_lit(out, "createdAt");
    task_put_time(out, now_ms);
    json_key_lit(out, "lastUpdatedAt");
    task_put_time(out, now_ms);
    json_key_lit(out, "ttl");
    json_put_uint(out, ttl_ms);
    json_key_lit(out, "pollInterval");
    json_put_uint(out, TASK_PACE_MS);
    json_close_object(out);
}

static bay_err name_own(task_continuation *self)
{
    char id[17];
    uint64_t random = rand_u64();
    for (int i = 0; i < 16; i++, random >>= 4) {
        id[i] = "0123456789abcdef"[random & 15];
    }
    return task_name_seal(self->endpoint, self->principal, TASK_AT_GATEWAY, self->server,
                          (bay_str){id, 16}, &self->memory, &self->token);
}

static bay_err keep_own(task_continuation *self, json_val result, uint64_t now_ms, uint64_t ttl_ms)
{
    buf text;
    json_writer out;
    task_entry *entry = NULL;
    task_registry *registry = task_endpoint_registry(self->endpoint);
    if (registry == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = task_entry_add(registry, self->identity, self->token, ttl_ms, now_ms, &entry);
    if (err != BAY_OK) {
        return err;
    }
    buf_init(&text, SHOWN_MEMORY);
    json_writer_init(&out, &text);
    put_own(&out, self->token, task_result_is_error(result) ? TASK_FAILED : TASK_COMPLETED, now_ms,
            ttl_ms);
    err = text.err == BAY_OK ? task_entry_show(entry, buf_view(&text)) : text.err;
    err = err == BAY_OK ? task_entry_keep(registry, entry, result, false) : err;
    buf_fini(&text);
    if (err != BAY_OK) {
        task_entry_remove(registry, entry);
    }
    return err;
}

/* The server answered at once although the client asked for a task: the client gets a task that is
 * already completed. mcp 2025-11-25 tasks: a task begins as working. */
static void become_own(task_continuation *self, mcp_outcome *inout)
{
    uint64_t now_ms = loop_time_ms();
    uint64_t ttl_ms = ttl_of(json_get(self->way->request->message.params, STR("task")), MCP_LEGACY);
    json_builder made;
    bay_err err = name_own(self);
    err = err == BAY_OK ? keep_own(self, inout->result, now_ms, ttl_ms) : err;
    if (err != BAY_OK) {
        task_fail(inout, err, "its result could not be kept for the task");
        refuse_as_error(self, inout);
        return;
    }
    json_writer *out = task_continuation_build(self, &made);
    json_open_object(out);
    json_key_lit(out, "task");
    put_own(out, self->token, TASK_WORKING, now_ms, ttl_ms);
    json_close_object(out);
    task_continuation_result(&made, inout);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_asking(json_val result)
{
    return json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
}

/* tasks/result reports progress under the token of this request. */
static void remember_progress(task_continuation *self, uint64_t of)
{
    task_entry *entry = task_entry_find(self->endpoint->task_registry, self->identity, self->token);
    const mcp_request *request = self->way->request;
    if (entry != NULL && request != NULL && of != 0) {
        err_ignore(task_entry_follow(entry, of, request->progress_token)); /* then: no progress */
    }
}

/* The client itself polls the task. */
static bool step_created(task_continuation *self, mcp_outcome *inout)
{
    mcp_era from = task_server_era(self->way->call.upstream);
    mcp_era to = self->wants_task ? MCP_LEGACY : MCP_MODERN;
    json_val task =
        inout->kind == MCP_OUTCOME_RESULT ? task_created(inout->result, from) : JSON_NONE;
    if (!json_is(task, JSON_MISSING)) {
        json_val result = inout->result;
        if (!task_adopt(self, task, inout)) {
            refuse_as_error(self, inout);
            return false;
        }
        task_show(self, task, from, TASK_STATUSES);
        remember_progress(self, inout->progress_token);
        json_builder made;
        task_write_created(task_continuation_build(self, &made), result, from, to, self->token);
        task_continuation_result(&made, inout);
    } else if (self->wants_task && inout->kind == MCP_OUTCOME_RESULT && !is_asking(inout->result)) {
        become_own(self, inout);
    } else if (self->wants_task && inout->kind == MCP_OUTCOME_FAILED) {
        refuse_as_error(self, inout);
    }
    return false;
}

/* The result of a task that the client does not know. */
static bool step_run_result(task_continuation *self, mcp_outcome *inout)
{
    /* after a failure the task may run without end and without a client: it is cancelled */
    self->is_running = inout->kind == MCP_OUTCOME_FAILED;
    if (inout->kind == MCP_OUTCOME_RESULT) {
        json_builder made;
        task_write_result(task_continuation_build(self, &made), inout->result, (bay_str){NULL, 0});
        task_continuation_result(&made, inout);
    }
    return false;
}

/* The gateway waits for the task on behalf of the client, which gets its result. */
static bool step_run(task_continuation *self, mcp_outcome *inout)
{
    mcp_era from = task_server_era(self->way->call.upstream);
    json_val task =
        inout->kind == MCP_OUTCOME_RESULT ? task_created(inout->result, from) : JSON_NONE;
    if (json_is(task, JSON_MISSING) || !task_adopt(self, task, inout)) {
        return false;
    }
    self->is_running = true;
    self->progress_of = inout->progress_token;
    if (from == MCP_MODERN) {
        task_wait_begin(self);
    } else {
        self->step = step_run_result;
        task_continuation_send(self, MCP_TASKS_RESULT, JSON_NONE);
    }
    return true;
}

/* mcp 2026-07-28 tasks: -32021 names the capability that a client lacks for a tool that only runs
 * as a task. The tool did not run. */
static bool wants_extension(const mcp_outcome *outcome)
{
    json_val data = json_get(outcome->error, STR("data"));
    return outcome->kind == MCP_OUTCOME_ERROR && outcome->error_code == MCP_MISSING_CAPABILITY &&
           !json_is(mcp_capability(json_get(data, STR("requiredCapabilities")),
                                   STR("extensions." MCP_EXTENSION_TASKS)),
                    JSON_MISSING);
}

/* The server created a task without being asked: the client does not know it, so the gateway waits
 * for its result. */
static bool is_unasked(const mcp_outcome *outcome)
{
    return outcome->kind == MCP_OUTCOME_RESULT &&
           !json_is(task_created(outcome->result, MCP_MODERN), JSON_MISSING);
}

static bool step_perhaps(task_continuation *self, mcp_outcome *inout)
{
    route *way = self->way;
    bool is_task = is_unasked(inout);
    if (!is_task && !wants_extension(inout)) {
        return false;
    }
    way->call.spec.capabilities = task_continuation_capabilities(self, way->request);
    if (way->call.spec.capabilities.len == 0) {
        task_fail(inout, BAY_ERR_NOMEM, "out of memory");
        inout->was_sent = false;
        return false;
    }
    self->step = step_run;
    if (is_task) {
        return step_run(self, inout);
    }
    upstream_send(way->call.upstream, &way->call);
    return true;
}

/* ---- before it is sent ----------------------------------------------------------------------- */

/* params without `task`, or with an empty one. */
static bay_err rewrite_params(task_continuation *self, bool has_task)
{
    static const bay_str except[] = {STR_INIT("task")};
    mcp_call_spec *spec = &self->way->call.spec;
    json_builder made;
    json_writer *out = task_continuation_build(self, &made);
    json_open_object(out);
    json_put_members(out, spec->params, except, ARRAY_LEN(except));
    if (has_task) {
        json_key_lit(out, "task");
        json_open_object(out);
        json_close_object(out);
    }
    json_close_object(out);
    return json_builder_end(&made, &spec->params);
}

typedef enum need {
    NEED_NOTHING,
    NEED_REFUSAL,
    NEED_MAPPING,
    NEED_TASK,
    NEED_PLAIN,
    NEED_RUN,
    NEED_PERHAPS
} need;

static need need_of_stateless(const mcp_request *request, upstream *to, listing_tasks tool)
{
    bool has_extension = task_client_has_extension(request);
    if (task_server_has_extension(to)) {
        return has_extension ? NEED_MAPPING : NEED_NOTHING;
    }
    if (tool == LISTING_TASKS_FORBIDDEN || !task_server_has_core(to)) {
        return NEED_NOTHING;
    }
    return has_extension ? NEED_TASK : tool == LISTING_TASKS_REQUIRED ? NEED_RUN : NEED_NOTHING;
}

static need need_of_session(const mcp_request *request, upstream *to, listing_tasks tool)
{
    bool has_tasks = request->revision->id == MCP_REV_2025_11_25;
    bool wants =
        has_tasks && !json_is(json_get(request->message.params, STR("task")), JSON_MISSING);
    if (task_server_has_extension(to)) {
        return wants ? NEED_TASK : NEED_PERHAPS;
    }
    if (task_server_has_core(to)) {
        /* mcp 2025-11-25 tasks: the server itself says what a tool requires or forbids */
        return wants                                          ? NEED_MAPPING
               : !has_tasks && tool == LISTING_TASKS_REQUIRED ? NEED_RUN
                                                              : NEED_NOTHING;
    }
    return !wants ? NEED_NOTHING : tool == LISTING_TASKS_FORBIDDEN ? NEED_REFUSAL : NEED_PLAIN;
}

static bay_err prepare(task_continuation *self, need what)
{
    route *way = self->way;
    const mcp_request *request = way->request;
    bool is_session = request->revision->era == MCP_LEGACY;
    self->wants_task =
        is_session && (what == NEED_MAPPING || what == NEED_TASK || what == NEED_PLAIN);
    self->is_run = what == NEED_RUN || what == NEED_PERHAPS;
    self->step = what == NEED_PERHAPS ? step_perhaps : self->is_run ? step_run : step_created;
    if (is_session && what == NEED_TASK) {
        way->call.spec.capabilities = task_continuation_capabilities(self, request);
        if (way->call.spec.capabilities.len == 0) {
            return BAY_ERR_NOMEM;
        }
    }
    bool adds = what == NEED_RUN || (what == NEED_TASK && !is_session);
    bool removes = what == NEED_PLAIN || (what == NEED_TASK && is_session);
    return adds || removes ? rewrite_params(self, adds) : BAY_OK;
}

int task_admit(route *way, upstream *to, const catalog_entry *entry, bay_str *out_text)
{
    const mcp_request *request = way->request;
    listing_tasks tool = entry != NULL ? entry->item->tasks : LISTING_TASKS_FORBIDDEN;
    bool is_session = request->revision->era == MCP_LEGACY;
    if (request->method->id != MCP_TOOLS_CALL) {
        return 0;
    }
    need what =
        is_session ? need_of_session(request, to, tool) : need_of_stateless(request, to, tool);
    bool is_nameless = way->endpoint->ring == NULL && what != NEED_RUN && what != NEED_PERHAPS;
    if (what == NEED_NOTHING || is_nameless) {
        return 0;
    }
    if (what == NEED_REFUSAL) {
        /* mcp 2025-11-25 tasks, Tool-Level Negotiation */
        *out_text = STR("This tool cannot be called as a task");
        return RPC_METHOD_NOT_FOUND;
    }
    task_continuation *continuation = task_continuation_new(way, upstream_name(to));
    if (continuation == NULL || prepare(continuation, what) != BAY_OK) {
        *out_text = STR("Out of memory");
        return RPC_INTERNAL_ERROR;
    }
    return 0;
}
