/* HTTP/1.1 messages: a strict reader for heads and bodies, and a writer that does not let a value
 * inject a header. It accepts the grammar of RFC 9110 and RFC 9112 only, and refuses what two
 * readers could understand differently, so that no request can be smuggled.
 *
 * Reading a message:
 *
 *     http1_parser_init ──► http1_head_parse ──BAY_ERR_AGAIN──► (read more, call again with all)
 *                                │ BAY_OK, `consumed` bytes were the head
 *                                ▼
 *     http1_body_init   ──► http1_body_feed … until HTTP1_BODY_END
 *
 * Any error ends the connection; `refusal` says what to answer first. Only the writers allocate,
 * for their `buf`. Every function may be called from any thread, one at a time per object; every
 * size is in bytes. */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include "base/buf.h"
#include "patchbay/types.h"
#include "wire/field.h"

#define HTTP1_UNBOUNDED UINT64_MAX

typedef enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE } http1_kind;

typedef struct http1_limits {
    size_t head_bytes;            /* whole head with its empty line; at most 2^31 */
    size_t target_bytes;          /* request target: 414 */
    uint32_t fields;              /* size of the caller's table: 431 */
    uint64_t body_bytes;          /* decoded body; HTTP1_UNBOUNDED: no limit */
    size_t framing_bytes;         /* how many bytes the framing of a body may exceed its data */
    size_t chunk_extension_bytes; /* all chunk extensions of one body, with ';' and white space */
    size_t trailer_bytes;         /* the trailer section of one body */
} http1_limits;

/* 32 KiB, 8 KiB, 100, 16 MiB, 64 KiB, 1 KiB, 8 KiB. */
extern const http1_limits http1_default_limits;

/* Why a message was refused. */
typedef struct http1_refusal {
    int status;       /* 400, 413, 414, 417, 431, 501, 505; for a response always 502 */
    const char *text; /* one short sentence, static */
    size_t offset;    /* start of the offending line in the head; 0 for bodies */
} http1_refusal;

typedef enum http1_framing {
    HTTP1_FRAMING_NONE,    /* no body */
    HTTP1_FRAMING_LENGTH,  /* content_length bytes, not 0 */
    HTTP1_FRAMING_CHUNKED, /* chunks, then trailers */
    HTTP1_FRAMING_CLOSE,   /* until the peer closes; responses only */
} http1_framing;

/* A parsed head. Every view points into the bytes of the last http1_head_parse (or to a static
 * string), so it is valid until the caller moves, changes or frees them. */
typedef struct http1_head {
    bay_str method;    /* request: a token without lower-case letters */
    bay_str target;    /* request: as sent */
    bay_str path;      /* request: without the query; never empty; "*" for OPTIONS * */
    bay_str query;     /* request: without '?'; `at` NULL: none */
    bay_str authority; /* request: the value of Host (empty in HTTP/1.0 without it) */
    bay_str reason;    /* response */
    int status;        /* response: 100 to 999 */
    uint8_t minor;     /* HTTP/1.minor: 0 or 1 */
    bool has_content_length;
    bool is_chunked;
    bool keep_alive;       /* the connection may carry another message after this one */
    bool expects_continue; /* the peer waits for 100 before it sends the body */
    http1_framing framing;
    uint64_t content_length; /* 0 unless has_content_length */
    http_field *fields;      /* the caller's table */
    uint32_t field_count;
} http1_head;

/* The state of reading a head. A plain value of some 220 bytes, nothing to free. */
typedef struct http1_parser {
    const http1_limits *limits;
    http1_head head;
    http1_refusal refusal; /* set when http1_head_parse failed */
    uintptr_t base;        /* where the bytes were at the last call */
    bay_str host;
    size_t line_at; /* start of the first unread line */
    size_t scan_at; /* no line end between line_at and here */
    http1_kind kind;
    uint8_t stage;
    bool answers_head;
    bool has_host;
    bool has_authority_target;
    bool asks_close;
    bool asks_keep_alive;
} http1_parser;

/* Prepares for one message. `fields` is the caller's table of limits->fields entries; both are
 * borrowed while the head is used. Between two calls of http1_head_parse the caller may point
 * parser->head.fields at a copy of the table. answers_head: the response to a HEAD request (which
 * never has a body). Threads: any. Source: RFC 9112. */
void http1_parser_init(http1_parser *self, http1_kind kind, const http1_limits *limits,
                       http_field *fields, bool answers_head);

/* Reads a head from `bytes`: everything that has arrived of this message, from its first byte, in
 * one run. After BAY_ERR_AGAIN call it again with the same bytes followed by more (the run may have
 * moved); no byte is read more than twice. The result does not depend on how the bytes were split.
 * One CRLF before a request line is skipped. The caller handles 1xx responses: parse again after
 * them.
 * Owns: `out` holds views, see http1_head. `out_consumed`: length of the head.
 * Errors: BAY_ERR_AGAIN: more bytes are needed. BAY_ERR_SYNTAX, BAY_ERR_LIMIT, BAY_ERR_UNSUPPORTED,
 * BAY_ERR_VERSION: refused, see self->refusal; answer, then close. After an error the parser must
 * be initialised again.
 * Threads: any. Source: RFC 9112 sections 2 to 6, RFC 9110 sections 5 to 7. */
bay_err http1_head_parse(http1_parser *self, bay_str bytes, http1_head *out,
                         size_t *out_consumed) BAY_MUST_CHECK;

/* The value of the first field of this name (case ignored); `at` NULL: absent. Owns: a view, as
 * long as the head's. Threads: any. Source: RFC 9110 section 5.1. */
bay_str http1_field_find(const http_field *fields, size_t count, bay_str name);

/* The number of fields of this name. Threads: any. Source: RFC 9110 section 5.2. */
size_t http1_field_count(const http_field *fields, size_t count, bay_str name);

/* True if a comma-separated value contains the token (case ignored). Threads: any. Source: RFC 9110
 * section 5.6.1. */
bool http1_list_holds(bay_str value, bay_str token);

typedef enum http1_body_event {
    HTTP1_BODY_MORE, /* all bytes are consumed, the body continues */
    HTTP1_BODY_DATA, /* `out_data` is the next span; call again with the rest, even if empty */
    HTTP1_BODY_END,  /* the body is complete; the rest belongs to the next message */
} http1_body_event;

/* Reads one body. A plain value: nothing to free. */
typedef struct http1_body {
    http1_refusal refusal;
    uint64_t remaining;  /* bytes of the length or of the chunk that remain */
    uint64_t total;      /* decoded bytes */
    uint64_t body_bytes; /* the limits */
    size_t framing_bytes;
    size_t excess; /* bytes of framing minus bytes of data so far; not below 0 */
    size_t extension_left;
    size_t trailer_left;
    http1_kind kind;
    uint8_t state;
    uint8_t digits; /* of the chunk size; and of the trailer's name in `name` */
    char name[20];  /* the trailer field being read, lower case, cut */
} http1_body;

/* Prepares for the body that `head` announces. limits: read during this call only. Threads: any.
 * Source: RFC 9112 section 6.3. */
void http1_body_init(http1_body *self, http1_kind kind, const http1_head *head,
                     const http1_limits *limits);

/* Decodes from the front of `bytes`, at most one span per call. The concatenated spans and the end
 * do not depend on how the bytes were split. Trailer fields are checked and dropped. With
 * HTTP1_FRAMING_NONE the first call returns HTTP1_BODY_END. A span is never empty.
 * Owns: `out_data` is a view into `bytes`.
 * Errors: BAY_ERR_SYNTAX, BAY_ERR_LIMIT (see self->refusal; the connection cannot be used any
 * more); BAY_ERR_STATE if called again after one of these.
 * Threads: any. Source: RFC 9112 section 7.1. */
bay_err http1_body_feed(http1_body *self, bay_str bytes, size_t *out_consumed, bay_str *out_data,
                        http1_body_event *out_event) BAY_MUST_CHECK;

/* Resets the count of framing: for streams that are idle for a while, so that small keep-alive
 * chunks may continue without limit. Threads: any. */
void http1_body_rest(http1_body *self);

/* The peer has closed. BAY_OK: this ends the body (HTTP1_FRAMING_CLOSE), or it had ended before.
 * Errors: BAY_ERR_PROTOCOL: the body is incomplete. Threads: any. Source: RFC 9112 section 8. */
bay_err http1_body_finish(http1_body *self) BAY_MUST_CHECK;

/* The writers append to `out`; if they fail, `out` is as long as before. They refuse names that are
 * not tokens and values with CR, LF, NUL or other control bytes, so no caller can inject a header.
 * They add no field by themselves: no Host, no Content-Length. */

/* A whole head with its empty line. reason empty: the standard one. Errors: BAY_ERR_INVALID;
 * BAY_ERR_NOMEM or BAY_ERR_LIMIT from `out` (which keeps its error). Threads: any. Source: RFC 9112
 * sections 3 and 4. */
bay_err http1_write_request(buf *out, bay_str method, bay_str target, const http_field *fields,
                            size_t count) BAY_MUST_CHECK;
bay_err http1_write_response(buf *out, int status, bay_str reason, const http_field *fields,
                             size_t count) BAY_MUST_CHECK;

/* A head in parts: a line, any number of fields, http1_write_end. */
bay_err http1_write_request_line(buf *out, bay_str method, bay_str target) BAY_MUST_CHECK;
bay_err http1_write_status_line(buf *out, int status, bay_str reason) BAY_MUST_CHECK;
bay_err http1_write_fields(buf *out, const http_field *fields, size_t count) BAY_MUST_CHECK;
bay_err http1_write_content_length(buf *out, uint64_t bytes) BAY_MUST_CHECK;
bay_err http1_write_end(buf *out) BAY_MUST_CHECK;

/* The standard reason phrase; "Unknown" for a status without one. Static. */
bay_str http1_reason(int status);

/* Chunks: prefix, `bytes` of data, HTTP1_CHUNK_END; after the last one HTTP1_LAST_CHUNK. A chunk of
 * 0 bytes would end the body: then the prefix is empty (0), and nothing must be sent. */
#define HTTP1_CHUNK_END "\r\n"
#define HTTP1_LAST_CHUNK "0\r\n\r\n"
#define HTTP1_CHUNK_PREFIX_MAX 18
size_t http1_chunk_prefix(char out[HTTP1_CHUNK_PREFIX_MAX], size_t bytes);
void http1_write_chunk(buf *out, bay_str data); /* nothing when empty; errors stick in `out` */

#endif
