/* Who hears of changes: listens and their filters, legacy subscribers, and the table they share. */
#include "server_bench.h"

#define LISTEN(id, filter)                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"subscriptions/listen\",\"params\":{" META     \
    "}" filter "}}"
#define ALL                                                                                        \
    ",\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":false,"                  \
    "\"resourceSubscriptions\":[\"x:a\",\"x:none\",\"x:a\",\"x:b\"]}"

static const field listen_fields[] = {
    JSON_TYPE, BOTH, MODERN_VERSION, {"Mcp-Method", "subscriptions/listen"}, {NULL, NULL}};

static void filters_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        LISTEN("1", ""),
        LISTEN("1", ",\"notifications\":[]"),
        LISTEN("1", ",\"notifications\":{\"toolsListChanged\":1}"),
        LISTEN("1", ",\"notifications\":{\"resourceSubscriptions\":\"x:a\"}"),
        LISTEN("1", ",\"notifications\":{\"resourceSubscriptions\":[1]}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bench self;
        bench_init(&self);
        wire through;
        bench_http(&self, &through, "POST", listen_fields, bad[i]);
        assert_int_equal(through.status, 400);
        assert_has(through.body, "-32602");
        wire_fini(&through);
        bench_fini(&self);
    }
}

/* Word of single tasks is for clients of the extension; where a server has none, the wish means
 * nothing. */
static void word_of_tasks_is_for_who_declared_them(void **state)
{
    (void)state;
    static const char wish[] =
        LISTEN("1", ",\"notifications\":{\"taskIds\":[\"t\"],\"toolsListChanged\":true}");
    static const char with[] =
        "{\"tools\":{\"listChanged\":true},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";
    bench self;
    bench_init(&self);
    wire through;
    bench_http(&self, &through, "POST", listen_fields, wish);
    assert_has(through.event[0], "\"notifications\":{\"toolsListChanged\":true}");
    wire_fini(&through);
    bench_fini(&self);
    bench_init(&self);
    self.capabilities = with;
    mcp_server_changed(self.server, 0);
    bench_http(&self, &through, "POST", listen_fields, wish);
    assert_int_equal(through.status, 400);
    assert_has(through.body, "-32021");
    assert_has(through.body, "\"requiredCapabilities\":{\"extensions\":{"
                             "\"io.modelcontextprotocol/tasks\":{}}}");
    wire_fini(&through);
    bench_fini(&self);
}

static void a_listen_hears_what_it_was_granted(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire through;
    bench_http(&self, &through, "POST", listen_fields, LISTEN("\"L\"", ALL));
    assert_int_equal(through.events, 1);
    assert_string_equal(through.event[0],
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
                        "acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
                        "subscriptionId\":\"L\"},\"notifications\":{\"toolsListChanged\":true,"
                        "\"resourceSubscriptions\":[\"x:a\",\"x:b\"]}}}");
    assert_int_equal(self.subscribed, 2);
    mcp_server_changed(self.server, MCP_CHANGE_PROMPTS | MCP_CHANGE_RESOURCES);
    mcp_server_resource_updated(self.server, STR("x:none"));
    mcp_server_resource_updated(self.server, STR("x:"));
    mcp_server_log(self.server, MCP_LOG_EMERGENCY, STR("{\"level\":\"emergency\",\"data\":1}"));
    assert_int_equal(through.events, 1);
    mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
    assert_string_equal(
        last_event(&through),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","
        "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"L\"}}}");
    mcp_server_resource_updated(self.server, STR("x:b"));
    assert_string_equal(last_event(&through),
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
                        "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"L\"},"
                        "\"uri\":\"x:b\"}}");
    wire_gone(&self, &through);
    assert_int_equal(self.unsubscribed, 2);
    mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
    assert_int_equal(through.events, 3);
    assert_int_equal(self.requests + self.cancels, 0);
    wire_fini(&through);
    bench_fini(&self);
}

static void what_is_not_declared_is_not_granted(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.capabilities = "{\"tools\":{},\"resources\":{\"subscribe\":false}}";
    wire through;
    bench_http(&self, &through, "POST", listen_fields, LISTEN("1", ALL));
    assert_has(through.event[0], "\"notifications\":{}");
    assert_int_equal(self.subscribed, 0);
    /* What is declared later is known once the service says that something changed. */
    self.capabilities = EVERYTHING;
    mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
    wire later;
    bench_http(&self, &later, "POST", listen_fields, LISTEN("1", ALL));
    assert_has(later.event[0], "\"toolsListChanged\":true");
    mcp_server_free(self.server);
    self.server = NULL;
    assert_int_equal(later.ends, 1);
    wire_fini(&through);
    wire_fini(&later);
    bench_fini(&self);
}

static void a_graceful_end_is_a_result(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire through;
    wire line;
    duplex_open(&self, &line);
    bench_http(&self, &through, "POST", listen_fields, LISTEN("1", ALL));
    duplex_say(&self, &line, LISTEN("1.0", ALL));
    mcp_server_close_streams(self.server);
    assert_has(last_event(&through), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":"
                                     "\"complete\",\"_meta\":{\"io.modelcontextprotocol/"
                                     "subscriptionId\":1,");
    assert_int_equal(through.ends, 1);
    assert_has(last_event(&line), "\"id\":1.0,\"result\"");
    assert_int_equal(self.unsubscribed, 2);
    duplex_close(&line);
    wire_fini(&through);
    wire_fini(&line);
    bench_fini(&self);
}

static void a_line_carries_several_listens(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.max_subscriptions = 2;
    bench_init_with(&self, &options);
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, LISTEN("1", ALL));
    duplex_say(&self, &line, LISTEN("1", ALL));
    assert_has(last_event(&line), "\"id\":1,\"error\":{\"code\":-32600"); /* the id is in use */
    duplex_say(&self, &line, LISTEN("\"1\"", ALL));
    duplex_say(&self, &line, LISTEN("3", ALL));
    assert_has(last_event(&line), "\"id\":3,\"error\":{\"code\":-32603");
    assert_int_equal(mcp_connection_pending(line.connection), 0);
    assert_int_equal(self.subscribed, 2); /* once a resource */
    int before = line.events;
    mcp_server_resource_updated(self.server, STR("x:a"));
    assert_int_equal(line.events, before + 2);
    duplex_say(&self, &line,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":1}}");
    mcp_server_resource_updated(self.server, STR("x:a"));
    assert_int_equal(line.events, before + 3);
    assert_has(last_event(&line), "subscriptionId\":\"1\"");
    duplex_close(&line);
    assert_int_equal(self.unsubscribed, 2);
    wire_fini(&line);
    bench_fini(&self);
}

static void legacy_clients_share_the_table(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire line;
    wire through;
    duplex_open(&self, &line);
    duplex_say(&self, &line, INITIALIZE("2025-11-25"));
    bench_http(&self, &through, "POST", listen_fields, LISTEN("1", ALL));
    duplex_say(&self, &line,
               "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/subscribe\",\"params\":{"
               "\"uri\":\"x:a\"}}");
    assert_int_equal(self.subscribed, 2);
    mcp_server_resource_updated(self.server, STR("x:a"));
    assert_string_equal(last_event(&line), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                                           "resources/updated\",\"params\":{\"uri\":\"x:a\"}}");
    wire_gone(&self, &through);
    assert_int_equal(self.unsubscribed, 1);
    mcp_server_log(self.server, MCP_LOG_DEBUG, STR("{\"level\":\"debug\",\"data\":1}"));
    assert_lacks(last_event(&line), "\"debug\"");
    mcp_server_log(self.server, MCP_LOG_ERROR, STR("{\"level\":\"error\",\"data\":1}"));
    assert_has(last_event(&line), "notifications/message");
    duplex_close(&line);
    assert_int_equal(self.unsubscribed, 2);
    wire_fini(&line);
    wire_fini(&through);
    bench_fini(&self);
}

static void listeners_may_vanish_while_they_are_told(void **state)
{
    (void)state;
    enum { LISTENERS = 3 };
    bench self;
    bench_init(&self);
    wire through[LISTENERS];
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, LISTEN("1", ALL));
    duplex_say(&self, &line, LISTEN("2", ALL));
    for (int i = 0; i < LISTENERS; i++) {
        bench_http(&self, &through[i], "POST", listen_fields, LISTEN("1", ALL));
        through[i].dies_on_event = true;
    }
    line.dies_on_event = true;
    mcp_server_resource_updated(self.server, STR("x:a"));
    for (int i = 0; i < LISTENERS; i++) {
        assert_int_equal(through[i].events, 2);
        wire_fini(&through[i]);
    }
    assert_int_equal(line.events, 3);
    assert_int_equal(self.unsubscribed, 2);
    wire_fini(&line);
    bench_fini(&self);
}

static void a_carrier_may_go_with_the_last_word(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire through;
    bench_http(&self, &through, "POST", listen_fields, LISTEN("1", ALL));
    through.dies_on_event = true;
    mcp_server_close_streams(self.server);
    assert_int_equal(through.ends, 0);
    wire_fini(&through);
    bench_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_checked),
        cmocka_unit_test(word_of_tasks_is_for_who_declared_them),
        cmocka_unit_test(a_listen_hears_what_it_was_granted),
        cmocka_unit_test(what_is_not_declared_is_not_granted),
        cmocka_unit_test(a_graceful_end_is_a_result),
        cmocka_unit_test(a_line_carries_several_listens),
        cmocka_unit_test(legacy_clients_share_the_table),
        cmocka_unit_test(a_carrier_may_go_with_the_last_word),
        cmocka_unit_test(listeners_may_vanish_while_they_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
