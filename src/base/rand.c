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
