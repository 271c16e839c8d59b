/* The life of the links besides the main one: opened for a call that needs one of their kind, used
 * by its like, stopped when they idle or when another kind needs the room.
 *
 *   opening --ready--> ready --idle, evicted, its client gone--> leaving --> freed
 *      \________________\____________ broken ____________________________/
 *
 * What breaks is not made again before a call needs it. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/local.h"

bay_str upstream_session_identity(const upstream_session *self)
{
    return (bay_str){self->identity, self->identity_len};
}

bool upstream_session_is_own(const upstream_session *self)
{
    bool is_main = self == &self->owner->main;
    return is_main ? self->owner->has_one_client : self->identity != NULL && !self->is_exclusive;
}

static bool set_identity(upstream_session *self, bay_str identity)
{
    mem_free(self->identity);
    self->identity = mem_dup(identity.at, identity.len);
    self->identity_len = identity.len;
    return self->identity != NULL;
}

bool upstream_session_is_usable(const upstream_session *self)
{
    return self->connection != NULL && !self->is_broken && !self->is_leaving &&
           !self->is_unwritable && !self->is_draining;
}

bool upstream_session_serves(const upstream_session *self, const share_key *key,
                             const upstream_call *call)
{
    bool is_exclusive = key->kind == SHARE_EXCLUSIVE;
    if (key->has_rights != (self->principal != NULL) ||
        (key->has_rights && memcmp(self->rights, call->rights, sizeof(self->rights)) != 0)) {
        return false;
    }
    if (!upstream_session_is_usable(self) || self->inputs != key->inputs ||
        self->is_exclusive != is_exclusive || (is_exclusive && self->open_count > 0)) {
        return false;
    }
    return self->identity != NULL ? str_eq(upstream_session_identity(self), call->affinity.identity)
                                  : !key->is_personal;
}

/* It ends, and that says nothing of the server. */
static void give_up_trial(upstream_session *self)
{
    if (self->is_trial) {
        self->is_trial = false;
        circuit_abandoned(&self->owner->circuit, loop_now_ms(self->owner->base.loop));
    }
}

/* ---- its link's events ----------------------------------------------------------------------- */

static void upstream_session_ready(void *user)
{
    upstream_session *self = user;
    local *owner = self->owner;
    if (self->is_broken || self->is_leaving) {
        return;
    }
    self->is_ready = true;
    self->is_trial = false;
    circuit_succeeded(&owner->circuit);
    upstream_subscriptions_renew(self);
    upstream_session_introduce(self);
}

static void upstream_session_broken(void *user, bay_err err, const char *text)
{
    upstream_session *self = user;
    local *owner = self->owner;
    if (self->is_broken || self->is_leaving || owner->is_closing) {
        return;
    }
    if (log_write_paced(&owner->session_pace, loop_now_ms(owner->base.loop), LOG_WARN, "upstream",
                        "%s: one of its sessions ended: %s", owner->base.name,
                        text != NULL && text[0] != '\0' ? text : bay_err_text(err))) {
        mcp_link_log_last_lines(self->connection);
    }
    self->is_broken = true;
    upstream_session_take_leave(self);
    if (!self->is_ready) {
        owner->session_after_ms =
            loop_now_ms(owner->base.loop) + owner->base.server->restart.min_delay_ms;
    }
    if (err != BAY_ERR_LIMIT) { /* ended by us, for what it said */
        self->is_trial = false;
        local_count_crash(owner);
    }
    give_up_trial(self);
    loop_defer(owner->base.loop, &owner->settle);
}

static bool session_asked_unattributed(void *user, const rpc_message *request)
{
    return upstream_session_asked(user, NULL, request);
}

static void upstream_session_elicited(void *user, json_val params)
{
    local *owner = ((upstream_session *)user)->owner;
    upstream_tell_elicited(&owner->base, params);
}

/* What a session tells that several clients use is the main link's to tell. */
static void session_changed(void *user, mcp_change change)
{
    if (upstream_session_is_own(user)) {
        upstream_notify_changed(user, change);
    }
}

static void session_updated(void *user, bay_str uri)
{
    if (upstream_session_is_own(user)) {
        upstream_notify_updated(user, uri);
    }
}

static void session_logged(void *user, json_val params)
{
    upstream_session_logged(user, params);
}

static const mcp_client_events upstream_session_events = {
    .ready = upstream_session_ready,
    .broken = upstream_session_broken,
    .changed = session_changed,
    .updated = session_updated,
    .logged = session_logged,
    .asked = session_asked_unattributed,
    .withdrawn = upstream_session_withdrawn,
    .elicited = upstream_session_elicited,
};

/* ---- life ------------------------------------------------------------------------------------ */

static void upstream_session_arm_idle(upstream_session *self)
{
    uint32_t idle_ms = self->owner->base.server->idle_stop_ms;
    idle_ms = idle_ms > 0 ? idle_ms : LOCAL_SESSION_IDLE_MS;
    /* without memory it runs on until another kind needs the room */
    err_ignore(loop_timer_start(self->owner->base.loop, &self->idle, idle_ms));
}

static void upstream_session_idle(void *argument)
{
    upstream_session *self = argument;
    if (self->open_count > 0 || !upstream_session_is_usable(self)) {
        return;
    }
    if (upstream_session_is_own(self) &&
        upstream_subscriptions_has(self->owner, upstream_session_identity(self))) {
        upstream_session_arm_idle(self); /* a stopped one tells of no update */
    } else {
        LOG(LOG_DEBUG, "upstream", "%s: a session is stopped after idling", self->owner->base.name);
        upstream_session_close(self);
    }
}

void upstream_session_init(upstream_session *self, local *owner, void (*idle)(void *argument))
{
    self->owner = owner;
    list_init(&self->open);
    list_init(&self->input_requests);
    loop_timer_init(&self->idle, idle, self);
    upstream_notify_init(self);
}

static void session_release(upstream_session *self)
{
    upstream_notify_fini(self);
    principal_unref(self->principal);
    mem_free(self->identity);
    mem_free(self);
}

bay_err upstream_session_open(local *owner, const share_key *key, const upstream_call *of,
                              upstream_session **out, bay_diag *diag)
{
    upstream_session *self = mem_zalloc(sizeof(*self));
    if (self == NULL || (key->is_personal && !set_identity(self, of->affinity.identity))) {
        mem_free(self);
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a session");
    }
    upstream_session_init(self, owner, upstream_session_idle);
    self->has_session = of->affinity.has_session;
    self->home = of->affinity.home;
    self->inputs = key->inputs;
    self->is_exclusive = key->kind == SHARE_EXCLUSIVE;
    if (key->has_rights) {
        self->principal = principal_ref(of->affinity.principal);
        memcpy(self->rights, of->rights, sizeof(self->rights));
    }
    self->is_trial = owner->circuit.state == CIRCUIT_OPEN;
    circuit_started(&owner->circuit);
    bay_err err = local_open(owner, self, &upstream_session_events, diag);
    if (err != BAY_OK) {
        owner->session_after_ms =
            loop_now_ms(owner->base.loop) + owner->base.server->restart.min_delay_ms;
        local_count_crash(owner);
        session_release(self);
        return err;
    }
    list_push(&owner->sessions, &self->link);
    owner->session_count++;
    local_tally(owner);
    *out = self;
    return BAY_OK;
}

void upstream_session_rest(upstream_session *self)
{
    local *owner = self->owner;
    list_remove(&self->link);
    list_push(&owner->sessions, &self->link);
    if (owner->is_closing || self->is_broken || self->is_leaving) {
        return;
    }
    if (self->open_count == 0 && (self->is_draining || self->is_unwritable)) {
        loop_defer(owner->base.loop, &owner->settle);
    } else if (self->open_count == 0) {
        upstream_session_arm_idle(self);
    }
    if (owner->queued_count > 0) {
        loop_defer(owner->base.loop, &owner->settle);
    }
}

void upstream_session_unbind(upstream_session *self, const upstream_affinity *of)
{
    const config *settings = self->owner->base.config;
    uint32_t own = self->owner->base.server->timeout_ms;
    self->loose_until_ms =
        loop_now_ms(self->owner->base.loop) + (own > 0 ? own : settings->timeouts.call_ms);
    if (!self->is_exclusive) {
        return;
    }
    /* nobody else may be asked what that call asks yet */
    if (of->is_stateless || (self->identity == NULL && !set_identity(self, of->identity))) {
        self->is_draining = true;
    }
}

static void upstream_session_left(void *user)
{
    upstream_session *self = user;
    self->is_broken = true;
    if (self->owner->is_closing) {
        local_check_closed(self->owner);
        return;
    }
    loop_defer(self->owner->base.loop, &self->owner->settle);
}

void upstream_session_close(upstream_session *self)
{
    if (self->is_leaving || self->is_broken) {
        return;
    }
    self->is_leaving = true;
    upstream_session_take_leave(self);
    give_up_trial(self);
    loop_timer_stop(self->owner->base.loop, &self->idle);
    mcp_link_close(self->connection, upstream_session_left, self);
}

void upstream_session_free(upstream_session *self)
{
    local *owner = self->owner;
    loop_timer_stop(owner->base.loop, &self->idle);
    mcp_link_free(self->connection); /* fails what is open */
    upstream_session_forget_client(self);
    upstream_session_take_leave(self);
    list_remove(&self->link);
    owner->session_count--;
    session_release(self);
}

static bool is_broken(const upstream_session *self)
{
    return self->is_broken;
}

static bool is_staying(const upstream_session *self)
{
    return !self->is_broken && !self->is_leaving;
}

/* What a call's end causes may move any session in the list: looked up anew each time. */
static upstream_session *first_that(const local *owner, bool (*has)(const upstream_session *self))
{
    LIST_EACH(link, &owner->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (has(at)) {
            return at;
        }
    }
    return NULL;
}

void upstream_sessions_close(local *owner)
{
    upstream_session *staying;
    while ((staying = first_that(owner, is_staying)) != NULL) {
        upstream_session_close(staying);
    }
}

void upstream_sessions_reap(local *owner)
{
    upstream_session *broken;
    while ((broken = first_that(owner, is_broken)) != NULL) {
        upstream_session_free(broken);
    }
    LIST_EACH(link, &owner->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (at->open_count == 0 && (at->is_draining || at->is_unwritable)) {
            upstream_session_close(at);
        }
    }
}

/* ---- a client's session ---------------------------------------------------------------------- */

static bool is_of(const upstream_session *self, bay_str identity)
{
    return self->identity != NULL && str_eq(upstream_session_identity(self), identity);
}

void local_tell(upstream *base, bay_str identity, bay_str method, bay_str params)
{
    local *self = local_of(base);
    LIST_EACH(link, &self->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (is_of(at, identity) && at->is_ready && upstream_session_is_usable(at)) {
            /* of another revision: it knows no such thing, and misses nothing */
            err_ignore(mcp_client_tell(mcp_link_client(at->connection), method, params,
                                       loop_now_ms(base->loop), NULL));
        }
    }
}

void local_identity_gone(upstream *base, bay_str identity)
{
    local *self = local_of(base);
    upstream_subscriptions_forget(self, &identity);
    LIST_EACH(link, &self->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (is_of(at, identity)) {
            at->is_draining = true;
            loop_defer(base->loop, &self->settle);
        }
    }
}
