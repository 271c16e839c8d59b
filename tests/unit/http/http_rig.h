/* A server on a free port, a handler whose behaviour the path chooses, and raw clients driven by
 * the same thread: what goes over the wire is exactly what the test says. Waiting turns the loop
 * until the expected thing has happened; the bound in time only ends a test that would never end.
 */
#ifndef TESTS_HTTP_RIG_H
#define TESTS_HTTP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "http/http_server.h"

enum { RIG_PENDING = 64, RIG_GIVE_UP_MS = 20000 };

typedef struct rig {
    loop *loop;
    http_server *server;
    int requests;
    int complete;
    int cut;
    int drained;
    http_exchange *pending[RIG_PENDING]; /* handed over, not closed */
    size_t pending_count;
    loop_task task;
    http_exchange *deferred;
    bool is_drained;
    char last_body[256];
} rig;

typedef struct raw {
    int fd;
    buf got;
    bool is_over;  /* the peer ended or reset */
    bool is_reset; /* … the hard way */
} raw;

static inline void rig_forget(rig *self, http_exchange *exchange)
{
    for (size_t i = 0; i < self->pending_count; i++) {
        if (self->pending[i] == exchange) {
            self->pending[i] = self->pending[--self->pending_count];
            return;
        }
    }
}

static inline void rig_reply(http_exchange *exchange, int status, bay_str body)
{
    static const http_field fields[] = {{{"Content-Type", 12}, {"text/plain", 10}}};
    http_exchange_reply(exchange, status, fields, 1, body);
}

static inline void rig_deferred(void *argument)
{
    rig *self = argument;
    rig_reply(self->deferred, 200, http_exchange_body(self->deferred));
}

static inline void rig_info(http_exchange *exchange)
{
    char text[512];
    bay_str host = http_exchange_field(exchange, STR("HOST"));
    snprintf(text, sizeof(text), "%.*s %.*s ?%.*s host=%.*s peer=%.*s x=%zu",
             BAY_STR(http_exchange_method(exchange)), BAY_STR(http_exchange_path(exchange)),
             BAY_STR(http_exchange_query(exchange)), BAY_STR(host),
             BAY_STR(http_exchange_peer(exchange)),
             http_exchange_field_count(exchange, STR("x-twice")));
    rig_reply(exchange, 200, str_of(text));
}

static inline void rig_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    bay_str path = http_exchange_path(exchange);
    bay_str body = http_exchange_body(exchange);
    self->requests++;
    snprintf(self->last_body, sizeof(self->last_body), "%.*s", BAY_STR(body));
    if (str_eq(path, STR("/echo"))) {
        rig_reply(exchange, 200, body);
    } else if (str_eq(path, STR("/info"))) {
        rig_info(exchange);
    } else if (str_eq(path, STR("/deferred"))) {
        self->deferred = exchange;
        self->task = (loop_task){.function = rig_deferred, .argument = self};
        loop_defer(self->loop, &self->task);
    } else if (str_eq(path, STR("/stream"))) {
        assert_int_equal(http_stream_open(exchange, 200, NULL, 0, true), BAY_OK);
        assert_int_equal(http_exchange_body(exchange).len, 0);
        self->pending[self->pending_count++] = exchange;
    } else if (str_eq(path, STR("/events"))) {
        assert_int_equal(http_stream_open(exchange, 200, NULL, 0, false), BAY_OK);
        assert_int_equal(http_stream_write(exchange, STR("one")), BAY_OK);
        assert_int_equal(http_stream_write(exchange, STR("two!")), BAY_OK);
        http_stream_end(exchange);
    } else if (str_eq(path, STR("/free"))) {
        http_server *server = self->server;
        self->server = NULL;
        http_server_free(server);
    } else if (str_eq(path, STR("/abort"))) {
        http_exchange_abort(exchange);
        http_exchange_abort(exchange);
        rig_reply(exchange, 200, STR("too late"));
    } else if (str_eq(path, STR("/nothing"))) {
        http_exchange_reply(exchange, 204, NULL, 0, STR("never sent"));
    } else if (str_eq(path, STR("/inject"))) {
        http_field evil = {STR("X-Evil"), STR("a\r\nSet-Cookie: b")};
        http_exchange_reply(exchange, 200, &evil, 1, STR("body"));
    } else if (str_eq(path, STR("/framing"))) {
        http_field evil[] = {{STR("content-length"), STR("3")},
                             {STR("Transfer-Encoding"), STR("chunked")},
                             {STR("connection"), STR("upgrade")},
                             {STR("X-Kept"), STR("yes")}};
        http_exchange_reply(exchange, 200, evil, 4, STR("twelve bytes"));
    } else {
        self->pending[self->pending_count++] = exchange;
    }
}

static inline void rig_closed(void *user, http_exchange *exchange, bool is_complete)
{
    rig *self = user;
    rig_forget(self, exchange);
    if (is_complete) {
        self->complete++;
    } else {
        self->cut++;
    }
}

static inline void rig_on_drained(void *user, http_exchange *exchange)
{
    rig *self = user;
    (void)exchange;
    self->drained++;
}

static inline void rig_is_drained(void *argument)
{
    rig *self = argument;
    self->is_drained = true;
}

static const http_handler rig_handler = {
    .request = rig_request, .closed = rig_closed, .drained = rig_on_drained};

static inline void rig_init(rig *self, const http_server_limits *limits)
{
    memset(self, 0, sizeof(*self));
    bay_diag diag;
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    http_server_options options = {.limits = limits != NULL ? *limits : http_server_default_limits,
                                   .handler = &rig_handler,
                                   .user = self};
    assert_int_equal(http_server_new(self->loop, &options, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), &diag), BAY_OK);
}

static inline void rig_fini(rig *self)
{
    http_server_free(self->server);
    assert_int_equal(self->requests, self->complete + self->cut);
    assert_int_equal(self->pending_count, 0);
    loop_free(self->loop);
}

static inline int64_t rig_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Turns the loop until `condition`. */
#define RIG_UNTIL(rig, condition)                                                                  \
    do {                                                                                           \
        int64_t rig_end = rig_now_ms() + RIG_GIVE_UP_MS;                                           \
        while (!(condition)) {                                                                     \
            assert_true(rig_now_ms() < rig_end);                                                   \
            (void)loop_turn((rig)->loop, 1);                                                       \
        }                                                                                          \
    } while (0)

static inline void raw_connect(raw *self, uint16_t port)
{
    memset(self, 0, sizeof(*self));
    buf_init(&self->got, SIZE_MAX / 2);
    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(self->fd >= 0);
    assert_int_equal(connect(self->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(self->fd, F_SETFL, O_NONBLOCK), 0);
}

static inline void raw_open(raw *self, rig *on)
{
    raw_connect(self, http_server_port(on->server));
}

static inline void raw_close(raw *self)
{
    if (self->fd >= 0) {
        close(self->fd);
    }
    self->fd = -1;
    buf_fini(&self->got);
}

/* Sends all of it, turning the loop while the kernel takes nothing. False: the peer is gone. */
static inline bool raw_send(raw *self, rig *on, const char *at, size_t len)
{
    int64_t end = rig_now_ms() + RIG_GIVE_UP_MS;
    while (len > 0) {
        ssize_t put = send(self->fd, at, len, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (put > 0) {
            at += put;
            len -= (size_t)put;
        }
        assert_true(rig_now_ms() < end);
        (void)loop_turn(on->loop, 0);
    }
    return true;
}

static inline bool raw_say(raw *self, rig *on, const char *text)
{
    return raw_send(self, on, text, strlen(text));
}

static inline void raw_pump(raw *self)
{
    char bytes[65536];
    while (!self->is_over) {
        ssize_t got = recv(self->fd, bytes, sizeof(bytes), 0);
        if (got > 0) {
            buf_append(&self->got, bytes, (size_t)got);
            assert_int_equal(self->got.err, BAY_OK);
            continue;
        }
        if (got == 0) {
            self->is_over = true;
        } else if (errno != EAGAIN && errno != EINTR) {
            self->is_over = self->is_reset = true;
        }
        return;
    }
}

static inline bool raw_has(const raw *self, const char *text)
{
    return self->got.len > 0 && memmem(self->got.at, self->got.len, text, strlen(text)) != NULL;
}

static inline bool raw_starts(const raw *self, const char *text)
{
    return self->got.len >= strlen(text) && memcmp(self->got.at, text, strlen(text)) == 0;
}

static inline size_t raw_count(const raw *self, const char *text)
{
    size_t count = 0;
    bay_str rest = buf_view(&self->got);
    for (char *at; rest.len > 0 && (at = memmem(rest.at, rest.len, text, strlen(text))) != NULL;) {
        count++;
        rest = str_from(rest, (size_t)(at - rest.at) + strlen(text));
    }
    return count;
}

/* Reads until `text` has come; NULL: until the peer has ended. */
static inline void raw_until(raw *self, rig *on, const char *text)
{
    int64_t end = rig_now_ms() + RIG_GIVE_UP_MS;
    for (;;) {
        raw_pump(self);
        if (text != NULL ? raw_has(self, text) : self->is_over) {
            return;
        }
        if (text != NULL && self->is_over) {
            fail_msg("ended without \"%s\": %.*s", text, (int)self->got.len, self->got.at);
        }
        assert_true(rig_now_ms() < end);
        (void)loop_turn(on->loop, 1);
    }
}

/* Says `request` on a new connection and reads until the server ends it. */
static inline void raw_whole(raw *self, rig *on, const char *request)
{
    raw_open(self, on);
    (void)raw_say(self, on, request);
    raw_until(self, on, NULL);
}

#endif
