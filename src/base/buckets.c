#include "base/buckets.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

typedef struct bucket {
    bucket_key key;
    uint64_t empty_at_us; /* 0: the place is free */
} bucket;

_Static_assert(sizeof(bucket) == BUCKET_BYTES, "as the header says");

struct buckets {
    atomic_uint references;
    pthread_mutex_t lock; /* of the sets */
    uint64_t seeds[2];
    size_t set_count;
    bucket sets[][BUCKET_WAYS];
};

bay_err buckets_new(size_t most, buckets **out)
{
    size_t count = most / BUCKET_WAYS + (most % BUCKET_WAYS != 0 ? 1 : 0);
    count = count > 0 ? count : 1;
    if (count > (SIZE_MAX - sizeof(buckets)) / sizeof((*out)->sets[0])) {
        return BAY_ERR_NOMEM;
    }
    buckets *self = mem_zalloc(sizeof(*self) + count * sizeof(self->sets[0]));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    self->seeds[0] = rand_u64();
    self->seeds[1] = rand_u64();
    self->set_count = count;
    *out = self;
    return BAY_OK;
}

buckets *buckets_ref(buckets *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void buckets_unref(buckets *self)
{
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

bucket_key buckets_key(const buckets *self, bay_str name)
{
    return (bucket_key){{str_hash(name, self->seeds[0]), str_hash(name, self->seeds[1])}};
}

/* The time at which it will be empty; one that is not there is empty now. */
static uint64_t empty_at(const buckets *self, const bucket_key *key, uint64_t now_us)
{
    const bucket *set = self->sets[key->at[0] % self->set_count];
    for (size_t i = 0; i < BUCKET_WAYS; i++) {
        if (set[i].empty_at_us > now_us && set[i].key.at[0] == key->at[0] &&
            set[i].key.at[1] == key->at[1]) {
            return set[i].empty_at_us;
        }
    }
    return now_us;
}

static void set_empty_at(buckets *self, const bucket_key *key, uint64_t empty_at_us)
{
    bucket *set = self->sets[key->at[0] % self->set_count];
    bucket *place = &set[0];
    for (size_t i = 0; i < BUCKET_WAYS; i++) {
        if (set[i].key.at[0] == key->at[0] && set[i].key.at[1] == key->at[1]) {
            place = &set[i];
            break;
        }
        place = set[i].empty_at_us < place->empty_at_us ? &set[i] : place;
    }
    *place = (bucket){*key, empty_at_us};
}

/* How long until the charge fits; 0: now. */
static uint64_t wait_of(const buckets *self, const bucket_charge *charge, uint64_t now_us)
{
    uint64_t filled_us = empty_at(self, &charge->key, now_us) - now_us + charge->cost_us;
    return filled_us > charge->most_us ? filled_us - charge->most_us : 0;
}

bool buckets_take(buckets *self, const bucket_charge *charges, size_t count, uint64_t now_us,
                  size_t *out_which, uint64_t *out_wait_us)
{
    uint64_t longest_us = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < count; i++) {
        uint64_t wait_us = wait_of(self, &charges[i], now_us);
        if (wait_us > longest_us) {
            longest_us = wait_us;
            *out_which = i;
        }
    }
    for (size_t i = 0; i < count && longest_us == 0; i++) {
        const bucket_charge *at = &charges[i];
        set_empty_at(self, &at->key, empty_at(self, &at->key, now_us) + at->cost_us);
    }
    pthread_mutex_unlock(&self->lock);
    *out_wait_us = longest_us;
    return longest_us == 0;
}

uint64_t buckets_wait(buckets *self, const bucket_charge *charge, uint64_t now_us)
{
    pthread_mutex_lock(&self->lock);
    uint64_t wait_us = wait_of(self, charge, now_us);
    pthread_mutex_unlock(&self->lock);
    return wait_us;
}

void buckets_fill(buckets *self, const bucket_charge *charge, uint64_t now_us)
{
    pthread_mutex_lock(&self->lock);
    uint64_t filled_us = empty_at(self, &charge->key, now_us) - now_us + charge->cost_us;
    filled_us = filled_us < charge->most_us ? filled_us : charge->most_us;
    set_empty_at(self, &charge->key, now_us + filled_us);
    pthread_mutex_unlock(&self->lock);
}
