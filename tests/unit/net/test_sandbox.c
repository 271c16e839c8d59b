/* What a sandboxed server can do: its own affairs, behind Landlock, behind bubblewrap and as on
 * older kernels; what the configuration allows; and what is said where the machine cannot do what
 * is asked. What it cannot do: test_sandbox_escapes.c. */
#include "sandbox_rig.h"

#include "base/mem.h"
#include "support/failing_memory.h"

enum { NOTHING, LUCK }; /* not where Landlock is old */

/* What a server needs all day. */
static const attempt affairs[] = {
    {"echo", "", "", NOTHING},
    {"read", "@/ro/file", "", NOTHING},
    {"list", "@/ro", "", NOTHING},
    {"read", "/etc/passwd", "", NOTHING},
    {"list", "/usr/bin", "", NOTHING},
    {"write", "@/rw/file", "", NOTHING},
    {"write", "@/rw/new", "", NOTHING},
    {"truncate", "@/rw/file", "", LUCK}, /* not where Landlock cannot see it */
    {"mkdir", "@/rw/folder", "", NOTHING},
    {"rename", "@/rw/file", "@/rw/new", NOTHING},
    {"link", "@/rw/file", "@/rw/hard", NOTHING},
    {"symlink", "file", "@/rw/way", NOTHING},
    {"unlink", "@/rw/file", "", NOTHING},
    {"write", "/dev/null", "", NOTHING},
    {"exec", "/bin/true", "", NOTHING},
    {"exec", "@/ro/program", "", NOTHING},
    {"read", "/proc/self/status", "", NOTHING},
    {"socketpair", "", "", NOTHING},
    {"kill_own", "", "", LUCK}, /* not where Landlock cannot see signals */
    {"fork", "10", "", NOTHING},
    {"heap", "20", "", NOTHING},
    {"shared", "20", "", NOTHING},
    {"memfd", "20", "", NOTHING},
};

static void attend_to_affairs(const sandbox_options *options, bool has_luck)
{
    cell inside;
    int failures = 0;
    open_cell(&inside, options);
    for (size_t i = 0; i < sizeof(affairs) / sizeof(affairs[0]); i++) {
        const attempt *row = &affairs[i];
        const char *answer = make_attempt(&inside, row);
        if ((has_luck || row->needs != LUCK) && !says(answer, "done")) {
            print_error("it cannot %s %s %s: %.200s\n", row->tool, row->a, row->b, answer);
            failures++;
        }
    }
    close_cell(&inside);
    assert_int_equal(failures, 0);
}

static void daily_affairs_go_on(void **state)
{
    (void)state;
    static const sandbox_bubblewrap kinds[] = {SANDBOX_BUBBLEWRAP_NEVER,
                                               SANDBOX_BUBBLEWRAP_REQUIRED};
    SKIP_WITHOUT_ANY();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        walls one;
        if (!is_wall_missing(kinds[i])) {
            make_walls(&one, kinds[i]);
            attend_to_affairs(&one.options, true);
        }
    }
}

static void daily_affairs_go_on_with_older_kernels(void **state)
{
    (void)state;
    walls one;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    sandbox_facts older = *sandbox_facts_of_machine();
    for (older.landlock_abi = 1; older.landlock_abi < 6; older.landlock_abi++) {
        sandbox_pretend(&older);
        make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
        attend_to_affairs(&one.options, false);
        sandbox_pretend(NULL);
    }
}

/* ---- what decides which of these cases are skipped ------------------------------------------- */

static bool file_says(const char *path, const char *word)
{
    char text[4096];
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[len] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return strstr(text, word) != NULL;
}

static bool succeeds(const char *const argv[])
{
    int status = 1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(nowhere, STDERR_FILENO);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Whoever overlooks what the machine can do would have most of this file skipped. So others are
 * asked: the kernel itself and bubblewrap itself. */
static void nothing_the_machine_can_do_is_overlooked(void **state)
{
    (void)state;
    const sandbox_facts *facts = sandbox_facts_of_machine();
#if defined(__x86_64__) || defined(__aarch64__)
    if (file_says("/proc/sys/kernel/seccomp/actions_avail", "kill_process")) {
        assert_true(facts->has_seccomp);
    }
#endif
    enum { LANDLOCK_CREATE_RULESET = 444, WHICH_VERSION = 1 };
    long landlock = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, WHICH_VERSION);
    assert_int_equal(facts->landlock_abi, landlock > 0 ? landlock : 0);
    if (succeeds((const char *const[]){"bwrap", "--unshare-all", "--die-with-parent", "--ro-bind",
                                       "/", "/", "true", NULL})) {
        assert_string_not_equal(facts->bubblewrap, "");
    }
#ifndef __SANITIZE_THREAD__ /* whose own thread stands in the way */
    if (succeeds((const char *const[]){"unshare", "--user", "true", NULL})) {
        assert_true(facts->has_user_namespaces);
    }
#endif
}

/* ---- what may be allowed --------------------------------------------------------------------- */

static void what_is_allowed_is_possible(void **state)
{
    (void)state;
    static const attempt net[] = {
        {"tcp", "tcp", "", NOTHING}, {"udp", "udp", "", NOTHING}, {"netlink", "0", "", NOTHING}};
    walls one;
    cell inside;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    one.options.has_net = true;
    open_cell(&inside, &one.options);
    for (size_t i = 0; i < sizeof(net) / sizeof(net[0]); i++) {
        assert_true(says(make_attempt(&inside, &net[i]), "done"));
    }
    expect(&inside, "unix", world.socket, "", "refused");
    expect(&inside, "packet", "", "", "refused");
    expect(&inside, "netlink", "4", "", "refused"); /* not the routes */
    expect(&inside, "chmod", "/dev/null", "", "refused");
    close_cell(&inside);

    one.options.has_net = false;
    one.options.has_unix_sockets = one.options.has_attributes = true;
    open_cell(&inside, &one.options);
    expect(&inside, "unix", world.socket, "", "done");
    if (sandbox_facts_of_machine()->landlock_abi >= 6) {
        expect(&inside, "abstract", world.abstract, "", "refused");
    }
    assert_true(says(make_attempt(&inside, &(attempt){"chmod", "@/rw/file", "", NOTHING}), "done"));
    assert_true(says(make_attempt(&inside, &(attempt){"tcp", "tcp", "", NOTHING}), "refused"));
    close_cell(&inside);
}

static void without_defaults_there_is_only_the_list(void **state)
{
    (void)state;
    cell self;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    static const sandbox_path paths[] = {
        {"/usr", false}, {"/lib", false}, {"/lib64", false}, {"/etc/hosts", false}};
    size_t count = access("/lib64", F_OK) == 0 ? 4 : 2;
    sandbox_options options = {.paths = paths,
                               .path_count = count,
                               .has_no_defaults = true,
                               .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER};
    open_cell(&self, &options);
    expect(&self, "read", "/etc/passwd", "", "refused");
    expect(&self, "write", "/dev/null", "", "refused");
    expect(&self, "list", "/usr/bin", "", "done");
    if (count == 4) {
        expect(&self, "read", "/etc/hosts", "", "done");
    }
    close_cell(&self);
}

static void listed_processes_and_devices_are_there(void **state)
{
    (void)state;
    static const sandbox_path paths[] = {{"/proc", false}, {"/dev/zero", true}};
    char environment[PATH];
    SKIP_WITHOUT_ANY();
    expand(environment, "/proc/%/environ");
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        sandbox_options options = {.paths = paths, .path_count = 2};
        cell self;
        options.bubblewrap = wrapped == 1 ? SANDBOX_BUBBLEWRAP_REQUIRED : SANDBOX_BUBBLEWRAP_NEVER;
        if (is_wall_missing(options.bubblewrap)) {
            continue;
        }
        open_cell(&self, &options);
        expect(&self, "list", "/proc", "", "done");
        expect(&self, "read", "/proc/self/status", "", "done");
        expect(&self, "read", "/proc/meminfo", "", "done");
        expect(&self, "open", environment, "", "refused"); /* also where its folder is shown */
        expect(&self, "zero", "1", "", "done");
        close_cell(&self);
    }
}

/* ---- what it is given ------------------------------------------------------------------------ */

static void nothing_of_ours_is_inherited(void **state)
{
    (void)state;
    walls one;
    cell self;
    int leaked = open("/etc/passwd", O_RDONLY); /* as a careless embedder does it */
    int far = fcntl(leaked, F_DUPFD, 700);
    assert_true(leaked > 2 && far >= 700);
    open_cell(&self, NULL);
    expect(&self, "descriptors", "", "", "done: 0");
    expect(&self, "identity", "", "", "done: uid");
    close_cell(&self);
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        sandbox_bubblewrap kind =
            wrapped == 1 ? SANDBOX_BUBBLEWRAP_REQUIRED : SANDBOX_BUBBLEWRAP_NEVER;
        if (is_wall_missing(kind)) {
            continue;
        }
        make_walls(&one, kind);
        one.options.user = bounded_user();
        open_cell(&self, &one.options);
        expect(&self, "descriptors", "", "", "done: 0");
        const char *answer = ask(&self, "identity", "", "");
        assert_non_null(strstr(answer, "privileges 1"));
        assert_null(strstr(answer, "uid 0 "));
        close_cell(&self);
    }
    close(leaked);
    close(far);
}

static void calls_by_foreign_numbers_kill(void **state)
{
    (void)state;
    walls one;
    cell self;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
#if defined(__x86_64__)
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    open_cell(&self, NULL);
    expect(&self, "foreign", "", "", "done");
    close_cell(&self);
    open_cell(&self, &one.options);
    assert_string_equal(ask(&self, "foreign", "", ""), "");
    assert_int_equal(self.signal, SIGSYS);
    close_cell(&self);
#else
    (void)one;
    (void)self;
    SKIP("this machine knows one set of system calls only");
#endif
}

/* `caches` drops the kernel's, as lack of memory does; -1: they stay. */
static void read_own_folder(int caches)
{
    walls one;
    cell self;
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    open_cell(&self, &one.options);
    if (caches >= 0) {
        assert_int_equal(write(caches, "2", 1), 1);
        close(caches);
    }
    expect(&self, "read", "/proc/self/status", "", "done");
    close_cell(&self);
}

static void its_own_folder_stays_open(void **state)
{
    (void)state;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    read_own_folder(-1);
}

static void its_own_folder_stays_open_when_caches_are_dropped(void **state)
{
    (void)state;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    int caches = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (caches < 0) {
        SKIP("the kernel's caches cannot be dropped by this user");
    }
    read_own_folder(caches);
}

/* ---- what cannot be had ---------------------------------------------------------------------- */

static void expect_refusal(const sandbox_options *options, const char *part)
{
    cell self;
    bay_diag diag = {0};
    assert_int_equal(try_cell(&self, options, &diag), BAY_ERR_SPAWN);
    if (strstr(diag.text, part) == NULL) {
        print_error("wanted %s, came %s\n", part, diag.text);
    }
    assert_non_null(strstr(diag.text, part));
    close_cell(&self);
}

static void what_the_machine_lacks_is_refused_by_name(void **state)
{
    (void)state;
    sandbox_facts bare = {0};
    walls one;
    cell self;
    char text[SANDBOX_TEXT_BYTES];
    open_cell(&self, NULL); /* libuv keeps two descriptors from the first child on */
    close_cell(&self);
    int before = open_descriptors();
    make_walls(&one, SANDBOX_BUBBLEWRAP_AUTO);
    sandbox_pretend(&bare);
    expect_refusal(&one.options, "no Landlock");
    expect_refusal(&one.options, "no seccomp");
    expect_refusal(&one.options, "bestEffort");
    one.options.bubblewrap = SANDBOX_BUBBLEWRAP_REQUIRED;
    expect_refusal(&one.options, "bubblewrap is not installed");
    one.options.bubblewrap = SANDBOX_BUBBLEWRAP_NEVER;
    one.options.processes = 5;
    sandbox_missing(&one.options, text);
    assert_non_null(strstr(text, geteuid() == 0 ? "root's processes" : "user namespaces"));
    one.options.user = "nobody";
    sandbox_missing(&one.options, text);
    assert_non_null(strstr(text, geteuid() == 0 ? "user namespaces" : "only root"));
    one.options.is_best_effort = true;
    one.options.user = NULL;
    open_cell(&self, &one.options); /* with what there is: limits */
    expect(&self, "core", "", "", "done: 0");
    close_cell(&self);
    sandbox_describe(&one.options, text);
    assert_string_equal(text, "resource limits");
    sandbox_pretend(NULL);
    sandbox_missing(&(sandbox_options){.bubblewrap = SANDBOX_BUBBLEWRAP_NEVER}, text);
    if (!is_wall_missing(SANDBOX_BUBBLEWRAP_NEVER)) {
        assert_string_equal(text, "");
        sandbox_describe(&(sandbox_options){.bubblewrap = SANDBOX_BUBBLEWRAP_NEVER}, text);
        assert_non_null(strstr(text, "Landlock"));
        assert_non_null(strstr(text, "seccomp, resource limits"));
    }
    assert_int_equal(open_descriptors(), before);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    int before = open_descriptors();
    SKIP_WITHOUT_ANY();
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        sandbox_bubblewrap kind =
            wrapped == 1 ? SANDBOX_BUBBLEWRAP_REQUIRED : SANDBOX_BUBBLEWRAP_NEVER;
        walls one;
        if (is_wall_missing(kind)) {
            continue;
        }
        make_walls(&one, kind);
        one.paths[1].path = "/nonexistent/folder";
        expect_refusal(&one.options, "/nonexistent/folder: No such file");
        make_walls(&one, kind);
        if (geteuid() == 0) {
            one.options.user = "patchbay-no-such-user";
            expect_refusal(&one.options, "there is no user \"patchbay-no-such-user\"");
        }
    }
    assert_int_equal(open_descriptors(), before);
}

static void too_many_paths_are_refused(void **state)
{
    (void)state;
    static sandbox_path many[SANDBOX_PATHS + 1];
    for (size_t i = 0; i <= SANDBOX_PATHS; i++) {
        many[i] = (sandbox_path){"/usr", false};
    }
    sandbox_options options = {.paths = many,
                               .path_count = SANDBOX_PATHS + 1,
                               .is_best_effort = true,
                               .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER};
    cell self;
    expect_refusal(&options, "more than 256 paths");
    options.path_count = SANDBOX_PATHS;
    open_cell(&self, &options);
    expect(&self, "echo", "", "", "done");
    close_cell(&self);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    walls one;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    sandbox_bubblewrap kind = sandbox_facts_of_machine()->bubblewrap[0] != '\0'
                                  ? SANDBOX_BUBBLEWRAP_REQUIRED
                                  : SANDBOX_BUBBLEWRAP_NEVER;
    make_walls(&one, kind);
    one.options.user = bounded_user();
    for (size_t at = 0; failing_memory_start(at); at++) {
        loop *on = NULL;
        process *made = NULL;
        const char *argv[] = {"true", NULL};
        sandbox_options *copy = sandbox_options_dup(&one.options);
        process_options options = {.argv = argv, .sandbox = copy};
        if (copy != NULL && loop_new(&on) == BAY_OK) {
            bay_err err = process_start(on, &options, &events, NULL, &made, NULL);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            process_free(made);
        }
        loop_free(on);
        mem_free(copy);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_machine_lacks_is_refused_by_name),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(nothing_the_machine_can_do_is_overlooked),
        cmocka_unit_test(daily_affairs_go_on),
        cmocka_unit_test(daily_affairs_go_on_with_older_kernels),
        cmocka_unit_test(what_is_allowed_is_possible),
        cmocka_unit_test(without_defaults_there_is_only_the_list),
        cmocka_unit_test(listed_processes_and_devices_are_there),
        cmocka_unit_test(nothing_of_ours_is_inherited),
        cmocka_unit_test(calls_by_foreign_numbers_kill),
        cmocka_unit_test(its_own_folder_stays_open),
        cmocka_unit_test(its_own_folder_stays_open_when_caches_are_dropped),
        cmocka_unit_test(too_many_paths_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
