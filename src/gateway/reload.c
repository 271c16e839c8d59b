/* A new configuration in a running gateway, without dropping a call.
 *
 *   load -> A on every worker: make what is new and its own (URLs, processes it owns)
 *        -> B on every worker: make proxies of processes owned elsewhere, swap the upstreams, let
 * the old ones retire (each leaves when its last call has ended)
 *        -> when the last retired proxy has left: C on every worker: retire the processes
 *
 * A server whose settings did not change keeps its worker's upstream, its process and its sessions.
 * An endpoint keeps its clients when its server was replaced. The first configuration takes the
 * same way before any loop runs. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/agents.h"
#include "gateway/contract_runner.h"
#include "gateway/grader.h"
#include "gateway/worker.h"
#include "sessions/keys.h"
#include "upstream/told.h"

typedef struct reload_step {
    struct reload *reload;
    worker *worker;
} reload_step;

typedef struct reload {
    gateway *gateway;
    const config *next;
    seal_ring *ring;              /* its keys, when they are others; else NULL */
    const gateway_auth *auth;     /* who comes in by it; NULL: as before */
    gateway_contracts *contracts; /* those that are run from then on; NULL: none are */
    worker_auth **auths;          /* per worker: made in A, taken in B */
    upstream_told **told;         /* by server: what the log was told of it */
    call_target **targets;        /* by server: what its calls are admitted to */
    upstream **owners;            /* of processes, by server; written in A by the owning worker */
    worker_upstream ***upstreams; /* per worker, by server; NULL where there is none */
    worker_upstream ***places;    /* per worker: what becomes its array of upstreams */
    reload_step *steps;           /* per worker: the one under way */
    void (*function)(struct reload *self, worker *on);
    void (*after)(struct reload *self); /* on worker 0, once every worker is through */
    atomic_uint pending;                /* workers that have not finished the step */
    atomic_uint proxies; /* retired proxies that have not left, plus one until B is over */
    atomic_uint failures;
    config_report *report; /* of the file; NULL: the first configuration */
} reload;

static void step_over(void *argument)
{
    reload *self = argument;
    if (!atomic_load(&self->gateway->is_over)) {
        self->after(self);
    }
}

static void step_run(void *argument)
{
    reload_step *at = argument;
    reload *self = at->reload;
    if (atomic_load(&self->gateway->is_over)) {
        return; /* the gateway ends: it cleans up by itself */
    }
    self->function(self, at->worker);
    if (atomic_fetch_sub(&self->pending, 1) == 1 &&
        loop_post(self->gateway->workers[0].loop, step_over, self) != BAY_OK) {
        LOG(LOG_ERROR, "gateway",
            "out of memory: the reload cannot finish, and later reloads wait for it; restart the "
            "gateway");
    }
}

static void step_everywhere(reload *self, void (*function)(reload *self, worker *on),
                            void (*after)(reload *self))
{
    gateway *owner = self->gateway;
    self->function = function;
    self->after = after;
    atomic_store(&self->pending, owner->worker_count);
    for (uint32_t i = 0; i < owner->worker_count; i++) {
        self->steps[i] = (reload_step){self, &owner->workers[i]};
        if (loop_post(owner->workers[i].loop, step_run, &self->steps[i]) != BAY_OK) {
            LOG(LOG_ERROR, "gateway",
                "out of memory: the reload cannot finish, and later reloads wait for it; restart "
                "the gateway");
        }
    }
}

static worker_upstream *worker_upstream_of(const worker *on, const config_server *server)
{
    for (size_t i = 0; i < on->upstream_count; i++) {
        if (str_eq(upstream_name(on->upstreams[i]->upstream), server->name)) {
            return on->upstreams[i];
        }
    }
    return NULL;
}

static bool is_process(const config_server *server)
{
    return server->command.len > 0;
}

static void worker_upstream_failed(reload *self, const config_server *server, bay_err err)
{
    atomic_fetch_add(&self->failures, 1);
    LOG(LOG_ERROR, "gateway", "server \"%s\" could not be set up: %s", server->name.at,
        bay_err_text(err));
}

static void make_own(reload *self, worker *on)
{
    worker_pins_take(on);
    for (size_t i = 0; i < self->next->server_count; i++) {
        const config_server *server = &self->next->servers[i];
        bool is_own =
            !is_process(server) || worker_of_server(self->gateway, server->name) == on->index;
        worker_upstream *known = worker_upstream_of(on, server);
        if (server->is_disabled) {
            continue;
        }
        worker_upstream **to = &self->upstreams[on->index][i];
        if (known != NULL && config_equal_server(upstream_config(known->upstream), server) &&
            (server->agent.len == 0 || worker_agent_stays(on, self->next, server->agent))) {
            *to = known;
        } else if (is_own) {
            bay_err err = worker_upstream_new(
                on, self->next, server,
                &(worker_upstream_origin){.told = self->told[i], .target = self->targets[i]}, to);
            if (err != BAY_OK) {
                worker_upstream_failed(self, server, err);
            }
        }
        if (is_own && is_process(server) && *to != NULL) {
            self->owners[i] = (*to)->upstream;
        }
    }
}

static void make_proxies(reload *self, worker *on)
{
    for (size_t i = 0; i < self->next->server_count; i++) {
        const config_server *server = &self->next->servers[i];
        if (self->upstreams[on->index][i] != NULL || self->owners[i] == NULL) {
            continue;
        }
        worker_upstream_origin origin = {self->owners[i], self->told[i], self->targets[i]};
        bay_err err =
            worker_upstream_new(on, self->next, server, &origin, &self->upstreams[on->index][i]);
        if (err != BAY_OK) {
            worker_upstream_failed(self, server, err);
        }
    }
}

/* Nothing of it changed: requests whose check waits go on waiting. With other keys they are answered
 * 503, because the ring of their nonces goes. */
static bool keeps_auth(const reload *self, const worker *on)
{
    return self->auth == NULL || on->server == NULL ||
           (on->auth != NULL && worker_auth_of(on->auth) == self->auth && self->ring == NULL);
}

/* Without it nobody comes in: the earlier guards may let in whom the new ones refuse. */
static void make_auth(reload *self, worker *on)
{
    bay_diag diag = {.text = "out of memory"};
    if (!keeps_auth(self, on) && worker_auth_new(on, self->auth, session_store_rows(on->sessions),
                                                 &self->auths[on->index], &diag) != BAY_OK) {
        atomic_fetch_add(&self->failures, 1);
        LOG(LOG_ERROR, "gateway",
            "who calls cannot be checked, so this worker answers everybody with 503 until the next "
            "reload: %s",
            diag.text);
    }
}

static void make_new(reload *self, worker *on)
{
    make_auth(self, on);
    make_own(self, on);
}

static void swap_auth(reload *self, worker *on)
{
    if (!keeps_auth(self, on)) {
        worker_auth_free(on->auth);
        on->auth = self->auths[on->index];
        self->auths[on->index] = NULL;
    }
}

static bool worker_upstream_stays(const reload *self, const worker *on,
                                  const worker_upstream *candidate)
{
    for (size_t i = 0; i < self->next->server_count; i++) {
        if (self->upstreams[on->index][i] == candidate) {
            return true;
        }
    }
    return false;
}

/* The clients of an endpoint stay with its name. */
static void move_endpoint(worker *on, worker_upstream *to)
{
    for (size_t i = 0; i < on->upstream_count; i++) {
        worker_upstream *from = on->upstreams[i];
        if (from != to && from->endpoint != NULL && to->endpoint == NULL &&
            str_eq(upstream_name(from->upstream), upstream_name(to->upstream))) {
            to->endpoint = from->endpoint;
            from->endpoint = NULL;
        }
    }
}

static void keep_config(worker_upstream *kept, const config *next, const config_server *server)
{
    const config *old = kept->config;
    kept->config = config_ref(next);
    upstream_set_config(kept->upstream, next, server);
    worker_upstream_replan(kept);
    config_free(old);
}

static void retire_old(reload *self, worker *on, worker_upstream **old, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (worker_upstream_stays(self, on, old[i])) {
            continue;
        }
        contract_runner_stop(old[i]->contracts);
        if (old[i]->is_proxy) {
            atomic_fetch_add(&self->proxies, 1);
            worker_upstream_retire(old[i]);
        } else if (is_process(upstream_config(old[i]->upstream))) {
            old[i]->is_leaving = true;
            list_push(&on->leaving, &old[i]->link);
        } else {
            worker_upstream_retire(old[i]);
        }
    }
}

/* Before the listener has a port there is nothing to say where agents are; it sets them then. */
static void set_agents(reload *self, worker *on)
{
    bay_diag diag = {0};
    if (on->server != NULL && http_server_port(on->server) == 0) {
        return;
    }
    if (worker_agents_set(on, &diag) != BAY_OK) {
        atomic_fetch_add(&self->failures, 1);
        LOG(LOG_ERROR, "gateway", "agents could not be set up: %s", diag.text);
    }
}

static void swap(reload *self, worker *on)
{
    worker_upstream **upstreams = self->places[on->index];
    self->places[on->index] = NULL;
    if (self->ring != NULL) {
        worker_set_ring(on, self->ring);
    }
    swap_auth(self, on);
    make_proxies(self, on);
    size_t count = 0;
    for (size_t i = 0; i < self->next->server_count; i++) {
        worker_upstream *made = self->upstreams[on->index][i];
        if (made != NULL) {
            move_endpoint(on, made);
            keep_config(made, self->next, &self->next->servers[i]);
            upstreams[count++] = made;
        }
    }
    worker_upstream **old = on->upstreams;
    size_t old_count = on->upstream_count;
    const config *old_config = on->config;
    on->config = config_ref(self->next);
    worker_door_set(on, self->next);
    set_agents(self, on); /* before what stands for their skills begins */
    bay_err err = worker_upstreams_set(on, upstreams, count);
    if (err != BAY_OK) {
        atomic_fetch_add(&self->failures, 1);
        LOG(LOG_ERROR, "gateway", "the endpoints could not be rebuilt: %s", bay_err_text(err));
    }
    retire_old(self, on, old, old_count);
    mem_free(old);
    config_free(old_config);
    worker_contracts_set(on, self->contracts);
    worker_graders_set(on);
    worker_pins_refresh(on);
}

static void retire_processes(reload *self, worker *on)
{
    (void)self;
    list_link *link;
    while ((link = list_pop(&on->leaving)) != NULL) {
        worker_upstream_retire(CONTAINER_OF(link, worker_upstream, link));
    }
}

void reload_free(reload *self)
{
    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; i < self->gateway->worker_count; i++) {
        mem_free(self->upstreams != NULL ? self->upstreams[i] : NULL);
        mem_free(self->places != NULL ? self->places[i] : NULL);
    }
    for (size_t i = 0; self->told != NULL && i < self->next->server_count; i++) {
        upstream_told_unref(self->told[i]);
    }
    for (size_t i = 0; self->targets != NULL && i < self->next->server_count; i++) {
        call_target_unref(self->targets[i]);
    }
    mem_free(self->auths);
    gateway_auth_unref(self->auth);
    gateway_contracts_unref(self->contracts);
    mem_free(self->targets);
    mem_free(self->told);
    mem_free(self->upstreams);
    mem_free(self->places);
    mem_free(self->steps);
    mem_free(self->owners);
    seal_ring_free(self->ring);
    config_free(self->next);
    mem_free(self->report);
    mem_free(self);
}

/* A worker whose `places` are still here has not swapped: what is not yet in its upstreams is new.
 */
void reload_abandon(gateway *owner)
{
    reload *self = owner->reload;
    for (uint32_t i = 0; self != NULL && i < owner->worker_count; i++) {
        worker *on = &owner->workers[i];
        worker_auth_free(self->auths[i]);
        self->auths[i] = NULL;
        for (size_t k = 0; self->places[i] != NULL && k < self->next->server_count; k++) {
            worker_upstream *made = self->upstreams[i][k];
            if (made != NULL && worker_upstream_of(on, &self->next->servers[k]) != made) {
                made->is_leaving = true;
                list_push(&on->retired, &made->link);
            }
        }
    }
}

static reload *reload_new(gateway *owner, const config *next)
{
    reload *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->gateway = owner;
    self->next = config_ref(next);
    atomic_init(&self->proxies, 1);
    self->told = mem_array(next->server_count + 1, sizeof(upstream_told *));
    self->targets = mem_array(next->server_count + 1, sizeof(call_target *));
    self->owners = mem_array(next->server_count + 1, sizeof(*self->owners));
    self->upstreams = mem_array(owner->worker_count, sizeof(*self->upstreams));
    self->places = mem_array(owner->worker_count, sizeof(*self->places));
    self->auths = mem_array(owner->worker_count, sizeof(*self->auths));
    self->steps = mem_array(owner->worker_count, sizeof(*self->steps));
    bool is_good = self->told != NULL && self->targets != NULL && self->owners != NULL &&
                   self->upstreams != NULL && self->places != NULL && self->auths != NULL &&
                   self->steps != NULL;
    for (size_t i = 0; is_good && i < next->server_count; i++) {
        is_good = upstream_told_new(&self->told[i]) == BAY_OK &&
                  call_target_new(next->servers[i].name, next->servers[i].concurrency,
                                  &self->targets[i]) == BAY_OK;
    }
    for (uint32_t i = 0; is_good && i < owner->worker_count; i++) {
        self->upstreams[i] = mem_array(next->server_count + 1, sizeof(worker_upstream *));
        self->places[i] = mem_array(next->server_count + 1, sizeof(worker_upstream *));
        is_good = self->upstreams[i] != NULL && self->places[i] != NULL;
    }
    if (!is_good) {
        reload_free(self);
        return NULL;
    }
    return self;
}

static void reload_over(reload *self)
{
    gateway *owner = self->gateway;
    LOG(LOG_INFO, "gateway", "the configuration was reloaded");
    gateway_tell(owner, "reloaded");
    owner->reload = NULL;
    reload_free(self);
    if (owner->is_reload_due) {
        list_link *link;
        owner->is_reload_due = false;
        while ((link = list_pop(&owner->reload_next)) != NULL) {
            list_push(&owner->reload_waiters, link);
        }
        gateway_reload(owner);
    }
}

static void proxies_gone(void *argument)
{
    gateway *owner = argument;
    if (owner->reload != NULL && !atomic_load(&owner->is_over)) {
        step_everywhere(owner->reload, retire_processes, reload_over);
    }
}

void reload_proxy_left(gateway *self)
{
    reload *under_way = self->reload;
    if (under_way != NULL && atomic_fetch_sub(&under_way->proxies, 1) == 1) {
        err_ignore(loop_post(self->workers[0].loop, proxies_gone, self));
    }
}

static void start_new(reload *self, worker *on)
{
    (void)self;
    worker_start_servers(on);
}

static void warn_of_later_keys(const gateway *owner, const config *next)
{
    const char *keys[GATEWAY_LATER_KEYS];
    size_t count = gateway_later_keys(owner, next, keys);
    for (size_t i = 0; i < count; i++) {
        LOG(LOG_WARN, "gateway", "%s: what the file says now is used from the next start on",
            keys[i]);
    }
}

static bool same_keys(const config *a, const config *b)
{
    bool is_same = a->keys.count == b->keys.count;
    for (size_t i = 0; is_same && i < a->keys.count; i++) {
        is_same = str_eq_secret(a->keys.at[i], b->keys.at[i]);
    }
    return is_same;
}

/* By now every worker seals with the new keys. */
static void keep_ring(reload *self)
{
    if (self->ring != NULL) {
        seal_ring_free(self->gateway->ring);
        self->gateway->ring = self->ring;
        self->ring = NULL;
    }
}

static void keep_contracts(reload *self)
{
    gateway_contracts *before = self->gateway->contracts;
    self->gateway->contracts = gateway_contracts_ref(self->contracts);
    gateway_contracts_unref(before);
}

static void keep_auth(reload *self)
{
    if (self->auth != NULL) {
        gateway_auth_unref(self->gateway->auth);
        self->gateway->auth = self->auth;
        self->auth = NULL;
    }
}

/* Whoever waits for a reload is told once; a callback may begin another. */
static void reload_tell(gateway *owner, const reload_outcome *outcome)
{
    worker_evidence_event(&owner->workers[0].evidence, "config", STR("reload"),
                          outcome->err == BAY_OK ? "in_force" : "refused");
    list told;
    list_link *link;
    list_init(&told);
    while ((link = list_pop(&owner->reload_waiters)) != NULL) {
        list_push(&told, link);
    }
    while ((link = list_pop(&told)) != NULL) {
        reload_waiter *waiter = CONTAINER_OF(link, reload_waiter, link);
        waiter->done(waiter->user, outcome);
    }
}

/* The new configuration serves; what it replaced may still have calls. */
static void swapped(reload *self)
{
    gateway *owner = self->gateway;
    const config *before = owner->config;
    keep_ring(self);
    keep_auth(self);
    keep_contracts(self);
    owner->config = config_ref(self->next);
    owner->loaded_ms = loop_now_ms(owner->workers[0].loop);
    owner->reload_error[0] = '\0';
    reload_tell(owner, &(reload_outcome){.report = self->report,
                                         .before = before,
                                         .now = owner->config,
                                         .text = "",
                                         .failures = atomic_load(&self->failures)});
    config_free(before);
    reload_proxy_left(owner); /* B is over: the guard's own count */
}

static void started(reload *self)
{
    step_everywhere(self, start_new, swapped);
}

static void made(reload *self)
{
    step_everywhere(self, swap, started);
}

/* Kept for who asks later how the last reload went. */
static void keep_failure(gateway *self, const char *text, const config_report *report)
{
    const config_message *first = NULL;
    for (size_t i = 0; report != NULL && first == NULL && i < report->count; i++) {
        first = report->messages[i].is_warning ? NULL : &report->messages[i];
    }
    if (first != NULL) {
        (void)snprintf(self->reload_error, sizeof(self->reload_error), "%s:%u: %s", report->name,
                       first->line, first->text);
    } else {
        (void)snprintf(self->reload_error, sizeof(self->reload_error), "%s", text);
    }
    self->reload_failed_ms = loop_now_ms(self->workers[0].loop);
}

static void reload_failed(gateway *self, bay_err err, const char *text, const config_report *report)
{
    for (size_t i = 0; report != NULL && i < report->count; i++) {
        LOG(LOG_ERROR, "gateway", "%s:%u: %s", report->name, report->messages[i].line,
            report->messages[i].text);
    }
    LOG(LOG_ERROR, "gateway", "the configuration was not reloaded; the earlier one stays%s%s",
        text[0] != '\0' ? ": " : "", text);
    keep_failure(self, text, report);
    reload_tell(self, &(reload_outcome){.err = err, .text = text, .report = report});
}

/* Takes `report`, also on failure. */
static void reload_begin(gateway *self, const config *next, config_report *report)
{
    bay_diag diag = {0};
    bay_err err = gateway_check_reload(self, next, &diag);
    reload *made_reload = err == BAY_OK ? reload_new(self, next) : NULL;
    if (made_reload != NULL) {
        made_reload->report = report;
        warn_of_later_keys(self, next);
        if (!same_keys(self->config, next)) {
            err = session_keys_open(next, &made_reload->ring, &diag);
        }
        if (err == BAY_OK && self->auth != NULL) {
            err = gateway_auth_new(next, self->auth, &made_reload->auth, &diag);
        }
    } else if (err == BAY_OK) {
        err = diag_set(&diag, BAY_ERR_NOMEM, "out of memory");
    }
    if (err == BAY_OK) {
        err = gateway_contracts_new(next, self->contracts, &made_reload->contracts, &diag);
    }
    err = err == BAY_OK ? gateway_pins_configure(self, next, &diag) : err;
    if (err == BAY_OK) {
        self->reload = made_reload;
        step_everywhere(made_reload, make_new, made);
        return;
    }
    reload_failed(self, err, diag.text, NULL);
    if (made_reload == NULL) {
        mem_free(report);
    }
    reload_free(made_reload);
}

void gateway_reload(gateway *self)
{
    if (self->reload != NULL) {
        self->is_reload_due = true;
        return;
    }
    if (self->options.config_path == NULL || self->is_stopping) {
        reload_tell(self,
                    &(reload_outcome){.err = BAY_ERR_STATE,
                                      .text = self->is_stopping ? "the gateway is draining"
                                                                : "it has no configuration file"});
        return;
    }
    config_report *report = mem_zalloc(sizeof(*report));
    const config *next = NULL;
    if (report == NULL) {
        reload_failed(self, BAY_ERR_NOMEM, "out of memory", NULL);
        return;
    }
    bay_err err =
        config_load_file(self->options.config_path, !self->options.on_stdio, &next, report);
    if (err != BAY_OK) {
        reload_failed(self, err, "", report);
        mem_free(report);
        return;
    }
    reload_begin(self, next, report);
    config_free(next);
}

void gateway_reload_for(gateway *self, reload_waiter *waiter)
{
    list_push(self->reload != NULL ? &self->reload_next : &self->reload_waiters, &waiter->link);
    gateway_reload(self);
}

bay_err gateway_build(gateway *self)
{
    reload *first = reload_new(self, self->config);
    if (first == NULL) {
        return BAY_ERR_NOMEM;
    }
    first->contracts = gateway_contracts_ref(self->contracts);
    for (uint32_t i = 0; i < self->worker_count; i++) {
        make_own(first, &self->workers[i]);
    }
    for (uint32_t i = 0; i < self->worker_count; i++) {
        swap(first, &self->workers[i]);
    }
    bay_err err = atomic_load(&first->failures) == 0 ? BAY_OK : BAY_ERR_NOMEM;
    reload_free(first);
    return err;
}
