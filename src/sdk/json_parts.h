/* The inside of a bay_json and of what bay_values are read from. Shared by the sdk's files only.
 *
 * A bay_json is a json_builder with a guard before it: what the builder takes for granted (a name
 * before each member, containers that are closed, one root) is checked here, since it comes from
 * the program. What passes is written and indexed by json/ alone. */
#ifndef SDK_JSON_PARTS_H
#define SDK_JSON_PARTS_H

#include <pthread.h>

#include "patchbay/json.h"
#include "json/build.h"

enum {
    JSON_MAX_BYTES = 64 << 20, /* of one bay_json */
    DOCUMENT_SLOTS = 16,       /* of the table of decoded texts */
};

/* What values are read from: the index, and the memory that texts with escapes are decoded into. */
struct bay_document {
    json_doc doc;
    arena *memory;
    pthread_mutex_t *lock; /* guards what follows and `memory`; NULL: one thread at a time */
    struct decoded_text *decoded[DOCUMENT_SLOTS];
};

static inline json_val sdk_val(bay_value value)
{
    return value.document != NULL ? (json_val){&value.document->doc, value.at} : JSON_NONE;
}

/* `value` is of a document with the same text and index as `document`. */
static inline bay_value sdk_value(const bay_document *document, json_val value)
{
    return value.doc != NULL ? (bay_value){document, value.at} : (bay_value){NULL, 0};
}

/* … after `document` is made to be one. */
static inline bay_value sdk_value_of(bay_document *document, json_val value, arena *memory)
{
    if (value.doc == NULL) {
        return (bay_value){NULL, 0};
    }
    *document = (bay_document){.doc = *value.doc, .memory = memory};
    return (bay_value){document, value.at};
}

/* The whole value; it lives until the bay_json is freed. JSON_MISSING as `wanted`: any kind.
 * Errors: as bay_json_error; BAY_ERR_TYPE: not of the kind. */
bay_err sdk_json_val(bay_json *self, json_kind wanted, json_val *out) BAY_MUST_CHECK;
/* One that is an error from the start. NULL: out of memory. */
bay_json *sdk_json_broken(bay_err err, const char *fault);
/* What is wrong, in words for a log or a diag. */
const char *sdk_json_fault(const bay_json *self, bay_err err);

#endif
