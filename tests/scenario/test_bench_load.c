/* What the load generators of the benchmarks take for an answer: a server that refuses each call is
 * cheap, and must not be measured as if it had worked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 3
#define GOOD_TEXT "{\"content\":[{\"type\":\"text\",\"text\":\"Hello, Tokyo\"}]"
#define GOOD "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" GOOD_TEXT ",\"isError\":false}}"

typedef struct answer {
    const char *body;
    bool is_answer;
} answer;

static const answer answers[] = {
    {"", false},
    {"Hello, Tokyo", false},
    {"[" GOOD "]", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"Hello, Tokyo\"}}",
     false},
    {"{\"error\" : {\"data\":{\"result\":{}}}, \"id\":1,\"jsonrpc\":\"2.0\"}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"text\":\"Hello, Tokyo\",\"results\":{}}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"Hello, Tokyo\"}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" GOOD_TEXT ",\"isError\":true}}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" GOOD_TEXT ", \"isError\" : true }}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" GOOD_TEXT ",\"isError\":\"no\"}}", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}", false}, /* another answer */
    {GOOD, true},
    {"{\"jsonrpc\": \"2.0\", \"result\" : " GOOD_TEXT "}, \"id\": 1}", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"error\",\"result\":{\"structuredContent\":{\"isError\":true,"
     "\"error\":{}},\"content\":[{\"type\":\"text\",\"text\":\"Hello, Tokyo \\\"isError\\\":true "
     "\\\\\"}]}}",
     true},
};

/* ---- over HTTP ------------------------------------------------------------------------------- */

typedef struct server {
    int listener;
    uint16_t port;
    const char *reply; /* the whole of it */
    pthread_t thread;
} server;

static void *serve(void *argument)
{
    const server *self = argument;
    char request[4096];
    int link = accept(self->listener, NULL, NULL);
    while (link >= 0 && recv(link, request, sizeof(request), 0) > 0) {
        (void)!send(link, self->reply, strlen(self->reply), MSG_NOSIGNAL);
    }
    close(link);
    return NULL;
}

/* The exit status of a shell's command; its output in `out`. */
static int run(const char *command, char *out, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t got; (got = read(ends[0], out + len, size - 1 - len)) > 0;) {
        len += (size_t)got;
    }
    out[len] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool is_counted(const char *reply, const char *options)
{
    server self = {.reply = reply, .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self.listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self.listener, 1), 0);
    assert_int_equal(getsockname(self.listener, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(pthread_create(&self.thread, NULL, serve, &self), 0);
    char command[512];
    char out[512];
    snprintf(command, sizeof(command), "%s/bench_load -c 1 -n %d %s -d x %u /mcp 2>/dev/null",
             BAY_TEST_BINARY_DIR, CALLS, options, ntohs(address.sin_port));
    int status = run(command, out, sizeof(out));
    pthread_join(self.thread, NULL);
    close(self.listener);
    char all[64];
    char none[64];
    snprintf(all, sizeof(all), "requests=%d errors=0 ", CALLS);
    snprintf(none, sizeof(none), "requests=0 errors=%d ", CALLS);
    assert_non_null(strstr(out, status == 0 ? all : none));
    return status == 0;
}

static void expect_http(const char *format, const answer *one, const char *options, bool is_answer)
{
    char reply[2048];
    char body[1024];
    bool is_event = strstr(format, "event-stream") != NULL;
    snprintf(body, sizeof(body), is_event ? "event: message\r\ndata: %s\r\n\r\n" : "%s", one->body);
    size_t half = strlen(body) / 2;
    if (strstr(format, "chunked") != NULL) {
        snprintf(reply, sizeof(reply), format, half, (int)half, body, strlen(body) - half,
                 body + half);
    } else {
        snprintf(reply, sizeof(reply), format, strlen(body), body);
    }
    if (is_counted(reply, options) != is_answer) {
        fail_msg("%s: %s", is_answer ? "not counted" : "counted", reply);
    }
}

static void only_results_are_counted_over_http(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const answer *one = &answers[i];
        expect_http("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", one, "-e Tokyo",
                    one->is_answer);
        expect_http("HTTP/1.1 500 No\r\nContent-Length: %zu\r\n\r\n%s", one, "-e Tokyo", false);
        if (one->body[0] != '\0') {
            expect_http("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "%zx\r\n%.*s\r\n%zX;a=b\r\n%s\r\n0\r\n\r\n",
                        one, "-e Tokyo", one->is_answer);
        }
        expect_http("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%.*s\r\n%zx\r\n%s\r\n0\r\n\r\n",
                    one, "-e Tokyo", one->is_answer);
    }
    expect_http("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", &(answer){GOOD, true}, "",
                true);
    expect_http("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", &(answer){GOOD, true},
                "-e Paris", false);
}

/* ---- over a pipe ----------------------------------------------------------------------------- */

static void only_results_are_counted_on_stdio(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-answer.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 1; i < sizeof(answers) / sizeof(answers[0]); i++) {
        FILE *text = fopen(path, "w");
        assert_non_null(text);
        fprintf(text, "%s\n", answers[i].body);
        fclose(text);
        char command[512];
        char out[512];
        snprintf(command, sizeof(command),
                 "%s/bench_stdio_load -t 0.01 -i 100 -e Tokyo -d 'call 100' "
                 "sh -c 'while read -r line; do cat %s; done' 2>/dev/null",
                 BAY_TEST_BINARY_DIR, path);
        int status = run(command, out, sizeof(out));
        if ((status == 0) != answers[i].is_answer ||
            (strstr(out, "requests=0 ") == NULL) != answers[i].is_answer) {
            fail_msg("status %d, %s for %s", status, out, answers[i].body);
        }
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_results_are_counted_over_http),
        cmocka_unit_test(only_results_are_counted_on_stdio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
