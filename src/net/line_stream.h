/* Lines over a descriptor: a child's pipes, and this process's stdin and stdout, of any kind (pipe,
 * socket, terminal, file).
 *
 * The reader passes on one line at a time, borrowed, without its "\n" or "\r\n"; an incomplete last
 * line is passed on before the end. A line above the limit is reported and ends the stream (or, if
 * the owner chooses, is cut).
 *
 * No event runs inside a call of the owner; every function is for the loop's thread. */
#ifndef NET_LINE_STREAM_H
#define NET_LINE_STREAM_H

#include "net/loop.h"

typedef struct line_reader line_reader;
typedef struct line_writer line_writer;

typedef struct line_reader_events {
    void (*line)(void *user, bay_str line);
    /* A line above the limit: `end` follows with BAY_ERR_LIMIT. May be NULL. */
    void (*overflow)(void *user, size_t line_bytes);
    /* In place of `overflow`: a line of more than the bound is handed out in pieces, in order, the
     * last one with `is_last`, and the lines after it as usual. May be NULL. */
    void (*piece)(void *user, bay_str piece, bool is_last);
    /* The last event, exactly once unless line_reader_free came first: BAY_ERR_EOF, BAY_ERR_LIMIT
     * or another error. */
    void (*end)(void *user, bay_err err);
} line_reader_events;

typedef struct line_reader_options {
    size_t line_bytes; /* limit of one line; 0: 64 MiB */
    /* 0: not counted. A line of more than REPLY_ROOM_SMALL waits in the pipe while the account of
     * the process is above this (net/reply_room.h). */
    size_t reply_bytes;
    bool cuts_overlong; /* pass on the first `line_bytes` and drop the rest, instead of ending */
} line_reader_options;

/* Reading begins with line_reader_resume. Owns: takes `fd`, also on failure (0 to 2 are never
 * closed, but restored).
 * Errors: BAY_ERR_NOMEM, BAY_ERR_IO. Units: bytes. Threads: the loop's. */
bay_err line_reader_new(loop *loop, int fd, const line_reader_options *options,
                        const line_reader_events *events, void *user,
                        line_reader **out) BAY_MUST_CHECK;
void line_reader_pause(line_reader *self);
void line_reader_resume(line_reader *self);
bool line_reader_is_paused(const line_reader *self);
void line_reader_free(line_reader *self); /* no more events; NULL is allowed */

typedef struct line_writer_events {
    void (*drained)(void *user); /* after line_writer_write returned BAY_ERR_AGAIN; may be NULL */
    void (*closed)(void *user, bay_err err); /* the other end has closed; may be NULL */
    void (*flushed)(void *user);             /* everything queued is written; may be NULL */
} line_writer_events;

/* `high_bytes`: BAY_ERR_AGAIN above it; `max_bytes`: the limit of what waits; 0: 256 KiB and 64
 * MiB. Owns, Errors, Units, Threads: as line_reader_new. */
bay_err line_writer_new(loop *loop, int fd, size_t high_bytes, size_t max_bytes,
                        const line_writer_events *events, void *user,
                        line_writer **out) BAY_MUST_CHECK;

/* Writes `line` and a newline. BAY_OK; BAY_ERR_AGAIN: accepted, stop until drained; BAY_ERR_LIMIT:
 * not accepted, the queue is full; BAY_ERR_CLOSED: not accepted. An accepted line may be read by
 * the other end, or a part of it; `closed` reports if the rest cannot follow. The line must not
 * contain a newline. */
bay_err line_writer_write(line_writer *self, bay_str line);
size_t line_writer_queued_bytes(const line_writer *self);

/* Flushes the queue, then closes and frees. No more events; `self` is invalid for the caller. If
 * the other end does not read, it is cut after `timeout_ms`. NULL is allowed. */
void line_writer_close(line_writer *self, uint32_t timeout_ms);
void line_writer_free(line_writer *self); /* drops what is queued; NULL is allowed */

#endif
