/* An HTTP server on a thread of its own that says whatever the test wants, for clients that wait.
 * It uses nothing of the library, so that a test may take the library's memory away. What it saw is
 * counted; the test reads the counts while the thread runs. */
#ifndef TESTS_CLIENT_PEER_H
#define TESTS_CLIENT_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEER_CONNECTIONS = 32, PEER_TEXT = 64 * 1024, PEER_SEEN = 512 };

typedef struct peer_message {
    int at; /* of its connection */
    char head[8192];
    char body[PEER_TEXT];
    char verb[16];   /* "POST" */
    char method[64]; /* of JSON-RPC, or "" */
    char id[32];     /* raw JSON, or "" */
} peer_message;

typedef struct peer peer;
/* On the peer's thread. */
typedef void (*peer_handler)(peer *self, const peer_message *message);

struct peer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards `seen`, `count`, `number` */
    peer_handler handler;
    void *user;
    int listener;
    int wake[2];
    uint16_t port;
    char url[64];
    int fds[PEER_CONNECTIONS];
    char *texts[PEER_CONNECTIONS];
    size_t lens[PEER_CONNECTIONS];
    char seen[PEER_SEEN][96]; /* "POST tools/call" */
    size_t count;
    char heads[PEER_SEEN][600];
    int number; /* the handler's own */
    peer_message message;
};

static inline void peer_write(peer *self, int at, const char *text, size_t len)
{
    while (len > 0 && self->fds[at] >= 0) {
        ssize_t put = send(self->fds[at], text, len, MSG_NOSIGNAL);
        if (put <= 0) {
            return;
        }
        text += put;
        len -= (size_t)put;
    }
}

static inline void peer_say(peer *self, const peer_message *to, const char *text)
{
    peer_write(self, to->at, text, strlen(text));
}

/* `fields`: "Name: value\r\n" each. */
static inline void peer_reply(peer *self, const peer_message *to, const char *status,
                              const char *fields, const char *body)
{
    char head[1024];
    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, fields,
             strlen(body));
    peer_say(self, to, head);
    peer_say(self, to, body);
}

static inline void peer_result(peer *self, const peer_message *to, const char *fields,
                               const char *result)
{
    static const size_t room = 2 * PEER_TEXT;
    char *body = malloc(room);
    char all[512];
    snprintf(body, room, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", to->id, result);
    snprintf(all, sizeof(all), "Content-Type: application/json\r\n%s", fields);
    peer_reply(self, to, "200 OK", all, body);
    free(body);
}

static inline void peer_error(peer *self, const peer_message *to, const char *status, int code,
                              const char *text)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"%s\"}}", to->id,
             code, text);
    peer_reply(self, to, status, "Content-Type: application/json\r\n", body);
}

static inline void peer_hang_up(peer *self, int at)
{
    if (self->fds[at] >= 0) {
        close(self->fds[at]);
        self->fds[at] = -1;
        self->lens[at] = 0;
    }
}

/* The value of a field, or "". */
static inline const char *peer_field(const char *head, const char *name, char *out, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);
    const char *at = strcasestr(head, wanted);
    out[0] = '\0';
    if (at != NULL) {
        at += strlen(wanted);
        snprintf(out, size, "%.*s", (int)strcspn(at, "\r"), at);
    }
    return out;
}

static inline void peer_take_member(const char *text, const char *key, const char *stops, char *out,
                                    size_t size)
{
    const char *at = strstr(text, key);
    out[0] = '\0';
    if (at != NULL) {
        at += strlen(key);
        snprintf(out, size, "%.*s", (int)strcspn(at, stops), at);
    }
}

static inline void peer_note(peer *self, const peer_message *message)
{
    pthread_mutex_lock(&self->lock);
    if (self->count < PEER_SEEN) {
        snprintf(self->seen[self->count], sizeof(self->seen[0]), "%s %s", message->verb,
                 message->method);
        snprintf(self->heads[self->count], sizeof(self->heads[0]), "%.590s", message->head);
        self->count++;
    }
    pthread_mutex_unlock(&self->lock);
}

/* Takes one whole request off a connection. */
static inline bool peer_take(peer *self, int at)
{
    peer_message *out = &self->message;
    char value[32];
    self->texts[at][self->lens[at]] = '\0';
    char *end = strstr(self->texts[at], "\r\n\r\n");
    if (self->fds[at] < 0 || end == NULL) {
        return false;
    }
    size_t head = (size_t)(end - self->texts[at]) + 4;
    snprintf(out->head, sizeof(out->head), "%.*s", (int)head, self->texts[at]);
    size_t body = strtoul(peer_field(out->head, "Content-Length", value, sizeof(value)), NULL, 10);
    if (self->lens[at] < head + body) {
        return false;
    }
    out->at = at;
    snprintf(out->body, sizeof(out->body), "%.*s", (int)body, self->texts[at] + head);
    snprintf(out->verb, sizeof(out->verb), "%.*s", (int)strcspn(out->head, " "), out->head);
    peer_take_member(out->body, "\"method\":\"", "\"", out->method, sizeof(out->method));
    peer_take_member(out->body, "\"id\":", ",}", out->id, sizeof(out->id));
    self->lens[at] -= head + body;
    memmove(self->texts[at], self->texts[at] + head + body, self->lens[at]);
    return true;
}

static inline void peer_read(peer *self, int at)
{
    ssize_t got = recv(self->fds[at], self->texts[at] + self->lens[at],
                       2 * PEER_TEXT - 1 - self->lens[at], MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            peer_hang_up(self, at);
        }
        return;
    }
    self->lens[at] += (size_t)got;
    while (peer_take(self, at)) {
        peer_note(self, &self->message);
        self->handler(self, &self->message);
    }
}

static inline void peer_accept(peer *self)
{
    int fd = accept(self->listener, NULL, NULL);
    for (int i = 0; fd >= 0 && i < PEER_CONNECTIONS; i++) {
        if (self->fds[i] < 0) {
            self->fds[i] = fd;
            self->lens[i] = 0;
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static inline void *peer_main(void *argument)
{
    peer *self = argument;
    for (;;) {
        struct pollfd polled[PEER_CONNECTIONS + 2] = {{.fd = self->wake[0], .events = POLLIN},
                                                      {.fd = self->listener, .events = POLLIN}};
        for (int i = 0; i < PEER_CONNECTIONS; i++) {
            polled[i + 2] = (struct pollfd){.fd = self->fds[i], .events = POLLIN};
        }
        if (poll(polled, PEER_CONNECTIONS + 2, -1) < 0) {
            continue;
        }
        if (polled[0].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < PEER_CONNECTIONS; i++) {
            if (polled[i + 2].revents != 0 && self->fds[i] >= 0) {
                peer_read(self, i);
            }
        }
        if (polled[1].revents != 0) {
            peer_accept(self);
        }
    }
}

/* On the port of an earlier one, or 0. */
static inline void peer_start(peer *self, peer_handler handler, void *user, uint16_t port)
{
    memset(self, 0, sizeof(*self));
    self->handler = handler;
    self->user = user;
    pthread_mutex_init(&self->lock, NULL);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(self->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    self->port = ntohs(address.sin_port);
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u/mcp", self->port);
    for (int i = 0; i < PEER_CONNECTIONS; i++) {
        self->fds[i] = -1;
        self->texts[i] = calloc(1, 2 * PEER_TEXT);
        assert_non_null(self->texts[i]);
    }
    assert_int_equal(pipe(self->wake), 0);
    assert_int_equal(pthread_create(&self->thread, NULL, peer_main, self), 0);
}

static inline void peer_stop(peer *self)
{
    assert_int_equal(write(self->wake[1], "x", 1), 1);
    pthread_join(self->thread, NULL);
    for (int i = 0; i < PEER_CONNECTIONS; i++) {
        peer_hang_up(self, i);
        free(self->texts[i]);
    }
    close(self->listener);
    close(self->wake[0]);
    close(self->wake[1]);
    pthread_mutex_destroy(&self->lock);
}

/* How often it saw "POST tools/call". */
static inline int peer_count(peer *self, const char *what)
{
    int count = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->count; i++) {
        count += strcmp(self->seen[i], what) == 0;
    }
    pthread_mutex_unlock(&self->lock);
    return count;
}

/* A field of the last request of that kind. */
static inline const char *peer_last_field(peer *self, const char *what, const char *name)
{
    static char value[600];
    value[0] = '\0';
    pthread_mutex_lock(&self->lock);
    for (size_t i = self->count; i-- > 0;) {
        if (strcmp(self->seen[i], what) == 0) {
            peer_field(self->heads[i], name, value, sizeof(value));
            break;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return value;
}

static inline int peer_number(peer *self)
{
    pthread_mutex_lock(&self->lock);
    int number = self->number;
    pthread_mutex_unlock(&self->lock);
    return number;
}

static inline void peer_set_number(peer *self, int number)
{
    pthread_mutex_lock(&self->lock);
    self->number = number;
    pthread_mutex_unlock(&self->lock);
}

static inline bool peer_is(const peer_message *message, const char *method)
{
    return strcmp(message->method, method) == 0;
}

/* What a well-behaved server of the stateless era says; false: the test has to answer. */
static inline bool peer_modern(peer *self, const peer_message *message)
{
    if (strcmp(message->verb, "POST") != 0) {
        peer_reply(self, message, "405 Method Not Allowed", "", "");
        return true;
    }
    if (peer_is(message, "server/discover")) {
        peer_result(self, message, "",
                    "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                    "\"capabilities\":{\"tools\":{},\"resources\":{\"subscribe\":true},"
                    "\"prompts\":{},\"completions\":{}},"
                    "\"serverInfo\":{\"name\":\"peer\",\"version\":\"1\"},"
                    "\"ttlMs\":0,\"cacheScope\":\"private\"}");
        return true;
    }
    return false;
}

/* … and one of the handshake era, with the session "s<number>". */
static inline bool peer_legacy(peer *self, const peer_message *message)
{
    char session[64];
    if (strcmp(message->verb, "DELETE") == 0) {
        peer_reply(self, message, "200 OK", "", "");
        return true;
    }
    if (strcmp(message->verb, "GET") == 0) {
        peer_reply(self, message, "405 Method Not Allowed", "", "");
        return true;
    }
    if (peer_is(message, "server/discover")) {
        peer_error(self, message, "400 Bad Request", -32600, "no such thing");
        return true;
    }
    if (peer_is(message, "initialize")) {
        snprintf(session, sizeof(session), "Mcp-Session-Id: s%d\r\n", peer_number(self));
        peer_result(self, message, session,
                    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{"
                    "\"listChanged\":true},\"logging\":{},\"resources\":{\"subscribe\":true}},"
                    "\"serverInfo\":{\"name\":\"peer\",\"version\":\"1\"},"
                    "\"instructions\":\"be kind\"}");
        return true;
    }
    if (message->id[0] == '\0') {
        peer_reply(self, message, "202 Accepted", "", "");
        return true;
    }
    return false;
}

#define PEER_TEXT_RESULT(text)                                                                     \
    "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"

#endif
