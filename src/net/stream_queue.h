/* What waits to be written to a libuv stream: tries the kernel first, copies only the rest, counts
 * it, and bounds it. Shared by sockets and line writers.
 *
 * A queue may be one of those whose small writes a loop gathers until the end of its turn. Each
 * send wakes its reader, who takes the processor or has to be given another one: a server that
 * answers all that came in a turn and then sends spent a tenth to a sixth less CPU on small answers
 * than one that does both in turn. What is gathered counts as sent: it leaves before the loop
 * waits, at the end of the stream at the latest, and between two callbacks once the first of it has
 * waited for STREAM_GATHER_WAIT_US. Otherwise one slow handler, or a turn with many, would delay
 * answers that are ready by more than all the saved wake-ups cost.
 *
 * Invariants: at most one block is in flight; later bytes gather in one waiting block, which flies
 * when the first has landed. `landed` runs after each block and after what was gathered has left,
 * never inside stream_queue_write. The stream's close callback comes after the last `landed`, and
 * the queue must live until then. */
#ifndef NET_STREAM_QUEUE_H
#define NET_STREAM_QUEUE_H

#include <uv.h>

#include "base/list.h"
#include "net/loop.h"

enum {
    STREAM_GATHER_BYTES = 16 * 1024, /* of one queue: more leaves at once … */
    STREAM_GATHER_QUEUES = 128,      /* … as what the next queue writes does */
    STREAM_GATHER_WAIT_US = 150,     /* as long as some twenty wake-ups take */
    STREAM_SPARE_BYTES = 2 * 1024,   /* of a block that is kept for the next to gather */
};

typedef struct stream_block stream_block;

/* The queues that have something gathered; one a loop. */
typedef struct stream_gather {
    loop_task task;
    loop *loop;
    list queues;
    uint32_t count;
    uint32_t spares;
    uint64_t since_ns;   /* seen waiting since then, uv_hrtime; 0: not seen yet */
    stream_block *spare; /* at most as many as there may be queues */
} stream_gather;

void stream_gather_init(stream_gather *self, loop *on_loop);
void stream_gather_fini(stream_gather *self);
void stream_gather_watch(stream_gather *self);
/* Between two callbacks of the loop: sends what is gathered, with `landed`, if it waits too long. A
 * clock costs: it is looked at for every second answer. */
static inline void stream_gather_pace(stream_gather *self)
{
    if (self->count > 0 && self->count % 2 == 0) {
        stream_gather_watch(self);
    }
}
/* Sends what is gathered, with `landed`: whoever turned the loop may never do it again. */
void stream_gather_leave(stream_gather *self);

typedef struct stream_queue {
    uv_stream_t *stream;
    stream_block *flying;
    stream_block *waiting; /* behind `flying`, or gathered */
    stream_gather *gather; /* NULL: writes go to the kernel at once */
    list_link gathered;    /* in `gather`, while something of ours is */
    /* status: 0 or libuv's error, after which the queue is empty and takes nothing more. */
    void (*landed)(struct stream_queue *self, int status);
    uint32_t high_bytes;
    uint32_t max_bytes;
    bool is_above_high; /* since a write said BAY_ERR_AGAIN, or the mark fell below what waits */
    bool is_broken;
    bool is_cut; /* broken by a write whose first bytes the kernel had taken */
} stream_queue;

void stream_queue_init(stream_queue *self, uv_stream_t *stream,
                       void (*landed)(stream_queue *self, int status));
void stream_queue_set_limits(stream_queue *self, size_t high_bytes, size_t max_bytes);

/* From here on small writes are gathered; outlives the queue. */
void stream_queue_gather(stream_queue *self, stream_gather *gather);

/* Hands to the kernel what is gathered, without `landed`: the stream is about to end. */
void stream_queue_send_gathered(stream_queue *self);

/* Whether `bytes` more may be queued: one message of any size on an empty queue, else up to the
 * maximum. */
bool stream_queue_has_room(const stream_queue *self, size_t bytes);

/* Writes or queues all of it, whatever the maximum says (ask stream_queue_has_room first).
 * BAY_OK; BAY_ERR_AGAIN: taken, above the high-water mark; BAY_ERR_NOMEM, BAY_ERR_CLOSED or
 * BAY_ERR_IO: not wholly taken, the queue is broken. */
bay_err stream_queue_write(stream_queue *self, const bay_str *spans, size_t count);

/* What the kernel did not take; without what is gathered. */
size_t stream_queue_bytes(const stream_queue *self);
/* Nothing waits, flies or is gathered. */
bool stream_queue_is_empty(const stream_queue *self);

/* True once, when the queue has fallen to half of the mark after BAY_ERR_AGAIN. */
bool stream_queue_take_drained(stream_queue *self);

/* Frees what waits; what flies is freed when it lands. Takes nothing more. */
void stream_queue_drop(stream_queue *self);

#endif
