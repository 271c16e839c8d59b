/* Objects: one walk over the members serves properties, patternProperties, additionalProperties and
 * required. A member is looked up first at the position that the schema's order suggests, then by
 * hash. */
#include "schema/check.h"

/* The name of a member in the table, or NULL. *next: the name after the last one found. */
static const member_name *find_name(check *self, const program_members *table, json_val key,
                                    uint32_t *next)
{
    const schema *program = self->schema;
    bay_str text;
    if (table->name_count == 0 || (!json_str_plain(key, &text) && !check_text(self, key, &text))) {
        return NULL;
    }
    const member_name *names = &program->names[table->names];
    if (*next < table->name_count && schema_name_eq(names[*next].text, text)) {
        return &names[(*next)++];
    }
    const uint32_t *slots = program->slots + table->slots;
    uint32_t at = (uint32_t)schema_name_hash(text, program->seed) & table->slot_mask;
    for (; slots[at] != 0; at = (at + 1) & table->slot_mask) {
        const member_name *name = &names[slots[at] - 1];
        if (schema_name_eq(name->text, text)) {
            *next = slots[at];
            return name;
        }
    }
    return NULL;
}

/* Applies every pattern that matches the member's name. *is_known: at least one matched. */
static bool check_patterns(check *self, const frame *at, const program_members *table, json_val key,
                           json_val value, bool *is_known)
{
    bool holds = true;
    for (uint32_t i = 0; i < table->pattern_count; i++) {
        const uint32_t *pair = self->schema->lists + table->patterns + i * 2;
        bool matches;
        if (!check_pattern(self, pair[0], key, &matches)) {
            return false;
        }
        if (matches) {
            *is_known = true;
            holds &= check_apply(self, pair[1], value, 0, at->scope);
            if (!holds && check_is_silent(self)) {
                return false;
            }
        }
    }
    return holds;
}

static bool report_missing(check *self, const frame *at, bay_str name)
{
    json_val place = schema_place(self->schema, at->node->document, at->node->at);
    fixed_text *out = report_open(self, at->value, json_get(place, STR("required")));
    if (out != NULL) {
        fixed_lit(out, "lacks the required property \"");
        fixed_short(out, name, 100);
        fixed_lit(out, "\"");
    }
    return report_close(self);
}

static bool check_required(check *self, const frame *at, const program_members *table,
                           uint64_t seen)
{
    bool holds = (seen & table->required) == table->required;
    if (table->name_count == 0 || (!holds && check_is_silent(self))) {
        return holds;
    }
    const member_name *names = &self->schema->names[table->names];
    for (uint32_t i = 0; i < table->name_count && !holds; i++) {
        uint64_t bit = names[i].bit < MOST_BITS ? (uint64_t)1 << names[i].bit : 0;
        if (bit != 0 && (seen & bit) == 0) {
            report_missing(self, at, names[i].text);
        }
    }
    for (uint32_t i = 0; i < table->more_count; i++) {
        bay_str name = names[self->schema->lists[table->more_required + i]].text;
        if (!check_spend(self, 1 + json_count(at->value) / 8)) {
            return false;
        }
        if (json_get(at->value, name).doc == NULL) {
            holds = report_missing(self, at, name);
            if (check_is_silent(self)) {
                return false;
            }
        }
    }
    return holds;
}

static bool check_members(check *self, const frame *at, const program_rule *one)
{
    const program_members *table = &self->schema->members[one->a];
    uint64_t seen = 0;
    uint32_t next = 0;
    size_t index = 0;
    bool holds = true;
    if (!check_spend(self, json_count(at->value) / 8)) {
        return false;
    }
    for (json_iter it = json_iter_of(at->value); json_next(&it); index++) {
        bool is_known = false;
        const member_name *name = find_name(self, table, it.key, &next);
        if (name != NULL) {
            seen |= name->bit < MOST_BITS ? (uint64_t)1 << name->bit : 0;
            is_known = name->is_defined;
            holds &= !is_known || check_apply(self, name->child, it.value, 0, at->scope);
        }
        if (table->pattern_count > 0) {
            holds &= check_patterns(self, at, table, it.key, it.value, &is_known);
        }
        if (!is_known && table->is_closed) {
            holds = report_unknown_member(self, at, table, it.key);
        } else if (!is_known && table->additional != NODE_NONE) {
            holds &= check_apply(self, table->additional, it.value, 0, at->scope);
            is_known = true;
        }
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
        if (is_known) {
            check_mark(self, at->marks, index);
        }
    }
    return check_required(self, at, table, seen) && holds;
}

static bool check_names(check *self, const frame *at, const program_rule *one)
{
    bool holds = true;
    for (json_iter it = json_iter_of(at->value); json_next(&it);) {
        holds &= check_apply(self, one->a, it.key, 0, at->scope);
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
    }
    return holds;
}

static bool check_member_count(check *self, const frame *at, const program_rule *one)
{
    bool is_least = one->kind == RULE_MIN_PROPERTIES;
    size_t count = json_count(at->value);
    if (is_least ? count >= one->most : count <= one->most) {
        return true;
    }
    return report(self, at->value, check_keyword(self, at, one),
                  "must have at %s %llu propert%s, has %zu", is_least ? "least" : "most",
                  (unsigned long long)one->most, one->most == 1 ? "y" : "ies", count);
}

/* The member named by a string of the schema. */
static json_val member(check *self, json_val object, json_val name)
{
    bay_str text;
    check_spend(self, json_count(object) / 8);
    if (json_str_plain(name, &text)) {
        return json_get(object, text);
    }
    for (json_iter it = json_iter_of(object); json_next(&it);) {
        if (json_str_same(it.key, name)) {
            return it.value;
        }
    }
    return JSON_NONE;
}

static bool check_dependent_names(check *self, const frame *at, const program_rule *one)
{
    json_val trigger = schema_place(self->schema, at->node->document, one->a);
    json_val names = schema_place(self->schema, at->node->document, one->b);
    bool holds = true;
    if (member(self, at->value, trigger).doc == NULL) {
        return true;
    }
    for (json_iter it = json_iter_of(names); json_next(&it) && self->err == BAY_OK;) {
        if (member(self, at->value, it.value).doc != NULL) {
            continue;
        }
        fixed_text *out = report_open(self, at->value, names);
        if (out != NULL) {
            fixed_lit(out, "has ");
            fixed_short(out, json_raw(trigger), 100);
            fixed_lit(out, ", so it must have ");
            fixed_short(out, json_raw(it.value), 100);
            fixed_lit(out, " too");
        }
        holds = report_close(self);
        if (check_is_silent(self)) {
            return false;
        }
    }
    return holds;
}

static bool check_dependent_schema(check *self, const frame *at, const program_rule *one)
{
    json_val trigger = schema_place(self->schema, at->node->document, one->a);
    return member(self, at->value, trigger).doc == NULL ||
           check_apply(self, one->b, at->value, at->marks, at->scope);
}

bool check_object(check *self, const frame *at)
{
    const program_node *node = at->node;
    bool holds = true;
    for (uint32_t i = node->ends[RULES_ARRAY]; i < node->ends[RULES_OBJECT]; i++) {
        const program_rule *one = &self->schema->rules[i];
        switch ((rule_kind)one->kind) {
        case RULE_MEMBERS:
            holds &= check_members(self, at, one);
            break;
        case RULE_PROPERTY_NAMES:
            holds &= check_names(self, at, one);
            break;
        case RULE_DEPENDENT_REQUIRED:
            holds &= check_dependent_names(self, at, one);
            break;
        case RULE_DEPENDENT_SCHEMA:
            holds &= check_dependent_schema(self, at, one);
            break;
        default:
            holds &= check_member_count(self, at, one);
            break;
        }
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
    }
    return holds;
}

bool check_unevaluated_members(check *self, const frame *at, const program_rule *one)
{
    bool holds = true;
    size_t index = 0;
    if (!json_is(at->value, JSON_OBJECT)) {
        return true;
    }
    bool is_closed = self->schema->nodes[one->a].types == 0;
    for (json_iter it = json_iter_of(at->value); json_next(&it); index++) {
        if (!check_is_marked(self, at->marks, index)) {
            if (is_closed && !check_is_silent(self)) {
                fixed_text *out = report_open(self, at->value, check_keyword(self, at, one));
                if (out != NULL) {
                    fixed_lit(out, "has the unknown property ");
                    fixed_short(out, json_raw(it.key), 100);
                }
                holds = report_close(self);
            } else {
                holds &= check_apply(self, one->a, it.value, 0, at->scope);
            }
            check_mark(self, at->marks, index);
        }
        if (self->err != BAY_OK || (!holds && check_is_silent(self))) {
            return false;
        }
    }
    return holds;
}
