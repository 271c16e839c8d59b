/* A recording is made here: a client and a server, each on its thread, and between them one that
 * passes on every byte and takes it down first. Over HTTP it listens where the client connects to;
 * over stdio it holds what tests/support/sweep_hand.c handed over. */
#ifndef TESTS_SWEEP_RELAY_H
#define TESTS_SWEEP_RELAY_H

#include "support/sweep_recording.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef BAY_TEST_BINARY_DIR
#define BAY_TEST_BINARY_DIR "." /* for readers of this header alone */
#endif

static inline size_t sweep_setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static inline int tcp_listen(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

static inline int tcp_connect(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
    return fd;
}

/* Where sweep_hand comes to. The name is of this process and this socket only. */
static inline int hand_listen(char *out_path, size_t size)
{
    static int number;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(out_path, size, "/tmp/bay-sweep-%d-%d", (int)getpid(), number++);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", out_path);
    (void)unlink(out_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* What a child hands over: its standard input and output, and the line that keeps it alive. */
static inline bool hand_take(int listener, int out[3])
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    out[2] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (out[2] < 0 || recvmsg(out[2], &message, MSG_CMSG_CLOEXEC) != 1 ||
        message.msg_controllen == 0) {
        if (out[2] >= 0) {
            close(out[2]);
        }
        return false;
    }
    memcpy(out, CMSG_DATA(&control.head), 2 * sizeof(int));
    return true;
}

static inline bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, at, len);
        if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd polled = {.fd = fd, .events = POLLOUT};
            (void)poll(&polled, 1, 1000);
            continue;
        }
        if (put <= 0) {
            return false;
        }
        at += put;
        len -= (size_t)put;
    }
    return true;
}

/* ---- the relay ------------------------------------------------------------------------------- */

typedef struct relay_line {
    int client[2]; /* to read, to write; the same for a socket */
    int server;
    int keeps; /* the child */
    dissector requests;
    dissector responses;
    int pending[64]; /* units that wait for their response, in order */
    int pending_count;
    struct relay *of;
} relay_line;

typedef struct relay {
    recording *into;
    int listener;
    int stop[2];
    uint16_t server_port;
    int server_end; /* stdio */
    relay_line lines[RECORD_CONNECTIONS];
    int count;
    pthread_t thread;
    bool is_broken;
} relay;

static inline void relay_request(void *user, part_kind kind, const char *text)
{
    relay_line *line = user;
    (void)kind;
    line->pending[line->pending_count++ % 64] = (int)line->of->into->unit_count;
    recording_add_unit(line->of->into, (int)(line - line->of->lines), text);
}

static inline void relay_response(void *user, part_kind kind, const char *text)
{
    relay_line *line = user;
    recording_add_item(line->of->into, (int)(line - line->of->lines), kind, text);
    if (kind == PART_END && line->pending_count > 0) {
        line->pending_count--;
        memmove(line->pending, line->pending + 1, (size_t)line->pending_count * sizeof(int));
    }
}

static inline void relay_open(relay *self)
{
    relay_line *line = &self->lines[self->count];
    *line = (relay_line){.server = self->server_end, .keeps = -1, .of = self};
    if (self->into->is_http) {
        line->client[0] = line->client[1] = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
        line->server = tcp_connect(self->server_port);
    } else {
        int ends[3];
        self->is_broken = !hand_take(self->listener, ends) || self->count > 0;
        line->client[0] = ends[0];
        line->client[1] = ends[1];
        line->keeps = ends[2];
    }
    line->requests = (dissector){
        .is_http = self->into->is_http, .is_client = true, .handler = relay_request, .user = line};
    line->responses =
        (dissector){.is_http = self->into->is_http, .handler = relay_response, .user = line};
    self->count++;
    self->is_broken = self->is_broken || self->count == RECORD_CONNECTIONS;
}

static inline void relay_hang_up(relay_line *line)
{
    if (line->server < 0) {
        return;
    }
    close(line->client[0]);
    if (line->client[1] != line->client[0]) {
        close(line->client[1]);
    }
    close(line->server);
    if (line->keeps >= 0) {
        close(line->keeps);
    }
    line->server = -1;
}

static inline void relay_pass(relay_line *line, bool is_client)
{
    char got[16384];
    ssize_t len = read(is_client ? line->client[0] : line->server, got, sizeof(got));
    if (len <= 0) {
        if (is_client) {
            recording_add_unit(line->of->into, (int)(line - line->of->lines), "");
        }
        relay_hang_up(line);
        return;
    }
    for (ssize_t i = 0; i < len; i++) {
        if (!is_client) {
            recording_add_byte(line->of->into, line->pending_count > 0 ? line->pending[0] : -1,
                               got[i]);
        }
        dissector_feed(is_client ? &line->requests : &line->responses, got[i]);
    }
    (void)write_all(is_client ? line->server : line->client[1], got, (size_t)len);
}

static inline void *relay_main(void *argument)
{
    relay *self = argument;
    for (;;) {
        struct pollfd polled[2 + 2 * RECORD_CONNECTIONS] = {
            {.fd = self->stop[0], .events = POLLIN}, {.fd = self->listener, .events = POLLIN}};
        int count = self->count;
        for (int i = 0; i < count; i++) {
            bool is_open = self->lines[i].server >= 0;
            polled[2 + 2 * i] =
                (struct pollfd){.fd = is_open ? self->lines[i].client[0] : -1, .events = POLLIN};
            polled[3 + 2 * i] = (struct pollfd){.fd = self->lines[i].server, .events = POLLIN};
        }
        if (poll(polled, (nfds_t)(2 + 2 * count), -1) < 0) {
            continue;
        }
        if (polled[0].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < 2 * count; i++) {
            if (polled[2 + i].revents != 0 && self->lines[i / 2].server >= 0) {
                relay_pass(&self->lines[i / 2], i % 2 == 0);
            }
        }
        if (polled[1].revents != 0) {
            relay_open(self);
        }
    }
}

/* ---- a recording ----------------------------------------------------------------------------- */

static inline void *record_serve(void *argument)
{
    assert_int_equal(bay_server_run(argument, NULL), BAY_OK);
    return NULL;
}

static inline bay_client *record_connect(const char *target, bay_client_options *options,
                                         bool is_sse_2024)
{
    bay_client *client = NULL;
    bay_diag diag = {.code = BAY_OK};
    bay_client_options_transport(options,
                                 is_sse_2024 ? BAY_TRANSPORT_SSE_2024 : BAY_TRANSPORT_AUTO);
    bay_err err = bay_client_connect(target, options, &client, &diag);
    bay_client_options_free(options);
    if (err != BAY_OK) {
        printf("%s: %s\n", target, diag.text);
        return NULL;
    }
    return client;
}

/* 2024-11-05 is recorded over its own transport, HTTP with SSE. */
static inline void record_target(const recording *self, uint16_t port, const char *path, char *out,
                                 size_t size)
{
    if (!self->is_http) {
        snprintf(out, size, "stdio:" BAY_TEST_BINARY_DIR "/sweep_hand %s", path);
        return;
    }
    snprintf(out, size, "http://127.0.0.1:%u/%s", port,
             strcmp(self->revision, "2024-11-05") == 0 ? "sse" : "mcp");
}

static inline bool record_is_sse_2024(const recording *self)
{
    return self->is_http && strcmp(self->revision, "2024-11-05") == 0;
}

/* All steps of a session, as a client meets a server that has nothing to suffer. */
static inline recording *record_session(const char *revision, bool is_http)
{
    recording *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->revision = revision;
    self->is_http = is_http;
    relay *way = calloc(1, sizeof(*way));
    way->into = self;
    way->server_end = -1;
    sweep_service service;
    bay_server *server = sweep_server_new(&service);
    bay_diag diag = {.code = BAY_OK};
    char path[64] = "";
    char target[512];
    int ends[2] = {-1, -1};
    uint16_t port = 0;
    if (is_http) {
        assert_int_equal(bay_server_listen(server, "127.0.0.1:0", &diag), BAY_OK);
        way->server_port = bay_server_port(server);
        way->listener = tcp_listen(&port);
    } else {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(bay_server_pipe(server, ends[0], ends[0], &diag), BAY_OK);
        way->server_end = ends[1];
        way->listener = hand_listen(path, sizeof(path));
    }
    pthread_t serving;
    assert_int_equal(pipe(way->stop), 0);
    assert_int_equal(pthread_create(&way->thread, NULL, relay_main, way), 0);
    assert_int_equal(pthread_create(&serving, NULL, record_serve, server), 0);
    record_target(self, port, path, target, sizeof(target));
    bay_client *client =
        record_connect(target, sweep_options(&self->told, revision), record_is_sse_2024(self));
    assert_non_null(client);
    sweep_session(client, &self->told, 5000);
    bay_client_close(client);
    bay_server_stop(server);
    pthread_join(serving, NULL);
    assert_int_equal(write(way->stop[1], "x", 1), 1);
    pthread_join(way->thread, NULL);
    assert_false(way->is_broken);
    for (int i = 0; i < way->count; i++) {
        relay_hang_up(&way->lines[i]);
        dissector_fini(&way->lines[i].requests);
        dissector_fini(&way->lines[i].responses);
    }
    (void)sweep_let_go(&service);
    bay_server_free(server);
    close(way->stop[0]);
    close(way->stop[1]);
    close(way->listener);
    if (!is_http) {
        close(ends[0]);
        (void)unlink(path);
    }
    free(way);
    return self;
}

/* For cmocka: one session of each revision, on stdio and over HTTP, for all cases of a group. */
static recording *recorded[2][SWEEP_REVISIONS]; /* stdio, HTTP */

static inline int record_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * SWEEP_REVISIONS; i++) {
        recorded[i % 2][i / 2] = record_session(sweep_revisions[i / 2], i % 2 == 1);
    }
    return 0;
}

static inline int forget_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * SWEEP_REVISIONS; i++) {
        recording_free(recorded[i % 2][i / 2]);
    }
    return 0;
}

#endif
