/* Protobuf to JSON in normal form. A message's records come in any order and any number, JSON has
 * each member once, so each message is looked over first: for each of its fields where it begins to
 * count, how often it is there and its last record. Then the fields are written in the order of the
 * table.
 *
 * A singular message that is there several times is one: its records put behind each other, which
 * is what protobuf defines merging by. Of a oneof, what came before another member of it does not
 * count. Of a map, the last value of a key counts.
 *
 * Struct, Value and ListValue become the JSON they stand for. Their numbers are doubles; nothing is
 * lost of them on the way here. */
#include "a2a/protobuf.h"
#include "a2a/scalar.h"
#include "a2a/table.h"

#include <math.h>

#include "base/map.h"
#include "wire/base64.h"
#include "json/writer.h"

typedef struct reader {
    buf *out;
    a2a_fault *fault;
    uint32_t depth;   /* of arrays and objects that are open */
    size_t mergeable; /* bytes that may still be put behind each other */
} reader;

/* Pieces inside of pieces are copied again at each level; nobody writes such, so all copies
 * together may be this many times as long as the message. */
enum { MERGED_TIMES = 4 };

/* What a message has of one field. */
typedef struct slot {
    bay_str from; /* the message's rest from its first record that counts */
    size_t count;
    protobuf_record last;
} slot;

static bay_err read_message(reader *self, a2a_type type, bay_str bytes, const a2a_place *place);
static bay_err read_struct(reader *self, bay_str bytes, const a2a_place *place);
static bay_err read_value(reader *self, bay_str bytes, const a2a_place *place);

static bay_err broken(reader *self, const a2a_place *place)
{
    return a2a_place_fault(place, self->fault, "is not valid protobuf");
}

static bay_err open_level(reader *self, char bracket, const a2a_place *place)
{
    if (self->depth == A2A_DEPTH) {
        return a2a_place_fault(place, self->fault, A2A_TOO_DEEP);
    }
    self->depth++;
    buf_char(self->out, bracket);
    return BAY_OK;
}

static void close_level(reader *self, char bracket)
{
    self->depth--;
    buf_char(self->out, bracket);
}

/* The `count` records of that number in `from`, behind each other, in `scratch`. */
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

/* The bytes of a singular message: a view, or in `scratch`, which the caller frees. */
static bay_err whole_of(reader *self, const slot *what, const a2a_place *place, buf *scratch,
                        bay_str *out)
{
    buf_init(scratch, self->mergeable);
    if (what->count == 1) {
        *out = what->last.bytes;
        return BAY_OK;
    }
    *out = gather(what->from, what->last.number, what->count, scratch);
    self->mergeable -= scratch->len;
    return scratch->err == BAY_LIMIT ? a2a_place_fault(place, self->fault, "is in too many pieces")
                                     : scratch->err;
}

static bay_err put_string(reader *self, bay_str text, const a2a_place *place)
{
    if (!json_is_utf8(text)) {
        return a2a_place_fault(place, self->fault, A2A_NOT_UNICODE);
    }
    json_quote(self->out, text);
    return BAY_OK;
}

static bay_err read_time(reader *self, bay_str bytes, const a2a_place *place)
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
            return broken(self, place);
        }
        if (record.number == 1) {
            seconds = (int64_t)record.value;
        } else {
            nanos = (int32_t)record.value;
        }
    }
    char text[A2A_TIME_BYTES];
    if (step == PROTOBUF_BROKEN) {
        return broken(self, place);
    }
    if (!a2a_time_write(seconds, nanos, text)) {
        return a2a_place_fault(place, self->fault, A2A_NO_TIME);
    }
    buf_char(self->out, '"');
    buf_append(self->out, text, sizeof(text));
    buf_char(self->out, '"');
    return BAY_OK;
}

/* ---- maps ---------------------------------------------------------------------------------- */

typedef struct entry {
    bay_str key;
    slot value;
} entry;

/* A map's entry is a message: key 1, value 2. */
static bay_err read_entry(reader *self, bay_str bytes, const a2a_place *place, entry *out)
{
    *out = (entry){.key = {"", 0}};
    bay_str rest = bytes;
    protobuf_record record;
    protobuf_step step;
    for (bay_str at = rest; (step = protobuf_next(&rest, &record)) == PROTOBUF_RECORD; at = rest) {
        if (record.number > 2) {
            continue;
        }
        if (record.wire != PROTOBUF_BYTES) {
            return broken(self, place);
        }
        if (record.number == 1) {
            out->key = record.bytes;
            continue;
        }
        out->value.from = out->value.count == 0 ? at : out->value.from;
        out->value.count++;
        out->value.last = record;
    }
    return step == PROTOBUF_BROKEN ? broken(self, place) : BAY_OK;
}

/* Which entries count: those behind which no other has the same key. Few are compared with each
 * other, many remembered by key, where they stand. */
typedef struct last_entries {
    map by_key;
    bay_str from;
    uint32_t number;
    size_t count;
} last_entries;

enum { FEW_ENTRIES = 8 };

static bay_err find_last(reader *self, last_entries *last, const a2a_place *place)
{
    if (last->count <= FEW_ENTRIES) {
        return BAY_OK;
    }
    map_init(&last->by_key, last->count);
    bay_str rest = last->from;
    protobuf_record record;
    while (protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        if (record.number != last->number) {
            continue;
        }
        entry it;
        bay_err err = read_entry(self, record.bytes, place, &it);
        if (err == BAY_OK) {
            err = map_put(&last->by_key, it.key, (void *)(uintptr_t)record.bytes.at, NULL);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

/* `rest`: what follows the entry. */
static bool is_last(reader *self, const last_entries *last, bay_str key, bay_str bytes,
                    bay_str rest, const a2a_place *place)
{
    if (last->count > FEW_ENTRIES) {
        return map_get(&last->by_key, key) == bytes.at;
    }
    protobuf_record record;
    while (protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        entry later;
        if (record.number == last->number &&
            read_entry(self, record.bytes, place, &later) == BAY_OK && str_eq(later.key, key)) {
            return false;
        }
    }
    return true;
}

static bay_err read_map_value(reader *self, a2a_kind kind, a2a_type type, const slot *value,
                              const a2a_place *place)
{
    if (kind == A2A_KIND_STRING) {
        return value->last.bytes.len > A2A_PART_BYTES
                   ? a2a_place_fault(place, self->fault, A2A_TOO_LONG)
                   : put_string(self, value->last.bytes, place);
    }
    buf scratch;
    bay_str bytes;
    bay_err err = whole_of(self, value, place, &scratch, &bytes);
    if (err == BAY_OK) {
        err = kind == A2A_KIND_VALUE ? read_value(self, bytes, place)
                                     : read_message(self, type, bytes, place);
    }
    buf_fini(&scratch);
    return err;
}

/* The `count` entries of that number in `from`, whose records have been looked at. */
static bay_err read_map(reader *self, a2a_kind kind, a2a_type type, const last_entries *of,
                        const a2a_place *place)
{
    last_entries last = *of;
    bay_err err = find_last(self, &last, place);
    err = err == BAY_OK ? open_level(self, '{', place) : err;
    bool is_first = true;
    protobuf_record record;
    bay_str rest = last.from;
    while (err == BAY_OK && protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        entry it;
        if (record.number != last.number) {
            continue;
        }
        err = read_entry(self, record.bytes, place, &it);
        if (err != BAY_OK || !is_last(self, &last, it.key, record.bytes, rest, place)) {
            continue;
        }
        buf_str(self->out, is_first ? STR("") : STR(","));
        is_first = false;
        err = put_string(self, it.key, place);
        buf_char(self->out, ':');
        a2a_place here = {.outer = place, .key = it.key};
        /* inside a Struct the path ends: nobody needs to know where in free data */
        err = err == BAY_OK ? read_map_value(self, kind, type, &it.value,
                                             kind == A2A_KIND_VALUE ? place : &here)
                            : err;
    }
    if (last.count > FEW_ENTRIES) {
        map_fini(&last.by_key);
    }
    if (err == BAY_OK) {
        close_level(self, '}');
    }
    return err;
}

/* ---- free values --------------------------------------------------------------------------- */

static bay_err read_struct(reader *self, bay_str bytes, const a2a_place *place)
{
    last_entries entries = {.from = bytes, .number = 1};
    bay_str rest = bytes;
    protobuf_record record;
    protobuf_step step;
    while ((step = protobuf_next(&rest, &record)) == PROTOBUF_RECORD) {
        if (record.number == 1 && record.wire != PROTOBUF_BYTES) {
            return broken(self, place);
        }
        entries.count += record.number == 1;
    }
    return step == PROTOBUF_BROKEN ? broken(self, place)
                                   : read_map(self, A2A_KIND_VALUE, A2A_TYPE_NONE, &entries, place);
}

static bay_err read_list(reader *self, bay_str bytes, const a2a_place *place)
{
    bay_err err = open_level(self, '[', place);
    bool is_first = true;
    protobuf_record record;
    protobuf_step step = PROTOBUF_END;
    while (err == BAY_OK && (step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD) {
        if (record.number != 1) {
            continue;
        }
        buf_str(self->out, is_first ? STR("") : STR(","));
        is_first = false;
        err = record.wire == PROTOBUF_BYTES ? read_value(self, record.bytes, place)
                                            : broken(self, place);
    }
    if (err == BAY_OK && step == PROTOBUF_BROKEN) {
        return broken(self, place);
    }
    if (err == BAY_OK) {
        close_level(self, ']');
    }
    return err;
}

static bay_err put_number(reader *self, uint64_t bits, const a2a_place *place)
{
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (!isfinite(number)) {
        return a2a_place_fault(place, self->fault, "has a number that JSON has not");
    }
    bool is_minus_zero = number == 0 && signbit(number);
    if (fabs(number) < 0x1p53 && number == (double)(int64_t)number && !is_minus_zero) {
        buf_int(self->out, (int64_t)number); /* most are, and this is ten times quicker */
        return BAY_OK;
    }
    json_writer writer;
    json_writer_init(&writer, self->out);
    json_put_double(&writer, number);
    return BAY_OK;
}

enum { VALUE_NULL = 1, VALUE_NUMBER, VALUE_STRING, VALUE_BOOL, VALUE_STRUCT, VALUE_LIST };

/* What a Value is in the end. Nothing at all: last.number is 0. */
static bay_err look_at_value(reader *self, bay_str bytes, const a2a_place *place, slot *out)
{
    static const protobuf_wire wires[] = {
        [VALUE_NULL] = PROTOBUF_VARINT,  [VALUE_NUMBER] = PROTOBUF_FIXED64,
        [VALUE_STRING] = PROTOBUF_BYTES, [VALUE_BOOL] = PROTOBUF_VARINT,
        [VALUE_STRUCT] = PROTOBUF_BYTES, [VALUE_LIST] = PROTOBUF_BYTES,
    };
    *out = (slot){0};
    protobuf_record record;
    protobuf_step step;
    for (bay_str at = bytes; (step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD;
         at = bytes) {
        if (record.number > VALUE_LIST) {
            continue;
        }
        if (record.wire != wires[record.number]) {
            return broken(self, place);
        }
        if (record.number != out->last.number) {
            *out = (slot){.from = at};
        }
        out->count++;
        out->last = record;
    }
    return step == PROTOBUF_BROKEN ? broken(self, place) : BAY_OK;
}

static bay_err read_value(reader *self, bay_str bytes, const a2a_place *place)
{
    slot what;
    bay_err err = look_at_value(self, bytes, place, &what);
    if (err != BAY_OK) {
        return err;
    }
    switch (what.last.number) {
    case VALUE_NUMBER:
        return put_number(self, what.last.value, place);
    case VALUE_STRING:
        return put_string(self, what.last.bytes, place);
    case VALUE_BOOL:
        buf_str(self->out, what.last.value != 0 ? STR("true") : STR("false"));
        return BAY_OK;
    case VALUE_STRUCT:
    case VALUE_LIST:
        break;
    default: /* also a Value that is none: what else could it be */
        buf_lit(self->out, "null");
        return BAY_OK;
    }
    buf scratch;
    bay_str whole;
    err = whole_of(self, &what, place, &scratch, &whole);
    if (err == BAY_OK) {
        err = what.last.number == VALUE_STRUCT ? read_struct(self, whole, place)
                                               : read_list(self, whole, place);
    }
    buf_fini(&scratch);
    return err;
}

/* ---- messages ------------------------------------------------------------------------------ */

static protobuf_wire wire_of(const a2a_field *field)
{
    return (field->flags & A2A_FIELD_MAP) != 0                            ? PROTOBUF_BYTES
           : field->kind >= A2A_KIND_BOOL && field->kind <= A2A_KIND_ROLE ? PROTOBUF_VARINT
                                                                          : PROTOBUF_BYTES;
}

/* Looks the message over; *out_set: the fields it has. */
static bay_err look_over(reader *self, const a2a_fields *fields, bay_str bytes,
                         const a2a_place *place, slot *slots, uint32_t *out_set)
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
            slots[i] = (slot){.from = at};
        }
        if ((bit & fields->oneof) != 0) {
            set &= ~fields->oneof;
        }
        set |= bit;
        slots[i].count++;
        slots[i].last = record;
    }
    *out_set = set;
    return step == PROTOBUF_BROKEN ? broken(self, place) : BAY_OK;
}

static bay_err read_text(reader *self, const a2a_field *field, bay_str bytes,
                         const a2a_place *place)
{
    if (bytes.len > A2A_PART_BYTES) {
        return a2a_place_fault(place, self->fault, A2A_TOO_LONG);
    }
    if (field->kind == A2A_KIND_STRING) {
        return put_string(self, bytes, place);
    }
    buf_char(self->out, '"');
    base64_encode(self->out, bytes, BASE64_STANDARD);
    buf_char(self->out, '"');
    return BAY_OK;
}

static bay_err read_scalar(reader *self, const a2a_field *field, const protobuf_record *record,
                           const a2a_place *place)
{
    bay_str name;
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_BOOL:
        buf_str(self->out, record->value != 0 ? STR("true") : STR("false"));
        return BAY_OK;
    case A2A_KIND_INT32: /* what is too long for it is cut, as protobuf says */
        buf_int(self->out, (int32_t)record->value);
        return BAY_OK;
    case A2A_KIND_STATE:
    case A2A_KIND_STATE_0_3:
    case A2A_KIND_ROLE:
        name = a2a_enum_name((a2a_kind)field->kind, record->value);
        if (name.len == 0) {
            return a2a_place_fault(place, self->fault, A2A_NO_SUCH);
        }
        buf_char(self->out, '"');
        buf_str(self->out, name);
        buf_char(self->out, '"');
        return BAY_OK;
    default:
        return read_text(self, field, record->bytes, place);
    }
}

static bay_err read_one(reader *self, const a2a_field *field, bay_str bytes, const a2a_place *place)
{
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRUCT:
        return read_struct(self, bytes, place);
    case A2A_KIND_VALUE:
        return read_value(self, bytes, place);
    case A2A_KIND_TIMESTAMP:
        return read_time(self, bytes, place);
    case A2A_KIND_MESSAGE:
        return read_message(self, (a2a_type)field->type, bytes, place);
    default:
        return read_text(self, field, bytes, place);
    }
}

static bay_err read_array(reader *self, const a2a_field *field, const slot *what,
                          const a2a_place *place)
{
    if (a2a_is_too_many(field, what->count)) {
        return a2a_place_fault(place, self->fault, A2A_TOO_MANY);
    }
    bay_err err = open_level(self, '[', place);
    a2a_place here = {.outer = place};
    bay_str rest = what->from;
    protobuf_record record;
    while (err == BAY_OK && here.index < what->count &&
           protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        if (record.number != field->number) {
            continue;
        }
        buf_str(self->out, here.index > 0 ? STR(",") : STR(""));
        err = read_one(self, field, record.bytes, &here);
        here.index++;
    }
    if (err == BAY_OK) {
        close_level(self, ']');
    }
    return err;
}

static bay_err read_field(reader *self, const a2a_field *field, const slot *what,
                          const a2a_place *place)
{
    if ((field->flags & A2A_FIELD_REPEATED) != 0) {
        return read_array(self, field, what, place);
    }
    if ((field->flags & A2A_FIELD_MAP) != 0) {
        last_entries entries = {.from = what->from, .number = field->number, .count = what->count};
        return read_map(self, (a2a_kind)field->kind, (a2a_type)field->type, &entries, place);
    }
    if (field->kind < A2A_KIND_STRUCT) {
        return read_scalar(self, field, &what->last, place);
    }
    buf scratch;
    bay_str whole;
    bay_err err = whole_of(self, what, place, &scratch, &whole);
    if (err == BAY_OK) {
        err = read_one(self, field, whole, place);
    }
    buf_fini(&scratch);
    return err;
}

static bool is_default(const a2a_field *field, const slot *what)
{
    return (field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) == 0 &&
           field->kind < A2A_KIND_STRUCT &&
           (field->kind == A2A_KIND_INT32 ? (int32_t)what->last.value == 0 : what->last.value == 0);
}

static void put_name(reader *self, const a2a_field *field, bool is_first)
{
    buf_str(self->out, is_first ? STR("\"") : STR(",\""));
    buf_str(self->out, field->json);
    buf_lit(self->out, "\":");
}

static bay_err read_fields(reader *self, const a2a_fields *fields, const slot *slots, uint32_t set,
                           uint32_t defaults, const a2a_place *place)
{
    bool is_first = true;
    for (uint32_t i = 0; i < fields->count; i++) {
        const a2a_field *field = &fields->at[i];
        a2a_place here = {.outer = place, .field = field};
        if (((set | defaults) >> i & 1) == 0) {
            continue;
        }
        put_name(self, field, is_first);
        is_first = false;
        if ((set >> i & 1) == 0) {
            a2a_put_default(self->out, field);
            continue;
        }
        bay_err err = read_field(self, field, &slots[i], &here);
        if (err != BAY_OK) {
            return err;
        }
    }
    return self->out->err;
}

static bay_err read_message(reader *self, a2a_type type, bay_str bytes, const a2a_place *place)
{
    a2a_fields fields = a2a_fields_of(type);
    slot slots[A2A_FIELDS_MAX];
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
    err = err == BAY_OK ? open_level(self, '{', place) : err;
    err = err == BAY_OK ? read_fields(self, &fields, slots, set, defaults, place) : err;
    if (err == BAY_OK) {
        close_level(self, '}');
    }
    return err;
}

bay_err a2a_from_protobuf(a2a_type type, bay_str bytes, buf *out, a2a_fault *fault)
{
    size_t mergeable = bytes.len < SIZE_MAX / MERGED_TIMES ? bytes.len * MERGED_TIMES : SIZE_MAX;
    reader self = {.out = out, .fault = fault, .mergeable = mergeable};
    const a2a_place outermost = {.outer = NULL};
    size_t start = out->len;
    bay_err err = read_message(&self, type, bytes, &outermost);
    err = err == BAY_OK ? out->err : err;
    if (err != BAY_OK) {
        out->len = start;
    }
    return err;
}
