#include "wire/via.h"

#include <string.h>

#include "wire/header.h"

/* Finds the next comma outside of comments, which may be nested. False: a comment is not closed. */
static bool find_comma(const bay_str *rest, size_t *out)
{
    size_t depth = 0;
    size_t end = 0;
    for (; end < rest->len; end++) {
        char c = rest->at[end];
        if (c == '\\' && depth > 0) {
            end += end + 1 < rest->len;
        } else if (c == '(') {
            depth++;
        } else if (c == ')') {
            depth -= depth > 0;
        } else if (c == ',' && depth == 0) {
            break;
        }
    }
    *out = end < rest->len ? end : rest->len;
    return depth == 0;
}

/* An unclosed comment would hide all later entries, also this gateway's; from its '(' on, brackets
 * are therefore ordinary characters. */
static bay_str next_entry(bay_str *rest, bool *has_comments)
{
    size_t end = 0;
    *has_comments = *has_comments && find_comma(rest, &end);
    if (!*has_comments) {
        const char *comma = memchr(rest->at, ',', rest->len);
        end = comma != NULL ? (size_t)(comma - rest->at) : rest->len;
    }
    bay_str entry = str_head(*rest, end);
    *rest = str_from(*rest, end + 1);
    return str_trim(entry);
}

static size_t word_end(bay_str text)
{
    size_t end = 0;
    while (end < text.len && text.at[end] != ' ' && text.at[end] != '\t' && text.at[end] != '(') {
        end++;
    }
    return end;
}

/* received-protocol RWS received-by [ RWS comment ] */
static bay_str received_by(bay_str entry)
{
    bay_str rest = str_trim(str_from(entry, word_end(entry)));
    return str_head(rest, word_end(rest));
}

via_verdict via_read(via_seen *seen, bay_str value, bay_str name)
{
    seen->bytes += value.len <= VIA_BYTES ? value.len : VIA_BYTES + 1;
    if (seen->bytes > VIA_BYTES) {
        return VIA_TOO_LONG;
    }
    bool has_comments = true;
    while (value.len > 0) {
        bay_str entry = next_entry(&value, &has_comments);
        if (entry.len == 0) {
            continue;
        }
        if (str_eq_nocase(received_by(entry), name)) {
            return VIA_LOOP;
        }
        seen->entries++;
    }
    return seen->entries > VIA_ENTRIES ? VIA_TOO_LONG : VIA_FINE;
}

bool via_is_fine(bay_str value)
{
    return value.len > 0 && value.len <= VIA_BYTES && header_value_is_plain(value);
}

void via_write(buf *out, bay_str received, bay_str name)
{
    bay_str before = str_trim(received);
    if (before.len > 0) {
        buf_str(out, before);
        buf_lit(out, ", ");
    }
    buf_lit(out, "1.1 ");
    buf_str(out, name);
}
