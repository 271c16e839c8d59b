/* The binary with a server that puts a process into a session of its own: nothing is left, however
 * the binary ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 200 };

static char folder[] = "/tmp/behind.XXXXXX";
static char config[PATH];
static char number[PATH]; /* a pipe into which the stray writes its own */

static int open_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(config, sizeof(config), "%s/config.json", folder);
    (void)snprintf(number, sizeof(number), "%s/number", folder);
    assert_int_equal(mkfifo(number, 0600), 0);
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    (void)fprintf(
        file,
        "{\"listen\":\"127.0.0.1:0\",\"mcpServers\":{\"box\":{\"command\":\"sh\",\"args\":["
        "\"-c\",\"setsid sh -c 'echo $$$$ > %s; exec sleep 10 </dev/null >/dev/null 2>&1' & "
        "exec %s/escape_server\"]}}}",
        number, BAY_TEST_BINARY_DIR);
    fclose(file);
    return prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans come to us, and their end is seen */
}

static int close_folder(void **state)
{
    (void)state;
    (void)unlink(config);
    (void)unlink(number);
    return rmdir(folder);
}

static pid_t start_on(const char *const *arguments, int input)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        (void)dup2(input >= 0 ? input : nowhere, 0);
        (void)dup2(nowhere, 1);
        (void)dup2(nowhere, 2);
        execv(BAY_TEST_BINARY_DIR "/patchbay", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return pid;
}

static pid_t start(const char *const *arguments)
{
    return start_on(arguments, -1);
}

static pid_t stray(void)
{
    char text[32] = "";
    int fd = open(number, O_RDONLY | O_CLOEXEC); /* until it writes */
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

static void expect_nobody(pid_t program, pid_t left)
{
    bool is_seen = false;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0;) {
        if (pid == left) {
            is_seen = true;
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        assert_true(pid != program || !WIFEXITED(status) || WEXITSTATUS(status) == 0);
    }
    assert_true(is_seen);
}

static void a_command_leaves_nobody(void **state)
{
    (void)state;
    const char *arguments[] = {"patchbay", "list", "box", "-c", config, NULL};
    pid_t program = start(arguments);
    expect_nobody(program, stray());
}

static void end_gateway(int signal_number)
{
    const char *arguments[] = {"patchbay", "serve", "-c", config, NULL};
    pid_t program = start(arguments);
    pid_t left = stray();
    assert_int_equal(kill(program, signal_number), 0);
    expect_nobody(program, left);
}

static void a_gateway_that_is_ended_leaves_nobody(void **state)
{
    (void)state;
    end_gateway(SIGTERM);
}

static void a_gateway_that_is_killed_leaves_nobody(void **state)
{
    (void)state;
    end_gateway(SIGKILL);
}

static void a_gateway_on_a_pipe_leaves_nobody(void **state)
{
    (void)state;
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\","
        "\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    const char *arguments[] = {"patchbay", "stdio", "-c", config, NULL};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t program = start_on(arguments, ends[0]);
    assert_int_equal(write(ends[1], hello, strlen(hello)), (ssize_t)strlen(hello));
    pid_t left = stray();
    (void)close(ends[0]);
    (void)close(ends[1]); /* its client is gone */
    expect_nobody(program, left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_leaves_nobody),
        cmocka_unit_test(a_gateway_that_is_ended_leaves_nobody),
        cmocka_unit_test(a_gateway_that_is_killed_leaves_nobody),
        cmocka_unit_test(a_gateway_on_a_pipe_leaves_nobody),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
