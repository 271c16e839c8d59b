/* Sessions of legacy clients. One over HTTP is found by its id: the worker that owns it, then 128
 * random bits. One on a duplex connection has no id and lives as long as the connection.
 *
 * Invariant: server->idle holds every session, the one longest without a sign of life first, so
 * expiry looks at the front only. What is said of the client is kept as text and read anew for each
 * request: an idle session is small. */
#include "mcp/session.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "mcp/stream.h"
#include "mcp/subscription.h"

enum { RANDOM_BYTES = 16 };

/* "<worker, hexadecimal>-<128 bits, hexadecimal>": visible ASCII only. */
static void make_id(mcp_session *self, uint32_t worker)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[RANDOM_BYTES];
    rand_bytes(random, sizeof(random));
    size_t len = 0;
    int shift = 28;
    while (shift > 0 && (worker >> shift) == 0) {
        shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
        self->id[len++] = digits[(worker >> shift) & 15];
    }
    self->id[len++] = '-';
    for (size_t i = 0; i < sizeof(random); i++) {
        self->id[len++] = digits[random[i] >> 4];
        self->id[len++] = digits[random[i] & 15];
    }
    self->id_len = (uint8_t)len;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool mcp_session_worker(bay_str id, uint32_t *out_worker)
{
    size_t dash = str_find(id, '-');
    if (dash == 0 || dash > 8 || id.len != dash + 1 + 2 * (size_t)RANDOM_BYTES ||
        (dash > 1 && id.at[0] == '0')) {
        return false;
    }
    uint32_t worker = 0;
    for (size_t i = 0; i < id.len; i++) {
        int digit = digit_of(id.at[i]);
        if (i != dash && digit < 0) {
            return false;
        }
        worker = i < dash ? worker << 4 | (uint32_t)digit : worker;
    }
    *out_worker = worker;
    return true;
}

bay_str mcp_session_id(const mcp_session *self)
{
    return session_id(self);
}

size_t mcp_server_session_count(const mcp_server *self)
{
    return self->session_count;
}

peer *session_peer(mcp_session *self)
{
    return self->connection != NULL ? &self->connection->peer : &self->own_peer;
}

static bay_err keep_client(mcp_session *self, json_val info, json_val capabilities)
{
    buf text;
    buf_init(&text, SESSION_MAX_CLIENT);
    buf_lit(&text, "{\"clientInfo\":");
    buf_str(&text, json_is(info, JSON_OBJECT) ? json_raw(info) : STR("null"));
    buf_lit(&text, ",\"capabilities\":");
    buf_str(&text, json_is(capabilities, JSON_OBJECT) ? json_raw(capabilities) : STR("{}"));
    buf_char(&text, '}');
    bay_err err = text.err;
    if (err == BAY_OK) {
        self->client = mem_dup(text.at, text.len);
        self->client_len = (uint32_t)text.len;
        err = self->client != NULL ? BAY_OK : BAY_NOMEM;
    }
    buf_fini(&text);
    return err;
}

static void session_free(mcp_session *self)
{
    event_log_fini(&self->log);
    mem_free(self->client);
    mem_free(self->principal);
    mem_free(self);
}

static bay_err keep_who(mcp_session *self, json_val info, json_val capabilities, bay_str principal)
{
    if (principal.len > SESSION_MAX_PRINCIPAL) {
        return BAY_LIMIT;
    }
    if (principal.len > 0) {
        self->principal = mem_dup(principal.at, principal.len);
        if (self->principal == NULL) {
            return BAY_NOMEM;
        }
        self->principal_len = (uint32_t)principal.len;
    }
    return keep_client(self, info, capabilities);
}

bay_err session_new(mcp_server *server, mcp_connection *connection, const mcp_revision *revision,
                    json_val client_info, json_val capabilities, bay_str principal,
                    mcp_session **out)
{
    (void)sessions_tick(server);
    if (connection == NULL && server->sessions.len >= server->options.max_sessions) {
        return BAY_BUSY;
    }
    mcp_session *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->server = server;
    self->connection = connection;
    self->revision = revision;
    self->level = MCP_LOG_INFO;
    self->active_ms = server->now_ms;
    peer_init(&self->own_peer);
    list_init(&self->streams);
    list_init(&self->subscriptions);
    event_log_init(&self->log);
    bay_err err = keep_who(self, client_info, capabilities, principal);
    if (err == BAY_OK && connection == NULL) {
        make_id(self, server->options.worker);
        err = map_put(&server->sessions, session_id(self), self, NULL);
    }
    if (err != BAY_OK) {
        session_free(self);
        return err;
    }
    list_push(&server->idle, &self->idle_link);
    server->session_count++;
    if (connection != NULL) {
        connection->session = self;
    }
    if (server->service->session_changed != NULL) {
        server->service->session_changed(server->user, self, true);
    }
    *out = self;
    return BAY_OK;
}

void session_end(mcp_session *self)
{
    mcp_server *server = self->server;
    if (self->is_ended) {
        return;
    }
    self->is_ended = true;
    list_remove(&self->idle_link);
    server->session_count--;
    if (self->connection == NULL) {
        (void)map_remove(&server->sessions, session_id(self));
        peer_close(&self->own_peer, 404, "The session has ended");
    } else {
        self->connection->session = NULL;
    }
    subscriptions_end(server, &self->subscriptions);
    list_link *link;
    while ((link = list_first(&self->streams)) != NULL) {
        stream_free(CONTAINER_OF(link, stream, link));
    }
    if (server->service->session_changed != NULL) {
        server->service->session_changed(server->user, self, false);
    }
    session_free(self);
}

mcp_session *session_find(mcp_server *server, bay_str id, bay_str principal)
{
    mcp_session *self = map_get(&server->sessions, id);
    if (self == NULL ||
        !str_eq_secret(principal, (bay_str){self->principal, self->principal_len})) {
        return NULL;
    }
    return self;
}

void session_touch(mcp_session *self)
{
    self->active_ms = self->server->now_ms;
    if (self->server->walking == 0 && !self->is_ended) {
        list_remove(&self->idle_link);
        list_push(&self->server->idle, &self->idle_link);
    }
}

bool session_is_busy(const mcp_session *self)
{
    if (self->connection != NULL || self->own_peer.count > 0) {
        return true;
    }
    LIST_EACH(link, &self->streams)
    {
        if (CONTAINER_OF(link, stream, link)->holder.carrier != NULL) {
            return true;
        }
    }
    return false;
}

uint64_t sessions_tick(mcp_server *server)
{
    uint64_t idle_ms = server->options.session_idle_ms;
    list_link *link;
    while ((link = list_first(&server->idle)) != NULL) {
        mcp_session *self = CONTAINER_OF(link, mcp_session, idle_link);
        if (server->now_ms - self->active_ms < idle_ms) {
            return self->active_ms + idle_ms;
        }
        if (session_is_busy(self)) {
            session_touch(self);
        } else {
            session_end(self);
        }
    }
    return UINT64_MAX;
}

bay_err session_introduce(mcp_session *self, request *to)
{
    to->shown.session = self;
    to->shown.revision = self->revision;
    to->shown.log_level = self->level;
    bay_str text = {self->client, self->client_len};
    bay_str copy;
    if (arena_dup(to->shown.memory, text, &copy) != BAY_OK ||
        json_parse(&to->client_doc, copy, NULL, to->shown.memory, NULL) != BAY_OK) {
        return BAY_NOMEM;
    }
    json_val root = json_root(&to->client_doc);
    json_val info = json_get(root, STR("clientInfo"));
    to->shown.client_info = json_is(info, JSON_OBJECT) ? info : JSON_NONE;
    to->shown.client_capabilities = json_get(root, STR("capabilities"));
    return BAY_OK;
}

void session_notify(mcp_session *self, buf *json)
{
    if (json->err != BAY_OK) {
        return;
    }
    if (self->connection != NULL) {
        mcp_carrier *carrier = self->connection->carrier;
        if (carrier != NULL) {
            (void)carrier->ops->event(carrier, buf_view(json), STR(""));
        }
    } else if (self->get != NULL) {
        (void)stream_event(self->get, buf_view(json));
    }
}
