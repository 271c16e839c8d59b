/* One translation between an older form and the model, under way. Shapes are tables of members:
 * their name, ours, and what becomes of the value; one walk reads along them, one writes. What a
 * form has no member for is kept in the object's metadata under keys of ours, and found there again
 * on the way back. Private to a2a/. */
#ifndef A2A_DIALECT_WALK_H
#define A2A_DIALECT_WALK_H

#include "a2a/dialect.h"
#include "json/writer.h"

/* Where a reading is, for faults: a chain on the stack. */
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
    json_val object; /* whose members are being walked */
    bay_err err;     /* the first; nothing is written after it that anybody looks at */
    bool is_last;    /* of an event: `final` */
    bay_str task_id; /* 0.1, which has nothing without a task: the task of this request; "" */
} dialect;

/* Writes exactly one value. */
typedef void dialect_turn(dialect *self, json_val value);

enum {
    DIALECT_DUE = 1,     /* read: its absence is a fault */
    DIALECT_OWN_KEY = 2, /* read: the function writes its members, or none, itself */
    DIALECT_FILL = 4,    /* write: "" when we have none, since they require it */
};

typedef struct dialect_row {
    bay_str theirs; /* "": they have no such member */
    bay_str ours;   /* "": we have none */
    json_kind kind; /* that theirs must have; JSON_TRUE: either truth; JSON_MISSING: any */
    unsigned flags;
    dialect_turn *read; /* NULL: as it is */
    dialect_turn *write;
} dialect_row;

typedef struct dialect_kept {
    bay_str key;  /* in metadata */
    bay_str ours; /* the member that it stands for; "": `keep` and a reader know */
} dialect_kept;

typedef struct dialect_metadata_writer dialect_metadata_writer;

typedef struct dialect_shape {
    const dialect_row *rows;
    size_t count;
    /* What is kept in metadata; without any, metadata is a row like others. */
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

/* Into an object that is open. */
void dialect_read_members(dialect *self, const dialect_shape *shape, json_val theirs);
void dialect_write_members(dialect *self, const dialect_shape *shape, json_val ours);
/* With the braces; what is no object goes through as it is, for the last check to refuse. */
void dialect_read_object(dialect *self, const dialect_shape *shape, json_val theirs);
void dialect_write_object(dialect *self, const dialect_shape *shape, json_val ours);
void dialect_each(dialect *self, json_val array, dialect_turn *turn);

/* read_NAME and write_NAME of something that is its shape and no more, and of an array of such. */
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

/* Opens metadata when that was not done yet and writes the key; a value must follow. */
void dialect_keep(dialect_metadata_writer *writer, bay_str key);
dialect *dialect_of(dialect_metadata_writer *writer);

/* BAY_ERR_PROTOCOL with the path: "PLACE.name: WHAT". `name` may be "". */
void dialect_refuse(dialect *self, bay_str name, const char *what);
/* The decoded text of a string; false: it is none, or there was an error. */
bool dialect_text(dialect *self, json_val value, bay_str *out);
/* After an error a key may lack its value: nobody looks at the text any more. */
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
/* "key": value as it is, unless it is missing or null. */
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

/* What a form makes of the things that are in others. */
typedef struct dialect_forms {
    dialect_turn *read_message;
    dialect_turn *write_message;
    dialect_turn *read_task;
    dialect_turn *write_task;
    /* A result of SendMessage and an event: they write the whole StreamResponse, or read one. */
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

void dialect_nothing(dialect *self, json_val value); /* {} whatever it was */
void dialect_null(dialect *self, json_val value);
/* Data of a part: older forms have objects only, so what is none goes into one as `value`. */
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
/* Non-objects as data: a flag in metadata says that {"value": …} stands for them. */
#define DIALECT_WRAPPED STR_INIT("data_part_compat")

/* A PushNotificationConfig inside something, and the members of one. */
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
void dialect_write_card(dialect *self, json_val value);   /* whatever interfaces it has */
void dialect_write_card_v1(dialect *self, json_val value);

/* A result as the form has it; `task_id`: of the request, for what has none of its own. */
bay_err dialect_result_write(a2a_form form, a2a_method method, json_val result, bay_str task_id,
                             buf *out) BAY_MUST_CHECK;

enum {
    DIALECT_MEMORY_BYTES = 512 << 20, /* of one translation: index and decoded strings */
    DIALECT_TEXT_BYTES = 192 << 20,   /* … and its text */
};

#endif
