/* A server as one loop sees it: its upstream, its lists, its own face. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/agents.h"
#include "gateway/worker.h"

enum { RETIRE_STEP_MS = 50 };

static void slot_fetch(slot *self, listing_kind kind)
{
    freshness_started(&self->freshness, kind);
    listing_fetch_start(&self->fetches[kind], self->worker->config->timeouts.list_ms);
}

/* What it tells matters to nobody any more. */
static bool is_gone(const slot *self)
{
    return self->is_leaving || self->worker->is_ending;
}

static catalog_source source_of(const slot *self)
{
    catalog_source source = {.upstream = self->upstream, .read = self->fetched};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        source.listings[kind] = self->fetches[kind].current;
        source.fresh_until_ms[kind] = self->freshness.until_ms[kind];
    }
    return source;
}

/* A list is due: nobody has told of a change. */
static void slot_reads(void *user, listing_kind kind)
{
    slot *self = user;
    if (!is_gone(self) && upstream_state_of(self->upstream) == UPSTREAM_READY) {
        slot_fetch(self, kind);
    }
}

static freshness_facts facts_of(const slot *self, const listing_fetch *fetch)
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

static void each_face(slot *self, void (*visit)(face *at, void *context), void *context)
{
    worker *owner = self->worker;
    visit(owner->all, context);
    for (size_t i = 0; i < owner->profile_count; i++) {
        visit(owner->profiles[i], context);
    }
    if (self->face != NULL) { /* not yet: made by a reload that has not swapped it in */
        visit(self->face, context);
    }
}

/* ---- what the server announces ---------------------------------------------------------------
 * A reading that answers an announcement may bring what is known already. Clients are told all the
 * same: once for each announcement, also where it is about two lists (resources and templates). The
 * first of two that ends leaves its outcome to the second. Where no list could be read, the next
 * reading answers the announcement. */

static bool other_answers(const slot *self, listing_kind kind)
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
static bool passes_on(slot *self, listing_fetch *fetch, bool is_changed)
{
    if (!fetch->answers) {
        return false;
    }
    slot_answer *first = &self->first_answers[listing_change(fetch->kind)];
    slot_answer own = is_changed ? ANSWER_CHANGED : fetch->is_good ? ANSWER_SAME : ANSWER_FAILED;
    if (*first == ANSWER_NONE && other_answers(self, fetch->kind)) {
        *first = own;
        return false;
    }
    slot_answer both = *first > own ? *first : own;
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

static void take_news(face *at, void *context)
{
    const news *what = context;
    if (what->is_changed) {
        face_refresh(at, what->kind, &what->source, 1);
    } else {
        face_keep_fresh(at, what->kind, &what->source);
    }
    if (what->is_passed_on) {
        face_announced(at, what->kind, &what->source);
    }
}

static void slot_fetched(void *user, listing_fetch *fetch, bool is_changed)
{
    slot *self = user;
    worker *owner = self->worker;
    self->fetched |= 1u << fetch->kind;
    if (is_gone(self)) {
        return;
    }
    freshness_facts facts = facts_of(self, fetch);
    freshness_ended(&self->freshness, fetch->kind, &facts);
    news what = {fetch->kind, is_changed, passes_on(self, fetch, is_changed), source_of(self)};
    each_face(self, take_news, &what);
    worker_check_settled(owner);
}

static void take_state(face *at, void *context)
{
    face_server_changed(at, context);
}

static void slot_state_changed(void *user, upstream *changed)
{
    slot *self = user;
    (void)changed;
    if (self->shown_state != upstream_state_of(self->upstream)) {
        self->shown_state = upstream_state_of(self->upstream);
        self->state_ms = loop_now_ms(self->worker->loop);
    }
    if (is_gone(self)) {
        return;
    }
    if (upstream_state_of(self->upstream) == UPSTREAM_READY) {
        each_face(self, take_state, self->upstream);
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            slot_fetch(self, kind);
        }
    }
    worker_check_settled(self->worker);
}

static void slot_changed(void *user, upstream *changed, mcp_change change)
{
    slot *self = user;
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

static void take_update(face *at, void *context)
{
    face_updated(at, *(const bay_str *)context);
}

static void slot_updated(void *user, upstream *changed, bay_str address)
{
    slot *self = user;
    (void)changed;
    if (!is_gone(self)) {
        each_face(self, take_update, &address);
    }
}

typedef struct done_url {
    bay_str server;
    json_val params;
} done_url;

static void take_done_url(face *at, void *context)
{
    const done_url *done = context;
    face_elicitation_done(at, done->server, done->params);
}

static void slot_elicited(void *user, upstream *changed, json_val params)
{
    slot *self = user;
    done_url done = {upstream_name(changed), params};
    if (!is_gone(self)) {
        each_face(self, take_done_url, &done);
    }
}

static const upstream_events slot_events = {slot_state_changed, slot_changed, slot_updated,
                                            slot_elicited};

bay_err slot_new(worker *owner, const config *settings, const config_server *server,
                 const slot_origin *origin, slot **out)
{
    slot *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->worker = owner;
    self->config = config_ref(settings);
    self->is_mirror = origin->owner != NULL;
    self->state_ms = loop_now_ms(owner->loop);
    upstream_options options = {.loop = owner->loop,
                                .http = owner->http,
                                .config = settings,
                                .server = server,
                                .events = &slot_events,
                                .user = self,
                                .engine = worker_agents_engine,
                                .engine_user = owner,
                                .told = origin->told,
                                .target = origin->target,
                                .via = str_of(owner->gateway->via)};
    bay_err err = self->is_mirror ? upstream_new_mirror(&options, origin->owner, origin->owner_loop,
                                                        &self->upstream)
                                  : upstream_new(&options, &self->upstream);
    if (err != BAY_OK) {
        config_free(self->config);
        mem_free(self);
        return err;
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_init(&self->fetches[kind], self->upstream, kind, slot_fetched, self);
    }
    freshness_init(&self->freshness, owner->loop, slot_reads, self);
    *out = self;
    return BAY_OK;
}

void slot_free(slot *self)
{
    freshness_stop(&self->freshness);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_fini(&self->fetches[kind]);
    }
    face_free(self->face);
    upstream_free(self->upstream);
    config_free(self->config);
    mem_free(self);
}

/* Something is known of it: its lists, or that it fails. */
bool slot_is_learned(const slot *self)
{
    if (upstream_is_down(self->upstream)) {
        return true;
    }
    return upstream_is_settled(self->upstream) && self->fetched == (1u << LISTING_KINDS) - 1;
}

void worker_settle(worker *self)
{
    gateway *owner = self->gateway;
    for (size_t i = 0; i < self->slot_count; i++) {
        if (self->slots[i]->face != NULL) {
            face_settle(self->slots[i]->face);
        }
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        face_settle(self->profiles[i]);
    }
    face_settle(self->all);
    self->is_settled = true;
    if (self->index == 0 && !owner->is_told) {
        owner->is_told = true;
        owner->is_list_due = gateway_count_servers(owner).starting > 0;
        gateway_tell(owner, "started");
    }
}

void worker_check_settled(worker *self)
{
    bool all_learned = true;
    bool all_awake = true;
    for (size_t i = 0; i < self->slot_count; i++) {
        const upstream *server = self->slots[i]->upstream;
        bool is_asleep = upstream_is_asleep(server); /* who is not started yet delays nobody */
        bool is_learned = is_asleep || slot_is_learned(self->slots[i]);
        bool is_lazy = upstream_config(server)->start == CONFIG_START_LAZY;
        all_learned = all_learned && is_learned;
        all_awake = all_awake && (is_learned || !is_lazy);
        if (is_learned && self->slots[i]->face != NULL) {
            face_settle(self->slots[i]->face);
        }
        if (is_learned && !is_asleep && self->slots[i]->face != NULL) {
            face_awake(self->slots[i]->face);
        }
    }
    for (size_t i = 0; all_awake && i < self->profile_count; i++) {
        face_awake(self->profiles[i]);
    }
    if (all_awake) {
        face_awake(self->all);
    }
    if (all_learned && !self->is_settled) {
        worker_settle(self);
    }
    if (all_learned && self->index == 0 && self->gateway->is_list_due) {
        self->gateway->is_list_due = false;
        gateway_tell(self->gateway, "listed");
    }
}

/* ---- leaving: a retired slot waits for its last calls, then closes ------------------------------
 */

static void slot_closed(void *user)
{
    slot *self = user;
    gateway *owner = self->worker->gateway;
    bool was_mirror = self->is_mirror;
    list_remove(&self->link);
    slot_free(self);
    if (was_mirror) {
        reload_mirror_left(owner);
    }
}

void worker_retire_step(void *argument)
{
    worker *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    LIST_EACH(at, &self->retired)
    {
        slot *leaving = CONTAINER_OF(at, slot, link);
        bool is_idle = upstream_open_calls(leaving->upstream) == 0;
        if (!leaving->is_closing && (is_idle || now >= leaving->retired_until_ms)) {
            leaving->is_closing = true;
            upstream_close(leaving->upstream, slot_closed, leaving);
        }
    }
    if (!list_is_empty(&self->retired)) {
        /* without memory the next slot to retire, or the end, goes on with it */
        err_ignore(loop_timer_start(self->loop, &self->retire, RETIRE_STEP_MS));
    }
}

void slot_retire(slot *self)
{
    worker *owner = self->worker;
    self->is_leaving = true;
    freshness_stop(&self->freshness);
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

static bay_err set_own_face(worker *self, slot *of, const catalog_source *source)
{
    bay_err err = BAY_OK;
    if (of->face == NULL) {
        face_options options = {.config = self->config,
                                .only = upstream_name(of->upstream),
                                .worker = self->index,
                                .loop = self->loop,
                                .ring = self->ring,
                                .sessions = self->sessions,
                                .tasks = &task_ops,
                                .door = &self->door};
        err = face_new(&options, &of->face);
    }
    return err == BAY_OK ? face_set_sources(of->face, self->config, source, 1) : err;
}

void slot_replan(slot *self)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        const listing_fetch *fetch = &self->fetches[kind];
        if ((self->fetched & 1u << kind) != 0 && !fetch->is_under_way) {
            freshness_facts facts = facts_of(self, fetch);
            freshness_replan(&self->freshness, kind, &facts);
        }
    }
}

bay_err worker_set_slots(worker *self, slot **slots, size_t count)
{
    self->slots = slots;
    self->slot_count = count;
    catalog_source *sources = mem_array(count + 1, sizeof(*sources));
    if (sources == NULL) {
        /* no face may go on showing what is about to leave */
        face_forget_sources(self->all, self->config);
        for (size_t i = 0; i < self->profile_count; i++) {
            face_forget_sources(self->profiles[i], self->config);
        }
        for (size_t i = 0; i < count; i++) {
            if (slots[i]->face != NULL) {
                face_forget_sources(slots[i]->face, self->config);
            }
        }
        return BAY_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sources[i] = source_of(slots[i]);
    }
    bay_err err = face_set_sources(self->all, self->config, sources, count);
    for (size_t i = 0; i < count; i++) {
        bay_err slot_err = set_own_face(self, slots[i], &sources[i]);
        err = err == BAY_OK ? slot_err : err;
    }
    bay_err profile_err = worker_set_profiles(self, sources, count);
    mem_free(sources);
    return err == BAY_OK ? profile_err : err;
}

uint32_t worker_of_server(const gateway *self, bay_str name)
{
    return (uint32_t)(str_hash(name, 1) % self->worker_count);
}
