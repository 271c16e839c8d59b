/* What calls go to: one server or agent, and how many calls it gets at once.
 *
 * A target is counted and shared by all loops of the process. Calls beyond `most` wait in the order
 * in which they came, whichever loop they are on; a slot that becomes free goes to the first of
 * them. With most == 0 nothing is counted and nothing is locked. */
#ifndef CALL_TARGET_H
#define CALL_TARGET_H

#include "call/call.h"

enum {
    CALL_TARGET_WAITING = 10000, /* calls that wait for one target: a further one is refused */
};

/* `name` is copied. Owns: the caller holds one reference. Errors: BAY_ERR_NOMEM. */
bay_err call_target_new(bay_str name, uint32_t most, call_target **out) BAY_MUST_CHECK;
/* Any thread; both accept NULL. */
call_target *call_target_ref(call_target *self);
void call_target_unref(call_target *self);

bay_str call_target_name(const call_target *self); /* NULL: "" */
/* Another bound from now on; more calls than that may be under way until they end. Any thread. */
void call_target_set_most(call_target *self, uint32_t most);

/* Calls under way and calls that wait. Any thread. With most == 0 both are 0. */
void call_target_count(call_target *self, uint32_t *out_used, uint32_t *out_waiting);

/* ---- for call.c ------------------------------------------------------------------------------ */

/* A slot for the call, or its place in the queue. GO: it has one, or needs none. */
call_verdict call_target_take(call_target *self, call_context *call, call_refusal *out);
/* Gives the slot or the place in the queue back; harmless without either. */
void call_target_leave(call_target *self, call_context *call);
/* The next call of this door whose turn has come, out of its list; NULL: there is none. */
call_context *call_door_next(call_door *self);

#endif
