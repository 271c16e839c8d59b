/* The store in memory: a skip list of cells in the order of (space, scope, key), and a heap of
 * those that expire. It runs operations on the loop, at the end of the loop iteration that started
 * them.
 *
 * Invariants
 * - Every cell is in the list; exactly those with an expiry are in the heap and hold their index in
 *   it.
 * - `last[level]` of a search is the rightmost cell before the searched place. */
#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "store/back.h"

#define LEVELS 20 /* a million cells with every second one on the next level */

typedef struct node {
    store_space space;
    bay_str scope; /* scope and key follow `next` */
    bay_str key;
    char *value;
    size_t value_len;
    uint64_t version;
    uint64_t expires_at_ms;
    size_t heap_index; /* 0: not in the heap */
    size_t levels;
    struct node *next[];
} node;

typedef struct memory_store {
    store base;
    store_engine engine;
    node *first[LEVELS];
    size_t levels; /* in use */
    uint64_t random;
    node **heap; /* heap[1] expires first */
    size_t heap_len;
    size_t heap_cap;
    store_op *first_op;
    store_op *last_op;
    loop_task task;
} memory_store;

static memory_store *store_of(store_engine *engine)
{
    return CONTAINER_OF(engine, memory_store, engine);
}

/* --- the heap --------------------------------------------------------------------------------- */

static void heap_set(memory_store *self, size_t index, node *cell)
{
    self->heap[index] = cell;
    cell->heap_index = index;
}

static void heap_settle(memory_store *self, size_t index, node *cell)
{
    while (index > 1 && cell->expires_at_ms < self->heap[index / 2]->expires_at_ms) {
        heap_set(self, index, self->heap[index / 2]);
        index /= 2;
    }
    for (;;) {
        size_t child = index * 2;
        if (child > self->heap_len) {
            break;
        }
        if (child < self->heap_len &&
            self->heap[child + 1]->expires_at_ms < self->heap[child]->expires_at_ms) {
            child++;
        }
        if (self->heap[child]->expires_at_ms >= cell->expires_at_ms) {
            break;
        }
        heap_set(self, index, self->heap[child]);
        index = child;
    }
    heap_set(self, index, cell);
}

static void heap_remove(memory_store *self, node *cell)
{
    size_t index = cell->heap_index;
    if (index == 0) {
        return;
    }
    cell->heap_index = 0;
    node *last = self->heap[self->heap_len--];
    if (last != cell) {
        heap_settle(self, index, last);
    }
}

/* Makes room for one more, so that the following steps cannot fail. */
static bool heap_reserve(memory_store *self)
{
    if (self->heap_len + 2 <= self->heap_cap) {
        return true;
    }
    size_t cap = self->heap_cap == 0 ? 64 : self->heap_cap * 2; /* the number of rows limits it */
    node **heap = mem_resize(self->heap, cap * sizeof(node *));
    if (heap == NULL) {
        return false;
    }
    self->heap = heap;
    self->heap_cap = cap;
    return true;
}

static void set_expiry(memory_store *self, node *cell, uint64_t expires_at_ms)
{
    heap_remove(self, cell);
    cell->expires_at_ms = expires_at_ms;
    if (expires_at_ms != 0) {
        self->heap_len++;
        heap_settle(self, self->heap_len, cell);
    }
}

/* --- the list --------------------------------------------------------------------------------- */

static int compare(const node *cell, store_space space, bay_str scope, bay_str key)
{
    if (cell->space != space) {
        return cell->space < space ? -1 : 1;
    }
    int order = str_cmp(cell->scope, scope);
    return order != 0 ? order : str_cmp(cell->key, key);
}

static node **next_of(memory_store *self, node *before, size_t level)
{
    return before == NULL ? &self->first[level] : &before->next[level];
}

/* The first cell that is not before the name. `last` (LEVELS entries) may be NULL. */
static node *search(memory_store *self, store_space space, bay_str scope, bay_str key, node **last)
{
    node *before = NULL;
    for (size_t level = self->levels; level-- > 0;) {
        node *next;
        while ((next = *next_of(self, before, level)) != NULL &&
               compare(next, space, scope, key) < 0) {
            before = next;
        }
        if (last != NULL) {
            last[level] = before;
        }
    }
    return self->levels == 0 ? NULL : *next_of(self, before, 0);
}

static node *search_exactly(memory_store *self, store_space space, bay_str scope, bay_str key,
                            node **last)
{
    node *found = search(self, space, scope, key, last);
    return found != NULL && compare(found, space, scope, key) == 0 ? found : NULL;
}

static size_t random_levels(memory_store *self)
{
    /* xorshift64 with a secret seed: no choice of keys can unbalance the list. */
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    uint64_t bits = self->random >> 20 | UINT64_C(1) << (LEVELS - 1);
    return (size_t)__builtin_ctzll(bits) + 1;
}

static void node_free(node *cell)
{
    mem_free(cell->value);
    mem_free(cell);
}

static node *node_new(memory_store *self, const store_cell *cell)
{
    size_t levels = random_levels(self);
    node *made =
        mem_zalloc(sizeof(*made) + levels * sizeof(node *) + cell->scope.len + cell->key.len);
    if (made == NULL) {
        return NULL;
    }
    made->value = mem_dup(cell->value.at, cell->value.len);
    if (made->value == NULL) {
        mem_free(made);
        return NULL;
    }
    char *names = (char *)&made->next[levels];
    memcpy(names, cell->scope.at, cell->scope.len);
    memcpy(names + cell->scope.len, cell->key.at, cell->key.len);
    made->space = cell->space;
    made->scope = (bay_str){names, cell->scope.len};
    made->key = (bay_str){names + cell->scope.len, cell->key.len};
    made->value_len = cell->value.len;
    made->levels = levels;
    return made;
}

static void show(const node *cell, store_cell *out)
{
    *out =
        (store_cell){cell->space,   cell->scope,        cell->key, {cell->value, cell->value_len},
                     cell->version, cell->expires_at_ms};
}

/* --- the engine ------------------------------------------------------------------------------- */

static bay_err find(store_engine *engine, store_space space, bay_str scope, bay_str key,
                    store_cell *out)
{
    node *cell = search_exactly(store_of(engine), space, scope, key, NULL);
    if (cell == NULL) {
        return BAY_ERR_NOT_FOUND;
    }
    show(cell, out);
    return BAY_OK;
}

static bay_err replace(node *cell, bay_str value)
{
    if (value.len != cell->value_len) {
        char *copy = mem_dup(value.at, value.len);
        if (copy == NULL) {
            return BAY_ERR_NOMEM;
        }
        mem_free(cell->value);
        cell->value = copy;
        cell->value_len = value.len;
    } else if (value.len > 0) {
        memcpy(cell->value, value.at, value.len);
    }
    return BAY_OK;
}

static void link_in(memory_store *self, node *cell, node **last)
{
    while (self->levels < cell->levels) {
        last[self->levels++] = NULL;
    }
    for (size_t level = 0; level < cell->levels; level++) {
        node **place = next_of(self, last[level], level);
        cell->next[level] = *place;
        *place = cell;
    }
}

static bay_err write_cell(store_engine *engine, const store_cell *cell)
{
    memory_store *self = store_of(engine);
    node *last[LEVELS];
    if (cell->expires_at_ms != 0 && !heap_reserve(self)) {
        return BAY_ERR_NOMEM;
    }
    node *place = search_exactly(self, cell->space, cell->scope, cell->key, last);
    if (place != NULL) {
        bay_err err = replace(place, cell->value);
        if (err != BAY_OK) {
            return err;
        }
    } else {
        place = node_new(self, cell);
        if (place == NULL) {
            return BAY_ERR_NOMEM;
        }
        link_in(self, place, last);
    }
    place->version = cell->version;
    set_expiry(self, place, cell->expires_at_ms);
    return BAY_OK;
}

static bay_err erase(store_engine *engine, store_space space, bay_str scope, bay_str key)
{
    memory_store *self = store_of(engine);
    node *last[LEVELS];
    node *cell = search_exactly(self, space, scope, key, last);
    if (cell == NULL) {
        return BAY_OK;
    }
    for (size_t level = 0; level < cell->levels; level++) {
        *next_of(self, last[level], level) = cell->next[level];
    }
    heap_remove(self, cell);
    node_free(cell);
    return BAY_OK;
}

static bay_err scan(store_engine *engine, store_space space, bay_str scope, bay_str from,
                    store_visit visit, void *user)
{
    for (node *cell = search(store_of(engine), space, scope, from, NULL);
         cell != NULL && cell->space == space && str_eq(cell->scope, scope); cell = cell->next[0]) {
        store_cell shown;
        show(cell, &shown);
        if (!visit(user, &shown)) {
            break;
        }
    }
    return BAY_OK;
}

static bay_err soonest(store_engine *engine, store_cell *out)
{
    memory_store *self = store_of(engine);
    if (self->heap_len == 0) {
        return BAY_ERR_NOT_FOUND;
    }
    show(self->heap[1], out);
    return BAY_OK;
}

/* --- the back end ----------------------------------------------------------------------------- */

static void memory_start(store *base, store_op *op)
{
    memory_store *self = (memory_store *)base;
    op->next = NULL;
    if (self->last_op != NULL) {
        self->last_op->next = op;
    } else {
        self->first_op = op;
    }
    self->last_op = op;
    loop_defer(base->loop, &self->task);
}

static void memory_close(store *base)
{
    loop_defer(base->loop, &((memory_store *)base)->task);
}

/* Operations that completions start run in the next iteration, and so does the end. */
static void run_ops(void *argument)
{
    memory_store *self = argument;
    if (self->base.is_closing) {
        store_back_closed(&self->base);
        return;
    }
    store_op *op = self->first_op;
    self->first_op = self->last_op = NULL;
    while (op != NULL && !self->base.is_closing) {
        store_op *next = op->next;
        store_rules_run(&self->engine, op);
        store_op_done(&self->base, op);
        op = next;
    }
}

static void memory_free(store *base)
{
    memory_store *self = (memory_store *)base;
    for (node *cell = self->first[0]; cell != NULL;) {
        node *next = cell->next[0];
        node_free(cell);
        cell = next;
    }
    mem_free(self->heap);
    mem_free(self);
}

bay_err store_open_memory(loop *on_loop, const store_options *options, store **out)
{
    static const store_back back = {memory_start, memory_close, memory_free};
    static const store_engine_calls calls = {find, write_cell, erase, scan, soonest};
    memory_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->random = rand_u64() | 1;
    self->task = (loop_task){.function = run_ops, .argument = self};
    bay_err err = store_init(&self->base, &back, on_loop, options);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->engine.calls = &calls;
    self->engine.bounds = store_bounds_of(&self->base);
    *out = &self->base;
    return BAY_OK;
}
