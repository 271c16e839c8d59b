/* Messages that an agent gets: what is refused, blocking and at once, answers that are messages,
 * several turns, messages that come again. */
#include "agent_rig.h"

/* ---- what is refused */

static void refuses_what_is_not_allowed(void **state)
{
    rig *r = rig_new();
    (void)state;
    assert_refused(r, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ",\"taskId\":\"nobody\""),
                   A2A_E_TASK_NOT_FOUND);
    assert_refused(r, A2A_SEND_MESSAGE,
                   "{\"message\":{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
                   "\"x\",\"mediaType\":\"image/png\"}]}}",
                   A2A_E_CONTENT_TYPE_NOT_SUPPORTED);
    assert_refused(r, A2A_SEND_MESSAGE,
                   "{\"message\":{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[]},"
                   "\"configuration\":{\"historyLength\":-1}}",
                   A2A_E_INVALID_PARAMS);
    told *said = rig_ask(r, A2A_SEND_MESSAGE,
                         "{\"message\":{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[]},"
                         "\"configuration\":{\"historyLength\":-1}}");
    assert_string_equal(said->fault.text, "configuration.historyLength: must not be negative");
    told_free(said);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"x\"}", A2A_E_TASK_NOT_FOUND);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"x\",\"historyLength\":-1}", A2A_E_INVALID_PARAMS);
    assert_refused(r, A2A_CANCEL_TASK, "{\"id\":\"x\"}", A2A_E_TASK_NOT_FOUND);
    assert_refused(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"x\"}", A2A_E_TASK_NOT_FOUND);
    assert_refused(r, A2A_GET_EXTENDED_CARD, "{}", A2A_E_EXTENDED_CARD_NOT_CONFIGURED);
    assert_int_equal(r->turns, 0);
    char id[300];
    char text[500];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    rig_format(text, sizeof(text),
               "{\"message\":{\"messageId\":\"%s\",\"role\":\"ROLE_USER\",\"parts\":[]}}", id);
    assert_refused(r, A2A_SEND_MESSAGE, text, A2A_E_INVALID_PARAMS);
    rig_free(r);
}

static void refuses_what_the_card_lacks(void **state)
{
    static const char card[] = "{\"capabilities\":{\"extensions\":[{\"uri\":\"urn:a\","
                               "\"required\":true},{\"uri\":\"urn:b\"}]}}";
    rig *r = rig_plain();
    (void)state;
    r->options.card = literal_json(card);
    rig_open(r);
    assert_refused(r, A2A_SEND_STREAMING_MESSAGE, RIG_MESSAGE("1", ""),
                   A2A_E_UNSUPPORTED_OPERATION);
    assert_refused(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"1\"}", A2A_E_UNSUPPORTED_OPERATION);
    assert_refused(r, A2A_LIST_PUSH_CONFIGS, "{\"taskId\":\"1\"}", A2A_E_PUSH_NOT_SUPPORTED);
    assert_refused(r, A2A_GET_EXTENDED_CARD, "{}", A2A_E_UNSUPPORTED_OPERATION);
    assert_refused(r, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ""), A2A_E_EXTENSION_SUPPORT_REQUIRED);
    told *call = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ""));
    call->call.extensions = STR("urn:aa, urn:b");
    rig_start(call);
    assert_failed(call, A2A_E_EXTENSION_SUPPORT_REQUIRED);
    told_free(call);
    call = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ""));
    call->call.extensions = STR("urn:b, urn:a");
    rig_start(call);
    assert_answered(call);
    told_free(call);
    call = rig_call(
        r, A2A_SEND_MESSAGE,
        "{\"message\":{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]},"
        "\"configuration\":{\"taskPushNotificationConfig\":{\"url\":\"https://x\"}}}");
    call->call.extensions = STR("urn:a");
    rig_start(call);
    assert_failed(call, A2A_E_PUSH_NOT_SUPPORTED);
    told_free(call);
    assert_int_equal(a2a_agent_set_card(r->agent, literal_json("[]"), STR("")), BAY_ERR_INVALID);
    assert_int_equal(a2a_agent_set_card(r->agent,
                                        literal_json("{\"capabilities\":{\"extendedAgentCard\":"
                                                     "true}}"),
                                        STR("{\"name\":\"more\"}")),
                     BAY_OK);
    call = rig_ask(r, A2A_GET_EXTENDED_CARD, "{}");
    assert_answered(call);
    assert_string_equal(call->result, "{\"name\":\"more\"}");
    told_free(call);
    rig_free(r);
}

/* ---- what is answered */

static void answers_with_the_completed_task(void **state)
{
    rig *r = rig_new();
    (void)state;
    told *call = rig_send(r, RIG_MESSAGE("m", ",\"contextId\":\"mine\""));
    assert_answered(call);
    assert_string_equal(
        call->result,
        "{\"task\":{\"id\":\"" TASK_1 "\",\"contextId\":\"mine\",\"status\":{\"state\":"
        "\"TASK_STATE_COMPLETED\",\"message\":{\"messageId\":\"" CONTEXT_1 "\",\"taskId\":\"" TASK_1
        "\",\"contextId\":\"mine"
        "\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"done\"}]},\"timestamp\":"
        "\"2023-11-14T22:13:20.000Z\"},\"history\":[{\"taskId\":\"" TASK_1
        "\",\"contextId\":\"mine\",\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":"
        "[{\"text\":\"hi\"}]},{\"messageId\":\"" CONTEXT_1 "\",\"taskId\":\"" TASK_1
        "\",\"contextId\":\"mine\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"done\"}]}]}}");
    told_free(call);
    /* How much history. */
    call = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\",\"historyLength\":1}");
    assert_answered(call);
    assert_holds(call->result, "\"history\":[{\"messageId\":\"" CONTEXT_1);
    assert_lacks(call->result, "ROLE_USER");
    told_free(call);
    call = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\",\"historyLength\":0}");
    assert_lacks(call->result, "history");
    told_free(call);
    call = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\",\"historyLength\":2147483647}");
    assert_holds(call->result, "ROLE_USER");
    told_free(call);
    /* It has ended. */
    assert_refused(r, A2A_SEND_MESSAGE, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""),
                   A2A_E_UNSUPPORTED_OPERATION);
    assert_refused(r, A2A_CANCEL_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_CANCELABLE);
    assert_refused(r, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"" TASK_1 "\"}",
                   A2A_E_UNSUPPORTED_OPERATION);
    rig_free(r);
}

static void hides_what_is_anothers(void **state)
{
    static const a2a_method methods[] = {
        A2A_GET_TASK,        A2A_CANCEL_TASK,       A2A_SUBSCRIBE_TO_TASK, A2A_CREATE_PUSH_CONFIG,
        A2A_GET_PUSH_CONFIG, A2A_LIST_PUSH_CONFIGS, A2A_DELETE_PUSH_CONFIG};
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_send(r, "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{"
                             "\"text\":\"hi\"}]},\"configuration\":{\"returnImmediately\":true}}");
    assert_answered(call);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        told *other =
            rig_call(r, methods[i],
                     "{\"id\":\"" TASK_1 "\",\"taskId\":\"" TASK_1 "\",\"url\":\"https://x\"}");
        told *missing =
            rig_call(r, methods[i], "{\"id\":\"none\",\"taskId\":\"none\",\"url\":\"https://x\"}");
        other->call.principal = person("bob");
        rig_start(other);
        rig_start(missing);
        assert_failed(other, A2A_E_TASK_NOT_FOUND);
        assert_failed(missing, A2A_E_TASK_NOT_FOUND);
        assert_string_equal(other->fault.text, missing->fault.text);
        told_free(other);
        told_free(missing);
    }
    told *other = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    other->call.principal = person("bob");
    rig_start(other);
    assert_failed(other, A2A_E_TASK_NOT_FOUND);
    told_free(other);
    told_free(call);
    rig_free(r);
}

static void answer_ann(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(rig_reply(turn, "hello"), BAY_OK);
    assert_int_equal(rig_reply(turn, "twice"), BAY_ERR_STATE);
    assert_int_equal(rig_status(turn, A2A_WORKING, NULL), BAY_ERR_STATE);
    a2a_turn_end(turn);
}

static void answers_with_a_message(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = answer_ann;
    told *call = rig_send(r, RIG_MESSAGE("m", ""));
    assert_answered(call);
    assert_string_equal(call->result,
                        "{\"message\":{\"messageId\":\"00000000-0000-4000-8000-000000000003\","
                        "\"contextId\":\"" CONTEXT_1
                        "\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"hello\"}]}}");
    told_free(call);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_FOUND);
    call = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(call->ended, 1);
    assert_int_equal(call->event_count, 1);
    assert_true(call->is_last[0]);
    assert_holds(call->events[0], "{\"message\":{");
    told_free(call);
    rig_free(r);
}

static void move_strangely(rig *r, a2a_turn *turn)
{
    json_doc doc;
    arena memory;
    (void)r;
    json_val bad = rig_json("{\"parts\":[{\"text\":\"a\",\"url\":\"b\"}]}", &doc, &memory);
    assert_int_equal(a2a_turn_status(turn, A2A_WORKING, bad, JSON_NONE), BAY_ERR_INVALID);
    assert_int_equal(a2a_turn_reply(turn, bad), BAY_ERR_INVALID);
    assert_int_equal(a2a_turn_artifact(turn, bad, false, false), BAY_ERR_INVALID);
    arena_fini(&memory);
    bad = rig_json("{\"parts\":[]}", &doc, &memory);
    assert_int_equal(a2a_turn_reply(turn, bad), BAY_ERR_INVALID);
    assert_int_equal(a2a_turn_status(turn, A2A_WORKING, JSON_NONE, json_get(bad, STR("parts"))),
                     BAY_ERR_INVALID);
    arena_fini(&memory);
    assert_int_equal(rig_status(turn, A2A_STATE_UNSPECIFIED, NULL), BAY_ERR_STATE);
    assert_int_equal(rig_status(turn, A2A_STATES, NULL), BAY_ERR_STATE);
    assert_int_equal(rig_artifact(turn, "a", "x", true, false), BAY_ERR_INVALID);
    assert_int_equal(rig_artifact(turn, "a", "x", false, false), BAY_OK);
    assert_int_equal(rig_reply(turn, "late"), BAY_ERR_STATE);
    assert_int_equal(rig_artifact(turn, "a", "y", true, true), BAY_OK);
    assert_int_equal(rig_artifact(turn, "a", "z", true, false), BAY_ERR_STATE);
    assert_int_equal(rig_artifact(turn, "b", "z", false, false), BAY_OK);
    assert_int_equal(rig_artifact(turn, "b", "only", false, false), BAY_OK);
    a2a_turn_end(turn);
    assert_int_equal(rig_status(turn, A2A_WORKING, NULL), BAY_ERR_STATE);
    a2a_turn_end(turn);
}

static void say_badly(rig *r, a2a_turn *turn)
{
    char *large = calloc(1, A2A_PART_BYTES + 1);
    bay_str too_long = {large, A2A_PART_BYTES + 1};
    (void)r;
    assert_non_null(large);
    assert_int_equal(a2a_turn_status_text(turn, A2A_WORKING, too_long), BAY_ERR_INVALID);
    assert_int_equal(a2a_turn_reply_text(turn, too_long), BAY_ERR_INVALID);
    free(large);
    assert_int_equal(a2a_turn_status_text(turn, A2A_STATES, STR("x")), BAY_ERR_STATE);
    assert_int_equal(a2a_turn_status_text(turn, A2A_WORKING, STR("a\"\xff")), BAY_OK);
    assert_int_equal(a2a_turn_reply_text(turn, STR("late")), BAY_ERR_STATE);
    assert_int_equal(a2a_turn_status_text(turn, A2A_COMPLETED, (bay_str){NULL, 0}), BAY_OK);
    a2a_turn_end(turn);
    assert_int_equal(a2a_turn_status_text(turn, A2A_COMPLETED, STR("x")), BAY_ERR_STATE);
    assert_int_equal(a2a_turn_reply_text(turn, STR("x")), BAY_ERR_STATE);
}

static void complete_by_text(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(a2a_turn_status_text(turn, A2A_COMPLETED, STR("done")), BAY_OK);
    a2a_turn_end(turn);
}

static void complete_by_message(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(rig_status(turn, A2A_COMPLETED, "done"), BAY_OK);
    a2a_turn_end(turn);
}

static void reply_by_text(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(a2a_turn_reply_text(turn, STR("done")), BAY_OK);
    a2a_turn_end(turn);
}

static void reply_by_message(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(rig_reply(turn, "done"), BAY_OK);
    a2a_turn_end(turn);
}

/* What it answers, in an agent of its own: ids and times are the same in each. */
static told *answer_of(void (*turn)(rig *r, a2a_turn *turn))
{
    rig *r = rig_new();
    r->turn = turn;
    told *call = rig_send(r, RIG_MESSAGE("m", ""));
    assert_answered(call);
    rig_free(r);
    return call;
}

static void takes_a_text_for_a_message(void **state)
{
    (void)state;
    told *call = answer_of(say_badly);
    assert_holds(call->result, "\"parts\":[{\"text\":\"a\\\"\xef\xbf\xbd\"}]");
    assert_holds(call->result, "\"parts\":[{\"text\":\"\"}]");
    told_free(call);
    told *by_text = answer_of(complete_by_text);
    told *by_message = answer_of(complete_by_message);
    assert_string_equal(by_text->result, by_message->result);
    told_free(by_text);
    told_free(by_message);
    by_text = answer_of(reply_by_text);
    by_message = answer_of(reply_by_message);
    assert_string_equal(by_text->result, by_message->result);
    told_free(by_text);
    told_free(by_message);
}

static void ends_what_its_handler_left(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = move_strangely;
    told *call = rig_send(r, RIG_MESSAGE("m", ""));
    assert_answered(call);
    assert_holds(call->result, "TASK_STATE_FAILED");
    assert_holds(call->result, "the handler ended without an answer");
    assert_holds(call->result,
                 "\"artifacts\":[{\"artifactId\":\"a\",\"name\":\"n\",\"parts\":[{\"text\":\"x\"},{"
                 "\"text\":\"y\"}]},{\"artifactId\":\"b\",\"name\":\"n\",\"parts\":[{\"text\":"
                 "\"only\"}]}]");
    told_free(call);
    rig_free(r);
}

static void waits_and_asks_back(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(first->ended, 0);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_FOUND);
    assert_true(a2a_turn_is_new(r->held));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(first->ended, 0);
    assert_int_equal(rig_status(r->held, A2A_SUBMITTED, NULL), BAY_ERR_STATE);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    assert_answered(first);
    assert_holds(first->result, "TASK_STATE_INPUT_REQUIRED");
    /* The turn still runs: the next message waits for its end. */
    assert_refused(r, A2A_SEND_MESSAGE,
                   RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\",\"contextId\":\"other\""),
                   A2A_E_INVALID_PARAMS);
    told *second = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    assert_int_equal(second->ended, 0);
    assert_int_equal(r->turns, 1);
    a2a_turn *old = a2a_turn_ref(r->held);
    a2a_turn_end(old);
    assert_int_equal(r->turns, 2);
    assert_int_equal(rig_status(old, A2A_COMPLETED, NULL), BAY_ERR_STATE);
    a2a_turn_unref(old);
    assert_false(a2a_turn_is_new(r->held));
    assert_true(str_eq(a2a_turn_task_id(r->held), STR(TASK_1)));
    assert_true(str_eq(a2a_turn_context_id(r->held), STR(CONTEXT_1)));
    assert_true(a2a_turn_principal(r->held) == person("ann"));
    assert_true(json_str_eq(json_get(a2a_turn_message(r->held), STR("messageId")), STR("2")));
    assert_int_equal(second->ended, 0);
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_holds(get->result, "TASK_STATE_WORKING");
    told_free(get);
    assert_int_equal(rig_status(r->held, A2A_COMPLETED, "done"), BAY_OK);
    assert_answered(second);
    assert_holds(second->result, "TASK_STATE_COMPLETED");
    assert_holds(second->result, "which?");
    a2a_turn_end(r->held);
    told_free(first);
    told_free(second);
    rig_free(r);
}

static void returns_at_once(void **state)
{
    static const char params[] =
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"returnImmediately\":true,\"historyLength\":0}}";
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_send(r, params);
    assert_answered(call);
    assert_holds(call->result, "TASK_STATE_SUBMITTED");
    assert_lacks(call->result, "history");
    assert_int_equal(rig_reply(r->held, "too late"), BAY_ERR_STATE);
    told_free(call);
    r->turn = answer_ann;
    call = rig_send(r, params);
    assert_holds(call->result, "{\"message\":");
    told_free(call);
    rig_free(r);
}

/* ---- cancelling */

static void end_when_canceled(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_true(a2a_turn_is_canceled(turn));
    assert_int_equal(rig_status(turn, A2A_COMPLETED, "no"), BAY_ERR_STATE);
    a2a_turn_end(turn);
}

static void cancels_once(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    for (int ends_inside = 0; ends_inside < 2; ends_inside++) {
        char params[160];
        r->canceled = ends_inside ? end_when_canceled : NULL;
        told *send = rig_send(r, RIG_MESSAGE("1", ""));
        assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
        bay_str id = a2a_turn_task_id(r->held);
        rig_format(params, sizeof(params), "{\"id\":\"%.*s\"}", (int)id.len, id.at);
        told *cancel = rig_ask(r, A2A_CANCEL_TASK, params);
        assert_answered(cancel);
        assert_holds(cancel->result, "{\"id\":");
        assert_holds(cancel->result, "TASK_STATE_CANCELED");
        assert_answered(send);
        assert_holds(send->result, "TASK_STATE_CANCELED");
        assert_int_equal(r->cancels, ends_inside + 1);
        assert_int_equal(rig_status(r->held, A2A_COMPLETED, NULL), BAY_ERR_STATE);
        assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_ERR_STATE);
        assert_refused(r, A2A_CANCEL_TASK, params, A2A_E_TASK_NOT_CANCELABLE);
        a2a_turn_end(r->held);
        told *get = rig_ask(r, A2A_GET_TASK, params);
        assert_holds(get->result, "TASK_STATE_CANCELED");
        told_free(get);
        told_free(send);
        told_free(cancel);
    }
    rig_free(r);
}

/* Messages that wait for a task that ends are not lost without a word. */
static void tells_those_that_wait(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.waiting = 2;
    rig_open(r);
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    told *second = rig_send(r, RIG_MESSAGE("2", ",\"taskId\":\"" TASK_1 "\""));
    told *third = rig_send(r, RIG_MESSAGE("3", ",\"taskId\":\"" TASK_1 "\""));
    assert_refused(r, A2A_SEND_MESSAGE, RIG_MESSAGE("4", ",\"taskId\":\"" TASK_1 "\""), A2A_E_BUSY);
    rig_leave(third);
    assert_failed(third, A2A_E_UNAVAILABLE);
    assert_int_equal(rig_status(r->held, A2A_REJECTED, "no"), BAY_OK);
    assert_answered(first);
    assert_int_equal(second->ended, 1); /* told what became of it */
    assert_int_equal(r->turns, 1);
    a2a_turn_end(r->held);
    assert_int_equal(r->turns, 1);
    told_free(first);
    told_free(second);
    told_free(third);
    rig_free(r);
}

/* ---- the same message again */

static void answers_one_message_once(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    told *again = rig_send(r, RIG_MESSAGE("1", ""));
    told *other = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ""));
    other->call.principal = person("bob");
    assert_int_equal(r->turns, 1);
    rig_complete(r, r->held);
    assert_answered(first);
    assert_answered(again);
    assert_string_equal(first->result, again->result);
    /* Answered: the same bytes are a new message now. */
    told *later = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(r->turns, 2);
    rig_start(other);
    assert_int_equal(r->turns, 3);
    /* Its caller left without an answer: it may come again, for a while. */
    rig_complete(r, r->held);
    told_free(other);
    rig_leave(later);
    assert_failed(later, A2A_E_UNAVAILABLE);
    told *retry = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(r->turns, 3);
    rig_leave(retry);
    told *different = rig_send(r, RIG_MESSAGE("1", ",\"metadata\":{}"));
    assert_int_equal(r->turns, 4);
    rig_leave(different);
    r->now_ms += 600001;
    a2a_agent_tick(r->agent);
    told *too_late = rig_send(r, RIG_MESSAGE("1", ""));
    assert_int_equal(r->turns, 5);
    told_free(first);
    told_free(again);
    told_free(later);
    told_free(retry);
    told_free(different);
    rig_close(r);
    assert_failed(too_late, A2A_E_UNAVAILABLE);
    told_free(too_late);
    rig_free(r);
}

static void takes_ids_of_clients_of_0_1_only(void **state)
{
    static const char params[] =
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"taskId\":\"chosen\",\"parts\":"
        "[{\"text\":\"hi\"}]},\"metadata\":{\"patchbay/clientTaskId\":true}}";
    rig *r = rig_new();
    (void)state;
    assert_refused(r, A2A_SEND_MESSAGE, params, A2A_E_TASK_NOT_FOUND);
    told *call = rig_call(r, A2A_SEND_MESSAGE, params);
    call->call.version = A2A_0_1;
    rig_start(call);
    assert_answered(call);
    assert_holds(call->result, "{\"id\":\"chosen\"");
    told_free(call);
    call = rig_call(r, A2A_SEND_MESSAGE, params);
    call->call.version = A2A_0_1;
    call->call.principal = person("bob");
    rig_start(call);
    assert_failed(call, A2A_E_TASK_NOT_FOUND);
    told_free(call);
    call = rig_call(r, A2A_SEND_MESSAGE, params);
    call->call.version = A2A_0_1;
    rig_start(call);
    assert_failed(call, A2A_E_UNSUPPORTED_OPERATION); /* it has ended */
    told_free(call);
    rig_free(r);
}

/* ---- bounds */

static void holds_its_bounds(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits = (a2a_agent_limits){
        .tasks = 2, .running = 2, .history = 4, .artifacts = 2, .task_bytes = 8192};
    rig_open(r);
    r->turn = rig_hold;
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    a2a_turn *one = a2a_turn_ref(r->held);
    told *second = rig_send(r, RIG_MESSAGE("2", ""));
    assert_refused(r, A2A_SEND_MESSAGE, RIG_MESSAGE("3", ""), A2A_E_BUSY);
    for (int i = 0; i < 20; i++) {
        char words[8];
        assert_int_equal(rig_status(one, A2A_WORKING, rig_format(words, sizeof(words), "w%d", i)),
                         BAY_OK);
    }
    assert_int_equal(rig_artifact(one, "a", "x", false, false), BAY_OK);
    assert_int_equal(rig_artifact(one, "b", "x", false, false), BAY_OK);
    assert_int_equal(rig_artifact(one, "c", "x", false, false), BAY_ERR_LIMIT);
    bay_err err = BAY_OK;
    for (int i = 0; i < 10000 && err == BAY_OK; i++) {
        err = rig_artifact(one, "a", "more and more of it", true, false);
    }
    assert_int_equal(err, BAY_ERR_LIMIT);
    rig_complete(r, one);
    assert_answered(first);
    assert_holds(first->result, "\"history\":[{\"taskId\"");
    assert_holds(first->result, "\"w19\"");
    assert_lacks(first->result, "\"w15\"");
    assert_holds(first->result, "TASK_STATE_COMPLETED");
    /* The oldest one that has ended makes room. */
    r->turn = rig_complete;
    told *third = rig_send(r, RIG_MESSAGE("3", ""));
    assert_answered(third);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_FOUND);
    a2a_turn_unref(one);
    rig_close(r);
    assert_failed(second, A2A_E_UNAVAILABLE);
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_ERR_CLOSED);
    a2a_turn_end(r->held);
    told_free(first);
    told_free(second);
    told_free(third);
    rig_free(r);
}

static void forgets_after_a_while(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.task_ttl_ms = 1000;
    rig_open(r);
    told_free(rig_send(r, RIG_MESSAGE("1", "")));
    assert_true(r->wake_ms == RIG_NOW + 1000);
    r->now_ms += 999;
    a2a_agent_tick(r->agent);
    told *get = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_answered(get);
    told_free(get);
    r->now_ms++;
    a2a_agent_tick(r->agent);
    assert_refused(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}", A2A_E_TASK_NOT_FOUND);
    rig_free(r);
}

/* ---- who is told may call in */

static void send_another(told *self)
{
    self->inner = rig_send(self->of, RIG_MESSAGE("inner", ""));
}

static void may_be_called_while_it_tells(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.tasks = 2;
    rig_open(r);
    told_free(rig_send(r, RIG_MESSAGE("old", "")));
    told *call = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("outer", ""));
    call->on_result = send_another; /* for which the old one has to go */
    rig_start(call);
    assert_answered(call);
    assert_answered(call->inner);
    assert_holds(call->inner->result, "inner");
    told_free(call->inner);
    told_free(call);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_allowed),
        cmocka_unit_test(refuses_what_the_card_lacks),
        cmocka_unit_test(hides_what_is_anothers),
        cmocka_unit_test(answers_with_the_completed_task),
        cmocka_unit_test(answers_with_a_message),
        cmocka_unit_test(takes_a_text_for_a_message),
        cmocka_unit_test(ends_what_its_handler_left),
        cmocka_unit_test(waits_and_asks_back),
        cmocka_unit_test(returns_at_once),
        cmocka_unit_test(cancels_once),
        cmocka_unit_test(tells_those_that_wait),
        cmocka_unit_test(answers_one_message_once),
        cmocka_unit_test(takes_ids_of_clients_of_0_1_only),
        cmocka_unit_test(holds_its_bounds),
        cmocka_unit_test(forgets_after_a_while),
        cmocka_unit_test(may_be_called_while_it_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
