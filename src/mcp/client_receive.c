/* Input: heads, messages, ends. A message is indexed once in borrowed working memory and passed to
 * the call that it belongs to: by its exchange over HTTP, by its id or token on a shared channel.
 * All input is hostile: a message that fits no call is dropped and logged, an unreadable one is
 * counted. Source: mcp 2026-07-28 basic/transports; mcp 2025-11-25 basic/transports. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "mcp/client_internal.h"

bool mcp_client_is_id(bay_str raw, uint64_t *out)
{
    return str_uint(raw, out); /* JSON has no leading zeros: one text for each number */
}

/* ---- answers --------------------------------------------------------------------------------- */

__attribute__((cold, noinline)) static void finish_misshapen(mcp_call *call,
                                                             const mcp_shape_fault *fault)
{
    char text[CLIENT_TEXT];
    mcp_outcome outcome = {
        .kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_PROTOCOL, .was_sent = true, .text = text};
    bay_str method = call->method != NULL ? call->method->text : STR("its method");
    snprintf(text, sizeof(text), "what the server answered is no result of %.*s: %s%s%s",
             BAY_STR(method), fault->place, fault->place[0] != '\0' ? " " : "it ", fault->text);
    memcpy(outcome.place, fault->place, sizeof(outcome.place));
    mcp_call_finish(call, &outcome);
}

/* Lists are read item by item, and their reader omits items that are too deep. */
static bool is_list(const mcp_call *call)
{
    return call->method != NULL && (call->method->flags & MCP_FLAG_LIST) != 0;
}

static void finish_result(mcp_call *call, const rpc_message *message)
{
    mcp_shape_fault fault;
    if (call->purpose == CALL_USER) {
        if (message->root.doc->is_deep && !is_list(call)) {
            fault = (mcp_shape_fault){.text = "is nested too deeply"};
            finish_misshapen(call, &fault);
            return;
        }
        if (!mcp_shape_result(call->method, call->client->revision, message->result, &fault)) {
            finish_misshapen(call, &fault);
            return;
        }
        if (mcp_client_is_modern(call->client)) {
            call->client->is_confirmed = true;
        }
    }
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT,
                           .result = message->result,
                           .progress_token = call->wants_progress ? call->id : 0};
    mcp_call_finish(call, &outcome);
}

static void finish_error(mcp_call *call, const rpc_message *message)
{
    int64_t code = 0;
    if (json_int64(json_get(message->error, STR("code")), &code) != BAY_OK || code < INT32_MIN ||
        code > INT32_MAX) {
        code = RPC_INTERNAL_ERROR; /* the object itself is passed on unchanged */
    }
    if (code != 0 && mcp_client_detect_doubts(call, (int)code, message->error)) {
        return;
    }
    mcp_outcome outcome = {
        .kind = MCP_OUTCOME_ERROR, .error = message->error, .error_code = (int)code};
    mcp_call_finish(call, &outcome);
}

static bool is_null_id(bay_str id)
{
    return id.len == 0 || str_eq(id, STR("null"));
}

/* The call that this answer belongs to; NULL: none. `owner`: of the exchange it came on, or NULL.
 */
static mcp_call *answered_call(mcp_client *self, mcp_call *owner, const rpc_message *message)
{
    mcp_call *call = mcp_call_by_id(self, message->id);
    if (owner != NULL && owner->purpose != CALL_STREAM) {
        if (call == owner || (message->kind == RPC_ERROR && is_null_id(message->id))) {
            return owner;
        }
        owner->fault = BAY_ERR_PROTOCOL;
        owner->fault_text = "it names another id";
        return NULL;
    }
    /* A server that could not read the first request cannot name it either. */
    if (call == NULL && owner == NULL && self->probe != NULL && message->kind == RPC_ERROR &&
        is_null_id(message->id)) {
        return self->probe;
    }
    return call;
}

/* An answer with another spelling of a known id, "7" or 7.0 for 7: no other answer will come. */
static mcp_call *misnamed_call(const mcp_client *self, bay_str id)
{
    if (id.len > 2 && id.at[0] == '"') {
        return mcp_call_by_id(self, (bay_str){id.at + 1, id.len - 2});
    }
    size_t point = str_find(id, '.');
    return str_eq(str_from(id, point), STR(".0")) ? mcp_call_by_id(self, str_head(id, point))
                                                  : NULL;
}

static void fail_misnamed(mcp_call *call, bay_str id)
{
    char text[CLIENT_TEXT];
    snprintf(text, sizeof(text), "the server answered with id %.*s where %llu was asked",
             BAY_STR(str_head(id, 64)), (unsigned long long)call->id);
    mcp_call_fail(call, BAY_ERR_PROTOCOL, true, text);
}

static void receive_answer(mcp_client *self, mcp_call *owner, const rpc_message *message)
{
    mcp_call *call = answered_call(self, owner, message);
    mcp_call *misnamed = call == NULL && owner == NULL ? misnamed_call(self, message->id) : NULL;
    if (misnamed != NULL) {
        fail_misnamed(misnamed, message->id);
        return;
    }
    if (call == NULL) {
        LOG(LOG_DEBUG, "mcp", "%s: an answer to no open request was ignored: id %.*s", self->label,
            BAY_STR(str_head(message->id, 64)));
        return;
    }
    if (mcp_client_legacy_lost_session(call) && !mcp_client_is_modern(self)) {
        return; /* its exchange's end will start a new session */
    }
    if (message->kind == RPC_RESULT) {
        finish_result(call, message);
    } else {
        finish_error(call, message);
    }
}

/* ---- notifications --------------------------------------------------------------------------- */

static void notify_call(mcp_call *call, const mcp_method *method, json_val params)
{
    if (call->purpose == CALL_USER && call->events.notified != NULL) {
        call->events.notified(call->user, call, method, params);
    }
}

/* mcp 2025-11-25 basic/utilities/tasks: the token of the call that began a task stays valid as long
 * as the task, so the call that waits for the task gets its progress. */
static mcp_call *progress_call_find(const mcp_client *self, bay_str token)
{
    uint64_t id;
    if (self->progress_calls == 0 || !mcp_client_is_id(token, &id) || id == 0) {
        return NULL;
    }
    LIST_EACH(link, &self->open)
    {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        if (call->progress_of == id) {
            return call;
        }
    }
    return NULL;
}

static void receive_progress(mcp_client *self, mcp_call *owner, const mcp_method *method,
                             json_val params)
{
    bay_str token = json_raw(json_get(params, STR("progressToken")));
    mcp_call *call = mcp_call_by_id(self, token);
    mcp_call *progress_call = call == NULL ? progress_call_find(self, token) : NULL;
    bool is_wanted = progress_call != NULL || (call != NULL && call->wants_progress);
    call = progress_call != NULL ? progress_call : call;
    bool is_elsewhere = owner != NULL && owner != call && owner->purpose != CALL_STREAM;
    if (!is_wanted || is_elsewhere) {
        LOG(LOG_DEBUG, "mcp", "%s: progress of no open request was ignored", self->label);
        return;
    }
    call->deadline_ms = self->now_ms + call->timeout_ms;
    notify_call(call, method, params);
}

/* Log messages and other notifications that belong to a call without naming it. */
static void receive_related(mcp_client *self, mcp_call *owner, const mcp_method *method,
                            json_val params)
{
    mcp_call *call = owner != NULL && owner->purpose == CALL_USER ? owner : NULL;
    if (call == NULL && owner == NULL) {
        call = mcp_call_only_open(self);
    }
    if (call != NULL && call->events.notified != NULL) {
        notify_call(call, method, params);
    } else if (method->id == MCP_N_MESSAGE && self->events.logged != NULL) {
        self->events.logged(self->user, params);
    }
}

static mcp_call *subscription_of(mcp_client *self, json_val id)
{
    mcp_call *call = mcp_call_by_id(self, json_raw(id));
    return call != NULL && call->purpose == CALL_LISTEN ? call : NULL;
}

static void receive_acknowledged(mcp_client *self, mcp_call *owner, json_val params)
{
    json_val meta = json_get(params, STR("_meta"));
    mcp_call *call = subscription_of(self, json_get(meta, STR(MCP_META_SUBSCRIPTION)));
    if (call != NULL && (owner == NULL || owner == call)) {
        mcp_client_modern_acknowledged(self, call);
    }
}

static void receive_cancelled(mcp_client *self, json_val params)
{
    json_val id = json_get(params, STR("requestId"));
    if (!mcp_client_is_modern(self)) {
        mcp_client_asked_end(self, json_raw(id), false);
        if (self->events.withdrawn != NULL && !json_is(id, JSON_MISSING)) {
            self->events.withdrawn(self->user, json_raw(id));
        }
        return;
    }
    /* mcp 2026-07-28 basic/patterns/cancellation: how a server ends a listen on stdio */
    mcp_call *call = subscription_of(self, id);
    if (call != NULL) {
        mcp_call_fail(call, BAY_ERR_CLOSED, true, "the server ended the subscription");
    }
}

static void receive_updated(mcp_client *self, json_val params, arena *memory)
{
    bay_str uri;
    if (self->events.updated != NULL &&
        json_str(json_get(params, STR("uri")), memory, &uri) == BAY_OK) {
        self->events.updated(self->user, uri);
    }
}

static void receive_changed(mcp_client *self, mcp_change change)
{
    if (self->events.changed != NULL) {
        self->events.changed(self->user, change);
    }
}

static void receive_notification(mcp_client *self, mcp_call *owner, const rpc_message *message,
                                 arena *memory)
{
    mcp_revision_id revision = self->revision != NULL ? self->revision->id : self->newest;
    const mcp_method *method = mcp_method_find(message->method, revision, MCP_SENDER_SERVER);
    if (method == NULL || !method->is_notification) {
        LOG(LOG_DEBUG, "mcp", "%s: an unknown notification was ignored: %.*s", self->label,
            BAY_STR(str_head(message->method, 64)));
        return;
    }
    switch (method->id) {
    case MCP_N_PROGRESS:
        receive_progress(self, owner, method, message->params);
        return;
    case MCP_N_TOOLS_CHANGED:
        receive_changed(self, MCP_CHANGE_TOOLS);
        return;
    case MCP_N_PROMPTS_CHANGED:
        receive_changed(self, MCP_CHANGE_PROMPTS);
        return;
    case MCP_N_RESOURCES_CHANGED:
        receive_changed(self, MCP_CHANGE_RESOURCES);
        return;
    case MCP_N_RESOURCE_UPDATED:
        receive_updated(self, message->params, memory);
        return;
    case MCP_N_ACKNOWLEDGED:
        receive_acknowledged(self, owner, message->params);
        return;
    case MCP_N_CANCELLED:
        receive_cancelled(self, message->params);
        return;
    case MCP_N_ELICITATION_COMPLETE:
        if (self->events.elicited != NULL) {
            self->events.elicited(self->user, message->params);
            return;
        }
        receive_related(self, owner, method, message->params);
        return;
    default:
        receive_related(self, owner, method, message->params);
        return;
    }
}

/* ---- requests of the server ------------------------------------------------------------------ */

/* The server waits for an answer: if there is no memory for it, an error message may still fit; if
 * not even that does, the link fails, because calls on it could wait without end. */
static void post_answer(mcp_client *self, client_scratch *scratch, bay_str id)
{
    bay_err err = scratch->message.err;
    err = err == BAY_OK ? mcp_client_post(self, buf_view(&scratch->message)) : err;
    if (err == BAY_OK) {
        return;
    }
    buf_clear(&scratch->message);
    rpc_write_error(&scratch->message, id, RPC_INTERNAL_ERROR,
                    STR("the answer could not be sent: out of memory, or it is too long"),
                    (bay_str){0});
    err = scratch->message.err;
    err = err == BAY_OK ? mcp_client_post(self, buf_view(&scratch->message)) : err;
    if (err != BAY_OK) {
        mcp_client_break(self, err, "a question of the server could not be answered", false);
    }
}

static void post_refusal(mcp_client *self, bay_str id, int code, const char *text)
{
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    rpc_write_error(&scratch.message, id, code, str_of(text), (bay_str){0});
    post_answer(self, &scratch, id);
    mcp_client_scratch_put(&self->send_scratch, &scratch);
}

static void client_message_refuse(mcp_client *self, const rpc_message *message)
{
    char text[CLIENT_TEXT];
    snprintf(text, sizeof(text),
             "%.*s is refused: this client did not offer to answer it (no capability declared, or "
             "nobody is there to ask)",
             BAY_STR(str_head(message->method, 64)));
    post_refusal(self, message->id, RPC_METHOD_NOT_FOUND, text);
}

static void client_message_answer(mcp_client *self, bay_str id, bay_str result, int code,
                                  bay_str message)
{
    bool is_modern = self->state == MCP_CLIENT_READY && mcp_client_is_modern(self);
    if (self->is_dead || self->state == MCP_CLIENT_BROKEN || is_modern) {
        return;
    }
    mcp_client_enter(self, 0);
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    if (result.len > 0) {
        rpc_write_result(&scratch.message, id, result);
    } else {
        rpc_write_error(&scratch.message, id, code, message, (bay_str){0});
    }
    post_answer(self, &scratch, id);
    mcp_client_scratch_put(&self->send_scratch, &scratch);
    mcp_client_leave(self);
}

void mcp_client_answer(mcp_client *self, bay_str id, bay_str result, int code, bay_str message)
{
    mcp_client_asked_end(self, id, true);
    client_message_answer(self, id, result, code, message);
}

static bool ask_user(mcp_client *self, mcp_call *owner, const rpc_message *message)
{
    mcp_call *call = owner != NULL && owner->purpose == CALL_USER ? owner : NULL;
    if (call == NULL && owner == NULL) {
        call = mcp_call_only_open(self);
    }
    if (call != NULL && call->events.asked != NULL &&
        call->events.asked(call->user, call, message)) {
        return true;
    }
    return !self->is_dead && self->events.asked != NULL && self->events.asked(self->user, message);
}

static void receive_request(mcp_client *self, mcp_call *owner, const rpc_message *message)
{
    bool is_ready = self->state == MCP_CLIENT_READY;
    if (mcp_client_is_modern(self) && is_ready) {
        /* mcp 2026-07-28 basic/patterns: servers send no requests */
        LOG(LOG_WARN, "mcp", "%s: a request of a modern server was ignored: %.*s", self->label,
            BAY_STR(str_head(message->method, 64)));
        return;
    }
    if (str_eq(message->method, STR("ping"))) {
        client_message_answer(self, message->id, STR("{}"), 0, (bay_str){0});
        return;
    }
    const mcp_method *method =
        is_ready ? mcp_method_find(message->method, self->revision->id, MCP_SENDER_SERVER) : NULL;
    /* counted before it is answered, which may happen inside */
    bool is_known =
        method != NULL && !method->is_notification && mcp_client_asked(self, owner, message->id);
    bool is_taken = is_known && ask_user(self, owner, message);
    if (is_known && !is_taken) {
        mcp_client_asked_end(self, message->id, false);
    }
    if (!is_taken && !self->is_dead && self->state != MCP_CLIENT_BROKEN) {
        client_message_refuse(self, message);
    }
}

/* ---- one message ----------------------------------------------------------------------------- */

static void dispatch(mcp_client *self, uint64_t exchange, const rpc_message *message, arena *memory)
{
    mcp_call *owner = exchange != 0 ? mcp_call_by_exchange(self, exchange) : NULL;
    if (exchange != 0 && (owner == NULL || owner->phase != PHASE_OPEN)) {
        LOG(LOG_DEBUG, "mcp", "%s: a message after the answer was ignored", self->label);
        return;
    }
    switch (message->kind) {
    case RPC_REQUEST:
        receive_request(self, owner, message);
        return;
    case RPC_NOTIFICATION:
        receive_notification(self, owner, message, memory);
        return;
    case RPC_RESULT:
    case RPC_ERROR:
        receive_answer(self, owner, message);
        return;
    }
}

/* An invalid answer ends its call: no other will come. (One with an error status ends with its
 * exchange, whose status says more.) */
static bool fail_answered(mcp_client *self, uint64_t exchange, const rpc_fault *fault)
{
    char text[CLIENT_TEXT];
    mcp_call *owner = exchange != 0 ? mcp_call_by_exchange(self, exchange) : NULL;
    mcp_call *call = mcp_call_by_id(self, fault->answers);
    bool is_elsewhere = owner != NULL && owner->purpose != CALL_STREAM && owner != call;
    if (call == NULL || is_elsewhere || call->status >= 400) {
        return false;
    }
    snprintf(text, sizeof(text), "the server's answer is no JSON-RPC response: %s", fault->text);
    mcp_call_fail(call, BAY_ERR_PROTOCOL, true, text);
    return true;
}

/* An unreadable message: on an exchange it affects that call only, on a shared channel it is
 * counted. */
static void receive_garbage(mcp_client *self, uint64_t exchange, bay_err err,
                            const rpc_fault *fault)
{
    const char *why = fault->text != NULL ? fault->text : bay_err_text(err);
    if (err == BAY_ERR_PROTOCOL && fail_answered(self, exchange, fault)) {
        return;
    }
    if (err == BAY_ERR_PROTOCOL && fault->id.len > 0 && !str_eq(fault->id, STR("null"))) {
        post_refusal(self, fault->id, fault->code, why);
    }
    LOG(LOG_DEBUG, "mcp", "%s: an unreadable message was ignored: %s", self->label, why);
    if (exchange == 0) {
        self->unread_text = why;
        self->unread_ms = self->now_ms;
        if (err == BAY_ERR_NOMEM) {
            /* It may have been an answer; no call must wait for it without end. */
            mcp_client_break(self, err, "no memory to read a message", false);
        } else if (++self->garbage > CLIENT_MAX_GARBAGE) {
            mcp_client_break(self, BAY_ERR_PROTOCOL, "the server sends what is no MCP", false);
        }
        return;
    }
    mcp_call *call = mcp_call_by_exchange(self, exchange);
    if (call == NULL || call->phase != PHASE_OPEN) {
        return;
    }
    call->fault = err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_PROTOCOL;
    call->fault_text = why; /* static */
    if (++call->garbage > CLIENT_MAX_GARBAGE && call->purpose != CALL_STREAM) {
        mcp_call_abandon(call);
        mcp_call_fail(call, BAY_ERR_PROTOCOL, true, "the server sends what is no MCP");
    }
}

/* Only results may be nested deeply, see finish_result; of an error only the id is used. */
static void deliver(mcp_client *self, uint64_t exchange, const rpc_message *message, arena *memory)
{
    if (message->root.doc->is_deep && message->kind != RPC_RESULT) {
        rpc_fault fault = {.code = RPC_INVALID_REQUEST, .text = "The message is nested too deeply"};
        fault.answers = message->kind == RPC_ERROR ? message->id : (bay_str){0};
        fault.id = message->kind == RPC_REQUEST ? message->id : (bay_str){0};
        receive_garbage(self, exchange, BAY_ERR_PROTOCOL, &fault);
        return;
    }
    dispatch(self, exchange, message, memory);
}

static void receive_batch(mcp_client *self, uint64_t exchange, json_val batch, arena *memory)
{
    bool may = self->revision != NULL && self->revision->batches &&
               self->state == MCP_CLIENT_READY && json_count(batch) > 0;
    if (!may) {
        receive_garbage(self, exchange, BAY_ERR_PROTOCOL, &(rpc_fault){.text = "It is a batch"});
        return;
    }
    json_iter iter = json_iter_of(batch);
    while (!self->is_dead && self->state != MCP_CLIENT_BROKEN && json_next(&iter)) {
        rpc_message message;
        rpc_fault fault = {0};
        bay_err err = rpc_message_read(&message, iter.value, memory, &fault);
        if (err == BAY_OK) {
            deliver(self, exchange, &message, memory);
        } else {
            receive_garbage(self, exchange, err, &fault);
        }
    }
}

static void receive_text(mcp_client *self, uint64_t exchange, bay_str text, arena *memory)
{
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    json_limits limits = json_default_limits;
    limits.max_bytes = self->max_message_bytes;
    limits.max_depth = self->max_depth | JSON_MARK_DEPTH;
    bay_err err = rpc_message_parse(&message, &doc, text, &limits, memory, &fault);
    if (err == BAY_ERR_UNSUPPORTED) {
        receive_batch(self, exchange, message.root, memory);
    } else if (err != BAY_OK) {
        receive_garbage(self, exchange, err, &fault);
    } else {
        if (exchange == 0) {
            self->garbage = 0;
        }
        deliver(self, exchange, &message, memory);
    }
}

static void receive_too_much(mcp_client *self, uint64_t exchange)
{
    static const char text[] = "the message is larger than this client takes";
    if (exchange == 0) {
        mcp_client_break(self, BAY_ERR_LIMIT, text, false);
        return;
    }
    mcp_call *call = mcp_call_by_exchange(self, exchange);
    if (call == NULL) {
        return;
    }
    mcp_call_abandon(call);
    if (call == self->stream) {
        mcp_client_legacy_stream_ended(self, BAY_ERR_LIMIT);
    } else if (call->phase == PHASE_OPEN) {
        mcp_call_fail(call, BAY_ERR_LIMIT, true, text);
    }
}

bool mcp_client_overlong(mcp_client *self, const rpc_outline *outline, const char *text,
                         uint64_t now_ms)
{
    bay_str answered = rpc_outline_answer(outline);
    bay_str request = rpc_outline_request(outline);
    if (self->is_dead || self->state == MCP_CLIENT_BROKEN || self->state == MCP_CLIENT_IDLE) {
        return true;
    }
    mcp_client_enter(self, now_ms);
    mcp_call *call = answered.len > 0 ? mcp_call_by_id(self, answered) : NULL;
    if (call != NULL) {
        mcp_call_fail(call, BAY_ERR_LIMIT, true, text);
    } else if (request.len > 0) {
        post_refusal(self, request, RPC_INVALID_REQUEST, "The message is too large");
    }
    mcp_client_leave(self);
    return answered.len > 0 || request.len > 0 || rpc_outline_is_notification(outline);
}

void mcp_client_receive(mcp_client *self, uint64_t exchange, bay_str message, bay_str event_id,
                        uint64_t now_ms)
{
    if (self->is_dead || self->state == MCP_CLIENT_BROKEN || self->state == MCP_CLIENT_IDLE) {
        return;
    }
    mcp_client_enter(self, now_ms);
    uint64_t key = mcp_client_is_http(self) ? exchange : 0;
    mcp_call *owner = key != 0 ? mcp_call_by_exchange(self, key) : NULL;
    if (owner != NULL) {
        mcp_call_remember_event(owner, event_id);
    }
    bool is_known = !mcp_client_is_http(self) || owner != NULL;
    if (message.len > self->max_message_bytes) {
        receive_too_much(self, key);
    } else if (message.len > 0 && is_known) {
        mcp_client_trace(self, false, message, NULL, 0);
        client_scratch scratch = mcp_client_scratch_take(self, &self->receive_scratch);
        if (!self->is_dead) {
            receive_text(self, key, message, &scratch.memory);
        }
        mcp_client_scratch_put(&self->receive_scratch, &scratch);
    }
    mcp_client_leave(self);
}
