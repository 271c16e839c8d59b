/* Our client and our server in one process, in each revision: one handler on either side, whatever
 * the way in which a question, a task or a file travels between them. */
#include "unit/sdk/client_asking_server.h"

#include "patchbay/call.h"
#include "patchbay/server.h"

static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                        "2026-07-28"};

#define MAIN "---\nname: pdf\ndescription: Fill forms\n---\nBody\n"

/* ---- the server */

static void told_root(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%zu roots", bay_answer_root_count(answer));
}

static void ask_roots(bay_call *call, void *user)
{
    bay_call_roots(call, told_root, user);
}

static void told_words(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%.*s (%d)", BAY_STR(bay_answer_text(answer)),
                    (int)bay_answer_error(answer));
}

static void ask_model(bay_call *call, void *user)
{
    bay_call_sample(call, "Say it", 10, told_words, user);
}

static void told_again(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%d %.*s", (int)bay_answer_action(answer),
                    BAY_STR(bay_answer_content(answer)));
}

static void told_name(bay_call *call, const bay_answer *answer, void *user)
{
    if (bay_answer_action(answer) != BAY_ACTION_ACCEPT) {
        bay_call_replyf(call, "no (%d)", (int)bay_answer_error(answer));
        return;
    }
    bay_call_elicit_schema(call, "Sure?",
                           "{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\","
                           "\"default\":true}}}",
                           told_again, user);
}

static void ask_twice(bay_call *call, void *user)
{
    bay_call_elicit_schema(call, "Your name?",
                           "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
                           "\"default\":\"Jo\"}},\"required\":[\"name\"]}",
                           told_name, user);
}

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("meets", "1");
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 50);
    bay_server_tool_schema(server, "roots", NULL, NULL, ask_roots, NULL);
    bay_server_tool_schema(server, "model", NULL, NULL, ask_model, NULL);
    bay_server_tool_schema(server, "twice", NULL, NULL, ask_twice, NULL);
    bay_tool_task(bay_server_tool_schema(server, "task", NULL, NULL, ask_twice, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_server_skill_file(server, "pdf", "SKILL.md", "text/markdown", MAIN, sizeof(MAIN) - 1);
    bay_server_skill_file(server, "pdf", "a/b.bin", "application/octet-stream", "\0\xff\n", 3);
    return server;
}

/* ---- the client */

typedef struct person {
    int forms;
    bay_question *kept; /* the last one, when it is to wait */
    bool is_slow;
} person;

static void fill_in(bay_question *question, void *user)
{
    person *self = user;
    self->forms++;
    if (self->is_slow) {
        self->kept = bay_question_defer(question);
        return;
    }
    assert_int_equal(bay_question_accept(question, NULL, NULL), BAY_OK);
}

static void speak(bay_question *question, void *user)
{
    (void)user;
    bay_question_reply(question, "m", "said");
}

static bay_client *meet(bay_server *server, const char *revision, person *who)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_revisions(options, revision, revision);
    bay_client_options_timeout(options, 20000, 0);
    if (who != NULL) {
        bay_client_options_elicitation(options, BAY_ELICITATION_FORM, fill_in, who);
        bay_client_options_sampling(options, NULL, speak, NULL);
        bay_client_options_root(options, "file:///a", NULL);
        bay_client_options_root(options, "file:///b", "B");
    }
    if (bay_client_attach(server, options, &client, &diag) != BAY_OK) {
        fail_msg("%s: %s", revision, diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static void assert_called(bay_client *client, const char *tool, const char *text)
{
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    if (bay_client_call(client, tool, NULL, &reply, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    if (!str_eq(bay_reply_text(reply, 0), str_of(text))) {
        fail_msg("%s: \"%.*s\" is not \"%s\"", tool, BAY_STR(bay_reply_text(reply, 0)), text);
    }
    bay_reply_free(reply);
}

static void questions_in_every_revision(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
        bay_server *server = new_server();
        person who = {0};
        bool has_forms = i >= 2;
        bay_client *client = meet(server, revisions[i], &who);
        assert_called(client, "roots", "2 roots");
        assert_called(client, "model", "said (0)");
        if (has_forms) {
            assert_called(client, "twice", "1 {\"sure\":true}");
            assert_called(client, "task", "1 {\"sure\":true}");
            assert_int_equal(who.forms, 4);
        } else { /* nobody could be asked */
            char text[32];
            snprintf(text, sizeof(text), "no (%d)", (int)BAY_ERR_UNSUPPORTED);
            assert_called(client, "twice", text);
        }
        bay_client_close(client);
        bay_server_free(server);
    }
}

static void a_task_that_waits_for_a_person(void **state)
{
    (void)state;
    bay_server *server = new_server();
    person who = {.is_slow = true};
    awaited end = {0};
    bay_client *client = meet(server, "2026-07-28", &who);
    assert_int_equal(
        bay_request_start(bay_request_tool(client, "task", NULL), NULL, awaited_done, &end),
        BAY_OK);
    for (int round = 1; round <= 2; round++) {
        while (who.kept == NULL && !end.is_done) {
            assert_int_equal(bay_client_wait(client, 1000), BAY_OK);
        }
        assert_int_equal(who.forms, round);
        bay_question *question = who.kept;
        who.kept = NULL;
        assert_int_equal(bay_question_accept(question, NULL, NULL), BAY_OK);
    }
    while (!end.is_done) {
        assert_int_equal(bay_client_wait(client, 1000), BAY_OK);
    }
    assert_int_equal(end.err, BAY_OK);
    assert_has(end.text, "{\\\"sure\\\":true}");
    bay_client_close(client);
    bay_server_free(server);
}

static void a_kept_task_is_cancelled(void **state)
{
    (void)state;
    bay_server *server = new_server();
    person who = {0};
    bay_reply *reply = NULL;
    bay_client *client = meet(server, "2026-07-28", &who);
    bay_request *request = bay_request_tool(client, "task", NULL);
    bay_request_return_immediately(request);
    assert_int_equal(bay_request_run(request, &reply, NULL), BAY_OK);
    char id[256];
    snprintf(id, sizeof(id), "%.*s", BAY_STR(bay_reply_task(reply)));
    bay_reply_free(reply);
    assert_int_equal(bay_client_task(client, id, &reply, NULL), BAY_OK);
    assert_int_equal(bay_reply_task_state(reply), BAY_TASK_STATE_INPUT_REQUIRED);
    bay_reply_free(reply);
    assert_int_equal(bay_client_task_cancel(client, id, NULL), BAY_OK);
    assert_int_equal(bay_client_task_wait(client, id, &reply, NULL), BAY_ERR_CANCELLED);
    assert_int_equal(bay_client_task(client, "no-such-task", &reply, NULL), BAY_ERR_REMOTE);
    assert_int_equal(who.forms, 0);
    bay_client_close(client);
    bay_server_free(server);
}

#ifndef BAY_NO_TLS /* digests */
static void a_skill_is_verified(void **state)
{
    (void)state;
    for (size_t i = 3; i < ARRAY_LEN(revisions); i++) {
        bay_server *server = new_server();
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        void *bytes;
        size_t len;
        bay_client *client = meet(server, revisions[i], NULL);
        if (bay_client_skill_file(client, "pdf", "SKILL.md", &reply, &diag) != BAY_OK) {
            fail_msg("%s", diag.text);
        }
        assert_true(str_ends(bay_reply_text(reply, 0), STR("Body\n")));
        bay_reply_free(reply);
        assert_int_equal(bay_client_skill_file(client, "pdf", "a/b.bin", &reply, &diag), BAY_OK);
        assert_int_equal(bay_reply_bytes(reply, 0, &bytes, &len), BAY_OK);
        assert_int_equal(len, 3);
        assert_memory_equal(bytes, "\0\xff\n", 3);
        bay_free(bytes);
        bay_reply_free(reply);
        bay_client_close(client);
        bay_server_free(server);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_in_every_revision),
        cmocka_unit_test(a_task_that_waits_for_a_person),
        cmocka_unit_test(a_kept_task_is_cancelled),
#ifndef BAY_NO_TLS
        cmocka_unit_test(a_skill_is_verified),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
