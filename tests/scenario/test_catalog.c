/* The catalog of a real gateway: lists that change, or lie, or do not end; profiles that come and
 * go. With one loop, and with several that share the processes. */
#include "support/gateway_rig.h"

#define LISTS(name, mode, more) "'" name "':{'command':'@/list_server','args':['" mode "']" more "}"
#define TOP "{'timeouts':{'drain':'200ms','terminate':'200ms','kill':'200ms'},"

static void start(gateway_rig *self, const char *settings, uint32_t workers)
{
    rig_open(self, settings, workers);
    wait_until(atomic_load(&self->started) == 1);
}

/* Does a list on a connection of its own show `part`? */
static bool is_listed(const gateway_rig *self, const char *path, const char *part)
{
    client one;
    client_open(&one, self);
    client_list(&one, path);
    (void)client_reply(&one);
    bool is_there = client_find(&one, part) != NULL;
    client_close(&one);
    return is_there;
}

/* It may be gone again a moment later. */
#define wait_until_listed(rig, path, part)                                                         \
    do {                                                                                           \
        bool was_listed = false;                                                                   \
        wait_until((was_listed = was_listed || is_listed(rig, path, part)));                       \
    } while (0)

static int status_of(const gateway_rig *self, const char *path)
{
    client one;
    client_open(&one, self);
    client_list(&one, path);
    int status = client_reply(&one);
    client_close(&one);
    return status;
}

static void reload(gateway_rig *self, const char *settings)
{
    int before = atomic_load(&self->reloaded);
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(atomic_load(&self->reloaded) == before + 1);
}

/* ---- header fields ------------------------------------------------------------------------------
 */

static int status_of_call(const gateway_rig *self, const char *path, const char *tool,
                          const char *field)
{
    client one;
    char fields[300];
    char body[600];
    client_open(&one, self);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n%s",
                   tool, field);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':{'region':'eu'}," RIG_META "}}}",
                   tool);
    client_post(&one, path, fields, body);
    int status = client_reply(&one);
    assert_int_equal(client_find(&one, "-32020") != NULL, status == 400);
    assert_int_equal(client_find(&one, "\"isError\"") == NULL, true);
    client_close(&one);
    return status;
}

static const struct {
    const char *field;
    int status;
} field_cases[] = {
    {"", 400},
    {"Mcp-Param-Region: us\r\n", 400},
    {"Mcp-Param-Region: =?base64?ZXU\r\n", 400},
    {"Mcp-Param-Region: eu\r\nmcp-param-region: eu\r\n", 400},
    {"mcp-param-REGION: eu\r\n", 200},
    {"Mcp-Param-Region: =?base64?ZXU=?=\r\nMcp-Param-Other: x\r\n", 200},
};

/* The first call of all: the tool is known only once its server has been started for it. */
static void fields_of_a_call_that_waits_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(field_cases) / sizeof(field_cases[0]); i++) {
        gateway_rig self;
        start(&self,
              TOP "'bareNames':true,'mcpServers':{" LISTS("a", "fields", ",'start':'lazy'") "}}",
              i % 2 + 1);
        int status = status_of_call(&self, "/mcp", "t", field_cases[i / 2].field);
        assert_int_equal(status, field_cases[i / 2].status);
        rig_close(&self);
    }
}

/* call_tool has no such fields, whatever tool it calls; the tool by its own name has. */
static void call_tool_needs_no_fields(void **state)
{
    (void)state;
    for (int is_lazy = 0; is_lazy < 2; is_lazy++) {
        gateway_rig self;
        client one;
        start(&self,
              is_lazy ? TOP "'toolMode':'search','bareNames':true,'mcpServers':{" LISTS(
                            "a", "fields", ",'start':'lazy'") "}}"
                      : TOP "'toolMode':'search','bareNames':true,'mcpServers':{" LISTS(
                            "a", "fields", "") "}}",
              1);
        client_open(&one, &self);
        client_post(&one, "/mcp",
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                    "Mcp-Name: call_tool\r\n",
                    "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'call_tool',"
                    "'arguments':{'name':'t','arguments':{'region':'eu'}}," RIG_META "}}}");
        assert_int_equal(client_reply(&one), 200);
        assert_null(client_find(&one, "\"error\""));
        client_close(&one);
        assert_int_equal(status_of_call(&self, "/mcp", "t", field_cases[0].field), 400);
        rig_close(&self);
    }
}

/* On a pipe, where the server itself never sees a field. */
static void fields_are_checked_for_servers_on_pipes(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, TOP "'mcpServers':{" LISTS("a", "fields", "") "}}", 2);
    wait_until_listed(&self, "/mcp", "\"a.t\"");
    for (size_t i = 0; i < sizeof(field_cases) / sizeof(field_cases[0]); i++) {
        assert_int_equal(status_of_call(&self, "/mcp", "a.t", field_cases[i].field),
                         field_cases[i].status);
        assert_int_equal(status_of_call(&self, "/mcp/a", "t", field_cases[i].field),
                         field_cases[i].status);
    }
    rig_close(&self);
}

/* ---- freshness ----------------------------------------------------------------------------------
 */

static void lists_nobody_tells_of_are_read_anew(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        gateway_rig self;
        start(&self,
              TOP "'mcpServers':{" LISTS("often", "count", ",'refresh':'1s'") "," LISTS(
                  "never", "count", ",'refresh':'0'") "," LISTS("ttl", "ttl", "") "}}",
              workers);
        wait_until_listed(&self, "/mcp", "\"often.n4\"");
        wait_until_listed(&self, "/mcp", "\"ttl.n4\"");
        assert_false(is_listed(&self, "/mcp", "\"never.n3\"")); /* one reading a loop */
        /* of its own endpoint too, and how long it is good for */
        assert_true(is_listed(&self, "/mcp/ttl", "\"name\":\"n"));
        assert_false(is_listed(&self, "/mcp/ttl", "\"ttlMs\":1000}"));
        assert_true(is_listed(&self, "/mcp/never", "\"ttlMs\":0"));
        rig_close(&self);
    }
}

static void open_session(client *one, const char *path, char *session, size_t size)
{
    client_post(one, path, "",
                "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{"
                "'protocolVersion':'2025-06-18','capabilities':{},"
                "'clientInfo':{'name':'c','version':'1'}}}");
    assert_int_equal(client_reply(one), 200);
    const char *at = client_find(one, "\r\nMcp-Session-Id: ");
    assert_non_null(at);
    (void)snprintf(session, size, "%.*s", (int)strcspn(at + 18, "\r"), at + 18);
    client_forget(one);
}

static void listen_in(client *one, const char *path, const char *session)
{
    char text[600];
    (void)snprintf(text, sizeof(text),
                   "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                   "Mcp-Session-Id: %s\r\n\r\n",
                   path, session);
    assert_true(client_send(one, text));
    assert_int_equal(client_status(one), 200);
}

static void a_change_reaches_every_client(void **state)
{
    (void)state;
    gateway_rig self;
    client sessions[2];
    client listener;
    char session[300];
    start(&self, TOP "'mcpServers':{" LISTS("a", "told", "") "}}", 2);
    for (size_t i = 0; i < 2; i++) {
        client_open(&sessions[i], &self);
        open_session(&sessions[i], "/mcp", session, sizeof(session));
        listen_in(&sessions[i], "/mcp", session);
    }
    client_open(&listener, &self);
    client_post(&listener, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n",
                "{'jsonrpc':'2.0','id':9,'method':'subscriptions/listen','params':{"
                "'notifications':{'toolsListChanged':true}," RIG_META "}}}");
    client_wait_for(&listener, "notifications/subscriptions/acknowledged");
    expect_call(&self, "a.any", "Unknown tool");
    expect_call(&self, "a.same", "told");
    for (size_t i = 0; i < 2; i++) {
        client_wait_for(&sessions[i], "notifications/tools/list_changed");
        client_close(&sessions[i]);
    }
    client_wait_for(&listener, "notifications/tools/list_changed");
    client_close(&listener);
    rig_close(&self);
}

#define CHANGED(kind) "notifications/" kind "/list_changed"

static int count_of(const client *one, const char *part)
{
    int count = 0;
    const char *at = one->got.len > 0 ? one->got.at : "";
    while ((at = strstr(at, part)) != NULL) {
        at++;
        count++;
    }
    return count;
}

static void listen_modern(client *one, const gateway_rig *to, const char *path)
{
    client_open(one, to);
    client_post(one, path,
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n",
                "{'jsonrpc':'2.0','id':9,'method':'subscriptions/listen','params':{"
                "'notifications':{'toolsListChanged':true,'promptsListChanged':true,"
                "'resourcesListChanged':true}," RIG_META "}}}");
    client_wait_for(one, "notifications/subscriptions/acknowledged");
    client_forget(one);
}

/* What a server announces reaches its clients also where the list that is read again is equal: each
 * of them once. That no second one comes is seen by what is announced, and told, after it. */
static void play_announcements(const char *mode, uint32_t workers)
{
    static const char *const paths[] = {"/mcp", "/mcp/a", "/mcp/@p"};
    static const char *const order[] = {"resources", "prompts", "tools"};
    enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
    gateway_rig self;
    client sessions[PATHS];
    client streams[PATHS];
    client elsewhere;
    char settings[1000];
    char session[300];
    (void)snprintf(settings, sizeof(settings),
                   TOP "'profiles':{'p':{'servers':['a']},'other':{'servers':['b']}},"
                       "'mcpServers':{'a':{'command':'@/list_server','args':['%s']}," LISTS(
                           "b", "count", ",'refresh':'0'") "}}",
                   mode);
    start(&self, settings, workers);
    for (size_t i = 0; i < PATHS; i++) {
        client_open(&sessions[i], &self);
        open_session(&sessions[i], paths[i], session, sizeof(session));
        listen_in(&sessions[i], paths[i], session);
        listen_modern(&streams[i], &self, paths[i]);
    }
    listen_modern(&elsewhere, &self, "/mcp/@other");
    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        char tool[40];
        char told[80];
        (void)snprintf(tool, sizeof(tool), "a.%s", order[k]);
        (void)snprintf(told, sizeof(told), CHANGED("%s"), order[k]);
        expect_call(&self, tool, mode);
        for (size_t i = 0; i < PATHS; i++) {
            client_wait_for(&sessions[i], told);
            client_wait_for(&streams[i], told);
        }
    }
    for (size_t i = 0; i < PATHS; i++) {
        assert_int_equal(count_of(&sessions[i], "list_changed"), 3);
        assert_int_equal(count_of(&streams[i], "list_changed"), 3);
        client_close(&sessions[i]);
        client_close(&streams[i]);
    }
    assert_int_equal(count_of(&elsewhere, "list_changed"), 0);
    client_close(&elsewhere);
    rig_close(&self);
}

static void an_announcement_without_a_change_is_passed_on_once(void **state)
{
    (void)state;
    play_announcements("same", 1);
    play_announcements("same", 2);
    play_announcements("listen", 1);
    play_announcements("listen", 2);
}

static void a_storm_of_changes_is_gathered(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, TOP "'mcpServers':{" LISTS("a", "storm", "") "}}", 1);
    expect_call(&self, "a.same", "storm"); /* ten thousand changes … */
    expect_call(&self, "a.same", "storm"); /* … have been told before this answer came */
    wait_until(!is_listed(&self, "/mcp", "\"a.n1\""));
    client one;
    client_open(&one, &self);
    client_list(&one, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    const char *name = client_find(&one, "\"a.n");
    assert_non_null(name);
    long readings = strtol(name + 4, NULL, 10);
    assert_true(readings > 1 && readings < 100);
    client_close(&one);
    rig_close(&self);
}

/* ---- liars --------------------------------------------------------------------------------------
 */

static void lists_that_lie_are_bounded_and_others_unharmed(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self,
          "{'timeouts':{'settle':'20s','list':'20s','drain':'200ms','terminate':'200ms',"
          "'kill':'200ms'},'limits':{'pageSize':100000},'mcpServers':{" LISTS(
              "circle", "circle",
              "") "," LISTS("odd", "odd", "") "," LISTS("many", "many",
                                                        "") "," LISTS("well", "count", "") "}}",
          1);
    client one;
    client_open(&one, &self);
    client_list(&one, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    static const char *const shown[] = {
        "\"circle.n1\"",         "\"circle.n4\"",     "\"odd.plain\"", "\"odd.a.b.c\"",
        "\"odd.twice\",\"n\":1", "\"odd.bell\\u0007", "\"many.t0\"",   "\"many.t90000\""};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        if (client_find(&one, shown[i]) == NULL) {
            fail_msg("not shown: %s", shown[i]);
        }
    }
    static const char *const not_shown[] = {"\"circle.n5\"", "\"n\":2", "xxxxxxxx"};
    for (size_t i = 0; i < ARRAY_LEN(not_shown); i++) {
        assert_null(client_find(&one, not_shown[i]));
    }
    client_close(&one);
    assert_true(is_listed(&self, "/mcp/many", "\"t99999\""));
    assert_false(is_listed(&self, "/mcp/many", "\"t100000\""));
    assert_true(is_listed(&self, "/mcp/well", "\"n1\""));
    expect_call(&self, "well.n1", "count");
    expect_call(&self, "odd.a.b.c", "odd");
    expect_call(&self, "many.t99999", "many");
    assert_true(rig_log_count("many: its list of tools does not end; cut after 100000 items") > 0);
    assert_true(rig_log_count("circle: its list of tools does not end; cut after 4 items") > 0);
    rig_close(&self);
}

/* ---- profiles -----------------------------------------------------------------------------------
 */

#define SERVERS "'mcpServers':{" LISTS("a", "count", "") "," LISTS("b", "count", "") "}}"

static void profiles_come_and_go(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        gateway_rig self;
        client waits;
        start(&self, TOP "'profiles':{'one':{'servers':['a']},'none':{'servers':[]}}," SERVERS,
              workers);
        assert_int_equal(status_of(&self, "/mcp/@nobody"), 404);
        assert_int_equal(status_of(&self, "/mcp/@"), 404);
        assert_true(is_listed(&self, "/mcp/@one", "\"a.n"));
        assert_false(is_listed(&self, "/mcp/@one", "\"b.n"));
        assert_true(is_listed(&self, "/mcp/@none", "\"tools\":[]"));
        client_open(&waits, &self);
        client_post(&waits, "/mcp/@one",
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n",
                    "{'jsonrpc':'2.0','id':9,'method':'subscriptions/listen','params':{"
                    "'notifications':{'toolsListChanged':true}," RIG_META "}}}");
        client_wait_for(&waits, "notifications/subscriptions/acknowledged");
        reload(&self, TOP "'profiles':{'two':{'tools':['b.*'],'mode':'search'}}," SERVERS);
        assert_int_equal(status_of(&self, "/mcp/@one"), 404);
        assert_int_equal(status_of(&self, "/mcp/@none"), 404);
        assert_true(is_listed(&self, "/mcp/@two", "\"search_tools\""));
        client_wait_for(&waits, "\"id\":9,\"result\""); /* its stream ends */
        client_close(&waits);
        reload(&self, TOP "'profiles':{'two':{'tools':['b.*']}}," SERVERS);
        assert_true(is_listed(&self, "/mcp/@two", "\"b.n"));
        assert_false(is_listed(&self, "/mcp/@two", "\"a.n"));
        assert_int_equal(rig_log_count("a: stopped -> starting"), 1); /* nobody was restarted */
        rig_close(&self);
    }
}

static int ask_in(const gateway_rig *self, const char *session, const char *part)
{
    char fields[600];
    client one;
    client_open(&one, self);
    (void)snprintf(fields, sizeof(fields),
                   "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-06-18\r\n", session);
    client_post(&one, "/mcp/@one", fields, "{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
    int status = client_reply(&one);
    if (status == 200) {
        assert_non_null(client_find(&one, part));
        assert_null(client_find(&one, "\"b.n"));
    }
    client_close(&one);
    return status;
}

static void sessions_of_a_profile_are_its_own(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    char session[300];
    start(&self, TOP "'profiles':{'one':{'servers':['a']}}," SERVERS, 3);
    client_open(&one, &self);
    open_session(&one, "/mcp/@one", session, sizeof(session));
    client_close(&one);
    for (int i = 0; i < 12; i++) { /* each connection may land on another worker */
        assert_int_equal(ask_in(&self, session, "\"a.n"), 200);
    }
    assert_int_equal(status_of(&self, "/mcp/%40one"), 200);
    assert_int_equal(status_of(&self, "/mcp/%40two"), 404);
    reload(&self, TOP SERVERS);
    assert_int_equal(ask_in(&self, session, ""), 404);
    reload(&self, TOP "'profiles':{'one':{'servers':['a']}}," SERVERS);
    assert_int_equal(ask_in(&self, session, ""), 404); /* the profile is another one */
    rig_close(&self);
}

static void what_is_exposed_changes_without_a_restart(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, TOP "'mcpServers':{" LISTS("a", "count", ",'refresh':'0'") "}}", 1);
    assert_true(is_listed(&self, "/mcp", "\"a.n1\""));
    reload(&self,
           TOP "'mcpServers':{" LISTS("a", "count", ",'refresh':'0','rename':{'n1':'other'}") "}}");
    assert_true(is_listed(&self, "/mcp", "\"a.other\""));
    expect_call(&self, "a.other", "count");
    expect_call(&self, "a.n1", "Unknown tool");
    reload(&self, TOP
           "'mcpServers':{" LISTS("a", "count", ",'refresh':'1s','expose':{'tools':['n*']}") "}}");
    wait_until_listed(&self, "/mcp", "\"a.n2\""); /* what was never due is due now */
    assert_int_equal(rig_log_count("a: stopped -> starting"), 1);
    rig_close(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_a_call_that_waits_are_checked),
        cmocka_unit_test(call_tool_needs_no_fields),
        cmocka_unit_test(fields_are_checked_for_servers_on_pipes),
        cmocka_unit_test(lists_nobody_tells_of_are_read_anew),
        cmocka_unit_test(a_change_reaches_every_client),
        cmocka_unit_test(an_announcement_without_a_change_is_passed_on_once),
        cmocka_unit_test(a_storm_of_changes_is_gathered),
        cmocka_unit_test(lists_that_lie_are_bounded_and_others_unharmed),
        cmocka_unit_test(profiles_come_and_go),
        cmocka_unit_test(sessions_of_a_profile_are_its_own),
        cmocka_unit_test(what_is_exposed_changes_without_a_restart),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
