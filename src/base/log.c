#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/shown.h"

static log_target process_target;
static _Thread_local const log_target *thread_target;

void log_set_sink(log_level most_verbose, log_sink sink, void *user)
{
    process_target = (log_target){sink, user, most_verbose};
}

const log_target *log_direct(const log_target *target)
{
    const log_target *before = thread_target;
    thread_target = target;
    return before;
}

static const log_target *current_target(void)
{
    return thread_target != NULL ? thread_target : &process_target;
}

bool log_wants(log_level level)
{
    const log_target *target = current_target();
    return target->sink != NULL && level <= target->most_verbose;
}

enum { LINE_BYTES = 1024 };

/* A peer's text must not forge lines, control a terminal or be displayed as something else. */
static void log_tell(log_level level, const char *component, const char *text)
{
    char name[LINE_BYTES / 4]; /* usually a server's name in the configuration */
    char line[LINE_BYTES];
    const log_target *target = current_target();
    shown_copy(name, sizeof(name), str_of(component), SHOWN_LINE);
    shown_copy(line, sizeof(line), shown_whole(str_of(text)), SHOWN_LINE);
    target->sink(level, name, line, target->user);
}

void log_write(log_level level, const char *component, const char *format, ...)
{
    if (!log_wants(level)) {
        return;
    }
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_tell(level, component, text);
}

bool log_write_paced(log_pace *pace, uint64_t now_ms, log_level level, const char *component,
                     const char *format, ...)
{
    if (!log_wants(level)) {
        return false;
    }
    if (now_ms < pace->next_ms && pace->next_ms - now_ms <= LOG_PACE_MS) {
        pace->left_out++;
        return false;
    }
    char line[LINE_BYTES];
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (pace->left_out > 0) {
        snprintf(text, sizeof(text), "%.900s (and %llu times before, since the last such line)",
                 line, (unsigned long long)pace->left_out);
    } else {
        snprintf(text, sizeof(text), "%s", line);
    }
    pace->next_ms = now_ms + LOG_PACE_MS;
    pace->left_out = 0;
    log_tell(level, component, text);
    return true;
}
