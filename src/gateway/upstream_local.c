/* The owner of a link to a server: starts it when it is needed, restarts it with back-off, stops it
 * when it idles, and hands calls to its client engine.
 *
 * A call waits in `waiting` while there is no link (a start is due within a moment), then is with
 * the engine (`open`), which itself holds it until the server is ready. A call that the engine
 * failed and that certainly was not sent is tried once more on the next link. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "gateway/upstream_parts.h"
#include "transport/mcp_link.h"

enum {
    PATIENCE_MS = 2000, /* calls wait for a restart this near; else they fail at once */
    HEALTHY_MS = 10000, /* ready for so long: the next crash starts with the least back-off */
    MOST_ATTEMPTS = 2,
    MAX_SUBSCRIPTIONS = 4096,
};

typedef struct local {
    upstream base;
    http_client *http;
    mcp_link *link;
    list waiting;
    list open;
    size_t waiting_count;
    size_t open_count;
    uint32_t failures; /* in a row */
    uint64_t ready_at_ms;
    uint64_t restart_at_ms;
    loop_timer restart;
    loop_timer idle;
    loop_task settle; /* what must not happen inside the link's own callbacks */
    list subscriptions;
    size_t subscription_count;
    mcp_log_level level;
    bool is_link_broken;
    bool is_link_closing; /* stopped after idling */
    bool is_unreachable;  /* a call found nobody at the URL */
    bool is_closing;
    void (*close_done)(void *user);
    void *close_user;
} local;

typedef struct subscription {
    list_link link;
    bay_str uri;
    char bytes[];
} subscription;

static local *local_of(upstream *self)
{
    return CONTAINER_OF(self, local, base);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static void call_wait(local *self, upstream_call *call)
{
    list_push(&self->waiting, &call->link);
    self->waiting_count++;
}

static void fail_waiting(local *self, bay_err err, const char *text)
{
    list_link *link;
    while ((link = list_pop(&self->waiting)) != NULL) {
        self->waiting_count--;
        upstream_call_fail(CONTAINER_OF(link, upstream_call, link), err, false, text);
    }
}

static void arm_idle(local *self)
{
    uint32_t idle_ms = self->base.server->idle_stop_ms;
    if (idle_ms > 0 && self->open_count == 0 && self->base.state == UPSTREAM_READY) {
        err_ignore(loop_timer_start(self->base.loop, &self->idle, idle_ms));
    }
}

static void call_leave(local *self, upstream_call *call)
{
    list_remove(&call->link);
    call->call = NULL;
    self->open_count--;
    arm_idle(self);
}

static void call_notified(void *user, mcp_call *engine_call, const mcp_method *method,
                          json_val params)
{
    upstream_call *call = user;
    (void)engine_call;
    call->events->notified(call->user, method->id, params);
}

/* Certainly not executed, and another try is near. */
static bool call_may_retry(const local *self, const upstream_call *call, const mcp_outcome *outcome)
{
    return outcome->kind == MCP_OUTCOME_FAILED && !outcome->was_sent && !self->is_closing &&
           bay_err_class_of(outcome->err) == BAY_CLASS_RETRY && outcome->err != BAY_TIMEOUT &&
           outcome->err != BAY_BUSY && call->attempts < MOST_ATTEMPTS && self->base.is_settled &&
           self->base.state != UPSTREAM_STARTING;
}

static void call_done(void *user, mcp_call *engine_call, const mcp_outcome *outcome)
{
    upstream_call *call = user;
    local *self = local_of(call->upstream);
    (void)engine_call;
    call_leave(self, call);
    bool is_unreachable = outcome->kind == MCP_OUTCOME_FAILED && !outcome->was_sent &&
                          (outcome->err == BAY_CONNECT || outcome->err == BAY_RESOLVE);
    if (is_unreachable && !self->is_closing) {
        self->is_unreachable = true;
        loop_defer(self->base.loop, &self->settle);
    }
    if (call_may_retry(self, call, outcome)) {
        call_wait(self, call);
        loop_defer(self->base.loop, &self->settle);
        return;
    }
    upstream_call_end(call);
    call->events->done(call->user, outcome);
}

static const mcp_call_events call_events = {.notified = call_notified, .done = call_done};

static void call_hand_over(local *self, upstream_call *call)
{
    bay_diag diag = {0};
    loop_timer_stop(self->base.loop, &self->idle);
    call->attempts++;
    list_push(&self->open, &call->link);
    self->open_count++;
    bay_err err = mcp_client_call(mcp_link_client(self->link), &call->spec, &call_events, call,
                                  loop_now_ms(self->base.loop), &call->call, &diag);
    if (err != BAY_OK) {
        call_leave(self, call);
        upstream_call_fail(call, err, false, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

static void hand_over_waiting(local *self)
{
    list_link *link;
    while (self->link != NULL && !self->is_link_broken &&
           (link = list_pop(&self->waiting)) != NULL) {
        self->waiting_count--;
        call_hand_over(self, CONTAINER_OF(link, upstream_call, link));
    }
}

/* ---- the link's life ---------------------------------------------------------------------------
 */

static uint32_t back_off_ms(const local *self)
{
    uint64_t delay = self->base.server->restart.min_delay_ms;
    for (uint32_t i = 1; i < self->failures && delay < self->base.server->restart.max_delay_ms;
         i++) {
        delay *= 2;
    }
    if (delay > self->base.server->restart.max_delay_ms) {
        delay = self->base.server->restart.max_delay_ms;
    }
    return (uint32_t)(delay - delay / 4 + rand_u64() % (delay / 2 + 1)); /* ± a quarter */
}

static void local_break(local *self, bay_err err, const char *text)
{
    uint64_t now = loop_now_ms(self->base.loop);
    if (self->base.state == UPSTREAM_READY && now - self->ready_at_ms >= HEALTHY_MS) {
        self->failures = 0;
    }
    bool was_ready = self->base.state == UPSTREAM_READY;
    self->failures++;
    uint32_t delay = back_off_ms(self);
    self->restart_at_ms = now + delay;
    self->base.process_id = 0;
    loop_timer_stop(self->base.loop, &self->idle);
    err_ignore(loop_timer_start(self->base.loop, &self->restart, delay));
    char full[UPSTREAM_ERROR_BYTES];
    snprintf(full, sizeof(full), "%s", text != NULL && text[0] != '\0' ? text : bay_err_text(err));
    upstream_set_state(&self->base, UPSTREAM_BACKOFF, full);
    if (!was_ready || delay > PATIENCE_MS) {
        fail_waiting(self, err, full);
    }
}

static void local_reap(local *self)
{
    if (self->is_link_broken) {
        mcp_link_free(self->link);
        self->link = NULL;
        self->is_link_broken = false;
        self->is_link_closing = false;
    }
}

static void local_settle(void *argument)
{
    local *self = argument;
    if (self->is_unreachable && self->base.state == UPSTREAM_READY) {
        self->is_link_broken = true;
        local_break(self, BAY_CONNECT, "nobody answers at its URL");
    }
    self->is_unreachable = false;
    local_reap(self);
    if (self->base.state == UPSTREAM_READY || self->base.state == UPSTREAM_STARTING) {
        hand_over_waiting(self);
    }
}

static void link_ready(void *user)
{
    local *self = user;
    mcp_client *client = mcp_link_client(self->link);
    self->ready_at_ms = loop_now_ms(self->base.loop);
    self->base.process_id = mcp_link_process_id(self->link);
    upstream_learn(&self->base, mcp_client_revision(client),
                   json_raw(mcp_client_server_capabilities(client)));
    LIST_EACH(at, &self->subscriptions)
    {
        subscription *wanted = CONTAINER_OF(at, subscription, link);
        err_ignore(mcp_client_subscribe(client, wanted->uri, true, self->ready_at_ms));
    }
    if (self->level != MCP_LOG_NONE) {
        mcp_client_set_level(client, self->level, self->ready_at_ms);
    }
    if (self->base.state == UPSTREAM_STOPPED || self->is_closing) {
        return;
    }
    if (self->base.state == UPSTREAM_READY) {
        upstream_set_state(&self->base, UPSTREAM_STARTING, ""); /* re-probed: another era */
    }
    upstream_set_state(&self->base, UPSTREAM_READY, "");
    arm_idle(self);
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

static mcp_link_options link_options(local *self)
{
    const config *settings = self->base.config;
    const config_server *server = self->base.server;
    mcp_link_options options = {.events = &link_events, .user = self};
    mcp_client_options *client = &options.client;
    *client = (mcp_client_options){
        .name = STR("patchbay"),
        .version = str_of(bay_version()),
        .oldest = MCP_REV_2024_11_05,
        .newest = MCP_LATEST,
        .remembered = self->base.revision,
        .probe_timeout_ms = settings->timeouts.probe_ms,
        .call_timeout_ms = server->timeout_ms > 0 ? server->timeout_ms : settings->timeouts.call_ms,
        .max_total_ms = settings->timeouts.call_total_ms,
        .max_calls = UPSTREAM_MAX_WAITING,
        .max_message_bytes = settings->limits.message_bytes,
        .wants_changes = true,
    };
    if (server->protocol == CONFIG_PROTOCOL_LEGACY) {
        client->newest = MCP_LATEST_LEGACY;
    } else if (server->protocol == CONFIG_PROTOCOL_MODERN) {
        client->oldest = MCP_LATEST_LEGACY + 1;
    } else if (server->protocol >= CONFIG_PROTOCOL_FIRST_REVISION) {
        client->oldest = client->newest =
            (mcp_revision_id)(server->protocol - CONFIG_PROTOCOL_FIRST_REVISION);
    }
    return options;
}

/* argv and environment of the process, in one arena. The inherited environment first; names given
 * again replace it. */
static bay_err process_arguments(const config_server *server, arena *memory, const char ***out_argv,
                                 const char ***out_env)
{
    extern char **environ;
    size_t inherited = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    const char **argv = arena_array(memory, server->args.count + 2, sizeof(*argv));
    const char **env = arena_array(memory, inherited + server->env.count + 1, sizeof(*env));
    if (argv == NULL || env == NULL) {
        return BAY_NOMEM;
    }
    argv[0] = server->command.at;
    for (size_t i = 0; i < server->args.count; i++) {
        argv[i + 1] = server->args.at[i].at;
    }
    size_t count = 0;
    for (size_t i = 0; i < inherited; i++) {
        bay_str name = str_head(str_of(environ[i]), strcspn(environ[i], "="));
        bool is_replaced = false;
        for (size_t k = 0; k < server->env.count; k++) {
            is_replaced = is_replaced || str_eq(server->env.at[k].name, name);
        }
        if (!is_replaced) {
            env[count++] = environ[i];
        }
    }
    for (size_t i = 0; i < server->env.count; i++) {
        const config_pair *pair = &server->env.at[i];
        size_t len = pair->name.len + 1 + pair->value.len;
        char *text = arena_alloc(memory, len + 1);
        if (text == NULL) {
            return BAY_NOMEM;
        }
        memcpy(text, pair->name.at, pair->name.len);
        text[pair->name.len] = '=';
        memcpy(text + pair->name.len + 1, pair->value.at, pair->value.len);
        text[len] = '\0';
        env[count++] = text;
    }
    *out_argv = argv;
    *out_env = env;
    return BAY_OK;
}

/* Our copies of the configured values (the last ones) may be secrets. */
static void wipe_environment(const char **env, size_t configured)
{
    size_t count = 0;
    while (env != NULL && env[count] != NULL) {
        count++;
    }
    for (size_t i = 0; i < configured && i < count; i++) {
        char *text = (char *)(uintptr_t)env[count - 1 - i];
        mem_wipe(text, strlen(text));
    }
}

static bay_err open_process(local *self, const mcp_link_options *options, bay_diag *diag)
{
    const config_server *server = self->base.server;
    arena memory;
    arena_init(&memory, 16 << 20);
    const char **argv = NULL;
    const char **env = NULL;
    process_options child = {
        .cwd = server->cwd.len > 0 ? server->cwd.at : NULL,
        .line_bytes = self->base.config->limits.message_bytes,
        .queue_bytes = self->base.config->limits.message_bytes,
    };
    bay_err err = process_arguments(server, &memory, &argv, &env);
    if (err == BAY_OK) {
        child.argv = argv;
        child.env = env;
        err =
            mcp_link_open_stdio(self->base.loop, &child, server->name, options, &self->link, diag);
    }
    wipe_environment(env, server->env.count);
    arena_fini(&memory);
    return err;
}

static bay_err open_url(local *self, const mcp_link_options *options, bay_diag *diag)
{
    const config_server *server = self->base.server;
    http_field *fields = mem_array(server->headers.count + 1, sizeof(*fields));
    if (fields == NULL) {
        return BAY_NOMEM;
    }
    for (size_t i = 0; i < server->headers.count; i++) {
        fields[i] = (http_field){server->headers.at[i].name, server->headers.at[i].value};
    }
    bay_err err =
        mcp_link_open_http(self->base.loop, self->http, server->url, fields, server->headers.count,
                           server->transport == CONFIG_TRANSPORT_SSE, options, &self->link, diag);
    mem_free(fields);
    return err;
}

/* STARTING, and what waits goes to the new engine. */
static void local_begin(local *self)
{
    bay_diag diag = {0};
    loop_timer_stop(self->base.loop, &self->restart);
    local_reap(self);
    upstream_set_state(&self->base, UPSTREAM_STARTING, NULL);
    if (self->failures > 0) {
        self->base.restarts++;
    }
    mcp_link_options options = link_options(self);
    bay_err err = self->base.server->command.len > 0 ? open_process(self, &options, &diag)
                                                     : open_url(self, &options, &diag);
    if (err != BAY_OK) {
        self->link = NULL;
        local_break(self, err, diag.text);
        return;
    }
    self->base.process_id = mcp_link_process_id(self->link);
    hand_over_waiting(self);
}

static void local_restart(void *argument)
{
    local *self = argument;
    if (self->base.state == UPSTREAM_BACKOFF) {
        local_begin(self);
    }
}

static void local_stopped(void *user)
{
    local *self = user;
    self->is_link_broken = true; /* closed: reap it outside this callback */
    loop_defer(self->base.loop, &self->settle);
}

static void local_idle(void *argument)
{
    local *self = argument;
    if (self->base.state != UPSTREAM_READY || self->open_count > 0) {
        return;
    }
    self->base.process_id = 0;
    self->is_link_closing = true;
    upstream_set_state(&self->base, UPSTREAM_STOPPED, "stopped after idling");
    mcp_link_close(self->link, local_stopped, self);
}

/* ---- the interface ------------------------------------------------------------------------------
 */

static void local_start(upstream *base)
{
    local *self = local_of(base);
    if (base->state == UPSTREAM_STOPPED && self->link == NULL) {
        local_begin(self);
    }
}

static void local_send(upstream *base, upstream_call *call)
{
    local *self = local_of(base);
    uint64_t now = loop_now_ms(base->loop);
    call->attempts = 0;
    if (base->state == UPSTREAM_CLOSED || self->is_closing) {
        upstream_call_fail(call, BAY_CLOSED, false,
                           "the server was removed from the configuration");
        return;
    }
    if (self->waiting_count >= UPSTREAM_MAX_WAITING) {
        upstream_call_fail(call, BAY_BUSY, false, "too many calls wait for this server");
        return;
    }
    if (base->state == UPSTREAM_BACKOFF && self->restart_at_ms > now + PATIENCE_MS) {
        upstream_call_fail(call, BAY_CLOSED, false, base->error);
        return;
    }
    if (base->state == UPSTREAM_READY || base->state == UPSTREAM_STARTING) {
        call_hand_over(self, call);
        return;
    }
    call_wait(self, call);
    if (base->state == UPSTREAM_STOPPED) {
        /* an old link may still be closing: the next start frees it at once */
        self->is_link_broken = self->is_link_broken || self->link != NULL;
        local_begin(self);
    }
}

static void local_cancel(upstream_call *call, bay_str reason)
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

static void local_pause(upstream_call *call, bool is_paused)
{
    if (call->call != NULL) {
        mcp_call_pause(call->call, is_paused);
    }
}

static subscription *subscription_find(local *self, bay_str uri)
{
    LIST_EACH(at, &self->subscriptions)
    {
        subscription *wanted = CONTAINER_OF(at, subscription, link);
        if (str_eq(wanted->uri, uri)) {
            return wanted;
        }
    }
    return NULL;
}

static void local_subscribe(upstream *base, bay_str uri, bool is_wanted)
{
    local *self = local_of(base);
    subscription *known = subscription_find(self, uri);
    if (is_wanted == (known != NULL)) {
        return;
    }
    if (is_wanted) {
        known = self->subscription_count < MAX_SUBSCRIPTIONS ? mem_alloc(sizeof(*known) + uri.len)
                                                             : NULL;
        if (known == NULL) {
            LOG(LOG_WARN, "upstream", "%s: a subscription was dropped: too many", base->name);
            return;
        }
        memcpy(known->bytes, uri.at, uri.len);
        known->uri = (bay_str){known->bytes, uri.len};
        list_push(&self->subscriptions, &known->link);
        self->subscription_count++;
    }
    if (base->state == UPSTREAM_READY) {
        err_ignore(mcp_client_subscribe(mcp_link_client(self->link), uri, is_wanted,
                                        loop_now_ms(base->loop)));
    }
    if (!is_wanted) {
        list_remove(&known->link);
        mem_free(known);
        self->subscription_count--;
    }
}

static void local_set_level(upstream *base, mcp_log_level level)
{
    local *self = local_of(base);
    if (level >= self->level) {
        return; /* the most verbose wish counts; each client's own level filters what it gets */
    }
    self->level = level;
    if (base->state == UPSTREAM_READY) {
        mcp_client_set_level(mcp_link_client(self->link), level, loop_now_ms(base->loop));
    }
}

static void local_closed(void *user)
{
    local *self = user;
    if (self->close_done != NULL) {
        void (*done)(void *argument) = self->close_done;
        self->close_done = NULL;
        done(self->close_user);
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
    fail_waiting(self, BAY_CLOSED, "the gateway is closing this server");
    if (base->state != UPSTREAM_CLOSED) {
        upstream_set_state(base, UPSTREAM_CLOSED, "");
    }
    if (self->link != NULL && !self->is_link_broken) {
        mcp_link_close(self->link, local_closed, self);
    } else {
        local_closed(self);
    }
}

static void local_free(upstream *base)
{
    local *self = local_of(base);
    self->is_closing = true;
    fail_waiting(self, BAY_CANCELLED, "the gateway is closing");
    loop_timer_stop(base->loop, &self->restart);
    loop_timer_stop(base->loop, &self->idle);
    loop_undefer(base->loop, &self->settle);
    if (self->link != NULL) {
        mcp_link_free(self->link);
    }
    list_link *link;
    while ((link = list_pop(&self->subscriptions)) != NULL) {
        mem_free(CONTAINER_OF(link, subscription, link));
    }
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
