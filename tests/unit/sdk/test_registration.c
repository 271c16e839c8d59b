/* What is wrong with a registration is kept and told in words, all of it; nothing crashes. */
#include "unit/sdk/sdk_bench.h"

static const char *text_of(bay_server *server)
{
    static bay_diag diag;
    diag = (bay_diag){0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_int_equal(diag.code, BAY_ERR_INVALID);
    return diag.text;
}

/* One bad registration: one error, with this text. */
#define BAD(text, ...)                                                                             \
    do {                                                                                           \
        bay_server *server = bay_server_new("s", "1");                                             \
        assert_non_null(server);                                                                   \
        __VA_ARGS__;                                                                               \
        assert_string_equal(text_of(server), (text));                                              \
        assert_int_equal(server->errors.count, 1);                                                 \
        bay_server_free(server);                                                                   \
    } while (0)

static bay_tool *add(bay_server *server, const char *name, const char *input)
{
    return bay_server_tool_schema(server, name, "d", input, reply_ok, NULL);
}

static void names_are_checked(void **state)
{
    (void)state;
    const char *rule = "tool \"a b\": a name has 1 to 128 letters, digits, '_', '-' or '.'";
    BAD(rule, add(server, "a b", NULL));
    BAD("a tool was registered without a name", add(server, NULL, NULL));
    BAD("a tool was registered without a name", add(server, "", NULL));
    BAD("tool \"t\" was registered twice", add(server, "t", NULL); add(server, "t", NULL));
    char name[130];
    memset(name, 'n', 129);
    name[129] = '\0';
    bay_server *server = bay_server_new("s", "1");
    add(server, name, NULL);
    assert_has(text_of(server), "1 to 128");
    bay_server_free(server);
    server = bay_server_new("s", "1");
    add(server, name + 1, NULL);
    assert_int_equal(bay_server_check(server, NULL), BAY_OK);
    bay_server_free(server);
    server = bay_server_new(NULL, NULL);
    assert_string_equal(text_of(server), "bay_server_new: a server needs a name");
    bay_server_free(server);
}

static void handlers_are_checked(void **state)
{
    (void)state;
    BAD("tool \"t\": the handler is NULL",
        bay_server_tool_schema(server, "t", NULL, NULL, NULL, NULL));
    BAD("resource \"x:a\": the handler is NULL",
        bay_server_resource(server, "x:a", "a", NULL, NULL, NULL, NULL));
    BAD("resource template \"x:{a}\": the handler is NULL",
        bay_server_template(server, "x:{a}", "a", NULL, NULL, NULL, NULL));
    BAD("prompt \"p\": the handler is NULL",
        bay_server_prompt(server, "p", NULL, NULL, NULL, NULL));
    BAD("completion \"\": the handler is NULL", bay_server_completion(server, NULL, NULL));
    BAD("completion \"\" was registered twice", bay_server_completion(server, reply_ok, NULL);
        bay_server_completion(server, reply_ok, NULL));
}

static void schemas_are_checked(void **state)
{
    (void)state;
    BAD("tool \"t\": the input schema must be a JSON object", add(server, "t", "[]"));
    BAD("tool \"t\": the input schema must have \"type\":\"object\"", add(server, "t", "{}"));
    BAD("tool \"t\": the input schema must have \"type\":\"object\"",
        add(server, "t", "{\"type\":[\"object\"]}"));
    BAD("tool \"t\": the input schema has a member twice, at byte 17",
        add(server, "t", "{\"type\":\"object\",\"type\":\"object\"}"));
    BAD("tool \"t\": the input schema: /properties: must be an object of schemas",
        add(server, "t", "{\"type\":\"object\",\"properties\":[]}"));
    BAD("tool \"t\": the input schema: /required: must be a list of strings",
        add(server, "t", "{\"type\":\"object\",\"required\":{\"a\":\"b\"}}"));
    BAD("tool \"t\": the input schema: /required: must be a list of strings",
        add(server, "t", "{\"type\":\"object\",\"required\":[1]}"));
    BAD("tool \"t\": the input schema: /$schema: the dialect "
        "http://json-schema.org/draft-04/schema# is not supported; 2020-12 and draft-07 are",
        add(server, "t",
            "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"type\":"
            "\"object\"}"));
    BAD("tool \"t\": the output schema: /minLength: must be an integer that is not below 0",
        bay_tool_output_schema(add(server, "t", NULL), "{\"type\":\"object\",\"minLength\":-1}"));
    BAD("tool \"t\": the output schema must be a JSON object",
        bay_tool_output_schema(add(server, "t", NULL), "7"));
    BAD("tool \"t\": the annotations must be a JSON object",
        bay_tool_annotations(add(server, "t", NULL), "\"x\""));
    BAD("tool \"t\": the annotation idempotentHint must be true or false",
        bay_tool_annotations(add(server, "t", NULL), "{\"idempotentHint\":\"yes\"}"));
    BAD("tool \"t\": the capability it requires has no name",
        bay_tool_requires(add(server, "t", NULL), ""));
    bay_server *server = bay_server_new("s", "1");
    add(server, "t", "{\"type\":\"object\",}");
    assert_has(text_of(server), "tool \"t\": the input schema is not JSON: ");
    assert_has(text_of(server), " at byte 17");
    bay_server_free(server);
    server = bay_server_new("s", "1");
    add(server, "t",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-mcp-header\":\"A\"}}"
        "}");
    assert_has(text_of(server), "tool \"t\": x-mcp-header: ");
    bay_server_free(server);
}

static void uris_are_checked(void **state)
{
    (void)state;
    BAD("resource \"x:a\" needs a name",
        bay_server_resource(server, "x:a", NULL, NULL, NULL, reply_ok, NULL));
    BAD("resource \"nowhere\" is no URI: it has no scheme",
        bay_server_resource(server, "nowhere", "n", NULL, NULL, reply_ok, NULL));
    BAD("resource \"x:a b\" is no URI",
        bay_server_resource(server, "x:a b", "n", NULL, NULL, reply_ok, NULL));
    BAD("resource \"/:a\" is no URI",
        bay_server_resource(server, "/:a", "n", NULL, NULL, reply_ok, NULL));
    BAD("a resource was registered without a name",
        bay_server_resource(server, NULL, "n", NULL, NULL, reply_ok, NULL));
    BAD("resource \"x:a\" was registered twice",
        bay_server_resource(server, "x:a", "n", NULL, NULL, reply_ok, NULL);
        bay_server_resource(server, "x:a", "n", NULL, NULL, reply_ok, NULL));
    static const char *const templates[] = {"x:{",    "x:}",     "x:{}",   "x:{+a}",
                                            "x:{a*}", "x:{a,b}", "x:{?a}", "x:{a:3}"};
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        bay_server *server = bay_server_new("s", "1");
        bay_server_template(server, templates[i], "n", NULL, NULL, reply_ok, NULL);
        assert_has(text_of(server), "is not of literals and {name} expressions (RFC 6570 level 1)");
        assert_has(text_of(server), templates[i]);
        assert_int_equal(server->errors.count, 1);
        bay_server_free(server);
    }
}

static void prompt_arguments_are_checked(void **state)
{
    (void)state;
    static const bay_field number[] = {{"a", BAY_TYPE_INTEGER, "d", .is_required = true}, {0}};
    static const bay_field twice[] = {
        {.name = "a", .type = BAY_TYPE_STRING}, {.name = "a", .type = BAY_TYPE_STRING}, {0}};
    static const bay_field nameless[] = {{.name = "", .type = BAY_TYPE_STRING}, {0}};
    BAD("prompt \"p\": the table of arguments: the field \"a\" is no string, as arguments of "
        "prompts are",
        bay_server_prompt(server, "p", NULL, number, reply_ok, NULL));
    BAD("prompt \"p\": the table of arguments: the field \"a\" stands twice in its table",
        bay_server_prompt(server, "p", NULL, twice, reply_ok, NULL));
    BAD("prompt \"p\": the table of arguments: the field \"\" has no name",
        bay_server_prompt(server, "p", NULL, nameless, reply_ok, NULL));
}

static void every_error_is_kept(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    /* A bad name, no handler and a bad schema of one tool are three errors. */
    bay_server_tool_schema(server, "a b", NULL, "[]", NULL, NULL);
    assert_int_equal(server->errors.count, 3);
    for (int i = 0; i < 20; i++) {
        bay_server_prompt(server, "", NULL, NULL, reply_ok, NULL);
    }
    assert_int_equal(server->errors.count, 23); /* more than are kept */
    assert_has(server->errors.kept[REGISTRATION_ERRORS - 1].text,
               "a prompt was registered without");
    bay_server_free(server);
}

static void null_is_taken(void **state)
{
    (void)state;
    bay_diag diag;
    bay_server_free(NULL);
    bay_server_title(NULL, "t");
    bay_server_instructions(NULL, "t");
    assert_null(add(NULL, "t", NULL));
    bay_tool_title(NULL, "t");
    bay_tool_output_schema(NULL, "{}");
    bay_tool_annotations(NULL, "{}");
    bay_tool_blocking(NULL);
    bay_tool_requires(NULL, "sampling");
    bay_server_resource(NULL, "x:a", "a", NULL, NULL, reply_ok, NULL);
    bay_server_template(NULL, "x:{a}", "a", NULL, NULL, reply_ok, NULL);
    bay_server_prompt(NULL, "p", NULL, NULL, reply_ok, NULL);
    bay_server_completion(NULL, reply_ok, NULL);
    bay_server_changed(NULL, BAY_KIND_TOOLS);
    bay_server_updated(NULL, "x:a");
    assert_int_equal(bay_server_check(NULL, &diag), BAY_ERR_NOMEM);
    bay_server *server = bay_server_new("s", NULL);
    bay_server_title(server, NULL);
    bay_server_instructions(server, NULL);
    bay_server_updated(server, NULL);
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    bay_tool_title(tool, NULL);
    bay_tool_output_schema(tool, "{\"type\":\"object\"}");
    bay_tool_annotations(tool, NULL);
    bay_server_resource(server, "x:a", "a", NULL, NULL, reply_ok, NULL);
    bay_server_prompt(server, "p", NULL, NULL, reply_ok, NULL);
    assert_int_equal(bay_server_check(server, NULL), BAY_OK);
    bay_tool_output_schema(add(server, NULL, "["), "[");
    bay_server_resource(server, NULL, NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(bay_server_check(server, NULL), BAY_ERR_INVALID);
    bay_server_free(server);
}

/* Announced before anybody listens: nothing to tell, and nothing that stays in the way. */
static void changes_before_serving_do_not_block_later_ones(void **state)
{
    (void)state;
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    bay_server_changed(server, BAY_KIND_TOOLS);
    bay_server_updated(server, "x:a");
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    int before = on.way.events;
    bay_server_changed(server, BAY_KIND_TOOLS);
    bay_server_changed(server, BAY_KIND_TOOLS);
    RIG_UNTIL(&on, on.way.events > before);
    loop_turn(on.loop, 0);
    assert_int_equal(on.way.events, before + 1); /* both in one */
    assert_has(last_event(&on.way), "notifications/tools/list_changed");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(handlers_are_checked),
        cmocka_unit_test(schemas_are_checked),
        cmocka_unit_test(uris_are_checked),
        cmocka_unit_test(prompt_arguments_are_checked),
        cmocka_unit_test(every_error_is_kept),
        cmocka_unit_test(null_is_taken),
        cmocka_unit_test(changes_before_serving_do_not_block_later_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
