/* Who is at the other end of a Unix socket: a process of another user, one that we started, one
 * that hides it, one that has ended. The tests run in a child of this program, whose parent is the
 * process that they did not start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/descendants.h"
#include "net/peer_process.h"
#include "support/skipped.h"

enum { NOBODY = 65534 };

static char folder[] = "/tmp/peer.XXXXXX";
static struct sockaddr_un where = {.sun_family = AF_UNIX};
static int listener;
static int ask[2];  /* the stranger connects for each byte, and leaves … */
static int done[2]; /* … when it is told so */

static int connect_now(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&where, sizeof(where)) != 0) {
        _exit(9);
    }
    return fd;
}

static int accepted(void)
{
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Connects as `become` has made it, and stays until the test is through with it. */
static peer_standing standing_of_child(void (*become)(void))
{
    int stay[2];
    assert_int_equal(pipe(stay), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        close(stay[1]);
        become();
        (void)connect_now();
        (void)!read(stay[0], &byte, 1);
        _exit(0);
    }
    close(stay[0]);
    int fd = accepted();
    peer_standing standing = peer_process_check(fd);
    close(fd);
    close(stay[1]);
    (void)waitpid(pid, NULL, 0);
    return standing;
}

static void stay_as_it_is(void)
{
}

static void become_nobody(void)
{
    if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        _exit(9);
    }
}

/* Of a session of its own, and its parents have ended when it goes on. */
static void leave_parents(void)
{
    if (fork() != 0) {
        _exit(0);
    }
    (void)setsid();
    pid_t parent = getpid();
    if (fork() != 0) {
        _exit(0);
    }
    while (getppid() == parent) {
        (void)sched_yield();
    }
}

static void leave_with_the_mark(void)
{
    descendants_wear(descendants_mark());
    leave_parents();
}

static void leave_and_drop_the_mark(void)
{
    struct rlimit limit;
    leave_with_the_mark();
    if (getrlimit(RLIMIT_RTTIME, &limit) != 0) {
        _exit(9);
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_RTTIME, &limit) != 0) {
        _exit(9);
    }
}

static void a_process_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        SKIP("only root can be another user");
    }
    assert_int_equal(standing_of_child(become_nobody), PEER_OTHER_USER);
}

static void a_process_that_we_started(void **state)
{
    (void)state;
    assert_int_equal(standing_of_child(stay_as_it_is), PEER_DESCENDANT);
}

static void one_whose_parents_have_ended(void **state)
{
    (void)state;
    assert_int_equal(standing_of_child(leave_with_the_mark), PEER_DESCENDANT);
}

static void one_that_dropped_the_mark(void **state)
{
    (void)state;
    assert_int_equal(standing_of_child(leave_and_drop_the_mark), PEER_UNDECIDED);
}

static void one_that_has_ended(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)connect_now();
        _exit(0);
    }
    int fd = accepted();
    siginfo_t about;
    assert_int_equal(waitid(P_PID, (id_t)pid, &about, WEXITED | WNOWAIT), 0);
    assert_int_not_equal(peer_process_check(fd), PEER_ADMITTED); /* not reaped yet … */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(peer_process_check(fd), PEER_UNDECIDED); /* … and its number is free */
    close(fd);
}

static void what_is_no_unix_socket(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(peer_process_check(ends[0]), PEER_UNDECIDED);
    assert_int_equal(peer_process_check(-1), PEER_UNDECIDED);
    close(ends[0]);
    close(ends[1]);
}

static void ourselves(void **state)
{
    (void)state;
    int own = connect_now();
    int fd = accepted();
    assert_int_equal(peer_process_check(fd), PEER_ADMITTED);
    close(fd);
    close(own);
}

static void a_process_that_we_did_not_start(void **state)
{
    (void)state;
    assert_int_equal(write(ask[1], "c", 1), 1);
    int fd = accepted();
    assert_int_equal(peer_process_check(fd), PEER_ADMITTED);
    close(fd);
    assert_int_equal(write(done[1], "d", 1), 1);
}

static void be_the_stranger(pid_t tests)
{
    char byte;
    while (read(ask[0], &byte, 1) == 1) {
        int fd = connect_now();
        (void)!read(done[0], &byte, 1);
        close(fd);
    }
    (void)tests;
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_another_user),
        cmocka_unit_test(a_process_that_we_started),
        cmocka_unit_test(one_whose_parents_have_ended),
        cmocka_unit_test(one_that_dropped_the_mark),
        cmocka_unit_test(one_that_has_ended),
        cmocka_unit_test(what_is_no_unix_socket),
        cmocka_unit_test(ourselves),
        cmocka_unit_test(a_process_that_we_did_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    if (mkdtemp(folder) == NULL || chmod(folder, 0711) != 0) {
        return 9;
    }
    (void)snprintf(where.sun_path, sizeof(where.sun_path), "%s/name", folder);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&where, sizeof(where)) != 0 ||
        chmod(where.sun_path, 0666) != 0 || listen(listener, 8) != 0 || pipe(ask) != 0 ||
        pipe(done) != 0) {
        return 9;
    }
    pid_t tests = fork();
    if (tests == 0) {
        close(ask[0]);
        close(done[0]);
        exit(run_all());
    }
    close(ask[1]);
    close(done[1]);
    be_the_stranger(tests);
    int status = 9;
    (void)waitpid(tests, &status, 0);
    (void)unlink(where.sun_path);
    (void)rmdir(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}
