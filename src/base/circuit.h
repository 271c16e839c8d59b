/* A guard on how often a server is started: when it has crashed so many times within a window it is
 * left alone for a while, then tried once.
 *
 *   CLOSED --crash, too many in the window--> OPEN --trial (from `trial_at_ms` on)--> TRIAL
 *      ^                                       ^                                      | crash:
 *      |                                       +---------- cool-off, doubled ---------+
 *      +------------------------------- it is up ------------------------------------+
 *
 * A trial that is given up before it said anything goes back to OPEN, whose time is over.
 *
 * The clock is the caller's. */
#ifndef BASE_CIRCUIT_H
#define BASE_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CIRCUIT_MOST_ATTEMPTS = 64,           /* crashes that are remembered */
    CIRCUIT_MAX_COOL_OFF_MS = 600 * 1000, /* it is doubled up to this, or to where it began */
};

typedef enum circuit_state { CIRCUIT_CLOSED, CIRCUIT_OPEN, CIRCUIT_TRIAL } circuit_state;

typedef struct circuit_rules {
    uint32_t attempts; /* 0: it never opens */
    uint32_t window_ms;
    uint32_t cool_off_ms;
} circuit_rules;

typedef struct circuit {
    circuit_rules rules;
    circuit_state state;
    uint32_t cool_off_ms; /* of the next opening */
    uint64_t trial_at_ms; /* OPEN */
    uint64_t crashes[CIRCUIT_MOST_ATTEMPTS];
    uint32_t count; /* of them, the oldest first */
} circuit;

void circuit_init(circuit *self, const circuit_rules *rules);
/* May it be started now? In OPEN from the end of the cool-off on, in TRIAL never: one is enough. */
bool circuit_may_start(const circuit *self, uint64_t now_ms);
/* It is being started: from OPEN to TRIAL. */
void circuit_started(circuit *self);
/* Nobody waited for the trial's end: another may be made at once. Only after circuit_started. */
void circuit_abandoned(circuit *self, uint64_t now_ms);
/* It is up: CLOSED, and the crashes are forgotten. */
void circuit_succeeded(circuit *self);
/* It has stayed up: the next cool-off is the shortest again. */
void circuit_proved(circuit *self);
/* True when this opens it. */
bool circuit_crashed(circuit *self, uint64_t now_ms);

#endif
