/* Where the admin socket is looked for, and what is made of an answer that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/admin_client.h"

static char folder[] = "/tmp/find.XXXXXX";
static char path[64];

static void expect_paths(const char *first, const char *second)
{
    const char *const wanted[] = {first, second};
    char out[SOCKET_UNIX_PATH_BYTES];
    size_t count = second != NULL ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        assert_true(cli_admin_path(i, out));
        assert_string_equal(out, wanted[i]);
    }
    assert_false(cli_admin_path(count, out));
}

static const char usual[] = "/run/patchbay/admin.sock";

static void only_a_folder_of_ones_own_counts(void **state)
{
    (void)state;
    char wanted[128];
    char text[300] = "/tmp/";
    (void)unsetenv("XDG_RUNTIME_DIR");
    expect_paths(usual, NULL);
    static const char *const bad[] = {"", "tmp", ".", "/no/such/folder", "/dev/null"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(setenv("XDG_RUNTIME_DIR", bad[i], 1), 0);
        expect_paths(usual, NULL);
    }
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    (void)snprintf(wanted, sizeof(wanted), "%s/patchbay/admin.sock", folder);
    expect_paths(wanted, usual);
    for (size_t len = strlen(text); len < 100; len += 2) {
        memcpy(text + len, "./", 3);
    }
    (void)snprintf(text + 99, sizeof(text) - 99, "/%s", folder + 5);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", text, 1), 0);
    expect_paths("", usual); /* too long for a socket */
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
        expect_paths(usual, NULL);
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    (void)unsetenv("XDG_RUNTIME_DIR");
}

typedef struct peer {
    int listener;
    const char *answer; /* after the head of the request has come; NULL: none */
    bool stays;
} peer;

static void *be_peer(void *argument)
{
    peer *self = argument;
    char bytes[1000];
    size_t len = 0;
    int fd = accept(self->listener, NULL, NULL);
    while (len < sizeof(bytes) - 1) {
        ssize_t got = recv(fd, bytes + len, sizeof(bytes) - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
        bytes[len] = '\0';
        if (got <= 0 || strstr(bytes, "\r\n\r\n") != NULL) {
            break;
        }
    }
    if (self->answer != NULL) {
        (void)!send(fd, self->answer, strlen(self->answer), MSG_NOSIGNAL);
    }
    while (self->stays && recv(fd, bytes, sizeof(bytes), 0) > 0) {
    }
    close(fd);
    return NULL;
}

static cli_exit ask(const char *answer, bool stays, int *out_status, buf *body)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    pthread_t thread;
    cli_arguments arguments = {.command = CLI_STATUS, .socket_path = path, .timeout_ms = 60000};
    peer self = {.answer = answer, .stays = stays};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    self.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(self.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(self.listener, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_peer, &self), 0);
    if (stays) {
        arguments.timeout_ms = 50;
    }
    cli_exit code =
        cli_admin_ask(&arguments, STR("GET"), STR("/v1/status"), 1000, out_status, body);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(self.listener);
    assert_int_equal(unlink(path), 0);
    return code;
}

static void answers_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool stays;
        cli_exit code;
    } cases[] = {
        {"", true, CLI_EXIT_TIMEOUT},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", true, CLI_EXIT_TIMEOUT},
        {NULL, false, CLI_EXIT_PROTOCOL},
        {"SSH-2.0-x\r\n\r\n", false, CLI_EXIT_PROTOCOL},
        {"HTTP/1.1 200 OK\r\n", false, CLI_EXIT_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", false, CLI_EXIT_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", false, CLI_EXIT_FAILED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = 0;
        buf body;
        buf_init(&body, CLI_ADMIN_ANSWER_BYTES);
        cli_exit code = ask(cases[i].answer, cases[i].stays, &status, &body);
        if (code != cases[i].code) {
            fail_msg("case %zu: %d, not %d", i, (int)code, (int)cases[i].code);
        }
        buf_fini(&body);
    }
}

static void a_whole_answer(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 422 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        "HTTP/1.1 422 No\r\nConnection: close\r\n\r\n{}",
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        int status = 0;
        buf body;
        buf_init(&body, CLI_ADMIN_ANSWER_BYTES);
        assert_int_equal(ask(answers[i], false, &status, &body), CLI_EXIT_OK);
        assert_int_equal(status, 422);
        assert_true(str_eq(buf_view(&body), STR("{}")));
        buf_fini(&body);
    }
}

static int open_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/socket", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_folder_of_ones_own_counts),
        cmocka_unit_test(answers_that_are_none),
        cmocka_unit_test(a_whole_answer),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
