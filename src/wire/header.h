/* What stands inside header values: the base64 sentinel of MCP, media types, hosts and origins.
 * Views point into the value given; nothing allocates except into a `buf`; any thread may call. */
#ifndef WIRE_HEADER_H
#define WIRE_HEADER_H

#include "base/buf.h"
#include "patchbay/types.h"

/* True when `name` is a field name: one or more tchar. Source: RFC 9110 section 5.6.2. */
bool header_name_is_valid(bay_str name);

/* True when `value` may stand in a header as the specification of MCP wants it: visible ASCII,
 * space and tab. Source: mcp 2026-07-28 basic/transports/streamable-http, Value Encoding. */
bool header_value_is_plain(bay_str value);

/* Appends `text` as a header value: as it is, or `=?base64?…?=` when it holds anything but visible
 * ASCII, space and tab, has white space at an end, or looks like the sentinel itself.
 * Owns: nothing. Errors: none of its own; they stick in `out`. Threads: any.
 * Source: mcp 2026-07-28 basic/transports/streamable-http, Value Encoding. */
void header_value_encode(buf *out, bay_str text);

/* Appends the text a header value stands for. Without both prefix and suffix it is taken literally.
 * Owns: nothing. Errors: BAY_ERR_SYNTAX: the sentinel's base64 is malformed, or a literal value
 * holds bytes that are not allowed; BAY_ERR_UTF8: the decoded bytes are not UTF-8; BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT from `out`; `out` is then as long as before. Threads: any. Source: mcp 2026-07-28
 * basic/transports/streamable-http, Value Encoding. */
bay_err header_value_decode(buf *out, bay_str value) BAY_MUST_CHECK;

/* True when a Content-Type value names this media type, parameters and case aside.
 * `type`: "application/json". Malformed: false. Source: RFC 9110 section 8.3. */
bool header_content_type_is(bay_str value, bay_str type);

/* True unless a Content-Type value rules JSON out: application/json, text/json, any "+json", and
 * what a file server says of a file that it knows nothing about (text/plain,
 * application/octet-stream), or nothing at all. Two values at once: false.
 * Source: RFC 9110 section 8.3, RFC 6839 section 3.1. */
bool header_content_type_may_be_json(bay_str value);

/* True when an Accept value admits the media type. The most specific range that matches decides
 * (type/subtype, then type / *, then * / *), q=0 refuses. An absent header (empty value) admits
 * nothing here: the caller decides what absence means. Source: RFC 9110 section 12.5.1. */
bool header_accepts(bay_str value, bay_str type);

/* As header_accepts, but only when the type is named in full, not through a wildcard. */
bool header_accepts_named(bay_str value, bay_str type);

/* Takes `host[:port]` apart; an IPv6 literal loses its brackets. Port 0: none given.
 * Owns: views into `value`. Errors: BAY_ERR_SYNTAX: no host, bytes no host has, user information, a
 * port that is no number up to 65535. Threads: any. Source: RFC 9110 section 7.2. */
bay_err header_host_split(bay_str value, bay_str *out_host, uint16_t *out_port) BAY_MUST_CHECK;

/* Takes an Origin value (`scheme://host[:port]`, nothing behind it) apart. The port is the one
 * given or the scheme's default. Errors: BAY_ERR_NOT_FOUND: "null" (an opaque origin);
 * BAY_ERR_SYNTAX.
 * Source: RFC 6454 section 7. */
bay_err header_origin_split(bay_str value, bay_str *out_scheme, bay_str *out_host,
                            uint16_t *out_port) BAY_MUST_CHECK;

/* True when `value` is a list of vendors' entries in a trace: HEADER_TRACESTATE_BYTES and 32
 * entries at most, key=value each, plain. Source: W3C Trace Context section 3.3. */
enum { HEADER_TRACESTATE_BYTES = 512 };
bool header_tracestate_is_valid(bay_str value);

/* True for localhost, names below it, 127.0.0.0/8 written as four numbers or mapped into IPv6, and
 * ::1, without a port and without brackets. Source: RFC 6761 section 6.3, RFC 4291 section
 * 2.5.5.2. */
bool header_host_is_loopback(bay_str host);

/* True when a Host value is the allowed one: `allowed` is `host` (any port) or `host:port`. Any
 * case. Malformed: false. Source: mcp basic/transports, DNS rebinding. */
bool header_host_is(bay_str value, bay_str allowed);

/* True when an Origin value is the allowed one: `allowed` is `scheme://host[:port]` (that origin)
 * or `host` / `host:port` (any scheme). Malformed or "null": false. */
bool header_origin_is(bay_str value, bay_str allowed);

#endif
