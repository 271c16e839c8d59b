/* What the schema tests share: a schema and an instance from text, and what came of them. */
#ifndef TEST_SCHEMA_CASE_H
#define TEST_SCHEMA_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "schema/schema.h"

/* Compiles a text; the document is gone when this returns, as its caller's may be. */
static inline bay_err compile_within(const char *text, const schema_options *options, schema **out,
                                     bay_diag *diag)
{
    arena memory;
    json_doc doc;
    *diag = (bay_diag){0};
    arena_init(&memory, 1U << 28);
    char *copy = malloc(strlen(text) + 1); /* so that a view of it that is kept is seen */
    assert_non_null(copy);
    memcpy(copy, text, strlen(text) + 1);
    const json_limits limits = {64U << 20, 1000, 8U << 20};
    bay_err err = json_parse(&doc, str_of(copy), &limits, &memory, diag);
    if (err == BAY_OK) {
        err = schema_compile(json_root(&doc), options, out, diag);
    }
    arena_fini(&memory);
    free(copy);
    return err;
}

static inline schema *must_compile(const char *text)
{
    schema *compiled = NULL;
    bay_diag diag;
    bay_err err = compile_within(text, NULL, &compiled, &diag);
    if (err != BAY_OK) {
        print_error("%s\n%s\n", text, diag.text);
    }
    assert_int_equal(err, BAY_OK);
    return compiled;
}

static inline bay_err check_text_of(const schema *compiled, const char *instance,
                                    schema_failures *out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1U << 30);
    const json_limits limits = {256U << 20, 100000, 32U << 20};
    assert_int_equal(json_parse(&doc, str_of(instance), &limits, &memory, NULL), BAY_OK);
    bay_err err = schema_check(compiled, json_root(&doc), NULL, out);
    assert_int_equal(schema_check(compiled, json_root(&doc), NULL, NULL), err);
    arena_fini(&memory);
    return err;
}

static inline bay_err check_once(const char *text, const char *instance, schema_failures *out)
{
    schema *compiled = must_compile(text);
    bay_err err = check_text_of(compiled, instance, out);
    schema_free(compiled);
    return err;
}

#endif
