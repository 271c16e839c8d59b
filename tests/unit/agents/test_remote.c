/* A remote agent and its relay on one loop, in front of a scripted agent: what is sent, to whom,
 * what comes back, and that memory failing anywhere on the way ends every call once and leaks
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/remote.h" /* cmocka takes the word "fail" */
#include "auth/card_signature.h"

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "http/http_server.h"
#include "support/failing_memory.h"
#include "support/people.h"
#include "support/skipped.h"

PEOPLE_FROM_THE_START

/* ---- the scripted agent ------------------------------------------------------------------------
 */

typedef struct script {
    http_server *server;
    uint16_t port;
    const char *host;   /* of the interface in its card */
    const char *answer; /* to a POST: a whole JSON-RPC result */
    const char *stream; /* to a POST, in its place: events */
    const char *etag;
    const char *older;   /* path of an interface of 0.3 in its card; NULL: none */
    const char *path;    /* of the interface in its card; NULL: rpc */
    const jose_key *key; /* that signs its card; NULL: none does */
    bool lacks_streams;
    bool lacks_current; /* no agent-card.json */
    int card_status;
    int cards;
    int posts;
    char seen[8192];   /* of the last POST: fields that matter and the body */
    char card_via[64]; /* with the last request of its card */
} script;

static void note(script *self, http_exchange *exchange, const char *name)
{
    bay_str value = http_exchange_field(exchange, str_of(name));
    size_t len = strlen(self->seen);
    if (value.at != NULL) {
        (void)snprintf(self->seen + len, sizeof(self->seen) - len, "%s=%.*s;", name,
                       BAY_STR(value));
    }
}

static void answer_card(script *self, http_exchange *exchange)
{
    char text[1600];
    bool is_old = str_eq(http_exchange_path(exchange), STR("/.well-known/agent.json"));
    bay_str known = http_exchange_field(exchange, STR("If-None-Match"));
    http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                           {STR("Cache-Control"), STR("max-age=1")},
                           {STR("ETag"), str_of(self->etag != NULL ? self->etag : "\"1\"")}};
    char older[160] = "";
    if (self->older != NULL) {
        (void)snprintf(older, sizeof(older),
                       ",{\"url\":\"http://%s:%u%s\",\"protocolBinding\":\"JSONRPC\","
                       "\"protocolVersion\":\"0.3\"}",
                       self->host, self->port, self->older);
    }
    (void)snprintf(self->card_via, sizeof(self->card_via), "%.*s",
                   BAY_STR(http_exchange_field(exchange, STR("Via"))));
    self->cards++;
    if (self->lacks_current && !is_old) {
        http_exchange_reply(exchange, 404, NULL, 0, STR(""));
        return;
    }
    if (self->card_status != 0) {
        http_exchange_reply(exchange, self->card_status, NULL, 0, STR(""));
        return;
    }
    if (known.at != NULL && str_eq(known, fields[2].value)) {
        http_exchange_reply(exchange, 304, fields + 1, 2, STR(""));
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "{\"name\":\"Far\",\"description\":\"d\",\"version\":\"1\","
                   "\"supportedInterfaces\":[{\"url\":\"http://%s:%u/%s\",\"protocolBinding\":"
                   "\"JSONRPC\",\"protocolVersion\":\"1.0\",\"tenant\":\"theirs\"}%s],"
                   "\"capabilities\":{\"streaming\":%s},\"defaultInputModes\":[\"text/plain\"],"
                   "\"defaultOutputModes\":[\"text/plain\"],\"skills\":[{\"id\":\"a\",\"name\":"
                   "\"A\",\"description\":\"d\",\"tags\":[\"t\"]}]}",
                   self->host, self->port, self->path != NULL ? self->path : "rpc", older,
                   self->lacks_streams ? "false" : "true");
    if (self->key == NULL) {
        http_exchange_reply(exchange, 200, fields, ARRAY_LEN(fields), str_of(text));
        return;
    }
    arena memory;
    json_doc card;
    buf out;
    bay_diag diag = {0};
    arena_init(&memory, 1 << 20);
    buf_init(&out, 1 << 20);
    assert_int_equal(json_parse(&card, str_of(text), NULL, &memory, &diag), BAY_OK);
    assert_int_equal(card_sign(json_root(&card), self->key, STR(""), &out, &diag), BAY_OK);
    http_exchange_reply(exchange, 200, fields, ARRAY_LEN(fields), buf_view(&out));
    buf_fini(&out);
    arena_fini(&memory);
}

static void on_request(void *user, http_exchange *exchange)
{
    script *self = user;
    if (str_eq(http_exchange_method(exchange), STR("GET"))) {
        answer_card(self, exchange);
        return;
    }
    self->posts++;
    self->seen[0] = '\0';
    static const char *const names[] = {"Authorization", "A2A-Version", "A2A-Extensions",
                                        "traceparent",   "tracestate",  "Via"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        note(self, exchange, names[i]);
    }
    size_t len = strlen(self->seen);
    (void)snprintf(self->seen + len, sizeof(self->seen) - len, "%.*s",
                   BAY_STR(http_exchange_body(exchange)));
    http_field type = {STR("Content-Type"),
                       self->stream != NULL ? STR("text/event-stream") : STR("application/json")};
    const char *template = self->stream != NULL ? self->stream : self->answer;
    if (template != NULL) {
        char text[2048];
        size_t used = 0;
        const char *id = strstr(self->seen, "\"id\":");
        assert_non_null(id);
        for (const char *at = template; *at != '\0' && used < sizeof(text) - 24; at++) {
            if (*at == '#') { /* the id of the request */
                used += (size_t)snprintf(text + used, 24, "%ld", strtol(id + 5, NULL, 10));
            } else {
                text[used++] = *at;
            }
        }
        http_exchange_reply(exchange, 200, &type, 1, (bay_str){text, used});
    } /* else it is silent */
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static void on_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static const http_handler handler = {
    .request = on_request, .closed = on_closed, .drained = on_drained};

/* ---- a caller ---------------------------------------------------------------------------------
 */

typedef struct caller {
    a2a_call call; /* first */
    arena memory;
    json_doc params;
    int ended; /* how often: once */
    int events;
    const char *via; /* that it came with; NULL: none */
    int slow_after;  /* says BAY_ERR_AGAIN for this event and what follows; 0: never */
    char result[2048];
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
    caller *self = CONTAINER_OF(call, caller, call);
    self->events++;
    (void)snprintf(self->result, sizeof(self->result), "%.*s", BAY_STR(a2a_event_json(event)));
    return self->slow_after > 0 && self->events >= self->slow_after ? BAY_ERR_AGAIN : BAY_OK;
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
    const caller *self = CONTAINER_OF(call, caller, call);
    if (str_eq(name, STR("via"))) {
        return self->via != NULL ? str_of(self->via) : (bay_str){NULL, 0};
    }
    return str_eq(name, STR("tracestate")) ? STR("v=1") : (bay_str){NULL, 0};
}

static const a2a_call_ops ops = {caller_result, caller_event, caller_end, caller_fail,
                                 caller_field};

static bool caller_init(caller *self, a2a_method method, const char *params)
{
    *self = (caller){0};
    arena_init(&self->memory, 1 << 20);
    if (json_parse(&self->params, str_of(params), NULL, &self->memory, NULL) != BAY_OK) {
        arena_fini(&self->memory);
        return false;
    }
    self->call = (a2a_call){.ops = &ops,
                            .method = method,
                            .version = A2A_1_0,
                            .params = json_root(&self->params),
                            .tenant = STR(""),
                            .extensions = STR("urn:x"),
                            .traceparent = STR("00-0af7651916cd43dd8448eb211c80319c-"
                                               "b7ad6b7169203331-01"),
                            .memory = &self->memory};
    return true;
}

/* ---- the rig -----------------------------------------------------------------------------------
 */

typedef struct rig {
    loop *loop;
    script script;
    agents_settings settings;
    agents_public public;
    agents_remote *remote;
    char url[64];
} rig;

static const http_field secret = {STR_INIT("Authorization"), STR_INIT("Bearer s3cr3t")};

static bay_err rig_open(rig *self)
{
    bay_diag diag = {0};
    *self = (rig){.script = {.host = "127.0.0.1",
                             .answer = "{\"jsonrpc\":\"2.0\",\"id\":#,\"result\":{\"message\":{"
                                       "\"messageId\":\"r\",\"role\":\"ROLE_AGENT\",\"parts\":[{"
                                       "\"text\":\"hi\"}]}}}"}};
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &handler, .user = &self->script};
    bay_err err = loop_new(&self->loop);
    err = err == BAY_OK ? http_server_new(self->loop, &server, &self->script.server) : err;
    err = err == BAY_OK ? http_server_listen(self->script.server, STR("127.0.0.1:0"), &diag) : err;
    if (err == BAY_OK) {
        self->script.port = http_server_port(self->script.server);
        (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u", self->script.port);
        self->public = (agents_public){.base = STR("http://gateway"), .grpc = STR("")};
        self->settings = (agents_settings){.name = STR("far"),
                                           .url = str_of(self->url),
                                           .fields = &secret,
                                           .field_count = 1,
                                           .connect_ms = 5000,
                                           .connections = 16,
                                           .timeout_ms = 5000,
                                           .stream_idle_ms = 5000,
                                           .refresh_ms = 60000,
                                           .answer_bytes = 1 << 20,
                                           .circuit = {3, 60000, 100000}};
        err = agents_remote_new(self->loop, &self->settings, &self->public, NULL, &self->remote,
                                &diag);
    }
    return err;
}

static void rig_close(rig *self)
{
    agents_remote_free(self->remote);
    if (self->script.server != NULL) {
        http_server_free(self->script.server);
    }
    loop_free(self->loop);
}

enum { MOST_TURNS = 2000, TURN_MS = 20 };

static void begin(rig *self, caller *one)
{
    a2a_service *service = agents_remote_service(self->remote);
    service->call(service, &one->call);
}

static void turn_until(rig *self, const int *count, int wanted)
{
    for (int i = 0; i < MOST_TURNS && *count < wanted; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(*count, wanted);
}

#define SEND                                                                                       \
    "{\"tenant\":\"far\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{"     \
    "\"text\":\"x\"}]}}"

/* ---- cases -------------------------------------------------------------------------------------
 */

static void a_call_waits_for_the_card_and_goes_out_as_it_says(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&one, A2A_SEND_MESSAGE, SEND));
    begin(&self, &one);
    assert_int_equal(one.ended, 0);
    assert_int_equal(agents_remote_calls(self.remote), 1);
    turn_until(&self, &one.ended, 1);
    assert_non_null(strstr(one.result, "\"hi\""));
    assert_int_equal(agents_remote_calls(self.remote), 0);
    const char *seen = self.script.seen;
    assert_non_null(strstr(seen, "Authorization=Bearer s3cr3t;"));
    assert_non_null(strstr(seen, "A2A-Version=1.0;"));
    assert_non_null(strstr(seen, "A2A-Extensions=urn:x;"));
    assert_non_null(strstr(seen, "traceparent=00-0af7651916cd43dd8448eb211c80319c-"));
    assert_null(strstr(seen, "b7ad6b7169203331"));
    assert_non_null(strstr(seen, "tracestate=v=1;"));
    assert_non_null(strstr(seen, "\"theirs\"")); /* the agent's own tenant … */
    assert_null(strstr(seen, "\"far\""));        /* … and not ours */
    agents_remote_state told = agents_remote_state_of(self.remote);
    assert_string_equal(told.state, "ready");
    assert_int_equal(told.version, A2A_1_0);
    arena_fini(&one.memory);
    rig_close(&self);
}

/* Whoever gets it back knows that it was here. */
static void whom_a_call_came_through_is_passed_on(void **state)
{
    (void)state;
    static const struct {
        const char *name, *received, *sent;
    } cases[] = {
        {"patchbay-1", NULL, "Via=1.1 patchbay-1;"},
        {"patchbay-1", "1.0 fred (a, b)", "Via=1.0 fred (a, b), 1.1 patchbay-1;"},
        {"patchbay-1", "a b,a b,a b,a b,a b,a b,a b,a b,a b,a b,a b", ";Via=1.1 patchbay-1;"},
        {"", "1.0 fred", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig self;
        caller one;
        assert_int_equal(rig_open(&self), BAY_OK);
        self.public.via = str_of(cases[i].name);
        assert_true(caller_init(&one, A2A_SEND_MESSAGE, SEND));
        one.via = cases[i].received;
        begin(&self, &one);
        turn_until(&self, &one.ended, 1);
        assert_non_null(strstr(self.script.seen, cases[i].sent != NULL ? cases[i].sent : "1.0"));
        assert_true(cases[i].sent != NULL || strstr(self.script.seen, "Via=") == NULL);
        assert_string_equal(self.script.card_via, cases[i].sent != NULL ? "1.1 patchbay-1" : "");
        arena_fini(&one.memory);
        rig_close(&self);
    }
}

static void credentials_stay_with_the_host_they_are_for(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.host = "localhost"; /* the card leads elsewhere */
    assert_true(caller_init(&one, A2A_SEND_MESSAGE, SEND));
    begin(&self, &one);
    turn_until(&self, &one.ended, 1);
    assert_int_equal(self.script.posts, 1);
    assert_null(strstr(self.script.seen, "s3cr3t"));
    arena_fini(&one.memory);
    rig_close(&self);
}

#define HOOK(url) "{\"taskId\":\"t\",\"url\":\"" url "\"}"
#define SEND_WITH(url)                                                                             \
    "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]},"      \
    "\"configuration\":{\"taskPushNotificationConfig\":{\"url\":\"" url "\"}}}"

/* How a call of that version ends; A2A_NO_ERROR: it went out. */
static a2a_error outcome(rig *self, a2a_method method, a2a_version version, const char *params)
{
    caller one;
    int before = self->script.posts;
    assert_true(caller_init(&one, method, params));
    one.call.version = version;
    begin(self, &one);
    turn_until(self, &one.ended, 1);
    arena_fini(&one.memory);
    return self->script.posts > before ? A2A_NO_ERROR : one.fault.error;
}

/* The agent delivers to it for somebody that it does not know. */
static void webhooks_are_public(void **state)
{
    (void)state;
    static const bay_str allow[] = {STR_INIT("127.0.0.1")};
    rig self;
    bay_diag diag = {0};
    address_rules *rules = NULL;
    assert_int_equal(rig_open(&self), BAY_OK);
    static const char *const refused[] = {HOOK("http://127.0.0.1:9/x"),
                                          HOOK("http://localhost/"),
                                          HOOK("http://10.0.0.1/"),
                                          HOOK("http://[::1]/"),
                                          HOOK("http://169.254.169.254/latest"),
                                          HOOK("ftp://x/"),
                                          HOOK("https://a:b@x.example/"),
                                          HOOK("")};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_1_0, refused[i]),
                         A2A_E_INVALID_PARAMS);
    }
    assert_int_equal(
        outcome(&self, A2A_SEND_MESSAGE, A2A_1_0, SEND_WITH("http://169.254.169.254/")),
        A2A_E_INVALID_PARAMS);
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_1_0, HOOK("https://x.example/h")),
                     A2A_NO_ERROR);
    assert_int_equal(outcome(&self, A2A_SEND_MESSAGE, A2A_1_0, SEND_WITH("https://x.example/")),
                     A2A_NO_ERROR);
    assert_int_equal(address_rules_new(allow, 1, &rules, &diag), BAY_OK);
    self.public.webhooks = rules;
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_1_0, HOOK("http://127.0.0.1:9/x")),
                     A2A_NO_ERROR);
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_1_0, HOOK("http://10.0.0.1/")),
                     A2A_E_INVALID_PARAMS);
    rig_close(&self);
    address_rules_free(rules);
}

/* An agent delivers in the version in which it was asked, so it is asked in the caller's. */
static void webhooks_are_registered_in_the_callers_version(void **state)
{
    (void)state;
    rig self;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_0_3, HOOK("https://x.example/")),
                     A2A_E_PUSH_NOT_SUPPORTED);
    assert_int_equal(outcome(&self, A2A_SEND_MESSAGE, A2A_0_2, SEND_WITH("https://x.example/")),
                     A2A_E_PUSH_NOT_SUPPORTED);
    assert_int_equal(outcome(&self, A2A_SEND_MESSAGE, A2A_0_2, SEND), A2A_NO_ERROR);
    rig_close(&self);

    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.older = "/old";
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_0_2, HOOK("https://x.example/")),
                     A2A_NO_ERROR);
    assert_non_null(strstr(self.script.seen, "\"tasks/pushNotificationConfig/set\""));
    assert_int_equal(outcome(&self, A2A_SEND_MESSAGE, A2A_0_3, SEND_WITH("https://x.example/")),
                     A2A_NO_ERROR);
    assert_non_null(strstr(self.script.seen, "\"message/send\""));
    assert_int_equal(outcome(&self, A2A_SEND_MESSAGE, A2A_0_3, SEND), A2A_NO_ERROR);
    assert_non_null(strstr(self.script.seen, "\"SendMessage\""));
    assert_int_equal(outcome(&self, A2A_CREATE_PUSH_CONFIG, A2A_1_0, HOOK("https://x.example/")),
                     A2A_NO_ERROR);
    assert_non_null(strstr(self.script.seen, "\"CreateTaskPushNotificationConfig\""));
    rig_close(&self);
}

/* Its skills would be tools of agents made of its skills, without end. */
static void a_card_that_leads_back_is_refused(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.public.base = str_of(self.url);
    self.script.path = "a2a/other";
    assert_true(caller_init(&one, A2A_SEND_MESSAGE, SEND));
    begin(&self, &one);
    turn_until(&self, &one.ended, 1);
    assert_int_equal(one.fault.error, A2A_E_UNAVAILABLE);
    assert_int_equal(self.script.posts, 0);
    assert_non_null(strstr(agents_remote_state_of(self.remote).error, "leads back"));
    arena_fini(&one.memory);
    rig_close(&self);
}

/* Whether there are streams is known when the card has come. */
static void a_stream_may_be_a_result(void **state)
{
    (void)state;
    for (int lacks = 0; lacks < 2; lacks++) {
        rig self;
        caller one;
        assert_int_equal(rig_open(&self), BAY_OK);
        self.script.lacks_streams = lacks == 1;
        assert_true(caller_init(&one, A2A_SEND_STREAMING_MESSAGE, SEND));
        one.call.takes_result = true;
        begin(&self, &one);
        turn_until(&self, &one.ended, 1);
        assert_non_null(
            strstr(self.script.seen, lacks == 1 ? "\"SendMessage\"" : "\"SendStreamingMessage\""));
        assert_true(lacks == 0 || strstr(one.result, "hi") != NULL);
        arena_fini(&one.memory);
        rig_close(&self);
    }
}

static void the_older_path_of_a_card_is_tried(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.lacks_current = true;
    assert_true(caller_init(&one, A2A_SEND_MESSAGE, SEND));
    begin(&self, &one);
    turn_until(&self, &one.ended, 1);
    assert_int_equal(self.script.cards, 2);
    assert_non_null(strstr(one.result, "\"hi\""));
    arena_fini(&one.memory);
    rig_close(&self);
}

static void an_agent_that_cannot_be_had_is_left_alone(void **state)
{
    (void)state;
    rig self;
    caller calls[5];
    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.card_status = 503;
    for (int i = 0; i < 5; i++) {
        assert_true(caller_init(&calls[i], A2A_SEND_MESSAGE, SEND));
        begin(&self, &calls[i]);
        turn_until(&self, &calls[i].ended, 1);
        assert_int_equal(calls[i].fault.error, A2A_E_UNAVAILABLE);
        assert_null(strstr(calls[i].fault.text, "127.0.0.1")); /* not the caller's affair */
        arena_fini(&calls[i].memory);
    }
    assert_int_equal(self.script.cards, 3); /* then the circuit is open */
    assert_string_equal(agents_remote_state_of(self.remote).state, "open");
    rig_close(&self);
}

static void streams_go_through_and_slow_callers_hold_back_their_own(void **state)
{
    (void)state;
    static const char *const stream =
        "data: {\"jsonrpc\":\"2.0\",\"id\":#,\"result\":{\"task\":{\"id\":\"t\",\"contextId\":"
        "\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n"
        "data: {\"jsonrpc\":\"2.0\",\"id\":#,\"result\":{\"statusUpdate\":{\"taskId\":\"t\","
        "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n"
        "data: {\"jsonrpc\":\"2.0\",\"id\":#,\"result\":{\"statusUpdate\":{\"taskId\":\"t\","
        "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}}\n\n";
    rig self;
    caller one, other;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.stream = stream;
    assert_true(caller_init(&one, A2A_SEND_STREAMING_MESSAGE, SEND));
    assert_true(caller_init(&other, A2A_SEND_STREAMING_MESSAGE, SEND));
    one.slow_after = 1;
    begin(&self, &one);
    begin(&self, &other);
    turn_until(&self, &other.ended, 1);
    assert_int_equal(other.events, 3);
    assert_int_equal(one.ended, 0);
    assert_true(one.events < 3);
    one.slow_after = 0;
    a2a_service *service = agents_remote_service(self.remote);
    service->drained(service, &one.call);
    turn_until(&self, &one.ended, 1);
    assert_int_equal(one.events, 3);
    arena_fini(&one.memory);
    arena_fini(&other.memory);
    rig_close(&self);
}

static void whoever_leaves_is_ended_at_once_and_once(void **state)
{
    (void)state;
    rig self;
    caller waiting, sent;
    assert_int_equal(rig_open(&self), BAY_OK);
    a2a_service *service = agents_remote_service(self.remote);
    self.script.answer = NULL;
    assert_true(caller_init(&waiting, A2A_SEND_MESSAGE, SEND));
    assert_true(caller_init(&sent, A2A_SEND_MESSAGE, SEND));
    begin(&self, &waiting);
    service->gone(service, &waiting.call); /* while the card is fetched */
    assert_int_equal(waiting.ended, 1);
    begin(&self, &sent);
    turn_until(&self, &self.script.posts, 1);
    service->gone(service, &sent.call);
    assert_int_equal(sent.ended, 1);
    assert_int_equal(agents_remote_calls(self.remote), 0);
    arena_fini(&waiting.memory);
    arena_fini(&sent.memory);
    rig_close(&self);
}

static void what_is_open_fails_when_the_agent_leaves(void **state)
{
    (void)state;
    rig self;
    caller waiting, sent;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.script.answer = NULL;
    assert_true(caller_init(&sent, A2A_SEND_MESSAGE, SEND));
    assert_true(caller_init(&waiting, A2A_SEND_MESSAGE, SEND));
    begin(&self, &sent);
    turn_until(&self, &self.script.posts, 1);
    begin(&self, &waiting);
    agents_remote_free(self.remote);
    self.remote = NULL;
    assert_int_equal(sent.ended, 1);
    assert_int_equal(waiting.ended, 1);
    arena_fini(&waiting.memory);
    arena_fini(&sent.memory);
    rig_close(&self);
}

static void told(void *user)
{
    ++*(int *)user;
}

static void an_old_card_is_asked_for_again_and_may_be_the_same(void **state)
{
    (void)state;
    rig self;
    int count = 0;
    agents_watch watch = {.told = told, .user = &count};
    assert_int_equal(rig_open(&self), BAY_OK);
    agents_remote_watch(self.remote, &watch);
    assert_true(agents_remote_learn(self.remote));
    turn_until(&self, &count, 1);
    agents_card *first = agents_remote_card(self.remote);
    assert_non_null(first);
    assert_false(agents_remote_learn(self.remote)); /* it is fresh */
    for (int i = 0; i < MOST_TURNS && count < 2; i++) {
        (void)agents_remote_learn(self.remote); /* until max-age is over */
        loop_turn(self.loop, TURN_MS);
    }
    assert_int_equal(count, 2);
    assert_ptr_equal(agents_remote_card(self.remote), first);
    assert_int_equal(self.script.cards, 2);
    self.script.card_status = 500; /* it stays when it cannot be had any more */
    for (int i = 0; i < MOST_TURNS && count < 3; i++) {
        (void)agents_remote_learn(self.remote);
        loop_turn(self.loop, TURN_MS);
    }
    assert_int_equal(count, 3);
    assert_ptr_equal(agents_remote_card(self.remote), first);
    agents_remote_unwatch(&watch);
    rig_close(&self);
}

#ifndef BAY_NO_TLS
static const char signing_key[] = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"peer\","
                                  "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                                  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\","
                                  "\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\"}";

/* Looks at the card until it was fetched once more. */
static void look_again(rig *self, const int *count)
{
    int before = *count;
    for (int i = 0; i < MOST_TURNS && *count == before; i++) {
        (void)agents_remote_learn(self->remote);
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(*count, before + 1);
}

/* Whoever can change a card can leave its signature out, too. */
static void a_card_that_was_signed_stays_signed(void **state)
{
    (void)state;
    rig self;
    int count = 0;
    char path[] = "/tmp/remote.XXXXXX";
    agents_watch watch = {.told = told, .user = &count};
    jose_key *key = NULL;
    buf set;
    bay_diag diag = {0};
    assert_int_equal(rig_open(&self), BAY_OK);
    agents_remote_free(self.remote);
    assert_int_equal(jose_key_new(str_of(signing_key), STR(""), &key, &diag), BAY_OK);
    buf_init(&set, 1 << 16);
    assert_int_equal(jose_key_public(key, &set), BAY_OK);
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, set.at, set.len) == (ssize_t)set.len);
    close(file);
    self.settings.verify.keys_file = str_of(path);
    assert_int_equal(
        agents_remote_new(self.loop, &self.settings, &self.public, NULL, &self.remote, &diag),
        BAY_OK);
    agents_remote_watch(self.remote, &watch);
    look_again(&self, &count);
    assert_false(agents_remote_state_of(self.remote).is_verified);
    assert_non_null(agents_remote_card(self.remote)); /* not required: an unsigned one will do */
    self.script.key = key;
    self.script.etag = "\"2\"";
    look_again(&self, &count);
    assert_true(agents_remote_state_of(self.remote).is_verified);
    agents_card *good = agents_remote_card(self.remote);
    self.script.key = NULL;
    self.script.etag = "\"3\"";
    look_again(&self, &count);
    assert_ptr_equal(agents_remote_card(self.remote), good);
    assert_true(agents_remote_state_of(self.remote).is_verified);
    assert_non_null(strstr(agents_remote_state_of(self.remote).error, "not signed any more"));
    agents_remote_unwatch(&watch);
    (void)unlink(path);
    buf_fini(&set);
    jose_key_free(key);
    rig_close(&self);
}
#else
SKIPPED(a_card_that_was_signed_stays_signed,
        "this build has no TLS, and with it nothing that signs")
#endif

static void keys_that_cannot_be_read_are_said_at_once(void **state)
{
    (void)state;
    rig self;
    bay_diag diag = {0};
    agents_remote *remote = NULL;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.settings.verify.keys_file = STR("/nonexistent/keys.json");
    assert_int_equal(
        agents_remote_new(self.loop, &self.settings, &self.public, NULL, &remote, &diag),
        BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "agents.far.verify.keys"));
    assert_null(remote);
    rig_close(&self);
}

/* Whatever allocation fails: the call ends exactly once, and everything is given back. */
static void sweep_as(const char *who, a2a_method method, a2a_version version, const char *params)
{
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig self;
        caller one;
        agents_owners *owners = NULL;
        bay_err err = rig_open(&self);
        if (err == BAY_OK && who != NULL) { /* callers are kept apart */
            err = agents_owners_new(STR(""), &owners, NULL);
            agents_owned *far = err == BAY_OK ? agents_owners_of(owners, STR("far")) : NULL;
            err = far != NULL ? BAY_OK : BAY_ERR_NOMEM;
            agents_remote_set_owners(self.remote, far, NULL);
        }
        if (err == BAY_OK && caller_init(&one, method, params)) {
            one.call.principal = who != NULL ? person(who) : NULL;
            if (method == A2A_LIST_TASKS) {
                self.script.answer =
                    "{\"jsonrpc\":\"2.0\",\"id\":#,\"result\":{\"tasks\":[{\"id\":"
                    "\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                    "\"TASK_STATE_WORKING\"}}],\"nextPageToken\":\"\",\"pageSize\":"
                    "50,\"totalSize\":1}}";
            }
            self.script.older = version != A2A_1_0 ? "/old" : NULL;
            one.call.version = version;
            begin(&self, &one);
            for (int i = 0; i < 50 && one.ended == 0; i++) {
                loop_turn(self.loop, TURN_MS);
            }
            if (one.ended == 0) { /* the server's memory failed, too: nobody answers */
                a2a_service *service = agents_remote_service(self.remote);
                service->gone(service, &one.call);
            }
            assert_int_equal(one.ended, 1);
            arena_fini(&one.memory);
            if (who != NULL && method == A2A_LIST_TASKS) { /* never what nobody knows to be his */
                assert_null(strstr(one.result, "\"t\""));
            }
        }
        rig_close(&self);
        agents_owners_free(owners);
        failing_memory_check();
    }
}

static void sweep(a2a_method method, a2a_version version, const char *params)
{
    sweep_as(NULL, method, version, params);
}

static void every_failing_allocation_ends_the_call_once(void **state)
{
    (void)state;
    sweep(A2A_SEND_MESSAGE, A2A_1_0, SEND);
    sweep(A2A_SEND_STREAMING_MESSAGE, A2A_1_0, SEND);
    /* on a line of its own */
    sweep(A2A_CREATE_PUSH_CONFIG, A2A_0_3, HOOK("https://x.example/"));
    sweep(A2A_SEND_MESSAGE, A2A_0_3, SEND_WITH("https://x.example/"));
    sweep_as("ann", A2A_SEND_MESSAGE, A2A_1_0, SEND);
    sweep_as("ann", A2A_SEND_STREAMING_MESSAGE, A2A_1_0, SEND);
    sweep_as("ann", A2A_LIST_TASKS, A2A_1_0, "{\"contextId\":\"c\"}");
    sweep_as("ann", A2A_GET_TASK, A2A_1_0, "{\"id\":\"t\"}");
    sweep_as("ann", A2A_SEND_MESSAGE, A2A_0_3, SEND_WITH("https://x.example/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_that_was_signed_stays_signed),
        cmocka_unit_test(keys_that_cannot_be_read_are_said_at_once),
        cmocka_unit_test(an_agent_that_cannot_be_had_is_left_alone),
        cmocka_unit_test(whom_a_call_came_through_is_passed_on),
        cmocka_unit_test(credentials_stay_with_the_host_they_are_for),
        cmocka_unit_test(a_call_waits_for_the_card_and_goes_out_as_it_says),
        cmocka_unit_test(a_card_that_leads_back_is_refused),
        cmocka_unit_test(a_stream_may_be_a_result),
        cmocka_unit_test(webhooks_are_public),
        cmocka_unit_test(webhooks_are_registered_in_the_callers_version),
        cmocka_unit_test(the_older_path_of_a_card_is_tried),
        cmocka_unit_test(streams_go_through_and_slow_callers_hold_back_their_own),
        cmocka_unit_test(whoever_leaves_is_ended_at_once_and_once),
        cmocka_unit_test(what_is_open_fails_when_the_agent_leaves),
        cmocka_unit_test(an_old_card_is_asked_for_again_and_may_be_the_same),
        cmocka_unit_test(every_failing_allocation_ends_the_call_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
