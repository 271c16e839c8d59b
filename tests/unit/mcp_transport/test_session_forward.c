/* Exchanges that arrive on one loop and belong to another's session. The first router ("near") and
 * the clients run on the test's thread, the owner of the sessions ("far") on a thread of its own;
 * what the far service holds is only touched there. */
#include <pthread.h>
#include <stdatomic.h>

#include "mcp/persistence.h"
#include "support/people.h"
#include "support/server_rig.h"

PEOPLE_FROM_THE_START

#define EVENT_STREAM "Accept: text/event-stream\r\n"

typedef struct pair {
    server_rig near;
    server_rig far;
    pthread_t thread;
    bool is_running;
    char session[64]; /* of the far engine */
} pair;

static void *run_far(void *argument)
{
    pair *self = argument;
    loop_run(self->far.loop);
    return NULL;
}

static void stop_far(pair *self)
{
    if (self->is_running) {
        loop_stop(self->far.loop);
        assert_int_equal(pthread_join(self->thread, NULL), 0);
        self->is_running = false;
    }
}

/* ---- questions to the far thread */

typedef struct question {
    int (*ask)(server_rig *far);
    server_rig *far;
    int answer;
    atomic_bool is_answered;
} question;

static void answer_question(void *argument)
{
    question *self = argument;
    self->answer = self->ask(self->far);
    atomic_store(&self->is_answered, true);
}

static int ask(pair *self, int (*what)(server_rig *far))
{
    question one = {.ask = what, .far = &self->far};
    assert_int_equal(loop_post(self->far.loop, answer_question, &one), BAY_OK);
    TURN_UNTIL(self->near.loop, (void)0, atomic_load(&one.is_answered));
    return one.answer;
}

static int held(server_rig *far)
{
    return (int)far->service.held_count;
}

static int calls(server_rig *far)
{
    return far->service.calls;
}

static int sessions(server_rig *far)
{
    return (int)mcp_server_session_count(far->service.engine);
}

static int cancelled(server_rig *far)
{
    return far->service.cancelled;
}

static int drained(server_rig *far)
{
    return far->service.drained;
}

static int is_flooding(server_rig *far)
{
    return far->service.flooding != NULL;
}

static int flooded(server_rig *far)
{
    return far->service.flooded;
}

static int finish(server_rig *far)
{
    service_finish(&far->service);
    return 0;
}

static int progress(server_rig *far)
{
    static int steps;
    char members[32];
    int len = snprintf(members, sizeof(members), "\"progress\":%d", ++steps);
    return mcp_request_progress(far->service.held[0], steps, (bay_str){members, (size_t)len});
}

static int change_tools(server_rig *far)
{
    mcp_server_changed(far->service.engine, MCP_CHANGE_TOOLS);
    return 0;
}

static int close_streams(server_rig *far)
{
    mcp_http_router_close_streams(far->router);
    return 0;
}

/* ---- set-up */

static atomic_int homes_asked;
static uint32_t near_alive_ms;
static uint32_t near_total_ms;

/* Everybody is the same person. */
static front_verdict identify(void *user, const front_request *request,
                              const auth_principal **out_principal, front_refusal *out)
{
    (void)user;
    (void)request;
    (void)out;
    *out_principal = principal_ref(person("alice"));
    return FRONT_GO;
}

/* What a client brings back names the loop by a digit: "home 1". */
static bool find_home(void *user, bay_str token, uint32_t *out_worker)
{
    (void)user;
    homes_asked++;
    if (token.len != 6 || memcmp(token.at, "home ", 5) != 0) {
        return false;
    }
    *out_worker = (uint32_t)(token.at[5] - '0');
    return true;
}

/* The far loop finds the sessions that are called kept, in a later turn. */
typedef struct search {
    mcp_server *engine;
    char id[64];
    void (*done)(void *user, bay_err err);
    void *user;
} search;

static void end_search(void *argument)
{
    search *self = argument;
    bay_err err = BAY_ERR_NOT_FOUND;
    if (strstr(self->id, "kept") != NULL) {
        err = mcp_session_restore(self->engine, str_of(self->id), person("alice"),
                                  STR("{\"v\":1,\"revision\":\"2025-11-25\",\"client\":{"
                                      "\"clientInfo\":null,\"capabilities\":{}}}"),
                                  NULL, 0, NULL, 0);
    }
    self->done(self->user, err);
    free(self);
}

static bay_err session_lookup(void *user, mcp_server *engine, bay_str id,
                              const auth_principal *principal,
                              void (*done)(void *done_user, bay_err err), void *done_user)
{
    server_rig *rig = user;
    search *self = calloc(1, sizeof(*self));
    (void)principal;
    self->engine = engine;
    self->done = done;
    self->user = done_user;
    (void)snprintf(self->id, sizeof(self->id), "%.*s", BAY_STR(id));
    bay_err err = loop_post(rig->loop, end_search, self);
    if (err != BAY_OK) {
        free(self);
    }
    return err;
}

static int set_up(void **state)
{
    pair *self = calloc(1, sizeof(*self));
    rig_options options = {.front.is_loopback = true,
                           .front.identify = identify,
                           .router.home = find_home,
                           .router.keep_alive_ms = near_alive_ms,
                           .router.stream_total_ms = near_total_ms};
    rig_open(&self->near, &options, 0);
    options.router.session_lookup = session_lookup;
    options.router.keep_alive_ms = 20;
    options.router.stream_total_ms = 0;
    rig_open(&self->far, &options, 1);
    homes_asked = 0;
    mcp_http_router *routers[] = {self->near.router, self->far.router};
    mcp_http_router_set_peers(self->near.router, routers, 2);
    mcp_http_router_set_peers(self->far.router, routers, 2);
    loop_hold(self->far.loop);
    assert_int_equal(pthread_create(&self->thread, NULL, run_far, self), 0);
    self->is_running = true;
    wire_initialize(self->near.loop, http_server_port(self->far.http), self->session);
    assert_memory_equal(self->session, "1-", 2);
    *state = self;
    return 0;
}

static int set_up_alive(void **state)
{
    near_alive_ms = 10;
    int result = set_up(state);
    near_alive_ms = 0;
    return result;
}

static int set_up_short(void **state)
{
    near_total_ms = 100;
    int result = set_up(state);
    near_total_ms = 0;
    return result;
}

static void close_far(pair *self)
{
    stop_far(self);
    if (self->far.loop != NULL) {
        loop_release(self->far.loop);
        rig_close(&self->far);
        self->far.loop = NULL;
    }
}

static void close_near(pair *self)
{
    if (self->near.loop != NULL) {
        assert_int_equal(self->near.service.calls, 0);
        rig_close(&self->near);
        self->near.loop = NULL;
    }
}

static int tear_down(void **state)
{
    pair *self = *state;
    close_far(self);
    close_near(self);
    free(self);
    return 0;
}

static uint16_t near_port(pair *self)
{
    return http_server_port(self->near.http);
}

static void say(pair *self, wire_client *out, const char *verb, const char *more, const char *body)
{
    char fields[512];
    snprintf(fields, sizeof(fields), "%sMcp-Session-Id: %s\r\n%s",
             str_eq(str_of(verb), STR("GET")) ? EVENT_STREAM : WIRE_JSON, self->session, more);
    wire_request(out, self->near.loop, near_port(self), verb, "/mcp", fields, body);
}

static void call(pair *self, wire_client *out, const char *name)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
             "\"_meta\":{\"progressToken\":7}}}",
             name);
    say(self, out, "POST", "", json);
}

#define PUMP_UNTIL(self, client, condition)                                                        \
    TURN_UNTIL((self)->near.loop, wire_pump(client), condition)

/* ---- cases */

static void a_session_that_is_not_there_is_not_found(void **state)
{
    pair *self = *state;
    wire_client client;
    self->session[5] = self->session[5] == '0' ? '1' : '0';
    call(self, &client, "echo");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 404);
    wire_close(&client);
}

static void an_answer_comes_back(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "POST", "Origin: http://localhost:1\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 200);
    assert_true(wire_head_has(&client, "Content-Type: application/json\r\n"));
    assert_true(wire_head_has(&client, "Access-Control-Allow-Origin: http://localhost:1\r\n"));
    assert_true(wire_body_has(&client, "\"id\":\"a\",\"result\":{\"tools\""));
    wire_close(&client);
}

static void refusals_come_back(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "PUT", "", "{}");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 405);
    assert_true(wire_head_has(&client, "Allow: GET, HEAD, POST, DELETE\r\n"));
    wire_close(&client);
    say(self, &client, "POST", "MCP-Protocol-Version: 2024-11-05\r\n", "{}");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 400);
    wire_close(&client);
}

static void events_come_back_in_order(void **state)
{
    pair *self = *state;
    wire_client client;
    call(self, &client, "progress");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(wire_head_has(&client, "Content-Type: text/event-stream\r\n"));
    sse_block block;
    int count = 0;
    while (wire_event(&client, &block)) {
        char text[32];
        snprintf(text, sizeof(text), "\"progress\":%d,", count);
        if (count >= 1 && count <= 3) { /* the first event primes the stream */
            assert_non_null(memmem(block.data.at, block.data.len, text, strlen(text)));
        }
        count++;
    }
    assert_int_equal(count, 5);
    wire_close(&client);
}

static void a_large_result_comes_back_whole(void **state)
{
    pair *self = *state;
    wire_client client;
    call(self, &client, "large");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(client.body.len > LARGE_BYTES);
    assert_true(wire_body_has(&client, "xend\"}]"));
    wire_close(&client);
}

static void a_slow_reader_holds_the_far_service_back(void **state)
{
    pair *self = *state;
    wire_client client;
    call(self, &client, "flood");
    TURN_UNTIL(self->near.loop, (void)0, ask(self, flooded) > 0);
    int stopped_at;
    do { /* until it stands still with nobody reading */
        stopped_at = ask(self, flooded);
        for (int i = 0; i < 200; i++) {
            (void)loop_turn(self->near.loop, 0);
        }
    } while (ask(self, flooded) != stopped_at);
    assert_true(ask(self, is_flooding));
    assert_true(stopped_at < 1024);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(ask(self, drained) > 1);
    size_t events = 0;
    sse_block block;
    while (wire_event(&client, &block)) {
        events++;
    }
    assert_int_equal(events, ask(self, flooded) + 2);
    wire_close(&client);
}

static void a_standing_stream_is_forwarded_and_ended(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "GET", "", NULL);
    PUMP_UNTIL(self, &client, client.status == 200);
    (void)ask(self, change_tools);
    PUMP_UNTIL(self, &client, wire_body_has(&client, "notifications/tools/list_changed"));
    mcp_http_router_close_streams(self->near.router); /* not ours to end */
    (void)ask(self, change_tools);
    (void)ask(self, close_streams);
    PUMP_UNTIL(self, &client, client.is_complete);
    wire_close(&client);
}

static void a_lost_stream_is_resumed_through_another_loop(void **state)
{
    pair *self = *state;
    wire_client client;
    char more[64];
    sse_block block = {0};
    call(self, &client, "hold");
    TURN_UNTIL(self->near.loop, (void)0, ask(self, held) == 1);
    assert_int_equal(ask(self, progress), BAY_OK);
    PUMP_UNTIL(self, &client, wire_event(&client, &block) && block.data.len > 0);
    snprintf(more, sizeof(more), "Last-Event-ID: %.*s\r\n", BAY_STR(block.id));
    wire_close(&client);
    TURN_UNTIL(self->near.loop, (void)0, http_server_connections(self->near.http) == 0);
    (void)ask(self, held); /* the far side has heard of it */
    assert_int_equal(ask(self, progress), BAY_OK);
    (void)ask(self, finish);
    assert_int_equal(ask(self, cancelled), 0);
    say(self, &client, "GET", more, NULL);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(wire_body_has(&client, "\"progress\":2"));
    assert_false(wire_body_has(&client, "\"progress\":1"));
    assert_true(wire_body_has(&client, "was held"));
    wire_close(&client);
}

/* A modern call; `where` stands in it. */
static void call_modern(pair *self, wire_client *out, const char *name, const char *where)
{
    char fields[256];
    char json[512];
    snprintf(fields, sizeof(fields),
             WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                       "Mcp-Name: %s\r\n",
             name);
    snprintf(json, sizeof(json),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
             "\"requestState\":\"%s\","
             "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
             name, where);
    wire_request(out, self->near.loop, near_port(self), "POST", "/mcp", fields, json);
}

static void what_names_no_other_loop_stays(void **state)
{
    static const char *const words[] = {
        "home 0", "home 2", "home 9", "nowhere",
        /* what only looks like it, in a place that no token comes back in */
        "nowhere\",\"arguments\":{\"requestState\":\"home 1\",\"taskId\":\"home 1\"},\"x\":\"",
        "nowhere\",\"x\":\"\\\"requestState\\\":\\\"home 1"};
    pair *self = *state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        wire_client client;
        homes_asked = 0;
        call_modern(self, &client, "echo", words[i]);
        PUMP_UNTIL(self, &client, client.is_complete);
        assert_int_equal(client.status, 200);
        assert_int_equal(homes_asked, 1);
        assert_int_equal(self->near.service.calls, (int)i + 1);
        wire_close(&client);
    }
    assert_int_equal(ask(self, calls), 0);
    self->near.service.calls = 0;
}

static void what_comes_back_goes_to_the_loop_it_names(void **state)
{
    pair *self = *state;
    wire_client client;
    homes_asked = 0;
    call_modern(self, &client, "progress", "home 1");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 200);
    assert_int_equal(ask(self, calls), 1);
    assert_int_equal(self->near.service.calls, 0);
    assert_int_equal(homes_asked, 1); /* at its home nobody asks again */
    wire_close(&client);
}

/* A client may write the same text another way, and a task's id comes back as the params' taskId.
 */
static void what_comes_back_may_be_written_otherwise(void **state)
{
    static const char *const words[] = {"hom\\u0065 1", "nowhere\",\"taskId\":\"home 1"};
    pair *self = *state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        wire_client client;
        call_modern(self, &client, "progress", words[i]);
        PUMP_UNTIL(self, &client, client.is_complete);
        assert_int_equal(client.status, 200);
        assert_int_equal(ask(self, calls), (int)i + 1);
        assert_int_equal(self->near.service.calls, 0);
        wire_close(&client);
    }
}

static void a_session_says_more_than_what_it_carries(void **state)
{
    pair *self = *state;
    wire_client client;
    homes_asked = 0;
    say(self, &client, "POST", "",
        "{\"jsonrpc\":\"2.0\",\"id\":\"home 0\",\"method\":\"tools/list\"}");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 200);
    wire_close(&client);
    say(self, &client, "GET", "", NULL);
    PUMP_UNTIL(self, &client, client.status == 200);
    wire_close(&client);
    assert_int_equal(homes_asked, 0);
}

static void a_session_is_looked_for_at_its_home(void **state)
{
    static const struct {
        const char *id;
        int status;
    } cases[] = {{"1-none", 404}, {"1-kept", 200}, {"3-kept-when-there-were-more", 200}};
    pair *self = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        wire_client client;
        (void)snprintf(self->session, sizeof(self->session), "%s", cases[i].id);
        say(self, &client, "POST", "",
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}");
        PUMP_UNTIL(self, &client, client.is_complete);
        assert_int_equal(client.status, cases[i].status);
        wire_close(&client);
    }
    wire_client left; /* before it was found */
    (void)snprintf(self->session, sizeof(self->session), "1-kept-left");
    int before = ask(self, sessions);
    call(self, &left, "echo");
    wire_close(&left);
    TURN_UNTIL(self->near.loop, (void)0, http_server_connections(self->near.http) == 0);
    TURN_UNTIL(self->near.loop, (void)0, ask(self, sessions) == before + 1);
}

/* The principal of each is given back as often as it was taken. */
static void many_exchanges_of_one_person_leave_the_person_whole(void **state)
{
    pair *self = *state;
    for (int i = 0; i < 20; i++) {
        wire_client client;
        say(self, &client, "POST", "",
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}");
        PUMP_UNTIL(self, &client, client.is_complete);
        assert_int_equal(client.status, 200);
        wire_close(&client);
    }
    assert_true(str_eq(principal_subject(person("alice")), STR("alice")));
}

static void a_far_call_that_waits_becomes_a_stream(void **state)
{
    pair *self = *state;
    wire_client client;
    call(self, &client, "hold");
    PUMP_UNTIL(self, &client, wire_body_has(&client, ":\n\n:\n\n"));
    assert_true(wire_head_has(&client, "X-Accel-Buffering: no\r\n"));
    assert_true(wire_head_has(&client, "Cache-Control: no-cache"));
    (void)ask(self, finish);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(wire_body_has(&client, "was held"));
    wire_close(&client);
}

static void a_far_stream_does_not_last_for_ever(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "GET", "", NULL);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_true(wire_body_has(&client, "retry: 1000\n"));
    wire_close(&client);
}

static void a_peer_that_left_is_told_to_the_far_engine(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "POST",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: hold\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\","
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
    TURN_UNTIL(self->near.loop, (void)0, ask(self, held) == 1);
    wire_close(&client);
    TURN_UNTIL(self->near.loop, (void)0, ask(self, cancelled) == 1);
    (void)ask(self, finish);
}

static void a_session_is_deleted_through_another_loop(void **state)
{
    pair *self = *state;
    wire_client client;
    say(self, &client, "DELETE", "", NULL);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 204);
    wire_close(&client);
    say(self, &client, "DELETE", "", NULL);
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 404);
    wire_close(&client);
}

static void messages_of_an_sse_connection_are_forwarded(void **state)
{
    pair *self = *state;
    wire_client stream;
    wire_client post;
    sse_block block;
    char target[256];
    wire_request(&stream, self->near.loop, http_server_port(self->far.http), "GET", "/sse",
                 EVENT_STREAM, NULL);
    PUMP_UNTIL(self, &stream, wire_event(&stream, &block));
    snprintf(target, sizeof(target), "%.*s", BAY_STR(block.data));
    wire_exchange(&post, self->near.loop, near_port(self), "POST", target, WIRE_JSON,
                  WIRE_INITIALIZE);
    assert_int_equal(post.status, 202);
    wire_close(&post);
    PUMP_UNTIL(self, &stream, wire_body_has(&stream, "\"protocolVersion\":\"2025-11-25\""));
    wire_close(&stream);
    char *last = target + strlen(target) - 1;
    *last = *last == '0' ? '1' : '0';
    wire_exchange(&post, self->near.loop, near_port(self), "POST", target, WIRE_JSON,
                  WIRE_INITIALIZE);
    assert_int_equal(post.status, 404);
    wire_close(&post);
}

static void the_owner_may_vanish_first(void **state)
{
    pair *self = *state;
    wire_client stream;
    wire_client waiting;
    say(self, &stream, "GET", "", NULL);
    PUMP_UNTIL(self, &stream, stream.status == 200);
    call(self, &waiting, "hold");
    TURN_UNTIL(self->near.loop, (void)0, ask(self, held) == 1);
    close_far(self);
    PUMP_UNTIL(self, &stream, stream.is_over);
    assert_false(stream.is_complete);
    PUMP_UNTIL(self, &waiting, waiting.is_over || waiting.is_complete);
    wire_close(&stream);
    wire_close(&waiting);
    call(self, &waiting, "echo");
    PUMP_UNTIL(self, &waiting, waiting.is_complete);
    assert_int_equal(waiting.status, 503);
    wire_close(&waiting);
}

static void the_exchange_may_vanish_first(void **state)
{
    pair *self = *state;
    wire_client stream;
    wire_client waiting;
    say(self, &stream, "GET", "", NULL);
    PUMP_UNTIL(self, &stream, stream.status == 200);
    call(self, &waiting, "hold");
    TURN_UNTIL(self->near.loop, (void)0, ask(self, held) == 1);
    stop_far(self); /* messages to it pile up while the other side goes */
    close_near(self);
    change_tools(&self->far);
    finish(&self->far);
    close_far(self);
    wire_close(&stream);
    wire_close(&waiting);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_session_that_is_not_there_is_not_found),
        CASE(an_answer_comes_back),
        CASE(many_exchanges_of_one_person_leave_the_person_whole),
        CASE(refusals_come_back),
        CASE(events_come_back_in_order),
        CASE(a_large_result_comes_back_whole),
        CASE(a_slow_reader_holds_the_far_service_back),
        CASE(a_standing_stream_is_forwarded_and_ended),
        CASE(a_lost_stream_is_resumed_through_another_loop),
        CASE(what_names_no_other_loop_stays),
        CASE(what_comes_back_goes_to_the_loop_it_names),
        CASE(what_comes_back_may_be_written_otherwise),
        CASE(a_session_says_more_than_what_it_carries),
        CASE(a_session_is_looked_for_at_its_home),
        cmocka_unit_test_setup_teardown(a_far_call_that_waits_becomes_a_stream, set_up_alive,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_far_stream_does_not_last_for_ever, set_up_short,
                                        tear_down),
        CASE(a_peer_that_left_is_told_to_the_far_engine),
        CASE(a_session_is_deleted_through_another_loop),
        CASE(messages_of_an_sse_connection_are_forwarded),
        CASE(the_owner_may_vanish_first),
        CASE(the_exchange_may_vanish_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
