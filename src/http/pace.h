/* The least pace at which a peer has to send or to take what is under way: a rate, not a silence,
 * which an octet now and then would break.
 *
 * A peer has a credit of time, `window_ms` at most. It runs down with the clock, and each byte that
 * the peer moves buys some back: PACE_BYTES_PER_S of them a second. Who moves nothing is over after
 * `window_ms`; who moves more than the rate never is, in whatever bursts; who moves less is over
 * after a while. Nothing runs down while nothing is under way: the watch then begins anew.
 *
 * Every place that watches a peer's progress uses this: bodies of requests, what waits for a peer
 * to read it, and bodies of replies that are no streams, of HTTP/1.1 and HTTP/2. */
#ifndef HTTP_PACE_H
#define HTTP_PACE_H

#include <stdint.h>

/* A quarter of what the slowest clients that work at all do (1 KB/s): their kernels and flow
 * control acknowledge in bursts. */
enum { PACE_BYTES_PER_S = 256 };

/* When the credit is over, after `bytes` more were moved. `until_ms` 0: the watch begins.
 * `sharers`: how many transfers share the peer's rate, at least 1. */
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
