/* The life of a remote agent: its parts, its card once it has come, its links. */
#include "agents/remote_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/capture.h"
#include "wire/uri.h"

enum { INTERFACES = 16, SCRATCH_BYTES = 64 << 20, KEYS_MS = 1000 /* to read a file */ };

/* ---- making ---------------------------------------------------------------------------------- */

static bay_err load_keys(agents_remote *self, bay_diag *diag)
{
    bay_str file = self->settings->verify.keys_file;
    if (file.len == 0) {
        return BAY_OK;
    }
    buf text;
    bay_diag why = {0};
    buf_init(&text, JOSE_KEYSET_BYTES);
    const char *fault = capture_file_into(file.at, KEYS_MS, &text);
    bay_err err = fault == NULL ? jose_keys_new(buf_view(&text), &self->keys, &why)
                                : diag_set(&why, BAY_ERR_IO, "%s", fault);
    buf_fini(&text);
    return err == BAY_OK || err == BAY_ERR_NOMEM
               ? err
               : diag_set(diag, BAY_ERR_INVALID,
                          "agents.%.*s.verify.keys: %.*s is no key set: %.100s",
                          BAY_STR(self->settings->name), BAY_STR(file),
                          why.text[0] != '\0' ? why.text : bay_err_text(err));
}

static bay_err make_client(agents_remote *self, bay_diag *diag)
{
    const agents_settings *settings = self->settings;
    bay_err err = agents_address_filter_init(&self->address_filter, settings, diag);
    tls_options options = {.certificate_file = settings->tls_certificate,
                           .key_file = settings->tls_key,
                           .ca_file = settings->tls_ca};
    if (err == BAY_OK && tls_client_has_own(&options)) {
        err = tls_client_new(&options, &self->tls, diag);
    }
    http_client_options client = {.limits = http_client_default_limits,
                                  .tls = self->tls,
                                  .permit = agents_address_filter_permit,
                                  .permit_user = &self->address_filter};
    client.limits.connect_timeout_ms = settings->connect_ms;
    client.limits.connections_per_origin = settings->connections;
    err = err == BAY_OK ? http_client_new(self->loop, &client, &self->http) : err;
    if (err == BAY_OK && settings->verify.jku_count > 0) {
        client.permit = agents_address_filter_permit_keys;
        err = http_client_new(self->loop, &client, &self->key_http);
    }
    return err;
}

static void connection_free(remote_connection *self)
{
    list_remove(&self->link);
    a2a_link_free(self->to);
    mem_free(self);
}

/* Not inside an event of the link. */
static void sweep_lines(void *argument)
{
    agents_remote *self = argument;
    LIST_EACH(at, &self->old_lines)
    {
        remote_connection *connection = CONTAINER_OF(at, remote_connection, link);
        if (connection->calls == 0) {
            connection_free(connection);
        }
    }
}

bay_err agents_remote_new(loop *on, const agents_settings *settings, const agents_public *public,
                          agents_aliases *aliases, agents_remote **out, bay_diag *diag)
{
    agents_remote *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->service = remote_service;
    self->loop = on;
    self->settings = settings;
    self->public = public;
    self->aliases = aliases;
    self->sweep = (loop_task){.function = sweep_lines, .argument = self};
    circuit_init(&self->circuit, &settings->circuit);
    list_init(&self->watches);
    list_init(&self->old_lines);
    list_init(&self->waiting);
    list_init(&self->calls);
    http_document_init(&self->fetch, on);
    buf_init(&self->url, 16 << 10);
    buf_init(&self->candidate, AGENTS_CARD_BYTES);
    arena_init(&self->candidate_memory, SCRATCH_BYTES);
    arena_init(&self->scratch, SCRATCH_BYTES);
    bay_err err = load_keys(self, diag);
    err = err == BAY_OK ? make_client(self, diag) : err;
    if (err != BAY_OK) {
        agents_remote_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void agents_remote_free(agents_remote *self)
{
    if (self == NULL) {
        return;
    }
    http_document_fini(&self->fetch);
    agents_proxy_fail_all(self);
    loop_undefer(self->loop, &self->sweep);
    if (self->connection != NULL) {
        connection_free(self->connection);
    }
    LIST_EACH(at, &self->old_lines)
    {
        connection_free(CONTAINER_OF(at, remote_connection, link));
    }
    LIST_EACH(at, &self->watches)
    {
        list_remove(at);
    }
    agents_card_free(self->card);
    jose_keys_free(self->keys);
    http_client_free(self->http);
    http_client_free(self->key_http);
    agents_address_filter_fini(&self->address_filter);
    tls_free(self->tls);
    buf_fini(&self->url);
    buf_fini(&self->candidate);
    arena_fini(&self->candidate_memory);
    arena_fini(&self->scratch);
    mem_free(self);
}

/* ---- links ----------------------------------------------------------------------------------- */

void remote_connection_drop(agents_remote *self, remote_connection *connection)
{
    if (--connection->calls == 0 && connection != self->connection) {
        loop_defer(self->loop, &self->sweep);
    }
}

/* Of one host with what was configured. */
static bool remote_is_own_host(const agents_remote *self, bay_str url)
{
    uri own, other;
    if (uri_parse(&own, self->settings->url) != BAY_OK) {
        return false;
    }
    if (uri_parse(&other, url) != BAY_OK || !other.has_authority) {
        /* of gRPC: host:port */
        return uri_authority_parse(&other, url) == BAY_OK && str_eq_nocase(own.host, other.host) &&
               (!str_eq_nocase(own.scheme, STR("https")) || other.port == 443);
    }
    return str_eq_nocase(own.host, other.host) &&
           (!str_eq_nocase(own.scheme, STR("https")) ||
            str_eq_nocase(other.scheme, STR("https"))); /* never from TLS to clear text */
}

static bool is_family(a2a_version a, a2a_version b)
{
    bool is_middle_a = a == A2A_0_2 || a == A2A_0_3;
    bool is_middle_b = b == A2A_0_2 || b == A2A_0_3;
    return a == b || (is_middle_a && is_middle_b);
}

/* What the configuration asks for; then what it asks for, at an address whose version the card
 * misjudges. */
static bool suits(const agents_settings *settings, a2a_interface *at, bool is_second_look)
{
    if (settings->has_binding && at->binding != settings->binding) {
        return false;
    }
    if (!settings->has_version || is_family(at->version, settings->version)) {
        return !is_second_look;
    }
    at->version = settings->version;
    return is_second_look;
}

static bool is_same_interface(const a2a_interface *a, const a2a_interface *b)
{
    return str_eq(a->url, b->url) && str_eq(a->tenant, b->tenant) && a->binding == b->binding &&
           a->version == b->version;
}

static bay_err make_connection(agents_remote *self, const a2a_interface *at,
                               remote_connection **out)
{
    a2a_link_limits limits = a2a_link_default_limits;
    limits.timeout_ms = self->settings->timeout_ms;
    limits.idle_ms = self->settings->stream_idle_ms;
    limits.answer_bytes = self->settings->answer_bytes;
    remote_connection *connection = mem_zalloc(sizeof(*connection));
    if (connection == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = a2a_link_new(self->loop, self->http, at, &limits, &connection->to);
    if (err != BAY_OK) {
        mem_free(connection);
        return err;
    }
    connection->is_ours = remote_is_own_host(self, at->url);
    if (!connection->is_ours &&
        (self->settings->field_count > 0 || self->settings->authority != NULL ||
         self->settings->authority_of != NULL)) {
        LOG(LOG_WARN, "agents",
            "the card of \"%.*s\" leads to another host, which does not get its credentials",
            BAY_STR(self->settings->name));
    }
    *out = connection;
    return BAY_OK;
}

/* One of this very gateway, whose agents could then be made of each other without end. */
static bool is_our_own(const agents_public *public, const a2a_interface *at)
{
    if (at->binding == A2A_GRPC) {
        return public->grpc.len > 0 && str_eq(at->url, public->grpc);
    }
    return str_starts(at->url, public->base) &&
           str_starts(str_from(at->url, public->base.len), STR("/a2a/"));
}

/* The first interface that suits and that this build can speak. */
static bay_err choose(agents_remote *self, json_val card, remote_connection **out,
                      const char **out_why)
{
    a2a_interface found[INTERFACES];
    size_t count = 0;
    a2a_fault fault = {0};
    *out_why = "its card has no interface that suits";
    arena_reset(&self->scratch);
    bay_err err = a2a_interfaces_of(card, &self->scratch, found, INTERFACES, &count, &fault);
    if (err != BAY_OK) {
        return err;
    }
    for (int look = 0; look < 2; look++) {
        for (size_t i = 0; i < count; i++) {
            a2a_interface at = found[i];
            if (!suits(self->settings, &at, look > 0)) {
                continue;
            }
            if (is_our_own(self->public, &at)) {
                *out_why = "its card leads back to this gateway";
                continue;
            }
            if (self->connection != NULL &&
                is_same_interface(a2a_link_interface(self->connection->to), &at)) {
                *out = self->connection;
                return BAY_OK;
            }
            err = make_connection(self, &at, out);
            if (err == BAY_OK || err == BAY_ERR_NOMEM) {
                return err;
            }
        }
    }
    return BAY_ERR_VERSION;
}

/* Deliveries to webhooks of 0.2 and 0.3 are the same. */
bay_err remote_connection_of(agents_remote *self, a2a_version version, remote_connection **out)
{
    a2a_interface found[INTERFACES];
    size_t count = 0;
    a2a_fault fault = {0};
    *out = NULL;
    if (is_family(a2a_link_interface(self->connection->to)->version, version)) {
        *out = self->connection;
        return BAY_OK;
    }
    arena_reset(&self->scratch);
    bay_err err = a2a_interfaces_of(agents_card_source(self->card), &self->scratch, found,
                                    INTERFACES, &count, &fault);
    for (size_t i = 0; err == BAY_OK && *out == NULL && i < count; i++) {
        if (!is_family(found[i].version, version) || !suits(self->settings, &found[i], false) ||
            is_our_own(self->public, &found[i])) {
            continue;
        }
        err = make_connection(self, &found[i], out);
        if (err == BAY_OK) {
            list_push(&self->old_lines, &(*out)->link);
        }
        err = err == BAY_ERR_NOMEM ? err : BAY_OK; /* the next one, perhaps */
    }
    return err;
}

/* Callers whose webhooks the agent, or the gateway for it, can tell. */
static bay_err find_webhook_forms(agents_remote *self, json_val card, unsigned *out)
{
    a2a_interface found[INTERFACES];
    size_t count = 0;
    unsigned told = 0;
    a2a_fault fault;
    if (agents_proxy_has_webhooks(self)) {
        *out = AGENTS_WEBHOOKS_ALL;
        return BAY_OK;
    }
    arena_reset(&self->scratch);
    bay_err err = a2a_interfaces_of(card, &self->scratch, found, INTERFACES, &count, &fault);
    for (size_t i = 0; i < count; i++) {
        if (suits(self->settings, &found[i], false) && !is_our_own(self->public, &found[i])) {
            told |= is_family(found[i].version, A2A_1_0)   ? AGENTS_WEBHOOKS_NOW
                    : is_family(found[i].version, A2A_0_3) ? AGENTS_WEBHOOKS_OLDER
                                                           : 0;
        }
    }
    *out = told;
    return err;
}

bool remote_tells(const agents_remote *self, a2a_version version)
{
    return (self->told & (version == A2A_1_0 ? AGENTS_WEBHOOKS_NOW : AGENTS_WEBHOOKS_OLDER)) != 0;
}

/* ---- the card -------------------------------------------------------------------------------- */

bay_err remote_take_card(agents_remote *self, json_val source, bool is_verified,
                         const char **out_why)
{
    agents_card *card = NULL;
    remote_connection *connection = NULL;
    *out_why = "its card cannot be shown";
    unsigned told = 0;
    bay_err err = find_webhook_forms(self, source, &told);
    if (err == BAY_OK) {
        err = agents_card_new(self->settings->name, source, self->public, told, &card);
    }
    if (err == BAY_OK) {
        err = choose(self, agents_card_source(card), &connection, out_why);
    }
    if (err != BAY_OK) {
        agents_card_free(card);
        return err;
    }
    remote_connection *old = self->connection;
    self->connection = connection;
    if (old != NULL && old != connection) {
        list_push(&self->old_lines, &old->link);
        loop_defer(self->loop, &self->sweep);
    }
    agents_card_free(self->card);
    self->card = card;
    self->is_verified = is_verified;
    self->told = told;
    return BAY_OK;
}

void remote_tell_watches(agents_remote *self)
{
    LIST_EACH(at, &self->watches)
    {
        agents_watch *watch = CONTAINER_OF(at, agents_watch, link);
        watch->told(watch->user);
    }
}

void agents_remote_watch(agents_remote *self, agents_watch *watch)
{
    list_push(&self->watches, &watch->link);
}

void agents_remote_unwatch(agents_watch *watch)
{
    list_remove(&watch->link);
}

bool agents_remote_learn(agents_remote *self)
{
    bool is_fresh = self->card != NULL && loop_now_ms(self->loop) < self->fresh_until_ms;
    if (!is_fresh && !self->is_learning &&
        circuit_may_start(&self->circuit, loop_now_ms(self->loop))) {
        remote_card_try(self);
    }
    return self->is_learning;
}

/* ---- reaching it ----------------------------------------------------------------------------- */

void remote_reached(agents_remote *self)
{
    if (self->circuit.state == CIRCUIT_TRIAL) {
        LOG(LOG_INFO, "agents", "agent \"%.*s\" answers again", BAY_STR(self->settings->name));
    }
    if (self->circuit.state == CIRCUIT_TRIAL) {
        circuit_succeeded(&self->circuit);
        circuit_proved(&self->circuit);
    } else if (self->circuit.state == CIRCUIT_CLOSED) {
        self->circuit.count = 0; /* it counts those in a row: one of many is no sign */
    }
}

void remote_missed(agents_remote *self)
{
    if (circuit_crashed(&self->circuit, loop_now_ms(self->loop))) {
        LOG(LOG_WARN, "agents", "agent \"%.*s\" cannot be reached; its calls fail for a while",
            BAY_STR(self->settings->name));
    }
}

/* ---- what is said of it ---------------------------------------------------------------------- */

a2a_service *agents_remote_service(agents_remote *self)
{
    return &self->service;
}

uint32_t *agents_remote_looks(agents_remote *self)
{
    return &self->looks;
}

void agents_remote_set_webhook_receiver(agents_remote *self,
                                        const agents_webhook_receiver *receiver)
{
    self->receiver = receiver;
}

void agents_remote_set_owners(agents_remote *self, agents_owned *owned,
                              const seal_ring *const *ring)
{
    self->owned = owned;
    self->ring = ring;
}

agents_owned *agents_remote_owned(const agents_remote *self)
{
    return self->owned;
}

const agents_settings *agents_remote_settings(const agents_remote *self)
{
    return self->settings;
}

agents_card *agents_remote_card(agents_remote *self)
{
    return self->card;
}

size_t agents_remote_calls(const agents_remote *self)
{
    return self->call_count + self->waiting_count;
}

agents_remote_state agents_remote_state_of(const agents_remote *self)
{
    static const char *const circuits[] = {
        [CIRCUIT_CLOSED] = "closed", [CIRCUIT_OPEN] = "open", [CIRCUIT_TRIAL] = "trial"};
    agents_remote_state state = {
        .state = self->circuit.state != CIRCUIT_CLOSED ? "open"
                 : self->card != NULL                  ? "ready"
                 : self->has_failed                    ? "failed"
                                                       : "unknown",
        .error = self->error,
        .circuit = circuits[self->circuit.state],
        .is_verified = self->is_verified,
        .has_interface = self->connection != NULL,
        .calls = agents_remote_calls(self),
    };
    if (self->connection != NULL) {
        state.version = a2a_link_interface(self->connection->to)->version;
        state.binding = a2a_link_interface(self->connection->to)->binding;
    }
    return state;
}
