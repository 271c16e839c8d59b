/* Tables of fields (patchbay/schema.h) as JSON Schema, and as the argument list of a prompt. */
#ifndef SDK_FIELDS_H
#define SDK_FIELDS_H

#include "patchbay/schema.h"
#include "json/json.h"

enum {
    FIELDS_MAX_DEPTH = 16, /* tables inside each other: one that holds itself ends here */
    FIELDS_MAX = 4096,     /* fields of a table and of those inside it */
};

typedef enum fields_use {
    FIELDS_OF_OBJECT,   /* input or output of a tool */
    FIELDS_OF_FORM,     /* a requestedSchema of mcp 2025-11-25: flat, open */
    FIELDS_OF_OLD_FORM, /* … of mcp 2025-06-18: titles of choices are enumNames */
} fields_use;

/* Renders `fields` (NULL: no members). BAY_ERR_INVALID: the table contradicts itself, `diag` (not
 * NULL) says where and why; BAY_ERR_NOMEM. Owns: `*out` is the caller's. */
bay_err sdk_fields_schema(const bay_field *fields, fields_use use, bay_json **out,
                          bay_diag *diag) BAY_MUST_CHECK;
/* The `arguments` of a prompt, which are texts: an array. */
bay_err sdk_fields_arguments(const bay_field *fields, bay_json **out,
                             bay_diag *diag) BAY_MUST_CHECK;

#endif
