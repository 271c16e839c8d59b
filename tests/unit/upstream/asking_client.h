/* Clients that can be asked, for the tests of an upstream's sessions. */
#ifndef TESTS_ASKING_CLIENT_H
#define TESTS_ASKING_CLIENT_H

#include "support/upstream_testing.h"

#include "upstream/local.h"

enum { FORM = MCP_INPUT_FORM, SAMPLING = MCP_INPUT_SAMPLING, ROOTS = MCP_INPUT_ROOTS };

typedef struct stage {
    loop *loop;
    const config *config;
    upstream *server;
    int descriptors;
    bool is_closed;
} stage;

static inline void closed(void *user)
{
    *(bool *)user = true;
}

static inline local *local_part(const stage *self)
{
    return local_of(self->server);
}

typedef struct client {
    probe probe; /* first: the events' user is this */
    int asked;
    int withdrawn;
    bool is_holding; /* does not answer at once */
    bool is_stateless;
    bool is_named; /* without a session, but known by its conversation */
    char question[40];
    char id[40];
} client;

static inline void client_answer(client *self, const char *result)
{
    upstream_call_answer(&self->probe.call, str_of(self->id), str_of(result), 0, (bay_str){0});
}

static inline void client_asked(void *user, const rpc_message *request)
{
    client *self = user;
    json_val message = json_get(request->params, STR("message"));
    self->asked++;
    (void)snprintf(self->question, sizeof(self->question), "%.*s", BAY_STR(json_raw(message)));
    (void)snprintf(self->id, sizeof(self->id), "%.*s", BAY_STR(request->id));
    if (!self->is_holding) {
        client_answer(self, "{\"action\":\"accept\"}");
    }
}

static inline void client_withdrawn(void *user, bay_str id)
{
    client *self = user;
    assert_true(str_eq(id, str_of(self->id)));
    self->withdrawn++;
}

static const upstream_call_events client_events = {.notified = probe_notified,
                                                   .asked = client_asked,
                                                   .withdrawn = client_withdrawn,
                                                   .done = probe_done};

static inline void client_prepare(client *self, const char *tool, unsigned inputs,
                                  const char *identity)
{
    *self = (client){.is_holding = self->is_holding,
                     .is_stateless = self->is_stateless,
                     .is_named = self->is_named};
    probe_init(&self->probe, tool);
    self->probe.call.events = &client_events;
    self->probe.call.affinity =
        (upstream_affinity){.inputs = inputs,
                            .identity = str_of(identity),
                            .is_stateless = self->is_stateless,
                            .has_session = !self->is_stateless && !self->is_named};
}

static inline void client_send(client *self, stage *on, const char *tool, unsigned inputs,
                               const char *identity)
{
    client_prepare(self, tool, inputs, identity);
    probe_send(&self->probe, on->server);
}

static inline void client_wait(client *self, stage *on)
{
    turn_until(on->loop, self->probe.dones > 0);
    probe_fini(&self->probe);
}

static inline void client_call(client *self, stage *on, const char *tool, unsigned inputs,
                               const char *identity)
{
    client_send(self, on, tool, inputs, identity);
    client_wait(self, on);
}

static inline int pid_of(const client *self)
{
    const char *at = strstr(self->probe.text, "\"pid\":");
    if (at == NULL) {
        fail_msg("no pid: %s", self->probe.text);
    }
    return at != NULL ? (int)strtol(at + 6, NULL, 10) : 0;
}

static inline void assert_says(const client *self, const char *part)
{
    if (strstr(self->probe.text, part) == NULL) {
        fail_msg("%s is not in: %s", part, self->probe.text);
    }
}

#endif
