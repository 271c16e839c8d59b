/* What an owner tells the mirrors on other loops: reports, posted in order.
 *
 * A mirror is freed only after its farewell has made the round trip to the owner, so every report
 * finds it alive. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/mirror.h"

enum {
    ELICITED_MOST = 100,   /* notifications/elicitation/complete of one server, in a second */
    ELICITED_BYTES = 4096, /* of their params */
};

/* In the owner's list of watchers. */
typedef struct watcher {
    list_link link;
    mirror *mirror;
    struct loop *loop;
} watcher;

struct report {
    loop_message post;
    mirror *mirror;
    enum { REPORT_STATE, REPORT_CHANGE, REPORT_UPDATE, REPORT_ELICITED, REPORT_FAREWELL } kind;
    upstream_state state;
    mcp_change change;
    uint32_t restarts;
    int process_id;
    bool is_settled;
    const mcp_revision *revision;
    char error[UPSTREAM_ERROR_BYTES];
    size_t capability_bytes; /* of `bytes`; what follows are the instructions */
    size_t len;
    char bytes[]; /* capabilities and instructions, or a URI */
};

static void state_arrives(mirror *self, const report *news)
{
    upstream *base = &self->base;
    base->restarts = news->restarts;
    base->process_id = news->process_id;
    base->is_settled = news->is_settled;
    if (news->revision != NULL) {
        bay_str all = {news->bytes, news->len};
        upstream_learn_instructions(base, str_from(all, news->capability_bytes));
        upstream_learn(base, news->revision, str_head(all, news->capability_bytes));
    }
    snprintf(base->error, sizeof(base->error), "%s", news->error);
    base->state = news->state; /* the owner's table has checked the step */
    if (upstream_is_down(base)) {
        memcpy(base->last_break, base->error, sizeof(base->error));
    }
    base->events->state_changed(base->user, base);
}

static void elicited_arrives(mirror *self, const report *news)
{
    upstream *base = &self->base;
    arena memory;
    json_doc doc;
    arena_init(&memory, 64 * ELICITED_BYTES);
    if (base->events->elicited != NULL &&
        json_parse(&doc, (bay_str){news->bytes, news->len}, NULL, &memory, NULL) == BAY_OK) {
        base->events->elicited(base->user, base, json_root(&doc));
    }
    arena_fini(&memory);
}

static void report_arrive(void *argument)
{
    report *news = argument;
    mirror *self = news->mirror;
    upstream *base = &self->base;
    if (news->kind == REPORT_FAREWELL) {
        void (*done)(void *user) = self->close_done;
        self->close_done = NULL;
        if (done != NULL) {
            done(self->close_user); /* may free the mirror, and this report with it */
        }
        return;
    }
    if (!self->is_closed && news->kind == REPORT_STATE) {
        state_arrives(self, news);
    } else if (!self->is_closed && news->kind == REPORT_CHANGE) {
        base->events->changed(base->user, base, news->change);
    } else if (!self->is_closed && news->kind == REPORT_UPDATE) {
        base->events->updated(base->user, base, (bay_str){news->bytes, news->len});
    } else if (!self->is_closed && news->kind == REPORT_ELICITED) {
        elicited_arrives(self, news);
    }
    mem_free(news);
}

static bool report_post(const watcher *to, const report *like, bay_str bytes)
{
    report *news = mem_alloc(sizeof(*news) + bytes.len);
    if (news == NULL) {
        return false;
    }
    *news = *like;
    news->mirror = to->mirror;
    news->len = bytes.len;
    if (bytes.len > 0) {
        memcpy(news->bytes, bytes.at, bytes.len);
    }
    news->post = (loop_message){.function = report_arrive, .argument = news};
    if (loop_post_message(to->loop, &news->post) != BAY_OK) {
        mem_free(news);
        return false;
    }
    return true;
}

static void report_all(upstream *owner, const report *like, bay_str bytes)
{
    LIST_EACH(at, &owner->watchers)
    {
        if (!report_post(CONTAINER_OF(at, watcher, link), like, bytes)) {
            LOG(LOG_ERROR, "upstream", "%s: another loop could not be told of a change",
                owner->name);
        }
    }
}

void upstream_publish_state(upstream *self)
{
    if (list_is_empty(&self->watchers)) {
        return;
    }
    report like = {.kind = REPORT_STATE,
                   .state = self->state,
                   .restarts = self->restarts,
                   .process_id = self->process_id,
                   .is_settled = self->is_settled,
                   .revision = self->revision,
                   .capability_bytes = self->capabilities.len};
    snprintf(like.error, sizeof(like.error), "%s", self->error);
    buf both;
    buf_init(&both, UPSTREAM_CAPABILITIES_BYTES + UPSTREAM_INSTRUCTIONS_BYTES);
    buf_str(&both, buf_view(&self->capabilities));
    buf_str(&both, buf_view(&self->instructions));
    if (both.err != BAY_OK) { /* the state itself must not be lost */
        buf_clear(&both);
        like.capability_bytes = 0;
    }
    report_all(self, &like, buf_view(&both));
    buf_fini(&both);
}

void upstream_publish_change(upstream *self, mcp_change change)
{
    report like = {.kind = REPORT_CHANGE, .change = change};
    report_all(self, &like, (bay_str){NULL, 0});
}

void upstream_publish_update(upstream *self, bay_str uri)
{
    report like = {.kind = REPORT_UPDATE};
    report_all(self, &like, uri);
}

/* A person completes these: what comes faster is noise, and must not fill other loops' queues. */
void upstream_tell_elicited(upstream *self, json_val params)
{
    uint64_t now = loop_now_ms(self->loop);
    bay_str text = json_raw(params);
    if (now - self->elicited_ms >= 1000) {
        self->elicited_ms = now;
        self->elicited_count = 0;
    }
    if (text.len > ELICITED_BYTES || self->elicited_count++ >= ELICITED_MOST) {
        return;
    }
    if (self->events->elicited != NULL) {
        self->events->elicited(self->user, self, params);
    }
    report like = {.kind = REPORT_ELICITED};
    report_all(self, &like, text);
}

void upstream_forget_watchers(upstream *self)
{
    list_link *link;
    while (self->watchers.head.next != NULL && (link = list_pop(&self->watchers)) != NULL) {
        mem_free(CONTAINER_OF(link, watcher, link));
    }
}

/* On the owner's loop. */
static void watcher_join(void *argument)
{
    watcher *self = argument;
    upstream *owner = self->mirror->owner;
    list_push(&owner->watchers, &self->link);
    if (owner->state != UPSTREAM_STOPPED || owner->is_settled) {
        upstream_publish_state(owner);
    }
}

/* On the owner's loop. */
static void watcher_leave(void *argument)
{
    mirror *self = argument;
    struct loop *back = self->base.loop;
    LIST_EACH(at, &self->owner->watchers)
    {
        watcher *known = CONTAINER_OF(at, watcher, link);
        if (known->mirror == self) {
            list_remove(&known->link);
            mem_free(known);
        }
    }
    self->farewell->post = (loop_message){.function = report_arrive, .argument = self->farewell};
    if (loop_post_message(back, &self->farewell->post) != BAY_OK) {
        LOG(LOG_ERROR, "upstream", "a mirror cannot leave: its loop has ended");
    }
}

bay_err mirror_watch_start(mirror *self)
{
    watcher *made = mem_zalloc(sizeof(*made));
    self->farewell = mem_zalloc(sizeof(*self->farewell));
    bay_err err = made != NULL && self->farewell != NULL ? BAY_OK : BAY_NOMEM;
    if (err == BAY_OK) {
        self->farewell->kind = REPORT_FAREWELL;
        self->farewell->mirror = self;
        made->mirror = self;
        made->loop = self->base.loop;
        err = loop_post(self->owner_loop, watcher_join, made);
    }
    if (err != BAY_OK) {
        mem_free(made);
    }
    return err;
}

bay_err mirror_watch_stop(mirror *self)
{
    self->leave = (loop_message){.function = watcher_leave, .argument = self};
    return loop_post_message(self->owner_loop, &self->leave);
}
