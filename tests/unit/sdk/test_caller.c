/* A caller of agents, by its public header, against scripted agents: cards that are none, where
 * cards are, which interface is chosen, where credentials go, operations, waiting and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <patchbay/caller.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "support/failing_memory.h"
#include "support/scripted_agent.h"

#define RESULT(json) "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":" json "}"
#define EVENT(json) "data: " RESULT(json) "\n\n"
#define CARD_OF(interfaces, more)                                                                  \
    "{\"name\":\"Ada\",\"description\":\"Reads \\\"it\\\".\",\"version\":\"1\","                   \
    "\"supportedInterfaces\":[" interfaces "],\"capabilities\":{\"streaming\":true},"              \
    "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"              \
    "\"skills\":[{\"id\":\"s1\",\"name\":\"Search\",\"description\":\"Looks.\",\"tags\":["         \
    "\"t\"]}]" more "}"
#define INTERFACE(url, binding, version)                                                           \
    "{\"url\":\"" url "\",\"protocolBinding\":\"" binding "\",\"protocolVersion\":\"" version "\"" \
    "}"
#define JSONRPC_1_0 INTERFACE("$URL/rpc", "JSONRPC", "1.0")
#define CARD CARD_OF(JSONRPC_1_0, "")
#define OLD_CARD                                                                                   \
    "{\"name\":\"Old\",\"description\":\"x\",\"version\":\"1\",\"protocolVersion\":\"0.3.0\","     \
    "\"url\":\"$URL/rpc\",\"preferredTransport\":\"JSONRPC\",\"capabilities\":{},"                 \
    "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"              \
    "\"skills\":[]}"
#define THE_CARD                                                                                   \
    {                                                                                              \
        .expects = "GET /.well-known/agent-card.json", .body = CARD                                \
    }
#define NO_CARD                                                                                    \
    {                                                                                              \
        .status = 404, .body = "not here"                                                          \
    }
#define TASK_WITH(state, more)                                                                     \
    "{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_" state                \
    "\",\"message\":{\"messageId\":\"m2\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":"           \
    "\"said " state "\"}]}}" more "}"
#define ARTIFACTS                                                                                  \
    ",\"artifacts\":[{\"artifactId\":\"a1\",\"name\":\"r.md\",\"parts\":[{\"text\":\"x\"}]}]"
#define CHUNK(text, more)                                                                          \
    "{\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"artifact\":{\"artifactId\":"    \
    "\"a1\",\"parts\":[{\"text\":\"" text "\"}]}" more "}}"

static void expect_text(bay_str got, const char *wanted)
{
    if (!str_eq(got, str_of(wanted))) {
        print_error("got \"%.*s\"\n", BAY_STR(got));
    }
    assert_true(str_eq(got, str_of(wanted)));
}

static scripted_agent agent;

static bay_err connect_to(const agent_step *steps, size_t count, const char *path,
                          const bay_caller_options *options, bay_caller **out, bay_diag *diag)
{
    char url[128];
    scripted_agent_start(&agent, steps, count);
    snprintf(url, sizeof(url), "%s%s", agent.url, path);
    return bay_caller_connect(url, options, out, diag);
}

static void leave(bay_caller *caller)
{
    bay_caller_close(caller);
    scripted_agent_stop(&agent);
}

/* ---- the card -------------------------------------------------------------------------------- */

static void what_is_no_agent_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *agent;
        bay_err err;
    } cases[] = {
        {"", BAY_ERR_INVALID},
        {"research", BAY_ERR_INVALID},
        {"ftp://x/", BAY_ERR_INVALID},
        {"http://", BAY_ERR_INVALID},
        {"http://name:secret@localhost/", BAY_ERR_INVALID},
        {"http://127.0.0.1:1/", BAY_ERR_CONNECT},
        {"{", BAY_ERR_PROTOCOL},
        {"{}", BAY_ERR_PROTOCOL},
        {"{\"name\":7}", BAY_ERR_PROTOCOL},
        {CARD_OF("", ""), BAY_ERR_PROTOCOL},
        {CARD_OF(INTERFACE("http://x/", "SMOKE", "1.0"), ""), BAY_ERR_VERSION},
        {CARD_OF(INTERFACE("http://x/", "JSONRPC", "7.0"), ""), BAY_ERR_VERSION},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_caller *caller = NULL;
        bay_diag diag = {0};
        bay_err err = bay_caller_connect(cases[i].agent, NULL, &caller, &diag);
        if (err != cases[i].err) {
            print_error("case %zu: %s: %s\n", i, bay_err_text(err), diag.text);
        }
        assert_true(err == cases[i].err ||
                    (cases[i].err == BAY_ERR_PROTOCOL && err == BAY_ERR_VERSION));
        assert_null(caller);
        assert_int_equal(diag.code, err);
        assert_true(diag.text[0] != '\0');
        assert_null(strstr(diag.text, "secret"));
    }
    assert_int_equal(bay_caller_connect(NULL, NULL, NULL, NULL), BAY_ERR_INVALID);
}

static void bad_cards_are_refused(void **state)
{
    (void)state;
    static const struct {
        agent_step step;
        bay_err err;
    } cases[] = {
        {{.body = "<html>"}, BAY_ERR_PROTOCOL},
        {{.body = ""}, BAY_ERR_PROTOCOL},
        {{.status = 401}, BAY_ERR_DENIED},
        {{.status = 403}, BAY_ERR_DENIED},
        {{.status = 302, .fields = "Location: /elsewhere\r\n"}, BAY_ERR_PROTOCOL},
        {{.status = 500}, BAY_ERR_BUSY},
        {{.end = AGENT_CUTS}, BAY_ERR_CLOSED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_caller *caller = NULL;
        bay_diag diag = {0};
        bay_err err = connect_to(&cases[i].step, 1, "", NULL, &caller, &diag);
        if (err != cases[i].err) {
            print_error("case %zu: %s: %s\n", i, bay_err_text(err), diag.text);
        }
        assert_int_equal(err, cases[i].err);
        leave(caller);
    }
}

static void cards_are_found_where_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        agent_step steps[4];
        size_t count;
        bay_err err;
    } cases[] = {
        {"", {THE_CARD}, 1, BAY_OK},
        {"/", {THE_CARD}, 1, BAY_OK},
        {"", {NO_CARD, {.expects = "GET /.well-known/agent.json", .body = OLD_CARD}}, 2, BAY_OK},
        {"", {NO_CARD, NO_CARD}, 2, BAY_ERR_NOT_FOUND},
        {"/x/card.json", {{.expects = "GET /x/card.json", .body = CARD}}, 1, BAY_OK},
        {"/x/card.json", {NO_CARD}, 1, BAY_ERR_NOT_FOUND},
        {"/rpc/",
         {{.expects = "GET /rpc/.well-known/agent-card.json", .status = 404},
          {.expects = "GET /rpc/.well-known/agent.json", .status = 405},
          THE_CARD},
         3,
         BAY_OK},
        /* the host's card is another agent's */
        {"/other", {NO_CARD, NO_CARD, THE_CARD, NO_CARD}, 4, BAY_ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_caller *caller = NULL;
        bay_diag diag = {0};
        bay_err err =
            connect_to(cases[i].steps, cases[i].count, cases[i].path, NULL, &caller, &diag);
        if (err != cases[i].err) {
            print_error("case %zu: %s: %s\n", i, bay_err_text(err), diag.text);
        }
        assert_int_equal(err, cases[i].err);
        leave(caller);
    }
}

static void the_card_is_told(void **state)
{
    (void)state;
    static const agent_step steps[] = {THE_CARD};
    bay_caller *caller = NULL;
    assert_int_equal(connect_to(steps, 1, "", NULL, &caller, NULL), BAY_OK);
    expect_text(bay_caller_name(caller), "Ada");
    expect_text(bay_caller_description(caller), "Reads \"it\".");
    expect_text(bay_caller_binding(caller), "JSONRPC");
    expect_text(bay_caller_version(caller), "1.0");
    assert_true(str_ends(bay_caller_url(caller), STR("/rpc")));
    assert_true(bay_caller_has(caller, "streaming"));
    assert_false(bay_caller_has(caller, "pushNotifications"));
    assert_false(bay_caller_is_verified(caller));
    assert_int_equal(bay_caller_skill_count(caller), 1);
    expect_text(bay_caller_skill(caller, 0), "s1");
    expect_text(bay_caller_skill_name(caller, 0), "Search");
    expect_text(bay_caller_skill_description(caller, 0), "Looks.");
    expect_text(bay_caller_skill(caller, 1), "");
    leave(caller);
}

/* ---- the interface --------------------------------------------------------------------------- */

static void the_best_interface_is_chosen(void **state)
{
    (void)state;
    static const char card[] = CARD_OF(
        INTERFACE("http://a/", "JSONRPC", "0.3") "," INTERFACE(
            "http://b/", "HTTP+JSON",
            "1.0") "," INTERFACE("http://c/", "JSONRPC",
                                 "1.0") "," INTERFACE("http://d/", "SMOKE",
                                                      "1.0") "," INTERFACE("http://c/", "JSONRPC",
                                                                           "0.3"),
        "");
    static const struct {
        const char *binding;
        const char *version;
        const char *url; /* NULL: none */
    } cases[] = {
        {NULL, NULL, "http://b/"},       {"JSONRPC", NULL, "http://c/"}, {NULL, "0.3", "http://a/"},
        {"jsonrpc", "1.0", "http://c/"}, {"GRPC", NULL, NULL},           {NULL, "0.1", "http://a/"},
        {"GRPC", "0.1", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_caller *caller = NULL;
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_interface(options, cases[i].binding, cases[i].version);
        bay_err err = bay_caller_connect(card, options, &caller, NULL);
        assert_int_equal(err, cases[i].url != NULL ? BAY_OK : BAY_ERR_VERSION);
        if (err == BAY_OK) {
            expect_text(bay_caller_url(caller), cases[i].url);
        }
        bay_caller_close(caller);
        bay_caller_options_free(options);
    }
}

static void bad_options_are_told(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++) {
        bay_caller *caller = NULL;
        bay_diag diag = {0};
        bay_caller_options *options = bay_caller_options_new();
        if (i == 0) {
            bay_caller_options_header(options, "A b", "x");
        } else if (i == 1) {
            bay_caller_options_header(options, "A", "x\r\nB: secret");
        } else if (i == 2) {
            bay_caller_options_bearer(options, "");
        } else if (i == 3) {
            bay_caller_options_interface(options, "SMOKE", NULL);
        } else if (i == 4) {
            bay_caller_options_interface(options, NULL, "9");
        } else if (i == 5) {
            bay_caller_options_extension(options, "a b");
        } else {
            bay_caller_options_credential(options, "s", "secret\n");
        }
        assert_int_equal(bay_caller_connect("http://127.0.0.1:1/", options, &caller, &diag),
                         BAY_ERR_INVALID);
        assert_null(strstr(diag.text, "secret"));
        bay_caller_options_free(options);
    }
}

/* ---- credentials ----------------------------------------------------------------------------- */

/* Of a card at one agent whose interface is at another: they stay at home, unless that is trusted.
 */
static void credentials_stay_at_the_cards_origin(void **state)
{
    (void)state;
    static scripted_agent other;
    static char card[2048];
    static const agent_step ask[] = {
        {.expects = "GetTask", .body = RESULT(TASK_WITH("WORKING", ""))}};
    static agent_step home[1] = {{.body = card}};
    for (int trusts = 0; trusts < 3; trusts++) {
        bay_caller *caller = NULL;
        bay_caller_reply *response = NULL;
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_bearer(options, "secret");
        bay_caller_options_credential(options, "key", "sesame");
        bay_caller_options_extension(options, "urn:x");
        scripted_agent_start(&other, ask, 1);
        if (trusts > 0) {
            bay_caller_options_trust(options, trusts == 1 ? other.url : "*");
        }
        snprintf(card, sizeof(card),
                 CARD_OF("{\"url\":\"%s/rpc\",\"protocolBinding\":\"JSONRPC\","
                         "\"protocolVersion\":\"1.0\"}",
                         ",\"securitySchemes\":{\"key\":{\"apiKeySecurityScheme\":{\"location\":"
                         "\"header\",\"name\":\"X-Key\"}}}"),
                 other.url);
        assert_int_equal(connect_to(home, 1, "", options, &caller, NULL), BAY_OK);
        assert_int_equal(bay_caller_task(caller, "t1", -1, &response, NULL), BAY_OK);
        bay_caller_reply_free(response);
        assert_non_null(strstr(agent.requests[0], "Bearer secret"));
        assert_int_equal(strstr(other.requests[0], "Bearer secret") != NULL, trusts > 0);
        assert_int_equal(strstr(other.requests[0], "X-Key: sesame") != NULL, trusts > 0);
        assert_non_null(strstr(other.requests[0], "A2A-Extensions: urn:x"));
        leave(caller);
        scripted_agent_stop(&other);
        bay_caller_options_free(options);
    }
}

static void credentials_go_where_the_card_says(void **state)
{
    (void)state;
    static const struct {
        const char *scheme;
        const char *field; /* NULL: it is refused */
        bay_err err;
    } cases[] = {
        {"{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":\"X-Key\"}}", "X-Key: sesame",
         BAY_OK},
        {"{\"apiKeySecurityScheme\":{\"location\":\"cookie\",\"name\":\"k\"}}", "Cookie: k=sesame",
         BAY_OK},
        {"{\"apiKeySecurityScheme\":{\"location\":\"query\",\"name\":\"k\"}}", NULL,
         BAY_ERR_UNSUPPORTED},
        {"{\"httpAuthSecurityScheme\":{\"scheme\":\"Bearer\"}}", "Authorization: Bearer sesame",
         BAY_OK},
        {"{\"httpAuthSecurityScheme\":{\"scheme\":\"Basic\"}}", "Authorization: Basic sesame",
         BAY_OK},
        {"{\"openIdConnectSecurityScheme\":{\"openIdConnectUrl\":\"http://x/\"}}",
         "Authorization: Bearer sesame", BAY_OK},
    };
    static char card[4096];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        agent_step steps[2] = {
            {.body = card}, {.expects = cases[i].field, .body = RESULT(TASK_WITH("WORKING", ""))}};
        bay_caller *caller = NULL;
        bay_caller_reply *response = NULL;
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_credential(options, "door", "sesame");
        snprintf(card, sizeof(card), CARD_OF(JSONRPC_1_0, ",\"securitySchemes\":{\"door\":%s}"),
                 cases[i].scheme);
        bool is_sent = cases[i].field != NULL;
        assert_int_equal(connect_to(steps, is_sent ? 2 : 1, "", options, &caller, NULL), BAY_OK);
        assert_int_equal(bay_caller_task(caller, "t1", -1, &response, NULL), cases[i].err);
        bay_caller_reply_free(response);
        leave(caller);
        bay_caller_options_free(options);
    }
}

static void a_scheme_that_is_not_there_is_told(void **state)
{
    (void)state;
    static const agent_step steps[] = {THE_CARD};
    bay_caller *caller = NULL;
    bay_diag diag = {0};
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_credential(options, "door", "sesame");
    assert_int_equal(connect_to(steps, 1, "", options, &caller, NULL), BAY_OK);
    assert_int_equal(bay_caller_send(caller, "x", &diag, NULL, NULL), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "door"));
    assert_null(strstr(diag.text, "sesame"));
    leave(caller);
    bay_caller_options_free(options);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void a_message_is_answered(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "\"SendMessage\"",
         .body = RESULT("{\"task\":" TASK_WITH("COMPLETED", ARTIFACTS) "}")},
        {.expects = "\"SendMessage\"",
         .body = RESULT("{\"message\":{\"messageId\":\"m9\",\"role\":\"ROLE_AGENT\",\"parts\":[{"
                        "\"text\":\"hi\"}]}}")}};
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    assert_int_equal(connect_to(steps, 3, "", NULL, &caller, NULL), BAY_OK);
    assert_int_equal(bay_caller_send_wait(caller, "hello \"you\"", &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_kind_of(response), BAY_CALLER_REPLY_KIND_TASK);
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
    expect_text(bay_caller_reply_task(response), "t1");
    expect_text(bay_caller_reply_context(response), "c1");
    expect_text(bay_caller_reply_text(response), "said COMPLETED");
    assert_int_equal(bay_caller_reply_artifact_count(response), 1);
    expect_text(bay_caller_reply_artifact_name(response, 0), "r.md");
    expect_text(bay_message_text(bay_caller_reply_artifact(response, 0)), "x");
    assert_null(bay_caller_reply_artifact(response, 1));
    bay_caller_reply_free(response);
    assert_non_null(strstr(agent.requests[1], "hello \\\"you\\\""));
    assert_int_equal(bay_caller_send_wait(caller, "again", &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_kind_of(response), BAY_CALLER_REPLY_KIND_MESSAGE);
    expect_text(bay_caller_reply_text(response), "hi");
    bay_caller_reply_free(response);
    leave(caller);
}

static void note_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    static const char *const kinds[] = {"?", "task", "message", "status", "artifact"};
    char *log = user;
    size_t len = strlen(log);
    bay_str text = bay_caller_reply_text(event);
    bay_str chunk = bay_message_text(bay_caller_reply_artifact(event, 0));
    snprintf(log + len, 1024 - len, "%s %s %.*s%.*s%s\n", kinds[bay_caller_reply_kind_of(event)],
             bay_task_state_text(bay_caller_reply_state(event)), BAY_STR(text), BAY_STR(chunk),
             bay_caller_reply_appends(event) ? "+" : "");
}

static void a_message_is_followed(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "SendStreamingMessage",
         .body = EVENT("{\"task\":" TASK_WITH("WORKING", "") "}") EVENT(CHUNK("x", "")),
         .is_stream = true,
         .end = AGENT_CUTS},
        {.expects = "SubscribeToTask",
         .body = EVENT("{\"task\":" TASK_WITH("WORKING", ARTIFACTS) "}")
             EVENT(CHUNK("y", ",\"append\":true"))
                 EVENT("{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{"
                       "\"state\":\"TASK_STATE_COMPLETED\"}}}"),
         .is_stream = true}};
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    char log[1024] = "";
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_resume(options, 3, 1);
    assert_int_equal(connect_to(steps, 3, "", options, &caller, NULL), BAY_OK);
    bay_caller_request *operation = bay_caller_request_send_text(caller, "go");
    bay_caller_request_on_event(operation, note_event, log);
    assert_int_equal(bay_caller_request_run(operation, &response, NULL), BAY_OK);
    assert_string_equal(log, "task working said WORKING\nartifact unknown x\nartifact unknown y+\n"
                             "status completed \n");
    /* the whole, put together */
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
    assert_int_equal(bay_caller_reply_artifact_count(response), 1);
    expect_text(bay_message_text(bay_caller_reply_artifact(response, 0)), "xy");
    bay_caller_reply_free(response);
    leave(caller);
    bay_caller_options_free(options);
}

/* Whatever a message can be told. */
static bay_caller_request *say_everything(bay_caller *caller)
{
    bay_message *message = bay_message_new();
    bay_message_add_text(message, "look");
    bay_message_add_bytes(message, "\0\1\2", 3, "f.bin", "application/x");
    bay_message_add_url(message, "http://file/", NULL, NULL);
    bay_message_add_data(message, "{\"a\":null}");
    bay_caller_request *operation = bay_caller_request_send(caller, message);
    bay_message_free(message);
    bay_caller_request_for_task(operation, "t7");
    bay_caller_request_for_context(operation, "c7");
    bay_caller_request_for_skill(operation, "s1");
    bay_caller_request_return_immediately(operation);
    bay_caller_request_accept(operation, "text/plain");
    bay_caller_request_accept(operation, "image/png");
    bay_caller_request_push(operation, "http://hook/", "tok", "Bearer", "c");
    bay_caller_request_history(operation, 3);
    bay_caller_request_metadata(operation, "{\"k\":1}");
    bay_caller_request_traceparent(operation, "00-ab");
    bay_caller_request_header(operation, "X-One", "1");
    return operation;
}

static void operations_say_what_they_are_told(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "\"SendMessage\"",
         .body = RESULT("{\"task\":" TASK_WITH("SUBMITTED", "") "}")}};
    static const char *const wanted[] = {"\"taskId\":\"t7\"",
                                         "\"contextId\":\"c7\"",
                                         "\"skillId\":\"s1\"",
                                         "\"returnImmediately\":true",
                                         "\"acceptedOutputModes\":[\"text/plain\",\"image/png\"]",
                                         "\"url\":\"http://hook/\"",
                                         "\"token\":\"tok\"",
                                         "\"scheme\":\"Bearer\"",
                                         "\"historyLength\":3",
                                         "\"k\":1",
                                         "\"raw\":\"AAEC\"",
                                         "\"filename\":\"f.bin\"",
                                         "\"data\":{\"a\":null}",
                                         "\"url\":\"http://file/\"",
                                         "traceparent: 00-ab",
                                         "X-One: 1",
                                         "\"role\":\"ROLE_USER\""};
    bay_caller *caller = NULL;
    assert_int_equal(connect_to(steps, 2, "", NULL, &caller, NULL), BAY_OK);
    bay_caller_request *operation = say_everything(caller);
    assert_int_equal(bay_caller_request_run(operation, NULL, NULL), BAY_OK);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (strstr(agent.requests[1], wanted[i]) == NULL) {
            print_error("%s is not in\n%s\n", wanted[i], agent.requests[1]);
        }
        assert_non_null(strstr(agent.requests[1], wanted[i]));
    }
    leave(caller);
}

static void every_operation_is_asked(void **state)
{
    (void)state;
#define PUSH "{\"taskId\":\"t1\",\"id\":\"p1\",\"url\":\"http://h/\"}"
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "\"GetTask\"",
         .body = RESULT(TASK_WITH("WORKING", ",\"history\":[{\"messageId\":\"m1\",\"role\":\"ROLE_"
                                             "USER\",\"parts\":[{\"text\":\"q\"}]}]"))},
        {.expects = "\"pageToken\":\"p2\"",
         .body = RESULT("{\"tasks\":[" TASK_WITH("WORKING", "") "," TASK_WITH(
             "FAILED", "") "],\"nextPageToken\":\"p3\",\"pageSize\":2,\"totalSize\":9}")},
        {.expects = "\"CancelTask\"", .body = RESULT(TASK_WITH("CANCELED", ""))},
        {.expects = "\"SubscribeToTask\"",
         .body = EVENT("{\"task\":" TASK_WITH("COMPLETED", "") "}"),
         .is_stream = true},
        {.expects = "\"url\":\"http://h/\"", .body = RESULT(PUSH)},
        {.expects = "\"GetTaskPushNotificationConfig\"", .body = RESULT(PUSH)},
        {.expects = "\"ListTaskPushNotificationConfigs\"",
         .body = RESULT("{\"configs\":[" PUSH "]}")},
        {.expects = "\"DeleteTaskPushNotificationConfig\"", .body = RESULT("{}")},
        {.expects = "\"GetExtendedAgentCard\"", .body = RESULT(CARD)},
        {.expects = "\"GetTask\"",
         .body =
             "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32001,\"message\":\"gone\"}}"}};
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    bay_diag diag = {0};
    char log[1024] = "";
    assert_int_equal(connect_to(steps, 11, "", NULL, &caller, NULL), BAY_OK);
    assert_int_equal(bay_caller_task(caller, "t1", 4, &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_history_count(response), 1);
    expect_text(bay_message_text(bay_caller_reply_history(response, 0)), "q");
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_list(caller, "p2", &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_count(response), 2);
    expect_text(bay_caller_reply_next_page(response), "p3");
    assert_true(str_starts(bay_caller_reply_item(response, 1), STR("{\"id\":\"t1\"")));
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_task_cancel(caller, "t1", &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_CANCELLED);
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_subscribe(caller, "t1", NULL, note_event, log), BAY_OK);
    assert_string_equal(log, "task completed said COMPLETED\n");
    assert_int_equal(bay_caller_push_create(caller, "t1", "http://h/", "tok", &response, NULL),
                     BAY_OK);
    expect_text(bay_caller_reply_str(response, "id"), "p1");
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_push_get(caller, "t1", "p1", &response, NULL), BAY_OK);
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_push_list(caller, "t1", &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_count(response), 1);
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_push_delete(caller, "t1", "p1", NULL), BAY_OK);
    assert_int_equal(bay_caller_extended_card(caller, &response, NULL), BAY_OK);
    assert_int_equal(bay_caller_reply_kind_of(response), BAY_CALLER_REPLY_KIND_CARD);
    expect_text(bay_caller_reply_str(response, "name"), "Ada");
    bay_caller_reply_free(response);
    response = NULL;
    assert_int_equal(bay_caller_task(caller, "gone", -1, &response, &diag), BAY_ERR_REMOTE);
    assert_null(response);
    expect_text(bay_caller_remote_error(caller), "TASK_NOT_FOUND");
    assert_non_null(strstr(diag.text, "gone"));
    leave(caller);
}

static void wrong_operations_are_refused(void **state)
{
    (void)state;
    static const agent_step steps[] = {THE_CARD};
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    bay_diag diag = {0};
    assert_int_equal(connect_to(steps, 1, "", NULL, &caller, NULL), BAY_OK);
    bay_message *empty = bay_message_new();
    bay_caller_request *operations[] = {
        bay_caller_request_send(caller, empty),
        bay_caller_request_task(caller, ""),
        bay_caller_request_task(caller, NULL),
        bay_caller_request_new(caller, "Frobnicate", NULL),
        bay_caller_request_new(caller, "GetTask", "[1]"),
        bay_caller_request_new(caller, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        assert_int_equal(bay_caller_request_run(operations[i], &response, NULL), BAY_ERR_INVALID);
    }
    bay_caller_request *fields = bay_caller_request_task(caller, "t");
    bay_caller_request_header(fields, "A", "x\ny");
    assert_int_equal(bay_caller_request_run(fields, NULL, NULL), BAY_ERR_INVALID);
    fields = bay_caller_request_task(caller, "t");
    bay_caller_request_metadata(fields, "{");
    assert_int_equal(bay_caller_request_run(fields, NULL, NULL), BAY_ERR_INVALID);
    fields = bay_caller_request_send_text(caller, "hi");
    bay_caller_request_metadata(fields, "{\"skillId\":\"one\"}");
    bay_caller_request_for_skill(fields, "another");
    assert_int_equal(bay_caller_request_run(fields, NULL, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "\"skillId\" stands twice"));
    fields = bay_caller_request_task(caller, "t");
    bay_caller_request_history(fields, 1);
    bay_caller_request_history(fields, 2);
    assert_int_equal(bay_caller_request_run(fields, NULL, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_caller_request_run(NULL, NULL, NULL), BAY_ERR_NOMEM);
    bay_caller_request_free(bay_caller_request_send_text(caller, "never sent"));
    bay_message_free(empty);
    assert_int_equal(bay_caller_push_get(caller, "t", NULL, &response, NULL), BAY_ERR_INVALID);
    leave(caller);
}

/* ---- without waiting ------------------------------------------------------------------------- */

typedef struct story {
    int connected;
    int done;
    bay_err err;
    bay_caller *caller;
} story;

static void on_connected(bay_caller *caller, const bay_diag *diag, void *user)
{
    story *self = user;
    bay_caller_reply *response = NULL;
    self->connected++;
    self->err = diag->code;
    /* inside a callback nothing can be waited for */
    assert_int_equal(bay_caller_task(caller, "t", -1, &response, NULL), BAY_ERR_STATE);
    bay_caller_close(caller); /* does nothing but say so */
}

static void on_done(bay_caller_request *operation, bay_caller_reply *response, const bay_diag *diag,
                    void *user)
{
    story *self = user;
    (void)operation;
    self->done++;
    self->err = diag->code;
    assert_int_equal(response != NULL, diag->code == BAY_OK);
    bay_caller_reply_free(response);
}

static void it_works_inside_an_event_loop(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "\"GetTask\"", .body = RESULT(TASK_WITH("WORKING", ""))},
        {.expects = "\"SubscribeToTask\"",
         .body = EVENT("{\"task\":" TASK_WITH("WORKING", "") "}"),
         .is_stream = true,
         .end = AGENT_HANGS}};
    story self = {0};
    char log[1024] = "";
    scripted_agent_start(&agent, steps, 3);
    assert_int_equal(
        bay_caller_connect_start(agent.url, NULL, &self.caller, NULL, on_connected, &self), BAY_OK);
    expect_text(bay_caller_name(self.caller), "");
    assert_int_equal(
        bay_caller_request_start(bay_caller_request_task(self.caller, "t1"), NULL, on_done, &self),
        BAY_OK);
    bay_caller_request *dropped = bay_caller_request_task(self.caller, "t2");
    assert_int_equal(bay_caller_request_start(dropped, NULL, on_done, &self), BAY_OK);
    bay_caller_request_cancel(dropped);
    while (self.done < 2) {
        struct pollfd fd = {bay_caller_fd(self.caller), POLLIN, 0};
        (void)poll(&fd, 1, bay_caller_wait_ms(self.caller));
        assert_int_equal(bay_caller_dispatch(self.caller), BAY_OK);
    }
    assert_int_equal(self.connected, 1);
    assert_int_equal(self.err, BAY_OK);
    bay_caller_request *open = bay_caller_request_subscribe(self.caller, "t1");
    bay_caller_request_on_event(open, note_event, log);
    assert_int_equal(bay_caller_request_start(open, NULL, on_done, &self), BAY_OK);
    bay_diag diag = {0};
    assert_int_equal(bay_caller_request_start(open, &diag, NULL, NULL),
                     BAY_ERR_STATE); /* it goes on */
    expect_text(str_of(diag.text), "the operation was started already");
    assert_int_equal(bay_caller_request_run(open, NULL, NULL), BAY_ERR_STATE);
    bay_caller_request_free(open);
    while (log[0] == '\0') {
        assert_int_equal(bay_caller_wait(self.caller, -1), BAY_OK);
    }
    leave(self.caller);
    assert_int_equal(self.done, 3);
    assert_int_equal(self.err, BAY_ERR_CANCELLED);
}

static void an_agent_that_comes_later_is_found(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        {.status = 500},
        THE_CARD,
        {.expects = "\"GetTask\"", .body = RESULT(TASK_WITH("WORKING", ""))}};
    story self = {0};
    scripted_agent_start(&agent, steps, 3);
    assert_int_equal(bay_caller_connect_start(agent.url, NULL, &self.caller, NULL, NULL, NULL),
                     BAY_OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(bay_caller_request_start(bay_caller_request_task(self.caller, "t1"), NULL,
                                                  on_done, &self),
                         BAY_OK);
        while (self.done < i) {
            assert_int_equal(bay_caller_wait(self.caller, -1), BAY_OK);
        }
        assert_int_equal(self.err, i == 1 ? BAY_ERR_BUSY : BAY_OK);
    }
    leave(self.caller);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    static const agent_step steps[] = {
        THE_CARD,
        {.expects = "SendStreamingMessage",
         .body = EVENT("{\"task\":" TASK_WITH("WORKING", "") "}") EVENT(CHUNK("x", ""))
             EVENT("{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{"
                   "\"state\":\"TASK_STATE_COMPLETED\"}}}"),
         .is_stream = true}};
    for (size_t at = 0;; at++) {
        char log[1024] = "";
        bay_caller *caller = NULL;
        bay_caller_reply *response = NULL;
        scripted_agent_start(&agent, steps, 2);
        if (!failing_memory_start(at)) {
            scripted_agent_end(&agent);
            break;
        }
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_bearer(options, "secret");
        if (options != NULL && bay_caller_connect(agent.url, options, &caller, NULL) == BAY_OK) {
            bay_caller_request *operation = bay_caller_request_send_text(caller, "go");
            bay_caller_request_on_event(operation, note_event, log);
            if (bay_caller_request_run(operation, &response, NULL) == BAY_OK) {
                assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
            }
            bay_caller_reply_free(response);
        }
        bay_caller_close(caller);
        bay_caller_options_free(options);
        failing_memory_check();
        scripted_agent_end(&agent);
    }
}

/* Without anybody to speak to: all that is made before something is sent. */
static void memory_may_fail_while_it_is_made(void **state)
{
    (void)state;
    static const char card[] = CARD_OF(
        INTERFACE("http://127.0.0.1:1/", "JSONRPC", "1.0"),
        ",\"securitySchemes\":{\"door\":{\"httpAuthSecurityScheme\":{\"scheme\":\"Basic\"}}}");
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_caller *caller = NULL;
        bay_caller_options *options = bay_caller_options_new();
        bay_caller_options_credential(options, "door", "sesame");
        bay_caller_options_header(options, "X-One", "1");
        bay_caller_options_extension(options, "urn:x");
        bay_caller_options_extension(options, "urn:y");
        bay_caller_options_trust(options, "*");
        bay_caller_options_key_url(options, "http://127.0.0.1:1/keys");
        if (options != NULL && bay_caller_connect(card, options, &caller, NULL) == BAY_OK) {
            bay_caller_request *operation = say_everything(caller);
            bay_err err = bay_caller_request_start(operation, NULL, NULL, NULL);
            if (err == BAY_OK) {
                bay_caller_request_pause(operation);
                bay_caller_request_resume(operation);
                bay_caller_request_cancel(operation);
            }
        }
        bay_caller_close(caller);
        bay_caller_options_free(options);
        failing_memory_check();
    }
}

static void withheld_credentials_are_told(void **state)
{
    (void)state;
    static scripted_agent other;
    static char card[2048];
    static const agent_step refusal[] = {{.status = 401, .body = "{}"}};
    static agent_step home[1] = {{.body = card}};
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    bay_diag diag = {0};
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_bearer(options, "secret");
    scripted_agent_start(&other, refusal, 1);
    snprintf(card, sizeof(card),
             CARD_OF("{\"url\":\"%s/rpc\",\"protocolBinding\":\"JSONRPC\","
                     "\"protocolVersion\":\"1.0\"}",
                     ""),
             other.url);
    assert_int_equal(connect_to(home, 1, "", options, &caller, NULL), BAY_OK);
    assert_true(bay_caller_task(caller, "t1", -1, &response, &diag) != BAY_OK);
    if (strstr(diag.text, "withheld") == NULL) {
        print_error("%s\n", diag.text);
    }
    assert_non_null(strstr(diag.text, "withheld"));
    leave(caller);
    scripted_agent_stop(&other);
    bay_caller_options_free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_agent_is_told),
        cmocka_unit_test(bad_cards_are_refused),
        cmocka_unit_test(cards_are_found_where_they_are),
        cmocka_unit_test(the_card_is_told),
        cmocka_unit_test(the_best_interface_is_chosen),
        cmocka_unit_test(bad_options_are_told),
        cmocka_unit_test(credentials_stay_at_the_cards_origin),
        cmocka_unit_test(credentials_go_where_the_card_says),
        cmocka_unit_test(a_scheme_that_is_not_there_is_told),
        cmocka_unit_test(a_message_is_answered),
        cmocka_unit_test(a_message_is_followed),
        cmocka_unit_test(operations_say_what_they_are_told),
        cmocka_unit_test(every_operation_is_asked),
        cmocka_unit_test(wrong_operations_are_refused),
        cmocka_unit_test(it_works_inside_an_event_loop),
        cmocka_unit_test(an_agent_that_comes_later_is_found),
        cmocka_unit_test(withheld_credentials_are_told),
        cmocka_unit_test(memory_may_fail_while_it_is_made),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
