/* Rules in a running gateway: where a call comes from, on whatever loop its session is, and agents
 * that are not there for everybody. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "support/agent_peer.h"

static agent_peer peer;

#define ACME "X-Org: acme\r\n"

/* The answer on a connection of its own, without its head and without `name`. */
static void ask(const gateway_rig *to, const char *verb, const char *path, const char *fields,
                const char *name, buf *out)
{
    client one;
    char text[900];
    client_open(&one, to);
    (void)snprintf(text, sizeof(text),
                   "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   "Accept: application/json, text/event-stream\r\nContent-Length: 2\r\n%s\r\n{}",
                   verb, path, fields);
    assert_true(client_send(&one, text));
    buf_init(out, RIG_REPLY);
    buf_printf(out, "%d ", client_reply(&one));
    const char *body = client_find(&one, "\r\n\r\n");
    buf_str(out, str_of(body != NULL ? body : ""));
    buf_char(out, '\0');
    assert_int_equal(out->err, BAY_OK);
    for (char *at = out->at; (at = strstr(at, name)) != NULL; at++) {
        memset(at, '#', strlen(name));
    }
    client_close(&one);
}

static void expect_same(const gateway_rig *to, const char *verb, const char *path)
{
    static const char *const names[] = {"far", "odd"};
    buf said[2];
    for (size_t i = 0; i < 2; i++) {
        char whole[200];
        (void)snprintf(whole, sizeof(whole), path, names[i]);
        ask(to, verb, whole, "", names[i], &said[i]);
    }
    if (strcmp(said[0].at, said[1].at) != 0) {
        fail_msg("%s %s: %s, but %s", verb, path, said[0].at, said[1].at);
    }
    buf_fini(&said[0]);
    buf_fini(&said[1]);
}

static bool is_said(const gateway_rig *to, const char *verb, const char *path, const char *fields,
                    const char *part)
{
    buf said;
    ask(to, verb, path, fields, "\n", &said);
    bool is_there = strstr(said.at, part) != NULL;
    buf_fini(&said);
    return is_there;
}

static bool is_listed(const gateway_rig *to, const char *fields, const char *part)
{
    client one;
    char all[400];
    client_open(&one, to);
    (void)snprintf(all, sizeof(all),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n%s", fields);
    client_post(&one, "/mcp", all,
                "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" RIG_META "}}}");
    assert_int_equal(client_reply(&one), 200);
    bool is_there = client_find(&one, part) != NULL;
    client_close(&one);
    return is_there;
}

static bool is_listed_in(const gateway_rig *to, const char *session, const char *fields)
{
    client one;
    char all[600];
    client_open(&one, to);
    (void)snprintf(all, sizeof(all), "Mcp-Session-Id: %s\r\n%s", session, fields);
    client_post(&one, "/mcp", all, "{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
    assert_int_equal(client_reply(&one), 200);
    bool is_there = client_find(&one, "\"s.") != NULL;
    client_close(&one);
    return is_there;
}

static void open_session(const gateway_rig *to, char *session, size_t size)
{
    client one;
    client_open(&one, to);
    client_post(&one, "/mcp", "",
                "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{"
                "'protocolVersion':'2025-06-18','capabilities':{},"
                "'clientInfo':{'name':'c','version':'1'}}}");
    assert_int_equal(client_reply(&one), 200);
    const char *at = client_find(&one, "\r\nMcp-Session-Id: ");
    assert_non_null(at);
    (void)snprintf(session, size, "%.*s", (int)strcspn(at + 18, "\r"), at + 18);
    client_close(&one);
}

/* A header field and the client's address, of a request of its own and of a session's on either
 * loop. */
static void where_a_call_comes_from_is_read_on_every_loop(void **state)
{
    (void)state;
    gateway_rig rig;
    char session[300];
    rig_open(&rig,
             "{'timeouts':{'drain':100},'trustedProxies':['127.0.0.1'],"
             "'policy':{'default':'deny','rules':["
             "{'allow':'*','who':{'header':{'X-Org':'acme'}}},"
             "{'allow':'*','who':{'address':'192.0.2.0/24'}}]},"
             "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "}}",
             2);
    wait_until(atomic_load(&rig.started) == 1);
    wait_until(is_listed(&rig, ACME, "\"s."));
    assert_false(is_listed(&rig, "", "\"s."));
    assert_false(is_listed(&rig, ACME ACME, "\"s."));
    assert_false(is_listed(&rig, "X-Forwarded-For: 203.0.113.7\r\n", "\"s."));
    wait_until(is_listed(&rig, "X-Forwarded-For: 192.0.2.7\r\n", "\"s."));
    open_session(&rig, session, sizeof(session));
    for (int i = 0; i < 16; i++) { /* connections go to either loop */
        assert_true(is_listed_in(&rig, session, ACME));
        assert_true(is_listed_in(&rig, session, "X-Forwarded-For: 192.0.2.7\r\n"));
        assert_false(is_listed_in(&rig, session, ""));
    }
    rig_close(&rig);
}

/* What is said first in a stream of updates of this resource. */
static bool is_followed(const gateway_rig *to, const char *fields)
{
    client one;
    char all[400];
    client_open(&one, to);
    (void)snprintf(all, sizeof(all),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n%s",
                   fields);
    client_post(
        &one, "/mcp", all,
        "{'jsonrpc':'2.0','id':1,'method':'subscriptions/listen','params':{'notifications':{"
        "'resourceSubscriptions':['counter://visits']}," RIG_META "}}}");
    client_wait_for(&one, "notifications/subscriptions/acknowledged");
    client_wait_for(&one, "\n\n");
    bool is_there = client_find(&one, "counter://visits") != NULL;
    client_close(&one);
    return is_there;
}

static bool is_subscribed(const gateway_rig *to, const char *session, const char *fields)
{
    client one;
    char all[600];
    client_open(&one, to);
    (void)snprintf(all, sizeof(all), "Mcp-Session-Id: %s\r\n%s", session, fields);
    client_post(&one, "/mcp", all,
                "{'jsonrpc':'2.0','id':3,'method':'resources/subscribe','params':{"
                "'uri':'counter://visits'}}");
    assert_int_equal(client_reply(&one), 200);
    bool is_there = client_find(&one, "\"result\":{}") != NULL;
    client_close(&one);
    return is_there;
}

/* Also a subscription comes from somewhere. */
static void a_subscription_comes_from_where_its_request_does(void **state)
{
    (void)state;
    gateway_rig rig;
    char session[300];
    rig_open(&rig,
             "{'timeouts':{'drain':100},'policy':{'default':'deny','rules':["
             "{'allow':['*','resource:*'],'who':{'header':{'X-Org':'acme'}}}]},"
             "'mcpServers':{'r':{'command':'@/examples/resources'}}}",
             1);
    wait_until(atomic_load(&rig.started) == 1);
    open_session(&rig, session, sizeof(session));
    wait_until(is_subscribed(&rig, session, ACME));
    assert_false(is_subscribed(&rig, session, ""));
    assert_true(is_followed(&rig, ACME));
    assert_false(is_followed(&rig, ""));
    rig_close(&rig);
}

/* An agent that rules hide is like one that nobody configured, at each of its paths. */
static void a_hidden_agent_is_not_there(void **state)
{
    static const struct {
        const char *verb;
        const char *path;
    } asked[] = {{"POST", "/a2a/%s"},
                 {"GET", "/a2a/%s"},
                 {"POST", "/a2a/%s/v1/message:send"},
                 {"GET", "/a2a/%s/v1/tasks"},
                 {"GET", "/a2a/%s/.well-known/agent-card.json"},
                 {"GET", "/a2a/%s/.well-known/agent.json"},
                 {"GET", "/a2a/%s/push/x"},
                 {"POST", "/a2a/%s/push/x"}};
    (void)state;
    gateway_rig rig;
    char text[900];
    int baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    (void)snprintf(
        text, sizeof(text),
        "{'timeouts':{'drain':100},'policy':{'default':'deny','rules':["
        "{'allow':['*','agent:made']},"
        "{'allow':'agent:far','who':{'header':{'X-Org':'acme'}}}]},"
        "'mcpServers':{" RIG_SERVER(
            "s", "legacy", "good",
            "") "},"
                "'agents':{'far':{'url':'http://127.0.0.1:%u'},'made':{'tools':['s.*']}}}",
        peer.port);
    rig_open(&rig, text, 1);
    wait_until(atomic_load(&rig.started) == 1);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        expect_same(&rig, asked[i].verb, asked[i].path);
    }
    assert_true(is_said(&rig, "GET", "/a2a", "", "\"id\":\"made\""));
    assert_false(is_said(&rig, "GET", "/a2a", "", "\"far\""));
    assert_true(is_said(&rig, "GET", "/a2a", ACME, "\"id\":\"far\""));
    assert_true(is_said(&rig, "GET", "/a2a/made/.well-known/agent-card.json", "", "200 "));
    assert_false(is_said(&rig, "POST", "/a2a/far", ACME, "no agent"));
    wait_until(is_listed(&rig, ACME, "\"far."));
    assert_false(is_listed(&rig, "", "\"far."));
    rig.descriptors = baseline;
    peer_close(&peer);
    rig_close(&rig);
}

/* What a process makes once and keeps is there before anything is counted. */
static int warm_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        if (!peer_open(&peer, 0, NULL)) {
            return -1;
        }
        peer_close(&peer);
    }
    return 0;
}

/* The same tool in both eras' words, at one server without a bound and at one with it. */
static void a_result_over_the_bound_of_its_tool_is_refused(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char session[300];
    char fields[400];
    rig_open(&rig,
             "{'timeouts':{'drain':100},"
             "'policy':{'tools':{'s.*':{'result':{'bytes':'1K'}}}},"
             "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "," RIG_SERVER("free", "stdio",
                                                                                  "good", "") "}}",
             1);
    wait_until(atomic_load(&rig.started) == 1);
    wait_until(is_listed(&rig, "", "\"s.") && is_listed(&rig, "", "\"free."));
    assert_true(is_answered(&rig, "free.big", "xxxxxxxx"));
    assert_false(is_answered(&rig, "s.big", "xxxxxxxx"));
    assert_true(is_answered(&rig, "s.big", "\"patchbay/reason\":\"result_too_large\""));
    assert_true(is_answered(&rig, "s.big", "\"patchbay/mayHaveRun\":true"));
    assert_true(is_answered(&rig, "s.big", "passes on at most 1024"));
    assert_false(is_answered(&rig, "s.big", "structuredContent"));
    assert_true(is_answered(&rig, "s.echo", "\"good\""));
    open_session(&rig, session, sizeof(session));
    (void)snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", session);
    client_open(&one, &rig);
    client_post(&one, "/mcp", fields,
                "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'s.big'}}");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"isError\":true"));
    assert_non_null(client_find(&one, "result_too_large"));
    client_close(&one);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_a_call_comes_from_is_read_on_every_loop),
        cmocka_unit_test(a_subscription_comes_from_where_its_request_does),
        cmocka_unit_test(a_hidden_agent_is_not_there),
        cmocka_unit_test(a_result_over_the_bound_of_its_tool_is_refused),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
