/* The door on the way from MCP to A2A: a skill of a remote agent called as a tool, in each revision
 * and over each transport, is a call of its tool and a message to its agent; both pass the door
 * once, in this order, by the principal who called the tool, and where either is refused nothing
 * reaches the agent. (The way from A2A to MCP and both in a row: test_door_agents.c.) */
#include "support/door_agent.h"

#include "support/door_places.h"

static door_rig rig;
static door_agent agent;

static int rig_set_up(void **state)
{
    char more[200];
    loop *first_loop;
    (void)state;
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(loop_new(&first_loop), BAY_OK); /* libuv keeps what its first loop opens */
    loop_free(first_loop);
    int descriptors = rig_descriptors();
    (void)person("ann"); /* before there are other threads */
    (void)person(DOOR_LINK_CALLER);
    door_agent_open_behind(&agent);
    (void)snprintf(more, sizeof(more), ",'agents':{'far':{'url':'http://127.0.0.1:%u'}}",
                   agent.port);
    door_open_gateway(&rig, more);
    rig.descriptors = descriptors;
    door_seen.effects = &agent.reached;
    return 0;
}

static int rig_tear_down(void **state)
{
    (void)state;
    door_agent_close(&agent);
    door_rig_close(&rig);
    return 0;
}

/* The tool of each place in the table is asked for once in every session. */
static void each_session(bool (*says)(const call_context *call),
                         void (*check)(const door_client *by))
{
    static door_client by;
    int count = 0;
    for (int transport = 0; transport < DOOR_TRANSPORTS; transport++) {
        const mcp_method *method = mcp_method_of(MCP_TOOLS_CALL);
        for (int revision = (int)method->since; revision <= (int)method->until; revision++) {
            door_client_open(&by, transport, &rig.place, (mcp_revision_id)revision, "ann", "{}");
            watch_begin(says);
            (void)door_client_ask(&by, MCP_TOOLS_CALL, "far.echo",
                                  "'name':'far.echo','arguments':{'message':'x'}");
            check(&by);
            door_client_close(&by);
            count++;
        }
    }
    assert_int_equal(count, DOOR_TRANSPORTS * MCP_REVISION_COUNT);
}

static void fail_session(const door_client *by, const char *what)
{
    watch_print();
    fail_msg("%s, %.*s: %s; answered: %s", by->by->name, BAY_STR(by->revision->text), what,
             by->text);
}

static void check_both(const door_client *by, int how_tool, int how_message)
{
    watch_wait_over(2);
    const watched_call *tool = &door_seen.asked.at[0];
    const watched_call *message = &door_seen.asked.at[1];
    if (watch_count(&door_seen.asked) != 2 || watch_count(&door_seen.over) != 2) {
        fail_session(by, "the two do not pass once each");
    }
    if (tool->protocol != CALL_MCP || tool->kind != CALL_TOOL || message->protocol != CALL_A2A ||
        message->kind != CALL_MESSAGE) {
        fail_session(by, "not the calls that were to pass");
    }
    const char *whose = by->by->has_caller ? "program:0::3:ann" : "local:";
    if (strncmp(tool->who, whose, strlen(whose)) != 0 || strcmp(tool->who, message->who) != 0) {
        fail_session(by, "not by who called the tool");
    }
    for (int i = 0; i < 2; i++) {
        const watched_call *over = &door_seen.over.at[i];
        if ((int)over->how != (over->protocol == CALL_MCP ? how_tool : how_message)) {
            fail_session(by, "not the end that it has");
        }
    }
    if (door_seen.was_early) {
        fail_session(by, "the agent was reached before the door was asked");
    }
}

static void check_passed(const door_client *by)
{
    check_both(by, CALL_RESULT, CALL_RESULT);
    if (strstr(by->text, "heard it") == NULL || watch_effects() == door_seen.effects_before) {
        fail_session(by, "the agent was not reached");
    }
}

static void a_skill_as_a_tool_passes_twice(void **state)
{
    (void)state;
    each_session(NULL, check_passed);
}

static void check_refused(const door_client *by)
{
    watch_wait_over(1);
    if (watch_count(&door_seen.asked) != 1 || watch_count(&door_seen.over) != 1 ||
        door_seen.over.at[0].how != CALL_TURNED_AWAY ||
        watch_effects() != door_seen.effects_before ||
        strstr(by->text, "\"isError\":true") == NULL) {
        fail_session(by, "it is not refused once");
    }
}

static void a_refused_tool_sends_no_message(void **state)
{
    (void)state;
    each_session(watch_says_no, check_refused);
}

static bool says_no_to_messages(const call_context *call)
{
    return call->protocol == CALL_MCP;
}

static void check_message_refused(const door_client *by)
{
    check_both(by, CALL_RESULT, CALL_TURNED_AWAY);
    if (watch_effects() != door_seen.effects_before ||
        strstr(by->text, "\"isError\":true") == NULL) {
        fail_session(by, "the message was refused and yet something happened");
    }
}

static void a_refused_message_does_not_reach_the_agent(void **state)
{
    (void)state;
    each_session(says_no_to_messages, check_message_refused);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skill_as_a_tool_passes_twice),
        cmocka_unit_test(a_refused_tool_sends_no_message),
        cmocka_unit_test(a_refused_message_does_not_reach_the_agent),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
