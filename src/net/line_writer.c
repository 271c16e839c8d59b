/* The line writer: a write queue on a stream, or plain writes to a file, which never blocks. Short
 * lines of one loop iteration are gathered and written by one write at its end: with many
 * concurrent calls, a pipe then needs one system call per iteration, not per line.
 *
 * Invariants: gathered lines are older than everything written directly, so they are written first;
 * events run from the loop's callbacks only; after line_writer_close or _free there are none, and
 * the memory is freed in the close callback. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/fd_stream.h"
#include "net/line_stream.h"
#include "net/loop_internal.h"
#include "net/stream_queue.h"

#define DEFAULT_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define FLUSH_TIMEOUT_MS 5000
#define GATHER_BYTES ((size_t)64 * 1024) /* more than this is written at once */

struct line_writer {
    loop_object object;
    loop *loop;
    const line_writer_events *events;
    void *user;
    fd_stream target;
    stream_queue queue;
    loop_timer timer; /* limits the flush of a closing writer */
    loop_task broken; /* calls `closed` */
    loop_task flush;  /* writes the gathered lines */
    buf gathered;
    bay_err reason;
    bool is_broken;
    bool is_closing; /* the owner has released it */
};

static void line_writer_on_closed(uv_handle_t *handle)
{
    line_writer *self = handle->data;
    fd_stream_fini(&self->target);
    loop_remove(&self->object);
    buf_fini(&self->gathered);
    mem_free(self);
}

void line_writer_free(line_writer *self)
{
    if (self == NULL) {
        return;
    }
    self->is_closing = true;
    loop_undefer(self->loop, &self->broken);
    loop_undefer(self->loop, &self->flush);
    buf_clear(&self->gathered);
    loop_timer_stop(self->loop, &self->timer);
    stream_queue_drop(&self->queue);
    fd_stream_close(&self->target, line_writer_on_closed);
}

static void end_object(loop_object *object)
{
    line_writer_free(CONTAINER_OF(object, line_writer, object));
}

static void on_timer(void *argument)
{
    line_writer_free(argument);
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

/* To the stream's queue, which tries the kernel first. */
static bay_err write_gathered(line_writer *self)
{
    bay_str bytes = buf_view(&self->gathered);
    loop_undefer(self->loop, &self->flush);
    if (bytes.len == 0 || self->is_broken) {
        return BAY_OK;
    }
    bay_err err = stream_queue_write(&self->queue, &bytes, 1);
    buf_clear(&self->gathered);
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        set_broken(self, err);
    }
    return err;
}

static void on_flush(void *argument)
{
    line_writer *self = argument;
    write_gathered(self);
    if (!self->is_broken && stream_queue_bytes(&self->queue) == 0 &&
        self->events->flushed != NULL) {
        self->events->flushed(self->user);
    }
}

void line_writer_close(line_writer *self, uint32_t timeout_ms)
{
    if (self == NULL) {
        return;
    }
    write_gathered(self);
    self->is_closing = true;
    uint32_t within_ms = timeout_ms > 0 ? timeout_ms : FLUSH_TIMEOUT_MS;
    if (self->is_broken || stream_queue_bytes(&self->queue) == 0 ||
        loop_timer_start(self->loop, &self->timer, within_ms) != BAY_OK) {
        line_writer_free(self);
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
        self->events->drained(self->user); /* may write again, or free this: nothing follows then */
    } else if (is_empty && self->events->flushed != NULL) {
        self->events->flushed(self->user);
    }
}

static bay_err write_file(int fd, bay_str bytes)
{
    while (bytes.len > 0) {
        ssize_t taken = write(fd, bytes.at, bytes.len);
        if (taken < 0 && errno != EINTR) {
            return BAY_ERR_IO;
        }
        bytes = str_from(bytes, taken > 0 ? (size_t)taken : 0);
    }
    return BAY_OK;
}

/* False: the line must be written directly. */
static bool gather(line_writer *self, bay_str line)
{
    size_t len = line.len + 1;
    if (len > GATHER_BYTES / 4 || self->gathered.len + len > GATHER_BYTES ||
        line.len >= self->queue.max_bytes ||
        !stream_queue_has_room(&self->queue, self->gathered.len + len) ||
        !buf_reserve(&self->gathered, len)) {
        self->gathered.err = BAY_OK; /* its content is complete */
        return false;
    }
    buf_str(&self->gathered, line);
    buf_char(&self->gathered, '\n');
    loop_defer(self->loop, &self->flush);
    return true;
}

bay_err line_writer_write(line_writer *self, bay_str line)
{
    if (self->is_broken || self->is_closing) {
        return BAY_ERR_CLOSED;
    }
    bay_str spans[] = {line, STR("\n")};
    bay_err err = BAY_OK;
    if (!self->target.is_file && gather(self, line)) {
        return self->queue.is_above_high ? BAY_ERR_AGAIN : BAY_OK;
    }
    if (self->target.is_file) {
        err = write_file(self->target.fd, spans[0]);
        if (err == BAY_OK) {
            err = write_file(self->target.fd, spans[1]);
        }
    } else if (line.len >= self->queue.max_bytes ||
               !stream_queue_has_room(&self->queue, self->gathered.len + line.len + 1)) {
        return BAY_ERR_LIMIT;
    } else {
        err = write_gathered(self);
        if (err == BAY_OK || err == BAY_ERR_AGAIN) {
            err = stream_queue_write(&self->queue, spans, ARRAY_LEN(spans));
        }
    }
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        set_broken(self, err);
        return self->queue.is_cut ? BAY_OK : BAY_ERR_CLOSED;
    }
    return err;
}

size_t line_writer_queued_bytes(const line_writer *self)
{
    return self->gathered.len + stream_queue_bytes(&self->queue);
}

bay_err line_writer_new(loop *on_loop, int fd, size_t high_bytes, size_t max_bytes,
                        const line_writer_events *events, void *user, line_writer **out)
{
    line_writer *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        fd_stream unused = {.fd = fd, .old_flags = -1, .is_file = true};
        fd_stream_fini(&unused);
        return BAY_ERR_NOMEM;
    }
    self->loop = on_loop;
    self->events = events;
    self->user = user;
    stream_queue_init(&self->queue, &self->target.as.stream, on_landed);
    stream_queue_set_limits(&self->queue, high_bytes,
                            max_bytes > 0 ? max_bytes : DEFAULT_MAX_BYTES);
    loop_timer_init(&self->timer, on_timer, self);
    self->broken = (loop_task){.function = on_broken, .argument = self};
    self->flush = (loop_task){.function = on_flush, .argument = self};
    buf_init(&self->gathered, GATHER_BYTES);
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
