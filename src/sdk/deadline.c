/* How long a call may take. A call whose handler answers at once has no timer; one that waits, or
 * that works on the pool, is given up when its time is over: its client gets an answer that says
 * so, and the handler learns of it by bay_call_is_cancelled. */
#include <time.h>

#include "base/log.h"
#include "base/str.h"
#include "sdk/server_parts.h"

void bay_tool_timeout(bay_tool *tool, uint32_t ms)
{
    if (tool != NULL) {
        tool->timeout_ms = ms;
    }
}

static uint64_t timeout_of(const bay_call *call)
{
    uint32_t own = call->entry->timeout_ms;
    bay_server_setting general = atomic_load(&call->is_task) ? BAY_SERVER_SETTING_TASK_TTL_MS
                                                             : BAY_SERVER_SETTING_CALL_TIMEOUT_MS;
    return own > 0 ? own : sdk_server_setting(call->server, general);
}

/* The loop's clock, but of any thread. */
static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t bay_call_time_left_ms(const bay_call *call)
{
    uint64_t due = call != NULL ? call->started_ms + timeout_of(call) : 0;
    uint64_t now = now_ms();
    return due > now ? due - now : 0;
}

static void write_text(const bay_call *call, buf *out)
{
    buf_printf(out, "\"%.*s\" timed out after %llu ms", BAY_STR(call->entry->key),
               (unsigned long long)timeout_of(call));
}

/* A result of a tool that failed. */
static void write_failure(bay_str text, json_writer *out)
{
    json_open_object(out);
    json_key_lit(out, "content");
    json_open_array(out);
    json_open_object(out);
    json_key_lit(out, "type");
    json_put_str(out, STR("text"));
    json_key_lit(out, "text");
    json_put_str(out, text);
    json_close_object(out);
    json_close_array(out);
    json_key_lit(out, "isError");
    json_put_bool(out, true);
    json_close_object(out);
}

static void expired(void *argument)
{
    bay_call *call = argument;
    buf text;
    json_builder made;
    call_note note = {.kind = NOTE_OBJECT};
    buf_init(&text, 4096);
    write_text(call, &text);
    LOG(LOG_WARN, "server", "%.*s", BAY_STR(buf_view(&text)));
    write_failure(buf_view(&text), json_builder_init(&made, NULL, 65536));
    bay_err err = json_builder_view(&made, &note.value);
    if (call->entry->kind != ENTRY_TOOL || text.err != BAY_OK || err != BAY_OK) {
        note = (call_note){.kind = NOTE_ERROR,
                           .code = RPC_INTERNAL_ERROR,
                           .text = text.err == BAY_OK ? buf_view(&text) : STR("Timed out")};
    }
    sdk_call_give_up(call, &note);
    json_builder_drop(&made);
    buf_fini(&text);
}

void sdk_deadline_start(bay_call *call)
{
    if (call->timer.heap_index != 0 || call->is_parted) {
        return;
    }
    uint64_t now = loop_now_ms(call->server->loop);
    uint64_t due = call->started_ms + timeout_of(call);
    loop_timer_init(&call->timer, expired, call);
    if (loop_timer_start(call->server->loop, &call->timer, due > now ? due - now : 0) != BAY_OK) {
        LOG(LOG_ERROR, "server", "\"%.*s\" has no time limit: out of memory",
            BAY_STR(call->entry->key));
    }
}

void sdk_deadline_stop(bay_call *call)
{
    if (call->timer.heap_index != 0) {
        loop_timer_stop(call->server->loop, &call->timer);
    }
}
