/* The heap. Everything that lives longer than a request is allocated here, so that an embedding
 * program can supply an allocator and a test can fail each allocation in turn. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mem_hooks {
    void *(*alloc)(size_t bytes, void *user);
    void *(*resize)(void *old, size_t bytes, void *user); /* old may be NULL */
    void (*release)(void *old, void *user);               /* old may be NULL */
    void *user;
} mem_hooks;

/* Replaces the allocator of the process. Only before any other call of the library. */
void mem_set_hooks(const mem_hooks *hooks);
/* Whether anything was ever allocated, also if it is freed now. Any thread. */
bool mem_was_used(void);

/* Returns unused memory of the C library's heap to the system; does nothing with hooks. It locks
 * the heap for milliseconds: call it after much was freed, and not on a loop's thread. */
void mem_trim(void);

/* From now on the C library's heap gives blocks of a megabyte and more back when they are freed.
 * For programs that are ours: it is a setting of the process. */
void mem_trim_large(void);

void *mem_alloc(size_t bytes);              /* uninitialised; NULL when out of memory */
void *mem_zalloc(size_t bytes);             /* zeroed */
void *mem_array(size_t count, size_t size); /* zeroed; NULL also when count * size overflows */
void *mem_resize(void *old, size_t bytes);
void mem_free(void *old);
char *mem_dup(const char *at, size_t len); /* adds a NUL after the bytes */
void mem_wipe(void *at, size_t len);       /* never optimised away: for secrets */

#endif
