/* System calls, by seccomp: a small program that the kernel runs before each of them.
 *
 * A denied call gets EPERM, so that a program that only probes continues; a call with the numbers
 * of another architecture (32-bit code, x32) kills, because its numbers would mean other calls
 * here. clone3 and openat2, whose arguments a filter cannot see, get ENOSYS: the C libraries then
 * use clone and openat. Calls that later kernels add are not denied by this table; Landlock and the
 * absence of all capabilities restrict them.
 *
 * In the program, register A holds the call's number between the rules. */
#include "net/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE 0U
#endif

#if defined(__x86_64__)
#define FOREIGN_CALLS 0x40000000U /* x32 */
#else
#define FOREIGN_CALLS 0U
#endif

#define DENY(error) (SECCOMP_RET_ERRNO | (uint32_t)(error))

enum { /* the same on every machine; missing in older headers */
       CALL_PIDFD_SEND_SIGNAL = 424,
       CALL_IO_URING_SETUP = 425,
       CALL_IO_URING_ENTER = 426,
       CALL_IO_URING_REGISTER = 427,
       CALL_OPEN_TREE = 428,
       CALL_MOVE_MOUNT = 429,
       CALL_FSOPEN = 430,
       CALL_FSCONFIG = 431,
       CALL_FSMOUNT = 432,
       CALL_FSPICK = 433,
       CALL_CLONE3 = 435,
       CALL_OPENAT2 = 437,
       CALL_PIDFD_GETFD = 438,
       CALL_PROCESS_MADVISE = 440,
       CALL_MOUNT_SETATTR = 442,
       CALL_QUOTACTL_FD = 443,
       CALL_MEMFD_SECRET = 447,
       CALL_PROCESS_MRELEASE = 448,
       CALL_FCHMODAT2 = 452,
       CALL_LISTMOUNT = 458,
       CALL_SETXATTRAT = 463,
       CALL_REMOVEXATTRAT = 466,
       CALL_OPEN_TREE_ATTR = 467,
       CALL_FILE_SETATTR = 469,
};

enum { /* values with several names in the headers */
       FAMILY_UNIX = 1,
       FAMILY_INET = 2,
       FAMILY_INET6 = 10,
       FAMILY_NETLINK = 16,
       SOCKET_TYPE_BITS = 0x0f, /* the rest of a type is flags */
       TYPE_STREAM = 1,
       TYPE_SEQPACKET = 5,
       SET_ID_BITS = 06000,
       OPEN_CREATES = 0100 | 020000000, /* O_CREAT, and O_TMPFILE without O_DIRECTORY */
       PRIORITY_OF_USER = 2,            /* PRIO_USER */
       IO_PRIORITY_OF_USER = 3,         /* IOPRIO_WHO_USER */
       NAMESPACE_FLAGS = 0x7e020000,    /* of clone: NEWNS, CGROUP, UTS, IPC, USER, PID, NET */
       NAMESPACE_TIME = 0x80,           /* of unshare */
       CLONE_WITH_PARENT = 0x8000,      /* its child would become our child */
       MAP_KIND = 0x0f,
       MAP_IS_SHARED = 0x01,
       MAP_IS_VALIDATED = 0x03,
       MAP_IS_ANONYMOUS = 0x20,
       MAP_GROWS = 0x100,
       LIMIT_OF_MARK = 15, /* RLIMIT_RTTIME */
       PRCTL_DEATH_SIGNAL = 1,
       PRCTL_MM = 35,
       FCNTL_SETOWN = 8,
       FCNTL_SETSIG = 10,
       FCNTL_SETOWN_EX = 15,
};

static const uint32_t terminal_pushes[] = {0x5412, 0x541c}; /* TIOCSTI, TIOCLINUX */
static const uint32_t owner_changes[] = {0x8901, 0x8902};   /* FIOSETOWN, SIOCSPGRP */
/* FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY */
static const uint32_t flag_changes[] = {0x40086602, 0x40046602, 0x401c5820,
                                        0x40087602, 0x40047602, 0x40806685};

/* Other processes, the kernel's own functions, and ways around a filter. */
static const uint32_t never_allowed[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    CALL_PIDFD_GETFD,
    CALL_PROCESS_MADVISE,
    CALL_PROCESS_MRELEASE,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    CALL_OPEN_TREE,
    CALL_OPEN_TREE_ATTR,
    CALL_MOVE_MOUNT,
    CALL_FSOPEN,
    CALL_FSCONFIG,
    CALL_FSMOUNT,
    CALL_FSPICK,
    CALL_MOUNT_SETATTR,
    CALL_LISTMOUNT,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    CALL_IO_URING_SETUP,
    CALL_IO_URING_ENTER,
    CALL_IO_URING_REGISTER,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    SYS_fanotify_mark,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    CALL_QUOTACTL_FD,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_vhangup,
    SYS_lookup_dcookie,
    SYS_nfsservctl,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget, /* ids are small numbers that can be guessed without a get call */
    SYS_semctl,
    SYS_semop,
    SYS_semtimedop,
    SYS_msgget,
    SYS_msgctl,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_mq_open,
    SYS_mq_unlink,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
#endif
};

/* Landlock cannot restrict these by path. */
static const uint32_t attribute_calls[] = {
    SYS_fchmod,       SYS_fchmodat,    CALL_FCHMODAT2,     SYS_fchown,        SYS_fchownat,
    SYS_setxattr,     SYS_lsetxattr,   SYS_fsetxattr,      SYS_removexattr,   SYS_lremovexattr,
    SYS_fremovexattr, CALL_SETXATTRAT, CALL_REMOVEXATTRAT, CALL_FILE_SETATTR,
#if defined(__x86_64__)
    SYS_chmod,        SYS_chown,       SYS_lchown,         SYS_utime,         SYS_utimes,
    SYS_futimesat,
#endif
};

/* With the index of their flags; a mode follows. */
static const uint32_t open_calls[][2] = {
    {SYS_openat, 2},
#if defined(__x86_64__)
    {SYS_open, 1},
#endif
};

/* ---- writing ----------------------------------------------------------------------------------
 */

static void emit(sandbox_filter *self, struct sock_filter instruction)
{
    if (self->len == SANDBOX_INSTRUCTIONS) {
        self->is_overlong = true;
        return;
    }
    self->code[self->len++] = instruction;
}

static void load(sandbox_filter *self, size_t offset)
{
    emit(self, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void load_number(sandbox_filter *self)
{
    load(self, offsetof(struct seccomp_data, nr));
}

/* Both machines are little-endian: the low half comes first. */
static void load_argument(sandbox_filter *self, unsigned index)
{
    load(self, offsetof(struct seccomp_data, args) + 8 * (size_t)index);
}

static void load_upper_argument(sandbox_filter *self, unsigned index)
{
    load(self, offsetof(struct seccomp_data, args) + 8 * (size_t)index + 4);
}

static void mask(sandbox_filter *self, uint32_t bits)
{
    emit(self, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
}

static void give(sandbox_filter *self, uint32_t verdict)
{
    emit(self, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void give_if(sandbox_filter *self, uint16_t test, uint32_t value, uint32_t verdict)
{
    emit(self, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
    give(self, verdict);
}

static void give_unless(sandbox_filter *self, uint16_t test, uint32_t value, uint32_t verdict)
{
    emit(self, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 1, 0));
    give(self, verdict);
}

/* The rules up to `leave` apply only if the test holds. */
static uint16_t enter_if(sandbox_filter *self, uint16_t test, uint32_t value)
{
    uint16_t at = self->len;
    emit(self, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 0));
    return at;
}

/* The rules up to `leave` are about this call only. */
static uint16_t enter(sandbox_filter *self, uint32_t call)
{
    return enter_if(self, BPF_JEQ, call);
}

static void leave(sandbox_filter *self, uint16_t at)
{
    load_number(self);
    if (!self->is_overlong) {
        self->code[at].jf = (uint8_t)(self->len - at - 1); /* rules are short */
    }
}

static void deny_all(sandbox_filter *self, const uint32_t *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give_if(self, BPF_JEQ, calls[i], DENY(EPERM));
    }
}

#define DENY_ALL(self, calls) deny_all((self), (calls), sizeof(calls) / sizeof((calls)[0]))

static void deny_if_equal(sandbox_filter *self, uint32_t call, unsigned argument,
                          const uint32_t *values, size_t count)
{
    uint16_t at = enter(self, call);
    load_argument(self, argument);
    for (size_t i = 0; i < count; i++) {
        give_if(self, BPF_JEQ, values[i], DENY(EPERM));
    }
    leave(self, at);
}

#define DENY_IF_EQUAL(self, call, argument, values)                                                \
    deny_if_equal((self), (call), (argument), (values), sizeof(values) / sizeof((values)[0]))

static void deny_if_set(sandbox_filter *self, uint32_t call, unsigned argument, uint32_t bits)
{
    uint16_t at = enter(self, call);
    load_argument(self, argument);
    give_if(self, BPF_JSET, bits, DENY(EPERM));
    leave(self, at);
}

static void deny_unless_zero(sandbox_filter *self, uint32_t call, unsigned argument)
{
    uint16_t at = enter(self, call);
    load_argument(self, argument);
    give_unless(self, BPF_JEQ, 0, DENY(EPERM));
    leave(self, at);
}

/* ---- the rules ---------------------------------------------------------------------------------
 */

/* The ends of a stream or seqpacket pair stay connected to each other: the kernel refuses to
 * connect them elsewhere and ignores or refuses a message's address. An end of any other pair can
 * send to every socket whose name it knows, also descriptors, and no filter sees a name. */
static void write_pairs(sandbox_filter *self, const sandbox_filter_options *options)
{
    uint16_t at = enter(self, SYS_socketpair);
    load_argument(self, 0);
    give_unless(self, BPF_JEQ, FAMILY_UNIX, DENY(EAFNOSUPPORT));
    if (!options->has_unix_sockets) {
        load_argument(self, 1);
        mask(self, SOCKET_TYPE_BITS);
        give_if(self, BPF_JEQ, TYPE_STREAM, SECCOMP_RET_ALLOW);
        give_unless(self, BPF_JEQ, TYPE_SEQPACKET, DENY(EAFNOSUPPORT));
    }
    leave(self, at);
}

static void write_sockets(sandbox_filter *self, const sandbox_filter_options *options)
{
    write_pairs(self, options);
    if (!options->has_net && !options->has_unix_sockets) { /* only pairs are permitted */
        give_if(self, BPF_JEQ, SYS_bind, DENY(EAFNOSUPPORT));
        give_if(self, BPF_JEQ, SYS_connect, DENY(EAFNOSUPPORT));
        give_if(self, BPF_JEQ, SYS_listen, DENY(EAFNOSUPPORT));
    }
    uint16_t at = enter(self, SYS_socket);
    load_argument(self, 0);
    if (options->has_unix_sockets) {
        give_if(self, BPF_JEQ, FAMILY_UNIX, SECCOMP_RET_ALLOW);
    }
    if (options->has_net) {
        give_if(self, BPF_JEQ, FAMILY_INET, SECCOMP_RET_ALLOW);
        give_if(self, BPF_JEQ, FAMILY_INET6, SECCOMP_RET_ALLOW);
        /* the list of interfaces and routes: protocol 0 */
        give_unless(self, BPF_JEQ, FAMILY_NETLINK, DENY(EAFNOSUPPORT));
        load_argument(self, 2);
        give_if(self, BPF_JEQ, 0, SECCOMP_RET_ALLOW);
    }
    give(self, DENY(EAFNOSUPPORT));
    leave(self, at);
}

/* The limit that marks a child may be read, but not changed (descendants.h). */
static void write_mark(sandbox_filter *self)
{
    static const uint32_t mark[] = {LIMIT_OF_MARK};
    DENY_IF_EQUAL(self, SYS_setrlimit, 0, mark);
    uint16_t at = enter(self, SYS_prlimit64);
    load_argument(self, 1);
    uint16_t is_mark = enter_if(self, BPF_JEQ, LIMIT_OF_MARK);
    load_argument(self, 2);
    give_unless(self, BPF_JEQ, 0, DENY(EPERM));
    load_upper_argument(self, 2);
    give_unless(self, BPF_JEQ, 0, DENY(EPERM));
    leave(self, is_mark);
    leave(self, at);
}

static void write_processes(sandbox_filter *self, const sandbox_filter_options *options)
{
    static const uint32_t memory_map[] = {PRCTL_MM};
    static const uint32_t bonds[] = {PRCTL_DEATH_SIGNAL};
    static const uint32_t users_priority[] = {PRIORITY_OF_USER};
    static const uint32_t users_io_priority[] = {IO_PRIORITY_OF_USER};
    give_if(self, BPF_JEQ, CALL_CLONE3, DENY(ENOSYS));
    deny_if_set(self, SYS_clone, 0, NAMESPACE_FLAGS | CLONE_WITH_PARENT);
    deny_if_set(self, SYS_unshare, 0, NAMESPACE_FLAGS | NAMESPACE_TIME);
    DENY_IF_EQUAL(self, SYS_prctl, 0, memory_map);
    /* what a user may do to any of his processes, also to the gateway */
    deny_unless_zero(self, SYS_prlimit64, 0);
    write_mark(self);
    deny_unless_zero(self, SYS_sched_setscheduler, 0);
    deny_unless_zero(self, SYS_sched_setparam, 0);
    deny_unless_zero(self, SYS_sched_setattr, 0);
    deny_unless_zero(self, SYS_setpriority, 1);
    deny_unless_zero(self, SYS_ioprio_set, 1);
    DENY_IF_EQUAL(self, SYS_setpriority, 0, users_priority); /* 0 is then our user */
    DENY_IF_EQUAL(self, SYS_ioprio_set, 0, users_io_priority);
    if (options->has_cpu_limit) {
        give_if(self, BPF_JEQ, SYS_sched_setaffinity, DENY(EPERM));
    } else {
        deny_unless_zero(self, SYS_sched_setaffinity, 0);
    }
    if (options->is_in_group) {
        give_if(self, BPF_JEQ, SYS_setsid, DENY(EPERM));
        give_if(self, BPF_JEQ, SYS_setpgid, DENY(EPERM));
        DENY_IF_EQUAL(self, SYS_prctl, 0, bonds);
    }
    uint16_t at = enter(self, SYS_personality);
    load_argument(self, 0);
    give_if(self, BPF_JEQ, 0, SECCOMP_RET_ALLOW);
    give_if(self, BPF_JEQ, 0x40000, SECCOMP_RET_ALLOW); /* fixed addresses: used by debuggers */
    give_unless(self, BPF_JEQ, UINT32_MAX, DENY(EPERM));
    leave(self, at);
}

/* RLIMIT_DATA counts private writable memory only; other kinds are then denied. */
static void write_memory(sandbox_filter *self)
{
    give_if(self, BPF_JEQ, SYS_memfd_create, DENY(EPERM));
    give_if(self, BPF_JEQ, CALL_MEMFD_SECRET, DENY(EPERM));
    uint16_t at = enter(self, SYS_mmap);
    load_argument(self, 3);
    give_if(self, BPF_JSET, MAP_GROWS, DENY(ENOMEM));
    mask(self, MAP_KIND | MAP_IS_ANONYMOUS);
    give_if(self, BPF_JEQ, MAP_IS_SHARED | MAP_IS_ANONYMOUS, DENY(ENOMEM));
    give_if(self, BPF_JEQ, MAP_IS_VALIDATED | MAP_IS_ANONYMOUS, DENY(ENOMEM));
    leave(self, at);
}

/* A set-user-ID program in a writable folder would give its user's rights, possibly root's, to
 * whoever runs it outside. Directories need no rule: mkdir ignores these bits. */
static void write_set_id(sandbox_filter *self)
{
    static const uint32_t mode_calls[][2] = {
        {SYS_fchmod, 1},
        {SYS_fchmodat, 2},
        {CALL_FCHMODAT2, 2},
        {SYS_mknodat, 2},
#if defined(__x86_64__)
        {SYS_chmod, 1},
        {SYS_creat, 1},
        {SYS_mknod, 1},
#endif
    };
    for (size_t i = 0; i < sizeof(mode_calls) / sizeof(mode_calls[0]); i++) {
        deny_if_set(self, mode_calls[i][0], mode_calls[i][1], SET_ID_BITS);
    }
    for (size_t i = 0; i < sizeof(open_calls) / sizeof(open_calls[0]); i++) {
        uint16_t at = enter(self, open_calls[i][0]);
        load_argument(self, open_calls[i][1]);
        uint16_t creates = enter_if(self, BPF_JSET, OPEN_CREATES); /* otherwise there is no mode */
        load_argument(self, open_calls[i][1] + 1);
        give_if(self, BPF_JSET, SET_ID_BITS, DENY(EPERM));
        leave(self, creates);
        leave(self, at);
    }
    give_if(self, BPF_JEQ, CALL_OPENAT2, DENY(ENOSYS));
}

static void write_attributes(sandbox_filter *self)
{
    DENY_ALL(self, attribute_calls);
    DENY_IF_EQUAL(self, SYS_ioctl, 1, flag_changes);
    uint16_t at = enter(self, SYS_utimensat); /* without a path: of an open file */
    load_argument(self, 1);
    give_unless(self, BPF_JEQ, 0, DENY(EPERM));
    load_upper_argument(self, 1);
    give_unless(self, BPF_JEQ, 0, DENY(EPERM));
    leave(self, at);
}

/* Opening for reading with truncation would avoid a missing right to truncate. */
static void write_truncation(sandbox_filter *self)
{
    give_if(self, BPF_JEQ, SYS_truncate, DENY(EPERM));
    for (size_t i = 0; i < sizeof(open_calls) / sizeof(open_calls[0]); i++) {
        uint16_t at = enter(self, open_calls[i][0]);
        load_argument(self, open_calls[i][1]);
        mask(self, O_ACCMODE | O_TRUNC);
        give_if(self, BPF_JEQ, O_RDONLY | O_TRUNC, DENY(EPERM));
        give_if(self, BPF_JEQ, O_ACCMODE | O_TRUNC, DENY(EPERM));
        leave(self, at);
    }
}

/* The child inserts its own number here. */
static void allow_own(sandbox_filter *self, bool is_negative)
{
    if (self->slot_count < SANDBOX_PID_SLOTS) {
        self->slots[self->slot_count++] = (sandbox_pid_slot){self->len, is_negative};
    } else {
        self->is_overlong = true;
    }
    give_if(self, BPF_JEQ, UINT32_MAX, SECCOMP_RET_ALLOW);
}

static void write_signals(sandbox_filter *self)
{
    static const uint32_t targeted[] = {SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
                                        SYS_rt_tgsigqueueinfo};
    static const uint32_t owners[] = {FCNTL_SETOWN, FCNTL_SETSIG, FCNTL_SETOWN_EX};
    uint16_t at = enter(self, SYS_kill);
    load_argument(self, 0);
    give_if(self, BPF_JEQ, 0, SECCOMP_RET_ALLOW); /* its group */
    allow_own(self, false);
    allow_own(self, true);
    give(self, DENY(EPERM));
    leave(self, at);
    for (size_t i = 0; i < sizeof(targeted) / sizeof(targeted[0]); i++) {
        at = enter(self, targeted[i]);
        load_argument(self, 0);
        allow_own(self, false);
        give(self, DENY(EPERM));
        leave(self, at);
    }
    give_if(self, BPF_JEQ, CALL_PIDFD_SEND_SIGNAL, DENY(EPERM));
    DENY_IF_EQUAL(self, SYS_fcntl, 1, owners);
    DENY_IF_EQUAL(self, SYS_ioctl, 1, owner_changes);
}

bool sandbox_filter_is_known(void)
{
    return MACHINE != 0U;
}

void sandbox_filter_write(const sandbox_filter_options *options, sandbox_filter *out)
{
    out->len = out->slot_count = 0;
    out->is_overlong = false;
    load(out, offsetof(struct seccomp_data, arch));
    give_unless(out, BPF_JEQ, MACHINE, SECCOMP_RET_KILL_PROCESS);
    load_number(out);
    if (FOREIGN_CALLS != 0) {
        give_if(out, BPF_JGE, FOREIGN_CALLS, SECCOMP_RET_KILL_PROCESS);
    }
    DENY_ALL(out, never_allowed);
    DENY_IF_EQUAL(out, SYS_ioctl, 1, terminal_pushes);
    write_sockets(out, options);
    write_processes(out, options);
    write_set_id(out);
    if (options->has_memory_limit) {
        write_memory(out);
    }
    if (!options->has_attributes) {
        write_attributes(out);
    }
    if (options->lacks_truncate) {
        write_truncation(out);
    }
    if (options->lacks_scopes) {
        write_signals(out);
    }
    give(out, SECCOMP_RET_ALLOW);
}
