/* What a stream may do for how long: it is kept alive while it is quiet, a call that waits becomes
 * one, and none lasts for ever. */
#include "support/server_rig.h"

#define EVENT_STREAM "Accept: text/event-stream\r\n"
#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static void call(server_rig *self, wire_client *out, const char *session)
{
    char fields[512];
    snprintf(fields, sizeof(fields), WIRE_JSON "Mcp-Session-Id: %s\r\n", session);
    wire_request(out, self->loop, http_server_port(self->http), "POST", "/mcp", fields,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"hold\"}}");
}

static void modern(server_rig *self, wire_client *out, const char *method, const char *params)
{
    char fields[512];
    char json[512];
    snprintf(fields, sizeof(fields),
             WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s", method,
             strcmp(method, "tools/call") == 0 ? "Mcp-Name: hold\r\n" : "");
    snprintf(json, sizeof(json),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s," META "}}", method,
             params);
    wire_request(out, self->loop, http_server_port(self->http), "POST", "/mcp", fields, json);
}

static void stand(server_rig *self, wire_client *out, const char *session)
{
    char fields[512];
    snprintf(fields, sizeof(fields), EVENT_STREAM "Mcp-Session-Id: %s\r\n", session);
    wire_request(out, self->loop, http_server_port(self->http), "GET", "/mcp", fields, NULL);
}

#define PUMP_UNTIL(self, client, condition) TURN_UNTIL((self)->loop, wire_pump(client), condition)

static void a_call_that_waits_becomes_a_stream(void **state)
{
    server_rig rig;
    wire_client legacy;
    wire_client plain;
    char id[64];
    rig_options options = {.front.is_loopback = true, .router.keep_alive_ms = 5};
    (void)state;
    rig_open(&rig, &options, 0);
    wire_initialize(rig.loop, http_server_port(rig.http), id);
    call(&rig, &legacy, id);
    PUMP_UNTIL(&rig, &legacy, wire_body_has(&legacy, ":\n\n:\n\n"));
    modern(&rig, &plain, "tools/call", "\"name\":\"hold\"");
    PUMP_UNTIL(&rig, &plain, wire_body_has(&plain, ":\n\n:\n\n"));
    const wire_client *both[] = {&legacy, &plain};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(both[i]->status, 200);
        assert_true(wire_head_has(both[i], "Content-Type: text/event-stream\r\n"));
        assert_true(wire_head_has(both[i], "Cache-Control: no-cache, no-transform\r\n"));
        assert_true(wire_head_has(both[i], "X-Accel-Buffering: no\r\n"));
    }
    service_finish(&rig.service);
    service_finish(&rig.service);
    PUMP_UNTIL(&rig, &legacy, legacy.is_complete);
    PUMP_UNTIL(&rig, &plain, plain.is_complete);
    assert_true(wire_body_has(&legacy, "was held"));
    assert_true(wire_body_has(&plain, "was held"));
    wire_close(&legacy);
    wire_close(&plain);
    rig_close(&rig);
}

static void without_comments_a_call_waits_for_its_answer(void **state)
{
    server_rig rig;
    wire_client waiting;
    wire_client standing;
    char id[64];
    rig_options options = {.front.is_loopback = true,
                           .router.keep_alive_ms = UINT32_MAX,
                           .router.stream_total_ms = 30};
    (void)state;
    rig_open(&rig, &options, 0);
    wire_initialize(rig.loop, http_server_port(rig.http), id);
    call(&rig, &waiting, id);
    stand(&rig, &standing, id);
    PUMP_UNTIL(&rig, &standing, standing.is_complete);
    assert_false(wire_body_has(&standing, ":\n\n"));
    wire_pump(&waiting);
    assert_int_equal(waiting.status, 0);
    service_finish(&rig.service);
    PUMP_UNTIL(&rig, &waiting, waiting.is_complete);
    assert_true(wire_head_has(&waiting, "Content-Type: application/json\r\n"));
    wire_close(&waiting);
    wire_close(&standing);
    rig_close(&rig);
}

static void end_of_each_kind(const rig_options *options)
{
    server_rig rig;
    wire_client standing;
    wire_client listening;
    wire_client older;
    wire_client asking;
    char id[64];
    rig_open(&rig, options, 0);
    wire_initialize(rig.loop, http_server_port(rig.http), id);
    modern(&rig, &asking, "tools/call", "\"name\":\"hold\"");
    stand(&rig, &standing, id);
    modern(&rig, &listening, "subscriptions/listen",
           "\"notifications\":{\"toolsListChanged\":true}");
    wire_request(&older, rig.loop, http_server_port(rig.http), "GET", "/sse", EVENT_STREAM, NULL);
    PUMP_UNTIL(&rig, &standing, standing.is_complete);
    assert_true(wire_body_has(&standing, "retry: 1000\n"));
    PUMP_UNTIL(&rig, &listening, listening.is_complete);
    assert_true(wire_body_has(&listening, "subscriptions/acknowledged"));
    assert_true(wire_body_has(&listening, "\"resultType\":\"complete\""));
    PUMP_UNTIL(&rig, &older, older.is_complete);
    wire_pump(&asking); /* nobody could come back for this answer: it is not cut off */
    assert_false(asking.is_over || asking.is_complete);
    service_finish(&rig.service);
    PUMP_UNTIL(&rig, &asking, asking.is_complete);
    assert_true(wire_body_has(&asking, "was held"));
    assert_int_equal(rig.service.cancelled, 0);
    wire_close(&standing);
    wire_close(&listening);
    wire_close(&older);
    wire_close(&asking);
    rig_close(&rig);
}

static void no_stream_lasts_for_ever(void **state)
{
    (void)state;
    end_of_each_kind(&(rig_options){
        .front.is_loopback = true, .router.keep_alive_ms = 5, .router.stream_total_ms = 40});
}

static void silent_streams_end(void **state)
{
    (void)state;
    end_of_each_kind(&(rig_options){
        .front.is_loopback = true, .router.keep_alive_ms = 5, .router.stream_idle_ms = 40});
    end_of_each_kind(&(rig_options){.front.is_loopback = true,
                                    .router.keep_alive_ms = UINT32_MAX,
                                    .router.stream_idle_ms = 40});
}

static void a_stream_that_speaks_is_not_silent(void **state)
{
    server_rig rig;
    wire_client standing;
    char id[64];
    rig_options options = {
        .front.is_loopback = true, .router.keep_alive_ms = 1000, .router.stream_idle_ms = 300};
    (void)state;
    rig_open(&rig, &options, 0);
    wire_initialize(rig.loop, http_server_port(rig.http), id);
    stand(&rig, &standing, id);
    PUMP_UNTIL(&rig, &standing, standing.status == 200);
    int64_t until = test_now_ms() + 700;
    int64_t spoke = test_now_ms();
    while (test_now_ms() < until && !standing.is_complete) {
        int64_t before = spoke;
        spoke = test_now_ms();
        mcp_server_changed(rig.service.engine, MCP_CHANGE_TOOLS);
        (void)loop_turn(rig.loop, 1);
        wire_pump(&standing);
        /* unless this test stood still itself */
        assert_true(!standing.is_complete || test_now_ms() - before >= 250);
    }
    PUMP_UNTIL(&rig, &standing, standing.is_complete);
    wire_close(&standing);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_waits_becomes_a_stream),
        cmocka_unit_test(without_comments_a_call_waits_for_its_answer),
        cmocka_unit_test(no_stream_lasts_for_ever),
        cmocka_unit_test(silent_streams_end),
        cmocka_unit_test(a_stream_that_speaks_is_not_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
