/* URIs, IRIs and their templates. Sources: RFC 3986 appendix A; RFC 3987 section 2.2; RFC 6570
 * section 2. */
#include "base/str.h"
#include "schema/format.h"

static bool is_unreserved(int c)
{
    return format_is_letter(c) || format_is_digit(c) || c == '-' || c == '.' || c == '_' ||
           c == '~';
}

static bool is_among(const char *set, int c)
{
    return c > 0 && c < 0x80 && strchr(set, c) != NULL;
}

static bool is_sub_delimiter(int c)
{
    return is_among("!$&'()*+,;=", c);
}

/* RFC 3987: ucschar; also iprivate where it is allowed */
static bool is_beyond_ascii(uint32_t c, bool is_query)
{
    bool is_private = (c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000;
    bool is_character =
        (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfdcf) ||
        (c >= 0xfdf0 && c <= 0xffef) ||
        (c >= 0x10000 && c <= 0xefffd && (c & 0xffff) <= 0xfffd && !(c >= 0xe0000 && c < 0xe1000));
    return is_character || (is_query && is_private && (c & 0xffff) <= 0xfffd);
}

/* Whether every character is unreserved, escaped, a sub-delimiter, or one of `more`. */
static bool is_made_of(bay_str text, const char *more, bool is_iri, bool is_query)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c = format_character(text, &i);
        if (c == '%') {
            if (i + 1 >= text.len || !format_is_hex((unsigned char)text.at[i]) ||
                !format_is_hex((unsigned char)text.at[i + 1])) {
                return false;
            }
            i += 2;
        } else if (c < 0x80 ? !is_unreserved((int)c) && !is_sub_delimiter((int)c) &&
                                  !is_among(more, (int)c)
                            : !is_iri || !is_beyond_ascii(c, is_query)) {
            return false;
        }
    }
    return true;
}

static bool is_ip_literal(bay_str text, format_tools *tools)
{
    if (text.len == 0 || (text.at[0] | 0x20) != 'v') {
        return format_ipv6(text, tools);
    }
    size_t dot = str_find(text, '.');
    bay_str version = str_from(str_head(text, dot), 1);
    bay_str address = str_from(text, dot + 1);
    for (size_t i = 0; i < version.len; i++) {
        if (!format_is_hex((unsigned char)version.at[i])) {
            return false;
        }
    }
    return version.len > 0 && address.len > 0 && str_find(address, '%') == address.len &&
           is_made_of(address, ":", false, false);
}

static bool is_authority(bay_str text, bool is_iri, format_tools *tools)
{
    size_t at = str_find(text, '@');
    if (at < text.len) {
        if (!is_made_of(str_head(text, at), ":", is_iri, false)) {
            return false;
        }
        text = str_from(text, at + 1);
    }
    bay_str port = {"", 0};
    if (text.len > 0 && text.at[0] == '[') {
        size_t end = str_find(text, ']');
        if (end == text.len || !is_ip_literal((bay_str){text.at + 1, end - 1}, tools)) {
            return false;
        }
        text = str_from(text, end + 1);
        if (text.len > 0 && text.at[0] != ':') {
            return false;
        }
        port = str_from(text, 1);
    } else {
        size_t colon = str_find(text, ':');
        port = str_from(text, colon + 1);
        if (!is_made_of(str_head(text, colon), "", is_iri, false)) {
            return false;
        }
    }
    for (size_t i = 0; i < port.len; i++) {
        if (!format_is_digit((unsigned char)port.at[i])) {
            return false;
        }
    }
    return true;
}

/* The length of a scheme with its ':', or 0. */
static size_t scheme_len(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int c = (unsigned char)text.at[i];
        if (c == ':') {
            return i > 0 ? i + 1 : 0;
        }
        bool is_more = format_is_digit(c) || c == '+' || c == '-' || c == '.';
        if (!format_is_letter(c) && (i == 0 || !is_more)) {
            return 0;
        }
    }
    return 0;
}

static bool is_reference(bay_str text, bool is_iri, bool needs_scheme, format_tools *tools)
{
    size_t scheme = scheme_len(text);
    if (needs_scheme && scheme == 0) {
        return false;
    }
    text = str_from(text, scheme);
    size_t hash = str_find(text, '#');
    if (!is_made_of(str_from(text, hash + 1), ":@/?", is_iri, false)) {
        return false;
    }
    text = str_head(text, hash);
    size_t question = str_find(text, '?');
    if (!is_made_of(str_from(text, question + 1), ":@/?", is_iri, true)) {
        return false;
    }
    text = str_head(text, question);
    if (str_starts(text, STR("//"))) {
        text = str_from(text, 2);
        size_t slash = str_find(text, '/');
        return is_authority(str_head(text, slash), is_iri, tools) &&
               is_made_of(str_from(text, slash), ":@/", is_iri, false);
    }
    if (scheme == 0 && str_find(text, ':') < str_find(text, '/')) {
        return false; /* its first segment would be read as a scheme */
    }
    return is_made_of(text, ":@/", is_iri, false);
}

bool format_uri(bay_str text, format_tools *tools)
{
    return is_reference(text, false, true, tools);
}

bool format_uri_reference(bay_str text, format_tools *tools)
{
    return is_reference(text, false, false, tools);
}

bool format_iri(bay_str text, format_tools *tools)
{
    return is_reference(text, true, true, tools);
}

bool format_iri_reference(bay_str text, format_tools *tools)
{
    return is_reference(text, true, false, tools);
}

/* The length of a %XX, or 0. */
static size_t escape_len(bay_str text)
{
    return text.len >= 3 && text.at[0] == '%' && format_is_hex((unsigned char)text.at[1]) &&
                   format_is_hex((unsigned char)text.at[2])
               ? 3
               : 0;
}

/* A variable name: dots only between other characters, optionally followed by :N or *. */
static bool is_variable(bay_str text)
{
    size_t at = 0;
    bool after_dot = true;
    while (at < text.len) {
        int c = (unsigned char)text.at[at];
        size_t escape = escape_len(str_from(text, at));
        if (c == '.' && !after_dot) {
            after_dot = true;
            at++;
        } else if (escape > 0 || format_is_letter(c) || format_is_digit(c) || c == '_') {
            after_dot = false;
            at += escape > 0 ? escape : 1;
        } else {
            break;
        }
    }
    bay_str rest = str_from(text, at);
    if (after_dot) {
        return false;
    }
    if (rest.len == 0 || str_eq(rest, STR("*"))) {
        return true;
    }
    uint64_t prefix;
    bay_str number = str_from(rest, 1);
    return rest.at[0] == ':' && number.len <= 4 && str_uint(number, &prefix) && number.at[0] != '0';
}

static bool is_expression(bay_str text)
{
    if (text.len > 0 && is_among("+#./;?&=,!@|", (unsigned char)text.at[0])) {
        text = str_from(text, 1);
    }
    for (;;) {
        size_t comma = str_find(text, ',');
        if (!is_variable(str_head(text, comma))) {
            return false;
        }
        if (comma == text.len) {
            return true;
        }
        text = str_from(text, comma + 1);
    }
}

bool format_uri_template(bay_str text, format_tools *tools)
{
    (void)tools;
    for (size_t i = 0; i < text.len;) {
        size_t before = i;
        uint32_t c = format_character(text, &i);
        if (c == '{') {
            bay_str rest = str_from(text, i);
            size_t end = str_find(rest, '}');
            if (end == rest.len || !is_expression(str_head(rest, end))) {
                return false;
            }
            i += end + 1;
        } else if (c == '%') {
            if (escape_len(str_from(text, before)) == 0) {
                return false;
            }
        } else if (c <= 0x20 || (c >= 0x7f && c < 0xa0) || is_among("\"<>\\^`|}", (int)c)) {
            return false;
        }
    }
    return true;
}
