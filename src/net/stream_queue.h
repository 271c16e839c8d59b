/* Output that waits for a libuv stream: tries the kernel first, copies only the rest, counts and
 * limits it. Shared by sockets and line writers.
 *
 * A queue may be one of those whose small writes a loop gathers until the end of its iteration.
 * Each send wakes its reader, which then needs a processor: a server that processes all input of an
 * iteration and then sends used a tenth to a sixth less CPU on small answers than one that
 * alternates. Gathered output counts as sent: it is sent before the loop waits, at the end of the
 * stream at the latest, and between two callbacks when the first of it has waited for
 * STREAM_GATHER_WAIT_US. Otherwise one slow handler, or an iteration with many, would delay
 * finished answers by more than all saved wake-ups cost.
 *
 * Invariants: at most one block is in flight; later bytes gather in one waiting block, which is
 * sent when the first has landed. `landed` runs after each block and after gathered output was
 * sent, never inside stream_queue_write. The stream's close callback comes after the last `landed`,
 * and the queue must live until then. */
#ifndef NET_STREAM_QUEUE_H
#define NET_STREAM_QUEUE_H

#include <uv.h>

#include "base/list.h"
#include "net/loop.h"

enum {
    STREAM_GATHER_BYTES = 16 * 1024, /* of one queue: more is sent at once … */
    STREAM_GATHER_QUEUES = 128,      /* … as is the output of the next queue */
    STREAM_GATHER_WAIT_US = 150,     /* about the time of twenty wake-ups */
    STREAM_SPARE_BYTES = 2 * 1024,   /* of a block that is kept for later gathering */
};

typedef struct stream_block stream_block;

/* The queues with gathered output; one per loop. */
typedef struct stream_gather {
    loop_task task;
    loop *loop;
    list queues;
    uint32_t count;
    uint32_t spares;
    uint64_t since_ns;   /* seen waiting since then, uv_hrtime; 0: not seen yet */
    stream_block *spare; /* at most as many as there are queues */
} stream_gather;

void stream_gather_init(stream_gather *self, loop *on_loop);
void stream_gather_fini(stream_gather *self);
void stream_gather_watch(stream_gather *self);
/* Between two callbacks of the loop: sends gathered output, with `landed`, if it waits too long.
 * Reading the clock costs: it is read for every second answer. */
static inline void stream_gather_pace(stream_gather *self)
{
    if (self->count > 0 && self->count % 2 == 0) {
        stream_gather_watch(self);
    }
}
/* Sends gathered output, with `landed`: the loop may not run again. */
void stream_gather_leave(stream_gather *self);

typedef struct stream_queue {
    uv_stream_t *stream;
    stream_block *flying;
    stream_block *waiting; /* behind `flying`, or gathered */
    stream_gather *gather; /* NULL: writes are sent to the kernel at once */
    list_link gathered;    /* in `gather`, while this queue has gathered output */
    /* status: 0 or libuv's error, after which the queue is empty and accepts nothing more. */
    void (*landed)(struct stream_queue *self, int status);
    uint32_t high_bytes;
    uint32_t max_bytes;
    bool is_above_high; /* since a write returned BAY_ERR_AGAIN, or the mark was lowered */
    bool is_broken;
    bool is_cut; /* broken by a write whose first bytes the kernel had taken */
} stream_queue;

void stream_queue_init(stream_queue *self, uv_stream_t *stream,
                       void (*landed)(stream_queue *self, int status));
void stream_queue_set_limits(stream_queue *self, size_t high_bytes, size_t max_bytes);

/* From here on small writes are gathered; outlives the queue. */
void stream_queue_gather(stream_queue *self, stream_gather *gather);

/* Passes gathered output to the kernel, without `landed`: the stream is about to end. */
void stream_queue_send_gathered(stream_queue *self);

/* Whether `bytes` more may be queued: one message of any size on an empty queue, otherwise up to
 * the maximum. */
bool stream_queue_has_room(const stream_queue *self, size_t bytes);

/* Writes or queues all of it, whatever the maximum (call stream_queue_has_room first). BAY_OK;
 * BAY_ERR_AGAIN: accepted, above the high-water mark; BAY_ERR_NOMEM, BAY_ERR_CLOSED or BAY_ERR_IO:
 * not accepted completely, the queue is broken. */
bay_err stream_queue_write(stream_queue *self, const bay_str *spans, size_t count);

/* Bytes that the kernel did not take; without gathered output. */
size_t stream_queue_bytes(const stream_queue *self);
/* Nothing waits, is in flight or is gathered. */
bool stream_queue_is_empty(const stream_queue *self);

/* True once, when the queue has fallen to half of the mark after BAY_ERR_AGAIN. */
bool stream_queue_take_drained(stream_queue *self);

/* Frees what waits; what is in flight is freed when it lands. Accepts nothing more. */
void stream_queue_drop(stream_queue *self);

#endif
