/* The log: nothing without a sink, levels, lines that a peer cannot forge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/log.h"

static struct {
    size_t lines;
    log_level level;
    char component[32];
    char text[1024];
} seen;

static void remember(log_level level, const char *component, const char *text, void *user)
{
    assert_ptr_equal(user, &seen);
    seen.lines++;
    seen.level = level;
    strncpy(seen.component, component, sizeof(seen.component) - 1);
    assert_true(strlen(text) < sizeof(seen.text));
    memcpy(seen.text, text, strlen(text) + 1);
}

static int listen_to_info(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    log_set_sink(LOG_INFO, remember, &seen);
    return 0;
}

static int listen_to_nothing(void **state)
{
    (void)state;
    log_set_sink(LOG_DEBUG, NULL, NULL);
    return 0;
}

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

static void without_a_sink_nothing_happens(void **state)
{
    (void)state;
    log_set_sink(LOG_DEBUG, NULL, NULL);
    assert_false(log_wants(LOG_ERROR));
    evaluated = 0;
    LOG(LOG_ERROR, "test", "%d", evaluate());
    log_write(LOG_ERROR, "test", "dropped");
    assert_int_equal(evaluated, 0);
    assert_int_equal(seen.lines, 0);
}

static void too_verbose_is_not_even_formatted(void **state)
{
    (void)state;
    evaluated = 0;
    LOG(LOG_DEBUG, "test", "%d", evaluate());
    log_write(LOG_DEBUG, "test", "dropped");
    assert_int_equal(evaluated, 0);
    assert_int_equal(seen.lines, 0);
    LOG(LOG_INFO, "test", "%d", evaluate());
    LOG(LOG_ERROR, "test", "%d", evaluate());
    assert_int_equal(seen.lines, 2);
    assert_int_equal(seen.level, LOG_ERROR);
    assert_string_equal(seen.component, "test");
    assert_string_equal(seen.text, "2");
}

static void a_peer_neither_forges_lines_nor_hides_text(void **state)
{
    (void)state;
    LOG(LOG_WARN, "te\nst", "%s",
        "a\nb\rc\x1b[2Jd\x7f e\xc2\x9b"
        "f\xc2\xa0\xc3\xa9 \xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81\xe2\x80\x8b \xff.");
    assert_string_equal(seen.text, "a\\u{a}b\\u{d}c\\u{1b}[2Jd\\u{7f} e\\u{9b}f\xc2\xa0\xc3\xa9 "
                                   "\\u{202e}\\u{2028}\\u{feff}\\u{e0041}\\u{200b} \\x{ff}.");
    assert_string_equal(seen.component, "te\\u{a}st");
}

/* A character that the bound cuts is left out, and so is an escape. */
static void a_line_is_cut_between_characters(void **state)
{
    (void)state;
    LOG(LOG_WARN, "test", "%1022s\xe2\x82\xac", "x");
    assert_int_equal(strlen(seen.text), 1022);
    LOG(LOG_WARN, "test", "%1020s\x1b", "x");
    assert_int_equal(strlen(seen.text), 1020);
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    LOG(LOG_WARN, "test", "%s", text);
    assert_int_equal(strlen(seen.text), 1023);
}

static void floods_are_counted(void **state)
{
    (void)state;
    log_pace pace = {0};
    log_write_paced(&pace, 5, LOG_DEBUG, "test", "%d", 0); /* nobody wants it: it does not count */
    assert_int_equal(seen.lines, 0);
    log_write_paced(&pace, 5, LOG_WARN, "test", "full %d", 1);
    assert_int_equal(seen.lines, 1);
    assert_string_equal(seen.text, "full 1");
    for (uint64_t now = 5; now < 5 + LOG_PACE_MS; now += 1000) {
        log_write_paced(&pace, now, LOG_WARN, "test", "full %d", 2);
    }
    assert_int_equal(seen.lines, 1);
    log_write_paced(&pace, 5 + LOG_PACE_MS, LOG_WARN, "test", "full\n%d", 3);
    assert_int_equal(seen.lines, 2);
    assert_string_equal(seen.text, "full\\u{a}3 (and 10 times before, since the last such line)");
    log_write_paced(&pace, 4, LOG_WARN, "test", "%01200d", 4); /* the clock was set back */
    assert_int_equal(seen.lines, 3);
    assert_int_equal(strlen(seen.text), 1023);
    log_write_paced(&pace, 5, LOG_WARN, "test", "again");
    assert_int_equal(seen.lines, 3);
    log_write_paced(&pace, 4 + LOG_PACE_MS, LOG_WARN, "test", "again");
    assert_string_equal(seen.text, "again (and 1 times before, since the last such line)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(floods_are_counted, listen_to_info, listen_to_nothing),
        cmocka_unit_test_setup_teardown(without_a_sink_nothing_happens, listen_to_info,
                                        listen_to_nothing),
        cmocka_unit_test_setup_teardown(too_verbose_is_not_even_formatted, listen_to_info,
                                        listen_to_nothing),
        cmocka_unit_test_setup_teardown(a_peer_neither_forges_lines_nor_hides_text, listen_to_info,
                                        listen_to_nothing),
        cmocka_unit_test_setup_teardown(a_line_is_cut_between_characters, listen_to_info,
                                        listen_to_nothing),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut, listen_to_info, listen_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
