/* A byte stream over TCP, or over a stream descriptor that is already open, with or without TLS.
 *
 *                 socket_connect                       accepted (listener)
 *                       |                                     |
 *                       v                                     v
 *                  connecting  --failed-->  closing   handshaking (TLS only)
 *                       |                      ^              |
 *                       +------> connected <---|--------------+
 *                                    |         |
 *                     data* eof? drained*      |
 *                                    |         |
 *                     close / abort / error ---+---> closed (last event, exactly once)
 *
 * Invariants
 * - Of `connected` and `failed` at most one comes, and before any other event but `closed`.
 * - No event runs inside socket_connect, socket_write, socket_close, socket_abort or
 *   socket_read_start: an owner may call them anywhere, also inside an event.
 * - After socket_close or socket_abort no event but `closed` comes. `closed` is always the last and
 *   comes exactly once, from a later point of the loop's turn; the socket is gone when it returns.
 * - Nothing is read before socket_read_start. An idle connection holds no buffer: bytes are read
 *   into one buffer of the loop and handed out as a borrowed span.
 * - The callback of `data` may stop reading at any time: what was read already (TLS) is kept and
 *   handed out after socket_read_start.
 * - At loop_free every socket still open is aborted, so its `closed` runs then at the latest.
 *
 * Every function is for the thread of the socket's loop. */
#ifndef NET_SOCKET_H
#define NET_SOCKET_H

#include "net/address.h"
#include "net/loop.h"
#include "net/tls.h"

/* `socket` itself is taken by the C library. */
typedef struct net_socket net_socket;
typedef struct socket_listener socket_listener;

/* Every member may be NULL. */
typedef struct socket_events {
    /* The connection (and its TLS handshake) is complete; reading and writing may start. */
    void (*connected)(void *user);
    /* It failed; `text` is the reason, for people. `closed` follows. */
    void (*failed)(void *user, bay_err err, const char *text);
    /* The next bytes, at least one; borrowed for the call. */
    void (*data)(void *user, bay_str bytes);
    /* The peer ended its half: no more `data`. Writing is still possible. */
    void (*eof)(void *user);
    /* The queue fell to half of its high-water mark after socket_write returned BAY_ERR_AGAIN. */
    void (*drained)(void *user);
    /* The last event. BAY_OK: after socket_close or socket_abort; otherwise what ended the
     * connection (BAY_ERR_CLOSED: reset by the peer; BAY_ERR_TLS, BAY_ERR_IO, BAY_ERR_LIMIT: the
     * write queue overflowed, BAY_ERR_TIMEOUT …). After `failed` it repeats that error. The socket
     * is invalid when this returns. */
    void (*closed)(void *user, bay_err reason, const char *text);
} socket_events;

/* --- making one ------------------------------------------------------------------------------- */

/* Resolves `host` (a name or a literal address, no brackets), tries each address in turn, then does
 * the TLS handshake if `tls` is not NULL. `server_name`: for SNI and verification; empty: `host`.
 * ALPN offers http/1.1.
 * Owns: copies its strings; `tls` is borrowed for the call only; `events` must outlive the socket.
 * Errors: BAY_ERR_NOMEM, BAY_ERR_INVALID at once; others by `failed` (BAY_ERR_RESOLVE,
 * BAY_ERR_CONNECT, BAY_ERR_TIMEOUT, BAY_ERR_TLS).
 * Units: `timeout_ms` for everything until `connected`; 0: none.
 * Threads: the loop's.
 * Source: RFC 6066 section 3, RFC 6125, RFC 7301. */
bay_err socket_connect(loop *loop, bay_str host, uint16_t port, tls_context *tls,
                       bay_str server_name, uint32_t timeout_ms, const socket_events *events,
                       void *user, net_socket **out) BAY_MUST_CHECK;

/* Whether this address, which `host` resolved to, may be connected to. Called for each address
 * immediately before, so that the result of resolving a name cannot change in between. */
typedef bool (*socket_permit)(void *user, bay_str host, const net_address *address);

/* Right after socket_connect. A refused address counts as unreachable; if all are refused, it fails
 * with BAY_ERR_DENIED. `user` must live until `connected` or `closed`. Threads: the loop's. */
void socket_set_permit(net_socket *self, socket_permit permit, void *user);

/* A connected stream descriptor (a socketpair, an inherited connection). There is no `connected`
 * event: the socket is connected at once. Owns: takes `fd`, also on failure. Errors: BAY_ERR_NOMEM,
 * BAY_ERR_IO. Threads: the loop's. */
bay_err socket_open(loop *loop, int fd, const socket_events *events, void *user,
                    net_socket **out) BAY_MUST_CHECK;

/* Replaces events and user pointer; NULL: no more events (its owner is freed). */
void socket_set_events(net_socket *self, const socket_events *events, void *user);

/* --- reading ---------------------------------------------------------------------------------- */

/* While reading is stopped, the peer's end is not detected: a long pause needs a time-out. */
void socket_read_start(net_socket *self); /* idempotent */
void socket_read_stop(net_socket *self);  /* idempotent: back-pressure to the peer */

/* --- writing ---------------------------------------------------------------------------------- */

#define SOCKET_HIGH_BYTES ((size_t)256 * 1024)     /* default high-water mark */
#define SOCKET_MAX_BYTES ((size_t)4 * 1024 * 1024) /* default hard maximum */

/* BAY_ERR_AGAIN above `high_bytes` queued. A write that would bring the queue above `max_bytes`
 * closes the connection, unless nothing was queued before it: one message may be larger than the
 * maximum, its writer limits it. 0: the default. At most 4 GiB - 1. */
void socket_set_limits(net_socket *self, size_t high_bytes, size_t max_bytes);

/* Passes the spans to the kernel in one call; what it does not take is copied and queued.
 * Owns: the spans are borrowed for the call.
 * Errors: BAY_OK; BAY_ERR_AGAIN: accepted, but stop until `drained`; BAY_ERR_CLOSED: not accepted,
 * the socket is closing or our half is shut; BAY_ERR_LIMIT: not accepted, the queue is full and the
 * connection is being aborted; BAY_ERR_STATE: not connected yet; BAY_ERR_NOMEM: not accepted
 * completely, the connection is being aborted.
 * Units: bytes.
 * Threads: the loop's. */
bay_err socket_write(net_socket *self, const bay_str *spans, size_t count);
bay_err socket_write_one(net_socket *self, bay_str bytes);

/* From here on small writes are sent together at the end of the loop iteration, before it waits, or
 * when the socket ends: for a server, whose answers of one iteration then wake their readers
 * together. They count as taken by the kernel. At most STREAM_GATHER_BYTES of it, and
 * STREAM_GATHER_QUEUES sockets of a loop; more is sent at once. */
void socket_gather(net_socket *self);

/* Bytes that the kernel has not taken yet (ciphertext with TLS); decreases as the peer reads. */
size_t socket_queued_bytes(const net_socket *self);
/* Bytes that the kernel has taken and the peer's has not acknowledged: these and the queued ones
 * decrease steadily as the peer reads, while the queue waits until the kernel has room for much. A
 * system call. 0: the kernel does not provide it. */
size_t socket_unacknowledged_bytes(const net_socket *self);

/* --- ending ----------------------------------------------------------------------------------- */

/* Ends our half when the queue is flushed (TLS: close_notify first). Reading continues. Idempotent.
 */
void socket_shutdown(net_socket *self);

/* Graceful: flushes the queue, ends our half, reads and drops what the peer still sends until it
 * ends its half (so that it can read our last bytes), then closes. At most `timeout_ms` in all, and
 * at most one second of it after the flush. 0: the default, 5,000. Idempotent; NULL is allowed. */
void socket_close(net_socket *self, uint32_t timeout_ms);

/* At once: queued bytes are dropped. Idempotent; NULL is allowed. */
void socket_abort(net_socket *self);

bool socket_is_connected(const net_socket *self); /* from `connected` until it begins to end */

/* Whether unread bytes of the peer have arrived: ending now would discard them. */
bool socket_has_unread(const net_socket *self);

/* --- about it --------------------------------------------------------------------------------- */

#define SOCKET_ADDRESS_BYTES 48

/* The peer's address without port ("127.0.0.1", "::1"; "": not an IP socket), with a NUL at the
 * end. Stored at the start: valid after the peer has disconnected. Returns its length. */
size_t socket_peer(const net_socket *self, char out[SOCKET_ADDRESS_BYTES]);
uint16_t socket_peer_port(const net_socket *self);
/* 16 bytes that are equal for equal addresses (IPv4 mapped into IPv6): a key for limits by peer. */
void socket_peer_key(const net_socket *self, uint8_t out[16]);
int socket_descriptor(const net_socket *self); /* borrowed; -1: closed */
bool socket_is_tls(const net_socket *self);
bool socket_is_http2(const net_socket *self); /* negotiated by ALPN */
/* For a client, before its next loop iteration: TLS offers only HTTP/2. */
void socket_offer_http2(net_socket *self);

/* A part of the certificate that TLS verified the peer by, NUL ended; "" when it showed none, or
 * one that does not fit. Returns its length. */
size_t socket_peer_certificate(const net_socket *self, tls_certificate_part part,
                               char out[TLS_PART_BYTES]);
size_t socket_struct_bytes(void); /* heap memory of an idle connection without TLS */

/* --- listening -------------------------------------------------------------------------------- */

typedef struct socket_listener_options {
    bool reuse_port;               /* several loops listen on one address */
    bool is_local_only;            /* loopback addresses only: others are ignored */
    int backlog;                   /* 0: 511 */
    tls_context *tls;              /* NULL: clear text; borrowed for the call only */
    uint32_t handshake_timeout_ms; /* 0: 10,000 */
} socket_listener_options;

/* A new connection: the callback sets its events by socket_set_events (or aborts it). `connected`
 * comes when the TLS handshake is complete; without TLS right after this returns, in the same
 * iteration. */
typedef void (*socket_accepted)(void *user, net_socket *socket);

/* Whether the address is free. With reuse_port a second program could listen on the same address
 * and take half of the connections unnoticed: call this before the first such listener. Errors: as
 * socket_listen, BAY_ERR_IO: the address is in use.
 * Threads: any. */
bay_err socket_address_is_free(bay_str address, bay_diag *diag) BAY_MUST_CHECK;

/* Whether only programs of this machine can connect to a listener at `address`: every address that
 * the host resolves to is a loopback address. The result for a name may change: such a listener is
 * opened with `is_local_only`. Errors: BAY_ERR_INVALID, BAY_ERR_RESOLVE. Threads: any; blocks like
 * socket_listen. Source: RFC 1122 section 3.2.1.3, RFC 4291 sections 2.5.3 and 2.5.5.2. */
bay_err socket_address_is_local(bay_str address, bool *out, bay_diag *diag) BAY_MUST_CHECK;

#define SOCKET_UNIX_PREFIX "unix:"
#define SOCKET_UNIX_PATH_BYTES 108 /* of a Unix socket, including the NUL */

/* Whether the address names a Unix socket, "unix:/FOLDER/NAME". */
bool socket_address_is_unix(bay_str address);
/* Its path, with a NUL at the end. Errors: BAY_ERR_INVALID: not such an address, or not absolute;
 * BAY_ERR_LIMIT: too long for the kernel. Threads: any. */
bay_err socket_unix_path(bay_str address, char out[SOCKET_UNIX_PATH_BYTES],
                         bay_diag *diag) BAY_MUST_CHECK;

/* Binds and listens on "host:port", "[v6]:port" or ":port" (":port" is every address); port 0: any
 * free one; a name: the first of its addresses that works. "unix:/FOLDER/NAME" makes a Unix socket
 * of mode 0600 in a folder that no other user can write to, and removes it when the listener is
 * closed. It replaces only a socket of this user without a listener. If descriptors run out,
 * accepting pauses for a moment, with a warning in the log. Owns: copies the address. Errors:
 * BAY_ERR_INVALID, BAY_ERR_RESOLVE, BAY_ERR_IO (in use, not permitted: see `diag`), BAY_ERR_NOMEM;
 * of a Unix socket also BAY_ERR_LIMIT (its path), BAY_ERR_STATE (another process listens there),
 * BAY_ERR_DENIED (other users can write to its folder). Threads: the loop's; a host name other than
 * "localhost" blocks it. */
bay_err socket_listen(loop *loop, bay_str address, const socket_listener_options *options,
                      socket_accepted accepted, void *user, socket_listener **out,
                      bay_diag *diag) BAY_MUST_CHECK;
uint16_t socket_listener_port(const socket_listener *self);

/* Later connections use this context (a renewed certificate); NULL is not allowed on a TLS
 * listener. Borrowed for the call only. */
void socket_listener_set_tls(socket_listener *self, tls_context *tls);

void socket_listener_pause(socket_listener *self); /* new connections wait in the backlog */
void socket_listener_resume(socket_listener *self);

/* Accepts the connections that wait in the backlog: closing the listener would reset them, and they
 * may carry requests. `accepted` runs inside. */
void socket_listener_take_waiting(socket_listener *self);

/* Stops listening at once; no further `accepted`. Connections continue. NULL is allowed. */
void socket_listener_close(socket_listener *self);

#endif
