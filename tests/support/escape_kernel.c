/* Attempts on other processes and on the kernel. See escape_server.c. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a call by its name -----------------------------------------------------------------------
 */

typedef struct probe {
    const char *name;
    long number;
    long arguments[6];
} probe;

#define NOWHERE ((long)(uintptr_t) "/nonexistent/path")
#define BAD_ADDRESS 1L

/* With arguments that the kernel refuses in other words, or that change nothing: EPERM says that
 * the call itself is closed. */
static const probe probes[] = {
    {"reboot", SYS_reboot, {(long)0xfee1dead, 0, 0, 0}},
    {"kexec_load", SYS_kexec_load, {0, 0, 0, 0xffff}},
    {"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, 0, 0xffff}},
    {"init_module", SYS_init_module, {0, 0, 0}},
    {"finit_module", SYS_finit_module, {-1, 0, 0}},
    {"delete_module", SYS_delete_module, {NOWHERE, O_NONBLOCK}},
    {"swapon", SYS_swapon, {NOWHERE, 0}},
    {"swapoff", SYS_swapoff, {NOWHERE}},
    {"acct", SYS_acct, {NOWHERE}},
    {"quotactl", SYS_quotactl, {0, NOWHERE, 0, 0}},
    {"quotactl_fd", 443, {-1, 0, 0, 0}},
    {"settimeofday", SYS_settimeofday, {BAD_ADDRESS, 0}},
    {"clock_settime", SYS_clock_settime, {0, BAD_ADDRESS}},
    {"clock_adjtime", SYS_clock_adjtime, {0, BAD_ADDRESS}},
    {"adjtimex", SYS_adjtimex, {BAD_ADDRESS}},
    {"sethostname", SYS_sethostname, {BAD_ADDRESS, -1}},
    {"setdomainname", SYS_setdomainname, {BAD_ADDRESS, -1}},
    {"syslog", SYS_syslog, {10, 0, 0}},
    {"umount2", SYS_umount2, {NOWHERE, 0}},
    {"pivot_root", SYS_pivot_root, {NOWHERE, NOWHERE}},
    {"setns", SYS_setns, {-1, 0}},
    {"open_tree", 428, {-1, NOWHERE, 0}},
    {"move_mount", 429, {-1, NOWHERE, -1, NOWHERE, 0}},
    {"fsopen", 430, {NOWHERE, 0}},
    {"fsconfig", 431, {-1, 0, 0, 0, 0}},
    {"fsmount", 432, {-1, 0, 0}},
    {"fspick", 433, {-1, NOWHERE, 0}},
    {"mount_setattr", 442, {-1, NOWHERE, 0, 0, 0}},
    {"bpf", SYS_bpf, {99, 0, 0}},
    {"perf_event_open", SYS_perf_event_open, {BAD_ADDRESS, 0, -1, -1, 0}},
    {"userfaultfd", SYS_userfaultfd, {0x7fffffff}},
    {"io_uring_enter", 426, {-1, 0, 0, 0, 0, 0}},
    {"io_uring_register", 427, {-1, 0, 0, 0}},
    {"add_key", SYS_add_key, {BAD_ADDRESS, BAD_ADDRESS, 0, 0, -2}},
    {"request_key", SYS_request_key, {BAD_ADDRESS, BAD_ADDRESS, 0, 0}},
    {"open_by_handle", SYS_open_by_handle_at, {AT_FDCWD, BAD_ADDRESS, 0}},
    {"fanotify_init", SYS_fanotify_init, {0x200 /* by file id */, 0}},
    {"fanotify_mark", SYS_fanotify_mark, {-1, 0, 0, -1, 0}},
    {"shmat", SYS_shmat, {-1, 0, 0}},
    {"semget", SYS_semget, {-1, 0, 0}},
    {"msgget", SYS_msgget, {-1, 0}},
    {"mq_unlink", SYS_mq_unlink, {NOWHERE + 1}},
    {"mq_open", SYS_mq_open, {NOWHERE + 1, 0, 0, 0}},
    {"pidfd_getfd", 438, {-1, 0, 0}},
    {"process_madvise", 440, {-1, 0, 0, 4, 0}},
    {"process_mrelease", 448, {-1, 0}},
    {"terminal_input", SYS_ioctl, {0, TIOCSTI, NOWHERE}},
    {"terminal_linux", SYS_ioctl, {0, TIOCLINUX, NOWHERE}},
    {"user_priority", SYS_ioprio_set, {3, 0, 0}},
#if defined(__x86_64__)
    {"iopl", SYS_iopl, {0}},
    {"ioperm", SYS_ioperm, {0x80, 1, 1}},
    {"modify_ldt", SYS_modify_ldt, {0, 0, 0}},
#endif
};

static long try_call(attempt *self)
{
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        const long *with = probes[i].arguments;
        if (strcmp(probes[i].name, self->a) == 0) {
            long result =
                syscall(probes[i].number, with[0], with[1], with[2], with[3], with[4], with[5]);
            return result >= 0 || (errno != EPERM && errno != ESRCH && errno != ENOSYS) ? 0 : -1;
        }
    }
    errno = ENOENT;
    return -1;
}

/* ---- other processes ------------------------------------------------------------------------- */

static long try_vm_write(attempt *self)
{
    char byte = 'q'; /* what is there anyway */
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)strtoull(self->b, NULL, 16), 1};
    return process_vm_writev((pid_t)self->number, &here, 1, &there, 1, 0) == 1 ? 0 : -1;
}

static long try_attach(attempt *self)
{
    pid_t pid = (pid_t)self->number;
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0) {
        return -1;
    }
    (void)waitpid(pid, NULL, __WALL);
    return ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static long try_attach_apart(attempt *self)
{
    return in_child(try_attach, self);
}

static long trace_me(attempt *self)
{
    (void)self;
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long try_traceme(attempt *self)
{
    return in_child(trace_me, self);
}

static long try_steal_descriptor(attempt *self)
{
    int handle = (int)syscall(434, (pid_t)self->number, 0);
    long result = handle >= 0 ? close_after((int)syscall(438, handle, 0, 0)) : -1;
    int error = errno;
    (void)close_after(handle);
    errno = error;
    return result;
}

static long try_compare(attempt *self)
{
    return syscall(SYS_kcmp, getpid(), (pid_t)self->number, 1 /* memory */, 0, 0) >= 0 ? 0 : -1;
}

static long try_move_pages(attempt *self)
{
    return syscall(SYS_move_pages, (pid_t)self->number, 0, NULL, NULL, NULL, 0);
}

static long try_migrate_pages(attempt *self)
{
    unsigned long nodes = 1;
    long result = syscall(SYS_migrate_pages, (pid_t)self->number, 8, &nodes, &nodes);
    return result >= 0 ? 0 : -1;
}

static long try_queue_thread(attempt *self)
{
    siginfo_t about = {.si_signo = SIGUSR1, .si_code = SI_QUEUE, .si_pid = getpid()};
    about.si_uid = getuid();
    return syscall(SYS_rt_tgsigqueueinfo, (pid_t)self->number, (pid_t)self->number, SIGUSR1,
                   &about);
}

static long try_tgkill(attempt *self)
{
    return syscall(SYS_tgkill, (pid_t)self->number, (pid_t)self->number, SIGUSR1);
}

static long try_scheduler(attempt *self)
{
    struct sched_param plain = {0};
    return sched_setscheduler((pid_t)self->number, SCHED_OTHER, &plain);
}

static long try_sched_param(attempt *self)
{
    struct sched_param plain = {0};
    return sched_setparam((pid_t)self->number, &plain);
}

static long try_sched_attributes(attempt *self)
{
    uint32_t plain[12] = {48};
    return syscall(SYS_sched_setattr, (pid_t)self->number, plain, 0);
}

static long try_io_priority(attempt *self)
{
    return syscall(SYS_ioprio_set, 1, (pid_t)self->number, 0);
}

static long try_user_priority(attempt *self)
{
    (void)self;
    return setpriority(PRIO_USER, 0, getpriority(PRIO_PROCESS, 0)); /* mostly what they have */
}

static long try_realtime(attempt *self)
{
    struct sched_param first = {.sched_priority = 1};
    (void)self;
    return sched_setscheduler(0, SCHED_FIFO, &first);
}

static long try_realtime_apart(attempt *self)
{
    return in_child(try_realtime, self);
}

static long be_sibling(attempt *self)
{
    (void)self;
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        _exit(0);
    }
    return pid > 0 ? 0 : -1;
}

static long try_sibling(attempt *self)
{
    long result = in_child(be_sibling, self);
    int error = errno;
    (void)waitpid(-1, NULL, result == 0 ? 0 : WNOHANG);
    errno = error;
    return result;
}

/* ---- messages and memory of others ------------------------------------------------------------
 */

static long try_message_take(attempt *self)
{
    struct {
        long type;
        char text[16];
    } message;
    return msgrcv((int)self->number, &message, sizeof(message.text), 0, IPC_NOWAIT) >= 0 ? 0 : -1;
}

static long try_message_put(attempt *self)
{
    struct {
        long type;
        char text[16];
    } message = {1, "x"};
    return msgsnd((int)self->number, &message, 1, IPC_NOWAIT);
}

static long try_semaphore(attempt *self)
{
    struct sembuf up = {0, 1, IPC_NOWAIT};
    return semop((int)self->number, &up, 1);
}

static long try_semaphore_timed(attempt *self)
{
    struct sembuf up = {0, 1, IPC_NOWAIT};
    return semtimedop((int)self->number, &up, 1, NULL);
}

/* ---- rights ---------------------------------------------------------------------------------- */

static long become(attempt *self)
{
    return setresuid((uid_t)self->number, (uid_t)self->number, (uid_t)self->number);
}

static long try_become(attempt *self)
{
    return in_child(become, self);
}

static long change_groups(attempt *self)
{
    gid_t group = (gid_t)self->number;
    return setgroups(1, &group);
}

static long try_groups(attempt *self)
{
    return in_child(change_groups, self);
}

static long try_capability(attempt *self)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct one[2] = {{0}};
    one[0].effective = one[0].permitted = 1U << CAP_DAC_OVERRIDE;
    (void)self;
    return syscall(SYS_capset, &header, one);
}

static long try_capability_apart(attempt *self)
{
    return in_child(try_capability, self);
}

static long try_read_implies_exec(attempt *self)
{
    (void)self;
    return personality(READ_IMPLIES_EXEC) >= 0 ? 0 : -1;
}

static long try_personality(attempt *self)
{
    return in_child(try_read_implies_exec, self);
}

static long try_memory_map(attempt *self)
{
    unsigned bytes = 0;
    (void)self;
    return prctl(35 /* PR_SET_MM */, 15 /* the size of a map */, &bytes, 0, 0);
}

static long unshare_one(attempt *self)
{
    return unshare((int)strtol(self->a, NULL, 16));
}

static long try_unshare_one(attempt *self)
{
    return in_child(unshare_one, self);
}

static long bind_mount(attempt *self)
{
    if (mount(self->a, self->b, NULL, MS_BIND, NULL) != 0) {
        return -1;
    }
    return umount2(self->b, MNT_DETACH);
}

static long try_mount(attempt *self)
{
    return bind_mount(self);
}

static long enter_namespace(attempt *self)
{
    int fd = open(self->a, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? setns(fd, 0) : -1;
}

static long try_enter_namespace(attempt *self)
{
    return in_child(enter_namespace, self);
}

static long call_by_32_bit_number(attempt *self)
{
    long result = 0;
    (void)self;
#if defined(__x86_64__)
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid */) : "memory");
#endif
    return result > 0 ? 0 : -1;
}

static long try_interrupt(attempt *self)
{
    return in_child(call_by_32_bit_number, self);
}

static long call_by_x32_number(attempt *self)
{
    (void)self;
    long result = syscall(0x40000000L + SYS_getpid);
    return result > 0 ? 0 : -1;
}

static long try_x32(attempt *self)
{
    return in_child(call_by_x32_number, self);
}

const escape_tool escape_kernel_tools[] = {
    {"call", try_call},
    {"vm_write", try_vm_write},
    {"attach", try_attach_apart},
    {"traceme", try_traceme},
    {"steal_descriptor", try_steal_descriptor},
    {"compare", try_compare},
    {"move_pages", try_move_pages},
    {"migrate_pages", try_migrate_pages},
    {"queue_thread", try_queue_thread},
    {"tgkill", try_tgkill},
    {"scheduler", try_scheduler},
    {"sched_param", try_sched_param},
    {"sched_attributes", try_sched_attributes},
    {"io_priority", try_io_priority},
    {"user_priority", try_user_priority},
    {"realtime", try_realtime_apart},
    {"sibling", try_sibling},
    {"message_take", try_message_take},
    {"message_put", try_message_put},
    {"semaphore", try_semaphore},
    {"semaphore_timed", try_semaphore_timed},
    {"become", try_become},
    {"groups", try_groups},
    {"capability", try_capability_apart},
    {"personality", try_personality},
    {"memory_map", try_memory_map},
    {"unshare_one", try_unshare_one},
    {"mount", try_mount},
    {"enter_namespace", try_enter_namespace},
    {"interrupt", try_interrupt},
    {"x32", try_x32},
    {NULL, NULL},
};
