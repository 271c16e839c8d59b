/* A request on its way: handed to the engine, told about, lost and sent again, lent to rounds and
 * tasks. Its life as a whole is in client_request.c. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"

enum { REQUEST_MEMORY = 512 << 20 };

/* ---- what the engine tells ------------------------------------------------------------------- */

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
    (void)call;
    return sdk_question_arrived(self->client, self, request);
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
    return self->client->options.trusts_hints && str_eq(method, STR("tools/call")) &&
           sdk_lists_tool_may_repeat(self);
}

static bool is_loss(bay_err err)
{
    return err == BAY_ERR_CLOSED || err == BAY_ERR_CONNECT || err == BAY_ERR_RESOLVE ||
           err == BAY_ERR_EXITED || err == BAY_ERR_IO;
}

static void request_wait(bay_request *self);

static void call_failed(bay_request *self, const mcp_outcome *outcome)
{
    bay_client *client = self->client;
    if (client->phase == CLIENT_CLOSING) {
        sdk_request_break(self, BAY_ERR_CANCELLED, "the client was closed");
        return;
    }
    if (!is_loss(outcome->err)) {
        if (outcome->err == BAY_ERR_PROTOCOL && self->follows_task) {
            sdk_task_abandon(self); /* its server cannot say how it stands with it */
        }
        sdk_request_break(self, outcome->err, outcome->text);
        return;
    }
    bool is_hopeless = ++self->losses > client->options.attempts;
    bool may_go_on =
        !outcome->was_sent || (request_may_repeat(self) && ++self->repeats <= CLIENT_MOST_REPEATS);
    if (may_go_on && !is_hopeless) {
        sdk_client_unreachable(client, outcome->err, outcome->text);
        request_wait(self);
    } else if (!outcome->was_sent || request_may_repeat(self)) {
        sdk_request_break(self, outcome->err, outcome->text);
    } else {
        char text[300];
        snprintf(text, sizeof(text), "%.120s; it may have been executed, so it was not sent again",
                 outcome->text);
        sdk_request_break(self, BAY_ERR_CLOSED, text);
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
    sdk_request_diag(self, &diag, BAY_ERR_REMOTE, text);
    sdk_request_fail(self, &diag, outcome->error);
}

/* Rounds or a task have it from here; only the bound of the whole holds. */
static void request_lend(bay_request *self)
{
    uint64_t now = loop_now_ms(self->client->base.loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    self->is_pausing = false;
    if (loop_timer_start(self->client->base.loop, &self->timer, left) != BAY_OK) {
        sdk_request_break(self, BAY_ERR_NOMEM, "no memory for a timer");
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
        sdk_request_succeed(self, result);
        return;
    }
    request_lend(self);
    if (self->item.phase == ASKER_ENDED) {
        return;
    }
    if (self->follows_task || is_task) {
        self->follows_task = true;
        sdk_task_go_on(self, result);
    } else {
        sdk_mrtr_state_continue(self, result);
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

/* ---- sending --------------------------------------------------------------------------------- */

bay_str sdk_request_round_method(const bay_request *self)
{
    return self->round_params != NULL ? self->round_method : self->method;
}

json_val sdk_request_round_params(const bay_request *self)
{
    return self->round_params != NULL ? json_root(self->round_params) : self->params;
}

/* Hands the round over to the engine. On failure nothing has happened. */
static bay_err request_call(bay_request *self, bay_diag *diag)
{
    bay_client *client = self->client;
    uint64_t now = loop_now_ms(client->base.loop);
    bay_err err = BAY_OK;
    mcp_call_spec spec = {
        .method = sdk_request_round_method(self),
        .params = sdk_request_round_params(self),
        .meta = self->meta,
        .log_level = self->log_level,
        .wants_progress = self->progressed != NULL,
        .timeout_ms = self->idle_ms,
        .max_total_ms = self->end_ms > now ? (uint32_t)(self->end_ms - now) : 1,
    };
    if (str_eq(spec.method, STR("tools/call"))) {
        json_val name = json_get(spec.params, STR("name"));
        err = sdk_lists_tool_params(client, name, &spec.param_table, diag);
    }
    if (err == BAY_OK) {
        err = mcp_client_call(mcp_link_client(client->link), &spec, &call_events, self, now,
                              &self->call, diag);
    }
    if (err == BAY_OK) {
        loop_timer_stop(client->base.loop, &self->timer);
        self->is_pausing = false;
        asker_item_set(&self->item, ASKER_OPEN);
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
    if (err == BAY_ERR_CLOSED) {
        return BAY_ERR_AGAIN; /* the link is breaking this very moment */
    }
    return err;
}

/* Into the queue, until the client is READY or its time is over. */
static void request_wait(bay_request *self)
{
    bay_client *client = self->client;
    uint64_t now = loop_now_ms(client->base.loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    self->is_pausing = false;
    asker_item_set(&self->item, ASKER_WAITING);
    left = left < self->idle_ms ? left : self->idle_ms;
    if (loop_timer_start(client->base.loop, &self->timer, left) != BAY_OK) {
        sdk_request_break(self, BAY_ERR_NOMEM, "no memory for a timer");
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
bay_err sdk_request_go(bay_request *self, bay_diag *diag)
{
    bay_err err = BAY_ERR_AGAIN;
    if (self->client->phase == CLIENT_READY && sdk_client_engine(self->client) != NULL) {
        err = request_dispatch(self, diag);
    }
    if (err == BAY_ERR_AGAIN) {
        request_wait(self);
        err = BAY_OK;
    }
    return err;
}

static void request_go_or_fail(bay_request *self)
{
    bay_diag diag = {0};
    bay_err err = sdk_request_go(self, &diag);
    if (err != BAY_OK) {
        sdk_request_break(self, err, diag.text);
    }
}

void sdk_request_on_timer(void *argument)
{
    bay_request *self = argument;
    uint64_t now = loop_now_ms(self->client->base.loop);
    if (self->is_pausing && now < self->end_ms) {
        request_go_or_fail(self);
    } else {
        sdk_request_expire(self);
    }
}

static bay_err set_round(bay_request *self, bay_str method, json_val params, bay_diag *diag)
{
    if (self->item.phase == ASKER_ENDED) {
        return diag_set(diag, BAY_ERR_CANCELLED, "the request has ended");
    }
    json_doc *copy;
    bay_err err = json_clone(params, &copy);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the next round: %s", bay_err_text(err));
    }
    mem_free(self->round_params);
    self->round_params = copy;
    self->round_method = method;
    self->repeats = self->losses = 0;
    self->follows_task = self->follows_task || str_starts(method, STR("tasks/"));
    asker_touch(&self->client->base);
    return BAY_OK;
}

bay_err sdk_request_again(bay_request *self, bay_str method, json_val params, bay_diag *diag)
{
    bay_err err = set_round(self, method, params, diag);
    return err == BAY_OK ? sdk_request_go(self, diag) : err;
}

bay_err sdk_request_later(bay_request *self, bay_str method, json_val params, uint32_t after_ms,
                          bay_diag *diag)
{
    bay_err err = set_round(self, method, params, diag);
    if (err != BAY_OK) {
        return err;
    }
    uint64_t now = loop_now_ms(self->client->base.loop);
    uint64_t left = self->end_ms > now ? self->end_ms - now : 1;
    err =
        loop_timer_start(self->client->base.loop, &self->timer, after_ms < left ? after_ms : left);
    if (err != BAY_OK) {
        return diag_set(diag, err, "no memory for a timer");
    }
    self->is_pausing = true;
    asker_item_set(&self->item, ASKER_OPEN);
    return BAY_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void sdk_request_send(asker_item *item)
{
    bay_request *self = CONTAINER_OF(item, bay_request, item);
    if (!self->waits_for_tools && self->client->phase == CLIENT_READY) {
        request_go_or_fail(self);
    }
}

void sdk_requests_tools_arrived(bay_client *client)
{
    LIST_EACH(link, &client->base.items)
    {
        bay_request *one = CONTAINER_OF(CONTAINER_OF(link, asker_item, link), bay_request, item);
        if (one->waits_for_tools) {
            one->waits_for_tools = false;
            request_go_or_fail(one);
        }
    }
}
