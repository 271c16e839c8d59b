#include "net/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rand.h"
#include "net/child.h"

/* A mark: a bit that makes it large, the number of this process, the number of the child; child
 * number 0 is the watcher. */
#define MARK_BIT (1ULL << 62)
#define MARK_CHILD_BITS 24
#define MARK_OF_ALL (~0ULL << MARK_CHILD_BITS)

enum {
    CALL_PIDFD_SEND_SIGNAL = 424, /* the same on every machine */
    CALL_PIDFD_OPEN = 434,
    DESCENDANTS_KNOWN = 1024,   /* killed in one search */
    DESCENDANTS_ROUNDS = 64,    /* against processes that fork faster than they are killed */
    DESCENDANTS_LOOKS = 3,      /* at the parents of one process */
    DESCENDANTS_PARENTS = 1024, /* visited, from one process up */
};

/* ---- marks ----------------------------------------------------------------------------------- */

static pthread_once_t base_once = PTHREAD_ONCE_INIT;
static uint64_t base;

static void draw_base(void)
{
    base = (rand_u64() & (MARK_BIT - 1) & MARK_OF_ALL) | MARK_BIT;
}

uint64_t descendants_mark(void)
{
    static atomic_uint_fast64_t next = 1;
    pthread_once(&base_once, draw_base);
    uint64_t child = 0;
    while (child == 0) {
        child = atomic_fetch_add(&next, 1) & ~MARK_OF_ALL;
    }
    return base | child;
}

void descendants_wear(uint64_t mark)
{
    struct rlimit limit;
    if (mark == 0 || getrlimit(RLIMIT_RTTIME, &limit) != 0 || limit.rlim_max == 0) {
        return;
    }
    limit.rlim_max--;
    if (mark <= limit.rlim_max) {
        limit.rlim_cur = mark;
    } else if (limit.rlim_cur > limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
    }
    (void)setrlimit(RLIMIT_RTTIME, &limit);
}

/* ---- whether one is ours --------------------------------------------------------------------- */

/* A file of /proc/PID; false: it does not exist, or is longer than `size`. */
static bool read_about(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got = fd >= 0 ? 1 : -1;
    while (got > 0 && len < size - 1) {
        got = read(fd, out + len, size - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    out[len] = '\0';
    return got == 0 && len > 0;
}

/* 0: no visible parent; -1: it has ended, or is hidden. Its name, which may contain anything,
 * precedes in parentheses. */
static pid_t parent_of(pid_t pid)
{
    char text[2048];
    char state = 'X';
    int parent = -1;
    const char *behind = read_about(pid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    if (behind == NULL || sscanf(behind, ") %c %d", &state, &parent) != 2 || state == 'Z' ||
        state == 'X') {
        return -1;
    }
    return (pid_t)parent;
}

static uint64_t limit_of(const char *text)
{
    return strncmp(text, "unlimited", 9) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
}

/* From a file that anybody may read: prlimit refuses for root's processes. */
static bool read_limits(pid_t pid, uint64_t *out_soft, uint64_t *out_hard)
{
    static const char title[] = "Max realtime timeout";
    char text[4096];
    char soft[24];
    char hard[24];
    const char *line = read_about(pid, "limits", text, sizeof(text)) ? strstr(text, title) : NULL;
    if (line == NULL || sscanf(line + sizeof(title) - 1, "%23s %23s", soft, hard) != 2) {
        return false;
    }
    *out_soft = limit_of(soft);
    *out_hard = limit_of(hard);
    return true;
}

static descendants_answer find_by_parents(pid_t pid)
{
    pid_t at = pid;
    for (int i = 0; i < DESCENDANTS_PARENTS; i++) {
        at = parent_of(at);
        if (at == getpid()) {
            return DESCENDANTS_YES;
        }
        if (at < 0) {
            return DESCENDANTS_UNKNOWN;
        }
        if (at <= 1) {
            return DESCENDANTS_NO;
        }
    }
    return DESCENDANTS_UNKNOWN;
}

static descendants_answer find_by_limit(pid_t pid)
{
    uint64_t soft;
    uint64_t hard;
    struct rlimit own;
    pthread_once(&base_once, draw_base);
    if (!read_limits(pid, &soft, &hard) || getrlimit(RLIMIT_RTTIME, &own) != 0) {
        return DESCENDANTS_UNKNOWN;
    }
    if (soft != UINT64_MAX && (soft & MARK_OF_ALL) == base) {
        return DESCENDANTS_YES;
    }
    return hard < own.rlim_max ? DESCENDANTS_UNKNOWN : DESCENDANTS_NO;
}

descendants_answer descendants_find(pid_t pid)
{
    if (pid == getpid()) {
        return DESCENDANTS_NO;
    }
    descendants_answer by_limit = find_by_limit(pid);
    descendants_answer by_parents = DESCENDANTS_UNKNOWN;
    for (int i = 0; i < DESCENDANTS_LOOKS && by_parents == DESCENDANTS_UNKNOWN; i++) {
        by_parents = find_by_parents(pid); /* a parent may end meanwhile */
    }
    if (by_limit == DESCENDANTS_YES || by_parents == DESCENDANTS_YES) {
        return DESCENDANTS_YES;
    }
    return by_limit == DESCENDANTS_UNKNOWN ? by_limit : by_parents;
}

/* ---- the search -------------------------------------------------------------------------------
 */

typedef struct search {
    uint64_t mark;
    uint64_t mask;
    pid_t known[DESCENDANTS_KNOWN];
    size_t count;
} search;

static bool wears(const search *self, pid_t pid)
{
    struct rlimit limit;
    return prlimit(pid, RLIMIT_RTTIME, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           (limit.rlim_cur & self->mask) == self->mark;
}

/* A zombie is found until it is reaped. */
static bool is_known(const search *self, pid_t pid)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->known[i] == pid) {
            return true;
        }
    }
    return false;
}

/* The number may have been reused: the opened process is checked and killed. */
static void kill_if_worn(const search *self, pid_t pid)
{
    int fd = (int)syscall(CALL_PIDFD_OPEN, pid, 0U);
    if (fd < 0) {
        if (errno == ENOSYS) { /* before Linux 5.3 */
            (void)kill(pid, SIGKILL);
        }
        return;
    }
    if (wears(self, pid)) {
        (void)syscall(CALL_PIDFD_SEND_SIGNAL, fd, SIGKILL, NULL, 0U);
    }
    (void)syscall(SYS_close, fd);
}

/* True: it found processes that were not found before. */
static bool kill_round(search *self, DIR *processes)
{
    const struct dirent *entry;
    bool is_new = false;
    rewinddir(processes);
    while ((entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 1 || pid == getpid() || !wears(self, pid) || is_known(self, pid)) {
            continue;
        }
        kill_if_worn(self, pid);
        is_new = true;
        if (self->count < DESCENDANTS_KNOWN) {
            self->known[self->count++] = pid;
        }
    }
    return is_new;
}

static void kill_all(uint64_t mark, uint64_t mask)
{
    search self = {.mark = mark & mask, .mask = mask, .count = 0};
    DIR *processes = opendir("/proc");
    if (processes == NULL) {
        return;
    }
    for (int round = 0; round < DESCENDANTS_ROUNDS && kill_round(&self, processes); round++) {
    }
    (void)closedir(processes);
}

void descendants_kill(uint64_t mark)
{
    if (mark != 0) {
        kill_all(mark, ~0ULL);
    }
}

/* ---- the watcher ------------------------------------------------------------------------------
 */

static void keep_only(int fd)
{
    (void)dup2(fd, 0);
    if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0) {
        for (int other = 1; other < 1024; other++) {
            (void)close(other);
        }
    }
}

/* It has a mark of its own: if this process is itself the child of one that marks, that one must
 * not end the watcher before the watcher has ended our descendants. */
static _Noreturn void be_watcher(int fd)
{
    char byte;
    sigset_t all;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "patchbay-watch");
    keep_only(fd);
    (void)!chdir("/");
    descendants_wear(base);
    while (read(0, &byte, 1) < 0 && errno == EINTR) {
    }
    kill_all(base, MARK_OF_ALL);
    _exit(0);
}

bay_err descendants_watch(void)
{
    int ends[2];
    pthread_once(&base_once, draw_base);
    bay_err err = child_pipe(ends);
    if (err != BAY_OK) {
        return err;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        be_watcher(ends[0]);
    }
    (void)close(ends[0]);
    if (pid < 0) {
        (void)close(ends[1]);
        return BAY_ERR_IO;
    }
    return BAY_OK; /* the other end stays open as long as this process lives */
}
