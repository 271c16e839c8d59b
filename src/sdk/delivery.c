/* From a handler, on whatever thread, to the engine on its loop: answers, progress and log
 * messages. On the loop itself they go straight through; from elsewhere they are posted, in order.
 * An answer travels in the call itself, so that no lack of memory can lose it. Progress and log
 * messages are dropped past a bound, and while the client does not read. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

static const bay_str no_memory = STR_INIT("The result does not fit into memory or its bound");

/* ---- on the loop */

static void deliver_message(bay_call *call, note_kind kind, double progress, bay_str bytes)
{
    if (call->is_delivered) {
        return; /* the request is gone */
    }
    bay_err err = kind == NOTE_PROGRESS ? mcp_request_progress(call->request, progress, bytes)
                                        : mcp_request_notify(call->request, MCP_N_MESSAGE, bytes);
    if (err == BAY_AGAIN) {
        atomic_store(&call->is_slow, true);
    }
}

static void deliver_answer(bay_call *call, note_kind kind, int code, bay_str bytes)
{
    call->is_delivered = true;
    if (kind == NOTE_RESULT) {
        mcp_request_result_members(call->request, bytes);
    } else if (kind == NOTE_ERROR) {
        mcp_request_error(call->request, code, bytes, (bay_str){NULL, 0});
    } else {
        mcp_request_resource_not_found(call->request);
    }
    call->server->calls_under_way--;
    sdk_call_unref(call); /* the engine's side */
}

/* ---- from anywhere */

static void answer_arrived(void *argument)
{
    bay_call *call = argument;
    buf bytes = call->answer_bytes;
    call->answer_bytes = (buf){0};
    deliver_answer(call, call->answer, call->answer_code, call->answer_text);
    buf_fini(&bytes);
}

/* `text` stands in `owned`, which is taken, or is static; on the loop it may stand anywhere. Until
 * it is delivered the engine's reference keeps the call; afterwards the call is not the caller's.
 */
static void answer(bay_call *call, note_kind kind, int code, bay_str text, buf *owned)
{
    if (sdk_call_on_loop(call)) {
        deliver_answer(call, kind, code, text);
        return;
    }
    call->answer = kind;
    call->answer_code = code;
    call->answer_text = text;
    if (owned != NULL) {
        call->answer_bytes = *owned;
        *owned = (buf){0};
    }
    call->message = (loop_message){.function = answer_arrived, .argument = call};
    if (loop_post_message(call->server->loop, &call->message) != BAY_OK) {
        LOG(LOG_ERROR, "server", "an answer came after the server had ended; it is dropped");
    }
}

typedef struct note {
    bay_call *call; /* holds a reference */
    note_kind kind;
    double progress;
    size_t len;
    char bytes[];
} note;

static void note_let_go(note *self)
{
    bay_call *call = self->call;
    atomic_fetch_sub(&call->notes, 1);
    atomic_fetch_sub(&call->note_bytes, self->len);
    sdk_call_unref(call);
    mem_free(self);
}

static void note_arrived(void *argument)
{
    note *self = argument;
    deliver_message(self->call, self->kind, self->progress, (bay_str){self->bytes, self->len});
    note_let_go(self);
}

static void send(bay_call *call, note_kind kind, double progress, bay_str bytes)
{
    if (sdk_call_on_loop(call)) {
        deliver_message(call, kind, progress, bytes);
        return;
    }
    if (atomic_load(&call->notes) >= CALL_MAX_NOTES ||
        atomic_load(&call->note_bytes) + bytes.len > CALL_MAX_NOTE_BYTES) {
        return;
    }
    note *self = mem_alloc(sizeof(*self) + bytes.len);
    if (self == NULL) {
        return;
    }
    *self = (note){call, kind, progress, bytes.len};
    memcpy(self->bytes, bytes.at != NULL ? bytes.at : "", bytes.len);
    atomic_fetch_add(&call->references, 1);
    atomic_fetch_add(&call->notes, 1);
    atomic_fetch_add(&call->note_bytes, bytes.len);
    if (loop_post(call->server->loop, note_arrived, self) != BAY_OK) {
        note_let_go(self);
    }
}

/* ---- how a call ends */

static bool call_claim(bay_call *call)
{
    if (atomic_exchange(&call->is_finished, true)) {
        LOG(LOG_ERROR, "server", "the handler of \"%.*s\" answered twice; the second is dropped",
            BAY_STR(call->entry->key));
        return false;
    }
    return true;
}

void sdk_call_send(bay_call *call, const bay_result *result)
{
    if (!call_claim(call)) {
        return;
    }
    const char *fault = result != NULL ? sdk_result_fault(result) : no_memory.at;
    if (fault != NULL) {
        answer(call, NOTE_ERROR, RPC_INTERNAL_ERROR, str_of(fault), NULL);
        return;
    }
    bool is_on_loop = sdk_call_on_loop(call);
    bay_server *server = call->server;
    buf local;
    buf_init(&local, SERVER_MAX_RESULT);
    buf *out = is_on_loop ? &server->scratch : &local;
    buf_clear(out);
    sdk_result_write_members(result, call->request->revision, out);
    if (out->err == BAY_OK) {
        answer(call, NOTE_RESULT, 0, buf_view(out), is_on_loop ? NULL : out);
    } else {
        answer(call, NOTE_ERROR, RPC_INTERNAL_ERROR, no_memory, NULL);
    }
    buf_fini(&local);
    if (is_on_loop && server->scratch.cap > SERVER_SPARE_KEEPS) {
        buf_fini(&server->scratch);
    }
}

void bay_call_error(bay_call *call, int code, const char *message)
{
    if (!call_claim(call)) {
        return;
    }
    if (sdk_call_on_loop(call)) {
        answer(call, NOTE_ERROR, code, str_of(message), NULL);
        return;
    }
    buf copy;
    buf_init(&copy, SERVER_MAX_RESULT);
    buf_str(&copy, str_of(message));
    answer(call, NOTE_ERROR, code, copy.err == BAY_OK ? buf_view(&copy) : no_memory, &copy);
}

void bay_call_not_found(bay_call *call)
{
    if (call->entry->kind != ENTRY_RESOURCE && call->entry->kind != ENTRY_TEMPLATE) {
        bay_call_error(call, RPC_INVALID_PARAMS, "Not found");
    } else if (call_claim(call)) {
        answer(call, NOTE_NOT_FOUND, 0, (bay_str){NULL, 0}, NULL);
    }
}

/* ---- while it lasts */

void bay_call_progress(bay_call *call, double progress, double total, const char *message)
{
    if (call->request->progress_token.len == 0 || !isfinite(progress) ||
        atomic_load(&call->is_slow)) {
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
    if (message != NULL && call->request->revision->id >= MCP_REV_2025_03_26) {
        buf_lit(&members, ",\"message\":");
        json_quote(&members, str_of(message));
    }
    if (members.err == BAY_OK) {
        send(call, NOTE_PROGRESS, progress, buf_view(&members));
    }
    buf_fini(&members);
}

void bay_call_log(bay_call *call, const char *level, const char *text)
{
    mcp_log_level severity;
    if (!mcp_log_level_find(str_of(level), &severity) || severity < call->request->log_level ||
        atomic_load(&call->is_slow)) {
        return;
    }
    buf params;
    buf_init(&params, 1 << 20);
    buf_lit(&params, "{\"level\":");
    json_quote(&params, str_of(level));
    buf_lit(&params, ",\"logger\":");
    json_quote(&params, call->entry->key);
    buf_lit(&params, ",\"data\":");
    json_quote(&params, str_of(text));
    buf_char(&params, '}');
    if (params.err == BAY_OK) {
        send(call, NOTE_LOG, 0, buf_view(&params));
    }
    buf_fini(&params);
}
