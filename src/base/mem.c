#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/trim.h"

static void *libc_alloc(size_t bytes, void *user)
{
    (void)user;
    return malloc(bytes);
}

static void *libc_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return realloc(old, bytes);
}

static void libc_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static mem_hooks mem = {libc_alloc, libc_resize, libc_release, NULL};
static atomic_bool was_used;

/* Read before it is written: a cache line that all threads only read costs nothing. */
static void note_use(void)
{
    if (!atomic_load_explicit(&was_used, memory_order_relaxed)) {
        atomic_store_explicit(&was_used, true, memory_order_relaxed);
    }
}

void mem_set_hooks(const mem_hooks *hooks)
{
    mem = *hooks;
}

bool mem_was_used(void)
{
    return atomic_load(&was_used);
}

void mem_trim(void)
{
    if (mem.release == libc_release) {
        trim_heap();
    }
}

void mem_trim_large(void)
{
    trim_large_blocks();
}

void *mem_alloc(size_t bytes)
{
    note_use();
    return mem.alloc(bytes > 0 ? bytes : 1, mem.user);
}

void *mem_zalloc(size_t bytes)
{
    void *at = mem_alloc(bytes);
    if (at != NULL) {
        memset(at, 0, bytes);
    }
    return at;
}

void *mem_array(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return mem_zalloc(bytes);
}

void *mem_resize(void *old, size_t bytes)
{
    note_use();
    return mem.resize(old, bytes > 0 ? bytes : 1, mem.user);
}

void mem_free(void *old)
{
    if (old != NULL) {
        mem.release(old, mem.user);
    }
}

char *mem_dup(const char *at, size_t len)
{
    char *copy = len < SIZE_MAX ? mem_alloc(len + 1) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, at, len);
    }
    copy[len] = '\0';
    return copy;
}

void mem_wipe(void *at, size_t len)
{
    if (len == 0) {
        return;
    }
    memset(at, 0, len);
    __asm__ volatile("" : : "r"(at) : "memory");
}
