/* Programs as a person or a script runs them: the built patchbay, its output and its exit code. For one test
 * program. */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { TEXT_BYTES = 256 * 1024, ARGUMENTS = 24 };

static char self_path[4096];
static char binary[4096 + 32];

typedef struct run {
    pid_t pid;
    int out_pipe;
    int err_pipe;
    char out[TEXT_BYTES];
    size_t out_len;
    char err[TEXT_BYTES];
    size_t err_len;
    int code; /* 128 + signal when one killed it */
} run;

static run result; /* of the latest */

static void child_exec(const char *const *argv, const int out[2], const int err[2])
{
    int nothing = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(nothing, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* The next command writes to a terminal of so many columns; 0: to pipes. */
static unsigned short terminal_columns;

static void open_terminal(int ends[2])
{
    struct winsize size = {.ws_col = terminal_columns, .ws_row = 24};
    struct termios plain;
    assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(ends[1], &plain), 0);
    plain.c_oflag &= ~(tcflag_t)OPOST; /* line ends come as they were written */
    assert_int_equal(tcsetattr(ends[1], TCSANOW, &plain), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

static void start(run *self, const char *const *argv)
{
    int out[2];
    int err[2];
    *self = (run){0};
    if (terminal_columns > 0) {
        open_terminal(out);
        open_terminal(err);
    } else {
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    }
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0) {
        child_exec(argv, out, err);
    }
    close(out[1]);
    close(err[1]);
    self->out_pipe = out[0];
    self->err_pipe = err[0];
}

static void take(int *from, char *at, size_t *len)
{
    ssize_t got = read(*from, at + *len, TEXT_BYTES - 1 - *len);
    if (got <= 0) {
        close(*from);
        *from = -1;
        return;
    }
    *len += (size_t)got;
    at[*len] = '\0';
}

/* Reads until both ends are closed, or until `until` stands on stderr. */
static void follow(run *self, const char *until)
{
    while (self->out_pipe >= 0 || self->err_pipe >= 0) {
        struct pollfd ends[] = {{.fd = self->out_pipe, .events = POLLIN},
                                {.fd = self->err_pipe, .events = POLLIN}};
        assert_true(poll(ends, 2, 60000) > 0);
        if (ends[0].revents != 0) {
            take(&self->out_pipe, self->out, &self->out_len);
        }
        if (ends[1].revents != 0) {
            take(&self->err_pipe, self->err, &self->err_len);
        }
        if (until != NULL && strstr(self->err, until) != NULL) {
            return;
        }
    }
    assert_null(until);
}

static void finish(run *self)
{
    int status = 0;
    follow(self, NULL);
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    self->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define PATCHBAY(...)                                                                              \
    do {                                                                                           \
        const char *const argv_[] = {binary, __VA_ARGS__, NULL};                                   \
        start(&result, argv_);                                                                     \
        finish(&result);                                                                           \
    } while (0)
#define SCRIPTED(how) "--", self_path, "--serve", how

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (strstr(text, part) == NULL) {                                                          \
            fail_msg("\"%s\" is not in: %s", part, text);                                          \
        }                                                                                          \
    } while (0)

static void assert_ended(int code, const char *out)
{
    if (result.code != code) {
        fail_msg("exit code %d, not %d: %s%s", result.code, code, result.out, result.err);
    }
    assert_string_equal(result.out, out);
}

static void find_programs(void)
{
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    if (len <= 0) {
        exit(1);
    }
    self_path[len] = '\0';
    int folder = (int)(strrchr(self_path, '/') - self_path);
    snprintf(binary, sizeof(binary), "%.*s/patchbay", folder, self_path);
}

#endif
