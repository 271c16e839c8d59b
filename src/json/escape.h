/* The text behind a string's escapes. Works on spans the reader has validated. A surrogate without
 * its partner passes the reader but is no character: everything here says when it meets one.
 * Private to json/. */
#ifndef JSON_ESCAPE_H
#define JSON_ESCAPE_H

#include "patchbay/types.h"

/* `*at` is a backslash; moves it behind the escape (or the pair of escapes) and returns the code
 * point. A lone surrogate comes back as itself. */
uint32_t json_escape_read(const char **at, const char *end);

static inline bool json_is_surrogate(uint32_t code)
{
    return code >= 0xd800 && code <= 0xdfff;
}

/* The decoded bytes one by one, so that strings compare without memory. A lone surrogate gives the
 * three bytes that would encode it, and sets `is_broken`. */
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

/* Are these two spans (either may have escapes) the same string? */
bool json_chars_eq(bay_str a, bay_str b);

#endif
