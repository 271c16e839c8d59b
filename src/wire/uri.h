/* URIs: splitting them, resolving a reference, comparing origins, percent encoding, and matching a
 * URI against a URI template. Memory is allocated only for a `buf`. */
#ifndef WIRE_URI_H
#define WIRE_URI_H

#include "base/buf.h"
#include "patchbay/types.h"

/* The parts of a URI reference: views into its text. */
typedef struct uri {
    bay_str scheme;    /* empty in a relative reference */
    bay_str authority; /* userinfo, host and port as written */
    bay_str userinfo;
    bay_str host; /* without the brackets of an IP literal */
    bay_str path;
    bay_str query;    /* without '?' */
    bay_str fragment; /* without '#' */
    uint16_t port;    /* 0: none given */
    bool has_authority;
    bool has_userinfo;
    bool has_query;
    bool has_fragment;
    bool is_ip_literal; /* the host was in brackets */
} uri;

/* Splits a URI reference. Only the characters of the grammar are allowed, and every '%' needs two
 * hex digits. Owns: views into `text`. Errors: BAY_ERR_SYNTAX; BAY_ERR_RANGE: a port above 65535.
 * Threads: any. Source: RFC 3986 sections 3 and 4. */
bay_err uri_parse(uri *out, bay_str text) BAY_MUST_CHECK;

/* Splits `[userinfo@]host[:port]` and sets the members of `out` from authority to is_ip_literal;
 * the others stay unchanged. The host may be empty. Errors: as uri_parse; `out` is then
 * unspecified. */
bay_err uri_authority_parse(uri *out, bay_str text) BAY_MUST_CHECK;

/* The effective port: the given one, otherwise the scheme's (http, ws 80; https, wss 443),
 * otherwise 0. */
uint16_t uri_port(const uri *self);

/* Same scheme, host (case ignored) and port. False if either has no authority. Threads: any.
 * Source: RFC 6454 section 5. */
bool uri_same_origin(const uri *a, const uri *b);

/* Appends `reference`, resolved against `base` (absolute), with dot segments removed.
 * out_is_same_origin (may be NULL): whether the result has the base's origin. Errors:
 * BAY_ERR_SYNTAX, BAY_ERR_RANGE (either is not a URI, or base is relative); BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT from `out`; `out` is then as long as before. Threads: any. Source: RFC 3986 section
 * 5.2; mcp 2024-11-05 basic/transports: the endpoint event. */
bay_err uri_resolve(buf *out, bay_str base, bay_str reference,
                    bool *out_is_same_origin) BAY_MUST_CHECK;

/* Appends `text` with all but unreserved characters as %XX. Errors stick in `out`. Source: RFC 3986
 * section 2. */
void uri_encode(buf *out, bay_str text);

/* Appends `text` with every %XX replaced by its byte (any value, also NUL). Errors: BAY_ERR_SYNTAX:
 * a '%' without two hex digits; BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`, which is then as long as
 * before. Threads: any. Source: RFC 3986 section 2.1. */
bay_err uri_decode(buf *out, bay_str text) BAY_MUST_CHECK;

#define URI_TEMPLATE_EXPRESSIONS 32 /* in one template */
#define URI_TEMPLATE_BYTES 2048     /* longest template and ... */
#define URI_TEMPLATE_URI_BYTES 8192 /* ... longest URI that is matched */

/* BAY_OK if the template is well-formed: RFC 6570 levels 1 to 4. Errors: BAY_ERR_SYNTAX;
 * BAY_ERR_LIMIT: too long or too many expressions. Threads: any. Source: RFC 6570 section 2. */
bay_err uri_template_check(bay_str text) BAY_MUST_CHECK;

/* True if the URI can be an expansion of the template. `{x}` matches one or more characters other
 * than '/', '?' and '#'; `{+x}` one or more of any; `{#x}` `{.x}` `{/x}` `{;x}` `{?x}` `{&x}` match
 * their sign and what may follow it, or nothing. Malformed or too long: false. Time grows with
 * template × URI at worst, never exponentially. Threads: any. Source: RFC 6570 section 3. */
bool uri_template_matches(bay_str text, bay_str uri_text);

#endif
