/* What the gateway says where it has nothing, and to requests that it sent itself. */
#include "support/gateway_rig.h"

static void expect(gateway_rig *rig, const char *verb, const char *path, const char *fields,
                   int status, const char *part)
{
    client one;
    char text[900];
    client_open(&one, rig);
    (void)snprintf(text, sizeof(text),
                   "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   "Accept: application/json, text/event-stream\r\nContent-Length: 2\r\n%s\r\n{}",
                   verb, path, fields);
    assert_true(client_send(&one, text));
    assert_int_equal(client_reply(&one), status);
    if (client_find(&one, part) == NULL) {
        print_error("%s %s: wanted %s\ncame: %.*s\n", verb, path, part, (int)one.got.len,
                    one.got.at);
    }
    assert_non_null(client_find(&one, part));
    assert_null(client_find(&one, "hidden"));
    client_close(&one);
}

static void what_is_not_there_is_named_and_nothing_else(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig, "{'mcpServers':{" RIG_SERVER("hidden", "stdio", "good", "") "}}", 1);
    wait_until(atomic_load(&rig.started) == 1);
    expect(&rig, "POST", "/mcp/nobody", "", 404,
           "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"this gateway has no "
           "server \\\"nobody\\\" (path /mcp/NAME");
    expect(&rig, "GET", "/mcp/nobody/sse", "", 404, "no server \\\"nobody\\\"");
    expect(&rig, "GET", "/mcp/", "", 404, "no server \\\"\\\"");
    expect(&rig, "POST", "/mcp/@nobody", "", 404, "no profile \\\"nobody\\\"");
    expect(&rig, "POST", "/a2a/nobody", "", 404, "this gateway has no agent \\\"nobody\\\"");
    expect(&rig, "GET", "/a2a/nobody/.well-known/agent-card.json", "", 404,
           "has no agent \\\"nobody\\\"");
    expect(&rig, "GET", "/.well-known/agent-card.json", "", 404, "has no card of its own");
    expect(&rig, "GET", "/.well-known/agent.json", "", 404, "has no card of its own");
    expect(&rig, "GET", "/mcp/%22%3Cscript%3E", "", 404, "%22%3Cscript%3E\\\"");
    rig_close(&rig);
}

/* The guard is the same everywhere, whoever serves a path and in whose words. */
static void each_path_says_what_it_is_and_is_guarded(void **state)
{
    static const char *const paths[] = {"/",
                                        "/mcp",
                                        "/mcp/one",
                                        "/mcp/@p",
                                        "/mcp/nobody",
                                        "/sse",
                                        "/messages",
                                        "/mcp/one/sse",
                                        "/a2a",
                                        "/a2a/an",
                                        "/a2a/an/v1",
                                        "/a2a/an/push/x",
                                        "/healthz",
                                        "/readyz",
                                        "/nothing",
                                        "/a2a/keys.json",
                                        "/a2a/an/.well-known/agent-card.json"};
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{'trustedProxies':['127.0.0.1'],'mcpServers':{" RIG_SERVER("one", "stdio", "good",
                                                                         "") "}}",
             1);
    wait_until(atomic_load(&rig.started) == 1);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        static const char *const verbs[] = {"GET", "POST", "OPTIONS"};
        for (size_t v = 0; v < ARRAY_LEN(verbs); v++) {
            expect(&rig, verbs[v], paths[i], "Origin: http://evil.example\r\n", 403,
                   "The Origin is not allowed");
            expect(&rig, verbs[v], paths[i], "X-Forwarded-Host: evil.example\r\n", 403,
                   "not served under the name");
        }
    }
    expect(&rig, "GET", "/", "", 200, "Content-Type: text/plain; charset=utf-8\r\n");
    expect(&rig, "GET", "/", "", 200, "MCP clients connect to /mcp at this address");
    client browser;
    client_open(&browser, &rig);
    assert_true(
        client_send(&browser, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"));
    assert_int_equal(client_reply(&browser), 200);
    assert_non_null(client_find(&browser, "Content-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(client_find(&browser, "<code>/mcp</code>"));
    client_close(&browser);
    expect(&rig, "POST", "/", "", 405, "Allow: GET, HEAD\r\n");
    expect(&rig, "GET", "/healthz", "X-Forwarded-For: 192.0.2.1\r\n", 200, "ok");
    rig_close(&rig);
}

/* An upstream that is this gateway itself, as behind a balancer that nobody thought of. */
static void its_own_requests_are_refused(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[400];
    char fields[80];
    rig_open(&rig, "{'mcpServers':{" RIG_SERVER("one", "stdio", "good", "") "}}", 2);
    wait_until(atomic_load(&rig.started) == 1);
    (void)snprintf(fields, sizeof(fields), "Via: 1.1 %s\r\n", rig.gateway->via);
    expect(&rig, "POST", "/mcp", fields, 508, "a loop");
    expect(&rig, "POST", "/a2a/any", fields, 508, "a loop");
    (void)snprintf(
        text, sizeof(text),
        "{'mcpServers':{" RIG_SERVER("one", "stdio", "good", "") ",'self':{'url':"
                                                                 "'http://127.0.0.1:%u/mcp'}}}",
        gateway_port(rig.gateway));
    rig_configure(&rig, text);
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    client one;
    client_open(&one, &rig);
    client_call(&one, "self.one.echo");
    (void)client_reply(&one);
    assert_non_null(client_find(&one, "a loop: this request has come through this gateway before"));
    client_close(&one);
    wait_until(is_answered(&rig, "one.echo", "\"good\""));
    rig_close(&rig);
}

/* Beside another gateway, whose descriptors come and go. */
static void close_uncounted(gateway_rig *self)
{
    gateway_stop(self->gateway);
    net_thread_join(&self->thread);
    assert_int_equal(self->result, BAY_OK);
    gateway_free(self->gateway);
    config_free(self->config);
    (void)unlink(self->path);
}

static void expect_loop(gateway_rig *to, const char *path, const char *fields, const char *body)
{
    client one;
    client_open(&one, to);
    client_post(&one, path, fields, body);
    (void)client_reply(&one);
    bool is_seen = client_find(&one, "a loop: this request has come through") != NULL;
    if (!is_seen) {
        print_error("%s: %.*s\n", path, (int)one.got.len, one.got.at);
    }
    assert_true(is_seen);
    client_close(&one);
}

/* What came through the second gateway does not come to it again through the first one, whichever
 * protocols lie between. */
static void bridges_pass_on_whom_a_call_came_through(void **state)
{
    (void)state;
    gateway_rig first, second;
    char text[700];
    char via[80];
    char fields[300];
    rig_open(&second,
             "{'mcpServers':{" RIG_SERVER("one", "stdio", "good",
                                          "") "},'agents':{'made':{'tools':['one.echo']}}}",
             1);
    wait_until(atomic_load(&second.started) == 1);
    (void)snprintf(text, sizeof(text),
                   "{'mcpServers':{'b':{'url':'http://127.0.0.1:%u/mcp'}},'agents':{"
                   "'far':{'url':'http://127.0.0.1:%u/a2a/made'},'mine':{'tools':['b.one.echo']}}}",
                   gateway_port(second.gateway), gateway_port(second.gateway));
    rig_open(&first, text, 1);
    wait_until(atomic_load(&first.started) == 1);
    wait_until(is_answered(&first, "b.one.echo", "\"good\""));
    wait_until(is_answered(&first, "far.one.echo", "is missing"));
    (void)snprintf(via, sizeof(via), "Via: 1.0 fred, 1.1 %s\r\n", second.gateway->via);
#define CALL_OF(tool)                                                                              \
    "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'" tool                        \
    "','arguments':{'message':'x'}," RIG_META "}}}"
#define FIELDS_OF(tool)                                                                            \
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " tool "\r\n%s"
    (void)snprintf(fields, sizeof(fields), FIELDS_OF("b.one.echo"), via);
    expect_loop(&first, "/mcp", fields, CALL_OF("b.one.echo"));
    (void)snprintf(fields, sizeof(fields), FIELDS_OF("far.one.echo"), via);
    expect_loop(&first, "/mcp", fields, CALL_OF("far.one.echo"));
    (void)snprintf(fields, sizeof(fields), "A2A-Version: 1.0\r\n%s", via);
    static const char message[] =
        "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m',"
        "'role':'ROLE_USER','parts':[{'data':{'tool':'b.one.echo','arguments':{}}}]}}}";
    expect_loop(&first, "/a2a/mine", fields, message);
    close_uncounted(&first);
    close_uncounted(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_named_and_nothing_else),
        cmocka_unit_test(each_path_says_what_it_is_and_is_guarded),
        cmocka_unit_test(its_own_requests_are_refused),
        cmocka_unit_test(bridges_pass_on_whom_a_call_came_through),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
