/* status, reload and drain as a person runs them, against the built gateway; and who is refused:
 * another user, and what the gateway has started, wherever that went. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/skipped.h"

enum { TEXT_BYTES = 64 * 1024, PATH = 120, ARGUMENTS = 16, NOBODY = 65534 };

static const char binary[] = BAY_TEST_BINARY_DIR "/patchbay";
static char folder[] = "/tmp/operate.XXXXXX";
static char config[PATH];
static char socket_path[PATH];
static char script[PATH];
static char told[PATH]; /* a pipe into which what the gateway started writes */

typedef struct run {
    pid_t pid;
    int out; /* stdout and stderr */
    char text[TEXT_BYTES];
    size_t len;
    int code;
} run;

/* ---- programs -------------------------------------------------------------------------------- */

static void start_as(run *self, uid_t user, int columns, const char *const *arguments)
{
    int ends[2];
    *self = (run){0};
    if (columns > 0) {
        struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
        assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &size), 0);
    } else {
        assert_int_equal(pipe(ends), 0);
    }
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(open("/dev/null", O_RDONLY), 0);
        (void)dup2(ends[1], 1);
        (void)dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        if (chdir("/") != 0 ||
            (user != 0 && (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0))) {
            _exit(126);
        }
        execv(binary, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    self->out = ends[0];
}

/* Until `part` is there; NULL: until it has ended. */
static void follow(run *self, const char *part)
{
    while (part == NULL || strstr(self->text, part) == NULL) {
        struct pollfd at = {.fd = self->out, .events = POLLIN};
        assert_true(poll(&at, 1, 60000) > 0);
        ssize_t got = read(self->out, self->text + self->len, TEXT_BYTES - 1 - self->len);
        if (got <= 0) {
            break;
        }
        self->len += (size_t)got;
        self->text[self->len] = '\0';
    }
    if (part != NULL && strstr(self->text, part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, self->text);
    }
}

static void finish(run *self)
{
    int status = 0;
    follow(self, NULL);
    close(self->out);
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    self->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect_run(uid_t user, int columns, int code, const char *part,
                       const char *const *arguments)
{
    run self;
    start_as(&self, user, columns, arguments);
    finish(&self);
    if (self.code != code || strstr(self.text, part) == NULL) {
        fail_msg("%s: code %d, not %d, or no \"%s\" in: %s", arguments[1], self.code, code, part,
                 self.text);
    }
}

#define EXPECT(code, part, ...)                                                                    \
    expect_run(0, 0, code, part,                                                                   \
               (const char *const[]){"patchbay", __VA_ARGS__, "--socket", socket_path, NULL})

static void configure(const char *servers)
{
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "{\"listen\":\"127.0.0.1:0\",\"workers\":2,\n"
                  "\"admin\":{\"listen\":[\"unix:%s\"]},\n"
                  "\"timeouts\":{\"drain\":\"10s\",\"terminate\":\"1s\",\"kill\":\"1s\"},\n"
                  "\"mcpServers\":{%s}}\n",
                  socket_path, servers);
    fclose(file);
}

#define GOOD(name)                                                                                 \
    "\"" name "\":{\"command\":\"" BAY_TEST_BINARY_DIR "/bad_server\","                            \
    "\"args\":[\"stdio\",\"good\"]}"

static void serve(run *self)
{
    start_as(self, 0, 0, (const char *const[]){"patchbay", "serve", "-c", config, NULL});
    follow(self, "Patchbay is ready");
}

static void end(run *self)
{
    EXPECT(0, "the gateway drains", "drain");
    finish(self);
    assert_int_equal(self->code, 0);
    assert_int_not_equal(access(socket_path, F_OK), 0);
}

/* ---- what a person sees ---------------------------------------------------------------------- */

static void nobody_is_there(void **state)
{
    (void)state;
    EXPECT(3, "no gateway listens at ", "status");
    EXPECT(3, "no gateway listens at ", "reload");
    EXPECT(3, "no gateway listens at ", "drain");
    expect_run(0, 0, 2, "unix:/FOLDER/NAME",
               (const char *const[]){"patchbay", "status", "-S", "/", NULL});
    expect_run(0, 0, 2, "is too much", (const char *const[]){"patchbay", "status", "more", NULL});
    expect_run(0, 0, 2, "--socket is no option of list",
               (const char *const[]){"patchbay", "list", "x", "-S", "/x", NULL});
    expect_run(0, 0, 6, "no/such/file",
               (const char *const[]){"patchbay", "status", "-c", "/no/such/file", NULL});
}

static void the_life_of_a_gateway(void **state)
{
    (void)state;
    run gateway;
    configure(GOOD("one") ",\"two\":{\"command\":\"/no/such/program\"}");
    serve(&gateway);
    EXPECT(0, "degraded, version ", "status");
    EXPECT(0, "cannot start \"/no/such/program\"", "status");
    EXPECT(0, "{\"name\":\"one\",\"state\":\"ready\"", "status", "--json");
    expect_run(0, 0, 0, "degraded", /* found by its configuration */
               (const char *const[]){"patchbay", "status", "-c", config, NULL});
    EXPECT(0, "no server and no agent is another one", "reload");
    configure(GOOD("one") "," GOOD("three"));
    EXPECT(0, "servers: added three; removed two\nreloaded\n", "reload");
    configure(GOOD("one") ",\n\"four\":{\"comand\":\"x\"}");
    EXPECT(6, ":5: unknown key \"comand\" in mcpServers.four: did you mean \"command\"?\n",
           "reload");
    EXPECT(6, "\"errors\":[{\"file\":", "reload", "--json");
    EXPECT(0, "ago failed: ", "status");
    configure(GOOD("one") "," GOOD("three"));
    expect_run(0, 0, 7, "another process listens there",
               (const char *const[]){"patchbay", "serve", "-c", config, NULL});
    EXPECT(0, "three", "status"); /* the first one is untouched */
    end(&gateway);
    EXPECT(3, "no gateway listens at ", "status");
}

/* What a server says of itself cannot write to the terminal; lines end at its edge. */
static void what_servers_say_is_shown_harmlessly(void **state)
{
    (void)state;
    run gateway;
    run status;
    configure("\"two\":{\"command\":\"sh\",\"args\":[\"-c\",\"printf 'a\\\\033[2Jb\\\\r\\\\n' >&2; "
              "exit 3\"],\"restart\":{\"attempts\":0}}");
    serve(&gateway);
    start_as(&status, 0, 200,
             (const char *const[]){"patchbay", "status", "--no-color", "-S", socket_path, NULL});
    follow(&status, "LAST ERROR");
    finish(&status);
    assert_int_equal(status.code, 0);
    assert_null(strstr(status.text, "\x1b[2J"));
    end(&gateway);
}

/* A socket that a killed gateway left is no obstacle. */
static void after_a_kill(void **state)
{
    (void)state;
    run gateway;
    configure(GOOD("one"));
    serve(&gateway);
    assert_int_equal(kill(gateway.pid, SIGKILL), 0);
    finish(&gateway);
    assert_int_equal(access(socket_path, F_OK), 0);
    EXPECT(3, "no gateway listens at ", "status");
    serve(&gateway);
    EXPECT(0, "ready, version ", "status");
    end(&gateway);
}

/* Without a word in the configuration: made, found, and left alone by a second gateway. */
static void the_usual_place(void **state)
{
    (void)state;
    run gateway;
    run second;
    char usual[2 * PATH];
    struct stat about;
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    (void)fprintf(file, "{\"listen\":\"127.0.0.1:0\",\"mcpServers\":{%s}}", GOOD("one"));
    fclose(file);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    (void)snprintf(usual, sizeof(usual), "%s/patchbay", folder);
    serve(&gateway);
    assert_int_equal(stat(usual, &about), 0);
    assert_int_equal(about.st_mode, S_IFDIR | 0700);
    expect_run(0, 0, 0, "ready, version ", (const char *const[]){"patchbay", "status", NULL});
    serve(&second);
    assert_non_null(strstr(second.text, "no admin API"));
    assert_non_null(strstr(second.text, "another process listens there"));
    assert_int_equal(kill(second.pid, SIGTERM), 0);
    finish(&second);
    assert_int_equal(second.code, 0);
    expect_run(0, 0, 0, "reloaded", (const char *const[]){"patchbay", "reload", NULL});
    expect_run(0, 0, 0, "drains", (const char *const[]){"patchbay", "drain", NULL});
    finish(&gateway);
    assert_int_equal(gateway.code, 0);
    start_as(&gateway, 0, 0, (const char *const[]){"patchbay", "stdio", "-c", config, NULL});
    finish(&gateway);                  /* its client is gone at once */
    assert_int_equal(rmdir(usual), 0); /* nothing is in it */
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
}

/* ---- who is refused -------------------------------------------------------------------------- */

static void another_user(void **state)
{
    (void)state;
    run gateway;
    const char *const arguments[] = {"patchbay", "reload", "-S", socket_path, NULL};
    if (geteuid() != 0) {
        SKIP("only root can be another user");
    }
    configure(GOOD("one"));
    serve(&gateway);
    expect_run(NOBODY, 0, 3, "Permission denied", arguments);
    /* Even where somebody opened the file. */
    assert_int_equal(chmod(folder, 0711), 0);
    expect_run(NOBODY, 0, 3, "Permission denied", arguments);
    assert_int_equal(chmod(socket_path, 0666), 0);
    expect_run(NOBODY, 0, 1, "only the gateway's own user and root may use this socket", arguments);
    assert_int_equal(chmod(folder, 0700), 0);
    follow(&gateway, "refused 1 connections to the admin socket");
    end(&gateway);
    assert_null(strstr(gateway.text, "the configuration was reloaded"));
}

/* A server that is this script, which writes to $TOLD what its `reload` said. */
static void expect_refused_descendant(const char *lines)
{
    run gateway;
    char servers[1024];
    char text[4096] = "";
    size_t len = 0;
    ssize_t got = 1;
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "tell() { { %s reload -S %s 2>&1; echo code $?; } >%s; }\n%s\n"
                  "exec %s/bad_server stdio good\n",
                  binary, socket_path, told, lines, BAY_TEST_BINARY_DIR);
    fclose(file);
    assert_int_equal(mkfifo(told, 0600), 0);
    (void)snprintf(servers, sizeof(servers), "\"one\":{\"command\":\"sh\",\"args\":[\"%s\"]}",
                   script);
    configure(servers);
    start_as(&gateway, 0, 0, (const char *const[]){"patchbay", "serve", "-c", config, NULL});
    int fd = open(told, O_RDONLY | O_CLOEXEC); /* until it writes */
    assert_true(fd >= 0);
    while (got > 0) {
        got = read(fd, text + len, sizeof(text) - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (strstr(text, "this process was started by the gateway") == NULL ||
        strstr(text, "code 1\n") == NULL) {
        fail_msg("not refused: %s", text);
    }
    follow(&gateway, "Patchbay is ready");
    end(&gateway);
    assert_null(strstr(gateway.text, "the configuration was reloaded"));
    assert_int_equal(unlink(told), 0);
}

static void a_server_of_the_gateway(void **state)
{
    (void)state;
    expect_refused_descendant("tell");
}

/* In a session of its own, and it waits until its parents have ended: its parent is then whoever
 * adopts orphans. */
static void an_orphan_of_the_gateway(void **state)
{
    (void)state;
    expect_refused_descendant("if [ \"$1\" = go ]; then\n"
                              "    while read -r a b c parent rest </proc/$$/stat; do\n"
                              "        [ \"$parent\" = \"$2\" ] || break\n"
                              "    done\n"
                              "    tell\n"
                              "    exit\n"
                              "fi\n"
                              "if [ \"$1\" = leave ]; then\n"
                              "    sh \"$0\" go $$ </dev/null >/dev/null 2>&1 &\n"
                              "    exit\n"
                              "fi\n"
                              "(setsid sh \"$0\" leave &)");
}

static int open_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(config, sizeof(config), "%s/config.json", folder);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    (void)snprintf(script, sizeof(script), "%s/script", folder);
    (void)snprintf(told, sizeof(told), "%s/told", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    (void)unlink(config);
    (void)unlink(script);
    (void)unlink(told);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(the_life_of_a_gateway),
        cmocka_unit_test(what_servers_say_is_shown_harmlessly),
        cmocka_unit_test(after_a_kill),
        cmocka_unit_test(the_usual_place),
        cmocka_unit_test(another_user),
        cmocka_unit_test(a_server_of_the_gateway),
        cmocka_unit_test(an_orphan_of_the_gateway),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
