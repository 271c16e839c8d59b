/* Whom a request came through, as friends and enemies write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "wire/via.h"

static via_verdict read_one(const char *value)
{
    via_seen seen = {0};
    size_t len = strlen(value);
    char *exact = malloc(len + 1); /* so that a byte too far is seen */
    memcpy(exact, value, len);
    via_verdict verdict = via_read(&seen, (bay_str){exact, len}, STR("me"));
    free(exact);
    return verdict;
}

static void whoever_finds_itself_is_in_a_loop(void **state)
{
    (void)state;
    static const char *const loops[] = {"1.1 me",
                                        "HTTP/1.1 me",
                                        "1.0 fred, 1.1 me",
                                        "1.1 ME (that is me)",
                                        "2 a (x, 1.1 y), 1.1\tme\t(c)",
                                        " , ,1.1   me,",
                                        "1.1 a (un\\)balanced \\( ), 1.1 me",
                                        "1.1 a ((in (side))), 1.1 me(tight)",
                                        "1.1 you (never closed, 1.1 me",
                                        "1.1 you (\\, 1.1 me, 1.1 you (c)",
                                        "1.1 you (c), 1.1 you ((d), 1.1 me"};
    static const char *const fine[] = {"",
                                       ",",
                                       "me",
                                       "1.1 you",
                                       "1.1 me2",
                                       "1.1 me:80",
                                       "1.1 you (1.1 me)",
                                       "1.1 you (, 1.1 me)",
                                       "1.1 you (never closed, 1.1 mete",
                                       "1.1 you (\\",
                                       "1.1",
                                       ")))), 1.1 you",
                                       "((((((((",
                                       "me 1.1"};
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        if (read_one(loops[i]) != VIA_LOOP) {
            fail_msg("not seen in \"%s\"", loops[i]);
        }
    }
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        if (read_one(fine[i]) != VIA_FINE) {
            fail_msg("seen in \"%s\"", fine[i]);
        }
    }
}

static void entries_and_bytes_have_bounds(void **state)
{
    (void)state;
    via_seen seen = {0};
    for (int i = 0; i < VIA_ENTRIES; i++) {
        assert_int_equal(via_read(&seen, STR("1.1 a"), STR("me")), VIA_FINE);
    }
    assert_int_equal(via_read(&seen, STR("1.1 a"), STR("me")), VIA_TOO_LONG);
    assert_int_equal(read_one("a b,a b,a b,a b,a b,a b,a b,a b,a b,a b"), VIA_FINE);
    assert_int_equal(read_one("a b,a b,a b,a b,a b,a b,a b,a b,a b,a b,a b"), VIA_TOO_LONG);
    static char text[VIA_BYTES + 2];
    memset(text, 'x', VIA_BYTES);
    assert_int_equal(read_one(text), VIA_FINE);
    text[VIA_BYTES] = 'x';
    assert_int_equal(read_one(text), VIA_TOO_LONG);
    seen = (via_seen){0};
    bay_str half = {text, VIA_BYTES / 2 + 1};
    assert_int_equal(via_read(&seen, half, STR("me")), VIA_FINE);
    assert_int_equal(via_read(&seen, half, STR("me")), VIA_TOO_LONG);
    assert_int_equal(via_read(&seen, (bay_str){text, SIZE_MAX / 2}, STR("me")), VIA_TOO_LONG);
}

static void only_plain_text_goes_on(void **state)
{
    (void)state;
    static char text[VIA_BYTES + 2];
    memset(text, 'x', VIA_BYTES);
    assert_true(via_is_fine(str_of(text)));
    text[VIA_BYTES] = 'x';
    assert_false(via_is_fine(str_of(text)));
    assert_false(via_is_fine(STR("")));
    assert_false(via_is_fine(STR("1.1 a\r\nX: y")));
    assert_false(via_is_fine(STR("1.1 \xc3\xa4")));
}

static void what_goes_on_is_one_longer(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1000);
    via_write(&out, STR(""), STR("me"));
    assert_true(str_eq(buf_view(&out), STR("1.1 me")));
    buf_clear(&out);
    via_write(&out, STR(" 1.0 a (b, c) "), STR("me"));
    assert_true(str_eq(buf_view(&out), STR("1.0 a (b, c), 1.1 me")));
    via_seen seen = {0};
    assert_int_equal(via_read(&seen, buf_view(&out), STR("me")), VIA_LOOP);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_finds_itself_is_in_a_loop),
        cmocka_unit_test(entries_and_bytes_have_bounds),
        cmocka_unit_test(only_plain_text_goes_on),
        cmocka_unit_test(what_goes_on_is_one_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
