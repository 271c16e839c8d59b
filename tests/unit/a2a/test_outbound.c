/* Requests to agents and their answers: interfaces of cards, each method in each version and
 * binding, errors in all the forms that agents send them in, events. */
#include "unit/a2a/dialect_fixture.h"

#include "a2a/inbound.h"
#include "a2a/outbound.h"

/* ---- interfaces --------------------------------------------------------------------------------
 */

static buf written; /* the body of the last request */

static bay_err request_write(const a2a_interface *to, a2a_method method, json_val params,
                             bay_str rpc_id, bool is_second_try, arena *memory, a2a_outbound *out,
                             a2a_fault *fault)
{
    buf_fini(&written);
    buf_init(&written, 1 << 20);
    return a2a_request_write(to, method, params, rpc_id, is_second_try, memory, &written, out,
                             fault);
}

static bay_err response_read(const a2a_interface *from, a2a_method method, int status, bay_str body,
                             bay_str rpc_id, fx *self)
{
    json_val result;
    bay_err err =
        a2a_response_read(from, method, status, body, rpc_id, &self->memory, &result, &self->fault);
    if (err == BAY_OK) {
        buf_str(&self->out, json_raw(result));
    }
    return err;
}

static void a_card_without_an_interface_for_us_is_told(void **state)
{
    (void)state;
    static const char *const cards[] = {
        "{}",
        "{'supportedInterfaces':[]}",
        "{'supportedInterfaces':[{'url':'u','protocolBinding':'SMTP','protocolVersion':'1.0'}]}",
        "{'supportedInterfaces':[{'url':'u','protocolBinding':'GRPC','protocolVersion':'2.0'}]}",
        "{'supportedInterfaces':[{'url':'u','protocolBinding':'GRPC','protocolVersion':'0.1'}]}",
        "{'supportedInterfaces':[{'url':'u','protocolBinding':'GRPC'}]}",
        "{'supportedInterfaces':[1,null]}",
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
        a2a_interface found[2];
        size_t count = 7;
        fx_clear(&self);
        assert_int_equal(a2a_interfaces_of(fx_json(&self, cards[i]), &self.memory, found, 2, &count,
                                           &self.fault),
                         BAY_ERR_VERSION);
        assert_int_equal(self.fault.error, A2A_E_VERSION_NOT_SUPPORTED);
        assert_int_equal(count, 7);
    }
    fx_fini(&self);
}

static void interfaces_come_in_order_each_in_its_newest(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    a2a_interface found[3];
    size_t count = 0;
    fx_ok(&self,
          a2a_interfaces_of(
              fx_json(&self, "{'supportedInterfaces':["
                             "{'url':'x','protocolBinding':'urn:x','protocolVersion':'1.0'},"
                             "{'url':'a','protocolBinding':'JSONRPC','protocolVersion':'0.3'},"
                             "{'url':'g:1','protocolBinding':'grpc','protocolVersion':'1.0',"
                             "'tenant':'t\\u00e4'},"
                             "{'url':'a','protocolBinding':'JSONRPC','protocolVersion':'1.0'},"
                             "{'url':'a','protocolBinding':'HTTP+JSON','protocolVersion':'0.3'},"
                             "{'url':'b','protocolBinding':'JSONRPC','protocolVersion':'0.1'}]}"),
              &self.memory, found, 3, &count, &self.fault));
    assert_int_equal(count, 3);
    assert_true(str_eq(found[0].url, STR("a")));
    assert_int_equal(found[0].version, A2A_1_0);
    assert_int_equal(found[1].binding, A2A_GRPC);
    assert_true(str_eq(found[1].tenant, STR("t\xc3\xa4")));
    assert_int_equal(found[2].binding, A2A_HTTP_JSON);
    assert_int_equal(found[2].version, A2A_0_3);
    fx_fini(&self);
}

/* ---- requests ----------------------------------------------------------------------------------
 */

static const char *const params_of[A2A_METHODS] = {
    [A2A_SEND_MESSAGE] =
        "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t','parts':[{'text':'hi'}]}}",
    [A2A_SEND_STREAMING_MESSAGE] =
        "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t','parts':[{'text':'hi'}]}}",
    [A2A_GET_TASK] = "{'id':'a/b','historyLength':2}",
    [A2A_LIST_TASKS] = "{'contextId':'c &','status':'TASK_STATE_WORKING','pageSize':3,"
                       "'includeArtifacts':true}",
    [A2A_CANCEL_TASK] = "{'id':'a/b'}",
    [A2A_SUBSCRIBE_TO_TASK] = "{'id':'t'}",
    [A2A_CREATE_PUSH_CONFIG] = "{'taskId':'t','id':'p','url':'http://h'}",
    [A2A_GET_PUSH_CONFIG] = "{'taskId':'t','id':'p'}",
    [A2A_LIST_PUSH_CONFIGS] = "{'taskId':'t'}",
    [A2A_DELETE_PUSH_CONFIG] = "{'taskId':'t','id':'p'}",
    [A2A_GET_EXTENDED_CARD] = "{}",
};

static bay_str field_of(const a2a_outbound *request, const char *name)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (str_eq(request->fields[i].name, str_of(name))) {
            return request->fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}

static void what_a_version_lacks_is_unsupported(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        a2a_method method;
    } cases[] = {
        {A2A_JSONRPC, A2A_0_3, A2A_LIST_TASKS},
        {A2A_HTTP_JSON, A2A_0_3, A2A_LIST_TASKS},
        {A2A_JSONRPC, A2A_0_1, A2A_LIST_TASKS},
        {A2A_JSONRPC, A2A_0_1, A2A_LIST_PUSH_CONFIGS},
        {A2A_JSONRPC, A2A_0_1, A2A_GET_EXTENDED_CARD},
        {A2A_JSONRPC, A2A_0_1, A2A_DELETE_PUSH_CONFIG},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface to = {STR("http://h/a"), STR(""), cases[i].binding, cases[i].version};
        a2a_outbound request;
        fx_clear(&self);
        assert_int_equal(request_write(&to, cases[i].method,
                                       fx_json(&self, params_of[cases[i].method]), STR("1"), false,
                                       &self.memory, &request, &self.fault),
                         BAY_ERR_UNSUPPORTED);
        assert_int_equal(self.fault.error, A2A_E_UNSUPPORTED_OPERATION);
    }
    fx_fini(&self);
}

static void requests_look_as_the_version_has_them(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        a2a_method method;
        bool is_second_try;
        const char *verb;
        const char *url;
        const char *body; /* NULL: none; "": not looked at */
    } cases[] = {
        {A2A_JSONRPC, A2A_1_0, A2A_GET_TASK, false, "POST", "http://h/a/",
         "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'tenant':'T t','id':'a/b',"
         "'historyLength':2}}"},
        {A2A_JSONRPC, A2A_0_3, A2A_GET_TASK, false, "POST", "http://h/a/",
         "{'jsonrpc':'2.0','id':1,'method':'tasks/get','params':{'id':'a/b','historyLength':2}}"},
        {A2A_JSONRPC, A2A_0_1, A2A_SEND_MESSAGE, false, "POST", "http://h/a/",
         "{'jsonrpc':'2.0','id':1,'method':'tasks/send','params':{'id':'t','message':{'role':"
         "'user','parts':[{'type':'text','text':'hi'}],'metadata':{'patchbay/messageId':'m'}}}}"},
        {A2A_JSONRPC, A2A_0_3, A2A_GET_EXTENDED_CARD, false, "POST", "http://h/a/",
         "{'jsonrpc':'2.0','id':1,'method':'agent/getAuthenticatedExtendedCard','params':{}}"},
        {A2A_JSONRPC, A2A_0_2, A2A_GET_EXTENDED_CARD, false, "GET",
         "http://h/a/agent/authenticatedExtendedCard", NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_SEND_MESSAGE, false, "POST", "http://h/a/T%20t/message:send",
         "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t','parts':[{'text':'hi'}]}}"},
        {A2A_HTTP_JSON, A2A_1_0, A2A_GET_TASK, false, "GET",
         "http://h/a/T%20t/tasks/a%2Fb?historyLength=2", NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_LIST_TASKS, false, "GET",
         "http://h/a/T%20t/tasks?contextId=c%20%26&status=TASK_STATE_WORKING&pageSize=3&"
         "includeArtifacts=true",
         NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_CANCEL_TASK, false, "POST",
         "http://h/a/T%20t/tasks/a%2Fb:cancel", "{}"},
        {A2A_HTTP_JSON, A2A_1_0, A2A_SUBSCRIBE_TO_TASK, false, "POST",
         "http://h/a/T%20t/tasks/t:subscribe", NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_SUBSCRIBE_TO_TASK, true, "GET",
         "http://h/a/T%20t/tasks/t:subscribe", NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_DELETE_PUSH_CONFIG, false, "DELETE",
         "http://h/a/T%20t/tasks/t/pushNotificationConfigs/p", NULL},
        {A2A_HTTP_JSON, A2A_1_0, A2A_GET_EXTENDED_CARD, false, "GET",
         "http://h/a/T%20t/extendedAgentCard", NULL},
        {A2A_HTTP_JSON, A2A_0_3, A2A_SEND_STREAMING_MESSAGE, false, "POST",
         "http://h/a/v1/message:stream",
         "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t','content':[{'text':'hi'}]},"
         "'configuration':{'blocking':true}}"},
        {A2A_HTTP_JSON, A2A_0_3, A2A_SUBSCRIBE_TO_TASK, false, "GET",
         "http://h/a/v1/tasks/t:subscribe", NULL},
        {A2A_HTTP_JSON, A2A_0_3, A2A_SUBSCRIBE_TO_TASK, true, "POST",
         "http://h/a/v1/tasks/t:subscribe", NULL},
        {A2A_HTTP_JSON, A2A_0_3, A2A_CREATE_PUSH_CONFIG, false, "POST",
         "http://h/a/v1/tasks/t/pushNotificationConfigs",
         "{'name':'tasks/t/pushNotificationConfigs/p','pushNotificationConfig':{'id':'p',"
         "'url':'http://h'}}"},
        {A2A_HTTP_JSON, A2A_0_3, A2A_CREATE_PUSH_CONFIG, true, "POST",
         "http://h/a/v1/tasks/t/pushNotificationConfigs",
         "{'parent':'tasks/t','configId':'p','config':{'name':'tasks/t/pushNotificationConfigs/p',"
         "'pushNotificationConfig':{'id':'p','url':'http://h'}}}"},
        {A2A_HTTP_JSON, A2A_0_3, A2A_GET_EXTENDED_CARD, false, "GET", "http://h/a/v1/card", NULL},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface to = {STR("http://h/a/"), STR("T t"), cases[i].binding, cases[i].version};
        a2a_outbound request;
        fx_clear(&self);
        fx_ok(&self,
              request_write(&to, cases[i].method, fx_json(&self, params_of[cases[i].method]),
                            STR("1"), cases[i].is_second_try, &self.memory, &request, &self.fault));
        if (!str_eq(request.verb, str_of(cases[i].verb)) ||
            !str_eq(request.url, str_of(cases[i].url)) ||
            request.has_body != (cases[i].body != NULL)) {
            fail_msg("case %zu: %.*s %.*s", i, BAY_STR(request.verb), BAY_STR(request.url));
        }
        if (request.has_body) {
            fx_same_text(&self, request.body, fx_quotes(&self, cases[i].body));
        }
        bool is_own = cases[i].binding == A2A_HTTP_JSON && cases[i].version == A2A_1_0;
        bay_str type = field_of(&request, "Content-Type");
        assert_true(str_eq(type, !request.has_body ? STR("")
                                 : is_own          ? STR("application/a2a+json")
                                                   : STR("application/json")));
        bay_str version = field_of(&request, "A2A-Version");
        assert_true(str_eq(
            version, cases[i].version == A2A_0_2 ? STR("") : a2a_version_names[cases[i].version]));
        bool is_stream = (a2a_methods[cases[i].method].flags & A2A_METHOD_STREAM) != 0;
        assert_int_equal(str_starts(field_of(&request, "Accept"), STR("text/event-stream")),
                         is_stream);
    }
    fx_fini(&self);
}

/* What the caller's half writes, the agent's half reads: the same params in every version. */
static void requests_arrive_as_they_were_meant(void **state)
{
    (void)state;
    static const a2a_inbound_settings strict = {false};
    fx self;
    fx_init(&self);
    for (size_t at = 0; at < A2A_METHODS * A2A_VERSIONS * 2; at++) {
        a2a_method method = (a2a_method)(at % A2A_METHODS);
        a2a_version version = (a2a_version)(at / A2A_METHODS % A2A_VERSIONS);
        a2a_binding binding = (a2a_binding)(at / A2A_METHODS / A2A_VERSIONS);
        a2a_interface to = {STR("http://h"), STR(""), binding, version};
        a2a_outbound request;
        bool is_sent = method == A2A_SEND_MESSAGE || method == A2A_SEND_STREAMING_MESSAGE;
        if ((binding == A2A_HTTP_JSON && version < A2A_0_3) ||
            (version == A2A_0_1 &&
             (is_sent || a2a_methods[method].name_0_1.len == 0 || method == A2A_GET_PUSH_CONFIG)) ||
            (version < A2A_1_0 && a2a_methods[method].name_0_3.len == 0) ||
            (version == A2A_0_2 && method == A2A_GET_EXTENDED_CARD)) {
            continue;
        }
        fx_clear(&self);
        fx_ok(&self, request_write(&to, method, fx_json(&self, params_of[method]), STR("1"), false,
                                   &self.memory, &request, &self.fault));
        a2a_inbound read;
        bay_str allow;
        bay_str said = field_of(&request, "A2A-Version");
        if (binding == A2A_JSONRPC) {
            fx_ok(&self,
                  a2a_jsonrpc_read(request.body, said, &strict, &self.memory, &read, &self.fault));
        } else {
            bay_str target = str_from(request.url, to.url.len);
            size_t path = str_find(target, '?');
            fx_ok(&self,
                  a2a_rest_read(request.verb, str_head(target, path), str_from(target, path + 1),
                                request.body, said, &self.memory, &read, &allow, &self.fault));
        }
        assert_int_equal(read.method, method);
        assert_int_equal(read.version, version == A2A_0_2 ? A2A_0_3 : version);
        fx_same_text(&self, json_raw(read.params), fx_quotes(&self, params_of[method]));
    }
    fx_fini(&self);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

#define RPC(rest) "{'jsonrpc':'2.0','id':1," rest "}"
#define TASK "{'id':'t','status':{'state':'TASK_STATE_WORKING'}}"

static void what_is_no_answer_is_told(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        int status;
        const char *body;
        const char *text;
    } cases[] = {
        {A2A_JSONRPC, A2A_1_0, 200, "", "is empty"},
        {A2A_JSONRPC, A2A_1_0, 200, "<html>", "not valid JSON"},
        {A2A_JSONRPC, A2A_1_0, 200, "[]", "not JSON-RPC"},
        {A2A_JSONRPC, A2A_1_0, 200, "{'id':1,'result':" TASK "}", "2.0"},
        {A2A_JSONRPC, A2A_1_0, 200, "{'jsonrpc':'2.0','id':1}", "neither"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'result':" TASK ",'error':{'code':1,'message':'x'}"),
         "both"},
        {A2A_JSONRPC, A2A_1_0, 200, "{'jsonrpc':'2.0','id':2,'result':" TASK "}", "another"},
        {A2A_JSONRPC, A2A_1_0, 200, "{'jsonrpc':'2.0','result':" TASK "}", "another"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'error':'x'"), "no object"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'result':1,'result':2"), "twice"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'result':{'id':'t'}"), "status: is required"},
        {A2A_JSONRPC, A2A_0_3, 200,
         RPC("'result':{'kind':'task','id':'t','status':{'state':"
             "'happy'}}"),
         "status.state"},
        {A2A_HTTP_JSON, A2A_1_0, 200, "{'id':'t'}", "status: is required"},
        {A2A_HTTP_JSON, A2A_1_0, 204, "", "is empty"},
        {A2A_HTTP_JSON, A2A_0_3, 200, "{'status':{}}", "id: is required"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface from = {STR("http://h"), STR(""), cases[i].binding, cases[i].version};
        fx_clear(&self);
        bay_err err = response_read(&from, A2A_GET_TASK, cases[i].status,
                                    fx_quotes(&self, cases[i].body), STR("1"), &self);
        fx_refused(&self, err, A2A_E_INVALID_AGENT_RESPONSE, cases[i].text);
    }
    fx_fini(&self);
}

static void errors_of_agents_are_theirs(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        int status;
        const char *body;
        a2a_error error;
        const char *text;
    } cases[] = {
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'error':{'code':-32001,'message':'no\\u0000 \\ntask'}"),
         A2A_E_TASK_NOT_FOUND, "no"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'error':{'code':-32001,'message':'a\\nb'}"),
         A2A_E_TASK_NOT_FOUND, "a b"},
        {A2A_JSONRPC, A2A_1_0, 200,
         RPC("'error':{'code':-32603,'message':'x','data':[{},{'reason':'TASK_NOT_CANCELABLE'}]}"),
         A2A_E_TASK_NOT_CANCELABLE, "x"},
        {A2A_JSONRPC, A2A_0_1, 200, RPC("'error':{'code':-32006,'message':'x'}"),
         A2A_E_UNSUPPORTED_OPERATION, "x"},
        {A2A_JSONRPC, A2A_0_3, 200, RPC("'result':null,'error':{'code':-32004,'message':'x'}"),
         A2A_E_UNSUPPORTED_OPERATION, "x"},
        {A2A_JSONRPC, A2A_0_3, 400,
         "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}", A2A_E_PARSE_ERROR,
         "x"},
        {A2A_JSONRPC, A2A_1_0, 200, RPC("'error':{}"), A2A_E_INTERNAL, "internal error"},
        {A2A_JSONRPC, A2A_1_0, 401, "", A2A_E_UNAUTHENTICATED, "credentials"},
        {A2A_JSONRPC, A2A_1_0, 503, "busy", A2A_E_BUSY, "too much"},
        {A2A_JSONRPC, A2A_1_0, 403, "{'error':'insufficient_scope'}", A2A_E_FORBIDDEN,
         "insufficient_scope"},
        {A2A_HTTP_JSON, A2A_1_0, 404,
         "{'error':{'code':404,'status':'NOT_FOUND','message':'x','details':[{'reason':"
         "'TASK_NOT_FOUND'}]}}",
         A2A_E_TASK_NOT_FOUND, "x"},
        {A2A_HTTP_JSON, A2A_1_0, 500, "{'error':{'code':500,'message':'x'}}", A2A_E_INTERNAL, "x"},
        {A2A_HTTP_JSON, A2A_0_3, 404, "{'code':-32001,'message':'x'}", A2A_E_TASK_NOT_FOUND, "x"},
        {A2A_HTTP_JSON, A2A_0_3, 400, "{'message':'x'}", A2A_E_INVALID_PARAMS, "x"},
        {A2A_HTTP_JSON, A2A_1_0, 405, "", A2A_E_METHOD_NOT_FOUND, "no such method"},
        {A2A_HTTP_JSON, A2A_1_0, 504, "<html>", A2A_E_DEADLINE, "in time"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface from = {STR("http://h"), STR(""), cases[i].binding, cases[i].version};
        fx_clear(&self);
        bay_err err = response_read(&from, A2A_GET_TASK, cases[i].status,
                                    fx_quotes(&self, cases[i].body), STR("1"), &self);
        if (err != BAY_ERR_REMOTE || self.fault.error != cases[i].error ||
            strstr(self.fault.text, cases[i].text) == NULL) {
            fail_msg("case %zu: %s, %d \"%s\"", i, bay_err_text(err), (int)self.fault.error,
                     self.fault.text);
        }
        assert_int_equal(self.out.len, 0);
    }
    fx_fini(&self);
}

static void results_are_read_in_their_form(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        a2a_method method;
        int status;
        const char *body;
        const char *result;
    } cases[] = {
        {A2A_JSONRPC, A2A_1_0, A2A_GET_TASK, 200, RPC("'result':" TASK), TASK},
        {A2A_JSONRPC, A2A_1_0, A2A_GET_TASK, 200,
         "{'jsonrpc':'2.0','id':'1','error':null,'result':" TASK "}", TASK},
        {A2A_JSONRPC, A2A_0_3, A2A_SEND_MESSAGE, 200,
         RPC("'result':{'kind':'task','id':'t','contextId':'','status':{'state':'working'}}"),
         "{'task':" TASK "}"},
        {A2A_JSONRPC, A2A_0_3, A2A_SEND_MESSAGE, 200,
         RPC("'result':{'id':'t','status':{'state':'working'}}"), "{'task':" TASK "}"},
        {A2A_JSONRPC, A2A_0_1, A2A_SEND_MESSAGE, 200,
         RPC("'result':{'id':'t','status':{'state':'working'}}"), "{'task':" TASK "}"},
        {A2A_JSONRPC, A2A_0_3, A2A_DELETE_PUSH_CONFIG, 200, RPC("'result':null"), "{}"},
        {A2A_JSONRPC, A2A_1_0, A2A_DELETE_PUSH_CONFIG, 200, RPC("'result':null"), "{}"},
        {A2A_JSONRPC, A2A_0_3, A2A_DELETE_PUSH_CONFIG, 200, "{'jsonrpc':'2.0','id':1}", "{}"},
        {A2A_JSONRPC, A2A_0_3, A2A_LIST_PUSH_CONFIGS, 200, RPC("'result':[]"), "{}"},
        {A2A_JSONRPC, A2A_1_0, A2A_SEND_STREAMING_MESSAGE, 200, RPC("'result':{'task':" TASK "}"),
         "{'task':" TASK "}"},
        {A2A_JSONRPC, A2A_0_3, A2A_SUBSCRIBE_TO_TASK, 200,
         RPC("'result':{'kind':'status-update','taskId':'t','contextId':'c','final':true,"
             "'status':{'state':'working'}}"),
         "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}"},
        {A2A_HTTP_JSON, A2A_1_0, A2A_DELETE_PUSH_CONFIG, 204, "", "{}"},
        {A2A_HTTP_JSON, A2A_0_3, A2A_DELETE_PUSH_CONFIG, 200, "{}", "{}"},
        {A2A_HTTP_JSON, A2A_0_3, A2A_SEND_MESSAGE, 201,
         "{'task':{'id':'t','status':{'state':'TASK_STATE_CANCELLED'}}}",
         "{'task':{'id':'t','status':{'state':'TASK_STATE_CANCELED'}}}"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface from = {STR("http://h"), STR(""), cases[i].binding, cases[i].version};
        fx_clear(&self);
        fx_ok(&self, response_read(&from, cases[i].method, cases[i].status,
                                   fx_quotes(&self, cases[i].body), STR("1"), &self));
        fx_wrote(&self, cases[i].result);
    }
    fx_fini(&self);
}

static void events_are_read_in_their_form(void **state)
{
    (void)state;
    static const struct {
        a2a_binding binding;
        a2a_version version;
        const char *name;
        const char *data;
        bay_err err;
        a2a_error error;
        const char *event;
        bool is_last;
    } cases[] = {
        {A2A_JSONRPC, A2A_1_0, "", "x", BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE, NULL,
         false},
        {A2A_JSONRPC, A2A_1_0, "", "{'task':" TASK "}", BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE, NULL, false},
        {A2A_JSONRPC, A2A_1_0, "", RPC("'result':{}"), BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE, NULL, false},
        {A2A_JSONRPC, A2A_1_0, "", RPC("'error':{'code':-32001,'message':'x'}"), BAY_ERR_REMOTE,
         A2A_E_TASK_NOT_FOUND, NULL, false},
        {A2A_JSONRPC, A2A_1_0, "error", "{'code':-32001,'message':'x'}", BAY_ERR_REMOTE,
         A2A_E_TASK_NOT_FOUND, NULL, false},
        {A2A_HTTP_JSON, A2A_1_0, "",
         "{'error':{'code':404,'details':[{'reason':'TASK_NOT_FOUND'}]}"
         "}",
         BAY_ERR_REMOTE, A2A_E_TASK_NOT_FOUND, NULL, false},
        {A2A_HTTP_JSON, A2A_0_3, "error", "{'code':-32004,'message':'x'}", BAY_ERR_REMOTE,
         A2A_E_UNSUPPORTED_OPERATION, NULL, false},
        {A2A_HTTP_JSON, A2A_1_0, "message", "{'task':" TASK "}", BAY_OK, A2A_NO_ERROR,
         "{'task':" TASK "}", false},
        {A2A_JSONRPC, A2A_0_3, "",
         RPC("'result':{'kind':'status-update','taskId':'t','contextId':'c','final':true,"
             "'status':{'state':'input-required','timestamp':'2025-01-02T03:04:05.25'}}"),
         BAY_OK, A2A_NO_ERROR,
         "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':"
         "'TASK_STATE_INPUT_REQUIRED','timestamp':'2025-01-02T03:04:05.250Z'}}}",
         true},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_interface from = {STR("http://h"), STR(""), cases[i].binding, cases[i].version};
        bool is_last = false;
        json_val event = JSON_NONE;
        fx_clear(&self);
        bay_err err = a2a_stream_read(&from, str_of(cases[i].name), fx_quotes(&self, cases[i].data),
                                      STR("1"), &self.memory, &event, &is_last, &self.fault);
        buf_str(&self.out, json_raw(event));
        if (err != cases[i].err || (err != BAY_OK && self.fault.error != cases[i].error)) {
            fail_msg("case %zu: %s, \"%s\"", i, bay_err_text(err), self.fault.text);
        }
        if (err == BAY_OK) {
            fx_wrote(&self, cases[i].event);
        }
        assert_int_equal(is_last, cases[i].is_last);
    }
    fx_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_without_an_interface_for_us_is_told),
        cmocka_unit_test(interfaces_come_in_order_each_in_its_newest),
        cmocka_unit_test(what_a_version_lacks_is_unsupported),
        cmocka_unit_test(requests_look_as_the_version_has_them),
        cmocka_unit_test(requests_arrive_as_they_were_meant),
        cmocka_unit_test(what_is_no_answer_is_told),
        cmocka_unit_test(errors_of_agents_are_theirs),
        cmocka_unit_test(results_are_read_in_their_form),
        cmocka_unit_test(events_are_read_in_their_form),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_fini(&written);
    return failed;
}
