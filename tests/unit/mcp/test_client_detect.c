/* Every kind of server on every kind of link: what the client makes of it. */
#include "client_fixture.h"

/* What a server says to a method; status 0: nothing at all; body NULL: none. */
typedef struct server_reply {
    const char *method;
    int status;
    const char *body;
} server_reply;

typedef struct server_kind {
    const char *name;
    mcp_link_kind kind;
    mcp_revision_id oldest, newest;
    int remembered; /* -1: nothing */
    server_reply replies[4];
    const char *methods; /* what was sent, in order */
    const char *log;     /* begins with */
} server_kind;

#define ALL MCP_REV_2024_11_05, MCP_LATEST
#define HTTP MCP_LINK_HTTP
#define LINE MCP_LINK_DUPLEX
#define MODERN_OK FX_DISCOVER("['2026-07-28','2025-11-25']", "{}")
#define LEGACY_OK FX_INITIALIZED("2025-11-25", "{}")
#define UNSUPPORTED(list)                                                                          \
    "{'jsonrpc':'2.0','id':#,'error':{'code':-32022,'message':'no','data':{'supported':" list "}}" \
    "}"
#define D "server/discover"
#define I "initialize"
#define DI "server/discover initialize "
#define DIN "server/discover initialize notifications/initialized "
#define IN "initialize notifications/initialized "

static const server_kind rows[] = {
    /* refusals and failures first */
    {"nobody may be spoken to",
     HTTP,
     MCP_REV_2026_07_28,
     MCP_LATEST,
     -1,
     {{D, 200, FX_ERROR("-32601")}},
     "server/discover ",
     "broken VERSION"},
    {"401", HTTP, ALL, -1, {{D, 401, NULL}}, "server/discover ", "broken DENIED"},
    {"403 with an error body",
     HTTP,
     ALL,
     -1,
     {{D, 403, "{'jsonrpc':'2.0','id':null,'error':{'code':-32000,'message':'Origin'}}"}},
     "server/discover ",
     "broken DENIED"},
    {"401 to initialize", HTTP, ALL, -1, {{D, 404, NULL}, {I, 401, NULL}}, DI, "broken DENIED"},
    {"500", HTTP, ALL, -1, {{D, 500, NULL}}, "server/discover ", "broken CLOSED"},
    {"503", HTTP, ALL, -1, {{D, 503, NULL}}, "server/discover ", "broken BUSY"},
    {"429", HTTP, ALL, -1, {{D, 429, NULL}}, "server/discover ", "broken BUSY"},
    {"modern of another age",
     HTTP,
     ALL,
     -1,
     {{D, 400, UNSUPPORTED("['2099-01-01']")}},
     "server/discover ",
     "broken VERSION"},
    {"modern without a list",
     HTTP,
     ALL,
     -1,
     {{D, 400, FX_ERROR("-32022")}},
     "server/discover ",
     "broken VERSION"},
    {"modern that rejects every version",
     HTTP,
     ALL,
     -1,
     {{D, 400, UNSUPPORTED("['2026-07-28']")}},
     "server/discover server/discover server/discover ",
     "broken VERSION"},
    {"discover of another age",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_DISCOVER("['2099-01-01']", "{}")}},
     "server/discover ",
     "broken VERSION"},
    {"initialize of another age",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_INITIALIZED("2099-01-01", "{}")}},
     DI,
     "broken VERSION"},
    {"initialize older than wanted",
     LINE,
     MCP_REV_2025_06_18,
     MCP_LATEST,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_INITIALIZED("2024-11-05", "{}")}},
     DI,
     "broken VERSION"},
    {"initialize answers a modern revision",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_INITIALIZED("2026-07-28", "{}")}},
     DI,
     "broken VERSION"},
    {"initialize without a version",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_RESULT("{}")}},
     DI,
     "broken VERSION"},
    {"both refused",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_ERROR("-32603")}},
     DI,
     "broken PROTOCOL"},
    {"mute", LINE, ALL, -1, {{0}}, DI, "broken TIMEOUT"},
    {"mute over HTTP", HTTP, ALL, -1, {{0}}, "server/discover ", "broken TIMEOUT"},
    {"HTTP+SSE, and nothing with a handshake wanted",
     MCP_LINK_SSE_2024,
     MCP_REV_2026_07_28,
     MCP_LATEST,
     -1,
     {{0}},
     "",
     "broken VERSION"},
    {"HTTP+SSE, older than wanted",
     MCP_LINK_SSE_2024,
     MCP_REV_2025_03_26,
     MCP_LATEST,
     -1,
     {{I, 200, FX_INITIALIZED("2024-11-05", "{}")}},
     "initialize ",
     "broken VERSION"},
    {"silent to both, and refuses each handshake",
     LINE,
     ALL,
     -1,
     {{I, 200, FX_ERROR("-32600")}},
     "server/discover initialize server/discover initialize server/discover initialize ",
     "broken PROTOCOL"},
    /* modern */
    {"modern", HTTP, ALL, -1, {{D, 200, MODERN_OK}}, "server/discover ", "ready 2026-07-28\n"},
    {"modern lines",
     LINE,
     ALL,
     -1,
     {{D, 200, MODERN_OK}},
     "server/discover ",
     "ready 2026-07-28\n"},
    {"modern only",
     LINE,
     MCP_REV_2026_07_28,
     MCP_LATEST,
     -1,
     {{D, 200, MODERN_OK}},
     "server/discover ",
     "ready 2026-07-28\n"},
    {"modern, header mismatch",
     HTTP,
     ALL,
     -1,
     {{D, 400, FX_ERROR("-32020")}},
     "server/discover ",
     "ready 2026-07-28\n"},
    {"modern, capability missing",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32021")}},
     "server/discover ",
     "ready 2026-07-28\n"},
    {"remembered modern", HTTP, ALL, MCP_REV_2026_07_28, {{0}}, "", "ready 2026-07-28\n"},
    {"modern, but only legacy wanted",
     LINE,
     MCP_REV_2024_11_05,
     MCP_LATEST_LEGACY,
     -1,
     {{I, 200, LEGACY_OK}},
     IN,
     "ready 2025-11-25\n"},
    /* legacy */
    {"legacy 400, no body",
     HTTP,
     ALL,
     -1,
     {{D, 400, NULL}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy 404",
     HTTP,
     ALL,
     -1,
     {{D, 404, "not found"}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy 400 -32000, null id",
     HTTP,
     ALL,
     -1,
     {{D, 400,
       "{'jsonrpc':'2.0','id':null,'error':{'code':-32000,'message':'Bad Request: Server not "
       "initialized'}}"},
      {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy -32601",
     HTTP,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy -32602 lines",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32602")}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy -32600, null id, lines",
     LINE,
     ALL,
     -1,
     {{D, 200, "{'jsonrpc':'2.0','id':null,'error':{'code':-32600,'message':'no'}}"},
      {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy that answers anything",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_RESULT("{}")}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy, silent until initialize",
     LINE,
     ALL,
     -1,
     {{I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy, 202 to anything",
     HTTP,
     ALL,
     -1,
     {{D, 202, NULL}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy, 500 with an error body",
     HTTP,
     ALL,
     -1,
     {{D, 500, FX_ERROR("-32603")}, {I, 200, LEGACY_OK}},
     DIN,
     "ready 2025-11-25\n"},
    {"legacy named by a modern error",
     LINE,
     ALL,
     -1,
     {{D, 200, UNSUPPORTED("['2025-06-18']")}, {I, 200, FX_INITIALIZED("2025-06-18", "{}")}},
     DIN,
     "ready 2025-06-18\n"},
    {"legacy named by discover",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_DISCOVER("['2025-03-26']", "{}")}, {I, 200, FX_INITIALIZED("2025-03-26", "{}")}},
     DIN,
     "ready 2025-03-26\n"},
    {"oldest",
     LINE,
     ALL,
     -1,
     {{D, 200, FX_ERROR("-32601")}, {I, 200, FX_INITIALIZED("2024-11-05", "{}")}},
     DIN,
     "ready 2024-11-05\n"},
    {"remembered legacy",
     HTTP,
     ALL,
     MCP_REV_2025_11_25,
     {{I, 200, LEGACY_OK}},
     IN,
     "ready 2025-11-25\n"},
    {"remembered legacy, now modern",
     HTTP,
     ALL,
     MCP_REV_2025_11_25,
     {{I, 404, FX_ERROR("-32601")}, {D, 200, MODERN_OK}},
     "initialize server/discover ",
     "ready 2026-07-28\n"},
    {"remembered legacy, now modern lines",
     LINE,
     ALL,
     MCP_REV_2025_11_25,
     {{I, 200, FX_ERROR("-32602")}, {D, 200, MODERN_OK}},
     "initialize server/discover ",
     "ready 2026-07-28\n"},
    {"remembered legacy, refused without a word",
     HTTP,
     ALL,
     MCP_REV_2025_11_25,
     {{I, 405, NULL}, {D, 200, MODERN_OK}},
     "initialize server/discover ",
     "ready 2026-07-28\n"},
    {"remembered beyond what is wanted",
     LINE,
     MCP_REV_2026_07_28,
     MCP_LATEST,
     MCP_REV_2025_11_25,
     {{D, 200, MODERN_OK}},
     "server/discover ",
     "ready 2026-07-28\n"},
    {"HTTP+SSE",
     MCP_LINK_SSE_2024,
     ALL,
     -1,
     {{I, 200, FX_INITIALIZED("2024-11-05", "{}")}},
     IN,
     "ready 2024-11-05\n"},
    {"HTTP+SSE, newer words",
     MCP_LINK_SSE_2024,
     ALL,
     MCP_REV_2026_07_28,
     {{I, 200, FX_INITIALIZED("2025-03-26", "{}")}},
     IN,
     "ready 2025-03-26\n"},
};

static void method_of(const char *message, char *out)
{
    const char *at = strstr(message, "\"method\":\"");
    assert_non_null(at);
    at += strlen("\"method\":\"");
    size_t len = strcspn(at, "\"");
    assert_true(len < 256);
    memcpy(out, at, len);
    out[len] = '\0';
}

static void answer(fixture *fx, const server_kind *row, const fx_record *sent, const char *method)
{
    for (size_t i = 0; i < 4 && row->replies[i].method != NULL; i++) {
        const server_reply *reply = &row->replies[i];
        if (strcmp(reply->method, method) != 0) {
            continue;
        }
        if (row->kind == MCP_LINK_HTTP) {
            fx_reply(fx, sent->exchange, reply->status, reply->body);
        } else {
            fx_line(fx, sent->exchange, reply->body);
        }
        return;
    }
    if (strncmp(method, "notifications/", 14) != 0) {
        fx_pass(fx, 60001); /* silence */
    }
}

static void run(fixture *fx, const server_kind *row)
{
    char methods[1024] = "";
    fx_init(fx, row->kind);
    fx->options.oldest = row->oldest;
    fx->options.newest = row->newest;
    fx->has_fall_back = false;
    if (row->remembered >= 0) {
        fx->options.remembered = mcp_revision_of((mcp_revision_id)row->remembered);
    }
    fx_open(fx);
    while (fx->seen < fx->count) {
        fx_record *sent = fx_next(fx);
        if (sent->kind == 'A') {
            continue;
        }
        char method[256];
        assert_int_equal(sent->kind, 'S');
        method_of(sent->text, method);
        assert_true(strlen(methods) + strlen(method) + 2 < sizeof(methods));
        strncat(methods, method, sizeof(methods) - strlen(methods) - 1);
        strncat(methods, " ", sizeof(methods) - strlen(methods) - 1);
        answer(fx, row, sent, method);
    }
    if (strcmp(methods, row->methods) != 0 || strncmp(fx->log, row->log, strlen(row->log)) != 0) {
        fail_msg("%s: sent %s, then %s", row->name, methods, fx->log);
    }
    if (strchr(fx->log, '\n') != fx->log + fx->log_len - 1) {
        fail_msg("%s: more than one word: %s", row->name, fx->log);
    }
    fx_fini(fx);
}

static fixture fx;

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        run(&fx, &rows[i]);
    }
}

static void test_version_rejected_once(void **state)
{
    (void)state;
    fx_init(&fx, HTTP);
    fx_open(&fx);
    fx_record *probe = fx_expect(&fx, "'method':'server/discover'");
    assert_string_equal(probe->fields, "MCP-Protocol-Version: 2026-07-28\nMcp-Method: "
                                       "server/discover\n");
    fx_reply(&fx, probe->exchange, 400, UNSUPPORTED("['2026-07-28']"));
    probe = fx_expect(&fx, "'io.modelcontextprotocol/protocolVersion':'2026-07-28'");
    assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_PROBING);
    assert_null(mcp_client_revision(fx.client));
    fx_reply(&fx, probe->exchange, 200, MODERN_OK);
    fx_saw(&fx, "ready 2026-07-28\n");
    bay_str info = json_raw(mcp_client_server_info(fx.client));
    assert_int_equal(info.len, strlen("{\"name\":\"s\",\"version\":\"2\"}"));
    assert_true(str_eq(mcp_client_instructions(fx.client), STR("be kind")));
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_late_probe_answer_is_ignored(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx_open(&fx);
    uint64_t probe = fx_expect(&fx, "'method':'server/discover'")->exchange;
    assert_int_equal(mcp_client_tick(fx.client, fx.now), fx.now + 3000);
    fx_pass(&fx, 3000);
    fx_line(&fx, probe, MODERN_OK);
    fx_answer_initialize(&fx, "");
    fx_line(&fx, probe, MODERN_OK);
    fx_saw(&fx, "ready 2025-11-25\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

/* A server of both eras that was slow to start read server/discover first: it is modern for good.
 */
/* Whoever waits for a server that never says a word does so for its start's time, not for that of a
 * probe and then of a call. */
static void test_a_start_has_one_bound(void **state)
{
    (void)state;
    static const mcp_link_kind links[] = {LINE, HTTP};
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        fx_name call = {.text = "call"};
        fx_init(&fx, links[i]);
        fx.options.start_timeout_ms = 5000;
        fx.options.probe_timeout_ms = 10000;
        fx_open(&fx);
        fx_call(&fx, &call, "tools/list", NULL);
        fx_expect(&fx, "server/discover");
        if (links[i] == LINE) {
            fx_pass(&fx, 2501); /* half of it is for a server of the session revisions */
            fx_expect(&fx, "'initialize'");
            fx_pass(&fx, 2498);
        } else {
            fx_pass(&fx, 4999);
        }
        assert_int_equal(mcp_client_open_calls(fx.client), 1);
        fx_pass(&fx, 2);
        assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_BROKEN);
        assert_int_equal(call.err, BAY_ERR_TIMEOUT);
        fx_fini(&fx);
    }
}

static void test_late_start_is_asked_again(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx_open(&fx);
    uint64_t probe = fx_expect(&fx, "'method':'server/discover'")->exchange;
    fx_pass(&fx, 3000);
    uint64_t handshake = fx_expect(&fx, "'method':'initialize'")->exchange;
    fx_line(&fx, probe, MODERN_OK);
    fx_line(&fx, handshake, FX_ERROR("-32022"));
    fx_line(&fx, fx_expect(&fx, "'method':'server/discover'")->exchange, MODERN_OK);
    fx_saw(&fx, "ready 2026-07-28\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_fall_back_to_sse(void **state)
{
    (void)state;
    int statuses[] = {400, 404, 405};
    for (size_t i = 0; i < 3; i++) {
        fx_init(&fx, HTTP);
        fx_open(&fx);
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/list", NULL);
        fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, statuses[i], NULL);
        fx_reply(&fx, fx_expect(&fx, "initialize")->exchange, statuses[i], NULL);
        fx_next_kind(&fx, 'F');
        assert_int_equal(mcp_client_state_of(fx.client), MCP_CLIENT_OPENING);
        mcp_client_relinked(fx.client, MCP_LINK_SSE_2024, fx.now);
        fx_record *request = fx_expect(&fx, "'protocolVersion':'2025-11-25'");
        fx_line(&fx, request->exchange, FX_INITIALIZED("2024-11-05", "{}"));
        fx_expect(&fx, "notifications/initialized");
        request = fx_expect(&fx, "{'jsonrpc':'2.0','id':#,'method':'tools/list'}");
        assert_string_equal(request->fields, "");
        fx_line(&fx, request->exchange, FX_RESULT("{'tools':[]}"));
        fx_saw(&fx, "ready 2024-11-05\ncall result {'tools':[]}\n");
        fx_fini(&fx);
    }
}

static void test_fall_back_fails(void **state)
{
    (void)state;
    fx_init(&fx, HTTP);
    fx_open(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 404, NULL);
    fx_reply(&fx, fx_expect(&fx, "initialize")->exchange, 404, NULL);
    mcp_client_broken(fx.client, BAY_ERR_PROTOCOL, "no endpoint event", fx.now);
    fx_saw(&fx,
           "call failed PROTOCOL unsent no endpoint event\nbroken PROTOCOL no endpoint event\n");
    fx_fini(&fx);
}

static void test_denied_text_says_what_to_do(void **state)
{
    (void)state;
    fx_init(&fx, HTTP);
    fx_open(&fx);
    fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 401, NULL);
    fx_saw_part(&fx, "give it credentials");
    fx_fini(&fx);
}

static void test_connection_refused(void **state)
{
    (void)state;
    fx_init(&fx, HTTP);
    fx_open(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t probe = fx_expect(&fx, "server/discover")->exchange;
    mcp_client_ended(fx.client, probe, BAY_ERR_CONNECT, false, "nobody is there", fx.now);
    fx_saw(&fx, "call failed CONNECT unsent nobody is there\nbroken CONNECT nobody is there\n");
    mcp_call_spec spec = fx_spec(&fx, "tools/list", NULL);
    assert_int_equal(fx_try(&fx, &call, &spec, NULL), BAY_ERR_CLOSED);
    /* The owner makes a new link. */
    mcp_client_opened(fx.client, fx.now);
    fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 200, MODERN_OK);
    fx_saw(&fx, "ready 2026-07-28\n");
    fx_fini(&fx);
}

static void test_server_dies_of_the_probe(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx_open(&fx);
    fx_expect(&fx, "server/discover");
    mcp_client_broken(fx.client, BAY_ERR_EXITED, "it exited", fx.now);
    fx_saw(&fx, "broken EXITED it exited\n");
    mcp_client_opened(fx.client, fx.now);
    fx_answer_initialize(&fx, "");
    fx_saw(&fx, "ready 2025-11-25\n");
    fx_fini(&fx);
}

/* Remembered as modern, but it was downgraded: the call that found out is not lost. */
static void test_remembered_modern_is_legacy(void **state)
{
    (void)state;
    const char *bodies[] = {NULL, FX_ERROR("-32601"), FX_ERROR("-32000")};
    for (size_t i = 0; i < 3; i++) {
        fx_init(&fx, HTTP);
        fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
        fx_open(&fx);
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a','arguments':{}}");
        fx_reply(&fx, fx_expect(&fx, "'_meta'")->exchange, 400, bodies[i]);
        if (bodies[i] != NULL) {
            fx_next_kind(&fx, 'A');
        }
        fx_reply(&fx, fx_expect(&fx, "server/discover")->exchange, 400, bodies[i]);
        fx_answer_initialize(&fx, "s1");
        fx_record *again = fx_expect(
            &fx, "{'jsonrpc':'2.0','id':#,'method':'tools/call','params':{'name':'a','arguments':"
                 "{}}}");
        assert_string_equal(again->fields,
                            "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s1\n");
        fx_reply(&fx, again->exchange, 200, FX_RESULT("{'content':[]}"));
        fx_saw(&fx, "ready 2026-07-28\nready 2025-11-25\ncall result {'content':[]}\n");
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

/* What says no more than that a tool failed may come after it ran: it is not sent again, whatever
 * era is spoken. Of a list nothing remains, and what was refused unread has not run. */
static void test_what_may_have_run_is_not_doubted(void **state)
{
    static const struct {
        const char *method, *params, *error;
        bool is_sent_again;
    } doubts[] = {
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("-32603"), false},
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("-32000"), false},
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("1"), false},
        {"example/run", "{}", FX_ERROR("-32603"), false},
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("-32600"), true},
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("-32601"), true},
        {"tools/call", "{'name':'a','arguments':{}}", FX_ERROR("-32602"), true},
        {"example/run", "{}", FX_ERROR("-32601"), true},
        {"tools/list", NULL, FX_ERROR("-32603"), true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++) {
        fx_init(&fx, LINE);
        fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
        fx_open(&fx);
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, doubts[i].method, doubts[i].params);
        fx_line(&fx, fx_expect(&fx, doubts[i].method)->exchange, doubts[i].error);
        if (doubts[i].is_sent_again) {
            fx_expect(&fx, "server/discover");
        } else {
            assert_int_equal(call.kind, MCP_OUTCOME_ERROR);
        }
        fx_quiet(&fx);
        fx_fini(&fx);
    }
}

/* A server on a pipe that dies of the probe is started anew: what the first one had read of other
 * calls it takes along, and nobody waits for that. */
static void test_a_probe_that_kills_ends_the_other_calls(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
    fx_open(&fx);
    fx_name one = {.text = "one"}, other = {.text = "other"};
    fx_call(&fx, &other, "tools/call", "{'name':'a','arguments':{}}");
    fx_expect(&fx, "tools/call");
    fx_call(&fx, &one, "tools/list", NULL);
    fx_line(&fx, fx_expect(&fx, "tools/list")->exchange, FX_ERROR("-32601"));
    fx_expect(&fx, "server/discover");
    assert_true(mcp_client_restarted(fx.client, fx.now));
    fx_saw(&fx, "ready 2026-07-28\nother failed EXITED sent ended when it was asked "
                "server/discover\n");
    fx_answer_initialize(&fx, "");
    fx_expect(&fx, "tools/list"); /* it was refused, so it waited */
    fx_saw(&fx, "ready 2025-11-25\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_doubt_is_asked_once(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx_open_modern(&fx);
    fx_name one = {.text = "one"}, two = {.text = "two"};
    fx_call(&fx, &one, "tools/list", NULL);
    /* It promised tools: that method must exist. */
    fx_line(&fx, fx_expect(&fx, "tools/list")->exchange, FX_ERROR("-32601"));
    fx_line(&fx, fx_expect(&fx, "server/discover")->exchange,
            FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    fx_line(&fx, fx_expect(&fx, "tools/list")->exchange, FX_ERROR("-32601"));
    fx_saw(&fx, "ready 2026-07-28\none error -32601 {'code':-32601,'message':'no'}\n");
    fx_call(&fx, &two, "tools/list", NULL);
    fx_line(&fx, fx_expect(&fx, "tools/list")->exchange, FX_ERROR("-32601"));
    fx_saw(&fx, "two error -32601 {'code':-32601,'message':'no'}\n");
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_errors_that_are_no_doubt(void **state)
{
    (void)state;
    const char *codes[] = {FX_ERROR("-32602"), FX_ERROR("-32020"), FX_ERROR("-32021"),
                           FX_ERROR("-32603")};
    fx_init(&fx, HTTP);
    fx_open_modern(&fx);
    for (size_t i = 0; i < 4; i++) {
        fx_name call = {.text = "call"};
        fx_call(&fx, &call, "tools/call", "{'name':'a'}");
        fx_reply(&fx, fx_expect(&fx, "tools/call")->exchange, 400, codes[i]);
        assert_int_equal(call.kind, MCP_OUTCOME_ERROR);
    }
    /* An unknown method of a modern server: 404 and -32601. */
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "prompts/list", NULL);
    fx_reply(&fx, fx_expect(&fx, "prompts/list")->exchange, 404, FX_ERROR("-32601"));
    assert_int_equal(call.kind, MCP_OUTCOME_ERROR);
    fx_quiet(&fx);
    fx_fini(&fx);
}

static void test_legacy_became_modern(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx_open_legacy(&fx, "");
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_line(&fx, fx_expect(&fx, "tools/list")->exchange, UNSUPPORTED("['2026-07-28']"));
    fx_line(&fx, fx_expect(&fx, "server/discover")->exchange, MODERN_OK);
    fx_record *again = fx_expect(&fx, "'io.modelcontextprotocol/protocolVersion':'2026-07-28'");
    fx_line(&fx, again->exchange, FX_RESULT("{'resultType':'complete','tools':[]}"));
    fx_saw(&fx, "ready 2026-07-28\ncall result {'resultType':'complete','tools':[]}\n");
    fx_fini(&fx);
}

static void test_remembered_modern_is_silent(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx.options.remembered = mcp_revision_of(MCP_REV_2026_07_28);
    fx_open(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    fx_expect(&fx, "tools/list");
    fx_pass(&fx, 60000);
    fx_expect(&fx, "notifications/cancelled");
    fx_line(&fx, fx_expect(&fx, "server/discover")->exchange, FX_ERROR("-32601"));
    fx_answer_initialize(&fx, "");
    assert_int_equal(call.err, BAY_ERR_TIMEOUT);
    assert_int_equal(call.done_count, 1);
    fx_fini(&fx);
}

/* A process that takes long to start is no legacy server to a client that speaks to none. */
static void test_slow_start_of_a_modern_server(void **state)
{
    (void)state;
    fx_init(&fx, LINE);
    fx.options.oldest = MCP_REV_2026_07_28;
    fx_open(&fx);
    fx_name call = {.text = "call"};
    fx_call(&fx, &call, "tools/list", NULL);
    uint64_t probe = fx_expect(&fx, "server/discover")->exchange;
    fx_pass(&fx, 10000);
    assert_int_equal(call.done_count, 0);
    fx_line(&fx, probe, MODERN_OK);
    fx_expect(&fx, "tools/list");
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_slow_start_of_a_modern_server),
        cmocka_unit_test(test_version_rejected_once),
        cmocka_unit_test(test_late_probe_answer_is_ignored),
        cmocka_unit_test(test_a_start_has_one_bound),
        cmocka_unit_test(test_late_start_is_asked_again),
        cmocka_unit_test(test_fall_back_to_sse),
        cmocka_unit_test(test_fall_back_fails),
        cmocka_unit_test(test_denied_text_says_what_to_do),
        cmocka_unit_test(test_connection_refused),
        cmocka_unit_test(test_server_dies_of_the_probe),
        cmocka_unit_test(test_remembered_modern_is_legacy),
        cmocka_unit_test(test_what_may_have_run_is_not_doubted),
        cmocka_unit_test(test_a_probe_that_kills_ends_the_other_calls),
        cmocka_unit_test(test_doubt_is_asked_once),
        cmocka_unit_test(test_errors_that_are_no_doubt),
        cmocka_unit_test(test_legacy_became_modern),
        cmocka_unit_test(test_remembered_modern_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
