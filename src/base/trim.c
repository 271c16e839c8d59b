/* glibc keeps freed memory in its arenas: only the end of one shrinks by itself, and one live block
 * behind a flood's pins all before it. malloc_trim(0) gives whole free pages back wherever they
 * lie. A large block is mapped by itself and unmapped when it is freed, but each that is freed
 * raises the bound, up to 32 MiB, from which on that is so; a bound that was set stays. */
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
