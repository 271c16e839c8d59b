/* The session revisions: initialize, sessions, the GET stream, resumption, subscribe and setLevel.
 * Source: mcp 2025-11-25 basic/lifecycle and basic/transports (Session Management, Resumability and
 * Redelivery, Listening for Messages from the Server). */
#include <stdio.h>

#include "base/log.h"
#include "mcp/client_internal.h"
#include "json/build.h"

/* ---- the handshake --------------------------------------------------------------------------- */

void mcp_client_legacy_initialize(mcp_client *self, const mcp_revision *proposal)
{
    mcp_client_set_state(self, MCP_CLIENT_INITIALIZING);
    self->proposals++;
    buf_clear(&self->session); /* a new session is requested without naming the old one */
    buf_clear(&self->next_session);
    json_builder made;
    json_val params;
    json_writer *out = json_builder_init(&made, NULL, self->max_message_bytes);
    json_open_object(out);
    json_key_lit(out, "protocolVersion");
    json_put_str(out, proposal->text);
    json_key_lit(out, "capabilities");
    json_put_raw(out, buf_view(&self->capabilities));
    json_key_lit(out, "clientInfo");
    json_put_raw(out, buf_view(&self->client_info));
    json_close_object(out);
    bay_err err = json_builder_view(&made, &params);
    self->probe = NULL;
    if (err == BAY_OK) {
        self->probe = mcp_call_start(self, CALL_INITIALIZE, MCP_INITIALIZE, params, proposal,
                                     mcp_client_start_left(self), &err);
    }
    json_builder_drop(&made);
    if (self->probe == NULL) {
        mcp_client_break(self, err, "initialize could not be sent", false);
    }
}

void mcp_client_legacy_ready(mcp_client *self)
{
    size_t cursor = 0;
    bay_str uri;
    void *value;
    bool may_subscribe = mcp_client_has(self, STR("resources.subscribe"));
    while (may_subscribe && map_next(&self->subscriptions, &cursor, &uri, &value)) {
        mcp_client_legacy_subscribe(self, uri, true);
    }
    if (self->level != MCP_LOG_NONE) {
        mcp_client_legacy_send_level(self);
    }
    self->has_no_stream = false;
    mcp_client_legacy_open_stream(self);
}

static void send_quiet(mcp_client *self, mcp_method_id method, bay_str name, bay_str value)
{
    json_builder made;
    json_val params;
    json_writer *out = json_builder_init(&made, NULL, self->max_message_bytes);
    json_open_object(out);
    json_key(out, name);
    json_put_str(out, value);
    json_close_object(out);
    bay_err err = json_builder_view(&made, &params);
    if (err == BAY_OK && self->state == MCP_CLIENT_READY) {
        (void)mcp_call_start(self, CALL_QUIET, method, params, self->revision,
                             self->call_timeout_ms, &err);
    }
    json_builder_drop(&made);
    if (err != BAY_OK) {
        LOG(LOG_WARN, "mcp", "%s: %.*s could not be sent: %s", self->label,
            BAY_STR(mcp_method_of(method)->text), bay_err_text(err));
    }
}

void mcp_client_legacy_subscribe(mcp_client *self, bay_str uri, bool is_wanted)
{
    send_quiet(self, is_wanted ? MCP_RESOURCES_SUBSCRIBE : MCP_RESOURCES_UNSUBSCRIBE, STR("uri"),
               uri);
    if (is_wanted) {
        mcp_client_legacy_open_stream(self); /* updates come on it */
    }
}

void mcp_client_legacy_send_level(mcp_client *self)
{
    if (self->level == MCP_LOG_NONE || !mcp_client_has(self, STR("logging"))) {
        return;
    }
    send_quiet(self, MCP_SET_LEVEL, STR("level"), mcp_log_level_text(self->level));
}

/* ---- sessions -------------------------------------------------------------------------------- */

bool mcp_client_legacy_lost_session(const mcp_call *call)
{
    return call->status == 404 && call->used_session;
}

void mcp_client_legacy_session_lost(mcp_client *self, uint32_t serial)
{
    if (self->state != MCP_CLIENT_READY || serial != self->session_serial ||
        mcp_client_is_modern(self)) {
        return; /* handled already */
    }
    LOG(LOG_INFO, "mcp", "%s: the server forgot the session; beginning a new one", self->label);
    /* mcp 2025-11-25 basic/transports, Session Management 4: initialize without a session id */
    mcp_client_legacy_close_stream(self);
    self->has_probed = false;
    self->probes = self->proposals = 0;
    mcp_client_legacy_initialize(self, self->revision);
}

/* ---- streams --------------------------------------------------------------------------------- */

static uint64_t retry_delay(const mcp_call *call)
{
    if (call->retry_ms != 0 && call->attempts <= 1) {
        uint64_t delay_ms = call->retry_ms;
        delay_ms = delay_ms < CLIENT_MIN_RETRY_MS ? CLIENT_MIN_RETRY_MS : delay_ms;
        return delay_ms > CLIENT_MAX_RETRY_MS ? CLIENT_MAX_RETRY_MS : delay_ms;
    }
    uint64_t delay = mcp_client_backoff(call->attempts > 0 ? call->attempts - 1 : 0);
    return delay > call->retry_ms ? delay : call->retry_ms;
}

static void wait_to_listen(mcp_call *call)
{
    mcp_client *self = call->client;
    call->attempts++;
    call->is_exchange_open = false;
    call->phase = PHASE_RESUMING; /* counted like OPEN */
    call->wake_ms = self->now_ms + retry_delay(call);
    mcp_client_wake(self, call->wake_ms);
}

void mcp_client_legacy_listen(mcp_call *call)
{
    mcp_client *self = call->client;
    bay_err err = mcp_call_enter_exchange(call, self->next_id++);
    if (err == BAY_OK) {
        mcp_field fields[MCP_MAX_FIELDS];
        size_t count = mcp_client_legacy_fields(self, buf_view(&call->event_id), fields);
        call->phase = PHASE_OPEN;
        call->wake_ms = UINT64_MAX;
        call->opened_ms = self->now_ms;
        call->used_session = self->session.len > 0;
        call->session_serial = self->session_serial;
        err = self->ops.listen(self->link, call->exchange, fields, count);
    }
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        call->is_exchange_open = false;
        if (call->purpose == CALL_STREAM) {
            wait_to_listen(call);
        } else if (!mcp_client_legacy_resume(call)) {
            mcp_call_fail(call, err, true, "its stream was cut and could not be resumed");
        }
    }
}

bool mcp_client_legacy_resume(mcp_call *call)
{
    mcp_client *self = call->client;
    bool may = mcp_client_is_http(self) && !mcp_client_is_modern(self) &&
               self->state == MCP_CLIENT_READY && call->purpose == CALL_USER &&
               self->ops.listen != NULL && call->event_id.len > 0 &&
               call->session_serial == self->session_serial &&
               call->attempts < CLIENT_MAX_RESUMES && call->status < 400;
    if (may) {
        wait_to_listen(call);
    }
    return may;
}

void mcp_client_legacy_open_stream(mcp_client *self)
{
    bool is_wanted = self->wants_changes || self->subscriptions.len > 0;
    if (!is_wanted || self->stream != NULL || self->has_no_stream || !mcp_client_is_http(self) ||
        self->ops.listen == NULL || self->state != MCP_CLIENT_READY) {
        return;
    }
    mcp_call *call = mcp_call_new(self, CALL_STREAM);
    if (call == NULL) {
        LOG(LOG_WARN, "mcp", "%s: no memory for the GET stream", self->label);
        return;
    }
    self->stream = call;
    call->phase = PHASE_OPEN;
    list_push(&self->open, &call->link);
    mcp_client_legacy_listen(call);
}

void mcp_client_legacy_stream_ended(mcp_client *self, bay_err err)
{
    mcp_call *call = self->stream;
    int status = call->status;
    call->is_exchange_open = false;
    /* Servers without a stream also answer 404. Only a session that had a stream is then lost;
     * otherwise the next request shows it. */
    if (mcp_client_legacy_lost_session(call) && self->streamed_serial == call->session_serial) {
        mcp_client_legacy_session_lost(self, call->session_serial);
        return;
    }
    /* mcp 2025-11-25 basic/transports, Listening 3: 405 means the server offers no stream */
    if (status >= 400 && status < 500 && status != 408 && status != 429) {
        LOG(LOG_DEBUG, "mcp", "%s: no GET stream: HTTP status %d", self->label, status);
        self->has_no_stream = true;
        mcp_client_legacy_close_stream(self);
        return;
    }
    if (err == BAY_OK && status < 400 && self->now_ms - call->opened_ms >= CLIENT_STEADY_MS) {
        call->attempts = 0;
    }
    wait_to_listen(call);
}

void mcp_client_legacy_close_stream(mcp_client *self)
{
    mcp_call *call = self->stream;
    if (call != NULL) {
        self->stream = NULL;
        mcp_call_abandon(call);
        mcp_call_recycle(call);
    }
}
