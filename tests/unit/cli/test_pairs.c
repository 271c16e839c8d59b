/* Arguments of a call: what is JSON stays as it was typed, the rest is a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "cli/pairs.h"

static bay_err pairs_write(const char *const *pairs, size_t count, bool is_text, buf *out,
                           bay_diag *diag)
{
    json_writer to;
    json_writer_init(&to, out);
    return cli_pairs_write((char *const *)pairs, count, is_text, &to, diag);
}

static bay_err pairs_read(const char *text, buf *out, bay_diag *diag)
{
    json_writer to;
    json_writer_init(&to, out);
    return cli_pairs_read(text, &to, diag);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *pairs[3];
        bool is_text;
        const char *text;
    } cases[] = {
        {{"a=1", "a=2", NULL}, false, "the argument a was given twice: keep one"},
        {{"a=1", "a:=2", NULL}, false, "the argument a was given twice: keep one"},
        {{"a=1", "a==2", NULL}, true, "the argument a was given twice: keep one"},
        {{"a:=", NULL}, false, "a:= needs JSON"},
        {{"a:={", NULL}, false, "a:= needs JSON"},
        {{"a:=01", NULL}, false, "a:= needs JSON"},
        {{"a:=1", NULL},
         true,
         "a:= needs JSON, and arguments of prompts are texts: write KEY=VALUE"},
        {{":=1", NULL}, false, "an argument has no name: write KEY=VALUE"},
        {{"a=\xff", NULL}, false, "an argument is not UTF-8: give it as JSON with \\u"},
        {{"\xc3=1", NULL}, false, "an argument is not UTF-8: give it as JSON with \\u"},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_diag diag = {0};
        size_t count = cases[i].pairs[1] != NULL ? 2 : 1;
        buf_clear(&out);
        assert_int_equal(pairs_write(cases[i].pairs, count, cases[i].is_text, &out, &diag),
                         BAY_ERR_INVALID);
        assert_string_equal(diag.text, cases[i].text);
    }
    char deep[300] = "a=";
    memset(deep + 2, '[', sizeof(deep) - 3);
    const char *pairs[] = {deep};
    buf_clear(&out);
    assert_int_equal(pairs_write(pairs, 1, false, &out, NULL), BAY_ERR_DEPTH);
    buf_clear(&out);
    assert_int_equal(pairs_write(pairs, 1, true, &out, NULL), BAY_OK);
    buf_fini(&out);
}

static void values_keep_their_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *pair;
        const char *object;
        const char *text_object;
    } cases[] = {
        {"a=9007199254740993", "{\"a\":9007199254740993}", "{\"a\":\"9007199254740993\"}"},
        {"a=1.0", "{\"a\":1.0}", "{\"a\":\"1.0\"}"},
        {"a=1e400", "{\"a\":1e400}", "{\"a\":\"1e400\"}"},
        {"a=01", "{\"a\":\"01\"}", "{\"a\":\"01\"}"},
        {"a=true", "{\"a\":true}", "{\"a\":\"true\"}"},
        {"a=null", "{\"a\":null}", "{\"a\":\"null\"}"},
        {"a=[1, 2]", "{\"a\":[1, 2]}", "{\"a\":\"[1, 2]\"}"},
        {"a=\"x\\u00e9\"", "{\"a\":\"x\\u00e9\"}", "{\"a\":\"\\\"x\\\\u00e9\\\"\"}"},
        {"a=", "{\"a\":\"\"}", "{\"a\":\"\"}"},
        {"a=Tokyo", "{\"a\":\"Tokyo\"}", "{\"a\":\"Tokyo\"}"},
        {"a=b=c", "{\"a\":\"b=c\"}", "{\"a\":\"b=c\"}"},
        {"a==1", "{\"a\":\"1\"}", "{\"a\":\"1\"}"},
        {"a==", "{\"a\":\"\"}", "{\"a\":\"\"}"},
        {"a=\n", "{\"a\":\"\\n\"}", "{\"a\":\"\\n\"}"},
        {"\xc3\xa9=\xc3\xa9", "{\"\xc3\xa9\":\"\xc3\xa9\"}", "{\"\xc3\xa9\":\"\xc3\xa9\"}"},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        bool is_text = i % 2 != 0;
        const char *pairs[] = {cases[i / 2].pair};
        buf_clear(&out);
        assert_int_equal(pairs_write(pairs, 1, is_text, &out, NULL), BAY_OK);
        buf_char(&out, '\0');
        assert_string_equal(out.at, is_text ? cases[i / 2].text_object : cases[i / 2].object);
    }
    buf_clear(&out);
    const char *several[] = {"b=1", "a:={\"x\":0.10}"};
    assert_int_equal(pairs_write(several, 2, false, &out, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("{\"b\":1,\"a\":{\"x\":0.10}}")));
    buf_clear(&out);
    assert_int_equal(pairs_write(NULL, 0, false, &out, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("{}")));
    buf_fini(&out);
}

static void a_whole_object_is_taken_as_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bay_err err;
        const char *why;
    } cases[] = {
        {"{\"a\": 1.0}", BAY_OK, ""},
        {" {} ", BAY_OK, ""},
        {"[]", BAY_ERR_INVALID, "--arguments needs a JSON object: {\"KEY\": VALUE}"},
        {"7", BAY_ERR_INVALID, "--arguments needs a JSON object: {\"KEY\": VALUE}"},
        {"@/no/such/file", BAY_ERR_IO, "--arguments: /no/such/file: No such file or directory"},
        {"@/", BAY_ERR_IO, "--arguments: /: Is a directory"},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_diag diag = {0};
        buf_clear(&out);
        assert_int_equal(pairs_read(cases[i].text, &out, &diag), cases[i].err);
        assert_string_equal(diag.text, cases[i].why);
        if (cases[i].err == BAY_OK) {
            assert_true(str_eq(buf_view(&out), str_trim(str_of(cases[i].text))));
        }
    }
    bay_diag diag = {0};
    buf_clear(&out);
    assert_int_equal(pairs_read("{\"a\":}", &out, &diag), BAY_ERR_INVALID);
    assert_int_equal(diag.offset, 5);
    assert_non_null(strstr(diag.text, "no JSON at byte 5"));
    buf_fini(&out);
}

static void a_file_is_read_whole_and_bounded(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-pairs-XXXXXX";
    char named[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    static const char text[] = "{\"text\":\"of a file\"}\n";
    assert_int_equal(write(file, text, sizeof(text) - 1), sizeof(text) - 1);
    close(file);
    snprintf(named, sizeof(named), "@%s", path);
    buf out;
    bay_diag diag = {0};
    buf_init(&out, 4096);
    assert_int_equal(pairs_read(named, &out, &diag), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("{\"text\":\"of a file\"}")));
    assert_int_equal(truncate(path, CLI_PAIRS_BYTES + 1), 0);
    assert_int_equal(pairs_read(named, &out, &diag), BAY_ERR_LIMIT);
    assert_string_equal(diag.text, "--arguments: more than 67108864 bytes");
    buf_fini(&out);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(values_keep_their_bytes),
        cmocka_unit_test(a_whole_object_is_taken_as_it_is),
        cmocka_unit_test(a_file_is_read_whole_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
