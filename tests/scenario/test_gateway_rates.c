/* Limits of rate in a running gateway: of callers, tools and addresses, on whatever loop a call is. */
#include "support/gateway_rig.h"

enum { LOOPS = 2 };

static void post(const gateway_rig *to, client *one, const char *from, const char *method,
                 const char *name, const char *body)
{
    char fields[400];
    client_open(one, to);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s"
                   "X-Forwarded-For: %s\r\n",
                   method, name != NULL ? "Mcp-Name: " : "", name != NULL ? name : "",
                   name != NULL ? "\r\n" : "", from);
    client_post(one, "/mcp", fields, body);
}

/* A call of that tool from that address: 200 and `part` in the answer, or it fails. */
static bool calls(const gateway_rig *to, const char *from, const char *tool, const char *part)
{
    client one;
    char body[600];
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':{}," RIG_META "}}}",
                   tool);
    post(to, &one, from, "tools/call", tool, body);
    bool is_said = client_reply(&one) == 200 && client_find(&one, part) != NULL;
    client_close(&one);
    return is_said;
}

/* The status; 0: `part` is not in the list. */
static int lists(const gateway_rig *to, const char *from, const char *part)
{
    client one;
    post(to, &one, from, "tools/list", NULL,
         "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" RIG_META "}}}");
    int status = client_reply(&one);
    bool has_part = client_find(&one, part) != NULL;
    client_close(&one);
    return status != 200 || has_part ? status : 0;
}

static int gets_prompt(const gateway_rig *to, const char *from, const char *part)
{
    client one;
    post(to, &one, from, "prompts/get", "s.p",
         "{'jsonrpc':'2.0','id':1,'method':'prompts/get','params':{'name':'s.p'," RIG_META "}}}");
    int status = client_reply(&one);
    if (part != NULL && client_find(&one, part) == NULL) {
        fail_msg("%s is not in the answer of status %d", part, status);
    }
    const char *retry = client_find(&one, "\r\nRetry-After: ");
    if (status == 429) { /* of 1/h, and up to a fifth more */
        assert_non_null(retry);
        assert_in_range(strtoul(retry + 15, NULL, 10), 3500, 4321);
    }
    client_close(&one);
    return status;
}

#define LIMITED                                                                                    \
    "\"patchbay/reason\":\"rate_limited\",\"patchbay/mayHaveRun\":false,\"patchbay/"               \
    "retryAfterMs\":"

static void a_caller_calls_a_tool_so_often(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{'timeouts':{'drain':100},'trustedProxies':['127.0.0.1'],"
             "'policy':{'rates':{'principal':'8/h'},'tools':{'s.echo':{'rate':'2/h'},"
             "'t.echo':{'total':'6/h','cost':3}}},"
             "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "," RIG_SERVER(
                 "t", "stdio", "good", "") "," RIG_SERVER("u", "stdio", "good", "") "}}",
             LOOPS);
    wait_until(atomic_load(&rig.started) == 1);
    wait_until(lists(&rig, "192.0.2.9", "s.echo") == 200);
    wait_until(lists(&rig, "192.0.2.9", "t.echo") == 200);
    wait_until(lists(&rig, "192.0.2.9", "u.echo") == 200);
    for (int i = 0; i < 2; i++) {
        assert_true(calls(&rig, "192.0.2.1", "s.echo", "\"text\""));
    }
    for (int i = 0; i < 3; i++) { /* connections go to either loop; a refusal is a result */
        assert_true(calls(&rig, "192.0.2.1", "s.echo", "\"isError\":true"));
        assert_true(calls(&rig, "192.0.2.1", "s.echo", LIMITED));
    }
    /* he has used up what he may call at all, refused calls too: others have not */
    assert_true(calls(&rig, "192.0.2.1", "u.echo", "one caller may make at most 8 a hour"));
    assert_true(calls(&rig, "192.0.2.2", "s.echo", "\"text\""));
    assert_true(calls(&rig, "2001:db8:0:1::1", "s.echo", "\"text\""));
    assert_true(calls(&rig, "2001:db8:0:1::2", "s.echo", "\"text\"")); /* of the same /64 */
    assert_true(calls(&rig, "2001:db8:0:1::3", "s.echo", LIMITED));
    /* what is dear, for all together */
    assert_true(calls(&rig, "192.0.2.3", "t.echo", "\"text\""));
    assert_true(calls(&rig, "192.0.2.4", "t.echo", "\"text\""));
    assert_true(calls(&rig, "192.0.2.5", "t.echo", "all callers together may call this"));
    /* lists come from the catalog */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(lists(&rig, "192.0.2.1", "tools"), 200);
    }
    rig_close(&rig);
}

static void what_has_no_tool_result_is_429(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{'timeouts':{'drain':100},'trustedProxies':['127.0.0.1'],"
             "'policy':{'rates':{'principal':'1/h'}},"
             "'mcpServers':{'s':{'command':'@/list_server','args':['same']}}}",
             LOOPS);
    wait_until(atomic_load(&rig.started) == 1);
    wait_until(lists(&rig, "192.0.2.9", "s.tools") == 200);
    assert_true(calls(&rig, "192.0.2.1", "s.tools", "same"));
    assert_int_equal(gets_prompt(&rig, "192.0.2.1", "\"patchbay/reason\":\"rate_limited\""), 429);
    assert_int_not_equal(gets_prompt(&rig, "192.0.2.2", NULL), 429);
    rig_close(&rig);
}

static void an_address_sends_so_much(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    rig_open(&rig,
             "{'timeouts':{'drain':100},'trustedProxies':['127.0.0.1'],"
             "'policy':{'rates':{'address':'3/h'}},"
             "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "}}",
             LOOPS);
    wait_until(atomic_load(&rig.started) == 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lists(&rig, "192.0.2.1", "tools"), 200);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lists(&rig, "192.0.2.1", ""), 429);
    }
    assert_int_equal(lists(&rig, "192.0.2.2", "tools"), 200);
    /* no caller is asked for there */
    client_open(&one, &rig);
    assert_true(client_send(&one, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                  "X-Forwarded-For: 192.0.2.1\r\n\r\n"));
    assert_int_equal(client_reply(&one), 200);
    client_close(&one);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_calls_a_tool_so_often),
        cmocka_unit_test(what_has_no_tool_result_is_429),
        cmocka_unit_test(an_address_sends_so_much),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
