#include "auth/failure_limit.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/buckets.h"
#include "base/mem.h"
#include "base/str.h"

enum { WINDOW_US = 60000000, KEY_BYTES = 8 };

struct failure_limit {
    buckets *table;
    uint64_t cost_us; /* of one failure */
};

bay_err failure_limit_new(uint32_t per_minute, failure_limit **out)
{
    *out = NULL;
    if (per_minute == 0) {
        return BAY_OK;
    }
    failure_limit *self = mem_zalloc(sizeof(*self));
    if (self == NULL || buckets_new(FAILURE_LIMIT_ADDRESSES, &self->table) != BAY_OK) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    self->cost_us = (uint64_t)WINDOW_US / per_minute;
    *out = self;
    return BAY_OK;
}

void failure_limit_free(failure_limit *self)
{
    if (self != NULL) {
        buckets_unref(self->table);
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

static bucket_charge charge_of(const failure_limit *self, bay_str address)
{
    unsigned char key[KEY_BYTES];
    key_of(address, key);
    return (bucket_charge){.key = buckets_key(self->table, (bay_str){(const char *)key, KEY_BYTES}),
                           .cost_us = self->cost_us,
                           .most_us = WINDOW_US};
}

bool failure_limit_admits(failure_limit *self, bay_str address, uint64_t now_ms,
                          uint32_t *out_retry_ms)
{
    if (self == NULL) {
        return true;
    }
    bucket_charge charge = charge_of(self, address);
    uint64_t wait_us = buckets_wait(self->table, &charge, now_ms * 1000);
    if (wait_us > 0) {
        *out_retry_ms = (uint32_t)(wait_us / 1000 + 1);
    }
    return wait_us == 0;
}

void failure_limit_count(failure_limit *self, bay_str address, uint64_t now_ms)
{
    if (self != NULL) {
        bucket_charge charge = charge_of(self, address);
        buckets_fill(self->table, &charge, now_ms * 1000);
    }
}
