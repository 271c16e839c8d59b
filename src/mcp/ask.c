/* Requests to a legacy client, on the stream of the request that needs them, or of a session outside
 * of any request. Each is answered exactly once: by the client, by its time limit, or by the end of
 * the request or session it belongs to. Ids are "bay-N" with N counted per server, so an answer of
 * one session never matches another's ask. */
#include "base/check.h"
#include "base/mem.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"

static void write_id(buf *out, uint64_t number)
{
    buf_lit(out, "\"bay-");
    buf_uint(out, number);
    buf_char(out, '"');
}

/* Whatever stream of the session is open. */
static bay_err send_to_session(mcp_session *session, buf *json)
{
    response_channel *through = session_channel(session);
    if (json->err != BAY_OK || through == NULL) {
        bool is_heard = session->connection != NULL || session->get != NULL;
        if (json->err == BAY_OK && is_heard) {
            session_notify(session, json);
        }
        return json->err != BAY_OK ? json->err : is_heard ? BAY_OK : BAY_ERR_CLOSED;
    }
    return response_channel_event(through, json);
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

static bay_err ask_send(mcp_server *server, peer *to, const ask *like, mcp_method_id method,
                        bay_str params, uint64_t now_ms)
{
    ask *one = mem_alloc(sizeof(*one));
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (now_ms > server->now_ms) {
        server->now_ms = now_ms;
    }
    uint64_t number = ++server->last_ask;
    *one = *like;
    one->number = number;
    one->deadline_ms = server->now_ms + server->options.ask_timeout_ms;
    list_push(&to->asks, &one->peer_link);
    list_push(&server->asks, &one->server_link);
    buf *out = server_out(server);
    bay_err err = write_ask(out, number, method, params);
    if (err == BAY_OK) {
        err = like->owner != NULL ? response_channel_event(like->owner->channel, out)
                                  : send_to_session(like->session, out);
    }
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
    ask like = {.owner = self, .answered = answered, .user = user};
    return ask_send(shown->server, self->peer, &like, method, params, now_ms);
}

bay_err mcp_session_ask(mcp_session *self, mcp_method_id method, bay_str params,
                        void (*answered)(void *user, bay_err err, const rpc_message *response),
                        void *user, uint64_t now_ms)
{
    const mcp_method *row = mcp_method_of(method);
    peer *to = session_peer(self);
    if (mcp_method_find(row->text, self->revision->id, MCP_SENDER_SERVER) != row ||
        row->is_notification) {
        return BAY_ERR_UNSUPPORTED;
    }
    if (to->is_deaf || self->is_ended) {
        return BAY_ERR_CLOSED;
    }
    ask like = {.session = self, .answered = answered, .user = user};
    return ask_send(self->server, to, &like, method, params, now_ms);
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

static ask *find_by_number(const peer *from, uint64_t number)
{
    LIST_EACH(link, &from->asks)
    {
        ask *one = CONTAINER_OF(link, ask, peer_link);
        if (one->number == number) {
            return one;
        }
    }
    return NULL;
}

/* NULL: it is none of ours, or answered. */
static ask *find_by_id(const peer *from, bay_str id)
{
    uint64_t number;
    if (!str_starts(id, STR("\"bay-")) || !str_ends(id, STR("\"")) || id.len < 7 ||
        !str_uint((bay_str){id.at + 5, id.len - 6}, &number)) {
        return NULL;
    }
    return find_by_number(from, number);
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
    if (owner != NULL && (owner->channel == NULL || owner->shown.is_cancelled)) {
        return;
    }
    buf *out = server_out(owner != NULL ? owner->shown.server : one->session->server);
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":");
    write_id(out, one->number);
    buf_lit(out, ",\"reason\":");
    json_quote(out, reason);
    buf_lit(out, "}}");
    if (owner != NULL) {
        (void)response_channel_event(owner->channel, out);
    } else {
        (void)send_to_session(one->session, out);
    }
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

static ask *find_of_session(const mcp_server *self, const void *user)
{
    LIST_EACH(link, &self->asks)
    {
        ask *one = CONTAINER_OF(link, ask, server_link);
        if (one->session != NULL && one->user == user) {
            return one;
        }
    }
    return NULL;
}

void mcp_server_withdraw(mcp_server *self, const void *user, bay_str reason)
{
    ask *one = find_of_session(self, user);
    if (one == NULL) {
        return;
    }
    one->answered = NULL;
    tell_client(one, reason);
    if (find_of_session(self, user) == one) { /* telling may have ended it */
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

static ask *first_of_session(const mcp_session *self, const peer *in)
{
    LIST_EACH(link, &in->asks)
    {
        ask *one = CONTAINER_OF(link, ask, peer_link);
        if (one->session == self) {
            return one;
        }
    }
    return NULL;
}

void asks_end_session(mcp_session *self)
{
    ask *one;
    while ((one = first_of_session(self, session_peer(self))) != NULL) {
        ask_end(one, BAY_ERR_CLOSED, NULL);
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
