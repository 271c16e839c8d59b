/* One model, many forms: what is asked in any form is the same in 1.0, and what is answered in 1.0
 * comes back the same from every form that it was written in. */
#include "unit/a2a/dialect_fixture.h"

/* The same params, as each form has them; NULL: the form cannot say it. */
static const struct {
    a2a_method method;
    const char *in[A2A_FORMS];
} asked[] = {
    {A2A_SEND_MESSAGE,
     {[A2A_FORM_1_0] = "{'message':{'messageId':'m','role':'ROLE_USER','taskId':'t',"
                       "'contextId':'c','parts':[{'text':'hi'}]},"
                       "'configuration':{'historyLength':2}}",
      [A2A_FORM_0_3] = "{'message':{'kind':'message','messageId':'m','role':'user','taskId':'t',"
                       "'contextId':'c','parts':[{'kind':'text','text':'hi'}]},"
                       "'configuration':{'historyLength':2,'blocking':true}}",
      [A2A_FORM_0_3_PROTO] = "{'request':{'message_id':'m','role':1,'task_id':'t',"
                             "'context_id':'c','content':[{'text':'hi'}]},"
                             "'configuration':{'history_length':2,'blocking':true}}"}},
    {A2A_SEND_STREAMING_MESSAGE,
     {[A2A_FORM_1_0] =
          "{'message':{'messageId':'m','role':'ROLE_USER','parts':["
          "{'raw':'aGk=','mediaType':'text/plain'},{'url':'http://x/y'},{'data':{'a':1}}]},"
          "'configuration':{'returnImmediately':true,'acceptedOutputModes':['text/plain'],"
          "'taskPushNotificationConfig':{'url':'http://h','token':'k','authentication':{"
          "'scheme':'Bearer','credentials':'s'}}},'metadata':{'x':[1.50]}}",
      [A2A_FORM_0_3] =
          "{'message':{'messageId':'m','role':'user','parts':["
          "{'kind':'file','file':{'bytes':'aGk','mimeType':'text/plain'}},"
          "{'kind':'file','file':{'uri':'http://x/y'}},{'kind':'data','data':{'a':1}}]},"
          "'configuration':{'blocking':false,'acceptedOutputModes':['text/plain'],"
          "'pushNotificationConfig':{'url':'http://h','token':'k','authentication':{"
          "'schemes':['Bearer'],'credentials':'s'}}},'metadata':{'x':[1.50]}}",
      [A2A_FORM_0_3_PROTO] = "{'message':{'messageId':'m','role':'ROLE_USER','content':["
                             "{'file':{'fileWithBytes':'aGk=','mimeType':'text/plain'}},"
                             "{'file':{'fileWithUri':'http://x/y'}},{'data':{'data':{'a':1}}}]},"
                             "'configuration':{'acceptedOutputModes':['text/plain'],"
                             "'pushNotification':{'url':'http://h','token':'k','authentication':{"
                             "'schemes':['Bearer'],'credentials':'s'}}},'metadata':{'x':[1.50]}}"}},
    {A2A_GET_TASK,
     {[A2A_FORM_1_0] = "{'id':'t','historyLength':3}",
      [A2A_FORM_0_3] = "{'id':'t','historyLength':3,'metadata':{}}",
      [A2A_FORM_0_3_PROTO] = "{'name':'tasks/t','history_length':3}",
      [A2A_FORM_0_1] = "{'id':'t','historyLength':3}"}},
    {A2A_CANCEL_TASK,
     {[A2A_FORM_1_0] = "{'id':'a/b'}",
      [A2A_FORM_0_3] = "{'id':'a/b'}",
      [A2A_FORM_0_3_PROTO] = "{'name':'tasks/a/b'}",
      [A2A_FORM_0_1] = "{'id':'a/b'}"}},
    {A2A_SUBSCRIBE_TO_TASK,
     {[A2A_FORM_1_0] = "{'id':'t'}",
      [A2A_FORM_0_3] = "{'id':'t'}",
      [A2A_FORM_0_3_PROTO] = "{'name':'tasks/t'}",
      [A2A_FORM_0_1] = "{'id':'t','historyLength':null}"}},
    {A2A_CREATE_PUSH_CONFIG,
     {[A2A_FORM_1_0] = "{'taskId':'t','id':'t','url':'http://h'}",
      [A2A_FORM_0_3] = "{'taskId':'t','pushNotificationConfig':{'url':'http://h'}}",
      [A2A_FORM_0_3_PROTO] =
          "{'parent':'tasks/t','config':{'pushNotificationConfig':{'url':'http://h'}}}",
      [A2A_FORM_0_1] = "{'id':'t','pushNotificationConfig':{'url':'http://h'}}"}},
    {A2A_GET_PUSH_CONFIG,
     {[A2A_FORM_1_0] = "{'taskId':'t','id':'t'}",
      [A2A_FORM_0_3] = "{'id':'t'}",
      [A2A_FORM_0_3_PROTO] = "{'name':'tasks/t/pushNotificationConfigs/t'}",
      [A2A_FORM_0_1] = "{'id':'t'}"}},
    {A2A_DELETE_PUSH_CONFIG,
     {[A2A_FORM_1_0] = "{'taskId':'t','id':'p'}",
      [A2A_FORM_0_3] = "{'id':'t','pushNotificationConfigId':'p'}",
      [A2A_FORM_0_3_PROTO] = "{'name':'tasks/t/pushNotificationConfigs/p'}"}},
    {A2A_LIST_PUSH_CONFIGS,
     {[A2A_FORM_1_0] = "{'taskId':'t'}",
      [A2A_FORM_0_3] = "{'id':'t'}",
      [A2A_FORM_0_3_PROTO] = "{'parent':'tasks/t'}"}},
    {A2A_GET_EXTENDED_CARD,
     {[A2A_FORM_1_0] = "{}", [A2A_FORM_0_3] = "{}", [A2A_FORM_0_3_PROTO] = "{}"}},
};

static void what_is_asked_is_the_same(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            if (asked[i].in[form] == NULL) {
                continue;
            }
            fx_clear(&self);
            fx_ok(&self,
                  a2a_params_read((a2a_form)form, asked[i].method,
                                  fx_json(&self, asked[i].in[form]), &self.out, &self.fault));
            fx_wrote(&self, asked[i].in[A2A_FORM_1_0]);
            fx_is_normal(&self, (a2a_type)a2a_methods[asked[i].method].request,
                         buf_view(&self.out));
        }
    }
    fx_fini(&self);
}

/* 1.0, written in a form, read again. 0.1 gives each message a task of the client's. */
static void what_is_passed_on_is_the_same(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            bool is_sent = asked[i].method == A2A_SEND_MESSAGE ||
                           asked[i].method == A2A_SEND_STREAMING_MESSAGE;
            if (form == A2A_FORM_0_1 && (is_sent || asked[i].in[form] == NULL)) {
                continue;
            }
            json_val ours = fx_json(&self, asked[i].in[A2A_FORM_1_0]);
            fx_clear(&self);
            fx_ok(&self,
                  a2a_params_write((a2a_form)form, asked[i].method, ours, &self.out, &self.fault));
            json_val theirs = fx_parse(&self, buf_view(&self.out));
            fx_clear(&self);
            fx_ok(&self,
                  a2a_params_read((a2a_form)form, asked[i].method, theirs, &self.out, &self.fault));
            fx_wrote(&self, asked[i].in[A2A_FORM_1_0]);
        }
    }
    fx_fini(&self);
}

#define RICH_MESSAGE                                                                               \
    "{'messageId':'m','contextId':'c','taskId':'t','role':'ROLE_AGENT','parts':["                  \
    "{'text':'a','mediaType':'text/markdown','filename':'f.md','metadata':{'k':1}},"               \
    "{'raw':'aGk=','filename':'g','mediaType':'x/y','metadata':{}},{'url':'http://u'},"            \
    "{'data':[1,2.50],'metadata':{'z':null}},{'data':null},{'data':{'value':1}},{'text':''}],"     \
    "'metadata':{'n':12345678901234567890},'extensions':['e'],'referenceTaskIds':['r']}"
#define RICH_TASK                                                                                  \
    "{'id':'t','contextId':'c','status':{'state':'TASK_STATE_REJECTED','message':" RICH_MESSAGE    \
    ",'timestamp':'2026-01-02T03:04:05.678Z'},'artifacts':[{'artifactId':'7','parts':[{'text':'"   \
    "x'}]},{'artifactId':'a','name':'n','description':'d','parts':[{'data':true,'filename':'q'}]," \
    "'metadata':{'m':{}},'extensions':['u']}],'history':[" RICH_MESSAGE "],'metadata':{'o':[]}}"

static const struct {
    a2a_method method;
    const char *result;
    bool not_in_0_1;
} answered[] = {
    {A2A_SEND_MESSAGE, "{'task':" RICH_TASK "}", false},
    {A2A_SEND_MESSAGE, "{'message':" RICH_MESSAGE "}", false},
    {A2A_GET_TASK, RICH_TASK, false},
    {A2A_GET_TASK, "{'id':'t','status':{'state':'TASK_STATE_UNSPECIFIED'}}", false},
    {A2A_CANCEL_TASK, "{'id':'t','status':{'state':'TASK_STATE_CANCELED'}}", false},
    {A2A_CREATE_PUSH_CONFIG,
     "{'taskId':'t','id':'p','url':'http://h','token':'k','authentication':{'scheme':'Bearer',"
     "'credentials':'s'}}",
     false},
    {A2A_GET_PUSH_CONFIG, "{'taskId':'t','id':'p','url':'http://h'}", false},
    {A2A_LIST_PUSH_CONFIGS,
     "{'configs':[{'taskId':'t','id':'p','url':'http://h'},{'taskId':'t','id':'q','url':'u'}]}",
     true},
    {A2A_DELETE_PUSH_CONFIG, "{}", true},
};

static void what_is_answered_is_the_same(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            if (form == A2A_FORM_0_1 && answered[i].not_in_0_1) {
                continue;
            }
            json_val ours = fx_json(&self, answered[i].result);
            fx_clear(&self);
            fx_ok(&self, a2a_result_write((a2a_form)form, answered[i].method, ours, &self.out));
            json_val theirs = fx_parse(&self, buf_view(&self.out));
            fx_clear(&self);
            fx_ok(&self, a2a_result_read((a2a_form)form, answered[i].method, theirs, &self.out,
                                         &self.fault));
            fx_wrote(&self, answered[i].result);
            fx_is_normal(&self, (a2a_type)a2a_methods[answered[i].method].response,
                         buf_view(&self.out));
        }
    }
    fx_fini(&self);
}

static const char *const events[] = {
    "{'task':" RICH_TASK "}",
    "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}}}",
    "{'message':" RICH_MESSAGE "}",
    "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_AUTH_REQUIRED',"
    "'message':" RICH_MESSAGE "},'metadata':{'a':1}}}",
    "{'artifactUpdate':{'taskId':'t','contextId':'c','artifact':{'artifactId':'a','parts':["
    "{'text':'x','filename':'f'}]},'append':true,'lastChunk':true,'metadata':{'a':1}}}",
    "{'artifactUpdate':{'taskId':'t','contextId':'','artifact':{'artifactId':'0','parts':["
    "{'data':{}}]}}}",
};

/* A view says what was read as text, and is what came where nothing had to change. */
static void views_alike(fx *self, a2a_form form, json_val theirs, bool is_last)
{
    json_val view = JSON_NONE;
    bool view_is_last = !is_last;
    fx_ok(self, a2a_event_view(form, theirs, &self->memory, &view, &view_is_last, &self->fault));
    assert_true(str_eq(json_raw(view), buf_view(&self->out)));
    assert_int_equal(view_is_last, is_last);
    assert_int_equal(json_raw(view).at == json_raw(theirs).at, form == A2A_FORM_1_0);
    json_val again = fx_parse(self, json_raw(view));
    assert_int_equal(json_count(view), json_count(again));
    assert_true(json_hash(view, 1) == json_hash(again, 1));
}

static void what_happens_is_the_same(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            json_val ours = fx_json(&self, events[i]);
            bool is_last = false;
            fx_clear(&self);
            fx_ok(&self, a2a_event_write((a2a_form)form, ours, true, &self.out));
            json_val theirs = fx_parse(&self, buf_view(&self.out));
            fx_clear(&self);
            fx_ok(&self, a2a_event_read((a2a_form)form, theirs, &self.out, &is_last, &self.fault));
            fx_wrote(&self, events[i]);
            fx_is_normal(&self, A2A_TYPE_STREAM_RESPONSE, buf_view(&self.out));
            bool is_update = strstr(events[i], "'statusUpdate'") != NULL;
            assert_int_equal(is_last && is_update, form != A2A_FORM_1_0 && is_update);
            views_alike(&self, (a2a_form)form, theirs, is_last);
        }
    }
    fx_fini(&self);
}

/* What is not in normal form is made so, and the view is of what was made. */
static void what_is_written_otherwise_is_viewed_in_normal_form(void **state)
{
    (void)state;
    static const char *const loose[] = {
        "{'task':{'id':'t','status':{'state':2},'history':null}}",
        "{'status_update':{'task_id':'t','context_id':'c','status':{'state':'TASK_STATE_WORKING'}}"
        "}",
        "{\n'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}}}",
        "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}},'unknown':1}",
        "{'statusUpdate':{'taskId':'t','status':{'state':'TASK_STATE_WORKING'}}}",
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(loose); i++) {
        json_val theirs = fx_json(&self, loose[i]);
        json_val view = JSON_NONE;
        bool is_last = true;
        fx_clear(&self);
        fx_ok(&self,
              a2a_event_view(A2A_FORM_1_0, theirs, &self.memory, &view, &is_last, &self.fault));
        assert_false(is_last);
        assert_ptr_not_equal(json_raw(view).at, json_raw(theirs).at);
        fx_is_normal(&self, A2A_TYPE_STREAM_RESPONSE, json_raw(view));
        fx_ok(&self, a2a_event_read(A2A_FORM_1_0, theirs, &self.out, &is_last, &self.fault));
        assert_true(str_eq(json_raw(view), buf_view(&self.out)));
    }
    fx_fini(&self);
}

/* No view, and nothing said of it, when there is no room or the event is wrong. */
static void what_cannot_be_viewed_leaves_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{}", "1", "{'task':{'id':'t'}}",
                                        "{'kind':'status-update','taskId':'t','status':{}}"};
    fx self;
    fx_init(&self);
    json_val theirs = fx_json(&self, "{'kind':'status-update','taskId':'t','final':true,"
                                     "'status':{'state':'working'}}");
    for (size_t i = 0; i <= ARRAY_LEN(wrong); i++) {
        arena small;
        json_val view = theirs;
        bool is_last = false;
        arena_init(&small, i == ARRAY_LEN(wrong) ? 64 : 1 << 16);
        json_val event = i == ARRAY_LEN(wrong) ? theirs : fx_json(&self, wrong[i]);
        bay_err err = a2a_event_view(A2A_FORM_0_3, event, &small, &view, &is_last, &self.fault);
        assert_int_equal(err, i == ARRAY_LEN(wrong) ? BAY_ERR_LIMIT : BAY_ERR_PROTOCOL);
        assert_ptr_equal(json_raw(view).at, json_raw(theirs).at);
        assert_false(is_last);
        arena_fini(&small);
    }
    fx_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_is_the_same),
        cmocka_unit_test(what_is_passed_on_is_the_same),
        cmocka_unit_test(what_is_answered_is_the_same),
        cmocka_unit_test(what_happens_is_the_same),
        cmocka_unit_test(what_is_written_otherwise_is_viewed_in_normal_form),
        cmocka_unit_test(what_cannot_be_viewed_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
