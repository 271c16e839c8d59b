/* Failures in sentences for a language model: which value, what it must be, what it is. Everything
 * is written to the caller's bytes; long values are cut. */
#include <stdarg.h>
#include <stdio.h>

#include "schema/check.h"

enum { SHOWN = 60 };

static fixed_text rest_of(schema_failures *out)
{
    return (fixed_text){.at = out->text + out->used, .cap = SCHEMA_FAILURE_BYTES - 1 - out->used};
}

/* Ends a text with its NUL and returns it. */
static bay_str report_finish(schema_failures *out, const fixed_text *text)
{
    text->at[text->len] = '\0';
    out->used += text->len + 1;
    out->is_cut |= text->is_cut;
    return (bay_str){text->at, text->len};
}

static void put_rule(const check *self, fixed_text *out, json_val keyword)
{
    for (size_t i = 0; i < self->schema->document_count; i++) {
        const program_document *one = &self->schema->documents[i];
        if (one->doc == keyword.doc) {
            fixed_short(out, one->uri, 200);
            fixed_str(out, str_of(one->uri.len > 0 ? "#" : ""));
            fixed_pointer(out, json_root(one->doc), keyword);
        }
    }
}

static void put_subject(check *self, json_val value, bay_str path)
{
    fixed_text *out = &self->sentence;
    if (place_is_key(self->root, value)) {
        fixed_lit(out, "the property name ");
        fixed_short(out, json_raw(value), SHOWN);
        fixed_lit(out, " in ");
    }
    if (path.len == 0) {
        fixed_lit(out, "the value");
    } else {
        fixed_short(out, path, 200);
    }
    fixed_lit(out, " ");
}

fixed_text *report_open(check *self, json_val value, json_val keyword)
{
    enum { LEAST_ROOM = 256 };
    schema_failures *out = self->out;
    if (out == NULL) {
        return NULL;
    }
    self->sentence = (fixed_text){0};
    if (out->count == SCHEMA_MAX_FAILURES || SCHEMA_FAILURE_BYTES - out->used < LEAST_ROOM) {
        out->is_cut = true;
        return NULL;
    }
    schema_failure *one = &out->item[out->count];
    fixed_text path = rest_of(out);
    path.cap = path.cap / 3;
    fixed_pointer(&path, self->root, value);
    one->path = report_finish(out, &path);
    fixed_text rule = rest_of(out);
    rule.cap = rule.cap / 3;
    put_rule(self, &rule, keyword);
    one->rule = report_finish(out, &rule);
    self->sentence = rest_of(out);
    put_subject(self, value, one->path);
    return &self->sentence;
}

bool report_close(check *self)
{
    if (self->out != NULL && self->sentence.at != NULL) {
        self->out->item[self->out->count++].text = report_finish(self->out, &self->sentence);
        self->sentence = (fixed_text){0};
    }
    return false;
}

bool report(check *self, json_val value, json_val keyword, const char *format, ...)
{
    fixed_text *out = report_open(self, value, keyword);
    if (out != NULL) {
        char text[240];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        fixed_str(out, str_of(text));
    }
    return report_close(self);
}

void report_error(check *self)
{
    schema_failures *out = self->out;
    schema_failure *one = &out->item[0];
    fixed_text text = rest_of(out);
    text.len = 0;
    one->path = one->rule = report_finish(out, &text);
    text = rest_of(out);
    fixed_printf(&text, "checking the value takes more than the schema's limits allow (%s)",
                 self->bound);
    one->text = report_finish(out, &text);
    out->count = 1;
}

static const char *kind_words(json_val value)
{
    switch (json_kind_of(value)) {
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NUMBER:
        return json_is_integer(value) ? "an integer" : "a number";
    case JSON_STRING:
        return "a string";
    case JSON_ARRAY:
        return "an array";
    case JSON_OBJECT:
        return "an object";
    default:
        return "nothing";
    }
}

void report_got(fixed_text *out, json_val value)
{
    fixed_str(out, str_of(kind_words(value)));
    if (!json_is(value, JSON_NULL)) {
        fixed_lit(out, " (");
        fixed_short(out, json_raw(value), SHOWN);
        fixed_lit(out, ")");
    }
}

static void put_types(fixed_text *out, uint8_t types)
{
    static const struct {
        uint8_t type;
        const char *words;
    } names[] = {{TYPE_STRING, "a string"}, {TYPE_INTEGER, "an integer"},
                 {TYPE_NUMBER, "a number"}, {TYPE_BOOLEAN, "a boolean (true or false)"},
                 {TYPE_ARRAY, "an array"},  {TYPE_OBJECT, "an object"},
                 {TYPE_NULL, "null"}};
    if ((types & TYPE_NUMBER) != 0) {
        types &= (uint8_t)~TYPE_INTEGER;
    }
    uint8_t left = types;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((types & names[i].type) != 0) {
            left &= (uint8_t)~names[i].type;
            bool is_first = (types ^ left) == names[i].type;
            fixed_str(out, str_of(is_first ? "" : left == 0 ? " or " : ", "));
            fixed_str(out, str_of(names[i].words));
        }
    }
}

bool report_type(check *self, json_val value, json_val keyword, uint8_t types)
{
    fixed_text *out = report_open(self, value, keyword);
    if (out != NULL && types == 0) {
        fixed_lit(out, "is not allowed here");
    } else if (out != NULL) {
        fixed_lit(out, "must be ");
        put_types(out, types);
        fixed_lit(out, ", got ");
        report_got(out, value);
    }
    return report_close(self);
}

bool report_enum(check *self, json_val value, json_val keyword)
{
    enum { ROOM = 1000 };
    fixed_text *out = report_open(self, value, keyword);
    if (out == NULL) {
        return report_close(self);
    }
    fixed_lit(out, "must be one of ");
    size_t start = out->len;
    bool is_first = true;
    for (json_iter it = json_iter_of(keyword); json_next(&it); is_first = false) {
        fixed_str(out, str_of(is_first ? "" : ", "));
        if (out->len - start > ROOM) {
            fixed_lit(out, "...");
            break;
        }
        fixed_short(out, json_raw(it.value), SHOWN);
    }
    fixed_lit(out, "; got ");
    report_got(out, value);
    return report_close(self);
}

/* The defined name that is most similar to the given one, if one is similar enough. */
static bay_str nearest(const check *self, const program_members *table, bay_str name)
{
    enum { LOOKED_AT = 256 };
    size_t near = name.len <= 3 ? 1 : name.len <= 6 ? 2 : 3;
    bay_str found = {NULL, 0};
    for (uint32_t i = 0; i < table->name_count && i < LOOKED_AT; i++) {
        const member_name *one = &self->schema->names[table->names + i];
        size_t distance = str_eq_nocase(one->text, name) ? 0 : str_distance(one->text, name);
        if (one->is_defined && distance <= near) {
            near = distance > 0 ? distance - 1 : 0;
            found = one->text;
        }
    }
    return found;
}

static void put_known(const check *self, fixed_text *out, const program_members *table)
{
    enum { SHOWN_NAMES = 12 };
    uint32_t shown = 0;
    for (uint32_t i = 0; i < table->name_count && shown <= SHOWN_NAMES; i++) {
        const member_name *one = &self->schema->names[table->names + i];
        if (!one->is_defined) {
            continue;
        }
        fixed_str(out, str_of(shown == 0 ? "; it may have " : ", "));
        if (shown++ == SHOWN_NAMES) {
            fixed_lit(out, "...");
            break;
        }
        fixed_lit(out, "\"");
        fixed_short(out, one->text, SHOWN);
        fixed_lit(out, "\"");
    }
}

bool report_unknown_member(check *self, const frame *at, const program_members *table, json_val key)
{
    if (self->out == NULL) {
        return false;
    }
    json_val place = schema_place(self->schema, at->node->document, at->node->at);
    fixed_text *out = report_open(self, at->value, json_get(place, STR("additionalProperties")));
    if (out == NULL) {
        return report_close(self);
    }
    bay_str name;
    bay_str near = {NULL, 0};
    if (json_str_plain(key, &name)) {
        near = nearest(self, table, name);
    }
    fixed_lit(out, "has the unknown property ");
    fixed_short(out, json_raw(key), SHOWN);
    if (near.at != NULL) {
        fixed_lit(out, "; did you mean \"");
        fixed_short(out, near, SHOWN);
        fixed_lit(out, "\"?");
    } else {
        put_known(self, out, table);
    }
    return report_close(self);
}

/* A node that is only a reference has the types of its target. */
static uint8_t types_of(const check *self, uint32_t number)
{
    const schema *program = self->schema;
    uint8_t types = TYPE_ANY;
    for (int hops = 0; hops < 8; hops++) {
        const program_node *one = &program->nodes[number];
        if (one->types != TYPE_ANY) {
            types = one->types;
            break;
        }
        if (one->ends[RULES_LAST] == one->from || program->rules[one->from].kind != RULE_REF) {
            break;
        }
        number = program->rules[one->from].a;
    }
    return types;
}

static bool takes(uint8_t types, json_val value)
{
    uint8_t type = check_type(json_kind_of(value));
    return (types & type) != 0 ||
           (type == TYPE_NUMBER && (types & TYPE_INTEGER) != 0 && json_is_integer(value));
}

/* No alternative holds. Those that accept this type of value report why they fail; if there is only
 * one, its report is used. */
bool report_alternatives(check *self, const frame *at, const program_rule *one)
{
    enum { HEARD = 3 };
    if (self->out == NULL || self->err != BAY_OK) {
        return false;
    }
    const uint32_t *list = self->schema->lists + one->a;
    uint32_t fitting[HEARD] = {0};
    uint32_t count = 0;
    uint8_t types = 0;
    for (uint32_t i = 0; i < one->b; i++) {
        uint8_t own = types_of(self, list[i]);
        types |= own;
        if (takes(own, at->value)) {
            fitting[count < HEARD ? count : HEARD - 1] = list[i];
            count++;
        }
    }
    json_val keyword = check_keyword(self, at, one);
    if (count == 0) {
        return report_type(self, at->value, keyword, types);
    }
    if (count > 1) {
        report(self, at->value, keyword, "matches none of the %u alternatives:", one->b);
    }
    for (uint32_t i = 0; i < count && i < HEARD; i++) {
        check_apply(self, fitting[i], at->value, at->marks, at->scope);
    }
    return false;
}

void schema_failures_print(const schema_failures *self, buf *out)
{
    for (size_t i = 0; i < self->count; i++) {
        if (i > 0) {
            buf_char(out, '\n');
        }
        buf_str(out, self->item[i].text);
    }
    if (self->is_cut) {
        buf_lit(out, "\n(there is more)");
    }
}
