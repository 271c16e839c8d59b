#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/shown.h"

static const struct {
    bay_err_class class_of;
    const char *text;
} errors[ERR_COUNT] = {
#define ERR(name, class_name, text) [name] = {BAY_ERR_CLASS_##class_name, text},
#include "base/err.def"
#undef ERR
};

const char *bay_err_text(bay_err err)
{
    return (unsigned)err < ERR_COUNT ? errors[err].text : "unknown error";
}

bay_err_class bay_err_class_of(bay_err err)
{
    return (unsigned)err < ERR_COUNT ? errors[err].class_of : BAY_ERR_CLASS_FATAL;
}

const char *bay_version(void)
{
    return PATCHBAY_VERSION;
}

static void diag_format(bay_diag *diag, bay_err code, size_t offset, const char *format,
                        va_list arguments)
{
    if (diag == NULL) {
        return;
    }
    diag->code = code;
    diag->line = 0;
    diag->offset = offset;
    /* the text may quote a peer, and callers print, log and send it unchanged */
    char text[sizeof(diag->text)];
    vsnprintf(text, sizeof(text), format, arguments);
    shown_copy(diag->text, sizeof(diag->text), shown_whole(str_of(text)), SHOWN_LINE);
}

bay_err diag_set(bay_diag *diag, bay_err code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    diag_format(diag, code, 0, format, arguments);
    va_end(arguments);
    return code;
}

bay_err diag_at(bay_diag *diag, bay_err code, size_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    diag_format(diag, code, offset, format, arguments);
    va_end(arguments);
    return code;
}
