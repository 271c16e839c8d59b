/* Text of bounded length, and where things are: JSON pointers found from a place alone. Private to
 * schema/. */
#ifndef SCHEMA_PLACE_H
#define SCHEMA_PLACE_H

#include "base/str.h"
#include "json/json.h"

/* Writes into the caller's bytes; what does not fit is left out, and noted. */
typedef struct fixed_text {
    char *at;
    size_t len;
    size_t cap; /* one more byte is there, for a NUL */
    bool is_cut;
} fixed_text;

void fixed_str(fixed_text *self, bay_str text);
void fixed_printf(fixed_text *self, const char *format, ...) BAY_PRINTF(2, 3);
#define fixed_lit(self, literal) fixed_str((self), STR(literal))

/* At most `most` bytes of a text, cut between characters, with "..." for what is missing. */
void fixed_short(fixed_text *self, bay_str text, size_t most);

/* The JSON pointer from `root` to a value (or a key: then to its object) at or below it. Escapes in
 * keys stay as they are written. */
void fixed_pointer(fixed_text *self, json_val root, json_val target);

/* Is `target` a key of an object? (Then no pointer leads to it.) */
bool place_is_key(json_val root, json_val target);

#endif
