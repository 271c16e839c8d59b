/* Streams: what comes first, the same for all and in order, slow readers, clients that come back.
 */
#include "agent_rig.h"

static void work(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(rig_status(turn, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(rig_artifact(turn, "a", "one", false, false), BAY_OK);
    assert_int_equal(rig_artifact(turn, "a", "two", true, true), BAY_OK);
    assert_int_equal(rig_status(turn, A2A_COMPLETED, NULL), BAY_OK);
    a2a_turn_end(turn);
}

static void tells_every_step(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = work;
    told *call = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(call->ended, 1);
    assert_int_equal(call->event_count, 5);
    assert_holds(call->events[0], "{\"task\":{\"id\":\"" TASK_1 "\"");
    assert_holds(call->events[0], "TASK_STATE_SUBMITTED");
    assert_holds(call->events[0], "\"history\":[");
    assert_string_equal(call->events[1],
                        "{\"statusUpdate\":{\"taskId\":\"" TASK_1 "\",\"contextId\":\"" CONTEXT_1
                        "\",\"status\":{\"state\":\"TASK_STATE_WORKING\",\"timestamp\":\"2023-11-"
                        "14T22:13:20.000Z\"}}}");
    assert_string_equal(call->events[3],
                        "{\"artifactUpdate\":{\"taskId\":\"" TASK_1 "\",\"contextId\":\"" CONTEXT_1
                        "\",\"artifact\":{\"artifactId\":\"a\",\"name\":\"n\",\"parts\":[{\"text\":"
                        "\"two\"}]},\"append\":true,\"lastChunk\":true}}");
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(call->sequences[i], i + 1);
        assert_int_equal(call->is_last[i], i == 4);
    }
    told_free(call);
    rig_free(r);
}

/* a2a 1.0 section 3.2.4 holds for the task that a stream begins with, too. */
static void begins_with_as_much_history_as_was_asked_for(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_stream(
        r,
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"historyLength\":0}}");
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_int_equal(call->event_count, 2);
    assert_holds(call->events[0], "TASK_STATE_SUBMITTED");
    assert_lacks(call->events[0], "history");
    a2a_turn_end(r->held);
    told *next = rig_stream(
        r, "{\"message\":{\"messageId\":\"n\",\"taskId\":\"" TASK_1 "\",\"role\":\"ROLE_USER\","
           "\"parts\":[{\"text\":\"this\"}]},\"configuration\":{\"historyLength\":1}}");
    assert_holds(next->events[0], "\"history\":[{\"taskId\":\"" TASK_1
                                  "\",\"contextId\":\"" CONTEXT_1 "\",\"messageId\":\"n\"");
    rig_complete(r, r->held);
    assert_int_equal(next->event_count, 3);
    assert_int_equal(next->ended, 1);
    told_free(call);
    told_free(next);
    rig_free(r);
}

/* The handler may take its time before the first event; asking back ends the stream, but not
 * waiting for a credential. */
static void ends_where_the_client_must_speak(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(call->event_count, 0);
    assert_int_equal(rig_status(r->held, A2A_AUTH_REQUIRED, "log in"), BAY_OK);
    assert_int_equal(call->event_count, 2);
    assert_int_equal(call->ended, 0);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_int_equal(call->event_count, 3);
    assert_int_equal(call->ended, 1);
    a2a_turn_end(r->held);
    told *next = rig_stream(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    assert_int_equal(next->event_count, 2);
    assert_holds(next->events[0], "{\"task\":");
    assert_holds(next->events[0], "\"messageId\":\"2\"");
    assert_holds(next->events[1], "TASK_STATE_WORKING");
    rig_complete(r, r->held);
    assert_int_equal(next->event_count, 3);
    assert_int_equal(next->ended, 1);
    told_free(call);
    told_free(next);
    rig_free(r);
}

static told *subscribe(rig *r, uint64_t last_event_id)
{
    told *call = rig_call(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}");
    call->call.last_event_id = last_event_id;
    rig_start(call);
    return call;
}

/* A message that waits is not over when the turn before it asks. */
static void tells_of_its_own_turn(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_call(r, A2A_SEND_STREAMING_MESSAGE, RIG_MESSAGE("1", ""));
    rig_start(first);
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    told *second =
        rig_call(r, A2A_SEND_STREAMING_MESSAGE, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    rig_start(second);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_int_equal(first->ended, 1);
    assert_int_equal(second->ended, 0);
    assert_true(first->is_last[first->event_count - 1]);
    assert_holds(second->events[second->event_count - 1], "INPUT_REQUIRED");
    assert_false(second->is_last[second->event_count - 1]); /* 0.x: it is not final here */
    a2a_turn_end(r->held);                                  /* the second message's turn begins */
    assert_int_equal(r->turns, 2);
    assert_int_equal(second->ended, 0);
    rig_complete(r, r->held);
    assert_int_equal(second->ended, 1);
    assert_holds(second->events[second->event_count - 1], "TASK_STATE_COMPLETED");
    told_free(first);
    told_free(second);
    rig_free(r);
}

static void tells_all_the_same(void **state)
{
    enum { READERS = 20 };
    rig *r = rig_new();
    told *calls[READERS];
    (void)state;
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    for (int i = 0; i < READERS; i++) {
        calls[i] = subscribe(r, 0);
        assert_int_equal(calls[i]->event_count, 1);
        assert_holds(calls[i]->events[0], "{\"task\":");
        assert_int_equal(calls[i]->sequences[0], 2);
        assert_ptr_equal(calls[i]->last, calls[0]->last); /* written once for all */
    }
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    rig_leave(calls[3]);
    calls[5]->says = BAY_ERR_CLOSED;
    assert_int_equal(rig_artifact(r->held, "a", "y", true, false), BAY_OK);
    assert_int_equal(calls[3]->ended, 1);
    assert_int_equal(calls[5]->ended, 1);
    for (int i = 0; i < READERS; i++) {
        assert_true(i == 3 || i == 5 || calls[i]->last == first->last);
    }
    rig_complete(r, r->held);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(calls[i]->ended, 1);
        assert_int_equal(calls[i]->event_count, i == 3 || i == 5 ? 2 : 4);
        for (size_t k = 1; k < calls[i]->event_count; k++) {
            assert_string_equal(calls[i]->events[k], first->events[k + 1]);
            assert_int_equal(calls[i]->sequences[k], first->sequences[k + 1]);
        }
        told_free(calls[i]);
    }
    assert_int_equal(first->ended, 1);
    told_free(first);
    rig_free(r);
}

static void waits_for_slow_readers(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *slow = rig_stream(r, RIG_MESSAGE("m", ""));
    slow->says = BAY_ERR_AGAIN;
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(slow->event_count, 1); /* the task, and no more until it is drained */
    told *quick = subscribe(r, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rig_artifact(r->held, "a", "x", i > 0, false), BAY_OK);
    }
    assert_int_equal(slow->event_count, 1);
    assert_int_equal(quick->event_count, 11);
    rig_drain(slow);
    assert_int_equal(slow->event_count, 12);
    slow->says = BAY_ERR_AGAIN;
    rig_complete(r, r->held); /* the last event is taken, too */
    assert_int_equal(slow->event_count, 13);
    assert_int_equal(slow->ended, 1);
    assert_int_equal(quick->ended, 1);
    for (size_t i = 0; i < 13; i++) {
        assert_int_equal(slow->sequences[i], i + 1);
    }
    told_free(slow);
    told_free(quick);
    rig_free(r);
}

static void ends_what_is_too_far_behind(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.replay_events = 4;
    rig_open(r);
    r->turn = rig_hold;
    told *slow = rig_stream(r, RIG_MESSAGE("m", ""));
    slow->says = BAY_ERR_AGAIN;
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rig_artifact(r->held, "a", "x", i > 0, false), BAY_OK);
    }
    rig_drain(slow);
    assert_int_equal(slow->event_count, 1);
    assert_int_equal(slow->ended, 1);
    assert_int_equal(slow->fault.error, A2A_NO_ERROR);
    /* It comes back: what it missed is gone, so the task as it is. */
    told *back = subscribe(r, 1);
    assert_int_equal(back->event_count, 1);
    assert_holds(back->events[0], "{\"task\":");
    assert_int_equal(back->sequences[0], 12);
    rig_complete(r, r->held);
    assert_int_equal(back->event_count, 2);
    told_free(slow);
    told_free(back);
    rig_free(r);
}

static void goes_on_where_it_was_cut(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    rig_leave(first);
    assert_int_equal(first->ended, 1);
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "a", "y", true, true), BAY_OK);
    told *back = subscribe(r, first->sequences[1]);
    assert_int_equal(back->event_count, 2);
    assert_int_equal(back->sequences[0], 3);
    assert_int_equal(back->sequences[1], 4);
    told *idle = subscribe(r, 4);
    assert_int_equal(idle->event_count, 0);
    told *liar = subscribe(r, 999);
    assert_int_equal(liar->event_count, 1);
    assert_holds(liar->events[0], "{\"task\":");
    rig_complete(r, r->held);
    assert_int_equal(idle->event_count, 1);
    assert_int_equal(idle->ended, 1);
    /* After the end: what was missed, and only by who missed something. */
    told *late = subscribe(r, 3);
    assert_int_equal(late->event_count, 2);
    assert_int_equal(late->sequences[0], 4);
    assert_true(late->is_last[1]);
    assert_int_equal(late->ended, 1);
    told *done = subscribe(r, 5);
    assert_failed(done, A2A_E_UNSUPPORTED_OPERATION);
    told *none = subscribe(r, 0);
    assert_failed(none, A2A_E_UNSUPPORTED_OPERATION);
    told_free(first);
    told_free(back);
    told_free(idle);
    told_free(liar);
    told_free(late);
    told_free(done);
    told_free(none);
    rig_free(r);
}

/* What nobody could come back for is not kept; a later reader begins with the task. */
static void begins_late(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *send = rig_send(r, RIG_MESSAGE("m", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    told *call = subscribe(r, 1);
    assert_int_equal(call->event_count, 1);
    assert_holds(call->events[0], "{\"task\":");
    assert_int_equal(call->sequences[0], 2);
    told *cancel = rig_ask(r, A2A_CANCEL_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_int_equal(call->event_count, 2);
    assert_holds(call->events[1], "TASK_STATE_CANCELED");
    assert_true(call->is_last[1]);
    assert_int_equal(call->ended, 1);
    a2a_turn_end(r->held);
    told_free(send);
    told_free(call);
    told_free(cancel);
    rig_free(r);
}

static void bounds_what_all_tasks_keep(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.replay_total_bytes = 1;
    r->options.limits.subscribers = 1;
    rig_open(r);
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    assert_int_equal(first->event_count, 3); /* told although nothing is kept */
    assert_refused(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_BUSY);
    rig_leave(first);
    told *back = subscribe(r, 2);
    assert_int_equal(back->event_count, 1);
    assert_holds(back->events[0], "{\"task\":");
    rig_close(r);
    assert_failed(back, A2A_E_UNAVAILABLE);
    told_free(first);
    told_free(back);
    rig_free(r);
}

/* A stream's caller that left before it heard anything asks again. */
static void sends_again_to_a_stream(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    rig_leave(first);
    told *again = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(r->turns, 1);
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(again->event_count, 2);
    told *other = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(r->turns, 2); /* the one before was answered */
    told_free(first);
    rig_close(r);
    assert_int_equal(again->ended, 1);
    assert_int_equal(other->ended, 1);
    told_free(again);
    told_free(other);
    rig_free(r);
}

/* The same message again, now as a stream, after a call that nobody kept events for. */
static void sends_again_as_a_stream(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("m", ""));
    rig_leave(first);
    told *again = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(r->turns, 1);
    assert_int_equal(again->ended, 0);
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(again->event_count, 2);
    assert_holds(again->events[0], "{\"task\":");
    rig_complete(r, r->held);
    assert_int_equal(again->event_count, 3);
    assert_int_equal(again->ended, 1);
    told_free(first);
    told_free(again);
    rig_free(r);
}

/* What was asked while nobody listened is told, and nothing comes behind it before it is answered.
 */
static void sends_again_after_a_question(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    rig_leave(first);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    a2a_turn_end(r->held);
    told *again = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(r->turns, 1);
    assert_int_equal(again->event_count, 1);
    assert_holds(again->events[0], "which?");
    assert_int_equal(again->ended, 1);
    assert_int_equal(again->fault.error, A2A_NO_ERROR);
    told_free(first);
    told_free(again);
    rig_free(r);
}

/* Streams of one task are bounded, however they come about. */
static void sends_again_too_often(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.subscribers = 1;
    rig_open(r);
    r->turn = rig_hold;
    told *first = rig_stream(r, RIG_MESSAGE("m", ""));
    told *again = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_failed(again, A2A_E_BUSY);
    assert_int_equal(r->turns, 1);
    assert_int_equal(first->ended, 0);
    told_free(again);
    rig_complete(r, r->held);
    assert_int_equal(first->ended, 1);
    told_free(first);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_again_as_a_stream),
        cmocka_unit_test(sends_again_after_a_question),
        cmocka_unit_test(sends_again_too_often),
        cmocka_unit_test(tells_every_step),
        cmocka_unit_test(begins_with_as_much_history_as_was_asked_for),
        cmocka_unit_test(ends_where_the_client_must_speak),
        cmocka_unit_test(tells_of_its_own_turn),
        cmocka_unit_test(tells_all_the_same),
        cmocka_unit_test(waits_for_slow_readers),
        cmocka_unit_test(ends_what_is_too_far_behind),
        cmocka_unit_test(goes_on_where_it_was_cut),
        cmocka_unit_test(begins_late),
        cmocka_unit_test(bounds_what_all_tasks_keep),
        cmocka_unit_test(sends_again_to_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
