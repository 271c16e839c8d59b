/* Requests that the server answers by asking: how they go on, and that they end. */
#include "unit/sdk/client_asking_server.h"

#include "support/failing_memory.h"

#define CONFIRM "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Sure?\"}}"

static void accept_it(bay_question *question, void *user)
{
    int *count = user;
    *count += 1;
    if (bay_question_accept(question, "{\"sure\":true}", NULL) != BAY_OK) {
        bay_question_decline(question);
    }
}

static bay_client_options *options_of(int *count)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, accept_it, count);
    bay_client_options_root(options, "file:///a", NULL);
    return options;
}

static bay_err request(bay_client *client, const char *method, const char *params, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_err err = bay_client_request(client, method, params, &reply, diag);
    bay_reply_free(reply);
    return err;
}

/* ---- what is no question */

static void says_what_it_must_not(peer *server, const peer_message *message)
{
    if (peer_modern(server, message)) {
        return;
    }
    if (peer_is(message, "tools/list")) {
        peer_result(server, message, "", "{\"resultType\":\"complete\",\"tools\":[]}");
        return;
    }
    peer_result(server, message, "", server->user);
}

static void malformed_questions(void **state)
{
    (void)state;
    static const struct {
        const char *result;
        bay_err err;
        const char *says;
    } cases[] = {
        {"{\"resultType\":\"input_required\"}", BAY_ERR_PROTOCOL, "neither inputRequests nor"},
        {"{\"resultType\":\"input_required\",\"requestState\":1}", BAY_ERR_PROTOCOL,
         "/requestState must be a string"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":[]}", BAY_ERR_PROTOCOL,
         "/inputRequests must be an object"},
        {"{\"resultType\":\"input_required\",\"requestState\":\"a\",\"inputRequests\":7}",
         BAY_ERR_PROTOCOL, "/inputRequests must be an object"},
        {"{\"resultType\":\"input_required\",\"requestState\":\"a\",\"requestState\":\"b\"}",
         BAY_ERR_PROTOCOL, "requires input"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":" CONFIRM
         ",\"\\u0061\":" CONFIRM "}}",
         BAY_ERR_PROTOCOL, "no map"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":" CONFIRM ",\"b\":1}}",
         BAY_ERR_PROTOCOL, "/inputRequests/b must be an object"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"params\":{}}}}",
         BAY_ERR_PROTOCOL, "/inputRequests/a/method is missing"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"method\":\"roots/list\","
         "\"params\":[]}}}",
         BAY_ERR_PROTOCOL, "/inputRequests/a/params must be an object"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":" CONFIRM
         ",\"b\":{\"method\":\"tools/call\"}}}",
         BAY_ERR_PROTOCOL, "did not offer"},
        {"{\"resultType\":\"something_new\",\"content\":[]}", BAY_ERR_PROTOCOL, "resultType"},
        {"{\"resultType\":\"task\"}", BAY_ERR_PROTOCOL, "/taskId is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        peer server;
        bay_diag diag = {0};
        int count = 0;
        peer_start(&server, says_what_it_must_not, (void *)(uintptr_t)cases[i].result, 0);
        bay_client *client = asking_server_client(&server, options_of(&count));
        assert_int_equal(request(client, "tools/call", "{\"name\":\"x\"}", &diag), cases[i].err);
        assert_has(diag.text, cases[i].says);
        assert_has(diag.text, "tools/call \"x\" at http://127.0.0.1");
        assert_int_equal(count, 0); /* nobody was asked in vain */
        bay_client_close(client);
        peer_stop(&server);
    }
}

static void only_three_methods_may_be_answered_so(void **state)
{
    (void)state;
    static const struct {
        const char *method, *params;
        bay_err err;
    } cases[] = {
        {"completion/complete", "{}", BAY_ERR_PROTOCOL},
        {"resources/list", "{}", BAY_ERR_PROTOCOL},
        {"x/own", "{}", BAY_ERR_PROTOCOL},
        {"tools/call", "{\"name\":\"x\"}", BAY_OK},
        {"resources/read", "{\"uri\":\"x:y\"}", BAY_OK},
        {"prompts/get", "{\"name\":\"x\"}", BAY_OK},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        asking_server asks = {.is_modern = true, .requests = "\"a\":" CONFIRM, .rounds = 1};
        int count = 0;
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(&count));
        assert_int_equal(request(client, cases[i].method, cases[i].params, NULL), cases[i].err);
        assert_int_equal(count, cases[i].err == BAY_OK);
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

/* ---- bounds */

static void rounds_have_an_end(void **state)
{
    (void)state;
    asking_server asks = {.is_modern = true, .requests = "\"a\":" CONFIRM, .rounds = 1000};
    bay_diag diag = {0};
    int count = 0;
    asking_server_start(&asks);
    bay_client *client = asking_server_client(&asks.server, options_of(&count));
    assert_int_equal(request(client, "tools/call", "{\"name\":\"x\"}", &diag), BAY_ERR_LIMIT);
    assert_has(diag.text, "16 times");
    assert_int_equal(count, 16);
    assert_int_equal(peer_count(&asks.server, "POST tools/call"), 17);
    bay_client_close(client);
    peer_stop(&asks.server);
}

static void inputs_have_a_bound(void **state)
{
    (void)state;
    for (int wanted = 64; wanted <= 65; wanted++) {
        static char text[PEER_TEXT / 2];
        size_t len = 0;
        for (int i = 0; i < wanted; i++) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"k%d\":%s",
                                    i > 0 ? "," : "", i, CONFIRM);
        }
        asking_server asks = {.is_modern = true, .requests = text, .rounds = 1};
        int count = 0;
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(&count));
        assert_int_equal(request(client, "tools/call", "{\"name\":\"x\"}", NULL),
                         wanted == 64 ? BAY_OK : BAY_ERR_LIMIT);
        assert_int_equal(count, wanted == 64 ? 64 : 0);
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

/* ---- the next round */

static void a_state_comes_back_byte_for_byte(void **state)
{
    (void)state;
    asking_server asks = {.is_modern = true,
                          .requests =
                              "\"a\":" CONFIRM ",\"\\u00e9 \\\"\":{\"method\":\"roots/list\"}",
                          .state = "\"s\\u00e9\\/\\\"x\\ud83d\\ude00\"",
                          .rounds = 1};
    int count = 0;
    asking_server_start(&asks);
    bay_client *client = asking_server_client(&asks.server, options_of(&count));
    assert_int_equal(request(client, "tools/call",
                             "{\"name\":\"x\",\"arguments\":{\"n\":1.00},\"requestState\":\"own\","
                             "\"inputResponses\":{}}",
                             NULL),
                     BAY_OK);
    assert_has(asks.answer,
               "\"inputResponses\":{\"a\":{\"action\":\"accept\",\"content\":{\"sure\":true}},"
               "\"\xc3\xa9 \\\"\":{\"roots\":[{\"uri\":\"file:///a\"}]}},"
               "\"requestState\":\"s\\u00e9\\/\\\"x\\ud83d\\ude00\"");
    assert_null(strstr(asks.answer, "own"));
    assert_int_equal(asks.answers, 1 + 1); /* the caller's own, then ours */
    assert_has(asks.server.message.body, "\"arguments\":{\"n\":1.00}");
    bay_client_close(client);
    peer_stop(&asks.server);
}

static void without_a_state_none_is_sent(void **state)
{
    (void)state;
    asking_server asks = {.is_modern = true, .requests = "\"a\":" CONFIRM, .rounds = 2};
    int count = 0;
    asking_server_start(&asks);
    bay_client *client = asking_server_client(&asks.server, options_of(&count));
    assert_int_equal(request(client, "tools/call", "{\"name\":\"x\"}", NULL), BAY_OK);
    assert_int_equal(count, 2);
    assert_null(strstr(asks.answer, "requestState"));
    bay_client_close(client);
    peer_stop(&asks.server);
}

static void a_state_alone_asks_for_patience(void **state)
{
    (void)state;
    static const char *const requests[] = {NULL, ""};
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        asking_server asks = {
            .is_modern = true, .requests = requests[i], .state = "\"later\"", .rounds = 2};
        int count = 0;
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(&count));
        assert_int_equal(request(client, "tools/call", "{\"name\":\"x\"}", NULL), BAY_OK);
        assert_int_equal(asks.answers, 2);
        assert_null(strstr(asks.answer, "inputResponses"));
        assert_has(asks.answer, "\"requestState\":\"later\"");
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

/* Each allocation of a call with a round fails in turn: it ends all the same. */
static void every_allocation(void **state)
{
    (void)state;
    asking_server asks = {.is_modern = true, .requests = "\"a\":" CONFIRM, .state = "\"s\""};
    asking_server_start(&asks);
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_client *client = NULL;
        bay_reply *reply = NULL;
        int count = 0;
        asks.rounds = 1; /* nobody calls just now */
        bay_client_options *options = options_of(&count);
        bay_client_options_reconnect(options, 1, 1);
        bay_client_options_timeout(options, 2000, 4000);
        bay_err err = options != NULL ? bay_client_connect(asks.server.url, options, &client, NULL)
                                      : BAY_ERR_NOMEM;
        bay_client_options_free(options);
        if (err == BAY_OK) {
            err = bay_client_prompt(client, "x", NULL, &reply, NULL);
            assert_true((err == BAY_OK) == (reply != NULL));
            bay_reply_free(reply);
            bay_client_close(client);
        }
        failing_memory_check();
    }
    peer_stop(&asks.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_questions),
        cmocka_unit_test(only_three_methods_may_be_answered_so),
        cmocka_unit_test(rounds_have_an_end),
        cmocka_unit_test(inputs_have_a_bound),
        cmocka_unit_test(a_state_comes_back_byte_for_byte),
        cmocka_unit_test(without_a_state_none_is_sent),
        cmocka_unit_test(a_state_alone_asks_for_patience),
        cmocka_unit_test(every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
