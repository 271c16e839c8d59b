/* Finds the descendants of a child wherever they are: in another process group or session, with an
 * environment of their own, adopted by init.
 *
 * The mark is the soft RLIMIT_RTTIME of the child. The kernel inherits it across fork and exec,
 * every process may read that of its user's processes, and nothing else depends on it: it limits,
 * in microseconds, only real-time tasks, and the mark is more than a hundred thousand years. A
 * process that sets this limit itself is not killed (programs that use real-time scheduling do). A
 * process in a sandbox cannot set it. Nothing process-wide of this process is changed.
 *
 * The hard limit of a child is one lower than this process's. Without root's rights nothing raises
 * it again: a process that has lost the mark still differs from one that this process did not
 * start.
 *
 * Threads: every function may be called on any thread. */
#ifndef NET_DESCENDANTS_H
#define NET_DESCENDANTS_H

#include <stdint.h>
#include <sys/types.h>

#include "patchbay/types.h"

/* The mark of the next child: no other child of this process, or of another, has it. */
uint64_t descendants_mark(void);
/* In the child, between fork and exec. If its hard limit is too low, it stays unmarked. */
void descendants_wear(uint64_t mark);

typedef enum descendants_answer {
    DESCENDANTS_NO,
    DESCENDANTS_YES,
    DESCENDANTS_UNKNOWN, /* it has ended or is hidden, or its limit is lower than ours */
} descendants_answer;
/* Whether this process started that one, directly or through others: by its parents, and by the
 * limit if they have ended. A process of root that restored its limits and whose parents have ended
 * is not detected. Reads /proc. */
descendants_answer descendants_find(pid_t pid);
/* Kills (SIGKILL) all processes with the mark, and those that they fork meanwhile. 0: does nothing.
 */
void descendants_kill(uint64_t mark);

/* Starts a process that waits until this one has ended in any way, and then kills all processes
 * with a mark of this one. For programs, early in main: it shares this process's memory of that
 * time, and no thread may run yet. Without it, descendants that left their process group outlive a
 * SIGKILL of this process. Errors: BAY_ERR_IO: no pipe, or no process. */
bay_err descendants_watch(void) BAY_MUST_CHECK;

#endif
