/* URIs: parts, resolution (the examples of RFC 3986), origins, percent encoding, templates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/uri.h"

static void bad_uris_are_refused(void **state)
{
    (void)state;
    static const struct {
        bay_str text;
        bay_err err;
    } bad[] = {
        {STR_INIT(":"), BAY_ERR_SYNTAX},
        {STR_INIT("1a:b"), BAY_ERR_SYNTAX},
        {STR_INIT("a_b:c"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a b/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/b c"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/\x01"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/\0"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/%"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/%2"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/%2g"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/?%"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/#%"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/#b#c"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/\\b"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a\\@b/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a@b@c/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a:b/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a:-1/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a:65536/"), BAY_ERR_RANGE},
        {STR_INIT("http://a:0/"), BAY_ERR_RANGE},
        {STR_INIT("http://a:99999999999999999999/"), BAY_ERR_RANGE},
        {STR_INIT("http://[::1/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://[::1]a/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://[1.2.3.4]/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://[fe80::1%25eth0]/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://::1/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://\xc3\xa4/"), BAY_ERR_SYNTAX},
        {STR_INIT("http://a/{b}"), BAY_ERR_SYNTAX},
    };
    uri parts;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (uri_parse(&parts, bad[i].text) != bad[i].err) {
            fail_msg("case %zu: %s", i, bad[i].text.at);
        }
    }
}

static void uris_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"https://u:p@A.example:8443/p/a?q=1&r#f",
         "https|u:p@A.example:8443|u:p|A.example|8443|/p/a|?q=1&r|#f"},
        {"http://[2001:db8::1]:80", "http|[2001:db8::1]:80||2001:db8::1|80|||"},
        {"http://a:/", "http|a:||a|0|/||"},
        {"file:///a%20b", "file||||0|/a%20b||"},
        {"urn:isbn:1", "urn||||0|isbn:1||"},
        {"test://static-text", "test|static-text||static-text|0|||"},
        {"x-a+b.1:", "x-a+b.1||||0|||"},
        {"//a/b", "|a||a|0|/b||"},
        {"/a:b/c", "||||0|/a:b/c||"},
        {"./a:b", "||||0|./a:b||"},
        {"?", "||||0||?|"},
        {"#", "||||0|||#"},
        {"", "||||0|||"},
        {"a?b/c:d@e?f#g/h?i", "||||0|a|?b/c:d@e?f|#g/h?i"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uri parts;
        buf out;
        buf_init(&out, 1000);
        assert_int_equal(uri_parse(&parts, str_of(cases[i].text)), BAY_OK);
        buf_printf(&out, "%.*s|%.*s|%.*s|%.*s|%u|%.*s|%s%.*s|%s%.*s", BAY_STR(parts.scheme),
                   BAY_STR(parts.authority), BAY_STR(parts.userinfo), BAY_STR(parts.host),
                   parts.port, BAY_STR(parts.path), parts.has_query ? "?" : "",
                   BAY_STR(parts.query), parts.has_fragment ? "#" : "", BAY_STR(parts.fragment));
        buf_char(&out, '\0');
        assert_string_equal(out.at, cases[i].says);
        buf_fini(&out);
    }
}

typedef struct resolve_case {
    const char *reference;
    const char *result; /* NULL: refused */
} resolve_case;

/* RFC 3986 section 5.4, base http://a/b/c/d;p?q */
static const resolve_case resolved[] = {
    {"g:h", "g:h"},
    {"g", "http://a/b/c/g"},
    {"./g", "http://a/b/c/g"},
    {"g/", "http://a/b/c/g/"},
    {"/g", "http://a/g"},
    {"//g", "http://g"},
    {"?y", "http://a/b/c/d;p?y"},
    {"g?y", "http://a/b/c/g?y"},
    {"#s", "http://a/b/c/d;p?q#s"},
    {"g#s", "http://a/b/c/g#s"},
    {"g?y#s", "http://a/b/c/g?y#s"},
    {";x", "http://a/b/c/;x"},
    {"g;x?y#s", "http://a/b/c/g;x?y#s"},
    {"", "http://a/b/c/d;p?q"},
    {".", "http://a/b/c/"},
    {"./", "http://a/b/c/"},
    {"..", "http://a/b/"},
    {"../", "http://a/b/"},
    {"../g", "http://a/b/g"},
    {"../..", "http://a/"},
    {"../../", "http://a/"},
    {"../../g", "http://a/g"},
    {"../../../g", "http://a/g"},
    {"../../../../g", "http://a/g"},
    {"/./g", "http://a/g"},
    {"/../g", "http://a/g"},
    {"g.", "http://a/b/c/g."},
    {".g", "http://a/b/c/.g"},
    {"g..", "http://a/b/c/g.."},
    {"..g", "http://a/b/c/..g"},
    {"./../g", "http://a/b/g"},
    {"./g/.", "http://a/b/c/g/"},
    {"g/./h", "http://a/b/c/g/h"},
    {"g/../h", "http://a/b/c/h"},
    {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
    {"g;x=1/../y", "http://a/b/c/y"},
    {"g?y/./x", "http://a/b/c/g?y/./x"},
    {"g?y/../x", "http://a/b/c/g?y/../x"},
    {"g#s/../x", "http://a/b/c/g#s/../x"},
    {"http:g", "http:g"},
    {"/messages?sessionId=1", "http://a/messages?sessionId=1"},
    {"a b", NULL},
    {"g:/..//x", NULL}, /* would become g://x */
};

static void references_are_resolved(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(resolved) / sizeof(resolved[0]); i++) {
        buf out;
        buf_init(&out, 1000);
        buf_lit(&out, "kept ");
        bay_err err =
            uri_resolve(&out, STR("http://a/b/c/d;p?q"), str_of(resolved[i].reference), NULL);
        assert_int_equal(err, resolved[i].result != NULL ? BAY_OK : BAY_ERR_SYNTAX);
        buf_char(&out, '\0');
        assert_string_equal(out.at + 5, resolved[i].result != NULL ? resolved[i].result : "");
        buf_fini(&out);
    }
    buf out;
    buf_init(&out, 1000);
    assert_int_equal(uri_resolve(&out, STR("http://a:80"), STR("m"), NULL), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("http://a:80/m")));
    buf_clear(&out);
    assert_int_equal(uri_resolve(&out, STR("/relative"), STR("m"), NULL), BAY_ERR_SYNTAX);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    for (size_t max = 0; max < 13; max++) {
        buf_init(&out, max);
        assert_int_equal(uri_resolve(&out, STR("http://a:80"), STR("m"), NULL), BAY_ERR_LIMIT);
        assert_int_equal(out.len, 0);
        buf_fini(&out);
    }
}

static void an_endpoint_of_another_origin_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        const char *reference;
        bool is_same;
    } cases[] = {
        {"http://a/sse", "/messages?s=1", true},
        {"http://a/sse", "http://A:80/messages", true},
        {"https://a/sse", "HTTPS://a:443/messages", true},
        {"http://[::1]:5/sse", "messages", true},
        {"http://a/sse", "https://a/messages", false},
        {"http://a/sse", "http://b/messages", false},
        {"http://a/sse", "//b/messages", false},
        {"http://a/sse", "http://a:81/messages", false},
        {"http://a/sse", "http://a@b/messages", false},
        {"http://a/sse", "http://a.b/", false},
        {"file:///a", "b", false},
        {"urn:a", "urn:a", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_same = !cases[i].is_same;
        buf out;
        buf_init(&out, 1000);
        assert_int_equal(
            uri_resolve(&out, str_of(cases[i].base), str_of(cases[i].reference), &is_same), BAY_OK);
        if (is_same != cases[i].is_same) {
            fail_msg("case %zu: %.*s", i, (int)out.len, out.at);
        }
        buf_fini(&out);
    }
}

static void percent_encoding_goes_both_ways(void **state)
{
    (void)state;
    static const bay_str bad[] = {STR_INIT("%"), STR_INIT("a%2"), STR_INIT("%g0"), STR_INIT("%0g"),
                                  STR_INIT("%%30")};
    buf out;
    buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(uri_decode(&out, bad[i]), BAY_ERR_SYNTAX);
        assert_int_equal(out.len, 0);
    }
    uri_encode(&out, STR("a-._~/ \0\xff%"));
    assert_true(str_eq(buf_view(&out), STR("a-._~%2F%20%00%FF%25")));
    buf back;
    buf_init(&back, 10);
    assert_int_equal(uri_decode(&back, buf_view(&out)), BAY_OK);
    assert_true(str_eq(buf_view(&back), STR("a-._~/ \0\xff%")));
    buf_clear(&back);
    assert_int_equal(uri_decode(&back, STR("0123456789a")), BAY_ERR_LIMIT);
    assert_int_equal(back.len, 0);
    buf_fini(&back);
    buf_fini(&out);
}

static void templates_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"{",     "}",     "a}b",   "{}",        "{+}",   "{a",
                                      "{{a}}", "{a b}", "{a,}",  "{,a}",      "{=a}",  "{!a}",
                                      "{|a}",  "{a:}",  "{a:x}", "{a:12345}", "{a*b}", "{a\n}"};
    static const char *const good[] = {"",        "a",       "{a}",          "{+a}",
                                       "{#a,b}",  "{.a}",    "{/a*}",        "{;a}",
                                       "{?a,b*}", "{&a:30}", "{a_b.c%20}{d}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (uri_template_check(str_of(bad[i])) != BAY_ERR_SYNTAX ||
            uri_template_matches(str_of(bad[i]), str_of(bad[i]))) {
            fail_msg("%s", bad[i]);
        }
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(uri_template_check(str_of(good[i])), BAY_OK);
    }
}

static void templates_match(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *uri;
        bool matches;
    } cases[] = {
        {"test://template/{id}/data", "test://template/123/data", true},
        {"test://template/{id}/data", "test://template//data", false},
        {"test://template/{id}/data", "test://template/1/2/data", false},
        {"test://template/{id}/data", "test://template/1/data/", false},
        {"test://template/{id}/data", "test://template/1/dat", false},
        {"test://template/{id}/data", "Test://template/1/data", false},
        {"test://template/{id}/data", "test://template/a%2Fb/data", true},
        {"test://template/{id}", "test://template/1?q", false},
        {"test://template/{id}", "test://template/1#f", false},
        {"test://template/{id}", "test://template/a b", false},
        {"a", "a", true},
        {"a", "b", false},
        {"", "", true},
        {"", "a", false},
        {"{a}", "", false},
        {"{a}{b}", "x", false},
        {"{a}{b}", "xy", true},
        {"{a}-{b}", "x-y-z", true},
        {"{a}-{b}", "x-", false},
        {"{a,b}", "1,2", true},
        {"file:///{+path}", "file:///a/b/c.txt", true},
        {"file:///{+path}", "file:///", false},
        {"file:///{+path}/end", "file:///a/end/b/end", true},
        {"file:///{+path}/end", "file:///a/end/b/en", false},
        {"x:/s{?q}", "x:/s", true},
        {"x:/s{?q}", "x:/s?q=a/b?c", true},
        {"x:/s{?q}", "x:/s?q=a#b", false},
        {"x:/s{?q}", "x:/sq=a", false},
        {"x:/s?a=1{&b}", "x:/s?a=1&b=2", true},
        {"x:/s?a=1{&b}", "x:/s?a=12", false},
        {"x:{/a}", "x:", true},
        {"x:{/a}", "x:/1", true},
        {"x:{/a}", "x:/1/2", false},
        {"x:{/a*}", "x:/1/2/3", true},
        {"x:{/a,b}", "x:/1/2", true},
        {"x:{/a*}", "x:1/2", false},
        {"x{.a}", "x.json", true},
        {"x{.a}", "xjson", false},
        {"x{;a}", "x;a=1", true},
        {"x{;a}", "x/a", false},
        {"x{#a}", "x#a/b?c", true},
        {"x{#a}", "xa", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (uri_template_matches(str_of(cases[i].text), str_of(cases[i].uri)) != cases[i].matches) {
            fail_msg("%s against %s", cases[i].text, cases[i].uri);
        }
    }
}

/* With a backtracking matcher this would take longer than anyone can wait. */
static void matching_is_bounded(void **state)
{
    (void)state;
    buf text;
    buf uri_text;
    buf_init(&text, 1 << 16);
    buf_init(&uri_text, 1 << 16);
    for (size_t i = 0; i < URI_TEMPLATE_EXPRESSIONS; i++) {
        buf_lit(&text, "{+a}x");
    }
    buf_char(&text, 'y');
    while (uri_text.len < URI_TEMPLATE_URI_BYTES) {
        buf_char(&uri_text, 'x');
    }
    assert_false(uri_template_matches(buf_view(&text), buf_view(&uri_text)));
    uri_text.at[uri_text.len - 1] = 'y';
    assert_true(uri_template_matches(buf_view(&text), buf_view(&uri_text)));
    buf_char(&uri_text, 'y');
    assert_false(uri_template_matches(STR("{+a}"), buf_view(&uri_text)));
    buf_lit(&text, "{a}");
    assert_int_equal(uri_template_check(buf_view(&text)), BAY_ERR_LIMIT);
    buf_clear(&text);
    while (text.len < URI_TEMPLATE_BYTES) {
        buf_char(&text, 'x');
    }
    assert_int_equal(uri_template_check(buf_view(&text)), BAY_OK);
    buf_char(&text, 'x');
    assert_int_equal(uri_template_check(buf_view(&text)), BAY_ERR_LIMIT);
    buf_fini(&text);
    buf_fini(&uri_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_uris_are_refused),
        cmocka_unit_test(uris_are_taken_apart),
        cmocka_unit_test(references_are_resolved),
        cmocka_unit_test(an_endpoint_of_another_origin_is_told),
        cmocka_unit_test(percent_encoding_goes_both_ways),
        cmocka_unit_test(templates_are_checked),
        cmocka_unit_test(templates_match),
        cmocka_unit_test(matching_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
