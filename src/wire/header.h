/* Header values: the base64 sentinel of MCP, media types, hosts and origins. Views point into the
 * given value; memory is allocated only for a `buf`; any thread may call. */
#ifndef WIRE_HEADER_H
#define WIRE_HEADER_H

#include "base/buf.h"
#include "patchbay/types.h"

/* True if `name` is a field name: one or more tchar. Source: RFC 9110 section 5.6.2. */
bool header_name_is_valid(bay_str name);

/* True if `text` is a token of credentials: "Bearer" and this (b64token, which RFC 9110 section 11.2
 * calls token68). Source: RFC 6750 section 2.1. */
bool header_is_token68(bay_str text);

/* True if MCP allows `value` in a header: visible ASCII, space and tab. Source: mcp 2026-07-28
 * basic/transports/streamable-http, Value Encoding. */
bool header_value_is_plain(bay_str value);

/* Appends `text` as a header value: unchanged, or `=?base64?…?=` if it contains anything but
 * visible ASCII, space and tab, has white space at an end, or looks like the sentinel itself.
 * Errors stick in `out`. Threads: any. Source: mcp 2026-07-28 basic/transports/streamable-http,
 * Value Encoding. */
void header_value_encode(buf *out, bay_str text);

/* Appends the text of a header value. A value without both prefix and suffix is taken literally.
 * Errors: BAY_ERR_SYNTAX: the sentinel's base64 is malformed, or a literal value has bytes that are
 * not allowed; BAY_ERR_UTF8: the decoded bytes are not UTF-8; BAY_ERR_NOMEM, BAY_ERR_LIMIT from
 * `out`; `out` is then as long as before. Threads: any. Source: mcp 2026-07-28
 * basic/transports/streamable-http, Value Encoding. */
bay_err header_value_decode(buf *out, bay_str value) BAY_MUST_CHECK;

/* True if a Content-Type value names this media type; parameters and case are ignored. `type`:
 * "application/json". Malformed: false. Source: RFC 9110 section 8.3. */
bool header_content_type_is(bay_str value, bay_str type);

/* True unless a Content-Type value excludes JSON. Accepted are application/json, text/json, any
 * "+json", the types that file servers send for unknown files (text/plain,
 * application/octet-stream), and an empty value. Two values at once: false. Source: RFC 9110
 * section 8.3, RFC 6839 section 3.1. */
bool header_content_type_may_be_json(bay_str value);

/* True if an Accept value admits the media type. The most specific matching range decides
 * (type/subtype, then type / *, then * / *); q=0 refuses. An empty value admits nothing: the caller
 * decides what an absent header means. Source: RFC 9110 section 12.5.1. */
bool header_accepts(bay_str value, bay_str type);

/* Like header_accepts, but only if the type is named in full, not by a wildcard. */
bool header_accepts_named(bay_str value, bay_str type);

/* Splits `host[:port]`; an IPv6 literal loses its brackets. Port 0: none given. Owns: views into
 * `value`. Errors: BAY_ERR_SYNTAX: no host, bytes that no host has, user information, or a port
 * that is not a number up to 65535. Threads: any. Source: RFC 9110 section 7.2. */
bay_err header_host_split(bay_str value, bay_str *out_host, uint16_t *out_port) BAY_MUST_CHECK;

/* Splits an Origin value (`scheme://host[:port]`, nothing behind it). The port is the given one or
 * the scheme's default. Errors: BAY_ERR_NOT_FOUND: "null" (an opaque origin); BAY_ERR_SYNTAX.
 * Source: RFC 6454 section 7. */
bay_err header_origin_split(bay_str value, bay_str *out_scheme, bay_str *out_host,
                            uint16_t *out_port) BAY_MUST_CHECK;

/* True if `value` is a valid tracestate: at most HEADER_TRACESTATE_BYTES and 32 entries, each
 * key=value and plain. Source: W3C Trace Context section 3.3. */
enum { HEADER_TRACESTATE_BYTES = 512 };
bool header_tracestate_is_valid(bay_str value);

/* True for localhost, names below it, 127.0.0.0/8 written as four numbers or mapped into IPv6, and
 * ::1, without a port and without brackets. Source: RFC 6761 section 6.3, RFC 4291 section
 * 2.5.5.2. */
bool header_host_is_loopback(bay_str host);

/* True if a Host value is allowed by `allowed`: `host` (any port) or `host:port`. Case is ignored.
 * Malformed: false. Source: mcp basic/transports, DNS rebinding. */
bool header_host_is(bay_str value, bay_str allowed);

/* True if an Origin value is allowed by `allowed`: `scheme://host[:port]` (that origin) or `host` /
 * `host:port` (any scheme). Malformed or "null": false. */
bool header_origin_is(bay_str value, bay_str allowed);

#endif
