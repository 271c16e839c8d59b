/* Pages and cookies: what comes from elsewhere stays text, and a cookie is read in one way only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "front/page.h"

static void what_comes_from_elsewhere_is_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown;
    } rows[] = {
        {"ann", "ann"},
        {"<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"},
        {"\" onclick=\"x", "&quot; onclick=&quot;x"},
        {"a&b", "a&amp;b"},
        {"a\xe2\x80\xae"
         "b",
         "a\\u{202e}b"}, /* turns the line round */
        {"a\r\nb", "a\\u{d}\\u{a}b"},
        {"\xff", "\\x{ff}"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf out;
        buf_init(&out, PAGE_BYTES);
        page_text(&out, str_of(rows[i].text));
        if (!str_eq(buf_view(&out), str_of(rows[i].shown))) {
            fail_msg("%s: %.*s", rows[i].text, BAY_STR(buf_view(&out)));
        }
        buf_fini(&out);
    }
    /* no room: the error stays, and a page is not half written */
    char text[4];
    buf small = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    page_text(&small, STR("<<"));
    assert_int_equal(small.err, BAY_ERR_LIMIT);
}

static void the_name_of_a_cookie(void **state)
{
    (void)state;
    char name[PAGE_COOKIE_NAME_BYTES];
    assert_true(str_eq(page_cookie_name(STR("https://gw.example/x"), "session", name),
                       STR("__Host-patchbay-session")));
    assert_true(str_eq(page_cookie_name(STR("http://127.0.0.1:8930"), "session", name),
                       STR("patchbay-8930-session")));
    assert_true(str_eq(page_cookie_name(STR("http://[::1]:7/x"), "session", name),
                       STR("patchbay-7-session")));
    assert_true(str_eq(page_cookie_name(STR("http://localhost"), "session", name),
                       STR("patchbay-80-session")));
    char too_long[2 * PAGE_COOKIE_NAME_BYTES];
    (void)memset(too_long, 'a', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    assert_int_equal(page_cookie_name(STR("https://gw.example"), too_long, name).len, 0);
}

static void what_a_browser_is_told_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *base, *value;
        uint64_t max_age_s;
        const char *shown;
    } rows[] = {
        {"https://gw", "v", 60, "n=v; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=60"},
        {"https://gw", "v", 0, "n=v; Path=/; HttpOnly; SameSite=Lax; Secure"},
        {"http://127.0.0.1:1", "v", 60, "n=v; Path=/; HttpOnly; SameSite=Lax; Max-Age=60"},
        {"https://gw", "", 60, "n=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf out;
        buf_init(&out, PAGE_COOKIE_FIELD_BYTES);
        page_cookie_write(&out, str_of(rows[i].base), STR("n"), str_of(rows[i].value),
                          rows[i].max_age_s);
        assert_true(str_eq(buf_view(&out), str_of(rows[i].shown)));
        buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_from_elsewhere_is_text),
        cmocka_unit_test(the_name_of_a_cookie),
        cmocka_unit_test(what_a_browser_is_told_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
