/* A circuit breaker for starting a server: after a number of crashes within a window the server is
 * not started during a cool-off, and then started once as a trial.
 *
 *   CLOSED --crash, too many in the window--> OPEN --trial (from `trial_at_ms` on)--> TRIAL
 *      ^                                       ^                                      | crash:
 *      |                                       +---------- cool-off, doubled ---------+
 *      +------------------------------- it is up ------------------------------------+
 *
 * A trial that is abandoned before it has a result goes back to OPEN with the cool-off over.
 *
 * The caller supplies the time. */
#ifndef BASE_CIRCUIT_H
#define BASE_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CIRCUIT_MOST_ATTEMPTS = 64,           /* crashes that are remembered */
    CIRCUIT_MAX_COOL_OFF_MS = 600 * 1000, /* upper limit of doubling, or the configured cool-off */
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
/* Whether the server may be started now. OPEN: after the cool-off. TRIAL: never, as one trial runs.
 */
bool circuit_may_start(const circuit *self, uint64_t now_ms);
/* The server is being started: OPEN becomes TRIAL. */
void circuit_started(circuit *self);
/* The trial was stopped without a result: the next one may begin at once. Only after
 * circuit_started. */
void circuit_abandoned(circuit *self, uint64_t now_ms);
/* The server is up: CLOSED, and the recorded crashes are deleted. */
void circuit_succeeded(circuit *self);
/* The server has stayed up: the next cool-off has the configured length again. */
void circuit_proved(circuit *self);
/* The server has crashed. True if this opens the breaker. */
bool circuit_crashed(circuit *self, uint64_t now_ms);

#endif
