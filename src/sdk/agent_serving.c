/* An agent's engine, its store, and what carries it: the A2A bindings at one address. Listening and
 * its end are the host's. What a handler had not answered when it was given up on stays as it
 * stands in the store: the next process goes on with it. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "sdk/agent_push.h"
#include "sdk/agent_store.h"
#include "sdk/agent_task.h"
#include "sdk/guard.h"
#include "sdk/row_keys.h"
#include "wire/uri.h"

struct agent_serving {
    bay_agent *agent;
    loop *loop;
    a2a_agent *engine;
    store *store; /* NULL: tasks live in memory */
    agent_store *persistence;
    seal_ring *row_keys; /* NULL: rows are in memory, or nothing can be sealed */
    agent_push *push_sender;
    agent_pool *pool;
    list tasks;
    task_free_list free_list;
    map running;
    size_t held; /* tasks that handlers have */
    loop_timer wake;
};

loop *sdk_agent_loop(const agent_serving *self)
{
    return self->loop;
}

a2a_agent *sdk_agent_engine(const agent_serving *self)
{
    return self->engine;
}

agent_pool *sdk_agent_pool(const agent_serving *self)
{
    return self->pool;
}

void sdk_agent_count(agent_serving *self, int change)
{
    self->held = change > 0 ? self->held + 1 : self->held - 1;
}

map *sdk_agent_running(agent_serving *self)
{
    return &self->running;
}

list *sdk_agent_tasks(agent_serving *self)
{
    return &self->tasks;
}

task_free_list *sdk_task_free_list(agent_serving *self)
{
    return &self->free_list;
}

/* ---- the engine ------------------------------------------------------------------------------ */

static uint64_t wall_clock(void *user)
{
    (void)user;
    return loop_time_ms();
}

static void on_wake(void *argument)
{
    agent_serving *self = argument;
    a2a_agent_tick(self->engine);
}

static void wake_at(void *user, uint64_t at_ms)
{
    agent_serving *self = ((bay_agent *)user)->serving;
    uint64_t now = loop_time_ms();
    if (loop_timer_start(self->loop, &self->wake, at_ms > now ? at_ms - now : 0) != BAY_OK) {
        LOG(LOG_WARN, "agent", "no memory for a timer: what expired is removed later");
    }
}

static void push_event(void *user, bay_str principal, json_val config, a2a_form form,
                       a2a_event *event, bay_str task)
{
    agent_serving *self = ((bay_agent *)user)->serving;
    agent_push_event(self->push_sender, principal, config, form, event, task);
}

static bay_err push_url(void *user, bay_str url, a2a_fault *fault)
{
    agent_serving *self = ((bay_agent *)user)->serving;
    return agent_push_url(self->push_sender, url, fault);
}

static const a2a_handler handler = {.turn = sdk_turn_begin, .canceled = sdk_turn_canceled};
static const a2a_handler handler_with_push = {.turn = sdk_turn_begin,
                                              .canceled = sdk_turn_canceled,
                                              .push = push_event,
                                              .push_url = push_url};

static void set_limits(const bay_agent *agent, a2a_agent_limits *out)
{
    out->tasks = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_TASKS);
    out->running = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_RUNNING);
    out->waiting = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_WAITING);
    out->task_bytes = sdk_agent_setting(agent, BAY_AGENT_SETTING_TASK_BYTES);
    out->total_bytes = sdk_agent_setting(agent, BAY_AGENT_SETTING_TOTAL_BYTES);
    out->history = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_HISTORY);
    out->artifacts = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_ARTIFACTS);
    out->subscribers = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_SUBSCRIBERS);
    out->replay_events = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_REPLAY_EVENTS);
    out->task_ttl_ms = sdk_agent_setting(agent, BAY_AGENT_SETTING_TASK_TTL_MS);
    out->deduplicate_ms = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_DEDUPLICATE_MS);
}

static bay_err open_engine(agent_serving *self)
{
    bay_agent *agent = self->agent;
    a2a_agent_options options = {
        .handler = agent->has_push ? &handler_with_push : &handler,
        .user = agent,
        .persistence =
            self->persistence != NULL ? agent_store_persistence(self->persistence) : NULL,
        .ring = self->row_keys,
        .card = json_root(agent->cards.plain),
        .extended_card = agent->cards.extended,
        .now = wall_clock,
        .wake = wake_at,
    };
    set_limits(agent, &options.limits);
    bay_err err = a2a_agent_new(&options, &self->engine);
    if (err == BAY_OK) {
        a2a_agent_service(self->engine)->door = &agent->host.door;
    }
    return err;
}

static bay_err open_push_sender(agent_serving *self, bay_diag *diag)
{
    const bay_agent *agent = self->agent;
    agent_push_options options = {
        .loop = self->loop,
        .store = self->store,
        .allow = agent->targets.items,
        .allow_count = agent->targets.count,
    };
    return agent->has_push ? agent_push_new(&options, &self->push_sender, diag) : BAY_OK;
}

/* ---- the store ------------------------------------------------------------------------------- */

typedef struct loading {
    bool is_done;
    agent_store_loaded loaded;
} loading;

static void on_loaded(void *user, const agent_store_loaded *loaded)
{
    loading *self = user;
    self->is_done = true;
    self->loaded = *loaded;
}

/* Not inside a turn. Nothing is listened on yet, so nobody asks before the tasks are there. */
static bay_err load_tasks(agent_serving *self, bay_diag *diag)
{
    loading state = {.is_done = false};
    bay_err err = agent_store_load(self->persistence, self->engine, self->agent->is_resumable,
                                   on_loaded, &state);
    while (err == BAY_OK && !state.is_done) {
        loop_turn(self->loop, -1);
    }
    err = err == BAY_OK ? state.loaded.err : err;
    if (err != BAY_OK) {
        return diag_set(diag, err, "the tasks in %.*s cannot be read: %s",
                        BAY_STR(self->agent->store_path), bay_err_text(err));
    }
    if (state.loaded.refused > 0) {
        AGENT_LOG(self->agent, LOG_WARN, "%llu tasks in the store cannot be read; they stay there",
                  (unsigned long long)state.loaded.refused);
    }
    return BAY_OK;
}

static bay_err open_store(agent_serving *self, bay_diag *diag)
{
    bay_agent *agent = self->agent;
    if (agent->open_store == NULL) {
        return BAY_OK;
    }
    store_options options = agent_store_suits();
    bay_err err = agent->open_store(self->loop, agent->store_path, &options, &self->store, diag);
    err = err == BAY_OK
              ? sdk_row_keys_open(agent->open_store, agent->store_path, &self->row_keys, diag)
              : err;
    return err == BAY_OK ? agent_store_new(self->store, STR("agent"), &self->persistence) : err;
}

static void on_store_closed(void *user)
{
    bool *is_closed = user;
    *is_closed = true;
}

/* Not inside a turn: what was told is written, then the store is closed. */
static void close_store(agent_serving *self)
{
    bool is_closed = self->store == NULL;
    if (!is_closed) {
        store_close(self->store, on_store_closed, &is_closed);
    }
    while (!is_closed) {
        loop_turn(self->loop, -1);
    }
    agent_store_free(self->persistence);
    store_free(self->store);
    seal_ring_free(self->row_keys);
}

/* ---- what the host asks for ------------------------------------------------------------------ */

static bay_err open_parts(agent_serving *self, bay_diag *diag)
{
    bay_agent *agent = self->agent;
    bay_err err = BAY_OK;
    if (!agent->is_on_loop) {
        err = agent_pool_new((uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_THREADS),
                             agent->log.sink != NULL ? &agent->log : NULL, &self->pool);
    }
    if (err == BAY_OK) {
        err = open_store(self, diag);
    }
    if (err == BAY_OK) {
        err = open_push_sender(self, diag);
    }
    if (err == BAY_OK) {
        err = open_engine(self);
    }
    if (err == BAY_OK && self->persistence != NULL) {
        err = load_tasks(self, diag);
    }
    return err;
}

static bay_err agent_open(void *object, loop *on, bay_diag *diag)
{
    bay_agent *agent = object;
    agent_serving *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->agent = agent;
    self->loop = on;
    agent->serving = self;
    list_init(&self->tasks);
    list_init(&self->free_list.tasks);
    map_init(&self->running, sdk_agent_setting(agent, BAY_AGENT_SETTING_MAX_RUNNING) + 1);
    loop_timer_init(&self->wake, on_wake, self);
    bay_err err = open_parts(self, diag);
    if (err == BAY_OK && agent->guard != NULL) {
        err = sdk_gate_open(agent->guard, &agent->host, on, &agent->path, &agent->gate, diag);
    }
    if (err == BAY_OK) {
        a2a_agent_tick(self->engine);
    }
    return err;
}

static bool agent_is_written(const void *object)
{
    const bay_agent *self = object;
    return agent_store_is_idle(self->serving->persistence);
}

static void agent_close(void *object)
{
    bay_agent *agent = object;
    agent_serving *self = agent->serving;
    if (self == NULL) {
        return;
    }
    sdk_gate_close(agent->gate);
    agent->gate = NULL;
    if (self->persistence != NULL) {
        (void)host_turn_until(&agent->host, agent_is_written);
    }
    if (self->engine != NULL) {
        a2a_agent_free(self->engine);
    }
    agent_push_free(self->push_sender);
    close_store(self);
    agent_pool_free(self->pool);
}

static void agent_release(void *object)
{
    bay_agent *agent = object;
    agent_serving *self = agent->serving;
    if (self == NULL) {
        return;
    }
    sdk_task_free_list_fini(&self->free_list);
    map_fini(&self->running);
    agent->serving = NULL;
    mem_free(self);
}

static void agent_end(void *object)
{
    bay_agent *self = object;
    sdk_agent_cancel_tasks(self->serving);
}

static bool agent_is_busy(const void *object)
{
    const bay_agent *self = object;
    return self->serving->held > 0;
}

static bay_err agent_check(void *object, bay_diag *diag)
{
    return bay_agent_check(object, diag);
}

static listen_policy agent_policy(const void *object)
{
    return sdk_agent_policy(object);
}

static bay_err show(bay_agent *agent, bay_str base, bay_diag *diag)
{
    bay_err err = sdk_agent_render(agent, base, diag);
    return err != BAY_OK ? err
                         : a2a_agent_set_card(agent->serving->engine, json_root(agent->cards.plain),
                                              agent->cards.extended);
}

static bay_err agent_reached(void *object, bay_str base, bay_diag *diag)
{
    return show(object, base, diag);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void agent_limits(const void *object, http_server_limits *out)
{
    const bay_agent *self = object;
    out->body_bytes = sdk_agent_setting(self, BAY_AGENT_SETTING_MAX_BODY_BYTES);
    out->connections = (uint32_t)sdk_agent_setting(self, BAY_AGENT_SETTING_MAX_CONNECTIONS);
    out->reply_bytes = sdk_agent_setting(self, BAY_AGENT_SETTING_MAX_REPLY_BYTES);
}

static void show_agent(const bay_agent *agent, a2a_http_agent *out)
{
    const agent_cards *cards = &agent->cards;
    *out = (a2a_http_agent){
        .service = a2a_agent_service(agent->serving->engine),
        .card_1_0 = cards->pure,
        .card_hybrid = cards->hybrid,
        .card_0_3 = cards->old,
        .etag_1_0 = str_of(cards->pure_tag),
        .etag_hybrid = str_of(cards->hybrid_tag),
        .etag_0_3 = str_of(cards->old_tag),
        .extensions = buf_view(&agent->extension_uris),
        .is_hybrid_default = agent->is_hybrid,
        .card_max_age_s = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_CARD_MAX_AGE_S),
    };
}

/* Whatever tenant it names. */
static bool endpoint_agent(void *user, bay_str tenant, http_exchange *exchange,
                           const auth_principal *principal, a2a_http_agent *out)
{
    (void)exchange;
    (void)principal;
    (void)tenant;
    show_agent(user, out);
    return true;
}

static bay_err endpoint_admit(void *user, const a2a_http_agent *agent, http_exchange *exchange,
                              const a2a_call *call, front_challenge *out_challenge,
                              a2a_fault *fault)
{
    (void)agent;
    return sdk_agent_admit(user, exchange, call, out_challenge, fault);
}

/* ---- what there is: the front's table -------------------------------------------------------- */

static front_verdict endpoint_identify(void *user, const front_request *request,
                                       const auth_principal **out_principal, front_refusal *out)
{
    const host_listener *self = user;
    return sdk_agent_identify(self->of->owner.object, request, out_principal, out);
}

static bool serve_operation(void *user, const front_request *request)
{
    host_listener *self = user;
    a2a_http_agent agent;
    show_agent(self->of->owner.object, &agent);
    a2a_http_router_serve(self->endpoint, request->exchange, &agent, request->own,
                          request->principal);
    return true;
}

static bool serve_card(void *user, const front_request *request)
{
    host_listener *self = user;
    a2a_http_agent agent;
    show_agent(self->of->owner.object, &agent);
    return a2a_http_router_serve_card(request->exchange, &agent, request->own);
}

static bool serve_grpc(void *user, const front_request *request)
{
    host_listener *self = user;
    return a2a_http_router_serve_grpc(self->endpoint, request->exchange, request->principal);
}

static bool serve_metadata(void *user, const front_request *request)
{
    const host_listener *self = user;
    const bay_agent *agent = self->of->owner.object;
    return agent->gate != NULL && sdk_gate_serve_metadata(agent->gate, request);
}

static void answer_unknown(void *user, http_exchange *exchange)
{
    (void)user;
    a2a_http_router_serve_nothing(exchange);
}

static void refuse_request(void *user, const front_request *request, const front_refusal *refusal)
{
    host_listener *self = user;
    a2a_http_router_refuse(self->endpoint, request->exchange, request->own, refusal);
}

/* Below the agent's path, but for gRPC. */
static const front_row rows[] = {
    {STR_INIT(OAUTH_METADATA_PATH), true, FRONT_SHARED, &oauth_metadata_cors, serve_metadata, NULL},
    {STR_INIT(OAUTH_METADATA_PATH "/**"), true, FRONT_SHARED, &oauth_metadata_cors, serve_metadata,
     NULL},
    {STR_INIT("/"), false, FRONT_CALLER, &a2a_http_router_cors, serve_operation, refuse_request},
    {STR_INIT("/lf.a2a.v1.**"), true, FRONT_CALLER, NULL, serve_grpc, refuse_request},
    {STR_INIT("/a2a.v1.**"), true, FRONT_CALLER, NULL, serve_grpc, refuse_request},
    {STR_INIT("/.well-known/agent-card.json"), false, FRONT_PUBLIC, &a2a_http_router_cors,
     serve_card, refuse_request},
    {STR_INIT("/.well-known/agent.json"), false, FRONT_PUBLIC, &a2a_http_router_cors, serve_card,
     refuse_request},
    {STR_INIT(""), false, FRONT_CALLER, &a2a_http_router_cors, serve_operation, refuse_request},
    {STR_INIT("/**"), false, FRONT_CALLER, &a2a_http_router_cors, serve_operation, refuse_request},
};

static const bay_str *agent_base(const void *object)
{
    const bay_agent *self = object;
    return &self->path;
}

/* Behind a proxy requests name the host that callers know. */
static size_t agent_names(const void *object, bay_str out[HOST_NAMES])
{
    const bay_agent *self = object;
    uri parts;
    if (self->url.len == 0 || uri_parse(&parts, self->url) != BAY_OK) {
        return 0;
    }
    out[0] = parts.host;
    out[1] = STR("localhost");
    out[2] = STR("127.0.0.1");
    out[3] = STR("[::1]");
    return parts.is_ip_literal ? 0 : HOST_NAMES;
}

static bay_err endpoint_new(void *object, host_listener *at, loop *on, void **out)
{
    bay_agent *agent = object;
    a2a_http_router *router = NULL;
    a2a_http_router_options options = {
        .keep_alive_ms = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_SETTING_KEEP_ALIVE_MS),
        .inbound = {.is_lenient = agent->is_lenient},
        .agent = endpoint_agent,
        .admit = endpoint_admit,
        .user = agent,
    };
    (void)at;
    bay_err err = a2a_http_router_new(on, &options, &router);
    *out = router;
    return err;
}

static void endpoint_free(void *endpoint)
{
    a2a_http_router_free(endpoint);
}

static void endpoint_close_streams(void *endpoint)
{
    a2a_http_router_close_streams(endpoint);
}

const host_kind sdk_agent_kind = {
    .noun = "agent",
    .prefix = "bay_agent",
    .check = agent_check,
    .policy = agent_policy,
    .limits = agent_limits,
    .open = agent_open,
    .close = agent_close,
    .release = agent_release,
    .endpoint_new = endpoint_new,
    .endpoint_free = endpoint_free,
    .endpoint_close_streams = endpoint_close_streams,
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .identify = endpoint_identify,
    .unknown = answer_unknown,
    .base = agent_base,
    .names = agent_names,
    .reached = agent_reached,
    .end = agent_end,
    .is_busy = agent_is_busy,
};

/* ---- the public functions -------------------------------------------------------------------- */

static sdk_host *host_of(bay_agent *agent)
{
    return agent != NULL ? &agent->host : NULL;
}

static const sdk_host *const_host_of(const bay_agent *agent)
{
    return agent != NULL ? &agent->host : NULL;
}

void bay_agent_tls(bay_agent *agent, const char *certificate_file, const char *key_file,
                   const char *ca_file)
{
    if (agent != NULL) {
        host_tls(&agent->host, certificate_file, key_file, ca_file);
    }
}

void bay_agent_allow_host(bay_agent *agent, const char *name)
{
    if (agent != NULL) {
        host_allow_host(&agent->host, name);
    }
}

void bay_agent_allow_origin(bay_agent *agent, const char *origin)
{
    if (agent != NULL) {
        host_allow_origin(&agent->host, origin);
    }
}

void bay_agent_open_on_purpose(bay_agent *agent)
{
    if (agent != NULL) {
        agent->host.is_open = true;
    }
}

bay_err bay_agent_listen(bay_agent *agent, const char *address, bay_diag *diag)
{
    return host_listen(host_of(agent), address, diag);
}

uint16_t bay_agent_port(const bay_agent *agent)
{
    return host_port(const_host_of(agent));
}

bay_err bay_agent_update(bay_agent *agent, bay_diag *diag)
{
    bay_err err = bay_agent_check(agent, diag);
    return err == BAY_OK && agent->serving != NULL ? show(agent, host_base(&agent->host), diag)
                                                   : err;
}

bay_err bay_agent_run(bay_agent *agent, bay_diag *diag)
{
    return host_run(host_of(agent), diag);
}

void bay_agent_stop(bay_agent *agent)
{
    host_stop(host_of(agent));
}

int bay_agent_fd(const bay_agent *agent)
{
    return host_fd(const_host_of(agent));
}

int bay_agent_wait_ms(const bay_agent *agent)
{
    return host_wait_ms(const_host_of(agent));
}

bay_err bay_agent_dispatch(bay_agent *agent)
{
    return host_dispatch(host_of(agent));
}
