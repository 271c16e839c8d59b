/* Push notifications as caller and webhook see them: what is registered with a message arrives,
 * authenticated, in the version of its registration; what must not be registered is refused before
 * there is a task. */
#include "agent_rig.h"

#include "http/http_server.h"

typedef struct webhook {
    http_server *server;
    size_t requests;
    buf seen;
} webhook;

static void on_request(void *user, http_exchange *exchange)
{
    static const char *const names[] = {"Content-Type", "A2A-Version", "Authorization",
                                        "X-A2A-Notification-Token"};
    webhook *self = user;
    for (size_t i = 0; i < 4; i++) {
        bay_str value = http_exchange_field(exchange, str_of(names[i]));
        buf_printf(&self->seen, "%s: %.*s\n", names[i], BAY_STR(value));
    }
    buf_printf(&self->seen, "%.*s\n", BAY_STR(http_exchange_body(exchange)));
    self->requests++;
    http_exchange_reply(exchange, 200, NULL, 0, STR(""));
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void webhook_open(webhook *self, loop *on)
{
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    *self = (webhook){.requests = 0};
    buf_init(&self->seen, 1 << 20);
    assert_int_equal(http_server_new(on, &options, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), NULL), BAY_OK);
}

static void webhook_close(webhook *self)
{
    http_server_free(self->server);
    buf_fini(&self->seen);
}

static bool has_seen(const webhook *self, const char *text)
{
    return self->seen.len > 0 && memmem(self->seen.at, self->seen.len, text, strlen(text)) != NULL;
}

static void work(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (*(int *)user)++;
    assert_int_equal(bay_task_status(task, BAY_TASK_STATE_WORKING, "working"), BAY_OK);
    assert_int_equal(bay_task_complete(task, "done"), BAY_OK);
}

static bay_agent *agent_new(int *turns, const char *allow)
{
    bay_agent *agent = bay_agent_new("test", "1.0.0", "Tests.");
    assert_non_null(bay_agent_skill(agent, "one", "One", "The first.", work, turns));
    bay_agent_push(agent);
    if (allow != NULL) {
        bay_agent_push_allow(agent, allow);
    }
    agent_listen(agent);
    return agent;
}

static void send_with(bay_agent *agent, const char *config, int status, const char *part)
{
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
             "\"messageId\":\"m-%s\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]},"
             "\"configuration\":{\"taskPushNotificationConfig\":%s}}}",
             part[0] == '"' ? "good" : "bad", config);
    agent_expect(agent, "/", AGENT_JSON, body, status, part);
}

static void what_is_refused_makes_no_task(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "{\"url\":\"http://127.0.0.1:9/\"}",
        "{\"url\":\"http://localhost:9/\"}",
        "{\"url\":\"http://[::ffff:127.0.0.1]/\"}",
        "{\"url\":\"http://169.254.169.254/latest/meta-data\"}",
        "{\"url\":\"http://10.0.0.1/\"}",
        "{\"url\":\"file:///etc/passwd\"}",
        "{\"url\":\"https://user:pw@hooks.example/\"}",
        "{\"url\":\"https://hooks.example/\",\"token\":\"a\\r\\nX-Evil: 1\"}",
        "{\"url\":\"https://hooks.example/\",\"authentication\":{\"scheme\":\"Bearer\","
        "\"credentials\":\"a\\nX-Evil: 1\"}}",
    };
    int turns = 0;
    bay_agent *agent = agent_new(&turns, NULL);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        send_with(agent, configs[i], 200, "-32602");
    }
    assert_int_equal(turns, 0);
    bay_agent_free(agent);
}

static void events_arrive(void **state)
{
    (void)state;
    int turns = 0;
    webhook hook;
    bay_agent *agent = agent_new(&turns, "127.0.0.1");
    webhook_open(&hook, agent_loop(agent));
    char config[512];
    snprintf(config, sizeof(config),
             "{\"url\":\"http://127.0.0.1:%u/hook\",\"token\":\"tok\",\"authentication\":{"
             "\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}}",
             http_server_port(hook.server));
    send_with(agent, config, 200, "\"TASK_STATE_COMPLETED\"");
    int left = 100000;
    while (!has_seen(&hook, "TASK_STATE_COMPLETED") && left-- > 0) {
        (void)loop_turn(agent_loop(agent), 5);
    }
    assert_true(has_seen(&hook, "TASK_STATE_COMPLETED"));
    assert_true(has_seen(&hook, "TASK_STATE_WORKING"));
    assert_true(has_seen(&hook, "Content-Type: application/a2a+json\nA2A-Version: 1.0\n"
                                "Authorization: Bearer s3cret\nX-A2A-Notification-Token: tok\n"));
    assert_int_equal(turns, 1);
    webhook_close(&hook);
    bay_agent_free(agent);
}

static void older_webhooks_get_tasks(void **state)
{
    (void)state;
    int turns = 0;
    webhook hook;
    bay_agent *agent = agent_new(&turns, "127.0.0.1");
    webhook_open(&hook, agent_loop(agent));
    char body[1024];
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{\"message\":{"
             "\"kind\":\"message\",\"messageId\":\"m\",\"role\":\"user\",\"parts\":[{\"kind\":"
             "\"text\",\"text\":\"x\"}]},\"configuration\":{\"blocking\":true,"
             "\"pushNotificationConfig\":{\"url\":\"http://127.0.0.1:%u/\",\"token\":\"tok\"}}}}",
             http_server_port(hook.server));
    agent_expect(agent, "/", "Content-Type: application/json\r\n", body, 200, "\"completed\"");
    int left = 100000;
    while (!has_seen(&hook, "\"completed\"") && left-- > 0) {
        (void)loop_turn(agent_loop(agent), 5);
    }
    assert_true(has_seen(&hook, "\"kind\":\"task\""));
    assert_true(has_seen(&hook, "Content-Type: application/json\nA2A-Version: 0.3\n"));
    assert_false(has_seen(&hook, "TASK_STATE_"));
    webhook_close(&hook);
    bay_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_makes_no_task),
        cmocka_unit_test(events_arrive),
        cmocka_unit_test(older_webhooks_get_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
