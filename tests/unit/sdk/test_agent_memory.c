/* An agent from its making to its end, with every allocation failing in turn: it refuses, answers
 * an error or does without, and gives everything back. */
#include "agent_rig.h"
#include "support/failing_memory.h"

static const char *what; /* the handler is to do */

static void handle(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    (void)bay_message_text(message);
    if (strcmp(what, "reply") == 0) {
        bay_message *answer = bay_message_new();
        bay_message_add_textf(answer, "%d", 1);
        bay_message_add_data(answer, "{}");
        bay_message_add_metadata(answer, "a", "b");
        (void)bay_task_reply_message(task, answer);
        bay_message_free(answer);
    } else if (strcmp(what, "ask") == 0) {
        (void)bay_task_remember(task, "x", 1);
        (void)bay_task_ask(task, "what?");
    } else {
        bay_artifact *artifact = bay_task_artifact(task, "name", "text/plain");
        bay_artifact_describe(artifact, "described");
        (void)bay_artifact_append(artifact, "a");
        (void)bay_artifact_append(artifact, "b");
        (void)bay_task_completef(task, "%s", "done");
    }
}

static bay_agent *make(void)
{
    bay_agent *agent = bay_agent_new("memory", "1.0.0", "Lacks some.");
    bay_skill *skill = bay_agent_skill(agent, "one", "One", "The first.", handle, NULL);
    bay_skill_tag(skill, "tag");
    bay_agent_skill(agent, "two", "Two", "The second.", handle, NULL);
    bay_agent_extension(agent, "urn:x", "An extension.", false, "{}");
    bay_agent_api_key(agent, "key", "header", "X-API-Key", NULL, NULL);
    bay_agent_api_key_add(agent, "key", "secret", "alice", NULL);
    bay_agent_extended(agent, "{\"description\":\"More.\"}");
    bay_agent_on_loop(agent);
    return agent;
}

/* One request without an allocation of ours; until an answer or the end of the connection. */
static void ask_plainly(bay_agent *agent, const char *body)
{
    char got[8192];
    char text[2048];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(bay_agent_port(agent))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int len = snprintf(text, sizeof(text),
                       "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" AGENT_JSON
                       "X-API-Key: secret\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    int64_t end = test_now_ms() + GIVE_UP_MS;
    for (;;) {
        ssize_t more = recv(fd, got, sizeof(got), MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN)) {
            break;
        }
        assert_true(test_now_ms() < end);
        (void)loop_turn(agent_loop(agent), 1);
    }
    close(fd);
}

static void live(const char *doing, const char *body)
{
    what = doing;
    bay_agent *agent = make();
    if (bay_agent_listen(agent, "127.0.0.1:0", NULL) == BAY_OK) {
        ask_plainly(agent, body);
    }
    bay_agent_free(agent);
}

static void no_lack_of_memory_is_fatal(void **state)
{
    (void)state;
    static const char *const doings[] = {"work", "reply", "ask"};
    for (size_t i = 0; i < ARRAY_LEN(doings); i++) {
        size_t at = 0;
        for (; failing_memory_start_single(at); at++) {
            live(doings[i], AGENT_SEND("m", "x", ",\"metadata\":{\"skillId\":\"two\"}"));
            failing_memory_check();
        }
        assert_true(at > 100); /* it came as far as an answer */
        for (at = 0; failing_memory_start(at); at++) {
            live(doings[i], AGENT_SEND("m", "x", ""));
            failing_memory_check();
        }
    }
}

static void a_stream_lacks_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start_single(at); at++) {
        live("work", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":"
                     "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{"
                     "\"text\":\"x\"}]}}}");
        failing_memory_check();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lack_of_memory_is_fatal),
        cmocka_unit_test(a_stream_lacks_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
