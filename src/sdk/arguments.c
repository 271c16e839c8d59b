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

/* Past SERVER_MAX_RULES arguments go unchecked here: the handler sees them as they came. */
bay_err sdk_arguments_compile(entry *tool)
{
    arena *memory = &tool->server->memory;
    json_val schema = json_root(&tool->schema_doc);
    json_val properties = json_get(schema, STR("properties"));
    json_val required = json_get(schema, STR("required"));
    size_t most = json_count(properties) + json_count(required);
    tool->rules = arena_array(memory, most < SERVER_MAX_RULES ? most : SERVER_MAX_RULES,
                              sizeof(*tool->rules));
    bay_err err = tool->rules != NULL ? BAY_OK : BAY_NOMEM;
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
    for (size_t i = 0; i < tool->rule_count; i++) {
        const argument_rule *rule = &tool->rules[i];
        json_val value = json_get(arguments, rule->name);
        if (json_is(value, JSON_MISSING)) {
            if (rule->is_required) {
                buf_printf(out_text, "%sThe argument \"%.*s\" is required but missing.",
                           out_text->len > 0 ? " " : "", BAY_STR(rule->name));
            }
        } else if (!rule_admits(rule, value)) {
            buf_printf(out_text, "%sThe argument \"%.*s\" must be of type %.*s.",
                       out_text->len > 0 ? " " : "", BAY_STR(rule->name), BAY_STR(rule->types_raw));
        }
    }
    return out_text->len == 0;
}
