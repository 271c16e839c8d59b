/* Applies a node to a value: its type, the rules for its kind of value, composition, and what
 * remains unevaluated. max_levels limits the recursion, max_steps the work; reaching either ends
 * the whole check. */
#include "schema/check.h"

#include "base/mem.h"

bool check_fail(check *self, bay_err err, const char *bound)
{
    if (self->err == BAY_OK) {
        self->err = err;
        self->bound = bound;
    }
    return false;
}

bool check_spend(check *self, uint64_t steps)
{
    if (steps > self->steps) {
        self->steps = 0;
        return check_fail(self, BAY_ERR_LIMIT, "max_steps");
    }
    self->steps -= steps;
    return true;
}

marks check_push(check *self, size_t count)
{
    schema_state *state = self->state;
    size_t words = count / 64 + 1;
    if (words > state->words_cap - state->words_len) {
        size_t cap = (state->words_len + words) * 2;
        if (cap > self->schema->limits.max_scratch_bytes / sizeof(*state->words)) {
            check_fail(self, BAY_ERR_LIMIT, "max_scratch_bytes");
            return 0;
        }
        uint64_t *grown = mem_resize(state->words, cap * sizeof(*grown));
        if (grown == NULL) {
            check_fail(self, BAY_ERR_NOMEM, "");
            return 0;
        }
        state->words = grown;
        state->words_cap = cap;
    }
    marks set = state->words_len + 1;
    memset(state->words + state->words_len, 0, words * sizeof(*state->words));
    state->words_len += words;
    return set;
}

void check_pop(check *self, marks set)
{
    if (set != 0) {
        self->state->words_len = set - 1;
    }
}

/* `from` is the latest set; `into` is as wide. */
static void merge(check *self, marks from, marks into)
{
    schema_state *state = self->state;
    if (into == 0 || from == 0) {
        return;
    }
    for (size_t i = 0; from - 1 + i < state->words_len; i++) {
        state->words[into - 1 + i] |= state->words[from - 1 + i];
    }
}

bool check_try(check *self, uint32_t number, json_val value, marks into, const scope *outer)
{
    schema_failures *out = self->out;
    self->out = NULL;
    marks own = 0;
    bool holds = true;
    if (into != 0) {
        own = check_push(self, json_count(value));
        holds = own != 0;
    }
    holds = holds && check_apply(self, number, value, own, outer);
    if (holds) {
        merge(self, own, into);
    }
    check_pop(self, own);
    self->out = out;
    return holds;
}

static bool check_enum(check *self, const frame *at, const program_rule *one)
{
    json_val list = check_keyword(self, at, one);
    if (!check_spend(self, json_count(list) / 8)) {
        return false;
    }
    for (json_iter it = json_iter_of(list); json_next(&it);) {
        if (check_equal(self, it.value, at->value)) {
            return true;
        }
    }
    return report_enum(self, at->value, list);
}

static bool check_const(check *self, const frame *at, const program_rule *one)
{
    json_val only = check_keyword(self, at, one);
    if (check_equal(self, only, at->value)) {
        return true;
    }
    fixed_text *out = report_open(self, at->value, only);
    if (out != NULL) {
        fixed_lit(out, "must be ");
        fixed_short(out, json_raw(only), 200);
        fixed_lit(out, ", got ");
        report_got(out, at->value);
    }
    return report_close(self);
}

/* The outermost resource in scope with this anchor decides. */
static uint32_t dynamic_target_of(check *self, const frame *at, const program_rule *one)
{
    const dynamic_target *targets = self->schema->dynamic + one->b;
    uint32_t found = one->a;
    uint64_t walked = 0;
    for (const scope *in = at->scope; in != NULL; in = in->outer, walked++) {
        size_t low = 0;
        size_t high = (size_t)one->most;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (targets[middle].resource < in->resource) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low < one->most && targets[low].resource == in->resource) {
            found = targets[low].target;
        }
    }
    check_spend(self, walked / 4);
    return found;
}

static bool check_all_of(check *self, const frame *at, const program_rule *one)
{
    bool holds = true;
    for (uint32_t i = 0; i < one->b && (holds || !check_is_silent(self)); i++) {
        uint32_t number = self->schema->lists[one->a + i];
        holds &= check_apply(self, number, at->value, at->marks, at->scope);
    }
    return holds;
}

static bool check_any_of(check *self, const frame *at, const program_rule *one)
{
    bool holds = false;
    for (uint32_t i = 0; i < one->b && (!holds || at->marks != 0) && self->err == BAY_OK; i++) {
        uint32_t number = self->schema->lists[one->a + i];
        holds |= check_try(self, number, at->value, at->marks, at->scope);
    }
    return holds || report_alternatives(self, at, one);
}

static bool check_one_of(check *self, const frame *at, const program_rule *one)
{
    uint32_t held[2] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < one->b && count < 2 && self->err == BAY_OK; i++) {
        uint32_t number = self->schema->lists[one->a + i];
        if (check_try(self, number, at->value, at->marks, at->scope)) {
            held[count++] = i;
        }
    }
    if (count == 1) {
        return true;
    }
    if (count == 0) {
        return report_alternatives(self, at, one);
    }
    return report(self, at->value, check_keyword(self, at, one),
                  "must match exactly one of the %u alternatives, but matches numbers %u and %u",
                  one->b, held[0] + 1, held[1] + 1);
}

static bool check_not(check *self, const frame *at, const program_rule *one)
{
    if (!check_try(self, one->a, at->value, 0, at->scope)) {
        return self->err == BAY_OK;
    }
    json_val keyword = check_keyword(self, at, one);
    fixed_text *out = report_open(self, at->value, keyword);
    if (out != NULL) {
        fixed_lit(out, "must not match ");
        fixed_short(out, json_raw(keyword), 200);
    }
    return report_close(self);
}

static bool check_if(check *self, const frame *at, const program_rule *one)
{
    bool holds = check_try(self, one->a, at->value, at->marks, at->scope);
    uint32_t next = self->schema->lists[one->b + (holds ? 0 : 1)];
    return self->err == BAY_OK &&
           (next == NODE_NONE || check_apply(self, next, at->value, at->marks, at->scope));
}

/* Not inlined: most nodes have no composition, and its registers would make every call slower. */
__attribute__((noinline)) static bool check_composition(check *self, const frame *at,
                                                        const program_rule *one)
{
    switch ((rule_kind)one->kind) {
    case RULE_ENUM:
        return check_enum(self, at, one);
    case RULE_CONST:
        return check_const(self, at, one);
    case RULE_REF:
        return check_apply(self, one->a, at->value, at->marks, at->scope);
    case RULE_DYNAMIC_REF:
        return check_apply(self, dynamic_target_of(self, at, one), at->value, at->marks, at->scope);
    case RULE_ALL_OF:
        return check_all_of(self, at, one);
    case RULE_ANY_OF:
        return check_any_of(self, at, one);
    case RULE_ONE_OF:
        return check_one_of(self, at, one);
    case RULE_NOT:
        return check_not(self, at, one);
    case RULE_IF:
        return check_if(self, at, one);
    case RULE_UNEVALUATED_ITEMS:
        return check_unevaluated_items(self, at, one);
    case RULE_UNEVALUATED_PROPERTIES:
        return check_unevaluated_members(self, at, one);
    default:
        return true;
    }
}

static bool check_rules(check *self, const frame *at, json_kind kind)
{
    bool holds = true;
    switch (kind) {
    case JSON_NUMBER:
        holds = check_number(self, at);
        break;
    case JSON_STRING:
        holds = check_string(self, at);
        break;
    case JSON_ARRAY:
        holds = check_array(self, at);
        break;
    case JSON_OBJECT:
        holds = check_object(self, at);
        break;
    default:
        break;
    }
    const program_rule *rules = self->schema->rules;
    for (uint32_t i = at->node->ends[RULES_OBJECT]; i < at->node->ends[RULES_LAST]; i++) {
        if (!holds && (check_is_silent(self) || i >= at->node->ends[RULES_ANY])) {
            return false; /* what is unevaluated is known only if everything else holds */
        }
        holds &= check_composition(self, at, &rules[i]);
    }
    return holds;
}

/* A node with rules of RULES_LAST counts what is evaluated at it and below, not beside it. */
static bool check_seeing(check *self, frame *at, json_kind kind, marks into)
{
    if (kind != JSON_ARRAY && kind != JSON_OBJECT) {
        return check_rules(self, at, kind);
    }
    at->marks = check_push(self, json_count(at->value));
    bool holds = at->marks != 0 && check_rules(self, at, kind);
    if (holds) {
        merge(self, at->marks, into);
    }
    check_pop(self, at->marks);
    return holds;
}

static bool is_of_type(const program_node *node, json_val value, json_kind kind)
{
    return (node->types & check_type(kind)) != 0 ||
           (kind == JSON_NUMBER && (node->types & TYPE_INTEGER) != 0 && json_is_integer(value));
}

bool check_apply(check *self, uint32_t number, json_val value, marks into, const scope *outer)
{
    const program_node *node = &self->schema->nodes[number];
    json_kind kind = json_kind_of(value);
    if (!is_of_type(node, value, kind)) {
        if (check_is_silent(self)) {
            return false;
        }
        json_val place = schema_place(self->schema, node->document, node->at);
        return self->err == BAY_OK &&
               report_type(self, value, node->types != 0 ? json_get(place, STR("type")) : place,
                           node->types);
    }
    if ((node->busy & check_type(kind)) == 0) {
        return check_spend(self, 1);
    }
    if (self->levels == 0) {
        return check_fail(self, BAY_ERR_LIMIT, "max_levels");
    }
    if (!check_spend(self, 1)) {
        return false;
    }
    self->levels--;
    scope here = {outer, node->resource};
    bool enters = self->schema->has_dynamic && (outer == NULL || outer->resource != node->resource);
    frame at = {node, value, into, enters ? &here : outer};
    bool holds =
        node->sees_evaluated ? check_seeing(self, &at, kind, into) : check_rules(self, &at, kind);
    self->levels++;
    return holds && self->err == BAY_OK;
}

void schema_state_init(schema_state *self)
{
    *self = (schema_state){0};
    arena_init(&self->text, schema_default_limits.max_scratch_bytes);
}

void schema_state_fini(schema_state *self)
{
    arena_fini(&self->text);
    mem_free(self->words);
    mem_free(self->slots);
    pattern_match_free(self->match);
    *self = (schema_state){0};
}

static void check_begin(check *self, const schema *program, json_val instance, schema_state *state)
{
    state->words_len = 0;
    state->text.max = program->limits.max_scratch_bytes;
    *self = (check){.schema = program,
                    .root = instance,
                    .state = state,
                    .steps = program->limits.max_steps,
                    .levels = program->limits.max_levels};
}

bay_err schema_check(const schema *self, json_val instance, schema_state *scratch,
                     schema_failures *out)
{
    schema_state own;
    schema_state *state = scratch;
    if (instance.doc == NULL) {
        return BAY_ERR_INVALID;
    }
    if (scratch == NULL) {
        schema_state_init(&own);
        state = &own;
    }
    if (out != NULL) {
        out->count = out->used = 0;
        out->is_cut = false;
    }
    check c;
    check_begin(&c, self, instance, state);
    bool holds = check_apply(&c, self->root, instance, 0, NULL);
    bay_err err = c.err != BAY_OK ? c.err : holds ? BAY_OK : BAY_ERR_INVALID;
    if (err == BAY_ERR_LIMIT && out != NULL) {
        c.out = out;
        report_error(&c);
    } else if (err == BAY_ERR_INVALID && out != NULL) {
        check_begin(&c, self, instance, state);
        c.out = out;
        check_apply(&c, self->root, instance, 0, NULL);
        out->is_cut |= c.err != BAY_OK; /* reporting is more work than checking */
    }
    if (scratch == NULL) {
        schema_state_fini(&own);
    }
    return err;
}
