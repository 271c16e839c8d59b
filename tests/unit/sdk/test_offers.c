/* Resources, templates, prompts, completion and the lists of all, in every revision. */
#include "unit/sdk/sdk_bench.h"

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("s", "1");
    assert_non_null(server);
    return server;
}

/* ---- resources */

static void read_blob(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_blob(result, "\xff\x00", 2);
    bay_result_text(result, "and text");
    bay_call_finish(call, result);
}

static void read_missing(bay_call *call, void *user)
{
    (void)user;
    bay_call_not_found(call);
}

static void read_failure(bay_call *call, void *user)
{
    (void)user;
    bay_call_failf(call, "the disk is %s", "gone");
}

static void show_variables(bay_call *call, void *user)
{
    (void)user;
    bay_str a = bay_call_variable(call, "a");
    bay_str b = bay_call_variable(call, "b");
    assert_null(bay_call_variable(call, "c").at);
    assert_null(bay_call_variable(call, NULL).at);
    bay_call_replyf(call, "a=%.*s b=%.*s", BAY_STR(a), BAY_STR(b));
}

static const char *read_uri(rig *on, const char *uri)
{
    char params[512];
    (void)snprintf(params, sizeof(params), "\"uri\":\"%s\"", uri);
    return rig_ask(on, "resources/read", params);
}

static void resources_are_read(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_resource(server, "x:text", "text", NULL, "text/plain", reply_ok, NULL);
    bay_server_resource(server, "x:blob", "blob", NULL, NULL, read_blob, NULL);
    bay_server_resource(server, "x:missing", "missing", NULL, NULL, read_missing, NULL);
    bay_server_resource(server, "x:failure", "failure", NULL, NULL, read_failure, NULL);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        assert_has(read_uri(&on, "x:text"), "\"contents\":[{\"uri\":\"x:text\",\"mimeType\":"
                                            "\"text/plain\",\"text\":\"ok\"}]");
        assert_has(read_uri(&on, "x:blob"), "\"contents\":[{\"uri\":\"x:blob\",\"blob\":\"/wA=\"},"
                                            "{\"uri\":\"x:blob\",\"text\":\"and text\"}]");
        assert_has(read_uri(&on, "x:failure"),
                   "\"error\":{\"code\":-32603,\"message\":\"the disk is gone\"}");
        static const char *const absent[] = {"x:missing", "x:absent", "x:\\u0022", ""};
        for (size_t k = 0; k < ARRAY_LEN(absent); k++) {
            const char *said = read_uri(&on, absent[k]);
            assert_has(said, i == 4
                                 ? "\"code\":-32602,\"message\":\"Resource not found\",\"data\":{"
                                 : "\"code\":-32002,\"message\":\"Resource not found\","
                                   "\"data\":{\"uri\":\"");
        }
    }
    rig_stop(&on);
}

static void variables_are_taken_out_and_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *template;
        const char *uri;
        const char *expected; /* NULL: not found */
    } cases[] = {
        {"x:{a}", "x:1", "a=1 b="},
        {"x:{a}", "x:", NULL},
        {"x:{a}", "x:1/2", NULL},
        {"x:{a}", "x:1%2F2%20%c3%A9", "a=1/2 \xc3\xa9 b="},
        {"x:{a}", "x:100%", "a= b="}, /* no escape: nothing to show */
        {"x://{a}/{b}", "x://1/2", "a=1 b=2"},
        {"x://{a}/{b}", "x://1", NULL},
        {"x://{a}.json", "x://v1.2.json", "a=v1.2 b="},
        {"x://{a}.json", "x://.json.json", "a=.json b="},
        {"x://{a}-{b}/end", "x://1-2-3/end", "a=1 b=2-3"},
        {"x://{a}--{b}", "x://1-2--3", "a=1-2 b=3"},
        {"x://{b}/data/{a}", "x://2/data/1", "a=1 b=2"},
        {"x://{a}{b}", "x://12", "a=1 b=2"},
        {"x://{a}/{a}/{b}", "x://1/2/3", "a=1 b=3"},
        {"x:fixed", "x:fixed", "a= b="},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig on;
        bay_server *server = new_server();
        bay_server_template(server, cases[i].template, "n", NULL, NULL, show_variables, NULL);
        rig_start(&on, server);
        rig_client(&on, "2025-11-25");
        char expected[128];
        (void)snprintf(expected, sizeof(expected), "\"text\":\"%s\"",
                       cases[i].expected != NULL ? cases[i].expected : "");
        const char *said = read_uri(&on, cases[i].uri);
        assert_has(said, cases[i].expected != NULL ? expected : "\"code\":-32002");
        rig_stop(&on);
    }
}

static void fixed_resources_come_before_templates(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_template(server, "x:{a}", "n", NULL, NULL, show_variables, NULL);
    bay_server_resource(server, "x:1", "n", NULL, NULL, reply_ok, NULL);
    rig_start(&on, server);
    rig_client(&on, "2026-07-28");
    assert_has(read_uri(&on, "x:1"), "\"text\":\"ok\"");
    assert_has(read_uri(&on, "x:2"), "\"text\":\"a=2 b=\"");
    rig_stop(&on);
}

static void subscribers_hear_of_updates(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_template(server, "x:{a}", "n", NULL, NULL, show_variables, NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-06-18");
    assert_has(rig_ask(&on, "resources/subscribe", "\"uri\":\"y:1\""),
               "\"error\":{\"code\":-32002");
    assert_has(rig_ask(&on, "resources/subscribe", "\"uri\":\"x:1\""), "\"result\":{");
    int at = on.way.events;
    bay_server_updated(server, "x:2");
    bay_server_updated(server, "x:1");
    bay_server_updated(server, "x:1"); /* not told yet: once is enough */
    RIG_UNTIL(&on, on.way.events > at);
    loop_turn(on.loop, 0);
    assert_int_equal(on.way.events, at + 1);
    assert_has(last_event(&on.way),
               "notifications/resources/updated\",\"params\":{\"uri\":\"x:1\"}");
    bay_server_updated(server, "x:1");
    RIG_UNTIL(&on, on.way.events > at + 1);
    assert_has(rig_ask(&on, "resources/unsubscribe", "\"uri\":\"x:1\""), "\"result\":{");
    bay_server_updated(server, "x:1"); /* still on its way at the end */
    rig_stop(&on);
}

/* ---- prompts */

static void converse(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "first");
    bay_result_message(result, "assistant");
    bay_result_text(result, "second");
    bay_result_image(result, "", 0, "image/png");
    bay_result_message(result, "system"); /* there is no such role */
    bay_result_resource(result, "x:a", NULL, "third");
    bay_result_message(result, "assistant");
    bay_result_message(result, NULL);
    bay_result_text_str(result, bay_call_str(call, "city"));
    bay_call_finish(call, result);
}

static void prompts_are_put_together(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_prompt(
        server, "p", "About \"it\"",
        (const bay_field[]){{.name = "city", .type = BAY_TYPE_STRING, .is_required = true},
                            {.name = "way", .type = BAY_TYPE_STRING},
                            {0}},
        converse, NULL);
    bay_server_prompt(server, "plain", NULL, NULL, reply_ok, NULL);
    bay_server_prompt(server, "fails", NULL, NULL, read_failure, NULL);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        assert_has(
            rig_ask(&on, "prompts/get", "\"name\":\"p\",\"arguments\":{\"city\":\"Rome\"}"),
            "\"description\":\"About \\\"it\\\"\",\"messages\":["
            "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"first\"}},"
            "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"second\"}},"
            "{\"role\":\"assistant\",\"content\":{\"type\":\"image\",\"mimeType\":\"image/png\","
            "\"data\":\"\"}},"
            "{\"role\":\"user\",\"content\":{\"type\":\"resource\",\"resource\":{\"uri\":\"x:a\","
            "\"text\":\"third\"}}},"
            "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Rome\"}}]");
        static const char *const lacking[] = {"\"name\":\"p\"", "\"name\":\"p\",\"arguments\":{}",
                                              "\"name\":\"p\",\"arguments\":{\"way\":\"north\"}",
                                              "\"name\":\"p\",\"arguments\":{\"city\":7}"};
        for (size_t k = 0; k < ARRAY_LEN(lacking); k++) {
            assert_has(rig_ask(&on, "prompts/get", lacking[k]),
                       "{\"code\":-32602,\"message\":\"Missing prompt argument: city\"}");
        }
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"plain\",\"arguments\":[]"),
                   "{\"code\":-32602,\"message\":\"The arguments must be an object; prompt: ");
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"plain\""),
                   "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
                   "\"ok\"}}]");
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"fails\""),
                   "{\"code\":-32603,\"message\":\"the disk is gone\"}");
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"absent\""),
                   "{\"code\":-32602,\"message\":\"Unknown prompt: absent\"}");
    }
    rig_stop(&on);
}

/* ---- completion */

static void complete(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    int count = 0;
    assert_int_equal(sscanf(bay_call_str(call, "value").at, "%d", &count), 1);
    for (int i = 0; i < count; i++) {
        bay_result_value(result, i == 0 ? "" : i == 1 ? NULL : "v");
    }
    assert_true(str_eq(bay_call_str(call, "name"), STR("a")));
    bay_call_finish(call, result);
}

static const char *complete_at(rig *on, const char *reference, const char *value)
{
    char params[256];
    (void)snprintf(params, sizeof(params),
                   "\"ref\":%s,\"argument\":{\"name\":\"a\",\"value\":\"%s\"}", reference, value);
    return rig_ask(on, "completion/complete", params);
}

static void completion_gives_at_most_a_hundred(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_prompt(server, "p", NULL,
                      (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING}, {0}}, reply_ok,
                      NULL);
    bay_server_template(server, "x:{a}", "n", NULL, NULL, show_variables, NULL);
    bay_server_completion(server, complete, NULL);
    rig_start(&on, server);
    static const char prompt[] = "{\"type\":\"ref/prompt\",\"name\":\"p\"}";
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        assert_has(complete_at(&on, prompt, "0"),
                   "\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}");
        assert_has(complete_at(&on, "{\"type\":\"ref/resource\",\"uri\":\"x:{a}\"}", "3"),
                   "\"completion\":{\"values\":[\"\",\"\",\"v\"],\"total\":3,\"hasMore\":false}");
        assert_has(complete_at(&on, prompt, "100"), "\"total\":100,\"hasMore\":false}");
        const char *said = complete_at(&on, prompt, "101");
        assert_has(said, "\"total\":101,\"hasMore\":true}");
        size_t values = 0;
        for (const char *at = said; (at = strstr(at, "\"v\"")) != NULL; at++) {
            values++;
        }
        assert_int_equal(values, 98);
        assert_has(complete_at(&on, "{\"type\":\"ref/prompt\",\"name\":\"q\"}", "1"),
                   "{\"code\":-32602,\"message\":\"Nothing to complete for: q\"}");
        assert_has(rig_ask(&on, "completion/complete", "\"ref\":7"), "{\"code\":-32602,");
    }
    rig_stop(&on);
}

/* The values of "b" and of "a" in the context, where "" is none. */
static void complete_by_context(bay_call *call, void *user)
{
    (void)user;
    bay_str other = bay_call_context(call, "b");
    bay_result *result = bay_result_new(call);
    bay_result_value_str(result, other.at != NULL ? other : STR("none"));
    bay_result_value_str(result, bay_call_context(call, "c"));
    bay_result_value_str(result, bay_call_context(call, NULL));
    bay_call_finish(call, result);
}

static const char *complete_in(rig *on, const char *context)
{
    char params[512];
    (void)snprintf(params, sizeof(params),
                   "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},"
                   "\"argument\":{\"name\":\"a\",\"value\":\"\"}%s",
                   context);
    return rig_ask(on, "completion/complete", params);
}

/* Is the context there to be read in this revision? It came with 2025-06-18. */
static bool has_context(const char *revision)
{
    return strcmp(revision, "2025-06-18") >= 0;
}

static void completion_has_a_context(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_prompt(server, "p", NULL,
                      (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING}, {0}}, reply_ok,
                      NULL);
    bay_server_completion(server, complete_by_context, NULL);
    rig_start(&on, server);
    static const char none[] = "{\"values\":[\"none\",\"\",\"\"],";
    static const struct {
        const char *context, *refusal; /* NULL: taken, as none */
    } cases[] = {
        {",\"context\":7", "context.arguments must be an object of strings; got: 7\""},
        {",\"context\":{\"arguments\":[\"b\"]}",
         "context.arguments must be an object of strings; got: [\\\"b\\\"]\""},
        {",\"context\":{\"arguments\":{\"b\":\"x\",\"c\":7}}",
         "context.arguments: the value must be a string, of: \\\"c\\\"\""},
        {"", NULL},
        {",\"context\":null", NULL},
        {",\"context\":{}", NULL},
        {",\"context\":{\"arguments\":null}", NULL},
        {",\"context\":{\"arguments\":{\"B\":\"x\"}}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        bool is_read = has_context(all_revisions[i]);
        for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
            const char *refusal = is_read ? cases[k].refusal : NULL;
            const char *said = complete_in(&on, cases[k].context);
            assert_has(said, refusal != NULL ? "{\"code\":-32602," : none);
            assert_has(said, refusal != NULL ? refusal : "");
        }
        assert_has(complete_in(&on, ",\"context\":{\"arguments\":{\"b\":\"x\\u0041\"}}"),
                   is_read ? "{\"values\":[\"xA\",\"\",\"\"]," : none);
    }
    rig_stop(&on);
}

/* ---- lists */

#define ICONS "[{\"src\":\"https://x.example/i.png\",\"sizes\":[\"48x48\"]}]"
#define META_OF(what) "{\"example.com/" what "\":1}"

static bay_server *detailed_server(void)
{
    bay_server *server = new_server();
    bay_tool *tool = bay_server_tool_schema(server, "t", "does \"it\"",
                                            "{\"type\":\"object\",\"x\": 1.0}", reply_ok, NULL);
    bay_tool_title(tool, "Tool");
    bay_tool_output_schema(tool, "{\"type\":\"object\"}");
    bay_tool_annotations(tool, "{\"readOnlyHint\":true}");
    bay_tool_icons(tool, ICONS);
    bay_tool_meta(tool, META_OF("tool"));
    bay_server_tool_schema(server, "u", NULL, NULL, reply_ok, NULL);
    bay_resource *resource =
        bay_server_resource(server, "x:a", "A", "d", "text/plain", reply_ok, NULL);
    bay_resource_title(resource, "Title");
    bay_resource_annotations(resource, "{\"priority\":0.5,\"lastModified\":\"2025-01-12T15:00Z\"}");
    bay_resource_icons(resource, ICONS);
    bay_resource_meta(resource, META_OF("resource"));
    bay_resource_size(resource, 12345678901);
    resource = bay_server_template(server, "x:{a}", "B", NULL, NULL, reply_ok, NULL);
    bay_resource_title(resource, "Many");
    bay_prompt *prompt = bay_server_prompt(
        server, "p", "d", (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING}, {0}},
        reply_ok, NULL);
    bay_prompt_title(prompt, "Prompt");
    bay_prompt_icons(prompt, ICONS);
    bay_prompt_meta(prompt, META_OF("prompt"));
    return server;
}

/* Every member for those that know all of them, and none that a revision does not know. */
static void lists_hold_every_member(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, detailed_server());
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        char wanted[1024];
        bool has_hints = i >= 1; /* 2025-03-26 */
        bool has_titles = i >= 2;
        bool has_icons = i >= 3;
        rig_client(&on, all_revisions[i]);
        (void)snprintf(wanted, sizeof(wanted),
                       "\"tools\":[{\"name\":\"t\",%s\"description\":\"does \\\"it\\\"\","
                       "\"inputSchema\":{\"type\":\"object\",\"x\": 1.0}%s%s%s%s},{\"name\":\"u\","
                       "\"inputSchema\":{\"type\":\"object\"}}]",
                       has_titles ? "\"title\":\"Tool\"," : "",
                       has_titles ? ",\"outputSchema\":{\"type\":\"object\"}" : "",
                       has_hints ? ",\"annotations\":{\"readOnlyHint\":true}" : "",
                       has_icons ? ",\"icons\":" ICONS : "",
                       has_titles ? ",\"_meta\":" META_OF("tool") : "");
        assert_has(rig_ask(&on, "tools/list", ""), wanted);
        (void)snprintf(wanted, sizeof(wanted),
                       "\"resources\":[{\"uri\":\"x:a\",\"name\":\"A\",%s\"description\":\"d\","
                       "\"mimeType\":\"text/plain\",\"annotations\":{\"priority\":0.5%s},\"size\":"
                       "12345678901%s%s}]",
                       has_titles ? "\"title\":\"Title\"," : "",
                       has_titles ? ",\"lastModified\":\"2025-01-12T15:00Z\"" : "",
                       has_icons ? ",\"icons\":" ICONS : "",
                       has_titles ? ",\"_meta\":" META_OF("resource") : "");
        assert_has(rig_ask(&on, "resources/list", ""), wanted);
        (void)snprintf(wanted, sizeof(wanted),
                       "\"resourceTemplates\":[{\"uriTemplate\":\"x:{a}\",\"name\":\"B\"%s}]",
                       has_titles ? ",\"title\":\"Many\"" : "");
        assert_has(rig_ask(&on, "resources/templates/list", ""), wanted);
        (void)snprintf(wanted, sizeof(wanted),
                       "\"prompts\":[{\"name\":\"p\",%s\"description\":\"d\",\"arguments\":["
                       "{\"name\":\"a\"}]%s%s}]",
                       has_titles ? "\"title\":\"Prompt\"," : "",
                       has_icons ? ",\"icons\":" ICONS : "",
                       has_titles ? ",\"_meta\":" META_OF("prompt") : "");
        assert_has(rig_ask(&on, "prompts/list", ""), wanted);
        assert_has(rig_ask(&on, "tools/list", "\"cursor\":\"x\""), "\"error\":{\"code\":-32602,");
    }
    rig_stop(&on);
}

static void what_is_not_there_is_not_declared(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, new_server());
    rig_client(&on, "2025-11-25");
    const char *said = on.way.event[0];
    assert_has(said, "\"capabilities\":{\"logging\":{}}");
    assert_has(rig_ask(&on, "prompts/list", ""), "{\"code\":-32601,");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_are_read),
        cmocka_unit_test(variables_are_taken_out_and_decoded),
        cmocka_unit_test(fixed_resources_come_before_templates),
        cmocka_unit_test(subscribers_hear_of_updates),
        cmocka_unit_test(prompts_are_put_together),
        cmocka_unit_test(completion_gives_at_most_a_hundred),
        cmocka_unit_test(completion_has_a_context),
        cmocka_unit_test(lists_hold_every_member),
        cmocka_unit_test(what_is_not_there_is_not_declared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
