/* What people see: text of a peer made harmless, cut to the terminal, in columns; colours only on a
 * terminal. Everything is written into a buf first and leaves by output_flush.
 *
 * A terminal obeys control bytes, so none of a peer's ever reaches one; base/shown.h has the table
 * of what is shown by its code point instead. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

#include "base/buf.h"
#include "patchbay/types.h"

typedef struct output {
    FILE *stream;
    bool is_terminal;
    bool has_color;
    size_t columns; /* of the terminal; 0: unbounded, it is none */
} output;

/* Looks at the stream, at TERM and at NO_COLOR. */
void output_init(output *self, FILE *stream, bool is_colorless);
/* Writes and empties `text`. False when it could not be written whole, or `text` had failed. */
bool output_flush(output *self, buf *text);

typedef enum output_style {
    OUTPUT_PLAIN, /* ends the others */
    OUTPUT_BOLD,
    OUTPUT_DIM,
    OUTPUT_RED,
    OUTPUT_GREEN,
    OUTPUT_YELLOW,
    OUTPUT_CYAN,
} output_style;

/* Nothing without colours. */
void output_color(const output *self, buf *out, output_style style);

/* A peer's text of several lines: newlines and tabs stay, what a terminal would obey does not.
 * Without a terminal the bytes go unchanged: they are data for a file or a program. */
void output_text(const output *self, buf *out, bay_str text);
/* JSON: on a terminal with \uXXXX in place of what it would obey, still the same JSON; elsewhere
 * its bytes. */
void output_json(const output *self, buf *out, bay_str json);
/* A peer's text within one line, on every stream: ASCII white space becomes single spaces. */
void output_line(buf *out, bay_str text);
/* The same for JSON, which stays JSON. White space inside its strings is escaped already. */
void output_json_line(buf *out, bay_str json);

/* Columns of a terminal that well-formed `text` without controls takes: 0 for combining marks, 2
 * for wide characters. */
size_t output_width(bay_str text);
/* Appends what fits into `columns`, whole characters only, with … at the end when something was
 * cut. `text` as from output_line. */
void output_cut(buf *out, bay_str text, size_t columns);

/* ---- tables ------------------------------------------------------------------------------------
 */

enum { OUTPUT_TABLE_COLUMNS = 8, OUTPUT_TABLE_CELLS = 1024 * 1024 };

typedef struct output_cell {
    size_t at; /* in `text` */
    size_t len;
    size_t width;
} output_cell;

typedef struct output_table {
    size_t column_count;
    bool is_right[OUTPUT_TABLE_COLUMNS]; /* aligned to the right */
    buf text;
    output_cell *cells;
    size_t count;
    size_t cap;
    bay_err err;
} output_table;

void output_table_init(output_table *self, size_t column_count);
void output_table_fini(output_table *self);
/* Row by row, from the left. Any text: it goes through output_line. Errors stick. */
void output_table_cell(output_table *self, bay_str text);
/* Two spaces before and between the columns; the last one is cut to the terminal and no line ends
 * in spaces. An incomplete last row is filled with empty cells. */
void output_table_write(const output_table *self, const output *device, buf *out);

#endif
