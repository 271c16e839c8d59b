/* Runs Python that a model wrote, inside a gateway's sandbox (run_python.yaml) and nowhere else.
 * Calls take turns; each begins with an empty folder and no process, and leaves neither.
 *
 *     run_python FOLDER [--stdio | --http ADDRESS]   FOLDER: …/run_python, emptied for each call */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <patchbay/server.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TEXT = 64 << 10, MAX_FILE = 16 << 20, MAX_MEMORY = 256 << 20, WAIT_S = 15, CPU_S = 5 };
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* No network, no new rights, and a filter: a sandbox is around us. */
static bool is_held(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
           prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind;
    return place->level > 0 ? remove(path) : 0;
}

/* What the code started, and that again, is our child once its parent is gone: we adopt it. Where
 * we may not kill it (Linux before 6.12 without bubblewrap) we end, and the gateway ends us all. */
static void kill_children(void)
{
    glob_t files = {0};
    (void)glob("/proc/self/task/*/children", 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "re");
        for (int pid = 0; file != NULL && fscanf(file, "%d", &pid) == 1;) {
            kill(pid, SIGKILL);
        }
        (void)(file != NULL && fclose(file) == 0);
    }
    globfree(&files);
}

static void leave_nothing(const char *folder)
{
    for (int round = 0; round < 2000; round++) {
        kill_children();
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (errno == ECHILD && nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0) {
            return;
        }
        poll(NULL, 0, 1);
    }
    _exit(1);
}

static _Noreturn void become_python(const char *folder, int from, int to)
{
    static const char *argv[] = {"/usr/bin/python3", "-IB", "-", NULL};
    static const char *env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_S, CPU_S}); /* or the sandbox's own */
    setrlimit(RLIMIT_DATA, &(struct rlimit){MAX_MEMORY, MAX_MEMORY});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){MAX_FILE, MAX_FILE});
    if (chdir(folder) == 0 && dup2(from, 0) == 0 && dup2(to, 1) == 1 && dup2(to, 2) == 2) {
        execve(argv[0], (char **)(uintptr_t)argv, (char **)(uintptr_t)env);
    }
    _exit(127);
}

/* Until the code has ended (true), its time is over or it said too much. */
static bool read_output(bay_call *call, pid_t pid, int from, char *text, size_t *len, int *status)
{
    time_t end = time(NULL) + WAIT_S;
    while (*len < MAX_TEXT && time(NULL) < end && !bay_call_is_cancelled(call)) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        if (poll(&wait, 1, 20) > 0) {
            ssize_t got = read(from, text + *len, MAX_TEXT - *len);
            *len += got > 0 ? (size_t)got : 0;
            from = got > 0 ? from : -1; /* it may close its output and go on */
        } else if (waitpid(pid, status, WNOHANG) == pid) {
            return true;
        }
    }
    return false;
}

static void run_python(bay_call *call, void *folder)
{
    static char text[MAX_TEXT];
    bay_str code = bay_call_str(call, "code");
    int in[2], out[2], status = 0;
    size_t len = 0;
    pthread_mutex_lock(&turn);
    leave_nothing(folder);
    if (pipe2(in, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
        write(in[1], code.at, code.len) != (ssize_t)code.len || fcntl(in[0], F_SETFL, 0) != 0) {
        _exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        become_python(folder, in[0], out[1]);
    }
    close(in[0]);
    close(in[1]);
    close(out[1]);
    bool has_ended = pid > 0 && read_output(call, pid, out[0], text, &len, &status);
    close(out[0]);
    leave_nothing(folder);
    const char *why = len == MAX_TEXT ? "it said too much" : "it took too long";
    why = !has_ended ? why : WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it failed";
    if (has_ended && status == 0) {
        bay_call_reply_str(call, (bay_str){text, len});
    } else {
        bay_call_failf(call, "%.*s\n(%s)", (int)len, text, why);
    }
    pthread_mutex_unlock(&turn);
}

static const bay_field input[] = {
    {"code", BAY_TYPE_STRING, "Python", .is_required = true, .max = "15000"}, {0}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? strrchr(argv[1], '/') : NULL;
    if (!is_held() || name == NULL || strcmp(name, "/run_python") != 0) {
        fputs("run_python: no sandbox, or no folder of that name: see run_python.yaml\n", stderr);
        return 1;
    }
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the code cannot write into us by /proc */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    bay_server *server = bay_server_new("run_python", "1.0.0");
    bay_tool_blocking(bay_server_tool(server, "run_python",
                                      "Runs Python 3; returns what it prints.", input, run_python,
                                      argv[1]));
    return bay_server_main(server, argc - 1, argv + 1);
}
