/* How many credentials that are not good one address may bring: to verify one costs time, and to
 * guess one must cost the guesser more. A bucket per address (IPv6: per /64) fills up with each
 * failure and empties within a minute. Where it is full, credentials that are not remembered are
 * turned away unverified; those that are remembered as good are not asked about.
 *
 * The table is bounded. An address that is not in it has an empty bucket; the emptiest bucket of a
 * set makes room for another.
 *
 * For the whole header: Units: ms of any clock that does not go backwards. Threads: any. */
#ifndef AUTH_FAILURE_LIMIT_H
#define AUTH_FAILURE_LIMIT_H

#include "patchbay/types.h"

enum { FAILURE_LIMIT_ADDRESSES = 65536 };

typedef struct failure_limit failure_limit;

/* `per_minute`: failures; 0: no bound. Errors: BAY_ERR_NOMEM. */
bay_err failure_limit_new(uint32_t per_minute, failure_limit **out) BAY_MUST_CHECK;
void failure_limit_free(failure_limit *self); /* NULL is fine, and bounds nothing */

/* May a credential from there be verified? Else when again. `address`: as text, without a port. */
bool failure_limit_admits(failure_limit *self, bay_str address, uint64_t now_ms,
                          uint32_t *out_retry_ms);
/* One was not good. */
void failure_limit_count(failure_limit *self, bay_str address, uint64_t now_ms);

#endif
