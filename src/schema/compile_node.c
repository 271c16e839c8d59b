/* Turns keywords into rules, one node at a time, and checks the form of each keyword. */
#include "base/mem.h"
#include "schema/compile.h"

/* The node being compiled. Nodes and rules may move while others are created, so nothing here
 * points to them. */
typedef struct builder {
    compiler *compiler;
    uint32_t number;
    uint32_t document;
    uint32_t resource;
    json_val words[KEYWORD_COUNT];
} builder;

static json_val word(const builder *self, keyword_id id)
{
    return self->words[id];
}

static bool has(const builder *self, keyword_id id)
{
    return self->words[id].doc != NULL;
}

static bool wrong(builder *self, keyword_id id, const char *what)
{
    compile_fail(self->compiler, BAY_ERR_SYNTAX, self->words[id], "%s", what);
    return false;
}

static void add_rule(builder *self, program_rule one)
{
    schema *out = self->compiler->self;
    if (compile_grow(self->compiler, &out->rules, &out->rule_cap, out->rule_count,
                     sizeof(*out->rules))) {
        out->rules[out->rule_count++] = one;
    }
}

static void add_list(builder *self, uint32_t number)
{
    schema *out = self->compiler->self;
    if (compile_grow(self->compiler, &out->lists, &out->list_cap, out->list_count,
                     sizeof(*out->lists))) {
        out->lists[out->list_count++] = number;
    }
}

static uint32_t child(builder *self, json_val value)
{
    return compile_node_at(self->compiler, self->document, value.at);
}

/* A list of schemas, into the lists. */
static bool add_children(builder *self, keyword_id id, uint32_t *out_from, uint32_t *out_count)
{
    json_val value = word(self, id);
    if (!json_is(value, JSON_ARRAY) || json_count(value) == 0) {
        return wrong(self, id, "must be a list of at least one schema");
    }
    *out_from = (uint32_t)self->compiler->self->list_count;
    *out_count = (uint32_t)json_count(value);
    for (json_iter it = json_iter_of(value); json_next(&it);) {
        add_list(self, child(self, it.value));
    }
    return true;
}

static bool read_count(builder *self, keyword_id id, uint64_t *out)
{
    bay_err err = json_uint64(word(self, id), out);
    if (err == BAY_ERR_RANGE && json_is_integer(word(self, id)) &&
        json_raw(word(self, id)).at[0] != '-') {
        *out = UINT64_MAX; /* more than any count */
    } else if (err != BAY_OK) {
        return wrong(self, id, "must be an integer that is not below 0");
    }
    return true;
}

static void compile_counts(builder *self)
{
    static const struct {
        keyword_id id;
        rule_kind kind;
    } counts[] = {
        {KEYWORD_MIN_LENGTH, RULE_MIN_LENGTH},
        {KEYWORD_MAX_LENGTH, RULE_MAX_LENGTH},
        {KEYWORD_MIN_ITEMS, RULE_MIN_ITEMS},
        {KEYWORD_MAX_ITEMS, RULE_MAX_ITEMS},
        {KEYWORD_MIN_PROPERTIES, RULE_MIN_PROPERTIES},
        {KEYWORD_MAX_PROPERTIES, RULE_MAX_PROPERTIES},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint64_t count;
        if (has(self, counts[i].id) && read_count(self, counts[i].id, &count)) {
            add_rule(self, (program_rule){.kind = (uint8_t)counts[i].kind,
                                          .keyword = word(self, counts[i].id).at,
                                          .most = count});
        }
    }
}

static void compile_numbers(builder *self)
{
    static const struct {
        keyword_id id;
        rule_kind kind;
    } numbers[] = {
        {KEYWORD_MULTIPLE_OF, RULE_MULTIPLE_OF},
        {KEYWORD_MINIMUM, RULE_MINIMUM},
        {KEYWORD_MAXIMUM, RULE_MAXIMUM},
        {KEYWORD_EXCLUSIVE_MINIMUM, RULE_EXCLUSIVE_MINIMUM},
        {KEYWORD_EXCLUSIVE_MAXIMUM, RULE_EXCLUSIVE_MAXIMUM},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_val value = word(self, numbers[i].id);
        if (value.doc == NULL) {
            continue;
        }
        if (!json_is(value, JSON_NUMBER)) {
            wrong(self, numbers[i].id, "must be a number");
            return;
        }
        bool is_multiple;
        if (numbers[i].kind == RULE_MULTIPLE_OF &&
            json_number_is_multiple(STR("1"), json_raw(value), &is_multiple) != BAY_OK) {
            wrong(self, numbers[i].id, "must be above 0 and have at most 18 digits");
            return;
        }
        program_rule one = {.kind = (uint8_t)numbers[i].kind, .keyword = value.at};
        one.is_small = json_int64(value, &one.small) == BAY_OK;
        add_rule(self, one);
    }
}

static uint8_t type_of(json_val name)
{
    static const struct {
        bay_str name;
        uint8_t type;
    } types[] = {
        {STR_INIT("null"), TYPE_NULL},       {STR_INIT("boolean"), TYPE_BOOLEAN},
        {STR_INIT("number"), TYPE_NUMBER},   {STR_INIT("string"), TYPE_STRING},
        {STR_INIT("array"), TYPE_ARRAY},     {STR_INIT("object"), TYPE_OBJECT},
        {STR_INIT("integer"), TYPE_INTEGER},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (json_str_eq(name, types[i].name)) {
            return types[i].type;
        }
    }
    return 0;
}

static uint8_t compile_types(builder *self)
{
    json_val value = word(self, KEYWORD_TYPE);
    uint8_t types = 0;
    bool is_known = true;
    if (value.doc == NULL) {
        return TYPE_ANY;
    }
    if (json_is(value, JSON_ARRAY)) {
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            types |= type_of(it.value);
            is_known &= type_of(it.value) != 0;
        }
    } else {
        types = type_of(value);
    }
    if (types == 0 || !is_known) {
        wrong(self, KEYWORD_TYPE,
              "must be one of null, boolean, number, string, array, object, integer, or a list of "
              "them");
    }
    return types;
}

static bool has_engine(compiler *c)
{
    if (c->self->engine == NULL) {
        c->self->engine = pattern_engine_new();
    }
    return c->self->engine != NULL;
}

/* The number of the pattern with this text, compiled at its first use. */
static uint32_t pattern_number(builder *self, json_val value)
{
    compiler *c = self->compiler;
    schema *out = c->self;
    bay_str text;
    if (!json_is(value, JSON_STRING)) {
        compile_fail(c, BAY_ERR_SYNTAX, value, "a pattern is a string");
        return 0;
    }
    if (!compile_text(c, value, &text)) {
        return 0;
    }
    uint32_t *known = map_get(&c->pattern_of, text);
    if (known != NULL) {
        return *known;
    }
    if (out->pattern_count >= c->limits->max_patterns) {
        compile_fail(c, BAY_ERR_LIMIT, value, "there are more than %u patterns (max_patterns)",
                     (unsigned)c->limits->max_patterns);
        return 0;
    }
    uint32_t *number = arena_alloc(&out->memory, sizeof(*number));
    if (!has_engine(c) || number == NULL ||
        !compile_grow(c, &out->patterns, &out->pattern_cap, out->pattern_count,
                      sizeof(*out->patterns))) {
        compile_fail(c, BAY_ERR_NOMEM, value, "no memory for the schema");
        return 0;
    }
    bay_diag diag = {0};
    bay_err err = pattern_new(out->engine, text, c->limits->max_pattern_bytes,
                              &out->patterns[out->pattern_count], &diag);
    if (err != BAY_OK) {
        compile_fail(c, err, value, "%s", diag.text);
        return 0;
    }
    *number = (uint32_t)out->pattern_count++;
    if (map_put(&c->pattern_of, text, number, NULL) != BAY_OK) {
        compile_fail(c, BAY_ERR_NOMEM, value, "no memory for the schema");
    }
    return *number;
}

static void prepare_idn(builder *self, json_val where)
{
    schema *out = self->compiler->self;
    if (out->idn[0] != NULL) {
        return;
    }
    bay_err err =
        has_engine(self->compiler) ? format_idn_new(out->engine, out->idn) : BAY_ERR_NOMEM;
    if (err != BAY_OK && err != BAY_ERR_UNSUPPORTED) { /* the latter: a library without PCRE2 */
        compile_fail(self->compiler, err, where, "no memory for the schema");
    }
}

static void compile_strings(builder *self)
{
    if (has(self, KEYWORD_PATTERN)) {
        json_val value = word(self, KEYWORD_PATTERN);
        uint32_t number = pattern_number(self, value);
        add_rule(self, (program_rule){.kind = RULE_PATTERN, .keyword = value.at, .a = number});
    }
    json_val name = word(self, KEYWORD_FORMAT);
    bay_str text;
    if (name.doc == NULL) {
        return;
    }
    if (!json_is(name, JSON_STRING)) {
        wrong(self, KEYWORD_FORMAT, "must be a string");
        return;
    }
    if (json_str_plain(name, &text)) {
        bool is_draft_07 =
            self->compiler->self->resources[self->resource].dialect == SCHEMA_DRAFT_07;
        const format_kind *found = format_find(text);
        if (found != NULL && !(found->is_new && is_draft_07)) {
            if (found->needs_idn) {
                prepare_idn(self, name);
            }
            add_rule(self, (program_rule){
                               .kind = RULE_FORMAT, .keyword = name.at, .a = format_index(found)});
        }
    }
}

static void compile_items(builder *self)
{
    bool is_list = json_is(word(self, KEYWORD_ITEMS), JSON_ARRAY);
    bool is_draft_07 = self->compiler->self->resources[self->resource].dialect == SCHEMA_DRAFT_07;
    keyword_id list = is_draft_07 ? KEYWORD_ITEMS : KEYWORD_PREFIX_ITEMS;
    keyword_id rest = is_list ? KEYWORD_ADDITIONAL_ITEMS : KEYWORD_ITEMS;
    if (is_list && !is_draft_07) {
        wrong(self, KEYWORD_ITEMS, "must be one schema; a list of them is prefixItems");
        return;
    }
    program_rule one = {.kind = RULE_ITEMS};
    uint32_t from = 0;
    uint32_t count = 0;
    if (is_draft_07 ? is_list && json_count(word(self, list)) > 0 : has(self, list)) {
        if (!add_children(self, list, &from, &count)) {
            return;
        }
        one.keyword = word(self, list).at;
    }
    one.a = from;
    one.b = count;
    if (has(self, rest)) {
        one.most = child(self, word(self, rest));
        one.keyword = word(self, rest).at;
    }
    if (count > 0 || one.most != NODE_NONE) {
        add_rule(self, one);
    }
}

static void compile_arrays(builder *self)
{
    json_val unique = word(self, KEYWORD_UNIQUE_ITEMS);
    if (unique.doc != NULL && !json_is(unique, JSON_TRUE) && !json_is(unique, JSON_FALSE)) {
        wrong(self, KEYWORD_UNIQUE_ITEMS, "must be true or false");
    } else if (json_true(unique)) {
        add_rule(self, (program_rule){.kind = RULE_UNIQUE_ITEMS, .keyword = unique.at});
    }
    compile_items(self);
    uint64_t least = 1;
    uint64_t most = UINT64_MAX;
    if ((has(self, KEYWORD_MIN_CONTAINS) && !read_count(self, KEYWORD_MIN_CONTAINS, &least)) ||
        (has(self, KEYWORD_MAX_CONTAINS) && !read_count(self, KEYWORD_MAX_CONTAINS, &most)) ||
        !has(self, KEYWORD_CONTAINS)) {
        return;
    }
    json_val value = word(self, KEYWORD_CONTAINS);
    uint32_t number = child(self, value);
    add_rule(self, (program_rule){.kind = RULE_CONTAINS,
                                  .keyword = value.at,
                                  .a = number,
                                  .small = least > INT64_MAX ? INT64_MAX : (int64_t)least,
                                  .most = most});
}

static bool table_open(builder *self, program_members *made, size_t most_names)
{
    schema *out = self->compiler->self;
    size_t slots = 4;
    while (slots < most_names * 2) {
        slots *= 2;
    }
    made->names = (uint32_t)out->name_count;
    made->slots = (uint32_t)out->slot_count;
    made->slot_mask = (uint32_t)slots - 1;
    for (size_t i = 0; i < slots; i++) {
        if (!compile_grow(self->compiler, &out->slots, &out->slot_cap, out->slot_count,
                          sizeof(*out->slots))) {
            return false;
        }
        out->slots[out->slot_count++] = 0;
    }
    return true;
}

/* The name's number in the table, added if necessary; UINT32_MAX on error. */
static uint32_t table_enter(builder *self, program_members *made, json_val key)
{
    schema *out = self->compiler->self;
    bay_str text;
    if (!compile_text(self->compiler, key, &text)) {
        return UINT32_MAX;
    }
    uint32_t *slots = out->slots + made->slots;
    uint32_t at = (uint32_t)schema_name_hash(text, out->seed) & made->slot_mask;
    for (; slots[at] != 0; at = (at + 1) & made->slot_mask) {
        if (str_eq(out->names[made->names + slots[at] - 1].text, text)) {
            return slots[at] - 1;
        }
    }
    if (!compile_grow(self->compiler, &out->names, &out->name_cap, out->name_count,
                      sizeof(*out->names))) {
        return UINT32_MAX;
    }
    out->names[out->name_count++] = (member_name){.text = text, .bit = NAME_NO_BIT};
    slots[at] = ++made->name_count;
    return made->name_count - 1;
}

static void enter_properties(builder *self, program_members *made)
{
    schema *out = self->compiler->self;
    for (json_iter it = json_iter_of(word(self, KEYWORD_PROPERTIES)); json_next(&it);) {
        uint32_t number = table_enter(self, made, it.key);
        uint32_t node = child(self, it.value);
        if (number == UINT32_MAX || node == NODE_NONE) {
            return;
        }
        out->names[made->names + number].child = node;
        out->names[made->names + number].is_defined = true;
    }
}

static void enter_required(builder *self, program_members *made)
{
    schema *out = self->compiler->self;
    uint32_t bits = 0;
    made->more_required = (uint32_t)out->list_count;
    for (json_iter it = json_iter_of(word(self, KEYWORD_REQUIRED)); json_next(&it);) {
        if (!json_is(it.value, JSON_STRING)) {
            wrong(self, KEYWORD_REQUIRED, "must be a list of strings");
            return;
        }
        uint32_t number = table_enter(self, made, it.value);
        if (number == UINT32_MAX) {
            return;
        }
        member_name *name = &out->names[made->names + number];
        if (name->bit != NAME_NO_BIT) {
            continue;
        }
        if (bits < MOST_BITS) {
            made->required |= (uint64_t)1 << bits;
            name->bit = (uint8_t)bits++;
        } else {
            name->bit = NAME_LISTED;
            add_list(self, number);
            made->more_count++;
        }
    }
}

static void enter_patterns(builder *self, program_members *made)
{
    schema *out = self->compiler->self;
    json_val patterns = word(self, KEYWORD_PATTERN_PROPERTIES);
    made->patterns = (uint32_t)out->list_count;
    for (json_iter it = json_iter_of(patterns); json_next(&it);) {
        add_list(self, pattern_number(self, it.key));
        add_list(self, child(self, it.value));
        made->pattern_count++;
    }
}

static void compile_members(builder *self)
{
    schema *out = self->compiler->self;
    static const keyword_id maps[] = {KEYWORD_PROPERTIES, KEYWORD_PATTERN_PROPERTIES};
    for (size_t i = 0; i < 2; i++) {
        if (has(self, maps[i]) && !json_is(word(self, maps[i]), JSON_OBJECT)) {
            wrong(self, maps[i], "must be an object of schemas");
            return;
        }
    }
    if (has(self, KEYWORD_REQUIRED) && !json_is(word(self, KEYWORD_REQUIRED), JSON_ARRAY)) {
        wrong(self, KEYWORD_REQUIRED, "must be a list of strings");
        return;
    }
    size_t names =
        json_count(word(self, KEYWORD_PROPERTIES)) + json_count(word(self, KEYWORD_REQUIRED));
    json_val additional = word(self, KEYWORD_ADDITIONAL_PROPERTIES);
    if (names == 0 && json_count(word(self, KEYWORD_PATTERN_PROPERTIES)) == 0 &&
        additional.doc == NULL) {
        return;
    }
    program_members made = {0};
    if (!table_open(self, &made, names)) {
        return;
    }
    enter_properties(self, &made);
    enter_required(self, &made);
    enter_patterns(self, &made);
    if (additional.doc != NULL) {
        made.additional = child(self, additional);
        made.is_closed = json_is(additional, JSON_FALSE);
    }
    if (compile_grow(self->compiler, &out->members, &out->members_cap, out->members_count,
                     sizeof(*out->members))) {
        out->members[out->members_count++] = made;
        add_rule(self, (program_rule){.kind = RULE_MEMBERS, .a = (uint32_t)out->members_count - 1});
    }
}

/* A list of names that the presence of `key` requires; the names stay in the schema's text. */
static void add_dependent_names(builder *self, keyword_id id, json_val key, json_val names)
{
    if (!json_is(names, JSON_ARRAY)) {
        wrong(self, id, "must hold lists of strings");
        return;
    }
    for (json_iter it = json_iter_of(names); json_next(&it);) {
        if (!json_is(it.value, JSON_STRING)) {
            wrong(self, id, "must hold lists of strings");
            return;
        }
    }
    add_rule(self,
             (program_rule){
                 .kind = RULE_DEPENDENT_REQUIRED, .keyword = names.at, .a = key.at, .b = names.at});
}

static void compile_dependents(builder *self)
{
    static const keyword_id ids[] = {KEYWORD_DEPENDENT_REQUIRED, KEYWORD_DEPENDENT_SCHEMAS,
                                     KEYWORD_DEPENDENCIES};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        json_val names = word(self, ids[i]);
        if (names.doc != NULL && !json_is(names, JSON_OBJECT)) {
            wrong(self, ids[i], "must be an object");
            return;
        }
        for (json_iter it = json_iter_of(names); json_next(&it);) {
            bool is_list = json_is(it.value, JSON_ARRAY);
            if (ids[i] == KEYWORD_DEPENDENT_REQUIRED ||
                (ids[i] == KEYWORD_DEPENDENCIES && is_list)) {
                add_dependent_names(self, ids[i], it.key, it.value);
                continue;
            }
            uint32_t number = child(self, it.value);
            add_rule(self, (program_rule){.kind = RULE_DEPENDENT_SCHEMA,
                                          .keyword = it.value.at,
                                          .a = it.key.at,
                                          .b = number});
        }
    }
}

static void compile_reference(builder *self, json_val reference, bool is_dynamic)
{
    compiler *c = self->compiler;
    place target;
    bay_str anchor;
    if (!compile_resolve(c, self->resource, reference, &target, &anchor)) {
        return;
    }
    uint32_t number = compile_node_at(c, target.document, target.at);
    if (!is_dynamic || !target.is_dynamic || anchor.len == 0) {
        add_rule(self, (program_rule){.kind = RULE_REF, .keyword = reference.at, .a = number});
        return;
    }
    dynamic_name *name = compile_dynamic_name(c, anchor);
    if (name == NULL ||
        !compile_grow(c, &c->dynamic_rules, &c->dynamic_rule_cap, c->dynamic_rule_count,
                      sizeof(*c->dynamic_rules)) ||
        !compile_grow(c, &c->dynamic_rule_names, &c->dynamic_rule_name_cap, c->dynamic_rule_count,
                      sizeof(*c->dynamic_rule_names))) {
        return;
    }
    name->is_used = true;
    c->dynamic_rules[c->dynamic_rule_count] = (uint32_t)c->self->rule_count;
    c->dynamic_rule_names[c->dynamic_rule_count++] = name;
    add_rule(self, (program_rule){.kind = RULE_DYNAMIC_REF, .keyword = reference.at, .a = number});
}

static void compile_composition(builder *self)
{
    static const struct {
        keyword_id id;
        rule_kind kind;
    } lists[] = {{KEYWORD_ALL_OF, RULE_ALL_OF},
                 {KEYWORD_ANY_OF, RULE_ANY_OF},
                 {KEYWORD_ONE_OF, RULE_ONE_OF}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        program_rule one = {.kind = (uint8_t)lists[i].kind, .keyword = word(self, lists[i].id).at};
        if (has(self, lists[i].id) && add_children(self, lists[i].id, &one.a, &one.b)) {
            add_rule(self, one);
        }
    }
    static const struct {
        keyword_id id;
        rule_kind kind;
    } ones[] = {{KEYWORD_NOT, RULE_NOT},
                {KEYWORD_PROPERTY_NAMES, RULE_PROPERTY_NAMES},
                {KEYWORD_UNEVALUATED_ITEMS, RULE_UNEVALUATED_ITEMS},
                {KEYWORD_UNEVALUATED_PROPERTIES, RULE_UNEVALUATED_PROPERTIES}};
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        json_val value = word(self, ones[i].id);
        if (value.doc != NULL) {
            uint32_t number = child(self, value);
            add_rule(self, (program_rule){
                               .kind = (uint8_t)ones[i].kind, .keyword = value.at, .a = number});
        }
    }
    if (has(self, KEYWORD_IF)) {
        uint32_t number = child(self, word(self, KEYWORD_IF));
        uint32_t from = (uint32_t)self->compiler->self->list_count;
        add_list(self, has(self, KEYWORD_THEN) ? child(self, word(self, KEYWORD_THEN)) : NODE_NONE);
        add_list(self, has(self, KEYWORD_ELSE) ? child(self, word(self, KEYWORD_ELSE)) : NODE_NONE);
        add_rule(self, (program_rule){.kind = RULE_IF,
                                      .keyword = word(self, KEYWORD_IF).at,
                                      .a = number,
                                      .b = from});
    }
}

static void compile_constants(builder *self)
{
    json_val list = word(self, KEYWORD_ENUM);
    if (list.doc != NULL && !json_is(list, JSON_ARRAY)) {
        wrong(self, KEYWORD_ENUM, "must be a list of values");
    } else if (list.doc != NULL) {
        add_rule(self, (program_rule){.kind = RULE_ENUM, .keyword = list.at});
    }
    if (has(self, KEYWORD_CONST)) {
        add_rule(self, (program_rule){.kind = RULE_CONST, .keyword = word(self, KEYWORD_CONST).at});
    }
}

static rule_group group_of(const program_rule *one)
{
    static const uint8_t groups[] = {
#define RULE_GROUP(name, group, keyword) RULES_##group,
        RULE_KINDS(RULE_GROUP)
#undef RULE_GROUP
    };
    return (rule_group)groups[one->kind];
}

/* Sorts by kind, and so by group; there are few rules, nearly sorted. Records the places of dynamic
 * references. */
static void sort_rules(builder *self, uint32_t from)
{
    schema *out = self->compiler->self;
    compiler *c = self->compiler;
    for (size_t i = from + 1; i < out->rule_count; i++) {
        program_rule one = out->rules[i];
        size_t at = i;
        for (; at > from && out->rules[at - 1].kind > one.kind; at--) {
            out->rules[at] = out->rules[at - 1];
        }
        out->rules[at] = one;
    }
    for (size_t i = c->dynamic_rule_count; i > 0 && c->dynamic_rules[i - 1] >= from; i--) {
        for (uint32_t at = from; at < out->rule_count; at++) {
            if (out->rules[at].kind == RULE_DYNAMIC_REF) {
                c->dynamic_rules[i - 1] = at; /* a schema has at most one */
            }
        }
    }
}

static void compile_keyword_rules(builder *self)
{
    compile_numbers(self);
    compile_counts(self);
    compile_strings(self);
    compile_arrays(self);
    compile_members(self);
    compile_dependents(self);
    compile_constants(self);
    if (has(self, KEYWORD_REF)) {
        compile_reference(self, word(self, KEYWORD_REF), false);
    }
    if (has(self, KEYWORD_DYNAMIC_REF)) {
        compile_reference(self, word(self, KEYWORD_DYNAMIC_REF), true);
    }
    compile_composition(self);
}

void compile_node(compiler *c, uint32_t number)
{
    schema *out = c->self;
    program_node made = out->nodes[number];
    json_val value = schema_place(out, made.document, made.at);
    made.from = (uint32_t)out->rule_count;
    if (json_is(value, JSON_OBJECT)) {
        builder self = {
            .compiler = c, .number = number, .document = made.document, .resource = made.resource};
        compile_keywords(&out->resources[made.resource], value, self.words);
        bool is_draft_07 = out->resources[made.resource].dialect == SCHEMA_DRAFT_07;
        if (is_draft_07 && has(&self, KEYWORD_REF)) {
            compile_reference(&self, word(&self, KEYWORD_REF), false);
        } else {
            made.types = compile_types(&self);
            compile_keyword_rules(&self);
        }
        sort_rules(&self, made.from);
    } else if (json_is(value, JSON_FALSE)) {
        made.types = 0;
    }
    static const uint8_t looked_at[RULE_GROUPS] = {
        TYPE_NUMBER, TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT, TYPE_ANY, TYPE_ARRAY | TYPE_OBJECT,
    };
    uint32_t at = made.from;
    for (size_t group = 0; group < RULE_GROUPS; group++) {
        uint32_t before = at;
        while (at < out->rule_count && (size_t)group_of(&out->rules[at]) == group) {
            at++;
        }
        made.busy |= at > before ? looked_at[group] : 0;
        made.ends[group] = at;
    }
    made.sees_evaluated = made.ends[RULES_LAST] > made.ends[RULES_ANY];
    out->nodes[number] = made;
}
