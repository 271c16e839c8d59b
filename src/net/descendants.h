/* Finding the descendants of a child wherever they went: into another process group or session,
 * with an environment of their own, adopted by init.
 *
 * The mark is the soft RLIMIT_RTTIME of the child. The kernel passes it on by fork and exec, every
 * process may read that of its user's processes, and nothing else depends on it: it bounds, in
 * microseconds, real-time tasks only, and the mark is more than a hundred thousand years. What sets
 * this limit itself is not killed (programs that ask for real-time scheduling do). A process in a
 * sandbox cannot. Nothing process-wide of ours is changed.
 *
 * The hard limit of a child is one lower than ours. Without root's rights nothing raises it again:
 * what has lost the mark still differs from a process that we did not start.
 *
 * Threads: every function may be called on any thread. */
#ifndef NET_DESCENDANTS_H
#define NET_DESCENDANTS_H

#include <stdint.h>
#include <sys/types.h>

#include "patchbay/types.h"

/* The mark of the next child: no other child of this process, and none of another's, has it. */
uint64_t descendants_mark(void);
/* In the child, between fork and exec. Without room below its hard limit it stays unmarked. */
void descendants_wear(uint64_t mark);

typedef enum descendants_answer {
    DESCENDANTS_NO,
    DESCENDANTS_YES,
    DESCENDANTS_UNKNOWN, /* it has ended or is hidden, or its limit is lower than ours */
} descendants_answer;
/* Whether this process started that one, directly or through others: by its parents, and by the
 * limit where they have ended. A process of root's that set its limits back and whose parents have
 * ended is not known. Reads /proc. */
descendants_answer descendants_find(pid_t pid);
/* Kills (SIGKILL) what wears the mark: at once, and what they fork meanwhile. 0: does nothing. */
void descendants_kill(uint64_t mark);

/* Starts a process that does nothing until this one has ended, in whatever way, and then kills all
 * that wears a mark of this one. For programs, early in main: it has our memory of now, and no
 * thread may run yet. Without it what left its process group outlives a SIGKILL of ours.
 * Errors: BAY_ERR_IO: no pipe, or no process. */
bay_err descendants_watch(void) BAY_MUST_CHECK;

#endif
