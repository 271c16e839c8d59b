/* An upstream whose owner is on another loop: calls go there as copies, answers come back as
 * copies.
 *
 * A call across loops is one `crossing`, counted: the origin's side holds one reference until
 * `done` or cancel, the owner's side one until its own call has ended. `origin` is touched on the
 * origin's loop only, `call` and `is_begun` on the owner's only; everything else is written once
 * before the first post. Posts between two loops keep their order.
 *
 * A mirror is freed only after its close has made the round trip to the owner, so every post to it
 * finds it alive; or when no loop runs any more. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/upstream_parts.h"

enum { CROSSING_MEMORY = 256 << 20 };

typedef struct mirror {
    upstream base;
    upstream *owner;
    struct loop *owner_loop;
    void (*close_done)(void *user);
    void *close_user;
} mirror;

/* In the owner's list of watchers. */
typedef struct watcher {
    list_link link;
    mirror *mirror;
    struct loop *loop;
} watcher;

typedef struct crossing {
    atomic_int references;
    struct loop *origin_loop;
    struct loop *owner_loop;
    upstream *owner;
    upstream_call *origin; /* NULL once the origin let go */
    upstream_call call;    /* the owner's */
    arena memory;          /* the copies, and what the owner's side parses */
    bay_str params;
    bay_str meta;
    json_doc params_doc;
    json_doc meta_doc;
    bool is_begun;
} crossing;

/* What comes back. */
typedef struct passage {
    crossing *crossing;
    bool is_done;
    bool is_paused; /* on the way there */
    mcp_method_id method;
    mcp_outcome outcome;
    size_t len;
    size_t text_len;
    char bytes[]; /* json, then text with its NUL */
} passage;

static mirror *mirror_of(upstream *self)
{
    return CONTAINER_OF(self, mirror, base);
}

static void crossing_unref(crossing *self)
{
    if (atomic_fetch_sub(&self->references, 1) == 1) {
        arena_fini(&self->memory);
        mem_free(self);
    }
}

/* ---- back: from the owner's loop to the origin's ------------------------------------------------
 */

static void passage_arrive(void *argument)
{
    passage *self = argument;
    upstream_call *origin = self->crossing->origin;
    arena memory;
    json_doc doc = {0};
    json_val value = JSON_NONE;
    arena_init(&memory, CROSSING_MEMORY);
    if (origin != NULL && self->len > 0 &&
        json_parse(&doc, (bay_str){self->bytes, self->len}, NULL, &memory, NULL) == BAY_OK) {
        value = json_root(&doc);
    }
    if (origin != NULL && !self->is_done) {
        origin->events->notified(origin->user, self->method, value);
    }
    if (origin != NULL && self->is_done) {
        self->outcome.result = self->outcome.kind == MCP_OUTCOME_RESULT ? value : JSON_NONE;
        self->outcome.error = self->outcome.kind == MCP_OUTCOME_ERROR ? value : JSON_NONE;
        self->outcome.text = self->bytes + self->len;
        if (self->len > 0 && json_is(value, JSON_MISSING)) {
            self->outcome.kind = MCP_OUTCOME_FAILED;
            self->outcome.err = BAY_NOMEM;
            self->outcome.was_sent = true;
            self->outcome.text = "out of memory on the way back";
        }
        self->crossing->origin = NULL;
        upstream_call_end(origin);
        origin->remote = NULL;
        origin->events->done(origin->user, &self->outcome);
        crossing_unref(self->crossing); /* the origin's */
    }
    arena_fini(&memory);
    crossing_unref(self->crossing);
    mem_free(self);
}

static void passage_post(crossing *self, bool is_done, mcp_method_id method,
                         const mcp_outcome *outcome, bay_str json)
{
    const char *text = outcome != NULL && outcome->text != NULL ? outcome->text : "";
    size_t text_len = strlen(text) + 1;
    passage *back = mem_alloc(sizeof(*back) + json.len + text_len);
    if (back == NULL) {
        LOG(LOG_ERROR, "upstream", "out of memory: a message between loops was lost");
        return;
    }
    *back = (passage){.crossing = self, .is_done = is_done, .method = method, .len = json.len};
    if (outcome != NULL) {
        back->outcome = *outcome;
    }
    if (json.len > 0) {
        memcpy(back->bytes, json.at, json.len);
    }
    memcpy(back->bytes + json.len, text, text_len);
    atomic_fetch_add(&self->references, 1);
    if (loop_post(self->origin_loop, passage_arrive, back) != BAY_OK) {
        crossing_unref(self);
        mem_free(back);
    }
}

static void crossing_notified(void *user, mcp_method_id method, json_val params)
{
    passage_post(user, false, method, NULL, json_raw(params));
}

static void crossing_done(void *user, const mcp_outcome *outcome)
{
    crossing *self = user;
    json_val json = outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error;
    passage_post(self, true, 0, outcome,
                 outcome->kind == MCP_OUTCOME_FAILED ? (bay_str){NULL, 0} : json_raw(json));
    crossing_unref(self); /* the owner's */
}

static const upstream_call_events crossing_events = {crossing_notified, crossing_done};

/* ---- there: from the origin's loop to the owner's
 * ------------------------------------------------ */

static void crossing_begin(void *argument)
{
    crossing *self = argument;
    mcp_call_spec *spec = &self->call.spec;
    bay_err err = BAY_OK;
    if (self->params.len > 0) {
        err = json_parse(&self->params_doc, self->params, NULL, &self->memory, NULL);
        spec->params = err == BAY_OK ? json_root(&self->params_doc) : JSON_NONE;
    }
    if (err == BAY_OK && self->meta.len > 0) {
        err = json_parse(&self->meta_doc, self->meta, NULL, &self->memory, NULL);
        spec->meta = err == BAY_OK ? json_root(&self->meta_doc) : JSON_NONE;
    }
    self->is_begun = true;
    if (err != BAY_OK) {
        mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED, .err = err, .text = bay_err_text(err)};
        crossing_done(self, &outcome);
        return;
    }
    upstream_send(self->owner, &self->call);
}

static void crossing_cancel(void *argument)
{
    crossing *self = argument;
    if (self->call.is_open) {
        upstream_call_cancel(&self->call, STR("the client cancelled"));
        crossing_unref(self); /* the owner's: no done comes any more */
    }
    crossing_unref(self); /* the post's */
}

static void crossing_pause(void *argument)
{
    passage *there = argument;
    if (there->crossing->call.is_open) {
        upstream_call_pause(&there->crossing->call, there->is_paused);
    }
    crossing_unref(there->crossing);
    mem_free(there);
}

static bay_err crossing_copy(crossing *self, const mcp_call_spec *from)
{
    mcp_call_spec *to = &self->call.spec;
    *to = *from;
    to->params = JSON_NONE;
    to->meta = JSON_NONE;
    to->param_table = NULL; /* header fields are for URLs, and those have an owner on each loop */
    bay_err err = arena_dup(&self->memory, from->method, &to->method);
    err = err == BAY_OK ? arena_dup(&self->memory, json_raw(from->params), &self->params) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, json_raw(from->meta), &self->meta) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, from->rename, &to->rename) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, from->capabilities, &to->capabilities) : err;
    return err == BAY_OK ? arena_dup(&self->memory, from->client_info, &to->client_info) : err;
}

static void mirror_send(upstream *base, upstream_call *call)
{
    mirror *self = mirror_of(base);
    crossing *over = mem_zalloc(sizeof(*over));
    if (over == NULL) {
        upstream_call_fail(call, BAY_NOMEM, false, bay_err_text(BAY_NOMEM));
        return;
    }
    atomic_init(&over->references, 2);
    over->origin_loop = base->loop;
    over->owner_loop = self->owner_loop;
    over->owner = self->owner;
    over->origin = call;
    over->call.events = &crossing_events;
    over->call.user = over;
    arena_init(&over->memory, CROSSING_MEMORY);
    bay_err err = crossing_copy(over, &call->spec);
    if (err == BAY_OK) {
        call->remote = over;
        err = loop_post(self->owner_loop, crossing_begin, over);
    }
    if (err != BAY_OK) {
        call->remote = NULL;
        crossing_unref(over);
        crossing_unref(over);
        upstream_call_fail(call, err, false, bay_err_text(err));
    }
}

static void mirror_cancel(upstream_call *call, bay_str reason)
{
    crossing *over = call->remote;
    (void)reason;
    if (over == NULL) {
        return;
    }
    call->remote = NULL;
    over->origin = NULL;
    /* the origin's reference goes along with the post */
    if (loop_post(over->owner_loop, crossing_cancel, over) != BAY_OK) {
        crossing_unref(over);
    }
}

static void mirror_pause(upstream_call *call, bool is_paused)
{
    crossing *over = call->remote;
    passage *there = over != NULL ? mem_zalloc(sizeof(*there)) : NULL;
    if (there == NULL) {
        return;
    }
    there->crossing = over;
    there->is_paused = is_paused;
    atomic_fetch_add(&over->references, 1);
    if (loop_post(over->owner_loop, crossing_pause, there) != BAY_OK) {
        crossing_unref(over);
        mem_free(there);
    }
}

/* A wish for the owner that needs no answer. */
typedef struct wish {
    upstream *owner;
    enum { WISH_START, WISH_SUBSCRIBE, WISH_UNSUBSCRIBE, WISH_LEVEL } kind;
    mcp_log_level level;
    size_t len;
    char uri[];
} wish;

static void wish_arrive(void *argument)
{
    wish *self = argument;
    switch (self->kind) {
    case WISH_START:
        upstream_start(self->owner);
        break;
    case WISH_LEVEL:
        upstream_set_level(self->owner, self->level);
        break;
    default:
        upstream_subscribe(self->owner, (bay_str){self->uri, self->len},
                           self->kind == WISH_SUBSCRIBE);
    }
    mem_free(self);
}

static void wish_post(upstream *base, wish like, bay_str uri)
{
    mirror *self = mirror_of(base);
    wish *made = mem_alloc(sizeof(*made) + uri.len);
    if (made == NULL) {
        return;
    }
    *made = like;
    made->owner = self->owner;
    made->len = uri.len;
    if (uri.len > 0) {
        memcpy(made->uri, uri.at, uri.len);
    }
    if (loop_post(self->owner_loop, wish_arrive, made) != BAY_OK) {
        mem_free(made);
    }
}

static void mirror_start(upstream *base)
{
    wish_post(base, (wish){.kind = WISH_START}, (bay_str){NULL, 0});
}

/* The owner counts wishes by URI, not by loop: an unsubscribe of one loop ends it for all, so a
 * mirror never takes a subscription back; the owner's life bounds it. */
static void mirror_subscribe(upstream *base, bay_str uri, bool is_wanted)
{
    if (is_wanted) {
        wish_post(base, (wish){.kind = WISH_SUBSCRIBE}, uri);
    }
}

static void mirror_set_level(upstream *base, mcp_log_level level)
{
    wish_post(base, (wish){.kind = WISH_LEVEL, .level = level}, (bay_str){NULL, 0});
}

/* ---- what the owner tells
 * ------------------------------------------------------------------------ */

typedef struct report {
    mirror *mirror;
    enum { REPORT_STATE, REPORT_CHANGE, REPORT_UPDATE, REPORT_UNWATCHED } kind;
    upstream_state state;
    mcp_change change;
    uint32_t restarts;
    int process_id;
    bool is_settled;
    const mcp_revision *revision;
    char error[UPSTREAM_ERROR_BYTES];
    size_t len;
    char bytes[]; /* capabilities, or a URI */
} report;

static void report_state(mirror *self, const report *news)
{
    upstream *base = &self->base;
    if (base->state == UPSTREAM_CLOSED) {
        return;
    }
    base->restarts = news->restarts;
    base->process_id = news->process_id;
    base->is_settled = news->is_settled;
    if (news->revision != NULL) {
        upstream_learn(base, news->revision, (bay_str){news->bytes, news->len});
    }
    snprintf(base->error, sizeof(base->error), "%s", news->error);
    base->state = news->state; /* the owner's table has checked the step */
    base->events->state_changed(base->user, base);
}

static void report_arrive(void *argument)
{
    report *news = argument;
    mirror *self = news->mirror;
    upstream *base = &self->base;
    switch (news->kind) {
    case REPORT_STATE:
        report_state(self, news);
        break;
    case REPORT_CHANGE:
        base->events->changed(base->user, base, news->change);
        break;
    case REPORT_UPDATE:
        base->events->updated(base->user, base, (bay_str){news->bytes, news->len});
        break;
    case REPORT_UNWATCHED:
        self->close_done(self->close_user);
        break;
    }
    mem_free(news);
}

static bool report_post(mirror *to, struct loop *to_loop, const report *like, bay_str bytes)
{
    report *news = mem_alloc(sizeof(*news) + bytes.len);
    if (news == NULL) {
        return false;
    }
    *news = *like;
    news->mirror = to;
    news->len = bytes.len;
    if (bytes.len > 0) {
        memcpy(news->bytes, bytes.at, bytes.len);
    }
    if (loop_post(to_loop, report_arrive, news) != BAY_OK) {
        mem_free(news);
        return false;
    }
    return true;
}

static void report_all(upstream *owner, const report *like, bay_str bytes)
{
    LIST_EACH(at, &owner->watchers)
    {
        watcher *to = CONTAINER_OF(at, watcher, link);
        if (!report_post(to->mirror, to->loop, like, bytes)) {
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
                   .revision = self->revision};
    snprintf(like.error, sizeof(like.error), "%s", self->error);
    report_all(self, &like, buf_view(&self->capabilities));
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

void upstream_forget_watchers(upstream *self)
{
    list_link *link;
    while (self->watchers.head.next != NULL && (link = list_pop(&self->watchers)) != NULL) {
        mem_free(CONTAINER_OF(link, watcher, link));
    }
}

static void mirror_unwatch(void *argument)
{
    mirror *self = argument;
    LIST_EACH(at, &self->owner->watchers)
    {
        watcher *known = CONTAINER_OF(at, watcher, link);
        if (known->mirror == self) {
            list_remove(&known->link);
            struct loop *to_loop = known->loop;
            mem_free(known);
            report like = {.kind = REPORT_UNWATCHED};
            (void)report_post(self, to_loop, &like, (bay_str){NULL, 0});
            return;
        }
    }
}

static void mirror_close(upstream *base, void (*done)(void *user), void *user)
{
    mirror *self = mirror_of(base);
    self->close_done = done;
    self->close_user = user;
    base->state = UPSTREAM_CLOSED;
    if (loop_post(self->owner_loop, mirror_unwatch, self) != BAY_OK) {
        done(user); /* the owner's loop is gone: nothing comes any more */
    }
}

static void mirror_free(upstream *base)
{
    mirror *self = mirror_of(base);
    upstream_fini(base);
    mem_free(self);
}

static const upstream_ops mirror_ops = {
    .start = mirror_start,
    .close = mirror_close,
    .free = mirror_free,
    .send = mirror_send,
    .cancel = mirror_cancel,
    .pause = mirror_pause,
    .subscribe = mirror_subscribe,
    .set_level = mirror_set_level,
};

static void mirror_watch(void *argument)
{
    watcher *self = argument;
    upstream *owner = self->mirror->owner;
    list_push(&owner->watchers, &self->link);
    if (owner->state != UPSTREAM_STOPPED || owner->is_settled) {
        upstream_publish_state(owner);
    }
}

bay_err upstream_new_mirror(const upstream_options *options, upstream *owner,
                            struct loop *owner_loop, upstream **out)
{
    mirror *self = mem_zalloc(sizeof(*self));
    watcher *watch = mem_zalloc(sizeof(*watch));
    bay_err err = self != NULL && watch != NULL ? upstream_init(&self->base, &mirror_ops, options)
                                                : BAY_NOMEM;
    if (err == BAY_OK) {
        self->owner = owner;
        self->owner_loop = owner_loop;
        watch->mirror = self;
        watch->loop = options->loop;
        err = loop_post(owner_loop, mirror_watch, watch);
    }
    if (err != BAY_OK) {
        if (self != NULL) {
            upstream_fini(&self->base);
        }
        mem_free(self);
        mem_free(watch);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
