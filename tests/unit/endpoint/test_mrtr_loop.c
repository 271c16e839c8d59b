/* Clients of the handshake era before servers of the stateless one: input_required becomes requests
 * to the client, and the call is sent again with the answers. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"

#define EVERYTHING                                                                                 \
    "'protocolVersion':'2025-11-25','capabilities':{'elicitation':{'form':{},'url':{}},"           \
    "'sampling':{'tools':{}},'roots':{'listChanged':true},'experimental':{'x':{'y':1.0}},"         \
    "'tasks':{}}"
#define PARAMS "'name':'a.echo','arguments' : {'n':1.0},'_meta':{'k':1.0}"
#define CALL LEGACY("1", "tools/call", PARAMS)
#define FORM(message)                                                                              \
    "{'method':'elicitation/create','params':{'message':'" message "','requestedSchema' : {}}}"
#define INPUT(requests, state)                                                                     \
    "{'resultType':'input_required','inputRequests':{" requests "}" state "}"

static void open_rounds(stage *self, const char *settings, const char *who)
{
    open_on_loop(self, settings, who);
    self->a->sends = 0; /* of its lists */
}

static void assert_params(const stage *self, const char *params)
{
    assert_int_equal(self->a->held_count, 1);
    char *text = testing_quotes(params);
    assert_text(json_raw(self->a->held[0]->spec.params), text);
    assert_text(self->a->held[0]->spec.rename, "echo");
    assert_text(json_raw(self->a->held[0]->spec.meta), "{\"k\":1.0}");
    mem_free(text);
}

/* The call ended for want of input; `part` of what the client was told. */
static void assert_ended(stage *self, const char *part)
{
    assert_int_equal(self->a->held_count, 0);
    assert_heard_part(&self->legacy, part);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void what_the_client_cannot_do_has_one_outcome(void **state)
{
    (void)state;
    static const struct {
        const char *who;
        const char *requests;
        const char *wanted;
    } rows[] = {
        {"'protocolVersion':'2025-11-25','capabilities':{}", "'a':" FORM("m"),
         "revision (2025-11-25) does not have: elicitation by a form\"}],'isError':true,'_meta':{"
         "'patchbay/reason':'input_not_available','patchbay/server':'a'"},
        {"'protocolVersion':'2025-03-26','capabilities':{'elicitation':{}}", "'a':" FORM("m"),
         "revision (2025-03-26) does not have: elicitation by a form"},
        {"'protocolVersion':'2025-06-18','capabilities':{'elicitation':{'url':{}}}",
         "'a':{'method':'elicitation/create','params':{'mode':'url','url':'x:y','message':'m'}}",
         "revision (2025-06-18) does not have: elicitation by a URL"},
        {"'protocolVersion':'2025-06-18','capabilities':{'sampling':{}}",
         "'b':{'method':'roots/list'},'a':{'method':'sampling/"
         "createMessage','params':{'tools':[]}}",
         "does not have: sampling with tools, roots"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        stage self;
        char text[500];
        open_rounds(&self, "workers: 1", rows[i].who);
        say(&self.legacy, CALL);
        (void)snprintf(text, sizeof(text), INPUT("%s", ""), rows[i].requests);
        fake_result(self.a, text);
        assert_ended(&self, rows[i].wanted);
        say(&self.legacy, LEGACY("2", "resources/read", "'uri':'f:///a'"));
        fake_result(self.a, text);
        assert_ended(&self, "'id':2,'error':{'code':-32603,'message':'The server \\\"a\\\" gave no "
                            "answer: it asks for input that this client has not declared");
        close_stage(&self);
    }
}

static void what_is_no_request_for_input_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *result;
        const char *wanted;
    } rows[] = {
        {"{'resultType':'input_required'}", "does not say for which"},
        {"{'resultType':'input_required','inputRequests':[]}", "no object"},
        {"{'resultType':'input_required','requestState':7}", "no string"},
        {INPUT("'a':7", ""), "no request"},
        {INPUT("'a':{'method':7}", ""), "no request"},
        {INPUT("'a':{'method':'roots/list','params':7}", ""), "no request"},
        {INPUT("'a':{'method':'tools/call'}", ""), "not known"},
        {INPUT("'a':{'method':'elicitation/create','params':{'mode':'dance'}}", ""), "not known"},
        {INPUT("'a':{'method':'roots/list'},'\\u0061':{'method':'roots/list'}", ""), "twice"},
    };
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        say(&self.legacy, CALL);
        fake_result(self.a, rows[i].result);
        assert_int_equal(self.legacy.count, 1);
        assert_non_null(strstr(self.legacy.lines[0], "invalid_answer"));
        assert_ended(&self, rows[i].wanted);
    }
    close_stage(&self);
}

/* completion/complete may not be answered so. */
static void where_nothing_may_be_asked_it_is_an_error(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, LEGACY("1", "completion/complete",
                             "'ref':{'type':'ref/prompt','name':'a.p'},'argument':{}"));
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    assert_ended(&self, "'id':1,'error':{'code':-32603,'message':'The call needs input");
    close_stage(&self);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void a_clients_capabilities_go_along(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    assert_text(self.a->held[0]->spec.capabilities,
                "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"tools\":{}},\"roots\":{"
                "\"listChanged\":true},\"experimental\":{\"x\":{\"y\":1.0}}}");
    assert_text(self.a->held[0]->spec.client_info, "{\"name\":\"c\",\"version\":\"1\"}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
    open_rounds(&self, "workers: 1", "'protocolVersion':'2024-11-05','capabilities':{}");
    say(&self.legacy, CALL);
    assert_text(self.a->held[0]->spec.capabilities, "{}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
}

static void several_inputs_and_several_rounds(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a\\u0041':" FORM("m") ",'b':{'method':'sampling/createMessage',"
                                                      "'params':{'messages':[],'maxTokens':1e2}},"
                                                      "'c':{'method':'roots/list'}",
                              ",'requestState':'s\\u0031'"));
    assert_int_equal(self.legacy.count, 3);
    char *first = testing_quotes("{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create',"
                                 "'params':{'message':'m','requestedSchema' : {}}}");
    assert_text(str_of(self.legacy.lines[0]), first);
    mem_free(first);
    assert_non_null(strstr(self.legacy.lines[1], "\"maxTokens\":1e2"));
    assert_non_null(strstr(self.legacy.lines[2], "\"id\":\"bay-3\",\"method\":\"roots/list\"}"));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-3','result':{'roots' : []}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'decline','x':1.0}}");
    assert_int_equal(self.a->held_count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'role':'user','model':'m','content':"
                      "{'type':'x'}}}");
    assert_params(
        &self,
        "{'name':'a.echo','arguments':{'n':1.0},'inputResponses':{'a\\u0041':{"
        "'action':'decline','x':1.0},'b':{'role':'user','model':'m','content':{'type':'x'}},'c':{"
        "'roots' : []}},'requestState':'s\\u0031'}");
    fake_result(self.a, INPUT("'d':{'method':'roots/list'}", "")); /* without a state this time */
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-4','method':'roots/list'}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-4','result':{'roots':[{'uri':'a:','n':1.0}]}}");
    assert_params(&self, "{'name':'a.echo','arguments':{'n':1.0},'inputResponses':{'d':{"
                         "'roots':[{'uri':'a:','n':1.0}]}}}");
    assert_int_equal(self.a->sends, 3);
    fake_result(self.a, "{'resultType':'complete','content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    close_stage(&self);
}

static void modes_and_ids_of_elicitations_fit_the_client(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':{'method':'elicitation/create','params':{'mode':'url',"
                              "'url':'x:y','message':'m'}}",
                              ""));
    assert_heard_part(&self.legacy, "'params':{'mode':'url','url':'x:y','message':'m',"
                                    "'elicitationId':'");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    fake_result(self.a, INPUT("'a':{'method':'elicitation/create','params':{'mode':'form',"
                              "'message':'m'}}",
                              ""));
    assert_heard_part(&self.legacy, "'params':{'mode':'form','message':'m'}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'action':'accept'}}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
    open_rounds(&self, "workers: 1",
                "'protocolVersion':'2025-06-18','capabilities':{'elicitation':{}}");
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':{'method':'elicitation/create','params':{'mode':'form',"
                              "'message':'m'}}",
                              ""));
    assert_heard_part(&self.legacy, "'params':{'message':'m'}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
}

static void prompts_and_resources_go_round_too(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    fake_result(self.a, INPUT("'d':{'method':'roots/list'}", ",'requestState':'s'"));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'roots':[]}}");
    assert_asked(self.a, "prompts/get", "p",
                 "{'name':'a.p','inputResponses':{'d':{'roots':[]}},'requestState':'s'}");
    fake_result(self.a, "{'messages':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'messages':[]}}");
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'f:///a'"));
    fake_result(self.a, INPUT("'d':{'method':'roots/list'}", ",'requestState':'s'"));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'roots':[]}}");
    assert_asked(self.a, "resources/read", "",
                 "{'uri':'f:///a','inputResponses':{'d':{'roots':[]}},'requestState':'s'}");
    fake_result(self.a, "{'contents':[]}");
    forget(&self.legacy);
    close_stage(&self);
}

/* The server wants nothing but to be asked again: at once, then less and less often. */
static void a_state_alone_is_brought_back(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, "{'resultType':'input_required','requestState':'s1'}");
    assert_int_equal(self.a->held_count, 0);
    while (self.a->held_count == 0) {
        loop_turn(self.loop, -1);
    }
    assert_params(&self, "{'name':'a.echo','arguments':{'n':1.0},'requestState':'s1'}");
    fake_result(self.a, "{'resultType':'input_required','requestState':'s2','inputRequests':{}}");
    while (self.a->held_count == 0) {
        loop_turn(self.loop, -1);
    }
    assert_params(&self, "{'name':'a.echo','arguments':{'n':1.0},'requestState':'s2'}");
    fake_result(self.a, "{'resultType':'input_required','requestState':'s3'}");
    say(&self.legacy, /* while it waits */
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
    for (int i = 0; i < 5; i++) {
        loop_turn(self.loop, 0);
    }
    assert_int_equal(self.a->sends, 3);
    assert_int_equal(self.legacy.count, 0);
    close_stage(&self);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void a_client_that_refuses_ends_the_call(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m") ",'b':{'method':'roots/list'}", ""));
    forget(&self.legacy);
    say(&self.legacy,
        "{'jsonrpc':'2.0','id':'bay-1','error':{'code':-1,'message':'not \\u006eow'}}");
    assert_int_equal(self.legacy.count, 2); /* the other question is taken back */
    assert_non_null(strstr(self.legacy.lines[0], "bay-2"));
    assert_non_null(strstr(self.legacy.lines[1],
                           "gave no answer: the client refused to answer elicitation/create: not "
                           "now\"}],\"isError\":true,\"_meta\":{\"patchbay/reason\":"
                           "\"client_refused\""));
    forget(&self.legacy);
    assert_int_equal(self.a->held_count, 0);
    close_stage(&self);
}

static void an_answer_that_is_none_ends_the_call(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':7}}");
    assert_heard_part(&self.legacy, "answer is no result of elicitation/create: "
                                    "/action must be a string");
    assert_int_equal(self.a->held_count, 0);
    close_stage(&self);
}

static void a_client_that_falls_silent_ends_the_call(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "timeouts: {answer: 1s}", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m") ",'b':{'method':'roots/list'}", ""));
    forget(&self.legacy);
    mcp_server_tick(endpoint_engine(self.endpoint), loop_now_ms(self.loop) + 5000);
    assert_non_null(
        strstr(self.legacy.lines[self.legacy.count - 1], "\"patchbay/reason\":\"timeout\""));
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "tools/call", PARAMS));
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    forget(&self.legacy);
    mcp_connection_input_ended(self.legacy.connection);
    assert_ended(&self, "the client can be asked no more");
    say(&self.legacy, LEGACY("3", "tools/call", PARAMS));
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    assert_ended(&self, "the client could not be asked");
    close_stage(&self);
}

static void a_cancel_or_a_departure_while_it_is_asked(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m") ",'b':{'method':'roots/list'}", ""));
    forget(&self.legacy);
    say(&self.legacy,
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'roots':[]}}");
    assert_int_equal(self.a->sends, 1);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "tools/call", PARAMS));
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    mcp_connection_close(self.legacy.connection);
    forget(&self.legacy);
    peer_open(&self.legacy, self.endpoint);
    close_stage(&self);
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    close_stage(&self); /* the endpoint ends while it asks */
}

static void only_so_many_rounds_are_gone(void **state)
{
    (void)state;
    stage self;
    char text[200];
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    for (int i = 1; i <= MRTR_MOST; i++) {
        fake_result(self.a, INPUT("'b':{'method':'roots/list'}", ",'requestState':'s'"));
        assert_heard_part(&self.legacy, "roots/list");
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':'bay-%d','result':{'roots':[]}}",
                       i);
        say(&self.legacy, text);
    }
    fake_result(self.a, INPUT("'b':{'method':'roots/list'}", ",'requestState':'s'"));
    assert_ended(&self, "it asked for input too often");
    close_stage(&self);
}

/* ---- errors that a revision does not know ---------------------------------------------------- */

static void a_missing_capability_is_told_with_its_reason(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", "'protocolVersion':'2025-11-25','capabilities':{}");
    say(&self.legacy, CALL);
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'need it','data':{"
               "'requiredCapabilities':{'sampling':{}}}}");
    assert_heard(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'result':{'content':[{'type':'text','text':'The server "
        "\\\"a\\\" needs a capability that this client has not declared: {\\\"sampling\\\":"
        "{}}. It said: need it'}],'isError':true,'_meta':{'patchbay/reason':"
        "'capability_missing','patchbay/server':'a','patchbay/mayHaveRun':false}}}");
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'f:///a'"));
    fake_error(self.a, -32021, "{'code':-32021,'message':'need it'}");
    assert_heard_part(&self.legacy,
                      "'error':{'code':-32600,'message':'The server \\\"a\\\" needs a "
                      "capability that this client has not declared. It said: need "
                      "it'");
    say(&self.modern, MODERN("3", "tools/call", "'name':'a.echo'")); /* it knows the code */
    fake_error(self.a, -32021, "{'code':-32021,'message':'need it'}");
    assert_heard_part(&self.modern, "'error':{'code':-32021,'message':'need it'}");
    close_stage(&self);
}

#define URLS                                                                                       \
    "{'code':-32042,'message':'log in','data':{'elicitations':[{'mode':'url','elicitationId':'e'," \
    "'url':'x:y','message':'m\\u0041'},{'mode':'form'},7,{'mode':'url','url':'x:z'}]}}"
#define WITH_URL(id, more)                                                                         \
    "{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'a.echo'" more            \
    "," META_OF("{'elicitation':{'url':{}}}") "}}}"

static void urls_that_are_to_be_opened_become_input(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    fake_learn(&self.a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    say(&self.modern, WITH_URL("1", ""));
    fake_error(self.a, -32042, URLS);
    assert_heard_part(
        &self.modern,
        "'id':1,'result':{'resultType':'input_required','inputRequests':{"
        "'patchbay-url-1':{'method':'elicitation/create','params':{'mode':'url',"
        "'elicitationId':'e','url':'x:y','message':'m\\u0041'}},'patchbay-url-2':{"
        "'method':'elicitation/create','params':{'mode':'url','url':'x:z'}}},'_meta'");
    say(&self.modern, WITH_URL("2", ",'inputResponses':{'patchbay-url-1':{'action':'accept'},"
                                    "'patchbay-url-2':{'action':'decline'}}"));
    assert_heard_part(&self.modern, "'patchbay/reason':'declined'");
    assert_int_equal(self.a->sends, 1);
    say(&self.modern, WITH_URL("3", ",'inputResponses':{'patchbay-url-1':{'action':'accept'},"
                                    "'patchbay-url-2':{'action':'accept'}}"));
    assert_int_equal(self.a->sends, 2); /* the call again */
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    close_stage(&self);
}

static void who_cannot_open_urls_is_told_so(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    fake_learn(&self.a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.echo'"));
    fake_error(self.a, -32042, URLS);
    assert_heard_part(&self.modern,
                      "'error':{'code':-32021,'message':'The server \\\"a\\\" wants its "
                      "user to open a URL first: log in','data':{"
                      "'requiredCapabilities':{'elicitation':{'url':{}}}}}");
    say(&self.modern, WITH_URL("2", ""));
    fake_error(self.a, -32042, "{'code':-32042,'message':'log in'}"); /* without any */
    assert_heard_part(&self.modern, "'error':{'code':-32021");
    say(&self.legacy, CALL); /* of that revision: it knows the code */
    fake_error(self.a, -32042, URLS);
    assert_heard_part(&self.legacy, "'error':{'code':-32042,'message':'log in','data':");
    close_stage(&self);
}

/* All that clients think about together has a bound, too. */
static void what_is_asked_is_counted(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    forget(&self.legacy);
    size_t one = self.endpoint->mrtr_bytes;
    assert_true(one > 50);
    self.endpoint->mrtr_bytes = MRTR_MAX_BYTES - 10; /* others think as well */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    assert_heard_part(&self.legacy, "it asks for too much at once");
    assert_int_equal(self.endpoint->mrtr_bytes, MRTR_MAX_BYTES - 10);
    self.endpoint->mrtr_bytes = one;
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    fake_result(self.a, "{'content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    assert_int_equal(self.endpoint->mrtr_bytes, 0);
    close_stage(&self);
}

/* ---- servers that come and go -----------------------------------------------------------------
 */

/* A reload takes it away while a person thinks. */
static void replace_server(stage *self, bool is_there)
{
    fake *old = self->a;
    self->a = fake_new("a", true);
    self->sources[0].upstream = &self->a->base;
    assert_int_equal(endpoint_set_sources(self->endpoint, self->config,
                                          is_there ? self->sources : self->sources + 1,
                                          is_there ? 2 : 1),
                     BAY_OK);
    fake_free(old);
    forget(&self->legacy); /* of changed lists */
}

static void a_server_that_has_left_is_not_sent_to(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    replace_server(&self, false);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->sends, 0);
    assert_heard_part(&self.legacy, "'id':1,'result':{'content':[{'type':'text','text':'The server "
                                    "\\\"a\\\" gave no answer: it has left the gateway");
    close_stage(&self);
}

static void a_refusal_after_its_server_has_left(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    replace_server(&self, false);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','error':{'code':-1,'message':'no'}}");
    assert_heard_part(&self.legacy, "'patchbay/reason':'client_refused','patchbay/server':'a'");
    close_stage(&self);
}

static void a_server_that_was_replaced_gets_the_answers(void **state)
{
    (void)state;
    stage self;
    open_rounds(&self, "workers: 1", EVERYTHING);
    say(&self.legacy, CALL);
    fake_result(self.a, INPUT("'a':" FORM("m"), ""));
    replace_server(&self, true);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->sends, 1);
    fake_result(self.a, "{'resultType':'complete','content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_is_counted),
        cmocka_unit_test(a_server_that_has_left_is_not_sent_to),
        cmocka_unit_test(a_refusal_after_its_server_has_left),
        cmocka_unit_test(a_server_that_was_replaced_gets_the_answers),
        cmocka_unit_test(what_the_client_cannot_do_has_one_outcome),
        cmocka_unit_test(what_is_no_request_for_input_is_refused),
        cmocka_unit_test(where_nothing_may_be_asked_it_is_an_error),
        cmocka_unit_test(a_clients_capabilities_go_along),
        cmocka_unit_test(several_inputs_and_several_rounds),
        cmocka_unit_test(modes_and_ids_of_elicitations_fit_the_client),
        cmocka_unit_test(prompts_and_resources_go_round_too),
        cmocka_unit_test(a_state_alone_is_brought_back),
        cmocka_unit_test(a_client_that_refuses_ends_the_call),
        cmocka_unit_test(an_answer_that_is_none_ends_the_call),
        cmocka_unit_test(a_client_that_falls_silent_ends_the_call),
        cmocka_unit_test(a_cancel_or_a_departure_while_it_is_asked),
        cmocka_unit_test(only_so_many_rounds_are_gone),
        cmocka_unit_test(a_missing_capability_is_told_with_its_reason),
        cmocka_unit_test(urls_that_are_to_be_opened_become_input),
        cmocka_unit_test(who_cannot_open_urls_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
