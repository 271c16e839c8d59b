/* Each allocation of a session with questions fails in turn, in both eras, on the loop, on the pool
 * and from a thread of the program: every request gets one answer, every call ends, and everything
 * is given back. */
#include "net/thread.h"
#include "support/failing_memory.h"
#include "unit/sdk/question_bench.h"

#define FORM                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"pattern\":\"^a\"}}}"
#define NAME "{\"action\":\"accept\",\"content\":{\"name\":\"al\"}}"
#define SAMPLE                                                                                     \
    "{\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"t\"},{"    \
    "\"type\":\"text\",\"text\":\"\\u0041\"}]}"

static bay_call *deferred;

static void sampled(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str text = bay_answer_text(answer);
    bay_call_replyf(call, "%.*s %s", BAY_STR(text), bay_err_text(bay_answer_error(answer)));
}

static void named(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str name = bay_answer_str(answer, "name");
    bay_call_remember(call, name.at, name.len);
    bay_call_sample(call, "hi", 5, sampled, NULL);
}

static void ask(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "name");
    bay_call_elicit_schema(call, "Who?", FORM, named, NULL);
}

static void defer(bay_call *call, void *user)
{
    (void)user;
    deferred = bay_call_defer(call);
}

static void ask_elsewhere(void *argument)
{
    ask(argument, NULL);
}

static bay_server *set_up(void)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "ask", NULL, NULL, ask, NULL);
    bay_tool_blocking(bay_server_tool_schema(server, "block", NULL, NULL, ask, NULL));
    bay_server_tool_schema(server, "defer", NULL, NULL, defer, NULL);
    bay_server_prompt(server, "ask", NULL, NULL, ask, NULL);
    bay_diag diag = {0};
    if (bay_server_check(server, &diag) != BAY_OK) {
        assert_int_equal(diag.code, BAY_ERR_NOMEM);
        bay_server_free(server);
        return NULL;
    }
    return server;
}

/* Answers since then to the request that was sent last; one that could not even be read has no id.
 */
static int answers(const rig *on, int events)
{
    char id[32];
    int count = 0;
    (void)snprintf(id, sizeof(id), "\"id\":%d,", on->next_id);
    for (int i = events; i < on->way.events; i++) {
        bool is_lost = strstr(on->way.event[i], "\"id\":null,") != NULL &&
                       strstr(on->way.event[i], "Out of memory") != NULL;
        count += is_lost || strstr(on->way.event[i], id) != NULL;
    }
    return count;
}

/* Until nothing goes on by itself: the client is to answer, or the call is over. */
static void settle(rig *on, int events)
{
    for (int i = 0; i < 200 && on->way.events == events && on->server->calls_under_way > 0; i++) {
        loop_turn(on->loop, 1);
    }
    for (int i = 0; i < 20; i++) {
        loop_turn(on->loop, 0);
    }
}

/* A call that is deferred is asked about from a thread; its answers end it. */
static void use_deferred(rig *on, int events)
{
    net_thread thread;
    if (deferred == NULL) {
        return;
    }
    bay_call *call = deferred;
    deferred = NULL;
    assert_int_equal(net_thread_start(&thread, ask_elsewhere, call), BAY_OK);
    net_thread_join(&thread);
    settle(on, events);
}

/* False: the client waits in vain. */
static bool one_call(rig *on, const char *method, const char *params)
{
    char next[8192];
    bool is_over = false;
    (void)snprintf(next, sizeof(next), "%s", params);
    for (int round = 0; round < 6 && !is_over; round++) {
        int events = on->way.events;
        rig_send(on, method, next, "");
        if (deferred == NULL) {
            settle(on, events);
        }
        use_deferred(on, events);
        for (int at = events; at < on->way.events; at++) { /* a session's client is asked */
            const char *said = on->way.event[at];
            if (strstr(said, "\"method\":\"elicitation/create\",") != NULL && !rig_is_modern(on)) {
                answer_event(on, at, "\"result\":" NAME);
                settle(on, at + 1);
            } else if (strstr(said, "\"method\":\"sampling/createMessage\",") != NULL &&
                       !rig_is_modern(on)) {
                answer_event(on, at, "\"result\":" SAMPLE);
                settle(on, at + 1);
            }
        }
        /* What the client answered may be lost on its way in: then the client hangs up. */
        if (on->server->calls_under_way > 0) {
            return false;
        }
        assert_int_equal(answers(on, events), 1);
        const char *last = last_event(&on->way);
        is_over = strstr(last, "input_required") == NULL;
        if (!is_over) {
            (void)snprintf(next, sizeof(next),
                           "%s,\"inputResponses\":{\"name\":" NAME ",\"2\":" SAMPLE
                           "},\"requestState\":\"%s\"",
                           params, state_in(last));
        }
    }
    assert_true(is_over);
    return true;
}

static bool open_client(rig *on, const char *revision)
{
    wire_init(&on->way, &on->on);
    if (mcp_connection_open(on->server->engine, &on->way.carrier, &on->way.connection) != BAY_OK) {
        return false;
    }
    on->revision = revision;
    on->capabilities = EVERY_QUESTION;
    if (!rig_is_modern(on)) {
        rig_say(on, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{" EVERY_QUESTION
                    "},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}");
        rig_say(on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    }
    return true;
}

static void fail_each(const char *revision)
{
    static const char *const calls[][2] = {
        {"tools/call", "\"name\":\"ask\",\"arguments\":{\"a\":[1]}"},
        {"prompts/get", "\"name\":\"ask\""},
        {"tools/call", "\"name\":\"defer\""},
        {"tools/call", "\"name\":\"block\""},
    };
    size_t whole = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        deferred = NULL;
        bay_server *server = set_up();
        if (server != NULL && rig_try_start(&on, server)) {
            if (open_client(&on, revision)) {
                size_t i = 0;
                while (i < ARRAY_LEN(calls) && one_call(&on, calls[i][0], calls[i][1])) {
                    i++;
                }
                whole += i == ARRAY_LEN(calls);
            }
            rig_stop(&on);
        }
        failing_memory_check();
    }
    assert_true(whole > 20);
}

static void a_session_survives_without_memory(void **state)
{
    (void)state;
    fail_each("2025-11-25");
}

static void rounds_survive_without_memory(void **state)
{
    (void)state;
    fail_each("2026-07-28");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_survives_without_memory),
        cmocka_unit_test(rounds_survive_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
