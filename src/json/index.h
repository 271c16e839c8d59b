/* The index of a document that is being written: the writer calls these functions, build.c
 * implements them. Each notes what was written to `out`, or is about to be; the first error stays
 * in `out`. Private to json/. */
#ifndef JSON_INDEX_H
#define JSON_INDEX_H

#include "base/buf.h"
#include "json/json.h"
#include "json/writer.h"

/* Written, from `start` to the buffer's end. */
void json_index_key(json_index *self, buf *out, size_t start);
void json_index_value(json_index *self, buf *out, size_t start); /* a scalar */
void json_index_raw(json_index *self, buf *out, size_t start);   /* any value: its text is parsed */
void json_index_close(json_index *self, buf *out);
/* About to be written at the buffer's end. */
void json_index_open(json_index *self, buf *out, json_kind kind);
void json_index_copy(json_index *self, buf *out, json_val value);
void json_index_member(json_index *self, buf *out, json_val key); /* and the value after it */

#endif
