/* JSON that a program writes. json/ writes and indexes it; here it is checked that what the program
 * does makes sense, because json/ takes that for granted. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/format.h"
#include "sdk/json_parts.h"

struct bay_json {
    json_builder builder;
    uint64_t objects; /* one bit a level, the innermost the lowest: it is an object */
    bay_err err;      /* the first mistake; from then on nothing is written */
    const char *fault;
    bool is_checked; /* no name stands twice */
    arena memory;    /* of texts that are read from it */
    bay_document document;
};

bay_json *bay_json_new(void)
{
    bay_json *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        json_builder_init(&self->builder, NULL, JSON_MAX_BYTES);
        arena_init(&self->memory, JSON_MAX_BYTES * (size_t)2);
    }
    return self;
}

void bay_json_free(bay_json *json)
{
    if (json != NULL) {
        json_builder_drop(&json->builder);
        arena_fini(&json->memory);
        mem_free(json);
    }
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistake(bay_json *self, bay_err err, const char *function, const char *name,
                    const char *fault)
{
    self->err = err;
    self->fault = fault;
    LOG(LOG_ERROR, "json", "%s%s%.64s%s: %s; nothing more is written", function,
        name != NULL ? " \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "", fault);
}

const char *sdk_json_fault(const bay_json *self, bay_err err)
{
    if (self == NULL) {
        return "out of memory";
    }
    if (self->err != BAY_OK) {
        return self->fault;
    }
    return err == BAY_ERR_STATE ? "it is not whole: nothing was written, or something is open"
                                : bay_err_text(err);
}

bay_json *sdk_json_broken(bay_err err, const char *fault)
{
    bay_str kept;
    bay_json *self = bay_json_new();
    if (self != NULL) {
        bool is_kept = arena_dup(&self->memory, str_of(fault), &kept) == BAY_OK;
        mistake(self, err, "bay_fields_json", NULL, is_kept ? kept.at : bay_err_text(err));
    }
    return self;
}

/* The value that is written next may stand where it is to stand, and its name is written. NULL: it
 * may not, or nothing is written any more. */
static json_writer *begin(bay_json *self, const char *name, const char *function)
{
    if (self == NULL || self->err != BAY_OK) {
        return NULL;
    }
    json_writer *writer = &self->builder.writer;
    bool is_member = writer->depth > 0 && (self->objects & 1) != 0;
    const char *fault = NULL;
    if (writer->depth == 0 && self->builder.text.len > 0) {
        fault = "the value before it is whole, and there is but one";
    } else if (is_member && name == NULL && !writer->after_key) {
        fault = "a member of an object needs a name";
    } else if (name != NULL && writer->after_key) {
        fault = "bay_json_name gave it a name already";
    } else if (name != NULL && !is_member) {
        fault = "what has a name stands in an object";
    }
    if (fault != NULL) {
        mistake(self, BAY_ERR_STATE, function, name, fault);
        return NULL;
    }
    if (name != NULL) {
        json_key(writer, str_of(name));
    }
    return writer;
}

/* ---- containers ------------------------------------------------------------------------------ */

static json_writer *open(bay_json *self, const char *name, bool is_object, const char *function)
{
    if (self != NULL && self->err == BAY_OK && self->builder.writer.depth == JSON_WRITER_DEPTH) {
        mistake(self, BAY_ERR_DEPTH, function, name, "there are more than 64 levels");
    }
    json_writer *writer = begin(self, name, function);
    if (writer != NULL) {
        self->objects = self->objects << 1 | is_object;
    }
    return writer;
}

void bay_json_object(bay_json *json, const char *name)
{
    json_writer *writer = open(json, name, true, __func__);
    if (writer != NULL) {
        json_open_object(writer);
    }
}

void bay_json_array(bay_json *json, const char *name)
{
    json_writer *writer = open(json, name, false, __func__);
    if (writer != NULL) {
        json_open_array(writer);
    }
}

void bay_json_end(bay_json *json)
{
    if (json == NULL || json->err != BAY_OK) {
        return;
    }
    json_writer *writer = &json->builder.writer;
    if (writer->depth == 0 || writer->after_key) {
        mistake(json, BAY_ERR_STATE, __func__, NULL,
                writer->depth == 0 ? "nothing is open" : "the name before it has no value");
        return;
    }
    if ((json->objects & 1) != 0) {
        json_close_object(writer);
    } else {
        json_close_array(writer);
    }
    json->objects >>= 1;
}

void bay_json_name(bay_json *json, bay_str name)
{
    if (json == NULL || json->err != BAY_OK) {
        return;
    }
    json_writer *writer = &json->builder.writer;
    if (writer->depth == 0 || (json->objects & 1) == 0 || writer->after_key) {
        mistake(json, BAY_ERR_STATE, __func__, NULL,
                writer->after_key ? "the name before it has no value"
                                  : "what has a name stands in an object");
        return;
    }
    json_key(writer, name);
}

/* ---- values ---------------------------------------------------------------------------------- */

void bay_json_text_str(bay_json *json, const char *name, bay_str text)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_str(writer, text);
    }
}

void bay_json_text(bay_json *json, const char *name, const char *text)
{
    if (text == NULL) {
        bay_json_null(json, name);
    } else {
        bay_json_text_str(json, name, str_of(text));
    }
}

void bay_json_textf(bay_json *json, const char *name, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    if (text.err == BAY_OK) {
        bay_json_text_str(json, name, buf_view(&text));
    } else if (json != NULL && json->err == BAY_OK) {
        mistake(json, text.err, __func__, name, bay_err_text(text.err));
    }
    buf_fini(&text);
}

void bay_json_int(bay_json *json, const char *name, int64_t number)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_int(writer, number);
    }
}

void bay_json_uint(bay_json *json, const char *name, uint64_t number)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_uint(writer, number);
    }
}

void bay_json_double(bay_json *json, const char *name, double number)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_double(writer, number);
    }
}

void bay_json_bool(bay_json *json, const char *name, bool value)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_bool(writer, value);
    }
}

void bay_json_null(bay_json *json, const char *name)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL) {
        json_put_null(writer);
    }
}

void bay_json_raw_str(bay_json *json, const char *name, bay_str text)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer == NULL) {
        return;
    }
    json_put_raw(writer, text); /* reads it */
    bay_err err = writer->out->err;
    if (err != BAY_OK) {
        mistake(json, err, __func__, name,
                err == BAY_ERR_SYNTAX ? "the text is no JSON" : bay_err_text(err));
    }
}

void bay_json_raw(bay_json *json, const char *name, const char *text)
{
    bay_json_raw_str(json, name, str_of(text));
}

void bay_json_value(bay_json *json, const char *name, bay_value value)
{
    json_writer *writer = begin(json, name, __func__);
    if (writer != NULL && value.document == NULL) {
        mistake(json, BAY_ERR_NOT_FOUND, __func__, name, "the value is absent");
    } else if (writer != NULL) {
        json_put_val(writer, sdk_val(value));
    }
}

bay_json *bay_json_of_str(bay_str text)
{
    bay_json *self = bay_json_new();
    bay_json_raw_str(self, NULL, text);
    return self;
}

bay_json *bay_json_of(const char *text)
{
    return bay_json_of_str(str_of(text));
}

/* ---- what was written ------------------------------------------------------------------------ */

static bay_err whole(bay_json *self, json_val *out)
{
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (self->err != BAY_OK) {
        return self->err;
    }
    bay_err err = json_builder_view(&self->builder, out);
    if (err == BAY_ERR_SYNTAX) {
        return BAY_ERR_STATE;
    }
    if (err == BAY_OK && self->builder.doc.is_deep) {
        err = BAY_ERR_DEPTH; /* of a text that was given */
    }
    if (err == BAY_OK && !self->is_checked) {
        err = json_check_duplicates(*out, NULL);
        self->is_checked = err == BAY_OK;
        if (err == BAY_ERR_DUPLICATE) {
            mistake(self, err, "bay_json", NULL, "a name stands twice in an object");
        }
    }
    return err;
}

bay_err sdk_json_val(bay_json *self, json_kind wanted, json_val *out)
{
    json_val made;
    bay_err err = whole(self, &made);
    if (err == BAY_OK && wanted != JSON_MISSING && !json_is(made, wanted)) {
        err = BAY_ERR_TYPE;
    }
    if (err == BAY_OK) {
        *out = made;
    }
    return err;
}

bay_err bay_json_error(bay_json *json)
{
    json_val made;
    return whole(json, &made);
}

bay_str bay_json_view(bay_json *json)
{
    json_val made;
    return whole(json, &made) == BAY_OK ? json_raw(made) : (bay_str){NULL, 0};
}

bay_value bay_json_root(bay_json *json)
{
    json_val made;
    if (whole(json, &made) != BAY_OK) {
        return (bay_value){NULL, 0};
    }
    if (json->document.memory == NULL) {
        json->document = (bay_document){.doc = *made.doc, .memory = &json->memory};
    }
    return sdk_value(&json->document, made);
}
