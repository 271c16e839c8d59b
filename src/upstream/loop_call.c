/* A call of a proxy, on its way to the owner's loop and back. Both directions carry copies.
 *
 * The near end belongs to the proxy's loop and is open while `origin` is set; the far end belongs
 * to the owner's loop and is open while `call` is. What the two share else is written before the
 * message that hands it over. */
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/proxy.h"

enum {
    LOOP_CALL_MEMORY = 1 << 30,
    LOOP_CALL_NOTIFICATION_BYTES = 4 << 20, /* under way to the caller; further ones are dropped */
};

enum { SIGNAL_PAUSE = 1 };

typedef enum message_kind {
    MESSAGE_NOTIFIED,
    MESSAGE_ASKED,     /* value: the request */
    MESSAGE_WITHDRAWN, /* text: the id */
    MESSAGE_DONE,      /* the last one */
    MESSAGE_ANSWER,    /* to the owner; result, or empty; text: the id; more: an error's message */
} message_kind;

typedef struct call_message {
    loop_pair_message message;
    message_kind kind;
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
} call_message;

typedef struct loop_call {
    loop_pair pair;
    upstream_call *origin; /* the caller's; NULL: ended */
    upstream_call call;    /* the owner's */
    arena memory;          /* the copies */
    atomic_bool is_paused;
    mcp_outcome outcome; /* without its bytes: if there is no memory for the last message */
} loop_call;

static loop_call *of_pair(loop_pair *pair)
{
    return CONTAINER_OF(pair, loop_call, pair);
}

static void loop_call_release(loop_pair *pair)
{
    loop_call *self = of_pair(pair);
    principal_unref(self->call.affinity.principal);
    arena_fini(&self->memory);
    mem_free(self);
}

/* A message with copies of what `like` points to; NULL: out of memory. */
static call_message *message_new(const call_message *like)
{
    bool has_value = !json_is(like->value, JSON_MISSING);
    size_t value_bytes = has_value ? json_clone_bytes(like->value) : 0;
    size_t bytes = sizeof(call_message) + 1 + like->text.len + like->result.len + like->more.len;
    if (__builtin_add_overflow(bytes, value_bytes, &bytes)) {
        return NULL;
    }
    call_message *self = mem_alloc(bytes);
    if (self == NULL) {
        return NULL;
    }
    *self = *like;
    self->bytes = bytes;
    char *at = (char *)(self + 1) + value_bytes;
    if (has_value) {
        self->value = json_root(json_clone_at(like->value, self + 1));
    }
    self->text = str_put(&at, like->text);
    *at++ = '\0';
    self->result = str_put(&at, like->result);
    self->more = str_put(&at, like->more);
    return self;
}

/* ---- the proxy's loop ------------------------------------------------------------------------ */

/* The caller has its call back; the near end is to be closed. */
static upstream_call *near_part(loop_call *self)
{
    upstream_call *origin = self->origin;
    self->origin = NULL;
    list_remove(&origin->link);
    origin->remote = NULL;
    return origin;
}

static void near_ask(upstream_call *origin, const call_message *what)
{
    rpc_message request;
    rpc_fault fault;
    arena memory;
    arena_init(&memory, LOOP_CALL_MEMORY);
    if (!json_is(what->value, JSON_MISSING) &&
        rpc_message_read(&request, what->value, &memory, &fault) == BAY_OK) {
        origin->events->asked(origin->user, &request);
    } else {
        upstream_call_answer(origin, what->text, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             STR("the gateway is out of memory"));
    }
    arena_fini(&memory);
}

static bay_err near_received(loop_pair *pair, loop_pair_message *message)
{
    upstream_call *origin = of_pair(pair)->origin;
    const call_message *what = CONTAINER_OF(message, call_message, message);
    if (what->kind == MESSAGE_ASKED) {
        near_ask(origin, what);
    } else if (what->kind == MESSAGE_NOTIFIED) {
        origin->events->notified(origin->user, what->method, what->value);
    } else if (origin->events->withdrawn != NULL) {
        origin->events->withdrawn(origin->user, what->text);
    }
    return BAY_OK;
}

static void near_closed(loop_pair *pair, loop_pair_message *last)
{
    loop_call *self = of_pair(pair);
    mcp_outcome outcome = self->outcome;
    json_val value = JSON_NONE;
    if (last != NULL) {
        const call_message *done = CONTAINER_OF(last, call_message, message);
        outcome = done->outcome;
        outcome.text = done->text.at;
        value = done->value;
    }
    outcome.result = outcome.kind == MCP_OUTCOME_RESULT ? value : JSON_NONE;
    outcome.error = outcome.kind == MCP_OUTCOME_ERROR ? value : JSON_NONE;
    if (outcome.kind != MCP_OUTCOME_FAILED && json_is(value, JSON_MISSING)) {
        outcome = (mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                .err = BAY_ERR_NOMEM,
                                .was_sent = true,
                                .text = "no memory for the answer on its way back"};
    }
    upstream_call *origin = near_part(self);
    upstream_call_end(origin);
    origin->events->done(origin->user, &outcome);
    loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
}

static const loop_pair_events near_events = {
    .received = near_received, .closed = near_closed, .most = LOOP_CALL_NOTIFICATION_BYTES};

/* ---- the owner's loop ------------------------------------------------------------------------ */

/* Progress is worth nothing when late: what comes faster than the other loop takes it is dropped.
 */
static void far_notified(void *user, mcp_method_id method, json_val params)
{
    loop_call *self = user;
    if (!loop_pair_has_room(&self->pair, LOOP_PAIR_NEAR, json_raw(params).len)) {
        return;
    }
    call_message *made =
        message_new(&(call_message){.kind = MESSAGE_NOTIFIED, .method = method, .value = params});
    if (made == NULL) {
        LOG(LOG_ERROR, "upstream", "out of memory: a notification between loops was lost");
        return;
    }
    err_ignore(loop_pair_post(&self->pair, LOOP_PAIR_NEAR, &made->message, made->bytes));
}

/* From now on the call is not sent again: nobody is asked the same twice for one call. */
static void far_asked(void *user, const rpc_message *request)
{
    loop_call *self = user;
    self->call.is_repeatable = false;
    call_message *made = message_new(
        &(call_message){.kind = MESSAGE_ASKED, .value = request->root, .text = request->id});
    if (made == NULL || loop_pair_post(&self->pair, LOOP_PAIR_NEAR, &made->message, 0) != BAY_OK) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             STR("out of memory"));
    }
}

/* Lost for lack of memory: it will be answered, and the answer is then to nothing. */
static void far_withdrawn(void *user, bay_str id)
{
    loop_call *self = user;
    call_message *made = message_new(&(call_message){.kind = MESSAGE_WITHDRAWN, .text = id});
    if (made != NULL) {
        err_ignore(loop_pair_post(&self->pair, LOOP_PAIR_NEAR, &made->message, 0));
    }
}

/* Without memory an end is told without its bytes. */
static void far_done(void *user, const mcp_outcome *outcome)
{
    loop_call *self = user;
    call_message like = {.kind = MESSAGE_DONE,
                         .outcome = *outcome,
                         .value = outcome->kind == MCP_OUTCOME_RESULT  ? outcome->result
                                  : outcome->kind == MCP_OUTCOME_ERROR ? outcome->error
                                                                       : JSON_NONE,
                         .text = str_of(outcome->text)};
    call_message *last = message_new(&like);
    self->outcome = *outcome;
    self->outcome.text = "";
    loop_pair_close(&self->pair, LOOP_PAIR_FAR, last != NULL ? &last->message : NULL);
}

static const upstream_call_events call_events = {
    .notified = far_notified, .asked = far_asked, .withdrawn = far_withdrawn, .done = far_done};

/* Of calls by which nobody can be asked: a question must not be taken for one of theirs. */
static const upstream_call_events silent_call_events = {.notified = far_notified, .done = far_done};

static void far_begun(loop_pair *pair)
{
    loop_call *self = of_pair(pair);
    upstream *owner = loop_pair_user(pair, LOOP_PAIR_FAR);
    if (owner == NULL) {
        far_done(self, &(mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                      .err = BAY_ERR_CLOSED,
                                      .text = "the server is leaving the gateway"});
        return;
    }
    upstream_send(owner, &self->call);
}

static bay_err far_received(loop_pair *pair, loop_pair_message *message)
{
    const call_message *what = CONTAINER_OF(message, call_message, message);
    upstream_call_answer(&of_pair(pair)->call, what->text, what->result, what->code, what->more);
    return BAY_OK;
}

static void far_signalled(loop_pair *pair, unsigned signals)
{
    loop_call *self = of_pair(pair);
    (void)signals; /* there is one */
    upstream_call_pause(&self->call, atomic_load(&self->is_paused));
}

/* The caller has cancelled; the owner's call gets no `done` then. */
static void far_closed(loop_pair *pair, loop_pair_message *last)
{
    (void)last;
    upstream_call_cancel(&of_pair(pair)->call, STR("the client cancelled"));
    loop_pair_close(pair, LOOP_PAIR_FAR, NULL);
}

static const loop_pair_events far_events = {
    .begun = far_begun, .received = far_received, .signalled = far_signalled, .closed = far_closed};

/* ---- what the caller does -------------------------------------------------------------------- */

/* Values go with their index: they were read once, on the loop on which they came. */
static bay_err copy_call(loop_call *self, const upstream_call *call, const upstream_proxy *home)
{
    const mcp_call_spec *from = &call->spec;
    const upstream_affinity *affinity = &call->affinity;
    mcp_call_spec *to = &self->call.spec;
    upstream_affinity *owned = &self->call.affinity;
    *to = *from;
    *owned = (upstream_affinity){.inputs = affinity->inputs,
                                 .principal = principal_ref(affinity->principal),
                                 .is_stateless = affinity->is_stateless,
                                 .has_session = affinity->has_session,
                                 .home = home};
    self->call.is_repeatable = call->is_repeatable;
    to->param_table = NULL; /* header fields are for URLs, and those have an owner on each loop */
    const struct {
        bay_str from;
        bay_str *to;
    } texts[] = {
        {from->method, &to->method},
        {from->rename, &to->rename},
        {from->capabilities, &to->capabilities},
        {from->client_info, &to->client_info},
        {affinity->identity, &owned->identity},
        {call->task, &self->call.task},
    };
    bay_err err = json_clone_in(from->params, &self->memory, &to->params);
    err = err == BAY_OK ? json_clone_in(from->meta, &self->memory, &to->meta) : err;
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(texts); i++) {
        err = arena_dup(&self->memory, texts[i].from, texts[i].to);
    }
    return err;
}

void upstream_loop_call_send(upstream *base, upstream_call *call)
{
    upstream_proxy *proxy = CONTAINER_OF(base, upstream_proxy, base);
    call->remote = NULL;
    if (proxy->is_closed) {
        upstream_call_fail(call, BAY_ERR_CLOSED, false, "the server is leaving the gateway");
        return;
    }
    loop_call *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        upstream_call_fail(call, BAY_ERR_NOMEM, false, "");
        return;
    }
    loop_pair_init(&self->pair, base->mailbox, &near_events, base->owner->mailbox, &far_events,
                   loop_call_release);
    atomic_init(&self->is_paused, false);
    arena_init(&self->memory, LOOP_CALL_MEMORY);
    self->call.events = call->events->asked != NULL ? &call_events : &silent_call_events;
    self->call.user = self;
    bay_err err = copy_call(self, call, proxy);
    if (err == BAY_OK) {
        err = loop_pair_begin(&self->pair);
    }
    if (err != BAY_OK) {
        loop_pair_close(&self->pair, LOOP_PAIR_NEAR, NULL);
        upstream_call_fail(call, err, false, "");
        return;
    }
    self->origin = call;
    call->remote = self;
    list_push(&proxy->open, &call->link);
}

void upstream_loop_call_cancel(upstream_call *call, bay_str reason)
{
    loop_call *self = call->remote;
    (void)reason;
    if (self != NULL) {
        (void)near_part(self);
        loop_pair_close(&self->pair, LOOP_PAIR_NEAR, NULL);
    }
}

void upstream_loop_call_pause(upstream_call *call, bool is_paused)
{
    loop_call *self = call->remote;
    if (self != NULL) {
        atomic_store(&self->is_paused, is_paused);
        loop_pair_signal(&self->pair, LOOP_PAIR_FAR, SIGNAL_PAUSE);
    }
}

/* The server waits for it, so the call must not go on as if it had been said. */
void upstream_loop_call_answer(upstream_call *call, bay_str id, bay_str result, int code,
                               bay_str message)
{
    loop_call *self = call->remote;
    if (self == NULL) {
        return;
    }
    call_message *made = message_new(&(call_message){
        .kind = MESSAGE_ANSWER, .code = code, .text = id, .result = result, .more = message});
    if (made == NULL || loop_pair_post(&self->pair, LOOP_PAIR_FAR, &made->message, 0) != BAY_OK) {
        upstream_loop_call_cancel(call, STR(""));
        upstream_call_fail(call, BAY_ERR_NOMEM, true, "no memory for an answer on its way there");
    }
}
