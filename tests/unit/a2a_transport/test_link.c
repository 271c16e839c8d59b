/* The link to an agent against scripted ones: answers that are none, streams that are cut at each
 * place, agents of every version and of both JSON bindings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "a2a_transport/link.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "support/scripted_agent.h"
#include "json/build.h"

#define RESULT(json) "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":" json "}"
#define ERROR(code)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":" code ",\"message\":\"no\"}}"
#define EVENT(json) "data: " RESULT(json) "\n\n"
#define NUMBERED(id, json) "id: " id "\ndata: " RESULT(json) "\n\n"

#define IDS "\"taskId\":\"t1\",\"contextId\":\"c1\""
#define STATUS(state) "{\"statusUpdate\":{" IDS ",\"status\":{\"state\":\"TASK_STATE_" state "\"}}}"
#define TASK_WITH(state, more)                                                                     \
    "{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_" state "\"}" more "}"
#define TASK(state) "{\"task\":" TASK_WITH(state, "") "}"
#define PART(text) "{\"text\":\"" text "\"}"
#define ARTIFACT(parts) "{\"artifactId\":\"a1\",\"parts\":[" parts "]}"
#define CHUNK(parts) "{\"artifactUpdate\":{" IDS ",\"artifact\":" ARTIFACT(parts) "}}"
#define APPEND(parts)                                                                              \
    "{\"artifactUpdate\":{" IDS ",\"artifact\":" ARTIFACT(parts) ",\"append\":true}}"
#define ARTIFACTS(parts) ",\"artifacts\":[" ARTIFACT(parts) "]"

#define MESSAGE                                                                                    \
    "{\"message\":{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"parts\":[" PART("hello") "]}}"

enum { LOG_BYTES = 16 << 10 };

typedef struct rig {
    loop *loop;
    http_client *http;
    a2a_link *link;
    a2a_link_call *call;
    scripted_agent agent;
    char log[LOG_BYTES]; /* what was told, a line each */
    bay_err err;
    a2a_error error;
    bool was_sent;
    bool is_over;
    int events;
    int pauses_at; /* the number of the event after which it pauses; 0: none */
    int cancels_at;
    int frees_at;
    uint32_t idle_ms; /* 0: long */
} rig;

static void note(rig *self, const char *what, bay_str json)
{
    size_t len = strlen(self->log);
    snprintf(self->log + len, sizeof(self->log) - len, "%s%.*s\n", what, BAY_STR(json));
}

static void on_result(void *user, json_val result)
{
    bay_str json = json_raw(result);
    rig *self = user;
    note(self, "", json);
    self->is_over = true;
    self->call = NULL;
}

static void on_event(void *user, json_val event, uint64_t event_id, bool is_last)
{
    rig *self = user;
    char head[64] = "";
    if (event_id != 0) {
        snprintf(head, sizeof(head), "%d:", (int)event_id);
    }
    note(self, head, json_raw(event));
    if (is_last) {
        note(self, "last", STR(""));
    }
    self->events++;
    if (self->events == self->pauses_at) {
        a2a_link_pause(self->call);
    }
    if (self->events == self->cancels_at) {
        a2a_link_cancel(self->call);
        self->is_over = true;
    }
    if (self->events == self->frees_at) {
        a2a_link_free(self->link);
        self->link = NULL;
    }
}

static void on_stream_end(void *user)
{
    rig *self = user;
    note(self, "end", STR(""));
    self->is_over = true;
    self->call = NULL;
}

static void on_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    rig *self = user;
    self->err = err;
    self->error = fault->error;
    self->was_sent = was_sent;
    self->is_over = true;
    self->call = NULL;
    assert_true(fault->text[0] != '\0');
}

static const a2a_link_events events = {
    .result = on_result, .event = on_event, .end = on_stream_end, .failed = on_failed};

/* ---- a life ---------------------------------------------------------------------------------- */

static bay_err rig_open(rig *self, a2a_version version, a2a_binding binding)
{
    http_client_options http = {.limits = http_client_default_limits};
    a2a_link_limits limits = {.answer_bytes = 4096,
                              .resumes = 2,
                              .first_delay_ms = 1,
                              .idle_ms = self->idle_ms != 0 ? self->idle_ms : 20000};
    a2a_interface at = {
        .url = str_of(self->agent.url), .tenant = STR(""), .binding = binding, .version = version};
    bay_err err = loop_new(&self->loop);
    err = err == BAY_OK ? http_client_new(self->loop, &http, &self->http) : err;
    return err == BAY_OK ? a2a_link_new(self->loop, self->http, &at, &limits, &self->link) : err;
}

static void rig_start(rig *self, const agent_step *steps, size_t count)
{
    memset(self, 0, sizeof(*self));
    scripted_agent_start(&self->agent, steps, count);
}

static void rig_close(rig *self)
{
    a2a_link_free(self->link);
    http_client_free(self->http);
    if (self->loop != NULL) {
        loop_free(self->loop);
    }
}

static bay_err ask(rig *self, a2a_method method, const char *params)
{
    static const http_field secret = {STR_INIT("Authorization"), STR_INIT("Bearer x")};
    a2a_fault fault = {0};
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    bool is_json = json_parse(&doc, str_of(params), NULL, &memory, NULL) == BAY_OK;
    a2a_link_request request = {.method = method,
                                .params = is_json ? json_root(&doc) : JSON_NONE,
                                .fields = &secret,
                                .field_count = 1};
    self->is_over = false;
    self->log[0] = '\0';
    self->err = BAY_OK;
    bay_err err = a2a_link_start(self->link, &request, &events, self, &self->call, &fault);
    arena_fini(&memory); /* the link has a copy */
    return err;
}

static void finish(rig *self)
{
    while (!self->is_over) {
        (void)loop_turn(self->loop, -1);
    }
}

/* One call over these steps. */
static void play_as(rig *self, a2a_version version, a2a_binding binding, a2a_method method,
                    const char *params, const agent_step *steps, size_t count)
{
    rig_start(self, steps, count);
    assert_int_equal(rig_open(self, version, binding), BAY_OK);
    assert_int_equal(ask(self, method, params), BAY_OK);
    finish(self);
    rig_close(self);
    scripted_agent_stop(&self->agent);
}

static void play(rig *self, a2a_method method, const char *params, const agent_step *steps,
                 size_t count)
{
    play_as(self, A2A_1_0, A2A_JSONRPC, method, params, steps, count);
}

static void assert_told(const rig *self, const char *wanted)
{
    assert_string_equal(self->log, wanted);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void bad_answers_are_told(void **state)
{
    (void)state;
    static const struct {
        agent_step step;
        bay_err err;
        a2a_error error;
    } cases[] = {
        {{.body = "no JSON"}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = ""}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = "{}"}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = RESULT("{}")}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = RESULT("[1]")}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = "{\"jsonrpc\":\"2.0\",\"id\":\"other\",\"result\":" TASK_WITH("WORKING", "") "}"},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = "<html>", .status = 502}, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = ERROR("-32001")}, BAY_ERR_REMOTE, A2A_E_TASK_NOT_FOUND},
        {{.status = 307, .fields = "Location: http://127.0.0.1:1/\r\n"},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{.body = "x", .fields = "Content-Encoding: gzip\r\n"},
         BAY_ERR_PROTOCOL,
         A2A_E_INVALID_AGENT_RESPONSE},
        {{.end = AGENT_CUTS}, BAY_ERR_CLOSED, A2A_E_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static rig self;
        agent_step steps[2] = {cases[i].step, cases[i].step};
        /* what is safe is sent once more by the HTTP client only on a connection that was in use */
        play(&self, A2A_GET_TASK, "{\"id\":\"t1\"}", steps, 1);
        if (self.err != cases[i].err && cases[i].step.status != 502) {
            print_error("case %zu: %s\n", i, bay_err_text(self.err));
        }
        assert_true(self.err == cases[i].err ||
                    (cases[i].step.status == 502 && self.err == BAY_ERR_REMOTE));
        assert_true(self.error == cases[i].error || cases[i].step.status == 502);
        assert_told(&self, "");
    }
}

static void an_answer_too_large_is_refused(void **state)
{
    (void)state;
    static rig self;
    static char body[8192];
    static agent_step step = {.body = body};
    memset(body, ' ', sizeof(body) - 1);
    play(&self, A2A_GET_TASK, "{\"id\":\"t1\"}", &step, 1);
    assert_int_equal(self.err, BAY_ERR_LIMIT);
    static char data[8200];
    static agent_step stream = {.body = data, .is_stream = true};
    snprintf(data, sizeof(data), "data: %s", body);
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, &stream, 1);
    assert_int_equal(self.err, BAY_ERR_LIMIT);
}

static void answers_are_given_as_1_0(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "A2A-Version: 1.0", .body = RESULT(TASK_WITH("WORKING", ",\"unknown\":1"))}};
    play(&self, A2A_GET_TASK, "{\"id\":\"t1\"}", steps, 1);
    assert_told(&self, TASK_WITH("WORKING", "") "\n");
    assert_non_null(strstr(self.agent.requests[0], "Bearer x"));
    static const agent_step older[] = {
        {.expects = "\"message/send\"",
         .body =
             RESULT("{\"kind\":\"task\",\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":"
                    "\"completed\"}}")}};
    play_as(&self, A2A_0_3, A2A_JSONRPC, A2A_SEND_MESSAGE, MESSAGE, older, 1);
    assert_told(&self, TASK("COMPLETED") "\n");
    static const agent_step rest[] = {
        {.expects = "GET /tasks/t1", .body = TASK_WITH("WORKING", "")}};
    play_as(&self, A2A_1_0, A2A_HTTP_JSON, A2A_GET_TASK, "{\"id\":\"t1\"}", rest, 1);
    assert_told(&self, TASK_WITH("WORKING", "") "\n");
}

static void nobody_there_is_told(void **state)
{
    (void)state;
    static rig self;
    rig_start(&self, NULL, 0);
    scripted_agent_end(&self.agent);
    assert_int_equal(rig_open(&self, A2A_1_0, A2A_JSONRPC), BAY_OK);
    assert_int_equal(ask(&self, A2A_SEND_MESSAGE, MESSAGE), BAY_OK);
    finish(&self);
    assert_int_equal(self.err, BAY_ERR_CONNECT);
    assert_false(self.was_sent);
    rig_close(&self);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void a_stream_is_told_and_ends(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{.expects = "text/event-stream",
                                        .body = ": hello\n\n" EVENT(TASK("SUBMITTED"))
                                            EVENT(CHUNK(PART("a"))) EVENT(STATUS("COMPLETED")),
                                        .is_stream = true}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 1);
    assert_int_equal(self.err, BAY_OK);
    assert_told(&self,
                TASK("SUBMITTED") "\n" CHUNK(PART("a")) "\n" STATUS("COMPLETED") "\nlast\nend\n");
}

static void what_is_no_event_ends_a_stream(void **state)
{
    (void)state;
    static rig self;
    static const char *const bodies[] = {
        EVENT(TASK("WORKING")) "data: nonsense\n\n",
        EVENT(TASK("WORKING")) EVENT("{}"),
        EVENT(TASK("WORKING")) EVENT("{\"task\":{\"id\":7}}"),
        EVENT(TASK("WORKING")) "data: {\"jsonrpc\":\"2.0\",\"id\":\"zzz\",\"result\":" STATUS(
            "WORKING") "}\n\n",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        const agent_step step = {.body = bodies[i], .is_stream = true, .end = AGENT_HANGS};
        play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, &step, 1);
        assert_int_equal(self.err, BAY_ERR_PROTOCOL);
        assert_true(self.was_sent);
        assert_told(&self, TASK("WORKING") "\n");
    }
    static const agent_step error = {.body = EVENT(TASK("WORKING")) "data: " ERROR("-32603") "\n\n",
                                     .is_stream = true};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, &error, 1);
    assert_int_equal(self.err, BAY_ERR_REMOTE);
    assert_told(&self, TASK("WORKING") "\n");
}

/* Nothing of the task is known yet: it is not sent again. */
static void a_cut_before_the_first_event_is_a_failure(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{.is_stream = true, .end = AGENT_CUTS}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 1);
    assert_int_equal(self.err, BAY_ERR_CLOSED);
    assert_true(self.was_sent);
    static const agent_step part[] = {
        {.body = "data: {\"jsonrpc\"", .is_stream = true, .end = AGENT_CUTS}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, part, 1);
    assert_int_equal(self.err, BAY_ERR_CLOSED);
    static const agent_step empty[] = {{.is_stream = true}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, empty, 1);
    assert_int_equal(self.err, BAY_ERR_CLOSED);
}

#define CUT_FIRST                                                                                  \
    {                                                                                              \
        .expects = "SendStreamingMessage",                                                         \
        .body = EVENT(TASK("WORKING")) EVENT(CHUNK(PART("a") "," PART("b"))), .is_stream = true,   \
        .end = AGENT_CUTS                                                                          \
    }

static const agent_step cut_steps[] = {
    CUT_FIRST,
    {.expects = "SubscribeToTask",
     .body = EVENT(
         "{\"task\":" TASK_WITH("WORKING", ARTIFACTS(PART("a") "," PART("b") "," PART("c"))) "}")
         EVENT(APPEND(PART("d"))) EVENT(STATUS("COMPLETED")),
     .is_stream = true},
};
#define CUT_TOLD                                                                                   \
    TASK("WORKING")                                                                                \
    "\n" CHUNK(PART("a") "," PART("b")) "\n" APPEND(PART("c")) "\n" APPEND(PART("d")) "\n" STATUS( \
        "COMPLETED") "\nlast\nend\n"

static void a_cut_stream_goes_on_with_the_rest_of_the_task(void **state)
{
    (void)state;
    static rig self;
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, cut_steps, 2);
    assert_told(&self, CUT_TOLD);
    assert_non_null(strstr(self.agent.requests[1], "\"t1\""));
    assert_non_null(strstr(self.agent.requests[1], "Bearer x"));
    assert_null(strcasestr(self.agent.requests[1], "Last-Event-ID"));
}

static void an_artifact_that_became_another_is_told_whole(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        CUT_FIRST,
        {.expects = "SubscribeToTask",
         .body = EVENT("{\"task\":" TASK_WITH("COMPLETED", ARTIFACTS(PART("z"))) "}"),
         .is_stream = true}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 2);
    assert_told(&self, TASK("WORKING") "\n" CHUNK(PART("a") "," PART("b")) "\n" CHUNK(
                           PART("z")) "\n" STATUS("COMPLETED") "\nlast\nend\n");
}

/* An agent whose task holds already what its events say next. */
static void what_the_task_told_is_not_told_by_events_again(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        CUT_FIRST,
        {.expects = "SubscribeToTask",
         .body = EVENT("{\"task\":" TASK_WITH("WORKING", ARTIFACTS(PART("z"))) "}")
             EVENT(CHUNK(PART("z"))) EVENT(STATUS("WORKING")) EVENT(APPEND(PART("z")))
                 EVENT(CHUNK(PART("z"))) EVENT(STATUS("COMPLETED")),
         .is_stream = true}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 2);
    assert_told(
        &self,
        TASK("WORKING") "\n" CHUNK(PART("a") "," PART("b")) "\n" CHUNK(PART("z")) "\n" APPEND(
            PART("z")) "\n" CHUNK(PART("z")) "\n" STATUS("COMPLETED") "\nlast\nend\n");
}

static void numbered_events_are_asked_for_by_number(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "SendStreamingMessage",
         .body = NUMBERED("1", TASK("WORKING")) NUMBERED("2", CHUNK(PART("a"))),
         .is_stream = true,
         .end = AGENT_CUTS},
        {.expects = "Last-Event-ID: 2",
         .body = NUMBERED("2", CHUNK(PART("a"))) NUMBERED("3", APPEND(PART("b"))),
         .is_stream = true,
         .end = AGENT_CUTS},
        {.expects = "Last-Event-ID: 3",
         .body = NUMBERED("4", STATUS("COMPLETED")),
         .is_stream = true},
    };
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 3);
    assert_told(&self, "1:" TASK("WORKING") "\n2:" CHUNK(PART("a")) "\n3:" APPEND(
                           PART("b")) "\n4:" STATUS("COMPLETED") "\nlast\nend\n");
}

static void a_stream_that_ends_too_early_is_taken_up(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "SendStreamingMessage", .body = EVENT(TASK("WORKING")), .is_stream = true},
        {"SubscribeToTask", .status = 503, .body = "busy"},
        {.expects = "SubscribeToTask", .body = EVENT(TASK("COMPLETED")), .is_stream = true}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 3);
    assert_told(&self, TASK("WORKING") "\n" STATUS("COMPLETED") "\nlast\nend\n");
}

static void interrupted_tasks_end_their_stream(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = NULL,
         .body = EVENT(TASK("WORKING")) EVENT(STATUS("INPUT_REQUIRED")),
         .is_stream = true,
         .end = AGENT_CUTS}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 1);
    assert_told(&self, TASK("WORKING") "\n" STATUS("INPUT_REQUIRED") "\nend\n");
}

static void a_stream_is_given_up_in_the_end(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{.expects = "SendStreamingMessage",
                                        .body = EVENT(TASK("WORKING")),
                                        .is_stream = true,
                                        .end = AGENT_CUTS},
                                       {"SubscribeToTask", .end = AGENT_CUTS},
                                       {"SubscribeToTask", .end = AGENT_CUTS}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 3);
    assert_int_equal(self.err, BAY_ERR_CLOSED);
    assert_told(&self, TASK("WORKING") "\n");
}

static void a_task_that_cannot_be_subscribed_to_is_looked_at(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "SendStreamingMessage",
         .body = EVENT(TASK("WORKING")),
         .is_stream = true,
         .end = AGENT_CUTS},
        {.expects = "SubscribeToTask", .body = ERROR("-32004")},
        {.expects = "GetTask", .body = RESULT(TASK_WITH("WORKING", ARTIFACTS(PART("a"))))},
        {.expects = "GetTask", .body = RESULT(TASK_WITH("FAILED", ARTIFACTS(PART("a"))))}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 4);
    assert_told(&self, TASK("WORKING") "\n" CHUNK(PART("a")) "\n" STATUS("FAILED") "\nlast\nend\n");
}

#define OLD_STATUS(state, final)                                                                   \
    "{\"kind\":\"status-update\"," IDS ",\"status\":{\"state\":\"" state "\"},\"final\":" final "}"
#define OLD_TASK(state, more)                                                                      \
    "{\"kind\":\"task\",\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"" state         \
    "\"}" more "}"
#define OLD_ARTIFACTS(parts) ",\"artifacts\":[{\"artifactId\":\"a1\",\"parts\":[" parts "]}]"
#define OLD_PART(text) "{\"kind\":\"text\",\"text\":\"" text "\"}"

/* A resubscribe of 0.3 begins without the task: it is looked at before and after. */
static void older_streams_miss_nothing(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "\"message/stream\"",
         .body = EVENT(OLD_TASK("working", "")),
         .is_stream = true,
         .end = AGENT_CUTS},
        {.expects = "\"tasks/get\"",
         .body = RESULT(OLD_TASK("working", OLD_ARTIFACTS(OLD_PART("a"))))},
        {.expects = "\"tasks/resubscribe\"",
         .body = EVENT(OLD_STATUS("completed", "true")),
         .is_stream = true},
        {.expects = "\"tasks/get\"",
         .body = RESULT(OLD_TASK("completed", OLD_ARTIFACTS(OLD_PART("a") "," OLD_PART("b"))))}};
    play_as(&self, A2A_0_3, A2A_JSONRPC, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 4);
    assert_told(&self, TASK("WORKING") "\n" CHUNK(PART("a")) "\n" STATUS("COMPLETED") "\n" APPEND(
                           PART("b")) "\nlast\nend\n");
}

static void a_subscribe_by_get_follows_a_405(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{"POST /tasks/t1:subscribe", .status = 405, .body = ""},
                                       {.expects = "GET /tasks/t1:subscribe",
                                        .body = "data: " TASK("COMPLETED") "\n\n",
                                        .is_stream = true},
                                       {.expects = "GET /tasks/t1:subscribe",
                                        .body = "data: " TASK("COMPLETED") "\n\n",
                                        .is_stream = true}};
    rig_start(&self, steps, 3);
    assert_int_equal(rig_open(&self, A2A_1_0, A2A_HTTP_JSON), BAY_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(&self, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"t1\"}"), BAY_OK);
        finish(&self);
        assert_told(&self, TASK("COMPLETED") "\nlast\nend\n");
    }
    rig_close(&self);
    scripted_agent_stop(&self.agent);
}

static void a_whole_request_follows_a_configuration(void **state)
{
    (void)state;
    static rig self;
#define OLD_CONFIG                                                                                 \
    "{\"name\":\"tasks/t1/pushNotificationConfigs/p\",\"pushNotificationConfig\":{\"id\":\"p\","   \
    "\"url\":\"http://h\"}}"
    static const agent_step steps[] = {
        {"\r\n\r\n{\"name\":", .status = 400, .body = "{\"error\":{\"code\":400}}"},
        {.expects = "\r\n\r\n{\"parent\":", .body = OLD_CONFIG},
        {.expects = "\r\n\r\n{\"parent\":", .status = 400, .body = "{\"error\":{\"code\":400}}"}};
    static const char config[] = "{\"taskId\":\"t1\",\"id\":\"p\",\"url\":\"http://h\"}";
    rig_start(&self, steps, 3);
    assert_int_equal(rig_open(&self, A2A_0_3, A2A_HTTP_JSON), BAY_OK);
    assert_int_equal(ask(&self, A2A_CREATE_PUSH_CONFIG, config), BAY_OK);
    finish(&self);
    assert_non_null(strstr(self.log, "\"url\":\"http://h\""));
    assert_int_equal(ask(&self, A2A_CREATE_PUSH_CONFIG, config), BAY_OK);
    finish(&self); /* it is refused, and not asked again */
    rig_close(&self);
    scripted_agent_stop(&self.agent);
    assert_int_equal(self.agent.done, 3);
}

static void agents_without_streams_are_asked_again(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "\"SendStreamingMessage\"", .body = ERROR("-32004")},
        {.expects = "\"SendMessage\"", .body = RESULT(TASK("WORKING"))},
        {.expects = "\"GetTask\"", .body = RESULT(TASK_WITH("WORKING", ARTIFACTS(PART("a"))))},
        {.expects = "\"GetTask\"", .body = RESULT(TASK_WITH("COMPLETED", ARTIFACTS(PART("a"))))}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 4);
    assert_told(&self,
                TASK("WORKING") "\n" CHUNK(PART("a")) "\n" STATUS("COMPLETED") "\nlast\nend\n");
    assert_non_null(strstr(self.agent.requests[1], "hello"));
}

/* Silence counts as a cut; but for an agent that forgets to close after the last event. */
static void a_silent_stream_is_taken_up(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{.expects = "SendStreamingMessage",
                                        .body = EVENT(TASK("WORKING")),
                                        .is_stream = true,
                                        .end = AGENT_HANGS},
                                       {.expects = "SubscribeToTask",
                                        .body = ": silence\n\n",
                                        .is_stream = true,
                                        .end = AGENT_HANGS},
                                       {.expects = "SubscribeToTask",
                                        .body = EVENT(TASK("COMPLETED")),
                                        .is_stream = true,
                                        .end = AGENT_HANGS}};
    rig_start(&self, steps, 3);
    self.idle_ms = 50;
    assert_int_equal(rig_open(&self, A2A_1_0, A2A_JSONRPC), BAY_OK);
    assert_int_equal(ask(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE), BAY_OK);
    finish(&self);
    assert_told(&self, TASK("WORKING") "\n" STATUS("COMPLETED") "\nlast\nend\n");
    rig_close(&self);
    scripted_agent_stop(&self.agent);
}

static void a_finished_stream_is_left(void **state)
{
    (void)state;
    static rig self;
    static const agent_step step = {
        .body = EVENT(TASK("COMPLETED")), .is_stream = true, .end = AGENT_HANGS};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, &step, 1);
    assert_told(&self, TASK("COMPLETED") "\nlast\nend\n");
}

/* One that answers a stream's request with an answer. */
static void an_answer_in_place_of_a_stream_is_its_first_event(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {
        {.expects = "\"SendStreamingMessage\"", .body = RESULT(TASK("WORKING"))},
        {.expects = "\"SubscribeToTask\"", .body = ERROR("-32601")},
        {.expects = "\"GetTask\"", .body = RESULT(TASK_WITH("COMPLETED", ""))}};
    play(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE, steps, 3);
    assert_told(&self, TASK("WORKING") "\n" STATUS("COMPLETED") "\nlast\nend\n");
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void nothing_is_told_while_it_pauses(void **state)
{
    (void)state;
    static rig self;
    static const agent_step steps[] = {{.expects = NULL,
                                        .body = EVENT(TASK("WORKING")) EVENT(CHUNK(PART("a")))
                                            EVENT(APPEND(PART("b"))) EVENT(STATUS("COMPLETED")),
                                        .is_stream = true}};
    for (int at = 1; at <= 4; at++) {
        rig_start(&self, steps, 1);
        self.pauses_at = at;
        assert_int_equal(rig_open(&self, A2A_1_0, A2A_JSONRPC), BAY_OK);
        assert_int_equal(ask(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE), BAY_OK);
        while (self.events < at) {
            (void)loop_turn(self.loop, -1);
        }
        for (int i = 0; i < 20; i++) {
            (void)loop_turn(self.loop, 0);
        }
        assert_int_equal(self.events, at);
        assert_false(self.is_over);
        a2a_link_resume(self.call);
        assert_int_equal(self.events, at); /* nothing runs inside */
        finish(&self);
        assert_told(&self, TASK("WORKING") "\n" CHUNK(PART("a")) "\n" APPEND(PART("b")) "\n" STATUS(
                               "COMPLETED") "\nlast\nend\n");
        rig_close(&self);
        scripted_agent_stop(&self.agent);
    }
}

/* A task that comes back is two events, and the first of them has the receiver pause. */
static const agent_step two_at_once[] = {
    CUT_FIRST,
    {.expects = "SubscribeToTask",
     .body = EVENT(
         "{\"task\":" TASK_WITH("COMPLETED", ARTIFACTS(PART("a") "," PART("b") "," PART("c"))) "}"),
     .is_stream = true},
};
#define TWO_TOLD                                                                                   \
    TASK("WORKING")                                                                                \
    "\n" CHUNK(PART("a") "," PART("b")) "\n" APPEND(PART("c")) "\n" STATUS(                        \
        "COMPLETED") "\nlast\nend\n"

/* Goes on after each pause. */
static void finish_resuming(rig *self)
{
    while (!self->is_over) {
        a2a_link_resume(self->call);
        (void)loop_turn(self->loop, -1);
    }
}

static void what_waited_is_told_after_the_pause(void **state)
{
    (void)state;
    static rig self;
    rig_start(&self, two_at_once, 2);
    self.pauses_at = 3;
    assert_int_equal(rig_open(&self, A2A_1_0, A2A_JSONRPC), BAY_OK);
    assert_int_equal(ask(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE), BAY_OK);
    while (self.events < 3) {
        (void)loop_turn(self.loop, -1);
    }
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(self.loop, 0);
    }
    assert_int_equal(self.events, 3);
    finish_resuming(&self);
    assert_told(&self, TWO_TOLD);
    rig_close(&self);
    scripted_agent_stop(&self.agent);
}

static void it_may_be_ended_anywhere(void **state)
{
    (void)state;
    static rig self;
    for (int at = 1; at <= 5; at++) {
        for (int frees = 0; frees < 2; frees++) {
            rig_start(&self, cut_steps, 2);
            self.cancels_at = frees ? 0 : at;
            self.frees_at = frees ? at : 0;
            assert_int_equal(rig_open(&self, A2A_1_0, A2A_JSONRPC), BAY_OK);
            assert_int_equal(ask(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE), BAY_OK);
            finish(&self);
            assert_int_equal(self.events, at);
            assert_int_equal(self.err, frees ? BAY_ERR_CANCELLED : BAY_OK);
            rig_close(&self);
            scripted_agent_end(&self.agent);
            assert_false(self.agent.has_failed);
        }
    }
}

static void requests_that_are_wrong_are_refused(void **state)
{
    (void)state;
    static rig self;
    static const http_field bad[] = {{STR_INIT("A b"), STR_INIT("x")},
                                     {STR_INIT("Good"), STR_INIT("x\r\nInjected: y")}};
    a2a_fault fault = {0};
    rig_start(&self, NULL, 0);
    assert_int_equal(rig_open(&self, A2A_0_1, A2A_JSONRPC), BAY_OK);
    assert_int_equal(ask(&self, A2A_LIST_TASKS, "{}"), BAY_ERR_UNSUPPORTED);
    assert_int_equal(ask(&self, A2A_GET_TASK, "{"), BAY_ERR_INVALID);
    for (size_t i = 0; i < 2; i++) {
        a2a_link_request request = {.method = A2A_GET_TASK,
                                    .params = json_empty_object(),
                                    .fields = &bad[i],
                                    .field_count = 1};
        assert_int_equal(a2a_link_start(self.link, &request, &events, &self, &self.call, &fault),
                         BAY_ERR_INVALID);
    }
    rig_close(&self);
    scripted_agent_stop(&self.agent);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void sweep(const agent_step *steps, int pauses_at, const char *told)
{
    static rig self;
    memset(&self, 0, sizeof(self));
    for (size_t at = 0;; at++) {
        rig_start(&self, steps, 2);
        if (!failing_memory_start(at)) {
            scripted_agent_end(&self.agent);
            assert_true(at > 30);
            break;
        }
        self.pauses_at = pauses_at;
        if (rig_open(&self, A2A_1_0, A2A_JSONRPC) == BAY_OK &&
            ask(&self, A2A_SEND_STREAMING_MESSAGE, MESSAGE) == BAY_OK) {
            finish_resuming(&self);
            assert_true(self.err != BAY_OK || strcmp(self.log, told) == 0);
        }
        rig_close(&self);
        failing_memory_check();
        scripted_agent_end(&self.agent);
    }
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    sweep(cut_steps, 0, CUT_TOLD);
    sweep(two_at_once, 3, TWO_TOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_answers_are_told),
        cmocka_unit_test(an_answer_too_large_is_refused),
        cmocka_unit_test(answers_are_given_as_1_0),
        cmocka_unit_test(nobody_there_is_told),
        cmocka_unit_test(a_stream_is_told_and_ends),
        cmocka_unit_test(what_is_no_event_ends_a_stream),
        cmocka_unit_test(a_cut_before_the_first_event_is_a_failure),
        cmocka_unit_test(a_cut_stream_goes_on_with_the_rest_of_the_task),
        cmocka_unit_test(an_artifact_that_became_another_is_told_whole),
        cmocka_unit_test(what_the_task_told_is_not_told_by_events_again),
        cmocka_unit_test(numbered_events_are_asked_for_by_number),
        cmocka_unit_test(a_stream_that_ends_too_early_is_taken_up),
        cmocka_unit_test(interrupted_tasks_end_their_stream),
        cmocka_unit_test(a_stream_is_given_up_in_the_end),
        cmocka_unit_test(a_task_that_cannot_be_subscribed_to_is_looked_at),
        cmocka_unit_test(older_streams_miss_nothing),
        cmocka_unit_test(a_subscribe_by_get_follows_a_405),
        cmocka_unit_test(a_whole_request_follows_a_configuration),
        cmocka_unit_test(agents_without_streams_are_asked_again),
        cmocka_unit_test(a_silent_stream_is_taken_up),
        cmocka_unit_test(a_finished_stream_is_left),
        cmocka_unit_test(an_answer_in_place_of_a_stream_is_its_first_event),
        cmocka_unit_test(nothing_is_told_while_it_pauses),
        cmocka_unit_test(what_waited_is_told_after_the_pause),
        cmocka_unit_test(it_may_be_ended_anywhere),
        cmocka_unit_test(requests_that_are_wrong_are_refused),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
