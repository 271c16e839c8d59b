/* Converts protobuf to JSON in normal form. A message's records may be in any order and repeated;
 * JSON has each member once. So each message is scanned first: for each field, where it begins to
 * be used, its number of records and its last record. Then the fields are written in the order of
 * the table.
 *
 * A repeated singular message is one message: its records concatenated, as protobuf defines
 * merging. In a oneof, records before another member are not used. */
#include "a2a/protobuf_read.h"

#include "a2a/scalar.h"
#include "wire/base64.h"
#include "json/build.h"

/* Nested repeated messages are copied at each level; real messages have none, so all copies
 * together are limited to this many times the message. */
enum { MERGED_TIMES = 4 };

bay_err protobuf_broken(protobuf_reader *self, const a2a_place *place)
{
    return a2a_place_fault(place, self->fault, "is not valid protobuf");
}

bay_err protobuf_open(protobuf_reader *self, char bracket, const a2a_place *place)
{
    if (self->depth == A2A_DEPTH) {
        return a2a_place_fault(place, self->fault, A2A_TOO_DEEP);
    }
    self->depth++;
    if (bracket == '{') {
        json_open_object(self->to);
    } else {
        json_open_array(self->to);
    }
    return BAY_OK;
}

void protobuf_close(protobuf_reader *self, char bracket)
{
    self->depth--;
    if (bracket == '}') {
        json_close_object(self->to);
    } else {
        json_close_array(self->to);
    }
}

/* Concatenates the `count` records of this number in `from`, in `scratch`. */
static bay_str gather(bay_str from, uint32_t number, size_t count, buf *scratch)
{
    protobuf_record record;
    while (count > 0 && protobuf_next(&from, &record) == PROTOBUF_RECORD) {
        if (record.number == number) {
            buf_str(scratch, record.bytes);
            count--;
        }
    }
    return buf_view(scratch);
}

bay_err protobuf_whole(protobuf_reader *self, const protobuf_slot *what, const a2a_place *place,
                       buf *scratch, bay_str *out)
{
    buf_init(scratch, self->mergeable);
    if (what->count == 1) {
        *out = what->last.bytes;
        return BAY_OK;
    }
    *out = gather(what->from, what->last.number, what->count, scratch);
    self->mergeable -= scratch->len;
    return scratch->err == BAY_ERR_LIMIT
               ? a2a_place_fault(place, self->fault, "is in too many blocks")
               : scratch->err;
}

bay_err protobuf_put_string(protobuf_reader *self, bay_str text, const a2a_place *place)
{
    if (!json_is_utf8(text)) {
        return a2a_place_fault(place, self->fault, A2A_NOT_UNICODE);
    }
    json_put_str(self->to, text);
    return BAY_OK;
}

bay_err protobuf_put_key(protobuf_reader *self, bay_str text, const a2a_place *place)
{
    if (!json_is_utf8(text)) {
        return a2a_place_fault(place, self->fault, A2A_NOT_UNICODE);
    }
    json_key(self->to, text);
    return BAY_OK;
}

static bay_err read_time(protobuf_reader *self, bay_str bytes, const a2a_place *place)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    protobuf_record record;
    protobuf_step step;
    while ((step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD) {
        if (record.number > 2) {
            continue;
        }
        if (record.wire != PROTOBUF_VARINT) {
            return protobuf_broken(self, place);
        }
        if (record.number == 1) {
            seconds = (int64_t)record.value;
        } else {
            nanos = (int32_t)record.value;
        }
    }
    char text[A2A_TIME_BYTES];
    if (step == PROTOBUF_BROKEN) {
        return protobuf_broken(self, place);
    }
    if (!a2a_time_write(seconds, nanos, text)) {
        return a2a_place_fault(place, self->fault, A2A_NO_TIME);
    }
    json_put_word(self->to, (bay_str){text, sizeof(text)});
    return BAY_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static protobuf_wire wire_of(const a2a_field *field)
{
    return (field->flags & A2A_FIELD_MAP) != 0                            ? PROTOBUF_BYTES
           : field->kind >= A2A_KIND_BOOL && field->kind <= A2A_KIND_ROLE ? PROTOBUF_VARINT
                                                                          : PROTOBUF_BYTES;
}

/* Scans the message; *out_set: its fields. */
static bay_err look_over(protobuf_reader *self, const a2a_fields *fields, bay_str bytes,
                         const a2a_place *place, protobuf_slot *slots, uint32_t *out_set)
{
    uint32_t set = 0;
    uint32_t expected = 0;
    protobuf_record record;
    protobuf_step step;
    for (bay_str at = bytes; (step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD;
         at = bytes) {
        uint32_t i = a2a_field_numbered(fields, record.number, expected);
        if (i == A2A_NO_FIELD) {
            continue;
        }
        expected = (fields->at[i].flags & A2A_FIELD_REPEATED) != 0 ? i : i + 1;
        if (record.wire != wire_of(&fields->at[i])) {
            a2a_place here = {.outer = place, .field = &fields->at[i]};
            return a2a_place_fault(&here, self->fault, "is of another wire type");
        }
        uint32_t bit = 1U << i;
        if ((set & bit) == 0) {
            slots[i] = (protobuf_slot){.from = at};
        }
        if ((bit & fields->oneof) != 0) {
            set &= ~fields->oneof;
        }
        set |= bit;
        slots[i].count++;
        slots[i].last = record;
    }
    *out_set = set;
    return step == PROTOBUF_BROKEN ? protobuf_broken(self, place) : BAY_OK;
}

static bay_err read_text(protobuf_reader *self, const a2a_field *field, bay_str bytes,
                         const a2a_place *place)
{
    if (bytes.len > A2A_PART_BYTES) {
        return a2a_place_fault(place, self->fault, A2A_TOO_LONG);
    }
    if (field->kind == A2A_KIND_STRING) {
        return protobuf_put_string(self, bytes, place);
    }
    size_t opened = json_open_word(self->to);
    base64_encode(self->to->out, bytes, BASE64_STANDARD);
    json_close_word(self->to, opened);
    return BAY_OK;
}

static bay_err read_scalar(protobuf_reader *self, const a2a_field *field,
                           const protobuf_record *record, const a2a_place *place)
{
    bay_str name;
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_BOOL:
        json_put_bool(self->to, record->value != 0);
        return BAY_OK;
    case A2A_KIND_INT32: /* a value that is too long is truncated, as protobuf defines */
        json_put_int(self->to, (int32_t)record->value);
        return BAY_OK;
    case A2A_KIND_STATE:
    case A2A_KIND_STATE_0_3:
    case A2A_KIND_ROLE:
        name = a2a_enum_name((a2a_kind)field->kind, record->value);
        if (name.len == 0) {
            return a2a_place_fault(place, self->fault, A2A_NO_SUCH);
        }
        json_put_word(self->to, name);
        return BAY_OK;
    default:
        return read_text(self, field, record->bytes, place);
    }
}

static bay_err read_one(protobuf_reader *self, const a2a_field *field, bay_str bytes,
                        const a2a_place *place)
{
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRUCT:
        return protobuf_read_struct(self, bytes, place);
    case A2A_KIND_VALUE:
        return protobuf_read_value(self, bytes, place);
    case A2A_KIND_TIMESTAMP:
        return read_time(self, bytes, place);
    case A2A_KIND_MESSAGE:
        return protobuf_read_message(self, (a2a_type)field->type, bytes, place);
    default:
        return read_text(self, field, bytes, place);
    }
}

static bay_err read_array(protobuf_reader *self, const a2a_field *field, const protobuf_slot *what,
                          const a2a_place *place)
{
    if (a2a_is_too_many(field, what->count, place)) {
        return a2a_place_fault(place, self->fault, A2A_TOO_MANY);
    }
    bay_err err = protobuf_open(self, '[', place);
    a2a_place here = {.outer = place};
    bay_str rest = what->from;
    protobuf_record record;
    while (err == BAY_OK && here.index < what->count &&
           protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        if (record.number != field->number) {
            continue;
        }
        err = read_one(self, field, record.bytes, &here);
        here.index++;
    }
    if (err == BAY_OK) {
        protobuf_close(self, ']');
    }
    return err;
}

static bay_err read_field(protobuf_reader *self, const a2a_field *field, const protobuf_slot *what,
                          const a2a_place *place)
{
    if ((field->flags & A2A_FIELD_REPEATED) != 0) {
        return read_array(self, field, what, place);
    }
    if ((field->flags & A2A_FIELD_MAP) != 0) {
        protobuf_entries entries = {
            .from = what->from, .number = field->number, .count = what->count};
        return protobuf_read_map(self, (a2a_kind)field->kind, (a2a_type)field->type, &entries,
                                 place);
    }
    if (field->kind < A2A_KIND_STRUCT) {
        return read_scalar(self, field, &what->last, place);
    }
    buf scratch;
    bay_str whole;
    bay_err err = protobuf_whole(self, what, place, &scratch, &whole);
    if (err == BAY_OK) {
        err = read_one(self, field, whole, place);
    }
    buf_fini(&scratch);
    return err;
}

static bool is_default(const a2a_field *field, const protobuf_slot *what)
{
    return (field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) == 0 &&
           field->kind < A2A_KIND_STRUCT &&
           (field->kind == A2A_KIND_INT32 ? (int32_t)what->last.value == 0 : what->last.value == 0);
}

static bay_err read_fields(protobuf_reader *self, const a2a_fields *fields,
                           const protobuf_slot *slots, uint32_t set, uint32_t defaults,
                           const a2a_place *place)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const a2a_field *field = &fields->at[i];
        a2a_place here = {.outer = place, .field = field};
        if (((set | defaults) >> i & 1) == 0) {
            continue;
        }
        json_key_word(self->to, field->json);
        if ((set >> i & 1) == 0) {
            a2a_put_default(self->to, field);
            continue;
        }
        bay_err err = read_field(self, field, &slots[i], &here);
        if (err != BAY_OK) {
            return err;
        }
    }
    return self->to->out->err;
}

bay_err protobuf_read_message(protobuf_reader *self, a2a_type type, bay_str bytes,
                              const a2a_place *place)
{
    a2a_fields fields = a2a_fields_of(type);
    protobuf_slot slots[A2A_FIELDS_MAX];
    uint32_t set = 0;
    bay_err err = look_over(self, &fields, bytes, place, slots, &set);
    for (uint32_t i = 0; err == BAY_OK && i < fields.count; i++) {
        const a2a_field *field = &fields.at[i];
        if ((set >> i & 1) == 0 || !is_default(field, &slots[i])) {
            continue;
        }
        if (a2a_field_must_be_filled(field)) {
            a2a_place here = {.outer = place, .field = field};
            err = a2a_place_fault(&here, self->fault, A2A_NOT_FILLED);
        } else if (a2a_field_drops_default(field)) {
            set &= ~(1U << i);
        }
    }
    uint32_t defaults = 0;
    err = err == BAY_OK ? a2a_check_presence(&fields, set, place, self->fault, &defaults) : err;
    err = err == BAY_OK ? protobuf_open(self, '{', place) : err;
    err = err == BAY_OK ? read_fields(self, &fields, slots, set, defaults, place) : err;
    if (err == BAY_OK) {
        protobuf_close(self, '}');
    }
    return err;
}

static bay_err read_into(json_writer *to, a2a_type type, bay_str bytes, a2a_fault *fault)
{
    size_t mergeable = bytes.len < SIZE_MAX / MERGED_TIMES ? bytes.len * MERGED_TIMES : SIZE_MAX;
    protobuf_reader self = {.to = to, .fault = fault, .mergeable = mergeable};
    const a2a_place outermost = {.outer = NULL};
    bay_err err = protobuf_read_message(&self, type, bytes, &outermost);
    return err == BAY_OK ? to->out->err : err;
}

bay_err a2a_from_protobuf(a2a_type type, bay_str bytes, buf *out, a2a_fault *fault)
{
    json_writer to;
    size_t start = out->len;
    json_writer_init(&to, out);
    bay_err err = read_into(&to, type, bytes, fault);
    if (err != BAY_OK) {
        out->len = start;
    }
    return err;
}

bay_err a2a_protobuf_view(a2a_type type, bay_str bytes, size_t max_bytes, arena *memory,
                          json_val *out, a2a_fault *fault)
{
    json_builder made;
    bay_err err = read_into(json_builder_init(&made, memory, max_bytes), type, bytes, fault);
    if (err != BAY_OK) {
        json_builder_drop(&made);
        return err;
    }
    return json_builder_end(&made, out);
}
