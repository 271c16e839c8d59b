/* Connecting: resolves, then makes one attempt per address in turn, each within its share of the
 * remaining time.
 *
 * Invariants
 * - A connector lives as long as its socket is connecting, or until its last request returns: libuv
 *   may still hold the resolver's request after the socket was freed (`socket` is NULL then).
 * - A failed attempt closes the socket's handle: it is created again, and only then the next
 *   address is tried. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/socket_internal.h"

#define ADDRESSES_MAX 16
#define HOST_BYTES_MAX 253
#define ATTEMPT_MS_MIN 250

struct socket_connector {
    net_socket *socket; /* NULL: freed; free this when the request returns */
    loop *loop;
    uv_getaddrinfo_t resolver;
    uv_connect_t request;
    loop_task start;
    loop_timer attempt_timer;
    struct sockaddr_storage addresses[ADDRESSES_MAX];
    size_t address_count;
    size_t next;
    uint64_t deadline_ms; /* 0: none */
    int last_error;
    uint16_t port;
    bool is_resolving;
    bool is_connecting;
    socket_permit permit; /* NULL: every address */
    void *permit_user;
    bool has_tried;   /* at least one address */
    bool is_retrying; /* the handle is being closed for the next attempt */
    char host[HOST_BYTES_MAX + 1];
};

static void free_if_done(socket_connector *self)
{
    if (self->socket == NULL && !self->is_resolving && !self->is_connecting) {
        mem_free(self);
    }
}

void socket_connector_stop(net_socket *socket)
{
    socket_connector *self = socket->connector;
    if (self == NULL) {
        return;
    }
    socket->connector = NULL;
    self->socket = NULL;
    loop_undefer(self->loop, &self->start);
    loop_timer_stop(self->loop, &self->attempt_timer);
    if (self->is_resolving) {
        (void)uv_cancel((uv_req_t *)&self->resolver); /* too late if it is running already */
    }
    free_if_done(self);
}

/* --- attempts --------------------------------------------------------------------------------- */

static void socket_connect_fail(socket_connector *self, bay_err err, int uv_error)
{
    char text[HOST_BYTES_MAX + 160];
    const char *what = err == BAY_ERR_RESOLVE  ? "could not resolve"
                       : err == BAY_ERR_DENIED ? "an address that is not permitted:"
                                               : "could not connect to";
    snprintf(text, sizeof(text), "%s %s port %u: %s", what, self->host, (unsigned)self->port,
             uv_strerror(uv_error));
    socket_fail(self->socket, err, text); /* ends in socket_connector_stop */
}

static void try_next(socket_connector *self);

static void end_attempt(socket_connector *self, int uv_error)
{
    self->last_error = uv_error;
    loop_timer_stop(self->loop, &self->attempt_timer);
    if (self->next >= self->address_count) {
        socket_connect_fail(self, BAY_ERR_CONNECT, uv_error);
        return;
    }
    self->is_retrying = true;
    socket_close_handle(self->socket);
}

void socket_connector_retry(net_socket *socket)
{
    socket_connector *self = socket->connector;
    int failure = uv_tcp_init(&socket->loop->uv, &socket->tcp);
    CHECK(failure == 0); /* it makes no descriptor, so it cannot fail */
    socket->tcp.data = socket;
    self->is_retrying = false;
    try_next(self);
}

static void on_attempt_timer(void *argument)
{
    end_attempt(argument, UV_ETIMEDOUT);
}

static void on_connect(uv_connect_t *request, int status)
{
    socket_connector *self = CONTAINER_OF(request, socket_connector, request);
    self->is_connecting = false;
    if (self->socket == NULL) {
        free_if_done(self);
        return;
    }
    if (self->is_retrying) {
        return;
    }
    if (status != 0) {
        end_attempt(self, status);
        return;
    }
    net_socket *socket = self->socket;
    socket_set_peer(socket, (const struct sockaddr *)&self->addresses[self->next - 1]);
    (void)uv_tcp_nodelay(&socket->tcp, 1);
    socket_connector_stop(socket);
    socket_established(socket);
}

/* The share of the remaining time for this attempt; 0: all of it. */
static uint64_t attempt_ms(const socket_connector *self)
{
    size_t left = self->address_count - self->next + 1;
    uint64_t now = loop_now_ms(self->loop);
    if (self->deadline_ms == 0 || left == 1 || self->deadline_ms <= now) {
        return 0;
    }
    uint64_t share = (self->deadline_ms - now) / left;
    return share < ATTEMPT_MS_MIN ? ATTEMPT_MS_MIN : share;
}

void socket_set_permit(net_socket *socket, socket_permit permit, void *user)
{
    socket_connector *self = socket->connector;
    if (self != NULL) {
        self->permit = permit;
        self->permit_user = user;
    }
}

static bool is_permitted(const socket_connector *self, const struct sockaddr *address)
{
    if (self->permit == NULL) {
        return true;
    }
    net_address plain = {{0}};
    if (address->sa_family == AF_INET) {
        plain.bytes[10] = plain.bytes[11] = 0xff;
        memcpy(plain.bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else {
        memcpy(plain.bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    }
    bay_str host = {self->host, strlen(self->host)};
    return self->permit(self->permit_user, host, &plain);
}

static void try_next(socket_connector *self)
{
    net_socket *socket = self->socket;
    while (self->next < self->address_count &&
           !is_permitted(self, (const struct sockaddr *)&self->addresses[self->next])) {
        self->next++;
    }
    if (self->next >= self->address_count) {
        bay_err err = self->has_tried ? BAY_ERR_CONNECT : BAY_ERR_DENIED;
        socket_connect_fail(self, err, self->has_tried ? self->last_error : UV_EACCES);
        return;
    }
    self->has_tried = true;
    const struct sockaddr *address = (const struct sockaddr *)&self->addresses[self->next++];
    int failure = uv_tcp_connect(&self->request, &socket->tcp, address, on_connect);
    if (failure != 0) {
        end_attempt(self, failure);
        return;
    }
    self->is_connecting = true;
    uint64_t within_ms = attempt_ms(self);
    if (within_ms > 0 && loop_timer_start(self->loop, &self->attempt_timer, within_ms) != BAY_OK) {
        socket_fail(socket, BAY_ERR_NOMEM, NULL);
    }
}

static void on_start(void *argument)
{
    try_next(argument);
}

/* --- resolving -------------------------------------------------------------------------------- */

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET) {
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
    } else {
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *results)
{
    socket_connector *self = CONTAINER_OF(request, socket_connector, resolver);
    self->is_resolving = false;
    if (self->socket == NULL) {
        uv_freeaddrinfo(results);
        free_if_done(self);
        return;
    }
    for (struct addrinfo *entry = results; entry != NULL; entry = entry->ai_next) {
        bool is_known = entry->ai_family == AF_INET || entry->ai_family == AF_INET6;
        if (is_known && self->address_count < ADDRESSES_MAX) {
            struct sockaddr_storage *address = &self->addresses[self->address_count++];
            memcpy(address, entry->ai_addr, entry->ai_addrlen);
            set_port(address, self->port);
        }
    }
    uv_freeaddrinfo(results);
    if (status != 0 || self->address_count == 0) {
        socket_connect_fail(self, BAY_ERR_RESOLVE, status != 0 ? status : UV_EAI_NODATA);
        return;
    }
    try_next(self);
}

/* A literal needs no resolver, but no event may run inside socket_connect either. */
static bay_err socket_connect_begin(socket_connector *self)
{
    struct sockaddr_storage *first = &self->addresses[0];
    if (uv_ip4_addr(self->host, self->port, (struct sockaddr_in *)(void *)first) == 0 ||
        uv_ip6_addr(self->host, self->port, (struct sockaddr_in6 *)(void *)first) == 0) {
        self->address_count = 1;
        loop_defer(self->loop, &self->start);
        return BAY_OK;
    }
    memset(first, 0, sizeof(*first));
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int failure =
        uv_getaddrinfo(&self->loop->uv, &self->resolver, on_resolved, self->host, NULL, &hints);
    if (failure == UV_ENOMEM) {
        return BAY_ERR_NOMEM;
    }
    if (failure != 0) {
        return BAY_ERR_INVALID; /* not a host name */
    }
    self->is_resolving = true;
    return BAY_OK;
}

static socket_connector *new_connector(net_socket *socket, bay_str host, uint16_t port)
{
    socket_connector *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->socket = socket;
    self->loop = socket->loop;
    self->port = port;
    memcpy(self->host, host.at, host.len);
    self->start = (loop_task){.function = on_start, .argument = self};
    loop_timer_init(&self->attempt_timer, on_attempt_timer, self);
    socket->connector = self;
    return self;
}

bay_err socket_connect(loop *on_loop, bay_str host, uint16_t port, tls_context *tls,
                       bay_str server_name, uint32_t timeout_ms, const socket_events *events,
                       void *user, net_socket **out)
{
    if (host.len == 0 || host.len > HOST_BYTES_MAX || port == 0 ||
        memchr(host.at, '\0', host.len) != NULL) {
        return BAY_ERR_INVALID;
    }
    net_socket *socket = NULL;
    bay_err err = socket_new(on_loop, events, user, &socket);
    if (err != BAY_OK) {
        return err;
    }
    err = BAY_ERR_NOMEM;
    socket_connector *self = new_connector(socket, host, port);
    if (self == NULL) {
        goto failed;
    }
    if (tls != NULL) {
        err = socket_tls_new(socket, tls, server_name.len > 0 ? server_name : host, NULL);
        if (err != BAY_OK) {
            goto failed;
        }
    }
    if (timeout_ms > 0) {
        err = loop_timer_start(on_loop, &socket->timer, timeout_ms);
        if (err != BAY_OK) {
            goto failed;
        }
        self->deadline_ms = socket->timer.due_ms;
    }
    err = socket_connect_begin(self);
    if (err != BAY_OK) {
        goto failed;
    }
    *out = socket;
    return BAY_OK;

failed:
    socket_discard(socket);
    return err;
}
