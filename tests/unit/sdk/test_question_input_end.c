/* Questions to a client that closed its end of the pipes: it still reads, but will never answer. */
#include "unit/sdk/sdk_bench.h"

static const char form[] = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}";

static int given_up;

static void give_up(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    assert_int_equal(bay_answer_action(answer), BAY_ACTION_NONE);
    assert_int_equal(bay_answer_error(answer), BAY_ERR_CLOSED);
    assert_false(bay_call_is_cancelled(call));
    given_up++;
    bay_call_fail(call, "nobody answers");
}

static void insist(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    assert_int_equal(bay_answer_error(answer), BAY_ERR_CLOSED);
    bay_call_elicit_schema(call, "Really not?", form, give_up, NULL);
}

static void ask_and_insist(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_schema(call, "What is your name?", form, insist, NULL);
}

static void start(rig *on, bool is_blocking)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, ask_and_insist, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    given_up = 0;
    rig_start(on, server);
    rig_client_with(on, "2025-06-18", "\"elicitation\":{}");
}

static void the_end_of_the_input_ends_the_question(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        start(&on, blocking == 1);
        rig_send(&on, "tools/call", "\"name\":\"t\"", "");
        RIG_UNTIL(&on, on.way.events == 2);
        mcp_connection_input_ended(on.way.connection);
        mcp_connection_input_ended(on.way.connection);
        RIG_UNTIL(&on, on.server->calls_under_way == 0);
        assert_int_equal(on.way.events, 3); /* it was not asked again */
        assert_has(last_event(&on.way), "\"isError\":true");
        assert_int_equal(given_up, 1);
        rig_stop(&on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_the_input_ends_the_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
