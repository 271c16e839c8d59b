/* From a handler, on whatever thread, to the engine on its loop: answers, progress and log
 * messages. On the loop itself they go straight through; from elsewhere each is a posted note, and
 * notes keep their order. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

typedef enum note_kind { NOTE_RESULT, NOTE_ERROR, NOTE_PROGRESS, NOTE_LOG } note_kind;

typedef struct note {
    bay_call *call; /* holds a reference */
    note_kind kind;
    int code;
    double progress;
    size_t len;
    char bytes[];
} note;

static void deliver(bay_call *call, note_kind kind, int code, double progress, bay_str bytes)
{
    bool is_last = kind == NOTE_RESULT || kind == NOTE_ERROR;
    if (call->is_delivered) {
        return; /* the request is gone */
    }
    call->is_delivered = is_last;
    switch (kind) {
    case NOTE_RESULT:
        mcp_request_result_members(call->request, bytes);
        break;
    case NOTE_ERROR:
        mcp_request_error(call->request, code, bytes, (bay_str){NULL, 0});
        break;
    case NOTE_PROGRESS:
        mcp_request_progress(call->request, progress, bytes);
        break;
    case NOTE_LOG:
        err_ignore(mcp_request_notify(call->request, MCP_N_MESSAGE, bytes));
        break;
    }
    if (is_last) {
        call->server->calls_under_way--;
        sdk_call_unref(call); /* the engine's side */
    }
}

static void deliver_note(void *argument)
{
    note *self = argument;
    bay_call *call = self->call;
    deliver(call, self->kind, self->code, self->progress, (bay_str){self->bytes, self->len});
    sdk_call_unref(call);
    mem_free(self);
}

static void send(bay_call *call, note_kind kind, int code, double progress, bay_str bytes)
{
    if (sdk_call_on_loop(call)) {
        deliver(call, kind, code, progress, bytes);
        return;
    }
    note *self = mem_alloc(sizeof(*self) + bytes.len);
    if (self == NULL) {
        LOG(LOG_ERROR, "server", "out of memory: a message of \"%.*s\" was lost",
            BAY_STR(call->entry->key));
        return;
    }
    *self = (note){call, kind, code, progress, bytes.len};
    memcpy(self->bytes, bytes.at != NULL ? bytes.at : "", bytes.len);
    atomic_fetch_add(&call->references, 1);
    if (loop_post(call->server->loop, deliver_note, self) != BAY_OK) {
        sdk_call_unref(call); /* the loop is gone, and its engine with it */
        mem_free(self);
    }
}

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
    static const bay_str no_memory = STR_INIT("The result does not fit into memory or its bound");
    if (!call_claim(call)) {
        return;
    }
    if (result == NULL) {
        send(call, NOTE_ERROR, RPC_INTERNAL_ERROR, 0, no_memory);
        return;
    }
    buf local;
    buf *out = &local;
    if (sdk_call_on_loop(call)) {
        out = &call->server->scratch;
        buf_clear(out);
    } else {
        buf_init(&local, SERVER_MAX_RESULT);
    }
    sdk_result_write_members(result, call->request->revision, out);
    bay_err err = result->items.err != BAY_OK ? result->items.err : result->structured.err;
    if (err == BAY_OK && out->err == BAY_OK) {
        send(call, NOTE_RESULT, 0, 0, buf_view(out));
    } else {
        send(call, NOTE_ERROR, RPC_INTERNAL_ERROR, 0, no_memory);
    }
    if (out == &local) {
        buf_fini(&local);
    }
}

void bay_call_error(bay_call *call, int code, const char *message)
{
    if (call_claim(call)) {
        send(call, NOTE_ERROR, code, 0, str_of(message));
    }
}

void bay_call_not_found(bay_call *call)
{
    bool is_modern = call->request->revision->era == MCP_MODERN;
    bay_call_error(call, is_modern ? RPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
                   "Resource not found");
}

void bay_call_progress(bay_call *call, double progress, double total, const char *message)
{
    if (call->request->progress_token.len == 0) {
        return;
    }
    buf members;
    json_writer writer;
    buf_init(&members, 65536);
    json_writer_init(&writer, &members);
    buf_lit(&members, "\"progress\":");
    json_put_double(&writer, progress);
    if (total >= 0) {
        buf_lit(&members, ",\"total\":");
        json_writer_init(&writer, &members);
        json_put_double(&writer, total);
    }
    if (message != NULL && call->request->revision->id >= MCP_REV_2025_03_26) {
        buf_lit(&members, ",\"message\":");
        json_quote(&members, str_of(message));
    }
    if (members.err == BAY_OK) {
        send(call, NOTE_PROGRESS, 0, progress, buf_view(&members));
    }
    buf_fini(&members);
}

void bay_call_log(bay_call *call, const char *level, const char *text)
{
    mcp_log_level severity;
    if (!mcp_log_level_find(str_of(level), &severity) || severity < call->request->log_level) {
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
        send(call, NOTE_LOG, 0, 0, buf_view(&params));
    }
    buf_fini(&params);
}
