/* Runs heads through the HTTP/1.1 parser whole, cut in two at every byte, and byte by byte, always
 * from memory of exactly that size (so that reading beyond it is seen) that moves between the
 * calls. */
#ifndef TESTS_HEAD_CASES_H
#define TESTS_HEAD_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/http1.h"

enum { CASE_FIELDS = 100 };

/* Everything a head says, as text, so that two readings compare as one string. */
static inline void describe_head(buf *out, const http1_head *head, size_t left)
{
    buf_printf(out, "%.*s|%.*s|%.*s|%s%.*s|%.*s|%d|%.*s|1.%d|", BAY_STR(head->method),
               BAY_STR(head->target), BAY_STR(head->path), head->query.at != NULL ? "?" : "",
               BAY_STR(head->query), BAY_STR(head->authority), head->status, BAY_STR(head->reason),
               head->minor);
    buf_printf(out, "length %d %llu|framing %d|keep %d|expects %d|left %zu\n",
               head->has_content_length, (unsigned long long)head->content_length,
               (int)head->framing, head->keep_alive, head->expects_continue, left);
    for (uint32_t i = 0; i < head->field_count; i++) {
        buf_printf(out, "%.*s=%.*s\n", BAY_STR(head->fields[i].name),
                   BAY_STR(head->fields[i].value));
    }
}

/* Feeds the first `cut` bytes, then `step` more at a time, until the parser decides. */
static inline bay_err read_head(http1_kind kind, const http1_limits *limits, bool answers_head,
                                bay_str bytes, size_t cut, size_t step, buf *out)
{
    http_field fields[CASE_FIELDS];
    http1_parser parser;
    http1_head head;
    size_t consumed = 0;
    char *old = NULL;
    bay_err err;
    assert_true(limits->fields <= CASE_FIELDS);
    http1_parser_init(&parser, kind, limits, fields, answers_head);
    for (;;) {
        char *copy = mem_alloc(cut);
        assert_non_null(copy);
        memcpy(copy, bytes.at, cut);
        mem_free(old);
        old = copy;
        err = http1_head_parse(&parser, (bay_str){copy, cut}, &head, &consumed);
        if (err != BAY_ERR_AGAIN || cut == bytes.len) {
            break;
        }
        cut = step < bytes.len - cut ? cut + step : bytes.len;
    }
    buf_clear(out);
    if (err == BAY_OK) {
        describe_head(out, &head, bytes.len - consumed);
    } else if (err != BAY_ERR_AGAIN) {
        buf_printf(out, "%d %s at %zu", parser.refusal.status, parser.refusal.text,
                   parser.refusal.offset);
    }
    mem_free(old);
    assert_int_equal(out->err, BAY_OK);
    return err;
}

/* The verdict on the whole, and proof that no split changes it. */
static inline bay_err read_head_every_way(http1_kind kind, const http1_limits *limits,
                                          bool answers_head, bay_str bytes, buf *out)
{
    buf other;
    buf_init(&other, 1 << 20);
    bay_err err = read_head(kind, limits, answers_head, bytes, bytes.len, 1, out);
    for (size_t cut = 0; cut <= bytes.len; cut++) {
        bool is_by_byte = cut == 0;
        bay_err again =
            read_head(kind, limits, answers_head, bytes, cut, is_by_byte ? 1 : bytes.len, &other);
        if (again != err || !str_eq(buf_view(&other), buf_view(out))) {
            fail_msg("cut at %zu: %s / %.*s, whole: %s / %.*s", cut, bay_err_text(again),
                     (int)other.len, other.at, bay_err_text(err), (int)out->len, out->at);
        }
    }
    buf_fini(&other);
    return err;
}

#endif
