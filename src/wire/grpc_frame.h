/* gRPC messages on the wire: length-prefixed frames, header fields and trailers. Nothing here reads
 * a clock or a socket; any thread may call it. */
#ifndef WIRE_GRPC_FRAME_H
#define WIRE_GRPC_FRAME_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/field.h"

enum {
    GRPC_FRAME_HEAD = 5,           /* bytes before each message */
    GRPC_MESSAGE_BYTES = 1024,     /* of an encoded grpc-message */
    GRPC_DETAILS_BYTES = 8 * 1024, /* of a decoded grpc-status-details-bin */
    GRPC_DETAILS = 16,             /* details of one status that are read … */
    GRPC_METADATA = 32,            /* … and entries of one ErrorInfo's metadata */
};

/* Status codes. Source: gRPC, statuscodes.md. */
typedef enum grpc_code {
    GRPC_OK,
    GRPC_CANCELLED,
    GRPC_UNKNOWN,
    GRPC_INVALID_ARGUMENT,
    GRPC_DEADLINE_EXCEEDED,
    GRPC_NOT_FOUND,
    GRPC_ALREADY_EXISTS,
    GRPC_PERMISSION_DENIED,
    GRPC_RESOURCE_EXHAUSTED,
    GRPC_FAILED_PRECONDITION,
    GRPC_ABORTED,
    GRPC_OUT_OF_RANGE,
    GRPC_UNIMPLEMENTED,
    GRPC_INTERNAL,
    GRPC_UNAVAILABLE,
    GRPC_DATA_LOSS,
    GRPC_UNAUTHENTICATED,
    GRPC_CODES
} grpc_code;

/* "NOT_FOUND"; "UNKNOWN" for a number that is not a code. Static. */
bay_str grpc_code_name(int code);
/* The code for an HTTP status that came without a grpc-status. Source: gRPC,
 * http-grpc-status-mapping.md. */
grpc_code grpc_code_of_http(int status);

/* Splits a stream into messages, for any split of the input. It owns only `message`. */
typedef struct grpc_reader {
    buf message; /* of a message that arrived in pieces */
    size_t max;  /* bytes of one message */
    size_t left; /* of the message under way */
    uint8_t head_len;
    bool is_in_message;
    char head[GRPC_FRAME_HEAD];
} grpc_reader;

void grpc_reader_init(grpc_reader *self, size_t max_bytes);
void grpc_reader_fini(grpc_reader *self);

/* Reads from the front of `bytes`. BAY_OK: *out is the next message, a view into `bytes` or the
 * reader until the next call; call again with the rest. BAY_ERR_AGAIN: all bytes are consumed.
 * Errors: BAY_ERR_UNSUPPORTED (the compressed flag is set), BAY_ERR_PROTOCOL (invalid flag),
 * BAY_ERR_LIMIT (longer than the maximum), BAY_ERR_NOMEM; afterwards the stream cannot be read. */
bay_err grpc_reader_next(grpc_reader *self, bay_str bytes, size_t *out_consumed,
                         bay_str *out) BAY_MUST_CHECK;
/* Whether it is between two messages. False at the end of a stream: the last message is incomplete.
 */
bool grpc_reader_is_between(const grpc_reader *self);

/* The five bytes before a message. False: longer than a frame can be. */
bool grpc_frame_head(char out[GRPC_FRAME_HEAD], size_t bytes);

/* grpc-message: visible ASCII except '%' unchanged, all other bytes as %XX; cut at
 * GRPC_MESSAGE_BYTES between characters. Errors stick in `out`. Source: gRPC, PROTOCOL-HTTP2.md,
 * Responses. */
void grpc_message_encode(buf *out, bay_str text);
/* Decodes grpc-message; an invalid %XX stays unchanged, as the protocol requires. Bytes that are
 * not UTF-8 and control characters become '?'. */
void grpc_message_decode(buf *out, bay_str value);

/* grpc-timeout: 1 to 8 digits and a unit; rounded up, never 0, at most UINT32_MAX.
 * Errors: BAY_ERR_SYNTAX. Source: gRPC, PROTOCOL-HTTP2.md, Requests. */
bay_err grpc_timeout_read(bay_str value, uint32_t *out_ms) BAY_MUST_CHECK;
void grpc_timeout_write(buf *out, uint32_t ms);

/* A google.rpc.Status with at most one ErrorInfo. Views. */
typedef struct grpc_status {
    int code;
    bay_str message;
    bay_str reason; /* of the ErrorInfo; "": none */
    bay_str domain;
    http_field metadata[GRPC_METADATA];
    size_t metadata_count;
} grpc_status;

/* Appends the value of grpc-status-details-bin: base64 without padding. Errors stick in `out`. */
void grpc_details_write(buf *out, const grpc_status *status);
/* Reads the value (padded or not) into the arena; the first ErrorInfo of its details is used,
 * others are skipped. Errors: BAY_ERR_SYNTAX, BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err grpc_details_read(bay_str value, arena *memory, grpc_status *out) BAY_MUST_CHECK;

#endif
