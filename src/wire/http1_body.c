/* Reads the body of an HTTP/1.1 message: by length, by chunks, or until the peer closes. Chunk
 * lines and trailers go through a state machine byte by byte, so the split of the input has no
 * effect; data is returned as spans of the caller's bytes.
 *
 *   SIZE ──';'──► EXTENSION … ──CR──┐             ┌─(size > 0)─► DATA ─► DATA_CR ─► DATA_LF ─► SIZE
 *     └────────────CR───────────────┴─► SIZE_LF ──┤
 *                                                 └─(size = 0)─► TRAILER … ──empty line──► DONE
 *
 * Every byte that is not data is framing. Each adds 1 to `excess`, each byte of data subtracts 1,
 * and the body is refused at framing_bytes: otherwise a peer could send six bytes or more for each
 * byte that counts towards body_bytes. */
#include "wire/chars.h"
#include "wire/http1.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"

enum {
    STATE_DONE,
    STATE_LENGTH,
    STATE_CLOSE,
    STATE_SIZE,
    STATE_SIZE_SPACE,      /* white space after the size: ';' must follow */
    STATE_EXTENSION_BEGIN, /* after ';' */
    STATE_EXTENSION_NAME,
    STATE_EXTENSION_NAME_SPACE,  /* after the name: '=' or ';' must follow */
    STATE_EXTENSION_VALUE_BEGIN, /* after '=' */
    STATE_EXTENSION_VALUE,
    STATE_EXTENSION_QUOTED,
    STATE_EXTENSION_ESCAPED,
    STATE_EXTENSION_END,         /* after the closing quote */
    STATE_EXTENSION_VALUE_SPACE, /* after the value: ';' must follow */
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER_BEGIN,
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_LAST_LF,
    STATE_FAILED,
};

enum { MOST_SIZE_DIGITS = 16 };

void http1_body_init(http1_body *self, http1_kind kind, const http1_head *head,
                     const http1_limits *limits)
{
    static const uint8_t first[] = {
        [HTTP1_FRAMING_NONE] = STATE_DONE,
        [HTTP1_FRAMING_LENGTH] = STATE_LENGTH,
        [HTTP1_FRAMING_CHUNKED] = STATE_SIZE,
        [HTTP1_FRAMING_CLOSE] = STATE_CLOSE,
    };
    *self = (http1_body){
        .kind = kind,
        .state = first[head->framing],
        .remaining = head->framing == HTTP1_FRAMING_LENGTH ? head->content_length : 0,
        .body_bytes = limits->body_bytes,
        .framing_bytes = limits->framing_bytes,
        .extension_left = limits->chunk_extension_bytes,
        .trailer_left = limits->trailer_bytes,
    };
}

static bay_err http1_body_refuse(http1_body *self, bay_err err, int status, const char *text)
{
    self->state = STATE_FAILED;
    self->refusal = (http1_refusal){self->kind == HTTP1_RESPONSE ? 502 : status, text, 0};
    return err;
}

/* Enters the next state of a chunk line and counts each byte of an extension. */
static bay_err enter(http1_body *self, uint8_t next)
{
    if (next != STATE_SIZE_LF && self->extension_left-- == 0) {
        return http1_body_refuse(self, BAY_ERR_LIMIT, 400, "the chunk extensions are too long");
    }
    self->state = next;
    return BAY_OK;
}

/* RFC 9110 section 5.6.3: a recipient MUST parse for bad white space (BWS) and remove it. RFC 9112
 * section 7.1.1 allows it in a chunk line around ';' and '=' only. White space at the end of the
 * line is in no grammar and readers differ about it, so it is refused. */
static bool is_bad_space(char c)
{
    return c == ' ' || c == '\t';
}

static bay_err read_size(http1_body *self, char c)
{
    int digit = char_hex(c);
    if (digit >= 0) {
        if (self->digits == MOST_SIZE_DIGITS) {
            return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a chunk size is too long");
        }
        self->digits++;
        self->remaining = self->remaining << 4 | (uint64_t)digit;
        return BAY_OK;
    }
    bool is_space = is_bad_space(c);
    if (self->digits == 0 || (c != '\r' && c != ';' && !is_space)) {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a chunk size is not hexadecimal");
    }
    uint8_t next = is_space ? STATE_SIZE_SPACE : STATE_SIZE_LF;
    return enter(self, c == ';' ? STATE_EXTENSION_BEGIN : next);
}

static bay_err read_size_end(http1_body *self, char c)
{
    if (c != '\n') {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a chunk line ends without LF");
    }
    self->digits = 0;
    if (self->remaining == 0) {
        self->state = STATE_TRAILER_BEGIN;
        return BAY_OK;
    }
    if (self->remaining > self->body_bytes - self->total) {
        return http1_body_refuse(self, BAY_ERR_LIMIT, 413, "the body is too long");
    }
    self->state = STATE_DATA;
    return BAY_OK;
}

/* The state that `c` leads to within an extension, or STATE_FAILED: RFC 9112 section 7.1.1. */
static uint8_t extension_next(uint8_t state, char c)
{
    bool is_token = char_is(c, CHAR_TOKEN);
    bool is_space = is_bad_space(c);
    switch (state) {
    case STATE_EXTENSION_BEGIN:
        return is_space ? state : is_token ? STATE_EXTENSION_NAME : STATE_FAILED;
    case STATE_EXTENSION_VALUE_BEGIN:
        if (c == '"') {
            return STATE_EXTENSION_QUOTED;
        }
        return is_space ? state : is_token ? STATE_EXTENSION_VALUE : STATE_FAILED;
    case STATE_EXTENSION_QUOTED:
        if (c == '"') {
            return STATE_EXTENSION_END;
        }
        if (c == '\\') {
            return STATE_EXTENSION_ESCAPED;
        }
        return char_is(c, CHAR_VALUE) ? STATE_EXTENSION_QUOTED : STATE_FAILED;
    case STATE_EXTENSION_ESCAPED:
        return char_is(c, CHAR_VALUE) ? STATE_EXTENSION_QUOTED : STATE_FAILED;
    default:
        break;
    }
    bool is_name = state == STATE_EXTENSION_NAME;
    bool is_after_space = state == STATE_SIZE_SPACE || state == STATE_EXTENSION_NAME_SPACE ||
                          state == STATE_EXTENSION_VALUE_SPACE;
    if (is_token && (is_name || state == STATE_EXTENSION_VALUE)) {
        return state;
    }
    if (c == '=' && (is_name || state == STATE_EXTENSION_NAME_SPACE)) {
        return STATE_EXTENSION_VALUE_BEGIN;
    }
    if (c == ';') {
        return STATE_EXTENSION_BEGIN;
    }
    if (is_after_space) {
        return is_space ? state : STATE_FAILED;
    }
    if (is_space) {
        return is_name ? STATE_EXTENSION_NAME_SPACE : STATE_EXTENSION_VALUE_SPACE;
    }
    return c == '\r' ? STATE_SIZE_LF : STATE_FAILED;
}

static bay_err read_extension(http1_body *self, char c)
{
    uint8_t next = extension_next(self->state, c);
    if (next == STATE_FAILED) {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a chunk extension is malformed");
    }
    return enter(self, next);
}

static bay_err read_data_end(http1_body *self, char c)
{
    if (c != (self->state == STATE_DATA_CR ? '\r' : '\n')) {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400,
                                 "a chunk does not end where its size says");
    }
    self->state = self->state == STATE_DATA_CR ? STATE_DATA_LF : STATE_SIZE;
    return BAY_OK;
}

/* RFC 9110 section 6.5.1: fields for framing or routing are not allowed in a trailer. */
static bool trailer_is_framing(const http1_body *self)
{
    static const bay_str names[] = {
        STR_INIT("content-length"),
        STR_INIT("transfer-encoding"),
        STR_INIT("host"),
        STR_INIT("connection"),
        STR_INIT("trailer"),
        STR_INIT("te"),
        STR_INIT("upgrade"),
        STR_INIT("expect"),
        STR_INIT("content-encoding"),
        STR_INIT("keep-alive"),
    };
    bay_str name = {self->name, self->digits};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(name, names[i])) {
            return true;
        }
    }
    return false;
}

static bay_err read_trailer_name(http1_body *self, char c)
{
    if (char_is(c, CHAR_TOKEN)) {
        if (self->digits < sizeof(self->name)) {
            self->name[self->digits++] = char_lower(c);
        }
        self->state = STATE_TRAILER_NAME;
        return BAY_OK;
    }
    if (c != ':' || self->digits == 0) {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a trailer is malformed");
    }
    if (trailer_is_framing(self)) {
        return http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a trailer may not frame the message");
    }
    self->state = STATE_TRAILER_VALUE;
    return BAY_OK;
}

static bay_err read_trailer(http1_body *self, char c)
{
    if (self->state == STATE_LAST_LF) {
        self->state = STATE_DONE;
        return c == '\n' ? BAY_OK
                         : http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "the body ends without LF");
    }
    if (self->state == STATE_TRAILER_BEGIN && c == '\r') {
        self->state = STATE_LAST_LF;
        return BAY_OK;
    }
    if (self->trailer_left-- == 0) {
        return http1_body_refuse(self, BAY_ERR_LIMIT, 431, "the trailers are too long");
    }
    switch (self->state) {
    case STATE_TRAILER_BEGIN:
        self->digits = 0;
        return read_trailer_name(self, c);
    case STATE_TRAILER_NAME:
        return read_trailer_name(self, c);
    case STATE_TRAILER_VALUE:
        if (c == '\r') {
            self->state = STATE_TRAILER_LF;
            return BAY_OK;
        }
        return char_is(c, CHAR_VALUE)
                   ? BAY_OK
                   : http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a trailer holds a control byte");
    default: /* STATE_TRAILER_LF */
        self->state = STATE_TRAILER_BEGIN;
        return c == '\n'
                   ? BAY_OK
                   : http1_body_refuse(self, BAY_ERR_SYNTAX, 400, "a trailer ends without LF");
    }
}

static bay_err read_frame_byte(http1_body *self, char c)
{
    if (self->excess++ == self->framing_bytes) {
        return http1_body_refuse(self, BAY_ERR_LIMIT, 413,
                                 "the body is mostly framing: send larger chunks");
    }
    switch (self->state) {
    case STATE_SIZE:
        return read_size(self, c);
    case STATE_SIZE_LF:
        return read_size_end(self, c);
    case STATE_DATA_CR:
    case STATE_DATA_LF:
        return read_data_end(self, c);
    case STATE_TRAILER_BEGIN:
    case STATE_TRAILER_NAME:
    case STATE_TRAILER_VALUE:
    case STATE_TRAILER_LF:
    case STATE_LAST_LF:
        return read_trailer(self, c);
    case STATE_FAILED:
        return BAY_ERR_STATE;
    default:
        return read_extension(self, c);
    }
}

/* How many bytes of `available` are body; 0 in a state that reads no data. */
static bay_err take_data(http1_body *self, size_t available, size_t *out_len)
{
    uint64_t room = self->state == STATE_CLOSE ? self->body_bytes - self->total : self->remaining;
    size_t len = available < room ? available : (size_t)room;
    if (len == 0) {
        return http1_body_refuse(self, BAY_ERR_LIMIT, 413, "the body is too long");
    }
    self->total += len;
    self->excess -= len < self->excess ? len : self->excess;
    if (self->state != STATE_CLOSE) {
        self->remaining -= len;
        if (self->remaining == 0) {
            self->state = self->state == STATE_LENGTH ? STATE_DONE : STATE_DATA_CR;
        }
    }
    *out_len = len;
    return BAY_OK;
}

bay_err http1_body_feed(http1_body *self, bay_str bytes, size_t *out_consumed, bay_str *out_data,
                        http1_body_event *out_event)
{
    bay_err err = self->state == STATE_FAILED ? BAY_ERR_STATE : BAY_OK;
    size_t at = 0;
    bay_str data = {NULL, 0};
    while (err == BAY_OK && at < bytes.len && self->state != STATE_DONE && data.len == 0) {
        if (self->state == STATE_DATA || self->state == STATE_LENGTH ||
            self->state == STATE_CLOSE) {
            data.at = bytes.at + at;
            err = take_data(self, bytes.len - at, &data.len);
            at += data.len;
        } else {
            err = read_frame_byte(self, bytes.at[at++]);
        }
    }
    if (err != BAY_OK) {
        return err;
    }
    *out_consumed = at;
    *out_data = data;
    if (data.len > 0) {
        *out_event = HTTP1_BODY_DATA;
    } else {
        *out_event = self->state == STATE_DONE ? HTTP1_BODY_END : HTTP1_BODY_MORE;
    }
    return BAY_OK;
}

void http1_body_rest(http1_body *self)
{
    self->excess = 0;
}

bay_err http1_body_finish(http1_body *self)
{
    if (self->state == STATE_CLOSE) {
        self->state = STATE_DONE;
    }
    if (self->state == STATE_DONE) {
        return BAY_OK;
    }
    return http1_body_refuse(self, BAY_ERR_PROTOCOL, 400,
                             "the connection closed in the middle of the body");
}
