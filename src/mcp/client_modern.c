/* The stateless revision: keeps subscriptions/listen open for what the owner wants to be notified
 * of, and retries versions.
 *
 * A listen is replaced, not changed: the new one is opened first, and the old one is closed when
 * the server has acknowledged the new one, so that no notification is lost between them. Source:
 * mcp 2026-07-28 basic/patterns/subscriptions, basic/versioning. */
#include "base/log.h"
#include "mcp/client_internal.h"
#include "json/build.h"

/* ---- listening ------------------------------------------------------------------------------- */

static const struct {
    bay_str capability;
    bay_str filter;
    mcp_change missed;
} changes[] = {
    {STR_INIT("tools.listChanged"), STR_INIT("toolsListChanged"), MCP_CHANGE_MAYBE_TOOLS},
    {STR_INIT("prompts.listChanged"), STR_INIT("promptsListChanged"), MCP_CHANGE_MAYBE_PROMPTS},
    {STR_INIT("resources.listChanged"), STR_INIT("resourcesListChanged"),
     MCP_CHANGE_MAYBE_RESOURCES},
};

/* False: there is nothing to listen for. */
static bool write_filter(const mcp_client *self, json_writer *out)
{
    bool has_any = false;
    json_open_object(out);
    json_key_lit(out, "notifications");
    json_open_object(out);
    for (size_t i = 0; self->wants_changes && i < ARRAY_LEN(changes); i++) {
        if (self->is_about_known && mcp_client_has(self, changes[i].capability)) {
            json_key(out, changes[i].filter);
            json_put_bool(out, true);
            has_any = true;
        }
    }
    if (self->subscriptions.len > 0 && mcp_client_has(self, STR("resources.subscribe"))) {
        size_t cursor = 0;
        bay_str uri;
        void *value;
        json_key_lit(out, "resourceSubscriptions");
        json_open_array(out);
        while (map_next(&self->subscriptions, &cursor, &uri, &value)) {
            json_put_str(out, uri);
        }
        json_close_array(out);
        has_any = true;
    }
    json_close_object(out);
    json_close_object(out);
    return has_any;
}

static void listen_later(mcp_client *self)
{
    self->is_listen_due = true;
    self->has_listen_gap = true;
    self->listen_at_ms = self->now_ms + mcp_client_backoff(self->listen_attempts);
    self->listen_attempts++;
    mcp_client_wake(self, self->listen_at_ms);
}

/* Ends a listen without waiting for the server's result. */
static void listen_drop(mcp_client *self, mcp_call **slot, bool is_link_gone)
{
    mcp_call *call = *slot;
    *slot = NULL;
    if (call == NULL) {
        return;
    }
    if (is_link_gone) {
        call->is_exchange_open = false;
    } else if (call->phase == PHASE_OPEN) {
        mcp_call_tell_cancelled(call, (bay_str){0});
        mcp_call_abandon(call);
    }
    if (!self->is_dead && call->phase != PHASE_SPARE) {
        mcp_call_recycle(call);
    }
}

static void listen_open(mcp_client *self)
{
    self->is_listen_due = false;
    self->listen_at_ms = UINT64_MAX;
    json_builder made;
    json_val params;
    bool has_any = write_filter(self, json_builder_init(&made, NULL, self->max_message_bytes));
    bay_err err = json_builder_view(&made, &params);
    mcp_call *call = NULL;
    if (has_any && err == BAY_OK) {
        call = mcp_call_start(self, CALL_LISTEN, MCP_LISTEN, params, self->revision,
                              self->call_timeout_ms, &err);
    }
    json_builder_drop(&made);
    if (self->is_dead || self->state != MCP_CLIENT_READY) {
        return;
    }
    if (!has_any) {
        listen_drop(self, &self->listen, false);
        return;
    }
    if (call == NULL) {
        listen_later(self);
        return;
    }
    self->old_listen = self->listen;
    self->listen = call;
}

void mcp_client_modern_listen_due(mcp_client *self)
{
    if (self->state != MCP_CLIENT_READY || !mcp_client_is_modern(self) || self->has_no_listen) {
        return;
    }
    /* While one waits for its acknowledgement or its time-out, the next one is not sent. */
    bool is_pending = self->listen != NULL && !self->listen->is_acknowledged;
    if (is_pending || self->listen_at_ms != UINT64_MAX) {
        self->is_listen_due = true;
        return;
    }
    listen_open(self);
}

void mcp_client_modern_tick(mcp_client *self)
{
    if (self->listen_at_ms == UINT64_MAX) {
        return;
    }
    if (self->now_ms >= self->listen_at_ms) {
        self->listen_at_ms = UINT64_MAX;
        mcp_client_modern_listen_due(self);
    } else {
        mcp_client_wake(self, self->listen_at_ms);
    }
}

void mcp_client_modern_ready(mcp_client *self)
{
    self->has_no_listen = false;
    self->listen_attempts = 0;
    self->listen_at_ms = UINT64_MAX;
    if (self->is_about_known) {
        mcp_client_modern_listen_due(self);
    } else if (self->wants_changes) {
        bay_err err; /* without it there are no notifications, but calls continue */
        (void)mcp_call_start(self, CALL_DISCOVER, MCP_DISCOVER, JSON_NONE, self->revision,
                             self->call_timeout_ms, &err);
    } else if (self->subscriptions.len > 0) {
        mcp_client_modern_listen_due(self);
    }
}

/* No listen was open for a while, so changes may have been missed. */
static void tell_gap(mcp_client *self)
{
    self->has_listen_gap = false;
    for (size_t i = 0; self->wants_changes && i < ARRAY_LEN(changes); i++) {
        if (!self->is_dead && self->events.changed != NULL &&
            mcp_client_has(self, changes[i].capability)) {
            self->events.changed(self->user, changes[i].missed);
        }
    }
}

void mcp_client_modern_acknowledged(mcp_client *self, mcp_call *call)
{
    if (call->is_acknowledged) {
        return;
    }
    call->is_acknowledged = true;
    call->deadline_ms = UINT64_MAX;
    call->opened_ms = self->now_ms;
    if (call != self->listen) {
        return;
    }
    listen_drop(self, &self->old_listen, false);
    if (self->has_listen_gap) {
        tell_gap(self);
    }
    if (!self->is_dead && self->is_listen_due) {
        mcp_client_modern_listen_due(self);
    }
}

void mcp_client_modern_listen_ended(mcp_client *self, mcp_call *call, const mcp_outcome *outcome)
{
    if (call == self->old_listen) {
        self->old_listen = NULL;
        return;
    }
    if (call != self->listen) {
        return;
    }
    self->listen = self->old_listen;
    self->old_listen = NULL;
    if (outcome->kind == MCP_OUTCOME_ERROR) {
        LOG(LOG_WARN, "mcp", "%s: the server refused subscriptions/listen: error %d", self->label,
            outcome->error_code);
        self->has_no_listen = outcome->error_code == RPC_METHOD_NOT_FOUND;
        return; /* sent again when the filter changes */
    }
    if (call->is_acknowledged && self->now_ms - call->opened_ms >= CLIENT_STEADY_MS) {
        self->listen_attempts = 0;
    }
    listen_later(self);
}

void mcp_client_modern_close_listens(mcp_client *self, bool is_link_gone)
{
    self->is_listen_due = false;
    self->listen_at_ms = UINT64_MAX;
    listen_drop(self, &self->listen, is_link_gone);
    listen_drop(self, &self->old_listen, is_link_gone);
}

/* ---- versions -------------------------------------------------------------------------------- */

bool mcp_client_modern_retry_version(mcp_call *call, json_val error)
{
    mcp_client *self = call->client;
    json_val supported = json_get(json_get(error, STR("data")), STR("supported"));
    const mcp_revision *version = mcp_client_detect_pick(self, supported, MCP_MODERN);
    const mcp_revision *legacy =
        version == NULL ? mcp_client_detect_pick(self, supported, MCP_LEGACY) : NULL;
    if ((version == NULL && legacy == NULL) || !mcp_call_requeue(call)) {
        return false;
    }
    if (version != NULL) {
        self->revision = version;
        mcp_client_flush(self);
        return true;
    }
    mcp_client_modern_close_listens(self, false);
    self->has_probed = true;
    self->proposals = 0;
    mcp_client_legacy_initialize(self, legacy);
    return true;
}
