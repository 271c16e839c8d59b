/* An agent in this process, and callers that speak raw HTTP to it, driven by the same thread. */
#ifndef TESTS_AGENT_RIG_H
#define TESTS_AGENT_RIG_H

#include "sdk/agent_parts.h" /* before cmocka, which has a macro "fail" */

#include "support/server_rig.h"

#include "json/json.h"

#define AGENT_JSON "Content-Type: application/json\r\nA2A-Version: 1.0\r\n"

/* A SendMessage whose message has this id and text, and further members. */
#define AGENT_SEND(id, text, more)                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"           \
    "\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]" more     \
    "}}}"

static inline loop *agent_loop(const bay_agent *agent)
{
    return sdk_agent_loop(agent->serving);
}

static inline void agent_listen(bay_agent *agent)
{
    bay_diag diag = {.code = BAY_OK};
    agent->host.drain_ms = 2000;
    if (bay_agent_listen(agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
}

/* One request and its whole answer; the body stays in `client` until wire_close. */
static inline void agent_ask(bay_agent *agent, wire_client *client, const char *verb,
                             const char *target, const char *fields, const char *body)
{
    wire_exchange(client, agent_loop(agent), bay_agent_port(agent), verb, target, fields, body);
}

/* The same, and the answer must have this in it. */
static inline void agent_expect(bay_agent *agent, const char *target, const char *fields,
                                const char *body, int status, const char *part)
{
    wire_client client;
    agent_ask(agent, &client, body != NULL ? "POST" : "GET", target, fields, body);
    if (client.status != status || !wire_body_has(&client, part)) {
        fail_msg("%s: %d, not %d with %s: %.*s", target, client.status, status, part,
                 BAY_STR(buf_view(&client.body)));
    }
    wire_close(&client);
}

/* The value of the first string member of that name, wherever it stands; "": there is none. */
static inline void agent_find(const wire_client *client, const char *name, char *out, size_t size)
{
    char key[64];
    int len = snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *at = memmem(client->body.at, client->body.len, key, (size_t)len);
    size_t i = 0;
    for (; at != NULL && at[len + (int)i] != '"' && i + 1 < size; i++) {
        out[i] = at[len + (int)i];
    }
    out[i] = '\0';
}

#endif
