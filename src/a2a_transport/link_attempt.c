/* One attempt of a call: its request in the agent's form; the reply as an answer or, event by
 * event, as a stream. Redirects are not followed: the owner's credentials are for the URL of the
 * card. */
#include "a2a_transport/link_internal.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/build.h"

enum { RPC_ID_BYTES = 24 };

static const http_call_events http_events;
static const a2a_link_events grpc_events;

static bool is_stream(a2a_method method)
{
    return (a2a_methods[method].flags & A2A_METHOD_STREAM) != 0;
}

static bay_str rpc_id_of(const a2a_link_call *self, char text[RPC_ID_BYTES])
{
    size_t at = RPC_ID_BYTES;
    uint64_t number = self->rpc_id;
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (bay_str){text + at, RPC_ID_BYTES - at};
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool is_send(a2a_method method)
{
    return method == A2A_SEND_MESSAGE || method == A2A_SEND_STREAMING_MESSAGE;
}

/* The params: of the task that was begun, in `memory`, or the owner's. */
static bay_err make_params(const a2a_link_call *self, arena *memory, json_val *out)
{
    if (self->asking == self->method || is_send(self->asking)) {
        *out = self->params != NULL ? json_root(self->params) : json_empty_object();
        return BAY_OK;
    }
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, A2A_LINK_PARAMS_BYTES);
    json_open_object(to);
    json_key_lit(to, "id");
    json_put_raw(to, buf_view(&self->seen.task_id));
    if (self->asking == A2A_GET_TASK) {
        json_key_lit(to, "historyLength");
        json_put_int(to, 0);
    }
    json_close_object(to);
    return json_builder_end(&made, out);
}

static bool is_written_already(const a2a_outbound *request, bay_str name)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (str_eq_nocase(request->fields[i].name, name)) {
            return true;
        }
    }
    return false;
}

static size_t gather_fields(const a2a_link_call *self, const a2a_outbound *request, http_field *out)
{
    size_t count = 0;
    for (size_t i = 0; i < request->field_count; i++) {
        out[count++] = request->fields[i];
    }
    for (size_t i = 0; i < self->field_count; i++) {
        if (!is_written_already(request, self->fields[i].name)) {
            out[count++] = self->fields[i];
        }
    }
    if (self->asking == A2A_SUBSCRIBE_TO_TASK && self->last_id.len > 0) {
        out[count++] = (http_field){STR("Last-Event-ID"), buf_view(&self->last_id)};
    }
    return count;
}

static bay_err send_http(a2a_link_call *self, const a2a_outbound *request, a2a_fault *fault)
{
    a2a_link *owner = self->owner;
    http_field fields[A2A_OUTBOUND_FIELDS + A2A_LINK_FIELDS + 1];
    bay_diag diag = {0};
    http_call_spec spec = {
        .method = request->verb,
        .url = request->url,
        .fields = fields,
        .field_count = gather_fields(self, request, fields),
        .body = request->body,
        .has_body = request->has_body,
        .may_run_twice = (a2a_methods[self->asking].flags & A2A_METHOD_SAFE) != 0,
        .idle_ms = is_stream(self->asking) ? owner->limits.idle_ms : owner->limits.timeout_ms,
        .authority = self->authority,
    };
    bay_err err = http_client_call(owner->http, &spec, &http_events, self, &self->http, &diag);
    mem_wipe(fields, sizeof(fields));
    if (err != BAY_OK) {
        self->http = NULL;
        (void)a2a_fault_set(fault, A2A_E_UNAVAILABLE, "the agent cannot be asked: %s",
                            diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    } else if (self->is_paused) {
        http_call_pause(self->http);
    }
    return err;
}

static bay_err start_http(a2a_link_call *self, json_val params, arena *memory, a2a_fault *fault)
{
    enum { USUAL_ENVELOPE = 256 };
    a2a_link *owner = self->owner;
    char id[RPC_ID_BYTES];
    buf body;
    a2a_outbound request;
    buf_init(&body, A2A_LINK_BODY_BYTES);
    self->rpc_id = ++owner->last_rpc_id;
    bool is_second_try =
        self->asking == A2A_CREATE_PUSH_CONFIG ? owner->posts_whole : owner->subscribes_by_get;
    bay_err err = buf_reserve(&body, json_raw(params).len + USUAL_ENVELOPE) ? BAY_OK : body.err;
    if (err == BAY_OK) {
        err = a2a_request_write(&owner->at, self->asking, params, rpc_id_of(self, id),
                                is_second_try, memory, &body, &request, fault);
    }
    if (err == BAY_OK) {
        err = send_http(self, &request, fault);
    }
    buf_fini(&body);
    return err;
}

static bay_err start_grpc(a2a_link_call *self, json_val params, a2a_fault *fault)
{
    a2a_link *owner = self->owner;
    a2a_link_request request = {
        .method = self->asking,
        .params = params,
        .fields = self->fields,
        .field_count = self->field_count,
        .authority = self->authority,
        .last_event_id = self->asking == A2A_SUBSCRIBE_TO_TASK ? self->last_number : 0,
    };
    bay_err err = a2a_grpc_send(owner->http, &owner->at, &owner->limits, &request, &grpc_events,
                                self, &self->grpc, fault);
    if (err != BAY_OK) {
        self->grpc = NULL;
    } else if (self->is_paused) {
        a2a_grpc_pause(self->grpc);
    }
    return err;
}

bay_err a2a_attempt_start(a2a_link_call *self, a2a_fault *fault)
{
    self->phase = A2A_LINK_ASKING;
    self->status = 0;
    self->is_events = false;
    self->is_over = false;
    self->events_read = 0;
    self->within_ms = 0;
    buf_fini(&self->body);
    buf_init(&self->body, A2A_LINK_HELD_BYTES);
    sse_decoder_fini(&self->decoder);
    sse_decoder_init(&self->decoder, self->owner->limits.answer_bytes);
    arena memory;
    json_val params;
    arena_init(&memory, A2A_LINK_MEMORY);
    bay_err err = make_params(self, &memory, &params);
    if (err == BAY_OK) {
        err = self->owner->at.binding == A2A_GRPC ? start_grpc(self, params, fault)
                                                  : start_http(self, params, &memory, fault);
    }
    arena_fini(&memory);
    return err;
}

bay_err a2a_attempt_limit(a2a_link_call *self, uint64_t within_ms)
{
    self->within_ms = within_ms;
    return self->is_held ? BAY_OK : loop_timer_start(self->owner->loop, &self->timer, within_ms);
}

void a2a_attempt_stop(a2a_link_call *self)
{
    self->is_held = false;
    if (self->http != NULL) {
        http_call_cancel(self->http);
        self->http = NULL;
    }
    if (self->grpc != NULL) {
        a2a_grpc_cancel(self->grpc);
        self->grpc = NULL;
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void attempt_broke(a2a_link_call *self, bay_err err, a2a_error error, const char *text,
                          bool was_sent, bool is_passing)
{
    a2a_fault fault;
    (void)a2a_fault_set(&fault, error, "%s", text);
    a2a_attempt_stop(self);
    a2a_link_retry_failed(self, err, &fault, was_sent, is_passing);
}

/* Bytes are held back: the end waits for them. */
static bool attempt_waits(a2a_link_call *self, bay_err err, bool was_sent)
{
    if (self->waiting.len == 0 && (!self->is_events || self->body.len == 0)) {
        return false;
    }
    self->is_over = true;
    self->over_err = err;
    self->over_was_sent = was_sent;
    return true;
}

static void attempt_lost(a2a_link_call *self, bay_err err, bool was_sent, const char *text)
{
    bool is_refused = err == BAY_ERR_DENIED; /* by the authority, which will not change its mind */
    a2a_error error = err == BAY_ERR_TIMEOUT ? A2A_E_DEADLINE
                      : is_refused           ? A2A_E_UNAUTHENTICATED
                                             : A2A_E_UNAVAILABLE;
    attempt_broke(self, err, error, text, was_sent, !is_refused);
}

/* ---- a whole answer -------------------------------------------------------------------------- */

/* a2a 1.0.1: the prose has POST for a subscribe, the proto GET; 405 tells which one this agent has.
 * A web framework that has the path with another verb only may answer 404 without an A2A error. */
static bool wants_get(const a2a_link_call *self, bay_err err)
{
    return self->asking == A2A_SUBSCRIBE_TO_TASK && self->owner->at.binding == A2A_HTTP_JSON &&
           !self->owner->subscribes_by_get &&
           (self->status == 405 || (self->status == 404 && err == BAY_ERR_PROTOCOL));
}

/* a2a 0.3: the body is a configuration; servers that were not generated from its annotations read
 * the whole request. */
static bool wants_whole(const a2a_link_call *self)
{
    return self->asking == A2A_CREATE_PUSH_CONFIG && self->owner->at.binding == A2A_HTTP_JSON &&
           self->owner->at.version != A2A_1_0 && !self->owner->posts_whole && self->status == 400;
}

static bool is_passing(int status)
{
    return status >= 500 || status == 429 || status == 408;
}

static void ask_again(a2a_link_call *self)
{
    a2a_fault fault = {A2A_E_UNAVAILABLE, ""};
    bay_err err = a2a_attempt_start(self, &fault);
    if (err != BAY_OK) {
        a2a_link_retry_failed(self, err, &fault, true, err == BAY_ERR_BUSY);
    }
}

static void take_answer(a2a_link_call *self)
{
    a2a_link *owner = self->owner;
    char id[RPC_ID_BYTES];
    a2a_fault fault = {A2A_E_INVALID_AGENT_RESPONSE, ""};
    json_val answer;
    arena_reset(&owner->memory);
    bay_err err = a2a_response_read(&owner->at, self->asking, self->status, buf_view(&self->body),
                                    rpc_id_of(self, id), &owner->memory, &answer, &fault);
    if (wants_get(self, err)) {
        owner->subscribes_by_get = true;
        ask_again(self);
        return;
    }
    if (wants_whole(self)) {
        owner->posts_whole = true;
        ask_again(self);
        return;
    }
    if (self->asking == A2A_CREATE_PUSH_CONFIG && self->status == 400) {
        owner->posts_whole = false; /* this form failed, too: the next attempt starts again */
    }
    if (err != BAY_OK) {
        a2a_link_retry_failed(self, err, &fault, true, is_passing(self->status));
    } else if (!is_stream(self->asking)) {
        a2a_link_retry_result(self, answer);
    } else { /* an agent without streams answered at once: the rest is polled */
        a2a_link_retry_answer(self, answer);
        if (self->phase != A2A_LINK_OVER && !attempt_waits(self, BAY_OK, true)) {
            a2a_link_retry_ended(self);
        }
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_event(a2a_link_call *self, const sse_block *block)
{
    a2a_link *owner = self->owner;
    char id[RPC_ID_BYTES];
    bool is_last = false;
    a2a_fault fault = {A2A_E_INVALID_AGENT_RESPONSE, ""};
    if (block->retry_ms != SSE_NO_RETRY) {
        a2a_link_retry_retry_hint(self, block->retry_ms);
    }
    if (block->kind != SSE_EVENT || block->data.len == 0) {
        return;
    }
    json_val event;
    arena_reset(&owner->memory);
    bay_err err = a2a_stream_read(&owner->at, block->name, block->data, rpc_id_of(self, id),
                                  &owner->memory, &event, &is_last, &fault);
    if (err != BAY_OK) {
        bool may_pass = fault.error == A2A_E_UNAVAILABLE || fault.error == A2A_E_BUSY;
        a2a_attempt_stop(self);
        a2a_link_retry_failed(self, err, &fault, true, err == BAY_ERR_REMOTE && may_pass);
        return;
    }
    a2a_link_retry_event(self, event, block->has_id ? block->id : (bay_str){NULL, 0}, is_last);
}

/* Decodes until the bytes are consumed, the receiver pauses or this attempt is over. */
static void take_events(a2a_link_call *self, bay_str bytes)
{
    uint64_t attempt = self->rpc_id;
    while (self->phase == A2A_LINK_STREAMING && self->rpc_id == attempt) {
        size_t consumed = 0;
        sse_block block;
        if (self->is_paused) {
            buf_str(&self->body, bytes);
            if (self->body.err != BAY_OK) {
                attempt_broke(self, self->body.err, A2A_E_INTERNAL,
                              "no room for what a paused stream still brings", true, false);
            }
            return;
        }
        bay_err err = sse_decoder_feed(&self->decoder, bytes, &consumed, &block);
        if (err != BAY_OK) {
            attempt_broke(self, err, A2A_E_INVALID_AGENT_RESPONSE,
                          err == BAY_ERR_LIMIT ? "an event of the agent's stream is too large"
                                               : "no memory for an event of the agent's stream",
                          true, false);
            return;
        }
        bytes = str_from(bytes, consumed);
        if (block.kind == SSE_MORE) {
            sse_decoder_trim(&self->decoder);
            return;
        }
        take_event(self, &block);
    }
}

void a2a_attempt_drain(a2a_link_call *self)
{
    if (!a2a_link_retry_tell(self)) {
        return;
    }
    if (self->is_events && self->body.len > 0) {
        buf held = self->body;
        buf_init(&self->body, A2A_LINK_HELD_BYTES);
        take_events(self, buf_view(&held));
        buf_fini(&held);
    }
    bool goes_on = self->phase != A2A_LINK_OVER && !self->is_paused && self->is_over &&
                   self->waiting.len == 0 && self->body.len == 0;
    if (!goes_on) {
        return;
    }
    self->is_over = false;
    if (self->over_err == BAY_OK) {
        a2a_link_retry_ended(self);
    } else {
        attempt_lost(self, self->over_err, self->over_was_sent, bay_err_text(self->over_err));
    }
}

/* ---- what HTTP tells ------------------------------------------------------------------------- */

static bay_str field_of(const http_field *fields, size_t count, bay_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            return fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    a2a_link_call *self = user;
    bay_str encoding = field_of(fields, count, STR("content-encoding"));
    bay_str type = field_of(fields, count, STR("content-type"));
    a2a_link_enter(self->owner);
    self->status = status;
    if (status >= 300 && status < 400) {
        attempt_broke(self, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE,
                      "the agent redirects, and redirects are not followed: its card should name "
                      "the address it now has",
                      status == 303, false);
    } else if (encoding.len > 0 && !str_eq_nocase(encoding, STR("identity"))) {
        attempt_broke(self, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE,
                      "the agent's answer has a content encoding that was not asked for", true,
                      false);
    } else if (status < 300 && is_stream(self->asking) &&
               str_eq_nocase(str_head(type, sizeof("text/event-stream") - 1),
                             STR("text/event-stream"))) {
        self->is_events = true;
        self->phase = A2A_LINK_STREAMING;
    }
    a2a_link_leave(self->owner);
}

static void on_body(void *user, bay_str bytes)
{
    a2a_link_call *self = user;
    a2a_link_enter(self->owner);
    if (self->is_events) {
        take_events(self, bytes);
    } else {
        size_t most = self->owner->limits.answer_bytes;
        if (bytes.len > most || self->body.len > most - bytes.len) {
            attempt_broke(self, BAY_ERR_LIMIT, A2A_E_INVALID_AGENT_RESPONSE,
                          "the agent's answer is too large", true, false);
        } else {
            buf_str(&self->body, bytes);
            if (self->body.err != BAY_OK) {
                attempt_broke(self, self->body.err, A2A_E_INTERNAL,
                              "no memory for the agent's answer", true, false);
            }
        }
    }
    a2a_link_leave(self->owner);
}

static void link_attempt_on_end(void *user)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    self->http = NULL;
    if (!self->is_events) {
        take_answer(self);
    } else if (!attempt_waits(self, BAY_OK, true)) {
        a2a_link_retry_ended(self);
    }
    a2a_link_leave(owner);
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    self->http = NULL;
    if (!attempt_waits(self, err, was_sent)) {
        attempt_lost(self, err, was_sent, text != NULL ? text : bay_err_text(err));
    }
    a2a_link_leave(owner);
}

/* A person may have to log in: the call's time does not run meanwhile. */
static void on_waits(void *user, bool is_waiting)
{
    a2a_link_call *self = user;
    self->is_held = is_waiting;
    if (is_waiting) {
        loop_timer_stop(self->owner->loop, &self->timer);
    } else if (self->phase == A2A_LINK_ASKING && self->within_ms > 0) {
        /* without memory the HTTP client's time-outs are what is left */
        err_ignore(a2a_attempt_limit(self, self->within_ms));
    }
}

static const http_call_events http_events = {
    .head = on_head,
    .body = on_body,
    .end = link_attempt_on_end,
    .failed = on_failed,
    .waits = on_waits,
};

/* ---- what gRPC tells ------------------------------------------------------------------------- */

static void on_grpc_result(void *user, json_val result)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    self->grpc = NULL;
    a2a_link_retry_result(self, result);
    a2a_link_leave(owner);
}

static void on_grpc_event(void *user, json_val event, uint64_t event_id, bool is_last)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    (void)event_id; /* gRPC has none */
    a2a_link_enter(owner);
    self->phase = A2A_LINK_STREAMING;
    a2a_link_retry_event(self, event, (bay_str){NULL, 0}, is_last);
    a2a_link_leave(owner);
}

static void on_grpc_end(void *user)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    self->grpc = NULL;
    if (!attempt_waits(self, BAY_OK, true)) {
        a2a_link_retry_ended(self);
    }
    a2a_link_leave(owner);
}

static void on_grpc_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    a2a_link_call *self = user;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    self->grpc = NULL;
    bool may_pass = bay_err_class_of(err) == BAY_ERR_CLASS_RETRY ||
                    fault->error == A2A_E_UNAVAILABLE || fault->error == A2A_E_BUSY;
    if (!attempt_waits(self, err, was_sent)) {
        a2a_link_retry_failed(self, err, fault, was_sent, may_pass);
    }
    a2a_link_leave(owner);
}

static const a2a_link_events grpc_events = {
    .result = on_grpc_result,
    .event = on_grpc_event,
    .end = on_grpc_end,
    .failed = on_grpc_failed,
};
