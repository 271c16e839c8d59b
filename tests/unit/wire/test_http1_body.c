/* Bodies: chunks, lengths, until the end; every case whole, cut at every byte, and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/http1.h"

static const http1_limits small = {
    .body_bytes = 20, .framing_bytes = 60, .chunk_extension_bytes = 10, .trailer_bytes = 16};

typedef struct outcome {
    bay_err err;
    int status;
    bool has_ended;
    size_t consumed;
    buf data;
} outcome;

/* Feeds up to `cut`, then `step` at a time, each piece from memory of its own. */
static void decode(http1_head head, const http1_limits *limits, bay_str bytes, size_t cut,
                   size_t step, outcome *out)
{
    http1_body body;
    http1_body_init(&body, HTTP1_REQUEST, &head, limits);
    *out = (outcome){.err = BAY_OK};
    buf_init(&out->data, 1 << 20);
    for (size_t from = 0; out->err == BAY_OK && !out->has_ended;) {
        size_t len = cut - from;
        char *piece = mem_alloc(len);
        assert_non_null(piece);
        memcpy(piece, bytes.at + from, len);
        bay_str rest = {piece, len};
        for (http1_body_event event = HTTP1_BODY_DATA; event == HTTP1_BODY_DATA;) {
            size_t consumed;
            bay_str data;
            out->err = http1_body_feed(&body, rest, &consumed, &data, &event);
            if (out->err != BAY_OK) {
                out->status = body.refusal.status;
                break;
            }
            buf_str(&out->data, data);
            out->consumed += consumed;
            out->has_ended = event == HTTP1_BODY_END;
            rest = str_from(rest, consumed);
        }
        mem_free(piece);
        if (cut == bytes.len) {
            break;
        }
        from = cut;
        cut = step < bytes.len - cut ? cut + step : bytes.len;
    }
    if (out->err != BAY_OK) {
        size_t consumed;
        bay_str data;
        http1_body_event event;
        assert_int_equal(http1_body_feed(&body, STR("0"), &consumed, &data, &event), BAY_ERR_STATE);
        out->consumed = 0; /* where exactly is not promised */
    } else if (!out->has_ended) {
        out->err = http1_body_finish(&body);
        out->has_ended = out->err == BAY_OK;
    }
}

static void decode_every_way(http1_head head, const http1_limits *limits, bay_str bytes,
                             outcome *out)
{
    decode(head, limits, bytes, bytes.len, 1, out);
    for (size_t cut = 0; cut <= bytes.len; cut++) {
        outcome other;
        decode(head, limits, bytes, cut, cut == 0 ? 1 : bytes.len, &other);
        if (other.err != out->err || other.status != out->status ||
            other.has_ended != out->has_ended || other.consumed != out->consumed ||
            !str_eq(buf_view(&other.data), buf_view(&out->data))) {
            fail_msg("cut at %zu: %s, whole: %s; %.*s", cut, bay_err_text(other.err),
                     bay_err_text(out->err), BAY_STR(bytes));
        }
        buf_fini(&other.data);
    }
}

typedef struct bad_case {
    bay_err err;
    int status;
    bay_str bytes;
} bad_case;

static const bad_case bad_chunks[] = {
    {BAY_ERR_SYNTAX, 400, STR_INIT("-1\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("+1\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0x1\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT(" 1\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1 \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\t\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1 1\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1 =a\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1; \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a= \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=b \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=b =c\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\"b\" c\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\"b\" \r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\v;a\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_LIMIT, 400, STR_INIT("1           ;a\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT(";a\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("g\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\na\n0\n\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\ra\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\r\nab\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("2\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\r\na0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\r\na\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1\r\na\r0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\n\rx")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\n\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("00000000000000001\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_LIMIT, 413, STR_INIT("ffffffffffffffff\r\n")},
    {BAY_ERR_LIMIT, 413, STR_INIT("8000000000000000\r\n")},
    {BAY_ERR_LIMIT, 413, STR_INIT("15\r\n")},
    {BAY_ERR_LIMIT, 413, STR_INIT("a\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a b\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\"\r\n\"\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\"\\\0\"\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a=\"b\"c\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("1;a\rb")},
    {BAY_ERR_LIMIT, 400, STR_INIT("1;abcdefghij\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_LIMIT, 400, STR_INIT("1;abcd\r\na\r\n1;abcde\r\na\r\n0\r\n\r\n")},
    {BAY_ERR_LIMIT, 431, STR_INIT("0\r\nA: 0123456789ab\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nHost: a\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nCONNECTION: a\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nX : a\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\n: a\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\n a\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nX: a\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nX: a\rb\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nX: \0\r\n\r\n")},
    {BAY_ERR_SYNTAX, 400, STR_INIT("0\r\nX\r\n\r\n")},
    {BAY_ERR_PROTOCOL, 0, STR_INIT("")},
    {BAY_ERR_PROTOCOL, 0, STR_INIT("5\r\nabc")},
    {BAY_ERR_PROTOCOL, 0, STR_INIT("1\r\na\r\n0\r\n\r")},
    {BAY_ERR_PROTOCOL, 0, STR_INIT("0\r\nX: a\r\n")},
};

static void bad_chunks_are_refused(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    for (size_t i = 0; i < sizeof(bad_chunks) / sizeof(bad_chunks[0]); i++) {
        outcome out;
        decode_every_way(head, &small, bad_chunks[i].bytes, &out);
        if (out.err != bad_chunks[i].err || out.status != bad_chunks[i].status || out.has_ended) {
            fail_msg("case %zu: %s, %d", i, bay_err_text(out.err), out.status);
        }
        buf_fini(&out.data);
    }
}

static void framing_trailers_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Content-Length", "transfer-encoding", "Trailer",         "TE", "Upgrade",
        "Expect",         "Keep-Alive",        "Content-Encoding"};
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        buf bytes;
        outcome out;
        buf_init(&bytes, 200);
        buf_printf(&bytes, "0\r\n%s: 1\r\n\r\n", names[i]);
        decode_every_way(head, &http1_default_limits, buf_view(&bytes), &out);
        assert_int_equal(out.err, BAY_ERR_SYNTAX);
        buf_fini(&out.data);
        buf_clear(&bytes);
        buf_printf(&bytes, "0\r\nX%s: 1\r\n\r\n", names[i]);
        decode_every_way(head, &http1_default_limits, buf_view(&bytes), &out);
        assert_int_equal(out.err, BAY_OK);
        buf_fini(&out.data);
        buf_fini(&bytes);
    }
}

typedef struct good_case {
    bay_str bytes;
    bay_str data;
    size_t left; /* bytes of the next message */
} good_case;

static const good_case good_chunks[] = {
    {STR_INIT("0\r\n\r\n"), STR_INIT(""), 0},
    {STR_INIT("0\r\n\r\nGET"), STR_INIT(""), 3},
    {STR_INIT("5\r\nab\r\nc\r\n0000\r\n\r\n0\r\n\r\n"), STR_INIT("ab\r\nc"), 5},
    {STR_INIT("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), STR_INIT("01234567890123456789"),
     0},
    {STR_INIT("0000000000000001\r\na\r\n0\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1;a;b=c\r\na\r\n0;de\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1 ;a\r\na\r\n0 \t; b\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1; a = b;c\r\na\r\n0\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1;\ta\t=\"\" ;c\r\na\r\n0\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1;a=\"\\\" ;\"\r\na\r\n0\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1;a=\"\";b\r\na\r\n0\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("1\r\na\r\n0\r\nA:\r\nB: cdef\r\n\r\n"), STR_INIT("a"), 0},
    {STR_INIT("0\r\nA: 0123456789a\r\n\r\n"), STR_INIT(""), 0},
};

static void good_chunks_are_read(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    for (size_t i = 0; i < sizeof(good_chunks) / sizeof(good_chunks[0]); i++) {
        outcome out;
        decode_every_way(head, &small, good_chunks[i].bytes, &out);
        assert_int_equal(out.err, BAY_OK);
        assert_true(out.has_ended);
        assert_true(str_eq(buf_view(&out.data), good_chunks[i].data));
        assert_int_equal(out.consumed, good_chunks[i].bytes.len - good_chunks[i].left);
        buf_fini(&out.data);
    }
}

/* `count` chunks, each of `size` bytes and with `zeros` in front of its size. */
static void put_chunks(buf *out, size_t count, size_t size, size_t zeros)
{
    static const char bytes[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < zeros; k++) {
            buf_char(out, '0');
        }
        buf_printf(out, "%zx\r\n%.*s\r\n", size, (int)size, bytes);
    }
    assert_int_equal(out->err, BAY_OK);
}

typedef struct framing_case {
    size_t count, size, zeros;
    bay_err err;
} framing_case;

/* The framing of a body may be as long as its data and 64 KiB more, however it is spread. */
static void framing_counts(void **state)
{
    (void)state;
    static const framing_case cases[] = {
        {1000, 1, 0, BAY_OK},           {20000, 1, 0, BAY_ERR_LIMIT},  {20000, 4, 0, BAY_OK},
        {100000, 5, 0, BAY_OK},         {100000, 4, 0, BAY_ERR_LIMIT}, {10000, 16, 14, BAY_OK},
        {20000, 16, 14, BAY_ERR_LIMIT},
    };
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        outcome out;
        buf bytes;
        buf_init(&bytes, 1 << 22);
        put_chunks(&bytes, cases[i].count, cases[i].size, cases[i].zeros);
        buf_lit(&bytes, HTTP1_LAST_CHUNK);
        decode(head, &http1_default_limits, buf_view(&bytes), bytes.len, 1, &out);
        if (out.err != cases[i].err || out.status != (out.err == BAY_OK ? 0 : 413)) {
            fail_msg("case %zu: %s, %d", i, bay_err_text(out.err), out.status);
        }
        buf_fini(&out.data);
        buf_fini(&bytes);
    }
}

/* Where exactly it ends does not depend on how the bytes were cut, and trailers count, too. */
static void framing_is_counted_to_the_byte(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    http1_limits limits = small;
    for (limits.framing_bytes = 0; limits.framing_bytes < 30; limits.framing_bytes++) {
        outcome out;
        /* 3 before the first byte, then 5, 3 and 3 less, at last 9 and a trailer of 6 */
        decode_every_way(head, &limits, STR("1\r\na\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n"), &out);
        assert_int_equal(out.err, limits.framing_bytes < 17 ? BAY_ERR_LIMIT : BAY_OK);
        buf_fini(&out.data);
    }
}

static void silence_forgives_framing(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    http1_limits limits = small;
    limits.framing_bytes = 9;
    limits.body_bytes = HTTP1_UNBOUNDED;
    for (int rests = 0; rests < 2; rests++) {
        http1_body body;
        http1_body_init(&body, HTTP1_RESPONSE, &head, &limits);
        bay_err err = BAY_OK;
        for (int i = 0; i < 100 && err == BAY_OK; i++) {
            bay_str rest = STR("1\r\n\n\r\n");
            http1_body_event event = HTTP1_BODY_DATA;
            while (event == HTTP1_BODY_DATA && err == BAY_OK) {
                size_t consumed = 0;
                bay_str data;
                err = http1_body_feed(&body, rest, &consumed, &data, &event);
                rest = str_from(rest, consumed);
            }
            if (rests) {
                http1_body_rest(&body);
            }
        }
        assert_int_equal(err, rests ? BAY_OK : BAY_ERR_LIMIT);
    }
}

static void lengths_are_kept(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_LENGTH, .content_length = 4};
    outcome out;
    decode_every_way(head, &small, STR("abcdGET"), &out);
    assert_int_equal(out.err, BAY_OK);
    assert_int_equal(out.consumed, 4);
    assert_true(str_eq(buf_view(&out.data), STR("abcd")));
    buf_fini(&out.data);
    decode_every_way(head, &small, STR("abc"), &out);
    assert_int_equal(out.err, BAY_ERR_PROTOCOL);
    buf_fini(&out.data);
    head = (http1_head){.framing = HTTP1_FRAMING_NONE};
    decode_every_way(head, &small, STR("GET"), &out);
    assert_int_equal(out.err, BAY_OK);
    assert_int_equal(out.consumed, 0);
    buf_fini(&out.data);
}

static void a_body_may_end_with_the_connection(void **state)
{
    (void)state;
    http1_head head = {.framing = HTTP1_FRAMING_CLOSE};
    outcome out;
    decode_every_way(head, &small, STR("01234567890123456789"), &out);
    assert_int_equal(out.err, BAY_OK);
    assert_int_equal(out.data.len, 20);
    buf_fini(&out.data);
    decode_every_way(head, &small, STR("012345678901234567890"), &out);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    assert_int_equal(out.status, 413);
    assert_int_equal(out.data.len, 20);
    buf_fini(&out.data);
}

static void chunks_written_are_read(void **state)
{
    (void)state;
    char prefix[HTTP1_CHUNK_PREFIX_MAX];
    assert_int_equal(http1_chunk_prefix(prefix, 0), 0);
    assert_int_equal(http1_chunk_prefix(prefix, SIZE_MAX), 18);
    assert_memory_equal(prefix, "ffffffffffffffff\r\n", 18);
    assert_int_equal(http1_chunk_prefix(prefix, 4096), 6);
    assert_memory_equal(prefix, "1000\r\n", 6);

    http1_head head = {.framing = HTTP1_FRAMING_CHUNKED};
    buf bytes;
    outcome out;
    buf_init(&bytes, 200);
    http1_write_chunk(&bytes, STR("hello "));
    http1_write_chunk(&bytes, STR(""));
    http1_write_chunk(&bytes, STR("world"));
    buf_lit(&bytes, HTTP1_LAST_CHUNK);
    decode_every_way(head, &small, buf_view(&bytes), &out);
    assert_int_equal(out.err, BAY_OK);
    assert_true(str_eq(buf_view(&out.data), STR("hello world")));
    buf_fini(&out.data);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_chunks_are_refused),
        cmocka_unit_test(framing_trailers_are_refused),
        cmocka_unit_test(good_chunks_are_read),
        cmocka_unit_test(framing_counts),
        cmocka_unit_test(framing_is_counted_to_the_byte),
        cmocka_unit_test(silence_forgives_framing),
        cmocka_unit_test(lengths_are_kept),
        cmocka_unit_test(a_body_may_end_with_the_connection),
        cmocka_unit_test(chunks_written_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
