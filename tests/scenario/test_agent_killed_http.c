/* The same over HTTP: an agent made with the library, its tasks in a file, 500 clients with a
 * stream each. The agent is killed several times; clients come back with the number of the last
 * event they had, or, when they had none yet, with the same message. Every stream goes on without a
 * gap, every task is completed once, and there are as many tasks as there were clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchbay/agent.h"

enum {
    CLIENTS = 500,
    CHUNKS = 5,
    KILLS = 3,
    LINE_BYTES = 8192,
    PATIENCE_MS = 60000, /* bounds a broken test, not a working one */
};

/* ---- the agent: what runs in the other process */

static void work(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    bay_task_status(task, BAY_TASK_STATE_WORKING, NULL);
    bay_artifact *out = bay_task_artifact(task, "out.txt", "text/plain");
    for (int i = 0; i < CHUNKS; i++) {
        bay_artifact_append(out, "chunk ");
        bay_task_sleep(task, 2);
    }
    bay_task_complete(task, NULL);
}

static bay_agent *agent;

static void stop(int number)
{
    (void)number;
    bay_agent_stop(agent);
}

static int run_agent(const char *path)
{
    bay_diag diag;
    agent = bay_agent_new("killed", "1.0.0", "Is killed, and goes on.");
    signal(SIGTERM, stop);
    bay_agent_skill(agent, "work", "Work", "Works.", work, NULL);
    bay_agent_store(agent, path);
    bay_agent_resumable(agent);
    if (bay_agent_listen(agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    printf("%d\n", (int)bay_agent_port(agent));
    fflush(stdout);
    bay_err err = bay_agent_run(agent, &diag);
    bay_agent_free(agent);
    return err == BAY_OK ? 0 : 1;
}

static pid_t start_agent(const char *path, uint16_t *out_port)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl("/proc/self/exe", "agent", path, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *said = fdopen(out[0], "r");
    int port = 0;
    assert_int_equal(fscanf(said, "%d", &port), 1);
    fclose(said);
    *out_port = (uint16_t)port;
    return child;
}

/* ---- its clients */

typedef struct client {
    int number;
    int fd; /* -1: none */
    char id[64];
    unsigned long long last;
    unsigned long long sequence; /* of the event whose data comes next */
    int ends;
    size_t len;
    char line[LINE_BYTES];
} client;

static client clients[CLIENTS];
static size_t heard;

/* A string member's value; "" when it is not there. */
static const char *member(const char *json, const char *name, char out[64])
{
    const char *at = strstr(json, name);
    const char *end = at != NULL ? strchr(at + strlen(name), '"') : NULL;
    out[0] = '\0';
    if (end != NULL && (size_t)(end - at) - strlen(name) < 64) {
        snprintf(out, 64, "%.*s", (int)(end - at - (int)strlen(name)), at + strlen(name));
    }
    return out;
}

static void hear(client *self, const char *json)
{
    char id[64];
    if (strstr(json, "\"error\"") != NULL) {
        fail_msg("client %d: %s", self->number, json);
    }
    bool is_task = strstr(json, "\"result\":{\"task\"") != NULL;
    if (self->last == 0) {
        assert_true(is_task);
        member(json, "{\"task\":{\"id\":\"", self->id);
        assert_string_not_equal(self->id, "");
    } else {
        assert_false(is_task); /* who comes back gets what it missed, not the task */
        assert_int_equal(self->sequence, self->last + 1);
        assert_string_equal(member(json, "\"taskId\":\"", id), self->id);
    }
    self->last = self->sequence;
    heard++;
    if (strstr(json, "TASK_STATE_COMPLETED") != NULL) {
        self->ends++;
    }
    assert_true(self->ends <= 1);
    assert_null(strstr(json, "TASK_STATE_FAILED"));
}

/* Lines of heads and of chunks are of no interest: an event is never cut in the middle of a line by
 * the server. */
static void take_line(client *self)
{
    self->line[self->len] = '\0';
    if (strncmp(self->line, "id:", 3) == 0) {
        self->sequence = strtoull(self->line + 3, NULL, 10);
    } else if (strncmp(self->line, "data:", 5) == 0) {
        hear(self, self->line + 5);
    } else if (strncmp(self->line, "{\"", 2) == 0) {
        fail_msg("client %d: %s", self->number, self->line);
    }
    self->len = 0;
}

static void take_bytes(client *self)
{
    char bytes[4096];
    ssize_t count = recv(self->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            take_line(self);
        } else if (bytes[i] != '\r') {
            assert_true(self->len + 1 < LINE_BYTES);
            self->line[self->len++] = bytes[i];
        }
    }
    if (count <= 0 || self->ends > 0) {
        close(self->fd);
        self->fd = -1;
    }
}

/* Begins, or goes on where it was. False: there is nobody. */
static bool speak(client *self, uint16_t port)
{
    char body[512];
    char request[1024];
    char resumed[64] = "";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (self->last == 0) {
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":{"
                 "\"message\":{\"messageId\":\"m-%d\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
                 "\"go\"}]}}}",
                 self->number);
    } else {
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SubscribeToTask\",\"params\":{\"id\":"
                 "\"%s\"}}",
                 self->id);
        snprintf(resumed, sizeof(resumed), "Last-Event-ID: %llu\r\n", self->last);
    }
    int len = snprintf(request, sizeof(request),
                       "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nA2A-Version: 1.0\r\nAccept: "
                       "text/event-stream\r\nContent-Type: application/json\r\n%sConnection: "
                       "close\r\nContent-Length: %zu\r\n\r\n%s",
                       (int)port, resumed, strlen(body), body);
    self->len = 0;
    self->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(self->fd >= 0);
    if (connect(self->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        send(self->fd, request, (size_t)len, MSG_NOSIGNAL) != len) {
        close(self->fd);
        self->fd = -1;
        return false;
    }
    return true;
}

static size_t left(void)
{
    size_t count = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        count += clients[i].ends == 0;
    }
    return count;
}

/* What is under way is read; false: nothing is. */
static bool listen_once(int timeout_ms)
{
    struct pollfd waits[CLIENTS];
    client *whose[CLIENTS];
    nfds_t count = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].fd >= 0) {
            whose[count] = &clients[i];
            waits[count++] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
        }
    }
    if (count == 0) {
        return false;
    }
    assert_true(poll(waits, count, timeout_ms) > 0);
    for (nfds_t i = 0; i < count; i++) {
        if (waits[i].revents != 0) {
            take_bytes(whose[i]);
        }
    }
    return true;
}

/* Until `enough` events were heard (0: until all tasks are completed); then the agent is killed. */
static void play(const char *path, size_t enough)
{
    uint16_t port;
    int status;
    heard = 0;
    pid_t child = start_agent(path, &port);
    while (left() > 0 && (enough == 0 || heard < enough)) {
        for (size_t i = 0; i < CLIENTS; i++) {
            if (clients[i].fd < 0 && clients[i].ends == 0) {
                assert_true(speak(&clients[i], port));
            }
        }
        listen_once(PATIENCE_MS);
    }
    kill(child, enough > 0 ? SIGKILL : SIGTERM);
    while (enough > 0 && listen_once(PATIENCE_MS)) { /* what it said before is still read */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (enough > 0 ? !WIFSIGNALED(status) : !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("%zu events: the agent ended with %x", enough, (unsigned)status);
    }
}

/* As many tasks as clients, all of them completed. */
static void count_tasks(const char *path)
{
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\",\"params\":{\"pageSize\":1,"
        "\"status\":\"TASK_STATE_COMPLETED\"}}";
    char request[512];
    char answer[LINE_BYTES];
    size_t len = 0;
    uint16_t port;
    pid_t child = start_agent(path, &port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int request_len = snprintf(request, sizeof(request),
                               "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nA2A-Version: 1.0\r\n"
                               "Content-Type: application/json\r\nConnection: close\r\n"
                               "Content-Length: %zu\r\n\r\n%s",
                               (int)port, strlen(body), body);
    assert_int_equal(send(fd, request, (size_t)request_len, MSG_NOSIGNAL), request_len);
    for (ssize_t count; (count = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0;) {
        len += (size_t)count;
    }
    answer[len] = '\0';
    close(fd);
    char total[32];
    snprintf(total, sizeof(total), "\"totalSize\":%d}", CLIENTS);
    if (strstr(answer, total) == NULL) {
        fail_msg("%s is not in %s", total, answer);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void survives_over_http(void **state)
{
    char path[64] = "/tmp/patchbay-killed-http-XXXXXX";
    char other[80];
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.number = i, .fd = -1};
    }
    for (size_t i = 0; i < KILLS; i++) {
        play(path, 100 + 400 * i);
    }
    play(path, 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(clients[i].ends, 1);
        if (clients[i].fd >= 0) {
            close(clients[i].fd);
        }
    }
    count_tasks(path);
    unlink(path);
    snprintf(other, sizeof(other), "%s-wal", path);
    unlink(other);
    snprintf(other, sizeof(other), "%s-shm", path);
    unlink(other);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "agent") == 0) {
        return run_agent(argv[1]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives_over_http)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
