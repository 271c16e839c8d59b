/* How a worker ends. The order matters: calls cross from loop to loop, so every step is taken for
 * all workers before the next one, and no loop is freed before all of them hold nothing more. */
#include "base/log.h"
#include "base/mem.h"
#include "gateway/agents.h"
#include "gateway/worker.h"

enum { TURN_MS = 50, GRACE_MS = 1000, FLUSH_MS = 5000 };

static void one_left(void *user)
{
    size_t *open = user;
    (*open)--;
}

/* A entry that was leaving anyway is only told again. Without `open` nobody hears of the end. */
static void close_upstream(worker_upstream *at, size_t *open)
{
    at->is_leaving = true;
    at->is_closing = true;
    if (open != NULL) {
        (*open)++;
    }
    upstream_close(at->upstream, open != NULL ? one_left : NULL, open);
}

static void close_upstreams(worker *self, bool proxies, size_t *open)
{
    list *const lists[] = {&self->retired, &self->leaving};
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (self->upstreams[i]->is_proxy == proxies) {
            close_upstream(self->upstreams[i], open);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH(at, lists[i])
        {
            worker_upstream *leaving = CONTAINER_OF(at, worker_upstream, link);
            if (leaving->is_proxy == proxies) {
                close_upstream(leaving, open);
            }
        }
    }
}

void worker_fail_calls(void *argument)
{
    worker *self = argument;
    const list *const lists[] = {&self->retired, &self->leaving};
    for (size_t i = 0; i < self->upstream_count; i++) {
        upstream_close(self->upstreams[i]->upstream, NULL, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH(at, lists[i])
        {
            worker_upstream *leaving = CONTAINER_OF(at, worker_upstream, link);
            if (!leaving->is_closing) {
                upstream_close(leaving->upstream, NULL, NULL);
            }
        }
    }
}

void worker_close_servers(worker *self)
{
    static const bool owners = false;
    size_t open = 0;
    loop_timer_stop(self->loop, &self->retire);
    close_upstreams(self, owners, &open);
    uint64_t until = loop_now_ms(self->loop) + self->config->timeouts.terminate_ms +
                     self->config->timeouts.kill_ms + GRACE_MS;
    while (open > 0 && loop_now_ms(self->loop) < until &&
           !atomic_load(&self->gateway->is_hurried)) {
        loop_turn(self->loop, TURN_MS);
    }
    if (open > 0) {
        close_upstreams(self, owners, NULL); /* the count goes with this function */
        LOG(LOG_WARN, "gateway", "%zu servers of worker %u did not end in time; they are killed",
            open, self->index);
    }
    if (self->sessions != NULL) {
        session_store_flush(self->sessions, FLUSH_MS);
    }
}

static void end_own_endpoint(worker_upstream *of)
{
    endpoint *ending = of->endpoint;
    of->endpoint = NULL;
    endpoint_free(ending);
}

void worker_end_endpoints(worker *self)
{
    self->is_ending = true;
    if (self->loop == NULL) {
        return;
    }
    loop_timer_stop(self->loop, &self->tick);
    loop_timer_stop(self->loop, &self->patience);
    loop_timer_stop(self->loop, &self->last_words);
    loop_timer_stop(self->loop, &self->retire);
    if (self->stdio != NULL) {
        mcp_stdio_free(self->stdio);
    }
    if (self->server != NULL) {
        http_server_free(self->server);
    }
    front_free(self->front);
    worker_auth_free(self->auth);
    self->auth = NULL;
    if (self->mcp_http_router != NULL) {
        mcp_http_router_free(self->mcp_http_router);
        self->mcp_http_router = NULL;
    }
    agents_free(self->agents);
    self->agents = NULL;
    for (size_t i = 0; i < self->upstream_count; i++) {
        end_own_endpoint(self->upstreams[i]);
    }
    LIST_EACH(at, &self->retired)
    {
        end_own_endpoint(CONTAINER_OF(at, worker_upstream, link));
    }
    LIST_EACH(at, &self->leaving)
    {
        end_own_endpoint(CONTAINER_OF(at, worker_upstream, link));
    }
    worker_free_profiles(self);
    endpoint_free(self->all);
    self->all = NULL;
}

void worker_close_proxies(worker *self, size_t *open)
{
    static const bool proxies = true;
    if (self->loop != NULL) {
        close_upstreams(self, proxies, open);
    }
}

static void free_upstreams(list *from)
{
    list_link *link;
    while ((link = list_pop(from)) != NULL) {
        worker_upstream_free(CONTAINER_OF(link, worker_upstream, link));
    }
}

void worker_upstreams_free(worker *self)
{
    if (self->loop == NULL) {
        return;
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        worker_upstream_free(self->upstreams[i]);
    }
    mem_free(self->upstreams);
    self->upstreams = NULL;
    self->upstream_count = 0;
    free_upstreams(&self->retired);
    free_upstreams(&self->leaving);
    if (self->http != NULL) {
        http_client_free(self->http);
    }
}

void worker_fini(worker *self)
{
    gateway_blocks_free(self->blocks);
    gateway_vault_free(self->vault);
    session_store_free(self->sessions);
    worker_evidence_close(&self->evidence);
    loop_free(self->loop);
    worker_agents_forget(self);
    trust_pins_unref(self->pins);
    gateway_contracts_unref(self->contracts);
    worker_door_fini(self);
    config_free(self->config);
}
