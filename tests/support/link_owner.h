/* What the tests of the client links share: an owner who counts what he hears, and a loop that is
 * turned until something is true. */
#ifndef TESTS_LINK_OWNER_H
#define TESTS_LINK_OWNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp_transport/link.h"

enum { LINK_GIVE_UP_MS = 20000 }; /* ends a broken test, not a working one */

typedef struct owner {
    loop *loop;
    mcp_link *link;
    int readies;
    int breaks;
    int closes;
    int changes;
    int late; /* heard after the link was freed */
    bay_err err;
    char text[300];
    char revision[16];
    bool is_freed;
    bool frees_on_break;
    bool frees_on_ready;
    bool frees_on_close;
    bool frees_on_trace;
} owner;

typedef struct answer {
    owner *on;
    mcp_call *call;
    int dones;
    int notes;
    mcp_outcome_kind kind;
    bay_err err;
    bool was_sent;
    int code;
    buf result; /* raw: the result or the error object */
    char text[300];
    bool frees_on_note;
    bool frees_on_done;
    bool pauses_on_note;
    bool cancels_on_note;
} answer;

static inline int64_t link_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#define LINK_UNTIL(on_loop, condition)                                                             \
    do {                                                                                           \
        int64_t until_ms = link_clock_ms() + LINK_GIVE_UP_MS;                                      \
        while (!(condition)) {                                                                     \
            if (link_clock_ms() >= until_ms) {                                                     \
                fail_msg("never came true: %s", #condition);                                       \
            }                                                                                      \
            (void)loop_turn((on_loop), 5);                                                         \
        }                                                                                          \
    } while (0)

/* Whatever is ready now and a little of what follows from it. */
static inline void settle(loop *on)
{
    for (int i = 0; i < 50; i++) {
        (void)loop_turn(on, 0);
    }
}

static inline void owner_free(owner *self)
{
    mcp_link *link = self->link;
    self->link = NULL;
    mcp_link_free(link);
    self->is_freed = true;
}

static inline void owner_ready(void *user)
{
    owner *self = user;
    self->readies++;
    self->late += self->is_freed;
    bay_str text = mcp_client_revision(mcp_link_client(self->link))->text;
    snprintf(self->revision, sizeof(self->revision), "%.*s", BAY_STR(text));
    if (self->frees_on_ready) {
        owner_free(self);
    }
}

static inline void owner_broken(void *user, bay_err err, const char *text)
{
    owner *self = user;
    self->breaks++;
    self->late += self->is_freed;
    self->err = err;
    snprintf(self->text, sizeof(self->text), "%s", text);
    if (self->frees_on_break) {
        owner_free(self);
    }
}

static inline void owner_changed(void *user, mcp_change change)
{
    owner *self = user;
    (void)change;
    self->late += self->is_freed;
    self->changes++;
}

static inline void owner_traced(void *user, bool is_outgoing, bay_str message,
                                const mcp_field *fields, size_t count)
{
    owner *self = user;
    (void)is_outgoing, (void)message, (void)fields, (void)count;
    if (self->frees_on_trace && self->link != NULL) {
        owner_free(self);
    }
}

static inline void owner_closed(void *user)
{
    owner *self = user;
    self->closes++;
    self->late += self->is_freed;
    if (self->frees_on_close) {
        owner_free(self);
    }
}

static const mcp_client_events owner_events = {
    .ready = owner_ready,
    .broken = owner_broken,
    .changed = owner_changed,
    .traced = owner_traced,
};

/* Legacy only by default: no probe. */
static inline mcp_link_options owner_options(owner *self)
{
    return (mcp_link_options){
        .client = {.name = STR("test"),
                   .version = STR("1"),
                   .oldest = MCP_REV_2024_11_05,
                   .newest = MCP_LATEST_LEGACY,
                   .probe_timeout_ms = 5000,
                   .call_timeout_ms = 10000},
        .events = &owner_events,
        .user = self,
        .term_ms = 100,
        .kill_ms = 100,
    };
}

static inline void answer_notified(void *user, mcp_call *call, const mcp_method *method,
                                   json_val params)
{
    answer *self = user;
    (void)call, (void)method, (void)params;
    self->notes++;
    assert_int_equal(self->dones, 0);
    if (self->frees_on_note) {
        owner_free(self->on);
    } else if (self->pauses_on_note) {
        mcp_call_pause(self->call, true);
    } else if (self->cancels_on_note) {
        mcp_call_cancel(self->call, STR("enough"));
    }
}

static inline void answer_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    answer *self = user;
    (void)call;
    self->dones++;
    self->kind = outcome->kind;
    self->err = outcome->err;
    self->was_sent = outcome->was_sent;
    self->code = outcome->error_code;
    if (outcome->kind == MCP_OUTCOME_RESULT) {
        buf_str(&self->result, json_raw(outcome->result));
    } else if (outcome->kind == MCP_OUTCOME_ERROR) {
        buf_str(&self->result, json_raw(outcome->error));
    } else {
        snprintf(self->text, sizeof(self->text), "%s", outcome->text);
    }
    if (self->frees_on_done) {
        owner_free(self->on);
    }
}

static const mcp_call_events answer_events = {.notified = answer_notified, .done = answer_done};

static inline void answer_init(answer *self, owner *on)
{
    *self = (answer){.on = on};
    buf_init(&self->result, (size_t)64 << 20);
}

/* Starts a call. `params`: JSON text of an object, or NULL. */
/* `principal`: who makes the call; NULL: nobody in particular. */
static inline bay_err ask_as(answer *self, owner *on, const char *method, const char *params,
                             const auth_principal *principal)
{
    arena memory;
    json_doc doc;
    bay_diag diag = {0};
    arena_init(&memory, (size_t)64 << 20);
    mcp_call_spec spec = {.method = str_of(method), .principal = principal, .wants_progress = true};
    spec.log_level = MCP_LOG_NONE;
    answer_init(self, on);
    if (params != NULL) {
        assert_int_equal(json_parse(&doc, str_of(params), NULL, &memory, NULL), BAY_OK);
        spec.params = json_root(&doc);
    }
    bay_err err = mcp_client_call(mcp_link_client(on->link), &spec, &answer_events, self,
                                  loop_now_ms(on->loop), &self->call, &diag);
    arena_fini(&memory);
    return err;
}

static inline bay_err ask(answer *self, owner *on, const char *method, const char *params)
{
    return ask_as(self, on, method, params, NULL);
}

static inline bool answer_has(const answer *self, const char *text)
{
    return self->result.len > 0 &&
           memmem(self->result.at, self->result.len, text, strlen(text)) != NULL;
}

static inline void answer_fini(answer *self)
{
    assert_true(self->dones <= 1);
    buf_fini(&self->result);
}

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

#endif
