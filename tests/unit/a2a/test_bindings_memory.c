/* Requests and answers of both JSON bindings with every allocation failing in turn: what was asked
 * comes out whole, or the lack of memory is told, and nothing leaks. */
#include "unit/a2a/dialect_fixture.h"

#include "a2a/inbound.h"
#include "a2a/outbound.h"
#include "support/failing_memory.h"

enum { BYTES = 1 << 20 };

static void is_told(bay_err err)
{
    if (err != BAY_OK && err != BAY_ERR_NOMEM) {
        fail_msg("%s", bay_err_text(err));
    }
}

static void requests(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    bay_str rpc_1_0 = fx_quotes(&self, "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{"
                                       "'id':'t\\u0041','tenant':'a\\n','history_length':1}}");
    bay_str rpc_0_3 =
        fx_quotes(&self, "{'jsonrpc':'2.0','id':1,'method':'message/send','params':{'message':{"
                         "'messageId':'m','role':'user','parts':[{'kind':'text','text':'a'}]}}}");
    bay_str body =
        fx_quotes(&self, "{'message':{'messageId':'m','role':1,'parts':[{'text':'a'}]}}");
    bay_str config = fx_quotes(&self, "{'pushNotificationConfig':{'url':'u'}}");
    bay_str task = fx_quotes(&self, "{'id':'t','status':{'state':'TASK_STATE_WORKING'}}");
    a2a_inbound_settings settings = {true};
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        a2a_inbound out;
        bay_str allow;
        a2a_fault fault;
        buf answer;
        arena_init(&memory, BYTES);
        buf_init(&answer, BYTES);
        is_told(a2a_jsonrpc_read(rpc_1_0, STR("1.0"), &settings, &memory, &out, &fault));
        is_told(a2a_jsonrpc_read(rpc_0_3, STR(""), &settings, &memory, &out, &fault));
        is_told(a2a_rest_read(STR("POST"), STR("/x/message:send"), STR(""), body, STR("1.0"),
                              &memory, &out, &allow, &fault));
        is_told(a2a_rest_read(STR("GET"), STR("/tasks/a%20b"), STR("historyLength=%31"), STR(""),
                              STR("1.0"), &memory, &out, &allow, &fault));
        is_told(a2a_rest_read(STR("POST"), STR("/v1/tasks/t/pushNotificationConfigs"), STR(""),
                              config, STR(""), &memory, &out, &allow, &fault));
        out = (a2a_inbound){.binding = A2A_JSONRPC,
                            .version = A2A_0_3,
                            .form = A2A_FORM_0_3,
                            .method = A2A_GET_TASK,
                            .rpc_id = STR("1")};
        is_told(a2a_write_result(&out, task, JSON_NONE, &answer));
        assert_true(answer.err == BAY_OK || answer.len == 0);
        buf_fini(&answer);
        arena_fini(&memory);
        failing_memory_check();
    }
    fx_fini(&self);
}

static void callers(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    json_val send = fx_json(&self, "{'message':{'messageId':'m','role':'ROLE_USER','parts':[{"
                                   "'text':'a'}]}}");
    json_val get = fx_json(&self, "{'id':'a\\n/b','historyLength':1}");
    json_val config = fx_json(&self, "{'taskId':'t','id':'p','url':'u'}");
    bay_str answer = fx_quotes(&self, "{'jsonrpc':'2.0','id':1,'result':{'kind':'task','id':'t',"
                                      "'status':{'state':'working'}}}");
    bay_str error = fx_quotes(&self, "{'error':{'code':404,'message':'a\\nb'}}");
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        a2a_outbound out;
        a2a_fault fault;
        buf body;
        json_val result;
        bool is_last;
        json_val told;
        arena_init(&memory, BYTES);
        buf_init(&body, BYTES);
        for (size_t i = 0; i < 4; i++) {
            a2a_interface to = {STR("http://h/x"), STR("t"), i % 2 ? A2A_HTTP_JSON : A2A_JSONRPC,
                                i / 2 ? A2A_1_0 : A2A_0_3};
            buf_clear(&body);
            is_told(a2a_request_write(&to, A2A_SEND_MESSAGE, send, STR("1"), false, &memory, &body,
                                      &out, &fault));
            buf_clear(&body);
            is_told(a2a_request_write(&to, A2A_GET_TASK, get, STR("1"), false, &memory, &body, &out,
                                      &fault));
            buf_clear(&body);
            is_told(a2a_request_write(&to, A2A_CREATE_PUSH_CONFIG, config, STR("1"), false, &memory,
                                      &body, &out, &fault));
        }
        a2a_interface from = {STR("http://h"), STR(""), A2A_JSONRPC, A2A_0_3};
        is_told(a2a_response_read(&from, A2A_GET_TASK, 200, answer, STR("1"), &memory, &result,
                                  &fault));
        is_told(
            a2a_stream_read(&from, STR(""), answer, STR("1"), &memory, &told, &is_last, &fault));
        from.binding = A2A_HTTP_JSON;
        bay_err err =
            a2a_response_read(&from, A2A_GET_TASK, 404, error, STR(""), &memory, &result, &fault);
        assert_true(err == BAY_ERR_REMOTE || err == BAY_ERR_NOMEM);
        buf_fini(&body);
        arena_fini(&memory);
        failing_memory_check();
    }
    fx_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
