/* Credentials that are not good cost the address that brings them, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/failure_limit.h" /* cmocka takes the word "fail" */

#include <cmocka.h>
#include <stdio.h>

#include "base/str.h"
#include "support/failing_memory.h"

enum { NOW = 5000000, MOST = 60 };

static bool admits(failure_limit *self, const char *address, uint64_t now_ms)
{
    uint32_t retry_ms = 0;
    bool is_admitted = failure_limit_admits(self, str_of(address), now_ms, &retry_ms);
    assert_int_equal(retry_ms > 0, !is_admitted);
    assert_true(retry_ms <= 60000);
    return is_admitted;
}

static void a_bucket_fills_and_empties(void **state)
{
    (void)state;
    failure_limit *self = NULL;
    assert_int_equal(failure_limit_new(MOST, &self), BAY_OK);
    for (int i = 0; i < MOST; i++) {
        assert_true(admits(self, "192.0.2.1", NOW));
        failure_limit_count(self, str_of("192.0.2.1"), NOW);
    }
    assert_false(admits(self, "192.0.2.1", NOW));
    assert_true(admits(self, "192.0.2.2", NOW));
    /* one a second comes back */
    assert_false(admits(self, "192.0.2.1", NOW + 999));
    assert_true(admits(self, "192.0.2.1", NOW + 1000));
    failure_limit_count(self, str_of("192.0.2.1"), NOW + 1000);
    assert_false(admits(self, "192.0.2.1", NOW + 1000));
    /* what was under way when it was full makes it no fuller */
    for (int i = 0; i < 1000; i++) {
        failure_limit_count(self, str_of("192.0.2.1"), NOW + 1000);
    }
    assert_true(admits(self, "192.0.2.1", NOW + 2001));
    for (int i = 0; i < MOST - 1; i++) {
        failure_limit_count(self, str_of("192.0.2.1"), NOW + 200000);
    }
    assert_true(admits(self, "192.0.2.1", NOW + 200000));
    failure_limit_free(self);
}

static void exhaust(failure_limit *self, const char *address)
{
    for (int i = 0; i < MOST; i++) {
        failure_limit_count(self, str_of(address), NOW);
    }
    assert_false(admits(self, address, NOW));
}

static void what_is_one_address(void **state)
{
    (void)state;
    failure_limit *self = NULL;
    assert_int_equal(failure_limit_new(MOST, &self), BAY_OK);
    exhaust(self, "2001:db8:1:2:3::4");
    assert_false(admits(self, "2001:db8:1:2:ffff::1", NOW)); /* of the same /64 */
    assert_true(admits(self, "2001:db8:1:3::4", NOW));
    exhaust(self, "::ffff:198.51.100.7");
    assert_false(admits(self, "198.51.100.7", NOW)); /* the same, written otherwise */
    assert_true(admits(self, "198.51.100.8", NOW));
    assert_true(admits(self, "", NOW));
    exhaust(self, "");
    assert_false(admits(self, "a name that is much too long to be an address of any kind", NOW));
    failure_limit_free(self);
}

/* More addresses than there are places: what an address gains by it is an empty bucket. */
static void the_table_is_bounded(void **state)
{
    (void)state;
    failure_limit *self = NULL;
    char address[32];
    assert_int_equal(failure_limit_new(MOST, &self), BAY_OK);
    exhaust(self, "203.0.113.1");
    for (unsigned i = 0; i < 2 * FAILURE_LIMIT_ADDRESSES; i++) {
        snprintf(address, sizeof(address), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        failure_limit_count(self, str_of(address), NOW);
    }
    assert_false(admits(self, "203.0.113.1", NOW)); /* the emptiest go first */
    failure_limit_free(self);
}

static void without_a_bound(void **state)
{
    (void)state;
    failure_limit *self = NULL;
    assert_int_equal(failure_limit_new(0, &self), BAY_OK);
    assert_null(self);
    failure_limit_count(self, str_of("192.0.2.1"), NOW);
    assert_true(admits(self, "192.0.2.1", NOW));
    failure_limit_free(self);
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_err err = failure_limit_new(MOST, &self);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        failure_limit_free(self);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_fills_and_empties),
        cmocka_unit_test(what_is_one_address),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(without_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
