/* A short run of ./dev chaos, whose own checks are the assertions: tests/chaos/run says what they
 * are. The seed is fixed, so that the order of the faults is the same each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_one_answer_whatever_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
