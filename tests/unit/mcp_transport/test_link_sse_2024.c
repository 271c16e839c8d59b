/* The deprecated HTTP+SSE transport as a client, against a server that says what the test tells it
 * to. */
#include "link_peer.h"

#define INITIALIZED                                                                                \
    "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"tools\":{}},"                         \
    "\"serverInfo\":{\"name\":\"p\",\"version\":\"1\"}}"
#define STREAM_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define ENDPOINT "event: endpoint\ndata: messages?session=1\n\n"

static void open_link(peer *self, bool is_sse_2024)
{
    peer_init(self);
    bay_diag diag = {0};
    http_field field = {STR("Authorization"), STR("Bearer s3cret")};
    mcp_link_options options = owner_options(&self->on);
    assert_int_equal(mcp_link_open_http(self->on.loop, self->http, str_of(self->url), &field, 1,
                                        is_sse_2024, &options, &self->on.link, &diag),
                     BAY_OK);
}

static void take_stream(peer *self, peer_request *stream)
{
    PEER_REQUEST(self, stream);
    assert_true(strncmp(stream->head, "GET /mcp HTTP/1.1\r\n", 19) == 0);
    assert_string_equal(peer_field(stream, "Accept"), "text/event-stream");
    assert_string_equal(peer_field(stream, "Authorization"), "Bearer s3cret");
}

static void tell(peer *self, const peer_request *stream, const char *id, const char *result)
{
    char event[4096];
    snprintf(event, sizeof(event), "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id,
             result);
    peer_say(self, stream, event);
}

/* From the endpoint to READY. */
static void shake_hands(peer *self, const peer_request *stream)
{
    peer_request request;
    PEER_REQUEST(self, &request);
    assert_true(strncmp(request.head, "POST /messages?session=1 HTTP/1.1\r\n", 35) == 0);
    assert_string_equal(peer_field(&request, "Authorization"), "Bearer s3cret");
    assert_non_null(strstr(request.body, "\"initialize\""));
    assert_non_null(strstr(request.body, "2025-11-25"));
    peer_reply(self, &request, "202 Accepted", "", "Accepted");
    tell(self, stream, request.id, INITIALIZED);
    PEER_REQUEST(self, &request);
    assert_non_null(strstr(request.body, "\"notifications/initialized\""));
    peer_reply(self, &request, "202 Accepted", "", "");
    LINK_UNTIL(self->on.loop, self->on.readies == 1);
}

static void begin_ready(peer *self, peer_request *stream)
{
    open_link(self, true);
    take_stream(self, stream);
    peer_say(self, stream, STREAM_HEAD ENDPOINT);
    shake_hands(self, stream);
}

static void test_bad_streams(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        bay_err err;
        const char *text;
    } cases[] = {
        {"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", BAY_ERR_PROTOCOL, "404"},
        {"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", BAY_ERR_DENIED, "401"},
        {"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", BAY_ERR_BUSY, "503"},
        {"HTTP/1.1 302 No\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", BAY_ERR_PROTOCOL,
         "redirect"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
         BAY_ERR_PROTOCOL, "not an event stream"},
        {STREAM_HEAD "event: endpoint\ndata: http://example.com/steal\n\n", BAY_ERR_DENIED,
         "another origin"},
        {STREAM_HEAD "event: endpoint\ndata: //127.0.0.1:1/steal\n\n", BAY_ERR_DENIED,
         "another origin"},
        {STREAM_HEAD "event: endpoint\ndata: https:/x\n\n", BAY_ERR_DENIED, "another origin"},
        {STREAM_HEAD "event: endpoint\ndata: a b\n\n", BAY_ERR_PROTOCOL, "no URL"},
        {STREAM_HEAD, BAY_ERR_CLOSED, ""},
        {STREAM_HEAD "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", BAY_ERR_CLOSED, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        peer on;
        answer out;
        peer_request stream;
        open_link(&on, true);
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        take_stream(&on, &stream);
        peer_say(&on, &stream, cases[i].reply);
        settle(on.on.loop);
        peer_hang_up(&on, stream.at);
        LINK_UNTIL(on.on.loop, on.on.breaks == 1);
        if (on.on.err != cases[i].err || strstr(on.on.text, cases[i].text) == NULL) {
            fail_msg("case %zu: %s, \"%s\"", i, bay_err_text(on.on.err), on.on.text);
        }
        assert_int_equal(out.dones, 1);
        assert_false(out.was_sent);
        settle(on.on.loop);
        assert_false(peer_take(&on, &stream)); /* nothing was posted anywhere */
        answer_fini(&out);
        peer_fini(&on);
    }
}

static void test_call(void **state)
{
    (void)state;
    peer on;
    answer out, other;
    peer_request stream, request, second;
    begin_ready(&on, &stream);
    assert_string_equal(on.on.revision, "2024-11-05");
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    assert_int_equal(ask(&other, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    PEER_REQUEST(&on, &second);
    peer_say(&on, &stream, ": a comment\n\nevent: endpoint\ndata: /elsewhere\n\n"); /* too late */
    tell(&on, &stream, second.id, "{\"n\":2}"); /* before its POST is answered */
    tell(&on, &stream, request.id, "{\"n\":1}");
    LINK_UNTIL(on.on.loop, out.dones == 1 && other.dones == 1);
    peer_reply(&on, &request, "202 Accepted", "", "Accepted");
    peer_reply(&on, &second, "202 Accepted", "", "Accepted");
    settle(on.on.loop);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    assert_int_equal(other.kind, MCP_OUTCOME_RESULT);
    answer_fini(&out);
    answer_fini(&other);
    peer_fini(&on);
}

/* Everything comes on the one stream: another in reply to a message is not kept. */
static void test_post_answered_by_a_stream(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request stream, request;
    begin_ready(&on, &stream);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    peer_say(&on, &request, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    LINK_UNTIL(on.on.loop, peer_is_closed(&on, &request));
    assert_int_equal(out.dones, 0);
    tell(&on, &stream, request.id, "{\"n\":1}");
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    answer_fini(&out);
    peer_fini(&on);
}

static void test_refused_post(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        bay_err err;
    } cases[] = {{"403 Forbidden", BAY_ERR_DENIED},
                 {"500 Oops", BAY_ERR_CLOSED},
                 {"413 Too Large", BAY_ERR_LIMIT},
                 {"307 Elsewhere", BAY_ERR_PROTOCOL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        peer on;
        answer out;
        peer_request stream, request;
        begin_ready(&on, &stream);
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        PEER_REQUEST(&on, &request);
        peer_reply(&on, &request, cases[i].status, "", "");
        LINK_UNTIL(on.on.loop, out.dones == 1);
        assert_int_equal(out.kind, MCP_OUTCOME_FAILED);
        assert_int_equal(out.err, cases[i].err);
        settle(on.on.loop);
        assert_int_equal(on.on.breaks, 0); /* the others go on */
        answer_fini(&out);
        peer_fini(&on);
    }
}

static void test_stream_breaks(void **state)
{
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        peer on;
        answer out;
        peer_request stream, request;
        begin_ready(&on, &stream);
        on.on.frees_on_break = frees == 1;
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        PEER_REQUEST(&on, &request);
        peer_hang_up(&on, stream.at);
        LINK_UNTIL(on.on.loop, on.on.breaks == 1);
        assert_int_equal(on.on.err, BAY_ERR_CLOSED);
        assert_int_equal(out.dones, 1);
        assert_true(out.was_sent);
        settle(on.on.loop);
        answer_fini(&out);
        peer_fini(&on);
    }
}

/* Neither era at the URL: initialize is refused, the stream is there. */
static void test_falls_back(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request stream, request;
    open_link(&on, false);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    assert_non_null(strstr(request.body, "\"initialize\""));
    peer_reply(&on, &request, "405 Method Not Allowed", "", "");
    take_stream(&on, &stream);
    peer_say(&on, &stream, STREAM_HEAD ENDPOINT);
    shake_hands(&on, &stream);
    PEER_REQUEST(&on, &request);
    assert_non_null(strstr(request.body, "\"tools/list\""));
    peer_reply(&on, &request, "202 Accepted", "", "");
    tell(&on, &stream, request.id, "{\"tools\":[]}");
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    assert_int_equal(on.on.breaks, 0);
    answer_fini(&out);
    peer_fini(&on);
}

static void test_close(void **state)
{
    (void)state;
    /* before the endpoint, after it, and freed while it closes */
    for (int when = 0; when < 3; when++) {
        peer on;
        peer_request stream;
        if (when == 0) {
            open_link(&on, true);
            take_stream(&on, &stream);
        } else {
            begin_ready(&on, &stream);
        }
        mcp_link_close(on.on.link, owner_closed, &on.on);
        assert_int_equal(on.on.closes, 0);
        if (when == 2) {
            owner_free(&on.on);
            settle(on.on.loop);
        } else {
            LINK_UNTIL(on.on.loop, on.on.closes == 1);
        }
        LINK_UNTIL(on.on.loop, peer_is_closed(&on, &stream));
        assert_int_equal(on.on.closes, when == 2 ? 0 : 1);
        assert_int_equal(on.on.breaks, 0);
        peer_fini(&on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_streams),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_refused_post),
        cmocka_unit_test(test_stream_breaks),
        cmocka_unit_test(test_falls_back),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_post_answered_by_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
