/* The arena: alignment, its maximum, what survives a reset, and every allocation failing in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "support/failing_memory.h"

static void refuses_what_exceeds_the_maximum(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 10000);
    assert_null(arena_alloc(&memory, 10001));
    assert_true(memory.is_full);
    assert_null(memory.chunk); /* a refusal takes no memory */
    assert_non_null(arena_alloc(&memory, 9984));
    assert_null(arena_alloc(&memory, 32));
    assert_non_null(arena_alloc(&memory, 16)); /* what is left can still be used */
    assert_int_equal(memory.used, 10000);
    assert_null(arena_alloc(&memory, 1));
    arena_fini(&memory);
}

static void refuses_everything_when_the_maximum_is_zero(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 0);
    assert_null(arena_alloc(&memory, 0));
    assert_true(memory.is_full);
    arena_fini(&memory);
}

static void refuses_sizes_that_overflow(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, SIZE_MAX);
    assert_null(arena_alloc(&memory, SIZE_MAX));
    assert_null(arena_alloc(&memory, SIZE_MAX - 15));
    assert_null(arena_zalloc(&memory, SIZE_MAX - 1));
    assert_null(arena_array(&memory, SIZE_MAX / 2, 3));
    assert_null(arena_array(&memory, (size_t)1 << 32, (size_t)1 << 32));
    bay_str copy = {"untouched", 9};
    assert_int_equal(arena_dup(&memory, (bay_str){"", SIZE_MAX}, &copy), BAY_ERR_LIMIT);
    assert_int_equal(copy.len, 9);
    assert_null(memory.chunk);
    arena_fini(&memory);
}

static void gives_aligned_memory_that_does_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    arena memory;
    arena_init(&memory, 1 << 20);
    unsigned char *taken[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        taken[i] = arena_alloc(&memory, i * 3);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % 16, 0);
        memset(taken[i], (int)(i & 0xff), i * 3);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < i * 3; j++) {
            assert_int_equal(taken[i][j], i & 0xff);
        }
    }
    arena_fini(&memory);
}

static void distinguishes_empty_allocations(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    void *first = arena_alloc(&memory, 0);
    void *second = arena_alloc(&memory, 0);
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    arena_fini(&memory);
}

static void zeroes_on_request_after_reuse(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    memset(arena_alloc(&memory, 512), 0xff, 512);
    arena_reset(&memory);
    const unsigned char *array = arena_array(&memory, 64, 8);
    for (size_t i = 0; i < 512; i++) {
        assert_int_equal(array[i], 0);
    }
    arena_fini(&memory);
}

static void a_large_one_leaves_the_current_chunk_in_use(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 20);
    char *before = arena_alloc(&memory, 16);
    assert_non_null(arena_alloc(&memory, 100000));
    assert_non_null(arena_alloc(&memory, 3000)); /* too much of a chunk: memory of its own */
    assert_non_null(arena_alloc(&memory, 3000));
    char *after = arena_alloc(&memory, 16);
    assert_true(after > before && after < before + 4096);
    assert_true(memory.used < 100000 + 3 * 4096);
    arena_fini(&memory);
}

static void a_warm_arena_allocates_nothing(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 20);
    assert_non_null(arena_alloc(&memory, 100));
    assert_non_null(arena_alloc(&memory, 50000));
    arena_reset(&memory);
    assert_true(memory.used <= 4096);
    assert_true(failing_memory_start(0));
    assert_non_null(arena_alloc(&memory, 100));
    assert_non_null(arena_alloc(&memory, 2000));
    assert_false(failing_memory.has_failed);
    failing_memory_stop();
    arena_fini(&memory);
    arena_fini(&memory); /* twice is harmless */
}

static void reset_counts_afresh(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 20000);
    for (int round = 0; round < 50; round++) {
        assert_non_null(arena_alloc(&memory, 10000));
        assert_non_null(arena_alloc(&memory, 100));
        assert_null(arena_alloc(&memory, 10000));
        assert_true(memory.is_full);
        arena_reset(&memory);
        assert_false(memory.is_full);
    }
    arena_fini(&memory);
}

static void copies_and_terminates(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    bay_str copy;
    assert_int_equal(arena_dup(&memory, (bay_str){"a\0b", 3}, &copy), BAY_OK);
    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.at, "a\0b", 4);
    assert_int_equal(arena_dup(&memory, (bay_str){NULL, 0}, &copy), BAY_OK);
    assert_int_equal(copy.len, 0);
    assert_string_equal(copy.at, "");
    arena_fini(&memory);
}

static void tells_a_lack_of_memory_from_the_maximum(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        arena_init(&memory, 40000);
        bay_str copy = {NULL, 77};
        assert_null(arena_alloc(&memory, 50000));
        assert_true(memory.is_full);
        for (int i = 0; i < 8; i++) {
            bay_err err = arena_dup(&memory, (bay_str){"0123456789", 10}, &copy);
            assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && failing_memory.has_failed));
            if (err == BAY_OK && arena_alloc(&memory, 3500) == NULL) {
                assert_false(memory.is_full);
            }
        }
        arena_fini(&memory);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_exceeds_the_maximum),
        cmocka_unit_test(refuses_everything_when_the_maximum_is_zero),
        cmocka_unit_test(refuses_sizes_that_overflow),
        cmocka_unit_test(gives_aligned_memory_that_does_not_overlap),
        cmocka_unit_test(distinguishes_empty_allocations),
        cmocka_unit_test(zeroes_on_request_after_reuse),
        cmocka_unit_test(a_large_one_leaves_the_current_chunk_in_use),
        cmocka_unit_test(a_warm_arena_allocates_nothing),
        cmocka_unit_test(reset_counts_afresh),
        cmocka_unit_test(copies_and_terminates),
        cmocka_unit_test(tells_a_lack_of_memory_from_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
