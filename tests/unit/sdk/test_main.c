/* bay_server_main as programs have it: options, exit statuses, signals and the end of input, on
 * standard input and on HTTP. The bound in time only ends a test that would never end. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/sdk/sdk_bench.h"

enum { GIVE_UP_MS = 20000 };

#define AGENT BAY_TEST_BINARY_DIR "/examples/greeter"
#define EXAMPLE BAY_TEST_BINARY_DIR "/examples/weather"
#define FIXTURE BAY_TEST_BINARY_DIR "/conformance_server"

typedef struct program {
    pid_t pid;
    int in;
    int out;
    int err;
} program;

static char *const *arguments_of(char **into, const char *name, va_list rest)
{
    size_t len = 0;
    for (const char *at = name; at != NULL && len < 7; at = va_arg(rest, const char *)) {
        into[len++] = (char *)(uintptr_t)at;
    }
    into[len] = NULL;
    return into;
}

static void start_child(program *self, int *in, int *out, int *err)
{
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        close(in[1]);
        return;
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    *self = (program){self->pid, in[1], out[0], err[0]};
}

/* Runs the program of that path; the arguments end with a NULL. */
static program start(const char *path, ...)
{
    program self;
    int in[2];
    int out[2];
    int err[2];
    char *into[8];
    va_list rest;
    va_start(rest, path);
    char *const *arguments = arguments_of(into, path, rest);
    va_end(rest);
    start_child(&self, in, out, err);
    if (self.pid == 0) {
        execv(path, arguments);
        _exit(127);
    }
    return self;
}

/* Runs bay_server_main of a server made here. */
static program start_server(bay_server *server)
{
    program self;
    int in[2];
    int out[2];
    int err[2];
    char name[] = "made-here";
    char *arguments[] = {name, NULL};
    start_child(&self, in, out, err);
    if (self.pid == 0) {
        _exit(bay_server_main(server, 1, arguments));
    }
    bay_server_free(server);
    return self;
}

/* Reads until `part` has come, or with NULL until the end. */
static void read_until(int from, const char *part, char *text, size_t size)
{
    size_t len = strlen(text);
    while (part == NULL || strstr(text, part) == NULL) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        if (poll(&wait, 1, GIVE_UP_MS) != 1) {
            fail_msg("\"%s\" has not come: %s", part != NULL ? part : "the end", text);
        }
        assert_true(len + 1 < size);
        ssize_t got = read(from, text + len, size - 1 - len);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        text[len] = '\0';
    }
    if (part != NULL) {
        assert_has(text, part);
    }
}

static void say(const program *self, const char *line)
{
    assert_int_equal(write(self->in, line, strlen(line)), (ssize_t)strlen(line));
}

/* The exit status; what is still to be read goes to `out` and `err`. */
static int finish(program *self, char *out, char *err, size_t size)
{
    if (self->in >= 0) {
        close(self->in);
    }
    read_until(self->out, NULL, out, size);
    read_until(self->err, NULL, err, size);
    close(self->out);
    close(self->err);
    int status = -1;
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define INITIALIZE_LINE INITIALIZE("2025-11-25") "\n"
#define SLOW_CALL                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"                \
    "\"test_tool_with_progress\",\"_meta\":{\"progressToken\":1}}}\n"

static void bad_options_are_told(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"--port", NULL}, {"--http", NULL}, {"extra", NULL}, {"--stdio", "-x"}, {"", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char out[4096] = "";
        char err[4096] = "";
        program self = start(EXAMPLE, bad[i][0], bad[i][1], (char *)NULL);
        assert_int_equal(finish(&self, out, err, sizeof(out)), 2);
        assert_string_equal(out, "");
        assert_has(err, "unknown or incomplete option \"");
        assert_has(err, "see --help");
    }
}

static void help_and_version_are_printed(void **state)
{
    (void)state;
    char out[4096] = "";
    char err[4096] = "";
    program self = start(EXAMPLE, "--help", (char *)NULL);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_has(out, "[--stdio | --http ADDRESS[:PORT] [--open]]");
    out[0] = '\0';
    self = start(EXAMPLE, "--version", (char *)NULL);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_true(strncmp(out, "weather ", 8) == 0);
    assert_string_equal(err, "");
}

static void an_address_that_cannot_be_had_is_told(void **state)
{
    (void)state;
    char name[400];
    memset(name, '1', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const char *const bad[] = {"127.0.0.1:99999", "127.0.0.1:http", "", name};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char out[4096] = "";
        char err[4096] = "";
        program self = start(EXAMPLE, "--http", bad[i], (char *)NULL);
        assert_int_equal(finish(&self, out, err, sizeof(out)), 1);
        assert_has(err, "cannot listen on");
    }
}

static void an_address_of_everybody_wants_a_word(void **state)
{
    (void)state;
    char out[4096] = "";
    char err[4096] = "";
    program self = start(EXAMPLE, "--http", "0.0.0.0:0", (char *)NULL);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 1);
    assert_has(err, "weather: cannot listen on 0.0.0.0:0: other machines can reach 0.0.0.0:0");
    assert_has(err, "bay_server_open_on_purpose (--open)");
    assert_string_equal(out, "");
    static const char *const addresses[][2] = {
        {"0.0.0.0:0", "weather: listening on http://0.0.0.0:"},
        {"*:0", "weather: listening on http://[::]:"},
    };
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        err[0] = '\0';
        self = start(EXAMPLE, "--open", "--http", addresses[i][0], (char *)NULL);
        read_until(self.err, "/mcp\n", err, sizeof(err));
        assert_has(err, addresses[i][1]);
        assert_int_equal(kill(self.pid, SIGTERM), 0);
        assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    }
}

static void an_agent_wants_the_same_word(void **state)
{
    (void)state;
    char out[4096] = "";
    char err[4096] = "";
    program self = start(AGENT, "--http", "0.0.0.0:0", (char *)NULL);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 1);
    assert_has(err, "cannot listen on 0.0.0.0:0: other machines can reach 0.0.0.0:0");
    assert_has(err, "bay_agent_open_on_purpose (--open)");
    err[0] = '\0';
    self = start(AGENT, "--http", "0.0.0.0:0", "--open", (char *)NULL);
    read_until(self.err, "\n", err, sizeof(err));
    assert_has(err, "listening on http://0.0.0.0:");
    assert_int_equal(kill(self.pid, SIGTERM), 0);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
}

static void every_bad_registration_is_told(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "bad %d", i);
        bay_server_tool_schema(server, name, NULL, NULL, reply_ok, NULL);
    }
    char out[4096] = "";
    char err[4096] = "";
    program self = start_server(server);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 1);
    assert_has(err, "error: tool \"bad 0\": ");
    assert_has(err, "error: tool \"bad 15\": ");
    assert_has(err, "error: and 4 more\n");
    assert_string_equal(out, "");
}

static void the_end_of_input_lets_calls_end(void **state)
{
    (void)state;
    char out[16384] = "";
    char err[16384] = "";
    program self = start(FIXTURE, (char *)NULL);
    say(&self, INITIALIZE_LINE SLOW_CALL);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_has(out, "\"id\":1,\"result\":{");
    assert_has(out, "Tool with progress executed successfully");
    assert_string_equal(err, "");
}

static void a_signal_ends_a_stdio_server(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char out[16384] = "";
        char err[16384] = "";
        program self = start(FIXTURE, "--stdio", (char *)NULL);
        say(&self, INITIALIZE_LINE SLOW_CALL);
        read_until(self.out, "notifications/progress", out, sizeof(out));
        assert_int_equal(kill(self.pid, signals[i]), 0);
        read_until(self.out, NULL, out, sizeof(out)); /* its end, not that of the input */
        assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
        assert_string_equal(err, "");
    }
}

static void an_idle_server_ends_with_its_input(void **state)
{
    (void)state;
    char out[4096] = "";
    char err[4096] = "";
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    program self = start_server(server);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_string_equal(out, "");
}

/* ---- HTTP */

static int connect_to(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void post(int fd, const char *fields, const char *body)
{
    char text[2048];
    int len = snprintf(text, sizeof(text),
                       "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\n%sContent-Length: %zu\r\n"
                       "\r\n%s",
                       fields, strlen(body), body);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

static void a_signal_drains_an_http_server(void **state)
{
    (void)state;
    char out[16384] = "";
    char err[16384] = "";
    char got[16384] = "";
    unsigned port = 0;
    program self = start(FIXTURE, "--http", "127.0.0.1:0", (char *)NULL);
    read_until(self.err, "/mcp\n", err, sizeof(err));
    assert_int_equal(
        sscanf(strstr(err, "listening on"), "listening on http://127.0.0.1:%u/mcp", &port), 1);
    int fd = connect_to(port);
    assert_true(fd >= 0);
    post(fd,
         "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
         "Mcp-Name: test_tool_with_progress\r\n",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
         "\"test_tool_with_progress\"," META ",\"progressToken\":1}}}");
    read_until(fd, "notifications/progress", got, sizeof(got));
    assert_int_equal(kill(self.pid, SIGTERM), 0);
    read_until(fd, NULL, got, sizeof(got)); /* until it is closed */
    assert_has(got, "Tool with progress executed successfully");
    close(fd);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_int_equal(connect_to(port), -1);
}

/* examples/embedded.c: the server is one descriptor of somebody else's loop. */
static void a_program_with_a_loop_of_its_own_serves(void **state)
{
    (void)state;
    char out[4096] = "";
    char err[4096] = "";
    char got[16384] = "";
    unsigned port = 0;
    program self = start(BAY_TEST_BINARY_DIR "/examples/embedded", "127.0.0.1:0", (char *)NULL);
    read_until(self.out, "\n", out, sizeof(out));
    read_until(self.out, "listening on port ", out, sizeof(out));
    read_until(self.out, "\n", strstr(out, "listening"), sizeof(out) / 2);
    assert_has(out, "in process: ");
    assert_int_equal(sscanf(strstr(out, "listening"), "listening on port %u", &port), 1);
    int fd = connect_to(port);
    assert_true(fd >= 0);
    post(fd, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: beats\r\n",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
         "call\",\"params\":{\"name\":\"beats\"," META "}}}");
    read_until(fd, "beats so far", got, sizeof(got));
    assert_int_equal(kill(self.pid, SIGTERM), 0);
    assert_int_equal(finish(&self, out, err, sizeof(out)), 0);
    assert_string_equal(err, "");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_told),
        cmocka_unit_test(help_and_version_are_printed),
        cmocka_unit_test(an_address_that_cannot_be_had_is_told),
        cmocka_unit_test(an_address_of_everybody_wants_a_word),
        cmocka_unit_test(an_agent_wants_the_same_word),
        cmocka_unit_test(every_bad_registration_is_told),
        cmocka_unit_test(the_end_of_input_lets_calls_end),
        cmocka_unit_test(a_signal_ends_a_stdio_server),
        cmocka_unit_test(an_idle_server_ends_with_its_input),
        cmocka_unit_test(a_signal_drains_an_http_server),
        cmocka_unit_test(a_program_with_a_loop_of_its_own_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
