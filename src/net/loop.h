/* One event loop, one thread. Loops share nothing and exchange messages. Another thread may call
 * loop_post, loop_post_message, loop_stop and loop_is_here; objects that may outlive a loop are in
 * net/loop_mailbox.h and net/wakeup.h, and a conversation of two loops in net/loop_pair.h. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/arena.h"
#include "base/log.h"
#include "patchbay/types.h"

typedef struct loop loop;
typedef struct uv_loop_s uv_loop_t;

bay_err loop_new(loop **out) BAY_MUST_CHECK;
/* Ends everything that is open, waits until it is closed, then frees: sockets get `closed`;
 * listeners, processes (killed and reaped) and line streams end without an event, and their owners
 * must not use them afterwards. Waits for pool work; armed timers do not run. */
void loop_free(loop *self);

void loop_run(loop *self);  /* until loop_stop, or until nothing is left to wait for */
void loop_stop(loop *self); /* any thread */
/* Runs the loop until nothing is ready (for tests and synchronous clients); `timeout_ms` < 0 waits
 * for one event, 0 does not wait. True while something is open. */
bool loop_turn(loop *self, int64_t timeout_ms);

/* For a loop inside another one: the descriptor that becomes readable when there is something to
 * do, and how long (ms, -1: no limit, 0: not at all) it may be waited for before loop_turn(self, 0)
 * is due anyway: a timer, a deferred task. Call it again after every iteration; what is deferred or
 * written to a socket between two iterations makes the descriptor readable. */
int loop_fd(const loop *self);
int loop_wait_ms(loop *self);

/* Whether an iteration is running, so that no other can begin before its end. */
bool loop_is_turning(const loop *self);
/* Reads the clock again: before something is timed outside of an iteration. */
void loop_refresh(loop *self);

/* Whether this is the loop's thread: the one that ran it last, or that created it. */
bool loop_is_here(const loop *self);

/* The target of this loop's log lines, and of those of its pool work; NULL: the process's sink.
 * Borrowed until the loop is freed. */
void loop_set_log(loop *self, const log_target *target);
const log_target *loop_log(const loop *self);

/* While held, loop_run waits for posts even if nothing else is open. Counts; the loop's thread, or
 * any before the loop runs. */
void loop_hold(loop *self);
void loop_release(loop *self);

uint64_t loop_now_ms(const loop *self); /* monotonic, cached per iteration */
uint64_t loop_time_ms(void);            /* wall clock, ms since 1970 */
uv_loop_t *loop_uv(loop *self);         /* for this module only */

/* Runs `function(argument)` on the loop's thread, in the order posted. Any thread. BAY_ERR_CLOSED
 * after loop_free began: then the function does not run. */
bay_err loop_post(loop *self, void (*function)(void *argument), void *argument) BAY_MUST_CHECK;

/* The same without allocating, so that only BAY_ERR_CLOSED is possible: the message belongs to the
 * caller and stays until its function runs; from then on it may be posted again or freed. */
typedef struct loop_message {
    void (*function)(void *argument);
    void *argument;
    struct loop_message *next;
    bool is_loops; /* for loop_post only */
} loop_message;
bay_err loop_post_message(loop *self, loop_message *message) BAY_MUST_CHECK;

/* Runs `function(argument)` once at the end of the current iteration, before the loop waits again.
 */
typedef struct loop_task {
    void (*function)(void *argument);
    void *argument;
    struct loop_task *next;
    bool is_queued;
} loop_task;
void loop_defer(loop *self, loop_task *task); /* no effect while it is queued */
void loop_undefer(loop *self, loop_task *task);

/* A timer is a member of its owner and costs nothing while it is not armed. All timers of a loop
 * share one kernel timer, so thousands are cheap. */
typedef struct loop_timer {
    void (*function)(void *argument);
    void *argument;
    uint64_t due_ms;
    size_t heap_index; /* 0: not armed; used by the heap only */
    uint64_t sequence; /* timers due at the same time run in the order they were armed */
} loop_timer;
void loop_timer_init(loop_timer *self, void (*function)(void *argument), void *argument);
bay_err loop_timer_start(loop *loop, loop_timer *self,
                         uint64_t after_ms) BAY_MUST_CHECK; /* re-arms */
void loop_timer_stop(loop *loop, loop_timer *self);

/* Runs `work` on a pool thread, then `done` on the loop. Both always run. */
bay_err loop_work(loop *self, void (*work)(void *argument), void (*done)(void *argument),
                  void *argument) BAY_MUST_CHECK;

/* A signal handler on this loop (SIGTERM, SIGHUP …), until the loop is freed. */
bay_err loop_on_signal(loop *self, int signal, void (*function)(void *argument, int signal),
                       void *argument) BAY_MUST_CHECK;

#endif
