/* What reaches a terminal: never a peer's control bytes, never half a character, never too wide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "cli/output.h"

#define assert_buf(text, expected)                                                                 \
    do {                                                                                           \
        buf_char(&(text), '\0');                                                                   \
        assert_int_equal((text).err, BAY_OK);                                                      \
        assert_string_equal((text).at, expected);                                                  \
        buf_clear(&(text));                                                                        \
    } while (0)

static const output terminal = {.is_terminal = true, .columns = 40};
static const output file = {.is_terminal = false};

static void control_bytes_never_reach_a_terminal(void **state)
{
    (void)state;
    static const struct {
        bay_str text;
        const char *shown; /* on a terminal */
        const char *line;
    } cases[] = {
        {STR_INIT("plain"), "plain", "plain"},
        {STR_INIT("\x1b[2J"), "\\u{1b}[2J", "\\u{1b}[2J"},
        {STR_INIT("a\0b"), "a\\u{0}b", "a\\u{0}b"},
        {STR_INIT("a\x7f"), "a\\u{7f}", "a\\u{7f}"},
        {STR_INIT("\xc2\x9b"
                  "2J"),
         "\\u{9b}2J", "\\u{9b}2J"}, /* CSI in one character */
        {STR_INIT("\xe2\x80\xae"
                  "abc"),
         "\\u{202e}abc", "\\u{202e}abc"},                           /* right-to-left override */
        {STR_INIT("\xf3\xa0\x81\x81"), "\\u{e0041}", "\\u{e0041}"}, /* a tag character */
        {STR_INIT("a\xe2\x80\x8b"
                  "b"),
         "a\\u{200b}b", "a\\u{200b}b"},
        {STR_INIT("a\xe2\x80\xa8"
                  "b\xc2\x85"),
         "a\\u{2028}b\\u{85}", "a\\u{2028}b\\u{85}"},
        {STR_INIT("a\r\nb\tc\n"), "a\nb\tc\n", "a b c"},
        {STR_INIT("a\rb"), "a\\u{d}b", "a b"},
        {STR_INIT("\x07\x08"), "\\u{7}\\u{8}", "\\u{7}\\u{8}"},
        {STR_INIT("\xc3"), "\\x{c3}", "\\x{c3}"},
        {STR_INIT("\xf0\x9f\x98\x80 \xc3\xa9"), "\xf0\x9f\x98\x80 \xc3\xa9",
         "\xf0\x9f\x98\x80 \xc3\xa9"},
        {STR_INIT("  a \n\n  b  "), "  a \n\n  b  ", "a b"},
        {STR_INIT(" \v "), " \\u{b} ", ""},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        output_text(&terminal, &out, cases[i].text);
        assert_buf(out, cases[i].shown);
        output_line(&out, cases[i].text);
        assert_buf(out, cases[i].line);
        output_text(&file, &out, cases[i].text);
        assert_int_equal(out.len, cases[i].text.len);
        assert_memory_equal(out.at, cases[i].text.at, out.len);
        buf_clear(&out);
    }
    buf_fini(&out);
}

/* Every byte alone and every pair: nothing below 0x20 but newline and tab, no DEL, no C1. */
static void every_pair_of_bytes_is_harmless(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 4096);
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)(pair & 0xff)};
        output_text(&terminal, &out, (bay_str){bytes, 2});
        for (size_t i = 0; i < out.len; i++) {
            unsigned char c = (unsigned char)out.at[i];
            assert_true((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
            assert_false(c == 0xc2 && (unsigned char)out.at[i + 1] < 0xa0);
        }
        buf_clear(&out);
    }
    buf_fini(&out);
}

/* On a terminal it names what would not be seen in JSON's own way; elsewhere it stays as it is. */
static void json_stays_the_same_json(void **state)
{
    (void)state;
    bay_str raw =
        STR("{ \"a\": \"\xc2\x9b\x7f\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9\\n\",\r\n\t\"b\":\t1 }");
    buf out;
    buf_init(&out, 4096);
    output_json(&terminal, &out, raw);
    assert_buf(out,
               "{ \"a\": \"\\u009b\\u007f\\u202e\\udb40\\udc41\xc3\xa9\\n\",\r\n\t\"b\":\t1 }");
    output_json_line(&out, raw);
    assert_buf(out, "{ \"a\": \"\\u009b\\u007f\\u202e\\udb40\\udc41\xc3\xa9\\n\", \"b\": 1 }");
    output_json(&file, &out, raw);
    assert_int_equal(out.len, raw.len);
    assert_memory_equal(out.at, raw.at, raw.len);
    buf_fini(&out);
}

static void text_is_cut_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
        const char *cut;
    } cases[] = {
        {"abcdef", 6, "abcdef"},
        {"abcdef", 5, "abcd\xe2\x80\xa6"},
        {"abcdef", 1, "\xe2\x80\xa6"},
        {"abcdef", 0, ""},
        {"abc def", 5, "abc\xe2\x80\xa6"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9", 3, "\xc3\xa9\xc3\xa9\xc3\xa9"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9\xe2\x80\xa6"},
        {"\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 5, "\xe6\xbc\xa2\xe5\xad\x97\xe2\x80\xa6"},
        {"\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 4, "\xe6\xbc\xa2\xe2\x80\xa6"},
        {"e\xcc\x81"
         "e\xcc\x81",
         2,
         "e\xcc\x81"
         "e\xcc\x81"},
        {"e\xcc\x81"
         "ex",
         2, "e\xcc\x81\xe2\x80\xa6"},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        output_cut(&out, str_of(cases[i].text), cases[i].columns);
        assert_true(output_width(buf_view(&out)) <= cases[i].columns);
        assert_buf(out, cases[i].cut);
    }
    buf_fini(&out);
}

static void columns_align_and_the_last_is_cut(void **state)
{
    (void)state;
    output_table table;
    output_table_init(&table, 3);
    table.is_right[1] = true;
    static const char *const cells[] = {
        "echo",         "41 tok",    "Echoes back the input, and more of it than fits",
        "\xe6\xbc\xa2", "1,063 tok", "Short",
        "x\x1b[1m",     "",          "",
        "last",
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        output_table_cell(&table, str_of(cells[i]));
    }
    buf out;
    buf_init(&out, 4096);
    output_table_write(&table, &terminal, &out);
    assert_buf(out, "  echo           41 tok  Echoes back th\xe2\x80\xa6\n"
                    "  \xe6\xbc\xa2          1,063 tok  Short\n"
                    "  x\\u{1b}[1m\n"
                    "  last\n");
    output_table_write(&table, &file, &out);
    bay_str first = str_head(buf_view(&out), str_find(buf_view(&out), '\n'));
    assert_true(str_ends(first, STR("more of it than fits")));
    buf_clear(&out);
    const output tiny = {.is_terminal = true, .columns = 3};
    output_table_write(&table, &tiny, &out);
    assert_buf(out, "  \xe2\x80\xa6\n  \xe2\x80\xa6\n  \xe2\x80\xa6\n  \xe2\x80\xa6\n");
    output_table_fini(&table);
    buf_fini(&out);
}

static void colours_need_a_terminal_that_wants_them(void **state)
{
    (void)state;
    int outer, inner;
    struct winsize size = {.ws_col = 123, .ws_row = 10};
    assert_int_equal(openpty(&outer, &inner, NULL, NULL, &size), 0);
    FILE *stream = fdopen(inner, "w");
    output self;
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    output_init(&self, stream, false);
    assert_true(self.is_terminal && self.has_color);
    assert_int_equal(self.columns, 123);
    buf out;
    buf_init(&out, 100);
    output_color(&self, &out, OUTPUT_RED);
    output_color(&self, &out, OUTPUT_PLAIN);
    assert_buf(out, "\x1b[31m\x1b[0m");
    output_init(&self, stream, true);
    assert_true(self.is_terminal && !self.has_color);
    setenv("NO_COLOR", "1", 1);
    output_init(&self, stream, false);
    assert_false(self.has_color);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    output_init(&self, stream, false);
    assert_false(self.has_color);
    fclose(stream);
    close(outer);
    FILE *plain = tmpfile();
    setenv("TERM", "xterm", 1);
    output_init(&self, plain, false);
    assert_false(self.is_terminal || self.has_color);
    assert_int_equal(self.columns, 0);
    output_color(&self, &out, OUTPUT_BOLD);
    assert_int_equal(out.len, 0);
    buf_lit(&out, "text");
    assert_true(output_flush(&self, &out));
    assert_int_equal(out.len, 0);
    assert_int_equal(ftell(plain), 4);
    fclose(plain);
    buf_fini(&out);
}

static void a_full_disk_is_noticed(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    output self;
    output_init(&self, full, false);
    buf out;
    buf_init(&out, 8);
    buf_lit(&out, "text");
    assert_false(output_flush(&self, &out));
    buf_lit(&out, "longer than the buffer");
    assert_false(output_flush(&self, &out)); /* the buffer had failed */
    fclose(full);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_bytes_never_reach_a_terminal),
        cmocka_unit_test(every_pair_of_bytes_is_harmless),
        cmocka_unit_test(json_stays_the_same_json),
        cmocka_unit_test(text_is_cut_between_characters),
        cmocka_unit_test(columns_align_and_the_last_is_cut),
        cmocka_unit_test(colours_need_a_terminal_that_wants_them),
        cmocka_unit_test(a_full_disk_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
