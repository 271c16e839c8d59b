/* With a keeper: nothing is told before it is kept, a keeper that fails, and another process that
 * goes on with the rows. */
#include "agent_rig.h"

static void tells_nothing_before_it_is_kept(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->is_keeping = false;
    told *call = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(call->ended, 0);
    assert_int_equal(r->put_count, 1); /* one, with all that happened */
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    told *listed = rig_ask(r, A2A_LIST_TASKS, "{}");
    assert_int_equal(get->ended + listed->ended, 0);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    assert_answered(call);
    assert_answered(get);
    assert_answered(listed);
    assert_holds(call->result, "TASK_STATE_COMPLETED");
    assert_holds(listed->result, TASK_1);
    told_free(call);
    told_free(get);
    told_free(listed);
    rig_free(r);
}

static void keeps_events_before_they_go_out(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->is_keeping = false;
    r->turn = rig_hold;
    told *stream = rig_stream(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    assert_int_equal(stream->event_count, 0);
    assert_int_equal(rig_confirm(r, BAY_OK), 1); /* the task and WORKING … */
    assert_int_equal(stream->event_count, 2);
    assert_int_equal(r->put_count, 1); /* … then the rest */
    told *late = rig_ask(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_int_equal(late->event_count, 0);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    assert_int_equal(stream->event_count, 3);
    assert_int_equal(late->event_count, 1);
    rig_complete(r, r->held);
    assert_int_equal(stream->ended, 0);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    assert_int_equal(stream->ended, 1);
    assert_int_equal(late->ended, 1);
    assert_int_equal(r->rows[0].event_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(a2a_event_sequence(r->rows[0].events[i]), i + 1);
    }
    told_free(stream);
    told_free(late);
    rig_free(r);
}

static void fails_visibly(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->keep_says = BAY_ERR_LIMIT; /* full, as a new task's first put learns */
    told *call = rig_send(r, RIG_MESSAGE("1", ""));
    assert_failed(call, A2A_E_BUSY);
    told_free(call);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_FOUND);
    r->keep_says = BAY_OK;
    r->put_says = BAY_ERR_IO; /* or does not take at all */
    r->turn = rig_hold;
    call = rig_stream(r, RIG_MESSAGE("2", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_failed(call, A2A_E_INTERNAL);
    assert_non_null(strstr(call->fault.text, "cannot be stored"));
    assert_int_equal(r->cancels, 1); /* nobody wants it any more */
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_ERR_STATE);
    a2a_turn_end(r->held);
    told_free(call);
    r->put_says = BAY_OK;
    rig_free(r);
}

static void tries_again(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_stream(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(call->event_count, 2);
    r->keep_says = BAY_ERR_IO;
    rig_complete(r, r->held);
    assert_failed(call, A2A_E_INTERNAL);
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_int_equal(get->ended, 0);
    assert_true(r->wake_ms == RIG_NOW + 1000);
    r->now_ms += 1000;
    a2a_agent_tick(r->agent);
    assert_failed(get, A2A_E_INTERNAL);
    r->keep_says = BAY_OK;
    r->now_ms += 1000;
    a2a_agent_tick(r->agent);
    told *again = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_answered(again);
    assert_holds(again->result, "TASK_STATE_COMPLETED");
    told_free(again);
    /* It was cut by the failure and comes back. */
    again = rig_call(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}");
    again->call.last_event_id = 2;
    rig_start(again);
    assert_int_equal(again->event_count, 1);
    assert_int_equal(again->ended, 1);
    told_free(again);
    told_free(get);
    told_free(call);
    rig_free(r);
}

/* ---- another process */

static void refuses_rows_that_are_none(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"v\":2}",
        "{\"v\":1,\"revision\":0}",
        "{\"v\":1,\"revision\":1,\"order\":1,\"principal\":\"\",\"task\":{\"id\":\"a\","
        "\"contextId\":\"c\",\"status\":{\"state\":\"NO\",\"timestamp\":\"2023-11-14T22:13:20Z\"}}"
        "}",
        "{\"v\":1,\"revision\":1,\"order\":1,\"principal\":\"\",\"task\":{\"id\":\"a\","
        "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\",\"timestamp\":\"x\"}}}",
        "{\"v\":1,\"revision\":1,\"order\":1,\"principal\":\"\",\"task\":{\"id\":\"a\","
        "\"contextId\":\"c\",\"artifacts\":[{}],\"status\":{\"state\":\"TASK_STATE_WORKING\","
        "\"timestamp\":\"2023-11-14T22:13:20Z\"}}}",
        "{\"v\":1,\"revision\":1,\"order\":1,\"principal\":\"\",\"turns\":[1],\"task\":{\"id\":"
        "\"a\","
        "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\","
        "\"timestamp\":\"2023-11-14T22:13:20Z\"}}}",
        "{\"v\":1,\"revision\":1,\"order\":1,\"principal\":\"\",\"configs\":[{}],\"task\":{\"id\":"
        "\"a\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\","
        "\"timestamp\":\"2023-11-14T22:13:20Z\"}}}"};
    rig *r = rig_new_keeping();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const a2a_kept_task kept = {.row = str_of(bad[i])};
        bay_err err = a2a_agent_restore(r->agent, &kept, true);
        if (err != BAY_ERR_SYNTAX) {
            fail_msg("%s: %s", bad[i], bay_err_text(err));
        }
    }
    told_free(rig_send(r, RIG_MESSAGE("1", "")));
    assert_int_equal(rig_restore(r, &r->rows[0], true), BAY_ERR_DUPLICATE);
    rig_free(r);
}

static void goes_on_after_a_restart(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *stream = rig_call(r, A2A_SEND_STREAMING_MESSAGE, RIG_MESSAGE("1", ""));
    stream->call.traceparent = STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    rig_start(stream);
    assert_int_equal(rig_status(r->held, A2A_WORKING, "so far"), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "b", "whole", false, true), BAY_OK);
    told *second = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    told *before = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    rig_restart(r, true);
    assert_int_equal(stream->ended, 1);
    assert_int_equal(r->turns, 1);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 2);
    assert_true(a2a_turn_is_resumed(r->held));
    assert_true(a2a_turn_is_new(r->held));
    assert_true(json_str_eq(json_get(a2a_turn_message(r->held), STR("messageId")), STR("1")));
    assert_true(str_ends(a2a_turn_traceparent(r->held), STR("-b7ad6b7169203331-01")));
    assert_true(str_eq(a2a_turn_tracestate(r->held), STR("a=1,b=2")));
    told *after = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_string_equal(before->result, after->result);
    /* The message whose answer was lost comes again. */
    told *again = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(r->turns, 2);
    told *back = rig_call(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}");
    back->call.last_event_id = 2;
    rig_start(back);
    assert_int_equal(back->event_count, 2);
    assert_int_equal(back->sequences[0], 3);
    assert_int_equal(rig_artifact(r->held, "a", "y", true, false), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "b", "more", true, false), BAY_ERR_STATE);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_answered(again);
    a2a_turn_end(r->held); /* and the second message's turn begins */
    assert_int_equal(r->turns, 3);
    assert_false(a2a_turn_is_resumed(r->held));
    assert_int_equal(a2a_turn_tracestate(r->held).len, 0); /* it said no trace */
    rig_complete(r, r->held);
    for (size_t i = 1; i < back->event_count; i++) {
        assert_true(back->sequences[i] > back->sequences[i - 1]);
    }
    told_free(stream);
    told_free(second);
    told_free(before);
    told_free(after);
    told_free(again);
    told_free(back);
    rig_free(r);
}

static void says_what_it_cannot_go_on_with(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    rig_restart(r, false);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 1);
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_holds(get->result, "TASK_STATE_FAILED");
    assert_holds(get->result, "the agent was stopped while it worked on this task");
    told_free(get);
    told_free(call);
    rig_free(r);
}

/* A message that waited for a turn which is lost is read all the same, where the task asked. */
static void reads_what_waited(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    told *second = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    assert_int_equal(r->turns, 1);
    rig_restart(r, false);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 2);
    assert_false(a2a_turn_is_resumed(r->held));
    assert_true(json_str_eq(json_get(a2a_turn_message(r->held), STR("messageId")), STR("2")));
    told_free(first);
    told_free(second);
    rig_free(r);
}

/* The client was told that it is asked, and the process died before the turn had ended. */
static void asks_once(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    rig_restart(r, true);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 1); /* it is not asked again */
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_holds(get->result, "TASK_STATE_INPUT_REQUIRED");
    told *answer = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    assert_int_equal(r->turns, 2);
    assert_false(a2a_turn_is_resumed(r->held));
    rig_complete(r, r->held);
    assert_answered(answer);
    assert_holds(answer->result, "TASK_STATE_COMPLETED");
    told_free(first);
    told_free(get);
    told_free(answer);
    rig_free(r);
}

/* A turn that waits for somebody to log in works on. */
static void waits_for_a_login_again(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_AUTH_REQUIRED, "log in"), BAY_OK);
    rig_restart(r, true);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 2);
    assert_true(a2a_turn_is_resumed(r->held));
    rig_complete(r, r->held);
    told_free(first);
    rig_free(r);
}

/* Order, webhooks and ends survive; what waits for input goes on waiting. */
static void keeps_what_rests(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    for (int i = 0; i < 5; i++) {
        r->now_ms += 10;
        told_free(rig_send(r, RIG_MESSAGE("1", "")));
    }
    r->turn = rig_hold;
    told *asking = rig_send(
        r,
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"taskPushNotificationConfig\":{\"url\":\"https://"
        "x\",\"token\":\"t\"}}}");
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_answered(asking);
    bay_str id = a2a_turn_task_id(r->held);
    char params[400];
    a2a_turn_end(r->held);
    told *before = rig_ask(r, A2A_LIST_TASKS, "{}");
    rig_format(params, sizeof(params), "{\"taskId\":\"%.*s\"}", (int)id.len, id.at);
    told *configs = rig_ask(r, A2A_LIST_PUSH_CONFIGS, params);
    assert_holds(configs->result, "\"token\":\"t\"");
    a2a_turn *old = a2a_turn_ref(r->held);
    rig_restart(r, false);
    a2a_agent_tick(r->agent);
    told *after = rig_ask(r, A2A_LIST_TASKS, "{}");
    assert_string_equal(before->result, after->result);
    told *kept = rig_ask(r, A2A_LIST_PUSH_CONFIGS, params);
    assert_string_equal(configs->result, kept->result);
    rig_format(params, sizeof(params),
               "{\"message\":{\"messageId\":\"n\",\"taskId\":\"%.*s\",\"role\":\"ROLE_USER\","
               "\"parts\":[{\"text\":\"this\"}]}}",
               (int)id.len, id.at);
    r->turn = rig_complete;
    told *next = rig_send(r, params);
    assert_answered(next);
    assert_holds(next->result, "TASK_STATE_COMPLETED");
    assert_int_equal(r->pushes, 4); /* task, question; WORKING, done */
    /* They end in the order in which they changed, whatever the order of their rows. */
    r->now_ms = RIG_NOW + 10 + UINT64_C(7) * 24 * 3600 * 1000;
    a2a_agent_tick(r->agent);
    assert_int_equal(r->removed, 1);
    a2a_turn_unref(old);
    told_free(asking);
    told_free(before);
    told_free(configs);
    told_free(after);
    told_free(kept);
    told_free(next);
    rig_free(r);
}

/* What was kept last may not have left the process: it is told again, unless that was long ago. */
static void pushes_again_what_may_be_lost(void **state)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        rig *r = rig_new_keeping();
        (void)state;
        r->turn = rig_hold;
        told *call = rig_send(
            r, "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
               "\"hi\"}]},\"configuration\":{\"taskPushNotificationConfig\":{\"url\":\"https://"
               "x\"}}}");
        assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
        assert_int_equal(r->pushes, 2);
        r->now_ms += is_late ? 600001 : 0;
        rig_restart(r, true);
        a2a_agent_tick(r->agent);
        assert_int_equal(r->pushes, is_late ? 2 : 4);
        told_free(call);
        rig_free(r);
    }
}

/* More rows than tasks: one that made place could not be removed, or there may be fewer now. */
static void the_oldest_make_place_for_what_comes_back(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    static const char *const messages[] = {RIG_MESSAGE("1", ""), RIG_MESSAGE("2", ""),
                                           RIG_MESSAGE("3", ""),
                                           "{\"configuration\":{\"returnImmediately\":true},"
                                           "\"message\":{\"messageId\":\"4\",\"role\":"
                                           "\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]}}"};
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        r->turn = i == 3 ? rig_hold : rig_complete;
        told_free(rig_send(r, messages[i]));
        r->now_ms += 10;
    }
    assert_int_equal(r->row_count, 4);
    kept_row newest = r->rows[2];
    for (int swapped = 0; swapped < 2; swapped++) { /* whatever order they come in */
        r->options.limits.tasks = 2;
        r->removed = 0;
        rig_restart(r, true);
        a2a_agent_tick(r->agent);
        assert_int_equal(r->removed, 2);
        told *all = rig_ask(r, A2A_LIST_TASKS, "{}");
        assert_answered(all);
        assert_holds(all->result, "\"totalSize\":2");
        assert_holds(all->result, newest.id);
        assert_holds(all->result, r->rows[3].id);
        told_free(all);
        kept_row first = r->rows[0];
        r->rows[0] = r->rows[2];
        r->rows[2] = first;
    }
    r->options.limits.tasks = 1; /* what has not ended stays */
    rig_close(r);
    rig_open(r);
    assert_int_equal(rig_restore(r, &r->rows[3], true), BAY_OK);
    r->removed = 0;
    assert_int_equal(rig_restore(r, &r->rows[0], true), BAY_OK);
    assert_int_equal(r->removed, 1);
    free(r->rows[0].row);
    r->rows[0].row = rig_copy((bay_str){r->rows[3].row, r->rows[3].row_len});
    r->rows[0].row_len = r->rows[3].row_len;
    memcpy(strstr(r->rows[0].row, "\"id\":\"0000") + 6, "1111", 4); /* another that has not */
    assert_int_equal(rig_restore(r, &r->rows[0], true), BAY_ERR_LIMIT);
    assert_int_equal(r->removed, 1);
    rig_free(r);
}

/* The handler's own bytes: with the task, in another process too, and shown to nobody. */
static void remembers_for_the_handler(void **state)
{
    static const char bytes[] = "not \"JSON\"\0 at all\xff";
    char *large = calloc(1, A2A_TURN_MEMORY_BYTES + 1);
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(a2a_turn_remembered(r->held).len, 0);
    assert_int_equal(a2a_turn_remember(r->held, (bay_str){large, A2A_TURN_MEMORY_BYTES + 1}),
                     BAY_ERR_LIMIT);
    assert_int_equal(a2a_turn_remember(r->held, STR("replaced")), BAY_OK);
    assert_int_equal(a2a_turn_remember(r->held, (bay_str){bytes, sizeof(bytes)}), BAY_OK);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    a2a_turn_end(r->held);
    assert_int_equal(a2a_turn_remember(r->held, STR("late")), BAY_ERR_STATE);
    rig_restart(r, true);
    a2a_agent_tick(r->agent);
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_lacks(get->result, "not ");
    told *next = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    assert_true(str_eq(a2a_turn_remembered(r->held), (bay_str){bytes, sizeof(bytes)}));
    rig_complete(r, r->held);
    assert_answered(next);
    told_free(call);
    told_free(get);
    told_free(next);
    rig_free(r);
    free(large);
}

/* The agent goes while its keeper still has something to say. */
static void ends_before_its_persister(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->is_keeping = false;
    told *call = rig_send(r, RIG_MESSAGE("1", ""));
    a2a_agent_free(r->agent);
    r->agent = NULL;
    assert_failed(call, A2A_E_UNAVAILABLE);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    told_free(call);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_nothing_before_it_is_kept),
        cmocka_unit_test(keeps_events_before_they_go_out),
        cmocka_unit_test(fails_visibly),
        cmocka_unit_test(tries_again),
        cmocka_unit_test(refuses_rows_that_are_none),
        cmocka_unit_test(goes_on_after_a_restart),
        cmocka_unit_test(says_what_it_cannot_go_on_with),
        cmocka_unit_test(reads_what_waited),
        cmocka_unit_test(asks_once),
        cmocka_unit_test(waits_for_a_login_again),
        cmocka_unit_test(keeps_what_rests),
        cmocka_unit_test(pushes_again_what_may_be_lost),
        cmocka_unit_test(the_oldest_make_place_for_what_comes_back),
        cmocka_unit_test(remembers_for_the_handler),
        cmocka_unit_test(ends_before_its_persister),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
