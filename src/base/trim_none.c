/* Where the C library has no such call, or does it by itself. */
#include "base/trim.h"

void trim_heap(void)
{
}
