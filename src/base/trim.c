/* glibc keeps freed memory in its arenas: only the end of an arena shrinks by itself, and one live
 * block at the end keeps all free memory before it. malloc_trim(0) returns all whole free pages. A
 * large block has a mapping of its own and is unmapped when it is freed, but each such free raises
 * the threshold for later blocks, up to 32 MiB; a threshold that was set explicitly stays. */
#include "base/trim.h"

#include <malloc.h>

enum { LARGE_BYTES = 1 << 20 };

void trim_heap(void)
{
    (void)malloc_trim(0);
}

void trim_large_blocks(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}
