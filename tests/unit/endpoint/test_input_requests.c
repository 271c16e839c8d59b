/* Clients of the handshake era before servers of the same era: what is asked during a call goes out
 * on the call's own stream, and the answer comes back byte for byte. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"
#include "support/people.h"

#define EVERYTHING                                                                                 \
    "'capabilities':{'elicitation':{'form':{},'url':{}},'sampling':{'tools':{}},'roots':{"         \
    "'listChanged':true}}"
#define CALL LEGACY("1", "tools/call", "'name':'a.echo'")
#define FORM                                                                                       \
    "{'jsonrpc':'2.0','id':'s\\u0041','method':'elicitation/create','params':{'message':'m',"      \
    "'mode':'form','requestedSchema' : {'type':'object','properties':{}}}}"

static void open_asking(stage *self, const char *settings, const char *who)
{
    open_on_loop(self, settings, who);
    fake_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    self->a->sends = 0; /* of its lists */
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void what_the_client_cannot_do_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *who;
        const char *ask;
        const char *answer;
    } rows[] = {
        {"'protocolVersion':'2025-11-25','capabilities':{}",
         "'method':'elicitation/create','params':{'message':'m'}", "7 -32601"},
        {"'protocolVersion':'2025-11-25','capabilities':{'elicitation':{}}",
         "'method':'elicitation/create','params':{'mode':'url'}", "7 -32602"},
        {"'protocolVersion':'2025-06-18','capabilities':{'elicitation':{'url':{}}}",
         "'method':'elicitation/create','params':{'mode':'url'}", "7 -32602"},
        {"'protocolVersion':'2025-03-26','capabilities':{'elicitation':{}}",
         "'method':'elicitation/create','params':{'message':'m'}", "7 -32601"},
        {"'protocolVersion':'2025-06-18','capabilities':{'sampling':{'tools':{}}}",
         "'method':'sampling/createMessage','params':{'tools':[]}", "7 -32602"},
        {"'protocolVersion':'2024-11-05','capabilities':{'sampling':{}}", "'method':'roots/list'",
         "7 -32601"},
        {"'protocolVersion':'2025-11-25'," EVERYTHING, "'method':'tools/list'", "7 -32603"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        stage self;
        char text[300];
        open_asking(&self, "workers: 1", rows[i].who);
        say(&self.legacy, CALL);
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':7,%s}", rows[i].ask);
        fake_ask(self.a, text);
        if (!str_starts(str_of(self.a->answer), str_of(rows[i].answer))) {
            print_error("%zu: %s\n", i, self.a->answer);
        }
        assert_true(str_starts(str_of(self.a->answer), str_of(rows[i].answer)));
        assert_int_equal(self.legacy.count, 0);
        fake_result(self.a, "{'content':[]}");
        assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
        close_stage(&self);
    }
}

/* ---- there and back -------------------------------------------------------------------------- */

static void a_question_and_its_answer_pass_byte_for_byte(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    assert_int_equal(self.a->held[0]->affinity.inputs,
                     MCP_INPUT_EVERYTHING & ~MCP_INPUT_SAMPLING_CONTEXT);
    assert_true(self.a->held[0]->affinity.identity.len > 0);
    fake_ask(self.a, FORM);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create',"
                               "'params':{'message':'m','mode':'form','requestedSchema' : {'type':"
                               "'object','properties':{}}}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action' : 'accept','content':"
                      "{'x':1.0}}}");
    assert_text(str_of(self.a->answer),
                "\"s\\u0041\" {\"action\" : \"accept\",\"content\":{\"x\":1.0}}");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':8,'method':'roots/list'}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','method':'roots/list'}");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':9,'method':'sampling/createMessage','params':{"
                     "'messages':[],'maxTokens':1e2}}"); /* two at once */
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-3','method':'sampling/createMessage',"
                               "'params':{'messages':[],'maxTokens':1e2}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-3','error':{'code':-1,'message':'no\\u0041'}}");
    assert_text(str_of(self.a->answer), "9 -1 noA");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-3','result':{}}"); /* once */
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'roots':[ ]}}");
    assert_text(str_of(self.a->answer), "8 {\"roots\":[ ]}");
    assert_int_equal(self.a->answers, 3);
    fake_result(self.a, "{'content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    close_stage(&self);
}

static void a_client_before_modes_is_asked_without_one(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1",
                "'protocolVersion':'2025-06-18','capabilities':{'elicitation':{}}");
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create',"
                               "'params':{'message':'m','requestedSchema':{'type':'object',"
                               "'properties':{}}}}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void what_the_server_takes_back_the_client_hears(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    forget(&self.legacy);
    fake_withdraw(self.a, "'t'");
    assert_int_equal(self.legacy.count, 0);
    fake_withdraw(self.a, "'s\\u0041'");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                               "'requestId':'bay-1','reason':'The server took it back'}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 0);
    fake_result(self.a, "{'content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    close_stage(&self);
}

static void a_call_that_ends_takes_its_questions_along(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    fake_ask(self.a, "{'jsonrpc':'2.0','id':8,'method':'roots/list'}");
    forget(&self.legacy);
    fake_result(self.a, "{'content':[]}");
    assert_int_equal(self.legacy.count, 3);
    char *text = testing_quotes("'method':'notifications/cancelled','params':{'requestId':'bay-1'");
    assert_non_null(strstr(self.legacy.lines[0], text));
    mem_free(text);
    assert_non_null(strstr(self.legacy.lines[1], "bay-2"));
    assert_non_null(strstr(self.legacy.lines[2], "\"id\":1,\"result\""));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 0);
    close_stage(&self);
}

static void a_client_that_cancels_answers_nothing_more(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    forget(&self.legacy);
    say(&self.legacy,
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
    assert_int_equal(self.a->cancels, 1);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 0);
    forget(&self.legacy);
    close_stage(&self);
}

static void a_client_that_leaves_or_falls_silent(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "timeouts: {answer: 1s}", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    forget(&self.legacy);
    mcp_server_tick(endpoint_engine(self.endpoint), loop_now_ms(self.loop) + 5000);
    assert_text(str_of(self.a->answer), "\"s\\u0041\" -32603 the client did not answer in time");
    forget(&self.legacy);
    fake_ask(self.a, "{'jsonrpc':'2.0','id':8,'method':'roots/list'}");
    mcp_connection_input_ended(self.legacy.connection);
    assert_text(str_of(self.a->answer), "8 -32603 the client is gone");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':9,'method':'roots/list'}");
    assert_text(str_of(self.a->answer), "9 -32603 the client is gone");
    mcp_connection_close(self.legacy.connection);
    assert_int_equal(self.a->cancels, 1);
    forget(&self.legacy);
    peer_open(&self.legacy, self.endpoint);
    close_stage(&self);
}

static void end_with(fake *self, upstream_call *call)
{
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED,
                           .err = BAY_ERR_EXITED,
                           .was_sent = true,
                           .text = "it fell over"};
    fake_drop(self, call);
    fake_end(self, call, &outcome, NULL, false);
}

static void an_answer_may_end_the_call(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    fake_ask(self.a, FORM);
    fake_ask(self.a, "{'jsonrpc':'2.0','id':8,'method':'roots/list'}");
    forget(&self.legacy);
    self.a->on_answer = end_with;
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.legacy.count, 2);
    assert_non_null(strstr(self.legacy.lines[0], "bay-2"));
    assert_non_null(strstr(self.legacy.lines[1], "it fell over"));
    forget(&self.legacy);
    close_stage(&self);
}

/* ---- whose call it is ------------------------------------------------------------------------ */

/* A server may stand behind several endpoints: an own path, a profile. */
static void so_is_one_at_another_endpoint(void **state)
{
    (void)state;
    stage endpoints[2];
    char first[64];
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        open_asking(&endpoints[i], "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
        say(&endpoints[i].legacy, CALL);
    }
    bay_str identity = endpoints[0].a->held[0]->affinity.identity;
    (void)snprintf(first, sizeof(first), "%.*s", BAY_STR(identity));
    assert_false(str_eq(endpoints[1].a->held[0]->affinity.identity, str_of(first)));
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        fake_result(endpoints[i].a, "{'content':[]}");
        close_stage(&endpoints[i]);
    }
}

static void each_connection_is_somebody_else(void **state)
{
    (void)state;
    stage self;
    char first[64];
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    say(&self.legacy, CALL);
    bay_str identity = self.a->held[0]->affinity.identity;
    (void)snprintf(first, sizeof(first), "%.*s", BAY_STR(identity));
    assert_true(str_starts(identity, STR("connection 5-")));
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_text(self.a->held[1]->affinity.identity, first);
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/roots/list_changed','params':{"
                      "'_meta':{'n':1.0}}}");
    char told[200];
    (void)snprintf(told, sizeof(told),
                   "%s notifications/roots/list_changed {\"_meta\":{\"n\":1.0}}", first);
    assert_text(str_of(self.a->told), told);
    mcp_connection_close(self.legacy.connection);
    assert_text(str_of(self.a->told), first); /* it is gone */
    peer_open(&self.legacy, self.endpoint);
    say(&self.legacy, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                      "'protocolVersion':'2025-11-25','capabilities':{},"
                      "'clientInfo':{'name':'c','version':'1'}}}");
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    forget(&self.legacy);
    say(&self.legacy, CALL);
    assert_false(str_eq(self.a->held[0]->affinity.identity, str_of(first)));
    mcp_connection_identify(self.modern.connection, person("alice"));
    say(&self.modern, MODERN("3", "tools/call", "'name':'a.echo'"));
    assert_text(self.a->held[1]->affinity.identity, "program:0::5:alice:0:");
    assert_true(self.a->held[1]->affinity.principal == person("alice"));
    fake_result(self.a, "{'content':[]}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    forget(&self.modern);
    close_stage(&self);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static void done_with(stage *self, const char *server, const char *params)
{
    char *text = testing_quotes(params);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    endpoint_elicitation_done(self->endpoint, str_of(server), json_root(&doc));
    arena_fini(&memory);
    mem_free(text);
}

#define DONE(id)                                                                                   \
    "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':" id \
    "}}"
#define URL                                                                                        \
    "{'jsonrpc':'2.0','id':1,'method':'elicitation/create','params':{'mode':'url','message':'m',"  \
    "'url':'x:y','elicitationId':'e\\u0041'}}"

static void who_opened_a_url_hears_that_it_is_done(void **state)
{
    (void)state;
    stage self;
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    done_with(&self, "a", "{'elicitationId':'e\\u0041'}"); /* nobody was asked */
    say(&self.legacy, CALL);
    fake_ask(self.a, URL);
    forget(&self.legacy);
    done_with(&self, "b", "{'elicitationId':'e\\u0041'}");
    done_with(&self, "a", "{'elicitationId':'e'}");
    done_with(&self, "a", "{'elicitationId':7}");
    done_with(&self, "a", "[]");
    assert_int_equal(self.legacy.count, 0);
    done_with(&self, "a", "{'elicitationId':'e\\u0041','x':1}");
    assert_heard(&self.legacy, DONE("'e\\u0041'"));
    done_with(&self, "a", "{'elicitationId':'e\\u0041'}"); /* once */
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    fake_error(self.a, -32042,
               "{'code':-32042,'message':'m','data':{'elicitations':[{'mode':'url','url':'x:y',"
               "'elicitationId':'f'},7]}}");
    assert_heard_part(&self.legacy, "'code':-32042");
    done_with(&self, "a", "{'elicitationId':'f'}"); /* after the call */
    assert_heard(&self.legacy, DONE("'f'"));
    say(&self.legacy, CALL);
    fake_ask(self.a, URL);
    forget(&self.legacy);
    mcp_connection_close(self.legacy.connection);
    done_with(&self, "a", "{'elicitationId':'e\\u0041'}"); /* nobody is there any more */
    assert_int_equal(self.legacy.count, 0);
    peer_open(&self.legacy, self.endpoint);
    close_stage(&self);
}

static void only_so_many_urls_are_remembered(void **state)
{
    (void)state;
    stage self;
    char text[2000];
    open_asking(&self, "workers: 1", "'protocolVersion':'2025-11-25'," EVERYTHING);
    for (int i = 0; i <= ENDPOINT_ELICITATIONS; i++) {
        say(&self.legacy, CALL);
        (void)snprintf(text, sizeof(text),
                       "{'code':-32042,'message':'m','data':{'elicitations':[{'mode':'url','url':"
                       "'x:y','elicitationId':'%d'}]}}",
                       i);
        fake_error(self.a, -32042, text);
        forget(&self.legacy);
    }
    assert_int_equal(self.endpoint->elicitations.len, ENDPOINT_ELICITATIONS);
    done_with(&self, "a", "{'elicitationId':'0'}");
    assert_int_equal(self.legacy.count, 0); /* the oldest */
    done_with(&self, "a", "{'elicitationId':'1'}");
    assert_heard(&self.legacy, DONE("'1'"));
    char *big = malloc(ENDPOINT_ELICITATION_BYTES + 200);
    assert_non_null(big);
    int len = snprintf(big, 100, "{'elicitationId':'");
    memset(big + len, 'x', ENDPOINT_ELICITATION_BYTES);
    memcpy(big + len + ENDPOINT_ELICITATION_BYTES, "'}", 3);
    done_with(&self, "a", big);
    assert_int_equal(self.legacy.count, 0);
    free(big);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_client_cannot_do_is_refused),
        cmocka_unit_test(a_question_and_its_answer_pass_byte_for_byte),
        cmocka_unit_test(a_client_before_modes_is_asked_without_one),
        cmocka_unit_test(what_the_server_takes_back_the_client_hears),
        cmocka_unit_test(a_call_that_ends_takes_its_questions_along),
        cmocka_unit_test(a_client_that_cancels_answers_nothing_more),
        cmocka_unit_test(a_client_that_leaves_or_falls_silent),
        cmocka_unit_test(an_answer_may_end_the_call),
        cmocka_unit_test(each_connection_is_somebody_else),
        cmocka_unit_test(so_is_one_at_another_endpoint),
        cmocka_unit_test(who_opened_a_url_hears_that_it_is_done),
        cmocka_unit_test(only_so_many_urls_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
