/* Well-formed UTF-8 as Unicode defines it (table 3-7): no overlong forms, no surrogates, nothing
 * above U+10FFFF. */
#ifndef JSON_UTF8_H
#define JSON_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The first byte of the first ill-formed sequence in [at, end), or end. */
const unsigned char *json_utf8_skip(const unsigned char *at, const unsigned char *end);

/* The length of the well-formed sequence at `at` (< end), or 0. */
size_t json_utf8_sequence(const unsigned char *at, const unsigned char *end);

/* The number of bytes of an ill-formed sequence that one U+FFFD replaces: the longest prefix of a
 * possible character, at least 1. */
size_t json_utf8_broken(const unsigned char *at, const unsigned char *end);

/* Encodes a code point; also a surrogate (the caller decides). */
size_t json_utf8_put(char out[4], uint32_t code);

#endif
