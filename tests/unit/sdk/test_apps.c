/* Pages for hosts to show, the tools they belong to, and who may call those. */
#include "unit/sdk/sdk_bench.h"

static bay_tool *add_tool(bay_server *server)
{
    return bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
}

static void expect_error(bay_server *server, const char *wanted)
{
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, wanted);
    assert_int_equal(bay_server_check(server, NULL), BAY_ERR_INVALID);
    assert_int_equal(server->errors.count, 1); /* told once, however often it is checked */
    bay_server_free(server);
}

static void what_is_no_page_is_told(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_server_ui(server, "https://x.example/", "a", "<p>", NULL);
    expect_error(server, "the address of a page begins with ui://");
    server = bay_server_new("s", "1");
    bay_server_ui(server, "ui://a", "a", NULL, NULL);
    expect_error(server, "the page has no HTML");
    server = bay_server_new("s", "1");
    bay_server_ui(server, "ui://a", "a", "<p>", "[]");
    expect_error(server, "the settings of the page must be a JSON object");
    server = bay_server_new("s", "1");
    bay_tool_ui(add_tool(server), "ui://absent");
    expect_error(server, "tool \"t\": there is no page \"ui://absent\"");
    server = bay_server_new("s", "1");
    bay_tool_visibility(add_tool(server), "nobody");
    expect_error(server, "a tool is visible to \"model\", \"app\" or \"model,app\"");
    server = bay_server_new("s", "1");
    bay_tool_visibility(add_tool(server), NULL);
    expect_error(server, "a tool is visible to");
    assert_null(bay_server_ui(NULL, "ui://a", "a", "<p>", NULL));
    bay_tool_ui(NULL, "ui://a");
    bay_tool_visibility(NULL, "app");
}

#define SETTINGS "{\"csp\":{\"connectDomains\":[\"https://x.example\"]}}"
#define TYPE "\"mimeType\":\"text/html;profile=mcp-app\""
#define DECLARED                                                                                   \
    "\":{\"io.modelcontextprotocol/ui\":{\"mimeTypes\":[\"text/html;profile=mcp-app\"]}}"

static bay_server *server_of_an_app(void)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = add_tool(server);
    bay_tool_ui(tool, "ui://clock"); /* the order does not matter */
    bay_tool_visibility(tool, "app");
    bay_tool_meta(tool, "{\"x.example/a\":1,\"ui\":{\"old\":true}}");
    bay_server_ui(server, "ui://clock", "Clock", "<p>\"now\"</p>", SETTINGS);
    bay_server_ui(server, "ui://plain", "Plain", "<p>", NULL);
    return server;
}

static void pages_and_tools_know_each_other(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of_an_app());
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        bool has_meta = i >= 2;
        rig_client(&on, all_revisions[i]);
        const char *said = rig_ask(&on, "tools/list", "");
        assert_true(
            (strstr(said, "\"_meta\":{\"ui\":{\"resourceUri\":\"ui://clock\",\"visibility\":"
                          "[\"app\"]},\"x.example/a\":1}") != NULL) == has_meta);
        said = rig_ask(&on, "resources/list", "");
        assert_has(said, "{\"uri\":\"ui://clock\",\"name\":\"Clock\"," TYPE);
        assert_true((strstr(said, "\"_meta\":{\"ui\":" SETTINGS "}") != NULL) == has_meta);
        said = rig_ask(&on, "resources/read", "\"uri\":\"ui://clock\"");
        assert_has(said, "\"contents\":[{\"uri\":\"ui://clock\"," TYPE
                         ",\"text\":\"<p>\\\"now\\\"</p>\"");
        assert_true((strstr(said, ",\"_meta\":{\"ui\":" SETTINGS "}}]") != NULL) == has_meta);
        assert_has(rig_ask(&on, "resources/read", "\"uri\":\"ui://plain\""), "\"text\":\"<p>\"}]");
    }
    rig_stop(&on);
}

static void the_extension_is_declared(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of_an_app());
    rig_client(&on, "2025-11-25");
    assert_has(on.way.event[0], "\"extensions" DECLARED);
    rig_client(&on, "2025-06-18");
    assert_has(on.way.event[0], "\"experimental" DECLARED);
    rig_client(&on, "2026-07-28");
    assert_has(rig_ask(&on, "server/discover", ""), "\"extensions" DECLARED);
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_page_is_told),
        cmocka_unit_test(pages_and_tools_know_each_other),
        cmocka_unit_test(the_extension_is_declared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
