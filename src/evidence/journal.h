/* Lines of many loops into one file, written by a thread of its own: a loop never waits for a disk.
 *
 *   loop ─► lane (its own buffer) ──a lock for each batch──► journal ─► thread ─► journal_sink.write
 *
 * A line costs its loop no lock and no atomic operation: a lane hands its lines over when it has
 * LANE_BATCH_BYTES, and JOURNAL_DELAY_MS after the first of them at the latest. If the thread does
 * not keep up, the journal holds JOURNAL_BYTES, then each lane LANE_BYTES; what does not fit there is
 * dropped and counted, and the sink gets the count. */
#ifndef EVIDENCE_JOURNAL_H
#define EVIDENCE_JOURNAL_H

#include "base/buf.h"
#include "net/loop.h"

enum {
    JOURNAL_BYTES = 8 << 20,
    LANE_BYTES = 1 << 20,
    LANE_BATCH_BYTES = 32 << 10,
    JOURNAL_DELAY_MS = 50,
    JOURNAL_RETRY_MS = 1000, /* between two attempts, and between two calls of `idle` */
};

/* What takes the lines, on the journal's thread alone. */
typedef struct journal_sink {
    /* Lines, each with its end, and how many were dropped before them. False: it could not take all
     * of them, has kept the rest, and is called again with none after JOURNAL_RETRY_MS. It gets no
     * new ones until it has returned true. */
    bool (*write)(void *user, bay_str lines, uint64_t dropped);
    /* Every JOURNAL_RETRY_MS. May be NULL. */
    void (*idle)(void *user);
    void *user;
} journal_sink;

typedef struct journal journal;

/* Starts the thread. Owns: the caller. Errors: BAY_ERR_NOMEM. */
bay_err journal_new(const journal_sink *sink, journal **out) BAY_MUST_CHECK;
/* Hands everything over, waits for the thread and frees. The lanes are closed before. NULL is fine. */
void journal_free(journal *self);

/* Lines that were dropped so far. Any thread; 0 for NULL. */
uint64_t journal_dropped(journal *self);

/* One loop's part. Embedded in its owner. */
typedef struct journal_lane {
    journal *journal; /* NULL: not open */
    loop *loop;
    loop_timer timer;
    buf lines;
    uint64_t dropped;
    size_t begun; /* where the line begins that is being written */
    bool is_timed;
    bool
        is_failing; /* the sink could not take lines when this lane last asked, or lines were dropped */
} journal_lane;

/* All of these on the lane's loop. */
void journal_lane_open(journal_lane *self, journal *to, loop *on);
/* Hands over what is there. No effect if it is not open. */
void journal_lane_close(journal_lane *self);
/* The buffer to write one line to, without its end; then journal_lane_end. */
buf *journal_lane_begin(journal_lane *self);
/* The line is whole; one that did not fit is dropped. */
void journal_lane_end(journal_lane *self);
/* Hands over what is there, and asks the sink how it is. */
void journal_lane_flush(journal_lane *self);

#endif
