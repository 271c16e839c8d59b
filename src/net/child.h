/* Starting a child and learning of its death: the two things that cannot be left to uv_spawn, which
 * has no hook for a parent-death signal. process.c builds the line protocol on it. */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include <sys/types.h>
#include <uv.h>

#include "net/loop.h"
#include "net/sandbox.h"

typedef struct child_plan {
    const char *const *argv;        /* argv[0] is looked up in PATH unless it holds a slash */
    const char *const *env;         /* NULL: inherit */
    const char *cwd;                /* NULL: inherit */
    int fds[3];                     /* become 0, 1 and 2; all above 2; borrowed */
    const sandbox_options *sandbox; /* NULL: none */
    bool outlives_thread;
    uint64_t mark; /* by which its descendants are found (descendants.h); 0: none */
} child_plan;

/* Forks and executes, without a shell; returns once the program runs. The child leads a process
 * group of its own, has no descriptors but 0, 1 and 2 and, unless it outlives the thread, is killed
 * by the kernel when the calling thread ends.
 * Errors: BAY_ERR_SPAWN with the command, the reason and what to look at; BAY_ERR_NOMEM;
 * BAY_ERR_INVALID. */
bay_err child_start(const child_plan *plan, pid_t *out_pid, bay_diag *diag) BAY_MUST_CHECK;

/* A pipe whose ends are both close-on-exec and above 2. BAY_ERR_IO. */
bay_err child_pipe(int out_ends[2]) BAY_MUST_CHECK;

/* Says once, from the loop, that the child died; it stays a zombie (and so its process group's
 * number stays ours) until child_reap. A pidfd where the kernel has them, else SIGCHLD. */
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

/* After `died`: the exit status (-1: somebody else has reaped it) and the signal that ended it. */
void child_reap(pid_t pid, int *out_status, int *out_signal);

/* Tests only: watch by SIGCHLD although the kernel has pidfds. */
void child_watch_prefer_signals(bool prefers);

#endif
