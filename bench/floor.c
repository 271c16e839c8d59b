/* The floor of the design: the least that any HTTP server on this machine can cost. One thread, one
 * epoll; it finds the end of a request (head end and Content-Length) and writes a canned answer. It
 * checks nothing and limits nothing: it exists to be divided by.
 *
 *     floor [PORT [BYTES COUNT]]    port 0 or nothing: a free one, printed on stdout; BYTES: of an
 *                                   answer, when it shall be a long one; COUNT: so many different
 *                                   ones, in turn, so that no cache holds them all */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, REQUEST_BYTES = 64 * 1024, DESCRIPTORS = 65536 };

/* The unread start of a request, kept only when one read did not bring the whole of it. */
typedef struct rest {
    char *at;
    size_t len;
} rest;

static rest rests[DESCRIPTORS];
static char input[REQUEST_BYTES];
static char short_answer[1024];
static char *answer = short_answer;
static size_t answer_len;
static size_t answer_count = 1;

static void make_long_answers(size_t bytes, size_t count)
{
    char head[256];
    int head_len =
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", bytes);
    answer_len = (size_t)head_len + bytes;
    answer_count = count;
    answer = malloc(answer_len * count);
    if (answer == NULL) {
        exit(1);
    }
    memset(answer, 'x', answer_len * count);
    for (size_t i = 0; i < count; i++) {
        memcpy(answer + i * answer_len, head, (size_t)head_len);
    }
}

static void make_answer(void)
{
    char body[256];
    int body_len =
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
                 "\"content\":[{\"type\":\"text\",\"text\":\"%.96s\"}],\"isError\":false}}",
                 "17 degrees and cloudy, light wind from the west, no rain before tonight, "
                 "sunset at twenty past nine");
    answer_len =
        (size_t)snprintf(answer, sizeof(short_answer),
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n%s",
                         body_len, body);
}

/* The length of the request that begins at `at`, 0 when it is not all there yet. */
static size_t request_len(const char *at, size_t len)
{
    const char *end = memmem(at, len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    size_t total = (size_t)(end - at) + 4;
    for (const char *line = memchr(at, '\n', total); line != NULL && line + 1 < end;
         line = memchr(line + 1, '\n', total - (size_t)(line + 1 - at))) {
        if (strncasecmp(line + 1, "content-length:", 15) == 0) {
            total += strtoul(line + 16, NULL, 10);
            break;
        }
    }
    return total <= len ? total : 0;
}

static void drop(int descriptor)
{
    free(rests[descriptor].at);
    rests[descriptor] = (rest){NULL, 0};
    close(descriptor);
}

static bool keep(int descriptor, const char *at, size_t len)
{
    char *copy = malloc(REQUEST_BYTES);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, at, len);
    rests[descriptor] = (rest){copy, len};
    return true;
}

/* A long answer waits for its reader here, and with it everybody else: there is only one. */
static bool put_answer(int descriptor)
{
    static size_t turn;
    const char *its = answer + turn++ % answer_count * answer_len;
    for (size_t done = 0; done < answer_len;) {
        ssize_t put = write(descriptor, its + done, answer_len - done);
        if (put < 0 && errno == EAGAIN) {
            struct pollfd waits = {.fd = descriptor, .events = POLLOUT};
            (void)poll(&waits, 1, 1000);
        } else if (put <= 0) {
            return false;
        } else {
            done += (size_t)put;
        }
    }
    return true;
}

static void serve(int descriptor)
{
    rest *kept = &rests[descriptor];
    char *at = kept->at != NULL ? kept->at : input;
    ssize_t got = read(descriptor, at + kept->len, REQUEST_BYTES - kept->len);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            drop(descriptor);
        }
        return;
    }
    size_t len = kept->len + (size_t)got;
    size_t used = 0;
    for (size_t one; used < len && (one = request_len(at + used, len - used)) > 0; used += one) {
        if (!put_answer(descriptor)) {
            drop(descriptor);
            return;
        }
    }
    if (used == len) {
        free(kept->at);
        *kept = (rest){NULL, 0};
    } else if (kept->at != NULL) {
        memmove(kept->at, kept->at + used, len - used);
        kept->len = len - used;
    } else if (!keep(descriptor, at + used, len - used)) {
        drop(descriptor);
    }
}

static void take_connections(int listener, int poll)
{
    for (;;) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor < 0) {
            return;
        }
        int on = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
        if (descriptor >= DESCRIPTORS || epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
            close(descriptor);
        }
    }
}

static int listen_on(uint16_t port)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0) {
        perror("floor");
        return -1;
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv)
{
    if (argc > 3) {
        make_long_answers(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    } else {
        make_answer();
    }
    int listener = listen_on(argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (listener < 0 || poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) != 0) {
        return 1;
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener) {
                take_connections(listener, poll);
            } else {
                serve(events[i].data.fd);
            }
        }
    }
}
