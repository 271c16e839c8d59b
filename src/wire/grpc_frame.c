/* gRPC's wire format: frames, status text, time-outs, details. The reader is in a head (head_len <
 * 5) or in a message (`left` bytes remain). Details are three small protobuf messages (Status, Any,
 * ErrorInfo), read and written here: they contain only lengths and strings. */
#include "wire/grpc_frame.h"

#include "base/str.h"
#include "wire/base64.h"
#include "wire/chars.h"

/* --- codes ------------------------------------------------------------------------------------ */

bay_str grpc_code_name(int code)
{
    static const bay_str names[GRPC_CODES] = {
        STR_INIT("OK"),
        STR_INIT("CANCELLED"),
        STR_INIT("UNKNOWN"),
        STR_INIT("INVALID_ARGUMENT"),
        STR_INIT("DEADLINE_EXCEEDED"),
        STR_INIT("NOT_FOUND"),
        STR_INIT("ALREADY_EXISTS"),
        STR_INIT("PERMISSION_DENIED"),
        STR_INIT("RESOURCE_EXHAUSTED"),
        STR_INIT("FAILED_PRECONDITION"),
        STR_INIT("ABORTED"),
        STR_INIT("OUT_OF_RANGE"),
        STR_INIT("UNIMPLEMENTED"),
        STR_INIT("INTERNAL"),
        STR_INIT("UNAVAILABLE"),
        STR_INIT("DATA_LOSS"),
        STR_INIT("UNAUTHENTICATED"),
    };
    return code >= 0 && code < GRPC_CODES ? names[code] : names[GRPC_UNKNOWN];
}

grpc_code grpc_code_of_http(int status)
{
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

/* --- frames ----------------------------------------------------------------------------------- */

void grpc_reader_init(grpc_reader *self, size_t max_bytes)
{
    *self = (grpc_reader){.max = max_bytes};
    buf_init(&self->message, max_bytes);
}

void grpc_reader_fini(grpc_reader *self)
{
    buf_fini(&self->message);
}

static bay_err begin_message(grpc_reader *self)
{
    const unsigned char *head = (const unsigned char *)self->head;
    self->left = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (head[0] != 0) {
        return head[0] == 1 ? BAY_ERR_UNSUPPORTED : BAY_ERR_PROTOCOL;
    }
    if (self->left > self->max) {
        return BAY_ERR_LIMIT;
    }
    self->is_in_message = true;
    buf_clear(&self->message);
    return BAY_OK;
}

static void end_message(grpc_reader *self)
{
    self->is_in_message = false;
    self->head_len = 0;
}

bay_err grpc_reader_next(grpc_reader *self, bay_str bytes, size_t *out_consumed, bay_str *out)
{
    size_t used = 0;
    if (!self->is_in_message) {
        while (self->head_len < GRPC_FRAME_HEAD && used < bytes.len) {
            self->head[self->head_len++] = bytes.at[used++];
        }
        if (self->head_len < GRPC_FRAME_HEAD) {
            *out_consumed = used;
            return BAY_ERR_AGAIN;
        }
        bay_err err = begin_message(self);
        if (err != BAY_OK) {
            return err;
        }
    }
    bay_str rest = str_from(bytes, used);
    if (self->message.len == 0 && rest.len >= self->left) { /* complete: no copy */
        *out = (bay_str){rest.at, self->left};
        *out_consumed = used + self->left;
        end_message(self);
        return BAY_OK;
    }
    bay_str part = str_head(rest, self->left);
    buf_str(&self->message, part);
    if (self->message.err != BAY_OK) {
        return self->message.err;
    }
    self->left -= part.len;
    *out_consumed = used + part.len;
    if (self->left > 0) {
        return BAY_ERR_AGAIN;
    }
    *out = buf_view(&self->message);
    end_message(self);
    return BAY_OK;
}

bool grpc_reader_is_between(const grpc_reader *self)
{
    return !self->is_in_message && self->head_len == 0;
}

bool grpc_frame_head(char out[GRPC_FRAME_HEAD], size_t bytes)
{
    if (bytes > UINT32_MAX) {
        return false;
    }
    out[0] = 0;
    for (int i = 4; i > 0; i--, bytes >>= 8) {
        out[i] = (char)(bytes & 0xff);
    }
    return true;
}

/* --- grpc-message ----------------------------------------------------------------------------- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t encoded_len(char c)
{
    return c >= 0x20 && c <= 0x7e && c != '%' ? 1 : 3;
}

enum { EDGES = 4 }; /* additional bytes for spaces at both ends */

/* Where to cut so that the encoded text stays within its limit and no character is split. */
static size_t cut_at(bay_str text)
{
    size_t len = 0;
    size_t whole = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_continuation(text.at[i])) {
            whole = i;
        }
        len += encoded_len(text.at[i]);
        if (len > GRPC_MESSAGE_BYTES - EDGES) {
            return whole;
        }
    }
    return text.len;
}

void grpc_message_encode(buf *out, bay_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    text = str_head(text, cut_at(text));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        /* A field value has no spaces at its ends. */
        bool is_edge = byte == ' ' && (i == 0 || i + 1 == text.len);
        if (encoded_len(text.at[i]) == 1 && !is_edge) {
            buf_char(out, text.at[i]);
        } else {
            char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
            buf_append(out, escape, sizeof(escape));
        }
    }
}

/* The length of the UTF-8 character at the front; 0: none. */
static size_t character_len(bay_str text)
{
    unsigned char first = (unsigned char)text.at[0];
    size_t len = first < 0x80                    ? 1
                 : first >= 0xc2 && first < 0xe0 ? 2
                 : first >= 0xe0 && first < 0xf0 ? 3
                 : first >= 0xf0 && first < 0xf5 ? 4
                                                 : 0;
    if (len == 0 || len > text.len) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if (!is_continuation(text.at[i])) {
            return 0;
        }
    }
    unsigned char second = len > 1 ? (unsigned char)text.at[1] : 0;
    bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool is_beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return is_overlong || is_beyond ? 0 : len;
}

void grpc_message_decode(buf *out, bay_str value)
{
    size_t start = out->len;
    for (size_t i = 0; i < value.len; i++) {
        bool is_escape = value.at[i] == '%' && value.len - i > 2 &&
                         char_hex(value.at[i + 1]) >= 0 && char_hex(value.at[i + 2]) >= 0;
        if (is_escape) {
            buf_char(out, (char)(char_hex(value.at[i + 1]) * 16 + char_hex(value.at[i + 2])));
            i += 2;
        } else {
            buf_char(out, value.at[i]);
        }
    }
    if (out->err != BAY_OK) {
        return;
    }
    for (size_t i = start; i < out->len;) {
        size_t len = character_len((bay_str){out->at + i, out->len - i});
        bool is_fine = len > 0 && (unsigned char)out->at[i] >= 0x20 && out->at[i] != 0x7f;
        if (!is_fine) {
            out->at[i] = '?';
        }
        i += is_fine ? len : 1;
    }
}

/* --- grpc-timeout ----------------------------------------------------------------------------- */

bay_err grpc_timeout_read(bay_str value, uint32_t *out_ms)
{
    uint64_t number = 0;
    if (value.len < 2 || value.len > 9 || !str_uint(str_head(value, value.len - 1), &number)) {
        return BAY_ERR_SYNTAX;
    }
    uint64_t ms = 0;
    switch (value.at[value.len - 1]) {
    case 'H':
        ms = number * 3600000;
        break;
    case 'M':
        ms = number * 60000;
        break;
    case 'S':
        ms = number * 1000;
        break;
    case 'm':
        ms = number;
        break;
    case 'u':
        ms = (number + 999) / 1000;
        break;
    case 'n':
        ms = (number + 999999) / 1000000;
        break;
    default:
        return BAY_ERR_SYNTAX;
    }
    ms = ms == 0 ? 1 : ms;
    *out_ms = ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
    return BAY_OK;
}

void grpc_timeout_write(buf *out, uint32_t ms)
{
    if (ms <= 99999999) {
        buf_uint(out, ms);
        buf_char(out, 'm');
    } else {
        buf_uint(out, ms / 1000);
        buf_char(out, 'S');
    }
}

/* --- details ---------------------------------------------------------------------------------- */

enum {
    WIRE_VARINT = 0,
    WIRE_EIGHT = 1,
    WIRE_BYTES = 2,
    WIRE_FOUR = 5,
    /* google.rpc.Status */
    STATUS_CODE = 1,
    STATUS_MESSAGE = 2,
    STATUS_DETAILS = 3,
    /* google.protobuf.Any */
    ANY_TYPE = 1,
    ANY_VALUE = 2,
    /* google.rpc.ErrorInfo */
    INFO_REASON = 1,
    INFO_DOMAIN = 2,
    INFO_METADATA = 3,
    /* an entry of a map */
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
};

#define ERROR_INFO "type.googleapis.com/google.rpc.ErrorInfo"

static void put_varint(buf *out, uint64_t number)
{
    while (number >= 0x80) {
        buf_char(out, (char)(number | 0x80));
        number >>= 7;
    }
    buf_char(out, (char)number);
}

static void put_bytes(buf *out, unsigned field, bay_str bytes)
{
    put_varint(out, field << 3 | WIRE_BYTES);
    put_varint(out, bytes.len);
    buf_str(out, bytes);
}

static void put_text(buf *out, unsigned field, bay_str text)
{
    if (text.len > 0) { /* proto3: a default is not written */
        put_bytes(out, field, text);
    }
}

/* Calls `write` with a buffer of its own, then writes the result as a field: lengths come first. */
static void put_info(buf *out, const grpc_status *status)
{
    buf info;
    buf entry;
    buf_init(&info, GRPC_DETAILS_BYTES);
    buf_init(&entry, GRPC_DETAILS_BYTES);
    put_text(&info, INFO_REASON, status->reason);
    put_text(&info, INFO_DOMAIN, status->domain);
    for (size_t i = 0; i < status->metadata_count; i++) {
        buf_clear(&entry);
        put_text(&entry, ENTRY_KEY, status->metadata[i].name);
        put_text(&entry, ENTRY_VALUE, status->metadata[i].value);
        put_bytes(&info, INFO_METADATA, buf_view(&entry));
    }
    put_bytes(out, ANY_TYPE, STR(ERROR_INFO));
    put_bytes(out, ANY_VALUE, buf_view(&info));
    if (info.err != BAY_OK || entry.err != BAY_OK) {
        out->err = info.err != BAY_OK ? info.err : entry.err;
    }
    buf_fini(&entry);
    buf_fini(&info);
}

void grpc_details_write(buf *out, const grpc_status *status)
{
    buf whole;
    buf any;
    buf_init(&whole, GRPC_DETAILS_BYTES);
    buf_init(&any, GRPC_DETAILS_BYTES);
    if (status->code > 0) {
        put_varint(&whole, STATUS_CODE << 3 | WIRE_VARINT);
        put_varint(&whole, (uint64_t)status->code);
    }
    put_text(&whole, STATUS_MESSAGE, status->message);
    if (status->reason.len > 0) {
        put_info(&any, status);
        put_bytes(&whole, STATUS_DETAILS, buf_view(&any));
    }
    bay_err err = any.err != BAY_OK ? any.err : whole.err;
    if (err != BAY_OK) {
        out->err = out->err != BAY_OK ? out->err : err;
    } else {
        base64_encode(out, buf_view(&whole), BASE64_STANDARD);
        while (out->len > 0 && out->at[out->len - 1] == '=') {
            out->len--; /* gRPC uses no padding */
        }
    }
    buf_fini(&any);
    buf_fini(&whole);
}

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t varint;
    bay_str bytes;
} field;

static bool take_varint(bay_str *from, uint64_t *out)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && from->len > 0; shift += 7) {
        unsigned char byte = (unsigned char)from->at[0];
        *from = str_from(*from, 1);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = number;
            return true;
        }
    }
    return false;
}

static bool skip(bay_str *from, size_t len)
{
    if (from->len < len) {
        return false;
    }
    *from = str_from(*from, len);
    return true;
}

/* The next field of a message. BAY_ERR_EOF: none. */
static bay_err take_field(bay_str *from, field *out)
{
    uint64_t key = 0;
    uint64_t len = 0;
    if (from->len == 0) {
        return BAY_ERR_EOF;
    }
    if (!take_varint(from, &key) || key >> 3 == 0) {
        return BAY_ERR_SYNTAX;
    }
    *out = (field){.number = key >> 3, .wire = (unsigned)(key & 7)};
    switch (out->wire) {
    case WIRE_VARINT:
        return take_varint(from, &out->varint) ? BAY_OK : BAY_ERR_SYNTAX;
    case WIRE_EIGHT:
        return skip(from, 8) ? BAY_OK : BAY_ERR_SYNTAX;
    case WIRE_FOUR:
        return skip(from, 4) ? BAY_OK : BAY_ERR_SYNTAX;
    case WIRE_BYTES:
        if (!take_varint(from, &len) || len > from->len) {
            return BAY_ERR_SYNTAX;
        }
        out->bytes = str_head(*from, (size_t)len);
        *from = str_from(*from, (size_t)len);
        return BAY_OK;
    default:
        return BAY_ERR_SYNTAX;
    }
}

static bay_err read_entry(bay_str from, http_field *out)
{
    field next;
    bay_err err;
    *out = (http_field){STR(""), STR("")};
    while ((err = take_field(&from, &next)) == BAY_OK) {
        if (next.number == ENTRY_KEY && next.wire == WIRE_BYTES) {
            out->name = next.bytes;
        } else if (next.number == ENTRY_VALUE && next.wire == WIRE_BYTES) {
            out->value = next.bytes;
        }
    }
    return err == BAY_ERR_EOF ? BAY_OK : err;
}

static bay_err read_info(bay_str from, grpc_status *out)
{
    field next;
    bay_err err;
    while ((err = take_field(&from, &next)) == BAY_OK) {
        if (next.wire != WIRE_BYTES) {
            continue;
        }
        if (next.number == INFO_REASON) {
            out->reason = next.bytes;
        } else if (next.number == INFO_DOMAIN) {
            out->domain = next.bytes;
        } else if (next.number == INFO_METADATA && out->metadata_count < GRPC_METADATA) {
            err = read_entry(next.bytes, &out->metadata[out->metadata_count++]);
            if (err != BAY_OK) {
                return err;
            }
        }
    }
    return err == BAY_ERR_EOF ? BAY_OK : err;
}

static bay_err read_any(bay_str from, grpc_status *out)
{
    bay_str type = {NULL, 0};
    bay_str value = {NULL, 0};
    field next;
    bay_err err;
    while ((err = take_field(&from, &next)) == BAY_OK) {
        if (next.number == ANY_TYPE && next.wire == WIRE_BYTES) {
            type = next.bytes;
        } else if (next.number == ANY_VALUE && next.wire == WIRE_BYTES) {
            value = next.bytes;
        }
    }
    if (err != BAY_ERR_EOF) {
        return err;
    }
    bool is_first = out->reason.len == 0 && str_ends(type, STR("/google.rpc.ErrorInfo"));
    return is_first ? read_info(value, out) : BAY_OK;
}

static bay_err read_status(bay_str from, grpc_status *out)
{
    field next;
    bay_err err;
    size_t details = 0;
    while ((err = take_field(&from, &next)) == BAY_OK) {
        if (next.number == STATUS_CODE && next.wire == WIRE_VARINT) {
            out->code = next.varint <= INT32_MAX ? (int)next.varint : GRPC_UNKNOWN;
        } else if (next.number == STATUS_MESSAGE && next.wire == WIRE_BYTES) {
            out->message = next.bytes;
        } else if (next.number == STATUS_DETAILS && next.wire == WIRE_BYTES &&
                   details++ < GRPC_DETAILS) {
            err = read_any(next.bytes, out);
            if (err != BAY_OK) {
                return err;
            }
        }
    }
    return err == BAY_ERR_EOF ? BAY_OK : err;
}

bay_err grpc_details_read(bay_str value, arena *memory, grpc_status *out)
{
    buf bytes;
    buf_init(&bytes, GRPC_DETAILS_BYTES);
    /* Fields of this kind may be lists; the first value is used. */
    value = str_trim(str_head(value, str_find(value, ',')));
    bay_err err = base64_decode(&bytes, value, BASE64_STANDARD_LOOSE);
    bay_str kept = {NULL, 0};
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&bytes), &kept);
    }
    buf_fini(&bytes);
    if (err != BAY_OK) {
        return err;
    }
    grpc_status read = {.code = GRPC_OK};
    err = read_status(kept, &read);
    if (err == BAY_OK) {
        *out = read;
    }
    return err;
}
