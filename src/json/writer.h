/* Lossless JSON, part two: writing. Streams into a buf; commas and colons are the writer's affair;
 * raw spans of somebody else's JSON can be spliced in unchanged. Errors stick in the buf. */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include "base/buf.h"
#include "json/json.h"

enum { JSON_WRITER_DEPTH = 64 };

typedef struct json_index json_index; /* known inside json/ only */

typedef struct json_writer {
    buf *out;
    json_index *index;   /* of a json_builder; NULL: the text is all there is */
    uint64_t has_member; /* one bit a level, the innermost the lowest: a comma is due */
    uint32_t depth;
    bool after_key;
} json_writer;

void json_writer_init(json_writer *self, buf *out);

void json_open_object(json_writer *self);
void json_close_object(json_writer *self);
void json_open_array(json_writer *self);
void json_close_array(json_writer *self);
void json_key(json_writer *self, bay_str key);
/* A literal that needs no escapes; the compiler puts the quotes and the colon around it. */
#define json_key_lit(self, literal) json_key_ready((self), STR("\"" literal "\":"))
void json_key_ready(json_writer *self, bay_str key_and_colon);

/* The key with its quotes and escapes, as it stands in somebody else's JSON. */
void json_key_raw(json_writer *self, bay_str key);

/* Words of a protocol, which need no escapes, as the caller vouches: nothing of them is looked at.
 */
void json_key_word(json_writer *self, bay_str key);
void json_put_word(json_writer *self, bay_str word);
/* The same in pieces: what is appended to `out` between the two is the word. */
size_t json_open_word(json_writer *self);
void json_close_word(json_writer *self, size_t opened);

void json_put_str(json_writer *self, bay_str text); /* invalid UTF-8 becomes U+FFFD */
void json_put_int(json_writer *self, int64_t number);
void json_put_uint(json_writer *self, uint64_t number);
void json_put_double(json_writer *self,
                     double number); /* shortest that reads back; null if not finite */
void json_put_bool(json_writer *self, bool value);
void json_put_null(json_writer *self);

/* One whole value, byte for byte. json_put_raw: the caller vouches that it is valid JSON; a
 * json_builder reads it to index it, so give it the json_val where there is one. */
void json_put_raw(json_writer *self, bay_str value);
void json_put_val(json_writer *self, json_val value);
/* A key, byte for byte, of another document. */
void json_key_val(json_writer *self, json_val key);

/* Inside an open object: every member of `object`, keys and values byte for byte, but those named
 * in `except` (which may be NULL when count is 0). */
void json_put_members(json_writer *self, json_val object, const bay_str *except, size_t count);

/* A JSON string literal with its quotes, appended to a buf. */
void json_quote(buf *out, bay_str text);

#endif
