/* A client and an HTTP server that does what it should not: refuses, dies, forgets sessions, cuts
 * streams, answers something else. What may have been executed is not sent again. */
#include "unit/sdk/client_peer.h"

#include "base/str.h"
#include "sdk/client_parts.h"

enum { FAST_MS = 20 };

static bay_client_options *fast(void)
{
    bay_client_options *options = bay_client_options_new();
    assert_non_null(options);
    bay_client_options_reconnect(options, 3, FAST_MS);
    bay_client_options_timeout(options, 20000, 0);
    return options;
}

/* Takes the options. */
static bay_client *connect_to(peer *self, bay_client_options *options)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    if (bay_client_connect(self->url, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static bay_err call(bay_client *client, const char *tool, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_err err = bay_client_call(client, tool, NULL, &reply, diag);
    assert_true((err == BAY_OK) == (reply != NULL));
    bay_reply_free(reply);
    return err;
}

static void assert_says(const bay_diag *diag, const char *text)
{
    if (strstr(diag->text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", diag->text, text);
    }
}

/* ---- connecting -------------------------------------------------------------------------------
 */

static void nobody(peer *self, const peer_message *message)
{
    (void)self, (void)message;
}

static void a_closed_port_is_told_at_once(void **state)
{
    peer server;
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, nobody, NULL, 0);
    peer_stop(&server);
    assert_int_equal(bay_client_connect(server.url, NULL, &client, &diag), BAY_ERR_CONNECT);
    assert_null(client);
    assert_int_equal(diag.code, BAY_ERR_CONNECT);
    assert_says(&diag, server.url);
    assert_says(&diag, "is the server running there?");
}

static void what_is_no_target_is_refused(void **state)
{
    static const char *const bad[] = {"",          "weather",      "ftp://x/", "http://",
                                      "http:///x", "https://a b/", "stdio:",   "stdio:'x"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_client *client = NULL;
        bay_diag diag = {0};
        bay_err err = bay_client_connect(bad[i], NULL, &client, &diag);
        if (err == BAY_OK || client != NULL || diag.text[0] == '\0') {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
    assert_int_equal(bay_client_connect(NULL, NULL, NULL, NULL), BAY_ERR_INVALID);
}

/* Whatever is wrong with it, a URL may hold a password or a token. */
static void a_bad_target_is_not_repeated(void **state)
{
    static const char *const bad[] = {
        "http://me:hush-hush@127.0.0.1:1/mcp",
        "http://me:hush-hush@[bad/mcp?token=hush-hush",
        "http://127.0.0.1:99999/mcp?token=hush-hush",
        "htps://me:hush-hush@x/y",
        "ftp://x/?token=hush-hush",
        "http://127.0.0.1:1/mcp?token=hush-hush",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_client *client = NULL;
        bay_diag diag = {0};
        assert_int_not_equal(bay_client_connect(bad[i], NULL, &client, &diag), BAY_OK);
        if (strstr(diag.text, "hush") != NULL) {
            fail_msg("%s", diag.text);
        }
    }
}

static void silent(peer *self, const peer_message *message)
{
    (void)self, (void)message;
}

static void a_server_that_never_answers_times_out(void **state)
{
    peer server;
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, silent, NULL, 0);
    bay_client_options *options = fast();
    bay_client_options_timeout(options, 50, 0);
    assert_int_equal(bay_client_connect(server.url, options, &client, &diag), BAY_ERR_TIMEOUT);
    bay_client_options_free(options);
    peer_stop(&server);
}

static void refusing(peer *self, const peer_message *message)
{
    peer_reply(self, message, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
}

static void refused_access_is_told_without_the_secret(void **state)
{
    peer server;
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, refusing, NULL, 0);
    bay_client_options *options = fast();
    bay_client_options_header(options, "Authorization", "Bearer hush-hush");
    assert_int_equal(bay_client_connect(server.url, options, &client, &diag), BAY_ERR_DENIED);
    assert_says(&diag, "Authorization");
    assert_null(strstr(diag.text, "hush"));
    assert_string_equal(peer_last_field(&server, "POST server/discover", "Authorization"),
                        "Bearer hush-hush");
    bay_client_options_free(options);
    peer_stop(&server);
}

static void junk(peer *self, const peer_message *message)
{
    static const char *const bodies[] = {"<html>hotel</html>",
                                         "{\"jsonrpc\":",
                                         "[]",
                                         "7",
                                         "",
                                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}"};
    int number = peer_number(self);
    peer_reply(self, message, "200 OK",
               number == 0 ? "Content-Type: text/html\r\n" : "Content-Type: application/json\r\n",
               bodies[number]);
}

static void junk_is_no_server(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        peer server;
        bay_client *client = NULL;
        bay_diag diag = {0};
        peer_start(&server, junk, NULL, 0);
        peer_set_number(&server, i);
        assert_int_not_equal(bay_client_connect(server.url, NULL, &client, &diag), BAY_OK);
        assert_null(client);
        assert_says(&diag, "cannot connect to http://127.0.0.1");
        peer_stop(&server);
    }
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void modern(peer *self, const peer_message *message)
{
    char tool[64];
    if (peer_modern(self, message)) {
        return;
    }
    peer_take_member(message->body, "\"name\":\"", "\"", tool, sizeof(tool));
    if (peer_is(message, "tools/list")) {
        peer_result(self, message, "",
                    "{\"resultType\":\"complete\",\"tools\":["
                    "{\"name\":\"read\",\"inputSchema\":{\"type\":\"object\"},"
                    "\"annotations\":{\"readOnlyHint\":true}},"
                    "{\"name\":\"same\",\"inputSchema\":{\"type\":\"object\"},"
                    "\"annotations\":{\"idempotentHint\":true}},"
                    "{\"name\":\"hang_up\",\"inputSchema\":{\"type\":\"object\"},"
                    "\"annotations\":{\"readOnlyHint\":false}}]}");
    } else if (strcmp(tool, "hang_up") == 0) {
        peer_hang_up(self, message->at);
    } else if (strcmp(tool, "read") == 0 || strcmp(tool, "same") == 0) {
        int number = peer_number(self);
        peer_set_number(self, number - 1);
        if (number > 0) {
            peer_hang_up(self, message->at);
        } else {
            peer_result(self, message, "", PEER_TEXT_RESULT("at last"));
        }
    } else if (strcmp(tool, "half") == 0) {
        peer_say(
            self, message,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{");
        peer_hang_up(self, message->at);
    } else if (strcmp(tool, "status") == 0) {
        peer_reply(self, message, "500 Internal Server Error", "", "it broke");
    } else if (strcmp(tool, "error") == 0) {
        peer_error(self, message, "200 OK", -32602, "no\\u0007pe");
    } else if (strcmp(tool, "silent") == 0) {
        return;
    } else if (strcmp(tool, "html") == 0) {
        peer_reply(self, message, "200 OK", "Content-Type: text/html\r\n", "<html>");
    } else if (strcmp(tool, "type") == 0) {
        peer_result(self, message, "", "{\"resultType\":\"invented\"}");
    } else if (peer_is(message, "ping")) {
        peer_error(self, message, "404 Not Found", -32601, "no ping");
    } else {
        peer_result(self, message, "", PEER_TEXT_RESULT("good"));
    }
}

static void what_may_have_been_executed_is_not_sent_again(void **state)
{
    peer server;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    assert_int_equal(call(client, "hang_up", &diag), BAY_ERR_CLOSED);
    assert_says(&diag, "may have been executed");
    assert_says(&diag, "tools/call \"hang_up\"");
    assert_int_equal(peer_count(&server, "POST tools/call"), 1);
    assert_int_equal(call(client, "half", &diag), BAY_ERR_CLOSED);
    assert_int_equal(peer_count(&server, "POST tools/call"), 2);
    assert_int_equal(call(client, "fine", &diag), BAY_OK); /* the next finds its way */
    bay_client_close(client);
    peer_stop(&server);
}

static const char *const hinted[] = {"read", "same"};

static void hints_are_not_believed_unasked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hinted); i++) {
        peer server;
        bay_diag diag = {0};
        bay_list *tools = NULL;
        peer_start(&server, modern, NULL, 0);
        bay_client *client = connect_to(&server, fast());
        assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &tools, &diag), BAY_OK);
        bay_list_free(tools);
        peer_set_number(&server, 1);
        assert_int_equal(call(client, hinted[i], &diag), BAY_ERR_CLOSED);
        assert_says(&diag, "may have been executed");
        assert_int_equal(peer_count(&server, "POST tools/call"), 1);
        bay_client_close(client);
        peer_stop(&server);
    }
}

static void what_is_trusted_to_do_no_harm_is_sent_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hinted); i++) {
        peer server;
        bay_diag diag = {0};
        peer_start(&server, modern, NULL, 0);
        bay_client_options *options = fast();
        bay_client_options_trust_hints(options);
        bay_client *client = connect_to(&server, options);
        peer_set_number(&server, 2);
        assert_int_equal(call(client, hinted[i], &diag), BAY_OK);
        assert_int_equal(peer_count(&server, "POST tools/call"), 3);
        peer_set_number(&server, 100);
        assert_int_equal(call(client, hinted[i], &diag), BAY_ERR_CLOSED); /* not for ever */
        assert_int_equal(peer_count(&server, "POST tools/call"), 6);
        bay_client_close(client);
        peer_stop(&server);
    }
}

static void odd_answers_are_told(void **state)
{
    static const struct {
        const char *tool;
        bay_err err;
        const char *text;
    } cases[] = {
        {"error", BAY_ERR_REMOTE, "error -32602: no\\u{7}pe"},
        {"status", BAY_ERR_CLOSED, "500"},
        {"html", BAY_ERR_PROTOCOL, "\"html\""},
        {"type", BAY_ERR_PROTOCOL, "resultType"},
    };
    peer server;
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_diag diag = {0};
        assert_int_equal(call(client, cases[i].tool, &diag), cases[i].err);
        assert_int_equal(diag.code, cases[i].err);
        assert_says(&diag, cases[i].text);
        bool is_remote = cases[i].err == BAY_ERR_REMOTE;
        assert_true((bay_client_remote_error(client).len > 0) == is_remote);
    }
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    assert_int_equal(bay_client_call(client, "x", "[]", &reply, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_call(client, "x", "{},\"y\":{}", &reply, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_call(client, "x", "{", &reply, &diag), BAY_ERR_INVALID);
    assert_says(&diag, "arguments");
    assert_int_equal(bay_client_call(client, NULL, NULL, &reply, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_call(NULL, "x", NULL, &reply, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_request(client, "tools/list", "[]", &reply, &diag),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_client_request(client, "initialize", NULL, &reply, &diag),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_client_request(client, "logging/setLevel", NULL, &reply, &diag),
                     BAY_ERR_UNSUPPORTED);
    assert_int_equal(bay_client_request(client, "com.example/x", "{\"a\":1}", &reply, &diag),
                     BAY_OK);
    bay_reply_free(reply);
    assert_null(strstr(diag.text, "secret"));
    assert_int_equal(bay_client_ping(client, &diag), BAY_OK);
    bay_client_close(client);
    peer_stop(&server);
}

static void silence_ends_by_the_time_limit(void **state)
{
    peer server;
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    bay_request *request = bay_request_tool(client, "silent", NULL);
    bay_request_timeout(request, 50, 0);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_ERR_TIMEOUT);
    assert_says(&diag, "\"silent\"");
    request = bay_request_tool(client, "silent", NULL);
    bay_request_timeout(request, 0, 50);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_ERR_TIMEOUT);
    assert_null(reply);
    assert_int_equal(call(client, "fine", &diag), BAY_OK);
    bay_client_close(client);
    peer_stop(&server);
}

/* ---- losing and finding it --------------------------------------------------------------------
 */

static void a_server_that_comes_back_is_found(void **state)
{
    peer first, second;
    bay_diag diag = {0};
    (void)state;
    peer_start(&first, modern, NULL, 0);
    bay_client *client = connect_to(&first, fast());
    assert_int_equal(call(client, "fine", &diag), BAY_OK);
    peer_stop(&first);
    assert_int_equal(call(client, "fine", &diag), BAY_ERR_CONNECT); /* gave up after a few tries */
    assert_says(&diag, "connection refused");
    peer_start(&second, modern, NULL, first.port);
    assert_int_equal(call(client, "fine", &diag), BAY_OK);
    bay_client_close(client);
    peer_stop(&second);
}

static void legacy(peer *self, const peer_message *message)
{
    char session[64];
    char current[64];
    char tool[64];
    snprintf(current, sizeof(current), "s%d", peer_number(self));
    peer_field(message->head, "Mcp-Session-Id", session, sizeof(session));
    bool is_call = peer_is(message, "tools/call");
    peer_take_member(message->body, "\"name\":\"", "\"", tool, sizeof(tool));
    if (is_call && strcmp(session, current) != 0) {
        peer_reply(self, message, "404 Not Found", "", "");
    } else if (is_call && strcmp(tool, "forget") == 0) {
        peer_set_number(self, peer_number(self) + 1);
        peer_result(self, message, "", PEER_TEXT_RESULT("who are you?"));
    } else if (!peer_legacy(self, message)) {
        peer_result(self, message, "", PEER_TEXT_RESULT("good"));
    }
}

static void a_forgotten_session_is_made_anew(void **state)
{
    peer server;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, legacy, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    assert_true(str_eq(bay_client_revision(client), STR("2025-11-25")));
    assert_true(str_eq(bay_client_instructions(client), STR("be kind")));
    assert_true(bay_client_has(client, "tools.listChanged"));
    assert_false(bay_client_has(client, "prompts"));
    assert_int_equal(call(client, "forget", &diag), BAY_OK);
    assert_int_equal(call(client, "fine", &diag), BAY_OK);
    assert_int_equal(peer_count(&server, "POST initialize"), 2);
    assert_string_equal(peer_last_field(&server, "POST tools/call", "Mcp-Session-Id"), "s1");
    bay_client_close(client);
    assert_int_equal(peer_count(&server, "DELETE "), 1);
    peer_stop(&server);
}

/* The stream of a call is cut after an event with an id; the rest is asked for by GET. */
static void cutting(peer *self, const peer_message *message)
{
    char last[64];
    if (strcmp(message->verb, "GET") == 0) {
        peer_field(message->head, "Last-Event-ID", last, sizeof(last));
        if (strcmp(last, "e1") != 0) {
            peer_reply(self, message, "405 Method Not Allowed", "", "");
            return;
        }
        char text[300];
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                 "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[{\"type\":"
                 "\"text\",\"text\":\"resumed\"}]}}\n\n",
                 peer_number(self));
        peer_say(self, message, text);
        peer_hang_up(self, message->at);
        return;
    }
    if (peer_is(message, "tools/call")) {
        peer_set_number(self, (int)strtol(message->id, NULL, 10));
        peer_say(self, message,
                 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                 "id: e1\nretry: 100\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
                 "\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n");
        peer_hang_up(self, message->at);
        return;
    }
    (void)peer_legacy(self, message);
}

static void a_cut_stream_is_resumed(void **state)
{
    peer server;
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    (void)state;
    peer_start(&server, cutting, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    bay_err err = bay_client_call(client, "any", NULL, &reply, &diag);
    if (err != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    assert_true(str_eq(bay_reply_text(reply, 0), STR("resumed")));
    bay_reply_free(reply);
    assert_int_equal(peer_count(&server, "POST tools/call"), 1);
    bay_client_close(client);
    peer_stop(&server);
}

/* HTTP+SSE: a stream that names where to post, and on which everything is answered. */
static void old_transport(peer *self, const peer_message *message)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                               "event: endpoint\ndata: /messages?session=1\n\n";
    char text[700];
    if (strcmp(message->verb, "GET") == 0) {
        self->user = (void *)(intptr_t)(message->at + 1);
        peer_say(self, message, head);
        return;
    }
    if (strncmp(message->head, "POST /messages?session=1 ", 25) != 0) {
        peer_reply(self, message, "405 Method Not Allowed", "", "");
        return;
    }
    peer_reply(self, message, "202 Accepted", "", "");
    const char *result =
        peer_is(message, "initialize")
            ? "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"tools\":{}},"
              "\"serverInfo\":{\"name\":\"old\",\"version\":\"1\"}}"
            : "{\"content\":[{\"type\":\"text\",\"text\":\"old\"}]}";
    if (message->id[0] != '\0') {
        snprintf(text, sizeof(text),
                 "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n",
                 message->id, result);
        peer_write(self, (int)(intptr_t)self->user - 1, text, strlen(text));
    }
}

static void the_transport_is_found_or_as_told(void **state)
{
    static const bay_transport transports[] = {BAY_TRANSPORT_AUTO, BAY_TRANSPORT_SSE_2024,
                                               BAY_TRANSPORT_HTTP};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(transports); i++) {
        peer server;
        bay_client *client = NULL;
        bay_diag diag = {0};
        bay_client_options *options = fast();
        bay_client_options_transport(options, transports[i]);
        peer_start(&server, old_transport, NULL, 0);
        bay_err err = bay_client_connect(server.url, options, &client, &diag);
        bay_client_options_free(options);
        if (transports[i] == BAY_TRANSPORT_HTTP) {
            assert_int_not_equal(err, BAY_OK);
            assert_says(&diag, "405");
            assert_int_equal(peer_count(&server, "GET "), 0);
        } else {
            assert_int_equal(err, BAY_OK);
            assert_true(str_eq(bay_client_revision(client), STR("2024-11-05")));
            assert_int_equal(call(client, "any", &diag), BAY_OK);
        }
        bay_client_close(client);
        peer_stop(&server);
    }
}

/* ---- event loops and cancelling ---------------------------------------------------------------
 */

typedef struct ending {
    int count;
    bay_err err;
    bool has_reply;
    bay_client *again; /* `done` starts another one */
} ending;

static void on_done(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    ending *self = user;
    (void)request;
    self->count++;
    self->err = diag->code;
    self->has_reply = reply != NULL;
    bay_reply_free(reply);
    if (self->again != NULL) {
        bay_diag why = {0};
        bay_reply *none = NULL;
        bay_client *client = self->again;
        self->again = NULL;
        assert_int_equal(bay_client_call(client, "fine", NULL, &none, &why), BAY_ERR_STATE);
        bay_client_close(client); /* says so in the log, and does nothing */
        assert_int_equal(
            bay_request_start(bay_request_tool(client, "fine", NULL), NULL, on_done, self), BAY_OK);
    }
}

static void turn_until(bay_client *client, const int *count, int wanted)
{
    for (int left = 10000; *count < wanted && left > 0; left--) {
        struct pollfd polled = {.fd = bay_client_fd(client), .events = POLLIN};
        int wait = bay_client_wait_ms(client);
        (void)poll(&polled, 1, wait < 0 || wait > 1000 ? 1000 : wait);
        bay_err err = bay_client_dispatch(client);
        assert_true(err == BAY_OK || err == BAY_ERR_CLOSED);
    }
    assert_int_equal(*count, wanted);
}

static void on_connected(bay_client *client, const bay_diag *diag, void *user)
{
    ending *self = user;
    (void)client;
    self->count++;
    self->err = diag->code;
}

static void a_client_lives_in_an_event_loop(void **state)
{
    peer server;
    bay_client *client = NULL;
    ending connected = {0};
    ending end = {0};
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_client_options *options = fast();
    assert_int_equal(
        bay_client_connect_start(server.url, options, &client, NULL, on_connected, &connected),
        BAY_OK);
    bay_client_options_free(options);
    assert_int_equal(connected.count, 0);
    end.again = client;
    bay_request *request = bay_request_tool(client, "early", NULL); /* before it is connected */
    assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    assert_int_equal(end.count, 0);
    turn_until(client, &end.count, 2);
    assert_int_equal(end.err, BAY_OK);
    assert_true(end.has_reply);
    assert_int_equal(connected.count, 1);
    assert_int_equal(connected.err, BAY_OK);
    bay_client_close(client);
    peer_stop(&server);
}

static void a_connect_that_fails_is_told_once(void **state)
{
    peer server;
    bay_client *client = NULL;
    ending connected = {0};
    ending end = {0};
    (void)state;
    peer_start(&server, nobody, NULL, 0);
    peer_stop(&server);
    assert_int_equal(
        bay_client_connect_start(server.url, NULL, &client, NULL, on_connected, &connected),
        BAY_OK);
    bay_request *request = bay_request_tool(client, "early", NULL);
    assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    turn_until(client, &end.count, 1);
    assert_int_equal(end.err, BAY_ERR_CONNECT);
    assert_int_equal(connected.count, 1);
    assert_int_equal(connected.err, BAY_ERR_CONNECT);
    assert_int_equal(bay_client_dispatch(client), BAY_ERR_CLOSED);
    bay_client_close(client);
}

static void a_request_is_cancelled_in_every_state(void **state)
{
    peer server;
    bay_client *client = NULL;
    ending end = {0};
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_request_cancel(NULL, NULL);
    assert_int_equal(bay_client_connect_start(server.url, NULL, &client, NULL, NULL, NULL), BAY_OK);
    /* not started */
    bay_request *request = bay_request_tool(client, "silent", NULL);
    bay_request_cancel(request, "never");
    bay_request_free(request);
    /* before the connection stands */
    request = bay_request_tool(client, "silent", NULL);
    assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    bay_request_cancel(request, "early");
    bay_request_cancel(request, "twice");
    bay_request_free(request); /* started: not ours to free */
    assert_int_equal(end.count, 0);
    turn_until(client, &end.count, 1);
    assert_int_equal(end.err, BAY_ERR_CANCELLED);
    /* while the server has it */
    request = bay_request_tool(client, "silent", NULL);
    assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    while (peer_count(&server, "POST tools/call") == 0) {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    bay_request_cancel(request, NULL);
    turn_until(client, &end.count, 2);
    assert_int_equal(end.err, BAY_ERR_CANCELLED);
    /* by the end of the client: with the server, waiting, answered and not told */
    for (int i = 0; i < 3; i++) {
        request = bay_request_tool(client, "silent", NULL);
        assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    }
    bay_request_cancel(request, NULL);
    bay_client_close(client);
    assert_int_equal(end.count, 5);
    assert_int_equal(end.err, BAY_ERR_CANCELLED);
    peer_stop(&server);
}

static void started_twice_is_refused(void **state)
{
    peer server;
    ending end = {0};
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, modern, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    bay_request *request = bay_request_tool(client, "fine", NULL);
    assert_int_equal(bay_request_start(request, NULL, on_done, &end), BAY_OK);
    assert_int_equal(bay_request_start(request, &diag, on_done, &end), BAY_ERR_STATE);
    assert_int_equal(bay_request_start(NULL, &diag, on_done, &end), BAY_ERR_NOMEM);
    turn_until(client, &end.count, 1);
    bay_client_close(client);
    bay_client_close(NULL);
    peer_stop(&server);
}

static void compressing(peer *self, const peer_message *message)
{
    if (!peer_modern(self, message)) {
        peer_result(self, message, "Content-Encoding: gzip\r\n", PEER_TEXT_RESULT("x"));
    }
}

static void a_compressed_reply_is_told(void **state)
{
    peer server;
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    (void)state;
    peer_start(&server, compressing, NULL, 0);
    bay_client *client = connect_to(&server, fast());
    assert_int_equal(bay_client_read(client, "file:///a", &reply, &diag), BAY_ERR_PROTOCOL);
    assert_says(&diag, "content encoding \"gzip\"");
    bay_client_close(client);
    peer_stop(&server);
}

/* ---- ending inside the end --------------------------------------------------------------------
 */

typedef struct closer {
    bay_client *client;
    int count;
    bay_err waited;
} closer;

static void close_again(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    closer *self = user;
    bay_reply *other = NULL;
    (void)request;
    assert_int_equal(diag->code, BAY_ERR_CANCELLED);
    self->count++;
    bay_reply_free(reply);
    self->waited = bay_client_call(self->client, "x", NULL, &other, NULL);
    bay_client_close(self->client);
}

static void silent_after_hello(peer *self, const peer_message *message)
{
    (void)peer_modern(self, message);
}

typedef struct meddler {
    bay_client *client; /* NULL: it looks on */
    int count;
} meddler;

static void meddle(bay_client *client, bool is_outgoing, bay_str message, void *user)
{
    meddler *self = user;
    bay_reply *reply = NULL;
    bay_list *made = NULL;
    (void)is_outgoing, (void)message;
    if (self->client == NULL) {
        return;
    }
    self->count++;
    assert_int_equal(bay_client_call(client, "x", NULL, &reply, NULL), BAY_ERR_STATE);
    assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &made, NULL), BAY_ERR_STATE);
    assert_int_equal(bay_client_ping(client, NULL), BAY_ERR_STATE);
    assert_int_equal(bay_client_wait(client, 0), BAY_ERR_STATE);
    bay_client_close(client);
}

static void on_nothing(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    (void)request, (void)diag;
    *(int *)user += 1;
    bay_reply_free(reply);
}

/* It runs inside the start of a request, too, where the loop stands still. */
static void who_sees_messages_cannot_end_the_client(void **state)
{
    peer server;
    meddler self = {0};
    int ended = 0;
    (void)state;
    peer_start(&server, silent_after_hello, NULL, 0);
    bay_client_options *options = fast();
    bay_client_options_on_message(options, meddle, &self);
    self.client = connect_to(&server, options);
    bay_request *request = bay_request_new(self.client, "resources/read", "{\"uri\":\"a\"}");
    assert_int_equal(bay_request_start(request, NULL, on_nothing, &ended), BAY_OK);
    assert_true(self.count > 0);
    bay_client_close(self.client);
    assert_int_equal(ended, 1);
    peer_stop(&server);
}

/* The client that is being closed is closed once, whatever its callbacks do. */
static void a_close_inside_a_close_does_nothing(void **state)
{
    peer server;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, silent_after_hello, NULL, 0);
    closer self = {.client = connect_to(&server, fast())};
    for (int i = 0; i < 3; i++) {
        bay_request *request = bay_request_new(self.client, "resources/read", "{\"uri\":\"a\"}");
        assert_int_equal(bay_request_start(request, &diag, close_again, &self), BAY_OK);
    }
    bay_client_close(self.client);
    assert_int_equal(self.count, 3);
    assert_int_equal(self.waited, BAY_ERR_STATE);
    peer_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_port_is_told_at_once),
        cmocka_unit_test(what_is_no_target_is_refused),
        cmocka_unit_test(a_bad_target_is_not_repeated),
        cmocka_unit_test(a_server_that_never_answers_times_out),
        cmocka_unit_test(refused_access_is_told_without_the_secret),
        cmocka_unit_test(junk_is_no_server),
        cmocka_unit_test(what_may_have_been_executed_is_not_sent_again),
        cmocka_unit_test(hints_are_not_believed_unasked),
        cmocka_unit_test(what_is_trusted_to_do_no_harm_is_sent_again),
        cmocka_unit_test(odd_answers_are_told),
        cmocka_unit_test(silence_ends_by_the_time_limit),
        cmocka_unit_test(a_server_that_comes_back_is_found),
        cmocka_unit_test(a_forgotten_session_is_made_anew),
        cmocka_unit_test(a_cut_stream_is_resumed),
        cmocka_unit_test(the_transport_is_found_or_as_told),
        cmocka_unit_test(a_client_lives_in_an_event_loop),
        cmocka_unit_test(a_connect_that_fails_is_told_once),
        cmocka_unit_test(a_request_is_cancelled_in_every_state),
        cmocka_unit_test(started_twice_is_refused),
        cmocka_unit_test(a_compressed_reply_is_told),
        cmocka_unit_test(a_close_inside_a_close_does_nothing),
        cmocka_unit_test(who_sees_messages_cannot_end_the_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
