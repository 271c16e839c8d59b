/* What every upstream is, whoever owns its link: a name, a state, what it can do. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "upstream/parts.h"
#include "upstream/told.h"

bay_err upstream_init(upstream *self, const upstream_ops *ops, const upstream_options *options)
{
    self->ops = ops;
    self->loop = options->loop;
    self->config = options->config;
    self->server = options->server;
    self->events = options->events;
    self->user = options->user;
    self->engine = options->engine;
    self->engine_user = options->engine_user;
    self->via = options->via;
    self->name = mem_dup(options->server->name.at, options->server->name.len);
    list_init(&self->proxies);
    buf_init(&self->instructions, UPSTREAM_INSTRUCTIONS_BYTES);
    if (self->name == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = loop_mailbox_new(self->loop, self, &self->mailbox);
    if (err != BAY_OK) {
        return err;
    }
    self->target = call_target_ref(options->target);
    if (self->target == NULL && call_target_new(options->server->name, options->server->concurrency,
                                                &self->target) != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    if (options->told != NULL) {
        self->told = upstream_told_ref(options->told);
        return BAY_OK;
    }
    return self->owner == NULL ? upstream_told_new(&self->told) : BAY_OK;
}

void upstream_fini(upstream *self)
{
    upstream_forget_proxies(self);
    if (self->mailbox != NULL) {
        loop_mailbox_close(self->mailbox);
        loop_mailbox_unref(self->mailbox);
    }
    if (self->is_told_down) { /* the others may be well */
        upstream_told_step(self->told, &self->is_told_down, UPSTREAM_CLOSED, "");
    }
    upstream_told_unref(self->told);
    call_target_unref(self->target);
    mem_free(self->name);
    buf_fini(&self->instructions);
    mem_free(self->capabilities);
}

/* may[from] has a bit for every state that may follow */
static const unsigned may_follow[] = {
    [UPSTREAM_STOPPED] = 1u << UPSTREAM_STARTING | 1u << UPSTREAM_CLOSED,
    [UPSTREAM_STARTING] =
        1u << UPSTREAM_READY | 1u << UPSTREAM_BACKOFF | 1u << UPSTREAM_OPEN | 1u << UPSTREAM_CLOSED,
    [UPSTREAM_READY] = 1u << UPSTREAM_STARTING | 1u << UPSTREAM_STOPPED | 1u << UPSTREAM_BACKOFF |
                       1u << UPSTREAM_OPEN | 1u << UPSTREAM_CLOSED,
    [UPSTREAM_BACKOFF] = 1u << UPSTREAM_STARTING | 1u << UPSTREAM_CLOSED,
    [UPSTREAM_OPEN] = 1u << UPSTREAM_STARTING | 1u << UPSTREAM_CLOSED,
    [UPSTREAM_CLOSED] = 0,
};

/* Every step goes to the log at debug level; what it does not say yet, to everybody. */
static bool log_step(upstream *self, upstream_state to)
{
    upstream_line line = upstream_told_step(self->told, &self->is_told_down, to, self->error);
    bool is_bad = to == UPSTREAM_BACKOFF || to == UPSTREAM_OPEN;
    char after[80] = "";
    if (line.repeats > 0) {
        snprintf(after, sizeof(after), " (after %llu more attempts that failed likewise)",
                 (unsigned long long)line.repeats);
    }
    LOG(!line.is_new ? LOG_DEBUG
        : is_bad     ? LOG_WARN
                     : LOG_INFO,
        "upstream", "%s: %s -> %s%s%s%s", self->name, upstream_state_text(self->state),
        upstream_state_text(to), self->error[0] != '\0' ? ": " : "", self->error, after);
    return line.is_new;
}

bool upstream_set_state(upstream *self, upstream_state state, const char *error)
{
    CHECK((may_follow[self->state] >> state & 1u) != 0);
    if (error != NULL) {
        shown_copy(self->error, sizeof(self->error), str_of(error), SHOWN_LINE);
    }
    bool is_bad = state == UPSTREAM_BACKOFF || state == UPSTREAM_OPEN;
    bool is_new = log_step(self, state);
    self->state = state;
    if (is_bad) {
        memcpy(self->last_break, self->error, sizeof(self->error));
    }
    if (state == UPSTREAM_READY || is_bad) {
        self->is_settled = true;
    }
    self->events->state_changed(self->user, self);
    upstream_publish_state(self);
    return is_new;
}

void upstream_learn_instructions(upstream *self, bay_str text)
{
    buf_clear(&self->instructions);
    buf_str(&self->instructions, text);
    if (self->instructions.err != BAY_OK) {
        LOG(LOG_WARN, "upstream", "%s: its instructions cannot be kept: %s", self->name,
            bay_err_text(self->instructions.err));
        buf_clear(&self->instructions);
    }
}

call_target *upstream_target(const upstream *self)
{
    return self->target;
}

bay_str upstream_instructions(const upstream *self)
{
    return buf_view(&self->instructions);
}

void upstream_learn(upstream *self, const mcp_revision *revision, json_val capabilities)
{
    self->revision = revision;
    if (json_is(capabilities, JSON_MISSING)) {
        return; /* spoken to as remembered, without asking what it can do: that stays as it was */
    }
    mem_free(self->capabilities);
    self->capabilities = NULL;
    bay_err err = json_raw(capabilities).len <= UPSTREAM_CAPABILITIES_BYTES
                      ? json_clone(capabilities, &self->capabilities)
                      : BAY_ERR_LIMIT;
    if (err != BAY_OK) {
        LOG(LOG_WARN, "upstream", "%s: its capabilities cannot be kept: %s", self->name,
            bay_err_text(err));
    }
}

void upstream_call_end(upstream_call *call)
{
    CHECK(call->is_open);
    call->is_open = false;
    call->upstream->open_calls--;
}

void upstream_call_fail(upstream_call *call, bay_err err, bool was_sent, const char *text)
{
    const upstream *of = call->upstream;
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED,
                           .err = err,
                           .was_sent = was_sent || call->may_have_run,
                           .login = of->is_unauthorized && upstream_is_down(of) ? MCP_LOGIN_OPERATOR
                                                                                : MCP_LOGIN_NONE,
                           .text = text};
    upstream_call_done(call, &outcome);
}

void upstream_call_done(upstream_call *call, const mcp_outcome *outcome)
{
    upstream_call_end(call);
    call->events->done(call->user, outcome);
}

void upstream_start(upstream *self)
{
    self->ops->start(self);
}

void upstream_close(upstream *self, void (*done)(void *user), void *user)
{
    self->ops->close(self, done, user);
}

void upstream_free(upstream *self)
{
    if (self != NULL) {
        self->ops->free(self);
    }
}

void upstream_send(upstream *self, upstream_call *call)
{
    call->upstream = self;
    call->is_open = true;
    call->input_requests = NULL;
    call->input_request_count = 0;
    self->open_calls++;
    self->ops->send(self, call);
}

void upstream_call_cancel(upstream_call *call, bay_str reason)
{
    if (call->is_open) {
        upstream_call_end(call);
        call->upstream->ops->cancel(call, reason);
    }
}

void upstream_call_pause(upstream_call *call, bool is_paused)
{
    if (call->is_open) {
        call->upstream->ops->pause(call, is_paused);
    }
}

void upstream_call_answer(upstream_call *call, bay_str id, bay_str result, int code,
                          bay_str message)
{
    if (call->is_open) {
        call->upstream->ops->answer(call, id, result, code, message);
    }
}

void upstream_tell(upstream *self, bay_str identity, bay_str method, bay_str params)
{
    if (self->ops->tell != NULL) {
        self->ops->tell(self, identity, method, params);
    }
}

void upstream_identity_gone(upstream *self, bay_str identity)
{
    if (self->ops->identity_gone != NULL) {
        self->ops->identity_gone(self, identity);
    }
}

void upstream_client_answer(upstream *self, uint64_t number, bay_str result, int code,
                            bay_str message)
{
    if (self->ops->client_answer != NULL) {
        self->ops->client_answer(self, number, result, code, message);
    }
}

void upstream_set_client(upstream *self, unsigned inputs)
{
    if (self->ops->set_client != NULL) {
        self->ops->set_client(self, inputs);
    }
}

void upstream_subscribe(upstream *self, bay_str identity, bay_str uri, bool is_wanted)
{
    self->ops->subscribe(self, identity, uri, is_wanted);
}

void upstream_set_level(upstream *self, mcp_log_level level)
{
    self->ops->set_level(self, level);
}

bay_str upstream_name(const upstream *self)
{
    return str_of(self->name);
}

const config_server *upstream_config(const upstream *self)
{
    return self->server;
}

void upstream_set_config(upstream *self, const config *settings, const config_server *server)
{
    self->config = settings;
    self->server = server;
}

upstream_state upstream_state_of(const upstream *self)
{
    return self->state;
}

upstream_told *upstream_told_of(const upstream *self)
{
    return self->told;
}

const char *upstream_state_text(upstream_state state)
{
    static const char *const texts[] = {"stopped", "starting", "ready",
                                        "backoff", "open",     "closed"};
    return texts[state];
}

const char *upstream_error(const upstream *self)
{
    return self->error;
}

const mcp_revision *upstream_revision(const upstream *self)
{
    return self->revision;
}

static json_val known_capabilities(const upstream *self)
{
    return self->capabilities != NULL ? json_root(self->capabilities) : JSON_NONE;
}

bool upstream_has(const upstream *self, bay_str capability)
{
    return !json_is(mcp_capability(known_capabilities(self), capability), JSON_MISSING);
}

bool upstream_admits(const upstream *self, bay_str capability)
{
    json_val found = mcp_capability(known_capabilities(self), capability);
    return json_is(found, JSON_OBJECT) || json_true(found);
}

bool upstream_is_asleep(const upstream *self)
{
    return self->server->start == CONFIG_START_LAZY && self->state == UPSTREAM_STOPPED &&
           !self->is_settled;
}

bool upstream_is_down(const upstream *self)
{
    return self->state == UPSTREAM_BACKOFF || self->state == UPSTREAM_OPEN;
}

bool upstream_is_settled(const upstream *self)
{
    return self->is_settled;
}

uint32_t upstream_restarts(const upstream *self)
{
    return self->restarts;
}

int upstream_process_id(const upstream *self)
{
    return self->process_id;
}

size_t upstream_open_calls(const upstream *self)
{
    return self->open_calls;
}

const char *upstream_last_break(const upstream *self)
{
    return self->last_break;
}

upstream_count upstream_count_of(const upstream *self)
{
    static const char *const circuits[] = {"closed", "open", "trial"};
    const upstream_figures *from = self->owner != NULL ? &self->owner->figures : &self->figures;
    return (upstream_count){
        .links = atomic_load_explicit(&from->links, memory_order_relaxed),
        .processes = atomic_load_explicit(&from->processes, memory_order_relaxed),
        .waiting = atomic_load_explicit(&from->waiting, memory_order_relaxed),
        .refused_questions = atomic_load_explicit(&from->refused_questions, memory_order_relaxed),
        .circuit = circuits[atomic_load_explicit(&from->circuit, memory_order_relaxed)],
    };
}
