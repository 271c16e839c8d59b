/* What the tests of A2A's tables share: a document, normalised; a fault with its path. */
#ifndef TEST_A2A_TYPES_CASE_H
#define TEST_A2A_TYPES_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "a2a/types.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"

typedef struct text_doc {
    arena memory;
    json_doc doc;
    char *copy; /* of exactly the text's size: a read beyond it is seen */
} text_doc;

static inline json_val text_doc_parse(text_doc *self, bay_str text)
{
    arena_init(&self->memory, 1U << 28);
    self->copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(self->copy);
    memcpy(self->copy, text.at, text.len);
    bay_diag diag = {0};
    bay_err err =
        json_parse(&self->doc, (bay_str){self->copy, text.len}, NULL, &self->memory, &diag);
    if (err != BAY_OK) {
        print_error("%s at %zu: %.*s\n", diag.text, (size_t)diag.offset, (int)text.len, text.at);
    }
    assert_int_equal(err, BAY_OK);
    return json_root(&self->doc);
}

static inline void text_doc_forget(text_doc *self)
{
    arena_fini(&self->memory);
    free(self->copy);
}

/* The normal form of `text`, in `out`; fails the test when it has none. */
static inline bool normal_of(a2a_type type, bay_str text, buf *out)
{
    text_doc doc;
    json_val value = text_doc_parse(&doc, text);
    bool is_normal = false;
    a2a_fault fault = {0};
    bay_err err = a2a_normalise(type, value, out, &is_normal, &fault);
    if (err != BAY_OK) {
        print_error("%s: %.*s\n", fault.text, (int)text.len, text.at);
    }
    assert_int_equal(err, BAY_OK);
    if (is_normal) {
        assert_int_equal(out->len, 0);
        buf_str(out, json_raw(value));
    }
    text_doc_forget(&doc);
    return is_normal;
}

#define assert_text(view, expected)                                                                \
    do {                                                                                           \
        bay_str view_ = (view);                                                                    \
        bay_str expected_ = str_of(expected);                                                      \
        if (!str_eq(view_, expected_)) {                                                           \
            print_error("have %.*s\nwant %s\n", BAY_STR(view_), expected);                         \
        }                                                                                          \
        assert_true(str_eq(view_, expected_));                                                     \
    } while (0)

#endif
