/* A server that tries what a sandbox forbids, one attempt a tool, and says how it went: "done…" or
 * "refused: REASON". It speaks lines; arguments are the texts "a" and "b". Built without
 * sanitizers, which would need more than the sandbox gives. */
#include "escape.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 16, MOST_CHILDREN = 400, ANSWER = 1 << 15 };

long close_after(int fd)
{
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return fd >= 0 ? 0 : -1;
}

long in_child(try_function function, attempt *self)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) { /* a program that it becomes says 0, too */
        _exit(function(self) == 0 ? 0 : errno);
    }
    (void)waitpid(pid, &status, 0);
    if (pid > 0 && WIFSIGNALED(status)) {
        snprintf(self->said, sizeof(self->said), "killed by signal %d", WTERMSIG(status));
    }
    errno = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    return pid > 0 && status == 0 ? 0 : -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static long try_read(attempt *self)
{
    int fd = open(self->a, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, self->said, 200) : -1;
    int error = errno;
    for (ssize_t i = 0; i < got; i++) { /* an environment holds NULs */
        char c = self->said[i];
        self->said[i] = c < ' ' || c == '"' || c == '\\' || c > '~' ? ' ' : c;
    }
    self->said[got > 0 ? got : 0] = '\0';
    (void)close_after(fd);
    errno = error;
    return got < 0 ? -1 : 0;
}

static long try_write(attempt *self)
{
    int fd = open(self->a, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, "x", 1) != 1) {
        (void)close_after(fd);
        return -1;
    }
    return close_after(fd);
}

static long try_truncate(attempt *self)
{
    return truncate(self->a, 0);
}

static long try_open_truncate(attempt *self)
{
    return close_after(open(self->a, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static long try_unlink(attempt *self)
{
    return unlink(self->a);
}

static long try_mkdir(attempt *self)
{
    return mkdir(self->a, 0755);
}

static long try_rename(attempt *self)
{
    return rename(self->a, self->b);
}

static long try_link(attempt *self)
{
    return link(self->a, self->b);
}

static long try_symlink(attempt *self)
{
    return symlink(self->a, self->b);
}

static long try_chmod(attempt *self)
{
    return chmod(self->a, 0777);
}

static long try_fchmod(attempt *self)
{
    int fd = open(self->a, O_RDONLY | O_CLOEXEC);
    long result = fd >= 0 ? fchmod(fd, 0777) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

static long try_touch(attempt *self)
{
    return utimensat(AT_FDCWD, self->a, NULL, 0);
}

static long try_open(attempt *self)
{
    return close_after(open(self->a, O_RDONLY | O_CLOEXEC));
}

static long try_list(attempt *self)
{
    DIR *folder = opendir(self->a);
    if (folder == NULL) {
        return -1;
    }
    return closedir(folder);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static long send_to_port(attempt *self, int kind)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)self->number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        send(fd, "x", 1, MSG_NOSIGNAL) != 1) {
        (void)close_after(fd);
        return -1;
    }
    return close_after(fd);
}

static long try_tcp(attempt *self)
{
    return send_to_port(self, SOCK_STREAM);
}

static long try_udp(attempt *self)
{
    return send_to_port(self, SOCK_DGRAM);
}

static long connect_unix(const char *name, bool is_abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path + is_abstract, sizeof(at.sun_path) - is_abstract, "%s", name);
    socklen_t len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name));
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, len) != 0) {
        (void)close_after(fd);
        return -1;
    }
    return close_after(fd);
}

static long try_unix(attempt *self)
{
    return connect_unix(self->a, false);
}

static long try_abstract(attempt *self)
{
    return connect_unix(self->a, true);
}

static long try_packet(attempt *self)
{
    (void)self;
    return close_after(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static long try_netlink(attempt *self)
{
    return close_after(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, (int)self->number));
}

static long try_socketpair(attempt *self)
{
    int ends[2] = {-1, -1};
    (void)self;
    long result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    if (result == 0) {
        close(ends[0]);
        close(ends[1]);
    }
    return result;
}

static long try_io_uring(attempt *self)
{
    static char parameters[256];
    (void)self;
    return close_after((int)syscall(425, 4, parameters));
}

/* ---- other processes ------------------------------------------------------------------------- */

static long try_kill(attempt *self)
{
    return kill((pid_t)self->number, SIGUSR1);
}

static long try_pidfd(attempt *self)
{
    int fd = (int)syscall(434, (pid_t)self->number, 0); /* pidfd_open */
    long result = fd >= 0 ? syscall(424, fd, SIGUSR1, NULL, 0) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

static long try_queue(attempt *self)
{
    return sigqueue((pid_t)self->number, SIGUSR1, (union sigval){.sival_int = 1});
}

static long try_thread_kill(attempt *self)
{
    return syscall(SYS_tkill, (pid_t)self->number, SIGUSR1);
}

static long try_ptrace(attempt *self)
{
    pid_t pid = (pid_t)self->number;
    long result = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
    return result;
}

static long try_vm_read(attempt *self)
{
    /* any address that is mapped there: we are told it */
    char byte = 0;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)strtoull(self->b, NULL, 16), 1};
    return process_vm_readv((pid_t)self->number, &here, 1, &there, 1, 0) == 1 ? 0 : -1;
}

static long try_prlimit(attempt *self)
{
    struct rlimit same;
    if (getrlimit(RLIMIT_CORE, &same) != 0) {
        return -1;
    }
    return syscall(SYS_prlimit64, (pid_t)self->number, RLIMIT_CORE, NULL, &same);
}

static long try_priority(attempt *self)
{
    return setpriority(PRIO_PROCESS, (id_t)self->number, 0);
}

static long try_affinity(attempt *self)
{
    unsigned long all[16];
    memset(all, 0xff, sizeof(all));
    return syscall(SYS_sched_setaffinity, (pid_t)self->number, sizeof(all), all);
}

static long try_cores(attempt *self)
{
    cpu_set_t cores;
    long result = sched_getaffinity(0, sizeof(cores), &cores);
    snprintf(self->said, sizeof(self->said), "%d", CPU_COUNT(&cores));
    return result;
}

static long try_session(attempt *self)
{
    (void)self;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setsid() < 0 || setpgid(0, 0) == 0 ? 1 : 0);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    errno = EPERM;
    return status == 0 ? 0 : -1;
}

static long try_group(attempt *self)
{
    (void)self;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setpgid(0, 0) == 0 ? 0 : 1);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    errno = EPERM;
    return status == 0 ? 0 : -1;
}

static long try_bond(attempt *self)
{
    (void)self;
    return prctl(PR_SET_PDEATHSIG, 0);
}

static long try_exec(attempt *self)
{
    int ends[2];
    int error = 0;
    int status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {self->a, self->b[0] != '\0' ? self->b : NULL, NULL};
        (void)dup2(2, 1); /* our answers go there */
        execv(self->a, argv);
        error = errno;
        _exit(write(ends[1], &error, sizeof(error)) == sizeof(error) ? 1 : 2);
    }
    close(ends[1]);
    bool failed = pid < 0 || read(ends[0], &error, sizeof(error)) == sizeof(error);
    close(ends[0]);
    (void)waitpid(pid, &status, 0);
    snprintf(self->said, sizeof(self->said), "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    errno = pid < 0 ? EAGAIN : error;
    return failed ? -1 : 0;
}

/* A child of its own may be ended. */
static long try_kill_own(attempt *self)
{
    (void)self;
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    long result = kill(pid, SIGKILL);
    int error = errno;
    if (result != 0) {
        (void)kill(0, SIGCONT);
        return -1;
    }
    (void)waitpid(pid, NULL, 0);
    errno = error;
    return result;
}

/* ---- amounts --------------------------------------------------------------------------------- */

static long try_fork(attempt *self)
{
    static pid_t children[MOST_CHILDREN];
    int ends[2];
    long made = 0;
    int error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    while (made < self->number && made < MOST_CHILDREN) {
        pid_t pid = fork();
        if (pid == 0) {
            char byte;
            close(ends[1]);
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until all are counted */
        }
        if (pid < 0) {
            error = errno;
            break;
        }
        children[made++] = pid;
    }
    close(ends[0]);
    close(ends[1]);
    for (long i = 0; i < made; i++) {
        (void)waitpid(children[i], NULL, 0);
    }
    snprintf(self->said, sizeof(self->said), "%ld", made);
    errno = error;
    return error == 0 ? 0 : -1;
}

static size_t megabytes(const attempt *self)
{
    return (size_t)self->number << 20;
}

static long touch_and_release(char *at, size_t bytes)
{
    if (at == MAP_FAILED) {
        return -1;
    }
    for (size_t i = 0; i < bytes; i += 4096) {
        at[i] = 1;
    }
    return munmap(at, bytes);
}

static long try_heap(attempt *self)
{
    char *at = malloc(megabytes(self));
    if (at == NULL) {
        return -1;
    }
    for (size_t i = 0; i < megabytes(self); i += 4096) {
        ((volatile char *)at)[i] = 1;
    }
    free(at);
    return 0;
}

static long try_map(attempt *self, int flags, int fd)
{
    return touch_and_release(mmap(NULL, megabytes(self), PROT_READ | PROT_WRITE, flags, fd, 0),
                             megabytes(self));
}

static long try_shared(attempt *self)
{
    return try_map(self, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static long try_growing(attempt *self)
{
    return try_map(self, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1);
}

static long try_zero(attempt *self)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    long result = fd >= 0 ? try_map(self, MAP_SHARED, fd) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

static long try_memfd(attempt *self)
{
    int fd = memfd_create("memory", MFD_CLOEXEC);
    long result =
        fd >= 0 && ftruncate(fd, (off_t)megabytes(self)) == 0 ? try_map(self, MAP_SHARED, fd) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

static long try_segment(attempt *self)
{
    int id = shmget(IPC_PRIVATE, megabytes(self), IPC_CREAT | 0600);
    return id < 0 ? -1 : shmctl(id, IPC_RMID, NULL);
}

/* Turned first off and then on, a page is counted when it is written to. */
static long try_reserve(attempt *self)
{
    size_t bytes = megabytes(self);
    char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
        return -1;
    }
    return touch_and_release(at, bytes);
}

static long try_burn(attempt *self)
{
    struct timespec used = {0};
    signal(SIGXCPU, strcmp(self->b, "deaf") == 0 ? SIG_IGN : SIG_DFL);
    while (used.tv_sec < self->number) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    }
    return 0;
}

static long try_files(attempt *self)
{
    long made = 0;
    static int fds[MOST_CHILDREN];
    while (made < self->number && made < MOST_CHILDREN) {
        fds[made] = dup(0);
        if (fds[made] < 0) {
            break;
        }
        made++;
    }
    int error = errno;
    bool is_all = made == self->number;
    for (long i = 0; i < made; i++) {
        close(fds[i]);
    }
    errno = error;
    snprintf(self->said, sizeof(self->said), "%ld", made);
    return is_all ? 0 : -1;
}

static long try_core(attempt *self)
{
    struct rlimit core = {0, 0};
    long result = getrlimit(RLIMIT_CORE, &core);
    snprintf(self->said, sizeof(self->said), "%ld", (long)core.rlim_max);
    return result;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static long try_unshare(attempt *self)
{
    (void)self;
    pid_t pid = fork(); /* we stay as we are */
    if (pid == 0) {
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    errno = WEXITSTATUS(status);
    return errno == 0 ? 0 : -1;
}

static long try_clone(attempt *self)
{
    (void)self;
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        _exit(0);
    }
    int error = errno;
    if (pid > 0) {
        (void)waitpid((pid_t)pid, NULL, 0);
    }
    errno = error;
    return pid > 0 ? 0 : -1;
}

static long try_clone3(attempt *self)
{
    uint64_t arguments[8] = {0};
    (void)self;
    arguments[0] = CLONE_NEWUSER;
    arguments[4] = SIGCHLD;
    long pid = syscall(435, arguments, sizeof(arguments));
    if (pid == 0) {
        _exit(0);
    }
    int error = errno;
    if (pid > 0) {
        (void)waitpid((pid_t)pid, NULL, 0);
    }
    errno = error;
    return pid > 0 ? 0 : -1;
}

static long try_keys(attempt *self)
{
    (void)self;
    return syscall(SYS_keyctl, 0, -3, 1) >= 0 ? 0 : -1; /* the session's keyring */
}

static long try_handle(attempt *self)
{
    struct {
        struct file_handle head;
        char bytes[128];
    } handle = {.head.handle_bytes = 128};
    int mount_id = 0;
    (void)self;
    return name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &mount_id, 0);
}

static long try_chroot(attempt *self)
{
    (void)self;
    return chroot("/");
}

static long try_push(attempt *self)
{
    (void)self;
    long result = ioctl(0, TIOCSTI, "x"); /* no terminal: not EPERM, unless it was refused */
    if (result != 0 && errno != EPERM) {
        return 0;
    }
    return result;
}

static long try_foreign(attempt *self)
{
    (void)self;
#if defined(__x86_64__)
    syscall(0x40000000L + SYS_getpid); /* x32 */
#endif
    return 0;
}

static long try_raise_limit(attempt *self)
{
    struct rlimit wide = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit((__rlimit_resource_t)self->number, &wide);
}

/* ---- what we were given ---------------------------------------------------------------------- */

static long try_environment(attempt *self)
{
    const char *value = getenv(self->a);
    errno = ENOENT;
    snprintf(self->said, sizeof(self->said), "%s", value != NULL ? value : "");
    return value != NULL ? 0 : -1;
}

static long try_descriptors(attempt *self)
{
    long count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    snprintf(self->said, sizeof(self->said), "%ld", count);
    return 0;
}

static long try_identity(attempt *self)
{
    snprintf(self->said, sizeof(self->said), "uid %d privileges %d", (int)getuid(),
             prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return 0;
}

static long try_echo(attempt *self)
{
    (void)self;
    return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const escape_tool tools[] = {
    {"echo", try_echo},
    {"read", try_read},
    {"open", try_open},
    {"write", try_write},
    {"truncate", try_truncate},
    {"open_truncate", try_open_truncate},
    {"unlink", try_unlink},
    {"mkdir", try_mkdir},
    {"rename", try_rename},
    {"link", try_link},
    {"symlink", try_symlink},
    {"chmod", try_chmod},
    {"fchmod", try_fchmod},
    {"touch", try_touch},
    {"list", try_list},
    {"tcp", try_tcp},
    {"udp", try_udp},
    {"unix", try_unix},
    {"abstract", try_abstract},
    {"packet", try_packet},
    {"netlink", try_netlink},
    {"socketpair", try_socketpair},
    {"io_uring", try_io_uring},
    {"kill", try_kill},
    {"kill_own", try_kill_own},
    {"pidfd", try_pidfd},
    {"queue", try_queue},
    {"thread_kill", try_thread_kill},
    {"ptrace", try_ptrace},
    {"vm_read", try_vm_read},
    {"prlimit", try_prlimit},
    {"priority", try_priority},
    {"affinity", try_affinity},
    {"cores", try_cores},
    {"session", try_session},
    {"group", try_group},
    {"bond", try_bond},
    {"exec", try_exec},
    {"fork", try_fork},
    {"heap", try_heap},
    {"shared", try_shared},
    {"growing", try_growing},
    {"zero", try_zero},
    {"memfd", try_memfd},
    {"segment", try_segment},
    {"reserve", try_reserve},
    {"burn", try_burn},
    {"files", try_files},
    {"core", try_core},
    {"unshare", try_unshare},
    {"clone", try_clone},
    {"clone3", try_clone3},
    {"keys", try_keys},
    {"handle", try_handle},
    {"chroot", try_chroot},
    {"push", try_push},
    {"foreign", try_foreign},
    {"raise_limit", try_raise_limit},
    {"environment", try_environment},
    {"descriptors", try_descriptors},
    {"identity", try_identity},
    {NULL, NULL},
};

static const escape_tool *const all_tools[] = {tools, escape_file_tools, escape_kernel_tools};

static try_function find_tool(const char *name)
{
    for (size_t i = 0; i < sizeof(all_tools) / sizeof(all_tools[0]); i++) {
        for (const escape_tool *at = all_tools[i]; at->name != NULL; at++) {
            if (strcmp(at->name, name) == 0) {
                return at->function;
            }
        }
    }
    return NULL;
}

/* The gateway's and the tests' requests are compact, and no text holds a quote. */
static void member(char *out, size_t size, const char *text, const char *key, const char *stops)
{
    const char *at = text != NULL ? strstr(text, key) : NULL;
    out[0] = '\0';
    if (at != NULL) {
        snprintf(out, size, "%.*s", (int)strcspn(at + strlen(key), stops), at + strlen(key));
    }
}

static void answer(const char *id, const char *result)
{
    printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, result);
    fflush(stdout);
}

static void call(const char *id, const char *params)
{
    static attempt self;
    static char out[ANSWER];
    char name[WORD];
    memset(&self, 0, sizeof(self));
    member(name, sizeof(name), params, "\"name\":\"", "\"");
    member(self.a, sizeof(self.a), params, "\"a\":\"", "\"");
    member(self.b, sizeof(self.b), params, "\"b\":\"", "\"");
    self.number = strtol(self.a, NULL, 10);
    try_function function = find_tool(name);
    if (function != NULL) {
        long result = function(&self);
        const char *reason = strerror(errno);
        snprintf(out, sizeof(out),
                 "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s: %s\"}]}",
                 result == 0 ? "done" : "refused",
                 result == 0 || self.said[0] != '\0' ? self.said : reason);
        answer(id, out);
        return;
    }
    answer(id, "\"error\":{\"code\":-32602,\"message\":\"no such tool\"}");
}

static void list(const char *id)
{
    static char out[ANSWER];
    size_t len = (size_t)snprintf(out, sizeof(out), "\"result\":{\"tools\":[");
    for (size_t i = 0; i < sizeof(all_tools) / sizeof(all_tools[0]); i++) {
        for (const escape_tool *at = all_tools[i]; at->name != NULL; at++) {
            len += (size_t)snprintf(out + len, sizeof(out) - len,
                                    "%s{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}",
                                    at == tools ? "" : ",", at->name);
        }
    }
    snprintf(out + len, sizeof(out) - len, "]}");
    answer(id, out);
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char id[WORD];
        char method[WORD];
        member(id, sizeof(id), line, "\"id\":", ",}");
        member(method, sizeof(method), line, "\"method\":\"", "\"");
        if (id[0] == '\0') {
            continue;
        }
        if (strcmp(method, "tools/call") == 0) {
            call(id, strstr(line, "\"params\":"));
        } else if (strcmp(method, "initialize") == 0) {
            answer(id, "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":"
                       "{\"tools\":{}},\"serverInfo\":{\"name\":\"escape\",\"version\":\"1\"}}");
        } else if (strcmp(method, "tools/list") == 0) {
            list(id);
        } else if (strcmp(method, "ping") == 0) {
            answer(id, "\"result\":{}");
        } else {
            answer(id, "\"error\":{\"code\":-32601,\"message\":\"no\"}");
        }
    }
    return 0;
}
