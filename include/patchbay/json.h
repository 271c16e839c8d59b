/* JSON, written and read.
 *
 * A bay_json is JSON that the program writes, value by value:
 *
 *     bay_json *json = bay_json_new();
 *     bay_json_object(json, NULL);
 *     bay_json_text_str(json, "city", city);
 *     bay_json_int(json, "celsius", 17);
 *     bay_json_end(json);
 *     bay_call_reply_json(call, json);
 *
 * Whatever the values are, no value adds or changes a member: texts are escaped, JSON that is given
 * is read first, and a name stands once in an object. Functions that end in _json take what they
 * are given, also when they fail.
 *
 * A bay_value is one value of a JSON text, read where it stands. Texts without escapes are not
 * copied. There is a value for what is absent, and every function below takes it.
 *
 * For the whole header:
 * Owns: strings given are copied; views and values that are returned live as long as what they are
 * read from. Errors: what cannot be written (a member without a name or outside an object, a second
 * value behind the first, JSON that is none, no memory) is an error at once: a line in the log, and
 * bay_json_error from then on. Nothing more is written then, and the function that the bay_json is
 * given to fails with it. Units: lengths in bytes. Threads: one at a time for each bay_json and
 * each document; values of a reply by any. Source: RFC 8259; pointers: RFC 6901. */
#ifndef PATCHBAY_JSON_H
#define PATCHBAY_JSON_H

#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_json bay_json;         /* JSON that is being written */
typedef struct bay_document bay_document; /* JSON text of the program's own that is read */

/* One value of a text that is read. Passed by value; what is in it is the library's. */
typedef struct bay_value {
    const bay_document *document; /* NULL: absent */
    size_t at;
} bay_value;

/* The kinds of values. A field of a table (patchbay/schema.h) may also be an integer; a value that
 * was read is a number then. */
typedef enum bay_type {
    BAY_TYPE_NONE, /* reading: there is no such value; in a table: any value */
    BAY_TYPE_STRING,
    BAY_TYPE_INTEGER,
    BAY_TYPE_NUMBER,
    BAY_TYPE_BOOLEAN,
    BAY_TYPE_OBJECT,
    BAY_TYPE_ARRAY,
    BAY_TYPE_NULL,
} bay_type;

/* ---- writing ------------------------------------------------------------------------------------
 * `name` is the member's name inside an object, and NULL elsewhere. NULL for the bay_json is fine:
 * out of memory. At most 64 levels and 64 MiB. */

BAY_API bay_json *bay_json_new(void); /* NULL: out of memory */
/* One whole value from text: hand-written JSON, or a peer's. What is no JSON is an error of the
 * bay_json. */
BAY_API bay_json *bay_json_of(const char *text);
BAY_API bay_json *bay_json_of_str(bay_str text);
BAY_API void bay_json_free(bay_json *json); /* NULL is fine; only what was not given away */

/* Opens an object or an array; bay_json_end closes the one opened last. */
BAY_API void bay_json_object(bay_json *json, const char *name);
BAY_API void bay_json_array(bay_json *json, const char *name);
BAY_API void bay_json_end(bay_json *json);
/* The name of the next member, where it does not end in NUL; the value is then given with NULL. */
BAY_API void bay_json_name(bay_json *json, bay_str name);

/* NULL is null; what is not UTF-8 becomes U+FFFD. */
BAY_API void bay_json_text(bay_json *json, const char *name, const char *text);
BAY_API void bay_json_textf(bay_json *json, const char *name, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API void bay_json_text_str(bay_json *json, const char *name, bay_str text);
BAY_API void bay_json_int(bay_json *json, const char *name, int64_t number);
BAY_API void bay_json_uint(bay_json *json, const char *name, uint64_t number);
/* The shortest number that reads back; null if it is not finite. */
BAY_API void bay_json_double(bay_json *json, const char *name, double number);
BAY_API void bay_json_bool(bay_json *json, const char *name, bool value);
BAY_API void bay_json_null(bay_json *json, const char *name);
/* One whole value from JSON text. */
BAY_API void bay_json_raw(bay_json *json, const char *name, const char *text);
BAY_API void bay_json_raw_str(bay_json *json, const char *name, bay_str text);
/* A value that was read, byte for byte; an absent one is an error. */
BAY_API void bay_json_value(bay_json *json, const char *name, bay_value value);

/* The first error; BAY_ERR_STATE also: it is not one whole value yet; BAY_ERR_NOMEM: NULL. */
BAY_API bay_err bay_json_error(bay_json *json) BAY_MUST_CHECK;
/* What was written, and the same to be read: empty, and absent, where bay_json_error is not BAY_OK.
 */
BAY_API bay_str bay_json_view(bay_json *json);
BAY_API bay_value bay_json_root(bay_json *json);

/* ---- reading ----------------------------------------------------------------------------------
 * An absent value: BAY_TYPE_NONE, no members, empty text, BAY_ERR_NOT_FOUND. */

/* Text of the program's own, which must outlive the document. Errors: BAY_ERR_SYNTAX,
 * BAY_ERR_UTF8, BAY_ERR_DEPTH, BAY_ERR_LIMIT, told in `diag` (which may be NULL) with their offset;
 * BAY_ERR_NOMEM. */
BAY_API bay_err bay_document_new(bay_str text, bay_document **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_value bay_document_root(const bay_document *document);
BAY_API void bay_document_free(bay_document *document); /* NULL is fine */

BAY_API bay_type bay_value_type(bay_value value);
/* The member of that name; the first, where it stands twice. */
BAY_API bay_value bay_value_get(bay_value object, const char *name);
BAY_API bay_value bay_value_get_str(bay_value object, bay_str name);
BAY_API bay_value bay_value_item(bay_value array, size_t index); /* walks: see bay_value_next */
BAY_API bay_value bay_value_pointer(bay_value root, const char *pointer); /* "/rows/0/name" */
BAY_API size_t bay_value_count(bay_value value);                          /* of items or members */

/* Walks the items of an array or the members of an object:
 *
 *     bay_iter each = {0};
 *     while (bay_value_next(list, &each)) … each.name, each.value
 */
typedef struct bay_iter {
    bay_str name; /* decoded; empty in an array */
    bay_value value;
    uint64_t reserved[2]; /* where it is; zero at first */
} bay_iter;
BAY_API bool bay_value_next(bay_value container, bay_iter *iter);

/* A string decoded, any other value as its JSON; empty where it is absent. May hold NUL bytes. */
BAY_API bay_str bay_value_str(bay_value value);
BAY_API bay_str bay_value_json(bay_value value); /* the bytes of the text; a string with quotes */
/* BAY_ERR_NOT_FOUND: absent; BAY_ERR_TYPE: of another type; BAY_ERR_RANGE: no int64_t (1.0 and 1e2
 * are), or beyond double. `out` stays as it was. */
BAY_API bay_err bay_value_int(bay_value value, int64_t *out) BAY_MUST_CHECK;
BAY_API bay_err bay_value_double(bay_value value, double *out) BAY_MUST_CHECK;
BAY_API bay_err bay_value_bool(bay_value value, bool *out) BAY_MUST_CHECK;
/* The same, and `fallback` for every error. */
BAY_API bay_str bay_value_str_or(bay_value value, const char *fallback);
BAY_API int64_t bay_value_int_or(bay_value value, int64_t fallback);
BAY_API double bay_value_double_or(bay_value value, double fallback);
BAY_API bool bay_value_bool_or(bay_value value, bool fallback);

#ifdef __cplusplus
}
#endif
#endif
