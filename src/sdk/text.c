/* Helpers for programs: what a bay_str is good for. */
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

bay_str bay_str_of(const char *text)
{
    return str_of(text);
}

bool bay_str_eq(bay_str a, bay_str b)
{
    return str_eq(a, b);
}

bool bay_str_eq_c(bay_str a, const char *b)
{
    return str_eq(a, str_of(b));
}

bool bay_str_starts(bay_str text, const char *prefix)
{
    return str_starts(text, str_of(prefix));
}

static bool has_nul(bay_str text)
{
    return text.len > 0 && memchr(text.at, '\0', text.len) != NULL;
}

char *bay_str_dup(bay_str text)
{
    return has_nul(text) ? NULL : mem_dup(text.at, text.len);
}

bool bay_str_copy(bay_str text, char *out, size_t size)
{
    if (out == NULL || size == 0) {
        return false;
    }
    bool is_good = text.len < size && !has_nul(text);
    size_t len = is_good ? text.len : 0;
    if (len > 0) {
        memcpy(out, text.at, len);
    }
    out[len] = '\0';
    return is_good;
}

bay_err bay_str_to_int(bay_str text, int64_t *out)
{
    bool is_negative = str_starts(text, STR("-"));
    bay_str digits = str_from(text, is_negative ? 1 : 0);
    uint64_t number;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9') {
            return BAY_ERR_SYNTAX;
        }
    }
    if (digits.len == 0 || out == NULL) {
        return out == NULL ? BAY_ERR_INVALID : BAY_ERR_SYNTAX;
    }
    if (!str_uint(digits, &number) || number > (uint64_t)INT64_MAX + is_negative) {
        return BAY_ERR_RANGE;
    }
    *out = is_negative ? (int64_t)(0 - number) : (int64_t)number;
    return BAY_OK;
}

bay_err bay_str_to_double(bay_str text, double *out)
{
    static const json_limits limits = {4096, 1, 1};
    arena memory;
    json_doc doc;
    if (out == NULL) {
        return BAY_ERR_INVALID;
    }
    arena_init(&memory, SIZE_MAX);
    bay_err err = json_parse(&doc, text, &limits, &memory, NULL);
    if (err == BAY_OK && json_raw(json_root(&doc)).len == text.len) { /* no space around it */
        err = json_double(json_root(&doc), out);
    } else if (err != BAY_ERR_NOMEM) {
        err = BAY_ERR_SYNTAX;
    }
    arena_fini(&memory);
    return err == BAY_ERR_TYPE ? BAY_ERR_SYNTAX : err;
}

void bay_free(void *memory)
{
    mem_free(memory);
}
