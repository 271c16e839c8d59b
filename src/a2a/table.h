/* The rows of types.def for the walks: one flat array of fields and a range of it for each type.
 * Also what the walks share: finding a field, the place of a fault, required fields. Private to
 * a2a/. */
#ifndef A2A_TABLE_H
#define A2A_TABLE_H

#include "a2a/types.h"
#include "json/writer.h"

typedef enum a2a_kind {
    A2A_KIND_STRING,
    A2A_KIND_BYTES,
    A2A_KIND_BOOL,
    A2A_KIND_INT32,
    A2A_KIND_STATE,
    A2A_KIND_STATE_0_3,
    A2A_KIND_ROLE,
    A2A_KIND_STRUCT,
    A2A_KIND_VALUE,
    A2A_KIND_TIMESTAMP,
    A2A_KIND_MESSAGE,
} a2a_kind;

enum {
    A2A_FIELD_REPEATED = 1,
    A2A_FIELD_MAP = 2,
    A2A_FIELD_REQUIRED = 4,
    A2A_FIELD_EMPTY = 8,
    A2A_FIELD_OPTIONAL = 16,
    A2A_FIELD_ONEOF = 32,
    A2A_FIELD_DUE = 64,
};

typedef struct a2a_field {
    bay_str json; /* lowerCamel */
    bay_str name; /* snake_case */
    uint16_t number;
    uint8_t kind; /* a2a_kind */
    uint8_t type; /* a2a_type, of a MESSAGE */
    uint8_t flags;
} a2a_field;

/* The fields of one type; bit i of a mask is fields.at[i]. */
typedef struct a2a_fields {
    const a2a_field *at;
    uint32_t count;
    uint32_t required;
    uint32_t oneof;
    uint32_t due;
} a2a_fields;

enum { A2A_FIELDS_MAX = 32, A2A_NO_FIELD = 32 };

a2a_fields a2a_fields_of(a2a_type type);

/* The index of the field that `key` names, or A2A_NO_FIELD. `expected`: compared first, because
 * members are mostly in order. *out_is_json: written in lowerCamel, without escapes. */
uint32_t a2a_field_named(const a2a_fields *fields, json_val key, uint32_t expected,
                         bool *out_is_json);
uint32_t a2a_field_numbered(const a2a_fields *fields, uint64_t number, uint32_t expected);

/* Whether its default equals a missing field. */
static inline bool a2a_field_drops_default(const a2a_field *field)
{
    return (field->flags & (A2A_FIELD_REQUIRED | A2A_FIELD_OPTIONAL | A2A_FIELD_ONEOF)) == 0 &&
           ((field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) != 0 ||
            field->kind < A2A_KIND_STRUCT);
}

/* Whether it must not be empty. */
static inline bool a2a_field_must_be_filled(const a2a_field *field)
{
    return (field->flags & (A2A_FIELD_REQUIRED | A2A_FIELD_EMPTY)) == A2A_FIELD_REQUIRED;
}

/* The place of a walk: a chain on the stack from the innermost member out, used only for faults. */
typedef struct a2a_place {
    const struct a2a_place *outer; /* NULL: the outermost */
    const a2a_field *field;        /* a member of a message; or: */
    bay_str key;                   /* an entry of a map, as written; or, `at` NULL: */
    size_t index;                  /* an element */
} a2a_place;

/* "message.parts[1].raw: WHAT", A2A_E_INVALID_PARAMS; returns BAY_ERR_PROTOCOL. */
__attribute__((cold, noinline)) bay_err a2a_place_fault(const a2a_place *self, a2a_fault *fault,
                                                        const char *what);

/* After the members of a message, of which `set` have a value: reports missing and excess fields.
 * *out_defaults: fields that are written even with their default. */
bay_err a2a_check_presence(const a2a_fields *fields, uint32_t set, const a2a_place *place,
                           a2a_fault *fault, uint32_t *out_defaults) BAY_MUST_CHECK;
void a2a_put_default(json_writer *to, const a2a_field *field);

/* Whether these are too many parts. `place`: theirs. An element of a list is neither a chunk nor a
 * sent message: it belongs to a task. */
static inline bool a2a_is_too_many(const a2a_field *field, size_t count, const a2a_place *place)
{
    const a2a_place *of = place->outer;
    bool is_whole = of != NULL && of->field == NULL && of->outer != NULL;
    return count > (is_whole ? A2A_WHOLE_PARTS : A2A_PARTS) && field->kind == A2A_KIND_MESSAGE &&
           (field->type == A2A_TYPE_PART || field->type == A2A_TYPE_V1_PART);
}

/* Texts of faults that JSON and protobuf share. */
#define A2A_TOO_DEEP "nested too deeply"
#define A2A_TOO_LONG "too long"
#define A2A_TOO_MANY "too many"
#define A2A_NO_SUCH "there is no such value"
#define A2A_NOT_FILLED "must not be empty"
#define A2A_NOT_UNICODE "is not valid Unicode"
#define A2A_NO_TIME "is no time between the years 1 and 9999"

#endif
