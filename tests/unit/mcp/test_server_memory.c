/* Each allocation of a recorded session fails in turn, in every era: every exchange still ends
 * once, nothing crashes or leaks, and the engine serves the next client as if nothing had been. */
#include "server_bench.h"

PEOPLE_FROM_THE_START

static long countdown; /* < 0: never */
static long live;

static void *hook_alloc(size_t bytes, void *user)
{
    (void)user;
    if (countdown >= 0 && countdown-- == 0) {
        return NULL;
    }
    void *at = malloc(bytes);
    live += at != NULL ? 1 : 0;
    return at;
}

static void *hook_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    if (countdown >= 0 && countdown-- == 0) {
        return NULL;
    }
    void *at = realloc(old, bytes);
    live += at != NULL && old == NULL ? 1 : 0;
    return at;
}

static void hook_release(void *old, void *user)
{
    (void)user;
    live -= old != NULL ? 1 : 0;
    free(old);
}

#define POST_OK(way)                                                                               \
    do {                                                                                           \
        assert_int_equal((way).answers + (way).ends, 1);                                           \
        assert_int_equal((way).answers != 0 ? (way).status / 100 >= 2 : 1, 1);                     \
        wire_fini(&(way));                                                                         \
    } while (0)

static void modern(bench *self)
{
    static const field listen_fields[] = {
        JSON_TYPE, BOTH, MODERN_VERSION, {"Mcp-Method", "subscriptions/listen"}, {NULL, NULL}};
    wire listens;
    wire way;
    bench_http(
        self, &listens, "POST", listen_fields,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{" META
        "},\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":[\"x:a\"]}}"
        "}");
    bench_http(self, &way, "POST", call_fields, CALL("1", ""));
    POST_OK(way);
    self->mode = NOTIFY_THEN_ANSWER;
    bench_http(self, &way, "POST", call_fields,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"\\u0074\"," META ",\"progressToken\":1}}}");
    POST_OK(way);
    self->mode = ANSWER_NOW;
    mcp_server_resource_updated(self->server, STR("x:a"));
    mcp_server_changed(self->server, MCP_CHANGE_TOOLS);
    mcp_server_close_streams(self->server);
    POST_OK(listens);
}

static void on_answer(void *user, bay_err err, const rpc_message *response)
{
    (void)err;
    (void)response;
    ++*(int *)user;
}

static void legacy_session(bench *self)
{
    wire way;
    bench_http_as(self, &way, "POST", plain_fields, INITIALIZE("2025-03-26"), "ann");
    char id[64];
    memcpy(id, way.session, sizeof(id));
    POST_OK(way);
    if (id[0] == 0) {
        return;
    }
    field fields[] = {JSON_TYPE, BOTH, {"Mcp-Session-Id", id}, {NULL, NULL}};
    wire get;
    bench_http_as(self, &get, "GET", fields, NULL, "ann");
    bench_http_as(self, &way, "POST", fields,
                  "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{"
                  "\"uri\":\"x:a\"}},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]",
                  "ann");
    POST_OK(way);
    mcp_server_resource_updated(self->server, STR("x:a"));
    self->mode = ANSWER_LATER;
    bench_http_as(self, &way, "POST", fields,
                  "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"t\",\"_meta\":{\"progressToken\":1}}}",
                  "ann");
    if (self->held_count > 0) {
        mcp_request *request = bench_take(self);
        int answered = 0;
        (void)mcp_request_progress(request, 1, STR("\"progress\":1"));
        bay_err err =
            mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_answer, &answered, self->now_ms);
        (void)mcp_request_log(request, MCP_LOG_ERROR, STR("{\"level\":\"error\"}"));
        mcp_request_result_members(request, STR("\"content\":[]"));
        assert_int_equal(answered, err == BAY_OK ? 1 : 0);
    }
    POST_OK(way);
    self->mode = ANSWER_NOW;
    bench_http_as(self, &way, "DELETE", fields, NULL, "ann");
    POST_OK(way);
    POST_OK(get);
}

static void line(bench *self)
{
    wire way;
    wire_init(&way, self);
    if (mcp_connection_open(self->server, &way.carrier, &way.connection) != BAY_OK) {
        return;
    }
    duplex_say(self, &way, INITIALIZE("2025-03-26"));
    duplex_say(self, &way,
               "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"},{\"jsonrpc\":\"2.0\","
               "\"id\":2,\"method\":\"ping\"},7]");
    duplex_say(self, &way, CALL("1", ""));
    duplex_say(self, &way, "{");
    assert_true(way.events >= 3); /* every message got its word */
    duplex_close(&way);
    wire_fini(&way);
}

static void fail_each(void (*script)(bench *self))
{
    long failed_at = 0;
    for (;; failed_at++) {
        assert_true(failed_at < 10000);
        bench self = {.capabilities = EVERYTHING, .result = "{}", .now_ms = 1000};
        mcp_server_options options = bench_options();
        options.instructions = STR("Read me.");
        long before = live;
        countdown = failed_at;
        bay_err err = mcp_server_new(&options, &bench_service, &self, &self.server);
        if (err != BAY_OK) {
            assert_int_equal(err, BAY_ERR_NOMEM);
            assert_int_equal(live, before);
            continue;
        }
        script(&self);
        bool is_over = countdown >= 0; /* nothing was left to fail */
        countdown = -1;
        mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
        wire way;
        bench_http(&self, &way, "POST", call_fields, CALL("1", ""));
        assert_int_equal(way.status, 200);
        wire_fini(&way);
        bench_fini(&self);
        if (live != before) {
            fail_msg("allocation %ld: %ld pieces kept", failed_at, live - before);
        }
        if (is_over) {
            break;
        }
    }
    assert_true(failed_at > 10);
}

static void modern_survives_without_memory(void **state)
{
    (void)state;
    fail_each(modern);
}

static void legacy_survives_without_memory(void **state)
{
    (void)state;
    fail_each(legacy_session);
}

static void lines_survive_without_memory(void **state)
{
    (void)state;
    fail_each(line);
}

static void a_warm_engine_allocates_nothing_for_a_call(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire way;
    bench_http(&self, &way, "POST", call_fields, CALL("1", ""));
    wire_fini(&way);
    countdown = 0; /* the next allocation would fail */
    bench_http(&self, &way, "POST", call_fields, CALL("1", ""));
    assert_int_equal(countdown, 0);
    countdown = -1;
    assert_int_equal(way.status, 200);
    wire_fini(&way);
    bench_fini(&self);
}

int main(void)
{
    static const mem_hooks hooks = {hook_alloc, hook_resize, hook_release, NULL};
    countdown = -1;
    mem_set_hooks(&hooks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modern_survives_without_memory),
        cmocka_unit_test(legacy_survives_without_memory),
        cmocka_unit_test(lines_survive_without_memory),
        cmocka_unit_test(a_warm_engine_allocates_nothing_for_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
