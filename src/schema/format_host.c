/* Addresses and names. Sources: RFC 1123 section 2.1, RFC 2673 section 3.2, RFC 4291 section 2.2,
 * RFC 5321 section 4.1.2, RFC 6531 section 3.3. */
#include "base/str.h"
#include "schema/format.h"

bool format_ipv4(bay_str text, format_tools *tools)
{
    (void)tools;
    for (int part = 0; part < 4; part++) {
        size_t len = 0;
        int number = 0;
        while (len < text.len && len < 4 && format_is_digit((unsigned char)text.at[len])) {
            number = number * 10 + (text.at[len++] - '0');
        }
        if (len == 0 || number > 255 || (len > 1 && text.at[0] == '0')) {
            return false;
        }
        text = str_from(text, len);
        if (part < 3) {
            if (text.len == 0 || text.at[0] != '.') {
                return false;
            }
            text = str_from(text, 1);
        }
    }
    return text.len == 0;
}

bool format_ipv6(bay_str text, format_tools *tools)
{
    int groups = 0;
    bool is_short = false;
    if (str_starts(text, STR("::"))) {
        is_short = true;
        text = str_from(text, 2);
    }
    while (text.len > 0) {
        size_t len = 0;
        while (len < text.len && len < 5 && format_is_hex((unsigned char)text.at[len])) {
            len++;
        }
        bay_str rest = str_from(text, len);
        if (rest.len > 0 && rest.at[0] == '.') {
            groups += 2;
            return format_ipv4(text, tools) && (is_short ? groups < 8 : groups == 8);
        }
        groups++;
        if (len == 0 || len > 4 || groups > 8) {
            return false;
        }
        text = rest;
        if (str_starts(text, STR("::")) && !is_short) {
            is_short = true;
            text = str_from(text, 2);
        } else if (text.len > 0) {
            if (text.at[0] != ':' || text.len == 1) {
                return false;
            }
            text = str_from(text, 1);
        }
    }
    return is_short ? groups < 8 : groups == 8;
}

/* Letters, digits and hyphens, these not at an end; RFC 1123. */
static bool is_label(bay_str label)
{
    for (size_t i = 0; i < label.len; i++) {
        int c = (unsigned char)label.at[i];
        if (!format_is_letter(c) && !format_is_digit(c) && c != '-') {
            return false;
        }
    }
    return label.len >= 1 && label.len <= 63 && label.at[0] != '-' &&
           label.at[label.len - 1] != '-';
}

bool format_hostname(bay_str text, format_tools *tools)
{
    if (text.len == 0 || text.len > 253) {
        return false;
    }
    for (;;) {
        size_t dot = str_find(text, '.');
        bay_str label = str_head(text, dot);
        if (!is_label(label)) {
            return false;
        }
        if (str_eq_nocase(str_head(label, 4), STR("xn--")) && !format_a_label(label, tools)) {
            return false;
        }
        if (dot == text.len) {
            return true;
        }
        text = str_from(text, dot + 1);
    }
}

static bool is_atom_character(int c, bool is_international)
{
    return format_is_letter(c) || format_is_digit(c) || (c >= 0x80 && is_international) ||
           (c > 0 && c < 0x80 && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

/* The length of the local part, a dotted atom or a quoted string; 0: neither. */
static size_t local_len(bay_str text, bool is_international)
{
    size_t at = 0;
    if (text.len > 0 && text.at[0] == '"') {
        for (at = 1; at < text.len && text.at[at] != '"'; at++) {
            int c = (unsigned char)text.at[at];
            at += c == '\\';
            c = at < text.len ? (unsigned char)text.at[at] : 0;
            if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_international)) {
                return 0;
            }
        }
        return at < text.len ? at + 1 : 0;
    }
    for (; at < text.len && text.at[at] != '@'; at++) {
        int c = (unsigned char)text.at[at];
        bool is_inner_dot = c == '.' && at > 0 && text.at[at - 1] != '.';
        if (!is_inner_dot && !is_atom_character(c, is_international)) {
            return 0;
        }
    }
    return at > 0 && text.at[at - 1] != '.' ? at : 0;
}

static bool is_email(bay_str text, bool is_international, format_tools *tools)
{
    enum { LONGEST_LOCAL = 64 };
    size_t len = local_len(text, is_international);
    if (len == 0 || len > LONGEST_LOCAL || len >= text.len || text.at[len] != '@') {
        return false;
    }
    bay_str domain = str_from(text, len + 1);
    if (domain.len > 2 && domain.at[0] == '[' && domain.at[domain.len - 1] == ']') {
        bay_str literal = {domain.at + 1, domain.len - 2};
        return str_eq_nocase(str_head(literal, 5), STR("IPv6:"))
                   ? format_ipv6(str_from(literal, 5), tools)
                   : format_ipv4(literal, tools);
    }
    return is_international ? format_idn_hostname(domain, tools) : format_hostname(domain, tools);
}

bool format_email(bay_str text, format_tools *tools)
{
    return is_email(text, false, tools);
}

bool format_idn_email(bay_str text, format_tools *tools)
{
    return is_email(text, true, tools);
}
