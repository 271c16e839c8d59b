/* For C libraries without such calls, or that return memory by themselves. */
#include "base/trim.h"

void trim_heap(void)
{
}

void trim_large_blocks(void)
{
}
