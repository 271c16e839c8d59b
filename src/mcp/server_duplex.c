/* Duplex connections: stdio, HTTP+SSE, in process. One channel carries everything. A request with
 * modern _meta is modern, and `initialize` begins a legacy session for the whole connection; both
 * may be used at once. A connection is held while a message is handled, so that a carrier may be
 * closed meanwhile. */
#include "base/mem.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/subscription.h"

static const char out_of_memory_text[] =
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"Out of memory\"}}";

bay_err mcp_connection_open(mcp_server *server, mcp_carrier *carrier, mcp_connection **out)
{
    mcp_connection *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->server = server;
    self->carrier = carrier;
    self->hold = 1;
    peer_init(&self->peer);
    list_init(&self->listens);
    list_push(&server->connections, &self->server_link);
    *out = self;
    return BAY_OK;
}

static void let_go(mcp_connection *self)
{
    if (--self->hold == 0) {
        principal_unref(self->principal);
        mem_free(self);
    }
}

void mcp_connection_close(mcp_connection *self)
{
    if (self->carrier == NULL) {
        return;
    }
    self->carrier = NULL;
    list_remove(&self->server_link);
    peer_close(&self->peer, NULL);
    list_link *link;
    while ((link = list_first(&self->listens)) != NULL) {
        listen_free(CONTAINER_OF(link, listen_stream, connection_link));
    }
    if (self->session != NULL) {
        session_end(self->session);
    }
    let_go(self);
}

void mcp_connection_input_ended(mcp_connection *self)
{
    self->hold++;
    asks_close(&self->peer);
    let_go(self);
}

size_t mcp_connection_pending(const mcp_connection *self)
{
    size_t pending = 0;
    LIST_EACH(link, &self->peer.requests)
    {
        pending += CONTAINER_OF(link, request, peer_link)->shown.is_cancelled ? 0 : 1;
    }
    return pending;
}

void mcp_connection_drained(mcp_connection *self)
{
    mcp_server *server = self->server;
    if (server->service->drained == NULL) {
        return;
    }
    LIST_EACH(link, &self->peer.requests)
    {
        request *one = CONTAINER_OF(link, request, peer_link);
        server->service->drained(server->user, &one->shown);
    }
}

static void server_duplex_refuse(mcp_connection *self, bay_str id, int code, const char *text,
                                 bay_str data)
{
    if (self->carrier == NULL) {
        return;
    }
    buf *out = server_out(self->server);
    rpc_write_error(out, id, code, str_of(text), data);
    bay_str json = out->err == BAY_OK ? buf_view(out) : str_of(out_of_memory_text);
    (void)self->carrier->ops->event(self->carrier, json, STR(""));
}

static void receive_batch(mcp_connection *self, request *read)
{
    bool is_known = self->session != NULL && self->session->revision->batches;
    bay_err err = is_known ? batch_check(read) : BAY_ERR_UNSUPPORTED;
    response_channel *through = err == BAY_OK ? response_channel_new_batch(self->server) : NULL;
    if (through == NULL) {
        request_discard(read);
        if (err == BAY_OK) {
            server_duplex_refuse(self, STR(""), RPC_INTERNAL_ERROR, "Out of memory", STR(""));
            return;
        }
        server_duplex_refuse(self, STR(""), RPC_INVALID_REQUEST,
                             err == BAY_ERR_UNSUPPORTED ? "Batches are not supported here"
                             : err == BAY_ERR_LIMIT     ? "The batch holds too many messages"
                                                        : "The batch is empty",
                             STR(""));
        return;
    }
    through->connection = self;
    through->is_legacy = true;
    batch_receive(read, self->session, through);
}

/* A request outside a session: modern, or `initialize` or `ping` before there is a session. */
static void receive_request(mcp_connection *self, request *read)
{
    mcp_server *server = self->server;
    const rpc_message *message = &read->shown.message;
    bool is_modern =
        server_has_modern(server) && (modern_is_marked(read) || !server_has_legacy(server));
    response_channel_init(&read->own_channel, server);
    read->own_channel.connection = self;
    if (!is_modern && self->session != NULL && !str_eq(message->method, STR("initialize"))) {
        legacy_message(read, self->session, &read->own_channel);
        return;
    }
    bay_err err = peer_admits(server, &self->peer, self, message->id);
    request_open(read, err == BAY_OK ? &self->peer : NULL, &read->own_channel);
    if (err != BAY_OK) {
        request_not_admitted(read, err);
    } else if (is_modern) {
        modern_request(read, NULL);
    } else if (str_eq(message->method, STR("initialize")) && self->session == NULL) {
        read->shown.method = mcp_method_of(MCP_INITIALIZE);
        legacy_initialize(read, self);
    } else if (str_eq(message->method, STR("initialize"))) {
        request_refuse(read, 400, RPC_INVALID_REQUEST, "The connection is initialized already",
                       STR(""));
    } else if (str_eq(message->method, STR("ping"))) {
        read->shown.method = mcp_method_of(MCP_PING);
        read->shown.revision = mcp_revision_of(MCP_LATEST_LEGACY);
        mcp_request_result_members(&read->shown, STR(""));
    } else {
        request_refuse(read, 400, RPC_INVALID_REQUEST,
                       "Not initialized: send initialize, or " MCP_META_VERSION " in _meta",
                       STR(""));
    }
}

static void receive_other(mcp_connection *self, request *read)
{
    const rpc_message *message = &read->shown.message;
    if (self->session != NULL) {
        legacy_message(read, self->session, NULL);
        return;
    }
    if (message->kind == RPC_NOTIFICATION &&
        str_eq(message->method, STR("notifications/cancelled"))) {
        peer_cancelled(&self->peer, self, message);
    }
    request_discard(read);
}

/* Whoever waits for it is told: the peer for an answer to it, or we for it as an answer. */
static void receive_unreadable(mcp_connection *self, const rpc_fault *fault)
{
    if (fault->answers.len > 0) {
        ask_unreadable(&self->peer, fault->answers);
    }
    server_duplex_refuse(self, fault->id, fault->code, fault->text, STR(""));
}

static void receive(mcp_connection *self, bay_str message)
{
    rpc_fault fault = {0};
    request *read;
    bay_err err = request_read(self->server, message, &read, &fault);
    if (err == BAY_ERR_NOMEM) {
        server_duplex_refuse(self, STR(""), RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    if (err == BAY_ERR_PROTOCOL) {
        receive_unreadable(self, &fault);
        return;
    }
    if (err == BAY_ERR_UNSUPPORTED) {
        receive_batch(self, read);
        return;
    }
    read->shown.principal = principal_ref(self->principal);
    if (request_read_envelope(read) != BAY_OK) {
        if (read->shown.message.kind == RPC_REQUEST) {
            server_duplex_refuse(self, read->shown.message.id, RPC_INVALID_REQUEST,
                                 "A member of params or _meta stands twice", STR(""));
        }
        request_discard(read);
        return;
    }
    if (read->shown.message.kind == RPC_REQUEST) {
        receive_request(self, read);
    } else {
        receive_other(self, read);
    }
}

void mcp_connection_identify(mcp_connection *self, const auth_principal *principal)
{
    const auth_principal *before = self->principal;
    self->principal = principal_ref(principal);
    principal_unref(before);
}

void mcp_connection_overlong(mcp_connection *self, const rpc_outline *outline, uint64_t now_ms)
{
    rpc_fault fault = {.code = RPC_INVALID_REQUEST,
                       .id = rpc_outline_request(outline),
                       .answers = rpc_outline_answer(outline),
                       .text = "The message is too large"};
    if (self->carrier == NULL) {
        return;
    }
    server_advance(self->server, now_ms);
    self->hold++;
    receive_unreadable(self, &fault);
    let_go(self);
}

void mcp_connection_receive(mcp_connection *self, bay_str message, uint64_t now_ms)
{
    if (self->carrier == NULL) {
        return;
    }
    server_advance(self->server, now_ms);
    self->hold++;
    receive(self, message);
    let_go(self);
}
