/* Messages of an open request to its client: notifications, progress, log messages. */
#include <math.h>

#include "mcp/server_internal.h"

static bay_err notify(request *self, mcp_method_id method, bay_str params)
{
    buf *out = server_out(self->shown.server);
    rpc_write_notification(out, mcp_method_of(method)->text, params);
    return response_channel_event(self->channel, out);
}

static bool is_reachable(const request *self)
{
    return self->channel != NULL && !self->shown.is_cancelled && !self->is_finished;
}

bay_err mcp_request_notify(mcp_request *shown, mcp_method_id method, bay_str params)
{
    request *self = request_of(shown);
    if (!is_reachable(self)) {
        return BAY_ERR_CANCELLED;
    }
    return notify(self, method, params);
}

bay_err mcp_request_log(mcp_request *shown, mcp_log_level level, bay_str params)
{
    request *self = request_of(shown);
    if (!is_reachable(self)) {
        return BAY_ERR_CANCELLED;
    }
    /* mcp 2026-07-28 server/utilities/logging: none without logLevel. */
    mcp_log_level wanted = shown->session != NULL ? shown->session->level : shown->log_level;
    return wanted != MCP_LOG_NONE && level >= wanted ? notify(self, MCP_N_MESSAGE, params) : BAY_OK;
}

/* mcp 2025-11-25 basic/transports, Sending Messages to the Server: a server may close the stream at
 * any time once it sent an event with an id. */
void mcp_request_release_stream(mcp_request *shown, uint32_t retry_ms)
{
    request *self = request_of(shown);
    if (is_reachable(self) && shown->revision->id == MCP_REV_2025_11_25) {
        response_channel_release(self->channel, retry_ms);
    }
}

bay_err mcp_request_progress(mcp_request *shown, double progress, bay_str members)
{
    request *self = request_of(shown);
    if (!is_reachable(self)) {
        return BAY_ERR_CANCELLED;
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
    return response_channel_event(self->channel, out);
}
