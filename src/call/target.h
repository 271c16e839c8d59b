/* The target of calls: one server or agent, and the limit of its concurrent calls.
 *
 * A target is counted and shared by all loops of the process. Calls above `most` wait in the order
 * of their arrival, on whichever loop they are; a free slot goes to the first of them. If `most` is
 * 0, nothing is counted and nothing is locked. */
#ifndef CALL_TARGET_H
#define CALL_TARGET_H

#include "call/call.h"

enum {
    CALL_TARGET_WAITING = 10000, /* calls that wait for one target; a further one is refused */
};

/* `name` is copied. Owns: the caller holds one reference. Errors: BAY_ERR_NOMEM. */
bay_err call_target_new(bay_str name, uint32_t most, call_target **out) BAY_MUST_CHECK;
/* Any thread; both accept NULL. */
call_target *call_target_ref(call_target *self);
void call_target_unref(call_target *self);

bay_str call_target_name(const call_target *self); /* NULL: "" */
/* Sets the limit. Calls under way above the new limit go on until they end. Any thread. */
void call_target_set_most(call_target *self, uint32_t most);

/* Calls under way and calls that wait. Any thread. Both are 0 if `most` is 0. */
void call_target_count(call_target *self, uint32_t *out_used, uint32_t *out_waiting);

/* ---- for call.c ------------------------------------------------------------------------------ */

/* Takes a slot, or a place in the queue. GO: the call has a slot, or needs none. */
call_verdict call_target_take(call_target *self, call_context *call, call_refusal *out);
/* Releases the slot or the place in the queue, and its turn; no effect without them. `self` may be
 * NULL: the call is of no target. */
void call_target_leave(call_target *self, call_context *call);
/* Removes and returns the next call of this door whose turn has come; NULL: none. */
call_context *call_door_next(call_door *self);

#endif
