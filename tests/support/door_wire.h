/* Blocking sockets for clients of another thread's loop, and a look for the answer in what came. */
#ifndef SUPPORT_DOOR_WIRE_H
#define SUPPORT_DOOR_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DOOR_GIVE_UP_MS = 20000 };

/* In process: who speaks where nobody in particular does, as in a listen. */
#define DOOR_LINK_CALLER "link"

static inline int door_connect(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static inline void door_send(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = send(fd, at, len, MSG_NOSIGNAL);
        assert_true(done > 0);
        at += done;
        len -= (size_t)done;
    }
}

/* Appends what comes; false: nothing more comes. */
static inline bool door_receive(int fd, char *text, size_t size)
{
    size_t len = strlen(text);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, DOOR_GIVE_UP_MS) <= 0) {
        fail_msg("nothing came; so far: %s", text);
    }
    assert_true(len + 1 < size);
    ssize_t got = recv(fd, text + len, size - len - 1, 0);
    text[len + (got > 0 ? (size_t)got : 0)] = '\0';
    return got > 0;
}

static inline void door_quotes(char *text)
{
    for (; *text != '\0'; text++) {
        *text = *text == '\'' ? '"' : *text;
    }
}

/* Is the answer there, whole up to `end`? */
static inline bool door_is_answered(const char *text, int id, const char *end)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof(wanted), "\"id\":%d,", id);
    const char *at = strstr(text, wanted);
    at = at == NULL ? strstr(text, "notifications/subscriptions/acknowledged") : at;
    return at != NULL && (end == NULL || strstr(at, end) != NULL);
}

#endif
