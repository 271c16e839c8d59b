/* A server as one loop sees it: its upstream, its lists, its own endpoint. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/unused.h"
#include "endpoint/client_session.h"
#include "endpoint/own_lists.h"
#include "gateway/agents.h"
#include "gateway/contract_runner.h"
#include "gateway/grader.h"
#include "gateway/worker.h"

enum { RETIRE_STEP_MS = 50 };

static void worker_upstream_fetch(worker_upstream *self, listing_kind kind)
{
    freshness_started(&self->freshness, kind);
    listing_fetch_start(&self->fetches[kind], self->worker->config->timeouts.list_ms);
}

/* What it tells matters to nobody any more. */
static bool is_gone(const worker_upstream *self)
{
    return self->is_leaving || self->worker->is_ending;
}

static catalog_source source_of(const worker_upstream *self)
{
    catalog_source source = {.upstream = self->upstream,
                             .read = self->fetched,
                             .pins = self->fetches[0].pins,
                             .about = &self->about,
                             .is_held = worker_upstream_is_held(self)};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        source.listings[kind] = self->fetches[kind].current;
        source.fresh_until_ms[kind] = self->freshness.until_ms[kind];
    }
    return source;
}

/* A list is due: nobody has told of a change. */
static void worker_upstream_reads(void *user, listing_kind kind)
{
    worker_upstream *self = user;
    if (!is_gone(self) && upstream_state_of(self->upstream) == UPSTREAM_READY) {
        worker_upstream_fetch(self, kind);
    }
}

static freshness_facts facts_of(const worker_upstream *self, const listing_fetch *fetch)
{
    static const struct {
        bay_str kind;
        bay_str tells;
    } capabilities[LISTING_KINDS] = {
        [LISTING_TOOLS] = {STR_INIT("tools"), STR_INIT("tools.listChanged")},
        [LISTING_RESOURCES] = {STR_INIT("resources"), STR_INIT("resources.listChanged")},
        [LISTING_TEMPLATES] = {STR_INIT("resources"), STR_INIT("resources.listChanged")},
        [LISTING_PROMPTS] = {STR_INIT("prompts"), STR_INIT("prompts.listChanged")},
    };
    const config_server *server = upstream_config(self->upstream);
    return (freshness_facts){
        .is_good = fetch->is_good,
        .has_kind = upstream_has(self->upstream, capabilities[fetch->kind].kind),
        .may_miss = server->url.len > 0,
        .tells = upstream_admits(self->upstream, capabilities[fetch->kind].tells),
        .ttl_ms = fetch->ttl_ms,
        .every_ms = server->refresh_ms,
        .may_idle = server->idle_stop_ms > 0,
    };
}

static void each_endpoint(worker_upstream *self, void (*visit)(endpoint *at, void *context),
                          void *context)
{
    worker *owner = self->worker;
    visit(owner->all, context);
    for (size_t i = 0; i < owner->profile_count; i++) {
        visit(owner->profiles[i], context);
    }
    if (self->endpoint != NULL) { /* not yet: made by a reload that has not swapped it in */
        visit(self->endpoint, context);
    }
}

/* ---- what the server announces ---------------------------------------------------------------
 * A reading that answers an announcement may bring what is known already. Clients are told all the
 * same: once for each announcement, also where it is about two lists (resources and templates). The
 * first of two that ends leaves its outcome to the second. Where no list could be read, the next
 * reading answers the announcement. */

static bool other_answers(const worker_upstream *self, listing_kind kind)
{
    for (listing_kind at = 0; at < LISTING_KINDS; at++) {
        const listing_fetch *fetch = &self->fetches[at];
        if (at != kind && listing_change(at) == listing_change(kind) && fetch->is_under_way &&
            fetch->answers) {
            return true;
        }
    }
    return false;
}

/* Is the announcement that this reading answers to be passed on now? */
static bool passes_on(worker_upstream *self, listing_fetch *fetch, bool is_changed)
{
    if (!fetch->answers) {
        return false;
    }
    worker_upstream_answer *first = &self->first_answers[listing_change(fetch->kind)];
    worker_upstream_answer own = is_changed       ? ANSWER_CHANGED
                                 : fetch->is_good ? ANSWER_SAME
                                                  : ANSWER_FAILED;
    if (*first == ANSWER_NONE && other_answers(self, fetch->kind)) {
        *first = own;
        return false;
    }
    worker_upstream_answer both = *first > own ? *first : own;
    *first = ANSWER_NONE;
    if (both == ANSWER_FAILED) {
        listing_fetch_announced(fetch);
    }
    return both == ANSWER_SAME;
}

typedef struct news {
    listing_kind kind;
    bool is_changed;
    bool is_passed_on;
    catalog_source source;
} news;

static void take_list_change(endpoint *at, void *context)
{
    const news *what = context;
    if (what->is_changed) {
        endpoint_refresh(at, what->kind, &what->source, 1);
    } else {
        endpoint_keep_fresh(at, what->kind, &what->source);
    }
    if (what->is_passed_on) {
        endpoint_announced(at, what->kind, &what->source);
    }
}

/* Once for each configuration, when the lists are there: what is spelt wrongly in it shows in no
 * other way. One worker tells it for all. */
static void warn_unused(worker_upstream *self)
{
    const config_server *server = upstream_config(self->upstream);
    listing *listings[LISTING_KINDS];
    bool is_known = self->worker->index == 0 && !self->is_searched &&
                    self->fetched == (1u << LISTING_KINDS) - 1;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listings[kind] = self->fetches[kind].current;
        is_known = is_known && self->fetches[kind].is_good;
    }
    if (!is_known) {
        return;
    }
    buf text;
    buf_init(&text, 4096);
    self->is_searched = true;
    if (unused_find(self->config, server, listings, &text) > 0) {
        LOG(LOG_WARN, "catalog",
            "server \"%.*s\" offers nothing by the name of %.*s: check the spelling; "
            "`patchbay list %.*s` shows its names",
            BAY_STR(server->name), BAY_STR(buf_view(&text)), BAY_STR(server->name));
    }
    buf_fini(&text);
}

static void worker_upstream_fetched(void *user, listing_fetch *fetch, bool is_changed)
{
    worker_upstream *self = user;
    worker *owner = self->worker;
    self->fetched |= 1u << fetch->kind;
    if (is_gone(self)) {
        return;
    }
    freshness_facts facts = facts_of(self, fetch);
    freshness_ended(&self->freshness, fetch->kind, &facts);
    news what = {fetch->kind, is_changed, passes_on(self, fetch, is_changed), source_of(self)};
    each_endpoint(self, take_list_change, &what);
    if (self->contracts != NULL && fetch->kind == LISTING_TOOLS) {
        contract_runner_listed(self->contracts, fetch->is_good, is_changed);
    }
    if (self->grader != NULL && (is_changed || worker_upstream_awaits_grade(self))) {
        grader_run(self->grader);
    }
    warn_unused(self);
    worker_check_lists_ready(owner);
}

static void take_state(endpoint *at, void *context)
{
    endpoint_server_changed(at, context);
}

static void worker_upstream_state_changed(void *user, upstream *changed)
{
    worker_upstream *self = user;
    (void)changed;
    if (self->shown_state != upstream_state_of(self->upstream)) {
        self->shown_state = upstream_state_of(self->upstream);
        self->state_ms = loop_now_ms(self->worker->loop);
    }
    if (is_gone(self)) {
        return;
    }
    worker_upstream_pin(self);
    if (self->contracts != NULL) {
        contract_runner_state(self->contracts, upstream_state_of(self->upstream));
    }
    if (upstream_state_of(self->upstream) == UPSTREAM_READY) {
        each_endpoint(self, take_state, self->upstream);
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            worker_upstream_fetch(self, kind);
        }
    }
    worker_check_lists_ready(self->worker);
}

static void worker_upstream_changed(void *user, upstream *changed, mcp_change change)
{
    worker_upstream *self = user;
    if (is_gone(self)) {
        return;
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        if ((change & listing_change(kind)) != 0) {
            listing_fetch_announced(&self->fetches[kind]);
        }
    }
    bool is_ready = upstream_state_of(changed) == UPSTREAM_READY; /* else all are read by then */
    for (listing_kind kind = 0; is_ready && kind < LISTING_KINDS; kind++) {
        if ((mcp_change_any(change) & listing_change(kind)) != 0) {
            freshness_told(&self->freshness, kind);
        }
    }
}

typedef struct update {
    upstream *from;
    bay_str address;
} update;

static void take_update(endpoint *at, void *context)
{
    const update *what = context;
    endpoint_updated(at, what->from, what->address);
}

static void worker_upstream_updated(void *user, upstream *changed, bay_str address)
{
    worker_upstream *self = user;
    update what = {changed, address};
    if (!is_gone(self)) {
        each_endpoint(self, take_update, &what);
    }
}

typedef struct done_url {
    bay_str server;
    json_val params;
} done_url;

static void take_done_url(endpoint *at, void *context)
{
    const done_url *done = context;
    endpoint_elicitation_done(at, done->server, done->params);
}

static void worker_upstream_elicited(void *user, upstream *changed, json_val params)
{
    worker_upstream *self = user;
    done_url done = {upstream_name(changed), params};
    if (!is_gone(self)) {
        each_endpoint(self, take_done_url, &done);
    }
}

/* ---- what a server says to one client -----------------------------------------------------------
 */

typedef struct own_session {
    upstream *from;
    bay_str identity;
    uint64_t number;
    bool is_open;
} own_session;

static void take_own_session(endpoint *at, void *context)
{
    const own_session *what = context;
    endpoint_own_session(at, what->from, what->identity, what->number, what->is_open);
}

static void worker_upstream_own_session(void *user, upstream *from, bay_str identity,
                                        uint64_t number, bool is_open)
{
    worker_upstream *self = user;
    own_session what = {from, identity, number, is_open};
    if (!is_gone(self)) {
        each_endpoint(self, take_own_session, &what);
    }
}

typedef struct client_message {
    upstream *from;
    const upstream_client_message *what;
} client_message;

static void take_client_message(endpoint *at, void *context)
{
    const client_message *message = context;
    endpoint_client_told(at, message->from, message->what);
}

static void worker_upstream_client_told(void *user, upstream *from,
                                        const upstream_client_message *what)
{
    worker_upstream *self = user;
    client_message message = {from, what};
    if (!is_gone(self)) {
        each_endpoint(self, take_client_message, &message);
    }
}

typedef struct client_question {
    upstream *from;
    bay_str identity;
    uint64_t number;
    const rpc_message *request;
    bool is_taken;
} client_question;

static void take_client_question(endpoint *at, void *context)
{
    client_question *asked = context;
    if (!asked->is_taken) {
        asked->is_taken =
            endpoint_client_asked(at, asked->from, asked->identity, asked->number, asked->request);
    }
}

static bool worker_upstream_client_asked(void *user, upstream *from, bay_str identity,
                                         uint64_t number, const rpc_message *request)
{
    worker_upstream *self = user;
    client_question asked = {from, identity, number, request, false};
    if (!is_gone(self)) {
        each_endpoint(self, take_client_question, &asked);
    }
    return asked.is_taken;
}

static void take_client_withdrawal(endpoint *at, void *context)
{
    const client_question *asked = context;
    endpoint_client_withdrawn(at, asked->from, asked->number);
}

static void worker_upstream_client_withdrawn(void *user, upstream *from, uint64_t number)
{
    worker_upstream *self = user;
    client_question asked = {.from = from, .number = number};
    if (!is_gone(self)) {
        each_endpoint(self, take_client_withdrawal, &asked);
    }
}

static const upstream_events worker_upstream_events = {
    .state_changed = worker_upstream_state_changed,
    .changed = worker_upstream_changed,
    .updated = worker_upstream_updated,
    .elicited = worker_upstream_elicited,
    .own_session = worker_upstream_own_session,
    .client_told = worker_upstream_client_told,
    .client_asked = worker_upstream_client_asked,
    .client_withdrawn = worker_upstream_client_withdrawn,
};

static uint64_t worker_upstream_now(void *user)
{
    const worker_upstream *self = user;
    return loop_now_ms(self->worker->loop);
}

static void take_lists(endpoint *at, void *context)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        endpoint_refresh(at, kind, context, 1);
    }
}

void worker_upstream_show(worker_upstream *self)
{
    catalog_source source = source_of(self);
    each_endpoint(self, take_lists, &source);
}

bay_err worker_upstream_new(worker *owner, const config *settings, const config_server *server,
                            const worker_upstream_origin *origin, worker_upstream **out)
{
    worker_upstream *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->worker = owner;
    self->config = config_ref(settings);
    self->is_proxy = origin->owner != NULL;
    self->state_ms = loop_now_ms(owner->loop);
    upstream_options options = {.loop = owner->loop,
                                .http = owner->http,
                                .config = settings,
                                .server = server,
                                .events = &worker_upstream_events,
                                .user = self,
                                .engine = worker_agents_engine,
                                .engine_user = owner,
                                .told = origin->told,
                                .target = origin->target,
                                .vault = gateway_vault_of(owner->vault),
                                .via = str_of(owner->gateway->via)};
    bay_err err = self->is_proxy ? upstream_new_proxy(&options, origin->owner, &self->upstream)
                                 : upstream_new(&options, &self->upstream);
    if (err != BAY_OK) {
        config_free(self->config);
        mem_free(self);
        return err;
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_init(&self->fetches[kind], self->upstream, kind, worker_upstream_fetched,
                           self);
        self->fetches[kind].pins = owner->pins;
        self->fetches[kind].now_ms = worker_upstream_now;
    }
    if (owner->is_introduced) {
        upstream_set_client(self->upstream, owner->client_inputs);
    }
    freshness_init(&self->freshness, owner->loop, worker_upstream_reads, self);
    *out = self;
    return BAY_OK;
}

void worker_upstream_free(worker_upstream *self)
{
    contract_runner_free(self->contracts);
    grader_free(self->grader);
    freshness_stop(&self->freshness);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_fini(&self->fetches[kind]);
    }
    endpoint_free(self->endpoint);
    trust_checked_drop(&self->about);
    upstream_free(self->upstream);
    config_free(self->config);
    mem_free(self);
}

/* Something is known of it: its lists, or that it fails. */
bool worker_upstream_is_learned(const worker_upstream *self)
{
    if (upstream_is_down(self->upstream)) {
        return true;
    }
    return upstream_is_settled(self->upstream) && self->fetched == (1u << LISTING_KINDS) - 1 &&
           !gateway_contracts_await(self->worker->contracts, upstream_name(self->upstream)) &&
           !worker_upstream_awaits_grade(self);
}

void worker_lists_ready(worker *self)
{
    gateway *owner = self->gateway;
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (self->upstreams[i]->endpoint != NULL) {
            endpoint_lists_ready(self->upstreams[i]->endpoint);
        }
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint_lists_ready(self->profiles[i]);
    }
    endpoint_lists_ready(self->all);
    self->is_settled = true;
    if (self->index == 0 && !owner->is_told) {
        owner->is_told = true;
        owner->is_list_due = gateway_count_servers(owner).starting > 0;
        gateway_tell(owner, "started");
    }
}

void worker_check_lists_ready(worker *self)
{
    bool all_learned = true;
    bool all_awake = true;
    for (size_t i = 0; i < self->upstream_count; i++) {
        const upstream *server = self->upstreams[i]->upstream;
        bool is_asleep = upstream_is_asleep(server); /* who is not started yet delays nobody */
        bool is_learned = is_asleep || worker_upstream_is_learned(self->upstreams[i]);
        bool is_lazy = upstream_config(server)->start == CONFIG_START_LAZY;
        all_learned = all_learned && is_learned;
        all_awake = all_awake && (is_learned || !is_lazy);
        if (is_learned && self->upstreams[i]->endpoint != NULL) {
            endpoint_lists_ready(self->upstreams[i]->endpoint);
        }
        if (is_learned && !is_asleep && self->upstreams[i]->endpoint != NULL) {
            endpoint_awake(self->upstreams[i]->endpoint);
        }
    }
    for (size_t i = 0; all_awake && i < self->profile_count; i++) {
        endpoint_awake(self->profiles[i]);
    }
    if (all_awake) {
        endpoint_awake(self->all);
    }
    if (all_learned && !self->is_settled) {
        worker_lists_ready(self);
    }
    if (all_learned && self->index == 0 && self->gateway->is_list_due) {
        self->gateway->is_list_due = false;
        gateway_tell(self->gateway, "listed");
    }
}

/* ---- leaving: a retired entry waits for its last calls, then closes
 * ------------------------------
 */

static void worker_upstream_closed(void *user)
{
    worker_upstream *self = user;
    gateway *owner = self->worker->gateway;
    bool was_proxy = self->is_proxy;
    list_remove(&self->link);
    worker_upstream_free(self);
    if (was_proxy) {
        reload_proxy_left(owner);
    }
}

void worker_retire_step(void *argument)
{
    worker *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    LIST_EACH(at, &self->retired)
    {
        worker_upstream *leaving = CONTAINER_OF(at, worker_upstream, link);
        bool is_idle = upstream_open_calls(leaving->upstream) == 0;
        if (!leaving->is_closing && (is_idle || now >= leaving->retired_until_ms)) {
            leaving->is_closing = true;
            upstream_close(leaving->upstream, worker_upstream_closed, leaving);
        }
    }
    if (!list_is_empty(&self->retired)) {
        /* without memory the next entry to retire, or the end, goes on with it */
        err_ignore(loop_timer_start(self->loop, &self->retire, RETIRE_STEP_MS));
    }
}

void worker_upstream_retire(worker_upstream *self)
{
    worker *owner = self->worker;
    self->is_leaving = true;
    freshness_stop(&self->freshness);
    contract_runner_stop(self->contracts);
    self->retired_until_ms = loop_now_ms(owner->loop) + 1 + owner->config->timeouts.drain_ms;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        upstream_call_cancel(&self->fetches[kind].call, STR("the server leaves the gateway"));
    }
    list_push(&owner->retired, &self->link);
    if (loop_timer_start(owner->loop, &owner->retire, RETIRE_STEP_MS) != BAY_OK) {
        self->retired_until_ms = 1; /* no clock: it leaves now */
        worker_retire_step(owner);
    }
}

static bay_err set_own_endpoint(worker *self, worker_upstream *of, const catalog_source *source)
{
    bay_err err = BAY_OK;
    if (of->endpoint == NULL) {
        endpoint_options options = {.config = self->config,
                                    .only = upstream_name(of->upstream),
                                    .worker = self->index,
                                    .loop = self->loop,
                                    .ring = self->ring,
                                    .sessions = self->sessions,
                                    .tasks = &task_ops,
                                    .door = &self->door,
                                    .user_login = &self->user_login};
        err = endpoint_new(&options, &of->endpoint);
    }
    return err == BAY_OK ? endpoint_set_sources(of->endpoint, self->config, source, 1) : err;
}

void worker_upstream_replan(worker_upstream *self)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        const listing_fetch *fetch = &self->fetches[kind];
        if ((self->fetched & 1u << kind) != 0 && !fetch->is_under_way) {
            freshness_facts facts = facts_of(self, fetch);
            freshness_replan(&self->freshness, kind, &facts);
        }
    }
    self->is_searched = false; /* by what its new configuration names */
    warn_unused(self);
}

bay_err worker_upstreams_set(worker *self, worker_upstream **upstreams, size_t count)
{
    self->upstreams = upstreams;
    self->upstream_count = count;
    catalog_source *sources = mem_array(count + 1, sizeof(*sources));
    if (sources == NULL) {
        /* no endpoint may go on showing what is about to leave */
        endpoint_forget_sources(self->all, self->config);
        for (size_t i = 0; i < self->profile_count; i++) {
            endpoint_forget_sources(self->profiles[i], self->config);
        }
        for (size_t i = 0; i < count; i++) {
            if (upstreams[i]->endpoint != NULL) {
                endpoint_forget_sources(upstreams[i]->endpoint, self->config);
            }
        }
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sources[i] = source_of(upstreams[i]);
    }
    bay_err err = endpoint_set_sources(self->all, self->config, sources, count);
    for (size_t i = 0; i < count; i++) {
        bay_err worker_upstream_err = set_own_endpoint(self, upstreams[i], &sources[i]);
        err = err == BAY_OK ? worker_upstream_err : err;
    }
    bay_err profile_err = worker_set_profiles(self, sources, count);
    mem_free(sources);
    return err == BAY_OK ? profile_err : err;
}

uint32_t worker_of_server(const gateway *self, bay_str name)
{
    return (uint32_t)(str_hash(name, 1) % self->worker_count);
}
