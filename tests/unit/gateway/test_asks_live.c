/* Questions through a whole gateway, with real servers behind it: over pipes and over HTTP,
 * suspended for stateless clients whose retries arrive on any of its loops, on the stream of
 * sessions, and with servers that die in between. */
#include "support/gateway_rig.h"

#define META                                                                                       \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':{'elicitation':{}}}"
#define TOP "{'timeouts':{'drain':'5s','terminate':'200ms','kill':'200ms'},'mcpServers':{"

#define HASTY "{'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms'},'mcpServers':{"

enum { STATE = 600, MANY = 24 };

static void start(gateway_rig *self, const char *settings, uint32_t workers)
{
    rig_open(self, settings, workers);
    wait_until(atomic_load(&self->started) == 1);
}

static void go(const gateway_rig *self)
{
    FILE *file = fopen(self->go, "w");
    assert_non_null(file);
    fclose(file);
}

/* `state` "": a first call. On a connection of its own, which stays open. */
static void post_call(client *one, const gateway_rig *to, const char *tool, const char *more)
{
    char fields[300];
    char body[3000];
    client_open(one, to);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s','arguments'"
                   ":{'n':1}%s," META "}}",
                   tool, more);
    client_post(one, "/mcp", fields, body);
}

static void call_suspended(const gateway_rig *to, const char *tool, char state[STATE])
{
    client one;
    post_call(&one, to, tool, "");
    (void)client_reply(&one);
    const char *at = client_find(&one, "\"requestState\":\"");
    if (at == NULL) {
        print_error("%s: %.*s\n", tool, (int)one.got.len, one.got.at);
    }
    assert_non_null(at);
    assert_non_null(
        client_find(&one, "\"inputRequests\":{\"q1\":{\"method\":\"elicitation/create\""));
    at += strlen("\"requestState\":\"");
    size_t len = strcspn(at, "\"");
    assert_true(len < STATE);
    memcpy(state, at, len);
    state[len] = '\0';
    client_close(&one);
}

static void retry_open(client *one, const gateway_rig *to, const char *tool, const char *state,
                       const char *answer)
{
    char more[STATE + 500];
    (void)snprintf(more, sizeof(more), ",'requestState':'%s','inputResponses':{'q1':%s}", state,
                   answer);
    post_call(one, to, tool, more);
}

static void expect_retry(const gateway_rig *to, const char *tool, const char *state,
                         const char *answer, const char *part)
{
    client one;
    retry_open(&one, to, tool, state, answer);
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    client_close(&one);
}

#define ACCEPT "{'action':'accept','content':{'name':'n-%d'}}"

static void suspend_many(const gateway_rig *self, const char *tool)
{
    static char states[MANY][STATE];
    char answer[200];
    char part[200];
    for (int i = 0; i < MANY; i++) {
        call_suspended(self, tool, states[i]);
    }
    for (int i = MANY; i-- > 0;) {
        (void)snprintf(answer, sizeof(answer), ACCEPT, i);
        (void)snprintf(part, sizeof(part),
                       "\"answer\":{\"action\":\"accept\",\"content\":{\"name\":"
                       "\"n-%d\"}}",
                       i);
        expect_retry(self, tool, states[i], answer, part);
        expect_retry(self, tool, states[i], answer, "is over"); /* wherever it arrives */
    }
}

static void retries_arrive_on_any_loop(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {1, 3};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gateway_rig self;
        start(&self, TOP RIG_SERVER("a", "stdio", "good", ",'processes':32") "},'limits':{}}",
              numbers[i]);
        suspend_many(&self, "a.asks");
        rig_close(&self);
    }
}

static void over_http_too(void **state)
{
    (void)state;
    gateway_rig self;
    char settings[600];
    int port;
    pid_t server = rig_start_http(&port);
    (void)snprintf(settings, sizeof(settings), TOP "'a':{'url':'http://127.0.0.1:%d/mcp'}}}", port);
    start(&self, settings, 2);
    suspend_many(&self, "a.asks");
    rig_close(&self);
    rig_end_http(server);
}

static void a_server_that_dies_while_its_call_is_suspended(void **state)
{
    (void)state;
    gateway_rig self;
    char token[STATE];
    start(&self, TOP RIG_SERVER("a", "stdio", "good", "") "}}", 2);
    call_suspended(&self, "a.asks_exit", token);
    go(&self);
    wait_until(rig_log_count("going down") > 0 || rig_log_count("exited") > 0);
    wait_until(rig_log_count("status 3") > 0);
    expect_retry(&self, "a.asks_exit", token, "{'action':'accept'}",
                 "The call may have been carried out.");
    expect_retry(&self, "a.asks_exit", token, "{'action':'accept'}", "is over");
    expect_call(&self, "a.echo", "good"); /* a new process serves */
    rig_close(&self);
}

/* While suspended, and while under way again: nothing is left behind, which rig_close sees. */
static void a_gateway_that_ends_with_calls_suspended(void **state)
{
    (void)state;
    gateway_rig self;
    char token[STATE];
    client one;
    start(&self, TOP RIG_SERVER("a", "stdio", "good", "") "}}", 3);
    call_suspended(&self, "a.asks", token);
    call_suspended(&self, "a.asks", token);
    retry_open(&one, &self, "a.asks", token, "{}"); /* asked again, and answered with that */
    (void)client_reply(&one);
    assert_non_null(client_find(&one, "input_required"));
    client_close(&one);
    rig_close(&self);
}

/* The old process is kept for what is suspended with it, as long as the configuration lets it;
 * before that a reload is not over. */
static void a_reload_with_calls_suspended(void **state)
{
    (void)state;
    gateway_rig self;
    char token[STATE];
    start(&self, TOP RIG_SERVER("a", "stdio", "good", "") "}}", 2);
    call_suspended(&self, "a.asks", token);
    wait_until(rig_log_count("a: starting -> ready") == 1);
    rig_configure(&self, TOP RIG_SERVER("a", "stdio", "good", ",'env':{'OTHER':'1'}") "}}");
    rig_ask_reload(&self);
    wait_until(rig_log_count("a: starting -> ready") == 2);
    expect_retry(&self, "a.asks", token, "{'action':'accept','content':{}}",
                 "\"answer\":{\"action\":\"accept\"");
    wait_until(atomic_load(&self.reloaded) == 1);
    call_suspended(&self, "a.asks", token);
    rig_configure(&self, HASTY RIG_SERVER("a", "stdio", "good", ",'env':{'OTHER':'2'}") "}}");
    rig_ask_reload(&self);
    wait_until(atomic_load(&self.reloaded) == 2);
    wait_until(rig_log_count("a: ready -> closed") == 2);
    expect_retry(&self, "a.asks", token, "{'action':'accept','content':{}}",
                 "the server is leaving the gateway");
    expect_call(&self, "a.echo", "good");
    rig_close(&self);
}

static void a_call_given_up_is_cancelled_there(void **state)
{
    (void)state;
    gateway_rig self;
    char token[STATE];
    start(&self,
          "{'timeouts':{'answer':'50ms','terminate':'200ms','kill':'200ms'},'mcpServers':"
          "{" RIG_SERVER("a", "stdio", "good", "") "}}",
          2);
    call_suspended(&self, "a.asks", token);
    wait_until(rig_log_count("cancelled") > 0); /* the server says so */
    expect_call(&self, "a.echo", "good");
    rig_close(&self);
}

/* Clients that go away at every moment of a resumed call: before it is read, while the answer is on
 * its way to the server, while the result comes back. A disconnect is a cancel, so the server's
 * session is lent to the next one, and the last one is served. */
static void clients_that_leave_when_they_have_answered(void **state)
{
    (void)state;
    gateway_rig self;
    char token[STATE];
    start(&self, TOP RIG_SERVER("a", "stdio", "good", ",'processes':2") "}}", 3);
    for (int i = 0; i < MANY; i++) {
        client one;
        client two;
        call_suspended(&self, "a.asks", token);
        retry_open(&one, &self, "a.asks", token, "{'action':'accept','content':{}}");
        if (i % 3 == 1) {
            poll(NULL, 0, i / 6);
        }
        retry_open(&two, &self, "a.asks", token, "{'action':'decline'}"); /* and another */
        if (i % 2 == 0) {
            client_close(&one);
        }
        (void)client_reply(&two);
        assert_int_equal(client_status(&two), 200);
        client_close(&two);
        if (i % 2 != 0) {
            client_close(&one);
        }
    }
    call_suspended(&self, "a.asks", token);
    expect_retry(&self, "a.asks", token, "{'action':'accept','content':{}}",
                 "\"answer\":{\"action\":\"accept\"");
    rig_close(&self);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* A session with these capabilities; `fields` are what its requests carry. */
static void session_open(client *one, const gateway_rig *to, const char *capabilities,
                         char fields[400])
{
    char body[500];
    client_open(one, to);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
                   "'2025-11-25','capabilities':%s,'clientInfo':{'name':'c','version':'1'}}}",
                   capabilities);
    client_post(one, "/mcp", "", body);
    assert_int_equal(client_reply(one), 200);
    const char *at = client_find(one, "Mcp-Session-Id: ");
    assert_non_null(at);
    (void)snprintf(fields, 400, "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %.*s\r\n",
                   (int)strcspn(at + 16, "\r"), at + 16);
    client_forget(one);
}

/* Calls, is asked on the call's stream, and answers on another connection, perhaps at another loop.
 */
static void session_call(client *one, const gateway_rig *to, const char *fields, const char *tool,
                         const char *asked, const char *result)
{
    client two;
    char text[600];
    (void)snprintf(text, sizeof(text),
                   "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'%s'}}", tool);
    client_post(one, "/mcp", fields, text);
    client_wait_for(one, asked);
    const char *ask = client_find(one, "\"id\":\"bay-");
    assert_non_null(ask);
    (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%.*s,'result':%s}",
                   (int)strcspn(ask + 5, ","), ask + 5, result);
    client_open(&two, to);
    client_post(&two, "/mcp", fields, text);
    assert_int_equal(client_status(&two), 202);
    client_close(&two);
}

static void a_session_is_asked_on_the_calls_stream(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {1, 3};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gateway_rig self;
        client one;
        char fields[400];
        start(&self, TOP RIG_SERVER("a", "stdio", "good", "") "}}", numbers[i]);
        session_open(&one, &self, "{'elicitation':{}}", fields);
        session_call(&one, &self, fields, "a.asks",
                     "\"method\":\"elicitation/create\",\"params\":{\"message\":\"name?\"",
                     "{'action' : 'decline','x':1.0}");
        client_wait_for(&one, "\"answer\":{\"action\" : \"decline\",\"x\":1.0}");
        client_close(&one);
        rig_close(&self);
    }
}

/* After its call, from another loop's process: to the client that was asked, and to no other. */
static void a_session_hears_that_its_url_is_done_with(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {1, 3};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gateway_rig self;
        client one;
        client listening[2];
        char fields[2][400];
        char get[600];
        start(&self, TOP RIG_SERVER("a", "stdio", "newer", "") "}}", numbers[i]);
        for (int k = 0; k < 2; k++) {
            session_open(&one, &self, "{'elicitation':{'url':{}}}", fields[k]);
            client_close(&one);
            client_open(&listening[k], &self);
            (void)snprintf(get, sizeof(get),
                           "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                           "%s\r\n",
                           fields[k]);
            assert_true(client_send(&listening[k], get));
            assert_int_equal(client_status(&listening[k]), 200);
        }
        client_open(&one, &self);
        session_call(&one, &self, fields[0], "a.asks_url", "\"mode\":\"url\"",
                     "{'action':'accept'}");
        client_wait_for(&one, "\"answer\":{\"action\":\"accept\"}");
        go(&self);
        client_wait_for(&listening[0], "notifications/elicitation/complete");
        assert_null(client_find(&listening[1], "elicitation"));
        client_close(&one);
        client_close(&listening[0]);
        client_close(&listening[1]);
        rig_close(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_arrive_on_any_loop),
        cmocka_unit_test(over_http_too),
        cmocka_unit_test(a_server_that_dies_while_its_call_is_suspended),
        cmocka_unit_test(a_gateway_that_ends_with_calls_suspended),
        cmocka_unit_test(a_reload_with_calls_suspended),
        cmocka_unit_test(a_call_given_up_is_cancelled_there),
        cmocka_unit_test(clients_that_leave_when_they_have_answered),
        cmocka_unit_test(a_session_is_asked_on_the_calls_stream),
        cmocka_unit_test(a_session_hears_that_its_url_is_done_with),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
