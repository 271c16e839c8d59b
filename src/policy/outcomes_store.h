/* The store behind a table of outcomes: a row for each call that left, so that none is carried out
 * twice although the process ended in between.
 *
 *   (none) --sent--> [SENT] --outcome--> [DONE]
 *
 * A row that is SENT by a process that is gone has an outcome that nobody knows: each gateway has a
 * store of its own, so the process that wrote it is the one that ended. A row holds its key as a
 * keyed digest and its outcome sealed and bound to the row. Keys of the ring: the oldest makes the
 * digest, so that a new key, which comes to the front, leaves rows where they are.
 *
 * One for each loop, on its store. */
#ifndef POLICY_OUTCOMES_STORE_H
#define POLICY_OUTCOMES_STORE_H

#include "auth/seal.h"
#include "policy/outcomes.h"
#include "store/store.h"

#define OUTCOMES_TABLE "outcomes"

typedef struct outcomes_store outcomes_store;

/* `rows` and `ring` are borrowed; `ring` NULL: nothing can be sealed, in a build without TLS.
 * Owns: the caller, until outcomes_store_free, once the store is closed. Errors: BAY_ERR_NOMEM.
 * Threads: the store's loop, like all functions here. */
bay_err outcomes_store_new(outcomes *table, store *rows, const seal_ring *ring,
                           outcomes_store **out) BAY_MUST_CHECK;
void outcomes_store_free(outcomes_store *self);
void outcomes_store_set_ring(outcomes_store *self, const seal_ring *ring);

typedef enum outcomes_step {
    OUTCOMES_STEP_DONE,
    OUTCOMES_STEP_WAITS, /* `ready` of the claim follows */
    OUTCOMES_STEP_OVER,  /* the row is DONE or UNKNOWN, as the store knew: enter again */
    OUTCOMES_STEP_FAILED /* the store does not answer: nobody knows */
} outcomes_step;

/* Of a claim that owns its row: has the store an outcome? Called again after `ready`. */
outcomes_step outcomes_store_look_up(outcomes_store *self, outcome_claim *claim);
/* Writes that its call leaves. Called again after `ready`. */
outcomes_step outcomes_store_send(outcomes_store *self, outcome_claim *claim);
/* In place of outcomes_settle and outcomes_leave. */
void outcomes_store_settle(outcomes_store *self, outcome_claim *claim, outcome_kind kind,
                           json_val value);
void outcomes_store_leave(outcomes_store *self, outcome_claim *claim, bool may_repeat);

#endif
