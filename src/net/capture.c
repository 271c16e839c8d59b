#include "net/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

static const char is_late_text[] = "it did not end in time";

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const char *read_all(int from, uint64_t until_ms, char *out, size_t size, size_t *out_len)
{
    size_t len = 0;
    for (;;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        char more;
        uint64_t now = now_ms();
        int ready = poll(&wait, 1, until_ms > now ? (int)(until_ms - now) : 0);
        if (ready == 0) {
            return is_late_text;
        }
        bool is_full = len == size;
        ssize_t got =
            ready < 0 ? -1 : read(from, is_full ? &more : out + len, is_full ? 1 : size - len);
        if (got == 0) {
            *out_len = len;
            return NULL;
        }
        if (got > 0 && is_full) {
            return "it is too long";
        }
        if (got < 0 && errno != EINTR) {
            return strerror(errno);
        }
        len += got > 0 ? (size_t)got : 0;
    }
}

const char *capture_file(const char *path, uint32_t timeout_ms, char *out, size_t size,
                         size_t *out_len)
{
    int file =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for the writer of a FIFO */
    if (file < 0) {
        return strerror(errno);
    }
    const char *fault = read_all(file, now_ms() + timeout_ms, out, size, out_len);
    close(file);
    return fault;
}

const char *capture_file_into(const char *path, uint32_t timeout_ms, buf *out)
{
    size_t room = out->max - out->len;
    size_t len = 0;
    if (!buf_reserve(out, room)) {
        return bay_err_text(out->err);
    }
    const char *fault = capture_file(path, timeout_ms, out->at + out->len, room, &len);
    out->len += len;
    return fault;
}

/* ---- programs -------------------------------------------------------------------------------- */

extern char **environ;

/* Its own process group, the default signals, nothing of ours but its stdout. */
static int start(char *const *argv, int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int err = posix_spawn_file_actions_init(&files);
    if (err != 0) {
        return err;
    }
    err = posix_spawnattr_init(&attributes);
    if (err != 0) {
        posix_spawn_file_actions_destroy(&files);
        return err;
    }
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    err = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    err = err == 0 ? posix_spawn_file_actions_adddup2(&files, out, 1) : err;
    err = err == 0 ? posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) : err;
    err = err == 0 ? posix_spawnattr_setflags(&attributes, flags) : err;
    err = err == 0 ? posix_spawnattr_setpgroup(&attributes, 0) : err;
    err = err == 0 ? posix_spawnattr_setsigmask(&attributes, &none) : err;
    err = err == 0 ? posix_spawnattr_setsigdefault(&attributes, &all) : err;
    err = err == 0 ? posix_spawn(pid, argv[0], &files, &attributes, argv, environ) : err;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return err;
}

static const char *reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "it failed";
}

static void kill_all(pid_t pid)
{
    kill(-pid, SIGKILL);
    (void)reap(pid);
}

/* Closing its stdout does not end a program. */
static const char *await_end(pid_t pid, uint64_t until_ms)
{
    while (now_ms() < until_ms) {
        siginfo_t ended = {.si_pid = 0};
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid == pid) {
            return reap(pid);
        }
        poll(NULL, 0, 5);
    }
    kill_all(pid);
    return is_late_text;
}

const char *capture_program(char *const *argv, uint32_t timeout_ms, char *out, size_t size,
                            size_t *out_len)
{
    int ends[2];
    pid_t pid = 0;
    uint64_t until_ms = now_ms() + timeout_ms;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return strerror(errno);
    }
    int err = start(argv, ends[1], &pid);
    close(ends[1]);
    const char *fault = err != 0 ? strerror(err) : read_all(ends[0], until_ms, out, size, out_len);
    close(ends[0]);
    if (err == 0 && fault != NULL) {
        kill_all(pid);
    }
    return fault != NULL ? fault : await_end(pid, until_ms);
}
