/* A server on a free port and a thread of its own that keeps what it is sent, one request after the
 * other: a webhook, or an agent whose answers a test makes. */
#ifndef SUPPORT_WEBHOOK_KEEPER_H
#define SUPPORT_WEBHOOK_KEEPER_H

#include "support/gateway_rig.h"

typedef struct keeper {
    int listener;
    uint16_t port;
    net_thread thread;
    pthread_mutex_t lock;
    buf got; /* every request, one after the other */
    int count;
    atomic_int status;   /* of its answers */
    atomic_bool is_slow; /* it does not answer */
    atomic_bool is_over;
    /* Appends the body of an answer to that request; false: none. NULL: there are no bodies. */
    bool (*body)(void *user, const char *request, buf *out);
    void *user;
} keeper;

static inline bool keeper_read(keeper *self, int fd, buf *request)
{
    for (;;) {
        char bytes[8192];
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 50) == 0) {
            if (atomic_load(&self->is_over)) {
                return false;
            }
            continue;
        }
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        if (got <= 0) {
            return false;
        }
        buf_append(request, bytes, (size_t)got);
        buf_char(request, '\0');
        request->len--;
        const char *end = strstr(request->at, "\r\n\r\n");
        const char *length = strcasestr(request->at, "\r\ncontent-length:");
        size_t body = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
        if (end != NULL && request->len >= (size_t)(end + 4 - request->at) + body) {
            return true;
        }
    }
}

static inline void keeper_answer(keeper *self, int fd, const char *request)
{
    int status = atomic_load(&self->status);
    buf text, body;
    buf_init(&text, 1 << 20);
    buf_init(&body, 1 << 20);
    bool has_body = self->body != NULL && self->body(self->user, request, &body);
    buf_printf(&text, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n%s%s\r\n",
               status, body.len, status == 302 ? "Location: /elsewhere\r\n" : "",
               has_body ? "Content-Type: application/json\r\n" : "");
    buf_str(&text, buf_view(&body));
    (void)!send(fd, text.at, text.len, MSG_NOSIGNAL);
    buf_fini(&text);
    buf_fini(&body);
}

static inline void keeper_run(void *argument)
{
    keeper *self = argument;
    while (!atomic_load(&self->is_over)) {
        struct pollfd wait = {.fd = self->listener, .events = POLLIN};
        if (poll(&wait, 1, 50) <= 0) {
            continue;
        }
        int fd = accept(self->listener, NULL, NULL);
        buf request;
        buf_init(&request, 1 << 20);
        if (fd >= 0 && keeper_read(self, fd, &request)) {
            pthread_mutex_lock(&self->lock);
            buf_str(&self->got, buf_view(&request));
            buf_lit(&self->got, "\n----\n");
            self->count++;
            pthread_mutex_unlock(&self->lock);
            while (atomic_load(&self->is_slow) && !atomic_load(&self->is_over)) {
                (void)poll(NULL, 0, 2);
            }
            keeper_answer(self, fd, request.at);
        }
        buf_fini(&request);
        if (fd >= 0) {
            close(fd);
        }
    }
}

static inline void keeper_open(keeper *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    memset(self, 0, sizeof(*self));
    atomic_init(&self->status, 200);
    pthread_mutex_init(&self->lock, NULL);
    buf_init(&self->got, 4 << 20);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&at, &len), 0);
    self->port = ntohs(at.sin_port);
    assert_int_equal(net_thread_start(&self->thread, keeper_run, self), BAY_OK);
}

static inline void keeper_close(keeper *self)
{
    atomic_store(&self->is_over, true);
    net_thread_join(&self->thread);
    close(self->listener);
    pthread_mutex_destroy(&self->lock);
    buf_fini(&self->got);
}

static inline bool keeper_has(keeper *self, const char *part)
{
    pthread_mutex_lock(&self->lock);
    bool is_there =
        self->got.len > 0 && memmem(self->got.at, self->got.len, part, strlen(part)) != NULL;
    pthread_mutex_unlock(&self->lock);
    return is_there;
}

static inline int keeper_count(keeper *self)
{
    pthread_mutex_lock(&self->lock);
    int count = self->count;
    pthread_mutex_unlock(&self->lock);
    return count;
}

static inline void keeper_forget(keeper *self)
{
    pthread_mutex_lock(&self->lock);
    buf_clear(&self->got);
    self->count = 0;
    pthread_mutex_unlock(&self->lock);
}

static inline void keeper_expect(keeper *self, const char *part)
{
    uint64_t give_up_ms = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!keeper_has(self, part) && rig_now_ms() < give_up_ms) {
        poll(NULL, 0, 2);
    }
    if (!keeper_has(self, part)) {
        pthread_mutex_lock(&self->lock);
        print_error("wanted: %s\ncame: %.*s\n", part, (int)self->got.len, self->got.at);
        pthread_mutex_unlock(&self->lock);
    }
    assert_true(keeper_has(self, part));
}

#endif
