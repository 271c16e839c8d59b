/* The rules of the session revisions: initialize, ping, logging/setLevel, resources/subscribe, and
 * the client's notifications. Messages that need a session have one here. */
#include "base/check.h"
#include "mcp/result_adapt.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/subscription.h"

static void invalid_params(request *self, const char *text)
{
    request_refuse(self, 200, RPC_INVALID_PARAMS, text, STR(""));
}

/* mcp 2025-11-25 basic/lifecycle, Version Negotiation: the client's revision if it is offered,
 * otherwise the latest one. */
static const mcp_revision *negotiate(const mcp_server *server, bay_str wanted)
{
    const mcp_revision *revision = mcp_revision_find(wanted);
    if (revision != NULL && revision->era == MCP_LEGACY && server_offers(server, revision->id)) {
        return revision;
    }
    mcp_revision_id latest = MCP_LATEST_LEGACY;
    return mcp_revision_of(server->options.newest < latest ? server->options.newest : latest);
}

static void answer_initialize(request *self, const mcp_revision *revision)
{
    mcp_server *server = self->shown.server;
    buf *out = server_out(server);
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, self->shown.message.id);
    buf_lit(out, ",\"result\":");
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "protocolVersion");
    json_put_str(&writer, revision->text);
    json_key_lit(&writer, "capabilities");
    server_write_capabilities(server, revision, &writer);
    json_key_lit(&writer, "serverInfo");
    json_put_raw(&writer, server_info(server, revision));
    server_write_instructions(server, &self->shown, out);
    json_close_object(&writer);
    buf_char(out, '}');
    request_answer(self, 200);
}

void legacy_initialize(request *self, mcp_connection *connection)
{
    mcp_server *server = self->shown.server;
    json_val params = self->shown.message.params;
    bay_str wanted;
    json_val version = json_get(params, STR("protocolVersion"));
    self->shown.revision = mcp_revision_of(MCP_LATEST_LEGACY);
    if (!json_is(version, JSON_STRING)) {
        invalid_params(self, "protocolVersion is missing");
        return;
    }
    if (json_str(version, self->shown.memory, &wanted) != BAY_OK) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    const mcp_revision *revision = negotiate(server, wanted);
    self->shown.revision = revision;
    if (server_declared(server, revision) == NULL) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    mcp_session *session;
    bay_err err =
        session_new(server, connection, revision, json_get(params, STR("clientInfo")),
                    json_get(params, STR("capabilities")), self->shown.principal, &session);
    if (err == BAY_ERR_LIMIT) {
        invalid_params(self, "clientInfo or capabilities are too large");
        return;
    }
    if (err != BAY_OK) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR,
                       err == BAY_ERR_BUSY ? "Too many sessions" : "Out of memory", STR(""));
        return;
    }
    /* Not a view: the session may end while the answer is written. */
    bay_str id;
    if (arena_dup(self->shown.memory, session->id, &id) != BAY_OK) {
        session_end(session);
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    self->channel->session_id = id;
    answer_initialize(self, revision);
}

static void set_level(request *self, mcp_session *session)
{
    bay_str text;
    mcp_log_level level;
    json_val wanted = json_get(self->shown.message.params, STR("level"));
    if (json_str(wanted, self->shown.memory, &text) != BAY_OK ||
        !mcp_log_level_find(text, &level)) {
        invalid_params(self, "level is not a log level");
        return;
    }
    session->level = level;
    (void)session_changed(session, MCP_KEEP_SOON);
    mcp_request_result_members(&self->shown, STR(""));
}

static void subscribe(request *self, mcp_session *session)
{
    mcp_server *server = self->shown.server;
    if (self->shown.method->id == MCP_RESOURCES_UNSUBSCRIBE) {
        subscription_remove(server, self->shown.name, session);
        (void)session_changed(session, MCP_KEEP_SOON);
        mcp_request_result_members(&self->shown, STR(""));
        return;
    }
    call_refusal why = {.reason = CALL_DENIED, .text = "This subscription is not allowed."};
    subscriber by = {.session = session,
                     .principal = self->shown.principal,
                     .origin = self->shown.call.origin,
                     .refusal = &why};
    switch (subscription_add(server, self->shown.name, &by)) {
    case BAY_OK:
        (void)session_changed(session, MCP_KEEP_SOON);
        mcp_request_result_members(&self->shown, STR(""));
        break;
    case BAY_ERR_DENIED:
        request_answer_refusal(&self->shown, &why);
        break;
    case BAY_ERR_NOMEM:
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        break;
    case BAY_ERR_LIMIT:
        request_refuse(self, 200, RPC_INTERNAL_ERROR, "Too many subscriptions", STR(""));
        break;
    default:
        request_refuse(self, 200, MCP_RESOURCE_NOT_FOUND, "Resource not found", STR(""));
    }
}

static void answer_own(request *self, mcp_session *session)
{
    switch (self->shown.method->id) {
    case MCP_PING:
        mcp_request_result_members(&self->shown, STR(""));
        break;
    case MCP_SET_LEVEL:
        set_level(self, session);
        break;
    case MCP_RESOURCES_SUBSCRIBE:
    case MCP_RESOURCES_UNSUBSCRIBE:
        subscribe(self, session);
        break;
    default:
        request_refuse(self, 400, RPC_INVALID_REQUEST, "The session is initialized already",
                       STR(""));
    }
}

static void legacy_request(request *self, mcp_session *session)
{
    mcp_server *server = self->shown.server;
    if (session_introduce(session, self) != BAY_OK) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    const mcp_revision *revision = session->revision;
    const mcp_method *method =
        mcp_method_find(self->shown.message.method, revision->id, MCP_SENDER_CLIENT);
    self->shown.method = method;
    if (method == NULL || method->is_notification) {
        request_dispatch(self);
        return;
    }
    const declared *has = server_declared(server, revision);
    if (has == NULL) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    if ((has->methods >> method->id & 1) == 0) {
        request_refuse(self, 200, RPC_METHOD_NOT_FOUND,
                       "The server has not declared the capability for this method", STR(""));
        return;
    }
    bay_err err = request_read_name(self);
    if (err == BAY_ERR_NOMEM) {
        request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
    } else if (err != BAY_OK) {
        invalid_params(self, request_name_fault(method));
    } else if ((method->flags & MCP_FLAG_ENGINE) != 0) {
        answer_own(self, session);
    } else {
        request_dispatch(self);
    }
}

void peer_cancelled(peer *self, mcp_connection *connection, const rpc_message *message)
{
    bay_str id = json_raw(json_get(message->params, STR("requestId")));
    if (id.len == 0) {
        return;
    }
    request *found = peer_find(self, id);
    if (found != NULL) {
        request_cancel(found);
        return;
    }
    listen_stream *listen = connection != NULL ? listen_find(connection, id) : NULL;
    if (listen != NULL) {
        listen_free(listen);
    }
}

bay_err peer_admits(mcp_server *server, const peer *self, mcp_connection *connection, bay_str id)
{
    if (peer_find(self, id) != NULL ||
        (connection != NULL && listen_find(connection, id) != NULL)) {
        return BAY_ERR_DUPLICATE;
    }
    return self->count >= server->options.max_requests ? BAY_ERR_BUSY : BAY_OK;
}

void request_not_admitted(request *self, bay_err why)
{
    if (why == BAY_ERR_DUPLICATE) {
        request_refuse(self, 400, RPC_INVALID_REQUEST, "A request of this id is under way",
                       STR(""));
    } else {
        request_refuse(self, 429, RPC_INTERNAL_ERROR, "Too many requests are under way", STR(""));
    }
}

static void legacy_notification(request *self, mcp_session *session)
{
    mcp_server *server = self->shown.server;
    const mcp_method *method =
        mcp_method_find(self->shown.message.method, session->revision->id, MCP_SENDER_CLIENT);
    if (method != NULL && method->id == MCP_N_CANCELLED) {
        peer_cancelled(session_peer(session), session->connection, &self->shown.message);
    } else if (method != NULL && method->id == MCP_N_INITIALIZED) {
        session->is_initialized = true;
        (void)session_changed(session, MCP_KEEP_SOON);
    } else if ((method == NULL || method->is_notification) && server->service->notified != NULL) {
        server->service->notified(server->user, session, &self->shown.message);
    }
}

void legacy_message(request *self, mcp_session *session, response_channel *through)
{
    mcp_server *server = self->shown.server;
    peer *of = session_peer(session);
    const rpc_message *message = &self->shown.message;
    self->shown.revision = session->revision;
    if (message->kind == RPC_NOTIFICATION) {
        legacy_notification(self, session);
        request_discard(self);
    } else if (message->kind != RPC_REQUEST) {
        ask_response(of, message);
        request_discard(self);
    } else {
        bay_err err = peer_admits(server, of, session->connection, message->id);
        request_open(self, err == BAY_OK ? of : NULL, through);
        if (err == BAY_OK) {
            legacy_request(self, session);
        } else {
            request_not_admitted(self, err);
        }
    }
}
