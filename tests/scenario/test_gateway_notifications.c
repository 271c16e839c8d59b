/* What agents, and others, post to the gateway's own webhooks: who is heard, what is passed on, and
 * what is left when something fails or the gateway is started anew. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "support/skipped.h"
#include "support/webhook_keeper.h"

#include "base/check.h"

#ifndef BAY_NO_TLS

#define V1 "A2A-Version: 1.0\r\n"
#define WORKING(id)                                                                                \
    "{'statusUpdate':{'taskId':'" id "','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}"
#define TASK                                                                                       \
    "{'id':'t1','contextId':'c','status':{'state':'TASK_STATE_WORKING'},'artifacts':["             \
    "{'artifactId':'a','parts':[{'text':'so far'}]}]}"

enum { PATH_BYTES = 3000, TOKEN_BYTES = 9000 };

/* ---- an agent of 1.0 that does what the test says ----------------------------------------------
 */

typedef struct farce {
    keeper server;
    char url[100];
    char push_path[PATH_BYTES]; /* what it was given last */
    char push_token[TOKEN_BYTES];
    atomic_bool has_no_task;
    atomic_bool is_broken;
} farce;

/* A text member of the request. */
static void copy_member(const char *request, const char *name, char *out, size_t size)
{
    const char *at = strstr(request, name);
    if (at != NULL) {
        at += strlen(name);
        size_t len = strcspn(at, "\"");
        assert_true(len < size);
        memcpy(out, at, len);
        out[len] = '\0';
    }
}

static void put(buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        buf_char(out, *text == '\'' ? '"' : *text);
    }
}

static bool farce_body(void *user, const char *request, buf *out)
{
    farce *self = user;
    if (strncmp(request, "GET ", 4) == 0) {
        put(out, "{'name':'Farce','description':'d','version':'1','supportedInterfaces':[{'url':'");
        put(out, self->url);
        put(out, "/rpc','protocolBinding':'JSONRPC','protocolVersion':'1.0'}],'capabilities':{"
                 "'pushNotifications':true},'defaultInputModes':['text/plain'],"
                 "'defaultOutputModes':['text/plain'],'skills':[{'id':'a','name':'A',"
                 "'description':'d','tags':['t']}]}");
        return true;
    }
    char id[20] = "";
    const char *number = strstr(request, "\"id\":");
    (void)snprintf(id, sizeof(id), "%ld", number != NULL ? strtol(number + 5, NULL, 10) : 0);
    put(out, "{'jsonrpc':'2.0','id':");
    put(out, id);
    if (atomic_load(&self->is_broken)) {
        put(out, ",'error':{'code':-32603,'message':'broken'}}");
    } else if (strstr(request, "\"GetTask\"") != NULL && atomic_load(&self->has_no_task)) {
        put(out, ",'error':{'code':-32001,'message':'none'}}");
    } else if (strstr(request, "\"GetTask\"") != NULL) {
        put(out, ",'result':" TASK "}");
    } else {
        char path[PATH_BYTES] = "";
        copy_member(request, "\"url\":\"", path, sizeof(path));
        const char *start = strstr(path, "/a2a/");
        (void)snprintf(self->push_path, sizeof(self->push_path), "%s", start != NULL ? start : "");
        copy_member(request, "\"token\":\"", self->push_token, sizeof(self->push_token));
        put(out, ",'result':{'task':" TASK "}}");
    }
    return true;
}

static void farce_open(farce *self)
{
    memset(self, 0, sizeof(*self));
    keeper_open(&self->server);
    (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u", self->server.port);
    self->server.user = self;
    self->server.body = farce_body;
}

/* ---- the rig -----------------------------------------------------------------------------------
 */

typedef struct scene {
    gateway_rig rig;
    farce far;
    keeper hook;
    int before;
    char settings[2000];
} scene;

static void gateway_open(scene *self, uint32_t workers)
{
    rig_open(&self->rig, self->settings, workers);
}

static void gateway_close(scene *self)
{
    gateway_stop(self->rig.gateway);
    net_thread_join(&self->rig.thread);
    assert_int_equal(self->rig.result, BAY_OK);
    gateway_free(self->rig.gateway);
    config_free(self->rig.config);
    (void)unlink(self->rig.path);
    assert_int_equal(rig_log_count("s3cret"), 0);
    assert_int_equal(rig_log_count("hook-tok"), 0);
    assert_int_equal(rig_log_count("/push/"), 0);
}

#define ALLOWED "'a2a':{'webhooks':['127.0.0.1']}"

static void scene_open(scene *self, const char *more, uint32_t workers)
{
    self->before = rig_descriptors();
    farce_open(&self->far);
    keeper_open(&self->hook);
    (void)snprintf(
        self->settings, sizeof(self->settings),
        "{'agents':{'far':{'url':'%s'},'near':{'url':'%s'}},'timeouts':{'drain':100},%s}",
        self->far.url, self->far.url, more);
    gateway_open(self, workers);
}

static void scene_close(scene *self)
{
    gateway_close(self);
    keeper_close(&self->far.server);
    keeper_close(&self->hook);
    assert_int_equal(rig_descriptors(), self->before);
}

/* Registers a webhook by a caller of 0.3, of whom the agent does not know; then the agent has an
 * address of the gateway. */
static void register_hook(scene *self, const char *agent, const char *task)
{
    char path[40], body[1000], more[100] = "";
    client one;
    (void)snprintf(path, sizeof(path), "/a2a/%s", agent);
    if (task != NULL) {
        (void)snprintf(more, sizeof(more), ",'taskId':'%s'", task);
    }
    (void)snprintf(
        body, sizeof(body),
        "{'jsonrpc':'2.0','id':1,'method':'message/send','params':{'message':{'kind':"
        "'message','messageId':'m','role':'user','parts':[{'kind':'text','text':'x'}]%s},"
        "'configuration':{'blocking':true,'pushNotificationConfig':{'url':"
        "'http://127.0.0.1:%u/hook?key=s3cret','token':'hook-tok','authentication':{"
        "'schemes':['Bearer'],'credentials':'s3cret'}}}}}",
        more, self->hook.port);
    client_open(&one, &self->rig);
    client_post(&one, path, "", body);
    assert_int_equal(client_reply(&one), 200);
    assert_null(client_find(&one, "/push/"));
    client_close(&one);
    assert_true(strncmp(self->far.push_path, "/a2a/", 5) == 0);
    assert_true(strlen(self->far.push_token) > 40);
    /* what is secret is in neither, in no spelling */
    assert_null(strstr(self->far.push_path, "s3cret"));
    assert_null(strstr(self->far.push_token, "hook-tok"));
    assert_false(keeper_has(&self->far.server, "s3cret"));
    assert_false(keeper_has(&self->far.server, "hook-tok"));
}

#define TOKEN "X-A2A-Notification-Token: %s\r\n"

/* Posts what an agent would; `fields` has a "%s" for the token, or none. */
static int tell(scene *self, const char *path, const char *type, const char *fields,
                const char *token, const char *body, const char *part)
{
    static char head[4 * TOKEN_BYTES];
    client one;
    int len = snprintf(head, sizeof(head),
                       "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\n"
                       "Content-Length: %zu\r\n",
                       path, type, strlen(body));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    len += snprintf(head + len, sizeof(head) - (size_t)len, fields, token, token);
#pragma GCC diagnostic pop
    client_open(&one, &self->rig);
    (void)client_send_bytes(&one, head, (size_t)len);
    (void)client_send(&one, "\r\n");
    buf text;
    buf_init(&text, RIG_REPLY);
    put(&text, body);
    (void)client_send_bytes(&one, text.at != NULL ? text.at : "", text.len);
    buf_fini(&text);
    int status = client_reply(&one);
    if (part != NULL) {
        client_wait_for(&one, part);
    }
    client_close(&one);
    return status;
}

#define JSON "application/json"

static int tell_well(scene *self, const char *body)
{
    return tell(self, self->far.push_path, "application/a2a+json", TOKEN, self->far.push_token,
                body, NULL);
}

/* ---- who is heard ------------------------------------------------------------------------------
 */

static void who_is_not_heard(void **state)
{
    (void)state;
    scene self;
    char path[PATH_BYTES], token[TOKEN_BYTES], other[2 * PATH_BYTES];
    scene_open(&self, ALLOWED, 2);
    register_hook(&self, "far", NULL);
    memcpy(path, self.far.push_path, sizeof(path));
    memcpy(token, self.far.push_token, sizeof(token));
    const char *const good = WORKING("t1");
    /* addresses */
    (void)snprintf(other, sizeof(other), "/a2a/near/push/%s", path + strlen("/a2a/far/push/"));
    assert_int_equal(tell(&self, other, JSON, TOKEN, token, good, NULL), 404);
    (void)snprintf(other, sizeof(other), "/a2a/nobody/push/%s", path + strlen("/a2a/far/push/"));
    assert_int_equal(tell(&self, other, JSON, TOKEN, token, good, NULL), 404);
    (void)snprintf(other, sizeof(other), "%.*s", (int)strlen(path) - 1, path);
    assert_int_equal(tell(&self, other, JSON, TOKEN, token, good, NULL), 404);
    (void)snprintf(other, sizeof(other), "%sA", path);
    assert_int_equal(tell(&self, other, JSON, TOKEN, token, good, NULL), 404);
    assert_int_equal(tell(&self, "/a2a/far/push/x", JSON, TOKEN, token, good, NULL), 404);
    /* tokens */
    assert_int_equal(tell(&self, path, JSON, "", token, good, "WWW-Authenticate:"), 401);
    assert_int_equal(tell(&self, path, JSON, TOKEN, "hook-tok", good, NULL), 401);
    assert_int_equal(tell(&self, path, JSON, TOKEN, "", good, NULL), 401);
    assert_int_equal(tell(&self, path, JSON, "Authorization: Bearer %s\r\n", token, good, NULL),
                     401);
    assert_int_equal(tell(&self, path, JSON, TOKEN TOKEN, token, good, NULL), 401);
    assert_int_equal(
        tell(&self, path, JSON, TOKEN "A2A-Notification-Token: x%s\r\n", token, good, NULL), 401);
    register_hook(&self, "far", NULL);
    assert_int_equal(tell(&self, path, JSON, TOKEN, self.far.push_token, good, NULL), 401);
    assert_int_equal(tell(&self, self.far.push_path, JSON, TOKEN, token, good, NULL), 401);
    assert_int_equal(keeper_count(&self.hook), 0);
    /* under either name, or both */
    assert_int_equal(tell(&self, path, JSON, TOKEN, token, good, NULL), 200);
    assert_int_equal(tell(&self, path, JSON, "A2A-Notification-Token: %s\r\n", token, good, NULL),
                     200);
    assert_int_equal(
        tell(&self, path, JSON, TOKEN "a2a-notification-token: %s\r\n", token, good, NULL), 200);
    wait_until(keeper_count(&self.hook) == 3);
    keeper_expect(&self.hook, "\r\nAuthorization: Bearer s3cret\r\n");
    assert_false(keeper_has(&self.hook, token));
    scene_close(&self);
}

static void what_is_not_taken(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "x",
        "{",
        "[]",
        "1",
        "{}",
        "{'task':1}",
        "{'statusUpdate':{}}",
        "{'kind':'nothing'}",
        "{'task':{'id':'t1'},'statusUpdate':{'taskId':'t1','contextId':'c','status':{'state':"
        "'TASK_STATE_WORKING'}}}",
    };
    scene self;
    client one;
    char text[2 * PATH_BYTES];
    scene_open(&self, ALLOWED, 1);
    register_hook(&self, "far", NULL);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        assert_int_equal(tell_well(&self, bodies[i]), 400);
    }
    assert_int_equal(tell(&self, self.far.push_path, "text/plain", TOKEN, self.far.push_token,
                          WORKING("t1"), NULL),
                     415);
    assert_int_equal(
        tell(&self, self.far.push_path, "", TOKEN, self.far.push_token, WORKING("t1"), NULL), 415);
    buf large;
    buf_init(&large, RIG_REPLY);
    for (int i = 0; i < 100000; i++) {
        buf_char(&large, '[');
    }
    buf_char(&large, '\0');
    assert_int_equal(tell_well(&self, large.at), 400);
    buf_clear(&large);
    while (large.len <= 8 << 20) {
        buf_lit(&large, "                                                                ");
    }
    buf_char(&large, '\0');
    assert_int_equal(tell_well(&self, large.at), 413);
    buf_fini(&large);
    static const char *const verbs[] = {"GET", "PUT", "DELETE", "HEAD"};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        client_open(&one, &self.rig);
        (void)snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", verbs[i],
                       self.far.push_path);
        assert_true(client_send(&one, text));
        assert_int_equal(client_status(&one), 405);
        client_wait_for(&one, "Allow: POST");
        client_close(&one);
    }
    assert_int_equal(keeper_count(&self.hook), 0);
    scene_close(&self);
}

static void a_task_is_the_callers_own(void **state)
{
    (void)state;
    scene self;
    scene_open(&self, ALLOWED, 1);
    register_hook(&self, "far", "t1");
    assert_int_equal(tell_well(&self, WORKING("t2")), 404);
    assert_int_equal(tell_well(&self, "{'message':{'messageId':'m','role':'ROLE_AGENT','parts':[{"
                                      "'text':'x'}]}}"),
                     404);
    assert_int_equal(keeper_count(&self.hook), 0);
    assert_int_equal(tell_well(&self, WORKING("t1")), 200);
    keeper_expect(&self.hook, "so far"); /* the task as it is */
    keeper_expect(&self.hook, "\"kind\":\"task\"");
    keeper_forget(&self.hook);
    register_hook(&self, "far", NULL);
    assert_int_equal(tell_well(&self, WORKING("t2")), 503); /* asked, the agent shows another */
    assert_int_equal(keeper_count(&self.hook), 0);
    scene_close(&self);
}

/* ---- what fails --------------------------------------------------------------------------------
 */

static void an_agent_that_cannot_be_asked(void **state)
{
    (void)state;
    scene self;
    scene_open(&self, ALLOWED, 1);
    register_hook(&self, "far", NULL);
    atomic_store(&self.far.has_no_task, true);
    assert_int_equal(tell_well(&self, WORKING("t1")), 404);
    atomic_store(&self.far.is_broken, true);
    assert_int_equal(tell(&self, self.far.push_path, JSON, TOKEN, self.far.push_token,
                          WORKING("t1"), "Retry-After: "),
                     503);
    assert_int_equal(keeper_count(&self.hook), 0);
    /* one that tells the whole task is not asked */
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200);
    keeper_expect(&self.hook, "so far");
    /* one that leaves before it was answered is free to come again */
    atomic_store(&self.far.is_broken, false);
    atomic_store(&self.far.has_no_task, false);
    atomic_store(&self.far.server.is_slow, true);
    keeper_forget(&self.far.server);
    keeper_forget(&self.hook);
    char head[2 * PATH_BYTES + TOKEN_BYTES];
    buf body;
    client one;
    buf_init(&body, 1 << 16);
    put(&body, WORKING("t1"));
    (void)snprintf(head, sizeof(head),
                   "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " JSON
                   "\r\nContent-Length: %zu\r\n" TOKEN "\r\n",
                   self.far.push_path, body.len, self.far.push_token);
    client_open(&one, &self.rig);
    assert_true(client_send(&one, head));
    assert_true(client_send_bytes(&one, body.at, body.len));
    wait_until(keeper_has(&self.far.server, "\"GetTask\""));
    client_close(&one);
    buf_fini(&body);
    atomic_store(&self.far.server.is_slow, false);
    assert_int_equal(tell_well(&self, WORKING("t1")), 200);
    wait_until(keeper_count(&self.hook) == 1);
    scene_close(&self);
}

static void a_webhook_that_does_not_answer_fills_its_queue_alone(void **state)
{
    (void)state;
    scene self;
    keeper other;
    int status = 200, taken = 0;
    scene_open(&self, ALLOWED, 2);
    register_hook(&self, "far", NULL);
    atomic_store(&self.hook.is_slow, true);
    while (status == 200 && taken < 1100) {
        status = tell_well(&self, "{'task':" TASK "}");
        taken += status == 200;
    }
    assert_int_equal(status, 503);
    assert_int_equal(taken, 1000);
    assert_int_equal(rig_log_count("given up"), 0); /* the agent still has it */
    /* another one is told meanwhile */
    keeper_open(&other);
    uint16_t port = self.hook.port;
    self.hook.port = other.port;
    register_hook(&self, "far", NULL);
    self.hook.port = port;
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200);
    keeper_expect(&other, "so far");
    keeper_close(&other);
    scene_close(&self);
}

static void redirects_are_not_followed(void **state)
{
    (void)state;
    scene self;
    scene_open(&self, ALLOWED, 1);
    register_hook(&self, "far", NULL);
    atomic_store(&self.hook.status, 302);
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200);
    wait_until(rig_log_count("given up") == 1);
    assert_int_equal(keeper_count(&self.hook), 1);
    assert_false(keeper_has(&self.hook, "/elsewhere"));
    scene_close(&self);
}

/* The guard is asked right before each connection, not only when a webhook is registered. */
static void what_is_allowed_no_more_is_not_connected_to(void **state)
{
    (void)state;
    scene self;
    char text[2000];
    scene_open(&self, ALLOWED, 2);
    register_hook(&self, "far", NULL);
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'%s'}},'timeouts':{'drain':100},'a2a':{'webhooks':["
                   "'10.0.0.1']}}",
                   self.far.url);
    rig_configure(&self.rig, text);
    rig_ask_reload(&self.rig);
    wait_until(atomic_load(&self.rig.reloaded) == 1);
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200);
    wait_until(rig_log_count("given up") == 1);
    assert_int_equal(keeper_count(&self.hook), 0);
    scene_close(&self);
}

/* ---- a gateway that is started anew ------------------------------------------------------------
 */

#ifndef BAY_NO_SQLITE
static void registrations_and_notifications_outlive_the_gateway(void **state)
{
    (void)state;
    scene self;
    char more[200], file[64];
    (void)snprintf(file, sizeof(file), "/tmp/hooks.%d.db", (int)getpid());
    (void)unlink(file);
    (void)snprintf(more, sizeof(more), "%s,'store':'%s'", ALLOWED, file);
    scene_open(&self, more, 2);
    register_hook(&self, "far", NULL);
    atomic_store(&self.hook.is_slow, true);
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200); /* taken, not delivered */
    wait_until(keeper_count(&self.hook) == 1);
    gateway_close(&self);
    keeper_forget(&self.hook);
    atomic_store(&self.hook.is_slow, false);
    gateway_open(&self, 1);
    keeper_expect(&self.hook, "so far");
    keeper_expect(&self.hook, "\r\nAuthorization: Bearer s3cret\r\n");
    keeper_forget(&self.hook);
    assert_int_equal(tell_well(&self, WORKING("t1")), 200); /* registered before */
    keeper_expect(&self.hook, "so far");
    scene_close(&self);
    (void)unlink(file);
    (void)snprintf(more, sizeof(more), "%s-wal", file);
    (void)unlink(more);
    (void)snprintf(more, sizeof(more), "%s-shm", file);
    (void)unlink(more);
}
#else
SKIPPED(registrations_and_notifications_outlive_the_gateway, "this build has no SQLite")
#endif

static void without_a_store_registrations_end_with_the_gateway(void **state)
{
    (void)state;
    scene self;
    scene_open(&self, ALLOWED, 1);
    register_hook(&self, "far", NULL);
    gateway_close(&self);
    gateway_open(&self, 1);
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 404);
    scene_close(&self);
}

static void keys_keep_registrations(void **state)
{
    (void)state;
    scene self;
    scene_open(&self,
               ALLOWED ",'keys':['000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'"
                       "]",
               1);
    register_hook(&self, "far", NULL);
    gateway_close(&self);
    gateway_open(&self, 3);
    assert_int_equal(tell_well(&self, "{'task':" TASK "}"), 200);
    keeper_expect(&self.hook, "so far");
    scene_close(&self);
}

/* What a process makes once and keeps is there before anything is counted. */
static int warm_up(void **state)
{
    (void)state;
    scene self;
    scene_open(&self, ALLOWED, 1);
    gateway_close(&self);
    keeper_close(&self.far.server);
    keeper_close(&self.hook);
    return 0;
}

#else
#define WHY "this build has no TLS, so nothing is sealed"
SKIPPED(who_is_not_heard, WHY)
SKIPPED(what_is_not_taken, WHY)
SKIPPED(a_task_is_the_callers_own, WHY)
SKIPPED(an_agent_that_cannot_be_asked, WHY)
SKIPPED(a_webhook_that_does_not_answer_fills_its_queue_alone, WHY)
SKIPPED(redirects_are_not_followed, WHY)
SKIPPED(what_is_allowed_no_more_is_not_connected_to, WHY)
SKIPPED(registrations_and_notifications_outlive_the_gateway, WHY)
SKIPPED(without_a_store_registrations_end_with_the_gateway, WHY)
SKIPPED(keys_keep_registrations, WHY)
#define warm_up NULL
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_not_heard),
        cmocka_unit_test(what_is_not_taken),
        cmocka_unit_test(a_task_is_the_callers_own),
        cmocka_unit_test(an_agent_that_cannot_be_asked),
        cmocka_unit_test(a_webhook_that_does_not_answer_fills_its_queue_alone),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(what_is_allowed_no_more_is_not_connected_to),
        cmocka_unit_test(registrations_and_notifications_outlive_the_gateway),
        cmocka_unit_test(without_a_store_registrations_end_with_the_gateway),
        cmocka_unit_test(keys_keep_registrations),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
