/* Subscriptions to resources: which server each went to, so that it follows the resource to another
 * one, to a server that took the place of the first, or to one that is yet to be heard of.
 *
 * Invariant: a wish is in by_uri, and in face.unowned exactly while it has no server. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "downstream/face_parts.h"

enum { MOST_WISHES = 1 << 20 }; /* the engine bounds them by client */

typedef struct wish {
    list_link link; /* in face.owned or face.unowned */
    upstream *to;   /* NULL: nobody's yet */
    size_t len;
    char uri[];
} wish;

static bay_str uri_of(const wish *self)
{
    return (bay_str){self->uri, self->len};
}

void face_wishes_init(face *self)
{
    map_init(&self->wishes, MOST_WISHES);
    list_init(&self->owned);
    list_init(&self->unowned);
}

static void free_all(list *from)
{
    list_link *link;
    while ((link = list_pop(from)) != NULL) {
        mem_free(CONTAINER_OF(link, wish, link));
    }
}

void face_wishes_fini(face *self)
{
    free_all(&self->owned);
    free_all(&self->unowned);
    map_fini(&self->wishes);
}

static void wish_move(face *self, wish *one, upstream *to)
{
    upstream *from = one->to;
    list_remove(&one->link);
    list_push(to != NULL ? &self->owned : &self->unowned, &one->link);
    if (from == to) {
        return;
    }
    one->to = to;
    if (to != NULL) {
        upstream_subscribe(to, uri_of(one), true);
    }
    if (from != NULL) {
        upstream_subscribe(from, uri_of(one), false);
    }
}

static bay_err wish_new(face *self, bay_str address, upstream *to)
{
    wish *one = mem_zalloc(sizeof(*one) + address.len);
    if (one == NULL) {
        return BAY_NOMEM;
    }
    one->len = address.len;
    memcpy(one->uri, address.at, address.len);
    bay_err err = map_put(&self->wishes, uri_of(one), one, NULL);
    if (err != BAY_OK) {
        mem_free(one);
        return err;
    }
    list_push(&self->unowned, &one->link);
    wish_move(self, one, to);
    return BAY_OK;
}

/* Whose resource it is, for a subscription. NULL with BAY_OK: nobody can say before the lists have
 * been read. */
static bay_err find_owner(const face *self, bay_str address, upstream **out)
{
    bool is_early = !self->is_settled && face_owner_by_list(self, address) == NULL;
    *out = is_early ? NULL : face_owner_of_resource(self, address);
    return *out != NULL || is_early ? BAY_OK : BAY_NOTFOUND;
}

bay_err face_resolve_subscription(void *user, const call_context *call, call_target **out)
{
    upstream *owner;
    bay_err err = find_owner(user, call->shown, &owner);
    *out = owner != NULL ? upstream_target(owner) : NULL;
    return err;
}

bay_err face_subscribe(void *user, bay_str address, bool is_wanted)
{
    face *self = user;
    if (!is_wanted) {
        wish *one = map_remove(&self->wishes, address);
        if (one != NULL) {
            wish_move(self, one, NULL);
            list_remove(&one->link);
            mem_free(one);
        }
        return BAY_OK;
    }
    upstream *owner;
    bay_err err = find_owner(self, address, &owner);
    return err == BAY_OK ? wish_new(self, address, owner) : err;
}

/* Each is looked at once, whichever list it then goes to. */
static void resolve_all(face *self, list *which)
{
    list rest;
    list_link *link;
    list_init(&rest);
    while ((link = list_pop(which)) != NULL) {
        list_push(&rest, link);
    }
    while ((link = list_first(&rest)) != NULL) {
        wish *one = CONTAINER_OF(link, wish, link);
        wish_move(self, one, face_owner_of_resource(self, uri_of(one)));
    }
}

void face_wishes_settle(face *self)
{
    if (self->is_settled) {
        resolve_all(self, &self->unowned);
    }
}

void face_wishes_move(face *self)
{
    resolve_all(self, &self->owned);
    face_wishes_settle(self);
}

void face_wishes_forget(face *self)
{
    list_link *link;
    while ((link = list_first(&self->owned)) != NULL) {
        wish_move(self, CONTAINER_OF(link, wish, link), NULL);
    }
}
