#include "policy/tools.h"

#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

typedef struct tool_row {
    char *pattern; /* and the texts of its settings behind it */
    size_t pattern_len;
    size_t literal; /* bytes that are no wildcards; a written-out name: more than any pattern has */
    bool has_idempotency;
    policy_idempotency idempotency;
    policy_rate rate;
    policy_rate total;
    uint32_t cost;
    size_t result_bytes;
} tool_row;

struct policy_tools {
    atomic_uint references;
    tool_row *rows; /* the most specific first */
    size_t count;
    size_t cap;
};

typedef struct tool_name {
    policy_tool settings;
    char name[];
} tool_name;

bay_err policy_tools_new(policy_tools **out)
{
    policy_tools *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    *out = self;
    return BAY_OK;
}

policy_tools *policy_tools_ref(policy_tools *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void policy_tools_unref(policy_tools *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        mem_free(self->rows[i].pattern);
    }
    mem_free(self->rows);
    mem_free(self);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static size_t literal_of(bay_str pattern)
{
    size_t count = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        count += pattern.at[i] != '*' && pattern.at[i] != '?' ? 1 : 0;
    }
    return count == pattern.len ? SIZE_MAX : count;
}

/* Is there a text that both patterns match? Decided for all but pathological ones, which count as
 * meeting. */
static bool meet(bay_str a, bay_str b, unsigned *steps)
{
    if ((*steps)-- == 0) {
        return true;
    }
    if (a.len == 0 && b.len == 0) {
        return true;
    }
    if (a.len > 0 && a.at[0] == '*') {
        return meet(str_from(a, 1), b, steps) || (b.len > 0 && meet(a, str_from(b, 1), steps));
    }
    if (b.len > 0 && b.at[0] == '*') {
        return meet(b, a, steps);
    }
    if (a.len == 0 || b.len == 0) {
        return false;
    }
    bool is_same = a.at[0] == b.at[0] || a.at[0] == '?' || b.at[0] == '?';
    return is_same && meet(str_from(a, 1), str_from(b, 1), steps);
}

static bool same_idempotency(const policy_idempotency *a, const policy_idempotency *b)
{
    return str_eq(a->argument, b->argument) && str_eq(a->meta, b->meta) &&
           str_eq(a->header, b->header) && a->derive == b->derive && a->keep_ms == b->keep_ms &&
           a->on_unknown == b->on_unknown;
}

static bool rates_disagree(const policy_rate *a, const policy_rate *b)
{
    return a->count > 0 && b->count > 0 && !policy_rate_is_same(a, b);
}

static bool disagree(const policy_tool *a, const policy_tool *b)
{
    bool keys = a->idempotency != NULL && b->idempotency != NULL &&
                !same_idempotency(a->idempotency, b->idempotency);
    return keys || rates_disagree(&a->rate, &b->rate) || rates_disagree(&a->total, &b->total) ||
           (a->cost > 0 && b->cost > 0 && a->cost != b->cost) ||
           (a->result_bytes > 0 && b->result_bytes > 0 && a->result_bytes != b->result_bytes);
}

static bay_str pattern_of(const tool_row *self)
{
    return (bay_str){self->pattern, self->pattern_len};
}

bay_str policy_tools_pattern(const policy_tools *self, size_t index)
{
    return pattern_of(&self->rows[index]);
}

static bay_str put_text(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

static bay_err fill(tool_row *self, bay_str pattern, const policy_tool *settings)
{
    const policy_idempotency none = {0};
    const policy_idempotency *from = settings->idempotency != NULL ? settings->idempotency : &none;
    size_t bytes = pattern.len + from->argument.len + from->meta.len + from->header.len;
    *self = (tool_row){.pattern = mem_alloc(bytes + 1),
                       .pattern_len = pattern.len,
                       .literal = literal_of(pattern),
                       .has_idempotency = settings->idempotency != NULL,
                       .rate = settings->rate,
                       .total = settings->total,
                       .cost = settings->cost,
                       .result_bytes = settings->result_bytes};
    if (self->pattern == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *at = self->pattern;
    (void)put_text(&at, pattern);
    self->idempotency = *from;
    self->idempotency.argument = put_text(&at, from->argument);
    self->idempotency.meta = put_text(&at, from->meta);
    self->idempotency.header = put_text(&at, from->header);
    return BAY_OK;
}

static policy_tool settings_of(const tool_row *self)
{
    return (policy_tool){.idempotency = self->has_idempotency ? &self->idempotency : NULL,
                         .rate = self->rate,
                         .total = self->total,
                         .cost = self->cost,
                         .result_bytes = self->result_bytes};
}

bay_err policy_tools_add(policy_tools *self, bay_str pattern, const policy_tool *settings,
                         size_t *out_other)
{
    enum { STEPS = 100000 };
    tool_row row;
    if (self->count >= POLICY_TOOL_PATTERNS) {
        return BAY_ERR_LIMIT;
    }
    size_t literal = literal_of(pattern);
    size_t place = 0;
    for (size_t i = 0; i < self->count; i++) {
        unsigned steps = STEPS;
        const tool_row *other = &self->rows[i];
        policy_tool theirs = settings_of(other);
        if (other->literal == literal && disagree(&theirs, settings) &&
            meet(pattern_of(other), pattern, &steps)) {
            *out_other = i;
            return BAY_ERR_DUPLICATE;
        }
        place = other->literal >= literal ? i + 1 : place;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 16 : self->cap * 2;
        tool_row *rows = mem_resize(self->rows, cap * sizeof(*rows));
        if (rows == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->rows = rows;
        self->cap = cap;
    }
    bay_err err = fill(&row, pattern, settings);
    if (err != BAY_OK) {
        return err;
    }
    memmove(&self->rows[place + 1], &self->rows[place],
            (self->count - place) * sizeof(*self->rows));
    self->rows[place] = row;
    self->count++;
    return BAY_OK;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static policy_tool resolve(const policy_tools *self, bay_str name)
{
    policy_tool found = {0};
    for (size_t i = 0; i < self->count; i++) {
        const tool_row *row = &self->rows[i];
        policy_tool here = settings_of(row);
        if (str_glob(pattern_of(row), name)) {
            found.idempotency = found.idempotency != NULL ? found.idempotency : here.idempotency;
            found.rate = found.rate.count > 0 ? found.rate : here.rate;
            found.total = found.total.count > 0 ? found.total : here.total;
            found.cost = found.cost > 0 ? found.cost : here.cost;
            found.result_bytes = found.result_bytes > 0 ? found.result_bytes : here.result_bytes;
        }
    }
    return found;
}

static void forget(policy_tools_index *self)
{
    size_t cursor = 0;
    bay_str key;
    void *value;
    if (self->names == NULL) {
        return;
    }
    while (map_next(self->names, &cursor, &key, &value)) {
        mem_free(value);
    }
    map_fini(self->names);
    mem_free(self->names);
    self->names = NULL;
}

void policy_tools_index_set(policy_tools_index *self, policy_tools *tools)
{
    policy_tools *old = self->tools;
    forget(self);
    self->tools = policy_tools_ref(tools);
    self->fields = policy_tools_fields;
    policy_tools_unref(old);
}

void policy_tools_index_fini(policy_tools_index *self)
{
    forget(self);
    policy_tools_unref(self->tools);
    self->tools = NULL;
}

/* Without memory it is found anew the next time. */
static void remember(policy_tools_index *self, bay_str name, const policy_tool *settings)
{
    if (self->names == NULL) {
        self->names = mem_alloc(sizeof(*self->names));
        if (self->names == NULL) {
            return;
        }
        map_init(self->names, POLICY_TOOL_NAMES);
    }
    tool_name *made = mem_alloc(sizeof(*made) + name.len);
    if (made == NULL) {
        return;
    }
    made->settings = *settings;
    memcpy(made->name, name.at, name.len);
    if (map_put(self->names, (bay_str){made->name, name.len}, made, NULL) != BAY_OK) {
        mem_free(made);
    }
}

policy_tool policy_tools_find(policy_tools_index *self, bay_str name)
{
    const tool_name *known = self->names != NULL ? map_get(self->names, name) : NULL;
    if (known != NULL) {
        return known->settings;
    }
    policy_tool settings = resolve(self->tools, name);
    remember(self, name, &settings);
    return settings;
}

/* ---- header fields --------------------------------------------------------------------------- */

const policy_tool_field *policy_tools_fields(const policy_tools *self, const http_field *fields,
                                             size_t count, arena *memory, size_t *out_count)
{
    policy_tool_field *found = NULL;
    *out_count = 0;
    for (size_t i = 0; i < self->count; i++) {
        bay_str name = self->rows[i].idempotency.header;
        size_t times = name.len > 0 ? http1_field_count(fields, count, name) : 0;
        if (times == 0) {
            continue;
        }
        if (found == NULL) {
            found = arena_array(memory, self->count, sizeof(*found));
        }
        bay_str value = times == 1 ? http1_field_find(fields, count, name) : STR("");
        policy_tool_field *at = found != NULL ? &found[*out_count] : NULL;
        if (at == NULL || arena_dup(memory, name, &at->name) != BAY_OK ||
            arena_dup(memory, value, &at->value) != BAY_OK) {
            *out_count = 0;
            return NULL;
        }
        (*out_count)++;
    }
    return found;
}
