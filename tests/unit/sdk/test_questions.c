/* Questions of handlers to their clients, in both eras: what is asked, what is answered, what
 * cannot be asked, and what becomes of a question when its call ends. */
#include "net/thread.h"
#include "unit/sdk/question_bench.h"

#define NAME_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":["          \
    "\"name\"]}"
#define CALL_T "\"name\":\"t\",\"arguments\":{\"a\":1}"
#define ACCEPT(content) "\"result\":{\"action\":\"accept\",\"content\":" content "}"

/* What the last answer was. */
static struct {
    int runs;
    bay_err err;
    bay_action action;
    char name[64];
    char content[256];
    char text[256];
    char json[512];
    char root[64];
    size_t roots;
    bool was_cancelled;
} seen;

static void keep_text(char *at, size_t size, bay_str text)
{
    (void)snprintf(at, size, "%.*s", BAY_STR(text));
}

static void see(bay_call *call, const bay_answer *answer)
{
    seen.runs++;
    seen.err = bay_answer_error(answer);
    seen.action = bay_answer_action(answer);
    keep_text(seen.name, sizeof(seen.name), bay_answer_str(answer, "name"));
    keep_text(seen.content, sizeof(seen.content), bay_answer_content(answer));
    keep_text(seen.text, sizeof(seen.text), bay_answer_text(answer));
    keep_text(seen.json, sizeof(seen.json), bay_answer_json(answer));
    seen.roots = bay_answer_root_count(answer);
    keep_text(seen.root, sizeof(seen.root), bay_answer_root(answer, seen.roots - 1));
    seen.was_cancelled = bay_call_is_cancelled(call);
}

static void greet(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    if (bay_answer_action(answer) == BAY_ACCEPT) {
        bay_str name = bay_answer_str(answer, "name");
        bay_call_replyf(call, "Hello, %.*s!", BAY_STR(name));
    } else {
        bay_call_fail(call, bay_err_text(bay_answer_error(answer)));
    }
}

static void ask_name(bay_call *call, void *user)
{
    (void)user;
    bay_call_key(call, "user_name");
    bay_call_elicit(call, "What is your \"name\"?", NAME_SCHEMA, greet, NULL);
}

static void start(rig *on, bay_handler handler, bool is_blocking, const char *revision,
                  const char *capabilities)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool(server, "t", NULL, NULL, handler, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    memset(&seen, 0, sizeof(seen));
    rig_start(on, server);
    rig_client_with(on, revision, capabilities);
}

/* ---- sessions */

static void a_session_is_asked_and_answers(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        start(&on, ask_name, blocking == 1, "2025-06-18", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        int at = 1;
        RIG_UNTIL(&on, on.way.events == at + 1);
        assert_has(on.way.event[at],
                   "\"method\":\"elicitation/create\",\"params\":{\"message\":"
                   "\"What is your \\\"name\\\"?\",\"requestedSchema\":" NAME_SCHEMA "}}");
        assert_int_equal(on.server->calls_under_way, 1);
        answer_event(&on, at, ACCEPT("{\"name\":\"Al\\u0069ce\"}"));
        RIG_UNTIL(&on, on.way.events == at + 2);
        assert_has(last_event(&on.way), "\"text\":\"Hello, Alice!\"");
        assert_int_equal(seen.runs, 1);
        assert_int_equal(seen.err, BAY_OK);
        assert_string_equal(seen.content, "{\"name\":\"Al\\u0069ce\"}");
        assert_has(seen.json, "\"action\":\"accept\"");
        assert_int_equal(on.server->calls_under_way, 0);
        rig_stop(&on);
    }
}

static void a_client_is_asked_by_rounds(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        start(&on, ask_name, blocking == 1, "2026-07-28", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        RIG_UNTIL(&on, on.way.events == 1);
        const char *said = last_event(&on.way);
        assert_has(said, "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
                         "\"user_name\":{\"method\":\"elicitation/create\",\"params\":{");
        assert_int_equal(seen.runs, 0);
        assert_int_equal(on.server->calls_under_way, 0);
        char params[4096];
        (void)snprintf(params, sizeof(params),
                       CALL_T ",\"requestState\":\"%s\",\"inputResponses\":{\"user_name\":{"
                              "\"action\":\"accept\",\"content\":{\"name\":\"Bob\"}}}",
                       state_in(said));
        rig_send(&on, "tools/call", params, "");
        RIG_UNTIL(&on, on.way.events == 2);
        assert_has(last_event(&on.way), "\"text\":\"Hello, Bob!\"");
        assert_has(last_event(&on.way), "\"resultType\":\"complete\"");
        assert_int_equal(seen.runs, 1);
        rig_stop(&on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_asked_and_answers),
        cmocka_unit_test(a_client_is_asked_by_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
