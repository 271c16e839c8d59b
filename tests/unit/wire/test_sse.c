/* Server-sent events: tables of streams, each decoded whole, cut at every byte, and byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/sse.h"

enum { MOST = 20 };

static void tell(buf *out, const sse_block *block)
{
    buf_printf(out, "%s %.*s [%.*s]", block->kind == SSE_EVENT ? "event" : "update",
               BAY_STR(block->name), BAY_STR(block->data));
    if (block->has_id) {
        buf_printf(out, " sets %.*s", BAY_STR(block->id));
    } else if (block->id.len > 0) {
        buf_printf(out, " id %.*s", BAY_STR(block->id));
    }
    if (block->retry_ms != SSE_NO_RETRY) {
        buf_printf(out, " retry %lld", (long long)block->retry_ms);
    }
    buf_char(out, '\n');
}

/* Feeds up to `cut`, then `step` at a time; `out` receives a line for each block. */
static bay_err decode(bay_str bytes, size_t cut, size_t step, buf *out)
{
    sse_decoder decoder;
    sse_decoder_init(&decoder, MOST);
    buf_clear(out);
    bay_err err = BAY_OK;
    for (size_t from = 0; err == BAY_OK;) {
        char *piece = mem_alloc(cut - from);
        assert_non_null(piece);
        memcpy(piece, bytes.at + from, cut - from);
        bay_str rest = {piece, cut - from};
        sse_block block = {.kind = SSE_EVENT};
        while (err == BAY_OK && block.kind != SSE_MORE) {
            size_t consumed = 0;
            err = sse_decoder_feed(&decoder, rest, &consumed, &block);
            assert_true(consumed <= rest.len);
            if (err == BAY_OK && block.kind != SSE_MORE) {
                tell(out, &block);
            }
            rest = str_from(rest, consumed);
        }
        assert_true(err != BAY_OK || rest.len == 0);
        mem_free(piece);
        if (err != BAY_OK || cut == bytes.len) {
            break;
        }
        sse_decoder_trim(&decoder); /* must change nothing, wherever it comes */
        from = cut;
        cut = step < bytes.len - cut ? cut + step : bytes.len;
    }
    sse_decoder_fini(&decoder);
    buf_char(out, '\0');
    return err;
}

typedef struct stream_case {
    const char *says;
    bay_str bytes;
    bay_err err;
} stream_case;

static const stream_case cases[] = {
    {"", STR_INIT("data: never dispatched"), BAY_OK},
    {"", STR_INIT("data: one line end\n"), BAY_OK},
    {"", STR_INIT(": comment\n\n\n\r\n\r\revent: alone\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("data: a\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("data:a\r\r"), BAY_OK},
    {"event message [a]\nevent message [b]\n", STR_INIT("data: a\r\n\r\ndata: b\r\n\r\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("data: a\r\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("data: a\n\r\n"), BAY_OK},
    {"event message [a]\n",
     STR_INIT("\xef\xbb\xbf"
              "data: a\n\n"),
     BAY_OK},
    {"",
     STR_INIT("\xef\xbb\xbf\xef\xbb\xbf"
              "data: a\n\n"),
     BAY_OK},
    {"event message [b]\n",
     STR_INIT("\xef\xbb"
              "data: a\n\ndata: b\n\n"),
     BAY_OK},
    {"event message [a\nb\n\nc]\n", STR_INIT("data: a\ndata: b\ndata\ndata:c\n\n"), BAY_OK},
    {"event message [ a ]\n", STR_INIT("data:  a \n\n"), BAY_OK},
    {"event message []\n", STR_INIT("data\n\n"), BAY_OK},
    {"event message [\n]\n", STR_INIT("data\ndata\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("Data: x\n data: y\ndatax: z\ndata: a\n\n"), BAY_OK},
    {"event endpoint [/m?s=1]\nevent message [b]\n",
     STR_INIT("event: endpoint\ndata: /m?s=1\n\ndata: b\n\n"), BAY_OK},
    {"event b [x]\n", STR_INIT("event: a\nevent: b\ndata: x\n\n"), BAY_OK},
    {"event message [x]\n", STR_INIT("event: a\n\ndata: x\n\n"), BAY_OK},
    /* the priming event of a resumable stream, in both of its spellings */
    {"event message [] sets 7\nevent message [a] id 7\n", STR_INIT("id: 7\ndata: \n\ndata: a\n\n"),
     BAY_OK},
    {"update message [] sets 7\nevent message [a] id 7\n", STR_INIT("id: 7\n\ndata: a\n\n"),
     BAY_OK},
    {"event message [a] sets 7\nevent message [b] sets \nevent message [c]\n",
     STR_INIT("id: 7\ndata: a\n\nid\ndata: b\n\ndata: c\n\n"), BAY_OK},
    {"event message [a] sets 2\n", STR_INIT("id: 1\nid: 2\ndata: a\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("id: 1\0\ndata: a\n\n"), BAY_OK},
    {"update message [] retry 3000\n", STR_INIT("retry: 3000\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("retry: 3s\nretry: -1\nretry:\ndata: a\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("retry: 9223372036854775808\ndata: a\n\n"), BAY_OK},
    /* bounds: 20 bytes of data */
    {"event message [01234567890123456789]\n", STR_INIT("data: 01234567890123456789\n\n"), BAY_OK},
    {"event message [a]\n", STR_INIT("data: a\n\ndata: 012345678901234567890\n\n"), BAY_ERR_LIMIT},
    {"event message [0123456789\n012345678]\n", STR_INIT("data: 0123456789\ndata: 012345678\n\n"),
     BAY_OK},
    {"", STR_INIT("data: 0123456789\ndata: 0123456789\n\n"), BAY_ERR_LIMIT},
    {"", STR_INIT(": 34 bytes are let through 67890123\n"), BAY_OK},
    {"", STR_INIT(": 37 bytes are one too many 9012345678"), BAY_ERR_LIMIT},
    {"", STR_INIT(":\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n:\n"), BAY_OK},
};

static void streams_are_decoded(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_str bytes = cases[i].bytes;
        for (size_t cut = 0; cut <= bytes.len; cut++) {
            bay_err err = decode(bytes, cut, cut == 0 ? 1 : bytes.len, &out);
            if (err != cases[i].err || strcmp(out.at, cases[i].says) != 0) {
                fail_msg("case %zu cut at %zu: %s, %s instead of %s", i, cut, bay_err_text(err),
                         out.at, cases[i].says);
            }
        }
    }
    buf_fini(&out);
}

static void names_and_ids_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        size_t most;
    } fields[] = {{"id", SSE_ID_BYTES}, {"event", SSE_NAME_BYTES}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t over = 0; over < 2; over++) {
            buf bytes;
            sse_decoder decoder;
            sse_block block;
            size_t consumed;
            buf_init(&bytes, 1 << 16);
            sse_decoder_init(&decoder, 1 << 16);
            buf_printf(&bytes, "%s:", fields[i].field);
            for (size_t n = 0; n < fields[i].most + over; n++) {
                buf_char(&bytes, 'x');
            }
            buf_lit(&bytes, "\ndata: a\n\n");
            assert_int_equal(sse_decoder_feed(&decoder, buf_view(&bytes), &consumed, &block),
                             over ? BAY_ERR_LIMIT : BAY_OK);
            sse_decoder_fini(&decoder);
            buf_fini(&bytes);
        }
    }
}

/* Of one block at most 64 KiB more may be no data than is; each block begins anew. */
static void what_is_no_data_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int count;
        bay_err err;
    } streams[] = {
        {"data:\n", 20000, BAY_ERR_LIMIT},   {":\n", 40000, BAY_ERR_LIMIT},
        {"event:x\n", 20000, BAY_ERR_LIMIT}, {"x\n", 40000, BAY_ERR_LIMIT},
        {"data:\n", 10000, BAY_OK},          {"data: 123456789\n", 20000, BAY_OK},
        {":\n\n", 100000, BAY_OK},           {"\n", 100000, BAY_OK},
        {"data:\ndata:\n\n", 20000, BAY_OK},
    };
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        buf bytes;
        sse_decoder decoder;
        buf_init(&bytes, 1 << 22);
        for (int n = 0; n < streams[i].count; n++) {
            buf_str(&bytes, str_of(streams[i].line));
        }
        sse_decoder_init(&decoder, 1 << 22);
        bay_str rest = buf_view(&bytes);
        bay_err err = BAY_OK;
        while (rest.len > 0 && err == BAY_OK) {
            sse_block block;
            size_t consumed = 0;
            err = sse_decoder_feed(&decoder, rest, &consumed, &block);
            rest = str_from(rest, consumed);
        }
        if (err != streams[i].err) {
            fail_msg("case %zu: %s", i, bay_err_text(err));
        }
        sse_decoder_fini(&decoder);
        buf_fini(&bytes);
    }
}

static void the_caller_may_stop_between_blocks(void **state)
{
    (void)state;
    sse_decoder decoder;
    sse_block block;
    size_t consumed;
    bay_str bytes = STR("id: 1\ndata: a\n\ndata: b\n\n");
    sse_decoder_init(&decoder, 100);
    assert_int_equal(sse_decoder_last_id(&decoder).len, 0);
    assert_int_equal(sse_decoder_feed(&decoder, bytes, &consumed, &block), BAY_OK);
    assert_int_equal(block.kind, SSE_EVENT);
    assert_int_equal(consumed, 15);
    assert_true(str_eq(sse_decoder_last_id(&decoder), STR("1")));
    sse_decoder_trim(&decoder);
    assert_true(str_eq(sse_decoder_last_id(&decoder), STR("1")));
    assert_int_equal(sse_decoder_feed(&decoder, str_from(bytes, 15), &consumed, &block), BAY_OK);
    assert_int_equal(block.kind, SSE_EVENT);
    assert_true(str_eq(block.data, STR("b")));
    assert_int_equal(sse_decoder_feed(&decoder, STR(""), &consumed, &block), BAY_OK);
    assert_int_equal(block.kind, SSE_MORE);
    sse_decoder_fini(&decoder);
}

static bool lies_in(bay_str part, bay_str whole)
{
    return part.at >= whole.at && part.at + part.len <= whole.at + whole.len;
}

static void data_of_one_line_is_not_copied(void **state)
{
    (void)state;
    static const struct {
        bay_str first;
        bay_str then;
        bay_str data;
        bool is_copied;
    } ways[] = {
        {STR_INIT(""), STR_INIT("data: a\ndata: b\n\n"), STR_INIT("a\nb"), true},
        {STR_INIT("da"), STR_INIT("ta: ab\n\n"), STR_INIT("ab"), true},
        {STR_INIT("data: ab\n"), STR_INIT("\n"), STR_INIT("ab"), true},
        {STR_INIT("data: ab\n"), STR_INIT("data\n\n"), STR_INIT("ab\n"), true},
        {STR_INIT("id: 1"), STR_INIT("\ndata: ab\n\n"), STR_INIT("ab"), false},
        {STR_INIT(""), STR_INIT("data\n\n"), STR_INIT(""), false},
        {STR_INIT(""), STR_INIT("data:ab\r\nid: 1\r\n\r\n"), STR_INIT("ab"), false},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        sse_decoder decoder;
        sse_block block = {.kind = SSE_MORE};
        size_t consumed;
        char first[32];
        sse_decoder_init(&decoder, 100);
        memcpy(first, ways[i].first.at, ways[i].first.len);
        bay_str given = {first, ways[i].first.len};
        assert_int_equal(sse_decoder_feed(&decoder, given, &consumed, &block), BAY_OK);
        assert_int_equal(block.kind, SSE_MORE);
        memset(first, 'x', sizeof(first)); /* they are gone */
        assert_int_equal(sse_decoder_feed(&decoder, ways[i].then, &consumed, &block), BAY_OK);
        assert_int_equal(block.kind, SSE_EVENT);
        assert_true(str_eq(block.data, ways[i].data));
        assert_int_equal(lies_in(block.data, ways[i].then), !ways[i].is_copied);
        sse_decoder_fini(&decoder);
    }
}

static void bad_events_are_not_written(void **state)
{
    (void)state;
    static const sse_event bad[] = {
        {.name = STR_INIT("a\nb"), .data = STR_INIT("x"), .retry_ms = SSE_NO_RETRY},
        {.name = STR_INIT("a\rb"), .data = STR_INIT("x"), .retry_ms = SSE_NO_RETRY},
        {.id = STR_INIT("a\nb"), .data = STR_INIT("x"), .retry_ms = SSE_NO_RETRY},
        {.id = STR_INIT("a\rb"), .data = STR_INIT("x"), .retry_ms = SSE_NO_RETRY},
        {.id = STR_INIT("a\0b"), .data = STR_INIT("x"), .retry_ms = SSE_NO_RETRY},
        {.name = STR_INIT("a"), .retry_ms = SSE_NO_RETRY},
    };
    buf out;
    buf_init(&out, 100);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sse_write_event(&out, &bad[i]), BAY_ERR_INVALID);
    }
    assert_int_equal(sse_write_comment(&out, STR("a\nb")), BAY_ERR_INVALID);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
}

typedef struct written_case {
    const char *bytes;
    sse_event event;
} written_case;

static const written_case written[] = {
    {"data: {}\n\n", {.data = STR_INIT("{}"), .retry_ms = SSE_NO_RETRY}},
    {"id: 1\ndata: \n\n", {.id = STR_INIT("1"), .data = STR_INIT(""), .retry_ms = SSE_NO_RETRY}},
    {"event: e\nid: \nretry: 0\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\ndata: \n\n",
     {.name = STR_INIT("e"),
      .id = STR_INIT(""),
      .data = STR_INIT("a\rb\r\nc\n\nd\r"),
      .retry_ms = 0}},
    {"retry: 5\n\n", {.retry_ms = 5}},
};

static void events_are_written_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        size_t whole = strlen(written[i].bytes);
        for (size_t max = 0; max <= whole; max++) {
            buf out;
            buf_init(&out, max);
            bay_err err = sse_write_event(&out, &written[i].event);
            assert_int_equal(err, max < whole ? BAY_ERR_LIMIT : BAY_OK);
            assert_true(str_eq(buf_view(&out), max < whole ? STR("") : str_of(written[i].bytes)));
            buf_fini(&out);
        }
    }
    buf out;
    buf_init(&out, 100);
    assert_int_equal(sse_write_comment(&out, STR("")), BAY_OK);
    assert_int_equal(sse_write_comment(&out, STR("hi")), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR(":\n\n: hi\n\n")));
    buf_fini(&out);
}

/* Lets `left` allocations pass and fails all later ones. */
static size_t left;

static void *count_alloc(size_t bytes, void *user)
{
    (void)user;
    return left > 0 && left-- > 0 ? malloc(bytes) : NULL;
}

static void *count_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return left > 0 && left-- > 0 ? realloc(old, bytes) : NULL;
}

static void count_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const mem_hooks hooks = {count_alloc, count_resize, count_release, NULL};
    bay_str pieces[] = {STR("id: 1\neve"), STR("nt: x\ndata: a\ndata: b\n\n")};
    mem_set_hooks(&hooks);
    bay_err err = BAY_ERR_NOMEM;
    size_t tries = 0;
    for (; err == BAY_ERR_NOMEM; tries++) {
        sse_decoder decoder;
        sse_block block;
        size_t consumed;
        left = tries;
        sse_decoder_init(&decoder, 100);
        err = sse_decoder_feed(&decoder, pieces[0], &consumed, &block);
        if (err == BAY_OK) {
            err = sse_decoder_feed(&decoder, pieces[1], &consumed, &block);
        }
        assert_true(err == BAY_ERR_NOMEM || (err == BAY_OK && block.kind == SSE_EVENT));
        sse_decoder_fini(&decoder);
    }
    assert_int_equal(err, BAY_OK);
    assert_true(tries > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_decoded),
        cmocka_unit_test(names_and_ids_are_bounded),
        cmocka_unit_test(what_is_no_data_is_bounded),
        cmocka_unit_test(the_caller_may_stop_between_blocks),
        cmocka_unit_test(data_of_one_line_is_not_copied),
        cmocka_unit_test(bad_events_are_not_written),
        cmocka_unit_test(events_are_written_or_not_at_all),
        cmocka_unit_test(every_allocation_may_fail), /* last: it replaces the allocator */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
