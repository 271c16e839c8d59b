/* Text of peers as people see it: the only table of what a terminal, a log line or an error text
 * displays unchanged. All output uses it.
 *
 * Invisible characters, characters that reorder the line and characters that control a terminal are
 * displayed by their code point, as in "\u{202e}"; a byte that is not UTF-8 as "\x{ff}". Nothing is
 * dropped, so two different texts never look alike because of such characters. Displayed so are:
 *   - controls: C0, DEL, C1, the line and paragraph separators;
 *   - bidirectional controls and marks, interlinear annotations;
 *   - Unicode's Default_Ignorable_Code_Point: zero-width characters, soft hyphens, Hangul fillers,
 *     invisible operators, variation selectors, tag characters, and the reserved ones beside them;
 *   - noncharacters.
 * Some of these are part of ordinary text and remain, one at a time, in these places:
 *   - a joiner or non-joiner inside a word of a script whose letters join (Persian, Hindi …), and
 *     after a virama, as RFC 5892 appendix A.1 and A.2 admits them in names;
 *   - a joiner between two pictographs, and U+FE0E or U+FE0F after one.
 * Runs of them, which can hide bytes in text, never remain. A text that contains "\u{202e}" as
 * eight characters looks the same as a replaced character: the result is for reading, not for
 * decoding. */
#ifndef BASE_SHOWN_H
#define BASE_SHOWN_H

#include <stdio.h>

#include "base/buf.h"

typedef enum shown_form {
    SHOWN_LINE, /* part of one line: tabs and line ends are replaced, too */
    SHOWN_TEXT, /* several lines: tabs and newlines remain, CR LF becomes LF */
    SHOWN_JSON, /* JSON with the same value: escapes are \uXXXX, white space remains */
} shown_form;

/* The code point at the front of `text` (not empty) and its bytes; 0: it is ill-formed UTF-8. */
size_t shown_decode(bay_str text, uint32_t *out_code);

/* Is it one of the table: a character that is shown by its code point … */
bool shown_is_hidden(uint32_t code);
/* … unless it stands where people write it: behind `before`, which has a variation selector behind
 * it already if `is_styled`, and in front of `next`? No character is 0xffffffff. */
bool shown_belongs(uint32_t before, bool is_styled, uint32_t code, uint32_t next);

void shown_append(buf *out, bay_str text, shown_form form);
/* Writes to `size` bytes, with a NUL at the end; cuts between characters. Returns the bytes
 * written. */
size_t shown_copy(char *out, size_t size, bay_str text, shown_form form);

/* Does not allocate. An error remains in the stream. */
void shown_write(FILE *to, bay_str text, shown_form form);

/* `text` without an incomplete character at its end. */
bay_str shown_whole(bay_str text);

#endif
