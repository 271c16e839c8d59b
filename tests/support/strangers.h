/* What a stranger is told of what belongs to another: the same bytes and status as for an invented
 * name. Requests are raw; in their texts ' stands for " and @ for the name. */
#ifndef SUPPORT_STRANGERS_H
#define SUPPORT_STRANGERS_H

#include "support/door_wire.h"

#include <stdlib.h>

enum { STRANGER_TEXT = 32 << 10 };

typedef struct exchange {
    const char *verb;
    const char *target;
    const char *fields; /* whole lines */
    const char *body;
} exchange;

/* Puts `id` where @ is. */
static inline void exchange_fill(const char *text, const char *id, char *out, size_t size)
{
    size_t len = 0;
    for (; *text != '\0' && len + strlen(id) + 1 < size; text++) {
        if (*text == '@') {
            len += (size_t)snprintf(out + len, size - len, "%s", id);
        } else {
            out[len++] = *text == '\'' ? '"' : *text;
        }
    }
    out[len] = '\0';
}

/* A connection with that request on it. */
static inline int exchange_begin(uint16_t port, const char *who, const exchange *of, const char *id)
{
    static char target[4096], fields[8192], body[16384], head[16384];
    exchange_fill(of->target, id, target, sizeof(target));
    exchange_fill(of->fields, id, fields, sizeof(fields));
    exchange_fill(of->body, id, body, sizeof(body));
    int len = snprintf(head, sizeof(head),
                       "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Caller: %s\r\n"
                       "Content-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\n%s"
                       "Content-Length: %zu\r\n\r\n",
                       of->verb, target, who, fields, strlen(body));
    assert_true(len > 0 && (size_t)len < sizeof(head));
    int fd = door_connect(port);
    door_send(fd, head, (size_t)len);
    door_send(fd, body, strlen(body));
    return fd;
}

/* The whole reply. */
static inline void exchange_run(uint16_t port, const char *who, const exchange *of, const char *id,
                                char out[STRANGER_TEXT])
{
    int fd = exchange_begin(port, who, of, id);
    out[0] = '\0';
    while (door_receive(fd, out, STRANGER_TEXT)) {
    }
    close(fd);
}

/* Without the date and the length, and with @ in place of the name, which may be in it. */
static inline void exchange_normalise(char *text, const char *id)
{
    static const char *const fields[] = {"Date: ", "Content-Length: "};
    for (int i = 0; i < 2; i++) {
        char *field = strstr(text, fields[i]);
        if (field != NULL) {
            char *end = strstr(field, "\r\n") + 2;
            memmove(field, end, strlen(end) + 1);
        }
    }
    for (char *at = text; id[0] != '\0' && (at = strstr(at, id)) != NULL; at++) {
        *at = '@';
        memmove(at + 1, at + strlen(id), strlen(at + strlen(id)) + 1);
    }
}

/* As `id` to look at, but of nobody. */
static inline void invent_alike(const char *id, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", id);
    size_t len = strlen(out);
    char *at = out + len - len / 3;
    while (*at == '-' || *at == '\0') {
        at--;
    }
    *at = *at == '7' ? '8' : '7';
}

/* The stranger's answer about `id`, which exists, is that about names that nobody ever had: one
 * that looks like it, and `invented`. */
static inline void assert_strange(uint16_t port, const char *who, const exchange *of,
                                  const char *id, const char *invented)
{
    static char got[STRANGER_TEXT], wanted[STRANGER_TEXT], alike[4096];
    const char *names[2] = {alike, invented};
    invent_alike(id, alike, sizeof(alike));
    exchange_run(port, who, of, id, got);
    exchange_normalise(got, id);
    for (int i = 0; i < 2; i++) {
        exchange_run(port, who, of, names[i], wanted);
        exchange_normalise(wanted, names[i]);
        if (strcmp(got, wanted) != 0) {
            print_error("%s %s %s\n%s\nof another: %s\ninvented (%s): %s\n", of->verb, of->target,
                        of->fields, of->body, got, names[i], wanted);
        }
        assert_string_equal(got, wanted);
    }
    bool is_error = strncmp(got, "HTTP/1.1 2", 10) != 0 || strstr(got, "\"error\":") != NULL ||
                    strstr(got, "\"isError\":true") != NULL;
    if (!is_error) {
        fail_msg("%s %s is no refusal: %s", of->verb, of->body, got);
    }
}

#endif
