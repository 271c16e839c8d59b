/* What is wrong with a file, all of it, in the order of its lines. Messages name keys and never
 * quote values: a value may be a secret. */
#include <stdarg.h>
#include <stdio.h>

#include "base/shown.h"
#include "config/internal.h"

config_quoted config_quote(bay_str name)
{
    config_quoted quoted;
    size_t at = 0;
    for (size_t i = 0; i < name.len && at < CONFIG_NAME_BYTES; i++) {
        unsigned char c = (unsigned char)name.at[i];
        quoted.text[at++] = (char)(c < 0x20 || c > 0x7e ? '?' : c);
    }
    memcpy(quoted.text + at, name.len > CONFIG_NAME_BYTES ? "..." : "",
           name.len > CONFIG_NAME_BYTES ? 4 : 1);
    return quoted;
}

void config_report_init(config_report *self, bay_str name)
{
    self->count = self->errors = self->warnings = 0;
    shown_copy(self->name, sizeof(self->name), name, SHOWN_LINE);
}

static void report_add(config_report *self, bool is_warning, uint32_t line, const char *format,
                       va_list arguments)
{
    size_t *total = is_warning ? &self->warnings : &self->errors;
    if ((*total)++ >= CONFIG_ERRORS) {
        return;
    }
    size_t at = self->count++;
    for (; at > 0 && self->messages[at - 1].line > line; at--) {
        self->messages[at] = self->messages[at - 1];
    }
    config_message *message = &self->messages[at];
    message->line = line;
    message->is_warning = is_warning;
    vsnprintf(message->text, sizeof(message->text), format, arguments);
}

void config_error(config_loader *loader, uint32_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_add(loader->report, false, line, format, arguments);
    va_end(arguments);
}

void config_warn(config_loader *loader, uint32_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_add(loader->report, true, line, format, arguments);
    va_end(arguments);
}

void config_report_error(config_report *self, uint32_t line, const char *text)
{
    config_loader loader = {.report = self};
    config_error(&loader, line, "%s", text);
}

static void write_message(const config_report *self, const config_message *message, buf *out)
{
    buf_str(out, str_of(self->name));
    buf_char(out, ':');
    if (message->line > 0) {
        buf_uint(out, message->line);
        buf_char(out, ':');
    }
    buf_str(out, message->is_warning ? STR(" warning: ") : STR(" "));
    buf_str(out, str_of(message->text));
    buf_char(out, '\n');
}

void config_report_write(const config_report *self, buf *out)
{
    for (size_t i = 0; i < self->count; i++) {
        write_message(self, &self->messages[i], out);
    }
    size_t dropped = self->errors + self->warnings - self->count;
    if (dropped > 0) {
        buf_str(out, str_of(self->name));
        buf_lit(out, ": and ");
        buf_uint(out, dropped);
        buf_lit(out, " more\n");
    }
}
