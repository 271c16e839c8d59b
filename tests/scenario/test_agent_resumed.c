/* A handler that goes on where a killed process left it. The agent's tasks are in a file; it is
 * killed in the middle of a handler's work, and started anew: with bay_agent_resumable the message
 * is given to the same skill's handler again, which knows what it remembered; without, the task has
 * failed and says so. What waited for the handler, or for an answer, is still answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

#include "patchbay/agent.h"

enum { ANSWER_BYTES = 64 << 10, PATIENCE_S = 60 /* bounds a broken test, not a working one */ };

/* ---- the agent: what runs in the other process */

static bool says(const bay_message *message, const char *text)
{
    bay_str said = bay_message_text(message);
    return said.len == strlen(text) && memcmp(said.at, text, said.len) == 0;
}

static void remember(bay_task *task, const char *text)
{
    if (bay_task_remember(task, text, strlen(text)) != BAY_OK) {
        bay_task_fail(task, "cannot remember");
    }
}

/* Until the process is killed. */
static void work(bay_task *task)
{
    remember(task, "one");
    bay_task_status(task, BAY_TASK_STATE_WORKING, "step one");
    remember(task, "two");
    bay_task_status(task, BAY_TASK_STATE_WORKING, "step two");
    while (bay_task_sleep(task, 1000)) {
    }
}

static void step(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    bay_str kept = bay_task_remembered(task);
    bay_str said = bay_message_text(message);
    if (says(message, "ask")) {
        remember(task, "topic");
        bay_task_ask(task, "what of it?");
    } else if (says(message, "answer")) {
        bay_task_completef(task, "%.*s answered, resumed %d", (int)kept.len, kept.at,
                           bay_task_is_resumed(task));
    } else if (!bay_task_is_resumed(task)) {
        work(task);
    } else if (says(message, "work")) {
        bay_task_completef(task, "after %.*s: %.*s", (int)kept.len, kept.at, (int)said.len,
                           said.at);
    } else {
        bay_task_ask(task, "go on?");
    }
}

static void other(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    bay_task_complete(task, "the other skill");
}

static int run_agent(const char *path, bool is_resumable)
{
    bay_diag diag;
    bay_agent *agent = bay_agent_new("resumed", "1.0.0", "Is killed, and goes on.");
    bay_agent_skill(agent, "other", "Other", "Does something else.", other, NULL);
    bay_agent_skill(agent, "step", "Step", "Works in steps.", step, NULL);
    bay_agent_store(agent, path);
    if (is_resumable) {
        bay_agent_resumable(agent);
    }
    if (bay_agent_listen(agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    printf("%d\n", (int)bay_agent_port(agent));
    fflush(stdout);
    return bay_agent_run(agent, &diag) == BAY_OK ? 0 : 1;
}

typedef struct scene {
    char path[64];
    pid_t child;
    uint16_t port;
} scene;

static void start(scene *self, bool is_resumable)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    self->child = fork();
    assert_true(self->child >= 0);
    if (self->child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl("/proc/self/exe", is_resumable ? "resumable" : "plain", self->path, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *said = fdopen(out[0], "r");
    int port = 0;
    assert_int_equal(fscanf(said, "%d", &port), 1);
    fclose(said);
    self->port = (uint16_t)port;
}

static void kill_agent(scene *self)
{
    int status;
    kill(self->child, SIGKILL);
    assert_int_equal(waitpid(self->child, &status, 0), self->child);
    assert_true(WIFSIGNALED(status));
}

/* ---- its client */

/* One request; *answer has what comes until it ends or, unless `until` is NULL, has come. */
static void ask(const scene *self, const char *method, const char *params, const char *until,
                char answer[ANSWER_BYTES])
{
    char body[1024];
    char request[2048];
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(self->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}",
             method, params);
    int len = snprintf(request, sizeof(request),
                       "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nA2A-Version: 1.0\r\nConnection: "
                       "close\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       (int)self->port, strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    size_t have = 0;
    answer[0] = '\0';
    for (ssize_t count = 1; count > 0 && (until == NULL || strstr(answer, until) == NULL);) {
        count = recv(fd, answer + have, ANSWER_BYTES - 1 - have, 0);
        have += count > 0 ? (size_t)count : 0;
        answer[have] = '\0';
    }
    close(fd);
    if (until != NULL && strstr(answer, until) == NULL) {
        fail_msg("%s: no %s in %s", method, until, answer);
    }
}

static void send_message(const scene *self, const char *text, const char *more, bool is_stream,
                         const char *until)
{
    char params[512];
    char answer[ANSWER_BYTES];
    snprintf(
        params, sizeof(params),
        "\"message\":{\"messageId\":\"%s\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"%s\"}]"
        "%s},\"configuration\":{\"returnImmediately\":true}",
        text, text, more);
    ask(self, is_stream ? "SendStreamingMessage" : "SendMessage", params, until, answer);
}

/* A task, once it is over. */
static void settle(const scene *self, const char *id, char answer[ANSWER_BYTES])
{
    char params[128];
    snprintf(params, sizeof(params), "\"id\":\"%s\"", id);
    ask(self, "SubscribeToTask", params, NULL, answer); /* ends then, or is refused */
    ask(self, "GetTask", params, NULL, answer);
}

/* The id of the only one there is. */
static void first_task(const scene *self, char id[64])
{
    char answer[ANSWER_BYTES];
    ask(self, "ListTasks", "", NULL, answer);
    const char *at = strstr(answer, "{\"tasks\":[{\"id\":\"");
    assert_non_null(at);
    assert_non_null(strstr(answer, "\"totalSize\":1}"));
    snprintf(id, 64, "%.36s", at + 17);
}

static void assert_has(const char *answer, const char *part)
{
    if (strstr(answer, part) == NULL) {
        fail_msg("no %s in %s", part, answer);
    }
}

/* ---- the scenes */

#define TO_STEP ",\"metadata\":{\"skillId\":\"step\"}"

static int set_up(void **state)
{
    scene *self = calloc(1, sizeof(*self));
    strncpy(self->path, "/tmp/patchbay-resumed-XXXXXX", sizeof(self->path) - 1);
    int file = mkstemp(self->path);
    assert_true(file >= 0);
    close(file);
    *state = self;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    scene *self = *state;
    char path[80];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", self->path, ends[i]);
        unlink(path);
    }
    free(self);
    return 0;
}

static void a_handler_goes_on_where_it_was(void **state)
{
    scene *self = *state;
    char id[64];
    char answer[ANSWER_BYTES];
    start(self, true);
    send_message(self, "work", TO_STEP, true, "step two");
    kill_agent(self);
    start(self, true);
    first_task(self, id);
    settle(self, id, answer);
    assert_has(answer, "TASK_STATE_COMPLETED");
    assert_has(answer, "after two: work");
    kill_agent(self);
    start(self, true); /* what is over is not done again */
    settle(self, id, answer);
    assert_has(answer, "after two: work");
    kill_agent(self);
}

static void what_is_not_resumable_has_failed(void **state)
{
    scene *self = *state;
    char id[64];
    char answer[ANSWER_BYTES];
    start(self, false);
    send_message(self, "work", TO_STEP, true, "step two");
    kill_agent(self);
    start(self, false);
    first_task(self, id);
    settle(self, id, answer);
    assert_has(answer, "TASK_STATE_FAILED");
    assert_null(strstr(answer, "after two"));
    kill_agent(self);
}

static void a_message_that_waited_is_answered_after_the_one_before(void **state)
{
    scene *self = *state;
    char id[64];
    char more[96];
    char answer[ANSWER_BYTES];
    start(self, true);
    send_message(self, "hold", TO_STEP, true, "step two");
    first_task(self, id);
    snprintf(more, sizeof(more), ",\"taskId\":\"%s\"", id);
    send_message(self, "answer", more, false, "\"task\"");
    kill_agent(self);
    start(self, true);
    do {
        settle(self, id, answer);
    } while (strstr(answer, "TASK_STATE_COMPLETED") == NULL &&
             strstr(answer, "TASK_STATE_FAILED") == NULL);
    assert_has(answer, "two answered, resumed 0");
    kill_agent(self);
}

static void a_question_is_answered_in_another_process(void **state)
{
    scene *self = *state;
    char id[64];
    char more[96];
    char answer[ANSWER_BYTES];
    start(self, true);
    send_message(self, "ask", TO_STEP, true, "what of it?");
    kill_agent(self);
    start(self, true);
    first_task(self, id);
    snprintf(more, sizeof(more), "\"id\":\"%s\"", id);
    ask(self, "GetTask", more, "TASK_STATE_INPUT_REQUIRED", answer);
    snprintf(more, sizeof(more), ",\"taskId\":\"%s\"", id);
    send_message(self, "answer", more, true, "topic answered, resumed 0");
    kill_agent(self);
}

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[0], "resumable") == 0 || strcmp(argv[0], "plain") == 0)) {
        return run_agent(argv[1], argv[0][0] == 'r');
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_handler_goes_on_where_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_resumable_has_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_message_that_waited_is_answered_after_the_one_before,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_question_is_answered_in_another_process, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
