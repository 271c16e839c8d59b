/* One suite for every way a client reaches a server: what goes in comes out alike over Streamable
 * HTTP of both eras, HTTP+SSE and stdio. Each row drives its transport with a raw scripted client.
 */
#include "mcp_transport/stdio.h"
#include "support/server_rig.h"

enum { POSTS_MAX = 16, INBOX_MAX = 4200 };

typedef struct fixture fixture;

typedef struct driver {
    const char *name;
    bool is_modern;
    bool is_http;      /* Streamable HTTP: a connection for each message */
    bool gone_cancels; /* a lost connection cancels its requests */
    void (*open)(fixture *self);
    void (*say)(fixture *self, const char *method, const char *name, const char *json);
    void (*pump)(fixture *self);
    void (*hang_up)(fixture *self); /* every connection, at once */
} driver;

struct fixture {
    const driver *by;
    server_rig rig;
    wire_client posts[POSTS_MAX];
    size_t post_count;
    wire_client stream; /* HTTP+SSE; or the client's end of the lines */
    bool has_stream;
    char session[64];
    char target[256]; /* HTTP+SSE: where messages go */
    mcp_stdio *stdio;
    bool is_done;
    char *inbox[INBOX_MAX];
    size_t inbox_count;
    size_t lines_read;
};

/* ---- what comes in --------------------------------------------------------------------------- */

/* A copy with a NUL behind it; for free(). (strndup may look behind the bytes it is given.) */
static char *text_dup(bay_str text)
{
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

static void keep(fixture *self, bay_str json)
{
    if (json.len > 0) {
        assert_true(self->inbox_count < INBOX_MAX);
        self->inbox[self->inbox_count++] = text_dup(json);
    }
}

static void forget(fixture *self)
{
    for (size_t i = 0; i < self->inbox_count; i++) {
        free(self->inbox[i]);
    }
    self->inbox_count = 0;
}

static const char *find(const fixture *self, const char *text)
{
    for (size_t i = 0; i < self->inbox_count; i++) {
        if (strstr(self->inbox[i], text) != NULL) {
            return self->inbox[i];
        }
    }
    return NULL;
}

static void pump(fixture *self)
{
    self->by->pump(self);
}

/* The first message with `text` in it, once it has come. */
static const char *expect(fixture *self, const char *text)
{
    TURN_UNTIL(self->rig.loop, pump(self), find(self, text) != NULL);
    return find(self, text);
}

static void say(fixture *self, int id, const char *method, const char *name, const char *params)
{
    char json[2048];
    const char *meta = self->by->is_modern
                           ? "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                             "\"io.modelcontextprotocol/clientCapabilities\":{},"
                           : "";
    char member[64] = "";
    if (name != NULL) {
        snprintf(member, sizeof(member), "\"name\":\"%s\",", name);
    }
    snprintf(json, sizeof(json),
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{%s%s\"_meta\":{%s"
             "\"progressToken\":\"p%d\"}}}",
             id, method, member, params, meta, id);
    self->by->say(self, method, name, json);
}

static void call(fixture *self, int id, const char *name)
{
    say(self, id, "tools/call", name, "\"arguments\":{},");
}

/* ---- Streamable HTTP ------------------------------------------------------------------------- */

static uint16_t port_of(fixture *self)
{
    return http_server_port(self->rig.http);
}

static void post(fixture *self, const char *target, const char *fields, const char *json)
{
    assert_true(self->post_count < POSTS_MAX);
    wire_request(&self->posts[self->post_count++], self->rig.loop, port_of(self), "POST", target,
                 fields, json);
}

static void modern_say(fixture *self, const char *method, const char *name, const char *json)
{
    char fields[512];
    snprintf(fields, sizeof(fields),
             WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s", method,
             name != NULL ? "Mcp-Name: " : "", name != NULL ? name : "",
             name != NULL ? "\r\n" : "");
    post(self, "/mcp", fields, json);
}

static void legacy_say(fixture *self, const char *method, const char *name, const char *json)
{
    char fields[512];
    (void)method;
    (void)name;
    snprintf(fields, sizeof(fields),
             WIRE_JSON "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\n", self->session);
    post(self, "/mcp", fields, json);
}

static void read_events(fixture *self, wire_client *from)
{
    sse_block block;
    while (wire_event(from, &block)) {
        if (str_eq(block.name, STR("endpoint"))) {
            snprintf(self->target, sizeof(self->target), "%.*s", BAY_STR(block.data));
        } else if (block.kind == SSE_EVENT) {
            keep(self, block.data);
        }
    }
}

static void http_pump(fixture *self)
{
    for (size_t i = 0; i < self->post_count; i++) {
        wire_client *one = &self->posts[i];
        bool was_complete = one->is_complete;
        wire_pump(one);
        if (one->is_stream) {
            read_events(self, one);
        } else if (one->is_complete && !was_complete) {
            keep(self, buf_view(&one->body));
        }
    }
    if (self->has_stream) {
        wire_pump(&self->stream);
        read_events(self, &self->stream);
    }
}

static void http_hang_up(fixture *self)
{
    for (size_t i = 0; i < self->post_count; i++) {
        wire_close(&self->posts[i]);
    }
    self->post_count = 0;
    if (self->has_stream) {
        wire_close(&self->stream);
        self->has_stream = false;
    }
}

static void modern_open(fixture *self)
{
    rig_open(&self->rig, NULL, 0);
    say(self, 1, "server/discover", NULL, "");
    assert_non_null(strstr(expect(self, "\"id\":1"), "\"supportedVersions\":[\"2026-07-28\"]"));
}

static void legacy_open(fixture *self)
{
    rig_open(&self->rig, NULL, 0);
    wire_initialize(self->rig.loop, port_of(self), self->session);
    legacy_say(self, "", NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    TURN_UNTIL(self->rig.loop, pump(self), self->posts[0].is_complete);
    assert_int_equal(self->posts[0].status, 202);
}

/* ---- HTTP+SSE -------------------------------------------------------------------------------- */

static void sse_say(fixture *self, const char *method, const char *name, const char *json)
{
    (void)method;
    (void)name;
    post(self, self->target, WIRE_JSON, json);
    wire_client *mine = &self->posts[self->post_count - 1];
    TURN_UNTIL(self->rig.loop, wire_pump(mine), mine->is_complete);
    assert_int_equal(mine->status, 202);
    assert_int_equal(mine->body.len, 0);
    wire_close(mine);
    self->post_count--;
}

static void initialize(fixture *self)
{
    self->by->say(self, "initialize", NULL, WIRE_INITIALIZE);
    const char *answer = expect(self, "\"id\":0");
    assert_non_null(strstr(answer, "\"protocolVersion\":\"2025-11-25\""));
    self->by->say(self, "", NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

static void sse_open(fixture *self)
{
    rig_open(&self->rig, NULL, 0);
    wire_request(&self->stream, self->rig.loop, port_of(self), "GET", "/sse",
                 "Accept: text/event-stream\r\n", NULL);
    self->has_stream = true;
    TURN_UNTIL(self->rig.loop, pump(self), self->target[0] != '\0');
    assert_memory_equal(self->target, "/messages?sessionId=0-", 22);
    assert_int_equal(strlen(self->target), 22 + 32);
    initialize(self);
}

/* ---- stdio ----------------------------------------------------------------------------------- */

static void lines_say(fixture *self, const char *method, const char *name, const char *json)
{
    (void)method;
    (void)name;
    wire_send(&self->stream, self->rig.loop, json, strlen(json));
    wire_send(&self->stream, self->rig.loop, "\n", 1);
}

static void lines_pump(fixture *self)
{
    char bytes[65536];
    wire_client *from = &self->stream;
    while (from->fd >= 0 && !from->is_over) {
        ssize_t got = recv(from->fd, bytes, sizeof(bytes), 0);
        if (got <= 0) {
            from->is_over = got == 0;
            break;
        }
        buf_append(&from->got, bytes, (size_t)got);
    }
    bay_str rest = str_from(buf_view(&from->got), self->lines_read);
    size_t end;
    while ((end = str_find(rest, '\n')) < rest.len) {
        keep(self, str_head(rest, end));
        rest = str_from(rest, end + 1);
        self->lines_read += end + 1;
    }
}

static void lines_hang_up(fixture *self)
{
    wire_close(&self->stream);
}

static void on_stdio_done(void *user)
{
    fixture *self = user;
    assert_false(self->is_done);
    self->is_done = true;
}

static void lines_open(fixture *self)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(loop_new(&self->rig.loop), BAY_OK);
    service_open(&self->rig.service, 0);
    int out = dup(ends[1]);
    assert_true(out >= 0);
    assert_int_equal(mcp_stdio_new(self->rig.loop, self->rig.service.engine, ends[1], out, 60000,
                                   on_stdio_done, self, &self->stdio),
                     BAY_OK);
    wire_init(&self->stream, ends[0]);
    if (!self->by->is_modern) {
        initialize(self);
    }
}

static const driver drivers[] = {
    {"Streamable HTTP, modern", true, true, true, modern_open, modern_say, http_pump, http_hang_up},
    {"Streamable HTTP, legacy", false, true, false, legacy_open, legacy_say, http_pump,
     http_hang_up},
    {"HTTP+SSE", false, false, true, sse_open, sse_say, http_pump, http_hang_up},
    {"stdio, legacy", false, false, false, lines_open, lines_say, lines_pump, lines_hang_up},
    {"stdio, modern", true, false, false, lines_open, lines_say, lines_pump, lines_hang_up},
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    fixture *self = calloc(1, sizeof(*self));
    self->by = *state;
    self->stream.fd = -1;
    self->by->open(self);
    forget(self);
    *state = self;
    return 0;
}

static int tear_down(void **state)
{
    fixture *self = *state;
    self->by->hang_up(self);
    mcp_stdio_free(self->stdio);
    rig_close(&self->rig);
    forget(self);
    free(self);
    return 0;
}

/* ---- the cases ------------------------------------------------------------------------------- */

static void invalid_json_is_refused(void **state)
{
    fixture *self = *state;
    self->by->say(self, "tools/list", NULL, "{\"jsonrpc\":\"2.0\",\"id\":7,");
    (void)expect(self, "-32700");
    say(self, 8, "tools/list", NULL, "");
    (void)expect(self, "\"id\":8,\"result\"");
}

static void an_unknown_method_is_not_found(void **state)
{
    fixture *self = *state;
    say(self, 2, "no/such", NULL, "");
    assert_non_null(strstr(expect(self, "\"id\":2"), "-32601"));
    if (self->by->is_http) {
        assert_int_equal(self->posts[self->post_count - 1].status, self->by->is_modern ? 404 : 200);
    }
}

static void ping_is_answered_where_it_exists(void **state)
{
    fixture *self = *state;
    say(self, 3, "ping", NULL, "");
    const char *answer = expect(self, "\"id\":3");
    assert_non_null(strstr(answer, self->by->is_modern ? "-32601" : "\"result\":{}"));
}

static void tools_are_listed(void **state)
{
    fixture *self = *state;
    say(self, 4, "tools/list", NULL, "");
    assert_non_null(strstr(expect(self, "\"id\":4"), "{\"name\":\"echo\",\"inputSchema\""));
}

static void a_result_keeps_its_bytes(void **state)
{
    fixture *self = *state;
    call(self, 5, "echo");
    assert_non_null(strstr(expect(self, "\"id\":5"), "\"text\":\"0.1000 \\u00e9\""));
}

static void an_error_keeps_its_data(void **state)
{
    fixture *self = *state;
    call(self, 6, "fail");
    const char *answer = expect(self, "\"id\":6");
    assert_non_null(strstr(answer, "\"code\":-32602"));
    assert_non_null(strstr(answer, "\"data\":{\"why\":1}"));
}

static void progress_comes_before_the_result(void **state)
{
    fixture *self = *state;
    call(self, 9, "progress");
    (void)expect(self, "\"id\":9");
    assert_int_equal(self->inbox_count, 4);
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof(text), "\"progress\":%d,\"total\":3", i + 1);
        assert_non_null(strstr(self->inbox[i], "notifications/progress"));
        assert_non_null(strstr(self->inbox[i], "\"progressToken\":\"p9\""));
        assert_non_null(strstr(self->inbox[i], text));
    }
}

static void a_large_result_arrives_whole(void **state)
{
    fixture *self = *state;
    call(self, 10, "large");
    const char *answer = expect(self, "\"id\":10");
    assert_true(strlen(answer) > LARGE_BYTES);
    const char *text = strstr(answer, "xxx");
    assert_non_null(text);
    assert_int_equal(strspn(text, "x"), LARGE_BYTES);
    assert_memory_equal(text + LARGE_BYTES, "end\"}]", 6);
}

static void answers_come_in_any_order(void **state)
{
    fixture *self = *state;
    call(self, 11, "hold");
    TURN_UNTIL(self->rig.loop, pump(self), self->rig.service.held_count == 1);
    call(self, 12, "echo");
    (void)expect(self, "\"id\":12");
    assert_null(find(self, "\"id\":11"));
    service_finish(&self->rig.service);
    assert_non_null(strstr(expect(self, "\"id\":11"), "was held"));
}

static void a_cancelled_call_has_no_answer(void **state)
{
    fixture *self = *state;
    call(self, 13, "hold");
    TURN_UNTIL(self->rig.loop, pump(self), self->rig.service.held_count == 1);
    if (self->by->is_http && self->by->is_modern) {
        self->by->hang_up(self); /* closing the reply is how a modern client cancels */
    } else {
        self->by->say(self, "notifications/cancelled", NULL,
                      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                      "\"requestId\":13}}");
    }
    TURN_UNTIL(self->rig.loop, pump(self), self->rig.service.cancelled == 1);
    service_finish(&self->rig.service);
    call(self, 14, "echo");
    (void)expect(self, "\"id\":14");
    assert_null(find(self, "\"id\":13"));
}

/* The service reads its request after the peer and everything of it is gone. */
static void a_call_outlives_its_peer(void **state)
{
    fixture *self = *state;
    call(self, 15, "hold");
    TURN_UNTIL(self->rig.loop, pump(self), self->rig.service.held_count == 1);
    self->by->hang_up(self);
    if (self->by->gone_cancels) {
        TURN_UNTIL(self->rig.loop, (void)0, self->rig.service.cancelled == 1);
    } else if (self->stdio == NULL) {
        TURN_UNTIL(self->rig.loop, (void)0, http_server_connections(self->rig.http) == 0);
        assert_int_equal(self->rig.service.cancelled, 0);
    }
    service_finish(&self->rig.service);
    if (self->stdio != NULL) {
        TURN_UNTIL(self->rig.loop, (void)0, self->is_done); /* the answer met a closed pipe */
    }
}

/* A client that does not read stops the service, and starts it again by reading. */
static void a_slow_reader_holds_the_service_back(void **state)
{
    fixture *self = *state;
    call(self, 16, "flood");
    TURN_UNTIL(self->rig.loop, (void)0, self->rig.service.flooded > 0);
    for (int i = 0; i < 50; i++) {
        (void)loop_turn(self->rig.loop, 0); /* the kernel's buffers fill, nobody reads */
    }
    int stopped_at = self->rig.service.flooded;
    assert_non_null(self->rig.service.flooding);
    assert_int_equal(self->rig.service.drained, 0);
    assert_true(stopped_at < 1024); /* 32 KiB each: far below what was to be sent */
    size_t read = 0;
    TURN_UNTIL(self->rig.loop, (pump(self), read += self->inbox_count, forget(self)),
               self->rig.service.flooding == NULL);
    assert_true(self->rig.service.drained > 1);
    assert_true(self->rig.service.flooded > stopped_at);
    TURN_UNTIL(self->rig.loop, (pump(self), read += self->inbox_count, forget(self)),
               read == (size_t)self->rig.service.flooded + 1);
}

/* What is under way is still answered; then the server is through. */
static void a_graceful_end_answers_first(void **state)
{
    fixture *self = *state;
    call(self, 17, "hold");
    TURN_UNTIL(self->rig.loop, pump(self), self->rig.service.held_count == 1);
    if (self->stdio != NULL) {
        assert_int_equal(shutdown(self->stream.fd, SHUT_WR), 0);
    } else {
        mcp_http_router_close_streams(self->rig.router);
        http_server_drain(self->rig.http, 60000, rig_is_drained, &self->rig);
    }
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(self->rig.loop, 0);
    }
    assert_false(self->is_done);
    assert_false(self->rig.is_drained);
    assert_int_equal(self->rig.service.cancelled, 0);
    service_finish(&self->rig.service);
    assert_non_null(strstr(expect(self, "\"id\":17"), "was held"));
    TURN_UNTIL(self->rig.loop, pump(self), self->is_done || self->rig.is_drained);
}

#define CASES 13

int main(void)
{
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } cases[CASES] = {
#define CASE(function) {#function, function}
        CASE(invalid_json_is_refused),          CASE(an_unknown_method_is_not_found),
        CASE(ping_is_answered_where_it_exists), CASE(tools_are_listed),
        CASE(a_result_keeps_its_bytes),         CASE(an_error_keeps_its_data),
        CASE(progress_comes_before_the_result), CASE(a_large_result_arrives_whole),
        CASE(answers_come_in_any_order),        CASE(a_cancelled_call_has_no_answer),
        CASE(a_call_outlives_its_peer),         CASE(a_slow_reader_holds_the_service_back),
        CASE(a_graceful_end_answers_first),
    };
    static struct CMUnitTest tests[ARRAY_LEN(drivers) * CASES];
    static char names[ARRAY_LEN(drivers) * CASES][96];
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        for (size_t j = 0; j < CASES; j++) {
            size_t at = i * CASES + j;
            snprintf(names[at], sizeof(names[at]), "%s: %s", drivers[i].name, cases[j].name);
            tests[at] = (struct CMUnitTest){.name = names[at],
                                            .test_func = cases[j].run,
                                            .setup_func = set_up,
                                            .teardown_func = tear_down,
                                            .initial_state = (void *)(uintptr_t)&drivers[i]};
        }
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
