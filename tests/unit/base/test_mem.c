/* The heap: overflow, empty sizes, hooks that see every call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "support/failing_memory.h"

static void refuses_products_that_overflow(void **state)
{
    (void)state;
    assert_null(mem_array(SIZE_MAX, 2));
    assert_null(mem_array((size_t)1 << 33, (size_t)1 << 33));
    assert_null(mem_dup("", SIZE_MAX));
}

static void an_empty_size_is_memory_all_the_same(void **state)
{
    (void)state;
    void *pieces[] = {mem_alloc(0),    mem_zalloc(0),       mem_array(0, 8),
                      mem_array(8, 0), mem_resize(NULL, 0), mem_dup(NULL, 0)};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        assert_non_null(pieces[i]);
        mem_free(pieces[i]);
    }
    mem_free(NULL);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) { /* memory that was used before, too */
        unsigned char *array = mem_array(50, 4);
        assert_non_null(array);
        for (size_t i = 0; i < 200; i++) {
            assert_int_equal(array[i], 0);
        }
        memset(array, 0xff, 200);
        mem_free(array);
    }
}

static void a_copy_ends_in_nul(void **state)
{
    (void)state;
    char *copy = mem_dup("a\0bc", 3);
    assert_memory_equal(copy, "a\0b", 4);
    mem_free(copy);
}

static void wiping_leaves_nothing(void **state)
{
    (void)state;
    char secret[16] = "0123456789abcde";
    mem_wipe(secret, sizeof(secret));
    for (size_t i = 0; i < sizeof(secret); i++) {
        assert_int_equal(secret[i], 0);
    }
    mem_wipe(NULL, 0);
}

static void the_hooks_see_every_call(void **state)
{
    (void)state;
    assert_true(failing_memory_start(3));
    void *first = mem_alloc(1);
    void *second = mem_resize(NULL, 1);
    second = mem_resize(second, 100);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(failing_memory.outstanding, 2);
    assert_null(mem_alloc(1));
    assert_null(mem_zalloc(1));
    assert_null(mem_array(1, 1));
    assert_null(mem_dup("a", 1));
    assert_null(mem_resize(second, 200)); /* and the old memory stays */
    mem_free(first);
    mem_free(second);
    failing_memory_check();
    failing_memory_stop();
}

static void random_bytes_differ(void **state)
{
    (void)state;
    unsigned char all[256] = {0};
    rand_bytes(all, sizeof(all));
    unsigned char most = 0;
    for (size_t i = 0; i < sizeof(all); i++) {
        most |= all[i];
    }
    assert_int_equal(most, 0xff);
    assert_true(rand_u64() != rand_u64());
    rand_bytes(NULL, 0);
}

/* RFC 9562: 8-4-4-4-12, version 4, variant 10. */
static void uuids_are_of_version_4(void **state)
{
    (void)state;
    char one[37];
    char other[37];
    for (int i = 0; i < 64; i++) {
        memset(one, 'x', sizeof(one));
        rand_uuid(one);
        assert_int_equal(strlen(one), 36);
        for (size_t at = 0; at < 36; at++) {
            bool is_dash = at == 8 || at == 13 || at == 18 || at == 23;
            assert_non_null(strchr(is_dash ? "-" : "0123456789abcdef", one[at]));
        }
        assert_int_equal(one[14], '4');
        assert_non_null(strchr("89ab", one[19]));
    }
    rand_uuid(other);
    assert_string_not_equal(one, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_products_that_overflow),
        cmocka_unit_test(an_empty_size_is_memory_all_the_same),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(a_copy_ends_in_nul),
        cmocka_unit_test(wiping_leaves_nothing),
        cmocka_unit_test(the_hooks_see_every_call),
        cmocka_unit_test(random_bytes_differ),
        cmocka_unit_test(uuids_are_of_version_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
