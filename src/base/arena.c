#include "base/arena.h"

#include <string.h>

#include "base/mem.h"

/* Small requests fit one chunk; a larger allocation gets a chunk of its own size. */
enum { ARENA_CHUNK = 4096 - 64, ARENA_ALIGN = 16 };

struct arena_chunk {
    arena_chunk *next;
    size_t size; /* of the data that follows */
};

static char *chunk_data(arena_chunk *chunk)
{
    return (char *)chunk + sizeof(arena_chunk);
}

void arena_init(arena *self, size_t max_bytes)
{
    *self = (arena){.max = max_bytes};
}

void arena_fini(arena *self)
{
    for (arena_chunk *chunk = self->chunk; chunk != NULL;) {
        arena_chunk *next = chunk->next;
        mem_free(chunk);
        chunk = next;
    }
    *self = (arena){.max = self->max};
}

void arena_wipe(arena *self)
{
    for (arena_chunk *chunk = self->chunk; chunk != NULL; chunk = chunk->next) {
        mem_wipe(chunk_data(chunk), chunk->size);
    }
    arena_fini(self);
}

void arena_reset(arena *self)
{
    arena_chunk *keep = NULL;
    for (arena_chunk *chunk = self->chunk; chunk != NULL;) {
        arena_chunk *next = chunk->next;
        if (keep == NULL && chunk->size == ARENA_CHUNK) {
            keep = chunk;
        } else {
            mem_free(chunk);
        }
        chunk = next;
    }
    *self = (arena){.max = self->max, .chunk = keep};
    if (keep != NULL) {
        keep->next = NULL;
        self->at = chunk_data(keep);
        self->end = self->at + keep->size;
        self->used = keep->size;
    }
}

static void *arena_grow(arena *self, size_t bytes)
{
    /* A large allocation gets a chunk of its own; small ones go on using the chunk in use. */
    bool is_aside = bytes > ARENA_CHUNK / 2 && self->chunk != NULL;
    size_t size = bytes > ARENA_CHUNK || is_aside ? bytes : ARENA_CHUNK;
    if (size > self->max || self->used > self->max - size) {
        size = bytes; /* a last small chunk may still fit */
    }
    if (size > self->max || self->used > self->max - size) {
        self->is_full = true;
        return NULL;
    }
    arena_chunk *chunk = mem_alloc(sizeof(arena_chunk) + size);
    if (chunk == NULL) {
        self->is_full = false;
        return NULL;
    }
    chunk->size = size;
    self->used += size;
    if (is_aside) {
        chunk->next = self->chunk->next;
        self->chunk->next = chunk;
        return chunk_data(chunk);
    }
    chunk->next = self->chunk;
    self->chunk = chunk;
    self->at = chunk_data(chunk) + bytes;
    self->end = chunk_data(chunk) + size;
    return chunk_data(chunk);
}

void *arena_alloc(arena *self, size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * (size_t)ARENA_ALIGN - sizeof(arena_chunk)) {
        self->is_full = true;
        return NULL;
    }
    size_t rounded = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded == 0) {
        rounded = ARENA_ALIGN;
    }
    if (self->at != NULL && (size_t)(self->end - self->at) >= rounded) {
        void *at = self->at;
        self->at += rounded;
        return at;
    }
    return arena_grow(self, rounded);
}

void *arena_zalloc(arena *self, size_t bytes)
{
    void *at = arena_alloc(self, bytes);
    if (at != NULL) {
        memset(at, 0, bytes);
    }
    return at;
}

void *arena_array(arena *self, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        self->is_full = true;
        return NULL;
    }
    return arena_zalloc(self, bytes);
}

bay_err arena_dup(arena *self, bay_str text, bay_str *out)
{
    char *copy = text.len < SIZE_MAX ? arena_alloc(self, text.len + 1) : NULL;
    if (copy == NULL) {
        return self->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    copy[text.len] = '\0';
    *out = (bay_str){copy, text.len};
    return BAY_OK;
}
