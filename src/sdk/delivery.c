/* From a handler, on whatever thread, to the engine on its loop: answers, progress and log
 * messages. On the loop itself they go straight through; from elsewhere they are posted, in order.
 * An answer travels in the call itself, so that no lack of memory can lose it. Progress and log
 * messages are dropped past a bound, and while the client does not read. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

enum { LOG_MOST_BYTES = 1 << 20 };

static const bay_str no_memory = STR_INIT("The result does not fit into memory or its bound");

/* ---- to the request, on the loop */

static void request_answer(bay_call *call, const call_note *note)
{
    switch (note->kind) {
    case NOTE_RESULT:
        call->request->result_meta = note->meta;
        mcp_request_result_members(call->request, note->text);
        return;
    case NOTE_ERROR:
        mcp_request_error(call->request, note->code, note->text, json_raw(note->value));
        return;
    case NOTE_NOT_FOUND:
        mcp_request_resource_not_found(call->request);
        return;
    default:
        mcp_request_result(call->request, note->value);
    }
}

static void request_part(bay_call *call, const call_note *note)
{
    if (note->kind == NOTE_ERROR) {
        mcp_request_part_error(call->request, note->code, note->text, json_raw(note->value));
    } else {
        mcp_request_part_result(call->request, note->value);
    }
}

static bay_err request_message(bay_call *call, const call_note *note)
{
    switch (note->kind) {
    case NOTE_PROGRESS:
        return mcp_request_progress(call->request, note->progress, note->text);
    case NOTE_LOG:
        return mcp_request_log(call->request, (mcp_log_level)note->code, note->text);
    case NOTE_TASK_STATUS:
        return BAY_OK; /* it is none */
    case NOTE_RELEASE:
        mcp_request_release_stream(call->request, (uint32_t)note->progress);
        return BAY_OK;
    default:
        return mcp_request_notify(call->request, MCP_N_ELICITATION_COMPLETE, note->text);
    }
}

static void request_answered(void *user, bay_err err, const rpc_message *response)
{
    question *one = user;
    bool is_result = response != NULL && response->kind == RPC_RESULT;
    json_val result = is_result ? response->result : JSON_NONE;
    if (err == BAY_OK) {
        err = is_result ? sdk_call_question_check(one, result) : BAY_ERR_REMOTE;
    }
    sdk_call_question_answered(one, err, result);
}

/* A session is asked by a request of ours; a modern client by rounds, so that the answer is there
 * already or comes with another call. */
static void request_ask(bay_call *call, question *one)
{
    if (call->request->revision->era == MCP_MODERN) {
        sdk_call_round_ask(call, one);
        return;
    }
    one->state = QUESTION_ASKED;
    bay_err err =
        mcp_request_ask(call->request, sdk_call_question_method(one)->id, json_raw(one->params),
                        request_answered, one, loop_now_ms(call->server->loop));
    if (err != BAY_OK) {
        sdk_call_question_answered(one, err, JSON_NONE);
    }
}

static void request_pause(bay_call *call)
{
    json_builder made;
    json_val result;
    bay_err err = sdk_call_round_write(call, json_builder_init(&made, NULL, SERVER_MAX_RESULT));
    if (err == BAY_OK) {
        err = json_builder_view(&made, &result);
    }
    if (err == BAY_OK) {
        sdk_call_pass(call, &(call_note){.kind = NOTE_OBJECT, .value = result});
    } else {
        SERVER_LOG(call->server, LOG_ERROR, "server", "\"%.*s\" cannot ask its client: %s",
                   BAY_STR(call->entry->key), bay_err_text(err));
        sdk_call_pass(call, &(call_note){.kind = NOTE_ERROR,
                                         .code = RPC_INTERNAL_ERROR,
                                         .text = err == BAY_ERR_LIMIT
                                                     ? STR("The call asked its client for more "
                                                           "than can be carried over rounds")
                                                     : no_memory});
    }
    json_builder_drop(&made);
}

const call_sink sdk_request_sink = {
    .answer = request_answer,
    .part = request_part,
    .message = request_message,
    .ask = request_ask,
    .pause = request_pause,
};

/* ---- on the loop */

static void deliver_message(bay_call *call, const call_note *note)
{
    if (call->is_delivered || call->is_parted) {
        return; /* the client has its answer */
    }
    if (call->sink->message(call, note) == BAY_ERR_AGAIN) {
        atomic_store(&call->is_slow, true);
    }
}

static void deliver_answer(bay_call *call, const call_note *note)
{
    call->is_delivered = true;
    if (call->is_parted) {
        SERVER_LOG(call->server, LOG_INFO, "server",
                   "\"%.*s\" ended after its client had been answered; dropped",
                   BAY_STR(call->entry->key));
    }
    sdk_deadline_stop(call);
    call->sink->answer(call, note);
    if (!call->is_running) {
        sdk_call_questions_forget(call);
    }
    call->server->calls_under_way--;
    sdk_call_unref(call); /* the engine's side */
}

void sdk_call_give_up(bay_call *call, const call_note *note)
{
    if (call->is_parted || call->is_delivered) {
        return;
    }
    bool was_running = call->is_running;
    call->is_parted = true;
    call->is_running = true; /* what was asked is answered by nobody now: one after the other */
    atomic_fetch_add(&call->references, 1);
    sdk_deadline_stop(call);
    atomic_store(&call->is_cancelled, true);
    call->sink->part(call, note);
    if (was_running) {
        sdk_call_unref(call);
    } else {
        sdk_call_returned(call);
    }
}

void sdk_call_pass(bay_call *call, const call_note *note)
{
    if (atomic_load(&call->is_deferred)) {
        sdk_call_questions_cancel(call);
        sdk_call_give_up(call, note);
    } else if (!atomic_exchange(&call->is_finished, true)) {
        deliver_answer(call, note);
    }
}

/* ---- from anywhere */

static void answer_arrived(void *argument)
{
    bay_call *call = argument;
    buf bytes = call->answer_bytes;
    json_doc *value = call->answer_value;
    call->answer_bytes = (buf){0};
    call->answer_value = NULL;
    deliver_answer(call, &call->answer);
    buf_fini(&bytes);
    mem_free(value);
}

/* Texts of `note` are in `owned`, which is taken, or static; on the loop they may be anywhere.
 * Until it is delivered the engine's reference keeps the call; afterwards the call is not the
 * caller's. */
static void delivery_answer(bay_call *call, const call_note *note, buf *owned)
{
    if (sdk_call_on_loop(call)) {
        deliver_answer(call, note);
        return;
    }
    call->answer = *note;
    if (note->value.doc != NULL) {
        if (json_clone(note->value, &call->answer_value) == BAY_OK) {
            call->answer.value = json_root(call->answer_value);
        } else {
            call->answer =
                (call_note){.kind = NOTE_ERROR, .code = RPC_INTERNAL_ERROR, .text = no_memory};
        }
    }
    if (owned != NULL) {
        call->answer_bytes = *owned;
        *owned = (buf){0};
    }
    call->message = (loop_message){.function = answer_arrived, .argument = call};
    if (loop_post_message(call->server->loop, &call->message) != BAY_OK) {
        SERVER_LOG(call->server, LOG_ERROR, "server",
                   "an answer came after the server had ended; it is dropped");
    }
}

typedef struct posted {
    bay_call *call; /* holds a reference */
    call_note note;
    char bytes[];
} posted;

static void posted_let_go(posted *self)
{
    bay_call *call = self->call;
    atomic_fetch_sub(&call->notes, 1);
    atomic_fetch_sub(&call->note_bytes, self->note.text.len);
    sdk_call_unref(call);
    mem_free(self);
}

static void posted_arrived(void *argument)
{
    posted *self = argument;
    deliver_message(self->call, &self->note);
    posted_let_go(self);
}

static void delivery_send(bay_call *call, call_note note)
{
    bay_str bytes = note.text;
    if (sdk_call_on_loop(call)) {
        deliver_message(call, &note);
        return;
    }
    if (atomic_load(&call->notes) >= CALL_MAX_NOTES ||
        atomic_load(&call->note_bytes) + bytes.len > CALL_MAX_NOTE_BYTES) {
        return;
    }
    posted *self = mem_alloc(sizeof(*self) + bytes.len);
    if (self == NULL) {
        return;
    }
    *self = (posted){.call = call, .note = note};
    memcpy(self->bytes, bytes.at != NULL ? bytes.at : "", bytes.len);
    self->note.text.at = self->bytes;
    atomic_fetch_add(&call->references, 1);
    atomic_fetch_add(&call->notes, 1);
    atomic_fetch_add(&call->note_bytes, bytes.len);
    if (loop_post(call->server->loop, posted_arrived, self) != BAY_OK) {
        posted_let_go(self);
    }
}

/* ---- how a call ends */

static bool call_claim(bay_call *call)
{
    if (atomic_exchange(&call->is_finished, true)) {
        SERVER_LOG(call->server, LOG_ERROR, "server",
                   "the handler of \"%.*s\" answered twice; the second is dropped",
                   BAY_STR(call->entry->key));
        return false;
    }
    return true;
}

static void answer_error(bay_call *call, int code, bay_str message)
{
    delivery_answer(call, &(call_note){.kind = NOTE_ERROR, .code = code, .text = message}, NULL);
}

void sdk_call_send(bay_call *call, bay_result *result)
{
    if (!call_claim(call)) {
        return;
    }
    const char *fault = result != NULL ? sdk_result_fault(result) : no_memory.at;
    if (fault != NULL) {
        answer_error(call, RPC_INTERNAL_ERROR, str_of(fault));
        return;
    }
    if (!result->is_error && sdk_output_check(call, sdk_result_structured(result)) != BAY_OK) {
        answer_error(call, RPC_INTERNAL_ERROR, STR("The tool's output breaks its schema"));
        return;
    }
    bool is_on_loop = sdk_call_on_loop(call);
    bay_server *server = call->server;
    buf local;
    buf_init(&local, SERVER_MAX_RESULT);
    buf *out = is_on_loop ? &server->scratch : &local;
    buf_clear(out);
    sdk_result_write_members(result, call->request->revision, out);
    size_t len = out->len;
    buf_str(out, sdk_result_meta(result));
    if (out->cap > SERVER_SPARE_KEEPS) {
        buf_fini(
            &result->items); /* `out` has them: not twice, while the engine makes its message */
    }
    if (out->err == BAY_OK) {
        call_note note = {
            .kind = NOTE_RESULT, .text = {out->at, len}, .meta = str_from(buf_view(out), len)};
        delivery_answer(call, &note, is_on_loop ? NULL : out);
    } else {
        answer_error(call, RPC_INTERNAL_ERROR, no_memory);
    }
    buf_fini(&local);
    if (is_on_loop && server->scratch.cap > SERVER_SPARE_KEEPS) {
        buf_fini(&server->scratch);
    }
}

/* From another thread the text travels as a copy. */
static void end_with(bay_call *call, call_note note)
{
    if (sdk_call_on_loop(call)) {
        delivery_answer(call, &note, NULL);
        return;
    }
    buf copy;
    buf_init(&copy, SERVER_MAX_RESULT);
    buf_str(&copy, note.text);
    note.text = buf_view(&copy);
    if (copy.err != BAY_OK) {
        note = (call_note){.kind = NOTE_ERROR, .code = RPC_INTERNAL_ERROR, .text = no_memory};
    }
    delivery_answer(call, &note, &copy);
    buf_fini(&copy);
}

static void call_error(bay_call *call, int code, bay_str message, json_val data)
{
    if (call_claim(call)) {
        end_with(call,
                 (call_note){.kind = NOTE_ERROR, .code = code, .text = message, .value = data});
    }
}

void bay_call_error_str(bay_call *call, int code, bay_str message)
{
    if (call != NULL) {
        call_error(call, code, message, JSON_NONE);
    }
}

void bay_call_error(bay_call *call, int code, const char *message)
{
    bay_call_error_str(call, code, str_of(message));
}

void bay_call_errorf(bay_call *call, int code, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_error_str(call, code, text.err == BAY_OK ? buf_view(&text) : no_memory);
    buf_fini(&text);
}

/* Data that is none is left out, which is in the log; the error itself reaches the client. */
void bay_call_error_json(bay_call *call, int code, const char *message, bay_json *data)
{
    json_val any = JSON_NONE;
    if (call != NULL) {
        err_ignore(sdk_call_json(call, "the data of its error", data, JSON_MISSING, &any));
        call_error(call, code, str_of(message), any);
    }
    bay_json_free(data);
}

void bay_call_finish_json(bay_call *call, bay_json *object)
{
    json_val any;
    if (call == NULL) {
        bay_json_free(object);
        return;
    }
    if (sdk_call_json(call, "its result", object, JSON_OBJECT, &any) != BAY_OK) {
        bay_call_error(call, RPC_INTERNAL_ERROR, "The handler's result is no JSON object");
    } else if (call_claim(call)) {
        delivery_answer(call, &(call_note){.kind = NOTE_OBJECT, .value = any}, NULL);
    }
    bay_json_free(object);
}

void bay_call_not_found(bay_call *call)
{
    if (call == NULL) {
        return;
    }
    if (call->entry->kind != ENTRY_RESOURCE && call->entry->kind != ENTRY_TEMPLATE) {
        bay_call_error(call, RPC_INVALID_PARAMS, "Not found");
    } else if (call_claim(call)) {
        delivery_answer(call, &(call_note){.kind = NOTE_NOT_FOUND}, NULL);
    }
}

/* ---- while it lasts */

/* Progress costs nothing where nobody wants it: it is asked before a message is formatted. */
static bool wants_progress(const bay_call *call, double progress)
{
    return call != NULL && call->request->progress_token.len > 0 && isfinite(progress) &&
           !atomic_load(&call->is_slow);
}

void bay_call_progress_str(bay_call *call, double progress, double total, bay_str message)
{
    if (!wants_progress(call, progress)) {
        return;
    }
    buf members;
    json_writer writer;
    buf_init(&members, 65536);
    json_writer_init(&writer, &members);
    buf_lit(&members, "\"progress\":");
    json_put_double(&writer, progress);
    if (total >= 0 && isfinite(total)) {
        buf_lit(&members, ",\"total\":");
        json_writer_init(&writer, &members);
        json_put_double(&writer, total);
    }
    if (message.at != NULL && call->request->revision->id >= MCP_REV_2025_03_26) {
        buf_lit(&members, ",\"message\":");
        json_quote(&members, message);
    }
    if (members.err == BAY_OK) {
        delivery_send(
            call,
            (call_note){.kind = NOTE_PROGRESS, .progress = progress, .text = buf_view(&members)});
    }
    buf_fini(&members);
}

void bay_call_progress(bay_call *call, double progress, double total, const char *message)
{
    bay_call_progress_str(call, progress, total, str_of(message));
}

void bay_call_progressf(bay_call *call, double progress, double total, const char *format, ...)
{
    buf text;
    va_list arguments;
    if (!wants_progress(call, progress)) {
        return;
    }
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_progress_str(call, progress, total, buf_view(&text));
    buf_fini(&text);
}

/* Is a message of that level wanted? */
static bool wants_log(const bay_call *call, const char *level, mcp_log_level *out)
{
    return call != NULL && mcp_log_level_find(str_of(level), out) &&
           *out >= call->request->log_level && !atomic_load(&call->is_slow);
}

/* `data`: raw JSON. */
static void send_log(bay_call *call, const char *level, bay_str logger, bay_str data, bool is_text)
{
    mcp_log_level severity;
    if (!wants_log(call, level, &severity)) {
        return;
    }
    buf params;
    buf_init(&params, LOG_MOST_BYTES);
    buf_lit(&params, "{\"level\":");
    json_quote(&params, str_of(level));
    buf_lit(&params, ",\"logger\":");
    json_quote(&params, logger);
    buf_lit(&params, ",\"data\":");
    if (is_text) {
        json_quote(&params, data);
    } else {
        buf_str(&params, data);
    }
    buf_char(&params, '}');
    if (params.err == BAY_OK) {
        delivery_send(
            call, (call_note){.kind = NOTE_LOG, .code = (int)severity, .text = buf_view(&params)});
    }
    buf_fini(&params);
}

void bay_call_log_str(bay_call *call, const char *level, bay_str text)
{
    if (call != NULL) {
        send_log(call, level, call->entry->key, text, true);
    }
}

void bay_call_log(bay_call *call, const char *level, const char *text)
{
    bay_call_log_str(call, level, str_of(text));
}

void bay_call_logf(bay_call *call, const char *level, const char *format, ...)
{
    buf text;
    va_list arguments;
    mcp_log_level severity;
    if (!wants_log(call, level, &severity)) {
        return;
    }
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_log_str(call, level, buf_view(&text));
    buf_fini(&text);
}

void bay_call_log_json(bay_call *call, const char *level, const char *logger, bay_json *data)
{
    json_val any;
    if (call != NULL &&
        sdk_call_json(call, "the data of a log message", data, JSON_MISSING, &any) == BAY_OK) {
        send_log(call, level, logger != NULL ? str_of(logger) : call->entry->key, json_raw(any),
                 false);
    }
    bay_json_free(data);
}

void bay_call_elicit_complete_str(bay_call *call, bay_str elicitation_id)
{
    if (call == NULL || call->request->revision->id != MCP_REV_2025_11_25) {
        return;
    }
    buf params;
    buf_init(&params, LOG_MOST_BYTES);
    buf_lit(&params, "{\"elicitationId\":");
    json_quote(&params, elicitation_id);
    buf_char(&params, '}');
    if (params.err == BAY_OK) {
        delivery_send(call,
                      (call_note){.kind = NOTE_ELICITATION_COMPLETE, .text = buf_view(&params)});
    }
    buf_fini(&params);
}

void bay_call_elicit_complete(bay_call *call, const char *elicitation_id)
{
    bay_call_elicit_complete_str(call, str_of(elicitation_id));
}

void bay_call_release_stream(bay_call *call, uint32_t retry_ms)
{
    if (call != NULL) {
        delivery_send(call, (call_note){.kind = NOTE_RELEASE, .progress = retry_ms});
    }
}

void bay_call_task_status_str(bay_call *call, bay_str message)
{
    if (call != NULL) {
        delivery_send(call, (call_note){.kind = NOTE_TASK_STATUS, .text = message});
    }
}

void bay_call_task_status(bay_call *call, const char *message)
{
    bay_call_task_status_str(call, str_of(message));
}

void bay_call_task_statusf(bay_call *call, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_task_status_str(call, buf_view(&text));
    buf_fini(&text);
}
