/* How long a call may take, and what becomes of handlers that answer late, twice, after a cancel or
 * never: each outcome that docs/api.md names. Where something has to happen before the time is over,
 * the call has plenty, and the test uses it up; else a timer of some milliseconds is waited for. */
#include "net/thread.h"
#include "unit/sdk/question_bench.h"

#define CALL_T "\"name\":\"t\",\"arguments\":{\"a\":\"v\"}"
enum { SHORT_MS = 5, PLENTY_MS = 10000 };

static struct {
    bay_call *call;
    atomic_bool is_there;
    atomic_bool may_end;
    uint64_t left;
    int answers;
    bay_err err;
} desk;

static void begin(rig *on, bay_handler_fn handler, bool is_blocking, const char *revision,
                  uint32_t timeout_ms)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, handler, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    bay_tool_timeout(tool, timeout_ms);
    bay_resource *resource = bay_server_resource(server, "x:a", "a", NULL, NULL, handler, NULL);
    (void)resource;
    memset(&desk, 0, sizeof(desk));
    rig_start(on, server);
    rig_client_with(on, revision, EVERY_QUESTION);
}

static void keep(bay_call *call, void *user)
{
    (void)user;
    desk.left = bay_call_time_left_ms(call);
    desk.call = bay_call_defer(call);
}

#define TIMED_OUT(after)                                                                           \
    "\"content\":[{\"type\":\"text\",\"text\":\"\\\"t\\\" timed out after " after "\"}]"

/* As if all its time had passed. */
static void use_up(bay_call *call, uint64_t timeout_ms)
{
    call->started_ms -= timeout_ms;
    sdk_deadline_stop(call);
    sdk_deadline_start(call);
}

static void a_deferred_call_times_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig on;
        begin(&on, keep, false, all_revisions[i], PLENTY_MS);
        int events = on.way.events;
        rig_send(&on, "tools/call", CALL_T, "\"progressToken\":1");
        assert_true(desk.left > 0 && desk.left <= PLENTY_MS);
        assert_int_equal(on.way.events, events);
        assert_false(bay_call_is_cancelled(desk.call));
        use_up(desk.call, PLENTY_MS);
        RIG_UNTIL(&on, on.way.events == events + 1);
        assert_has(last_event(&on.way), TIMED_OUT("10000 ms"));
        assert_has(last_event(&on.way), "\"isError\":true");
        assert_true(bay_call_is_cancelled(desk.call));
        assert_int_equal(bay_call_time_left_ms(desk.call), 0);
        /* What it carries is still there; what it says is dropped. */
        assert_int_equal(on.server->calls_under_way, 1);
        assert_true(str_eq(bay_call_str(desk.call, "a"), STR("v")));
        bay_call_progress(desk.call, 1, 2, "late");
        bay_call_log(desk.call, "error", "late");
        bay_call_reply(desk.call, "late");
        assert_int_equal(on.server->calls_under_way, 0);
        assert_int_equal(on.way.events, events + 1);
        assert_has(rig_ask(&on, "tools/list", ""), "\"tools\":["); /* and life goes on */
        rig_stop(&on);
    }
}

static void a_resource_times_out_with_an_error(void **state)
{
    (void)state;
    rig on;
    begin(&on, keep, false, "2025-11-25", 0);
    bay_server_set(on.server, BAY_SERVER_SETTING_CALL_TIMEOUT_MS, PLENTY_MS);
    rig_send(&on, "resources/read", "\"uri\":\"x:a\"", "");
    assert_true(desk.left > 0 && desk.left <= PLENTY_MS);
    use_up(desk.call, PLENTY_MS);
    int events = on.way.events;
    RIG_UNTIL(&on, on.way.events == events + 1);
    assert_has(last_event(&on.way), "\"error\":{\"code\":-32603,\"message\":\"\\\"x:a\\\" timed");
    bay_call_not_found(desk.call);
    assert_int_equal(on.way.events, events + 1);
    rig_stop(&on);
}

static void the_default_is_ten_minutes(void **state)
{
    (void)state;
    rig on;
    begin(&on, keep, false, "2025-11-25", 0);
    rig_send(&on, "tools/call", CALL_T, "");
    assert_true(desk.left > 590000 && desk.left <= 600000);
    bay_call_reply(desk.call, "done");
    assert_has(last_event(&on.way), "done");
    rig_stop(&on);
    bay_tool_timeout(NULL, 1);
}

/* ---- handlers on the pool */

static void work_long(bay_call *call, void *user)
{
    (void)user;
    atomic_store(&desk.is_there, true);
    while (!bay_call_is_cancelled(call)) {
    }
    assert_int_equal(bay_call_time_left_ms(call), 0);
    bay_call_fail(call, "stopped");
}

static void a_blocking_handler_times_out(void **state)
{
    (void)state;
    rig on;
    begin(&on, work_long, true, "2025-11-25", SHORT_MS);
    int events = on.way.events;
    rig_send(&on, "tools/call", CALL_T, "");
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    assert_int_equal(on.way.events, events + 1);
    assert_has(last_event(&on.way), TIMED_OUT("5 ms"));
    rig_stop(&on);
}

/* It never looks at the time, and ends when it likes. */
static void work_blindly(bay_call *call, void *user)
{
    (void)user;
    atomic_store(&desk.is_there, true);
    while (!atomic_load(&desk.may_end)) {
    }
    bay_call_reply(call, "late");
    bay_call_reply(call, "later");
}

static void a_late_answer_is_dropped(void **state)
{
    (void)state;
    rig on;
    begin(&on, work_blindly, true, "2026-07-28", SHORT_MS);
    rig_send(&on, "tools/call", CALL_T, "");
    RIG_UNTIL(&on, on.way.events == 1);
    assert_has(last_event(&on.way), TIMED_OUT("5 ms"));
    atomic_store(&desk.may_end, true);
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    assert_int_equal(on.way.events, 1);
    rig_stop(&on);
}

static void never_answer(bay_call *call, void *user)
{
    (void)call;
    (void)user;
    while (!atomic_load(&desk.may_end)) {
    }
}

static void a_handler_that_returns_after_its_time_is_over(void **state)
{
    (void)state;
    rig on;
    begin(&on, never_answer, true, "2025-11-25", SHORT_MS);
    int events = on.way.events;
    rig_send(&on, "tools/call", CALL_T, "");
    RIG_UNTIL(&on, on.way.events == events + 1);
    atomic_store(&desk.may_end, true);
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    assert_int_equal(on.way.events, events + 1);
    rig_stop(&on);
}

/* ---- questions that nobody answers in time */

static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    desk.answers++;
    desk.err = bay_answer_error(answer);
    assert_true(bay_call_is_cancelled(call));
    if (user != NULL) {
        bay_call_reply(call, "late");
    }
}

static void ask(bay_call *call, void *user)
{
    (void)user;
    desk.call = call;
    bay_call_roots(call, answered, &desk);
}

static void ask_and_forget(bay_call *call, void *user)
{
    (void)user;
    desk.call = call;
    bay_call_roots(call, answered, NULL);
}

static void a_call_that_waits_for_its_client_times_out(void **state)
{
    (void)state;
    bay_handler_fn const handlers[] = {ask, ask_and_forget};
    for (int blocking = 0; blocking < 2; blocking++) {
        for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
            rig on;
            begin(&on, handlers[i], blocking == 1, "2025-11-25", PLENTY_MS);
            int events = on.way.events;
            rig_send(&on, "tools/call", CALL_T, "");
            RIG_UNTIL(&on, on.way.events == events + 1);
            assert_has(on.way.event[events], "roots/list");
            use_up(desk.call, PLENTY_MS);
            RIG_UNTIL(&on, on.server->calls_under_way == 0);
            assert_int_equal(on.way.events, events + 3);
            assert_has(on.way.event[events + 1], "notifications/cancelled");
            assert_has(last_event(&on.way), TIMED_OUT("10000 ms"));
            assert_int_equal(desk.answers, 1);
            assert_int_equal(desk.err, BAY_ERR_CANCELLED);
            rig_stop(&on);
        }
    }
}

/* ---- ends that should not be */

static void answer_thrice(void *argument)
{
    bay_call *call = argument;
    atomic_fetch_add(&call->references, 1); /* as if it still had it */
    bay_call_reply(call, "first");
    bay_call_fail(call, "second");
    bay_call_error_json(call, 1, "third", bay_json_of("{}"));
    bay_call_finish_json(call, bay_json_of("{}"));
    bay_call_not_found(call);
    bay_call_finish(call, NULL);
    sdk_call_unref(call);
}

static void only_the_first_answer_counts(void **state)
{
    (void)state;
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        rig on;
        begin(&on, keep, false, "2025-11-25", 0);
        int events = on.way.events;
        rig_send(&on, "tools/call", CALL_T, "");
        if (elsewhere == 1) {
            net_thread thread;
            assert_int_equal(net_thread_start(&thread, answer_thrice, desk.call), BAY_OK);
            net_thread_join(&thread);
        } else {
            answer_thrice(desk.call);
        }
        RIG_UNTIL(&on, on.server->calls_under_way == 0);
        assert_int_equal(on.way.events, events + 1);
        assert_has(last_event(&on.way), "\"text\":\"first\"");
        rig_stop(&on);
    }
}

static void an_answer_after_a_cancel_is_dropped(void **state)
{
    (void)state;
    rig on;
    begin(&on, keep, false, "2025-11-25", 0);
    rig_send(&on, "tools/call", CALL_T, "");
    int events = on.way.events;
    rig_say(&on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":11}}");
    assert_true(bay_call_is_cancelled(desk.call));
    bay_call_reply(desk.call, "late");
    assert_int_equal(on.way.events, events);
    assert_int_equal(on.server->calls_under_way, 0);
    rig_stop(&on);
}

/* ---- the other words for an end */

static void err_with_data(bay_call *call, void *user)
{
    bay_call_error_json(call, -32001, "wrong \"call\"", bay_json_of(user));
}

static void finish_as_json(bay_call *call, void *user)
{
    bay_call_finish_json(call, bay_json_of(user));
}

static void errors_have_data_and_results_are_whole(void **state)
{
    (void)state;
    static char data[] = " {\"why\":[1]} ";
    static char broken[] = "{\"why\":";
    static char object[] = " {\"own\":1,\"_meta\":{\"x\":2}} ";
    static char array[] = "[]";
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        bay_server *server = bay_server_new("s", "1");
        bay_tool *tools[] = {
            bay_server_tool_schema(server, "data", NULL, NULL, err_with_data, data),
            bay_server_tool_schema(server, "broken", NULL, NULL, err_with_data, broken),
            bay_server_tool_schema(server, "object", NULL, NULL, finish_as_json, object),
            bay_server_tool_schema(server, "array", NULL, NULL, finish_as_json, array),
            bay_server_tool_schema(server, "nothing", NULL, NULL, finish_as_json, NULL),
        };
        static const char *const parts[] = {
            "\"error\":{\"code\":-32001,\"message\":\"wrong \\\"call\\\"\",\"data\":{\"why\":[1]}}",
            "\"error\":{\"code\":-32001,\"message\":\"wrong \\\"call\\\"\"}",
            "\"own\":1",
            "{\"code\":-32603,\"message\":\"The handler's result is no JSON object\"}",
            "{\"code\":-32603,\"message\":\"The handler's result is no JSON object\"}",
        };
        static const char *const names[] = {"data", "broken", "object", "array", "nothing"};
        for (size_t i = 0; blocking == 1 && i < ARRAY_LEN(tools); i++) {
            bay_tool_blocking(tools[i]);
        }
        rig_start(&on, server);
        rig_client(&on, "2026-07-28");
        for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
            char params[64];
            (void)snprintf(params, sizeof(params), "\"name\":\"%s\"", names[i]);
            int events = on.way.events;
            rig_send(&on, "tools/call", params, "");
            RIG_UNTIL(&on, on.way.events == events + 1);
            assert_has(last_event(&on.way), parts[i]);
        }
        assert_has(on.way.event[2], "\"resultType\":\"complete\"");
        assert_has(on.way.event[2], "\"x\":2");
        rig_stop(&on);
    }
}

static void log_objects(bay_call *call, void *user)
{
    (void)user;
    bay_call_log_json(call, "error", NULL, bay_json_of(" {\"n\":1.50} "));
    bay_call_log_json(call, "error", "own", bay_json_of("[1]"));
    bay_call_log_json(call, "error", "own", bay_json_of("no JSON"));
    bay_call_log_json(call, "error", "own", bay_json_of(NULL));
    bay_call_log_json(call, "loud", "own", bay_json_of("1"));
    bay_call_log_json(call, "debug", "own", bay_json_of("1"));
    bay_call_reply(call, "done");
}

static void any_json_can_be_logged(void **state)
{
    (void)state;
    rig on;
    begin(&on, log_objects, false, "2025-11-25", 0);
    int events = on.way.events;
    rig_send(&on, "tools/call", CALL_T, "");
    assert_int_equal(on.way.events, events + 3);
    assert_has(on.way.event[events],
               "{\"level\":\"error\",\"logger\":\"t\",\"data\":{\"n\":1.50}}");
    assert_has(on.way.event[events + 1], "{\"level\":\"error\",\"logger\":\"own\",\"data\":[1]}");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deferred_call_times_out),
        cmocka_unit_test(a_resource_times_out_with_an_error),
        cmocka_unit_test(the_default_is_ten_minutes),
        cmocka_unit_test(a_blocking_handler_times_out),
        cmocka_unit_test(a_late_answer_is_dropped),
        cmocka_unit_test(a_handler_that_returns_after_its_time_is_over),
        cmocka_unit_test(a_call_that_waits_for_its_client_times_out),
        cmocka_unit_test(only_the_first_answer_counts),
        cmocka_unit_test(an_answer_after_a_cancel_is_dropped),
        cmocka_unit_test(errors_have_data_and_results_are_whole),
        cmocka_unit_test(any_json_can_be_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
