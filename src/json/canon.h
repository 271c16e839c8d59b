/* The canonical form of a value, for signatures and digests. */
#ifndef JSON_CANON_H
#define JSON_CANON_H

#include "json/writer.h"

/* Appends the canonical form of `value`: no white space, members sorted by their names' UTF-16 code
 * units, numbers as ECMAScript writes the nearest double, strings with no needless escape.
 * Owns: nothing; `memory` holds eight bytes a value, 24 a member and the decoded strings.
 * Errors: BAY_ERR_INVALID for a missing value; BAY_ERR_DUPLICATE, BAY_ERR_UTF8 (a lone surrogate),
 * BAY_ERR_RANGE (no double is near), each with its offset in `diag`; BAY_ERR_NOMEM, BAY_ERR_LIMIT.
 * After an error `out` holds what it held before. Units: bytes. Threads: any. Source: RFC 8785. */
bay_err json_canon(buf *out, json_val value, arena *memory, bay_diag *diag) BAY_MUST_CHECK;

#endif
