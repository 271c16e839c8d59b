/* SQLite's own allocations fail, every seventh in turn, once or from there on: whatever was
 * confirmed is in the file, the totals are true, and nothing crashes. */
#include "support/store_rig.h"

#include <limits.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/str.h"

#define T STR("t")

static atomic_long allowed = LONG_MAX; /* allocations until one fails */
static atomic_bool fails_on;           /* and all that follow */
static atomic_bool has_failed;

static bool may_take(void)
{
    long left = atomic_fetch_sub(&allowed, 1);
    if (left > 0 || (left < 0 && !atomic_load(&fails_on))) {
        return true;
    }
    atomic_store(&has_failed, true);
    return false;
}

static void *take(int bytes)
{
    return may_take() ? malloc((size_t)bytes) : NULL;
}

static void *take_again(void *old, int bytes)
{
    return may_take() ? realloc(old, (size_t)bytes) : NULL;
}

static int size_of(void *at)
{
    return (int)malloc_usable_size(at);
}

static int round_up(int bytes)
{
    return (bytes + 7) & ~7;
}

static int begin(void *user)
{
    (void)user;
    return SQLITE_OK;
}

static void end(void *user)
{
    (void)user;
}

/* The n-th failure from now; LONG_MAX: none. */
static void fail_after(long count, bool and_on)
{
    atomic_store(&fails_on, and_on);
    atomic_store(&has_failed, false);
    atomic_store(&allowed, count);
}

typedef struct confirmed {
    bool row;
    bool lease;
    int events;
    int failures;
} confirmed;

static bool is_expected(confirmed *done, bay_err err)
{
    done->failures += err != BAY_OK && err != BAY_ERR_NOT_FOUND;
    return err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_IO;
}

static confirmed use(store_rig *rig)
{
    confirmed done = {0};
    answer a = {0};
    store_append_request append = {.stream = T, .value = STR("event"), .keep_events = 2};
    assert_true(is_expected(&done, rig_put(rig, &a, "k", "value", STORE_ABSENT, 0)));
    done.row = a.err == BAY_OK;
    /* Two that wait together. */
    answer b = {0};
    answer_clear(&a);
    assert_int_equal(store_claim(rig->store, T, STR("work"), STR("me"), 1000, on_answer, &a), 0);
    assert_int_equal(store_append(rig->store, &append, on_answer, &b), BAY_OK);
    rig_turn_until(rig, b.calls == 1);
    assert_int_equal(a.calls, 1);
    assert_true(is_expected(&done, a.err) && is_expected(&done, b.err));
    done.lease = a.err == BAY_OK;
    done.events += b.err == BAY_OK;
    for (int i = 0; i < 2; i++) {
        assert_true(is_expected(&done, ask(rig, &a, append, &append)));
        done.events += a.err == BAY_OK;
    }
    bay_err err = ask(rig, &a, get, T, STR("k"));
    assert_true(err == BAY_ERR_NOT_FOUND ? !done.row : is_expected(&done, err));
    assert_true(is_expected(&done, ask(rig, &a, scan, T, STR(""), STR(""), 10)));
    answer_clear(&a);
    answer_clear(&b);
    return done;
}

static void check(store_rig *rig, confirmed done)
{
    answer a = {0};
    rig_open(rig);
    bay_err err = ask(rig, &a, get, T, STR("k"));
    assert_true(done.row ? err == BAY_OK : err == BAY_ERR_NOT_FOUND || err == BAY_OK);
    uint64_t rows = err == BAY_OK;
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("you"), 1000),
                     done.lease ? BAY_ERR_BUSY : BAY_OK);
    assert_int_equal(ask(rig, &a, read, T, 0, 10), BAY_OK);
    assert_int_equal(a.count, done.events > 2 ? 2 : done.events);
    assert_int_equal(a.held_rows, rows + 1 + a.count);
    rig_close(rig);
    answer_clear(&a);
}

/* False when nothing failed any more. */
static bool attempt(store_rig *rig, long at, bool and_on)
{
    confirmed done = {0};
    bay_diag diag;
    rig_remove_file(rig);
    fail_after(at, and_on);
    bay_err err = rig_try_open(rig, &diag);
    assert_true(is_expected(&done, err));
    if (err == BAY_OK) {
        done = use(rig);
        rig_close(rig);
        assert_true(and_on || done.failures <= 1);
    }
    rig->store = NULL;
    bool failed = atomic_load(&has_failed);
    fail_after(LONG_MAX, false);
    check(rig, done);
    return failed;
}

static void sweep(bool and_on)
{
    store_rig *rig = rig_new(true);
    long at = 0;
    while (attempt(rig, at, and_on)) {
        at += 7; /* each takes a dozen flushes */
    }
    assert_true(at > 100); /* it was SQLite that failed */
    rig_free(rig);
}

static void an_allocation_that_fails_once_fails_one_operation_at_most(void **state)
{
    (void)state;
    sweep(false);
}

static void the_lack_of_all_memory_from_some_point_on_is_survived(void **state)
{
    (void)state;
    sweep(true);
}

int main(void)
{
    static const sqlite3_mem_methods methods = {take,     free,  take_again, size_of,
                                                round_up, begin, end,        NULL};
    /* Without its own small cache every allocation is one that can fail. */
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_that_fails_once_fails_one_operation_at_most),
        cmocka_unit_test(the_lack_of_all_memory_from_some_point_on_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
