/* Servers that answer twice, answer others, lie, babble, hang, hang up. Whatever they do, every
 * call ends once and the others notice nothing. */
#include "client_fixture.h"

static fixture fx;

static const char *const garbage[] = {
    "",
    " ",
    "hello",
    "{",
    "[",
    "]",
    "{}",
    "[]",
    "[{}]",
    "null",
    "1",
    "\"",
    "{'jsonrpc':'2.0'}",
    "{'jsonrpc':'1.0','id':#,'result':{}}",
    "{'id':#,'result':{}}",
    "{'jsonrpc':'2.0','id':#,'result':{},'error':{'code':1,'message':''}}",
    "{'jsonrpc':'2.0','id':#,'id':#,'result':{}}",
    "{'jsonrpc':'2.0','id':#,'result':[]}",
    "{'jsonrpc':'2.0','id':#,'result':null}",
    "{'jsonrpc':'2.0','id':#,'error':null}",
    "{'jsonrpc':'2.0','id':#,'error':{}}",
    "{'jsonrpc':'2.0','id':#,'error':{'code':'1','message':''}}",
    "{'jsonrpc':'2.0','id':[#],'result':{}}",
    "{'jsonrpc':'2.0','id':null,'result':{}}",
    "{'jsonrpc':'2.0','id':#,'result':{}} x",
    "{'jsonrpc':'2.0','id':#,'result':{'a':\"\xff\"}}",
    "{'jsonrpc':'2.0','method':5}",
};

enum { GARBAGE = sizeof(garbage) / sizeof(garbage[0]) };

static void test_garbage_on_a_line(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        fx_init(&fx, MCP_LINK_DUPLEX);
        fx_name call = {.text = "call"};
        if (is_modern) {
            fx_open_modern(&fx);
        } else {
            fx_open_legacy(&fx, "");
        }
        fx_call(&fx, &call, "tools/list", NULL);
        uint64_t id = fx_next(&fx)->exchange;
        for (size_t i = 0; i < GARBAGE; i++) {
            fx_line(&fx, id + 7, garbage[i]); /* of a request that nobody made */
            fx_saw(&fx, "");
        }
        fx_line(&fx, id, FX_RESULT("{'content':[]}"));
        fx_saw(&fx, "call result {'content':[]}\n");
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

/* The id of an open request and no response: it ends now, with the reason, and not in a minute. */
/* A result that is none ends its call at once, with the place; a list may be as deep as it likes,
 * for its items are looked at one by one. */
static void test_results_that_are_none(void **state)
{
    static const struct {
        const char *method, *result, *saw;
    } rows[] = {
        {"tools/call", "{'content':'text'}",
         "call failed PROTOCOL sent what the server answered is no result of tools/call: /content "
         "must be an array\n"},
        {"tools/call", "{'content':[null]}",
         "call failed PROTOCOL sent what the server answered is no result of tools/call: "
         "/content/0 must be an object\n"},
        {"tools/call", "{'content':[],'isError':'no'}",
         "call failed PROTOCOL sent what the server answered is no result of tools/call: /isError "
         "must be true or false\n"},
        {"prompts/get", "{'messages':{}}",
         "call failed PROTOCOL sent what the server answered is no result of prompts/get: "
         "/messages must be an array\n"},
    };
    static const mcp_link_kind kinds[] = {MCP_LINK_HTTP, MCP_LINK_DUPLEX};
    enum { DEEP = 3000 };
    static char text[2 * DEEP + 200];
    (void)state;
    for (size_t i = 0; i < 4 * (sizeof(rows) / sizeof(rows[0])); i++) {
        fx_init(&fx, kinds[i % 2]);
        if (i / 2 % 2 == 0) {
            fx_open_modern(&fx);
        } else {
            fx_open_legacy(&fx, kinds[i % 2] == MCP_LINK_HTTP ? "s" : "");
        }
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, rows[i / 4].method, "{'name':'a'}");
        (void)snprintf(text, sizeof(text), FX_RESULT("%s"), rows[i / 4].result);
        fx_record *sent = fx_next(&fx);
        fx_message(&fx, kinds[i % 2] == MCP_LINK_HTTP ? sent->exchange : 0, sent->exchange, text);
        fx_saw(&fx, rows[i / 4].saw);
        assert_int_equal(call.done_count, 1);
        fx_fini(&fx);
    }
    for (int list = 0; list < 2; list++) {
        fx_init(&fx, MCP_LINK_DUPLEX);
        fx_open_legacy(&fx, "");
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, list == 1 ? "tools/list" : "tools/call", "{'name':'a'}");
        size_t len = (size_t)snprintf(
            text, sizeof(text), "{'jsonrpc':'2.0','id':#,'result':{'tools':[],'content':[],'x':");
        memset(text + len, '[', DEEP);
        memset(text + len + DEEP, ']', DEEP);
        (void)snprintf(text + len + 2 * (size_t)DEEP, 10, "}}");
        fx_line(&fx, fx_next(&fx)->exchange, text);
        assert_int_equal(call.kind, list == 1 ? MCP_OUTCOME_RESULT : MCP_OUTCOME_FAILED);
        if (list == 0) {
            fx_saw(&fx, "call failed PROTOCOL sent what the server answered is no result of "
                        "tools/call: it is nested too deeply\n");
        }
        fx_fini(&fx);
    }
}

/* As deep as its owner says, both ways, also where the call had to wait. */
static void test_deep_messages_pass_whole(void **state)
{
    enum { DEEP = 500 };
    (void)state;
    for (int is_early = 0; is_early < 2; is_early++) {
        for (int too_much = 0; too_much < 2; too_much++) {
            static char text[2 * DEEP + 300];
            static char nested[2 * DEEP + 60];
            int levels = DEEP + 20 * too_much;
            memset(nested, '[', (size_t)levels);
            memset(nested + levels, ']', (size_t)levels);
            nested[2 * levels] = '\0';
            fx_init(&fx, MCP_LINK_DUPLEX);
            fx.options.max_depth = 512;
            fx_name call = {.text = "call"};
            (void)snprintf(text, sizeof(text), "{'name':'a','arguments':{'a':%s}}", nested);
            if (is_early) {
                fx_open(&fx);
                fx_call(&fx, &call, "tools/call", text);
                fx_line(&fx, fx_expect(&fx, "server/discover")->exchange,
                        "{'jsonrpc':'2.0','id':#,'error':{'code':-32601,'message':'no'}}");
                fx_line(&fx, fx_expect(&fx, "'initialize'")->exchange,
                        FX_INITIALIZED("2025-11-25", "{}"));
                fx_expect(&fx, "notifications/initialized");
            } else {
                fx_open_legacy(&fx, "");
                fx_call(&fx, &call, "tools/call", text);
            }
            fx.log_len = 0;
            uint64_t id = fx_expect(&fx, nested)->exchange;
            (void)snprintf(text, sizeof(text), FX_RESULT("{'content':[],'x':%s}"), nested);
            fx_line(&fx, id, text);
            assert_int_equal(call.kind, too_much ? MCP_OUTCOME_FAILED : MCP_OUTCOME_RESULT);
            fx_fini(&fx);
        }
    }
}

static void test_broken_answers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{'jsonrpc':'2.0','id':#,'result':5}", "The result is not an object"},
        {"{'jsonrpc':'2.0','id':#,'result':null}", "The result is not an object"},
        {"{'jsonrpc':'2.0','id':#,'error':'boom'}", "An error needs an integer code and a message"},
        {"{'jsonrpc':'2.0','id':#,'error':{'code':-1}}",
         "An error needs an integer code and a message"},
        {"{'jsonrpc':'2.0','id':#,'result':{},'error':{'code':1,'message':''}}",
         "A response has either a result or an error"},
        {"{'jsonrpc':'2.0','id':#}", "A message needs a method, a result or an error"},
        {"{'id':#,'result':{}}", "jsonrpc must be 'two'"},
        {"{'jsonrpc':'2.0','id':#,'result':{},'result':{}}",
         "A member of the envelope stands twice"},
        {"{'jsonrpc':'2.0','id':#,'result':{'a':tru}}", "The message is not valid JSON"},
        {"{'result':{'a':\"\xff\"},'jsonrpc':'2.0','id':#}", "The message is not valid UTF-8"},
    };
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            fx_init(&fx, (mcp_link_kind)kind);
            fx_open_modern(&fx);
            fx_name call = {.text = "call"}, other = {.text = "other"};
            fx_call(&fx, &call, "tools/call", "{'name':'a'}");
            fx_call(&fx, &other, "tools/call", "{'name':'b'}");
            uint64_t id = fx_next(&fx)->exchange, next = fx_next(&fx)->exchange;
            fx_message(&fx, kind == MCP_LINK_HTTP ? id : 0, id, rows[i].text);
            assert_int_equal(call.done_count, 1);
            assert_int_equal(call.err, BAY_ERR_PROTOCOL);
            assert_true(call.was_sent);
            bool is_version = strstr(rows[i].why, "two") != NULL;
            assert_non_null(strstr(fx.log, is_version ? "jsonrpc must be" : rows[i].why));
            assert_int_equal(other.done_count, 0);
            fx_message(&fx, kind == MCP_LINK_HTTP ? next : 0, next, FX_RESULT("{'content':[]}"));
            assert_int_equal(other.kind, MCP_OUTCOME_RESULT);
            fx_fini(&fx);
        }
    }
}

/* What cannot be read at all may have been the answer, or a line of a log: nobody knows, but the
 * one who waited in vain is told of it. */
static void test_late_after_garbage(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, "");
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_line(&fx, id, "{'jsonrpc':'2.0','result':{'a':\"\xff\"},'id':[#]}");
    fx_pass(&fx, 60000);
    assert_int_equal(one.err, BAY_ERR_TIMEOUT);
    assert_non_null(strstr(fx.log, "could not be read: The message is not valid UTF-8"));
    fx.log_len = 0;
    fx_pass(&fx, 1);
    fx_call(&fx, &two, "tools/list", NULL);
    fx_pass(&fx, 60000);
    assert_int_equal(two.err, BAY_ERR_TIMEOUT);
    assert_null(strstr(fx.log, "UTF-8"));
    fx_fini(&fx);
}

/* On the exchange of another call it says nothing of this one. */
static void test_broken_answer_elsewhere(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
    fx_message(&fx, first, second, "{'jsonrpc':'2.0','id':#,'result':5}");
    assert_int_equal(two.done_count, 0);
    fx_reply(&fx, second, 200, FX_RESULT("{'content':[]}"));
    assert_int_equal(two.kind, MCP_OUTCOME_RESULT);
    fx_fini(&fx);
}

/* What a server of an older revision answers to server/discover may be broken: it is asked as such
 * a server then. */
static void test_broken_answer_to_the_probe(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open(&fx);
    fx_line(&fx, fx_expect(&fx, "server/discover")->exchange,
            "{'jsonrpc':'2.0','id':#,'error':'unknown method'}");
    fx_line(&fx, fx_expect(&fx, "'initialize'")->exchange, FX_INITIALIZED("2025-11-25", "{}"));
    fx_saw(&fx, "ready 2025-11-25\n");
    fx_fini(&fx);
}

static void test_endless_garbage(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    for (int i = 0; i < 100; i++) {
        fx_line(&fx, 0, "npm WARN deprecated");
    }
    fx_line(&fx, 0, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    for (int i = 0; i < 100; i++) {
        fx_line(&fx, 0, "npm WARN deprecated");
    }
    fx_saw(&fx, "changed 1\n");
    fx_line(&fx, 0, "npm WARN deprecated");
    fx_saw(&fx, "call failed PROTOCOL sent the server sends what is no MCP\n"
                "broken PROTOCOL the server sends what is no MCP\n");
    fx_fini(&fx);
}

static void test_garbage_on_an_exchange(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    for (size_t i = 0; i < GARBAGE; i++) {
        fx_name call = {.text = "call"}, other = {.text = "other"};
        fx_call(&fx, &call, "tools/list", NULL);
        fx_call(&fx, &other, "tools/list", NULL);
        fx_reply(&fx, fx_next(&fx)->exchange, 200, garbage[i]);
        assert_int_equal(call.done_count, 1);
        assert_int_equal(call.kind, MCP_OUTCOME_FAILED);
        assert_int_equal(call.err, garbage[i][0] == '\0' ? BAY_ERR_CLOSED : BAY_ERR_PROTOCOL);
        assert_true(call.was_sent);
        assert_int_equal(other.done_count, 0);
        fx_reply(&fx, fx_next(&fx)->exchange, 200, FX_RESULT("{'content':[]}"));
        assert_int_equal(other.kind, MCP_OUTCOME_RESULT);
    }
    fx_fini(&fx);
}

static void test_garbage_before_the_answer(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    for (int i = 0; i < 50; i++) {
        fx_message(&fx, id, id, "babble");
    }
    fx_reply(&fx, id, 200, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "call result {'content':[]}\n");
    fx_call(&fx, &call, "tools/list", NULL);
    id = fx_next(&fx)->exchange;
    for (int i = 0; i < 101; i++) {
        fx_message(&fx, id, id, "babble");
    }
    assert_int_equal(call.err, BAY_ERR_PROTOCOL);
    assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
    fx_fini(&fx);
}

static void test_answers_twice(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx_open_modern(&fx);
        fx_name call = {.text = "call"}, other = {.text = "other"};
        fx_call(&fx, &call, "tools/list", NULL);
        uint64_t id = fx_next(&fx)->exchange, at = kind == MCP_LINK_HTTP ? id : 0;
        fx_message(&fx, at, id, FX_RESULT("{'n':1}"));
        fx_call(&fx, &other, "tools/list", NULL); /* takes the first one's place in memory */
        fx_message(&fx, at, id, FX_RESULT("{'n':2}"));
        fx_message(&fx, at, id, FX_ERROR("-32603"));
        fx_ended(&fx, id, BAY_ERR_CLOSED);
        fx_ended(&fx, id, BAY_ERR_CLOSED);
        fx_saw(&fx, "call result {'n':1}\n");
        fx_fini(&fx);
        assert_int_equal(call.done_count, 1);
        assert_int_equal(other.err, BAY_ERR_CANCELLED);
    }
}

static void test_answers_an_unknown_id(void **state)
{
    (void)state;
    const char *ids[] = {"0", "99", "-1",   "'#'", "#.0", "#e0", "00#", "18446744073709551616",
                         "1", "''", "1e400"};
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
            char text[256];
            fx_init(&fx, (mcp_link_kind)kind);
            fx_open_modern(&fx);
            fx_name call = {.text = "call"};
            fx_call(&fx, &call, "tools/list", NULL);
            uint64_t id = fx_next(&fx)->exchange;
            snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%s,'result':{}}", ids[i]);
            if (kind == MCP_LINK_HTTP) {
                fx_reply(&fx, id, 200, text);
                assert_int_equal(call.err, BAY_ERR_PROTOCOL);
                assert_non_null(strstr(fx.log, "the server's answer is not one to this request: "));
            } else if (strcmp(ids[i], "'#'") == 0 || strcmp(ids[i], "#.0") == 0) {
                fx_line(&fx, id, text); /* ours in other words: no other answer will come */
                assert_int_equal(call.err, BAY_ERR_PROTOCOL);
                assert_non_null(strstr(fx.log, "the server answered with id "));
            } else {
                fx_line(&fx, id, text);
                fx_saw(&fx, "");
                fx_line(&fx, id, FX_RESULT("{'content':[]}"));
                fx_saw(&fx, "call result {'content':[]}\n");
            }
            fx_fini(&fx);
        }
    }
}

/* An answer on another call's exchange harms that exchange's call only. */
static void test_answers_crosswise(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
    fx_message(&fx, first, second, FX_RESULT("{'stolen':1}"));
    fx_ended(&fx, first, BAY_OK);
    assert_int_equal(one.err, BAY_ERR_PROTOCOL);
    assert_int_equal(two.done_count, 0);
    fx_reply(&fx, second, 200, FX_RESULT("{'content':[]}"));
    assert_int_equal(two.kind, MCP_OUTCOME_RESULT);
    fx_fini(&fx);
}

static void test_error_statuses(void **state)
{
    (void)state;
    struct {
        int status;
        const char *body, *log;
    } rows[] = {
        {400, FX_ERROR("-32602"), "call error -32602 {'code':-32602,'message':'no'}\n"},
        {400, "{'jsonrpc':'2.0','id':null,'error':{'code':-32602,'message':'no'}}",
         "call error -32602 {'code':-32602,'message':'no'}\n"},
        {500, FX_ERROR("-32603"), "call error -32603 {'code':-32603,'message':'no'}\n"},
        {200, FX_ERROR("99999999999"), "call error -32603 {'code':99999999999,'message':'no'}\n"},
        {500, "<html>", "call failed CLOSED sent the server answered HTTP status 500\n"},
        {503, NULL, "call failed BUSY sent the server answered HTTP status 503\n"},
        {413, NULL, "call failed LIMIT unsent the server answered HTTP status 413\n"},
        {429, NULL, "call failed BUSY unsent the server answered HTTP status 429\n"},
        {301, NULL, "call failed CLOSED sent the server ended the exchange without an answer\n"},
        {202, NULL, "call failed CLOSED sent the server ended the exchange without an answer\n"},
    };
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        fx_reply(&fx, fx_next(&fx)->exchange, rows[i].status, rows[i].body);
        fx_saw(&fx, rows[i].log);
        assert_int_equal(call.done_count, 1);
        fx_quiet(&fx);
    }
    fx_fini(&fx);
}

static void test_hangs_up(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    uint64_t first = fx_next(&fx)->exchange, second = fx_next(&fx)->exchange;
    mcp_client_ended(fx.client, first, BAY_ERR_CONNECT, false, "refused", fx.now);
    mcp_client_ended(fx.client, second, BAY_ERR_CLOSED, true, "reset", fx.now);
    fx_saw(&fx, "one failed CONNECT unsent refused\ntwo failed CLOSED sent reset\n");
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_READY);
    fx_fini(&fx);
}

/* Streams of a modern server are not resumed, whatever ids it gives. */
static void test_modern_stream_cut(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    fx_head(&fx, id, 200);
    fx_event(&fx, id, "1", "");
    fx_ended(&fx, id, BAY_OK);
    assert_int_equal(call.err, BAY_ERR_CLOSED);
    fx_pass(&fx, 100000);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_too_large(void **state)
{
    (void)state;
    for (int kind = MCP_LINK_DUPLEX; kind <= MCP_LINK_HTTP; kind++) {
        fx_init(&fx, (mcp_link_kind)kind);
        fx.options.max_message_bytes = 1000;
        fx_open_modern(&fx);
        fx_name one = {.text = "one"}, two = {.text = "two"};
        fx_call(&fx, &one, "tools/list", NULL);
        fx_call(&fx, &two, "tools/list", NULL);
        uint64_t id = fx_next(&fx)->exchange;
        static char text[1002];
        memset(text, ' ', 1001);
        fx_next(&fx);
        fx_message(&fx, kind == MCP_LINK_HTTP ? id : 0, id, text);
        if (kind == MCP_LINK_HTTP) {
            assert_int_equal(fx_next_kind(&fx, 'A')->exchange, id);
            fx_saw(&fx, "one failed LIMIT sent the message is larger than this client takes\n");
        } else {
            assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_BROKEN);
            assert_int_equal(two.err, BAY_ERR_LIMIT);
        }
        fx_fini(&fx);
        assert_int_equal(one.done_count, 1);
        assert_int_equal(two.done_count, 1);
    }
}

static void test_depth_bomb(void **state)
{
    (void)state;
    static char text[100001];
    memset(text, '[', 100000);
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t id = fx_next(&fx)->exchange;
    mcp_client_receive(fx.client, id, str_of(text), (bay_str){0}, fx.now);
    fx_ended(&fx, id, BAY_OK);
    assert_int_equal(call.err, BAY_ERR_PROTOCOL);
    fx_fini(&fx);
}

static void test_pings_without_reading(void **state)
{
    (void)state;
    static fixture big;
    fx_init(&big, MCP_LINK_DUPLEX);
    fx_open_legacy(&big, "");
    big.send_err = BAY_ERR_AGAIN;
    for (int i = 0; i < 1002 && mcp_client_state_of(big.client) == MCP_CLIENT_READY; i++) {
        fx_line(&big, 0, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
        big.count = big.seen;
    }
    fx_saw_part(&big, "broken LIMIT");
    fx_fini(&big);
}

static void test_strangers(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_HTTP);
    fx_open_modern(&fx);
    uint64_t exchanges[] = {0, 1, 2, 77, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        fx_head(&fx, exchanges[i], 404);
        fx_message(&fx, exchanges[i], 1, FX_RESULT("{'content':[]}"));
        mcp_client_event_hint(fx.client, exchanges[i], STR("a"), 5);
        fx_ended(&fx, exchanges[i], BAY_ERR_CLOSED);
    }
    fx_saw(&fx, "");
    fx_quiet(&fx);
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_READY);
    fx_fini(&fx);
}

static void test_calls_at_every_moment(void **state)
{
    (void)state;
    /* The owner does what he should not: the engine stays whole. */
    fx_init(&fx, MCP_LINK_HTTP);
    fx_new(&fx);
    fx_message(&fx, 1, 1, FX_RESULT("{'content':[]}"));
    fx_ended(&fx, 1, BAY_OK);
    mcp_client_drained(fx.client);
    mcp_client_relinked(fx.client, MCP_LINK_HTTP, fx.now);
    mcp_client_opened(fx.client, fx.now);
    mcp_client_relinked(fx.client, MCP_LINK_SSE_2024, fx.now);
    fx_expect(&fx, "server/discover");
    fx_quiet(&fx);
    mcp_client_close(fx.client);
    mcp_client_close(fx.client);
    mcp_client_broken(fx.client, BAY_ERR_CLOSED, NULL, fx.now);
    fx_fini(&fx);
}

static void test_posts_of_sse_that_fail(void **state)
{
    (void)state;
    fx_init(&fx, MCP_LINK_SSE_2024);
    fx_open(&fx);
    uint64_t id = fx_next(&fx)->exchange;
    fx_head(&fx, id, 202);
    fx_ended(&fx, id, BAY_OK);
    fx_line(&fx, id, FX_INITIALIZED("2024-11-05", "{}"));
    fx_next(&fx);
    fx_saw(&fx, "ready 2024-11-05\n");
    fx_name one = {.text = "one"}, two = {.text = "two"}, three = {.text = "three"};
    fx_call(&fx, &one, "tools/list", NULL);
    fx_call(&fx, &two, "tools/list", NULL);
    fx_call(&fx, &three, "tools/list", NULL);
    id = fx_next(&fx)->exchange;
    fx_reply(&fx, id, 404, NULL);
    fx_line(&fx, id, FX_RESULT("{'content':[]}"));
    mcp_client_ended(fx.client, fx_next(&fx)->exchange, BAY_ERR_CONNECT, false, "refused", fx.now);
    id = fx_next(&fx)->exchange;
    fx_reply(&fx, id, 202, NULL);
    fx_line(&fx, id, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "one failed PROTOCOL unsent the server answered HTTP status 404\n"
                "two failed CONNECT unsent refused\nthree result {'content':[]}\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage_on_a_line),
        cmocka_unit_test(test_results_that_are_none),
        cmocka_unit_test(test_deep_messages_pass_whole),
        cmocka_unit_test(test_broken_answers),
        cmocka_unit_test(test_late_after_garbage),
        cmocka_unit_test(test_broken_answer_elsewhere),
        cmocka_unit_test(test_broken_answer_to_the_probe),
        cmocka_unit_test(test_endless_garbage),
        cmocka_unit_test(test_garbage_on_an_exchange),
        cmocka_unit_test(test_garbage_before_the_answer),
        cmocka_unit_test(test_answers_twice),
        cmocka_unit_test(test_answers_an_unknown_id),
        cmocka_unit_test(test_answers_crosswise),
        cmocka_unit_test(test_error_statuses),
        cmocka_unit_test(test_hangs_up),
        cmocka_unit_test(test_modern_stream_cut),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_depth_bomb),
        cmocka_unit_test(test_pings_without_reading),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_posts_of_sse_that_fail),
        cmocka_unit_test(test_calls_at_every_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
