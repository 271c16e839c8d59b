/* What went wrong while an object was set up: told when it is to be served, all of it. */
#ifndef SDK_REGISTRATION_H
#define SDK_REGISTRATION_H

#include <stdarg.h>

#include "patchbay/types.h"

enum { REGISTRATION_ERRORS = 16 /* told in full; the others are counted */ };

typedef struct registration_errors {
    bay_diag kept[REGISTRATION_ERRORS];
    size_t count; /* may exceed what is kept */
} registration_errors;

void registration_error(registration_errors *self, const char *format, va_list arguments)
    BAY_PRINTF(2, 0);

#endif
