/* One translation between an older form and the model. Shapes are tables of members: the older
 * name, the name in 1.0, and the conversion of the value; one walk reads along them, one writes.
 * Members that a form does not have are kept in the object's metadata under reserved keys, and
 * restored on the way back. Private to a2a/. */
#ifndef A2A_DIALECT_WALK_H
#define A2A_DIALECT_WALK_H

#include "a2a/dialect.h"
#include "json/writer.h"

/* The place of a reader, for faults: a chain on the stack. */
typedef struct dialect_place {
    const struct dialect_place *outer;
    bay_str name; /* a member; `at` NULL: an element */
    size_t index;
} dialect_place;

typedef struct dialect {
    a2a_form form;
    json_writer to;
    arena *memory;    /* for decoded strings */
    a2a_fault *fault; /* may be NULL */
    const dialect_place *place;
    json_val object; /* the object that is walked */
    bay_err err;     /* the first; what is written after it is not used */
    bool is_last;    /* of an event: `final` */
    bay_str task_id; /* 0.1, where every result needs a task: the task of this request; "" */
} dialect;

/* Writes exactly one value. */
typedef void dialect_turn(dialect *self, json_val value);

enum {
    DIALECT_DUE = 1,     /* read: it is a fault if it is missing */
    DIALECT_OWN_KEY = 2, /* read: the function itself writes its members, or none */
    DIALECT_FILL = 4,    /* write: "" if 1.0 has none, because they require it */
};

typedef struct dialect_row {
    bay_str theirs; /* "": the older form has no such member */
    bay_str ours;   /* "": 1.0 has none */
    json_kind kind; /* required in the older form; JSON_TRUE: a boolean; JSON_MISSING: any */
    unsigned flags;
    dialect_turn *read; /* NULL: unchanged */
    dialect_turn *write;
} dialect_row;

typedef struct dialect_kept {
    bay_str key;  /* in metadata */
    bay_str ours; /* the member of 1.0; "": `keep` and a reader handle it */
} dialect_kept;

typedef struct dialect_metadata_writer dialect_metadata_writer;

typedef struct dialect_shape {
    const dialect_row *rows;
    size_t count;
    /* What is kept in metadata; if nothing is, metadata is an ordinary row. */
    const dialect_kept *kept;
    size_t kept_count;
    void (*keep)(dialect_metadata_writer *writer, json_val ours); /* NULL: nothing else */
} dialect_shape;

#define DIALECT_SHAPE(rows)                                                                        \
    {                                                                                              \
        rows, sizeof(rows) / sizeof((rows)[0]), NULL, 0, NULL                                      \
    }
#define DIALECT_SHAPE_KEEPING(rows, kept, keep)                                                    \
    {                                                                                              \
        rows, sizeof(rows) / sizeof((rows)[0]), kept, sizeof(kept) / sizeof((kept)[0]), keep       \
    }
#define DIALECT_KEY(name) STR_INIT("patchbay/" name)

/* Into an open object. */
void dialect_read_members(dialect *self, const dialect_shape *shape, json_val theirs);
void dialect_write_members(dialect *self, const dialect_shape *shape, json_val ours);
/* With the braces; anything but an object is copied, so that the final check refuses it. */
void dialect_read_object(dialect *self, const dialect_shape *shape, json_val theirs);
void dialect_write_object(dialect *self, const dialect_shape *shape, json_val ours);
void dialect_each(dialect *self, json_val array, dialect_turn *turn);

/* read_NAME and write_NAME of a value that has this shape, and of an array of such values. */
#define DIALECT_OBJECT(name, shape)                                                                \
    static void read_##name(dialect *self, json_val value)                                         \
    {                                                                                              \
        dialect_read_object(self, &shape, value);                                                  \
    }                                                                                              \
    static void write_##name(dialect *self, json_val value)                                        \
    {                                                                                              \
        dialect_write_object(self, &shape, value);                                                 \
    }
#define DIALECT_ARRAY(name, each)                                                                  \
    static void read_##name(dialect *self, json_val value)                                         \
    {                                                                                              \
        dialect_each(self, value, read_##each);                                                    \
    }                                                                                              \
    static void write_##name(dialect *self, json_val value)                                        \
    {                                                                                              \
        dialect_each(self, value, write_##each);                                                   \
    }

/* Opens metadata if it is not open and writes the key; a value must follow. */
void dialect_keep(dialect_metadata_writer *writer, bay_str key);
dialect *dialect_of(dialect_metadata_writer *writer);

/* BAY_ERR_PROTOCOL with the path: "PLACE.name: WHAT". `name` may be "". */
void dialect_refuse(dialect *self, bay_str name, const char *what);
/* The decoded text of a string; false: not a string, or an error. */
bool dialect_text(dialect *self, json_val value, bay_str *out);
/* After an error a key may lack its value: the text is not used any more. */
static inline void dialect_close_object(dialect *self)
{
    self->to.after_key &= self->err == BAY_OK;
    json_close_object(&self->to);
}
static inline void dialect_close_array(dialect *self)
{
    self->to.after_key &= self->err == BAY_OK;
    json_close_array(&self->to);
}
/* Copies "key": value, unless it is missing or null. */
void dialect_copy(dialect *self, json_val object, bay_str name, bay_str as);
static inline json_val dialect_kept_value(json_val object, bay_str key)
{
    return json_get(json_get(object, STR("metadata")), key);
}
static inline bool dialect_is_there(json_val value)
{
    return !json_is(value, JSON_MISSING) && !json_is(value, JSON_NULL);
}

/* ---- the tables of the forms ----------------------------------------------------------------- */

/* The conversions of a form for nested objects. */
typedef struct dialect_forms {
    dialect_turn *read_message;
    dialect_turn *write_message;
    dialect_turn *read_task;
    dialect_turn *write_task;
    /* A result of SendMessage and an event: they write or read the whole StreamResponse. */
    dialect_turn *read_event;
    dialect_turn *write_event;
    /* By method; NULL: the form has none. */
    dialect_turn *read_params[A2A_METHODS];
    dialect_turn *write_params[A2A_METHODS];
    dialect_turn *read_result[A2A_METHODS];
    dialect_turn *write_result[A2A_METHODS];
} dialect_forms;

extern const dialect_forms dialect_forms_0_3;
extern const dialect_forms dialect_forms_0_3_proto;
extern const dialect_forms dialect_forms_0_1;

/* ---- shared by the forms --------------------------------------------------------------------- */

void dialect_nothing(dialect *self, json_val value); /* {} whatever the value */
void dialect_null(dialect *self, json_val value);
/* Data of a part: older forms have objects only, so other values are wrapped as `value`. */
void dialect_put_data(dialect *self, json_val data);

void dialect_read_role(dialect *self, json_val value); /* "user" */
void dialect_write_role(dialect *self, json_val value);
void dialect_read_time(dialect *self, json_val value); /* also without a zone: UTC */
void dialect_put_state(dialect *self, json_val value); /* "input-required" */
a2a_state dialect_state_named(json_val value);         /* A2A_STATES: none */
bay_str dialect_state_name(a2a_state state);
/* A number in decimal, in the caller's bytes. */
enum { DIALECT_DIGITS = 20 };
bay_str dialect_digits(uint64_t number, char out[DIALECT_DIGITS]);

/* Parts with `kind` (0.3) or `type` (0.1). */
void dialect_read_parts(dialect *self, json_val value);
void dialect_write_parts(dialect *self, json_val value);
/* Wrapped data: a flag in metadata says that {"value": …} is a wrapper. */
#define DIALECT_WRAPPED STR_INIT("data_part_compat")

/* A PushNotificationConfig inside an object, and its members. */
void dialect_read_push(dialect *self, json_val value);
void dialect_write_push(dialect *self, json_val value);
void dialect_read_push_members(dialect *self, json_val value);

/* Params that 0.1 has, too: {id, historyLength}, {id, metadata}, {id}. */
void dialect_read_query(dialect *self, json_val value);
void dialect_write_query(dialect *self, json_val value);
void dialect_read_cancel(dialect *self, json_val value);
void dialect_write_cancel(dialect *self, json_val value);
void dialect_read_id(dialect *self, json_val value);
void dialect_write_id(dialect *self, json_val value);

void dialect_read_card(dialect *self, json_val value);    /* of 0.1 to 0.3, JSON */
void dialect_read_card_v1(dialect *self, json_val value); /* of package a2a.v1 */
void dialect_write_card(dialect *self, json_val value);   /* any interfaces */
void dialect_write_card_v1(dialect *self, json_val value);

/* A result in the form; `task_id`: of the request, for results without one. */
bay_err dialect_result_write(a2a_form form, a2a_method method, json_val result, bay_str task_id,
                             buf *out) BAY_MUST_CHECK;

enum {
    DIALECT_MEMORY_BYTES = 512 << 20, /* of one translation: index and decoded strings */
    DIALECT_TEXT_BYTES = 192 << 20,   /* … and its text */
};

#endif
