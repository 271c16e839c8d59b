/* Strings: decoding and comparing the text that the reader has not decoded. */
#include <string.h>

#include "base/str.h"
#include "json/decimal.h"
#include "json/escape.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/tape.h"
#include "json/utf8.h"

static uint32_t read_hex(const char *at)
{
    uint32_t code = 0;
    for (size_t i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)at[i];
        code = code << 4 | (c <= '9' ? c - (unsigned)'0' : (c | 0x20U) - 'a' + 10U);
    }
    return code;
}

uint32_t json_escape_read(const char **at, const char *end)
{
    const char *escape = *at;
    *at = escape + 2;
    switch (escape[1]) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        break;
    default:
        return (unsigned char)escape[1];
    }
    *at = escape + 6;
    uint32_t high = read_hex(escape + 2);
    if (high < 0xd800 || high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') {
        return high;
    }
    uint32_t low = read_hex(*at + 2);
    if (low < 0xdc00 || low > 0xdfff) {
        return high;
    }
    *at += 6;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

int json_chars_next(json_chars *self)
{
    if (self->used < self->len) {
        return (unsigned char)self->bytes[self->used++];
    }
    if (self->at == self->end) {
        return -1;
    }
    if (*self->at != '\\') {
        return (unsigned char)*self->at++;
    }
    uint32_t code = json_escape_read(&self->at, self->end);
    self->is_broken |= json_is_surrogate(code);
    self->len = (uint8_t)json_utf8_put(self->bytes, code);
    self->used = 1;
    return (unsigned char)self->bytes[0];
}

bool json_chars_eq(bay_str a, bay_str b)
{
    json_chars left = json_chars_of(a);
    json_chars right = json_chars_of(b);
    int c;
    do {
        c = json_chars_next(&left);
        if (c != json_chars_next(&right)) {
            return false;
        }
    } while (c >= 0);
    return true;
}

/* Decodes to `out`, which has room for `inside` (an escape is never shorter than its text). */
static bay_err decode(bay_str inside, char *out, size_t *out_len)
{
    const json_scan *scan = json_scan_current();
    const char *at = inside.at;
    const char *end = at + inside.len;
    size_t len = 0;
    for (;;) {
        const char *stop =
            (const char *)scan->string((const unsigned char *)at, (const unsigned char *)end);
        memcpy(out + len, at, (size_t)(stop - at));
        len += (size_t)(stop - at);
        at = stop;
        if (at == end) {
            *out_len = len;
            return BAY_OK;
        }
        uint32_t code = json_escape_read(&at, end);
        if (json_is_surrogate(code)) {
            return BAY_ERR_UTF8;
        }
        char encoded[4];
        size_t encoded_len = json_utf8_put(encoded, code);
        memcpy(out + len, encoded, encoded_len);
        len += encoded_len;
    }
}

/* Does an escape begin at this backslash, or is it the second one of an escape? */
static bool begins_escape(bay_str inside, size_t at)
{
    size_t before = 0;
    while (before < at && inside.at[at - 1 - before] == '\\') {
        before++;
    }
    return before % 2 == 0;
}

/* Where a whole character begins, at `at` or behind it. */
static size_t char_start(bay_str inside, size_t at, bool is_escaped)
{
    enum { ESCAPE_BYTES = 6 };
    while (at < inside.len && ((unsigned char)inside.at[at] & 0xc0) == 0x80) {
        at++;
    }
    if (!is_escaped || at >= inside.len) {
        return at < inside.len ? at : inside.len;
    }
    for (size_t back = 1; back < ESCAPE_BYTES && back <= at; back++) {
        size_t from = at - back;
        if (inside.at[from] == '\\' && begins_escape(inside, from)) {
            size_t end = from + (inside.at[from + 1] == 'u' ? ESCAPE_BYTES : 2);
            at = end > at ? end : at;
            break;
        }
    }
    bool is_unicode =
        inside.len - at >= ESCAPE_BYTES && inside.at[at] == '\\' && inside.at[at + 1] == 'u';
    uint32_t code = is_unicode ? read_hex(inside.at + at + 2) : 0;
    return code >= 0xdc00 && code <= 0xdfff ? at + ESCAPE_BYTES : at; /* half of a pair */
}

static bay_err str_of_inside(bay_str inside, bool is_escaped, arena *memory, bay_str *out)
{
    if (!is_escaped) {
        *out = inside;
        return BAY_OK;
    }
    char *text = arena_alloc(memory, inside.len);
    if (text == NULL) {
        return memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    size_t len;
    bay_err err = decode(inside, text, &len);
    if (err == BAY_OK) {
        *out = (bay_str){text, len};
    }
    return err;
}

bay_err json_str(json_val value, arena *memory, bay_str *out)
{
    if (!json_is(value, JSON_STRING)) {
        return BAY_ERR_TYPE;
    }
    const json_tape *entry = &value.doc->tape[value.at];
    return str_of_inside(tape_inside(value.doc, entry), tape_is_escaped(entry), memory, out);
}

bay_err json_str_part(json_val value, size_t start, size_t most, arena *memory, bay_str *out)
{
    if (!json_is(value, JSON_STRING)) {
        return BAY_ERR_TYPE;
    }
    const json_tape *entry = &value.doc->tape[value.at];
    bool is_escaped = tape_is_escaped(entry);
    bay_str inside = tape_inside(value.doc, entry);
    size_t end = most < inside.len && start < inside.len - most ? start + most : inside.len;
    start = char_start(inside, start < inside.len ? start : inside.len, is_escaped);
    end = char_start(inside, end, is_escaped);
    return str_of_inside((bay_str){inside.at + start, end - start}, is_escaped, memory, out);
}

bool json_str_eq(json_val value, bay_str text)
{
    if (!json_is(value, JSON_STRING)) {
        return false;
    }
    const json_tape *entry = &value.doc->tape[value.at];
    bay_str inside = tape_inside(value.doc, entry);
    if (!tape_is_escaped(entry)) {
        return str_eq(inside, text);
    }
    if (text.len > inside.len) {
        return false;
    }
    json_chars chars = json_chars_of(inside);
    for (size_t i = 0; i < text.len; i++) {
        if (json_chars_next(&chars) != (unsigned char)text.at[i]) {
            return false;
        }
    }
    return json_chars_next(&chars) < 0 && !chars.is_broken;
}

bool json_str_plain(json_val value, bay_str *out)
{
    if (!json_is(value, JSON_STRING) || tape_is_escaped(&value.doc->tape[value.at])) {
        return false;
    }
    *out = tape_inside(value.doc, &value.doc->tape[value.at]);
    return true;
}

bool json_str_same(json_val a, json_val b)
{
    if (!json_is(a, JSON_STRING) || !json_is(b, JSON_STRING)) {
        return false;
    }
    const json_tape *left = &a.doc->tape[a.at];
    const json_tape *right = &b.doc->tape[b.at];
    if (!tape_is_escaped(left) && !tape_is_escaped(right)) {
        return str_eq(tape_inside(a.doc, left), tape_inside(b.doc, right));
    }
    return json_chars_eq(tape_inside(a.doc, left), tape_inside(b.doc, right));
}

size_t json_str_length(json_val value)
{
    if (!json_is(value, JSON_STRING)) {
        return 0;
    }
    const json_tape *entry = &value.doc->tape[value.at];
    bay_str inside = tape_inside(value.doc, entry);
    size_t length = 0;
    if (!tape_is_escaped(entry)) {
        for (size_t i = 0; i < inside.len; i++) {
            length += ((unsigned char)inside.at[i] & 0xc0) != 0x80;
        }
        return length;
    }
    json_chars chars = json_chars_of(inside);
    for (int c = json_chars_next(&chars); c >= 0; c = json_chars_next(&chars)) {
        length += (c & 0xc0) != 0x80;
    }
    return length;
}

bool json_str_is_whole(json_val value)
{
    if (!json_is(value, JSON_STRING)) {
        return false;
    }
    const json_tape *entry = &value.doc->tape[value.at];
    if (!tape_is_escaped(entry)) {
        return true;
    }
    bay_str inside = tape_inside(value.doc, entry);
    const char *at = inside.at;
    const char *end = at + inside.len;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (json_is_surrogate(json_escape_read(&at, end))) {
            return false;
        }
    }
    return true;
}

bool json_is_utf8(bay_str text)
{
    const unsigned char *at = text.len > 0 ? (const unsigned char *)text.at : NULL;
    return at == NULL || json_scan_current()->utf8(at, at + text.len) == at + text.len;
}

/* Hashes the first bytes, decoded, so that the spelling has no effect. */
static uint64_t hash_string(json_val value, uint64_t seed)
{
    enum { HASHED = 256 };
    const json_tape *entry = &value.doc->tape[value.at];
    bay_str inside = tape_inside(value.doc, entry);
    if (!tape_is_escaped(entry)) {
        return str_hash(str_head(inside, HASHED), seed);
    }
    char decoded[HASHED];
    size_t len = 0;
    json_chars chars = json_chars_of(inside);
    for (int c = json_chars_next(&chars); c >= 0 && len < HASHED; c = json_chars_next(&chars)) {
        decoded[len++] = (char)c;
    }
    return str_hash((bay_str){decoded, len}, seed);
}

uint64_t json_hash(json_val value, uint64_t seed)
{
    json_kind kind = json_kind_of(value);
    if (kind == JSON_STRING) {
        return hash_string(value, seed);
    }
    if (kind == JSON_NUMBER) {
        return json_number_hash(json_raw(value), seed);
    }
    return (json_count(value) * 8 + (uint64_t)kind) * 0x9e3779b97f4a7c15U + seed;
}
