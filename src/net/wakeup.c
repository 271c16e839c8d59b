/* An eventfd: a signal handler only has to write, and the kernel keeps the count. */
#include "net/wakeup.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/loop_internal.h"

/* The watcher of a loop; freed by the close of its handle. */
typedef struct watcher {
    loop_object object;
    uv_poll_t handle;
    net_wakeup wakeup;
    void (*rung)(void *argument);
    void *argument;
} watcher;

bay_err net_wakeup_init(net_wakeup *self)
{
    self->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return self->descriptor >= 0 ? BAY_OK : BAY_ERR_IO;
}

void net_wakeup_fini(net_wakeup *self)
{
    if (self->descriptor >= 0) {
        close(self->descriptor);
    }
    self->descriptor = -1;
}

void net_wakeup_signal(const net_wakeup *self)
{
    int kept = errno; /* a signal handler must not change it */
    uint64_t one = 1;
    ssize_t written = write(self->descriptor, &one, sizeof(one));
    (void)written; /* full: it is signalled already */
    errno = kept;
}

void net_wakeup_unwatch(const net_wakeup *self)
{
    uint64_t count;
    ssize_t got = read(self->descriptor, &count, sizeof(count));
    (void)got; /* nothing to read: it was not signalled */
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    watcher *self = CONTAINER_OF(handle, watcher, handle);
    (void)status;
    (void)events;
    net_wakeup_unwatch(&self->wakeup);
    self->rung(self->argument);
}

static void wakeup_on_closed(uv_handle_t *handle)
{
    watcher *self = CONTAINER_OF((uv_poll_t *)handle, watcher, handle);
    loop_remove(&self->object);
    mem_free(self);
}

static void watcher_end(loop_object *object)
{
    watcher *self = CONTAINER_OF(object, watcher, object);
    if (!uv_is_closing((uv_handle_t *)&self->handle)) {
        uv_close((uv_handle_t *)&self->handle, wakeup_on_closed);
    }
}

bay_err net_wakeup_watch(const net_wakeup *self, loop *on, void (*rung)(void *argument),
                         void *argument)
{
    watcher *ear = mem_zalloc(sizeof(*ear));
    if (ear == NULL) {
        return BAY_ERR_NOMEM;
    }
    ear->object.end = watcher_end;
    ear->wakeup = *self;
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
        watcher_end(&ear->object);
        return loop_error_of(failure);
    }
    uv_unref((uv_handle_t *)&ear->handle);
    return BAY_OK;
}
