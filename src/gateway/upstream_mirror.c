/* An upstream whose owner is on another loop: calls go there as copies, answers come back as
 * copies. What the owner tells by itself is in upstream_watch.c.
 *
 * A call across loops is one `crossing`, counted: the origin's side holds one reference until
 * `done` or cancel, the owner's side one until its own call has ended. `origin` is touched on the
 * origin's loop only, `call` on the owner's only; everything else is written once before the first
 * post. Posts between two loops keep their order: a cancel never arrives before its call. */
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/upstream_mirror.h"

enum { CROSSING_MEMORY = 1 << 30 };

/* The engines have held these bytes against the configured bounds before. */
static const json_limits any_size = {(size_t)1 << 30, 1024, 64u << 20};

/* A message between the two sides of a crossing. */
typedef struct passage {
    struct crossing *crossing;
    bool is_done;
    bool is_paused; /* on the way there */
    mcp_method_id method;
    mcp_outcome outcome;
    size_t len;
    const char *json; /* behind the struct: the JSON, then the text with its NUL */
    const char *text;
} passage;

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
    passage last; /* the end can always be told, also without memory for what it says */
} crossing;

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

/* ---- back: from the owner's loop to the origin's --------------------------------------------- */

static void passage_done(passage *self, upstream_call *origin, json_val value)
{
    mcp_outcome *outcome = &self->outcome;
    outcome->result = outcome->kind == MCP_OUTCOME_RESULT ? value : JSON_NONE;
    outcome->error = outcome->kind == MCP_OUTCOME_ERROR ? value : JSON_NONE;
    outcome->text = self->text;
    if (outcome->kind != MCP_OUTCOME_FAILED && json_is(value, JSON_MISSING)) {
        *outcome = (mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                 .err = BAY_NOMEM,
                                 .was_sent = true,
                                 .text = "no memory for the answer on its way back"};
    }
    self->crossing->origin = NULL;
    list_remove(&origin->link);
    origin->remote = NULL;
    upstream_call_end(origin);
    origin->events->done(origin->user, outcome);
    crossing_unref(self->crossing); /* the origin's */
}

static void passage_free(passage *self)
{
    crossing *over = self->crossing;
    if (self != &over->last) {
        mem_free(self);
    }
    crossing_unref(over);
}

static void passage_arrive(void *argument)
{
    passage *self = argument;
    upstream_call *origin = self->crossing->origin;
    arena memory;
    json_doc doc = {0};
    json_val value = JSON_NONE;
    arena_init(&memory, CROSSING_MEMORY);
    if (origin != NULL && self->len > 0 &&
        json_parse(&doc, (bay_str){self->json, self->len}, &any_size, &memory, NULL) == BAY_OK) {
        value = json_root(&doc);
    }
    if (origin != NULL && self->is_done) {
        passage_done(self, origin, value);
    } else if (origin != NULL) {
        origin->events->notified(origin->user, self->method, value);
    }
    arena_fini(&memory);
    passage_free(self);
}

static passage *passage_new(size_t json_len, size_t text_len)
{
    size_t bytes = sizeof(passage) + json_len + text_len;
    return bytes > json_len ? mem_zalloc(bytes) : NULL;
}

/* Without memory a notification is lost; an end is told without its bytes. */
static void passage_post(crossing *self, bool is_done, mcp_method_id method,
                         const mcp_outcome *outcome, bay_str json)
{
    const char *text = outcome != NULL && outcome->text != NULL ? outcome->text : "";
    size_t text_len = strlen(text) + 1;
    passage *back = passage_new(json.len, text_len);
    if (back != NULL) {
        char *bytes = (char *)(back + 1);
        if (json.len > 0) {
            memcpy(bytes, json.at, json.len);
        }
        memcpy(bytes + json.len, text, text_len);
        back->json = bytes;
        back->len = json.len;
        back->text = bytes + json.len;
    } else if (is_done) {
        back = &self->last;
        back->text = "";
    } else {
        LOG(LOG_ERROR, "upstream", "out of memory: a notification between loops was lost");
        return;
    }
    back->crossing = self;
    back->is_done = is_done;
    back->method = method;
    if (outcome != NULL) {
        back->outcome = *outcome;
    }
    atomic_fetch_add(&self->references, 1);
    if (loop_post(self->origin_loop, passage_arrive, back) != BAY_OK) {
        LOG(LOG_ERROR, "upstream", "a message to another loop was lost");
        passage_free(back);
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

static const upstream_call_events crossing_events = {.notified = crossing_notified,
                                                     .done = crossing_done};

/* ---- there: from the origin's loop to the owner's -------------------------------------------- */

static void crossing_begin(void *argument)
{
    crossing *self = argument;
    mcp_call_spec *spec = &self->call.spec;
    bay_err err = BAY_OK;
    if (self->params.len > 0) {
        err = json_parse(&self->params_doc, self->params, &any_size, &self->memory, NULL);
        spec->params = err == BAY_OK ? json_root(&self->params_doc) : JSON_NONE;
    }
    if (err == BAY_OK && self->meta.len > 0) {
        err = json_parse(&self->meta_doc, self->meta, &any_size, &self->memory, NULL);
        spec->meta = err == BAY_OK ? json_root(&self->meta_doc) : JSON_NONE;
    }
    if (err != BAY_OK) {
        mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED, .err = err, .text = ""};
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
    passage_free(there);
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

static crossing *crossing_new(mirror *self, upstream_call *origin)
{
    crossing *over = mem_zalloc(sizeof(*over));
    if (over == NULL) {
        return NULL;
    }
    atomic_init(&over->references, 2);
    over->origin_loop = self->base.loop;
    over->owner_loop = self->owner_loop;
    over->owner = self->owner;
    over->origin = origin;
    over->call.events = &crossing_events;
    over->call.user = over;
    arena_init(&over->memory, CROSSING_MEMORY);
    return over;
}

static void mirror_send(upstream *base, upstream_call *call)
{
    mirror *self = mirror_of(base);
    call->remote = NULL;
    if (self->is_closed) {
        upstream_call_fail(call, BAY_CLOSED, false, "the server is leaving the gateway");
        return;
    }
    crossing *over = crossing_new(self, call);
    bay_err err = over != NULL ? crossing_copy(over, &call->spec) : BAY_NOMEM;
    if (err == BAY_OK) {
        err = loop_post(self->owner_loop, crossing_begin, over);
    }
    if (err != BAY_OK) {
        if (over != NULL) {
            crossing_unref(over);
            crossing_unref(over);
        }
        upstream_call_fail(call, err, false, "");
        return;
    }
    call->remote = over;
    list_push(&self->open, &call->link);
}

static void mirror_cancel(upstream_call *call, bay_str reason)
{
    crossing *over = call->remote;
    (void)reason;
    if (over == NULL) {
        return;
    }
    list_remove(&call->link);
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
    passage *there = over != NULL ? passage_new(0, 0) : NULL;
    if (there == NULL) {
        return;
    }
    there->crossing = over;
    there->is_paused = is_paused;
    atomic_fetch_add(&over->references, 1);
    if (loop_post(over->owner_loop, crossing_pause, there) != BAY_OK) {
        passage_free(there);
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

static void wish_post(upstream *base, int kind, mcp_log_level level, bay_str uri)
{
    mirror *self = mirror_of(base);
    wish *made = mem_alloc(sizeof(*made) + uri.len);
    if (made == NULL) {
        return;
    }
    *made = (wish){.owner = self->owner, .kind = kind, .level = level};
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
    wish_post(base, WISH_START, MCP_LOG_NONE, (bay_str){NULL, 0});
}

static void mirror_subscribe(upstream *base, bay_str uri, bool is_wanted)
{
    wish_post(base, is_wanted ? WISH_SUBSCRIBE : WISH_UNSUBSCRIBE, MCP_LOG_NONE, uri);
}

static void mirror_set_level(upstream *base, mcp_log_level level)
{
    mirror *self = mirror_of(base);
    if (level < self->level) {
        self->level = level;
        wish_post(base, WISH_LEVEL, level, (bay_str){NULL, 0});
    }
}

/* ---- the interface --------------------------------------------------------------------------- */

static void fail_open(mirror *self, bay_err err, const char *text)
{
    list_link *link;
    while ((link = list_first(&self->open)) != NULL) {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        mirror_cancel(call, STR(""));
        upstream_call_fail(call, err, true, text);
    }
}

static void mirror_close(upstream *base, void (*done)(void *user), void *user)
{
    mirror *self = mirror_of(base);
    bool was_closed = self->is_closed;
    self->close_done = done;
    self->close_user = user;
    self->is_closed = true;
    base->state = UPSTREAM_CLOSED;
    fail_open(self, BAY_CLOSED, "the server is leaving the gateway");
    if (!was_closed && mirror_watch_stop(self) != BAY_OK && done != NULL) {
        self->close_done = NULL;
        done(user); /* the owner's loop is gone: nothing comes any more */
    }
}

/* Closed, or no loop runs any more. */
static void mirror_free(upstream *base)
{
    mirror *self = mirror_of(base);
    self->is_closed = true;
    fail_open(self, BAY_CANCELLED, "the gateway is closing");
    mem_free(self->farewell);
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

bay_err upstream_new_mirror(const upstream_options *options, upstream *owner,
                            struct loop *owner_loop, upstream **out)
{
    mirror *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    list_init(&self->open);
    self->owner = owner;
    self->owner_loop = owner_loop;
    self->level = MCP_LOG_NONE;
    bay_err err = upstream_init(&self->base, &mirror_ops, options);
    if (err == BAY_OK) {
        err = mirror_watch_start(self);
    }
    if (err != BAY_OK) {
        mem_free(self->farewell);
        upstream_fini(&self->base);
        mem_free(self);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
