/* x-mcp-header: compiles the annotations of an inputSchema into a table, and applies the table to
 * the arguments of a call.
 *
 * An annotation is used only if `properties` alone lead to it from the root; at any other place of
 * a schema it makes the tool invalid. Data in a schema (const, enum, default, examples) is not
 * searched. */
#include "mcp/param_header.h"

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/header.h"

enum { MAX_SCHEMA_DEPTH = 128 };

/* 2^53 - 1: the largest integer that all JSON readers represent exactly. */
#define MAX_SAFE_INTEGER INT64_C(9007199254740991)

typedef struct walk {
    mcp_param *params; /* MCP_MAX_PARAM_HEADERS, taken at the first annotation */
    size_t count;
    bay_str path[MCP_MAX_PARAM_DEPTH];
    arena *memory;
    bay_diag *diag;
} walk;

static bay_err walk_schema(walk *self, json_val schema, size_t path_len, bool is_static,
                           size_t depth);

static bay_err read_type(walk *self, json_val schema, bay_str name, json_kind *out)
{
    json_val type = json_get(schema, STR("type"));
    if (json_str_eq(type, STR("string"))) {
        *out = JSON_STRING;
    } else if (json_str_eq(type, STR("integer"))) {
        *out = JSON_NUMBER;
    } else if (json_str_eq(type, STR("boolean"))) {
        *out = JSON_TRUE;
    } else {
        return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(schema),
                       "x-mcp-header \"%.*s\" stands on a property that is no string, integer or "
                       "boolean",
                       BAY_STR(str_head(name, 64)));
    }
    return BAY_OK;
}

static bay_err check_name(walk *self, json_val annotation, bay_str name)
{
    if (!header_name_is_valid(name)) {
        return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(annotation),
                       "x-mcp-header is not a header field name");
    }
    for (size_t i = 0; i < self->count; i++) {
        if (str_eq_nocase(self->params[i].header, name)) {
            return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(annotation),
                           "x-mcp-header \"%.*s\" is used twice", BAY_STR(str_head(name, 64)));
        }
    }
    return BAY_OK;
}

static bay_err add_annotation(walk *self, json_val schema, json_val annotation, size_t path_len)
{
    if (!json_is(annotation, JSON_STRING)) {
        return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(annotation),
                       "x-mcp-header is not a string");
    }
    bay_str name;
    bay_err err = json_str(annotation, self->memory, &name);
    if (err != BAY_OK) {
        return err;
    }
    err = check_name(self, annotation, name);
    if (err != BAY_OK) {
        return err;
    }
    json_kind type = JSON_MISSING;
    err = read_type(self, schema, name, &type);
    if (err != BAY_OK) {
        return err;
    }
    if (self->params == NULL) {
        self->params = arena_array(self->memory, MCP_MAX_PARAM_HEADERS, sizeof(mcp_param));
    }
    bay_str *path = arena_array(self->memory, path_len, sizeof(bay_str));
    if (self->params == NULL || path == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (self->count == MCP_MAX_PARAM_HEADERS) {
        return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(annotation),
                       "more than %d properties carry x-mcp-header", MCP_MAX_PARAM_HEADERS);
    }
    memcpy(path, self->path, path_len * sizeof(bay_str));
    self->params[self->count++] =
        (mcp_param){.header = name, .path = path, .path_len = path_len, .type = type};
    return BAY_OK;
}

static bay_err walk_properties(walk *self, json_val properties, size_t path_len, bool is_static,
                               size_t depth)
{
    json_iter it = json_iter_of(properties);
    while (json_next(&it)) {
        bool goes_on = is_static && path_len < MCP_MAX_PARAM_DEPTH;
        if (goes_on) {
            bay_err err = json_str(it.key, self->memory, &self->path[path_len]);
            if (err != BAY_OK) {
                return err;
            }
        }
        bay_err err = walk_schema(self, it.value, path_len + (goes_on ? 1 : 0), goes_on, depth + 1);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

/* Every schema inside `value`, the value of a keyword other than `properties`. */
static bay_err walk_other(walk *self, json_val value, bool is_map, size_t depth)
{
    if (!is_map && json_is(value, JSON_OBJECT)) {
        return walk_schema(self, value, 0, false, depth + 1);
    }
    json_iter it = json_iter_of(value);
    while (json_next(&it)) {
        bay_err err = walk_schema(self, it.value, 0, false, depth + 1);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static bool is_one_of(json_val key, const bay_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_str_eq(key, names[i])) {
            return true;
        }
    }
    return false;
}

static bay_err walk_schema(walk *self, json_val schema, size_t path_len, bool is_static,
                           size_t depth)
{
    static const bay_str data[] = {STR_INIT("const"), STR_INIT("enum"), STR_INIT("default"),
                                   STR_INIT("examples"), STR_INIT("example")};
    static const bay_str maps[] = {STR_INIT("patternProperties"), STR_INIT("$defs"),
                                   STR_INIT("definitions"), STR_INIT("dependentSchemas"),
                                   STR_INIT("dependencies")};
    if (!json_is(schema, JSON_OBJECT)) {
        return BAY_OK;
    }
    if (depth > MAX_SCHEMA_DEPTH) {
        return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(schema),
                       "the schema is nested too deeply");
    }
    bool has_annotation = false;
    json_iter it = json_iter_of(schema);
    while (json_next(&it)) {
        bay_err err = BAY_OK;
        if (json_str_eq(it.key, STR("x-mcp-header"))) {
            if (!is_static || path_len == 0 || has_annotation) {
                return diag_at(self->diag, BAY_ERR_PROTOCOL, json_offset(it.key),
                               "x-mcp-header stands where it is not allowed: only properties of "
                               "the arguments may carry it, once");
            }
            has_annotation = true;
            err = add_annotation(self, schema, it.value, path_len);
        } else if (json_str_eq(it.key, STR("properties"))) {
            err = walk_properties(self, it.value, path_len, is_static, depth);
        } else if (!is_one_of(it.key, data, ARRAY_LEN(data))) {
            err = walk_other(self, it.value, is_one_of(it.key, maps, ARRAY_LEN(maps)), depth);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

bay_err mcp_param_table_read(mcp_param_table *out, json_val input_schema, arena *memory,
                             bay_diag *diag)
{
    walk self = {.memory = memory, .diag = diag};
    bay_err err = walk_schema(&self, input_schema, 0, true, 0);
    if (err == BAY_OK) {
        *out = (mcp_param_table){.params = self.params, .count = self.count};
    }
    return err;
}

static json_val value_of(const mcp_param *param, json_val arguments)
{
    json_val value = arguments;
    for (size_t i = 0; i < param->path_len; i++) {
        value = json_get(value, param->path[i]);
    }
    return value;
}

/* The header's text for a value; BAY_ERR_NOT_FOUND: a value of this kind has none. */
static bay_err value_text(json_val value, arena *memory, buf *out)
{
    bay_str text;
    int64_t number;
    bay_err err;
    switch (json_kind_of(value)) {
    case JSON_STRING:
        err = json_str(value, memory, &text);
        if (err == BAY_OK) {
            header_value_encode(out, text);
        }
        return err != BAY_OK ? err : out->err;
    case JSON_TRUE:
        buf_lit(out, "true");
        return out->err;
    case JSON_FALSE:
        buf_lit(out, "false");
        return out->err;
    case JSON_NUMBER:
        if (!json_is_integer(value)) {
            return BAY_ERR_NOT_FOUND;
        }
        if (json_int64(value, &number) != BAY_OK || number > MAX_SAFE_INTEGER ||
            number < -MAX_SAFE_INTEGER) {
            return BAY_ERR_RANGE;
        }
        buf_int(out, number);
        return out->err;
    default:
        return BAY_ERR_NOT_FOUND;
    }
}

bay_err mcp_param_value(const mcp_param *param, json_val arguments, arena *memory, bay_str *out)
{
    json_val value = value_of(param, arguments);
    buf text;
    buf_init(&text, json_raw(value).len * 2 + 64);
    bay_err err = value_text(value, memory, &text);
    if (err == BAY_ERR_NOT_FOUND) {
        *out = (bay_str){NULL, 0};
        err = BAY_OK;
    } else if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&text), out);
    }
    buf_fini(&text);
    return err;
}

/* mcp 2026-07-28 basic/transports/streamable-http, Server Validation: integers are compared as
 * numbers, "42.0" equals 42. */
static bool number_matches(json_val value, bay_str text, arena *memory)
{
    json_limits limits = {.max_bytes = 64, .max_depth = 1, .max_values = 1};
    json_doc doc;
    int64_t number;
    if (json_parse(&doc, text, &limits, memory, NULL) != BAY_OK) {
        return false;
    }
    json_val sent = json_root(&doc);
    return json_is(sent, JSON_NUMBER) && json_raw(sent).len == text.len &&
           json_int64(value, &number) == BAY_OK && number <= MAX_SAFE_INTEGER &&
           number >= -MAX_SAFE_INTEGER && json_number_eq(json_raw(value), json_raw(sent));
}

bool mcp_param_matches(const mcp_param *param, json_val arguments, bay_str field, arena *memory)
{
    json_val value = value_of(param, arguments);
    json_kind kind = json_kind_of(value);
    bool has_text = kind == JSON_STRING || kind == JSON_TRUE || kind == JSON_FALSE ||
                    (kind == JSON_NUMBER && json_is_integer(value));
    if (field.at == NULL || !has_text) {
        return field.at == NULL && !has_text;
    }
    buf decoded;
    buf_init(&decoded, field.len + 1);
    bay_err err = header_value_decode(&decoded, field);
    bay_str text;
    bool is_match = false;
    if (err == BAY_OK && arena_dup(memory, buf_view(&decoded), &text) == BAY_OK) {
        switch (kind) {
        case JSON_STRING:
            is_match = json_str_eq(value, text);
            break;
        case JSON_NUMBER:
            is_match = number_matches(value, text, memory);
            break;
        default:
            is_match = str_eq(text, kind == JSON_TRUE ? STR("true") : STR("false"));
        }
    }
    buf_fini(&decoded);
    return is_match;
}
