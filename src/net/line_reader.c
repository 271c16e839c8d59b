/* The line reader. Complete lines of one read are passed directly from the loop's buffer; only an
 * incomplete line, or input that arrives while paused, is copied to `held`.
 *
 * Invariants
 * - Events run from the loop's callbacks only; the memory is freed in the close callback, so an
 *   event may free the reader.
 * - `held` has at most one line's limit and one read; `scanned` of its bytes have no newline, so a
 *   long line is searched once.
 * - While `room` waits nothing is read: the line's source waits.
 * - After the source ended nothing is read; `end` waits while the reader is paused. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/fd_stream.h"
#include "net/line_stream.h"
#include "net/loop_internal.h"
#include "net/reply_room.h"

#define DEFAULT_LINE_BYTES ((size_t)64 * 1024 * 1024)
#define KEEP_BYTES ((size_t)64 * 1024) /* a larger empty `held` is freed */

struct line_reader {
    loop_object object;
    loop *loop;
    const line_reader_events *events;
    void *user;
    fd_stream source;
    uv_fs_t request; /* files only */
    char *file_buffer;
    size_t line_bytes;
    buf held;
    size_t scanned;
    reply_rooms *rooms; /* NULL: its lines are not counted */
    reply_room room;    /* for a line that is in `held` in part */
    loop_task resume;
    bay_err end_reason;
    bool cuts_overlong;
    bool is_paused;
    bool is_reading;    /* the stream is started, or a file's request is under way */
    bool is_skipping;   /* the rest of a line that was cut */
    bool is_source_end; /* nothing more will be read */
    bool is_over;       /* `end` was called, or the owner has freed it */
    bool is_closed;     /* the handle is closed; waits for a file's request */
};

/* --- lines ------------------------------------------------------------------------------------ */

static void end_source(line_reader *self, bay_err reason);
static void stop_reading(line_reader *self);

/* `is_whole`: its end has come. */
static void say_line(line_reader *self, bay_str line, bool is_whole)
{
    reply_room_release(&self->room, loop_now_ms(self->loop)); /* from here on the owner has it */
    if (line.len > 0 && line.at[line.len - 1] == '\r') {
        line.len--;
    }
    if (line.len > self->line_bytes && self->cuts_overlong) {
        line.len = self->line_bytes;
    }
    if (line.len <= self->line_bytes) {
        self->events->line(self->user, line);
        stream_gather_pace(&self->loop->gather);
    } else if (self->events->piece != NULL) {
        self->events->piece(self->user, line, is_whole);
    } else {
        end_source(self, BAY_ERR_LIMIT);
        if (self->events->overflow != NULL) {
            self->events->overflow(self->user, line.len);
        }
    }
}

static bool may_deliver(const line_reader *self)
{
    return !self->is_paused && !self->is_over && self->end_reason != BAY_ERR_LIMIT;
}

/* An incomplete line that is too long already, "\r" or not. */
static bool is_overlong(const line_reader *self, size_t bytes)
{
    return bytes > self->line_bytes && bytes - self->line_bytes > 1;
}

/* Passes on the lines of `bytes`, of which the first `scanned` have no newline; returns the number
 * of processed bytes. */
static size_t deliver(line_reader *self, bay_str bytes, size_t scanned)
{
    size_t done = 0;
    while (may_deliver(self) && done + scanned < bytes.len) {
        const char *from = bytes.at + done;
        const char *end = memchr(from + scanned, '\n', bytes.len - done - scanned);
        size_t len = end != NULL ? (size_t)(end - from) : bytes.len - done;
        scanned = 0;
        if (end == NULL && !self->is_skipping && !is_overlong(self, len)) {
            break;
        }
        done += end != NULL ? len + 1 : len;
        bool was_skipping = self->is_skipping;
        self->is_skipping = end == NULL;
        if (!was_skipping) {
            say_line(self, (bay_str){from, len}, end != NULL);
        } else if (self->events->piece != NULL) {
            self->events->piece(self->user, (bay_str){from, len}, end != NULL);
        }
    }
    return done;
}

static void drop_held(line_reader *self)
{
    if (self->held.cap > KEEP_BYTES) {
        buf_fini(&self->held);
    }
    buf_clear(&self->held);
    self->scanned = 0;
}

static void deliver_held(line_reader *self)
{
    size_t done = deliver(self, buf_view(&self->held), self->scanned);
    if (done >= self->held.len || self->end_reason == BAY_ERR_LIMIT) {
        drop_held(self);
        return;
    }
    buf_consume(&self->held, done);
    self->scanned = may_deliver(self) ? self->held.len : 0;
}

/* Accounts for the memory of an incomplete line. */
static void ask_for_room(line_reader *self)
{
    bool is_large = self->rooms != NULL && self->held.len > REPLY_ROOM_SMALL && !self->is_paused;
    if (is_large &&
        !reply_room_ask(self->rooms, &self->room, self->held.len, loop_now_ms(self->loop))) {
        stop_reading(self);
    }
}

static void take_bytes(line_reader *self, bay_str bytes)
{
    if (self->held.len == 0) {
        bytes = str_from(bytes, deliver(self, bytes, 0));
        if (self->is_over || self->end_reason == BAY_ERR_LIMIT) {
            return;
        }
        buf_str(&self->held, bytes);
        self->scanned = may_deliver(self) ? self->held.len : 0;
    } else {
        buf_str(&self->held, bytes);
        deliver_held(self);
    }
    if (self->held.err != BAY_OK) {
        bay_err err = self->held.err;
        drop_held(self);
        end_source(self, err);
    }
    ask_for_room(self);
}

/* --- the source ------------------------------------------------------------------------------- */

static void stop_reading(line_reader *self)
{
    if (self->is_reading && !self->source.is_file) {
        uv_read_stop(&self->source.as.stream);
        self->is_reading = false;
    }
}

static void end_source(line_reader *self, bay_err reason)
{
    if (!self->is_source_end || reason == BAY_ERR_LIMIT) {
        self->is_source_end = true;
        self->end_reason = reason;
        stop_reading(self);
    }
}

/* Reports what remains after the end of the source. */
static void line_reader_finish(line_reader *self)
{
    if (!self->is_source_end || self->is_paused || self->is_over) {
        return;
    }
    if (self->end_reason == BAY_ERR_EOF && self->held.len > 0 && !self->is_skipping) {
        size_t len = 0;
        char *last = buf_take(&self->held, &len);
        self->scanned = 0;
        say_line(self, (bay_str){last, len}, true);
        mem_free(last);
        if (self->is_paused || self->is_over) {
            return;
        }
    }
    self->is_over = true;
    self->events->end(self->user, self->end_reason);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    line_reader *self = handle->data;
    *out = (uv_buf_t){.base = self->loop->read_buffer, .len = LOOP_READ_BYTES};
}

static void on_bytes(line_reader *self, int64_t count, const char *at)
{
    if (self->is_over) {
        return;
    }
    if (count > 0) {
        take_bytes(self, (bay_str){at, (size_t)count});
    } else {
        end_source(self, count == UV_EOF || count == 0 ? BAY_ERR_EOF : loop_error_of((int)count));
    }
    line_reader_finish(self);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    if (count != 0) { /* zero is libuv's "nothing yet" */
        on_bytes(stream->data, count, bytes->base);
    }
}

static void free_if_closed(line_reader *self);
static void start_reading(line_reader *self);

static void on_file_read(uv_fs_t *request)
{
    line_reader *self = CONTAINER_OF(request, line_reader, request);
    int64_t count = request->result;
    uv_fs_req_cleanup(request);
    self->is_reading = false;
    on_bytes(self, count, self->file_buffer);
    if (!self->is_paused) {
        start_reading(self);
    }
    free_if_closed(self);
}

static void start_reading(line_reader *self)
{
    if (self->is_reading || self->is_source_end || self->is_over || self->room.is_waiting) {
        return;
    }
    int failure = 0;
    if (self->source.is_file) {
        uv_buf_t bytes = {.base = self->file_buffer, .len = LOOP_READ_BYTES};
        failure = uv_fs_read(&self->loop->uv, &self->request, self->source.fd, &bytes, 1, -1,
                             on_file_read);
    } else {
        failure = uv_read_start(&self->source.as.stream, on_alloc, on_read);
    }
    self->is_reading = failure == 0;
    if (failure != 0) {
        end_source(self, loop_error_of(failure));
    }
}

/* --- the owner's calls ------------------------------------------------------------------------ */

static void on_resume(void *argument)
{
    line_reader *self = argument;
    if (self->is_paused || self->is_over) {
        return;
    }
    deliver_held(self);
    if (!self->is_paused) {
        start_reading(self);
    }
    line_reader_finish(self);
}

static void on_granted(reply_room *room)
{
    line_reader *self = CONTAINER_OF(room, line_reader, room);
    if (!self->is_paused) {
        start_reading(self);
    }
}

void line_reader_pause(line_reader *self)
{
    self->is_paused = true;
    stop_reading(self);
}

void line_reader_resume(line_reader *self)
{
    if (self->is_paused && !self->is_over) {
        self->is_paused = false;
        loop_defer(self->loop, &self->resume);
    }
}

bool line_reader_is_paused(const line_reader *self)
{
    return self->is_paused;
}

static void free_if_closed(line_reader *self)
{
    if (!self->is_closed || (self->source.is_file && self->is_reading)) {
        return;
    }
    fd_stream_fini(&self->source);
    loop_remove(&self->object);
    buf_fini(&self->held);
    mem_free(self->file_buffer);
    mem_free(self);
}

static void line_reader_on_closed(uv_handle_t *handle)
{
    line_reader *self = handle->data;
    self->is_closed = true;
    free_if_closed(self);
}

void line_reader_free(line_reader *self)
{
    if (self == NULL) {
        return;
    }
    self->is_over = true;
    reply_room_release(&self->room, loop_now_ms(self->loop));
    reply_rooms_free(self->rooms);
    self->rooms = NULL;
    loop_undefer(self->loop, &self->resume);
    stop_reading(self);
    fd_stream_close(&self->source, line_reader_on_closed);
}

static void end_object(loop_object *object)
{
    line_reader_free(CONTAINER_OF(object, line_reader, object));
}

bay_err line_reader_new(loop *on_loop, int fd, const line_reader_options *options,
                        const line_reader_events *events, void *user, line_reader **out)
{
    line_reader *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        fd_stream unused = {.fd = fd, .old_flags = -1, .is_file = true};
        fd_stream_fini(&unused);
        return BAY_ERR_NOMEM;
    }
    self->loop = on_loop;
    self->events = events;
    self->user = user;
    self->is_paused = true;
    self->line_bytes =
        options != NULL && options->line_bytes > 0 ? options->line_bytes : DEFAULT_LINE_BYTES;
    if (self->line_bytes > SIZE_MAX / 4) {
        self->line_bytes = SIZE_MAX / 4;
    }
    self->cuts_overlong = options != NULL && options->cuts_overlong;
    self->resume = (loop_task){.function = on_resume, .argument = self};
    buf_init(&self->held, self->line_bytes + LOOP_READ_BYTES + 2);
    self->object.end = end_object;
    loop_add(on_loop, &self->object);
    bool needs_close = false;
    bay_err err = fd_stream_open(&on_loop->uv, &self->source, fd, self, &needs_close);
    if (err == BAY_OK && self->source.is_file) {
        self->file_buffer = mem_alloc(LOOP_READ_BYTES);
        err = self->file_buffer != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK && options != NULL && options->reply_bytes > 0) {
        err = reply_rooms_new(on_loop, options->reply_bytes, on_granted, &self->rooms);
    }
    if (err == BAY_OK) {
        *out = self;
        return BAY_OK;
    }
    if (needs_close) {
        line_reader_free(self);
    } else {
        loop_remove(&self->object);
        mem_free(self);
    }
    return err;
}
