/* How much a sandboxed server may use, and that nothing of it is left when its owner is killed.
 * Each amount is first had without a sandbox, or the test could not fail. */
#include "sandbox_rig.h"

/* ---- amounts --------------------------------------------------------------------------------- */

static void memory_is_bounded_by_whatever_name(void **state)
{
    (void)state;
    static const char *const names[] = {"heap",  "reserve", "shared", "growing",
                                        "memfd", "segment", "zero"};
    walls one;
    cell inside;
    cell outside;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    one.options.memory_bytes = 64 << 20;
    open_cell(&inside, &one.options);
    open_cell(&outside, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool may_lack = strcmp(names[i], "memfd") == 0 || strcmp(names[i], "segment") == 0;
        if (says(ask(&outside, names[i], "100", ""), "done")) {
            expect(&inside, names[i], "100", "", "refused");
        } else {
            assert_true(may_lack); /* a container may keep these two from all that runs in it */
            printf("skipped: sandbox: memory by %s is not to be had here at all\n", names[i]);
        }
    }
    expect(&inside, "heap", "20", "", "done");
    expect(&inside, "raise_limit", "2", "", "refused"); /* RLIMIT_DATA */
    expect(&outside, "raise_limit", "2", "", "done");
    close_cell(&inside);
    close_cell(&outside);
}

static void processes_are_bounded(const sandbox_bubblewrap bubblewrap)
{
    walls one;
    cell inside;
    cell other;
    make_walls(&one, bubblewrap);
    one.options.processes = 20;
    one.options.user = bounded_user();
    open_cell(&other, NULL);
    expect(&other, "fork", "60", "", "done: 60");
    close_cell(&other);
    open_cell(&inside, &one.options);
    open_cell(&other, &one.options); /* counts for itself */
    for (int round = 0; round < 2; round++) {
        const char *answer = ask(&inside, "fork", "60", "");
        assert_true(says(answer, "refused: "));
        assert_in_range(strtol(answer + 9, NULL, 10), 15, 20);
        expect(&inside, "fork", "10", "", "done");
    }
    expect(&other, "fork", "10", "", "done");
    expect(&inside, "read", "/etc/passwd", "", "done");
    close_cell(&inside);
    close_cell(&other);
}

static void a_fork_bomb_ends_at_the_bound(void **state)
{
    (void)state;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    if (counting_lack() != NULL) {
        SKIP(counting_lack());
    }
    processes_are_bounded(SANDBOX_BUBBLEWRAP_NEVER);
}

static void a_fork_bomb_ends_at_the_bound_in_bubblewrap(void **state)
{
    (void)state;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_REQUIRED);
    if (counting_lack() != NULL) {
        SKIP(counting_lack());
    }
    processes_are_bounded(SANDBOX_BUBBLEWRAP_REQUIRED);
}

static void processor_time_ends(void **state)
{
    (void)state;
    walls one;
    cell self;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    open_cell(&self, NULL);
    expect(&self, "burn", "3", "deaf", "done");
    close_cell(&self);
    one.options.cpu_seconds = 1;
    open_cell(&self, &one.options);
    expect(&self, "echo", "", "", "done");
    assert_string_equal(ask(&self, "burn", "3", "deaf"), "");
    assert_int_equal(self.signal, SIGKILL); /* it was deaf to SIGXCPU */
    close_cell(&self);
}

static void cores_and_descriptors_are_bounded(void **state)
{
    (void)state;
    walls one;
    cell inside;
    cell outside;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    one.options.cpus = 1;
    one.options.files = 20;
    open_cell(&outside, NULL);
    open_cell(&inside, &one.options);
    expect(&outside, "files", "60", "", "done");
    expect(&inside, "files", "60", "", "refused");
    expect(&inside, "files", "10", "", "done");
    expect(&inside, "cores", "", "", "done: 1\"");
    expect(&outside, "affinity", "0", "", "done");
    expect(&inside, "affinity", "0", "", "refused");
    expect(&inside, "core", "", "", "done: 0");
    if (says(ask(&outside, "cores", "", ""), "done: 1\"")) {
        printf("skipped: sandbox: this machine has one core: there is nothing to bound\n");
    }
    close_cell(&inside);
    close_cell(&outside);
}

/* ---- its end --------------------------------------------------------------------------------- */

static _Noreturn void be_owner(const sandbox_options *options, int report_fd)
{
    loop *on = NULL;
    process *made = NULL;
    const char *argv[] = {ESCAPE_SERVER, NULL};
    process_options child = {.argv = argv, .sandbox = options};
    if (loop_new(&on) != BAY_OK ||
        process_start(on, &child, &events, NULL, &made, NULL) != BAY_OK) {
        _exit(1);
    }
    int pid = process_id(made);
    if (write(report_fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid)) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

/* Nobody of its group is left, at whatever stage of its start its owner was killed. */
static void kill_owner_of(const sandbox_options *options, int patience_us)
{
    int ends[2];
    int pid = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t owner = fork();
    if (owner == 0) {
        be_owner(options, ends[1]);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
    close(ends[0]);
    usleep((useconds_t)patience_us);
    (void)kill(owner, SIGKILL);
    (void)waitpid(owner, NULL, 0);
    bool is_left = true;
    for (int i = 0; i < 5000 && is_left; i++) {
        usleep(1000); /* bounds a broken test only */
        while (waitpid(-pid, NULL, WNOHANG) > 0) {
        }
        is_left = kill(-pid, 0) == 0;
    }
    (void)kill(-pid, SIGKILL);
    assert_false(is_left);
}

static void when_its_owner_is_killed_it_is_gone(void **state)
{
    (void)state;
    SKIP_WITHOUT_ANY();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* orphans come to us: we see them */
    for (int kind = 0; kind < 4; kind++) {
        sandbox_bubblewrap bubblewrap =
            kind >= 2 ? SANDBOX_BUBBLEWRAP_REQUIRED : SANDBOX_BUBBLEWRAP_NEVER;
        walls one;
        if (is_wall_missing(bubblewrap) || (kind % 2 == 1 && is_counting_missing())) {
            continue;
        }
        make_walls(&one, bubblewrap);
        one.options.processes = kind % 2 == 1 ? 50 : 0; /* with another user and a namespace */
        one.options.user = kind % 2 == 1 ? bounded_user() : NULL;
        for (int round = 0; round < 20; round++) {
            kill_owner_of(&one.options, round * 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_bounded_by_whatever_name),
        cmocka_unit_test(a_fork_bomb_ends_at_the_bound),
        cmocka_unit_test(a_fork_bomb_ends_at_the_bound_in_bubblewrap),
        cmocka_unit_test(processor_time_ends),
        cmocka_unit_test(cores_and_descriptors_are_bounded),
        cmocka_unit_test(when_its_owner_is_killed_it_is_gone),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
