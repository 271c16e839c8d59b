/* The event log keeps what fits, forgets the oldest first, and never mixes streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "mcp/event_log.h"

static void what_does_not_fit_is_not_kept(void **state)
{
    (void)state;
    event_log self;
    event_log_init(&self);
    event_log_limits limits = {sizeof(event) + 4, 8};
    assert_false(event_log_add(&self, &limits, 1, 1, STR("12345")));
    assert_int_equal(self.count, 0);
    assert_true(event_log_add(&self, &limits, 1, 1, STR("1234")));
    limits.events = 0;
    assert_false(event_log_add(&self, &limits, 1, 2, STR("1")));
    limits = (event_log_limits){0, 8};
    assert_false(event_log_add(&self, &limits, 1, 2, STR("")));
    assert_int_equal(self.count, 1);
    event_log_fini(&self);
    assert_int_equal(self.bytes, 0);
}

static void the_oldest_goes_first(void **state)
{
    (void)state;
    event_log self;
    event_log_init(&self);
    event_log_limits limits = {2 * (sizeof(event) + 3), 8};
    assert_true(event_log_add(&self, &limits, 1, 1, STR("one")));
    assert_true(event_log_add(&self, &limits, 2, 1, STR("two")));
    assert_true(event_log_add(&self, &limits, 1, 2, STR("new")));
    assert_int_equal(self.count, 2);
    assert_int_equal(event_log_after(&self, 1, 0)->seq, 2);
    limits = (event_log_limits){1000, 2};
    assert_true(event_log_add(&self, &limits, 1, 3, STR("")));
    assert_null(event_log_after(&self, 2, 0));
    event_log_fini(&self);
}

static void streams_are_told_apart(void **state)
{
    (void)state;
    event_log self;
    event_log_init(&self);
    event_log_limits limits = {10000, 100};
    for (uint32_t seq = 1; seq <= 3; seq++) {
        assert_true(event_log_add(&self, &limits, 1, seq, STR("a")));
        assert_true(event_log_add(&self, &limits, 2, seq, STR("b")));
    }
    const event *one = event_log_after(&self, 2, 1);
    assert_int_equal(one->seq, 2);
    assert_true(str_eq(event_text(one), STR("b")));
    assert_null(event_log_after(&self, 2, 3));
    assert_null(event_log_after(&self, 3, 0));
    event_log_trim(&self, 1, 1);
    assert_int_equal(event_log_after(&self, 1, 0)->seq, 3);
    assert_int_equal(self.count, 4);
    event_log_trim(&self, 2, 0);
    assert_int_equal(self.count, 1);
    event_log_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_not_kept),
        cmocka_unit_test(the_oldest_goes_first),
        cmocka_unit_test(streams_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
