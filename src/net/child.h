/* Starts a child and detects its death: the two things that uv_spawn cannot do, because it has no
 * hook for a parent-death signal. process.c implements the line protocol on it. */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include <sys/types.h>
#include <uv.h>

#include "net/loop.h"
#include "net/sandbox.h"

typedef struct child_plan {
    const char *const *argv;        /* argv[0] is looked up in PATH unless it contains a slash */
    const char *const *env;         /* NULL: inherit */
    const char *cwd;                /* NULL: inherit */
    int fds[3];                     /* become 0, 1 and 2; all above 2; borrowed */
    const sandbox_options *sandbox; /* NULL: none */
    bool outlives_thread;
    uint64_t mark; /* marks its descendants (descendants.h); 0: none */
} child_plan;

/* Forks and executes, without a shell; returns when the program runs. The child leads a process
 * group of its own, has no descriptors except 0, 1 and 2 and, unless it outlives the thread, is
 * killed by the kernel when the calling thread ends. Errors: BAY_ERR_SPAWN with the command, the
 * reason and what to check; BAY_ERR_NOMEM; BAY_ERR_INVALID. */
bay_err child_start(const child_plan *plan, pid_t *out_pid, bay_diag *diag) BAY_MUST_CHECK;

/* A pipe whose ends are both close-on-exec and above 2. BAY_ERR_IO. */
bay_err child_pipe(int out_ends[2]) BAY_MUST_CHECK;

/* Reports the child's death once, from the loop. The child stays a zombie (and so its process
 * group's number is not reused) until child_reap. Uses a pidfd if the kernel has it, otherwise
 * SIGCHLD. */
typedef struct child_watch {
    union {
        uv_handle_t handle;
        uv_poll_t poll;
        uv_signal_t signal;
    } as;
    loop *loop;
    void (*died)(void *user);
    void (*closed)(void *user);
    void *user;
    pid_t pid;
    int pidfd; /* -1: by signal */
    loop_task first_look;
} child_watch;

bay_err child_watch_start(loop *loop, child_watch *self, pid_t pid, void (*died)(void *user),
                          void *user) BAY_MUST_CHECK;
/* `closed` comes later, from the loop; the memory must live until then. */
void child_watch_stop(child_watch *self, void (*closed)(void *user));

/* After `died`: the exit status (-1: another function has reaped it) and the signal that ended it.
 */
void child_reap(pid_t pid, int *out_status, int *out_signal);

/* Tests only: use SIGCHLD although the kernel has pidfds. */
void child_watch_prefer_signals(bool prefers);

#endif
