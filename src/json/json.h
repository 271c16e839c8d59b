/* Lossless JSON, part one: reading. The reader indexes the caller's bytes and never changes them. A
 * value is a place in these bytes, so numbers, escapes, order and duplicates are preserved exactly.
 * Strict RFC 8259, UTF-8 validated (escaped surrogates must pair), bounded.
 *
 * Lifetimes: the text and the arena must outlive the document; values point into the document. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "patchbay/types.h"

typedef enum json_kind {
    JSON_MISSING, /* no such member; every function accepts it */
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
} json_kind;

typedef struct json_limits {
    size_t max_bytes;
    uint32_t max_depth;  /* with JSON_MARK_DEPTH added, deeper texts are read and marked */
    uint32_t max_values; /* of the whole document; keys count */
} json_limits;

#define JSON_MARK_DEPTH (1u << 31)

/* 64 MiB, 128 levels, 4 Mi values. */
extern const json_limits json_default_limits;
/* The same with JSON_MARK_DEPTH. */
extern const json_limits json_any_depth;

typedef struct json_tape json_tape; /* known inside json/ only */

typedef struct json_doc {
    bay_str text;
    const json_tape *tape;
    uint32_t count;
    bool is_deep; /* has more levels than the limits allow */
} json_doc;

typedef struct json_val {
    const json_doc *doc; /* NULL: missing */
    size_t at;           /* as wide as the pointer: padding would make copying a value slower */
} json_val;

#define JSON_NONE ((json_val){NULL, 0})

/* Indexes `text`. BAY_ERR_SYNTAX, BAY_ERR_UTF8, BAY_ERR_DEPTH, BAY_ERR_LIMIT (with offset in
 * `diag`), BAY_ERR_NOMEM. White space around the value is allowed, other text is not. limits NULL:
 * the defaults. */
bay_err json_parse(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                   bay_diag *diag) BAY_MUST_CHECK;

json_val json_root(const json_doc *doc);
/* A document of this value alone, in one allocation (mem_free); its bytes are unchanged.
 * BAY_ERR_TYPE: the value is missing; BAY_ERR_NOMEM. */
bay_err json_clone(json_val value, json_doc **out) BAY_MUST_CHECK;
/* Like json_clone, in the caller's memory: json_clone_bytes, aligned like a pointer. The value must
 * not be missing. */
size_t json_clone_bytes(json_val value);
json_doc *json_clone_at(json_val value, void *memory);
/* Like json_clone, in an arena; a missing value stays missing. BAY_ERR_NOMEM. */
bay_err json_clone_in(json_val value, arena *memory, json_val *out) BAY_MUST_CHECK;
/* Like json_clone_in, without any occurrence of `cut`: a text that needs no escapes and occurs only
 * inside strings. BAY_ERR_NOMEM. */
bay_err json_clone_without(json_val value, bay_str cut, arena *memory,
                           json_val *out) BAY_MUST_CHECK;
json_kind json_kind_of(json_val value);
static inline bool json_is(json_val value, json_kind kind)
{
    return json_kind_of(value) == kind;
}

/* The exact bytes of the value (a string with its quotes); empty for JSON_MISSING. */
bay_str json_raw(json_val value);
/* Whether arrays and objects are nested in more than `levels` levels, the value itself being one.
 */
bool json_is_deeper(json_val value, uint32_t levels);
size_t json_offset(json_val value); /* of its first byte in the text */
size_t json_count(json_val value);  /* elements or members; 0 for other kinds */

/* The first member of this name (compared decoded), or JSON_MISSING, also for a non-object. */
json_val json_get(json_val object, bay_str key);
json_val json_item(json_val array, size_t index); /* linear */

/* Finds several members in one pass: out[i] is the member named keys[i], or JSON_MISSING.
 * BAY_ERR_DUPLICATE: one of the keys occurs twice (*out_duplicate, if not NULL, is its number).
 * BAY_ERR_TYPE: not an object. At most 32 keys. */
bay_err json_pick(json_val object, const bay_str *keys, size_t count, json_val *out,
                  size_t *out_duplicate) BAY_MUST_CHECK;

/* BAY_ERR_DUPLICATE, with the offset of the second key, if any object at or below `value` has two
 * members of one name. */
bay_err json_check_duplicates(json_val value, bay_diag *diag) BAY_MUST_CHECK;

/* Walks members or elements:  json_iter it = json_iter_of(v); while (json_next(&it)) … it.key,
 * it.value */
typedef struct json_iter {
    json_val key; /* a string value; JSON_MISSING in arrays */
    json_val value;
    json_val parent;
    uint32_t next;
    uint32_t end;
} json_iter;

json_iter json_iter_of(json_val container); /* no steps for other kinds */
bool json_next(json_iter *iter);

/* RFC 6901; JSON_MISSING if the pointer finds nothing. */
json_val json_pointer(json_val root, bay_str pointer);

/* Strings. json_str: the text itself if it has no escapes, otherwise decoded into the arena.
 * BAY_ERR_TYPE, BAY_ERR_NOMEM, BAY_ERR_LIMIT. The text may contain NUL (from \u0000). */
bay_err json_str(json_val value, arena *memory, bay_str *out) BAY_MUST_CHECK;
/* The same of a part: `most` bytes of the string as it is written, from byte `start` on, each end moved
 * forward to the next whole character. */
bay_err json_str_part(json_val value, size_t start, size_t most, arena *memory,
                      bay_str *out) BAY_MUST_CHECK;
bool json_str_eq(json_val value, bay_str text); /* decoded; false for a non-string */
bool json_str_same(json_val a, json_val b);     /* decoded; false unless both are strings */
/* The text if it has no escapes; false otherwise, and for a non-string. */
bool json_str_plain(json_val value, bay_str *out);
size_t json_str_length(json_val value); /* in characters (code points); 0 for a non-string */
/* Whether it is a string without lone surrogates, which json_str can decode. */
bool json_str_is_whole(json_val value);
bool json_is_utf8(bay_str text); /* well-formed UTF-8 */

/* Numbers are not approximated: BAY_ERR_RANGE if the type cannot represent the value exactly (1.0
 * and 1e2 are integers, 2^63 is no int64, 0.5 is no integer). json_double rounds to the nearest
 * double; BAY_ERR_RANGE: overflow. For the text use json_raw. */
bay_err json_int64(json_val value, int64_t *out) BAY_MUST_CHECK;
bay_err json_uint64(json_val value, uint64_t *out) BAY_MUST_CHECK;
bay_err json_double(json_val value, double *out) BAY_MUST_CHECK;
bool json_is_integer(json_val value); /* mathematically: 1.0 and 10e-1 too */
/* Whether two numbers' texts are mathematically equal, whatever their size ("1.0" and "1", "1e400"
 * and "10e399"). */
bool json_number_eq(bay_str a, bay_str b);
/* Mathematical order, whatever their size: below, equal to or above 0. */
int json_number_cmp(bay_str a, bay_str b);
/* Whether `number` is an integer multiple of `step`. Exact, also for decimals. BAY_ERR_RANGE:
 * `step` is not above zero or has more than 18 significant digits. */
bay_err json_number_is_multiple(bay_str number, bay_str step, bool *out) BAY_MUST_CHECK;
/* Equal strings and equal numbers have the same hash, however they are written. Other values hash
 * by their kind (containers also by their count) alone. */
uint64_t json_hash(json_val value, uint64_t seed);
bool json_true(json_val value); /* whether it is the literal true */

#endif
