/* Calls on their way to a remote agent: whatever they came in, they go out as the agent's card
 * wants, and what comes back is handed on event by event.
 *
 *   service.call ─► WAITING (for the card) ─► SENT ─► ended
 *                        └──────── gone, failed ─────┴────► ended
 *
 * Invariants
 * - A proxy_call call is in `waiting` or in `calls` from the beginning to the call's end, which
 * frees
 *   it; nothing of the call is touched afterwards.
 * - A caller that reads slowly pauses its own call upstream and nothing else. */
#include <stdio.h>
#include <string.h>

#include "a2a/push.h"
#include "agents/remote_parts.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/via.h"
#include "json/build.h"

enum {
    MOST_FIELDS = 64,
    OUR_FIELDS = 5,
    RELAY_MEMORY_BYTES = 256 << 20, /* of one answer or event in the caller's names */
};

typedef struct proxy_call {
    list_link link;
    agents_remote *remote;
    a2a_call *call;
    remote_connection *connection; /* NULL: it waits */
    a2a_link_call *sent;
    a2a_method method;
    agents_proxy_alias alias;
    agents_proxy_owner owner;
    agents_proxy_list list; /* of ListTasks … */
    json_val asked; /* … with the params that each page of it is asked with, of the call's memory */
    bool is_list;
    bool is_older;       /* the caller wants to know which event is the last */
    bool is_pushed_here; /* the webhook that it registers is told by the gateway */
} proxy_call;

static agents_remote *remote_of(a2a_service *service)
{
    return CONTAINER_OF(service, agents_remote, service);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Takes the record apart; the call may then be ended. */
static a2a_call *release(proxy_call *self)
{
    agents_remote *remote = self->remote;
    a2a_call *call = self->call;
    list_remove(&self->link);
    if (self->connection != NULL) {
        remote->call_count--;
        remote_connection_drop(remote, self->connection);
    } else {
        remote->waiting_count--;
    }
    call->user = NULL;
    agents_proxy_alias_fini(&self->alias);
    agents_proxy_owner_fini(&self->owner);
    agents_proxy_list_fini(&self->list);
    mem_free(self);
    return call;
}

static void fail_call(proxy_call *self, const a2a_fault *fault)
{
    a2a_fault kept = *fault;
    agents_proxy_owner_strip_fault(&self->owner, &kept);
    a2a_call_fail(release(self), &kept);
}

static void fail_with(proxy_call *self, a2a_error error, const char *text)
{
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, error, "agent \"%.*s\": %s",
                             BAY_STR(self->remote->settings->name), text));
    fail_call(self, &fault);
}

static void proxy_refuse(agents_remote *self, a2a_call *call, a2a_error error, const char *text)
{
    a2a_fault fault;
    err_ignore(
        a2a_fault_set(&fault, error, "agent \"%.*s\": %s", BAY_STR(self->settings->name), text));
    a2a_call_fail(call, &fault);
}

/* ---- what the agent says --------------------------------------------------------------------- */

static void heard(proxy_call *self)
{
    remote_reached(self->remote);
}

/* The extended card stands at the gateway's address, too. */
static void answer_card(proxy_call *self, json_val card)
{
    agents_remote *remote = self->remote;
    json_builder made;
    json_val shown;
    agents_card_rewrite(remote->settings->name, card, remote->public,
                        remote_tells(remote, self->call->version),
                        json_builder_init(&made, NULL, AGENTS_RENDERED_BYTES));
    if (json_builder_view(&made, &shown) == BAY_OK) {
        a2a_call_result_val(release(self), shown);
    } else {
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "its extended card cannot be shown");
    }
    json_builder_drop(&made);
}

/* What the agent wrote in the caller's names: itself where nothing has to change, else in `memory`.
 */
static bay_err in_callers_names(const proxy_call *self, json_val value, arena *memory,
                                json_val *out)
{
    bay_err err = agents_proxy_owner_strip_val(&self->owner, value, memory, &value);
    return err == BAY_OK ? agents_proxy_alias_read(&self->alias, value, memory, out) : err;
}

/* Ends the call with it. */
static void answer_val(proxy_call *self, json_val value)
{
    arena memory;
    arena_init(&memory, RELAY_MEMORY_BYTES);
    if (in_callers_names(self, value, &memory, &value) == BAY_OK) {
        a2a_call_result_val(release(self), value);
    } else {
        fail_with(self, A2A_E_BUSY, "out of memory");
    }
    arena_fini(&memory);
}

/* The agent showed a task of somebody else's; what that is must not be seen. */
static void fail_foreign(proxy_call *self)
{
    fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "it answered with another task");
}

/* May the caller have it? Otherwise the call has ended. */
static bool admit(proxy_call *self, json_val value)
{
    arena *scratch = &self->remote->scratch;
    arena_reset(scratch);
    if (!agents_proxy_owner_admits(&self->owner, self->method, false, value, scratch)) {
        fail_foreign(self);
        return false;
    }
    return true;
}

static bay_err proxy_ask(proxy_call *self, a2a_fault *fault); /* below: the next page */

/* A page of tasks, of which the caller gets its own. */
static void answer_list(proxy_call *self, json_val answer)
{
    bool is_done = true;
    arena *scratch = &self->remote->scratch;
    arena_reset(scratch);
    bay_err err = BAY_OK;
    if (!self->is_list) { /* the agent was open when it was asked */
        a2a_fault none;
        err = agents_proxy_list_init(&self->list, &self->owner, JSON_NONE, scratch, &none);
    }
    if (err == BAY_OK) {
        err = agents_proxy_list_take(&self->list, &self->owner, answer, scratch, &is_done);
    }
    a2a_fault fault = {0};
    if (err == BAY_OK && !is_done && self->is_list) {
        err = proxy_ask(self, &fault);
        if (err == BAY_OK) {
            return;
        }
    }
    json_builder made;
    json_val page;
    json_writer *to = json_builder_init(&made, NULL, a2a_json_limits.max_bytes);
    err = err == BAY_OK ? agents_proxy_list_write(&self->list, &self->owner, to) : err;
    err = err == BAY_OK ? json_builder_view(&made, &page) : err;
    if (err == BAY_OK) {
        answer_val(self, page);
    } else if (fault.error != A2A_NO_ERROR) {
        fail_call(self, &fault);
    } else if (err == BAY_ERR_PROTOCOL) {
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "its list of tasks cannot be read");
    } else {
        fail_with(self, A2A_E_BUSY, "too much at once; try again later");
    }
    json_builder_drop(&made);
}

/* Webhooks are shown as their callers registered them. */
static void answer_configs(proxy_call *self, json_val answer)
{
    json_builder made;
    json_val shown = answer;
    json_writer *to = json_builder_init_secret(&made, NULL, a2a_json_limits.max_bytes);
    bay_err err = agents_proxy_webhook_show(self->remote, answer, to);
    if (err == BAY_OK && made.text.len > 0) {
        err = json_builder_view(&made, &shown);
    }
    if (err == BAY_OK) {
        answer_val(self, shown);
    } else {
        fail_with(self, A2A_E_BUSY, "out of memory");
    }
    json_builder_drop(&made);
}

/* Before the call ends at its door, which may be another loop's: loop_call.c tells it. */
static void label(const proxy_call *self, json_val value)
{
    const a2a_service *service = &self->remote->service;
    self->call->context.labels |= call_door_label(service->door, service->target, value);
}

static void on_result(void *user, json_val result)
{
    proxy_call *self = user;
    heard(self);
    self->sent = NULL;
    if (self->method == A2A_GET_EXTENDED_CARD) {
        answer_card(self, result);
        return;
    }
    label(self, result);
    bool is_checked = agents_proxy_owner_is_on(&self->owner);
    if (is_checked && self->method == A2A_LIST_TASKS) {
        answer_list(self, result);
        return;
    }
    if (is_checked && !admit(self, result)) {
        return;
    }
    if ((a2a_methods[self->method].flags & A2A_METHOD_PUSH) != 0) {
        answer_configs(self, result);
    } else {
        answer_val(self, result);
    }
}

/* Older forms say by `final` that a stream ends; 1.0 leaves it to the state. */
static bool ends_stream(json_val event)
{
    json_val of = json_get(event, STR("statusUpdate"));
    of = json_is(of, JSON_OBJECT) ? of : json_get(event, STR("task"));
    bay_str name;
    if (!json_str_plain(json_get(json_get(of, STR("status")), STR("state")), &name)) {
        return json_is(json_get(event, STR("message")), JSON_OBJECT);
    }
    a2a_state state = a2a_state_of(name);
    return a2a_state_is_terminal(state) || state == A2A_INPUT_REQUIRED;
}

/* In the caller's names; the value is lent to it until its receiver has it. */
static a2a_event *make_event(proxy_call *self, json_val event, uint64_t event_id, bool is_last,
                             arena *memory)
{
    bool ends = is_last || (self->is_older && ends_stream(event));
    if (in_callers_names(self, event, memory, &event) != BAY_OK) {
        return NULL;
    }
    a2a_event *made = a2a_event_new(json_raw(event), event_id, ends);
    if (made != NULL) {
        a2a_event_lend(made, event);
    }
    return made;
}

static bool admit_event(proxy_call *self, json_val value)
{
    arena *scratch = &self->remote->scratch;
    if (!agents_proxy_owner_is_on(&self->owner)) {
        return true;
    }
    arena_reset(scratch);
    return agents_proxy_owner_admits(&self->owner, self->method, true, value, scratch);
}

static void on_event(void *user, json_val value, uint64_t event_id, bool is_last)
{
    proxy_call *self = user;
    arena memory;
    heard(self);
    if (!admit_event(self, value)) {
        a2a_link_cancel(self->sent);
        fail_foreign(self);
        return;
    }
    label(self, value);
    arena_init(&memory, RELAY_MEMORY_BYTES);
    a2a_event *event = make_event(self, value, event_id, is_last, &memory);
    if (event == NULL) {
        arena_fini(&memory);
        a2a_link_cancel(self->sent);
        fail_with(self, A2A_E_INTERNAL, "out of memory");
        return;
    }
    bay_err err = a2a_call_event(self->call, event);
    a2a_event_lend(event, JSON_NONE);
    a2a_event_unref(event);
    arena_fini(&memory);
    if (err == BAY_ERR_AGAIN) {
        a2a_link_pause(self->sent);
    } else if (err != BAY_OK) {
        a2a_link_cancel(self->sent);
        a2a_call_end(release(self));
    }
}

static void proxy_on_end(void *user)
{
    proxy_call *self = user;
    heard(self);
    a2a_call_end(release(self));
}

/* Its 401 is about the gateway's credentials: to the caller it would say that his own are bad. */
static void fail_login(proxy_call *self)
{
    const agents_settings *settings = self->remote->settings;
    char text[A2A_FAULT_BYTES];
    buf page = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_lit(&page, "auth_expired: you have no login there: log in at ");
    bool has_page = settings->login_page != NULL &&
                    settings->login_page(settings->login_user, settings->name, &page);
    buf_lit(&page, " and send it again");
    buf_char(&page, '\0');
    fail_with(
        self, A2A_E_UNAVAILABLE,
        has_page && page.err == BAY_OK
            ? text
            : "auth_expired: the credentials that the gateway has for it are missing, expired "
              "or not accepted; its operator has to renew them");
}

static void on_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    proxy_call *self = user;
    /* addresses behind the gateway are the operator's affair, not the caller's */
    LOG(LOG_DEBUG, "agents", "agent \"%.*s\": a call failed: %s%s%s",
        BAY_STR(self->remote->settings->name), bay_err_text(err),
        fault != NULL && fault->text[0] != '\0' ? ": " : "", fault != NULL ? fault->text : "");
    if (err == BAY_ERR_DENIED || (fault != NULL && fault->error == A2A_E_UNAUTHENTICATED)) {
        heard(self);
        fail_login(self);
        return;
    }
    if (err == BAY_ERR_REMOTE) {
        heard(self);
        fail_call(self, fault);
        return;
    }
    if (err == BAY_ERR_PROTOCOL || err == BAY_ERR_LIMIT) {
        heard(self);
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE,
                  fault != NULL && fault->text[0] != '\0' ? fault->text : bay_err_text(err));
        return;
    }
    if (err != BAY_ERR_CANCELLED && err != BAY_ERR_BUSY && err != BAY_ERR_NOMEM) {
        remote_missed(self->remote);
    }
    a2a_error error = err == BAY_ERR_TIMEOUT                        ? A2A_E_DEADLINE
                      : err == BAY_ERR_BUSY || err == BAY_ERR_NOMEM ? A2A_E_BUSY
                                                                    : A2A_E_UNAVAILABLE;
    fail_with(self, error,
              error == A2A_E_DEADLINE ? "it did not answer in time"
              : error == A2A_E_BUSY   ? "too much at once; try again later"
              : was_sent              ? "it cannot be reached any more; it may have carried it out"
                                      : "it cannot be reached");
}

static const a2a_link_events link_events = {on_result, on_event, proxy_on_end, on_failed};

/* ---- sending --------------------------------------------------------------------------------- */

static bool knows_skill(proxy_call *self)
{
    bool is_send = self->method == A2A_SEND_MESSAGE || self->method == A2A_SEND_STREAMING_MESSAGE;
    json_val named = is_send ? agents_proxy_skill_of(self->call->params) : JSON_NONE;
    bay_str id;
    if (!json_is(named, JSON_STRING)) {
        return true;
    }
    arena_reset(&self->remote->scratch);
    if (json_str(named, &self->remote->scratch, &id) == BAY_OK &&
        json_is(agents_card_skill(self->remote->card, id), JSON_OBJECT)) {
        return true;
    }
    a2a_fault fault;
    char text[A2A_FAULT_BYTES];
    buf shown = {.at = text, .cap = sizeof(text) - 1, .max = sizeof(text) - 1};
    agents_card_write_skills(self->remote->card, &shown);
    text[shown.len] = '\0';
    err_ignore(a2a_fault_set(&fault, A2A_E_INVALID_PARAMS,
                             "agent \"%.*s\" has no skill of that name; it has: %s",
                             BAY_STR(self->remote->settings->name), text));
    fail_call(self, &fault);
    return false;
}

/* The webhook that the call registers; JSON_NONE: none. */
static json_val webhook_of(const proxy_call *self)
{
    if (self->method == A2A_CREATE_PUSH_CONFIG) {
        return self->call->params;
    }
    bool is_send = self->method == A2A_SEND_MESSAGE || self->method == A2A_SEND_STREAMING_MESSAGE;
    return is_send ? json_get(json_get(self->call->params, STR("configuration")),
                              STR("taskPushNotificationConfig"))
                   : JSON_NONE;
}

/* The agent posts to it for somebody it does not know, so the gateway looks at where that is. */
static bay_err check_webhook(const proxy_call *self, json_val webhook, a2a_fault *fault)
{
    agents_remote *remote = self->remote;
    bay_str url = {"", 0};
    address_class kind;
    arena_reset(&remote->scratch);
    bay_err err = a2a_push_config_check(webhook, fault);
    if (err == BAY_OK) {
        err = json_str(json_get(webhook, STR("url")), &remote->scratch, &url);
    }
    if (err == BAY_OK && !address_rules_permit_url(remote->public->webhooks, url, &kind)) {
        err = a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                            "url: the host is %s; this gateway accepts such webhooks only if "
                            "a2a.webhooks lists them",
                            address_class_text(kind));
    }
    return err;
}

/* The connection it goes out on. */
static bay_err choose_connection(proxy_call *self, remote_connection **out, a2a_fault *fault)
{
    agents_remote *remote = self->remote;
    bool is_push = (a2a_methods[self->method].flags & A2A_METHOD_PUSH) != 0;
    json_val webhook = webhook_of(self);
    *out = remote->connection;
    if (!is_push && !json_is(webhook, JSON_OBJECT)) {
        return BAY_OK;
    }
    bay_err err = json_is(webhook, JSON_OBJECT) ? check_webhook(self, webhook, fault) : BAY_OK;
    bool is_here = agents_proxy_has_webhooks(remote);
    *out = NULL;
    if (err == BAY_OK && !(is_here && remote->public->relays_webhooks)) {
        err = remote_connection_of(remote, self->call->version, out);
    }
    if (err != BAY_OK || *out != NULL) {
        return err;
    }
    *out = remote->connection;
    self->is_pushed_here = is_here && json_is(webhook, JSON_OBJECT);
    return json_is(webhook, JSON_OBJECT) && !is_here
               ? a2a_fault_set(
                     fault, A2A_E_PUSH_NOT_SUPPORTED,
                     "agent \"%.*s\" sends notifications in A2A %s alone: register the "
                     "webhook in that version",
                     BAY_STR(remote->settings->name),
                     a2a_version_names[a2a_link_interface(remote->connection->to)->version].at)
               : BAY_OK;
}

/* rfc 9110 section 7.6.3: who passes on a request says so, so that one that comes back is known */
static bay_str write_via(const proxy_call *self, buf *out)
{
    bay_str name = self->remote->public->via;
    bay_str received = a2a_call_via(self->call);
    via_seen seen = {0};
    if (name.len == 0) {
        return name;
    }
    /* the router has refused those with more; a call of another bridge has none */
    bool is_fine = via_read(&seen, received, name) == VIA_FINE;
    via_write(out, is_fine ? received : (bay_str){"", 0}, name);
    return out->err == BAY_OK ? buf_view(out) : (bay_str){"", 0};
}

static size_t put_fields(const proxy_call *self, char trace[PROXY_TRACE_BYTES], buf *via,
                         http_field *out)
{
    const agents_settings *settings = self->remote->settings;
    size_t count = 0;
    for (size_t i = 0;
         self->connection->is_ours && i < settings->field_count && count < MOST_FIELDS; i++) {
        out[count++] = settings->fields[i];
    }
    bay_str parent = agents_proxy_child_span(self->call->traceparent, trace);
    if (parent.len > 0) {
        out[count++] = (http_field){STR("traceparent"), parent};
        bay_str state = a2a_call_tracestate(self->call);
        if (state.len > 0) {
            out[count++] = (http_field){STR("tracestate"), state};
        }
    }
    if (self->call->extensions.len > 0) {
        bool is_current = a2a_link_interface(self->connection->to)->version == A2A_1_0;
        out[count++] = (http_field){is_current ? STR("A2A-Extensions") : STR("X-A2A-Extensions"),
                                    self->call->extensions};
    }
    bay_str through = write_via(self, via);
    if (through.len > 0) {
        out[count++] = (http_field){STR("Via"), through};
    }
    return count;
}

/* The params in the agent's names, in the call's memory where they are others. */
static bay_err rename_params(proxy_call *self, json_val *params, a2a_fault *fault)
{
    a2a_call *call = self->call;
    bay_err err = BAY_OK;
    if (self->alias.among != NULL) {
        err = agents_proxy_alias_write(&self->alias, self->method, *params, call->memory, params);
        if (err != BAY_OK) {
            return err;
        }
    }
    bool is_namer =
        call->version == A2A_0_1 && a2a_link_interface(self->connection->to)->version == A2A_0_1;
    err = agents_proxy_owner_write(&self->owner, self->method, is_namer, *params, call->memory,
                                   params, fault);
    if (err == BAY_OK && self->method == A2A_LIST_TASKS && self->owner.mark_len > 0) {
        self->is_list = true;
        err = agents_proxy_list_init(&self->list, &self->owner, *params, call->memory, fault);
    }
    return err;
}

/* Another host than the configured one sees no credentials. */
static http_authority *authority_of(const proxy_call *self)
{
    const agents_settings *settings = self->remote->settings;
    return self->connection->is_ours && settings->authority_of != NULL
               ? settings->authority_of(settings->authority_user, self->call->principal)
               : NULL;
}

/* Sends what is in `asked`. */
static bay_err proxy_ask(proxy_call *self, a2a_fault *fault)
{
    http_field fields[MOST_FIELDS + OUR_FIELDS];
    char trace[PROXY_TRACE_BYTES];
    json_val asked = self->asked;
    json_builder page;
    buf via;
    json_writer *to = json_builder_init(&page, NULL, a2a_json_limits.max_bytes);
    buf_init(&via, 2 * VIA_BYTES);
    bay_err err = BAY_OK;
    if (self->is_list) {
        agents_proxy_list_ask(&self->list, asked, to);
        err = json_builder_view(&page, &asked);
    }
    if (err == BAY_OK) {
        a2a_link_request request = {
            .method = self->method,
            .params = asked, /* the link leaves out which of our agents it is for */
            .fields = fields,
            .field_count = put_fields(self, trace, &via, fields),
            .authority = authority_of(self),
            .last_event_id = self->call->last_event_id,
        };
        err = via.err;
        err = err == BAY_OK ? a2a_link_start(self->connection->to, &request, &link_events, self,
                                             &self->sent, fault)
                            : err;
    }
    json_builder_drop(&page);
    buf_fini(&via);
    return err;
}

static bool has_streams(const agents_remote *self)
{
    json_val capabilities = json_get(agents_card_source(self->card), STR("capabilities"));
    return json_true(json_get(capabilities, STR("streaming")));
}

/* The agent is known: `self` is in `calls` from now on, or ended. */
static void proxy_begin(proxy_call *self)
{
    agents_remote *remote = self->remote;
    if (!knows_skill(self)) {
        return;
    }
    if (self->method == A2A_SEND_STREAMING_MESSAGE && self->call->takes_result &&
        !has_streams(remote)) {
        self->method = A2A_SEND_MESSAGE;
    }
    a2a_fault fault = {0};
    remote_connection *connection = NULL;
    bay_err err = choose_connection(self, &connection, &fault);
    if (err != BAY_OK) {
        if (fault.error != A2A_NO_ERROR) {
            fail_call(self, &fault);
        } else {
            fail_with(self, A2A_E_BUSY, "out of memory");
        }
        return;
    }
    list_remove(&self->link);
    list_push(&remote->calls, &self->link);
    remote->waiting_count--;
    remote->call_count++;
    self->connection = connection;
    self->connection->calls++;
    if (self->call->version != A2A_1_0 &&
        a2a_link_interface(self->connection->to)->version != A2A_0_1) {
        agents_proxy_alias_init(&self->alias, remote->aliases, remote->settings->name, self->call);
    }
    self->asked = self->call->params;
    err = agents_proxy_owner_init(&self->owner, remote->owned, remote->ring, remote->settings->name,
                                  self->call->principal);
    if (err == BAY_OK && self->is_pushed_here) {
        err = agents_proxy_webhook_wrap(remote, self->call, webhook_of(self), &self->alias,
                                        a2a_link_interface(connection->to), &self->asked, &fault);
    }
    err = err == BAY_OK ? rename_params(self, &self->asked, &fault) : err;
    err = err == BAY_OK ? proxy_ask(self, &fault) : err;
    if (err == BAY_OK) {
        return;
    }
    if (fault.error != A2A_NO_ERROR) {
        fail_call(self, &fault);
    } else {
        fail_with(self, err == BAY_ERR_BUSY || err == BAY_ERR_NOMEM ? A2A_E_BUSY : A2A_E_INTERNAL,
                  bay_err_text(err));
    }
}

static void on_call(a2a_service *service, a2a_call *call)
{
    agents_remote *self = remote_of(service);
    uint64_t now = loop_now_ms(self->loop);
    if (self->circuit.state == CIRCUIT_OPEN && !circuit_may_start(&self->circuit, now)) {
        proxy_refuse(self, call, A2A_E_UNAVAILABLE,
                     "it could not be reached and is left alone for a moment");
        return;
    }
    proxy_call *made = self->waiting_count < AGENTS_WAITING ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        proxy_refuse(self, call, A2A_E_BUSY, "too many calls wait for it; try again later");
        return;
    }
    made->remote = self;
    made->call = call;
    made->method = call->method;
    made->is_older = call->version != A2A_1_0;
    call->user = made;
    list_push(&self->waiting, &made->link);
    self->waiting_count++;
    bool is_old = now >= self->fresh_until_ms;
    if (self->connection == NULL || self->circuit.state != CIRCUIT_CLOSED) {
        remote_card_try(self); /* by which the agent shows that it is there */
        return;
    }
    proxy_begin(made);
    if (is_old) {
        remote_card_try(self);
    }
}

static void on_gone(a2a_service *service, a2a_call *call)
{
    proxy_call *made = call->user;
    (void)service;
    if (made != NULL) {
        if (made->sent != NULL) {
            a2a_link_cancel(made->sent);
        }
        fail_with(made, A2A_E_UNAVAILABLE, "the caller has left");
    }
}

static void on_drained(a2a_service *service, a2a_call *call)
{
    const proxy_call *made = call->user;
    (void)service;
    if (made != NULL && made->sent != NULL) {
        a2a_link_resume(made->sent);
    }
}

const a2a_service remote_service = {.call = on_call, .gone = on_gone, .drained = on_drained};

/* ---- all of them ----------------------------------------------------------------------------- */

void agents_proxy_begin_waiting(agents_remote *self)
{
    list_link *at;
    size_t count = self->waiting_count; /* those that come meanwhile begin by themselves */
    while (count-- > 0 && (at = list_first(&self->waiting)) != NULL) {
        proxy_begin(CONTAINER_OF(at, proxy_call, link));
    }
}

void agents_proxy_fail_waiting(agents_remote *self, a2a_error error, const char *text)
{
    list_link *at;
    size_t count = self->waiting_count;
    while (count-- > 0 && (at = list_first(&self->waiting)) != NULL) {
        fail_with(CONTAINER_OF(at, proxy_call, link), error, text);
    }
}

void agents_proxy_fail_all(agents_remote *self)
{
    list_link *at;
    agents_proxy_fail_waiting(self, A2A_E_UNAVAILABLE, "it leaves the gateway");
    while ((at = list_first(&self->calls)) != NULL) {
        proxy_call *made = CONTAINER_OF(at, proxy_call, link);
        if (made->sent != NULL) {
            a2a_link_cancel(made->sent);
        }
        fail_with(made, A2A_E_UNAVAILABLE, "it leaves the gateway");
    }
}
