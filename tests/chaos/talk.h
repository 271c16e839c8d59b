/* What the programs of a chaos run have in common: growing texts, and connections of a client to
 * the gateway: one request at a time on each, its reply read as it comes, events one by one. One
 * epoll set, no threads, plain C; it knows HTTP/1.1 as the gateway writes it and nothing of MCP but
 * the session's header field. */
#ifndef CHAOS_TALK_H
#define CHAOS_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALK_ID = 160, TALK_SESSION = 512 };

typedef struct talk_text {
    char *at; /* ends in NUL, which `len` does not count; NULL when there was never anything */
    size_t len, size;
} talk_text;

void talk_text_add(talk_text *out, const char *at, size_t len);
void talk_text_put(talk_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void talk_text_free(talk_text *out);

typedef struct talk_line talk_line;

typedef struct talk_events {
    /* An event of the reply's stream, or its whole body; ends in NUL. */
    void (*message)(talk_line *line, char *text);
    /* The reply is complete, and the line free for the next request. */
    void (*replied)(talk_line *line);
    /* There is no connection, or none any more, and the reply was not complete. */
    void (*broken)(talk_line *line);
} talk_events;

struct talk_line {
    const talk_events *events;
    void *user;
    int fd; /* -1: none; 0 means the same in a line that was never used */
    bool is_busy, has_head, is_stream, is_chunked;
    bool is_last;  /* the gateway closes the connection after this reply */
    bool was_sent; /* bytes of the request may have arrived */
    int status;
    size_t left; /* of the body, or of the chunk */
    bool is_in_chunk;
    char session[TALK_SESSION]; /* of the last reply that named one */
    char event_id[TALK_ID];     /* of the last event that had one */
    unsigned serial;            /* grows with each connection */
    talk_text in, out, body, event;
};

/* Where all lines lead to. Exits when there is no epoll. */
void talk_init(uint16_t port);

/* Sends a request; connects first where there is no connection. `fields` are whole lines. Whatever
 * goes wrong is said by `broken`, from talk_turn. */
void talk_request(talk_line *line, const char *method, const char *fields, const char *body);

void talk_close(talk_line *line);

/* Whatever happened within `timeout_ms`. */
void talk_turn(int timeout_ms);

uint64_t talk_now_us(void);

#endif
