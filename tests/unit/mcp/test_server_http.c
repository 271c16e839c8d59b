/* The HTTP door: a table of requests with the status, code and id each gets, then what a table
 * cannot say. */
#include "server_bench.h"

typedef struct door {
    const char *what;
    const char *verb;
    const field *fields;
    const char *body;
    int status;
    const char *has;   /* in the body; NULL: no body */
    const char *lacks; /* NULL: nothing in particular */
} door;

#define FIELDS(...) ((const field[]){__VA_ARGS__, {NULL, NULL}})
#define CALL_FIELDS(...) FIELDS(JSON_TYPE, BOTH, __VA_ARGS__)
#define METHOD_CALL                                                                                \
    {                                                                                              \
        "Mcp-Method", "tools/call"                                                                 \
    }
#define NAME_T                                                                                     \
    {                                                                                              \
        "Mcp-Name", "t"                                                                            \
    }
#define MODERN(method)                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"" method "\",\"params\":{" META "}}}"
#define META_OF(version)                                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/list\",\"params\":{\"_meta\":{"              \
    "\"io.modelcontextprotocol/protocolVersion\":" version                                         \
    ",\"io.modelcontextprotocol/clientCapabilities\":{}}}}"
#define NO_SUCH(method)                                                                            \
    {                                                                                              \
        "removed or unknown: " method, "POST",                                                     \
            CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", method}, {"Mcp-Name", "x"}),                \
            MODERN(method), 404, "\"id\":\"q\",\"error\":{\"code\":-32601", NULL                   \
    }

static const door doors[] = {
    {"a verb of nobody", "PUT", plain_fields, "", 405, NULL, NULL},
    {"HEAD, as GET, without a session", "HEAD", plain_fields, "", 400, "Mcp-Session-Id", NULL},
    {"GET of a revision without sessions", "GET", FIELDS(BOTH, MODERN_VERSION), "", 405, NULL,
     NULL},
    {"DELETE of a revision without sessions", "DELETE", FIELDS(BOTH, MODERN_VERSION), "", 405, NULL,
     NULL},
    {"no content type", "POST", FIELDS(BOTH), CALL("1", ""), 415, "-32600", NULL},
    {"another content type", "POST", FIELDS(BOTH, {"Content-Type", "text/plain"}), CALL("1", ""),
     415, "-32600", NULL},
    {"accepts JSON only", "POST", FIELDS(JSON_TYPE, {"Accept", "application/json"}), CALL("1", ""),
     406, "-32600", NULL},
    {"accepts streams only", "POST", FIELDS(JSON_TYPE, {"Accept", "text/event-stream"}),
     CALL("1", ""), 406, "-32600", NULL},
    {"no body", "POST", plain_fields, "", 400, "\"id\":null,\"error\":{\"code\":-32700", NULL},
    {"no JSON", "POST", plain_fields, "{", 400, "\"id\":null,\"error\":{\"code\":-32700", NULL},
    {"no envelope", "POST", plain_fields, "{}", 400, "\"id\":null,\"error\":{\"code\":-32600",
     NULL},
    {"a wrong envelope", "POST", plain_fields, "{\"jsonrpc\":\"1\",\"id\":4,\"method\":\"a\"}", 400,
     "\"id\":4,\"error\":{\"code\":-32600", NULL},
    {"a null id", "POST", plain_fields, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", 400,
     "\"id\":null,\"error\":{\"code\":-32600", NULL},
    {"a batch", "POST", call_fields, "[" CALL("1", "") "]", 400, "-32600", NULL},
    {"_meta twice", "POST", call_fields, CALL("1", ",\"_meta\":{}"), 400,
     "\"id\":1,\"error\":{\"code\":-32600", NULL},
    {"name twice", "POST", call_fields, CALL("1", ",\"name\":\"u\""), 400,
     "\"id\":1,\"error\":{\"code\":-32600", NULL},

    {"modern _meta without the header", "POST", CALL_FIELDS(METHOD_CALL, NAME_T), CALL("1", ""),
     400, "\"id\":1,\"error\":{\"code\":-32020", NULL},
    {"the header twice", "POST", CALL_FIELDS(MODERN_VERSION, MODERN_VERSION, METHOD_CALL, NAME_T),
     CALL("1", ""), 400, "\"id\":1,\"error\":{\"code\":-32020", NULL},
    {"the header without params", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}", 400,
     "\"id\":2,\"error\":{\"code\":-32602", NULL},
    {"the header without _meta", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}", 400,
     "\"id\":2,\"error\":{\"code\":-32602", NULL},
    {"_meta without a version", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
     400, "\"id\":2,\"error\":{\"code\":-32602", NULL},
    {"_meta without capabilities", "POST",
     CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
     400, "\"id\":2,\"error\":{\"code\":-32602", NULL},
    {"a version that is a number", "POST",
     CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}), META_OF("20260728"), 400,
     "\"id\":9,\"error\":{\"code\":-32602", NULL},
    {"header and _meta differ", "POST",
     CALL_FIELDS({"MCP-Protocol-Version", "2025-11-25"}, METHOD_CALL, NAME_T), CALL("1", ""), 400,
     "\"id\":1,\"error\":{\"code\":-32020", NULL},
    {"both unknown", "POST",
     CALL_FIELDS({"MCP-Protocol-Version", "v999.0.0"}, {"Mcp-Method", "tools/list"}),
     META_OF("\"v999.0.0\""), 400,
     "\"code\":-32022,\"message\":\"Unsupported protocol version\",\"data\":{\"supported\":["
     "\"2026-07-28\"],\"requested\":\"v999.0.0\"}",
     NULL},
    {"a legacy revision in _meta", "POST",
     CALL_FIELDS({"MCP-Protocol-Version", "2025-11-25"}, {"Mcp-Method", "tools/list"}),
     META_OF("\"2025-11-25\""), 400, "\"code\":-32022", NULL},
    {"unknown header, modern marks", "POST",
     CALL_FIELDS({"MCP-Protocol-Version", "v999.0.0"}, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}", 400,
     "\"id\":2,\"error\":{\"code\":-32602", NULL},
    {"no Mcp-Method", "POST", CALL_FIELDS(MODERN_VERSION, NAME_T), CALL("1", ""), 400, "-32020",
     NULL},
    {"another Mcp-Method", "POST",
     CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}, NAME_T), CALL("1", ""), 400,
     "-32020", NULL},
    {"Mcp-Method in another case", "POST",
     CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "TOOLS/CALL"}, NAME_T), CALL("1", ""), 400,
     "-32020", NULL},
    {"Mcp-Method twice", "POST", CALL_FIELDS(MODERN_VERSION, METHOD_CALL, METHOD_CALL, NAME_T),
     CALL("1", ""), 400, "-32020", NULL},
    {"no Mcp-Name", "POST", CALL_FIELDS(MODERN_VERSION, METHOD_CALL), CALL("1", ""), 400, "-32020",
     NULL},
    {"another Mcp-Name", "POST", CALL_FIELDS(MODERN_VERSION, METHOD_CALL, {"Mcp-Name", "T"}),
     CALL("1", ""), 400, "-32020", NULL},
    {"Mcp-Name twice", "POST", CALL_FIELDS(MODERN_VERSION, METHOD_CALL, NAME_T, NAME_T),
     CALL("1", ""), 400, "-32020", NULL},
    {"Mcp-Name of broken base64", "POST",
     CALL_FIELDS(MODERN_VERSION, METHOD_CALL, {"Mcp-Name", "=?base64?d?="}), CALL("1", ""), 400,
     "-32020", NULL},
    {"Mcp-Name encoded", "POST",
     CALL_FIELDS(MODERN_VERSION, METHOD_CALL, {"Mcp-Name", "=?base64?dA==?="}), CALL("1", ""), 200,
     "\"resultType\":\"complete\"", NULL},
    {"no name at all", "POST", CALL_FIELDS(MODERN_VERSION, METHOD_CALL, NAME_T),
     MODERN("tools/call"), 400, "\"id\":\"q\",\"error\":{\"code\":-32602", NULL},
    {"a log level of nobody", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{" META
     ",\"io.modelcontextprotocol/logLevel\":\"loud\"}}}",
     400, "\"id\":2,\"error\":{\"code\":-32602", NULL},
    NO_SUCH("initialize"),
    NO_SUCH("ping"),
    NO_SUCH("logging/setLevel"),
    NO_SUCH("resources/subscribe"),
    NO_SUCH("resources/unsubscribe"),
    NO_SUCH("unknown/method"),
    NO_SUCH("notifications/cancelled"),
    NO_SUCH("roots/list"),
    {"a response", "POST", CALL_FIELDS(MODERN_VERSION),
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", 400, "-32600", NULL},
    {"a notification", "POST", CALL_FIELDS(MODERN_VERSION),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", 202, NULL, NULL},
    {"a call", "POST", call_fields, CALL("1.0", ""), 200,
     "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{\"content\":[],\"resultType\":\"complete\"",
     "ttlMs"},
    {"a call that takes anything", "POST",
     FIELDS(JSON_TYPE, {"accept", "*/*"}, {"mcp-protocol-version", "2026-07-28"},
            {"MCP-METHOD", "tools/call"}, {"mcp-name", "t"}),
     CALL("1", ""), 200, "\"result\"", NULL},
    {"a call that says nothing of what it takes", "POST",
     FIELDS(JSON_TYPE, MODERN_VERSION, METHOD_CALL, NAME_T), CALL("1", ""), 200, "\"result\"",
     NULL},
    {"a method the service knows", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "x/known"}),
     MODERN("x/known"), 200, "\"resultType\":\"complete\"", NULL},
    {"a list", "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "tools/list"}),
     MODERN("tools/list"), 200, "\"ttlMs\":0,\"cacheScope\":\"private\"", NULL},

    {"legacy without a session", "POST", plain_fields,
     "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\"}", 400,
     "\"id\":5,\"error\":{\"code\":-32600", NULL},
    {"an unknown session", "POST", CALL_FIELDS({"Mcp-Session-Id", "0-00"}),
     "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\"}", 404, "\"id\":5", NULL},
    {"GET without a session", "GET", FIELDS({"Accept", "text/event-stream"}), NULL, 400, "-32600",
     NULL},
    {"GET that takes no stream", "GET", FIELDS({"Accept", "application/json"}), NULL, 406, "-32600",
     NULL},
    {"GET of an unknown session", "GET",
     FIELDS({"Accept", "text/event-stream"}, {"Mcp-Session-Id", "0-1"}), NULL, 404, "-32600", NULL},
    {"DELETE without a session", "DELETE", FIELDS(BOTH), NULL, 400, "-32600", NULL},
    {"initialize of a legacy client", "POST", CALL_FIELDS({"MCP-Protocol-Version", "2025-11-25"}),
     INITIALIZE("2025-11-25"), 200, "\"protocolVersion\":\"2025-11-25\"", "resultType"},
    {"initialize with an unknown header", "POST", CALL_FIELDS({"MCP-Protocol-Version", "1.0"}),
     INITIALIZE("2025-11-25"), 400, "-32600", NULL},
};

static void every_door_answers_as_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(doors); i++) {
        const door *one = &doors[i];
        bench self;
        bench_init(&self);
        wire through;
        bench_http(&self, &through, one->verb, one->fields, one->body);
        if (through.status != one->status || through.answers != 1) {
            fail_msg("%s: %d %s", one->what, through.status,
                     through.body != NULL ? through.body : "");
        }
        if (one->has == NULL) {
            assert_null(through.body);
        } else if (through.body == NULL || strstr(through.body, one->has) == NULL) {
            fail_msg("%s: %s", one->what, through.body != NULL ? through.body : "no body");
        }
        if (one->lacks != NULL) {
            assert_lacks(through.body, one->lacks);
        }
        assert_null(through.carrier.engine);
        bench_fini(&self);
        wire_fini(&through);
    }
}

static void a_server_of_one_era_knows_no_other(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.oldest = MCP_REV_2026_07_28;
    bench_init_with(&self, &options);
    static const char *const verbs[] = {"GET", "HEAD", "DELETE"};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        wire through;
        bench_http(&self, &through, verbs[i], plain_fields, NULL);
        assert_int_equal(through.status, 405);
        assert_string_equal(through.allow, "POST");
        wire_fini(&through);
    }
    wire through;
    bench_http(&self, &through, "POST", plain_fields, INITIALIZE("2025-11-25"));
    assert_int_equal(through.status, 400);
    assert_has(through.body, "\"id\":1,\"error\":{\"code\":-32020");
    assert_has(through.body, "2026-07-28");
    wire_fini(&through);
    bench_fini(&self);

    options = bench_options();
    options.newest = MCP_REV_2025_11_25;
    bench_init_with(&self, &options);
    bench_http(&self, &through, "POST", call_fields, CALL("1", ""));
    assert_int_equal(through.status, 400);
    assert_has(through.body, "-32600"); /* nothing a client could take for a modern server's word */
    wire_fini(&through);
    bench_fini(&self);
}

static void parameters_must_stand_in_their_headers(void **state)
{
    (void)state;
    static const bay_str path[] = {STR_INIT("region")};
    static const mcp_param params[] = {{STR_INIT("Region"), path, 1, JSON_STRING}};
    static const mcp_param_table table = {params, 1};
    static const struct {
        const char *value; /* NULL: no header */
        const char *arguments;
        int status;
    } cases[] = {
        {NULL, ",\"arguments\":{\"region\":\"eu\"}", 400},
        {"us", ",\"arguments\":{\"region\":\"eu\"}", 400},
        {"eu", ",\"arguments\":{}", 400},
        {"=?base64?ZXU?=", ",\"arguments\":{\"region\":\"eu\"}", 400},
        {"eu", ",\"arguments\":{\"region\":\"eu\"}", 200},
        {"=?base64?ZXU=?=", ",\"arguments\":{\"region\":\"eu\"}", 200},
        {NULL, ",\"arguments\":{\"region\":null}", 200},
        {NULL, "", 200},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        size_t at = i / 2;
        bool is_late = i % 2 == 1; /* the service knows the tool only after the fields are gone */
        bench self;
        bench_init(&self);
        self.params = &table;
        self.are_params_pending = is_late;
        self.mode = is_late ? ANSWER_LATER : ANSWER_NOW;
        char body[512];
        (void)snprintf(body, sizeof(body), "%.*s%s}}", (int)(sizeof(CALL("1", "")) - 3),
                       CALL("1", ""), cases[at].arguments);
        wire through;
        bench_http(
            &self, &through, "POST",
            CALL_FIELDS(MODERN_VERSION, METHOD_CALL, NAME_T,
                        {cases[at].value != NULL ? "Mcp-Param-Region" : "X", cases[at].value}),
            body);
        if (is_late) {
            assert_int_equal(self.held_count, 1);
            mcp_request *request = bench_take(&self);
            if (mcp_request_check_params(request, &table)) {
                assert_true(mcp_request_check_params(request, NULL)); /* once is enough */
                mcp_request_result_members(request, STR("\"content\":[]"));
            }
        }
        if (through.status != cases[at].status) {
            fail_msg("case %zu: %d %s", i, through.status, through.body);
        }
        if (cases[at].status == 400) {
            assert_has(through.body, "-32020");
        }
        wire_fini(&through);
        bench_fini(&self);
    }
}

static void bombs_are_answered(void **state)
{
    (void)state;
    enum { BRACKETS = 100000 };
    bench self;
    bench_init(&self);
    char *body = malloc(BRACKETS + 1);
    assert_non_null(body);
    memset(body, '[', BRACKETS);
    body[BRACKETS] = 0;
    wire through;
    bench_http(&self, &through, "POST", call_fields, body);
    assert_int_equal(through.status, 400);
    assert_has(through.body, "-32700");
    wire_fini(&through);
    free(body);
    bench_fini(&self);
}

static void a_capability_that_is_not_declared_has_no_methods(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.capabilities = "{\"tools\":{}}";
    wire through;
    bench_http(&self, &through, "POST", CALL_FIELDS(MODERN_VERSION, {"Mcp-Method", "prompts/list"}),
               MODERN("prompts/list"));
    assert_int_equal(through.status, 404);
    assert_has(through.body, "-32601");
    wire_fini(&through);
    assert_int_equal(self.requests, 0);
    bench_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_door_answers_as_it_should),
        cmocka_unit_test(a_server_of_one_era_knows_no_other),
        cmocka_unit_test(parameters_must_stand_in_their_headers),
        cmocka_unit_test(bombs_are_answered),
        cmocka_unit_test(a_capability_that_is_not_declared_has_no_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
