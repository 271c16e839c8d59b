/* A server with a file of tasks is killed in the middle of its work, and started again on the same
 * file: every task whose name a client has heard is there, with its result, failed, or run again.
 * The server is a process of its own; clients are bare sockets, and keep all that they hear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchbay/server.h"

enum {
    TASKS = 1000,
    CLIENTS = 8,
    ENOUGH = 600, /* tasks that are named before the server is killed */
    ID_BYTES = 32,
    PATIENCE_MS = 30000, /* bounds a broken test, not a working one */
    LOOKS = 200000,      /* the same */
};

#define FIELDS(method, name)                                                                       \
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"                  \
    "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"          \
    "Mcp-Method: " method "\r\nMcp-Name: " name "\r\nContent-Length: %zu\r\n\r\n%s"
#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"extensions\":{"          \
    "\"io.modelcontextprotocol/tasks\":{}}}}"

/* ---- the server: what runs in the other process */

static bool is_second; /* started again */

/* "0": at once, "1": never in the first process, "2": asks, "3": becomes a task, at once. */
static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "agreed: %.*s", (int)bay_answer_str(answer, "ok").len,
                    bay_answer_str(answer, "ok").at);
}

static void work(bay_call *call, void *user)
{
    int64_t number = 0;
    (void)user;
    if (bay_call_int(call, "number", &number) != BAY_OK) {
        bay_call_fail(call, "no number");
    } else if (number % 4 == 2) {
        bay_call_question_key(call, "sure");
        bay_call_elicit_schema(
            call, "Sure?", "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}}}",
            answered, NULL);
    } else if (number % 4 == 1 && !is_second) {
        (void)bay_call_defer(call);
    } else {
        bay_call_replyf(call, "number %lld", (long long)number);
    }
}

static void run_server(const char *path, int say)
{
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"number\":{\"type\":"
                                 "\"integer\"}},\"required\":[\"number\"]}";
    bay_diag diag;
    bay_server *server = bay_server_new("survivor", "1");
    bay_tool *again = bay_server_tool_schema(server, "again", "d", schema, work, NULL);
    bay_tool *fails = bay_server_tool_schema(server, "fails", "d", schema, work, NULL);
    bay_tool_task(again, BAY_TASK_MODE_REQUIRED);
    bay_tool_task(fails, BAY_TASK_MODE_REQUIRED);
    bay_tool_resumable(again);
    bay_server_store(server, path);
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 1);
    if (bay_server_listen(server, "127.0.0.1:0", &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        _exit(1);
    }
    uint16_t port = bay_server_port(server);
    if (write(say, &port, sizeof(port)) != sizeof(port) ||
        bay_server_run(server, &diag) != BAY_OK) {
        _exit(1);
    }
    bay_server_free(server);
    _exit(0);
}

typedef struct process {
    pid_t id;
    uint16_t port;
} process;

static void start(process *self, const char *path, bool again)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    self->id = fork();
    assert_true(self->id >= 0);
    if (self->id == 0) {
        close(ends[0]);
        is_second = again;
        alarm(100); /* whatever becomes of the test, nothing is left behind */
        run_server(path, ends[1]);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &self->port, sizeof(self->port)), sizeof(self->port));
    close(ends[0]);
}

static void kill_hard(const process *self)
{
    int status;
    assert_int_equal(kill(self->id, SIGKILL), 0);
    assert_int_equal(waitpid(self->id, &status, 0), self->id);
    assert_true(WIFSIGNALED(status));
}

/* ---- clients */

typedef struct client {
    int socket;
    char *heard;
    size_t len;
    size_t cap;
} client;

static void client_open(client *self, uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *self = (client){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .cap = 1 << 20};
    self->heard = malloc(self->cap);
    assert_non_null(self->heard);
    assert_true(self->socket >= 0);
    assert_int_equal(connect(self->socket, (struct sockaddr *)&at, sizeof(at)), 0);
    self->heard[0] = '\0';
}

static void client_close(client *self)
{
    close(self->socket);
    free(self->heard);
}

static bool client_say(client *self, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(self->socket, text, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        text += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* False: the end. */
static bool client_hear(client *self)
{
    struct pollfd wait = {.fd = self->socket, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_true(self->len + 1 < self->cap);
    ssize_t got = recv(self->socket, self->heard + self->len, self->cap - self->len - 1, 0);
    if (got <= 0) {
        return false;
    }
    self->len += (size_t)got;
    self->heard[self->len] = '\0';
    return true;
}

static bool client_call(client *self, const char *tool, int number)
{
    char body[1024];
    char text[2048];
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                   "\"name\":\"%s\",\"arguments\":{\"number\":%d}," META "}}",
                   number, tool, number);
    int len = snprintf(text, sizeof(text), FIELDS("tools/call", "%s"), tool, strlen(body), body);
    return client_say(self, text, (size_t)len);
}

/* One request about a task and its whole answer. `more`: members, with a comma before them. */
static const char *client_ask(client *self, const char *method, const char *id, const char *more)
{
    char body[1024];
    char text[2048];
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"taskId\":\"%s\""
                   "%s," META "}}",
                   method, id, more);
    int len = snprintf(text, sizeof(text), FIELDS("%s", "%s"), method, id, strlen(body), body);
    self->len = 0;
    assert_true(client_say(self, text, (size_t)len));
    for (;;) {
        assert_true(client_hear(self));
        const char *body_at = strstr(self->heard, "\r\n\r\n");
        const char *length = strstr(self->heard, "Content-Length: ");
        if (body_at != NULL && length != NULL &&
            self->len >= (size_t)(body_at + 4 - self->heard) + strtoul(length + 16, NULL, 10)) {
            return body_at + 4;
        }
    }
}

/* ---- what was named */

typedef struct named {
    char id[ID_BYTES + 1];
    int number;
    bool is_resumable;
} named;

/* Every whole answer in what a client has heard. Its calls were all of one tool. */
static size_t collect(const client *from, bool is_resumable, named *out, size_t count, size_t most)
{
    const char *at = from->heard;
    while ((at = strstr(at, "{\"jsonrpc\"")) != NULL) {
        const char *end = strstr(at, "\"pollIntervalMs\"");
        const char *id = strstr(at, "\"taskId\":\"");
        const char *number = strstr(at, "\"id\":");
        if (end == NULL || id == NULL || id > end || number == NULL || number > end) {
            return count; /* cut off: not heard */
        }
        assert_true(count < most);
        memcpy(out[count].id, id + 10, ID_BYTES);
        out[count].id[ID_BYTES] = '\0';
        out[count].number = (int)strtol(number + 5, NULL, 10);
        out[count].is_resumable = is_resumable;
        count++;
        at = end;
    }
    return count;
}

static size_t collect_all(const client *clients, named *out, size_t most)
{
    size_t count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        count = collect(&clients[i], i % 2 == 0, out, count, most);
    }
    return count;
}

/* A thousand calls on eight connections, in turn, and the end in the middle of them. */
static size_t call_and_kill(const process *server, named *out)
{
    client clients[CLIENTS];
    size_t count = 0;
    int sent = 0;
    for (int i = 0; i < CLIENTS; i++) {
        client_open(&clients[i], server->port);
    }
    while (count < ENOUGH) {
        for (int i = 0; i < CLIENTS && sent < TASKS; i++) {
            assert_true(client_call(&clients[i], i % 2 == 0 ? "again" : "fails", sent++));
        }
        for (int i = 0; i < CLIENTS; i++) {
            struct pollfd wait = {.fd = clients[i].socket, .events = POLLIN};
            if (poll(&wait, 1, 0) == 1) {
                assert_true(client_hear(&clients[i]));
            }
        }
        count = collect_all(clients, out, TASKS);
    }
    kill_hard(server);
    for (int i = 0; i < CLIENTS; i++) {
        while (client_hear(&clients[i])) {
        }
    }
    count = collect_all(clients, out, TASKS);
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&clients[i]);
    }
    return count;
}

/* As if the time of a lease had passed since the process died. */
static void let_leases_run_out(const char *path)
{
    sqlite3 *file;
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(file, "UPDATE cell SET expires = 1 WHERE space = 2", NULL, NULL, NULL),
        SQLITE_OK);
    assert_true(sqlite3_total_changes(file) > 0); /* it had some */
    assert_int_equal(sqlite3_close(file), SQLITE_OK);
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* The end of one task, in a process that did not begin it. */
static const char *see_the_end(client *self, const named *one)
{
    for (int i = 0; i < LOOKS; i++) {
        const char *shown = client_ask(self, "tasks/get", one->id, "");
        if (has(shown, "\"status\":\"input_required\"")) {
            client_ask(self, "tasks/update", one->id,
                       ",\"inputResponses\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":"
                       "true}}}");
        } else if (!has(shown, "\"status\":\"working\"")) {
            return shown;
        }
    }
    fail_msg("%s of number %d never ends", one->id, one->number);
    return NULL;
}

/* A task that ended keeps its end; what was under way has failed, or has run again. */
static void check(client *self, const named *one, int *failed)
{
    char wanted[64];
    const char *shown = see_the_end(self, one);
    bool ends_at_once = one->number % 4 == 0 || one->number % 4 == 3;
    (void)snprintf(wanted, sizeof(wanted), "\"text\":\"number %d\"", one->number);
    if (one->number % 4 == 2) {
        (void)snprintf(wanted, sizeof(wanted), "\"text\":\"agreed: true\"");
    }
    bool is_completed = has(shown, "\"status\":\"completed\"") && has(shown, wanted);
    bool has_failed = has(shown, "\"status\":\"failed\"") && has(shown, "\"code\":-32603") &&
                      has(shown, "The server ended");
    bool is_right = one->is_resumable ? is_completed
                    : ends_at_once    ? is_completed || has_failed /* it was about to be stored */
                                      : has_failed;
    if (!is_right) {
        fail_msg("number %d, %s: %s", one->number, one->is_resumable ? "again" : "fails", shown);
    }
    *failed += has_failed;
}

static void stop_softly(const process *self)
{
    int status;
    assert_int_equal(kill(self->id, SIGTERM), 0);
    assert_int_equal(waitpid(self->id, &status, 0), self->id);
}

static void every_task_that_was_named_is_found_again(void **state)
{
    const char *path = *state;
    static named tasks[TASKS];
    process server;
    client looker;
    int failed = 0;
    start(&server, path, false);
    size_t count = call_and_kill(&server, tasks);
    assert_true(count >= ENOUGH);
    let_leases_run_out(path);
    start(&server, path, true);
    client_open(&looker, server.port);
    for (size_t i = 0; i < count; i++) {
        check(&looker, &tasks[i], &failed);
    }
    assert_true(failed > 0 && (size_t)failed < count);
    for (size_t i = 0; i < count; i++) { /* and it stays so */
        assert_true(
            has(client_ask(&looker, "tasks/get", tasks[i].id, ""), "\"status\":\"completed\"") ||
            has(looker.heard, "\"status\":\"failed\""));
    }
    client_close(&looker);
    stop_softly(&server);
}

/* ---- a folder for the file */

static char folder[] = "/tmp/bay-survive-XXXXXX";
static char path_text[sizeof(folder) + 16];

static int set_up(void **state)
{
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path_text, sizeof(path_text), "%s/tasks.db", folder);
    *state = path_text;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[sizeof(path_text) + 8];
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path_text, ends[i]);
        (void)unlink(name);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_task_that_was_named_is_found_again, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
