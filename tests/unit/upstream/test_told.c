/* What the log is told of a server that has several owners: each change once, a reason that repeats
 * itself not again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "upstream/told.h"

typedef struct step {
    int owner;
    upstream_state to;
    const char *reason;
    bool is_new;
    uint64_t repeats;
} step;

static void play(const step *steps, size_t count)
{
    upstream_told *self = NULL;
    bool down[3] = {false};
    assert_int_equal(upstream_told_new(&self), BAY_OK);
    for (size_t i = 0; i < count; i++) {
        upstream_line line =
            upstream_told_step(self, &down[steps[i].owner], steps[i].to, steps[i].reason);
        if (line.is_new != steps[i].is_new || line.repeats != steps[i].repeats) {
            fail_msg("step %zu: new %d, %llu repeats", i, line.is_new,
                     (unsigned long long)line.repeats);
        }
    }
    upstream_told_unref(self);
}

#define PLAY(steps) play((steps), ARRAY_LEN(steps))

static void a_start_is_one_line_for_all(void **state)
{
    (void)state;
    static const step steps[] = {
        {0, UPSTREAM_STARTING, "", false, 0}, {1, UPSTREAM_STARTING, "", false, 0},
        {0, UPSTREAM_READY, "", true, 0},     {2, UPSTREAM_STARTING, "", false, 0},
        {1, UPSTREAM_READY, "", false, 0},    {2, UPSTREAM_READY, "", false, 0},
    };
    PLAY(steps);
}

static void a_failure_is_over_when_all_are_ready(void **state)
{
    (void)state;
    static const step steps[] = {
        {0, UPSTREAM_READY, "", true, 0},
        {1, UPSTREAM_READY, "", false, 0},
        {0, UPSTREAM_BACKOFF, "refused", true, 0},
        {1, UPSTREAM_BACKOFF, "refused", false, 0},
        {0, UPSTREAM_STARTING, "refused", false, 0},
        {0, UPSTREAM_BACKOFF, "refused", false, 0},
        {0, UPSTREAM_STARTING, "refused", false, 0},
        {0, UPSTREAM_READY, "", false, 0},
        {1, UPSTREAM_BACKOFF, "refused", false, 0},
        {1, UPSTREAM_READY, "", true, 3},
        {0, UPSTREAM_STOPPED, "idle", true, 0},
        {1, UPSTREAM_STOPPED, "idle", false, 0},
        {1, UPSTREAM_READY, "", true, 0},
        {1, UPSTREAM_CLOSED, "", true, 0},
        {0, UPSTREAM_CLOSED, "", false, 0},
    };
    PLAY(steps);
}

static void reasons_that_differ_in_numbers_are_one(void **state)
{
    (void)state;
    static const step steps[] = {
        {0, UPSTREAM_BACKOFF, "status 1: at 12:30:01 port 0x7ffe: no", true, 0},
        {0, UPSTREAM_BACKOFF, "status 1: at 12:30:59 port 0x1: no", false, 0},
        {0, UPSTREAM_OPEN, "status 1: at 13:00:00 port 0x22: no", false, 0},
        {0, UPSTREAM_BACKOFF, "status 1: at 13:00:00 port 0x22: no more", true, 0},
        {0, UPSTREAM_BACKOFF, "no file", true, 0},
        {0, UPSTREAM_BACKOFF, "no file 7", true, 0},
        {0, UPSTREAM_BACKOFF, "", true, 0},
        {0, UPSTREAM_READY, "", true, 0},
        {0, UPSTREAM_BACKOFF, "", true, 0}, /* again, after it was well */
    };
    PLAY(steps);
}

/* One that leaves while it is down keeps nobody from hearing that the others are well. */
static void who_leaves_does_not_count(void **state)
{
    (void)state;
    static const step steps[] = {
        {0, UPSTREAM_BACKOFF, "refused", true, 0},
        {1, UPSTREAM_BACKOFF, "refused", false, 0},
        {0, UPSTREAM_CLOSED, "", false, 0},
        {1, UPSTREAM_READY, "", true, 1},
    };
    PLAY(steps);
}

static void a_complaint_is_news_until_it_is_over(void **state)
{
    upstream_told *self = NULL;
    bool is_down = false;
    (void)state;
    assert_true(upstream_told_text(NULL, STR("x")));
    assert_true(upstream_told_text(NULL, STR("x")));
    assert_int_equal(upstream_told_new(&self), BAY_OK);
    assert_true(upstream_told_text(self, STR("x")));
    assert_false(upstream_told_text(self, STR("x")));
    assert_true(upstream_told_text(self, STR("y")));
    upstream_told_text_over(self, STR("x"));
    upstream_told_text_over(self, STR("never said"));
    assert_false(upstream_told_text(self, STR("y")));
    assert_true(upstream_told_text(self, STR("x")));
    /* it begins anew: so do the complaints */
    (void)upstream_told_step(self, &is_down, UPSTREAM_READY, "");
    assert_true(upstream_told_text(self, STR("x")));
    assert_true(upstream_told_text(self, STR("y")));
    (void)upstream_told_step(self, &is_down, UPSTREAM_READY, ""); /* of another loop */
    assert_false(upstream_told_text(self, STR("x")));
    for (unsigned i = 0; i < UPSTREAM_TOLD_TEXTS; i++) {
        assert_true(upstream_told_text(self, (bay_str){(const char *)&i, sizeof(i)}));
    }
    assert_true(upstream_told_text(self, STR("x"))); /* too long ago */
    upstream_told_unref(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_one_line_for_all),
        cmocka_unit_test(a_failure_is_over_when_all_are_ready),
        cmocka_unit_test(reasons_that_differ_in_numbers_are_one),
        cmocka_unit_test(a_complaint_is_news_until_it_is_over),
        cmocka_unit_test(who_leaves_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
