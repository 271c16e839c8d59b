/* What an owner needs besides calls: sending a notification, being notified of changes, and knowing
 * whether a change would be received. */
#include "base/err.h"
#include "base/mem.h"
#include "mcp/client_internal.h"

bay_err mcp_client_tell(mcp_client *self, bay_str method, bay_str params, uint64_t now_ms,
                        bay_diag *diag)
{
    if (self->is_dead || self->state != MCP_CLIENT_READY) {
        return diag_set(diag, BAY_ERR_CLOSED, "the server cannot be spoken to just now");
    }
    if (method.len == 0 || method.len > RPC_MAX_METHOD_BYTES) {
        return diag_set(diag, BAY_ERR_INVALID, "a method has 1 to %d bytes", RPC_MAX_METHOD_BYTES);
    }
    const mcp_method *known = NULL;
    for (int i = 0; known == NULL && i < MCP_REVISION_COUNT; i++) {
        known = mcp_method_find(method, (mcp_revision_id)i, MCP_SENDER_CLIENT);
    }
    if (known != NULL && !known->is_notification) {
        return diag_set(diag, BAY_ERR_INVALID, "%.*s is a request", BAY_STR(method));
    }
    if (known != NULL && mcp_method_find(method, self->revision->id, MCP_SENDER_CLIENT) == NULL) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "%.*s is not in revision %.*s", BAY_STR(method),
                        BAY_STR(self->revision->text));
    }
    mcp_client_enter(self, now_ms);
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    rpc_write_notification(&scratch.message, method, params);
    bay_err err = scratch.message.err;
    if (err == BAY_OK) {
        err_ignore(mcp_client_post(self, buf_view(&scratch.message)));
    }
    mcp_client_scratch_put(&self->send_scratch, &scratch);
    mcp_client_leave(self);
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "%s", bay_err_text(err));
}

void mcp_client_watch(mcp_client *self, uint64_t now_ms)
{
    if (self->is_dead || self->wants_changes) {
        return;
    }
    self->wants_changes = true;
    if (self->state != MCP_CLIENT_READY) {
        return;
    }
    mcp_client_enter(self, now_ms);
    if (!mcp_client_is_modern(self)) {
        mcp_client_legacy_open_stream(self);
    } else if (self->is_about_known) {
        mcp_client_modern_listen_due(self);
    } else {
        mcp_client_modern_ready(self);
    }
    mcp_client_leave(self);
}

uint64_t mcp_client_hearing(const mcp_client *self, mcp_change change)
{
    static const struct {
        mcp_change change;
        bay_str capability;
    } rows[] = {
        {MCP_CHANGE_TOOLS, STR_INIT("tools.listChanged")},
        {MCP_CHANGE_PROMPTS, STR_INIT("prompts.listChanged")},
        {MCP_CHANGE_RESOURCES, STR_INIT("resources.listChanged")},
    };
    if (self->state != MCP_CLIENT_READY || mcp_client_is_modern(self)) {
        return 0; /* there the time to live decides */
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].change == change && !mcp_client_has(self, rows[i].capability)) {
            return 0;
        }
    }
    if (!mcp_client_is_http(self)) {
        return (uint64_t)self->session_serial + 1;
    }
    const mcp_call *stream = self->stream;
    bool is_open = stream != NULL && stream->phase == PHASE_OPEN && stream->is_exchange_open &&
                   stream->status == 200;
    return is_open ? stream->exchange : 0;
}

mcp_listening mcp_client_listening(const mcp_client *self)
{
    if (self->state != MCP_CLIENT_READY || !mcp_client_is_modern(self)) {
        return MCP_LISTENS_NOT;
    }
    if (self->has_no_listen) {
        return MCP_LISTEN_REFUSED;
    }
    bool is_changing = self->is_listen_due || self->listen_at_ms != UINT64_MAX;
    if (self->listen != NULL && self->listen->is_acknowledged && !is_changing) {
        return MCP_LISTENS;
    }
    return self->listen != NULL || is_changing ? MCP_LISTEN_PENDING : MCP_LISTENS_NOT;
}

bay_err mcp_client_note_subscription(mcp_client *self, bay_str uri, bool is_wanted, uint64_t now_ms)
{
    if (uri.len == 0 || uri.len > CLIENT_MAX_URI) {
        return uri.len == 0 ? BAY_ERR_INVALID : BAY_ERR_LIMIT;
    }
    char *known = map_get(&self->subscriptions, uri);
    if (!is_wanted) {
        map_remove(&self->subscriptions, uri);
        mem_free(known);
        return BAY_OK;
    }
    if (known == NULL) {
        known = mem_dup(uri.at, uri.len);
        if (known == NULL) {
            return BAY_ERR_NOMEM;
        }
        bay_err err = map_put(&self->subscriptions, (bay_str){known, uri.len}, known, NULL);
        if (err != BAY_OK) {
            mem_free(known);
            return err == BAY_ERR_LIMIT ? BAY_ERR_BUSY : err;
        }
    }
    if (self->state == MCP_CLIENT_READY && !mcp_client_is_modern(self)) {
        mcp_client_enter(self, now_ms);
        mcp_client_legacy_open_stream(self);
        mcp_client_leave(self);
    }
    return BAY_OK;
}

void mcp_client_note_level(mcp_client *self, mcp_log_level level)
{
    self->level = level;
}
