/* A new configuration in a running gateway: what stays stays, what is replaced finishes its calls,
 * and no call is lost. With one loop, and with several that share the processes. */
#include "support/gateway_rig.h"

#include "endpoint/endpoint_parts.h"

#define TOP "{'timeouts':{'drain':'10s','terminate':'200ms','kill':'200ms'},'mcpServers':{"
#define HASTY "{'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms'},'mcpServers':{"
#define GOOD(name) RIG_SERVER(name, "stdio", "good", "")
#define GOOD_TOO(name) RIG_SERVER(name, "stdio", "good", ",'env':{'OTHER':'1'}")

static const uint32_t numbers[] = {1, 2, 3};

static void start(gateway_rig *self, const char *settings, uint32_t workers)
{
    rig_open(self, settings, workers);
    wait_until(atomic_load(&self->started) == 1);
}

static void reload(gateway_rig *self, const char *settings)
{
    int before = atomic_load(&self->reloaded);
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(atomic_load(&self->reloaded) == before + 1);
}

static void go(const gateway_rig *self)
{
    FILE *file = fopen(self->go, "w");
    assert_non_null(file);
    fclose(file);
}

/* Each connection may land on another worker. */
static void expect_calls(const gateway_rig *self, const char *tool, const char *part)
{
    for (int i = 0; i < 6; i++) {
        expect_call(self, tool, part);
    }
}

static void a_faulty_file_changes_nothing(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, TOP GOOD("a") "}}", 2);
    rig_configure(&self, "{'mcpServers':{'a':{'command':'x','no_such_key':1}}}");
    rig_ask_reload(&self);
    wait_until(rig_log_count("was not reloaded") == 1);
    assert_int_equal(rig_log_count("no_such_key") > 0, 1);
    rig_configure(&self, "{{{");
    rig_ask_reload(&self);
    wait_until(rig_log_count("was not reloaded") == 2);
    (void)unlink(self.path);
    rig_ask_reload(&self);
    wait_until(rig_log_count("was not reloaded") == 3);
    expect_calls(&self, "a.echo", "good");
    rig_close(&self);
}

static void what_did_not_change_keeps_its_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gateway_rig self;
        client waits;
        start(&self, TOP GOOD("a") "," GOOD("b") "}}", numbers[i]);
        client_open(&waits, &self);
        client_call(&waits, "a.wait");
        wait_until(rig_tally(&self) == 1);
        reload(&self, TOP GOOD("b") "," GOOD("a") "}}");
        reload(&self, TOP GOOD("b") "," GOOD("a") "}}");
        go(&self);
        assert_int_equal(client_reply(&waits), 200);
        assert_non_null(client_find(&waits, "good"));
        client_close(&waits);
        assert_int_equal(rig_log_count("a: stopped -> starting"), 1);
        assert_int_equal(rig_log_count("b: stopped -> starting"), 1);
        assert_int_equal(rig_tally(&self), 1);
        rig_close(&self);
    }
}

static void what_is_replaced_finishes_its_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        enum { WAITING = 5 };
        gateway_rig self;
        client waits[WAITING];
        start(&self, TOP GOOD("a") "}}", numbers[i]);
        for (int k = 0; k < WAITING; k++) {
            client_open(&waits[k], &self);
            client_call(&waits[k], "a.wait");
        }
        wait_until(rig_tally(&self) >= 1);
        rig_configure(&self, TOP GOOD_TOO("a") "}}");
        rig_ask_reload(&self);
        wait_until(rig_log_count("a: stopped -> starting") == 2);
        expect_calls(&self, "a.echo", "good"); /* the new one serves, the old one still works */
        go(&self);
        for (int k = 0; k < WAITING; k++) {
            assert_int_equal(client_reply(&waits[k]), 200);
            assert_non_null(client_find(&waits[k], "good"));
            client_close(&waits[k]);
        }
        wait_until(atomic_load(&self.reloaded) == 1);
        wait_until(rig_children() == 1);
        assert_int_equal(rig_tally(&self), WAITING + 6);
        rig_close(&self);
    }
}

static void servers_come_and_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        gateway_rig self;
        start(&self, TOP GOOD("a") "}}", numbers[i]);
        expect_calls(&self, "b.echo", "Unknown tool: b.echo");
        reload(&self, TOP GOOD("a") "," GOOD("b") "}}");
        expect_calls(&self, "b.echo", "good");
        reload(&self, TOP GOOD("b") "}}");
        expect_calls(&self, "b.echo", "good");
        expect_calls(&self, "a.echo", "Unknown tool: a.echo");
        client one;
        client_open(&one, &self);
        client_list(&one, "/mcp/a");
        assert_int_equal(client_reply(&one), 404);
        client_forget(&one);
        client_list(&one, "/mcp/b");
        assert_int_equal(client_reply(&one), 200);
        client_wait_for(&one, "{\"name\":\"echo\"");
        client_close(&one);
        wait_until(rig_children() == 1);
        reload(&self, TOP "}}");
        expect_calls(&self, "b.echo", "Unknown tool: b.echo");
        wait_until(rig_children() == 0);
        rig_close(&self);
    }
}

static void a_server_that_never_leaves_is_cut_off(void **state)
{
    (void)state;
    gateway_rig self;
    client waits;
    start(&self, TOP GOOD("a") "}}", 2);
    client_open(&waits, &self);
    client_call(&waits, "a.hang");
    wait_until(rig_tally(&self) == 1);
    reload(&self, "{'timeouts':{'drain':'100ms'},'mcpServers':{}}");
    assert_int_equal(client_reply(&waits), 200);
    assert_non_null(client_find(&waits, "leaving the gateway"));
    client_close(&waits);
    wait_until(rig_children() == 0);
    rig_close(&self);
}

/* A server that leaves still serves its own path's clients when the keys are exchanged. */
static void what_leaves_has_the_new_keys_too(void **state)
{
    (void)state;
    gateway_rig self;
    client waits;
    start(&self, TOP GOOD("a") "}}", 1);
    client_open(&waits, &self);
    client_call(&waits, "a.wait");
    wait_until(rig_tally(&self) == 1);
    reload(&self, TOP "}}");
    reload(&self, "{'keys':['000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'],"
                  "'timeouts':{'drain':'10s'},'mcpServers':{}}");
    const list_link *link = list_first(&self.gateway->workers[0].retired);
    assert_non_null(link);
    assert_ptr_equal(CONTAINER_OF(link, worker_upstream, link)->endpoint->ring, self.gateway->ring);
    go(&self);
    assert_int_equal(client_reply(&waits), 200);
    client_close(&waits);
    rig_close(&self);
}

static void asked_for_many_times_at_once(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, TOP GOOD("a") "}}", 3);
    for (int i = 0; i < 20; i++) {
        rig_configure(&self,
                      i % 2 == 0 ? TOP GOOD_TOO("a") "}}" : TOP GOOD("a") "," GOOD("b") "}}");
        rig_ask_reload(&self);
        expect_call(&self, "a.echo", "good");
    }
    wait_until(atomic_load(&self.reloaded) >= 1);
    wait_until(rig_log_count("b: starting -> ready") >= 1);
    wait_until(rig_children() == 2);
    /* How many reloads the questions came to is not known: the last one is done when every worker
     * knows the server. */
    int good = 0;
    for (uint64_t until = rig_now_ms() + RIG_GIVE_UP_MS; good < 6 && rig_now_ms() < until;) {
        good = is_answered(&self, "b.echo", "good") ? good + 1 : 0;
    }
    assert_int_equal(good, 6);
    rig_close(&self);
}

static void the_end_in_the_middle_of_a_reload(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        gateway_rig self;
        client waits;
        start(&self, HASTY GOOD("a") "," GOOD("b") "}}", 3);
        client_open(&waits, &self);
        client_call(&waits, "a.hang");
        wait_until(rig_tally(&self) == 1);
        rig_configure(&self, HASTY GOOD_TOO("a") "," GOOD("c") "," GOOD("d") "}}");
        rig_ask_reload(&self);
        if (i % 2 == 1) {
            wait_until(rig_log_count("c: stopped -> starting") == 1);
        }
        if (i % 4 >= 2) {
            gateway_stop(self.gateway); /* and again below: at once */
        }
        self.descriptors++; /* the client's, who is still there */
        rig_close(&self);
        client_close(&waits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faulty_file_changes_nothing),
        cmocka_unit_test(what_did_not_change_keeps_its_process),
        cmocka_unit_test(what_is_replaced_finishes_its_calls),
        cmocka_unit_test(servers_come_and_go),
        cmocka_unit_test(a_server_that_never_leaves_is_cut_off),
        cmocka_unit_test(what_leaves_has_the_new_keys_too),
        cmocka_unit_test(asked_for_many_times_at_once),
        cmocka_unit_test(the_end_in_the_middle_of_a_reload),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
