/* A short run of ./dev chaos, whose own checks are the assertions: tests/chaos/run says what they
 * are. The seed is fixed, so that the order of the faults is the same each time. And the ledger of
 * its clients, against a gateway that loses the streams it began. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_chaos(const char *seconds, const char *seed)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("BAY_BUILD", BAY_TEST_BINARY_DIR, 1);
        execlp("python3", "python3", BAY_TEST_SOURCE_DIR "/tests/chaos/run", "--seconds", seconds,
               "--seed", seed, "--clients", "30", NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void every_call_has_one_answer_whatever_breaks(void **state)
{
    (void)state;
    assert_int_equal(run_chaos("20", "2"), 0);
}

/* The sums of clients whose GET for the rest of a stream gets this status. */
static void clients_judge(const char *status, const char *how, char *out, size_t size)
{
    int ends[2];
    int ended = -1;
    size_t len = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("BAY_BUILD", BAY_TEST_BINARY_DIR, 1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("python3", "python3", BAY_TEST_SOURCE_DIR "/tests/chaos/forgetful", status, how,
               NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], out + len, size - 1 - len)) > 0;) {
        len += (size_t)got;
    }
    out[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_int_equal(ended, 0);
}

/* Whoever refuses the rest of a stream has not said that its call did not run. */
static void a_stream_that_is_refused_says_nothing_of_its_call(void **state)
{
    static const struct {
        const char *status, *how, *sum;
    } rows[] = {
        {"400", NULL, " dropped=1 "},
        {"404", NULL, " dropped=1 "},
        {"400", "crash", " lost=1 "},
        {"404", "crash", " lost=1 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char sums[1024];
        clients_judge(rows[i].status, rows[i].how, sums, sizeof(sums));
        assert_non_null(strstr(sums, rows[i].sum));
        assert_non_null(strstr(sums, " failed=0 "));
        assert_non_null(strstr(sums, " dishonest=0\n"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_is_refused_says_nothing_of_its_call),
        cmocka_unit_test(every_call_has_one_answer_whatever_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
