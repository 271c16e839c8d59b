/* A wakeup: rung by anybody at any time, heard by whatever loop it hangs on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "net/thread.h"
#include "net/wakeup.h"
#include "support/failing_memory.h"

static void count(void *argument)
{
    ++*(int *)argument;
}

static loop *new_loop(void)
{
    loop *self;
    assert_int_equal(loop_new(&self), BAY_OK);
    return self;
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    net_wakeup door;
    assert_int_equal(net_wakeup_init(&door), BAY_OK);
    errno = 7;
    for (int i = 0; i < 1000; i++) {
        net_wakeup_signal(&door);
    }
    assert_int_equal(errno, 7);
    net_wakeup_unwatch(&door);
    net_wakeup_unwatch(&door);
    net_wakeup_fini(&door);
    net_wakeup_fini(&door);
    net_wakeup_signal(&door); /* nothing happens */
}

static void it_is_heard_once_however_often_it_was_rung(void **state)
{
    (void)state;
    net_wakeup door;
    int heard = 0;
    loop *on = new_loop();
    assert_int_equal(net_wakeup_init(&door), BAY_OK);
    net_wakeup_signal(&door); /* before anybody listens */
    net_wakeup_signal(&door);
    assert_int_equal(net_wakeup_watch(&door, on, count, &heard), BAY_OK);
    loop_hold(on);
    loop_turn(on, 0);
    assert_int_equal(heard, 1);
    loop_turn(on, 0);
    assert_int_equal(heard, 1);
    net_wakeup_signal(&door);
    net_wakeup_unwatch(&door);
    loop_turn(on, 0);
    assert_int_equal(heard, 1);
    loop_release(on);
    loop_run(on); /* it keeps no loop going */
    loop_free(on);
    /* … and outlives it. */
    net_wakeup_signal(&door);
    on = new_loop();
    assert_int_equal(net_wakeup_watch(&door, on, count, &heard), BAY_OK);
    loop_hold(on);
    loop_turn(on, 0);
    assert_int_equal(heard, 2);
    loop_release(on);
    loop_free(on);
    net_wakeup_fini(&door);
}

static void ring_it(void *argument)
{
    net_wakeup_signal(argument);
}

static const net_wakeup *rung_by_signal;

static void on_signal(int number)
{
    (void)number;
    net_wakeup_signal(rung_by_signal);
}

static void threads_and_signals_ring_it(void **state)
{
    (void)state;
    net_wakeup door;
    int heard = 0;
    net_thread thread;
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    loop *on = new_loop();
    assert_int_equal(net_wakeup_init(&door), BAY_OK);
    assert_int_equal(net_wakeup_watch(&door, on, count, &heard), BAY_OK);
    loop_hold(on);
    assert_int_equal(net_thread_start(&thread, ring_it, &door), BAY_OK);
    while (heard == 0) {
        loop_turn(on, -1);
    }
    net_thread_join(&thread);
    rung_by_signal = &door;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, NULL);
    loop_turn(on, -1);
    assert_int_equal(heard, 2);
    loop_release(on);
    loop_free(on);
    net_wakeup_fini(&door);
}

/* ---- a loop inside another one */

static void the_descriptor_says_that_something_is_due(void **state)
{
    (void)state;
    net_wakeup door;
    int heard = 0;
    loop *on = new_loop();
    assert_int_equal(net_wakeup_init(&door), BAY_OK);
    assert_int_equal(net_wakeup_watch(&door, on, count, &heard), BAY_OK);
    loop_hold(on);
    while (loop_wait_ms(on) == 0) {
        loop_turn(on, 0); /* what was opened is told to the kernel by a turn */
    }
    assert_int_equal(loop_wait_ms(on), -1);
    struct pollfd wait = {.fd = loop_fd(on), .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 0), 0);
    net_wakeup_signal(&door);
    assert_int_equal(poll(&wait, 1, 0), 1);
    loop_turn(on, 0);
    assert_int_equal(heard, 1);
    assert_int_equal(poll(&wait, 1, 0), 0);
    loop_release(on);
    loop_free(on);
    net_wakeup_fini(&door);
}

static void run_it(void *argument)
{
    loop_run(argument);
}

static void a_loop_knows_its_thread(void **state)
{
    (void)state;
    loop *on = new_loop();
    assert_true(loop_is_here(on));
    net_thread thread;
    assert_int_equal(net_thread_start(&thread, run_it, on), BAY_OK);
    net_thread_join(&thread);
    assert_false(loop_is_here(on));
    loop_turn(on, 0);
    assert_true(loop_is_here(on));
    loop_free(on);
}

static void it_hangs_or_it_does_not(void **state)
{
    (void)state;
    net_wakeup door;
    net_wakeup none = {.descriptor = -1};
    int heard = 0;
    assert_int_equal(net_wakeup_init(&door), BAY_OK);
    for (size_t at = 0; failing_memory_start(at); at++) {
        loop *on;
        if (loop_new(&on) == BAY_OK) {
            bay_err err = net_wakeup_watch(&door, on, count, &heard);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            assert_int_not_equal(net_wakeup_watch(&none, on, count, &heard), BAY_OK);
            loop_free(on);
        }
        failing_memory_check();
    }
    net_wakeup_fini(&door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_to_listen),
        cmocka_unit_test(it_is_heard_once_however_often_it_was_rung),
        cmocka_unit_test(threads_and_signals_ring_it),
        cmocka_unit_test(the_descriptor_says_that_something_is_due),
        cmocka_unit_test(a_loop_knows_its_thread),
        cmocka_unit_test(it_hangs_or_it_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
