/* JSON that a program reads: values in the index of the text. A text with escapes is decoded once,
 * into the memory of the document. */
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/json_parts.h"

typedef struct decoded_text {
    struct decoded_text *next;
    size_t at; /* of the value */
    bay_str text;
} decoded_text;

typedef struct own_document {
    bay_document document;
    arena memory;
} own_document;

bay_err bay_document_new(bay_str text, bay_document **out, bay_diag *diag)
{
    if (out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "bay_document_new: `out` is NULL");
    }
    own_document *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    arena_init(&self->memory, SIZE_MAX);
    self->document.memory = &self->memory;
    bay_err err = json_parse(&self->document.doc, text, NULL, &self->memory, diag);
    if (err != BAY_OK) {
        bay_document_free(&self->document);
        return err;
    }
    *out = &self->document;
    return BAY_OK;
}

void bay_document_free(bay_document *document)
{
    if (document != NULL) {
        own_document *self = CONTAINER_OF(document, own_document, document);
        arena_fini(&self->memory);
        mem_free(self);
    }
}

bay_value bay_document_root(const bay_document *document)
{
    return document != NULL ? sdk_value(document, json_root(&document->doc)) : (bay_value){0};
}

/* ---- finding --------------------------------------------------------------------------------- */

bay_type bay_value_type(bay_value value)
{
    static const bay_type types[] = {
        [JSON_MISSING] = BAY_TYPE_NONE,  [JSON_NULL] = BAY_TYPE_NULL,
        [JSON_FALSE] = BAY_TYPE_BOOLEAN, [JSON_TRUE] = BAY_TYPE_BOOLEAN,
        [JSON_NUMBER] = BAY_TYPE_NUMBER, [JSON_STRING] = BAY_TYPE_STRING,
        [JSON_ARRAY] = BAY_TYPE_ARRAY,   [JSON_OBJECT] = BAY_TYPE_OBJECT,
    };
    return types[json_kind_of(sdk_val(value))];
}

bay_value bay_value_get_str(bay_value object, bay_str name)
{
    return sdk_value(object.document, json_get(sdk_val(object), name));
}

bay_value bay_value_get(bay_value object, const char *name)
{
    return name != NULL ? bay_value_get_str(object, str_of(name)) : (bay_value){0};
}

bay_value bay_value_item(bay_value array, size_t index)
{
    return sdk_value(array.document, json_item(sdk_val(array), index));
}

bay_value bay_value_pointer(bay_value root, const char *pointer)
{
    return pointer != NULL ? sdk_value(root.document, json_pointer(sdk_val(root), str_of(pointer)))
                           : (bay_value){0};
}

size_t bay_value_count(bay_value value)
{
    return json_count(sdk_val(value));
}

/* ---- text ------------------------------------------------------------------------------------ */

static const bay_str nothing = {NULL, 0};

/* A second decoding would take memory again: a program may read a value as often as it likes. */
static bay_str decode(bay_document *self, json_val value)
{
    decoded_text **slot = &self->decoded[value.at % DOCUMENT_SLOTS];
    for (decoded_text *one = *slot; one != NULL; one = one->next) {
        if (one->at == value.at) {
            return one->text;
        }
    }
    decoded_text *made = arena_alloc(self->memory, sizeof(*made));
    if (made == NULL || json_str(value, self->memory, &made->text) != BAY_OK) {
        return nothing;
    }
    made->at = value.at;
    made->next = *slot;
    *slot = made;
    return made->text;
}

static bay_str text_of(const bay_document *document, json_val value)
{
    bay_str text = nothing;
    if (json_str_plain(value, &text)) {
        return text;
    }
    bay_document *self = (bay_document *)document; /* what is decoded is not the document */
    if (self->lock != NULL) {
        pthread_mutex_lock(self->lock);
    }
    text = decode(self, value);
    if (self->lock != NULL) {
        pthread_mutex_unlock(self->lock);
    }
    return text;
}

bay_str bay_value_str(bay_value value)
{
    json_val at = sdk_val(value);
    return at.doc == NULL             ? nothing
           : json_is(at, JSON_STRING) ? text_of(value.document, at)
                                      : json_raw(at);
}

bay_str bay_value_str_or(bay_value value, const char *fallback)
{
    bay_str text = bay_value_str(value);
    return text.at != NULL ? text : str_of(fallback);
}

bay_str bay_value_json(bay_value value)
{
    return value.document != NULL ? json_raw(sdk_val(value)) : nothing;
}

bool bay_value_next(bay_value container, bay_iter *iter)
{
    json_val inside = sdk_val(container);
    if (iter == NULL || inside.doc == NULL) {
        return false;
    }
    json_iter at = json_iter_of(inside);
    /* 0: at the beginning, as after the end, and in another container than before */
    if (iter->reserved[0] > at.next && iter->reserved[0] <= at.end &&
        iter->reserved[1] == inside.at) {
        at.next = (uint32_t)iter->reserved[0];
    }
    if (!json_next(&at)) {
        *iter = (bay_iter){0};
        return false;
    }
    iter->name = at.key.doc != NULL ? text_of(container.document, at.key) : nothing;
    iter->value = sdk_value(container.document, at.value);
    iter->reserved[0] = at.next;
    iter->reserved[1] = inside.at;
    return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

bay_err bay_value_int(bay_value value, int64_t *out)
{
    json_val at = sdk_val(value);
    return at.doc == NULL ? BAY_ERR_NOT_FOUND : out == NULL ? BAY_ERR_INVALID : json_int64(at, out);
}

bay_err bay_value_double(bay_value value, double *out)
{
    json_val at = sdk_val(value);
    return at.doc == NULL ? BAY_ERR_NOT_FOUND
           : out == NULL  ? BAY_ERR_INVALID
                          : json_double(at, out);
}

bay_err bay_value_bool(bay_value value, bool *out)
{
    json_kind kind = json_kind_of(sdk_val(value));
    if (kind != JSON_TRUE && kind != JSON_FALSE) {
        return kind == JSON_MISSING ? BAY_ERR_NOT_FOUND : BAY_ERR_TYPE;
    }
    if (out == NULL) {
        return BAY_ERR_INVALID;
    }
    *out = kind == JSON_TRUE;
    return BAY_OK;
}

int64_t bay_value_int_or(bay_value value, int64_t fallback)
{
    err_ignore(bay_value_int(value, &fallback)); /* which leaves it as it is */
    return fallback;
}

double bay_value_double_or(bay_value value, double fallback)
{
    err_ignore(bay_value_double(value, &fallback)); /* which leaves it as it is */
    return fallback;
}

bool bay_value_bool_or(bay_value value, bool fallback)
{
    err_ignore(bay_value_bool(value, &fallback)); /* which leaves it as it is */
    return fallback;
}
