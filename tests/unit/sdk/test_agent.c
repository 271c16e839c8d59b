/* An agent as its program and its callers see it: registration, the card, turns, credentials. */
#include "agent_rig.h"

static void say_done(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    bay_task_complete(task, user != NULL ? user : "done");
}

static bay_agent *agent_new(bay_task_handler_fn handler)
{
    bay_agent *agent = bay_agent_new("test", "1.0.0", "Tests.");
    assert_non_null(bay_agent_skill(agent, "one", "One", "The first.", handler, NULL));
    return agent;
}

/* ---- registration ---------------------------------------------------------------------------- */

static void expect_error(bay_agent *agent, const char *part)
{
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(bay_agent_check(agent, &diag), BAY_ERR_INVALID);
    if (strstr(diag.text, part) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", diag.text, part);
    }
    assert_int_equal(bay_agent_listen(agent, "127.0.0.1:0", &diag), BAY_ERR_INVALID);
    bay_agent_free(agent);
}

static void bad_registrations_are_told_before_serving(void **state)
{
    (void)state;
    bay_agent *agent = bay_agent_new("test", "", "Tests.");
    expect_error(agent, "a name, a version and a description");
    expect_error(bay_agent_new("test", "1", "Tests."), "needs a skill");
    agent = agent_new(say_done);
    bay_agent_skill(agent, "one", "Again", "Again.", say_done, NULL);
    expect_error(agent, "one of that id already");
    agent = agent_new(say_done);
    bay_skill_tag(bay_agent_skill(agent, "two", "Two", "No handler.", NULL, NULL), "x");
    expect_error(agent, "no handler");
    agent = agent_new(say_done);
    bay_agent_set(agent, BAY_AGENT_SETTING_THREADS, 100000);
    expect_error(agent, "BAY_AGENT_SETTING_THREADS");
    agent = agent_new(say_done);
    bay_agent_url(agent, "ftp://example.com");
    expect_error(agent, "bay_agent_url");
    agent = agent_new(say_done);
    bay_agent_path(agent, "a b");
    expect_error(agent, "bay_agent_path");
    agent = agent_new(say_done);
    bay_agent_extended(agent, "{\"name\":\"more\"}");
    expect_error(agent, "no security scheme");
    agent = agent_new(say_done);
    bay_agent_extended(agent, "[]");
    expect_error(agent, "no JSON object");
    agent = agent_new(say_done);
    bay_agent_extension(agent, "urn:x", NULL, false, "[");
    expect_error(agent, "params");
    agent = agent_new(say_done);
    bay_agent_api_key(agent, "key", "body", "x", NULL, NULL);
    expect_error(agent, "\"header\"");
    agent = agent_new(say_done);
    bay_agent_api_key_add(agent, "key", "k", "alice", NULL);
    expect_error(agent, "no API key scheme");
    agent = agent_new(say_done);
    bay_agent_jwt(agent, "jwt", NULL, "aud", "/nowhere/at/all");
    expect_error(agent, "cannot be read");
    agent = agent_new(say_done);
    bay_agent_jwt(agent, "jwt", NULL, NULL, "{\"keys\":[]}");
    expect_error(agent, "which audience");
    agent = agent_new(say_done);
    bay_agent_mtls(agent, "mtls");
    expect_error(agent, "bay_agent_tls");
    agent = agent_new(say_done);
    bay_agent_scheme(agent, "s", "{}", "other", NULL, NULL);
    expect_error(agent, "no scheme \"other\"");
    agent = agent_new(say_done);
    bay_agent_require(agent, "nobody", NULL);
    expect_error(agent, "no security scheme");
    agent = agent_new(say_done);
    bay_agent_api_key(agent, "key", "header", "x-key", NULL, NULL);
    bay_agent_require(agent, "nobody", NULL);
    expect_error(agent, "nobody");
    agent = agent_new(say_done);
    bay_agent_signing_key(agent, "no key", NULL, NULL);
    expect_error(agent, "bay_agent_signing_key");
    bay_agent_free(NULL);
    assert_int_equal(bay_agent_check(NULL, NULL), BAY_ERR_NOMEM);
}

static void strangers_do_not_reach_an_agent_that_asks_for_nothing(void **state)
{
    (void)state;
    static const char *const addresses[] = {"0.0.0.0:0", "[::]:0", "192.0.2.1:0",
                                            ":0",        "0:0",    "[::ffff:0.0.0.0]:0"};
    bay_diag diag = {.code = BAY_OK};
    bay_agent *agent = agent_new(say_done);
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        assert_int_equal(bay_agent_listen(agent, addresses[i], &diag), BAY_ERR_DENIED);
        assert_non_null(strstr(diag.text, "bay_agent_open_on_purpose"));
        assert_int_equal(bay_agent_port(agent), 0);
    }
    bay_agent_open_on_purpose(agent);
    assert_int_equal(bay_agent_listen(agent, "0.0.0.0:0", &diag), BAY_OK);
    bay_agent_free(agent);
    agent = agent_new(say_done);
    bay_agent_api_key(agent, "key", "header", "X-API-Key", NULL, NULL);
    assert_int_equal(bay_agent_listen(agent, "0.0.0.0:0", &diag), BAY_OK);
    bay_agent_free(agent);
    agent = agent_new(say_done); /* keys, and a door that is open */
    bay_agent_api_key(agent, "key", "header", "X-API-Key", NULL, NULL);
    bay_agent_open_on_purpose(agent);
    assert_int_equal(bay_agent_check(agent, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "security scheme"));
    assert_non_null(strstr(diag.text, "bay_agent_open_on_purpose"));
    assert_int_equal(bay_agent_listen(agent, "127.0.0.1:0", &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_agent_port(agent), 0);
    bay_agent_free(agent);
}

/* ---- the card -------------------------------------------------------------------------------- */

static bool card_has(bay_agent *agent, const char *part)
{
    bay_str card = bay_agent_card(agent);
    return card.len > 0 && memmem(card.at, card.len, part, strlen(part)) != NULL;
}

static void the_card_says_what_was_registered(void **state)
{
    (void)state;
    bay_agent *agent = bay_agent_new("test", "1.0.0", "Tests.");
    bay_skill *skill = bay_agent_skill(agent, "one", "One", "The first.", say_done, NULL);
    bay_skill_tag(skill, "tag");
    bay_skill_example(skill, "an \"example\"");
    bay_skill_output_mode(skill, "text/markdown");
    bay_agent_skill(agent, "two", "Two", "The second.", say_done, NULL);
    bay_agent_provider(agent, "Org", "https://org.example");
    bay_agent_documentation(agent, "https://docs.example");
    bay_agent_icon(agent, "https://icon.example/i.png");
    bay_agent_extension(agent, "urn:x", "An extension.", true, "{\"a\":1}");
    bay_agent_url(agent, "https://agents.example.com/test/");
    bay_agent_push(agent);
    assert_int_equal(bay_agent_check(agent, NULL), BAY_OK);
    static const char *const parts[] = {
        "\"name\":\"test\"",
        "\"tags\":[\"tag\"]",
        "\"tags\":[\"two\"]",
        "\"examples\":[\"an \\\"example\\\"\"]",
        "\"outputModes\":[\"text/markdown\"]",
        "\"organization\":\"Org\"",
        "\"documentationUrl\":\"https://docs.example\"",
        "\"iconUrl\":\"https://icon.example/i.png\"",
        "\"pushNotifications\":true",
        "\"required\":true",
        "\"params\":{\"a\":1}",
        ("{\"url\":\"https://agents.example.com/test\",\"protocolBinding\":\"JSONRPC\","
         "\"protocolVersion\":\"1.0\"}"),
        "\"defaultInputModes\":[\"text/plain\"]",
        "\"streaming\":true"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!card_has(agent, parts[i])) {
            fail_msg("%s is not in %.*s", parts[i], BAY_STR(bay_agent_card(agent)));
        }
    }
    assert_false(card_has(agent, "securitySchemes"));
    bay_agent_free(agent);
}

static void the_card_is_served_in_three_forms_and_changes(void **state)
{
    (void)state;
    bay_agent *agent = agent_new(say_done);
    char base[64];
    agent_listen(agent);
    snprintf(base, sizeof(base), "\"url\":\"http://127.0.0.1:%u\"", bay_agent_port(agent));
    agent_expect(agent, "/.well-known/agent-card.json", "A2A-Version: 1.0\r\n", NULL, 200, base);
    agent_expect(agent, "/.well-known/agent-card.json", "", NULL, 200, "\"preferredTransport\"");
    agent_expect(agent, "/.well-known/agent-card.json", "", NULL, 200, "\"supportedInterfaces\"");
    agent_expect(agent, "/.well-known/agent.json", "", NULL, 200, "\"preferredTransport\"");
    bay_agent_documentation(agent, "https://docs.example");
    assert_false(card_has(agent, "docs.example"));
    assert_int_equal(bay_agent_update(agent, NULL), BAY_OK);
    assert_true(card_has(agent, "docs.example"));
    agent_expect(agent, "/.well-known/agent-card.json", "", NULL, 200, "docs.example");
    bay_agent_url(agent, "nonsense");
    assert_int_equal(bay_agent_update(agent, NULL), BAY_ERR_INVALID);
    agent_expect(agent, "/.well-known/agent-card.json", "", NULL, 200, "docs.example");
    bay_agent_free(agent);
}

/* ---- turns ----------------------------------------------------------------------------------- */

typedef struct heard {
    char text[256];
    char skill[64];
    char principal[64];
    size_t history;
    bool is_new;
    bool accepts_html;
    bool accepts_plain;
    bay_err after; /* of a move behind the end */
} heard;

static void converse(bay_task *task, const bay_message *message, void *user)
{
    heard *self = user;
    bay_str text = bay_message_text(message);
    snprintf(self->text, sizeof(self->text), "%.*s", BAY_STR(text));
    snprintf(self->skill, sizeof(self->skill), "%.*s", BAY_STR(bay_task_skill(task)));
    snprintf(self->principal, sizeof(self->principal), "%.*s", BAY_STR(bay_task_principal(task)));
    self->history = bay_task_history_count(task);
    self->is_new = bay_task_is_new(task);
    self->accepts_html = bay_task_accepts(task, "text/html");
    self->accepts_plain = bay_task_accepts(task, "text/plain");
    if (str_eq(text, STR("ask"))) {
        assert_int_equal(bay_task_remember(task, "key", 3), BAY_OK);
        assert_int_equal(bay_task_ask(task, "what?"), BAY_OK);
    } else if (str_eq(text, STR("reply"))) {
        assert_int_equal(bay_task_replyf(task, "answer %d", 42), BAY_OK);
    } else if (str_eq(text, STR("reject"))) {
        assert_int_equal(bay_task_reject(task, NULL), BAY_OK);
    } else if (str_eq(text, STR("fail"))) {
        assert_int_equal(bay_task_failf(task, "for %s", "a reason"), BAY_OK);
    } else if (str_eq(text, STR("work"))) {
        assert_int_equal(bay_task_status(task, BAY_TASK_STATE_WORKING, "working"), BAY_OK);
        assert_int_equal(bay_task_reply(task, "too late"), BAY_ERR_STATE);
        assert_int_equal(bay_task_complete(task, NULL), BAY_OK);
    } else if (!str_eq(text, STR("nothing"))) {
        assert_int_equal(bay_task_completef(task, "%s", "done"), BAY_OK);
    }
    self->after = bay_task_status(task, BAY_TASK_STATE_WORKING, "late");
}

static bay_agent *talker_new(heard *seen, bool is_on_loop)
{
    bay_agent *agent = bay_agent_new("test", "1.0.0", "Tests.");
    bay_agent_skill(agent, "one", "One", "The first.", converse, seen);
    bay_agent_skill(agent, "two", "Two", "The second.", converse, seen);
    if (is_on_loop) {
        bay_agent_on_loop(agent);
    }
    agent_listen(agent);
    return agent;
}

static void a_message_is_answered_as_its_handler_says(void **state)
{
    (void)state;
    for (int is_on_loop = 0; is_on_loop < 2; is_on_loop++) {
        heard seen = {.after = BAY_OK};
        bay_agent *agent = talker_new(&seen, is_on_loop != 0);
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m1", "x", ""), 200,
                     "TASK_STATE_COMPLETED");
        assert_string_equal(seen.text, "x");
        assert_true(seen.is_new && seen.accepts_html);
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m2", "reply", ""), 200,
                     "\"message\":{\"messageId\"");
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m3", "reject", ""), 200,
                     "TASK_STATE_REJECTED");
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m4", "fail", ""), 200, "for a reason");
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m5", "work", ""), 200,
                     "TASK_STATE_COMPLETED");
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m6", "nothing", ""), 200, "TASK_STATE_");
        agent_expect(agent, "/message:send", AGENT_JSON,
                     "{\"message\":{\"messageId\":\"m7\",\"role\":\"ROLE_USER\",\"parts\":[{"
                     "\"text\":\"y\"}]},\"configuration\":{\"acceptedOutputModes\":[\"text/plain\""
                     "]}}",
                     200, "TASK_STATE_COMPLETED");
        assert_true(!seen.accepts_html && seen.accepts_plain);
        bay_agent_free(agent);
        assert_int_equal(seen.after, BAY_ERR_STATE);
    }
}

static void asking_back_is_another_call_of_the_handler(void **state)
{
    (void)state;
    for (int is_on_loop = 0; is_on_loop < 2; is_on_loop++) {
        heard seen = {.after = BAY_OK};
        bay_agent *agent = talker_new(&seen, is_on_loop != 0);
        wire_client client;
        char id[64];
        char body[512];
        agent_ask(agent, &client, "POST", "/", AGENT_JSON,
                  AGENT_SEND("m1", "ask", ",\"metadata\":{\"skillId\":\"two\"}"));
        assert_true(wire_body_has(&client, "TASK_STATE_INPUT_REQUIRED"));
        assert_true(wire_body_has(&client, "what?"));
        const char *at = memmem(client.body.at, client.body.len, "\"task\":{\"id\":\"", 14);
        assert_non_null(at);
        snprintf(id, sizeof(id), "%.36s", at + 14);
        wire_close(&client);
        assert_string_equal(seen.skill, "two");
        snprintf(body, sizeof(body), AGENT_SEND("m2", "that", ",\"taskId\":\"%s\""), id);
        agent_expect(agent, "/", AGENT_JSON, body, 200, "TASK_STATE_COMPLETED");
        assert_string_equal(seen.text, "that");
        assert_false(seen.is_new);
        assert_int_equal(seen.history, 2); /* the question before, and what was asked */
        assert_string_equal(seen.skill, "two");
        bay_agent_free(agent);
    }
}

static void a_skill_that_is_not_there_is_refused_before_a_task_exists(void **state)
{
    (void)state;
    heard seen = {.after = BAY_OK};
    bay_agent *agent = talker_new(&seen, true);
    agent_expect(agent, "/", AGENT_JSON,
                 AGENT_SEND("m1", "x", ",\"metadata\":{\"skillId\":\"three\"}"), 200, "-32602");
    agent_expect(agent, "/message:send", AGENT_JSON,
                 "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
                 "\"x\"}]},\"metadata\":{\"skillId\":\"three\"}}",
                 400, "no skill");
    agent_expect(agent, "/tasks", "A2A-Version: 1.0\r\n", NULL, 200, "\"totalSize\":0");
    assert_string_equal(seen.text, "");
    bay_agent_free(agent);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static bool verify_token(bay_grant *grant, bay_str credential, void *user)
{
    (void)user;
    if (!str_eq(credential, STR("good")) && !str_eq(credential, STR("weak"))) {
        return false;
    }
    bay_grant_principal(grant, "bob");
    bay_grant_scopes(grant, str_eq(credential, STR("good")) ? "run read" : "read");
    return true;
}

static void credentials_are_asked_for_and_tell_who_calls(void **state)
{
    (void)state;
    heard seen = {.after = BAY_OK};
    bay_agent *agent = bay_agent_new("test", "1.0.0", "Tests.");
    bay_agent_skill(agent, "one", "One", "The first.", converse, &seen);
    bay_skill_require(bay_agent_skill(agent, "two", "Two", "Needs more.", converse, &seen), "token",
                      "run");
    bay_agent_api_key(agent, "key", "header", "X-API-Key", NULL, NULL);
    bay_agent_api_key_add(agent, "key", "secret", "alice", NULL);
    bay_agent_http_auth(agent, "token", "Bearer", verify_token, NULL);
    bay_agent_extended(agent, "{\"description\":\"For friends.\"}");
    agent_listen(agent);
    const char *send = AGENT_SEND("m1", "x", "");
    const char *send_two = AGENT_SEND("m2", "x", ",\"metadata\":{\"skillId\":\"two\"}");
    agent_expect(agent, "/", AGENT_JSON, send, 401, "error");
    agent_expect(agent, "/", AGENT_JSON "X-API-Key: secre\r\n", send, 401, "error");
    agent_expect(agent, "/", AGENT_JSON "Authorization: Bearer bad\r\n", send, 401, "error");
    agent_expect(agent, "/tasks", "A2A-Version: 1.0\r\n", NULL, 401, "error");
    agent_expect(agent, "/.well-known/agent-card.json", "", NULL, 200, "securitySchemes");
    assert_string_equal(seen.text, "");
    agent_expect(agent, "/", AGENT_JSON "X-API-Key: secret\r\n", send, 200, "COMPLETED");
    assert_string_equal(seen.principal, "alice");
    agent_expect(agent, "/", AGENT_JSON "Authorization: Bearer weak\r\n", send, 200, "COMPLETED");
    assert_string_equal(seen.principal, "bob");
    agent_expect(agent, "/", AGENT_JSON "Authorization: Bearer weak\r\n", send_two, 403, "error");
    agent_expect(agent, "/", AGENT_JSON "X-API-Key: secret\r\n", send_two, 401, "error");
    agent_expect(agent, "/", AGENT_JSON "Authorization: Bearer good\r\n", send_two, 200,
                 "COMPLETED");
    agent_expect(agent, "/extendedAgentCard", "A2A-Version: 1.0\r\nX-API-Key: secret\r\n", NULL,
                 200, "For friends.");
    agent_expect(agent, "/extendedAgentCard", "A2A-Version: 1.0\r\n", NULL, 401, "error");
    agent_expect(agent, "/tasks", "A2A-Version: 1.0\r\nX-API-Key: secret\r\n", NULL, 200,
                 "\"totalSize\":1");
    bay_agent_free(agent);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void an_agent_is_served_stopped_and_served_again(void **state)
{
    (void)state;
    bay_agent *agent = agent_new(say_done);
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(bay_agent_dispatch(agent), BAY_ERR_STATE);
    assert_int_equal(bay_agent_run(agent, &diag), BAY_ERR_STATE);
    assert_int_equal(bay_agent_fd(agent), -1);
    for (int i = 0; i < 2; i++) {
        agent_listen(agent);
        assert_true(bay_agent_fd(agent) >= 0);
        agent_expect(agent, "/", AGENT_JSON, AGENT_SEND("m1", "x", ""), 200, "done");
        bay_agent_stop(agent);
        assert_int_equal(bay_agent_run(agent, &diag), BAY_OK);
        assert_int_equal(bay_agent_port(agent), 0);
        assert_int_equal(bay_agent_dispatch(agent), BAY_ERR_EOF);
    }
    assert_int_equal(bay_agent_listen(agent, "127.0.0.1:none", &diag), BAY_ERR_INVALID);
    bay_agent_free(agent);
}

static void requests_name_the_hosts_that_it_is_known_under(void **state)
{
    (void)state;
    const char *send = AGENT_SEND("m1", "x", "");
    bay_agent *agent = agent_new(say_done);
    bay_agent_url(agent, "https://agents.example.com");
    agent_listen(agent);
    agent_expect(agent, "/", AGENT_JSON "Host: agents.example.com\r\n", send, 200, "done");
    agent_expect(agent, "/", AGENT_JSON "Host: localhost:1\r\n", send, 200, "done");
    agent_expect(agent, "/", AGENT_JSON "Host: [::1]:1\r\n", send, 200, "done");
    agent_expect(agent, "/", AGENT_JSON "Host: evil.example\r\n", send, 403, "error");
    bay_agent_free(agent);
    agent = agent_new(say_done);
    bay_agent_allow_host(agent, "other.example");
    bay_agent_allow_origin(agent, "https://console.example");
    agent_listen(agent);
    agent_expect(agent, "/", AGENT_JSON "Host: other.example\r\n", send, 200, "done");
    agent_expect(agent, "/", AGENT_JSON "Host: localhost\r\n", send, 403, "error");
    agent_expect(agent, "/",
                 AGENT_JSON "Host: other.example\r\nOrigin: https://console.example\r\n", send, 200,
                 "done");
    agent_expect(agent, "/", AGENT_JSON "Host: other.example\r\nOrigin: https://evil.example\r\n",
                 send, 403, "error");
    bay_agent_free(agent);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_registrations_are_told_before_serving),
        cmocka_unit_test(strangers_do_not_reach_an_agent_that_asks_for_nothing),
        cmocka_unit_test(the_card_says_what_was_registered),
        cmocka_unit_test(the_card_is_served_in_three_forms_and_changes),
        cmocka_unit_test(a_message_is_answered_as_its_handler_says),
        cmocka_unit_test(asking_back_is_another_call_of_the_handler),
        cmocka_unit_test(a_skill_that_is_not_there_is_refused_before_a_task_exists),
        cmocka_unit_test(credentials_are_asked_for_and_tell_who_calls),
        cmocka_unit_test(requests_name_the_hosts_that_it_is_known_under),
        cmocka_unit_test(an_agent_is_served_stopped_and_served_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
