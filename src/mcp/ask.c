/* Requests of ours to a legacy client, on the stream of the request that needs them. Each is
 * answered exactly once: by the client, by its time limit, or by the end of the request it belongs
 * to. Ids are "bay-N" with N counted per server, so an answer from one session never fits another's
 * ask. */
#include "base/check.h"
#include "base/mem.h"
#include "mcp/server_internal.h"

static void write_id(buf *out, uint64_t number)
{
    buf_lit(out, "\"bay-");
    buf_uint(out, number);
    buf_char(out, '"');
}

static bool has_capability(const request *self, bay_str name)
{
    return name.len == 0 || json_is(json_get(self->shown.client_capabilities, name), JSON_OBJECT);
}

static bay_err write_ask(buf *out, uint64_t number, mcp_method_id method, bay_str params)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    write_id(out, number);
    buf_lit(out, ",\"method\":\"");
    buf_str(out, mcp_method_of(method)->text);
    buf_char(out, '"');
    if (params.len > 0) {
        buf_lit(out, ",\"params\":");
        buf_str(out, params);
    }
    buf_char(out, '}');
    return out->err;
}

bay_err mcp_request_ask(mcp_request *shown, mcp_method_id method, bay_str params,
                        void (*answered)(void *user, bay_err err, const rpc_message *response),
                        void *user, uint64_t now_ms)
{
    request *self = request_of(shown);
    const mcp_method *row = mcp_method_of(method);
    if (shown->is_cancelled || self->is_finished || self->channel == NULL || self->peer == NULL) {
        return shown->session == NULL && !shown->is_cancelled ? BAY_ERR_UNSUPPORTED
                                                              : BAY_ERR_CLOSED;
    }
    bool is_known = mcp_method_find(row->text, shown->revision->id, MCP_SENDER_SERVER) == row;
    if (shown->revision->era == MCP_MODERN || !is_known || row->is_notification ||
        !has_capability(self, row->capability)) {
        return BAY_ERR_UNSUPPORTED;
    }
    if (self->peer->is_deaf) {
        return BAY_ERR_CLOSED;
    }
    mcp_server *server = shown->server;
    ask *one = mem_alloc(sizeof(*one));
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (now_ms > server->now_ms) {
        server->now_ms = now_ms;
    }
    *one = (ask){.owner = self,
                 .number = ++server->last_ask,
                 .deadline_ms = server->now_ms + server->options.ask_timeout_ms,
                 .answered = answered,
                 .user = user};
    list_push(&self->peer->asks, &one->peer_link);
    list_push(&server->asks, &one->server_link);
    buf *out = server_out(server);
    bay_err err = write_ask(out, one->number, method, params);
    uint64_t number = one->number;
    err = err == BAY_OK ? response_channel_event(self->channel, out) : err;
    if (err == BAY_OK || err == BAY_ERR_AGAIN) {
        return BAY_OK;
    }
    /* Not sent. If the carrier ended the request meanwhile, the ask has been answered already. */
    LIST_EACH(link, &server->asks)
    {
        ask *sent = CONTAINER_OF(link, ask, server_link);
        if (sent->number == number) {
            list_remove(&sent->peer_link);
            list_remove(&sent->server_link);
            mem_free(sent);
            return err == BAY_ERR_CANCELLED ? BAY_ERR_CLOSED : err;
        }
    }
    return BAY_OK;
}

static void ask_end(ask *one, bay_err err, const rpc_message *response)
{
    list_remove(&one->peer_link);
    list_remove(&one->server_link);
    void (*answered)(void *user, bay_err err, const rpc_message *response) = one->answered;
    void *user = one->user;
    mem_free(one);
    if (answered != NULL) { /* NULL: it was withdrawn */
        answered(user, err, response);
    }
}

/* NULL: it is none of ours, or answered. */
static ask *find_by_id(const peer *from, bay_str id)
{
    uint64_t number;
    if (!str_starts(id, STR("\"bay-")) || !str_ends(id, STR("\"")) || id.len < 7 ||
        !str_uint((bay_str){id.at + 5, id.len - 6}, &number)) {
        return NULL;
    }
    LIST_EACH(link, &from->asks)
    {
        ask *one = CONTAINER_OF(link, ask, peer_link);
        if (one->number == number) {
            return one;
        }
    }
    return NULL;
}

void ask_response(peer *from, const rpc_message *response)
{
    ask *one = find_by_id(from, response->id);
    if (one != NULL) {
        ask_end(one, BAY_OK, response);
    }
}

void ask_unreadable(peer *from, bay_str id)
{
    ask *one = find_by_id(from, id);
    if (one != NULL) {
        ask_end(one, BAY_ERR_PROTOCOL, NULL);
    }
}

/* Tells the client to stop working on a request whose answer is not needed any more. */
static void tell_client(ask *one, bay_str reason)
{
    request *owner = one->owner;
    if (owner->channel == NULL || owner->shown.is_cancelled) {
        return;
    }
    buf *out = server_out(owner->shown.server);
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":");
    write_id(out, one->number);
    buf_lit(out, ",\"reason\":");
    json_quote(out, reason);
    buf_lit(out, "}}");
    (void)response_channel_event(owner->channel, out);
}

/* `user` NULL: the first one. */
static ask *find_of(const request *self, const void *user)
{
    if (self->peer == NULL) {
        return NULL;
    }
    LIST_EACH(link, &self->peer->asks)
    {
        ask *one = CONTAINER_OF(link, ask, peer_link);
        if (one->owner == self && (user == NULL || one->user == user)) {
            return one;
        }
    }
    return NULL;
}

void mcp_request_withdraw(mcp_request *shown, const void *user, bay_str reason)
{
    request *self = request_of(shown);
    ask *one = find_of(self, user);
    if (one == NULL) {
        return;
    }
    /* Notifying may end the request, which then reports to the user of each ask: not to this one.
     */
    one->answered = NULL;
    tell_client(one, reason);
    if (find_of(self, user) == one) {
        ask_end(one, BAY_ERR_CANCELLED, NULL);
    }
}

void asks_end(request *self, bay_err err)
{
    ask *one;
    while ((one = find_of(self, NULL)) != NULL) {
        tell_client(one, STR("The call that needed it has ended"));
        if (find_of(self, NULL) == one) {
            ask_end(one, err, NULL);
        }
    }
}

void asks_close(peer *self)
{
    list_link *link;
    self->is_deaf = true;
    while ((link = list_first(&self->asks)) != NULL) {
        ask_end(CONTAINER_OF(link, ask, peer_link), BAY_ERR_CLOSED, NULL);
    }
}

uint64_t asks_tick(mcp_server *self)
{
    list_link *link;
    while ((link = list_first(&self->asks)) != NULL) {
        ask *one = CONTAINER_OF(link, ask, server_link);
        if (one->deadline_ms > self->now_ms) {
            return one->deadline_ms;
        }
        tell_client(one, STR("Timed out"));
        if (list_first(&self->asks) == link) {
            ask_end(one, BAY_ERR_TIMEOUT, NULL);
        }
    }
    return UINT64_MAX;
}
