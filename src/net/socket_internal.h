/* The inside of a socket, shared by its files: socket.c (streams), socket_connect.c,
 * socket_listen.c and socket_tls.c. */
#ifndef NET_SOCKET_INTERNAL_H
#define NET_SOCKET_INTERNAL_H

#include <sys/socket.h>
#include <sys/types.h>

#include "net/loop_internal.h"
#include "net/socket.h"
#include "net/stream_queue.h"

typedef enum socket_state {
    SOCKET_CONNECTING,
    SOCKET_HANDSHAKING,
    SOCKET_CONNECTED,
    SOCKET_FLUSHING,  /* graceful close: the queue is being written */
    SOCKET_LINGERING, /* our half is shut; waits for the peer's */
    SOCKET_CLOSED,    /* its handle is closing; only `closed` remains */
} socket_state;

typedef struct socket_connector socket_connector;
typedef struct socket_tls socket_tls;

struct net_socket {
    loop_object object;
    uv_tcp_t tcp;
    loop *loop;
    const socket_events *events; /* never NULL */
    void *user;
    stream_queue queue;
    loop_timer timer;            /* connect, handshake, then close */
    socket_connector *connector; /* while connecting */
    socket_tls *tls;             /* NULL in clear text */
    char *text;                  /* why it ended; NULL: the text of `reason` */
    uint8_t peer[16];
    uint16_t peer_port;
    uint8_t peer_family; /* 0, 4 or 6 */
    uint8_t state;       /* socket_state */
    uint8_t reason;      /* bay_err */
    bool wants_read : 1;
    bool is_reading : 1;
    bool is_eof : 1;   /* of the peer's half */
    bool is_shut : 1;  /* of our half: no more writes */
    bool is_ended : 1; /* the kernel was notified */
};

/* A socket with an initialised handle and no descriptor. */
bay_err socket_new(loop *loop, const socket_events *events, void *user,
                   net_socket **out) BAY_MUST_CHECK;
/* Before anything was started on it: no `closed`. */
void socket_discard(net_socket *self);
/* Sets a connected descriptor; takes `fd`, also on failure. */
bay_err socket_adopt(net_socket *self, int fd) BAY_MUST_CHECK;
void socket_set_peer(net_socket *self, const struct sockaddr *address);

/* Closes the handle of a failed attempt; socket_connector_retry follows. */
void socket_close_handle(net_socket *self);

/* The stream is connected: starts TLS or calls `connected`. */
void socket_established(net_socket *self);
void socket_say_connected(net_socket *self);

/* Ends with an error: `failed` if it was not connected yet (and the loop calls this), then closing.
 * `text` may be NULL. */
void socket_fail(net_socket *self, bay_err err, const char *text);
/* The same without an event now: for calls of the owner. */
void socket_fail_quietly(net_socket *self, bay_err err, const char *text);

/* Reading, as seen from the stream. */
void socket_raw_read_start(net_socket *self);
void socket_raw_read_stop(net_socket *self);
void socket_say_data(net_socket *self, bay_str bytes);
void socket_say_eof(net_socket *self);

/* Connecting (socket_connect.c). */
void socket_connector_stop(net_socket *self);  /* the socket is ending */
void socket_connector_retry(net_socket *self); /* the handle of a failed attempt has closed */

/* Unix sockets (socket_unix.c). The file that a listener has made: it removes only that. */
typedef struct socket_unix_file {
    char path[SOCKET_UNIX_PATH_BYTES]; /* "": none */
    dev_t device;
    ino_t inode;
} socket_unix_file;
/* A listening descriptor. Errors: as socket_listen. */
bay_err socket_unix_open(bay_str address, int backlog, socket_unix_file *out, int *out_fd,
                         bay_diag *diag) BAY_MUST_CHECK;
/* While the descriptor is open: afterwards another process may have replaced it. */
void socket_unix_remove(const socket_unix_file *file);

/* TLS (socket_tls.c). `server_name` at NULL: the server's side. */
bay_err socket_tls_new(net_socket *self, tls_context *context, bay_str server_name,
                       bay_diag *diag) BAY_MUST_CHECK;
void socket_tls_free(net_socket *self);
void socket_tls_start(net_socket *self);                /* the handshake */
void socket_tls_input(net_socket *self, bay_str bytes); /* ciphertext */
void socket_tls_resume(net_socket *self);               /* reading is requested again */
bay_err socket_tls_write(net_socket *self, const bay_str *spans, size_t count) BAY_MUST_CHECK;
void socket_tls_end(net_socket *self); /* close_notify */
bool socket_tls_is_http2(const net_socket *self);
void socket_tls_offer_http2(net_socket *self);
size_t socket_tls_certificate(const net_socket *self, tls_certificate_part part, char *out,
                              size_t cap);

#endif
