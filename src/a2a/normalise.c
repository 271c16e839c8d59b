/* Reads ProtoJSON: one walk along the tables checks everything. A message that is in normal form,
 * as most are, is recognised without writing a byte; others are walked a second time and written.
 *
 * Normal form, beyond types.h: one line. Free values with line ends, which occur only between
 * tokens, are rewritten without white space, so that formatted JSON fits into an event of a stream;
 * others are copied unchanged. */
#include "a2a/scalar.h"
#include "a2a/table.h"
#include "json/build.h"

typedef struct normaliser {
    json_writer *to; /* NULL: only check */
    a2a_fault *fault;
    arena memory; /* for strings whose escapes must be decoded */
    uint32_t depth;
    bool is_normal;
    bool has_line_ends;
} normaliser;

/* The outcome for a member's value. */
typedef enum outcome { UNSET, DEFAULT, SET } outcome;

static bay_err take_message(normaliser *self, a2a_type type, json_val value,
                            const a2a_place *place);

static void put_val(normaliser *self, json_val value)
{
    if (self->to != NULL) {
        json_put_val(self->to, value);
    }
}

static void open_object(normaliser *self)
{
    self->depth++;
    if (self->to != NULL) {
        json_open_object(self->to);
    }
}

static void close_object(normaliser *self)
{
    self->depth--;
    if (self->to != NULL) {
        json_close_object(self->to);
    }
}

static void put_name(normaliser *self, const a2a_field *field)
{
    if (self->to != NULL) {
        json_key_word(self->to, field->json);
    }
}

/* The decoded text: a view, or in the arena until the next call. */
static bay_err text_of(normaliser *self, json_val value, const a2a_place *place, bay_str *out)
{
    if (json_str_plain(value, out)) {
        return BAY_OK;
    }
    arena_reset(&self->memory);
    bay_err err = json_str(value, &self->memory, out);
    return err == BAY_ERR_TYPE   ? a2a_place_fault(place, self->fault, "must be a string")
           : err == BAY_ERR_UTF8 ? a2a_place_fault(place, self->fault, A2A_NOT_UNICODE)
                                 : err;
}

static bay_err take_string(normaliser *self, json_val value, const a2a_place *place, outcome *out)
{
    if (!json_is(value, JSON_STRING)) {
        return a2a_place_fault(place, self->fault, "must be a string");
    }
    if (!json_str_is_whole(value)) {
        return a2a_place_fault(place, self->fault, A2A_NOT_UNICODE);
    }
    bay_str raw = json_raw(value);
    if (raw.len - 2 > A2A_PART_BYTES) {
        bay_str text; /* with its escapes it may look longer than it is */
        bay_err err = text_of(self, value, place, &text);
        if (err != BAY_OK) {
            return err;
        }
        if (text.len > A2A_PART_BYTES) {
            return a2a_place_fault(place, self->fault, A2A_TOO_LONG);
        }
    }
    put_val(self, value);
    *out = raw.len == 2 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_bytes(normaliser *self, json_val value, const a2a_place *place, outcome *out)
{
    bay_str text;
    bay_err err = text_of(self, value, place, &text);
    if (err != BAY_OK) {
        return err;
    }
    size_t bytes = 0;
    a2a_base64 form = a2a_base64_of(text, &bytes);
    if (form == A2A_BASE64_NOT) {
        return a2a_place_fault(place, self->fault, "is not base64");
    }
    if (bytes > A2A_PART_BYTES) {
        return a2a_place_fault(place, self->fault, A2A_TOO_LONG);
    }
    self->is_normal &= form == A2A_BASE64_NORMAL && json_raw(value).len == text.len + 2;
    if (self->to != NULL) {
        size_t opened = json_open_word(self->to);
        a2a_base64_put(self->to->out, text);
        json_close_word(self->to, opened);
    }
    *out = bytes == 0 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_bool(normaliser *self, json_val value, const a2a_place *place, outcome *out)
{
    json_kind kind = json_kind_of(value);
    if (kind != JSON_TRUE && kind != JSON_FALSE) {
        return a2a_place_fault(place, self->fault, "must be true or false");
    }
    put_val(self, value);
    *out = kind == JSON_FALSE ? DEFAULT : SET;
    return BAY_OK;
}

/* Whether buf_int would write it so. (JSON allows no leading zeros.) */
static bool is_plain_integer(json_val value, int32_t number)
{
    bay_str raw = json_raw(value);
    if (!json_is(value, JSON_NUMBER) || (number == 0 && raw.len != 1)) {
        return false;
    }
    for (size_t i = raw.at[0] == '-'; i < raw.len; i++) {
        if (raw.at[i] < '0' || raw.at[i] > '9') {
            return false;
        }
    }
    return true;
}

static bay_err take_int32(normaliser *self, json_val value, const a2a_place *place, outcome *out)
{
    int32_t number;
    bay_err err = a2a_int32_read(value, &number);
    if (err != BAY_OK) {
        return a2a_place_fault(place, self->fault,
                               err == BAY_ERR_RANGE ? "must be a whole number of 32 bits"
                                                    : "must be a whole number");
    }
    self->is_normal &= is_plain_integer(value, number);
    if (self->to != NULL) {
        json_put_int(self->to, number);
    }
    *out = number == 0 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_enum(normaliser *self, a2a_kind kind, json_val value, const a2a_place *place,
                         outcome *out)
{
    int number = a2a_enum_read(kind, value);
    if (number < 0) {
        return a2a_place_fault(place, self->fault, A2A_NO_SUCH);
    }
    bay_str text;
    self->is_normal &= json_str_plain(value, &text);
    if (self->to != NULL) {
        json_put_word(self->to, a2a_enum_name(kind, (uint64_t)number));
    }
    *out = number == 0 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_time(normaliser *self, json_val value, const a2a_place *place)
{
    bay_str text;
    bay_err err = text_of(self, value, place, &text);
    if (err != BAY_OK) {
        return err;
    }
    int64_t seconds;
    int32_t nanos;
    if (!a2a_time_read(text, &seconds, &nanos)) {
        return a2a_place_fault(place, self->fault, "is no time as in RFC 3339");
    }
    self->is_normal &= a2a_time_is_normal(text) && json_raw(value).len == text.len + 2;
    char normal[A2A_TIME_BYTES];
    if (self->to != NULL && a2a_time_write(seconds, nanos, normal)) {
        json_put_word(self->to, (bay_str){normal, sizeof(normal)});
    }
    return BAY_OK;
}

/* Whether arrays and objects are nested in more than `levels` levels. */
static bool is_deeper(json_val value, uint32_t levels)
{
    if (json_raw(value).len <= 2 * (size_t)levels) {
        return false; /* two brackets per level */
    }
    json_iter stack[A2A_DEPTH + 1];
    uint32_t depth = 0;
    json_val next = value;
    for (;;) {
        if (json_is(next, JSON_ARRAY) || json_is(next, JSON_OBJECT)) {
            if (depth == levels) {
                return true;
            }
            stack[depth++] = json_iter_of(next);
        }
        while (depth > 0 && !json_next(&stack[depth - 1])) {
            depth--;
        }
        if (depth == 0) {
            return false;
        }
        next = stack[depth - 1].value;
    }
}

static bool has_any(bay_str text, char c)
{
    return text.len > 0 && memchr(text.at, c, text.len) != NULL;
}

/* Copies a value; one with line ends, which occur only between tokens, is rewritten without them.
 */
static void put_free(json_writer *to, json_val value)
{
    bay_str raw = json_raw(value);
    if (!has_any(raw, '\n') && !has_any(raw, '\r')) {
        json_put_val(to, value);
    } else if (json_is(value, JSON_OBJECT)) {
        json_open_object(to);
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            json_key_val(to, it.key);
            put_free(to, it.value);
        }
        json_close_object(to);
    } else {
        json_open_array(to);
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            put_free(to, it.value);
        }
        json_close_array(to);
    }
}

/* Any value, copied unchanged if it is one line. */
static bay_err take_free(normaliser *self, json_val value, const a2a_place *place)
{
    if (is_deeper(value, A2A_DEPTH - self->depth)) {
        return a2a_place_fault(place, self->fault, A2A_TOO_DEEP);
    }
    if (self->to != NULL && self->has_line_ends) {
        put_free(self->to, value);
    } else {
        put_val(self, value);
    }
    return BAY_OK;
}

static bay_err take_value(normaliser *self, const a2a_field *field, json_val value,
                          const a2a_place *place, outcome *out)
{
    *out = SET;
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRING:
        return take_string(self, value, place, out);
    case A2A_KIND_BYTES:
        return take_bytes(self, value, place, out);
    case A2A_KIND_BOOL:
        return take_bool(self, value, place, out);
    case A2A_KIND_INT32:
        return take_int32(self, value, place, out);
    case A2A_KIND_STATE:
    case A2A_KIND_STATE_0_3:
    case A2A_KIND_ROLE:
        return take_enum(self, (a2a_kind)field->kind, value, place, out);
    case A2A_KIND_TIMESTAMP:
        return take_time(self, value, place);
    case A2A_KIND_STRUCT:
        if (!json_is(value, JSON_OBJECT)) {
            return a2a_place_fault(place, self->fault, "must be an object");
        }
        return take_free(self, value, place);
    case A2A_KIND_VALUE:
        return take_free(self, value, place);
    case A2A_KIND_MESSAGE:
        break;
    }
    return take_message(self, (a2a_type)field->type, value, place);
}

static bay_err take_array(normaliser *self, const a2a_field *field, json_val value,
                          const a2a_place *place, outcome *out)
{
    if (!json_is(value, JSON_ARRAY)) {
        return a2a_place_fault(place, self->fault, "must be an array");
    }
    if (a2a_is_too_many(field, json_count(value), place)) {
        return a2a_place_fault(place, self->fault, A2A_TOO_MANY);
    }
    self->depth++;
    if (self->to != NULL) {
        json_open_array(self->to);
    }
    a2a_place here = {.outer = place};
    json_iter iter = json_iter_of(value);
    for (; json_next(&iter); here.index++) {
        outcome ignored;
        bay_err err = take_value(self, field, iter.value, &here, &ignored);
        if (err != BAY_OK) {
            return err;
        }
    }
    self->depth--;
    if (self->to != NULL) {
        json_close_array(self->to);
    }
    *out = here.index == 0 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_map(normaliser *self, const a2a_field *field, json_val value,
                        const a2a_place *place, outcome *out)
{
    if (!json_is(value, JSON_OBJECT)) {
        return a2a_place_fault(place, self->fault, "must be an object");
    }
    bay_err err = json_check_duplicates(value, NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_DUPLICATE ? a2a_place_fault(place, self->fault, "has a member twice")
                                        : err;
    }
    open_object(self);
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        bay_str key = json_raw(iter.key);
        a2a_place here = {.outer = place, .key = {key.at + 1, key.len - 2}};
        if (!json_str_is_whole(iter.key)) {
            return a2a_place_fault(&here, self->fault, A2A_NOT_UNICODE);
        }
        if (self->to != NULL) {
            json_key_val(self->to, iter.key);
        }
        outcome ignored;
        err = take_value(self, field, iter.value, &here, &ignored);
        if (err != BAY_OK) {
            return err;
        }
    }
    close_object(self);
    *out = json_count(value) == 0 ? DEFAULT : SET;
    return BAY_OK;
}

static bay_err take_any(normaliser *self, const a2a_field *field, json_val value,
                        const a2a_place *place, outcome *out)
{
    return (field->flags & A2A_FIELD_MAP) != 0        ? take_map(self, field, value, place, out)
           : (field->flags & A2A_FIELD_REPEATED) != 0 ? take_array(self, field, value, place, out)
                                                      : take_value(self, field, value, place, out);
}

/* Whether it is a default that is omitted. Decided without writing; messages are never defaults. */
static bool is_left_out(normaliser *self, const a2a_field *field, json_val value,
                        const a2a_place *place)
{
    outcome what = SET;
    json_writer *to = self->to;
    bool is_one = (field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) == 0;
    if (!a2a_field_drops_default(field)) {
        return false;
    }
    if (!is_one) {
        return json_count(value) == 0;
    }
    if (field->kind >= A2A_KIND_STRUCT) {
        return false;
    }
    self->to = NULL;
    bay_err err = take_value(self, field, value, place, &what);
    self->to = to;
    return err == BAY_OK && what == DEFAULT;
}

/* Writes a member with a known name, or nothing if that is equivalent. */
static bay_err take_member(normaliser *self, const a2a_field *field, json_val value,
                           const a2a_place *place, outcome *out)
{
    bool is_one = (field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) == 0;
    if (json_is(value, JSON_NULL) && !(is_one && field->kind == A2A_KIND_VALUE)) {
        *out = UNSET;
        return BAY_OK;
    }
    if (self->to != NULL && is_left_out(self, field, value, place)) {
        *out = UNSET;
        return BAY_OK;
    }
    put_name(self, field);
    bay_err err = take_any(self, field, value, place, out);
    if (err != BAY_OK || *out == SET) {
        return err;
    }
    if (a2a_field_must_be_filled(field)) {
        return a2a_place_fault(place, self->fault, A2A_NOT_FILLED);
    }
    if (a2a_field_drops_default(field)) {
        *out = UNSET;
    }
    return BAY_OK;
}

/* Some peers write the scopes of a security requirement as a list, without the message around it.
 */
static bay_err take_bare_list(normaliser *self, a2a_type type, json_val value,
                              const a2a_place *place)
{
    const a2a_field *list = a2a_fields_of(type).at;
    outcome what;
    bay_err err = BAY_OK;
    self->is_normal = false;
    open_object(self);
    if (json_count(value) > 0) {
        put_name(self, list);
        err = take_array(self, list, value, place, &what);
    }
    if (err == BAY_OK) {
        close_object(self);
    }
    return err;
}

static bay_err take_message(normaliser *self, a2a_type type, json_val value, const a2a_place *place)
{
    if (type == A2A_TYPE_STRING_LIST && json_is(value, JSON_ARRAY)) {
        return take_bare_list(self, type, value, place);
    }
    if (!json_is(value, JSON_OBJECT)) {
        return a2a_place_fault(place, self->fault, "must be an object");
    }
    a2a_fields fields = a2a_fields_of(type);
    uint32_t given = 0;
    uint32_t set = 0;
    uint32_t expected = 0;
    open_object(self);
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        bool is_json;
        uint32_t i = a2a_field_named(&fields, iter.key, expected, &is_json);
        if (i == A2A_NO_FIELD) {
            self->is_normal = false;
            continue;
        }
        a2a_place here = {.outer = place, .field = &fields.at[i]};
        if ((given >> i & 1) != 0) {
            return a2a_place_fault(&here, self->fault, "is given twice");
        }
        given |= 1U << i;
        expected = i + 1;
        outcome what;
        bay_err err = take_member(self, &fields.at[i], iter.value, &here, &what);
        if (err != BAY_OK) {
            return err;
        }
        set |= (what != UNSET ? 1U : 0U) << i;
        self->is_normal &= is_json && what != UNSET;
    }
    uint32_t defaults;
    bay_err err = a2a_check_presence(&fields, set, place, self->fault, &defaults);
    if (err != BAY_OK) {
        return err;
    }
    self->is_normal &= defaults == 0;
    for (uint32_t i = 0; self->to != NULL && defaults >> i != 0; i++) {
        if ((defaults >> i & 1) != 0) {
            put_name(self, &fields.at[i]);
            a2a_put_default(self->to, &fields.at[i]);
        }
    }
    close_object(self);
    return BAY_OK;
}

/* Only checks; write_normal writes what is not normal. */
static bay_err normalise_look(normaliser *self, a2a_type type, json_val value, a2a_fault *fault)
{
    bay_str raw = json_raw(value);
    bool has_line_ends = has_any(raw, '\n') || has_any(raw, '\r');
    *self =
        (normaliser){.fault = fault, .is_normal = !has_line_ends, .has_line_ends = has_line_ends};
    arena_init(&self->memory, a2a_json_limits.max_bytes * 2);
    const a2a_place outermost = {.outer = NULL};
    return take_message(self, type, value, &outermost);
}

static bay_err write_normal(normaliser *self, a2a_type type, json_val value, json_writer *to)
{
    const a2a_place outermost = {.outer = NULL};
    self->to = to;
    self->depth = 0;
    bay_err err = take_message(self, type, value, &outermost);
    return err == BAY_OK ? to->out->err : err;
}

bay_err a2a_normalise(a2a_type type, json_val value, buf *out, bool *out_is_normal,
                      a2a_fault *fault)
{
    normaliser self;
    bay_err err = normalise_look(&self, type, value, fault);
    bool is_normal = self.is_normal;
    if (err == BAY_OK && !is_normal) {
        json_writer to;
        size_t start = out->len;
        json_writer_init(&to, out);
        err = write_normal(&self, type, value, &to);
        if (err != BAY_OK) {
            out->len = start;
        }
    }
    arena_fini(&self.memory);
    if (err == BAY_OK) {
        *out_is_normal = is_normal;
    }
    return err;
}

bay_err a2a_normal_view(a2a_type type, json_val value, size_t max_bytes, arena *memory,
                        json_val *out, a2a_fault *fault)
{
    normaliser self;
    bay_err err = normalise_look(&self, type, value, fault);
    if (err == BAY_OK && !self.is_normal) {
        json_builder made;
        json_val normal;
        err = write_normal(&self, type, value, json_builder_init(&made, memory, max_bytes));
        if (err == BAY_OK) {
            err = json_builder_end(&made, &normal);
        } else {
            json_builder_drop(&made);
        }
        value = err == BAY_OK ? normal : value;
    }
    arena_fini(&self.memory);
    if (err == BAY_OK) {
        *out = value;
    }
    return err;
}
