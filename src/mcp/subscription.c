/* The table of topics. A topic lives while it has a subscription; the service is notified of its
 * first and its last one. While updates of a topic are sent it is held, because sending may end a
 * subscriber. */
#include "mcp/subscription.h"

#include "base/check.h"
#include "base/mem.h"
#include "mcp/session.h"

static bay_str topic_uri(const topic *self)
{
    return (bay_str){self->uri, self->len};
}

static void topic_let_go(mcp_server *server, topic *self)
{
    if (self->hold > 0 || !list_is_empty(&self->subscriptions)) {
        return;
    }
    (void)map_remove(&server->topics, topic_uri(self));
    if (server->service->subscribe != NULL) {
        (void)server->service->subscribe(server->user, topic_uri(self), false);
    }
    mem_free(self);
}

static bay_err topic_new(mcp_server *server, bay_str uri, topic **out)
{
    topic *self = mem_alloc(sizeof(*self) + uri.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    *self = (topic){.len = uri.len};
    memcpy(self->uri, uri.at, uri.len);
    list_init(&self->subscriptions);
    bay_err err = map_put(&server->topics, topic_uri(self), self, NULL);
    if (err == BAY_OK && server->service->subscribe != NULL) {
        err = server->service->subscribe(server->user, topic_uri(self), true);
        if (err != BAY_OK) {
            (void)map_remove(&server->topics, topic_uri(self));
        }
    }
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static subscription *find_in(const list *owned, const topic *of)
{
    LIST_EACH(link, owned)
    {
        subscription *one = CONTAINER_OF(link, subscription, owner_link);
        if (one->of == of) {
            return one;
        }
    }
    return NULL;
}

static bay_err subscribe(mcp_server *server, bay_str uri, const subscriber *by)
{
    mcp_session *session = by->session;
    list *owned = session != NULL ? &session->subscriptions : &by->listen->subscriptions;
    uint32_t *count =
        session != NULL ? &session->subscription_count : &by->listen->subscription_count;
    topic *of = map_get(&server->topics, uri);
    if (of != NULL && find_in(owned, of) != NULL) {
        return BAY_OK;
    }
    if (*count >= server->options.max_subscriptions) {
        return BAY_ERR_LIMIT;
    }
    subscription *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (of == NULL) {
        bay_err err = topic_new(server, uri, &of);
        if (err != BAY_OK) {
            mem_free(self);
            return err;
        }
    }
    self->of = of;
    self->session = session;
    self->listen = by->listen;
    list_push(&of->subscriptions, &self->topic_link);
    list_push(owned, &self->owner_link);
    (*count)++;
    return BAY_OK;
}

static bay_err admit(mcp_server *server, mcp_session *session, call_context *call,
                     call_refusal *out)
{
    call_refusal unused;
    call_target *to = NULL;
    bay_err err = BAY_OK;
    if (server->service->resolve_subscription != NULL) {
        err = server->service->resolve_subscription(server->user, session, call, &to);
    }
    if (err == BAY_OK && call_admit(call, to, out != NULL ? out : &unused) != CALL_GO) {
        return BAY_ERR_DENIED;
    }
    return err;
}

bay_err subscription_add(mcp_server *server, bay_str uri, const subscriber *by)
{
    mcp_method_id method = by->session != NULL ? MCP_RESOURCES_SUBSCRIBE : MCP_LISTEN;
    call_context call = {.protocol = CALL_MCP,
                         .principal = by->principal,
                         .origin = by->origin,
                         .kind = mcp_method_of(method)->call,
                         .method = mcp_method_of(method)->text,
                         .shown = uri,
                         .began_ms = server->now_ms};
    call_begin(&call, server->options.door);
    bay_err err = admit(server, by->session, &call, by->refusal);
    if (err == BAY_OK) {
        err = subscribe(server, uri, by);
    }
    if (err == BAY_OK && by->session != NULL && server->service->subscribed != NULL) {
        server->service->subscribed(server->user, by->session, uri, true);
    }
    call_over(&call, err == BAY_OK ? CALL_RESULT : CALL_ERROR);
    return err;
}

static void subscription_end(mcp_server *server, subscription *self)
{
    topic *of = self->of;
    list_remove(&self->topic_link);
    list_remove(&self->owner_link);
    if (self->session != NULL) {
        self->session->subscription_count--;
    } else {
        self->listen->subscription_count--;
    }
    mem_free(self);
    topic_let_go(server, of);
}

void subscription_remove(mcp_server *server, bay_str uri, mcp_session *session)
{
    topic *of = map_get(&server->topics, uri);
    subscription *one = of != NULL ? find_in(&session->subscriptions, of) : NULL;
    if (one != NULL) {
        if (server->service->subscribed != NULL) {
            server->service->subscribed(server->user, session, uri, false);
        }
        subscription_end(server, one);
    }
}

void subscriptions_end(mcp_server *server, list *owned)
{
    list_link *link;
    while ((link = list_first(owned)) != NULL) {
        subscription_end(server, CONTAINER_OF(link, subscription, owner_link));
    }
}

static void write_updated(buf *out, bay_str uri, bay_str subscription_id)
{
    buf_lit(out,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{");
    if (subscription_id.len > 0) {
        buf_lit(out, "\"_meta\":{\"" MCP_META_SUBSCRIPTION "\":");
        buf_str(out, subscription_id);
        buf_lit(out, "},");
    }
    buf_lit(out, "\"uri\":");
    json_quote(out, uri);
    buf_lit(out, "}}");
}

void mcp_session_resource_updated(mcp_session *self, bay_str uri)
{
    const topic *of = map_get(&self->server->topics, uri);
    if (of != NULL && find_in(&self->subscriptions, of) != NULL) {
        buf *out = server_out(self->server);
        write_updated(out, uri, STR(""));
        session_notify(self, out);
    }
}

void mcp_server_each_subscriber(mcp_server *self, bay_str uri,
                                void (*visit)(void *user, mcp_session *session), void *user)
{
    const topic *of = map_get(&self->topics, uri);
    if (of == NULL) {
        return;
    }
    LIST_EACH(link, &of->subscriptions)
    {
        const subscription *one = CONTAINER_OF(link, subscription, topic_link);
        if (one->session != NULL) {
            visit(user, one->session);
        }
    }
}

void mcp_server_resource_updated(mcp_server *self, bay_str uri)
{
    mcp_server_resource_updated_but(self, uri, NULL, NULL);
}

void mcp_server_resource_updated_but(mcp_server *self, bay_str uri,
                                     bool (*skips)(void *user, mcp_session *session), void *user)
{
    topic *of = map_get(&self->topics, uri);
    if (of == NULL) {
        return;
    }
    of->hold++;
    /* Sending may end this subscription and others: each round starts again with those not yet
     * served. */
    list done;
    list_init(&done);
    list_link *link;
    while ((link = list_first(&of->subscriptions)) != NULL) {
        list_remove(link);
        list_push(&done, link);
        subscription *one = CONTAINER_OF(link, subscription, topic_link);
        buf *out = server_out(self);
        if (one->session != NULL && skips != NULL && skips(user, one->session)) {
            continue;
        }
        if (one->session != NULL) {
            write_updated(out, uri, STR(""));
            session_notify(one->session, out);
        } else {
            write_updated(out, uri, (bay_str){one->listen->id, one->listen->id_len});
            listen_send(one->listen, out);
        }
    }
    while ((link = list_pop(&done)) != NULL) {
        list_push(&of->subscriptions, link);
    }
    of->hold--;
    topic_let_go(self, of);
}
