/* The handshake era: sessions won and lost, streams cut and resumed, the GET stream, requests of
 * the server, subscribe and setLevel. */
#include "client_fixture.h"

static fixture fx;

static void test_initialize_bytes(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.newest = MCP_LATEST_LEGACY;
    fx.options.capabilities = STR("{\"roots\":{}}");
    fx_open(&fx);
    char text[FX_TEXT];
    fx_record *sent = fx_next_kind(&fx, 'S');
    assert_string_equal(sent->text,
                        fx_text("{'jsonrpc':'2.0','id':#,'method':'initialize','params':{"
                                "'protocolVersion':'2025-11-25','capabilities':{'roots':{}},"
                                "'clientInfo':{'name':'test','version':'1'}}}",
                                sent->exchange, text, sizeof(text)));
    assert_string_equal(sent->fields, "");
    mcp_client_head(fx.client, sent->exchange, 200, STR("s-1"), fx.now);
    fx_message(&fx, sent->exchange, sent->exchange, FX_INITIALIZED("2025-06-18", "{}"));
    sent = fx_next_kind(&fx, 'S');
    assert_string_equal(sent->text,
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_string_equal(sent->fields, "MCP-Protocol-Version: 2025-06-18\nMcp-Session-Id: s-1\n");
    assert_int_equal(sent->exchange, 0);
    fx_fini(&fx);
}

static void test_old_revisions_have_no_version_field(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.newest = MCP_LATEST_LEGACY;
    fx_open(&fx);
    fx_reply(&fx, fx_next(&fx)->exchange, 200, FX_INITIALIZED("2025-03-26", "{}"));
    assert_string_equal(fx_next_kind(&fx, 'S')->fields, "");
    fx_fini(&fx);
}

static void test_bad_session_ids(void **state)
{
    (void)state;
    static char large[4096];
    memset(large, 'a', sizeof(large));
    bay_str ids[] = {
        STR("a b"), STR("a\r\nX: y"), STR("\x80"), STR("a\0b"), {large, sizeof(large)}};
    for (size_t i = 0; i < 5; i++) {
        fx_init(&fx, MCP_LINK_HTTP);
        fx.options.newest = MCP_LATEST_LEGACY;
        fx_open(&fx);
        uint64_t id = fx_next(&fx)->exchange;
        mcp_client_head(fx.client, id, 200, ids[i], fx.now);
        fx_message(&fx, id, id, FX_INITIALIZED("2025-11-25", "{}"));
        fx_ended(&fx, id, BAY_OK);
        assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_BROKEN);
        fx_saw_part(&fx, "broken PROTOCOL");
        fx_fini(&fx);
    }
}

static void test_session_is_not_for_modern(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open(&fx);
    uint64_t id = fx_next(&fx)->exchange;
    mcp_client_head(fx.client, id, 200, STR("s-1"), fx.now);
    fx_message(&fx, id, id, FX_DISCOVER("['2026-07-28']", "{}"));
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    assert_null(strstr(fx_expect(&fx, "tools/list")->fields, "Session"));
    mcp_client_close(fx.client);
    fx_next_kind(&fx, 'A');
    fx_next_kind(&fx, 'A');
    fx_quiet(&fx); /* nothing to delete */
    fx_fini(&fx);
}

/* ---- sessions lost --------------------------------------------------------------------------- */

static void test_lost_session_is_begun_again(void **state)
{
    (void)state;
    const char *bodies[] = {
        NULL, "gone",
        "{'jsonrpc':'2.0','id':null,'error':{'code':-32001,'message':'Session not found'}}",
        FX_ERROR("-32001")};
    for (size_t i = 0; i < 4; i++) {
        fx_init(&fx, MCP_LINK_HTTP);
        fx_open_legacy(&fx, "s-1");
        fx_name one = {.text = "one"}, two = {.text = "two"}, three = {.text = "three"};
        fx_call(&fx, &one, "tools/call", "{'name':'1'}");
        fx_call(&fx, &two, "tools/call", "{'name':'2'}");
        uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
        fx_reply(&fx, second, 404, bodies[i]);
        assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_INITIALIZING);
        fx_call(&fx, &three, "tools/call", "{'name':'3'}");
        fx_reply(&fx, first, 404, bodies[i]); /* the other one too; only one initialize */
        assert_string_equal(fx.record[fx.seen].fields, "");
        fx_answer_initialize(&fx, "s-2");
        const char *names[] = {"'name':'1'", "'name':'2'", "'name':'3'"};
        for (size_t k = 0; k < 3; k++) {
            fx_record *sent = fx_expect(&fx, names[k]);
            assert_string_equal(sent->fields,
                                "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s-2\n");
            fx_reply(&fx, sent->exchange, 200, FX_RESULT("{'content':[]}"));
        }
        fx_saw(&fx, "ready 2025-11-25\none result {'content':[]}\ntwo result {'content':[]}\nthree "
                    "result {'content':[]}\n");
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

/* A 404 that belongs to the session before, seen when the next one is ready. */
static void test_late_404_of_an_old_session(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/call", "{'name':'1'}");
    fx_call(&fx, &two, "tools/call", "{'name':'2'}");
    uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
    fx_reply(&fx, first, 404, NULL);
    fx_answer_initialize(&fx, "s-2");
    fx_expect(&fx, "'name':'1'");
    fx_reply(&fx, second, 404, NULL);
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_READY);
    assert_non_null(strstr(fx_expect(&fx, "'name':'2'")->fields, "s-2"));
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_session_always_lost(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    for (int i = 0; i < 3; i++) {
        fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 404, NULL);
        fx_answer_initialize(&fx, "s");
    }
    assert_int_equal(call.done_count, 1);
    assert_int_equal(call.err, BAY_ERR_CLOSED);
    assert_false(call.was_sent);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_lost_session_server_now_modern(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 404, NULL);
    fx_reply(&fx, fx_expect(&fx, "initialize")->exchange, 400, FX_ERROR("-32602"));
    fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 200,
             FX_DISCOVER("['2026-07-28']", "{}"));
    fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 200, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "ready 2026-07-28\ncall result {'content':[]}\n");
    fx_fini(&fx);
}

static void test_404_without_session(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 404, NULL);
    fx_saw(&fx, "call failed PROTOCOL unsent the server answered HTTP status 404\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_close_deletes_the_session(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_legacy(&fx, "s-1");
    uint64_t stream = fx_next_kind(&fx, 'G')->exchange;
    mcp_client_close(fx.client);
    assert_int_equal(fx_next_kind(&fx, 'A')->exchange, stream);
    assert_string_equal(fx_next_kind(&fx, 'D')->fields,
                        "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s-1\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

/* ---- streams cut ----------------------------------------------------------------------------- */

static void test_cut_without_event_id(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_head(&fx, id, 200);
    fx_ended(&fx, id, BAY_OK);
    fx_saw(&fx, "call failed CLOSED sent the server ended the exchange without an answer\n");
    fx_fini(&fx);
}

static void test_resumption(void **state)
{
    (void)state;
    bay_err ways[] = {BAY_OK, BAY_ERR_CLOSED};
    for (size_t i = 0; i < 2; i++) {
        fx_init(&fx, MCP_LINK_HTTP);
        fx_open_legacy(&fx, "s-1");
        fx_name call = {.text = "call"};
        mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'a'}");
        spec.wants_progress = true;
        assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
        uint64_t id = fx_next(&fx)->exchange;
        fx_head(&fx, id, 200);
        fx_event(&fx, id, "event-1", ""); /* a priming event */
        mcp_client_event_hint(fx.client, id, STR("event-2"), 500);
        fx_ended(&fx, id, ways[i]);
        fx_pass(&fx, 499);
        fx_quiet(&fx);
        fx_pass(&fx, 1);
        fx_record *get = fx_next_kind(&fx, 'G');
        assert_true(get->exchange != id);
        assert_string_equal(get->fields, "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: "
                                         "s-1\nLast-Event-ID: event-2\n");
        fx_head(&fx, get->exchange, 200);
        fx_message(&fx, get->exchange, id,
                   "{'jsonrpc':'2.0','method':'notifications/"
                   "progress','params':{'progressToken':#,'progress':1}}");
        fx_message(&fx, get->exchange, id, FX_RESULT("{'content':[],'a':1}"));
        fx_ended(&fx, get->exchange, BAY_OK);
        char text[256];
        fx_saw_part(&fx,
                    fx_text("call notified notifications/progress "
                            "{'progressToken':#,'progress':1}\ncall result {'content':[],'a':1}\n",
                            id, text, sizeof(text)));
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

static void test_resumption_is_bounded(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name call = {.text = "call"};
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    spec.timeout_ms = spec.max_total_ms = 100000000; /* it is not time that ends it */
    assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_OK);
    uint64_t at = fx_next(&fx)->exchange;
    fx_event(&fx, at, "e", "");
    int gets = 0;
    for (fx_ended(&fx, at, BAY_ERR_CLOSED); call.done_count == 0;
         fx_ended(&fx, at, BAY_ERR_CONNECT)) {
        assert_true(gets < 10);
        fx_pass(&fx, 31000);
        if (call.done_count != 0) {
            break;
        }
        at = fx_next_kind(&fx, 'G')->exchange;
        gets++;
    }
    assert_int_equal(gets, 5);
    assert_int_equal(call.err, BAY_ERR_CONNECT);
    assert_int_equal(call.done_count, 1);
    assert_true(call.was_sent);
    fx_fini(&fx);
}

static void test_resumption_refused(void **state)
{
    (void)state;
    int statuses[] = {405, 400, 404};
    for (size_t i = 0; i < 3; i++) {
        fx_init(&fx, MCP_LINK_HTTP);
        fx_open_legacy(&fx, "s-1");
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/list", NULL);
        uint64_t id = fx_next(&fx)->exchange;
        fx_event(&fx, id, "e", "");
        fx_ended(&fx, id, BAY_OK);
        fx_pass(&fx, 1000);
        fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, statuses[i], NULL);
        assert_int_equal(call.done_count, 1);
        assert_int_equal(call.err, BAY_ERR_CLOSED);
        assert_true(call.was_sent); /* it may well have run: never sent twice */
        if (statuses[i] == 404) {
            fx_answer_initialize(&fx, "s-2");
        }
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

static void test_cancel_while_resuming(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "s-1");
    fx_name name = {.text = "call"};
    mcp_call *call = fx_call(&fx, &name, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_event(&fx, id, "e", "");
    fx_ended(&fx, id, BAY_OK);
    mcp_call_cancel(call, (bay_str){0});
    fx_expect(&fx, "notifications/cancelled");
    fx_pass(&fx, 100000);
    fx_quiet(&fx);
    fx_fini(&fx);
    assert_int_equal(name.done_count, 0);
}

/* ---- the GET stream -------------------------------------------------------------------------- */

static void test_no_stream_offered(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_legacy(&fx, "s-1");
    fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, 405, NULL);
    fx_pass(&fx, 1000000);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_stream_brings_changes(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_legacy(&fx, "s-1");
    fx_record *get = fx_next_kind(&fx, 'G');
    assert_string_equal(get->fields, "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s-1\n");
    uint64_t at = get->exchange;
    fx_head(&fx, at, 200);
    fx_event(&fx, at, "1", "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    fx_event(&fx, at, "2", "{'jsonrpc':'2.0','method':'notifications/prompts/list_changed'}");
    fx_event(&fx, at, "3", "{'jsonrpc':'2.0','method':'notifications/resources/list_changed'}");
    fx_event(&fx, at, "4",
             "{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'file:///"
             "\\u0061'}}");
    fx_event(
        &fx, at, "5",
        "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info','data':1}}");
    fx_saw(
        &fx,
        "changed 1\nchanged 2\nchanged 4\nupdated file:///a\nlogged {'level':'info','data':1}\n");
    /* It ends; it is opened again where it ended, later and later. */
    fx_ended(&fx, at, BAY_OK);
    fx_pass(&fx, 999);
    fx_quiet(&fx);
    fx_pass(&fx, 1);
    get = fx_next_kind(&fx, 'G');
    assert_non_null(strstr(get->fields, "Last-Event-ID: 5\n"));
    uint64_t delays[] = {2000, 4000, 8000};
    for (size_t i = 0; i < 3; i++) {
        mcp_client_ended(fx.client, get->exchange, BAY_ERR_CONNECT, false, "no", fx.now);
        fx_pass(&fx, delays[i] - 1);
        fx_quiet(&fx);
        fx_pass(&fx, 1);
        get = fx_next_kind(&fx, 'G');
    }
    fx_fini(&fx);
}

static void test_stream_of_a_lost_session(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_legacy(&fx, "s-1");
    fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, 200, NULL); /* it had one, which was cut */
    fx_pass(&fx, 1000);
    fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, 404, NULL);
    fx_answer_initialize(&fx, "s-2");
    assert_non_null(strstr(fx_next_kind(&fx, 'G')->fields, "s-2"));
    fx_quiet(&fx);
    fx_fini(&fx);
}

/* Many servers know no GET at all and say 404: that is no lost session, or there would be a new one
 * after the other, for ever. A session that is lost all the same shows at the next request. */
static void test_stream_that_never_was(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx.options.wants_changes = true;
    fx_open_legacy(&fx, "s-1");
    fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, 404, NULL);
    fx_pass(&fx, 600000);
    fx_quiet(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 404, NULL);
    fx_answer_initialize(&fx, "s-2");
    fx_reply(&fx, fx_next_kind(&fx, 'G')->exchange, 404, NULL);
    fx_reply(&fx, fx_expect(&fx, "tools/list")->exchange, 200, FX_RESULT("{'content':[]}"));
    assert_int_equal(call.kind, MCP_OUTCOME_RESULT);
    fx_quiet(&fx);
    fx_fini(&fx);
}

/* ---- requests of the server ------------------------------------------------------------------ */

static void test_requests(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx_open_legacy(&fx, "s-1");
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        uint64_t at = fx_next(&fx)->exchange;
        at = kind == MCP_LINK_HTTP ? at : 0;
        fx_message(&fx, at, 0, "{'jsonrpc':'2.0','id':'p\\u0031','method':'ping'}");
        fx_expect(&fx, "{'jsonrpc':'2.0','id':'p\\u0031','result':{}}");
        /* nobody takes it */
        fx_message(&fx, at, 0,
                   "{'jsonrpc':'2.0','id':1.0,'method':'sampling/createMessage','params':{}}");
        fx_expect(&fx, "{'jsonrpc':'2.0','id':1.0,'error':{'code':-32601,'message':'sampling/"
                       "createMessage is refused: ");
        fx_message(&fx, at, 0, "{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
        fx_expect(&fx, "'id':2,'error':{'code':-32601");
        fx_saw_part(&fx, "call asked 1.0 sampling/createMessage\n");
        /* the call's own user takes it */
        call.takes_asks = true;
        fx_message(&fx, at, 0,
                   "{'jsonrpc':'2.0','id':'e','method':'elicitation/create','params':{}}");
        fx_quiet(&fx);
        mcp_client_answer(fx.client, STR("\"e\""), STR("{\"action\":\"decline\"}"), 0,
                          (bay_str){0});
        fx_expect(&fx, "{'jsonrpc':'2.0','id':'e','result':{'action':'decline'}}");
        mcp_client_answer(fx.client, STR("\"e\""), (bay_str){0}, -32603, STR("no"));
        fx_expect(&fx, "{'jsonrpc':'2.0','id':'e','error':{'code':-32603,'message':'no'}}");
        fx_saw(&fx, "call asked 'e' elicitation/create\n");
        /* the client's user takes it */
        call.takes_asks = false;
        fx.takes_asks = true;
        fx_message(&fx, at, 0, "{'jsonrpc':'2.0','id':3,'method':'roots/list'}");
        fx_saw(&fx, "call asked 3 roots/list\nasked 3 roots/list\n");
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

/* It waits for an answer, also to what nobody can read. */
static void test_a_question_that_cannot_be_read_is_answered(void **state)
{
    enum { DEEP = 200 };
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        char text[2 * DEEP + 200];
        fx_init(&fx, (mcp_link_kind)kind);
        fx_open_legacy(&fx, "");
        fx_name call = {.text = "call", .takes_asks = true};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        uint64_t at = fx_next(&fx)->exchange;
        at = kind == MCP_LINK_HTTP ? at : 0;
        fx_message(&fx, at, 0,
                   "{'jsonrpc':'2.0','id':'e','method':'roots/list','params':{'a':tru}}");
        fx_expect(&fx, "{'jsonrpc':'2.0','id':'e','error':{'code':-32700,'message':'The message "
                       "is not valid JSON'}}");
        size_t len = (size_t)snprintf(text, sizeof(text),
                                      "{'jsonrpc':'2.0','method':'roots/list','params':{'a':");
        memset(text + len, '[', DEEP);
        memset(text + len + DEEP, ']', DEEP);
        (void)snprintf(text + len + 2 * (size_t)DEEP, 20, "},'id':7}");
        fx_message(&fx, at, 0, text);
        fx_expect(&fx, "{'jsonrpc':'2.0','id':7,'error':{'code':-32600,'message':'The message is "
                       "nested too deeply'}}");
        fx_saw(&fx, "");
        fx_fini(&fx);
    }
}

/* While somebody thinks about an answer, it is not the server that is idle. */
static void test_a_question_stops_the_idle_clock(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call", .takes_asks = true};
    fx_call(&fx, &call, "tools/call", "{'name':'a'}");
    fx_next(&fx);
    fx_line(&fx, 0, "{'jsonrpc':'2.0','id':'e','method':'roots/list'}");
    fx_line(&fx, 0, "{'jsonrpc':'2.0','id':'f','method':'roots/list'}");
    fx_saw(&fx, "call asked 'e' roots/list\ncall asked 'f' roots/list\n");
    fx_pass(&fx, 150000);
    mcp_client_answer(fx.client, STR("\"e\""), STR("{}"), 0, (bay_str){0});
    fx_next(&fx);
    fx_pass(&fx, 150000);
    fx_line(&fx, 0,
            "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'f'}}");
    fx_saw(&fx, "withdrawn 'f'\n");
    fx_pass(&fx, 120000);
    fx_saw_part(&fx, "call failed");
    fx_fini(&fx);
}

/* It may be of a call long over, and of another client's than the one whose stream it comes on. */
static void test_a_url_is_done_with(void **state)
{
    (void)state;
    static const mcp_link_kind kinds[] = {MCP_LINK_HTTP, MCP_LINK_DUPLEX};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        fx_init(&fx, kinds[i]);
        fx_open_legacy(&fx, "");
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        uint64_t at = fx_next(&fx)->exchange;
        at = kinds[i] == MCP_LINK_HTTP ? at : 0;
        fx_message(&fx, at, 0,
                   "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{"
                   "'elicitationId' : 'e\\u0041'}}");
        fx_saw(&fx, "elicited {'elicitationId' : 'e\\u0041'}\n");
        fx_message(&fx, at, 0, "{'jsonrpc':'2.0','method':'notifications/elicitation/complete'}");
        fx_saw(&fx, "elicited \n");
        fx_fini(&fx);
    }
}

/* On streams of their own, one call's question gives no other call more time. */
static void test_a_question_stops_its_own_calls_clock(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call", .takes_asks = true};
    fx_name other = {.text = "other", .takes_asks = true};
    fx_call(&fx, &call, "tools/call", "{'name':'a'}");
    uint64_t at = fx_next(&fx)->exchange;
    fx_call(&fx, &other, "tools/call", "{'name':'b'}");
    fx_next(&fx);
    fx_message(&fx, at, 0, "{'jsonrpc':'2.0','id':'e','method':'roots/list'}");
    fx_saw(&fx, "call asked 'e' roots/list\n");
    fx_pass(&fx, 60000);
    fx_saw_part(&fx, "other failed");
    fx_next(&fx); /* notifications/cancelled */
    fx_pass(&fx, 150000);
    fx_saw(&fx, "");
    mcp_client_answer(fx.client, STR("\"e\""), STR("{}"), 0, (bay_str){0});
    fx_next(&fx);
    fx_pass(&fx, 0);
    fx_pass(&fx, 59999);
    fx_saw(&fx, "");
    fx_pass(&fx, 1);
    fx_saw_part(&fx, "call failed");
    fx_fini(&fx);
}

static void test_an_answer_gives_the_server_its_time_again(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call", .takes_asks = true};
    fx_call(&fx, &call, "tools/call", "{'name':'a'}");
    fx_next(&fx);
    fx_line(&fx, 0, "{'jsonrpc':'2.0','id':'e','method':'roots/list'}");
    fx_saw(&fx, "call asked 'e' roots/list\n");
    fx_pass(&fx, 150000);
    fx_pass(&fx, 59999); /* the clock was last set anew a minute ago */
    mcp_client_answer(fx.client, STR("\"e\""), STR("{}"), 0, (bay_str){0});
    fx_next(&fx);
    fx_pass(&fx, 0);
    fx_pass(&fx, 59999);
    fx_saw(&fx, "");
    fx_pass(&fx, 1);
    fx_saw_part(&fx, "call failed");
    fx_fini(&fx);
}

static void test_requests_before_ready(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx.takes_asks = true;
    fx_open(&fx);
    fx_expect(&fx, "server/discover");
    fx_line(&fx, 0, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
    fx_expect(&fx, "'id':1,'result':{}");
    fx_line(&fx, 0, "{'jsonrpc':'2.0','id':1,'method':'roots/list'}");
    fx_expect(&fx, "'id':1,'error':{'code':-32601");
    fx_saw(&fx, "");
    fx_fini(&fx);
}

static void test_log_messages(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_name one = {.text = "one"}, two = {.text = "two"};
    const char *message = "{'jsonrpc':'2.0','method':'notifications/message','params':{'data':1}}";
    fx_line(&fx, 0, message);
    fx_saw(&fx, "logged {'data':1}\n");
    fx_call(&fx, &one, "tools/list", NULL);
    fx_line(&fx, 0, message);
    fx_saw(&fx, "one notified notifications/message {'data':1}\n");
    fx_call(&fx, &two, "tools/list", NULL);
    fx_line(&fx, 0, message); /* whose? */
    fx_saw(&fx, "logged {'data':1}\n");
    fx_fini(&fx);
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_legacy(&fx, "");
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    fx_next(&fx);
    fx_message(&fx, fx_next(&fx)->exchange, 0, message);
    fx_saw(&fx, "two notified notifications/message {'data':1}\n");
    fx_fini(&fx);
}

static void test_batches(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open(&fx);
    fx_line(&fx, fx_next(&fx)->exchange, FX_ERROR("-32601"));
    fx_line(&fx, fx_next(&fx)->exchange, FX_INITIALIZED("2025-03-26", "{'tools':{}}"));
    fx_next(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_line(&fx, id,
            "[{'jsonrpc':'2.0','method':'notifications/tools/"
            "list_changed'},1,{'jsonrpc':'2.0','id':7,'method':'ping'}," FX_RESULT(
                "{'content':[]}") "]");
    fx_saw(&fx, "ready 2025-03-26\nchanged 1\ncall result {'content':[]}\n");
    fx_expect(&fx, "'id':7,'result':{}");
    fx_fini(&fx);
    /* No other revision has them. */
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_line(&fx, 0, "[{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}]");
    fx_saw(&fx, "");
    fx_fini(&fx);
}

/* ---- subscribe and setLevel ------------------------------------------------------------------ */

static void test_subscribe(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_new(&fx);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    assert_int_equal(mcp_client_subscribe(fx.client, (bay_str){0}, true, fx.now), BAY_ERR_INVALID);
    mcp_client_set_level(fx.client, MCP_LOG_NOTICE, fx.now);
    mcp_client_opened(fx.client, fx.now);
    fx_reply(&fx, fx_next(&fx)->exchange, 404, NULL);
    fx_answer_initialize(&fx, "s-1");
    fx_expect(&fx, "'method':'resources/subscribe','params':{'uri':'file:///a'}");
    fx_next_kind(&fx, 'G'); /* where the updates come */
    fx_expect(&fx, "'method':'logging/setLevel','params':{'level':'notice'}");
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    fx_quiet(&fx);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///b"), true, fx.now), BAY_OK);
    fx_expect(&fx, "'method':'resources/subscribe','params':{'uri':'file:///b'}");
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), false, fx.now), BAY_OK);
    fx_expect(&fx, "'method':'resources/unsubscribe','params':{'uri':'file:///a'}");
    mcp_client_set_level(fx.client, MCP_LOG_DEBUG, fx.now);
    fx_expect(&fx, "'level':'debug'");
    fx_fini(&fx);
}

/* Calls are used again: nothing of the one before, its name least of all, may stand in the next. */
static void test_subscribe_after_a_renamed_call(void **state)
{
    static fx_name name = {.text = "x"};
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'server.tool','arguments':{}}");
    spec.rename = STR("tool");
    for (int spare = 0; spare < 4; spare++) { /* more than there are from the handshake */
        assert_int_equal(fx_try(&fx, &name, &spec, NULL), BAY_OK);
        fx_record *sent = fx_expect(&fx, "'name':'tool'");
        fx_line(&fx, sent->exchange, FX_RESULT("{'content':[]}"));
        fx_saw(&fx, "x result {'content':[]}\n");
    }
    assert_int_equal(mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now), BAY_OK);
    fx_expect(&fx, "'method':'resources/subscribe','params':{'uri':'file:///a'}");
    fx_fini(&fx);
}

static void test_subscribe_not_supported(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open(&fx);
    fx_line(&fx, fx_next(&fx)->exchange, FX_ERROR("-32601"));
    fx_line(&fx, fx_next(&fx)->exchange,
            FX_INITIALIZED("2025-11-25", "{'resources':{'subscribe':false}}"));
    fx_next(&fx);
    assert_int_equal(mcp_client_subscribe(fx.client, STR("a"), true, fx.now), BAY_ERR_UNSUPPORTED);
    mcp_client_set_level(fx.client, MCP_LOG_DEBUG, fx.now);
    fx_quiet(&fx);
    assert_true(mcp_client_has(fx.client, STR("resources")));
    assert_false(mcp_client_has(fx.client, STR("resources.subscribe")));
    assert_false(mcp_client_has(fx.client, STR("tools")));
    fx_fini(&fx);
}

static void test_subscriptions_are_bounded(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_new(&fx);
    static char large[9000];
    char uri[32];
    for (int i = 0; i < 1024; i++) {
        snprintf(uri, sizeof(uri), "file:///%d", i);
        assert_int_equal(mcp_client_subscribe(fx.client, str_of(uri), true, fx.now), BAY_OK);
    }
    assert_int_equal(mcp_client_subscribe(fx.client, STR("b"), true, fx.now), BAY_ERR_BUSY);
    assert_int_equal(mcp_client_subscribe(fx.client, (bay_str){large, sizeof(large)}, true, fx.now),
                     BAY_ERR_LIMIT);
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initialize_bytes),
        cmocka_unit_test(test_old_revisions_have_no_version_field),
        cmocka_unit_test(test_bad_session_ids),
        cmocka_unit_test(test_session_is_not_for_modern),
        cmocka_unit_test(test_lost_session_is_begun_again),
        cmocka_unit_test(test_late_404_of_an_old_session),
        cmocka_unit_test(test_session_always_lost),
        cmocka_unit_test(test_lost_session_server_now_modern),
        cmocka_unit_test(test_404_without_session),
        cmocka_unit_test(test_close_deletes_the_session),
        cmocka_unit_test(test_cut_without_event_id),
        cmocka_unit_test(test_resumption),
        cmocka_unit_test(test_resumption_is_bounded),
        cmocka_unit_test(test_resumption_refused),
        cmocka_unit_test(test_cancel_while_resuming),
        cmocka_unit_test(test_no_stream_offered),
        cmocka_unit_test(test_stream_brings_changes),
        cmocka_unit_test(test_stream_of_a_lost_session),
        cmocka_unit_test(test_stream_that_never_was),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_a_question_that_cannot_be_read_is_answered),
        cmocka_unit_test(test_a_question_stops_the_idle_clock),
        cmocka_unit_test(test_a_url_is_done_with),
        cmocka_unit_test(test_a_question_stops_its_own_calls_clock),
        cmocka_unit_test(test_an_answer_gives_the_server_its_time_again),
        cmocka_unit_test(test_requests_before_ready),
        cmocka_unit_test(test_log_messages),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_subscribe),
        cmocka_unit_test(test_subscribe_after_a_renamed_call),
        cmocka_unit_test(test_subscribe_not_supported),
        cmocka_unit_test(test_subscriptions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
