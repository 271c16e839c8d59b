/* Assertions about errors of this library itself. Cheap ones are compiled into release builds: if
 * an invariant is broken, the process stops before it answers wrongly. No assertion checks anything
 * that a peer can cause. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stddef.h>

__attribute__((noreturn)) void check_failed(const char *what, const char *file, int line);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            check_failed(#condition, __FILE__, __LINE__);                                          \
        }                                                                                          \
    } while (0)

/* The object that contains a member, from the member's address. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
