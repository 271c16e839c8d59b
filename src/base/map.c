#include "base/map.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

struct map_slot {
    bay_str key;
    void *value; /* NULL: free */
    uint64_t hash;
};

void map_init(map *self, size_t max_entries)
{
    *self = (map){.max = max_entries, .seed = rand_u64()};
}

void map_fini(map *self)
{
    mem_free(self->slots);
    *self = (map){.max = self->max, .seed = self->seed};
}

/* The slot that holds the key, or the free slot for it. */
static map_slot *map_slot_of(const map *self, bay_str key, uint64_t hash)
{
    size_t at = (size_t)hash & (self->cap - 1);
    for (;; at = (at + 1) & (self->cap - 1)) {
        map_slot *slot = &self->slots[at];
        if (slot->value == NULL || (slot->hash == hash && str_eq(slot->key, key))) {
            return slot;
        }
    }
}

uint64_t map_hash(const map *self, bay_str key)
{
    return str_hash(key, self->seed);
}

void map_warm(const map *self, uint64_t hash)
{
    if (self->cap > 0) {
        __builtin_prefetch(&self->slots[(size_t)hash & (self->cap - 1)], 1);
    }
}

void *map_get_hashed(const map *self, bay_str key, uint64_t hash)
{
    return self->len > 0 ? map_slot_of(self, key, hash)->value : NULL;
}

void *map_get(const map *self, bay_str key)
{
    return self->len > 0 ? map_slot_of(self, key, map_hash(self, key))->value : NULL;
}

static bay_err map_grow(map *self)
{
    size_t cap = self->cap == 0 ? 8 : self->cap * 2;
    map_slot *slots = mem_array(cap, sizeof(map_slot));
    if (slots == NULL) {
        return BAY_ERR_NOMEM;
    }
    map old = *self;
    self->slots = slots;
    self->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].value != NULL) {
            *map_slot_of(self, old.slots[i].key, old.slots[i].hash) = old.slots[i];
        }
    }
    mem_free(old.slots);
    return BAY_OK;
}

bay_err map_put(map *self, bay_str key, void *value, void **out_old)
{
    return map_put_hashed(self, key, map_hash(self, key), value, out_old);
}

bay_err map_put_hashed(map *self, bay_str key, uint64_t hash, void *value, void **out_old)
{
    CHECK(value != NULL);
    map_slot *slot = self->cap > 0 ? map_slot_of(self, key, hash) : NULL;
    if (slot == NULL || slot->value == NULL) {
        if (self->len >= self->max) {
            return BAY_ERR_LIMIT;
        }
        if (self->len * 4 >= self->cap * 3) {
            bay_err err = map_grow(self);
            if (err != BAY_OK) {
                return err;
            }
            slot = map_slot_of(self, key, hash);
        }
        self->len++;
    }
    if (out_old != NULL) {
        *out_old = slot->value;
    }
    *slot = (map_slot){key, value, hash};
    return BAY_OK;
}

void *map_remove(map *self, bay_str key)
{
    return self->len > 0 ? map_remove_hashed(self, key, map_hash(self, key)) : NULL;
}

void *map_remove_hashed(map *self, bay_str key, uint64_t hash)
{
    if (self->len == 0) {
        return NULL;
    }
    map_slot *slot = map_slot_of(self, key, hash);
    void *value = slot->value;
    if (value == NULL) {
        return NULL;
    }
    self->len--;
    /* Close the gap: move back every later entry of the run that may be there. */
    size_t hole = (size_t)(slot - self->slots);
    for (size_t at = (hole + 1) & (self->cap - 1); self->slots[at].value != NULL;
         at = (at + 1) & (self->cap - 1)) {
        size_t home = (size_t)self->slots[at].hash & (self->cap - 1);
        if (((at - home) & (self->cap - 1)) >= ((at - hole) & (self->cap - 1))) {
            self->slots[hole] = self->slots[at];
            hole = at;
        }
    }
    self->slots[hole] = (map_slot){0};
    return value;
}

bool map_next(const map *self, size_t *cursor, bay_str *out_key, void **out_value)
{
    while (*cursor < self->cap) {
        const map_slot *slot = &self->slots[(*cursor)++];
        if (slot->value != NULL) {
            *out_key = slot->key;
            *out_value = slot->value;
            return true;
        }
    }
    return false;
}
