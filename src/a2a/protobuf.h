/* The protobuf wire format: records of a number, a wire type and a value. Private to a2a/. Source:
 * protocol buffers, encoding. */
#ifndef A2A_PROTOBUF_H
#define A2A_PROTOBUF_H

#include "base/buf.h"
#include "base/str.h"

typedef enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5,
} protobuf_wire;

typedef struct protobuf_record {
    uint32_t number;
    protobuf_wire wire;
    uint64_t value; /* of a varint or a fixed one */
    bay_str bytes;  /* of BYTES: a view */
} protobuf_record;

typedef enum protobuf_step { PROTOBUF_END, PROTOBUF_RECORD, PROTOBUF_BROKEN } protobuf_step;

/* The next record of a message; *rest is advanced past it. BROKEN: truncated, a varint beyond 64
 * bits, an invalid number, a group or an unknown wire type; *rest is then unchanged. */
protobuf_step protobuf_next(bay_str *rest, protobuf_record *out);

enum { PROTOBUF_VARINT_BYTES = 10 };
size_t protobuf_varint(uint64_t number, char out[PROTOBUF_VARINT_BYTES]); /* its length */
size_t protobuf_varint_len(uint64_t number);
void protobuf_put_varint(buf *out, uint64_t number);
static inline void protobuf_put_tag(buf *out, uint32_t number, protobuf_wire wire)
{
    protobuf_put_varint(out, (uint64_t)number << 3 | (unsigned)wire);
}
void protobuf_put_bytes(buf *out, uint32_t number, bay_str bytes);

#endif
