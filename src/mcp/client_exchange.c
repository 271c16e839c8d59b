/* HTTP exchanges: their heads, hints and ends, and the meaning of an end without an answer. Source:
 * mcp 2026-07-28 basic/transports/streamable-http; mcp 2025-11-25 basic/transports. */
#include <stdio.h>

#include "base/log.h"
#include "mcp/client_internal.h"

void mcp_call_remember_event(mcp_call *call, bay_str event_id)
{
    if (event_id.len == 0 || event_id.len > CLIENT_MAX_EVENT_ID) {
        return;
    }
    buf_clear(&call->event_id);
    buf_str(&call->event_id, event_id); /* without memory: the stream cannot be resumed */
    call->attempts = 0;
}

void mcp_client_event_hint(mcp_client *self, uint64_t exchange, bay_str event_id, uint32_t retry_ms)
{
    mcp_call *call = self->is_dead ? NULL : mcp_call_by_exchange(self, exchange);
    if (call == NULL) {
        return;
    }
    mcp_call_remember_event(call, event_id);
    if (retry_ms != 0) {
        call->retry_ms = retry_ms < CLIENT_MAX_RETRY_MS ? retry_ms : CLIENT_MAX_RETRY_MS;
    }
}

/* ---- heads and ends -------------------------------------------------------------------------- */

void mcp_client_head(mcp_client *self, uint64_t exchange, int status, bay_str session,
                     uint64_t now_ms)
{
    if (self->is_dead) {
        return;
    }
    mcp_client_enter(self, now_ms);
    mcp_call *call = mcp_call_by_exchange(self, exchange);
    if (call != NULL) {
        call->status = status;
        if (call->purpose == CALL_STREAM && status == 200) {
            self->streamed_serial = call->session_serial;
        }
        bool is_visible = true;
        for (size_t i = 0; i < session.len; i++) {
            is_visible = is_visible && session.at[i] > 0x20 && session.at[i] < 0x7F;
        }
        /* mcp 2025-11-25 basic/transports, Session Management 1: visible ASCII, with initialize */
        if (call->purpose == CALL_INITIALIZE && status < 300) {
            buf_clear(&self->next_session);
            buf_str(&self->next_session, is_visible ? session : (bay_str){0});
            if (!is_visible || self->next_session.err != BAY_OK) {
                call->fault = BAY_ERR_PROTOCOL;
            }
        }
    }
    mcp_client_leave(self);
}

static void ended_refused(mcp_call *call)
{
    char text[CLIENT_TEXT];
    int status = call->status;
    if (mcp_client_detect_doubts(call, 0, JSON_NONE)) {
        return;
    }
    mcp_client_detect_status_text(status, text, sizeof(text));
    bool may_have_run = status >= 500 || status == 408;
    mcp_call_fail(call, mcp_client_detect_status_err(status), may_have_run, text);
}

static void ended_unanswered(mcp_call *call, bay_err err, bool was_sent, const char *text)
{
    char told[CLIENT_TEXT];
    mcp_client *self = call->client;
    bool is_resumed = call->attempts > 0 || call->exchange != call->id;
    if (mcp_client_legacy_lost_session(call) && !mcp_client_is_modern(self)) {
        uint32_t serial = call->session_serial;
        if (is_resumed || !mcp_call_requeue(call)) {
            mcp_call_fail(call, BAY_ERR_CLOSED, is_resumed, "the server forgot the session");
        }
        if (!self->is_dead) {
            mcp_client_legacy_session_lost(self, serial);
            mcp_client_flush(self);
        }
    } else if (call->status >= 400 && !is_resumed) {
        ended_refused(call);
    } else if (mcp_client_legacy_resume(call)) {
        LOG(LOG_DEBUG, "mcp", "%s: a stream was cut; it will be resumed", self->label);
    } else if (call->fault != BAY_OK) {
        snprintf(told, sizeof(told), "the server's answer is not one to this request%s%s",
                 call->fault_text != NULL ? ": " : "",
                 call->fault_text != NULL ? call->fault_text : "");
        mcp_call_fail(call, call->fault, true, told);
    } else if (err != BAY_OK) {
        mcp_call_fail(call, err, was_sent || is_resumed, text);
    } else {
        mcp_call_fail(call, BAY_ERR_CLOSED, true,
                      "the server ended the exchange without an answer");
    }
}

void mcp_client_ended(mcp_client *self, uint64_t exchange, bay_err err, bool was_sent,
                      const char *text, uint64_t now_ms)
{
    mcp_call *call = self->is_dead ? NULL : mcp_call_by_exchange(self, exchange);
    if (call == NULL) {
        return;
    }
    mcp_client_enter(self, now_ms);
    call->is_exchange_open = false;
    if (!mcp_client_is_http(self) && err == BAY_OK && call->status < 400) {
        LOG(LOG_DEBUG, "mcp", "%s: a request was taken", self->label);
    } else if (call == self->stream) {
        mcp_client_legacy_stream_ended(self, err);
    } else if (call->phase == PHASE_LINGERING) {
        mcp_call_recycle(call);
    } else if (call->phase == PHASE_OPEN) {
        ended_unanswered(call, err, was_sent, text);
    }
    mcp_client_leave(self);
}
