/* An agent of the library on a free port and a thread of its own, and callers in every version and
 * binding of A2A. */
#ifndef SUPPORT_DOOR_AGENT_H
#define SUPPORT_DOOR_AGENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "sdk/agent_parts.h" /* before cmocka, which has a macro "fail" */

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "a2a_transport/link.h"
#include "base/str.h"
#include "net/thread.h"
#include "patchbay/agent.h"

enum { AGENT_TEXT = 64 << 10 };

/* ---- the agent ------------------------------------------------------------------------------- */

typedef struct door_agent {
    bay_agent *agent;
    net_thread thread;
    uint16_t port;
    atomic_int begun;   /* messages that were given to the handler */
    atomic_int reached; /* operations that it was asked for */
} door_agent;

static inline void door_agent_echo(bay_task *task, const bay_message *message, void *user)
{
    door_agent *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_complete(task, "heard it");
}

static inline void door_agent_ask(bay_task *task, const bay_message *message, void *user)
{
    door_agent *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_ask(task, "which colour?");
}

/* Callers are who the field X-Caller says, if `names` says so. */
static inline void door_agent_listen(door_agent *self, const char *const *names, size_t count)
{
    bay_diag diag = {0};
    *self = (door_agent){.agent = bay_agent_new("Door", "1.0", "Is called.")};
    bay_agent_skill(self->agent, "echo", "echo", "One thing.", door_agent_echo, self);
    bay_agent_skill(self->agent, "ask", "ask", "Another.", door_agent_ask, self);
    bay_agent_handler(self->agent, door_agent_ask, self);
    bay_agent_push(self->agent);
    bay_agent_push_allow(self->agent, "127.0.0.1");
    if (count > 0) {
        bay_agent_api_key(self->agent, "key", "header", "X-Caller", NULL, NULL);
        bay_agent_extended(self->agent, "{\"description\":\"For those who are known.\"}");
    }
    for (size_t i = 0; i < count; i++) {
        bay_agent_api_key_add(self->agent, "key", names[i], names[i], NULL);
    }
    if (bay_agent_listen(self->agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    self->port = bay_agent_port(self->agent);
}

static inline void door_agent_run(void *argument)
{
    door_agent *self = argument;
    bay_diag diag;
    bay_err err = bay_agent_run(self->agent, &diag);
    (void)err;
}

static inline void door_agent_start(door_agent *self)
{
    assert_int_equal(net_thread_start(&self->thread, door_agent_run, self), BAY_OK);
}

static inline bool door_agent_reached(void *user, const call_context *call, call_refusal *out)
{
    (void)call;
    (void)out;
    atomic_fetch_add(&((door_agent *)user)->reached, 1);
    return true;
}

/* To stand behind a gateway. */
static inline void door_agent_open_behind(door_agent *self)
{
    door_agent_listen(self, NULL, 0);
    self->agent->host.door.guard = door_agent_reached;
    self->agent->host.door.user = self;
    door_agent_start(self);
}

static inline void door_agent_close(door_agent *self)
{
    bay_agent_stop(self->agent);
    net_thread_join(&self->thread);
    bay_agent_free(self->agent);
}

/* ---- callers --------------------------------------------------------------------------------- */

typedef struct door_caller {
    loop *loop;
    http_client *http;
    a2a_link *link;
    bool is_over;
    char text[AGENT_TEXT]; /* results and events, or the fault */
} door_caller;

static inline void door_caller_told(door_caller *self, const char *what, bay_str text)
{
    size_t len = strlen(self->text);
    (void)snprintf(self->text + len, sizeof(self->text) - len, "%s%.*s\n", what, BAY_STR(text));
}

static inline void door_caller_result(void *user, json_val result)
{
    door_caller *self = user;
    door_caller_told(self, "", json_raw(result));
    self->is_over = true;
}

static inline void door_caller_event(void *user, json_val event, uint64_t event_id, bool is_last)
{
    (void)event_id;
    (void)is_last;
    door_caller_told(user, "", json_raw(event));
}

static inline void door_caller_end(void *user)
{
    ((door_caller *)user)->is_over = true;
}

static inline void door_caller_failed(void *user, bay_err err, const a2a_fault *fault,
                                      bool was_sent)
{
    door_caller *self = user;
    char head[64];
    (void)was_sent;
    (void)snprintf(head, sizeof(head), "fault %d %s: ", (int)fault->error, bay_err_text(err));
    door_caller_told(self, head, str_of(fault->text));
    self->is_over = true;
}

static inline void door_caller_open(door_caller *self, const a2a_interface *at)
{
    http_client_options options = {.limits = http_client_default_limits};
    a2a_link_limits limits = {.answer_bytes = 1 << 20, .resumes = 1, .first_delay_ms = 1};
    memset(self, 0, sizeof(*self));
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(http_client_new(self->loop, &options, &self->http), BAY_OK);
    assert_int_equal(a2a_link_new(self->loop, self->http, at, &limits, &self->link), BAY_OK);
}

/* BAY_ERR_UNSUPPORTED: the form has no such method. ' stands for ". */
static inline bay_err door_caller_ask(door_caller *self, const char *who, a2a_method method,
                                      const char *params)
{
    static const a2a_link_events events = {.result = door_caller_result,
                                           .event = door_caller_event,
                                           .end = door_caller_end,
                                           .failed = door_caller_failed};
    char text[2048];
    a2a_fault fault = {0};
    a2a_link_call *call = NULL;
    http_field field = {STR("X-Caller"), str_of(who)};
    (void)snprintf(text, sizeof(text), "%s", params);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    a2a_link_request request = {
        .method = method, .params = json_root(&doc), .fields = &field, .field_count = 1};
    self->is_over = false;
    self->text[0] = '\0';
    bay_err err = a2a_link_start(self->link, &request, &events, self, &call, &fault);
    arena_fini(&memory); /* the link has a copy */
    for (int i = 0; err == BAY_OK && i < 20000 && !self->is_over; i++) {
        (void)loop_turn(self->loop, 1);
    }
    assert_true(err != BAY_OK || self->is_over);
    return err;
}

static inline void door_caller_close(door_caller *self)
{
    a2a_link_free(self->link);
    http_client_free(self->http);
    loop_free(self->loop);
}

#endif
