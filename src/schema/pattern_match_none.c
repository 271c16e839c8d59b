/* Replaces pattern_match.c in a library without PCRE2: compiling refuses a schema that needs a
 * regular expression, so no check ever needs one. */
#include "base/err.h"
#include "base/mem.h"
#include "schema/pattern.h"

struct pattern_engine {
    char nothing;
};

pattern_engine *pattern_engine_new(void)
{
    return mem_zalloc(sizeof(pattern_engine));
}

void pattern_engine_free(pattern_engine *self)
{
    mem_free(self);
}

bay_err pattern_new(const pattern_engine *engine, bay_str text, size_t max_bytes, pattern **out,
                    bay_diag *diag)
{
    (void)engine;
    (void)text;
    (void)max_bytes;
    (void)out;
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without regular expressions");
}

bay_err pattern_new_native(const pattern_engine *engine, bay_str text, pattern **out)
{
    (void)engine;
    (void)text;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

void pattern_free(pattern *self)
{
    (void)self; /* always NULL */
}

bay_err pattern_matches(const pattern *self, const pattern_engine *engine, bay_str subject,
                        void **match, uint64_t *steps, bool *out)
{
    (void)self;
    (void)engine;
    (void)subject;
    (void)match;
    (void)steps;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

void pattern_match_free(void *match)
{
    (void)match;
}
