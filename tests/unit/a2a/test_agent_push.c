/* Webhooks: their configurations, and what the push sender is given. */
#include "agent_rig.h"

static rig *with_task(void)
{
    rig *r = rig_new();
    r->turn = rig_hold;
    told *call = rig_send(r, "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{"
                             "\"text\":\"hi\"}]},\"configuration\":{\"returnImmediately\":true}}");
    assert_answered(call);
    told_free(call);
    return r;
}

static void refuses_bad_ones(void **state)
{
    rig *r = with_task();
    (void)state;
    assert_refused(r, A2A_CREATE_PUSH_CONFIG, "{\"taskId\":\"none\",\"url\":\"https://x\"}",
                   A2A_E_TASK_NOT_FOUND);
    assert_refused(r, A2A_CREATE_PUSH_CONFIG, "{\"taskId\":\"" TASK_1 "\"}", A2A_E_INVALID_PARAMS);
    r->url_says = BAY_ERR_DENIED;
    assert_refused(r, A2A_CREATE_PUSH_CONFIG,
                   "{\"taskId\":\"" TASK_1 "\",\"url\":\"https://localhost\"}",
                   A2A_E_INVALID_PARAMS);
    assert_refused(
        r, A2A_SEND_MESSAGE,
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"taskPushNotificationConfig\":{\"url\":\"https://localhost\"}}}",
        A2A_E_INVALID_PARAMS);
    assert_int_equal(r->turns, 1);
    r->url_says = BAY_OK;
    assert_refused(r, A2A_GET_PUSH_CONFIG, "{\"taskId\":\"" TASK_1 "\",\"id\":\"x\"}",
                   A2A_E_TASK_NOT_FOUND);
    rig_free(r);
}

static void keeps_configurations(void **state)
{
    rig *r = with_task();
    char params[300];
    (void)state;
    told *made = rig_ask(r, A2A_CREATE_PUSH_CONFIG,
                         "{\"taskId\":\"" TASK_1 "\",\"url\":\"https://x\",\"token\":\"secret\"}");
    assert_answered(made);
    assert_holds(made->result,
                 "{\"id\":\"00000000-0000-4000-8000-000000000003\",\"taskId\":\"" TASK_1
                 "\",\"url\":\"https://x\",\"token\":\"secret\"}");
    told *got =
        rig_ask(r, A2A_GET_PUSH_CONFIG,
                "{\"taskId\":\"" TASK_1 "\",\"id\":\"00000000-0000-4000-8000-000000000003\"}");
    assert_string_equal(got->result, made->result);
    told_free(got);
    /* Callers of 0.x name none, which their form reads as the task's id. */
    got = rig_ask(r, A2A_GET_PUSH_CONFIG, "{\"taskId\":\"" TASK_1 "\",\"id\":\"" TASK_1 "\"}");
    assert_string_equal(got->result, made->result);
    told_free(got);
    /* The same id replaces. */
    told *again = rig_ask(r, A2A_CREATE_PUSH_CONFIG,
                          "{\"taskId\":\"" TASK_1 "\",\"id\":"
                          "\"00000000-0000-4000-8000-000000000003\",\"url\":\"https://y\"}");
    assert_answered(again);
    told_free(again);
    told_free(made);
    made = rig_ask(r, A2A_CREATE_PUSH_CONFIG,
                   "{\"taskId\":\"" TASK_1 "\",\"id\":\"two\",\"url\":\"https://z\"}");
    told *listed = rig_ask(r, A2A_LIST_PUSH_CONFIGS, "{\"taskId\":\"" TASK_1 "\"}");
    rig_format(params, sizeof(params),
               "{\"configs\":[{\"id\":\"00000000-0000-4000-8000-000000000003\",\"taskId\":\"%s\","
               "\"url\":\"https://y\"},%s]}",
               TASK_1, made->result);
    assert_string_equal(listed->result, params);
    told_free(listed);
    told_free(made);
    for (int i = 0; i < 2; i++) { /* twice is no error */
        told *gone =
            rig_ask(r, A2A_DELETE_PUSH_CONFIG,
                    "{\"taskId\":\"" TASK_1 "\",\"id\":\"00000000-0000-4000-8000-000000000003\"}");
        assert_answered(gone);
        assert_string_equal(gone->result, "{}");
        told_free(gone);
    }
    listed = rig_ask(r, A2A_LIST_PUSH_CONFIGS, "{\"taskId\":\"" TASK_1 "\"}");
    assert_lacks(listed->result, "https://y");
    assert_holds(listed->result, "https://z");
    told_free(listed);
    /* Older versions name none, and mean the same one. */
    for (int i = 0; i < 2; i++) {
        told *old = rig_call(r, A2A_CREATE_PUSH_CONFIG,
                             "{\"taskId\":\"" TASK_1 "\",\"url\":\"https://old\"}");
        old->call.version = A2A_0_3;
        rig_start(old);
        assert_holds(old->result, "{\"id\":\"" TASK_1 "\"");
        told_free(old);
    }
    listed = rig_ask(r, A2A_LIST_PUSH_CONFIGS, "{\"taskId\":\"" TASK_1 "\"}");
    assert_int_equal(strlen(strstr(listed->result, "https://old")), strlen("https://old\"}]}"));
    told_free(listed);
    got = rig_ask(r, A2A_GET_PUSH_CONFIG, "{\"taskId\":\"" TASK_1 "\"}");
    assert_holds(got->result, "https://z");
    told_free(got);
    rig_free(r);
}

static void bounds_them(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.limits.push_configs = 1;
    rig_open(r);
    r->turn = rig_hold;
    told *call = rig_stream(r, RIG_MESSAGE("m", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    told *one = rig_ask(r, A2A_CREATE_PUSH_CONFIG,
                        "{\"taskId\":\"" TASK_1 "\",\"id\":\"1\",\"url\":\"https://x\"}");
    assert_answered(one);
    assert_refused(r, A2A_CREATE_PUSH_CONFIG,
                   "{\"taskId\":\"" TASK_1 "\",\"id\":\"2\",\"url\":\"https://x\"}", A2A_E_BUSY);
    rig_leave(call);
    told_free(call);
    told_free(one);
    rig_free(r);
}

static void gives_every_event_to_the_push_sender(void **state)
{
    rig *r = rig_new();
    (void)state;
    r->turn = rig_hold;
    told *call = rig_send(
        r,
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"taskPushNotificationConfig\":{\"id\":\"c\",\"url\":\"https://x\"}}}");
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    assert_int_equal(r->pushes, 2);
    assert_holds(r->pushed[0], "program:0::3:ann|0|{\"id\":\"c\",\"taskId\":\"" TASK_1
                               "\",\"url\":\"https://x\"}|{\"task\":{");
    assert_holds(r->pushed[1], "|{\"statusUpdate\":{");
    assert_int_equal(r->pushed[1][strlen(r->pushed[1]) - 1], '|'); /* 1.0 needs no task */
    told *old = rig_call(r, A2A_CREATE_PUSH_CONFIG,
                         "{\"taskId\":\"" TASK_1 "\",\"id\":\"o\",\"url\":\"https://old\"}");
    old->call.version = A2A_0_3;
    rig_start(old);
    told_free(old);
    rig_complete(r, r->held);
    assert_int_equal(r->pushes, 4);
    assert_holds(r->pushed[3], "program:0::3:ann|1|{\"id\":\"o\"");
    assert_holds(r->pushed[3], "|task");
    assert_answered(call);
    told_free(call);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_ones),
        cmocka_unit_test(keeps_configurations),
        cmocka_unit_test(bounds_them),
        cmocka_unit_test(gives_every_event_to_the_push_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
