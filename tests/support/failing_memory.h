/* An allocator that fails when told to and counts what is out. A test that must survive every lack
 * of memory runs its body with the first allocation failing, then the second, and so on, until a
 * run needed no more:
 *
 *     for (size_t at = 0; failing_memory_start(at); at++) {
 *         …the body; it must return an error or succeed, and give everything back…
 *         failing_memory_check();
 *     }
 *
 * At the end libc's allocator is back in place. */
#ifndef SUPPORT_FAILING_MEMORY_H
#define SUPPORT_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* Handlers on a pool allocate, too. */
static struct {
    _Atomic size_t allowed; /* allocations that still succeed */
    _Atomic size_t outstanding;
    _Atomic bool has_failed;
    bool is_running;
    bool is_single; /* one fails, and what comes after it succeeds */
} failing_memory;

static inline bool failing_memory_take(void)
{
    size_t allowed = failing_memory.allowed;
    while (allowed > 0 &&
           !atomic_compare_exchange_weak(&failing_memory.allowed, &allowed, allowed - 1)) {
    }
    if (allowed > 0) {
        return true;
    }
    failing_memory.has_failed = true;
    failing_memory.allowed = failing_memory.is_single ? SIZE_MAX : 0;
    return false;
}

static inline void *failing_memory_alloc(size_t bytes, void *user)
{
    (void)user;
    if (!failing_memory_take()) {
        return NULL;
    }
    failing_memory.outstanding++;
    return malloc(bytes);
}

static inline void *failing_memory_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    if (!failing_memory_take()) {
        return NULL;
    }
    failing_memory.outstanding += old == NULL;
    return realloc(old, bytes);
}

static inline void failing_memory_release(void *old, void *user)
{
    (void)user;
    failing_memory.outstanding--;
    free(old);
}

static inline void *failing_memory_libc_alloc(size_t bytes, void *user)
{
    (void)user;
    return malloc(bytes);
}

static inline void *failing_memory_libc_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return realloc(old, bytes);
}

static inline void failing_memory_libc_release(void *old, void *user)
{
    (void)user;
    free(old);
}

/* Back to libc. Everything taken meanwhile must have been given back. */
static inline void failing_memory_stop(void)
{
    mem_set_hooks(&(mem_hooks){failing_memory_libc_alloc, failing_memory_libc_resize,
                               failing_memory_libc_release, NULL});
    failing_memory.is_running = false;
}

/* Lets `allowed` allocations succeed and fails every later one. False, with libc back in place,
 * when the run before needed no more than it was allowed. */
static inline bool failing_memory_start(size_t allowed)
{
    if (failing_memory.is_running && !failing_memory.has_failed) {
        failing_memory_stop();
        return false;
    }
    failing_memory.allowed = allowed;
    failing_memory.outstanding = 0;
    failing_memory.has_failed = false;
    failing_memory.is_running = true;
    failing_memory.is_single = false;
    mem_set_hooks(
        &(mem_hooks){failing_memory_alloc, failing_memory_resize, failing_memory_release, NULL});
    return true;
}

/* The same with that one allocation failing only: the body goes on and meets what it left. */
static inline bool failing_memory_start_single(size_t allowed)
{
    bool has_more = failing_memory_start(allowed);
    failing_memory.is_single = has_more;
    return has_more;
}

/* Fails the test when something was not given back. */
#define failing_memory_check() assert_int_equal(failing_memory.outstanding, 0)

#endif
