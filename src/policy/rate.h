/* A rate as people write it: `60/min burst 20`, at most 60 a minute and 20 at once. */
#ifndef POLICY_RATE_H
#define POLICY_RATE_H

#include "patchbay/types.h"

enum {
    POLICY_RATE_COUNT = 1000000, /* of calls in one period, and at once */
    POLICY_RATE_TEXT = 96,       /* bytes that policy_rate_text writes */
};

typedef struct policy_rate {
    uint32_t count; /* in each period; 0: there is no limit */
    uint32_t burst; /* at once */
    uint32_t period_ms;
} policy_rate;

/* "COUNT/UNIT" or "COUNT/UNIT burst COUNT"; UNIT is s, min, h or d. Without a burst it is the count.
 * Errors: BAY_ERR_SYNTAX with `diag`. */
bay_err policy_rate_parse(bay_str text, policy_rate *out, bay_diag *diag) BAY_MUST_CHECK;

/* "60 a minute and 20 at once", with a NUL. */
void policy_rate_text(const policy_rate *self, char out[POLICY_RATE_TEXT]);

static inline bool policy_rate_is_same(const policy_rate *a, const policy_rate *b)
{
    return a->count == b->count && a->burst == b->burst && a->period_ms == b->period_ms;
}

#endif
