/* The Streamable HTTP link against a server that answers what the test tells it to. */
#include "link_peer.h"

#define INITIALIZED                                                                                \
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"                         \
    "\"serverInfo\":{\"name\":\"p\",\"version\":\"1\"}}"
#define RESULT_OF(id, text) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" text "}"

static void open_with(peer *self, mcp_link_options *options, const http_field *fields, size_t count)
{
    bay_diag diag = {0};
    assert_int_equal(mcp_link_open_http(self->on.loop, self->http, str_of(self->url), fields, count,
                                        false, options, &self->on.link, &diag),
                     BAY_OK);
    assert_int_equal(self->on.readies + self->on.breaks, 0);
}

static void begin(peer *self)
{
    peer_init(self);
    mcp_link_options options = owner_options(&self->on);
    options.client.max_message_bytes = 8192;
    open_with(self, &options, NULL, 0);
}

/* The handshake; the link is ready, with a session. */
static void shake_hands(peer *self)
{
    peer_request request;
    PEER_REQUEST(self, &request);
    assert_non_null(strstr(request.body, "\"initialize\""));
    peer_result(self, &request, JSON_TYPE "Mcp-Session-Id: abc\r\n", INITIALIZED);
    PEER_REQUEST(self, &request);
    assert_non_null(strstr(request.body, "\"notifications/initialized\""));
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "abc");
    peer_reply(self, &request, "202 Accepted", "", "");
    LINK_UNTIL(self->on.loop, self->on.readies == 1);
}

static void begin_ready(peer *self)
{
    begin(self);
    shake_hands(self);
}

static void test_cannot_open(void **state)
{
    (void)state;
    peer on;
    bay_diag diag = {0};
    peer_init(&on);
    mcp_link_options options = owner_options(&on.on);
    static const char *const urls[] = {
        "", "mcp", "ftp://h/", "http://", "http://u:p@h/x", "http://h /", "http://h:99999/"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        assert_int_equal(mcp_link_open_http(on.on.loop, on.http, str_of(urls[i]), NULL, 0, false,
                                            &options, &on.on.link, &diag),
                         BAY_ERR_INVALID);
        assert_true(diag.text[0] != '\0');
    }
    static const http_field bad[] = {{STR_INIT("Bad Name"), STR_INIT("x")},
                                     {STR_INIT("X"), STR_INIT("secret\r\nY: z")},
                                     {STR_INIT(""), STR_INIT("x")}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(mcp_link_open_http(on.on.loop, on.http, str_of(on.url), &bad[i], 1, false,
                                            &options, &on.on.link, &diag),
                         BAY_ERR_INVALID);
        assert_null(strstr(diag.text, "secret"));
    }
    assert_null(on.on.link);
    peer_fini(&on);
}

static void test_request_bytes(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request request;
    peer_init(&on);
    mcp_link_options options = owner_options(&on.on);
    http_field fields[] = {{STR("Authorization"), STR("Bearer s3cret")},
                           {STR("accept"), STR("text/html")},
                           {STR("X-Mine"), STR("")}};
    open_with(&on, &options, fields, 3);
    PEER_REQUEST(&on, &request);
    assert_true(strncmp(request.head, "POST /mcp HTTP/1.1\r\n", 20) == 0);
    assert_string_equal(peer_field(&request, "Authorization"), "Bearer s3cret");
    assert_string_equal(peer_field(&request, "Accept"), "application/json, text/event-stream");
    assert_string_equal(peer_field(&request, "Content-Type"), "application/json");
    assert_non_null(strstr(request.head, "\r\nX-Mine:"));
    assert_null(strstr(request.head, "text/html"));
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "");
    peer_result(&on, &request, JSON_TYPE "mcp-session-id: abc\r\n", INITIALIZED);
    PEER_REQUEST(&on, &request);
    peer_reply(&on, &request, "202 Accepted", "", "");
    LINK_UNTIL(on.on.loop, on.on.readies == 1);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    assert_string_equal(peer_field(&request, "Authorization"), "Bearer s3cret");
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "abc");
    assert_string_equal(peer_field(&request, "MCP-Protocol-Version"), "2025-06-18");
    peer_result(&on, &request, "Content-Type: application/JSON; charset=utf-8\r\n",
                "{\"tools\":[]}");
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_true(answer_has(&out, "{\"tools\":[]}"));
    answer_fini(&out);
    peer_fini(&on);
}

/* What was called meanwhile does not overtake notifications/initialized. */
static void test_nothing_overtakes_initialized(void **state)
{
    (void)state;
    peer on;
    answer out[3];
    peer_request request, initialized;
    begin(&on);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ask(&out[i], &on.on, "tools/list", NULL), BAY_OK);
    }
    PEER_REQUEST(&on, &request);
    peer_result(&on, &request, JSON_TYPE, INITIALIZED);
    PEER_REQUEST(&on, &initialized);
    assert_non_null(strstr(initialized.body, "\"notifications/initialized\""));
    settle(on.on.loop);
    assert_false(peer_take(&on, &request));
    mcp_call_cancel(out[1].call, STR("no more")); /* one that waits; its notice waits as well */
    settle(on.on.loop);
    assert_false(peer_take(&on, &request));
    peer_reply(&on, &initialized, "202 Accepted", "", "");
    for (size_t i = 0; i < 4; i++) {
        PEER_REQUEST(&on, &request);
        if (request.id[0] != '\0') {
            peer_result(&on, &request, JSON_TYPE, "{\"tools\":[]}");
        } else {
            peer_reply(&on, &request, "202 Accepted", "", "");
        }
    }
    LINK_UNTIL(on.on.loop, out[0].dones == 1 && out[2].dones == 1);
    assert_int_equal(out[0].kind, MCP_OUTCOME_RESULT);
    assert_int_equal(out[1].dones, 0);
    for (size_t i = 0; i < 3; i++) {
        answer_fini(&out[i]);
    }
    peer_fini(&on);
}

/* One call whose reply is `text` (with %s for the id), cut after `cut` bytes (0: whole), followed
 * by the end of the connection. */
static void scripted(answer *out, const char *text, size_t cut)
{
    peer on;
    peer_request request;
    char reply[16384];
    begin_ready(&on);
    assert_int_equal(ask(out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    int len = 0;
    const char *mark = strstr(text, "%s");
    len = mark == NULL ? snprintf(reply, sizeof(reply), "%s", text)
                       : snprintf(reply, sizeof(reply), "%.*s%s%s", (int)(mark - text), text,
                                  request.id, mark + 2);
    size_t first = cut > 0 && cut < (size_t)len ? cut : (size_t)len;
    peer_send(&on, request.at, reply, first);
    settle(on.on.loop);
    peer_send(&on, request.at, reply + first, (size_t)len - first);
    settle(on.on.loop);
    peer_hang_up(&on, request.at);
    while (out->dones == 0) { /* a request may come again when its connection was a stale one */
        (void)loop_turn(on.on.loop, 5);
        if (peer_take(&on, &request)) {
            peer_hang_up(&on, request.at);
        }
    }
    peer_fini(&on);
}

static void test_bad_replies(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        bay_err err;
        bool was_sent;
        const char *text;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
         BAY_ERR_PROTOCOL, true, "content type \"text/html\""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", BAY_ERR_PROTOCOL, true,
         "content type \"\""},
        {"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
         BAY_ERR_PROTOCOL, false, "redirects are not followed"},
        {"HTTP/1.1 303 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", BAY_ERR_PROTOCOL,
         true, "HTTP status 303"},
        {EVENTS_HEAD, BAY_ERR_CLOSED, true, ""},
        {EVENTS_HEAD "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", BAY_ERR_CLOSED, true,
         ""}, /* no empty line: no event */
        {EVENTS_HEAD "event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n",
         BAY_ERR_CLOSED, true, ""},
        {EVENTS_HEAD ": nothing\n\ndata: garbage\n\n", BAY_ERR_PROTOCOL, true, ""},
        {"HTTP/1.1 200 OK\r\n" JSON_TYPE "Content-Length: 7\r\n\r\ngarbage", BAY_ERR_PROTOCOL, true,
         ""},
        {"HTTP/1.1 200 OK\r\n" JSON_TYPE "Content-Length: 100\r\n\r\n{", BAY_ERR_CLOSED, true, ""},
        {"HTTP/1.1 200 OK\r\n" JSON_TYPE "Content-Length: 99999\r\n\r\n%s", BAY_ERR_CLOSED, true,
         ""},
        {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", BAY_ERR_CLOSED, true, ""},
        {"HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n", BAY_ERR_DENIED, false, ""},
        {"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\noops",
         BAY_ERR_CLOSED, true, "500"},
        {"no http at all\r\n\r\n", BAY_ERR_PROTOCOL, true, ""},
        {"", BAY_ERR_CLOSED, true, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        answer out;
        scripted(&out, cases[i].reply, 0);
        if (out.kind != MCP_OUTCOME_FAILED || out.err != cases[i].err ||
            out.was_sent != cases[i].was_sent || strstr(out.text, cases[i].text) == NULL) {
            fail_msg("case %zu: kind %d, %s, was_sent %d, \"%s\"", i, (int)out.kind,
                     bay_err_text(out.err), out.was_sent, out.text);
        }
        answer_fini(&out);
    }
}

static void test_json_error_status(void **state)
{
    (void)state;
    answer out;
    scripted(&out,
             "HTTP/1.1 400 No\r\n" JSON_TYPE "Connection: close\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":"
             "%s,\"error\":{\"code\":-32602,\"message\":\"bad\"}}",
             0);
    assert_int_equal(out.kind, MCP_OUTCOME_ERROR);
    assert_int_equal(out.code, -32602);
    answer_fini(&out);
}

static void test_events_split_everywhere(void **state)
{
    (void)state;
    static const char reply[] = EVENTS_HEAD
        "\xEF\xBB\xBF: hi\r\nid: 1\r\ndata\r\n\r\nevent: message\rid: 2\r"
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\r"
        "data: \"params\":{\"progressToken\":2,\"progress\":1}}\r\r"
        "data: {\"jsonrpc\":\"2.0\",\ndata:\"id\":%s,\"result\":{\"ok\":\"\xC3\xA9\"}}\n\n";
    for (size_t cut = sizeof(EVENTS_HEAD) - 3; cut < sizeof(reply); cut++) {
        answer out;
        scripted(&out, reply, cut);
        assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
        assert_int_equal(out.notes, 1);
        assert_true(answer_has(&out, "{\"ok\":\"\xC3\xA9\"}"));
        answer_fini(&out);
    }
}

static void test_replies_over_the_bound(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\n" JSON_TYPE "Connection: close\r\n\r\n{\"a\":\"",
        EVENTS_HEAD "data: {\"a\":\"",
    };
    for (size_t i = 0; i < 2; i++) {
        peer on;
        answer out;
        peer_request request;
        char much[1024];
        memset(much, 'x', sizeof(much));
        begin_ready(&on);
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        PEER_REQUEST(&on, &request);
        peer_say(&on, &request, heads[i]);
        for (int k = 0; k < 10; k++) {
            peer_send(&on, request.at, much, sizeof(much));
        }
        LINK_UNTIL(on.on.loop, out.dones == 1);
        assert_int_equal(out.err, BAY_ERR_LIMIT);
        assert_true(out.was_sent);
        assert_non_null(strstr(out.text, "8192 bytes"));
        LINK_UNTIL(on.on.loop, peer_is_closed(&on, &request));
        answer_fini(&out);
        peer_fini(&on);
    }
}

static void test_refused_and_silent(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request request;
    /* nobody there */
    begin(&on);
    close(on.listener);
    on.listener = -1;
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    LINK_UNTIL(on.on.loop, on.on.breaks == 1);
    assert_int_equal(on.on.err, BAY_ERR_CONNECT);
    assert_int_equal(out.dones, 1);
    assert_false(out.was_sent);
    answer_fini(&out);
    peer_fini(&on);
    /* nobody says anything */
    peer_init(&on);
    mcp_link_options options = owner_options(&on.on);
    options.client.call_timeout_ms = 200;
    open_with(&on, &options, NULL, 0);
    shake_hands(&on);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.err, BAY_ERR_TIMEOUT);
    assert_true(out.was_sent);
    assert_int_equal(on.on.breaks, 0);
    answer_fini(&out);
    peer_fini(&on);
}

static void test_session_lost(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request request;
    begin_ready(&on);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    PEER_REQUEST(&on, &request);
    peer_reply(&on, &request, "404 Not Found", "", "");
    PEER_REQUEST(&on, &request);
    assert_non_null(strstr(request.body, "\"initialize\""));
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "");
    peer_result(&on, &request, JSON_TYPE "Mcp-Session-Id: second\r\n", INITIALIZED);
    PEER_REQUEST(&on, &request);
    peer_reply(&on, &request, "202 Accepted", "", "");
    PEER_REQUEST(&on, &request);
    assert_non_null(strstr(request.body, "\"tools/list\""));
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "second");
    peer_result(&on, &request, JSON_TYPE, "{\"tools\":[]}");
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    answer_fini(&out);
    peer_fini(&on);
}

/* Cancelling a modern call closes its exchange; a legacy one is told. */
static void test_cancel(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request request;
    peer_init(&on);
    mcp_link_options options = owner_options(&on.on);
    options.client.newest = options.client.oldest = MCP_LATEST;
    open_with(&on, &options, NULL, 0);
    PEER_REQUEST(&on, &request);
    assert_non_null(strstr(request.body, "\"server/discover\""));
    peer_result(
        &on, &request, JSON_TYPE,
        "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
        "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"p\",\"version\":\"1\"}}");
    LINK_UNTIL(on.on.loop, on.on.readies == 1);
    assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"t\",\"arguments\":{}}"), BAY_OK);
    PEER_REQUEST(&on, &request);
    assert_string_equal(peer_field(&request, "Mcp-Method"), "tools/call");
    assert_string_equal(peer_field(&request, "Mcp-Name"), "t");
    peer_say(&on, &request, EVENTS_HEAD ": wait\n\n");
    settle(on.on.loop);
    mcp_call_cancel(out.call, STR("enough"));
    LINK_UNTIL(on.on.loop, peer_is_closed(&on, &request));
    settle(on.on.loop);
    assert_int_equal(out.dones, 0);
    answer_fini(&out);
    peer_fini(&on);
}

static void test_inside_callbacks(void **state)
{
    (void)state;
    static const char note[] = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                               "\"params\":{\"progressToken\":2,\"progress\":1}}\n\n";
    for (int what = 0; what < 3; what++) {
        peer on;
        answer out;
        peer_request request, later;
        char reply[1024];
        begin_ready(&on);
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        PEER_REQUEST(&on, &request);
        out.frees_on_note = what == 0;
        out.cancels_on_note = what == 1;
        out.frees_on_done = what == 2;
        snprintf(reply, sizeof(reply),
                 "%s%s%sdata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", EVENTS_HEAD, note,
                 note, request.id);
        peer_say(&on, &request, reply);
        LINK_UNTIL(on.on.loop, what == 1 ? out.notes > 0 : on.on.is_freed);
        settle(on.on.loop);
        assert_int_equal(out.notes, what == 2 ? 2 : 1);
        assert_int_equal(out.dones, what == 1 ? 0 : 1);
        if (what == 1) {
            PEER_REQUEST(&on, &later);
            assert_non_null(strstr(later.body, "notifications/cancelled"));
        }
        answer_fini(&out);
        peer_fini(&on);
    }
}

/* While its receiver is slow nothing of a call is told, also what was read already; then all of
 * it, in order. */
static void test_pause(void **state)
{
    (void)state;
    peer on;
    answer out;
    peer_request request;
    char reply[4096];
    begin_ready(&on);
    assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
    out.pauses_on_note = true;
    PEER_REQUEST(&on, &request);
    static const char note[] = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                               "\"params\":{\"progressToken\":2,\"progress\":1}}\n\n";
    snprintf(reply, sizeof(reply),
             "%s%s%s%sdata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", EVENTS_HEAD, note,
             note, note, request.id);
    peer_say(&on, &request, reply);
    peer_hang_up(&on, request.at);
    for (int heard = 1; heard <= 3; heard++) {
        LINK_UNTIL(on.on.loop, out.notes == heard);
        settle(on.on.loop);
        assert_int_equal(out.notes, heard);
        assert_int_equal(out.dones, 0);
        mcp_call_pause(out.call, false);
        assert_int_equal(out.notes, heard); /* not inside the call */
    }
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    answer_fini(&out);
    peer_fini(&on);
}

static void test_get_stream(void **state)
{
    (void)state;
    peer on;
    peer_request request;
    peer_init(&on);
    mcp_link_options options = owner_options(&on.on);
    options.client.wants_changes = true;
    open_with(&on, &options, NULL, 0);
    shake_hands(&on);
    PEER_REQUEST(&on, &request);
    assert_true(strncmp(request.head, "GET /mcp HTTP/1.1\r\n", 19) == 0);
    assert_string_equal(peer_field(&request, "Accept"), "text/event-stream");
    assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "abc");
    assert_string_equal(peer_field(&request, "Last-Event-ID"), "");
    peer_say(&on, &request,
             EVENTS_HEAD "retry: 100\nid: e7\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
                         "\"notifications/tools/list_changed\"}\n\n");
    LINK_UNTIL(on.on.loop, on.on.changes == 1);
    peer_hang_up(&on, request.at);
    PEER_REQUEST(&on, &request); /* it is taken up again */
    assert_string_equal(peer_field(&request, "Last-Event-ID"), "e7");
    peer_reply(&on, &request, "405 Method Not Allowed", "", "");
    settle(on.on.loop);
    assert_int_equal(on.on.breaks, 0);
    peer_fini(&on);
}

static void test_close(void **state)
{
    (void)state;
    /* how the server takes the DELETE */
    for (int manner = 0; manner < 4; manner++) {
        peer on;
        answer out;
        peer_request request, call;
        begin_ready(&on);
        on.on.frees_on_close = manner == 1;
        assert_int_equal(ask(&out, &on.on, "tools/list", NULL), BAY_OK);
        PEER_REQUEST(&on, &call);
        mcp_link_close(on.on.link, owner_closed, &on.on);
        assert_int_equal(out.dones, 1);
        assert_int_equal(out.err, BAY_ERR_CANCELLED);
        assert_int_equal(on.on.closes, 0);
        PEER_REQUEST(&on, &request);
        assert_true(strncmp(request.head, "DELETE /mcp HTTP/1.1\r\n", 22) == 0);
        assert_string_equal(peer_field(&request, "Mcp-Session-Id"), "abc");
        if (manner == 0) {
            peer_reply(&on, &request, "204 No Content", "", "");
        } else if (manner == 1) {
            peer_reply(&on, &request, "405 Method Not Allowed", "", "");
        } else if (manner == 2) {
            peer_hang_up(&on, request.at);
        } else {
            owner_free(&on.on); /* does not wait for it */
            settle(on.on.loop);
            assert_int_equal(on.on.closes, 0);
            answer_fini(&out);
            peer_fini(&on);
            continue;
        }
        LINK_UNTIL(on.on.loop, on.on.closes == 1);
        LINK_UNTIL(on.on.loop, peer_is_closed(&on, &call) || call.at == request.at);
        assert_int_equal(on.on.breaks, 0);
        answer_fini(&out);
        peer_fini(&on);
    }
}

/* The owner frees the link, or the HTTP client goes first. */
static void test_free_with_all_open(void **state)
{
    (void)state;
    for (int manner = 0; manner < 2; manner++) {
        peer on;
        answer out[20];
        peer_request request;
        begin_ready(&on);
        for (size_t i = 0; i < ARRAY_LEN(out); i++) {
            assert_int_equal(ask(&out[i], &on.on, "tools/list", NULL), BAY_OK);
        }
        PEER_REQUEST(&on, &request);
        if (manner == 1) {
            http_client_free(on.http);
            http_client_options options = {.limits = http_client_default_limits};
            assert_int_equal(http_client_new(on.on.loop, &options, &on.http), BAY_OK);
        } else {
            owner_free(&on.on);
        }
        for (size_t i = 0; i < ARRAY_LEN(out); i++) {
            assert_int_equal(out[i].dones, 1);
            assert_int_equal(out[i].err, BAY_ERR_CANCELLED);
            answer_fini(&out[i]);
        }
        peer_fini(&on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cannot_open),
        cmocka_unit_test(test_request_bytes),
        cmocka_unit_test(test_nothing_overtakes_initialized),
        cmocka_unit_test(test_bad_replies),
        cmocka_unit_test(test_json_error_status),
        cmocka_unit_test(test_events_split_everywhere),
        cmocka_unit_test(test_replies_over_the_bound),
        cmocka_unit_test(test_refused_and_silent),
        cmocka_unit_test(test_session_lost),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_inside_callbacks),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_get_stream),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_free_with_all_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
