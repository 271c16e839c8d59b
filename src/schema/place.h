/* Texts of bounded length, and JSON pointers determined from a place. Private to schema/. */
#ifndef SCHEMA_PLACE_H
#define SCHEMA_PLACE_H

#include "base/str.h"
#include "json/json.h"

/* Writes to the caller's bytes; text that does not fit is dropped, and noted. */
typedef struct fixed_text {
    char *at;
    size_t len;
    size_t cap; /* one more byte follows, for a NUL */
    bool is_cut;
} fixed_text;

void fixed_str(fixed_text *self, bay_str text);
void fixed_printf(fixed_text *self, const char *format, ...) BAY_PRINTF(2, 3);
#define fixed_lit(self, literal) fixed_str((self), STR(literal))

/* At most `most` bytes of a text, cut between characters, with "..." for the rest. */
void fixed_short(fixed_text *self, bay_str text, size_t most);

/* The JSON pointer from `root` to a value (or a key: then to its object) at or below it. Escapes in
 * keys stay as they are written. */
void fixed_pointer(fixed_text *self, json_val root, json_val target);

/* Whether `target` is a key of an object. (No pointer refers to a key.) */
bool place_is_key(json_val root, json_val target);

#endif
