/* What of a peer's text people see as it is: every code point, and the places where a joiner or a
 * variation selector stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/shown.h"

/* By properties of the Unicode Character Database 14.0, apart from what the source says. */
static const struct {
    uint32_t first;
    uint32_t last;
    const char *why;
} seen_by_nobody[] = {
    {0x0, 0x1f, "Cc"},
    {0x7f, 0x9f, "Cc"},
    {0xad, 0xad, "Default_Ignorable: soft hyphen"},
    {0x34f, 0x34f, "Default_Ignorable: combining grapheme joiner"},
    {0x61c, 0x61c, "Bidi_Control"},
    {0x115f, 0x1160, "Default_Ignorable: Hangul fillers"},
    {0x17b4, 0x17b5, "Default_Ignorable: Khmer inherent vowels"},
    {0x180b, 0x180d, "Default_Ignorable: Mongolian variation selectors"},
    {0x180e, 0x180e, "Cf: Mongolian vowel separator"},
    {0x180f, 0x180f, "Default_Ignorable: Mongolian variation selector"},
    {0x200b, 0x200f, "Cf: zero width, Bidi_Control"},
    {0x2028, 0x2029, "Zl, Zp"},
    {0x202a, 0x202e, "Bidi_Control"},
    {0x2060, 0x206f, "Default_Ignorable: invisible operators, Bidi_Control, deprecated"},
    {0x3164, 0x3164, "Default_Ignorable: Hangul filler"},
    {0xfdd0, 0xfdef, "Noncharacter_Code_Point"},
    {0xfe00, 0xfe0f, "Variation_Selector"},
    {0xfeff, 0xfeff, "Cf: byte order mark"},
    {0xffa0, 0xffa0, "Default_Ignorable: half-width Hangul filler"},
    {0xfff0, 0xfff8, "Default_Ignorable: reserved"},
    {0xfff9, 0xfffb, "Cf: interlinear annotation"},
    {0x13430, 0x1343f, "Cf: Egyptian hieroglyph format controls, and their reserve"},
    {0x1bca0, 0x1bca3, "Cf: shorthand format controls"},
    {0x1d173, 0x1d17a, "Cf: musical format controls"},
    {0xe0000, 0xe0fff, "Default_Ignorable: tags, Variation_Selector, reserved"},
};

static bool is_seen(uint32_t code)
{
    if ((code & 0xffff) >= 0xfffe) {
        return false; /* Noncharacter_Code_Point */
    }
    for (size_t i = 0; i < ARRAY_LEN(seen_by_nobody); i++) {
        if (code >= seen_by_nobody[i].first && code <= seen_by_nobody[i].last) {
            return false;
        }
    }
    return true;
}

static size_t encode(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1;) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(leads[len] | code);
    return len;
}

static void assert_shown(bay_str text, shown_form form, const char *expected)
{
    char copy[256];
    buf out;
    buf_init(&out, sizeof(copy));
    shown_append(&out, text, form);
    assert_int_equal(out.err, BAY_OK);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.at, expected, out.len);
    assert_int_equal(shown_copy(copy, sizeof(copy), text, form), out.len);
    assert_string_equal(copy, expected);
    buf_fini(&out);
}

/* Alone, after a letter of any script and before one: in none of these places does one stay that
 * is not to be seen. */
static void every_code_point_is_seen_or_named(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[8];
        char name[32];
        if (code >= 0xd800 && code <= 0xdfff) {
            continue; /* ill-formed in UTF-8 */
        }
        size_t len = encode(bytes, code);
        uint32_t read = 0;
        assert_int_equal(shown_decode((bay_str){bytes, len}, &read), len);
        assert_int_equal(read, code);
        bytes[len] = '\0';
        snprintf(name, sizeof(name), "\\u{%x}", (unsigned)code);
        char shown[32];
        shown_copy(shown, sizeof(shown), (bay_str){bytes, len}, SHOWN_LINE);
        assert_string_equal(shown, is_seen(code) ? bytes : name);
        if (code < 0x10000) {
            snprintf(name, sizeof(name), "\\u%04x", (unsigned)code);
        } else {
            snprintf(name, sizeof(name), "\\u%04x\\u%04x",
                     0xd800 + (unsigned)((code - 0x10000) >> 10),
                     0xdc00 + (unsigned)((code - 0x10000) & 0x3ff));
        }
        bool is_layout = code == '\n' || code == '\t';
        shown_copy(shown, sizeof(shown), (bay_str){bytes, len}, SHOWN_JSON);
        assert_string_equal(shown, is_seen(code) || is_layout || code == '\r' ? bytes : name);
        if (is_layout) {
            shown_copy(shown, sizeof(shown), (bay_str){bytes, len}, SHOWN_TEXT);
            assert_string_equal(shown, bytes);
        }
    }
}

static void what_is_no_character_is_named_byte_by_byte(void **state)
{
    (void)state;
    static const struct {
        bay_str text;
        const char *line;
        const char *json;
    } cases[] = {
        {STR_INIT("\x9b"
                  "2J"),
         "\\x{9b}2J", "\\ufffd2J"},
        {STR_INIT("\xc3("), "\\x{c3}(", "\\ufffd("},
        {STR_INIT("\xc0\x80"), "\\x{c0}\\x{80}", "\\ufffd\\ufffd"},
        {STR_INIT("\xed\xa0\x80"), "\\x{ed}\\x{a0}\\x{80}", "\\ufffd\\ufffd\\ufffd"},
        {STR_INIT("\xf4\x90\x80\x80"), "\\x{f4}\\x{90}\\x{80}\\x{80}",
         "\\ufffd\\ufffd\\ufffd\\ufffd"},
        {STR_INIT("\xf5"), "\\x{f5}", "\\ufffd"},
        {STR_INIT("a\xe2\x82"), "a\\x{e2}\\x{82}", "a\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_shown(cases[i].text, SHOWN_LINE, cases[i].line);
        assert_shown(cases[i].text, SHOWN_TEXT, cases[i].line);
        assert_shown(cases[i].text, SHOWN_JSON, cases[i].json);
    }
}

#define ZWJ "\xe2\x80\x8d"
#define ZWNJ "\xe2\x80\x8c"
#define VS16 "\xef\xb8\x8f"
#define HEART "\xe2\x9d\xa4"
#define FIRE "\xf0\x9f\x94\xa5"
#define MEEM "\xd9\x85"
#define HEH "\xd9\x87"
#define KA "\xe0\xa4\x95"
#define VIRAMA "\xe0\xa5\x8d"

static void joiners_and_selectors_stay_where_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        /* hidden bytes: in Latin text, at an edge, in runs, after a wrong neighbour */
        {"a" ZWJ "b", "a\\u{200d}b"},
        {"a" ZWNJ "b", "a\\u{200c}b"},
        {ZWJ, "\\u{200d}"},
        {MEEM ZWNJ, MEEM "\\u{200c}"},
        {ZWNJ MEEM, "\\u{200c}" MEEM},
        {MEEM ZWNJ ZWNJ HEH, MEEM "\\u{200c}\\u{200c}" HEH},
        {MEEM ZWNJ "a", MEEM "\\u{200c}a"},
        {FIRE ZWNJ FIRE, FIRE "\\u{200c}" FIRE},
        {FIRE ZWJ "a", FIRE "\\u{200d}a"},
        {FIRE ZWJ ZWJ FIRE, FIRE "\\u{200d}\\u{200d}" FIRE},
        {"a" VS16, "a\\u{fe0f}"},
        {VS16, "\\u{fe0f}"},
        {FIRE VS16 VS16, FIRE VS16 "\\u{fe0f}"},
        {FIRE "\xef\xb8\x80", FIRE "\\u{fe00}"},
        {FIRE "\xf3\xa0\x84\x80", FIRE "\\u{e0100}"},
        {"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xbf",
         "\xf0\x9f\x8f\xb4\\u{e0067}\\u{e007f}"}, /* a flag of tags: tags hide text */
        {FIRE "\xff" VS16, FIRE "\\x{ff}\\u{fe0f}"},
        /* and what is written */
        {MEEM ZWNJ HEH, MEEM ZWNJ HEH},
        {KA VIRAMA ZWJ, KA VIRAMA ZWJ},
        {KA VIRAMA ZWNJ KA, KA VIRAMA ZWNJ KA},
        {HEART VS16 ZWJ FIRE, HEART VS16 ZWJ FIRE},
        {"1" VS16 "\xe2\x83\xa3", "1" VS16 "\xe2\x83\xa3"},
        {HEART VS16 " " HEART, HEART VS16 " " HEART},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_shown(str_of(cases[i].text), SHOWN_LINE, cases[i].shown);
        assert_shown(str_of(cases[i].text), SHOWN_TEXT, cases[i].shown);
    }
}

static void lines_end_as_their_form_says(void **state)
{
    (void)state;
    bay_str text = STR("a\r\nb\tc\rd\n");
    assert_shown(text, SHOWN_LINE, "a\\u{d}\\u{a}b\\u{9}c\\u{d}d\\u{a}");
    assert_shown(text, SHOWN_TEXT, "a\nb\tc\\u{d}d\n");
    assert_shown(text, SHOWN_JSON, "a\r\nb\tc\rd\n");
}

/* At every size: a NUL within it, whole characters and whole escapes only. */
static void copies_are_cut_between_characters(void **state)
{
    (void)state;
    bay_str text = STR("ab\xc3\xa9\x1b\xf0\x9f\x98\x80z");
    static const char whole[] = "ab\xc3\xa9\\u{1b}\xf0\x9f\x98\x80z";
    static const size_t ends[] = {0, 1, 2, 4, 10, 14, 15};
    char out[32];
    assert_int_equal(shown_copy(NULL, 0, text, SHOWN_LINE), 0);
    for (size_t size = 1; size < sizeof(out); size++) {
        memset(out, '!', sizeof(out));
        size_t len = shown_copy(out, size, text, SHOWN_LINE);
        size_t expected = 0;
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
            expected = ends[i] < size ? ends[i] : expected;
        }
        assert_int_equal(len, expected);
        assert_memory_equal(out, whole, len);
        assert_int_equal(out[len], '\0');
        assert_int_equal(size < sizeof(out) ? out[size] : '!', '!');
    }
}

static void a_character_cut_at_the_end_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"a\xc3", 1},
        {"a\xc3\xa9", 3},
        {"a\xe2\x82", 1},
        {"a\xf0\x9f\x98", 1},
        {"a\xf0\x9f\x98\x80", 5},
        {"a\x80\x80", 3}, /* was never whole: named, not dropped */
        {"a\xff", 2},
        {"\x80", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(shown_whole(str_of(cases[i].text)).len, cases[i].len);
    }
}

static void streams_get_the_same(void **state)
{
    (void)state;
    char *at = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&at, &len);
    shown_write(to, STR("a\x1b[31m" MEEM ZWNJ HEH "\n\xff"), SHOWN_TEXT);
    fclose(to);
    assert_string_equal(at, "a\\u{1b}[31m" MEEM ZWNJ HEH "\n\\x{ff}");
    free(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_seen_or_named),
        cmocka_unit_test(what_is_no_character_is_named_byte_by_byte),
        cmocka_unit_test(joiners_and_selectors_stay_where_people_write_them),
        cmocka_unit_test(lines_end_as_their_form_says),
        cmocka_unit_test(copies_are_cut_between_characters),
        cmocka_unit_test(a_character_cut_at_the_end_is_left_out),
        cmocka_unit_test(streams_get_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
