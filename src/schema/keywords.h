/* Words of a schema that mean nothing in it: misspelt ones, mostly. JSON Schema ignores them. */
#ifndef SCHEMA_KEYWORDS_H
#define SCHEMA_KEYWORDS_H

#include "base/buf.h"
#include "json/json.h"

/* Appends a line for each word that is neither a keyword, an annotation of JSON Schema or MCP, nor
 * begins with "x-", with its place and the keyword that it resembles, if any; at most eight. Their
 * number. Errors: stick in `out`. */
size_t schema_unknown_words(json_val root, buf *out);

#endif
