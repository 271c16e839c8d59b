/* A scripted A2A agent on a free port, in a thread of its own: it answers one request after the
 * other with what the test says, to the byte, and keeps what it was sent. It allocates nothing, so
 * that memory may fail around it. */
#ifndef SUPPORT_SCRIPTED_AGENT_H
#define SUPPORT_SCRIPTED_AGENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AGENT_STEPS = 32, AGENT_REQUEST_BYTES = 32 << 10, AGENT_REPLY_BYTES = 64 << 10 };

typedef enum agent_end {
    AGENT_ENDS, /* as it should */
    AGENT_CUTS, /* the connection closes within the reply */
    AGENT_HANGS /* nothing more is sent; the connection stays until the peer closes it */
} agent_end;

/* `$ID` in a body is the id of the JSON-RPC request, `$URL` where the agent stands. */
typedef struct agent_step {
    const char *expects; /* must stand in the request; NULL: anything */
    const char *body;
    int status;         /* 0: 200 */
    bool is_stream;     /* text/event-stream, chunked */
    agent_end end;      /* of a stream; AGENT_CUTS of anything else: no reply at all */
    const char *fields; /* further lines of the head, each with its line end */
    const char *type;   /* its Content-Type; NULL: application/json */
    size_t padding;     /* spaces behind the body */
} agent_step;

typedef struct scripted_agent {
    int listener;
    int stop[2];
    char url[64];
    const agent_step *steps;
    size_t count;
    size_t done; /* read it after scripted_agent_stop */
    bool has_failed;
    char requests[AGENT_STEPS][AGENT_REQUEST_BYTES];
    sem_t taken; /* posted for each step, before its answer */
    pthread_t thread;
} scripted_agent;

/* ---- the thread ------------------------------------------------------------------------------ */

/* Waits for the descriptor; false: the test wants an end. */
static inline bool agent_await(const scripted_agent *self, int fd)
{
    struct pollfd both[2] = {{fd, POLLIN, 0}, {self->stop[0], POLLIN, 0}};
    while (poll(both, 2, -1) < 0) {
    }
    return both[1].revents == 0;
}

static inline size_t agent_body_bytes(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");
    return field != NULL ? strtoul(field + 17, NULL, 10) : 0;
}

/* A whole request, or false. */
static inline bool agent_read(const scripted_agent *self, int fd, char *out)
{
    size_t len = 0;
    while (len < AGENT_REQUEST_BYTES - 1) {
        if (!agent_await(self, fd)) {
            return false;
        }
        ssize_t got = read(fd, out + len, AGENT_REQUEST_BYTES - 1 - len);
        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
        out[len] = '\0';
        const char *end = strstr(out, "\r\n\r\n");
        if (end != NULL && len >= (size_t)(end + 4 - out) + agent_body_bytes(out)) {
            return true;
        }
    }
    return false;
}

static inline void agent_send(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        at += sent;
        len -= (size_t)sent;
    }
}

static inline void agent_request_id(const char *request, char out[32])
{
    const char *body = strstr(request, "\r\n\r\n");
    const char *id = body != NULL ? strstr(body, "\"id\":") : NULL;
    const char *method = body != NULL ? strstr(body, "\"method\":") : NULL;
    snprintf(out, 32, "null");
    if (id == NULL || method == NULL) {
        return;
    }
    size_t len = strcspn(id + 5, ",}");
    snprintf(out, 32, "%.*s", len < 31 ? (int)len : 31, id + 5);
}

static inline size_t agent_fill(const scripted_agent *self, const char *request, const char *body,
                                char *out)
{
    char id[32];
    size_t len = 0;
    agent_request_id(request, id);
    for (const char *at = body; *at != '\0' && len < AGENT_REPLY_BYTES - 100;) {
        if (strncmp(at, "$ID", 3) == 0) {
            len += (size_t)snprintf(out + len, 32, "%s", id);
            at += 3;
        } else if (strncmp(at, "$URL", 4) == 0) {
            len += (size_t)snprintf(out + len, 64, "%s", self->url);
            at += 4;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
    return len;
}

static inline void agent_hang(const scripted_agent *self, int fd)
{
    char byte;
    while (agent_await(self, fd) && read(fd, &byte, 1) > 0) {
    }
}

static inline void agent_answer(const scripted_agent *self, int fd, const agent_step *step,
                                const char *request)
{
    char body[AGENT_REPLY_BYTES];
    char head[1024];
    size_t len = agent_fill(self, request, step->body != NULL ? step->body : "", body);
    int status = step->status != 0 ? step->status : 200;
    const char *fields = step->fields != NULL ? step->fields : "";
    if (!step->is_stream) {
        if (step->end == AGENT_CUTS) {
            return;
        }
        snprintf(head, sizeof(head),
                 "HTTP/1.1 %d X\r\nContent-Type: %s\r\nConnection: close\r\n"
                 "Content-Length: %zu\r\n%s\r\n",
                 status, step->type != NULL ? step->type : "application/json", len + step->padding,
                 fields);
        agent_send(fd, head, strlen(head));
        agent_send(fd, body, len);
        for (size_t sent = 0; sent < step->padding; sent += sizeof(body)) {
            memset(body, ' ', sizeof(body));
            agent_send(fd, body,
                       step->padding - sent < sizeof(body) ? step->padding - sent : sizeof(body));
        }
    } else {
        snprintf(head, sizeof(head),
                 "HTTP/1.1 %d X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
                 "Transfer-Encoding: chunked\r\n%s\r\n%zx\r\n",
                 status, fields, len);
        agent_send(fd, head, strlen(head) - (len == 0 ? 3 : 0));
        agent_send(fd, body, len);
        agent_send(fd, "\r\n", len > 0 ? 2 : 0);
        if (step->end == AGENT_ENDS) {
            agent_send(fd, "0\r\n\r\n", 5);
        }
    }
    if (step->end == AGENT_HANGS) {
        agent_hang(self, fd);
    }
}

static inline void *agent_main(void *argument)
{
    scripted_agent *self = argument;
    while (agent_await(self, self->listener)) {
        int fd = accept(self->listener, NULL, NULL);
        if (fd < 0) {
            break;
        }
        char *request = self->requests[self->done < AGENT_STEPS ? self->done : 0];
        if (agent_read(self, fd, request)) {
            const agent_step *step = &self->steps[self->done];
            if (self->done >= self->count ||
                (step->expects != NULL && strstr(request, step->expects) == NULL)) {
                fprintf(stderr, "the scripted agent's step %zu wants \"%s\", not\n%s\n", self->done,
                        self->done < self->count ? step->expects : "(no more)", request);
                self->has_failed = true;
            } else {
                self->done++;
                sem_post(&self->taken);
                agent_answer(self, fd, step, request);
            }
        }
        close(fd);
    }
    return NULL;
}

/* ---- for the test ---------------------------------------------------------------------------- */

static inline void scripted_agent_start(scripted_agent *self, const agent_step *steps, size_t count)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    memset(self, 0, sizeof(*self));
    self->steps = steps;
    self->count = count;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(sem_init(&self->taken, 0, 0), 0);
    assert_int_equal(pipe(self->stop), 0);
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&self->thread, NULL, agent_main, self), 0);
}

/* Waits until so many more steps were taken. */
static inline void scripted_agent_await(scripted_agent *self, int steps)
{
    for (int i = 0; i < steps; i++) {
        while (sem_wait(&self->taken) != 0) {
        }
    }
}

/* Ends it without a look at what it did. */
static inline void scripted_agent_end(scripted_agent *self)
{
    assert_int_equal(write(self->stop[1], "", 1), 1);
    pthread_join(self->thread, NULL);
    sem_destroy(&self->taken);
    close(self->listener);
    close(self->stop[0]);
    close(self->stop[1]);
}

/* … and every step was taken, by the request it expects. */
static inline void scripted_agent_stop(scripted_agent *self)
{
    scripted_agent_end(self);
    assert_false(self->has_failed);
    assert_int_equal(self->done, self->count);
}

#endif
