/* Strings that may be empty, hold NUL, or have no address at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"

static const bay_str nothing = {NULL, 0};

static void numbers_are_digits_and_nothing_else(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "0x1",
        "1e2",
        "1.0",
        "a",
        "18446744073709551616",
        "99999999999999999999",
        "184467440737095516150",
        "1\n",
    };
    uint64_t number = 42;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_false(str_uint(str_of(refused[i]), &number));
    }
    assert_false(str_uint(nothing, &number));
    assert_false(str_uint((bay_str){"1\0002", 3}, &number));
    assert_int_equal(number, 42); /* untouched by every refusal */
    assert_true(str_uint(STR("0"), &number));
    assert_true(number == 0);
    assert_true(str_uint(STR("000000000000000000000000000018446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
}

static void equality_sees_length_and_content(void **state)
{
    (void)state;
    assert_true(str_eq(nothing, STR("")));
    assert_true(str_eq(nothing, str_of(NULL)));
    assert_false(str_eq(STR("a"), STR("")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_false(str_eq(STR("a"), STR("a\0")));
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
}

static void case_is_ignored_in_ascii_only(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(STR("Content-LENGTH"), STR("content-length")));
    assert_true(str_eq_nocase(nothing, STR("")));
    assert_false(str_eq_nocase(STR("a"), STR("ab")));
    assert_true(str_eq_folded(STR("TAS\xe2\x84\xaa"), STR("ta\xc5\xbfk")));
    assert_true(str_eq_folded(nothing, STR("")));
    assert_false(str_eq_folded(STR("a"), STR("ab")));
    assert_false(str_eq_folded(STR("a\xc5"), STR("as")));
    assert_false(str_eq_folded(STR("\xc5\xb1"), STR("\xc5\xb0"))); /* no other letters */
    assert_false(str_eq_nocase(STR("["), STR("{")));               /* 32 apart, no letters */
    assert_false(str_eq_nocase(STR("@"), STR("`")));
    assert_false(str_eq_nocase(STR("\xc3\x89"), STR("\xc3\xa9")));
}

/* Every pair of bytes, at every place of texts that are read in words of eight and behind them. */
static void case_is_ignored_at_every_place(void **state)
{
    (void)state;
    enum { LONGEST = 17 };
    char left[LONGEST], right[LONGEST];
    for (size_t len = 1; len <= LONGEST; len++) {
        for (size_t at = 0; at < len; at++) {
            memset(left, 'x', len);
            memset(right, 'X', len);
            for (int pair = 0; pair < 256 * 256; pair++) {
                int a = pair >> 8, b = pair & 0xff;
                int low_a = a >= 'A' && a <= 'Z' ? a + 32 : a;
                int low_b = b >= 'A' && b <= 'Z' ? b + 32 : b;
                left[at] = (char)a;
                right[at] = (char)b;
                if (str_eq_nocase((bay_str){left, len}, (bay_str){right, len}) !=
                    (low_a == low_b)) {
                    fail_msg("bytes %d and %d at %zu of %zu", a, b, at, len);
                }
            }
        }
    }
}

static void order_is_by_bytes_then_length(void **state)
{
    (void)state;
    assert_int_equal(str_cmp(nothing, nothing), 0);
    assert_true(str_cmp(nothing, STR("a")) < 0);
    assert_true(str_cmp(STR("a"), nothing) > 0);
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("\x7f"), STR("\xff")) < 0); /* bytes are unsigned */
    assert_int_equal(str_cmp(STR("ab"), STR("ab")), 0);
}

static void prefixes_and_suffixes(void **state)
{
    (void)state;
    assert_false(str_starts(STR("ab"), STR("abc")));
    assert_false(str_ends(STR("bc"), STR("abc")));
    assert_false(str_starts(STR("ab"), STR("b")));
    assert_false(str_ends(STR("ab"), STR("a")));
    assert_false(str_starts(nothing, STR("a")));
    assert_true(str_starts(nothing, nothing));
    assert_true(str_ends(nothing, nothing));
    assert_true(str_starts(STR("ab"), nothing));
    assert_true(str_ends(STR("ab"), STR("ab")));
}

static void cuts_stay_inside(void **state)
{
    (void)state;
    assert_int_equal(str_from(STR("abc"), 3).len, 0);
    assert_int_equal(str_from(STR("abc"), SIZE_MAX).len, 0);
    assert_int_equal(str_from(nothing, 1).len, 0);
    assert_true(str_eq(str_from(STR("abc"), 1), STR("bc")));
    assert_true(str_eq(str_head(STR("abc"), SIZE_MAX), STR("abc")));
    assert_true(str_eq(str_head(STR("abc"), 2), STR("ab")));
    assert_int_equal(str_head(nothing, 5).len, 0);
}

static void trims_blanks_only(void **state)
{
    (void)state;
    assert_int_equal(str_trim(nothing).len, 0);
    assert_int_equal(str_trim(STR(" \t ")).len, 0);
    assert_true(str_eq(str_trim(STR("\t a b \t")), STR("a b")));
    assert_true(str_eq(str_trim(STR("\na\r")), STR("\na\r")));
}

static void finds_from_both_ends(void **state)
{
    (void)state;
    assert_int_equal(str_find(nothing, 'a'), 0);
    assert_int_equal(str_find_last(nothing, 'a'), 0);
    assert_int_equal(str_find(STR("bcd"), 'a'), 3);
    assert_int_equal(str_find_last(STR("bcd"), 'a'), 3);
    assert_int_equal(str_find(STR("a.b.c"), '.'), 1);
    assert_int_equal(str_find_last(STR("a.b.c"), '.'), 3);
    assert_int_equal(str_find_last(STR(".a"), '.'), 0);
    assert_int_equal(str_find(STR("a\0b"), 'b'), 2);
}

static void secrets_differ_in_any_bit(void **state)
{
    (void)state;
    char other[32] = "0123456789abcdef0123456789abcde";
    const bay_str secret = STR("0123456789abcdef0123456789abcde");
    assert_true(str_eq_secret(secret, (bay_str){other, 31}));
    assert_false(str_eq_secret(secret, (bay_str){other, 30}));
    for (size_t i = 0; i < 31 * 8; i++) {
        other[i / 8] ^= (char)(1 << i % 8);
        assert_false(str_eq_secret(secret, (bay_str){other, 31}));
        other[i / 8] ^= (char)(1 << i % 8);
    }
    assert_true(str_eq_secret(nothing, STR("")));
}

static void the_hash_depends_on_every_byte_and_the_key(void **state)
{
    (void)state;
    char bytes[40] = {0};
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        uint64_t plain = str_hash((bay_str){bytes, len}, 1);
        assert_true(plain == str_hash((bay_str){bytes, len}, 1));
        assert_false(plain == str_hash((bay_str){bytes, len}, 2));
        if (len > 0) { /* also zeros of another length differ */
            assert_false(plain == str_hash((bay_str){bytes, len - 1}, 1));
        }
        for (size_t i = 0; i < len; i++) {
            bytes[i] = 1;
            assert_false(plain == str_hash((bay_str){bytes, len}, 1));
            bytes[i] = 0;
        }
    }
    assert_true(str_hash(nothing, 7) == str_hash(STR(""), 7));
}

static void distance_counts_edits(void **state)
{
    (void)state;
    static char longest[66];
    memset(longest, 'a', 65);
    assert_int_equal(str_distance(nothing, nothing), 0);
    assert_int_equal(str_distance(nothing, STR("abc")), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(str_distance(STR("Listen"), STR("listen")), 0);
    assert_int_equal(str_distance((bay_str){longest, 64}, nothing), 64);
    assert_int_equal(str_distance((bay_str){longest, 65}, STR("a")), 64); /* too long to ask */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_digits_and_nothing_else),
        cmocka_unit_test(equality_sees_length_and_content),
        cmocka_unit_test(case_is_ignored_in_ascii_only),
        cmocka_unit_test(case_is_ignored_at_every_place),
        cmocka_unit_test(order_is_by_bytes_then_length),
        cmocka_unit_test(prefixes_and_suffixes),
        cmocka_unit_test(cuts_stay_inside),
        cmocka_unit_test(trims_blanks_only),
        cmocka_unit_test(finds_from_both_ends),
        cmocka_unit_test(secrets_differ_in_any_bit),
        cmocka_unit_test(the_hash_depends_on_every_byte_and_the_key),
        cmocka_unit_test(distance_counts_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
