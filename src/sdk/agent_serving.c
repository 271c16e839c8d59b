/* Serving an agent: what it listens on, its engine, and how all of it ends.
 *
 *   (nothing) ──listen──► SERVING ──stop──► DRAINING ──► ENDING ──► gone
 *                                              └─ a second stop ─┘
 *
 * DRAINING: no new connections, streams end (their callers come back), what is under way is
 * answered, for at most drain_ms. ENDING: what is still connected is cut; handlers are told to
 * stop, for at most drain_ms again: after that they are given up on (BAY_TIMEOUT), and the agent
 * stays as it is, because they still hold parts of it. What a handler had not answered by then
 * stays as it stands in the store: the next process goes on with it.
 *
 * Invariants
 * - Nothing of this is freed inside a turn of the loop. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http_server.h"
#include "sdk/agent_parts.h"
#include "sdk/agent_push.h"
#include "sdk/agent_store.h"
#include "sdk/agent_task.h"
#include "sdk/row_keys.h"
#include "wire/uri.h"

enum {
    SCRATCH_BYTES = 512 << 20, /* indexes of what one move says */
    BASE_BYTES = 512,          /* of the address in the card */
};

/* Addresses that are guarded alike. */
typedef struct door {
    agent_serving *of;
    http_server *http; /* NULL: nothing is listened on */
    http_front *front;
    a2a_face *face;
    bool is_drained;
} door;

typedef enum serving_phase { SERVING, DRAINING, ENDING } serving_phase;

struct agent_serving {
    bay_agent *agent;
    loop *loop;
    a2a_agent *engine;
    store *store; /* NULL: tasks live in memory */
    agent_store *keeper;
    seal_ring *row_keys; /* NULL: rows are in memory, or nothing can be sealed */
    agent_push *courier;
    agent_pool *pool;
    tls_context *tls;
    door doors[2];       /* [1]: loopback addresses */
    call_door admission; /* what calls pass */
    serving_phase phase;
    listen_names names; /* of loopback addresses */
    uint16_t port;
    char base[BASE_BYTES]; /* where it is reached, when the program does not say */
    list tasks;
    task_spares spares;
    map running;
    size_t held; /* tasks that handlers have */
    arena scratch;
    loop_timer wake;
    loop_timer patience; /* of DRAINING, then of ENDING */
    bool is_impatient;   /* it ran out */
    bool is_turning;
    bool is_cut;
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

arena *sdk_agent_scratch(agent_serving *self)
{
    return &self->scratch;
}

map *sdk_agent_running(agent_serving *self)
{
    return &self->running;
}

list *sdk_agent_tasks(agent_serving *self)
{
    return &self->tasks;
}

task_spares *sdk_agent_spares(agent_serving *self)
{
    return &self->spares;
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
    agent_push_event(self->courier, principal, config, form, event, task);
}

static bay_err push_url(void *user, bay_str url, a2a_fault *fault)
{
    agent_serving *self = ((bay_agent *)user)->serving;
    return agent_push_url(self->courier, url, fault);
}

static const a2a_handler handler = {.turn = sdk_turn_begin, .canceled = sdk_turn_canceled};
static const a2a_handler handler_with_push = {.turn = sdk_turn_begin,
                                              .canceled = sdk_turn_canceled,
                                              .push = push_event,
                                              .push_url = push_url};

static void set_limits(const bay_agent *agent, a2a_agent_limits *out)
{
    out->tasks = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_TASKS);
    out->running = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_RUNNING);
    out->waiting = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_WAITING);
    out->task_bytes = sdk_agent_setting(agent, BAY_AGENT_TASK_BYTES);
    out->total_bytes = sdk_agent_setting(agent, BAY_AGENT_TOTAL_BYTES);
    out->history = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_HISTORY);
    out->artifacts = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_ARTIFACTS);
    out->subscribers = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_SUBSCRIBERS);
    out->replay_events = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_REPLAY_EVENTS);
    out->task_ttl_ms = sdk_agent_setting(agent, BAY_AGENT_TASK_TTL_MS);
    out->deduplicate_ms = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_DEDUPLICATE_MS);
}

static bay_err open_engine(agent_serving *self)
{
    bay_agent *agent = self->agent;
    a2a_agent_options options = {
        .handler = agent->has_push ? &handler_with_push : &handler,
        .user = agent,
        .keeper = self->keeper != NULL ? agent_store_keeper(self->keeper) : NULL,
        .ring = self->row_keys,
        .card = agent->cards.pure,
        .extended_card = agent->cards.extended,
        .now = wall_clock,
        .wake = wake_at,
    };
    set_limits(agent, &options.limits);
    call_door_init(&self->admission);
    self->admission.wall_ms = loop_time_ms;
    bay_err err = a2a_agent_new(&options, &self->engine);
    if (err == BAY_OK) {
        a2a_agent_service(self->engine)->door = &self->admission;
    }
    return err;
}

static bay_err open_courier(agent_serving *self, bay_diag *diag)
{
    const bay_agent *agent = self->agent;
    agent_push_options options = {
        .loop = self->loop,
        .store = self->store,
        .allow = agent->targets.items,
        .allow_count = agent->targets.count,
    };
    return agent->has_push ? agent_push_new(&options, &self->courier, diag) : BAY_OK;
}

static bay_err open_tls(agent_serving *self, bay_diag *diag)
{
    const bay_agent *agent = self->agent;
    if (agent->certificate_file.len == 0) {
        return BAY_OK;
    }
    tls_options options = {
        .certificate_file = agent->certificate_file.at,
        .key_file = agent->key_file.at,
        .ca_file = agent->ca_file.len > 0 ? agent->ca_file.at : NULL,
    };
    return tls_server_new(&options, &self->tls, diag);
}

static void ring_stop(void *argument);

static void run_out(void *argument)
{
    agent_serving *self = argument;
    self->is_impatient = true;
}

static void be_patient(agent_serving *self)
{
    self->is_impatient = loop_timer_start(self->loop, &self->patience, self->agent->drain_ms) !=
                         BAY_OK; /* else until then */
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
    bay_err err =
        agent_store_load(self->keeper, self->engine, self->agent->is_resumable, on_loaded, &state);
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
    return err == BAY_OK ? agent_store_new(self->store, STR("agent"), &self->keeper) : err;
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
    agent_store_free(self->keeper);
    store_free(self->store);
    seal_ring_free(self->row_keys);
}

static void write_out(agent_serving *self)
{
    if (self->keeper == NULL) {
        return;
    }
    be_patient(self);
    while (!agent_store_is_idle(self->keeper) && !self->is_impatient) {
        loop_turn(self->loop, -1);
    }
    loop_timer_stop(self->loop, &self->patience);
}

static void serving_free(agent_serving *self)
{
    bay_agent *agent = self->agent;
    write_out(self);
    if (self->engine != NULL) {
        a2a_agent_free(self->engine);
    }
    agent_push_free(self->courier);
    close_store(self);
    agent_pool_free(self->pool);
    loop_free(self->loop);
    tls_free(self->tls);
    sdk_spares_free(&self->spares);
    map_fini(&self->running);
    arena_fini(&self->scratch);
    bell_mute(&agent->stop); /* what stopped this must not stop the next */
    agent->serving = NULL;
    mem_free(self);
}

static bay_err open_parts(agent_serving *self, bay_diag *diag)
{
    bay_agent *agent = self->agent;
    bay_err err = bell_hang(&agent->stop, self->loop, ring_stop, self);
    if (err == BAY_OK) {
        err = open_tls(self, diag);
    }
    if (err == BAY_OK && !agent->is_on_loop) {
        err = agent_pool_new((uint32_t)sdk_agent_setting(agent, BAY_AGENT_THREADS),
                             agent->log.sink != NULL ? &agent->log : NULL, &self->pool);
    }
    if (err == BAY_OK) {
        err = open_store(self, diag);
    }
    if (err == BAY_OK) {
        err = open_courier(self, diag);
    }
    if (err == BAY_OK) {
        err = open_engine(self);
    }
    if (err == BAY_OK && self->keeper != NULL) {
        err = load_tasks(self, diag);
    }
    return err;
}

static bay_err serving_new(bay_agent *agent, bay_diag *diag)
{
    agent_serving *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    bay_err err = loop_new(&self->loop);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->agent = agent;
    agent->serving = self;
    list_init(&self->tasks);
    list_init(&self->spares.tasks);
    map_init(&self->running, sdk_agent_setting(agent, BAY_AGENT_MAX_RUNNING) + 1);
    arena_init(&self->scratch, SCRATCH_BYTES);
    loop_timer_init(&self->wake, on_wake, self);
    loop_timer_init(&self->patience, run_out, self);
    loop_set_log(self->loop, agent->log.sink != NULL ? &agent->log : NULL);
    err = open_parts(self, diag);
    if (err != BAY_OK) {
        serving_free(self);
        return err;
    }
    loop_hold(self->loop); /* a turn waits for the bell, even when nothing else is open */
    a2a_agent_tick(self->engine);
    return BAY_OK;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void show_agent(const agent_serving *self, a2a_face_agent *out)
{
    const bay_agent *agent = self->agent;
    const agent_cards *cards = &agent->cards;
    *out = (a2a_face_agent){
        .service = a2a_agent_service(self->engine),
        .card_1_0 = cards->pure,
        .card_hybrid = cards->hybrid,
        .card_0_3 = cards->old,
        .etag_1_0 = str_of(cards->pure_tag),
        .etag_hybrid = str_of(cards->hybrid_tag),
        .etag_0_3 = str_of(cards->old_tag),
        .extensions = buf_view(&agent->extension_uris),
        .is_hybrid_default = agent->is_hybrid,
        .card_max_age_s = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_CARD_MAX_AGE_S),
    };
}

/* Whatever tenant it names. */
static bool door_agent(void *user, bay_str tenant, a2a_face_agent *out)
{
    const door *self = user;
    (void)tenant;
    show_agent(self->of, out);
    return true;
}

static bool door_identify(void *user, const front_request *request,
                          const auth_principal **out_principal, front_refusal *out)
{
    const door *self = user;
    return sdk_agent_identify(self->of->agent, request->exchange, out_principal, out);
}

static bay_err door_admit(void *user, const a2a_face_agent *agent, http_exchange *exchange,
                          const a2a_call *call, bay_str *out_challenge, a2a_fault *fault)
{
    const door *self = user;
    (void)agent;
    return sdk_agent_admit(self->of->agent, exchange, call, out_challenge, fault);
}

/* ---- what there is: the front's table -------------------------------------------------------- */

static bool serve_operation(void *user, const front_request *request)
{
    door *self = user;
    a2a_face_agent agent;
    show_agent(self->of, &agent);
    a2a_face_serve(self->face, request->exchange, &agent, request->own, request->principal);
    return true;
}

static bool serve_card(void *user, const front_request *request)
{
    door *self = user;
    a2a_face_agent agent;
    show_agent(self->of, &agent);
    return a2a_face_serve_card(request->exchange, &agent, request->own);
}

static bool serve_grpc(void *user, const front_request *request)
{
    door *self = user;
    return a2a_face_serve_grpc(self->face, request->exchange, request->principal);
}

static void answer_unknown(void *user, http_exchange *exchange)
{
    (void)user;
    a2a_face_serve_nothing(exchange);
}

static void refuse_request(void *user, const front_request *request, const front_refusal *refusal)
{
    door *self = user;
    a2a_face_refuse(self->face, request->exchange, request->own, refusal);
}

/* Below the agent's path, but for gRPC. */
static const front_row rows[] = {
    {STR_INIT("/lf.a2a.v1.**"), true, FRONT_CALLER, NULL, serve_grpc, refuse_request},
    {STR_INIT("/a2a.v1.**"), true, FRONT_CALLER, NULL, serve_grpc, refuse_request},
    {STR_INIT("/.well-known/agent-card.json"), false, FRONT_PUBLIC, &a2a_face_cors, serve_card,
     refuse_request},
    {STR_INIT("/.well-known/agent.json"), false, FRONT_PUBLIC, &a2a_face_cors, serve_card,
     refuse_request},
    {STR_INIT(""), false, FRONT_CALLER, &a2a_face_cors, serve_operation, refuse_request},
    {STR_INIT("/**"), false, FRONT_CALLER, &a2a_face_cors, serve_operation, refuse_request},
};

static void door_free(door *self)
{
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    front_free(self->front);
    a2a_face_free(self->face);
    self->http = NULL;
    self->front = NULL;
    self->face = NULL;
}

/* Behind a proxy requests name the host that callers know. */
static size_t add_public_host(const bay_agent *agent, bay_str out[4])
{
    uri parts;
    if (agent->url.len == 0 || uri_parse(&parts, agent->url) != BAY_OK) {
        return 0;
    }
    out[0] = parts.host;
    out[1] = STR("localhost");
    out[2] = STR("127.0.0.1");
    out[3] = STR("[::1]");
    return parts.is_ip_literal ? 0 : 4;
}

static bay_err door_open(door *self, agent_serving *of, bool is_loopback)
{
    const bay_agent *agent = of->agent;
    bay_str names[4];
    size_t name_count = is_loopback && agent->hosts.count == 0 ? add_public_host(agent, names) : 0;
    front_options options = {
        .rows = rows,
        .row_count = ARRAY_LEN(rows),
        .base = &agent->path,
        .hosts = name_count > 0 ? names : agent->hosts.items,
        .host_count = name_count > 0 ? name_count : agent->hosts.count,
        .origins = agent->origins.items,
        .origin_count = agent->origins.count,
        .is_loopback = is_loopback,
        .names = &of->names,
        .identify = door_identify,
        .unknown = answer_unknown,
        .user = self,
    };
    a2a_face_options face = {
        .keep_alive_ms = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_KEEP_ALIVE_MS),
        .inbound = {.is_lenient = agent->is_lenient},
        .agent = door_agent,
        .admit = door_admit,
        .user = self,
    };
    self->of = of;
    self->is_drained = false;
    bay_err err = a2a_face_new(of->loop, &face, &self->face);
    if (err == BAY_OK) {
        err = front_new(&options, &self->front);
    }
    http_server_options http = {
        .limits = http_server_default_limits,
        .handler = &front_handler,
        .user = self->front,
        .tls = of->tls,
        .is_local_only = is_loopback,
    };
    http.limits.body_bytes = sdk_agent_setting(agent, BAY_AGENT_MAX_BODY_BYTES);
    http.limits.connections = (uint32_t)sdk_agent_setting(agent, BAY_AGENT_MAX_CONNECTIONS);
    http.limits.reply_bytes = sdk_agent_setting(agent, BAY_AGENT_MAX_REPLY_BYTES);
    if (err == BAY_OK) {
        err = http_server_new(of->loop, &http, &self->http);
    }
    if (err != BAY_OK) {
        door_free(self);
    }
    return err;
}

static void name_base(agent_serving *self, bay_str address)
{
    buf out = {.at = self->base, .cap = sizeof(self->base) - 1, .max = sizeof(self->base) - 1};
    buf_str(&out, self->tls != NULL ? STR("https://") : STR("http://"));
    listen_address_write_reachable(address, self->port, &out);
    self->base[out.len] = '\0';
}

static bay_err show(agent_serving *self, bay_diag *diag)
{
    bay_err err = sdk_agent_render(self->agent, str_of(self->base), diag);
    return err != BAY_OK ? err
                         : a2a_agent_set_card(self->engine, self->agent->cards.pure,
                                              self->agent->cards.extended);
}

static bay_err listen_on(agent_serving *self, bay_str address, bool is_loopback, bay_diag *diag)
{
    door *way = &self->doors[is_loopback ? 1 : 0];
    bool is_first_here = way->http == NULL;
    bay_err err = is_first_here ? door_open(way, self, is_loopback) : BAY_OK;
    if (err != BAY_OK) {
        return diag_set(diag, err, "cannot listen on %.*s: %s", BAY_STR(address),
                        bay_err_text(err));
    }
    err = http_server_listen(way->http, address, diag);
    if (err != BAY_OK) {
        if (is_first_here) {
            door_free(way);
        }
        return err;
    }
    if (is_loopback) {
        listen_names_add(&self->names, address);
    }
    if (self->port == 0) {
        self->port = http_server_port(way->http);
        name_base(self, address);
        err = show(self, diag);
    }
    return err;
}

static void end_if_idle(agent_serving *self);

bay_err bay_agent_listen(bay_agent *agent, const char *address, bay_diag *diag)
{
    bool is_loopback = false;
    bay_err err = bay_agent_check(agent, diag);
    if (err == BAY_OK) {
        listen_policy policy = sdk_agent_policy(agent);
        err = listen_policy_admit(&policy, str_of(address), &is_loopback, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (agent->serving == NULL) {
        bay_diag why = {.code = BAY_OK};
        err = serving_new(agent, &why);
        if (err != BAY_OK) {
            return diag_set(diag, err, "the agent cannot begin: %s",
                            why.code != BAY_OK ? why.text : bay_err_text(err));
        }
    }
    agent_serving *self = agent->serving;
    if (self->phase != SERVING) {
        return diag_set(diag, BAY_STATE, "the agent is being stopped");
    }
    err = listen_on(self, str_of(address), is_loopback, diag);
    if (err != BAY_OK) {
        end_if_idle(self);
        return err;
    }
    agent->has_served = true;
    return BAY_OK;
}

uint16_t bay_agent_port(const bay_agent *agent)
{
    return agent != NULL && agent->serving != NULL ? agent->serving->port : 0;
}

bay_err bay_agent_update(bay_agent *agent, bay_diag *diag)
{
    bay_err err = bay_agent_check(agent, diag);
    return err == BAY_OK && agent->serving != NULL ? show(agent->serving, diag) : err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void door_drained(void *argument)
{
    door *self = argument;
    self->is_drained = true;
}

static void begin_drain(agent_serving *self)
{
    self->phase = DRAINING;
    be_patient(self);
    for (size_t i = 0; i < ARRAY_LEN(self->doors); i++) {
        if (self->doors[i].http != NULL) {
            a2a_face_close_streams(self->doors[i].face);
            http_server_drain(self->doors[i].http, self->agent->drain_ms, door_drained,
                              &self->doors[i]);
        }
    }
}

static void begin_end(agent_serving *self)
{
    self->phase = ENDING;
    be_patient(self);
    sdk_agent_cancel_tasks(self);
}

static void ring_stop(void *argument)
{
    agent_serving *self = argument;
    if (self->phase == SERVING) {
        begin_drain(self);
    } else if (self->phase == DRAINING) {
        begin_end(self);
    }
}

static bool has_open_ways(const agent_serving *self)
{
    bool is_open = false;
    for (size_t i = 0; i < ARRAY_LEN(self->doors); i++) {
        is_open = is_open || (self->doors[i].http != NULL && !self->doors[i].is_drained);
    }
    return is_open;
}

/* Not inside a turn: servers may be freed. */
static void cut(agent_serving *self)
{
    for (size_t i = 0; i < ARRAY_LEN(self->doors) && !self->is_cut; i++) {
        door_free(&self->doors[i]);
    }
    self->is_cut = true;
    self->port = 0;
}

static void end_if_idle(agent_serving *self)
{
    bool is_idle = self->port == 0 && !self->is_turning;
    if (is_idle && self->held == 0) {
        cut(self);
        serving_free(self);
    }
}

/* Between two turns: BAY_OK goes on, BAY_EOF: it is over and `agent->serving` is gone, BAY_TIMEOUT:
 * over but for handlers that do not end. */
static bay_err look(bay_agent *agent)
{
    agent_serving *self = agent->serving;
    if (self->phase == DRAINING && (!has_open_ways(self) || self->is_impatient)) {
        begin_end(self);
    }
    if (self->phase != ENDING) {
        return BAY_OK;
    }
    cut(self);
    if (self->held > 0) {
        if (!self->is_impatient) {
            return BAY_OK;
        }
        be_patient(self); /* for whoever tries again */
        return BAY_TIMEOUT;
    }
    loop_timer_stop(self->loop, &self->patience);
    serving_free(self);
    return BAY_EOF;
}

static bay_err turn(bay_agent *agent, int64_t timeout_ms)
{
    agent_serving *self = agent->serving;
    self->is_turning = true;
    loop_turn(self->loop, timeout_ms);
    self->is_turning = false;
    return look(agent);
}

bay_err bay_agent_run(bay_agent *agent, bay_diag *diag)
{
    if (agent == NULL) {
        return diag_set(diag, BAY_NOMEM, "%s", bay_err_text(BAY_NOMEM));
    }
    if (agent->serving == NULL) {
        bay_err err = bay_agent_check(agent, diag);
        return err != BAY_OK ? err
                             : diag_set(diag, BAY_STATE,
                                        "there is nothing to serve on: bay_agent_listen "
                                        "comes first");
    }
    if (agent->serving->is_turning) {
        return diag_set(diag, BAY_STATE, "the agent is running already");
    }
    bay_err err = look(agent);
    while (err == BAY_OK) {
        err = turn(agent, -1);
    }
    if (err == BAY_TIMEOUT) {
        return diag_set(diag, err, "a handler did not come to an end");
    }
    return BAY_OK;
}

void bay_agent_stop(bay_agent *agent)
{
    if (agent != NULL) {
        bell_ring(&agent->stop);
    }
}

int bay_agent_fd(const bay_agent *agent)
{
    return agent != NULL && agent->serving != NULL ? loop_fd(agent->serving->loop) : -1;
}

int bay_agent_wait_ms(const bay_agent *agent)
{
    return agent != NULL && agent->serving != NULL ? loop_wait_ms(agent->serving->loop) : -1;
}

bay_err bay_agent_dispatch(bay_agent *agent)
{
    if (agent == NULL || (agent->serving == NULL && !agent->has_served)) {
        return BAY_STATE;
    }
    if (agent->serving == NULL) {
        return BAY_EOF;
    }
    return agent->serving->is_turning ? BAY_STATE : turn(agent, 0);
}

bool sdk_agent_abandon(bay_agent *self)
{
    agent_serving *serving = self->serving;
    if (serving == NULL) {
        return true;
    }
    if (serving->is_turning) {
        return false;
    }
    if (serving->phase != ENDING) {
        begin_end(serving);
    }
    be_patient(serving);
    bay_err err = look(self);
    while (err == BAY_OK) {
        err = turn(self, -1);
    }
    return err == BAY_EOF;
}
