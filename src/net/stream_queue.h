/* What waits to be written to a libuv stream: tries the kernel first, copies only the rest, counts
 * it, and bounds it. Shared by sockets and line writers.
 *
 * Invariants: at most one block is in flight; later bytes gather in one waiting block, which flies
 * when the first has landed. `landed` runs after each block, never inside stream_queue_write. The
 * stream's close callback comes after the last `landed`, and the queue must live until then. */
#ifndef NET_STREAM_QUEUE_H
#define NET_STREAM_QUEUE_H

#include <uv.h>

#include "patchbay/types.h"

typedef struct stream_block stream_block;

typedef struct stream_queue {
    uv_stream_t *stream;
    stream_block *flying;
    stream_block *waiting;
    /* status: 0 or libuv's error, after which the queue is empty and takes nothing more. */
    void (*landed)(struct stream_queue *self, int status);
    uint32_t high_bytes;
    uint32_t max_bytes;
    bool is_above_high; /* since a write said BAY_AGAIN */
    bool is_broken;
} stream_queue;

void stream_queue_init(stream_queue *self, uv_stream_t *stream,
                       void (*landed)(stream_queue *self, int status));
void stream_queue_set_limits(stream_queue *self, size_t high_bytes, size_t max_bytes);

/* Whether `bytes` more may be queued: one message of any size on an empty queue, else up to the
 * maximum. */
bool stream_queue_has_room(const stream_queue *self, size_t bytes);

/* Writes or queues all of it, whatever the maximum says (ask stream_queue_has_room first).
 * BAY_OK; BAY_AGAIN: taken, above the high-water mark; BAY_NOMEM, BAY_CLOSED or BAY_IO: not wholly
 * taken, the queue is broken. */
bay_err stream_queue_write(stream_queue *self, const bay_str *spans, size_t count);

size_t stream_queue_bytes(const stream_queue *self);

/* True once, when the queue has fallen to half of the mark after BAY_AGAIN. */
bool stream_queue_take_drained(stream_queue *self);

/* Frees what waits; what flies is freed when it lands. Takes nothing more. */
void stream_queue_drop(stream_queue *self);

#endif
