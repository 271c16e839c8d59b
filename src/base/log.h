/* The log: lines with a level, a component and a text, handed to one sink. The library never prints
 * by itself: without a sink, lines are dropped. Callers never pass secrets. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "patchbay/types.h"

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;

/* `text` ends in NUL and is at most 1,023 bytes; control characters are already replaced. May be
 * called from any thread. */
typedef void (*log_sink)(void *user, log_level level, const char *component, const char *text);

/* Before the first thread that may log starts; NULL: lines are dropped. */
void log_set_sink(log_sink sink, void *user, log_level most_verbose);
bool log_wants(log_level level);
void log_write(log_level level, const char *component, const char *format, ...) BAY_PRINTF(3, 4);

#define LOG(level, component, ...)                                                                 \
    do {                                                                                           \
        if (log_wants(level)) {                                                                    \
            log_write((level), (component), __VA_ARGS__);                                          \
        }                                                                                          \
    } while (0)

#endif
