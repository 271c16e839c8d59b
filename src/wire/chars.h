/* Which byte is allowed where: one table for all codecs of this module. */
#ifndef WIRE_CHARS_H
#define WIRE_CHARS_H

#include "patchbay/types.h"

enum {
    CHAR_TOKEN = 0x01,      /* tchar: RFC 9110 section 5.6.2 */
    CHAR_VALUE = 0x02,      /* in a field value: tab, space, visible, obs-text */
    CHAR_PATH = 0x04,       /* pchar, '/', '?' and '%': RFC 3986 section 3.3 */
    CHAR_REG_NAME = 0x08,   /* unreserved and sub-delims */
    CHAR_UNRESERVED = 0x10, /* RFC 3986 section 2.3 */
    CHAR_ALPHA = 0x20,
    CHAR_DIGIT = 0x40,
    CHAR_LOWER = 0x80,
};

extern const uint8_t wire_chars[256];

static inline bool char_is(char c, unsigned classes)
{
    return (wire_chars[(unsigned char)c] & classes) != 0;
}

static inline char char_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* 0 to 15, or -1. */
static inline int char_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The number of leading bytes that are in one of the classes. */
static inline size_t chars_span(bay_str text, unsigned classes)
{
    size_t len = 0;
    while (len + 4 <= text.len) {
        const unsigned char *at = (const unsigned char *)text.at + len;
        if ((wire_chars[at[0]] & wire_chars[at[1]] & wire_chars[at[2]] & wire_chars[at[3]] &
             classes) == 0) {
            break;
        }
        len += 4;
    }
    while (len < text.len && char_is(text.at[len], classes)) {
        len++;
    }
    return len;
}

/* True when every byte is of one of the classes. */
static inline bool chars_are(bay_str text, unsigned classes)
{
    return chars_span(text, classes) == text.len;
}

/* True when every '%' is followed by two hex digits. */
static inline bool chars_escapes_are_whole(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '%') {
            continue;
        }
        if (text.len - i < 3 || char_hex(text.at[i + 1]) < 0 || char_hex(text.at[i + 2]) < 0) {
            return false;
        }
        i += 2;
    }
    return true;
}

/* True if no byte of a field value is a control byte (except tab). Reads eight bytes at a time:
 * this is the largest part of the cost of reading a head. */
bool chars_value_is_clean(bay_str value);

#endif
