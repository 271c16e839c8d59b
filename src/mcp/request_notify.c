/* What a request says to its client while it is under way: notifications, progress, log messages.
 */
#include <math.h>

#include "mcp/server_internal.h"

static bay_err notify(request *self, mcp_method_id method, bay_str params)
{
    buf *out = server_out(self->shown.server);
    rpc_write_notification(out, mcp_method_of(method)->text, params);
    return outlet_event(self->outlet, out);
}

static bool is_reachable(const request *self)
{
    return self->outlet != NULL && !self->shown.is_cancelled && !self->is_finished;
}

/* A level that cannot be read is let through: dropping it would hide it. */
static bool is_wanted(request *self, bay_str params)
{
    mcp_log_level wanted =
        self->shown.session != NULL ? self->shown.session->level : self->shown.log_level;
    if (wanted == MCP_LOG_NONE) {
        return false;
    }
    if (wanted == MCP_LOG_DEBUG) {
        return true;
    }
    arena memory;
    arena_init(&memory, self->pocket->memory.max);
    json_doc doc;
    bay_str text;
    mcp_log_level level = MCP_LOG_EMERGENCY;
    bool is_read = json_parse(&doc, params, NULL, &memory, NULL) == BAY_OK &&
                   json_str(json_get(json_root(&doc), STR("level")), &memory, &text) == BAY_OK &&
                   mcp_log_level_find(text, &level);
    arena_fini(&memory);
    return !is_read || level >= wanted;
}

bay_err mcp_request_notify(mcp_request *shown, mcp_method_id method, bay_str params)
{
    request *self = request_of(shown);
    if (!is_reachable(self)) {
        return BAY_CANCELLED;
    }
    /* mcp 2026-07-28 server/utilities/logging: none without logLevel. */
    if (method == MCP_N_MESSAGE && !is_wanted(self, params)) {
        return BAY_OK;
    }
    return notify(self, method, params);
}

/* mcp 2025-11-25 basic/transports, Sending Messages to the Server: a server may close the stream at
 * any time once it sent an event with an id. */
void mcp_request_release_stream(mcp_request *shown, uint32_t retry_ms)
{
    request *self = request_of(shown);
    if (is_reachable(self) && shown->revision->id == MCP_REV_2025_11_25) {
        outlet_release(self->outlet, retry_ms);
    }
}

bay_err mcp_request_progress(mcp_request *shown, double progress, bay_str members)
{
    request *self = request_of(shown);
    if (!is_reachable(self)) {
        return BAY_CANCELLED;
    }
    if (shown->progress_token.len == 0 || !isfinite(progress) ||
        (self->has_progress && progress <= self->progress)) {
        return BAY_OK;
    }
    self->has_progress = true;
    self->progress = progress;
    buf *out = server_out(shown->server);
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                 "\"progressToken\":");
    buf_str(out, shown->progress_token);
    if (members.len > 0) {
        buf_char(out, ',');
        buf_str(out, members);
    }
    buf_lit(out, "}}");
    return outlet_event(self->outlet, out);
}
