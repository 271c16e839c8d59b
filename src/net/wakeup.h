/* A wake-up: an eventfd that any thread or signal handler may signal. Its owner outlives the loop,
 * so signalling is safe after the loop is freed. */
#ifndef NET_WAKEUP_H
#define NET_WAKEUP_H

#include "net/loop.h"

typedef struct net_wakeup {
    int descriptor; /* -1: not initialised */
} net_wakeup;

/* Owns: one descriptor. Errors: BAY_ERR_IO (no more descriptors). Threads: any. */
bay_err net_wakeup_init(net_wakeup *self) BAY_MUST_CHECK;
/* After the loop that watches it is freed. */
void net_wakeup_fini(net_wakeup *self);

/* Async-signal-safe. Two signals before the loop runs are one. */
void net_wakeup_signal(const net_wakeup *self);
/* Drops a signal that the loop has not received yet. */
void net_wakeup_unwatch(const net_wakeup *self);

/* Runs `signalled(argument)` on the loop after each signal, also one sent before this call, until
 * the loop is freed. It does not keep loop_run running. Owns: nothing. Errors: BAY_ERR_NOMEM,
 * BAY_ERR_IO.
 * Threads: the loop's. */
bay_err net_wakeup_watch(const net_wakeup *self, loop *on, void (*signalled)(void *argument),
                         void *argument) BAY_MUST_CHECK;

#endif
