/* The values of ProtoJSON beyond plain JSON: enums, integers that may be strings, times, bytes as
 * base64. Private to a2a/. */
#ifndef A2A_SCALAR_H
#define A2A_SCALAR_H

#include "a2a/table.h"

/* The number of an enum's value, given by name or number; -1: unknown. */
int a2a_enum_read(a2a_kind kind, json_val value);
/* Its name; empty: unknown. */
bay_str a2a_enum_name(a2a_kind kind, uint64_t number);

/* An integer, also one in a string. BAY_ERR_TYPE, BAY_ERR_RANGE. */
bay_err a2a_int32_read(json_val value, int32_t *out) BAY_MUST_CHECK;

/* RFC 3339, any offset and any fraction (truncated to nanoseconds), the years 1 to 9999. */
bool a2a_time_read(bay_str text, int64_t *out_seconds, int32_t *out_nanos);
enum { A2A_TIME_BYTES = 24 };
/* Whether a2a_time_write would write it so. For a text that a2a_time_read accepts. */
bool a2a_time_is_normal(bay_str text);
/* "2026-01-31T23:59:59.123Z"; false: not in the years 1 to 9999, or invalid nanoseconds. */
bool a2a_time_write(int64_t seconds, int32_t nanos, char out[A2A_TIME_BYTES]);

/* The kind of base64; either alphabet, padded or not, but not both alphabets at once. */
typedef enum a2a_base64 { A2A_BASE64_NOT, A2A_BASE64_OTHER, A2A_BASE64_NORMAL } a2a_base64;
a2a_base64 a2a_base64_of(bay_str text, size_t *out_bytes);
/* Appends it in the standard alphabet, padded. */
void a2a_base64_put(buf *out, bay_str text);

#endif
