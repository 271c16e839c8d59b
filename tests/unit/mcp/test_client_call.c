/* One call: the bytes that go out, its header fields, its clock, its end. */
#include "client_fixture.h"

static fixture fx;

#define META                                                                                       \
    "'io.modelcontextprotocol/protocolVersion':'2026-07-28','io.modelcontextprotocol/clientInfo':" \
    "{'name':'test','version':'1'},'io.modelcontextprotocol/clientCapabilities':{}"

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_refused_specs(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    struct {
        const char *method, *params, *meta;
        bay_err err;
    } rows[] = {
        {"", NULL, NULL, BAY_ERR_INVALID},
        {"initialize", "{}", NULL, BAY_ERR_INVALID},
        {"tools/list", "[]", NULL, BAY_ERR_INVALID},
        {"tools/list", "1", NULL, BAY_ERR_INVALID},
        {"tools/list", "null", NULL, BAY_ERR_INVALID},
        {"tools/list", NULL, "[]", BAY_ERR_INVALID},
        {"notifications/cancelled", NULL, NULL, BAY_ERR_INVALID},
        {"ping", NULL, NULL, BAY_ERR_UNSUPPORTED},
        {"logging/setLevel", "{'level':'info'}", NULL, BAY_ERR_UNSUPPORTED},
        {"resources/subscribe", "{'uri':'a'}", NULL, BAY_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static fx_name name;
        name = (fx_name){.text = "x"};
        mcp_call_spec spec = fx_spec(&fx, rows[i].method, rows[i].params);
        spec.meta = fx_value(&fx, rows[i].meta);
        assert_int_equal(fx_try(&fx, &name, &spec, NULL), rows[i].err);
        assert_int_equal(name.done_count, 0);
    }
    fx_quiet(&fx);
    assert_int_equal(mcp_client_open_calls(fx.client), 0);
    fx_fini(&fx);
}

static void test_refused_when_waiting(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx.options.newest = MCP_LATEST_LEGACY;
    fx_new(&fx);
    static fx_name name;
    name = (fx_name){.text = "x"};
    mcp_call_spec spec = fx_spec(&fx, "server/discover", NULL);
    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_ERR_UNSUPPORTED);
    fx_fini(&fx);
}

static void test_busy(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx.options.max_calls = 2;
    fx_new(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"}, three = {.text = "three"};
    mcp_call *call = fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    assert_int_equal(fx_try(&fx, &three, &spec, NULL), BAY_ERR_BUSY);
    mcp_call_cancel(call, STR("enough"));
    assert_int_equal(fx_try(&fx, &three, &spec, NULL), BAY_OK);
    assert_int_equal(one.done_count, 0);
    assert_int_equal(mcp_client_open_calls(fx.client), 2);
    fx_fini(&fx);
    assert_int_equal(two.done_count, 1);
    assert_int_equal(two.err, BAY_ERR_CANCELLED);
    assert_false(two.was_sent);
}

static void test_not_sent(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    static fx_name name;
    name = (fx_name){.text = "x"};
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    fx.send_err = BAY_ERR_CONNECT;
    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_ERR_CONNECT);
    assert_int_equal(name.done_count, 0);
    assert_int_equal(mcp_client_open_calls(fx.client), 0);
    fx_fini(&fx);
    assert_int_equal(name.done_count, 0);
}

/* ---- splicing -------------------------------------------------------------------------------- */

typedef struct splice {
    const char *method, *params, *meta, *rename;
    bool wants_progress;
    const char *modern, *legacy; /* from "params" on; NULL: none */
} splice;

#define SAME(params, rest) "{" params ",'_meta':{" META rest "}}", "{" params "}"

static const splice splices[] = {
    {"tools/list", NULL, NULL, NULL, false, "{'_meta':{" META "}}", NULL},
    {"tools/list", "{}", NULL, NULL, false, "{'_meta':{" META "}}", "{}"},
    {"tools/list", "{'cursor':'c'}", NULL, NULL, false, SAME("'cursor':'c'", "")},
    /* exotic numbers, escapes, order and doubles survive */
    {"tools/call",
     "{'name':'a','arguments':{'n':1.0E+2,'m':-0,'u':18446744073709551616,'e':1e400}}", NULL, NULL,
     false,
     SAME("'name':'a','arguments':{'n':1.0E+2,'m':-0,'u':18446744073709551616,'e':1e400}", "")},
    {"tools/call", "{'arguments':{'s':'\\u00e9\\/\\ud83d\\ude00\\u0000','b':1,'b':2},'name':'a'}",
     NULL, NULL, false,
     SAME("'arguments':{'s':'\\u00e9\\/\\ud83d\\ude00\\u0000','b':1,'b':2},'name':'a'", "")},
    {"tools/call", "{'na\\u006de':'a','arguments':{ }}", NULL, NULL, false,
     SAME("'na\\u006de':'a','arguments':{ }", "")},
    {"tools/call", "{'name':'a','x':1,'x':2,'':[null , true]}", NULL, NULL, false,
     SAME("'name':'a','x':1,'x':2,'':[null , true]", "")},
    /* the caller's _meta: ours replaced, his kept; the one in params does not count */
    {"tools/call", "{'_meta':{'old':1},'name':'a'}", "{'traceparent':'00-1','v/x':[1.50]}", NULL,
     false, "{'name':'a','_meta':{" META ",'traceparent':'00-1','v/x':[1.50]}}",
     "{'name':'a','_meta':{'traceparent':'00-1','v/x':[1.50]}}"},
    {"tools/call", "{'_m\\u0065ta':{'old':1},'name':'a'}", NULL, NULL, false,
     SAME("'name':'a'", "")},
    {"tools/call", "{'name':'a'}",
     "{'progressToken':'his','io.modelcontextprotocol/"
     "protocolVersion':'1','io.modelcontextprotocol/clientInfo':1,'io.modelcontextprotocol/"
     "clientCapabilities':2,'io.modelcontextprotocol/logLevel':'debug','progress\\u0054oken':3}",
     NULL, false, SAME("'name':'a'", "")},
    {"tools/call", "{'name':'a'}", "{'progressToken':'his','k':1}", NULL, true,
     "{'name':'a','_meta':{" META ",'progressToken':#,'k':1}}",
     "{'name':'a','_meta':{'progressToken':#,'k':1}}"},
    {"tools/list", NULL, NULL, NULL, true, "{'_meta':{" META ",'progressToken':#}}",
     "{'_meta':{'progressToken':#}}"},
    /* the upstream's own name */
    {"tools/call", "{'name':'files.read','arguments':{'name':'x'}}", NULL, "read", false,
     "{'name':'read','arguments':{'name':'x'},'_meta':{" META "}}",
     "{'name':'read','arguments':{'name':'x'}}"},
    {"tools/call", "{'n\\u0061me':'b','name':'a'}", NULL, "re\"ad", false,
     "{'name':'re\\'ad','_meta':{" META "}}", "{'name':'re\\'ad'}"},
    {"resources/read", "{'uri':'a'}", NULL, "file:///é", false,
     "{'uri':'file:///é','_meta':{" META "}}", "{'uri':'file:///é'}"},
    {"tools/list", "{'name':'a'}", NULL, "b", false, SAME("'name':'a'", "")},
    /* methods of extensions pass as they are */
    {"x/y", "{'a':1}", NULL, NULL, false, SAME("'a':1", "")},
};

static void expect_bytes(const fx_record *sent, const char *method, const char *params)
{
    char expected[FX_TEXT], text[FX_TEXT * 2];
    if (params != NULL) {
        snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':#,'method':'%s','params':%s}", method,
                 params);
    } else {
        snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':#,'method':'%s'}", method);
    }
    fx_text(text, sent->exchange, expected, sizeof(expected));
    assert_string_equal(sent->text, expected);
    assert_int_equal(sent->len, strlen(expected));
}

static mcp_call_spec spec_of(const splice *row)
{
    mcp_call_spec spec = fx_spec(&fx, row->method, row->params);
    spec.meta = fx_value(&fx, row->meta);
    spec.rename = str_of(row->rename);
    spec.wants_progress = row->wants_progress;
    return spec;
}

static void test_splicing(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        for (int waits = 0; waits < 2; waits++) {
            for (size_t i = 0; i < sizeof(splices) / sizeof(splices[0]); i++) {
                const splice *row = &splices[i];
                static fx_name name;
                name = (fx_name){.text = "x"};
                fx_init(&fx, MCP_LINK_DUPLEX);
                fx.options.newest = is_modern ? MCP_LATEST : MCP_LATEST_LEGACY;
                mcp_call_spec spec;
                if (waits) {
                    fx_new(&fx);
                    spec = spec_of(row);
                    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
                    arena_reset(&fx.memory); /* what was given is not needed any more */
                    mcp_client_opened(fx.client, fx.now);
                } else {
                    fx_open(&fx);
                }
                if (is_modern) {
                    fx_line(&fx, fx_next(&fx)->exchange, FX_DISCOVER("['2026-07-28']", "{}"));
                } else {
                    fx_answer_initialize(&fx, "");
                }
                if (!waits) {
                    spec = spec_of(row);
                    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
                }
                expect_bytes(fx_next_kind(&fx, 'S'), row->method,
                             is_modern ? row->modern : row->legacy);
                fx_quiet(&fx);
                fx_fini(&fx);
            }
        }
    }
}

static void test_own_capabilities_and_level(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx.options.title = STR("A \"test\"");
    fx.options.capabilities = STR("{\"roots\":{}}");
    fx_open_modern(&fx);
    static fx_name name;
    name = (fx_name){.text = "x"};
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
    expect_bytes(
        fx_next(&fx), "tools/list",
        "{'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
        "'io.modelcontextprotocol/clientInfo':{'name':'test','title':'A \\'test\\'','version':'1'},"
        "'io.modelcontextprotocol/clientCapabilities':{'roots':{}}}}");
    spec.capabilities = STR("{\"sampling\":{}}");
    spec.client_info = STR("{\"name\":\"other\",\"version\":\"0\"}");
    spec.log_level = MCP_LOG_WARNING;
    assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
    expect_bytes(fx_next(&fx), "tools/list",
                 "{'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                 "'io.modelcontextprotocol/clientInfo':{'name':'other','version':'0'},"
                 "'io.modelcontextprotocol/clientCapabilities':{'sampling':{}},"
                 "'io.modelcontextprotocol/logLevel':'warning'}}");
    mcp_client_set_level(fx.client, MCP_LOG_INFO, fx.now);
    fx_call(&fx, &name, "tools/list", NULL);
    fx_expect(&fx, "'io.modelcontextprotocol/logLevel':'info'");
    fx_fini(&fx);
}

/* ---- header fields --------------------------------------------------------------------------- */

static void test_fields(void **state)
{
    (void)state;
    struct {
        const char *method, *params, *rename, *fields;
    } rows[] = {
        {"tools/list", NULL, NULL, "Mcp-Method: tools/list\n"},
        {"tools/call", "{'name':'add'}", NULL, "Mcp-Method: tools/call\nMcp-Name: add\n"},
        {"tools/call", "{'name':'f.add'}", "add", "Mcp-Method: tools/call\nMcp-Name: add\n"},
        {"tools/call", "{'name':'\\u0061\\u0062'}", NULL, "Mcp-Method: tools/call\nMcp-Name: ab\n"},
        {"prompts/get", "{'name':'Hello, 世界'}", NULL,
         "Mcp-Method: prompts/get\nMcp-Name: =?base64?SGVsbG8sIOS4lueVjA==?=\n"},
        {"resources/read", "{'uri':'a\\r\\nX: y'}", NULL,
         "Mcp-Method: resources/read\nMcp-Name: =?base64?YQ0KWDogeQ==?=\n"},
        {"tools/call", "{'name':' padded '}", NULL,
         "Mcp-Method: tools/call\nMcp-Name: =?base64?IHBhZGRlZCA=?=\n"},
        {"tools/call", "{'name':5}", NULL, "Mcp-Method: tools/call\n"},
        {"tools/call", "{}", NULL, "Mcp-Method: tools/call\n"},
        {"x/y", "{'name':'a'}", NULL, "Mcp-Method: x/y\n"},
    };
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static fx_name name;
        name = (fx_name){.text = "x"};
        char expected[FX_TEXT];
        mcp_call_spec spec = fx_spec(&fx, rows[i].method, rows[i].params);
        spec.rename = str_of(rows[i].rename);
        assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
        snprintf(expected, sizeof(expected), "MCP-Protocol-Version: 2026-07-28\n%s",
                 rows[i].fields);
        assert_string_equal(fx_next(&fx)->fields, expected);
    }
    fx_fini(&fx);
}

static void test_param_fields(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        fx_init(&fx, MCP_LINK_HTTP);
        mcp_param_table table;
        json_val schema = fx_value(
            &fx,
            "{'type':'object','properties':{'region':{'type':'string','x-mcp-header':'Region'},"
            "'count':{'type':'integer','x-mcp-header':'Count'},'dry':{'type':'boolean',"
            "'x-mcp-header':'Dry'},'none':{'type':'string','x-mcp-header':'None'},"
            "'empty':{'type':'string','x-mcp-header':'Empty'}}}");
        assert_int_equal(mcp_param_table_read(&table, schema, &fx.memory, NULL), BAY_OK);
        static fx_name name;
        name = (fx_name){.text = "x"};
        mcp_call_spec spec = fx_spec(&fx, "tools/call",
                                     "{'name':'t','arguments':{'region':'\\u00fcber','count':42,'"
                                     "dry':true,'none':null,'empty':''}}");
        spec.param_table = &table;
        if (waits) {
            fx_new(&fx);
            assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
            arena_reset(&fx.memory);
            mcp_client_opened(fx.client, fx.now);
            fx_reply(&fx, fx_next(&fx)->exchange, 200, FX_DISCOVER("['2026-07-28']", "{}"));
        } else {
            fx_open_modern(&fx);
            assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
        }
        assert_string_equal(
            fx_next(&fx)->fields,
            "MCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: t\n"
            "Mcp-Param-Region: =?base64?w7xiZXI=?=\nMcp-Param-Count: 42\n"
            "Mcp-Param-Dry: true\nMcp-Param-Empty: \n");
        fx_fini(&fx);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void test_timeout(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        for (int is_modern = 0; is_modern < 2; is_modern++) {
            fx_init(&fx, (mcp_link_kind)kind);
            fx_name call = {.text = "call"};
            if (is_modern) {
                fx_open_modern(&fx);
            } else {
                fx_open_legacy(&fx, "");
            }
            mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
            spec.timeout_ms = 500;
            assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
            uint64_t id = fx_next(&fx)->exchange;
            fx_pass(&fx, 499);
            assert_int_equal(call.done_count, 0);
            fx_pass(&fx, 1);
            fx_saw(&fx, "call failed TIMEOUT sent the server did not answer in time\n");
            if (kind == MCP_LINK_HTTP && is_modern) {
                assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
            } else {
                char text[FX_TEXT];
                fx_record *sent = fx_next_kind(&fx, 'S');
                assert_string_equal(
                    sent->text,
                    fx_text("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                            "'requestId':#,'reason':'timed out'}}",
                            id, text, sizeof(text)));
                assert_int_equal(sent->exchange, 0);
            }
            /* The late answer changes nothing. */
            fx_message(&fx, kind == MCP_LINK_HTTP ? id : 0, id, FX_RESULT("{'content':[]}"));
            fx_saw(&fx, "");
            fx_pass(&fx, 10000);
            fx_saw(&fx, "");
            if (kind == MCP_LINK_HTTP && !is_modern) {
                fx_next_kind(&fx, 'A'); /* it did not end by itself */
            }
            fx_quiet(&fx);
            fx_fini(&fx);
            assert_int_equal(call.done_count, 1);
        }
    }
}

static void test_timeout_of_a_waiting_call(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    fx_name call = {.text = "call"};
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    spec.timeout_ms = 500;
    assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_OPENING);
    assert_int_equal(mcp_client_tick(fx.client, fx.now), fx.now + 500);
    fx_pass(&fx, 500);
    fx_saw(&fx, "call failed TIMEOUT unsent the server did not answer in time\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_progress_extends_but_not_for_ever(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'a'}");
    spec.timeout_ms = 500;
    spec.max_total_ms = 1300;
    spec.wants_progress = true;
    assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
    uint64_t id = fx_next(&fx)->exchange;
    fx_head(&fx, id, 200);
    for (int i = 0; i < 3; i++) {
        fx_pass(&fx, 400);
        fx_message(&fx, id, id,
                   "{'jsonrpc':'2.0','method':'notifications/"
                   "progress','params':{'progressToken':#,'progress':0.5}}");
        fx_saw_part(&fx, "call notified notifications/progress {'progressToken':");
    }
    fx_pass(&fx, 99);
    assert_int_equal(call.done_count, 0);
    fx_pass(&fx, 1);
    assert_int_equal(call.err, BAY_ERR_TIMEOUT);
    fx_fini(&fx);
}

static void test_progress_of_others(void **state)
{
    (void)state;
    const char *tokens[] = {"'#'", "#.0", "0", "99", "null", "-1", "#e0", "0#"};
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"}, other = {.text = "other"};
    mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'a'}");
    spec.wants_progress = true;
    assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
    uint64_t id = fx_next(&fx)->exchange;
    for (size_t i = 0; i < 8; i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{'jsonrpc':'2.0','method':'notifications/"
                 "progress','params':{'progressToken':%s,'progress':1}}",
                 tokens[i]);
        fx_message(&fx, id, id, text);
    }
    fx_message(&fx, id, id, "{'jsonrpc':'2.0','method':'notifications/progress'}");
    fx_saw(&fx, "");
    spec.wants_progress = false;
    assert_int_equal(fx_try(&fx, &other, &spec, NULL), BAY_OK);
    uint64_t quiet = fx_next(&fx)->exchange;
    fx_message(&fx, quiet, quiet,
               "{'jsonrpc':'2.0','method':'notifications/"
               "progress','params':{'progressToken':#,'progress':1}}");
    /* on the wrong exchange */
    fx_message(&fx, quiet, id,
               "{'jsonrpc':'2.0','method':'notifications/"
               "progress','params':{'progressToken':#,'progress':1}}");
    fx_saw(&fx, "");
    fx_fini(&fx);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void test_answers(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx_open_modern(&fx);
        fx_name one = {.text = "one"}, two = {.text = "two"};
        fx_call(&fx, &one, "tools/call", "{'name':'a'}");
        fx_call(&fx, &two, "tools/call", "{'name':'b'}");
        uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
        uint64_t at = kind == MCP_LINK_HTTP ? 1 : 0;
        fx_message(&fx, at * second, second, FX_ERROR("-32602"));
        fx_message(&fx, at * first, first, " " FX_RESULT("{ 'n' : 1.50 ,'content':[]}") " ");
        fx_saw(&fx, "two error -32602 {'code':-32602,'message':'no'}\none result { 'n' : 1.50 "
                    ",'content':[]}\n");
        assert_int_equal(mcp_client_open_calls(fx.client), 0);
        fx_ended(&fx, first, BAY_OK);
        fx_ended(&fx, second, BAY_OK);
        fx_pass(&fx, 100000);
        fx_quiet(&fx);
        fx_fini(&fx);
        assert_int_equal(one.done_count + two.done_count, 2);
    }
}

static void test_answered_exchange_that_stays_open(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_message(&fx, id, id, FX_RESULT("{'content':[]}"));
    fx_quiet(&fx);
    uint64_t due = fx_pass(&fx, 1999);
    assert_int_equal(due, fx.now + 1);
    fx_quiet(&fx);
    fx_pass(&fx, 1);
    assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
    fx_fini(&fx);
}

static void test_cancel(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        for (int is_modern = 0; is_modern < 2; is_modern++) {
            fx_init(&fx, (mcp_link_kind)kind);
            fx_name name = {.text = "call"};
            if (is_modern) {
                fx_open_modern(&fx);
            } else {
                fx_open_legacy(&fx, "");
            }
            mcp_call *call = fx_call(&fx, &name, "tools/list", NULL);
            uint64_t id = fx_next(&fx)->exchange;
            mcp_call_cancel(call, STR("not \"needed\""));
            if (kind == MCP_LINK_HTTP && is_modern) {
                fx_next_kind(&fx, 'A');
            } else {
                char text[FX_TEXT];
                snprintf(text, sizeof(text),
                         "'method':'notifications/"
                         "cancelled','params':{'requestId':%llu,'reason':'not \\'needed\\''}}",
                         (unsigned long long)id);
                fx_expect(&fx, text);
            }
            fx_message(&fx, kind == MCP_LINK_HTTP ? id : 0, id, FX_RESULT("{'content':[]}"));
            fx_ended(&fx, id, BAY_OK);
            assert_int_equal(mcp_client_open_calls(fx.client), 0);
            fx_saw(&fx, "");
            fx_quiet(&fx);
            fx_fini(&fx);
            assert_int_equal(name.done_count, 0);
        }
    }
}

static void test_cancel_of_a_waiting_call(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    mcp_call *call = fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "prompts/list", NULL);
    mcp_call_cancel(call, (bay_str){0});
    mcp_client_opened(fx.client, fx.now);
    fx_line(&fx, fx_expect(&fx, "discover")->exchange, FX_DISCOVER("['2026-07-28']", "{}"));
    fx_expect(&fx, "prompts/list");
    fx_quiet(&fx);
    fx_fini(&fx);
    assert_int_equal(one.done_count, 0);
}

static void test_queue_keeps_order(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    fx_name names[3] = {{.text = "a"}, {.text = "b"}, {.text = "c"}};
    fx_call(&fx, &names[0], "tools/list", "{'cursor':'0'}");
    fx_call(&fx, &names[1], "ping", NULL); /* not in the revision that will be spoken */
    fx_call(&fx, &names[2], "tools/list", "{'cursor':'2'}");
    mcp_client_opened(fx.client, fx.now);
    fx_line(&fx, fx_expect(&fx, "discover")->exchange, FX_DISCOVER("['2026-07-28']", "{}"));
    fx_expect(&fx, "'cursor':'0'");
    fx_expect(&fx, "'cursor':'2'");
    fx_saw(
        &fx,
        "ready 2026-07-28\nb failed UNSUPPORTED unsent the revision spoken has no such method\n");
    fx_fini(&fx);
}

static void test_clogged_link(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx.send_err = BAY_ERR_AGAIN;
    fx_call(&fx, &one, "tools/list", NULL);
    fx_expect(&fx, "tools/list");
    fx.send_err = BAY_OK;
    fx_call(&fx, &two, "prompts/list", NULL);
    fx_quiet(&fx);
    mcp_client_drained(fx.client);
    fx_expect(&fx, "prompts/list");
    fx_fini(&fx);
}

static void test_broken_link(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx.send_err = BAY_ERR_AGAIN;
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    mcp_client_broken(fx.client, BAY_ERR_EXITED, "status 1", fx.now);
    fx_saw(&fx, "one failed EXITED sent status 1\ntwo failed EXITED unsent status 1\nbroken EXITED "
                "status 1\n");
    mcp_client_broken(fx.client, BAY_ERR_EXITED, "again", fx.now);
    fx_saw(&fx, "");
    fx_fini(&fx);
}

static void test_pause(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    mcp_call *first = fx_call(&fx, &one, "tools/list", NULL);
    mcp_call *second = fx_call(&fx, &two, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_next(&fx);
    mcp_call_pause(first, true);
    assert_true(fx_next_kind(&fx, 'P')->is_paused);
    mcp_call_pause(second, true);
    mcp_call_pause(second, true);
    mcp_call_pause(second, false);
    fx_quiet(&fx);
    fx_line(&fx, id, FX_RESULT("{'content':[]}")); /* its end is the end of its pause */
    assert_false(fx_next_kind(&fx, 'P')->is_paused);
    fx_quiet(&fx);
    fx_fini(&fx);

    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    first = fx_call(&fx, &one, "tools/list", NULL);
    id = fx_next(&fx)->exchange;
    mcp_call_pause(first, true);
    fx_record *record = fx_next_kind(&fx, 'P');
    assert_int_equal(record->exchange, id);
    assert_true(record->is_paused);
    mcp_call_pause(first, false);
    assert_false(fx_next_kind(&fx, 'P')->is_paused);
    fx_fini(&fx);
}

/* ---- callbacks that do things ---------------------------------------------------------------- */

static fx_name nested = {.text = "nested"};

static void start_another(fixture *self, mcp_call *call, const mcp_outcome *outcome)
{
    (void)call;
    self->on_done = NULL;
    fx_call(self, &nested, "tools/call", "{'name':'nested'}");
    /* The views of the outcome outlive what happens meanwhile. */
    fx_log(self, "still %.*s\n", BAY_STR(json_raw(outcome->result)));
}

static void test_done_starts_a_call(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    nested = (fx_name){.text = "nested"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx.on_done = start_another;
    fx_reply(&fx, fx_next(&fx)->exchange, 200, FX_RESULT("{'content':[],'a':1}"));
    fx_saw(&fx, "call result {'content':[],'a':1}\nstill {'content':[],'a':1}\n");
    fx_reply(&fx, fx_expect(&fx, "'name':'nested'")->exchange, 200, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "nested result {'content':[]}\n");
    fx_fini(&fx);
}

static void free_the_client(fixture *self, mcp_call *call, const mcp_outcome *outcome)
{
    (void)call;
    (void)outcome;
    self->on_done = NULL;
    mcp_client_free(self->client);
    self->client = NULL;
}

static void test_done_frees_the_client(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        fx_init(&fx, way == 1 ? MCP_LINK_DUPLEX : MCP_LINK_HTTP);
        fx_open_modern(&fx);
        fx_name one = {.text = "one"}, two = {.text = "two"};
        fx_call(&fx, &one, "tools/list", NULL);
        fx_call(&fx, &two, "tools/list", NULL);
        uint64_t id = fx_next(&fx)->exchange;
        fx.on_done = free_the_client;
        if (way < 2) {
            fx_message(&fx, way == 1 ? 0 : id, id, FX_RESULT("{'content':[]}"));
        } else if (way == 2) {
            mcp_client_broken(fx.client, BAY_ERR_CLOSED, "gone", fx.now);
        } else {
            fx_pass(&fx, 1000000);
        }
        assert_null(fx.client);
        assert_int_equal(one.done_count, 1);
        assert_int_equal(two.done_count, 1);
        fx_fini(&fx);
    }
}

static mcp_call *victim;

static void cancel_the_other(fixture *self, mcp_call *call, const mcp_outcome *outcome)
{
    (void)call;
    (void)outcome;
    self->on_done = NULL;
    mcp_call_cancel(victim, (bay_str){0});
}

static void test_done_cancels_another(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    victim = fx_call(&fx, &two, "tools/list", NULL);
    fx.on_done = cancel_the_other;
    fx_pass(&fx, 1000000); /* both are due at once */
    assert_int_equal(one.done_count, 1);
    assert_int_equal(two.done_count, 0);
    assert_int_equal(mcp_client_open_calls(fx.client), 0);
    fx_fini(&fx);
}

static void open_again(fixture *self, mcp_call *call, const mcp_outcome *outcome)
{
    (void)call;
    (void)outcome;
    self->on_done = NULL;
    mcp_client_opened(self->client, self->now);
}

static void test_done_opens_the_link_again(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    fx.on_done = open_again;
    mcp_client_broken(fx.client, BAY_ERR_EXITED, "gone", fx.now);
    fx_saw(&fx, "one failed EXITED sent gone\nready 2026-07-28\ntwo failed EXITED sent gone\n");
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_READY);
    fx_fini(&fx);
}

/* ---- the hot path ---------------------------------------------------------------------------- */

static size_t allocations;

static void *count_alloc(size_t bytes, void *user)
{
    (void)user;
    allocations++;
    return malloc(bytes);
}

static void *count_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    allocations++;
    return realloc(old, bytes);
}

static void count_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static void test_steady_state_allocates_nothing(void **state)
{
    (void)state;
    static const mem_hooks hooks = {count_alloc, count_resize, count_release, NULL};
    mem_set_hooks(&hooks);
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'add','arguments':{'a':1,'b':2}}");
    spec.wants_progress = true;
    size_t before = 0;
    for (int i = 0; i < 100; i++) {
        static fx_name name;
        name = (fx_name){.text = "x"};
        assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
        fx_reply(&fx, fx_next(&fx)->exchange, 200,
                 FX_RESULT("{'resultType':'complete','content':[{'type':'text','text':'3'}]}"));
        assert_int_equal(name.done_count, 1);
        before = i == 9 ? allocations : before;
    }
    assert_int_equal(allocations, before);
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_specs),
        cmocka_unit_test(test_refused_when_waiting),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_not_sent),
        cmocka_unit_test(test_splicing),
        cmocka_unit_test(test_own_capabilities_and_level),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_param_fields),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_timeout_of_a_waiting_call),
        cmocka_unit_test(test_progress_extends_but_not_for_ever),
        cmocka_unit_test(test_progress_of_others),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_answered_exchange_that_stays_open),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_of_a_waiting_call),
        cmocka_unit_test(test_queue_keeps_order),
        cmocka_unit_test(test_clogged_link),
        cmocka_unit_test(test_broken_link),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_done_starts_a_call),
        cmocka_unit_test(test_done_frees_the_client),
        cmocka_unit_test(test_done_cancels_another),
        cmocka_unit_test(test_done_opens_the_link_again),
        cmocka_unit_test(test_steady_state_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
