/* The owner of a link to a server: starts it when it is needed, restarts it with back-off, stops it
 * when it idles. Its calls are in upstream_calls.c. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "gateway/upstream_local.h"

local *local_of(upstream *self)
{
    return CONTAINER_OF(self, local, base);
}

/* ---- the link's life ------------------------------------------------------------------------- */

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

static void local_break(local *self, bay_err err, const char *text)
{
    uint64_t now = loop_now_ms(self->base.loop);
    if (self->base.state == UPSTREAM_READY && now - self->ready_at_ms >= LOCAL_HEALTHY_MS) {
        self->failures = 0;
    }
    bool was_ready = self->base.state == UPSTREAM_READY;
    self->failures++;
    uint32_t delay = back_off_ms(self);
    self->restart_at_ms = now + delay;
    self->base.process_id = 0;
    self->is_unreachable = false;
    self->is_unwritable = false;
    loop_timer_stop(self->base.loop, &self->idle);
    bay_err timer_err = loop_timer_start(self->base.loop, &self->restart, delay);
    char full[UPSTREAM_ERROR_BYTES];
    snprintf(full, sizeof(full), "%s", text != NULL && text[0] != '\0' ? text : bay_err_text(err));
    upstream_set_state(&self->base, UPSTREAM_BACKOFF, full);
    if (!was_ready || delay > LOCAL_PATIENCE_MS || timer_err != BAY_OK) {
        local_fail_waiting(self, err, full);
    }
}

static void local_reap(local *self)
{
    if (self->is_link_broken) {
        mcp_link *old = self->link;
        self->link = NULL;
        self->is_link_broken = false;
        self->is_link_closing = false;
        mcp_link_free(old);
    }
}

static void local_settle(void *argument)
{
    local *self = argument;
    /* calls that are still under way on other connections have a server that answers them */
    if (self->is_unreachable && self->open_count == 0 && self->base.state == UPSTREAM_READY) {
        self->is_link_broken = true;
        local_break(self, BAY_CONNECT, "nobody answers at its URL");
    }
    local_reap(self);
    if (self->base.state == UPSTREAM_READY || self->base.state == UPSTREAM_STARTING) {
        local_hand_over_waiting(self);
    }
}

static void link_ready(void *user)
{
    local *self = user;
    mcp_client *client = mcp_link_client(self->link);
    upstream_state state = self->base.state;
    if (self->is_closing || self->is_link_broken || self->is_link_closing ||
        (state != UPSTREAM_STARTING && state != UPSTREAM_READY)) {
        return;
    }
    self->ready_at_ms = loop_now_ms(self->base.loop);
    self->base.process_id = mcp_link_process_id(self->link);
    upstream_learn(&self->base, mcp_client_revision(client),
                   json_raw(mcp_client_server_capabilities(client)));
    local_renew_wishes(self, client, self->ready_at_ms);
    if (state == UPSTREAM_READY) {
        upstream_set_state(&self->base, UPSTREAM_STARTING, ""); /* re-probed: another era */
    }
    upstream_set_state(&self->base, UPSTREAM_READY, "");
    local_arm_idle(self);
}

static void link_broken(void *user, bay_err err, const char *text)
{
    local *self = user;
    if (self->is_link_broken || self->is_link_closing || self->is_closing) {
        return;
    }
    self->is_link_broken = true;
    loop_defer(self->base.loop, &self->settle);
    local_break(self, err, text);
}

static void link_changed(void *user, mcp_change change)
{
    local *self = user;
    self->base.events->changed(self->base.user, &self->base, change);
    upstream_publish_change(&self->base, change);
}

static void link_updated(void *user, bay_str uri)
{
    local *self = user;
    self->base.events->updated(self->base.user, &self->base, uri);
    upstream_publish_update(&self->base, uri);
}

static void link_logged(void *user, json_val params)
{
    local *self = user;
    bay_str text = json_raw(params);
    /* tied to no call, so to no client: telling it to all would tell one client of another's work
     */
    LOG(LOG_DEBUG, "upstream", "%s: log message: %.*s", self->base.name,
        (int)(text.len < 600 ? text.len : 600), text.at);
}

static const mcp_client_events link_events = {
    .ready = link_ready,
    .broken = link_broken,
    .changed = link_changed,
    .updated = link_updated,
    .logged = link_logged,
};

void local_begin(local *self)
{
    bay_diag diag = {0};
    loop_timer_stop(self->base.loop, &self->restart);
    /* one that is still on its way out after idling has had its time */
    self->is_link_broken = self->link != NULL;
    local_reap(self);
    self->is_unwritable = false;
    upstream_set_state(&self->base, UPSTREAM_STARTING, NULL);
    if (self->failures > 0) {
        self->base.restarts++;
    }
    bay_err err = local_open(self, &link_events, &diag);
    if (err != BAY_OK) {
        self->link = NULL;
        local_break(self, err, diag.text);
        return;
    }
    self->base.process_id = mcp_link_process_id(self->link);
    local_hand_over_waiting(self);
}

static void local_restart(void *argument)
{
    local *self = argument;
    if (self->base.state == UPSTREAM_BACKOFF) {
        local_begin(self);
    } else if (self->base.state == UPSTREAM_READY && self->is_unwritable) {
        self->is_link_broken = true;
        loop_defer(self->base.loop, &self->settle);
        local_break(self, BAY_CLOSED, "it reads no more requests");
    }
}

static void local_closed(local *self)
{
    if (self->close_done != NULL) {
        void (*done)(void *argument) = self->close_done;
        self->close_done = NULL;
        done(self->close_user);
    }
}

static void link_left(void *user)
{
    local *self = user;
    if (self->is_closing) {
        local_closed(self);
        return;
    }
    self->is_link_broken = true; /* stopped: free it outside this callback */
    loop_defer(self->base.loop, &self->settle);
}

/* Subscriptions keep a server awake: a stopped one tells of no update. */
static void local_idle(void *argument)
{
    local *self = argument;
    if (self->base.state != UPSTREAM_READY || self->open_count > 0 || self->waiting_count > 0 ||
        self->subscription_count > 0 || self->link == NULL) {
        return;
    }
    self->base.process_id = 0;
    self->is_link_closing = true;
    upstream_set_state(&self->base, UPSTREAM_STOPPED, "stopped after idling");
    mcp_link_close(self->link, link_left, self);
}

/* ---- the interface --------------------------------------------------------------------------- */

static void local_start(upstream *base)
{
    local *self = local_of(base);
    if (base->state == UPSTREAM_STOPPED && self->link == NULL && !self->is_closing) {
        local_begin(self);
    }
}

static void local_close(upstream *base, void (*done)(void *user), void *user)
{
    local *self = local_of(base);
    self->is_closing = true;
    self->close_done = done;
    self->close_user = user;
    loop_timer_stop(base->loop, &self->restart);
    loop_timer_stop(base->loop, &self->idle);
    local_fail_waiting(self, BAY_CLOSED, "the server is leaving the gateway");
    if (base->state != UPSTREAM_CLOSED) {
        upstream_set_state(base, UPSTREAM_CLOSED, "");
    }
    if (self->link != NULL && !self->is_link_broken) {
        mcp_link_close(self->link, link_left, self);
    } else {
        local_closed(self);
    }
}

static void local_free(upstream *base)
{
    local *self = local_of(base);
    self->is_closing = true;
    self->close_done = NULL;
    loop_timer_stop(base->loop, &self->restart);
    loop_timer_stop(base->loop, &self->idle);
    local_fail_waiting(self, BAY_CANCELLED, "the gateway is closing");
    mcp_link_free(self->link); /* fails what is open */
    loop_undefer(base->loop, &self->settle);
    local_forget_wishes(self);
    if (self->own_http != NULL) {
        http_client_free(self->own_http);
    }
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
    .subscribe = local_subscribe,
    .set_level = local_set_level,
};

bay_err upstream_new(const upstream_options *options, upstream **out)
{
    local *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    list_init(&self->waiting);
    list_init(&self->open);
    list_init(&self->subscriptions);
    loop_timer_init(&self->restart, local_restart, self);
    loop_timer_init(&self->idle, local_idle, self);
    self->settle = (loop_task){.function = local_settle, .argument = self};
    self->http = options->http;
    self->level = MCP_LOG_NONE;
    bay_err err = upstream_init(&self->base, &local_ops, options);
    if (err != BAY_OK) {
        upstream_fini(&self->base);
        mem_free(self);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
