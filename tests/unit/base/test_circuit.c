/* The circuit, with a clock that the test turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/circuit.h"

static circuit made(uint32_t attempts)
{
    circuit self;
    circuit_init(&self, &(circuit_rules){attempts, 60000, 30000});
    return self;
}

static void too_few_crashes_leave_it_closed(void **state)
{
    (void)state;
    circuit self = made(5);
    for (uint64_t at = 0; at < 4; at++) {
        assert_false(circuit_crashed(&self, 1000 + at));
    }
    assert_true(circuit_may_start(&self, 2000));
    assert_int_equal(self.state, CIRCUIT_CLOSED);
}

static void crashes_outside_the_window_do_not_count(void **state)
{
    (void)state;
    circuit self = made(2);
    assert_false(circuit_crashed(&self, 1000));
    assert_false(circuit_crashed(&self, 61000)); /* the first is 60 s old */
    assert_true(circuit_crashed(&self, 120999));
}

static void no_attempts_means_never(void **state)
{
    (void)state;
    circuit self = made(0);
    for (int i = 0; i < 1000; i++) {
        assert_false(circuit_crashed(&self, 1000));
    }
    assert_true(circuit_may_start(&self, 1000));
}

static void as_many_as_can_be_remembered(void **state)
{
    (void)state;
    circuit self = made(UINT32_MAX);
    for (int i = 1; i < CIRCUIT_MOST_ATTEMPTS; i++) {
        assert_false(circuit_crashed(&self, 1000));
    }
    assert_true(circuit_crashed(&self, 1000));
}

static void it_opens_cools_off_and_is_tried_once(void **state)
{
    (void)state;
    circuit self = made(1);
    assert_true(circuit_crashed(&self, 1000));
    assert_false(circuit_may_start(&self, 30999));
    assert_false(circuit_crashed(&self, 2000)); /* another of its links: it is open already */
    assert_int_equal(self.trial_at_ms, 31000);
    assert_true(circuit_may_start(&self, 31000));
    circuit_started(&self);
    assert_int_equal(self.state, CIRCUIT_TRIAL);
    assert_false(circuit_may_start(&self, 31000)); /* one is enough */
    circuit_succeeded(&self);
    assert_int_equal(self.state, CIRCUIT_CLOSED);
    assert_true(circuit_may_start(&self, 31000));
}

static void each_failed_trial_doubles_the_cool_off_up_to_its_bound(void **state)
{
    (void)state;
    circuit self = made(5);
    uint64_t now = 0;
    for (int i = 0; i < 5; i++) {
        (void)circuit_crashed(&self, now);
    }
    uint64_t wanted[] = {30000, 60000, 120000, 240000, 480000, 600000, 600000};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_int_equal(self.state, CIRCUIT_OPEN);
        assert_int_equal(self.trial_at_ms - now, wanted[i]);
        now = self.trial_at_ms;
        circuit_started(&self);
        assert_true(circuit_crashed(&self, now)); /* one crash of a trial is enough */
    }
    circuit_started(&self);
    circuit_succeeded(&self);
    circuit_proved(&self);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(circuit_crashed(&self, now), i == 4);
    }
    assert_int_equal(self.trial_at_ms - now, 30000);
}

static void a_cool_off_beyond_the_bound_stays_as_it_is(void **state)
{
    (void)state;
    circuit self;
    circuit_init(&self, &(circuit_rules){1, 1000, 3600000});
    assert_true(circuit_crashed(&self, 0));
    circuit_started(&self);
    assert_true(circuit_crashed(&self, 10));
    assert_int_equal(self.trial_at_ms, 10 + 3600000);
}

static void a_start_while_it_is_closed_is_no_trial(void **state)
{
    (void)state;
    circuit self = made(2);
    circuit_started(&self);
    assert_int_equal(self.state, CIRCUIT_CLOSED);
    assert_false(circuit_crashed(&self, 1));
    circuit_succeeded(&self); /* forgets nothing: the crashes of a server that comes up each time */
    assert_true(circuit_crashed(&self, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_crashes_leave_it_closed),
        cmocka_unit_test(crashes_outside_the_window_do_not_count),
        cmocka_unit_test(no_attempts_means_never),
        cmocka_unit_test(as_many_as_can_be_remembered),
        cmocka_unit_test(it_opens_cools_off_and_is_tried_once),
        cmocka_unit_test(each_failed_trial_doubles_the_cool_off_up_to_its_bound),
        cmocka_unit_test(a_cool_off_beyond_the_bound_stays_as_it_is),
        cmocka_unit_test(a_start_while_it_is_closed_is_no_trial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
