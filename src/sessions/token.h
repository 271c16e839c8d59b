/* Tokens the gateway gives away and must have back unchanged: request states, task ids, whatever
 * names something that one loop holds. A token reads "pb<loop, hexadecimal>.<sealed>": the loop is
 * legible, so that what comes back can be brought to it unopened; the rest is auth/seal.
 *
 * The loop's number is a hint and nothing more: whoever changes it has the message delivered to a
 * loop that knows nothing of it. */
#ifndef SESSIONS_TOKEN_H
#define SESSIONS_TOKEN_H

#include "auth/seal.h"

enum { TOKEN_PREFIX_BYTES = 11 }; /* "pb", eight digits, '.' */

/* Appends a token. `kind` keeps tokens of one use from being taken for another's; it is part of
 * what the value is bound to, as is `binding`.
 * Owns: nothing. Errors: as seal_value. Units: ms since 1970, 0: never. Threads: any. */
bay_err token_seal(const seal_ring *ring, const char *kind, uint32_t worker, bay_str binding,
                   bay_str plain, uint64_t expires_at_ms, buf *out) BAY_MUST_CHECK;

/* Appends what it holds. BAY_ERR_DENIED: none of ours, another kind's or another principal's.
 * Owns: nothing. Errors: as seal_open. Units: ms since 1970. Threads: any. */
bay_err token_open(const seal_ring *ring, const char *kind, bay_str binding, bay_str token,
                   uint64_t now_ms, buf *out) BAY_MUST_CHECK;

/* The loop that a token names; false when it does not look like one. */
bool token_worker(bay_str token, uint32_t *out_worker);

#endif
