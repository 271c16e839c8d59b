/* A server that tries to get out (support/escape_server.c). Every attempt is made without a
 * sandbox, where it must succeed, or it would show nothing; and inside, where it must not, and
 * where the server must answer afterwards. Inside is each setting of the configuration: behind
 * Landlock as of every stage, behind bubblewrap, with what may be allowed, with bounds. All of that
 * is done by who runs this; root runs it a second time as an ordinary user. */
#include "sandbox_rig.h"

#include <grp.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "base/str.h"

/* ---- attempts -------------------------------------------------------------------------------- */

enum {
    /* Who shows that it succeeds outside? */
    EVERYBODY = 0,
    ROOT = 1,  /* root, where nothing holds him back */
    LUCK = 2,  /* not every kernel, file system or container lets it happen */
    NEVER = 3, /* nobody: it would harm others, or the kernel refuses it to all */
    SHOWN_BY = 3,
    /* Settings that allow it. */
    NET = 1 << 2,
    UNIX = 1 << 3,       /* a socket with a path */
    ABSTRACT = 1 << 4,   /* one with an abstract name */
    ATTRIBUTES = 1 << 5, /* of files that only Landlock guards */
    UNWRAPPED = 1 << 6,  /* it is an escape from Landlock only: bubblewrap's namespaces hold it */
};

/* In each setting at least so many are made; outside of a sandbox at least so many succeed. */
enum { LEAST_ATTEMPTS = 220, LEAST_SHOWN = 100 };

static const attempt escapes[] = {
    /* what is outside: reading, listing, running */
    {"read", "@/out/secret", "", EVERYBODY},
    {"read", "@/rw/../out/secret", "", EVERYBODY},
    {"read", "@/rw/link", "", EVERYBODY},
    {"read", "/proc/self/root@/out/secret", "", EVERYBODY},
    {"read", "@/rw/./.././/out/../out/secret", "", EVERYBODY},
    {"follow", "@/out/secret", "@/rw/way", EVERYBODY},
    {"follow", "../out/secret", "@/rw/way", EVERYBODY},
    {"follow", "/proc/self/root@/out/secret", "@/rw/way", EVERYBODY},
    {"openat2", "@/out/secret", "", EVERYBODY},
    {"reopen", "@/out/secret", "", EVERYBODY},
    {"chdir_and_read", "@/out", "secret", EVERYBODY},
    {"chdir_and_read", "@/rw", "../out/secret", EVERYBODY},
    {"list", "@/out", "", EVERYBODY},
    {"list", "@", "", EVERYBODY | UNWRAPPED},
    {"list", "/", "", EVERYBODY | UNWRAPPED},
    {"list", "/tmp", "", EVERYBODY | UNWRAPPED},
    {"exec", "@/out/program", "", EVERYBODY},
    {"execveat", "@/out/program", "", LUCK},
    {"run", "/bin/sh", "@/out/program", EVERYBODY},
    {"open_both", "@/out/pipe", "", EVERYBODY},
    {"open_both", "/dev/ptmx", "", LUCK},
    {"open_both", "/dev/zero", "", EVERYBODY},
    {"open_both", "/dev/mem", "", LUCK},
    {"open_both", "/dev/kvm", "", LUCK},
    {"open_both", "/dev/fuse", "", LUCK},
    {"open", "/dev/kmsg", "", LUCK},
    {"open", "/etc/shadow", "", ROOT},
    {"open", "/etc/machine-id", "", LUCK},
    /* writing, making, deleting, moving */
    {"write", "@/out/secret", "", EVERYBODY},
    {"write", "@/out/new", "", EVERYBODY},
    {"write", "@/rw/link", "", EVERYBODY},
    {"write", "@/ro/file", "", EVERYBODY},
    {"write", "@/ro/new", "", EVERYBODY},
    {"write", "/dev/shm/sandbox.&", "", LUCK},
    {"write", "/var/tmp/sandbox.&", "", EVERYBODY},
    {"write", "/tmp/sandbox.&", "", EVERYBODY},
    {"creat", "@/ro/new", "", EVERYBODY},
    {"creat", "@/ro/file", "", EVERYBODY},
    {"fifo", "@/ro/new", "", EVERYBODY},
    {"node", "@/ro/new", "", EVERYBODY},
    {"node", "@/out/new", "", EVERYBODY},
    {"device", "@/rw/new", "", LUCK},
    {"nameless", "@/out", "", LUCK},
    {"nameless", "@/ro", "", LUCK},
    {"truncate", "@/ro/file", "", EVERYBODY},
    {"truncate", "@/out/secret", "", EVERYBODY},
    {"open_truncate", "@/ro/file", "", EVERYBODY},
    {"unlink", "@/ro/file", "", EVERYBODY},
    {"unlink", "@/out/secret", "", EVERYBODY},
    {"mkdir", "@/ro/folder", "", EVERYBODY},
    {"mkdir", "@/out/folder", "", EVERYBODY},
    {"rmdir", "@/ro/empty", "", EVERYBODY},
    {"rename", "@/ro/file", "@/rw/new", EVERYBODY},
    {"rename", "@/out/secret", "@/rw/new", EVERYBODY},
    {"rename", "@/rw/file", "@/ro/new", EVERYBODY},
    {"rename", "@/rw/file", "@/out/new", EVERYBODY},
    {"rename", "@/rw/file", "@/ro/file", EVERYBODY},
    {"exchange", "@/rw/file", "@/ro/file", LUCK},
    {"exchange", "@/rw/file", "@/out/secret", LUCK},
    {"link", "@/out/secret", "@/rw/hard", EVERYBODY},
    {"link", "@/ro/file", "@/rw/hard", EVERYBODY},
    {"link", "@/rw/file", "@/out/new", EVERYBODY},
    {"link", "@/rw/file", "@/ro/new", EVERYBODY},
    {"link_handle", "@/out/secret", "@/rw/hard", EVERYBODY},
    {"symlink", "/etc", "@/ro/way", EVERYBODY},
    {"symlink", "/etc", "@/out/way", EVERYBODY},
    {"open_write", "/proc/sys/kernel/core_pattern", "", LUCK},
    {"open_write", "/proc/sys/kernel/hostname", "", LUCK},
    {"open_write", "/proc/sysrq-trigger", "", LUCK},
    {"open_write", "/proc/self/oom_score_adj", "", EVERYBODY | UNWRAPPED},
    {"open_write", "/sys/fs/cgroup/cgroup.procs", "", LUCK},
    /* modes, owners, times, attributes */
    {"chmod", "@/ro/file", "", EVERYBODY | ATTRIBUTES},
    {"chmod", "@/out/secret", "", EVERYBODY | ATTRIBUTES},
    {"fchmod", "@/ro/file", "", EVERYBODY | ATTRIBUTES},
    {"fchmodat", "@/out/secret", "", EVERYBODY | ATTRIBUTES},
    {"fchmodat2", "@/out/secret", "", LUCK | ATTRIBUTES},
    {"chown", "@/out/secret", "", EVERYBODY | ATTRIBUTES},
    {"lchown", "@/out/secret", "", EVERYBODY | ATTRIBUTES},
    {"give_away", "@/rw/file", "", ROOT},
    {"touch", "@/out/secret", "", EVERYBODY | ATTRIBUTES},
    {"utimes", "@/ro/file", "", EVERYBODY | ATTRIBUTES},
    {"setxattr", "@/out/secret", "", LUCK | ATTRIBUTES},
    {"setxattrat", "@/out/secret", "", LUCK | ATTRIBUTES},
    {"flags", "@/ro/file", "", LUCK | ATTRIBUTES},
    /* programs that give away their user's rights, or the kernel's */
    {"set_id_open", "@/rw/new", "", EVERYBODY},
    {"set_id_open2", "@/rw/new", "", EVERYBODY},
    {"set_id_creat", "@/rw/new", "", EVERYBODY},
    {"set_id_node", "@/rw/new", "", EVERYBODY},
    {"set_id_nameless", "@/rw", "@/rw/new", LUCK},
    {"set_id_chmod", "@/rw/file", "", EVERYBODY},
    {"set_id_fchmod", "@/rw/file", "", EVERYBODY},
    {"set_id_fchmodat", "@/rw/file", "", EVERYBODY},
    {"set_id_fchmodat2", "@/rw/file", "", LUCK},
    {"setcap", "@/rw/file", "", LUCK},
    /* sockets */
    {"tcp", "tcp", "", EVERYBODY | NET},
    {"udp", "udp", "", EVERYBODY | NET},
    {"udp_to", "udp", "", EVERYBODY | NET},
    {"serve", "", "", EVERYBODY | NET},
    {"unix", "unix", "", EVERYBODY | UNIX},
    {"abstract", "abstract", "", EVERYBODY | ABSTRACT},
    {"unix_datagram", "@/rw/datagrams", "", EVERYBODY | UNIX},
    {"datagram_pair", "@/rw/datagrams", "sendto", EVERYBODY | UNIX},
    {"datagram_pair", "@/rw/datagrams", "sendmsg", EVERYBODY | UNIX},
    {"datagram_pair", "@/rw/datagrams", "sendmmsg", EVERYBODY | UNIX},
    {"datagram_pair", "@/rw/datagrams", "connect", EVERYBODY | UNIX},
    {"raw_pair", "@/rw/datagrams", "sendmsg", EVERYBODY | UNIX},
    {"datagram_pair", "@/out/datagrams", "sendto", EVERYBODY | UNIX},
    {"datagram_pair", "@/out/datagrams", "connect", EVERYBODY | UNIX},
    {"datagram_pair", "sandbox.datagrams.&", "sendto", EVERYBODY | ABSTRACT},
    {"datagram_pair", "sandbox.datagrams.&", "sendmsg", EVERYBODY | ABSTRACT},
    {"datagram_pair", "sandbox.datagrams.&", "sendmmsg", EVERYBODY | ABSTRACT},
    {"datagram_pair", "sandbox.datagrams.&", "connect", EVERYBODY | ABSTRACT},
    {"raw_pair", "sandbox.datagrams.&", "connect", EVERYBODY | ABSTRACT},
    {"name_pair", "sandbox.free.&", "", EVERYBODY | NET | UNIX | ABSTRACT},
    {"name_pair", "@/out/new", "", EVERYBODY},
    {"netlink", "0", "", EVERYBODY | NET},
    {"netlink", "4", "", EVERYBODY},
    {"netlink", "9", "", LUCK},
    {"netlink", "15", "", EVERYBODY},
    {"netlink", "16", "", EVERYBODY},
    {"socket", "1", "1", EVERYBODY | UNIX},
    {"socket", "1", "5", EVERYBODY | UNIX},
    {"socket", "2", "3 1", ROOT},
    {"socket", "2", "1 262", LUCK | NET},
    {"socket", "10", "1", LUCK | NET},
    {"socket", "15", "3", LUCK},
    {"socket", "21", "5", LUCK},
    {"socket", "29", "3", LUCK},
    {"socket", "30", "5", LUCK},
    {"socket", "31", "3 1", LUCK},
    {"socket", "38", "5", LUCK},
    {"socket", "40", "1", LUCK},
    {"socket", "43", "1", LUCK},
    {"socket", "44", "3", LUCK},
    {"packet", "", "", ROOT},
    {"io_uring", "", "", LUCK},
    {"call", "io_uring_enter", "", LUCK},
    {"call", "io_uring_register", "", LUCK},
    /* other processes */
    {"kill", "%", "", EVERYBODY},
    {"kill", "&", "", EVERYBODY},
    {"pidfd", "%", "", LUCK},
    {"queue", "%", "", EVERYBODY},
    {"queue_thread", "%", "", EVERYBODY},
    {"thread_kill", "%", "", EVERYBODY},
    {"tgkill", "%", "", EVERYBODY},
    {"attach", "%", "", LUCK},
    {"ptrace", "%", "", LUCK}, /* and stays attached: it comes after the other */
    {"traceme", "", "", LUCK},
    {"vm_read", "%", "!", LUCK},
    {"vm_write", "%", "!", LUCK},
    {"steal_descriptor", "%", "", LUCK},
    {"compare", "%", "", LUCK},
    {"move_pages", "%", "", LUCK},
    {"migrate_pages", "%", "", LUCK},
    {"open", "/proc/%/environ", "", EVERYBODY},
    {"open", "/proc/%/mem", "", LUCK},
    {"open", "/proc/%/maps", "", EVERYBODY},
    {"open_write", "/proc/%/oom_score_adj", "", EVERYBODY},
    {"list", "/proc/%/fd", "", EVERYBODY},
    {"list", "/proc/%/task", "", EVERYBODY},
    {"list", "/proc/%/root", "", EVERYBODY},
    {"list", "/proc/%/cwd", "", EVERYBODY},
    {"readlink", "/proc/%/exe", "", EVERYBODY},
    {"read", "/proc/%/cmdline", "", EVERYBODY},
    {"read", "/proc/%/root@/out/secret", "", EVERYBODY},
    {"open", "/proc/1/environ", "", LUCK | UNWRAPPED},
    {"open", "/proc/&/environ", "", EVERYBODY},
    {"open", "/proc/&/mem", "", LUCK},
    {"prlimit", "%", "", EVERYBODY},
    {"priority", "%", "", EVERYBODY},
    {"user_priority", "", "", NEVER}, /* of everything that this user runs */
    {"call", "user_priority", "", ROOT},
    {"io_priority", "%", "", EVERYBODY},
    {"affinity", "%", "", EVERYBODY},
    {"scheduler", "%", "", EVERYBODY},
    {"sched_param", "%", "", EVERYBODY},
    {"sched_attributes", "%", "", EVERYBODY},
    {"realtime", "", "", LUCK},
    {"sibling", "", "", EVERYBODY},
    {"session", "", "", EVERYBODY | UNWRAPPED},
    {"group", "", "", EVERYBODY | UNWRAPPED},
    {"bond", "", "", EVERYBODY | UNWRAPPED},
    {"message_take", "queue", "", LUCK},
    {"message_put", "queue", "", LUCK},
    {"semaphore", "semaphores", "", LUCK},
    {"semaphore_timed", "semaphores", "", LUCK},
    {"segment", "1", "", LUCK},
    {"call", "shmat", "", LUCK},
    {"call", "semget", "", LUCK},
    {"call", "msgget", "", LUCK},
    {"call", "mq_open", "", LUCK},
    {"call", "mq_unlink", "", LUCK},
    /* rights */
    {"become", "1", "", ROOT},
    {"groups", "0", "", ROOT},
    {"capability", "", "", ROOT},
    {"read", "@/rw/foreign", "", ROOT},
    {"raise_limit", "4", "", LUCK},  /* RLIMIT_CORE */
    {"raise_limit", "15", "", LUCK}, /* RLIMIT_RTTIME, by which it is found */
    {"personality", "", "", EVERYBODY},
    {"memory_map", "", "", LUCK},
    {"interrupt", "", "", LUCK},
    {"x32", "", "", LUCK},
    /* the kernel */
    {"unshare", "", "", LUCK},
    {"unshare_one", "20000", "", LUCK},    /* mounts */
    {"unshare_one", "10020000", "", LUCK}, /* user and mounts */
    {"unshare_one", "50000000", "", LUCK}, /* user and network */
    {"unshare_one", "30000000", "", LUCK}, /* user and processes */
    {"unshare_one", "4000000", "", LUCK},  /* host name */
    {"unshare_one", "8000000", "", LUCK},  /* System V */
    {"unshare_one", "2000000", "", LUCK},  /* cgroups */
    {"unshare_one", "80", "", LUCK},       /* clocks */
    {"clone", "", "", LUCK},
    {"clone3", "", "", LUCK},
    {"enter_namespace", "/proc/self/ns/net", "", LUCK},
    {"enter_namespace", "/proc/1/ns/mnt", "", LUCK},
    {"mount", "@/out", "@/rw/folder", NEVER}, /* a mount that stays would be in everybody's way */
    {"chroot", "", "", ROOT},
    {"keys", "", "", LUCK},
    {"handle", "", "", LUCK},
    {"push", "", "", EVERYBODY},
    {"call", "terminal_input", "", EVERYBODY},
    {"call", "terminal_linux", "", EVERYBODY},
    {"call", "reboot", "", LUCK},
    {"call", "kexec_load", "", LUCK},
    {"call", "kexec_file_load", "", LUCK},
    {"call", "init_module", "", LUCK},
    {"call", "finit_module", "", LUCK},
    {"call", "delete_module", "", LUCK},
    {"call", "swapon", "", LUCK},
    {"call", "swapoff", "", LUCK},
    {"call", "acct", "", LUCK},
    {"call", "quotactl", "", LUCK},
    {"call", "quotactl_fd", "", LUCK},
    {"call", "settimeofday", "", EVERYBODY},
    {"call", "clock_settime", "", EVERYBODY},
    {"call", "clock_adjtime", "", EVERYBODY},
    {"call", "adjtimex", "", EVERYBODY},
    {"call", "sethostname", "", LUCK},
    {"call", "setdomainname", "", LUCK},
    {"call", "syslog", "", LUCK},
    {"call", "umount2", "", LUCK},
    {"call", "pivot_root", "", LUCK},
    {"call", "setns", "", EVERYBODY},
    {"call", "open_tree", "", LUCK},
    {"call", "move_mount", "", LUCK},
    {"call", "fsopen", "", LUCK},
    {"call", "fsconfig", "", LUCK},
    {"call", "fsmount", "", LUCK},
    {"call", "fspick", "", LUCK},
    {"call", "mount_setattr", "", LUCK},
    {"call", "bpf", "", LUCK},
    {"call", "perf_event_open", "", LUCK},
    {"call", "userfaultfd", "", LUCK},
    {"call", "add_key", "", LUCK},
    {"call", "request_key", "", LUCK},
    {"call", "open_by_handle", "", LUCK},
    {"call", "fanotify_init", "", LUCK},
    {"call", "fanotify_mark", "", LUCK},
    {"call", "pidfd_getfd", "", LUCK},
    {"call", "process_madvise", "", LUCK},
    {"call", "process_mrelease", "", LUCK},
#if defined(__x86_64__)
    {"call", "iopl", "", LUCK},
    {"call", "ioperm", "", LUCK},
    {"call", "modify_ldt", "", LUCK},
#endif
};

enum { ATTEMPTS = sizeof(escapes) / sizeof(escapes[0]) };

/* ---- the world outside, what these need of it ---------------------------------------------------
 */

static struct {
    int datagrams[3]; /* sockets with a name */
    int queue;        /* a message in it; -1: none to be had */
    int semaphores;
} more;

static int receive_datagrams(const char *name, bool is_abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path + is_abstract, sizeof(at.sun_path) - is_abstract, "%s", name);
    size_t len = offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name);
    int fd = listen_on(AF_UNIX, SOCK_DGRAM, (struct sockaddr *)&at, (socklen_t)len);
    assert_true(is_abstract || chmod(name, 0777) == 0);
    return fd;
}

/* A queue of datagrams is short. */
static void empty_datagrams(void)
{
    char bytes[16];
    for (size_t i = 0; i < 3; i++) {
        while (recv(more.datagrams[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        }
    }
}

static void fill_queue(void)
{
    struct {
        long type;
        char text[8];
    } message = {1, "quiet"};
    while (msgrcv(more.queue, &message, sizeof(message.text), 0, IPC_NOWAIT) >= 0) {
    }
    (void)msgsnd(more.queue, &message, 1, IPC_NOWAIT);
}

static void put_more(void)
{
    char path[PATH];
    static const char *const loose[] = {"/dev/shm/sandbox.&", "/var/tmp/sandbox.&",
                                        "/tmp/sandbox.&"};
    path_in(path, "ro/empty");
    (void)mkdir(path, 0777);
    for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
        expand(path, loose[i]);
        (void)unlink(path);
    }
    if (geteuid() == 0) { /* whose capabilities would read it */
        put_file("rw/foreign", "foreign", 0600);
        path_in(path, "rw/foreign");
        assert_int_equal(chown(path, 1, 1), 0);
    }
}

/* So that it can be run by whoever we are, wherever it was built. */
static void copy_program(void)
{
    static char bytes[1 << 16];
    ssize_t got = 0;
    path_in(world.program, "server");
    int from = open(ESCAPE_SERVER, O_RDONLY | O_CLOEXEC);
    int to = open(world.program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    assert_true(from >= 0 && to >= 0);
    while ((got = read(from, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(write(to, bytes, (size_t)got), got);
    }
    assert_int_equal(got, 0);
    close(from);
    close(to);
}

static int open_more(void **state)
{
    char name[PATH];
    (void)open_world(state);
    copy_program();
    path_in(name, "out/pipe");
    assert_int_equal(mkfifo(name, 0666), 0);
    path_in(name, "rw/datagrams");
    more.datagrams[0] = receive_datagrams(name, false);
    path_in(name, "out/datagrams");
    more.datagrams[1] = receive_datagrams(name, false);
    expand(name, "sandbox.datagrams.&");
    more.datagrams[2] = receive_datagrams(name, true);
    more.queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    more.semaphores = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    tidy_folder();
    return 0;
}

static int close_more(void **state)
{
    static const char *const left[] = {"out/pipe",   "rw/datagrams", "out/datagrams",
                                       "rw/foreign", "ro/empty",     "server"};
    put_more();
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        remove_file(left[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        close(more.datagrams[i]);
    }
    (void)msgctl(more.queue, IPC_RMID, NULL);
    (void)semctl(more.semaphores, 0, IPC_RMID);
    return close_world(state);
}

static const char *try_to_escape(cell *self, const attempt *row)
{
    char number[24];
    attempt made = *row;
    put_more();
    empty_datagrams();
    if (strcmp(row->a, "queue") == 0 || strcmp(row->a, "semaphores") == 0) {
        fill_queue();
        (void)snprintf(number, sizeof(number), "%d",
                       row->a[0] == 'q' ? more.queue : more.semaphores);
        made.a = number;
    }
    return make_attempt(self, &made);
}

/* ---- outside --------------------------------------------------------------------------------- */

static bool is_excused(const attempt *row)
{
    int shown_by = row->needs & SHOWN_BY;
    return shown_by == LUCK || shown_by == NEVER || (shown_by == ROOT && geteuid() != 0);
}

static void every_attempt_succeeds_outside(void **state)
{
    (void)state;
    cell outside;
    int shown = 0;
    int failures = 0;
    open_cell(&outside, NULL);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        const attempt *row = &escapes[i];
        const char *answer =
            (row->needs & SHOWN_BY) != NEVER ? try_to_escape(&outside, row) : "not tried";
        if (says(answer, "done")) {
            shown++;
        } else {
            bool is_failure = !is_excused(row);
            print_message("%s: %s %s %s outside of any sandbox: %.100s\n",
                          is_failure ? "it does not work" : "not shown here", row->tool, row->a,
                          row->b, answer);
            failures += is_failure;
        }
        expect(&outside, "echo", "", "", "done");
    }
    close_cell(&outside);
    print_message("%d of %d attempts succeed outside, for user %d\n", shown, ATTEMPTS,
                  (int)geteuid());
    assert_int_equal(failures, 0);
    assert_true(shown >= LEAST_SHOWN);
}

/* ---- inside ---------------------------------------------------------------------------------- */

typedef struct setting {
    const char *name;
    sandbox_options with;
    bool has_only_paths; /* fs begins with none */
    bool needs_counting;
} setting;

#define LANDLOCK .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER
#define BUBBLEWRAP .bubblewrap = SANDBOX_BUBBLEWRAP_REQUIRED
#define BOUNDS .memory_bytes = 256 << 20, .cpus = 1, .cpu_seconds = 60, .files = 64

static const setting settings[] = {
    {"Landlock", {LANDLOCK}, false, false},
    {"Landlock, bounds", {LANDLOCK, BOUNDS}, false, false},
    {"Landlock, processes", {LANDLOCK, .processes = 30}, false, true},
    {"Landlock, net", {LANDLOCK, .has_net = true}, false, false},
    {"Landlock, unixSockets", {LANDLOCK, .has_unix_sockets = true}, false, false},
    {"Landlock, attributes", {LANDLOCK, .has_attributes = true}, false, false},
    {"Landlock, everything",
     {LANDLOCK, .has_net = true, .has_unix_sockets = true, .has_attributes = true},
     false,
     false},
    {"Landlock, fs: none", {LANDLOCK}, true, false},
    {"Landlock, bestEffort", {LANDLOCK, .is_best_effort = true}, false, false},
    {"bubblewrap", {BUBBLEWRAP}, false, false},
    {"bubblewrap, bounds", {BUBBLEWRAP, BOUNDS}, false, false},
    {"bubblewrap, processes", {BUBBLEWRAP, .processes = 30}, false, true},
    {"bubblewrap, net", {BUBBLEWRAP, .has_net = true}, false, false},
    {"bubblewrap, unixSockets", {BUBBLEWRAP, .has_unix_sockets = true}, false, false},
    {"bubblewrap, attributes", {BUBBLEWRAP, .has_attributes = true}, false, false},
    {"bubblewrap, everything",
     {BUBBLEWRAP, .has_net = true, .has_unix_sockets = true, .has_attributes = true},
     false,
     false},
    {"whatever there is", {.bubblewrap = SANDBOX_BUBBLEWRAP_AUTO}, false, false},
};

/* What of the attempts is no escape, because the setting allows it. */
static int allowed_by(const sandbox_options *options)
{
    bool is_wrapped = options->bubblewrap != SANDBOX_BUBBLEWRAP_NEVER;
    bool has_scopes = sandbox_facts_of_machine()->landlock_abi >= 6;
    int allowed = is_wrapped ? UNWRAPPED : 0;
    allowed |= options->has_net ? NET : 0;
    allowed |= options->has_attributes && !is_wrapped ? ATTRIBUTES : 0;
    if (options->has_unix_sockets) {
        allowed |= UNIX;
        allowed |= (is_wrapped ? options->has_net : !has_scopes) ? ABSTRACT : 0;
    }
    return allowed;
}

static int attempt_all(const char *name, const sandbox_options *options)
{
    cell inside;
    int failures = 0;
    int tried = 0;
    int allowed = allowed_by(options);
    open_cell(&inside, options);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        const attempt *row = &escapes[i];
        if ((row->needs & allowed & ~SHOWN_BY) != 0) {
            continue;
        }
        const char *answer = try_to_escape(&inside, row);
        tried++;
        if (!says(answer, "refused")) {
            print_error("%s: it got out by %s %s %s: %.100s\n", name, row->tool, row->a, row->b,
                        answer);
            failures++;
        }
        expect(&inside, "echo", "", "", "done");
    }
    close_cell(&inside);
    print_message("%s: %d attempts, %d got out\n", name, tried, failures);
    assert_true(tried >= LEAST_ATTEMPTS);
    return failures;
}

static int try_setting(const setting *self)
{
    static const char *const needed[] = {"/usr", "/lib", "/lib64", "/bin", "/proc/self"};
    sandbox_path paths[8];
    walls one;
    make_walls(&one, self->with.bubblewrap);
    sandbox_options options = self->with;
    memcpy(paths, one.paths, sizeof(one.paths[0]) * 2);
    options.path_count = 2;
    options.paths = paths;
    options.user = self->needs_counting ? bounded_user() : NULL;
    options.has_no_defaults = self->has_only_paths;
    for (size_t i = 0; self->has_only_paths && i < 4; i++) {
        if (access(needed[i], F_OK) == 0) {
            paths[options.path_count++] = (sandbox_path){needed[i], false};
        }
    }
    return attempt_all(self->name, &options);
}

static void nothing_gets_out_by_any_setting(void **state)
{
    (void)state;
    int failures = 0;
    SKIP_WITHOUT_ANY();
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const setting *at = &settings[i];
        if (!is_wall_missing(at->with.bubblewrap) &&
            (!at->needs_counting || !is_counting_missing())) {
            failures += try_setting(at);
        }
    }
    assert_int_equal(failures, 0);
}

/* Our Landlock is told to be an older one: what that could not do is then undone, and must be done
 * by the filter. */
static void nothing_gets_out_on_any_stage_of_landlock(void **state)
{
    (void)state;
    int failures = 0;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    sandbox_facts other = *sandbox_facts_of_machine();
    int newest = other.landlock_abi;
    for (int abi = 1; abi <= 7 && abi <= newest; abi++) {
        char name[40];
        other.landlock_abi = abi;
        sandbox_pretend(&other);
        for (int kind = 0; kind < 2; kind++) {
            setting at = {name, {LANDLOCK, .has_net = kind == 1}, false, false};
            (void)snprintf(name, sizeof(name), "Landlock ABI %d%s", abi, kind == 1 ? ", net" : "");
            failures += try_setting(&at);
        }
        sandbox_pretend(NULL);
    }
    if (newest < 7) {
        printf("skipped: sandbox: Landlock ABI %d is the newest of this kernel\n", newest);
    }
    assert_int_equal(failures, 0);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attempt_succeeds_outside),
        cmocka_unit_test(nothing_gets_out_by_any_setting),
        cmocka_unit_test(nothing_gets_out_on_any_stage_of_landlock),
    };
    return cmocka_run_group_tests(tests, open_more, close_more);
}

int main(void)
{
    int status = 0;
    if (geteuid() != 0) {
        printf("skipped: sandbox: root's attempts: this is an ordinary user\n");
        return run_all();
    }
    pid_t pid = fork(); /* before there is a thread */
    if (pid == 0) {
        enum { NOBODY = 65534 };
        if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0) {
            return 1;
        }
        return run_all();
    }
    (void)waitpid(pid, &status, 0);
    int failures = run_all();
    return failures != 0 ? failures : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
