/* Between fork and exec only async-signal-safe functions are called: everything that the child
 * needs (the path, the arrays) is prepared before. All signals are blocked around the fork, so no
 * handler of this process runs in the child. The result of exec comes back through a close-on-exec
 * pipe: end of file means that the program runs. */
#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/descendants.h"
#include "net/loop_internal.h"
#include "net/sandbox_internal.h"

#define PATH_BYTES 4096
enum { MOST_DESCRIPTORS = 65536 }; /* closed one by one, where the kernel cannot close a range */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

typedef enum child_stage { STAGE_SETUP, STAGE_CHDIR, STAGE_SANDBOX, STAGE_EXEC } child_stage;

typedef struct child_report {
    int stage;
    int step; /* of the sandbox */
    int error;
} child_report;

/* What the child process needs. */
typedef struct child_start_plan {
    const child_plan *plan;
    const char *path;
    const char *const *argv;
    sandbox_plan *sandbox;
    pid_t parent;
    int report_fd;
    int reader_fd; /* the parent's end */
} child_start_plan;

/* --- finding the program ---------------------------------------------------------------------- */

/* `name` ends in =. NULL: the child does not have it. */
static const char *find_variable(const char *const *env, const char *name)
{
    const char *const *entry = env != NULL ? env : (const char *const *)environ;
    for (; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, name, strlen(name)) == 0) {
            return *entry + strlen(name);
        }
    }
    return NULL;
}

static const char *search_path(const char *const *env)
{
    const char *path = find_variable(env, "PATH=");
    return path != NULL ? path : DEFAULT_PATH;
}

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* Relative entries of PATH are ignored: which program runs must not depend on the current folder.
 */
static bay_err find_program(const child_plan *plan, char out[PATH_BYTES], bay_diag *diag)
{
    const char *name = plan->argv[0];
    if (strlen(name) >= PATH_BYTES) {
        return diag_set(diag, BAY_ERR_INVALID, "the command's name is too long");
    }
    if (strchr(name, '/') != NULL) {
        snprintf(out, PATH_BYTES, "%s", name);
        return BAY_OK;
    }
    for (const char *at = search_path(plan->env); name[0] != '\0' && *at != '\0';) {
        size_t len = strcspn(at, ":");
        int written = snprintf(out, PATH_BYTES, "%.*s/%s", (int)len, at, name);
        if (at[0] == '/' && written > 0 && written < PATH_BYTES && is_program(out)) {
            return BAY_OK;
        }
        at += at[len] == ':' ? len + 1 : len;
    }
    return diag_set(diag, BAY_ERR_SPAWN,
                    "cannot start \"%.100s\": no such program (is it installed and on PATH?)",
                    name);
}

/* --- the child -------------------------------------------------------------------------------- */

static _Noreturn void child_give_up(int report_fd, child_stage stage, int step)
{
    child_report report = {.stage = (int)stage, .step = step, .error = errno};
    ssize_t written = write(report_fd, &report, sizeof(report));
    (void)written; /* nobody can be notified any more */
    _exit(127);
}

static void reset_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++) {
        sigaction(number, &action, NULL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors of this library are close-on-exec; an embedding program's may not be. */
static void keep_standard_only(void)
{
    struct rlimit most = {MOST_DESCRIPTORS, MOST_DESCRIPTORS};
    if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0) {
        return;
    }
    (void)getrlimit(RLIMIT_NOFILE, &most);
    for (int fd = 3; (rlim_t)fd < most.rlim_cur && fd < MOST_DESCRIPTORS; fd++) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

/* The kernel drops this setting when the user changes, and the sandbox forbids making it: so it
 * comes between the two halves. */
static void tie_to_parent(const child_start_plan *start)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        child_give_up(start->report_fd, STAGE_SETUP, 0);
    }
    /* Did the parent die before the line above? In a PID namespace its death cannot be seen: but
     * then the report has no reader any more. */
    struct pollfd reader = {.fd = start->report_fd};
    bool is_alive = start->sandbox->birth_flags == 0
                        ? getppid() == start->parent
                        : poll(&reader, 1, 0) >= 0 && (reader.revents & POLLERR) == 0;
    if (!is_alive) {
        _exit(127);
    }
}

static _Noreturn void be_child(const child_start_plan *start)
{
    const child_plan *plan = start->plan;
    close(start->reader_fd);
    if (setpgid(0, 0) != 0) {
        child_give_up(start->report_fd, STAGE_SETUP, 0);
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(plan->fds[i], i) < 0) {
            child_give_up(start->report_fd, STAGE_SETUP, 0);
        }
    }
    keep_standard_only();
    reset_signals();
    descendants_wear(plan->mark);
    sandbox_step failed = sandbox_become(start->sandbox);
    if (failed != SANDBOX_STEP_NONE) {
        child_give_up(start->report_fd, STAGE_SANDBOX, (int)failed);
    }
    if (plan->cwd != NULL && chdir(plan->cwd) != 0) {
        child_give_up(start->report_fd, STAGE_CHDIR, 0);
    }
    if (!plan->outlives_thread) {
        tie_to_parent(start);
    }
    failed = sandbox_enter(start->sandbox);
    if (failed != SANDBOX_STEP_NONE) {
        child_give_up(start->report_fd, STAGE_SANDBOX, (int)failed);
    }
    char *const *env = plan->env != NULL ? (char *const *)(uintptr_t)plan->env : environ;
    execve(start->path, (char *const *)(uintptr_t)start->argv, env);
    child_give_up(start->report_fd, STAGE_EXEC, 0);
}

/* --- the parent ------------------------------------------------------------------------------- */

static bay_err explain(const child_plan *plan, child_report report, bay_diag *diag)
{
    const char *reason = strerror(report.error);
    switch ((child_stage)report.stage) {
    case STAGE_CHDIR:
        return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.60s\": its directory %.100s: %s",
                        plan->argv[0], plan->cwd, reason);
    case STAGE_SANDBOX:
        return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.100s\" in its sandbox: %s: %s",
                        plan->argv[0], sandbox_step_text((sandbox_step)report.step), reason);
    case STAGE_EXEC:
        return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.100s\": %s%s", plan->argv[0], reason,
                        report.error == ENOENT ? " (is it installed and on PATH?)" : "");
    default:
        return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.100s\": %s", plan->argv[0], reason);
    }
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static pid_t fork_quietly(const child_start_plan *start)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = start->sandbox->birth_flags == 0
                    ? fork()
                    : (pid_t)syscall(SYS_clone, start->sandbox->birth_flags | SIGCHLD, NULL, NULL,
                                     NULL, NULL);
    if (pid == 0) {
        be_child(start);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static bay_err run_child(child_start_plan *start, pid_t *out_pid, bay_diag *diag)
{
    const child_plan *plan = start->plan;
    int report_pipe[2];
    bay_err err = child_pipe(report_pipe);
    if (err != BAY_OK) {
        return diag_set(diag, err, "cannot start \"%.100s\": %s", plan->argv[0], strerror(errno));
    }
    start->parent = getpid();
    start->report_fd = report_pipe[1];
    start->reader_fd = report_pipe[0];
    pid_t pid = fork_quietly(start);
    child_report report = {.stage = STAGE_SETUP, .error = errno};
    close(report_pipe[1]);
    if (pid < 0) {
        close(report_pipe[0]);
        return explain(plan, report, diag);
    }
    ssize_t got;
    do {
        got = read(report_pipe[0], &report, sizeof(report));
    } while (got < 0 && errno == EINTR);
    close(report_pipe[0]);
    if (got != 0) {
        wait_for(pid);
        return explain(plan, report, diag);
    }
    *out_pid = pid;
    return BAY_OK;
}

bay_err child_start(const child_plan *plan, pid_t *out_pid, bay_diag *diag)
{
    char path[PATH_BYTES];
    sandbox_plan sandbox = SANDBOX_NO_PLAN;
    bay_err err = find_program(plan, path, diag);
    if (err == BAY_OK && plan->sandbox != NULL) {
        err = sandbox_libraries_check(plan->sandbox, path,
                                      find_variable(plan->env, "LD_LIBRARY_PATH="), diag);
    }
    if (err == BAY_OK && plan->sandbox != NULL) {
        err = sandbox_prepare(plan->sandbox, path, plan->argv, plan->cwd, &sandbox, diag);
    }
    if (err == BAY_OK) {
        bool is_wrapped = sandbox.argv != NULL;
        child_start_plan start = {.plan = plan,
                                  .path = is_wrapped ? sandbox.argv[0] : path,
                                  .argv = is_wrapped ? sandbox.argv : plan->argv,
                                  .sandbox = &sandbox};
        err = run_child(&start, out_pid, diag);
    }
    sandbox_plan_fini(&sandbox);
    return err;
}

static int above_standard(int fd)
{
    if (fd > STDERR_FILENO) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return moved;
}

bay_err child_pipe(int out_ends[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return BAY_ERR_IO;
    }
    ends[0] = above_standard(ends[0]);
    ends[1] = above_standard(ends[1]);
    if (ends[0] < 0 || ends[1] < 0) {
        close(ends[0] >= 0 ? ends[0] : ends[1]);
        return BAY_ERR_IO;
    }
    out_ends[0] = ends[0];
    out_ends[1] = ends[1];
    return BAY_OK;
}

/* --- its death -------------------------------------------------------------------------------- */

static atomic_bool prefers_signals;

void child_watch_prefer_signals(bool prefers)
{
    atomic_store(&prefers_signals, prefers);
}

static bool is_dead(pid_t pid)
{
    siginfo_t about;
    memset(&about, 0, sizeof(about));
    int result = waitid(P_PID, (id_t)pid, &about, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 || about.si_pid == pid; /* an error: another function has reaped it */
}

static void child_look(child_watch *self)
{
    if (self->died == NULL || !is_dead(self->pid)) {
        return;
    }
    void (*died)(void *user) = self->died;
    self->died = NULL;
    if (self->pidfd >= 0) {
        uv_poll_stop(&self->as.poll);
    } else {
        uv_signal_stop(&self->as.signal);
    }
    died(self->user);
}

static void on_pidfd(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    child_look(handle->data);
}

static void on_child_signal(uv_signal_t *handle, int number)
{
    (void)number;
    child_look(handle->data);
}

static void on_first_look(void *argument)
{
    child_look(argument);
}

static int open_pidfd(pid_t pid)
{
    return atomic_load(&prefers_signals) ? -1 : (int)syscall(SYS_pidfd_open, pid, 0U);
}

bay_err child_watch_start(loop *on_loop, child_watch *self, pid_t pid, void (*died)(void *user),
                          void *user)
{
    *self = (child_watch){.loop = on_loop, .died = died, .user = user, .pid = pid};
    self->first_look = (loop_task){.function = on_first_look, .argument = self};
    self->pidfd = open_pidfd(pid);
    if (self->pidfd >= 0 && uv_poll_init(&on_loop->uv, &self->as.poll, self->pidfd) != 0) {
        close(self->pidfd);
        self->pidfd = -1;
    }
    int failure = 0;
    if (self->pidfd >= 0) {
        failure = uv_poll_start(&self->as.poll, UV_READABLE, on_pidfd);
    } else {
        failure = uv_signal_init(&on_loop->uv, &self->as.signal);
        if (failure != 0) {
            return loop_error_of(failure);
        }
        failure = uv_signal_start(&self->as.signal, on_child_signal, SIGCHLD);
        loop_defer(on_loop, &self->first_look); /* it may have died before the handler existed */
    }
    self->as.handle.data = self;
    CHECK(failure == 0); /* the handle is new and the descriptor was accepted above */
    return BAY_OK;
}

static void on_watch_closed(uv_handle_t *handle)
{
    child_watch *self = handle->data;
    if (self->pidfd >= 0) {
        /* as a plain system call, like its opening: a sanitizer that saw only one of the two would
         * report the next user of the number on another loop */
        (void)syscall(SYS_close, self->pidfd);
    }
    self->closed(self->user);
}

void child_watch_stop(child_watch *self, void (*closed)(void *user))
{
    if (uv_is_closing(&self->as.handle)) {
        return;
    }
    self->died = NULL;
    self->closed = closed;
    loop_undefer(self->loop, &self->first_look);
    uv_close(&self->as.handle, on_watch_closed);
}

void child_reap(pid_t pid, int *out_status, int *out_signal)
{
    int status = 0;
    pid_t reaped;
    do {
        reaped = waitpid(pid, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    *out_status = reaped == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    *out_signal = reaped == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
