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

/* ---- making ---------------------------------------------------------------------------------- */

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
    loop_timer_init(&self->timer, sdk_request_on_timer, self);
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

/* ---- settings -------------------------------------------------------------------------------- */

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

/* ---- texts ----------------------------------------------------------------------------------- */

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

bay_err sdk_request_diag(const bay_request *self, bay_diag *diag, bay_err err, const char *text)
{
    char what[120];
    const char *where = self->client->shown;
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

void sdk_request_break(bay_request *self, bay_err err, const char *text)
{
    bay_diag diag = {0};
    sdk_request_diag(self, &diag, err, text);
    sdk_request_fail(self, &diag, (bay_str){NULL, 0});
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
    if (request == NULL || request->phase == REQUEST_NEW || request->phase == REQUEST_ENDED) {
        return;
    }
    bool has_reason = reason != NULL && reason[0] != '\0';
    snprintf(text, sizeof(text), "cancelled%s%.100s", has_reason ? ": " : "",
             has_reason ? reason : "");
    sdk_client_touch(request->client);
    sdk_request_withdraw(request, str_of(reason));
    sdk_request_break(request, BAY_CANCELLED, text);
}

void sdk_request_expire(bay_request *self)
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
    sdk_request_withdraw(self, STR("timed out"));
    sdk_request_break(self, BAY_TIMEOUT, text);
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

/* ---- all of them ----------------------------------------------------------------------------- */

void sdk_requests_end(bay_client *client)
{
    list_link *link;
    while ((link = list_first(&client->requests)) != NULL) {
        bay_request *one = CONTAINER_OF(link, bay_request, link);
        sdk_request_withdraw(one, STR("the client is closed"));
        sdk_request_break(one, BAY_CANCELLED, "the client was closed");
    }
    sdk_requests_finish(client);
}

/* ---- starting and waiting -------------------------------------------------------------------- */

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
        sdk_request_read(buf_view(&self->params), &params_doc, &memory, "params", &params, diag);
    if (err == BAY_OK) {
        err = sdk_request_read(buf_view(&self->meta), &meta_doc, &memory, "_meta", &meta, diag);
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
        return diag_set(diag, BAY_NOMEM, "no request: out of memory, or nothing was named");
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
        err = sdk_request_go(request, &why);
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
    /* what happened while nobody looked: above all, connections that the server closed, on which a
     * request would be lost without our knowing whether it was executed */
    (void)loop_turn(client->loop, 0);
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
