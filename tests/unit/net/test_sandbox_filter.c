/* The filter of system calls, run here instead of in the kernel: what it says to each call, with
 * each set of options, also on machines that have no seccomp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "net/sandbox_internal.h"
#include "support/skipped.h"

#if defined(__x86_64__)
#define HERE AUDIT_ARCH_X86_64
#define ELSEWHERE AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define HERE AUDIT_ARCH_AARCH64
#define ELSEWHERE AUDIT_ARCH_ARM
#else
#define HERE 0
#define ELSEWHERE 1
#endif

/* Classic BPF, as much of it as the filter uses. Every jump is checked: forward, inside. */
static uint32_t run(const sandbox_filter *filter, const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (size_t at = 0; at < filter->len; at++) {
        const struct sock_filter *step = &filter->code[at];
        bool holds = false;
        switch (step->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(step->k + 4 <= sizeof(*data));
            memcpy(&a, (const char *)data + step->k, 4);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= step->k;
            continue;
        case BPF_RET | BPF_K:
            return step->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            holds = a == step->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            holds = a >= step->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            holds = (a & step->k) != 0;
            break;
        default:
            fail_msg("an instruction that the kernel would refuse: %x", step->code);
        }
        at += holds ? step->jt : step->jf;
    }
    fail_msg("%s", "the filter ends without a verdict");
    return 0;
}

static uint32_t ask_all(const sandbox_filter_options *options, long call,
                        const uint64_t arguments[6])
{
    static sandbox_filter filter;
    struct seccomp_data data = {.nr = (int)call, .arch = HERE};
    memcpy(data.args, arguments, sizeof(data.args));
    sandbox_filter_write(options, &filter);
    assert_false(filter.is_overlong);
    for (uint16_t i = 0; i < filter.slot_count; i++) { /* as the child of number 77 does */
        filter.code[filter.slots[i].at].k = filter.slots[i].is_negative ? (uint32_t)-77 : 77;
    }
    return run(&filter, &data);
}

static uint32_t ask(const sandbox_filter_options *options, long call, unsigned index,
                    uint64_t value)
{
    uint64_t arguments[6] = {0};
    arguments[index] = value;
    return ask_all(options, call, arguments);
}

#define ALLOWED SECCOMP_RET_ALLOW
#define KILLED SECCOMP_RET_KILL_PROCESS
#define REFUSED(error) (SECCOMP_RET_ERRNO | (uint32_t)(error))

static const sandbox_filter_options tight = {
    .has_memory_limit = true,
    .has_cpu_limit = true,
    .lacks_truncate = true,
    .lacks_scopes = true,
    .is_in_group = true,
};
static const sandbox_filter_options loose = {
    .has_net = true, .has_unix_sockets = true, .has_attributes = true};

#define SKIP_ELSEWHERE()                                                                           \
    do {                                                                                           \
        if (!sandbox_filter_is_known()) {                                                          \
            SKIP("no table of system calls for this machine");                                     \
        }                                                                                          \
    } while (0)

static void other_machines_calls_kill(void **state)
{
    (void)state;
    static sandbox_filter filter;
    SKIP_ELSEWHERE();
    struct seccomp_data data = {.nr = SYS_getpid, .arch = ELSEWHERE};
    sandbox_filter_write(&loose, &filter);
    assert_int_equal(run(&filter, &data), KILLED);
#if defined(__x86_64__)
    assert_int_equal(ask(&loose, 0x40000000 + SYS_getpid, 0, 0), KILLED);
    assert_int_equal(ask(&loose, 0x40000000 + 512, 0, 0), KILLED);
#endif
    assert_int_equal(ask(&loose, SYS_getpid, 0, 0), ALLOWED);
}

static void what_is_never_allowed(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const long calls[] = {
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_kcmp,
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_setns,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_open_by_handle_at,
        SYS_sethostname,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_shmget,
        SYS_semget,
        SYS_semop,
        SYS_semtimedop,
        SYS_msgget,
        SYS_msgsnd,
        SYS_msgrcv,
        SYS_mq_open,
        425 /* io_uring_setup */,
        426,
        427,
        428 /* open_tree */,
        429,
        430,
        431,
        432,
        433,
        438 /* pidfd_getfd */,
        442 /* mount_setattr */,
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_int_equal(ask(&tight, calls[i], 0, 0), REFUSED(EPERM));
        assert_int_equal(ask(&loose, calls[i], 0, 0), REFUSED(EPERM));
    }
}

static void what_every_program_does(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const long calls[] = {
        SYS_read,          SYS_write,     SYS_close,        SYS_mprotect,
        SYS_munmap,        SYS_brk,       SYS_execve,       SYS_exit_group,
        SYS_wait4,         SYS_futex,     SYS_pipe2,        SYS_epoll_ctl,
        SYS_clock_gettime, SYS_getrandom, SYS_rt_sigaction, SYS_sendmsg,
        SYS_recvmsg,       SYS_sendto,    SYS_eventfd2,     SYS_getdents64,
        SYS_statx,         SYS_renameat,  SYS_unlinkat,     SYS_mkdirat,
        SYS_ftruncate,     SYS_setrlimit, SYS_getcpu,       SYS_sched_yield,
        SYS_inotify_init1, SYS_dup3,      SYS_fsync,        439 /* faccessat2 */,
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_int_equal(ask(&tight, calls[i], 0, 0), ALLOWED);
        assert_int_equal(ask(&loose, calls[i], 0, UINT64_MAX), ALLOWED);
    }
}

typedef struct row {
    long call;
    unsigned index;
    uint64_t value;
    uint32_t tight;
    uint32_t loose;
} row;

static void arguments_decide(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const row rows[] = {
        {SYS_socket, 0, AF_UNIX, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_socket, 0, AF_INET, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_socket, 0, AF_INET6, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_socket, 0, AF_NETLINK, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_socket, 0, AF_PACKET, REFUSED(EAFNOSUPPORT), REFUSED(EAFNOSUPPORT)},
        {SYS_socket, 0, 40 /* vsock */, REFUSED(EAFNOSUPPORT), REFUSED(EAFNOSUPPORT)},
        {SYS_socket, 0, 0, REFUSED(EAFNOSUPPORT), REFUSED(EAFNOSUPPORT)},
        /* the kernel takes the lower half only, and so does the filter */
        {SYS_socket, 0, (1ULL << 32) | AF_INET, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_connect, 0, 3, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_bind, 0, 3, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_listen, 0, 3, REFUSED(EAFNOSUPPORT), ALLOWED},
        {SYS_socketpair, 0, 30 /* tipc */, REFUSED(EAFNOSUPPORT), REFUSED(EAFNOSUPPORT)},
        {SYS_clone, 0, 0x3d0f00 /* a thread */, ALLOWED, ALLOWED},
        {SYS_clone, 0, 17 /* a process */, ALLOWED, ALLOWED},
        {SYS_clone, 0, 0x10000000, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_clone, 0, 0x40000000 | 17, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_clone, 0, 0x8000, REFUSED(EPERM), REFUSED(EPERM)},
        {435 /* clone3 */, 0, 0, REFUSED(ENOSYS), REFUSED(ENOSYS)},
        {SYS_unshare, 0, 0x400 /* files */, ALLOWED, ALLOWED},
        {SYS_unshare, 0, 0x20000 /* mounts */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_unshare, 0, 0x80 /* time */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_prctl, 0, 15 /* a name */, ALLOWED, ALLOWED},
        {SYS_prctl, 0, 1 /* the death signal */, REFUSED(EPERM), ALLOWED},
        {SYS_setsid, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_setpgid, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_prlimit64, 0, 0, ALLOWED, ALLOWED},
        {SYS_prlimit64, 0, 1, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_setrlimit, 0, 7, ALLOWED, ALLOWED},
        {SYS_setrlimit, 0, 15 /* the mark */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_setpriority, 1, 0, ALLOWED, ALLOWED},
        {SYS_setpriority, 1, 5, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_setpriority, 0, 1 /* its group */, ALLOWED, ALLOWED},
        {SYS_setpriority, 0, 2 /* all of its user's */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_ioprio_set, 0, 1, ALLOWED, ALLOWED},
        {SYS_ioprio_set, 0, 3 /* all of its user's */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_sched_setaffinity, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_sched_setaffinity, 0, 5, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_personality, 0, 0, ALLOWED, ALLOWED},
        {SYS_personality, 0, UINT32_MAX, ALLOWED, ALLOWED},
        {SYS_personality, 0, 8, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_ioctl, 1, 0x5401, ALLOWED, ALLOWED},
        {SYS_ioctl, 1, 0x5412 /* TIOCSTI */, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_ioctl, 1, 0xff00000000005412, REFUSED(EPERM), REFUSED(EPERM)},
        {SYS_ioctl, 1, 0x8901, REFUSED(EPERM), ALLOWED},
        {SYS_ioctl, 1, 0x40086602, REFUSED(EPERM), ALLOWED},
        {SYS_ioctl, 1, 0x40806685 /* verity */, REFUSED(EPERM), ALLOWED},
        {SYS_fchmod, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_fchownat, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_fsetxattr, 0, 0, REFUSED(EPERM), ALLOWED},
        {452 /* fchmodat2 */, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_utimensat, 1, 0, ALLOWED, ALLOWED},
        {SYS_utimensat, 1, 0x1000, REFUSED(EPERM), ALLOWED},
        {SYS_utimensat, 1, 0x100000000, REFUSED(EPERM), ALLOWED},
        {SYS_memfd_create, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS, ALLOWED, ALLOWED},
        {SYS_mmap, 3, MAP_SHARED, ALLOWED, ALLOWED},
        {SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS, REFUSED(ENOMEM), ALLOWED},
        {SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, REFUSED(ENOMEM), ALLOWED},
        {SYS_mmap, 3, 3 | MAP_ANONYMOUS, REFUSED(ENOMEM), ALLOWED},
        {SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, REFUSED(ENOMEM), ALLOWED},
        {SYS_truncate, 0, 0, REFUSED(EPERM), ALLOWED},
        {437 /* openat2 */, 0, 0, REFUSED(ENOSYS), REFUSED(ENOSYS)},
        {SYS_openat, 2, O_RDONLY, ALLOWED, ALLOWED},
        {SYS_openat, 2, O_WRONLY | O_TRUNC | O_CREAT, ALLOWED, ALLOWED},
        {SYS_openat, 2, O_RDONLY | O_TRUNC, REFUSED(EPERM), ALLOWED},
        {SYS_openat, 2, O_ACCMODE | O_TRUNC | O_CLOEXEC, REFUSED(EPERM), ALLOWED},
        {SYS_kill, 0, 0, ALLOWED, ALLOWED},
        {SYS_kill, 0, 77, ALLOWED, ALLOWED},
        {SYS_kill, 0, (uint64_t)-77, ALLOWED, ALLOWED},
        {SYS_kill, 0, 76, REFUSED(EPERM), ALLOWED},
        {SYS_kill, 0, (uint64_t)-1, REFUSED(EPERM), ALLOWED},
        {SYS_tgkill, 0, 77, ALLOWED, ALLOWED},
        {SYS_tgkill, 0, 78, REFUSED(EPERM), ALLOWED},
        {SYS_rt_sigqueueinfo, 0, 1, REFUSED(EPERM), ALLOWED},
        {424 /* pidfd_send_signal */, 0, 0, REFUSED(EPERM), ALLOWED},
        {SYS_fcntl, 1, F_SETFL, ALLOWED, ALLOWED},
        {SYS_fcntl, 1, F_SETOWN, REFUSED(EPERM), ALLOWED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *at = &rows[i];
        uint32_t of_tight = ask(&tight, at->call, at->index, at->value);
        uint32_t of_loose = ask(&loose, at->call, at->index, at->value);
        if (of_tight != at->tight || of_loose != at->loose) {
            print_error("call %ld, argument %u = %llx: %x and %x\n", at->call, at->index,
                        (unsigned long long)at->value, of_tight, of_loose);
        }
        assert_int_equal(of_tight, at->tight);
        assert_int_equal(of_loose, at->loose);
    }
}

/* Only what is tied to its other end for good; flags are no part of the type, and the kernel takes
 * the lower half of an argument. */
static void pairs_stay_connected(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const uint64_t flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK,
                                     0xabcdULL << 32};
    for (uint64_t type = 0; type <= 15; type++) {
        bool is_tied = type == SOCK_STREAM || type == SOCK_SEQPACKET;
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
            uint64_t arguments[6] = {AF_UNIX, type | flags[i]};
            assert_int_equal(ask_all(&tight, SYS_socketpair, arguments),
                             is_tied ? ALLOWED : REFUSED(EAFNOSUPPORT));
            assert_int_equal(ask_all(&loose, SYS_socketpair, arguments), ALLOWED);
        }
    }
}

/* In a call with a mode at `index`, whose other arguments are as given. */
static void expect_no_set_id(long call, unsigned index, const uint64_t others[6])
{
    static const sandbox_filter_options with_attributes = {.has_attributes = true};
    for (uint64_t mode = 0; mode <= 07777; mode += 0111) {
        uint64_t arguments[6];
        memcpy(arguments, others, sizeof(arguments));
        arguments[index] = mode | (1ULL << 32);
        uint32_t wanted = (mode & 06000) != 0 ? REFUSED(EPERM) : ALLOWED;
        assert_int_equal(ask_all(&with_attributes, call, arguments), wanted);
        assert_int_equal(ask_all(&loose, call, arguments), wanted);
        if (wanted != ALLOWED) {
            assert_int_equal(ask_all(&tight, call, arguments), wanted);
        }
    }
}

static void nobody_is_made_its_user(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const uint64_t none[6] = {0};
    static const uint64_t creating[6] = {0, O_CREAT, O_CREAT | O_WRONLY};
    static const uint64_t nameless[6] = {0, O_TMPFILE | O_RDWR, O_TMPFILE | O_RDWR};
    expect_no_set_id(SYS_fchmod, 1, none);
    expect_no_set_id(SYS_fchmodat, 2, none);
    expect_no_set_id(452 /* fchmodat2 */, 2, none);
    expect_no_set_id(SYS_mknodat, 2, none);
    expect_no_set_id(SYS_openat, 3, creating);
    expect_no_set_id(SYS_openat, 3, nameless);
#if defined(__x86_64__)
    expect_no_set_id(SYS_chmod, 1, none);
    expect_no_set_id(SYS_creat, 1, none);
    expect_no_set_id(SYS_mknod, 1, none);
    expect_no_set_id(SYS_open, 2, creating);
    expect_no_set_id(SYS_open, 2, nameless);
#endif
    /* what does not create has no mode: the register holds anything */
    assert_int_equal(ask(&tight, SYS_openat, 3, 06755), ALLOWED);
}

static void its_mark_is_read_and_not_changed(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    static const uint64_t changes[] = {0, 0x1000, 0x100000000};
    for (uint64_t resource = 0; resource < 16; resource++) {
        for (size_t i = 0; i < 3; i++) {
            uint64_t arguments[6] = {0, resource, changes[i]};
            bool is_change = resource == 15 && changes[i] != 0;
            assert_int_equal(ask_all(&tight, SYS_prlimit64, arguments),
                             is_change ? REFUSED(EPERM) : ALLOWED);
        }
    }
}

static void netlink_is_for_routes_only(void **state)
{
    (void)state;
    SKIP_ELSEWHERE();
    for (uint64_t protocol = 0; protocol < 23; protocol++) {
        uint64_t arguments[6] = {AF_NETLINK, SOCK_RAW, protocol};
        assert_int_equal(ask_all(&loose, SYS_socket, arguments),
                         protocol == 0 ? ALLOWED : REFUSED(EAFNOSUPPORT));
    }
}

/* The kernel's own checks, so that a filter that does not load is found everywhere. */
static void every_mixture_is_a_filter(void **state)
{
    (void)state;
    static sandbox_filter filter;
    SKIP_ELSEWHERE();
    for (unsigned bits = 0; bits < 256; bits++) {
        sandbox_filter_options options = {
            .has_net = bits & 1,
            .has_unix_sockets = bits & 2,
            .has_attributes = bits & 4,
            .has_memory_limit = bits & 8,
            .has_cpu_limit = bits & 16,
            .lacks_truncate = bits & 32,
            .lacks_scopes = bits & 64,
            .is_in_group = bits & 128,
        };
        sandbox_filter_write(&options, &filter);
        assert_false(filter.is_overlong);
        for (long call = 0; call < 480; call++) {
            struct seccomp_data data = {.nr = (int)call, .arch = HERE};
            uint32_t verdict = run(&filter, &data) & SECCOMP_RET_ACTION_FULL;
            assert_true(verdict == SECCOMP_RET_ALLOW || verdict == SECCOMP_RET_ERRNO);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_machines_calls_kill),
        cmocka_unit_test(what_is_never_allowed),
        cmocka_unit_test(what_every_program_does),
        cmocka_unit_test(arguments_decide),
        cmocka_unit_test(netlink_is_for_routes_only),
        cmocka_unit_test(every_mixture_is_a_filter),
        cmocka_unit_test(its_mark_is_read_and_not_changed),
        cmocka_unit_test(pairs_stay_connected),
        cmocka_unit_test(nobody_is_made_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
