/* GCRA: a bucket is one number, the time at which it will be empty. */
#include "auth/failure_limit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

enum { WINDOW_MS = 60000, WAYS = 4, SETS = FAILURE_LIMIT_ADDRESSES / WAYS, KEY_BYTES = 8 };

typedef struct bucket {
    unsigned char key[KEY_BYTES];
    uint64_t empty_at_us; /* 0: the place is free */
} bucket;

struct failure_limit {
    pthread_mutex_t lock;
    uint64_t cost_us; /* of one failure */
    uint64_t seed;
    bucket buckets[SETS][WAYS];
};

bay_err failure_limit_new(uint32_t per_minute, failure_limit **out)
{
    *out = NULL;
    if (per_minute == 0) {
        return BAY_OK;
    }
    failure_limit *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    pthread_mutex_init(&self->lock, NULL);
    self->cost_us = (uint64_t)WINDOW_MS * 1000 / per_minute;
    self->seed = rand_u64();
    *out = self;
    return BAY_OK;
}

void failure_limit_free(failure_limit *self)
{
    if (self != NULL) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

/* IPv4 whole; of IPv6 the first 64 bits, which one customer has; what is neither (a Unix socket) is
 * one. */
static void key_of(bay_str address, unsigned char out[KEY_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN] = "";
    unsigned char bytes[sizeof(struct in6_addr)];
    memset(out, 0, KEY_BYTES);
    if (address.len >= sizeof(text)) {
        return;
    }
    memcpy(text, address.at, address.len);
    if (inet_pton(AF_INET, text, bytes) == 1) {
        memcpy(out + 4, bytes, 4);
    } else if (inet_pton(AF_INET6, text, bytes) == 1) {
        bool is_mapped = memcmp(bytes, mapped, sizeof(mapped)) == 0;
        memcpy(is_mapped ? out + 4 : out, is_mapped ? bytes + 12 : bytes,
               is_mapped ? 4 : KEY_BYTES);
    }
}

/* The address's bucket; else, with `adds`, an empty one in the place of the emptiest. NULL: none.
 */
static bucket *find(failure_limit *self, const unsigned char key[KEY_BYTES], bool adds)
{
    bay_str text = {(const char *)key, KEY_BYTES};
    bucket *set = self->buckets[str_hash(text, self->seed) % SETS];
    bucket *emptiest = &set[0];
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].empty_at_us != 0 && memcmp(set[i].key, key, KEY_BYTES) == 0) {
            return &set[i];
        }
        emptiest = set[i].empty_at_us < emptiest->empty_at_us ? &set[i] : emptiest;
    }
    if (!adds) {
        return NULL;
    }
    memcpy(emptiest->key, key, KEY_BYTES);
    emptiest->empty_at_us = 0;
    return emptiest;
}

bool failure_limit_admits(failure_limit *self, bay_str address, uint64_t now_ms,
                          uint32_t *out_retry_ms)
{
    unsigned char key[KEY_BYTES];
    uint64_t full_us = now_ms * 1000 + (uint64_t)WINDOW_MS * 1000;
    bool is_admitted = true;
    if (self == NULL) {
        return true;
    }
    key_of(address, key);
    pthread_mutex_lock(&self->lock);
    const bucket *of = find(self, key, false);
    if (of != NULL && of->empty_at_us + self->cost_us > full_us) {
        is_admitted = false;
        *out_retry_ms = (uint32_t)((of->empty_at_us + self->cost_us - full_us) / 1000 + 1);
    }
    pthread_mutex_unlock(&self->lock);
    return is_admitted;
}

void failure_limit_count(failure_limit *self, bay_str address, uint64_t now_ms)
{
    unsigned char key[KEY_BYTES];
    uint64_t now_us = now_ms * 1000;
    if (self == NULL) {
        return;
    }
    key_of(address, key);
    pthread_mutex_lock(&self->lock);
    bucket *of = find(self, key, true);
    uint64_t from_us = of->empty_at_us > now_us ? of->empty_at_us : now_us;
    uint64_t full_us = now_us + (uint64_t)WINDOW_MS * 1000;
    /* never fuller than full: several may have been under way */
    of->empty_at_us = from_us + self->cost_us < full_us ? from_us + self->cost_us : full_us;
    pthread_mutex_unlock(&self->lock);
}
