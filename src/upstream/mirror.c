/* An upstream whose owner is on another loop: calls go there as copies, answers come back as
 * copies. What the owner tells by itself is in watch.c.
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
#include "upstream/mirror.h"

enum {
    CROSSING_MEMORY = 1 << 30,
    CROSSING_NEWS_BYTES = 4 << 20, /* of a call: told on one loop and not heard yet on the other */
};

/* Back: what the server said. There: what became of the caller's end of it. */
typedef enum passage_kind {
    PASSAGE_NOTIFIED,
    PASSAGE_ASKED,     /* value: the request */
    PASSAGE_WITHDRAWN, /* text: the id */
    PASSAGE_DONE,
    PASSAGE_PAUSE,  /* there */
    PASSAGE_ANSWER, /* there; result, or empty; text: the id; more: an error's message */
} passage_kind;

/* A message between the two sides of a crossing. */
typedef struct passage {
    loop_message post;
    struct crossing *crossing;
    passage_kind kind;
    bool is_paused;
    int code;
    mcp_method_id method;
    mcp_outcome outcome;
    size_t bytes; /* of all of it */
    /* Behind the struct: a copy of the value with its index, so that the other loop need not read
     * it again; then the texts, the first with a NUL. */
    json_val value;
    bay_str text;
    bay_str result;
    bay_str more;
} passage;

typedef struct crossing {
    atomic_int references;
    struct loop *origin_loop;
    struct loop *owner_loop;
    upstream *owner;
    upstream_call *origin; /* NULL once the origin let go */
    upstream_call call;    /* the owner's */
    loop_message begin;    /* neither a call's end nor its cancel may fail for memory */
    loop_message cancel;
    atomic_size_t news; /* bytes of notifications on their way */
    arena memory;       /* the copies */
    passage last;       /* the end can always be told, also without memory for what it says */
} crossing;

static mirror *mirror_of(upstream *self)
{
    return CONTAINER_OF(self, mirror, base);
}

static void crossing_unref(crossing *self)
{
    if (atomic_fetch_sub(&self->references, 1) == 1) {
        principal_unref(self->call.affinity.principal);
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
    outcome->text = self->text.at;
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

static void crossing_hear(void *argument);

static void passage_free(passage *self)
{
    crossing *over = self->crossing;
    if (self->kind == PASSAGE_NOTIFIED) {
        atomic_fetch_sub(&over->news, self->bytes);
    }
    if (self != &over->last) {
        mem_free(self);
    }
    crossing_unref(over);
}

static void passage_ask(passage *self, upstream_call *origin, json_val value, arena *memory)
{
    rpc_message message;
    rpc_fault fault;
    if (!json_is(value, JSON_MISSING) && origin->events->asked != NULL &&
        rpc_message_read(&message, value, memory, &fault) == BAY_OK) {
        origin->events->asked(origin->user, &message);
        return;
    }
    upstream_call_answer(origin, self->text, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                         STR("nobody can be asked, or there is no memory"));
}

static void passage_tell(passage *self, upstream_call *origin, json_val value, arena *memory)
{
    switch (self->kind) {
    case PASSAGE_DONE:
        passage_done(self, origin, value);
        return;
    case PASSAGE_ASKED:
        passage_ask(self, origin, value, memory);
        return;
    case PASSAGE_WITHDRAWN:
        if (origin->events->withdrawn != NULL) {
            origin->events->withdrawn(origin->user, self->text);
        }
        return;
    default:
        origin->events->notified(origin->user, self->method, value);
    }
}

static void passage_arrive(void *argument)
{
    passage *self = argument;
    upstream_call *origin = self->crossing->origin;
    arena memory;
    arena_init(&memory, CROSSING_MEMORY);
    if (origin != NULL) {
        passage_tell(self, origin, self->value, &memory);
    }
    arena_fini(&memory);
    passage_free(self);
}

static bay_str put_text(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

/* A passage with copies of what `like` points to; NULL: out of memory. */
static passage *passage_new(const passage *like)
{
    bool has_value = !json_is(like->value, JSON_MISSING);
    size_t value_bytes = has_value ? json_clone_bytes(like->value) : 0;
    size_t bytes = sizeof(passage) + 1 + like->text.len + like->result.len + like->more.len;
    if (__builtin_add_overflow(bytes, value_bytes, &bytes)) {
        return NULL;
    }
    passage *self = mem_alloc(bytes);
    if (self == NULL) {
        return NULL;
    }
    *self = *like;
    self->bytes = bytes;
    char *at = (char *)(self + 1) + value_bytes;
    if (has_value) {
        self->value = json_root(json_clone_at(like->value, self + 1));
    }
    self->text = put_text(&at, like->text);
    *at++ = '\0';
    self->result = put_text(&at, like->result);
    self->more = put_text(&at, like->more);
    return self;
}

/* False: it did not leave; it is gone then, and so is its reference. */
static bool passage_post(passage *self, crossing *over, bool is_back)
{
    self->post.function = is_back ? passage_arrive : crossing_hear;
    self->post.argument = self;
    self->crossing = over;
    atomic_fetch_add(&over->references, 1);
    if (loop_post_message(is_back ? over->origin_loop : over->owner_loop, &self->post) == BAY_OK) {
        return true;
    }
    LOG(LOG_ERROR, "upstream", "a message to another loop was lost: that has ended");
    passage_free(self);
    return false;
}

/* Progress is worth nothing when late: what comes faster than the other loop takes it is dropped.
 */
static void crossing_notified(void *user, mcp_method_id method, json_val params)
{
    crossing *self = user;
    if (atomic_load(&self->news) + json_raw(params).len > CROSSING_NEWS_BYTES) {
        return;
    }
    passage *back =
        passage_new(&(passage){.kind = PASSAGE_NOTIFIED, .method = method, .value = params});
    if (back == NULL) {
        LOG(LOG_ERROR, "upstream", "out of memory: a notification between loops was lost");
        return;
    }
    atomic_fetch_add(&self->news, back->bytes);
    (void)passage_post(back, self, true);
}

/* From now on the call is not sent again: nobody is asked the same twice for one call. */
static void crossing_asked(void *user, const rpc_message *request)
{
    crossing *self = user;
    self->call.is_repeatable = false;
    passage *back =
        passage_new(&(passage){.kind = PASSAGE_ASKED, .value = request->root, .text = request->id});
    if (back == NULL || !passage_post(back, self, true)) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             STR("out of memory"));
    }
}

/* Lost for lack of memory: it will be answered, and the answer is then to nothing. */
static void crossing_withdrawn(void *user, bay_str id)
{
    passage *back = passage_new(&(passage){.kind = PASSAGE_WITHDRAWN, .text = id});
    if (back != NULL) {
        (void)passage_post(back, user, true);
    }
}

/* Without memory an end is told without its bytes. */
static void crossing_done(void *user, const mcp_outcome *outcome)
{
    crossing *self = user;
    passage like = {.kind = PASSAGE_DONE,
                    .outcome = *outcome,
                    .value = outcome->kind == MCP_OUTCOME_RESULT  ? outcome->result
                             : outcome->kind == MCP_OUTCOME_ERROR ? outcome->error
                                                                  : JSON_NONE,
                    .text = str_of(outcome->text)};
    passage *back = passage_new(&like);
    if (back == NULL) {
        back = &self->last;
        *back = (passage){.kind = PASSAGE_DONE, .outcome = *outcome, .text = STR("")};
    }
    (void)passage_post(back, self, true);
    crossing_unref(self); /* the owner's */
}

static const upstream_call_events crossing_events = {.notified = crossing_notified,
                                                     .asked = crossing_asked,
                                                     .withdrawn = crossing_withdrawn,
                                                     .done = crossing_done};

/* ---- there: from the origin's loop to the owner's -------------------------------------------- */

static void crossing_begin(void *argument)
{
    crossing *self = argument;
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

/* What the caller has to say, on the owner's loop. */
static void crossing_hear(void *argument)
{
    passage *there = argument;
    upstream_call *call = &there->crossing->call;
    if (call->is_open && there->kind == PASSAGE_PAUSE) {
        upstream_call_pause(call, there->is_paused);
    } else if (call->is_open) {
        upstream_call_answer(call, there->text, there->result, there->code, there->more);
    }
    passage_free(there);
}

/* Values go with their index: they were read once, on the loop on which they came. */
static bay_err crossing_copy(crossing *self, const upstream_call *call)
{
    const mcp_call_spec *from = &call->spec;
    const upstream_affinity *affinity = &call->affinity;
    mcp_call_spec *to = &self->call.spec;
    upstream_affinity *owned = &self->call.affinity;
    *to = *from;
    *owned = (upstream_affinity){.inputs = affinity->inputs,
                                 .principal = principal_ref(affinity->principal),
                                 .is_stateless = affinity->is_stateless};
    self->call.is_repeatable = call->is_repeatable;
    to->param_table = NULL; /* header fields are for URLs, and those have an owner on each loop */
    bay_err err = arena_dup(&self->memory, from->method, &to->method);
    err = err == BAY_OK ? json_clone_in(from->params, &self->memory, &to->params) : err;
    err = err == BAY_OK ? json_clone_in(from->meta, &self->memory, &to->meta) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, from->rename, &to->rename) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, from->capabilities, &to->capabilities) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, affinity->identity, &owned->identity) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, call->task, &self->call.task) : err;
    return err == BAY_OK ? arena_dup(&self->memory, from->client_info, &to->client_info) : err;
}

static crossing *crossing_new(mirror *self, upstream_call *origin)
{
    crossing *over = mem_zalloc(sizeof(*over));
    if (over == NULL) {
        return NULL;
    }
    atomic_init(&over->references, 2);
    atomic_init(&over->news, 0);
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
    bay_err err = over != NULL ? crossing_copy(over, call) : BAY_NOMEM;
    if (err == BAY_OK) {
        over->begin = (loop_message){.function = crossing_begin, .argument = over};
        err = loop_post_message(self->owner_loop, &over->begin);
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
    over->cancel = (loop_message){.function = crossing_cancel, .argument = over};
    if (loop_post_message(over->owner_loop, &over->cancel) != BAY_OK) {
        crossing_unref(over);
    }
}

static void mirror_pause(upstream_call *call, bool is_paused)
{
    crossing *over = call->remote;
    if (over == NULL) {
        return;
    }
    passage *there = passage_new(&(passage){.kind = PASSAGE_PAUSE, .is_paused = is_paused});
    if (there != NULL) {
        (void)passage_post(there, over, false);
    }
}

/* The server waits for it, so the call must not go on as if it had been said. */
static void mirror_answer(upstream_call *call, bay_str id, bay_str result, int code,
                          bay_str message)
{
    crossing *over = call->remote;
    if (over == NULL) {
        return;
    }
    passage *there = passage_new(&(passage){
        .kind = PASSAGE_ANSWER, .code = code, .text = id, .result = result, .more = message});
    if (there == NULL || !passage_post(there, over, false)) {
        mirror_cancel(call, STR(""));
        upstream_call_fail(call, BAY_NOMEM, true, "no memory for an answer on its way there");
    }
}

/* A wish for the owner that needs no answer. */
typedef struct wish {
    upstream *owner;
    enum {
        WISH_START,
        WISH_SUBSCRIBE,
        WISH_UNSUBSCRIBE,
        WISH_LEVEL,
        WISH_TELL,
        WISH_IDENTITY_GONE,
    } kind;
    mcp_log_level level;
    bay_str text; /* behind the struct: a URI, or an identity */
    bay_str method;
    bay_str params;
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
    case WISH_TELL:
        upstream_tell(self->owner, self->text, self->method, self->params);
        break;
    case WISH_IDENTITY_GONE:
        upstream_identity_gone(self->owner, self->text);
        break;
    default:
        upstream_subscribe(self->owner, self->text, self->kind == WISH_SUBSCRIBE);
    }
    mem_free(self);
}

static void wish_post(upstream *base, const wish *like)
{
    mirror *self = mirror_of(base);
    if (self->is_closed) {
        return; /* the owner may be gone */
    }
    wish *made = mem_alloc(sizeof(*made) + like->text.len + like->method.len + like->params.len);
    if (made == NULL) {
        return;
    }
    char *at = (char *)(made + 1);
    *made = *like;
    made->owner = self->owner;
    made->text = put_text(&at, like->text);
    made->method = put_text(&at, like->method);
    made->params = put_text(&at, like->params);
    if (loop_post(self->owner_loop, wish_arrive, made) != BAY_OK) {
        mem_free(made);
    }
}

static void mirror_start(upstream *base)
{
    wish_post(base, &(wish){.kind = WISH_START});
}

static void mirror_subscribe(upstream *base, bay_str uri, bool is_wanted)
{
    wish_post(base, &(wish){.kind = is_wanted ? WISH_SUBSCRIBE : WISH_UNSUBSCRIBE, .text = uri});
}

static void mirror_tell(upstream *base, bay_str identity, bay_str method, bay_str params)
{
    wish_post(base,
              &(wish){.kind = WISH_TELL, .text = identity, .method = method, .params = params});
}

static void mirror_identity_gone(upstream *base, bay_str identity)
{
    wish_post(base, &(wish){.kind = WISH_IDENTITY_GONE, .text = identity});
}

static void mirror_set_level(upstream *base, mcp_log_level level)
{
    mirror *self = mirror_of(base);
    if (level < self->level) {
        self->level = level;
        wish_post(base, &(wish){.kind = WISH_LEVEL, .level = level});
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
    .answer = mirror_answer,
    .tell = mirror_tell,
    .identity_gone = mirror_identity_gone,
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
    self->base.owner = owner;
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
