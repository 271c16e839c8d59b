/* What an owner wants beyond calls: notifications of its own, changes it would hear of, what it
 * told the server by itself. */
#include "client_fixture.h"

static fixture fx;

static bay_err tell(const char *method, const char *params)
{
    bay_diag diag = {0};
    bay_err err = mcp_client_tell(fx.client, str_of(method), str_of(params), fx.now, &diag);
    assert_int_equal(diag.code, err);
    return err;
}

static void test_what_cannot_be_told(void **state)
{
    static char large[RPC_MAX_METHOD_BYTES + 2];
    (void)state;
    memset(large, 'm', sizeof(large) - 1);
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    assert_int_equal(tell("notifications/mine", NULL), BAY_ERR_CLOSED); /* nobody is there yet */
    fx_fini(&fx);
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    assert_int_equal(tell("", NULL), BAY_ERR_INVALID);
    assert_int_equal(tell(large, NULL), BAY_ERR_INVALID);
    assert_int_equal(tell("tools/call", NULL), BAY_ERR_INVALID);
    assert_int_equal(tell("notifications/roots/list_changed", NULL), BAY_ERR_UNSUPPORTED);
    fx_quiet(&fx);
    mcp_client_broken(fx.client, BAY_ERR_CLOSED, "gone", fx.now);
    assert_int_equal(tell("notifications/mine", NULL), BAY_ERR_CLOSED);
    fx_fini(&fx);
}

static void test_notifications_of_its_own(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx_open_legacy(&fx, "s");
        assert_int_equal(tell("notifications/roots/list_changed", NULL), BAY_OK);
        fx_record *sent = fx_expect(&fx, "'method':'notifications/roots/list_changed'}");
        assert_int_equal(sent->exchange, 0);
        assert_int_equal(tell("notifications/mine", "{\"a\" : 1.0}"), BAY_OK);
        fx_expect(&fx, "'method':'notifications/mine','params':{'a' : 1.0}}");
        fx_fini(&fx);
    }
}

static void test_hearing(void **state)
{
    (void)state;
    /* one channel for all: always, of what the server promised */
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    fx_fini(&fx);
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    assert_int_not_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_RESOURCES), 0);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_PROMPTS), 0);
    mcp_client_broken(fx.client, BAY_ERR_CLOSED, "gone", fx.now);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    fx_fini(&fx);
    /* HTTP: while the stream is open; after a gap it is another hearing */
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s");
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    mcp_client_watch(fx.client, fx.now);
    mcp_client_watch(fx.client, fx.now);
    uint64_t stream = fx_next_kind(&fx, 'G')->exchange;
    fx_quiet(&fx);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    fx_head(&fx, stream, 200);
    uint64_t before = mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS);
    assert_int_not_equal(before, 0);
    fx_ended(&fx, stream, BAY_ERR_CLOSED);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    fx_pass(&fx, 60000);
    fx_head(&fx, fx_next_kind(&fx, 'G')->exchange, 200);
    assert_int_not_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    assert_int_not_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), before);
    fx_fini(&fx);
    /* there, a time to live says it */
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    assert_int_equal(mcp_client_hearing(fx.client, MCP_CHANGE_TOOLS), 0);
    fx_fini(&fx);
}

#define ACK                                                                                        \
    "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{'_meta':{"     \
    "'io.modelcontextprotocol/subscriptionId':#},'notifications':{}}}"

static void test_listening(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s");
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTENS_NOT);
    fx_fini(&fx);
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTENS_NOT);
    mcp_client_watch(fx.client, fx.now);
    uint64_t one = fx_expect(&fx, "'toolsListChanged':true")->exchange;
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTEN_PENDING);
    fx_message(&fx, one, one, ACK);
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTENS);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTEN_PENDING);
    fx_reply(&fx, fx_expect(&fx, "file:///a")->exchange, 404, FX_ERROR("-32601"));
    assert_int_equal(mcp_client_listening(fx.client), MCP_LISTEN_REFUSED);
    fx_fini(&fx);
}

static void test_what_was_told_already_is_remembered(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    assert_int_equal(mcp_client_note_subscription(fx.client, STR(""), true, fx.now),
                     BAY_ERR_INVALID);
    assert_int_equal(mcp_client_note_subscription(fx.client, STR("x:a"), true, fx.now), BAY_OK);
    assert_int_equal(mcp_client_note_subscription(fx.client, STR("x:b"), true, fx.now), BAY_OK);
    assert_int_equal(mcp_client_note_subscription(fx.client, STR("x:b"), false, fx.now), BAY_OK);
    assert_int_equal(mcp_client_note_subscription(fx.client, STR("x:c"), false, fx.now), BAY_OK);
    mcp_client_note_level(fx.client, MCP_LOG_ERROR);
    fx_quiet(&fx); /* nothing is sent now … */
    mcp_client_broken(fx.client, BAY_ERR_CLOSED, "gone", fx.now);
    mcp_client_opened(fx.client, fx.now);
    fx_answer_initialize(&fx, "");
    fx_expect(&fx, "'method':'resources/subscribe','params':{'uri':'x:a'}"); /* … but anew */
    fx_expect(&fx, "'method':'logging/setLevel','params':{'level':'error'}");
    fx_quiet(&fx);
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_told),
        cmocka_unit_test(test_notifications_of_its_own),
        cmocka_unit_test(test_hearing),
        cmocka_unit_test(test_listening),
        cmocka_unit_test(test_what_was_told_already_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
