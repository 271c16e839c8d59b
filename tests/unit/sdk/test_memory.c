/* Each allocation of a server's life fails in turn: registration, the lists, a session of each era
 * with calls that end on the loop and on a thread. Each request still gets one answer, nothing
 * crashes, and everything is given back. */
#include "net/thread.h"
#include "support/failing_memory.h"
#include "unit/sdk/sdk_bench.h"

static bay_call *deferred;

static void defer(bay_call *call, void *user)
{
    (void)user;
    deferred = bay_call_defer(call);
}

static void answer(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_call_progress(call, 1, 2, "half");
    bay_call_log(call, "error", "a line");
    bay_result_text_str(result, bay_call_str(call, "a"));
    bay_result_textf(result, "%0300d", 7);
    bay_result_image(result, "abc", 3, "image/png");
    bay_result_audio(result, "abc", 3, "audio/wav");
    bay_result_resource(result, "x:a", NULL, "text");
    bay_result_link(result, "x:a", "a", NULL);
    bay_result_annotate(result, "{\"priority\":1}");
    bay_result_resource_blob(result, "x:a", NULL, "abc", 3);
    bay_result_meta(result, "{\"x.example/a\":1}");
    bay_result_structured(result, "{\"a\":1}");
    bay_call_finish(call, result);
}

static void read_variable(bay_call *call, void *user)
{
    (void)user;
    bay_str value = bay_call_variable(call, "a");
    if (value.at == NULL) {
        bay_call_not_found(call);
        return;
    }
    bay_call_replyf(call, "%.*s %0300d", BAY_STR(value), 7);
}

static void complete(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_value(result, "value");
    bay_call_finish(call, result);
}

static void reply_nothing(bay_call *call, void *user)
{
    (void)user;
    bay_call_finish_json(call, bay_json_of("{}"));
}

/* NULL: what was registered so far is lost for lack of memory, and said so. */
static bay_server *set_up(void)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_title(server, "title");
    bay_server_instructions(server, "instructions");
    bay_tool *tool = bay_server_tool_schema(server, "answer", "d",
                                            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                                            "\"string\"},\"\\u0062\":{\"type\":\"integer\",\"x-mcp-"
                                            "header\":\"B\"}},\"required\":[\"a\"]}",
                                            answer, NULL);
    bay_tool_title(tool, "title");
    bay_tool_output_schema(tool, "{\"type\":\"object\"}");
    bay_tool_annotations(tool, "{\"readOnlyHint\":true}");
    bay_tool_icons(tool, "[{\"src\":\"https://i\"}]");
    bay_tool_meta(tool, "{\"x.example/a\":1}");
    bay_tool_ui(tool, "ui://a");
    bay_tool_visibility(tool, "app");
    bay_server_tool_schema(server, "defer", NULL, NULL, defer, NULL);
    bay_resource *resource =
        bay_server_resource(server, "x:a", "a", "d", "text/plain", reply_ok, NULL);
    bay_resource_annotations(resource, "{\"priority\":1,\"lastModified\":\"2025\"}");
    bay_server_ui(server, "ui://a", "a", "<p>", "{\"csp\":{}}");
    bay_server_website(server, "x:a");
    bay_server_icons(server, "[{\"src\":\"https://i\"}]");
    bay_server_extension(server, "x.example/a", "{\"a\":1}");
    bay_server_method(server, "example/method", reply_nothing, NULL);
    bay_server_template(server, "y:{a}", "a", "d", "text/plain", read_variable, NULL);
    bay_server_prompt(
        server, "p", "d",
        (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING, .is_required = true}, {0}},
        reply_ok, NULL);
    bay_server_completion(server, complete, NULL);
    bay_diag diag = {0};
    if (bay_server_check(server, &diag) != BAY_OK) {
        assert_int_equal(diag.code, BAY_ERR_NOMEM);
        bay_server_free(server);
        return NULL;
    }
    return server;
}

static void finish_elsewhere(void *argument)
{
    bay_call *call = argument;
    bay_call_progress(call, 1, 2, "half");
    bay_call_log(call, "error", "a line");
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "from a thread");
    bay_call_finish(call, result);
}

static void fail_elsewhere(void *argument)
{
    bay_call_error(argument, -32001, "from a thread");
}

static void deal_with_deferred(rig *on, void (*function)(void *argument))
{
    net_thread thread;
    if (deferred == NULL) {
        return; /* it was refused */
    }
    assert_int_equal(net_thread_start(&thread, function, deferred), BAY_OK);
    net_thread_join(&thread);
    deferred = NULL;
    RIG_UNTIL(on, on->server->calls_under_way == 0);
}

static int answers(const rig *on)
{
    int count = 0;
    for (int i = 0; i < on->way.events; i++) {
        count += strstr(on->way.event[i], "\"id\":") != NULL;
    }
    return count;
}

static void converse(rig *on)
{
    static const char *const asked[][2] = {
        {"tools/list", ""},
        {"resources/list", ""},
        {"resources/read", "\"uri\":\"ui://a\""},
        {"example/method", "\"a\":1"},
        {"tools/call", "\"name\":\"answer\",\"arguments\":{\"a\":\"\\u0041\"}"},
        {"tools/call", "\"name\":\"answer\",\"arguments\":{}"},
        {"tools/call", "\"name\":\"absent\""},
        {"resources/read", "\"uri\":\"x:a\""},
        {"resources/read", "\"uri\":\"y:%41\""},
        {"resources/read", "\"uri\":\"z:\""},
        {"prompts/get", "\"name\":\"p\",\"arguments\":{\"a\":\"\"}"},
        {"prompts/get", "\"name\":\"p\""},
        {"completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{"
                                "\"name\":\"a\",\"value\":\"\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        int before = answers(on);
        rig_send(on, asked[i][0], asked[i][1], "\"progressToken\":1");
        assert_int_equal(answers(on), before + 1);
    }
    void (*const ends[])(void *argument) = {finish_elsewhere, fail_elsewhere};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        int before = answers(on);
        rig_send(on, "tools/call", "\"name\":\"defer\"", "\"progressToken\":1");
        deal_with_deferred(on, ends[i]);
        assert_int_equal(answers(on), before + 1);
    }
    bay_server_updated(on->server, "x:a");
    bay_server_changed(on->server, BAY_KIND_TOOLS);
    bay_server_log(on->server, "error", "text");
    loop_turn(on->loop, 0);
}

/* As rig_client, but nothing has to work. */
static bool open_client(rig *on, const char *revision)
{
    wire_init(&on->way, &on->on);
    if (mcp_connection_open(on->server->engine, &on->way.carrier, &on->way.connection) != BAY_OK) {
        return false;
    }
    on->revision = revision;
    if (!rig_is_modern(on)) {
        rig_say(on, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"
                    "\"name\":\"c\",\"version\":\"1\"}}}");
        rig_say(on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
        rig_say(on, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/subscribe\",\"params\":{"
                    "\"uri\":\"x:a\"}}");
        /* A notification that there is no memory to look at is answered as anything is. */
        assert_in_range(answers(on), 2, 3);
    }
    return true;
}

static void fail_each(const char *revision)
{
    size_t runs = 0;
    size_t sessions = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        runs++;
        rig on;
        deferred = NULL;
        bay_server *server = set_up();
        if (server != NULL && rig_try_start(&on, server)) {
            if (open_client(&on, revision)) {
                converse(&on);
                sessions++;
            }
            rig_stop(&on);
        }
        failing_memory_check();
    }
    assert_true(runs > 60);
    assert_true(sessions > 30);
}

static void a_legacy_session_survives_without_memory(void **state)
{
    (void)state;
    fail_each("2025-11-25");
}

static void a_modern_session_survives_without_memory(void **state)
{
    (void)state;
    fail_each("2026-07-28");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_legacy_session_survives_without_memory),
        cmocka_unit_test(a_modern_session_survives_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
