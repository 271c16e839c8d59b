/* Invariants
 * - A crossing is counted: the caller's side has one reference until its call ended, the agent's
 *   side one from the beginning until the carried call ended, every message on its way one.
 * - `call` belongs to the caller's loop, `to` and `carried` to the agent's. What both touch is
 *   atomic, or is written before the message that hands it over.
 * - The last message of the agent's side (`last`) is embedded, so that no lack of memory keeps a
 *   call open. */
#include "agents/crossing.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"

enum { MEMORY_BYTES = 256 << 20, FEW_EVENTS = 16 };

typedef enum news_kind { NEWS_RESULT, NEWS_EVENT, NEWS_END, NEWS_FAIL } news_kind;

typedef struct crossing crossing;

typedef struct news {
    loop_message message;
    crossing *of;
    news_kind kind;
    bool is_embedded;
    bool is_last;
    uint64_t sequence;
    size_t len;
    char bytes[];
} news;

struct crossing {
    atomic_uint references;
    relay_port *origin;
    relay_port *owner;
    crossing_find find;
    bay_str agent;
    arena memory;
    bay_str tracestate;
    bay_str via;

    /* the caller's loop */
    crossings *among;
    list_link link;
    a2a_call *call; /* NULL: ended */
    unsigned held;  /* events that the caller took, but slowly */
    bool is_slow;
    loop_message begin;
    loop_message gone;

    /* the agent's loop */
    a2a_call carried;
    a2a_service *to; /* NULL: ended, or not begun */

    /* both */
    atomic_uint under_way; /* events */
    atomic_bool is_clogged;
    atomic_bool is_drain_posted;
    loop_message drain;
    a2a_fault fault;
    news last;
};

static void unref(crossing *self)
{
    if (atomic_fetch_sub(&self->references, 1) == 1) {
        relay_port_unref(self->origin);
        relay_port_unref(self->owner);
        arena_fini(&self->memory);
        principal_unref(self->carried.principal);
        mem_free(self);
    }
}

static bool post(crossing *self, relay_port *to, loop_message *message)
{
    atomic_fetch_add(&self->references, 1);
    if (relay_port_post(to, message)) {
        return true;
    }
    unref(self);
    return false;
}

/* ---- the caller's loop ----------------------------------------------------------------------- */

/* The call is over for its caller; whoever is returned is to be ended at once. */
static a2a_call *part(crossing *self)
{
    a2a_call *call = self->call;
    self->call = NULL;
    call->user = NULL;
    list_remove(&self->link);
    self->among->count--;
    return call;
}

static void drain_there(crossing *self);

/* So many events less are on their way. */
static void took(crossing *self, unsigned count)
{
    unsigned before = atomic_fetch_sub(&self->under_way, count);
    if (before - count <= FEW_EVENTS && atomic_exchange(&self->is_clogged, false)) {
        drain_there(self);
    }
}

static void take_event(crossing *self, const news *what)
{
    a2a_event *event =
        a2a_event_new((bay_str){what->bytes, what->len}, what->sequence, what->is_last);
    bay_err err = event != NULL ? a2a_call_event(self->call, event) : BAY_NOMEM;
    a2a_event_unref(event);
    if (err == BAY_AGAIN) {
        self->is_slow = true;
    }
    if (err == BAY_OK || err == BAY_AGAIN) {
        if (self->is_slow) {
            self->held++;
        } else {
            took(self, 1);
        }
        return;
    }
    a2a_call_end(part(self));
    (void)post(self, self->owner, &self->gone);
    unref(self);
}

static void on_news(void *argument)
{
    news *what = argument;
    crossing *self = what->of;
    if (self->call == NULL) {
        /* its caller has left */
    } else if (what->kind == NEWS_EVENT) {
        take_event(self, what);
    } else {
        a2a_call *call = part(self);
        if (what->kind == NEWS_RESULT) {
            a2a_call_result(call, (bay_str){what->bytes, what->len});
        } else if (what->kind == NEWS_END) {
            a2a_call_end(call);
        } else {
            a2a_call_fail(call, &self->fault);
        }
        unref(self);
    }
    if (!what->is_embedded) {
        mem_free(what);
    }
    unref(self);
}

/* ---- the agent's loop ------------------------------------------------------------------------ */

static crossing *crossing_of(a2a_call *carried)
{
    return CONTAINER_OF(carried, crossing, carried);
}

/* Nothing comes behind it. Takes the reference of this side. */
static void say_last(crossing *self, news_kind kind)
{
    self->to = NULL;
    self->last.kind = kind;
    (void)post(self, self->origin, &self->last.message); /* closed: nobody waits */
    unref(self);
}

static void fail_with(crossing *self, a2a_error error, const char *text)
{
    err_ignore(
        a2a_fault_set(&self->fault, error, "agent \"%.*s\": %s", BAY_STR(self->agent), text));
    say_last(self, NEWS_FAIL);
}

static news *news_new(crossing *self, news_kind kind, bay_str json)
{
    news *made = mem_alloc(sizeof(*made) + json.len);
    if (made != NULL) {
        *made = (news){.message = {.function = on_news, .argument = made},
                       .of = self,
                       .kind = kind,
                       .len = json.len};
        memcpy(made->bytes, json.at, json.len);
    }
    return made;
}

static void carry_result(a2a_call *call, bay_str json)
{
    crossing *self = crossing_of(call);
    news *made = news_new(self, NEWS_RESULT, json);
    if (made == NULL) {
        fail_with(self, A2A_E_BUSY, "out of memory");
        return;
    }
    self->to = NULL;
    if (!post(self, self->origin, &made->message)) {
        mem_free(made);
    }
    unref(self);
}

static bay_err carry_event(a2a_call *call, a2a_event *event)
{
    crossing *self = crossing_of(call);
    news *made = news_new(self, NEWS_EVENT, a2a_event_json(event));
    if (made == NULL) {
        return BAY_CLOSED; /* a stream with a gap would be worse than none */
    }
    made->sequence = a2a_event_sequence(event);
    made->is_last = a2a_event_is_last(event);
    unsigned before = atomic_fetch_add(&self->under_way, 1);
    if (!post(self, self->origin, &made->message)) {
        mem_free(made);
        return BAY_CLOSED;
    }
    if (before + 1 < CROSSING_EVENTS) {
        return BAY_OK;
    }
    atomic_store(&self->is_clogged, true);
    /* the other side may have taken them all before it could see that */
    bool is_clear =
        atomic_load(&self->under_way) <= FEW_EVENTS && atomic_exchange(&self->is_clogged, false);
    return is_clear ? BAY_OK : BAY_AGAIN;
}

static void carry_end(a2a_call *call)
{
    say_last(crossing_of(call), NEWS_END);
}

static void carry_fail(a2a_call *call, const a2a_fault *fault)
{
    crossing *self = crossing_of(call);
    self->fault = *fault;
    say_last(self, NEWS_FAIL);
}

static bay_str carry_field(a2a_call *call, bay_str name)
{
    const crossing *self = crossing_of(call);
    return str_eq(name, STR("tracestate")) ? self->tracestate
           : str_eq(name, STR("via"))      ? self->via
                                           : (bay_str){NULL, 0};
}

static const a2a_call_ops carried_ops = {carry_result, carry_event, carry_end, carry_fail,
                                         carry_field};

static void on_begin(void *argument)
{
    crossing *self = argument;
    void *face = relay_port_face(self->owner);
    a2a_service *to = face != NULL ? self->find(face, self->agent) : NULL;
    if (to == NULL) {
        fail_with(self, A2A_E_UNAVAILABLE, "it is not there any more");
    } else {
        self->carried.ops = &carried_ops;
        self->carried.memory = &self->memory;
        self->to = to;
        to->call(to, &self->carried);
    }
    unref(self);
}

static void on_gone(void *argument)
{
    crossing *self = argument;
    if (self->to != NULL) {
        self->carried.is_gone = true;
        self->to->gone(self->to, &self->carried);
    }
    unref(self);
}

static void on_drain(void *argument)
{
    crossing *self = argument;
    atomic_store(&self->is_drain_posted, false);
    if (self->to != NULL) {
        self->to->drained(self->to, &self->carried);
    }
    unref(self);
}

static void drain_there(crossing *self)
{
    if (!atomic_exchange(&self->is_drain_posted, true)) {
        (void)post(self, self->owner, &self->drain);
    }
}

/* ---- beginning and ending -------------------------------------------------------------------- */

static bay_err copy_call(crossing *self, a2a_call *call, bay_str agent)
{
    a2a_call *to = &self->carried;
    *to = *call;
    to->context = (call_context){0}; /* it was admitted on the loop it came by */
    to->user = NULL;
    to->principal = principal_ref(call->principal);
    const struct {
        bay_str from;
        bay_str *to;
    } texts[] = {
        {agent, &self->agent},
        {call->tenant, &to->tenant},
        {call->extensions, &to->extensions},
        {call->traceparent, &to->traceparent},
        {a2a_call_tracestate(call), &self->tracestate},
        {a2a_call_via(call), &self->via},
    };
    /* with its index: it was read once, on the loop on which it came */
    bay_err err = json_clone_in(call->params, &self->memory, &to->params);
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(texts); i++) {
        err = arena_dup(&self->memory, texts[i].from, texts[i].to);
    }
    return err;
}

static void refuse(a2a_call *call, bay_str agent, const char *text)
{
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_BUSY, "agent \"%.*s\": %s", BAY_STR(agent), text));
    a2a_call_fail(call, &fault);
}

void crossings_init(crossings *self, relay_port *port)
{
    *self = (crossings){.port = port};
    list_init(&self->open);
}

void crossing_begin(crossings *self, relay_port *owner, bay_str agent, crossing_find find,
                    a2a_call *call)
{
    crossing *made = self->count < CROSSING_OPEN ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        refuse(call, agent, "too much at once; try again later");
        return;
    }
    atomic_init(&made->references, 2);
    arena_init(&made->memory, MEMORY_BYTES);
    made->origin = relay_port_ref(self->port);
    made->owner = relay_port_ref(owner);
    made->find = find;
    made->among = self;
    made->begin = (loop_message){.function = on_begin, .argument = made};
    made->gone = (loop_message){.function = on_gone, .argument = made};
    made->drain = (loop_message){.function = on_drain, .argument = made};
    made->last.message = (loop_message){.function = on_news, .argument = &made->last};
    made->last.of = made;
    made->last.is_embedded = true;
    bay_err err = copy_call(made, call, agent);
    if (err == BAY_OK) {
        made->call = call;
        call->user = made;
        list_push(&self->open, &made->link);
        self->count++;
        if (post(made, owner, &made->begin)) {
            return;
        }
        call = part(made);
    }
    unref(made); /* of the side that never began, and … */
    refuse(call, agent, err != BAY_OK ? "out of memory" : "it is not there any more");
    unref(made); /* … of this one */
}

void crossing_gone(a2a_call *call)
{
    crossing *self = call->user;
    if (self == NULL) {
        return;
    }
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_UNAVAILABLE, "the caller has left"));
    a2a_call_fail(part(self), &fault);
    (void)post(self, self->owner, &self->gone);
    unref(self);
}

void crossing_drained(a2a_call *call)
{
    crossing *self = call->user;
    if (self != NULL) {
        unsigned held = self->held;
        self->held = 0;
        self->is_slow = false;
        took(self, held);
    }
}

void crossings_end(crossings *self)
{
    list_link *at;
    while ((at = list_first(&self->open)) != NULL) {
        crossing_gone(CONTAINER_OF(at, crossing, link)->call);
    }
}
