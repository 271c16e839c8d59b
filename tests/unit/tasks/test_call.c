/* Tasks through an endpoint: what is refused, what passes, and stateless clients at servers of
 * sessions. Everything in memory. */
#include "support/people.h"
#include "task_testing.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static void forged_names_reach_no_server(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    static const char *const bad[] = {"up/1", "", "pb5.", "pb5.AAAA", "pb0.zzz"};
    open_tasks(&self, WHO_2025, be_modern);
    begin_modern(&self, token);
    int sends = self.a->sends;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ask_for(&self.modern, GET("7"), bad[i]);
        assert_heard_part(&self.modern, "'code':-32602,'message':'Task not found'");
        ask_for(&self.modern, WITH("7", "tasks/cancel", "'taskId':'%s'"), bad[i]);
        assert_heard_part(&self.modern, "-32602");
        ask_for(&self.modern, WITH("7", "tasks/update", "'taskId':'%s','inputResponses':{}"),
                bad[i]);
        assert_heard_part(&self.modern, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("7", "tasks/get"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("8", "tasks/cancel"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("9", "tasks/result"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
    }
    /* each byte changed, each end cut */
    size_t len = strlen(token);
    for (size_t i = 0; i < len; i++) {
        char changed[TOKEN];
        memcpy(changed, token, len + 1);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        if (i < 4) {
            continue; /* "pb5.": a hint where it is at home, under no seal */
        }
        ask_for(&self.modern, GET("7"), changed);
        assert_heard_part(&self.modern, "-32602");
        memcpy(changed, token, i);
        changed[i] = '\0';
        ask_for(&self.modern, GET("7"), changed);
        assert_heard_part(&self.modern, "-32602");
    }
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void somebody_elses_task_is_unknown(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    mcp_connection_identify(self.modern.connection, person("alice"));
    begin_modern(&self, token);
    int sends = self.a->sends;
    mcp_connection_identify(self.modern.connection, person("bob"));
    ask_for(&self.modern, GET("2"), token);
    assert_heard_part(&self.modern, "-32602");
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/cancel"), token);
    assert_heard_part(&self.legacy, "-32602");
    assert_int_equal(self.a->sends, sends);
    mcp_connection_identify(self.modern.connection, person("alice"));
    ask_for(&self.modern, GET("3"), token);
    assert_int_equal(self.a->sends, sends + 1);
    fake_result(self.a, FLAT("working", ""));
    assert_heard_part(&self.modern, "'status':'working'");
    close_stage(&self);
}

/* An endpoint that does not show a tool gives nothing away of its tasks either. */
static void a_task_of_another_endpoint_is_unknown(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    char other[] = "p";
    open_tasks(&self, WHO_2025, be_modern);
    begin_modern(&self, token);
    int sends = self.a->sends;
    self.endpoint->profile = other;
    ask_for(&self.modern, GET("2"), token);
    assert_heard_part(&self.modern, "'code':-32602,'message':'Task not found'");
    self.endpoint->profile = NULL;
    assert_int_equal(self.a->sends, sends);
    ask_for(&self.modern, GET("3"), token);
    fake_result(self.a, FLAT("working", ""));
    assert_heard_part(&self.modern, "'status':'working'");
    close_stage(&self);
}

/* With the same keys, a gateway that was started anew knows the names that were given before. */
static void a_name_outlives_the_gateway(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    seal_ring *ring = self.ring;
    self.ring = NULL;
    close_stage(&self);
    self = (stage){.ring = ring};
    assert_int_equal(loop_new(&self.loop), BAY_OK);
    open_for(&self, "workers: 1", "", WHO_2025);
    endpoint_lists_ready(self.endpoint);
    be_core(&self);
    ask_for(&self.modern, GET("1"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, CORE("working", ""));
    assert_heard_part(&self.modern, "'status':'working'");
    /* one that has not been heard of yet is of the era it was */
    self.a->base.revision = NULL;
    ask_for(&self.modern, GET("2"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    be_core(&self);
    fake_result(self.a, CORE("cancelled", ""));
    assert_heard_part(&self.modern, "'ttlMs':60000");
    /* a server that has left */
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &self.sources[1], 1), BAY_OK);
    forget(&self.legacy);
    ask_for(&self.modern, GET("3"), token);
    assert_heard_part(&self.modern, "-32602");
    close_stage(&self);
}

static void without_the_extension_there_are_no_tasks(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/update"};
    open_tasks(&self, WHO_OLD, be_modern);
    begin_modern(&self, token);
    int sends = self.a->sends;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        char text[2000];
        (void)snprintf(text, sizeof(text), MODERN("7", "%s", "'taskId':'%s'"), methods[i], token);
        say(&self.modern, text);
        assert_heard_part(&self.modern,
                          "'code':-32021,'message':'Missing required client capability','data':{"
                          "'requiredCapabilities':{'extensions':{'io.modelcontextprotocol/tasks':"
                          "{}}}}");
        (void)snprintf(text, sizeof(text), LEGACY("7", "%s", "'taskId':'%s'"), methods[i], token);
        say(&self.legacy, text);
        assert_heard_part(&self.legacy, "-32601"); /* 2025-06-18 has none */
    }
    say(&self.modern, WITH("8", "tasks/result", "'taskId':'x'"));
    assert_heard_part(&self.modern, "-32601");
    say(&self.modern, WITH("8", "tasks/list", "'x':1"));
    assert_heard_part(&self.modern, "-32601");
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void endpoints_declare_what_each_revision_knows(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, MODERN("1", "server/discover", "'x':1"));
    assert_int_equal(self.modern.count, 1);
    assert_non_null(strstr(self.modern.lines[0], "\"io.modelcontextprotocol/tasks\":{}"));
    assert_null(strstr(self.modern.lines[0], "\"tasks\":{\"list\""));
    forget(&self.modern);
    peer other;
    peer_open(&other, self.endpoint);
    say(&other, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" WHO_2025
                ",'clientInfo':{'name':'c','version':'1'}}}");
    assert_non_null(
        strstr(other.lines[0],
               "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"));
    assert_null(strstr(other.lines[0], "io.modelcontextprotocol/tasks"));
    forget(&other);
    mcp_connection_close(other.connection);
    peer_open(&other, self.endpoint);
    say(&other, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" WHO_OLD
                ",'clientInfo':{'name':'c','version':'1'}}}");
    assert_null(strstr(other.lines[0], "\"tasks\""));
    forget(&other);
    mcp_connection_close(other.connection);
    close_stage(&self);
}

/* Clients of 2025-11-25 look for it in the tool; servers of the extension say nothing there. */
static void tools_say_what_the_gateway_can_do(void **state)
{
    (void)state;
    static const char *tools = "[{\"name\":\"echo\",\"x\":1.0},"
                               "{\"name\":\"not\",\"execution\":{}}]";
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    listing_unref(self.sources[0].listings[LISTING_TOOLS]);
    self.sources[0].listings[LISTING_TOOLS] = listing_of(self.a, LISTING_TOOLS, tools);
    endpoint_refresh(self.endpoint, LISTING_TOOLS, self.sources, 2);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'result':{'tools':[{'name':'a.echo','x':1.0,'execution':{"
                 "'taskSupport':'optional'}},{'name':'a.not','execution':{}},{'name':'b.echo'}]}}");
    close_stage(&self);
}

static void a_tool_that_forbids_tasks_is_refused_as_one(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_plain);
    int sends = self.a->sends;
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','task':{}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'This "
                               "tool cannot be called as a task'}}");
    assert_int_equal(self.a->sends, sends);
    be_core(&self); /* it says so itself */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo','task':{}"));
    fake_error(self.a, -32601, "{'code':-32601,'message':'its own words'}");
    assert_heard_part(&self.legacy, "its own words");
    close_stage(&self);
}

/* ---- both of one era ------------------------------------------------------------------------- */

static void the_extension_passes_with_other_names(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call",
                  "{'name':'a.echo','arguments':{'n':1.0}," META_OF(EXT) "}}");
    fake_result(self.a, "{'resultType':'task','taskId':'up/1','status':'working'," TIMES
                        ",'ttlMs':1.0e3,'pollIntervalMs':7,'x':[1.50],'_meta':{'k':1.0}}");
    take_token(&self.modern, token);
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "'result':{'resultType':'task','taskId':'%s','status':'working'," TIMES
                   ",'ttlMs':1.0e3,'pollIntervalMs':7,'x':[1.50],'_meta':{",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("2"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    assert_text(self.a->held[0]->spec.method, "tasks/get");
    fake_result(self.a, "{'resultType':'complete','taskId':'up/1','status':'completed'," TIMES
                        ",'ttlMs':null,'result':{'content':[],'taskId':'up/1','n':1.0}}");
    (void)snprintf(text, sizeof(text),
                   "'taskId':'%s','status':'completed'," TIMES
                   ",'ttlMs':null,'result':{'content':[],'taskId':'up/1','n':1.0}",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern,
            WITH("3", "tasks/update", "'taskId':'%s','inputResponses':{'a':{'action':'x'}}"),
            token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, "{'resultType':'complete'}");
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("4", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'forgotten'}");
    assert_heard_part(&self.modern, "'code':-32602,'message':'forgotten'");
    close_stage(&self);
}

static void a_plain_result_passes_as_it_is(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.echo'"));
    fake_result(self.a, "{'resultType':'complete','content':[],'n':0.10}");
    assert_heard_part(&self.modern, "'resultType':'complete','content':[],'n':0.10");
    say(&self.modern, WITH("2", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_ERR_EXITED, true, "it died");
    assert_heard_part(&self.modern, "'isError':true");
    close_stage(&self);
}

static void the_core_passes_with_other_names(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':5}"));
    assert_params(self.a, "tools/call", "{'name':'a.may','task':{'ttl':5}}");
    fake_result(self.a, "{'task':" CORE("working",
                                        ",'x':1.0") ",'_meta':{'io.modelcontextprotocol/"
                                                    "model-immediate-response':'soon','io."
                                                    "modelcontextprotocol/related-task':{'taskId':"
                                                    "'up/1'}}}");
    take_token(&self.legacy, token);
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'result':{'task':{'taskId':'%s','status':'working'," TIMES
        ",'ttl':60000,'x':1.0},'_meta':{'io.modelcontextprotocol/"
        "model-immediate-response':'soon','io.modelcontextprotocol/related-task':{"
        "'taskId':'%s'}}}}",
        token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, CORE("working", ",'pollInterval':1.50"));
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'working'," TIMES
                    ",'ttl':60000,'pollInterval':1.50}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':'s','method':'elicitation/create','params':{'message':"
                     "'name?','requestedSchema':{},'_meta':{'io.modelcontextprotocol/related-task':"
                     "{'taskId':'up/1'}}}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create','params':{"
                    "'message':'name?','requestedSchema':{},'_meta':{'io.modelcontextprotocol/"
                    "related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy,
            "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept','_meta':{"
            "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
            token);
    assert_text(str_of(self.a->answer),
                "\"s\" "
                "{\"action\":\"accept\",\"_meta\":{\"io.modelcontextprotocol/"
                "related-task\":{\"taskId\":\"up/1\"}}}");
    fake_result(self.a, "{'content':[],'_meta':{'io.modelcontextprotocol/related-task':{'taskId':"
                        "'up/1'},'k':1.0}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':3,'result':{'content':[],'_meta':{'k':1.0,"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    fake_result(self.a, CORE("cancelled", ""));
    assert_heard_part(&self.legacy, "'status':'cancelled'");
    close_stage(&self);
}

/* ---- a stateless client at a server of sessions ---------------------------------------------- */

static void a_tool_that_may_be_a_task_becomes_one(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.may','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call",
                  "{'name':'a.may','arguments':{'n':1.0}," META_OF(EXT) "},'task':{}}");
    assert_text(self.a->held[0]->spec.rename, "may");
    fake_result(self.a, "{'task':" CORE("working", ",'pollInterval':5,'x':1.0") "}");
    take_token(&self.modern, token);
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "'result':{'resultType':'task','taskId':'%s','status':'working'," TIMES
                   ",'x':1.0,'ttlMs':60000,'pollIntervalMs':5,'_meta':{",
                   token);
    assert_heard_part(&self.modern, text);
    /* one that forbids them does not, nor one that answers at once */
    say(&self.modern, WITH("2", "tools/call", "'name':'a.echo'"));
    assert_params(self.a, "tools/call", "{'name':'a.echo'," META_OF(EXT) "}}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.modern);
    say(&self.modern, WITH("3", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'content':[{'type':'text','text':'at once'}]}");
    assert_heard_part(&self.modern, "at once");
    close_stage(&self);
}

static void a_result_is_fetched_and_inlined(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    char text[2000];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, CORE("working", ",'statusMessage':'half'"));
    (void)snprintf(
        text, sizeof(text),
        "'taskId':'%s','status':'working'," TIMES ",'statusMessage':'half','ttlMs':60000", token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("3"), token);
    fake_result(self.a, CORE("failed", "")); /* of a tool that says it is an error */
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    fake_result(self.a, "{'content':[],'isError':true,'n':1.0,'_meta':{'io.modelcontextprotocol/"
                        "related-task':{'taskId':'up/1'}}}");
    (void)snprintf(text, sizeof(text),
                   "'taskId':'%s','status':'completed'," TIMES
                   ",'ttlMs':60000,'result':{'content':[],'isError':true,'n':1.0},'_meta'",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("4"), token);
    fake_result(self.a, CORE("failed", ""));
    fake_error(self.a, 7, "{'code':7,'message':'m','data':[1.0]}");
    assert_heard_part(&self.modern, "'status':'failed'," TIMES
                                    ",'ttlMs':60000,'error':{'code':7,'message':'m','data':[1.0]}");
    ask_for(&self.modern, GET("5"), token);
    fake_result(self.a, CORE("cancelled", ""));
    assert_heard_part(&self.modern, "'status':'cancelled'");
    ask_for(&self.modern, GET("6"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'expired'}");
    assert_heard_part(&self.modern, "'code':-32602,'message':'expired'");
    ask_for(&self.modern, GET("7"), token);
    fake_result(self.a, CORE("dreaming", ""));
    assert_heard_part(&self.modern, "in a state that no revision knows");
    ask_for(&self.modern, GET("8"), token);
    fake_result(self.a, CORE("completed", ""));
    fake_fail(self.a, BAY_ERR_EXITED, true, "it died");
    assert_heard_part(&self.modern, "'code':-32603");
    close_stage(&self);
}

static void a_cancel_is_acknowledged_whenever_it_comes(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, WITH("2", "tasks/cancel", "'taskId':'%s'"), token);
    assert_params(self.a, "tasks/cancel", "{'taskId':'up/1'}");
    fake_result(self.a, CORE("cancelled", ""));
    assert_int_equal(self.modern.count, 1);
    assert_null(strstr(self.modern.lines[0], "taskId"));
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("3", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'over'}");
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}"); /* over, or unknown? */
    fake_result(self.a, CORE("completed", ""));
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("4", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'unknown'}");
    fake_error(self.a, -32602, "{'code':-32602,'message':'unknown, too'}");
    assert_heard_part(&self.modern, "unknown, too");
    close_stage(&self);
}

static void take_key(peer *self, char out[64])
{
    assert_int_equal(self->count, 1);
    const char *at = strstr(self->lines[0], "\"inputRequests\":{\"");
    assert_non_null(at);
    at += strlen("\"inputRequests\":{\"");
    size_t len = strcspn(at, "\"");
    assert_true(len > 0 && len < 64);
    memcpy(out, at, len);
    out[len] = '\0';
}

static void update(stage *self, const char *token, const char *responses)
{
    char text[3000];
    (void)snprintf(text, sizeof(text),
                   WITH("9", "tasks/update", "'taskId':'%s','inputResponses':%s"), token,
                   responses);
    say(&self->modern, text);
}

/* Until the server has asked, on the stream of a tasks/result that the gateway keeps open. */
static void a_question_waits_for_tasks_update(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    char key[64];
    char text[200];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    assert_int_equal(self.modern.count, 0);
    fake_ask(self.a, QUESTION("'s1'"));
    take_key(&self.modern, key);
    assert_non_null(strstr(self.modern.lines[0],
                           ":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"name?\","
                           "\"requestedSchema\":{}}}}"));
    assert_heard_part(&self.modern, "'status':'input_required'");
    /* what fits nothing changes nothing */
    update(&self, token, "{'other':{'action':'accept'}}");
    assert_heard_part(&self.modern, "'id':9,'result':{'resultType':'complete'");
    update(&self, token, "{'other':7}");
    assert_heard_part(&self.modern, "-32602");
    update(&self, token, "null");
    assert_heard_part(&self.modern, "-32602");
    assert_int_equal(self.a->answers, 0);
    (void)snprintf(text, sizeof(text), "{'%s':{'action':'accept','content':{'n':1.0}}}", key);
    update(&self, token, text);
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_text(str_of(self.a->answer),
                "\"s1\" "
                "{\"action\":\"accept\",\"content\":{\"n\":1.0},\"_meta\":{\"io."
                "modelcontextprotocol/related-task\":{\"taskId\":\"up/1\"}}}");
    update(&self, token, text); /* a second time */
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_int_equal(self.a->answers, 1);
    /* the next question, which the server takes back, and the end */
    fake_ask(self.a, QUESTION("'s2'"));
    fake_withdraw(self.a, "'s2'");
    fake_result(self.a, "{'content':[]}");
    update(&self, token, text); /* after the end */
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_int_equal(self.a->answers, 1);
    assert_int_equal(self.a->held_count, 0);
    close_stage(&self);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    fake_ask(self.a, "{'jsonrpc':'2.0','id':1,'method':'roots/list'}");
    assert_int_equal(strncmp(self.a->answer, "1 -32601", 8), 0);
    for (int i = 0; i < TASK_INPUT_REQUESTS + 1; i++) {
        fake_ask(self.a, QUESTION("5"));
    }
    assert_int_equal(strncmp(self.a->answer, "5 -32603 Too many", 17), 0);
    assert_int_equal(self.a->answers, 2);
    forget(&self.modern);
    /* tasks/result fails: the client looks again, and finds the task as it is */
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "timed out");
    ask_for(&self.modern, GET("3"), token);
    fake_result(self.a, CORE("input_required", ""));
    assert_int_equal(self.a->held_count, 1);
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "timed out");
    assert_heard_part(&self.modern, "'status':'working'");
    close_stage(&self);
}

static void a_client_that_leaves_waits_for_no_question(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    say(&self.modern, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    fake_ask(self.a, QUESTION("'s1'")); /* for whoever looks next */
    assert_int_equal(self.modern.count, 0);
    ask_for(&self.modern, GET("3"), token);
    upstream_call *result_request = self.a->held[0];
    assert_text(result_request->spec.method, "tasks/result");
    self.a->held[0] = self.a->held[1];
    self.a->held[1] = result_request;
    fake_result(self.a, CORE("input_required", ""));
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete','taskId':");
    assert_int_equal(self.a->held_count, 1);
    close_stage(&self);
}

static void a_holder_that_nobody_looks_at_goes(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    task_result_requests_expire(self.endpoint->task_registry,
                                task_endpoint_now(self.endpoint) + 5000);
    assert_heard_part(&self.modern, "'status':'working'"); /* nobody asked: look again */
    assert_int_equal(self.a->held_count, 1);
    task_result_requests_expire(self.endpoint->task_registry,
                                task_endpoint_now(self.endpoint) + 601 * 1000);
    assert_int_equal(self.a->held_count, 0);
    assert_int_equal(self.a->cancels, 1);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_names_reach_no_server),
        cmocka_unit_test(somebody_elses_task_is_unknown),
        cmocka_unit_test(a_task_of_another_endpoint_is_unknown),
        cmocka_unit_test(a_name_outlives_the_gateway),
        cmocka_unit_test(without_the_extension_there_are_no_tasks),
        cmocka_unit_test(endpoints_declare_what_each_revision_knows),
        cmocka_unit_test(tools_say_what_the_gateway_can_do),
        cmocka_unit_test(a_tool_that_forbids_tasks_is_refused_as_one),
        cmocka_unit_test(the_extension_passes_with_other_names),
        cmocka_unit_test(a_plain_result_passes_as_it_is),
        cmocka_unit_test(the_core_passes_with_other_names),
        cmocka_unit_test(a_tool_that_may_be_a_task_becomes_one),
        cmocka_unit_test(a_result_is_fetched_and_inlined),
        cmocka_unit_test(a_cancel_is_acknowledged_whenever_it_comes),
        cmocka_unit_test(a_question_waits_for_tasks_update),
        cmocka_unit_test(what_cannot_be_asked_is_refused),
        cmocka_unit_test(a_client_that_leaves_waits_for_no_question),
        cmocka_unit_test(a_holder_that_nobody_looks_at_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
