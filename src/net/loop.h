/* One event loop, one thread. Loops share nothing and exchange messages. Another thread may call
 * loop_post, loop_post_message, loop_stop and loop_is_here; what may outlive a loop is in
 * net/loop_mailbox.h and net/wakeup.h, and a conversation of two loops in net/loop_pair.h. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/arena.h"
#include "base/log.h"
#include "patchbay/types.h"

typedef struct loop loop;
typedef struct uv_loop_s uv_loop_t;

bay_err loop_new(loop **out) BAY_MUST_CHECK;
/* Ends what is still open and waits until it is closed, then frees: sockets say `closed`,
 * listeners, processes (killed and reaped) and line streams go without an event. Whoever holds one
 * of these must not touch it afterwards. Pool work is waited for; timers that are still armed do
 * not run. */
void loop_free(loop *self);

void loop_run(loop *self);  /* until loop_stop, or until nothing is left to wait for */
void loop_stop(loop *self); /* any thread */
/* Turns the loop until nothing is ready (for tests and synchronous clients); `timeout_ms` < 0 waits
 * for one event, 0 does not wait. True while something is alive. */
bool loop_turn(loop *self, int64_t timeout_ms);

/* For a loop inside another one: the descriptor that becomes readable when something is to be done,
 * and how long (ms, -1: no bound, 0: not at all) it may be waited for before loop_turn(self, 0) is
 * due all the same: a timer, a deferred task. Ask anew after every turn; what is deferred or
 * written to a socket between two turns makes the descriptor readable. */
int loop_fd(const loop *self);
int loop_wait_ms(loop *self);

/* Is it being turned just now, so that it cannot be turned again before that ends? */
bool loop_is_turning(const loop *self);
/* Reads the clock anew: before something is timed while the loop is not turning. */
void loop_refresh(loop *self);

/* Is this the loop's thread: the one that turned it last, or that made it? */
bool loop_is_here(const loop *self);

/* Where this loop's lines go, and those of its pool work; NULL: to the sink of the process. It is
 * borrowed until the loop is freed. */
void loop_set_log(loop *self, const log_target *target);
const log_target *loop_log(const loop *self);

/* While held, loop_run waits for posts even when nothing else is open. Counts; the loop's thread,
 * or any before the loop runs. */
void loop_hold(loop *self);
void loop_release(loop *self);

uint64_t loop_now_ms(const loop *self); /* monotonic, cached per turn */
uint64_t loop_time_ms(void);            /* wall clock, ms since 1970 */
uv_loop_t *loop_uv(loop *self);         /* for this floor only */

/* Runs `function(argument)` on the loop's thread, in the order posted. Any thread. BAY_ERR_CLOSED
 * after loop_free began: then the function was not and will not be run. */
bay_err loop_post(loop *self, void (*function)(void *argument), void *argument) BAY_MUST_CHECK;

/* The same without allocating, so BAY_ERR_CLOSED is all that can fail: the message is the caller's
 * and stays until its function runs; from then on it may be posted again or freed. */
typedef struct loop_message {
    void (*function)(void *argument);
    void *argument;
    struct loop_message *next;
    bool is_loops; /* for loop_post only */
} loop_message;
bay_err loop_post_message(loop *self, loop_message *message) BAY_MUST_CHECK;

/* Runs `function(argument)` once at the end of the current turn, before the loop waits again. */
typedef struct loop_task {
    void (*function)(void *argument);
    void *argument;
    struct loop_task *next;
    bool is_queued;
} loop_task;
void loop_defer(loop *self, loop_task *task); /* no-op while it is queued already */
void loop_undefer(loop *self, loop_task *task);

/* A timer lives in its owner; it costs nothing while it is not armed. All timers of a loop share
 * one kernel timer (a heap or wheel), so thousands are cheap. */
typedef struct loop_timer {
    void (*function)(void *argument);
    void *argument;
    uint64_t due_ms;
    size_t heap_index; /* 0: not armed; for the heap only */
    uint64_t sequence; /* timers due at one time run in the order they were armed */
} loop_timer;
void loop_timer_init(loop_timer *self, void (*function)(void *argument), void *argument);
bay_err loop_timer_start(loop *loop, loop_timer *self,
                         uint64_t after_ms) BAY_MUST_CHECK; /* re-arms */
void loop_timer_stop(loop *loop, loop_timer *self);

/* Runs `work` on the pool's threads, then `done` on the loop. Both always run. */
bay_err loop_work(loop *self, void (*work)(void *argument), void (*done)(void *argument),
                  void *argument) BAY_MUST_CHECK;

/* A signal handler on this loop (SIGTERM, SIGHUP …), until the loop is freed. */
bay_err loop_on_signal(loop *self, int signal, void (*function)(void *argument, int signal),
                       void *argument) BAY_MUST_CHECK;

#endif
