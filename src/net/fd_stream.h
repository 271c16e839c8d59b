/* A libuv handle for any kind of descriptor. A regular file cannot be polled: it gets an idle
 * handle, so that closing is the same for all. */
#ifndef NET_FD_STREAM_H
#define NET_FD_STREAM_H

#include <uv.h>

#include "patchbay/types.h"

typedef struct fd_stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
        uv_tty_t tty;
        uv_idle_t idle;
    } as;
    int fd;
    int old_flags; /* of descriptors 0 to 2; -1: nothing to restore */
    bool is_file;
} fd_stream;

/* Takes `fd`, also on failure: then, if `out_needs_close` is false, no handle is left, otherwise
 * the caller closes it. Sets as.handle.data to `owner`. */
bay_err fd_stream_open(uv_loop_t *uv, fd_stream *self, int fd, void *owner,
                       bool *out_needs_close) BAY_MUST_CHECK;
void fd_stream_close(fd_stream *self, uv_close_cb closed);
/* In the close callback: closes what libuv does not, restores what was changed. */
void fd_stream_fini(fd_stream *self);

#endif
