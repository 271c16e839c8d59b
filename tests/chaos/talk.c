/* The carrier of the clients; see talk.h.
 *
 *     idle --request--> busy: head --> body by length | chunks --> idle
 *     any --connection ends--> no connection; `broken` when it was busy */
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, READ_BYTES = 16 * 1024 };

static int poll_set = -1;
static uint16_t gateway_port;

uint64_t talk_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void text_room(talk_text *out, size_t more)
{
    if (out->size - out->len < more + 1) {
        out->size = (out->len + more + 1) * 3 / 2;
        out->at = realloc(out->at, out->size);
        if (out->at == NULL) {
            perror("talk");
            exit(1);
        }
    }
}

void talk_text_add(talk_text *out, const char *at, size_t len)
{
    text_room(out, len);
    memcpy(out->at + out->len, at, len);
    out->len += len;
    out->at[out->len] = '\0';
}

void talk_text_put(talk_text *out, const char *format, ...)
{
    va_list list;
    va_list again;
    va_start(list, format);
    va_copy(again, list);
    int len = vsnprintf(NULL, 0, format, list);
    va_end(list);
    text_room(out, (size_t)len);
    (void)vsnprintf(out->at + out->len, (size_t)len + 1, format, again);
    va_end(again);
    out->len += (size_t)len;
}

void talk_text_free(talk_text *out)
{
    free(out->at);
    *out = (talk_text){0};
}

static void text_cut(talk_text *out, size_t len)
{
    out->len -= len;
    if (out->len == 0) {
        talk_text_free(out);
    } else {
        memmove(out->at, out->at + len, out->len + 1);
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

void talk_init(uint16_t port)
{
    gateway_port = port;
    poll_set = epoll_create1(EPOLL_CLOEXEC);
    if (poll_set < 0) {
        perror("talk");
        exit(1);
    }
}

void talk_close(talk_line *line)
{
    if (line->fd > 0) {
        close(line->fd);
    }
    line->fd = -1;
    line->is_busy = false;
    line->serial++;
    talk_text_free(&line->in);
    talk_text_free(&line->out);
    talk_text_free(&line->body);
    talk_text_free(&line->event);
}

static void line_break(talk_line *line)
{
    bool was_busy = line->is_busy;
    talk_close(line);
    if (was_busy) {
        line->events->broken(line);
    }
}

static void line_watch(talk_line *line, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (line->out.len > 0 ? EPOLLOUT : 0),
                                .data.ptr = line};
    (void)epoll_ctl(poll_set, operation, line->fd, &event);
}

/* Whatever fails here shows when the line is looked at next. */
static void line_connect(talk_line *line)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(gateway_port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (line->fd < 0) {
        perror("talk: socket");
        exit(1);
    }
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)!connect(line->fd, (struct sockaddr *)&address, sizeof(address));
    line_watch(line, EPOLL_CTL_ADD);
}

static void line_flush(talk_line *line)
{
    while (line->out.len > 0) {
        ssize_t put = send(line->fd, line->out.at, line->out.len, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            break; /* not yet connected, or full, or gone: the poll says which */
        }
        line->was_sent = true;
        text_cut(&line->out, (size_t)put);
    }
    line_watch(line, EPOLL_CTL_MOD);
}

void talk_request(talk_line *line, const char *method, const char *fields, const char *body)
{
    if (line->fd <= 0) {
        line_connect(line);
    }
    line->is_busy = true;
    line->has_head = false;
    line->was_sent = false;
    line->event_id[0] = '\0';
    talk_text_put(&line->out,
                  "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sContent-Length: %zu\r\n\r\n", method,
                  gateway_port, fields, strlen(body));
    talk_text_add(&line->out, body, strlen(body));
    line_flush(line);
}

/* ---- replies --------------------------------------------------------------------------------- */

static void copy_field(char *out, size_t size, const char *head, const char *name)
{
    const char *at = strcasestr(head, name);
    if (at != NULL) {
        at += strlen(name);
        at += strspn(at, " ");
        size_t len = strcspn(at, "\r\n");
        len = len < size - 1 ? len : size - 1;
        memcpy(out, at, len);
        out[len] = '\0';
    }
}

static void reply_end(talk_line *line)
{
    unsigned serial = line->serial;
    if (line->body.len > 0) {
        talk_text body = line->body;
        line->body = (talk_text){0};
        line->events->message(line, body.at);
        talk_text_free(&body);
    }
    if (line->serial != serial) {
        return;
    }
    line->is_busy = false;
    if (line->is_last) {
        talk_close(line);
    }
    line->events->replied(line);
}

/* Takes one line of an event; true when that ended it. */
static bool event_line(talk_line *line, const char *at, size_t len)
{
    if (len > 5 && memcmp(at, "data:", 5) == 0) {
        size_t skip = at[5] == ' ' ? 6 : 5;
        talk_text_add(&line->event, at + skip, len - skip);
    } else if (len > 3 && memcmp(at, "id:", 3) == 0) {
        size_t skip = at[3] == ' ' ? 4 : 3;
        size_t size = len - skip < TALK_ID - 1 ? len - skip : TALK_ID - 1;
        memcpy(line->event_id, at + skip, size);
        line->event_id[size] = '\0';
    }
    return len == 0;
}

/* False when the line was closed meanwhile. */
static bool take_events(talk_line *line, const char *at, size_t len)
{
    unsigned serial = line->serial;
    talk_text_add(&line->body, at, len);
    size_t used = 0;
    for (char *end; (end = memchr(line->body.at + used, '\n', line->body.len - used)) != NULL;) {
        size_t size = (size_t)(end - (line->body.at + used));
        bool has_return = size > 0 && end[-1] == '\r';
        bool is_end = event_line(line, line->body.at + used, size - has_return);
        used += size + 1;
        if (is_end && line->event.len > 0) {
            talk_text event = line->event;
            line->event = (talk_text){0};
            line->events->message(line, event.at);
            talk_text_free(&event);
        }
        if (line->serial != serial) {
            return false;
        }
    }
    text_cut(&line->body, used);
    return true;
}

/* True when it made progress. */
static bool take_head(talk_line *line)
{
    char value[64] = "";
    char *end = memmem(line->in.at, line->in.len, "\r\n\r\n", 4);
    if (end == NULL) {
        return false;
    }
    end[2] = '\0';
    line->status = (int)strtol(line->in.at + 9, NULL, 10);
    copy_field(line->session, sizeof(line->session), line->in.at, "\nmcp-session-id:");
    copy_field(value, sizeof(value), line->in.at, "\ncontent-type:");
    line->is_stream = strncasecmp(value, "text/event-stream", 17) == 0;
    value[0] = '\0';
    copy_field(value, sizeof(value), line->in.at, "\ntransfer-encoding:");
    line->is_chunked = strcasecmp(value, "chunked") == 0;
    value[0] = '\0';
    copy_field(value, sizeof(value), line->in.at, "\ncontent-length:");
    line->left = strtoul(value, NULL, 10);
    value[0] = '\0';
    copy_field(value, sizeof(value), line->in.at, "\nconnection:");
    line->is_last = strcasecmp(value, "close") == 0;
    line->has_head = true;
    line->is_in_chunk = false;
    text_cut(&line->in, (size_t)(end - line->in.at) + 4);
    if (!line->is_chunked && line->left == 0) {
        reply_end(line);
    }
    return true;
}

static bool take_length(talk_line *line)
{
    if (line->in.len < line->left) {
        return false;
    }
    talk_text_add(&line->body, line->in.at, line->left);
    text_cut(&line->in, line->left);
    reply_end(line);
    return true;
}

static bool take_chunk(talk_line *line)
{
    if (!line->is_in_chunk) {
        char *end = memchr(line->in.at, '\n', line->in.len);
        size_t size = end != NULL ? strtoul(line->in.at, NULL, 16) : 0;
        size_t head = end != NULL ? (size_t)(end - line->in.at) + 1 : 0;
        if (end == NULL || (size == 0 && line->in.len < head + 2)) {
            return false;
        }
        text_cut(&line->in, size == 0 ? head + 2 : head);
        line->is_in_chunk = size > 0;
        line->left = size;
        if (size == 0) {
            reply_end(line);
        }
        return true;
    }
    if (line->in.len < line->left + 2) {
        return false;
    }
    talk_text data = line->in;
    size_t size = line->left;
    line->in = (talk_text){0};
    if (data.len > size + 2) {
        talk_text_add(&line->in, data.at + size + 2, data.len - size - 2);
    }
    line->is_in_chunk = false;
    if (line->is_stream) {
        (void)take_events(line, data.at, size);
    } else {
        talk_text_add(&line->body, data.at, size);
    }
    talk_text_free(&data);
    return true;
}

static void line_read(talk_line *line)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(line->fd, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        line_break(line);
        return;
    }
    talk_text_add(&line->in, bytes, (size_t)got);
    unsigned serial = line->serial;
    bool is_going_on = true;
    while (is_going_on && line->serial == serial && line->in.len > 0) {
        if (!line->is_busy) {
            line_break(line); /* bytes that nobody asked for */
            return;
        }
        is_going_on = !line->has_head    ? take_head(line)
                      : line->is_chunked ? take_chunk(line)
                                         : take_length(line);
    }
}

void talk_turn(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(poll_set, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        talk_line *line = events[i].data.ptr;
        unsigned serial = line->serial;
        if (line->fd > 0 && (events[i].events & EPOLLOUT) != 0) {
            line_flush(line);
        }
        if (line->fd > 0 && line->serial == serial &&
            (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            line_read(line);
        }
    }
}
