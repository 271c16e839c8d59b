/* The browser of a test: one GET over a connection of its own, which waits. */
#ifndef SUPPORT_BROWSE_H
#define SUPPORT_BROWSE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

/* GET; the Location of the answer, or its status line. */
static inline void browse(const char *url, char *out, size_t size)
{
    char host[64];
    unsigned port = 0;
    int path = 0, len = 0;
    char reply[8192] = "";
    CHECK(sscanf(url, "http://%63[^:]:%u%n", host, &port, &path) == 2);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: %s:%u\r\nConnection: close\r\n\r\n", url + path, host,
            port);
    ssize_t got;
    while (len < (int)sizeof(reply) - 1 &&
           (got = read(fd, reply + len, sizeof(reply) - 1 - (size_t)len)) > 0) {
        len += (int)got;
    }
    close(fd);
    char *location = strcasestr(reply, "\r\nlocation: ");
    char *from = location != NULL ? location + 12 : reply;
    from[strcspn(from, "\r\n")] = '\0';
    snprintf(out, size, "%s", from);
}

#endif
