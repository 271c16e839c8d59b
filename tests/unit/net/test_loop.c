/* The loop: posts, deferred tasks, timers, pool work, signals, and its end. */
#include "support/net_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop_internal.h"

/* --- turns ------------------------------------------------------------------------------------ */

static void take_three_ms(void *argument)
{
    struct timespec from, now;
    (void)argument;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 3000000L);
}

/* Nothing else is there to end the wait: a turn that lost its timer would never end. The wake-up of
 * the message, which would end it, is taken from libuv's descriptor first. */
static void a_turn_ends_though_its_messages_took_longer(void **state)
{
    (void)state;
    loop *on = test_loop();
    uint64_t wake = 0;
    loop_hold(on);
    assert_int_equal(loop_post(on, take_three_ms, NULL), BAY_OK);
    assert_true(read(on->uv.async_io_watcher.fd, &wake, sizeof(wake)) > 0);
    (void)alarm(20);
    (void)loop_turn(on, 1);
    (void)alarm(0);
    loop_free(on);
}

/* --- posts ------------------------------------------------------------------------------------ */

#define THREADS 4
#define POSTS 500

typedef struct post_log {
    loop *loop;
    int next[THREADS];
    int total;
    int misordered;
} post_log;

typedef struct post_item {
    post_log *log;
    int thread;
    int number;
} post_item;

static void on_posted(void *argument)
{
    post_item *item = argument;
    item->log->misordered += item->log->next[item->thread] != item->number;
    item->log->next[item->thread]++;
    item->log->total++;
    mem_free(item);
}

typedef struct poster {
    post_log *log;
    int thread;
} poster;

static void *post_many(void *argument)
{
    poster *self = argument;
    for (int i = 0; i < POSTS; i++) {
        post_item *item = mem_alloc(sizeof(*item));
        *item = (post_item){self->log, self->thread, i};
        if (loop_post(self->log->loop, on_posted, item) != BAY_OK) {
            mem_free(item);
        }
    }
    return NULL;
}

static void posts_of_each_thread_keep_their_order(void **state)
{
    (void)state;
    post_log log = {.loop = test_loop()};
    pthread_t threads[THREADS];
    poster posters[THREADS];
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (poster){&log, i};
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    turn_until(log.loop, log.total == THREADS * POSTS);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(log.misordered, 0);
    loop_free(log.loop);
}

static void count(void *argument)
{
    (*(int *)argument)++;
}

typedef struct late_post {
    loop *loop;
    bay_err err;
    int runs;
} late_post;

static void post_again(void *argument)
{
    late_post *self = argument;
    self->err = loop_post(self->loop, count, &self->runs);
}

static void a_post_taken_before_the_end_runs_and_one_after_is_refused(void **state)
{
    (void)state;
    late_post late = {.loop = test_loop()};
    int runs = 0;
    assert_int_equal(loop_post(late.loop, count, &runs), BAY_OK);
    assert_int_equal(loop_post(late.loop, post_again, &late), BAY_OK);
    loop_free(late.loop);
    assert_int_equal(runs, 1);
    assert_int_equal(late.err, BAY_ERR_CLOSED);
    assert_int_equal(late.runs, 0);
}

typedef struct own_message {
    loop_message message;
    loop *loop;
    int runs;
    bay_err err;
} own_message;

static void run_again(void *argument)
{
    own_message *self = argument;
    self->runs++;
    if (self->runs < 3) {
        self->err = loop_post_message(self->loop, &self->message);
    }
}

static void a_message_of_ones_own_may_be_posted_again(void **state)
{
    (void)state;
    own_message own = {.loop = test_loop()};
    int between = 0;
    own.message = (loop_message){.function = run_again, .argument = &own};
    assert_int_equal(loop_post_message(own.loop, &own.message), BAY_OK);
    assert_int_equal(loop_post(own.loop, count, &between), BAY_OK);
    turn_until(own.loop, own.runs == 3);
    assert_int_equal(own.err, BAY_OK);
    assert_int_equal(between, 1);
    own.runs = 0; /* posted from inside loop_free it is refused */
    assert_int_equal(loop_post_message(own.loop, &own.message), BAY_OK);
    loop_free(own.loop);
    assert_int_equal(own.runs, 1);
    assert_int_equal(own.err, BAY_ERR_CLOSED);
}

static void *stop_loop(void *argument)
{
    loop_stop(argument);
    return NULL;
}

static void a_held_loop_runs_until_another_thread_stops_it(void **state)
{
    (void)state;
    loop *held = test_loop();
    loop_hold(held);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_loop, held), 0);
    loop_run(held);
    pthread_join(thread, NULL);
    loop_release(held);
    loop_run(held); /* nothing to wait for: returns */
    loop_free(held);
}

/* --- deferred tasks --------------------------------------------------------------------------- */

typedef struct deferral {
    loop *loop;
    loop_task task;
    loop_task other;
    int runs;
    int other_runs;
} deferral;

static void defer_twice(void *argument)
{
    deferral *self = argument;
    self->runs++;
    if (self->runs == 1) {
        loop_defer(self->loop, &self->task); /* itself: next time, not at once */
        loop_defer(self->loop, &self->task);
    }
    loop_undefer(self->loop, &self->other);
}

static void deferred_tasks_run_once_each_and_may_be_taken_back(void **state)
{
    (void)state;
    deferral self = {.loop = test_loop()};
    self.task = (loop_task){.function = defer_twice, .argument = &self};
    self.other = (loop_task){.function = count, .argument = &self.other_runs};
    loop_defer(self.loop, &self.task);
    loop_defer(self.loop, &self.task);
    loop_defer(self.loop, &self.other);
    loop_run(self.loop);
    assert_int_equal(self.runs, 2);
    assert_int_equal(self.other_runs, 0);
    loop_defer(self.loop, &self.other);
    loop_undefer(self.loop, &self.other);
    loop_undefer(self.loop, &self.other);
    loop_run(self.loop);
    assert_int_equal(self.other_runs, 0);
    loop_defer(self.loop, &self.other);
    loop_run(self.loop);
    assert_int_equal(self.other_runs, 1);
    loop_free(self.loop);
}

/* --- timers ----------------------------------------------------------------------------------- */

#define TIMERS 10000

typedef struct timer_case {
    loop *loop;
    loop_timer timers[TIMERS];
    uint64_t last_due;
    uint64_t last_sequence;
    int fired;
    int misordered;
} timer_case;

typedef struct timer_argument {
    timer_case *of;
    int index;
} timer_argument;

static timer_case many;
static timer_argument many_arguments[TIMERS];

static void on_many(void *argument)
{
    timer_argument *self = argument;
    timer_case *of = self->of;
    loop_timer *timer = &of->timers[self->index];
    bool is_later = timer->due_ms > of->last_due ||
                    (timer->due_ms == of->last_due && timer->sequence >= of->last_sequence);
    of->misordered += !is_later;
    of->last_due = timer->due_ms;
    of->last_sequence = timer->sequence;
    of->fired++;
    loop_timer_stop(of->loop, timer); /* inside its own callback: harmless */
}

static void ten_thousand_timers_fire_in_order_and_the_stopped_do_not(void **state)
{
    (void)state;
    many = (timer_case){.loop = test_loop()};
    uint32_t random = 12345;
    for (int i = 0; i < TIMERS; i++) {
        many_arguments[i] = (timer_argument){&many, i};
        loop_timer_init(&many.timers[i], on_many, &many_arguments[i]);
        random = random * 1664525 + 1013904223;
        assert_int_equal(loop_timer_start(many.loop, &many.timers[i], (random >> 16) % 8), BAY_OK);
    }
    int stopped = 0;
    for (int i = 0; i < TIMERS; i += 3) {
        loop_timer_stop(many.loop, &many.timers[i]);
        loop_timer_stop(many.loop, &many.timers[i]);
        stopped++;
    }
    for (int i = 1; i < TIMERS; i += 9) { /* re-armed: fires once, at the new time */
        assert_int_equal(loop_timer_start(many.loop, &many.timers[i], 4), BAY_OK);
    }
    loop_run(many.loop);
    assert_int_equal(many.fired, TIMERS - stopped);
    assert_int_equal(many.misordered, 0);
    loop_free(many.loop);
}

typedef struct rearm_case {
    loop *loop;
    loop_timer self_rearming;
    loop_timer victim;
    int runs;
    int victim_runs;
} rearm_case;

static void rearm(void *argument)
{
    rearm_case *self = argument;
    loop_timer_stop(self->loop, &self->victim);
    if (++self->runs < 5) {
        assert_int_equal(loop_timer_start(self->loop, &self->self_rearming, 0), BAY_OK);
    }
}

static void a_timer_may_rearm_itself_and_stop_another_that_is_due(void **state)
{
    (void)state;
    rearm_case self = {.loop = test_loop()};
    loop_timer_init(&self.self_rearming, rearm, &self);
    loop_timer_init(&self.victim, count, &self.victim_runs);
    assert_int_equal(loop_timer_start(self.loop, &self.self_rearming, 0), BAY_OK);
    assert_int_equal(loop_timer_start(self.loop, &self.victim, 0), BAY_OK);
    loop_run(self.loop);
    assert_int_equal(self.runs, 5);
    assert_int_equal(self.victim_runs, 0);
    loop_free(self.loop);
}

static void armed_timers_neither_hold_up_the_end_nor_run_in_it(void **state)
{
    (void)state;
    loop *ending = test_loop();
    loop_timer far;
    loop_timer due;
    int runs = 0;
    int worked = 0;
    loop_timer_init(&far, count, &runs);
    loop_timer_init(&due, count, &runs);
    assert_int_equal(loop_timer_start(ending, &far, UINT64_MAX), BAY_OK);
    assert_true(loop_turn(ending, 0));
    assert_int_equal(loop_timer_start(ending, &due, 0), BAY_OK);
    assert_int_equal(loop_work(ending, count, count, &worked), BAY_OK); /* the loop turns for it */
    loop_free(ending);
    assert_int_equal(runs, 0);
    assert_int_equal(worked, 2);
}

/* --- the pool and signals --------------------------------------------------------------------- */

typedef struct work_case {
    pthread_t loop_thread;
    atomic_int worked;
    int done;
    bool was_elsewhere;
    bool was_home;
} work_case;

static void do_work(void *argument)
{
    work_case *self = argument;
    self->was_elsewhere = pthread_equal(pthread_self(), self->loop_thread) == 0;
    atomic_fetch_add(&self->worked, 1);
}

static void work_done(void *argument)
{
    work_case *self = argument;
    self->was_home = pthread_equal(pthread_self(), self->loop_thread) != 0;
    self->done++;
}

static void pool_work_runs_elsewhere_and_is_done_at_home_also_at_the_end(void **state)
{
    (void)state;
    loop *working = test_loop();
    work_case self = {.loop_thread = pthread_self()};
    assert_int_equal(loop_work(working, do_work, work_done, &self), BAY_OK);
    loop_run(working);
    assert_int_equal(self.done, 1);
    assert_true(self.was_elsewhere);
    assert_true(self.was_home);
    assert_int_equal(loop_work(working, do_work, work_done, &self), BAY_OK);
    loop_free(working);
    assert_int_equal(self.done, 2);
    assert_int_equal(atomic_load(&self.worked), 2);
}

static void on_signal(void *argument, int number)
{
    *(int *)argument = number;
}

static void a_signal_reaches_its_handler_and_does_not_keep_the_loop_alive(void **state)
{
    (void)state;
    loop *listening = test_loop();
    int seen = 0;
    assert_int_not_equal(loop_on_signal(listening, SIGKILL, on_signal, &seen), BAY_OK);
    assert_int_equal(loop_on_signal(listening, SIGUSR1, on_signal, &seen), BAY_OK);
    loop_run(listening);
    kill(getpid(), SIGUSR1);
    loop_hold(listening);
    turn_until(listening, seen == SIGUSR1);
    loop_release(listening);
    loop_free(listening);
}

static void a_loop_leaves_no_descriptor_behind(void **state)
{
    (void)state;
    loop_free(test_loop()); /* libuv keeps a signal pipe from its first loop on */
    int before = open_descriptors();
    loop_free(test_loop());
    loop_free(NULL);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_ends_though_its_messages_took_longer),
        cmocka_unit_test(posts_of_each_thread_keep_their_order),
        cmocka_unit_test(a_post_taken_before_the_end_runs_and_one_after_is_refused),
        cmocka_unit_test(a_message_of_ones_own_may_be_posted_again),
        cmocka_unit_test(a_held_loop_runs_until_another_thread_stops_it),
        cmocka_unit_test(deferred_tasks_run_once_each_and_may_be_taken_back),
        cmocka_unit_test(ten_thousand_timers_fire_in_order_and_the_stopped_do_not),
        cmocka_unit_test(a_timer_may_rearm_itself_and_stop_another_that_is_due),
        cmocka_unit_test(armed_timers_neither_hold_up_the_end_nor_run_in_it),
        cmocka_unit_test(pool_work_runs_elsewhere_and_is_done_at_home_also_at_the_end),
        cmocka_unit_test(a_signal_reaches_its_handler_and_does_not_keep_the_loop_alive),
        cmocka_unit_test(a_loop_leaves_no_descriptor_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
