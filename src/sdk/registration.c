/* Errors of registration. */
#include "sdk/registration.h"
#include <stdio.h>

void registration_error(registration_errors *self, const char *format, va_list arguments)
{
    if (self->count < REGISTRATION_ERRORS) {
        bay_diag *diag = &self->kept[self->count];
        *diag = (bay_diag){.code = BAY_INVALID};
        vsnprintf(diag->text, sizeof(diag->text), format, arguments);
    }
    self->count++;
}
