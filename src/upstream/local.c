/* The owner of a server's links: the main one is started when it is needed, restarted with
 * back-off, left alone when it crashes again and again, stopped when it idles. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/shown.h"
#include "base/str.h"
#include "upstream/local.h"

local *local_of(upstream *self)
{
    return CONTAINER_OF(self, local, base);
}

bool local_is_process(const local *self)
{
    return self->base.server->command.len > 0;
}

static uint32_t back_off_ms(const local *self)
{
    uint64_t delay = self->base.server->restart.min_delay_ms;
    uint64_t most = self->base.server->restart.max_delay_ms;
    for (uint32_t i = 1; i < self->failures && delay < most; i++) {
        delay *= 2;
    }
    delay = delay < most ? delay : most;
    return (uint32_t)(delay - delay / 4 + rand_u64() % (delay / 2 + 1)); /* ± a quarter */
}

/* ---- the circuit: a process that crashes again and again is left alone ------------------------
 */

void local_count_crash(local *self)
{
    const config_restart *rules = &self->base.server->restart;
    uint64_t now = loop_now_ms(self->base.loop);
    bool was_trial = self->circuit.state == CIRCUIT_TRIAL;
    if (local_is_process(self) && circuit_crashed(&self->circuit, now)) {
        /* a trial that fails is one more attempt of what was said */
        LOG(was_trial ? LOG_DEBUG : LOG_WARN, "upstream",
            "%s: %s%u times within %u s: left alone for %llu s", self->base.name,
            was_trial ? "crashed again, after " : "crashed ", rules->attempts,
            rules->window_ms / 1000,
            (unsigned long long)(self->circuit.trial_at_ms - now + 999) / 1000);
    }
}

void local_say_circuit(const local *self, char *out, size_t size)
{
    const config_restart *rules = &self->base.server->restart;
    uint64_t now = loop_now_ms(self->base.loop);
    uint64_t at =
        self->base.state == UPSTREAM_OPEN ? self->restart_at_ms : self->circuit.trial_at_ms;
    snprintf(out, size, "it crashed %u times within %u s and is tried again in %llu s: %s",
             rules->attempts, rules->window_ms / 1000,
             (unsigned long long)(at > now ? (at - now + 999) / 1000 : 0), self->base.last_break);
}

void local_tally(local *self)
{
    upstream_figures *out = &self->base.figures;
    unsigned links = (unsigned)self->session_count + (self->main.connection != NULL ? 1 : 0);
    atomic_store_explicit(&out->links, links, memory_order_relaxed);
    atomic_store_explicit(&out->processes, local_is_process(self) ? links : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&out->waiting, (unsigned)(self->waiting_count + self->queued_count),
                          memory_order_relaxed);
    atomic_store_explicit(&out->circuit, (unsigned)self->circuit.state, memory_order_relaxed);
}

/* ---- the main link's life -------------------------------------------------------------------- */

static void local_break(local *self, bay_err err, const char *text)
{
    uint64_t now = loop_now_ms(self->base.loop);
    bool was_ready = self->base.state == UPSTREAM_READY;
    if (was_ready && now - self->ready_at_ms >= LOCAL_HEALTHY_MS) {
        self->failures = 0;
        circuit_proved(&self->circuit);
    }
    self->failures++;
    self->base.is_unauthorized = err == BAY_ERR_DENIED && !local_is_process(self);
    shown_copy(self->base.last_break, sizeof(self->base.last_break),
               str_of(text != NULL && text[0] != '\0' ? text : bay_err_text(err)), SHOWN_LINE);
    if (err != BAY_ERR_LIMIT) { /* ended by us, for what it said */
        local_count_crash(self);
    }
    bool is_open = !circuit_may_start(&self->circuit, now);
    uint64_t delay = back_off_ms(self);
    if (is_open && self->circuit.trial_at_ms > now + delay) {
        delay = self->circuit.trial_at_ms - now;
    }
    self->restart_at_ms = now + delay;
    self->base.process_id = 0;
    local_tally(self);
    self->is_unreachable = false;
    self->main.is_unwritable = false;
    loop_timer_stop(self->base.loop, &self->main.idle);
    bay_err timer_err = loop_timer_start(self->base.loop, &self->restart, delay);
    if (upstream_set_state(&self->base, is_open ? UPSTREAM_OPEN : UPSTREAM_BACKOFF,
                           self->base.last_break)) {
        mcp_link_log_last_lines(self->main.connection);
    }
    if (!was_ready || delay > LOCAL_PATIENCE_MS || timer_err != BAY_OK) {
        local_fail_waiting(self, err, self->base.error);
    }
    loop_defer(self->base.loop, &self->settle); /* who waits for another link, too */
}

static void main_reap(local *self)
{
    upstream_session *at = &self->main;
    if (at->is_broken) {
        mcp_link *old = at->connection;
        at->connection = NULL;
        at->is_broken = at->is_leaving = at->is_ready = false;
        at->loose_until_ms = 0;
        mcp_link_free(old);
        upstream_session_forget_client(at);
    }
}

static void local_settle(void *argument)
{
    local *self = argument;
    /* calls that are still under way on other connections have a server that answers them */
    if (self->is_unreachable && self->main.open_count == 0 && self->base.state == UPSTREAM_READY) {
        self->main.is_broken = true;
        local_break(self, BAY_ERR_CONNECT, "nobody answers at its URL");
    }
    main_reap(self);
    upstream_sessions_reap(self);
    if (self->base.state == UPSTREAM_READY || self->base.state == UPSTREAM_STARTING) {
        local_place_waiting(self);
    }
    pool_serve(self);
    local_tally(self);
}

static void main_ready(void *user)
{
    upstream_session *at = user;
    local *self = at->owner;
    mcp_client *client = mcp_link_client(at->connection);
    upstream_state state = self->base.state;
    if (self->is_closing || at->is_broken || at->is_leaving ||
        (state != UPSTREAM_STARTING && state != UPSTREAM_READY)) {
        return;
    }
    self->ready_at_ms = loop_now_ms(self->base.loop);
    self->kind = mcp_client_link_kind(client);
    at->is_ready = true;
    circuit_succeeded(&self->circuit);
    self->base.process_id = mcp_link_process_id(at->connection);
    upstream_learn_instructions(&self->base, mcp_client_instructions(client));
    upstream_learn(&self->base, mcp_client_revision(client),
                   mcp_client_server_capabilities(client));
    upstream_subscriptions_renew(at);
    if (state == UPSTREAM_READY) {
        upstream_set_state(&self->base, UPSTREAM_STARTING, ""); /* re-probed: another era */
    }
    upstream_set_state(&self->base, UPSTREAM_READY, "");
    local_arm_idle(self);
    local_tally(self);
    if (self->waiting_count > 0 || self->queued_count > 0) {
        loop_defer(self->base.loop, &self->settle);
    }
}

static void main_broken(void *user, bay_err err, const char *text)
{
    upstream_session *at = user;
    local *self = at->owner;
    if (at->is_broken || at->is_leaving || self->is_closing) {
        return;
    }
    at->is_broken = true;
    local_break(self, err, text);
}

static void main_changed(void *user, mcp_change change)
{
    upstream_notify_changed(user, change);
}

static void main_updated(void *user, bay_str uri)
{
    upstream_notify_updated(user, uri);
}

static void main_elicited(void *user, json_val params)
{
    local *self = ((upstream_session *)user)->owner;
    upstream_tell_elicited(&self->base, params);
}

static void main_logged(void *user, json_val params)
{
    upstream_session_logged(user, params);
}

static bool main_asked(void *user, const rpc_message *request)
{
    return upstream_session_asked(user, NULL, request);
}

static const mcp_client_events main_events = {
    .ready = main_ready,
    .broken = main_broken,
    .changed = main_changed,
    .updated = main_updated,
    .logged = main_logged,
    .asked = main_asked,
    .withdrawn = upstream_session_withdrawn,
    .elicited = main_elicited,
};

void local_begin(local *self)
{
    bay_diag diag = {0};
    loop_timer_stop(self->base.loop, &self->restart);
    /* one that is still on its way out after idling has had its time */
    self->main.is_broken = self->main.connection != NULL;
    main_reap(self);
    self->main.is_unwritable = false;
    circuit_started(&self->circuit);
    upstream_set_state(&self->base, UPSTREAM_STARTING, NULL);
    if (self->failures > 0) {
        self->base.restarts++;
    }
    bay_err err = local_open(self, &self->main, &main_events, &diag);
    if (err != BAY_OK) {
        self->main.connection = NULL;
        local_break(self, err, diag.text);
        return;
    }
    self->base.process_id = mcp_link_process_id(self->main.connection);
    local_place_waiting(self);
    local_tally(self);
}

static void local_restart(void *argument)
{
    local *self = argument;
    if (self->base.state == UPSTREAM_BACKOFF || self->base.state == UPSTREAM_OPEN) {
        local_begin(self);
    } else if (self->base.state == UPSTREAM_READY && self->main.is_unwritable) {
        self->main.is_broken = true;
        local_break(self, BAY_ERR_CLOSED, "it reads no more requests");
    }
}

void local_check_closed(local *self)
{
    bool is_left = self->main.connection == NULL || self->main.is_broken;
    LIST_EACH(link, &self->sessions)
    {
        is_left = is_left && CONTAINER_OF(link, upstream_session, link)->is_broken;
    }
    if (is_left && self->close_done != NULL) {
        void (*done)(void *argument) = self->close_done;
        self->close_done = NULL;
        done(self->close_user);
    }
}

static void main_left(void *user)
{
    local *self = user;
    self->main.is_broken = true; /* stopped: free it outside this callback */
    if (self->is_closing) {
        local_check_closed(self);
        return;
    }
    loop_defer(self->base.loop, &self->settle);
}

/* Subscriptions keep a server awake: a stopped one tells of no update. */
static void main_idle(void *argument)
{
    upstream_session *at = argument;
    local *self = at->owner;
    if (self->base.state != UPSTREAM_READY || at->open_count > 0 || self->waiting_count > 0 ||
        self->subscription_count > 0 || at->connection == NULL) {
        return;
    }
    self->base.process_id = 0;
    at->is_leaving = true;
    upstream_set_state(&self->base, UPSTREAM_STOPPED, "stopped after idling");
    mcp_link_close(at->connection, main_left, self);
}

/* ---- the interface --------------------------------------------------------------------------- */

static void local_set_client(upstream *base, unsigned inputs)
{
    local *self = local_of(base);
    if (self->main.connection == NULL) {
        self->has_one_client = self->main.has_session = true;
        self->main.inputs = inputs;
    }
}

static void local_start(upstream *base)
{
    local *self = local_of(base);
    if (base->state == UPSTREAM_STOPPED && self->main.connection == NULL && !self->is_closing &&
        circuit_may_start(&self->circuit, loop_now_ms(base->loop))) {
        local_begin(self);
    }
}

static void stop_timers(local *self)
{
    loop_timer_stop(self->base.loop, &self->restart);
    loop_timer_stop(self->base.loop, &self->main.idle);
    loop_timer_stop(self->base.loop, &self->queue);
    upstream_notify_stop(&self->main);
}

static void local_close(upstream *base, void (*done)(void *user), void *user)
{
    local *self = local_of(base);
    static const char why[] = "the server is leaving the gateway";
    self->is_closing = true;
    self->close_done = NULL; /* until every link has been asked to go */
    stop_timers(self);
    local_fail_waiting(self, BAY_ERR_CLOSED, why);
    pool_fail(self, BAY_ERR_CLOSED, why);
    if (base->state != UPSTREAM_CLOSED) {
        upstream_set_state(base, UPSTREAM_CLOSED, "");
    }
    upstream_sessions_close(self);
    if (self->main.connection != NULL && !self->main.is_broken) {
        mcp_link_close(self->main.connection, main_left, self);
    }
    self->close_done = done;
    self->close_user = user;
    local_check_closed(self);
}

static void local_free(upstream *base)
{
    local *self = local_of(base);
    list_link *link;
    self->is_closing = true;
    self->close_done = NULL;
    stop_timers(self);
    local_fail_waiting(self, BAY_ERR_CANCELLED, "the gateway is closing");
    pool_fail(self, BAY_ERR_CANCELLED, "the gateway is closing");
    mcp_link_free(self->main.connection); /* fails what is open */
    while ((link = list_first(&self->sessions)) != NULL) {
        upstream_session_free(CONTAINER_OF(link, upstream_session, link));
    }
    loop_undefer(base->loop, &self->settle);
    upstream_subscriptions_forget(self, NULL);
    upstream_session_forget_client(&self->main);
    upstream_notify_fini(&self->main);
    if (self->own_http != NULL) {
        http_client_free(self->own_http);
    }
    upstream_credentials_free(self->credentials); /* after the links, whose calls wait for it */
    tls_free(self->tls);
    upstream_fini(base);
    mem_free(self);
}

static const upstream_ops local_ops = {
    .start = local_start,
    .close = local_close,
    .free = local_free,
    .send = local_send,
    .cancel = local_cancel,
    .pause = local_pause,
    .answer = local_answer,
    .tell = local_tell,
    .identity_gone = local_identity_gone,
    .client_answer = local_client_answer,
    .set_client = local_set_client,
    .subscribe = local_subscribe,
    .set_level = local_set_level,
};

bay_err upstream_new(const upstream_options *options, upstream **out)
{
    local *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    const config_restart *restart = &options->server->restart;
    circuit_init(&self->circuit,
                 &(circuit_rules){restart->attempts, restart->window_ms, restart->cool_off_ms});
    list_init(&self->waiting);
    list_init(&self->sessions);
    list_init(&self->subscriptions);
    for (size_t i = 0; i < UPSTREAM_FAIR_QUEUES; i++) {
        list_init(&self->fair_queues[i]);
    }
    upstream_session_init(&self->main, self, main_idle);
    self->main.inputs = MCP_INPUT_EVERYTHING;
    loop_timer_init(&self->restart, local_restart, self);
    loop_timer_init(&self->queue, pool_timer, self);
    self->settle = (loop_task){.function = local_settle, .argument = self};
    self->http = options->http;
    self->vault = options->vault;
    self->level = MCP_LOG_NONE;
    self->last_client_request = rand_u64(); /* a number of another owner is none of ours */
    bay_err err = upstream_init(&self->base, &local_ops, options);
    if (err != BAY_OK) {
        upstream_fini(&self->base);
        mem_free(self);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
