/* The byte loops for x86-64: SSE2, which every such processor has, and AVX2, which is detected at
 * run time.
 *
 * With AVX2, UTF-8 is validated 32 bytes at a time by table look-up, after Keiser and Lemire,
 * "Validating UTF-8 in less than one instruction per byte" (2021): two neighbouring bytes show
 * every error except a wrong number of continuation bytes, which the two bytes before them show. A
 * vector reports only that there is an error; the portable loop then finds its place. */
#include "json/scan.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#include "json/utf8.h"

typedef unsigned char byte;

static inline unsigned stops_sse2(const byte *at)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    __m128i text = _mm_loadu_si128((const __m128i *)at);
    __m128i found =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(text, quote), _mm_cmpeq_epi8(text, backslash)),
                     _mm_cmpeq_epi8(_mm_min_epu8(text, last_control), text));
    return (unsigned)_mm_movemask_epi8(found);
}

/* The rest of a text of 16 bytes or more is read together with bytes before it. */
static const byte *string_sse2(const byte *at, const byte *end)
{
    bool is_long = end - at >= 16;
    while (end - at >= 16) {
        unsigned mask = stops_sse2(at);
        if (mask != 0) {
            return at + __builtin_ctz(mask);
        }
        at += 16;
    }
    if (is_long && stops_sse2(end - 16) == 0) {
        return end;
    }
    return json_scan_portable.string(at, end);
}

static inline bool is_ascii_sse2(const byte *at)
{
    return _mm_movemask_epi8(_mm_loadu_si128((const __m128i *)at)) == 0;
}

/* Text that begins with ASCII is often all ASCII; the portable loop reads the rest. */
static const byte *utf8_sse2(const byte *at, const byte *end)
{
    if (end - at >= 16 && end - at <= 32 && is_ascii_sse2(at) && is_ascii_sse2(end - 16)) {
        return end;
    }
    while (end - at >= 16 && is_ascii_sse2(at)) {
        at += 16;
    }
    return json_utf8_skip(at, end);
}

static const json_scan scan_sse2 = {"sse2", string_sse2, utf8_sse2};

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i stops_avx2(__m256i text)
{
    __m256i quote = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('"'));
    __m256i backslash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('\\'));
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(text, _mm256_set1_epi8(0x1f)), text);
    return _mm256_or_si256(_mm256_or_si256(quote, backslash), control);
}

AVX2 static const byte *string_avx2(const byte *at, const byte *end)
{
    bool is_long = end - at >= 32;
    while (end - at >= 32) {
        __m256i found = stops_avx2(_mm256_loadu_si256((const __m256i *)at));
        unsigned mask = (unsigned)_mm256_movemask_epi8(found);
        if (mask != 0) {
            return at + __builtin_ctz(mask);
        }
        at += 32;
    }
    if (is_long) {
        __m256i found = stops_avx2(_mm256_loadu_si256((const __m256i *)(end - 32)));
        if (_mm256_testz_si256(found, found)) {
            return end;
        }
    }
    return string_sse2(at, end);
}

/* Errors that two neighbouring bytes may show; a bit in all three tables is an error. */
enum {
    TOO_SHORT = 1 << 0,         /* a lead byte without its continuation */
    TOO_LONG = 1 << 1,          /* a continuation byte after ASCII */
    OVERLONG_3 = 1 << 2,        /* e0 and less than a0 */
    TOO_LARGE = 1 << 3,         /* f4 and more than 8f, or f5 and above */
    SURROGATE = 1 << 4,         /* ed and more than 9f */
    OVERLONG_2 = 1 << 5,        /* c0, c1 */
    OVERLONG_4 = 1 << 6,        /* f0 and less than 90 */
    TOO_LARGE_MORE = 1 << 6,    /* f5 and above, and 8x */
    TWO_CONTINUATIONS = 1 << 7, /* an error unless a lead byte is two or three bytes earlier */
    CARRY = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS,
};

#define TABLE(...)                                                                                 \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const byte[16]){__VA_ARGS__}))

/* The bytes `count` places earlier. */
#define EARLIER(text, before, count)                                                               \
    _mm256_alignr_epi8((text), _mm256_permute2x128_si256((before), (text), 0x21), 16 - (count))

AVX2 static inline __m256i high_nibbles(__m256i text)
{
    return _mm256_and_si256(_mm256_srli_epi16(text, 4), _mm256_set1_epi8(0x0f));
}

AVX2 static inline __m256i errors_avx2(__m256i text, __m256i before)
{
    const __m256i first_high =
        TABLE(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
              TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS,
              TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
              TOO_SHORT | TOO_LARGE | TOO_LARGE_MORE | OVERLONG_4);
    const byte large = CARRY | TOO_LARGE | TOO_LARGE_MORE;
    const __m256i first_low =
        TABLE(CARRY | OVERLONG_2 | OVERLONG_3 | OVERLONG_4, CARRY | OVERLONG_2, CARRY, CARRY,
              CARRY | TOO_LARGE, large, large, large, large, large, large, large, large,
              large | SURROGATE, large, large);
    const byte continuation = TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS;
    const __m256i second_high =
        TABLE(TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
              TOO_SHORT, continuation | OVERLONG_3 | TOO_LARGE_MORE | OVERLONG_4,
              continuation | OVERLONG_3 | TOO_LARGE, continuation | SURROGATE | TOO_LARGE,
              continuation | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    __m256i first = EARLIER(text, before, 1);
    __m256i pair = _mm256_and_si256(
        _mm256_and_si256(
            _mm256_shuffle_epi8(first_high, high_nibbles(first)),
            _mm256_shuffle_epi8(first_low, _mm256_and_si256(first, _mm256_set1_epi8(0x0f)))),
        _mm256_shuffle_epi8(second_high, high_nibbles(text)));
    /* a lead byte of three or four, two or three places earlier, needs a continuation byte here */
    __m256i third =
        _mm256_subs_epu8(EARLIER(text, before, 2), _mm256_set1_epi8((char)(0xe0 - 0x80)));
    __m256i fourth =
        _mm256_subs_epu8(EARLIER(text, before, 3), _mm256_set1_epi8((char)(0xf0 - 0x80)));
    __m256i asked = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(asked, pair);
}

/* The portable loop finishes at `at`. All text before is well-formed, but its last character may be
 * incomplete: then it starts at that character's lead byte, at most three bytes earlier. */
static const byte *finish_utf8(const byte *begin, const byte *at, const byte *end)
{
    const byte *lead = at;
    for (int i = 0; i < 3 && lead > begin && lead[-1] >= 0x80; i++) {
        lead--;
        if (*lead >= 0xc0) {
            return json_utf8_skip(lead, end);
        }
    }
    return json_utf8_skip(at, end);
}

AVX2 static const byte *utf8_avx2(const byte *at, const byte *end)
{
    const byte *begin = at;
    if (end - at >= 32 && end - at <= 64) { /* typical for ids: the two halves overlap */
        __m256i both = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)at),
                                       _mm256_loadu_si256((const __m256i *)(end - 32)));
        if (_mm256_movemask_epi8(both) == 0) {
            return end;
        }
    }
    __m256i before = _mm256_setzero_si256();
    while (end - at >= 64) {
        __m256i low = _mm256_loadu_si256((const __m256i *)at);
        __m256i high = _mm256_loadu_si256((const __m256i *)(at + 32));
        if (_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(low, high), before)) != 0) {
            __m256i errors = _mm256_or_si256(errors_avx2(low, before), errors_avx2(high, low));
            if (!_mm256_testz_si256(errors, errors)) {
                break;
            }
        }
        before = high;
        at += 64;
    }
    if (end - at >= 32) {
        __m256i text = _mm256_loadu_si256((const __m256i *)at);
        if (_mm256_movemask_epi8(_mm256_or_si256(text, before)) == 0) {
            at += 32;
        }
    }
    if (begin == at) {
        return utf8_sse2(at, end);
    }
    return finish_utf8(begin, at, end);
}

static const json_scan scan_avx2 = {"avx2", string_avx2, utf8_avx2};

size_t json_scan_list_platform(const json_scan *out[JSON_SCAN_MAX], size_t count)
{
    out[count++] = &scan_sse2;
    if (__builtin_cpu_supports("avx2")) {
        out[count++] = &scan_avx2;
    }
    return count;
}

#endif
