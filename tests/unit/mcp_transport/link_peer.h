/* A scripted HTTP server on a free port: what it says is exactly what the test says. Every request
 * is read whole; the test then answers it. */
#ifndef TESTS_LINK_PEER_H
#define TESTS_LINK_PEER_H

#include "support/link_owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { PEER_CONNECTIONS = 64 };

typedef struct peer_connection {
    int fd; /* 0: none */
    buf got;
    bool is_over;
} peer_connection;

/* One request that was read. */
typedef struct peer_request {
    int at; /* of its connection */
    char head[4096];
    char body[4096];
    char id[32]; /* raw JSON, or empty */
} peer_request;

typedef struct peer {
    owner on;
    http_client *http;
    int listener;
    uint16_t port;
    char url[64];
    peer_connection connections[PEER_CONNECTIONS];
} peer;

static inline void peer_init(peer *self)
{
    memset(self, 0, sizeof(*self));
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    http_client_options options = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(self->on.loop, &options, &self->http), BAY_OK);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    self->port = ntohs(address.sin_port);
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u/mcp", self->port);
}

static inline void peer_hang_up(peer *self, int at)
{
    peer_connection *one = &self->connections[at];
    if (one->fd != 0) {
        close(one->fd);
        buf_fini(&one->got);
        memset(one, 0, sizeof(*one));
    }
}

static inline void peer_fini(peer *self)
{
    if (self->on.link != NULL) {
        owner_free(&self->on);
    }
    http_client_free(self->http);
    for (int i = 0; i < PEER_CONNECTIONS; i++) {
        peer_hang_up(self, i);
    }
    close(self->listener);
    loop_free(self->on.loop);
    assert_int_equal(self->on.late, 0);
}

static inline void peer_pump(peer *self)
{
    char bytes[65536];
    int fd = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (int i = 0; fd >= 0 && i < PEER_CONNECTIONS; i++) {
        peer_connection *one = &self->connections[i];
        if (one->fd == 0) {
            one->fd = fd;
            buf_init(&one->got, (size_t)64 << 20);
            fd = -1;
        }
    }
    assert_true(fd < 0);
    for (int i = 0; i < PEER_CONNECTIONS; i++) {
        peer_connection *one = &self->connections[i];
        while (one->fd != 0 && !one->is_over) {
            ssize_t got = recv(one->fd, bytes, sizeof(bytes), 0);
            if (got > 0) {
                buf_append(&one->got, bytes, (size_t)got);
                continue;
            }
            one->is_over = got == 0 || (errno != EAGAIN && errno != EINTR);
            break;
        }
    }
}

/* The value of a field of a request, or "". */
static inline const char *peer_field(const peer_request *request, const char *name)
{
    static char value[1024];
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);
    const char *at = strcasestr(request->head, wanted);
    value[0] = '\0';
    if (at != NULL) {
        at += strlen(wanted);
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
    }
    return value;
}

static inline void peer_read_id(peer_request *out)
{
    const char *at = strstr(out->body, "\"id\":");
    out->id[0] = '\0';
    if (at != NULL) {
        at += 5;
        snprintf(out->id, sizeof(out->id), "%.*s", (int)strcspn(at, ",}"), at);
    }
}

/* Takes one whole request off a connection; false when none is whole. */
static inline bool peer_take_from(peer *self, int at, peer_request *out)
{
    peer_connection *one = &self->connections[at];
    char *end = one->got.len > 0 ? memmem(one->got.at, one->got.len, "\r\n\r\n", 4) : NULL;
    if (end == NULL) {
        return false;
    }
    size_t head = (size_t)(end - one->got.at) + 4;
    out->at = at;
    snprintf(out->head, sizeof(out->head), "%.*s", (int)head, one->got.at);
    size_t body = (size_t)strtoul(peer_field(out, "Content-Length"), NULL, 10);
    if (one->got.len < head + body) {
        return false;
    }
    snprintf(out->body, sizeof(out->body), "%.*s", (int)body, one->got.at + head);
    peer_read_id(out);
    buf_consume(&one->got, head + body);
    return true;
}

static inline bool peer_take(peer *self, peer_request *out)
{
    peer_pump(self);
    for (int i = 0; i < PEER_CONNECTIONS; i++) {
        if (self->connections[i].fd != 0 && peer_take_from(self, i, out)) {
            return true;
        }
    }
    return false;
}

/* Waits for the next request. */
#define PEER_REQUEST(peer, out) LINK_UNTIL((peer)->on.loop, peer_take((peer), (out)))

static inline void peer_send(peer *self, int at, const char *text, size_t len)
{
    int64_t until_ms = link_clock_ms() + LINK_GIVE_UP_MS;
    while (len > 0 && link_clock_ms() < until_ms) {
        ssize_t put = send(self->connections[at].fd, text, len, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return; /* it went away, as some tests want */
        }
        if (put > 0) {
            text += put;
            len -= (size_t)put;
        }
        (void)loop_turn(self->on.loop, 0);
    }
}

static inline void peer_say(peer *self, const peer_request *to, const char *text)
{
    peer_send(self, to->at, text, strlen(text));
}

/* A whole reply with a body. `fields`: "Name: value\r\n" each. */
static inline void peer_reply(peer *self, const peer_request *to, const char *status,
                              const char *fields, const char *body)
{
    char head[1024];
    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, fields,
             strlen(body));
    peer_say(self, to, head);
    peer_send(self, to->at, body, strlen(body));
}

#define JSON_TYPE "Content-Type: application/json\r\n"
#define EVENTS_HEAD                                                                                \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

static inline void peer_result(peer *self, const peer_request *to, const char *fields,
                               const char *result)
{
    char body[4096];
    snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", to->id, result);
    peer_reply(self, to, "200 OK", fields, body);
}

static inline bool peer_is_closed(peer *self, const peer_request *of)
{
    peer_pump(self);
    return self->connections[of->at].is_over;
}

#endif
