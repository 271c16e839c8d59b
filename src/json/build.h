/* Lossless JSON, part three: documents that this process makes.
 *
 * json_parse is for text from outside: a peer, a file, a store, a user of the public API. Text that
 * this process has written is not parsed again:
 *
 * - Code that reads a value gets a json_val. A new value is written with a json_builder, which
 *   makes the index while it writes the text. Parts of other documents (json_put_val,
 *   json_put_members) are copied with their index, without reading their text. Code that only
 *   passes the value on uses json_raw, which returns the text of the same json_val.
 * - Code that keeps a value for later keeps a clone (json_clone, json_clone_in), not its text.
 * - Code that never reads a value gets its text alone (bay_str). A missing value is JSON_NONE; an
 *   object without members is json_empty_object.
 *
 * tools/parses.txt lists each call of json_parse with its reason; tools/lint-text checks the list.
 */
#ifndef JSON_BUILD_H
#define JSON_BUILD_H

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"
#include "json/writer.h"

struct json_index {
    json_tape *tape;
    uint32_t count;
    uint32_t cap;
    uint32_t parent; /* the innermost open container */
    bool is_deep;
    size_t at; /* end of the last noted token */
};

typedef struct json_builder {
    json_writer writer;
    buf text;
    json_index index;
    arena *memory;
    json_doc doc; /* returned by json_builder_view */
} json_builder;

/* A document whose text has at most `max_bytes` and whose index has at most the values that
 * json_default_limits allow. json_builder_end stores it in `memory`, which may be NULL if that
 * function is not called. The returned writer belongs to the builder and is valid until the builder
 * ends. Write everything through it and nothing to its buf. The builder must not move meanwhile. */
json_writer *json_builder_init(json_builder *self, arena *memory, size_t max_bytes);
/* Like json_builder_init, for secrets: the builder's memory is wiped, except `memory`. */
json_writer *json_builder_init_secret(json_builder *self, arena *memory, size_t max_bytes);

/* Ends the builder, also on failure, and copies the document to the arena. BAY_ERR_LIMIT,
 * BAY_ERR_NOMEM: an error while writing; BAY_ERR_SYNTAX: not exactly one value; BAY_ERR_TYPE: a
 * value was missing. The document is marked as deep if one of its parts is: the text around the
 * parts adds at most JSON_WRITER_DEPTH levels. */
bay_err json_builder_end(json_builder *self, json_val *out) BAY_MUST_CHECK;
/* The document without a copy, valid until more is written or the builder is dropped. The caller
 * must drop it. Errors as for json_builder_end, except those of the arena. */
bay_err json_builder_view(json_builder *self, json_val *out) BAY_MUST_CHECK;
/* Ends the builder without a document. */
void json_builder_drop(json_builder *self);

/* Writes the members or elements of the container that is open in `from` to the container that is
 * open in `to`. Both have the same kind, and `from` has nothing open inside that container. `from`
 * stays open. */
void json_put_partial(json_writer *to, const json_builder *from);
/* Bytes that a clone of the text written so far would need. */
size_t json_builder_clone_bytes(const json_builder *self);
/* The first member with this name in the innermost open object, or JSON_MISSING. Valid until more
 * is written. */
json_val json_builder_get(json_builder *self, bay_str key);

/* {}; belongs to no arena and is valid in any thread at any time. */
json_val json_empty_object(void);

#endif
