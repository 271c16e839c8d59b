/* Where the C library has no such calls, or does it by itself. */
#include "base/trim.h"

void trim_heap(void)
{
}

void trim_large_blocks(void)
{
}
