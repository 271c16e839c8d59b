/* The log: lines with a level, a component and a text, handed to one sink: the one that this thread
 * works for just now (a loop sets it while it turns), else that of the process. The library never
 * prints by itself: without a sink, lines are dropped. Callers never pass secrets. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "patchbay/library.h"

typedef bay_log_level log_level;
#define LOG_ERROR BAY_LOG_LEVEL_ERROR
#define LOG_WARN BAY_LOG_LEVEL_WARNING
#define LOG_INFO BAY_LOG_LEVEL_INFO
#define LOG_DEBUG BAY_LOG_LEVEL_DEBUG

/* `text` ends in NUL and is at most 1,023 bytes; what a terminal would obey and what would not be
 * seen is shown by its code point already (base/shown.h). May be called from any thread. */
typedef bay_log_fn log_sink;

typedef struct log_target {
    log_sink sink; /* NULL: lines are dropped */
    void *user;
    log_level most_verbose;
} log_target;

/* Before the first thread that may log starts; NULL: lines are dropped. */
void log_set_sink(log_level most_verbose, log_sink sink, void *user);
/* From now on, and until it is called again, this thread's lines go there; NULL: to the sink of the
 * process. Borrowed until then. Returns what was there before, to be put back. */
const log_target *log_direct(const log_target *target);
bool log_wants(log_level level);
void log_write(log_level level, const char *component, const char *format, ...) BAY_PRINTF(3, 4);

/* Lines of one kind that may come in floods, as of a full disk: the first of LOG_PACE_MS is
 * written, the next one says how many were left out. Zeroed at first; one thread's at a time. */
enum { LOG_PACE_MS = 10000 };
typedef struct log_pace {
    uint64_t next_ms; /* 0: none was written yet */
    uint64_t left_out;
} log_pace;
/* `now_ms`: of any clock, the same one each time; one that was set back ends the wait. True: it was
 * written. */
bool log_write_paced(log_pace *pace, uint64_t now_ms, log_level level, const char *component,
                     const char *format, ...) BAY_PRINTF(5, 6);

#define LOG(level, component, ...)                                                                 \
    do {                                                                                           \
        if (log_wants(level)) {                                                                    \
            log_write((level), (component), __VA_ARGS__);                                          \
        }                                                                                          \
    } while (0)

#endif
