/* Sessions: their ids, their number, their end by idling, and how little an idle one takes. */
#include "server_bench.h"

#include "mcp/persistence.h"
#include "mcp/session.h"
#include "mcp/stream.h"

static void only_our_ids_name_a_worker(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "-",
        "0",
        "0-",
        "-0123456789abcdef0123456789abcdef",
        "0-0123456789abcdef0123456789abcd.f",
        "A-0123456789abcdef0123456789abcdef",
        "00-0123456789abcdef0123456789abcdef",
        "g-0123456789abcdef0123456789abcdef",
        "123456789-0123456789abcdef0123456789abcdef",
        "0-0123456789abcdef 123456789abcdef",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint32_t worker = 77;
        assert_false(mcp_session_worker(str_of(bad[i]), &worker));
        assert_int_equal(worker, 77);
    }
    char text[MCP_SESSION_ID_BYTES + 2];
    uint32_t worker = 77;
    memset(text, 'a', sizeof(text));
    text[1] = '-';
    assert_false(mcp_session_worker((bay_str){text, sizeof(text) - 1}, &worker));
    assert_true(mcp_session_worker((bay_str){text, sizeof(text) - 2}, &worker));
    assert_int_equal(worker, 10);
}

static void ids_name_their_worker_and_differ(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 9, 10, 255, 4096, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        bench self;
        mcp_server_options options = bench_options();
        options.worker = workers[i];
        bench_init_with(&self, &options);
        legacy one;
        legacy two;
        legacy_begin(&self, &one, INITIALIZE("2025-11-25"));
        legacy_begin(&self, &two, INITIALIZE("2025-11-25"));
        uint32_t worker = 77;
        assert_true(mcp_session_worker(str_of(one.id), &worker));
        assert_int_equal(worker, workers[i]);
        assert_string_not_equal(one.id, two.id);
        assert_true(str_eq(mcp_session_id(self.session), str_of(two.id)));
        bench_fini(&self);
    }
}

static void sessions_are_bounded(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.max_sessions = 1;
    options.session_idle_ms = 100;
    bench_init_with(&self, &options);
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire through;
    bench_http(&self, &through, "POST", plain_fields, INITIALIZE("2025-11-25"));
    assert_int_equal(through.status, 503);
    wire_fini(&through);
    self.now_ms += 100; /* the first has idled away: there is room again */
    bench_http(&self, &through, "POST", plain_fields, INITIALIZE("2025-11-25"));
    assert_int_equal(through.status, 200);
    wire_fini(&through);
    assert_int_equal(mcp_server_session_count(self.server), 1);
    bench_fini(&self);
}

static void what_a_client_says_of_itself_is_bounded(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    buf body;
    buf_init(&body, 1 << 20);
    buf_lit(&body,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
            "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"x\":\"");
    for (int i = 0; i < SESSION_MAX_CLIENT; i++) {
        buf_char(&body, 'x');
    }
    buf_append(&body, "\"}}}\0", 5);
    wire through;
    bench_http(&self, &through, "POST", plain_fields, body.at);
    assert_has(through.body, "-32602");
    assert_int_equal(mcp_server_session_count(self.server), 0);
    wire_fini(&through);
    buf_fini(&body);
    bench_fini(&self);
}

static void idle_sessions_end_and_busy_ones_do_not(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.session_idle_ms = 1000;
    bench_init_with(&self, &options);
    self.mode = ANSWER_LATER;
    legacy idle;
    legacy listens;
    legacy calls;
    legacy_begin(&self, &idle, INITIALIZE("2025-11-25"));
    legacy_begin(&self, &listens, INITIALIZE("2025-11-25"));
    legacy_begin(&self, &calls, INITIALIZE("2025-11-25"));
    wire stream_of;
    wire call;
    bench_http(&self, &stream_of, "GET", listens.fields, NULL);
    bench_http(&self, &call, "POST", calls.fields,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}"
               "}");
    assert_int_equal(mcp_server_tick(self.server, self.now_ms + 999), self.now_ms + 1000);
    assert_int_equal(mcp_server_session_count(self.server), 3);
    self.now_ms += 1000;
    (void)mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(mcp_server_session_count(self.server), 2);
    bench_answer(&self, bench_take(&self));
    wire_gone(&self, &stream_of);
    (void)mcp_server_tick(self.server, self.now_ms + 999);
    assert_int_equal(mcp_server_session_count(self.server), 2);
    assert_true(mcp_server_tick(self.server, self.now_ms + 1000) == UINT64_MAX);
    assert_int_equal(mcp_server_session_count(self.server), 0);
    assert_int_equal(self.closed, 3);
    wire_fini(&stream_of);
    wire_fini(&call);
    bench_fini(&self);
}

static uint64_t wall_now_ms;

static uint64_t wall_ms(void)
{
    return wall_now_ms;
}

/* Its GET stream ends a minute after the credentials that opened it; its call does not, and with new
 * credentials there is a new stream. */
static void a_stream_ends_with_its_credentials(void **state)
{
    (void)state;
    principal_parts parts = {
        .proof = PRINCIPAL_PROGRAM, .subject = STR_INIT("eve"), .expires_at_ms = 1000};
    assert_int_equal(principal_new(&parts, &people.at[people.count++]), BAY_OK);
    call_door door;
    call_door_init(&door);
    door.wall_ms = wall_ms;
    wall_now_ms = 500;
    mcp_server_options options = bench_options();
    options.door = &door;
    bench self;
    bench_init_with(&self, &options);
    self.mode = ANSWER_LATER;
    wire first;
    wire call;
    wire streams[2];
    bench_http_as(&self, &first, "POST", plain_fields, INITIALIZE("2025-11-25"), "eve");
    field fields[] = {JSON_TYPE, BOTH, {"Mcp-Session-Id", first.session}, {NULL, NULL}};
    bench_http_as(&self, &streams[0], "GET", fields, NULL, "eve");
    bench_http_as(&self, &call, "POST", fields,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"t\"}}",
                  "eve");
    mcp_request *under_way = bench_take(&self);
    assert_true(mcp_request_admit(under_way, NULL));
    wall_now_ms = 60999;
    (void)mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(streams[0].ends, 0);
    wall_now_ms = 61000;
    (void)mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(streams[0].ends, 1);
    assert_int_equal(mcp_server_session_count(self.server), 1);
    bench_answer(&self, under_way);
    assert_has(call.body, "\"id\":1,\"result\"");
    wall_now_ms = 900; /* as if with new credentials */
    bench_http_as(&self, &streams[1], "GET", fields, NULL, "eve");
    (void)mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(streams[1].ends, 0);
    bench_fini(&self);
    wire_fini(&first);
    wire_fini(&call);
    wire_fini(&streams[0]);
    wire_fini(&streams[1]);
    principal_unref(people.at[--people.count]);
}

static void ending_answers_what_is_under_way(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire stream_of;
    wire call;
    wire end;
    bench_http(&self, &stream_of, "GET", who.fields, NULL);
    bench_http(&self, &call, "POST", who.fields,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}"
               "}");
    bench_http(&self, &end, "DELETE", who.fields, NULL);
    assert_int_equal(end.status, 204);
    assert_int_equal(call.status, 200); /* 404 would have it sent again in another session */
    assert_has(call.body, "\"id\":1,\"error\"");
    assert_has(call.body, "\"data\":{\"patchbay/mayHaveRun\":true}");
    assert_int_equal(stream_of.ends, 1);
    assert_int_equal(self.cancels, 1);
    mcp_request *late = bench_take(&self);
    assert_null(late->session);
    bench_answer(&self, late);
    wire_fini(&stream_of);
    wire_fini(&call);
    wire_fini(&end);
    bench_fini(&self);
}

static size_t heap_bytes;

static void *count_alloc(size_t bytes, void *user)
{
    (void)user;
    size_t *at = malloc(bytes + 16);
    if (at == NULL) {
        return NULL;
    }
    *at = bytes;
    heap_bytes += bytes;
    return (char *)at + 16;
}

static void count_release(void *old, void *user)
{
    (void)user;
    if (old != NULL) {
        size_t *at = (size_t *)(void *)((char *)old - 16);
        heap_bytes -= *at;
        free(at);
    }
}

static void *count_resize(void *old, size_t bytes, void *user)
{
    void *fresh = count_alloc(bytes, user);
    if (fresh != NULL && old != NULL) {
        size_t had = *(size_t *)(void *)((char *)old - 16);
        memcpy(fresh, old, had < bytes ? had : bytes);
        count_release(old, user);
    }
    return fresh;
}

/* Everything the engine's heap grows by, the table included, for 512 sessions that have listed,
 * listen, and are idle. */
static void an_idle_session_is_small(void **state)
{
    (void)state;
    enum { SESSIONS = 512, BOUND = 1024 };
    bench self;
    bench_init(&self);
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    size_t before = heap_bytes;
    wire *streams = calloc(SESSIONS, sizeof(wire));
    assert_non_null(streams);
    for (int i = 0; i < SESSIONS; i++) {
        legacy one;
        legacy_begin(&self, &one, INITIALIZE("2025-11-25"));
        wire listed;
        bench_http(&self, &listed, "POST", one.fields,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
        wire_fini(&listed);
        bench_http(&self, &streams[i], "GET", one.fields, NULL);
    }
    size_t each = (heap_bytes - before) / SESSIONS;
    print_message("session %zu bytes, stream %zu bytes; heap of an idle listening session: %zu\n",
                  sizeof(mcp_session), sizeof(stream), each);
    assert_true(each < BOUND);
    bench_fini(&self);
    for (int i = 0; i < SESSIONS; i++) {
        wire_fini(&streams[i]);
    }
    free(streams);
}

int main(void)
{
    static const mem_hooks hooks = {count_alloc, count_resize, count_release, NULL};
    mem_set_hooks(&hooks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_our_ids_name_a_worker),
        cmocka_unit_test(ids_name_their_worker_and_differ),
        cmocka_unit_test(sessions_are_bounded),
        cmocka_unit_test(what_a_client_says_of_itself_is_bounded),
        cmocka_unit_test(idle_sessions_end_and_busy_ones_do_not),
        cmocka_unit_test(a_stream_ends_with_its_credentials),
        cmocka_unit_test(ending_answers_what_is_under_way),
        cmocka_unit_test(an_idle_session_is_small),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 ? failed : heap_bytes != 0;
}
