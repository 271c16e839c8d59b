/* Decodes a string's escapes. The reader has validated the text, but it accepts a lone surrogate,
 * which is not a character: each function here reports it. Private to json/. */
#ifndef JSON_ESCAPE_H
#define JSON_ESCAPE_H

#include "patchbay/types.h"

/* `*at` is a backslash; advances it past the escape (or the pair of escapes) and returns the code
 * point. A lone surrogate is returned as it is. */
uint32_t json_escape_read(const char **at, const char *end);

static inline bool json_is_surrogate(uint32_t code)
{
    return code >= 0xd800 && code <= 0xdfff;
}

/* The decoded bytes one by one, so that strings are compared without memory. A lone surrogate gives
 * the three bytes of its encoding and sets `is_broken`. */
typedef struct json_chars {
    const char *at;
    const char *end;
    char bytes[4];
    uint8_t len;
    uint8_t used;
    bool is_broken;
} json_chars;

static inline json_chars json_chars_of(bay_str inside)
{
    return (json_chars){.at = inside.at, .end = inside.at + inside.len};
}

int json_chars_next(json_chars *self); /* 0..255, or -1 at the end */

/* Whether two spans, of which either may have escapes, are the same string. */
bool json_chars_eq(bay_str a, bay_str b);

#endif
