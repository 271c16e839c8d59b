/* JSON-RPC in and answers out: versions and method families, envelopes, faults, media types. */
#include "unit/a2a/dialect_fixture.h"

#include "a2a/inbound.h"

static const a2a_inbound_settings lenient = {.is_lenient = true};
static const a2a_inbound_settings strict = {.is_lenient = false};

#define GET_TASK "{'jsonrpc':'2.0','id':7,'method':'GetTask','params':{'id':'t'}}"
#define TASKS_GET "{'jsonrpc':'2.0','id':7,'method':'tasks/get','params':{'id':'t'}}"
#define SEND(method)                                                                               \
    "{'jsonrpc':'2.0','id':'x','method':'" method "','params':{'message':{'messageId':'m','role':" \
    "'user','parts':[{'kind':'text','text':'hi'}]}}}"
#define TASKS_SEND                                                                                 \
    "{'jsonrpc':'2.0','id':'x','method':'tasks/send','params':{'id':'t','sessionId':'s',"          \
    "'message':{'role':'user','parts':[{'type':'text','text':'hi'}],'metadata':"                   \
    "{'patchbay/messageId':'m'}}}}"

static bay_err take(fx *self, const char *body, const char *version, a2a_inbound *out)
{
    fx_clear(self);
    bay_str said = version != NULL ? str_of(version) : (bay_str){NULL, 0};
    return a2a_jsonrpc_read(fx_quotes(self, body), said, &lenient, &self->memory, out,
                            &self->fault);
}

static void what_is_no_request_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *version;
        a2a_error error;
        const char *rpc_id;
    } cases[] = {
        {"", "1.0", A2A_E_PARSE_ERROR, "null"},
        {"{", "1.0", A2A_E_PARSE_ERROR, "null"},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask'} x", "1.0", A2A_E_PARSE_ERROR, "null"},
        {"[" GET_TASK "]", "1.0", A2A_E_INVALID_REQUEST, "null"},
        {"1", "1.0", A2A_E_INVALID_REQUEST, "null"},
        {"{'id':1,'method':'GetTask'}", "1.0", A2A_E_INVALID_REQUEST, "1"},
        {"{'jsonrpc':'1.0','id':1,'method':'GetTask'}", "1.0", A2A_E_INVALID_REQUEST, "1"},
        {"{'jsonrpc':'2.0','method':'GetTask'}", "1.0", A2A_E_INVALID_REQUEST, "null"},
        {"{'jsonrpc':'2.0','id':{},'method':'GetTask'}", "1.0", A2A_E_INVALID_REQUEST, "null"},
        {"{'jsonrpc':'2.0','id':1,'method':2}", "1.0", A2A_E_INVALID_REQUEST, "1"},
        {"{'jsonrpc':'2.0','id':1,'result':{}}", "1.0", A2A_E_INVALID_REQUEST, "null"},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask','params':[1]}", "1.0", A2A_E_INVALID_PARAMS,
         "1"},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask','params':'x'}", "1.0", A2A_E_INVALID_PARAMS,
         "1"},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask'}", "1.0", A2A_E_INVALID_PARAMS, "1"},
        {"{'jsonrpc':'2.0','id':1,'method':'NoSuch','params':{}}", "1.0", A2A_E_METHOD_NOT_FOUND,
         "1"},
        {"{'jsonrpc':'2.0','id':1,'method':'','params':{}}", "1.0", A2A_E_METHOD_NOT_FOUND, "1"},
        {GET_TASK, "2.0", A2A_E_VERSION_NOT_SUPPORTED, "7"},
        {GET_TASK, "banana", A2A_E_VERSION_NOT_SUPPORTED, "7"},
        {GET_TASK, "0.3", A2A_E_METHOD_NOT_FOUND, "7"},
        {TASKS_GET, "1.0", A2A_E_METHOD_NOT_FOUND, "7"},
        {SEND("message/send"), "0.1", A2A_E_METHOD_NOT_FOUND, "\"x\""},
        {SEND("tasks/send"), "0.3", A2A_E_METHOD_NOT_FOUND, "\"x\""},
        {SEND("tasks/send"), "1.0", A2A_E_METHOD_NOT_FOUND, "\"x\""},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':''}}", "1.0",
         A2A_E_INVALID_PARAMS, "1"},
        {"{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'t','historyLength':'x'}}",
         "1.0", A2A_E_INVALID_PARAMS, "1"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound out;
        bay_err err = take(&self, cases[i].body, cases[i].version, &out);
        if (err != BAY_ERR_PROTOCOL || self.fault.error != cases[i].error ||
            !str_eq(out.rpc_id, str_of(cases[i].rpc_id)) || self.fault.text[0] == '\0') {
            fail_msg("%s: %d, %d \"%s\", id %.*s", cases[i].body, (int)err, (int)self.fault.error,
                     self.fault.text, BAY_STR(out.rpc_id));
        }
        assert_int_equal(out.binding, A2A_JSONRPC);
        assert_true(out.version < A2A_VERSIONS);
    }
    a2a_inbound out;
    assert_int_equal(a2a_jsonrpc_read(fx_quotes(&self, GET_TASK), (bay_str){NULL, 0}, &strict,
                                      &self.memory, &out, &self.fault),
                     BAY_ERR_PROTOCOL);
    assert_int_equal(self.fault.error, A2A_E_METHOD_NOT_FOUND);
    fx_fini(&self);
}

static void version_and_method_decide_the_form(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *version;
        a2a_version counts;
        a2a_form form;
        a2a_method method;
    } cases[] = {
        {GET_TASK, "1.0", A2A_1_0, A2A_FORM_1_0, A2A_GET_TASK},
        {GET_TASK, " 1.0.1 ", A2A_1_0, A2A_FORM_1_0, A2A_GET_TASK},
        {GET_TASK, NULL, A2A_1_0, A2A_FORM_1_0, A2A_GET_TASK},
        {GET_TASK, "", A2A_1_0, A2A_FORM_1_0, A2A_GET_TASK},
        {TASKS_GET, NULL, A2A_0_3, A2A_FORM_0_3, A2A_GET_TASK},
        {TASKS_GET, "0.2", A2A_0_2, A2A_FORM_0_3, A2A_GET_TASK},
        {TASKS_GET, "0.1", A2A_0_1, A2A_FORM_0_1, A2A_GET_TASK},
        {SEND("message/send"), "0.3.0", A2A_0_3, A2A_FORM_0_3, A2A_SEND_MESSAGE},
        {SEND("message/stream"), NULL, A2A_0_3, A2A_FORM_0_3, A2A_SEND_STREAMING_MESSAGE},
        {TASKS_SEND, NULL, A2A_0_1, A2A_FORM_0_1, A2A_SEND_MESSAGE},
        {TASKS_SEND, "0.1", A2A_0_1, A2A_FORM_0_1, A2A_SEND_MESSAGE},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound out;
        fx_ok(&self, take(&self, cases[i].body, cases[i].version, &out));
        assert_int_equal(out.version, cases[i].counts);
        assert_int_equal(out.form, cases[i].form);
        assert_int_equal(out.method, cases[i].method);
        assert_int_equal(json_kind_of(out.params), JSON_OBJECT);
    }
    fx_fini(&self);
}

static void params_in_normal_form_are_not_copied(void **state)
{
    (void)state;
    fx self;
    a2a_inbound out;
    fx_init(&self);
    bay_str body = fx_quotes(&self, GET_TASK);
    fx_ok(&self, a2a_jsonrpc_read(body, STR("1.0"), &strict, &self.memory, &out, &self.fault));
    bay_str raw = json_raw(out.params);
    assert_true(raw.at > body.at && raw.at < body.at + body.len);

    fx_ok(&self, take(&self,
                      "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'history_length':'5',"
                      "'id':'t','tenant':'a\\u0062','more':1}}",
                      "1.0", &out));
    fx_same_text(&self, json_raw(out.params),
                 fx_quotes(&self, "{'id':'t','historyLength':5,'tenant':'ab'}"));
    assert_true(str_eq(out.tenant, STR("ab")));

    fx_ok(&self,
          take(&self, "{'jsonrpc':'2.0','id':1,'method':'GetExtendedAgentCard'}", "1.0", &out));
    assert_true(str_eq(json_raw(out.params), STR("{}")));
    fx_fini(&self);
}

static void a_task_of_a_client_is_marked(void **state)
{
    (void)state;
    fx self;
    a2a_inbound out;
    fx_init(&self);
    fx_ok(&self, take(&self, TASKS_SEND, NULL, &out));
    fx_same_text(&self, json_raw(out.params),
                 fx_quotes(&self, "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t',"
                                  "'contextId':'s','parts':[{'text':'hi'}]},'metadata':{"
                                  "'patchbay/clientTaskId':true}}"));
    /* A message as an answer is that task, done. */
    fx_ok(&self, a2a_write_result(&out,
                                  fx_quotes(&self, "{'message':{'messageId':'a','role':"
                                                   "'ROLE_AGENT','parts':[{'text':'ho'}]}}"),
                                  JSON_NONE, &self.out));
    fx_wrote(&self, "{'jsonrpc':'2.0','id':'x','result':{'id':'t','status':{'state':'completed',"
                    "'message':{'role':'agent','parts':[{'type':'text','text':'ho'}],'metadata':{"
                    "'patchbay/messageId':'a'}}},'metadata':{'patchbay/message':true}}}");
    fx_fini(&self);
}

static void answers_have_the_request_s_form(void **state)
{
    (void)state;
    fx self;
    a2a_inbound out;
    fx_init(&self);
    const char *task = "{'id':'t','status':{'state':'TASK_STATE_CANCELED'}}";
    fx_ok(&self, take(&self, GET_TASK, "1.0", &out));
    fx_ok(&self, a2a_write_result(&out, fx_quotes(&self, task), JSON_NONE, &self.out));
    fx_wrote(&self, "{'jsonrpc':'2.0','id':7,'result':{'id':'t','status':{'state':"
                    "'TASK_STATE_CANCELED'}}}");
    fx_ok(&self, take(&self, TASKS_GET, NULL, &out));
    fx_ok(&self, a2a_write_result(&out, fx_quotes(&self, task), JSON_NONE, &self.out));
    fx_wrote(&self, "{'jsonrpc':'2.0','id':7,'result':{'kind':'task','id':'t','contextId':'',"
                    "'status':{'state':'canceled'}}}");
    buf_clear(&self.out);
    a2a_write_event(&out, fx_quotes(&self, "{'kind':'x'}"), &self.out);
    fx_wrote(&self, "{'jsonrpc':'2.0','id':7,'result':{'kind':'x'}}");
    buf_clear(&self.out);
    out.binding = A2A_HTTP_JSON;
    a2a_write_event(&out, fx_quotes(&self, "{'kind':'x'}"), &self.out);
    fx_wrote(&self, "{'kind':'x'}");
    fx_fini(&self);
}

static void faults_have_the_request_s_form(void **state)
{
    (void)state;
    static const struct {
        a2a_version version;
        a2a_binding binding;
        a2a_error error;
        const char *body;
        int status;
    } cases[] = {
        {A2A_1_0, A2A_JSONRPC, A2A_E_TASK_NOT_FOUND,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32001,'message':'gone','data':[{'@type':"
         "'type.googleapis.com/google.rpc.ErrorInfo','reason':'TASK_NOT_FOUND','domain':"
         "'a2a-protocol.org','metadata':{}}]}}",
         200},
        {A2A_1_0, A2A_JSONRPC, A2A_E_INVALID_PARAMS,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32602,'message':'gone'}}", 200},
        {A2A_0_3, A2A_JSONRPC, A2A_E_TASK_NOT_FOUND,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32001,'message':'gone'}}", 200},
        {A2A_0_1, A2A_JSONRPC, A2A_E_FORBIDDEN,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32008,'message':'gone'}}", 403},
        {A2A_1_0, A2A_JSONRPC, A2A_E_UNAUTHENTICATED,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32600,'message':'gone'}}", 401},
        {A2A_1_0, A2A_HTTP_JSON, A2A_E_TASK_NOT_CANCELABLE,
         "{'error':{'code':400,'status':'FAILED_PRECONDITION','message':'gone','details':[{'@type':"
         "'type.googleapis.com/google.rpc.ErrorInfo','reason':'TASK_NOT_CANCELABLE','domain':"
         "'a2a-protocol.org','metadata':{}}]}}",
         400},
        {A2A_1_0, A2A_HTTP_JSON, A2A_E_BUSY,
         "{'error':{'code':503,'status':'RESOURCE_EXHAUSTED','message':'gone','details':[]}}", 503},
        {A2A_0_3, A2A_HTTP_JSON, A2A_E_TASK_NOT_FOUND, "{'code':-32001,'message':'gone'}", 404},
        {A2A_1_0, A2A_JSONRPC, A2A_NO_ERROR,
         "{'jsonrpc':'2.0','id':7,'error':{'code':-32603,'message':'gone'}}", 200},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound request = {.binding = cases[i].binding,
                               .version = cases[i].version,
                               .form = a2a_form_of(cases[i].version, cases[i].binding),
                               .rpc_id = STR("7")};
        int status = 0;
        fx_clear(&self);
        a2a_write_fault(&request, &(a2a_fault){cases[i].error, "gone"}, &self.out, &status);
        fx_wrote(&self, cases[i].body);
        assert_int_equal(status, cases[i].status);
    }
    a2a_inbound request = {.binding = A2A_JSONRPC, .version = A2A_0_3, .form = A2A_FORM_0_3};
    int status = 0;
    fx_clear(&self);
    a2a_write_fault(&request, &(a2a_fault){A2A_E_INTERNAL, ""}, &self.out, &status);
    fx_wrote(&self, "{'jsonrpc':'2.0','id':null,'error':{'code':-32603,'message':"
                    "'internal error'}}");
    fx_fini(&self);
}

static void media_types_follow_the_request(void **state)
{
    (void)state;
    a2a_inbound request = {.binding = A2A_HTTP_JSON, .version = A2A_1_0, .form = A2A_FORM_1_0};
    bay_str own = STR("application/a2a+json");
    bay_str plain = STR("application/json");
    assert_true(str_eq(a2a_media_type(&request, STR(""), STR("")), own));
    assert_true(str_eq(a2a_media_type(&request, STR("*/*"), STR("text/plain")), own));
    assert_true(str_eq(a2a_media_type(&request, STR(""), STR("Application/JSON; a=b")), plain));
    assert_true(str_eq(a2a_media_type(&request, plain, own), plain));
    assert_true(str_eq(
        a2a_media_type(&request, STR("application/json, application/a2a+json"), plain), own));
    assert_true(str_eq(a2a_media_type(&request, (bay_str){NULL, 0}, own), own));
    request.binding = A2A_JSONRPC;
    assert_true(str_eq(a2a_media_type(&request, own, own), plain));
    request =
        (a2a_inbound){.binding = A2A_HTTP_JSON, .version = A2A_0_3, .form = A2A_FORM_0_3_PROTO};
    assert_true(str_eq(a2a_media_type(&request, own, own), plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(version_and_method_decide_the_form),
        cmocka_unit_test(params_in_normal_form_are_not_copied),
        cmocka_unit_test(a_task_of_a_client_is_marked),
        cmocka_unit_test(answers_have_the_request_s_form),
        cmocka_unit_test(faults_have_the_request_s_form),
        cmocka_unit_test(media_types_follow_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
