/* A hash map from strings to pointers: open addressing, keyed hash, a maximum stated at creation.
 * Keys are borrowed: they must live as long as their entry (usually inside the value). */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "patchbay/types.h"

typedef struct map_slot map_slot;

typedef struct map {
    map_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
    size_t max;
    uint64_t seed;
} map;

void map_init(map *self, size_t max_entries);
void map_fini(map *self); /* frees the table, not the values */

void *map_get(const map *self, bay_str key); /* NULL when absent */

/* Adds or replaces; the old value (or NULL) goes to `out_old` when that is not NULL.
 * BAY_ERR_LIMIT at the maximum, BAY_ERR_NOMEM. The value must not be NULL. */
bay_err map_put(map *self, bay_str key, void *value, void **out_old) BAY_MUST_CHECK;

void *map_remove(map *self, bay_str key); /* the value, or NULL */

/* Like map_get and map_put, for callers that keep a key's hash: `hash` is map_hash of this map and
 * key. */
uint64_t map_hash(const map *self, bay_str key);
void *map_get_hashed(const map *self, bay_str key, uint64_t hash);
bay_err map_put_hashed(map *self, bay_str key, uint64_t hash, void *value,
                       void **out_old) BAY_MUST_CHECK;
void *map_remove_hashed(map *self, bay_str key, uint64_t hash);
/* Prefetches what a later call with this hash reads: a large table is not in the cache. */
void map_warm(const map *self, uint64_t hash);

/* Walks the entries in no particular order; start with *cursor = 0. The map must not change
 * meanwhile. */
bool map_next(const map *self, size_t *cursor, bay_str *out_key, void **out_value);

#endif
