/* The life of a request: read into an arena, opened, passed to the service, answered exactly once.
 *
 *   read ──open──► open ──answer──► (answered) ──► freed
 *                    └──cancel──► cancelled ──the service finishes──► freed
 *
 * The arena lives until the service has finished, so a request never points into a carrier's
 * memory: the carrier may be gone while the service still reads the request on another thread. */
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp/result_adapt.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "json/build.h"

enum {
    NOT_FOUND_BYTES = 64 * 1024, /* a longer URI is omitted from the error */
    MARK_BYTES = 256,            /* of a member of _meta that is added to a result */
};

void peer_init(peer *self)
{
    list_init(&self->requests);
    list_init(&self->asks);
    self->count = 0;
    self->is_deaf = false;
}

/* The copy goes; the same bytes stand in the caller's text. */
static void move_view(bay_str *view, bay_str copy, bay_str text)
{
    if (view->len > 0 && view->at >= copy.at && view->at < copy.at + copy.len) {
        view->at = text.at + (view->at - copy.at);
    }
}

bay_err request_read(mcp_server *server, bay_str text, request **out, rpc_fault *fault)
{
    if (text.len > server->options.json.max_bytes) {
        rpc_message_outline(text, fault);
        fault->code = RPC_INVALID_REQUEST;
        fault->text = "The message is too large";
        return BAY_ERR_PROTOCOL;
    }
    arena_pool_entry *home = request_arena_take(server);
    if (home == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_str copy;
    request *self = arena_zalloc(&home->memory, sizeof(*self));
    if (self == NULL || arena_dup(&home->memory, text, &copy) != BAY_OK) {
        request_arena_release(server, home);
        return BAY_ERR_NOMEM;
    }
    self->home = home;
    self->shown.server = server;
    self->shown.memory = &home->memory;
    self->shown.log_level = MCP_LOG_NONE;
    self->shown.arrived_ms = server->now_ms;
    bay_err err = rpc_message_parse(&self->shown.message, &self->doc, copy, &server->options.json,
                                    &home->memory, fault);
    if (err != BAY_OK && err != BAY_ERR_UNSUPPORTED) {
        if (err == BAY_ERR_PROTOCOL) {
            move_view(&fault->id, copy, text);
            move_view(&fault->answers, copy, text);
        }
        request_arena_release(server, home);
        return err;
    }
    *out = self;
    return err;
}

void request_discard(request *self)
{
    principal_unref(self->shown.principal);
    request_arena_release(self->shown.server, self->home);
}

bay_err request_read_envelope(request *self)
{
    static const bay_str in_params[] = {STR_INIT("_meta"), STR_INIT("name"), STR_INIT("uri")};
    static const bay_str in_meta[] = {STR_INIT(MCP_META_VERSION), STR_INIT(MCP_META_CLIENT_INFO),
                                      STR_INIT(MCP_META_CLIENT_CAPABILITIES),
                                      STR_INIT(MCP_META_LOG_LEVEL), STR_INIT("progressToken")};
    json_val params[ARRAY_LEN(in_params)] = {JSON_NONE};
    json_val meta[ARRAY_LEN(in_meta)] = {JSON_NONE};
    json_val object = self->shown.message.params;
    if (json_is(object, JSON_OBJECT) &&
        json_pick(object, in_params, ARRAY_LEN(in_params), params, NULL) != BAY_OK) {
        return BAY_ERR_PROTOCOL;
    }
    if (json_is(params[0], JSON_OBJECT) &&
        json_pick(params[0], in_meta, ARRAY_LEN(in_meta), meta, NULL) != BAY_OK) {
        return BAY_ERR_PROTOCOL;
    }
    self->envelope = (envelope){.meta = params[0],
                                .name = params[1],
                                .uri = params[2],
                                .version = meta[0],
                                .client_info = meta[1],
                                .client_capabilities = meta[2],
                                .log_level = meta[3],
                                .progress_token = meta[4]};
    self->shown.meta = params[0];
    json_val token = meta[4];
    if (json_is(token, JSON_STRING) || (json_is(token, JSON_NUMBER) && json_is_integer(token))) {
        bay_str raw = json_raw(token);
        self->shown.progress_token = raw.len <= RPC_MAX_ID_BYTES ? raw : STR("");
    }
    return BAY_OK;
}

bay_err request_read_name(request *self)
{
    const mcp_method *method = self->shown.method;
    if (method == NULL || method->name_field.len == 0) {
        return BAY_OK;
    }
    json_val value = str_eq(method->name_field, STR("uri")) ? self->envelope.uri
                     : str_eq(method->name_field, STR("name"))
                         ? self->envelope.name
                         : json_get(self->shown.message.params, method->name_field);
    if (!json_is(value, JSON_STRING)) {
        return BAY_ERR_PROTOCOL;
    }
    return json_str(value, self->shown.memory, &self->shown.name) == BAY_OK ? BAY_OK
                                                                            : BAY_ERR_NOMEM;
}

const char *request_name_fault(const mcp_method *method)
{
    return str_eq(method->name_field, STR("uri"))    ? "uri is not a string"
           : str_eq(method->name_field, STR("name")) ? "name is not a string"
                                                     : "taskId is not a string";
}

void request_open(request *self, peer *of, response_channel *through)
{
    self->peer = of;
    if (of != NULL) {
        list_push(&of->requests, &self->peer_link);
        of->count++;
    }
    self->channel = through;
    list_push(&through->requests, &self->response_channel_link);
    through->open++;
    list_push(&self->shown.server->requests, &self->server_link);
}

request *peer_find(const peer *self, bay_str id)
{
    LIST_EACH(link, &self->requests)
    {
        request *one = CONTAINER_OF(link, request, peer_link);
        if (!one->shown.is_cancelled && str_eq(one->shown.message.id, id)) {
            return one;
        }
    }
    return NULL;
}

static void detach_channel(request *self)
{
    response_channel *from = self->channel;
    if (from != NULL) {
        self->channel = NULL;
        list_remove(&self->response_channel_link);
        response_channel_detach(from);
    }
}

static void leave_peer(request *self)
{
    if (self->peer != NULL) {
        list_remove(&self->peer_link);
        self->peer->count--;
        self->peer = NULL;
    }
}

static void let_go(request *self)
{
    if (--self->hold > 0 || !self->is_finished) {
        return;
    }
    request_discard(self);
}

/* Ends the call, if it began. */
static void end_call(request *self)
{
    call_context *call = &self->shown.call;
    if (call->door != NULL) {
        call_over(call, self->how);
        call->door = NULL;
    }
}

/* The service (or the engine in its place) finishes. True: the client waits for an answer. */
static bool begin_finish(request *self, call_outcome how)
{
    CHECK(!self->is_finished);
    self->hold++;
    self->is_finished = true;
    if (!self->has_part) {
        self->how = self->shown.is_cancelled ? CALL_CANCELLED : how;
    }
    asks_end(self, BAY_ERR_CANCELLED);
    return self->channel != NULL && !self->shown.is_cancelled;
}

static void end_finish(request *self)
{
    end_call(self);
    detach_channel(self);
    if (self->peer != NULL && self->shown.session != NULL) {
        session_touch(self->shown.session);
    }
    leave_peer(self);
    list_remove(&self->server_link);
    let_go(self);
}

/* Sends what is in the server's buffer, or an error that says why it could not be written. */
static void send_answer(request *self, int status)
{
    mcp_server *server = self->shown.server;
    buf *out = &server->out;
    if (out->err != BAY_OK) {
        bool is_limit = out->err == BAY_ERR_LIMIT;
        self->how = CALL_ERROR;
        buf_clear(out);
        rpc_write_error(out, self->shown.message.id, RPC_INTERNAL_ERROR,
                        is_limit ? STR("The answer is too large") : STR("Out of memory"), STR(""));
        status = mcp_status_adapt(self->shown.revision, RPC_INTERNAL_ERROR);
    }
    response_channel_answer(self->channel, status, self->shown.message.id, out);
    server_out_sent(server);
}

void request_answer(request *self, int status)
{
    if (begin_finish(self, CALL_RESULT)) {
        send_answer(self, status);
    }
    end_finish(self);
}

static void write_refusal(request *self, int code, bay_str text, bay_str data)
{
    self->how = CALL_ERROR;
    self->shown.call.error_code = code;
    rpc_write_error(server_out(self->shown.server), self->shown.message.id,
                    mcp_error_code_adapt(self->shown.revision, code), text, data);
}

void request_refuse(request *self, int status, int code, const char *text, bay_str data)
{
    if (begin_finish(self, CALL_ERROR)) {
        write_refusal(self, code, str_of(text), data);
        send_answer(self, status);
    }
    end_finish(self);
}

/* The result with one more member in its `_meta`: the labels, or true without any. */
static void put_marked(json_writer *writer, json_val result, bay_str mark, unsigned labels)
{
    static const bay_str meta_key[] = {STR_INIT("_meta")};
    json_open_object(writer);
    json_put_members(writer, result, meta_key, ARRAY_LEN(meta_key));
    json_key(writer, meta_key[0]);
    json_open_object(writer);
    json_put_members(writer, json_get(result, meta_key[0]), &mark, 1);
    json_key(writer, mark);
    if (labels == CALL_UNLABELLED) {
        json_put_bool(writer, true);
    } else {
        json_open_array(writer);
        json_put_str(writer, STR("untrusted"));
        if ((labels & CALL_SUSPICIOUS) != 0) {
            json_put_str(writer, STR("suspicious"));
        }
        json_close_array(writer);
    }
    json_close_object(writer);
    json_close_object(writer);
}

static void write_unlabelled(request *self, json_val result)
{
    if (mcp_result_adapt(server_out(self->shown.server), self, result) == BAY_OK) {
        return;
    }
    bool asks = json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
    write_refusal(self, RPC_INTERNAL_ERROR,
                  asks ? STR("The call needs input from the client, which this protocol revision "
                             "cannot ask for in a result")
                       : STR("The result is not valid"),
                  STR(""));
}

static void write_result(request *self, json_val result)
{
    unsigned labels = self->shown.call.labels;
    json_builder made;
    json_val marked;
    if (labels == CALL_UNLABELLED || !json_is(result, JSON_OBJECT)) {
        write_unlabelled(self, result);
        return;
    }
    put_marked(json_builder_init(&made, NULL, json_raw(result).len + MARK_BYTES), result,
               STR("patchbay/labels"), labels);
    if (json_builder_view(&made, &marked) == BAY_OK) {
        write_unlabelled(self, marked);
    } else {
        write_refusal(self, RPC_INTERNAL_ERROR, STR("Out of memory"), STR(""));
    }
    json_builder_drop(&made);
}

/* A result of a call that was not admitted is an error of the service: the client does not get it.
 */
static void write_not_admitted(request *self)
{
    LOG(LOG_ERROR, "mcp", "a result of %.*s was not given: the call was not admitted",
        BAY_STR(self->shown.message.method));
    write_refusal(self, RPC_INTERNAL_ERROR, STR("The call was not admitted"), STR(""));
}

/* Equal calls get what this one gets. */
static void settle_call(mcp_request *shown, json_val result)
{
    bool asks = json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
    call_set_outcome(&shown->call, asks ? OUTCOME_QUESTION : OUTCOME_RESULT, result);
}

/* What the record of a call says of its result. */
static call_outcome measure(call_context *call, json_val result)
{
    call->result_bytes = json_raw(result).len;
    return call->kind == CALL_TOOL && json_true(json_get(result, STR("isError"))) ? CALL_TOOL_ERROR
                                                                                  : CALL_RESULT;
}

void mcp_request_result(mcp_request *shown, json_val result)
{
    request *self = request_of(shown);
    bool may_answer = call_is_admitted(&shown->call);
    if (shown->call.has_claim) {
        settle_call(shown, result);
    }
    call_outcome how = call_is_measured(&shown->call) ? measure(&shown->call, result) : CALL_RESULT;
    if (begin_finish(self, how)) {
        if (may_answer) {
            call_label(&shown->call, result);
            write_result(self, result);
        } else {
            write_not_admitted(self);
        }
        send_answer(self, 200);
    }
    end_finish(self);
}

void mcp_request_result_members(mcp_request *shown, bay_str members)
{
    request *self = request_of(shown);
    bool may_answer = call_is_admitted(&shown->call);
    if (begin_finish(self, CALL_RESULT)) {
        if (may_answer) {
            result_adapt_members(server_out(shown->server), self, members);
        } else {
            write_not_admitted(self);
        }
        send_answer(self, 200);
    }
    end_finish(self);
}

void mcp_request_tool_error(mcp_request *shown, bay_str text, bay_str meta)
{
    request *self = request_of(shown);
    if (begin_finish(self, CALL_TOOL_ERROR)) {
        buf members;
        buf_init(&members, text.len * 6 + meta.len + 256);
        buf_lit(&members, "\"content\":[{\"type\":\"text\",\"text\":");
        json_quote(&members, text);
        buf_lit(&members, "}],\"isError\":true");
        if (meta.len > 0) {
            shown->result_meta = meta;
        }
        if (members.err == BAY_OK) {
            result_adapt_members(server_out(shown->server), self, buf_view(&members));
        } else {
            write_refusal(self, RPC_INTERNAL_ERROR, STR("Out of memory"), STR(""));
        }
        send_answer(self, 200);
        buf_fini(&members);
    }
    end_finish(self);
}

void mcp_request_error(mcp_request *shown, int code, bay_str message, bay_str data)
{
    request *self = request_of(shown);
    if (begin_finish(self, CALL_ERROR)) {
        write_refusal(self, code, message, data);
        send_answer(self,
                    mcp_status_adapt(shown->revision, mcp_error_code_adapt(shown->revision, code)));
    }
    end_finish(self);
}

/* mcp 2026-07-28 server/resources: -32602 with the URI in data; earlier revisions: -32002 */
void mcp_request_resource_not_found(mcp_request *self)
{
    buf data;
    buf_init(&data, NOT_FOUND_BYTES);
    buf_lit(&data, "{\"uri\":");
    json_quote(&data, self->name);
    buf_char(&data, '}');
    bool is_modern = self->revision->era == MCP_MODERN;
    mcp_request_error(self, is_modern ? RPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
                      STR("Resource not found"),
                      data.err == BAY_OK ? buf_view(&data) : (bay_str){NULL, 0});
    buf_fini(&data);
}

void mcp_request_error_object(mcp_request *shown, json_val error)
{
    request *self = request_of(shown);
    call_set_outcome(&shown->call, OUTCOME_ERROR, error);
    if (begin_finish(self, CALL_ERROR)) {
        call_label(&shown->call, error);
        int code = RPC_INTERNAL_ERROR;
        if (mcp_error_adapt(server_out(shown->server), self, error, &code) != BAY_OK) {
            write_refusal(self, code, STR("The error is not valid"), STR(""));
        }
        shown->call.error_code = code;
        send_answer(self, mcp_status_adapt(shown->revision, code));
    }
    end_finish(self);
}

static void tell_cancelled(request *self)
{
    asks_end(self, BAY_ERR_CANCELLED);
    detach_channel(self);
    mcp_server *server = self->shown.server;
    if (!self->is_finished && server != NULL) {
        server->service->cancelled(server->user, &self->shown);
    }
    let_go(self);
}

void request_cancel(request *self)
{
    if (self->shown.is_cancelled || self->is_finished) {
        return;
    }
    self->hold++;
    self->shown.is_cancelled = true;
    tell_cancelled(self);
}

void request_abandon(request *self, const char *text)
{
    if (self->shown.is_cancelled || self->is_finished) {
        return;
    }
    self->hold++;
    self->shown.is_cancelled = true;
    if (self->channel != NULL) {
        write_refusal(self, RPC_INTERNAL_ERROR, str_of(text),
                      STR("{\"patchbay/mayHaveRun\":true}"));
        send_answer(self, 200);
    }
    tell_cancelled(self);
}

/* Asks for this request end first and are reported to the service before the client gets its
 * answer. Then the request is cancelled, except for its answer. */
static bool begin_part(request *self, call_outcome how)
{
    if (self->shown.is_cancelled || self->is_finished) {
        return false;
    }
    self->hold++;
    asks_end(self, BAY_ERR_CANCELLED);
    if (self->shown.is_cancelled || self->is_finished) {
        let_go(self);
        return false;
    }
    self->shown.is_cancelled = true;
    self->has_part = true;
    self->how = how;
    return true;
}

void mcp_request_part_result(mcp_request *shown, json_val result)
{
    request *self = request_of(shown);
    if (begin_part(self, CALL_RESULT)) {
        if (self->channel != NULL && !call_is_admitted(&shown->call)) {
            write_not_admitted(self);
            send_answer(self, 200);
        } else if (self->channel != NULL) {
            write_result(self, result);
            send_answer(self, 200);
        }
        tell_cancelled(self);
    }
}

void mcp_request_part_error(mcp_request *shown, int code, bay_str message, bay_str data)
{
    request *self = request_of(shown);
    if (begin_part(self, CALL_ERROR)) {
        if (self->channel != NULL) {
            write_refusal(self, code, message, data);
            send_answer(self, mcp_status_adapt(shown->revision,
                                               mcp_error_code_adapt(shown->revision, code)));
        }
        tell_cancelled(self);
    }
}

void request_drop(request *self)
{
    (void)begin_finish(self, CALL_RESULT);
    end_finish(self);
}

void peer_close(peer *self, const char *text)
{
    list_link *link;
    while ((link = list_first(&self->requests)) != NULL) {
        request *one = CONTAINER_OF(link, request, peer_link);
        one->hold++;
        if (text != NULL) {
            request_abandon(one, text);
        } else {
            request_cancel(one);
        }
        asks_end(one, BAY_ERR_CLOSED);
        detach_channel(one);
        leave_peer(one);
        one->shown.session = NULL;
        let_go(one);
    }
}

void requests_detach(mcp_server *server)
{
    list_link *link;
    while ((link = list_first(&server->requests)) != NULL) {
        request *one = CONTAINER_OF(link, request, server_link);
        one->hold++;
        request_abandon(one, "The server is shutting down. The request may have been carried out");
        detach_channel(one);
        leave_peer(one);
        if (!one->is_finished) {
            one->how = one->has_part ? one->how : CALL_CANCELLED;
            end_call(one);
            list_remove(&one->server_link);
            one->shown.server = NULL;
        }
        let_go(one);
    }
}

/* ---- the door -------------------------------------------------------------------------------- */

/* A refusal that a model can act on is a tool's result; others are JSON-RPC errors. */
void request_answer_refusal(mcp_request *self, const call_refusal *why)
{
    int code = call_reason_code(why->reason);
    bool is_expired = why->reason == CALL_EXPIRED;
    /* mcp 2025-11-25 basic/authorization, Scope Challenge Handling: 403, before a stream begins */
    bool is_challenge =
        why->reason == CALL_SCOPE && response_channel_may_challenge(request_of(self)->channel);
    buf meta;
    buf data;
    buf_init(&meta, 256);
    buf_init(&data, 256);
    buf_printf(&meta, "\"patchbay/reason\":\"%s\",\"patchbay/mayHaveRun\":%s",
               call_reason_text(why->reason), why->may_have_run ? "true" : "false");
    if (why->retry_after_ms > 0) {
        buf_printf(&meta, ",\"patchbay/retryAfterMs\":%u", why->retry_after_ms);
    }
    buf_printf(&data, "{%.*s}", BAY_STR(buf_view(&meta)));
    if (is_challenge) {
        request_of(self)->channel->needs = why->scopes;
        request_refuse(request_of(self), 403, code, why->text, buf_view(&data));
    } else if (why->reason == CALL_RATE_LIMITED && self->call.kind != CALL_TOOL &&
               response_channel_may_challenge(request_of(self)->channel)) {
        char seconds[16];
        (void)snprintf(seconds, sizeof(seconds), "%u", (why->retry_after_ms + 999) / 1000);
        err_ignore(arena_dup(self->memory, str_of(seconds), &request_of(self)->channel->needs));
        request_refuse(request_of(self), 429, code, why->text, buf_view(&data));
    } else if (self->call.kind == CALL_TOOL && !is_expired) {
        mcp_request_tool_error(self, str_of(why->text), buf_view(&meta));
    } else {
        int status = is_expired ? 401 : mcp_status_adapt(self->revision, code);
        request_refuse(request_of(self), status, code, why->text, buf_view(&data));
    }
    buf_fini(&data);
    buf_fini(&meta);
}

/* The result of an equal call, marked as such. */
static bay_err mark_replayed(const mcp_request *shown, json_val result, json_val *out)
{
    json_builder made;
    put_marked(json_builder_init(&made, shown->memory, json_raw(result).len + MARK_BYTES), result,
               STR("patchbay/replayed"), CALL_UNLABELLED);
    return json_builder_end(&made, out);
}

static void answer_replayed(mcp_request *shown)
{
    const outcome_view *known = &shown->call.answer;
    json_val result;
    if (known->kind == OUTCOME_ERROR) {
        mcp_request_error_object(shown, known->value);
    } else if (mark_replayed(shown, known->value, &result) == BAY_OK) {
        mcp_request_result(shown, result);
    } else {
        mcp_request_error(shown, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
    }
}

bool mcp_request_admit(mcp_request *shown, call_target *to)
{
    call_refusal why;
    call_verdict verdict = call_admit(&shown->call, to, &why);
    if (verdict == CALL_REFUSE) {
        request_answer_refusal(shown, &why);
    } else if (verdict == CALL_ANSWER) {
        answer_replayed(shown);
    }
    return verdict == CALL_GO;
}

/* The service resolves the name again, because it may have changed. */
static void resume_call(call_context *call)
{
    mcp_request *shown = CONTAINER_OF(call, mcp_request, call);
    shown->server->service->request(shown->server->user, shown);
}

void request_begin_call(request *self)
{
    mcp_request *shown = &self->shown;
    const mcp_method *method = shown->method;
    call_context *call = &shown->call;
    call->protocol = CALL_MCP;
    call->principal = shown->principal;
    call->kind = method != NULL ? method->call : CALL_EXTENSION;
    call->method = shown->message.method;
    call->revision = shown->revision->text;
    call->shown = shown->name;
    call->params = shown->message.params;
    call->began_ms = shown->arrived_ms;
    call->resume = resume_call;
    call->memory = shown->memory;
    call_begin(call, shown->server->options.door);
}

void request_dispatch(request *self)
{
    mcp_server *server = self->shown.server;
    const mcp_revision *revision = self->shown.revision;
    const mcp_method *method = self->shown.method;
    int not_found = mcp_status_adapt(revision, RPC_METHOD_NOT_FOUND);
    if (method == NULL || method->is_notification) {
        bool is_known =
            method == NULL && server->service->knows_method != NULL &&
            server->service->knows_method(server->user, self->shown.message.method, revision);
        if (!is_known) {
            request_refuse(self, not_found, RPC_METHOD_NOT_FOUND, "Method not found", STR(""));
            return;
        }
    }
    if (server->options.door != NULL) {
        request_begin_call(self);
    }
    server->service->request(server->user, &self->shown);
}
