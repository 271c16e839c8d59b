/* The log: lines with a level, a component and a text, passed to one sink: the current thread's (a
 * loop sets it during an iteration), otherwise the process's. The library never prints by itself:
 * without a sink, lines are dropped. Callers never pass secrets. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "patchbay/library.h"

typedef bay_log_level log_level;
#define LOG_ERROR BAY_LOG_LEVEL_ERROR
#define LOG_WARN BAY_LOG_LEVEL_WARNING
#define LOG_INFO BAY_LOG_LEVEL_INFO
#define LOG_DEBUG BAY_LOG_LEVEL_DEBUG

/* `text` ends in NUL and has at most 1,023 bytes; control and invisible characters are already
 * replaced by their code points (base/shown.h). May be called from any thread. */
typedef bay_log_fn log_sink;

typedef struct log_target {
    log_sink sink; /* NULL: lines are dropped */
    void *user;
    log_level most_verbose;
} log_target;

/* Call it before the first thread that may log starts. `sink` NULL: lines are dropped. */
void log_set_sink(log_level most_verbose, log_sink sink, void *user);
/* Sends this thread's lines to `target` until the next call; NULL: to the sink of the process.
 * `target` is borrowed until then. Returns the previous target, which the caller restores. */
const log_target *log_direct(const log_target *target);
bool log_wants(log_level level);
void log_write(log_level level, const char *component, const char *format, ...) BAY_PRINTF(3, 4);

/* For lines that may come in floods, for example when a disk is full: at most one line per
 * LOG_PACE_MS is written, and the next one says how many were dropped. Zeroed at first; one thread
 * at a time. */
enum { LOG_PACE_MS = 10000 };
typedef struct log_pace {
    uint64_t next_ms; /* 0: no line was written yet */
    uint64_t left_out;
} log_pace;
/* `now_ms`: of any clock, always the same one; a clock that was set back ends the pause. True: the
 * line was written. */
bool log_write_paced(log_pace *pace, uint64_t now_ms, log_level level, const char *component,
                     const char *format, ...) BAY_PRINTF(5, 6);

#define LOG(level, component, ...)                                                                 \
    do {                                                                                           \
        if (log_wants(level)) {                                                                    \
            log_write((level), (component), __VA_ARGS__);                                          \
        }                                                                                          \
    } while (0)

#endif
