/* What an upstream renews on every new main link: subscriptions, counted by URI because several
 * endpoints and loops may need the same one, and the most verbose log level. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/local.h"

typedef struct subscription {
    list_link link;
    size_t subscribers;
    bay_str uri;
    char bytes[];
} subscription;

static subscription *subscription_find(local *self, bay_str uri)
{
    LIST_EACH(at, &self->subscriptions)
    {
        subscription *wanted = CONTAINER_OF(at, subscription, link);
        if (str_eq(wanted->uri, uri)) {
            return wanted;
        }
    }
    return NULL;
}

static bool subscription_add(local *self, bay_str uri)
{
    if (self->subscription_count >= LOCAL_MAX_SUBSCRIPTIONS || uri.len > LOCAL_MAX_URI_BYTES) {
        return false;
    }
    subscription *made = mem_zalloc(sizeof(*made) + uri.len);
    if (made == NULL) {
        return false;
    }
    memcpy(made->bytes, uri.at, uri.len);
    made->uri = (bay_str){made->bytes, uri.len};
    made->subscribers = 1;
    list_push(&self->subscriptions, &made->link);
    self->subscription_count++;
    return true;
}

static void tell_server(local *self, bay_str uri, bool is_wanted)
{
    if (self->base.state == UPSTREAM_READY && self->main.connection != NULL) {
        /* a server without subscriptions refuses; what it tells by itself is passed on all the same
         */
        err_ignore(mcp_client_subscribe(mcp_link_client(self->main.connection), uri, is_wanted,
                                        loop_now_ms(self->base.loop)));
    }
}

void local_subscribe(upstream *base, bay_str uri, bool is_wanted)
{
    local *self = local_of(base);
    subscription *known = subscription_find(self, uri);
    if (is_wanted && known != NULL) {
        known->subscribers++;
    } else if (is_wanted && !subscription_add(self, uri)) {
        LOG(LOG_WARN, "upstream", "%s: a subscription was dropped: too many or too long",
            base->name);
    } else if (is_wanted) {
        tell_server(self, uri, true);
    } else if (known != NULL && --known->subscribers == 0) {
        tell_server(self, uri, false);
        list_remove(&known->link);
        mem_free(known);
        self->subscription_count--;
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

void upstream_subscriptions_renew(local *self, mcp_client *client, uint64_t now_ms)
{
    LIST_EACH(at, &self->subscriptions)
    {
        subscription *wanted = CONTAINER_OF(at, subscription, link);
        err_ignore(mcp_client_subscribe(client, wanted->uri, true, now_ms)); /* as above */
    }
    if (self->level != MCP_LOG_NONE) {
        mcp_client_set_level(client, self->level, now_ms);
    }
}

void upstream_subscriptions_forget(local *self)
{
    list_link *link;
    while ((link = list_pop(&self->subscriptions)) != NULL) {
        mem_free(CONTAINER_OF(link, subscription, link));
    }
}
