/* Assertions about our own mistakes. Cheap ones stay on in release builds: a broken invariant stops
 * the process rather than letting it answer wrongly. Never used for anything a peer can cause. */
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
