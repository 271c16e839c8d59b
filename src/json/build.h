/* Lossless JSON, part three: documents that this process makes itself.
 *
 * Parsing is for text from outside: a peer, a file, a store, a user of the public API. What this
 * process has just written is not parsed again:
 *
 * - Whoever passes a value to code that looks into it passes a json_val. One that is made new is
 *   written into a json_builder, which notes the index while the text is written. Parts of other
 *   documents (json_put_val, json_put_members) bring their index along: their text is copied, not
 *   read. For code that only passes the value on, json_raw gives the text of the same json_val.
 * - Whoever keeps a value for later keeps a clone (json_clone, json_clone_in), not its text.
 * - Text alone (a bay_str) goes where nobody looks into it, and a value without any text is
 *   JSON_NONE; for an object without members there is json_empty_object.
 *
 * tools/parses.txt lists each call of json_parse with its reason; tools/lint-text compares. */
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
    size_t at; /* where the last thing that was noted ends */
};

typedef struct json_builder {
    json_writer writer;
    buf text;
    json_index index;
    arena *memory;
    json_doc doc; /* what json_builder_view shows */
} json_builder;

/* A document whose text is at most `max_bytes` and whose index has at most the values that
 * json_default_limits allow; json_builder_end puts it into `memory`, which may be NULL if that is
 * not called. The writer that is returned is the builder's and good until its end: everything is
 * written through it, nothing into its buf. The builder must not move meanwhile. */
json_writer *json_builder_init(json_builder *self, arena *memory, size_t max_bytes);
/* The same for secrets: memory that the text is written into is wiped, but for `memory`. */
json_writer *json_builder_init_secret(json_builder *self, arena *memory, size_t max_bytes);

/* Ends it, always; the document is copied into the arena. BAY_ERR_LIMIT, BAY_ERR_NOMEM: what stuck
 * while it was written; BAY_ERR_SYNTAX when it is not exactly one value; BAY_ERR_TYPE when a value
 * was missing. The document is marked deep if a part of it is: what was written around the parts
 * adds at most JSON_WRITER_DEPTH levels. */
bay_err json_builder_end(json_builder *self, json_val *out) BAY_MUST_CHECK;
/* What was written, without a copy: good until it is written on or dropped, which must follow. The
 * errors are those of json_builder_end, without those of the arena. */
bay_err json_builder_view(json_builder *self, json_val *out) BAY_MUST_CHECK;
/* In place of json_builder_end: drops what was written. */
void json_builder_drop(json_builder *self);

/* Inside an open container of `to`: the members or elements that `from` holds so far in the
 * container that is open there, which is of the same kind and has nothing open inside. `from` stays
 * open. */
void json_put_partial(json_writer *to, const json_builder *from);
/* What was written so far: bytes that a clone of it would take. */
size_t json_builder_clone_bytes(const json_builder *self);
/* The first member of that name in the object that is open there, or JSON_MISSING: good until it is
 * written on. */
json_val json_builder_get(json_builder *self, bay_str key);

/* {} : of no arena, good for ever, in any thread. */
json_val json_empty_object(void);

#endif
