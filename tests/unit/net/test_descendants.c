/* What a child leaves running: it ends with its child, whatever it did to get away, and with us. */
#include "support/net_test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "net/descendants.h"
#include "net/process.h"

typedef struct server {
    loop *loop;
    process *process;
    int stray; /* as it says */
    int exits;
} server;

static void on_line(void *user, bay_str line)
{
    server *self = user;
    if (line.len > 0 && self->stray == 0) {
        char text[20];
        (void)snprintf(text, sizeof(text), "%.*s", BAY_STR(line));
        self->stray = (int)strtol(text, NULL, 10);
    }
}

static void on_exited(void *user, int status, int number)
{
    (void)status;
    (void)number;
    ((server *)user)->exits++;
}

static const process_events events = {.line = on_line, .exited = on_exited};

/* The stray says its number and then lets go of the pipes; 5 s bound a test that fails. */
#define DEAF "trap '' HUP INT TERM; "

static const char in_its_own_session[] =
    "setsid sh -c \"" DEAF "echo \\$\\$; exec sleep 5 </dev/null "
    ">/dev/null 2>&1\" & read line";
static const char twice_removed[] = "(setsid sh -c '(setsid sh -c \"echo \\$\\$; exec env -i sleep "
                                    "30 </dev/null >/dev/null 2>&1\" &)' "
                                    "&) ; read line";
static const char with_the_pipes[] = "setsid sh -c 'echo $$; exec sleep 5' & read line";
static const char exits_at_once[] =
    "setsid sh -c 'sleep 5; exit 9' </dev/null >/dev/null 2>&1 & exit 3";

enum { LEFT_ALONE = 9 };

static void start_server(server *self, loop *on, const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    bay_diag diag = {0};
    *self = (server){.loop = on};
    assert_int_equal(
        process_start(on, &(process_options){.argv = argv}, &events, self, &self->process, &diag),
        BAY_OK);
}

static void wait_for_stray(server *self)
{
    turn_until(self->loop, self->stray > 0);
}

/* Orphans are ours here, so that their end can be waited for. */
static void expect_killed(int stray)
{
    int status = 0;
    assert_int_equal(waitpid(stray, &status, 0), stray);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void expect_alive(int pid)
{
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(waitpid(pid, NULL, WNOHANG) <= 0, true);
}

static void who_left_its_session_ends_with_its_server(void **state)
{
    (void)state;
    static const char *const scripts[] = {in_its_own_session, twice_removed, with_the_pipes};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        server self;
        loop *on = test_loop();
        start_server(&self, on, scripts[i]);
        wait_for_stray(&self);
        expect_alive(self.stray);
        process_close(self.process, 60000, 60000); /* its stdin ends */
        turn_until(on, self.exits == 1);
        expect_killed(self.stray);
        process_free(self.process);
        loop_free(on);
    }
}

static void a_server_that_ends_by_itself_leaves_nobody(void **state)
{
    (void)state;
    server self;
    loop *on = test_loop();
    start_server(&self, on, exits_at_once);
    turn_until(on, self.exits == 1);
    int status = 0;
    while (waitpid(-1, &status, 0) > 0) {
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == LEFT_ALONE);
    }
    assert_int_equal(errno, ECHILD);
    process_free(self.process);
    loop_free(on);
}

static void a_killed_server_takes_them_along(void **state)
{
    (void)state;
    server self;
    loop *on = test_loop();
    start_server(&self, on, in_its_own_session);
    wait_for_stray(&self);
    process_free(self.process); /* now, and without another event */
    loop_free(on);
    expect_killed(self.stray);
}

static void those_of_other_servers_stay(void **state)
{
    (void)state;
    server one;
    server other;
    loop *on = test_loop();
    start_server(&one, on, in_its_own_session);
    start_server(&other, on, twice_removed);
    wait_for_stray(&one);
    wait_for_stray(&other);
    process_close(one.process, 60000, 60000);
    turn_until(on, one.exits == 1);
    expect_killed(one.stray);
    expect_alive(other.stray);
    expect_alive(process_id(other.process));
    process_close(other.process, 60000, 60000);
    turn_until(on, other.exits == 1);
    expect_killed(other.stray);
    process_free(one.process);
    process_free(other.process);
    loop_free(on);
}

/* A limit that its children shall have too cannot be set above the hard one. */
static void where_there_is_no_room_for_a_mark_all_goes_on(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit low = {1000, 1000};
        struct rlimit now = {0, 0};
        int failures = setrlimit(RLIMIT_RTTIME, &low) != 0;
        descendants_wear(descendants_mark());
        failures += getrlimit(RLIMIT_RTTIME, &now) != 0 || now.rlim_cur != 999;
        descendants_kill(descendants_mark()); /* nobody, and not us */
        descendants_kill(0);
        _exit(failures);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void marks_differ(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t mark = descendants_mark();
        assert_true(mark != last && mark > (1ULL << 62) && mark < (1ULL << 63));
        last = mark;
    }
}

/* ---- our own end ----------------------------------------------------------------------------- */

static _Noreturn void be_owner(int report_fd, bool is_killed)
{
    server self;
    loop *on = NULL;
    if (descendants_watch() != BAY_OK || loop_new(&on) != BAY_OK) {
        _exit(1);
    }
    start_server(&self, on, in_its_own_session);
    wait_for_stray(&self);
    if (write(report_fd, &self.stray, sizeof(self.stray)) != (ssize_t)sizeof(self.stray)) {
        _exit(1);
    }
    while (is_killed) {
        pause();
    }
    _exit(0); /* without a word to its server */
}

static void when_we_end_nobody_is_left(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int ends[2];
        int stray = 0;
        assert_int_equal(pipe(ends), 0);
        pid_t owner = fork();
        assert_true(owner >= 0);
        if (owner == 0) {
            be_owner(ends[1], kind == 0);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], &stray, sizeof(stray)), sizeof(stray));
        close(ends[0]);
        if (kind == 0) {
            assert_int_equal(kill(owner, SIGKILL), 0);
        }
        assert_int_equal(waitpid(owner, NULL, 0), owner);
        bool is_seen = false;
        int status = 0;
        for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0;) { /* the watcher ends, too */
            if (pid == stray) {
                is_seen = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            }
        }
        assert_true(is_seen);
    }
}

static int adopt_orphans(void **state)
{
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_there_is_no_room_for_a_mark_all_goes_on),
        cmocka_unit_test(marks_differ),
        cmocka_unit_test(who_left_its_session_ends_with_its_server),
        cmocka_unit_test(a_server_that_ends_by_itself_leaves_nobody),
        cmocka_unit_test(a_killed_server_takes_them_along),
        cmocka_unit_test(those_of_other_servers_stay),
        cmocka_unit_test(when_we_end_nobody_is_left),
    };
    return cmocka_run_group_tests(tests, adopt_orphans, NULL);
}
