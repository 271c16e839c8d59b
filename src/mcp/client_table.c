/* A small table from counted numbers to calls. Keys come from one counter and are never 0, so a
 * multiplication spreads them well; removal closes the gap, so there are no tombstones. */
#include "base/mem.h"
#include "mcp/client_internal.h"

enum { TABLE_FIRST = 16 };

static size_t table_home(const id_table *self, uint64_t key)
{
    return (size_t)((key * 0x9E3779B97F4A7C15ULL) >> 32) & (self->cap - 1);
}

static id_slot *table_slot(const id_table *self, uint64_t key)
{
    size_t at = table_home(self, key);
    while (self->slots[at].key != 0 && self->slots[at].key != key) {
        at = (at + 1) & (self->cap - 1);
    }
    return &self->slots[at];
}

mcp_call *mcp_id_table_get(const id_table *self, uint64_t key)
{
    return self->len == 0 || key == 0 ? NULL : table_slot(self, key)->call;
}

static bay_err table_grow(id_table *self)
{
    id_table bigger = {.cap = self->cap == 0 ? TABLE_FIRST : self->cap * 2, .len = self->len};
    bigger.slots = mem_array(bigger.cap, sizeof(id_slot));
    if (bigger.slots == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < self->cap; i++) {
        if (self->slots[i].key != 0) {
            *table_slot(&bigger, self->slots[i].key) = self->slots[i];
        }
    }
    mem_free(self->slots);
    *self = bigger;
    return BAY_OK;
}

bay_err mcp_id_table_put(id_table *self, uint64_t key, mcp_call *call)
{
    CHECK(key != 0 && call != NULL);
    if (self->len * 4 >= self->cap * 3) {
        bay_err err = table_grow(self);
        if (err != BAY_OK) {
            return err;
        }
    }
    id_slot *slot = table_slot(self, key);
    self->len += slot->key == 0 ? 1 : 0;
    *slot = (id_slot){key, call};
    return BAY_OK;
}

void mcp_id_table_remove(id_table *self, uint64_t key)
{
    if (self->len == 0 || key == 0) {
        return;
    }
    id_slot *slot = table_slot(self, key);
    if (slot->key == 0) {
        return;
    }
    self->len--;
    size_t hole = (size_t)(slot - self->slots);
    for (size_t at = (hole + 1) & (self->cap - 1); self->slots[at].key != 0;
         at = (at + 1) & (self->cap - 1)) {
        size_t home = table_home(self, self->slots[at].key);
        if (((at - home) & (self->cap - 1)) >= ((at - hole) & (self->cap - 1))) {
            self->slots[hole] = self->slots[at];
            hole = at;
        }
    }
    self->slots[hole] = (id_slot){0};
}

void mcp_id_table_fini(id_table *self)
{
    mem_free(self->slots);
    *self = (id_table){0};
}
