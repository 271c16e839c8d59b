/* What the JSON tests share: a document with its arena, and every scan variant in turn. */
#ifndef TEST_JSON_CASE_H
#define TEST_JSON_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "json/json.h"
#include "json/scan.h"

typedef struct parsed {
    arena memory;
    json_doc doc;
    bay_diag diag;
    bay_err err;
    char *copy; /* of exactly the text's size: a read beyond it is seen */
} parsed;

static inline void parse_within(parsed *self, bay_str text, const json_limits *limits)
{
    arena_init(&self->memory, 1U << 30);
    self->diag = (bay_diag){0};
    self->doc = (json_doc){.count = 0};
    self->copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(self->copy);
    if (text.len > 0) {
        memcpy(self->copy, text.at, text.len);
    }
    self->err =
        json_parse(&self->doc, (bay_str){self->copy, text.len}, limits, &self->memory, &self->diag);
}

static inline void forget(parsed *self)
{
    arena_fini(&self->memory);
    free(self->copy);
}

static inline json_val must_parse(parsed *self, const char *text)
{
    parse_within(self, str_of(text), NULL);
    assert_int_equal(self->err, BAY_OK);
    return json_root(&self->doc);
}

#define EACH_SCAN(index, scans)                                                                    \
    const json_scan *scans[JSON_SCAN_MAX];                                                         \
    size_t scans##_count = json_scan_list(scans);                                                  \
    for (size_t index = 0; index < scans##_count; index++)

#define assert_str(value, literal)                                                                 \
    do {                                                                                           \
        bay_str assert_str_value = (value);                                                        \
        assert_int_equal(assert_str_value.len, sizeof(literal) - 1);                               \
        assert_memory_equal(assert_str_value.at, literal, sizeof(literal) - 1);                    \
    } while (0)

#endif
