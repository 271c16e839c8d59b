/* The line writer: a write queue on a stream, or plain writes to a file, which never waits for
 * anybody.
 *
 * Invariants: events run from the loop's callbacks only; after line_writer_close or _free there are
 * none, and the memory goes in the close callback. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/fd_stream.h"
#include "net/line_stream.h"
#include "net/loop_internal.h"
#include "net/stream_queue.h"

#define DEFAULT_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define FLUSH_TIMEOUT_MS 5000

struct line_writer {
    loop_object object;
    loop *loop;
    const line_writer_events *events;
    void *user;
    fd_stream target;
    stream_queue queue;
    loop_timer timer; /* bounds the flush of a closing writer */
    loop_task broken; /* says `closed` */
    bay_err reason;
    bool is_broken;
    bool is_closing; /* the owner is gone */
};

static void on_closed(uv_handle_t *handle)
{
    line_writer *self = handle->data;
    fd_stream_fini(&self->target);
    loop_remove(&self->object);
    mem_free(self);
}

void line_writer_free(line_writer *self)
{
    if (self == NULL) {
        return;
    }
    self->is_closing = true;
    loop_undefer(self->loop, &self->broken);
    loop_timer_stop(self->loop, &self->timer);
    stream_queue_drop(&self->queue);
    fd_stream_close(&self->target, on_closed);
}

static void end_object(loop_object *object)
{
    line_writer_free(CONTAINER_OF(object, line_writer, object));
}

static void on_timer(void *argument)
{
    line_writer_free(argument);
}

void line_writer_close(line_writer *self, uint32_t timeout_ms)
{
    if (self == NULL) {
        return;
    }
    self->is_closing = true;
    uint32_t within_ms = timeout_ms > 0 ? timeout_ms : FLUSH_TIMEOUT_MS;
    if (self->is_broken || stream_queue_bytes(&self->queue) == 0 ||
        loop_timer_start(self->loop, &self->timer, within_ms) != BAY_OK) {
        line_writer_free(self);
    }
}

static void on_broken(void *argument)
{
    line_writer *self = argument;
    if (self->events->closed != NULL) {
        self->events->closed(self->user, self->reason);
    }
}

static void set_broken(line_writer *self, bay_err reason)
{
    if (!self->is_broken) {
        self->is_broken = true;
        self->reason = reason;
        stream_queue_drop(&self->queue);
        loop_defer(self->loop, &self->broken);
    }
}

static void on_landed(stream_queue *queue, int status)
{
    line_writer *self = CONTAINER_OF(queue, line_writer, queue);
    if (self->is_closing) {
        if (status != 0 || stream_queue_bytes(queue) == 0) {
            line_writer_free(self);
        }
        return;
    }
    if (status != 0) {
        set_broken(self, loop_error_of(status));
        return;
    }
    bool is_empty = stream_queue_bytes(queue) == 0;
    if (stream_queue_take_drained(queue) && self->events->drained != NULL) {
        self->events->drained(self->user); /* may write again, or free us: nothing is told then */
    } else if (is_empty && self->events->flushed != NULL) {
        self->events->flushed(self->user);
    }
}

static bay_err write_file(int fd, bay_str bytes)
{
    while (bytes.len > 0) {
        ssize_t taken = write(fd, bytes.at, bytes.len);
        if (taken < 0 && errno != EINTR) {
            return BAY_IO;
        }
        bytes = str_from(bytes, taken > 0 ? (size_t)taken : 0);
    }
    return BAY_OK;
}

bay_err line_writer_write(line_writer *self, bay_str line)
{
    if (self->is_broken || self->is_closing) {
        return BAY_CLOSED;
    }
    bay_str spans[] = {line, STR("\n")};
    bay_err err = BAY_OK;
    if (self->target.is_file) {
        err = write_file(self->target.fd, spans[0]);
        if (err == BAY_OK) {
            err = write_file(self->target.fd, spans[1]);
        }
    } else if (line.len >= self->queue.max_bytes ||
               !stream_queue_has_room(&self->queue, line.len + 1)) {
        return BAY_LIMIT;
    } else {
        err = stream_queue_write(&self->queue, spans, ARRAY_LEN(spans));
    }
    if (err != BAY_OK && err != BAY_AGAIN) {
        set_broken(self, err);
        return BAY_CLOSED;
    }
    return err;
}

size_t line_writer_queued_bytes(const line_writer *self)
{
    return stream_queue_bytes(&self->queue);
}

bay_err line_writer_new(loop *on_loop, int fd, size_t high_bytes, size_t max_bytes,
                        const line_writer_events *events, void *user, line_writer **out)
{
    line_writer *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        fd_stream unused = {.fd = fd, .old_flags = -1, .is_file = true};
        fd_stream_fini(&unused);
        return BAY_NOMEM;
    }
    self->loop = on_loop;
    self->events = events;
    self->user = user;
    stream_queue_init(&self->queue, &self->target.as.stream, on_landed);
    stream_queue_set_limits(&self->queue, high_bytes,
                            max_bytes > 0 ? max_bytes : DEFAULT_MAX_BYTES);
    loop_timer_init(&self->timer, on_timer, self);
    self->broken = (loop_task){.function = on_broken, .argument = self};
    self->object.end = end_object;
    loop_add(on_loop, &self->object);
    bool needs_close = false;
    bay_err err = fd_stream_open(&on_loop->uv, &self->target, fd, self, &needs_close);
    if (err == BAY_OK) {
        *out = self;
        return BAY_OK;
    }
    if (needs_close) {
        line_writer_free(self);
    } else {
        loop_remove(&self->object);
        mem_free(self);
    }
    return err;
}
