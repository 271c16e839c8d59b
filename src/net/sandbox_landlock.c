/* Files, by Landlock: everything is denied except below the given paths. The numbers are defined
 * here because the headers of a build machine may be older than the kernel.
 *
 * Of /proc only the child's own folder is permitted: others show the arguments of command lines.
 * Landlock ties a rule to an inode, and that of /proc/PID lives as long as it is held: the parent
 * holds it (process.c). */
#include "net/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

enum {
    CALL_CREATE = 444, /* the same number on every machine */
    CALL_ADD = 445,
    CALL_RESTRICT = 446,
    RULE_PATH_BENEATH = 1,
    CREATE_VERSION = 1,
};

#define RIGHT_EXECUTE (1ULL << 0)
#define RIGHT_WRITE_FILE (1ULL << 1)
#define RIGHT_READ_FILE (1ULL << 2)
#define RIGHT_READ_FOLDER (1ULL << 3)
#define RIGHT_REMOVE_FOLDER (1ULL << 4)
#define RIGHT_REMOVE_FILE (1ULL << 5)
#define RIGHT_MAKE_FOLDER (1ULL << 7)
#define RIGHT_MAKE_FILE (1ULL << 8)
#define RIGHT_MAKE_SOCKET (1ULL << 9)
#define RIGHT_MAKE_FIFO (1ULL << 10)
#define RIGHT_MAKE_LINK (1ULL << 12)
#define RIGHT_REFER (1ULL << 13)
#define RIGHT_TRUNCATE (1ULL << 14)
#define RIGHT_CONTROL_DEVICE (1ULL << 15)
#define SCOPE_ABSTRACT_SOCKETS (1ULL << 0)
#define SCOPE_SIGNALS (1ULL << 1)
#define NET_BIND_TCP (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)

#define RIGHTS_READ (RIGHT_EXECUTE | RIGHT_READ_FILE | RIGHT_READ_FOLDER)
#define RIGHTS_WRITE                                                                               \
    (RIGHTS_READ | RIGHT_WRITE_FILE | RIGHT_REMOVE_FOLDER | RIGHT_REMOVE_FILE |                    \
     RIGHT_MAKE_FOLDER | RIGHT_MAKE_FILE | RIGHT_MAKE_SOCKET | RIGHT_MAKE_FIFO | RIGHT_MAKE_LINK | \
     RIGHT_REFER | RIGHT_TRUNCATE | RIGHT_CONTROL_DEVICE)
#define RIGHTS_OF_A_FILE                                                                           \
    (RIGHT_EXECUTE | RIGHT_WRITE_FILE | RIGHT_READ_FILE | RIGHT_TRUNCATE | RIGHT_CONTROL_DEVICE)

typedef struct ruleset_attributes {
    uint64_t files;
    uint64_t net;
    uint64_t scopes;
} ruleset_attributes;

typedef struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed)) path_rule;

const char *const sandbox_read_paths[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    "/dev/random",
    "/dev/urandom",
    "/sys/devices/system/cpu",
    NULL,
};

const char *const sandbox_write_paths[] = {"/dev/null", "/dev/full", NULL};

int sandbox_landlock_abi(void)
{
    long abi = syscall(CALL_CREATE, NULL, 0, CREATE_VERSION);
    return abi > 0 ? (int)abi : 0;
}

/* The rights that a kernel knows: each version of Landlock added some. */
static uint64_t rights_of(int abi)
{
    static const int counts[] = {0, 13, 14, 15, 15, 16};
    int last = (int)(sizeof(counts) / sizeof(counts[0])) - 1;
    return (1ULL << counts[abi < last ? abi : last]) - 1;
}

static bool add_path(int ruleset, const char *path, uint64_t rights)
{
    struct stat about;
    path_rule rule = {.rights = rights, .fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.fd < 0) {
        return false;
    }
    if (fstat(rule.fd, &about) == 0 && !S_ISDIR(about.st_mode)) {
        rule.rights &= RIGHTS_OF_A_FILE;
    }
    long result = syscall(CALL_ADD, ruleset, RULE_PATH_BENEATH, &rule, 0);
    int error = errno;
    close(rule.fd);
    errno = error;
    return result == 0;
}

static bay_err sandbox_landlock_refuse(bay_diag *diag, const char *program, const char *path)
{
    return diag_set(diag, BAY_ERR_SPAWN, "cannot start \"%.60s\": its sandbox: %.120s: %s", program,
                    path, strerror(errno));
}

/* Missing defaults are skipped; requested paths must exist. */
static bay_err add_paths(const sandbox_options *options, const char *program, uint64_t known,
                         int ruleset, bay_diag *diag)
{
    for (size_t i = 0; !options->has_no_defaults && sandbox_read_paths[i] != NULL; i++) {
        (void)add_path(ruleset, sandbox_read_paths[i], RIGHTS_READ & known);
    }
    for (size_t i = 0; !options->has_no_defaults && sandbox_write_paths[i] != NULL; i++) {
        (void)add_path(ruleset, sandbox_write_paths[i], RIGHTS_WRITE & known);
    }
    for (size_t i = 0; i < options->path_count; i++) {
        const sandbox_path *path = &options->paths[i];
        uint64_t rights = path->is_writable ? RIGHTS_WRITE : RIGHTS_READ;
        if (!add_path(ruleset, path->path, rights & known)) {
            return sandbox_landlock_refuse(diag, program, path->path);
        }
    }
    return add_path(ruleset, program, RIGHT_EXECUTE | RIGHT_READ_FILE)
               ? BAY_OK
               : sandbox_landlock_refuse(diag, program, program);
}

bay_err sandbox_landlock_prepare(const sandbox_options *options, const char *program, int abi,
                                 int *out_ruleset, bay_diag *diag)
{
    ruleset_attributes attributes = {.files = rights_of(abi)};
    if (abi >= 4 && !options->has_net) {
        attributes.net = NET_BIND_TCP | NET_CONNECT_TCP;
    }
    if (abi >= LANDLOCK_ABI_SCOPES) {
        attributes.scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    }
    int ruleset = (int)syscall(CALL_CREATE, &attributes, sizeof(attributes), 0);
    if (ruleset < 0) {
        return sandbox_landlock_refuse(diag, program, "Landlock");
    }
    bay_err err = add_paths(options, program, attributes.files, ruleset, diag);
    if (err != BAY_OK) {
        close(ruleset);
        return err;
    }
    *out_ruleset = ruleset;
    return BAY_OK;
}

bool sandbox_landlock_enter(int ruleset)
{
    (void)add_path(ruleset, "/proc/self", RIGHT_READ_FILE | RIGHT_READ_FOLDER);
    return syscall(CALL_RESTRICT, ruleset, 0) == 0;
}
