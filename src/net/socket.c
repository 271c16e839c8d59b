/* The stream of a socket: reading into the loop's buffer, the write queue, and the ways to end. The
 * state diagram is in socket.h.
 *
 * Invariants
 * - The handle is closed through begin_closing only, once; the memory is freed in on_handle_closed
 *   only. So an event may end the socket, and the caller of the event still has a valid pointer.
 * - Events are called from the loop's callbacks only, never from a call of the owner. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/socket_internal.h"

#define CLOSE_TIMEOUT_MS 5000
#define LINGER_MS 1000

static const socket_events no_events;

/* --- ending ----------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    net_socket *self = handle->data;
    if (self->state != SOCKET_CLOSED) {
        socket_connector_retry(self);
        return;
    }
    loop_remove(&self->object);
    loop_timer_stop(self->loop, &self->timer);
    stream_queue_drop(&self->queue);
    socket_connector_stop(self);
    socket_tls_free(self);
    if (self->events->closed != NULL) {
        bay_err reason = (bay_err)self->reason;
        const char *text = self->text != NULL ? self->text : bay_err_text(reason);
        self->events->closed(self->user, reason, text);
    }
    mem_free(self->text);
    mem_free(self);
}

void socket_close_handle(net_socket *self)
{
    if (!uv_is_closing((uv_handle_t *)&self->tcp)) {
        uv_close((uv_handle_t *)&self->tcp, on_handle_closed);
    }
}

static void begin_closing(net_socket *self)
{
    self->state = SOCKET_CLOSED;
    loop_timer_stop(self->loop, &self->timer);
    socket_connector_stop(self);
    stream_queue_send_gathered(&self->queue);
    stream_queue_drop(&self->queue);
    socket_close_handle(self);
}

static void set_reason(net_socket *self, bay_err err, const char *text)
{
    self->reason = (uint8_t)err;
    if (text != NULL) {
        mem_free(self->text);
        self->text = mem_dup(text, strlen(text));
    }
}

void socket_fail_quietly(net_socket *self, bay_err err, const char *text)
{
    if (self->state == SOCKET_CLOSED) {
        return;
    }
    /* After the owner requested the end, how it ends is not an error any more. */
    if (self->state < SOCKET_FLUSHING) {
        set_reason(self, err, text);
    }
    begin_closing(self);
}

void socket_fail(net_socket *self, bay_err err, const char *text)
{
    bool was_connecting = self->state == SOCKET_CONNECTING || self->state == SOCKET_HANDSHAKING;
    socket_fail_quietly(self, err, text);
    if (was_connecting && self->events->failed != NULL) {
        self->events->failed(self->user, err, self->text != NULL ? self->text : bay_err_text(err));
    }
}

void socket_abort(net_socket *self)
{
    if (self != NULL && self->state != SOCKET_CLOSED) {
        begin_closing(self);
    }
}

static void end_object(loop_object *object)
{
    socket_abort(CONTAINER_OF(object, net_socket, object));
}

/* Shuts our half down in the kernel, when nothing is queued. */
static void end_half_when_flushed(net_socket *self)
{
    if (!self->is_shut || self->is_ended || !stream_queue_is_empty(&self->queue)) {
        return;
    }
    self->is_ended = true;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&self->tcp, &fd) == 0) {
        (void)shutdown(fd, SHUT_WR); /* fails only if the peer has disconnected */
    }
}

/* If a peer is still sending, a reset would discard our last bytes: its own are read and dropped
 * until it sees our end. */
static void linger_when_flushed(net_socket *self)
{
    if (self->state != SOCKET_FLUSHING) {
        return;
    }
    end_half_when_flushed(self);
    if (!self->is_ended) {
        return;
    }
    uint64_t now = loop_now_ms(self->loop);
    uint64_t left = self->timer.due_ms > now ? self->timer.due_ms - now : 0;
    if (self->is_eof || self->queue.is_broken ||
        (left > LINGER_MS && loop_timer_start(self->loop, &self->timer, LINGER_MS) != BAY_OK)) {
        begin_closing(self);
        return;
    }
    self->state = SOCKET_LINGERING;
    socket_raw_read_start(self);
}

void socket_close(net_socket *self, uint32_t timeout_ms)
{
    if (self == NULL || self->state > SOCKET_CONNECTED) {
        return;
    }
    uint32_t within_ms = timeout_ms == 0 ? CLOSE_TIMEOUT_MS : timeout_ms;
    if (self->state != SOCKET_CONNECTED || self->queue.is_broken ||
        loop_timer_start(self->loop, &self->timer, within_ms) != BAY_OK) {
        begin_closing(self);
        return;
    }
    socket_shutdown(self);
    if (self->state != SOCKET_CONNECTED) {
        return;
    }
    self->wants_read = false;
    socket_raw_read_stop(self);
    self->state = SOCKET_FLUSHING;
    linger_when_flushed(self);
}

void socket_shutdown(net_socket *self)
{
    if (self->state != SOCKET_CONNECTED || self->is_shut) {
        return;
    }
    if (self->tls != NULL) {
        socket_tls_end(self);
    }
    self->is_shut = true;
    end_half_when_flushed(self);
}

static void on_timer(void *argument)
{
    net_socket *self = argument;
    if (self->state == SOCKET_CONNECTING) {
        socket_fail(self, BAY_ERR_TIMEOUT, "no connection within the time allowed");
        return;
    }
    if (self->state == SOCKET_HANDSHAKING) {
        socket_fail(self, BAY_ERR_TIMEOUT, "the TLS handshake took too long");
        return;
    }
    begin_closing(self);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    net_socket *self = handle->data;
    *out = (uv_buf_t){.base = self->loop->read_buffer, .len = LOOP_READ_BYTES};
}

static void on_read_end(net_socket *self, ssize_t status)
{
    socket_raw_read_stop(self);
    if (self->state == SOCKET_LINGERING) {
        begin_closing(self);
        return;
    }
    if (status != UV_EOF) {
        socket_fail(self, loop_error_of((int)status), uv_strerror((int)status));
        return;
    }
    if (self->tls != NULL && !self->is_eof) {
        /* RFC 8446 section 6.1: an end without close_notify may be an attacker's. */
        socket_fail(self, BAY_ERR_CLOSED,
                    self->state == SOCKET_HANDSHAKING
                        ? "the peer ended the connection during the TLS handshake"
                        : "the peer ended the connection without ending TLS");
        return;
    }
    socket_say_eof(self);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    net_socket *self = stream->data;
    if (self->state == SOCKET_CLOSED || count == 0) {
        return;
    }
    if (count < 0) {
        on_read_end(self, count);
        return;
    }
    if (self->state == SOCKET_LINGERING) {
        return;
    }
    bay_str span = {bytes->base, (size_t)count};
    if (self->tls != NULL) {
        socket_tls_input(self, span);
    } else {
        socket_say_data(self, span);
    }
    stream_gather_pace(&self->loop->gather);
}

void socket_raw_read_start(net_socket *self)
{
    if (self->is_reading) {
        return;
    }
    int failure = uv_read_start((uv_stream_t *)&self->tcp, on_alloc, on_read);
    if (failure != 0) {
        socket_fail_quietly(self, loop_error_of(failure), uv_strerror(failure));
        return;
    }
    self->is_reading = true;
}

void socket_raw_read_stop(net_socket *self)
{
    if (self->is_reading) {
        self->is_reading = false;
        uv_read_stop((uv_stream_t *)&self->tcp);
    }
}

void socket_say_data(net_socket *self, bay_str bytes)
{
    if (self->events->data != NULL) {
        self->events->data(self->user, bytes);
    }
}

void socket_say_eof(net_socket *self)
{
    self->is_eof = true;
    self->wants_read = false;
    socket_raw_read_stop(self);
    if (self->events->eof != NULL) {
        self->events->eof(self->user);
    }
    /* Writing failed before and reading has ended now: nothing is left of the connection. */
    if (self->queue.is_broken && self->state == SOCKET_CONNECTED) {
        socket_fail_quietly(self, BAY_ERR_CLOSED, NULL);
    }
}

void socket_read_start(net_socket *self)
{
    if (self->state != SOCKET_CONNECTED || self->wants_read || self->is_eof) {
        return;
    }
    self->wants_read = true;
    if (self->tls != NULL) {
        socket_tls_resume(self);
    } else {
        socket_raw_read_start(self);
    }
}

void socket_read_stop(net_socket *self)
{
    if (self->state != SOCKET_CONNECTED) {
        return;
    }
    self->wants_read = false;
    socket_raw_read_stop(self);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void on_landed(stream_queue *queue, int status)
{
    net_socket *self = CONTAINER_OF(queue, net_socket, queue);
    if (self->state == SOCKET_CLOSED) {
        return;
    }
    if (status != 0) {
        /* What the peer sent before it disconnected may still be read (an early refusal, for
         * example). */
        if (self->state != SOCKET_CONNECTED || !self->is_reading) {
            socket_fail(self, loop_error_of(status), uv_strerror(status));
        }
        return;
    }
    end_half_when_flushed(self);
    linger_when_flushed(self);
    if (self->state == SOCKET_CONNECTED && stream_queue_take_drained(queue) &&
        self->events->drained != NULL) {
        self->events->drained(self->user);
    }
}

static size_t sum(const bay_str *spans, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes = spans[i].len > SIZE_MAX - bytes ? SIZE_MAX : bytes + spans[i].len;
    }
    return bytes;
}

bay_err socket_write(net_socket *self, const bay_str *spans, size_t count)
{
    if (self->state < SOCKET_CONNECTED) {
        return BAY_ERR_STATE;
    }
    if (self->state != SOCKET_CONNECTED || self->is_shut || self->queue.is_broken) {
        return BAY_ERR_CLOSED;
    }
    if (!stream_queue_has_room(&self->queue, sum(spans, count))) {
        socket_fail_quietly(self, BAY_ERR_LIMIT, "the peer reads too slowly: its queue is full");
        return BAY_ERR_LIMIT;
    }
    bay_err err = self->tls != NULL ? socket_tls_write(self, spans, count)
                                    : stream_queue_write(&self->queue, spans, count);
    if (err == BAY_OK || err == BAY_ERR_AGAIN) {
        return err;
    }
    if (err == BAY_ERR_NOMEM || err == BAY_ERR_TLS || !self->is_reading) {
        socket_fail_quietly(self, err, NULL);
    }
    return err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_CLOSED;
}

bay_err socket_write_one(net_socket *self, bay_str bytes)
{
    return socket_write(self, &bytes, 1);
}

size_t socket_queued_bytes(const net_socket *self)
{
    return stream_queue_bytes(&self->queue);
}

void socket_gather(net_socket *self)
{
    stream_queue_gather(&self->queue, &self->loop->gather);
}

void socket_set_limits(net_socket *self, size_t high_bytes, size_t max_bytes)
{
    stream_queue_set_limits(&self->queue, high_bytes, max_bytes);
}

/* --- making ----------------------------------------------------------------------------------- */

bay_err socket_new(loop *on_loop, const socket_events *events, void *user, net_socket **out)
{
    net_socket *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    int failure = uv_tcp_init(&on_loop->uv, &self->tcp);
    if (failure != 0) {
        mem_free(self);
        return loop_error_of(failure);
    }
    self->tcp.data = self;
    self->loop = on_loop;
    self->object.end = end_object;
    loop_add(on_loop, &self->object);
    socket_set_events(self, events, user);
    stream_queue_init(&self->queue, (uv_stream_t *)&self->tcp, on_landed);
    loop_timer_init(&self->timer, on_timer, self);
    *out = self;
    return BAY_OK;
}

void socket_discard(net_socket *self)
{
    self->events = &no_events;
    begin_closing(self);
}

bay_err socket_adopt(net_socket *self, int fd)
{
    int failure = uv_tcp_open(&self->tcp, fd);
    if (failure != 0) {
        close(fd);
        return loop_error_of(failure);
    }
    (void)uv_tcp_nodelay(&self->tcp, 1); /* fails on other sockets than TCP, which do not need it */
    return BAY_OK;
}

void socket_say_connected(net_socket *self)
{
    loop_timer_stop(self->loop, &self->timer);
    self->state = SOCKET_CONNECTED;
    if (self->events->connected != NULL) {
        self->events->connected(self->user);
    }
}

void socket_established(net_socket *self)
{
    if (self->tls == NULL) {
        socket_say_connected(self);
        return;
    }
    self->state = SOCKET_HANDSHAKING;
    socket_tls_start(self);
}

bay_err socket_open(loop *on_loop, int fd, const socket_events *events, void *user,
                    net_socket **out)
{
    net_socket *self = NULL;
    bay_err err = socket_new(on_loop, events, user, &self);
    if (err != BAY_OK) {
        close(fd);
        return err;
    }
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t address_bytes = sizeof(address);
    if (getpeername(fd, (struct sockaddr *)&address, &address_bytes) == 0) {
        socket_set_peer(self, (struct sockaddr *)&address);
    }
    err = socket_adopt(self, fd);
    if (err != BAY_OK) {
        socket_discard(self);
        return err;
    }
    self->state = SOCKET_CONNECTED;
    *out = self;
    return BAY_OK;
}

void socket_set_events(net_socket *self, const socket_events *events, void *user)
{
    self->events = events != NULL ? events : &no_events;
    self->user = user;
}

/* --- about it --------------------------------------------------------------------------------- */

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void socket_set_peer(net_socket *self, const struct sockaddr *address)
{
    memset(self->peer, 0, sizeof(self->peer));
    self->peer_family = 0;
    self->peer_port = 0;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        memcpy(self->peer, mapped_prefix, sizeof(mapped_prefix));
        memcpy(self->peer + sizeof(mapped_prefix), &v4->sin_addr, 4);
        self->peer_family = 4;
        self->peer_port = ntohs(v4->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        memcpy(self->peer, &v6->sin6_addr, sizeof(self->peer));
        bool is_mapped = memcmp(self->peer, mapped_prefix, sizeof(mapped_prefix)) == 0;
        self->peer_family = is_mapped ? 4 : 6;
        self->peer_port = ntohs(v6->sin6_port);
    }
}

int socket_descriptor(const net_socket *self)
{
    uv_os_fd_t fd = -1;
    return uv_fileno((const uv_handle_t *)&self->tcp, &fd) == 0 ? fd : -1;
}

size_t socket_peer(const net_socket *self, char out[SOCKET_ADDRESS_BYTES])
{
    out[0] = '\0';
    if (self->peer_family == 4) {
        uv_inet_ntop(AF_INET, self->peer + sizeof(mapped_prefix), out, SOCKET_ADDRESS_BYTES);
    } else if (self->peer_family == 6) {
        uv_inet_ntop(AF_INET6, self->peer, out, SOCKET_ADDRESS_BYTES);
    }
    return strlen(out);
}

uint16_t socket_peer_port(const net_socket *self)
{
    return self->peer_port;
}

void socket_peer_key(const net_socket *self, uint8_t out[16])
{
    memcpy(out, self->peer, sizeof(self->peer));
}

bool socket_is_connected(const net_socket *self)
{
    return self->state == SOCKET_CONNECTED;
}

bool socket_has_unread(const net_socket *self)
{
    uv_os_fd_t fd;
    int bytes = 0;
    return uv_fileno((const uv_handle_t *)&self->tcp, &fd) == 0 &&
           ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

size_t socket_unacknowledged_bytes(const net_socket *self)
{
    uv_os_fd_t fd;
    int bytes = 0;
    bool is_told = uv_fileno((const uv_handle_t *)&self->tcp, &fd) == 0 &&
                   ioctl(fd, TIOCOUTQ, &bytes) == 0 && bytes > 0;
    return is_told ? (size_t)bytes : 0;
}

bool socket_is_http2(const net_socket *self)
{
    return self->tls != NULL && socket_tls_is_http2(self);
}

void socket_offer_http2(net_socket *self)
{
    if (self->tls != NULL) {
        socket_tls_offer_http2(self);
    }
}

bool socket_is_tls(const net_socket *self)
{
    return self->tls != NULL;
}

size_t socket_peer_certificate(const net_socket *self, tls_certificate_part part,
                               char out[TLS_PART_BYTES])
{
    out[0] = '\0';
    return self->tls != NULL ? socket_tls_certificate(self, part, out, TLS_PART_BYTES) : 0;
}

size_t socket_struct_bytes(void)
{
    return sizeof(net_socket);
}
