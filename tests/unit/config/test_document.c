#include "config/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "support/failing_memory.h"

static config_report report;

static bay_err read_document(const char *text, arena *memory, json_doc *out)
{
    arena_init(memory, 16 << 20);
    return config_document_read(str_of(text), STR("file.yaml"), memory, out, &report);
}

static void what_cannot_be_read_is_said_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line;
        const char *said;
    } cases[] = {
        {"a: [\n", 2, "not valid YAML"},
        {"{\"a\":", 1, "not valid JSON"},
        {"a: 1\na: 2\n", 2, "stands twice"},
        {"a: &x 1\n", 1, "anchors"},
        {"a: 1\n---\nb: 2\n", 2, "a second YAML document"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        arena memory;
        json_doc doc;
        assert_int_not_equal(read_document(cases[i].text, &memory, &doc), BAY_OK);
        assert_true(report.errors > 0);
        assert_int_equal(report.messages[0].line, cases[i].line);
        assert_non_null(strstr(report.messages[0].text, cases[i].said));
        arena_fini(&memory);
    }
}

static void scalars_have_the_types_of_the_core_schema(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *json;
    } cases[] = {
        {"true", "true"},
        {"false", "false"},
        {"null", "null"},
        {"~", "null"},
        {"12", "12"},
        {"-1.5e3", "-1.5e3"},
        {"0", "0"},
        {"007", "\"007\""},
        {"0x1F", "\"0x1F\""},
        {"1_000", "\"1_000\""},
        {"1.", "\"1.\""},
        {"-x", "\"-x\""},
        {"1e", "\"1e\""},
        {"\"12\"", "\"12\""},
        {"'true'", "\"true\""},
        {"yes", "\"yes\""},
        {"a b", "\"a b\""},
        {"[1, x]", "[1,\"x\"]"},
        {"{a: {b: 1}}", "{\"a\":{\"b\":1}}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        arena memory;
        json_doc doc;
        char text[100] = "x: ";
        (void)snprintf(text + 3, sizeof(text) - 3, "%s", cases[i].yaml);
        if (read_document(text, &memory, &doc) != BAY_OK) {
            fail_msg("%s: %s", text, report.messages[0].text);
        }
        bay_str got = json_raw(json_get(json_root(&doc), STR("x")));
        if (!str_eq(got, str_of(cases[i].json))) {
            fail_msg("%s is %.*s", text, BAY_STR(got));
        }
        arena_fini(&memory);
    }
}

static void values_know_their_lines(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "a: 1\n\n# two\nb:\n  - x\n  - {y: 2}\nc:\n  d: |\n    text\n    more\n  e: 3\n",
        "{\"a\":1,\n\n\n\"b\":[\n\"x\",\n{\"y\":2}],\n\"c\":{\n\"d\":\"text\",\n\n\n\"e\":3}}"};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        arena memory;
        json_doc doc;
        assert_int_equal(read_document(forms[i], &memory, &doc), BAY_OK);
        json_val root = json_root(&doc);
        assert_int_equal(config_document_line(json_get(root, STR("a"))), 1);
        assert_int_equal(config_document_line(json_get(root, STR("b"))), 4);
        assert_int_equal(config_document_line(json_item(json_get(root, STR("b")), 0)), 5);
        assert_int_equal(config_document_line(json_item(json_get(root, STR("b")), 1)), 6);
        assert_int_equal(config_document_line(json_pointer(root, STR("/c/d"))), 8);
        assert_int_equal(config_document_line(json_pointer(root, STR("/c/e"))), 11);
        arena_fini(&memory);
    }
}

static void an_empty_text_is_null(void **state)
{
    (void)state;
    static const bay_str texts[] = {{NULL, 0}, STR_INIT(""), STR_INIT("# nothing\n")};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        arena memory;
        json_doc doc;
        arena_init(&memory, 1 << 20);
        assert_int_equal(config_document_read(texts[i], STR("x"), &memory, &doc, &report), BAY_OK);
        assert_true(json_is(json_root(&doc), JSON_NULL));
        arena_fini(&memory);
    }
}

static void a_large_text_is_refused(void **state)
{
    (void)state;
    arena memory;
    json_doc doc;
    char *text = calloc(1, CONFIG_DOCUMENT_BYTES + 2);
    assert_non_null(text);
    memset(text, 'x', CONFIG_DOCUMENT_BYTES + 1);
    assert_int_equal(read_document(text, &memory, &doc), BAY_ERR_LIMIT);
    assert_int_equal(report.errors, 1);
    arena_fini(&memory);
    free(text);
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        json_doc doc;
        bay_err err = read_document("{\"a\": [1, \"x\"]}", &memory, &doc);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        arena_fini(&memory);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_is_said_with_its_line),
        cmocka_unit_test(scalars_have_the_types_of_the_core_schema),
        cmocka_unit_test(values_know_their_lines),
        cmocka_unit_test(an_empty_text_is_null),
        cmocka_unit_test(a_large_text_is_refused),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
