/* A first check of a call's arguments: required members are there, and primitive types are what the
 * schema's top level says. The rules are taken out of the schema when the tool is registered; what
 * fails is told in words that a model can act on. */
#include "base/check.h"
#include "base/str.h"
#include "sdk/server_parts.h"

static unsigned type_bits(bay_str type)
{
    static const struct {
        bay_str name;
        unsigned bits;
    } types[] = {
        {STR_INIT("string"), 1u << JSON_STRING},
        {STR_INIT("integer"), 1u << JSON_NUMBER | RULE_INTEGER},
        {STR_INIT("number"), 1u << JSON_NUMBER},
        {STR_INIT("boolean"), 1u << JSON_TRUE | 1u << JSON_FALSE},
        {STR_INIT("array"), 1u << JSON_ARRAY},
        {STR_INIT("object"), 1u << JSON_OBJECT},
        {STR_INIT("null"), 1u << JSON_NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (str_eq(types[i].name, type)) {
            return types[i].bits;
        }
    }
    return RULE_ANY;
}

/* `type` is a string or an array of strings; anything else admits everything. */
static unsigned types_of(json_val types)
{
    bay_str raw = json_raw(types);
    if (json_is(types, JSON_STRING)) {
        return type_bits((bay_str){raw.at + 1, raw.len - 2});
    }
    unsigned bits = 0;
    bool has_number = false;
    json_iter iter = json_iter_of(types);
    while (json_next(&iter)) {
        unsigned one = json_is(iter.value, JSON_STRING) ? types_of(iter.value) : RULE_ANY;
        has_number = has_number || one == 1u << JSON_NUMBER;
        bits |= one;
    }
    bits = has_number ? bits & ~(unsigned)RULE_INTEGER : bits;
    return bits != 0 ? bits : RULE_ANY;
}

static argument_rule *rule_of(entry *tool, bay_str name)
{
    for (size_t i = 0; i < tool->rule_count; i++) {
        if (str_eq(tool->rules[i].name, name)) {
            return &tool->rules[i];
        }
    }
    if (tool->rule_count == SERVER_MAX_RULES) {
        return NULL;
    }
    argument_rule *rule = &tool->rules[tool->rule_count++];
    *rule = (argument_rule){.name = name, .types = RULE_ANY};
    return rule;
}

static bay_err rules_init(entry *item, size_t most)
{
    item->rules =
        arena_array(&item->server->memory, most < SERVER_MAX_RULES ? most : SERVER_MAX_RULES,
                    sizeof(*item->rules));
    return item->rules != NULL ? BAY_OK : BAY_NOMEM;
}

/* Missing, or of that kind? */
static bool may_be(json_val value, json_kind kind)
{
    return json_is(value, JSON_MISSING) || json_is(value, kind);
}

/* Past SERVER_MAX_RULES arguments go unchecked here: the handler sees them as they came. */
bay_err sdk_arguments_compile(entry *tool)
{
    arena *memory = &tool->server->memory;
    json_val schema = json_root(&tool->schema_doc);
    json_val properties = json_get(schema, STR("properties"));
    json_val required = json_get(schema, STR("required"));
    if (!may_be(properties, JSON_OBJECT) || !may_be(required, JSON_ARRAY)) {
        return BAY_TYPE;
    }
    bay_err err = rules_init(tool, json_count(properties) + json_count(required));
    json_iter iter = json_iter_of(properties);
    while (err == BAY_OK && json_next(&iter)) {
        bay_str name;
        err = json_str(iter.key, memory, &name);
        argument_rule *rule = err == BAY_OK ? rule_of(tool, name) : NULL;
        if (rule != NULL) {
            json_val types = json_get(iter.value, STR("type"));
            rule->types = types_of(types);
            rule->types_raw = json_raw(types);
        }
    }
    iter = json_iter_of(required);
    while (err == BAY_OK && json_next(&iter)) {
        bay_str name;
        err = json_str(iter.value, memory, &name);
        argument_rule *rule = err == BAY_OK ? rule_of(tool, name) : NULL;
        if (rule != NULL) {
            rule->is_required = true;
        }
    }
    return err;
}

bay_err sdk_arguments_compile_prompt(entry *prompt)
{
    json_val arguments = json_root(&prompt->schema_doc);
    bay_err err = rules_init(prompt, json_count(arguments));
    json_iter iter = json_iter_of(arguments);
    while (err == BAY_OK && json_next(&iter)) {
        json_val required = json_get(iter.value, STR("required"));
        bool is_flag = may_be(required, JSON_TRUE) || json_is(required, JSON_FALSE);
        bay_str name = {NULL, 0};
        err = json_str(json_get(iter.value, STR("name")), &prompt->server->memory, &name);
        if (err == BAY_OK &&
            (!is_flag || !may_be(json_get(iter.value, STR("title")), JSON_STRING) ||
             !may_be(json_get(iter.value, STR("description")), JSON_STRING))) {
            err = BAY_TYPE;
        }
        size_t before = prompt->rule_count;
        argument_rule *rule = err == BAY_OK ? rule_of(prompt, name) : NULL;
        if (rule != NULL && prompt->rule_count == before) {
            err = BAY_DUPLICATE;
        } else if (rule != NULL) {
            rule->is_required = json_true(required);
        }
    }
    return err;
}

const argument_rule *sdk_arguments_missing(const entry *prompt, json_val arguments)
{
    for (size_t i = 0; i < prompt->rule_count; i++) {
        const argument_rule *rule = &prompt->rules[i];
        if (rule->is_required && !json_is(json_get(arguments, rule->name), JSON_STRING)) {
            return rule;
        }
    }
    return NULL;
}

static bool rule_admits(const argument_rule *rule, json_val value)
{
    if ((rule->types & RULE_ANY) != 0) {
        return true;
    }
    json_kind kind = json_kind_of(value);
    bool is_named = (rule->types >> kind & 1u) != 0;
    return is_named &&
           (kind != JSON_NUMBER || (rule->types & RULE_INTEGER) == 0 || json_is_integer(value));
}

bool sdk_arguments_check(const entry *tool, json_val arguments, buf *out_text)
{
    bool is_good = true;
    for (size_t i = 0; i < tool->rule_count; i++) {
        const argument_rule *rule = &tool->rules[i];
        json_val value = json_get(arguments, rule->name);
        const char *gap = is_good ? "" : " ";
        if (json_is(value, JSON_MISSING)) {
            if (rule->is_required) {
                is_good = false;
                buf_printf(out_text, "%sThe argument \"%.*s\" is required but missing.", gap,
                           BAY_STR(rule->name));
            }
        } else if (!rule_admits(rule, value)) {
            is_good = false;
            buf_printf(out_text, "%sThe argument \"%.*s\" must be of type %.*s.", gap,
                       BAY_STR(rule->name), BAY_STR(rule->types_raw));
        }
    }
    return is_good;
}
