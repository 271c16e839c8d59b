/* Request heads: what must be refused, with which status, and what a good one says. */
#include <stdlib.h>

#include "unit/wire/head_cases.h"

#define GET "GET / HTTP/1.1\r\n"
#define HOST "Host: a.example\r\n"

typedef struct bad_case {
    int status;
    const char *text;
    bay_str bytes;
} bad_case;

#define BAD(status, text, bytes)                                                                   \
    {                                                                                              \
        status, text, STR_INIT(bytes)                                                              \
    }

static const bad_case bad_cases[] = {
    /* framing: RFC 9112 section 6 */
    BAD(400, "together",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(400, "together",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
    BAD(400, "twice", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    BAD(400, "twice", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\ncontent-length: 5\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 2\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"),
    BAD(400, "decimal", "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n"),
    BAD(413, "too long", "POST / HTTP/1.1\r\n" HOST "Content-Length: 16777217\r\n\r\n"),
    BAD(413, "too long", "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n"),
    BAD(501, "coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    BAD(501, "coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"),
    BAD(501, "coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"),
    BAD(400, "exactly one", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n"),
    BAD(400, "exactly one",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"),
    BAD(400, "exactly one", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;a=b\r\n\r\n"),
    BAD(400, "exactly one", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: ,chunked\r\n\r\n"),
    BAD(400, "exactly one", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"),
    BAD(400, "control",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
        "chunked\r\n\r\n"),
    BAD(400, "twice",
        "POST / HTTP/1.1\r\n" HOST
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(400, "HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    /* line ends, white space, control bytes */
    BAD(400, "without CR", "GET / HTTP/1.1\n" HOST "\r\n"),
    BAD(400, "without CR", GET "Host: a.example\n\r\n"),
    BAD(400, "without CR", GET HOST "\n"),
    BAD(400, "control", GET HOST "X: a\rb\r\n\r\n"),
    BAD(400, "control", GET HOST "X: a\r\r\n\r\n"),
    BAD(400, "control", GET HOST "X: a\0b\r\n\r\n"),
    BAD(400, "control", GET HOST "X: a\x7f\r\n\r\n"),
    BAD(400, "control", GET HOST "X: a value that is longer \x01 than a word\r\n\r\n"),
    BAD(400, "white space", GET HOST " folded\r\n\r\n"),
    BAD(400, "white space", GET HOST "\tfolded\r\n\r\n"),
    BAD(400, "white space", GET " " HOST "\r\n"),
    BAD(400, "before the colon", GET HOST "X : a\r\n\r\n"),
    BAD(400, "before the colon", GET "Host\t: a.example\r\n\r\n"),
    BAD(400, "no name", GET HOST ": a\r\n\r\n"),
    BAD(400, "name is malformed", GET HOST "X\r\n\r\n"),
    BAD(400, "name is malformed", GET HOST "X(: a\r\n\r\n"),
    BAD(400, "name is malformed", GET HOST "X\0: a\r\n\r\n"),
    BAD(400, "name is malformed", GET HOST "\xc3\xa4: a\r\n\r\n"),
    BAD(400, "name is malformed", GET HOST "\r" HOST "\r\n"),
    /* the request line */
    BAD(400, "version", "GET  / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "version", "GET /  HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "version", "GET / HTTP/1.1 \r\n" HOST "\r\n"),
    BAD(400, "method", "GET\t/\tHTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "version", "GET /\r\n" HOST "\r\n"),
    BAD(400, "version", "GET / http/1.1\r\n" HOST "\r\n"),
    BAD(400, "version", "GET / HTTP/1.10\r\n" HOST "\r\n"),
    BAD(400, "version", "GET / HTTP/1\r\n" HOST "\r\n"),
    BAD(400, "version", "GET / HTTP/+.1\r\n" HOST "\r\n"),
    BAD(400, "malformed", "GET  HTTP/1.1\r\n" HOST "\r\n"),
    BAD(505, "HTTP/1.0 and", "GET / HTTP/9.9\r\n" HOST "\r\n"),
    BAD(505, "HTTP/1.0 and", "GET / HTTP/1.2\r\n" HOST "\r\n"),
    BAD(505, "HTTP/1.0 and", "GET / HTTP/0.9\r\n" HOST "\r\n"),
    BAD(505, "HTTP/1.0 and", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BAD(400, "method", "get / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "method", "GeT / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "method", "G(T / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "method", "GET\r\n" HOST "\r\n"),
    BAD(501, "method", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "not HTTP", " GET / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "not HTTP", "\x16\x03\x01\x02"),
    BAD(400, "not HTTP", "\r\n\r\n" GET HOST "\r\n"),
    BAD(400, "not HTTP", "\nGET / HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "method", "\rGET / HTTP/1.1\r\n" HOST "\r\n"),
    /* targets */
    BAD(400, "neither", "GET index.html HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "neither", "GET ftp://a.example/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "neither", "GET http:/a.example/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "neither", "GET ?a HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "different", "GET http://b.example/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "different", "GET http://a.example:81/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "different", "GET https://a.example:80/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "authority", "GET http://u@a.example/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "authority", "GET http:///x HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /a#b HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /a\\b HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /\"a\" HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /%zz HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /% HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /a?%1 HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET /a\0b HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "may not", "GET http://a.example/a#b HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "ask for *", "GET * HTTP/1.1\r\n" HOST "\r\n"),
    BAD(400, "neither", "OPTIONS *x HTTP/1.1\r\n" HOST "\r\n"),
    BAD(501, "CONNECT", "CONNECT a.example:443 HTTP/1.1\r\n" HOST "\r\n"),
    /* Host and Expect */
    BAD(400, "missing", GET "\r\n"),
    BAD(400, "missing", GET "X-Host: a.example\r\n\r\n"),
    BAD(400, "twice", GET HOST HOST "\r\n"),
    BAD(400, "twice", "GET / HTTP/1.0\r\n" HOST "host: b.example\r\n\r\n"),
    BAD(400, "not a host", GET "Host:\r\n\r\n"),
    BAD(400, "not a host", GET "Host: a b\r\n\r\n"),
    BAD(400, "not a host", GET "Host: a.example, b.example\r\n\r\n"),
    BAD(400, "not a host", GET "Host: u@a.example\r\n\r\n"),
    BAD(400, "not a host", GET "Host: a.example/x\r\n\r\n"),
    BAD(400, "not a host", GET "Host: a.example:x\r\n\r\n"),
    BAD(400, "not a host", GET "Host: a.example:65536\r\n\r\n"),
    BAD(400, "not a host", GET "Host: [::1\r\n\r\n"),
    BAD(400, "not a host", GET "Host: [::g]\r\n\r\n"),
    BAD(400, "not a host", GET "Host: ::1\r\n\r\n"),
    BAD(417, "expectation", GET HOST "Expect: tea\r\n\r\n"),
};

static void bad_heads_are_refused(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        const bad_case *bad = &bad_cases[i];
        bay_err err =
            read_head_every_way(HTTP1_REQUEST, &http1_default_limits, false, bad->bytes, &out);
        buf_char(&out, '\0');
        if (err == BAY_OK || err == BAY_ERR_AGAIN || strtol(out.at, NULL, 10) != bad->status ||
            strstr(out.at, bad->text) == NULL) {
            fail_msg("case %zu: wanted %d %s, got %s / %s for\n%s", i, bad->status, bad->text,
                     bay_err_text(err), out.at, bad->bytes.at);
        }
    }
    buf_fini(&out);
}

typedef struct good_case {
    const char *says;
    bay_str bytes;
} good_case;

#define GOOD(says, bytes)                                                                          \
    {                                                                                              \
        says, STR_INIT(bytes)                                                                      \
    }

static const good_case good_cases[] = {
    GOOD("GET|/|/||a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|left 0\n"
         "Host=a.example\n",
         GET HOST "\r\n"),
    GOOD("GET|/|/||a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|left 9\n"
         "Host=a.example\n",
         "\r\n" GET HOST "\r\nGET /next"),
    GOOD("POST|/mcp?a=b?c&d=%20|/mcp|?a=b?c&d=%20|a.example:80|0||1.1|length 1 12|framing 1|"
         "keep 1|expects 1|left 0\n"
         "hOST=a.example:80\nCONTENT-LENGTH=12\nExpect=100-Continue\nX=\n",
         "POST /mcp?a=b?c&d=%20 HTTP/1.1\r\nhOST: \t a.example:80 \r\nCONTENT-LENGTH:12\r\n"
         "Expect: 100-Continue\r\nX: \t \r\n\r\n"),
    GOOD("GET|/?|/|?|[::1]:8080|0||1.1|length 1 0|framing 0|keep 0|expects 0|left 0\n"
         "Host=[::1]:8080\nContent-Length=000\nConnection=x ,Close\n",
         "GET /? HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 000\r\nConnection: x ,Close"
         "\r\n\r\n"),
    GOOD("M-SEARCH|/|/||a.example|0||1.1|length 0 0|framing 2|keep 1|expects 0|left 0\n"
         "Host=a.example\nTransfer-Encoding=Chunked\n",
         "M-SEARCH / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked \r\n\r\n"),
    GOOD("GET|/|/|||0||1.0|length 0 0|framing 0|keep 0|expects 0|left 0\n",
         "GET / HTTP/1.0\r\n\r\n"),
    GOOD("GET|/|/|||0||1.0|length 0 0|framing 0|keep 1|expects 0|left 0\n"
         "Connection=keep-alive\nExpect=100-continue\n",
         "GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n"),
    GOOD("GET|/|/|||0||1.0|length 0 0|framing 0|keep 0|expects 0|left 0\n"
         "Connection=keep-alive\nConnection=close\n",
         "GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"),
    GOOD("GET|/|/|||0||1.0|length 0 0|framing 0|keep 1|expects 0|left 0\n"
         "Connection=, keep-alive\nTransfer-Encodings=gzip\n",
         "GET / HTTP/1.0\r\nConnection:, keep-alive\r\nTransfer-Encodings: gzip\r\n\r\n"),
    GOOD("GET|HTTP://A.example:80/x?y|/x|?y|a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|"
         "left 0\nHost=a.example\n",
         "GET HTTP://A.example:80/x?y HTTP/1.1\r\n" HOST "\r\n"),
    GOOD("GET|https://a.example?y|/|?y|a.example:443|0||1.1|length 0 0|framing 0|keep 1|expects 0|"
         "left 0\nHost=a.example:443\n",
         "GET https://a.example?y HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
    GOOD("GET|http://b.example|/||b.example|0||1.0|length 0 0|framing 0|keep 0|expects 0|"
         "left 0\n",
         "GET http://b.example HTTP/1.0\r\n\r\n"),
    GOOD("OPTIONS|*|*||a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|left 0\n"
         "Host=a.example\n",
         "OPTIONS * HTTP/1.1\r\n" HOST "\r\n"),
    GOOD("OPTIONS|http://a.example|*||a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|"
         "left 0\nHost=a.example\n",
         "OPTIONS http://a.example HTTP/1.1\r\n" HOST "\r\n"),
    GOOD("GET|//evil|//evil||a.example|0||1.1|length 0 0|framing 0|keep 1|expects 0|left 0\n"
         "Host=a.example\nX=tabs\tinside and \xc3\xa4 bytes\n",
         "GET //evil HTTP/1.1\r\n" HOST "X: tabs\tinside and \xc3\xa4 bytes\r\n\r\n"),
};

static void good_heads_are_read(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(good_cases) / sizeof(good_cases[0]); i++) {
        bay_err err = read_head_every_way(HTTP1_REQUEST, &http1_default_limits, false,
                                          good_cases[i].bytes, &out);
        buf_char(&out, '\0');
        assert_int_equal(err, BAY_OK);
        assert_string_equal(out.at, good_cases[i].says);
    }
    buf_fini(&out);
}

static void an_unfinished_head_wants_more(void **state)
{
    (void)state;
    bay_str whole = STR("\r\n" GET HOST "X: y\r\n\r\n");
    buf out;
    buf_init(&out, 1 << 20);
    for (size_t len = 0; len < whole.len; len++) {
        assert_int_equal(read_head_every_way(HTTP1_REQUEST, &http1_default_limits, false,
                                             str_head(whole, len), &out),
                         BAY_ERR_AGAIN);
    }
    buf_fini(&out);
}

static void limits_hold_to_the_byte(void **state)
{
    (void)state;
    bay_str bytes = STR("GET /abcdef HTTP/1.1\r\nHost: a\r\nX: y\r\nZ: z\r\n\r\n");
    http1_limits limits = {.head_bytes = bytes.len, .target_bytes = 7, .fields = 3};
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, bytes, &out), BAY_OK);

    limits.head_bytes--;
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, bytes, &out),
                     BAY_ERR_LIMIT);
    assert_true(str_starts(buf_view(&out), STR("431 ")));
    limits.head_bytes = 21; /* the request line and its LF are 22 */
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, bytes, &out),
                     BAY_ERR_LIMIT);
    assert_true(str_starts(buf_view(&out), STR("414 ")));
    limits.head_bytes = bytes.len;

    limits.target_bytes = 6;
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, bytes, &out),
                     BAY_ERR_LIMIT);
    assert_true(str_starts(buf_view(&out), STR("414 ")));
    limits.target_bytes = 7;

    limits.fields = 2;
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, bytes, &out),
                     BAY_ERR_LIMIT);
    assert_true(str_starts(buf_view(&out), STR("431 ")));

    bay_str with_body = STR("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    limits = (http1_limits){.head_bytes = 100, .target_bytes = 7, .fields = 3, .body_bytes = 9};
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, with_body, &out), BAY_OK);
    limits.body_bytes = 8;
    assert_int_equal(read_head_every_way(HTTP1_REQUEST, &limits, false, with_body, &out),
                     BAY_ERR_LIMIT);
    assert_true(str_starts(buf_view(&out), STR("413 ")));
    buf_fini(&out);
}

/* A long line that comes byte by byte must not be searched from its start each time: 30 KiB would
 * be 450 million byte reads, and this test would be the slowest of all. */
static void a_long_line_by_the_byte_is_searched_once(void **state)
{
    (void)state;
    buf bytes;
    http_field fields[4];
    http1_limits limits = http1_default_limits;
    http1_parser parser;
    http1_head head;
    size_t consumed;
    limits.fields = 4;
    buf_init(&bytes, 1 << 20);
    buf_lit(&bytes, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    while (bytes.len < 30000) {
        buf_char(&bytes, 'x');
    }
    http1_parser_init(&parser, HTTP1_REQUEST, &limits, fields, false);
    for (size_t len = 1; len <= bytes.len; len++) {
        assert_int_equal(http1_head_parse(&parser, (bay_str){bytes.at, len}, &head, &consumed),
                         BAY_ERR_AGAIN);
        assert_int_equal(parser.scan_at, len);
    }
    buf_fini(&bytes);
}

static void fields_are_found_in_any_case(void **state)
{
    (void)state;
    http_field fields[] = {
        {STR("Accept"), STR("a")}, {STR("X"), STR("")}, {STR("ACCEPT"), STR("b")}};
    assert_true(str_eq(http1_field_find(fields, 3, STR("accept")), STR("a")));
    assert_non_null(http1_field_find(fields, 3, STR("x")).at);
    assert_null(http1_field_find(fields, 3, STR("y")).at);
    assert_null(http1_field_find(NULL, 0, STR("y")).at);
    assert_int_equal(http1_field_count(fields, 3, STR("aCCEPT")), 2);
    assert_int_equal(http1_field_count(fields, 3, STR("accep")), 0);
    assert_true(http1_list_holds(STR(" a ,\tClose"), STR("close")));
    assert_false(http1_list_holds(STR("closed, not-close"), STR("close")));
    assert_false(http1_list_holds(STR(""), STR("close")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_heads_are_refused),
        cmocka_unit_test(good_heads_are_read),
        cmocka_unit_test(an_unfinished_head_wants_more),
        cmocka_unit_test(limits_hold_to_the_byte),
        cmocka_unit_test(a_long_line_by_the_byte_is_searched_once),
        cmocka_unit_test(fields_are_found_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
