#include "base/circuit.h"

#include <string.h>

void circuit_init(circuit *self, const circuit_rules *rules)
{
    *self = (circuit){.rules = *rules, .cool_off_ms = rules->cool_off_ms};
    if (self->rules.attempts > CIRCUIT_MOST_ATTEMPTS) {
        self->rules.attempts = CIRCUIT_MOST_ATTEMPTS;
    }
}

bool circuit_may_start(const circuit *self, uint64_t now_ms)
{
    return self->state == CIRCUIT_CLOSED ||
           (self->state == CIRCUIT_OPEN && now_ms >= self->trial_at_ms);
}

void circuit_started(circuit *self)
{
    if (self->state == CIRCUIT_OPEN) {
        self->state = CIRCUIT_TRIAL;
    }
}

void circuit_abandoned(circuit *self, uint64_t now_ms)
{
    if (self->state == CIRCUIT_TRIAL) {
        self->state = CIRCUIT_OPEN;
        self->trial_at_ms = now_ms;
    }
}

void circuit_succeeded(circuit *self)
{
    if (self->state == CIRCUIT_TRIAL) {
        self->state = CIRCUIT_CLOSED;
        self->count = 0;
    }
}

void circuit_proved(circuit *self)
{
    self->cool_off_ms = self->rules.cool_off_ms;
}

static void circuit_open(circuit *self, uint64_t now_ms)
{
    uint64_t most = self->rules.cool_off_ms > CIRCUIT_MAX_COOL_OFF_MS ? self->rules.cool_off_ms
                                                                      : CIRCUIT_MAX_COOL_OFF_MS;
    uint64_t next = 2 * (uint64_t)self->cool_off_ms;
    self->state = CIRCUIT_OPEN;
    self->trial_at_ms = now_ms + self->cool_off_ms;
    self->cool_off_ms = (uint32_t)(next < most ? next : most);
    self->count = 0;
}

static void forget_old(circuit *self, uint64_t now_ms)
{
    uint32_t old = 0;
    while (old < self->count && now_ms - self->crashes[old] >= self->rules.window_ms) {
        old++;
    }
    memmove(self->crashes, self->crashes + old, (self->count - old) * sizeof(self->crashes[0]));
    self->count -= old;
}

bool circuit_crashed(circuit *self, uint64_t now_ms)
{
    if (self->state == CIRCUIT_OPEN || self->rules.attempts == 0) {
        return false; /* a server that was up before the breaker opened */
    }
    forget_old(self, now_ms);
    self->crashes[self->count++] = now_ms;
    if (self->state == CIRCUIT_TRIAL || self->count >= self->rules.attempts) {
        circuit_open(self, now_ms);
        return true;
    }
    return false;
}
