/* Rows of the table, for the store behind it. Everything here is guarded by the table's lock. */
#ifndef POLICY_OUTCOMES_INTERNAL_H
#define POLICY_OUTCOMES_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "policy/outcomes.h"

/* Rows of one principal. */
typedef struct outcome_owner {
    unsigned char key[OUTCOME_KEY_BYTES];
    uint32_t count;
} outcome_owner;

struct outcome_row {
    unsigned char key[OUTCOME_KEY_BYTES];
    unsigned char fingerprint[OUTCOME_KEY_BYTES];
    list_link link; /* in outcomes.rows */
    list waiters;   /* claims */
    outcome_claim *claim;
    outcome_owner *owner;
    json_doc *outcome; /* DONE, unless TOO_LARGE */
    uint64_t expires_at_ms;
    uint32_t bytes;      /* of `outcome` */
    uint16_t operations; /* of the store, not over: the row is not freed */
    uint8_t state;       /* outcome_state */
    uint8_t kind;        /* outcome_kind */
    bool is_gone;        /* out of the table */
    bool was_looked_up;  /* in the store */
    bool was_written;    /* as SENT, to the store */
    bool has_failed;     /* the store */
};

struct outcomes {
    pthread_mutex_t lock;
    outcomes_options options;
    map keys;
    map owners;
    list rows; /* in turn for outcomes_tick */
    size_t bytes;
};

void outcomes_lock(outcomes *self);
void outcomes_unlock(outcomes *self);
/* The row has an outcome, or its fate is unknown: everybody who waits is ready. */
void outcome_row_end(outcome_row *row, outcome_state state);
/* Keeps the value, or notes that it could not. */
void outcome_row_keep(outcomes *self, outcome_row *row, outcome_kind kind, json_val value);
/* Out of the table; freed once no operation is under way. */
void outcome_row_drop(outcomes *self, outcome_row *row);
/* The owner has that outcome. Returns its row. */
outcome_row *outcome_claim_settle(outcomes *self, outcome_claim *claim, outcome_kind kind,
                                  json_val value);
/* The claim ends without one. Returns the row if it is to be dropped, else NULL. */
outcome_row *outcome_claim_leave(outcome_claim *claim, bool may_repeat);
/* An operation of the store is over. */
void outcome_row_release(outcomes *self, outcome_row *row);

#endif
