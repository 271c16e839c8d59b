/* Header values: the sentinel of MCP, media types, hosts and origins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/header.h"

typedef struct text_case {
    bay_str text;
    bay_str value;
} text_case;

static const text_case texts[] = {
    {STR_INIT("us-west1"), STR_INIT("us-west1")},
    {STR_INIT(""), STR_INIT("")},
    {STR_INIT("a\tb c"), STR_INIT("a\tb c")},
    {STR_INIT("Hello, \xe4\xb8\x96\xe7\x95\x8c"), STR_INIT("=?base64?SGVsbG8sIOS4lueVjA==?=")},
    {STR_INIT(" padded "), STR_INIT("=?base64?IHBhZGRlZCA=?=")},
    {STR_INIT("\t"), STR_INIT("=?base64?CQ==?=")},
    {STR_INIT("line1\nline2"), STR_INIT("=?base64?bGluZTEKbGluZTI=?=")},
    {STR_INIT("a\x7f"), STR_INIT("=?base64?YX8=?=")},
    {STR_INIT("a\0b"), STR_INIT("=?base64?YQBi?=")},
    {STR_INIT("=?base64?literal?="), STR_INIT("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=")},
    {STR_INIT("=?base64?="), STR_INIT("=?base64?PT9iYXNlNjQ/PQ==?=")},
    {STR_INIT("=?base64?half"), STR_INIT("=?base64?half")},
    {STR_INIT("half?="), STR_INIT("half?=")},
    {STR_INIT("=?BASE64?YQ==?="), STR_INIT("=?BASE64?YQ==?=")},
};

static void texts_travel_as_values(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        buf_clear(&out);
        header_value_encode(&out, texts[i].text);
        assert_true(header_value_is_plain(buf_view(&out)));
        if (!str_eq(buf_view(&out), texts[i].value)) {
            fail_msg("case %zu became %.*s", i, (int)out.len, out.at);
        }
        buf_clear(&out);
        assert_int_equal(header_value_decode(&out, texts[i].value), BAY_OK);
        assert_true(str_eq(buf_view(&out), texts[i].text));
    }
    buf_fini(&out);
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        bay_str value;
        bay_err err;
    } bad[] = {
        {STR_INIT("=?base64?YQ=?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?YQ?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?YR==?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?Y Q==?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?YQ-_?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?!!!!?="), BAY_ERR_SYNTAX},
        {STR_INIT("=?base64?/w==?="), BAY_ERR_UTF8},
        {STR_INIT("=?base64?wIA=?="), BAY_ERR_UTF8},
        {STR_INIT("=?base64?7aCA?="), BAY_ERR_UTF8},
        {STR_INIT("=?base64?9JCAgA==?="), BAY_ERR_UTF8},
        {STR_INIT("=?base64?4oI=?="), BAY_ERR_UTF8},
        {STR_INIT("caf\xc3\xa9"), BAY_ERR_SYNTAX},
        {STR_INIT("a\x01"), BAY_ERR_SYNTAX},
        {STR_INIT("a\r\nb"), BAY_ERR_SYNTAX},
    };
    buf out;
    buf_init(&out, 1000);
    buf_lit(&out, "kept");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (header_value_decode(&out, bad[i].value) != bad[i].err ||
            !str_eq(buf_view(&out), STR("kept"))) {
            fail_msg("case %zu", i);
        }
    }
    buf_fini(&out);
}

static void names_are_tokens(void **state)
{
    (void)state;
    assert_true(header_name_is_valid(STR("Mcp-Param-X_1!#$%&'*+.^`|~")));
    assert_false(header_name_is_valid(STR("")));
    assert_false(header_name_is_valid(STR("a b")));
    assert_false(header_name_is_valid(STR("a:")));
    assert_false(header_name_is_valid(STR("a\r\n")));
    assert_false(header_name_is_valid(STR("caf\xc3\xa9")));
    assert_false(header_name_is_valid(STR("a(b)")));
}

static void tracestate_is_a_list(void **state)
{
    (void)state;
    static const char *const no[] = {
        "",      ",",      "a",      "=1",     "a=",         "A=1",
        "a=1,b", "a b=1",  "a=1=2",  "a@=1",   "@a=1",       "a@b@c=1",
        "_a=1",  "a@_b=1", "a=\x7f", "a=\x01", "a=\xc3\xa4", "a=1\r\nx=2"};
    static const char *const yes[] = {"a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
                                      "1a@b_-*/=x y", "a=1 , ,\tb=2,"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (header_tracestate_is_valid(str_of(no[i]))) {
            fail_msg("\"%s\" is none", no[i]);
        }
    }
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (!header_tracestate_is_valid(str_of(yes[i]))) {
            fail_msg("\"%s\" is one", yes[i]);
        }
    }
    assert_false(header_tracestate_is_valid((bay_str){NULL, 0}));
    char text[HEADER_TRACESTATE_BYTES + 2];
    memset(text, 'a', sizeof(text));
    memcpy(text, "k=", 2);
    assert_true(header_tracestate_is_valid((bay_str){text, 258}));
    assert_false(header_tracestate_is_valid((bay_str){text, 259})); /* its value is too long */
    for (size_t i = 0; i + 4 <= sizeof(text); i += 4) {
        memcpy(text + i, "k=1,", 4);
    }
    assert_true(header_tracestate_is_valid((bay_str){text, 32 * 4}));
    assert_false(header_tracestate_is_valid((bay_str){text, 33 * 4}));
    memset(text, ' ', sizeof(text));
    memcpy(text, "k=1", 3);
    assert_true(header_tracestate_is_valid((bay_str){text, HEADER_TRACESTATE_BYTES}));
    assert_false(header_tracestate_is_valid((bay_str){text, HEADER_TRACESTATE_BYTES + 1}));
}

static void content_types_may_rule_json_out(void **state)
{
    (void)state;
    static const char *const no[] = {"text/html",
                                     "application/javascript",
                                     "+json",
                                     "json",
                                     "image/svg+xml",
                                     "application/jsonp",
                                     "application/json, text/html",
                                     "application/json; charset=utf-8, text/html",
                                     "text/html; x=application/json"};
    static const char *const yes[] = {"",
                                      "application/json",
                                      "Application/JSON; charset=utf-8",
                                      "application/jwk-set+json",
                                      "text/plain",
                                      "application/octet-stream"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        assert_false(header_content_type_may_be_json(str_of(no[i])));
    }
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        assert_true(header_content_type_may_be_json(str_of(yes[i])));
    }
    assert_true(header_content_type_may_be_json((bay_str){NULL, 0}));
}

static void content_types_match_without_parameters(void **state)
{
    (void)state;
    bay_str json = STR("application/json");
    assert_true(header_content_type_is(STR("application/json"), json));
    assert_true(header_content_type_is(STR(" Application/JSON ; charset=\"a;b\""), json));
    assert_false(header_content_type_is(STR("application/jsonp"), json));
    assert_false(header_content_type_is(STR("application/json-rpc"), json));
    assert_false(header_content_type_is(STR("text/plain; application/json"), json));
    assert_false(header_content_type_is(STR("application/json, text/plain"), json));
    assert_false(header_content_type_is(STR("application/*"), json));
    assert_false(header_content_type_is(STR(""), json));
}

static void accept_is_read_by_its_closest_range(void **state)
{
    (void)state;
    static const struct {
        bay_str value;
        bool admits_json;
        bool names_json;
    } cases[] = {
        {STR_INIT(""), false, false},
        {STR_INIT("application/json"), true, true},
        {STR_INIT("text/event-stream, application/json"), true, true},
        {STR_INIT("APPLICATION/Json;q=0.1"), true, true},
        {STR_INIT("application/json;charset=utf-8"), true, true},
        {STR_INIT("*/*"), true, false},
        {STR_INIT("application/*"), true, false},
        {STR_INIT("text/*"), false, false},
        {STR_INIT("app/*"), false, false},
        {STR_INIT("application/json;q=0"), false, false},
        {STR_INIT("application/json;Q=0.000, */*"), false, false},
        {STR_INIT("*/*;q=0, application/json"), true, true},
        {STR_INIT("*/*;q=0, application/*"), true, false},
        {STR_INIT("application/*;q=0, */*"), false, false},
        {STR_INIT("application/json;q=x"), false, false},
        {STR_INIT("application/json;q=2"), false, false},
        {STR_INIT("application/json;q=1.001"), false, false},
        {STR_INIT("application/json;q=1.000"), true, true},
        {STR_INIT("application/json;q=0.0001"), false, false},
        {STR_INIT("text/html;a=\", application/json\""), false, false},
        {STR_INIT("text/html;a=\"\\\", application/json\""), false, false},
        {STR_INIT("text/html;a=\"\\"), false, false},
        {STR_INIT(",, ,application/json,"), true, true},
        {STR_INIT("application/jsonx"), false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (header_accepts(cases[i].value, STR("application/json")) != cases[i].admits_json ||
            header_accepts_named(cases[i].value, STR("application/json")) != cases[i].names_json) {
            fail_msg("case %zu: %s", i, cases[i].value.at);
        }
    }
}

static void hosts_are_taken_apart(void **state)
{
    (void)state;
    static const bay_str bad[] = {
        STR_INIT(""),        STR_INIT(":80"),     STR_INIT("a:b"),
        STR_INIT("a:65536"), STR_INIT("a:0"),     STR_INIT("a:-1"),
        STR_INIT("u@a"),     STR_INIT("a b"),     STR_INIT("[::1"),
        STR_INIT("[::1]x"),  STR_INIT("[]"),      STR_INIT("::1"),
        STR_INIT("a/b"),     STR_INIT("[a]"),     STR_INIT("a\\b"),
        STR_INIT("a,b"),     STR_INIT("a\0"),     STR_INIT("a%zz"),
        STR_INIT("[::1%1]"), STR_INIT("a:80:80"), STR_INIT("[127.0.0.1]"),
    };
    bay_str host;
    uint16_t port;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (header_host_split(bad[i], &host, &port) == BAY_OK) {
            fail_msg("case %zu", i);
        }
    }
    assert_int_equal(header_host_split(STR("a.example:8080"), &host, &port), BAY_OK);
    assert_true(str_eq(host, STR("a.example")));
    assert_int_equal(port, 8080);
    assert_int_equal(header_host_split(STR("[::1]:65535"), &host, &port), BAY_OK);
    assert_true(str_eq(host, STR("::1")));
    assert_int_equal(port, 65535);
    assert_int_equal(header_host_split(STR("a:"), &host, &port), BAY_OK);
    assert_int_equal(port, 0);
}

static void origins_are_taken_apart(void **state)
{
    (void)state;
    static const bay_str bad[] = {
        STR_INIT(""),           STR_INIT("a.example"),         STR_INIT("http://"),
        STR_INIT("http://a/"),  STR_INIT("http://a?b"),        STR_INIT("http://a#b"),
        STR_INIT("//a"),        STR_INIT("http://u@a"),        STR_INIT("http:a"),
        STR_INIT("http://a b"), STR_INIT("http://a http://b"),
    };
    bay_str scheme;
    bay_str host;
    uint16_t port;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (header_origin_split(bad[i], &scheme, &host, &port) != BAY_ERR_SYNTAX) {
            fail_msg("case %zu", i);
        }
    }
    assert_int_equal(header_origin_split(STR("null"), &scheme, &host, &port), BAY_ERR_NOT_FOUND);
    assert_int_equal(header_origin_split(STR("https://[::1]"), &scheme, &host, &port), BAY_OK);
    assert_true(str_eq(scheme, STR("https")));
    assert_true(str_eq(host, STR("::1")));
    assert_int_equal(port, 443);
}

static void loopback_is_known_by_name_and_number(void **state)
{
    (void)state;
    static const char *const yes[] = {"localhost",       "LOCALHOST",        "a.localhost",
                                      "127.0.0.1",       "127.255.255.254",  "::1",
                                      "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7fff:2"};
    static const char *const no[] = {"",
                                     "localhost.evil.example",
                                     "notlocalhost",
                                     ".localhost",
                                     "127.0.0.1.evil.example",
                                     "127.1",
                                     "2130706433",
                                     "0x7f.0.0.1",
                                     "128.0.0.1",
                                     "0.0.0.0",
                                     "::",
                                     "::2",
                                     "::ffff:128.0.0.1",
                                     "::127.0.0.1",
                                     "64:ff9b::7f00:1",
                                     "[::1]",
                                     "localhost:80"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        assert_true(header_host_is_loopback(str_of(yes[i])));
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (header_host_is_loopback(str_of(no[i]))) {
            fail_msg("%s", no[i]);
        }
    }
    assert_false(header_host_is_loopback(STR("127.0.0.1\0")));
}

static void hosts_and_origins_are_allowed_exactly(void **state)
{
    (void)state;
    assert_true(header_host_is(STR("A.example:81"), STR("a.example")));
    assert_true(header_host_is(STR("a.example:81"), STR("a.example:81")));
    assert_true(header_host_is(STR("[::1]:81"), STR("[::1]")));
    assert_false(header_host_is(STR("a.example:82"), STR("a.example:81")));
    assert_false(header_host_is(STR("a.example"), STR("a.example:81")));
    assert_false(header_host_is(STR("a.example.evil"), STR("a.example")));
    assert_false(header_host_is(STR("a.example, b"), STR("a.example")));
    assert_false(header_host_is(STR(""), STR("a.example")));

    assert_true(header_origin_is(STR("https://A.example"), STR("https://a.example:443")));
    assert_true(header_origin_is(STR("https://a.example"), STR("a.example")));
    assert_true(header_origin_is(STR("http://a.example:81"), STR("a.example:81")));
    assert_false(header_origin_is(STR("http://a.example"), STR("https://a.example")));
    assert_false(header_origin_is(STR("https://a.example:444"), STR("https://a.example")));
    assert_false(header_origin_is(STR("https://a.example"), STR("a.example:444")));
    assert_false(header_origin_is(STR("https://a.example.evil"), STR("https://a.example")));
    assert_false(header_origin_is(STR("null"), STR("null")));
    assert_false(header_origin_is(STR("a.example"), STR("a.example")));
}

static void tokens_of_credentials(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "A-z.0_9~+/", "YTpi=", "a=="};
    static const char *const bad[] = {"", "=", "==", "a=b", "=a", "a b", "a,b", "\"a\"", "a\xc3"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(header_is_token68(str_of(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(header_is_token68(str_of(bad[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_travel_as_values),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(names_are_tokens),
        cmocka_unit_test(tokens_of_credentials),
        cmocka_unit_test(content_types_match_without_parameters),
        cmocka_unit_test(tracestate_is_a_list),
        cmocka_unit_test(content_types_may_rule_json_out),
        cmocka_unit_test(accept_is_read_by_its_closest_range),
        cmocka_unit_test(hosts_are_taken_apart),
        cmocka_unit_test(origins_are_taken_apart),
        cmocka_unit_test(loopback_is_known_by_name_and_number),
        cmocka_unit_test(hosts_and_origins_are_allowed_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
