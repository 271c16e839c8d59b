#include "base/rand.h"

#include <errno.h>
#include <sys/random.h>

#include "base/check.h"

void rand_bytes(void *at, size_t len)
{
    char *to = at;
    while (len > 0) {
        ssize_t got = getrandom(to, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        CHECK(got > 0);
        to += got;
        len -= (size_t)got;
    }
}

uint64_t rand_u64(void)
{
    uint64_t number;
    rand_bytes(&number, sizeof(number));
    return number;
}

void rand_uuid(char out[37])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[16];
    rand_bytes(bytes, sizeof(bytes));
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    char *at = out;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at = '\0';
}
