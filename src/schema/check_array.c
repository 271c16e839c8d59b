/* Arrays, and equality of two values. */
#include "base/mem.h"
#include "schema/check.h"

static bool equal_at(json_val a, json_val b, uint64_t *steps, uint32_t depth);

static json_val member_named(json_val object, json_val key, uint64_t *steps)
{
    uint64_t cost = json_count(object) / 8;
    bay_str text;
    *steps = *steps > cost ? *steps - cost : 0;
    if (json_str_plain(key, &text)) {
        return json_get(object, text);
    }
    for (json_iter it = json_iter_of(object); json_next(&it);) {
        if (json_str_same(it.key, key)) {
            return it.value;
        }
    }
    return JSON_NONE;
}

/* Members are usually in the same order; otherwise each is looked up. */
static bool equal_containers(json_val a, json_val b, uint64_t *steps, uint32_t depth)
{
    if (json_count(a) != json_count(b)) {
        return false;
    }
    bool is_object = json_is(a, JSON_OBJECT);
    json_iter left = json_iter_of(a);
    json_iter right = json_iter_of(b);
    while (json_next(&left) && json_next(&right)) {
        json_val other = right.value;
        if (is_object && !json_str_same(left.key, right.key)) {
            other = member_named(b, left.key, steps);
        }
        if (*steps == 0 || other.doc == NULL || !equal_at(left.value, other, steps, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_at(json_val a, json_val b, uint64_t *steps, uint32_t depth)
{
    enum { DEEPEST = 500 };
    json_kind kind = json_kind_of(a);
    if (kind != json_kind_of(b)) {
        return false;
    }
    *steps = depth > DEEPEST || *steps < 1 ? 0 : *steps - 1;
    if (*steps == 0) {
        return false;
    }
    switch (kind) {
    case JSON_NUMBER:
        return json_number_eq(json_raw(a), json_raw(b));
    case JSON_STRING:
        return json_str_same(a, b);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return equal_containers(a, b, steps, depth);
    default:
        return true;
    }
}

bool check_equal(check *self, json_val a, json_val b)
{
    bay_str left;
    bay_str right;
    if (json_str_plain(a, &left) && json_str_plain(b, &right)) {
        return schema_name_eq(left, right) && check_spend(self, 1);
    }
    bool holds = equal_at(a, b, &self->steps, 0);
    return (self->steps > 0 || check_spend(self, 1)) && holds;
}

/* Equal values have the same hash, whatever the order of members. */
static uint64_t hash_value(json_val value, uint64_t seed, uint32_t depth)
{
    enum { HASHED = 8 };
    uint64_t hash = json_hash(value, seed);
    if (depth >= HASHED || json_count(value) == 0) {
        return hash;
    }
    uint64_t index = 0;
    for (json_iter it = json_iter_of(value); json_next(&it); index++) {
        uint64_t name = it.key.doc != NULL ? json_hash(it.key, seed) : index;
        uint64_t below = hash_value(it.value, seed, depth + 1);
        hash += (name ^ (below * 0x9e3779b97f4a7c15U)) * 0xe7037ed1a0b428dbU;
    }
    return hash;
}

static bool report_twice(check *self, const frame *at, const program_rule *one, size_t first,
                         size_t second)
{
    return report(self, at->value, check_keyword(self, at, one),
                  "must not hold a value twice, but items %zu and %zu are equal", first, second);
}

static bool is_unique_among_few(check *self, const frame *at, const program_rule *one)
{
    json_iter it = json_iter_of(at->value);
    for (size_t i = 0; json_next(&it); i++) {
        json_iter before = json_iter_of(at->value);
        for (size_t j = 0; j < i && json_next(&before); j++) {
            if (check_equal(self, before.value, it.value)) {
                return report_twice(self, at, one, j, i);
            }
        }
    }
    return true;
}

/* A hash set of the items' places, in the state's slots. */
static bool is_unique_among_many(check *self, const frame *at, const program_rule *one,
                                 size_t count)
{
    schema_state *state = self->state;
    size_t cap = 64;
    while (cap < count * 2) {
        cap *= 2;
    }
    if (cap > self->schema->limits.max_scratch_bytes / sizeof(*state->slots)) {
        return check_fail(self, BAY_ERR_LIMIT, "max_scratch_bytes");
    }
    if (cap > state->slots_cap) {
        uint32_t *grown = mem_resize(state->slots, cap * sizeof(*grown));
        if (grown == NULL) {
            return check_fail(self, BAY_ERR_NOMEM, "");
        }
        state->slots = grown;
        state->slots_cap = cap;
    }
    memset(state->slots, 0, cap * sizeof(*state->slots));
    json_iter it = json_iter_of(at->value);
    for (size_t i = 0; json_next(&it); i++) {
        if (!check_spend(self, 1 + json_raw(it.value).len / 64)) {
            return false;
        }
        size_t slot = (size_t)hash_value(it.value, self->schema->seed, 0) & (cap - 1);
        for (; state->slots[slot] != 0; slot = (slot + 1) & (cap - 1)) {
            json_val other = {it.value.doc, state->slots[slot]};
            if (check_equal(self, other, it.value)) {
                size_t first = 0;
                json_iter before = json_iter_of(at->value);
                while (json_next(&before) && before.value.at != other.at) {
                    first++;
                }
                return report_twice(self, at, one, first, i);
            }
            if (!check_spend(self, 1)) {
                return false;
            }
        }
        state->slots[slot] = it.value.at;
    }
    return true;
}

static bool check_unique(check *self, const frame *at, const program_rule *one)
{
    enum { FEW = 12 };
    size_t count = json_count(at->value);
    bool holds = count <= FEW ? is_unique_among_few(self, at, one)
                              : is_unique_among_many(self, at, one, count);
    return holds && self->err == BAY_OK;
}

static bool check_items(check *self, const frame *at, const program_rule *one)
{
    bool holds = true;
    size_t index = 0;
    for (json_iter it = json_iter_of(at->value); json_next(&it); index++) {
        uint32_t number =
            index < one->b ? self->schema->lists[one->a + index] : (uint32_t)one->most;
        if (number == NODE_NONE) {
            break;
        }
        holds &= check_apply(self, number, it.value, 0, at->scope);
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
        check_mark(self, at->marks, index);
    }
    return holds;
}

static bool check_contains(check *self, const frame *at, const program_rule *one)
{
    uint64_t found = 0;
    uint64_t least = (uint64_t)one->small;
    size_t index = 0;
    for (json_iter it = json_iter_of(at->value); json_next(&it); index++) {
        if (check_try(self, one->a, it.value, 0, at->scope)) {
            found++;
            check_mark(self, at->marks, index);
        }
        if (self->err != BAY_OK) {
            return false;
        }
        if (found >= least && one->most == UINT64_MAX && at->marks == 0) {
            return true;
        }
    }
    if (found >= least && found <= one->most) {
        return true;
    }
    json_val keyword = check_keyword(self, at, one);
    fixed_text *out = report_open(self, at->value, keyword);
    if (out != NULL) {
        bool is_few = found < least;
        fixed_printf(out, "must hold at %s %llu item(s) that match ", is_few ? "least" : "most",
                     (unsigned long long)(is_few ? least : one->most));
        fixed_short(out, json_raw(keyword), 200);
        fixed_printf(out, ", holds %llu", (unsigned long long)found);
    }
    return report_close(self);
}

static bool check_item_count(check *self, const frame *at, const program_rule *one)
{
    bool is_least = one->kind == RULE_MIN_ITEMS;
    size_t count = json_count(at->value);
    if (is_least ? count >= one->most : count <= one->most) {
        return true;
    }
    return report(self, at->value, check_keyword(self, at, one),
                  "must hold at %s %llu item%s, holds %zu", is_least ? "least" : "most",
                  (unsigned long long)one->most, one->most == 1 ? "" : "s", count);
}

bool check_array(check *self, const frame *at)
{
    const program_node *node = at->node;
    bool holds = true;
    for (uint32_t i = node->ends[RULES_STRING]; i < node->ends[RULES_ARRAY]; i++) {
        const program_rule *one = &self->schema->rules[i];
        switch ((rule_kind)one->kind) {
        case RULE_ITEMS:
            holds &= check_items(self, at, one);
            break;
        case RULE_CONTAINS:
            holds &= check_contains(self, at, one);
            break;
        case RULE_UNIQUE_ITEMS:
            holds &= check_unique(self, at, one);
            break;
        default:
            holds &= check_item_count(self, at, one);
            break;
        }
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
    }
    return holds;
}

bool check_unevaluated_items(check *self, const frame *at, const program_rule *one)
{
    bool holds = true;
    size_t index = 0;
    if (!json_is(at->value, JSON_ARRAY)) {
        return true;
    }
    for (json_iter it = json_iter_of(at->value); json_next(&it); index++) {
        if (!check_is_marked(self, at->marks, index)) {
            holds &= check_apply(self, one->a, it.value, 0, at->scope);
            check_mark(self, at->marks, index);
        }
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
    }
    return holds;
}
