/* glibc keeps freed memory in its arenas: only the end of one shrinks by itself, and one live block
 * behind a flood's pins all before it. malloc_trim(0) gives whole free pages back wherever they
 * lie. */
#include "base/trim.h"

#include <malloc.h>

void trim_heap(void)
{
    (void)malloc_trim(0);
}
