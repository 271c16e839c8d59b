#include "net/fd_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include "net/loop_internal.h"

/* Non-blocking is a property of the open file, not of the descriptor: other processes that share
 * this terminal or pipe would get it, too. So it is restored for the standard three. */
static void remember_flags(fd_stream *self, int fd)
{
    self->old_flags = fd <= STDERR_FILENO ? fcntl(fd, F_GETFL) : -1;
}

bay_err fd_stream_open(uv_loop_t *uv, fd_stream *self, int fd, void *owner, bool *out_needs_close)
{
    *self = (fd_stream){.fd = fd};
    *out_needs_close = false;
    remember_flags(self, fd);
    int failure = 0;
    switch (uv_guess_handle(fd)) {
    case UV_NAMED_PIPE:
        uv_pipe_init(uv, &self->as.pipe, 0);
        *out_needs_close = true;
        failure = uv_pipe_open(&self->as.pipe, fd);
        break;
    case UV_TCP:
        uv_tcp_init(uv, &self->as.tcp);
        *out_needs_close = true;
        failure = uv_tcp_open(&self->as.tcp, fd);
        break;
    case UV_TTY:
        failure = uv_tty_init(uv, &self->as.tty, fd, 0);
        *out_needs_close = failure == 0;
        break;
    case UV_FILE:
        uv_idle_init(uv, &self->as.idle);
        *out_needs_close = true;
        self->is_file = true;
        break;
    default:
        failure = UV_EINVAL;
        break;
    }
    if (*out_needs_close) {
        self->as.handle.data = owner;
    }
    if (failure != 0) {
        self->is_file = true; /* libuv did not take the descriptor: fini closes it */
        if (!*out_needs_close) {
            fd_stream_fini(self);
        }
        return BAY_ERR_IO;
    }
    return BAY_OK;
}

void fd_stream_close(fd_stream *self, uv_close_cb closed)
{
    if (!uv_is_closing(&self->as.handle)) {
        uv_close(&self->as.handle, closed);
    }
}

void fd_stream_fini(fd_stream *self)
{
    if (self->old_flags >= 0) {
        (void)fcntl(self->fd, F_SETFL, self->old_flags);
    }
    if (self->is_file && self->fd > STDERR_FILENO) {
        close(self->fd);
    }
    self->fd = -1;
}
