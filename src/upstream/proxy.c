/* A proxy: an upstream whose owner is on another loop. Calls are in loop_call.c; what the owner
 * sends by itself is in publish.c; here is what the proxy sends to its owner, and its life:
 *
 *   new ──► open ──close──► closing ──the owner closed its end of the link──► closed ──► free
 *
 * The owner outlives its proxies: each of them is closed before the owner is freed. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/proxy.h"

enum {
    PROXY_NOTIFICATION_BYTES = 4 << 20, /* of clients, under way to the owner; then dropped */
};

enum { SIGNAL_START = 1 };

/* To the owner; it needs no answer. */
typedef struct proxy_message {
    loop_pair_message message;
    enum {
        PROXY_SUBSCRIBE,
        PROXY_UNSUBSCRIBE,
        PROXY_LEVEL,
        PROXY_TELL,
        PROXY_IDENTITY_GONE,
        PROXY_CLIENT_ANSWER,
    } kind;
    mcp_log_level level;
    uint64_t number;
    int code;
    bay_str text; /* behind the struct: an identity, or the message of an error */
    bay_str method;
    bay_str params; /* or a URI, or the result of an answer */
} proxy_message;

static upstream_proxy *proxy_of(upstream *self)
{
    return CONTAINER_OF(self, upstream_proxy, base);
}

/* ---- the owner's end of the link ------------------------------------------------------------- */

static void link_begun(loop_pair *pair)
{
    proxy_link *self = CONTAINER_OF(pair, proxy_link, pair);
    upstream *owner = loop_pair_user(pair, LOOP_PAIR_FAR);
    if (owner == NULL) {
        loop_pair_close(pair, LOOP_PAIR_FAR, NULL);
        return;
    }
    list_push(&owner->proxies, &self->link);
    if (owner->state != UPSTREAM_STOPPED || owner->is_settled) {
        upstream_publish_state(owner);
    }
}

static bay_err link_received(loop_pair *pair, loop_pair_message *message)
{
    upstream *owner = loop_pair_user(pair, LOOP_PAIR_FAR);
    const proxy_message *what = CONTAINER_OF(message, proxy_message, message);
    switch (what->kind) {
    case PROXY_LEVEL:
        upstream_set_level(owner, what->level);
        break;
    case PROXY_TELL:
        upstream_tell(owner, what->text, what->method, what->params);
        break;
    case PROXY_IDENTITY_GONE:
        upstream_identity_gone(owner, what->text);
        break;
    case PROXY_CLIENT_ANSWER:
        upstream_client_answer(owner, what->number, what->params, what->code, what->text);
        break;
    default:
        upstream_subscribe(owner, what->text, what->params, what->kind == PROXY_SUBSCRIBE);
    }
    return BAY_OK;
}

static void link_signalled(loop_pair *pair, unsigned signals)
{
    (void)signals; /* there is one */
    upstream_start(loop_pair_user(pair, LOOP_PAIR_FAR));
}

/* The proxy is closing, or was freed. */
static void link_closed(loop_pair *pair, loop_pair_message *last)
{
    (void)last;
    list_remove(&CONTAINER_OF(pair, proxy_link, pair)->link);
    loop_pair_close(pair, LOOP_PAIR_FAR, NULL);
}

static const loop_pair_events link_far_events = {.begun = link_begun,
                                                 .received = link_received,
                                                 .signalled = link_signalled,
                                                 .closed = link_closed,
                                                 .most = PROXY_NOTIFICATION_BYTES};

static void link_release(loop_pair *pair)
{
    mem_free(CONTAINER_OF(pair, proxy_link, pair));
}

/* ---- to the owner ---------------------------------------------------------------------------- */

static void proxy_post(upstream *base, const proxy_message *like, bool is_droppable)
{
    upstream_proxy *self = proxy_of(base);
    if (self->is_closed || self->link == NULL) {
        return; /* the owner may be gone */
    }
    size_t bytes = sizeof(*like) + like->text.len + like->method.len + like->params.len;
    proxy_message *made = mem_alloc(bytes);
    bay_err err = BAY_ERR_NOMEM;
    if (made != NULL) {
        char *at = (char *)(made + 1);
        *made = *like;
        made->text = str_put(&at, like->text);
        made->method = str_put(&at, like->method);
        made->params = str_put(&at, like->params);
        err = loop_pair_post(&self->link->pair, LOOP_PAIR_FAR, &made->message,
                             is_droppable ? bytes : 0);
    }
    if (err != BAY_OK) {
        LOG(LOG_ERROR, "upstream", "%s: a message to the worker that owns it was dropped: %s",
            base->name, bay_err_text(err));
    }
}

static void proxy_start(upstream *base)
{
    upstream_proxy *self = proxy_of(base);
    if (!self->is_closed && self->link != NULL) {
        loop_pair_signal(&self->link->pair, LOOP_PAIR_FAR, SIGNAL_START);
    }
}

static void proxy_subscribe(upstream *base, bay_str identity, bay_str uri, bool is_wanted)
{
    proxy_post(base,
               &(proxy_message){.kind = is_wanted ? PROXY_SUBSCRIBE : PROXY_UNSUBSCRIBE,
                                .text = identity,
                                .params = uri},
               false);
}

static void proxy_tell(upstream *base, bay_str identity, bay_str method, bay_str params)
{
    proxy_post(
        base,
        &(proxy_message){.kind = PROXY_TELL, .text = identity, .method = method, .params = params},
        true);
}

static void proxy_client_answer(upstream *base, uint64_t number, bay_str result, int code,
                                bay_str message)
{
    proxy_post(base,
               &(proxy_message){.kind = PROXY_CLIENT_ANSWER,
                                .number = number,
                                .code = code,
                                .text = message,
                                .params = result},
               false);
}

static void proxy_identity_gone(upstream *base, bay_str identity)
{
    proxy_post(base, &(proxy_message){.kind = PROXY_IDENTITY_GONE, .text = identity}, false);
}

static void proxy_set_level(upstream *base, mcp_log_level level)
{
    upstream_proxy *self = proxy_of(base);
    if (level < self->level) {
        self->level = level;
        proxy_post(base, &(proxy_message){.kind = PROXY_LEVEL, .level = level}, false);
    }
}

/* ---- its life -------------------------------------------------------------------------------- */

static void proxy_fail_calls(upstream_proxy *self, bay_err err, const char *text)
{
    list_link *link;
    while ((link = list_first(&self->open)) != NULL) {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        upstream_loop_call_cancel(call, STR(""));
        upstream_call_fail(call, err, true, text);
    }
}

static void proxy_close(upstream *base, void (*done)(void *user), void *user)
{
    upstream_proxy *self = proxy_of(base);
    bool was_closed = self->is_closed;
    self->close_done = done;
    self->close_user = user;
    self->is_closed = true;
    base->state = UPSTREAM_CLOSED;
    proxy_fail_calls(self, BAY_ERR_CLOSED, "the server is leaving the gateway");
    if (was_closed || (self->link != NULL && loop_pair_finish(&self->link->pair, LOOP_PAIR_NEAR))) {
        return; /* `done` when the owner has closed its end, too */
    }
    self->close_done = NULL;
    if (done != NULL) {
        done(user); /* the owner's loop is gone: nothing comes any more */
    }
}

/* Closed, or no loop runs any more. */
static void proxy_free(upstream *base)
{
    upstream_proxy *self = proxy_of(base);
    self->is_closed = true;
    proxy_fail_calls(self, BAY_ERR_CANCELLED, "the gateway is closing");
    if (self->link != NULL) {
        loop_pair_close(&self->link->pair, LOOP_PAIR_NEAR, NULL);
    }
    upstream_fini(base);
    mem_free(self);
}

static const upstream_ops proxy_ops = {
    .start = proxy_start,
    .close = proxy_close,
    .free = proxy_free,
    .send = upstream_loop_call_send,
    .cancel = upstream_loop_call_cancel,
    .pause = upstream_loop_call_pause,
    .answer = upstream_loop_call_answer,
    .tell = proxy_tell,
    .identity_gone = proxy_identity_gone,
    .client_answer = proxy_client_answer,
    .subscribe = proxy_subscribe,
    .set_level = proxy_set_level,
};

bay_err upstream_new_proxy(const upstream_options *options, upstream *owner, upstream **out)
{
    upstream_proxy *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    list_init(&self->open);
    self->base.owner = owner;
    self->level = MCP_LOG_NONE;
    bay_err err = upstream_init(&self->base, &proxy_ops, options);
    self->link = err == BAY_OK ? mem_zalloc(sizeof(*self->link)) : NULL;
    if (self->link == NULL) {
        upstream_free(&self->base);
        return BAY_ERR_NOMEM;
    }
    self->link->proxy = self;
    loop_pair_init(&self->link->pair, self->base.mailbox, &proxy_link_near_events, owner->mailbox,
                   &link_far_events, link_release);
    err = loop_pair_begin(&self->link->pair);
    if (err != BAY_OK) {
        upstream_free(&self->base);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
