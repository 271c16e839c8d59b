/* HTTP+JSON in: paths, verbs, queries and bodies of 1.0 and 0.3. */
#include "unit/a2a/dialect_fixture.h"

#include "a2a/inbound.h"

typedef struct asked {
    const char *verb;
    const char *path;
    const char *query;
    const char *body;
    const char *version;
} asked;

static bay_err take(fx *self, const asked *what, a2a_inbound *out, bay_str *out_allow)
{
    fx_clear(self);
    return a2a_rest_read(str_of(what->verb), str_of(what->path), str_of(what->query),
                         fx_quotes(self, what->body),
                         what->version != NULL ? str_of(what->version) : (bay_str){NULL, 0},
                         &self->memory, out, out_allow, &self->fault);
}

#define MESSAGE "{'message':{'messageId':'m','role':'ROLE_USER','parts':[{'text':'hi'}]}}"
#define OLD_MESSAGE                                                                                \
    "{'message':{'messageId':'m','role':'ROLE_USER','content':[{'text':'hi'}]},"                   \
    "'configuration':{'blocking':true}}"

static void what_is_no_path_of_ours_is_not_found(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",        "/",          "tasks",          "//",        "/tasks/",
        "/x",      "/a/b/tasks", "/message:sent",  "/tasks//x", "/tasks/a/pushNotificationConfigs/",
        "//tasks", "/v1",        "/v1/",           "/v1/x",     "/v1/extendedAgentCard",
        "/card",   "/task/a",    "/a/b/c/d/e/f/g", "/tasks/a/b"};
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        a2a_inbound out;
        bay_str allow;
        bay_err err = take(&self, &(asked){"GET", paths[i], "", "", NULL}, &out, &allow);
        if (err != BAY_ERR_NOT_FOUND || allow.len > 0) {
            fail_msg("%s: %s", paths[i], bay_err_text(err));
        }
    }
    fx_fini(&self);
}

static void other_verbs_are_told_which(void **state)
{
    (void)state;
    static const struct {
        const char *verb;
        const char *path;
        const char *allow;
    } cases[] = {
        {"GET", "/message:send", "POST"},
        {"PUT", "/x/tasks", "GET, HEAD"},
        {"POST", "/tasks/t", "GET, HEAD"},
        {"DELETE", "/tasks/t:subscribe", "GET, POST"},
        {"HEAD", "/tasks/t:subscribe", "GET, POST"},
        {"HEAD", "/message:send", "POST"},
        {"HEAD", "/tasks/t:cancel", "POST"},
        {"PATCH", "/tasks/t/pushNotificationConfigs", "GET, HEAD, POST"},
        {"POST", "/v1/tasks/t/pushNotificationConfigs/p", "GET, HEAD, DELETE"},
        {"get", "/extendedAgentCard", "GET, HEAD"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound out;
        bay_str allow;
        bay_err err =
            take(&self, &(asked){cases[i].verb, cases[i].path, "", "", "1.0"}, &out, &allow);
        fx_refused(&self, err, A2A_E_METHOD_NOT_FOUND, cases[i].allow);
        assert_true(str_eq(allow, str_of(cases[i].allow)));
    }
    fx_fini(&self);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        asked what;
        a2a_error error;
        const char *text;
    } cases[] = {
        {{"POST", "/message:send", "", "", "1.0"}, A2A_E_PARSE_ERROR, "not valid JSON"},
        {{"POST", "/message:send", "", "[]", "1.0"}, A2A_E_INVALID_REQUEST, "an object"},
        {{"POST", "/message:send", "", "{}", "1.0"}, A2A_E_INVALID_PARAMS, "message: is required"},
        {{"POST", "/message:send", "", MESSAGE, "3.0"}, A2A_E_VERSION_NOT_SUPPORTED, "3.0"},
        {{"POST", "/message:send", "", MESSAGE, "0.3"}, A2A_E_VERSION_NOT_SUPPORTED, "/v1"},
        {{"POST", "/v1/message:send", "", MESSAGE, "9.9"}, A2A_E_VERSION_NOT_SUPPORTED, "9.9"},
        {{"POST", "/v1/message:send", "", MESSAGE, NULL},
         A2A_E_INVALID_PARAMS,
         "message.content: is required"},
        {{"GET", "/v1/tasks", "", "", NULL}, A2A_E_METHOD_NOT_FOUND, "ListTasks"},
        {{"GET", "/tasks/t", "historyLength=x", "", "1.0"}, A2A_E_INVALID_PARAMS, "historyLength"},
        {{"GET", "/tasks/t", "historyLength=1&history_length=2", "", "1.0"},
         A2A_E_INVALID_PARAMS,
         "twice"},
        {{"GET", "/tasks/%zz", "", "", "1.0"}, A2A_E_INVALID_PARAMS, "decoded"},
        {{"GET", "/tasks", "contextId=%", "", "1.0"}, A2A_E_INVALID_PARAMS, "contextId"},
        {{"GET", "/tasks", "includeArtifacts=yes", "", "1.0"},
         A2A_E_INVALID_PARAMS,
         "includeArtifacts"},
        {{"GET", "/tasks", "status=WORKING", "", "1.0"}, A2A_E_INVALID_PARAMS, "status"},
        {{"POST", "/tasks/t:cancel", "", "{", "1.0"}, A2A_E_PARSE_ERROR, "byte 1"},
        {{"POST", "/tasks/t/pushNotificationConfigs", "", "{}", "1.0"},
         A2A_E_INVALID_PARAMS,
         "url"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound out;
        bay_str allow;
        bay_err err = take(&self, &cases[i].what, &out, &allow);
        fx_refused(&self, err, cases[i].error, cases[i].text);
        assert_int_equal(allow.len, 0);
        assert_int_equal(out.binding, A2A_HTTP_JSON);
        assert_true(out.version < A2A_VERSIONS);
    }
    fx_fini(&self);
}

static const struct {
    asked what;
    a2a_version version;
    a2a_method method;
    const char *params;
    const char *tenant;
} good[] = {
    {{"POST", "/message:send", "", MESSAGE, NULL}, A2A_1_0, A2A_SEND_MESSAGE, MESSAGE, ""},
    {{"POST", "/a%20b/message:stream", "",
      "{'tenant':'x','message':{'message_id':'m','role':1,'parts':[{'text':'hi'}]}}", "1.0"},
     A2A_1_0,
     A2A_SEND_STREAMING_MESSAGE,
     "{'tenant':'a b','message':{'messageId':'m','role':'ROLE_USER','parts':[{'text':'hi'}]}}",
     "a b"},
    {{"POST", "/message:send", "",
      "{'tenant':'x',"
      "'message':{'messageId':'m','role':"
      "'ROLE_USER','parts':[{'text':'hi'}]}}",
      "1.0"},
     A2A_1_0,
     A2A_SEND_MESSAGE,
     "{'tenant':'x','message':{'messageId':'m','role':'ROLE_USER','parts':[{'text':'hi'}]}}",
     "x"},
    {{"GET", "/tasks/a%2Fb", "history_length=3&x=y", "", "1.0"},
     A2A_1_0,
     A2A_GET_TASK,
     "{'id':'a/b','historyLength':3}",
     ""},
    {{"GET", "/tasks/a:b", "", "", "1.0"}, A2A_1_0, A2A_GET_TASK, "{'id':'a:b'}", ""},
    {{"GET", "/tasks/a%3Acancel", "", "", "1.0"}, A2A_1_0, A2A_GET_TASK, "{'id':'a:cancel'}", ""},
    {{"GET", "/t/tasks",
      "status=3&pageSize=5&includeArtifacts=true&contextId=a+b%2B&"
      "statusTimestampAfter=2026-01-02T03%3A04%3A05Z&A2A-Version=1.0",
      "", NULL},
     A2A_1_0,
     A2A_LIST_TASKS,
     "{'tenant':'t','status':'TASK_STATE_COMPLETED','pageSize':5,'includeArtifacts':true,"
     "'contextId':'a b+','statusTimestampAfter':'2026-01-02T03:04:05.000Z'}",
     "t"},
    {{"GET", "/tasks", "contextId=123&status=TASK_STATE_WORKING&page_token=", "", "1.0"},
     A2A_1_0,
     A2A_LIST_TASKS,
     "{'contextId':'123','status':'TASK_STATE_WORKING'}",
     ""},
    {{"POST", "/tasks/t:cancel", "", "", "1.0"}, A2A_1_0, A2A_CANCEL_TASK, "{'id':'t'}", ""},
    {{"POST", "/tasks/t:cancel", "", "null", "1.0"}, A2A_1_0, A2A_CANCEL_TASK, "{'id':'t'}", ""},
    {{"POST", "/tasks/t:cancel", "", "{'id':'other','metadata':{'a':1}}", "1.0"},
     A2A_1_0,
     A2A_CANCEL_TASK,
     "{'id':'t','metadata':{'a':1}}",
     ""},
    {{"POST", "/tasks/t:subscribe", "", "", "1.0"},
     A2A_1_0,
     A2A_SUBSCRIBE_TO_TASK,
     "{'id':'t'}",
     ""},
    {{"GET", "/tasks/t:subscribe", "", "", "1.0"},
     A2A_1_0,
     A2A_SUBSCRIBE_TO_TASK,
     "{'id':'t'}",
     ""},
    {{"POST", "/tasks/t/pushNotificationConfigs", "", "{'task_id':'o','id':'p','url':'u'}", "1.0"},
     A2A_1_0,
     A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','id':'p','url':'u'}",
     ""},
    {{"GET", "/tasks/t/pushNotificationConfigs", "pageSize=2", "", "1.0"},
     A2A_1_0,
     A2A_LIST_PUSH_CONFIGS,
     "{'taskId':'t','pageSize':2}",
     ""},
    {{"GET", "/x/tasks/t/pushNotificationConfigs/p", "tenant=y", "", "1.0"},
     A2A_1_0,
     A2A_GET_PUSH_CONFIG,
     "{'tenant':'x','taskId':'t','id':'p'}",
     "x"},
    {{"DELETE", "/tasks/t/pushNotificationConfigs/p", "", "", "1.0"},
     A2A_1_0,
     A2A_DELETE_PUSH_CONFIG,
     "{'taskId':'t','id':'p'}",
     ""},
    {{"GET", "/extendedAgentCard", "tenant=y", "", "1.0"},
     A2A_1_0,
     A2A_GET_EXTENDED_CARD,
     "{'tenant':'y'}",
     "y"},
    {{"GET", "/v1/tasks/t", "", "", "1.0"},
     A2A_1_0,
     A2A_GET_TASK,
     "{'tenant':'v1','id':'t'}",
     "v1"},
    {{"GET", "/tasks/extendedAgentCard", "", "", "1.0"},
     A2A_1_0,
     A2A_GET_TASK,
     "{'id':'extendedAgentCard'}",
     ""},
    {{"POST", "/v1/message:send", "", OLD_MESSAGE, NULL}, A2A_0_3, A2A_SEND_MESSAGE, MESSAGE, ""},
    {{"POST", "/v1/message:stream", "", OLD_MESSAGE, "0.3"},
     A2A_0_3,
     A2A_SEND_STREAMING_MESSAGE,
     MESSAGE,
     ""},
    {{"GET", "/v1/tasks/t", "historyLength=2", "", NULL},
     A2A_0_3,
     A2A_GET_TASK,
     "{'id':'t','historyLength':2}",
     ""},
    {{"POST", "/v1/tasks/a%2Fb:cancel", "", "", NULL},
     A2A_0_3,
     A2A_CANCEL_TASK,
     "{'id':'a/b'}",
     ""},
    {{"GET", "/v1/tasks/t:subscribe", "", "", NULL},
     A2A_0_3,
     A2A_SUBSCRIBE_TO_TASK,
     "{'id':'t'}",
     ""},
    {{"POST", "/v1/tasks/t/pushNotificationConfigs", "",
      "{'name':'tasks/t/pushNotificationConfigs/p','pushNotificationConfig':{'url':'u'}}", NULL},
     A2A_0_3,
     A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','id':'p','url':'u'}",
     ""},
    {{"POST", "/v1/task/t/pushNotificationConfigs", "",
      "{'config_id':'q','config':{'pushNotificationConfig':{'url':'u'}}}", NULL},
     A2A_0_3,
     A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','id':'q','url':'u'}",
     ""},
    {{"GET", "/v1/tasks/t/pushNotificationConfigs/p", "", "", NULL},
     A2A_0_3,
     A2A_GET_PUSH_CONFIG,
     "{'taskId':'t','id':'p'}",
     ""},
    {{"GET", "/v1/tasks/t/pushNotificationConfigs", "", "", NULL},
     A2A_0_3,
     A2A_LIST_PUSH_CONFIGS,
     "{'taskId':'t'}",
     ""},
    {{"GET", "/v1/card", "", "", NULL}, A2A_0_3, A2A_GET_EXTENDED_CARD, "{}", ""},
};

static void requests_become_params(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        a2a_inbound out;
        bay_str allow;
        bay_err err = take(&self, &good[i].what, &out, &allow);
        if (err != BAY_OK) {
            fail_msg("%s %s: %s", good[i].what.verb, good[i].what.path, self.fault.text);
        }
        assert_int_equal(out.version, good[i].version);
        assert_int_equal(out.form, a2a_form_of(out.version, A2A_HTTP_JSON));
        assert_int_equal(out.method, good[i].method);
        fx_same_text(&self, json_raw(out.params), fx_quotes(&self, good[i].params));
        assert_true(str_eq(out.tenant, str_of(good[i].tenant)));
        fx_is_normal(&self, (a2a_type)a2a_methods[out.method].request, json_raw(out.params));
    }
    fx_fini(&self);
}

static void head_is_read_as_get(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        a2a_method method;
    } cases[] = {{"/tasks", A2A_LIST_TASKS},
                 {"/tasks/t", A2A_GET_TASK},
                 {"/tasks/t/pushNotificationConfigs", A2A_LIST_PUSH_CONFIGS},
                 {"/tasks/t/pushNotificationConfigs/p", A2A_GET_PUSH_CONFIG},
                 {"/extendedAgentCard", A2A_GET_EXTENDED_CARD}};
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_inbound out;
        bay_str allow;
        bay_err err = take(&self, &(asked){"HEAD", cases[i].path, "", "", "1.0"}, &out, &allow);
        assert_int_equal(err, BAY_OK);
        assert_int_equal(out.method, cases[i].method);
    }
    fx_fini(&self);
}

static void a_query_has_its_bound(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    char query[200] = "";
    memset(query, '&', sizeof(query) - 1);
    a2a_inbound out;
    bay_str allow;
    bay_err err = take(&self, &(asked){"GET", "/tasks", query, "", "1.0"}, &out, &allow);
    fx_refused(&self, err, A2A_E_INVALID_PARAMS, "parameters");
    fx_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_path_of_ours_is_not_found),
        cmocka_unit_test(other_verbs_are_told_which),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(requests_become_params),
        cmocka_unit_test(head_is_read_as_get),
        cmocka_unit_test(a_query_has_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
