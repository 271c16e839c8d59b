/* Diagnostics. The error codes are public (patchbay/types.h); their texts are in err.def. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "patchbay/types.h"

enum { ERR_COUNT = BAY_ERR_INTERNAL + 1 };

/* Writes `code` and a formatted text into `diag` (which may be NULL) and returns `code`, so that
 * `return diag_set(diag, BAY_ERR_SYNTAX, "…")` reads as one statement. Clears line and offset. */
bay_err diag_set(bay_diag *diag, bay_err code, const char *format, ...) BAY_PRINTF(3, 4);

/* Like diag_set, with the byte offset of the error. */
bay_err diag_at(bay_diag *diag, bay_err code, size_t offset, const char *format, ...)
    BAY_PRINTF(4, 5);

/* For an error that has no consequence; the caller's comment says why. (gcc ignores a cast to
 * void.) */
static inline void err_ignore(bay_err err)
{
    (void)err;
}

#endif
