/* What an owner sends to its proxies on other loops, in order. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/proxy.h"

enum {
    ELICITED_MOST = 100,   /* notifications/elicitation/complete of one server, in a second */
    ELICITED_BYTES = 4096, /* of their params */
    PROXY_UPDATE_BYTES = 4 << 20, /* under way to one proxy; further ones are dropped */
};

typedef struct owner_message {
    loop_pair_message message;
    enum {
        OWNER_STATE,
        OWNER_CHANGE,
        OWNER_UPDATE,
        OWNER_ELICITED,
        OWNER_CLIENT_TOLD, /* bytes: the identity, then a URI */
        OWNER_CLIENT_ASKED,
        OWNER_CLIENT_WITHDRAWN,
        OWNER_OWN_SESSION,
    } kind;
    bool is_open;
    upstream_state state;
    mcp_change change;
    mcp_method_id method;
    uint64_t number;
    size_t identity_len;
    uint32_t restarts;
    int process_id;
    bool is_settled;
    const mcp_revision *revision;
    char error[UPSTREAM_ERROR_BYTES];
    json_val value; /* capabilities, params or a request, a clone behind the bytes' end; may be
                       missing */
    size_t len;
    char bytes[]; /* instructions, or a URI */
} owner_message;

/* ---- the proxy's end ------------------------------------------------------------------------- */

static void state_arrives(upstream_proxy *self, const owner_message *what)
{
    upstream *base = &self->base;
    base->restarts = what->restarts;
    base->process_id = what->process_id;
    base->is_settled = what->is_settled;
    if (what->revision != NULL) {
        upstream_learn_instructions(base, (bay_str){what->bytes, what->len});
        upstream_learn(base, what->revision, what->value);
    }
    snprintf(base->error, sizeof(base->error), "%s", what->error);
    base->state = what->state; /* the owner's table has checked the step */
    if (upstream_is_down(base)) {
        memcpy(base->last_break, base->error, sizeof(base->error));
    }
    base->events->state_changed(base->user, base);
}

static void elicited_arrives(upstream_proxy *self, const owner_message *what)
{
    upstream *base = &self->base;
    if (base->events->elicited != NULL) {
        base->events->elicited(base->user, base, what->value);
    }
}

static void client_told_arrives(upstream *base, const owner_message *what)
{
    upstream_client_message message = {
        .identity = {what->bytes, what->identity_len},
        .method = what->method,
        .uri = {what->bytes + what->identity_len, what->len - what->identity_len},
        .params = what->value};
    if (base->events->client_told != NULL) {
        base->events->client_told(base->user, base, &message);
    }
}

static void client_asked_arrives(upstream *base, const owner_message *what)
{
    rpc_message request;
    rpc_fault fault;
    arena memory;
    arena_init(&memory, PROXY_UPDATE_BYTES);
    bool is_taken = base->events->client_asked != NULL &&
                    rpc_message_read(&request, what->value, &memory, &fault) == BAY_OK &&
                    base->events->client_asked(base->user, base, (bay_str){what->bytes, what->len},
                                               what->number, &request);
    arena_fini(&memory);
    if (!is_taken) {
        upstream_client_answer(base, what->number, (bay_str){NULL, 0}, RPC_METHOD_NOT_FOUND,
                               STR("the client cannot be asked"));
    }
}

static void client_withdrawn_arrives(upstream *base, const owner_message *what)
{
    if (base->events->client_withdrawn != NULL) {
        base->events->client_withdrawn(base->user, base, what->number);
    }
}

static bay_err link_received(loop_pair *pair, loop_pair_message *message)
{
    upstream_proxy *self = CONTAINER_OF(pair, proxy_link, pair)->proxy;
    upstream *base = &self->base;
    const owner_message *what = CONTAINER_OF(message, owner_message, message);
    if (self->is_closed) {
        return BAY_OK; /* closing */
    }
    switch (what->kind) {
    case OWNER_STATE:
        state_arrives(self, what);
        break;
    case OWNER_CHANGE:
        base->events->changed(base->user, base, what->change);
        break;
    case OWNER_UPDATE:
        base->events->updated(base->user, base, (bay_str){what->bytes, what->len});
        break;
    case OWNER_ELICITED:
        elicited_arrives(self, what);
        break;
    case OWNER_CLIENT_TOLD:
        client_told_arrives(base, what);
        break;
    case OWNER_CLIENT_ASKED:
        client_asked_arrives(base, what);
        break;
    case OWNER_CLIENT_WITHDRAWN:
        client_withdrawn_arrives(base, what);
        break;
    case OWNER_OWN_SESSION:
        if (base->events->own_session != NULL) {
            base->events->own_session(base->user, base, (bay_str){what->bytes, what->len},
                                      what->number, what->is_open);
        }
    }
    return BAY_OK;
}

static void link_closed(loop_pair *pair, loop_pair_message *last)
{
    upstream_proxy *self = CONTAINER_OF(pair, proxy_link, pair)->proxy;
    void (*done)(void *user) = self->close_done;
    (void)last;
    self->link = NULL;
    self->close_done = NULL;
    loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
    if (done != NULL) {
        done(self->close_user); /* may free the proxy */
    }
}

const loop_pair_events proxy_link_near_events = {
    .received = link_received, .closed = link_closed, .most = PROXY_UPDATE_BYTES};

/* ---- the owner's end ------------------------------------------------------------------------- */

/* A client reads a resource anew when it is next told, so one that is late may be dropped. */
static bay_err link_post(upstream *owner, proxy_link *to, const owner_message *like, bay_str bytes)
{
    bool is_droppable = like->kind == OWNER_UPDATE || like->kind == OWNER_ELICITED ||
                        like->kind == OWNER_CLIENT_TOLD;
    owner_message *made;
    bool has_value = !json_is(like->value, JSON_MISSING);
    size_t text = (bytes.len + 7) / 8 * 8; /* the clone is aligned as a pointer is */
    size_t size = sizeof(*made) + text + (has_value ? json_clone_bytes(like->value) : 0);
    bay_err err = BAY_ERR_NOMEM;
    made = mem_alloc(size);
    if (made != NULL) {
        *made = *like;
        made->len = bytes.len;
        if (has_value) {
            made->value = json_root(json_clone_at(like->value, (char *)(made + 1) + text));
        }
        if (bytes.len > 0) {
            memcpy(made->bytes, bytes.at, bytes.len);
        }
        err = loop_pair_post(&to->pair, LOOP_PAIR_NEAR, &made->message, is_droppable ? size : 0);
    }
    if (err == BAY_ERR_LIMIT && !to->has_dropped_messages) {
        to->has_dropped_messages = true;
        LOG(LOG_WARN, "upstream",
            "%s: dropped resource updates for a worker that is too busy to take them; its clients "
            "do not get these notifications",
            owner->name);
    } else if (err == BAY_ERR_NOMEM) {
        LOG(LOG_ERROR, "upstream", "%s: another worker could not be told of a change: %s",
            owner->name, bay_err_text(err));
    }
    return err;
}

static void publish(upstream *owner, const owner_message *like, bay_str bytes)
{
    LIST_EACH(at, &owner->proxies)
    {
        err_ignore(link_post(owner, CONTAINER_OF(at, proxy_link, link), like, bytes));
    }
}

void upstream_publish_state(upstream *self)
{
    if (list_is_empty(&self->proxies)) {
        return;
    }
    owner_message like = {.kind = OWNER_STATE,
                          .state = self->state,
                          .restarts = self->restarts,
                          .process_id = self->process_id,
                          .is_settled = self->is_settled,
                          .revision = self->revision,
                          .value = self->capabilities != NULL ? json_root(self->capabilities)
                                                              : JSON_NONE};
    snprintf(like.error, sizeof(like.error), "%s", self->error);
    publish(self, &like, buf_view(&self->instructions));
}

void upstream_publish_change(upstream *self, mcp_change change)
{
    owner_message like = {.kind = OWNER_CHANGE, .change = change};
    publish(self, &like, (bay_str){NULL, 0});
}

void upstream_publish_update(upstream *self, bay_str uri)
{
    owner_message like = {.kind = OWNER_UPDATE};
    publish(self, &like, uri);
}

/* ---- to one client --------------------------------------------------------------------------- */

/* NULL: it has left. */
static proxy_link *link_of(upstream *owner, const void *home)
{
    LIST_EACH(at, &owner->proxies)
    {
        proxy_link *one = CONTAINER_OF(at, proxy_link, link);
        if (one->proxy == home) {
            return one;
        }
    }
    return NULL;
}

void upstream_tell_client(upstream *self, const void *home, const upstream_client_message *what)
{
    if (home == NULL) {
        if (self->events->client_told != NULL) {
            self->events->client_told(self->user, self, what);
        }
        return;
    }
    proxy_link *to = link_of(self, home);
    buf bytes;
    buf_init(&bytes, PROXY_UPDATE_BYTES);
    buf_str(&bytes, what->identity);
    buf_str(&bytes, what->uri);
    owner_message like = {.kind = OWNER_CLIENT_TOLD,
                          .method = what->method,
                          .identity_len = what->identity.len,
                          .value = what->params};
    if (to != NULL && bytes.err == BAY_OK) {
        err_ignore(link_post(self, to, &like, buf_view(&bytes)));
    }
    buf_fini(&bytes);
}

bool upstream_ask_client(upstream *self, const void *home, bay_str identity, uint64_t number,
                         const rpc_message *request)
{
    if (home == NULL) {
        return self->events->client_asked != NULL &&
               self->events->client_asked(self->user, self, identity, number, request);
    }
    proxy_link *to = link_of(self, home);
    owner_message like = {.kind = OWNER_CLIENT_ASKED, .number = number, .value = request->root};
    return to != NULL && link_post(self, to, &like, identity) == BAY_OK;
}

void upstream_take_back_from_client(upstream *self, const void *home, uint64_t number)
{
    if (home == NULL) {
        if (self->events->client_withdrawn != NULL) {
            self->events->client_withdrawn(self->user, self, number);
        }
        return;
    }
    proxy_link *to = link_of(self, home);
    owner_message like = {.kind = OWNER_CLIENT_WITHDRAWN, .number = number};
    if (to != NULL) {
        err_ignore(link_post(self, to, &like, (bay_str){NULL, 0}));
    }
}

void upstream_own_session(upstream *self, const void *home, bay_str identity, uint64_t number,
                          bool is_open)
{
    if (home == NULL) {
        if (self->events->own_session != NULL) {
            self->events->own_session(self->user, self, identity, number, is_open);
        }
        return;
    }
    proxy_link *to = link_of(self, home);
    owner_message like = {.kind = OWNER_OWN_SESSION, .number = number, .is_open = is_open};
    if (to != NULL) {
        err_ignore(link_post(self, to, &like, identity));
    }
}

/* A person completes these: what comes faster is noise, and must not fill other loops' queues. */
void upstream_tell_elicited(upstream *self, json_val params)
{
    uint64_t now = loop_now_ms(self->loop);
    if (now - self->elicited_ms >= 1000) {
        self->elicited_ms = now;
        self->elicited_count = 0;
    }
    if (json_raw(params).len > ELICITED_BYTES || self->elicited_count++ >= ELICITED_MOST) {
        return;
    }
    if (self->events->elicited != NULL) {
        self->events->elicited(self->user, self, params);
    }
    owner_message like = {.kind = OWNER_ELICITED, .value = params};
    publish(self, &like, (bay_str){NULL, 0});
}

void upstream_forget_proxies(upstream *self)
{
    list_link *link;
    while (self->proxies.head.next != NULL && (link = list_pop(&self->proxies)) != NULL) {
        loop_pair_close(&CONTAINER_OF(link, proxy_link, link)->pair, LOOP_PAIR_FAR, NULL);
    }
}
