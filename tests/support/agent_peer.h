/* An agent on a free port and a thread of its own, to stand behind a gateway: each of its skills
 * does one thing that a test wants to see. */
#ifndef SUPPORT_AGENT_PEER_H
#define SUPPORT_AGENT_PEER_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/str.h"
#include "net/thread.h"
#include "patchbay/agent.h"

typedef struct agent_peer {
    bay_agent *agent;
    net_thread thread;
    uint16_t port;
    atomic_int begun;     /* messages that were given to a handler */
    atomic_int cancelled; /* tasks whose handler saw its cancel */
    atomic_bool may_go;   /* "wait" */
} agent_peer;

static inline void peer_echo(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    bay_str text = bay_message_text(message);
    atomic_fetch_add(&self->begun, 1);
    bay_artifact *made = bay_task_artifact(task, "echo.txt", "text/plain");
    (void)bay_artifact_append_str(made, text);
    (void)bay_artifact_close(made);
    (void)bay_task_completef(task, "heard %d bytes", (int)text.len);
}

static inline void peer_reply(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_replyf(task, "you said %.*s", BAY_STR(bay_message_text(message)));
}

static inline void peer_ask(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    atomic_fetch_add(&self->begun, 1);
    if (bay_task_is_new(task)) {
        (void)bay_task_ask(task, "which colour?");
    } else {
        (void)bay_task_completef(task, "painted %.*s", BAY_STR(bay_message_text(message)));
    }
}

static inline void peer_chunks(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_status(task, BAY_TASK_STATE_WORKING, "cutting");
    bay_artifact *made = bay_task_artifact(task, "log", "text/plain");
    for (int i = 0; i < 20; i++) {
        char text[24];
        (void)snprintf(text, sizeof(text), "chunk-%d ", i);
        (void)bay_artifact_append(made, text);
    }
    (void)bay_artifact_close(made);
    (void)bay_task_complete(task, "cut");
}

static inline void peer_fail(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_fail(task, "no luck");
}

static inline void peer_trace(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_completef(task, "trace=%.*s state=%.*s", BAY_STR(bay_task_traceparent(task)),
                             BAY_STR(bay_task_tracestate(task)));
}

static inline void peer_wait(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    (void)bay_task_status(task, BAY_TASK_STATE_WORKING, "waiting");
    while (!atomic_load(&self->may_go) && bay_task_sleep(task, 5)) {
    }
    if (bay_task_is_cancelled(task)) {
        atomic_fetch_add(&self->cancelled, 1);
    }
    (void)bay_task_complete(task, "waited");
}

static inline void peer_files(bay_task *task, const bay_message *message, void *user)
{
    agent_peer *self = user;
    (void)message;
    atomic_fetch_add(&self->begun, 1);
    bay_artifact *image = bay_task_artifact(task, "dot.png", "image/png");
    (void)bay_artifact_append_bytes(image, "\x89PNG", 4);
    (void)bay_artifact_close(image);
    bay_artifact *link = bay_task_artifact(task, "more", "text/html");
    (void)bay_artifact_append_url(link, "https://far.example/more");
    (void)bay_artifact_close(link);
    bay_artifact *data = bay_task_artifact(task, "numbers", "application/json");
    (void)bay_artifact_append_data(data, "{\"n\":1.0}");
    (void)bay_artifact_close(data);
    (void)bay_task_complete(task, NULL);
}

static inline void peer_run(void *argument)
{
    agent_peer *self = argument;
    bay_diag diag;
    bay_err err = bay_agent_run(self->agent, &diag);
    (void)err;
}

/* `key` signs the card; NULL: nobody does. `port` 0: a free one. */
static inline bool peer_open(agent_peer *self, uint16_t port, const char *key)
{
    static const struct {
        const char *id;
        bay_task_handler_fn handler;
    } skills[] = {
        {"echo", peer_echo},     {"reply", peer_reply}, {"ask", peer_ask},
        {"chunks", peer_chunks}, {"fail", peer_fail},   {"trace", peer_trace},
        {"wait", peer_wait},     {"files", peer_files}, {"odd\nid", peer_echo},
    };
    bay_diag diag = {0};
    char address[32];
    *self = (agent_peer){.agent = bay_agent_new("Peer", "1.0", "Does what tests want to see.")};
    for (size_t i = 0; i < sizeof(skills) / sizeof(skills[0]); i++) {
        bay_skill *skill = bay_agent_skill(self->agent, skills[i].id, skills[i].id, "One thing.",
                                           skills[i].handler, self);
        bay_skill_tag(skill, "test");
    }
    bay_agent_handler(self->agent, peer_echo, self);
    if (key != NULL) {
        bay_agent_signing_key(self->agent, key, NULL, NULL);
    }
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    if (bay_agent_listen(self->agent, address, &diag) != BAY_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return false;
    }
    self->port = bay_agent_port(self->agent);
    return net_thread_start(&self->thread, peer_run, self) == BAY_OK;
}

static inline void peer_close(agent_peer *self)
{
    bay_agent_stop(self->agent);
    net_thread_join(&self->thread);
    bay_agent_free(self->agent);
}

#endif
