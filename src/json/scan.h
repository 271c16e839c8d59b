/* The byte loops that decide the reader's speed, in variants for different processors. Every
 * variant returns the same results; the portable one is the definition. The fastest is selected at
 * first use; tests and benchmarks may select another. Private to json/. */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "patchbay/types.h"

typedef struct json_scan {
    const char *name;
    /* The first quote, backslash or control byte (< 0x20) in [at, end), or end. */
    const unsigned char *(*string)(const unsigned char *at, const unsigned char *end);
    /* Skips well-formed UTF-8: returns the first byte of the first ill-formed sequence, or end. */
    const unsigned char *(*utf8)(const unsigned char *at, const unsigned char *end);
} json_scan;

/* The variants that this machine can run, from the portable one to the fastest one. */
enum { JSON_SCAN_MAX = 4 };
size_t json_scan_list(const json_scan *out[JSON_SCAN_MAX]);

/* Selects a variant for all threads; NULL: the fastest. It affects the speed only. */
void json_scan_use(const json_scan *scan);
const json_scan *json_scan_current(void);

extern const json_scan json_scan_portable;
/* Appends the platform's variants to `out` (which holds `count`) and returns the new count. */
size_t json_scan_list_platform(const json_scan *out[JSON_SCAN_MAX], size_t count);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define SCAN_LITTLE(word) __builtin_bswap64(word)
#else
#define SCAN_LITTLE(word) (word)
#endif

/* Eight bytes, the first of them lowest. */
static inline uint64_t scan_load(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return SCAN_LITTLE(word);
}

/* A mask whose lowest set bit belongs to the first of eight bytes that is a quote, a backslash or a
 * control byte; 0: none. (A borrow can only mark bytes above a real one.) */
static inline uint64_t scan_stops(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101U;
    uint64_t quote = word ^ (ones * '"');
    uint64_t backslash = word ^ (ones * '\\');
    uint64_t found = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
                     ((word - ones * 0x20) & ~word);
    return found & (ones * 0x80);
}

/* The position of the first of sixteen bytes that is a quote, a backslash or a control byte; 16:
 * none. */
#if defined(__SSE2__)
static inline unsigned scan_stop_in_16(const unsigned char *at)
{
    __m128i text = _mm_loadu_si128((const __m128i *)at);
    __m128i quote = _mm_cmpeq_epi8(text, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
    __m128i found = _mm_or_si128(_mm_or_si128(quote, backslash), control);
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(found) | 0x10000U);
}
#else
static inline unsigned scan_stop_in_16(const unsigned char *at)
{
    uint64_t low = scan_stops(scan_load(at));
    uint64_t high = scan_stops(scan_load(at + 8));
    if (low != 0) {
        return (unsigned)__builtin_ctzll(low) / 8;
    }
    return high != 0 ? 8 + (unsigned)__builtin_ctzll(high) / 8 : 16;
}
#endif

#endif
