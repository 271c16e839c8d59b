/* Lossless JSON, part two: writing. Appends to a buf; the writer adds commas and colons; values of
 * other documents are spliced in unchanged. The first error remains in the buf. */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include "base/buf.h"
#include "json/json.h"

enum { JSON_WRITER_DEPTH = 64 };

typedef struct json_index json_index; /* known inside json/ only */

typedef struct json_writer {
    buf *out;
    json_index *index;   /* of a json_builder; NULL: only the text is written */
    uint64_t has_member; /* one bit per level, the innermost lowest: a comma is due */
    uint32_t depth;
    bool after_key;
} json_writer;

void json_writer_init(json_writer *self, buf *out);

void json_open_object(json_writer *self);
void json_close_object(json_writer *self);
void json_open_array(json_writer *self);
void json_close_array(json_writer *self);
void json_key(json_writer *self, bay_str key);
/* A literal that needs no escapes; the compiler adds the quotes and the colon. */
#define json_key_lit(self, literal) json_key_ready((self), STR("\"" literal "\":"))
void json_key_ready(json_writer *self, bay_str key_and_colon);

/* A key with its quotes and escapes, copied from other JSON text. */
void json_key_raw(json_writer *self, bay_str key);

/* Words of a protocol. The caller guarantees that they need no escapes; they are not checked. */
void json_key_word(json_writer *self, bay_str key);
void json_put_word(json_writer *self, bay_str word);
/* A word in pieces: the text that is appended to `out` between the two calls. */
size_t json_open_word(json_writer *self);
void json_close_word(json_writer *self, size_t opened);

void json_put_str(json_writer *self, bay_str text); /* invalid UTF-8 becomes U+FFFD */
void json_put_int(json_writer *self, int64_t number);
void json_put_uint(json_writer *self, uint64_t number);
void json_put_double(json_writer *self,
                     double number); /* the shortest that reads back equal; null if not finite */
void json_put_bool(json_writer *self, bool value);
void json_put_null(json_writer *self);

/* One whole value, copied unchanged. json_put_raw: the caller guarantees that it is valid JSON.
 * With a json_builder its text is parsed to index it, so use json_put_val if there is a json_val.
 */
void json_put_raw(json_writer *self, bay_str value);
void json_put_val(json_writer *self, json_val value);
/* A key of another document, copied unchanged. */
void json_key_val(json_writer *self, json_val key);

/* Inside an open object: every member of `object`, copied unchanged, except those named in `except`
 * (may be NULL if count is 0). */
void json_put_members(json_writer *self, json_val object, const bay_str *except, size_t count);

/* A JSON string literal with its quotes, appended to a buf. */
void json_quote(buf *out, bay_str text);

#endif
