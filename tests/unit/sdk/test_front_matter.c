/* Front matter: what is no YAML, or more YAML than is read here, is refused; the rest reads as any
 * reader of YAML reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "sdk/front_matter.h"
#include "support/failing_memory.h"

static bay_err read_text(bay_str file, buf *out)
{
    arena memory;
    arena_init(&memory, 1 << 20);
    const matter *root = NULL;
    bay_diag diag = {0};
    bay_err err = matter_read(file, &memory, &root, &diag);
    if (err == BAY_OK) {
        json_writer writer;
        json_writer_init(&writer, out);
        matter_write(root, &writer);
    } else if (err != BAY_ERR_NOMEM) {
        assert_true(diag.text[0] != '\0');
    }
    arena_fini(&memory);
    return err;
}

static void assert_reads(const char *yaml, const char *json)
{
    buf file, out;
    buf_init(&file, 1 << 20);
    buf_init(&out, 1 << 20);
    buf_printf(&file, "---\n%s---\nBody: [\n", yaml);
    assert_int_equal(read_text(buf_view(&file), &out), BAY_OK);
    buf_char(&out, '\0');
    assert_string_equal(out.at, json);
    buf_fini(&file);
    buf_fini(&out);
}

static void assert_refused(const char *yaml, bay_err err)
{
    buf file, out;
    buf_init(&file, 1 << 20);
    buf_init(&out, 1 << 20);
    buf_printf(&file, "---\n%s---\n", yaml);
    assert_int_equal(read_text(buf_view(&file), &out), err);
    buf_fini(&file);
    buf_fini(&out);
}

static void test_no_front_matter(void **state)
{
    (void)state;
    static const char *const files[] = {"",
                                        "name: x\n",
                                        "---",
                                        "---\nname: x\n",
                                        "----\nname: x\n---\n",
                                        " ---\nname: x\n --\n",
                                        "---\n---\n",
                                        "---\n# nothing\n---\n"};
    buf out;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        assert_int_equal(read_text(str_of(files[i]), &out), BAY_ERR_SYNTAX);
    }
    buf_fini(&out);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        bay_err err;
    } cases[] = {
        {"just a text\n", BAY_ERR_SYNTAX},
        {"a: 1\n  b: 2\n", BAY_ERR_UNSUPPORTED},
        {"a: 1\nb\n", BAY_ERR_SYNTAX},
        {"- a\n- b\n", BAY_ERR_SYNTAX},
        {"a: 1\na: 2\n", BAY_ERR_DUPLICATE},
        {"a: {b: 1, b: 2}\n", BAY_ERR_DUPLICATE},
        {"a: &x 1\nb: *x\n", BAY_ERR_UNSUPPORTED},
        {"a: !!str 1\n", BAY_ERR_UNSUPPORTED},
        {"<<: *x\n", BAY_ERR_UNSUPPORTED},
        {"? a\n: b\n", BAY_ERR_UNSUPPORTED},
        {"&x a: b\n", BAY_ERR_UNSUPPORTED},
        {"a: b: c\n", BAY_ERR_UNSUPPORTED},
        {"a: \"x\n  y\"\n", BAY_ERR_UNSUPPORTED},
        {"a: \"\\q\"\n", BAY_ERR_UNSUPPORTED},
        {"a: \"\\ud800\"\n", BAY_ERR_UNSUPPORTED},
        {"a: \"x\" y\n", BAY_ERR_UNSUPPORTED},
        {"a: [1, 2\n", BAY_ERR_UNSUPPORTED},
        {"a: [1 2]]\n", BAY_ERR_UNSUPPORTED},
        {"a: {b}\n", BAY_ERR_UNSUPPORTED},
        {"a: |2\n  x\n", BAY_ERR_UNSUPPORTED},
        {"a:\n\tb: 1\n", BAY_ERR_UNSUPPORTED},
        {"a:\n  - b: 1\n", BAY_ERR_UNSUPPORTED},
        {"a:\n    b: 1\n  c: 2\n", BAY_ERR_SYNTAX},
        {"a: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", BAY_ERR_DEPTH},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_refused(cases[i].yaml, cases[i].err);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    buf yaml;
    buf_init(&yaml, 1 << 20);
    for (int i = 0; i < MATTER_MAX_NODES; i++) {
        buf_printf(&yaml, "k%d: 1\n", i);
    }
    buf_char(&yaml, '\0');
    assert_refused(yaml.at, BAY_ERR_LIMIT);
    buf_clear(&yaml);
    while (yaml.len <= MATTER_MAX_BYTES) {
        buf_lit(&yaml, "# a comment\n");
    }
    buf_char(&yaml, '\0');
    assert_refused(yaml.at, BAY_ERR_LIMIT);
    buf_fini(&yaml);
}

static void test_read(void **state)
{
    (void)state;
    assert_reads("name: pdf-processing\ndescription: Extract, fill, and assemble PDF documents\n",
                 "{\"name\":\"pdf-processing\","
                 "\"description\":\"Extract, fill, and assemble PDF documents\"}");
    assert_reads(
        "a: 1\nb: -0.5e3\nc: 007\nd: 1.\ne: true\nf: No\ng: ~\nh:\ni: 2024-01-01\n",
        "{\"a\":1,\"b\":-0.5e3,\"c\":\"007\",\"d\":\"1.\",\"e\":true,\"f\":\"No\",\"g\":null,"
        "\"h\":null,\"i\":\"2024-01-01\"}");
    assert_reads("a: 'it''s' # why\nb: \"\\\"\\n\\u00e9\\U0001F600 # no comment\"\n",
                 "{\"a\":\"it's\",\"b\":\"\\\"\\n\xc3\xa9\xf0\x9f\x98\x80 # no comment\"}");
    assert_reads("a: http://x/#y # comment\n# comment\n\n\"b c\": x#y\n",
                 "{\"a\":\"http://x/#y\",\"b c\":\"x#y\"}");
    assert_reads(
        "metadata:\n  author: me\n  deeper:\n    version: \"1.0\"\nlast: x\n",
        "{\"metadata\":{\"author\":\"me\",\"deeper\":{\"version\":\"1.0\"}},\"last\":\"x\"}");
    assert_reads("a:\n- x\n- 2\nb:\n  - 'y'\n  -\n    - z\nc: []\nd: {}\n",
                 "{\"a\":[\"x\",2],\"b\":[\"y\",[\"z\"]],\"c\":[],\"d\":{}}");
    assert_reads("allowed-tools: [Read, \"Grep, all\", Bash(git:*)]\nm: {a: 1, 'b': [x], c: }\n",
                 "{\"allowed-tools\":[\"Read\",\"Grep, all\",\"Bash(git:*)\"],"
                 "\"m\":{\"a\":1,\"b\":[\"x\"],\"c\":null}}");
}

static void test_read_long_texts(void **state)
{
    (void)state;
    assert_reads("a: one\n  two\n\n  three\nb: x\n", "{\"a\":\"one two\\nthree\",\"b\":\"x\"}");
    assert_reads("a:\n  one\n  two\n", "{\"a\":\"one two\"}");
    assert_reads("a: |\n  one\n   two\n\n  three\n\nb: x\n",
                 "{\"a\":\"one\\n two\\n\\nthree\\n\",\"b\":\"x\"}");
    assert_reads("a: >-\n  one\n  two\n\n  three\n", "{\"a\":\"one two\\nthree\"}");
    assert_reads("a: |+\n  one\n\n\nb: >\n  x\n", "{\"a\":\"one\\n\\n\\n\",\"b\":\"x\\n\"}");
    assert_reads("a: | # why\n  # no comment\n", "{\"a\":\"# no comment\\n\"}");
}

static void test_windows_lines(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(read_text(STR("---\r\na: x\r\nb:\r\n  - y\r\n---\r\nBody\r\n"), &out), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("{\"a\":\"x\",\"b\":[\"y\"]}")));
    buf_fini(&out);
}

static void compare(const char *yaml, const char *json, const char *differs)
{
    buf file;
    buf_init(&file, 1 << 16);
    buf_printf(&file, "---\n%s---\n", yaml);
    arena memory;
    arena_init(&memory, 1 << 20);
    const matter *root = NULL;
    assert_int_equal(matter_read(buf_view(&file), &memory, &root, NULL), BAY_OK);
    json_doc doc;
    assert_int_equal(json_parse(&doc, str_of(json), NULL, &memory, NULL), BAY_OK);
    bay_str field = {0};
    bay_err err = matter_compare(root, json_root(&doc), &field);
    assert_int_equal(err, differs == NULL ? BAY_OK : BAY_ERR_DENIED);
    if (differs != NULL) {
        assert_true(str_eq(field, str_of(differs)));
    }
    arena_fini(&memory);
    buf_fini(&file);
}

static void test_compare(void **state)
{
    (void)state;
    compare("a: x\nb: 1\n", "{\"a\":\"x\",\"b\":\"2\"}", "b");
    compare("a: x\nb: 1\n", "{\"a\":\"x\"}", "b");
    compare("a: x\n", "{\"a\":\"x\",\"b\":1}", "b");
    compare("a: x\n", "{\"a\":\"x\",\"a\":\"x\"}", "");
    compare("a: x\n", "[\"x\"]", "");
    compare("a: \"1\"\n", "{\"a\":1}", "a");
    compare("a: {b: 1}\n", "{\"a\":{\"b\":1,\"c\":2}}", "a");
    compare("a: [1, 2]\n", "{\"a\":[1]}", "a");
    compare("a: [1]\n", "{\"a\":[1,2]}", "a");
    compare("a: [1]\n", "{\"a\":{\"1\":1}}", "a");
    compare("a: 1x\n", "{\"a\":1}", "a");
    compare("a: tru\n", "{\"a\":true}", "a");
    compare("a: true\n", "{\"a\":false}", "a");
    compare("b: [x]\na: 1.50\nc: no\nd: ~\ne: {f: 2024-01-01}\n",
            "{\"a\":1.5,\"b\":[\"\\u0078\"],\"c\":false,\"d\":null,\"e\":{\"f\":\"2024-01-01\"}}",
            NULL);
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        buf_init(&out, 1 << 16);
        bay_err err = read_text(
            STR("---\na: \"x\"\nb: |\n  y\nc: [1, {d: 'e'}]\nf: one\n  two\n---\n"), &out);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        buf_fini(&out);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_front_matter), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),          cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_long_texts), cmocka_unit_test(test_windows_lines),
        cmocka_unit_test(test_compare),         cmocka_unit_test(test_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
