/* The way out to people: see output.h. Widths come from two short tables of our own, because those
 * of libc depend on a locale that a pipe or a container may not have. */
#include "cli/output.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"

#define ELLIPSIS "\xe2\x80\xa6"

enum { MARGIN = 2, TEXT_BYTES = 64 * 1024 * 1024 };

void output_init(output *self, FILE *stream, bool is_colorless)
{
    *self = (output){.stream = stream, .is_terminal = isatty(fileno(stream)) == 1};
    if (!self->is_terminal) {
        return;
    }
    struct winsize size = {0};
    bool is_known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    self->columns = is_known ? size.ws_col : 80;
    const char *terminal = getenv("TERM");
    const char *refusal = getenv("NO_COLOR");
    bool is_dumb = terminal == NULL || str_eq(str_of(terminal), STR("dumb"));
    self->has_color = !is_colorless && !is_dumb && (refusal == NULL || refusal[0] == '\0');
}

bool output_flush(output *self, buf *text)
{
    bool is_good = text->err == BAY_OK;
    if (is_good && text->len > 0) {
        is_good = fwrite(text->at, 1, text->len, self->stream) == text->len;
    }
    buf_clear(text);
    return fflush(self->stream) == 0 && is_good;
}

void output_color(const output *self, buf *out, output_style style)
{
    static const char *const codes[] = {"0", "1", "2", "31", "32", "33", "36"};
    if (self->has_color) {
        buf_printf(out, "\x1b[%sm", codes[style]);
    }
}

/* ---- characters ------------------------------------------------------------------------------ */

void output_text(const output *self, buf *out, bay_str text)
{
    if (self->is_terminal) {
        shown_append(out, text, SHOWN_TEXT);
    } else {
        buf_str(out, text);
    }
}

void output_json(const output *self, buf *out, bay_str json)
{
    if (self->is_terminal) {
        shown_append(out, json, SHOWN_JSON);
    } else {
        buf_str(out, json);
    }
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_words(buf *out, bay_str text, shown_form form)
{
    size_t start = out->len;
    size_t at = 0;
    while (at < text.len) {
        size_t end = at;
        while (end < text.len && !is_space(text.at[end])) {
            end++;
        }
        if (end > at && out->len > start) {
            buf_char(out, ' ');
        }
        shown_append(out, (bay_str){text.at + at, end - at}, form);
        at = end + 1;
    }
}

void output_line(buf *out, bay_str text)
{
    put_words(out, text, SHOWN_LINE);
}

void output_json_line(buf *out, bay_str json)
{
    put_words(out, json, SHOWN_JSON);
}

typedef struct range {
    uint32_t first;
    uint32_t last;
} range;

/* Combining marks, joiners and variation selectors: the common ones. */
static const range narrow[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},     {0x610, 0x61a},     {0x64b, 0x65f},
    {0x6d6, 0x6dc},   {0x900, 0x902},   {0x93c, 0x93c},     {0x941, 0x948},     {0x94d, 0x94d},
    {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},     {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
    {0x200b, 0x200d}, {0x2060, 0x2064}, {0x20d0, 0x20ff},   {0x302a, 0x302d},   {0x3099, 0x309a},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

/* East Asian wide and full-width characters, and pictures. */
static const range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26a1, 0x26a1},
    {0x26bd, 0x26be},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2b1b, 0x2b1c},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f000, 0x1f02f},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};

static bool is_in(const range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count && ranges[i].first <= code; i++) {
        if (code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static size_t width_of(uint32_t code)
{
    if (code < 0x300) {
        return 1;
    }
    if (is_in(narrow, ARRAY_LEN(narrow), code)) {
        return 0;
    }
    return is_in(wide, ARRAY_LEN(wide), code) ? 2 : 1;
}

size_t output_width(bay_str text)
{
    size_t width = 0;
    while (text.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(text, &code);
        width += len > 0 ? width_of(code) : 1;
        text = str_from(text, len > 0 ? len : 1);
    }
    return width;
}

void output_cut(buf *out, bay_str text, size_t columns)
{
    if (output_width(text) <= columns) {
        buf_str(out, text);
        return;
    }
    if (columns == 0) {
        return;
    }
    size_t width = 0;
    size_t at = 0;
    while (at < text.len) {
        uint32_t code = 0;
        size_t len = shown_decode(str_from(text, at), &code);
        size_t more = len > 0 ? width_of(code) : 1;
        if (width + more > columns - 1) {
            break;
        }
        width += more;
        at += len > 0 ? len : 1;
    }
    while (at > 0 && text.at[at - 1] == ' ') {
        at--;
    }
    buf_str(out, str_head(text, at));
    buf_lit(out, ELLIPSIS);
}

/* ---- tables ---------------------------------------------------------------------------------- */

void output_table_init(output_table *self, size_t column_count)
{
    CHECK(column_count > 0 && column_count <= OUTPUT_TABLE_COLUMNS);
    *self = (output_table){.column_count = column_count};
    buf_init(&self->text, TEXT_BYTES);
}

void output_table_fini(output_table *self)
{
    buf_fini(&self->text);
    mem_free(self->cells);
    self->cells = NULL;
    self->count = self->cap = 0;
}

static bool table_grow(output_table *self)
{
    if (self->count < self->cap) {
        return true;
    }
    if (self->count >= OUTPUT_TABLE_CELLS) {
        self->err = BAY_ERR_LIMIT;
        return false;
    }
    size_t cap = self->cap == 0 ? 64 : self->cap * 2;
    output_cell *cells = mem_resize(self->cells, cap * sizeof(*cells));
    if (cells == NULL) {
        self->err = BAY_ERR_NOMEM;
        return false;
    }
    self->cells = cells;
    self->cap = cap;
    return true;
}

void output_table_cell(output_table *self, bay_str text)
{
    if (self->err != BAY_OK || !table_grow(self)) {
        return;
    }
    size_t at = self->text.len;
    output_line(&self->text, text);
    if (self->text.err != BAY_OK) {
        self->err = self->text.err;
        return;
    }
    bay_str line = str_from(buf_view(&self->text), at);
    self->cells[self->count++] = (output_cell){at, line.len, output_width(line)};
}

static void write_padding(buf *out, size_t count)
{
    buf_printf(out, "%*s", (int)count, "");
}

static void write_row(const output_table *self, const output *device, size_t row,
                      const size_t *widths, buf *out)
{
    size_t column = 0; /* where the line stands */
    size_t wanted = 0; /* where the next cell begins */
    for (size_t i = 0; i < self->column_count; i++) {
        size_t index = row * self->column_count + i;
        wanted += MARGIN;
        if (index < self->count && self->cells[index].len > 0) {
            const output_cell *cell = &self->cells[index];
            size_t start = wanted + (self->is_right[i] ? widths[i] - cell->width : 0);
            size_t room = SIZE_MAX;
            if (device->columns > 0) {
                room = device->columns > start ? device->columns - start : 0;
            }
            if (room == 0) {
                break;
            }
            write_padding(out, start - column);
            output_cut(out, (bay_str){self->text.at + cell->at, cell->len}, room);
            column = start + cell->width;
        }
        wanted += widths[i];
    }
    buf_char(out, '\n');
}

void output_table_write(const output_table *self, const output *device, buf *out)
{
    size_t widths[OUTPUT_TABLE_COLUMNS] = {0};
    if (self->err != BAY_OK) {
        out->err = self->err;
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        size_t *width = &widths[i % self->column_count];
        *width = self->cells[i].width > *width ? self->cells[i].width : *width;
    }
    size_t rows = (self->count + self->column_count - 1) / self->column_count;
    for (size_t row = 0; row < rows; row++) {
        write_row(self, device, row, widths, out);
    }
}
