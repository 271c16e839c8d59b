/* Shared by the tests of this module: runs a loop until a condition is true. */
#ifndef TESTS_NET_TEST_H
#define TESTS_NET_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "net/loop.h"

/* Bounds a broken test, not a working one: each turn ends with the first event. */
#define NET_TEST_TURNS 100000

#define turn_until(on_loop, condition)                                                             \
    do {                                                                                           \
        int turns_left = NET_TEST_TURNS;                                                           \
        while (!(condition) && turns_left-- > 0) {                                                 \
            loop_turn((on_loop), 20);                                                              \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static inline loop *test_loop(void)
{
    loop *made = NULL;
    assert_int_equal(loop_new(&made), BAY_OK);
    return made;
}

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

#endif
