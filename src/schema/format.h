/* `format`: the syntax of strings. format.c has the table and the short formats, format_time.c
 * dates and times, format_uri.c URIs and templates, format_host.c addresses and names, format_idn.c
 * internationalised names. None of them allocates. Private to schema/. */
#ifndef SCHEMA_FORMAT_H
#define SCHEMA_FORMAT_H

#include "patchbay/types.h"
#include "schema/pattern.h"

/* Unicode properties of a label: expressions that a schema compiles once if one of its formats
 * needs them. */
typedef enum idn_pattern {
    IDN_LABEL,      /* code points, and those whose validity depends on their neighbours */
    IDN_HAS_RTL,    /* makes a name a Bidi domain name */
    IDN_BIDI_LABEL, /* RFC 5893 */
    IDN_PATTERNS,
} idn_pattern;

/* What a format may need of the current check. */
typedef struct format_tools {
    const pattern_engine *engine;
    pattern *const *idn;
    void **match;
    uint64_t *steps;
    bay_err err; /* BAY_ERR_LIMIT, BAY_ERR_NOMEM: there is no result */
} format_tools;

typedef struct format_kind {
    bay_str name;
    bool (*check)(bay_str text, format_tools *tools); /* valid UTF-8 */
    bool is_new;                                      /* not in draft-07 */
    bool needs_idn;
    const char *words; /* "a date such as 2026-01-31" */
} format_kind;

/* The format of this name, or NULL. */
const format_kind *format_find(bay_str name);
const format_kind *format_at(uint32_t index);
uint32_t format_index(const format_kind *self);
bay_err format_idn_new(const pattern_engine *engine, pattern *out[IDN_PATTERNS]) BAY_MUST_CHECK;

bool format_date_time(bay_str text, format_tools *tools);
bool format_date(bay_str text, format_tools *tools);
bool format_time(bay_str text, format_tools *tools);
bool format_duration(bay_str text, format_tools *tools);
bool format_email(bay_str text, format_tools *tools);
bool format_idn_email(bay_str text, format_tools *tools);
bool format_hostname(bay_str text, format_tools *tools);
bool format_idn_hostname(bay_str text, format_tools *tools);
bool format_ipv4(bay_str text, format_tools *tools);
bool format_ipv6(bay_str text, format_tools *tools);
bool format_uri(bay_str text, format_tools *tools);
bool format_uri_reference(bay_str text, format_tools *tools);
bool format_iri(bay_str text, format_tools *tools);
bool format_iri_reference(bay_str text, format_tools *tools);
bool format_uri_template(bay_str text, format_tools *tools);

/* A label in the form of an A-label ("xn--…"); RFC 5891. */
bool format_a_label(bay_str label, format_tools *tools);

static inline bool format_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool format_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool format_is_hex(int c)
{
    return format_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The character at *at (valid UTF-8); advances *at past it. */
uint32_t format_character(bay_str text, size_t *at);

#endif
