/* A whole life of a client (detection, calls, a lost session, a resumed stream, listens) with each
 * allocation failed in turn: nothing leaks, nothing crashes, and whatever fails, every call that
 * was started ends exactly once. */
#include "client_fixture.h"

static size_t countdown; /* the allocation that fails; 0: none */
static size_t made;

static bool fails(void)
{
    made++;
    return countdown != 0 && --countdown == 0;
}

static void *failing_alloc(size_t bytes, void *user)
{
    (void)user;
    return fails() ? NULL : malloc(bytes);
}

static void *failing_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return fails() ? NULL : realloc(old, bytes);
}

static void failing_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static const mem_hooks failing = {failing_alloc, failing_resize, failing_release, NULL};
static fixture fx;

enum { NAMES = 6 };
static fx_name names[NAMES];
static bool was_started[NAMES];
static mcp_call *calls[NAMES];
static mcp_call_spec spec;
static mcp_param_table table;

static void start(size_t i)
{
    names[i] = (fx_name){.text = "call"};
    calls[i] = NULL;
    was_started[i] = fx_try(&fx, &names[i], &spec, &calls[i]) == BAY_OK;
}

/* What the server says to whatever was sent since we last looked. */
typedef void responder(const fx_record *sent);

static void serve(responder *respond)
{
    for (int rounds = 0; rounds < 50 && fx.seen < fx.count; rounds++) {
        fx_record sent = *fx_next(&fx);
        respond(&sent);
    }
}

static bool says(const fx_record *sent, const char *method)
{
    return strstr(sent->text, method) != NULL;
}

static void modern_server(const fx_record *sent)
{
    if (says(sent, "server/discover")) {
        fx_reply(&fx, sent->exchange, 200, FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    } else if (says(sent, "subscriptions/listen")) {
        fx_message(&fx, sent->exchange, sent->exchange,
                   "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{"
                   "'_meta':{'io.modelcontextprotocol/subscriptionId':#}}}");
    } else if (says(sent, "tools/call")) {
        fx_message(&fx, sent->exchange, sent->exchange,
                   "{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':#,"
                   "'progress':1}}");
        fx_reply(&fx, sent->exchange, 200, FX_RESULT("{'resultType':'complete','content':[]}"));
    }
}

static int lost;
static uint64_t cut; /* the id of the call whose stream was cut */

static void legacy_server(const fx_record *sent)
{
    if (sent->kind == 'G') {
        if (strstr(sent->fields, "Last-Event-ID") != NULL) {
            fx_message(&fx, sent->exchange, cut, FX_RESULT("{'content':[]}"));
        }
        fx_ended(&fx, sent->exchange, BAY_OK);
    } else if (says(sent, "server/discover")) {
        fx_reply(&fx, sent->exchange, 400, NULL);
    } else if (says(sent, "\"initialize\"")) {
        mcp_client_head(fx.client, sent->exchange, 200, STR("session"), fx.now);
        fx_message(&fx, sent->exchange, sent->exchange,
                   FX_INITIALIZED("2025-11-25", FX_CAPABILITIES));
        fx_ended(&fx, sent->exchange, BAY_OK);
    } else if (says(sent, "tools/call") && lost++ < 1) {
        fx_reply(&fx, sent->exchange, 404, NULL);
    } else if (says(sent, "tools/call") && lost < 3) {
        fx_message(&fx, sent->exchange, 0, "{'jsonrpc':'2.0','id':'x','method':'ping'}");
        fx_message(&fx, sent->exchange, 0, "{'jsonrpc':'2.0','id':'y','method':'roots/list'}");
        fx_event(&fx, sent->exchange, "event", "");
        cut = sent->exchange;
        fx_ended(&fx, sent->exchange, BAY_ERR_CLOSED);
    } else if (sent->exchange != 0) {
        fx_reply(&fx, sent->exchange, 200, FX_RESULT("{'content':[]}"));
    }
}

static void live(mcp_link_kind kind, responder *respond)
{
    fx_init(&fx, kind);
    lost = 0;
    fx.options.wants_changes = true;
    /* What the test itself allocates is not failed. */
    size_t saved = countdown;
    countdown = 0;
    spec = fx_spec(&fx, "tools/call", "{'name':'\\u00fcb','arguments':{'r':'\\u00fc','n':1.50}}");
    spec.meta = fx_value(&fx, "{'traceparent':'00'}");
    spec.wants_progress = true;
    spec.timeout_ms = 30000;
    json_val schema =
        fx_value(&fx, "{'type':'object','properties':{'r':{'type':'string','x-mcp-header':'R'}}}");
    assert_int_equal(mcp_param_table_read(&table, schema, &fx.memory, NULL), BAY_OK);
    spec.param_table = &table;
    made = 0;
    countdown = saved;
    memset(was_started, 0, sizeof(was_started));
    memset(names, 0, sizeof(names));
    if (fx_try_new(&fx) != BAY_OK) {
        countdown = 0;
        arena_fini(&fx.memory);
        return;
    }
    start(0);
    mcp_client_opened(fx.client, fx.now);
    (void)!mcp_client_subscribe(fx.client, STR("file:///a"), true, fx.now);
    serve(respond);
    for (size_t i = 1; i < NAMES; i++) {
        start(i);
        serve(respond);
        fx_pass(&fx, 3000);
        serve(respond);
    }
    if (was_started[NAMES - 1] && names[NAMES - 1].done_count == 0) {
        mcp_call_cancel(calls[NAMES - 1], STR("enough"));
        names[NAMES - 1].done_count++;
    }
    mcp_client_set_level(fx.client, MCP_LOG_INFO, fx.now);
    (void)!mcp_client_subscribe(fx.client, STR("file:///a"), false, fx.now);
    serve(respond);
    fx_pass(&fx, 100000);
    mcp_client_close(fx.client);
    mcp_client_free(fx.client);
    countdown = 0;
    arena_fini(&fx.memory);
}

static size_t check_lives(mcp_link_kind kind, responder *respond)
{
    countdown = 0;
    live(kind, respond);
    for (size_t i = 0; i < NAMES; i++) { /* with memory, all goes well */
        assert_true(was_started[i]);
        assert_int_equal(names[i].done_count, 1);
        if (names[i].kind != MCP_OUTCOME_RESULT) {
            fail_msg("call %zu: %s", i, fx.log);
        }
    }
    size_t total = made;
    for (size_t n = 1; n <= total; n++) {
        countdown = n;
        live(kind, respond);
        for (size_t i = 0; i < NAMES; i++) {
            if (names[i].done_count != (was_started[i] ? 1 : 0)) {
                fail_msg("allocation %zu failed: call %zu ended %d times", n, i,
                         names[i].done_count);
            }
        }
    }
    return total;
}

static void test_modern_life(void **state)
{
    (void)state;
    assert_in_range(check_lives(MCP_LINK_HTTP, modern_server), 20, 500);
}

static void test_legacy_life(void **state)
{
    (void)state;
    assert_in_range(check_lives(MCP_LINK_HTTP, legacy_server), 20, 500);
}

static void modern_lines(const fx_record *sent)
{
    if (says(sent, "server/discover")) {
        fx_line(&fx, sent->exchange, FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    } else if (sent->exchange != 0 && !says(sent, "listen")) {
        fx_line(&fx, sent->exchange, FX_RESULT("{'content':[]}"));
    }
}

static void test_duplex_life(void **state)
{
    (void)state;
    assert_in_range(check_lives(MCP_LINK_DUPLEX, modern_lines), 20, 500);
}

int main(void)
{
    mem_set_hooks(&failing);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modern_life),
        cmocka_unit_test(test_legacy_life),
        cmocka_unit_test(test_duplex_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
