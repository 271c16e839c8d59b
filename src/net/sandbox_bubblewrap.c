/* Namespaces, by bubblewrap: the child sees only its paths and its own processes, and no network
 * unless it is permitted. bwrap itself gets the filter through a descriptor; arguments and
 * environment of the server pass through it unchanged. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/sandbox_internal.h"

enum { PROBE_SECONDS = 5, FIXED_ARGUMENTS = 40, NUMBER_BYTES = 16 };

/* ---- is there one? ----------------------------------------------------------------------------
 */

static _Noreturn void be_probe(const char *path)
{
    const char *argv[] = {path,
                          "--unshare-all",
                          "--die-with-parent",
                          "--ro-bind",
                          "/",
                          "/",
                          "--proc",
                          "/proc",
                          "--",
                          "true",
                          NULL};
    const char *env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) {
        (void)dup2(null, i);
    }
    (void)alarm(PROBE_SECONDS); /* outlives exec */
    execve(path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(127);
}

static bool works(const char *path)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        be_probe(path);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void sandbox_bubblewrap_find(char *out, size_t size)
{
    const char *at = getenv("PATH");
    struct stat about;
    for (at = at != NULL ? at : ""; *at != '\0';) {
        size_t len = strcspn(at, ":");
        int written = snprintf(out, size, "%.*s/bwrap", (int)len, at);
        bool is_there = at[0] == '/' && written > 0 && (size_t)written < size &&
                        stat(out, &about) == 0 && S_ISREG(about.st_mode) && access(out, X_OK) == 0;
        if (is_there && works(out)) {
            return;
        }
        at += at[len] == ':' ? len + 1 : len;
    }
    out[0] = '\0';
}

/* ---- its command line -------------------------------------------------------------------------
 */

typedef struct line {
    const char **argv;
    size_t count;
} line;

static void add(line *self, const char *argument)
{
    self->argv[self->count++] = argument;
}

static void add_pair(line *self, const char *argument, const char *value)
{
    add(self, argument);
    add(self, value);
}

static void bind_path(line *self, const char *how, const char *path)
{
    add_pair(self, how, path);
    add(self, path);
}

static void add_walls(line *self, const sandbox_options *options, sandbox_plan *plan)
{
    add(self, "--unshare-all");
    add(self, "--die-with-parent");
    if (options->has_net) {
        add(self, "--share-net");
    }
    add_pair(self, "--cap-drop", "ALL");
    if (plan->filter_fd >= 0) {
        (void)snprintf(plan->strings, NUMBER_BYTES, "%d", plan->filter_fd);
        add_pair(self, "--seccomp", plan->strings);
    }
}

/* The kernel lets uid 0 write most of /proc/sys without any capability: with core_pattern alone it
 * could start a program outside. */
static void add_processes(line *self, bool is_writable)
{
    add_pair(self, "--proc", "/proc");
    if (!is_writable) {
        add_pair(self, "--remount-ro", "/proc");
    }
}

/* Mounted in another way, a device would not work. */
static bool is_device(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0;
}

static void add_paths(line *self, const sandbox_options *options)
{
    for (size_t i = 0; !options->has_no_defaults && sandbox_read_paths[i] != NULL; i++) {
        const char *path = sandbox_read_paths[i];
        bind_path(self, is_device(path) ? "--dev-bind-try" : "--ro-bind-try", path);
    }
    for (size_t i = 0; !options->has_no_defaults && sandbox_write_paths[i] != NULL; i++) {
        bind_path(self, "--dev-bind-try", sandbox_write_paths[i]);
    }
    if (!options->has_no_defaults) {
        add_processes(self, false);
        add(self, "--symlink");
        add_pair(self, "/proc/self/fd", "/dev/fd");
    }
    for (size_t i = 0; i < options->path_count; i++) {
        const char *path = options->paths[i].path;
        if (strcmp(path, "/proc") == 0) { /* this process's would show nothing of its own */
            add_processes(self, options->paths[i].is_writable);
        } else if (is_device(path)) {
            bind_path(self, "--dev-bind", path);
        } else {
            bind_path(self, options->paths[i].is_writable ? "--bind" : "--ro-bind", path);
        }
    }
}

bay_err sandbox_bubblewrap_prepare(const sandbox_options *options, const char *path,
                                   const char *program, const char *const *argv, const char *cwd,
                                   sandbox_plan *plan)
{
    size_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    size_t defaults = 0;
    while (sandbox_read_paths[defaults] != NULL) {
        defaults++;
    }
    count += FIXED_ARGUMENTS + 4 * (defaults + 2 + options->path_count);
    plan->argv = mem_array(count, sizeof(*plan->argv));
    size_t program_bytes = strlen(program) + 1;
    size_t cwd_bytes = strlen(cwd) + 1;
    plan->strings = mem_alloc(NUMBER_BYTES + program_bytes + cwd_bytes);
    if (plan->argv == NULL || plan->strings == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *program_copy = plan->strings + NUMBER_BYTES;
    char *cwd_copy = program_copy + program_bytes;
    memcpy(program_copy, program, program_bytes);
    memcpy(cwd_copy, cwd, cwd_bytes);
    line self = {.argv = plan->argv};
    add(&self, path);
    add_walls(&self, options, plan);
    add_paths(&self, options);
    bind_path(&self, "--ro-bind-try", program_copy);
    add_pair(&self, "--remount-ro", "/"); /* a folder in memory, which no limit counts */
    add_pair(&self, "--chdir", cwd_copy);
    add_pair(&self, "--", program_copy);
    for (size_t i = 1; argv[i] != NULL; i++) {
        add(&self, argv[i]);
    }
    return BAY_OK;
}
