/* One request: over however many calls of the engine, to one end.
 *
 *   NEW --start--> WAITING --handed over--> CALLING --answer--> ENDED --`done`--> gone
 *                   ^  ^                      |  \--"input required", a task--> BETWEEN
 *                   |  \---lost, may repeat---/                                    |
 *                   |                                                             |
 *                   \--sdk_request_again-------------------------------------------/
 *                    \--its time-- PAUSING <--sdk_request_later--------------------/
 *   any --cancel, time limit, the client's end--> ENDED
 *
 * Invariants: `done` runs once, from sdk_requests_finish; a request is in client->requests from its
 * start to ENDED, then in client->ended; only CALLING has an engine call, and only one. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "json/writer.h"

enum { REQUEST_MEMORY = 512 << 20 };

static void request_on_timer(void *argument);

/* ---- making -----------------------------------------------------------------------------------
 */

bay_request *bay_request_new(bay_client *client, const char *method, const char *params)
{
    if (client == NULL || method == NULL) {
        return NULL;
    }
    bay_request *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->client = client;
    self->log_level = MCP_LOG_NONE;
    self->idle_ms = client->options.idle_ms;
    self->total_ms = client->options.total_ms;
    self->arguments_len = SIZE_MAX;
    buf *texts[] = {&self->method, &self->params, &self->round_method, &self->round_params,
                    &self->meta};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_init(texts[i], CLIENT_MAX_REPLY);
    }
    loop_timer_init(&self->timer, request_on_timer, self);
    buf_str(&self->method, str_of(method));
    buf_str(&self->params, str_of(params));
    return self;
}

static bay_str trim_json(bay_str text)
{
    while (text.len > 0 && memchr(" \t\r\n", text.at[0], 4) != NULL) {
        text = str_from(text, 1);
    }
    while (text.len > 0 && memchr(" \t\r\n", text.at[text.len - 1], 4) != NULL) {
        text.len--;
    }
    return text;
}

bay_request *sdk_request_named(bay_client *client, const char *method, const char *name,
                               const char *arguments)
{
    bay_request *self = name != NULL ? bay_request_new(client, method, NULL) : NULL;
    if (self == NULL) {
        return NULL;
    }
    json_writer out;
    json_writer_init(&out, &self->params);
    json_open_object(&out);
    json_key_lit(&out, "name");
    json_put_str(&out, str_of(name));
    if (arguments != NULL) {
        bay_str text = trim_json(str_of(arguments));
        self->arguments_len = text.len;
        json_key_lit(&out, "arguments");
        json_put_raw(&out, text);
    }
    json_close_object(&out);
    return self;
}

bay_request *bay_request_tool(bay_client *client, const char *tool, const char *arguments)
{
    return sdk_request_named(client, "tools/call", tool, arguments);
}

static void request_release(bay_request *self)
{
    if (self->release != NULL) {
        self->release(self->held);
    }
    self->held = NULL;
    self->release = NULL;
}

static void request_free(bay_request *self)
{
    request_release(self);
    loop_timer_stop(self->client->loop, &self->timer);
    buf *texts[] = {&self->method, &self->params, &self->round_method, &self->round_params,
                    &self->meta};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_fini(texts[i]);
    }
    bay_reply_free(self->reply);
    mem_free(self);
}

void bay_request_free(bay_request *request)
{
    if (request != NULL && request->phase == REQUEST_NEW) {
        request_free(request);
    }
}

/* ---- settings ---------------------------------------------------------------------------------
 */

void bay_request_timeout(bay_request *request, uint32_t idle_ms, uint32_t total_ms)
{
    if (request != NULL) {
        request->idle_ms = idle_ms != 0 ? idle_ms : request->client->options.idle_ms;
        request->total_ms = total_ms != 0 ? total_ms : request->client->options.total_ms;
    }
}

void bay_request_on_progress(bay_request *request,
                             void (*progressed)(bay_request *request, double progress, double total,
                                                bay_str message, void *user),
                             void *user)
{
    if (request != NULL) {
        request->progressed = progressed;
        request->progressed_user = user;
    }
}

void bay_request_on_log(bay_request *request, const char *level,
                        void (*logged)(bay_request *request, bay_str params, void *user),
                        void *user)
{
    if (request == NULL) {
        return;
    }
    request->logged = logged;
    request->logged_user = user;
    request->log_level = MCP_LOG_NONE;
    if (level != NULL && !mcp_log_level_find(str_of(level), &request->log_level)) {
        request->has_bad_level = true;
    }
}

void bay_request_meta(bay_request *request, const char *json)
{
    if (request != NULL) {
        buf_clear(&request->meta);
        buf_str(&request->meta, str_of(json));
    }
}

void bay_request_keep_task(bay_request *request)
{
    if (request != NULL) {
        request->keeps_task = true;
    }
}

bay_client *sdk_request_client(const bay_request *self)
{
    return self->client;
}

bay_str sdk_request_method(const bay_request *self)
{
    return buf_view(&self->method);
}

bay_str sdk_request_params(const bay_request *self)
{
    return self->params.len > 0 ? buf_view(&self->params) : STR("{}");
}

bool sdk_request_keeps_task(const bay_request *self)
{
    return self->keeps_task;
}

void sdk_request_follow_task(bay_request *self)
{
    self->follows_task = true;
}

void sdk_request_hold(bay_request *self, void *held, void (*release)(void *held))
{
    if (self->held != held) {
        request_release(self);
    }
    self->held = held;
    self->release = release;
}

void *sdk_request_held(const bay_request *self)
{
    return self->held;
}

/* ---- texts ------------------------------------------------------------------------------------
 */

/* `tools/call "name"`, without control characters. */
static void request_describe(const bay_request *self, char *out, size_t size)
{
    arena memory;
    json_doc doc;
    bay_str name = {NULL, 0};
    arena_init(&memory, REQUEST_MEMORY);
    const mcp_method *method =
        mcp_method_find(buf_view(&self->method), MCP_LATEST, MCP_SENDER_CLIENT);
    bool has_name = method != NULL && method->name_field.len > 0 && self->params.len > 0;
    if (has_name && json_parse(&doc, buf_view(&self->params), NULL, &memory, NULL) == BAY_OK) {
        err_ignore(json_str(json_get(json_root(&doc), method->name_field), &memory, &name));
    }
    int len = snprintf(out, size, "%.*s", BAY_STR(str_head(buf_view(&self->method), 40)));
    if (name.len > 0 && len > 0 && (size_t)len < size) {
        snprintf(out + len, size - (size_t)len, " \"%.*s\"", BAY_STR(str_head(name, 48)));
    }
    arena_fini(&memory);
}

static void defuse(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

bay_err sdk_request_diag(const bay_request *self, bay_diag *diag, bay_err err, const char *text)
{
    char what[120];
    request_describe(self, what, sizeof(what));
    diag_set(diag, err, "%s at %.100s: %s", what, self->client->shown,
             text != NULL && text[0] != '\0' ? text : bay_err_text(err));
    if (diag != NULL) {
        defuse(diag->text);
    }
    return err;
}

/* ---- ending -----------------------------------------------------------------------------------
 */

/* Takes the reply. */
static void request_end(bay_request *self, bay_reply *reply, const bay_diag *diag)
{
    bay_client *client = self->client;
    if (self->phase == REQUEST_ENDED) {
        bay_reply_free(reply);
        return;
    }
    loop_timer_stop(client->loop, &self->timer);
    self->phase = REQUEST_ENDED;
    self->reply = reply;
    self->diag = *diag;
    list_remove(&self->link);
    list_push(&client->ended, &self->link);
    request_release(self);
    sdk_client_settle_soon(client);
}

void sdk_request_succeed(bay_request *self, bay_str result)
{
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    if (self->phase == REQUEST_ENDED) {
        return;
    }
    bay_err err = sdk_reply_new(result, &reply);
    if (err != BAY_OK) {
        sdk_request_diag(self, &diag, err, "the answer could not be kept");
    }
    request_end(self, reply, &diag);
}

void sdk_request_fail(bay_request *self, const bay_diag *diag, bay_str error_object)
{
    bay_reply *reply = NULL;
    bay_diag told = *diag;
    if (self->phase == REQUEST_ENDED) {
        return;
    }
    if (diag->code == BAY_REMOTE && error_object.len > 0) {
        bay_err err = sdk_reply_new(error_object, &reply);
        if (err != BAY_OK) {
            sdk_request_diag(self, &told, err, "the error could not be kept");
        }
    }
    request_end(self, reply, &told);
}

static void request_fail(bay_request *self, bay_err err, const char *text)
{
    bay_diag diag = {0};
    sdk_request_diag(self, &diag, err, text);
    sdk_request_fail(self, &diag, (bay_str){NULL, 0});
}

/* Ends what the server does for it. */
static void request_withdraw(bay_request *self, bay_str reason)
{
    mcp_call *call = self->call;
    self->call = NULL;
    if (call != NULL) {
        mcp_call_cancel(call, reason);
    }
    if (self->follows_task) {
        sdk_task_abandon(self);
    }
}

void bay_request_cancel(bay_request *request, const char *reason)
{
    char text[120];
    if (request == NULL || request->phase == REQUEST_NEW || request->phase == REQUEST_ENDED) {
        return;
    }
    bool has_reason = reason != NULL && reason[0] != '\0';
    snprintf(text, sizeof(text), "cancelled%s%.100s", has_reason ? ": " : "",
             has_reason ? reason : "");
    sdk_client_touch(request->client);
    request_withdraw(request, str_of(reason));
    request_fail(request, BAY_CANCELLED, text);
}

static void request_expire(bay_request *self)
{
    char text[300];
    const bay_diag *fault = &self->client->fault;
    bool is_away = self->phase == REQUEST_WAITING && self->client->phase != CLIENT_READY;
    if (is_away && fault->code != BAY_OK) {
        snprintf(text, sizeof(text), "not reached in time: %.200s", fault->text);
    } else if (is_away) {
        snprintf(text, sizeof(text), "the server was not ready in time");
    } else {
        snprintf(text, sizeof(text), "no result in %u ms", self->total_ms);
    }
    request_withdraw(self, STR("timed out"));
    request_fail(self, BAY_TIMEOUT, text);
}

static void request_finish(bay_request *self)
{
    bay_client *client = self->client;
    bay_reply *reply = self->reply;
    list_remove(&self->link);
    client->request_count--;
    self->reply = NULL;
    if (!self->is_internal || self->diag.code == BAY_REMOTE) {
        buf_clear(&client->remote_error);
        if (self->diag.code == BAY_REMOTE && reply != NULL) {
            buf_str(&client->remote_error, bay_reply_json(reply));
        }
    }
    if (self->done != NULL) {
        self->done(self, reply, &self->diag, self->user);
    } else {
        bay_reply_free(reply);
    }
    request_free(self);
}

void sdk_requests_finish(bay_client *client)
{
    list_link *link;
    while ((link = list_first(&client->ended)) != NULL) {
        request_finish(CONTAINER_OF(link, bay_request, link));
    }
}

/* ---- what the engine tells --------------------------------------------------------------------
 */

static void told_progress(bay_request *self, json_val params)
{
    arena memory;
    double progress = 0;
    double total = -1;
    bay_str message = {NULL, 0};
    if (self->progressed == NULL ||
        json_double(json_get(params, STR("progress")), &progress) != BAY_OK) {
        return;
    }
    arena_init(&memory, REQUEST_MEMORY);
    err_ignore(json_double(json_get(params, STR("total")), &total)); /* often left out */
    err_ignore(json_str(json_get(params, STR("message")), &memory, &message));
    self->progressed(self, progress, total, message, self->progressed_user);
    arena_fini(&memory);
}

static void call_notified(void *user, mcp_call *call, const mcp_method *method, json_val params)
{
    bay_request *self = user;
    bay_client *client = self->client;
    (void)call;
    if (method->id == MCP_N_PROGRESS) {
        told_progress(self, params);
    } else if (method->id == MCP_N_MESSAGE && self->logged != NULL) {
        self->logged(self, json_raw(params), self->logged_user);
    } else if (method->id == MCP_N_MESSAGE && client->options.logged != NULL) {
        client->options.logged(client, json_raw(params), client->options.logged_user);
    }
}

static bool call_asked(void *user, mcp_call *call, const rpc_message *request)
{
    bay_request *self = user;
    bool is_taken = sdk_question_arrived(self->client, self, request);
    if (is_taken && self->call == call) {
        mcp_call_wait_for_us(call); /* a person may think for longer than a server may be silent */
    }
    return is_taken;
}

/* What may be executed twice without harm. */
static bool request_may_repeat(const bay_request *self)
{
    static const bay_str harmless[] = {
        STR_INIT("ping"),
        STR_INIT("server/discover"),
        STR_INIT("tools/list"),
        STR_INIT("prompts/list"),
        STR_INIT("resources/list"),
        STR_INIT("resources/templates/list"),
        STR_INIT("resources/read"),
        STR_INIT("prompts/get"),
        STR_INIT("skills/list"),
        STR_INIT("skills/get"),
        STR_INIT("tasks/get"),
        STR_INIT("completion/complete"),
        STR_INIT("resources/directory/read"),
    };
    bay_str method = sdk_request_round_method(self);
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        if (str_eq(method, harmless[i])) {
            return true;
        }
    }
    return str_eq(method, STR("tools/call")) && sdk_lists_tool_may_repeat(self);
}

static bool is_loss(bay_err err)
{
    return err == BAY_CLOSED || err == BAY_CONNECT || err == BAY_RESOLVE || err == BAY_EXITED ||
           err == BAY_IO;
}

static void request_wait(bay_request *self);

static void call_failed(bay_request *self, const mcp_outcome *outcome)
{
    bay_client *client = self->client;
    if (client->phase == CLIENT_CLOSING) {
        request_fail(self, BAY_CANCELLED, "the client was closed");
        return;
    }
    if (!is_loss(outcome->err)) {
        request_fail(self, outcome->err, outcome->text);
        return;
    }
    bool is_hopeless = ++self->losses > client->options.attempts;
    bool may_go_on =
        !outcome->was_sent || (request_may_repeat(self) && ++self->repeats <= CLIENT_MOST_REPEATS);
    if (may_go_on && !is_hopeless) {
        sdk_client_unreachable(client, outcome->err, outcome->text);
        request_wait(self);
    } else if (!outcome->was_sent || request_may_repeat(self)) {
        request_fail(self, outcome->err, outcome->text);
    } else {
        char text[300];
        snprintf(text, sizeof(text), "%.120s; it may have been executed, so it was not sent again",
                 outcome->text);
        request_fail(self, BAY_CLOSED, text);
    }
}

static void call_refused(bay_request *self, const mcp_outcome *outcome)
{
    arena memory;
    bay_str message = STR("no reason given");
    bay_diag diag = {0};
    char text[200];
    if (outcome->error_code == MCP_HEADER_MISMATCH && !self->was_refetched &&
        sdk_lists_fetch_tools_for(self)) {
        self->was_refetched = true; /* mcp 2026-07-28 streamable-http: tools/list, then again */
        return;
    }
    arena_init(&memory, REQUEST_MEMORY);
    err_ignore(json_str(json_get(outcome->error, STR("message")), &memory, &message));
    snprintf(text, sizeof(text), "error %d: %.*s", outcome->error_code,
             BAY_STR(str_head(message, 150)));
    arena_fini(&memory);
    sdk_request_diag(self, &diag, BAY_REMOTE, text);
    sdk_request_fail(self, &diag, json_raw(outcome->error));
}

/* Rounds or a task have it from here; only the bound of the whole holds. */
static void request_lend(bay_request *self)
{
    uint64_t now = loop_now_ms(self->client->loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    self->phase = REQUEST_BETWEEN;
    if (loop_timer_start(self->client->loop, &self->timer, left) != BAY_OK) {
        request_fail(self, BAY_NOMEM, "no memory for a timer");
    }
}

static void call_answered(bay_request *self, json_val result)
{
    bool is_modern = self->client->about->revision->era == MCP_MODERN;
    json_val type = is_modern ? json_get(result, STR("resultType")) : JSON_NONE;
    bool is_question = json_str_eq(type, STR("input_required"));
    bool is_task = json_str_eq(type, STR("task"));
    if (self->is_internal || (!self->follows_task && !is_question && !is_task) ||
        (is_task && self->keeps_task)) {
        sdk_request_succeed(self, json_raw(result));
        return;
    }
    request_lend(self);
    if (self->phase == REQUEST_ENDED) {
        return;
    }
    if (self->follows_task || is_task) {
        self->follows_task = true;
        sdk_task_go_on(self, result);
    } else {
        sdk_rounds_go_on(self, result);
    }
}

static void call_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    bay_request *self = user;
    (void)call;
    self->call = NULL;
    if (outcome->kind != MCP_OUTCOME_FAILED) {
        sdk_client_alive(self->client);
    }
    switch (outcome->kind) {
    case MCP_OUTCOME_RESULT:
        call_answered(self, outcome->result);
        return;
    case MCP_OUTCOME_ERROR:
        call_refused(self, outcome);
        return;
    case MCP_OUTCOME_FAILED:
        call_failed(self, outcome);
        return;
    }
}

static const mcp_call_events call_events = {
    .notified = call_notified, .asked = call_asked, .done = call_done};

/* ---- sending ----------------------------------------------------------------------------------
 */

bay_str sdk_request_round_method(const bay_request *self)
{
    return self->round_method.len > 0 ? buf_view(&self->round_method) : buf_view(&self->method);
}

bay_str sdk_request_round_params(const bay_request *self)
{
    return self->round_method.len > 0 ? buf_view(&self->round_params) : buf_view(&self->params);
}

static bay_err read_object(bay_str text, json_doc *doc, arena *memory, const char *what,
                           json_val *out, bay_diag *diag)
{
    if (text.len == 0) {
        return BAY_OK;
    }
    bay_err err = json_parse(doc, text, NULL, memory, diag);
    if (err == BAY_NOMEM) {
        return diag_set(diag, err, "out of memory");
    }
    if (err != BAY_OK || !json_is(json_root(doc), JSON_OBJECT)) {
        return diag_set(diag, BAY_INVALID, "%s: no JSON object", what);
    }
    *out = json_root(doc);
    return BAY_OK;
}

/* Hands the round over to the engine. On failure nothing has happened. */
static bay_err request_call(bay_request *self, bay_diag *diag)
{
    bay_client *client = self->client;
    uint64_t now = loop_now_ms(client->loop);
    json_doc params_doc, meta_doc;
    arena memory;
    arena_init(&memory, REQUEST_MEMORY);
    mcp_call_spec spec = {
        .method = sdk_request_round_method(self),
        .log_level = self->log_level,
        .wants_progress = self->progressed != NULL,
        .timeout_ms = self->idle_ms,
        .max_total_ms = self->end_ms > now ? (uint32_t)(self->end_ms - now) : 1,
    };
    bay_err err = read_object(sdk_request_round_params(self), &params_doc, &memory, "params",
                              &spec.params, diag);
    if (err == BAY_OK) {
        err = read_object(buf_view(&self->meta), &meta_doc, &memory, "_meta", &spec.meta, diag);
    }
    if (err == BAY_OK && str_eq(spec.method, STR("tools/call"))) {
        json_val name = json_get(spec.params, STR("name"));
        err = sdk_lists_tool_params(client, name, &spec.param_table, diag);
    }
    if (err == BAY_OK) {
        err = mcp_client_call(mcp_link_client(client->link), &spec, &call_events, self, now,
                              &self->call, diag);
    }
    arena_fini(&memory);
    if (err == BAY_OK) {
        loop_timer_stop(client->loop, &self->timer);
        self->phase = REQUEST_CALLING;
    }
    return err;
}

/* The client is READY. */
static bay_err request_dispatch(bay_request *self, bay_diag *diag)
{
    if (!self->has_fetched && !self->is_internal && sdk_lists_needs_tools(self)) {
        self->has_fetched = true;
        if (sdk_lists_fetch_tools_for(self)) {
            return BAY_OK;
        }
    }
    bay_err err = request_call(self, diag);
    if (err == BAY_CLOSED) {
        return BAY_AGAIN; /* the link is breaking this very moment */
    }
    return err;
}

/* Into the queue, until the client is READY or its time is over. */
static void request_wait(bay_request *self)
{
    bay_client *client = self->client;
    uint64_t now = loop_now_ms(client->loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    self->phase = REQUEST_WAITING;
    left = left < self->idle_ms ? left : self->idle_ms;
    if (loop_timer_start(client->loop, &self->timer, left) != BAY_OK) {
        request_fail(self, BAY_NOMEM, "no memory for a timer");
        return;
    }
    sdk_client_need(client);
}

void sdk_request_wait_for_tools(bay_request *self)
{
    self->waits_for_tools = true;
    request_wait(self);
}

/* Sends it, or lets it wait. On failure it is as it was. */
static bay_err request_go(bay_request *self, bay_diag *diag)
{
    bay_err err = BAY_AGAIN;
    if (self->client->phase == CLIENT_READY && sdk_client_engine(self->client) != NULL) {
        err = request_dispatch(self, diag);
    }
    if (err == BAY_AGAIN) {
        request_wait(self);
        err = BAY_OK;
    }
    return err;
}

static void request_go_or_fail(bay_request *self)
{
    bay_diag diag = {0};
    bay_err err = request_go(self, &diag);
    if (err != BAY_OK) {
        request_fail(self, err, diag.text);
    }
}

static void request_on_timer(void *argument)
{
    bay_request *self = argument;
    uint64_t now = loop_now_ms(self->client->loop);
    if (self->phase == REQUEST_PAUSING && now < self->end_ms) {
        request_go_or_fail(self);
    } else {
        request_expire(self);
    }
}

static bay_err set_round(bay_request *self, bay_str method, bay_str params, bay_diag *diag)
{
    if (self->phase == REQUEST_ENDED) {
        return diag_set(diag, BAY_CANCELLED, "the request has ended");
    }
    buf_clear(&self->round_method);
    buf_clear(&self->round_params);
    buf_str(&self->round_method, method);
    buf_str(&self->round_params, params);
    bay_err err =
        self->round_method.err != BAY_OK ? self->round_method.err : self->round_params.err;
    if (err != BAY_OK) {
        return diag_set(diag, err, "the next round: %s", bay_err_text(err));
    }
    self->repeats = self->losses = 0;
    self->follows_task = self->follows_task || str_starts(method, STR("tasks/"));
    sdk_client_touch(self->client);
    return BAY_OK;
}

bay_err sdk_request_again(bay_request *self, bay_str method, bay_str params, bay_diag *diag)
{
    bay_err err = set_round(self, method, params, diag);
    return err == BAY_OK ? request_go(self, diag) : err;
}

bay_err sdk_request_later(bay_request *self, bay_str method, bay_str params, uint32_t after_ms,
                          bay_diag *diag)
{
    bay_err err = set_round(self, method, params, diag);
    if (err != BAY_OK) {
        return err;
    }
    uint64_t now = loop_now_ms(self->client->loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    err = loop_timer_start(self->client->loop, &self->timer, after_ms < left ? after_ms : left);
    if (err != BAY_OK) {
        return diag_set(diag, err, "no memory for a timer");
    }
    self->phase = REQUEST_PAUSING;
    return BAY_OK;
}

/* ---- all of them ------------------------------------------------------------------------------
 */

bool sdk_requests_waiting(const bay_client *client)
{
    for (const list_link *link = client->requests.head.next; link != &client->requests.head;
         link = link->next) {
        if (CONTAINER_OF(link, const bay_request, link)->phase == REQUEST_WAITING) {
            return true;
        }
    }
    return false;
}

void sdk_requests_hand_over(bay_client *client)
{
    LIST_EACH(link, &client->requests)
    {
        bay_request *one = CONTAINER_OF(link, bay_request, link);
        if (one->phase == REQUEST_WAITING && !one->waits_for_tools &&
            client->phase == CLIENT_READY) {
            request_go_or_fail(one);
        }
    }
}

void sdk_requests_tools_arrived(bay_client *client)
{
    LIST_EACH(link, &client->requests)
    {
        bay_request *one = CONTAINER_OF(link, bay_request, link);
        if (one->waits_for_tools) {
            one->waits_for_tools = false;
            request_go_or_fail(one);
        }
    }
}

void sdk_requests_fail_waiting(bay_client *client, const bay_diag *fault)
{
    LIST_EACH(link, &client->requests)
    {
        bay_request *one = CONTAINER_OF(link, bay_request, link);
        if (one->phase == REQUEST_WAITING) {
            request_fail(one, fault->code, fault->text);
        }
    }
}

void sdk_requests_end(bay_client *client)
{
    list_link *link;
    while ((link = list_first(&client->requests)) != NULL) {
        bay_request *one = CONTAINER_OF(link, bay_request, link);
        request_withdraw(one, STR("the client is closed"));
        request_fail(one, BAY_CANCELLED, "the client was closed");
    }
    sdk_requests_finish(client);
}

/* ---- starting and waiting ---------------------------------------------------------------------
 */

static bay_err request_check(bay_request *self, bay_diag *diag)
{
    bay_client *client = self->client;
    json_doc params_doc, meta_doc;
    json_val params = JSON_NONE, meta = JSON_NONE;
    arena memory;
    if (self->method.err != BAY_OK || self->params.err != BAY_OK || self->meta.err != BAY_OK) {
        bay_err err = self->method.err != BAY_OK   ? self->method.err
                      : self->params.err != BAY_OK ? self->params.err
                                                   : self->meta.err;
        return diag_set(diag, err, "the request: %s", bay_err_text(err));
    }
    if (client->phase == CLIENT_CLOSING) {
        return diag_set(diag, BAY_CLOSED, "the client is being closed");
    }
    if (client->request_count >= CLIENT_MAX_REQUESTS) {
        return diag_set(diag, BAY_BUSY, "%zu requests are under way", client->request_count);
    }
    if (self->has_bad_level) {
        return diag_set(diag, BAY_INVALID,
                        "no such level of log messages: debug, info, notice, "
                        "warning, error, critical, alert, emergency");
    }
    arena_init(&memory, REQUEST_MEMORY);
    bay_err err =
        read_object(buf_view(&self->params), &params_doc, &memory, "params", &params, diag);
    if (err == BAY_OK) {
        err = read_object(buf_view(&self->meta), &meta_doc, &memory, "_meta", &meta, diag);
    }
    if (err == BAY_INVALID && self->arguments_len != SIZE_MAX) {
        err = diag_set(diag, BAY_INVALID, "the arguments are no JSON object");
    }
    /* what was spliced in is one object, and not the end of ours and something else */
    json_val arguments = json_get(params, STR("arguments"));
    if (err == BAY_OK && self->arguments_len != SIZE_MAX &&
        (!json_is(arguments, JSON_OBJECT) || json_raw(arguments).len != self->arguments_len)) {
        err = diag_set(diag, BAY_INVALID, "the arguments are no JSON object");
    }
    arena_fini(&memory);
    return err;
}

bay_err bay_request_start(bay_request *request, bay_done done, void *user, bay_diag *diag)
{
    if (request == NULL) {
        return diag_set(diag, BAY_NOMEM, "out of memory");
    }
    bay_diag why = {0};
    bay_client *client = request->client;
    if (request->phase != REQUEST_NEW) {
        return diag_set(diag, BAY_STATE, "the request was started already");
    }
    sdk_client_touch(client);
    bay_err err = request_check(request, &why);
    if (err == BAY_OK) {
        request->end_ms = loop_now_ms(client->loop) + request->total_ms;
        request->done = done;
        request->user = user;
        list_push(&client->requests, &request->link);
        client->request_count++;
        err = request_go(request, &why);
        if (err != BAY_OK) {
            list_remove(&request->link);
            client->request_count--;
        }
    }
    if (err != BAY_OK) {
        err = sdk_request_diag(request, diag, err, why.text);
        request_free(request);
    }
    return err;
}

typedef struct waiter {
    bool is_done;
    bay_reply *reply;
    bay_diag diag;
} waiter;

static void waiter_done(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    waiter *self = user;
    (void)request;
    self->is_done = true;
    self->reply = reply;
    self->diag = *diag;
}

bay_err bay_request_run(bay_request *request, bay_reply **out, bay_diag *diag)
{
    waiter self = {0};
    if (request == NULL) {
        return diag_set(diag, BAY_NOMEM, "out of memory");
    }
    bay_client *client = request->client;
    bay_err err = sdk_client_check_waiting(client, diag);
    if (err != BAY_OK) {
        bay_request_free(request);
        return err;
    }
    err = bay_request_start(request, waiter_done, &self, diag);
    while (err == BAY_OK && !self.is_done) {
        (void)loop_turn(client->loop, -1);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (self.diag.code != BAY_OK || out == NULL) {
        bay_reply_free(self.reply);
    } else {
        *out = self.reply;
    }
    if (self.diag.code != BAY_OK && diag != NULL) {
        *diag = self.diag;
    }
    return self.diag.code;
}
