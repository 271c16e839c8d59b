/* The life of a call: created, waiting, sent, answered, cancelled, expired, reused. Invariant: a
 * user's call ends with exactly one `done` or with mcp_call_cancel. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "mcp/client_internal.h"

mcp_call *mcp_call_new(mcp_client *self, call_purpose purpose)
{
    mcp_call *call = NULL;
    list_link *link = list_pop(&self->spare);
    if (link != NULL) {
        self->spare_count--;
        call = CONTAINER_OF(link, mcp_call, link);
        /* Keeps only the memory: members of the previous call must not remain. */
        *call = (mcp_call){.kept.bytes = call->kept.bytes, .event_id = call->event_id};
        buf_clear(&call->kept.bytes);
        buf_clear(&call->event_id);
    } else {
        call = mem_zalloc(sizeof(*call));
        if (call == NULL) {
            return NULL;
        }
        buf_init(&call->kept.bytes, 2 * self->max_message_bytes);
        buf_init(&call->event_id, CLIENT_MAX_EVENT_ID);
    }
    call->client = self;
    call->purpose = purpose;
    call->phase = PHASE_DONE;
    call->log_level = MCP_LOG_NONE;
    call->seq = self->next_seq++;
    call->deadline_ms = call->end_ms = call->wake_ms = UINT64_MAX;
    return call;
}

static void call_forget_keys(mcp_call *call)
{
    id_table *table = &call->client->table;
    if (mcp_id_table_get(table, call->id) == call) {
        mcp_id_table_remove(table, call->id);
    }
    if (mcp_id_table_get(table, call->exchange) == call) {
        mcp_id_table_remove(table, call->exchange);
    }
}

void mcp_call_recycle(mcp_call *call)
{
    mcp_client *self = call->client;
    if (call->phase == PHASE_SPARE) {
        return; /* the client was freed inside `traced`, with its calls */
    }
    mcp_call_detach(call);
    call_forget_keys(call);
    mcp_call_forget_asked(call);
    principal_unref(call->principal);
    call->principal = NULL;
    call->phase = PHASE_SPARE;
    if (call->kept.bytes.cap > CLIENT_MAX_KEPT_BYTES) {
        buf_fini(&call->kept.bytes);
    }
    if (self->spare_count >= CLIENT_MAX_SPARE && !self->is_dead) {
        buf_fini(&call->kept.bytes);
        buf_fini(&call->event_id);
        mem_free(call);
        return;
    }
    self->spare_count++;
    list_push(&self->spare, &call->link);
}

static void call_set_phase(mcp_call *call, call_phase phase)
{
    mcp_client *self = call->client;
    bool is_user = call->purpose == CALL_USER;
    bool was_open = call->phase == PHASE_OPEN || call->phase == PHASE_RESUMING;
    bool is_open = phase == PHASE_OPEN || phase == PHASE_RESUMING;
    self->waiting_count +=
        (size_t)(phase == PHASE_WAITING) - (size_t)(call->phase == PHASE_WAITING);
    self->progress_calls += call->progress_of != 0 ? (size_t)is_open - (size_t)was_open : 0;
    if (is_user) {
        self->open_users += (size_t)is_open - (size_t)was_open;
        self->user_count += (size_t)(is_open || phase == PHASE_WAITING) -
                            (size_t)(was_open || call->phase == PHASE_WAITING);
    }
    call->phase = phase;
}

void mcp_call_unpause(mcp_call *call)
{
    mcp_client *self = call->client;
    if (!call->is_paused) {
        return;
    }
    call->is_paused = false;
    self->paused_count--;
    if (self->ops.pause == NULL || self->is_dead) {
        return;
    }
    if (!mcp_client_is_http(self)) {
        if (self->paused_count == 0) {
            self->ops.pause(self->link, 0, false);
        }
    } else if (call->is_exchange_open) {
        self->ops.pause(self->link, call->exchange, false);
    }
}

void mcp_call_detach(mcp_call *call)
{
    if (call->phase == PHASE_SPARE) {
        return;
    }
    mcp_call_unpause(call);
    list_remove(&call->link);
    call_set_phase(call, PHASE_DONE);
}

void mcp_call_wait(mcp_call *call)
{
    mcp_client *self = call->client;
    list_link *before = self->waiting.head.next;
    if (!list_is_empty(&self->waiting) &&
        CONTAINER_OF(self->waiting.head.prev, mcp_call, link)->seq < call->seq) {
        before = &self->waiting.head; /* the usual case: it is the newest */
    }
    while (before != &self->waiting.head && CONTAINER_OF(before, mcp_call, link)->seq < call->seq) {
        before = before->next;
    }
    call->link.next = before;
    call->link.prev = before->prev;
    before->prev->next = &call->link;
    before->prev = &call->link;
    call_set_phase(call, PHASE_WAITING);
}

bool mcp_call_requeue(mcp_call *call)
{
    if (call->resends >= CLIENT_MAX_RESENDS || call->purpose != CALL_USER) {
        return false;
    }
    call->resends++;
    if (call->is_exchange_open) {
        mcp_call_abandon(call);
    }
    call_forget_keys(call);
    mcp_call_forget_asked(call);
    mcp_call_detach(call);
    call->id = call->exchange = 0;
    call->status = 0;
    call->was_sent = false;
    call->fault = BAY_OK;
    call->fault_text = NULL;
    call->attempts = 0;
    buf_clear(&call->event_id);
    mcp_call_wait(call);
    return true;
}

bay_err mcp_call_enter_exchange(mcp_call *call, uint64_t exchange)
{
    mcp_client *self = call->client;
    bay_err err = mcp_id_table_put(&self->table, exchange, call);
    if (err != BAY_OK) {
        return err;
    }
    if (call->exchange != 0 && call->exchange != call->id) {
        mcp_id_table_remove(&self->table, call->exchange);
    }
    call->exchange = exchange;
    call->is_exchange_open = mcp_client_is_http(self);
    call->status = 0;
    return BAY_OK;
}

bay_err mcp_call_open(mcp_call *call, const mcp_revision *revision, json_val params, json_val meta)
{
    mcp_client *self = call->client;
    mcp_call_detach(call);
    call->id = self->next_id++;
    call->exchange = 0;
    bay_err err = mcp_call_enter_exchange(call, call->id);
    if (err == BAY_OK) {
        uint64_t idle = self->now_ms + call->timeout_ms;
        call->deadline_ms = call->timeout_ms == 0 ? UINT64_MAX : idle;
        call->opened_ms = self->now_ms;
        mcp_client_wake(self, call->deadline_ms < call->end_ms ? call->deadline_ms : call->end_ms);
        list_push(&self->open, &call->link);
        call_set_phase(call, PHASE_OPEN);
        call->was_sent = true;
        err = mcp_call_send(call, revision, params, meta);
    }
    if (err != BAY_OK) {
        call->was_sent = false;
        call->is_exchange_open = false;
        call_forget_keys(call);
        mcp_call_detach(call);
    }
    return err;
}

mcp_call *mcp_call_start(mcp_client *self, call_purpose purpose, mcp_method_id method,
                         json_val params, const mcp_revision *revision, uint32_t timeout_ms,
                         bay_err *out_err)
{
    *out_err = BAY_ERR_NOMEM;
    mcp_call *call = mcp_call_new(self, purpose);
    if (call == NULL) {
        return NULL;
    }
    call->method = mcp_method_of(method);
    call->timeout_ms = timeout_ms;
    call->kept.len[KEPT_METHOD] = call->method->text.len;
    call->kept.len[KEPT_PARAMS] = json_raw(params).len;
    buf_str(&call->kept.bytes, call->method->text);
    buf_str(&call->kept.bytes, json_raw(params));
    *out_err = call->kept.bytes.err;
    if (*out_err == BAY_OK) {
        *out_err = mcp_call_open(call, revision, params, JSON_NONE);
    }
    if (*out_err != BAY_OK) {
        mcp_call_recycle(call);
        return NULL;
    }
    return call;
}

/* ---- ending ---------------------------------------------------------------------------------- */

void mcp_call_abandon(mcp_call *call)
{
    mcp_client *self = call->client;
    if (!call->is_exchange_open) {
        return;
    }
    call->is_exchange_open = false;
    if (!self->is_dead && self->ops.abandon != NULL) {
        self->ops.abandon(self->link, call->exchange);
    }
}

/* The engine's own calls end here. */
static void call_finish_own(mcp_call *call, const mcp_outcome *outcome)
{
    mcp_client *self = call->client;
    switch (call->purpose) {
    case CALL_PROBE:
        mcp_client_detect_probed(self, call, outcome);
        return;
    case CALL_INITIALIZE:
        mcp_client_detect_initialized(self, call, outcome);
        return;
    case CALL_DISCOVER:
        if (outcome->kind == MCP_OUTCOME_RESULT &&
            mcp_client_learn(self, outcome->result) == BAY_OK) {
            self->is_confirmed = true;
            mcp_client_modern_listen_due(self);
        }
        return;
    case CALL_LISTEN:
        mcp_client_modern_listen_ended(self, call, outcome);
        return;
    case CALL_QUIET:
        if (outcome->kind != MCP_OUTCOME_RESULT) {
            LOG(LOG_WARN, "mcp", "%s: the server refused %.*s: %s", self->label,
                BAY_STR(call->method->text), outcome->text != NULL ? outcome->text : "an error");
        }
        return;
    case CALL_STREAM:
    case CALL_USER:
        return;
    }
}

void mcp_call_finish(mcp_call *call, const mcp_outcome *outcome)
{
    mcp_client *self = call->client;
    mcp_client_enter(self, self->now_ms);
    mcp_call_detach(call);
    if (call->purpose == CALL_USER) {
        if (call->events.done != NULL) {
            call->events.done(call->user, call, outcome);
        }
    } else if (!self->is_dead && self->state != MCP_CLIENT_BROKEN) {
        call_finish_own(call, outcome);
    }
    if (call->is_exchange_open && !self->is_dead) {
        call->deadline_ms = call->end_ms = UINT64_MAX;
        call->wake_ms = self->now_ms + CLIENT_LINGER_MS;
        mcp_client_wake(self, call->wake_ms);
        list_push(&self->lingering, &call->link);
        call_set_phase(call, PHASE_LINGERING);
    } else {
        mcp_call_recycle(call);
    }
    mcp_client_leave(self);
}

void mcp_call_fail(mcp_call *call, bay_err err, bool was_sent, const char *text)
{
    bool is_forbidden = call->status == 403 || call->status == 407;
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED,
                           .err = err,
                           .was_sent = was_sent,
                           .login = err == BAY_ERR_DENIED && !is_forbidden ? MCP_LOGIN_OPERATOR
                                                                           : MCP_LOGIN_NONE,
                           .text = text != NULL ? text : bay_err_text(err)};
    mcp_call_finish(call, &outcome);
}

void mcp_call_tell_cancelled(mcp_call *call, bay_str reason)
{
    mcp_client *self = call->client;
    if (self->state == MCP_CLIENT_BROKEN || self->is_dead || call->id == 0) {
        return;
    }
    /* mcp 2026-07-28 basic/patterns/cancellation: over HTTP, closing the stream cancels */
    if (mcp_client_is_http(self) && (mcp_client_is_modern(self) || call->purpose == CALL_PROBE)) {
        mcp_call_abandon(call);
        return;
    }
    /* mcp 2025-11-25 basic/utilities/cancellation: initialize must not be cancelled; and a legacy
     * server may fail on a notification before initialize */
    if (call->purpose == CALL_INITIALIZE || call->purpose == CALL_PROBE) {
        mcp_call_abandon(call);
        return;
    }
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    json_writer out;
    json_writer_init(&out, &scratch.name);
    json_open_object(&out);
    json_key_lit(&out, "requestId");
    json_put_uint(&out, call->id);
    if (reason.len > 0) {
        json_key_lit(&out, "reason");
        json_put_str(&out, reason);
    }
    json_close_object(&out);
    if (scratch.name.err == BAY_OK) {
        mcp_client_notify(self, MCP_N_CANCELLED, buf_view(&scratch.name));
    }
    mcp_client_scratch_put(&self->send_scratch, &scratch);
}

/* It may have been the answer: otherwise the log would not show what became of it. */
static void say_late(const mcp_call *call, char *out, size_t size)
{
    const mcp_client *self = call->client;
    bool is_hint = self->unread_text != NULL && self->unread_ms >= call->opened_ms &&
                   !mcp_client_is_http(self) && call->was_sent;
    snprintf(out, size, "the server did not answer in time%s%s%s",
             is_hint ? "; something it said could not be read: " : "",
             is_hint ? self->unread_text : "", is_hint ? " (is that its log, on stdout?)" : "");
}

void mcp_call_expire(mcp_call *call)
{
    char text[CLIENT_TEXT];
    bool was_sent = call->was_sent && call->phase != PHASE_WAITING;
    mcp_client *self = call->client;
    bool is_unconfirmed_silence = call->purpose == CALL_USER && was_sent && !self->is_confirmed &&
                                  call->status == 0 && !mcp_client_is_http(self);
    say_late(call, text, sizeof(text));
    if (was_sent) {
        mcp_call_tell_cancelled(call, STR("timed out"));
    }
    mcp_client_enter(self, self->now_ms);
    mcp_call_fail(call, BAY_ERR_TIMEOUT, was_sent, text);
    if (is_unconfirmed_silence && !self->is_dead) {
        mcp_client_detect_doubt_silence(self);
    }
    mcp_client_leave(self);
}

/* ---- looking up ------------------------------------------------------------------------------ */

mcp_call *mcp_call_by_id(const mcp_client *self, bay_str raw_id)
{
    uint64_t id;
    if (!mcp_client_is_id(raw_id, &id)) {
        return NULL;
    }
    mcp_call *call = mcp_id_table_get(&self->table, id);
    if (call == NULL || call->id != id || call->purpose == CALL_STREAM) {
        return NULL;
    }
    return call->phase == PHASE_OPEN || call->phase == PHASE_RESUMING ? call : NULL;
}

mcp_call *mcp_call_by_exchange(const mcp_client *self, uint64_t exchange)
{
    mcp_call *call = mcp_id_table_get(&self->table, exchange);
    if (call == NULL || call->exchange != exchange) {
        return NULL;
    }
    /* HTTP+SSE: an exchange only carries the request; the answer comes on the shared stream. */
    bool is_open = mcp_client_is_http(self) ? call->is_exchange_open : call->phase == PHASE_OPEN;
    return is_open ? call : NULL;
}

mcp_call *mcp_call_only_open(const mcp_client *self)
{
    if (self->open_users != 1) {
        return NULL;
    }
    LIST_EACH(link, &self->open)
    {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        if (call->purpose == CALL_USER) {
            return call;
        }
    }
    return NULL;
}
