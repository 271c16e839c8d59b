/* Defaults: what an instance lacks comes from its schema, and a default fits where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "schema/defaults.h"
#include "schema/schema.h"
#include "support/failing_memory.h"
#include "json/build.h"

static json_val parse(const char *text, json_doc *doc, arena *memory)
{
    assert_int_equal(json_parse(doc, str_of(text), NULL, memory, NULL), BAY_OK);
    return json_root(doc);
}

/* `expected` NULL: nothing is lacking. */
static void fill(const char *wanted, const char *instance, defaults_of which, const char *expected)
{
    arena memory;
    json_doc wanted_doc;
    json_doc instance_doc;
    json_builder made;
    json_val completed = JSON_NONE;
    arena_init(&memory, 1 << 20);
    json_val schema_root = parse(wanted, &wanted_doc, &memory);
    json_val given = parse(instance, &instance_doc, &memory);
    json_writer *out = json_builder_init(&made, NULL, 1 << 20);
    schema_put_defaults(schema_root, given, which, out);
    assert_int_equal(json_builder_view(&made, &completed), BAY_OK);
    const char *all = expected != NULL ? expected : instance;
    if (!str_eq(json_raw(completed), str_of(all))) {
        fail_msg("%.*s is not %s", BAY_STR(json_raw(completed)), all);
    }
    assert_int_equal(schema_lacks_default(schema_root, given, which), expected != NULL);
    json_builder_drop(&made);
    arena_fini(&memory);
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}"
#define ALL_KINDS                                                                                  \
    OBJECT("\"name\":{\"type\":\"string\",\"default\":\"J\\u00f6 \\\"D\\\"\",\"minLength\":2},"    \
           "\"age\":{\"type\":\"integer\",\"default\":30,\"minimum\":18},"                         \
           "\"score\":{\"type\":\"number\",\"default\":95.50},"                                    \
           "\"many\":{\"type\":\"array\",\"items\":{\"enum\":[\"r\",\"g\"]},\"default\":[\"r\"]}," \
           "\"sure\":{\"type\":\"boolean\",\"default\":false},"                                    \
           "\"none\":{\"type\":\"string\"}")                                                       \
    ",\"required\":[\"n\\u0061me\"]}"
#define BEHIND_AGE "\"score\":95.50,\"many\":[\"r\"],\"sure\":false}"

static void what_is_not_there_stays_absent(void **state)
{
    (void)state;
    fill("true", "{}", DEFAULTS_OF_ALL, NULL);
    fill("{}", "{\"a\":[1]}", DEFAULTS_OF_ALL, NULL);
    fill("{\"default\":{\"a\":1}}", "{}", DEFAULTS_OF_ALL, NULL); /* of the whole: it is there */
    fill("{\"properties\":7,\"items\":[1]}", "{\"a\":1}", DEFAULTS_OF_ALL, NULL);
    fill("{\"properties\":{\"a\":true,\"b\":{\"default\":1}}}", "[]", DEFAULTS_OF_ALL, NULL);
    fill("{\"properties\":{\"a\":{\"default\":1}}}", "\"a\"", DEFAULTS_OF_ALL, NULL);
    fill("{\"allOf\":[{\"properties\":{\"a\":{\"default\":1}}}]}", "{}", DEFAULTS_OF_ALL, NULL);
    fill("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"properties\":{\"a\":{\"default\":1}}}}}",
         "{}", DEFAULTS_OF_ALL, NULL);
    /* a parent that is absent has no members that could be */
    fill(OBJECT("\"o\":" OBJECT("\"a\":{\"default\":1}") "}") "}", "{}", DEFAULTS_OF_ALL, NULL);
}

static void what_is_required_is_missed_by_the_check(void **state)
{
    (void)state;
    fill(ALL_KINDS, "{}", DEFAULTS_OF_OPTIONAL, "{\"age\":30," BEHIND_AGE);
    fill(ALL_KINDS, "{}", DEFAULTS_OF_ALL,
         "{\"name\":\"J\\u00f6 \\\"D\\\"\",\"age\":30," BEHIND_AGE);
}

static void members_that_are_there_keep_their_bytes(void **state)
{
    (void)state;
    fill(ALL_KINDS, "{\"age\":1.8e1,\"n\\u0061me\":\"x\\u0079\"}", DEFAULTS_OF_ALL,
         "{\"age\":1.8e1,\"n\\u0061me\":\"x\\u0079\"," BEHIND_AGE);
    fill(ALL_KINDS, "{\"age\":null,\"name\":1,\"score\":[],\"many\":{},\"sure\":\"\"}",
         DEFAULTS_OF_ALL, NULL);
}

static void defaults_are_found_at_every_depth(void **state)
{
    (void)state;
    static const char nested[] = OBJECT("\"o\":" OBJECT("\"a\":{\"default\":1},\"p\":" OBJECT(
        "\"b\":{\"default\":2}") "}") "}"
                                      ",\"l\":{\"items\":" OBJECT(
                                          "\"c\":{\"default\":3}") "}}") "}";
    fill(nested, "{\"o\":{}}", DEFAULTS_OF_ALL, "{\"o\":{\"a\":1}}");
    fill(nested, "{\"o\":{\"a\":0,\"p\":{}}}", DEFAULTS_OF_ALL,
         "{\"o\":{\"a\":0,\"p\":{\"b\":2}}}");
    fill(nested, "{\"l\":[{},{\"c\":0},7]}", DEFAULTS_OF_ALL, "{\"l\":[{\"c\":3},{\"c\":0},7]}");
    fill(nested, "{\"l\":[{\"c\":0},7],\"x\":{}}", DEFAULTS_OF_ALL, NULL);
}

static void defaults_are_known_of(void **state)
{
    (void)state;
    static const struct {
        const char *root;
        bool has;
    } cases[] = {
        {"true", false},
        {"{\"default\":1}", false},
        {"{\"properties\":{\"a\":{}}}", false},
        {"{\"properties\":{\"a\":{\"default\":null}}}", true},
        {"{\"items\":{\"properties\":{\"a\":{\"default\":1}}}}", true},
        {"{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{\"default\":1}}}}}}", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        arena memory;
        json_doc doc;
        arena_init(&memory, 1 << 20);
        assert_int_equal(schema_has_defaults(parse(cases[i].root, &doc, &memory)), cases[i].has);
        arena_fini(&memory);
    }
}

/* `told` NULL: it is good. */
static void check(const char *root, bool with_choices, bay_err expected, const char *told)
{
    arena memory;
    json_doc doc;
    bay_diag diag = {0};
    arena_init(&memory, 1 << 20);
    assert_int_equal(schema_check_defaults(parse(root, &doc, &memory), with_choices, &diag),
                     expected);
    if (told != NULL && strstr(diag.text, told) == NULL) {
        fail_msg("\"%s\" does not say %s", diag.text, told);
    }
    arena_fini(&memory);
}

static void a_default_that_breaks_its_own_schema_is_told(void **state)
{
    (void)state;
    check(OBJECT("\"a\":{\"type\":\"string\",\"default\":1}") "}", false, BAY_ERR_INVALID,
          "the default of /a breaks its own schema: ");
    check(OBJECT("\"a\":{\"maximum\":5,\"default\":6}") "}", false, BAY_ERR_INVALID, "/a");
    check(OBJECT("\"a\":{\"items\":" OBJECT("\"b\":{\"enum\":[1],\"default\":2}") "}}") "}", false,
          BAY_ERR_INVALID, "the default of /a/0/b");
    check("{\"$defs\":{\"n\":{\"type\":\"integer\"}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\","
          "\"default\":\"x\"}}}",
          false, BAY_ERR_INVALID, "/a");
    check("{\"properties\":{\"b\":{\"type\":\"integer\"},\"a\":{\"$ref\":\"#/properties/b\","
          "\"default\":1}}}",
          false, BAY_ERR_UNSUPPORTED, "the default of /a cannot be checked by itself");
    check(OBJECT("\"a\":{\"maxLength\":1,\"enum\":[\"x\",\"yy\"]}") "}", true, BAY_ERR_INVALID,
          "a choice of /a");
    check(OBJECT("\"a\":{\"maxLength\":1,\"oneOf\":[{\"const\":\"yy\",\"title\":\"Y\"}]}") "}",
          true, BAY_ERR_INVALID, "a choice of /a");
}

static void good_defaults_are_good(void **state)
{
    (void)state;
    check("true", true, BAY_OK, NULL);
    check(ALL_KINDS, true, BAY_OK, NULL);
    check(OBJECT("\"a\":{\"maxLength\":1,\"enum\":[\"x\",\"yy\"]}") "}", false, BAY_OK, NULL);
    check("{\"$defs\":{\"n\":{\"type\":\"integer\"}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\","
          "\"default\":1}}}",
          false, BAY_OK, NULL);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    json_val root = parse(ALL_KINDS, &doc, &memory);
    json_val empty = json_empty_object();
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_diag diag = {0};
        json_builder made;
        json_val completed;
        bay_err err = schema_check_defaults(root, true, &diag);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        schema_put_defaults(root, empty, DEFAULTS_OF_ALL, json_builder_init(&made, NULL, 1 << 20));
        err = json_builder_view(&made, &completed);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        json_builder_drop(&made);
        failing_memory_check();
    }
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_stays_absent),
        cmocka_unit_test(what_is_required_is_missed_by_the_check),
        cmocka_unit_test(members_that_are_there_keep_their_bytes),
        cmocka_unit_test(defaults_are_found_at_every_depth),
        cmocka_unit_test(defaults_are_known_of),
        cmocka_unit_test(a_default_that_breaks_its_own_schema_is_told),
        cmocka_unit_test(good_defaults_are_good),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
