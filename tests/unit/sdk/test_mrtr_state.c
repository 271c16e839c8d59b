/* Rounds with a client of the stateless era: what it carries for us comes back as it went out, from
 * the same caller, for the same call, in time and once; everything else is refused before a handler
 * runs. */
#include "unit/sdk/question_bench.h"

#define OBJECT "{\"type\":\"object\"}"
#define YES "{\"action\":\"accept\"}"
#define CALL_T "\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":[1.0,\"x\"]}"

static int runs; /* of handlers */

static void reply_with_state(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str state = bay_call_remembered(call);
    bay_call_replyf(call, "action %d, state \"%.*s\"", (int)bay_answer_action(answer),
                    BAY_STR(state));
}

static void ask_once(bay_call *call, void *user)
{
    (void)user;
    runs++;
    if (bay_call_remembered(call).len == 0) {
        bay_call_remember(call, "st\1te", 5);
    }
    bay_call_question_key(call, "k");
    bay_call_elicit_schema(call, "m", OBJECT, reply_with_state, NULL);
}

static uint64_t now = 1000000;

static uint64_t fake_clock(void)
{
    return now;
}

static void begin(rig *on, bay_handler_fn handler)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, handler, NULL);
    bay_server_tool_schema(server, "u", NULL, NULL, handler, NULL);
    bay_server_resource(server, "x:a", "a", NULL, NULL, handler, NULL);
    bay_server_resource(server, "x:b", "b", NULL, NULL, handler, NULL);
    bay_server_prompt(server, "t", NULL,
                      (const bay_field[]){{.name = "p", .type = BAY_TYPE_STRING}, {0}}, handler,
                      NULL);
    bay_server_completion(server, handler, NULL);
    runs = 0;
    rig_start(on, server);
    sdk_mrtr_state_of(server)->clock = fake_clock;
    rig_client_with(on, "2026-07-28", EVERY_QUESTION);
}

/* A state that the client was given for CALL_T; static storage. */
static const char *take_state(rig *on)
{
    static char state[8192];
    (void)snprintf(state, sizeof(state), "%s", state_in(rig_ask(on, "tools/call", CALL_T)));
    return state;
}

static const char *retry(rig *on, const char *params, const char *state)
{
    return next_round(on, "tools/call", params, "{\"k\":" YES "}", state);
}

#define REFUSED "\"error\":{\"code\":-32602,\"message\":\"The requestState "

static void check_refused(rig *on, const char *said, const char *why)
{
    int before = runs;
    assert_has(said, REFUSED);
    assert_has(said, why);
    assert_int_equal(runs, before);
    assert_int_equal(on->server->calls_under_way, 0);
}

/* ---- what is refused */

static void a_changed_state_is_refused(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    char good[8192];
    char bad[8192];
    (void)snprintf(good, sizeof(good), "%s", take_state(&on));
    size_t len = strlen(good);
    assert_true(len > 90);
    runs = 0;
    for (size_t at = 0; at < len; at += len / 40 + 1) {
        rig_client_with(&on, "2026-07-28", EVERY_QUESTION); /* room for more events */
        memcpy(bad, good, len + 1);
        bad[at] = bad[at] == 'A' ? 'B' : 'A';
        check_refused(&on, retry(&on, CALL_T, bad), "is not one that this server gave");
    }
    static const char *const others[] = {"", "A", "AAAA", "=", " ", "\\u0000", "-TAMPERED"};
    rig_client_with(&on, "2026-07-28", EVERY_QUESTION);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_refused(&on, retry(&on, CALL_T, others[i]), "is not one that");
        (void)snprintf(bad, sizeof(bad), "%s%s", good, others[i]);
        if (others[i][0] != '\0') {
            check_refused(&on, retry(&on, CALL_T, bad), "is not one that");
        }
    }
    memcpy(bad, good, len);
    bad[len - 4] = '\0';
    check_refused(&on, retry(&on, CALL_T, bad), "is not one that");
    assert_int_equal(runs, 0);
    assert_has(retry(&on, CALL_T, good), "action 1, state \\\"st\\u0001te\\\""); /* none spent it */
    rig_stop(&on);
}

static void a_state_is_for_one_call_only(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    char mine[8192];
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    static const char *const others[] = {
        "\"name\":\"u\",\"arguments\":{\"a\":1,\"b\":[1.0,\"x\"]}",
        "\"name\":\"t\",\"arguments\":{\"a\":2,\"b\":[1.0,\"x\"]}",
        "\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":[\"x\",1.0]}",
        "\"name\":\"t\",\"arguments\":{\"a\":1}",
        "\"name\":\"t\",\"arguments\":{}",
        "\"name\":\"t\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_refused(&on, retry(&on, others[i], mine), "is not one that");
    }
    check_refused(&on, next_round(&on, "prompts/get", "\"name\":\"t\"", NULL, mine), "is not one");
    check_refused(&on, next_round(&on, "resources/read", "\"uri\":\"x:a\"", NULL, mine),
                  "is not one");
    /* The same arguments, written another way. */
    assert_has(
        retry(&on, "\"name\":\"\\u0074\",\"arguments\":{ \"b\":[1, \"\\u0078\"],\"a\":1.0}", mine),
        "action 1");
    rig_stop(&on);
}

static void a_state_expires(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    char mine[8192];
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    now += 600000;
    check_refused(&on, retry(&on, CALL_T, mine), "has expired");
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    now += 599999;
    assert_has(retry(&on, CALL_T, mine), "action 1");
    rig_stop(&on);
    begin(&on, ask_once);
    bay_server_set(on.server, BAY_SERVER_SETTING_STATE_TTL_MS, 1000);
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    now += 1000;
    check_refused(&on, retry(&on, CALL_T, mine), "has expired");
    rig_stop(&on);
}

static void a_state_is_good_once(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    char mine[8192];
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    /* Not answered: asked again, under a new state; the old one is spent all the same. */
    const char *said = next_round(&on, "tools/call", CALL_T, "{}", mine);
    assert_has(said, "\"resultType\":\"input_required\"");
    char next[8192];
    (void)snprintf(next, sizeof(next), "%s", state_in(said));
    assert_string_not_equal(mine, next);
    check_refused(&on, retry(&on, CALL_T, mine), "was used before");
    assert_has(retry(&on, CALL_T, next), "action 1");
    check_refused(&on, retry(&on, CALL_T, next), "was used before");
    rig_stop(&on);
}

/* Pages of numbers come and go; what is on them stays refused as long as it has not expired. */
static void used_states_are_remembered_until_they_expire(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    rounds *all = sdk_mrtr_state_of(on.server);
    char kept[8][2048];
    for (int i = 0; i < 8; i++) {
        all->sequence = (uint64_t)i * ROUNDS_PAGE_BITS + 7;
        (void)snprintf(kept[i], sizeof(kept[i]), "%s", take_state(&on));
        assert_has(retry(&on, CALL_T, kept[i]), "action 1");
        now += 1000;
    }
    assert_int_equal(all->pages.len, 8);
    for (int i = 0; i < 8; i++) {
        check_refused(&on, retry(&on, CALL_T, kept[i]), "was used before");
    }
    now += 600000 - 4001; /* four pages are over */
    char fresh[2048];
    all->sequence = UINT64_C(1) << 40;
    (void)snprintf(fresh, sizeof(fresh), "%s", take_state(&on));
    assert_has(retry(&on, CALL_T, fresh), "action 1");
    assert_int_equal(all->pages.len, 8 - 4 + 1);
    for (int i = 0; i < 8; i++) {
        check_refused(&on, retry(&on, CALL_T, kept[i]), i < 4 ? "has expired" : "was used before");
    }
    /* No more pages: nothing is taken that could not be remembered. */
    all->pages.max = all->pages.len;
    all->sequence = UINT64_C(1) << 41;
    (void)snprintf(fresh, sizeof(fresh), "%s", take_state(&on));
    runs = 0;
    assert_has(retry(&on, CALL_T, fresh), "{\"code\":-32603,\"message\":\"The server has no room");
    assert_int_equal(runs, 0);
    rig_stop(&on);
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    static const struct {
        const char *params;
        const char *text;
    } cases[] = {
        {"\"inputResponses\":null", "inputResponses must be an object"},
        {"\"inputResponses\":[]", "inputResponses must be an object"},
        {"\"inputResponses\":\"x\"", "inputResponses must be an object"},
        {"\"requestState\":1", "requestState must be a string"},
        {"\"requestState\":null", "requestState must be a string"},
        {"\"requestState\":{}", "requestState must be a string"},
        {"\"inputResponses\":{},\"inputResponses\":{}", "stands twice"},
        {"\"requestState\":\"\",\"requestState\":\"\"", "stands twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char params[512];
        (void)snprintf(params, sizeof(params), CALL_T ",%s", cases[i].params);
        const char *said = rig_ask(&on, "tools/call", params);
        assert_has(said, "\"error\":{\"code\":-32602,");
        assert_has(said, cases[i].text);
    }
    assert_int_equal(runs, 0);
    rig_stop(&on);
}

/* Another caller, over HTTP where callers have names. */
static const char *post_as(rig *on, wire *through, const char *principal, const char *state)
{
    char body[16384];
    char kept[8192];
    (void)snprintf(kept, sizeof(kept), "%s", state != NULL ? state : "");
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"t\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                   "\"io.modelcontextprotocol/clientCapabilities\":{" EVERY_QUESTION "}}%s%s%s}}",
                   state != NULL ? ",\"inputResponses\":{\"k\":" YES "},\"requestState\":\"" : "",
                   kept, state != NULL ? "\"" : "");
    bench_http_as(&on->on, through, "POST", call_fields, body, principal);
    assert_int_equal(through->answers, 1);
    return through->body;
}

static void a_state_is_for_one_caller_only(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    wire first;
    wire others[3];
    const char *const callers[] = {"bob", "", "alice2"};
    char mine[8192];
    (void)snprintf(mine, sizeof(mine), "%s", state_in(post_as(&on, &first, "alice", NULL)));
    wire_fini(&first);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        assert_has(post_as(&on, &others[i], callers[i], mine), "is not one that");
        wire_fini(&others[i]);
    }
    assert_has(post_as(&on, &first, "alice", mine), "action 1");
    wire_fini(&first);
    rig_stop(&on);
}

/* ---- keys of the seal */

static void a_key_survives_the_process(void **state)
{
    (void)state;
    static const char first[32] = "first";
    static const char second[32] = "second";
    char mine[8192];
    rig on;
    begin(&on, ask_once);
    bay_server_key(on.server, first, sizeof(first));
    (void)snprintf(mine, sizeof(mine), "%s", take_state(&on));
    rig_stop(&on);
    begin(&on, ask_once); /* another process, with another key: not known */
    check_refused(&on, retry(&on, CALL_T, mine), "is not one that");
    rig_stop(&on);
    begin(&on, ask_once);
    bay_server_key(on.server, first, sizeof(first));
    bay_server_key(on.server, second, sizeof(second));
    assert_has(retry(&on, CALL_T, mine), "action 1");
    check_refused(&on, retry(&on, CALL_T, mine), "was used before");
    rig_stop(&on);
}

static void a_bad_key_is_an_error_of_registration(void **state)
{
    (void)state;
    bay_diag diag = {0};
    bay_server *server = bay_server_new("s", "1");
    bay_server_key(NULL, "", 0);
    bay_server_key(server, "short", 5);
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_string_equal(diag.text, "bay_server_key: a key has 32 bytes, not 5");
    bay_server_free(server);
}

/* ---- several rounds */

static void tell_all(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str colour = bay_answer_str(answer, "colour");
    bay_str state = bay_call_remembered(call);
    bay_call_replyf(call, "%.*s likes %.*s", BAY_STR(state), BAY_STR(colour));
}

static void ask_colour(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str name = bay_answer_str(answer, "name");
    bay_call_remember(call, name.at, name.len);
    bay_call_elicit_schema(
        call, "Colour?",
        "{\"type\":\"object\",\"required\":[\"colour\"],\"properties\":{\"colour\":{"
        "\"enum\":[\"red\",\"blue\"]}}}",
        tell_all, NULL);
}

static void ask_name_first(bay_call *call, void *user)
{
    (void)user;
    runs++;
    bay_call_elicit_schema(call, "Name?",
                           "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{"
                           "\"type\":\"string\"}}}",
                           ask_colour, NULL);
}

#define FORM(content) "{\"action\":\"accept\",\"content\":" content "}"

static void one_round_follows_the_other(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        const char *params;
    } cases[] = {
        {"tools/call", CALL_T},
        {"prompts/get", "\"name\":\"t\",\"arguments\":{\"p\":\"v\"}"},
        {"resources/read", "\"uri\":\"x:a\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig on;
        begin(&on, ask_name_first);
        const char *said = rig_ask(&on, cases[i].method, cases[i].params);
        assert_has(said, "\"inputRequests\":{\"1\":{\"method\":\"elicitation/create\"");
        assert_lacks(said, "ttlMs"); /* an interim result is never kept */
        said = next_round(&on, cases[i].method, cases[i].params,
                          "{\"1\":" FORM("{\"name\":\"Al\"}") ",\"unknown\":7,\"2\":{}}",
                          state_in(said));
        assert_has(said, "\"inputRequests\":{\"2\":{\"method\":\"elicitation/create\"");
        assert_lacks(said, "Name?");
        /* The first answer came with the state; what the client says of it now does not count. */
        said = next_round(
            &on, cases[i].method, cases[i].params,
            "{\"1\":" FORM("{\"name\":\"Bo\"}") ",\"2\":" FORM("{\"colour\":\"red\"}") "}",
            state_in(said));
        assert_has(said, "Al likes red");
        assert_has(said, "\"resultType\":\"complete\"");
        assert_int_equal(runs, 3);
        rig_stop(&on);
    }
}

static void wrong_answers_are_asked_for_again(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "{\"wrong\":" FORM("{\"name\":\"Al\"}") "}",
        "{\"1\":12345}",
        "{\"1\":null}",
        "{\"1\":{}}",
        "{\"1\":{\"action\":\"perhaps\"}}",
        "{\"1\":{\"action\":\"accept\"}}",
        "{\"1\":" FORM("[]") "}",
        "{\"1\":" FORM("{\"name\":7}") "}",
        "{\"1\":{\"roots\":[]}}",
    };
    rig on;
    begin(&on, ask_name_first);
    const char *said = rig_ask(&on, "tools/call", CALL_T);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        said = next_round(&on, "tools/call", CALL_T, wrong[i], state_in(said));
        assert_has(said, "\"inputRequests\":{\"1\":{\"method\":\"elicitation/create\"");
        const char *stateless = next_round(&on, "tools/call", CALL_T, wrong[i], NULL);
        assert_has(stateless, "\"inputRequests\":{\"1\":{\"method\":\"elicitation/create\"");
        said = stateless;
    }
    /* Without the state an answer is an answer, too: it is held against the same form. */
    said = next_round(&on, "tools/call", CALL_T, "{\"1\":" FORM("{\"name\":\"Al\"}") "}", NULL);
    assert_has(said, "Colour?");
    said = next_round(&on, "tools/call", CALL_T, "{\"2\":" FORM("{\"colour\":\"green\"}") "}",
                      state_in(said));
    assert_has(said, "Colour?");
    assert_has(next_round(&on, "tools/call", CALL_T, "{\"2\":" FORM("{\"colour\":\"blue\"}") "}",
                          state_in(said)),
               "Al likes blue");
    rig_stop(&on);
}

static void rounds_are_counted(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_once);
    const char *said = rig_ask(&on, "tools/call", CALL_T);
    for (int i = 1; i < ROUNDS_MAX; i++) {
        said = next_round(&on, "tools/call", CALL_T, NULL, state_in(said));
        assert_has(said, "input_required");
    }
    said = next_round(&on, "tools/call", CALL_T, NULL, state_in(said));
    assert_has(said, "{\"code\":-32603,\"message\":\"The call asked its client for more than can");
    rig_stop(&on);
}

/* ---- the handler's own bytes */

static void keep_much(bay_call *call, void *user)
{
    (void)user;
    static char bytes[CALL_MAX_STATE + 1];
    memset(bytes, 's', sizeof(bytes));
    bay_call_remember(call, bytes, sizeof(bytes)); /* too much: nothing is kept */
    assert_int_equal(bay_call_remembered(call).len, 0);
    bay_call_remember(call, bytes, CALL_MAX_STATE);
    assert_int_equal(bay_call_remembered(call).len, CALL_MAX_STATE);
    bay_call_roots(call, reply_with_state, NULL);
}

static void the_state_of_a_handler_is_bounded(void **state)
{
    (void)state;
    rig on;
    begin(&on, keep_much);
    char mine[48 * 1024];
    (void)snprintf(mine, sizeof(mine), "%s", state_in(rig_ask(&on, "tools/call", CALL_T)));
    assert_true(strlen(mine) > CALL_MAX_STATE * 4 / 3);
    assert_has(next_round(&on, "tools/call", CALL_T, "{\"1\":{\"roots\":[]}}", mine), "sssssss");
    rig_stop(&on);
}

static void go_on(bay_call *call, const bay_answer *answer, void *user)
{
    (void)call;
    (void)user;
    assert_int_equal(bay_answer_error(answer), BAY_OK);
}

static void ask_for_much(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_schema(call, "m", OBJECT, reply_with_state, NULL);
    bay_call_roots(call, go_on, NULL);
}

/* More than one sealed text may hold: the call ends with an error, not with half of it. */
static void what_is_carried_is_bounded(void **state)
{
    (void)state;
    rig on;
    begin(&on, ask_for_much);
    size_t len = 300 * 1024;
    char *body = malloc(len + 1024);
    assert_non_null(body);
    int at = snprintf(body, 1024,
                      "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
                      "\"name\":\"u\",\"inputResponses\":{\"2\":{\"roots\":[{\"uri\":\"");
    memset(body + at, 'u', len);
    (void)snprintf(body + at + len, 512,
                   "\"}]}},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                   "\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{},\"elicitation\":{"
                   "}}}}}");
    rig_say(&on, body);
    free(body);
    assert_has(last_event(&on.way),
               "{\"code\":-32603,\"message\":\"The call asked its client for more than can be");
    rig_stop(&on);
}

/* ---- who may be asked by rounds */

static void complete_by_asking(bay_call *call, void *user)
{
    (void)user;
    bay_call_roots(call, reply_with_state, NULL);
}

static void see_unsupported(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    assert_int_equal(bay_answer_error(answer), BAY_ERR_UNSUPPORTED);
    bay_result *result = bay_result_new(call);
    bay_result_value(result, "v");
    bay_call_finish(call, result);
}

static void ask_in_completion(bay_call *call, void *user)
{
    (void)user;
    bay_call_roots(call, see_unsupported, NULL);
}

/* mcp 2026-07-28 basic/patterns/mrtr: no other request may be answered so. */
static void completions_do_not_ask(void **state)
{
    (void)state;
    rig on;
    bay_server *server = bay_server_new("s", "1");
    bay_server_prompt(server, "p", NULL,
                      (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING}, {0}},
                      complete_by_asking, NULL);
    bay_server_completion(server, ask_in_completion, NULL);
    rig_start(&on, server);
    rig_client_with(&on, "2026-07-28", EVERY_QUESTION);
    assert_has(rig_ask(&on, "completion/complete",
                       "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{\"name\":"
                       "\"a\",\"value\":\"\"},\"inputResponses\":7,\"requestState\":7"),
               "\"values\":[\"v\"]");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_state_is_refused),
        cmocka_unit_test(a_state_is_for_one_call_only),
        cmocka_unit_test(a_state_is_for_one_caller_only),
        cmocka_unit_test(a_state_expires),
        cmocka_unit_test(a_state_is_good_once),
        cmocka_unit_test(used_states_are_remembered_until_they_expire),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(a_key_survives_the_process),
        cmocka_unit_test(a_bad_key_is_an_error_of_registration),
        cmocka_unit_test(one_round_follows_the_other),
        cmocka_unit_test(wrong_answers_are_asked_for_again),
        cmocka_unit_test(rounds_are_counted),
        cmocka_unit_test(the_state_of_a_handler_is_bounded),
        cmocka_unit_test(what_is_carried_is_bounded),
        cmocka_unit_test(completions_do_not_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
