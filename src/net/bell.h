/* A bell that any thread, and any signal handler, may ring, whatever has become of the loop that
 * listens to it: it belongs to an object that outlives its loops. */
#ifndef NET_BELL_H
#define NET_BELL_H

#include "net/loop.h"

typedef struct bell {
    int descriptor; /* -1: there is none */
} bell;

/* Owns: one descriptor. Errors: BAY_IO (no descriptor is left). Threads: any. */
bay_err bell_init(bell *self) BAY_MUST_CHECK;
void bell_fini(bell *self); /* after the loop that it hangs on */

void bell_ring(const bell *self); /* async-signal-safe; rung twice before it is heard: once */
void bell_mute(const bell *self); /* forgets what was rung and not heard yet */

/* Runs `rung(argument)` on the loop whenever it was rung, also before this call. Until the loop is
 * freed; it does not keep loop_run going.
 * Owns: nothing. Errors: BAY_NOMEM, BAY_IO. Threads: the loop's. */
bay_err bell_hang(const bell *self, loop *on, void (*rung)(void *argument),
                  void *argument) BAY_MUST_CHECK;

#endif
