#include "wire/uri_plain.h"

#include <string.h>

#include "base/str.h"
#include "wire/chars.h"

/* 0: it has none. */
static size_t scheme_len(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = char_lower(text.at[i]);
        bool is_letter = c >= 'a' && c <= 'z';
        if (c == ':') {
            return i;
        }
        if (!is_letter &&
            (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))) {
            return 0;
        }
    }
    return 0;
}

static void write_decoded(buf *out, bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = text.at[i] == '%' && i + 2 < text.len ? char_hex(text.at[i + 1]) : -1;
        int low = high >= 0 ? char_hex(text.at[i + 2]) : -1;
        if (low >= 0) {
            buf_char(out, (char)(high << 4 | low));
            i += 2;
        } else {
            buf_char(out, text.at[i]);
        }
    }
}

/* Scheme and authority in their usual form; returns what is behind them. */
static bay_str write_start(buf *out, bay_str text, bool *out_is_file)
{
    static const bay_str local = STR_INIT("localhost");
    size_t scheme = scheme_len(text);
    *out_is_file = str_eq_nocase(str_head(text, scheme), STR("file"));
    for (size_t i = 0; i < scheme; i++) {
        buf_char(out, char_lower(text.at[i]));
    }
    if (scheme > 0) {
        buf_char(out, ':');
        text = str_from(text, scheme + 1);
    }
    if (scheme == 0 || !str_starts(text, STR("//"))) {
        if (*out_is_file && str_starts(text, STR("/"))) {
            buf_lit(out, "//");
        }
        return text;
    }
    bay_str behind = str_from(text, 2);
    size_t end = 0;
    while (end < behind.len && memchr("/?#", behind.at[end], 3) == NULL) {
        end++;
    }
    buf_lit(out, "//");
    if (!*out_is_file || !str_eq_nocase(str_head(behind, end), local)) {
        size_t before = out->len;
        write_decoded(out, str_head(behind, end));
        for (size_t i = before; i < out->len; i++) {
            out->at[i] = char_lower(out->at[i]); /* RFC 3986 section 3.2.2 */
        }
    }
    return str_from(behind, end);
}

static size_t cut_last(const buf *out, size_t start, size_t len)
{
    while (len > start && out->at[len - 1] != '/') {
        len--;
    }
    return len > start ? len - 1 : start; /* and the slash before it */
}

/* The path from `start` on without segments that mean nothing; of a file, without empty ones. */
static void tidy_path(buf *out, size_t start, bool is_file)
{
    size_t to = start;
    size_t from = start;
    while (from < out->len) {
        size_t next = from + 1;
        while (next < out->len && out->at[next] != '/') {
            next++;
        }
        bool is_slashed = out->at[from] == '/';
        bay_str name = {out->at + from + is_slashed, next - from - is_slashed};
        bool is_last = next == out->len;
        bool is_up = str_eq(name, STR(".."));
        if (is_up) {
            to = cut_last(out, start, to);
        }
        if (is_up || str_eq(name, STR(".")) || (is_file && name.len == 0 && !is_last)) {
            if (is_last) {
                out->at[to++] = '/';
            }
        } else {
            memmove(out->at + to, out->at + from, next - from);
            to += next - from;
        }
        from = next;
    }
    out->len = to;
}

void uri_plain(buf *out, bay_str text)
{
    bool is_file;
    bay_str rest = write_start(out, text, &is_file);
    rest = str_head(rest, str_find(rest, '#'));
    size_t query = str_find(rest, '?');
    size_t start = out->len;
    write_decoded(out, str_head(rest, query));
    if (out->err != BAY_OK) {
        return;
    }
    for (size_t i = start; is_file && i < out->len; i++) {
        out->at[i] = out->at[i] == '\\' ? '/' : out->at[i];
    }
    tidy_path(out, start, is_file);
    if (!is_file) {
        write_decoded(out, str_from(rest, query));
    }
}

void uri_plain_pattern(buf *out, bay_str pattern)
{
    bool is_file;
    bay_str rest = write_start(out, pattern, &is_file);
    write_decoded(out, rest);
}
