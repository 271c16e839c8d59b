/* What a server is, apart from what it says. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "trust/identity.h"

static void urls_are_their_origin(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"https://A.example/mcp?token=1#x", "url https://a.example:443"},
        {"HTTP://user:secret@a.example:8080/", "url http://a.example:8080"},
        {"http://[::1]:80/x", "url http://[::1]:80"},
        {"ftp://a.example/", NULL},
        {"https:///x", NULL},
        {"no url", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf out;
        buf_init(&out, TRUST_IDENTITY_BYTES);
        bay_err err = trust_identity_url(str_of(rows[i][0]), &out);
        assert_int_equal(err, rows[i][1] != NULL ? BAY_OK : BAY_ERR_INVALID);
        if (err == BAY_OK) {
            assert_true(str_eq(buf_view(&out), str_of(rows[i][1])));
        }
        buf_fini(&out);
    }
}

#ifndef BAY_NO_TLS
static char folder[] = "/tmp/patchbay-identity-XXXXXX";

static void write_file(const char *name, const char *text, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
}

static void identity_of(const char *const *argv, char out[TRUST_IDENTITY_BYTES])
{
    buf text;
    bay_diag diag = {0};
    buf_init(&text, TRUST_IDENTITY_BYTES);
    bay_err err = trust_identity_command(argv, folder, folder, &text, &diag);
    if (err != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    snprintf(out, TRUST_IDENTITY_BYTES, "%.*s", (int)text.len, text.at);
    buf_fini(&text);
}

static void programs_are_their_bytes_and_arguments(void **state)
{
    (void)state;
    char first[TRUST_IDENTITY_BYTES];
    char again[TRUST_IDENTITY_BYTES];
    const char *const plain[] = {"tool", "script.js", "--x", NULL};
    const char *const other[] = {"tool", "script.js", "--y", NULL};
    const char *const glued[] = {"tool", "script.js--x", NULL};
    assert_non_null(mkdtemp(folder));
    write_file("tool", "one", 0755);
    write_file("script.js", "script", 0644);
    identity_of(plain, first);
    assert_non_null(strstr(first,
                           "command sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0"
                           "add73ff431ed arguments sha256:"));
    identity_of(plain, again);
    assert_string_equal(first, again);
    identity_of(other, again);
    assert_string_not_equal(first, again);
    identity_of(glued, again);
    assert_string_not_equal(first, again);
    write_file("script.js", "another", 0644);
    identity_of(plain, again);
    assert_string_not_equal(first, again);
    write_file("script.js", "script", 0644);
    write_file("tool", "two", 0755);
    identity_of(plain, again);
    assert_string_not_equal(first, again);
}

static void what_is_no_program_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"no-such-program", "script.js", "./none", "", "/"};
    buf text;
    buf_init(&text, TRUST_IDENTITY_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *const argv[] = {names[i], NULL};
        bay_diag diag = {0};
        assert_int_equal(trust_identity_command(argv, folder, folder, &text, &diag),
                         BAY_ERR_NOT_FOUND);
        assert_true(diag.text[0] != '\0');
    }
    buf_fini(&text);
}

static void memory_may_fail(void **state)
{
    (void)state;
    const char *const argv[] = {"tool", "script.js", NULL};
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf text;
        buf_init(&text, TRUST_IDENTITY_BYTES);
        bay_err err = trust_identity_command(argv, folder, folder, &text, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        buf_fini(&text);
        failing_memory_check();
    }
}

static int tear_down(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof(path), "%s/tool", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/script.js", folder);
    unlink(path);
    return rmdir(folder);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_their_origin),
#ifndef BAY_NO_TLS
        cmocka_unit_test(programs_are_their_bytes_and_arguments),
        cmocka_unit_test(what_is_no_program_is_told),
        cmocka_unit_test(memory_may_fail),
#endif
    };
#ifndef BAY_NO_TLS
    return cmocka_run_group_tests(tests, NULL, tear_down);
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
