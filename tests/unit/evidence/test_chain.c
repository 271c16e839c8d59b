/* The hash chain: whatever is done to a line is found, and the line it is found at is the one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/opensslv.h> /* a build without digests leaves this out */

#include "base/str.h"
#include "evidence/chain.h"

enum { LINES = 5, TEXT_BYTES = 64 * 1024 };

static const char *const bodies[LINES] = {
    "\"kind\":\"open\"",         "\"kind\":\"call\",\"n\":1",
    "\"kind\":\"call\",\"n\":2", "\"kind\":\"open\",\"again\":true",
    "\"kind\":\"close\"",
};

static bool is_opening(size_t i)
{
    return i == 0 || i == 3;
}

static void make(buf *out)
{
    audit_chain chain = {0};
    buf_init(out, TEXT_BYTES);
    for (size_t i = 0; i < LINES; i++) {
        assert_int_equal(audit_chain_append(&chain, str_of(bodies[i]), is_opening(i), out), BAY_OK);
    }
}

/* The number of the line at which the first fault is, counted from 1; 0: none. */
static size_t check(bay_str text, audit_fault *out)
{
    audit_chain chain = {0};
    size_t number = 0;
    *out = AUDIT_GOOD;
    while (text.len > 0) {
        size_t end = str_find(text, '\n');
        number++;
        assert_int_equal(audit_chain_check(&chain, str_head(text, end), out), BAY_OK);
        if (*out != AUDIT_GOOD) {
            return number;
        }
        text = str_from(text, end + 1);
    }
    return 0;
}

static size_t line_of(bay_str text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++) {
        line += text.at[i] == '\n';
    }
    return line;
}

static void a_whole_chain_is_good(void **state)
{
    buf text;
    audit_fault fault;
    (void)state;
    make(&text);
    assert_int_equal(check(buf_view(&text), &fault), 0);
    buf_fini(&text);
}

static void every_changed_byte_is_found_at_its_line(void **state)
{
    buf text;
    audit_fault fault;
    (void)state;
    make(&text);
    for (size_t i = 0; i < text.len; i++) {
        char was = text.at[i];
        size_t line = line_of(buf_view(&text), i);
        for (int bit = 0; bit < 8; bit++) {
            text.at[i] = (char)(was ^ (1 << bit));
            size_t found = check(buf_view(&text), &fault);
            assert_true(found == line || found == line + (was == '\n'));
        }
        text.at[i] = was;
    }
    buf_fini(&text);
}

static void a_missing_doubled_or_moved_line_is_found(void **state)
{
    buf text;
    buf other;
    audit_fault fault;
    (void)state;
    make(&text);
    bay_str lines[LINES];
    bay_str rest = buf_view(&text);
    for (size_t i = 0; i < LINES; i++) {
        size_t end = str_find(rest, '\n') + 1;
        lines[i] = str_head(rest, end);
        rest = str_from(rest, end);
    }
    buf_init(&other, TEXT_BYTES);
    for (size_t gone = 1; gone + 1 < LINES; gone++) {
        buf_clear(&other);
        for (size_t i = 0; i < LINES; i++) {
            if (i != gone) {
                buf_str(&other, lines[i]);
            }
        }
        assert_int_equal(check(buf_view(&other), &fault), gone + 1);
        assert_int_equal(fault, AUDIT_GAP);
        buf_clear(&other);
        for (size_t i = 0; i < LINES; i++) {
            buf_str(&other, lines[i]);
            if (i == gone) {
                buf_str(&other, lines[i]);
            }
        }
        assert_int_equal(check(buf_view(&other), &fault), gone + 2);
        buf_clear(&other);
        for (size_t i = 0; i < LINES; i++) {
            buf_str(&other, lines[i == gone ? i + 1 : i == gone + 1 ? i - 1 : i]);
        }
        assert_int_equal(check(buf_view(&other), &fault), gone + 1);
    }
    buf_fini(&other);
    buf_fini(&text);
}

/* Who changes a line and makes its hash anew is found at the next one. */
static void a_line_made_anew_is_found_behind_it(void **state)
{
    buf text;
    buf other;
    audit_chain chain = {0};
    audit_fault fault;
    (void)state;
    make(&text);
    buf_init(&other, TEXT_BYTES);
    for (size_t i = 0; i < 2; i++) {
        bay_str body = str_of(i == 1 ? "\"kind\":\"call\",\"n\":9" : bodies[i]);
        assert_int_equal(audit_chain_append(&chain, body, is_opening(i), &other), BAY_OK);
    }
    bay_str rest = buf_view(&text);
    for (size_t i = 0; i < 2; i++) {
        rest = str_from(rest, str_find(rest, '\n') + 1);
    }
    buf_str(&other, rest);
    assert_int_equal(check(buf_view(&other), &fault), 3);
    assert_int_equal(fault, AUDIT_CHANGED);
    buf_fini(&other);
    buf_fini(&text);
}

/* The first lines were deleted with their part: what is left begins with an opening, or is none. */
static void a_chain_begins_at_an_opening_alone(void **state)
{
    buf text;
    audit_fault fault;
    (void)state;
    make(&text);
    bay_str rest = buf_view(&text);
    for (size_t i = 0; i < LINES; i++) {
        assert_int_equal(check(rest, &fault), is_opening(i) ? 0 : 1);
        rest = str_from(rest, str_find(rest, '\n') + 1);
    }
    buf_fini(&text);
}

static void a_file_goes_on_from_its_last_line(void **state)
{
    buf text;
    audit_chain chain = {0};
    audit_fault fault;
    (void)state;
    make(&text);
    bay_str whole = str_head(buf_view(&text), text.len - 1);
    size_t begin = str_find_last(whole, '\n') + 1;
    assert_false(audit_chain_read(str_from(whole, begin + 1), &chain));
    assert_false(audit_chain_read(STR(""), &chain));
    assert_true(audit_chain_read(str_from(whole, begin), &chain));
    assert_int_equal(chain.seq, LINES);
    assert_int_equal(audit_chain_append(&chain, STR("\"kind\":\"open\""), true, &text), BAY_OK);
    assert_int_equal(check(buf_view(&text), &fault), 0);
    buf_fini(&text);
}

static void a_line_has_a_maximum(void **state)
{
    static char body[AUDIT_LINE_BYTES];
    buf text;
    audit_chain chain = {0};
    audit_fault fault;
    (void)state;
    memset(body, ' ', sizeof(body));
    buf_init(&text, 2 * (size_t)AUDIT_LINE_BYTES);
    assert_int_equal(audit_chain_append(&chain, (bay_str){body, sizeof(body) - 32}, true, &text),
                     BAY_ERR_LIMIT);
    assert_int_equal(chain.seq, 0);
    assert_int_equal(text.len, 0);
    size_t most = AUDIT_LINE_BYTES;
    while (audit_chain_append(&chain, (bay_str){body, most}, true, &text) != BAY_OK) {
        most--;
    }
    assert_int_equal(text.len, AUDIT_LINE_BYTES);
    assert_int_equal(check(buf_view(&text), &fault), 0);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_chain_is_good),
        cmocka_unit_test(every_changed_byte_is_found_at_its_line),
        cmocka_unit_test(a_missing_doubled_or_moved_line_is_found),
        cmocka_unit_test(a_line_made_anew_is_found_behind_it),
        cmocka_unit_test(a_chain_begins_at_an_opening_alone),
        cmocka_unit_test(a_file_goes_on_from_its_last_line),
        cmocka_unit_test(a_line_has_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
