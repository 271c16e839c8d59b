/* Whole gateways over fleets that sleep, crash, flood and stall: the others are served meanwhile.
 */
#include "support/gateway_rig.h"

#define TIMES                                                                                      \
    "'timeouts':{'call':'2s','probe':'2s','settle':'5s','drain':'2s','terminate':'200ms',"         \
    "'kill':'200ms'}"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static void post_list(client *self, const gateway_rig *to, const char *path)
{
    client_open(self, to);
    client_list(self, path);
}

static void read_state(client *self, const gateway_rig *from)
{
    client_open(self, from);
    assert_true(client_send(self, "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    (void)client_reply(self);
}

static bool state_has(const gateway_rig *self, const char *part)
{
    client one;
    read_state(&one, self);
    bool has = client_find(&one, part) != NULL;
    client_close(&one);
    return has;
}

static void expect_state(const gateway_rig *self, const char *part)
{
    client one;
    read_state(&one, self);
    if (client_find(&one, part) == NULL) {
        fail_msg("%s is not in %.*s", part, (int)one.got.len, one.got.at);
    }
    client_close(&one);
}

static long resident_kib(void)
{
    char text[4096];
    (void)rig_read("/proc/self/status", text, sizeof(text));
    const char *at = strstr(text, "VmRSS:");
    return at != NULL ? strtol(at + 6, NULL, 10) : 0;
}

static void lazy_servers_sleep_until_a_list_needs_them(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        gateway_rig rig;
        client one;
        rig_open(&rig,
                 "{" TIMES
                 ",'mcpServers':{" RIG_SERVER("awake", "stdio", "good", "") "," RIG_SERVER(
                     "lazy", "stdio", "good", ",'start':'lazy'") "}}",
                 workers);
        wait_until(atomic_load(&rig.started) > 0); /* settled without it */
        expect_state(&rig, "\"name\":\"lazy\",\"state\":\"stopped\"");
        expect_call(&rig, "awake.echo", "good");
        expect_state(&rig, "\"name\":\"lazy\",\"state\":\"stopped\"");
        post_list(&one, &rig, "/mcp"); /* waits for it, as the first lists of all do */
        assert_int_equal(client_reply(&one), 200);
        assert_non_null(client_find(&one, "awake.echo"));
        assert_non_null(client_find(&one, "lazy.echo"));
        client_close(&one);
        wait_until(state_has(&rig, "\"name\":\"lazy\",\"state\":\"ready\""));
        expect_call(&rig, "lazy.echo", "good");
        rig_close(&rig);
    }
}

static void who_sleeps_is_not_said_to_be_late(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{'timeouts':{'settle':'100ms','probe':'60s','drain':'1s','terminate':'100ms'},"
             "'mcpServers':{" RIG_SERVER("mute", "stdio", "silent", "") "," RIG_SERVER(
                 "lazy", "stdio", "good", ",'start':'lazy'") "}}",
             2);
    wait_until(rig_log_count("\"mute\" has not answered within") > 0);
    wait_until(atomic_load(&rig.started) > 0);
    rig_close(&rig);
    assert_int_equal(rig_log_count("\"mute\" has not answered within"), 1); /* not by each worker */
    assert_int_equal(rig_log_count("\"lazy\" has not answered within"), 0);
}

static void a_call_by_its_full_name_wakes_it(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(
        &rig,
        "{" TIMES ",'mcpServers':{" RIG_SERVER("lazy", "stdio", "good", ",'start':'lazy'") "}}", 2);
    wait_until(atomic_load(&rig.started) > 0);
    expect_call(&rig, "lazy.echo", "good");
    rig_close(&rig);
}

static void the_list_of_a_lazy_server_alone_wakes_no_other(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    rig_open(&rig,
             "{" TIMES
             ",'mcpServers':{" RIG_SERVER("a", "stdio", "good", ",'start':'lazy'") "," RIG_SERVER(
                 "b", "stdio", "good", ",'start':'lazy'") "}}",
             1);
    wait_until(atomic_load(&rig.started) > 0);
    post_list(&one, &rig, "/mcp/a");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"echo\""));
    client_close(&one);
    expect_state(&rig, "\"name\":\"b\",\"state\":\"stopped\"");
    rig_close(&rig);
}

/* One that cannot start, and one that says nothing, delay the first list by the settle time. */
static void lazy_servers_that_fail_are_waited_for_so_long(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    rig_open(&rig,
             "{'timeouts':{'settle':'300ms','probe':'60s','drain':'1s','terminate':'100ms'},"
             "'mcpServers':{" RIG_SERVER("well", "stdio", "good", "") "," RIG_SERVER(
                 "bad", "stdio", "exit", ",'start':'lazy'") "," RIG_SERVER("mute", "stdio",
                                                                           "silent",
                                                                           ",'start':'lazy'") "}}",
             1);
    wait_until(atomic_load(&rig.started) > 0);
    post_list(&one, &rig, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "well.echo"));
    assert_null(client_find(&one, "bad.echo"));
    client_close(&one);
    rig_close(&rig);
}

static void a_server_that_crashes_on_and_on_is_left_alone(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{" TIMES ",'mcpServers':{" RIG_SERVER("well", "stdio", "good", "") "," RIG_SERVER(
                 "bad", "stdio", "exit",
                 ",'restart':{'minDelay':'5ms','maxDelay':'5ms','attempts':3,'coolOff':'1h'}") "}}",
             2);
    wait_until(state_has(&rig, "\"name\":\"bad\",\"state\":\"open\""));
    expect_state(&rig, "\"circuit\":\"open\"");
    expect_state(&rig, "\"restarts\":2,");
    expect_state(&rig, "\"restartedFor\":\"exited with status 7: cannot start\"");
    expect_state(&rig, "\"status\":\"degraded\"");
    expect_call(&rig, "bad.echo",
                "no tool list that could be read: exited with status 7: cannot start");
    expect_call(&rig, "well.echo", "good");
    expect_state(&rig, "\"sessions\":1,\"processes\":1,\"circuit\":\"closed\",\"waiting\":0");
    rig_close(&rig);
}

static void a_flood_of_notifications_starves_nobody(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        gateway_rig rig;
        client floods;
        rig_open(
            &rig,
            "{'timeouts':{'call':'60s','drain':'2s','terminate':'200ms'},'mcpServers':{" RIG_SERVER(
                "well", "stdio", "good", "") "," RIG_SERVER("bad", "stdio", "good", "") "}}",
            workers);
        wait_until(atomic_load(&rig.started) > 0);
        long before = resident_kib();
        long most = before;
        client_open(&floods, &rig);
        client_call(&floods, "bad.flood");
        for (int i = 0; i < 50; i++) {
            expect_call(&rig, "well.echo", "good");
            long now = resident_kib();
            most = now > most ? now : most;
        }
        assert_int_equal(client_reply(&floods), 200);
        assert_non_null(client_find(&floods, "good"));
        client_close(&floods);
        assert_in_range(most - before, 0,
                        100 * 1024); /* the flood alone is 70 MB of text, a loop */
        rig_close(&rig);
    }
}

static void a_huge_result_is_refused_by_name(void **state)
{
    (void)state;
    gateway_rig rig;
    rig_open(&rig,
             "{'timeouts':{'call':'60s','terminate':'200ms'},'mcpServers':{" RIG_SERVER(
                 "well", "stdio", "good", "") "," RIG_SERVER("bad", "stdio", "good",
                                                             ",'restart':{'minDelay':'10ms',"
                                                             "'maxDelay':'10ms'}") "}}",
             1);
    wait_until(atomic_load(&rig.started) > 0);
    expect_call(&rig, "bad.huge", "a line of more than 67108864 bytes");
    expect_call(&rig, "well.echo", "good");
    wait_until(is_answered(&rig, "bad.echo", "good"));
    rig_close(&rig);
}

/* It reads no more: what fills its pipe, and then our queue, is refused; nobody else waits. */
static void a_server_that_stalls(void **state)
{
    (void)state;
    enum { CALLS = 30, FILL = 200 * 1024 };
    gateway_rig rig;
    static client calls[CALLS];
    static char body[FILL + 600];
    static char fill[FILL];
    rig_open(&rig,
             "{'timeouts':{'call':'1s','drain':'1s','terminate':'200ms','kill':'200ms'},"
             "'limits':{'messageBytes':'1M'},'mcpServers':{" RIG_SERVER(
                 "well", "stdio", "good", "") "," RIG_SERVER("bad", "stdio", "good", "") "}}",
             2);
    wait_until(atomic_load(&rig.started) > 0);
    expect_call(&rig, "bad.stall", "good");
    memset(fill, 'x', sizeof(fill) - 1);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'bad.echo',"
                   "'arguments':{'fill':'%s'}," RIG_META "}}}",
                   fill);
    for (int i = 0; i < CALLS; i++) {
        client_open(&calls[i], &rig);
        client_post(&calls[i], "/mcp",
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                    "Mcp-Name: bad.echo\r\n",
                    body);
    }
    expect_call(&rig, "well.echo", "good");
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(client_reply(&calls[i]), 200);
        assert_non_null(client_find(&calls[i], "gave no answer"));
        client_close(&calls[i]);
    }
    expect_call(&rig, "well.echo", "good");
    rig_close(&rig);
}

/* Whoever still waits when the time to drain is over hears what became of the call. */
static void calls_that_outlast_the_drain_are_answered(void **state)
{
    enum { CALLS = 8 };
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        gateway_rig rig;
        static client calls[CALLS];
        rig_open(&rig,
                 "{'timeouts':{'call':'60s','drain':'100ms','terminate':'200ms','kill':'200ms'},"
                 "'mcpServers':{" RIG_SERVER("bad", "stdio", "good", "") "}}",
                 workers);
        wait_until(atomic_load(&rig.started) > 0);
        expect_call(&rig, "bad.echo", "good");
        for (int i = 0; i < CALLS; i++) {
            client_open(&calls[i], &rig);
            client_call(&calls[i], "bad.hang");
        }
        wait_until(rig_log_count("hanging") == CALLS);
        gateway_stop(rig.gateway);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(client_reply(&calls[i]), 200);
            assert_non_null(client_find(&calls[i], "patchbay/mayHaveRun\":true"));
            client_close(&calls[i]);
        }
        rig_join(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lazy_servers_sleep_until_a_list_needs_them),
        cmocka_unit_test(who_sleeps_is_not_said_to_be_late),
        cmocka_unit_test(a_call_by_its_full_name_wakes_it),
        cmocka_unit_test(the_list_of_a_lazy_server_alone_wakes_no_other),
        cmocka_unit_test(lazy_servers_that_fail_are_waited_for_so_long),
        cmocka_unit_test(a_server_that_crashes_on_and_on_is_left_alone),
        cmocka_unit_test(a_flood_of_notifications_starves_nobody),
        cmocka_unit_test(a_huge_result_is_refused_by_name),
        cmocka_unit_test(a_server_that_stalls),
        cmocka_unit_test(calls_that_outlast_the_drain_are_answered),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
