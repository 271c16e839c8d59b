/* Webhooks through a gateway whose caller and agent speak different versions: registered in the
 * one, told in the other; and what is not a notification for them. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "patchbay/agent.h"
#include "support/skipped.h"
#include "support/webhook_keeper.h"

#define V1 "A2A-Version: 1.0\r\n"

#ifndef BAY_NO_TLS

/* ---- an agent that tells webhooks --------------------------------------------------------------
 */

typedef struct teller {
    bay_agent *agent;
    net_thread thread;
    uint16_t port;
    atomic_bool may_go;
} teller;

static void on_message(bay_task *task, const bay_message *message, void *user)
{
    teller *self = user;
    bay_str text = bay_message_text(message);
    if (text.len == 4 && memcmp(text.at, "wait", 4) == 0) {
        (void)bay_task_status(task, BAY_TASK_STATE_WORKING, "waiting");
        while (!atomic_load(&self->may_go) && bay_task_sleep(task, 5)) {
        }
    }
    bay_artifact *made = bay_task_artifact(task, "echo.txt", "text/plain");
    (void)bay_artifact_append_str(made, text);
    (void)bay_artifact_close(made);
    (void)bay_task_complete(task, "all done");
}

static void teller_run(void *argument)
{
    bay_diag diag;
    bay_err err = bay_agent_run(((teller *)argument)->agent, &diag);
    (void)err;
}

static void teller_open(teller *self)
{
    bay_diag diag = {0};
    *self = (teller){.agent = bay_agent_new("Teller", "1.0", "Tells webhooks.")};
    bay_skill_tag(bay_agent_skill(self->agent, "any", "Any", "Anything.", on_message, self),
                  "test");
    bay_agent_handler(self->agent, on_message, self);
    bay_agent_push(self->agent);
    bay_agent_push_allow(self->agent, "127.0.0.1");
    assert_int_equal(bay_agent_listen(self->agent, "127.0.0.1:0", &diag), BAY_OK);
    self->port = bay_agent_port(self->agent);
    assert_int_equal(net_thread_start(&self->thread, teller_run, self), BAY_OK);
}

static void teller_close(teller *self)
{
    bay_agent_stop(self->agent);
    net_thread_join(&self->thread);
    bay_agent_free(self->agent);
}

/* ---- the rig -----------------------------------------------------------------------------------
 */

typedef struct scene {
    gateway_rig rig;
    teller far;
    keeper hook;
} scene;

/* `how`: more settings of the agent; `more`: of the gateway. */
static void scene_open(scene *self, const char *how, const char *more, uint32_t workers)
{
    char text[2000];
    int before = rig_descriptors();
    teller_open(&self->far);
    keeper_open(&self->hook);
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'http://127.0.0.1:%u'%s}},'a2a':{%s},"
                   "'timeouts':{'drain':100}}",
                   self->far.port, how, more);
    rig_open(&self->rig, text, workers);
    self->rig.descriptors = before;
}

static void scene_close(scene *self)
{
    int before = self->rig.descriptors;
    gateway_stop(self->rig.gateway);
    net_thread_join(&self->rig.thread);
    teller_close(&self->far);
    keeper_close(&self->hook);
    gateway_free(self->rig.gateway);
    self->rig.gateway = NULL;
    config_free(self->rig.config);
    (void)unlink(self->rig.path);
    assert_int_equal(rig_descriptors(), before);
    assert_int_equal(rig_log_count("s3cret"), 0);
    assert_int_equal(rig_log_count("hook-tok"), 0);
}

#define ALLOWED "'webhooks':['127.0.0.1']"

static void post(const gateway_rig *rig, client *one, const char *path, const char *fields,
                 const char *body)
{
    client_open(one, rig);
    client_post(one, path, fields, body);
    (void)client_reply(one);
}

static void expect(const client *one, const char *part)
{
    if (client_find(one, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)one->got.len, one->got.at);
    }
    assert_non_null(client_find(one, part));
}

/* ---- every version of caller and agent ---------------------------------------------------------
 */

static const char *const agents_of_versions[] = {
    ",'version':'1.0','binding':'JSONRPC'", ",'version':'1.0','binding':'HTTP+JSON'",
    ",'version':'0.3','binding':'JSONRPC'", ",'version':'0.3','binding':'HTTP+JSON'",
    ",'version':'0.2','binding':'JSONRPC'", ",'version':'0.1','binding':'JSONRPC'",
#ifndef BAY_NO_HTTP2
    ",'version':'1.0','binding':'GRPC'",    ",'version':'0.3','binding':'GRPC'",
#endif
};

/* How a caller of a version registers a webhook with a message, and how it is told. */
static const struct {
    const char *name;
    const char *path;
    const char *fields;
    const char *body; /* its port and path */
    const char *told[6];
} callers[] = {
    {"1.0",
     "/a2a/far",
     V1,
     "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m-1','role':"
     "'ROLE_USER','parts':[{'text':'hello'}]},'configuration':{'taskPushNotificationConfig':{"
     "'url':'http://127.0.0.1:%u/hook%zu?key=s3cret','token':'hook-tok','authentication':{'scheme':"
     "'Bearer','credentials':'s3cret'}}}}}",
     {"\"TASK_STATE_COMPLETED\"", "A2A-Version: 1.0\r\n", "Content-Type: application/a2a+json\r\n",
      "all done"}},
    {"1.0 REST",
     "/a2a/far/message:send",
     V1,
     "{'message':{'messageId':'m-2','role':'ROLE_USER','parts':[{'text':'hello'}]},"
     "'configuration':{'taskPushNotificationConfig':{'url':"
     "'http://127.0.0.1:%u/hook%zu?key=s3cret','token':'hook-tok','authentication':{'scheme':"
     "'Bearer','credentials':'s3cret'}}}}",
     {"\"TASK_STATE_COMPLETED\"", "A2A-Version: 1.0\r\n", "all done"}},
    {"0.3",
     "/a2a/far",
     "",
     "{'jsonrpc':'2.0','id':1,'method':'message/send','params':{'message':{'kind':'message',"
     "'messageId':'m-3','role':'user','parts':[{'kind':'text','text':'hello'}]},'configuration':{"
     "'blocking':true,'pushNotificationConfig':{'url':'http://127.0.0.1:%u/hook%zu?key=s3cret',"
     "'token':'hook-tok','authentication':{'schemes':['Bearer'],'credentials':'s3cret'}}}}}",
     {"\"state\":\"completed\"", "\"kind\":\"task\"", "A2A-Version: 0.3\r\n",
      "Content-Type: application/json\r\n", "all done", "\"text\":\"hello\""}},
    {"0.3 REST",
     "/a2a/far/v1/message:send",
     "",
     "{'message':{'messageId':'m-4','role':'ROLE_USER','content':[{'text':'hello'}]},"
     "'configuration':{'blocking':true,'pushNotification':{'url':"
     "'http://127.0.0.1:%u/hook%zu?key=s3cret','token':'hook-tok','authentication':{'schemes':["
     "'Bearer'],'credentials':'s3cret'}}}}",
     {"\"state\":\"completed\"", "\"kind\":\"task\"", "A2A-Version: 0.3\r\n"}},
    {"0.2",
     "/a2a/far",
     "A2A-Version: 0.2\r\n",
     "{'jsonrpc':'2.0','id':1,'method':'message/send','params':{'message':{'kind':'message',"
     "'messageId':'m-5','role':'user','parts':[{'kind':'text','text':'hello'}]},'configuration':{"
     "'acceptedOutputModes':[],'pushNotificationConfig':{'url':"
     "'http://127.0.0.1:%u/hook%zu?key=s3cret','token':'hook-tok','authentication':{'schemes':["
     "'Bearer'],'credentials':'s3cret'}}}}}",
     {"\"state\":\"completed\"", "\"kind\":\"task\"", "all done"}},
    {"0.1",
     "/a2a/far",
     "",
     "{'jsonrpc':'2.0','id':1,'method':'tasks/send','params':{'id':'mine-1','message':{'role':"
     "'user','parts':[{'type':'text','text':'hello'}]},'pushNotification':{'url':"
     "'http://127.0.0.1:%u/hook%zu?key=s3cret','token':'hook-tok','authentication':{'schemes':["
     "'Bearer'],'credentials':'s3cret'}}}}",
     {"\"state\":\"completed\"", "\"id\":\"mine-1\"", "A2A-Version: 0.1\r\n", "all done"}},
};

/* The port, then the path's number. */
static void format_body(char *out, size_t size, const char *format, unsigned port, size_t number)
{
    const char *mark = strstr(format, "%u/hook%zu");
    assert_non_null(mark);
    (void)snprintf(out, size, "%.*s%u/hook%zu%s", (int)(mark - format), format, port, number,
                   mark + strlen("%u/hook%zu"));
}

static void one_caller_is_told(scene *self, size_t which)
{
    client one;
    char body[1500], path[60];
    keeper_forget(&self->hook);
    format_body(body, sizeof(body), callers[which].body, self->hook.port, which);
    post(&self->rig, &one, callers[which].path, callers[which].fields, body);
    assert_int_equal(client_status(&one), 200);
    assert_null(client_find(&one, "/push/"));
    client_close(&one);
    for (size_t i = 0; i < ARRAY_LEN(callers[which].told) && callers[which].told[i] != NULL; i++) {
        keeper_expect(&self->hook, callers[which].told[i]);
    }
    (void)snprintf(path, sizeof(path), "POST /hook%zu?key=s3cret HTTP/1.1\r\n", which);
    keeper_expect(&self->hook, path);
    keeper_expect(&self->hook, "\r\nAuthorization: Bearer s3cret\r\n");
    keeper_expect(&self->hook, "\r\nX-A2A-Notification-Token: hook-tok\r\n");
    keeper_expect(&self->hook, "\r\nA2A-Notification-Token: hook-tok\r\n");
    assert_false(keeper_has(&self->hook, "/push/"));
}

static void callers_are_told_in_their_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(agents_of_versions); i++) {
        scene self;
        print_message("%s\n", agents_of_versions[i]);
        scene_open(&self, agents_of_versions[i], ALLOWED, 1 + (i & 1));
        for (size_t k = 0; k < ARRAY_LEN(callers); k++) {
            one_caller_is_told(&self, k);
        }
        scene_close(&self);
    }
}

/* Also where the agent could tell it itself. */
static void agents_need_know_no_webhook(void **state)
{
    (void)state;
    static const size_t some[] = {0, 2, 3, 5}; /* 1.0, 0.3, 0.3 by HTTP+JSON, 0.1 */
    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        scene self;
        print_message("%s\n", agents_of_versions[some[i]]);
        scene_open(&self, agents_of_versions[some[i]], ALLOWED ",'relayWebhooks':true", 2);
        for (size_t k = 0; k < ARRAY_LEN(callers); k++) {
            one_caller_is_told(&self, k);
        }
        scene_close(&self);
    }
}

/* ---- configurations ----------------------------------------------------------------------------
 */

static void id_in(const client *one, const char *before, char out[64])
{
    const char *at = client_find(one, before);
    assert_non_null(at);
    (void)snprintf(out, 64, "%.63s", at + strlen(before));
    out[strcspn(out, "\"")] = '\0';
}

/* A task of 1.0 that waits; its id. */
static void begin_waiting(scene *self, char id[64])
{
    client one;
    post(&self->rig, &one, "/a2a/far", V1,
         "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m2',"
         "'role':'ROLE_USER','parts':[{'text':'wait'}]},'configuration':{'returnImmediately':true}}"
         "}");
    id_in(&one, "\"task\":{\"id\":\"", id);
    client_close(&one);
    bool is_waiting = false;
    uint64_t give_up_ms = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!is_waiting &&
           rig_now_ms() < give_up_ms) { /* so that nothing happens before it may go */
        char body[200];
        (void)snprintf(body, sizeof(body),
                       "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'%s'}}", id);
        post(&self->rig, &one, "/a2a/far", V1, body);
        is_waiting = client_find(&one, "\"waiting\"") != NULL;
        client_close(&one);
    }
    assert_true(is_waiting);
}

static void about(scene *self, client *one, const char *fields, const char *format, ...)
{
    char body[2000];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(body, sizeof(body), format, arguments);
    va_end(arguments);
    post(&self->rig, one, "/a2a/far", fields, body);
    if (client_find(one, "/push/") != NULL) {
        print_error("%.*s\n", (int)one->got.len, one->got.at);
    }
    assert_null(client_find(one, "/push/"));
}

static void configurations_are_the_callers(void **state)
{
    (void)state;
    static const char *const how[] = {",'version':'0.3','binding':'JSONRPC'",
                                      ",'version':'0.3','binding':'HTTP+JSON'",
#ifndef BAY_NO_HTTP2
                                      ",'version':'0.3','binding':'GRPC'",
#endif
                                      "", /* all are told by the gateway */
                                      ",'version':'1.0','binding':'HTTP+JSON'"};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        scene self;
        client one;
        char id[64], url[100];
        print_message("%s\n", how[i]);
        scene_open(&self, how[i], i > 1 ? ALLOWED ",'relayWebhooks':true" : ALLOWED, 2);
        begin_waiting(&self, id);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook", self.hook.port);
        about(&self, &one, V1,
              "{'jsonrpc':'2.0','id':1,'method':'CreateTaskPushNotificationConfig','params':{"
              "'taskId':'%s','id':'cfg','url':'%s','token':'hook-tok','authentication':{'scheme':"
              "'Bearer','credentials':'s3cret'}}}",
              id, url);
        for (int k = 0; k < 3; k++) { /* as it was made, as it is got, in the list */
            expect(&one, url);
            expect(&one, "\"id\":\"cfg\"");
            expect(&one, "\"token\":\"hook-tok\"");
            expect(&one, "\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}");
            client_close(&one);
            about(&self, &one, V1,
                  "{'jsonrpc':'2.0','id':1,'method':'%sTaskPushNotificationConfig%s','params':{"
                  "'taskId':'%s'%s}}",
                  k == 0 ? "Get" : "List", k == 0 ? "" : "s", id, k == 0 ? ",'id':'cfg'" : "");
        }
        client_close(&one);
        /* another version sees it in its own form */
        about(&self, &one, "",
              "{'jsonrpc':'2.0','id':1,'method':'tasks/pushNotificationConfig/get','params':{'id':"
              "'%s','pushNotificationConfigId':'cfg'}}",
              id);
        expect(&one, url);
        expect(&one, "\"schemes\":[\"Bearer\"]");
        client_close(&one);
        about(&self, &one, V1,
              "{'jsonrpc':'2.0','id':1,'method':'DeleteTaskPushNotificationConfig','params':{"
              "'taskId':'%s','id':'cfg'}}",
              id);
        assert_null(client_find(&one, "\"error\""));
        client_close(&one);
        about(&self, &one, V1,
              "{'jsonrpc':'2.0','id':1,'method':'ListTaskPushNotificationConfigs','params':{"
              "'taskId':'%s'}}",
              id);
        assert_null(client_find(&one, url));
        client_close(&one);
        /* one that is made late is told */
        about(&self, &one, V1,
              "{'jsonrpc':'2.0','id':1,'method':'CreateTaskPushNotificationConfig','params':{"
              "'taskId':'%s','url':'%s','token':'late-tok'}}",
              id, url);
        expect(&one, url);
        client_close(&one);
        atomic_store(&self.far.may_go, true);
        keeper_expect(&self.hook, "TASK_STATE_COMPLETED");
        keeper_expect(&self.hook, "A2A-Notification-Token: late-tok");
        assert_false(keeper_has(&self.hook, "hook-tok"));
        scene_close(&self);
    }
}

/* Whoever names its tasks itself does so here, too. */
static void a_client_of_0_1_registers_for_its_own_name(void **state)
{
    (void)state;
    static const char *const how[] = {"", ",'version':'0.3','binding':'HTTP+JSON'"};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        scene self;
        client stream, one;
        char url[100];
        scene_open(&self, how[i], ALLOWED, 2);
        client_open(&stream, &self.rig);
        client_post(&stream, "/a2a/far", "",
                    "{'jsonrpc':'2.0','id':1,'method':'tasks/sendSubscribe','params':{'id':'mine-9'"
                    ",'message':{'role':'user','parts':[{'type':'text','text':'wait'}]}}}");
        client_wait_for(&stream, "waiting");
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook", self.hook.port);
        about(&self, &one, "",
              "{'jsonrpc':'2.0','id':1,'method':'tasks/pushNotification/set','params':{'id':"
              "'mine-9','pushNotificationConfig':{'url':'%s','token':'hook-tok'}}}",
              url);
        for (int k = 0; k < 2; k++) {
            expect(&one, url);
            expect(&one, "\"id\":\"mine-9\"");
            expect(&one, "\"token\":\"hook-tok\"");
            client_close(&one);
            about(&self, &one, "",
                  "{'jsonrpc':'2.0','id':1,'method':'tasks/pushNotification/get','params':{'id':"
                  "'mine-9'}}");
        }
        client_close(&one);
        atomic_store(&self.far.may_go, true);
        keeper_expect(&self.hook, "\"state\":\"completed\"");
        keeper_expect(&self.hook, "\"id\":\"mine-9\"");
        keeper_expect(&self.hook, "\r\nA2A-Notification-Token: hook-tok\r\n");
        client_close(&stream);
        scene_close(&self);
    }
}

static void what_is_not_registered(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const char *why;
    } cases[] = {
        {"http://10.0.0.1/x", "accepts such webhooks only if"},
        {"http://169.254.169.254/latest/meta-data", "accepts such webhooks only if"},
        {"http://[::1]:9/", "accepts such webhooks only if"},
        {"ftp://hooks.example/", "url"},
        {"https://user:pw@hooks.example/", "url"},
    };
    scene self;
    client one;
    char id[64], url[1700];
    scene_open(&self, ",'version':'0.3','binding':'JSONRPC'", ALLOWED, 1);
    begin_waiting(&self, id);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        about(&self, &one, V1,
              "{'jsonrpc':'2.0','id':1,'method':'CreateTaskPushNotificationConfig','params':{"
              "'taskId':'%s','url':'%s'}}",
              id, cases[i].url);
        expect(&one, "-32602");
        expect(&one, cases[i].why);
        client_close(&one);
    }
    static const char *const cards[] = {"agent-card.json", "agent.json"};
    for (size_t i = 0; i < ARRAY_LEN(cards); i++) { /* what works is promised, whatever is spoken */
        char request[200];
        (void)snprintf(request, sizeof(request),
                       "GET /a2a/far/.well-known/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n" V1 "\r\n",
                       cards[i]);
        client_open(&one, &self.rig);
        assert_true(client_send(&one, request));
        assert_int_equal(client_reply(&one), 200);
        expect(&one, "\"pushNotifications\":true");
        client_close(&one);
    }
    memset(url, 'a', sizeof(url) - 1);
    url[sizeof(url) - 1] = '\0';
    about(&self, &one, V1,
          "{'jsonrpc':'2.0','id':1,'method':'CreateTaskPushNotificationConfig','params':{"
          "'taskId':'%s','url':'https://hooks.example/%s'}}",
          id, url);
    expect(&one, "too long");
    client_close(&one);
    about(&self, &one, V1,
          "{'jsonrpc':'2.0','id':1,'method':'CreateTaskPushNotificationConfig','params':{"
          "'taskId':'nobodys','url':'https://hooks.example/'}}");
    expect(&one, "-32001");
    client_close(&one);
    atomic_store(&self.far.may_go, true);
    scene_close(&self);
}

/* What a process makes once and keeps is there before anything is counted. */
static int warm_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        teller far;
        teller_open(&far);
        teller_close(&far);
    }
    return 0;
}

#else
#define WHY "this build has no TLS, so nothing is sealed"
SKIPPED(callers_are_told_in_their_version, WHY)
SKIPPED(agents_need_know_no_webhook, WHY)
SKIPPED(configurations_are_the_callers, WHY)
SKIPPED(a_client_of_0_1_registers_for_its_own_name, WHY)
SKIPPED(what_is_not_registered, WHY)
#define warm_up NULL
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_are_told_in_their_version),
        cmocka_unit_test(agents_need_know_no_webhook),
        cmocka_unit_test(configurations_are_the_callers),
        cmocka_unit_test(a_client_of_0_1_registers_for_its_own_name),
        cmocka_unit_test(what_is_not_registered),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
