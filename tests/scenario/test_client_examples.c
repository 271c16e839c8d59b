/* The example clients, each as a program: they ask the example server, by command and by URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/skipped.h"

#define EXAMPLES BAY_TEST_BINARY_DIR "/examples/"

static const char *const programs[] = {
    "client",
    "client_epoll",
    "client_libuv",
#ifdef BAY_HAS_GLIB
    "client_glib",
#endif
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

/* Runs it; what it prints on both streams goes to `out`. Returns its exit status. */
static int run(const char *program, const char *target, char *out, size_t size)
{
    char path[512];
    int ends[2];
    snprintf(path, sizeof(path), EXAMPLES "%s", program);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execl(path, path, target, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t got;
    while ((got = read(ends[0], out + len, size - 1 - len)) > 0) {
        len += (size_t)got;
    }
    out[len] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_answers(const char *program, const char *target)
{
    char out[4096];
    if (run(program, target, out, sizeof(out)) != 0) {
        fail_msg("%s %s: %s", program, target, out);
    }
    bool is_one = strcmp(program, "client") == 0;
    assert_non_null(strstr(out, "Tokyo, Japan: 16"));
    assert_true((strstr(out, "Oslo, Norway: 6") != NULL) == !is_one);
    assert_true((strstr(out, "Cairo, Egypt: 22") != NULL) == !is_one);
}

static void nobody_there_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        char out[4096];
        assert_int_equal(run(programs[i], "stdio:/nonexistent", out, sizeof(out)), 1);
        assert_non_null(strstr(out, "/nonexistent"));
        assert_int_equal(run(programs[i], "nowhere", out, sizeof(out)), 1);
        assert_non_null(strstr(out, "nowhere"));
    }
}

static void a_command_is_asked(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        assert_answers(programs[i], "stdio:" EXAMPLES "weather");
    }
}

static void a_url_is_asked(void **state)
{
    char line[256] = "";
    char url[256];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        execl(EXAMPLES "weather", "weather", "--http", "127.0.0.1:0", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    assert_non_null(fgets(line, sizeof(line), said));
    char *at = strstr(line, "http://");
    assert_non_null(at);
    snprintf(url, sizeof(url), "%.*s", (int)strcspn(at, "\n"), at);
    for (int i = 0; i < PROGRAMS; i++) {
        assert_answers(programs[i], url);
    }
    kill(server, SIGTERM);
    fclose(said);
    int status = 0;
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#ifndef BAY_HAS_GLIB
SKIPPED(the_one_for_glib, "GLib is not installed: its example was neither built nor run")
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_there_is_told),
        cmocka_unit_test(a_command_is_asked),
        cmocka_unit_test(a_url_is_asked),
#ifndef BAY_HAS_GLIB
        cmocka_unit_test(the_one_for_glib),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
