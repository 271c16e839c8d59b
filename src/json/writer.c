/* The writer. It keeps one bit per level (whether a comma is due); everything else is in the buf,
 * whose first error remains. With an index (json/build.h) each value is noted where it was written.
 */
#include "json/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "json/index.h"
#include "json/scan.h"
#include "json/utf8.h"
#include "json/walk.h"

enum { SHORT_BYTES = 32 };

void json_writer_init(json_writer *self, buf *out)
{
    *self = (json_writer){.out = out};
}

/* Writes what precedes a value or a key. */
static void separate(json_writer *self)
{
    if (self->after_key) {
        self->after_key = false;
        return;
    }
    if ((self->has_member & 1) != 0) {
        buf_char(self->out, ',');
    }
    self->has_member |= self->depth > 0;
}

/* Notes a scalar that was written from `start` on, if the document has an index. */
static inline void note_value(json_writer *self, size_t start)
{
    if (self->index != NULL) {
        json_index_value(self->index, self->out, start);
    }
}

static void open_container(json_writer *self, char bracket)
{
    separate(self);
    self->depth++;
    if (self->depth > JSON_WRITER_DEPTH && self->out->err == BAY_OK) {
        self->out->err = BAY_ERR_LIMIT;
    }
    self->has_member <<= 1;
    if (self->index != NULL) {
        json_index_open(self->index, self->out, bracket == '{' ? JSON_OBJECT : JSON_ARRAY);
    }
    buf_char(self->out, bracket);
}

static void close_container(json_writer *self, char bracket)
{
    CHECK(self->depth > 0 && !self->after_key);
    self->depth--;
    self->has_member >>= 1;
    buf_char(self->out, bracket);
    if (self->index != NULL) {
        json_index_close(self->index, self->out);
    }
}

void json_open_object(json_writer *self)
{
    open_container(self, '{');
}

void json_close_object(json_writer *self)
{
    close_container(self, '}');
}

void json_open_array(json_writer *self)
{
    open_container(self, '[');
}

void json_close_array(json_writer *self)
{
    close_container(self, ']');
}

void json_key(json_writer *self, bay_str key)
{
    separate(self);
    size_t start = self->out->len;
    json_quote(self->out, key);
    if (self->index != NULL) {
        json_index_key(self->index, self->out, start);
    }
    buf_char(self->out, ':');
    self->after_key = true;
}

void json_key_ready(json_writer *self, bay_str key_and_colon)
{
    if (self->index != NULL) {
        json_key_raw(self, str_head(key_and_colon, key_and_colon.len - 1));
        return;
    }
    separate(self);
    buf_str(self->out, key_and_colon);
    self->after_key = true;
}

void json_key_val(json_writer *self, json_val key)
{
    separate(self);
    size_t start = self->out->len;
    buf_str(self->out, json_raw(key));
    if (self->index != NULL) {
        json_index_key(self->index, self->out, start);
    }
    buf_char(self->out, ':');
    self->after_key = true;
}

/* Writes a word with its quotes and the text behind it: all of it, or nothing. */
static void put_word(buf *out, bay_str word, bay_str behind)
{
    if (word.len < SIZE_MAX - 8 && buf_reserve(out, word.len + 2 + behind.len)) {
        buf_char(out, '"');
        buf_str(out, word);
        buf_char(out, '"');
        buf_str(out, behind);
    }
}

void json_key_word(json_writer *self, bay_str key)
{
    if (self->index != NULL) {
        json_key(self, key);
        return;
    }
    separate(self);
    put_word(self->out, key, STR(":"));
    self->after_key = true;
}

void json_key_raw(json_writer *self, bay_str key)
{
    separate(self);
    size_t start = self->out->len;
    buf_str(self->out, key);
    if (self->index != NULL) {
        json_index_key(self->index, self->out, start);
    }
    buf_char(self->out, ':');
    self->after_key = true;
}

void json_put_word(json_writer *self, bay_str word)
{
    separate(self);
    size_t start = self->out->len;
    put_word(self->out, word, STR(""));
    note_value(self, start);
}

size_t json_open_word(json_writer *self)
{
    separate(self);
    size_t start = self->out->len;
    buf_char(self->out, '"');
    return start;
}

void json_close_word(json_writer *self, size_t opened)
{
    buf_char(self->out, '"');
    note_value(self, opened);
}

void json_put_str(json_writer *self, bay_str text)
{
    separate(self);
    size_t start = self->out->len;
    json_quote(self->out, text);
    note_value(self, start);
}

void json_put_int(json_writer *self, int64_t number)
{
    separate(self);
    size_t start = self->out->len;
    buf_int(self->out, number);
    note_value(self, start);
}

void json_put_uint(json_writer *self, uint64_t number)
{
    separate(self);
    size_t start = self->out->len;
    buf_uint(self->out, number);
    note_value(self, start);
}

void json_put_bool(json_writer *self, bool value)
{
    separate(self);
    size_t start = self->out->len;
    buf_str(self->out, value ? STR("true") : STR("false"));
    note_value(self, start);
}

void json_put_null(json_writer *self)
{
    separate(self);
    size_t start = self->out->len;
    buf_lit(self->out, "null");
    note_value(self, start);
}

void json_put_raw(json_writer *self, bay_str value)
{
    separate(self);
    size_t start = self->out->len;
    buf_str(self->out, value);
    if (self->index != NULL) {
        json_index_raw(self->index, self->out, start);
    }
}

void json_put_val(json_writer *self, json_val value)
{
    separate(self);
    if (self->index != NULL) {
        json_index_copy(self->index, self->out, value);
    }
    buf_str(self->out, json_raw(value));
}

/* The `count` most significant digits of a finite positive number (the last one rounded), and its
 * exponent: d.ddd × 10^exponent. The locale's decimal point is left out. */
static int digits_of(double number, int count, char *out)
{
    char text[48];
    snprintf(text, sizeof(text), "%.*e", count - 1, number);
    char *exponent = strchr(text, 'e');
    CHECK(exponent != NULL);
    int len = 0;
    for (const char *at = text; at < exponent; at++) {
        if (*at >= '0' && *at <= '9') {
            out[len++] = *at;
        }
    }
    return (int)strtol(exponent + 1, NULL, 10);
}

static bool reads_back(const char *digits, int count, int exponent, double number)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*se%d", count, digits, exponent - (count - 1));
    return strtod(text, NULL) == number;
}

/* The next larger number with as many digits. */
static int next_digits(char *digits, int count, int exponent)
{
    int i = count;
    while (i > 0 && digits[i - 1] == '9') {
        digits[--i] = '0';
    }
    if (i > 0) {
        digits[i - 1]++;
        return exponent;
    }
    digits[0] = '1';
    return exponent + 1;
}

/* The fewest digits that read back as `number` (finite, positive), without trailing zeros. */
static int shortest_digits(double number, char *out, int *out_exponent)
{
    /* fifteen digits find every shorter form, too, without trailing zeros; only numbers that have
     * lost precision (subnormals) must be tried from one digit on */
    int count = isnormal(number) ? 15 : 1;
    int exponent;
    for (;; count++) {
        exponent = digits_of(number, count, out);
        if (count == 17 || reads_back(out, count, exponent, number)) {
            break;
        }
        /* below a power of two doubles are twice as dense: there the nearest digits may be too
         * small and the next ones right */
        exponent = next_digits(out, count, exponent);
        if (reads_back(out, count, exponent, number)) {
            break;
        }
    }
    while (count > 1 && out[count - 1] == '0') {
        count--;
    }
    *out_exponent = exponent;
    return count;
}

/* Formats digits as ECMAScript does: plain between 1e-7 and 1e21, otherwise with an exponent. */
static void put_digits(buf *out, const char *digits, int count, int exponent)
{
    if (exponent >= 21 || exponent < -6) {
        buf_append(out, digits, 1);
        if (count > 1) {
            buf_char(out, '.');
            buf_append(out, digits + 1, (size_t)count - 1);
        }
        buf_str(out, exponent < 0 ? STR("e") : STR("e+"));
        buf_int(out, exponent);
        return;
    }
    if (exponent < 0) {
        buf_lit(out, "0.");
        buf_append(out, "000000", (size_t)(-exponent - 1));
        buf_append(out, digits, (size_t)count);
        return;
    }
    for (int i = 0; i < count || i <= exponent; i++) {
        if (i == exponent + 1) {
            buf_char(out, '.');
        }
        buf_char(out, i < count ? digits[i] : '0');
    }
}

static void put_double(buf *out, double number)
{
    if (!isfinite(number)) {
        buf_lit(out, "null");
        return;
    }
    if (signbit(number)) {
        buf_char(out, '-');
        number = -number;
    }
    if (number == 0) {
        buf_char(out, '0');
        return;
    }
    char digits[24];
    int exponent;
    int count = shortest_digits(number, digits, &exponent);
    put_digits(out, digits, count, exponent);
}

void json_put_double(json_writer *self, double number)
{
    separate(self);
    size_t start = self->out->len;
    put_double(self->out, number);
    note_value(self, start);
}

static bool is_excepted(const json_doc *doc, uint32_t key, const bay_str *except, size_t count)
{
    bay_str name;
    bool is_plain = json_walk_text(doc, key, &name);
    for (size_t i = 0; i < count; i++) {
        if (is_plain ? json_walk_same(name, except[i].at, except[i].len)
                     : json_str_eq((json_val){doc, key}, except[i])) {
            return true;
        }
    }
    return false;
}

void json_put_members(json_writer *self, json_val object, const bay_str *except, size_t count)
{
    if (!json_is(object, JSON_OBJECT)) {
        return;
    }
    const json_doc *doc = object.doc;
    uint32_t end = json_walk_after(doc, (uint32_t)object.at);
    for (uint32_t key = (uint32_t)object.at + 1; key < end; key = json_walk_after(doc, key + 1)) {
        if (!is_excepted(doc, key, except, count)) {
            separate(self);
            if (self->index != NULL) {
                json_index_member(self->index, self->out, (json_val){doc, key});
            }
            buf_str(self->out, json_raw((json_val){doc, key}));
            buf_char(self->out, ':');
            buf_str(self->out, json_raw((json_val){doc, key + 1}));
        }
    }
}

/* Appends the text unchanged; there is room for it. */
static inline void put_quoted(buf *out, bay_str text)
{
    char *to = out->at + out->len;
    to[0] = to[text.len + 1] = '"';
    if (text.len > 0) {
        memcpy(to + 1, text.at, text.len);
    }
    out->len += text.len + 2;
}

static void escape(buf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn-fr"; /* 0x08 to 0x0d; vertical tab has none */
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4 & 0xf], hex[c & 0xf]};
    if (c == '"' || c == '\\') {
        text[1] = (char)c;
        buf_append(out, text, 2);
    } else if (c >= 0x08 && c <= 0x0d && c != 0x0b) {
        text[1] = letters[c - 0x08];
        buf_append(out, text, 2);
    } else {
        buf_append(out, text, sizeof(text));
    }
}

/* A span of well-formed UTF-8. */
static void quote_span(buf *out, const json_scan *scan, const unsigned char *at,
                       const unsigned char *end)
{
    for (;;) {
        const unsigned char *stop = scan->string(at, end);
        buf_append(out, at, (size_t)(stop - at));
        if (stop == end) {
            return;
        }
        escape(out, *stop);
        at = stop + 1;
    }
}

/* Whether it is a short ASCII text without characters to escape, like keys and most names. */
static inline bool is_simple(bay_str text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    const uint64_t tops = 0x8080808080808080U;
    if (text.len < 8) {
        for (size_t i = 0; i < text.len; i++) {
            if (at[i] < 0x20 || at[i] >= 0x80 || at[i] == '"' || at[i] == '\\') {
                return false;
            }
        }
        return true;
    }
    uint64_t word = scan_load(at + text.len - 8); /* overlaps the one before */
    uint64_t found = scan_stops(word) | (word & tops);
    for (size_t i = 0; i + 8 < text.len; i += 8) {
        word = scan_load(at + i);
        found |= scan_stops(word) | (word & tops);
    }
    return found == 0;
}

void json_quote(buf *out, bay_str text)
{
    if (text.len <= SHORT_BYTES && is_simple(text)) {
        if (buf_reserve(out, text.len + 2)) {
            put_quoted(out, text);
        }
        return;
    }
    const json_scan *scan = json_scan_current();
    const unsigned char *at =
        text.len > 0 ? (const unsigned char *)text.at : (const unsigned char *)"";
    const unsigned char *end = at + text.len;
    /* Most texts need no more room than this, and no escapes. */
    if (text.len < SIZE_MAX - 2 && buf_reserve(out, text.len + 2) && scan->utf8(at, end) == end &&
        scan->string(at, end) == end) {
        put_quoted(out, text);
        return;
    }
    buf_char(out, '"');
    while (at < end) {
        const unsigned char *valid = scan->utf8(at, end);
        quote_span(out, scan, at, valid);
        at = valid;
        if (at < end) {
            buf_lit(out, "\xef\xbf\xbd");
            at += json_utf8_broken(at, end);
        }
    }
    buf_char(out, '"');
}
