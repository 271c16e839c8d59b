/* The minimum pace at which a peer has to send or to read: a rate, not a silence, which single
 * bytes could break.
 *
 * A peer has a time credit of at most `window_ms`. It decreases with time, and each byte of
 * progress adds to it: PACE_BYTES_PER_S bytes add one second. A peer without progress is over after
 * `window_ms`; one above the rate never is, also in bursts; one below it is over eventually. While
 * nothing is under way the credit does not decrease; the watch then begins again.
 *
 * Every check of a peer's progress uses this: bodies of requests, output that waits for a peer, and
 * bodies of replies that are not streams, of HTTP/1.1 and HTTP/2. */
#ifndef HTTP_PACE_H
#define HTTP_PACE_H

#include <stdint.h>

/* A quarter of the rate of the slowest usable clients (1 KB/s), whose kernels and flow control
 * acknowledge in bursts. */
enum { PACE_BYTES_PER_S = 256 };

/* When the credit is over, after progress of `bytes`. `until_ms` 0: the watch begins. `sharers`:
 * how many transfers share the peer's rate, at least 1. */
static inline uint64_t pace_until(uint64_t until_ms, uint64_t now_ms, uint32_t window_ms,
                                  uint64_t bytes, uint32_t sharers)
{
    uint64_t full = now_ms + window_ms;
    if (until_ms == 0 || bytes > (uint64_t)window_ms * PACE_BYTES_PER_S / 1000) {
        return full;
    }
    uint64_t until = until_ms + bytes * sharers * 1000 / PACE_BYTES_PER_S;
    return until < full ? until : full;
}

#endif
