/* Subscriptions to resources: which server each went to, so that it follows the resource to another
 * one, to a server that took the place of the first, or to one that is yet to be heard of. A server
 * gets each URI once for all clients, over the session that they share; and for a client that may
 * have a session of its own, once more over that.
 *
 * Invariant: a subscription is in by_uri, and in endpoint.unowned exactly while it has no server.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

enum { MOST_SUBSCRIPTIONS = 1 << 20 }; /* the engine bounds them by client */

typedef struct subscription {
    list_link link; /* in endpoint.owned or endpoint.unowned */
    upstream *to;   /* NULL: nobody's yet */
    size_t len;
    char uri[];
} subscription;

static bay_str uri_of(const subscription *self)
{
    return (bay_str){self->uri, self->len};
}

void endpoint_subscriptions_init(endpoint *self)
{
    map_init(&self->subscriptions, MOST_SUBSCRIPTIONS);
    list_init(&self->owned);
    list_init(&self->unowned);
}

static void free_all(list *from)
{
    list_link *link;
    while ((link = list_pop(from)) != NULL) {
        mem_free(CONTAINER_OF(link, subscription, link));
    }
}

void endpoint_subscriptions_fini(endpoint *self)
{
    free_all(&self->owned);
    free_all(&self->unowned);
    map_fini(&self->subscriptions);
}

/* May servers have sessions for this client alone? */
static bool may_have_own(const endpoint *self, const mcp_session *session)
{
    return !self->has_one_client && mcp_session_inputs(session) != 0;
}

static void subscribe_own(endpoint *self, mcp_session *session, upstream *to, bay_str address,
                          bool is_wanted)
{
    bay_str identity;
    /* without memory it is told what all are */
    if (to != NULL && may_have_own(self, session) &&
        endpoint_session_identity(self, session, &identity) == BAY_OK) {
        upstream_subscribe(to, identity, address, is_wanted);
    }
}

typedef struct own_move {
    endpoint *endpoint;
    const subscription *one;
    upstream *from;
    upstream *to;
} own_move;

static void move_own(void *user, mcp_session *session)
{
    const own_move *move = user;
    subscribe_own(move->endpoint, session, move->to, uri_of(move->one), true);
    subscribe_own(move->endpoint, session, move->from, uri_of(move->one), false);
}

static void subscription_move(endpoint *self, subscription *one, upstream *to)
{
    upstream *from = one->to;
    list_remove(&one->link);
    list_push(to != NULL ? &self->owned : &self->unowned, &one->link);
    if (from == to) {
        return;
    }
    one->to = to;
    if (to != NULL) {
        upstream_subscribe(to, (bay_str){NULL, 0}, uri_of(one), true);
    }
    if (from != NULL) {
        upstream_subscribe(from, (bay_str){NULL, 0}, uri_of(one), false);
    }
    own_move move = {self, one, from, to};
    mcp_server_each_subscriber(self->engine, uri_of(one), move_own, &move);
}

static bay_err subscription_new(endpoint *self, bay_str address, upstream *to)
{
    subscription *one = mem_zalloc(sizeof(*one) + address.len);
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    one->len = address.len;
    memcpy(one->uri, address.at, address.len);
    bay_err err = map_put(&self->subscriptions, uri_of(one), one, NULL);
    if (err != BAY_OK) {
        mem_free(one);
        return err;
    }
    list_push(&self->unowned, &one->link);
    subscription_move(self, one, to);
    return BAY_OK;
}

/* Whose resource it is, for a subscription. NULL with BAY_OK: nobody can say before the lists have
 * been read. */
static bay_err find_owner(const endpoint *self, const mcp_session *session, bay_str address,
                          upstream **out)
{
    bool is_early = !self->is_settled && endpoint_owner_by_list(self, session, address) == NULL;
    *out = is_early ? NULL : endpoint_owner_of_resource(self, session, address);
    return *out != NULL || is_early ? BAY_OK : BAY_ERR_NOT_FOUND;
}

bay_err endpoint_resolve_subscription(void *user, mcp_session *session, call_context *call,
                                      call_target **out)
{
    upstream *owner;
    bay_err err = find_owner(user, session, call->shown, &owner);
    if (err == BAY_OK && !endpoint_sees_resource(call, owner)) {
        err = BAY_ERR_NOT_FOUND;
    }
    owner = err == BAY_OK ? owner : NULL;
    *out = owner != NULL ? upstream_target(owner) : NULL;
    return err;
}

bool endpoint_shows_resource(const endpoint *self, const mcp_session *session, bay_str address)
{
    upstream *owner;
    return find_owner(self, session, address, &owner) == BAY_OK;
}

typedef struct shared_update {
    const endpoint *endpoint;
    const upstream *from;
} shared_update;

/* Its own session tells that client. */
static bool is_told_otherwise(void *user, mcp_session *session)
{
    const shared_update *update = user;
    return own_lists_has(update->endpoint, session, update->from);
}

/* What is shown may have changed since the client subscribed. */
void endpoint_updated(endpoint *self, const upstream *from, bay_str address)
{
    if (endpoint_shows_resource(self, NULL, address)) {
        shared_update update = {self, from};
        mcp_server_resource_updated_but(self->engine, address, is_told_otherwise, &update);
    }
}

bay_err endpoint_subscribe(void *user, bay_str address, bool is_wanted)
{
    endpoint *self = user;
    if (!is_wanted) {
        subscription *one = map_remove(&self->subscriptions, address);
        if (one != NULL) {
            subscription_move(self, one, NULL);
            list_remove(&one->link);
            mem_free(one);
        }
        return BAY_OK;
    }
    upstream *owner; /* NULL also where only the client that was admitted to it has it */
    err_ignore(find_owner(self, NULL, address, &owner));
    return subscription_new(self, address, owner);
}

void endpoint_subscribed(void *user, mcp_session *session, bay_str address, bool is_wanted)
{
    endpoint *self = user;
    const subscription *one = map_get(&self->subscriptions, address);
    upstream *to = one != NULL ? one->to : NULL;
    if (to == NULL) {
        to = endpoint_owner_by_list(self, session, address);
    }
    subscribe_own(self, session, to, address, is_wanted);
}

/* Each is looked at once, whichever list it then goes to. */
static void resolve_all(endpoint *self, list *which)
{
    list rest;
    list_link *link;
    list_init(&rest);
    while ((link = list_pop(which)) != NULL) {
        list_push(&rest, link);
    }
    while ((link = list_first(&rest)) != NULL) {
        subscription *one = CONTAINER_OF(link, subscription, link);
        subscription_move(self, one, endpoint_owner_of_resource(self, NULL, uri_of(one)));
    }
}

void endpoint_subscriptions_settle(endpoint *self)
{
    if (self->is_settled) {
        resolve_all(self, &self->unowned);
    }
}

void endpoint_subscriptions_move(endpoint *self)
{
    resolve_all(self, &self->owned);
    endpoint_subscriptions_settle(self);
}

void endpoint_subscriptions_forget(endpoint *self)
{
    list_link *link;
    while ((link = list_first(&self->owned)) != NULL) {
        subscription_move(self, CONTAINER_OF(link, subscription, link), NULL);
    }
}
