/* The form of an elicitation: what the person filled in, completed by the schema's defaults and
 * held against the schema before it is sent. */
#ifndef SDK_CLIENT_FORM_H
#define SDK_CLIENT_FORM_H

#include "schema/schema.h"
#include "json/writer.h"

/* Writes the form's fields as an object: the members of `content` (an object, or missing) byte for
 * byte, then the defaults of the properties that it leaves out, in the schema's order.
 * Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT. Source: mcp 2025-11-25 client/elicitation, Requested
 * Schema. */
bay_err form_complete(json_val wanted, json_val content, arena *memory,
                      json_writer *out) BAY_MUST_CHECK;

/* Does a completed form satisfy the compiled schema? BAY_ERR_INVALID with the first rule it
 * breaks. */
bay_err form_check(const schema *compiled, json_val form, bay_diag *diag) BAY_MUST_CHECK;

#endif
