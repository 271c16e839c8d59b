/* The user's side of calls: starting, queueing until the server is ready, cancelling, pausing.
 * Invariant: waiting calls are sent in the order of their creation, and a new one only if none
 * waits. */
#include "base/err.h"
#include "mcp/client_internal.h"

/* ---- towards the user ------------------------------------------------------------------------ */

/* Whether any revision's table has it. Other methods belong to extensions and pass unchanged. */
static bool method_is_ours(bay_str text)
{
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        if (mcp_method_find(text, (mcp_revision_id)i, MCP_SENDER_CLIENT) != NULL) {
            return true;
        }
    }
    return false;
}

static bay_err call_check(const mcp_client *self, const mcp_call_spec *spec,
                          const mcp_method **out_method, bay_diag *diag)
{
    json_kind kind = json_kind_of(spec->params);
    json_kind meta_kind = json_kind_of(spec->meta);
    if (spec->method.len == 0 || spec->method.len > RPC_MAX_METHOD_BYTES ||
        str_eq(spec->method, STR("initialize")) || (kind != JSON_MISSING && kind != JSON_OBJECT) ||
        (meta_kind != JSON_MISSING && meta_kind != JSON_OBJECT)) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "not a method that can be called, or params no object");
    }
    const mcp_revision *revision = self->state == MCP_CLIENT_READY ? self->revision : NULL;
    const mcp_method *method = NULL;
    for (int i = (int)self->newest; method == NULL && i >= (int)self->oldest; i--) {
        mcp_revision_id id = revision != NULL ? revision->id : (mcp_revision_id)i;
        method = mcp_method_find(spec->method, id, MCP_SENDER_CLIENT);
        if (revision != NULL) {
            break;
        }
    }
    if (method != NULL && method->is_notification) {
        return diag_set(diag, BAY_ERR_INVALID, "%.*s is a notification", BAY_STR(spec->method));
    }
    if (method == NULL && method_is_ours(spec->method)) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "%.*s is not in revision %.*s",
                        BAY_STR(spec->method),
                        BAY_STR(revision != NULL ? revision->text : STR("that may be spoken")));
    }
    *out_method = method;
    return BAY_OK;
}

static bay_err call_fill(mcp_call *call, const mcp_call_spec *spec)
{
    mcp_client *self = call->client;
    call->principal = principal_ref(spec->principal);
    call->wants_progress = spec->wants_progress;
    call->progress_of = spec->progress_of;
    call->log_level = spec->log_level;
    call->timeout_ms = spec->timeout_ms != 0 ? spec->timeout_ms : self->call_timeout_ms;
    call->end_ms =
        self->now_ms + (spec->max_total_ms != 0 ? spec->max_total_ms : self->max_total_ms);
    call->deadline_ms = self->now_ms + call->timeout_ms;
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    bay_err err = mcp_call_keep(&call->kept, spec, self->kind == MCP_LINK_HTTP, &scratch.memory);
    mcp_client_scratch_put(&self->send_scratch, &scratch);
    return err;
}

bay_err mcp_client_call(mcp_client *self, const mcp_call_spec *spec, const mcp_call_events *events,
                        void *user, uint64_t now_ms, mcp_call **out, bay_diag *diag)
{
    if (self->state == MCP_CLIENT_BROKEN || self->is_dead) {
        return diag_set(diag, BAY_ERR_CLOSED, "%s",
                        self->broken_text[0] != '\0' ? self->broken_text : "the link is gone");
    }
    if (self->user_count >= self->max_calls) {
        return diag_set(diag, BAY_ERR_BUSY, "%zu calls are under way", self->user_count);
    }
    const mcp_method *method = NULL;
    bay_err err = call_check(self, spec, &method, diag);
    if (err != BAY_OK) {
        return err;
    }
    mcp_client_enter(self, now_ms);
    mcp_call *call = mcp_call_new(self, CALL_USER);
    if (call == NULL) {
        mcp_client_leave(self);
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    call->method = method;
    call->events = *events;
    call->user = user;
    err = call_fill(call, spec);
    bool may_go =
        self->state == MCP_CLIENT_READY && !self->is_clogged && list_is_empty(&self->waiting);
    if (err == BAY_OK && may_go) {
        err = mcp_call_open(call, self->revision, spec->params, spec->meta);
    } else if (err == BAY_OK) {
        mcp_call_wait(call);
        mcp_client_wake(self, call->deadline_ms < call->end_ms ? call->deadline_ms : call->end_ms);
        if (self->state == MCP_CLIENT_IDLE) {
            mcp_client_set_state(self, MCP_CLIENT_OPENING);
        }
    }
    if (err == BAY_OK) {
        *out = call;
    } else {
        mcp_call_recycle(call);
        err = diag_set(diag, err, "the call could not be sent: %s", bay_err_text(err));
    }
    mcp_client_leave(self);
    return err;
}

void mcp_client_flush(mcp_client *self)
{
    if (self->is_flushing) {
        return; /* a callback of the loop below */
    }
    self->is_flushing = true;
    while (!self->is_dead && self->state == MCP_CLIENT_READY && !self->is_clogged) {
        list_link *link = list_first(&self->waiting);
        if (link == NULL) {
            break;
        }
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        bay_str name = mcp_call_kept_part(call, KEPT_METHOD);
        call->method = mcp_method_find(name, self->revision->id, MCP_SENDER_CLIENT);
        bay_err err = BAY_OK;
        if (call->method == NULL && method_is_ours(name)) {
            err = BAY_ERR_UNSUPPORTED;
        } else {
            err = mcp_call_open(call, self->revision, JSON_NONE, JSON_NONE);
        }
        if (err != BAY_OK) {
            mcp_call_fail(call, err, false,
                          err == BAY_ERR_UNSUPPORTED ? "the revision spoken has no such method"
                                                     : NULL);
        }
    }
    self->is_flushing = false;
}

void mcp_call_cancel(mcp_call *self, bay_str reason)
{
    mcp_client *client = self->client;
    if (self->phase != PHASE_WAITING && self->phase != PHASE_OPEN &&
        self->phase != PHASE_RESUMING) {
        return;
    }
    mcp_client_enter(client, client->now_ms);
    if (self->phase != PHASE_WAITING) {
        mcp_call_tell_cancelled(self, reason);
    }
    self->events = (mcp_call_events){0};
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_CANCELLED};
    mcp_call_finish(self, &outcome);
    mcp_client_leave(client);
}

void mcp_call_pause(mcp_call *self, bool is_paused)
{
    mcp_client *client = self->client;
    bool is_open = self->phase == PHASE_OPEN || self->phase == PHASE_RESUMING;
    if (!is_paused) {
        mcp_call_unpause(self);
        return;
    }
    if (!is_open || self->is_paused) {
        return;
    }
    self->is_paused = true;
    client->paused_count++;
    if (client->ops.pause == NULL) {
        return;
    }
    if (!mcp_client_is_http(client)) {
        if (client->paused_count == 1) {
            client->ops.pause(client->link, 0, true);
        }
    } else if (self->is_exchange_open) {
        client->ops.pause(client->link, self->exchange, true);
    }
}
