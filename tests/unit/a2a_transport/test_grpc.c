/* gRPC in front of a service, and the call towards one: against each other, and each against a peer
 * that breaks the rules. */
#include "a2a/event.h"
#include "a2a_transport/grpc.h" /* before cmocka, which has a macro "fail" */
#include "a2a_transport/grpc_link.h"
#include "json/build.h"

#include "support/failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/http2.h" /* a build without HTTP/2 has nothing of this */
#include "http/http_client.h"
#include "support/people.h"
#include "wire/grpc_frame.h"

enum { TURNS = 20000 };

#define UNTIL(on, condition)                                                                       \
    do {                                                                                           \
        int turns = TURNS;                                                                         \
        while (!(condition) && turns-- > 0) {                                                      \
            (void)loop_turn((on)->loop, 1);                                                        \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

/* --- a service that does as the task's id says ------------------------------------------------ */

typedef struct rig {
    loop *loop;
    http_server *server;
    http_client *client;
    a2a_grpc *grpc;
    a2a_http_router_options options;
    a2a_service service;
    a2a_call *held;
    int calls;
    int gone;
    int drained;
    int sent;
    bool refuses;
    bool was_called_0_3;
    char seen[600];
} rig;

static const char task[] =
    "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}";
static const char working[] = "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                              "{\"state\":\"TASK_STATE_WORKING\"}}}";
static const char done[] = "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                           "{\"state\":\"TASK_STATE_COMPLETED\"}}}";

static bay_err say(a2a_call *call, const char *json, bool is_last)
{
    a2a_event *event = a2a_event_new(str_of(json), 1, is_last);
    bay_err err = event != NULL ? a2a_call_event(call, event) : BAY_ERR_CLOSED;
    a2a_event_unref(event);
    return err;
}

static void flood(rig *self)
{
    static char large[64 * 1024];
    if (large[0] == '\0') {
        int len = snprintf(large, sizeof(large),
                           "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                           "{\"state\":\"TASK_STATE_WORKING\"},\"metadata\":{\"x\":\"");
        memset(large + len, 'x', sizeof(large) - (size_t)len - 8);
        memcpy(large + sizeof(large) - 8, "\"}}}", 5);
    }
    while (self->sent < 200) {
        self->sent++;
        if (say(self->held, large, false) != BAY_OK) {
            return;
        }
    }
    a2a_call *call = self->held;
    self->held = NULL;
    a2a_call_end(call);
}

static void service_call(a2a_service *service, a2a_call *call)
{
    rig *self = CONTAINER_OF(service, rig, service);
    bay_str id = STR("");
    self->calls++;
    self->was_called_0_3 = call->version == A2A_0_3;
    (void)json_str_plain(json_get(call->params, STR("id")), &id);
    bay_str own = a2a_call_field(call, STR("x-own"));
    snprintf(self->seen, sizeof(self->seen), "%s|%.*s|%.*s|%.*s|%.*s|%.*s",
             a2a_methods[call->method].name.at, BAY_STR(id), BAY_STR(call->tenant),
             BAY_STR(principal_subject(call->principal)), BAY_STR(call->extensions), BAY_STR(own));
    if (str_eq(id, STR("missing"))) {
        a2a_fault fault = {A2A_E_TASK_NOT_FOUND, "no task \"missing\" of 100%"};
        a2a_call_fail(call, &fault);
    } else if (str_eq(id, STR("hold"))) {
        self->held = call;
    } else if (call->method == A2A_SUBSCRIBE_TO_TASK) {
        bool is_flood = str_eq(id, STR("flood"));
        self->held = call;
        if (is_flood) {
            flood(self);
            return;
        }
        (void)say(call, working, false);
        if (str_eq(id, STR("break"))) {
            a2a_fault fault = {A2A_E_INTERNAL, "it broke"};
            self->held = NULL;
            a2a_call_fail(call, &fault);
        } else if (!str_eq(id, STR("open"))) {
            (void)say(call, done, true);
            self->held = NULL;
            a2a_call_end(call);
        }
    } else if (call->method == A2A_SEND_MESSAGE) {
        a2a_call_result(call, STR("{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\","
                                  "\"parts\":[{\"text\":\"hi\"}]}}"));
    } else if (call->method == A2A_DELETE_PUSH_CONFIG) {
        a2a_call_result(call, STR("{}"));
    } else {
        a2a_call_result(call, str_of(task));
    }
}

static void service_gone(a2a_service *service, a2a_call *call)
{
    rig *self = CONTAINER_OF(service, rig, service);
    self->gone++;
    assert_true(call->is_gone);
    self->held = NULL;
    a2a_call_end(call);
}

static void service_drained(a2a_service *service, a2a_call *call)
{
    rig *self = CONTAINER_OF(service, rig, service);
    (void)call;
    self->drained++;
    flood(self);
}

static bool find_agent(void *user, bay_str tenant, http_exchange *exchange,
                       const auth_principal *principal, a2a_http_agent *out)
{
    (void)exchange;
    (void)principal;
    rig *self = user;
    *out = (a2a_http_agent){.service = &self->service, .extensions = STR("urn:x")};
    return !str_eq(tenant, STR("nobody"));
}

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    a2a_fault fault = {A2A_E_UNAUTHENTICATED, "who are you?"};
    if (!a2a_grpc_is_request(exchange)) {
        http_exchange_reply(exchange, 404, NULL, 0, STR("not here"));
    } else if (self->refuses) {
        const front_challenge challenge = {.schemes = {STR("Bearer")}};
        a2a_grpc_refuse(exchange, &fault, &challenge);
    } else {
        a2a_grpc_request(self->grpc, exchange, person("me"));
    }
}

static const http_handler handler = {
    .request = on_request, .closed = http_owner_closed, .drained = http_owner_drained};

static bay_err rig_begin(rig *self)
{
    memset(self, 0, sizeof(*self));
    self->service =
        (a2a_service){.call = service_call, .gone = service_gone, .drained = service_drained};
    self->options = (a2a_http_router_options){.agent = find_agent, .user = self};
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    http_client_options client = {.limits = http_client_default_limits};
    bay_err err = loop_new(&self->loop);
    if (err == BAY_OK) {
        err = a2a_grpc_new(self->loop, &self->options, &self->grpc);
    }
    if (err == BAY_OK) {
        err = http_server_new(self->loop, &server, &self->server);
    }
    if (err == BAY_OK) {
        err = http_server_listen(self->server, STR("127.0.0.1:0"), NULL);
    }
    if (err == BAY_OK) {
        err = http_client_new(self->loop, &client, &self->client);
    }
    return err;
}

static void rig_end(rig *self)
{
    http_client_free(self->client);
    http_server_free(self->server);
    a2a_grpc_free(self->grpc);
    assert_null(self->held);
    if (self->loop != NULL) {
        loop_free(self->loop);
    }
}

/* --- the calling side ------------------------------------------------------------------------- */

typedef struct answer {
    rig *on;
    a2a_grpc_sent *sent;
    char json[4096];
    int results;
    int events;
    int last;
    int ends;
    int failures;
    bay_err err;
    a2a_fault fault;
    bool pauses;
    bool cancels;
} answer;

static void on_result(void *user, json_val result)
{
    bay_str json = json_raw(result);
    answer *self = user;
    self->results++;
    snprintf(self->json, sizeof(self->json), "%.*s", BAY_STR(json));
}

static void on_event(void *user, json_val event, uint64_t event_id, bool is_last)
{
    answer *self = user;
    assert_int_equal(event_id, 0);
    self->events++;
    self->last += is_last;
    snprintf(self->json, sizeof(self->json), "%.*s", BAY_STR(json_raw(event)));
    if (self->cancels) {
        a2a_grpc_cancel(self->sent);
    } else if (self->pauses) {
        a2a_grpc_pause(self->sent);
    }
}

static void on_end(void *user)
{
    answer *self = user;
    self->ends++;
}

static void on_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    answer *self = user;
    (void)was_sent;
    self->failures++;
    self->err = err;
    self->fault = *fault;
}

static const a2a_link_events events = {
    .result = on_result, .event = on_event, .end = on_end, .failed = on_failed};

static const a2a_link_limits limits = {
    .answer_bytes = 1 << 20, .timeout_ms = 20000, .idle_ms = 20000};

static bay_err try_send(answer *out, rig *on, a2a_version version, const char *tenant,
                        a2a_method method, const char *params, const a2a_link_limits *bounds)
{
    char url[64];
    memset(out, 0, sizeof(*out));
    out->on = on;
    snprintf(url, sizeof(url), "127.0.0.1:%u", http_server_port(on->server));
    a2a_interface to = {
        .url = str_of(url), .tenant = str_of(tenant), .binding = A2A_GRPC, .version = version};
    const http_field fields[] = {{STR("X-Own"), STR("mine")},
                                 {STR("A2A-Extensions"), STR("urn:x")},
                                 {STR("grpc-timeout"), STR("1n")}};
    arena memory;
    json_doc doc;
    arena_init(&memory, 64 << 20);
    bay_err err = json_parse(&doc, str_of(params), NULL, &memory, NULL);
    if (err != BAY_OK) {
        arena_fini(&memory);
        return err;
    }
    a2a_link_request request = {
        .method = method, .params = json_root(&doc), .fields = fields, .field_count = 3};
    err = a2a_grpc_send(on->client, &to, bounds, &request, &events, out, &out->sent, &out->fault);
    arena_fini(&memory); /* it is written already */
    return err;
}

static bool is_over(const answer *self)
{
    return self->results + self->ends + self->failures > 0;
}

static void ask(answer *out, rig *on, a2a_version version, const char *tenant, a2a_method method,
                const char *params)
{
    assert_int_equal(try_send(out, on, version, tenant, method, params, &limits), BAY_OK);
    assert_false(is_over(out));
    UNTIL(on, is_over(out));
}

/* --- both together ---------------------------------------------------------------------------- */

static void test_unary(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    ask(&out, &on, A2A_1_0, "acme", A2A_GET_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.results, 1);
    assert_string_equal(out.json, task);
    assert_string_equal(on.seen, "GetTask|t|acme|me|urn:x|mine");
    ask(&out, &on, A2A_0_3, "acme", A2A_GET_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.results, 1);
    assert_string_equal(out.json, task);
    assert_string_equal(on.seen, "GetTask|t|acme|me|urn:x|mine");
    assert_true(on.was_called_0_3);
    static const char message[] = "{\"message\":{\"messageId\":\"q\",\"role\":\"ROLE_USER\","
                                  "\"parts\":[{\"text\":\"hello\"}]}}";
    ask(&out, &on, A2A_1_0, "", A2A_SEND_MESSAGE, message);
    assert_non_null(strstr(out.json, "{\"message\":{\"messageId\":\"m\""));
    ask(&out, &on, A2A_0_3, "", A2A_SEND_MESSAGE, message);
    assert_non_null(strstr(out.json, "{\"message\":{\"messageId\":\"m\""));
    ask(&out, &on, A2A_1_0, "", A2A_DELETE_PUSH_CONFIG, "{\"taskId\":\"t\",\"id\":\"p\"}");
    assert_string_equal(out.json, "{}");
    assert_int_equal(try_send(&out, &on, A2A_0_3, "", A2A_LIST_TASKS, "{}", &limits),
                     BAY_ERR_UNSUPPORTED);
    assert_int_equal(try_send(&out, &on, A2A_0_1, "", A2A_GET_TASK, "{\"id\":\"t\"}", &limits),
                     BAY_ERR_UNSUPPORTED);
    rig_end(&on);
}

static void test_faults_keep_their_names(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    ask(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{\"id\":\"missing\"}");
    assert_int_equal(out.err, BAY_ERR_REMOTE);
    assert_int_equal(out.fault.error, A2A_E_TASK_NOT_FOUND);
    assert_string_equal(out.fault.text, "no task \"missing\" of 100%");
    ask(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{}");
    assert_int_equal(out.err, BAY_ERR_REMOTE);
    assert_int_equal(out.fault.error, A2A_E_INVALID_PARAMS);
    ask(&out, &on, A2A_1_0, "nobody", A2A_GET_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.err, BAY_ERR_REMOTE);
    on.refuses = true;
    ask(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.fault.error, A2A_E_UNAUTHENTICATED);
    assert_string_equal(out.fault.text, "who are you?");
    assert_int_equal(on.calls, 1);
    rig_end(&on);
}

static void test_streams(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    ask(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.events, 2);
    assert_string_equal(out.json, done);
    ask(&out, &on, A2A_0_3, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"t\"}");
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.events, 2);
    assert_int_equal(out.last, 1); /* it says so itself */
    assert_string_equal(out.json, done);
    ask(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"break\"}");
    assert_int_equal(out.events, 1);
    assert_int_equal(out.err, BAY_ERR_REMOTE);
    assert_int_equal(out.fault.error, A2A_E_INTERNAL);
    assert_string_equal(out.fault.text, "it broke");
    ask(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"missing\"}");
    assert_int_equal(out.events, 0);
    assert_int_equal(out.fault.error, A2A_E_TASK_NOT_FOUND);
    assert_int_equal(on.gone, 0);
    rig_end(&on);
}

static void test_a_slow_reader_holds_the_service_back(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    assert_int_equal(
        try_send(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"flood\"}", &limits),
        BAY_OK);
    out.pauses = true;
    UNTIL(&on, out.events == 1);
    for (int i = 0; i < 50; i++) {
        (void)loop_turn(on.loop, 0);
    }
    assert_int_equal(out.events, 1);
    assert_true(on.sent < 50); /* of 200 */
    while (!is_over(&out)) {
        int before = out.events;
        a2a_grpc_resume(out.sent);
        assert_int_equal(out.events, before);
        UNTIL(&on, out.events > before || is_over(&out));
        assert_true(out.events <= before + 1);
    }
    assert_int_equal(out.events, 200);
    assert_int_equal(out.ends, 1);
    assert_true(on.drained > 0);
    rig_end(&on);
}

static bool says(void *user, const auth_principal *who)
{
    (void)who;
    return *(bool *)user;
}

static void test_who_leaves(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    /* The caller, before and inside a stream. */
    assert_int_equal(try_send(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{\"id\":\"hold\"}", &limits),
                     BAY_OK);
    UNTIL(&on, on.held != NULL);
    a2a_grpc_cancel(out.sent);
    UNTIL(&on, on.gone == 1);
    assert_int_equal(
        try_send(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"open\"}", &limits),
        BAY_OK);
    out.cancels = true;
    UNTIL(&on, on.gone == 2);
    assert_int_equal(out.events, 1);
    assert_false(is_over(&out));
    /* Nobody in time: the caller's bound is the service's. */
    a2a_link_limits hasty = limits;
    hasty.timeout_ms = 30;
    assert_int_equal(try_send(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{\"id\":\"hold\"}", &hasty),
                     BAY_OK);
    UNTIL(&on, is_over(&out) && on.gone == 3);
    assert_int_equal(out.fault.error, A2A_E_DEADLINE);
    /* Streams of callers who may not have them any more. */
    assert_int_equal(
        try_send(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"open\"}", &limits),
        BAY_OK);
    UNTIL(&on, out.events == 1);
    int gone = on.gone;
    bool is_over_now = false;
    a2a_grpc_end_streams(on.grpc, says, &is_over_now);
    assert_int_equal(on.gone, gone);
    is_over_now = true;
    a2a_grpc_end_streams(on.grpc, says, &is_over_now);
    assert_int_equal(on.gone, gone + 1);
    UNTIL(&on, is_over(&out));
    assert_int_equal(out.fault.error, A2A_E_FORBIDDEN);
    /* The server ends its streams. */
    assert_int_equal(
        try_send(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"open\"}", &limits),
        BAY_OK);
    UNTIL(&on, out.events == 1);
    a2a_grpc_end_streams(on.grpc, NULL, NULL);
    assert_int_equal(on.gone, 5);
    UNTIL(&on, is_over(&out));
    assert_int_equal(out.fault.error, A2A_E_UNAVAILABLE);
    /* The connection breaks. */
    assert_int_equal(
        try_send(&out, &on, A2A_1_0, "", A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"open\"}", &limits),
        BAY_OK);
    UNTIL(&on, out.events == 1);
    http_server_free(on.server);
    on.server = NULL;
    assert_int_equal(on.gone, 6);
    UNTIL(&on, is_over(&out));
    assert_int_equal(out.failures, 1);
    rig_end(&on);
}

static void test_addresses(void **state)
{
    (void)state;
    rig on;
    answer out;
    assert_int_equal(rig_begin(&on), BAY_OK);
    static const char *const bad[] = {"",          "ftp://a:1",    "http://a:1/path", "a:1/path",
                                      "a b:1",     "http://u@a:1", "http://a:1?q",    "a:99999",
                                      "dns:///a:1"};
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, STR("{\"id\":\"t\"}"), NULL, &memory, NULL), BAY_OK);
    a2a_link_request request = {.method = A2A_GET_TASK, .params = json_root(&doc)};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        a2a_interface to = {
            .url = str_of(bad[i]), .binding = A2A_GRPC, .version = A2A_1_0, .tenant = STR("")};
        assert_int_equal(
            a2a_grpc_send(on.client, &to, &limits, &request, &events, &out, &out.sent, &out.fault),
            BAY_ERR_INVALID);
    }
    char url[64];
    snprintf(url, sizeof(url), "http://localhost:%u/", http_server_port(on.server));
    a2a_interface to = {
        .url = str_of(url), .binding = A2A_GRPC, .version = A2A_1_0, .tenant = STR("")};
    memset(&out, 0, sizeof(out));
    assert_int_equal(
        a2a_grpc_send(on.client, &to, &limits, &request, &events, &out, &out.sent, &out.fault),
        BAY_OK);
    UNTIL(&on, is_over(&out));
    assert_int_equal(out.results, 1);
    rig_end(&on);
    arena_fini(&memory);
}

/* --- requests that are no gRPC ---------------------------------------------------------------- */

typedef struct reply {
    int status;
    char code[8];
    char message[256];
    bool has_details;
    bool is_over;
} reply;

static void note(reply *self, const http_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(fields[i].name, STR("grpc-status"))) {
            snprintf(self->code, sizeof(self->code), "%.*s", BAY_STR(fields[i].value));
        } else if (str_eq(fields[i].name, STR("grpc-message"))) {
            snprintf(self->message, sizeof(self->message), "%.*s", BAY_STR(fields[i].value));
        } else if (str_eq(fields[i].name, STR("grpc-status-details-bin"))) {
            self->has_details = true;
        }
    }
}

static void reply_head(void *user, int status, const http_field *fields, size_t count)
{
    reply *self = user;
    self->status = status;
    note(self, fields, count);
}

static void reply_end(void *user)
{
    ((reply *)user)->is_over = true;
}

static void reply_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)err;
    (void)was_sent;
    (void)text;
    ((reply *)user)->is_over = true;
}

static void reply_trailers(void *user, const http_field *fields, size_t count)
{
    note(user, fields, count);
}

static void expect(rig *on, const char *path, const char *type, bay_str body,
                   const http_field *extra, const char *wanted)
{
    static const http_call_events reply_events = {
        .head = reply_head, .end = reply_end, .failed = reply_failed, .trailers = reply_trailers};
    char url[200];
    reply got = {0};
    http_call *call = NULL;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", http_server_port(on->server), path);
    http_field fields[2] = {{STR("content-type"), str_of(type)}};
    if (extra != NULL) {
        fields[1] = *extra;
    }
    http_call_spec spec = {.method = STR("POST"),
                           .url = str_of(url),
                           .fields = fields,
                           .field_count = extra != NULL ? 2 : 1,
                           .body = body,
                           .is_http2 = true};
    bay_diag diag;
    assert_int_equal(http_client_call(on->client, &spec, &reply_events, &got, &call, &diag),
                     BAY_OK);
    UNTIL(on, got.is_over);
    assert_int_equal(got.status, 200);
    if (strcmp(got.code, wanted) != 0) {
        fail_msg("%s: wanted %s, got %s %s", path, wanted, got.code, got.message);
    }
}

#define GET "/lf.a2a.v1.A2AService/GetTask"
#define PROTO "application/grpc+proto"
#define BYTES(literal) ((bay_str){literal, sizeof(literal) - 1})

static void test_bad_requests(void **state)
{
    (void)state;
    rig on;
    assert_int_equal(rig_begin(&on), BAY_OK);
    const bay_str fine = BYTES("\0\0\0\0\x03\x12\x01t"); /* id is field 2 */
    expect(&on, GET, "application/grpc", fine, NULL, "0");
    expect(&on, GET, "application/grpc;x=y", fine, NULL, "0");
    expect(&on, GET, "application/grpc+json", fine, NULL, "12");
    expect(&on, "/lf.a2a.v1.A2AService/Nothing", PROTO, fine, NULL, "12");
    expect(&on, "/lf.a2a.v1.A2AService/", PROTO, fine, NULL, "12");
    expect(&on, "/a2a.v1.A2AService/ListTasks", PROTO, fine, NULL, "12");
    expect(&on, "/other.Service/GetTask", PROTO, fine, NULL, "12");
    expect(&on, GET, PROTO, STR(""), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\x04\x12\x01t"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\x02\x12\x01t"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\xff\xff\xff\xff\x12\x01t"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\x01\0\0\0\x03\x12\x01t"), NULL, "12");
    expect(&on, GET, PROTO, BYTES("\x02\0\0\0\x03\x12\x01t"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\x03\x12\x01t\0\0\0\0\0"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\x03\x12\x05t"), NULL, "3"); /* truncated */
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\x03\x12\x01\xff"), NULL, "3");
    expect(&on, GET, PROTO, BYTES("\0\0\0\0\0"), NULL, "3"); /* id is required */
    http_field field = {STR("a2a-version"), STR("0.3")};
    expect(&on, GET, PROTO, fine, &field, "9");
    field.value = STR("1.0");
    expect(&on, GET, PROTO, fine, &field, "0");
    field.value = STR("7.1");
    expect(&on, GET, PROTO, fine, &field, "9");
    field = (http_field){STR("grpc-timeout"), STR("soon")};
    expect(&on, GET, PROTO, fine, &field, "13");
    field = (http_field){STR("grpc-encoding"), STR("gzip")};
    expect(&on, GET, PROTO, fine, &field, "12");
    field = (http_field){STR("grpc-encoding"), STR("identity")};
    expect(&on, GET, PROTO, fine, &field, "0");
    assert_int_equal(on.calls, 4);
    rig_end(&on);
}

/* --- an agent that breaks the rules ----------------------------------------------------------- */

typedef struct rogue {
    const char *type;
    bay_str body;
    const char *status; /* NULL: none */
    int http;
} rogue;

static const rogue *now_rogue;

static void rogue_request(void *user, http_exchange *exchange)
{
    (void)user;
    const http_field type = {STR("content-type"), str_of(now_rogue->type)};
    assert_int_equal(http_stream_open(exchange, now_rogue->http, &type, 1, true), BAY_OK);
    (void)http_stream_write(exchange, now_rogue->body);
    const http_field status = {STR("grpc-status"),
                               str_of(now_rogue->status != NULL ? now_rogue->status : "")};
    http_stream_end_with(exchange, &status, now_rogue->status != NULL ? 1 : 0);
}

static void rogue_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static void test_bad_answers(void **state)
{
    (void)state;
    static const http_handler rogues = {.request = rogue_request, .closed = rogue_closed};
    static const struct {
        rogue rogue;
        bay_err err;
        a2a_error error;
    } cases[] = {
        {{"text/html", {"<p>", 3}, NULL, 200}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{"text/html", {"<p>", 3}, NULL, 503}, BAY_ERR_REMOTE, A2A_E_UNAVAILABLE},
        {{"text/html", {"<p>", 3}, NULL, 401}, BAY_ERR_REMOTE, A2A_E_UNAUTHENTICATED},
        {{"application/grpc", {"\0\0\0\0\0", 5}, NULL, 200},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"", 0}, "0", 200}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"\0\0\0\0\x09", 5}, "0", 200},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"\x01\0\0\0\0", 5}, "0", 200},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"\0\xff\0\0\0", 5}, "0", 200},
         BAY_ERR_LIMIT,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"\0\0\0\0\x01\xff", 6}, "0", 200},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{"application/grpc", {"", 0}, "14", 200}, BAY_ERR_REMOTE, A2A_E_UNAVAILABLE},
        {{"application/grpc", {"", 0}, "99", 200}, BAY_ERR_REMOTE, A2A_E_INTERNAL},
        {{"application/grpc", {"", 0}, "x", 200}, BAY_ERR_REMOTE, A2A_E_INTERNAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig on;
        answer out;
        assert_int_equal(rig_begin(&on), BAY_OK);
        http_server_free(on.server);
        http_server_options options = {
            .limits = http_server_default_limits, .handler = &rogues, .user = &on};
        assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
        assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
        now_rogue = &cases[i].rogue;
        ask(&out, &on, A2A_1_0, "", A2A_GET_TASK, "{\"id\":\"t\"}");
        if (out.failures != 1 || out.err != cases[i].err || out.fault.error != cases[i].error) {
            fail_msg("case %zu: err %d, error %d: %s", i, out.err, out.fault.error, out.fault.text);
        }
        rig_end(&on);
    }
}

/* --- with any lack of memory ------------------------------------------------------------------ */

static void test_every_lack_of_memory(void **state)
{
    (void)state;
    size_t rounds = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        answer out[2];
        if (rig_begin(&on) == BAY_OK) {
            static const a2a_method methods[] = {A2A_GET_TASK, A2A_SUBSCRIBE_TO_TASK};
            for (int i = 0; i < 2; i++) {
                if (try_send(&out[i], &on, i == 0 ? A2A_1_0 : A2A_0_3, "", methods[i],
                             "{\"id\":\"t\"}", &limits) != BAY_OK) {
                    out[i].failures = 1;
                }
            }
            for (int i = 0; i < 3000 && !(is_over(&out[0]) && is_over(&out[1])); i++) {
                (void)loop_turn(on.loop, 1);
            }
            assert_true(is_over(&out[0]) && is_over(&out[1]));
        }
        rig_end(&on);
        failing_memory_check();
        rounds++;
    }
    assert_true(rounds > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_faults_keep_their_names),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_a_slow_reader_holds_the_service_back),
        cmocka_unit_test(test_who_leaves),
        cmocka_unit_test(test_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
