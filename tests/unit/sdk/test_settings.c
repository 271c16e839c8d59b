/* What a server says of itself and how it is set: numbers in their ranges, revisions, names and
 * pictures, extensions and their methods. */
#include "unit/sdk/sdk_bench.h"

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    return server;
}

static void expect_error(bay_server *server, const char *wanted)
{
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, wanted);
    assert_int_equal(server->errors.count, 1);
    bay_server_free(server);
}

/* ---- numbers */

static void numbers_out_of_range_are_told(void **state)
{
    (void)state;
    static const struct {
        bay_server_setting setting;
        int64_t value;
        const char *wanted;
    } bad[] = {
        {BAY_SERVER_SETTING_CALL_TIMEOUT_MS, -1,
         "BAY_SERVER_SETTING_CALL_TIMEOUT_MS is -1; it must be between 1 and 2678400000"},
        {BAY_SERVER_SETTING_CALL_TIMEOUT_MS, INT64_MAX,
         "BAY_SERVER_SETTING_CALL_TIMEOUT_MS is 9223372036854775807"},
        {BAY_SERVER_SETTING_LIST_TTL_MS, -1,
         "BAY_SERVER_SETTING_LIST_TTL_MS is -1; it must be between 0 and"},
        {BAY_SERVER_SETTING_PAGE_SIZE, 100001,
         "BAY_SERVER_SETTING_PAGE_SIZE is 100001; it must be between 0 and 100000"},
        {BAY_SERVER_SETTING_MAX_BODY_BYTES, INT64_C(1) << 31,
         "BAY_SERVER_SETTING_MAX_BODY_BYTES is 2147483648"},
        {(bay_server_setting)100, 1, "there is no setting number 100"},
        {(bay_server_setting)-1, 1, "there is no setting number -1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_server *server = new_server();
        bay_server_set(server, bad[i].setting, bad[i].value);
        expect_error(server, bad[i].wanted);
    }
    bay_server_set(NULL, BAY_SERVER_SETTING_PAGE_SIZE, 1);
}

static void zero_is_the_default(void **state)
{
    (void)state;
    static const uint64_t defaults[] = {
        [BAY_SERVER_SETTING_CALL_TIMEOUT_MS] = 600000,
        [BAY_SERVER_SETTING_QUESTION_TIMEOUT_MS] = 600000,
        [BAY_SERVER_SETTING_STATE_TTL_MS] = 600000,
        [BAY_SERVER_SETTING_LIST_TTL_MS] = 300000,
        [BAY_SERVER_SETTING_PAGE_SIZE] = 0,
        [BAY_SERVER_SETTING_MAX_SESSIONS] = 10000,
        [BAY_SERVER_SETTING_SESSION_IDLE_MS] = 1800000,
        [BAY_SERVER_SETTING_MAX_REQUESTS] = 1024,
        [BAY_SERVER_SETTING_MAX_BODY_BYTES] = 16777216,
        [BAY_SERVER_SETTING_MAX_CONNECTIONS] = 10000,
        [BAY_SERVER_SETTING_MAX_TASKS] = 10000,
        [BAY_SERVER_SETTING_TASK_TTL_MS] = 3600000,
        [BAY_SERVER_SETTING_TASK_POLL_MS] = 1000,
        [BAY_SERVER_SETTING_MAX_REPLY_BYTES] = 16777216,
    };
    bay_server *server = new_server();
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
        assert_int_equal(sdk_server_setting(server, (bay_server_setting)i), defaults[i]);
        bay_server_set(server, (bay_server_setting)i, 7);
        assert_int_equal(sdk_server_setting(server, (bay_server_setting)i), 7);
        bay_server_set(server, (bay_server_setting)i, 0);
        bool has_zero = i == BAY_SERVER_SETTING_LIST_TTL_MS || i == BAY_SERVER_SETTING_PAGE_SIZE;
        assert_int_equal(sdk_server_setting(server, (bay_server_setting)i),
                         has_zero ? 0 : defaults[i]);
    }
    assert_int_equal(bay_server_check(server, NULL), BAY_OK);
    bay_server_free(server);
}

static void the_time_of_lists_is_told(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *wanted;
    } cases[] = {{-1, "\"ttlMs\":300000,\"cacheScope\":\"public\""},
                 {0, "\"ttlMs\":0,"},
                 {1234, "\"ttlMs\":1234,"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig on;
        bay_server *server = new_server();
        if (cases[i].value >= 0) {
            bay_server_set(server, BAY_SERVER_SETTING_LIST_TTL_MS, cases[i].value);
        }
        rig_start(&on, server);
        rig_client(&on, "2026-07-28");
        assert_has(rig_ask(&on, "tools/list", ""), cases[i].wanted);
        rig_stop(&on);
    }
}

/* ---- revisions */

static void revisions_that_are_none_are_told(void **state)
{
    (void)state;
    bay_server *server = new_server();
    bay_server_revisions(server, "2024-11-06", NULL);
    expect_error(server, "there is no revision \"2024-11-06\"");
    server = new_server();
    bay_server_revisions(server, NULL, "");
    expect_error(server, "there is no revision \"\"");
    server = new_server();
    bay_server_revisions(server, "2025-11-25", "2025-03-26");
    expect_error(server, "2025-11-25 is newer than 2025-03-26");
    bay_server_revisions(NULL, NULL, NULL);
}

static void only_these_revisions_are_served(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_revisions(server, "2025-03-26", "2025-06-18");
    rig_start(&on, server);
    rig_client(&on, "2024-11-05");
    assert_has(on.way.event[0], "\"protocolVersion\":\"2025-06-18\"");
    rig_client(&on, "2025-03-26");
    assert_has(on.way.event[0], "\"protocolVersion\":\"2025-03-26\"");
    rig_client(&on, "2026-07-28");
    rig_send(&on, "tools/list", "", "");
    assert_has(last_event(&on.way), "\"error\":{");
    rig_stop(&on);
    server = new_server();
    bay_server_revisions(server, "2026-07-28", NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    assert_has(on.way.event[0], "\"error\":{\"code\":-32022,");
    rig_client(&on, "2026-07-28");
    assert_has(rig_ask(&on, "tools/list", ""), "\"result\":{");
    rig_stop(&on);
}

/* ---- names and pictures */

#define ICONS "[{\"src\":\"https://x.example/i.png\",\"mimeType\":\"image/png\"}]"

static void it_says_who_it_is_as_each_revision_knows_it(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_title(server, "Title");
    bay_server_website(server, "https://x.example/");
    bay_server_icons(server, ICONS);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(legacy_revisions); i++) {
        static const char *const wanted[] = {
            "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}",
            "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}",
            "\"serverInfo\":{\"name\":\"s\",\"title\":\"Title\",\"version\":\"1\"}",
            "\"serverInfo\":{\"name\":\"s\",\"title\":\"Title\",\"version\":\"1\",\"websiteUrl\":"
            "\"https://x.example/\",\"icons\":" ICONS "}"};
        rig_client(&on, legacy_revisions[i]);
        assert_has(on.way.event[0], wanted[i]);
    }
    rig_client(&on, "2026-07-28");
    assert_has(rig_ask(&on, "server/discover", ""),
               "/serverInfo\":{\"name\":\"s\",\"title\":\"Title\",\"version\":\"1\",\"websiteUrl\":"
               "\"https://x.example/\",\"icons\":" ICONS "}");
    rig_stop(&on);
    bay_server_website(NULL, "");
    bay_server_icons(NULL, "");
}

static void details_that_are_wrong_are_told(void **state)
{
    (void)state;
    bay_server *server = new_server();
    bay_server_icons(server, "{}");
    expect_error(server, "bay_server_icons: the list must be a JSON array");
    server = new_server();
    bay_server_icons(server, "[{\"sizes\":[]}]");
    expect_error(server, "bay_server_icons: an icon is an object");
    server = bay_server_new("s", "1");
    bay_tool_icons(bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL), "[7]");
    expect_error(server, "tool \"t\": an icon is an object");
    static const char *const sources[] = {"javascript:alert(1)",
                                          "JavaScript\\u003aalert(1)",
                                          "data:text/html,<script>",
                                          "data:image/",
                                          "http://x.example",
                                          "https:x.example",
                                          " https://x.example",
                                          "file:///i.png",
                                          ""};
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        char icons[200];
        (void)snprintf(icons, sizeof(icons), "[{\"src\":\"HTTPS://x.example/i\"},{\"src\":\"%s\"}]",
                       sources[i]);
        server = bay_server_new("s", "1");
        bay_tool_icons(bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL), icons);
        expect_error(server, "tool \"t\": the \"src\" of an icon must be an https: URL");
    }
    server = bay_server_new("s", "1");
    bay_server_icons(server, "[{\"src\":\"ftp://x.example\"}]");
    expect_error(server, "bay_server_icons: the \"src\" of an icon must be");
    server = bay_server_new("s", "1");
    bay_tool_meta(bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL), "[]");
    expect_error(server, "tool \"t\": the _meta must be a JSON object");
    static const char *const annotations[][2] = {
        {"{\"audience\":\"user\"}", "the annotation audience"},
        {"{\"audience\":[\"model\"]}", "the annotation audience"},
        {"{\"priority\":1.5}", "the annotation priority"},
        {"{\"priority\":\"1\"}", "the annotation priority"},
        {"{\"lastModified\":7}", "the annotation lastModified"},
        {"[]", "the annotations must be a JSON object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(annotations); i++) {
        server = bay_server_new("s", "1");
        bay_resource_annotations(
            bay_server_resource(server, "x:a", "a", NULL, NULL, reply_ok, NULL), annotations[i][0]);
        expect_error(server, annotations[i][1]);
    }
    server = bay_server_new("s", "1");
    bay_resource_size(bay_server_template(server, "x:{a}", "a", NULL, NULL, reply_ok, NULL), 1);
    expect_error(server, "only a resource at one URI has a size");
}

static void without_an_object_nothing_happens(void **state)
{
    (void)state;
    bay_tool_icons(NULL, "x");
    bay_tool_meta(NULL, "x");
    bay_resource_title(NULL, "x");
    bay_resource_annotations(NULL, "x");
    bay_resource_icons(NULL, "x");
    bay_resource_meta(NULL, "x");
    bay_resource_size(NULL, 1);
    bay_resource_blocking(NULL);
    bay_prompt_title(NULL, "x");
    bay_prompt_icons(NULL, "x");
    bay_prompt_meta(NULL, "x");
    bay_prompt_blocking(NULL);
    bay_server_extension(NULL, "x", NULL);
    bay_server_method(NULL, "x", NULL, NULL);
}

/* ---- extensions */

static void extensions_that_are_none_are_told(void **state)
{
    (void)state;
    static const char *const ids[] = {"", "name", "/name", "prefix/", "pre fix/name", "a/b\"c"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        bay_server *server = new_server();
        bay_server_extension(server, ids[i], NULL);
        expect_error(server, "is not of the form prefix/name");
    }
    bay_server *server = new_server();
    bay_server_extension(server, NULL, NULL);
    expect_error(server, "is not of the form prefix/name");
    server = new_server();
    bay_server_extension(server, "x.example/a", "7");
    expect_error(server, "extension \"x.example/a\": the settings must be a JSON object");
    server = new_server();
    bay_server_extension(server, "x.example/a", NULL);
    bay_server_extension(server, "x.example/a", NULL);
    expect_error(server, "\"x.example/a\" is declared already");
}

static void extensions_are_declared(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_extension(server, "x.example/a", NULL);
    bay_server_extension(server, "x.example/b", "{\"n\": 1.0}");
    rig_start(&on, server);
#define SAID "\":{\"x.example/a\":{},\"x.example/b\":{\"n\": 1.0}}"
    for (size_t i = 0; i < ARRAY_LEN(legacy_revisions); i++) {
        rig_client(&on, legacy_revisions[i]);
        assert_has(on.way.event[0], i < 3 ? "\"experimental" SAID : "\"extensions" SAID);
    }
    rig_client(&on, "2026-07-28");
    assert_has(rig_ask(&on, "server/discover", ""), "\"extensions" SAID);
    rig_stop(&on);
}

static void echo(bay_call *call, void *user)
{
    (void)user;
    bay_str name = bay_call_name(call);
    bay_str given = bay_call_str(call, "given");
    char json[256];
    (void)snprintf(json, sizeof(json), "{\"method\":\"%.*s\",\"given\":\"%.*s\"}", BAY_STR(name),
                   BAY_STR(given));
    bay_call_finish_json(call, bay_json_of(json));
}

static void refuse(bay_call *call, void *user)
{
    (void)user;
    bay_call_error(call, -32001, "not now");
}

static void methods_of_extensions_are_answered(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_method(server, "example/echo", echo, NULL);
    bay_server_method(server, "example/refuse", refuse, NULL);
    bay_server_method(server, "example/text", reply_ok, NULL);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        const char *said = rig_ask(&on, "example/echo", "\"given\":\"\\u0041\"");
        assert_has(said, "\"method\":\"example/echo\",\"given\":\"A\"");
        assert_true((strstr(said, "\"resultType\":\"complete\"") != NULL) == rig_is_modern(&on));
        assert_has(rig_ask(&on, "example/refuse", ""),
                   "\"error\":{\"code\":-32001,\"message\":\"not now\"}");
        assert_has(rig_ask(&on, "example/text", ""), "content that this kind of call cannot carry");
        assert_has(rig_ask(&on, "example/absent", ""), "\"error\":{\"code\":-32601,");
    }
    rig_stop(&on);
}

static void names_of_the_protocol_are_not_given_away(void **state)
{
    (void)state;
    static const char *const taken[] = {"tools/list", "notifications/x", "rpc.x", "skills/list"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        bay_server *server = new_server();
        bay_server_method(server, taken[i], echo, NULL);
        expect_error(server, "the name belongs to the protocol");
    }
    bay_server *server = new_server();
    bay_server_method(server, "x/y", echo, NULL);
    bay_server_method(server, "x/y", echo, NULL);
    expect_error(server, "method \"x/y\" was registered twice");
    server = new_server();
    bay_server_method(server, "x/y", NULL, NULL);
    expect_error(server, "method \"x/y\": the handler is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_out_of_range_are_told),
        cmocka_unit_test(zero_is_the_default),
        cmocka_unit_test(the_time_of_lists_is_told),
        cmocka_unit_test(revisions_that_are_none_are_told),
        cmocka_unit_test(only_these_revisions_are_served),
        cmocka_unit_test(it_says_who_it_is_as_each_revision_knows_it),
        cmocka_unit_test(details_that_are_wrong_are_told),
        cmocka_unit_test(without_an_object_nothing_happens),
        cmocka_unit_test(extensions_that_are_none_are_told),
        cmocka_unit_test(extensions_are_declared),
        cmocka_unit_test(methods_of_extensions_are_answered),
        cmocka_unit_test(names_of_the_protocol_are_not_given_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
