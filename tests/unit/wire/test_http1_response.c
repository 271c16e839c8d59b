/* Response heads, and the writers, whose output goes back through the parser. */
#include "unit/wire/head_cases.h"

typedef struct response_case {
    const char *says; /* NULL: refused */
    bool answers_head;
    bay_str bytes;
} response_case;

#define REFUSED(bytes)                                                                             \
    {                                                                                              \
        NULL, false, STR_INIT(bytes)                                                               \
    }

static const response_case cases[] = {
    REFUSED("HTTP/1.1 20 OK\r\n\r\n"),
    REFUSED("HTTP/1.1 2000 OK\r\n\r\n"),
    REFUSED("HTTP/1.1 099 OK\r\n\r\n"),
    REFUSED("HTTP/1.1 -20 OK\r\n\r\n"),
    REFUSED("HTTP/1.1  200 OK\r\n\r\n"),
    REFUSED("HTTP/1.1\r\n\r\n"),
    REFUSED("HTTP/1.1 200 O\0K\r\n\r\n"),
    REFUSED("HTTP/2.0 200 OK\r\n\r\n"),
    REFUSED("HTTPS/1.1 200 OK\r\n\r\n"),
    REFUSED("ICY 200 OK\r\n\r\n"),
    REFUSED("\r\nHTTP/1.1 200 OK\r\n\r\n"),
    REFUSED("HTTP/1.1 200 OK\n\n"),
    REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
    REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
    REFUSED("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
    REFUSED("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    REFUSED("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
    REFUSED("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"),
    REFUSED("HTTP/1.1 100 Go\r\nContent-Length: 5\r\n\r\n"),
    REFUSED("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"),
    REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n"),
    {"|||||200|OK|1.1|length 1 2|framing 1|keep 1|expects 0|left 2\nContent-Length=2\n", false,
     STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")},
    {"|||||200||1.1|length 0 0|framing 3|keep 0|expects 0|left 0\n", false,
     STR_INIT("HTTP/1.1 200\r\n\r\n")},
    {"|||||599||1.1|length 0 0|framing 3|keep 0|expects 0|left 0\n", false,
     STR_INIT("HTTP/1.1 599 \r\n\r\n")},
    {"|||||200|All is well|1.1|length 0 0|framing 2|keep 1|expects 0|left 0\n"
     "transfer-encoding=chunked\n",
     false, STR_INIT("HTTP/1.1 200 All is well\r\ntransfer-encoding: chunked\r\n\r\n")},
    {"|||||200|OK|1.0|length 1 0|framing 0|keep 0|expects 0|left 0\nContent-Length=0\n", false,
     STR_INIT("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")},
    {"|||||100|Continue|1.1|length 0 0|framing 0|keep 1|expects 0|left 19\n", false,
     STR_INIT("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")},
    {"|||||204|No|1.1|length 1 0|framing 0|keep 0|expects 0|left 0\nContent-Length=0\n"
     "Connection=close\n",
     false, STR_INIT("HTTP/1.1 204 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")},
    {"|||||304|N|1.1|length 1 99|framing 0|keep 1|expects 0|left 0\nContent-Length=99\n", false,
     STR_INIT("HTTP/1.1 304 N\r\nContent-Length: 99\r\n\r\n")},
    {"|||||200|OK|1.1|length 1 16777217|framing 0|keep 1|expects 0|left 0\n"
     "Content-Length=16777217\n",
     true, STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n")},
    {"|||||200|OK|1.1|length 0 0|framing 0|keep 1|expects 0|left 0\n", true,
     STR_INIT("HTTP/1.1 200 OK\r\n\r\n")},
};

static void responses_are_read_or_refused(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_err err = read_head_every_way(HTTP1_RESPONSE, &http1_default_limits,
                                          cases[i].answers_head, cases[i].bytes, &out);
        buf_char(&out, '\0');
        if (cases[i].says != NULL) {
            assert_int_equal(err, BAY_OK);
            assert_string_equal(out.at, cases[i].says);
        } else if (err == BAY_OK || err == BAY_ERR_AGAIN || memcmp(out.at, "502 ", 4) != 0) {
            fail_msg("case %zu was not refused: %s", i, out.at);
        }
    }
    buf_fini(&out);
}

static void writers_refuse_injection(void **state)
{
    (void)state;
    static const http_field bad[] = {
        {STR_INIT("X"), STR_INIT("a\r\nEvil: b")},
        {STR_INIT("X"), STR_INIT("a\nb")},
        {STR_INIT("X"), STR_INIT("a\rb")},
        {STR_INIT("X"), STR_INIT("a\0b")},
        {STR_INIT("X"), STR_INIT(" a")},
        {STR_INIT("X"), STR_INIT("a\t")},
        {STR_INIT("X\r\nY"), STR_INIT("a")},
        {STR_INIT("X:"), STR_INIT("a")},
        {STR_INIT(""), STR_INIT("a")},
        {STR_INIT("X Y"), STR_INIT("a")},
        {STR_INIT("X"), STR_INIT("long enough for a word \x1b[0m")},
    };
    static const bay_str targets[] = {STR_INIT(""), STR_INIT("/a b"), STR_INIT("/a\r\nX: y"),
                                      STR_INIT("/\xc3\xa4"), STR_INIT("/\x7f")};
    buf out;
    buf_init(&out, 1000);
    buf_lit(&out, "kept");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        http_field fields[] = {{STR("Good"), STR("value")}, bad[i]};
        assert_int_equal(http1_write_request(&out, STR("GET"), STR("/"), fields, 2),
                         BAY_ERR_INVALID);
        assert_int_equal(http1_write_response(&out, 200, STR(""), fields, 2), BAY_ERR_INVALID);
        assert_int_equal(http1_write_fields(&out, fields, 2), BAY_ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_int_equal(http1_write_request(&out, STR("GET"), targets[i], NULL, 0),
                         BAY_ERR_INVALID);
    }
    assert_int_equal(http1_write_request(&out, STR("G T"), STR("/"), NULL, 0), BAY_ERR_INVALID);
    assert_int_equal(http1_write_request(&out, STR(""), STR("/"), NULL, 0), BAY_ERR_INVALID);
    assert_int_equal(http1_write_response(&out, 99, STR(""), NULL, 0), BAY_ERR_INVALID);
    assert_int_equal(http1_write_response(&out, 1000, STR(""), NULL, 0), BAY_ERR_INVALID);
    assert_int_equal(http1_write_response(&out, 200, STR("O\r\nK"), NULL, 0), BAY_ERR_INVALID);
    assert_true(str_eq(buf_view(&out), STR("kept")));
    buf_fini(&out);
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
    (void)state;
    http_field fields[] = {{STR("Host"), STR("a")}, {STR("X"), STR("y")}};
    bay_str whole = STR("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n");
    for (size_t max = 0; max <= whole.len; max++) {
        buf out;
        buf_init(&out, max);
        bay_err err = http1_write_request(&out, STR("GET"), STR("/"), fields, 2);
        assert_int_equal(err, max < whole.len ? BAY_ERR_LIMIT : BAY_OK);
        assert_int_equal(out.len, max < whole.len ? 0 : whole.len);
        if (max == whole.len) {
            assert_true(str_eq(buf_view(&out), whole));
        }
        buf_fini(&out);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                           {STR("X-Empty"), STR("")}};
    buf out;
    buf text;
    buf_init(&out, 1000);
    buf_init(&text, 1000);
    assert_int_equal(http1_write_status_line(&out, 404, STR("")), BAY_OK);
    assert_int_equal(http1_write_fields(&out, fields, 2), BAY_OK);
    assert_int_equal(http1_write_content_length(&out, 12345), BAY_OK);
    assert_int_equal(http1_write_end(&out), BAY_OK);
    assert_int_equal(
        read_head_every_way(HTTP1_RESPONSE, &http1_default_limits, false, buf_view(&out), &text),
        BAY_OK);
    assert_true(
        str_eq(buf_view(&text),
               STR("|||||404|Not Found|1.1|length 1 12345|framing 1|keep 1|expects 0|left 0\n"
                   "Content-Type=application/json\nX-Empty=\nContent-Length=12345\n")));
    buf_clear(&out);
    assert_int_equal(http1_write_response(&out, 299, STR(""), NULL, 0), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("HTTP/1.1 299 Unknown\r\n\r\n")));
    buf_fini(&out);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_read_or_refused),
        cmocka_unit_test(writers_refuse_injection),
        cmocka_unit_test(a_full_buffer_is_left_as_it_was),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
