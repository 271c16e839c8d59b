/* Formatted texts of the functions that end in f. */
#ifndef SDK_FORMAT_H
#define SDK_FORMAT_H

#include <stdarg.h>

#include "base/buf.h"

enum { SDK_FORMAT_BYTES = 64 << 20 };

/* The whole text in `out`, which the caller ends. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT, in it. */
void sdk_format(buf *out, const char *format, va_list arguments) BAY_PRINTF(2, 0);

#endif
