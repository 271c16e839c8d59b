/* One arena per message or request, freed whole. Allocation is a pointer bump; nothing is freed
 * singly. The maximum is stated at creation: past it, allocation fails and `is_full` tells a limit
 * from a lack of memory. */
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
/* The same of an arena that held secrets: its memory is wiped first. */
void arena_wipe(arena *self);

/* Forgets everything, keeps one ordinary chunk so that a warm arena allocates nothing. */
void arena_reset(arena *self);

/* Aligned to 16 bytes, uninitialised; NULL when out of memory or over the maximum. */
void *arena_alloc(arena *self, size_t bytes);
void *arena_zalloc(arena *self, size_t bytes);

/* An array of `count` items of `size` bytes, zeroed; NULL also on overflow. */
void *arena_array(arena *self, size_t count, size_t size);

/* A copy with a NUL after it (not counted). `out->at` is NULL only on failure. */
bay_err arena_dup(arena *self, bay_str text, bay_str *out) BAY_MUST_CHECK;

#endif
