/* What the machine supports, what is requested beyond that, and the plan that the child executes.
 */
#include "net/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/sandbox_internal.h"

enum {
    USER_BYTES = 16384,
    NEW_USER_NAMESPACE = 0x10000000,
    NEW_PID_NAMESPACE = 0x20000000,
    PATH_BYTES = 4096,
    BUBBLEWRAP_PROCESSES = 3
};

#define STACK_MOST ((rlim_t)64 << 20)

/* ---- the machine ------------------------------------------------------------------------------
 */

static sandbox_facts machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static _Atomic(const sandbox_facts *) pretended;

/* Tested in a child: the test changes the process that makes it. */
static bool can_make_namespaces(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(syscall(SYS_unshare, NEW_USER_NAMESPACE) == 0 ? 0 : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void look_at_machine(void)
{
    uint32_t killing = SECCOMP_RET_KILL_PROCESS;
    machine.landlock_abi = sandbox_landlock_abi();
    machine.has_seccomp = sandbox_filter_is_known() &&
                          syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &killing) == 0;
    machine.has_user_namespaces = can_make_namespaces();
    sandbox_bubblewrap_find(machine.bubblewrap, sizeof(machine.bubblewrap));
}

const sandbox_facts *sandbox_facts_of_machine(void)
{
    const sandbox_facts *facts = atomic_load(&pretended);
    if (facts != NULL) {
        return facts;
    }
    pthread_once(&machine_once, look_at_machine);
    return &machine;
}

void sandbox_pretend(const sandbox_facts *facts)
{
    atomic_store(&pretended, facts);
}

/* ---- what is asked of it ----------------------------------------------------------------------
 */

static bool is_wrapped(const sandbox_options *self)
{
    return self->bubblewrap != SANDBOX_BUBBLEWRAP_NEVER &&
           sandbox_facts_of_machine()->bubblewrap[0] != '\0';
}

static bool stays_root(const sandbox_options *self)
{
    return geteuid() == 0 && self->user == NULL;
}

static void add_text(char out[SANDBOX_TEXT_BYTES], const char *separator, const char *text)
{
    size_t len = strlen(out);
    (void)snprintf(out + len, SANDBOX_TEXT_BYTES - len, "%s%s", len > 0 ? separator : "", text);
}

void sandbox_missing(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES])
{
    const sandbox_facts *facts = sandbox_facts_of_machine();
    out[0] = '\0';
    if (self->bubblewrap == SANDBOX_BUBBLEWRAP_REQUIRED && facts->bubblewrap[0] == '\0') {
        add_text(out, "; ", "bubblewrap is not installed or may not make namespaces");
    }
    if (!is_wrapped(self) && facts->landlock_abi == 0) {
        add_text(out, "; ", "this kernel has no Landlock to keep it from files");
    }
    if (!facts->has_seccomp) {
        add_text(out, "; ", "this kernel has no seccomp to filter system calls");
    }
    if (self->user != NULL && geteuid() != 0) {
        add_text(out, "; ", "only root can change the user");
    }
    if (self->processes > 0 && stays_root(self)) {
        add_text(out, "; ", "root's processes cannot be bounded: name a user");
    } else if (self->processes > 0 && !facts->has_user_namespaces) {
        add_text(out, "; ", "processes cannot be counted without user namespaces");
    }
}

void sandbox_describe(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES])
{
    const sandbox_facts *facts = sandbox_facts_of_machine();
    char landlock[40];
    out[0] = '\0';
    if (is_wrapped(self)) {
        add_text(out, ", ", "bubblewrap");
    } else if (facts->landlock_abi > 0) {
        (void)snprintf(landlock, sizeof(landlock), "Landlock %d", facts->landlock_abi);
        add_text(out, ", ", landlock);
    }
    if (facts->has_seccomp) {
        add_text(out, ", ", "seccomp");
    }
    add_text(out, ", ", "resource limits");
}

sandbox_options *sandbox_options_dup(const sandbox_options *self)
{
    size_t bytes = self->user != NULL ? strlen(self->user) + 1 : 0;
    for (size_t i = 0; i < self->path_count; i++) {
        bytes += strlen(self->paths[i].path) + 1;
    }
    size_t head = sizeof(*self) + self->path_count * sizeof(*self->paths);
    sandbox_options *copy = mem_alloc(head + bytes);
    if (copy == NULL) {
        return NULL;
    }
    *copy = *self;
    sandbox_path *paths = (sandbox_path *)(copy + 1);
    char *at = (char *)copy + head;
    for (size_t i = 0; i < self->path_count; i++) {
        size_t len = strlen(self->paths[i].path) + 1;
        memcpy(at, self->paths[i].path, len);
        paths[i] = (sandbox_path){at, self->paths[i].is_writable};
        at += len;
    }
    copy->paths = paths;
    if (self->user != NULL) {
        memcpy(at, self->user, strlen(self->user) + 1);
        copy->user = at;
    }
    return copy;
}

/* ---- the plan ---------------------------------------------------------------------------------
 */

/* Nobody may raise his own limit. */
static void bound(sandbox_plan *plan, int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) != 0) {
        now.rlim_max = RLIM_INFINITY;
    }
    hard = hard < now.rlim_max ? hard : now.rlim_max;
    soft = soft < hard ? soft : hard;
    plan->limits[plan->limit_count++] = (sandbox_limit){resource, {soft, hard}};
}

static void plan_limits(const sandbox_options *options, sandbox_plan *plan)
{
    bound(plan, RLIMIT_CORE, 0, 0);
    if (options->memory_bytes > 0) {
        struct rlimit stack = {RLIM_INFINITY, RLIM_INFINITY};
        rlim_t most = options->memory_bytes < STACK_MOST ? options->memory_bytes : STACK_MOST;
        bound(plan, RLIMIT_DATA, options->memory_bytes, options->memory_bytes);
        (void)getrlimit(RLIMIT_STACK, &stack);
        bound(plan, RLIMIT_STACK, stack.rlim_cur < most ? stack.rlim_cur : most, most);
    }
    if (options->cpu_seconds > 0) { /* SIGXCPU, and a second later SIGKILL if that is ignored */
        bound(plan, RLIMIT_CPU, options->cpu_seconds, (rlim_t)options->cpu_seconds + 1);
    }
    if (options->files > 0) {
        bound(plan, RLIMIT_NOFILE, options->files, options->files);
    }
}

/* Cores in turn, so that not all sandboxed servers use the first ones. */
static void plan_cores(const sandbox_options *options, sandbox_plan *plan)
{
    static atomic_uint next;
    cpu_set_t ours;
    if (options->cpus == 0 || sched_getaffinity(0, sizeof(ours), &ours) != 0) {
        return;
    }
    int count = CPU_COUNT(&ours);
    int wanted = options->cpus < (uint32_t)count ? (int)options->cpus : count;
    int skipped = (int)(atomic_fetch_add(&next, (unsigned)wanted) % (unsigned)count);
    CPU_ZERO(&plan->cores);
    for (int core = 0, seen = 0, taken = 0; taken < wanted; core = (core + 1) % CPU_SETSIZE) {
        if (CPU_ISSET(core, &ours) && seen++ >= skipped && !CPU_ISSET(core, &plan->cores)) {
            CPU_SET(core, &plan->cores);
            taken++;
        }
    }
    plan->changes_cores = true;
}

static bay_err plan_user(const sandbox_options *options, sandbox_plan *plan, bay_diag *diag)
{
    struct passwd entry;
    struct passwd *found = NULL;
    plan->uid = geteuid();
    plan->gid = getegid();
    if (options->user != NULL && plan->uid == 0) {
        char *text = mem_alloc(USER_BYTES);
        if (text == NULL) {
            return BAY_ERR_NOMEM;
        }
        (void)getpwnam_r(options->user, &entry, text, USER_BYTES, &found);
        plan->changes_user = found != NULL;
        plan->uid = found != NULL ? found->pw_uid : 0;
        plan->gid = found != NULL ? found->pw_gid : 0;
        mem_free(text);
        if (!plan->changes_user) {
            return diag_set(diag, BAY_ERR_SPAWN, "its sandbox: there is no user \"%.60s\"",
                            options->user);
        }
    }
    if (options->processes > 0 && plan->uid != 0) {
        plan->processes = options->processes;
        plan->has_namespace = sandbox_facts_of_machine()->has_user_namespaces;
    }
    if (plan->processes > 0 && !plan->has_namespace) {
        plan->processes = 0; /* it would count other processes of the user, too */
    }
    /* bwrap is the first of its own processes: whenever it is killed, also during its start, the
     * kernel ends all of them. Without root this needs a user namespace. */
    if (plan->is_wrapped) {
        plan->birth_flags = NEW_PID_NAMESPACE | (geteuid() != 0 ? NEW_USER_NAMESPACE : 0);
        plan->has_namespace = plan->has_namespace || geteuid() != 0;
    }
    (void)snprintf(plan->uid_map, sizeof(plan->uid_map), "%lu %lu 1", (unsigned long)plan->uid,
                   (unsigned long)plan->uid);
    (void)snprintf(plan->gid_map, sizeof(plan->gid_map), "%lu %lu 1", (unsigned long)plan->gid,
                   (unsigned long)plan->gid);
    return BAY_OK;
}

static void plan_filter(const sandbox_options *options, sandbox_plan *plan)
{
    sandbox_filter_options filter = {
        .has_net = options->has_net,
        .has_unix_sockets = options->has_unix_sockets,
        .has_attributes = options->has_attributes || plan->is_wrapped, /* mounts protect them */
        .has_memory_limit = options->memory_bytes > 0,
        .has_cpu_limit = options->cpus > 0,
        .lacks_truncate = !plan->is_wrapped && plan->abi < LANDLOCK_ABI_TRUNCATE,
        .lacks_scopes = !plan->is_wrapped && plan->abi < LANDLOCK_ABI_SCOPES,
        .is_in_group = !plan->is_wrapped,
    };
    if (sandbox_facts_of_machine()->has_seccomp) {
        sandbox_filter_write(&filter, &plan->filter);
    }
}

/* bwrap reads the filter from a descriptor. */
static bay_err store_filter(sandbox_plan *plan, bay_diag *diag)
{
    size_t bytes = plan->filter.len * sizeof(plan->filter.code[0]);
    int fd = memfd_create("filter", MFD_CLOEXEC);
    plan->filter_fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (plan->filter_fd < 0 ||
        pwrite(plan->filter_fd, plan->filter.code, bytes, 0) != (ssize_t)bytes) {
        return diag_set(diag, BAY_ERR_SPAWN, "its sandbox: no place for a filter: %s",
                        strerror(errno));
    }
    return BAY_OK;
}

/* exec comes after the change of folder, so a relative program is resolved here. */
static bay_err make_absolute(const char *path, const char *folder, char out[PATH_BYTES],
                             bay_diag *diag)
{
    char here[PATH_BYTES] = "";
    bool needs_here = path[0] != '/' && (folder == NULL || folder[0] != '/');
    bool needs_folder = path[0] != '/' && folder != NULL;
    if (needs_here && getcwd(here, sizeof(here)) == NULL) {
        return diag_set(diag, BAY_ERR_SPAWN, "its sandbox: where are we? %s", strerror(errno));
    }
    int len = snprintf(out, PATH_BYTES, "%s%s%s%s%s", here, needs_here ? "/" : "",
                       needs_folder ? folder : "", needs_folder ? "/" : "", path);
    return len > 0 && len < PATH_BYTES
               ? BAY_OK
               : diag_set(diag, BAY_ERR_SPAWN, "its sandbox: a path is too long");
}

/* bwrap reports it, too, but on its stderr and after the start. */
static bay_err check_paths(const sandbox_options *options, const char *program, bay_diag *diag)
{
    for (size_t i = 0; i < options->path_count; i++) {
        if (access(options->paths[i].path, F_OK) != 0) {
            return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.60s\": its sandbox: %.120s: %s",
                            program, options->paths[i].path, strerror(errno));
        }
    }
    return BAY_OK;
}

static bay_err plan_wrapping(const sandbox_options *options, const char *program,
                             const char *const *argv, const char *cwd, sandbox_plan *plan,
                             bay_diag *diag)
{
    char folder[PATH_BYTES];
    bay_err err = check_paths(options, program, diag);
    if (err == BAY_OK && plan->filter.len > 0) {
        err = store_filter(plan, diag);
    }
    if (err == BAY_OK) {
        err = make_absolute(cwd != NULL ? cwd : "/", NULL, folder, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (plan->processes > 0) {
        plan->processes += BUBBLEWRAP_PROCESSES;
    }
    err = sandbox_bubblewrap_prepare(options, sandbox_facts_of_machine()->bubblewrap, program, argv,
                                     folder, plan);
    return err == BAY_OK ? err : diag_set(diag, err, "its sandbox: out of memory");
}

static bay_err plan_walls(const sandbox_options *options, const char *program,
                          const char *const *argv, const char *cwd, sandbox_plan *plan,
                          bay_diag *diag)
{
    char path[PATH_BYTES];
    bay_err err = make_absolute(program, cwd, path, diag);
    if (err != BAY_OK) {
        return err;
    }
    plan_filter(options, plan);
    if (plan->filter.is_overlong) {
        return diag_set(diag, BAY_ERR_SPAWN, "its sandbox: the filter is too long");
    }
    if (plan->is_wrapped) {
        return plan_wrapping(options, path, argv, cwd, plan, diag);
    }
    return plan->abi > 0 ? sandbox_landlock_prepare(options, path, plan->abi, &plan->ruleset, diag)
                         : BAY_OK;
}

bay_err sandbox_prepare(const sandbox_options *options, const char *program,
                        const char *const *argv, const char *cwd, sandbox_plan *out, bay_diag *diag)
{
    char missing[SANDBOX_TEXT_BYTES];
    *out = SANDBOX_NO_PLAN;
    if (options->path_count > SANDBOX_PATHS) {
        return diag_set(diag, BAY_ERR_SPAWN,
                        "cannot start \"%.60s\": more than %d paths in its sandbox", argv[0],
                        SANDBOX_PATHS);
    }
    sandbox_missing(options, missing);
    if (missing[0] != '\0' && !options->is_best_effort) {
        return diag_set(diag, BAY_ERR_SPAWN,
                        "cannot start \"%.60s\" in its sandbox: %.200s (sandbox.bestEffort starts "
                        "it without)",
                        argv[0], missing);
    }
    out->is_used = true;
    out->is_best_effort = options->is_best_effort;
    out->is_wrapped = is_wrapped(options);
    out->abi = sandbox_facts_of_machine()->landlock_abi;
    plan_limits(options, out);
    plan_cores(options, out);
    bay_err err = plan_user(options, out, diag);
    return err == BAY_OK ? plan_walls(options, program, argv, cwd, out, diag) : err;
}

void sandbox_plan_fini(sandbox_plan *self)
{
    if (self->ruleset >= 0) {
        close(self->ruleset);
    }
    if (self->filter_fd >= 0) {
        close(self->filter_fd);
    }
    mem_free(self->argv);
    mem_free(self->strings);
    *self = SANDBOX_NO_PLAN;
}
