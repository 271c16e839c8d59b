/* `pattern` and `patternProperties`: ECMA-262 regular expressions on PCRE2, bounded. A pattern is
 * translated, because some escapes differ in meaning, and compiled once. For schema and policy. */
#ifndef SCHEMA_PATTERN_H
#define SCHEMA_PATTERN_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef struct pattern pattern;
/* What all patterns of a schema share: memory functions and match limits. */
typedef struct pattern_engine pattern_engine;

pattern_engine *pattern_engine_new(void); /* NULL: out of memory */
void pattern_engine_free(pattern_engine *self);

/* text: ECMA-262.
 * Errors: BAY_ERR_SYNTAX (`diag` has the offset in `text`), BAY_ERR_UNSUPPORTED (valid, but beyond
 * PCRE2), BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err pattern_new(const pattern_engine *engine, bay_str text, size_t max_bytes, pattern **out,
                    bay_diag *diag) BAY_MUST_CHECK;
/* text: in PCRE2's syntax, from this library. */
bay_err pattern_new_native(const pattern_engine *engine, bay_str text,
                           pattern **out) BAY_MUST_CHECK;
void pattern_free(pattern *self);

/* Whether it matches anywhere in `subject` (valid UTF-8). *match is created at first use; free it
 * with pattern_match_free. The work is subtracted from *steps.
 * Errors: BAY_ERR_LIMIT (no steps remain, or too much backtracking), BAY_ERR_NOMEM. */
bay_err pattern_matches(const pattern *self, const pattern_engine *engine, bay_str subject,
                        void **match, uint64_t *steps, bool *out) BAY_MUST_CHECK;
void pattern_match_free(void *match);

/* Appends the PCRE2 form of the ECMA-262 expression `text`. strict: only the grammar with the u
 * flag (for `format: regex`); otherwise also an escape before any punctuation, and unpaired
 * brackets and braces, which real patterns contain. BAY_ERR_SYNTAX with an offset in `diag`;
 * BAY_ERR_UNSUPPORTED. */
bay_err pattern_translate(bay_str text, bool is_strict, buf *out, bay_diag *diag) BAY_MUST_CHECK;

/* Whether `text` satisfies the strict grammar. Allocates nothing. */
bool pattern_is_valid(bay_str text);

#endif
