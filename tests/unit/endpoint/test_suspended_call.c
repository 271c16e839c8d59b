/* Calls of clients of the stateless era that a server of the handshake era asks something during:
 * suspended, resumed by the retry, and ended in every way there is. */
#include "support/people.h"
#include "suspended_call_testing.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static void a_forged_state_is_refused(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    char bad[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, good);
    assert_true(strncmp(good, "pb5.", 4) == 0);
    for (size_t at = 4; good[at] != '\0'; at += 7) {
        memcpy(bad, good, sizeof(bad));
        bad[at] = bad[at] == 'A' ? 'B' : 'A';
        retry(&self, "2", bad, "{'q1':" ACCEPT "}");
        assert_refused(&self, "not one that was given for this call");
    }
    static const char *const others[] = {"", "x", "pb5.", "pb5.AAAA", "pb5", "state"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        retry(&self, "2", others[i], "{'q1':" ACCEPT "}");
        assert_refused(&self, "not one that was given for this call");
    }
    say(&self.modern, CALL("2", ",'requestState':7"));
    assert_refused(&self, "not one that was given for this call");
    say(&self.modern, CALL("2", ",'requestState':'a','requestState':'b'"));
    assert_refused(&self, "stands twice");
    assert_int_equal(self.a->sends, 1);
    assert_int_equal(self.a->answers, 0);
    assert_still_good(&self, good);
    close_stage(&self);
}

static void a_state_belongs_to_one_call(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    char text[4000];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, good);
    static const char *const others[] = {
        "'method':'tools/call','params':{'name':'a.echo','arguments':{'n':1.0,'m':[3]}",
        "'method':'tools/call','params':{'name':'a.echo','arguments':{'n':1.0}",
        "'method':'tools/call','params':{'name':'a.echo'",
        "'method':'tools/call','params':{'name':'a.x.y','arguments':{'n':1.0,'m':[2]}",
        "'method':'prompts/get','params':{'name':'a.echo','arguments':{'n':1.0,'m':[2]}",
        "'method':'resources/read','params':{'uri':'a.echo','arguments':{'n':1.0,'m':[2]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        (void)snprintf(text, sizeof(text),
                       "{'jsonrpc':'2.0','id':2,%s,'requestState':'%s','inputResponses':{'q1':%s},"
                       "%s}}}",
                       others[i], good, ACCEPT, META_OF(EVERYTHING));
        say(&self.modern, text);
        assert_refused(&self, "another name or with other arguments");
    }
    /* the same arguments, written in another way */
    (void)snprintf(text, sizeof(text),
                   "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'inputResponses':{'q1':"
                   "%s},'requestState':'%s','arguments':{'m' : [ 2 ],'n':1},'name':'a.echo',%s}}}",
                   ACCEPT, good, META_OF(EVERYTHING));
    say(&self.modern, text);
    assert_int_equal(self.modern.count, 0);
    assert_int_equal(self.a->answers, 1);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result'");
    close_stage(&self);
}

static void a_state_belongs_to_one_principal(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    open_suspending(&self, "workers: 1");
    mcp_connection_identify(self.modern.connection, person("alice"));
    suspend_one(&self, good);
    mcp_connection_identify(self.modern.connection, person("mallory"));
    retry(&self, "2", good, "{'q1':" ACCEPT "}");
    assert_refused(&self, "not one that was given for this call");
    mcp_connection_identify(self.modern.connection, person("alice"));
    assert_still_good(&self, good);
    close_stage(&self);
}

static void a_state_is_good_once(void **state)
{
    (void)state;
    stage self;
    char first[STATE];
    char second[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, first);
    retry(&self, "2", first, "{'q1':" ACCEPT "}");
    assert_int_equal(self.a->answers, 1);
    retry(&self, "3", first, "{'q1':" ACCEPT "}"); /* while it is under way */
    assert_refused(&self, "was used before");
    fake_ask(self.a, FORM("7", "more?"));
    turn(&self);
    (void)state_of(&self.modern, second);
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'input_required',"
                                    "'inputRequests':{'q2':");
    retry(&self, "4", first, "{'q1':" ACCEPT "}"); /* of an earlier round */
    assert_refused(&self, "was used before");
    retry(&self, "5", second, "{'q2':{'action':'decline'}}");
    assert_text(str_of(self.a->answer), "7 {\"action\":\"decline\"}");
    assert_int_equal(self.a->answers, 2);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':5,'result'");
    retry(&self, "6", second, "{'q2':" ACCEPT "}"); /* when it is over */
    assert_refused(&self, "is over");
    retry(&self, "7", first, "{'q1':" ACCEPT "}");
    assert_refused(&self, "is over");
    assert_int_equal(self.a->sends, 1);
    close_stage(&self);
}

static void what_the_client_did_not_declare_is_refused(void **state)
{
    (void)state;
    stage self;
    static const struct {
        const char *capabilities;
        const char *ask;
        const char *answer;
    } rows[] = {
        {"{}", "'method':'elicitation/create','params':{'message':'m'}", "-32601"},
        {"{'sampling':{},'roots':{}}", "'method':'elicitation/create','params':{'message':'m'}",
         "-32601"},
        {"{'elicitation':{}}", "'method':'elicitation/create','params':{'mode':'url','url':'x:y'}",
         "-32602"},
        {"{'elicitation':{'url':{}}}", "'method':'elicitation/create','params':{'mode':'form'}",
         "-32602"},
        {"{'elicitation':{}}", "'method':'elicitation/create','params':{'mode':'dance'}", "-32602"},
        {"{'elicitation':{}}", "'method':'sampling/createMessage','params':{}", "-32601"},
        {"{'sampling':{}}", "'method':'sampling/createMessage','params':{'tools':[]}", "-32602"},
        {"{'elicitation':{}}", "'method':'roots/list'", "-32601"},
    };
    open_suspending(&self, "workers: 1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[1000];
        (void)snprintf(text, sizeof(text),
                       "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a.echo',"
                       "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                       "'io.modelcontextprotocol/clientCapabilities':%s}}}",
                       rows[i].capabilities);
        say(&self.modern, text);
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':'s',%s}", rows[i].ask);
        fake_ask(self.a, text);
        turn(&self);
        assert_int_equal(self.modern.count, 0);
        assert_int_equal(self.a->answers, (int)i + 1);
        assert_true(strncmp(self.a->answer, "\"s\" ", 4) == 0);
        assert_true(strncmp(self.a->answer + 4, rows[i].answer, 6) == 0);
        fake_result(self.a, "{'content':[]}");
        assert_heard_part(&self.modern, "'result'");
    }
    close_stage(&self);
}

/* A gateway behind this one makes states that look like ours. */
static void a_state_of_the_servers_own_goes_to_it(void **state)
{
    (void)state;
    stage self;
    char own[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, own);
    fake_learn(&self.a->base, mcp_revision_of(MCP_LATEST), STR("{\"tools\":{}}"));
    static const char *const others[] = {"theirs", "pb5.AAAA", "pb0.", ""};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        char wanted[500];
        retry(&self, "2", others[i], "{'k' : {'action':'accept'}}");
        assert_int_equal(self.a->held_count, 2);
        (void)snprintf(
            wanted, sizeof(wanted),
            "\"requestState\":\"%s\",\"inputResponses\":{\"k\" : {\"action\":\"accept\"}}",
            others[i]);
        assert_true(str_contains(json_raw(self.a->held[1]->spec.params), wanted));
        say(&self.modern,
            "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}");
        assert_int_equal(self.modern.count, 0);
    }
    assert_still_good(&self, own); /* whatever the server is by now */
    close_stage(&self);
}

/* ---- what goes out, and what comes back ------------------------------------------------------ */

static void what_is_asked_in_one_turn_goes_out_together(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    assert_int_equal(self.a->held[0]->affinity.inputs,
                     MCP_INPUT_EVERYTHING & ~MCP_INPUT_SAMPLING_CONTEXT);
    fake_ask(self.a, FORM("'s1'", "a\\u0041"));
    fake_ask(self.a, "{'jsonrpc':'2.0','id':2,'method':'elicitation/create','params':{'url':'x:y',"
                     "'mode':'url','elicitationId':'e1','message':'m'}}");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':3,'method':'sampling/createMessage','params':{"
                     "'messages':[],'maxTokens' : 1e2,'tools':[{'name':'t'}]}}");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':4,'method':'roots/list'}");
    assert_int_equal(self.modern.count, 0);
    turn(&self);
    (void)state_of(&self.modern, token);
    assert_heard_part(
        &self.modern,
        "{'jsonrpc':'2.0','id':1,'result':{'resultType':'input_required','inputRequests':{"
        "'q1':{'method':'elicitation/create','params':{'message':'a\\u0041','requestedSchema' : "
        "{'type':'object','properties':{'x':{'type':'number','default':1.0}}}}},"
        "'q2':{'method':'elicitation/create','params':{'url':'x:y','mode':'url','elicitationId':"
        "'e1','message':'m'}},"
        "'q3':{'method':'sampling/createMessage','params':{'messages':[],'maxTokens' : 1e2,"
        "'tools':[{'name':'t'}]}},'q4':{'method':'roots/list'}},'requestState':'pb5.");
    retry(&self, "2", token,
          "{'q4':{'roots' : []},'q9':1,'q2':{'action':'accept'},'q1':{'action':'cancel','x':1.0},"
          "'q3':{'role':'assistant','content':[],'model':'m','stopReason':'toolUse'}}");
    assert_int_equal(self.a->answers, 4);
    assert_text(str_of(self.a->answer), "4 {\"roots\" : []}");
    assert_int_equal(self.modern.count, 0);
    turn(&self);
    assert_int_equal(self.modern.count, 0);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'complete'");
    close_stage(&self);
}

static void what_was_not_answered_is_asked_again(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    fake_ask(self.a, FORM("1", "a"));
    fake_ask(self.a, FORM("2", "b"));
    turn(&self);
    (void)state_of(&self.modern, token);
    forget(&self.modern);
    fake_ask(self.a, FORM("3", "c")); /* nobody is there: it waits for the next round */
    turn(&self);
    assert_int_equal(self.modern.count, 0);
    retry(&self, "2", token, "{'q1':{'action':'accept'},'q3':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 1); /* to the third nobody was asked for an answer */
    turn(&self);
    (void)state_of(&self.modern, token);
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'input_required',"
                                    "'inputRequests':{'q2':{");
    retry(&self, "3", token, "{'q2':{'action':'decline'},'q3':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 3);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    close_stage(&self);
}

static void an_answer_of_the_wrong_shape_is_asked_for_again(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    static const char *const bad[] = {
        "{}",
        "{'q1':12345}",
        "{'q1':null}",
        "{'q1':{}}",
        "{'q1':{'action':'perhaps'}}",
        "{'q1':{'action':'accept','content':[1]}}",
        "{'Q1':{'action':'accept'}}",
        "{'q01':{'action':'accept'}}",
        "{'q1':{'roots':[]}}",
    };
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    static const char *const worse[] = {"null", "[]", "7", "'x'"};
    for (size_t i = 0; i < ARRAY_LEN(worse); i++) {
        retry(&self, "2", token, worse[i]); /* the state is not used up by it */
        assert_refused(&self, "inputResponses must be an object");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        retry(&self, "2", token, bad[i]);
        assert_int_equal(self.modern.count, 0);
        turn(&self);
        (void)state_of(&self.modern, token);
        assert_heard_part(&self.modern, "'inputRequests':{'q1':{'method':'elicitation/create'");
    }
    assert_int_equal(self.a->answers, 0);
    assert_still_good(&self, token);
    close_stage(&self);
}

static void shapes_depend_on_what_was_asked(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    static const struct {
        const char *ask;
        const char *answer;
        bool is_good;
    } rows[] = {
        {"'method':'roots/list'", "{'roots':{}}", false},
        {"'method':'roots/list'", "{'roots':[7]}", false},
        {"'method':'roots/list'", "{'roots':[{'uri':'file:///','name':'r'}]}", true},
        {"'method':'sampling/createMessage','params':{}", "{'role':'user','content':{}}", false},
        {"'method':'sampling/createMessage','params':{}", "{'content':{},'model':'m'}", false},
        {"'method':'sampling/createMessage','params':{}",
         "{'role':'user','content':'x','model':'m'}", false},
        {"'method':'sampling/createMessage','params':{}",
         "{'role':'user','content':{},'model':'m'}", false},
        {"'method':'sampling/createMessage','params':{}",
         "{'role':'user','content':{'type':'new'},'model':'m'}", true},
    };
    open_suspending(&self, "workers: 1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[500];
        say(&self.modern, CALL("1", ""));
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,%s}", rows[i].ask);
        fake_ask(self.a, text);
        turn(&self);
        (void)state_of(&self.modern, token);
        forget(&self.modern);
        (void)snprintf(text, sizeof(text), "{'q1':%s}", rows[i].answer);
        self.a->answers = 0;
        retry(&self, "2", token, text);
        assert_int_equal(self.a->answers, rows[i].is_good);
        fake_result(self.a, "{'content':[]}");
        assert_heard_part(&self.modern, "'id':2,'result'");
    }
    close_stage(&self);
}

static void prompts_and_resources_are_suspended_too(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    char text[3000];
    static const char *const calls[] = {
        "'method':'prompts/get','params':{'name':'a.p'",
        "'method':'resources/read','params':{'uri':'f:///a'",
    };
    open_suspending(&self, "workers: 1");
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,%s,%s}}}", calls[i],
                       META_OF(EVERYTHING));
        say(&self.modern, text);
        assert_true(self.a->held[0]->is_repeatable);
        fake_ask(self.a, FORM("1", "m"));
        assert_false(self.a->held[0]->is_repeatable); /* nobody is asked twice */
        turn(&self);
        (void)state_of(&self.modern, token);
        forget(&self.modern);
        (void)snprintf(text, sizeof(text),
                       "{'jsonrpc':'2.0','id':2,%s,'requestState':'%s','inputResponses':{'q1':%s},"
                       "%s}}}",
                       calls[i], token, ACCEPT, META_OF(EVERYTHING));
        say(&self.modern, text);
        fake_result(self.a, "{'x':1.0}");
        assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'complete'");
    }
    close_stage(&self);
}

/* A completion has no input_required: its server can ask nobody. */
static void completions_are_never_suspended(void **state)
{
    (void)state;
    stage self;
    open_suspending(&self, "workers: 1");
    say(&self.modern,
        "{'jsonrpc':'2.0','id':1,'method':'completion/complete','params':{"
        "'ref':{'type':'ref/prompt','name':'a.p'},'argument':{}," META_OF(EVERYTHING) "}}}");
    assert_int_equal(self.a->held[0]->affinity.inputs, 0);
    fake_ask(self.a, FORM("1", "m"));
    assert_true(str_starts(str_of(self.a->answer), STR("1 -32601 ")));
    fake_result(self.a, "{'completion':{'values':[]}}");
    assert_heard_part(&self.modern, "'id':1,'result'");
    close_stage(&self);
}

/* ---- meanwhile ------------------------------------------------------------------------------- */

static void progress_and_messages_go_with_the_request_that_is_there(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    char text[3000];
    open_suspending(&self, "workers: 1");
    say(&self.modern,
        "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a.echo'," META_OF(
            EVERYTHING) ",'progressToken':'first'}}}");
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':1,'progress':5}");
    assert_heard_part(&self.modern, "'progressToken':'first','progress':5");
    fake_ask(self.a, FORM("1", "m"));
    turn(&self);
    (void)state_of(&self.modern, token);
    forget(&self.modern);
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':1,'progress':6}");
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':1}");
    assert_int_equal(self.modern.count, 0);
    (void)snprintf(text, sizeof(text),
                   "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'a.echo',"
                   "'requestState':'%s','inputResponses':{'q1':%s},%s,'progressToken':2,"
                   "'io.modelcontextprotocol/logLevel':'warning'}}}",
                   token, ACCEPT, META_OF(EVERYTHING));
    say(&self.modern, text);
    assert_int_equal(self.a->level, MCP_LOG_WARNING);
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':1,'progress':7}");
    assert_heard_part(&self.modern, "'progressToken':2,'progress':7");
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':1}");
    assert_heard_part(&self.modern, "notifications/message");
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result'");
    close_stage(&self);
}

static void a_retry_may_declare_less(void **state)
{
    (void)state;
    stage self;
    char given[STATE];
    char text[6000];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, given);
    (void)snprintf(
        text, sizeof(text),
        "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'a.echo',"
        "'arguments':{'n':1,'m':[2]},'requestState':'%s','inputResponses':{'q1':%s},%s}}}",
        given, ACCEPT, META_OF("{'sampling':{}}"));
    say(&self.modern, text);
    assert_int_equal(self.a->answers, 1);
    fake_ask(self.a, FORM("'s2'", "more?"));
    assert_int_equal(self.a->answers, 2);
    assert_true(str_starts(str_of(self.a->answer), STR("\"s2\" -32601 ")));
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result':");
    close_stage(&self);
}

/* A client that reads slowly holds its server back: not when that request is over. */
static void a_suspended_call_is_not_held_back(void **state)
{
    (void)state;
    stage self;
    char given[STATE];
    open_suspending(&self, "workers: 1");
    say(&self.modern,
        "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a.echo'," META_OF(
            EVERYTHING) ",'progressToken':1}}}");
    fake_ask(self.a, FORM("'s1'", "name?"));
    self.modern.says = BAY_ERR_AGAIN;
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':1,'progress':5}");
    assert_int_equal(self.a->pauses, 1);
    forget(&self.modern);
    turn(&self);
    (void)state_of(&self.modern, given);
    assert_int_equal(self.a->resumes, 1);
    forget(&self.modern);
    close_stage(&self);
}

static void a_question_may_be_taken_back(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    fake_ask(self.a, FORM("'s'", "m"));
    fake_withdraw(self.a, "'s'"); /* before anybody was told */
    fake_withdraw(self.a, "'t'");
    turn(&self);
    assert_int_equal(self.modern.count, 0);
    fake_ask(self.a, FORM("'s'", "m"));
    turn(&self);
    (void)state_of(&self.modern, token);
    forget(&self.modern);
    fake_withdraw(self.a, "'s'");
    retry(&self, "2", token, "{'q2':" ACCEPT "}"); /* the answer to nothing */
    turn(&self);
    assert_int_equal(self.a->answers, 0);
    assert_int_equal(self.modern.count, 0);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result'");
    assert_int_equal(self.endpoint->suspended.bytes, 0);
    close_stage(&self);
}

static void an_end_before_the_turns_end_is_the_only_answer(void **state)
{
    (void)state;
    stage self;
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    fake_ask(self.a, FORM("1", "m"));
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':1,'result':{'resultType':'complete'");
    turn(&self);
    assert_int_equal(self.modern.count, 0);
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

/* The link breaks at the very answer. */
static void an_answer_may_end_the_call(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    fake_ask(self.a, FORM("1", "m"));
    fake_ask(self.a, FORM("2", "m"));
    turn(&self);
    (void)state_of(&self.modern, token);
    forget(&self.modern);
    self.a->on_answer = end_with;
    retry(&self, "2", token, "{'q1':" ACCEPT ",'q2':" ACCEPT "}");
    assert_int_equal(self.a->answers, 1);
    assert_heard_part(&self.modern, "it fell over");
    turn(&self);
    assert_int_equal(self.modern.count, 0);
    assert_int_equal(self.endpoint->suspended.calls.len, 0);
    close_stage(&self);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void what_ended_meanwhile_waits_for_the_client(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    fake_result(self.a, "{'content':[],'n':1.0}");
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern,
                      "'id':2,'result':{'resultType':'complete','content':[],'n':1.0");
    retry(&self, "3", token, "{'q1':" ACCEPT "}");
    assert_refused(&self, "is over");
    suspend_one(&self, token);
    fake_error(self.a, -32000, "{'code':-32000,'message':'no\\u0041','data':1.0}");
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern,
                      "'id':2,'error':{'code':-32000,'message':'no\\u0041','data':1.0}");
    suspend_one(&self, token);
    fake_fail(self.a, BAY_ERR_EXITED, true, "exited with status 3");
    upstream_set_state(&self.a->base, UPSTREAM_BACKOFF, "exited");
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern, "The server \\\"a\\\" gave no answer: the process exited: "
                                    "exited with status 3. The call may have been carried out.");
    assert_int_equal(self.endpoint->suspended.bytes, 0);
    assert_int_equal(self.a->answers, 0);
    close_stage(&self);
}

static void an_outcome_too_large_to_keep_says_so(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    char *big = malloc(SUSPENDED_OUTCOME_BYTES + 100);
    assert_non_null(big);
    int len = snprintf(big, 100, "{'content':[],'x':'");
    memset(big + len, 'x', SUSPENDED_OUTCOME_BYTES);
    memcpy(big + len + SUSPENDED_OUTCOME_BYTES, "'}", 3);
    fake_result(self.a, big);
    free(big);
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern, "'patchbay/reason':'result_too_large','patchbay/server':'a',"
                                    "'patchbay/mayHaveRun':true");
    close_stage(&self);
}

static void an_abandoned_call_is_given_up(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "timeouts: {answer: 20ms}");
    suspend_one(&self, token);
    assert_int_equal(self.a->cancels, 0);
    while (self.a->cancels == 0) {
        loop_turn(self.loop, -1);
    }
    assert_int_equal(self.a->cancels, 1);
    assert_int_equal(self.endpoint->suspended.calls.len, 0);
    assert_int_equal(self.endpoint->suspended.bytes, 0);
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_int_equal(self.modern.count, 1); /* by the clock of the world, or by our own */
    assert_true(strstr(self.modern.lines[0], "has expired") != NULL ||
                strstr(self.modern.lines[0], "is over") != NULL);
    forget(&self.modern);
    close_stage(&self);
}

/* That is cancelling: nobody could come back for more. */
static void a_cancel_while_it_is_under_way_again(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    fake_ask(self.a, FORM("9", "m")); /* and before it could be put to the client */
    say(&self.modern,
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}");
    assert_int_equal(self.a->cancels, 1);
    turn(&self);
    assert_int_equal(self.modern.count, 0);
    retry(&self, "3", token, "{'q1':" ACCEPT "}");
    assert_refused(&self, "is over");
    close_stage(&self);
}

static void a_suspended_call_outlives_its_connection(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    mcp_connection_close(self.modern.connection);
    peer_open(&self.modern, self.endpoint);
    assert_int_equal(self.a->cancels, 0);
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    mcp_connection_close(self.modern.connection); /* a disconnect is a cancel */
    assert_int_equal(self.a->cancels, 1);
    peer_open(&self.modern, self.endpoint);
    close_stage(&self);
}

static void an_endpoint_that_ends_gives_up_what_is_suspended(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    suspend_one(&self, token);
    fake_result(self.a, "{'content':[]}"); /* of one of them, that nobody asks for any more */
    say(&self.modern, CALL("1", ""));
    fake_ask(self.a, FORM("1", "m")); /* another that is about to be */
    close_stage(&self);               /* fake_free: no call is left */
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void only_so_many_calls_are_suspended(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "limits: {parkedCalls: 2}");
    suspend_one(&self, token);
    suspend_one(&self, token);
    say(&self.modern, CALL("1", ""));
    fake_ask_during(self.a->held[2], FORM("7", "m"));
    turn(&self);
    assert_int_equal(self.modern.count, 0); /* the call goes on without */
    assert_true(str_starts(str_of(self.a->answer), STR("7 -32603 too many calls wait")));
    close_stage(&self);
}

static void only_so_much_is_asked_during_one_call(void **state)
{
    (void)state;
    stage self;
    char text[500];
    open_suspending(&self, "workers: 1");
    say(&self.modern, CALL("1", ""));
    for (int i = 0; i < INPUT_REQUESTS_PER_CALL; i++) {
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%d,'method':'roots/list'}", i);
        fake_ask(self.a, text);
    }
    assert_int_equal(self.a->answers, 0);
    fake_ask(self.a, "{'jsonrpc':'2.0','id':'x','method':'roots/list'}");
    assert_text(str_of(self.a->answer), "\"x\" -32603 too much is asked at once");
    char *big = malloc(INPUT_REQUESTS_CALL_BYTES + 200);
    assert_non_null(big);
    int len = snprintf(big, 200,
                       "{'jsonrpc':'2.0','id':'y','method':'elicitation/create','params':"
                       "{'message':'");
    memset(big + len, 'x', INPUT_REQUESTS_CALL_BYTES);
    memcpy(big + len + INPUT_REQUESTS_CALL_BYTES, "'}}", 4);
    say(&self.modern, CALL("2", ""));
    fake_ask_during(self.a->held[1], big);
    assert_text(str_of(self.a->answer), "\"y\" -32603 too much is asked at once");
    free(big);
    close_stage(&self);
}

static void only_so_many_rounds_are_gone(void **state)
{
    (void)state;
    stage self;
    char token[STATE];
    open_suspending(&self, "workers: 1");
    suspend_one(&self, token);
    for (int i = 1; i < SUSPENDED_ROUNDS; i++) {
        retry(&self, "2", token, "{}");
        turn(&self);
        (void)state_of(&self.modern, token);
        forget(&self.modern);
    }
    retry(&self, "3", token, "{}");
    turn(&self);
    assert_int_equal(self.a->cancels, 1);
    assert_heard_part(&self.modern, "gave no answer: it asked for input too often");
    close_stage(&self);
}

static void where_nothing_can_be_suspended_nothing_is_asked(void **state)
{
    (void)state;
    stage self;
    open_suspending(&self, "limits: {parkedCalls: 0}");
    say(&self.modern, CALL("1", ""));
    assert_int_equal(self.a->held[0]->affinity.inputs, 0);
    fake_ask(self.a, FORM("7", "m"));
    assert_true(str_starts(str_of(self.a->answer), STR("7 -32601 ")));
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':1,'result'");
    close_stage(&self);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t live_bytes;

static void *count_alloc(size_t bytes, void *user)
{
    void *at = malloc(bytes);
    (void)user;
    live_bytes += at != NULL ? malloc_usable_size(at) : 0;
    return at;
}

static void *count_resize(void *old, size_t bytes, void *user)
{
    size_t before = old != NULL ? malloc_usable_size(old) : 0;
    void *at = realloc(old, bytes);
    (void)user;
    live_bytes += at != NULL ? malloc_usable_size(at) - before : 0;
    return at;
}

static void count_release(void *old, void *user)
{
    (void)user;
    live_bytes -= malloc_usable_size(old);
    free(old);
}

/* Without the upstream's part: an engine's call of some 600 bytes and the message it has kept. */
static void a_suspended_call_is_small(void **state)
{
    (void)state;
    enum { CALLS = 2000 };
    stage self;
    open_suspending(&self, "workers: 1");
    mem_set_hooks(&(mem_hooks){count_alloc, count_resize, count_release, NULL});
    size_t before = 0;
    for (int i = 0; i < CALLS + 100; i++) {
        before = i == 100 ? live_bytes : before; /* what is kept warm is warm by then */
        say(&self.modern, CALL("1", ""));
        fake_ask_during(self.a->held[i], FORM("'s1'", "What is the name of the project?"));
        turn(&self);
        forget(&self.modern);
    }
    size_t each = (live_bytes - before) / CALLS;
    mem_set_hooks(&(mem_hooks){failing_memory_libc_alloc, failing_memory_libc_resize,
                               failing_memory_libc_release, NULL});
    print_message("%zu bytes a suspended call\n", each);
    assert_int_equal(self.endpoint->suspended.calls.len, CALLS + 100);
    assert_true(each < 2048);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forged_state_is_refused),
        cmocka_unit_test(a_state_belongs_to_one_call),
        cmocka_unit_test(a_state_belongs_to_one_principal),
        cmocka_unit_test(a_state_is_good_once),
        cmocka_unit_test(what_the_client_did_not_declare_is_refused),
        cmocka_unit_test(a_state_of_the_servers_own_goes_to_it),
        cmocka_unit_test(what_is_asked_in_one_turn_goes_out_together),
        cmocka_unit_test(what_was_not_answered_is_asked_again),
        cmocka_unit_test(an_answer_of_the_wrong_shape_is_asked_for_again),
        cmocka_unit_test(shapes_depend_on_what_was_asked),
        cmocka_unit_test(prompts_and_resources_are_suspended_too),
        cmocka_unit_test(completions_are_never_suspended),
        cmocka_unit_test(progress_and_messages_go_with_the_request_that_is_there),
        cmocka_unit_test(a_retry_may_declare_less),
        cmocka_unit_test(a_suspended_call_is_not_held_back),
        cmocka_unit_test(a_question_may_be_taken_back),
        cmocka_unit_test(an_end_before_the_turns_end_is_the_only_answer),
        cmocka_unit_test(an_answer_may_end_the_call),
        cmocka_unit_test(what_ended_meanwhile_waits_for_the_client),
        cmocka_unit_test(an_outcome_too_large_to_keep_says_so),
        cmocka_unit_test(an_abandoned_call_is_given_up),
        cmocka_unit_test(a_cancel_while_it_is_under_way_again),
        cmocka_unit_test(a_suspended_call_outlives_its_connection),
        cmocka_unit_test(an_endpoint_that_ends_gives_up_what_is_suspended),
        cmocka_unit_test(only_so_many_calls_are_suspended),
        cmocka_unit_test(only_so_much_is_asked_during_one_call),
        cmocka_unit_test(only_so_many_rounds_are_gone),
        cmocka_unit_test(where_nothing_can_be_suspended_nothing_is_asked),
        cmocka_unit_test(a_suspended_call_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
