/* A caller whose connections are cut, by a proxy in front of the tck agent: after so many bytes of
 * the agent's, on every binding and form. Whatever was told before, in the end the task is whole,
 * and nothing of it was told twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <patchbay/caller.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/http_server.h"

#define PROGRAM BAY_TEST_BINARY_DIR "/examples/tck_agent"

enum { PAIRS = 16, CHUNK_BYTES = 16384, MOST_BYTES = 2400, STEP_BYTES = 60 };

static pid_t agent;
static uint16_t agent_port;

/* ---- the proxy ------------------------------------------------------------------------------- */

typedef struct pair {
    int client; /* 0: none */
    int server;
} pair;

typedef struct proxy {
    int listener;
    int stop[2];
    uint16_t port;
    _Atomic int cut_after; /* bytes of the agent's until one connection is cut; < 0: never again */
    pair pairs[PAIRS];
    sem_t hung_up;
    pthread_t thread;
} proxy;

static proxy between;

static int connect_agent(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(agent_port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void hang_up(pair *self)
{
    close(self->client);
    close(self->server);
    *self = (pair){0};
}

static void hang_up_all(proxy *self)
{
    for (int i = 0; i < PAIRS; i++) {
        if (self->pairs[i].client != 0) {
            hang_up(&self->pairs[i]);
        }
    }
}

static bool pass(int from, int to, size_t most)
{
    char bytes[CHUNK_BYTES];
    ssize_t got = read(from, bytes, most < sizeof(bytes) ? most : sizeof(bytes));
    return got > 0 && send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

/* From the agent: what is over the bound never arrives. */
static bool pass_back(proxy *self, const pair *one)
{
    char bytes[CHUNK_BYTES];
    ssize_t got = read(one->server, bytes, sizeof(bytes));
    int left = atomic_load(&self->cut_after);
    if (got <= 0) {
        return false;
    }
    if (left >= 0 && got > left) {
        atomic_store(&self->cut_after, -1);
        (void)send(one->client, bytes, (size_t)left, MSG_NOSIGNAL);
        return false;
    }
    if (left >= 0) {
        atomic_store(&self->cut_after, left - (int)got);
    }
    return send(one->client, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static void take_connection(proxy *self)
{
    int client = accept(self->listener, NULL, NULL);
    for (int i = 0; client >= 0 && i < PAIRS; i++) {
        if (self->pairs[i].client == 0) {
            self->pairs[i].server = connect_agent();
            self->pairs[i].client = client;
            return;
        }
    }
    close(client);
}

static void *proxy_main(void *argument)
{
    proxy *self = argument;
    for (;;) {
        struct pollfd all[2 + 2 * PAIRS] = {{self->stop[0], POLLIN, 0},
                                            {self->listener, POLLIN, 0}};
        for (int i = 0; i < PAIRS; i++) {
            bool is_open = self->pairs[i].client != 0;
            all[2 + 2 * i] = (struct pollfd){is_open ? self->pairs[i].client : -1, POLLIN, 0};
            all[3 + 2 * i] = (struct pollfd){is_open ? self->pairs[i].server : -1, POLLIN, 0};
        }
        if (poll(all, 2 + 2 * PAIRS, -1) < 0) {
            continue;
        }
        if (all[0].revents != 0) {
            char what;
            if (read(self->stop[0], &what, 1) != 1 || what != 'h') {
                break;
            }
            hang_up_all(self);
            sem_post(&self->hung_up);
            continue;
        }
        for (int i = 0; i < PAIRS; i++) {
            pair *one = &self->pairs[i];
            bool stands = true;
            if (all[2 + 2 * i].revents != 0) {
                stands = pass(one->client, one->server, CHUNK_BYTES);
            }
            if (stands && all[3 + 2 * i].revents != 0) {
                stands = pass_back(self, one);
            }
            if (!stands) {
                hang_up(one);
            }
        }
        if (all[1].revents != 0) {
            take_connection(self);
        }
    }
    hang_up_all(self);
    return NULL;
}

/* ---- the agent ------------------------------------------------------------------------------- */

static int begin(void **state)
{
    int ends[2];
    char line[512];
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    (void)state;
    if (pipe(ends) != 0 || (agent = fork()) < 0) {
        return -1;
    }
    if (agent == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl(PROGRAM, PROGRAM, "--http", "127.0.0.1:0", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    while (agent_port == 0 && fgets(line, sizeof(line), said) != NULL) {
        const char *at = strstr(line, "http://127.0.0.1:");
        agent_port = at != NULL ? (uint16_t)strtoul(at + 17, NULL, 10) : 0;
    }
    fclose(said);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    between.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (agent_port == 0 || pipe(between.stop) != 0 ||
        bind(between.listener, (struct sockaddr *)&address, len) != 0 ||
        listen(between.listener, 64) != 0 ||
        getsockname(between.listener, (struct sockaddr *)&address, &len) != 0) {
        return -1;
    }
    sem_init(&between.hung_up, 0, 0);
    between.port = ntohs(address.sin_port);
    return pthread_create(&between.thread, NULL, proxy_main, &between);
}

static int end(void **state)
{
    int status = 0;
    (void)state;
    if (write(between.stop[1], "", 1) != 1) {
        return -1;
    }
    pthread_join(between.thread, NULL);
    kill(agent, SIGTERM);
    return waitpid(agent, &status, 0) == agent && WIFEXITED(status) ? 0 : -1;
}

/* ---- the caller ------------------------------------------------------------------------------ */

typedef struct told {
    char chunks[1024];
    int events;
    int finals;
} told;

static void note_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    told *self = user;
    self->events++;
    self->finals += bay_task_state_is_final(bay_caller_reply_state(event));
    size_t count = bay_caller_reply_artifact_count(event);
    for (size_t i = 0; i < count; i++) {
        bay_str text = bay_message_text(bay_caller_reply_artifact(event, i));
        size_t len = bay_caller_reply_appends(event) ? strlen(self->chunks) : 0;
        snprintf(self->chunks + len, sizeof(self->chunks) - len, "%.*s", BAY_STR(text));
    }
}

static bay_caller *open_caller(const char *binding, const char *version)
{
    char card[1024];
    bay_caller *caller = NULL;
    bay_diag diag = {0};
    bool is_grpc = strcmp(binding, "GRPC") == 0;
    snprintf(card, sizeof(card),
             "{\"name\":\"kit\",\"description\":\"d\",\"version\":\"1\",\"supportedInterfaces\":[{"
             "\"url\":\"%s127.0.0.1:%u\",\"protocolBinding\":\"%s\",\"protocolVersion\":\"%s\"}],"
             "\"capabilities\":{\"streaming\":true},\"defaultInputModes\":[\"text/plain\"],"
             "\"defaultOutputModes\":[\"text/plain\"],\"skills\":[{\"id\":\"s\",\"name\":\"s\","
             "\"description\":\"s\",\"tags\":[\"t\"]}]}",
             is_grpc ? "" : "http://", between.port, binding, version);
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_resume(options, 8, 1);
    if (bay_caller_connect(card, options, &caller, &diag) != BAY_OK) {
        fail_msg("%s %s: %s", binding, version, diag.text);
    }
    bay_caller_options_free(options);
    return caller;
}

static bool is_built_in(const char *binding)
{
    return http_server_speaks_http2() || strcmp(binding, "GRPC") != 0;
}

/* True: it became whole. */
static bool try_cut(const char *binding, const char *version, int bytes, int number)
{
    char request[512];
    told seen = {0};
    bay_caller_reply *response = NULL;
    bay_diag diag = {0};
    bay_caller *caller = open_caller(binding, version);
    snprintf(request, sizeof(request),
             "{\"message\":{\"messageId\":\"tck-stream-artifact-chunked-%d-%d\",\"role\":"
             "\"ROLE_USER\",\"parts\":[{\"text\":\"go\"}]}}",
             number, bytes);
    atomic_store(&between.cut_after, bytes);
    bay_caller_request *operation = bay_caller_request_new(caller, "SendStreamingMessage", request);
    bay_caller_request_on_event(operation, note_event, &seen);
    bay_err err = bay_caller_request_run(operation, &response, &diag);
    bool is_whole = err == BAY_OK;
    if (is_whole) {
        bay_str text = bay_message_text(bay_caller_reply_artifact(response, 0));
        char whole[256];
        snprintf(whole, sizeof(whole), "%.*s", BAY_STR(text));
        if (bay_caller_reply_state(response) != BAY_TASK_STATE_COMPLETED ||
            strcmp(seen.chunks, whole) != 0 || strcmp(whole, "chunk-1 chunk-2") != 0 ||
            seen.finals != 1) {
            fail_msg("%s %s after %d bytes: told \"%s\", is \"%s\", %d ends", binding, version,
                     bytes, seen.chunks, whole, seen.finals);
        }
    } else if (seen.events > 0) { /* once it is known what to ask for, it is got */
        fail_msg("%s %s after %d bytes: %s", binding, version, bytes, diag.text);
    }
    bay_caller_reply_free(response);
    bay_caller_close(caller);
    return is_whole;
}

static void cuts_lose_nothing_and_repeat_nothing(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        {"JSONRPC", "1.0"},   {"HTTP+JSON", "1.0"}, {"GRPC", "1.0"},   {"JSONRPC", "0.3"},
        {"HTTP+JSON", "0.3"}, {"GRPC", "0.3"},      {"JSONRPC", "0.1"}};
    for (int i = 0; i < (int)(sizeof(forms) / sizeof(forms[0])); i++) {
        if (!is_built_in(forms[i][0])) {
            continue;
        }
        int whole = 0;
        int tried = 0;
        for (int bytes = 0; bytes <= MOST_BYTES; bytes += STEP_BYTES) {
            whole += try_cut(forms[i][0], forms[i][1], bytes, i);
            tried++;
        }
        assert_true(whole > 0);
        assert_true(whole < tried); /* some were cut before there was a task */
    }
}

/* A program that waits calls now and then: what is said next must not go down a dead connection. */
static void connections_closed_meanwhile_are_not_used(void **state)
{
    static const char *const bindings[] = {"JSONRPC", "HTTP+JSON", "GRPC"};
    (void)state;
    for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++) {
        if (!is_built_in(bindings[i])) {
            continue;
        }
        atomic_store(&between.cut_after, -1);
        bay_caller *caller = open_caller(bindings[i], "1.0");
        for (int turn = 0; turn < 3; turn++) {
            bay_caller_reply *response = NULL;
            bay_diag diag = {0};
            if (bay_caller_send_wait(caller, "hello", &response, &diag) != BAY_OK) {
                fail_msg("%s, turn %d: %s", bindings[i], turn, diag.text);
            }
            bay_caller_reply_free(response);
            assert_int_equal(write(between.stop[1], "h", 1), 1);
            assert_int_equal(sem_wait(&between.hung_up), 0);
        }
        bay_caller_close(caller);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuts_lose_nothing_and_repeat_nothing),
                                       cmocka_unit_test(connections_closed_meanwhile_are_not_used)};
    return cmocka_run_group_tests(tests, begin, end);
}
