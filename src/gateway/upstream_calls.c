/* The calls of an upstream's owner.
 *
 * A call waits in `waiting` while there is no link (a start is due within a moment), then is with
 * the engine (`open`), which itself holds it until the server is ready. A call that the engine
 * failed and that certainly was not sent is tried once more, on the next link if need be. */
#include "base/err.h"
#include "gateway/upstream_local.h"

static void call_wait(local *self, upstream_call *call)
{
    list_push(&self->waiting, &call->link);
    self->waiting_count++;
}

void local_fail_waiting(local *self, bay_err err, const char *text)
{
    /* only what waits now: whoever hears of a failure may send again */
    size_t count = self->waiting_count;
    list_link *link;
    while (count-- > 0 && (link = list_pop(&self->waiting)) != NULL) {
        self->waiting_count--;
        upstream_call_fail(CONTAINER_OF(link, upstream_call, link), err, false, text);
    }
}

void local_arm_idle(local *self)
{
    uint32_t idle_ms = self->base.server->idle_stop_ms;
    if (idle_ms > 0 && self->open_count == 0 && self->base.state == UPSTREAM_READY &&
        !self->is_closing) {
        err_ignore(loop_timer_start(self->base.loop, &self->idle, idle_ms)); /* runs on, then */
    }
}

static void call_leave(local *self, upstream_call *call)
{
    list_remove(&call->link);
    call->call = NULL;
    self->open_count--;
    local_arm_idle(self);
    if (self->is_unreachable && self->open_count == 0) {
        loop_defer(self->base.loop, &self->settle);
    }
}

static void call_notified(void *user, mcp_call *engine_call, const mcp_method *method,
                          json_val params)
{
    upstream_call *call = user;
    (void)engine_call;
    call->events->notified(call->user, method->id, params);
}

/* Certainly not executed, and another try is near. */
static bool call_may_retry(const local *self, const upstream_call *call, bay_err err, bool was_sent)
{
    return !was_sent && !self->is_closing && bay_err_class_of(err) == BAY_CLASS_RETRY &&
           err != BAY_TIMEOUT && err != BAY_BUSY && call->attempts < LOCAL_MOST_ATTEMPTS &&
           self->base.is_settled && self->base.state != UPSTREAM_STARTING;
}

/* What a failure that reached nobody says of the link. */
static void note_failure(local *self, bay_err err)
{
    bool is_process = self->base.server->command.len > 0;
    if (self->is_closing || self->base.state != UPSTREAM_READY) {
        return;
    }
    if (err == BAY_CONNECT || err == BAY_RESOLVE) {
        self->is_unreachable = true;
    } else if (is_process && err == BAY_CLOSED && !self->is_unwritable) {
        /* its end will be seen within a moment; if it only closed its stdin, it is ended */
        self->is_unwritable = true;
        err_ignore(loop_timer_start(self->base.loop, &self->restart, LOCAL_LAST_MOMENT_MS));
    }
}

static void call_retry(local *self, upstream_call *call)
{
    call_wait(self, call);
    loop_defer(self->base.loop, &self->settle);
}

static void call_done(void *user, mcp_call *engine_call, const mcp_outcome *outcome)
{
    upstream_call *call = user;
    local *self = local_of(call->upstream);
    bool is_failure = outcome->kind == MCP_OUTCOME_FAILED;
    (void)engine_call;
    if (!is_failure) {
        self->is_unreachable = false;
    } else if (!outcome->was_sent) {
        note_failure(self, outcome->err);
    }
    call_leave(self, call);
    if (is_failure && call_may_retry(self, call, outcome->err, outcome->was_sent)) {
        call_retry(self, call);
        return;
    }
    mcp_outcome told = *outcome;
    if (self->is_closing && is_failure && outcome->err == BAY_CANCELLED) {
        told.err = BAY_CLOSED; /* it was not the caller who cancelled */
        told.text = "the server is leaving the gateway";
    }
    upstream_call_end(call);
    call->events->done(call->user, &told);
}

static bool call_asked(void *user, mcp_call *engine_call, const rpc_message *request)
{
    upstream_call *call = user;
    (void)engine_call;
    if (call->events->asked == NULL) {
        return false;
    }
    call->events->asked(call->user, request);
    return true;
}

static const mcp_call_events call_events = {
    .notified = call_notified, .asked = call_asked, .done = call_done};

static void call_hand_over(local *self, upstream_call *call)
{
    bay_diag diag = {0};
    loop_timer_stop(self->base.loop, &self->idle);
    call->attempts++;
    list_push(&self->open, &call->link);
    self->open_count++;
    bay_err err = mcp_client_call(mcp_link_client(self->link), &call->spec, &call_events, call,
                                  loop_now_ms(self->base.loop), &call->call, &diag);
    if (err == BAY_OK) {
        return;
    }
    note_failure(self, err);
    call_leave(self, call);
    if (call_may_retry(self, call, err, false)) {
        call_retry(self, call); /* the link is breaking this very moment */
        return;
    }
    upstream_call_fail(call, err, false, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
}

/* There is an engine that takes calls; after a stop it is a link on its way out. */
static bool has_engine(const local *self)
{
    return self->link != NULL && !self->is_link_broken && !self->is_link_closing &&
           !self->is_unwritable;
}

void local_hand_over_waiting(local *self)
{
    size_t count = self->waiting_count;
    list_link *link;
    while (count-- > 0 && has_engine(self) && (link = list_pop(&self->waiting)) != NULL) {
        self->waiting_count--;
        call_hand_over(self, CONTAINER_OF(link, upstream_call, link));
    }
}

void local_send(upstream *base, upstream_call *call)
{
    local *self = local_of(base);
    uint64_t now = loop_now_ms(base->loop);
    call->attempts = 0;
    call->call = NULL;
    if (base->state == UPSTREAM_CLOSED || self->is_closing) {
        upstream_call_fail(call, BAY_CLOSED, false, "the server is leaving the gateway");
        return;
    }
    if (self->waiting_count >= UPSTREAM_MAX_WAITING) {
        upstream_call_fail(call, BAY_BUSY, false, "too many calls wait for this server");
        return;
    }
    if (base->state == UPSTREAM_BACKOFF && self->restart_at_ms > now + LOCAL_PATIENCE_MS) {
        upstream_call_fail(call, BAY_CLOSED, false, base->error);
        return;
    }
    if ((base->state == UPSTREAM_READY || base->state == UPSTREAM_STARTING) && has_engine(self)) {
        call_hand_over(self, call);
        return;
    }
    call_wait(self, call);
    /* overdue: the restart's timer could not be armed */
    bool is_overdue = base->state == UPSTREAM_BACKOFF && self->restart_at_ms + 1000 < now;
    if (base->state == UPSTREAM_STOPPED || is_overdue) {
        local_begin(self);
    }
}

void local_cancel(upstream_call *call, bay_str reason)
{
    local *self = local_of(call->upstream);
    if (call->call != NULL) {
        mcp_call *engine_call = call->call;
        call_leave(self, call);
        mcp_call_cancel(engine_call, reason);
        return;
    }
    list_remove(&call->link);
    self->waiting_count--;
}

void local_pause(upstream_call *call, bool is_paused)
{
    if (call->call != NULL) {
        mcp_call_pause(call->call, is_paused);
    }
}

void local_answer(upstream_call *call, bay_str id, bay_str result, int code, bay_str message)
{
    local *self = local_of(call->upstream);
    if (call->call != NULL) {
        mcp_client_answer(mcp_link_client(self->link), id, result, code, message);
    }
}
