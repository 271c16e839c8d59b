/* Maps and free values of protobuf. The last value of a map's key is used. Struct, Value and
 * ListValue become the JSON that they represent; their numbers are doubles, and nothing is lost
 * here. */
#include "a2a/protobuf_read.h"

#include <math.h>

#include "base/map.h"

/* ---- maps ------------------------------------------------------------------------------------ */

typedef struct entry {
    bay_str key;
    protobuf_slot value;
} entry;

/* A map's entry is a message: key 1, value 2. */
static bay_err read_entry(protobuf_reader *self, bay_str bytes, const a2a_place *place, entry *out)
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
            return protobuf_broken(self, place);
        }
        if (record.number == 1) {
            out->key = record.bytes;
            continue;
        }
        out->value.from = out->value.count == 0 ? at : out->value.from;
        out->value.count++;
        out->value.last = record;
    }
    return step == PROTOBUF_BROKEN ? protobuf_broken(self, place) : BAY_OK;
}

/* The used entries: those not followed by another with the same key. Few are compared with each
 * other, many are stored by key, in place. */
enum { FEW_ENTRIES = 8 };

static bay_err find_last(protobuf_reader *self, const protobuf_entries *of, const a2a_place *place,
                         map *by_key)
{
    if (of->count <= FEW_ENTRIES) {
        return BAY_OK;
    }
    map_init(by_key, of->count);
    bay_str rest = of->from;
    protobuf_record record;
    while (protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        if (record.number != of->number) {
            continue;
        }
        entry it;
        bay_err err = read_entry(self, record.bytes, place, &it);
        if (err == BAY_OK) {
            err = map_put(by_key, it.key, (void *)(uintptr_t)record.bytes.at, NULL);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

/* `rest`: the bytes after the entry. */
static bool is_last(protobuf_reader *self, const protobuf_entries *of, const map *by_key,
                    bay_str key, bay_str bytes, bay_str rest, const a2a_place *place)
{
    if (of->count > FEW_ENTRIES) {
        return map_get(by_key, key) == bytes.at;
    }
    protobuf_record record;
    while (protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        entry later;
        if (record.number == of->number &&
            read_entry(self, record.bytes, place, &later) == BAY_OK && str_eq(later.key, key)) {
            return false;
        }
    }
    return true;
}

static bay_err read_map_value(protobuf_reader *self, a2a_kind kind, a2a_type type,
                              const protobuf_slot *value, const a2a_place *place)
{
    if (kind == A2A_KIND_STRING) {
        return value->last.bytes.len > A2A_PART_BYTES
                   ? a2a_place_fault(place, self->fault, A2A_TOO_LONG)
                   : protobuf_put_string(self, value->last.bytes, place);
    }
    buf scratch;
    bay_str bytes;
    bay_err err = protobuf_whole(self, value, place, &scratch, &bytes);
    if (err == BAY_OK) {
        err = kind == A2A_KIND_VALUE ? protobuf_read_value(self, bytes, place)
                                     : protobuf_read_message(self, type, bytes, place);
    }
    buf_fini(&scratch);
    return err;
}

bay_err protobuf_read_map(protobuf_reader *self, a2a_kind kind, a2a_type type,
                          const protobuf_entries *of, const a2a_place *place)
{
    map by_key;
    bay_err err = find_last(self, of, place, &by_key);
    err = err == BAY_OK ? protobuf_open(self, '{', place) : err;
    protobuf_record record;
    bay_str rest = of->from;
    while (err == BAY_OK && protobuf_next(&rest, &record) == PROTOBUF_RECORD) {
        entry it;
        if (record.number != of->number) {
            continue;
        }
        err = read_entry(self, record.bytes, place, &it);
        if (err != BAY_OK || !is_last(self, of, &by_key, it.key, record.bytes, rest, place)) {
            continue;
        }
        err = protobuf_put_key(self, it.key, place);
        a2a_place here = {.outer = place, .key = it.key};
        /* inside a Struct the path ends: faults in free data have no deeper path */
        err = err == BAY_OK ? read_map_value(self, kind, type, &it.value,
                                             kind == A2A_KIND_VALUE ? place : &here)
                            : err;
    }
    if (of->count > FEW_ENTRIES) {
        map_fini(&by_key);
    }
    if (err == BAY_OK) {
        protobuf_close(self, '}');
    }
    return err;
}

/* ---- free values ----------------------------------------------------------------------------- */

bay_err protobuf_read_struct(protobuf_reader *self, bay_str bytes, const a2a_place *place)
{
    protobuf_entries entries = {.from = bytes, .number = 1};
    bay_str rest = bytes;
    protobuf_record record;
    protobuf_step step;
    while ((step = protobuf_next(&rest, &record)) == PROTOBUF_RECORD) {
        if (record.number == 1 && record.wire != PROTOBUF_BYTES) {
            return protobuf_broken(self, place);
        }
        entries.count += record.number == 1;
    }
    return step == PROTOBUF_BROKEN
               ? protobuf_broken(self, place)
               : protobuf_read_map(self, A2A_KIND_VALUE, A2A_TYPE_NONE, &entries, place);
}

static bay_err read_list(protobuf_reader *self, bay_str bytes, const a2a_place *place)
{
    bay_err err = protobuf_open(self, '[', place);
    protobuf_record record;
    protobuf_step step = PROTOBUF_END;
    while (err == BAY_OK && (step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD) {
        if (record.number != 1) {
            continue;
        }
        err = record.wire == PROTOBUF_BYTES ? protobuf_read_value(self, record.bytes, place)
                                            : protobuf_broken(self, place);
    }
    if (err == BAY_OK && step == PROTOBUF_BROKEN) {
        return protobuf_broken(self, place);
    }
    if (err == BAY_OK) {
        protobuf_close(self, ']');
    }
    return err;
}

static bay_err put_number(protobuf_reader *self, uint64_t bits, const a2a_place *place)
{
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (!isfinite(number)) {
        return a2a_place_fault(place, self->fault, "has a number that JSON has not");
    }
    bool is_minus_zero = number == 0 && signbit(number);
    if (fabs(number) < 0x1p53 && number == (double)(int64_t)number && !is_minus_zero) {
        json_put_int(self->to, (int64_t)number); /* the most frequent case, and ten times faster */
        return BAY_OK;
    }
    json_put_double(self->to, number);
    return BAY_OK;
}

enum { VALUE_NULL = 1, VALUE_NUMBER, VALUE_STRING, VALUE_BOOL, VALUE_STRUCT, VALUE_LIST };

/* The final kind of a Value. Nothing at all: last.number is 0. */
static bay_err look_at_value(protobuf_reader *self, bay_str bytes, const a2a_place *place,
                             protobuf_slot *out)
{
    static const protobuf_wire wires[] = {
        [VALUE_NULL] = PROTOBUF_VARINT,  [VALUE_NUMBER] = PROTOBUF_FIXED64,
        [VALUE_STRING] = PROTOBUF_BYTES, [VALUE_BOOL] = PROTOBUF_VARINT,
        [VALUE_STRUCT] = PROTOBUF_BYTES, [VALUE_LIST] = PROTOBUF_BYTES,
    };
    *out = (protobuf_slot){0};
    protobuf_record record;
    protobuf_step step;
    for (bay_str at = bytes; (step = protobuf_next(&bytes, &record)) == PROTOBUF_RECORD;
         at = bytes) {
        if (record.number > VALUE_LIST) {
            continue;
        }
        if (record.wire != wires[record.number]) {
            return protobuf_broken(self, place);
        }
        if (record.number != out->last.number) {
            *out = (protobuf_slot){.from = at};
        }
        out->count++;
        out->last = record;
    }
    return step == PROTOBUF_BROKEN ? protobuf_broken(self, place) : BAY_OK;
}

bay_err protobuf_read_value(protobuf_reader *self, bay_str bytes, const a2a_place *place)
{
    protobuf_slot what;
    bay_err err = look_at_value(self, bytes, place, &what);
    if (err != BAY_OK) {
        return err;
    }
    switch (what.last.number) {
    case VALUE_NUMBER:
        return put_number(self, what.last.value, place);
    case VALUE_STRING:
        return protobuf_put_string(self, what.last.bytes, place);
    case VALUE_BOOL:
        json_put_bool(self->to, what.last.value != 0);
        return BAY_OK;
    case VALUE_STRUCT:
    case VALUE_LIST:
        break;
    default: /* also a Value without a kind */
        json_put_null(self->to);
        return BAY_OK;
    }
    buf scratch;
    bay_str whole;
    err = protobuf_whole(self, &what, place, &scratch, &whole);
    if (err == BAY_OK) {
        err = what.last.number == VALUE_STRUCT ? protobuf_read_struct(self, whole, place)
                                               : read_list(self, whole, place);
    }
    buf_fini(&scratch);
    return err;
}
