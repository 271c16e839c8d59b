/* Operations on bay_str. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <string.h>

#include "patchbay/types.h"

#define STR(literal) ((bay_str){"" literal "", sizeof(literal) - 1})
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal "", sizeof(literal) - 1                                                         \
    } /* for static initialisers */

static inline bay_str str_of(const char *text)
{
    return (bay_str){text, text != NULL ? strlen(text) : 0};
}

static inline bool str_eq(bay_str a, bay_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool str_starts(bay_str text, bay_str prefix)
{
    return text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.at, prefix.at, prefix.len) == 0);
}

static inline bool str_ends(bay_str text, bay_str suffix)
{
    return text.len >= suffix.len &&
           (suffix.len == 0 || memcmp(text.at + text.len - suffix.len, suffix.at, suffix.len) == 0);
}

/* From `from` to the end; empty if `from` is beyond the end. */
static inline bay_str str_from(bay_str text, size_t from)
{
    return from >= text.len ? (bay_str){text.at, 0} : (bay_str){text.at + from, text.len - from};
}

/* Copies `text` to `*at`, which has room for it, and advances `*at` by its length: for several
 * texts in one block of memory. */
static inline bay_str str_put(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

static inline bay_str str_head(bay_str text, size_t len)
{
    return (bay_str){text.at, len < text.len ? len : text.len};
}

bool str_eq_nocase(bay_str a, bay_str b); /* ASCII */
/* As readers of JSON compare names that ignore case: also U+017F is an s, and U+212A a k (Go's
 * encoding/json). */
bool str_eq_folded(bay_str a, bay_str b);
int str_cmp(bay_str a, bay_str b);              /* bytes, then length */
bay_str str_trim(bay_str text);                 /* spaces and tabs at both ends */
size_t str_find(bay_str text, char c);          /* text.len when absent */
size_t str_find_last(bay_str text, char c);     /* text.len when absent */
bool str_uint(bay_str text, uint64_t *out);     /* decimal digits only, no sign, no overflow */
bool str_eq_secret(bay_str a, bay_str b);       /* time independent of content */
uint64_t str_hash(bay_str text, uint64_t seed); /* keyed: safe against chosen keys */
/* Whether `text` matches `pattern`: '*' is any text, '?' one character, all else literal. Time: at
 * most the product of both lengths, whatever the pattern. */
bool str_glob(bay_str pattern, bay_str text);
size_t str_distance(bay_str a, bay_str b); /* edits between two short words (<= 64 bytes) */

#endif
