#include "net/stream_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/loop_internal.h"

#define DEFAULT_HIGH_BYTES ((uint32_t)256 * 1024)
#define DEFAULT_MAX_BYTES ((uint32_t)4 * 1024 * 1024)
#define FIRST_BLOCK_BYTES ((size_t)800) /* including its head, a size that allocators handle well */
#define SPANS_AT_ONCE 16

struct stream_block {
    uv_write_t request;
    stream_queue *queue;
    stream_block *next; /* of unused ones */
    size_t len;
    size_t cap;
    char bytes[];
};

void stream_queue_init(stream_queue *self, uv_stream_t *stream,
                       void (*landed)(stream_queue *self, int status))
{
    *self = (stream_queue){.stream = stream,
                           .landed = landed,
                           .high_bytes = DEFAULT_HIGH_BYTES,
                           .max_bytes = DEFAULT_MAX_BYTES};
}

void stream_queue_set_limits(stream_queue *self, size_t high_bytes, size_t max_bytes)
{
    size_t high = high_bytes == 0 ? DEFAULT_HIGH_BYTES : high_bytes;
    size_t max = max_bytes == 0 ? DEFAULT_MAX_BYTES : max_bytes;
    self->high_bytes = high > UINT32_MAX ? UINT32_MAX : (uint32_t)high;
    self->max_bytes = max > UINT32_MAX ? UINT32_MAX : (uint32_t)max;
    self->is_above_high = self->is_above_high || stream_queue_bytes(self) > self->high_bytes;
}

static bool has_gathered(const stream_queue *self)
{
    return list_holds(&self->gathered);
}

bool stream_queue_is_empty(const stream_queue *self)
{
    return self->waiting == NULL && self->flying == NULL;
}

size_t stream_queue_bytes(const stream_queue *self)
{
    size_t bytes = self->waiting != NULL && !has_gathered(self) ? self->waiting->len : 0;
    return bytes + (self->flying != NULL ? uv_stream_get_write_queue_size(self->stream) : 0);
}

bool stream_queue_has_room(const stream_queue *self, size_t bytes)
{
    size_t queued = stream_queue_bytes(self);
    return queued == 0 || (queued <= self->max_bytes && bytes <= self->max_bytes - queued);
}

bool stream_queue_take_drained(stream_queue *self)
{
    if (!self->is_above_high || stream_queue_bytes(self) > self->high_bytes / 2) {
        return false;
    }
    self->is_above_high = false;
    return true;
}

static void leave_gather(stream_queue *self)
{
    if (has_gathered(self)) {
        list_remove(&self->gathered);
        self->gather->count--;
    }
}

void stream_queue_drop(stream_queue *self)
{
    self->is_broken = true;
    leave_gather(self);
    mem_free(self->waiting);
    self->waiting = NULL;
}

static void on_written(uv_write_t *request, int status);

/* Sends what waits, without its first `sent` bytes. */
static int fly(stream_queue *self, size_t sent)
{
    stream_block *block = self->waiting;
    self->waiting = NULL;
    uv_buf_t bytes = {.base = block->bytes + sent, .len = block->len - sent};
    block->queue = self;
    self->flying = block;
    int failure = uv_write(&block->request, self->stream, &bytes, 1, on_written);
    if (failure != 0) {
        self->flying = NULL;
        mem_free(block);
        stream_queue_drop(self);
    }
    return failure;
}

static void on_written(uv_write_t *request, int status)
{
    stream_block *block = CONTAINER_OF(request, stream_block, request);
    stream_queue *self = block->queue;
    self->flying = NULL;
    mem_free(block);
    if (status != 0) {
        stream_queue_drop(self);
    } else if (self->waiting != NULL) {
        status = fly(self, 0);
    }
    self->landed(self, status);
}

/* Reserves `bytes` in the waiting block. */
static bool reserve(stream_queue *self, size_t bytes)
{
    stream_block *block = self->waiting;
    size_t len = block != NULL ? block->len : 0;
    if (bytes > SIZE_MAX / 4 - len) {
        return false;
    }
    if (block != NULL && len + bytes <= block->cap) {
        return true;
    }
    size_t cap = block != NULL ? block->cap * 2 : FIRST_BLOCK_BYTES;
    if (cap < len + bytes) {
        cap = len + bytes;
    }
    stream_block *grown = mem_resize(block, sizeof(stream_block) + cap);
    if (grown == NULL) {
        return false;
    }
    grown->len = len;
    grown->cap = cap;
    self->waiting = grown;
    return true;
}

/* On a socket, send is cheaper than the path through the file layer, which libuv uses. */
static int64_t send_now(const stream_queue *self, const bay_str *span)
{
    uv_os_fd_t descriptor;
    int failure = uv_fileno((const uv_handle_t *)self->stream, &descriptor);
    if (failure != 0) {
        return failure;
    }
    ssize_t taken;
    do {
        taken = send(descriptor, span->at, span->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : uv_translate_sys_error(errno);
    }
    return taken;
}

/* The bytes that the kernel takes at once; negative: an error of libuv. Nothing is in flight on the
 * stream. */
static int64_t write_now(stream_queue *self, const bay_str *spans, size_t count)
{
    if (count == 1 && self->stream->type == UV_TCP) {
        return send_now(self, spans);
    }
    uv_buf_t bytes[SPANS_AT_ONCE];
    unsigned used = 0;
    for (size_t i = 0; i < count && used < SPANS_AT_ONCE; i++) {
        if (spans[i].len > 0) {
            bytes[used++] = (uv_buf_t){.base = (char *)(uintptr_t)spans[i].at, .len = spans[i].len};
        }
    }
    int taken = uv_try_write(self->stream, bytes, used);
    return taken == UV_EAGAIN ? 0 : taken;
}

/* Copies the spans without their first `skip` bytes into the waiting block, which has room. */
static void append(stream_queue *self, const bay_str *spans, size_t count, size_t skip)
{
    stream_block *block = self->waiting;
    for (size_t i = 0; i < count; i++) {
        size_t from = skip < spans[i].len ? skip : spans[i].len;
        skip -= from;
        if (from < spans[i].len) {
            memcpy(block->bytes + block->len, spans[i].at + from, spans[i].len - from);
            block->len += spans[i].len - from;
        }
    }
}

/* --- gathering -------------------------------------------------------------------------------- */

static void give_spare(stream_gather *self, stream_block *block)
{
    if (block->cap > STREAM_SPARE_BYTES || self->spares == STREAM_GATHER_QUEUES) {
        mem_free(block);
        return;
    }
    block->len = 0;
    block->next = self->spare;
    self->spare = block;
    self->spares++;
}

static stream_block *take_spare(stream_gather *self)
{
    stream_block *block = self->spare;
    if (block != NULL) {
        self->spare = block->next;
        self->spares--;
    }
    return block;
}

/* 0, or libuv's error, after which the queue is broken. */
static int send_gathered(stream_queue *self)
{
    leave_gather(self);
    bay_str bytes = {self->waiting->bytes, self->waiting->len};
    int64_t sent = write_now(self, &bytes, 1);
    if (sent < 0) {
        stream_queue_drop(self);
        return (int)sent;
    }
    if ((size_t)sent < bytes.len) {
        return fly(self, (size_t)sent);
    }
    give_spare(self->gather, self->waiting);
    self->waiting = NULL;
    return 0;
}

/* `landed` may write again: that is added at the end, for the next time. */
static void on_turn_end(void *argument)
{
    stream_gather *self = argument;
    list_link *link;
    self->since_ns = 0;
    for (uint32_t left = self->count; left > 0; left--) {
        if ((link = list_first(&self->queues)) == NULL) {
            break; /* others were dropped meanwhile */
        }
        stream_queue *queue = CONTAINER_OF(link, stream_queue, gathered);
        int failure = send_gathered(queue);
        queue->landed(queue, failure);
    }
    if (self->count > 0) {
        loop_defer(self->loop, &self->task);
    }
}

void stream_gather_leave(stream_gather *self)
{
    if (self->count > 0) {
        loop_undefer(self->loop, &self->task);
        on_turn_end(self);
    }
}

void stream_gather_watch(stream_gather *self)
{
    uint64_t now = uv_hrtime();
    if (self->since_ns == 0) {
        self->since_ns = now;
    } else if (now - self->since_ns >= (uint64_t)STREAM_GATHER_WAIT_US * 1000) {
        stream_gather_leave(self);
    }
}

void stream_gather_init(stream_gather *self, loop *on_loop)
{
    *self = (stream_gather){.task = {.function = on_turn_end, .argument = self}, .loop = on_loop};
    list_init(&self->queues);
}

void stream_gather_fini(stream_gather *self)
{
    for (stream_block *block; (block = take_spare(self)) != NULL;) {
        mem_free(block);
    }
}

void stream_queue_gather(stream_queue *self, stream_gather *gather)
{
    self->gather = gather;
}

void stream_queue_send_gathered(stream_queue *self)
{
    if (has_gathered(self)) {
        (void)!send_gathered(self); /* broken or not, it ends */
    }
}

/* False: they have to be sent to the kernel now. */
static bool gather(stream_queue *self, const bay_str *spans, size_t count, size_t total)
{
    bool is_in = has_gathered(self);
    size_t held = is_in ? self->waiting->len : 0;
    if (self->gather == NULL || self->flying != NULL || total > STREAM_GATHER_BYTES - held ||
        (!is_in && self->gather->count == STREAM_GATHER_QUEUES)) {
        return false;
    }
    if (!is_in) {
        self->waiting = take_spare(self->gather);
    }
    if (!reserve(self, total)) {
        if (!is_in && self->waiting != NULL) {
            give_spare(self->gather, self->waiting);
            self->waiting = NULL;
        }
        return false;
    }
    append(self, spans, count, 0);
    if (!is_in) {
        list_push(&self->gather->queues, &self->gathered);
        self->gather->count++;
        loop_defer(self->gather->loop, &self->gather->task);
    }
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bay_err queue_rest(stream_queue *self, const bay_str *spans, size_t count, size_t skip,
                          size_t rest)
{
    if (!reserve(self, rest)) {
        stream_queue_drop(self);
        return BAY_ERR_NOMEM;
    }
    append(self, spans, count, skip);
    if (self->flying == NULL) {
        int failure = fly(self, 0);
        if (failure != 0) {
            return loop_error_of(failure);
        }
    }
    if (stream_queue_bytes(self) > self->high_bytes) {
        self->is_above_high = true;
        return BAY_ERR_AGAIN;
    }
    return BAY_OK;
}

bay_err stream_queue_write(stream_queue *self, const bay_str *spans, size_t count)
{
    if (self->is_broken) {
        return BAY_ERR_CLOSED;
    }
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].len > SIZE_MAX / 4 - total) {
            return BAY_ERR_NOMEM;
        }
        total += spans[i].len;
    }
    if (total == 0) {
        return BAY_OK;
    }
    if (gather(self, spans, count, total)) {
        return BAY_OK;
    }
    if (has_gathered(self)) {
        int failure = send_gathered(self);
        if (failure != 0) {
            return loop_error_of(failure);
        }
    }
    size_t taken = 0;
    if (self->flying == NULL) {
        int64_t written = write_now(self, spans, count);
        if (written < 0) {
            stream_queue_drop(self);
            return loop_error_of((int)written);
        }
        taken = (size_t)written;
    }
    bay_err err = taken == total ? BAY_OK : queue_rest(self, spans, count, taken, total - taken);
    self->is_cut = self->is_broken && taken > 0;
    return err;
}
