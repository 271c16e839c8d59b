/* What the tests of the gateway's rooms share: configurations from text, and an upstream whose
 * every answer the test gives. In texts given here ' stands for ". */
#ifndef SUPPORT_FAKE_UPSTREAM_H
#define SUPPORT_FAKE_UPSTREAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "upstream/parts.h"

static inline char *testing_quotes(const char *text)
{
    char *made = mem_dup(text, strlen(text));
    assert_non_null(made);
    for (char *at = made; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    return made;
}

static inline const config *testing_config(const char *text)
{
    config_report *report = calloc(1, sizeof(*report));
    assert_non_null(report);
    const config *made = NULL;
    bay_err err = config_load_text(str_of(text), STR("test.yaml"), NULL, NULL, &made, report);
    if (err != BAY_OK) {
        print_error("%s\n", report->count > 0 ? report->messages[0].text : bay_err_text(err));
    }
    assert_int_equal(err, BAY_OK);
    free(report);
    return made;
}

static inline void assert_text(bay_str is, const char *wanted)
{
    if (!str_eq(is, str_of(wanted))) {
        print_error("is:     %.*s\nwanted: %s\n", BAY_STR(is), wanted);
    }
    assert_true(str_eq(is, str_of(wanted)));
}

static inline bool str_contains(bay_str text, const char *part)
{
    return text.len > 0 && memmem(text.at, text.len, part, strlen(part)) != NULL;
}

/* ---- an upstream without a server ------------------------------------------------------------ */

enum { FAKE_MAX = 4096 };

typedef struct fake {
    upstream base;
    upstream_call *held[FAKE_MAX]; /* not answered yet, in order */
    int held_count;
    int sends;
    int cancels;
    int pauses;
    int resumes;
    int starts;
    int subscribes;
    int unsubscribes;
    int answers;       /* to questions; `answer` is the last one: its id, a space, and the result */
    char answer[1000]; /* or the code, a space and the message */
    char told[200];    /* the last identity, method and params, or identity alone: it is gone */
    mcp_log_level level;
    void (*on_send)(struct fake *self, upstream_call *call); /* NULL: held */
    void (*on_answer)(struct fake *self, upstream_call *call);
    void *context;
    config_server server;
} fake;

static inline fake *fake_of(upstream *base)
{
    return CONTAINER_OF(base, fake, base);
}

/* Its server says what it can do; `capabilities` empty: nothing. */
static inline void fake_learn(upstream *base, const mcp_revision *revision, bay_str capabilities)
{
    arena memory;
    json_doc doc;
    json_val value = JSON_NONE;
    arena_init(&memory, 1 << 20);
    if (capabilities.len > 0) {
        assert_int_equal(json_parse(&doc, capabilities, NULL, &memory, NULL), BAY_OK);
        value = json_root(&doc);
    }
    upstream_learn(base, revision, value);
    arena_fini(&memory);
}

static inline void fake_start(upstream *base)
{
    fake_of(base)->starts++;
}

static inline void fake_close(upstream *base, void (*done)(void *user), void *user)
{
    (void)base;
    done(user);
}

static inline void fake_drop(fake *self, upstream_call *call)
{
    for (int i = 0; i < self->held_count; i++) {
        if (self->held[i] == call) {
            self->held_count--;
            for (int k = i; k < self->held_count; k++) {
                self->held[k] = self->held[k + 1];
            }
            return;
        }
    }
    fail_msg("%s", "a call that is not here");
}

static inline void fake_send(upstream *base, upstream_call *call)
{
    fake *self = fake_of(base);
    self->sends++;
    if (self->on_send != NULL) {
        self->on_send(self, call);
        return;
    }
    assert_true(self->held_count < FAKE_MAX);
    self->held[self->held_count++] = call;
}

static inline void fake_cancel(upstream_call *call, bay_str reason)
{
    fake *self = fake_of(call->upstream);
    (void)reason;
    self->cancels++;
    fake_drop(self, call);
}

static inline void fake_pause(upstream_call *call, bool is_paused)
{
    fake *self = fake_of(call->upstream);
    self->pauses += is_paused;
    self->resumes += !is_paused;
}

static inline void fake_answer(upstream_call *call, bay_str id, bay_str result, int code,
                               bay_str message)
{
    fake *self = fake_of(call->upstream);
    self->answers++;
    if (result.len > 0) {
        (void)snprintf(self->answer, sizeof(self->answer), "%.*s %.*s", BAY_STR(id),
                       BAY_STR(result));
    } else {
        (void)snprintf(self->answer, sizeof(self->answer), "%.*s %d %.*s", BAY_STR(id), code,
                       BAY_STR(message));
    }
    if (self->on_answer != NULL) {
        self->on_answer(self, call);
    }
}

static inline void fake_client_answer(upstream *base, uint64_t number, bay_str result, int code,
                                      bay_str message)
{
    fake *self = fake_of(base);
    self->answers++;
    (void)snprintf(self->answer, sizeof(self->answer), "%llu %.*s%d %.*s",
                   (unsigned long long)number, BAY_STR(result), code, BAY_STR(message));
}

static inline void fake_tell(upstream *base, bay_str identity, bay_str method, bay_str params)
{
    (void)snprintf(fake_of(base)->told, sizeof(fake_of(base)->told), "%.*s %.*s %.*s",
                   BAY_STR(identity), BAY_STR(method), BAY_STR(params));
}

static inline void fake_identity_gone(upstream *base, bay_str identity)
{
    (void)snprintf(fake_of(base)->told, sizeof(fake_of(base)->told), "%.*s", BAY_STR(identity));
}

static inline void fake_subscribe(upstream *base, bay_str identity, bay_str uri, bool is_wanted)
{
    fake *self = fake_of(base);
    (void)identity;
    (void)uri;
    self->subscribes += is_wanted;
    self->unsubscribes += !is_wanted;
}

static inline void fake_set_level(upstream *base, mcp_log_level level)
{
    fake_of(base)->level = level;
}

static inline void fake_free_base(upstream *base)
{
    (void)base;
}

static const upstream_ops fake_ops = {
    .start = fake_start,
    .close = fake_close,
    .free = fake_free_base,
    .send = fake_send,
    .cancel = fake_cancel,
    .pause = fake_pause,
    .answer = fake_answer,
    .tell = fake_tell,
    .identity_gone = fake_identity_gone,
    .client_answer = fake_client_answer,
    .subscribe = fake_subscribe,
    .set_level = fake_set_level,
};

static inline void fake_state_changed(void *user, upstream *self)
{
    (void)user;
    (void)self;
}

static const upstream_events fake_events = {.state_changed = fake_state_changed};

/* Ready, with every capability. */
static inline fake *fake_new(const char *name, bool is_over_http)
{
    fake *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->server.name = str_of(name);
    self->server.url = is_over_http ? STR("http://127.0.0.1:1/mcp") : (bay_str){NULL, 0};
    upstream_options options = {.server = &self->server, .events = &fake_events};
    assert_int_equal(upstream_init(&self->base, &fake_ops, &options), BAY_OK);
    self->level = MCP_LOG_NONE;
    upstream_set_state(&self->base, UPSTREAM_STARTING, NULL);
    fake_learn(&self->base, mcp_revision_of(MCP_LATEST),
               STR("{\"tools\":{},\"resources\":{\"subscribe\":true},\"prompts\":{},"
                   "\"completions\":{},\"logging\":{}}"));
    upstream_set_state(&self->base, UPSTREAM_READY, NULL);
    return self;
}

/* Messages of proxies reach it on that loop. */
static inline void fake_move_to(fake *self, loop *runs_on)
{
    loop_mailbox_unref(self->base.mailbox);
    self->base.loop = runs_on;
    assert_int_equal(loop_mailbox_new(runs_on, &self->base, &self->base.mailbox), BAY_OK);
}

static inline void fake_free(fake *self)
{
    assert_int_equal(self->held_count, 0);
    upstream_fini(&self->base);
    free(self);
}

static inline void fake_end(fake *self, upstream_call *call, mcp_outcome *outcome, const char *json,
                            bool is_error)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, (size_t)1 << 30);
    if (json != NULL) {
        static const json_limits limits = {(size_t)1 << 30, 128 | JSON_MARK_DEPTH, 64u << 20};
        assert_int_equal(json_parse(&doc, str_of(json), &limits, &memory, NULL), BAY_OK);
        outcome->result = is_error ? JSON_NONE : json_root(&doc);
        outcome->error = is_error ? json_root(&doc) : JSON_NONE;
    }
    (void)self;
    upstream_call_end(call);
    call->events->done(call->user, outcome);
    arena_fini(&memory);
}

/* Answers the oldest held call. */
static inline upstream_call *fake_take(fake *self)
{
    assert_true(self->held_count > 0);
    upstream_call *call = self->held[0];
    fake_drop(self, call);
    return call;
}

static inline void fake_result(fake *self, const char *json)
{
    char *text = testing_quotes(json);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
    fake_end(self, fake_take(self), &outcome, text, false);
    mem_free(text);
}

static inline void fake_error(fake *self, int code, const char *json)
{
    char *text = testing_quotes(json);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_ERROR, .error_code = code};
    fake_end(self, fake_take(self), &outcome, text, true);
    mem_free(text);
}

static inline void fake_fail(fake *self, bay_err err, bool was_sent, const char *why)
{
    mcp_outcome outcome = {
        .kind = MCP_OUTCOME_FAILED, .err = err, .was_sent = was_sent, .text = why};
    fake_end(self, fake_take(self), &outcome, NULL, false);
}

static inline void fake_notify(fake *self, mcp_method_id method, const char *json)
{
    char *text = testing_quotes(json);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    assert_true(self->held_count > 0);
    upstream_call *call = self->held[0];
    call->events->notified(call->user, method, json_root(&doc));
    arena_fini(&memory);
    mem_free(text);
}

/* The server asks during the oldest held call. `json`: the whole request. */
static inline void fake_ask_during(upstream_call *call, const char *json)
{
    char *text = testing_quotes(json);
    arena memory;
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    arena_init(&memory, 64 << 20);
    assert_int_equal(rpc_message_parse(&message, &doc, str_of(text), NULL, &memory, &fault),
                     BAY_OK);
    call->events->asked(call->user, &message);
    arena_fini(&memory);
    mem_free(text);
}

static inline void fake_ask(fake *self, const char *json)
{
    assert_true(self->held_count > 0);
    fake_ask_during(self->held[0], json);
}

static inline void fake_withdraw(fake *self, const char *id)
{
    assert_true(self->held_count > 0);
    char *text = testing_quotes(id);
    self->held[0]->events->withdrawn(self->held[0]->user, str_of(text));
    mem_free(text);
}

#endif
