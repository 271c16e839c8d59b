/* Tables of fields as JSON Schema. What a table says and cannot mean is found here or, where it
 * takes a schema to find it, by the check of defaults and choices at the end. */
#include "sdk/fields.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "schema/defaults.h"
#include "sdk/json_parts.h"

typedef struct renderer {
    bay_json *json;
    fields_use use;
    size_t count;
    uint32_t depth;
    bay_err err;
    bay_diag *diag;
} renderer;

/* The words of patchbay/schema.h are JSON Schema's. */
static const char *const type_names[] = {
    [BAY_TYPE_STRING] = "string",   [BAY_TYPE_INTEGER] = "integer", [BAY_TYPE_NUMBER] = "number",
    [BAY_TYPE_BOOLEAN] = "boolean", [BAY_TYPE_OBJECT] = "object",   [BAY_TYPE_ARRAY] = "array",
    [BAY_TYPE_NULL] = "null",
};

static void fault(renderer *self, const bay_field *field, const char *what)
{
    if (self->err == BAY_OK) {
        self->err = diag_set(self->diag, BAY_ERR_INVALID, "the field \"%.64s\" %s",
                             field->name != NULL ? field->name : "", what);
    }
}

/* ---- contradictions -------------------------------------------------------------------------- */

static bool is_number(bay_type type)
{
    return type == BAY_TYPE_INTEGER || type == BAY_TYPE_NUMBER;
}

static bool is_scalar(bay_type type)
{
    return type == BAY_TYPE_STRING || type == BAY_TYPE_BOOLEAN || is_number(type);
}

static void check_type(renderer *self, const bay_field *field)
{
    bay_type type = field->type;
    bool is_form = self->use != FIELDS_OF_OBJECT;
    if (type < BAY_TYPE_NONE || type > BAY_TYPE_NULL) {
        fault(self, field, "has a type that is none");
    } else if (field->pattern != NULL && type != BAY_TYPE_STRING) {
        fault(self, field, "has a pattern, but is no string");
    } else if (field->format != NULL && type != BAY_TYPE_STRING) {
        fault(self, field, "has a format, but is no string");
    } else if ((field->min != NULL || field->max != NULL) && type != BAY_TYPE_STRING &&
               type != BAY_TYPE_ARRAY && !is_number(type)) {
        fault(self, field, "has min or max, but is no number, string or array");
    } else if ((field->above != NULL || field->below != NULL) && !is_number(type)) {
        fault(self, field, "has above or below, but is no number");
    } else if (field->items != NULL && type != BAY_TYPE_ARRAY) {
        fault(self, field, "has items, but is no array");
    } else if (field->fields != NULL && type != BAY_TYPE_OBJECT) {
        fault(self, field, "has fields, but is no object");
    } else if (field->choices != NULL && !is_scalar(type)) {
        fault(self, field, "has choices, but is no string, number or boolean");
    } else if (field->choices != NULL && field->choices[0] == NULL) {
        fault(self, field, "has choices, but not one");
    } else if (field->choice_titles != NULL && field->choices == NULL) {
        fault(self, field, "has titles of choices, but no choices");
    } else if (is_form &&
               (type == BAY_TYPE_NONE || type == BAY_TYPE_OBJECT || type == BAY_TYPE_NULL ||
                (type == BAY_TYPE_ARRAY &&
                 (field->items == NULL || field->items->choices == NULL)))) {
        fault(self, field,
              "is in a form: it must be a string, a number, a boolean or an array "
              "whose items have choices");
    }
}

/* JSON of the table. */
static bool read_json(renderer *self, const char *text, bay_document **out)
{
    bay_err err = bay_document_new(str_of(text), out, NULL);
    if (err == BAY_ERR_NOMEM && self->err == BAY_OK) {
        self->err = diag_set(self->diag, err, "out of memory");
    }
    return err == BAY_OK;
}

/* Reads a bound; NULL where there is none, or a wrong one. */
static bay_document *read_bound(renderer *self, const bay_field *field, const char *text)
{
    bay_document *read = NULL;
    int64_t count;
    if (text == NULL) {
        return NULL;
    }
    if (!read_json(self, text, &read) ||
        bay_value_type(bay_document_root(read)) != BAY_TYPE_NUMBER) {
        fault(self, field, "has a bound that is no number");
        return read;
    }
    bool is_count = field->type == BAY_TYPE_STRING || field->type == BAY_TYPE_ARRAY;
    if (is_count && (bay_value_int(bay_document_root(read), &count) != BAY_OK || count < 0)) {
        fault(self, field, "has a min or max that is no count: 0, 1, 2, …");
    }
    return read;
}

/* Is nothing between the two? Either may be missing. */
static bool excludes_all(const bay_document *least, const bay_document *most, bool may_be_equal)
{
    if (least == NULL || most == NULL) {
        return false;
    }
    int order = json_number_cmp(bay_value_json(bay_document_root(least)),
                                bay_value_json(bay_document_root(most)));
    return order > 0 || (order == 0 && !may_be_equal);
}

static void check_bounds(renderer *self, const bay_field *field)
{
    bay_document *min = read_bound(self, field, field->min);
    bay_document *max = read_bound(self, field, field->max);
    bay_document *above = read_bound(self, field, field->above);
    bay_document *below = read_bound(self, field, field->below);
    if (self->err == BAY_OK &&
        (excludes_all(min, max, true) || excludes_all(above, max, false) ||
         excludes_all(min, below, false) || excludes_all(above, below, false))) {
        fault(self, field, "has bounds that leave nothing");
    }
    bay_document_free(min);
    bay_document_free(max);
    bay_document_free(above);
    bay_document_free(below);
}

static bool is_twice(const bay_field *fields, const bay_field *field)
{
    for (const bay_field *one = fields; one < field; one++) {
        if (str_eq(str_of(one->name), str_of(field->name))) {
            return true;
        }
    }
    return false;
}

static void check_field(renderer *self, const bay_field *field)
{
    check_type(self, field);
    if (self->err == BAY_OK) {
        check_bounds(self, field);
    }
    size_t choices = 0;
    size_t titles = 0;
    while (self->err == BAY_OK && field->choices != NULL && field->choices[choices] != NULL) {
        choices++;
    }
    while (titles < choices && field->choice_titles != NULL &&
           field->choice_titles[titles] != NULL) {
        titles++;
    }
    if (self->err == BAY_OK && field->choice_titles != NULL && titles < choices) {
        fault(self, field, "has fewer titles than choices");
    }
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* A default or a choice, as the table writes it. */
static void put_constant(renderer *self, const bay_field *field, const char *name, const char *text)
{
    bay_document *read = NULL;
    if (field->type == BAY_TYPE_STRING) {
        bay_json_text(self->json, name, text);
    } else if (!read_json(self, text, &read)) {
        fault(self, field, "has a default or a choice that is no JSON");
    } else {
        bay_json_value(self->json, name, bay_document_root(read));
    }
    bay_document_free(read);
}

static void put_choices(renderer *self, const bay_field *field, bool is_item)
{
    bool has_titles = field->choice_titles != NULL && self->use != FIELDS_OF_OLD_FORM;
    bay_json_array(self->json, !has_titles ? "enum" : is_item ? "anyOf" : "oneOf");
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        if (!has_titles) {
            put_constant(self, field, NULL, field->choices[i]);
            continue;
        }
        bay_json_object(self->json, NULL);
        put_constant(self, field, "const", field->choices[i]);
        bay_json_text(self->json, "title", field->choice_titles[i]);
        bay_json_end(self->json);
    }
    bay_json_end(self->json);
    if (field->choice_titles != NULL && !has_titles) {
        bay_json_array(self->json, "enumNames");
        for (size_t i = 0; field->choices[i] != NULL; i++) {
            bay_json_text(self->json, NULL, field->choice_titles[i]);
        }
        bay_json_end(self->json);
    }
}

static void put_text(renderer *self, const char *name, const char *text)
{
    if (text != NULL) {
        bay_json_text(self->json, name, text);
    }
}

static void put_bounds(renderer *self, const bay_field *field)
{
    static const char *const names[][2] = {
        [BAY_TYPE_STRING] = {"minLength", "maxLength"},
        [BAY_TYPE_INTEGER] = {"minimum", "maximum"},
        [BAY_TYPE_NUMBER] = {"minimum", "maximum"},
        [BAY_TYPE_BOOLEAN] = {"", ""},
        [BAY_TYPE_OBJECT] = {"", ""},
        [BAY_TYPE_ARRAY] = {"minItems", "maxItems"},
    };
    if (field->min != NULL) {
        bay_json_raw(self->json, names[field->type][0], field->min);
    }
    if (field->max != NULL) {
        bay_json_raw(self->json, names[field->type][1], field->max);
    }
    if (field->above != NULL) {
        bay_json_raw(self->json, "exclusiveMinimum", field->above);
    }
    if (field->below != NULL) {
        bay_json_raw(self->json, "exclusiveMaximum", field->below);
    }
}

static void put_table(renderer *self, const bay_field *fields);

static void put_field(renderer *self, const bay_field *field, bool is_item)
{
    check_field(self, field);
    if (self->err == BAY_OK && (++self->count > FIELDS_MAX || self->depth >= FIELDS_MAX_DEPTH)) {
        fault(self, field,
              "is one of more than 4,096, or nested in more than 16 tables: does one "
              "hold itself?");
    }
    if (self->err != BAY_OK) {
        return;
    }
    if (field->type != BAY_TYPE_NONE) {
        bay_json_text(self->json, "type", type_names[field->type]);
    }
    put_text(self, "title", field->title);
    put_text(self, "description", field->description);
    if (field->choices != NULL) {
        put_choices(self, field, is_item);
    }
    put_bounds(self, field);
    put_text(self, "pattern", field->pattern);
    put_text(self, "format", field->format);
    if (field->items != NULL) {
        bay_json_object(self->json, "items");
        self->depth++;
        put_field(self, field->items, true);
        self->depth--;
        bay_json_end(self->json);
    }
    if (field->fields != NULL) {
        put_table(self, field->fields);
    }
    if (field->default_value != NULL) {
        put_constant(self, field, "default", field->default_value);
    }
    put_text(self, "x-mcp-header", field->header);
}

/* The keywords of an object: its type is written. */
static void put_table(renderer *self, const bay_field *fields)
{
    bool has_required = false;
    bay_json_object(self->json, "properties");
    self->depth++;
    for (const bay_field *field = fields; self->err == BAY_OK && field->name != NULL; field++) {
        if (field->name[0] == '\0') {
            fault(self, field, "has no name");
        } else if (is_twice(fields, field)) {
            fault(self, field, "stands twice in its table");
        }
        bay_json_object(self->json, field->name);
        put_field(self, field, false);
        bay_json_end(self->json);
        has_required = has_required || field->is_required;
    }
    self->depth--;
    bay_json_end(self->json);
    if (has_required) {
        bay_json_array(self->json, "required");
        for (const bay_field *field = fields; self->err == BAY_OK && field->name != NULL; field++) {
            if (field->is_required) {
                bay_json_text(self->json, NULL, field->name);
            }
        }
        bay_json_end(self->json);
    }
    if (self->use == FIELDS_OF_OBJECT) {
        bay_json_bool(self->json, "additionalProperties", false);
    }
}

/* What was written, or why it is of no use. */
static bay_err finish(renderer *self, json_kind kind, bay_json **out, json_val *out_made)
{
    bay_err err = self->err;
    if (err == BAY_OK) {
        err = sdk_json_val(self->json, kind, out_made);
        if (err != BAY_OK) {
            diag_set(self->diag, err, "%s", sdk_json_fault(self->json, err));
        }
    }
    if (err == BAY_OK) {
        *out = self->json;
    } else {
        bay_json_free(self->json);
    }
    return err;
}

bay_err sdk_fields_schema(const bay_field *fields, fields_use use, bay_json **out, bay_diag *diag)
{
    static const bay_field none = {0};
    renderer self = {.json = bay_json_new(), .use = use, .diag = diag};
    json_val made;
    bay_json_object(self.json, NULL);
    bay_json_text(self.json, "type", "object");
    put_table(&self, fields != NULL ? fields : &none);
    bay_json_end(self.json);
    bay_json *whole = NULL;
    bay_err err = finish(&self, JSON_OBJECT, &whole, &made);
    if (err == BAY_OK) {
        err = schema_check_defaults(made, true, diag);
        if (err == BAY_OK) {
            *out = whole;
        } else {
            bay_json_free(whole);
        }
    }
    return err;
}

bay_err sdk_fields_arguments(const bay_field *fields, bay_json **out, bay_diag *diag)
{
    renderer self = {.json = bay_json_new(), .use = FIELDS_OF_OBJECT, .diag = diag};
    json_val made;
    bay_json_array(self.json, NULL);
    for (const bay_field *field = fields; self.err == BAY_OK && field->name != NULL; field++) {
        if (field->type != BAY_TYPE_STRING) {
            fault(&self, field, "is no string, as arguments of prompts are");
        }
        bay_json_object(self.json, NULL);
        bay_json_text(self.json, "name", field->name);
        put_text(&self, "title", field->title);
        put_text(&self, "description", field->description);
        if (field->is_required) {
            bay_json_bool(self.json, "required", true);
        }
        bay_json_end(self.json);
    }
    bay_json_end(self.json);
    return finish(&self, JSON_ARRAY, out, &made);
}

bay_json *bay_fields_json(const bay_field *fields)
{
    bay_json *json = NULL;
    bay_diag diag = {0};
    bay_err err = sdk_fields_schema(fields, FIELDS_OF_OBJECT, &json, &diag);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? json : sdk_json_broken(err, diag.text);
}
