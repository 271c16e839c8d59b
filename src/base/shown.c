#include "base/shown.h"

#include "base/check.h"

typedef struct range {
    uint32_t first;
    uint32_t last;
} range;

/* Ascending. The last two code points of each plane have a test of their own. */
static const range hidden[] = {
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},   {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

/* Letters and marks of scripts in which a joiner changes the displayed text. */
static const range joining[] = {
    {0x620, 0x8ff},   /* Arabic, Syriac and their extensions */
    {0x900, 0xdff},   /* the scripts of India and Sri Lanka */
    {0x1000, 0x109f}, /* Myanmar */
    {0x1780, 0x17ff}, /* Khmer */
    {0x1820, 0x18aa}, /* Mongolian */
};

static const range viramas[] = {
    {0x94d, 0x94d}, {0x9cd, 0x9cd},   {0xa4d, 0xa4d},   {0xacd, 0xacd}, {0xb4d, 0xb4d},
    {0xbcd, 0xbcd}, {0xc4d, 0xc4d},   {0xccd, 0xccd},   {0xd4d, 0xd4d}, {0xdca, 0xdca},
    {0xf84, 0xf84}, {0x1039, 0x103a}, {0x17d2, 0x17d2},
};

/* The blocks that hold pictographs (Unicode's emoji-data.txt). */
static const range pictographs[] = {
    {0xa9, 0xa9},     {0xae, 0xae},       {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122},
    {0x2139, 0x2139}, {0x2190, 0x21ff},   {0x2300, 0x23ff}, {0x24c2, 0x24c2}, {0x25a0, 0x27bf},
    {0x2934, 0x2935}, {0x2b00, 0x2bff},   {0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3297},
    {0x3299, 0x3299}, {0x1f000, 0x1faff},
};

enum {
    NO_CHARACTER = 0xffffffff, /* begin, end, or a byte that is not part of a character */
    JOINER = 0x200d,
    NON_JOINER = 0x200c,
    TEXT_STYLE = 0xfe0e,
    EMOJI_STYLE = 0xfe0f,
    ESCAPE_BYTES = 16,
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

bool shown_is_hidden(uint32_t code)
{
    return is_in(hidden, ARRAY_LEN(hidden), code) || (code & 0xfffe) == 0xfffe;
}

static bool is_joining(uint32_t code)
{
    return is_in(joining, ARRAY_LEN(joining), code) && !shown_is_hidden(code);
}

static bool is_pictograph(uint32_t code)
{
    return is_in(pictographs, ARRAY_LEN(pictographs), code);
}

/* Keycaps such as "1": U+0031 U+FE0F U+20E3. */
static bool is_key(uint32_t code)
{
    return code == '#' || code == '*' || (code >= '0' && code <= '9');
}

size_t shown_decode(bay_str text, uint32_t *out_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text.at[0];
    size_t len = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (len == 1) {
        *out_code = first;
        return 1;
    }
    if (len == 0 || first > 0xf4 || len > text.len) {
        return 0;
    }
    uint32_t code = first & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)text.at[i];
        if ((next & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (next & 0x3f);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    *out_code = code;
    return len;
}

/* ---- one character after the other ----------------------------------------------------------- */

typedef struct cursor {
    bay_str rest;
    shown_form form;
    uint32_t before; /* the preceding character … */
    bool is_styled;  /* … and whether a variation selector follows it */
} cursor;

static uint32_t character_after(const cursor *self, size_t len)
{
    bay_str next = str_from(self->rest, len);
    uint32_t code;
    return next.len > 0 && shown_decode(next, &code) > 0 ? code : NO_CHARACTER;
}

bool shown_belongs(uint32_t before, bool is_styled, uint32_t code, uint32_t next)
{
    if (code == TEXT_STYLE || code == EMOJI_STYLE) {
        return !is_styled && (is_pictograph(before) || is_key(before));
    }
    if (code != JOINER && code != NON_JOINER) {
        return false;
    }
    if (is_joining(before)) {
        return is_joining(next) || is_in(viramas, ARRAY_LEN(viramas), before);
    }
    return code == JOINER && is_pictograph(before) && is_pictograph(next);
}

static bool is_layout(shown_form form, uint32_t code)
{
    return form != SHOWN_LINE &&
           (code == '\n' || code == '\t' || (form == SHOWN_JSON && code == '\r'));
}

static void step(cursor *self, uint32_t code, size_t len, bool is_plain)
{
    bool is_style = is_plain && (code == TEXT_STYLE || code == EMOJI_STYLE);
    self->is_styled = is_style;
    if (!is_style) {
        self->before = is_plain ? code : NO_CHARACTER;
    }
    self->rest = str_from(self->rest, len);
}

static size_t escape(char out[ESCAPE_BYTES], shown_form form, uint32_t code)
{
    int len;
    if (form != SHOWN_JSON) {
        len = snprintf(out, ESCAPE_BYTES, "\\u{%x}", (unsigned)code);
    } else if (code < 0x10000) {
        len = snprintf(out, ESCAPE_BYTES, "\\u%04x", (unsigned)code);
    } else {
        uint32_t above = code - 0x10000;
        len = snprintf(out, ESCAPE_BYTES, "\\u%04x\\u%04x", (unsigned)(0xd800 + (above >> 10)),
                       (unsigned)(0xdc00 + (above & 0x3ff)));
    }
    return (size_t)len;
}

/* The displayed form of the front of the rest, which is not empty: a view of it, or the text in
 * `made`. */
static bay_str next_shown(cursor *self, char made[ESCAPE_BYTES])
{
    bay_str text = self->rest;
    uint32_t code = NO_CHARACTER;
    size_t len = shown_decode(text, &code);
    if (len == 0) {
        int put = self->form == SHOWN_JSON
                      ? snprintf(made, ESCAPE_BYTES, "\\ufffd")
                      : snprintf(made, ESCAPE_BYTES, "\\x{%02x}", (unsigned char)text.at[0]);
        step(self, NO_CHARACTER, 1, false);
        return (bay_str){made, (size_t)put};
    }
    if (self->form == SHOWN_TEXT && code == '\r' && character_after(self, 1) == '\n') {
        step(self, '\n', 2, true);
        return STR("\n");
    }
    bool is_plain = !shown_is_hidden(code) || is_layout(self->form, code) ||
                    shown_belongs(self->before, self->is_styled, code, character_after(self, len));
    step(self, code, len, is_plain);
    return is_plain ? str_head(text, len) : (bay_str){made, escape(made, self->form, code)};
}

/* Bytes at the front that need no test: printable ASCII. */
static size_t plain_run(bay_str text)
{
    size_t len = 0;
    while (len < text.len && text.at[len] >= ' ' && text.at[len] <= '~') {
        len++;
    }
    return len;
}

static bay_str take_run(cursor *self)
{
    bay_str run = str_head(self->rest, plain_run(self->rest));
    if (run.len > 0) {
        self->before = (unsigned char)run.at[run.len - 1];
        self->is_styled = false;
        self->rest = str_from(self->rest, run.len);
    }
    return run;
}

void shown_append(buf *out, bay_str text, shown_form form)
{
    char made[ESCAPE_BYTES];
    cursor at = {.rest = text, .form = form, .before = NO_CHARACTER};
    while (at.rest.len > 0 && out->err == BAY_OK) {
        buf_str(out, take_run(&at));
        if (at.rest.len > 0) {
            buf_str(out, next_shown(&at, made));
        }
    }
}

void shown_write(FILE *to, bay_str text, shown_form form)
{
    char made[ESCAPE_BYTES];
    cursor at = {.rest = text, .form = form, .before = NO_CHARACTER};
    while (at.rest.len > 0) {
        bay_str run = take_run(&at);
        fwrite(run.at, 1, run.len, to);
        if (at.rest.len > 0) {
            bay_str piece = next_shown(&at, made);
            fwrite(piece.at, 1, piece.len, to);
        }
    }
}

size_t shown_copy(char *out, size_t size, bay_str text, shown_form form)
{
    char made[ESCAPE_BYTES];
    cursor at = {.rest = text, .form = form, .before = NO_CHARACTER};
    size_t len = 0;
    bool is_cut = size == 0;
    while (at.rest.len > 0 && !is_cut) {
        bay_str run = take_run(&at);
        is_cut = run.len > size - 1 - len;
        run = str_head(run, size - 1 - len);
        memcpy(out + len, run.at, run.len);
        len += run.len;
        if (at.rest.len == 0 || is_cut) {
            break;
        }
        bay_str piece = next_shown(&at, made);
        is_cut = piece.len > size - 1 - len;
        if (!is_cut) {
            memcpy(out + len, piece.at, piece.len);
            len += piece.len;
        }
    }
    if (size > 0) {
        out[len] = '\0';
    }
    return len;
}

bay_str shown_whole(bay_str text)
{
    size_t tail = 0; /* bytes after the last byte that begins a character */
    while (tail < 3 && tail < text.len &&
           ((unsigned char)text.at[text.len - 1 - tail] & 0xc0) == 0x80) {
        tail++;
    }
    if (tail == text.len) {
        return text;
    }
    unsigned char first = (unsigned char)text.at[text.len - 1 - tail];
    size_t wanted = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    return tail + 1 < wanted ? str_head(text, text.len - 1 - tail) : text;
}
