/* One loop of the gateway: its listeners, its endpoints, its share of the servers. */
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/agents.h"
#include "gateway/connect.h"
#include "gateway/worker.h"
#include "net/socket.h"
#include "sessions/token.h"
#include "upstream/told.h"

enum {
    TICK_MS = 1000,
    LAST_WORDS_MS = 1000, /* for the answers to calls that outlast the drain */
    NAMES_BYTES = 2000,   /* of servers that are waited for, in a line of the log */
};

static void worker_tick(void *argument)
{
    worker *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    call_door_tick(&self->door, now);
    worker_evidence_tick(&self->evidence);
    if (self->index == 0) {
        gateway_pins_tick(self->gateway);
        outcomes_tick(self->gateway->outcomes, loop_time_ms());
    }
    if (++self->ticks % WORKER_EXPIRY_TICKS == 0) {
        worker_end_expired(self, loop_time_ms());
    }
    endpoint_tick(self->all, now);
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint_tick(self->profiles[i], now);
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (self->upstreams[i]->endpoint != NULL) {
            endpoint_tick(self->upstreams[i]->endpoint, now);
        }
    }
    err_ignore(loop_timer_start(self->loop, &self->tick, TICK_MS));
}

static bool is_awaited(const worker_upstream *self)
{
    return !worker_upstream_is_learned(self) && !upstream_is_asleep(self->upstream);
}

/* Programs that are starting are waited for longer than servers that only have to answer: false,
 * there is none. Says once whom the first lists wait for. */
static bool waits_on(worker *self)
{
    uint32_t all_ms = config_settle_ms(self->config, true);
    buf names;
    size_t count = 0;
    buf_init(&names, NAMES_BYTES);
    for (size_t i = 0; i < self->upstream_count; i++) {
        const upstream *server = self->upstreams[i]->upstream;
        if (is_awaited(self->upstreams[i]) && upstream_config(server)->command.len > 0) {
            buf_printf(&names, "%s%s", count++ > 0 ? ", " : "", upstream_name(server).at);
        }
    }
    bool is_on = count > 0 && all_ms > self->waited_ms &&
                 loop_timer_start(self->loop, &self->patience, all_ms - self->waited_ms) == BAY_OK;
    self->waited_ms = all_ms;
    if (is_on && self->index == 0) {
        LOG(LOG_INFO, "gateway", "the first lists wait for %.*s, at most %u s", (int)names.len,
            names.at, all_ms / 1000);
    }
    buf_fini(&names);
    return is_on;
}

/* Some server takes too long to be heard of: lists are answered without it. */
static void worker_impatient(void *argument)
{
    worker *self = argument;
    if (waits_on(self)) {
        return;
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        const worker_upstream *at = self->upstreams[i];
        if (is_awaited(at) && !at->is_proxy) {
            /* a server at a URL is awaited on each loop */
            bool is_new = upstream_told_text(upstream_told_of(at->upstream), STR("late"));
            LOG(is_new ? LOG_WARN : LOG_DEBUG, "gateway",
                "server \"%s\" has not answered within %u ms; lists go out without it until it "
                "does",
                upstream_name(at->upstream).at, self->waited_ms);
        }
    }
    worker_lists_ready(self);
}

mcp_server *worker_engine(void *user, bay_str path)
{
    worker *self = user;
    if (str_eq(path, STR("/mcp"))) {
        return endpoint_engine(self->all);
    }
    if (!str_starts(path, STR("/mcp/"))) {
        return NULL;
    }
    bay_str name = str_from(path, 5);
    bool is_escaped = str_starts(name, STR("%40"));
    if (is_escaped || str_starts(name, STR("@"))) {
        endpoint *of = worker_profile(self, str_from(name, is_escaped ? 3 : 1));
        return of != NULL ? endpoint_engine(of) : NULL;
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (str_eq(upstream_name(self->upstreams[i]->upstream), name)) {
            return self->upstreams[i]->endpoint != NULL
                       ? endpoint_engine(self->upstreams[i]->endpoint)
                       : NULL;
        }
    }
    return NULL;
}

static bool worker_home(void *user, bay_str token, uint32_t *out_worker)
{
    (void)user;
    return token_worker(token, out_worker);
}

static endpoint *endpoint_of(worker *self, const mcp_server *engine)
{
    if (endpoint_engine(self->all) == engine) {
        return self->all;
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        if (endpoint_engine(self->profiles[i]) == engine) {
            return self->profiles[i];
        }
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        endpoint *own = self->upstreams[i]->endpoint;
        if (own != NULL && endpoint_engine(own) == engine) {
            return own;
        }
    }
    return NULL;
}

static bay_err worker_session_lookup(void *user, mcp_server *engine, bay_str id,
                                     const auth_principal *principal,
                                     void (*done)(void *done_user, bay_err err), void *done_user)
{
    endpoint *of = endpoint_of(user, engine);
    session_persister *persister = of != NULL ? endpoint_persister(of) : NULL;
    return persister != NULL
               ? session_persister_find(persister, engine, id, principal, done, done_user)
               : BAY_ERR_NOT_FOUND;
}

static void set_ring_of(list *upstreams, const seal_ring *ring)
{
    LIST_EACH(at, upstreams)
    {
        worker_upstream *one = CONTAINER_OF(at, worker_upstream, link);
        if (one->endpoint != NULL) {
            endpoint_set_ring(one->endpoint, ring);
        }
    }
}

/* Also of those that are leaving: the old ring goes. */
void worker_set_ring(worker *self, const seal_ring *ring)
{
    self->ring = ring;
    worker_door_set_ring(self, ring);
    gateway_vault_set_ring(self->vault, ring);
    endpoint_set_ring(self->all, ring);
    worker_profiles_set_ring(self, ring);
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (self->upstreams[i]->endpoint != NULL) {
            endpoint_set_ring(self->upstreams[i]->endpoint, ring);
        }
    }
    set_ring_of(&self->retired, ring);
    set_ring_of(&self->leaving, ring);
}

static void worker_challenge(void *user, http_exchange *exchange, bay_str scopes,
                             front_challenge *out)
{
    const worker *self = user;
    if (self->auth != NULL) {
        worker_auth_challenge(self->auth, exchange, scopes, out);
    }
}

static bay_err open_http(worker *self)
{
    const config *settings = self->config;
    const config_limits *limits = &settings->limits;
    uint32_t keep_alive_ms = settings->timeouts.keep_alive_ms;
    mcp_http_router_options options_of_endpoint = {
        .worker = self->index,
        .engine = worker_engine,
        .home = worker_home,
        .session_lookup = worker_session_lookup,
        .challenge = worker_challenge,
        .keep_alive_ms = keep_alive_ms > 0 ? keep_alive_ms : UINT32_MAX,
        .stream_idle_ms = limits->stream_idle_ms,
        .stream_total_ms = limits->stream_total_ms,
        .address = worker_client_address,
        .user = self,
        .messages_path = WORKER_MESSAGES,
    };
    bay_err err = mcp_http_router_new(self->loop, &options_of_endpoint, &self->mcp_http_router);
    if (err == BAY_OK) {
        err = worker_front_open(self);
    }
    if (err != BAY_OK) {
        return err;
    }
    http_server_options options = {
        .limits = {.head_bytes = limits->head_bytes,
                   .head_fields = limits->head_fields,
                   .body_bytes = limits->body_bytes,
                   .held_bytes = limits->held_bytes,
                   .reply_bytes = limits->reply_bytes,
                   .connections = limits->connections,
                   .connections_per_ip = limits->connections_per_ip,
                   .head_timeout_ms = limits->head_timeout_ms,
                   .body_timeout_ms = limits->body_timeout_ms,
                   .body_total_ms = limits->body_total_ms,
                   .idle_timeout_ms = limits->idle_timeout_ms,
                   .write_timeout_ms = limits->write_timeout_ms,
                   .stream_high_bytes = http_server_default_limits.stream_high_bytes,
                   .stream_max_bytes = limits->stream_bytes},
        .handler = &front_handler,
        .user = self->front,
        .tls = self->gateway->tls,
        .reuse_port = self->gateway->worker_count > 1,
        .is_local_only = self->gateway->is_local,
    };
    return http_server_new(self->loop, &options, &self->server);
}

static bool has_vault(const config *settings)
{
    bool has = false;
    for (size_t i = 0; !has && i < settings->server_count; i++) {
        has = settings->servers[i].credentials.grant == CONFIG_GRANT_USER;
    }
    for (size_t i = 0; !has && i < settings->agent_count; i++) {
        has = settings->agents[i].credentials.grant == CONFIG_GRANT_USER;
    }
    return has;
}

bay_err worker_init(worker *self, gateway *owner, uint32_t index, bay_diag *diag)
{
    *self = (worker){.gateway = owner, .index = index, .config = config_ref(owner->config)};
    self->ring = owner->ring;
    self->user_login = (endpoint_user_login){worker_connect_link, self};
    worker_pins_take(self);
    list_init(&self->retired);
    list_init(&self->leaving);
    worker_door_init(self);
    worker_profiles_init(self);
    loop_timer_init(&self->tick, worker_tick, self);
    loop_timer_init(&self->patience, worker_impatient, self);
    loop_timer_init(&self->last_words, worker_fail_calls, self);
    loop_timer_init(&self->retire, worker_retire_step, self);
    bay_err err = loop_new(&self->loop);
    if (err != BAY_OK) {
        return diag_set(diag, err, "a worker could not be set up: %s", bay_err_text(err));
    }
    err = worker_evidence_open(&self->evidence, owner->evidence, index, self->loop, &self->ring);
    if (err != BAY_OK) {
        return diag_set(diag, err, "a worker could not be set up: %s", bay_err_text(err));
    }
    http_client_options client = {.limits = http_client_default_limits};
    client.limits.connect_timeout_ms = self->config->timeouts.connect_ms;
    client.limits.connections_per_origin = self->config->limits.origin_connections;
    client.limits.reply_bytes = self->config->limits.reply_bytes;
    err = http_client_new(self->loop, &client, &self->http);
    bool on_stdio = owner->options.on_stdio;
    if (err == BAY_OK && (!on_stdio || has_vault(self->config))) {
        err = session_store_open(self->loop, self->config, &self->sessions, diag);
        if (err != BAY_OK) {
            return err; /* it said why */
        }
    }
    if (err == BAY_OK && self->sessions != NULL && self->ring != NULL) {
        err = gateway_vault_new(self->loop, session_store_rows(self->sessions), self->ring,
                                &self->vault);
    }
    if (err == BAY_OK && self->sessions != NULL && !on_stdio) {
        err = gateway_blocks_new(self->loop, session_store_rows(self->sessions), &self->blocks);
        err = err == BAY_OK ? worker_door_keep(self) : err;
    }
    if (err == BAY_OK && !owner->options.on_stdio) {
        err = worker_auth_new(self, owner->auth, session_store_rows(self->sessions), &self->auth,
                              diag);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (err == BAY_OK) {
        endpoint_options options = {.config = self->config,
                                    .worker = index,
                                    .has_one_client = owner->options.on_stdio,
                                    .introduced = worker_introduced,
                                    .user = self,
                                    .loop = self->loop,
                                    .ring = self->ring,
                                    .sessions = on_stdio ? NULL : self->sessions,
                                    .tasks = &task_ops,
                                    .door = &self->door,
                                    .user_login = &self->user_login};
        err = endpoint_new(&options, &self->all);
    }
    if (err == BAY_OK && !owner->options.on_stdio) {
        err = open_http(self);
    }
    if (err == BAY_OK) {
        err = worker_agents_init(self, diag);
    }
    worker_watch_blocks(self);
    return err == BAY_OK
               ? BAY_OK
               : diag_set(diag, err, "a worker could not be set up: %s", bay_err_text(err));
}

bay_err worker_listen(worker *self, bay_diag *diag)
{
    uint16_t *ports = self->gateway->ports;
    config_list addresses = gateway_addresses(self->gateway);
    for (size_t i = 0; i < addresses.count; i++) {
        bay_str address = addresses.at[i];
        char text[512];
        size_t colon = str_find_last(address, ':');
        if (str_eq(str_from(address, colon), STR(":0")) && ports[i] != 0) {
            /* the port that the first worker was given, for all */
            buf full = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
            buf_str(&full, str_head(address, colon + 1));
            buf_uint(&full, ports[i]);
            address = buf_view(&full);
        }
        bay_err err = BAY_OK;
        if (self->index == 0 && self->gateway->worker_count > 1) {
            err = socket_address_is_free(address, diag); /* the workers share it, nobody else */
        }
        err = err == BAY_OK ? http_server_listen(self->server, address, diag) : err;
        if (err != BAY_OK) {
            return err;
        }
        if (self->index == 0) {
            ports[i] = http_server_port_at(self->server, i);
        }
    }
    return worker_agents_set(self, diag); /* their cards say where this is */
}

static void stdio_done(void *user)
{
    worker *self = user;
    gateway_stop_loops(self->gateway);
}

bay_err worker_open_stdio(worker *self, bay_diag *diag)
{
    bay_str profile = self->gateway->options.profile;
    endpoint *of = profile.len > 0 ? worker_profile(self, profile) : self->all;
    if (of == NULL) {
        return diag_set(diag, BAY_ERR_NOT_FOUND, "the configuration has no profile \"%.*s\"",
                        BAY_STR(profile));
    }
    return mcp_stdio_new(self->loop, endpoint_engine(of), STDIN_FILENO, STDOUT_FILENO,
                         self->config->timeouts.drain_ms, stdio_done, self, &self->stdio);
}

static void start_servers(worker *self)
{
    self->waited_ms = config_settle_ms(self->config, false);
    err_ignore(loop_timer_start(self->loop, &self->patience, self->waited_ms));
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (!self->upstreams[i]->is_proxy && !upstream_is_asleep(self->upstreams[i]->upstream)) {
            upstream_start(self->upstreams[i]->upstream);
        }
    }
    worker_check_lists_ready(self);
}

/* On stdin and stdout the servers are started for the one client, as soon as it has said what it
 * can be asked: with its first message. */
void worker_start_servers(worker *self)
{
    worker_tick(self);
    bool has_one_client = self->gateway->options.on_stdio;
    if (!has_one_client || self->is_introduced || self->upstream_count == 0) {
        start_servers(self);
    }
}

void worker_introduced(void *user, unsigned inputs)
{
    worker *self = user;
    self->is_introduced = true;
    self->client_inputs = inputs;
    for (size_t i = 0; i < self->upstream_count; i++) {
        upstream_set_client(self->upstreams[i]->upstream, inputs);
    }
    start_servers(self);
}

/* Servers are shared: they go when no worker needs one any more. */
static void worker_drained(void *argument)
{
    worker *self = argument;
    if (atomic_fetch_sub(&self->gateway->draining, 1) == 1) {
        gateway_stop_loops(self->gateway);
    }
}

void worker_drain(worker *self)
{
    if (self->server == NULL) {
        worker_drained(self);
        return;
    }
    mcp_http_router_close_streams(self->mcp_http_router);
    agents_close_streams(self->agents);
    uint32_t drain_ms = self->config->timeouts.drain_ms;
    err_ignore(loop_timer_start(self->loop, &self->last_words, drain_ms));
    http_server_drain(self->server, drain_ms + LAST_WORDS_MS, worker_drained, self);
}
