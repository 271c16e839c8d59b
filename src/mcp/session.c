/* Sessions of legacy clients. A session over HTTP is found by its id: the worker that owns it, then
 * what the persister appends, or 128 random bits. A session on a duplex connection has no id and
 * lives as long as the connection.
 *
 * Invariant: server->idle holds every session, the longest idle one first, so expiry reads only its
 * front. The client's description is kept as text and read for each request, so that an idle
 * session is small. */
#include "mcp/session.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "mcp/inputs.h"
#include "mcp/stream.h"
#include "mcp/subscription.h"

enum { RANDOM_BYTES = 16, TOLD_PARTS = 4 };

void mcp_session_prefix(uint32_t worker, buf *out)
{
    buf_printf(out, "%x-", worker);
}

/* "<worker, hexadecimal>-<128 bits, hexadecimal>": visible ASCII only. */
static void name_at_random(uint32_t worker, buf *out)
{
    unsigned char random[RANDOM_BYTES];
    rand_bytes(random, sizeof(random));
    mcp_session_prefix(worker, out);
    for (size_t i = 0; i < sizeof(random); i++) {
        buf_printf(out, "%02x", random[i]);
    }
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_id_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
}

bool mcp_session_worker(bay_str id, uint32_t *out_worker)
{
    size_t dash = str_find(id, '-');
    if (dash == 0 || dash > 8 || id.len < dash + 2 || id.len > MCP_SESSION_ID_BYTES ||
        (dash > 1 && id.at[0] == '0')) {
        return false;
    }
    uint32_t worker = 0;
    for (size_t i = 0; i < id.len; i++) {
        int digit = digit_of(id.at[i]);
        if (i < dash ? digit < 0 : !is_id_char(id.at[i])) {
            return false;
        }
        worker = i < dash ? worker << 4 | (uint32_t)digit : worker;
    }
    *out_worker = worker;
    return true;
}

bay_str mcp_session_id(const mcp_session *self)
{
    return self->id;
}

const auth_principal *mcp_session_principal(const mcp_session *self)
{
    return self->principal;
}

unsigned mcp_session_inputs(const mcp_session *self)
{
    return self->inputs;
}

const mcp_revision *mcp_session_revision(const mcp_session *self)
{
    return self->revision;
}

mcp_session *mcp_server_session(const mcp_server *self, bay_str session_id)
{
    return map_get(&self->sessions, session_id);
}

size_t mcp_server_session_count(const mcp_server *self)
{
    return self->session_count;
}

bool mcp_server_holds(const mcp_server *self, bay_str session_id)
{
    return map_get(&self->sessions, session_id) != NULL;
}

peer *session_peer(mcp_session *self)
{
    return self->connection != NULL ? &self->connection->peer : &self->own_peer;
}

/* ---- beginning */

static bay_str place(char **at, bay_str text)
{
    bay_str placed = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return placed;
}

bay_err session_make(mcp_server *server, mcp_connection *connection, const session_about *about,
                     mcp_session **out)
{
    if (connection == NULL && server->sessions.len >= server->options.max_sessions) {
        return BAY_ERR_BUSY;
    }
    if (about->client.len > SESSION_MAX_CLIENT) {
        return BAY_ERR_LIMIT;
    }
    mcp_session *self = mem_zalloc(sizeof(*self) + about->id.len + about->client.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *at = (char *)(self + 1);
    self->server = server;
    self->connection = connection;
    self->revision = about->revision;
    self->inputs = about->inputs;
    self->id = place(&at, about->id);
    self->client = place(&at, about->client);
    self->level = MCP_LOG_INFO;
    self->active_ms = self->told_ms = server->now_ms;
    peer_init(&self->own_peer);
    list_init(&self->streams);
    list_init(&self->subscriptions);
    event_log_init(&self->log);
    if (connection == NULL) {
        bay_err err = map_put(&server->sessions, self->id, self, NULL);
        if (err != BAY_OK) {
            mem_free(self);
            return err;
        }
    } else {
        connection->session = self;
    }
    self->principal = principal_ref(about->principal);
    list_push(&server->idle, &self->idle_link);
    server->session_count++;
    *out = self;
    return BAY_OK;
}

static void write_client(buf *out, json_val info, json_val capabilities)
{
    buf_lit(out, "{\"clientInfo\":");
    buf_str(out, json_is(info, JSON_OBJECT) ? json_raw(info) : STR("null"));
    buf_lit(out, ",\"capabilities\":");
    buf_str(out, json_is(capabilities, JSON_OBJECT) ? json_raw(capabilities) : STR("{}"));
    buf_char(out, '}');
}

static bay_err name_session(mcp_server *server, const mcp_revision *revision,
                            const auth_principal *principal, buf *out)
{
    const mcp_persistence *persistence = server->options.persistence;
    if (persistence == NULL) {
        name_at_random(server->options.worker, out);
        return out->err;
    }
    return persistence->name(server->options.persistence_user, revision, principal, out);
}

bay_err session_new(mcp_server *server, mcp_connection *connection, const mcp_revision *revision,
                    json_val client_info, json_val capabilities, const auth_principal *principal,
                    mcp_session **out)
{
    (void)sessions_tick(server);
    char text[MCP_SESSION_ID_BYTES];
    buf id = {.at = text, .cap = sizeof(text), .max = sizeof(text)}; /* fits: never grows */
    buf client;
    buf_init(&client, SESSION_MAX_CLIENT);
    write_client(&client, client_info, capabilities);
    bay_err err = client.err;
    if (err == BAY_OK && connection == NULL) {
        err = name_session(server, revision, principal, &id);
    }
    if (err == BAY_OK) {
        session_about about = {buf_view(&id), principal, buf_view(&client), revision,
                               mcp_inputs_of(revision, capabilities)};
        err = session_make(server, connection, &about, out);
    }
    buf_fini(&client);
    if (err == BAY_OK) {
        session_began(*out);
    }
    return err;
}

void session_began(mcp_session *self)
{
    const mcp_service *service = self->server->service;
    (void)session_changed(self, MCP_KEEP_SOON);
    if (service->session_changed != NULL) {
        service->session_changed(self->server->user, self, true);
    }
}

bool session_changed(mcp_session *self, mcp_keep how)
{
    const mcp_server_options *options = &self->server->options;
    if (options->persistence == NULL || self->connection != NULL || self->is_ended) {
        return false;
    }
    self->told_ms = self->server->now_ms;
    return options->persistence->changed(options->persistence_user, self, how);
}

/* ---- ending */

/* Not permanently if the engine ends and the persister remains: then open requests stay open for
 * the engine that restores the session. */
static void end_peer(mcp_session *self, bool is_for_good)
{
    if (is_for_good) {
        peer_close(&self->own_peer, "The session has ended. The request may have been carried out");
    } else {
        peer_close(&self->own_peer, NULL);
    }
}

void session_end(mcp_session *self)
{
    mcp_server *server = self->server;
    if (self->is_ended) {
        return;
    }
    const mcp_persistence *persistence = server->options.persistence;
    bool is_for_good = persistence == NULL || !server->is_closing;
    self->is_ended = true;
    list_remove(&self->idle_link);
    server->session_count--;
    asks_end_session(self);
    if (self->connection == NULL) {
        if (persistence != NULL) {
            persistence->ended(server->options.persistence_user, self, is_for_good);
        }
        (void)map_remove(&server->sessions, self->id);
        end_peer(self, is_for_good);
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
    event_log_fini(&self->log);
    principal_unref(self->principal);
    principal_unref(self->seen);
    mem_free(self);
}

void session_undo(mcp_session *self)
{
    list_link *link;
    self->is_ended = true;
    list_remove(&self->idle_link);
    self->server->session_count--;
    (void)map_remove(&self->server->sessions, self->id);
    while ((link = list_first(&self->streams)) != NULL) {
        stream_free(CONTAINER_OF(link, stream, link));
    }
    event_log_fini(&self->log);
    principal_unref(self->principal);
    principal_unref(self->seen);
    mem_free(self);
}

mcp_session *session_find(mcp_server *server, bay_str id, const auth_principal *principal)
{
    mcp_session *self = map_get(&server->sessions, id);
    bool is_own = self != NULL &&
                  str_eq_secret(principal_binding(principal), principal_binding(self->principal));
    return is_own ? self : NULL;
}

void session_touch(mcp_session *self)
{
    self->active_ms = self->server->now_ms;
    if (self->server->walking == 0 && !self->is_ended) {
        list_remove(&self->idle_link);
        list_push(&self->server->idle, &self->idle_link);
    }
    /* stored sessions expire unless the persister is notified from time to time that they are in
     * use */
    if (self->active_ms - self->told_ms >= self->server->options.session_idle_ms / TOLD_PARTS) {
        (void)session_changed(self, MCP_KEEP_LATER);
    }
}

bool session_is_busy(const mcp_session *self)
{
    if (self->connection != NULL || self->own_peer.count > 0) {
        return true;
    }
    LIST_EACH(link, &self->streams)
    {
        if (CONTAINER_OF(link, stream, link)->owner.carrier != NULL) {
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
    bay_str copy;
    if (arena_dup(to->shown.memory, self->client, &copy) != BAY_OK ||
        json_parse(&to->client_doc, copy, &json_any_depth, to->shown.memory, NULL) != BAY_OK) {
        return BAY_ERR_NOMEM;
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
        (void)stream_event(self->get, buf_view(json), false);
    }
}

response_channel *session_channel(mcp_session *self)
{
    if (self->connection != NULL || self->get != NULL) {
        return NULL;
    }
    LIST_EACH(link, &session_peer(self)->requests)
    {
        request *one = CONTAINER_OF(link, request, peer_link);
        if (one->channel != NULL && !one->shown.is_cancelled && !one->is_finished) {
            return one->channel;
        }
    }
    return NULL;
}

void mcp_session_notify(mcp_session *self, mcp_method_id method, bay_str params)
{
    const mcp_method *row = mcp_method_of(method);
    if (self->revision->id < row->since || self->revision->id > row->until) {
        return;
    }
    buf *out = server_out(self->server);
    rpc_write_notification(out, row->text, params);
    response_channel *through = session_channel(self);
    if (through != NULL) {
        (void)response_channel_event(through, out);
    } else {
        session_notify(self, out);
    }
}

void mcp_session_log(mcp_session *self, mcp_log_level level, bay_str params)
{
    if (level >= self->level) {
        mcp_session_notify(self, MCP_N_MESSAGE, params);
    }
}
