#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static log_sink sink_function;
static void *sink_user;
static log_level sink_level;

void log_set_sink(log_sink sink, void *user, log_level most_verbose)
{
    sink_function = sink;
    sink_user = user;
    sink_level = most_verbose;
}

bool log_wants(log_level level)
{
    return sink_function != NULL && level <= sink_level;
}

/* A peer's bytes must not forge lines or drive a terminal: C0, DEL, and C1 as UTF-8 spells it. */
static void defuse(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        bool is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
        if (*at < 0x20 || *at == 0x7f) {
            *at = '?';
        } else if (is_c1) {
            at[0] = at[1] = '?';
        }
    }
}

void log_write(log_level level, const char *component, const char *format, ...)
{
    if (!log_wants(level)) {
        return;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    defuse(text);
    sink_function(sink_user, level, component, text);
}
