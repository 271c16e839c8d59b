#include "sdk/format.h"

void sdk_format(buf *out, const char *format, va_list arguments)
{
    buf_init(out, SDK_FORMAT_BYTES);
    buf_vprintf(out, format, arguments);
}
