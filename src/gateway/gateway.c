#include "gateway/gateway.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "gateway/admin.h"
#include "gateway/worker.h"
#include "sessions/keys.h"

enum { MOST_WORKERS = 256, MOST_ROUNDS = 1000 };

static uint32_t count_workers(const gateway_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = options->workers > 0 ? options->workers : options->config->workers;
    if (count == 0) {
        count = cores > 0 ? (uint32_t)cores : 1;
    }
    return options->on_stdio ? 1 : count > MOST_WORKERS ? MOST_WORKERS : count;
}

bay_err gateway_open_tls(gateway *self, bay_diag *diag)
{
    const config_tls *tls = &self->config->tls;
    if (tls->certificate.len == 0 || self->options.on_stdio) {
        return BAY_OK;
    }
    tls_options options = {
        .certificate_file = tls->certificate.at,
        .key_file = tls->key.at,
        .ca_file = tls->client_ca.len > 0 ? tls->client_ca.at : NULL,
        .require_client_certificate = tls->require_client_certificate,
    };
    return tls_server_new(&options, &self->tls, diag);
}

/* An agent made of tools lives on one loop, and is called from all. */
static bay_err join_agents(gateway *self, bay_diag *diag)
{
    agents **all = mem_array(self->worker_count, sizeof(agents *));
    bay_err err = all != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (uint32_t i = 0; err == BAY_OK && i < self->worker_count; i++) {
        all[i] = self->workers[i].agents;
    }
    if (err == BAY_OK && !self->options.on_stdio) {
        err = agents_push_queue_new(self->workers[0].loop, self->config->store, &self->post);
    }
    err = err == BAY_OK ? agents_owners_write_on(self->owners, self->workers[0].loop) : err;
    for (uint32_t i = 0; err == BAY_OK && i < self->worker_count; i++) {
        agents_set_push_queue(all[i], self->post);
        err = agents_set_peers(all[i], all, self->worker_count);
    }
    mem_free(all);
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "out of memory");
}

static bay_err open_workers(gateway *self, bay_diag *diag)
{
    for (uint32_t i = 0; i < self->worker_count; i++) {
        bay_err err = worker_init(&self->workers[i], self, i, diag);
        self->endpoints[i] = self->workers[i].mcp_http_router;
        if (err != BAY_OK) {
            return diag_set(diag, err, "a worker could not be set up: %s", bay_err_text(err));
        }
    }
    bay_err err = join_agents(self, diag);
    err = err == BAY_OK ? gateway_build(self) : err;
    if (err != BAY_OK) {
        return diag_set(diag, err, "the servers could not be set up: %s", bay_err_text(err));
    }
    for (uint32_t i = 0; i < self->worker_count && !self->options.on_stdio; i++) {
        mcp_http_router_set_peers(self->workers[i].mcp_http_router, self->endpoints,
                                  self->worker_count);
        err = worker_listen(&self->workers[i], diag);
        if (err != BAY_OK) {
            return err;
        }
    }
    return self->options.on_stdio ? worker_open_stdio(&self->workers[0], diag) : BAY_OK;
}

bay_err gateway_new(const gateway_options *options, gateway **out, bay_diag *diag)
{
    gateway *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->options = *options;
    list_init(&self->reload_waiters);
    list_init(&self->reload_next);
    self->config = config_ref(options->config);
    self->started = config_ref(options->config);
    (void)snprintf(self->via, sizeof(self->via), "patchbay-%016llx",
                   (unsigned long long)rand_u64());
    uint32_t count = count_workers(options);
    self->workers = mem_array(count, sizeof(*self->workers));
    self->endpoints = mem_array(count, sizeof(mcp_http_router *));
    bay_err err = self->workers != NULL && self->endpoints != NULL
                      ? BAY_OK
                      : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    if (err == BAY_OK) {
        self->worker_count = count;
        err = gateway_check_listening(self, diag);
    }
    if (err == BAY_OK) {
        err = gateway_open_tls(self, diag);
    }
    if (err == BAY_OK) {
        err = session_keys_open(self->config, &self->ring, diag);
    }
    if (err == BAY_OK && !self->options.on_stdio) {
        err = gateway_auth_new(self->config, NULL, &self->auth, diag);
    }
    if (err == BAY_OK && (agents_aliases_new(&self->aliases) != BAY_OK ||
                          outcomes_new(&(outcomes_options){0}, &self->outcomes) != BAY_OK)) {
        err = diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    if (err == BAY_OK) {
        err = agents_owners_new(self->config->store, &self->owners, diag);
    }
    if (err == BAY_OK) {
        err = gateway_pins_configure(self, self->config, diag);
    }
    if (err == BAY_OK) {
        err = gateway_evidence_new(options, &self->evidence, diag);
    }
    if (err == BAY_OK) {
        err = gateway_contracts_new(self->config, NULL, &self->contracts, diag);
    }
    if (err == BAY_OK) {
        err = open_workers(self, diag);
    }
    if (err == BAY_OK) {
        self->started_ms = self->loaded_ms = loop_now_ms(self->workers[0].loop);
        err = admin_open(self, diag);
    }
    if (err == BAY_OK) {
        err = gateway_metrics_open(self, diag);
    }
    if (err != BAY_OK) {
        gateway_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void drain_one(void *argument)
{
    worker *self = argument;
    if (!atomic_load(&self->gateway->is_over)) {
        worker_drain(self);
    }
}

void gateway_stop_loops(gateway *self)
{
    atomic_store(&self->is_over, true);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        loop_stop(self->workers[i].loop);
    }
}

static void stop_hurriedly(gateway *self)
{
    atomic_store(&self->is_hurried, true);
    gateway_stop_loops(self);
}

void gateway_drain(gateway *self)
{
    if (self->is_stopping || atomic_load(&self->is_over)) {
        return;
    }
    self->is_stopping = true;
    LOG(LOG_INFO, "gateway", "draining");
    atomic_store(&self->draining, self->worker_count);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        if (loop_post(self->workers[i].loop, drain_one, &self->workers[i]) != BAY_OK) {
            stop_hurriedly(self);
        }
    }
}

static void stop_all(void *argument)
{
    gateway *self = argument;
    if (atomic_load(&self->is_over)) {
        atomic_store(&self->is_hurried, true); /* the servers are given no more time */
    } else if (self->is_stopping) {
        stop_hurriedly(self);
    } else {
        gateway_drain(self);
    }
}

void gateway_stop(gateway *self)
{
    err_ignore(loop_post(self->workers[0].loop, stop_all, self));
}

static void on_signal(void *argument, int number)
{
    gateway *self = argument;
    if (number == SIGHUP) {
        gateway_reload(self);
        return;
    }
    stop_all(self);
}

static void run_worker(void *argument)
{
    worker *self = argument;
    if (self->index == 0) {
        gateway_tell(self->gateway, "starting");
    }
    worker_start_servers(self);
    loop_run(self->loop);
    worker_close_servers(self);
}

bay_err gateway_run(gateway *self)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    bay_err err = BAY_OK;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(signals); i++) {
        err = loop_on_signal(self->workers[0].loop, signals[i], on_signal, self);
    }
    for (uint32_t i = 1; err == BAY_OK && i < self->worker_count; i++) {
        err = net_thread_start(&self->workers[i].thread, run_worker, &self->workers[i]);
    }
    if (err == BAY_OK) {
        run_worker(&self->workers[0]);
    }
    gateway_stop_loops(self);
    for (uint32_t i = 1; i < self->worker_count; i++) {
        net_thread_join(&self->workers[i].thread);
    }
    return err;
}

/* No loop runs here any more; this thread turns them all. A round trip takes two rounds; the bound
 * is for a lack of memory that swallows a post. */
static void close_proxies(gateway *self)
{
    size_t open = 0;
    for (uint32_t i = 0; i < self->worker_count; i++) {
        worker_close_proxies(&self->workers[i], &open);
    }
    for (uint32_t round = 0; open > 0 && round < MOST_ROUNDS; round++) {
        for (uint32_t i = 0; i < self->worker_count; i++) {
            if (self->workers[i].loop != NULL) {
                loop_turn(self->workers[i].loop, 0);
            }
        }
    }
    for (uint32_t i = 0; open > 0 && i < self->worker_count; i++) {
        worker_close_proxies(&self->workers[i], NULL); /* nobody is to be told any more */
    }
}

void gateway_free(gateway *self)
{
    if (self == NULL) {
        return;
    }
    atomic_store(&self->is_over, true);
    admin_close(self->admin);
    gateway_metrics_close(self->metrics);
    reload_abandon(self);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        worker_end_endpoints(&self->workers[i]);
    }
    close_proxies(self);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        worker_upstreams_free(&self->workers[i]);
    }
    gateway_pins_close(self);
    agents_push_queue_free(self->post);
    agents_owners_close(self->owners);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        worker_fini(&self->workers[i]);
    }
    gateway_evidence_free(self->evidence); /* every call has ended */
    admin_free(self->admin);               /* messages of it have stood in the loops' queues */
    reload_free(self->reload);
    tls_free(self->tls);
    gateway_auth_unref(self->auth);
    seal_ring_free(self->ring);
    outcomes_free(self->outcomes);
    buckets_unref(self->buckets);
    agents_aliases_free(self->aliases);
    agents_owners_free(self->owners);
    trust_pins_unref(self->pins);
    gateway_contracts_unref(self->contracts);
    mem_free(self->workers);
    mem_free(self->endpoints);
    config_free(self->config);
    config_free(self->started);
    mem_free(self);
}

size_t gateway_tool_count(const gateway *self)
{
    return endpoint_count(self->workers[0].all, LISTING_TOOLS);
}

bay_str gateway_tool_name(const gateway *self, size_t index)
{
    return endpoint_shown(self->workers[0].all, LISTING_TOOLS, index);
}

size_t gateway_agent_count(const gateway *self)
{
    return self->workers[0].agents != NULL ? agents_count(self->workers[0].agents) : 0;
}

bay_str gateway_agent_name(const gateway *self, size_t index)
{
    return agents_name(self->workers[0].agents, index);
}

void gateway_tell(gateway *self, const char *what)
{
    if (self->options.told != NULL) {
        self->options.told(self->options.user, self, what);
    }
}

gateway_servers gateway_count_servers(const gateway *self)
{
    const worker *on = &self->workers[0];
    gateway_servers out = {.count = on->upstream_count};
    for (size_t i = 0; i < on->upstream_count; i++) {
        const upstream *server = on->upstreams[i]->upstream;
        out.down += upstream_is_down(server);
        out.asleep += upstream_is_asleep(server);
        out.starting +=
            !upstream_is_asleep(server) && !worker_upstream_is_learned(on->upstreams[i]);
    }
    return out;
}

bool gateway_is_tls(const gateway *self)
{
    return self->tls != NULL;
}
