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
    uint64_t due = call->started_ms + timeout_of(call);
    uint64_t now = now_ms();
    return due > now ? due - now : 0;
}

static void write_text(const bay_call *call, buf *out)
{
    buf_printf(out, "\"%.*s\" timed out after %llu ms", BAY_STR(call->entry->key),
               (unsigned long long)timeout_of(call));
}

static void expired(void *argument)
{
    bay_call *call = argument;
    buf text;
    buf object;
    buf_init(&text, 4096);
    buf_init(&object, 65536);
    write_text(call, &text);
    LOG(LOG_WARN, "server", "%.*s", BAY_STR(buf_view(&text)));
    buf_lit(&object, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&object, buf_view(&text));
    buf_lit(&object, "}],\"isError\":true}");
    call_note note = {.kind = NOTE_OBJECT, .text = buf_view(&object)};
    if (call->entry->kind != ENTRY_TOOL || text.err != BAY_OK || object.err != BAY_OK) {
        note = (call_note){.kind = NOTE_ERROR,
                           .code = RPC_INTERNAL_ERROR,
                           .text = text.err == BAY_OK ? buf_view(&text) : STR("Timed out")};
    }
    sdk_call_give_up(call, &note);
    buf_fini(&object);
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
