/* The tables, made from types.def at compile time, and functions that all walks use. */
#include "a2a/types.h"

#include "a2a/table.h"

#include "base/check.h"

/* The document of a peer: one message at most, in an envelope or two. */
const json_limits a2a_json_limits = {64U << 20, A2A_DEPTH + 8, 1U << 20};

/* As types.def writes them. */
enum {
    REPEATED = A2A_FIELD_REPEATED,
    MAP = A2A_FIELD_MAP,
    REQUIRED = A2A_FIELD_REQUIRED,
    EMPTY = A2A_FIELD_EMPTY,
    OPTIONAL = A2A_FIELD_OPTIONAL,
    ONEOF = A2A_FIELD_ONEOF,
    DUE = A2A_FIELD_DUE,
};

/* FIRST_TYPE is the index of its first field: an enumerator without a field of its own. */
enum {
#define A2A_TYPE(symbol, name) FIRST_##symbol, BACK_##symbol = FIRST_##symbol - 1,
#define A2A_FIELD(symbol, number, name, json, kind, type, flags) FIELD_##symbol##_##number,
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
    FIELDS
};

static const a2a_field fields[FIELDS] = {
#define A2A_TYPE(symbol, name)
#define A2A_FIELD(symbol, number, name, json, kind, type, flags)                                   \
    {STR_INIT(json), STR_INIT(name), number, A2A_KIND_##kind, A2A_TYPE_##type, flags},
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
};

static const uint16_t first_of[A2A_TYPES + 1] = {0
#define A2A_TYPE(symbol, name) , FIRST_##symbol
#define A2A_FIELD(...)
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
                                                 ,
                                                 FIELDS};

/* For each type, the sum of the bits of its fields that have the flag. */
#define BIT(symbol, number, flags, flag)                                                           \
    | ((((flags) & (flag)) != 0 ? 1U : 0U) << (FIELD_##symbol##_##number - FIRST_##symbol))

static const uint32_t required_of[A2A_TYPES] = {0
#define A2A_TYPE(symbol, name) , 0
#define A2A_FIELD(symbol, number, name, json, kind, type, flags)                                   \
    BIT(symbol, number, flags, REQUIRED)
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
};

static const uint32_t oneof_of[A2A_TYPES] = {0
#define A2A_TYPE(symbol, name) , 0
#define A2A_FIELD(symbol, number, name, json, kind, type, flags) BIT(symbol, number, flags, ONEOF)
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
};

static const uint32_t due_of[A2A_TYPES] = {0
#define A2A_TYPE(symbol, name) , 0
#define A2A_FIELD(symbol, number, name, json, kind, type, flags) BIT(symbol, number, flags, DUE)
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
};

a2a_fields a2a_fields_of(a2a_type type)
{
    CHECK(type < A2A_TYPES);
    return (a2a_fields){
        .at = &fields[first_of[type]],
        .count = (uint32_t)first_of[type + 1] - first_of[type],
        .required = required_of[type],
        .oneof = oneof_of[type],
        .due = due_of[type],
    };
}

uint32_t a2a_field_named(const a2a_fields *self, json_val key, uint32_t expected, bool *out_is_json)
{
    bay_str name;
    *out_is_json = json_str_plain(key, &name);
    if (!*out_is_json) {
        for (uint32_t i = 0; i < self->count; i++) {
            if (json_str_eq(key, self->at[i].json) || json_str_eq(key, self->at[i].name)) {
                return i;
            }
        }
        return A2A_NO_FIELD;
    }
    for (uint32_t i = expected; i < self->count; i++) {
        if (str_eq(name, self->at[i].json)) {
            return i;
        }
    }
    for (uint32_t i = 0; i < expected; i++) {
        if (str_eq(name, self->at[i].json)) {
            return i;
        }
    }
    *out_is_json = false;
    for (uint32_t i = 0; i < self->count; i++) {
        if (str_eq(name, self->at[i].name)) {
            return i;
        }
    }
    return A2A_NO_FIELD;
}

uint32_t a2a_field_numbered(const a2a_fields *self, uint64_t number, uint32_t expected)
{
    if (expected < self->count && self->at[expected].number == number) {
        return expected;
    }
    for (uint32_t i = 0; i < self->count; i++) {
        if (self->at[i].number == number) {
            return i;
        }
    }
    return A2A_NO_FIELD;
}

/* The members of a oneof, as text. */
static void put_choice(buf *out, const a2a_fields *self, uint32_t choice)
{
    bool is_first = true;
    for (uint32_t i = 0; i < self->count; i++) {
        if ((choice >> i & 1) != 0) {
            buf_str(out, is_first ? STR("") : STR(", "));
            buf_str(out, self->at[i].json);
            is_first = false;
        }
    }
}

static bay_err fault_choice(const a2a_fields *self, const char *how_many, const a2a_place *place,
                            a2a_fault *fault)
{
    buf what;
    buf_init(&what, A2A_FAULT_BYTES);
    buf_printf(&what, "has %s of ", how_many);
    put_choice(&what, self, self->oneof);
    buf_char(&what, '\0');
    bay_err err =
        a2a_place_fault(place, fault, what.err == BAY_OK ? what.at : "has not one member");
    buf_fini(&what);
    return err;
}

bay_err a2a_check_presence(const a2a_fields *self, uint32_t set, const a2a_place *place,
                           a2a_fault *fault, uint32_t *out_defaults)
{
    uint32_t chosen = set & self->oneof;
    if ((chosen & (chosen - 1)) != 0) {
        return fault_choice(self, "two", place, fault);
    }
    if (self->due != 0 && (set & self->due) == 0) {
        return fault_choice(self, "none", place, fault);
    }
    uint32_t missing = self->required & ~set;
    uint32_t defaults = 0;
    for (uint32_t i = 0; missing >> i != 0; i++) {
        if ((missing >> i & 1) == 0) {
            continue;
        }
        if (a2a_field_must_be_filled(&self->at[i])) {
            a2a_place here = {.outer = place, .field = &self->at[i]};
            return a2a_place_fault(&here, fault, "is required");
        }
        defaults |= 1U << i;
    }
    *out_defaults = defaults;
    return BAY_OK;
}

void a2a_put_default(json_writer *to, const a2a_field *field)
{
    if ((field->flags & A2A_FIELD_REPEATED) != 0) {
        json_open_array(to);
        json_close_array(to);
        return;
    }
    a2a_kind kind = (field->flags & A2A_FIELD_MAP) != 0 ? A2A_KIND_STRUCT : (a2a_kind)field->kind;
    switch (kind) {
    case A2A_KIND_STRING:
    case A2A_KIND_BYTES:
        json_put_word(to, STR(""));
        break;
    case A2A_KIND_BOOL:
        json_put_bool(to, false);
        break;
    case A2A_KIND_INT32:
        json_put_int(to, 0);
        break;
    case A2A_KIND_STATE:
    case A2A_KIND_STATE_0_3:
        json_put_word(to, STR("TASK_STATE_UNSPECIFIED"));
        break;
    case A2A_KIND_ROLE:
        json_put_word(to, STR("ROLE_UNSPECIFIED"));
        break;
    case A2A_KIND_VALUE:
        json_put_null(to);
        break;
    case A2A_KIND_TIMESTAMP:
        json_put_word(to, STR("1970-01-01T00:00:00.000Z"));
        break;
    case A2A_KIND_STRUCT:
    case A2A_KIND_MESSAGE:
        json_open_object(to);
        json_close_object(to);
        break;
    }
}

/* A peer's key, shortened and printable. */
static bay_str shorten(bay_str key)
{
    enum { SHOWN = 40 };
    bay_str shown = str_head(key, SHOWN);
    while (shown.len > 0 && shown.len < key.len &&
           ((unsigned char)key.at[shown.len] & 0xc0) == 0x80) {
        shown.len--;
    }
    return shown;
}

static void put_place(buf *out, const a2a_place *self)
{
    if (self->outer != NULL) {
        put_place(out, self->outer);
    }
    if (self->field != NULL) {
        buf_str(out, out->len > 0 ? STR(".") : STR(""));
        buf_str(out, self->field->json);
    } else if (self->key.at != NULL) {
        bay_str key = shorten(self->key);
        buf_printf(out, "[\"%.*s\"]", BAY_STR(key));
    } else if (self->outer != NULL) {
        buf_printf(out, "[%zu]", self->index);
    }
}

bay_err a2a_place_fault(const a2a_place *self, a2a_fault *fault, const char *what)
{
    if (fault == NULL) {
        return BAY_ERR_PROTOCOL;
    }
    buf path;
    buf_init(&path, 1U << 12); /* a path is at most as long as the nesting allows */
    put_place(&path, self);
    bay_str text = path.err == BAY_OK ? buf_view(&path) : STR("");
    bay_err err = a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "%.*s%s%s", BAY_STR(text),
                                text.len > 0 ? ": " : "", what);
    buf_fini(&path);
    return err;
}
