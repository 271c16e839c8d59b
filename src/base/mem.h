/* The heap. Everything that lives longer than a request comes from here, so that an embedder can
 * bring an allocator and a test can fail each allocation in turn. */
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

/* Replaces the allocator of the process. Only before anything else of the library is used. */
void mem_set_hooks(const mem_hooks *hooks);
/* Was anything allocated yet, whatever has become of it? Any thread. */
bool mem_was_used(void);

/* Gives back to the system what the C library's heap keeps for later; nothing with hooks. Locks the
 * heap for milliseconds: after much was freed, and off a loop's thread. */
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
void mem_wipe(void *at, size_t len);       /* not optimised away: for secrets */

#endif
