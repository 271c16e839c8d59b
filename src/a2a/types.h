/* The messages of A2A as tables: every field of lf.a2a.v1 (1.0) and of a2a.v1 (0.3) with its names,
 * number and kind, in types.def. One walk over them checks and normalises JSON, another two turn it
 * into protobuf and back; nothing else knows fields by number.
 *
 * ProtoJSON as we read it: lowerCamel and snake_case names; enums by name or number; null as unset,
 * except where any value may stand; bytes in either base64 alphabet, padded or not; integers also
 * as strings; unknown members are dropped. As we write it: lowerCamel, names of enums, standard
 * padded base64, no unset members and no defaults but those of REQUIRED and explicitly set optional
 * fields (types.def says which may be empty), times with milliseconds and `Z`, all in one line.
 * Free-form values (metadata, data, params) are carried byte for byte, but for ends of lines
 * between their tokens.
 *
 * What is required and missing or empty, of another type, given twice (under one name or both) or
 * not the only one of its oneof is a fault with the path of the field: "message.parts[1].raw: …".
 * Whether a number makes sense (a negative historyLength) is for others to say. */
#ifndef A2A_TYPES_H
#define A2A_TYPES_H

#include "a2a/protocol.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

typedef enum a2a_type {
    A2A_TYPE_NONE,
#define A2A_TYPE(symbol, name) A2A_TYPE_##symbol,
#define A2A_FIELD(...)
#include "a2a/types.def"
#undef A2A_FIELD
#undef A2A_TYPE
    A2A_TYPES
} a2a_type;

enum {
    A2A_DEPTH = 64,   /* messages and free values inside each other, in JSON and protobuf */
    A2A_PARTS = 1000, /* of one message or artifact chunk */
    A2A_WHOLE_PARTS = 1 << 18, /* of one in a task, where chunks have become one artifact */
    A2A_PART_BYTES = 16 << 20, /* of one string or bytes field, decoded */
};

extern const json_limits a2a_json_limits; /* of every document of a peer */

/* Checks `value` against the type and appends it in normal form, unless it is in normal form
 * already: then nothing is appended and *out_is_normal is true (json_raw(value) is what to use).
 * Owns: nothing. Errors: BAY_ERR_PROTOCOL with `fault` (A2A_E_INVALID_PARAMS; A2A_E_PARSE_ERROR
 * never), BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`. Threads: any. Source: A2A 1.0.1 section 5.5 and
 * a2a.proto; ProtoJSON. */
bay_err a2a_normalise(a2a_type type, json_val value, buf *out, bool *out_is_normal,
                      a2a_fault *fault) BAY_MUST_CHECK;

/* … `value` itself where it is in normal form already, else one in `memory`, of at most so many
 * bytes; it lives as long as both. */
bay_err a2a_normal_view(a2a_type type, json_val value, size_t max_bytes, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* Protobuf to normal JSON, appended. Unknown fields are skipped; wrong wire types, truncation,
 * varints of more than 64 bits, groups, invalid UTF-8, numbers that JSON has not and more than
 * A2A_DEPTH levels are faults (A2A_E_INVALID_PARAMS). A singular message that is there several
 * times is merged; of scalars, oneofs and keys of maps the last one counts. Required fields are
 * checked as above. Errors: as a2a_normalise. Source: protocol buffers encoding; a2a.proto. */
bay_err a2a_from_protobuf(a2a_type type, bay_str bytes, buf *out, a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value in `memory`, of at most so many bytes. */
bay_err a2a_protobuf_view(a2a_type type, bay_str bytes, size_t max_bytes, arena *memory,
                          json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* JSON, normal or as a2a_normalise takes it, to protobuf, appended. What is required is not asked.
 * Numbers of free-form values become doubles, as a Struct has them: beyond 2^53 a whole number is
 * rounded, in gRPC only.
 * Errors: BAY_ERR_PROTOCOL with `fault` when a value does not fit its field, BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err a2a_to_protobuf(a2a_type type, json_val value, buf *out, a2a_fault *fault) BAY_MUST_CHECK;

#endif
