/* Converts JSON to protobuf. A message's length precedes it but is known after it, so the text is
 * first written with gaps for lengths; at the end one pass from the back fills them. Each byte is
 * moved at most once, whatever the nesting.
 *
 * Numbers of free values become doubles, as in Struct: integers beyond 2^53 lose their last digits
 * here, and only here. */
#include "a2a/protobuf.h"
#include "a2a/scalar.h"
#include "a2a/table.h"

#include "base/mem.h"
#include "wire/base64.h"

typedef struct length_placeholder {
    uint32_t at;   /* in the output, from the start of this call */
    uint32_t size; /* of the message, including the lengths inside it */
} length_placeholder;

typedef struct writer {
    buf *out;
    a2a_fault *fault;
    arena memory; /* for one decoded string at a time */
    size_t start;
    length_placeholder *placeholders;
    uint32_t count;
    uint32_t cap;
    uint32_t filling; /* bytes that filling the gaps will need */
    uint32_t depth;
    length_placeholder few[32];
} writer;

/* A message that is being written. */
typedef struct opened {
    uint32_t index; /* of its gap */
    uint32_t filling;
} opened;

static bay_err write_message(writer *self, a2a_type type, json_val value, const a2a_place *place);
static bay_err write_value(writer *self, json_val value, const a2a_place *place);

static bool grow(writer *self)
{
    uint32_t cap = self->cap * 2;
    length_placeholder *heap = self->placeholders == self->few ? NULL : self->placeholders;
    length_placeholder *placeholders = mem_resize(heap, (size_t)cap * sizeof(*placeholders));
    if (placeholders == NULL) {
        return false;
    }
    if (heap == NULL) {
        memcpy(placeholders, self->few, sizeof(self->few));
    }
    self->placeholders = placeholders;
    self->cap = cap;
    return true;
}

/* Begins a field that is a message. */
static bay_err open_level(writer *self, uint32_t number, opened *out)
{
    if (self->count == self->cap && !grow(self)) {
        return BAY_ERR_NOMEM;
    }
    protobuf_put_tag(self->out, number, PROTOBUF_BYTES);
    size_t at = self->out->len - self->start;
    if (self->out->err != BAY_OK || at > INT32_MAX) {
        return self->out->err != BAY_OK ? self->out->err : BAY_ERR_LIMIT;
    }
    *out = (opened){self->count, self->filling};
    self->placeholders[self->count++] = (length_placeholder){(uint32_t)at, 0};
    return BAY_OK;
}

/* One more level of arrays or objects. */
static bay_err enter(writer *self, const a2a_place *place)
{
    if (self->depth == A2A_DEPTH) {
        return a2a_place_fault(place, self->fault, A2A_TOO_DEEP);
    }
    self->depth++;
    return BAY_OK;
}

static bay_err close_level(writer *self, const opened *what)
{
    length_placeholder *it = &self->placeholders[what->index];
    size_t size = self->out->len - self->start - it->at + (self->filling - what->filling);
    if (size > INT32_MAX) {
        return BAY_ERR_LIMIT; /* protobuf has no larger messages */
    }
    it->size = (uint32_t)size;
    self->filling += (uint32_t)protobuf_varint_len(it->size);
    return BAY_OK;
}

/* Moves the bytes after each gap to their place, last gap first, and writes the length. */
static bay_err fill(writer *self)
{
    if (self->count == 0 || !buf_reserve(self->out, self->filling)) {
        return self->out->err;
    }
    char *base = self->out->at + self->start;
    size_t end = self->out->len - self->start;
    size_t to = end + self->filling;
    self->out->len += self->filling;
    for (uint32_t i = self->count; i > 0; i--) {
        const length_placeholder *it = &self->placeholders[i - 1];
        size_t behind = end - it->at;
        char length[PROTOBUF_VARINT_BYTES];
        size_t len = protobuf_varint(it->size, length);
        to -= behind;
        memmove(base + to, base + it->at, behind);
        to -= len;
        memcpy(base + to, length, len);
        end = it->at;
    }
    return BAY_OK;
}

/* The decoded text: a view, or in the arena until the next call. */
static bay_err text_of(writer *self, json_val value, const a2a_place *place, bay_str *out)
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

/* ---- free values ----------------------------------------------------------------------------- */

static bay_err write_entries(writer *self, json_val value, const a2a_place *place)
{
    bay_err err = enter(self, place);
    json_iter iter = json_iter_of(value);
    while (err == BAY_OK && json_next(&iter)) {
        opened entry;
        err = open_level(self, 1, &entry);
        bay_str key;
        err = err == BAY_OK ? text_of(self, iter.key, place, &key) : err;
        if (err != BAY_OK) {
            return err;
        }
        protobuf_put_bytes(self->out, 1, key);
        opened inner;
        err = open_level(self, 2, &inner);
        err = err == BAY_OK ? write_value(self, iter.value, place) : err;
        err = err == BAY_OK ? close_level(self, &inner) : err;
        err = err == BAY_OK ? close_level(self, &entry) : err;
    }
    self->depth--;
    return err;
}

static bay_err write_items(writer *self, json_val value, const a2a_place *place)
{
    bay_err err = enter(self, place);
    json_iter iter = json_iter_of(value);
    while (err == BAY_OK && json_next(&iter)) {
        opened item;
        err = open_level(self, 1, &item);
        err = err == BAY_OK ? write_value(self, iter.value, place) : err;
        err = err == BAY_OK ? close_level(self, &item) : err;
    }
    self->depth--;
    return err;
}

static bay_err write_number(writer *self, json_val value, const a2a_place *place)
{
    double number;
    if (json_double(value, &number) != BAY_OK) {
        return a2a_place_fault(place, self->fault, "has a number beyond a double's range");
    }
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    protobuf_put_tag(self->out, 2, PROTOBUF_FIXED64);
    char bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++, bits >>= 8) {
        bytes[i] = (char)(bits & 0xff);
    }
    buf_append(self->out, bytes, sizeof(bytes));
    return BAY_OK;
}

/* The single member of a Value. */
static bay_err write_value(writer *self, json_val value, const a2a_place *place)
{
    json_kind kind = json_kind_of(value);
    bay_str text;
    bay_err err;
    opened inner;
    switch (kind) {
    case JSON_TRUE:
    case JSON_FALSE:
        protobuf_put_tag(self->out, 4, PROTOBUF_VARINT);
        protobuf_put_varint(self->out, kind == JSON_TRUE);
        return BAY_OK;
    case JSON_NUMBER:
        return write_number(self, value, place);
    case JSON_STRING:
        err = text_of(self, value, place, &text);
        if (err == BAY_OK) {
            protobuf_put_bytes(self->out, 3, text);
        }
        return err;
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    default:
        protobuf_put_tag(self->out, 1, PROTOBUF_VARINT);
        protobuf_put_varint(self->out, 0);
        return BAY_OK;
    }
    err = open_level(self, kind == JSON_OBJECT ? 5 : 6, &inner);
    if (err == BAY_OK) {
        err = kind == JSON_OBJECT ? write_entries(self, value, place)
                                  : write_items(self, value, place);
    }
    return err == BAY_OK ? close_level(self, &inner) : err;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bay_err write_bytes(writer *self, const a2a_field *field, json_val value,
                           const a2a_place *place, bool is_dropped)
{
    bay_str text;
    bay_err err = text_of(self, value, place, &text);
    if (err != BAY_OK || (text.len == 0 && is_dropped)) {
        return err;
    }
    size_t bytes = 0;
    a2a_base64 form = a2a_base64_of(text, &bytes);
    if (form == A2A_BASE64_NOT) {
        return a2a_place_fault(place, self->fault, "is not base64");
    }
    protobuf_put_tag(self->out, field->number, PROTOBUF_BYTES);
    protobuf_put_varint(self->out, bytes);
    bool is_url = memchr(text.len > 0 ? text.at : "", '-', text.len) != NULL ||
                  memchr(text.len > 0 ? text.at : "", '_', text.len) != NULL;
    err = base64_decode(self->out, text, is_url ? BASE64_URL_LOOSE : BASE64_STANDARD_LOOSE);
    return err == BAY_ERR_SYNTAX ? a2a_place_fault(place, self->fault, "is not base64") : err;
}

static bay_err write_string(writer *self, const a2a_field *field, json_val value,
                            const a2a_place *place, bool is_dropped)
{
    bay_str text;
    bay_err err = text_of(self, value, place, &text);
    if (err == BAY_OK && (text.len > 0 || !is_dropped)) {
        protobuf_put_bytes(self->out, field->number, text);
    }
    return err;
}

/* A varint field. */
static bay_err write_number_field(writer *self, const a2a_field *field, json_val value,
                                  const a2a_place *place, bool is_dropped)
{
    uint64_t number = 0;
    int32_t whole = 0;
    int named = 0;
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_BOOL:
        number = json_true(value);
        if (number == 0 && !json_is(value, JSON_FALSE)) {
            return a2a_place_fault(place, self->fault, "must be true or false");
        }
        break;
    case A2A_KIND_INT32:
        if (a2a_int32_read(value, &whole) != BAY_OK) {
            return a2a_place_fault(place, self->fault, "must be a whole number of 32 bits");
        }
        number = (uint64_t)(int64_t)whole;
        break;
    default:
        named = a2a_enum_read((a2a_kind)field->kind, value);
        if (named < 0) {
            return a2a_place_fault(place, self->fault, A2A_NO_SUCH);
        }
        number = (uint64_t)named;
    }
    if (number != 0 || !is_dropped) {
        protobuf_put_tag(self->out, field->number, PROTOBUF_VARINT);
        protobuf_put_varint(self->out, number);
    }
    return BAY_OK;
}

static bay_err write_time(writer *self, json_val value, const a2a_place *place)
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
    if (seconds != 0) {
        protobuf_put_tag(self->out, 1, PROTOBUF_VARINT);
        protobuf_put_varint(self->out, (uint64_t)seconds);
    }
    if (nanos != 0) {
        protobuf_put_tag(self->out, 2, PROTOBUF_VARINT);
        protobuf_put_varint(self->out, (uint64_t)nanos);
    }
    return BAY_OK;
}

static bay_err write_inside(writer *self, const a2a_field *field, json_val value,
                            const a2a_place *place)
{
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRUCT:
        return json_is(value, JSON_OBJECT)
                   ? write_entries(self, value, place)
                   : a2a_place_fault(place, self->fault, "must be an object");
    case A2A_KIND_VALUE:
        return write_value(self, value, place);
    case A2A_KIND_TIMESTAMP:
        return write_time(self, value, place);
    default:
        return write_message(self, (a2a_type)field->type, value, place);
    }
}

/* One value of a field with its tag. is_dropped: omit a default. */
static bay_err write_one(writer *self, const a2a_field *field, json_val value,
                         const a2a_place *place, bool is_dropped)
{
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRING:
        return write_string(self, field, value, place, is_dropped);
    case A2A_KIND_BYTES:
        return write_bytes(self, field, value, place, is_dropped);
    case A2A_KIND_STRUCT:
    case A2A_KIND_VALUE:
    case A2A_KIND_TIMESTAMP:
    case A2A_KIND_MESSAGE:
        break;
    default:
        return write_number_field(self, field, value, place, is_dropped);
    }
    opened inner;
    bay_err err = open_level(self, field->number, &inner);
    err = err == BAY_OK ? write_inside(self, field, value, place) : err;
    return err == BAY_OK ? close_level(self, &inner) : err;
}

static bay_err write_array(writer *self, const a2a_field *field, json_val value,
                           const a2a_place *place)
{
    if (!json_is(value, JSON_ARRAY)) {
        return a2a_place_fault(place, self->fault, "must be an array");
    }
    a2a_place here = {.outer = place};
    bay_err err = enter(self, place);
    json_iter iter = json_iter_of(value);
    for (; err == BAY_OK && json_next(&iter); here.index++) {
        err = write_one(self, field, iter.value, &here, false);
    }
    self->depth--;
    return err;
}

static bay_err write_map(writer *self, const a2a_field *field, json_val value,
                         const a2a_place *place)
{
    if (!json_is(value, JSON_OBJECT)) {
        return a2a_place_fault(place, self->fault, "must be an object");
    }
    a2a_field inside = *field;
    inside.number = 2;
    bay_err err = enter(self, place);
    json_iter iter = json_iter_of(value);
    while (err == BAY_OK && json_next(&iter)) {
        bay_str raw = json_raw(iter.key);
        a2a_place here = {.outer = place, .key = {raw.at + 1, raw.len - 2}};
        opened entry;
        bay_str key;
        err = open_level(self, field->number, &entry);
        err = err == BAY_OK ? text_of(self, iter.key, &here, &key) : err;
        if (err != BAY_OK) {
            return err;
        }
        protobuf_put_bytes(self->out, 1, key);
        err = write_one(self, &inside, iter.value, &here, false);
        err = err == BAY_OK ? close_level(self, &entry) : err;
    }
    self->depth--;
    return err;
}

static bay_err write_field(writer *self, const a2a_field *field, json_val value,
                           const a2a_place *place)
{
    if ((field->flags & A2A_FIELD_REPEATED) != 0) {
        return write_array(self, field, value, place);
    }
    if ((field->flags & A2A_FIELD_MAP) != 0) {
        return write_map(self, field, value, place);
    }
    /* REQUIRED has no effect here: proto3 omits the defaults of all fields whose presence it does
     * not track */
    bool is_dropped = (field->flags & (A2A_FIELD_OPTIONAL | A2A_FIELD_ONEOF)) == 0;
    return write_one(self, field, value, place, is_dropped);
}

static bay_err write_message(writer *self, a2a_type type, json_val value, const a2a_place *place)
{
    if (!json_is(value, JSON_OBJECT)) {
        return a2a_place_fault(place, self->fault, "must be an object");
    }
    a2a_fields fields = a2a_fields_of(type);
    uint32_t set = 0;
    uint32_t expected = 0;
    bay_err err = enter(self, place);
    json_iter iter = json_iter_of(value);
    while (err == BAY_OK && json_next(&iter)) {
        bool is_json;
        uint32_t i = a2a_field_named(&fields, iter.key, expected, &is_json);
        if (i == A2A_NO_FIELD) {
            continue;
        }
        const a2a_field *field = &fields.at[i];
        expected = i + 1;
        bool is_any = field->kind == A2A_KIND_VALUE;
        if (json_is(iter.value, JSON_NULL) && !is_any) {
            continue;
        }
        a2a_place here = {.outer = place, .field = field};
        uint32_t rivals = 1U << i | ((field->flags & A2A_FIELD_ONEOF) != 0 ? fields.oneof : 0);
        if ((set & rivals) != 0) {
            return a2a_place_fault(&here, self->fault, "is given twice");
        }
        set |= 1U << i;
        err = write_field(self, field, iter.value, &here);
    }
    self->depth--;
    return err;
}

bay_err a2a_to_protobuf(a2a_type type, json_val value, buf *out, a2a_fault *fault)
{
    writer self = {.out = out, .fault = fault, .start = out->len};
    self.placeholders = self.few;
    self.cap = sizeof(self.few) / sizeof(self.few[0]);
    arena_init(&self.memory, a2a_json_limits.max_bytes * 2);
    const a2a_place outermost = {.outer = NULL};
    bay_err err = write_message(&self, type, value, &outermost);
    err = err == BAY_OK ? out->err : err;
    err = err == BAY_OK ? fill(&self) : err;
    if (err != BAY_OK) {
        out->len = self.start;
    }
    if (self.placeholders != self.few) {
        mem_free(self.placeholders);
    }
    arena_fini(&self.memory);
    return err;
}
