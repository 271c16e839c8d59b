/* A small service behind an engine, and raw clients driven by the same thread: what the transports'
 * tests share. Waiting turns the loop until the expected thing has happened; the bound in time only
 * ends a test that would never end. */
#ifndef TESTS_SERVER_RIG_H
#define TESTS_SERVER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/str.h"
#include "front/front.h"
#include "mcp/server.h"
#include "mcp_transport/http_router.h"
#include "wire/sse.h"

enum { GIVE_UP_MS = 20000, HELD_MAX = 16, LARGE_BYTES = 5 * 1024 * 1024, FLOOD_BYTES = 32 * 1024 };

static inline int64_t test_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Turns `on_loop` until `condition`; `step` runs in between. */
#define TURN_UNTIL(on_loop, step, condition)                                                       \
    do {                                                                                           \
        int64_t turn_end = test_now_ms() + GIVE_UP_MS;                                             \
        for (;;) {                                                                                 \
            step;                                                                                  \
            if (condition) {                                                                       \
                break;                                                                             \
            }                                                                                      \
            assert_true(test_now_ms() < turn_end);                                                 \
            (void)loop_turn((on_loop), 1);                                                         \
        }                                                                                          \
    } while (0)

/* ---- the service ----------------------------------------------------------------------------- */

typedef struct test_service {
    mcp_server *engine;
    mcp_request *held[HELD_MAX];
    size_t held_count;
    mcp_request *flooding;
    int flooded;
    int calls;
    int cancelled;
    int drained;
    int sessions;
} test_service;

static inline void service_flood(test_service *self)
{
    static char line[FLOOD_BYTES];
    memset(line, 'f', sizeof(line));
    while (self->flooding != NULL) {
        char members[FLOOD_BYTES + 64];
        int len = snprintf(members, sizeof(members), "\"progress\":%d,\"message\":\"%.*s\"",
                           ++self->flooded, (int)sizeof(line) - 64, line);
        bay_err err =
            mcp_request_progress(self->flooding, self->flooded, (bay_str){members, (size_t)len});
        if (err == BAY_ERR_AGAIN) {
            return;
        }
        if (err != BAY_OK || self->flooded >= 4096 || (self->flooded >= 512 && self->drained > 1)) {
            mcp_request *over = self->flooding;
            self->flooding = NULL;
            mcp_request_result_members(over, STR("\"content\":[]"));
        }
    }
}

static inline void service_call(test_service *self, mcp_request *request)
{
    self->calls++;
    if (str_eq(request->name, STR("hold"))) {
        assert_true(self->held_count < HELD_MAX);
        self->held[self->held_count++] = request;
    } else if (str_eq(request->name, STR("progress"))) {
        for (int i = 1; i <= 3; i++) {
            char members[64];
            int len = snprintf(members, sizeof(members), "\"progress\":%d,\"total\":3", i);
            bay_err err = mcp_request_progress(request, i, (bay_str){members, (size_t)len});
            assert_int_equal(err, BAY_OK);
        }
        mcp_request_result_members(request, STR("\"content\":[]"));
    } else if (str_eq(request->name, STR("fail"))) {
        mcp_request_error(request, RPC_INVALID_PARAMS, STR("no such thing"), STR("{\"why\":1}"));
    } else if (str_eq(request->name, STR("large"))) {
        buf members;
        buf_init(&members, LARGE_BYTES + 128);
        buf_lit(&members, "\"content\":[{\"type\":\"text\",\"text\":\"");
        assert_true(buf_reserve(&members, LARGE_BYTES + 16));
        memset(members.at + members.len, 'x', LARGE_BYTES);
        members.len += LARGE_BYTES;
        buf_lit(&members, "end\"}]");
        mcp_request_result_members(request, buf_view(&members));
        buf_fini(&members);
    } else if (str_eq(request->name, STR("flood"))) {
        self->flooding = request;
        self->flooded = 0;
        service_flood(self);
    } else {
        mcp_request_result_members(
            request, STR("\"content\":[{\"type\":\"text\",\"text\":\"0.1000 \\u00e9\"}]"));
    }
}

static inline void service_request(void *user, mcp_request *request)
{
    test_service *self = user;
    if (request->method != NULL && request->method->id == MCP_TOOLS_CALL) {
        service_call(self, request);
    } else if (request->method != NULL && request->method->id == MCP_TOOLS_LIST) {
        mcp_request_result_members(
            request, STR("\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]"));
    } else {
        mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("not here"), STR(""));
    }
}

static inline void service_cancelled(void *user, mcp_request *request)
{
    test_service *self = user;
    self->cancelled++;
    if (self->flooding == request) {
        self->flooding = NULL;
        mcp_request_result_members(request, STR(""));
    }
}

static inline void service_drained(void *user, mcp_request *request)
{
    test_service *self = user;
    if (self->flooding == request) {
        self->drained++;
        service_flood(self);
    }
}

static inline void service_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    (void)user;
    (void)revision;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{\"listChanged\":true}"));
}

static inline void service_session(void *user, mcp_session *session, bool is_open)
{
    test_service *self = user;
    (void)session;
    self->sessions += is_open ? 1 : -1;
}

/* Finishes the oldest held call; what it reads must still be there. */
static inline void service_finish(test_service *self)
{
    assert_true(self->held_count > 0);
    mcp_request *request = self->held[0];
    self->held_count--;
    memmove(self->held, self->held + 1, self->held_count * sizeof(self->held[0]));
    assert_true(str_eq(request->name, STR("hold")));
    assert_true(json_is(request->message.params, JSON_OBJECT));
    assert_true(json_str_eq(json_get(request->message.params, STR("name")), STR("hold")));
    mcp_request_result_members(request,
                               STR("\"content\":[{\"type\":\"text\",\"text\":\"was held\"}]"));
}

static const mcp_service test_service_table = {
    .request = service_request,
    .cancelled = service_cancelled,
    .drained = service_drained,
    .capabilities = service_capabilities,
    .session_changed = service_session,
};

static inline void service_open(test_service *self, uint32_t worker)
{
    *self = (test_service){0};
    mcp_server_options options = {.name = STR("test"),
                                  .version = STR("1"),
                                  .oldest = MCP_REV_2024_11_05,
                                  .newest = MCP_LATEST,
                                  .worker = worker};
    assert_int_equal(mcp_server_new(&options, &test_service_table, self, &self->engine), BAY_OK);
}

/* ---- a server on a free port ----------------------------------------------------------------- */

typedef struct server_rig {
    loop *loop;
    test_service service;
    http_server *http;
    http_front *front;
    mcp_http_router *router;
    int plain;
    bool is_drained;
} server_rig;

static inline mcp_server *rig_engine(void *user, bay_str path)
{
    server_rig *self = user;
    return str_eq(path, STR("/mcp")) ? self->service.engine : NULL;
}

static inline bool rig_endpoint(void *user, const front_request *request)
{
    server_rig *self = user;
    mcp_http_router_serve(self->router, request->exchange, self->service.engine,
                          request->principal);
    return true;
}

static inline bool rig_sse(void *user, const front_request *request)
{
    server_rig *self = user;
    mcp_http_router_serve_sse(self->router, request->exchange, self->service.engine,
                              request->principal);
    return true;
}

static inline bool rig_message(void *user, const front_request *request)
{
    mcp_http_router_serve_message(((server_rig *)user)->router, request->exchange,
                                  request->principal);
    return true;
}

static inline bool rig_plain(void *user, const front_request *request)
{
    server_rig *self = user;
    self->plain++;
    http_exchange_reply(request->exchange, 200, NULL, 0, STR("fine"));
    return true;
}

static const front_row rig_rows[] = {
    {STR_INIT("/mcp"), false, FRONT_CALLER, &mcp_http_router_cors, rig_endpoint, NULL},
    {STR_INIT("/sse"), false, FRONT_CALLER, &mcp_http_router_sse_cors, rig_sse, NULL},
    {STR_INIT("/messages"), false, FRONT_CALLER, &mcp_http_router_message_cors, rig_message, NULL},
    {STR_INIT("/healthz"), false, FRONT_PUBLIC, NULL, rig_plain, NULL},
};

/* What a test may set; the rest is set here. */
typedef struct rig_options {
    front_options front;
    mcp_http_router_options router;
    tls_context *tls; /* NULL: clear text */
} rig_options;

static inline bay_err rig_serve(server_rig *self, const rig_options *change, uint32_t worker)
{
    rig_options options = {.front.is_loopback = true};
    if (change != NULL) {
        options = *change;
    }
    options.router.worker = worker;
    options.router.engine = rig_engine;
    options.router.user = self;
    options.router.messages_path = "/messages";
    options.front.rows = rig_rows;
    options.front.row_count = ARRAY_LEN(rig_rows);
    options.front.user = self;
    bay_err err = mcp_http_router_new(self->loop, &options.router, &self->router);
    if (err == BAY_OK) {
        err = front_new(&options.front, &self->front);
    }
    http_server_options http = {.limits = http_server_default_limits,
                                .handler = &front_handler,
                                .user = self->front,
                                .tls = options.tls};
    if (err == BAY_OK) {
        err = http_server_new(self->loop, &http, &self->http);
    }
    return err != BAY_OK ? err : http_server_listen(self->http, STR("127.0.0.1:0"), NULL);
}

/* `change` may be NULL. */
static inline void rig_open(server_rig *self, const rig_options *change, uint32_t worker)
{
    *self = (server_rig){0};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    service_open(&self->service, worker);
    assert_int_equal(rig_serve(self, change, worker), BAY_OK);
}

static inline void rig_close(server_rig *self)
{
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    front_free(self->front);
    mcp_http_router_free(self->router);
    while (self->service.held_count > 0) {
        service_finish(&self->service);
    }
    mcp_server_free(self->service.engine);
    assert_int_equal(self->service.sessions, 0);
    loop_free(self->loop);
}

static inline void rig_is_drained(void *argument)
{
    server_rig *self = argument;
    self->is_drained = true;
}

/* ---- a raw HTTP client: one connection, one request -------------------------------------------
 */

typedef struct wire_client {
    int fd;
    buf got;
    size_t parsed; /* of `got` */
    int status;    /* 0: the head is not there yet */
    buf head;
    buf body;
    sse_decoder events;
    size_t fed; /* of `body` to `events` */
    bool is_chunked;
    bool is_stream;
    size_t length;
    bool is_complete;
    bool is_over; /* the peer ended */
} wire_client;

static inline bool wire_head_has(const wire_client *self, const char *text)
{
    return self->head.len > 0 && memmem(self->head.at, self->head.len, text, strlen(text)) != NULL;
}

static inline bool wire_body_has(const wire_client *self, const char *text)
{
    return self->body.len > 0 && memmem(self->body.at, self->body.len, text, strlen(text)) != NULL;
}

static inline void wire_init(wire_client *self, int fd)
{
    *self = (wire_client){.fd = fd};
    buf_init(&self->got, SIZE_MAX / 2);
    buf_init(&self->head, SIZE_MAX / 2);
    buf_init(&self->body, SIZE_MAX / 2);
    sse_decoder_init(&self->events, LARGE_BYTES * 2);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static inline void wire_open(wire_client *self, uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    int small = 64 * 1024;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    wire_init(self, fd);
}

static inline void wire_close(wire_client *self)
{
    if (self->fd >= 0) {
        close(self->fd);
    }
    self->fd = -1;
    buf_fini(&self->got);
    buf_fini(&self->head);
    buf_fini(&self->body);
    sse_decoder_fini(&self->events);
}

static inline void wire_parse_head(wire_client *self)
{
    char *end = memmem(self->got.at, self->got.len, "\r\n\r\n", 4);
    if (end == NULL) {
        return;
    }
    self->parsed = (size_t)(end - self->got.at) + 4;
    buf_append(&self->head, self->got.at, self->parsed);
    buf_char(&self->head, '\0');
    assert_int_equal(sscanf(self->head.at, "HTTP/1.1 %d", &self->status), 1);
    self->is_chunked = wire_head_has(self, "Transfer-Encoding: chunked");
    self->is_stream = wire_head_has(self, "Content-Type: text/event-stream");
    const char *length = strstr(self->head.at, "Content-Length: ");
    self->length = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
}

static inline void wire_parse_body(wire_client *self)
{
    while (self->is_chunked && !self->is_complete) {
        char *at = self->got.at + self->parsed;
        size_t left = self->got.len - self->parsed;
        char *line = left > 0 ? memmem(at, left, "\r\n", 2) : NULL;
        if (line == NULL) {
            return;
        }
        size_t size = strtoul(at, NULL, 16);
        size_t prefix = (size_t)(line - at) + 2;
        if (left < prefix + size + 2) {
            return;
        }
        buf_append(&self->body, at + prefix, size);
        self->parsed += prefix + size + 2;
        self->is_complete = size == 0;
    }
    if (!self->is_chunked) {
        buf_append(&self->body, self->got.at + self->parsed, self->got.len - self->parsed);
        self->parsed = self->got.len;
        self->is_complete = self->body.len >= self->length;
    }
}

/* Takes what has come. */
static inline void wire_pump(wire_client *self)
{
    char bytes[65536];
    while (self->fd >= 0 && !self->is_over) {
        ssize_t got = recv(self->fd, bytes, sizeof(bytes), 0);
        if (got > 0) {
            buf_append(&self->got, bytes, (size_t)got);
            assert_int_equal(self->got.err, BAY_OK);
            continue;
        }
        self->is_over = got == 0 || (errno != EAGAIN && errno != EINTR);
        break;
    }
    if (self->status == 0 && self->got.len > 0) {
        wire_parse_head(self);
    }
    if (self->status != 0 && !self->is_complete) {
        wire_parse_body(self);
    }
}

/* The next event of a stream; false: none has come. */
static inline bool wire_event(wire_client *self, sse_block *out)
{
    size_t used = 0;
    *out = (sse_block){.kind = SSE_MORE};
    while (self->fed < self->body.len && out->kind == SSE_MORE) {
        bay_str rest = str_from(buf_view(&self->body), self->fed);
        assert_int_equal(sse_decoder_feed(&self->events, rest, &used, out), BAY_OK);
        self->fed += used;
    }
    return out->kind != SSE_MORE;
}

static inline void wire_send(wire_client *self, loop *on_loop, const char *at, size_t len)
{
    int64_t end = test_now_ms() + GIVE_UP_MS;
    while (len > 0) {
        ssize_t put = send(self->fd, at, len, MSG_NOSIGNAL);
        assert_true(put >= 0 || errno == EAGAIN || errno == EINTR);
        if (put > 0) {
            at += put;
            len -= (size_t)put;
        }
        assert_true(test_now_ms() < end);
        (void)loop_turn(on_loop, 0);
    }
}

/* `fields`: whole lines. */
static inline void wire_request(wire_client *self, loop *on_loop, uint16_t port, const char *verb,
                                const char *target, const char *fields, const char *body)
{
    buf text;
    buf_init(&text, SIZE_MAX / 2);
    buf_printf(&text, "%s %s HTTP/1.1\r\n%s", verb, target, fields);
    if (strstr(fields, "Host:") == NULL) {
        buf_printf(&text, "Host: 127.0.0.1:%u\r\n", port);
    }
    if (body != NULL) {
        buf_printf(&text, "Content-Length: %zu\r\n", strlen(body));
    }
    buf_lit(&text, "\r\n");
    buf_str(&text, str_of(body));
    assert_int_equal(text.err, BAY_OK);
    wire_open(self, port);
    wire_send(self, on_loop, text.at, text.len);
    buf_fini(&text);
}

/* The same, until the whole reply is there. */
static inline void wire_exchange(wire_client *self, loop *on_loop, uint16_t port, const char *verb,
                                 const char *target, const char *fields, const char *body)
{
    wire_request(self, on_loop, port, verb, target, fields, body);
    TURN_UNTIL(on_loop, wire_pump(self), self->is_complete);
}

#define WIRE_JSON                                                                                  \
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
#define WIRE_INITIALIZE                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"raw\",\"version\":\"1\"}}}"

/* Begins a legacy session over HTTP; its id, NUL ended. */
static inline void wire_initialize(loop *on_loop, uint16_t port, char id[64])
{
    wire_client client;
    wire_exchange(&client, on_loop, port, "POST", "/mcp", WIRE_JSON, WIRE_INITIALIZE);
    assert_int_equal(client.status, 200);
    const char *at = strstr(client.head.at, "Mcp-Session-Id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%63[0-9a-f-]", id), 1);
    wire_close(&client);
}

#endif
