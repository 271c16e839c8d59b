/* Over HTTP: who is calling, whose sessions and rounds are whose, and a call that lets its stream
 * go and is found again. */
#include "sdk/serving.h"
#include "support/server_rig.h"

#define SAY(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define INITIALIZE                                                                                 \
    SAY("1", "initialize",                                                                         \
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\","  \
        "\"version\":\"1\"}}")
#define CALL_T SAY("2", "tools/call", "{\"name\":\"t\"}")

typedef struct host {
    bay_server *server;
    loop *loop;
    uint16_t port;
} host;

static bay_call *held;

static void tell_who(bay_call *call, void *user)
{
    (void)user;
    bay_str who = bay_call_principal(call);
    bay_call_replyf(call, "you are <%.*s>", BAY_STR(who));
}

static void let_go(bay_call *call, void *user)
{
    (void)user;
    bay_call_release_stream(call, 250);
    bay_call_progress(call, 1, 2, "while nobody listens");
    held = bay_call_defer(call);
}

/* "Authorization: Bearer NAME" is NAME, but for the few names that are none. */
static bool identify(bay_peer *peer, void *user)
{
    char name[2048];
    int *asked = user;
    (*asked)++;
    bay_str field = bay_peer_field(peer, "authorization");
    if (field.at == NULL) {
        bay_peer_challenge(peer, "Bearer\r\nX-Evil: 1"); /* left out */
        bay_peer_challenge(peer, "Bearer realm=\"test\"");
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", BAY_STR(field));
    if (strcmp(name, "Bearer nobody") == 0) {
        return true;
    }
    if (strcmp(name, "Bearer long") == 0) {
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        bay_peer_principal(peer, name);
        return true;
    }
    bay_peer_principal(peer, name + 7);
    return strcmp(name, "Bearer mallory") != 0;
}

static void open_host(host *self, bay_handler_fn handler, int *asked)
{
    bay_diag diag = {0};
    self->server = bay_server_new("s", "1");
    bay_server_tool_schema(self->server, "t", NULL, NULL, handler, NULL);
    if (asked != NULL) {
        *asked = 0;
        bay_server_identify(self->server, identify, asked);
    }
    assert_int_equal(bay_server_listen(self->server, "127.0.0.1:0", &diag), BAY_OK);
    self->loop = sdk_serving_loop(self->server);
    self->port = bay_server_port(self->server);
}

static void close_host(host *self)
{
    bay_server_free(self->server);
}

static void post(host *self, wire_client *client, const char *session, const char *extra,
                 const char *body)
{
    char fields[4096];
    snprintf(fields, sizeof(fields), WIRE_JSON "%s%s%s%s",
             session != NULL ? "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: " : "",
             session != NULL ? session : "", session != NULL ? "\r\n" : "", extra);
    wire_exchange(client, self->loop, self->port, "POST", "/mcp", fields, body);
}

static void begin_session(host *self, const char *extra, char *id, size_t size)
{
    wire_client client;
    post(self, &client, NULL, extra, INITIALIZE);
    assert_int_equal(client.status, 200);
    char *at = memmem(client.head.at, client.head.len, "Mcp-Session-Id: ", 16);
    assert_non_null(at);
    snprintf(id, size, "%.*s", (int)strcspn(at + 16, "\r"), at + 16);
    wire_close(&client);
}

static void strangers_are_refused(void **state)
{
    (void)state;
    host self;
    wire_client client;
    int asked;
    open_host(&self, tell_who, &asked);
    post(&self, &client, NULL, "", INITIALIZE);
    assert_int_equal(client.status, 401);
    assert_true(wire_head_has(&client, "WWW-Authenticate: Bearer realm=\"test\"\r\n"));
    assert_false(wire_head_has(&client, "X-Evil"));
    wire_close(&client);
    post(&self, &client, NULL, "Authorization: Bearer mallory\r\n", INITIALIZE);
    assert_int_equal(client.status, 401);
    assert_false(wire_head_has(&client, "WWW-Authenticate"));
    wire_close(&client);
    post(&self, &client, NULL, "Authorization: Bearer long\r\n", INITIALIZE);
    assert_int_equal(client.status, 401);
    wire_close(&client);
    wire_exchange(&client, self.loop, self.port, "GET", "/sse", "Accept: text/event-stream\r\n",
                  NULL);
    assert_int_equal(client.status, 401);
    wire_close(&client);
    assert_int_equal(asked, 4);
    /* Before that it is looked at where it comes from, and a browser may ask for the rules. */
    post(&self, &client, NULL, "Host: evil.example\r\n", INITIALIZE);
    assert_int_equal(client.status, 403);
    wire_close(&client);
    wire_exchange(&client, self.loop, self.port, "OPTIONS", "/mcp",
                  "Origin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n", NULL);
    assert_int_equal(client.status, 204);
    wire_close(&client);
    assert_int_equal(asked, 4);
    close_host(&self);
}

static void a_session_is_its_callers_alone(void **state)
{
    (void)state;
    host self;
    wire_client client;
    char id[64];
    int asked;
    open_host(&self, tell_who, &asked);
    begin_session(&self, "Authorization: Bearer alice\r\n", id, sizeof(id));
    post(&self, &client, id, "Authorization: Bearer alice\r\n", CALL_T);
    assert_int_equal(client.status, 200);
    assert_true(wire_body_has(&client, "you are <alice>"));
    wire_close(&client);
    static const char *const others[] = {"Authorization: Bearer bob\r\n",
                                         "Authorization: Bearer alice2\r\n",
                                         "Authorization: Bearer nobody\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        post(&self, &client, id, others[i], CALL_T);
        assert_int_equal(client.status, 404);
        wire_close(&client);
    }
    begin_session(&self, "Authorization: Bearer nobody\r\n", id, sizeof(id));
    post(&self, &client, id, "Authorization: Bearer nobody\r\n", CALL_T);
    assert_true(wire_body_has(&client, "you are <>"));
    wire_close(&client);
    close_host(&self);
}

/* HTTP+SSE: the way in is the opener's alone, too. */
static void an_event_stream_is_its_callers_alone(void **state)
{
    (void)state;
    host self;
    wire_client stream;
    wire_client client;
    char path[256] = "";
    int asked;
    open_host(&self, tell_who, &asked);
    wire_request(&stream, self.loop, self.port, "GET", "/sse",
                 "Accept: text/event-stream\r\nAuthorization: Bearer alice\r\n", NULL);
    sse_block block = {0};
    TURN_UNTIL(self.loop, wire_pump(&stream), wire_event(&stream, &block));
    snprintf(path, sizeof(path), "%.*s", BAY_STR(block.data));
    assert_non_null(strstr(path, "/messages?sessionId="));
    wire_exchange(&client, self.loop, self.port, "POST", path,
                  WIRE_JSON "Authorization: Bearer bob\r\n", INITIALIZE);
    assert_int_equal(client.status, 404);
    wire_close(&client);
    const char *const says[] = {
        INITIALIZE, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", CALL_T};
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        wire_exchange(&client, self.loop, self.port, "POST", path,
                      WIRE_JSON "Authorization: Bearer alice\r\n", says[i]);
        assert_int_equal(client.status, 202);
        wire_close(&client);
    }
    TURN_UNTIL(self.loop, wire_pump(&stream), wire_body_has(&stream, "you are <alice>"));
    wire_close(&stream);
    close_host(&self);
}

static void a_call_lets_its_stream_go_and_is_found_again(void **state)
{
    (void)state;
    host self;
    wire_client client;
    char id[64];
    char fields[256];
    held = NULL;
    open_host(&self, let_go, NULL);
    begin_session(&self, "", id, sizeof(id));
    post(&self, &client, id, "",
         SAY("2", "tools/call", "{\"name\":\"t\",\"_meta\":{\"progressToken\":1}}"));
    assert_int_equal(client.status, 200);
    assert_true(wire_head_has(&client, "text/event-stream"));
    assert_true(wire_body_has(&client, "id: 1-0\n"));
    assert_true(wire_body_has(&client, "retry: 250\n\n"));
    assert_false(wire_body_has(&client, "progress"));
    wire_close(&client);
    assert_non_null(held);
    assert_false(bay_call_is_cancelled(held));
    bay_call_release_stream(held, 1); /* it is gone already */
    bay_call_reply(held, "found again");
    snprintf(fields, sizeof(fields),
             "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\nLast-Event-ID: 1-0\r\n", id);
    wire_exchange(&client, self.loop, self.port, "GET", "/mcp", fields, NULL);
    assert_int_equal(client.status, 200);
    assert_true(wire_body_has(&client, "while nobody listens"));
    assert_true(wire_body_has(&client, "found again"));
    wire_close(&client);
    close_host(&self);
}

/* Where nobody could come back, nothing happens. */
static void other_revisions_keep_their_stream(void **state)
{
    (void)state;
    host self;
    wire_client client;
    held = NULL;
    open_host(&self, let_go, NULL);
    wire_request(&client, self.loop, self.port, "POST", "/mcp",
                 WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                           "Mcp-Name: t\r\n",
                 SAY("2", "tools/call",
                     "{\"name\":\"t\",\"_meta\":{\"progressToken\":1,\"io.modelcontextprotocol/"
                     "protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"
                     "clientCapabilities\":{}}}"));
    TURN_UNTIL(self.loop, wire_pump(&client), held != NULL);
    bay_call_reply(held, "on the same stream");
    TURN_UNTIL(self.loop, wire_pump(&client), wire_body_has(&client, "on the same stream"));
    assert_true(wire_body_has(&client, "while nobody listens"));
    assert_false(wire_body_has(&client, "retry:"));
    wire_close(&client);
    close_host(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_session_is_its_callers_alone),
        cmocka_unit_test(an_event_stream_is_its_callers_alone),
        cmocka_unit_test(a_call_lets_its_stream_go_and_is_found_again),
        cmocka_unit_test(other_revisions_keep_their_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
