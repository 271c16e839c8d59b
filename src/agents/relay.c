/* Calls on their way to a remote agent: whatever they came in, they go out as the agent's card
 * wants, and what comes back is handed on event by event.
 *
 *   service.call ─► WAITING (for the card) ─► SENT ─► ended
 *                        └──────── gone, failed ─────┴────► ended
 *
 * Invariants
 * - A relayed call is in `waiting` or in `calls` from the beginning to the call's end, which frees
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
#include "json/writer.h"

enum { MOST_FIELDS = 64, OUR_FIELDS = 5 };

typedef struct relayed {
    list_link link;
    agents_remote *remote;
    a2a_call *call;
    remote_line *line; /* NULL: it waits */
    a2a_link_call *sent;
    a2a_method method;
    relay_alias alias;
    relay_owner owner;
    relay_list list; /* of ListTasks … */
    json_val asked; /* … with the params that each page of it is asked with, of the call's memory */
    bool is_list;
    bool is_older;     /* the caller wants to know which event is the last */
    bool is_told_here; /* the webhook that it registers is told by the gateway */
} relayed;

static agents_remote *remote_of(a2a_service *service)
{
    return CONTAINER_OF(service, agents_remote, service);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Takes the record apart; the call may then be ended. */
static a2a_call *release(relayed *self)
{
    agents_remote *remote = self->remote;
    a2a_call *call = self->call;
    list_remove(&self->link);
    if (self->line != NULL) {
        remote->call_count--;
        remote_line_drop(remote, self->line);
    } else {
        remote->waiting_count--;
    }
    call->user = NULL;
    relay_alias_fini(&self->alias);
    relay_owner_fini(&self->owner);
    relay_list_fini(&self->list);
    mem_free(self);
    return call;
}

static void fail_call(relayed *self, const a2a_fault *fault)
{
    a2a_fault kept = *fault;
    relay_owner_strip_fault(&self->owner, &kept);
    a2a_call_fail(release(self), &kept);
}

static void fail_with(relayed *self, a2a_error error, const char *text)
{
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, error, "agent \"%.*s\": %s",
                             BAY_STR(self->remote->settings->name), text));
    fail_call(self, &fault);
}

static void refuse(agents_remote *self, a2a_call *call, a2a_error error, const char *text)
{
    a2a_fault fault;
    err_ignore(
        a2a_fault_set(&fault, error, "agent \"%.*s\": %s", BAY_STR(self->settings->name), text));
    a2a_call_fail(call, &fault);
}

/* ---- what the agent says --------------------------------------------------------------------- */

static void heard(relayed *self)
{
    remote_reached(self->remote);
}

/* The extended card stands at the gateway's address, too. */
static void answer_card(relayed *self, bay_str json)
{
    agents_remote *remote = self->remote;
    json_doc doc;
    buf out;
    buf_init(&out, AGENTS_RENDERED_BYTES);
    arena_reset(&remote->scratch);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, &remote->scratch, NULL);
    if (err == BAY_OK) {
        err = agents_card_rewrite(remote->settings->name, json_root(&doc), remote->public,
                                  remote_tells(remote, self->call->version), &out);
    }
    if (err == BAY_OK) {
        a2a_call_result(release(self), buf_view(&out));
    } else {
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "its extended card cannot be shown");
    }
    buf_fini(&out);
}

/* Ends the call with what the agent wrote, in the caller's names. */
static void answer_json(relayed *self, bay_str json)
{
    if (self->alias.among == NULL && self->owner.mark_len == 0) {
        a2a_call_result(release(self), json);
        return;
    }
    buf renamed, stripped;
    json_doc doc;
    bay_err err = BAY_OK;
    arena *scratch = &self->remote->scratch;
    buf_init(&renamed, a2a_json_limits.max_bytes);
    buf_init(&stripped, a2a_json_limits.max_bytes);
    json = relay_owner_strip(&self->owner, json, &stripped);
    err = stripped.err;
    if (err == BAY_OK && self->alias.among != NULL) {
        arena_reset(scratch);
        err = json_parse(&doc, json, &a2a_json_limits, scratch, NULL);
        json = err == BAY_OK ? relay_alias_read(&self->alias, json_root(&doc), scratch, &renamed)
                             : json;
        err = err == BAY_OK ? renamed.err : err;
    }
    if (err == BAY_OK) {
        a2a_call_result(release(self), json);
    } else {
        fail_with(self, A2A_E_BUSY, "out of memory");
    }
    buf_fini(&renamed);
    buf_fini(&stripped);
}

/* The agent showed a task of somebody else's; what that is must not be seen. */
static void fail_foreign(relayed *self)
{
    fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "it answered with another task");
}

/* May the caller have it? Otherwise the call has ended. */
static bool admit(relayed *self, bay_str json)
{
    json_doc doc;
    arena *scratch = &self->remote->scratch;
    arena_reset(scratch);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, scratch, NULL);
    if (err != BAY_OK) {
        fail_with(self, A2A_E_BUSY, "out of memory");
        return false;
    }
    if (!relay_owner_admits(&self->owner, self->method, false, json_root(&doc), scratch)) {
        fail_foreign(self);
        return false;
    }
    return true;
}

static bay_err ask(relayed *self, a2a_fault *fault); /* below: the next page */

/* A page of tasks, of which the caller gets its own. */
static void answer_list(relayed *self, bay_str json)
{
    json_doc doc;
    bool is_done = true;
    arena *scratch = &self->remote->scratch;
    arena_reset(scratch);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, scratch, NULL);
    if (err == BAY_OK && !self->is_list) { /* the agent was open when it was asked */
        a2a_fault none;
        err = relay_list_init(&self->list, &self->owner, JSON_NONE, scratch, &none);
    }
    if (err == BAY_OK) {
        err = relay_list_take(&self->list, &self->owner, json_root(&doc), scratch, &is_done);
    }
    a2a_fault fault = {0};
    if (err == BAY_OK && !is_done && self->is_list) {
        err = ask(self, &fault);
        if (err == BAY_OK) {
            return;
        }
    }
    buf page;
    buf_init(&page, a2a_json_limits.max_bytes);
    err = err == BAY_OK ? relay_list_write(&self->list, &self->owner, &page) : err;
    if (err == BAY_OK) {
        answer_json(self, buf_view(&page));
    } else if (fault.error != A2A_NO_ERROR) {
        fail_call(self, &fault);
    } else if (err == BAY_PROTOCOL) {
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE, "its list of tasks cannot be read");
    } else {
        fail_with(self, A2A_E_BUSY, "too much at once; try again later");
    }
    buf_fini(&page);
}

/* Webhooks are shown as their callers registered them. */
static void answer_configs(relayed *self, bay_str json)
{
    buf shown;
    buf_init_secret(&shown, a2a_json_limits.max_bytes);
    bay_err err = relay_webhook_show(self->remote, json, &shown);
    if (err == BAY_OK) {
        answer_json(self, shown.len > 0 ? buf_view(&shown) : json);
    } else {
        fail_with(self, A2A_E_BUSY, "out of memory");
    }
    buf_fini(&shown);
}

static void on_result(void *user, bay_str json)
{
    relayed *self = user;
    heard(self);
    self->sent = NULL;
    if (self->method == A2A_GET_EXTENDED_CARD) {
        answer_card(self, json);
        return;
    }
    bool is_checked = relay_owner_is_on(&self->owner);
    if (is_checked && self->method == A2A_LIST_TASKS) {
        answer_list(self, json);
        return;
    }
    if (is_checked && !admit(self, json)) {
        return;
    }
    if ((a2a_methods[self->method].flags & A2A_METHOD_PUSH) != 0) {
        answer_configs(self, json);
    } else {
        answer_json(self, json);
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

/* The event in the caller's names: what the agent wrote (`out_is_same`), or another text. */
static a2a_event *make_event(relayed *self, json_val event, uint64_t event_id, bool is_last,
                             bool *out_is_same)
{
    buf renamed, stripped;
    json_doc doc;
    arena *scratch = &self->remote->scratch;
    buf_init(&renamed, a2a_json_limits.max_bytes);
    buf_init(&stripped, a2a_json_limits.max_bytes);
    bool ends = is_last || (self->is_older && ends_stream(event));
    bay_str json = relay_owner_strip(&self->owner, json_raw(event), &stripped);
    bay_err err = stripped.err;
    *out_is_same = self->alias.among == NULL && json.at != stripped.at;
    arena_reset(scratch);
    if (err == BAY_OK && self->alias.among != NULL) {
        err = json_parse(&doc, json, &a2a_json_limits, scratch, NULL);
        json = err == BAY_OK ? relay_alias_read(&self->alias, json_root(&doc), scratch, &renamed)
                             : json;
        err = err == BAY_OK ? renamed.err : err;
    }
    a2a_event *made = err == BAY_OK ? a2a_event_new(json, event_id, ends) : NULL;
    buf_fini(&renamed);
    buf_fini(&stripped);
    return made;
}

static bool admit_event(relayed *self, json_val value)
{
    arena *scratch = &self->remote->scratch;
    if (!relay_owner_is_on(&self->owner)) {
        return true;
    }
    arena_reset(scratch);
    return relay_owner_admits(&self->owner, self->method, true, value, scratch);
}

static void on_event(void *user, json_val value, uint64_t event_id, bool is_last)
{
    relayed *self = user;
    bool is_same = false;
    heard(self);
    if (!admit_event(self, value)) {
        a2a_link_cancel(self->sent);
        fail_foreign(self);
        return;
    }
    a2a_event *event = make_event(self, value, event_id, is_last, &is_same);
    if (event == NULL) {
        a2a_link_cancel(self->sent);
        fail_with(self, A2A_E_INTERNAL, "out of memory");
        return;
    }
    if (is_same) {
        a2a_event_lend(event, value);
    }
    bay_err err = a2a_call_event(self->call, event);
    a2a_event_lend(event, JSON_NONE);
    a2a_event_unref(event);
    if (err == BAY_AGAIN) {
        a2a_link_pause(self->sent);
    } else if (err != BAY_OK) {
        a2a_link_cancel(self->sent);
        a2a_call_end(release(self));
    }
}

static void on_end(void *user)
{
    relayed *self = user;
    heard(self);
    a2a_call_end(release(self));
}

static void on_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    relayed *self = user;
    /* addresses behind the gateway are the operator's affair, not the caller's */
    LOG(LOG_DEBUG, "agents", "agent \"%.*s\": a call failed: %s%s%s",
        BAY_STR(self->remote->settings->name), bay_err_text(err),
        fault != NULL && fault->text[0] != '\0' ? ": " : "", fault != NULL ? fault->text : "");
    if (err == BAY_REMOTE) {
        heard(self);
        fail_call(self, fault);
        return;
    }
    if (err == BAY_PROTOCOL || err == BAY_LIMIT) {
        heard(self);
        fail_with(self, A2A_E_INVALID_AGENT_RESPONSE,
                  fault != NULL && fault->text[0] != '\0' ? fault->text : bay_err_text(err));
        return;
    }
    if (err != BAY_CANCELLED && err != BAY_BUSY && err != BAY_NOMEM) {
        remote_missed(self->remote);
    }
    a2a_error error = err == BAY_TIMEOUT                    ? A2A_E_DEADLINE
                      : err == BAY_BUSY || err == BAY_NOMEM ? A2A_E_BUSY
                                                            : A2A_E_UNAVAILABLE;
    fail_with(self, error,
              error == A2A_E_DEADLINE ? "it did not answer in time"
              : error == A2A_E_BUSY   ? "too much at once; try again later"
              : was_sent              ? "it cannot be reached any more; it may have carried it out"
                                      : "it cannot be reached");
}

static const a2a_link_events link_events = {on_result, on_event, on_end, on_failed};

/* ---- sending --------------------------------------------------------------------------------- */

static bool knows_skill(relayed *self)
{
    bool is_send = self->method == A2A_SEND_MESSAGE || self->method == A2A_SEND_STREAMING_MESSAGE;
    json_val named = is_send ? relay_skill_of(self->call->params) : JSON_NONE;
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
static json_val webhook_of(const relayed *self)
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
static bay_err check_webhook(const relayed *self, json_val webhook, a2a_fault *fault)
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
                            "url: the webhook is at %s, which this gateway passes on to nobody",
                            address_class_text(kind));
    }
    return err;
}

/* The line it goes out on. */
static bay_err choose_line(relayed *self, remote_line **out, a2a_fault *fault)
{
    agents_remote *remote = self->remote;
    bool is_push = (a2a_methods[self->method].flags & A2A_METHOD_PUSH) != 0;
    json_val webhook = webhook_of(self);
    *out = remote->line;
    if (!is_push && !json_is(webhook, JSON_OBJECT)) {
        return BAY_OK;
    }
    bay_err err = json_is(webhook, JSON_OBJECT) ? check_webhook(self, webhook, fault) : BAY_OK;
    bool is_here = relay_has_webhooks(remote);
    *out = NULL;
    if (err == BAY_OK && !(is_here && remote->public->relays_webhooks)) {
        err = remote_line_of(remote, self->call->version, out);
    }
    if (err != BAY_OK || *out != NULL) {
        return err;
    }
    *out = remote->line;
    self->is_told_here = is_here && json_is(webhook, JSON_OBJECT);
    return json_is(webhook, JSON_OBJECT) && !is_here
               ? a2a_fault_set(fault, A2A_E_PUSH_NOT_SUPPORTED,
                               "agent \"%.*s\" sends notifications in A2A %s alone: register the "
                               "webhook in that version",
                               BAY_STR(remote->settings->name),
                               a2a_version_names[a2a_link_interface(remote->line->to)->version].at)
               : BAY_OK;
}

/* rfc 9110 section 7.6.3: who passes on a request says so, so that one that comes back is known */
static bay_str write_via(const relayed *self, buf *out)
{
    bay_str name = self->remote->public->via;
    bay_str received = a2a_call_via(self->call);
    via_seen seen = {0};
    if (name.len == 0) {
        return name;
    }
    /* the face has refused those with more; a call of another bridge has none */
    bool is_fine = via_read(&seen, received, name) == VIA_FINE;
    via_write(out, is_fine ? received : (bay_str){"", 0}, name);
    return out->err == BAY_OK ? buf_view(out) : (bay_str){"", 0};
}

static size_t put_fields(const relayed *self, char trace[RELAY_TRACE_BYTES], buf *via,
                         http_field *out)
{
    const agents_settings *settings = self->remote->settings;
    size_t count = 0;
    for (size_t i = 0; self->line->is_ours && i < settings->field_count && count < MOST_FIELDS;
         i++) {
        out[count++] = settings->fields[i];
    }
    bay_str parent = relay_child_span(self->call->traceparent, trace);
    if (parent.len > 0) {
        out[count++] = (http_field){STR("traceparent"), parent};
        bay_str state = a2a_call_tracestate(self->call);
        if (state.len > 0) {
            out[count++] = (http_field){STR("tracestate"), state};
        }
    }
    if (self->call->extensions.len > 0) {
        bool is_current = a2a_link_interface(self->line->to)->version == A2A_1_0;
        out[count++] = (http_field){is_current ? STR("A2A-Extensions") : STR("X-A2A-Extensions"),
                                    self->call->extensions};
    }
    bay_str through = write_via(self, via);
    if (through.len > 0) {
        out[count++] = (http_field){STR("Via"), through};
    }
    return count;
}

/* Which of our agents it is for says the tenant; the agent's own is written by the link. */
static bay_str without_tenant(json_val params, buf *out)
{
    static const bay_str tenant[] = {STR_INIT("tenant")};
    if (json_is(json_get(params, tenant[0]), JSON_MISSING)) {
        return json_raw(params);
    }
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_put_members(&writer, params, tenant, ARRAY_LEN(tenant));
    json_close_object(&writer);
    return buf_view(out);
}

/* The params in the agent's names, in the call's memory where they are others. */
static bay_err rename_params(relayed *self, json_val *params, a2a_fault *fault)
{
    a2a_call *call = self->call;
    bay_err err = BAY_OK;
    if (self->alias.among != NULL) {
        buf text;
        bay_str kept;
        json_doc *doc = arena_alloc(call->memory, sizeof(*doc));
        buf_init(&text, a2a_json_limits.max_bytes);
        relay_alias_write(&self->alias, self->method, *params, &text);
        err = doc == NULL ? BAY_NOMEM : text.err;
        err = err == BAY_OK ? arena_dup(call->memory, buf_view(&text), &kept) : err;
        err = err == BAY_OK ? json_parse(doc, kept, &a2a_json_limits, call->memory, NULL) : err;
        buf_fini(&text);
        if (err != BAY_OK) {
            return err;
        }
        *params = json_root(doc);
    }
    bool is_namer =
        call->version == A2A_0_1 && a2a_link_interface(self->line->to)->version == A2A_0_1;
    err = relay_owner_write(&self->owner, self->method, is_namer, *params, call->memory, params,
                            fault);
    if (err == BAY_OK && self->method == A2A_LIST_TASKS && self->owner.mark_len > 0) {
        self->is_list = true;
        err = relay_list_init(&self->list, &self->owner, *params, call->memory, fault);
    }
    return err;
}

/* Sends what is in `asked`. */
static bay_err ask(relayed *self, a2a_fault *fault)
{
    http_field fields[MOST_FIELDS + OUR_FIELDS];
    char trace[RELAY_TRACE_BYTES];
    json_doc doc;
    json_val asked = self->asked;
    buf page, params, via;
    buf_init(&page, a2a_json_limits.max_bytes);
    buf_init(&params, a2a_json_limits.max_bytes);
    buf_init(&via, 2 * VIA_BYTES);
    bay_err err = BAY_OK;
    if (self->is_list) {
        arena_reset(&self->remote->scratch);
        relay_list_ask(&self->list, asked, &page);
        err = page.err;
        err = err == BAY_OK ? json_parse(&doc, buf_view(&page), &a2a_json_limits,
                                         &self->remote->scratch, NULL)
                            : err;
        asked = err == BAY_OK ? json_root(&doc) : asked;
    }
    if (err == BAY_OK) {
        a2a_link_request request = {
            .method = self->method,
            .params = without_tenant(asked, &params),
            .fields = fields,
            .field_count = put_fields(self, trace, &via, fields),
            .last_event_id = self->call->last_event_id,
        };
        err = params.err != BAY_OK ? params.err : via.err;
        err = err == BAY_OK
                  ? a2a_link_start(self->line->to, &request, &link_events, self, &self->sent, fault)
                  : err;
    }
    buf_fini(&page);
    buf_fini(&params);
    buf_fini(&via);
    return err;
}

static bool has_streams(const agents_remote *self)
{
    json_val capabilities = json_get(agents_card_source(self->card), STR("capabilities"));
    return json_true(json_get(capabilities, STR("streaming")));
}

/* The agent is known: `self` is in `calls` from now on, or ended. */
static void begin(relayed *self)
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
    remote_line *line = NULL;
    bay_err err = choose_line(self, &line, &fault);
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
    self->line = line;
    self->line->calls++;
    if (self->call->version != A2A_1_0 && a2a_link_interface(self->line->to)->version != A2A_0_1) {
        relay_alias_init(&self->alias, remote->aliases, remote->settings->name, self->call);
    }
    self->asked = self->call->params;
    err = relay_owner_init(&self->owner, remote->owned, remote->ring, remote->settings->name,
                           self->call->principal);
    if (err == BAY_OK && self->is_told_here) {
        err = relay_webhook_wrap(remote, self->call, webhook_of(self), &self->alias,
                                 a2a_link_interface(line->to), &self->asked, &fault);
    }
    err = err == BAY_OK ? rename_params(self, &self->asked, &fault) : err;
    err = err == BAY_OK ? ask(self, &fault) : err;
    if (err == BAY_OK) {
        return;
    }
    if (fault.error != A2A_NO_ERROR) {
        fail_call(self, &fault);
    } else {
        fail_with(self, err == BAY_BUSY || err == BAY_NOMEM ? A2A_E_BUSY : A2A_E_INTERNAL,
                  bay_err_text(err));
    }
}

static void on_call(a2a_service *service, a2a_call *call)
{
    agents_remote *self = remote_of(service);
    uint64_t now = loop_now_ms(self->loop);
    if (self->circuit.state == CIRCUIT_OPEN && !circuit_may_start(&self->circuit, now)) {
        refuse(self, call, A2A_E_UNAVAILABLE,
               "it could not be reached and is left alone for a moment");
        return;
    }
    relayed *made = self->waiting_count < AGENTS_WAITING ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        refuse(self, call, A2A_E_BUSY, "too many calls wait for it; try again later");
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
    if (self->line == NULL || self->circuit.state != CIRCUIT_CLOSED) {
        remote_card_try(self); /* by which the agent shows that it is there */
        return;
    }
    begin(made);
    if (is_old) {
        remote_card_try(self);
    }
}

static void on_gone(a2a_service *service, a2a_call *call)
{
    relayed *made = call->user;
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
    const relayed *made = call->user;
    (void)service;
    if (made != NULL && made->sent != NULL) {
        a2a_link_resume(made->sent);
    }
}

const a2a_service remote_service = {.call = on_call, .gone = on_gone, .drained = on_drained};

/* ---- all of them ----------------------------------------------------------------------------- */

void relay_begin_waiting(agents_remote *self)
{
    list_link *at;
    size_t count = self->waiting_count; /* those that come meanwhile begin by themselves */
    while (count-- > 0 && (at = list_first(&self->waiting)) != NULL) {
        begin(CONTAINER_OF(at, relayed, link));
    }
}

void relay_fail_waiting(agents_remote *self, a2a_error error, const char *text)
{
    list_link *at;
    size_t count = self->waiting_count;
    while (count-- > 0 && (at = list_first(&self->waiting)) != NULL) {
        fail_with(CONTAINER_OF(at, relayed, link), error, text);
    }
}

void relay_fail_all(agents_remote *self)
{
    list_link *at;
    relay_fail_waiting(self, A2A_E_UNAVAILABLE, "it leaves the gateway");
    while ((at = list_first(&self->calls)) != NULL) {
        relayed *made = CONTAINER_OF(at, relayed, link);
        if (made->sent != NULL) {
            a2a_link_cancel(made->sent);
        }
        fail_with(made, A2A_E_UNAVAILABLE, "it leaves the gateway");
    }
}
