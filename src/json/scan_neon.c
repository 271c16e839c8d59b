/* The byte loops for 64-bit ARM, where every processor has NEON. */
#include "json/scan.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "json/utf8.h"

typedef unsigned char byte;

/* Four bits for each of sixteen bytes that are all ones or all zeros. */
static inline uint64_t nibble_mask(uint8x16_t bytes)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4)), 0);
}

static const byte *string_neon(const byte *at, const byte *end)
{
    while (end - at >= 16) {
        uint8x16_t text = vld1q_u8(at);
        uint8x16_t found =
            vorrq_u8(vorrq_u8(vceqq_u8(text, vdupq_n_u8('"')), vceqq_u8(text, vdupq_n_u8('\\'))),
                     vcltq_u8(text, vdupq_n_u8(0x20)));
        uint64_t mask = nibble_mask(found);
        if (mask != 0) {
            return at + __builtin_ctzll(mask) / 4;
        }
        at += 16;
    }
    return json_scan_portable.string(at, end);
}

/* Text that begins with ASCII is often all ASCII; the portable loop reads the rest. */
static const byte *utf8_neon(const byte *at, const byte *end)
{
    while (end - at >= 16 && vmaxvq_u8(vld1q_u8(at)) < 0x80) {
        at += 16;
    }
    return json_utf8_skip(at, end);
}

static const json_scan scan_neon = {"neon", string_neon, utf8_neon};

size_t json_scan_list_platform(const json_scan *out[JSON_SCAN_MAX], size_t count)
{
    out[count++] = &scan_neon;
    return count;
}

#endif
