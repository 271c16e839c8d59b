/* Shared by the files of the sandbox.
 *
 *   sandbox.c             what the machine supports, the plan
 *   sandbox_landlock.c    files: a ruleset
 *   sandbox_filter.c      system calls: a program for seccomp
 *   sandbox_libraries.c   what the program needs to start, and whether it can be read
 *   sandbox_bubblewrap.c  the command line of bwrap
 *   sandbox_enter.c       the child's side: only async-signal-safe calls */
#ifndef NET_SANDBOX_INTERNAL_H
#define NET_SANDBOX_INTERNAL_H

#include <linux/filter.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "net/sandbox.h"

enum {
    SANDBOX_LIMITS = 8,
    SANDBOX_INSTRUCTIONS = 768,
    SANDBOX_PID_SLOTS = 16,
    LANDLOCK_ABI_TRUNCATE = 3, /* from here on Landlock restricts truncation */
    LANDLOCK_ABI_SCOPES = 6,   /* signals and abstract sockets */
};

typedef struct sandbox_limit {
    int resource;
    struct rlimit value;
} sandbox_limit;

/* A place in the filter where the child inserts its own number. */
typedef struct sandbox_pid_slot {
    uint16_t at;
    bool is_negative; /* its group, as kill takes it */
} sandbox_pid_slot;

typedef struct sandbox_filter {
    struct sock_filter code[SANDBOX_INSTRUCTIONS];
    uint16_t len;
    sandbox_pid_slot slots[SANDBOX_PID_SLOTS];
    uint16_t slot_count;
    bool is_overlong;
} sandbox_filter;

/* The parts of the filter that are needed. */
typedef struct sandbox_filter_options {
    bool has_net;
    bool has_unix_sockets;
    bool has_attributes;
    bool has_memory_limit;
    bool has_cpu_limit;
    bool lacks_truncate; /* nothing else restricts it */
    bool lacks_scopes;   /* nothing else keeps signals inside */
    bool is_in_group;    /* it is killed by its group, so it may not leave that */
} sandbox_filter_options;

typedef struct sandbox_plan {
    bool is_used;
    bool is_wrapped; /* by bubblewrap, which then applies files and filter */
    int birth_flags; /* of clone: its namespaces */
    bool is_best_effort;
    bool is_root;
    int ruleset;   /* -1: none */
    int filter_fd; /* for bubblewrap; -1: none */
    int abi;
    sandbox_filter filter; /* len 0: none */
    sandbox_limit limits[SANDBOX_LIMITS];
    size_t limit_count;
    rlim_t processes; /* 0: no limit */
    bool changes_cores;
    cpu_set_t cores;
    bool changes_user;
    uid_t uid;
    gid_t gid;
    bool has_namespace; /* a user namespace of its own */
    char uid_map[64];
    char gid_map[64];
    const char **argv; /* bubblewrap's; NULL: the program's own */
    char *strings;     /* of argv */
} sandbox_plan;

/* The steps of the child, for the parent's message. */
typedef enum sandbox_step {
    SANDBOX_STEP_NONE,
    SANDBOX_STEP_LIMITS,
    SANDBOX_STEP_CORES,
    SANDBOX_STEP_USER,
    SANDBOX_STEP_NAMESPACE,
    SANDBOX_STEP_PROCESSES,
    SANDBOX_STEP_CAPABILITIES,
    SANDBOX_STEP_PRIVILEGES,
    SANDBOX_STEP_FILES,
    SANDBOX_STEP_FILTER,
} sandbox_step;

#define SANDBOX_NO_PLAN ((sandbox_plan){.ruleset = -1, .filter_fd = -1})

/* Everything that can be prepared before the fork. `program`: the argument of exec; `cwd`: the
 * child's folder or NULL. Only for the thread that forks. Errors: BAY_ERR_SPAWN with the reason;
 * BAY_ERR_NOMEM. Call sandbox_plan_fini in any case. */
bay_err sandbox_prepare(const sandbox_options *options, const char *program,
                        const char *const *argv, const char *cwd, sandbox_plan *out,
                        bay_diag *diag) BAY_MUST_CHECK;
void sandbox_plan_fini(sandbox_plan *self);

/* In the child. First: limits and the user; then, after the change of folder and last before exec,
 * the rest. Returns the step that failed; errno says why. */
sandbox_step sandbox_become(const sandbox_plan *self);
sandbox_step sandbox_enter(sandbox_plan *self);
const char *sandbox_step_text(sandbox_step step);

/* 0: the kernel has no Landlock. */
int sandbox_landlock_abi(void);
/* A ruleset with the given paths, and with the defaults unless they are excluded. Errors:
 * BAY_ERR_SPAWN with the path and the reason. */
bay_err sandbox_landlock_prepare(const sandbox_options *options, const char *program, int abi,
                                 int *out_ruleset, bay_diag *diag) BAY_MUST_CHECK;
/* In the child: also its own folder in /proc; irreversible. */
bool sandbox_landlock_enter(int ruleset);

/* What every program may read (and what it may write to), NULL at the end. */
extern const char *const sandbox_read_paths[];
extern const char *const sandbox_write_paths[];

bool sandbox_filter_is_known(void); /* false: no table for this machine */
void sandbox_filter_write(const sandbox_filter_options *options, sandbox_filter *out);

/* Whether the program's interpreter and libraries can be read in the sandbox. `library_path`: the
 * child's LD_LIBRARY_PATH or NULL. Errors: BAY_ERR_SPAWN: what is hidden, and the folder to add;
 * BAY_ERR_NOMEM. */
bay_err sandbox_libraries_check(const sandbox_options *options, const char *program,
                                const char *library_path, bay_diag *diag) BAY_MUST_CHECK;

/* bwrap's command line in plan->argv. BAY_ERR_NOMEM. */
bay_err sandbox_bubblewrap_prepare(const sandbox_options *options, const char *path,
                                   const char *program, const char *const *argv, const char *cwd,
                                   sandbox_plan *plan) BAY_MUST_CHECK;
/* The path of a working bwrap, "": none; starts it once. */
void sandbox_bubblewrap_find(char *out, size_t size);

#endif
