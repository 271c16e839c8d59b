/* The HTTP router of agents: who may name it, what each path answers, what streams do. */
#include "a2a/event.h"
#include "a2a_transport/router.h" /* before cmocka, which has a macro "fail" */

#include "support/failing_memory.h"
#include "support/people.h"
#include "support/server_rig.h"

/* ---- a service that does as the task's id says, and an agent in front of it ------------------ */

typedef struct fake {
    a2a_service service;
    a2a_call *held;
    int calls;
    int gone;
    int drained;
    int sent;
    bool had_params; /* of the stream, behind its first event */
    char seen[512];  /* of the last call */
} fake;

typedef struct router_rig {
    loop *loop;
    http_front *front;
    a2a_http_router *router;
    bay_str base;
    http_server *http;
    fake fake;
    a2a_http_router_options options;
    const char *path;
    bool refuses; /* identify */
    bool admits_nothing;
    bool is_pure;
} router_rig;

static const char working[] = "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                              "{\"state\":\"TASK_STATE_WORKING\"}}}";
static const char task[] =
    "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}";

static bay_err send_one(a2a_call *call, uint64_t sequence, const char *json, bool is_last)
{
    a2a_event *event = a2a_event_new(str_of(json), sequence, is_last);
    if (event == NULL) {
        return BAY_ERR_CLOSED;
    }
    bay_err err = a2a_call_event(call, event);
    a2a_event_unref(event);
    return err;
}

static void flood(fake *self)
{
    static char large[64 * 1024];
    if (large[0] == '\0') {
        int len = snprintf(large, sizeof(large),
                           "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":"
                           "{\"state\":\"TASK_STATE_WORKING\"},\"metadata\":{\"x\":\"");
        memset(large + len, 'x', sizeof(large) - (size_t)len - 8);
        memcpy(large + sizeof(large) - 8, "\"}}}", 5);
    }
    while (self->sent < 400) {
        bay_err err = send_one(self->held, (uint64_t)++self->sent, large, false);
        if (err != BAY_OK) {
            return;
        }
    }
    a2a_call *call = self->held;
    self->held = NULL;
    a2a_call_end(call);
}

static void stream(fake *self, a2a_call *call, bay_str id)
{
    bay_err err = send_one(call, 7, working, false);
    self->had_params = call->params.doc != NULL || call->memory != NULL;
    if (str_eq(id, STR("break"))) {
        a2a_fault fault = {A2A_E_INTERNAL, "it broke"};
        a2a_call_fail(call, &fault);
    } else if (err == BAY_ERR_CLOSED || str_eq(id, STR("short"))) {
        a2a_call_end(call);
    } else {
        self->held = call;
        if (str_eq(id, STR("flood"))) {
            flood(self);
        }
    }
}

static void fake_call(a2a_service *service, a2a_call *call)
{
    fake *self = CONTAINER_OF(service, fake, service);
    bay_str id = STR("");
    self->calls++;
    (void)json_str_plain(json_get(call->params, STR("id")), &id);
    bay_str own = a2a_call_field(call, STR("x-own"));
    snprintf(self->seen, sizeof(self->seen), "%s|%.*s|%.*s|%.*s|%.*s|%llu|%.*s",
             a2a_methods[call->method].name.at, BAY_STR(id),
             BAY_STR(principal_subject(call->principal)), BAY_STR(call->extensions),
             BAY_STR(call->traceparent), (unsigned long long)call->last_event_id, BAY_STR(own));
    if (str_eq(id, STR("missing"))) {
        a2a_fault fault = {A2A_E_TASK_NOT_FOUND, "there is no such task"};
        a2a_call_fail(call, &fault);
    } else if (call->method == A2A_SUBSCRIBE_TO_TASK && str_eq(id, STR("nothing"))) {
        a2a_call_end(call);
    } else if (call->method == A2A_SUBSCRIBE_TO_TASK) {
        stream(self, call, id);
    } else if (str_eq(id, STR("hold"))) {
        self->held = call;
    } else {
        a2a_call_result(call, str_of(task));
    }
}

static void fake_gone(a2a_service *service, a2a_call *call)
{
    fake *self = CONTAINER_OF(service, fake, service);
    assert_true(call->is_gone);
    assert_ptr_equal(call, self->held);
    self->gone++;
    self->held = NULL;
    a2a_call_end(call);
}

static void fake_gone_later(a2a_service *service, a2a_call *call)
{
    fake *self = CONTAINER_OF(service, fake, service);
    assert_ptr_equal(call, self->held);
    self->gone++;
}

static void fake_drained(a2a_service *service, a2a_call *call)
{
    fake *self = CONTAINER_OF(service, fake, service);
    assert_ptr_equal(call, self->held);
    self->drained++;
    flood(self);
}

static void show(router_rig *self, a2a_http_agent *out)
{
    *out = (a2a_http_agent){.service = &self->fake.service,
                            .card_1_0 = STR("{\"pure\":1}"),
                            .card_hybrid = STR("{\"hybrid\":1}"),
                            .card_0_3 = STR("{\"old\":1}"),
                            .etag_1_0 = STR("\"p\""),
                            .etag_hybrid = STR("\"h\""),
                            .etag_0_3 = STR("\"o\""),
                            .extensions = STR("urn:one,urn:two"),
                            .is_hybrid_default = !self->is_pure,
                            .card_max_age_s = 60};
}

static bool rig_agent(void *user, bay_str tenant, http_exchange *exchange,
                      const auth_principal *principal, a2a_http_agent *out)
{
    (void)exchange;
    (void)principal;
    (void)tenant;
    show(user, out);
    return true;
}

static bool agent_serve(void *user, const front_request *request)
{
    router_rig *self = user;
    a2a_http_agent agent;
    show(self, &agent);
    a2a_http_router_serve(self->router, request->exchange, &agent, request->own,
                          request->principal);
    return true;
}

static bool rig_card(void *user, const front_request *request)
{
    a2a_http_agent agent;
    show(user, &agent);
    return a2a_http_router_serve_card(request->exchange, &agent, request->own);
}

static void rig_refuse(void *user, const front_request *request, const front_refusal *refusal)
{
    a2a_http_router_refuse(((router_rig *)user)->router, request->exchange, request->own, refusal);
}

static void rig_unknown(void *user, http_exchange *exchange)
{
    (void)user;
    a2a_http_router_serve_nothing(exchange);
}

static front_verdict agent_identify(void *user, const front_request *request,
                                    const auth_principal **out_principal, front_refusal *out)
{
    router_rig *self = user;
    if (self->refuses) {
        a2a_fault fault;
        (void)a2a_fault_set(&fault, A2A_E_UNAUTHENTICATED, "who are you?");
        front_challenge challenge = {.schemes = {STR("Bearer realm=\"x\""), STR("DPoP")},
                                     .nonce = STR("n1")};
        return a2a_http_router_refused(request->exchange, &fault, &challenge, out);
    }
    *out_principal = principal_ref(person("alice"));
    return FRONT_GO;
}

static const front_row agent_rows[] = {
    {STR_INIT("/.well-known/agent-card.json"), false, FRONT_PUBLIC, &a2a_http_router_cors, rig_card,
     rig_refuse},
    {STR_INIT("/.well-known/agent.json"), false, FRONT_PUBLIC, &a2a_http_router_cors, rig_card,
     rig_refuse},
    {STR_INIT(""), false, FRONT_CALLER, &a2a_http_router_cors, agent_serve, rig_refuse},
    {STR_INIT("/**"), false, FRONT_CALLER, &a2a_http_router_cors, agent_serve, rig_refuse},
};

static bay_err rig_admit(void *user, const a2a_http_agent *agent, http_exchange *exchange,
                         const a2a_call *call, front_challenge *out_challenge, a2a_fault *fault)
{
    router_rig *self = user;
    (void)agent;
    (void)exchange;
    assert_true(json_is(call->params, JSON_OBJECT));
    (void)out_challenge;
    return self->admits_nothing ? a2a_fault_set(fault, A2A_E_FORBIDDEN, "not for you") : BAY_OK;
}

static bay_err router_rig_try(router_rig *self)
{
    self->path = self->path != NULL ? self->path : "";
    self->fake.service =
        (a2a_service){.call = fake_call, .gone = fake_gone, .drained = fake_drained};
    self->options.agent = rig_agent;
    self->options.admit = rig_admit;
    self->options.user = self;
    self->options.inbound.is_lenient = true;
    bay_err err = loop_new(&self->loop);
    if (err == BAY_OK) {
        err = a2a_http_router_new(self->loop, &self->options, &self->router);
    }
    self->base = str_of(self->path);
    front_options options = {.rows = agent_rows,
                             .row_count = ARRAY_LEN(agent_rows),
                             .base = &self->base,
                             .is_loopback = true,
                             .identify = agent_identify,
                             .unknown = rig_unknown,
                             .user = self};
    if (err == BAY_OK) {
        err = front_new(&options, &self->front);
    }
    http_server_options http = {
        .limits = http_server_default_limits, .handler = &front_handler, .user = self->front};
    if (err == BAY_OK) {
        err = http_server_new(self->loop, &http, &self->http);
    }
    return err == BAY_OK ? http_server_listen(self->http, STR("127.0.0.1:0"), NULL) : err;
}

static void router_rig_open(router_rig *self)
{
    assert_int_equal(router_rig_try(self), BAY_OK);
}

static void router_rig_close(router_rig *self)
{
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    front_free(self->front);
    a2a_http_router_free(self->router);
    assert_null(self->fake.held);
    if (self->loop != NULL) {
        loop_free(self->loop);
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

#define V1 "A2A-Version: 1.0\r\n"
#define JSON_1 "Content-Type: application/json\r\n" V1
#define GET_TASK(id)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"GetTask\",\"params\":{\"id\":\"" id "\"}}"
#define SUBSCRIBE(id)                                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":\"a-rather-long-id-that-does-not-fit-where-short-ones-are-"       \
    "kept\","                                                                                      \
    "\"method\":\"SubscribeToTask\",\"params\":{\"id\":\"" id "\"}}"

/* Until the head is there, and the body if one comes. */
static void ask(router_rig *rig, wire_client *client, const char *verb, const char *target,
                const char *fields, const char *body)
{
    wire_request(client, rig->loop, http_server_port(rig->http), verb, target, fields, body);
    bool has_body = strcmp(verb, "HEAD") != 0;
    TURN_UNTIL(rig->loop, wire_pump(client),
               client->status != 0 &&
                   (!has_body || client->status == 304 || client->status == 204 ||
                    client->is_stream || client->is_complete));
}

typedef struct answer_case {
    const char *verb, *target, *fields, *body;
    int status;
    const char *head_has, *body_has;
} answer_case;

static void check_answers(router_rig *rig, const answer_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const answer_case *one = &cases[i];
        wire_client client;
        ask(rig, &client, one->verb, one->target, one->fields, one->body);
        bool has_head = one->head_has == NULL || wire_head_has(&client, one->head_has);
        bool has_body = one->body_has == NULL || wire_body_has(&client, one->body_has);
        if (client.status != one->status || !has_head || !has_body) {
            fail_msg("case %zu, %s %s: %d\n%s%.*s", i, one->verb, one->target, client.status,
                     client.head.at, BAY_STR(buf_view(&client.body)));
        }
        wire_close(&client);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void foreign_names_and_origins_are_refused(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"POST", "/", JSON_1 "Host: evil.example\r\n", GET_TASK("t"), 403, NULL,
         "\"status\":\"PERMISSION_DENIED\""},
        {"POST", "/", JSON_1 "Origin: https://evil.example\r\n", GET_TASK("t"), 403, NULL, NULL},
        {"GET", "/.well-known/agent-card.json", "Host: evil.example\r\n", NULL, 403, NULL, NULL},
        {"OPTIONS", "/", "Origin: https://evil.example\r\n", NULL, 403, NULL, NULL},
    };
    router_rig rig = {0};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    assert_int_equal(rig.fake.calls, 0);
    router_rig_close(&rig);
}

static void paths_verbs_and_bodies_that_are_none_are_refused(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"GET", "/nowhere", V1, NULL, 404, "application/json",
         "{\"error\":{\"code\":404,\"status\":\"NOT_FOUND\","},
        {"GET", "/", V1, NULL, 405, "Allow: POST", "\"status\":\"UNIMPLEMENTED\""},
        {"DELETE", "/", V1, NULL, 405, "Allow: POST", NULL},
        {"POST", "/.well-known/agent-card.json", JSON_1, "{}", 405, "Allow: GET, HEAD", NULL},
        {"DELETE", "/tasks/t", V1, NULL, 405, "Allow: ", NULL},
        {"POST", "/", JSON_1, "{", 200, "application/json", "-32700"},
        {"POST", "/", JSON_1, "[]", 200, NULL, "-32600"},
        {"POST", "/", "Content-Type: text/plain\r\n" V1, GET_TASK("t"), 200, NULL, "-32005"},
        {"POST", "/message:send", "Content-Type: text/plain\r\n" V1, "{}", 400, NULL,
         "CONTENT_TYPE_NOT_SUPPORTED"},
        {"POST", "/", JSON_1 "A2A-Version: 0.3\r\n", GET_TASK("t"), 200, NULL, "-32009"},
        {"GET", "/tasks/t", V1 "A2A-Version: 0.3\r\n", NULL, 400, NULL, "VERSION_NOT_SUPPORTED"},
        {"POST", "/", "Content-Type: application/json\r\nA2A-Version: 9.0\r\n", GET_TASK("t"), 200,
         NULL, "-32009"},
        {"POST", "/?A2A-Version=9.0", "Content-Type: application/json\r\n", GET_TASK("t"), 200,
         NULL, "-32009"},
        {"POST", "/", JSON_1, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"Nope\"}", 200, NULL,
         "-32601"},
        {"POST", "/", JSON_1, GET_TASK("missing"), 200, NULL, "-32001"},
        {"GET", "/tasks/missing", V1, NULL, 404, NULL, "TASK_NOT_FOUND"},
        {"POST", "/", JSON_1, SUBSCRIBE("missing"), 200, "application/json", "-32001"},
        {"GET", "/tasks/missing:subscribe", V1, NULL, 404, NULL, "TASK_NOT_FOUND"},
    };
    router_rig rig = {0};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    router_rig_close(&rig);
}

static void nobody_without_credentials_comes_further_than_the_card(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"POST", "/", JSON_1, "{", 401,
         "WWW-Authenticate: Bearer realm=\"x\"\r\nWWW-Authenticate: DPoP\r\nDPoP-Nonce: n1\r\n",
         "who are you?"},
        {"GET", "/tasks/t", V1, NULL, 401, "WWW-Authenticate", "\"error\""},
        {"GET", "/v1/tasks/t", "", NULL, 401, "WWW-Authenticate", "who are you?"},
        {"GET", "/nowhere", V1, NULL, 401, NULL, NULL},
        {"GET", "/.well-known/agent-card.json", "", NULL, 200, NULL, NULL},
    };
    router_rig rig = {.refuses = true};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    assert_int_equal(rig.fake.calls, 0);
    router_rig_close(&rig);
}

static void a_call_that_is_not_admitted_reaches_no_service(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"POST", "/", JSON_1, GET_TASK("t"), 403, NULL, "not for you"},
        {"GET", "/tasks/t", V1, NULL, 403, NULL, "not for you"},
    };
    router_rig rig = {.admits_nothing = true};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    assert_int_equal(rig.fake.calls, 0);
    router_rig_close(&rig);
}

/* ---- what is answered ------------------------------------------------------------------------ */

static void operations_are_answered_in_the_words_of_their_binding(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"POST", "/", JSON_1, GET_TASK("t"), 200, "application/json", "\"id\":5,\"result\":{"},
        {"POST", "", JSON_1, GET_TASK("t"), 200, NULL, "\"result\""},
        {"GET", "/tasks/t", V1, NULL, 200, "application/a2a+json", "{\"id\":\"t\""},
        {"GET", "/tasks/t", V1 "Accept: application/json\r\n", NULL, 200, "application/json", NULL},
        {"GET", "/v1/tasks/t", "", NULL, 200, "application/json", "TASK_STATE_COMPLETED"},
        {"POST", "/", "Content-Type: application/json\r\n",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"id\":\"t\"}}", 200,
         NULL, "\"kind\":\"task\""},
    };
    router_rig rig = {0};
    router_rig_open(&rig);
    rig.path = "/a2a/one";
    rig.base = str_of(rig.path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char target[128];
        answer_case one = cases[i];
        snprintf(target, sizeof(target), "/a2a/one%s", one.target);
        one.target = target;
        check_answers(&rig, &one, 1);
    }
    assert_int_equal(rig.fake.calls, ARRAY_LEN(cases));
    static const answer_case other = {"POST", "/a2a/oneself", JSON_1, GET_TASK("t"),
                                      404,    NULL,           NULL};
    check_answers(&rig, &other, 1);
    router_rig_close(&rig);
}

static void what_fields_say_reaches_the_service(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *seen, *echoed;
    } cases[] = {
        {"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nX-Own: own\r\n",
         "GetTask|t|alice||00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01|0|own", NULL},
        {"traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n",
         "GetTask|t|alice|||0|", NULL},
        {"traceparent: 00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
         "GetTask|t|alice|||0|", NULL},
        {"traceparent: ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
         "GetTask|t|alice|||0|", NULL},
        {"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x\r\n",
         "GetTask|t|alice|||0|", NULL},
        {"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
         "TraceParent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
         "GetTask|t|alice|||0|", NULL}, /* which one? */
        {"tracesparen: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
         "Last-Event-IX: 5\r\nA2A-Extensionz: urn:one\r\n",
         "GetTask|t|alice|||0|", NULL}, /* as long as names that count */
        {"tRACEPARENT: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n"
         "last-event-id: 3\r\na2a-extensions: urn:one\r\n",
         "GetTask|t|alice|urn:one|00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00|3|",
         "A2A-Extensions: urn:one\r\n"},
        {"Last-Event-ID: 8\r\nLast-Event-ID: 9\r\n", "GetTask|t|alice|||8|", NULL},
        {"Last-Event-ID: 17\r\n", "GetTask|t|alice|||17|", NULL},
        {"Last-Event-ID: -17\r\n", "GetTask|t|alice|||0|", NULL},
        {"A2A-Extensions: urn:two, urn:three\r\n", "GetTask|t|alice|urn:two, urn:three||0|",
         "A2A-Extensions: urn:two\r\n"},
        {"X-A2A-Extensions: urn:one\r\nA2A-Extensions: urn:two\r\n",
         "GetTask|t|alice|urn:one,urn:two||0|", "A2A-Extensions: urn:one,urn:two\r\n"},
    };
    router_rig rig = {0};
    router_rig_open(&rig);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char fields[512];
        wire_client client;
        snprintf(fields, sizeof(fields), JSON_1 "%s", cases[i].fields);
        ask(&rig, &client, "POST", "/", fields, GET_TASK("t"));
        assert_string_equal(rig.fake.seen, cases[i].seen);
        assert_int_equal(wire_head_has(&client, "A2A-Extensions:"), cases[i].echoed != NULL);
        assert_true(cases[i].echoed == NULL || wire_head_has(&client, cases[i].echoed));
        wire_close(&client);
    }
    router_rig_close(&rig);
}

static void cards_come_in_the_form_that_is_asked_for(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"GET", "/.well-known/agent-card.json", "", NULL, 200, "Vary: A2A-Version", "hybrid"},
        {"GET", "/.well-known/agent-card.json", V1, NULL, 200, "ETag: \"p\"", "pure"},
        {"GET", "/.well-known/agent-card.json?A2A-Version=1.0", "", NULL, 200, NULL, "pure"},
        {"GET", "/.well-known/agent-card.json", "A2A-Version: 0.3\r\n", NULL, 200, NULL, "hybrid"},
        {"GET", "/.well-known/agent.json", V1, NULL, 200, "Cache-Control: public, max-age=60",
         "old"},
        {"HEAD", "/.well-known/agent-card.json", "", NULL, 200, "ETag: \"h\"", NULL},
        {"GET", "/.well-known/agent-card.json", "If-None-Match: \"x\", W/\"h\"\r\n", NULL, 304,
         "ETag: \"h\"", NULL},
        {"GET", "/.well-known/agent-card.json", "If-None-Match: \"p\"\r\n", NULL, 200, NULL,
         "hybrid"},
        {"GET", "/.well-known/agent-card.json", V1 "If-None-Match: *\r\n", NULL, 304, NULL, NULL},
    };
    static const answer_case pure = {"GET", "/.well-known/agent-card.json", "", NULL, 200, NULL,
                                     "pure"};
    router_rig rig = {0};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    rig.is_pure = true;
    check_answers(&rig, &pure, 1);
    assert_int_equal(rig.fake.calls, 0);
    router_rig_close(&rig);
}

static void pages_of_allowed_origins_see_what_they_need(void **state)
{
    (void)state;
    static const answer_case cases[] = {
        {"OPTIONS", "/",
         "Origin: http://localhost:3000\r\n"
         "Access-Control-Request-Headers: x-api-key, b@d\r\n",
         NULL, 204, "a2a-version, last-event-id, traceparent, x-api-key\r\n", NULL},
        {"OPTIONS", "/tasks/t", "Origin: http://localhost:3000\r\n", NULL, 204,
         "Access-Control-Allow-Origin: http://localhost:3000", NULL},
        {"POST", "/", JSON_1 "Origin: http://localhost:3000\r\n", GET_TASK("t"), 200,
         "Access-Control-Allow-Origin: http://localhost:3000", NULL},
        {"GET", "/.well-known/agent-card.json", "Origin: http://localhost:3000\r\n", NULL, 200,
         "Access-Control-Allow-Origin: http://localhost:3000", NULL},
    };
    router_rig rig = {0};
    router_rig_open(&rig);
    check_answers(&rig, cases, ARRAY_LEN(cases));
    router_rig_close(&rig);
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool next_event(router_rig *rig, wire_client *client, sse_block *out)
{
    TURN_UNTIL(rig->loop, wire_pump(client), wire_event(client, out) || client->is_complete);
    return out->kind == SSE_EVENT;
}

static bool has(bay_str text, const char *part)
{
    return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

static void events_have_numbers_and_the_id_of_their_request(void **state)
{
    (void)state;
    router_rig rig = {0};
    wire_client client;
    sse_block event;
    router_rig_open(&rig);
    ask(&rig, &client, "POST", "/", JSON_1 "A2A-Extensions: urn:one\r\n", SUBSCRIBE("short"));
    assert_true(client.is_stream);
    assert_true(wire_head_has(&client, "A2A-Extensions: urn:one\r\n"));
    assert_true(next_event(&rig, &client, &event));
    assert_true(has(event.data, "\"id\":\"a-rather-long-id-that-does-not-fit"));
    assert_true(has(event.data, "\"result\":{\"statusUpdate\""));
    assert_true(str_eq(event.id, STR("7")));
    assert_false(next_event(&rig, &client, &event));
    assert_false(rig.fake.had_params);
    wire_close(&client);
    ask(&rig, &client, "GET", "/tasks/short:subscribe", V1, NULL);
    assert_true(next_event(&rig, &client, &event));
    assert_true(str_starts(event.data, STR("{\"statusUpdate\"")));
    wire_close(&client);
    ask(&rig, &client, "POST", "/", JSON_1, SUBSCRIBE("nothing"));
    assert_true(client.is_stream);
    assert_false(next_event(&rig, &client, &event));
    wire_close(&client);
    router_rig_close(&rig);
}

static void what_breaks_behind_the_first_event_is_the_last_one(void **state)
{
    (void)state;
    static const char *const targets[] = {"/", "/tasks/break:subscribe"};
    router_rig rig = {0};
    router_rig_open(&rig);
    for (size_t i = 0; i < 2; i++) {
        wire_client client;
        sse_block event;
        ask(&rig, &client, "POST", targets[i], JSON_1, i == 0 ? SUBSCRIBE("break") : "");
        assert_true(next_event(&rig, &client, &event));
        assert_true(next_event(&rig, &client, &event));
        assert_true(has(event.data, i == 0 ? "-32603" : "it broke"));
        assert_true(str_eq(event.name, i == 0 ? STR("message") : STR("error")));
        assert_false(next_event(&rig, &client, &event));
        wire_close(&client);
    }
    router_rig_close(&rig);
}

static void who_leaves_is_told_to_the_service_once(void **state)
{
    (void)state;
    router_rig rig = {0};
    wire_client client;
    router_rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        wire_request(&client, rig.loop, http_server_port(rig.http), "POST", "/", JSON_1,
                     i == 0 ? GET_TASK("hold") : SUBSCRIBE("hold"));
        TURN_UNTIL(rig.loop, wire_pump(&client), rig.fake.held != NULL);
        wire_close(&client);
        TURN_UNTIL(rig.loop, (void)0, rig.fake.held == NULL);
        assert_int_equal(rig.fake.gone, i + 1);
    }
    router_rig_close(&rig);
}

static void a_stream_that_is_not_read_holds_its_service_back(void **state)
{
    (void)state;
    router_rig rig = {0};
    wire_client client;
    sse_block event;
    router_rig_open(&rig);
    wire_request(&client, rig.loop, http_server_port(rig.http), "POST", "/", JSON_1,
                 SUBSCRIBE("flood"));
    TURN_UNTIL(rig.loop, (void)0, rig.fake.sent > 0);
    assert_true(rig.fake.sent < 400);
    uint64_t last = 0;
    int events = 0;
    while (next_event(&rig, &client, &event)) {
        uint64_t id = 0;
        assert_true(str_uint(event.id, &id));
        assert_true(events == 0 || id == last + 1 || last == 7);
        last = id;
        events++;
    }
    assert_int_equal(events, 401);
    assert_true(rig.fake.drained > 0);
    assert_null(rig.fake.held);
    wire_close(&client);
    router_rig_close(&rig);
}

static void streams_are_kept_alive_and_end_gracefully(void **state)
{
    (void)state;
    router_rig rig = {.options.keep_alive_ms = 5};
    wire_client client;
    router_rig_open(&rig);
    ask(&rig, &client, "POST", "/", JSON_1, SUBSCRIBE("hold"));
    TURN_UNTIL(rig.loop, wire_pump(&client), wire_body_has(&client, "\n\n:\n\n:\n\n"));
    a2a_http_router_close_streams(rig.router);
    assert_int_equal(rig.fake.gone, 1);
    TURN_UNTIL(rig.loop, wire_pump(&client), client.is_complete);
    wire_close(&client);
    router_rig_close(&rig);
}

static void a_service_may_outlive_its_router(void **state)
{
    (void)state;
    router_rig rig = {0};
    wire_client client;
    router_rig_open(&rig);
    wire_request(&client, rig.loop, http_server_port(rig.http), "POST", "/", JSON_1,
                 GET_TASK("hold"));
    TURN_UNTIL(rig.loop, wire_pump(&client), rig.fake.held != NULL);
    rig.fake.service.gone = fake_gone_later;
    http_server_free(rig.http);
    front_free(rig.front);
    a2a_http_router_free(rig.router);
    assert_int_equal(rig.fake.gone, 1);
    assert_non_null(rig.fake.held);
    a2a_call_result(rig.fake.held, str_of(task));
    wire_close(&client);
    loop_free(rig.loop);
}

/* ---- lack of memory -------------------------------------------------------------------------- */

/* One request without an allocation of ours; until an answer or the end of the connection. */
static void ask_plainly(router_rig *rig, const char *text)
{
    char got[4096];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(rig->http))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    int64_t end = test_now_ms() + GIVE_UP_MS;
    size_t len = 0;
    for (;;) {
        ssize_t more = recv(fd, got + len, sizeof(got) - len, MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN)) {
            break;
        }
        len += more > 0 ? (size_t)more : 0;
        assert_true(test_now_ms() < end);
        (void)loop_turn(rig->loop, 1);
    }
    close(fd);
}

#define WHOLE(verb, target, fields, length, body)                                                  \
    verb " " target " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" fields                 \
         "Content-Length: " length "\r\n\r\n" body

static void no_lack_of_memory_is_fatal(void **state)
{
    (void)state;
    static const char *const requests[] = {
        WHOLE("POST", "/", JSON_1 "A2A-Extensions: urn:one\r\nA2A-Extensions: urn:two\r\n", "63",
              "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"GetTask\",\"params\":{\"id\":\"t\"}}"),
        WHOLE("POST", "/tasks/break:subscribe", V1, "0", ""),
        WHOLE("GET", "/.well-known/agent-card.json", "", "0", ""),
        WHOLE("GET", "/agent/authenticatedExtendedCard", "", "0", ""),
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        for (size_t at = 0; failing_memory_start_single(at); at++) {
            router_rig rig = {0};
            if (router_rig_try(&rig) == BAY_OK) {
                ask_plainly(&rig, requests[i]);
            }
            router_rig_close(&rig);
            failing_memory_check();
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_names_and_origins_are_refused),
        cmocka_unit_test(paths_verbs_and_bodies_that_are_none_are_refused),
        cmocka_unit_test(nobody_without_credentials_comes_further_than_the_card),
        cmocka_unit_test(a_call_that_is_not_admitted_reaches_no_service),
        cmocka_unit_test(operations_are_answered_in_the_words_of_their_binding),
        cmocka_unit_test(what_fields_say_reaches_the_service),
        cmocka_unit_test(cards_come_in_the_form_that_is_asked_for),
        cmocka_unit_test(pages_of_allowed_origins_see_what_they_need),
        cmocka_unit_test(events_have_numbers_and_the_id_of_their_request),
        cmocka_unit_test(what_breaks_behind_the_first_event_is_the_last_one),
        cmocka_unit_test(who_leaves_is_told_to_the_service_once),
        cmocka_unit_test(a_stream_that_is_not_read_holds_its_service_back),
        cmocka_unit_test(streams_are_kept_alive_and_end_gracefully),
        cmocka_unit_test(a_service_may_outlive_its_router),
        cmocka_unit_test(no_lack_of_memory_is_fatal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
