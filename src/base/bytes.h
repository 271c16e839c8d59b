/* Numbers and parts as bytes, for input to sealing, digests and keys: big endian, and each part
 * preceded by its length, so that two different lists of parts never have the same bytes. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include "base/buf.h"

enum { BYTES_U64 = 8 };

static inline void bytes_put_u64(char at[BYTES_U64], uint64_t number)
{
    for (int i = BYTES_U64 - 1; i >= 0; i--, number >>= 8) {
        at[i] = (char)(number & 0xff);
    }
}

static inline uint64_t bytes_get_u64(const char at[BYTES_U64])
{
    uint64_t number = 0;
    for (int i = 0; i < BYTES_U64; i++) {
        number = number << 8 | (unsigned char)at[i];
    }
    return number;
}

static inline void bytes_put_part(buf *out, bay_str part)
{
    char len[BYTES_U64];
    bytes_put_u64(len, part.len);
    buf_append(out, len, sizeof(len));
    buf_str(out, part);
}

#endif
