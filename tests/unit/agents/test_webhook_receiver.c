/* Notifications on one loop, from the agent that tells them to the webhook that gets them: what is
 * too old, too much, or told while everything ends; and memory failing anywhere on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/webhook_receiver.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "front/http_reply.h"
#include "http/http_client.h"
#include "support/failing_memory.h"
#include "support/people.h"
#include "support/skipped.h"

#ifndef BAY_NO_TLS

PEOPLE_FROM_THE_START

enum { TURNS = 4000, TURN_MS = 5, FEW_TURNS = 60 };
#define DAYS(count) ((uint64_t)(count)*86400 * 1000)
#define TASK                                                                                       \
    "{\"id\":\"t1\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"},"            \
    "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"so far\"}]}]}"
#define UPDATE                                                                                     \
    "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c\",\"status\":{\"state\":"              \
    "\"TASK_STATE_WORKING\"}}}"

/* A gateway's receiver, the agent behind it and the webhook, all at one address. */
typedef struct rig {
    loop *loop;
    http_server *server;
    http_client *client;
    loop_mailbox *port;
    agents_push_queue *post;
    agents_aliases *aliases;
    agents_remote *remote;
    seal_ring *ring;
    const seal_ring *shown_ring;
    agents_webhook_receiver receiver;
    agents_settings settings;
    agents_public public;
    char url[64];
    buf address;
    buf token;
    int hooked;
    int status;      /* of the last answer; -1: it failed */
    bool is_later;   /* with Retry-After */
    char got[4096];  /* what the webhook got last */
    char sent[4096]; /* what the agent was given last */
} rig;

static agents_webhook_receiver *receiver_of(void *endpoint)
{
    return &((rig *)endpoint)->receiver;
}

static void answer_agent(rig *self, http_exchange *exchange, bool is_card)
{
    char text[4096];
    http_field type = {STR("Content-Type"), STR("application/json")};
    char asked[4000];
    (void)snprintf(asked, sizeof(asked), "%.*s", BAY_STR(http_exchange_body(exchange)));
    const char *id = strstr(asked, "\"id\":");
    if (is_card) {
        (void)snprintf(text, sizeof(text),
                       "{\"name\":\"Far\",\"description\":\"d\",\"version\":\"1\","
                       "\"supportedInterfaces\":[{\"url\":\"%s/rpc\",\"protocolBinding\":"
                       "\"JSONRPC\",\"protocolVersion\":\"1.0\"}],\"capabilities\":{},"
                       "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":["
                       "\"text/plain\"],\"skills\":[{\"id\":\"a\",\"name\":\"A\",\"description\":"
                       "\"d\",\"tags\":[\"t\"]}]}",
                       self->url);
    } else if (strstr(asked, "\"CreateTaskPushNotificationConfig\"") != NULL) { /* as it was sent */
        char *config = strstr(asked, "\"params\":");
        assert_non_null(config);
        (void)snprintf(self->sent, sizeof(self->sent), "%s", config);
        (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":%s",
                       id != NULL ? strtol(id + 5, NULL, 10) : 0, config + strlen("\"params\":"));
    } else {
        (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":" TASK "}",
                       id != NULL ? strtol(id + 5, NULL, 10) : 0);
    }
    http_exchange_reply(exchange, 200, &type, 1, str_of(text));
}

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    bay_str path = http_exchange_path(exchange);
    bay_str prefix = STR("/a2a/far/push/");
    if (str_starts(path, prefix)) {
        agents_webhook_receiver_take(&self->receiver, receiver_of, self->remote,
                                     str_from(path, prefix.len), exchange);
    } else if (str_eq(path, STR("/hook"))) {
        bay_str body = http_exchange_body(exchange);
        self->hooked++;
        (void)snprintf(self->got, sizeof(self->got), "%.*s", BAY_STR(body));
        http_exchange_reply(exchange, 200, NULL, 0, STR(""));
    } else {
        answer_agent(self, exchange, str_eq(http_exchange_method(exchange), STR("GET")));
    }
}

static const http_handler handler = {
    .request = on_request, .closed = http_owner_closed, .drained = http_owner_drained};

static bay_err rig_open_servers(rig *self)
{
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    http_client_options client = {.limits = http_client_default_limits};
    bay_err err = loop_new(&self->loop);
    err = err == BAY_OK ? http_server_new(self->loop, &server, &self->server) : err;
    err = err == BAY_OK ? http_server_listen(self->server, STR("127.0.0.1:0"), NULL) : err;
    err = err == BAY_OK ? http_client_new(self->loop, &client, &self->client) : err;
    return err;
}

/* Registered by that caller of `told`, so long ago. */
static bay_err rig_register_for(rig *self, const char *who, a2a_form told, uint64_t ago_ms)
{
    char hook[100];
    a2a_fault fault = {0};
    (void)snprintf(hook, sizeof(hook), "%s/hook", self->url);
    agents_webhook registration = {.caller_form = told,
                                   .agent_form = A2A_FORM_1_0,
                                   .url = str_of(hook),
                                   .token = STR("hook-tok"),
                                   .client_id = STR("mine"),
                                   .principal = principal_identity(person(who))};
    buf_clear(&self->address);
    buf_clear(&self->token);
    return agents_webhook_seal(self->ring, str_of(self->url), STR("far"), &registration,
                               loop_time_ms() - ago_ms, &self->address, &self->token, &fault);
}

static bay_err rig_register(rig *self, a2a_form told, uint64_t ago_ms)
{
    return rig_register_for(self, "", told, ago_ms);
}

static bay_err rig_open(rig *self, a2a_form told)
{
    static const bay_str allow[] = {STR_INIT("127.0.0.1")};
    bay_diag diag = {0};
    memset(self, 0, sizeof(*self));
    buf_init(&self->address, 1 << 16);
    buf_init(&self->token, 1 << 16);
    bay_err err = rig_open_servers(self);
    if (err == BAY_OK) {
        (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u",
                       http_server_port(self->server));
        self->settings = (agents_settings){.name = STR("far"),
                                           .url = str_of(self->url),
                                           .connect_ms = 1000,
                                           .connections = 4,
                                           .timeout_ms = 20000,
                                           .stream_idle_ms = 20000,
                                           .refresh_ms = 60000,
                                           .answer_bytes = 1 << 20,
                                           .circuit = {5, 10000, 1000}};
        self->public = (agents_public){.base = STR("http://gateway.example")};
        err = loop_mailbox_new(self->loop, self, &self->port);
    }
    err = err == BAY_OK ? agents_aliases_new(&self->aliases) : err;
    err = err == BAY_OK ? seal_ring_new(&self->ring) : err;
    err = err == BAY_OK ? seal_ring_generate(self->ring) : err;
    err = err == BAY_OK ? agents_push_queue_new(self->loop, STR(""), &self->post) : err;
    err = err == BAY_OK ? agents_push_queue_open(self->post, allow, 1, &diag) : err;
    err = err == BAY_OK ? agents_remote_new(self->loop, &self->settings, &self->public, NULL,
                                            &self->remote, &diag)
                        : err;
    self->shown_ring = self->ring;
    self->receiver = (agents_webhook_receiver){.loop = self->loop,
                                               .port = self->port,
                                               .ring = &self->shown_ring,
                                               .post = self->post,
                                               .aliases = self->aliases};
    return err == BAY_OK ? rig_register(self, told, 0) : err;
}

/* As a gateway ends: connections, agents, the post. */
static void rig_close(rig *self)
{
    http_client_free(self->client);
    http_server_free(self->server);
    agents_remote_free(self->remote);
    if (self->port != NULL) {
        loop_mailbox_close(self->port);
    }
    agents_push_queue_free(self->post);
    loop_free(self->loop);
    loop_mailbox_unref(self->port);
    agents_aliases_free(self->aliases);
    seal_ring_free(self->ring);
    buf_fini(&self->address);
    buf_fini(&self->token);
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    rig *self = user;
    self->status = status;
    self->is_later = false;
    for (size_t i = 0; i < count; i++) {
        self->is_later |= str_eq_nocase(fields[i].name, STR("Retry-After"));
    }
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)err;
    (void)was_sent;
    (void)text;
    ((rig *)user)->status = -1;
}

static const http_call_events call_events = {.head = on_head, .failed = on_failed};

static bay_err tell(rig *self, const char *body)
{
    http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                           {STR("A2A-Notification-Token"), buf_view(&self->token)}};
    http_call_spec spec = {.method = STR("POST"),
                           .url = buf_view(&self->address),
                           .fields = fields,
                           .field_count = 2,
                           .body = str_of(body),
                           .has_body = true};
    http_call *call;
    self->status = 0;
    return http_client_call(self->client, &spec, &call_events, self, &call, NULL);
}

static int told(rig *self, const char *body)
{
    assert_int_equal(tell(self, body), BAY_OK);
    for (int i = 0; i < TURNS && self->status == 0; i++) {
        (void)loop_turn(self->loop, TURN_MS);
    }
    return self->status;
}

static void expect_hooked(rig *self, int count, const char *part)
{
    for (int i = 0; i < TURNS && self->hooked < count; i++) {
        (void)loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(self->hooked, count);
    assert_non_null(strstr(self->got, part));
}

static void what_is_too_old_or_not_ours(void **state)
{
    (void)state;
    rig self;
    assert_int_equal(rig_open(&self, A2A_FORM_1_0), BAY_OK);
    assert_int_equal(rig_register(&self, A2A_FORM_1_0, DAYS(AGENTS_WEBHOOK_DAYS)), BAY_OK);
    assert_int_equal(told(&self, UPDATE), 404);
    assert_int_equal(rig_register(&self, A2A_FORM_1_0, DAYS(AGENTS_WEBHOOK_DAYS - 1)), BAY_OK);
    seal_ring *other;
    assert_int_equal(seal_ring_new(&other), BAY_OK);
    assert_int_equal(seal_ring_generate(other), BAY_OK);
    self.shown_ring = other; /* keys became others: a reload */
    assert_int_equal(told(&self, UPDATE), 404);
    self.shown_ring = NULL; /* none at all */
    assert_int_equal(told(&self, UPDATE), 404);
    self.shown_ring = self.ring;
    self.receiver.post = NULL;
    assert_int_equal(told(&self, UPDATE), 404);
    self.receiver.post = self.post;
    assert_int_equal(self.hooked, 0);
    assert_int_equal(told(&self, UPDATE), 200);
    expect_hooked(&self, 1, "statusUpdate");
    seal_ring_free(other);
    rig_close(&self);
}

static void what_finds_no_room(void **state)
{
    (void)state;
    rig self;
    assert_int_equal(rig_open(&self, A2A_FORM_0_3), BAY_OK);
    self.receiver.open = AGENTS_WEBHOOK_RECEIVER_OPEN;
    assert_int_equal(told(&self, UPDATE), 503);
    assert_true(self.is_later);
    self.receiver.open = 0;
    self.receiver.held_bytes = AGENTS_WEBHOOK_RECEIVER_HELD_BYTES;
    assert_int_equal(told(&self, UPDATE), 503);
    assert_true(self.is_later);
    assert_int_equal(self.receiver.open, 0);
    assert_int_equal(self.receiver.held_bytes, AGENTS_WEBHOOK_RECEIVER_HELD_BYTES);
    self.receiver.held_bytes = 0;
    *agents_remote_looks(self.remote) = AGENTS_WEBHOOK_RECEIVER_LOOKS;
    assert_int_equal(told(&self, UPDATE), 503);
    assert_true(self.is_later);
    assert_int_equal(told(&self, "{\"task\":" TASK "}"), 200); /* it need not be asked */
    expect_hooked(&self, 1, "\"kind\":\"task\"");
    assert_int_equal(*agents_remote_looks(self.remote), AGENTS_WEBHOOK_RECEIVER_LOOKS);
    *agents_remote_looks(self.remote) = 0;
    self.hooked = 0;
    assert_int_equal(told(&self, UPDATE), 200);
    expect_hooked(&self, 1, "\"kind\":\"task\"");
    assert_non_null(strstr(self.got, "so far"));
    assert_int_equal(self.receiver.open, 0);
    assert_int_equal(self.receiver.held_bytes, 0);
    assert_int_equal(*agents_remote_looks(self.remote), 0);
    rig_close(&self);
}

/* The caller's id of its task, which is known again from what it was told. */
static void a_client_that_names_its_task_is_told_of_it(void **state)
{
    (void)state;
    rig self;
    buf known;
    assert_int_equal(rig_open(&self, A2A_FORM_0_1), BAY_OK);
    buf_init(&known, 1 << 10);
    assert_false(agents_aliases_find(self.aliases, STR("far"), STR(""), STR("mine"), &known));
    assert_int_equal(told(&self, UPDATE), 200);
    expect_hooked(&self, 1, "\"id\":\"mine\"");
    assert_null(strstr(self.got, "\"t1\""));
    assert_true(agents_aliases_find(self.aliases, STR("far"), STR(""), STR("mine"), &known));
    assert_true(str_eq(buf_view(&known), STR("t1")));
    buf_fini(&known);
    rig_close(&self);
}

/* Whose webhook an agent tells, by its own mistake or because an address leaked. */
static void a_webhook_hears_of_its_owners_tasks_alone(void **state)
{
    (void)state;
    static const a2a_form forms[] = {A2A_FORM_1_0, A2A_FORM_0_3}; /* of 0.3: the agent is asked */
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        rig self;
        agents_owners *owners = NULL;
        char key[64];
        buf text = {.at = key, .cap = sizeof(key), .max = sizeof(key)};
        assert_int_equal(rig_open(&self, forms[i]), BAY_OK);
        assert_int_equal(agents_owners_new(STR(""), &owners, NULL), BAY_OK);
        agents_owned *far = agents_owners_of(owners, STR("far"));
        agents_remote_set_owners(self.remote, far, &self.shown_ring);
        agents_owned_close(far);
        assert_int_equal(principal_key(person("ann"), self.ring, 0, &text), BAY_OK);
        agents_caller ann = {person("ann"), self.ring, buf_view(&text)};
        assert_int_equal(agents_owned_claim(far, OWNED_TASK, STR("t1"), &ann), BAY_OK);
        assert_int_equal(rig_register_for(&self, "bob", forms[i], 0), BAY_OK);
        assert_int_equal(told(&self, UPDATE), 404);
        assert_int_equal(told(&self, "{\"task\":" TASK "}"), 404);
        assert_int_equal(rig_register_for(&self, "", forms[i], 0), BAY_OK);
        assert_int_equal(told(&self, UPDATE), 404);
        assert_int_equal(self.hooked, 0);
        assert_int_equal(rig_register_for(&self, "ann", forms[i], 0), BAY_OK);
        assert_int_equal(told(&self, UPDATE), 200);
        expect_hooked(&self, 1, forms[i] == A2A_FORM_1_0 ? "WORKING" : "working");
        rig_close(&self);
        agents_owners_free(owners);
    }
}

/* ---- registering -------------------------------------------------------------------------------
 */

typedef struct caller {
    a2a_call call; /* first */
    arena memory;
    json_doc params;
    int ended;
    char result[4096];
    a2a_fault fault;
} caller;

static void caller_result(a2a_call *call, bay_str json)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->ended++;
    (void)snprintf(self->result, sizeof(self->result), "%.*s", BAY_STR(json));
}

static bay_err caller_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    return BAY_OK;
}

static void caller_end(a2a_call *call)
{
    CONTAINER_OF(call, caller, call)->ended++;
}

static void caller_fail(a2a_call *call, const a2a_fault *fault)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->ended++;
    self->fault = *fault;
}

static bay_str caller_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops caller_ops = {caller_result, caller_event, caller_end, caller_fail,
                                        caller_field};

#define HOOK                                                                                       \
    "{\"taskId\":\"t1\",\"id\":\"cfg\",\"url\":\"https://hooks.example/"                           \
    "x\",\"token\":\"hook-tok\","                                                                  \
    "\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}}"

static bool caller_init(caller *self, a2a_version version)
{
    *self = (caller){.ended = 0};
    arena_init(&self->memory, 1 << 20);
    if (json_parse(&self->params, STR(HOOK), NULL, &self->memory, NULL) != BAY_OK) {
        return false;
    }
    self->call = (a2a_call){.ops = &caller_ops,
                            .method = A2A_CREATE_PUSH_CONFIG,
                            .version = version,
                            .binding = A2A_JSONRPC,
                            .params = json_root(&self->params),
                            .memory = &self->memory};
    return true;
}

static void call(rig *self, caller *one, int turns)
{
    a2a_service *service = agents_remote_service(self->remote);
    agents_remote_set_webhook_receiver(self->remote, &self->receiver);
    service->call(service, &one->call);
    for (int i = 0; i < turns && one->ended == 0; i++) {
        (void)loop_turn(self->loop, TURN_MS);
    }
    if (one->ended == 0) { /* the server's memory failed, too: nobody answers */
        service->gone(service, &one->call);
    }
    assert_int_equal(one->ended, 1);
}

static void an_agent_is_given_the_gateways_own(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self, A2A_FORM_1_0), BAY_OK);
    assert_true(caller_init(&one, A2A_0_3));
    call(&self, &one, TURNS);
    assert_non_null(strstr(self.sent, "http://gateway.example/a2a/far/push/"));
    assert_non_null(strstr(self.sent, "\"id\":\"cfg\""));
    assert_null(strstr(self.sent, "hooks.example"));
    assert_null(strstr(self.sent, "hook-tok"));
    assert_null(strstr(self.sent, "s3cret"));
    assert_non_null(strstr(one.result, "\"url\":\"https://hooks.example/x\""));
    assert_non_null(strstr(one.result, "\"token\":\"hook-tok\""));
    assert_non_null(strstr(one.result, "s3cret"));
    assert_null(strstr(one.result, "gateway.example"));
    arena_fini(&one.memory);
    rig_close(&self);
}

/* The agent was seen on this machine; one that is elsewhere does not reach a loopback address, and
 * without keys there is nothing to give it. */
static void where_there_is_none_it_is_refused(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self, A2A_FORM_1_0), BAY_OK);
    self.shown_ring = NULL;
    assert_true(caller_init(&one, A2A_0_3));
    call(&self, &one, TURNS);
    assert_int_equal(one.fault.error, A2A_E_PUSH_NOT_SUPPORTED);
    arena_fini(&one.memory);
    assert_true(caller_init(&one, A2A_1_0)); /* the agent's own */
    call(&self, &one, TURNS);
    assert_non_null(strstr(self.sent, "hooks.example"));
    arena_fini(&one.memory);
    rig_close(&self);
}

/* All that follow fail, or that one alone. */
static bool starve(size_t at, bool is_single)
{
    return is_single ? failing_memory_start_single(at) : failing_memory_start(at);
}

static void registering_without_memory(void **state)
{
    (void)state;
    for (int is_single = 0; is_single < 2; is_single++) {
        bool was_good = false;
        for (size_t at = 0; starve(at, is_single > 0); at++) {
            rig self;
            caller one;
            if (rig_open(&self, A2A_FORM_1_0) == BAY_OK) {
                if (caller_init(&one, A2A_0_3)) {
                    call(&self, &one, FEW_TURNS);
                    was_good = one.fault.error == A2A_NO_ERROR;
                    assert_null(strstr(self.sent, "s3cret"));
                    assert_null(strstr(one.result, "gateway.example"));
                }
                arena_fini(&one.memory);
            }
            rig_close(&self);
            failing_memory_check();
        }
        assert_true(was_good);
    }
}

/* It is with the post, or the agent is being asked, when everything goes. */
static void an_end_in_the_middle(void **state)
{
    (void)state;
    static const a2a_form forms[] = {A2A_FORM_1_0, A2A_FORM_0_3};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        rig self;
        assert_int_equal(rig_open(&self, forms[i]), BAY_OK);
        assert_int_equal(tell(&self, UPDATE), BAY_OK);
        for (int k = 0; k < TURNS && self.receiver.open == 0 && self.status == 0; k++) {
            (void)loop_turn(self.loop, 0);
        }
        rig_close(&self);
    }
}

static void without_memory(void **state)
{
    (void)state;
    static const a2a_form forms[] = {A2A_FORM_1_0, A2A_FORM_0_3, A2A_FORM_0_1};
    for (size_t i = 0; i < 2 * ARRAY_LEN(forms); i++) {
        bool was_hooked = false;
        for (size_t at = 0; starve(at, i % 2 == 1); at++) {
            rig self;
            if (rig_open(&self, forms[i / 2]) == BAY_OK && tell(&self, UPDATE) == BAY_OK) {
                for (int k = 0; k < FEW_TURNS && self.status == 0; k++) {
                    (void)loop_turn(self.loop, TURN_MS);
                }
                if (self.status == 200) {
                    assert_int_equal(self.receiver.open, 0);
                    assert_int_equal(self.receiver.held_bytes, 0);
                    was_hooked = true;
                }
            }
            rig_close(&self);
            failing_memory_check();
        }
        assert_true(was_hooked);
    }
}

#else
#define WHY "this build has no TLS, so nothing is sealed"
SKIPPED(what_is_too_old_or_not_ours, WHY)
SKIPPED(what_finds_no_room, WHY)
SKIPPED(a_client_that_names_its_task_is_told_of_it, WHY)
SKIPPED(a_webhook_hears_of_its_owners_tasks_alone, WHY)
SKIPPED(an_agent_is_given_the_gateways_own, WHY)
SKIPPED(where_there_is_none_it_is_refused, WHY)
SKIPPED(registering_without_memory, WHY)
SKIPPED(an_end_in_the_middle, WHY)
SKIPPED(without_memory, WHY)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_too_old_or_not_ours),
        cmocka_unit_test(what_finds_no_room),
        cmocka_unit_test(a_client_that_names_its_task_is_told_of_it),
        cmocka_unit_test(a_webhook_hears_of_its_owners_tasks_alone),
        cmocka_unit_test(an_agent_is_given_the_gateways_own),
        cmocka_unit_test(where_there_is_none_it_is_refused),
        cmocka_unit_test(registering_without_memory),
        cmocka_unit_test(an_end_in_the_middle),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
