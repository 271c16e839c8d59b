/* What the server tells by itself, gathered: a server may tell of changes a hundred thousand times
 * a second, and each word would be copied to every loop and every client. So at most every so often
 * what was told since is passed on, each thing once.
 *
 * The first word after a quiet time goes out at the end of the turn it came in. After many, the
 * pause grows: no more than UPSTREAM_NOTIFY_RATE updates leave a second. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "upstream/local.h"

static void pass_on(void *argument)
{
    local *self = argument;
    unsigned changes = self->changes;
    map updates = self->updates;
    size_t cursor = 0;
    bay_str uri;
    void *copy;
    loop_timer_stop(self->base.loop, &self->notify_timer);
    self->is_notify_due = false;
    self->changes = 0;
    map_init(&self->updates, LOCAL_MAX_SUBSCRIPTIONS);
    uint64_t pause = updates.len * 1000 / UPSTREAM_NOTIFY_RATE;
    self->notify_after_ms =
        loop_now_ms(self->base.loop) + (pause > UPSTREAM_NOTIFY_MS ? pause : UPSTREAM_NOTIFY_MS);
    if (changes != 0) {
        self->base.events->changed(self->base.user, &self->base, (mcp_change)changes);
        upstream_publish_change(&self->base, (mcp_change)changes);
    }
    while (map_next(&updates, &cursor, &uri, &copy)) {
        self->base.events->updated(self->base.user, &self->base, uri);
        upstream_publish_update(&self->base, uri);
        mem_free(copy);
    }
    map_fini(&updates);
}

static void notify_arm(local *self)
{
    loop *runs_on = self->base.loop;
    uint64_t now = loop_now_ms(runs_on);
    if (self->is_notify_due || self->is_closing) {
        return;
    }
    self->is_notify_due = true;
    if (self->notify_after_ms <= now ||
        loop_timer_start(runs_on, &self->notify_timer, self->notify_after_ms - now) != BAY_OK) {
        loop_defer(runs_on, &self->notify_task);
    }
}

void upstream_notify_changed(local *self, mcp_change change)
{
    self->changes |= (unsigned)change;
    notify_arm(self);
}

void upstream_notify_updated(local *self, bay_str uri)
{
    if (uri.len == 0 || uri.len > LOCAL_MAX_URI_BYTES || map_get(&self->updates, uri) != NULL) {
        return;
    }
    char *copy = mem_dup(uri.at, uri.len);
    if (copy == NULL || map_put(&self->updates, (bay_str){copy, uri.len}, copy, NULL) != BAY_OK) {
        mem_free(copy);
        if (!self->has_dropped_news) {
            self->has_dropped_news = true;
            LOG(LOG_WARN, "upstream", "%s: it tells of too many updates at once: some are dropped",
                self->base.name);
        }
        return;
    }
    notify_arm(self);
}

void upstream_notify_init(local *self)
{
    map_init(&self->updates, LOCAL_MAX_SUBSCRIPTIONS);
    loop_timer_init(&self->notify_timer, pass_on, self);
    self->notify_task = (loop_task){.function = pass_on, .argument = self};
}

void upstream_notify_stop(local *self)
{
    loop_timer_stop(self->base.loop, &self->notify_timer);
    loop_undefer(self->base.loop, &self->notify_task);
}

void upstream_notify_fini(local *self)
{
    size_t cursor = 0;
    bay_str uri;
    void *copy;
    upstream_notify_stop(self);
    while (map_next(&self->updates, &cursor, &uri, &copy)) {
        mem_free(copy);
    }
    map_fini(&self->updates);
}
