/* Questions of handlers to their clients, in both eras: what is asked, what is answered, what
 * cannot be asked, and what becomes of a question when its call ends. */
#include "net/thread.h"
#include "unit/sdk/question_bench.h"

#define NAME_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":["          \
    "\"name\"]}"
#define CALL_T "\"name\":\"t\",\"arguments\":{\"a\":1}"
#define ACCEPT(content) "\"result\":{\"action\":\"accept\",\"content\":" content "}"

/* What the last answer was. */
static struct {
    int runs;
    bay_err err;
    bay_action action;
    char name[64];
    char content[256];
    char text[256];
    char json[512];
    char root[64];
    size_t roots;
    bool was_cancelled;
} seen;

static void keep_text(char *at, size_t size, bay_str text)
{
    (void)snprintf(at, size, "%.*s", BAY_STR(text));
}

static void see(bay_call *call, const bay_answer *answer)
{
    seen.runs++;
    seen.err = bay_answer_error(answer);
    seen.action = bay_answer_action(answer);
    keep_text(seen.name, sizeof(seen.name), bay_answer_str(answer, "name"));
    keep_text(seen.content, sizeof(seen.content), bay_answer_content(answer));
    keep_text(seen.text, sizeof(seen.text), bay_answer_text(answer));
    keep_text(seen.json, sizeof(seen.json), bay_answer_json(answer));
    seen.roots = bay_answer_root_count(answer);
    keep_text(seen.root, sizeof(seen.root), bay_answer_root(answer, seen.roots - 1));
    seen.was_cancelled = bay_call_is_cancelled(call);
}

static void greet(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    if (bay_answer_action(answer) == BAY_ACTION_ACCEPT) {
        bay_str name = bay_answer_str(answer, "name");
        bay_call_replyf(call, "Hello, %.*s!", BAY_STR(name));
    } else {
        bay_call_fail(call, bay_err_text(bay_answer_error(answer)));
    }
}

static void ask_name(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "user_name");
    bay_call_elicit_schema(call, "What is your \"name\"?", NAME_SCHEMA, greet, NULL);
}

static void start(rig *on, bay_handler_fn handler, bool is_blocking, const char *revision,
                  const char *capabilities)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, handler, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    memset(&seen, 0, sizeof(seen));
    rig_start(on, server);
    rig_client_with(on, revision, capabilities);
}

/* ---- sessions */

static void a_session_is_asked_and_answers(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        start(&on, ask_name, blocking == 1, "2025-06-18", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        int at = 1;
        RIG_UNTIL(&on, on.way.events == at + 1);
        assert_has(on.way.event[at],
                   "\"method\":\"elicitation/create\",\"params\":{\"message\":"
                   "\"What is your \\\"name\\\"?\",\"requestedSchema\":" NAME_SCHEMA "}}");
        assert_int_equal(on.server->calls_under_way, 1);
        answer_event(&on, at, ACCEPT("{\"name\":\"Al\\u0069ce\"}"));
        RIG_UNTIL(&on, on.way.events == at + 2);
        assert_has(last_event(&on.way), "\"text\":\"Hello, Alice!\"");
        assert_int_equal(seen.runs, 1);
        assert_int_equal(seen.err, BAY_OK);
        assert_string_equal(seen.content, "{\"name\":\"Al\\u0069ce\"}");
        assert_has(seen.json, "\"action\":\"accept\"");
        assert_int_equal(on.server->calls_under_way, 0);
        rig_stop(&on);
    }
}

static void a_client_is_asked_by_rounds(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        rig on;
        start(&on, ask_name, blocking == 1, "2026-07-28", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        RIG_UNTIL(&on, on.way.events == 1);
        const char *said = last_event(&on.way);
        assert_has(said, "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
                         "\"user_name\":{\"method\":\"elicitation/create\",\"params\":{");
        assert_int_equal(seen.runs, 0);
        assert_int_equal(on.server->calls_under_way, 0);
        char params[4096];
        (void)snprintf(params, sizeof(params),
                       CALL_T ",\"requestState\":\"%s\",\"inputResponses\":{\"user_name\":{"
                              "\"action\":\"accept\",\"content\":{\"name\":\"Bob\"}}}",
                       state_in(said));
        rig_send(&on, "tools/call", params, "");
        RIG_UNTIL(&on, on.way.events == 2);
        assert_has(last_event(&on.way), "\"text\":\"Hello, Bob!\"");
        assert_has(last_event(&on.way), "\"resultType\":\"complete\"");
        assert_int_equal(seen.runs, 1);
        rig_stop(&on);
    }
}

/* ---- every kind, in both eras */

/* What a handler asks, and what it should have heard. */
typedef struct kind_case {
    const char *kind;
    const char *method;
    const char *params;   /* some of it */
    const char *result;   /* the client's */
    const char *expected; /* some of seen.json */
} kind_case;

static void see_and_reply(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    bay_call_reply(call, "heard");
}

static void ask_kind(bay_call *call, void *user)
{
    (void)user;
    bay_str kind = bay_call_str(call, "kind");
    if (str_eq(kind, STR("form"))) {
        bay_call_elicit_schema(call, "m", "{\"type\":\"object\"}", see_and_reply, NULL);
    } else if (str_eq(kind, STR("url"))) {
        bay_call_elicit_url(call, "m", "https://x.example/", "e-1", see_and_reply, NULL);
    } else if (str_eq(kind, STR("sample"))) {
        bay_call_sample(call, "Say \"hi\"", 5, see_and_reply, NULL);
    } else if (str_eq(kind, STR("tools"))) {
        bay_call_sample_json(call, bay_json_of(" {\"messages\":[],\"maxTokens\":1,\"tools\":[]} "),
                             see_and_reply, NULL);
    } else if (str_eq(kind, STR("roots"))) {
        bay_call_roots(call, see_and_reply, NULL);
    } else if (str_eq(kind, STR("no form"))) {
        bay_call_elicit_schema(call, "m", "[]", see_and_reply, NULL);
    } else if (str_eq(kind, STR("bad form"))) {
        bay_call_elicit_schema(call, "m", "{\"type\":17}", see_and_reply, NULL);
    } else if (str_eq(kind, STR("no params"))) {
        bay_call_sample_json(call, bay_json_of("{"), see_and_reply, NULL);
    } else {
        bay_call_elicit_schema(call, "m", NULL, see_and_reply, NULL);
    }
}

static const kind_case kind_cases[] = {
    {"form", "elicitation/create", "{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\"}}",
     "{\"action\":\"decline\"}", "decline"},
    {"url", "elicitation/create",
     "{\"mode\":\"url\",\"message\":\"m\",\"url\":\"https://x.example/\"",
     "{\"action\":\"accept\"}", "accept"},
    {"sample", "sampling/createMessage",
     "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Say "
     "\\\"hi\\\"\"}}],\"maxTokens\":5}",
     "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"h\\u0069\"},\"model\":"
     "\"m\"}",
     "\"model\":\"m\""},
    {"tools", "sampling/createMessage", "{\"messages\":[],\"maxTokens\":1,\"tools\":[]}",
     "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},"
     "{\"type\":\"text\",\"text\":\"b\"}],\"model\":\"m\"}",
     "image"},
    {"roots", "roots/list", "{}",
     "{\"roots\":[{\"uri\":\"file:///a\"},{\"uri\":\"file:///b\",\"name\":\"b\"}]}", "file:///b"},
};

static void check_heard(const kind_case *one)
{
    assert_int_equal(seen.runs, 1);
    assert_int_equal(seen.err, BAY_OK);
    assert_has(seen.json, one->expected);
    assert_int_equal(seen.action,
                     strcmp(one->kind, "form") == 0 ? BAY_ACTION_DECLINE : BAY_ACTION_ACCEPT);
    if (strcmp(one->kind, "sample") == 0) {
        assert_string_equal(seen.text, "hi");
    } else if (strcmp(one->kind, "tools") == 0) {
        assert_string_equal(seen.text, "ab");
    } else {
        assert_string_equal(seen.text, "");
    }
    assert_int_equal(seen.roots, strcmp(one->kind, "roots") == 0 ? 2 : 0);
    assert_string_equal(seen.root, strcmp(one->kind, "roots") == 0 ? "file:///b" : "");
}

static void every_kind_is_asked_in_both_eras(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_kind, false, "2025-11-25", EVERY_QUESTION);
    for (size_t i = 0; i < ARRAY_LEN(kind_cases); i++) {
        const kind_case *one = &kind_cases[i];
        char params[256];
        char result[1024];
        (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":{\"kind\":\"%s\"}",
                       one->kind);
        (void)snprintf(result, sizeof(result), "\"result\":%s", one->result);
        memset(&seen, 0, sizeof(seen));
        rig_send(&on, "tools/call", params, "");
        assert_has(last_event(&on.way), one->method);
        assert_has(last_event(&on.way), one->params);
        if (strcmp(one->kind, "url") == 0) {
            assert_has(last_event(&on.way), "\"elicitationId\":\"e-1\"");
        }
        answer_event(&on, on.way.events - 1, result);
        check_heard(one);
        assert_has(last_event(&on.way), "heard");
    }
    rig_stop(&on);
    start(&on, ask_kind, false, "2026-07-28", EVERY_QUESTION);
    for (size_t i = 0; i < ARRAY_LEN(kind_cases); i++) {
        const kind_case *one = &kind_cases[i];
        char params[256];
        char responses[1024];
        (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":{\"kind\":\"%s\"}",
                       one->kind);
        (void)snprintf(responses, sizeof(responses), "{\"1\":%s}", one->result);
        memset(&seen, 0, sizeof(seen));
        const char *said = rig_ask(&on, "tools/call", params);
        assert_has(said, "\"inputRequests\":{\"1\":{\"method\":");
        assert_has(said, one->method);
        assert_has(said, one->params);
        assert_lacks(said, "elicitationId");
        said = next_round(&on, "tools/call", params, responses, state_in(said));
        check_heard(one);
        assert_has(said, "heard");
    }
    rig_stop(&on);
}

/* ---- what cannot be asked */

static void ask_one(rig *on, const char *kind, bay_err err)
{
    char params[256];
    (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":{\"kind\":\"%s\"}", kind);
    memset(&seen, 0, sizeof(seen));
    assert_has(rig_ask(on, "tools/call", params), "heard"); /* at once */
    assert_int_equal(seen.runs, 1);
    assert_int_equal(seen.action, BAY_ACTION_NONE);
    if (seen.err != err) {
        fail_msg("%s, %s: %s", on->revision, kind, bay_err_text(seen.err));
    }
    assert_string_equal(seen.json, "");
    assert_string_equal(seen.content, "");
    assert_string_equal(seen.text, "");
    assert_int_equal(seen.roots, 0);
}

static void a_client_is_asked_only_what_it_declared(void **state)
{
    (void)state;
    static const struct {
        const char *revision;
        const char *capabilities;
        const char *kinds[6]; /* what cannot be asked */
    } cases[] = {
        {"2025-11-25", "", {"form", "url", "sample", "tools", "roots"}},
        {"2026-07-28", "", {"form", "url", "sample", "tools", "roots"}},
        {"2025-11-25", "\"elicitation\":{}", {"url", "sample", "roots"}},
        {"2026-07-28", "\"elicitation\":{}", {"url", "sample", "roots"}},
        {"2025-11-25", "\"elicitation\":{\"url\":{}}", {"form"}},
        {"2026-07-28", "\"elicitation\":{\"url\":{}}", {"form"}},
        {"2025-11-25", "\"sampling\":{}", {"tools", "form"}},
        {"2026-07-28", "\"sampling\":{}", {"tools", "form"}},
        {"2025-06-18", EVERY_QUESTION, {"url", "tools"}},
        {"2025-03-26", EVERY_QUESTION, {"form", "url"}},
        {"2024-11-05", EVERY_QUESTION, {"form", "url"}},
        {"2025-11-25",
         "\"elicitation\":true,\"sampling\":1,\"roots\":[]",
         {"form", "sample", "roots"}},
    };
    rig on;
    start(&on, ask_kind, false, "2025-11-25", "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig_client_with(&on, cases[i].revision, cases[i].capabilities);
        for (size_t k = 0; k < 6 && cases[i].kinds[k] != NULL; k++) {
            ask_one(&on, cases[i].kinds[k], BAY_ERR_UNSUPPORTED);
        }
    }
    rig_stop(&on);
}

static void what_is_no_question_is_not_asked(void **state)
{
    (void)state;
    static const char *const kinds[] = {"no form", "bad form", "no params", "NULL"};
    rig on;
    start(&on, ask_kind, false, "2025-11-25", "");
    for (int era = 0; era < 2; era++) {
        rig_client_with(&on, era == 0 ? "2025-11-25" : "2026-07-28", EVERY_QUESTION);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            ask_one(&on, kinds[i], BAY_ERR_INVALID);
        }
    }
    rig_stop(&on);
}

/* ---- what a session's client may answer */

static void bad_answers_are_no_answers(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        const char *answer;
        bay_err err;
    } cases[] = {
        {"form", "\"error\":{\"code\":-1,\"message\":\"no\"}", BAY_ERR_REMOTE},
        {"form", "\"result\":{}", BAY_ERR_PROTOCOL},
        {"form", "\"result\":{\"action\":\"maybe\"}", BAY_ERR_PROTOCOL},
        {"form", "\"result\":{\"action\":\"accept\",\"content\":[]}", BAY_ERR_PROTOCOL},
        {"url", "\"result\":{\"action\":1}", BAY_ERR_PROTOCOL},
        {"sample", "\"result\":{\"role\":\"assistant\"}", BAY_ERR_PROTOCOL},
        {"sample", "\"result\":{\"role\":\"assistant\",\"content\":\"text\"}", BAY_ERR_PROTOCOL},
        {"sample", "\"result\":{\"content\":{}}", BAY_ERR_PROTOCOL},
        {"roots", "\"result\":{\"roots\":{}}", BAY_ERR_PROTOCOL},
        {"roots", "\"result\":{\"roots\":[{\"name\":\"n\"}]}", BAY_ERR_PROTOCOL},
        {"roots", "\"result\":{\"roots\":[\"file:///a\"]}", BAY_ERR_PROTOCOL},
    };
    rig on;
    start(&on, ask_kind, false, "2025-11-25", EVERY_QUESTION);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char params[256];
        (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":{\"kind\":\"%s\"}",
                       cases[i].kind);
        memset(&seen, 0, sizeof(seen));
        rig_send(&on, "tools/call", params, "");
        answer_event(&on, on.way.events - 1, cases[i].answer);
        assert_int_equal(seen.runs, 1);
        assert_int_equal(seen.action, BAY_ACTION_NONE);
        if (seen.err != cases[i].err) {
            fail_msg("%s: %s", cases[i].answer, bay_err_text(seen.err));
        }
    }
    rig_stop(&on);
}

static void a_form_that_breaks_its_schema_is_refused(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_name, false, "2025-06-18", "\"elicitation\":{}");
    rig_send(&on, "tools/call", CALL_T, "");
    answer_event(&on, on.way.events - 1, ACCEPT("{\"name\":7}"));
    assert_int_equal(seen.err, BAY_ERR_PROTOCOL);
    rig_send(&on, "tools/call", CALL_T, "");
    answer_event(&on, on.way.events - 1, "\"result\":{\"action\":\"accept\"}");
    assert_int_equal(seen.err, BAY_ERR_PROTOCOL); /* the name is required */
    rig_send(&on, "tools/call", CALL_T, "");
    answer_event(&on, on.way.events - 1,
                 "\"result\":{\"action\":\"cancel\",\"content\":{\"name\":7}}");
    assert_int_equal(seen.err, BAY_OK); /* nothing was filled in: nothing to check */
    assert_int_equal(seen.action, BAY_ACTION_CANCEL);
    rig_stop(&on);
}

static void a_question_times_out(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_name, false, "2025-06-18", "\"elicitation\":{}");
    rig_send(&on, "tools/call", CALL_T, "");
    mcp_server_tick(on.server->engine, loop_now_ms(on.loop) + 600001);
    assert_int_equal(seen.runs, 1);
    assert_int_equal(seen.err, BAY_ERR_TIMEOUT);
    assert_has(last_event(&on.way), "\"isError\":true");
    rig_stop(&on);
}

/* ---- several at once, one after the other */

static struct {
    char order[32];
    int left;
} several;
static char names[] = "abc";

static void note_order(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    several.order[strlen(several.order)] = *(const char *)user;
    if (--several.left == 0) {
        bay_call_reply(call, several.order);
    }
}

static void ask_three(bay_call *call, void *user)
{
    (void)user;
    memset(&several, 0, sizeof(several));
    several.left = 3;
    bay_call_elicit_schema(call, "a", "{\"type\":\"object\"}", note_order, &names[0]);
    bay_call_sample(call, "b", 1, note_order, &names[1]);
    bay_call_roots(call, note_order, &names[2]);
}

static void several_questions_are_open_at_once(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_three, false, "2025-11-25", EVERY_QUESTION);
    rig_send(&on, "tools/call", CALL_T, "");
    int at = on.way.events - 3;
    assert_has(on.way.event[at], "elicitation/create");
    assert_has(on.way.event[at + 1], "sampling/createMessage");
    assert_has(on.way.event[at + 2], "roots/list");
    answer_event(&on, at + 2, "\"result\":{\"roots\":[]}");
    answer_event(&on, at, "\"result\":{\"action\":\"accept\"}");
    answer_event(&on, at, "\"result\":{\"action\":\"accept\"}"); /* again: dropped */
    answer_event(&on, at + 1, "\"error\":{\"code\":-1,\"message\":\"no\"}");
    assert_has(last_event(&on.way), "\"text\":\"cab\"");
    rig_stop(&on);
}

/* The handler ends the call while others are open: the client is told, nobody else hears of it. */
static void end_with_first(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    several.order[strlen(several.order)] = *(const char *)user;
    bay_call_reply(call, several.order);
}

static void race(bay_call *call, void *user)
{
    (void)user;
    memset(&several, 0, sizeof(several));
    bay_call_roots(call, end_with_first, &names[0]);
    bay_call_roots(call, end_with_first, &names[1]);
}

static void the_end_of_a_call_ends_its_questions(void **state)
{
    (void)state;
    rig on;
    start(&on, race, false, "2025-11-25", EVERY_QUESTION);
    rig_send(&on, "tools/call", CALL_T, "");
    int at = on.way.events - 2;
    answer_event(&on, at + 1, "\"result\":{\"roots\":[]}");
    assert_has(last_event(&on.way), "\"text\":\"b\"");
    assert_has(on.way.event[on.way.events - 2], "notifications/cancelled");
    int events = on.way.events;
    answer_event(&on, at, "\"result\":{\"roots\":[]}"); /* too late */
    assert_int_equal(on.way.events, events);
    assert_string_equal(several.order, "b");
    assert_int_equal(on.server->calls_under_way, 0);
    /* In rounds both answers are there; the second is nobody's any more. */
    rig_client_with(&on, "2026-07-28", EVERY_QUESTION);
    const char *said = rig_ask(&on, "tools/call", CALL_T);
    said = next_round(&on, "tools/call", CALL_T, "{\"1\":{\"roots\":[]},\"2\":{\"roots\":[]}}",
                      state_in(said));
    assert_has(said, "\"text\":\"a\"");
    assert_string_equal(several.order, "a");
    rig_stop(&on);
}

static void ask_again(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    if (seen.runs < 20) {
        bay_call_roots(call, ask_again, NULL);
    } else {
        bay_call_reply(call, "enough");
    }
}

static void ask_and_ask(bay_call *call, void *user)
{
    (void)user;
    bay_call_roots(call, ask_again, NULL);
}

static void one_question_leads_to_another(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_and_ask, false, "2025-11-25", EVERY_QUESTION);
    rig_send(&on, "tools/call", CALL_T, "");
    while (strstr(last_event(&on.way), "roots/list") != NULL) {
        answer_event(&on, on.way.events - 1, "\"result\":{\"roots\":[]}");
    }
    assert_has(last_event(&on.way), "enough");
    assert_int_equal(seen.runs, 20);
    /* Without anybody to ask it goes on as far, and at once. */
    memset(&seen, 0, sizeof(seen));
    rig_client(&on, "2025-11-25");
    assert_has(rig_ask(&on, "tools/call", CALL_T), "enough");
    assert_int_equal(seen.runs, 20);
    rig_stop(&on);
}

static void count_answer(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    several.left += bay_answer_error(answer) == BAY_ERR_LIMIT;
    if (seen.runs == CALL_MAX_QUESTIONS + 2) {
        bay_call_reply(call, "all");
    }
}

static void ask_too_much(bay_call *call, void *user)
{
    (void)user;
    memset(&several, 0, sizeof(several));
    for (int i = 0; i < CALL_MAX_QUESTIONS + 2; i++) {
        bay_call_roots(call, count_answer, NULL);
    }
}

static void open_questions_are_bounded(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_too_much, false, "2025-11-25", "");
    assert_has(rig_ask(&on, "tools/call", CALL_T), "all");
    assert_int_equal(several.left, 2);
    rig_stop(&on);
}

/* ---- keys */

static void ask_twice_under_one_key(bay_call *call, void *user)
{
    (void)user;
    memset(&several, 0, sizeof(several));
    several.left = 2;
    bay_call_question_key(call, "k");
    bay_call_roots(call, note_order, &names[0]);
    bay_call_question_key(call, "k");
    bay_call_roots(call, see_and_reply, NULL);
}

static void a_key_is_used_once(void **state)
{
    (void)state;
    for (int era = 0; era < 2; era++) {
        rig on;
        start(&on, ask_twice_under_one_key, false, era == 0 ? "2025-11-25" : "2026-07-28",
              EVERY_QUESTION);
        rig_send(&on, "tools/call", CALL_T, "");
        assert_has(last_event(&on.way), "heard");
        assert_int_equal(seen.err, BAY_ERR_DUPLICATE);
        rig_stop(&on);
    }
}

static void ask_under_odd_keys(bay_call *call, void *user)
{
    (void)user;
    char key[CALL_MAX_KEY + 2];
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    bay_call_question_key(call, key); /* too long: the number stands */
    bay_call_roots(call, see_and_reply, NULL);
    bay_call_question_key(call, NULL);
    bay_call_roots(call, see_and_reply, NULL);
    bay_call_question_key(call, "a \"b\"");
    bay_call_roots(call, see_and_reply, NULL);
    bay_call_roots(call, see_and_reply, NULL);
}

static void questions_have_keys_or_numbers(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_under_odd_keys, false, "2026-07-28", EVERY_QUESTION);
    const char *said = rig_ask(&on, "tools/call", CALL_T);
    assert_has(said, "\"inputRequests\":{\"1\":{\"method\":\"roots/list\",\"params\":{}},\"2\":{");
    assert_has(said, "},\"a \\\"b\\\"\":{");
    assert_has(said, "},\"4\":{");
    rig_stop(&on);
}

/* ---- the end comes from elsewhere */

static void a_cancel_ends_the_question(void **state)
{
    (void)state;
    for (int hang_up = 0; hang_up < 2; hang_up++) {
        rig on;
        start(&on, ask_name, false, "2025-06-18", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        int events = on.way.events;
        if (hang_up == 0) {
            rig_say(&on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                         "\"requestId\":11}}");
            assert_int_equal(on.way.events, events); /* no answer to what was cancelled */
        } else {
            rig_hang_up(&on);
        }
        assert_int_equal(seen.runs, 1);
        assert_int_equal(seen.err, BAY_ERR_CANCELLED);
        assert_true(seen.was_cancelled);
        assert_int_equal(on.server->calls_under_way, 0);
        rig_stop(&on);
    }
}

static void ask_after_the_end(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "done");
    bay_call_roots(call, see_and_reply, NULL);
}

static void nothing_is_asked_after_the_end(void **state)
{
    (void)state;
    for (int era = 0; era < 2; era++) {
        rig on;
        start(&on, ask_after_the_end, false, era == 0 ? "2025-11-25" : "2026-07-28",
              EVERY_QUESTION);
        int events = on.way.events;
        rig_send(&on, "tools/call", CALL_T, "");
        assert_int_equal(on.way.events, events + 1);
        assert_has(last_event(&on.way), "done");
        assert_int_equal(seen.runs, 0);
        rig_stop(&on);
    }
}

static void see_and_be_silent(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
}

static void ask_then_be_silent(bay_call *call, void *user)
{
    (void)user;
    bay_call_roots(call, see_and_be_silent, NULL);
}

static void an_answer_without_an_end_is_an_error(void **state)
{
    (void)state;
    rig on;
    start(&on, ask_then_be_silent, false, "2025-11-25", EVERY_QUESTION);
    rig_send(&on, "tools/call", CALL_T, "");
    answer_event(&on, on.way.events - 1, "\"result\":{\"roots\":[]}");
    assert_has(last_event(&on.way), "The handler returned without an answer");
    rig_client(&on, "2025-11-25");
    assert_has(rig_ask(&on, "tools/call", CALL_T), "The handler returned without an answer");
    rig_stop(&on);
}

/* ---- other threads */

static struct {
    bay_call *call;
    atomic_int runs;
    atomic_bool is_there;
} desk;

static void hand_over(bay_call *call, void *user)
{
    (void)user;
    desk.call = bay_call_defer(call);
    atomic_store(&desk.is_there, true);
}

static void end_there(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    atomic_fetch_add(&desk.runs, 1);
    bay_call_reply(call, bay_answer_action(answer) == BAY_ACTION_ACCEPT ? "yes" : "no");
}

static void ask_elsewhere(void *argument)
{
    bay_call_question_key(argument, "k");
    bay_call_elicit_schema(argument, "m", "{\"type\":\"object\"}", end_there, NULL);
}

static void a_deferred_call_asks_from_its_thread(void **state)
{
    (void)state;
    rig on;
    net_thread thread;
    memset(&desk, 0, sizeof(desk));
    start(&on, hand_over, false, "2025-06-18", "\"elicitation\":{}");
    rig_send(&on, "tools/call", CALL_T, "");
    int events = on.way.events;
    assert_int_equal(net_thread_start(&thread, ask_elsewhere, desk.call), BAY_OK);
    RIG_UNTIL(&on, on.way.events == events + 1);
    net_thread_join(&thread);
    answer_event(&on, events, "\"result\":{\"action\":\"accept\"}");
    assert_has(last_event(&on.way), "\"text\":\"yes\"");
    assert_int_equal(atomic_load(&desk.runs), 1);
    rig_stop(&on);
}

static void note_the_end(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    see(call, answer);
    atomic_fetch_add(&desk.runs, 1);
}

/* A thread that ends its call itself, once it learns that nobody waits for it. */
static void ask_and_watch(void *argument)
{
    bay_call_question_key(argument, "k");
    bay_call_elicit_schema(argument, "m", "{\"type\":\"object\"}", note_the_end, NULL);
    while (!bay_call_is_cancelled(argument) || atomic_load(&desk.runs) == 0) {
    }
    /* What it carries can still be read; what it says reaches nobody. */
    assert_true(str_eq(bay_call_arguments(argument), STR("{\"a\":1}")));
    bay_call_progress(argument, 1, 2, "late");
    bay_call_reply(argument, "late");
}

static void a_deferred_call_that_asks_by_rounds_is_over(void **state)
{
    (void)state;
    void (*const threads[])(void *argument) = {ask_and_watch, ask_elsewhere};
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        rig on;
        net_thread thread;
        memset(&desk, 0, sizeof(desk));
        start(&on, hand_over, false, "2026-07-28", "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "\"progressToken\":1");
        assert_int_equal(net_thread_start(&thread, threads[i], desk.call), BAY_OK);
        RIG_UNTIL(&on, on.server->calls_under_way == 0);
        net_thread_join(&thread);
        assert_int_equal(on.way.events, 1);
        assert_has(last_event(&on.way), "\"resultType\":\"input_required\"");
        assert_int_equal(atomic_load(&desk.runs), 1); /* whoever goes on hears of the end */
        assert_int_equal(seen.err, i == 0 ? BAY_ERR_CANCELLED : BAY_OK);
        char params[4096];
        (void)snprintf(params, sizeof(params),
                       CALL_T ",\"requestState\":\"%s\",\"inputResponses\":{\"k\":{\"action\":"
                              "\"accept\"}}",
                       state_in(last_event(&on.way)));
        rig_send(&on, "tools/call", params, "");
        assert_int_equal(net_thread_start(&thread, ask_elsewhere, desk.call), BAY_OK);
        RIG_UNTIL(&on, on.server->calls_under_way == 0);
        net_thread_join(&thread);
        assert_has(last_event(&on.way), "\"text\":\"yes\"");
        assert_int_equal(atomic_load(&desk.runs), 2);
        rig_stop(&on);
    }
}

/* A thread asks and the client goes at the same time. */
static void the_client_goes_while_a_thread_asks(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        rig on;
        net_thread thread;
        memset(&desk, 0, sizeof(desk));
        start(&on, hand_over, round % 3 == 0, round % 2 == 0 ? "2025-06-18" : "2026-07-28",
              "\"elicitation\":{}");
        rig_send(&on, "tools/call", CALL_T, "");
        RIG_UNTIL(&on, atomic_load(&desk.is_there));
        assert_int_equal(
            net_thread_start(&thread, round % 4 < 2 ? ask_elsewhere : ask_and_watch, desk.call),
            BAY_OK);
        rig_hang_up(&on);
        RIG_UNTIL(&on, on.server->calls_under_way == 0);
        net_thread_join(&thread);
        assert_int_equal(atomic_load(&desk.runs), 1);
        rig_stop(&on);
    }
}

/* ---- what a call says of its client */

static void tell_client(bay_call *call, void *user)
{
    (void)user;
    bay_str info = bay_call_client_info(call);
    bay_str meta = bay_call_meta(call);
    bay_call_replyf(call, "%d%d%d%d %.*s %.*s %.*s", bay_call_client_has(call, "elicitation"),
                    bay_call_client_has(call, "elicitation.url"),
                    bay_call_client_has(call, "extensions.io.modelcontextprotocol/tasks"),
                    bay_call_client_has(call, "roots"), BAY_STR(bay_call_principal(call)),
                    BAY_STR(info), BAY_STR(meta));
}

static void a_call_knows_its_client(void **state)
{
    (void)state;
    rig on;
    start(&on, tell_client, false, "2025-11-25",
          "\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    assert_has(rig_ask_meta(&on, "tools/call", CALL_T, "\"x\":1"),
               "1010  {\\\"name\\\":\\\"c\\\",\\\"version\\\":\\\"1\\\"} {\\\"x\\\":1}");
    rig_client_with(&on, "2026-07-28", "\"elicitation\":{\"url\":{}},\"roots\":{}");
    assert_has(rig_ask(&on, "tools/call", CALL_T), "\"1101   {\\\"io.modelcontextprotocol");
    rig_stop(&on);
}

static void say_that_it_is_complete(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_complete(call, "e-\"1\"");
    bay_call_reply(call, "done");
}

static void a_page_is_said_to_be_done(void **state)
{
    (void)state;
    rig on;
    start(&on, say_that_it_is_complete, false, "2025-11-25", "");
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        int events = on.way.events;
        rig_send(&on, "tools/call", CALL_T, "");
        bool is_known = strcmp(all_revisions[i], "2025-11-25") == 0;
        assert_int_equal(on.way.events, events + 1 + is_known);
        if (is_known) {
            assert_has(on.way.event[events],
                       "\"method\":\"notifications/elicitation/complete\",\"params\":{"
                       "\"elicitationId\":\"e-\\\"1\\\"\"}");
        }
    }
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_asked_only_what_it_declared),
        cmocka_unit_test(what_is_no_question_is_not_asked),
        cmocka_unit_test(bad_answers_are_no_answers),
        cmocka_unit_test(a_form_that_breaks_its_schema_is_refused),
        cmocka_unit_test(a_question_times_out),
        cmocka_unit_test(a_session_is_asked_and_answers),
        cmocka_unit_test(a_client_is_asked_by_rounds),
        cmocka_unit_test(every_kind_is_asked_in_both_eras),
        cmocka_unit_test(several_questions_are_open_at_once),
        cmocka_unit_test(the_end_of_a_call_ends_its_questions),
        cmocka_unit_test(one_question_leads_to_another),
        cmocka_unit_test(open_questions_are_bounded),
        cmocka_unit_test(a_key_is_used_once),
        cmocka_unit_test(questions_have_keys_or_numbers),
        cmocka_unit_test(a_cancel_ends_the_question),
        cmocka_unit_test(nothing_is_asked_after_the_end),
        cmocka_unit_test(an_answer_without_an_end_is_an_error),
        cmocka_unit_test(a_deferred_call_asks_from_its_thread),
        cmocka_unit_test(a_deferred_call_that_asks_by_rounds_is_over),
        cmocka_unit_test(the_client_goes_while_a_thread_asks),
        cmocka_unit_test(a_call_knows_its_client),
        cmocka_unit_test(a_page_is_said_to_be_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
