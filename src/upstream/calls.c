/* The calls of an upstream's owner.
 *
 * A call waits in `waiting` while there is no main link (a start is due within a moment) or in the
 * pool's queue, then is with the engine of a session (`open`), which itself holds it until the
 * server is ready. A call that the engine failed is tried once more, on the next link if need be,
 * when it certainly was not executed or may be executed twice. */
#include "base/err.h"
#include "base/str.h"
#include "upstream/local.h"

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
    if (idle_ms > 0 && self->main.open_count == 0 && self->base.state == UPSTREAM_READY &&
        !self->is_closing) {
        /* without memory it runs on */
        err_ignore(loop_timer_start(self->base.loop, &self->main.idle, idle_ms));
    }
}

static void call_leave(upstream_call *call)
{
    upstream_session *at = call->session;
    local *self = at->owner;
    list_remove(&call->link);
    at->open_count--;
    upstream_session_end_input_requests(at, call);
    call->call = NULL;
    call->session = NULL;
    if (at != &self->main) {
        upstream_session_rest(at);
        return;
    }
    local_arm_idle(self);
    if (self->is_unreachable && at->open_count == 0) {
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

/* The main link will not be there again within a moment. */
static bool is_far(const local *self)
{
    bool is_down = self->base.state == UPSTREAM_BACKOFF || self->base.state == UPSTREAM_OPEN;
    return is_down && self->restart_at_ms > loop_now_ms(self->base.loop) + LOCAL_PATIENCE_MS;
}

/* Certainly not executed, or no harm if it is twice, and another try is near. */
static bool call_may_retry(const upstream_call *call, const upstream_session *at, bay_err err,
                           bool was_sent)
{
    const local *self = at->owner;
    bool is_main = at == &self->main;
    bool was_up =
        is_main ? self->base.is_settled && self->base.state != UPSTREAM_STARTING && !is_far(self)
                : at->is_ready;
    return (!was_sent || call->is_repeatable) && !self->is_closing &&
           bay_err_class_of(err) == BAY_ERR_CLASS_RETRY && err != BAY_ERR_TIMEOUT &&
           err != BAY_ERR_BUSY && call->attempts < LOCAL_MOST_ATTEMPTS && was_up;
}

/* What a failure that reached nobody says of the link. */
static void note_failure(upstream_session *at, bay_err err)
{
    local *self = at->owner;
    if (self->is_closing || (at == &self->main && self->base.state != UPSTREAM_READY)) {
        return;
    }
    if (err == BAY_ERR_CONNECT || err == BAY_ERR_RESOLVE) {
        self->is_unreachable = self->base.state == UPSTREAM_READY;
        loop_defer(self->base.loop, &self->settle);
    } else if (local_is_process(self) && err == BAY_ERR_CLOSED && !at->is_unwritable) {
        /* its end will be seen within a moment; if it only closed its stdin, it is ended */
        at->is_unwritable = true;
        if (at == &self->main) {
            err_ignore(loop_timer_start(self->base.loop, &self->restart, LOCAL_LAST_MOMENT_MS));
        }
    }
}

/* It is authorized by a credential of its caller's own. */
static bool has_caller(const local *self, const upstream_call *call)
{
    return config_credentials_are_callers(&self->base.server->credentials) &&
           !call->affinity.is_own;
}

static mcp_login login_of(const local *self)
{
    return self->base.server->credentials.grant == CONFIG_GRANT_USER ? MCP_LOGIN_USER
                                                                     : MCP_LOGIN_CALLER;
}

static void call_retry(local *self, upstream_call *call)
{
    if (pool_key(self, call).kind == SHARE_MAIN) {
        call_wait(self, call);
    } else {
        pool_wait(self, call);
    }
    loop_defer(self->base.loop, &self->settle);
}

static void call_done(void *user, mcp_call *engine_call, const mcp_outcome *outcome)
{
    upstream_call *call = user;
    upstream_session *at = call->session;
    local *self = at->owner;
    bool is_failure = outcome->kind == MCP_OUTCOME_FAILED;
    (void)engine_call;
    if (!is_failure) {
        self->is_unreachable = false;
    } else if (!outcome->was_sent) {
        note_failure(at, outcome->err);
    } else {
        upstream_session_unbind(at, &call->affinity);
        /* nobody else waits for this process, and it may hang for ever */
        at->is_draining = at->is_draining || (at->is_exclusive && outcome->err == BAY_ERR_TIMEOUT);
    }
    bool is_again = is_failure && call_may_retry(call, at, outcome->err, outcome->was_sent);
    if (is_again) {
        upstream_session_withdraw_input_requests(call); /* it will ask anew */
        call->may_have_run = call->may_have_run || outcome->was_sent;
    }
    call_leave(call);
    if (is_again) {
        call_retry(self, call);
        return;
    }
    mcp_outcome told = *outcome;
    told.was_sent = told.was_sent || call->may_have_run;
    if (self->is_closing && is_failure && outcome->err == BAY_ERR_CANCELLED) {
        told.err = BAY_ERR_CLOSED; /* it was not the caller who cancelled */
        told.text = "the server is leaving the gateway";
    }
    if (told.login != MCP_LOGIN_NONE && has_caller(self, call)) {
        told.login = login_of(self);
    }
    upstream_call_done(call, &told);
}

static bool call_asked(void *user, mcp_call *engine_call, const rpc_message *request)
{
    upstream_call *call = user;
    (void)engine_call;
    return upstream_session_asked(call->session, call, request);
}

static const mcp_call_events call_events = {
    .notified = call_notified, .asked = call_asked, .done = call_done};

/* What a server of the stateless revision may ask during this call, where nobody has said it in the
 * client's own words. The lists are the gateway's own: they show what any client could use. */
static bay_err say_capabilities(const upstream_call *call, mcp_call_spec *spec, buf *out)
{
    bool is_ours = call->affinity.inputs == 0 && call->affinity.identity.len == 0;
    if (spec->capabilities.len > 0 || is_ours) {
        return BAY_OK;
    }
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    mcp_inputs_write(call->affinity.inputs, NULL, &writer);
    json_close_object(&writer);
    spec->capabilities = buf_view(out);
    return out->err;
}

static bool is_list(bay_str method)
{
    return method.len > 5 && str_eq(str_from(method, method.len - 5), STR("/list"));
}

void upstream_session_take(upstream_session *at, upstream_call *call)
{
    local *self = at->owner;
    bay_diag diag = {0};
    buf capabilities;
    mcp_call_spec spec = call->spec;
    spec.principal = call->affinity.principal;
    buf_init(&capabilities, 4096);
    loop_timer_stop(self->base.loop, &at->idle);
    call->attempts++;
    call->session = at;
    list_push(&at->open, &call->link);
    at->open_count++;
    bay_err err = is_list(spec.method) ? BAY_OK : say_capabilities(call, &spec, &capabilities);
    if (err == BAY_OK) {
        err = mcp_client_call(mcp_link_client(at->connection), &spec, &call_events, call,
                              loop_now_ms(self->base.loop), &call->call, &diag);
    }
    buf_fini(&capabilities);
    if (err == BAY_OK) {
        return;
    }
    note_failure(at, err);
    bool is_again = call_may_retry(call, at, err, false); /* it is breaking this very moment */
    call_leave(call);
    if (is_again) {
        call_retry(self, call);
        return;
    }
    upstream_call_fail(call, err, false, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
}

/* There is an engine that takes calls; after a stop it is a link on its way out. */
static bool has_engine(const local *self)
{
    return upstream_session_is_usable(&self->main);
}

/* Which session it needs depends on how the server is spoken to, and that is not known yet. */
static bool is_undecided(const local *self, const upstream_call *call)
{
    return self->base.revision == NULL &&
           (call->affinity.inputs != 0 || call->affinity.identity.len > 0);
}

void local_send_main(local *self, upstream_call *call)
{
    upstream *base = &self->base;
    uint64_t now = loop_now_ms(base->loop);
    bool is_up = base->state == UPSTREAM_READY || base->state == UPSTREAM_STARTING;
    if (base->state == UPSTREAM_BACKOFF && self->restart_at_ms > now + LOCAL_PATIENCE_MS) {
        upstream_call_fail(call, BAY_ERR_CLOSED, false, base->error);
        return;
    }
    if (is_up && has_engine(self) && !is_undecided(self, call)) {
        upstream_session_take(&self->main, call);
        return;
    }
    if ((base->state == UPSTREAM_STOPPED && !circuit_may_start(&self->circuit, now)) ||
        (base->state == UPSTREAM_OPEN && self->restart_at_ms + 1000 > now)) {
        char text[UPSTREAM_ERROR_BYTES];
        local_say_circuit(self, text, sizeof(text));
        upstream_call_fail(call, BAY_ERR_CLOSED, false, text);
        return;
    }
    call_wait(self, call);
    /* overdue: the restart's timer could not be armed */
    bool is_down = base->state == UPSTREAM_BACKOFF || base->state == UPSTREAM_OPEN;
    if (base->state == UPSTREAM_STOPPED || (is_down && self->restart_at_ms + 1000 < now)) {
        local_begin(self);
    }
}

static void call_place(local *self, upstream_call *call)
{
    if (pool_key(self, call).kind == SHARE_MAIN) {
        local_send_main(self, call);
    } else {
        pool_send(self, call);
    }
}

void local_place_waiting(local *self)
{
    size_t count = self->waiting_count;
    list_link *link;
    while (count-- > 0 && (link = list_pop(&self->waiting)) != NULL) {
        self->waiting_count--;
        call_place(self, CONTAINER_OF(link, upstream_call, link));
    }
}

/* False: it has ended. The gateway's own credential is not for callers who have none. */
static bool takes_caller(const local *self, upstream_call *call)
{
    const auth_principal *who = call->affinity.principal;
    if (!has_caller(self, call)) {
        return true;
    }
    bool is_user = self->base.server->credentials.grant == CONFIG_GRANT_USER;
    if (who == NULL || (!is_user && principal_token(who).len == 0)) {
        upstream_call_done(call,
                           &(mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                          .err = BAY_ERR_DENIED,
                                          .login = login_of(self),
                                          .text = is_user ? "nobody is logged in to the gateway"
                                                          : "the call came without an access "
                                                            "token"});
        return false;
    }
    bay_err err = principal_rights(who, call->rights);
    if (err != BAY_OK) {
        upstream_call_fail(call, err, false, bay_err_text(err));
    }
    return err == BAY_OK;
}

void local_send(upstream *base, upstream_call *call)
{
    local *self = local_of(base);
    call->attempts = 0;
    call->call = NULL;
    call->session = NULL;
    call->is_queued = false;
    call->may_have_run = false;
    if (base->state == UPSTREAM_CLOSED || self->is_closing) {
        upstream_call_fail(call, BAY_ERR_CLOSED, false, "the server is leaving the gateway");
        return;
    }
    if (self->waiting_count + self->queued_count >= UPSTREAM_MAX_WAITING) {
        upstream_call_fail(call, BAY_ERR_BUSY, false, "too many calls wait for this server");
        return;
    }
    if (takes_caller(self, call)) {
        call_place(self, call);
    }
}

void local_cancel(upstream_call *call, bay_str reason)
{
    local *self = local_of(call->upstream);
    if (call->call != NULL) {
        mcp_call *engine_call = call->call;
        call->call = NULL;
        upstream_session_unbind(call->session, &call->affinity);
        mcp_call_cancel(engine_call, reason); /* first: what follows may break the link */
        call_leave(call);
    } else if (call->is_queued) {
        pool_remove(self, call);
    } else {
        list_remove(&call->link);
        self->waiting_count--;
    }
}

/* A client that does not read holds back what is its own: an exchange, or a link that was exclusive
 * to its call. On a link that all share its answers pile up on its stream instead, up to their
 * bound.
 */
void local_pause(upstream_call *call, bool is_paused)
{
    const local *self = local_of(call->upstream);
    bool is_own =
        self->kind == MCP_LINK_HTTP || (call->session != NULL && call->session->is_exclusive);
    if (call->call != NULL && is_own) {
        mcp_call_pause(call->call, is_paused);
    }
}
