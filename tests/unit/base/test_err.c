/* Errors: every one has a text and a class, and diagnostics are bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"

static void what_is_no_error_is_named_so(void **state)
{
    (void)state;
    assert_string_equal(bay_err_text((bay_err)ERR_COUNT), "unknown error");
    assert_string_equal(bay_err_text((bay_err)-1), "unknown error");
    assert_int_equal(bay_err_class_of((bay_err)ERR_COUNT), BAY_ERR_CLASS_FATAL);
}

static void every_error_has_its_own_text(void **state)
{
    (void)state;
    for (int i = 0; i < ERR_COUNT; i++) {
        assert_true(strlen(bay_err_text((bay_err)i)) > 1);
        assert_true(bay_err_class_of((bay_err)i) <= BAY_ERR_CLASS_FATAL);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(bay_err_text((bay_err)i), bay_err_text((bay_err)j));
        }
    }
    assert_int_equal(bay_err_class_of(BAY_OK), BAY_ERR_CLASS_NONE);
    assert_int_equal(bay_err_class_of(BAY_ERR_TIMEOUT), BAY_ERR_CLASS_RETRY);
    assert_int_equal(bay_err_class_of(BAY_ERR_SYNTAX), BAY_ERR_CLASS_PEER);
}

static void a_diagnostic_may_be_unwanted(void **state)
{
    (void)state;
    assert_int_equal(diag_set(NULL, BAY_ERR_SYNTAX, "%s", "nobody reads this"), BAY_ERR_SYNTAX);
    assert_int_equal(diag_at(NULL, BAY_ERR_UTF8, 7, "%s", "nor this"), BAY_ERR_UTF8);
}

static void a_diagnostic_says_what_and_where(void **state)
{
    (void)state;
    bay_diag diag = {.code = BAY_OK, .line = 99, .offset = 99, .text = "old"};
    assert_int_equal(diag_at(&diag, BAY_ERR_UTF8, SIZE_MAX, "byte %d", 255), BAY_ERR_UTF8);
    assert_int_equal(diag.code, BAY_ERR_UTF8);
    assert_int_equal(diag.line, 0);
    assert_true(diag.offset == SIZE_MAX);
    assert_string_equal(diag.text, "byte 255");
    assert_int_equal(diag_set(&diag, BAY_ERR_IO, "%s", "disk"), BAY_ERR_IO);
    assert_int_equal(diag.offset, 0);
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    bay_diag diag;
    assert_int_equal(diag_set(&diag, BAY_ERR_IO, "%s", text), BAY_ERR_IO);
    assert_int_equal(strlen(diag.text), sizeof(diag.text) - 1);
}

/* It may quote a peer, and whoever prints it prints it as it is. */
static void a_diagnostic_is_one_harmless_line(void **state)
{
    (void)state;
    bay_diag diag;
    assert_int_equal(
        diag_set(&diag, BAY_ERR_PROTOCOL, "it said %s", "a\nb\x1b[2J\xe2\x80\xae\xff."),
        BAY_ERR_PROTOCOL);
    assert_string_equal(diag.text, "it said a\\u{a}b\\u{1b}[2J\\u{202e}\\x{ff}.");
    assert_int_equal(diag_set(&diag, BAY_ERR_IO, "%238s\xe2\x82\xac", "x"), BAY_ERR_IO);
    assert_int_equal(strlen(diag.text), 238); /* no half a character at the end */
}

static void the_version_has_three_parts(void **state)
{
    (void)state;
    size_t dots = 0;
    for (const char *at = bay_version(); *at != '\0'; at++) {
        assert_true(*at == '.' || (*at >= '0' && *at <= '9'));
        dots += *at == '.';
    }
    assert_int_equal(dots, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_error_is_named_so),
        cmocka_unit_test(every_error_has_its_own_text),
        cmocka_unit_test(a_diagnostic_may_be_unwanted),
        cmocka_unit_test(a_diagnostic_says_what_and_where),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(a_diagnostic_is_one_harmless_line),
        cmocka_unit_test(the_version_has_three_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
