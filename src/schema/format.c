/* The table of formats, and the short ones. */
#include "schema/format.h"

#include "base/str.h"

uint32_t format_character(bay_str text, size_t *at)
{
    unsigned char lead = (unsigned char)text.at[*at];
    size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    uint32_t code = more == 0 ? lead : lead & (0x3fU >> more);
    for (size_t i = 1; i <= more && *at + i < text.len; i++) {
        code = code << 6 | ((unsigned char)text.at[*at + i] & 0x3f);
    }
    *at += more + 1;
    return code;
}

/* RFC 4122 section 3 */
static bool format_uuid(bay_str text, format_tools *tools)
{
    (void)tools;
    if (text.len != 36) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text.at[i] != '-' : !format_is_hex((unsigned char)text.at[i])) {
            return false;
        }
    }
    return true;
}

/* RFC 6901 section 3 */
static bool format_json_pointer(bay_str text, format_tools *tools)
{
    (void)tools;
    if (text.len > 0 && text.at[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '~' &&
            (i + 1 == text.len || (text.at[i + 1] != '0' && text.at[i + 1] != '1'))) {
            return false;
        }
    }
    return true;
}

/* draft-bhutton-relative-json-pointer-00; without the index manipulation, which is newer than the
 * draft that the dialects name */
static bool format_relative_json_pointer(bay_str text, format_tools *tools)
{
    size_t digits = 0;
    while (digits < text.len && format_is_digit((unsigned char)text.at[digits])) {
        digits++;
    }
    if (digits == 0 || (digits > 1 && text.at[0] == '0')) {
        return false;
    }
    bay_str rest = str_from(text, digits);
    return str_eq(rest, STR("#")) || format_json_pointer(rest, tools);
}

static bool format_regex(bay_str text, format_tools *tools)
{
    (void)tools;
    return pattern_is_valid(text);
}

static const format_kind formats[] = {
    {STR_INIT("date-time"), format_date_time, false, false,
     "a date and time with its offset, such as 2026-01-31T09:30:00Z"},
    {STR_INIT("date"), format_date, false, false, "a date such as 2026-01-31"},
    {STR_INIT("time"), format_time, false, false, "a time with its offset, such as 09:30:00Z"},
    {STR_INIT("duration"), format_duration, true, false, "a duration such as P3DT12H"},
    {STR_INIT("email"), format_email, false, true, "an e-mail address such as joe@example.com"},
    {STR_INIT("idn-email"), format_idn_email, false, true,
     "an e-mail address such as joe@example.com"},
    {STR_INIT("hostname"), format_hostname, false, true, "a host name such as www.example.com"},
    {STR_INIT("idn-hostname"), format_idn_hostname, false, true,
     "a host name such as www.example.com"},
    {STR_INIT("ipv4"), format_ipv4, false, false, "an IPv4 address such as 192.0.2.1"},
    {STR_INIT("ipv6"), format_ipv6, false, false, "an IPv6 address such as 2001:db8::1"},
    {STR_INIT("uri"), format_uri, false, false, "a URI such as https://example.com/path"},
    {STR_INIT("uri-reference"), format_uri_reference, false, false,
     "a URI or a relative reference such as ../path"},
    {STR_INIT("iri"), format_iri, false, false, "an IRI such as https://example.com/path"},
    {STR_INIT("iri-reference"), format_iri_reference, false, false,
     "an IRI or a relative reference such as ../path"},
    {STR_INIT("uuid"), format_uuid, true, false,
     "a UUID such as 2eb8aa08-aa98-11ea-b4aa-73b441d16380"},
    {STR_INIT("uri-template"), format_uri_template, false, false,
     "a URI template such as https://example.com/{id}"},
    {STR_INIT("json-pointer"), format_json_pointer, false, false,
     "a JSON pointer such as /items/0"},
    {STR_INIT("relative-json-pointer"), format_relative_json_pointer, false, false,
     "a relative JSON pointer such as 1/items"},
    {STR_INIT("regex"), format_regex, false, false, "a regular expression (ECMA-262)"},
};

const format_kind *format_find(bay_str name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (str_eq(formats[i].name, name)) {
            return &formats[i];
        }
    }
    return NULL;
}

const format_kind *format_at(uint32_t index)
{
    return &formats[index];
}

uint32_t format_index(const format_kind *self)
{
    return (uint32_t)(self - formats);
}
