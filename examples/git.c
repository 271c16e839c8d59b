/* A git repository, read only, by three narrow tools. Git is started without a shell; nothing that
 * a caller says can become an option of it, and no program a repository configures is run.
 *
 *     git [REPOSITORY] [--stdio | --http ADDRESS]   REPOSITORY: the current folder unless given */
#include <errno.h>
#include <fcntl.h>
#include <patchbay/server.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUTPUT = 256 * 1024, MAX_ARGUMENTS = 24, PATIENCE_MS = 20000 };
extern char **environ;

/* Reads all that fits; false when git took too long or the caller gave up. */
static bool read_output(bay_call *call, int from, char *text, size_t *out_len)
{
    size_t len = 0;
    ssize_t got = 1;
    for (int waited = 0; waited < PATIENCE_MS && got > 0 && len < MAX_OUTPUT;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        bool is_idle = poll(&wait, 1, 100) == 0;
        waited += is_idle ? 100 : 0;
        got = bay_call_is_cancelled(call) ? -1
              : is_idle                   ? 1
                                          : read(from, text + len, MAX_OUTPUT - len);
        len += got > 0 && !is_idle ? (size_t)got : 0;
    }
    *out_len = len;
    return got == 0 || len == MAX_OUTPUT;
}

/* Starts git with its output in a pipe; 0 or an errno. */
static int start_git(const char *const *argv, pid_t *out_child, int *out_from)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    int failed = posix_spawnp(out_child, "git", &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out_from = ends[0];
    if (failed != 0) {
        close(ends[0]);
    }
    return failed;
}

static void run_git(bay_call *call, const char *repository, const char *const *arguments)
{
    const char *argv[MAX_ARGUMENTS] = {"git", "-C", repository, "--no-optional-locks",
                                       "--no-pager"};
    size_t len = 5;
    for (size_t i = 0; arguments[i] != NULL && len < MAX_ARGUMENTS - 1; i++) {
        argv[len++] = arguments[i];
    }
    static _Thread_local char text[MAX_OUTPUT];
    pid_t child = -1;
    int from = -1, status = 0;
    int failed = start_git(argv, &child, &from);
    if (failed != 0) {
        bay_call_failf(call, "git cannot be started: %s", strerror(failed));
        return;
    }
    bool is_whole = read_output(call, from, text, &len);
    close(from);
    kill(child, is_whole && len < MAX_OUTPUT ? 0 : SIGKILL);
    waitpid(child, &status, 0);
    if (!is_whole) {
        bay_call_fail(call, "git took too long and was stopped");
    } else if (len == MAX_OUTPUT) {
        bay_call_replyf(call, "%.*s\n… cut after %d bytes", (int)len, text, MAX_OUTPUT);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bay_call_failf(call, "%.*s", (int)len, text);
    } else {
        bay_call_reply_str(call, len > 0 ? (bay_str){text, len} : (bay_str){"(nothing)", 9});
    }
}

#define SAFELY "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"

static void git_status(bay_call *call, void *user)
{
    run_git(call, user, (const char *[]){SAFELY, "status", "--short", "--branch", NULL});
}

static void git_log(bay_call *call, void *user)
{
    char count[] = "--max-count=0000";
    int64_t most = bay_call_int_or(call, "count", 20); /* at most 1,000, says the table */
    for (char *digit = count + sizeof(count) - 2; most > 0; most /= 10) {
        *digit-- = (char)('0' + most % 10);
    }
    run_git(call, user,
            (const char *[]){SAFELY, "log", count, "--date=iso-strict", "--format=%h %ad %an: %s",
                             NULL});
}

static void git_diff(bay_call *call, void *user)
{
    char revision[256];
    if (!bay_str_copy(bay_call_str(call, "revision"), revision, sizeof(revision))) {
        bay_call_fail(call, "No revision has a NUL byte.");
        return;
    }
    run_git(
        call, user,
        (const char *[]){SAFELY, "diff", "--no-ext-diff", "--no-textconv", revision, "--", NULL});
}

static const bay_field log_input[] = {
    {"count", BAY_TYPE_INTEGER, "How many", .min = "1", .max = "1000", .default_value = "20"},
    {0},
};
static const bay_field diff_input[] = {
    {"revision", BAY_TYPE_STRING, "Since when", .pattern = "^[^-]", .max = "60",
     .default_value = "HEAD"},
    {0},
};

int main(int argc, char **argv)
{
    bool has_repository = argc > 1 && argv[1][0] != '-';
    char here[] = ".", *repository = has_repository ? argv[1] : here;
    bay_server *server = bay_server_new("git", "1.0.0");
    bay_tool *tools[] = {
        bay_server_tool(server, "git_status", "Branch and changed files.", NULL, git_status,
                        repository),
        bay_server_tool(server, "git_log", "The latest commits, a line each.", log_input, git_log,
                        repository),
        bay_server_tool(server, "git_diff", "What changed since a revision.", diff_input, git_diff,
                        repository),
    };
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        bay_tool_annotations(tools[i], "{\"readOnlyHint\":true,\"openWorldHint\":false}");
        bay_tool_blocking(tools[i]);
    }
    return bay_server_main(server, argc - has_repository, argv + has_repository);
}
