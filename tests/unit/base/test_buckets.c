/* Buckets: what they hold, all or none, whose place is taken, several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "base/buckets.h"
#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { SECOND = 1000000, NOW = 7 * SECOND };

static bucket_charge charge(const buckets *self, const char *name, uint64_t cost_us,
                            uint64_t most_us)
{
    return (bucket_charge){buckets_key(self, str_of(name)), cost_us, most_us};
}

static bool take(buckets *self, const bucket_charge *charges, size_t count, uint64_t now_us,
                 uint64_t *out_wait_us)
{
    size_t which = 99;
    bool is_taken = buckets_take(self, charges, count, now_us, &which, out_wait_us);
    assert_int_equal(*out_wait_us > 0, !is_taken);
    assert_true(is_taken || which < count);
    return is_taken;
}

static void a_bucket_fills_and_empties(void **state)
{
    (void)state;
    uint64_t wait_us;
    buckets *self = NULL;
    assert_int_equal(buckets_new(64, &self), BAY_OK);
    bucket_charge one = charge(self, "a", SECOND, 3 * SECOND); /* one a second, three at once */
    for (int i = 0; i < 3; i++) {
        assert_true(take(self, &one, 1, NOW, &wait_us));
    }
    assert_false(take(self, &one, 1, NOW, &wait_us));
    assert_int_equal(wait_us, SECOND);
    assert_false(take(self, &one, 1, NOW + SECOND - 1, &wait_us));
    assert_int_equal(wait_us, 1);
    assert_true(take(self, &one, 1, NOW + SECOND, &wait_us));
    assert_false(take(self, &one, 1, NOW + SECOND, &wait_us));
    assert_int_equal(buckets_wait(self, &one, NOW + SECOND), SECOND);
    assert_int_equal(buckets_wait(self, &one, NOW + 4 * SECOND), 0);
    /* a clock that goes back empties nothing */
    assert_true(buckets_wait(self, &one, NOW - SECOND) >= 3 * SECOND);
    bucket_charge other = charge(self, "b", SECOND, 3 * SECOND);
    assert_true(take(self, &other, 1, NOW, &wait_us));
    /* more than it holds never fits */
    bucket_charge large = charge(self, "c", 4 * SECOND, 3 * SECOND);
    assert_false(take(self, &large, 1, NOW + 1000 * SECOND, &wait_us));
    buckets_unref(self);
}

static void all_or_none(void **state)
{
    (void)state;
    uint64_t wait_us;
    size_t which = 0;
    buckets *self = NULL;
    assert_int_equal(buckets_new(64, &self), BAY_OK);
    bucket_charge of[] = {charge(self, "wide", SECOND, 100 * SECOND),
                          charge(self, "narrow", SECOND, SECOND)};
    assert_true(take(self, of, 2, NOW, &wait_us));
    for (int i = 0; i < 1000; i++) {
        assert_false(buckets_take(self, of, 2, NOW, &which, &wait_us));
        assert_int_equal(which, 1);
    }
    /* what was refused cost the other one nothing: 99 are left of it */
    bucket_charge rest = charge(self, "wide", 99 * SECOND, 100 * SECOND);
    assert_true(take(self, &rest, 1, NOW, &wait_us));
    assert_false(take(self, &of[0], 1, NOW, &wait_us));
    buckets_unref(self);
}

static void filling_is_never_above_full(void **state)
{
    (void)state;
    buckets *self = NULL;
    assert_int_equal(buckets_new(8, &self), BAY_OK);
    bucket_charge one = charge(self, "a", SECOND, 2 * SECOND);
    for (int i = 0; i < 1000; i++) {
        buckets_fill(self, &one, NOW);
    }
    assert_int_equal(buckets_wait(self, &one, NOW), SECOND);
    buckets_unref(self);
}

/* A flood of names takes the places of the emptiest, so a full bucket stays while emptier ones are there. */
static void a_flood_of_names_is_bounded(void **state)
{
    (void)state;
    uint64_t wait_us;
    char name[32];
    buckets *self = NULL;
    assert_int_equal(buckets_new(BUCKET_WAYS, &self), BAY_OK); /* one set */
    bucket_charge full = charge(self, "full", SECOND, 10 * SECOND);
    for (int i = 0; i < 10; i++) {
        assert_true(take(self, &full, 1, NOW, &wait_us));
    }
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof(name), "stranger %d", i);
        bucket_charge stranger = charge(self, name, SECOND, 10 * SECOND);
        assert_true(take(self, &stranger, 1, NOW, &wait_us));
    }
    assert_false(take(self, &full, 1, NOW, &wait_us));
    buckets_unref(self);
}

enum { THREADS = 4, TRIES = 50000, FIT = 1000 };

static buckets *shared;
static unsigned taken[THREADS];

static void *take_many(void *argument)
{
    unsigned *count = argument;
    bucket_charge one = charge(shared, "one", SECOND, (uint64_t)FIT * SECOND);
    uint64_t wait_us;
    size_t which;
    for (int i = 0; i < TRIES; i++) {
        *count += buckets_take(shared, &one, 1, NOW, &which, &wait_us);
    }
    return NULL;
}

static void threads_take_no_more_than_fits(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned sum = 0;
    assert_int_equal(buckets_new(64, &shared), BAY_OK);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &taken[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += taken[i];
    }
    assert_int_equal(sum, FIT);
    buckets_unref(buckets_ref(shared));
    buckets_unref(shared);
}

static void without_memory(void **state)
{
    (void)state;
    buckets *self = NULL;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_err err = buckets_new(64, &self);
        assert_int_equal(err, failing_memory.has_failed ? BAY_ERR_NOMEM : BAY_OK);
        buckets_unref(err == BAY_OK ? self : NULL);
        failing_memory_check();
    }
    assert_int_equal(buckets_new(SIZE_MAX, &self), BAY_ERR_NOMEM);
    buckets_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_fills_and_empties),
        cmocka_unit_test(all_or_none),
        cmocka_unit_test(filling_is_never_above_full),
        cmocka_unit_test(a_flood_of_names_is_bounded),
        cmocka_unit_test(threads_take_no_more_than_fits),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
