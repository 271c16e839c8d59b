/* What the log was told of one server. A URL has an owner on each loop of the process: all of them
 * share one record, so that a change is one line per process, however many owners it happens to,
 * and a reason that repeats itself is counted instead of written again. What is not new is logged
 * at debug level.
 *
 * The server is down from the first owner that fails until every owner that failed is ready.
 *
 * Complaints about what a server says (its lists) are the same on every loop, and the same each
 * time that it is read: each is one line, until it is over, the server has become ready anew, or
 * UPSTREAM_TOLD_TEXTS others came after it. */
#ifndef UPSTREAM_TOLD_H
#define UPSTREAM_TOLD_H

#include "upstream/upstream.h"

enum { UPSTREAM_TOLD_TEXTS = 64 };

/* One reference is the caller's. */
bay_err upstream_told_new(upstream_told **out) BAY_MUST_CHECK;
upstream_told *upstream_told_ref(upstream_told *self);
void upstream_told_unref(upstream_told *self); /* NULL is fine */

typedef struct upstream_line {
    bool is_new;      /* it says what the log does not say yet */
    uint64_t repeats; /* READY: attempts that failed since the last line about the failure */
} upstream_line;

/* An owner goes to `to`, for `reason`. `inout_is_down` is the owner's, false at first. Reasons that
 * differ in numbers only (times, ports, addresses) are the same reason. Any thread. */
upstream_line upstream_told_step(upstream_told *self, bool *inout_is_down, upstream_state to,
                                 const char *reason);
/* True: the log does not say so yet. Any thread; `self` NULL: always. */
bool upstream_told_text(upstream_told *self, bay_str text);
/* It is not so any more: the next time it is logged again. */
void upstream_told_text_over(upstream_told *self, bay_str text);

#endif
