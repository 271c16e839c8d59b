/* The child's side of a sandbox, between fork and exec: only plain system calls, because the C
 * library's setters signal threads that do not exist after a fork. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/sandbox_internal.h"

enum { LAST_CAPABILITY = 63, NEW_USER_NAMESPACE = 0x10000000 };

const char *sandbox_step_text(sandbox_step step)
{
    static const char *const texts[] = {
        [SANDBOX_STEP_NONE] = "nothing",
        [SANDBOX_STEP_LIMITS] = "setting its limits",
        [SANDBOX_STEP_CORES] = "choosing its cores",
        [SANDBOX_STEP_USER] = "becoming its user",
        [SANDBOX_STEP_NAMESPACE] = "making its user namespace",
        [SANDBOX_STEP_PROCESSES] = "bounding its processes",
        [SANDBOX_STEP_CAPABILITIES] = "dropping capabilities",
        [SANDBOX_STEP_PRIVILEGES] = "giving up new privileges",
        [SANDBOX_STEP_FILES] = "closing files off with Landlock",
        [SANDBOX_STEP_FILTER] = "filtering system calls with seccomp",
    };
    return texts[step];
}

static bool set_limits(const sandbox_plan *self)
{
    for (size_t i = 0; i < self->limit_count; i++) {
        if (setrlimit((__rlimit_resource_t)self->limits[i].resource, &self->limits[i].value) != 0) {
            return false;
        }
    }
    return true;
}

static bool change_user(const sandbox_plan *self)
{
    return syscall(SYS_setgroups, 0UL, NULL) == 0 &&
           syscall(SYS_setresgid, self->gid, self->gid, self->gid) == 0 &&
           syscall(SYS_setresuid, self->uid, self->uid, self->uid) == 0;
}

sandbox_step sandbox_become(const sandbox_plan *self)
{
    if (self->is_used && !set_limits(self)) {
        return SANDBOX_STEP_LIMITS;
    }
    if (self->changes_cores &&
        syscall(SYS_sched_setaffinity, 0, sizeof(self->cores), &self->cores) < 0) {
        return SANDBOX_STEP_CORES;
    }
    if (self->changes_user && !change_user(self)) {
        return SANDBOX_STEP_USER;
    }
    return SANDBOX_STEP_NONE;
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t done = write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return done == (ssize_t)strlen(text);
}

/* In a namespace of its own a user's processes are counted separately: the limit is this server's.
 */
static bool make_namespace(const sandbox_plan *self)
{
    bool is_born_there = (self->birth_flags & NEW_USER_NAMESPACE) != 0;
    if (!is_born_there && syscall(SYS_unshare, NEW_USER_NAMESPACE) != 0) {
        return self->is_best_effort;
    }
    /* If a process's memory is not readable by others, as the gateway's, these files belong to
     * root. */
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    bool is_mapped = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 &&
                     write_file("/proc/self/uid_map", self->uid_map) &&
                     write_file("/proc/self/setgroups", "deny") &&
                     write_file("/proc/self/gid_map", self->gid_map);
    int error = errno;
    (void)prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0);
    errno = error;
    return is_mapped;
}

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    for (int i = 0; i <= LAST_CAPABILITY; i++) {
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* without the right there is none to drop */
    }
    return syscall(SYS_capset, &header, none) == 0;
}

static void place_own_number(sandbox_filter *self)
{
    uint32_t pid = (uint32_t)getpid();
    for (uint16_t i = 0; i < self->slot_count; i++) {
        self->code[self->slots[i].at].k = self->slots[i].is_negative ? 0U - pid : pid;
    }
}

static bool filter_calls(sandbox_filter *self)
{
    place_own_number(self);
    struct sock_fprog program = {.len = self->len, .filter = self->code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

sandbox_step sandbox_enter(sandbox_plan *self)
{
    struct rlimit processes = {self->processes, self->processes};
    if (!self->is_used) {
        return SANDBOX_STEP_NONE;
    }
    if (self->has_namespace && !make_namespace(self)) {
        return SANDBOX_STEP_NAMESPACE;
    }
    if (self->processes > 0 && setrlimit(RLIMIT_NPROC, &processes) != 0) {
        return SANDBOX_STEP_PROCESSES;
    }
    if (self->is_wrapped) { /* it needs its rights, and drops them itself */
        return self->filter_fd < 0 || fcntl(self->filter_fd, F_SETFD, 0) == 0 ? SANDBOX_STEP_NONE
                                                                              : SANDBOX_STEP_FILTER;
    }
    if (!drop_capabilities()) {
        return SANDBOX_STEP_CAPABILITIES;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return SANDBOX_STEP_PRIVILEGES;
    }
    if (self->ruleset >= 0 && !sandbox_landlock_enter(self->ruleset)) {
        return SANDBOX_STEP_FILES;
    }
    return self->filter.len == 0 || filter_calls(&self->filter) ? SANDBOX_STEP_NONE
                                                                : SANDBOX_STEP_FILTER;
}
