/* Tables of fields: what they become, what they must not say, and what a handler gets by them. */
#include "unit/sdk/sdk_bench.h"

#include "sdk/fields.h"
#include "support/failing_memory.h"

/* ---- contradictions -------------------------------------------------------------------------- */

static const char *const no_choices[] = {NULL};
static const char *const colours[] = {"red", "green", NULL};
static const char *const one_title[] = {"Red", NULL};
static const bay_field text_item = {.type = BAY_TYPE_STRING};
static const bay_field bad_item = {.type = BAY_TYPE_STRING, .min = "x"};
static const bay_field no_fields[] = {{0}};

static void a_table_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    static const struct {
        bay_field field;
        const char *told;
    } cases[] = {
        {{.name = "a", .type = (bay_type)99}, "has a type that is none"},
        {{.name = "a", .type = (bay_type)-1}, "has a type that is none"},
        {{"a", BAY_TYPE_INTEGER, .pattern = "x"}, "has a pattern, but is no string"},
        {{"a", BAY_TYPE_ARRAY, .format = "date"}, "has a format, but is no string"},
        {{"a", BAY_TYPE_BOOLEAN, .min = "1"}, "has min or max, but is no number, string or array"},
        {{"a", BAY_TYPE_OBJECT, .max = "1"}, "has min or max, but is no number, string or array"},
        {{"a", BAY_TYPE_NONE, .max = "1"}, "has min or max, but is no number, string or array"},
        {{"a", BAY_TYPE_STRING, .items = &text_item}, "has items, but is no array"},
        {{"a", BAY_TYPE_STRING, .fields = no_fields}, "has fields, but is no object"},
        {{"a", BAY_TYPE_OBJECT, .choices = colours}, "has choices, but is no string, number or"},
        {{"a", BAY_TYPE_STRING, .choices = no_choices}, "has choices, but not one"},
        {{"a", BAY_TYPE_STRING, .choice_titles = one_title},
         "has titles of choices, but no choices"},
        {{"a", BAY_TYPE_STRING, .choices = colours, .choice_titles = one_title},
         "has fewer titles than choices"},
        {{"a", BAY_TYPE_INTEGER, .min = "x"}, "has a bound that is no number"},
        {{"a", BAY_TYPE_INTEGER, .min = ""}, "has a bound that is no number"},
        {{"a", BAY_TYPE_INTEGER, .min = "1,\"x\":1"}, "has a bound that is no number"},
        {{"a", BAY_TYPE_INTEGER, .max = "\"1\""}, "has a bound that is no number"},
        {{"a", BAY_TYPE_STRING, .min = "-1"}, "has a min or max that is no count"},
        {{"a", BAY_TYPE_ARRAY, .max = "1.5"}, "has a min or max that is no count"},
        {{"a", BAY_TYPE_NUMBER, .min = "2", .max = "1.99"}, "has bounds that leave nothing"},
        {{"a", BAY_TYPE_STRING, .min = "1e1", .max = "9"}, "has bounds that leave nothing"},
        {{"a", BAY_TYPE_STRING, .above = "1"}, "has above or below, but is no number"},
        {{"a", BAY_TYPE_ARRAY, .below = "1"}, "has above or below, but is no number"},
        {{"a", BAY_TYPE_NUMBER, .above = "x"}, "has a bound that is no number"},
        {{"a", BAY_TYPE_NUMBER, .above = "1", .max = "1.0"}, "has bounds that leave nothing"},
        {{"a", BAY_TYPE_NUMBER, .min = "1", .below = "1"}, "has bounds that leave nothing"},
        {{"a", BAY_TYPE_NUMBER, .above = "1", .below = "1"}, "has bounds that leave nothing"},
        {{"a", BAY_TYPE_INTEGER, .default_value = "three"}, "has a default or a choice that is no"},
        {{"a", BAY_TYPE_INTEGER, .default_value = "1}"},
         "has a default or a choice that is no JSON"},
        {{"a", BAY_TYPE_INTEGER, .default_value = "1.5"},
         "the default of /a breaks its own schema"},
        {{"a", BAY_TYPE_INTEGER, .max = "5", .default_value = "6"}, "the default of /a breaks"},
        {{"a", BAY_TYPE_STRING, .choices = colours, .default_value = "blue"}, "the default of /a"},
        {{"a", BAY_TYPE_STRING, .pattern = "^x", .default_value = "y"}, "the default of /a"},
        {{"a", BAY_TYPE_STRING, .format = "date", .default_value = "soon"}, "the default of /a"},
        {{"a", BAY_TYPE_STRING, .max = "3", .choices = colours}, "a choice of /a breaks its own"},
        {{"a", BAY_TYPE_ARRAY, .items = &bad_item}, "the field \"\" has a bound that is no number"},
        {{"a", BAY_TYPE_STRING, .pattern = "("}, "a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_field table[] = {cases[i].field, {0}};
        bay_json *json = NULL;
        bay_diag diag = {0};
        bay_err err = sdk_fields_schema(table, FIELDS_OF_OBJECT, &json, &diag);
#ifdef BAY_NO_PATTERNS
        if (cases[i].field.pattern != NULL && err == BAY_OK) {
            bay_json_free(json);
            continue;
        }
#endif
        if (cases[i].field.pattern == NULL || i + 1 < ARRAY_LEN(cases)) {
            assert_true(err == BAY_ERR_INVALID || err == BAY_ERR_UNSUPPORTED);
            assert_null(json);
            if (strstr(diag.text, cases[i].told) == NULL) {
                fail_msg("case %zu: \"%s\" does not say %s", i, diag.text, cases[i].told);
            }
        }
        bay_json_free(json);
        /* by the public function it is an error of the JSON, and by a server one of registration */
        if (err != BAY_OK) {
            json = bay_fields_json(table);
            assert_int_equal(bay_json_error(json), err);
            bay_json_free(json);
        }
        bay_server *server = bay_server_new("s", "1");
        bay_server_tool(server, "t", "d", table, reply_ok, NULL);
        assert_int_equal(bay_server_check(server, NULL), BAY_ERR_INVALID);
        assert_int_equal(server->errors.count, 1);
        bay_server_free(server);
    }
}

static void a_table_that_holds_itself_ends(void **state)
{
    (void)state;
    static const bay_field self[] = {{.name = "again", .type = BAY_TYPE_OBJECT, .fields = self},
                                     {0}};
    static const bay_field items = {.type = BAY_TYPE_ARRAY, .items = &items};
    bay_json *json = NULL;
    bay_diag diag = {0};
    assert_int_equal(sdk_fields_schema(self, FIELDS_OF_OBJECT, &json, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "does one hold itself?"));
    const bay_field table[] = {{.name = "a", .type = BAY_TYPE_ARRAY, .items = &items}, {0}};
    assert_int_equal(sdk_fields_schema(table, FIELDS_OF_OBJECT, &json, &diag), BAY_ERR_INVALID);
    bay_field *many = calloc(FIELDS_MAX + 2, sizeof(*many));
    char(*names)[8] = calloc(FIELDS_MAX + 1, sizeof(*names));
    for (size_t i = 0; i <= FIELDS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "f%zu", i);
        many[i] = (bay_field){.name = names[i], .type = BAY_TYPE_STRING};
    }
    assert_int_equal(sdk_fields_schema(many, FIELDS_OF_OBJECT, &json, &diag), BAY_ERR_INVALID);
    many[FIELDS_MAX].name = NULL;
    assert_int_equal(sdk_fields_schema(many, FIELDS_OF_OBJECT, &json, &diag), BAY_OK);
    bay_json_free(json);
    free(names);
    free(many);
}

static void forms_are_flat(void **state)
{
    (void)state;
    static const bay_field bad[] = {
        {.name = "a", .type = BAY_TYPE_OBJECT},
        {.name = "a", .type = BAY_TYPE_NONE},
        {.name = "a", .type = BAY_TYPE_NULL},
        {.name = "a", .type = BAY_TYPE_ARRAY},
        {.name = "a", .type = BAY_TYPE_ARRAY, .items = &text_item},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_field table[] = {bad[i], {0}};
        bay_json *json = NULL;
        bay_diag diag = {0};
        assert_int_equal(sdk_fields_schema(table, FIELDS_OF_FORM, &json, &diag), BAY_ERR_INVALID);
        assert_non_null(strstr(diag.text, "is in a form"));
        assert_int_equal(sdk_fields_schema(table, FIELDS_OF_OBJECT, &json, &diag), BAY_OK);
        bay_json_free(json);
    }
}

/* ---- rendering ------------------------------------------------------------------------------- */

static const char *const sizes[] = {"1", "2.50", NULL};
static const char *const titles[] = {"Red", "Green \"too\"", NULL};

static const bay_field everything[] = {
    {"city", BAY_TYPE_STRING, "Name \"of\" it", true, .min = "1", .max = "80", .pattern = "^[A-Z]",
     .title = "City", .header = "City"},
    {"day", BAY_TYPE_STRING, .format = "date", .default_value = "2026-01-31"},
    {"days", BAY_TYPE_INTEGER, .min = "0", .max = "9223372036854775808", .default_value = "3"},
    {"size", BAY_TYPE_NUMBER, .choices = sizes, .above = "0", .below = "1e3"},
    {"colour", BAY_TYPE_STRING, .choices = colours, .choice_titles = titles},
    {"sure", BAY_TYPE_BOOLEAN, .default_value = "false"},
    {"nothing", BAY_TYPE_NULL, "d", .default_value = "null"},
    {"any", .description = "Anything", .default_value = "{\"a\":[1]}"},
    {"object", BAY_TYPE_OBJECT, "Any object", .default_value = "{}"},
    {"place", BAY_TYPE_OBJECT, "d", true,
     .fields = (const bay_field[]){{.name = "x", .type = BAY_TYPE_NUMBER, .is_required = true},
                                   {.name = "y", .type = BAY_TYPE_NUMBER, .default_value = "0"},
                                   {0}}},
    {"tags", BAY_TYPE_ARRAY, .min = "1", .max = "3",
     .items = &(const bay_field){.type = BAY_TYPE_STRING, .choices = colours},
     .default_value = "[\"red\"]"},
    {"rows", BAY_TYPE_ARRAY,
     .items = &(const bay_field){.type = BAY_TYPE_ARRAY, .items = &text_item}},
    {0},
};

static void a_table_becomes_json_schema(void **state)
{
    (void)state;
    static const char expected[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"city\":{\"type\":\"string\",\"title\":\"City\",\"description\":\"Name \\\"of\\\" it\","
        "\"minLength\":1,\"maxLength\":80,\"pattern\":\"^[A-Z]\",\"x-mcp-header\":\"City\"},"
        "\"day\":{\"type\":\"string\",\"format\":\"date\",\"default\":\"2026-01-31\"},"
        "\"days\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9223372036854775808,"
        "\"default\":3},"
        "\"size\":{\"type\":\"number\",\"enum\":[1,2.50],\"exclusiveMinimum\":0,"
        "\"exclusiveMaximum\":1e3},"
        "\"colour\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"red\",\"title\":\"Red\"},"
        "{\"const\":\"green\",\"title\":\"Green \\\"too\\\"\"}]},"
        "\"sure\":{\"type\":\"boolean\",\"default\":false},"
        "\"nothing\":{\"type\":\"null\",\"description\":\"d\",\"default\":null},"
        "\"any\":{\"description\":\"Anything\",\"default\":{\"a\":[1]}},"
        "\"object\":{\"type\":\"object\",\"description\":\"Any object\",\"default\":{}},"
        "\"place\":{\"type\":\"object\",\"description\":\"d\",\"properties\":{"
        "\"x\":{\"type\":\"number\"},\"y\":{\"type\":\"number\",\"default\":0}},"
        "\"required\":[\"x\"],\"additionalProperties\":false},"
        "\"tags\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,\"items\":{\"type\":\"string\","
        "\"enum\":[\"red\",\"green\"]},\"default\":[\"red\"]},"
        "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}"
        "}}"
        "},\"required\":[\"city\",\"place\"],\"additionalProperties\":false}";
    bay_json *json = bay_fields_json(everything);
    assert_int_equal(bay_json_error(json), BAY_OK);
    if (!bay_str_eq_c(bay_json_view(json), expected)) {
        fail_msg("%.*s", BAY_STR(bay_json_view(json)));
    }
    bay_json_free(json);
    json = bay_fields_json(NULL);
    assert_true(bay_str_eq_c(bay_json_view(json), "{\"type\":\"object\",\"properties\":{},"
                                                  "\"additionalProperties\":false}"));
    bay_json_free(json);
}

static void forms_have_the_words_of_their_revision(void **state)
{
    (void)state;
    const bay_field form[] = {
        {"colour", BAY_TYPE_STRING, .choices = colours, .choice_titles = titles},
        {"several", BAY_TYPE_ARRAY,
         .items = &(const bay_field){.type = BAY_TYPE_STRING,
                                     .choices = colours,
                                     .choice_titles = titles}},
        {0}};
    bay_json *json = NULL;
    bay_diag diag = {0};
    assert_int_equal(sdk_fields_schema(form, FIELDS_OF_FORM, &json, &diag), BAY_OK);
    assert_true(bay_str_eq_c(
        bay_json_view(json),
        "{\"type\":\"object\",\"properties\":{\"colour\":{\"type\":\"string\",\"oneOf\":["
        "{\"const\":\"red\",\"title\":\"Red\"},{\"const\":\"green\",\"title\":\"Green "
        "\\\"too\\\"\"}]},\"several\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"anyOf\":"
        "["
        "{\"const\":\"red\",\"title\":\"Red\"},{\"const\":\"green\",\"title\":\"Green "
        "\\\"too\\\"\"}]}}}}"));
    bay_json_free(json);
    assert_int_equal(sdk_fields_schema(form, FIELDS_OF_OLD_FORM, &json, &diag), BAY_OK);
    assert_non_null(memmem(bay_json_view(json).at, bay_json_view(json).len,
                           "\"enum\":[\"red\",\"green\"],\"enumNames\":[\"Red\",", 41));
    bay_json_free(json);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static char seen[512];

static void say_arguments(bay_call *call, void *user)
{
    (void)user;
    snprintf(seen, sizeof(seen), "%.*s", BAY_STR(bay_call_arguments(call)));
    bay_call_replyf(call, "%lld", (long long)bay_call_int_or(call, "days", -1));
}

static const bay_field forecast[] = {
    {"city", BAY_TYPE_STRING, "d", true, .default_value = "never applied"},
    {"days", BAY_TYPE_INTEGER, "d", .min = "1", .max = "14", .default_value = "3"},
    {"place", BAY_TYPE_OBJECT, "d",
     .fields = (const bay_field[]){{"y", BAY_TYPE_NUMBER, "d", .default_value = "0.50"}, {0}}},
    {"note", BAY_TYPE_STRING, "d", .is_required = false},
    {0},
};

static void a_call_gets_the_defaults_that_it_lacks(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        const char *handler;
    } cases[] = {
        {"{\"city\":\"a\"}", "{\"city\":\"a\",\"days\":3}"},
        {"{\"days\":1e0,\"city\":\"\\u0061\"}", "{\"days\":1e0,\"city\":\"\\u0061\"}"},
        {"{\"city\":\"a\",\"place\":{}}", "{\"city\":\"a\",\"place\":{\"y\":0.50},\"days\":3}"},
        {"{\"city\":\"a\",\"place\":{\"y\":1},\"days\":2}",
         "{\"city\":\"a\",\"place\":{\"y\":1},\"days\":2}"},
    };
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool(server, "f", "d", forecast, say_arguments, NULL);
    bay_tool *tool = bay_server_tool_schema(
        server, "g", "d",
        "{\"type\":\"object\",\"properties\":{\"days\":{\"type\":\"integer\",\"default\":5}}}",
        say_arguments, NULL);
    bay_tool_apply_defaults(tool);
    bay_server_tool_schema(server, "h", "d",
                           "{\"type\":\"object\",\"properties\":{\"days\":{"
                           "\"default\":5}}}",
                           say_arguments, NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char params[256];
        snprintf(params, sizeof(params), "\"name\":\"f\",\"arguments\":%s", cases[i].arguments);
        assert_has(rig_ask(&on, "tools/call", params), "\"content\":[{\"type\":\"text\"");
        assert_string_equal(seen, cases[i].handler);
    }
    assert_has(rig_ask(&on, "tools/call", "\"name\":\"f\",\"arguments\":{}"), "\"isError\":true");
    assert_has(
        rig_ask(&on, "tools/call", "\"name\":\"f\",\"arguments\":{\"city\":\"a\",\"dais\":1}"),
        "\"isError\":true"); /* a misspelt argument is not left to its default */
    assert_has(
        rig_ask(&on, "tools/call", "\"name\":\"f\",\"arguments\":{\"city\":\"a\",\"days\":15}"),
        "\"isError\":true");
    (void)rig_ask(&on, "tools/call", "\"name\":\"g\"");
    assert_string_equal(seen, "{\"days\":5}");
    (void)rig_ask(&on, "tools/call", "\"name\":\"h\"");
    assert_string_equal(seen, "{}"); /* a hand-written schema's only where that was said */
    rig_stop(&on);
}

/* A small call may lack a large default many times. */
static void defaults_have_the_bound_of_a_call(void **state)
{
    (void)state;
    enum { ITEMS = 10000 };
    static char text[8001];
    static char params[ITEMS * 3 + 100];
    memset(text, 'x', sizeof(text) - 1);
    const bay_field fields[] = {{"text", BAY_TYPE_STRING, .default_value = text}, {0}};
    const bay_field item = {.type = BAY_TYPE_OBJECT, .fields = fields};
    const bay_field input[] = {{"list", BAY_TYPE_ARRAY, .items = &item}, {0}};
    buf to = {.at = params, .cap = sizeof(params), .max = sizeof(params)};
    buf_lit(&to, "\"name\":\"t\",\"arguments\":{\"list\":[{}");
    for (int i = 1; i < ITEMS; i++) {
        buf_lit(&to, ",{}");
    }
    buf_lit(&to, "]}");
    buf_char(&to, '\0');
    assert_int_equal(to.err, BAY_OK);
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool(server, "t", "d", input, reply_ok, NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    const char *answer = rig_ask(&on, "tools/call", params);
    assert_has(answer, "\"code\":-32603");
    assert_has(answer, "The arguments with their defaults are larger than a call may be");
    assert_has(rig_ask(&on, "tools/call", "\"name\":\"t\",\"arguments\":{\"list\":[{}]}"),
               "\"text\":\"ok\"");
    rig_stop(&on);
}

static void bad_defaults_of_a_schema_are_told(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(
        server, "t", "d",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":5}}}",
        reply_ok, NULL);
    assert_int_equal(bay_server_check(server, NULL), BAY_OK); /* it is only an annotation */
    bay_tool_apply_defaults(tool);
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, "tool \"t\": the default of /a breaks its own schema");
    bay_server_free(server);
    bay_tool_apply_defaults(NULL);
}

static const char *const moods[] = {"dry", "dreary", "sunny", NULL};

static void say_mood(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply_str(call, bay_call_str(call, "mood"));
}

static void choices_of_a_prompt_are_completed(void **state)
{
    (void)state;
    static const bay_field arguments[] = {{"mood", BAY_TYPE_STRING, "How", .choices = moods,
                                           .default_value = "sunny", .title = "Mood"},
                                          {"city", BAY_TYPE_STRING, "Where", .is_required = true},
                                          {0}};
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_server_prompt(server, "p", "d", arguments, say_mood, NULL);
    rig_start(&on, server);
    rig_client(&on, "2026-07-28");
    assert_has(rig_ask(&on, "server/discover", ""), "\"completions\":{}");
    rig_client(&on, "2025-11-25");
    assert_has(rig_ask(&on, "prompts/list", ""),
               "\"arguments\":[{\"name\":\"mood\",\"title\":\"Mood\",\"description\":\"How\"},"
               "{\"name\":\"city\",\"description\":\"Where\",\"required\":true}]");
#define COMPLETE(argument, value)                                                                  \
    rig_ask(&on, "completion/complete",                                                            \
            "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{\"name\":\"" argument  \
            "\",\"value\":\"" value "\"}")
    assert_has(COMPLETE("mood", "dr"), "{\"values\":[\"dry\",\"dreary\"],\"total\":2,");
    assert_has(COMPLETE("mood", ""), "{\"values\":[\"dry\",\"dreary\",\"sunny\"],\"total\":3,");
    assert_has(COMPLETE("mood", "x"), "{\"values\":[],\"total\":0,");
    assert_has(COMPLETE("city", "x"), "Nothing to complete for");
    assert_has(COMPLETE("m\\u006fod", "x"), "Nothing to complete for");
    assert_has(rig_ask(&on, "prompts/get", "\"name\":\"p\",\"arguments\":{\"city\":\"a\"}"),
               "\"text\":\"sunny\"");
    assert_has(rig_ask(&on, "prompts/get",
                       "\"name\":\"p\",\"arguments\":{\"city\":\"a\",\"mood\":\"wet\"}"),
               "-32602");
    assert_has(rig_ask(&on, "prompts/get", "\"name\":\"p\",\"arguments\":{\"city\":\"a\",\"x\":1}"),
               "-32602");
    rig_stop(&on);
}

static const char *given;

static void give_structured(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply_json(call, bay_json_of(given));
}

static void output_is_checked_by_a_table(void **state)
{
    (void)state;
    static const bay_field output[] = {{"n", BAY_TYPE_INTEGER, "d", .is_required = true}, {0}};
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool(server, "t", "d", NULL, give_structured, NULL);
    bay_tool_output(tool, output);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    static const struct {
        const char *json;
        const char *answer;
    } cases[] = {
        {"{\"n\":1}", "\"structuredContent\":{\"n\":1}"},
        {"{\"n\":1,\"admin\":true}", "The tool's output breaks its schema"},
        {"{}", "The tool's output breaks its schema"},
        {"[1]", "The tool's output breaks its schema"},
        {"[", "The handler's structured content is no JSON\""},
        {"{\"n\":1,\"n\":2}", "The handler's structured content is no JSON\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        given = cases[i].json;
        assert_has(rig_ask(&on, "tools/call", "\"name\":\"t\""), cases[i].answer);
    }
    rig_stop(&on);
}

/* SEP-2106. Clients before 2026-07-28 know neither such a schema nor its results; they have the text. */
static void output_may_be_any_json(void **state)
{
    (void)state;
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool(server, "list", "d", NULL, give_structured, NULL);
    bay_tool_output_schema(tool, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}");
    bay_server_tool(server, "free", "d", NULL, give_structured, NULL);
    rig_start(&on, server);
    static const char *const values[] = {"[1,2]", "[]",   "7",          "\"x\"",
                                         "true",  "null", "{\"n\":1.0}"};
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        bool is_known = strcmp(all_revisions[i], "2026-07-28") == 0;
        rig_client(&on, all_revisions[i]);
        bool has_schema = strstr(rig_ask(&on, "tools/list", ""), "\"outputSchema\"") != NULL;
        assert_int_equal(has_schema, is_known);
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            char wanted[64];
            (void)snprintf(wanted, sizeof(wanted), "\"structuredContent\":%s", values[k]);
            given = values[k];
            const char *said = rig_ask(&on, "tools/call", "\"name\":\"free\"");
            bool is_object = values[k][0] == '{' && strcmp(all_revisions[i], "2025-06-18") >= 0;
            assert_has(said, "\"content\":[{\"type\":\"text\",\"text\":\"");
            assert_int_equal(strstr(said, wanted) != NULL, is_known || is_object);
            assert_int_equal(strstr(said, "structuredContent") != NULL, is_known || is_object);
            said = rig_ask(&on, "tools/call", "\"name\":\"list\"");
            assert_has(said, k < 2 ? "\"text\":\"[" : "The tool's output breaks its schema");
        }
    }
    rig_stop(&on);
}

/* ---- memory, NULL ---------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_server *server = bay_server_new("s", "1");
        bay_tool *tool = bay_server_tool(server, "t", "d", everything, reply_ok, NULL);
        bay_tool_output(tool, everything);
        bay_tool_output_schema_json(tool, bay_fields_json(everything));
        bay_server_tool_schema_json(server, "u", "d", bay_fields_json(everything), reply_ok, NULL);
        bay_server_prompt(server, "p", "d",
                          (const bay_field[]){{"m", BAY_TYPE_STRING, "d", .choices = moods}, {0}},
                          reply_ok, NULL);
        bay_diag diag = {0};
        bay_err err = bay_server_check(server, &diag);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        bay_server_free(server);
        failing_memory_check();
    }
}

static void nothing_is_taken_of_null(void **state)
{
    (void)state;
    assert_null(bay_server_tool(NULL, "t", "d", everything, reply_ok, NULL));
    assert_null(bay_server_tool_schema_json(NULL, "t", "d", bay_json_new(), reply_ok, NULL));
    assert_null(bay_server_prompt(NULL, "p", "d", everything, reply_ok, NULL));
    bay_tool_output(NULL, everything);
    bay_tool_output_schema_json(NULL, bay_json_new());
    bay_server *server = bay_server_new("s", "1");
    assert_non_null(bay_server_tool_schema_json(server, "t", "d", bay_json_new(), reply_ok, NULL));
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, "tool \"t\": the input schema: it is not whole");
    bay_server_free(server);
}

static char warned[1024];

static void note_warning(bay_log_level level, const char *component, const char *text, void *user)
{
    (void)component;
    (void)user;
    assert_int_equal(level, BAY_LOG_LEVEL_WARNING);
    strncat(warned, text, sizeof(warned) - strlen(warned) - 1);
}

static void a_word_that_means_nothing_is_a_warning(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(
        server, "t", "d", "{\"type\":\"object\",\"propertis\":{}}", reply_ok, NULL);
    bay_tool_output_schema(tool, "{\"type\":\"object\",\"requird\":[]}");
    bay_server_tool(server, "u", "d", everything, reply_ok, NULL);
    bay_server_log_to(server, BAY_LOG_LEVEL_DEBUG, note_warning, NULL);
    assert_int_equal(bay_server_check(server, NULL), BAY_OK);
    assert_has(warned,
               "tool \"t\": the input schema: it has the unknown word \"propertis\"; did you "
               "mean \"properties\"?");
    assert_has(warned, "tool \"t\": the output schema: it has the unknown word \"requird\"");
    assert_null(strstr(warned, "tool \"u\""));
    bay_server_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_contradicts_itself_is_refused),
        cmocka_unit_test(a_table_that_holds_itself_ends),
        cmocka_unit_test(forms_are_flat),
        cmocka_unit_test(a_table_becomes_json_schema),
        cmocka_unit_test(forms_have_the_words_of_their_revision),
        cmocka_unit_test(a_call_gets_the_defaults_that_it_lacks),
        cmocka_unit_test(defaults_have_the_bound_of_a_call),
        cmocka_unit_test(bad_defaults_of_a_schema_are_told),
        cmocka_unit_test(choices_of_a_prompt_are_completed),
        cmocka_unit_test(output_is_checked_by_a_table),
        cmocka_unit_test(output_may_be_any_json),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(nothing_is_taken_of_null),
        cmocka_unit_test(a_word_that_means_nothing_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
