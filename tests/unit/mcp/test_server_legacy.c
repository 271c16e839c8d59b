/* The handshake era: negotiation, sessions, streams and their resumption, asks, batches, over HTTP
 * and over a duplex carrier. */
#include "server_bench.h"

#define SAY(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define TELL(method, params) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}"
#define TOOL "{\"name\":\"t\",\"_meta\":{\"progressToken\":\"p\"}}"

static void post(bench *self, const legacy *who, wire *through, const char *body)
{
    bench_http(self, through, "POST", who->fields, body);
}

/* Posts and says what came back, then forgets it. */
static void expect(bench *self, const legacy *who, const char *body, int status, const char *part)
{
    wire through;
    post(self, who, &through, body);
    if (through.status != status) {
        fail_msg("%s: %d %s", body, through.status, through.body);
    }
    if (part == NULL) {
        assert_null(through.body);
    } else {
        assert_has(through.body, part);
    }
    wire_fini(&through);
}

static void get(bench *self, const legacy *who, wire *through, const char *last_event_id)
{
    field fields[] = {{"Accept", "text/event-stream"},
                      {"Mcp-Session-Id", who->id},
                      {last_event_id != NULL ? "Last-Event-ID" : "X", last_event_id},
                      {NULL, NULL}};
    bench_http(self, through, "GET", fields, NULL);
}

static void revisions_are_negotiated(void **state)
{
    (void)state;
    static const struct {
        const char *initialize;
        mcp_revision_id newest;
        const char *answer;
    } cases[] = {
        {INITIALIZE("2024-11-05"), MCP_REV_2026_07_28, "\"protocolVersion\":\"2024-11-05\""},
        {INITIALIZE("2025-03-26"), MCP_REV_2026_07_28, "\"protocolVersion\":\"2025-03-26\""},
        {INITIALIZE("2025-06-18"), MCP_REV_2026_07_28, "\"protocolVersion\":\"2025-06-18\""},
        {INITIALIZE("1.0"), MCP_REV_2026_07_28, "\"protocolVersion\":\"2025-11-25\""},
        {INITIALIZE("2026-07-28"), MCP_REV_2026_07_28, "\"protocolVersion\":\"2025-11-25\""},
        {INITIALIZE("2025-11-25"), MCP_REV_2025_06_18, "\"protocolVersion\":\"2025-06-18\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bench self;
        mcp_server_options options = bench_options();
        options.newest = cases[i].newest;
        options.instructions = STR("Be \"nice\".");
        bench_init_with(&self, &options);
        wire through;
        bench_http(&self, &through, "POST", plain_fields, cases[i].initialize);
        assert_int_equal(through.status, 200);
        assert_has(through.body, cases[i].answer);
        assert_has(through.body, "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}");
        assert_has(through.body, "\"capabilities\":{\"tools\":{\"listChanged\":true}");
        assert_has(through.body, "\"instructions\":\"Be \\\"nice\\\".\"");
        uint32_t worker = 7;
        assert_true(mcp_session_worker(str_of(through.session), &worker));
        assert_int_equal(worker, 0);
        wire_fini(&through);
        bench_fini(&self);
    }
}

static void initialize_needs_a_version(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire through;
    bench_http(&self, &through, "POST", plain_fields, SAY("1", "initialize", "{}"));
    assert_has(through.body, "-32602");
    assert_string_equal(through.session, "");
    assert_int_equal(mcp_server_session_count(self.server), 0);
    wire_fini(&through);
    bench_fini(&self);
}

static void a_session_is_bound_to_its_id_and_caller(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire through;
    bench_http_as(&self, &through, "POST", plain_fields, INITIALIZE("2025-11-25"), "ann");
    legacy who = {0};
    memcpy(who.id, through.session, sizeof(who.id));
    wire_fini(&through);
    field fields[] = {JSON_TYPE, BOTH, {"Mcp-Session-Id", who.id}, {NULL, NULL}, {NULL, NULL}};
    memcpy(who.fields, fields, sizeof(fields));

    expect(&self, &who, SAY("1", "ping", "{}"), 404, "No such session"); /* nobody is not ann */
    bench_http_as(&self, &through, "POST", who.fields, SAY("1", "ping", "{}"), "bob");
    assert_int_equal(through.status, 404);
    wire_fini(&through);
    bench_http_as(&self, &through, "POST", who.fields, SAY("1", "ping", "{}"), "ann");
    assert_int_equal(through.status, 200);
    assert_string_equal(through.body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    wire_fini(&through);
    who.fields[3] = (field){"MCP-Protocol-Version", "2025-11-25"};
    bench_http_as(&self, &through, "POST", who.fields, SAY("1", "ping", "{}"), "ann");
    assert_int_equal(through.status, 200);
    wire_fini(&through);
    bench_http_as(&self, &through, "POST", who.fields, INITIALIZE("2025-11-25"), "ann");
    assert_int_equal(through.status, 400);
    wire_fini(&through);
    bench_http_as(&self, &through, "DELETE", who.fields, NULL, "ann");
    assert_int_equal(through.status, 204);
    wire_fini(&through);
    bench_http_as(&self, &through, "POST", who.fields, SAY("1", "ping", "{}"), "ann");
    assert_int_equal(through.status, 404);
    wire_fini(&through);
    assert_int_equal(self.opened, 1);
    assert_int_equal(self.closed, 1);
    bench_fini(&self);
}

/* Only 2025-03-26 has batches, so they show whose rules hold. */
static void expect_batches(bench *self, const legacy *who, bool are_allowed)
{
    wire through;
    post(self, who, &through, "[" SAY("1", "ping", "{}") "]");
    assert_int_equal(through.status, are_allowed ? 200 : 400);
    wire_fini(&through);
}

static const struct version_case {
    const char *verb;
    const char *header;  /* NULL: none */
    const char *another; /* a second header field; NULL: none */
    mcp_revision_id newest;
    int status;
    const char *fault;
} version_cases[] = {
    {"POST", "", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"POST", "2025-11-2", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"POST", "2025-11-25, 2025-06-18", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"POST", "2099-01-01", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"GET", "2099-01-01", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"DELETE", "2099-01-01", NULL, MCP_REV_2026_07_28, 400, "does not support"},
    {"POST", "2025-11-25", "2025-11-25", MCP_REV_2026_07_28, 400, "stands twice"},
    {"GET", "2025-11-25", "2025-06-18", MCP_REV_2026_07_28, 400, "stands twice"},
    {"DELETE", "2025-06-18", "2025-11-25", MCP_REV_2026_07_28, 400, "stands twice"},
    /* known, but not offered here */
    {"POST", "2025-11-25", NULL, MCP_REV_2025_06_18, 400, "does not support"},
    {"POST", "2026-07-28", NULL, MCP_REV_2025_11_25, 400, "does not support"},
    {"GET", "2026-07-28", NULL, MCP_REV_2025_11_25, 400, "does not support"},
    /* a revision without sessions: its POST wants _meta, it has no GET and no DELETE */
    {"POST", "2026-07-28", NULL, MCP_REV_2026_07_28, 400, "-32602"},
    {"GET", "2026-07-28", NULL, MCP_REV_2026_07_28, 400, "has no sessions"},
    {"DELETE", "2026-07-28", NULL, MCP_REV_2026_07_28, 400, "has no sessions"},
    /* the session's own, none, and any other that has sessions */
    {"POST", NULL, NULL, MCP_REV_2026_07_28, 200, NULL},
    {"POST", "2025-03-26", NULL, MCP_REV_2026_07_28, 200, NULL},
    {"POST", "2024-11-05", NULL, MCP_REV_2026_07_28, 200, NULL},
    {"POST", "2025-06-18", NULL, MCP_REV_2026_07_28, 200, NULL},
    {"POST", "2025-11-25", NULL, MCP_REV_2026_07_28, 200, NULL},
    {"POST", "2025-06-18", NULL, MCP_REV_2025_06_18, 200, NULL},
    {"GET", "2025-11-25", NULL, MCP_REV_2026_07_28, 0, NULL}, /* 0: a stream */
    {"DELETE", "2025-11-25", NULL, MCP_REV_2026_07_28, 204, NULL},
};

/* In a session of 2025-03-26, and the other way about in one of the newest revision. */
static void the_header_never_changes_the_sessions_revision(void **state)
{
    (void)state;
    static const char *initialize[] = {INITIALIZE("2025-03-26"), INITIALIZE("2025-11-25")};
    for (size_t i = 0; i < 2 * ARRAY_LEN(version_cases); i++) {
        const struct version_case *one = &version_cases[i / 2];
        bench self;
        wire through;
        legacy who;
        mcp_server_options options = bench_options();
        options.newest = one->newest;
        bench_init_with(&self, &options);
        legacy_begin(&self, &who, initialize[i % 2]);
        field fields[] = {JSON_TYPE,
                          BOTH,
                          {"Mcp-Session-Id", who.id},
                          {one->header != NULL ? "MCP-Protocol-Version" : "X", one->header},
                          {one->another != NULL ? "MCP-Protocol-Version" : "X", one->another},
                          {NULL, NULL}};
        bench_http(&self, &through, one->verb, fields,
                   strcmp(one->verb, "POST") == 0 ? SAY("7", "ping", "{}") : NULL);
        if (through.status != one->status) {
            fail_msg("%s %s: %d %s", one->verb, one->header, through.status, through.body);
        }
        if (one->fault != NULL) {
            assert_has(through.body, one->fault);
        }
        assert_int_equal(through.events, one->status == 0 ? 1 : 0);
        wire_fini(&through);
        assert_int_equal(mcp_server_session_count(self.server), one->status == 204 ? 0 : 1);
        if (one->status == 200 && one->header != NULL) {
            who.fields[3] = (field){"MCP-Protocol-Version", one->header};
            expect_batches(&self, &who, i % 2 == 0);
        }
        bench_fini(&self);
    }
}

static void the_engine_answers_its_own_methods(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    expect(&self, &who, TELL("notifications/initialized", "{}"), 202, NULL);
    expect(&self, &who, SAY("1", "logging/setLevel", "{\"level\":\"loud\"}"), 200, "-32602");
    expect(&self, &who, SAY("1", "logging/setLevel", "{\"level\":\"debug\"}"), 200,
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    expect(&self, &who, SAY("1", "resources/subscribe", "{}"), 200, "-32602");
    expect(&self, &who, SAY("1", "resources/subscribe", "{\"uri\":\"x:none\"}"), 200, "-32002");
    expect(&self, &who, SAY("1", "resources/subscribe", "{\"uri\":\"x:a\"}"), 200, "\"result\":{}");
    assert_int_equal(self.subscribed, 1);
    expect(&self, &who, SAY("1", "resources/unsubscribe", "{\"uri\":\"x:a\"}"), 200,
           "\"result\":{}");
    assert_int_equal(self.unsubscribed, 1);
    expect(&self, &who, SAY("1", "server/discover", "{}"), 200, "-32601");
    expect(&self, &who, SAY("1", "nobody/knows", "{}"), 200, "-32601");
    expect(&self, &who, SAY("1", "tools/call", "{}"), 200, "-32602");
    assert_int_equal(self.requests, 0);
    expect(&self, &who, SAY("1", "x/known", "{}"), 200, "\"result\":{\"content\":[]}");
    expect(&self, &who, TELL("notifications/roots/list_changed", "{}"), 202, NULL);
    assert_int_equal(self.notified, 1);
    expect(&self, &who, "{\"jsonrpc\":\"2.0\",\"id\":\"bay-77\",\"result\":{}}", 202, NULL);
    bench_fini(&self);
}

static void results_are_undressed(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    self.mode = ANSWER_LATER;
    static const struct {
        const char *result;
        const char *sent;
    } cases[] = {
        {"{\"content\":[] ,\"n\":1.0}", "\"result\":{\"content\":[] ,\"n\":1.0}}"},
        {"{\"resultType\":\"complete\",\"n\":1.0,\"ttlMs\":1,\"cacheScope\":\"public\"}",
         "\"result\":{\"n\":1.0}}"},
        {"{\"resultType\":\"input_required\",\"inputRequests\":{}}", "\"code\":-32603"},
        {"{\"ttlMs\":1,\"ttlMs\":2}", "\"code\":-32603"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        wire through;
        post(&self, &who, &through, SAY("1", "tools/call", TOOL));
        self.result = cases[i].result;
        bench_answer(&self, bench_take(&self));
        assert_has(through.body, cases[i].sent);
        wire_fini(&through);
    }
    bench_fini(&self);
}

static void an_id_is_used_once_at_a_time(void **state)
{
    (void)state;
    bench self;
    mcp_server_options options = bench_options();
    options.max_requests = 2;
    bench_init_with(&self, &options);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire first;
    wire second;
    post(&self, &who, &first, SAY("1", "tools/call", TOOL));
    expect(&self, &who, SAY("1", "tools/call", TOOL), 400, "\"id\":1,\"error\":{\"code\":-32600");
    post(&self, &who, &second, SAY("\"1\"", "tools/call", TOOL)); /* another id */
    expect(&self, &who, SAY("3", "tools/call", TOOL), 429, "\"id\":3,\"error\":{\"code\":-32603");
    bench_answer(&self, bench_take(&self));
    bench_answer(&self, bench_take(&self));
    assert_has(first.body, "\"id\":1,\"result\"");
    assert_has(second.body, "\"id\":\"1\",\"result\"");
    wire_fini(&first);
    wire_fini(&second);
    bench_fini(&self);
}

static void cancelling_is_a_notification_of_ones_own(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy ann;
    legacy bob;
    legacy_begin(&self, &ann, INITIALIZE("2025-11-25"));
    legacy_begin(&self, &bob, INITIALIZE("2025-11-25"));
    wire through;
    post(&self, &ann, &through, SAY("7", "tools/call", TOOL));
    expect(&self, &bob, TELL("notifications/cancelled", "{\"requestId\":7}"), 202, NULL);
    expect(&self, &ann, TELL("notifications/cancelled", "{\"requestId\":\"7\"}"), 202, NULL);
    expect(&self, &ann, TELL("notifications/cancelled", "{}"), 202, NULL);
    assert_int_equal(self.cancels, 0);
    expect(&self, &ann, TELL("notifications/cancelled", "{\"requestId\":7}"), 202, NULL);
    assert_int_equal(self.cancels, 1);
    assert_int_equal(through.status, 202); /* no answer, but the exchange ends */
    assert_null(through.body);
    expect(&self, &ann, TELL("notifications/cancelled", "{\"requestId\":7}"), 202, NULL);
    assert_int_equal(self.cancels, 1);
    mcp_request *late = bench_take(&self);
    assert_int_equal(mcp_request_progress(late, 1, STR("")), BAY_ERR_CANCELLED);
    bench_answer(&self, late);
    wire_fini(&through);
    bench_fini(&self);
}

static void a_stream_is_primed_numbered_and_ended(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = NOTIFY_THEN_ANSWER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire through;
    post(&self, &who, &through, SAY("1", "tools/call", TOOL));
    assert_int_equal(through.events, 3);
    assert_string_equal(through.event[0], "");
    assert_string_equal(through.id[0], "1-0");
    assert_has(through.event[1], "\"progressToken\":\"p\",\"progress\":1}");
    assert_string_equal(through.id[1], "1-1");
    assert_has(through.event[2], "\"id\":1,\"result\"");
    assert_string_equal(through.id[2], "1-2");
    assert_int_equal(through.ends, 1);
    wire_fini(&through);

    legacy older; /* has no idea of an event without data */
    legacy_begin(&self, &older, INITIALIZE("2025-06-18"));
    post(&self, &older, &through, SAY("1", "tools/call", TOOL));
    assert_int_equal(through.events, 3);
    assert_string_equal(through.id[0], "");
    assert_string_equal(through.event[0], "");
    assert_string_equal(through.id[2], "1-2");
    wire_fini(&through);
    bench_fini(&self);
}

static void a_client_that_names_the_stream_first_has_it(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire through;
    post(&self, &who, &through, SAY("1", "ping", "{}"));
    assert_int_equal(through.events, 0);
    assert_has(through.body, "\"result\":{}");
    wire_fini(&through);
    who.fields[1] = (field){"Accept", "text/event-stream, application/json"};
    post(&self, &who, &through, SAY("2", "ping", "{}"));
    assert_null(through.body);
    assert_int_equal(through.events, 2); /* the first is empty: there is something to resume */
    assert_string_equal(through.event[1], "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    assert_int_equal(through.ends, 1);
    wire_fini(&through);
    bench_fini(&self);
}

static void a_broken_stream_is_taken_up_again(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire first;
    post(&self, &who, &first, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    wire_gone(&self, &first);
    assert_int_equal(self.cancels, 0);
    assert_int_equal(mcp_request_progress(request, 2, STR("\"progress\":2")), BAY_OK);

    wire bad;
    static const char *const unknown[] = {"9-1", "1-9", "1", "-", "x-1", "1-1-1", "1-+1"};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        get(&self, &who, &bad, unknown[i]);
        assert_int_equal(bad.status, 400);
        wire_fini(&bad);
    }
    wire second;
    get(&self, &who, &second, "1-0");
    assert_int_equal(second.events, 2);
    assert_string_equal(second.id[0], "1-1");
    assert_has(second.event[1], "\"progress\":2");
    assert_int_equal(mcp_request_progress(request, 3, STR("\"progress\":3")), BAY_OK);
    assert_string_equal(second.id[2], "1-3");
    wire_gone(&self, &second);
    bench_answer(&self, request);

    wire third;
    get(&self, &who, &third, "1-3");
    assert_int_equal(third.events, 1);
    assert_string_equal(third.id[0], "1-4");
    assert_has(third.event[0], "\"id\":1,\"result\"");
    assert_int_equal(third.ends, 1);
    get(&self, &who, &bad, "1-3"); /* delivered: forgotten */
    assert_int_equal(bad.status, 400);
    wire_fini(&bad);
    wire_fini(&first);
    wire_fini(&second);
    wire_fini(&third);
    bench_fini(&self);
}

/* Bytes that were written need not have been read: the connection may break with them under way. */
static void an_end_that_was_written_can_be_had_again(void **state)
{
    (void)state;
    enum { CALLS = 6, KEPT = 4 };
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    for (int i = 0; i < CALLS; i++) {
        wire through;
        post(&self, &who, &through, SAY("1", "tools/call", TOOL));
        mcp_request *request = bench_take(&self);
        assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
        assert_int_equal(mcp_request_progress(request, 2, STR("\"progress\":2")), BAY_OK);
        bench_answer(&self, request);
        assert_int_equal(through.ends, 1);
        assert_has(last_event(&through), "\"result\"");
        wire_fini(&through);
    }
    for (int i = 1; i <= CALLS; i++) {
        wire again;
        char id[16];
        (void)snprintf(id, sizeof(id), "%d-2", i);
        get(&self, &who, &again, id);
        if (i <= CALLS - KEPT) {
            assert_int_equal(again.status, 400); /* the oldest made room */
        } else {
            assert_int_equal(again.events, 1);
            assert_has(last_event(&again), "\"id\":1,\"result\"");
            assert_int_equal(again.ends, 1);
        }
        wire_fini(&again);
    }
    bench_fini(&self);
}

static void a_second_connection_takes_the_stream_over(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire first;
    post(&self, &who, &first, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    wire second; /* the server has not noticed that the first is dead */
    get(&self, &who, &second, "1-1");
    assert_int_equal(first.ends, 1);
    bench_answer(&self, request);
    assert_has(last_event(&second), "\"result\"");
    assert_int_equal(second.ends, 1);

    wire one;
    wire two;
    get(&self, &who, &one, NULL);
    get(&self, &who, &two, NULL);
    assert_int_equal(one.ends, 1);
    mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
    assert_int_equal(one.events, 1);
    assert_has(last_event(&two), "notifications/tools/list_changed");
    wire_gone(&self, &two);
    mcp_server_changed(self.server, MCP_CHANGE_PROMPTS);
    wire three;
    get(&self, &who, &three, two.id[1]);
    assert_has(last_event(&three), "notifications/prompts/list_changed");
    mcp_server_close_streams(self.server);
    assert_int_equal(three.ends, 1);
    wire_fini(&first);
    wire_fini(&second);
    wire_fini(&one);
    wire_fini(&two);
    wire_fini(&three);
    bench_fini(&self);
}

static void without_a_stream_a_lost_answer_is_dropped(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire through;
    post(&self, &who, &through, SAY("1", "tools/call", TOOL));
    wire_gone(&self, &through);
    assert_int_equal(self.cancels, 0);
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("")), BAY_ERR_CANCELLED);
    bench_answer(&self, request);
    assert_int_equal(through.answers + through.events, 0);
    wire_fini(&through);
    bench_fini(&self);
}

/* ---- asks */

typedef struct asked {
    int times;
    bay_err err;
    char result[64];
} asked;

static void on_answer(void *user, bay_err err, const rpc_message *response)
{
    asked *self = user;
    self->times++;
    self->err = err;
    if (response != NULL && response->kind == RPC_RESULT) {
        (void)snprintf(self->result, sizeof(self->result), "%.*s",
                       BAY_STR(json_raw(response->result)));
    }
}

static void a_client_is_asked_on_the_calls_own_stream(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy other;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    legacy_begin(&self, &other, INITIALIZE("2025-11-25"));
    wire through;
    post(&self, &who, &through, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    asked answer = {0};
    assert_int_equal(
        mcp_request_ask(request, MCP_ROOTS_LIST, STR(""), on_answer, &answer, self.now_ms),
        BAY_ERR_UNSUPPORTED); /* the client has not declared roots */
    assert_int_equal(mcp_request_ask(request, MCP_SAMPLING, STR("{\"maxTokens\":1}"), on_answer,
                                     &answer, self.now_ms),
                     BAY_OK);
    assert_has(last_event(&through), "{\"jsonrpc\":\"2.0\",\"id\":\"bay-1\",\"method\":"
                                     "\"sampling/createMessage\",\"params\":{\"maxTokens\":1}}");
    static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":\"bay-1\",\"result\":{\"a\":1}}";
    expect(&self, &other, reply, 202, NULL);
    assert_int_equal(answer.times, 0);
    expect(&self, &who, reply, 202, NULL);
    assert_int_equal(answer.times, 1);
    assert_int_equal(answer.err, BAY_OK);
    assert_string_equal(answer.result, "{\"a\":1}");
    expect(&self, &who, reply, 202, NULL);
    assert_int_equal(answer.times, 1);

    asked slow = {0};
    assert_int_equal(
        mcp_request_ask(request, MCP_ELICITATION, STR("{}"), on_answer, &slow, self.now_ms),
        BAY_OK);
    uint64_t next = mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(next, self.now_ms + 10 * 60 * 1000);
    (void)mcp_server_tick(self.server, next - 1);
    assert_int_equal(slow.times, 0);
    (void)mcp_server_tick(self.server, next);
    assert_int_equal(slow.err, BAY_ERR_TIMEOUT);
    assert_has(last_event(&through), "notifications/cancelled");
    assert_has(last_event(&through), "\"requestId\":\"bay-2\"");

    asked left = {0};
    assert_int_equal(mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_answer, &left, next),
                     BAY_OK);
    bench_answer(&self, request);
    assert_int_equal(left.times, 1);
    assert_int_equal(left.err, BAY_ERR_CANCELLED);
    assert_int_equal(through.ends, 1);
    wire_fini(&through);
    bench_fini(&self);
}

/* The text of a message with too many levels inside: `before`, levels, `after`. */
static const char *too_deep(const char *before, const char *after)
{
    enum { LEVELS = 100 };
    static char text[2 * LEVELS + 300];
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", before);
    memset(text + len, '[', LEVELS);
    memset(text + len + LEVELS, ']', LEVELS);
    (void)snprintf(text + len + 2 * (size_t)LEVELS, 200, "%s", after);
    return text;
}

/* Whoever waits for it learns that it came: the client by its id, we who asked by ours. */
static void what_cannot_be_read_is_answered_all_the_same(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, INITIALIZE("2025-11-25"));
    duplex_say(
        &self, &line,
        too_deep("{\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"a\":",
                 "}},\"jsonrpc\":\"2.0\",\"id\":\"x\"}"));
    assert_has(last_event(&line), "\"id\":\"x\",\"error\":{\"code\":-32700");
    duplex_say(&self, &line, "{\"id\":8,\"method\":\"ping\",\"params\":{?}}");
    assert_has(last_event(&line), "\"id\":8,\"error\":{\"code\":-32700");
    duplex_say(&self, &line, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    static const char *const broken[] = {"{\"jsonrpc\":\"2.0\",\"id\":\"bay-1\",\"result\":{?}}",
                                         NULL};
    for (int i = 0; i < 2; i++) {
        asked answer = {0};
        assert_int_equal(
            mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_answer, &answer, self.now_ms),
            BAY_OK);
        duplex_say(&self, &line, too_deep("{\"id\":\"bay-9\",\"result\":{\"a\":", "}}"));
        assert_int_equal(answer.times, 0);
        duplex_say(&self, &line,
                   i == 0 ? broken[0] : too_deep("{\"result\":{\"a\":", "},\"id\":\"bay-2\"}"));
        assert_int_equal(answer.times, 1);
        assert_int_equal(answer.err, BAY_ERR_PROTOCOL);
    }
    rpc_outline outline;
    rpc_outline_init(&outline);
    rpc_outline_feed(&outline, STR("{\"method\":\"a\",\"id\":5}"));
    mcp_connection_overlong(line.connection, &outline, self.now_ms);
    assert_has(last_event(&line),
               "\"id\":5,\"error\":{\"code\":-32600,\"message\":\"The message is too");
    bench_answer(&self, request);
    duplex_close(&line);
    wire_fini(&line);

    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    wire through;
    asked answer = {0};
    post(&self, &who, &through, SAY("1", "tools/call", TOOL));
    request = bench_take(&self);
    assert_int_equal(
        mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_answer, &answer, self.now_ms), BAY_OK);
    expect(&self, &who, "{\"id\":\"bay-3\",\"result\":{?}}", 400, "-32700");
    assert_int_equal(answer.err, BAY_ERR_PROTOCOL);
    expect(&self, &who, too_deep("{\"id\":4,\"method\":\"a\",\"params\":{\"a\":", "}}"), 400,
           "\"id\":4");
    bench_answer(&self, request);
    wire_fini(&through);
    bench_fini(&self);
}

/* ---- batches */

static void batches_are_of_one_revision_only(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    legacy old;
    legacy new;
    legacy_begin(&self, &old, INITIALIZE("2025-03-26"));
    legacy_begin(&self, &new, INITIALIZE("2025-06-18"));
    static const char two[] = "[" SAY("1", "ping", "{}") "," SAY("2", "ping", "{}") "]";
    expect(&self, &new, two, 400, "-32600");
    expect(&self, &old, "[]", 400, "-32600");
    expect(&self, &old, two, 200,
           "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,"
           "\"result\":{}}]");
    expect(&self, &old, "[" TELL("notifications/initialized", "{}") "]", 202, NULL);
    expect(
        &self, &old,
        "[1,[],{\"jsonrpc\":\"2.0\",\"id\":4},{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"},"
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"initialize\"}]",
        200, "\"id\":4,\"error\"");
    expect(&self, &old, "[{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"initialize\"}]", 200,
           "initialize must not be part of a batch");
    buf many;
    buf_init(&many, 1 << 20);
    for (int i = 0; i < 257; i++) {
        buf_str(&many, i == 0 ? STR("[1") : STR(",1"));
    }
    buf_append(&many, "]\0", 2);
    expect(&self, &old, many.at, 400, "too many");
    buf_fini(&many);
    bench_fini(&self);
}

static void a_batch_is_answered_when_its_last_call_is(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy who;
    legacy_begin(&self, &who, INITIALIZE("2025-03-26"));
    wire through;
    static const char calls[] = "[" SAY("1", "tools/call", TOOL) "," SAY("2", "ping", "{}") "," SAY(
        "3", "tools/call", TOOL) "," SAY("4", "tools/call", TOOL) "]";
    post(&self, &who, &through, calls);
    expect(&self, &who, TELL("notifications/cancelled", "{\"requestId\":3}"), 202, NULL);
    assert_int_equal(through.answers, 0);
    while (self.held_count > 0) {
        bench_answer(&self, bench_take(&self));
    }
    assert_int_equal(through.status, 200);
    assert_has(through.body, "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},");
    assert_has(through.body, "\"id\":1,");
    assert_has(through.body, "\"id\":4,");
    assert_lacks(through.body, "\"id\":3,");
    wire_fini(&through);

    post(&self, &who, &through, calls); /* one of them speaks first: it becomes a stream */
    mcp_request *last = bench_take(&self);
    assert_int_equal(mcp_request_progress(last, 1, STR("\"progress\":1")), BAY_OK);
    assert_has(through.event[1], "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
    bench_answer(&self, last);
    while (self.held_count > 0) {
        assert_int_equal(through.ends, 0);
        bench_answer(&self, bench_take(&self));
    }
    assert_int_equal(through.ends, 1);
    assert_int_equal(through.events, 6);
    wire_fini(&through);
    bench_fini(&self);
}

static void a_batch_has_its_sessions_caller(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire through;
    bench_http_as(&self, &through, "POST", plain_fields, INITIALIZE("2025-03-26"), "ann");
    char id[64];
    memcpy(id, through.session, sizeof(id));
    wire_fini(&through);
    field with[] = {JSON_TYPE, BOTH, {"Mcp-Session-Id", id}, {NULL, NULL}};
    bench_http_as(&self, &through, "POST", with, "[" SAY("1", "tools/call", TOOL) "]", "ann");
    mcp_request *request = bench_take(&self);
    assert_true(request->principal == person("ann"));
    bench_answer(&self, request);
    assert_int_equal(through.status, 200);
    wire_fini(&through);
    bench_fini(&self);
}

/* ---- duplex */

static void a_connection_waits_for_an_era(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, "garbage");
    assert_has(last_event(&line), "\"id\":null,\"error\":{\"code\":-32700");
    duplex_say(&self, &line, SAY("1", "tools/list", "{}"));
    assert_has(last_event(&line), "\"id\":1,\"error\":{\"code\":-32600");
    duplex_say(&self, &line, SAY("1", "ping", "{}"));
    assert_string_equal(last_event(&line), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    int before = line.events;
    duplex_say(&self, &line, TELL("notifications/initialized", "{}"));
    duplex_say(&self, &line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_int_equal(line.events, before);
    duplex_say(&self, &line, INITIALIZE("2025-03-26"));
    assert_has(last_event(&line), "\"protocolVersion\":\"2025-03-26\"");
    duplex_say(&self, &line, INITIALIZE("2025-03-26"));
    assert_has(last_event(&line), "-32600");
    duplex_say(&self, &line, SAY("1", "tools/list", "{}"));
    assert_has(last_event(&line), "\"result\":{\"content\":[]}");
    duplex_say(&self, &line, "[" SAY("1", "ping", "{}") "," SAY("1", "ping", "{}") "]");
    assert_has(last_event(&line), "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},");
    duplex_say(&self, &line, CALL("5", ""));
    assert_has(last_event(&line), "\"resultType\":\"complete\"");
    assert_int_equal(mcp_server_session_count(self.server), 1);
    duplex_close(&line);
    assert_int_equal(mcp_server_session_count(self.server), 0);
    wire_fini(&line);
    bench_fini(&self);
}

static void a_connection_speaks_both_eras_at_once(void **state)
{
    (void)state;
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    wire line;
    duplex_open(&self, &line);
    duplex_say(&self, &line, INITIALIZE("2025-11-25"));
    duplex_say(&self, &line, SAY("2", "tools/call", TOOL));
    duplex_say(&self, &line, CALL("2", ""));
    assert_has(last_event(&line), "\"id\":2,\"error\":{\"code\":-32600");
    duplex_say(&self, &line, CALL("3", ""));
    assert_int_equal(mcp_connection_pending(line.connection), 2);
    duplex_say(&self, &line, TELL("notifications/cancelled", "{\"requestId\":3}"));
    assert_int_equal(self.cancels, 1);
    assert_int_equal(mcp_connection_pending(line.connection), 1);
    mcp_connection_drained(line.connection);
    assert_int_equal(self.drains, 2);
    line.event_err = BAY_ERR_AGAIN;
    assert_int_equal(
        mcp_request_log(self.held[0], MCP_LOG_ERROR, STR("{\"level\":\"error\",\"data\":\n1}")),
        BAY_ERR_AGAIN);
    assert_has(last_event(&line), "\"data\": 1}");
    int before = line.events;
    assert_int_equal(
        mcp_request_log(self.held[0], MCP_LOG_DEBUG, STR("{\"level\":\"debug\",\"data\":1}")),
        BAY_OK);
    assert_int_equal(line.events, before);
    duplex_close(&line);
    assert_int_equal(self.cancels, 2);
    wire_fini(&line);
    bench_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revisions_are_negotiated),
        cmocka_unit_test(initialize_needs_a_version),
        cmocka_unit_test(a_session_is_bound_to_its_id_and_caller),
        cmocka_unit_test(the_header_never_changes_the_sessions_revision),
        cmocka_unit_test(the_engine_answers_its_own_methods),
        cmocka_unit_test(results_are_undressed),
        cmocka_unit_test(an_id_is_used_once_at_a_time),
        cmocka_unit_test(cancelling_is_a_notification_of_ones_own),
        cmocka_unit_test(a_stream_is_primed_numbered_and_ended),
        cmocka_unit_test(a_client_that_names_the_stream_first_has_it),
        cmocka_unit_test(a_broken_stream_is_taken_up_again),
        cmocka_unit_test(an_end_that_was_written_can_be_had_again),
        cmocka_unit_test(a_second_connection_takes_the_stream_over),
        cmocka_unit_test(without_a_stream_a_lost_answer_is_dropped),
        cmocka_unit_test(a_client_is_asked_on_the_calls_own_stream),
        cmocka_unit_test(what_cannot_be_read_is_answered_all_the_same),
        cmocka_unit_test(batches_are_of_one_revision_only),
        cmocka_unit_test(a_batch_is_answered_when_its_last_call_is),
        cmocka_unit_test(a_batch_has_its_sessions_caller),
        cmocka_unit_test(a_connection_waits_for_an_era),
        cmocka_unit_test(a_connection_speaks_both_eras_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
