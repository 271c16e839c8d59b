/* A server with something for every method of MCP: to be asked itself, or to stand behind a
 * gateway. On a free port and a thread of its own. */
#ifndef SUPPORT_DOOR_SERVER_H
#define SUPPORT_DOOR_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "net/thread.h"
#include "patchbay/server.h"
#include "sdk/server_parts.h"
#include "sdk/serving.h"

enum { SERVER_HELD = 16, SERVER_GIVE_UP = 10000 };

typedef struct door_server {
    bay_server *server;
    net_thread thread;
    uint16_t port;
    atomic_int handled; /* calls of handlers */
    atomic_int reached; /* calls that it was asked for; of lists none, of subscriptions `topic`'s */
    _Atomic(const char *) topic;
    bay_call *_Atomic held[SERVER_HELD]; /* by the tools "hold" and "work" */
    atomic_int held_count;
} door_server;

static inline void server_reply(bay_call *call, void *user)
{
    door_server *self = user;
    atomic_fetch_add(&self->handled, 1);
    bay_call_replyf(call, "called by <%.*s>", BAY_STR(bay_call_principal(call)));
}

static inline void server_hold(bay_call *call, void *user)
{
    door_server *self = user;
    atomic_fetch_add(&self->handled, 1);
    int at = atomic_fetch_add(&self->held_count, 1);
    atomic_store(&self->held[at % SERVER_HELD], bay_call_defer(call));
}

/* All that are held end, so that the server can. */
/* Until so many calls are held: they reach the server some time after their admission. */
static inline void door_server_wait_held(door_server *self, int count)
{
    for (int held = 0, turns = 0; held < count && turns < SERVER_GIVE_UP; turns++) {
        held = 0;
        for (int i = 0; i < SERVER_HELD; i++) {
            held += atomic_load(&self->held[i]) != NULL;
        }
        if (held < count) {
            poll(NULL, 0, 1);
        }
    }
}

static inline void door_server_release(door_server *self, const char *text)
{
    for (int i = 0; i < SERVER_HELD; i++) {
        bay_call *call = atomic_exchange(&self->held[i], NULL);
        if (call != NULL) {
            bay_call_reply(call, text);
        }
    }
}

/* Whoever subscribed to the resource that it names is told. */
static inline void server_touch(bay_call *call, void *user)
{
    door_server *self = user;
    char uri[64];
    (void)snprintf(uri, sizeof(uri), "%.*s", BAY_STR(bay_call_str(call, "uri")));
    bay_server_updated(self->server, uri);
    bay_call_reply(call, "touched");
}

static inline void server_answered(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "asked <%.*s>", BAY_STR(bay_answer_str(answer, "ok")));
}

static inline void server_ask(bay_call *call, void *user)
{
    door_server *self = user;
    atomic_fetch_add(&self->handled, 1);
    bay_call_question_key(call, "sure");
    bay_call_elicit_schema(call, "Sure?",
                           "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"string\"}}}",
                           server_answered, self);
}

static inline void server_prompt(bay_call *call, void *user)
{
    door_server *self = user;
    atomic_fetch_add(&self->handled, 1);
    bay_result *result = bay_result_new(call);
    bay_result_message(result, "user");
    bay_result_text(result, "hello");
    bay_call_finish(call, result);
}

static inline void server_complete(bay_call *call, void *user)
{
    door_server *self = user;
    atomic_fetch_add(&self->handled, 1);
    bay_result *result = bay_result_new(call);
    bay_result_value(result, "yes");
    bay_call_finish(call, result);
}

/* Names begin with `prefix`: as a gateway shows them, so that both can be asked for the same. */
static inline void door_server_make(door_server *self, const char *prefix)
{
    static const char empty[] = "{\"type\":\"object\"}";
    static const char skill[] = "---\nname: s\ndescription: What it does.\n---\n# Read me\n";
    char tool[40], hold[40], ask[40], job[40], work[40], touch[40], prompt[40];
    *self = (door_server){.server = bay_server_new("door", "1")};
    (void)snprintf(tool, sizeof(tool), "%secho", prefix);
    (void)snprintf(hold, sizeof(hold), "%shold", prefix);
    (void)snprintf(ask, sizeof(ask), "%sask", prefix);
    (void)snprintf(job, sizeof(job), "%sjob", prefix);
    (void)snprintf(work, sizeof(work), "%swork", prefix);
    (void)snprintf(touch, sizeof(touch), "%stouch", prefix);
    (void)snprintf(prompt, sizeof(prompt), "%sp", prefix);
    bay_server_tool_schema(self->server, tool, "d", empty, server_reply, self);
    bay_server_tool_schema(self->server, hold, "d", empty, server_hold, self);
    bay_server_tool_schema(self->server, ask, "d", empty, server_ask, self);
    bay_tool_task(bay_server_tool_schema(self->server, job, "d", empty, server_reply, self),
                  BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(bay_server_tool_schema(self->server, work, "d", empty, server_hold, self),
                  BAY_TASK_MODE_OPTIONAL);
    bay_server_tool_schema(self->server, touch, "d", empty, server_touch, self);
    bay_server_prompt(self->server, prompt, "d",
                      (const bay_field[]){{.name = "x", .type = BAY_TYPE_STRING}, {0}},
                      server_prompt, self);
    bay_server_completion(self->server, server_complete, self);
    bay_server_resource(self->server, "f:///a", "a", "d", "text/plain", server_reply, self);
    bay_server_resource(self->server, "f:///b", "b", "d", "text/plain", server_reply, self);
    bay_server_template(self->server, "g:///{id}", "g", "d", "text/plain", server_reply, self);
    bay_server_skill_file(self->server, "s", "SKILL.md", "text/markdown", skill, strlen(skill));
}

static inline void door_server_run(void *argument)
{
    door_server *self = argument;
    bay_diag diag;
    bay_err err = bay_server_run(self->server, &diag);
    (void)err;
}

/* Counts what it is asked for, but for what a gateway asks whenever it likes: lists, and anew what
 * others subscribed to. */
static inline bool door_server_reached(void *user, const call_context *call, call_refusal *out)
{
    door_server *self = user;
    const char *topic = atomic_load(&self->topic);
    bool is_asked = call->kind == CALL_SUBSCRIPTION
                        ? topic != NULL && str_eq(call->shown, str_of(topic))
                        : call->kind != CALL_LIST;
    (void)out;
    atomic_fetch_add(&self->reached, is_asked);
    return true;
}

/* Listens; its door may be set before it is started. */
static inline void door_server_listen(door_server *self)
{
    bay_diag diag = {0};
    if (bay_server_listen(self->server, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    self->port = bay_server_port(self->server);
}

static inline void door_server_start(door_server *self)
{
    assert_int_equal(net_thread_start(&self->thread, door_server_run, self), BAY_OK);
}

/* To stand behind a gateway. */
static inline void door_server_open_behind(door_server *self)
{
    door_server_make(self, "");
    door_server_listen(self);
    self->server->host.door.guard = door_server_reached;
    self->server->host.door.user = self;
    door_server_start(self);
}

static inline void door_server_close(door_server *self)
{
    door_server_release(self, "over");
    bay_server_stop(self->server);
    net_thread_join(&self->thread);
    bay_server_free(self->server);
}

#endif
