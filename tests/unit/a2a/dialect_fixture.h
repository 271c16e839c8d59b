/* Texts in, texts out: in all JSON given here ' stands for ". Values are compared by their
 * canonical form, so neither order nor spelling matters. */
#ifndef TESTS_A2A_DIALECT_FIXTURE_H
#define TESTS_A2A_DIALECT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "a2a/dialect.h"
#include "base/check.h"
#include "json/canon.h"

typedef struct fx {
    arena memory;
    buf out;
    a2a_fault fault;
} fx;

static inline void fx_init(fx *self)
{
    arena_init(&self->memory, 64U << 20);
    buf_init(&self->out, 64U << 20);
    self->fault = (a2a_fault){0};
}

static inline void fx_fini(fx *self)
{
    buf_fini(&self->out);
    arena_fini(&self->memory);
}

static inline void fx_clear(fx *self)
{
    buf_clear(&self->out);
    self->fault = (a2a_fault){0};
}

static inline json_val fx_parse(fx *self, bay_str text)
{
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    assert_non_null(doc);
    bay_str copy;
    assert_int_equal(arena_dup(&self->memory, text, &copy), BAY_OK);
    bay_diag diag = {0};
    if (json_parse(doc, copy, NULL, &self->memory, &diag) != BAY_OK) {
        fail_msg("no JSON at %zu: %.*s", diag.offset, BAY_STR(text));
    }
    return json_root(doc);
}

static inline bay_str fx_quotes(fx *self, const char *text)
{
    bay_str copy;
    assert_int_equal(arena_dup(&self->memory, str_of(text), &copy), BAY_OK);
    char *at = (char *)(uintptr_t)copy.at;
    for (size_t i = 0; i < copy.len; i++) {
        at[i] = at[i] == '\'' ? '"' : at[i];
    }
    return copy;
}

static inline json_val fx_json(fx *self, const char *text)
{
    return fx_parse(self, fx_quotes(self, text));
}

static inline bay_str fx_canon(fx *self, json_val value)
{
    buf made;
    buf_init(&made, 64U << 20);
    assert_int_equal(json_canon(&made, value, &self->memory, NULL), BAY_OK);
    bay_str copy;
    assert_int_equal(arena_dup(&self->memory, buf_view(&made), &copy), BAY_OK);
    buf_fini(&made);
    return copy;
}

static inline void fx_same_text(fx *self, bay_str got, bay_str expected)
{
    bay_str a = fx_canon(self, fx_parse(self, got));
    bay_str b = fx_canon(self, fx_parse(self, expected));
    if (!str_eq(a, b)) {
        fail_msg("\n     got %.*s\nexpected %.*s", BAY_STR(a), BAY_STR(b));
    }
}

/* What has been written is this. */
static inline void fx_wrote(fx *self, const char *expected)
{
    fx_same_text(self, buf_view(&self->out), fx_quotes(self, expected));
}

static inline void fx_ok(fx *self, bay_err err)
{
    if (err != BAY_OK) {
        fail_msg("%s: %s", bay_err_text(err), self->fault.text);
    }
}

/* It was refused, with this in the fault's text. */
static inline void fx_refused(fx *self, bay_err err, a2a_error error, const char *text)
{
    if (err != BAY_ERR_PROTOCOL || self->fault.error != error ||
        strstr(self->fault.text, text) == NULL) {
        fail_msg("%s, %d, \"%s\"; expected \"%s\"; wrote %.*s", bay_err_text(err),
                 (int)self->fault.error, self->fault.text, text, (int)self->out.len, self->out.at);
    }
    assert_int_equal(self->out.len, 0);
}

/* It is normal form. */
static inline void fx_is_normal(fx *self, a2a_type type, bay_str text)
{
    buf out;
    bool is_normal = false;
    a2a_fault fault = {0};
    buf_init(&out, 64U << 20);
    bay_err err = a2a_normalise(type, fx_parse(self, text), &out, &is_normal, &fault);
    if (err != BAY_OK || !is_normal) {
        fail_msg("not normal (%s): %.*s", fault.text, BAY_STR(text));
    }
    buf_fini(&out);
}

#endif
