/* Calls that other threads finish: deferred ones and blocking ones, while the client is there, has
 * cancelled, is gone, or the server ends. Every thread is joined before the server is freed. */
#include <sched.h>

#include "net/thread.h"
#include "support/skipped.h"
#include "unit/sdk/question_bench.h"

enum { CROWD = 16, ROUNDS = 50 };

/* A handler gives its call to the test, which has a thread deal with it. */
static struct {
    bay_call *held[MAX_EVENTS];
    atomic_int count;
    atomic_bool may_go_on;
    atomic_int arrived;
} desk;

static void desk_clear(void)
{
    atomic_store(&desk.count, 0);
    atomic_store(&desk.may_go_on, false);
    atomic_store(&desk.arrived, 0);
}

static void hand_over(bay_call *call, void *user)
{
    (void)user;
    desk.held[atomic_load(&desk.count)] = bay_call_defer(call); /* one at a time */
    atomic_fetch_add(&desk.count, 1);
}

static void start(rig *on, bay_handler_fn handler, bool is_blocking)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, handler, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    desk_clear();
    rig_start(on, server);
    rig_client(on, "2025-06-18");
}

static void send_call(rig *on)
{
    rig_send(on, "tools/call", "\"name\":\"t\",\"arguments\":{\"a\":\"\\u0041\"}",
             "\"progressToken\":1");
}

#define COUNT(on, part, out)                                                                       \
    do {                                                                                           \
        (out) = 0;                                                                                 \
        for (int at = 0; at < (on)->way.events; at++) {                                            \
            (out) += strstr((on)->way.event[at], (part)) != NULL;                                  \
        }                                                                                          \
    } while (0)

/* ---- deferred */

static void talk_and_reply(void *argument)
{
    bay_call *call = argument;
    assert_true(str_eq(bay_call_str(call, "a"), STR("A")));
    bay_call_progress(call, 1, 2, "first");
    bay_call_log(call, "error", "second");
    bay_result *result = bay_result_new(call);
    bay_result_text_str(result, bay_call_str(call, "a"));
    bay_call_finish(call, result);
}

static void give_up(void *argument)
{
    bay_call_failf(argument, "%s", "failed elsewhere");
}

static void be_wrong(void *argument)
{
    char text[] = "wrong elsewhere";
    bay_call_error(argument, -32001, text);
    memset(text, 0, sizeof(text)); /* it was copied */
}

static void run_on_thread(void (*function)(void *argument), bay_call *call)
{
    net_thread thread;
    assert_int_equal(net_thread_start(&thread, function, call), BAY_OK);
    net_thread_join(&thread);
}

static void a_deferred_call_is_finished_elsewhere(void **state)
{
    (void)state;
    rig on;
    start(&on, hand_over, false);
    send_call(&on);
    int at = on.way.events;
    run_on_thread(talk_and_reply, desk.held[0]);
    assert_int_equal(on.way.events, at); /* nothing happens but on the loop */
    RIG_UNTIL(&on, on.way.events == at + 3);
    assert_has(on.way.event[at], "\"progress\":1");
    assert_has(on.way.event[at + 1], "\"data\":\"second\"");
    assert_has(on.way.event[at + 2], "\"text\":\"A\"");
    send_call(&on);
    run_on_thread(give_up, desk.held[1]);
    RIG_UNTIL(&on, on.way.events == at + 4);
    assert_has(last_event(&on.way), "failed elsewhere");
    assert_has(last_event(&on.way), "\"isError\":true");
    send_call(&on);
    run_on_thread(be_wrong, desk.held[2]);
    RIG_UNTIL(&on, on.way.events == at + 5);
    assert_has(last_event(&on.way), "\"message\":\"wrong elsewhere\"");
    rig_stop(&on);
}

/* Many threads finish while the loop turns, and the loop answers calls of its own meanwhile. */
static void finish_any(void *argument)
{
    bay_call *call = argument;
    atomic_fetch_add(&desk.arrived, 1);
    while (!atomic_load(&desk.may_go_on)) {
        (void)sched_yield(); /* there are more of them than cores */
    }
    (void)bay_call_is_cancelled(call);
    bay_call_progress(call, 1, 2, NULL);
    bay_call_replyf(call, "%s", "done");
}

static void a_crowd_finishes_at_once(void **state)
{
    (void)state;
    rig on;
    net_thread threads[CROWD];
    start(&on, hand_over, false);
    for (int i = 0; i < CROWD; i++) {
        send_call(&on);
        assert_int_equal(net_thread_start(&threads[i], finish_any, desk.held[i]), BAY_OK);
    }
    atomic_store(&desk.may_go_on, true);
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    for (int i = 0; i < CROWD; i++) {
        net_thread_join(&threads[i]);
    }
    int answers;
    int reports;
    COUNT(&on, "\"text\":\"done\"", answers);
    COUNT(&on, "notifications/progress", reports);
    assert_int_equal(answers, CROWD);
    assert_int_equal(reports, CROWD);
    rig_stop(&on);
}

/* The client cancels, or hangs up, while the thread is about to finish. */
static void the_client_goes_while_a_thread_finishes(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rig on;
        net_thread thread;
        start(&on, hand_over, false);
        send_call(&on);
        assert_int_equal(net_thread_start(&thread, finish_any, desk.held[0]), BAY_OK);
        while (atomic_load(&desk.arrived) == 0) {
        }
        atomic_store(&desk.may_go_on, true);
        if (round % 2 == 0) {
            rig_say(&on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                         "\"requestId\":11}}");
        } else {
            rig_hang_up(&on);
        }
        net_thread_join(&thread);
        rig_stop(&on);
    }
}

#ifdef BAY_NO_TLS
SKIPPED(what_a_thread_remembers_is_sealed_whole, "this build has no TLS, so nothing is sealed")
#else
/* A thread that has asked goes on writing what it remembers, while the loop seals that for the next
 * round: what comes back was written whole. */
static void nothing_more(bay_call *call, const bay_answer *answer, void *user)
{
    (void)call; /* the thread ends it */
    (void)user;
    assert_int_equal(bay_answer_error(answer), BAY_ERR_CANCELLED);
}

static void ask_and_remember(void *argument)
{
    static const char bytes[CALL_MAX_STATE];
    bay_call *call = argument;
    bay_call_remember(call, bytes, 1);
    bay_call_elicit(call, "?", NULL, nothing_more, NULL);
    while (!bay_call_is_cancelled(call)) {
        bay_call_remember(call, bytes, sizeof(bytes));
        bay_call_remember(call, bytes, 1);
    }
    bay_call_reply(call, "nobody hears");
}

static void what_a_thread_remembers_is_sealed_whole(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rig on;
        net_thread thread;
        start(&on, hand_over, false);
        rig_client_with(&on, "2026-07-28", "\"elicitation\":{\"form\":{}}");
        send_call(&on);
        int at = on.way.events;
        assert_int_equal(net_thread_start(&thread, ask_and_remember, desk.held[0]), BAY_OK);
        RIG_UNTIL(&on, on.way.events > at);
        net_thread_join(&thread);
        assert_has(last_event(&on.way), "\"resultType\":\"input_required\"");
        char sealed[32 * 1024];
        (void)snprintf(sealed, sizeof(sealed), "%s", state_in(last_event(&on.way)));
        char params[40 * 1024];
        (void)snprintf(params, sizeof(params),
                       "\"name\":\"t\",\"arguments\":{\"a\":\"\\u0041\"},\"inputResponses\":{"
                       "\"1\":{\"action\":\"decline\"}},\"requestState\":\"%s\"",
                       sealed);
        rig_send(&on, "tools/call", params, "");
        assert_int_equal(atomic_load(&desk.count), 2);
        size_t len = bay_call_remembered(desk.held[1]).len;
        assert_true(len == 1 || len == CALL_MAX_STATE);
        bay_call_reply(desk.held[1], "ok");
        rig_stop(&on);
    }
}
#endif

/* A call that is cancelled is seen by the thread that works on it. */
static void wait_for_cancel(bay_call *call, void *user)
{
    (void)user;
    atomic_fetch_add(&desk.arrived, 1);
    while (!bay_call_is_cancelled(call)) {
    }
    bay_call_fail(call, "stopped");
}

static void a_blocking_handler_hears_of_the_cancel(void **state)
{
    (void)state;
    rig on;
    start(&on, wait_for_cancel, true);
    send_call(&on);
    while (atomic_load(&desk.arrived) == 0) {
    }
    assert_int_equal(on.server->calls_under_way, 1);
    rig_hang_up(&on);
    rig_stop(&on);
}

/* ---- blocking */

static void work(bay_call *call, void *user)
{
    (void)user;
    assert_int_equal(sdk_call_on_loop(call), 0);
    bay_call_progress(call, 1, 1, NULL);
    bay_call_reply_str(call, bay_call_str(call, "a"));
    atomic_fetch_add(&desk.arrived, 1); /* and goes on for a while */
}

static void be_silent(bay_call *call, void *user)
{
    (void)call;
    (void)user;
}

static void answer_twice(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "first");
    bay_call_fail(call, "second");
    bay_call_error(call, 1, "third");
}

static void defer_from_the_pool(bay_call *call, void *user)
{
    hand_over(call, user);
}

static void blocking_handlers_answer(void **state)
{
    (void)state;
    rig on;
    start(&on, work, true);
    for (int i = 0; i < CROWD; i++) {
        send_call(&on);
    }
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    int answers;
    COUNT(&on, "\"text\":\"A\"", answers);
    assert_int_equal(answers, CROWD);
    rig_stop(&on);
    assert_int_equal(atomic_load(&desk.arrived), CROWD); /* each came to its end */
}

static void blocking_handlers_break_the_rules(void **state)
{
    (void)state;
    rig on;
    start(&on, be_silent, true);
    int at = on.way.events;
    send_call(&on);
    RIG_UNTIL(&on, on.way.events == at + 1);
    assert_has(last_event(&on.way), "The handler returned without an answer");
    rig_stop(&on);
    start(&on, answer_twice, true);
    at = on.way.events;
    send_call(&on);
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    assert_int_equal(on.way.events, at + 1);
    assert_has(last_event(&on.way), "\"text\":\"first\"");
    rig_stop(&on);
}

static void a_blocking_handler_may_defer(void **state)
{
    (void)state;
    rig on;
    start(&on, defer_from_the_pool, true);
    int at = on.way.events;
    send_call(&on);
    while (atomic_load(&desk.count) == 0) {
    }
    bay_call_reply(desk.held[0], "on the loop after all");
    assert_int_equal(on.way.events, at + 1);
    assert_has(last_event(&on.way), "on the loop after all");
    rig_stop(&on);
}

/* ---- bounds */

static void say_much(void *argument)
{
    bay_call *call = argument;
    for (int i = 1; i <= CALL_MAX_NOTES + 100; i++) {
        bay_call_progress(call, i, -1, NULL);
    }
    assert_int_equal(atomic_load(&call->notes), CALL_MAX_NOTES);
    bay_call_reply(call, "done");
}

static void say_long(void *argument)
{
    static char text[1 << 19];
    memset(text, 'x', sizeof(text) - 1);
    bay_call *call = argument;
    for (int i = 0; i < 20; i++) {
        bay_call_log(call, "error", text);
    }
    assert_true(atomic_load(&call->note_bytes) <= CALL_MAX_NOTE_BYTES);
    assert_true(atomic_load(&call->notes) >= 7);
    bay_call_reply(call, "done");
}

static void messages_on_their_way_are_bounded(void **state)
{
    (void)state;
    rig on;
    start(&on, hand_over, false);
    send_call(&on);
    on.way.event_err = BAY_ERR_AGAIN; /* one gets through, then the client is slow */
    int at = on.way.events;
    run_on_thread(say_long, desk.held[0]);
    RIG_UNTIL(&on, on.server->calls_under_way == 0);
    assert_true(on.way.events - at <= 10);
    rig_stop(&on);
    start(&on, hand_over, false);
    rig_send(&on, "tools/call", "\"name\":\"t\"", "\"progressToken\":1");
    rig_say(&on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":11}}");
    run_on_thread(say_much, desk.held[0]);
    rig_stop(&on);
}

/* ---- announcements */

static void announce_much(void *argument)
{
    bay_server *server = argument;
    for (int i = 0; i < 2000; i++) {
        char uri[16];
        (void)snprintf(uri, sizeof(uri), "x:%d", i % 5);
        bay_server_updated(server, uri);
        bay_server_changed(server, BAY_KIND_TOOLS);
    }
    atomic_fetch_add(&desk.arrived, 1);
}

static void anybody_may_announce_until_the_end(void **state)
{
    (void)state;
    rig on;
    net_thread threads[2];
    start(&on, hand_over, false);
    rig_hang_up(&on);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(net_thread_start(&threads[i], announce_much, on.server), BAY_OK);
    }
    loop_turn(on.loop, 1);
    /* The server stops serving while they still announce. */
    sdk_announcements_close(on.server);
    mcp_server_free(on.server->engine);
    on.server->engine = NULL;
    loop_free(on.loop);
    net_thread_join(&threads[0]);
    net_thread_join(&threads[1]);
    bay_server_free(on.server);
}

/* ---- what is used again */

/* A call that a thread still holds is not given to the next request. */
static void a_call_in_use_is_not_lent_again(void **state)
{
    (void)state;
    rig on;
    start(&on, hand_over, false);
    send_call(&on);
    bay_call *first = desk.held[0];
    atomic_fetch_add(&first->references, 1); /* as a thread that has not let go */
    bay_call_reply(first, "done");
    assert_int_equal(on.server->idle_count, 0);
    send_call(&on);
    assert_ptr_not_equal(desk.held[1], first);
    sdk_call_unref(first);
    assert_int_equal(on.server->idle_count, 1);
    send_call(&on);
    assert_ptr_equal(desk.held[2], first);
    assert_false(bay_call_is_cancelled(desk.held[2]));
    bay_call_reply(desk.held[1], "done");
    bay_call_reply(desk.held[2], "done");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deferred_call_is_finished_elsewhere),
        cmocka_unit_test(a_crowd_finishes_at_once),
        cmocka_unit_test(the_client_goes_while_a_thread_finishes),
        cmocka_unit_test(what_a_thread_remembers_is_sealed_whole),
        cmocka_unit_test(a_blocking_handler_hears_of_the_cancel),
        cmocka_unit_test(blocking_handlers_answer),
        cmocka_unit_test(blocking_handlers_break_the_rules),
        cmocka_unit_test(a_blocking_handler_may_defer),
        cmocka_unit_test(messages_on_their_way_are_bounded),
        cmocka_unit_test(anybody_may_announce_until_the_end),
        cmocka_unit_test(a_call_in_use_is_not_lent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
