#include "agents/agents.h"

#include "agents/loop_call.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "call/target.h"
#include "front/http_reply.h"

enum { RETIRE_STEP_MS = 50, INDEX_BYTES = 4 << 20, MOST_CARD_WAITS = 1000 };

#define PREFIX "/a2a/"

/* One agent. Exactly one of `remote` and `made` is there. */
typedef struct agent {
    a2a_service elsewhere; /* first; of a made one whose tasks are on another loop */
    list_link link;        /* in agents.retired */
    agents *of;
    bay_str name;
    agents_entry entry;
    agents_remote *remote;
    agents_tool_agent *made;
    agents_skills *skills; /* of a remote one; NULL: nobody has asked */
    agents_watch watch;
    call_target *target;
    list card_waits; /* exchanges that wait for its card */
    uint64_t retired_until_ms;
} agent;

/* An exchange that asked for a card which is not there yet. */
typedef struct card_wait {
    const http_owner_ops *owner; /* first */
    list_link link;
    agents *of;
    http_exchange *exchange;
    bay_str rest; /* of its path: which card */
} card_wait;

struct agents {
    agents_options options;
    a2a_http_router *router;
    agent **items;
    size_t count;
    size_t card_wait_count;
    list retired;
    loop_timer retire;
    loop_mailbox *port;
    loop_mailbox **peers; /* of all loops; NULL: there is this one alone */
    size_t peer_count;
    agents_loop_calls loop_calls;
    agents_webhook_receiver receiver;
};

/* ---- one agent ------------------------------------------------------------------------------- */

/* Where the tasks of a made agent are: one loop, whichever a call arrives on. */
static loop_mailbox *home_of(const agent *self)
{
    const agents *of = self->of;
    return of->peer_count > 0 ? of->peers[str_hash(self->name, 1) % of->peer_count] : of->port;
}

/* On this very loop. */
static a2a_service *own_service(void *home, bay_str name);

static void elsewhere_call(a2a_service *service, a2a_call *call)
{
    agent *self = CONTAINER_OF(service, agent, elsewhere);
    agents_loop_call_begin(&self->of->loop_calls, home_of(self), self->name, own_service, call);
}

static void elsewhere_gone(a2a_service *service, a2a_call *call)
{
    (void)service;
    agents_loop_call_gone(call);
}

static void elsewhere_drained(a2a_service *service, a2a_call *call)
{
    (void)service;
    agents_loop_call_drained(call);
}

static a2a_service *service_of(agent *self)
{
    if (self->remote != NULL) {
        return agents_remote_service(self->remote);
    }
    return home_of(self) == self->of->port ? agents_tool_agent_service(self->made)
                                           : &self->elsewhere;
}

static agents_card *card_of(const agent *self)
{
    return self->remote != NULL ? agents_remote_card(self->remote)
                                : agents_tool_agent_card(self->made);
}

static bool learn(const agent *self)
{
    return self->remote != NULL ? agents_remote_learn(self->remote)
                                : agents_tool_agent_learn(self->made);
}

static size_t calls_of(const agent *self)
{
    return self->remote != NULL ? agents_remote_calls(self->remote)
                                : agents_tool_agent_calls(self->made);
}

static void reply_json(http_exchange *exchange, int status, bay_str body)
{
    static const http_field fields[] = {
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Cache-Control"), STR_INIT("no-cache")},
    };
    http_exchange_reply(exchange, status, fields, ARRAY_LEN(fields), body);
}

static void reply_no_card(http_exchange *exchange)
{
    reply_json(exchange, 502, STR("{\"error\":\"the agent's card cannot be had just now\"}"));
}

static void agents_forget(card_wait *self)
{
    list_remove(&self->link);
    self->of->card_wait_count--;
    http_exchange_set_user(self->exchange, NULL);
    mem_free(self);
}

static void show(agent *self, a2a_http_agent *out);

static void told(void *user)
{
    agent *self = user;
    list_link *at;
    while ((at = list_first(&self->card_waits)) != NULL) {
        card_wait *waiting = CONTAINER_OF(at, card_wait, link);
        http_exchange *exchange = waiting->exchange;
        bay_str rest = waiting->rest;
        a2a_http_agent shown;
        agents_forget(waiting);
        show(self, &shown);
        if (card_of(self) == NULL || !a2a_http_router_serve_card(exchange, &shown, rest)) {
            reply_no_card(exchange);
        }
    }
}

static void agent_free(agent *self)
{
    agents_remote_unwatch(&self->watch);
    list_link *at;
    while ((at = list_first(&self->card_waits)) != NULL) {
        card_wait *waiting = CONTAINER_OF(at, card_wait, link);
        http_exchange *exchange = waiting->exchange;
        agents_forget(waiting);
        reply_no_card(exchange);
    }
    agents_skills_free(self->skills);
    agents_remote_free(self->remote);
    agents_tool_agent_free(self->made);
    call_target_unref(self->target);
    self->entry.release(self->entry.hold);
    mem_free(self);
}

/* Whichever service a call is given to, it passes the door once: on the loop on which it came. */
static bay_err set_door(agent *self)
{
    a2a_service *all[] = {
        &self->elsewhere,
        self->remote != NULL ? agents_remote_service(self->remote)
                             : agents_tool_agent_service(self->made),
    };
    bay_err err = call_target_new(self->name, 0, &self->target);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        all[i]->door = self->of->options.door;
        all[i]->target = self->target;
    }
    return err;
}

static bay_err agent_new(agents *of, const agents_entry *entry, agent **out, bay_diag *diag)
{
    agent *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        entry->release(entry->hold);
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->of = of;
    self->entry = *entry;
    self->name = entry->settings->name;
    self->watch = (agents_watch){.told = told, .user = self};
    self->elsewhere =
        (a2a_service){.call = elsewhere_call, .gone = elsewhere_gone, .drained = elsewhere_drained};
    list_init(&self->card_waits);
    bay_err err;
    if (entry->settings->tools != NULL) {
        err = agents_tool_agent_new(of->options.loop, &of->options.tools, entry->settings,
                                    entry->public, &self->made, diag);
    } else {
        err = agents_remote_new(of->options.loop, entry->settings, entry->public,
                                of->options.aliases, &self->remote, diag);
    }
    if (err == BAY_OK && set_door(self) != BAY_OK) {
        err = diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    if (err != BAY_OK) {
        agent_free(self);
        return err;
    }
    agents_owners *owners = of->options.owners;
    if (self->remote != NULL && owners != NULL) {
        agents_owned *owned = agents_owners_of(owners, self->name);
        if (owned == NULL) { /* never without: callers would not be kept apart */
            agent_free(self);
            return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
        }
        agents_remote_set_owners(self->remote, owned, of->options.ring);
    }
    if (self->remote != NULL) {
        agents_remote_set_webhook_receiver(self->remote, &of->receiver);
        agents_remote_watch(self->remote, &self->watch);
    } else {
        agents_tool_agent_watch(self->made, &self->watch);
    }
    *out = self;
    return BAY_OK;
}

static agent *find(const agents *self, bay_str name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (str_eq(self->items[i]->name, name)) {
            return self->items[i];
        }
    }
    return NULL;
}

static a2a_service *own_service(void *home, bay_str name)
{
    const agent *found = find(home, name);
    return found != NULL && found->made != NULL ? agents_tool_agent_service(found->made) : NULL;
}

/* ---- what the front hands over --------------------------------------------------------------- */

static void show(agent *self, a2a_http_agent *out)
{
    *out = (a2a_http_agent){
        .service = service_of(self),
        .is_hybrid_default = self->entry.public->is_hybrid_default,
        .card_max_age_s = self->entry.public->card_max_age_s,
    };
    const agents_card *card = card_of(self);
    if (card != NULL) {
        agents_card_show(card, out);
    }
}

static const policy_origin *origin_of(void *user, http_exchange *exchange)
{
    const agents *self = user;
    return self->options.origin != NULL ? self->options.origin(self->options.origin_user, exchange)
                                        : NULL;
}

/* Who looks for agents, and from where: as a call, which only rules read. */
static call_context look_of(agents *self, http_exchange *exchange, const auth_principal *principal)
{
    return (call_context){
        .door = self->options.door, .principal = principal, .origin = origin_of(self, exchange)};
}

/* By the function that admits its calls. */
static bool is_seen(const agent *one, const call_context *by)
{
    policy_name about = {.kind = POLICY_AGENT, .server = one->name, .name = one->name};
    return call_shows(by, &about, STR("SendMessage")) != POLICY_HIDDEN;
}

static bool agent_of_tenant(void *user, bay_str tenant, http_exchange *exchange,
                            const auth_principal *principal, a2a_http_agent *out)
{
    agents *self = user;
    agent *found = find(self, tenant);
    if (found == NULL && tenant.len == 0 && self->count == 1) {
        found = self->items[0]; /* whoever names none can mean no other */
    }
    call_context look = look_of(self, exchange, principal);
    if (found == NULL || !is_seen(found, &look)) {
        return false;
    }
    show(found, out);
    return true;
}

static void card_wait_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)exchange;
    (void)is_complete;
    agents_forget(user);
}

static void card_wait_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static const http_owner_ops card_wait_owner = {card_wait_closed, card_wait_drained};

/* The card is on its way; the exchange waits for it. */
static void park(agents *self, agent *for_whom, http_exchange *exchange, bay_str rest)
{
    card_wait *made = self->card_wait_count < MOST_CARD_WAITS ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        reply_no_card(exchange);
        return;
    }
    *made = (card_wait){.owner = &card_wait_owner, .of = self, .exchange = exchange, .rest = rest};
    list_push(&for_whom->card_waits, &made->link);
    self->card_wait_count++;
    http_exchange_set_user(exchange, made);
}

static bool is_read(http_exchange *exchange)
{
    bay_str verb = http_exchange_method(exchange);
    return str_eq(verb, STR("GET")) || str_eq(verb, STR("HEAD"));
}

static void refuse_verb(http_exchange *exchange)
{
    static const http_field allow = {STR_INIT("Allow"), STR_INIT("GET, HEAD")};
    http_exchange_reply(exchange, 405, &allow, 1, (bay_str){NULL, 0});
}

static void write_index(const agents *self, const call_context *look, json_writer *out)
{
    json_open_object(out);
    json_key_lit(out, "agents");
    json_open_array(out);
    for (size_t i = 0; i < self->count; i++) {
        const agent *at = self->items[i];
        const agents_card *card = card_of(at);
        buf url;
        if (!is_seen(at, look)) {
            continue;
        }
        buf_init(&url, 16 << 10);
        buf_str(&url, at->entry.public->base);
        buf_lit(&url, PREFIX);
        buf_str(&url, at->name);
        json_open_object(out);
        json_key_lit(out, "id");
        json_put_str(out, at->name);
        if (card != NULL) {
            static const bay_str shown[] = {STR_INIT("name"), STR_INIT("description"),
                                            STR_INIT("version")};
            for (size_t k = 0; k < ARRAY_LEN(shown); k++) {
                json_val value = json_get(agents_card_source(card), shown[k]);
                if (json_is(value, JSON_STRING)) {
                    json_key(out, shown[k]);
                    json_put_val(out, value);
                }
            }
        }
        json_key_lit(out, "url");
        json_put_str(out, buf_view(&url));
        buf_lit(&url, "/.well-known/agent-card.json");
        json_key_lit(out, "card");
        json_put_str(out, buf_view(&url));
        json_close_object(out);
        buf_fini(&url);
    }
    json_close_array(out);
    json_close_object(out);
}

static void reply_index(const agents *self, http_exchange *exchange, const call_context *look)
{
    buf text;
    json_writer writer;
    buf_init(&text, INDEX_BYTES);
    json_writer_init(&writer, &text);
    write_index(self, look, &writer);
    reply_json(exchange, text.err == BAY_OK ? 200 : 503, buf_view(&text));
    buf_fini(&text);
}

static bool sees_any(const agents *self, const call_context *look)
{
    for (size_t i = 0; i < self->count; i++) {
        if (is_seen(self->items[i], look)) {
            return true;
        }
    }
    return false;
}

bool agents_serve_index(agents *self, http_exchange *exchange, const auth_principal *principal)
{
    call_context look = look_of(self, exchange, principal);
    if (!sees_any(self, &look)) {
        return false;
    }
    if (!is_read(exchange)) {
        refuse_verb(exchange);
    } else {
        reply_index(self, exchange, &look);
    }
    return true;
}

bool agents_serve_keys(agents *self, http_exchange *exchange)
{
    const jose_key *key = self->count > 0 ? self->items[0]->entry.public->key : NULL;
    if (self->count > 0 && !is_read(exchange)) {
        refuse_verb(exchange);
        return true;
    }
    if (key == NULL) {
        return false;
    }
    buf text;
    buf_init(&text, JOSE_KEYSET_BYTES);
    bay_err err = jose_key_public(key, &text);
    reply_json(exchange, err == BAY_OK ? 200 : 503, buf_view(&text));
    buf_fini(&text);
    return true;
}

static agents_webhook_receiver *receiver_of(void *home)
{
    return &((agents *)home)->receiver;
}

bool agents_serve_webhook(agents *self, http_exchange *exchange, bay_str name, bay_str sealed)
{
    agent *found = find(self, name);
    call_context look = look_of(self, exchange, NULL);
    if (found == NULL ||
        (!is_seen(found, &look) && !agents_webhook_receiver_knows(&self->receiver, name, sealed))) {
        return false;
    }
    if (found->remote != NULL) {
        agents_webhook_receiver_take(&self->receiver, receiver_of, found->remote, sealed, exchange);
    } else {
        a2a_http_router_serve_nothing(exchange);
    }
    return true;
}

bool agents_serve_card(agents *self, http_exchange *exchange, bay_str name, bay_str rest)
{
    agent *found = find(self, name);
    call_context look = look_of(self, exchange, NULL);
    if (found == NULL || !is_seen(found, &look)) {
        return false;
    }
    bool is_coming = is_read(exchange) && learn(found); /* whoever looks at it has it refreshed */
    if (is_read(exchange) && card_of(found) == NULL) {
        if (is_coming) {
            park(self, found, exchange, rest);
        } else {
            reply_no_card(exchange);
        }
        return true;
    }
    a2a_http_agent shown;
    show(found, &shown);
    return a2a_http_router_serve_card(exchange, &shown, rest);
}

bool agents_serve(agents *self, http_exchange *exchange, bay_str name, bay_str rest,
                  const auth_principal *principal)
{
    agent *found = find(self, name);
    call_context look = look_of(self, exchange, principal);
    if (found == NULL || !is_seen(found, &look)) {
        return false;
    }
    a2a_http_agent shown;
    show(found, &shown);
    a2a_http_router_serve(self->router, exchange, &shown, rest, principal);
    return true;
}

bool agents_serve_grpc(agents *self, http_exchange *exchange, const auth_principal *principal)
{
    return self->count > 0 && a2a_http_router_serve_grpc(self->router, exchange, principal);
}

void agents_refuse(agents *self, http_exchange *exchange, bay_str rest,
                   const front_refusal *refusal)
{
    a2a_http_router_refuse(self->router, exchange, rest, refusal);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void retire_step(void *argument)
{
    agents *self = argument;
    uint64_t now = loop_now_ms(self->options.loop);
    LIST_EACH(at, &self->retired)
    {
        agent *leaving = CONTAINER_OF(at, agent, link);
        if (calls_of(leaving) == 0 || now >= leaving->retired_until_ms) {
            list_remove(&leaving->link);
            agent_free(leaving);
        }
    }
    if (!list_is_empty(&self->retired)) {
        /* without memory the next agent to retire, or the end, goes on with it */
        err_ignore(loop_timer_start(self->options.loop, &self->retire, RETIRE_STEP_MS));
    }
}

static void retire(agents *self, agent *leaving)
{
    leaving->retired_until_ms = loop_now_ms(self->options.loop) + 1 + self->options.drain_ms;
    list_push(&self->retired, &leaving->link);
    if (loop_timer_start(self->options.loop, &self->retire, RETIRE_STEP_MS) != BAY_OK) {
        list_remove(&leaving->link); /* no clock: it leaves now */
        agent_free(leaving);
    }
}

bay_err agents_new(const agents_options *options, agents **out)
{
    agents *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->options = *options;
    list_init(&self->retired);
    loop_timer_init(&self->retire, retire_step, self);
    a2a_http_router_options router = {
        .keep_alive_ms = options->keep_alive_ms,
        .inbound = {.is_lenient = options->is_lenient},
        .agent = agent_of_tenant,
        .origin = origin_of,
        .user = self,
    };
    bay_err err = loop_mailbox_new(options->loop, self, &self->port);
    agents_loop_calls_init(&self->loop_calls, self->port);
    self->receiver = (agents_webhook_receiver){.loop = options->loop,
                                               .port = self->port,
                                               .ring = options->ring,
                                               .aliases = options->aliases};
    err = err == BAY_OK ? a2a_http_router_new(options->loop, &router, &self->router) : err;
    if (err != BAY_OK) {
        agents_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void forget_peers(agents *self)
{
    for (size_t i = 0; i < self->peer_count; i++) {
        loop_mailbox_unref(self->peers[i]);
    }
    mem_free(self->peers);
    self->peers = NULL;
    self->peer_count = 0;
}

void agents_free(agents *self)
{
    if (self == NULL) {
        return;
    }
    loop_timer_stop(self->options.loop, &self->retire);
    if (self->router != NULL) {
        a2a_http_router_free(self->router);
    }
    agents_loop_calls_end(&self->loop_calls);
    if (self->port != NULL) {
        loop_mailbox_close(self->port);
    }
    LIST_EACH(at, &self->retired)
    {
        agent *leaving = CONTAINER_OF(at, agent, link);
        list_remove(at);
        agent_free(leaving);
    }
    for (size_t i = 0; i < self->count; i++) {
        agent_free(self->items[i]);
    }
    if (self->port != NULL) {
        loop_mailbox_unref(self->port);
    }
    forget_peers(self);
    mem_free(self->items);
    mem_free(self);
}

bay_err agents_set_peers(agents *self, agents *const *all, size_t count)
{
    forget_peers(self);
    self->peers = mem_array(count, sizeof(loop_mailbox *));
    if (self->peers == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        self->peers[i] = loop_mailbox_ref(all[i]->port);
    }
    self->peer_count = count;
    return BAY_OK;
}

void agents_set_push_queue(agents *self, agents_push_queue *post)
{
    self->receiver.post = post;
}

/* Once for all loops: when the one where it lives has agents that are elsewhere. */
static bay_err open_push_queue(agents *self, const agents_entry *entries, size_t count,
                               bay_diag *diag)
{
    agents_push_queue *post = self->receiver.post;
    for (size_t i = 0; i < count; i++) {
        const agents_public *public = entries[i].public;
        if (post != NULL && entries[i].settings->tools == NULL &&
            agents_push_queue_is_home(post, self->options.loop)) {
            return agents_push_queue_open(post, public->webhook_rules, public->webhook_rule_count,
                                          diag);
        }
    }
    return BAY_OK;
}

static bool stays(agent *const *items, size_t count, const agent *candidate)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i] == candidate) {
            return true;
        }
    }
    return false;
}

bay_err agents_set(agents *self, const agents_entry *entries, size_t count, bay_diag *diag)
{
    bay_err first = open_push_queue(self, entries, count, diag);
    agent **items = mem_array(count + 1, sizeof(agent *));
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        const agents_entry *entry = &entries[i];
        agent *kept = entry->is_kept ? find(self, entry->settings->name) : NULL;
        bay_err err = BAY_OK;
        if (items == NULL || kept != NULL) {
            entry->release(entry->hold);
            err = items == NULL ? diag_set(diag, BAY_ERR_NOMEM, "out of memory") : BAY_OK;
        }
        if (items != NULL && kept != NULL) {
            items[made++] = kept;
        } else if (items != NULL) {
            err = agent_new(self, entry, &items[made], first == BAY_OK ? diag : NULL);
            made += err == BAY_OK;
        }
        first = first == BAY_OK ? err : first;
    }
    if (items == NULL) {
        return first == BAY_OK ? BAY_ERR_NOMEM : first; /* those that are there stay */
    }
    agent **old = self->items;
    size_t old_count = self->count;
    self->items = items;
    self->count = made;
    for (size_t i = 0; i < old_count; i++) {
        if (!stays(items, made, old[i])) {
            retire(self, old[i]);
        }
    }
    mem_free(old);
    return first;
}

void agents_end_streams(agents *self, principal_test is_over, void *user)
{
    a2a_http_router_end_streams(self->router, is_over, user);
}

void agents_close_streams(agents *self)
{
    a2a_http_router_close_streams(self->router);
}

mcp_server *agents_skills_of(agents *self, bay_str name)
{
    agent *found = find(self, name);
    if (found == NULL || found->remote == NULL) {
        return NULL;
    }
    if (found->skills == NULL &&
        agents_skills_new(self->options.loop, found->remote, &found->skills) != BAY_OK) {
        return NULL;
    }
    return agents_skills_engine(found->skills);
}

size_t agents_count(const agents *self)
{
    return self->count;
}

bay_str agents_name(const agents *self, size_t index)
{
    return self->items[index]->name;
}

static void put_text(json_writer *out, bay_str key, const char *text)
{
    json_key(out, key);
    json_put_str(out, str_of(text));
}

static void write_remote(const agents_remote *remote, bool has_errors, json_writer *out)
{
    agents_remote_state state = agents_remote_state_of(remote);
    put_text(out, STR("state"), state.state);
    put_text(out, STR("circuit"), state.circuit);
    if (has_errors && state.error[0] != '\0') {
        put_text(out, STR("error"), state.error);
    }
    if (state.has_interface) {
        json_key_lit(out, "version");
        json_put_str(out, a2a_version_names[state.version]);
        json_key_lit(out, "binding");
        json_put_str(out, a2a_binding_names[state.binding]);
    }
    json_key_lit(out, "verified");
    json_put_bool(out, state.is_verified);
}

void agents_write_state(agents *self, bool has_errors, json_writer *out)
{
    for (size_t i = 0; i < self->count; i++) {
        const agent *at = self->items[i];
        json_open_object(out);
        json_key_lit(out, "name");
        json_put_str(out, at->name);
        if (at->remote != NULL) {
            write_remote(at->remote, has_errors, out);
        } else {
            put_text(out, STR("state"), card_of(at) != NULL ? "ready" : "unknown");
            json_key_lit(out, "skills");
            json_put_uint(out, agents_tool_agent_skills(at->made));
        }
        json_key_lit(out, "calls");
        json_put_uint(out, calls_of(at));
        json_close_object(out);
    }
}
