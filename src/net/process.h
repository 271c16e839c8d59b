/* A child process that exchanges lines: started without a shell; its stdin is written, its stdout
 * and stderr are read line by line within a limit. It is ended by closing stdin, then SIGTERM, then
 * SIGKILL, and never left behind (its own process group; PR_SET_PDEATHSIG, so it dies with this
 * process). Its descendants end with it, also those that left its group or session (descendants.h).
 *
 * The kernel ties that death to the thread that forked, not to the process. process_start is called
 * on the loop's thread, so a loop that starts processes must run on a thread that lives as long as
 * they do, or use outlives_thread: after a SIGKILL of this process the child then sees only the end
 * of its stdin. Descendants are killed with the child, also if it exits by itself. After a SIGKILL
 * of this process they are killed if descendants_watch was called; otherwise they see only the end
 * of their stdin.
 *
 * A child that ends its stdout but keeps running is closed (2 s to SIGTERM, 2 s more to SIGKILL).
 * After its death, what is left in its pipes is read for at most 250 ms if a descendant holds them.
 */
#ifndef NET_PROCESS_H
#define NET_PROCESS_H

#include "net/loop.h"
#include "net/sandbox.h"

typedef struct process process;

typedef struct process_events {
    void (*line)(void *user, bay_str line);       /* of stdout, without the line end; borrowed */
    void (*error_line)(void *user, bay_str line); /* of stderr, cut at 4 KiB */
    void (*drained)(void *user);                  /* after process_write returned BAY_ERR_AGAIN */
    /* A line of stdout was above the limit: the process is being killed; `exited` follows. */
    void (*overflow)(void *user, size_t line_bytes);
    /* In place of `overflow`, as in line_reader_events: the process lives on. May be NULL. */
    void (*piece)(void *user, bay_str piece, bool is_last);
    /* The last event, exactly once: stdout has ended and the process is reaped. */
    void (*exited)(void *user, int exit_status, int signal);
} process_events;

typedef struct process_options {
    const char *const *argv;        /* argv[0] is looked up in PATH; NULL at the end */
    const char *const *env;         /* "NAME=value", NULL at the end; NULL: inherit */
    const char *cwd;                /* NULL: inherit */
    size_t line_bytes;              /* limit of one stdout line; 0: 64 MiB */
    size_t reply_bytes;             /* of its stdout's lines, see line_reader_options */
    size_t queue_bytes;             /* limit of what waits for its stdin; 0: 64 MiB */
    const sandbox_options *sandbox; /* what it may not do; NULL: no restrictions */
    /* Not killed when the calling thread ends, see above; no effect in bubblewrap. */
    bool outlives_thread;
} process_options;

bay_err process_start(loop *loop, const process_options *options, const process_events *events,
                      void *user, process **out, bay_diag *diag) BAY_MUST_CHECK;
int process_id(const process *self);
/* Writes `line` and a newline. BAY_OK; BAY_ERR_AGAIN: accepted, stop until drained; BAY_ERR_CLOSED;
 * BAY_ERR_LIMIT: not accepted, the queue is full. */
bay_err process_write(process *self, bay_str line);
void process_pause(process *self); /* stop reading stdout: the child blocks */
void process_resume(process *self);
/* Closes stdin; SIGTERM to the group after `term_ms`, SIGKILL after `kill_ms` more. Idempotent. */
void process_close(process *self, uint32_t term_ms, uint32_t kill_ms);
/* After `exited`; or earlier, to kill it at once without further events. */
void process_free(process *self);

#endif
