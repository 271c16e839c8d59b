/* The protobuf wire format, one record at a time. */
#include "a2a/protobuf.h"

static bool take_varint(bay_str *rest, uint64_t *out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < rest->len && i < PROTOBUF_VARINT_BYTES; i++) {
        unsigned char c = (unsigned char)rest->at[i];
        if (i == PROTOBUF_VARINT_BYTES - 1 && c > 1) {
            return false;
        }
        number |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *out = number;
            *rest = str_from(*rest, i + 1);
            return true;
        }
    }
    return false;
}

static bool take_fixed(bay_str *rest, size_t bytes, uint64_t *out)
{
    if (rest->len < bytes) {
        return false;
    }
    uint64_t number = 0;
    for (size_t i = bytes; i > 0; i--) {
        number = number << 8 | (unsigned char)rest->at[i - 1];
    }
    *out = number;
    *rest = str_from(*rest, bytes);
    return true;
}

protobuf_step protobuf_next(bay_str *rest, protobuf_record *out)
{
    if (rest->len == 0) {
        return PROTOBUF_END;
    }
    bay_str at = *rest;
    uint64_t tag;
    if (!take_varint(&at, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return PROTOBUF_BROKEN;
    }
    protobuf_record record = {.number = (uint32_t)(tag >> 3), .wire = (protobuf_wire)(tag & 7)};
    bool is_whole;
    switch (record.wire) {
    case PROTOBUF_VARINT:
        is_whole = take_varint(&at, &record.value);
        break;
    case PROTOBUF_FIXED64:
        is_whole = take_fixed(&at, 8, &record.value);
        break;
    case PROTOBUF_FIXED32:
        is_whole = take_fixed(&at, 4, &record.value);
        break;
    case PROTOBUF_BYTES:
        is_whole = take_varint(&at, &record.value) && record.value <= at.len;
        if (is_whole) {
            record.bytes = str_head(at, (size_t)record.value);
            at = str_from(at, (size_t)record.value);
        }
        break;
    default: /* groups, and invalid types */
        is_whole = false;
    }
    if (!is_whole) {
        return PROTOBUF_BROKEN;
    }
    *rest = at;
    *out = record;
    return PROTOBUF_RECORD;
}

size_t protobuf_varint(uint64_t number, char out[PROTOBUF_VARINT_BYTES])
{
    size_t len = 0;
    for (; number >= 0x80; number >>= 7) {
        out[len++] = (char)(number | 0x80);
    }
    out[len++] = (char)number;
    return len;
}

size_t protobuf_varint_len(uint64_t number)
{
    size_t len = 1;
    for (; number >= 0x80; number >>= 7) {
        len++;
    }
    return len;
}

void protobuf_put_varint(buf *out, uint64_t number)
{
    char bytes[PROTOBUF_VARINT_BYTES];
    size_t len = protobuf_varint(number, bytes);
    buf_append(out, bytes, len);
}

void protobuf_put_bytes(buf *out, uint32_t number, bay_str bytes)
{
    protobuf_put_tag(out, number, PROTOBUF_BYTES);
    protobuf_put_varint(out, bytes.len);
    buf_str(out, bytes);
}
