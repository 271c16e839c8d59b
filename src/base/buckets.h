/* Buckets for limits of rate: a bounded table that any loop may use. By GCRA a bucket is one number,
 * the time at which it will be empty: it fills up by what is charged, and empties with time.
 *
 * A bucket that is not in the table is empty. The table is divided into sets of BUCKET_WAYS places;
 * a bucket that needs a place takes that of the emptiest of its set. Keys are hashed with seeds of
 * the table, so a peer cannot choose whose place it takes.
 *
 * For the whole header: Units: µs of any clock; one that goes back empties nothing. Threads: any. */
#ifndef BASE_BUCKETS_H
#define BASE_BUCKETS_H

#include "patchbay/types.h"

enum {
    BUCKET_WAYS = 8,
    BUCKET_BYTES = 24, /* of memory, each */
};

typedef struct buckets buckets;

typedef struct bucket_key {
    uint64_t at[2];
} bucket_key;

/* What is to be added to one bucket. */
typedef struct bucket_charge {
    bucket_key key;
    uint64_t cost_us; /* the time in which it empties again */
    uint64_t most_us; /* that the bucket holds */
} bucket_charge;

/* Room for `most` buckets, rounded up to whole sets.
 * Owns: the caller holds one reference. Errors: BAY_ERR_NOMEM. */
bay_err buckets_new(size_t most, buckets **out) BAY_MUST_CHECK;
buckets *buckets_ref(buckets *self); /* both accept NULL */
void buckets_unref(buckets *self);

/* The bucket that a text names. */
bucket_key buckets_key(const buckets *self, bay_str name);

/* Adds all charges, or none where one of them does not fit. False: `out_which` does not fit, and
 * will after `out_wait_us`: the one that takes longest. */
bool buckets_take(buckets *self, const bucket_charge *charges, size_t count, uint64_t now_us,
                  size_t *out_which, uint64_t *out_wait_us);
/* Would it fit? Else when: 0 means it does. Adds nothing. */
uint64_t buckets_wait(buckets *self, const bucket_charge *charge, uint64_t now_us);
/* Adds one charge, as much of it as fits. */
void buckets_fill(buckets *self, const bucket_charge *charge, uint64_t now_us);

#endif
