/* The messages of A2A as tables: every field of lf.a2a.v1 (1.0) and of a2a.v1 (0.3) with its names,
 * number and kind, in types.def. One walk over them checks and normalises JSON, two others convert
 * it to protobuf and back; no other code uses field numbers.
 *
 * ProtoJSON as it is read: lowerCamel and snake_case names; enums by name or number; null as unset,
 * except where any value is allowed; bytes in either base64 alphabet, padded or not; integers also
 * as strings; unknown members are dropped. As it is written: lowerCamel, names of enums, standard
 * padded base64, no unset members and no defaults except those of REQUIRED and explicitly set
 * optional fields (types.def says which may be empty), times with milliseconds and `Z`, all in one
 * line. Free values (metadata, data, params) are copied unchanged, except line ends between their
 * tokens.
 *
 * A field that is required and missing or empty, of another type, given twice (under one name or
 * both) or not the only one of its oneof is a fault with its path: "message.parts[1].raw: …".
 * Whether a number is plausible (a negative historyLength) is checked elsewhere. */
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
    A2A_DEPTH = 64,            /* nested messages and free values, in JSON and protobuf */
    A2A_PARTS = 1000,          /* of one message or artifact chunk */
    A2A_WHOLE_PARTS = 1 << 18, /* of one in a task, assembled from chunks */
    A2A_PART_BYTES = 16 << 20, /* of one string or bytes field, decoded */
};

extern const json_limits a2a_json_limits; /* of every document of a peer */

/* Checks `value` against the type and appends it in normal form. If it is in normal form already,
 * nothing is appended and *out_is_normal is true (use json_raw(value)). Errors: BAY_ERR_PROTOCOL
 * with `fault` (A2A_E_INVALID_PARAMS; never A2A_E_PARSE_ERROR), BAY_ERR_NOMEM, BAY_ERR_LIMIT from
 * `out`. Threads: any. Source: A2A 1.0.1 section 5.5 and a2a.proto; ProtoJSON. */
bay_err a2a_normalise(a2a_type type, json_val value, buf *out, bool *out_is_normal,
                      a2a_fault *fault) BAY_MUST_CHECK;

/* … `value` itself if it is in normal form, otherwise a value in `memory`, of at most so many
 * bytes; valid as long as both. */
bay_err a2a_normal_view(a2a_type type, json_val value, size_t max_bytes, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* Appends protobuf as normal JSON. Unknown fields are skipped; wrong wire types, truncation,
 * varints of more than 64 bits, groups, invalid UTF-8, numbers that JSON cannot represent and more
 * than A2A_DEPTH levels are faults (A2A_E_INVALID_PARAMS). A repeated singular message is merged;
 * of scalars, oneofs and map keys the last one is used. Required fields are checked as above.
 * Errors: as a2a_normalise. Source: protocol buffers encoding; a2a.proto. */
bay_err a2a_from_protobuf(a2a_type type, bay_str bytes, buf *out, a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value in `memory`, of at most so many bytes. */
bay_err a2a_protobuf_view(a2a_type type, bay_str bytes, size_t max_bytes, arena *memory,
                          json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* Appends JSON, as a2a_normalise accepts it, as protobuf. Required fields are not checked. Numbers
 * of free values become doubles, as in Struct: integers beyond 2^53 are rounded, in gRPC only.
 * Errors: BAY_ERR_PROTOCOL with `fault` if a value does not fit its field, BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err a2a_to_protobuf(a2a_type type, json_val value, buf *out, a2a_fault *fault) BAY_MUST_CHECK;

#endif
