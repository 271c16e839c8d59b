/* Defaults: what a schema gives for members that an instance leaves out. `default` is an annotation;
 * this is what a program does with it that wants the values.
 *
 * Followed are `properties` and `items` of the schema itself: what stands behind a $ref or in allOf
 * and the like is not looked at. Schemas here are those that schema_compile has accepted, and
 * instances those that satisfy them: their depth bounds the recursion. */
#ifndef SCHEMA_DEFAULTS_H
#define SCHEMA_DEFAULTS_H

#include "patchbay/types.h"
#include "json/json.h"
#include "json/writer.h"

/* Which absent members get their default. */
typedef enum defaults_of {
    DEFAULTS_OF_OPTIONAL, /* a required one stays absent, and is missed by the check */
    DEFAULTS_OF_ALL,
} defaults_of;

/* Is there a default at all? */
bool schema_has_defaults(json_val root);
/* Does the instance lack one? */
bool schema_lacks_default(json_val root, json_val instance, defaults_of which);
/* Writes the instance, its own members byte for byte, with the defaults that it lacks behind them,
 * in the schema's order. Errors: stick in the writer. */
void schema_put_defaults(json_val root, json_val instance, defaults_of which, json_writer *out);

/* Each default, and (`with_choices`) each value of `enum` and `const` beside a title, satisfies the
 * schema that it stands in.
 * Errors: BAY_ERR_INVALID, told in `diag` with its place; BAY_ERR_UNSUPPORTED: the schema refers to
 * a place that is not in $defs or definitions, so that its part cannot be compiled alone;
 * BAY_ERR_NOMEM. */
bay_err schema_check_defaults(json_val root, bool with_choices, bay_diag *diag) BAY_MUST_CHECK;

#endif
