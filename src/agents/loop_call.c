/* Invariants
 * - The near end of the pair belongs to the caller's loop and is open while `call` is set; the far
 *   end belongs to the agent's loop and is open while `to` is set.
 * - What a call fails of is part of the struct, so the far end can always say it. */
#include "agents/loop_call.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "net/loop_pair.h"

enum { MEMORY_BYTES = 256 << 20, FEW_EVENTS = 16 };

/* An event or the result. */
typedef struct loop_event {
    loop_pair_message message;
    bool is_last;
    unsigned labels; /* of the carried call, as the agent's loop found them */
    uint64_t sequence;
    size_t len;
    char bytes[];
} loop_event;

typedef struct loop_call {
    loop_pair pair;
    agents_loop_call_find find;
    bay_str agent;
    arena memory;
    bay_str tracestate;
    bay_str via;
    struct { /* the caller's loop */
        agents_loop_calls *among;
        list_link link;
        a2a_call *call; /* NULL: ended */
    } near;
    struct { /* the agent's loop */
        a2a_call carried;
        a2a_service *to; /* NULL: ended, or not begun */
    } far;
    a2a_fault fault; /* with has_failed: set before the far end is closed */
    bool has_failed;
} loop_call;

static loop_call *of_pair(loop_pair *pair)
{
    return CONTAINER_OF(pair, loop_call, pair);
}

static void loop_call_release(loop_pair *pair)
{
    loop_call *self = of_pair(pair);
    arena_fini(&self->memory);
    principal_unref(self->far.carried.principal);
    mem_free(self);
}

/* ---- the caller's loop ----------------------------------------------------------------------- */

/* The call is over for its caller; the returned call is to be ended at once. */
static a2a_call *near_part(loop_call *self)
{
    a2a_call *call = self->near.call;
    self->near.call = NULL;
    call->user = NULL;
    list_remove(&self->near.link);
    self->near.among->count--;
    return call;
}

static bay_err near_received(loop_pair *pair, loop_pair_message *message)
{
    loop_call *self = of_pair(pair);
    const loop_event *what = CONTAINER_OF(message, loop_event, message);
    self->near.call->context.labels |= what->labels;
    a2a_event *event =
        a2a_event_new((bay_str){what->bytes, what->len}, what->sequence, what->is_last);
    bay_err err = event != NULL ? a2a_call_event(self->near.call, event) : BAY_ERR_NOMEM;
    a2a_event_unref(event);
    bool has_left = !list_holds(&self->near.link); /* in the callback */
    if (err != BAY_OK && err != BAY_ERR_AGAIN && !has_left) {
        a2a_call_end(near_part(self));
        loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
    }
    return err;
}

static void near_closed(loop_pair *pair, loop_pair_message *last)
{
    loop_call *self = of_pair(pair);
    a2a_call *call = near_part(self);
    if (last != NULL) {
        const loop_event *result = CONTAINER_OF(last, loop_event, message);
        call->context.labels |= result->labels;
        a2a_call_result(call, (bay_str){result->bytes, result->len});
    } else if (self->has_failed) {
        a2a_call_fail(call, &self->fault);
    } else {
        a2a_call_end(call);
    }
    loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
}

static const loop_pair_events near_events = {.received = near_received,
                                             .closed = near_closed,
                                             .window = AGENTS_LOOP_CALL_EVENTS,
                                             .resume = FEW_EVENTS};

/* ---- the agent's loop ------------------------------------------------------------------------ */

static loop_call *of_carried(a2a_call *carried)
{
    return CONTAINER_OF(carried, loop_call, far.carried);
}

static void far_close(loop_call *self, loop_event *result)
{
    self->far.to = NULL;
    loop_pair_close(&self->pair, LOOP_PAIR_FAR, result != NULL ? &result->message : NULL);
}

static void far_fail(loop_call *self, a2a_error error, const char *text)
{
    err_ignore(
        a2a_fault_set(&self->fault, error, "agent \"%.*s\": %s", BAY_STR(self->agent), text));
    self->has_failed = true;
    far_close(self, NULL);
}

static loop_event *event_new(const a2a_call *carried, bay_str json)
{
    loop_event *made = mem_alloc(sizeof(*made) + json.len);
    if (made != NULL) {
        *made = (loop_event){.len = json.len, .labels = carried->context.labels};
        memcpy(made->bytes, json.at, json.len);
    }
    return made;
}

static void carry_result(a2a_call *call, bay_str json)
{
    loop_event *made = event_new(call, json);
    if (made == NULL) {
        far_fail(of_carried(call), A2A_E_BUSY, "out of memory");
        return;
    }
    far_close(of_carried(call), made);
}

static bay_err carry_event(a2a_call *call, a2a_event *event)
{
    loop_event *made = event_new(call, a2a_event_json(event));
    if (made == NULL) {
        return BAY_ERR_CLOSED; /* a stream with a gap would be worse than none */
    }
    made->sequence = a2a_event_sequence(event);
    made->is_last = a2a_event_is_last(event);
    return loop_pair_post(&of_carried(call)->pair, LOOP_PAIR_NEAR, &made->message, 1);
}

static void carry_end(a2a_call *call)
{
    far_close(of_carried(call), NULL);
}

static void carry_fail(a2a_call *call, const a2a_fault *fault)
{
    loop_call *self = of_carried(call);
    self->fault = *fault;
    self->has_failed = true;
    far_close(self, NULL);
}

static bay_str carry_field(a2a_call *call, bay_str name)
{
    const loop_call *self = of_carried(call);
    return str_eq(name, STR("tracestate")) ? self->tracestate
           : str_eq(name, STR("via"))      ? self->via
                                           : (bay_str){NULL, 0};
}

static const a2a_call_ops carried_ops = {carry_result, carry_event, carry_end, carry_fail,
                                         carry_field};

static void far_begun(loop_pair *pair)
{
    loop_call *self = of_pair(pair);
    void *user = loop_pair_user(pair, LOOP_PAIR_FAR);
    a2a_service *to = user != NULL ? self->find(user, self->agent) : NULL;
    if (to == NULL) {
        far_fail(self, A2A_E_UNAVAILABLE, "it is not there any more");
        return;
    }
    self->far.carried.ops = &carried_ops;
    self->far.carried.memory = &self->memory;
    self->far.to = to;
    to->call(to, &self->far.carried);
}

static void far_drained(loop_pair *pair)
{
    loop_call *self = of_pair(pair);
    self->far.to->drained(self->far.to, &self->far.carried);
}

/* The far end stays open until the service ends the carried call. */
static void far_closed(loop_pair *pair, loop_pair_message *last)
{
    loop_call *self = of_pair(pair);
    (void)last;
    self->far.carried.is_gone = true;
    self->far.to->gone(self->far.to, &self->far.carried);
}

static const loop_pair_events far_events = {
    .begun = far_begun, .drained = far_drained, .closed = far_closed};

/* ---- beginning and ending -------------------------------------------------------------------- */

static bay_err copy_call(loop_call *self, a2a_call *call, bay_str agent)
{
    a2a_call *to = &self->far.carried;
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

static void loop_call_refuse(a2a_call *call, bay_str agent, const char *text)
{
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_BUSY, "agent \"%.*s\": %s", BAY_STR(agent), text));
    a2a_call_fail(call, &fault);
}

void agents_loop_calls_init(agents_loop_calls *self, loop_mailbox *mailbox)
{
    *self = (agents_loop_calls){.mailbox = mailbox};
    list_init(&self->open);
}

void agents_loop_call_begin(agents_loop_calls *self, loop_mailbox *owner, bay_str agent,
                            agents_loop_call_find find, a2a_call *call)
{
    loop_call *made = self->count < AGENTS_LOOP_CALLS ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        loop_call_refuse(call, agent, "too much at once; try again later");
        return;
    }
    arena_init(&made->memory, MEMORY_BYTES);
    loop_pair_init(&made->pair, self->mailbox, &near_events, owner, &far_events, loop_call_release);
    made->find = find;
    made->near.among = self;
    bay_err err = copy_call(made, call, agent);
    if (err == BAY_OK) {
        made->near.call = call;
        call->user = made;
        list_push(&self->open, &made->near.link);
        self->count++;
        err = loop_pair_begin(&made->pair);
        if (err == BAY_OK) {
            return;
        }
        call = near_part(made);
    }
    loop_call_refuse(call, agent,
                     err != BAY_ERR_CLOSED ? "out of memory" : "it is not there any more");
    loop_pair_close(&made->pair, LOOP_PAIR_NEAR, NULL);
}

void agents_loop_call_gone(a2a_call *call)
{
    loop_call *self = call->user;
    if (self == NULL) {
        return;
    }
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_UNAVAILABLE, "the caller has left"));
    a2a_call_fail(near_part(self), &fault);
    loop_pair_close(&self->pair, LOOP_PAIR_NEAR, NULL);
}

void agents_loop_call_drained(a2a_call *call)
{
    loop_call *self = call->user;
    if (self != NULL) {
        loop_pair_resume(&self->pair, LOOP_PAIR_NEAR);
    }
}

void agents_loop_calls_end(agents_loop_calls *self)
{
    list_link *at;
    while ((at = list_first(&self->open)) != NULL) {
        agents_loop_call_gone(CONTAINER_OF(at, loop_call, near.link)->near.call);
    }
}
