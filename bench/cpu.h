/* What a process has used of the processors: the total by its CPU clock, in nanoseconds, with the
 * threads that have ended; the share of user space by /proc, in ticks of some 10 ms. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef struct cpu_time {
    double total, user; /* microseconds */
} cpu_time;

/* False: there is no such process. */
static inline bool cpu_of(pid_t pid, cpu_time *out)
{
    char path[64];
    char line[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(line, 1, sizeof(line) - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    line[len] = '\0';
    char *at = strrchr(line, ')');
    unsigned long user = 0;
    clockid_t clock;
    struct timespec total;
    if (at == NULL ||
        sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &user) != 1 ||
        clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &total) != 0) {
        return false;
    }
    *out = (cpu_time){.total = (double)total.tv_sec * 1e6 + (double)total.tv_nsec / 1e3,
                      .user = (double)user * 1e6 / (double)sysconf(_SC_CLK_TCK)};
    return true;
}

#endif
