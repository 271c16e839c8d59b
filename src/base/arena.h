/* One arena per message or request, freed as a whole. An allocation advances a pointer; single
 * allocations are not freed. The maximum is set at creation: above it, allocation fails, and
 * `is_full` distinguishes this from a lack of memory. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "patchbay/types.h"

typedef struct arena_chunk arena_chunk;

typedef struct arena {
    arena_chunk *chunk; /* newest first */
    char *at;
    char *end;
    size_t used;
    size_t max;
    bool is_full; /* the last failure was the maximum, not a lack of memory */
} arena;

/* `max_bytes` bounds the sum of all chunks. No memory is taken before the first allocation. */
void arena_init(arena *self, size_t max_bytes);
void arena_fini(arena *self);
/* Like arena_fini, for an arena that held secrets: the memory is wiped first. */
void arena_wipe(arena *self);

/* Invalidates all allocations. Keeps one chunk of the usual size, so that an arena in regular use
 * does not allocate. */
void arena_reset(arena *self);

/* Aligned to 16 bytes, uninitialised; NULL when out of memory or over the maximum. */
void *arena_alloc(arena *self, size_t bytes);
void *arena_zalloc(arena *self, size_t bytes);

/* An array of `count` items of `size` bytes, zeroed; NULL also on overflow. */
void *arena_array(arena *self, size_t count, size_t size);

/* A copy, followed by a NUL that is not counted. `out->at` is NULL only on failure. */
bay_err arena_dup(arena *self, bay_str text, bay_str *out) BAY_MUST_CHECK;

#endif
