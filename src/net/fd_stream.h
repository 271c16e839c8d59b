/* A libuv handle for whatever a descriptor is. A regular file has no handle that can be polled: it
 * gets an idle one, so that closing takes the same path for all. */
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
    int old_flags; /* of descriptors 0 to 2; -1: nothing to set back */
    bool is_file;
} fd_stream;

/* Takes `fd`, also on failure: then no handle is left behind when `out_needs_close` is false, else
 * the caller closes it. Sets as.handle.data to `owner`. */
bay_err fd_stream_open(uv_loop_t *uv, fd_stream *self, int fd, void *owner,
                       bool *out_needs_close) BAY_MUST_CHECK;
void fd_stream_close(fd_stream *self, uv_close_cb closed);
/* In the close callback: closes what libuv does not, sets back what was changed. */
void fd_stream_fini(fd_stream *self);

#endif
