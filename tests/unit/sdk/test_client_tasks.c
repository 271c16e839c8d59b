/* Tasks: a call that became one ends like any other call, whatever the task does. */
#include "unit/sdk/client_asking_server.h"

#define TASK(status, more)                                                                         \
    "\"taskId\":\"t \\u00e91\",\"status\":\"" status "\",\"createdAt\":\"2026-01-01T00:00:00Z\","  \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttlMs\":null,\"pollIntervalMs\":1" more
#define LOOK(status, more) "{\"resultType\":\"complete\"," TASK(status, more) "}"
#define FORM                                                                                       \
    "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\",\"requestedSchema\":{"       \
    "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"default\":1}}}}}"

/* A server with one task: what it says to each look, in turn; the last is said for ever. */
typedef struct tasker {
    peer server;
    const char *created; /* what the call is answered with */
    const char *looks[8];
    int look;
    int updates;
    int cancels;
    char update[2048];
    char name[256]; /* Mcp-Name of the last message about the task */
} tasker;

static void handle(peer *server, const peer_message *message)
{
    tasker *self = server->user;
    if (strcmp(message->verb, "POST") != 0) {
        peer_reply(server, message, "405 Method Not Allowed", "", "");
    } else if (peer_is(message, "server/discover")) {
        peer_result(
            server, message, "",
            "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
            "\"capabilities\":{\"tools\":{},\"prompts\":{},\"extensions\":{"
            "\"io.modelcontextprotocol/tasks\":{}}},\"ttlMs\":0,\"cacheScope\":\"private\"}");
    } else if (peer_is(message, "tools/list")) {
        peer_result(server, message, "",
                    "{\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":60000}");
    } else if (peer_is(message, "tasks/get")) {
        const char *now = self->looks[self->look];
        self->look += self->looks[self->look + 1] != NULL;
        peer_field(message->head, "Mcp-Name", self->name, sizeof(self->name));
        if (now[0] == '{') {
            peer_result(server, message, "", now);
        } else {
            peer_error(server, message, "200 OK", -32602, now);
        }
    } else if (peer_is(message, "tasks/update")) {
        self->updates++;
        snprintf(self->update, sizeof(self->update), "%s",
                 strstr(message->body, "\"inputResponses\""));
        peer_result(server, message, "", "{\"resultType\":\"complete\"}");
    } else if (peer_is(message, "tasks/cancel")) {
        self->cancels++;
        peer_result(server, message, "", "{\"resultType\":\"complete\"}");
    } else {
        peer_result(server, message, "", self->created);
    }
}

static void accept_it(bay_question *question, void *user)
{
    int *count = user;
    *count += 1;
    assert_int_equal(bay_question_accept(question, NULL, NULL), BAY_OK);
}

static void refuse(bay_question *question, void *user)
{
    (void)user;
    bay_question_error(question, -32000, "no");
}

static const char created[] = "{\"resultType\":\"task\"," TASK("working", "") "}";

static bay_client *start(tasker *self, bay_asked_fn asked, void *user)
{
    if (self->created == NULL) {
        self->created = created;
    }
    peer_start(&self->server, handle, self, 0);
    bay_client_options *options = bay_client_options_new();
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, asked, user);
    return asking_server_client(&self->server, options);
}

static void stop(tasker *self, bay_client *client)
{
    bay_client_close(client);
    peer_stop(&self->server);
}

/* ---- ends */

#define RESULT ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"1.0\"}]}"

static void how_a_task_ends(void **state)
{
    (void)state;
    static const struct {
        const char *looks[4];
        bay_err err;
        const char *says; /* the diagnosis */
        int cancels;
    } cases[] = {
        {{LOOK("completed", RESULT)}, BAY_OK, "", 0},
        {{LOOK("working", ""), LOOK("working", ""), LOOK("completed", RESULT)}, BAY_OK, "", 0},
        {{LOOK("completed", "")}, BAY_ERR_PROTOCOL, "without a result", 0},
        {{LOOK("completed", ",\"result\":[]")}, BAY_ERR_PROTOCOL, "/result must be an object", 1},
        {{LOOK("failed", ",\"error\":{\"code\":-32005,\"message\":\"it \\\"broke\\\"\"}")},
         BAY_ERR_REMOTE,
         "error -32005: it \"broke\"",
         0},
        {{LOOK("failed", "")}, BAY_ERR_PROTOCOL, "without an error", 0},
        {{LOOK("cancelled", ",\"statusMessage\":\"by hand\"")}, BAY_ERR_CANCELLED, "by hand", 0},
        {{LOOK("on fire", "")}, BAY_ERR_PROTOCOL, "nobody knows", 1},
        {{"{\"resultType\":\"complete\",\"taskId\":\"other\",\"status\":\"completed\","
          "\"createdAt\":\"t\",\"lastUpdatedAt\":\"t\",\"ttlMs\":null" RESULT "}"},
         BAY_ERR_PROTOCOL,
         "another task",
         1},
        {{"no such task"}, BAY_ERR_REMOTE, "no such task", 0},
        {{created}, BAY_ERR_PROTOCOL, "cannot be", 1},
        {{"{\"resultType\":\"input_required\",\"inputRequests\":{}}"},
         BAY_ERR_PROTOCOL,
         "/resultType is none",
         1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        tasker self = {0};
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        memcpy(self.looks, cases[i].looks, sizeof(cases[i].looks));
        bay_client *client = start(&self, accept_it, NULL);
        assert_int_equal(bay_client_call(client, "slow", NULL, &reply, &diag), cases[i].err);
        assert_has(diag.text, cases[i].says);
        if (cases[i].err == BAY_OK) {
            assert_true(str_eq(bay_reply_text(reply, 0), STR("1.0")));
            assert_int_equal(bay_reply_task_state(reply), BAY_TASK_STATE_UNKNOWN);
            assert_string_equal(self.name, "=?base64?dCDDqTE=?=");
        } else if (cases[i].err == BAY_ERR_REMOTE && diag.text[0] != '\0' &&
                   cases[i].says[0] == 'e') {
            assert_true(str_starts(bay_client_remote_error(client), STR("{\"code\":-32005")));
        }
        bay_reply_free(reply);
        while (peer_count(&self.server, "POST tasks/cancel") < cases[i].cancels) {
            assert_int_equal(bay_client_wait(client, 100), BAY_OK);
        }
        stop(&self, client);
        assert_int_equal(self.cancels, cases[i].cancels);
    }
}

static void only_tools_may_become_tasks(void **state)
{
    (void)state;
    tasker self = {.looks = {LOOK("completed", RESULT)}};
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    bay_client *client = start(&self, accept_it, NULL);
    assert_int_equal(bay_client_prompt(client, "p", NULL, &reply, &diag), BAY_ERR_PROTOCOL);
    assert_has(diag.text, "cannot be");
    stop(&self, client);
    assert_int_equal(self.look, 0);
}

/* ---- what it asks */

static void each_input_is_asked_once(void **state)
{
    (void)state;
    tasker self = {
        .looks = {LOOK("input_required", ",\"inputRequests\":{\"a\":" FORM "}"),
                  LOOK("input_required", ",\"inputRequests\":{\"a\":" FORM "}"),
                  LOOK("input_required", ",\"inputRequests\":{\"a\":" FORM ",\"b\":" FORM "}"),
                  LOOK("working", ""), LOOK("completed", RESULT)}};
    bay_reply *reply = NULL;
    int count = 0;
    bay_client *client = start(&self, accept_it, &count);
    assert_int_equal(bay_client_call(client, "asks", NULL, &reply, NULL), BAY_OK);
    bay_reply_free(reply);
    stop(&self, client);
    assert_int_equal(count, 2);
    assert_int_equal(self.updates, 2);
    assert_has(self.update,
               "\"inputResponses\":{\"b\":{\"action\":\"accept\",\"content\":{\"n\":1}}}");
}

static void a_refused_input_ends_the_call_and_the_task(void **state)
{
    (void)state;
    tasker self = {.looks = {LOOK("input_required", ",\"inputRequests\":{\"a\":" FORM "}")}};
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    bay_client *client = start(&self, refuse, NULL);
    assert_int_equal(bay_client_call(client, "asks", NULL, &reply, &diag), BAY_ERR_DENIED);
    while (peer_count(&self.server, "POST tasks/cancel") == 0) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    stop(&self, client);
    assert_int_equal(self.updates, 0);
    assert_int_equal(self.cancels, 1);
}

/* ---- by hand */

static void a_kept_task_is_followed_by_hand(void **state)
{
    (void)state;
    tasker self = {.looks = {LOOK("working", ""), LOOK("working", ""), LOOK("completed", RESULT)}};
    bay_reply *reply = NULL;
    bay_client *client = start(&self, accept_it, NULL);
    bay_request *request = bay_request_tool(client, "slow", NULL);
    bay_request_return_immediately(request);
    assert_int_equal(bay_request_run(request, &reply, NULL), BAY_OK);
    assert_int_equal(self.look, 0);
    assert_int_equal(bay_reply_task_state(reply), BAY_TASK_STATE_WORKING);
    assert_true(str_eq(bay_reply_task(reply), STR("t \xc3\xa9"
                                                  "1")));
    bay_reply_free(reply);
    assert_int_equal(bay_client_task(client,
                                     "t \xc3\xa9"
                                     "1",
                                     &reply, NULL),
                     BAY_OK);
    assert_int_equal(bay_reply_task_state(reply), BAY_TASK_STATE_WORKING);
    bay_reply_free(reply);
    reply = NULL;
    assert_int_equal(bay_client_task_wait(client, "other", &reply, NULL), BAY_OK);
    bay_reply_free(reply);
    assert_int_equal(bay_client_task_cancel(client,
                                            "t \xc3\xa9"
                                            "1",
                                            NULL),
                     BAY_OK);
    assert_int_equal(bay_client_task_cancel(client, NULL, NULL), BAY_ERR_NOMEM);
    stop(&self, client);
    assert_int_equal(self.cancels, 1);
    assert_int_equal(bay_reply_task_state(NULL), BAY_TASK_STATE_UNKNOWN);
    assert_int_equal(bay_reply_task(NULL).len, 0);
}

static void giving_up_the_call_cancels_the_task(void **state)
{
    (void)state;
    tasker self = {.looks = {LOOK("working", "")}};
    awaited end = {0};
    bay_client *client = start(&self, accept_it, NULL);
    bay_request *request = bay_request_tool(client, "slow", NULL);
    assert_int_equal(bay_request_start(request, NULL, awaited_done, &end), BAY_OK);
    while (peer_count(&self.server, "POST tasks/get") == 0) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    bay_request_cancel(request, "enough");
    while (!end.is_done || peer_count(&self.server, "POST tasks/cancel") == 0) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    assert_int_equal(end.err, BAY_ERR_CANCELLED);
    stop(&self, client);
    assert_int_equal(self.cancels, 1);
}

/* The end of the client gives up its calls, too; what it says last is heard. */
static void closing_the_client_cancels_its_tasks(void **state)
{
    (void)state;
    tasker self = {.looks = {LOOK("working", "")}};
    awaited ends[3] = {{0}};
    bay_client *client = start(&self, accept_it, NULL);
    for (int i = 0; i < 3; i++) {
        bay_request *request = bay_request_tool(client, "slow", NULL);
        assert_int_equal(bay_request_start(request, NULL, awaited_done, &ends[i]), BAY_OK);
    }
    while (peer_count(&self.server, "POST tasks/get") < 6) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    stop(&self, client);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ends[i].err, BAY_ERR_CANCELLED);
    }
    assert_int_equal(self.cancels, 3);
}

static void a_call_declares_that_it_follows_tasks(void **state)
{
    (void)state;
    tasker self = {.created = PEER_TEXT_RESULT("at once"), .looks = {LOOK("working", "")}};
    bay_reply *reply = NULL;
    bay_client *client = start(&self, accept_it, NULL);
    assert_int_equal(bay_client_call(client, "quick", NULL, &reply, NULL), BAY_OK);
    assert_has(self.server.message.body, "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    bay_reply_free(reply);
    stop(&self, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_a_task_ends),
        cmocka_unit_test(only_tools_may_become_tasks),
        cmocka_unit_test(each_input_is_asked_once),
        cmocka_unit_test(a_refused_input_ends_the_call_and_the_task),
        cmocka_unit_test(a_kept_task_is_followed_by_hand),
        cmocka_unit_test(giving_up_the_call_cancels_the_task),
        cmocka_unit_test(closing_the_client_cancels_its_tasks),
        cmocka_unit_test(a_call_declares_that_it_follows_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
