/* One request: over however many calls of the engine, to one end. Its phases are those of an
 * asker_item; within OPEN:
 *
 *   WAITING --handed over--> CALLING --answer--> ENDED
 *     ^  ^                      |  \--"input required", a task--> BETWEEN
 *     |  \---lost, may repeat---/                                    |
 *     |                                                             |
 *     \--sdk_request_again-------------------------------------------/
 *      \--its time-- PAUSING <--sdk_request_later--------------------/
 *   any --cancel, time limit, the client's end--> ENDED
 *
 * Invariant: only CALLING has an engine call, and only one. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"

enum { REQUEST_MEMORY = 512 << 20 };

static const char no_arguments[] = "the arguments are no JSON object";

/* ---- making ---------------------------------------------------------------------------------- */

static void request_fault(bay_request *self, bay_err err, const char *text)
{
    if (self->err == BAY_OK) {
        bool is_ours = err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT;
        self->err = is_ours ? err : BAY_ERR_INVALID;
        self->fault = is_ours ? bay_err_text(err) : text;
    }
}

/* An object of the program, copied into the request's memory; takes it. */
static json_val request_keep(bay_request *self, bay_json *json, const char *fault)
{
    json_val object = JSON_NONE;
    json_val kept = JSON_NONE;
    bay_err err = sdk_json_val(json, JSON_OBJECT, &object);
    if (err == BAY_OK) {
        err = json_raw(object).len <= CLIENT_MAX_REPLY ? json_clone_in(object, &self->memory, &kept)
                                                       : BAY_ERR_LIMIT;
    }
    if (err != BAY_OK) {
        request_fault(self, err, fault);
    }
    bay_json_free(json);
    return kept;
}

static bay_request *request_new(bay_client *client, const char *method)
{
    if (client == NULL || method == NULL) {
        return NULL;
    }
    bay_request *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->client = client;
    asker_item_init(&self->item, &client->base);
    self->log_level = MCP_LOG_NONE;
    self->idle_ms = client->options.idle_ms;
    self->total_ms = client->options.total_ms;
    loop_timer_init(&self->timer, sdk_request_on_timer, self);
    arena_init(&self->memory, REQUEST_MEMORY);
    if (arena_dup(&self->memory, str_of(method), &self->method) != BAY_OK) {
        request_fault(self, BAY_ERR_NOMEM, "");
    }
    return self;
}

bay_request *bay_request_new_json(bay_client *client, const char *method, bay_json *params)
{
    bay_request *self = request_new(client, method);
    if (self == NULL) {
        bay_json_free(params);
        return NULL;
    }
    self->params = request_keep(self, params, "params: no JSON object");
    return self;
}

bay_request *bay_request_new(bay_client *client, const char *method, const char *params)
{
    bool has_params = params != NULL && params[0] != '\0';
    return has_params ? bay_request_new_json(client, method, bay_json_of(params))
                      : request_new(client, method);
}

void sdk_request_set_params(bay_request *self, json_builder *made)
{
    json_val params;
    bay_err err = json_builder_view(made, &params);
    if (err == BAY_OK) {
        err = params.doc->is_deep ? BAY_ERR_DEPTH
                                  : json_clone_in(params, &self->memory, &self->params);
    }
    if (err != BAY_OK) { /* only arguments are of the program */
        request_fault(self, err, no_arguments);
    }
    json_builder_drop(made);
}

bay_request *sdk_request_named_json(bay_client *client, const char *method, bay_str name,
                                    bay_json *arguments, bool has_arguments)
{
    bay_request *self = name.at != NULL ? request_new(client, method) : NULL;
    if (self == NULL) {
        bay_json_free(arguments);
        return NULL;
    }
    json_builder made;
    json_val object = JSON_NONE;
    bay_err err = has_arguments ? sdk_json_val(arguments, JSON_OBJECT, &object) : BAY_OK;
    json_writer *out = json_builder_init(&made, NULL, CLIENT_MAX_REPLY);
    json_open_object(out);
    json_key_lit(out, "name");
    json_put_str(out, name);
    if (object.doc != NULL) {
        json_key_lit(out, "arguments");
        json_put_val(out, object);
    }
    json_close_object(out);
    sdk_request_set_params(self, &made);
    if (err != BAY_OK) {
        request_fault(self, err, no_arguments);
    }
    bay_json_free(arguments);
    return self;
}

bay_request *sdk_request_named(bay_client *client, const char *method, bay_str name,
                               bay_str arguments)
{
    bool has_arguments = arguments.at != NULL;
    return sdk_request_named_json(client, method, name,
                                  has_arguments ? bay_json_of_str(arguments) : NULL, has_arguments);
}

bay_request *bay_request_tool_str(bay_client *client, bay_str tool, bay_str arguments)
{
    return sdk_request_named(client, "tools/call", tool, arguments);
}

bay_request *bay_request_tool(bay_client *client, const char *tool, const char *arguments)
{
    return bay_request_tool_str(client, str_of(tool), str_of(arguments));
}

bay_request *bay_request_tool_json(bay_client *client, const char *tool, bay_json *arguments)
{
    return sdk_request_named_json(client, "tools/call", str_of(tool), arguments, true);
}

static void request_let_go(bay_request *self)
{
    if (self->release != NULL) {
        self->release(self->held);
    }
    self->held = NULL;
    self->release = NULL;
}

static void request_free(bay_request *self)
{
    request_let_go(self);
    loop_timer_stop(self->client->base.loop, &self->timer);
    mem_free(self->round_params);
    arena_fini(&self->memory);
    bay_reply_free(self->item.answer);
    mem_free(self);
}

void bay_request_free(bay_request *request)
{
    if (request != NULL && request->item.phase == ASKER_NEW) {
        request_free(request);
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

void bay_request_timeout(bay_request *request, uint32_t idle_ms, uint32_t total_ms)
{
    if (request != NULL) {
        request->idle_ms = idle_ms != 0 ? idle_ms : request->client->options.idle_ms;
        request->total_ms = total_ms != 0 ? total_ms : request->client->options.total_ms;
    }
}

void bay_request_on_progress(bay_request *request, bay_request_progress_fn progressed, void *user)
{
    if (request != NULL) {
        request->progressed = progressed;
        request->progressed_user = user;
    }
}

void bay_request_on_log(bay_request *request, const char *level, bay_request_logged_fn logged,
                        void *user)
{
    if (request == NULL) {
        return;
    }
    request->logged = logged;
    request->logged_user = user;
    request->log_level = MCP_LOG_NONE;
    if (level != NULL && !mcp_log_level_find(str_of(level), &request->log_level)) {
        request_fault(request, BAY_ERR_INVALID,
                      "no such level of log messages: debug, info, notice, warning, error, "
                      "critical, alert, emergency");
    }
}

void bay_request_meta_json(bay_request *request, bay_json *json)
{
    if (request != NULL) {
        request->meta = request_keep(request, json, "_meta: no JSON object");
    } else {
        bay_json_free(json);
    }
}

void bay_request_meta(bay_request *request, const char *json)
{
    if (request != NULL) {
        bay_request_meta_json(request, bay_json_of(json));
    }
}

void bay_request_return_immediately(bay_request *request)
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
    return self->method;
}

json_val sdk_request_params(const bay_request *self)
{
    return self->params.doc != NULL ? self->params : json_empty_object();
}

void sdk_request_follow_task(bay_request *self)
{
    self->follows_task = true;
}

void sdk_request_hold(bay_request *self, void *held, void (*release)(void *held))
{
    if (self->held != held) {
        request_let_go(self);
    }
    self->held = held;
    self->release = release;
}

void *sdk_request_held(const bay_request *self)
{
    return self->held;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* `tools/call "name"`, without control characters. */
static void request_describe(const bay_request *self, char *out, size_t size)
{
    arena memory;
    bay_str name = {NULL, 0};
    arena_init(&memory, REQUEST_MEMORY);
    const mcp_method *method = mcp_method_find(self->method, MCP_LATEST, MCP_SENDER_CLIENT);
    if (method != NULL && method->name_field.len > 0) {
        err_ignore(json_str(json_get(self->params, method->name_field), &memory, &name));
    }
    int len = snprintf(out, size, "%.*s", BAY_STR(str_head(self->method, 40)));
    if (name.len > 0 && len > 0 && (size_t)len < size) {
        snprintf(out + len, size - (size_t)len, " \"%.*s\"", BAY_STR(str_head(name, 48)));
    }
    arena_fini(&memory);
}

bay_err sdk_request_diag(const bay_request *self, bay_diag *diag, bay_err err, const char *text)
{
    char what[120];
    const char *where = self->client->base.shown;
    size_t len = strlen(where);
    text = text != NULL && text[0] != '\0' ? text : bay_err_text(err);
    if (strncmp(text, where, len) == 0 && strncmp(text + len, ": ", 2) == 0) {
        text += len + 2; /* said already */
    }
    request_describe(self, what, sizeof(what));
    return diag_set(diag, err, "%s at %.100s: %s", what, where, text);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Takes the reply. */
static void request_end(bay_request *self, bay_reply *reply, const bay_diag *diag)
{
    if (!asker_item_end(&self->item, diag)) {
        bay_reply_free(reply);
        return;
    }
    self->item.answer = reply;
    loop_timer_stop(self->client->base.loop, &self->timer);
    request_let_go(self);
}

void sdk_request_succeed(bay_request *self, json_val result)
{
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    if (self->item.phase == ASKER_ENDED || !sdk_output_admits(self, result)) {
        return;
    }
    bay_err err = sdk_reply_new(result, &reply);
    if (err != BAY_OK) {
        sdk_request_diag(self, &diag, err, "the answer could not be kept");
    }
    request_end(self, reply, &diag);
}

void sdk_request_fail(bay_request *self, const bay_diag *diag, json_val error_object)
{
    bay_reply *reply = NULL;
    bay_diag told = *diag;
    if (self->item.phase == ASKER_ENDED) {
        return;
    }
    if (diag->code == BAY_ERR_REMOTE && !json_is(error_object, JSON_MISSING)) {
        bay_err err = sdk_reply_new(error_object, &reply);
        if (err != BAY_OK) {
            sdk_request_diag(self, &told, err, "the error could not be kept");
        }
    }
    request_end(self, reply, &told);
}

void sdk_request_break(bay_request *self, bay_err err, const char *text)
{
    bay_diag diag = {0};
    sdk_request_diag(self, &diag, err, text);
    sdk_request_fail(self, &diag, JSON_NONE);
}

/* Ends what the server does for it. */
void sdk_request_withdraw(bay_request *self, bay_str reason)
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
    if (request == NULL || request->item.phase == ASKER_NEW || request->item.phase == ASKER_ENDED) {
        return;
    }
    bool has_reason = reason != NULL && reason[0] != '\0';
    snprintf(text, sizeof(text), "cancelled%s%.100s", has_reason ? ": " : "",
             has_reason ? reason : "");
    asker_touch(&request->client->base);
    sdk_request_withdraw(request, str_of(reason));
    sdk_request_break(request, BAY_ERR_CANCELLED, text);
}

void sdk_request_expire(bay_request *self)
{
    char text[300];
    const bay_diag *fault = &self->client->fault;
    bool is_away = self->item.phase == ASKER_WAITING && self->client->phase != CLIENT_READY;
    if (is_away && fault->code != BAY_OK) {
        snprintf(text, sizeof(text), "not reached in time: %.200s", fault->text);
    } else if (is_away) {
        snprintf(text, sizeof(text), "the server was not ready in time");
    } else {
        snprintf(text, sizeof(text), "no result in %u ms", self->total_ms);
    }
    sdk_request_withdraw(self, STR("timed out"));
    sdk_request_break(self, BAY_ERR_TIMEOUT, text);
}

/* ---- as an asker has it ---------------------------------------------------------------------- */

static bay_request *request_of(asker_item *item)
{
    return CONTAINER_OF(item, bay_request, item);
}

void sdk_request_give_up(asker_item *item)
{
    sdk_request_withdraw(request_of(item), STR("the client is closed"));
}

void sdk_request_lose(asker_item *item, bay_err err, const char *text)
{
    sdk_request_break(request_of(item), err, text);
}

void sdk_request_ended(asker_item *item, const void *answer)
{
    bay_request *self = request_of(item);
    bay_client *client = self->client;
    if (!self->is_internal || item->diag.code == BAY_ERR_REMOTE) {
        buf_clear(&client->remote_error);
        if (item->diag.code == BAY_ERR_REMOTE && answer != NULL) {
            buf_str(&client->remote_error, bay_reply_json(answer));
        }
    }
}

void sdk_request_tell(asker_item *item, void *answer)
{
    bay_request *self = request_of(item);
    if (self->done != NULL) {
        self->done(self, answer, &item->diag, self->user);
    } else {
        bay_reply_free(answer);
    }
}

void sdk_request_release(asker_item *item)
{
    request_free(request_of(item));
}

void sdk_reply_release(void *reply)
{
    bay_reply_free(reply);
}

/* ---- starting and waiting -------------------------------------------------------------------- */

static bay_err request_start(bay_request *request, asker_wait *wait, bay_request_done_fn done,
                             void *user, bay_diag *diag)
{
    bay_diag why = {0};
    bay_client *client = request->client;
    if (request->item.phase != ASKER_NEW) {
        return diag_set(diag, BAY_ERR_STATE, "the request was started already");
    }
    asker_touch(&client->base);
    bay_err err = request->err;
    if (err != BAY_OK) {
        (void)diag_set(&why, err, "%s%s", err != BAY_ERR_INVALID ? "the request: " : "",
                       request->fault);
    } else {
        err = asker_item_start(&request->item, &why);
    }
    if (err == BAY_OK) {
        request->end_ms = loop_now_ms(client->base.loop) + request->total_ms;
        request->item.wait = wait;
        request->done = done;
        request->user = user;
        err = sdk_request_go(request, &why);
        if (err != BAY_OK) {
            asker_item_drop(&request->item);
        }
    }
    if (err != BAY_OK) {
        err = sdk_request_diag(request, diag, err, why.text);
        request_free(request);
    }
    return err;
}

bay_err bay_request_start(bay_request *request, bay_diag *diag, bay_request_done_fn done,
                          void *user)
{
    if (request == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "no request: out of memory, or nothing was named");
    }
    return request_start(request, NULL, done, user, diag);
}

bay_err bay_request_run(bay_request *request, bay_reply **out, bay_diag *diag)
{
    asker_wait wait = {0};
    if (request == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    asker *of = &request->client->base;
    bay_err err = asker_check_waiting(of, diag);
    if (err != BAY_OK) {
        bay_request_free(request);
        return err;
    }
    /* what happened while nobody looked: above all, connections that the server closed, on which a
     * request would be lost without our knowing whether it was executed */
    (void)loop_turn(of->loop, 0);
    err = request_start(request, &wait, NULL, NULL, diag);
    err = err == BAY_OK ? asker_await(of, &wait, diag) : err;
    if (err == BAY_OK && out != NULL) {
        *out = wait.answer;
    } else {
        bay_reply_free(wait.answer);
    }
    return err;
}
