/* The stateless era: discovery, dressing of results and errors, streams, cancelling by closing, and
 * back-pressure. The refusals stand in test_server_http.c. */
#include "server_bench.h"

#define CALL_WITH(meta)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META \
        meta "}}}"
#define ANSWERED "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":"
#define SIGNED                                                                                     \
    "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}"

static void a_call_under_way_can_be_cancelled_by_leaving(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire through;
    bench_http(&self, &through, "POST", call_fields, CALL_WITH(""));
    wire_gone(&self, &through);
    assert_int_equal(self.cancels, 1);
    wire_gone(&self, &through);
    assert_int_equal(self.cancels, 1);
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("")), BAY_ERR_CANCELLED);
    /* What it carried is still there to be read. */
    assert_true(str_eq(request->name, STR("t")));
    assert_true(str_eq(request->message.id, STR("\"a\"")));
    assert_true(json_str_eq(json_get(request->message.params, STR("name")), STR("t")));
    bench_answer(&self, request);
    assert_int_equal(through.answers + through.events + through.ends, 0);
    wire_fini(&through);
    bench_fini(&self);
}

static void discovery_says_what_is_offered(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.instructions = STR("Hi");
    bench_init_with(&self, &options);
    wire through;
    static const field fields[] = {
        JSON_TYPE, BOTH, MODERN_VERSION, {"Mcp-Method", "server/discover"}, {NULL, NULL}};
    bench_http(&self, &through, "POST", fields,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META
               "}}}");
    assert_int_equal(through.status, 200);
    assert_string_equal(through.body,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":["
                        "\"2026-07-28\"],\"capabilities\":" EVERYTHING
                        ",\"instructions\":\"Hi\",\"resultType\":\"complete\",\"ttlMs\":0,"
                        "\"cacheScope\":\"private\"," SIGNED "}}}");
    wire_fini(&through);
    bench_fini(&self);
}

static void results_are_dressed(void **state)
{
    (void)state;
    static const struct {
        const char *result;
        const char *sent;
    } cases[] = {
        {"{}", ANSWERED "{\"resultType\":\"complete\"," SIGNED "}}}"},
        {"{ \"n\" : 1.00 }", ANSWERED "{\"resultType\":\"complete\",\"n\":1.00," SIGNED "}}}"},
        {"{\"_meta\":{\"k\":1}}", ANSWERED "{\"resultType\":\"complete\"," SIGNED ",\"k\":1}}}"},
        {"{\"_meta\":{\"io.modelcontextprotocol/serverInfo\":1}}",
         ANSWERED "{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
                  "1}}}"},
        {"{\"resultType\":\"input_required\",\"requestState\":\"s\",\"ttlMs\":5}",
         ANSWERED "{\"resultType\":\"input_required\",\"requestState\":\"s\"," SIGNED "}}}"},
        {"{\"a\":1,\"_meta\":{},\"_meta\":{}}", "\"id\":\"a\",\"error\":{\"code\":-32603"},
        {"[]", "\"id\":\"a\",\"error\":{\"code\":-32603"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bench self;
        bench_init(&self);
        self.mode = ANSWER_LATER;
        wire through;
        bench_http(&self, &through, "POST", call_fields, CALL_WITH(""));
        self.result = cases[i].result;
        bench_answer(&self, bench_take(&self));
        assert_has(through.body, cases[i].sent);
        wire_fini(&through);
        bench_fini(&self);
    }
}

static void cacheable_results_carry_hints(void **state)
{
    (void)state;
    static const field fields[] = {
        JSON_TYPE, BOTH, MODERN_VERSION, {"Mcp-Method", "tools/list"}, {NULL, NULL}};
    static const struct {
        const char *result;
        const char *sent;
    } cases[] = {
        {"{}", "\"resultType\":\"complete\",\"ttlMs\":7,\"cacheScope\":\"public\""},
        {"{\"ttlMs\":9}", "\"resultType\":\"complete\",\"ttlMs\":9,\"cacheScope\":\"public\""},
        {"{\"cacheScope\":\"private\"}", "\"ttlMs\":7,\"cacheScope\":\"private\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bench self;
        bench_init(&self);
        self.mode = ANSWER_LATER;
        wire through;
        bench_http(&self, &through, "POST", fields,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META
                   "}}}");
        mcp_request *request = bench_take(&self);
        request->ttl_ms = 7;
        request->is_cache_public = true;
        self.result = cases[i].result;
        bench_answer(&self, request);
        assert_has(through.body, cases[i].sent);
        wire_fini(&through);
        bench_fini(&self);
    }
}

static void errors_have_the_codes_and_statuses_of_the_revision(void **state)
{
    (void)state;
    static const struct {
        int code;
        int sent;
        int status;
    } cases[] = {
        {RPC_INVALID_PARAMS, RPC_INVALID_PARAMS, 200},
        {RPC_METHOD_NOT_FOUND, RPC_METHOD_NOT_FOUND, 404},
        {MCP_RESOURCE_NOT_FOUND, RPC_INVALID_PARAMS, 200},
        {MCP_MISSING_CAPABILITY, MCP_MISSING_CAPABILITY, 400},
        {-32042, RPC_INTERNAL_ERROR, 200},
        {1234, 1234, 200},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int is_object = 0; is_object < 2; is_object++) {
            bench self;
            bench_init(&self);
            self.mode = ANSWER_LATER;
            wire through;
            bench_http(&self, &through, "POST", call_fields, CALL_WITH(""));
            char text[128];
            if (is_object) {
                arena memory;
                json_doc doc;
                arena_init(&memory, 1 << 16);
                (void)snprintf(text, sizeof(text), "{\"code\":%d,\"message\":\"m\",\"data\":[1]}",
                               cases[i].code);
                assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
                mcp_request_error_object(bench_take(&self), json_root(&doc));
                arena_fini(&memory);
            } else {
                mcp_request_error(bench_take(&self), cases[i].code, STR("m"), STR("[1]"));
            }
            (void)snprintf(text, sizeof(text),
                           "\"id\":\"a\",\"error\":{\"code\":%d,\"message\":\"m\",\"data\":[1]}",
                           cases[i].sent);
            assert_has(through.body, text);
            assert_int_equal(through.status, cases[i].status);
            wire_fini(&through);
            bench_fini(&self);
        }
    }
}

static void a_stream_belongs_to_its_call(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire through;
    bench_http(&self, &through, "POST", call_fields,
               CALL_WITH(",\"progressToken\":5,\"io.modelcontextprotocol/logLevel\":\"warning\""));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    assert_int_equal(mcp_request_progress(request, 0.5, STR("\"progress\":0.5")), BAY_OK);
    assert_int_equal(through.events, 1); /* it must increase */
    assert_string_equal(through.event[0], "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                                          "progress\",\"params\":{\"progressToken\":5,"
                                          "\"progress\":1}}");
    assert_string_equal(through.id[0], "");
    assert_int_equal(mcp_request_log(request, MCP_LOG_INFO, STR("{\"level\":\"info\",\"data\":1}")),
                     BAY_OK);
    assert_int_equal(through.events, 1);
    through.event_err = BAY_ERR_AGAIN;
    assert_int_equal(
        mcp_request_log(request, MCP_LOG_ERROR, STR("{\"level\":\"error\",\"data\":1}")),
        BAY_ERR_AGAIN);
    assert_int_equal(through.events, 2);
    mcp_server_drained(self.server, &through.carrier);
    assert_int_equal(self.drains, 1);
    int times = 0;
    assert_int_equal(mcp_request_ask(request, MCP_SAMPLING, STR("{}"), NULL, &times, 0),
                     BAY_ERR_UNSUPPORTED);
    bench_answer(&self, request);
    assert_has(last_event(&through), "\"id\":\"a\",\"result\"");
    assert_int_equal(through.ends, 1);
    wire_fini(&through);
    bench_fini(&self);
}

static void without_a_level_nothing_is_logged(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire through;
    bench_http(&self, &through, "POST", call_fields, CALL_WITH(""));
    mcp_request *request = bench_take(&self);
    assert_int_equal(
        mcp_request_log(request, MCP_LOG_EMERGENCY, STR("{\"level\":\"emergency\",\"data\":1}")),
        BAY_OK);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    assert_int_equal(through.events, 0);
    bench_answer(&self, request);
    assert_int_equal(through.status, 200);
    wire_fini(&through);
    bench_fini(&self);
}

static void the_service_sees_what_the_request_says(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire through;
    bench_http_as(&self, &through, "POST", call_fields,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"\\u0074\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                  "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{}},"
                  "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\",\"version\":\"2\"},"
                  "\"k\":[1]}}}",
                  "ann");
    mcp_request *request = bench_take(&self);
    assert_int_equal(request->method->id, MCP_TOOLS_CALL);
    assert_int_equal(request->revision->id, MCP_REV_2026_07_28);
    assert_null(request->session);
    assert_true(str_eq(request->name, STR("t")));
    assert_true(request->principal == person("ann"));
    assert_true(json_is(json_get(request->client_capabilities, STR("roots")), JSON_OBJECT));
    assert_true(json_str_eq(json_get(request->client_info, STR("version")), STR("2")));
    assert_true(str_eq(json_raw(json_get(request->meta, STR("k"))), STR("[1]")));
    assert_int_equal(request->arrived_ms, 1000);
    assert_int_equal(request->log_level, MCP_LOG_NONE);
    bench_answer(&self, request);
    wire_fini(&through);
    bench_fini(&self);
}

static void a_modern_server_on_a_line_names_its_versions(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.oldest = MCP_REV_2026_07_28;
    bench_init_with(&self, &options);
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, INITIALIZE("2025-11-25"));
    assert_has(last_event(&line), "\"code\":-32022");
    assert_has(last_event(&line), "{\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"}");
    duplex_say(&self, &line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    assert_has(last_event(&line), "\"code\":-32602");
    duplex_say(&self, &line, CALL("1", ""));
    assert_has(last_event(&line), "\"resultType\":\"complete\"");
    duplex_close(&line);
    wire_fini(&line);
    bench_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_under_way_can_be_cancelled_by_leaving),
        cmocka_unit_test(discovery_says_what_is_offered),
        cmocka_unit_test(results_are_dressed),
        cmocka_unit_test(cacheable_results_carry_hints),
        cmocka_unit_test(errors_have_the_codes_and_statuses_of_the_revision),
        cmocka_unit_test(a_stream_belongs_to_its_call),
        cmocka_unit_test(without_a_level_nothing_is_logged),
        cmocka_unit_test(the_service_sees_what_the_request_says),
        cmocka_unit_test(a_modern_server_on_a_line_names_its_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
