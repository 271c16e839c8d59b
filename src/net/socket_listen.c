/* Listening: a separate polled descriptor, so that accepting can be paused and can survive a lack
 * of descriptors.
 *
 * If the process runs out of descriptors, the connection at the head of the backlog would make the
 * loop spin. A reserved descriptor is released for a moment to accept and close that connection,
 * then accepting pauses. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/socket_internal.h"
#include "net/tls.h"

#define ACCEPTS_PER_TURN 64
#define WAITING_MAX 4096 /* more than any backlog */
#define REST_MS 100
#define BACKLOG 511
#define HANDSHAKE_TIMEOUT_MS 10000
#define HOST_BYTES_MAX 253

struct socket_listener {
    loop_object object;
    loop *loop;
    uv_poll_t poll;
    loop_timer rest;
    socket_accepted accepted;
    void *user;
    tls_context *tls; /* a reference; NULL: clear text */
    uint32_t handshake_timeout_ms;
    int fd;
    int reserve_fd;
    uint16_t port;         /* 0: a Unix socket */
    socket_unix_file file; /* its path */
    bool is_paused;
    bool is_resting;
    bool is_closed;
};

static void update_poll(socket_listener *self);

/* --- accepting -------------------------------------------------------------------------------- */

static void take_rest(socket_listener *self, int error)
{
    LOG(LOG_WARN, "net", "accepting on port %u%s rests for %d ms: %s", (unsigned)self->port,
        self->file.path, REST_MS, strerror(error));
    self->is_resting = loop_timer_start(self->loop, &self->rest, REST_MS) == BAY_OK;
    update_poll(self);
}

static void on_rested(void *argument)
{
    socket_listener *self = argument;
    self->is_resting = false;
    update_poll(self);
}

/* Closes one waiting connection instead of leaving it unanswered. */
static void shed_one(socket_listener *self)
{
    if (self->reserve_fd >= 0) {
        close(self->reserve_fd);
        int fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            close(fd);
        }
    }
    self->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void welcome(socket_listener *self, int fd, const struct sockaddr_storage *address)
{
    net_socket *socket = NULL;
    bay_err err = socket_new(self->loop, NULL, NULL, &socket);
    if (err != BAY_OK) {
        close(fd);
        return;
    }
    socket_set_peer(socket, (const struct sockaddr *)address);
    err = socket_adopt(socket, fd);
    if (err == BAY_OK && self->tls != NULL) {
        err = socket_tls_new(socket, self->tls, (bay_str){NULL, 0}, NULL);
        if (err == BAY_OK) {
            err = loop_timer_start(self->loop, &socket->timer, self->handshake_timeout_ms);
        }
    }
    if (err != BAY_OK) {
        LOG(LOG_WARN, "net", "a connection could not be taken: %s", bay_err_text(err));
        socket_discard(socket);
        return;
    }
    self->accepted(self->user, socket);
    if (socket->state == SOCKET_CONNECTING) {
        socket_established(socket);
    }
}

static void accept_up_to(socket_listener *self, int most)
{
    for (int i = 0; i < most && !self->is_closed && !self->is_paused; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t address_bytes = sizeof(address);
        int fd = accept4(self->fd, (struct sockaddr *)&address, &address_bytes,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            welcome(self, fd, &address);
            continue;
        }
        int error = errno;
        if (error == EAGAIN || error == EWOULDBLOCK) {
            return;
        }
        if (error == EMFILE || error == ENFILE) {
            shed_one(self);
        }
        if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
            take_rest(self, error);
            return;
        }
        /* Other errors concern one connection (ECONNABORTED, EPROTO, EINTR): continue with the
         * next. */
    }
}

static void on_acceptable(uv_poll_t *handle, int status, int events)
{
    (void)status; /* accept4 reports it better */
    (void)events;
    accept_up_to(CONTAINER_OF(handle, socket_listener, poll), ACCEPTS_PER_TURN);
}

void socket_listener_take_waiting(socket_listener *self)
{
    accept_up_to(self, WAITING_MAX);
}

static void update_poll(socket_listener *self)
{
    if (self->is_closed) {
        return;
    }
    if (self->is_paused || self->is_resting) {
        uv_poll_stop(&self->poll);
        return;
    }
    int failure = uv_poll_start(&self->poll, UV_READABLE, on_acceptable);
    if (failure != 0) {
        LOG(LOG_ERROR, "net", "port %u cannot be polled: %s", (unsigned)self->port,
            uv_strerror(failure));
    }
}

void socket_listener_pause(socket_listener *self)
{
    self->is_paused = true;
    update_poll(self);
}

void socket_listener_resume(socket_listener *self)
{
    self->is_paused = false;
    update_poll(self);
}

/* --- the address ------------------------------------------------------------------------------ */

typedef struct listen_address {
    char host[HOST_BYTES_MAX + 1]; /* empty: every address */
    char port[6];
} listen_address;

static bay_err bad_address(bay_diag *diag, bay_str address)
{
    return diag_set(diag, BAY_ERR_INVALID,
                    "\"%.*s\" is no address to listen on: host:port, [v6]:port or :port is",
                    (int)(address.len < 120 ? address.len : 120), address.at);
}

static bay_err parse_address(bay_str text, listen_address *out, bay_diag *diag)
{
    size_t colon = str_find_last(text, ':');
    uint64_t port = 0;
    if (colon >= text.len || !str_uint(str_from(text, colon + 1), &port) || port > UINT16_MAX) {
        return bad_address(diag, text);
    }
    bay_str host = str_head(text, colon);
    bool is_bracketed = host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (is_bracketed) {
        host = (bay_str){host.at + 1, host.len - 2};
    }
    bool has_colon = str_find(host, ':') < host.len;
    if (has_colon != is_bracketed || host.len > HOST_BYTES_MAX ||
        (host.len > 0 && memchr(host.at, '\0', host.len) != NULL)) {
        return bad_address(diag, text);
    }
    if (str_eq(host, STR("*"))) {
        host.len = 0;
    }
    if (host.len > 0) {
        memcpy(out->host, host.at, host.len);
    }
    out->host[host.len] = '\0';
    snprintf(out->port, sizeof(out->port), "%u", (unsigned)port);
    return BAY_OK;
}

/* 127.0.0.0/8, the same mapped into IPv6, and ::1: packets from other machines do not arrive there.
 */
static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family != AF_INET6) {
        return false;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) ||
           (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
}

/* A listening descriptor, or a negative errno. */
static int open_one(const struct addrinfo *address, const socket_listener_options *options)
{
    if (options->is_local_only && !is_loopback(address->ai_addr)) {
        return -EADDRNOTAVAIL;
    }
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    int yes = 1;
    int no = 0;
    if (address->ai_family == AF_INET6 && (address->ai_flags & AI_PASSIVE) != 0) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)); /* IPv4 as well */
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        (options->reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) != 0) ||
        bind(fd, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(fd, options->backlog > 0 ? options->backlog : BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* Every address means IPv6's, which accepts IPv4, too; without IPv6, IPv4's. */
static int open_every(const char *port, const socket_listener_options *options, int *out_fd)
{
    static const char *const every[] = {"::", "0.0.0.0"};
    int error = EADDRNOTAVAIL;
    for (size_t i = 0; i < ARRAY_LEN(every); i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
        struct addrinfo *found = NULL;
        if (getaddrinfo(every[i], port, &hints, &found) != 0) {
            continue;
        }
        found->ai_flags |= AI_PASSIVE;
        int fd = open_one(found, options);
        freeaddrinfo(found);
        if (fd >= 0) {
            *out_fd = fd;
            return 0;
        }
        error = -fd;
        if (error == EADDRINUSE || error == EACCES) {
            break;
        }
    }
    return error;
}

/* The addresses of the host, for freeaddrinfo; NULL for every address of the machine. */
static bay_err resolve(bay_str text, listen_address *out_address, struct addrinfo **out,
                       bay_diag *diag)
{
    bay_err err = parse_address(text, out_address, diag);
    if (err != BAY_OK || out_address->host[0] == '\0') {
        *out = NULL;
        return err;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int failure = getaddrinfo(out_address->host, out_address->port, &hints, out);
    return failure == 0 ? BAY_OK
                        : diag_set(diag, BAY_ERR_RESOLVE, "cannot listen on %.*s: %s",
                                   BAY_STR(text), gai_strerror(failure));
}

bay_err socket_address_is_local(bay_str text, bool *out, bay_diag *diag)
{
    listen_address address;
    struct addrinfo *found = NULL;
    bay_err err = resolve(text, &address, &found, diag);
    if (err != BAY_OK) {
        return err;
    }
    bool is_local = found != NULL;
    for (const struct addrinfo *entry = found; entry != NULL; entry = entry->ai_next) {
        is_local = is_local && is_loopback(entry->ai_addr);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    *out = is_local;
    return BAY_OK;
}

static bay_err open_listener(bay_str text, const socket_listener_options *options, int *out_fd,
                             bay_diag *diag)
{
    listen_address address;
    struct addrinfo *found = NULL;
    bay_err err = resolve(text, &address, &found, diag);
    if (err != BAY_OK) {
        return err;
    }
    int error = EADDRNOTAVAIL;
    if (found == NULL) {
        error = open_every(address.port, options, out_fd);
    }
    for (struct addrinfo *entry = found; entry != NULL && error != 0; entry = entry->ai_next) {
        int fd = open_one(entry, options);
        error = fd >= 0 ? 0 : -fd;
        if (fd >= 0) {
            *out_fd = fd;
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return error == 0 ? BAY_OK
                      : diag_set(diag, BAY_ERR_IO, "cannot listen on %.*s: %s", BAY_STR(text),
                                 strerror(error));
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t address_bytes = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &address_bytes) != 0 ||
        address.ss_family == AF_UNIX) {
        return 0;
    }
    return address.ss_family == AF_INET6
               ? ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port)
               : ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
}

/* --- making and ending ------------------------------------------------------------------------ */

static void on_poll_closed(uv_handle_t *handle)
{
    socket_listener *self = CONTAINER_OF((uv_poll_t *)handle, socket_listener, poll);
    loop_remove(&self->object);
    mem_free(self);
}

void socket_listener_close(socket_listener *self)
{
    if (self == NULL || self->is_closed) {
        return;
    }
    self->is_closed = true;
    loop_timer_stop(self->loop, &self->rest);
    uv_poll_stop(&self->poll);
    if (self->file.path[0] != '\0') {
        socket_unix_remove(&self->file);
    }
    close(self->fd); /* allowed after polling has stopped; the port is free from here on */
    if (self->reserve_fd >= 0) {
        close(self->reserve_fd);
    }
    tls_free(self->tls);
    uv_close((uv_handle_t *)&self->poll, on_poll_closed);
}

static void end_object(loop_object *object)
{
    socket_listener_close(CONTAINER_OF(object, socket_listener, object));
}

void socket_listener_set_tls(socket_listener *self, tls_context *tls)
{
    if (tls != NULL && self->tls != NULL) {
        tls_free(self->tls);
        self->tls = tls_ref(tls);
    }
}

bay_err socket_listen(loop *on_loop, bay_str address, const socket_listener_options *options,
                      socket_accepted accepted, void *user, socket_listener **out, bay_diag *diag)
{
    static const socket_listener_options defaults;
    const socket_listener_options *chosen = options != NULL ? options : &defaults;
    int fd = -1;
    socket_listener *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a listener");
    }
    bay_err err = socket_address_is_unix(address)
                      ? socket_unix_open(address, chosen->backlog > 0 ? chosen->backlog : BACKLOG,
                                         &self->file, &fd, diag)
                      : open_listener(address, chosen, &fd, diag);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->loop = on_loop;
    self->accepted = accepted;
    self->user = user;
    self->fd = fd;
    self->port = bound_port(fd);
    self->handshake_timeout_ms =
        chosen->handshake_timeout_ms > 0 ? chosen->handshake_timeout_ms : HANDSHAKE_TIMEOUT_MS;
    int failure = uv_poll_init(&on_loop->uv, &self->poll, fd);
    if (failure != 0) {
        if (self->file.path[0] != '\0') {
            socket_unix_remove(&self->file);
        }
        close(fd);
        mem_free(self);
        return diag_set(diag, BAY_ERR_IO, "cannot poll a listener: %s", uv_strerror(failure));
    }
    self->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (chosen->tls != NULL) {
        self->tls = tls_ref(chosen->tls);
    }
    loop_timer_init(&self->rest, on_rested, self);
    self->object.end = end_object;
    loop_add(on_loop, &self->object);
    update_poll(self);
    *out = self;
    return BAY_OK;
}

bay_err socket_address_is_free(bay_str address, bay_diag *diag)
{
    static const socket_listener_options alone = {.backlog = 1};
    int fd = -1;
    bay_err err = open_listener(address, &alone, &fd, diag);
    if (err == BAY_OK) {
        close(fd);
    }
    return err;
}

uint16_t socket_listener_port(const socket_listener *self)
{
    return self->port;
}
