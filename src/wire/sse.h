/* Server-sent events: a writer, and a decoder for any split of the input. The rules of the HTML
 * standard: lines end in LF, CR or CRLF, one byte order mark may precede them, a block without a
 * data line is not an event, but its id is used. */
#ifndef WIRE_SSE_H
#define WIRE_SSE_H

#include "base/buf.h"
#include "patchbay/types.h"

#define SSE_NO_RETRY (-1)
#define SSE_NAME_BYTES 1024     /* longest accepted event name */
#define SSE_ID_BYTES 4096       /* longest accepted id */
#define SSE_FRAMING_BYTES 65536 /* of one block: excess of other bytes over its data */

/* One event to write. A part whose `at` is NULL is omitted; STR("") writes it empty (an id alone
 * with empty data is the priming event of a resumable stream). */
typedef struct sse_event {
    bay_str name;
    bay_str id;
    bay_str data;
    int64_t retry_ms; /* SSE_NO_RETRY: omitted */
} sse_event;

/* Appends the event with its empty line. Data is split at every line end, so it is read back with
 * LF.
 * Errors: BAY_ERR_INVALID: a line end or NUL in name or id, or nothing to write; BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT from `out`; `out` is then as long as before. Threads: any. Source: HTML standard,
 * 9.2.5; mcp basic/transports. */
bay_err sse_write_event(buf *out, const sse_event *event) BAY_MUST_CHECK;

/* Appends a comment block (keep-alive). Errors: BAY_ERR_INVALID: a line end in the text;
 * BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`. Threads: any. Source: HTML standard, 9.2.7. */
bay_err sse_write_comment(buf *out, bay_str text) BAY_MUST_CHECK;

typedef enum sse_kind {
    SSE_MORE,   /* all bytes are consumed, no block is complete */
    SSE_EVENT,  /* a block with a data line; the data may be empty (a priming event) */
    SSE_UPDATE, /* a block without a data line that set the id or the retry time */
} sse_kind;

/* Views are valid until the next call on the decoder, and while the given bytes are. */
typedef struct sse_block {
    sse_kind kind;
    bool has_id;      /* this block set the id */
    int64_t retry_ms; /* set by this block, or SSE_NO_RETRY */
    bay_str name;     /* "message" if the block has none */
    bay_str id;       /* the last id of the stream so far (empty: none) */
    bay_str data;
} sse_block;

typedef struct sse_decoder {
    size_t max_event_bytes;
    size_t excess; /* of the block: bytes that are not data minus bytes that are */
    buf line;      /* a line split at the end of the given bytes */
    buf data;
    bay_str whole; /* the data, in the caller's bytes; `at` NULL: it is in `data` */
    buf name;
    buf id;      /* becomes the last id at the next empty line */
    buf last_id; /* of the stream */
    int64_t block_retry_ms;
    int64_t retry_ms; /* of the stream, SSE_NO_RETRY while none was given */
    uint8_t mark_at;  /* bytes of the byte order mark seen; 3: past it */
    bool skips_lf;    /* the last line ended in CR */
    bool has_data;
    bool has_id;
    bool is_done; /* the last call returned a block; the next one clears it away */
} sse_decoder;

/* max_event_bytes limits the data of one event (joined) and any single line (plus its field name).
 * SSE_FRAMING_BYTES limits what is not data (field names, comments, line ends). Owns: buffers on
 * the heap, none before the first byte. Threads: one at a time. Source: HTML standard, 9.2.6. */
void sse_decoder_init(sse_decoder *self, size_t max_event_bytes);
void sse_decoder_fini(sse_decoder *self);

/* Decodes from the front of `bytes` up to the end of one block, so the caller may stop between
 * blocks: call again with the bytes that were not consumed. The result does not depend on how the
 * bytes were split. Owns: `out` holds views, see sse_block. Errors: BAY_ERR_LIMIT: a limit was
 * exceeded; BAY_ERR_NOMEM. After an error only fini is allowed. Threads: one at a time. Source:
 * HTML standard, 9.2.6. */
bay_err sse_decoder_feed(sse_decoder *self, bay_str bytes, size_t *out_consumed,
                         sse_block *out) BAY_MUST_CHECK;

/* Frees idle buffers; only between blocks and if no line is split. Keeps the ids. */
void sse_decoder_trim(sse_decoder *self);

/* Bytes that it holds of an incomplete event or line. */
static inline size_t sse_decoder_held_bytes(const sse_decoder *self)
{
    return self->line.len + self->data.len;
}

/* The last id of the stream, for Last-Event-ID; empty: none. Valid until the next call. */
bay_str sse_decoder_last_id(const sse_decoder *self);

#endif
