/* Text of peers as people see it: the one table of what a terminal, a log line or an error text
 * shows as it is, for everything that is printed.
 *
 * What a reader could not see, what reorders the line around it and what a terminal obeys is shown
 * by its code point, as in "\u{202e}"; a byte that is not UTF-8 as "\x{ff}". Nothing is dropped, so
 * two texts that differ never look alike because of such characters. Shown so are:
 *   - controls: C0, DEL, C1, the line and paragraph separators;
 *   - bidirectional controls and marks, interlinear annotations;
 *   - Unicode's Default_Ignorable_Code_Point: zero-width characters, soft hyphens, Hangul fillers,
 *     invisible operators, variation selectors, tag characters, and the reserved ones beside them;
 *   - noncharacters.
 * Some of these belong to text that people write, and stay where they do, one at a time:
 *   - a joiner or non-joiner inside a word of a script whose letters join (Persian, Hindi …), and
 *     after a virama, as RFC 5892 appendix A.1 and A.2 admits them in names;
 *   - a joiner between two pictographs, and U+FE0E or U+FE0F after one.
 * Runs of them, by which bytes are hidden in text, never stay. A text that holds "\u{202e}" as
 * eight characters reads like one that was made visible: this is for reading, not for decoding. */
#ifndef BASE_SHOWN_H
#define BASE_SHOWN_H

#include <stdio.h>

#include "base/buf.h"

typedef enum shown_form {
    SHOWN_LINE, /* part of one line: tabs and line ends are shown by their code points, too */
    SHOWN_TEXT, /* several lines: tabs and newlines stay, CR LF becomes LF */
    SHOWN_JSON, /* JSON that stays the same JSON: escapes are \uXXXX, white space stays */
} shown_form;

/* The code point at the front of `text` (not empty) and its bytes; 0: it is ill-formed UTF-8. */
size_t shown_decode(bay_str text, uint32_t *out_code);

/* Is it one of the table: a character that is shown by its code point … */
bool shown_is_hidden(uint32_t code);
/* … unless it stands where people write it: behind `before`, which has a variation selector behind
 * it already if `is_styled`, and in front of `next`? No character is 0xffffffff. */
bool shown_belongs(uint32_t before, bool is_styled, uint32_t code, uint32_t next);

void shown_append(buf *out, bay_str text, shown_form form);
/* Into `size` bytes with a NUL at the end; cut between characters. Returns the bytes written. */
size_t shown_copy(char *out, size_t size, bay_str text, shown_form form);

/* Without allocating. An error is the stream's to keep. */
void shown_write(FILE *to, bay_str text, shown_form form);

/* `text` without a character at its end that was cut. */
bay_str shown_whole(bay_str text);

#endif
