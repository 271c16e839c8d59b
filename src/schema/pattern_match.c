/* PCRE2, bounded. A match is tried with a small limit of backtracking first and then with larger
 * ones. Each attempt is paid for in steps beforehand, so that the work of a whole check stays
 * within its steps however many strings meet a costly pattern. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "schema/pattern.h"
#include "schema/pcre.h"

enum {
    ALLOWANCES = 3,
    BACKTRACKS_A_STEP = 16,
    MATCH_HEAP_KIB = 4096,
    MATCH_DEPTH = 20000,
    GROUPS_NEST = 100,
};
static const uint32_t allowances[ALLOWANCES] = {2000, 40000, 1000000};

struct pattern_engine {
    pcre2_general_context *memory;
    pcre2_compile_context *compile;
    pcre2_match_context *match[ALLOWANCES];
};

struct pattern {
    pcre2_code *code;
    bool is_anchored;
};

static void *pattern_match_take(PCRE2_SIZE bytes, void *user)
{
    (void)user;
    return mem_alloc(bytes);
}

static void give(void *old, void *user)
{
    (void)user;
    mem_free(old);
}

pattern_engine *pattern_engine_new(void)
{
    pattern_engine *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->memory = pcre2_general_context_create(pattern_match_take, give, NULL);
    self->compile = self->memory != NULL ? pcre2_compile_context_create(self->memory) : NULL;
    bool is_whole = self->compile != NULL;
    for (size_t i = 0; i < ALLOWANCES && is_whole; i++) {
        self->match[i] = pcre2_match_context_create(self->memory);
        is_whole = self->match[i] != NULL;
        if (is_whole) {
            pcre2_set_match_limit(self->match[i], allowances[i]);
            pcre2_set_depth_limit(self->match[i], MATCH_DEPTH);
            pcre2_set_heap_limit(self->match[i], MATCH_HEAP_KIB);
        }
    }
    if (!is_whole) {
        pattern_engine_free(self);
        return NULL;
    }
    pcre2_set_parens_nest_limit(self->compile, GROUPS_NEST);
    return self;
}

void pattern_engine_free(pattern_engine *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < ALLOWANCES; i++) {
        pcre2_match_context_free(self->match[i]);
    }
    pcre2_compile_context_free(self->compile);
    pcre2_general_context_free(self->memory);
    mem_free(self);
}

static bay_err compile_code(const pattern_engine *engine, bay_str text, pcre2_code **out,
                            bay_diag *diag)
{
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
                             PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C |
                             PCRE2_NO_UTF_CHECK;
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text.at, text.len, options, &error, &offset, engine->compile);
    if (code != NULL) {
        *out = code;
        return BAY_OK;
    }
    if (error == PCRE2_ERROR_HEAP_FAILED) {
        return diag_set(diag, BAY_ERR_NOMEM, "no memory for the regular expression");
    }
    PCRE2_UCHAR message[120] = {0};
    pcre2_get_error_message(error, message, sizeof(message));
    return diag_set(diag, BAY_ERR_UNSUPPORTED, "PCRE2 cannot compile the regular expression: %s",
                    (const char *)message);
}

static void pattern_match_finish(pattern *self)
{
    uint32_t all = 0;
    pcre2_pattern_info(self->code, PCRE2_INFO_ALLOPTIONS, &all);
    self->is_anchored = (all & PCRE2_ANCHORED) != 0;
    pcre2_jit_compile(self->code, PCRE2_JIT_COMPLETE); /* if this fails, the interpreter is used */
}

bay_err pattern_new_native(const pattern_engine *engine, bay_str text, pattern **out)
{
    pattern *self = mem_zalloc(sizeof(*self));
    bay_err err = self != NULL ? compile_code(engine, text, &self->code, NULL) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        pattern_free(self);
        return err;
    }
    pattern_match_finish(self);
    *out = self;
    return BAY_OK;
}

bay_err pattern_new(const pattern_engine *engine, bay_str text, size_t max_bytes, pattern **out,
                    bay_diag *diag)
{
    enum { WIDER = 64 }; /* \S has the longest translation for its length */
    if (text.len > max_bytes) {
        return diag_set(diag, BAY_ERR_LIMIT,
                        "the regular expression has more than %zu bytes (max_pattern_bytes)",
                        max_bytes);
    }
    buf translated;
    buf_init(&translated, text.len * WIDER + WIDER * 4);
    pattern *self = mem_zalloc(sizeof(*self));
    bay_err err = self != NULL ? pattern_translate(text, false, &translated, diag) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        buf_char(&translated, '\0'); /* so that the text is never NULL */
        err = translated.err;
    }
    if (err == BAY_OK) {
        err = compile_code(engine, str_head(buf_view(&translated), translated.len - 1), &self->code,
                           diag);
    } else if (err == BAY_ERR_NOMEM) {
        diag_set(diag, err, "no memory for the regular expression");
    }
    buf_fini(&translated);
    if (err != BAY_OK) {
        pattern_free(self);
        return err;
    }
    pattern_match_finish(self);
    *out = self;
    return BAY_OK;
}

void pattern_free(pattern *self)
{
    if (self != NULL) {
        pcre2_code_free(self->code);
        mem_free(self);
    }
}

/* An expression that may begin anywhere is tried at every position, which may be quadratic; PCRE2's
 * limits do not count that. */
static uint64_t cost_of(const pattern *self, size_t bytes)
{
    uint64_t cost = bytes / 16;
    uint64_t blocks = bytes / 64;
    return self->is_anchored ? cost : cost + blocks * blocks;
}

bay_err pattern_matches(const pattern *self, const pattern_engine *engine, bay_str subject,
                        void **match, uint64_t *steps, bool *out)
{
    uint64_t cost = cost_of(self, subject.len);
    if (*match == NULL) {
        *match = pcre2_match_data_create(1, engine->memory);
        if (*match == NULL) {
            return BAY_ERR_NOMEM;
        }
    }
    const char *at = subject.len > 0 ? subject.at : "";
    for (size_t i = 0; i < ALLOWANCES; i++) {
        if (cost > *steps) {
            *steps = 0;
            return BAY_ERR_LIMIT;
        }
        *steps -= cost;
        int found = pcre2_match(self->code, (PCRE2_SPTR)at, subject.len, 0, PCRE2_NO_UTF_CHECK,
                                *match, engine->match[i]);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
            found = pcre2_match(self->code, (PCRE2_SPTR)at, subject.len, 0,
                                PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, *match, engine->match[i]);
        }
        if (found >= 0 || found == PCRE2_ERROR_NOMATCH) {
            *out = found >= 0;
            return BAY_OK;
        }
        if (found == PCRE2_ERROR_NOMEMORY) {
            return BAY_ERR_NOMEM;
        }
        if (found != PCRE2_ERROR_MATCHLIMIT || i + 1 == ALLOWANCES) {
            return BAY_ERR_LIMIT;
        }
        cost = allowances[i + 1] / BACKTRACKS_A_STEP;
    }
    return BAY_ERR_LIMIT;
}

void pattern_match_free(void *match)
{
    pcre2_match_data_free(match);
}
