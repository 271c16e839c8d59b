#include "catalog/freshness.h"

#include "base/err.h"
#include "base/log.h"
#include "base/rand.h"

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

freshness_plan freshness_plan_of(const freshness_facts *facts, uint64_t dice)
{
    freshness_plan plan = {0, 0};
    uint64_t every_ms = 0;
    if (!facts->is_good) {
        every_ms = FRESHNESS_RETRY_MS;
    } else if (!facts->has_kind) {
        plan.fresh_ms = UINT64_MAX;
    } else if (facts->ttl_ms > 0) {
        plan.fresh_ms = facts->ttl_ms;
        every_ms = facts->ttl_ms;
    } else if (!facts->tells) {
        every_ms = facts->every_ms;
        plan.fresh_ms = every_ms;
    } else if (facts->may_miss) {
        every_ms = facts->every_ms;
    }
    if (every_ms > 0 && !(facts->may_idle && facts->is_good)) {
        every_ms = within(every_ms, FRESHNESS_LEAST_MS, FRESHNESS_MOST_MS);
        plan.again_ms = every_ms - every_ms / 10 + dice % (every_ms / 5 + 1);
    }
    return plan;
}

static void arm(freshness *self)
{
    uint64_t next_ms = UINT64_MAX;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        if (self->due_ms[kind] > 0 && self->due_ms[kind] < next_ms) {
            next_ms = self->due_ms[kind];
        }
    }
    if (next_ms == UINT64_MAX) {
        loop_timer_stop(self->loop, &self->timer);
        return;
    }
    uint64_t now_ms = loop_now_ms(self->loop);
    if (loop_timer_start(self->loop, &self->timer, next_ms > now_ms ? next_ms - now_ms : 0) !=
        BAY_OK) {
        LOG(LOG_ERROR, "catalog", "out of memory: a list is not read anew when it should be");
    }
}

static void freshness_due(void *argument)
{
    freshness *self = argument;
    uint64_t now_ms = loop_now_ms(self->loop);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        if (self->due_ms[kind] > 0 && self->due_ms[kind] <= now_ms) {
            self->due_ms[kind] = 0;
            self->read(self->user, kind);
        }
    }
    arm(self);
}

void freshness_init(freshness *self, loop *on, void (*read)(void *user, listing_kind kind),
                    void *user)
{
    *self = (freshness){.loop = on, .read = read, .user = user};
    loop_timer_init(&self->timer, freshness_due, self);
}

void freshness_stop(freshness *self)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        self->due_ms[kind] = 0;
    }
    loop_timer_stop(self->loop, &self->timer);
}

void freshness_told(freshness *self, listing_kind kind)
{
    uint64_t started_ms = self->started_ms[kind];
    uint64_t due_ms = started_ms + FRESHNESS_GATHER_MS;
    if (started_ms == 0 || due_ms <= loop_now_ms(self->loop)) {
        self->read(self->user, kind);
        return;
    }
    self->due_ms[kind] = due_ms;
    arm(self);
}

void freshness_started(freshness *self, listing_kind kind)
{
    self->due_ms[kind] = 0;
    self->started_ms[kind] = loop_now_ms(self->loop);
}

void freshness_ended(freshness *self, listing_kind kind, const freshness_facts *facts)
{
    freshness_plan plan = freshness_plan_of(facts, rand_u64());
    uint64_t now_ms = loop_now_ms(self->loop);
    bool is_bounded = plan.fresh_ms > 0 && plan.fresh_ms < UINT64_MAX;
    self->until_ms[kind] = is_bounded ? now_ms + plan.fresh_ms : plan.fresh_ms;
    if (plan.again_ms > 0 && self->due_ms[kind] == 0) { /* else it is due sooner */
        self->due_ms[kind] = now_ms + plan.again_ms;
        arm(self);
    }
}

void freshness_replan(freshness *self, listing_kind kind, const freshness_facts *facts)
{
    uint64_t due_ms = self->due_ms[kind];
    if (due_ms > 0 && due_ms <= loop_now_ms(self->loop) + FRESHNESS_GATHER_MS) {
        return;
    }
    self->due_ms[kind] = 0;
    freshness_ended(self, kind, facts);
    arm(self);
}
