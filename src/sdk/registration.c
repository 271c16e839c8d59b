/* Errors of registration. */
#include "sdk/registration.h"

#include <stdio.h>

#include "base/err.h"

void registration_error(registration_errors *self, const char *format, va_list arguments)
{
    if (self->count < REGISTRATION_ERRORS) {
        bay_diag *diag = &self->kept[self->count];
        *diag = (bay_diag){0};
        char text[sizeof(diag->text)];
        vsnprintf(text, sizeof(text), format, arguments);
        err_ignore(diag_set(diag, BAY_ERR_INVALID, "%s", text));
    }
    self->count++;
}
