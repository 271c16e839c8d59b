/* examples/tck_agent as a program of its own: for every prefix of a message's id it behaves as its
 * table says, on every binding of 1.0 and 0.3 and in 0.1, whole and as a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/skipped.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchbay/caller.h"

#define PROGRAM BAY_TEST_BINARY_DIR "/examples/tck_agent"

enum { ANSWER_BYTES = 256 * 1024 };

static pid_t agent;
static uint16_t port;
static char answer[ANSWER_BYTES];

/* ---- the program ----------------------------------------------------------------------------- */

static int begin(void **state)
{
    int ends[2];
    char line[512];
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
    while (port == 0 && fgets(line, sizeof(line), said) != NULL) {
        const char *at = strstr(line, "http://127.0.0.1:");
        port = at != NULL ? (uint16_t)strtoul(at + 17, NULL, 10) : 0;
    }
    return port != 0 ? 0 : -1;
}

static int end(void **state)
{
    int status = 0;
    (void)state;
    kill(agent, SIGTERM);
    return waitpid(agent, &status, 0) == agent && WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : -1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The whole answer, head and body, stands in `answer`. */
static void ask(const char *target, const char *fields, const char *body)
{
    char head[1024];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int len = snprintf(head, sizeof(head),
                       "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
                       target, fields, strlen(body));
    assert_int_equal(send(fd, head, (size_t)len, MSG_NOSIGNAL), len);
    assert_int_equal(send(fd, body, strlen(body), MSG_NOSIGNAL), (ssize_t)strlen(body));
    size_t got = 0;
    ssize_t more;
    while (got < sizeof(answer) - 1 &&
           (more = recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) > 0) {
        got += (size_t)more;
    }
    answer[got] = '\0';
    close(fd);
}

/* How one form asks: the target, the fields, the body with id and task (as a member, or empty). */
typedef struct form {
    const char *name;
    const char *target, *stream_target;
    const char *fields;
    const char *body, *stream_body;
    const char *task_member;
    bool is_old; /* states in lower case */
    bool has_tasks_only;
} form;

#define V1 "A2A-Version: 1.0\r\n"
#define PARTS_1 "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]"
#define MESSAGE_1 "{\"message\":{\"messageId\":\"%s\"%s," PARTS_1 "}}"
#define RPC(method, params)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define MESSAGE_0_3                                                                                \
    "{\"configuration\":{\"blocking\":true},\"message\":{\"kind\":\"message\",\"messageId\":\""    \
    "%s\"%s,\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"x\"}]}}"
#define MESSAGE_0_3_REST                                                                           \
    "{\"configuration\":{\"blocking\":true},\"message\":{\"messageId\":\"%s\"%s,\"role\":"         \
    "\"ROLE_USER\",\"content\":[{\"text\":\"x\"}]}}"

static const form forms[] = {
    {"JSON-RPC 1.0", "/", "/", V1, RPC("SendMessage", MESSAGE_1),
     RPC("SendStreamingMessage", MESSAGE_1), ",\"taskId\":\"%s\"", false, false},
    {"HTTP+JSON 1.0", "/message:send", "/message:stream", V1, MESSAGE_1, MESSAGE_1,
     ",\"taskId\":\"%s\"", false, false},
    {"JSON-RPC 0.3", "/", "/", "", RPC("message/send", MESSAGE_0_3),
     RPC("message/stream", MESSAGE_0_3), ",\"taskId\":\"%s\"", true, false},
    {"HTTP+JSON 0.3", "/v1/message:send", "/v1/message:stream", "", MESSAGE_0_3_REST,
     MESSAGE_0_3_REST, ",\"taskId\":\"%s\"", false, false},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static void send_to(const form *self, bool is_stream, const char *id, const char *task)
{
    char member[128] = "";
    char body[1024];
    if (task != NULL) {
        snprintf(member, sizeof(member), self->task_member, task);
    }
    snprintf(body, sizeof(body), is_stream ? self->stream_body : self->body, id, member);
    ask(is_stream ? self->stream_target : self->target, self->fields, body);
}

static void expect(const form *self, const char *id, const char *part)
{
    if (strstr(answer, part) == NULL) {
        fail_msg("%s, %s: no %s in %s", self->name, id, part, answer);
    }
}

static const char *state_of(const form *self, const char *state)
{
    static char text[64];
    static const char *const pairs[][2] = {{"TASK_STATE_COMPLETED", "\"completed\""},
                                           {"TASK_STATE_WORKING", "\"working\""},
                                           {"TASK_STATE_REJECTED", "\"rejected\""},
                                           {"TASK_STATE_INPUT_REQUIRED", "\"input-required\""}};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(pairs[i][0], state) == 0) {
            snprintf(text, sizeof(text), "%s", pairs[i][self->is_old ? 1 : 0]);
        }
    }
    return text;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct row {
    const char *prefix;
    const char *state; /* NULL: a message */
    const char *part;  /* in every form */
} row;

static const row rows[] = {
    {"tck-complete-task", "TASK_STATE_COMPLETED", "Hello from TCK"},
    {"tck-artifact-text", "TASK_STATE_COMPLETED", "Generated text content"},
    {"tck-artifact-file", "TASK_STATE_COMPLETED", "R2VuZXJhdGVkIGZpbGUgY29udGVudA=="},
    {"tck-artifact-file-url", "TASK_STATE_COMPLETED", "https://example.com/output.txt"},
    {"tck-artifact-data", "TASK_STATE_COMPLETED", "{\"key\":\"value\",\"count\":42}"},
    {"tck-message-response", NULL, "Direct message response"},
    {"tck-input-required", "TASK_STATE_INPUT_REQUIRED", "Please say more"},
    {"tck-reject-task", "TASK_STATE_REJECTED", "Rejected by TCK"},
    {"tck-delayed-complete", "TASK_STATE_COMPLETED", "Hello from TCK"},
    {"tck-stream-001", "TASK_STATE_COMPLETED", "Generated text content"},
    {"tck-stream-002", "TASK_STATE_COMPLETED", "Hello from TCK"},
    {"tck-stream-003", "TASK_STATE_COMPLETED", "Generated text content"},
    {"tck-stream-ordering-001", "TASK_STATE_COMPLETED", "Generated text content"},
    {"tck-stream-artifact-text", "TASK_STATE_COMPLETED", "Generated text content"},
    {"tck-stream-artifact-file", "TASK_STATE_COMPLETED", "output.txt"},
    {"tck-stream-artifact-chunked", "TASK_STATE_COMPLETED", "chunk-2"},
    {"anything-else", "TASK_STATE_COMPLETED", "Hello from TCK"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void every_prefix_is_answered_in_every_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        for (size_t k = 0; k < ROWS; k++) {
            char id[128];
            snprintf(id, sizeof(id), "%s-%zu", rows[k].prefix, i);
            send_to(&forms[i], false, id, NULL);
            expect(&forms[i], id, "HTTP/1.1 200");
            expect(&forms[i], id, rows[k].part);
            if (rows[k].state != NULL) {
                expect(&forms[i], id, state_of(&forms[i], rows[k].state));
            } else {
                assert_null(strstr(answer, "\"status\""));
            }
        }
    }
}

static void what_asks_back_is_completed_by_a_later_message(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        char id[64];
        char task[40];
        snprintf(id, sizeof(id), "tck-input-required-later-%zu", i);
        send_to(&forms[i], false, id, NULL);
        const char *at = strstr(answer, "\"taskId\":\""); /* of the message that it asks with */
        assert_non_null(at);
        snprintf(task, sizeof(task), "%.36s", at + 10);
        snprintf(id, sizeof(id), "tck-complete-task-later-%zu", i);
        send_to(&forms[i], false, id, task);
        expect(&forms[i], id, task);
        expect(&forms[i], id, state_of(&forms[i], "TASK_STATE_COMPLETED"));
    }
}

/* In this order, somewhere. */
static void expect_order(const form *self, const char *id, const char *const *parts)
{
    const char *at = answer;
    for (; *parts != NULL; parts++) {
        const char *found = strstr(at, *parts);
        if (found == NULL) {
            fail_msg("%s, %s: no %s behind what came before: %s", self->name, id, *parts, answer);
        }
        at = found + strlen(*parts);
    }
}

static void streams_say_one_thing_after_the_other(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"tck-stream-001", "tck-stream-003",
                                           "tck-stream-ordering-001", "tck-stream-artifact-text",
                                           "tck-stream-artifact-file"};
    for (size_t i = 0; i < FORMS; i++) {
        char working[64];
        char completed[64];
        snprintf(working, sizeof(working), "%s", state_of(&forms[i], "TASK_STATE_WORKING"));
        snprintf(completed, sizeof(completed), "%s", state_of(&forms[i], "TASK_STATE_COMPLETED"));
        for (size_t k = 0; k < 5; k++) {
            char id[128];
            const char *const order[] = {"text/event-stream", working,   "artifactId",
                                         "lastChunk",         completed, NULL};
            snprintf(id, sizeof(id), "%s-s%zu", prefixes[k], i);
            send_to(&forms[i], true, id, NULL);
            expect_order(&forms[i], id, order);
        }
        const char *const chunks[] = {working,     "chunk-1 ", "\"append\":true",
                                      "lastChunk", completed,  NULL};
        char id[64];
        snprintf(id, sizeof(id), "tck-stream-artifact-chunked-s%zu", i);
        send_to(&forms[i], true, id, NULL);
        expect_order(&forms[i], id, chunks);
        expect(&forms[i], id, "chunk-2");
        snprintf(id, sizeof(id), "tck-message-response-s%zu", i);
        send_to(&forms[i], true, id, NULL);
        expect(&forms[i], id, "Direct message response");
        assert_null(strstr(answer, "\"status\""));
        snprintf(id, sizeof(id), "tck-input-required-s%zu", i);
        send_to(&forms[i], true, id, NULL); /* the stream ends there */
        expect(&forms[i], id, state_of(&forms[i], "TASK_STATE_INPUT_REQUIRED"));
        snprintf(id, sizeof(id), "test-resubscribe-message-id-s%zu", i);
        send_to(&forms[i], true, id, NULL);
        const char *const resubscribed[] = {working, completed, NULL};
        expect_order(&forms[i], id, resubscribed);
    }
}

#ifndef BAY_NO_HTTP2
static void count_events(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    int *counts = user;
    counts[bay_caller_reply_kind_of(event)]++;
}

static bay_caller_reply *send_by_grpc(bay_caller *caller, const char *id, int *counts)
{
    char request[256];
    bay_caller_reply *response = NULL;
    bay_diag diag;
    snprintf(request, sizeof(request), MESSAGE_1, id, "");
    bay_caller_request *operation = bay_caller_request_new(
        caller, counts != NULL ? "SendStreamingMessage" : "SendMessage", request);
    if (counts != NULL) {
        bay_caller_request_on_event(operation, count_events, counts);
    }
    if (bay_caller_request_run(operation, &response, &diag) != BAY_OK) {
        fail_msg("%s: %s", id, diag.text);
    }
    return response;
}

static void check_by_grpc(bay_caller *caller, const char *version, const row *one)
{
    char id[128];
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        int counts[16] = {0};
        snprintf(id, sizeof(id), "%s-grpc-%s-%d", one->prefix, version, is_stream);
        bay_caller_reply *response = send_by_grpc(caller, id, is_stream != 0 ? counts : NULL);
        bay_str json = bay_caller_reply_json(response);
        if (memmem(json.at, json.len, one->part, strlen(one->part)) == NULL ||
            (one->state != NULL &&
             memmem(json.at, json.len, one->state, strlen(one->state)) == NULL)) {
            fail_msg("gRPC %s, %s: no %s, %s in %.*s", version, id, one->part,
                     one->state != NULL ? one->state : "", BAY_STR(json));
        }
        assert_int_equal(bay_caller_reply_kind_of(response) == BAY_CALLER_REPLY_KIND_MESSAGE,
                         one->state == NULL);
        assert_true(is_stream == 0 || counts[BAY_CALLER_REPLY_KIND_STATUS] +
                                              counts[BAY_CALLER_REPLY_KIND_TASK] +
                                              counts[BAY_CALLER_REPLY_KIND_MESSAGE] >
                                          0);
        bay_caller_reply_free(response);
    }
}

static void every_prefix_is_answered_by_grpc(void **state)
{
    (void)state;
    static const char *const versions[] = {"1.0", "0.3"};
    char address[64];
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", port);
    for (size_t i = 0; i < 2; i++) {
        bay_caller *caller = NULL;
        bay_diag diag;
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_interface(options, "GRPC", versions[i]);
        if (bay_caller_connect(address, options, &caller, &diag) != BAY_OK) {
            fail_msg("%s", diag.text);
        }
        bay_caller_options_free(options);
        for (size_t k = 0; k < ROWS; k++) {
            if (strcmp(rows[k].prefix, "tck-artifact-data") != 0) {
                check_by_grpc(caller, versions[i], &rows[k]);
            }
        }
        bay_caller_reply *data =
            send_by_grpc(caller, i == 0 ? "tck-artifact-data-g1" : "tck-artifact-data-g2", NULL);
        bay_str json =
            bay_message_data(bay_caller_reply_artifact(data, 0)); /* a Struct: any order */
        assert_non_null(memmem(json.at, json.len, "\"key\":\"value\"", 13));
        assert_non_null(memmem(json.at, json.len, "\"count\":42", 10));
        bay_caller_reply_free(data);
        int counts[16] = {0}; /* works for seconds: its stream says so and then that it is done */
        bay_caller_reply *slow = send_by_grpc(
            caller, i == 0 ? "test-resubscribe-message-id-g1" : "test-resubscribe-message-id-g2",
            counts);
        json = bay_caller_reply_json(slow);
        assert_non_null(memmem(json.at, json.len, "TASK_STATE_COMPLETED", 20));
        assert_true(counts[BAY_CALLER_REPLY_KIND_STATUS] >= 2);
        bay_caller_reply_free(slow);
        bay_caller_close(caller);
    }
}
#else
SKIPPED(every_prefix_is_answered_by_grpc, "this build has no HTTP/2, which gRPC is")
#endif

static void clients_of_0_1_bring_their_own_task(void **state)
{
    (void)state;
    ask("/", "",
        RPC("tasks/send", "{\"id\":\"mine-1\",\"message\":{\"role\":\"user\",\"parts\":[{\"type\":"
                          "\"text\",\"text\":\"x\"}]}}"));
    assert_non_null(strstr(answer, "\"id\":\"mine-1\""));
    assert_non_null(strstr(answer, "\"completed\""));
    ask("/", "", RPC("tasks/get", "{\"id\":\"mine-1\"}"));
    assert_non_null(strstr(answer, "\"mine-1\""));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_is_answered_in_every_form),
        cmocka_unit_test(what_asks_back_is_completed_by_a_later_message),
        cmocka_unit_test(streams_say_one_thing_after_the_other),
        cmocka_unit_test(every_prefix_is_answered_by_grpc),
        cmocka_unit_test(clients_of_0_1_bring_their_own_task),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
