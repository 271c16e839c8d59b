/* The older forms one by one: what is refused and where, what peers really send, what each form
 * looks like when we write it, what is kept for the way back. */
#include "unit/a2a/dialect_fixture.h"

#include "support/failing_memory.h"

#define OLD_SEND(parts)                                                                            \
    "{'message':{'kind':'message','messageId':'m','role':'user','parts':[" parts "]}}"

static const struct {
    a2a_form form;
    a2a_method method;
    const char *params;
    const char *text;
} bad_params[] = {
    {A2A_FORM_1_0, A2A_SEND_MESSAGE, "{}", "message: is required"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "[]", "must be an object"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{}", "message: is required"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{'message':1}", "message: must be an object"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{'message':{'kind':'task'}}", "message.kind: "},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{'message':{'role':'user','parts':[]}}",
     "message.messageId: is required"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{'message':{'messageId':'m','role':'ROLE_USER'}}",
     "message.role: must be user or agent"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, "{'message':{'messageId':'m','role':'user','parts':{}}}",
     "message.parts: must be an array"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND(""), "message.parts: "},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("1"), "message.parts[0]: must be an object"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'text','text':'a'},{'kind':'picture'}"),
     "message.parts[1].kind: must be text, file or data"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{}"), "message.parts[0].kind: "},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'text'}"),
     "message.parts[0].text: is required"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'text','text':7}"),
     "message.parts[0].text: must be a string"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'text','text':'a','text':'b'}"),
     "message.parts[0].text: is given twice"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'file','file':{'name':'n'}}"),
     "message.parts[0].file: has no bytes or uri"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'file','file':{'bytes':'aGk=','uri':'u'}}"),
     "message.parts[0].file: has both bytes and uri"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'file','file':{'bytes':'!'}}"),
     "message.parts[0].file.bytes: is not base64"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'data','data':[]}"),
     "message.parts[0].data: must be an object"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE, OLD_SEND("{'kind':'text','text':'','metadata':[]}"),
     "message.parts[0].metadata: must be an object"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE,
     "{'message':{'messageId':'m','role':'user','parts':[{'text':'a'}]},"
     "'configuration':{'blocking':'yes'}}",
     "configuration.blocking: must be true or false"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE,
     "{'message':{'messageId':'m','role':'user','parts':[{'text':'a'}]},"
     "'configuration':{'pushNotificationConfig':{}}}",
     "configuration.pushNotificationConfig.url: is required"},
    {A2A_FORM_0_3, A2A_SEND_MESSAGE,
     "{'message':{'messageId':'m','role':'user','parts':[{'text':'a'}]},"
     "'configuration':{'pushNotificationConfig':{'url':'','token':'k'}}}",
     "configuration.pushNotificationConfig.url: must not be empty"},
    {A2A_FORM_0_3, A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','pushNotificationConfig':{'url':'u','authentication':{'schemes':'s'}}}",
     "pushNotificationConfig.authentication.schemes: must be an array"},
    {A2A_FORM_0_3, A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','pushNotificationConfig':{'url':'u','authentication':{'credentials':'s'}}}",
     "authentication.schemes: is required"},
    {A2A_FORM_0_3, A2A_GET_TASK, "{'id':''}", "id: must not be empty"},
    {A2A_FORM_0_3, A2A_GET_TASK, "{'id':'t','historyLength':1.5}", "historyLength: "},
    {A2A_FORM_0_3_PROTO, A2A_SEND_MESSAGE, "{'message':{'role':1,'content':[{'text':'a'}]}}",
     "message.messageId: is required"},
    {A2A_FORM_0_3_PROTO, A2A_SEND_MESSAGE, "{'message':{'messageId':'m','role':1}}",
     "message.content: is required"},
    {A2A_FORM_0_3_PROTO, A2A_SEND_MESSAGE, "{'message':{'messageId':'m','role':1,'content':[{}]}}",
     "message.content[0]: has none of"},
    {A2A_FORM_0_3_PROTO, A2A_GET_TASK, "{'name':'t'}", "name: must be tasks/ID"},
    {A2A_FORM_0_3_PROTO, A2A_GET_TASK, "{'name':'tasks/'}", "name: must be tasks/ID"},
    {A2A_FORM_0_3_PROTO, A2A_CANCEL_TASK, "{}", "name: is required"},
    {A2A_FORM_0_3_PROTO, A2A_CREATE_PUSH_CONFIG, "{'parent':'tasks/t','config':{}}",
     "config.pushNotificationConfig: is required"},
    {A2A_FORM_0_3_PROTO, A2A_CREATE_PUSH_CONFIG,
     "{'parent':'tasks/t','config':{'pushNotificationConfig':{'id':'p'}}}",
     "config.pushNotificationConfig.url: is required"},
    {A2A_FORM_0_1, A2A_SEND_MESSAGE, "{'message':{'role':'user','parts':[{'text':'a'}]}}",
     "id: is required"},
    {A2A_FORM_0_1, A2A_SEND_MESSAGE, "{'id':'t'}", "message: is required"},
    {A2A_FORM_0_1, A2A_SEND_MESSAGE, "{'id':'t','message':{'role':'user','parts':[{'type':'x'}]}}",
     "message.parts[0].type: must be text, file or data"},
    {A2A_FORM_0_1, A2A_SEND_MESSAGE,
     "{'id':'t','metadata':1,'message':{'role':'user','parts':[{'text':'a'}]}}",
     "metadata: must be an object"},
    {A2A_FORM_0_1, A2A_SEND_MESSAGE,
     "{'id':'t','pushNotification':{},'message':{'role':'user','parts':[{'text':'a'}]}}",
     "pushNotification.url: is required"},
};

static void bad_params_are_refused_where_they_are_bad(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(bad_params); i++) {
        fx_clear(&self);
        bay_err err = a2a_params_read(bad_params[i].form, bad_params[i].method,
                                      fx_json(&self, bad_params[i].params), &self.out, &self.fault);
        fx_refused(&self, err, A2A_E_INVALID_PARAMS, bad_params[i].text);
        /* Nobody need listen. */
        assert_int_equal(a2a_params_read(bad_params[i].form, bad_params[i].method,
                                         fx_json(&self, bad_params[i].params), &self.out, NULL),
                         BAY_ERR_PROTOCOL);
    }
    fx_fini(&self);
}

static void methods_that_a_form_lacks_are_not_found(void **state)
{
    (void)state;
    static const struct {
        a2a_form form;
        a2a_method method;
    } cases[] = {
        {A2A_FORM_0_3, A2A_LIST_TASKS},         {A2A_FORM_0_3_PROTO, A2A_LIST_TASKS},
        {A2A_FORM_0_1, A2A_LIST_TASKS},         {A2A_FORM_0_1, A2A_LIST_PUSH_CONFIGS},
        {A2A_FORM_0_1, A2A_DELETE_PUSH_CONFIG}, {A2A_FORM_0_1, A2A_GET_EXTENDED_CARD},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_val none = fx_json(&self, "{}");
        fx_clear(&self);
        fx_refused(&self,
                   a2a_params_read(cases[i].form, cases[i].method, none, &self.out, &self.fault),
                   A2A_E_METHOD_NOT_FOUND, "not in this version");
        assert_int_equal(
            a2a_params_write(cases[i].form, cases[i].method, none, &self.out, &self.fault),
            BAY_ERR_UNSUPPORTED);
        assert_int_equal(a2a_result_write(cases[i].form, cases[i].method, none, &self.out),
                         BAY_ERR_UNSUPPORTED);
        assert_int_equal(self.out.len, 0);
    }
    fx_fini(&self);
}

static void bad_answers_are_refused(void **state)
{
    (void)state;
    static const struct {
        a2a_form form;
        const char *event;
        const char *text;
    } cases[] = {
        {A2A_FORM_0_3, "{}", "kind: must be task"},
        {A2A_FORM_0_3, "1", "kind: must be task"},
        {A2A_FORM_0_3, "{'kind':'news'}", "kind: must be task"},
        {A2A_FORM_0_3, "{'kind':'status-update','taskId':'t','status':{}}",
         "status.state: is required"},
        {A2A_FORM_0_3, "{'kind':'status-update','taskId':'t','status':{'state':'idle'}}",
         "status.state: there is no such state"},
        {A2A_FORM_0_3, "{'kind':'artifact-update','taskId':'t','artifact':{'parts':[]}}",
         "artifact.artifactId: is required"},
        {A2A_FORM_0_3, "{'kind':'task','id':'t','status':{'state':'working','timestamp':'noon'}}",
         "status.timestamp: "},
        {A2A_FORM_0_3_PROTO, "{}", "has none of"},
        {A2A_FORM_0_3_PROTO, "{'statusUpdate':{'taskId':'t'}}", "status: is required"},
        {A2A_FORM_0_3_PROTO, "{'task':{'id':'t','status':{'state':'working'}}}", "state"},
        {A2A_FORM_0_1, "{'id':'t'}", "neither a status nor an artifact"},
        {A2A_FORM_0_1, "{'id':'t','status':{'state':1}}", "status.state: there is no such state"},
        {A2A_FORM_0_1, "{'id':'t','artifact':{'index':-1,'parts':[]}}",
         "artifact.index: must be a whole number"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool is_last = false;
        fx_clear(&self);
        bay_err err = a2a_event_read(cases[i].form, fx_json(&self, cases[i].event), &self.out,
                                     &is_last, &self.fault);
        fx_refused(&self, err, A2A_E_INVALID_PARAMS, cases[i].text);
        assert_false(is_last);
    }
    fx_fini(&self);
}

/* Each form as it must look on the wire. */
static void events_look_as_the_form_has_them(void **state)
{
    (void)state;
    static const char *const event =
        "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_CANCELED',"
        "'message':{'messageId':'m','role':'ROLE_AGENT','parts':[{'text':'a','filename':'f'},"
        "{'raw':'aGk=','filename':'g','mediaType':'x/y'},{'data':7}]}}}}";
    static const char *const expected[A2A_FORMS] = {
        [A2A_FORM_1_0] = event,
        [A2A_FORM_0_3] =
            "{'kind':'status-update','taskId':'t','contextId':'c','final':true,'status':{"
            "'state':'canceled','message':{'kind':'message','messageId':'m','role':'agent',"
            "'parts':[{'kind':'text','text':'a','metadata':{'patchbay/filename':'f'}},"
            "{'kind':'file','file':{'bytes':'aGk=','name':'g','mimeType':'x/y'}},"
            "{'kind':'data','data':{'value':7},'metadata':{'data_part_compat':true}}]}}}",
        [A2A_FORM_0_3_PROTO] =
            "{'statusUpdate':{'taskId':'t','contextId':'c','final':true,'status':{"
            "'state':'TASK_STATE_CANCELLED','message':{'messageId':'m','role':'ROLE_AGENT',"
            "'content':[{'text':'a'},{'file':{'fileWithBytes':'aGk=','mimeType':'x/y'}},"
            "{'data':{'data':{'value':7}}}],'metadata':{'patchbay/parts':{'0':{'filename':'f'},"
            "'1':{'filename':'g'},'2':{'isWrapped':true}}}}}}}",
        [A2A_FORM_0_1] =
            "{'id':'t','final':true,'status':{'state':'canceled','message':{'role':'agent',"
            "'parts':[{'type':'text','text':'a','metadata':{'patchbay/filename':'f'}},"
            "{'type':'file','file':{'bytes':'aGk=','name':'g','mimeType':'x/y'}},"
            "{'type':'data','data':{'value':7},'metadata':{'data_part_compat':true}}],"
            "'metadata':{'patchbay/messageId':'m'}}},'metadata':{'patchbay/contextId':'c'}}",
    };
    fx self;
    fx_init(&self);
    for (size_t form = 0; form < A2A_FORMS; form++) {
        fx_clear(&self);
        fx_ok(&self, a2a_event_write((a2a_form)form, fx_json(&self, event), true, &self.out));
        fx_wrote(&self, expected[form]);
    }
    fx_clear(&self);
    fx_ok(&self, a2a_event_write(A2A_FORM_0_3, fx_json(&self, event), false, &self.out));
    assert_non_null(memmem(self.out.at, self.out.len, "\"final\":false", 13));
    fx_fini(&self);
}

/* 0.3 through 1.0 and out again. */
static void nothing_of_0_3_is_lost(void **state)
{
    (void)state;
    static const char *const tasks[] = {
        "{'kind':'task','id':'t','contextId':'c','status':{'state':'unknown','message':{"
        "'kind':'message','messageId':'m','role':'user','taskId':'t','contextId':'c','parts':["
        "{'kind':'text','text':'a','metadata':{'k':[1.0]}},{'kind':'file','file':{'uri':'u',"
        "'name':'n','mimeType':'m'},'metadata':{}},{'kind':'data','data':{'value':1}}],"
        "'extensions':['e'],'referenceTaskIds':['r'],'metadata':{'a':null}},"
        "'timestamp':'2025-01-02T03:04:05.678Z'},'artifacts':[{'artifactId':'a','name':'n',"
        "'description':'d','parts':[{'kind':'text','text':''}],'extensions':['x'],'metadata':{}}],"
        "'history':[{'kind':'message','messageId':'h','role':'agent','parts':[{'kind':'text',"
        "'text':'b'}]}],'metadata':{'m':{'n':1e3}}}",
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        fx_clear(&self);
        fx_ok(&self, a2a_result_read(A2A_FORM_0_3, A2A_GET_TASK, fx_json(&self, tasks[i]),
                                     &self.out, &self.fault));
        json_val ours = fx_parse(&self, buf_view(&self.out));
        fx_clear(&self);
        fx_ok(&self, a2a_result_write(A2A_FORM_0_3, A2A_GET_TASK, ours, &self.out));
        fx_wrote(&self, tasks[i]);
    }
    fx_fini(&self);
}

static void waiting_is_what_all_forms_do_unless_told(void **state)
{
    (void)state;
#define NEW "'message':{'messageId':'m','role':'ROLE_USER','parts':[{'text':'a'}]}"
#define OLD "'message':{'messageId':'m','role':'user','parts':[{'kind':'text','text':'a'}]}"
#define PROTO "'message':{'messageId':'m','role':'ROLE_USER','content':[{'text':'a'}]}"
    static const struct {
        a2a_form form;
        const char *theirs;
        const char *ours;
    } cases[] = {
        {A2A_FORM_0_3, "{" OLD "}", "{" NEW "}"},
        {A2A_FORM_0_3, "{" OLD ",'configuration':{}}", "{" NEW "}"},
        {A2A_FORM_0_3, "{" OLD ",'configuration':{'blocking':null,'acceptedOutputModes':[]}}",
         "{" NEW "}"},
        {A2A_FORM_0_3, "{" OLD ",'configuration':{'historyLength':0}}",
         "{" NEW ",'configuration':{'historyLength':0}}"},
        {A2A_FORM_0_3, "{" OLD ",'configuration':{'blocking':false}}",
         "{" NEW ",'configuration':{'returnImmediately':true}}"},
        {A2A_FORM_0_3_PROTO, "{" PROTO "}", "{" NEW "}"},
        {A2A_FORM_0_3_PROTO, "{" PROTO ",'configuration':{'blocking':true,'historyLength':0}}",
         "{" NEW "}"},
        {A2A_FORM_0_3_PROTO, "{" PROTO ",'configuration':{}}",
         "{" NEW ",'configuration':{'returnImmediately':true}}"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fx_clear(&self);
        fx_ok(&self, a2a_params_read(cases[i].form, A2A_SEND_MESSAGE,
                                     fx_json(&self, cases[i].theirs), &self.out, &self.fault));
        fx_wrote(&self, cases[i].ours);
    }
    fx_clear(&self);
    fx_ok(&self, a2a_params_write(A2A_FORM_0_3, A2A_SEND_MESSAGE, fx_json(&self, "{" NEW "}"),
                                  &self.out, &self.fault));
    fx_wrote(&self, "{'message':{'kind':'message','messageId':'m','role':'user','parts':[{'kind':"
                    "'text','text':'a'}]},'configuration':{'acceptedOutputModes':[],"
                    "'blocking':true}}");
    fx_fini(&self);
}

static void messages_of_0_1_get_ids_of_their_own(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    bay_str ids[2];
    for (size_t i = 0; i < 2; i++) {
        fx_clear(&self);
        fx_ok(&self, a2a_params_read(A2A_FORM_0_1, A2A_SEND_MESSAGE,
                                     fx_json(&self, "{'id':'t','message':{'role':'user','parts':["
                                                    "{'type':'text','text':'a'}]}}"),
                                     &self.out, &self.fault));
        json_val read = fx_parse(&self, buf_view(&self.out));
        ids[i] = json_raw(json_get(json_get(read, STR("message")), STR("messageId")));
        assert_int_equal(ids[i].len, 34);
        assert_true(json_str_eq(json_get(json_get(read, STR("message")), STR("taskId")), STR("t")));
        assert_true(
            json_true(json_get(json_get(read, STR("metadata")), STR("patchbay/clientTaskId"))));
    }
    assert_false(str_eq(ids[0], ids[1]));
    fx_fini(&self);
}

static void webhooks_get_what_their_form_expects(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    json_val event = fx_json(&self, "{'statusUpdate':{'taskId':'t','contextId':'c','status':{"
                                    "'state':'TASK_STATE_WORKING'}}}");
    json_val task = fx_json(&self, "{'id':'t','contextId':'c','status':{'state':"
                                   "'TASK_STATE_WORKING'}}");
    static const char *const bodies[A2A_FORMS] = {
        [A2A_FORM_1_0] = "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':"
                         "'TASK_STATE_WORKING'}}}",
        [A2A_FORM_0_3] = "{'kind':'task','id':'t','contextId':'c','status':{'state':'working'}}",
        [A2A_FORM_0_3_PROTO] =
            "{'kind':'task','id':'t','contextId':'c','status':{'state':'working'}}",
        [A2A_FORM_0_1] = "{'id':'t','sessionId':'c','status':{'state':'working'}}",
    };
    for (size_t form = 0; form < A2A_FORMS; form++) {
        fx_clear(&self);
        fx_ok(&self, a2a_push_write((a2a_form)form, event, task, &self.out));
        fx_wrote(&self, bodies[form]);
    }
    json_val message = fx_json(&self, "{'message':{'messageId':'m','role':'ROLE_AGENT','parts':["
                                      "{'text':'a'}]}}");
    fx_clear(&self);
    fx_ok(&self, a2a_push_write(A2A_FORM_0_3, message, JSON_NONE, &self.out));
    fx_wrote(&self, "{'kind':'message','messageId':'m','role':'agent','parts':[{'kind':'text',"
                    "'text':'a'}]}");
    fx_fini(&self);
}

/* Every allocation fails in turn; what was asked comes out whole or not at all. */
static void every_lack_of_memory_is_told(void **state)
{
    (void)state;
    static const char *const texts[A2A_FORMS] = {
        [A2A_FORM_1_0] = "{'message':{'messageId':'m','role':1,'parts':[{'text':'a'}]}}",
        [A2A_FORM_0_3] = "{'message':{'messageId':'m','role':'user','parts':[{'kind':'text','text':"
                         "'a','metadata':{'patchbay/filename':'f','k\\n':1}}]}}",
        [A2A_FORM_0_3_PROTO] = "{'request':{'message_id':'m','role':1,'content':[{'data':{'data':{"
                               "'value':1}}}],'metadata':{'patchbay/parts':{'0':{'isWrapped':true}"
                               "},'k\\n':1}}}",
        [A2A_FORM_0_1] = "{'id':'t','message':{'role':'user','parts':[{'type':'text','text':'a'}],"
                         "'metadata':{'k\\n':1,'patchbay/extensions':['e']}}}",
    };
    for (size_t form = 0; form < A2A_FORMS; form++) {
        fx self;
        fx_init(&self);
        json_val value = fx_json(&self, texts[form]);
        for (size_t at = 0; failing_memory_start(at); at++) {
            buf out;
            json_doc doc;
            arena memory;
            buf_init(&out, 1U << 16);
            arena_init(&memory, 1U << 20);
            bay_err err = a2a_params_read((a2a_form)form, A2A_SEND_MESSAGE, value, &out, NULL);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            assert_true(err == BAY_OK || out.len == 0);
            if (err == BAY_OK && json_parse(&doc, buf_view(&out), NULL, &memory, NULL) == BAY_OK) {
                for (size_t to = 0; to < A2A_FORMS; to++) {
                    buf made;
                    buf_init(&made, 1U << 16);
                    err = a2a_params_write((a2a_form)to, A2A_SEND_MESSAGE, json_root(&doc), &made,
                                           NULL);
                    assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
                    buf_fini(&made);
                }
            }
            arena_fini(&memory);
            buf_fini(&out);
            failing_memory_check();
        }
        fx_fini(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_params_are_refused_where_they_are_bad),
        cmocka_unit_test(methods_that_a_form_lacks_are_not_found),
        cmocka_unit_test(bad_answers_are_refused),
        cmocka_unit_test(events_look_as_the_form_has_them),
        cmocka_unit_test(nothing_of_0_3_is_lost),
        cmocka_unit_test(waiting_is_what_all_forms_do_unless_told),
        cmocka_unit_test(messages_of_0_1_get_ids_of_their_own),
        cmocka_unit_test(webhooks_get_what_their_form_expects),
        cmocka_unit_test(every_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
