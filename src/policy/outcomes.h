/* What became of calls, by a key: equal calls are carried out once, and those that come while the
 * first is under way join it.
 *
 *   (none) --enter--> CLAIMED --send--> SENT --settle--> DONE --time--> (none)
 *                        │               └──leave──────► UNKNOWN --time--> (none)
 *                        └──leave──► (none): nothing was carried out, the next to enter owns it
 *
 * A *claim* is one call's part in it. The claim that found nothing owns the row: its call is
 * carried out, and it ends with outcomes_settle or outcomes_leave. The claims of other calls wait.
 * When the row is DONE, UNKNOWN or gone, they are ready, and enter again.
 *
 * The table is one for all loops of a process. With a store behind it (policy/outcomes_store.h) a
 * row outlives the process; the owner looks into the store before anything else, and has SENT
 * written before the call leaves. */
#ifndef POLICY_OUTCOMES_H
#define POLICY_OUTCOMES_H

#include "base/list.h"
#include "json/json.h"

enum {
    OUTCOME_KEY_BYTES = 16,
    OUTCOME_BYTES = 192 << 10,       /* of one outcome: of a larger one only that it was is kept */
    OUTCOMES_ROWS = 100000,          /* of a table, as an option's default */
    OUTCOMES_OWNER_ROWS = 1000,      /* of one principal */
    OUTCOMES_TOTAL_BYTES = 64 << 20, /* outcomes of a table, in memory */
    OUTCOMES_SWEEP = 4096,           /* rows looked at by one outcomes_tick */
};

typedef struct outcomes outcomes;
typedef struct outcome_row outcome_row;

typedef enum outcome_state {
    OUTCOME_CLAIMED,
    OUTCOME_SENT,
    OUTCOME_DONE,
    OUTCOME_UNKNOWN,
} outcome_state;

typedef enum outcome_kind {
    OUTCOME_RESULT,
    OUTCOME_ERROR,     /* a JSON-RPC error object of the server */
    OUTCOME_QUESTION,  /* a result that asks for input: the retry with the answers owns the row */
    OUTCOME_TOO_LARGE, /* a result that could not be kept */
} outcome_kind;

/* Embedded in a call; zeroed: it has no part in anything. */
typedef struct outcome_claim {
    outcome_row *row; /* NULL: none, or the row is over */
    bool is_owner;
    list_link link; /* of one that waits */
    /* The row is over, or the owner's part of the store is done: the call is to be admitted again.
     * Any thread, with the table locked: no function of the table is called in it. */
    void (*ready)(struct outcome_claim *self);
} outcome_claim;

typedef struct outcome_key {
    unsigned char key[OUTCOME_KEY_BYTES];
    unsigned char fingerprint[OUTCOME_KEY_BYTES]; /* of what must be the same for one key */
    unsigned char owner[OUTCOME_KEY_BYTES];       /* whose row: of the principal */
    uint64_t keep_ms;
    bool is_retry;   /* it brings answers to a QUESTION */
    bool may_repeat; /* its call may be carried out twice: UNKNOWN keeps nobody from it */
} outcome_key;

typedef enum outcomes_answer {
    OUTCOMES_OWNER,    /* the claim owns the row */
    OUTCOMES_JOINED,   /* the claim waits */
    OUTCOMES_KNOWN,    /* DONE: `out` has it */
    OUTCOMES_CONFLICT, /* the row has another fingerprint */
    OUTCOMES_LOST,     /* UNKNOWN */
    OUTCOMES_FULL,     /* too many rows, or too many of this owner */
    OUTCOMES_NOMEM,
} outcomes_answer;

typedef struct outcome_view {
    outcome_kind kind;
    json_val value; /* in the arena that was given */
} outcome_view;

typedef struct outcomes_options {
    size_t rows;       /* 0: OUTCOMES_ROWS */
    size_t owner_rows; /* of one owner; 0: OUTCOMES_OWNER_ROWS */
    size_t bytes;      /* 0: OUTCOMES_TOTAL_BYTES */
} outcomes_options;

/* Owns: the caller, until outcomes_free, when no claim has a part in it any more.
 * Errors: BAY_ERR_NOMEM. Threads: any, like all functions here. */
bay_err outcomes_new(const outcomes_options *options, outcomes **out) BAY_MUST_CHECK;
void outcomes_free(outcomes *self);

/* A call with that key arrives, or comes again after `ready`. `now_ms`: wall clock. */
outcomes_answer outcomes_enter(outcomes *self, outcome_claim *claim, const outcome_key *key,
                               uint64_t now_ms, arena *memory, outcome_view *out);
/* What a claim that has entered is now: OUTCOMES_OWNER, OUTCOMES_JOINED, or the row is over and it
 * enters again (OUTCOMES_KNOWN). */
outcomes_answer outcomes_part(outcomes *self, const outcome_claim *claim);
/* The owner's call leaves: from now on nobody knows whether it is carried out. */
void outcomes_send(outcomes *self, outcome_claim *claim);
/* It was not sent after all. */
void outcomes_unsend(outcomes *self, outcome_claim *claim);
/* The owner's call has that outcome. */
void outcomes_settle(outcomes *self, outcome_claim *claim, outcome_kind kind, json_val value);
/* The claim's call ends without an outcome, or does not wait any more. `may_repeat`: the call may be
 * carried out twice, so that SENT becomes (none). Harmless for a claim without a row. */
void outcomes_leave(outcomes *self, outcome_claim *claim, bool may_repeat);
/* Frees what is past its time. Now and then. */
void outcomes_tick(outcomes *self, uint64_t now_ms);

typedef struct outcomes_count {
    size_t rows;
    size_t bytes; /* of outcomes */
} outcomes_count;
outcomes_count outcomes_count_of(outcomes *self);

#endif
