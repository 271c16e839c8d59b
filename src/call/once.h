/* Calls that are carried out once (policy/idempotency.h): two stages of the door, and what becomes
 * of the call. gateway/once.c implements it; the library has none of it.
 *
 *   call_admit: … deadline ─► once_admit ─► concurrency ─► once_send ─► GO
 *                               │ ANSWER: the outcome of an equal call     call_set_outcome, call_over
 *                               └ WAIT: an equal call is under way */
#ifndef CALL_ONCE_H
#define CALL_ONCE_H

#include "auth/seal.h"
#include "call/call.h"
#include "policy/outcomes_store.h"

struct call_once {
    /* As gateway_once_init sets them. */
    call_verdict (*admit)(call_context *call, call_target *to, call_refusal *out);
    call_verdict (*send)(call_context *call, call_refusal *out);
    void (*settle)(call_context *call, outcome_kind kind, json_val value);
    void (*leave)(call_context *call);
    /* Set by the owner. */
    outcomes *table;       /* of the process; borrowed */
    outcomes_store *store; /* of the loop; NULL: outcomes end with the process */
    const seal_ring *ring; /* borrowed; NULL: servers get no key */
    bool is_local;         /* only this machine calls: the anonymous principal is its user */
};

#endif
