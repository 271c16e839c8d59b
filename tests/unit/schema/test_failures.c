/* What a caller is told: path, rule, and a sentence that a model can act on. */
#include "case.h"

typedef struct telling {
    const char *text;
    const char *instance;
    const char *path;
    const char *rule;
    const char *says;
} telling;

#define TOOL                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"limit\":{\"type\":\"integer\",\"minimum\":1},"         \
    "\"units\":{\"enum\":[\"metric\",\"imperial\"]},\"city\":{\"type\":\"string\"}},"              \
    "\"required\":[\"city\"],\"additionalProperties\":false}"

static const telling tellings[] = {
    {TOOL, "{\"city\":\"A\",\"limit\":\"ten\"}", "/limit", "/properties/limit/type",
     "/limit must be an integer, got a string (\"ten\")"},
    {TOOL, "{\"city\":\"A\",\"limit\":1.5}", "/limit", "/properties/limit/type",
     "/limit must be an integer, got a number (1.5)"},
    {TOOL, "{\"city\":\"A\",\"limit\":0}", "/limit", "/properties/limit/minimum",
     "/limit must be at least 1, got 0"},
    {TOOL, "{\"city\":\"A\",\"units\":\"kelvin\"}", "/units", "/properties/units/enum",
     "/units must be one of \"metric\", \"imperial\"; got a string (\"kelvin\")"},
    {TOOL, "{}", "", "/required", "the value lacks the required property \"city\""},
    {TOOL, "{\"city\":\"A\",\"limt\":1}", "", "/additionalProperties",
     "the value has the unknown property \"limt\"; did you mean \"limit\"?"},
    {TOOL, "{\"city\":\"A\",\"LIMIT\":1}", "", "/additionalProperties",
     "the value has the unknown property \"LIMIT\"; did you mean \"limit\"?"},
    {TOOL, "{\"city\":\"A\",\"colour\":1}", "", "/additionalProperties",
     "the value has the unknown property \"colour\"; it may have \"limit\", \"units\", \"city\""},
    {TOOL, "[]", "", "/type", "the value must be an object, got an array ([])"},
    {"false", "1", "", "", "the value is not allowed here"},
    {"{\"properties\":{\"a/b~\":false}}", "{\"a/b~\":1}", "/a~1b~0", "/properties/a~1b~0",
     "/a~1b~0 is not allowed here"},
    {"{\"type\":[\"string\",\"null\",\"integer\"]}", "true", "", "/type",
     "the value must be a string, an integer or null, got a boolean (true)"},
    {"{\"const\":{\"a\":1}}", "null", "", "/const", "the value must be {\"a\":1}, got null"},
    {"{\"pattern\":\"^[a-z]+$\"}", "\"A\"", "", "/pattern",
     "the value must match the pattern \"^[a-z]+$\", got a string (\"A\")"},
    {"{\"pattern\":\"a\"}", "\"\\ud800\"", "", "/pattern",
     "the value must match the pattern \"a\", got a string (\"\\ud800\")"},
    {"{\"minLength\":2}", "\"\\u00e9\"", "", "/minLength",
     "the value must have at least 2 characters, has 1"},
    {"{\"maxLength\":1}", "\"ab\"", "", "/maxLength",
     "the value must have at most 1 character, has 2"},
    {"{\"format\":\"date\"}", "\"today\"", "", "/format",
     "the value must be a date such as 2026-01-31, got a string (\"today\")"},
    {"{\"maximum\":3}", "4e0", "", "/maximum", "the value must be at most 3, got 4e0"},
    {"{\"exclusiveMaximum\":3}", "3.0", "", "/exclusiveMaximum",
     "the value must be less than 3, got 3.0"},
    {"{\"exclusiveMinimum\":0}", "0", "", "/exclusiveMinimum",
     "the value must be greater than 0, got 0"},
    {"{\"multipleOf\":0.01}", "0.015", "", "/multipleOf",
     "the value must be a multiple of 0.01, got 0.015"},
    {"{\"minItems\":2}", "[1]", "", "/minItems", "the value must hold at least 2 items, holds 1"},
    {"{\"maxItems\":1}", "[1,2]", "", "/maxItems", "the value must hold at most 1 item, holds 2"},
    {"{\"uniqueItems\":true}", "[1,2,1.0]", "", "/uniqueItems",
     "the value must not hold a value twice, but items 0 and 2 are equal"},
    {"{\"contains\":{\"type\":\"null\"}}", "[1]", "", "/contains",
     "the value must hold at least 1 item(s) that match {\"type\":\"null\"}, holds 0"},
    {"{\"items\":{\"items\":{\"type\":\"null\"}}}", "[[],[null,7]]", "/1/1", "/items/items/type",
     "/1/1 must be null, got an integer (7)"},
    {"{\"maxProperties\":1}", "{\"a\":1,\"b\":2}", "", "/maxProperties",
     "the value must have at most 1 property, has 2"},
    {"{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "", "/propertyNames/maxLength",
     "the property name \"ab\" in the value must have at most 1 character, has 2"},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "/dependentRequired/a",
     "the value has \"a\", so it must have \"b\" too"},
    {"{\"not\":{\"type\":\"null\"}}", "null", "", "/not",
     "the value must not match {\"type\":\"null\"}"},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"},{\"minimum\":2}]}", "3", "",
     "/oneOf",
     "the value must match exactly one of the 3 alternatives, but matches numbers 1 and 3"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "\"a\"", "", "/anyOf",
     "the value must be an integer or null, got a string (\"a\")"},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"maxLength\":1}]}", "\"ab\"", "",
     "/anyOf/1/maxLength", "the value must have at most 1 character, has 2"},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/s\"}],\"$defs\":{\"s\":{\"type\":"
     "\"string\",\"maxLength\":1}}}",
     "\"ab\"", "", "/$defs/s/maxLength", "the value must have at most 1 character, has 2"},
    {"{\"anyOf\":[{\"minLength\":3},{\"pattern\":\"b\"}]}", "\"a\"", "", "/anyOf",
     "the value matches none of the 2 alternatives:"},
    {"{\"properties\":{\"a\":{}},\"unevaluatedProperties\":false}", "{\"a\":1,\"b\":2}", "",
     "/unevaluatedProperties", "the value has the unknown property \"b\""},
    {"{\"prefixItems\":[{}],\"unevaluatedItems\":false}", "[1,2]", "/1", "/unevaluatedItems",
     "/1 is not allowed here"},
    {"{\"$id\":\"https://x/s\",\"type\":\"null\"}", "1", "", "/type",
     "the value must be null, got an integer (1)"},
};

static void sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(tellings) / sizeof(tellings[0]); i++) {
        const telling *one = &tellings[i];
        schema_failures failures;
        assert_int_equal(check_once(one->text, one->instance, &failures), BAY_ERR_INVALID);
        assert_true(failures.count >= 1);
        assert_string_equal(failures.item[0].text.at, one->says);
        assert_string_equal(failures.item[0].path.at, one->path);
        assert_string_equal(failures.item[0].rule.at, one->rule);
        assert_int_equal(failures.item[0].text.len, strlen(one->says));
    }
}

static void all_of_them_are_told(void **state)
{
    (void)state;
    schema_failures failures;
    assert_int_equal(
        check_once(TOOL, "{\"limit\":\"ten\",\"units\":1,\"unit\":\"metric\"}", &failures),
        BAY_ERR_INVALID);
    buf out;
    buf_init(&out, 4096);
    schema_failures_print(&failures, &out);
    buf_char(&out, '\0');
    assert_string_equal(out.at,
                        "/limit must be an integer, got a string (\"ten\")\n"
                        "/units must be one of \"metric\", \"imperial\"; got an integer (1)\n"
                        "the value has the unknown property \"unit\"; did you mean \"units\"?\n"
                        "the value lacks the required property \"city\"");
    buf_fini(&out);
}

static void they_are_bounded(void **state)
{
    (void)state;
    schema_failures failures;
    assert_int_equal(
        check_once("{\"items\":{\"type\":\"null\"}}", "[1,2,3,4,5,6,7,8,9,10,11,12]", &failures),
        BAY_ERR_INVALID);
    assert_int_equal(failures.count, SCHEMA_MAX_FAILURES);
    assert_true(failures.is_cut);
    buf out;
    buf_init(&out, 4096);
    schema_failures_print(&failures, &out);
    assert_true(str_ends(buf_view(&out), STR("(there is more)")));
    buf_fini(&out);
}

/* Long names and values at every place: cut, between characters, and never beyond the room. */
static void long_values_are_cut(void **state)
{
    (void)state;
    buf instance;
    buf_init(&instance, 1U << 20);
    buf_lit(&instance, "{\"");
    for (int i = 0; i < 5000; i++) {
        buf_lit(&instance, "\xc3\xa9");
    }
    buf_lit(&instance, "\":\"");
    for (int i = 0; i < 5000; i++) {
        buf_lit(&instance, "\xe2\x82\xac");
    }
    buf_lit(&instance, "\"}");
    buf_char(&instance, '\0');
    schema_failures failures;
    assert_int_equal(
        check_once("{\"additionalProperties\":{\"type\":\"null\"}}", instance.at, &failures),
        BAY_ERR_INVALID);
    assert_int_equal(failures.count, 1);
    assert_true(failures.used <= SCHEMA_FAILURE_BYTES);
    assert_true(failures.item[0].text.len < 600);
    assert_true(failures.is_cut); /* the path is whole or it is none */
    buf_fini(&instance);
}

static void a_reused_state_says_the_same(void **state)
{
    (void)state;
    schema *compiled = must_compile(TOOL);
    schema_state scratch;
    schema_failures failures;
    schema_state_init(&scratch);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1U << 20);
    assert_int_equal(json_parse(&doc, STR("{\"city\":7}"), NULL, &memory, NULL), BAY_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(schema_check(compiled, json_root(&doc), &scratch, &failures),
                         BAY_ERR_INVALID);
        assert_int_equal(failures.count, 1);
        assert_string_equal(failures.item[0].text.at, "/city must be a string, got an integer (7)");
    }
    assert_int_equal(schema_check(compiled, JSON_NONE, &scratch, NULL), BAY_ERR_INVALID);
    arena_fini(&memory);
    schema_state_fini(&scratch);
    schema_free(compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(all_of_them_are_told),
        cmocka_unit_test(they_are_bounded),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(a_reused_state_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
