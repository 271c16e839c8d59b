/* HTTP: the era of a request, and every status that is not the service's answer. A request is
 * modern if its _meta names a protocol version, or if its header names a modern version, or an
 * unknown one together with other signs of that era; all others follow the rules of the session
 * they name. A server of one era applies that era's rules to everything. */
#include "base/check.h"
#include "mcp/http_head.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/stream.h"
#include "mcp/subscription.h"
#include "wire/header.h"
#include "wire/via.h"

static const char out_of_memory_text[] =
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"Out of memory\"}}";

static void reply(mcp_carrier *carrier, int status, bay_str json, bay_str allow)
{
    carrier->engine = NULL;
    carrier->ops->answer(carrier, status, json, STR(""), allow);
}

/* An answer before a request is opened. */
static void server_http_refuse(mcp_server *self, mcp_carrier *carrier, int status, bay_str id,
                               int code, const char *text)
{
    buf *out = server_out(self);
    rpc_write_error(out, id, code, str_of(text), STR(""));
    reply(carrier, status, out->err == BAY_OK ? buf_view(out) : str_of(out_of_memory_text),
          STR(""));
}

static void refuse_memory(mcp_carrier *carrier)
{
    reply(carrier, 503, str_of(out_of_memory_text), STR(""));
}

static bool accepts(const http_head *http, bay_str type)
{
    bay_str accept = http->at[HEAD_ACCEPT];
    return accept.at == NULL || header_accepts(accept, type);
}

/* The values that nearly all clients send are recognised without parsing. */
static bool accepts_both(const http_head *http)
{
    return str_eq(http->at[HEAD_ACCEPT], STR("application/json, text/event-stream")) ||
           (accepts(http, STR("application/json")) && accepts(http, STR("text/event-stream")));
}

typedef enum header_era { HEADER_NONE, HEADER_LEGACY, HEADER_MODERN, HEADER_UNKNOWN } header_era;

static header_era era_of_header(const http_head *http)
{
    bay_str version = http->at[HEAD_VERSION];
    if (version.at == NULL) {
        return HEADER_NONE;
    }
    const mcp_revision *revision = mcp_revision_find(version);
    if (revision == NULL) {
        return HEADER_UNKNOWN;
    }
    return revision->era == MCP_MODERN ? HEADER_MODERN : HEADER_LEGACY;
}

static bool is_modern(mcp_server *self, const request *read, const http_head *http)
{
    if (!server_has_modern(self) || !server_has_legacy(self)) {
        return server_has_modern(self);
    }
    if (modern_is_marked(read)) {
        return true;
    }
    header_era era = era_of_header(http);
    bool has_marks = !json_is(read->envelope.client_capabilities, JSON_MISSING) ||
                     http->at[HEAD_METHOD].at != NULL;
    return era == HEADER_MODERN || (era == HEADER_UNKNOWN && has_marks);
}

/* The error in the MCP-Protocol-Version header of a request that names a session; NULL: none, and
 * the session's own revision applies, whatever the header says.
 *
 * mcp 2025-11-25 basic/transports, Protocol Version Header: the client SHOULD send the version
 * negotiated during initialization (so another one is not an error), the server MUST answer 400 to
 * an invalid or unsupported one. mcp 2026-07-28 basic/transports/streamable-http, Earlier
 * Streamable HTTP Revisions: sessions, GET and DELETE are not part of that revision, so a request
 * of it cannot belong to a session: 400 as well. (Where that revision is served, a POST that names
 * it does not get here: is_modern.) */
static const char *session_version_fault(const mcp_server *self, const http_head *http)
{
    size_t count = http->count[HEAD_VERSION];
    if (count == 0) {
        return NULL;
    }
    if (count > 1) {
        return "The MCP-Protocol-Version header stands twice";
    }
    const mcp_revision *revision = mcp_revision_find(http->at[HEAD_VERSION]);
    if (revision == NULL || !server_offers(self, revision->id)) {
        return "The MCP-Protocol-Version header names a revision that this server does not support";
    }
    return revision->era == MCP_MODERN
               ? "The MCP-Protocol-Version header names a revision that has no sessions"
               : NULL;
}

/* The session that the request names; NULL: the refusal was sent. */
static mcp_session *session_of(mcp_server *self, const http_head *http, mcp_carrier *carrier,
                               bay_str id)
{
    size_t count = http->count[HEAD_SESSION_ID];
    if (count != 1) {
        server_http_refuse(self, carrier, 400, id, RPC_INVALID_REQUEST,
                           count == 0 ? "The Mcp-Session-Id header is missing"
                                      : "The Mcp-Session-Id header stands twice");
        return NULL;
    }
    mcp_session *session = session_find(self, http->at[HEAD_SESSION_ID], http->request->principal);
    if (session == NULL) {
        server_http_refuse(self, carrier, 404, id, RPC_INVALID_REQUEST, "No such session");
        return NULL;
    }
    const char *fault = session_version_fault(self, http);
    if (fault != NULL) {
        server_http_refuse(self, carrier, 400, id, RPC_INVALID_REQUEST, fault);
        return NULL;
    }
    session_touch(session);
    session_note_scopes(session, http->request->principal);
    return session;
}

static void post_initialize(request *read, const http_head *http, mcp_carrier *carrier)
{
    mcp_server *self = read->shown.server;
    bay_str id = read->shown.message.id;
    const char *fault = NULL;
    if (http->at[HEAD_SESSION_ID].at != NULL) {
        if (session_of(self, http, carrier, id) == NULL) {
            request_discard(read);
            return;
        }
        fault = "The session is initialized already";
    } else if (era_of_header(http) == HEADER_UNKNOWN) {
        fault = "The MCP-Protocol-Version header names an unknown revision";
    }
    if (fault != NULL) {
        server_http_refuse(self, carrier, 400, id, RPC_INVALID_REQUEST, fault);
        request_discard(read);
        return;
    }
    response_channel_init(&read->own_channel, self);
    read->own_channel.is_legacy = true;
    carrier_take(&read->own_channel.owner, carrier);
    read->shown.method = mcp_method_of(MCP_INITIALIZE);
    request_open(read, NULL, &read->own_channel);
    legacy_initialize(read, NULL);
}

static void post_legacy(request *read, const http_head *http, mcp_carrier *carrier)
{
    mcp_server *self = read->shown.server;
    const rpc_message *message = &read->shown.message;
    bool is_request = message->kind == RPC_REQUEST;
    if (is_request && str_eq(message->method, STR("initialize"))) {
        post_initialize(read, http, carrier);
        return;
    }
    mcp_session *session = session_of(self, http, carrier, is_request ? message->id : STR(""));
    if (session == NULL) {
        request_discard(read);
        return;
    }
    if (!is_request) {
        legacy_message(read, session, NULL);
        reply(carrier, 202, STR(""), STR(""));
        return;
    }
    response_channel_init(&read->own_channel, self);
    read->own_channel.is_legacy = true;
    read->own_channel.session = session;
    /* Both are always accepted; a client that names the stream first gets it. */
    read->own_channel.wants_stream = str_starts(http->at[HEAD_ACCEPT], STR("text/event-stream"));
    carrier_take(&read->own_channel.owner, carrier);
    legacy_message(read, session, &read->own_channel);
}

static void post_batch(request *read, const http_head *http, mcp_carrier *carrier)
{
    mcp_server *self = read->shown.server;
    mcp_session *session = NULL;
    if (!server_has_legacy(self) || http->at[HEAD_SESSION_ID].at == NULL) {
        server_http_refuse(self, carrier, 400, STR(""), RPC_INVALID_REQUEST,
                           "Batches are not supported");
    } else {
        session = session_of(self, http, carrier, STR(""));
    }
    if (session == NULL) {
        request_discard(read);
        return;
    }
    bay_err err = session->revision->batches ? batch_check(read) : BAY_ERR_UNSUPPORTED;
    if (err != BAY_OK) {
        server_http_refuse(self, carrier, 400, STR(""), RPC_INVALID_REQUEST,
                           err == BAY_ERR_UNSUPPORTED
                               ? "Batches are not part of this protocol revision"
                           : err == BAY_ERR_LIMIT ? "The batch holds too many messages"
                                                  : "The batch is empty");
        request_discard(read);
        return;
    }
    response_channel *through = response_channel_new_batch(self);
    if (through == NULL) {
        refuse_memory(carrier);
        request_discard(read);
        return;
    }
    through->is_legacy = true;
    through->session = session;
    carrier_take(&through->owner, carrier);
    batch_receive(read, session, through);
}

static void post_modern(request *read, const http_head *http, mcp_carrier *carrier)
{
    mcp_server *self = read->shown.server;
    if (read->shown.message.kind != RPC_REQUEST) {
        /* mcp 2026-07-28 basic/transports/streamable-http, Sending Messages: no responses. Closing
         * the stream cancels, so no notification has a meaning here. */
        if (read->shown.message.kind == RPC_NOTIFICATION) {
            reply(carrier, 202, STR(""), STR(""));
        } else {
            server_http_refuse(self, carrier, 400, STR(""), RPC_INVALID_REQUEST,
                               "A client does not send responses");
        }
        request_discard(read);
        return;
    }
    response_channel_init(&read->own_channel, self);
    carrier_take(&read->own_channel.owner, carrier);
    request_open(read, NULL, &read->own_channel);
    modern_request(read, http);
}

/* Copies a valid Via field for forwarding; ignores an invalid one. Returns false only when out of
 * memory. */
static bool keep_via(request *read, const http_head *http)
{
    bay_str via = http->at[HEAD_VIA];
    return !via_is_fine(via) || arena_dup(read->shown.memory, via, &read->shown.via) == BAY_OK;
}

/* What rules and limits read of where the request comes from. */
static void keep_origin(request *read, const mcp_http_request *sent)
{
    const call_door *door = read->shown.server->options.door;
    if (door != NULL && (door->policy.rules != NULL || door->limits != NULL)) {
        read->shown.call.origin =
            (door->limits != NULL ? door->limits->origin : door->policy.origin)(
                door->policy.rules, sent->has_address ? &sent->address : NULL, sent->fields,
                sent->field_count, read->shown.memory);
    }
    if (door != NULL && door->tools.tools != NULL) {
        read->shown.call.fields =
            door->tools.fields(door->tools.tools, sent->fields, sent->field_count,
                               read->shown.memory, &read->shown.call.field_count);
    }
}

static void post(mcp_server *self, const http_head *http, mcp_carrier *carrier)
{
    if (!header_content_type_is(http->at[HEAD_CONTENT_TYPE], STR("application/json"))) {
        server_http_refuse(self, carrier, 415, STR(""), RPC_INVALID_REQUEST,
                           "Content-Type must be application/json");
        return;
    }
    if (!accepts_both(http)) {
        server_http_refuse(self, carrier, 406, STR(""), RPC_INVALID_REQUEST,
                           "Accept must admit application/json and text/event-stream");
        return;
    }
    rpc_fault fault = {0};
    request *read;
    bay_err err = request_read(self, http->request->body, &read, &fault);
    if (err == BAY_ERR_NOMEM) {
        refuse_memory(carrier);
        return;
    }
    if (err == BAY_ERR_PROTOCOL) {
        mcp_session *session = fault.answers.len > 0 ? session_find(self, http->at[HEAD_SESSION_ID],
                                                                    http->request->principal)
                                                     : NULL;
        server_http_refuse(self, carrier, 400, fault.id, fault.code, fault.text);
        if (session != NULL) {
            ask_unreadable(session_peer(session), fault.answers); /* no other answer will come */
        }
        return;
    }
    if (err == BAY_ERR_UNSUPPORTED) {
        post_batch(read, http, carrier);
        return;
    }
    if (request_read_envelope(read) != BAY_OK) {
        server_http_refuse(self, carrier, 400, read->shown.message.id, RPC_INVALID_REQUEST,
                           "A member of params or _meta stands twice");
        request_discard(read);
        return;
    }
    const mcp_http_request *sent = http->request;
    if (sent->forward != NULL && sent->forward(sent, carrier, read->shown.message.params)) {
        request_discard(read);
        return;
    }
    read->shown.principal = principal_ref(sent->principal);
    keep_origin(read, sent);
    if (!keep_via(read, http)) {
        refuse_memory(carrier);
        request_discard(read);
        return;
    }
    if (is_modern(self, read, http)) {
        post_modern(read, http, carrier);
    } else {
        post_legacy(read, http, carrier);
    }
}

/* Sends the head of a stream and ends it. */
static void show_stream(mcp_carrier *carrier)
{
    carrier->engine = NULL;
    (void)carrier->ops->event(carrier, STR(""), STR(""));
    carrier->ops->end(carrier);
}

/* RFC 9110 section 9.3.2: HEAD gets what GET would, without content. HTTP omits the content; no
 * stream is opened here, because a session's new one ends its current one. */
static void get(mcp_server *self, const http_head *http, mcp_carrier *carrier, bool is_head)
{
    if (!accepts(http, STR("text/event-stream"))) {
        server_http_refuse(self, carrier, 406, STR(""), RPC_INVALID_REQUEST,
                           "Accept must admit text/event-stream");
        return;
    }
    mcp_session *session = session_of(self, http, carrier, STR(""));
    if (session == NULL) {
        return;
    }
    bay_str last = http->at[HEAD_LAST_EVENT_ID];
    if (last.len > 0) {
        uint32_t seq;
        bool is_over;
        stream *known = stream_find(session, last, &seq, &is_over);
        if (known == NULL) {
            /* A new stream in its place would never get the lost events. */
            server_http_refuse(
                self, carrier, 400, STR(""), RPC_INVALID_REQUEST,
                "The stream of this Last-Event-ID is over or unknown. What it was to answer "
                "may have been carried out");
            return;
        }
        if (is_over) {
            seq = known->seq; /* it had the last event, whatever was added to the log since */
        }
        if (is_head) {
            show_stream(carrier);
        } else {
            known->expires_ms = known->is_get ? stream_expiry(self, http->request->principal) : 0;
            stream_resume(known, carrier, seq);
        }
        return;
    }
    if (is_head) {
        show_stream(carrier);
        return;
    }
    if (session->get != NULL) {
        stream_free(session->get);
    }
    session->get = stream_new(session, carrier, true);
    if (session->get == NULL) {
        refuse_memory(carrier);
        return;
    }
    session->get->expires_ms = stream_expiry(self, http->request->principal);
    stream_prime(session->get);
}

static void end_session(mcp_server *self, const http_head *http, mcp_carrier *carrier)
{
    mcp_session *session = session_of(self, http, carrier, STR(""));
    if (session != NULL) {
        session_end(session);
        reply(carrier, 204, STR(""), STR(""));
    }
}

/* Of a revision that has no sessions, and it names none. */
static bool is_sessionless(const http_head *http)
{
    const mcp_revision *revision =
        http->count[HEAD_VERSION] == 1 ? mcp_revision_find(http->at[HEAD_VERSION]) : NULL;
    return revision != NULL && revision->era == MCP_MODERN && http->count[HEAD_SESSION_ID] == 0;
}

void mcp_server_http(mcp_server *self, const mcp_http_request *http, mcp_carrier *carrier,
                     uint64_t now_ms)
{
    http_head head;
    http_head_read(&head, http);
    bool has_legacy = server_has_legacy(self) && !is_sessionless(&head);
    server_advance(self, now_ms);
    if (str_eq(http->verb, STR("POST"))) {
        post(self, &head, carrier);
    } else if (has_legacy && str_eq(http->verb, STR("GET"))) {
        get(self, &head, carrier, false);
    } else if (has_legacy && str_eq(http->verb, STR("HEAD"))) {
        get(self, &head, carrier, true);
    } else if (has_legacy && str_eq(http->verb, STR("DELETE"))) {
        end_session(self, &head, carrier);
    } else {
        /* mcp 2026-07-28 basic/transports: without sessions GET is 405, and so is HEAD. */
        reply(carrier, 405, STR(""), has_legacy ? STR("GET, HEAD, POST, DELETE") : STR("POST"));
    }
}

void mcp_server_gone(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms)
{
    server_advance(self, now_ms);
    carrier_owner *of = carrier->engine;
    if (of == NULL) {
        return;
    }
    carrier->engine = NULL;
    of->carrier = NULL;
    if (of->kind == CARRIER_LAST_WORD) {
        return;
    }
    if (of->kind == CARRIER_LISTEN) {
        listen_free((listen_stream *)of);
        return;
    }
    if (of->kind == CARRIER_STREAM) {
        session_touch(((stream *)of)->session);
        return;
    }
    response_channel *from = (response_channel *)of;
    /* mcp 2025-11-25 basic/transports: a disconnection is no cancellation; 2026-07-28: it is. */
    if (!from->is_legacy) {
        list_link *link = list_first(&from->requests);
        if (link != NULL) {
            request_cancel(CONTAINER_OF(link, request, response_channel_link));
        }
    }
}

void mcp_server_quiet(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms)
{
    server_advance(self, now_ms);
    carrier_owner *of = carrier->engine;
    if (of != NULL && of->kind == CARRIER_RESPONSE_CHANNEL) {
        response_channel_open_stream((response_channel *)of);
    }
}

void mcp_server_end_stream(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms)
{
    server_advance(self, now_ms);
    carrier_owner *of = carrier->engine;
    if (of != NULL && of->kind == CARRIER_LISTEN) {
        listen_complete((listen_stream *)of);
    } else if (of != NULL && of->kind == CARRIER_STREAM) {
        (void)stream_release((stream *)of);
    }
}

static void requests_drained(mcp_server *self, const list *requests)
{
    LIST_EACH(link, requests)
    {
        request *one = CONTAINER_OF(link, request, response_channel_link);
        self->service->drained(self->user, &one->shown);
    }
}

void mcp_server_drained(mcp_server *self, mcp_carrier *carrier)
{
    carrier_owner *of = carrier->engine;
    if (of == NULL || self->service->drained == NULL || of->kind == CARRIER_LISTEN ||
        of->kind == CARRIER_LAST_WORD) {
        return;
    }
    response_channel *from =
        of->kind == CARRIER_RESPONSE_CHANNEL ? (response_channel *)of : ((stream *)of)->channel;
    if (from != NULL) {
        requests_drained(self, &from->requests);
    }
}
