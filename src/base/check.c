#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "patchbay: internal check failed: %s (%s:%d)\n", what, file, line);
    abort();
}
