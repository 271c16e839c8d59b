/* UTF-8, one character at a time; runs of ASCII eight bytes at a time. */
#include "json/utf8.h"

#include <stdbool.h>
#include <string.h>

static bool is_between(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

/* What may follow a lead byte: the number of bytes, and the range of the first of them. */
static size_t lead(unsigned char byte, unsigned char *out_low, unsigned char *out_high)
{
    *out_low = 0x80;
    *out_high = 0xbf;
    if (is_between(byte, 0xc2, 0xdf)) {
        return 1;
    }
    if (is_between(byte, 0xe0, 0xef)) {
        *out_low = byte == 0xe0 ? 0xa0 : 0x80;
        *out_high = byte == 0xed ? 0x9f : 0xbf;
        return 2;
    }
    if (is_between(byte, 0xf0, 0xf4)) {
        *out_low = byte == 0xf0 ? 0x90 : 0x80;
        *out_high = byte == 0xf4 ? 0x8f : 0xbf;
        return 3;
    }
    return 0;
}

/* The number of bytes at `at` that fit the pattern of their lead byte; *out_is_whole: all of it. */
static size_t fitting(const unsigned char *at, const unsigned char *end, bool *out_is_whole)
{
    unsigned char low;
    unsigned char high;
    size_t following = lead(at[0], &low, &high);
    *out_is_whole = at[0] < 0x80;
    size_t len = 1;
    for (size_t i = 1; i <= following; i++) {
        if (at + i >= end || !is_between(at[i], low, high)) {
            return len;
        }
        low = 0x80;
        high = 0xbf;
        len++;
        *out_is_whole = i == following;
    }
    return len;
}

size_t json_utf8_sequence(const unsigned char *at, const unsigned char *end)
{
    bool is_whole;
    size_t len = fitting(at, end, &is_whole);
    return is_whole ? len : 0;
}

size_t json_utf8_broken(const unsigned char *at, const unsigned char *end)
{
    bool is_whole;
    return fitting(at, end, &is_whole);
}

static inline bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Most text beyond ASCII has one of these two forms, whose second byte has the full range. */
static inline size_t common_sequence(const unsigned char *at, const unsigned char *end)
{
    if (end - at >= 3 && is_continuation(at[1])) {
        if (is_between(at[0], 0xc2, 0xdf)) {
            return 2;
        }
        if (is_between(at[0], 0xe1, 0xef) && at[0] != 0xed && is_continuation(at[2])) {
            return 3;
        }
    }
    return json_utf8_sequence(at, end);
}

const unsigned char *json_utf8_skip(const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        while (end - at >= 8) {
            uint64_t word;
            memcpy(&word, at, sizeof(word));
            if ((word & 0x8080808080808080U) != 0) {
                break;
            }
            at += 8;
        }
        while (at < end && *at < 0x80) {
            at++;
        }
        while (at < end && *at >= 0x80) {
            size_t len = common_sequence(at, end);
            if (len == 0) {
                return at;
            }
            at += len;
        }
    }
    return at;
}

size_t json_utf8_put(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}
