/* What files and programs give: whole, or not at all, and in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/capture.h"

enum { SOON_MS = 100, LATE_MS = 20000 };

static const char *run(uint32_t timeout_ms, char out[8], size_t *out_len, const char *one,
                       const char *two, const char *three, const char *four)
{
    char *argv[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)two, (char *)(uintptr_t)three,
                    (char *)(uintptr_t)four, NULL};
    return capture_program(argv, timeout_ms, out, 8, out_len);
}

static void test_programs_that_give_nothing(void **state)
{
    char out[8];
    size_t len = 99;
    (void)state;
    assert_string_equal(run(LATE_MS, out, &len, "/nowhere/x", NULL, NULL, NULL), strerror(ENOENT));
    assert_string_equal(run(LATE_MS, out, &len, "/bin/false", NULL, NULL, NULL), "it failed");
    assert_string_equal(run(LATE_MS, out, &len, "/bin/sh", "-c", "echo abc; exit 3", NULL),
                        "it failed");
    assert_string_equal(run(LATE_MS, out, &len, "/bin/sh", "-c", "kill -9 $$", NULL), "it failed");
    assert_string_equal(run(LATE_MS, out, &len, "/bin/echo", "12345678", NULL, NULL),
                        "it is too long");
    assert_string_equal(run(SOON_MS, out, &len, "/bin/sleep", "1000", NULL, NULL),
                        "it did not end in time");
    /* its stdout is closed, and it goes on */
    assert_string_equal(run(SOON_MS, out, &len, "/bin/sh", "-c", "exec >&-; exec sleep 1000", NULL),
                        "it did not end in time");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, nor a dead one */
    assert_int_equal(errno, ECHILD);
}

/* What a program started goes with it, though it holds its stdout. */
static void test_descendants_of_a_program_that_is_ended(void **state)
{
    char folder[] = "/tmp/bay-capture-XXXXXX";
    char command[128], path[64], out[8];
    size_t len = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pid", folder);
    snprintf(command, sizeof(command), "sleep 1000 & echo $! >%s; echo 123456789", path);
    assert_string_equal(run(LATE_MS, out, &len, "/bin/sh", "-c", command, NULL), "it is too long");
    FILE *file = fopen(path, "r");
    int pid = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_true(pid > 1);
    while (kill(pid, 0) == 0) { /* until init has reaped it */
        char status[64], text[512] = "";
        snprintf(status, sizeof(status), "/proc/%d/status", pid);
        int at = open(status, O_RDONLY | O_CLOEXEC);
        if (at >= 0) {
            assert_true(read(at, text, sizeof(text) - 1) >= 0);
            close(at);
        }
        if (strstr(text, "State:\tZ") != NULL) {
            break;
        }
    }
    unlink(path);
    rmdir(folder);
}

static void test_programs(void **state)
{
    char out[8];
    size_t len = 99;
    (void)state;
    assert_null(run(LATE_MS, out, &len, "/bin/true", NULL, NULL, NULL));
    assert_int_equal(len, 0);
    assert_null(run(LATE_MS, out, &len, "/bin/echo", "1234567", NULL, NULL));
    assert_int_equal(len, 8);
    assert_memory_equal(out, "1234567\n", 8);
    assert_null(run(LATE_MS, out, &len, "/bin/sh", "-c", "cat; echo said >&2; echo $#$0", "*"));
    assert_int_equal(len, 3);
    assert_memory_equal(out, "0*\n", 3); /* no stdin, no stderr, no pattern of a shell */
}

static void test_files(void **state)
{
    char path[] = "/tmp/bay-capture-XXXXXX";
    char fifo[64], out[4];
    size_t len = 99;
    (void)state;
    assert_string_equal(capture_file("/nowhere", LATE_MS, out, sizeof(out), &len),
                        strerror(ENOENT));
    assert_string_equal(capture_file("/tmp", LATE_MS, out, sizeof(out), &len), strerror(EISDIR));
    assert_string_equal(capture_file("/dev/zero", LATE_MS, out, sizeof(out), &len),
                        "it is too long");
    int file = mkstemp(path);
    assert_int_equal(write(file, "abcd", 4), 4);
    assert_null(capture_file(path, LATE_MS, out, sizeof(out), &len));
    assert_int_equal(len, 4);
    assert_memory_equal(out, "abcd", 4);
    assert_int_equal(write(file, "e", 1), 1);
    close(file);
    assert_string_equal(capture_file(path, LATE_MS, out, sizeof(out), &len), "it is too long");
    unlink(path);
    snprintf(fifo, sizeof(fifo), "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_string_equal(capture_file(fifo, SOON_MS, out, sizeof(out), &len),
                        "it did not end in time"); /* nobody writes */
    assert_string_equal(capture_file(fifo, 0, out, sizeof(out), &len), "it did not end in time");
    unlink(fifo);
}

static void test_files_behind_other_text(void **state)
{
    buf text;
    char path[] = "/tmp/bay-capture-XXXXXX";
    (void)state;
    int file = mkstemp(path);
    assert_int_equal(write(file, "abcd", 4), 4);
    close(file);
    buf_init(&text, 6);
    buf_lit(&text, "12");
    assert_null(capture_file_into(path, 0, &text));
    assert_true(str_eq(buf_view(&text), STR("12abcd")));
    assert_string_equal(capture_file_into(path, 0, &text), "it is too long");
    buf_clear(&text);
    assert_string_equal(capture_file_into("/dev/zero", 0, &text), "it is too long");
    assert_int_equal(text.len, 0);
    buf_fini(&text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_that_give_nothing),
        cmocka_unit_test(test_descendants_of_a_program_that_is_ended),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_files_behind_other_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
