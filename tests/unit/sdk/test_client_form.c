/* Forms: what the person left out comes from the schema, what breaks it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "sdk/client_form.h"
#include "json/build.h"

static json_val parse(const char *text, json_doc *doc, arena *memory)
{
    assert_int_equal(json_parse(doc, str_of(text), NULL, memory, NULL), BAY_OK);
    return json_root(doc);
}

/* `breaks`: what the diagnosis names; NULL: the form is fine. */
static void check(const char *wanted, const char *content, const char *expected, const char *breaks)
{
    arena memory;
    json_doc wanted_doc, content_doc;
    schema *compiled = NULL;
    bay_diag diag = {0};
    json_builder made;
    json_val completed = JSON_NONE;
    arena_init(&memory, 1 << 20);
    json_writer *out = json_builder_init(&made, NULL, 1 << 20);
    json_val form = parse(wanted, &wanted_doc, &memory);
    json_val given = content != NULL ? parse(content, &content_doc, &memory) : JSON_NONE;
    assert_int_equal(form_complete(form, given, &memory, out), BAY_OK);
    assert_int_equal(json_builder_view(&made, &completed), BAY_OK);
    if (!str_eq(json_raw(completed), str_of(expected))) {
        fail_msg("%.*s is not %s", BAY_STR(json_raw(completed)), expected);
    }
    assert_int_equal(schema_compile(form, NULL, &compiled, &diag), BAY_OK);
    assert_int_equal(form_check(compiled, completed, &diag),
                     breaks == NULL ? BAY_OK : BAY_ERR_INVALID);
    if (breaks != NULL && strstr(diag.text, breaks) == NULL) {
        fail_msg("\"%s\" does not name %s", diag.text, breaks);
    }
    schema_free(compiled);
    json_builder_drop(&made);
    arena_fini(&memory);
}

#define ALL_KINDS                                                                                  \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"name\":{\"type\":\"string\",\"default\":\"J\\u00f6 \\\"D\\\"\",\"minLength\":2},"           \
    "\"age\":{\"type\":\"integer\",\"default\":30,\"minimum\":18},"                                \
    "\"score\":{\"type\":\"number\",\"default\":95.50},"                                           \
    "\"plain\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"default\":\"a\"},"                    \
    "\"titled\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"#F00\",\"title\":\"Red\"}],"          \
    "\"default\":\"#F00\"},"                                                                       \
    "\"old\":{\"type\":\"string\",\"enum\":[\"x\"],\"enumNames\":[\"The x\"],\"default\":\"x\"},"  \
    "\"many\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]},"         \
    "\"minItems\":1,\"maxItems\":2,\"default\":[\"r\",\"g\"]},"                                    \
    "\"some\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"r\",\"title\":\"R\"}]},"      \
    "\"default\":[\"r\"]},"                                                                        \
    "\"sure\":{\"type\":\"boolean\",\"default\":false},"                                           \
    "\"mail\":{\"type\":\"string\",\"format\":\"email\"},"                                         \
    "\"none\":{\"type\":\"string\"}},\"required\":[\"name\"]}"

#define DEFAULTS_BEHIND_AGE                                                                        \
    "\"score\":95.50,\"plain\":\"a\",\"titled\":\"#F00\",\"old\":\"x\",\"many\":[\"r\",\"g\"],"    \
    "\"some\":[\"r\"],\"sure\":false}"

static void what_breaks_the_schema_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *form;
        const char *breaks;
    } cases[] = {
        {"{\"name\":\"x\",\"age\":18}", "{\"name\":\"x\",\"age\":18," DEFAULTS_BEHIND_AGE, "/name"},
        {"{\"name\":\"xy\",\"age\":17}", "{\"name\":\"xy\",\"age\":17," DEFAULTS_BEHIND_AGE,
         "/age"},
        {"{\"name\":\"xy\",\"age\":\"18\"}", "{\"name\":\"xy\",\"age\":\"18\"," DEFAULTS_BEHIND_AGE,
         "/age"},
        {"{\"name\":null,\"age\":18}", "{\"name\":null,\"age\":18," DEFAULTS_BEHIND_AGE, "/name"},
        {"{\"name\":\"xy\",\"age\":18,\"mail\":\"no\"}",
         "{\"name\":\"xy\",\"age\":18,\"mail\":\"no\"," DEFAULTS_BEHIND_AGE, "/mail"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(ALL_KINDS, cases[i].content, cases[i].form, cases[i].breaks);
    }
    check("{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"x\"]}}}", "{\"a\":\"y\"}",
          "{\"a\":\"y\"}", "/a");
    check("{\"type\":\"object\",\"properties\":{},\"required\":[\"b\"]}", NULL, "{}", "b");
    /* a default that is none */
    check("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":1}}}", NULL,
          "{\"a\":1}", "/a");
}

static void what_was_left_out_is_filled_in(void **state)
{
    (void)state;
    check(ALL_KINDS, NULL, "{\"name\":\"J\\u00f6 \\\"D\\\"\",\"age\":30," DEFAULTS_BEHIND_AGE,
          NULL);
    check(ALL_KINDS, "{ }", "{\"name\":\"J\\u00f6 \\\"D\\\"\",\"age\":30," DEFAULTS_BEHIND_AGE,
          NULL);
    check(ALL_KINDS, "{\"age\":1.8e1,\"n\\u0061me\":\"xy\"}",
          "{\"age\":1.8e1,\"n\\u0061me\":\"xy\"," DEFAULTS_BEHIND_AGE, NULL);
}

static void without_a_schema_nothing_is_added(void **state)
{
    (void)state;
    arena memory;
    buf out;
    arena_init(&memory, 1 << 16);
    json_writer writer;
    buf_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    assert_int_equal(form_complete(JSON_NONE, JSON_NONE, &memory, &writer), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("{}")));
    buf_fini(&out);
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_the_schema_is_told),
        cmocka_unit_test(what_was_left_out_is_filled_in),
        cmocka_unit_test(without_a_schema_nothing_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
