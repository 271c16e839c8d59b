/* Tasks through an endpoint, for clients with sessions: at stateless servers, at servers without
 * tasks, and where the gateway runs a task for a client that knows of none. The clock is the
 * loop's. */
#include "task_testing.h"

/* ---- a session at a stateless server --------------------------------------------------------- */

static void turn_until(stage *self, int sends)
{
    for (int i = 0; i < 1000 && self->a->sends < sends; i++) {
        loop_turn(self->loop, -1);
    }
    assert_int_equal(self->a->sends, sends);
}

static void a_session_gets_the_task_it_asked_for(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':5},'n':1.0"));
    assert_params(self.a, "tools/call", "{'name':'a.may','n':1.0}");
    assert_text(self.a->held[0]->spec.capabilities,
                "{\"elicitation\":{\"form\":{}},\"sampling\":{},\"extensions\":{"
                "\"io.modelcontextprotocol/tasks\":{}}}");
    fake_result(self.a, "{'resultType':'task','taskId':'up/1','status':'working'," TIMES
                        ",'ttlMs':null,'pollIntervalMs':9,'x':1.0}");
    take_token(&self.legacy, token);
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'result':{'task':{'taskId':'%s','status':'working'," TIMES
        ",'x':1.0,'ttl':null,'pollInterval':9}}}",
        token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, "{'resultType':'complete','taskId':'up/1','status':'completed'," TIMES
                        ",'ttlMs':7,'result':{'content':[],'isError':true}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'failed'," TIMES
                    ",'ttl':7}}",
                    token);
    say(&self.legacy, LEGACY("3", "tasks/list", "'x':1"));
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':3,'result':{'tasks':[{'taskId':'%s','status':'failed'," TIMES
        ",'ttl':7}]}}",
        token);
    close_stage(&self);
}

static void tasks_result_looks_until_it_is_over(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    int sends = self.a->sends;
    fake_result(self.a, FLAT("working", ",'pollIntervalMs':0"));
    assert_int_equal(self.a->held_count, 0);
    turn_until(&self, sends + 1);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[],'n':1.0,'resultType':"
                                          "'complete'}"));
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'content':[],'n':1.0,'_meta':{"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    fake_result(self.a, FLAT("failed", ",'error':{'code':-5,'message':'m','data':1.0}"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':3,'error':{'code':-5,'message':'m','data':1.0}}");
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/result"), token);
    fake_result(self.a, FLAT("cancelled", ""));
    assert_heard_part(&self.legacy, "'message':'The task was cancelled'");
    ask_for(&self.legacy, LEGACY_TASK("5", "tasks/result"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'forgotten'}");
    assert_heard_part(&self.legacy, "'code':-32602,'message':'forgotten'");
    ask_for(&self.legacy, LEGACY_TASK("6", "tasks/result"), token);
    fake_result(self.a, FLAT("completed", ""));
    assert_heard_part(&self.legacy, "is completed and has no result");
    ask_for(&self.legacy, LEGACY_TASK("7", "tasks/result"), token);
    fake_result(self.a, FLAT("working", ",'pollIntervalMs':0"));
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':7}}"); /* the client waits no more; the task goes on */
    sends = self.a->sends;
    loop_turn(self.loop, 0);
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void a_session_is_asked_on_the_stream_of_tasks_result(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    fake_result(self.a,
                FLAT("input_required",
                     ",'inputRequests':{'k\\u0031':{'method':'elicitation/create','params':{"
                     "'message':'name?','requestedSchema':{}}},'k2':{'method':"
                     "'sampling/createMessage','params':{'messages':[],'maxTokens':1}}}"));
    assert_int_equal(self.legacy.count, 2);
    char *first = testing_quotes("'method':'elicitation/create','params':{'message':'name?',"
                                 "'requestedSchema':{},'_meta':{'io.modelcontextprotocol/"
                                 "related-task':{'taskId':'pb5.");
    assert_non_null(strstr(self.legacy.lines[0], first));
    mem_free(first);
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'role':'assistant','n':1.0}}");
    assert_int_equal(self.a->held_count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept','_meta':{"
                      "'io.modelcontextprotocol/related-task':{'taskId':'x'}}}}");
    assert_params(self.a, "tasks/update",
                  "{'taskId':'up/1','inputResponses':{'k2':{'role':'assistant','n':1.0},'k\\u0031':"
                  "{'action':'accept'}}}");
    fake_result(self.a, "{'resultType':'complete'}");
    int sends = self.a->sends;
    fake_result(self.a, FLAT("input_required", /* not seen to yet: nobody is asked twice */
                             ",'pollIntervalMs':0,'inputRequests':{'k\\u0031':{'method':"
                             "'elicitation/create','params':{}}}"));
    assert_int_equal(self.legacy.count, 0);
    turn_until(&self, sends + 1);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[]}"));
    assert_heard_part(&self.legacy, "'id':2,'result':{'content':[]");
    close_stage(&self);
}

static void a_client_that_refuses_ends_the_task(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    fake_result(self.a, FLAT("input_required", ",'inputRequests':{'k':{'method':"
                                               "'sampling/createMessage','params':{}}}"));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','error':{'code':-1,'message':'no'}}");
    assert_heard_part(&self.legacy, "'id':2,'error':{'code':-32603,'message':'The client refused");
    assert_params(self.a, "tasks/cancel", "{}");
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, "{'resultType':'complete'}");
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    fake_result(self.a, FLAT("input_required", ",'inputRequests':{'k':{'method':'roots/list'}}"));
    assert_heard_part(&self.legacy, "input that this client cannot be asked for");
    fake_result(self.a, "{'resultType':'complete'}");
    close_stage(&self);
}

static void a_cancelled_task_stays_cancelled(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/cancel"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, FLAT("working", ""));
    assert_params(self.a, "tasks/cancel", "{'taskId':'up/1'}");
    fake_result(self.a, "{'resultType':'complete'}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'cancelled'," TIMES
                    ",'ttl':60000}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/get"), token);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[]}")); /* it was faster */
    assert_heard_part(&self.legacy, "'status':'cancelled'");
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    fake_result(self.a, FLAT("working", ""));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Cannot cancel the task");
    close_stage(&self);
}

/* ---- what a server says while its task runs ---------------------------------------------------
 */

static void fake_end_with_token(stage *self, const char *json, uint64_t token)
{
    char *text = testing_quotes(json);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT, .progress_token = token};
    fake_end(self->a, fake_take(self->a), &outcome, text, false);
    mem_free(text);
}

static void progress_and_status_reach_who_waits(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    say(&self.legacy,
        LEGACY("1", "tools/call", "'name':'a.may','task':{},'_meta':{'progressToken':'p\\u0041'}"));
    assert_true(self.a->held[0]->spec.wants_progress);
    fake_end_with_token(&self, "{'task':" CORE("working", "") "}", 77);
    take_token(&self.legacy, token);
    forget(&self.legacy);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    assert_int_equal(self.a->held[0]->spec.progress_of, 77);
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':77,'progress':0.50,'x':1.0}");
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':"
                 "'p\\u0041','progress':0.50,'x':1.0}}");
    fake_notify(self.a, MCP_N_TASK_STATUS, CORE("working", ",'x':1.0"));
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','method':'notifications/tasks/status','params':{'taskId':"
                    "'%s','status':'working'," TIMES ",'ttl':60000,'x':1.0}}",
                    token);
    fake_notify(self.a, MCP_N_TASK_STATUS, "{'taskId':'another','status':'working'}");
    assert_int_equal(self.legacy.count, 0);
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    close_stage(&self);
    /* a client that knows of no task hears the progress of its call */
    open_tasks(&self, WHO_OLD, be_core);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.must','_meta':{'progressToken':5}"));
    fake_end_with_token(&self, "{'task':" CORE("working", "") "}", 78);
    assert_int_equal(self.a->held[0]->spec.progress_of, 78);
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':78,'progress':1}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                               "'progressToken':5,'progress':1}}");
    fake_notify(self.a, MCP_N_TASK_STATUS, CORE("working", ""));
    assert_int_equal(self.legacy.count, 0);
    fake_result(self.a, "{'content':[]}");
    close_stage(&self);
}

/* ---- servers without tasks, clients without tasks -------------------------------------------- */

static void a_result_that_came_at_once_is_kept(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_plain);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':60000}"));
    assert_params(self.a, "tools/call", "{'name':'a.may'}");
    fake_result(self.a, "{'content':[],'n':1.0}");
    take_token(&self.legacy, token);
    assert_heard_part(&self.legacy, "'status':'working'");
    int sends = self.a->sends;
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_heard_part(&self.legacy, "'status':'completed'");
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':3,'result':{'content':[],'n':1.0,'_meta':{"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Cannot cancel");
    say(&self.legacy, LEGACY("5", "tasks/list", "'x':1"));
    assert_heard_part(&self.legacy, "'status':'completed'");
    assert_int_equal(self.a->sends, sends);
    task_registry_expire(self.endpoint->task_registry, UINT64_MAX);
    ask_for(&self.legacy, LEGACY_TASK("6", "tasks/result"), token);
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Task not found");
    say(&self.legacy, LEGACY("7", "tasks/list", "'x':1"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':7,'result':{'tasks':[]}}");
    /* a stateless server that does not make a task of it; failures and errors */
    be_modern(&self);
    say(&self.legacy, LEGACY("8", "tools/call", "'name':'a.may','task':{}"));
    fake_result(self.a, "{'resultType':'complete','content':[],'isError':true}");
    take_token(&self.legacy, token);
    forget(&self.legacy);
    ask_for(&self.legacy, LEGACY_TASK("9", "tasks/get"), token);
    assert_heard_part(&self.legacy, "'status':'failed'");
    say(&self.legacy, LEGACY("10", "tools/call", "'name':'a.may','task':{}"));
    fake_error(self.a, -32602, "{'code':-32602,'message':'bad'}");
    assert_heard_part(&self.legacy, "'code':-32602,'message':'bad'");
    say(&self.legacy, LEGACY("11", "tools/call", "'name':'a.may','task':{}"));
    fake_fail(self.a, BAY_ERR_EXITED, true, "it died");
    assert_heard_part(
        &self.legacy,
        "'error':{'code':-32603,'message':'The server \\'a\\' gave no answer: it died'"
        ",'data':{'patchbay/server':'a','patchbay/mayHaveRun':true}}");
    close_stage(&self);
}

static void the_gateway_runs_what_must_be_a_task(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_OLD, be_core);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.must','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call", "{'name':'a.must','arguments':{'n':1.0},'task':{}}");
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    fake_ask(self.a, QUESTION("'s1'"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create','params':{"
                 "'message':'name?','requestedSchema':{}}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'decline'}}");
    assert_text(str_of(self.a->answer),
                "\"s1\" "
                "{\"action\":\"decline\",\"_meta\":{\"io.modelcontextprotocol/"
                "related-task\":{\"taskId\":\"up/1\"}}}");
    fake_result(self.a, "{'content':[],'_meta':{'io.modelcontextprotocol/related-task':{'taskId':"
                        "'up/1'}}}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    /* so for a stateless client without the extension, whose questions come in mrtr_loop */
    say(&self.modern, MODERN("2", "tools/call", "'name':'a.must'"));
    assert_params(self.a, "tools/call", "{'name':'a.must'," META "},'task':{}}");
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    fake_ask(self.a, QUESTION("'s2'"));
    loop_turn(self.loop, 0);
    assert_heard_part(&self.modern, "'resultType':'input_required','inputRequests':{'q1':{'method':"
                                    "'elicitation/create','params':{'message':'name?',"
                                    "'requestedSchema':{}}}}");
    fake_result(self.a, "{'content':[]}"); /* it ends while nobody is there */
    /* a cancel reaches the task */
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    int cancels = self.a->cancels;
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':3}}");
    assert_int_equal(self.a->cancels, cancels + 1);
    assert_params(self.a, "tasks/cancel", "{}");
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, CORE("cancelled", ""));
    /* one that answers at once has answered */
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':4,'result':{'content':[]}}");
    close_stage(&self);
}

static void a_session_without_tasks_gets_what_needs_one(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_OLD, be_modern);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0}"));
    assert_null(
        strstr(json_raw(json_get(self.a->held[0]->spec.params, STR("arguments"))).at, "\"task\""));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'extensions':{"
               "'io.modelcontextprotocol/tasks':{}}}}}");
    assert_params(self.a, "tools/call", "{'name':'a.echo','arguments':{'n':1.0}}");
    assert_text(self.a->held[0]->spec.capabilities,
                "{\"elicitation\":{\"form\":{}},\"extensions\":{\"io.modelcontextprotocol/tasks\":"
                "{}}}");
    fake_result(self.a,
                "{'resultType':'task','taskId':'up/1','status':'working'," TIMES ",'ttlMs':1}");
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, FLAT("completed", ",'result':{'content':[],'n':1.0}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[],'n':1.0}}");
    /* one that makes a task unasked */
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'a.echo'"));
    fake_result(self.a,
                "{'resultType':'task','taskId':'up/1','status':'working'," TIMES ",'ttlMs':1}");
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, FLAT("completed", ",'result':{'content':[]}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':4,'result':{'content':[]}}");
    /* another refusal is the client's */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'sampling':{}}}}");
    assert_heard_part(&self.legacy, "'patchbay/reason':'capability_missing'");
    /* a failure on the way leaves no task behind */
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.echo'"));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'extensions':{"
               "'io.modelcontextprotocol/tasks':{}}}}}");
    fake_result(self.a,
                "{'resultType':'task','taskId':'up/1','status':'working'," TIMES ",'ttlMs':1}");
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "timed out");
    assert_heard_part(&self.legacy, "'isError':true");
    assert_text(self.a->held[0]->spec.method, "tasks/cancel");
    fake_result(self.a, "{'resultType':'complete'}");
    close_stage(&self);
}

static void hostile_tasks_are_refused(void **state)
{
    (void)state;
    stage self;
    static const char *const bad[] = {
        "{'resultType':'task','taskId':'up/1','status':'dreaming'}",
        "{'resultType':'task','taskId':'up/1'}",
        "{'resultType':'task','taskId':'up/1','status':7}",
    };
    open_tasks(&self, WHO_2025, be_modern);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{}"));
        fake_result(self.a, bad[i]);
        assert_heard_part(&self.legacy, "'error':{'code':-32603");
        say(&self.modern, WITH("1", "tools/call", "'name':'a.may'"));
        fake_result(self.a, bad[i]);
        assert_heard_part(&self.modern, "'error':{'code':-32603");
    }
    char *longest = malloc(8000);
    assert_non_null(longest);
    memset(longest, 'x', 8000);
    char *text = malloc(9000);
    assert_non_null(text);
    (void)snprintf(text, 9000, "{'resultType':'task','status':'working','taskId':'%.*s'}", 5000,
                   longest);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.may'"));
    fake_result(self.a, text);
    assert_heard_part(&self.modern, "whose id is too long");
    free(longest);
    free(text);
    close_stage(&self);
}

static void a_storm_of_tasks_is_bounded(void **state)
{
    (void)state;
    stage self;
    char text[200];
    open_tasks(&self, WHO_2025, be_plain);
    for (int i = 0; i < TASK_ENTRIES_EACH + 40; i++) {
        (void)snprintf(text, sizeof(text),
                       LEGACY("%d", "tools/call", "'name':'a.may','task':{'ttl':60000}"), i + 1);
        say(&self.legacy, text);
        fake_result(self.a, "{'content':[]}");
        forget(&self.legacy);
    }
    assert_int_equal(self.endpoint->task_registry->entries.len, TASK_ENTRIES_EACH);
    int pages = 0;
    int tasks = 0;
    char cursor[64] = "";
    do {
        (void)snprintf(text, sizeof(text), LEGACY("9000", "tasks/list", "'x':1%s%s%s"),
                       cursor[0] != '\0' ? ",'cursor':'" : "", cursor,
                       cursor[0] != '\0' ? "'" : "");
        say(&self.legacy, text);
        assert_int_equal(self.legacy.count, 1);
        for (const char *at = self.legacy.lines[0]; (at = strstr(at, "taskId")) != NULL; at++) {
            tasks++;
        }
        const char *next = strstr(self.legacy.lines[0], "\"nextCursor\":\"");
        cursor[0] = '\0';
        if (next != NULL) {
            (void)sscanf(next, "\"nextCursor\":\"%63[^\"]", cursor);
        }
        forget(&self.legacy);
        pages++;
    } while (cursor[0] != '\0' && pages < 100);
    assert_int_equal(tasks, TASK_ENTRIES_EACH);
    assert_int_equal(pages, 3);
    say(&self.legacy, LEGACY("1", "tasks/list", "'cursor':'x1'"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("1", "tasks/list", "'cursor':7"));
    assert_heard_part(&self.legacy, "-32602");
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_gets_the_task_it_asked_for),
        cmocka_unit_test(tasks_result_looks_until_it_is_over),
        cmocka_unit_test(a_session_is_asked_on_the_stream_of_tasks_result),
        cmocka_unit_test(a_client_that_refuses_ends_the_task),
        cmocka_unit_test(a_cancelled_task_stays_cancelled),
        cmocka_unit_test(progress_and_status_reach_who_waits),
        cmocka_unit_test(a_result_that_came_at_once_is_kept),
        cmocka_unit_test(the_gateway_runs_what_must_be_a_task),
        cmocka_unit_test(a_session_without_tasks_gets_what_needs_one),
        cmocka_unit_test(hostile_tasks_are_refused),
        cmocka_unit_test(a_storm_of_tasks_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
