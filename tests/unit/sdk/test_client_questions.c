/* What a server may ask, in both ways, of handlers that do what handlers do: answer, decline,
 * answer badly, twice, later, or not at all. */
#include "unit/sdk/client_asking_server.h"

#include "base/err.h"
#include "support/failing_memory.h"

#define FORM                                                                                       \
    "\"method\":\"elicitation/create\",\"params\":{\"message\":\"Your \\\"name\\\"?\","            \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","      \
    "\"minLength\":2},\"age\":{\"type\":\"integer\",\"default\":30}},\"required\":[\"name\"]}}"
#define PAGE                                                                                       \
    "\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":\"Sign in\","      \
    "\"url\":\"https://example.com/x\",\"elicitationId\":\"e1\"}"
#define SAMPLE "\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":10}"
#define SAMPLE_WITH_TOOLS                                                                          \
    "\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":10,"          \
    "\"tools\":[]}"
#define BAD_FORM                                                                                   \
    "\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\",\"requestedSchema\":{"        \
    "\"type\":\"no such type\"}}"
#define ODD_MODE                                                                                   \
    "\"method\":\"elicitation/create\",\"params\":{\"mode\":\"dance\",\"message\":\"?\"}"
#define PAGE_WITHOUT_URL                                                                           \
    "\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":\"?\"}"
#define ROOTS "\"method\":\"roots/list\""

static int shown; /* how many questions the handlers saw */

static void accept_name(bay_question *question, void *user)
{
    bay_diag diag = {0};
    (void)user;
    shown++;
    assert_true(str_eq(bay_question_method(question), STR("elicitation/create")));
    assert_true(str_eq(bay_question_message(question), STR("Your \"name\"?")));
    assert_true(str_starts(bay_question_schema(question), STR("{\"type\":\"object\"")));
    assert_int_equal(bay_question_url(question).len, 0);
    /* what breaks the schema is told, and the question stays open */
    assert_int_equal(bay_question_accept(question, "{\"name\":\"x\"}", &diag), BAY_ERR_INVALID);
    assert_has(diag.text, "/name");
    assert_int_equal(bay_question_accept(question, "{", &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_question_accept(question, "[]", &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_question_accept(question, "{\"name\":\"xy\",\"name\":\"z\"}", &diag),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_question_accept(question, NULL, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_question_accept(question, "{\"name\":\"Zo\\u00eb\"}", &diag), BAY_OK);
    assert_int_equal(bay_question_accept(question, "{\"name\":\"Bob\"}", &diag), BAY_ERR_STATE);
}

static void accept_page(bay_question *question, void *user)
{
    (void)user;
    shown++;
    assert_true(str_eq(bay_question_url(question), STR("https://example.com/x")));
    assert_int_equal(bay_question_schema(question).len, 0);
    assert_int_equal(bay_question_accept(question, NULL, NULL), BAY_OK);
}

static void decline(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_decline(question);
    bay_question_cancel(question);
}

static void cancel(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_cancel(question);
}

static void say_nothing(bay_question *question, void *user)
{
    (void)question, (void)user;
    shown++;
}

static void reply(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_reply(question, "m\"1", "Hi\n");
}

static void accept_sampling(bay_question *question, void *user)
{
    bay_diag diag = {0};
    (void)user;
    shown++;
    assert_int_equal(bay_question_accept(question, "{}", &diag), BAY_ERR_STATE);
    bay_question_result(question, "{\"role\":\"assistant\",\"x\":1.0}");
}

static void give_no_object(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_result(question, "[1]");
}

static void give_nothing(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_result(question, NULL);
}

static void refuse(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question_error(question, -32000, "not \"now\"");
}

static void answer_later_at_once(bay_question *question, void *user)
{
    (void)user;
    shown++;
    bay_question *mine = bay_question_defer(question);
    assert_ptr_equal(mine, question);
    bay_question_decline(mine);
}

typedef struct asked_case {
    const char *request;
    bay_asked_fn handler;
    const char *legacy; /* in the answer */
    const char *modern; /* in the next round; NULL: the call ends with … */
    bay_err err;
    int shown;
} asked_case;

static const asked_case cases[] = {
    {FORM, accept_name,
     "\"result\":{\"action\":\"accept\",\"content\":{\"name\":\"Zo\\u00eb\",\"age\":30}}",
     "{\"q\":{\"action\":\"accept\",\"content\":{\"name\":\"Zo\\u00eb\",\"age\":30}}}", BAY_OK, 1},
    {FORM, decline, "\"result\":{\"action\":\"decline\"}", "{\"q\":{\"action\":\"decline\"}}",
     BAY_OK, 1},
    {FORM, cancel, "\"result\":{\"action\":\"cancel\"}", "{\"q\":{\"action\":\"cancel\"}}", BAY_OK,
     1},
    {FORM, say_nothing, "\"result\":{\"action\":\"decline\"}", "{\"q\":{\"action\":\"decline\"}}",
     BAY_OK, 1},
    {FORM, answer_later_at_once, "\"result\":{\"action\":\"decline\"}",
     "{\"q\":{\"action\":\"decline\"}}", BAY_OK, 1},
    {FORM, reply, "\"error\":{\"code\":-32603", NULL, BAY_ERR_DENIED, 1},
    {FORM, refuse, "\"error\":{\"code\":-32000,\"message\":\"not \\\"now\\\"\"}", NULL,
     BAY_ERR_DENIED, 1},
    {FORM, give_no_object, "\"error\":{\"code\":-32603", NULL, BAY_ERR_DENIED, 1},
    {FORM, give_nothing, "\"error\":{\"code\":-32603", NULL, BAY_ERR_DENIED, 1},
    {PAGE, accept_page, "\"result\":{\"action\":\"accept\"}", "{\"q\":{\"action\":\"accept\"}}",
     BAY_OK, 1},
    {BAD_FORM, accept_page, "\"error\":{\"code\":-32602,\"message\":\"requestedSchema: ", NULL,
     BAY_ERR_DENIED, 0},
    {ODD_MODE, accept_page, "\"error\":{\"code\":-32602", NULL, BAY_ERR_DENIED, 0},
    {PAGE_WITHOUT_URL, accept_page, "\"error\":{\"code\":-32602", NULL, BAY_ERR_DENIED, 0},
    {SAMPLE, reply,
     "\"result\":{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hi\\n\"},"
     "\"model\":\"m\\\"1\",\"stopReason\":\"endTurn\"}",
     "{\"q\":{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hi\\n\"}", BAY_OK,
     1},
    {SAMPLE, accept_sampling, "\"result\":{\"role\":\"assistant\",\"x\":1.0}",
     "{\"q\":{\"role\":\"assistant\",\"x\":1.0}}", BAY_OK, 1},
    {SAMPLE, decline, "\"error\":{\"code\":-1,", NULL, BAY_ERR_DENIED, 1},
    {SAMPLE, say_nothing, "\"error\":{\"code\":-1,", NULL, BAY_ERR_DENIED, 1},
    {SAMPLE_WITH_TOOLS, reply, "\"error\":{\"code\":-32602", NULL, BAY_ERR_DENIED, 0},
    {ROOTS, refuse, "\"result\":{\"roots\":[{\"uri\":\"file:///a\",\"name\":\"A\"}]}",
     "{\"q\":{\"roots\":[{\"uri\":\"file:///a\",\"name\":\"A\"}]}}", BAY_OK, 0},
};

static bay_client_options *options_of(bay_asked_fn handler, void *user)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL, handler,
                                   user);
    bay_client_options_sampling(options, NULL, handler, user);
    bay_client_options_root(options, "file:///a", "A");
    return options;
}

static bay_err call(bay_client *client, bay_diag *diag)
{
    bay_reply *out = NULL;
    bay_err err = bay_client_call(client, "asks", "{}", &out, diag);
    bay_reply_free(out);
    return err;
}

static void requests_of_a_session(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        asking_server asks = {.requests = cases[i].request};
        bay_diag diag = {0};
        shown = 0;
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(cases[i].handler, NULL));
        assert_int_equal(call(client, &diag), BAY_OK);
        assert_has(asks.answer, "\"id\":\"q\\u0031\"");
        assert_has(asks.answer, cases[i].legacy);
        assert_int_equal(asks.answers, 1);
        assert_int_equal(shown, cases[i].shown);
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

static void inputs_of_a_round(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char request[2048];
        snprintf(request, sizeof(request), "\"q\":{%s}", cases[i].request);
        asking_server asks = {.is_modern = true, .requests = request, .rounds = 1};
        bay_diag diag = {0};
        shown = 0;
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(cases[i].handler, NULL));
        assert_int_equal(call(client, &diag), cases[i].err);
        assert_int_equal(asks.answers, cases[i].modern != NULL);
        if (cases[i].modern != NULL) {
            assert_has(asks.answer, cases[i].modern);
        }
        assert_int_equal(shown, cases[i].shown);
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

/* ---- who did not offer to answer */

static void what_was_not_declared_is_refused(void **state)
{
    (void)state;
    static const char *const requests[] = {FORM, SAMPLE, ROOTS, "\"method\":\"tools/list\"",
                                           "\"method\":\"no/such\""};
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        char request[2048];
        snprintf(request, sizeof(request), "\"q\":{%s}", requests[i]);
        asking_server legacy = {.requests = requests[i]};
        asking_server modern = {.is_modern = true, .requests = request, .rounds = 1};
        bay_diag diag = {0};
        asking_server_start(&legacy);
        asking_server_start(&modern);
        bay_client *client = asking_server_client(&legacy.server, bay_client_options_new());
        assert_int_equal(call(client, &diag), BAY_OK);
        assert_has(legacy.answer, "\"error\":{\"code\":-32601");
        bay_client_close(client);
        client = asking_server_client(&modern.server, bay_client_options_new());
        assert_int_equal(call(client, &diag), BAY_ERR_PROTOCOL);
        assert_has(diag.text, "did not offer");
        assert_int_equal(modern.answers, 0);
        bay_client_close(client);
        peer_stop(&legacy.server);
        peer_stop(&modern.server);
    }
}

static void pages_for_a_client_of_forms(void **state)
{
    (void)state;
    asking_server asks = {.requests = PAGE};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, accept_page, NULL);
    asking_server_start(&asks);
    bay_client *client = asking_server_client(&asks.server, options);
    assert_int_equal(call(client, NULL), BAY_OK);
    assert_has(asks.answer, "\"error\":{\"code\":-32602");
    bay_client_close(client);
    peer_stop(&asks.server);
}

/* ---- later */

static void defer(bay_question *question, void *user)
{
    bay_question **place = user;
    *place = bay_question_defer(question);
}

static void wait_for(bay_client *client, bay_question **question)
{
    while (*question == NULL) {
        assert_int_equal(bay_client_wait(client, 1000), BAY_OK);
    }
}

static void a_deferred_answer_is_sent_when_it_comes(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        bay_question *question = NULL;
        awaited end = {0};
        asking_server asks = {
            .is_modern = is_modern, .requests = is_modern ? "\"q\":{" FORM "}" : FORM, .rounds = 1};
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(defer, &question));
        assert_int_equal(
            bay_request_start(bay_request_tool(client, "asks", "{}"), NULL, awaited_done, &end),
            BAY_OK);
        wait_for(client, &question);
        assert_int_equal(asks.answers, 0);
        assert_int_equal(bay_question_accept(question, "{\"name\":\"Late\"}", NULL), BAY_OK);
        while (!end.is_done) {
            assert_int_equal(bay_client_wait(client, 1000), BAY_OK);
        }
        assert_int_equal(end.err, BAY_OK);
        assert_has(asks.answer, "\"content\":{\"name\":\"Late\",\"age\":30}");
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

static void an_answer_to_nobody_is_right_all_the_same(void **state)
{
    (void)state;
    enum { CANCELLED, CLOSED, WAYS };
    for (int way = 0; way < 2 * WAYS; way++) {
        bool is_modern = way >= WAYS;
        bay_question *question = NULL;
        awaited end = {0};
        asking_server asks = {
            .is_modern = is_modern, .requests = is_modern ? "\"q\":{" FORM "}" : FORM, .rounds = 1};
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(defer, &question));
        bay_request *request = bay_request_tool(client, "asks", "{}");
        assert_int_equal(bay_request_start(request, NULL, awaited_done, &end), BAY_OK);
        wait_for(client, &question);
        if (way % WAYS == CANCELLED && is_modern) {
            bay_request_cancel(request, "never mind");
        } else {
            bay_client_close(client);
            client = NULL;
        }
        assert_true(str_starts(bay_question_params(question), STR("{\"message\"")));
        assert_int_equal(bay_question_accept(question, "{\"name\":\"Nobody\"}", NULL), BAY_OK);
        bay_client_close(client);
        assert_true(end.is_done);
        assert_int_equal(end.err, BAY_ERR_CANCELLED);
        peer_stop(&asks.server);
        assert_int_equal(asks.answers, 0);
    }
}

static void a_question_that_was_taken_back(void **state)
{
    (void)state;
    bay_question *question = NULL;
    asking_server asks = {
        .requests = FORM,
        .after = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":\"q\\u0031\"}}"};
    asking_server_start(&asks);
    bay_client *client = asking_server_client(&asks.server, options_of(defer, &question));
    assert_int_equal(call(client, NULL), BAY_OK);
    assert_non_null(question);
    assert_int_equal(bay_question_accept(question, "{\"name\":\"Late\"}", NULL), BAY_OK);
    bay_client_close(client);
    peer_stop(&asks.server);
    assert_int_equal(asks.answers, 0);
}

/* ---- a handler that gives up the very call that asks */

typedef struct quitter {
    bay_request *request;
    int seen;
} quitter;

static void quit(bay_question *question, void *user)
{
    quitter *self = user;
    self->seen++;
    bay_request_cancel(self->request, "no more questions");
    bay_question_decline(question);
}

static void a_handler_cancels_its_call(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        quitter self = {0};
        awaited end = {0};
        asking_server asks = {.is_modern = is_modern,
                              .requests = is_modern ? "\"a\":{" FORM "},\"b\":{" FORM "}" : FORM,
                              .rounds = 1};
        asking_server_start(&asks);
        bay_client *client = asking_server_client(&asks.server, options_of(quit, &self));
        self.request = bay_request_tool(client, "asks", "{}");
        assert_int_equal(bay_request_start(self.request, NULL, awaited_done, &end), BAY_OK);
        while (!end.is_done) {
            assert_int_equal(bay_client_wait(client, 1000), BAY_OK);
        }
        assert_int_equal(end.err, BAY_ERR_CANCELLED);
        assert_int_equal(self.seen, 1);
        bay_client_close(client);
        peer_stop(&asks.server);
    }
}

/* ---- without memory */

static void accept_if_possible(bay_question *question, void *user)
{
    (void)user;
    if (bay_question_accept(question, "{\"name\":\"xy\"}", NULL) != BAY_OK) {
        bay_question_decline(question);
    }
}

static void every_allocation(void **state)
{
    (void)state;
    asking_server asks = {.requests = FORM};
    asking_server_start(&asks);
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_client *client = NULL;
        bay_client_options *options = options_of(accept_if_possible, NULL);
        bay_client_options_reconnect(options, 1, 1);
        bay_client_options_timeout(options, 50, 100);
        bay_err err = options != NULL ? bay_client_connect(asks.server.url, options, &client, NULL)
                                      : BAY_ERR_NOMEM;
        bay_client_options_free(options);
        if (err == BAY_OK) {
            err_ignore(call(client, NULL)); /* it ends; how depends on what was missing */
            bay_client_close(client);
        }
        failing_memory_check();
    }
    peer_stop(&asks.server);
}

static void nothing_is_asked_of_null(void **state)
{
    (void)state;
    assert_int_equal(bay_question_method(NULL).len + bay_question_params(NULL).len +
                         bay_question_message(NULL).len + bay_question_schema(NULL).len +
                         bay_question_url(NULL).len,
                     0);
    assert_int_equal(bay_question_accept(NULL, NULL, NULL), BAY_ERR_STATE);
    bay_question_decline(NULL);
    bay_question_cancel(NULL);
    bay_question_reply(NULL, NULL, NULL);
    bay_question_result(NULL, NULL);
    bay_question_error(NULL, 0, NULL);
    assert_null(bay_question_defer(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_a_session),
        cmocka_unit_test(inputs_of_a_round),
        cmocka_unit_test(what_was_not_declared_is_refused),
        cmocka_unit_test(pages_for_a_client_of_forms),
        cmocka_unit_test(a_deferred_answer_is_sent_when_it_comes),
        cmocka_unit_test(an_answer_to_nobody_is_right_all_the_same),
        cmocka_unit_test(a_question_that_was_taken_back),
        cmocka_unit_test(a_handler_cancels_its_call),
        cmocka_unit_test(every_allocation),
        cmocka_unit_test(nothing_is_asked_of_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
