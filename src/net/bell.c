/* An eventfd: a write is all that a signal handler has to do, and the kernel keeps the count. */
#include "net/bell.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/loop_internal.h"

/* The ear of a loop; freed by the close of its handle. */
typedef struct hanger {
    loop_object object;
    uv_poll_t handle;
    bell bell;
    void (*rung)(void *argument);
    void *argument;
} hanger;

bay_err bell_init(bell *self)
{
    self->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return self->descriptor >= 0 ? BAY_OK : BAY_IO;
}

void bell_fini(bell *self)
{
    if (self->descriptor >= 0) {
        close(self->descriptor);
    }
    self->descriptor = -1;
}

void bell_ring(const bell *self)
{
    int kept = errno; /* a signal handler must leave it as it was */
    uint64_t one = 1;
    ssize_t written = write(self->descriptor, &one, sizeof(one));
    (void)written; /* full: it was rung often enough */
    errno = kept;
}

void bell_mute(const bell *self)
{
    uint64_t count;
    ssize_t got = read(self->descriptor, &count, sizeof(count));
    (void)got; /* nothing there: it was not rung */
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    hanger *self = CONTAINER_OF(handle, hanger, handle);
    (void)status;
    (void)events;
    bell_mute(&self->bell);
    self->rung(self->argument);
}

static void on_closed(uv_handle_t *handle)
{
    hanger *self = CONTAINER_OF((uv_poll_t *)handle, hanger, handle);
    loop_remove(&self->object);
    mem_free(self);
}

static void hanger_end(loop_object *object)
{
    hanger *self = CONTAINER_OF(object, hanger, object);
    if (!uv_is_closing((uv_handle_t *)&self->handle)) {
        uv_close((uv_handle_t *)&self->handle, on_closed);
    }
}

bay_err bell_hang(const bell *self, loop *on, void (*rung)(void *argument), void *argument)
{
    hanger *ear = mem_zalloc(sizeof(*ear));
    if (ear == NULL) {
        return BAY_NOMEM;
    }
    ear->object.end = hanger_end;
    ear->bell = *self;
    ear->rung = rung;
    ear->argument = argument;
    int failure = uv_poll_init(loop_uv(on), &ear->handle, self->descriptor);
    if (failure != 0) {
        mem_free(ear);
        return loop_error_of(failure);
    }
    loop_add(on, &ear->object);
    failure = uv_poll_start(&ear->handle, UV_READABLE, on_readable);
    if (failure != 0) {
        hanger_end(&ear->object);
        return loop_error_of(failure);
    }
    uv_unref((uv_handle_t *)&ear->handle);
    return BAY_OK;
}
