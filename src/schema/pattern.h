/* `pattern` and `patternProperties`: ECMA-262 regular expressions on PCRE2, bounded. A pattern is
 * translated, since the two differ in what an escape means, and compiled once. Private to schema/.
 */
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
/* text: PCRE2's own writing, ours. */
bay_err pattern_new_native(const pattern_engine *engine, bay_str text,
                           pattern **out) BAY_MUST_CHECK;
void pattern_free(pattern *self);

/* Does it match anywhere in `subject` (valid UTF-8)? *match is made at the first use and is
 * pattern_match_free's. Its work is counted down from *steps.
 * Errors: BAY_ERR_LIMIT (the steps are used up, or it backtracks too much), BAY_ERR_NOMEM. */
bay_err pattern_matches(const pattern *self, const pattern_engine *engine, bay_str subject,
                        void **match, uint64_t *steps, bool *out) BAY_MUST_CHECK;
void pattern_match_free(void *match);

/* Appends PCRE2's writing of the ECMA-262 expression `text`. strict: only what the grammar with the
 * u flag has (as `format: regex` wants it); else also an escape before any punctuation, and lone
 * brackets and braces, as patterns in the wild have them.
 * BAY_ERR_SYNTAX with an offset in `diag`; BAY_ERR_UNSUPPORTED. */
bay_err pattern_translate(bay_str text, bool is_strict, buf *out, bay_diag *diag) BAY_MUST_CHECK;

/* Does `text` keep to the strict grammar? Allocates nothing. */
bool pattern_is_valid(bay_str text);

#endif
