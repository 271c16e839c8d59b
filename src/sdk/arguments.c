/* A first check of a call's arguments: required members are there, and primitive types are what the
 * schema's top level says. What fails is told in words that a model can act on. */
#include "base/str.h"
#include "sdk/server_parts.h"

static bool type_matches(bay_str type, json_val value)
{
    json_kind kind = json_kind_of(value);
    if (str_eq(type, STR("string"))) {
        return kind == JSON_STRING;
    }
    if (str_eq(type, STR("integer"))) {
        return kind == JSON_NUMBER && json_is_integer(value);
    }
    if (str_eq(type, STR("number"))) {
        return kind == JSON_NUMBER;
    }
    if (str_eq(type, STR("boolean"))) {
        return kind == JSON_TRUE || kind == JSON_FALSE;
    }
    if (str_eq(type, STR("array"))) {
        return kind == JSON_ARRAY;
    }
    if (str_eq(type, STR("object"))) {
        return kind == JSON_OBJECT;
    }
    return str_eq(type, STR("null")) ? kind == JSON_NULL : true;
}

/* `type` is a string or an array of strings; anything else admits everything. */
static bool any_type_matches(json_val types, json_val value)
{
    bay_str raw = json_raw(types);
    if (json_is(types, JSON_STRING)) {
        return type_matches((bay_str){raw.at + 1, raw.len - 2}, value);
    }
    bool is_empty = true;
    json_iter iter = json_iter_of(types);
    while (json_next(&iter)) {
        is_empty = false;
        if (any_type_matches(iter.value, value)) {
            return true;
        }
    }
    return is_empty;
}

bool sdk_arguments_check(const entry *tool, json_val arguments, buf *out_text)
{
    json_val schema = json_root(&tool->schema_doc);
    json_iter required = json_iter_of(json_get(schema, STR("required")));
    while (json_next(&required)) {
        bay_str raw = json_raw(required.value);
        bay_str name = {raw.at + 1, raw.len >= 2 ? raw.len - 2 : 0};
        if (json_is(required.value, JSON_STRING) &&
            json_is(json_get(arguments, name), JSON_MISSING)) {
            buf_printf(out_text, "%sThe argument \"%.*s\" is required but missing.",
                       out_text->len > 0 ? " " : "", BAY_STR(name));
        }
    }
    json_val properties = json_get(schema, STR("properties"));
    json_iter given = json_iter_of(arguments);
    while (json_next(&given)) {
        bay_str raw = json_raw(given.key);
        bay_str name = {raw.at + 1, raw.len - 2};
        json_val types = json_get(json_get(properties, name), STR("type"));
        if (!any_type_matches(types, given.value)) {
            buf_printf(out_text, "%sThe argument \"%.*s\" must be of type %.*s.",
                       out_text->len > 0 ? " " : "", BAY_STR(name), BAY_STR(json_raw(types)));
        }
    }
    return out_text->len == 0;
}
