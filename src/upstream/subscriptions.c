/* What an upstream renews on every new link: subscriptions, counted by URI because several
 * endpoints and loops may need the same one, and the most verbose log level. What clients subscribe
 * to is subscribed to on the main link, and on the session that a client has of its own. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/local.h"

typedef struct subscription {
    list_link link;
    size_t subscribers;
    bay_str identity; /* whose session it is for; "": the main link */
    bay_str uri;
    char bytes[];
} subscription;

static subscription *subscription_find(local *self, bay_str identity, bay_str uri)
{
    LIST_EACH(at, &self->subscriptions)
    {
        subscription *wanted = CONTAINER_OF(at, subscription, link);
        if (str_eq(wanted->uri, uri) && str_eq(wanted->identity, identity)) {
            return wanted;
        }
    }
    return NULL;
}

static bool subscription_add(local *self, bay_str identity, bay_str uri)
{
    if (self->subscription_count >= LOCAL_MAX_SUBSCRIPTIONS || uri.len > LOCAL_MAX_URI_BYTES) {
        return false;
    }
    subscription *made = mem_zalloc(sizeof(*made) + identity.len + uri.len);
    if (made == NULL) {
        return false;
    }
    char *at = made->bytes;
    made->identity = str_put(&at, identity);
    made->uri = str_put(&at, uri);
    made->subscribers = 1;
    list_push(&self->subscriptions, &made->link);
    self->subscription_count++;
    return true;
}

static void subscription_free(local *self, subscription *one)
{
    list_remove(&one->link);
    mem_free(one);
    self->subscription_count--;
}

static bool is_for(const upstream_session *at, bay_str identity)
{
    bool is_main = at == &at->owner->main;
    if (is_main ? at->owner->base.state != UPSTREAM_READY || at->connection == NULL
                : !at->is_ready || !upstream_session_is_usable(at)) {
        return false;
    }
    return is_main ? identity.len == 0
                   : upstream_session_is_own(at) && str_eq(upstream_session_identity(at), identity);
}

/* A server without subscriptions refuses; what it tells by itself is passed on all the same. */
static void subscribe_on(const upstream_session *at, bay_str uri, bool is_wanted)
{
    err_ignore(mcp_client_subscribe(mcp_link_client(at->connection), uri, is_wanted,
                                    loop_now_ms(at->owner->base.loop)));
}

static void tell_server(local *self, bay_str identity, bay_str uri, bool is_wanted)
{
    if (is_for(&self->main, identity)) {
        subscribe_on(&self->main, uri, is_wanted);
    }
    LIST_EACH(link, &self->sessions)
    {
        const upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (is_for(at, identity)) {
            subscribe_on(at, uri, is_wanted);
        }
    }
}

void local_subscribe(upstream *base, bay_str identity, bay_str uri, bool is_wanted)
{
    local *self = local_of(base);
    subscription *known = subscription_find(self, identity, uri);
    if (is_wanted && known != NULL) {
        known->subscribers += identity.len == 0; /* a client subscribes once */
    } else if (is_wanted && !subscription_add(self, identity, uri)) {
        LOG(LOG_WARN, "upstream", "%s: a subscription was dropped: too many or too long",
            base->name);
    } else if (is_wanted) {
        tell_server(self, identity, uri, true);
    } else if (known != NULL && --known->subscribers == 0) {
        tell_server(self, identity, uri, false);
        subscription_free(self, known);
        local_arm_idle(self);
    }
}

void local_set_level(upstream *base, mcp_log_level level)
{
    local *self = local_of(base);
    if (level >= self->level) {
        return; /* the most verbose level is used; each client's own one filters what it gets */
    }
    self->level = level;
    uint64_t now = loop_now_ms(base->loop);
    if (base->state == UPSTREAM_READY && self->main.connection != NULL) {
        mcp_client_set_level(mcp_link_client(self->main.connection), level, now);
    }
    LIST_EACH(link, &self->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (at->is_ready && upstream_session_is_usable(at)) {
            mcp_client_set_level(mcp_link_client(at->connection), level, now);
        }
    }
}

void upstream_subscriptions_renew(upstream_session *at)
{
    local *self = at->owner;
    bool is_main = at == &self->main;
    bay_str identity = is_main ? (bay_str){NULL, 0} : upstream_session_identity(at);
    LIST_EACH(link, &self->subscriptions)
    {
        const subscription *wanted = CONTAINER_OF(link, subscription, link);
        if (str_eq(wanted->identity, identity) && (is_main || upstream_session_is_own(at))) {
            subscribe_on(at, wanted->uri, true);
        }
    }
    if (self->level != MCP_LOG_NONE) {
        mcp_client_set_level(mcp_link_client(at->connection), self->level,
                             loop_now_ms(self->base.loop));
    }
}

bool upstream_subscriptions_has(const local *self, bay_str identity)
{
    LIST_EACH(link, &self->subscriptions)
    {
        if (str_eq(CONTAINER_OF(link, subscription, link)->identity, identity)) {
            return true;
        }
    }
    return false;
}

void upstream_subscriptions_forget(local *self, const bay_str *identity)
{
    LIST_EACH(link, &self->subscriptions)
    {
        subscription *one = CONTAINER_OF(link, subscription, link);
        if (identity == NULL || str_eq(one->identity, *identity)) {
            subscription_free(self, one);
        }
    }
}
