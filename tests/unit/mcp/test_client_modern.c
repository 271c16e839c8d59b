/* The stateless era: results checked, versions retried, listens kept, replaced and opened again. */
#include "client_fixture.h"

static fixture fx;

static void test_result_types(void **state)
{
    (void)state;
    struct {
        const char *result;
        bool is_valid;
    } rows[] = {
        {"{'resultType':'partial'}", false},
        {"{'resultType':''}", false},
        {"{'resultType':null}", false},
        {"{'resultType':1}", false},
        {"{'resultType':'Complete'}", false},
        {"{'content':[]}", true},
        {"{'content':[],'resultType':'complete'}", true},
        {"{'content':[],'resultType':'c\\u006fmplete'}", true},
        {"{'resultType':'input_required','inputRequests':{'k':{'method':'elicitation/"
         "create'}},'requestState':'s'}",
         true},
        {"{'resultType':'task','taskId':'1','status':'working','createdAt':'t','lastUpdatedAt':'t',"
         "'ttlMs':null}",
         true},
    };
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static char text[512];
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':#,'result':%s}", rows[i].result);
        fx_reply(&fx, fx_next(&fx)->exchange, 200, text);
        assert_int_equal(call.done_count, 1);
        if (rows[i].is_valid) {
            snprintf(text, sizeof(text), "call result %s\n", rows[i].result);
            fx_saw(&fx, text); /* byte for byte */
        } else {
            fx_saw(&fx,
                   "call failed PROTOCOL sent what the server answered is no result of tools/call: "
                   "/resultType is none that such a result may have\n");
        }
    }
    fx_fini(&fx);
    /* What a legacy server calls its members is its own affair. */
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_line(&fx, fx_next(&fx)->exchange, FX_RESULT("{'resultType':'partial'}"));
    fx_saw(&fx, "call result {'resultType':'partial'}\n");
    fx_fini(&fx);
}

#define UNSUPPORTED(list)                                                                          \
    "{'jsonrpc':'2.0','id':#,'error':{'code':-32022,'message':'no','data':{'supported':" list "}}" \
    "}"

static void test_version_retried_inline(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
    fx_open(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/call", "{'name':'a','arguments':{'x':1.0}}");
    uint64_t first = fx_next(&fx)->exchange;
    fx_reply(&fx, first, 400, UNSUPPORTED("['2026-07-28']"));
    fx_next_kind(&fx, 'A');
    fx_record *again = fx_expect(&fx, "'params':{'name':'a','arguments':{'x':1.0},'_meta':");
    assert_true(again->exchange != first);
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_READY);
    fx_reply(&fx, again->exchange, 200, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "ready 2026-07-28\ncall result {'content':[]}\n");
    /* Not for ever. */
    fx_name other = {.text = "other"};
    fx_call(&fx, &other, "tools/list", NULL);
    for (int i = 0; i < 3; i++) {
        fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 400, UNSUPPORTED("['2026-07-28']"));
        fx.seen += fx.record[fx.seen].kind == 'A';
    }
    assert_int_equal(other.kind, MCP_OUTCOME_ERROR);
    assert_int_equal(other.done_count, 1);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_version_leads_to_legacy(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"}, other = {.text = "other"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_line(&fx, fx_next(&fx)->exchange, UNSUPPORTED("['2025-11-25']"));
    fx_answer_initialize(&fx, "");
    fx_line(&fx, fx_expect(&fx, "{'jsonrpc':'2.0','id':#,'method':'tools/list'}")->exchange,
            FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "ready 2025-11-25\ncall result {'content':[]}\n");
    fx_fini(&fx);
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_call(&fx, &other, "tools/list", NULL);
    fx_line(&fx, fx_next(&fx)->exchange, UNSUPPORTED("['1900-01-01']"));
    assert_int_equal(other.kind, MCP_OUTCOME_ERROR);
    fx_fini(&fx);
}

static void test_requests_are_ignored(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.takes_asks = true;
    fx_open_modern(&fx);
    fx_name call = {.text = "call", .takes_asks = true};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_message(&fx, id, 0, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
    fx_message(&fx, id, 0,
               "{'jsonrpc':'2.0','id':2,'method':'sampling/createMessage','params':{}}");
    mcp_client_answer(fx.client, STR("2"), STR("{}"), 0, (bay_str){0});
    fx_saw(&fx, "");
    fx_quiet(&fx);
    fx_reply(&fx, id, 200, FX_RESULT("{'content':[]}"));
    assert_int_equal(call.kind, MCP_OUTCOME_RESULT);
    fx_fini(&fx);
}

static void test_notified_on_its_stream(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_message(&fx, id, id,
               "{'jsonrpc':'2.0','method':'notifications/message','params':{'data':[1.0]}}");
    fx_message(&fx, id, id, "{'jsonrpc':'2.0','method':'notifications/unheard','params':{}}");
    fx_message(&fx, id, id, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    fx_saw(&fx, "one notified notifications/message {'data':[1.0]}\n");
    fx_fini(&fx);
}

/* ---- listens --------------------------------------------------------------------------------- */

#define ACK                                                                                        \
    "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{'_meta':{"     \
    "'io.modelcontextprotocol/subscriptionId':#},'notifications':{}}}"
#define CHANGED                                                                                    \
    "{'jsonrpc':'2.0','method':'notifications/tools/list_changed','params':{'_meta':{"             \
    "'io.modelcontextprotocol/subscriptionId':#}}}"

static void say(uint64_t id, const char *text)
{
    fx_message(&fx, fx.options.link_kind == MCP_LINK_HTTP ? id : 0, id, text);
}

static void expect_closed(uint64_t id)
{
    if (fx.options.link_kind == MCP_LINK_HTTP) {
        assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
    } else {
        char text[256];
        snprintf(text, sizeof(text),
                 "'method':'notifications/cancelled','params':{'requestId':%llu}}",
                 (unsigned long long)id);
        fx_expect(&fx, text);
    }
}

static void test_listen(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx.options.wants_changes = true;
        fx_open_modern(&fx);
        /* what the capabilities promise, and no more */
        uint64_t one =
            fx_expect(&fx, "'method':'subscriptions/"
                           "listen','params':{'notifications':{'toolsListChanged':true},'_meta':")
                ->exchange;
        say(one, ACK);
        say(one, CHANGED);
        fx_saw(&fx, "changed 1\n");
        fx_pass(&fx, 10000000); /* it has no end */
        fx_quiet(&fx);
        /* The set changes: the new one first, then the old one ends. */
        assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
        uint64_t two =
            fx_expect(
                &fx,
                "{'notifications':{'toolsListChanged':true,'resourceSubscriptions':['file:///a']}")
                ->exchange;
        assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///b"), true, fx.now), BAY_OK);
        assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///c"), true, fx.now), BAY_OK);
        fx_quiet(&fx);
        say(one, CHANGED);
        fx_saw(&fx, "changed 1\n");
        say(two, ACK);
        expect_closed(one);
        uint64_t three = fx_expect(&fx, "resourceSubscriptions")->exchange; /* both, at once */
        say(two, "{'jsonrpc':'2.0','method':'notifications/resources/"
                 "updated','params':{'uri':'file:///a'}}");
        say(three, ACK);
        expect_closed(two);
        fx_saw(&fx, "updated file:///a\n");
        fx_quiet(&fx);
        mcp_client_close(fx.client);
        expect_closed(three);
        fx_fini(&fx);
    }
}

static void test_listen_ends(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        fx_init(&fx, way == 3 ? MCP_LINK_DUPLEX : MCP_LINK_HTTP);
        fx.options.wants_changes = true;
        fx_open_modern(&fx);
        uint64_t id = fx_expect(&fx, "subscriptions/listen")->exchange;
        say(id, ACK);
        if (way == 0) {
            fx_ended(&fx, id, BAY_ERR_CLOSED);
        } else if (way == 1) {
            say(id, FX_RESULT("{'resultType':'complete'}"));
            fx_ended(&fx, id, BAY_OK);
        } else if (way == 2) {
            fx_reply(&fx, id, 200, NULL);
        } else {
            say(id,
                "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':#}}");
        }
        fx_pass(&fx, 999);
        fx_quiet(&fx);
        fx_pass(&fx, 1);
        id = fx_expect(&fx, "subscriptions/listen")->exchange;
        fx_saw(&fx, "");
        say(id, ACK);
        fx_saw(&fx, "changed 8\n"); /* something may have, while nobody listened */
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

static void test_listen_backs_off(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_modern(&fx);
    uint64_t delay = 1000;
    for (int i = 0; i < 10; i++) {
        uint64_t id = fx_expect(&fx, "subscriptions/listen")->exchange;
        mcp_client_ended(fx.client, id, BAY_ERR_CONNECT, false, "no", fx.now);
        fx_pass(&fx, delay - 1);
        fx_quiet(&fx);
        fx_pass(&fx, 1);
        delay = delay * 2 > 60000 ? 60000 : delay * 2;
    }
    fx_fini(&fx);
}

static void test_listen_not_acknowledged(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_modern(&fx);
    uint64_t id = fx_expect(&fx, "subscriptions/listen")->exchange;
    say(id, "{'jsonrpc':'2.0','method':'notifications/subscriptions/"
            "acknowledged','params':{'_meta':{'io.modelcontextprotocol/subscriptionId':'#'}}}");
    say(id, "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{}}");
    fx_pass(&fx, 60000);
    assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
    fx_pass(&fx, 1000);
    fx_expect(&fx, "subscriptions/listen");
    fx_fini(&fx);
}

static void test_listen_refused(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_modern(&fx);
    fx_reply(&fx, fx_expect(&fx, "subscriptions/listen")->exchange, 404, FX_ERROR("-32601"));
    fx_pass(&fx, 1000000);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_nothing_to_listen_for(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open(&fx);
    fx_reply(&fx, fx_next(&fx)->exchange, 200, FX_DISCOVER("['2026-07-28']", "{'tools':{}}"));
    fx_quiet(&fx);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now),
                     BAY_ERR_UNSUPPORTED);
    fx_fini(&fx);
}

static void test_unsubscribing_ends_the_listen(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_quiet(&fx);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    uint64_t id =
        fx_expect(&fx, "{'notifications':{'resourceSubscriptions':['file:///a']}")->exchange;
    say(id, ACK);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), false, fx.now), BAY_OK);
    expect_closed(id);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_remembered_learns_before_it_listens(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
    fx.options.wants_changes = true;
    fx_open(&fx);
    fx_saw(&fx, "ready 2026-07-28\n");
    assert_true(mcp_client_has(fx.client, STR("prompts"))); /* not known: it will say so itself */
    fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 200,
             FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    assert_false(mcp_client_has(fx.client, STR("prompts")));
    fx_expect(&fx, "{'notifications':{'toolsListChanged':true}");
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_types),
        cmocka_unit_test(test_version_retried_inline),
        cmocka_unit_test(test_version_leads_to_legacy),
        cmocka_unit_test(test_requests_are_ignored),
        cmocka_unit_test(test_notified_on_its_stream),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_listen_ends),
        cmocka_unit_test(test_listen_backs_off),
        cmocka_unit_test(test_listen_not_acknowledged),
        cmocka_unit_test(test_listen_refused),
        cmocka_unit_test(test_nothing_to_listen_for),
        cmocka_unit_test(test_unsubscribing_ends_the_listen),
        cmocka_unit_test(test_remembered_learns_before_it_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
