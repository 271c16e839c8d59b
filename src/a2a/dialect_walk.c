/* The walks along a shape, and the members that are kept in metadata. */
#include "a2a/dialect_walk.h"

static const bay_str metadata_name = STR_INIT("metadata");

struct dialect_metadata_writer {
    dialect *self;
    const dialect_shape *shape;
    json_val metadata; /* ours, before */
    bool is_open;
};

/* ---- faults ---------------------------------------------------------------------------------- */

static void put_place(buf *out, const dialect_place *place)
{
    if (place == NULL) {
        return;
    }
    put_place(out, place->outer);
    if (place->name.at == NULL) {
        buf_printf(out, "[%zu]", place->index);
        return;
    }
    buf_str(out, out->len > 0 ? STR(".") : STR(""));
    buf_str(out, place->name);
}

void dialect_refuse(dialect *self, bay_str name, const char *what)
{
    if (self->err != BAY_OK) {
        return;
    }
    char text[A2A_FAULT_BYTES] = "";
    buf path;
    buf_init(&path, sizeof(text));
    const dialect_place here = {self->place, name, 0};
    put_place(&path, name.len > 0 ? &here : self->place);
    size_t len = path.err == BAY_OK ? path.len : 0; /* without a path rather than without a fault */
    if (len > 0) {
        memcpy(text, path.at, len);
    }
    buf_fini(&path);
    self->err = a2a_fault_set(self->fault, A2A_E_INVALID_PARAMS, "%.*s%s%s", (int)len, text,
                              len > 0 ? ": " : "", what);
}

static bool fits(json_kind expected, json_val value)
{
    json_kind kind = json_kind_of(value);
    return expected == JSON_MISSING || expected == kind ||
           (expected == JSON_TRUE && kind == JSON_FALSE);
}

static const char *expected_text(json_kind kind)
{
    switch (kind) {
    case JSON_STRING:
        return "must be a string";
    case JSON_ARRAY:
        return "must be an array";
    case JSON_OBJECT:
        return "must be an object";
    case JSON_NUMBER:
        return "must be a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "must be true or false";
    case JSON_MISSING:
    case JSON_NULL:
        break;
    }
    return "is not valid";
}

bool dialect_text(dialect *self, json_val value, bay_str *out)
{
    bay_err err = json_str(value, self->memory, out);
    if (err == BAY_ERR_TYPE || err == BAY_ERR_UTF8) {
        dialect_refuse(self, STR(""),
                       err == BAY_ERR_TYPE ? "must be a string" : "is not valid Unicode");
    } else if (self->err == BAY_OK) {
        self->err = err;
    }
    return err == BAY_OK;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const dialect_kept *kept_named(const dialect_shape *shape, json_val key)
{
    for (size_t i = 0; i < shape->kept_count; i++) {
        if (json_str_eq(key, shape->kept[i].key)) {
            return &shape->kept[i];
        }
    }
    return NULL;
}

static void put_member(dialect *self, json_iter iter)
{
    bay_str key = json_raw(iter.key);
    bay_str plain;
    if (json_str_plain(iter.key, &plain)) {
        json_key(&self->to, plain);
    } else if (json_str(iter.key, self->memory, &key) == BAY_OK) {
        json_key(&self->to, key);
    } else {
        self->err = self->err != BAY_OK ? self->err : BAY_ERR_NOMEM;
        return;
    }
    json_put_val(&self->to, iter.value);
}

/* Metadata without the kept members, which become members again. */
static void read_metadata(dialect *self, const dialect_shape *shape, json_val metadata)
{
    if (!dialect_is_there(metadata)) {
        return;
    }
    if (!json_is(metadata, JSON_OBJECT)) {
        dialect_refuse(self, metadata_name, "must be an object");
        return;
    }
    size_t left = 0;
    uint32_t seen = 0;
    json_iter iter = json_iter_of(metadata);
    while (json_next(&iter)) {
        const dialect_kept *kept = kept_named(shape, iter.key);
        left += kept == NULL;
        uint32_t bit = kept != NULL ? 1U << (kept - shape->kept) : 0;
        if (kept != NULL && kept->ours.len > 0 && (seen & bit) == 0) {
            json_key_word(&self->to, kept->ours);
            json_put_val(&self->to, iter.value);
        }
        seen |= bit;
    }
    if (left == 0 && seen != 0) {
        return; /* it only held kept members */
    }
    json_key_word(&self->to, metadata_name);
    if (seen == 0) {
        json_put_val(&self->to, metadata);
        return;
    }
    json_open_object(&self->to);
    iter = json_iter_of(metadata);
    while (json_next(&iter)) {
        if (kept_named(shape, iter.key) == NULL) {
            put_member(self, iter);
        }
    }
    dialect_close_object(self);
}

void dialect_keep(dialect_metadata_writer *writer, bay_str key)
{
    dialect *self = writer->self;
    if (!writer->is_open) {
        writer->is_open = true;
        json_key_word(&self->to, metadata_name);
        json_open_object(&self->to);
        json_iter iter = json_iter_of(writer->metadata);
        while (json_next(&iter)) {
            if (kept_named(writer->shape, iter.key) == NULL) {
                put_member(self, iter);
            }
        }
    }
    json_key_word(&self->to, key);
}

dialect *dialect_of(dialect_metadata_writer *writer)
{
    return writer->self;
}

static void write_metadata(dialect *self, const dialect_shape *shape, json_val ours)
{
    dialect_metadata_writer writer = {self, shape, json_get(ours, metadata_name), false};
    for (size_t i = 0; i < shape->kept_count; i++) {
        json_val value =
            shape->kept[i].ours.len > 0 ? json_get(ours, shape->kept[i].ours) : JSON_NONE;
        if (dialect_is_there(value)) {
            dialect_keep(&writer, shape->kept[i].key);
            json_put_val(&self->to, value);
        }
    }
    if (shape->keep != NULL) {
        shape->keep(&writer, ours);
    }
    if (writer.is_open) {
        dialect_close_object(self);
    } else {
        dialect_copy(self, ours, metadata_name, metadata_name);
    }
}

/* ---- members --------------------------------------------------------------------------------- */

static bay_str row_name(const dialect_row *row, bool is_theirs)
{
    return is_theirs ? row->theirs : row->ours;
}

/* Members are mostly in the order of the table: `expected` is compared first. */
static size_t row_named(const dialect_shape *shape, json_val key, bool is_theirs, size_t expected)
{
    bay_str text;
    bool is_plain = json_str_plain(key, &text);
    for (size_t n = 0; n < shape->count; n++) {
        size_t i = expected + n < shape->count ? expected + n : expected + n - shape->count;
        bay_str name = row_name(&shape->rows[i], is_theirs);
        if (name.len > 0 && (is_plain ? str_eq(text, name) : json_str_eq(key, name))) {
            return i;
        }
    }
    return shape->count;
}

static void read_member(dialect *self, const dialect_row *row, json_val value)
{
    const dialect_place here = {self->place, row->theirs, 0};
    self->place = &here;
    if (!fits(row->kind, value)) {
        dialect_refuse(self, STR(""), expected_text(row->kind));
    } else {
        if ((row->flags & DIALECT_OWN_KEY) == 0) {
            json_key_word(&self->to, row->ours);
        }
        if (row->read != NULL) {
            row->read(self, value);
        } else {
            json_put_val(&self->to, value);
        }
    }
    self->place = here.outer;
}

void dialect_read_members(dialect *self, const dialect_shape *shape, json_val theirs)
{
    json_val outer = self->object;
    self->object = theirs;
    uint32_t seen = 0;
    size_t expected = 0;
    json_iter iter = json_iter_of(theirs);
    while (self->err == BAY_OK && json_next(&iter)) {
        size_t i = row_named(shape, iter.key, true, expected);
        if (i == shape->count || json_is(iter.value, JSON_NULL)) {
            continue;
        }
        expected = i + 1;
        const dialect_row *row = &shape->rows[i];
        if ((seen >> i & 1) != 0) {
            dialect_refuse(self, row->theirs, "is given twice");
        } else if (row->ours.len > 0 || row->read != NULL) {
            read_member(self, row, iter.value);
        }
        seen |= 1U << i;
    }
    for (size_t i = 0; i < shape->count; i++) {
        if ((shape->rows[i].flags & DIALECT_DUE) != 0 && (seen >> i & 1) == 0) {
            dialect_refuse(self, shape->rows[i].theirs, "is required");
        }
    }
    if (shape->kept_count > 0 && self->err == BAY_OK) {
        read_metadata(self, shape, json_get(theirs, metadata_name));
    }
    self->object = outer;
}

void dialect_write_members(dialect *self, const dialect_shape *shape, json_val ours)
{
    json_val outer = self->object;
    self->object = ours;
    uint32_t seen = 0;
    size_t expected = 0;
    json_iter iter = json_iter_of(ours);
    while (json_next(&iter)) {
        size_t i = row_named(shape, iter.key, false, expected);
        expected = i < shape->count ? i + 1 : expected;
        if (i == shape->count || shape->rows[i].theirs.len == 0 || (seen >> i & 1) != 0 ||
            json_is(iter.value, JSON_NULL)) {
            continue;
        }
        seen |= 1U << i;
        json_key_word(&self->to, shape->rows[i].theirs);
        if (shape->rows[i].write != NULL) {
            shape->rows[i].write(self, iter.value);
        } else {
            json_put_val(&self->to, iter.value);
        }
    }
    for (size_t i = 0; i < shape->count; i++) {
        if ((shape->rows[i].flags & DIALECT_FILL) != 0 && (seen >> i & 1) == 0) {
            json_key_word(&self->to, shape->rows[i].theirs);
            json_put_word(&self->to, STR(""));
        }
    }
    if (shape->kept_count > 0) {
        write_metadata(self, shape, ours);
    }
    self->object = outer;
}

void dialect_read_object(dialect *self, const dialect_shape *shape, json_val theirs)
{
    if (!json_is(theirs, JSON_OBJECT)) {
        dialect_refuse(self, STR(""), "must be an object");
        json_put_null(&self->to);
        return;
    }
    json_open_object(&self->to);
    dialect_read_members(self, shape, theirs);
    dialect_close_object(self);
}

void dialect_write_object(dialect *self, const dialect_shape *shape, json_val ours)
{
    json_open_object(&self->to);
    dialect_write_members(self, shape, ours);
    dialect_close_object(self);
}

void dialect_each(dialect *self, json_val array, dialect_turn *turn)
{
    json_open_array(&self->to);
    dialect_place here = {self->place, {NULL, 0}, 0};
    json_iter iter = json_iter_of(array);
    for (; self->err == BAY_OK && json_next(&iter); here.index++) {
        self->place = &here;
        turn(self, iter.value);
    }
    self->place = here.outer;
    dialect_close_array(self);
}

void dialect_copy(dialect *self, json_val object, bay_str name, bay_str as)
{
    json_val value = json_get(object, name);
    if (dialect_is_there(value)) {
        json_key_word(&self->to, as);
        json_put_val(&self->to, value);
    }
}

void dialect_nothing(dialect *self, json_val value)
{
    (void)value;
    json_open_object(&self->to);
    dialect_close_object(self);
}

void dialect_null(dialect *self, json_val value)
{
    (void)value;
    json_put_null(&self->to);
}

void dialect_put_data(dialect *self, json_val data)
{
    if (json_is(data, JSON_OBJECT)) {
        json_put_val(&self->to, data);
        return;
    }
    json_open_object(&self->to);
    json_key_lit(&self->to, "value");
    json_put_val(&self->to, data);
    dialect_close_object(self);
}
