/* What the server tells by itself, gathered: a server may tell of changes a hundred thousand times
 * a second, and each word would be copied to every loop and every client. So at most every so often
 * what was told since is passed on, each thing once.
 *
 * The first word after a quiet time goes out at the end of the turn it came in. After many, the
 * pause grows: no more than UPSTREAM_NOTIFY_RATE updates leave a second.
 *
 * What the main link tells is for everybody; what another tells, for the client it serves alone. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "upstream/local.h"

static void pass_change(upstream_session *at, unsigned changes)
{
    static const struct {
        mcp_change change;
        mcp_method_id method;
    } rows[] = {
        {MCP_CHANGE_TOOLS, MCP_N_TOOLS_CHANGED},
        {MCP_CHANGE_PROMPTS, MCP_N_PROMPTS_CHANGED},
        {MCP_CHANGE_RESOURCES, MCP_N_RESOURCES_CHANGED},
    };
    upstream *base = &at->owner->base;
    if (at == &at->owner->main) {
        base->events->changed(base->user, base, (mcp_change)changes);
        upstream_publish_change(base, (mcp_change)changes);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if ((mcp_change_any((mcp_change)changes) & rows[i].change) != 0) {
            upstream_session_tell(at, &(upstream_client_message){.method = rows[i].method});
        }
    }
}

static void pass_update(upstream_session *at, bay_str uri)
{
    upstream *base = &at->owner->base;
    if (at == &at->owner->main) {
        base->events->updated(base->user, base, uri);
        upstream_publish_update(base, uri);
        return;
    }
    upstream_session_tell(at,
                          &(upstream_client_message){.method = MCP_N_RESOURCE_UPDATED, .uri = uri});
}

static void pass_on(void *argument)
{
    upstream_session *at = argument;
    upstream_notify *self = &at->notify;
    loop *runs_on = at->owner->base.loop;
    unsigned changes = self->changes;
    map updates = self->updates;
    size_t cursor = 0;
    bay_str uri;
    void *copy;
    loop_timer_stop(runs_on, &self->timer);
    self->is_due = false;
    self->changes = 0;
    map_init(&self->updates, LOCAL_MAX_SUBSCRIPTIONS);
    uint64_t pause = updates.len * 1000 / UPSTREAM_NOTIFY_RATE;
    self->after_ms =
        loop_now_ms(runs_on) + (pause > UPSTREAM_NOTIFY_MS ? pause : UPSTREAM_NOTIFY_MS);
    if (changes != 0) {
        pass_change(at, changes);
    }
    while (map_next(&updates, &cursor, &uri, &copy)) {
        pass_update(at, uri);
        mem_free(copy);
    }
    map_fini(&updates);
}

static void notify_arm(upstream_session *at)
{
    upstream_notify *self = &at->notify;
    loop *runs_on = at->owner->base.loop;
    uint64_t now = loop_now_ms(runs_on);
    if (self->is_due || at->owner->is_closing) {
        return;
    }
    self->is_due = true;
    if (self->after_ms <= now ||
        loop_timer_start(runs_on, &self->timer, self->after_ms - now) != BAY_OK) {
        loop_defer(runs_on, &self->task);
    }
}

void upstream_notify_changed(upstream_session *at, mcp_change change)
{
    at->notify.changes |= (unsigned)change;
    notify_arm(at);
}

void upstream_notify_updated(upstream_session *at, bay_str uri)
{
    upstream_notify *self = &at->notify;
    local *owner = at->owner;
    if (uri.len == 0 || uri.len > LOCAL_MAX_URI_BYTES || map_get(&self->updates, uri) != NULL) {
        return;
    }
    char *copy = mem_dup(uri.at, uri.len);
    if (copy == NULL || map_put(&self->updates, (bay_str){copy, uri.len}, copy, NULL) != BAY_OK) {
        mem_free(copy);
        if (!owner->has_dropped_news) {
            owner->has_dropped_news = true;
            LOG(LOG_WARN, "upstream", "%s: it tells of too many updates at once: some are dropped",
                owner->base.name);
        }
        return;
    }
    notify_arm(at);
}

void upstream_notify_init(upstream_session *at)
{
    upstream_notify *self = &at->notify;
    map_init(&self->updates, LOCAL_MAX_SUBSCRIPTIONS);
    loop_timer_init(&self->timer, pass_on, at);
    self->task = (loop_task){.function = pass_on, .argument = at};
}

void upstream_notify_stop(upstream_session *at)
{
    loop_timer_stop(at->owner->base.loop, &at->notify.timer);
    loop_undefer(at->owner->base.loop, &at->notify.task);
}

void upstream_notify_fini(upstream_session *at)
{
    size_t cursor = 0;
    bay_str uri;
    void *copy;
    upstream_notify_stop(at);
    while (map_next(&at->notify.updates, &cursor, &uri, &copy)) {
        mem_free(copy);
    }
    map_fini(&at->notify.updates);
}
