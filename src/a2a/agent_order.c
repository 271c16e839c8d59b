/* Tasks by caller and by context, in the order of their last change.
 *
 * An owner's entries are sorted by `order`, a number that grows with every change and begins with
 * its millisecond. A task that changes leaves a hole and is appended; holes are removed when the
 * array is full, which is then at least half holes. So a change costs O(1) and a place is found in
 * O(log n). A context's tasks are a list in the same order: they are few. */
#include <stdlib.h>

#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/mem.h"

/* ---- owners and contexts */

static agent_owner *owner_get(a2a_agent *of, bay_str principal)
{
    agent_owner *self = of->last_owner;
    if (self != NULL && str_eq(self->name, principal)) {
        return self;
    }
    self = map_get(&of->owners, principal);
    if (self != NULL) {
        of->last_owner = self;
        return self;
    }
    self = mem_zalloc(sizeof(*self) + principal.len);
    if (self == NULL) {
        return NULL;
    }
    char *name = (char *)(self + 1);
    if (principal.len > 0) {
        memcpy(name, principal.at, principal.len);
    }
    self->name = (bay_str){name, principal.len};
    self->is_sorted = true;
    if (map_put(&of->owners, self->name, self, NULL) != BAY_OK) {
        mem_free(self);
        return NULL;
    }
    return self;
}

static void owner_drop(a2a_agent *of, agent_owner *self)
{
    if (self->refs == 0) {
        map_remove(&of->owners, self->name);
        of->last_owner = of->last_owner == self ? NULL : of->last_owner;
        mem_free(self->entries);
        mem_free(self);
    }
}

agent_owner *agent_owner_find(a2a_agent *of, bay_str principal)
{
    return map_get(&of->owners, principal);
}

enum { KEY_ON_STACK = 512 };

/* BAY_ERR_NOMEM: whether there is one is unknown. */
static bay_err mapped_context(a2a_agent *of, bay_str principal, bay_str id, agent_context **out)
{
    *out = NULL;
    if (of->contexts.len == 0) {
        return BAY_OK;
    }
    char small[KEY_ON_STACK];
    size_t len = BYTES_U64 + principal.len + id.len;
    char *key = len <= sizeof(small) ? small : mem_alloc(len);
    if (key == NULL) {
        return BAY_ERR_NOMEM;
    }
    bytes_put_u64(key, principal.len);
    if (principal.len > 0) {
        memcpy(key + BYTES_U64, principal.at, principal.len);
    }
    if (id.len > 0) {
        memcpy(key + BYTES_U64 + principal.len, id.at, id.len);
    }
    *out = map_get(&of->contexts, (bay_str){key, len});
    if (key != small) {
        mem_free(key);
    }
    return BAY_OK;
}

/* Flips the last twelve digits: 0 becomes f and so on. */
bool agent_context_name(bay_str task_id, char out[36])
{
    enum { BYTES = 36, KEPT = 24 };
    static const char turned[256] = {
        ['0'] = 'f', ['1'] = 'e', ['2'] = 'd', ['3'] = 'c', ['4'] = 'b', ['5'] = 'a',
        ['6'] = '9', ['7'] = '8', ['8'] = '7', ['9'] = '6', ['a'] = '5', ['b'] = '4',
        ['c'] = '3', ['d'] = '2', ['e'] = '1', ['f'] = '0',
    };
    const char *at = task_id.at;
    if (task_id.len != BYTES || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') {
        return false;
    }
    memcpy(out, at, KEPT);
    unsigned others = 0; /* characters that are not digits: four dashes */
    for (size_t i = 0; i < KEPT; i++) {
        others += turned[(unsigned char)at[i]] == '\0';
    }
    for (size_t i = KEPT; i < BYTES; i++) {
        out[i] = turned[(unsigned char)at[i]];
        others += out[i] == '\0';
    }
    return others == 4;
}

/* The task that began the context with this id, while it is the only one in it. */
static agent_task *lone_task(const a2a_agent *of, bay_str principal, bay_str id)
{
    char name[36];
    agent_task *task =
        agent_context_name(id, name) ? map_get(&of->tasks, (bay_str){name, sizeof(name)}) : NULL;
    bool is_alone = task != NULL && task->context == &task->own && str_eq(task->own.id, id);
    return is_alone && str_eq(task->own.owner->name, principal) ? task : NULL;
}

agent_context *agent_context_find(a2a_agent *of, bay_str principal, bay_str id)
{
    agent_context *found;
    agent_task *task = NULL;
    if (mapped_context(of, principal, id, &found) == BAY_OK && found == NULL) {
        task = lone_task(of, principal, id);
    }
    return task != NULL ? &task->own : found;
}

static agent_context *context_new(a2a_agent *of, bay_str principal, bay_str id)
{
    agent_owner *owner = owner_get(of, principal);
    if (owner == NULL) {
        return NULL;
    }
    size_t len = BYTES_U64 + principal.len + id.len;
    agent_context *self = mem_zalloc(sizeof(*self) + len);
    if (self == NULL) {
        owner_drop(of, owner);
        return NULL;
    }
    char *text = (char *)(self + 1);
    bytes_put_u64(text, principal.len);
    if (principal.len > 0) {
        memcpy(text + BYTES_U64, principal.at, principal.len);
    }
    memcpy(text + BYTES_U64 + principal.len, id.at, id.len);
    self->key = (bay_str){text, len};
    self->id = (bay_str){text + len - id.len, id.len};
    self->owner = owner;
    list_init(&self->tasks);
    void *same = NULL;
    if (map_put(&of->contexts, self->key, self, &same) != BAY_OK) {
        mem_free(self);
        owner_drop(of, owner);
        return NULL;
    }
    CHECK(same == NULL);
    owner->refs++;
    return self;
}

/* Its context is part of it. */
static bay_err begin_own(agent_task *task, bay_str principal)
{
    agent_owner *owner = owner_get(task->of, principal);
    if (owner == NULL) {
        return BAY_ERR_NOMEM;
    }
    owner->refs++;
    bay_str quoted = str_from(task->ids, task->context_at + sizeof("\"contextId\":") - 1);
    task->own.owner = owner;
    task->own.id = (bay_str){quoted.at + 1, quoted.len - 2}; /* a UUID: without escapes */
    task->own.refs = 1;
    list_init(&task->own.tasks);
    task->context = &task->own;
    return BAY_OK;
}

/* Another task joins, so the context becomes an object of its own. NULL: out of memory. */
static agent_context *take_out(agent_task *task)
{
    agent_context *own = &task->own;
    agent_context *self = context_new(task->of, own->owner->name, own->id);
    if (self == NULL) {
        return NULL;
    }
    if (list_holds(&task->in_context)) {
        list_remove(&task->in_context);
        list_push(&self->tasks, &task->in_context);
    }
    own->owner->refs--;
    self->refs = 1;
    task->context = self;
    return self;
}

static bool is_named_by(bay_str id, const agent_task *task)
{
    char name[36];
    return agent_context_name(task->id, name) && str_eq(id, (bay_str){name, sizeof(name)});
}

bay_err agent_context_join(agent_task *task, bay_str principal, bay_str id, agent_naming naming)
{
    a2a_agent *of = task->of;
    bool may_be = naming == AGENT_CONTEXT_GIVEN;
    agent_context *self = NULL;
    if (may_be && mapped_context(of, principal, id, &self) != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    agent_task *alone = may_be && self == NULL ? lone_task(of, principal, id) : NULL;
    if (alone != NULL) {
        self = take_out(alone);
    } else if (naming == AGENT_CONTEXT_OWN || (may_be && self == NULL && is_named_by(id, task))) {
        return begin_own(task, principal);
    } else if (self == NULL) {
        self = context_new(of, principal, id);
    }
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->refs++;
    task->context = self;
    return BAY_OK;
}

void agent_context_drop(a2a_agent *of, agent_context *self)
{
    if (self == NULL || --self->refs > 0) {
        return;
    }
    agent_owner *owner = self->owner;
    if (self->key.at != NULL) {
        map_remove(&of->contexts, self->key);
        mem_free(self);
    }
    owner->refs--;
    owner_drop(of, owner);
}

/* ---- the order */

bay_err agent_order_reserve(agent_owner *self)
{
    size_t needed = 2 * ((size_t)self->live + 1) + 2;
    if (needed <= self->cap) {
        return BAY_OK;
    }
    size_t cap = needed + needed / 2;
    agent_entry *entries = mem_resize(self->entries, cap * sizeof(*entries));
    if (entries == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->entries = entries;
    self->cap = cap;
    return BAY_OK;
}

static void tidy(agent_owner *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->len; i++) {
        if (self->entries[i].task != NULL) {
            self->entries[kept++] = self->entries[i];
        }
    }
    self->len = kept;
    self->head = 0;
}

static int by_order(const void *a, const void *b)
{
    uint64_t left = ((const agent_entry *)a)->order;
    uint64_t right = ((const agent_entry *)b)->order;
    return (left > right) - (left < right);
}

/* Only restored tasks may be out of order. */
void agent_order_sort(agent_owner *self)
{
    if (!self->is_sorted) {
        tidy(self);
        qsort(self->entries, self->len, sizeof(*self->entries), by_order);
        self->is_sorted = true;
    }
}

size_t agent_order_seek(const agent_owner *self, uint64_t order)
{
    size_t low = 0;
    size_t high = self->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->entries[middle].order < order) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void agent_order_leave(agent_task *self)
{
    if (self->order == 0) {
        return;
    }
    agent_owner *owner = self->context->owner;
    agent_order_sort(owner);
    if (owner->entries[owner->len - 1].task == self) { /* most changes are of the newest … */
        owner->len--;
        owner->head = owner->head < owner->len ? owner->head : owner->len;
    } else {
        size_t at = owner->head; /* … and the oldest is removed */
        if (owner->entries[at].task != self) {
            at = agent_order_seek(owner, self->order);
        }
        CHECK(at < owner->len && owner->entries[at].task == self);
        owner->entries[at].task = NULL;
        while (owner->head < owner->len && owner->entries[owner->head].task == NULL) {
            owner->head++;
        }
    }
    owner->counts[self->placed_state]--;
    owner->live--;
    self->order = 0;
    list_remove(&self->in_context);
}

void agent_order_place(agent_task *self, uint64_t order)
{
    a2a_agent *of = self->of;
    agent_owner *owner = self->context->owner;
    agent_order_leave(self);
    if (order == 0) {
        uint64_t least = self->status_ms * AGENT_ORDER_PER_MS;
        order = of->last_order >= least ? of->last_order + 1 : least;
    }
    if (owner->len == owner->cap) {
        tidy(owner);
    }
    CHECK(owner->len < owner->cap);
    if (owner->len > 0 && owner->entries[owner->len - 1].order >= order) {
        owner->is_sorted = false;
    }
    owner->entries[owner->len++] = (agent_entry){order, self};
    owner->counts[self->state]++;
    owner->live++;
    of->last_order = order > of->last_order ? order : of->last_order;
    self->order = order;
    self->placed_state = self->state;
    self->is_placed_stale = false;
    list_push(&self->context->tasks, &self->in_context);
}
