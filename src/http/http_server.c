/* The server: its listeners, its limits by count and by address, the sweep that ends what takes too
 * long, draining, and the memory that requests share. http_connection.c has one connection's life.
 */
#include "http/http_server.h"

#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/http_internal.h"

enum {
    SPARE_MEMORIES = 128,    /* kept for later requests … */
    SPARE_INPUT = 16 * 1024, /* … if their input is not larger */
    SWEEP_MIN_MS = 1,
    SWEEP_MAX_MS = 1000,
    REFUSED_MAX = 64, /* concurrently refused with a reason; others are just closed */
    ADDRESSES_MAX = 1 << 20,
    TRIM_HIGH_BYTES = 8 << 20,   /* much, of what is under way … */
    TRIM_LOW_BYTES = 1 << 20,    /* … and little */
    CONNECTION_BYTES = 32 << 10, /* the account of one connection: its maximum */
};

const http_server_limits http_server_default_limits = {
    .head_bytes = 32 * 1024,
    .head_fields = 100,
    .body_bytes = 16 * 1024 * 1024,
    .held_bytes = 256 * 1024 * 1024,
    .connections = 10000,
    .connections_per_ip = 0,
    .head_timeout_ms = 10000,
    .body_timeout_ms = 30000,
    .body_total_ms = 300000,
    .idle_timeout_ms = 75000,
    .write_timeout_ms = 60000,
    .stream_high_bytes = 256 * 1024,
    .stream_max_bytes = 4 * 1024 * 1024,
    .reply_bytes = 16 * 1024 * 1024,
    .streams = 100,
    .resets = 200,
    .control_frames = 1000,
    .flood_window_ms = 10000,
};

/* --- memory ----------------------------------------------------------------------------------- */

http_memory *server_memory_take(http_server *self)
{
    http_memory *memory = self->spare;
    if (memory != NULL) {
        self->spare = memory->next;
        self->spare_count--;
        return memory;
    }
    size_t fields = (size_t)self->limits.fields * sizeof(http_field);
    memory = mem_alloc(sizeof(http_memory) + fields);
    if (memory == NULL) {
        return NULL;
    }
    memory->charged = 0;
    buf_init(&memory->input, SIZE_MAX / 2); /* the reader bounds heads and bodies */
    /* An index of the body may be several times as large as the body. */
    arena_init(&memory->arena, self->options.limits.body_bytes * 8 + 1024 * 1024);
    return memory;
}

static void memory_free(http_memory *memory)
{
    buf_fini(&memory->input);
    arena_fini(&memory->arena);
    mem_free(memory);
}

void server_memory_give(http_server *self, http_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    self->held_bytes -= memory->charged;
    memory->charged = 0;
    if (self->spare_count >= SPARE_MEMORIES || memory->input.cap > SPARE_INPUT) {
        memory_free(memory);
        return;
    }
    buf_clear(&memory->input);
    arena_reset(&memory->arena);
    memory->next = self->spare;
    self->spare = memory;
    self->spare_count++;
}

bool server_admits(const http_server *self, uint64_t more)
{
    size_t most = self->options.limits.held_bytes;
    return most == 0 || (self->held_bytes <= most && more <= most - self->held_bytes);
}

void http_memory_charge(http_server *server, http_memory *memory)
{
    server->held_bytes += memory->input.len - memory->charged;
    memory->charged = memory->input.len;
    server->was_high = server->was_high || server->held_bytes >= TRIM_HIGH_BYTES;
}

/* --- time ------------------------------------------------------------------------------------- */

bay_str server_date(http_server *self)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t now = loop_now_ms(self->loop);
    if (now < self->date_until_ms) {
        return (bay_str){self->date, HTTP_DATE_LINE};
    }
    uint64_t wall = loop_time_ms();
    self->date_until_ms = now + 1000 - wall % 1000;
    time_t seconds = (time_t)(wall / 1000);
    struct tm at;
    gmtime_r(&seconds, &at);
    buf line;
    buf_init(&line, sizeof(self->date));
    line.at = self->date;
    line.cap = sizeof(self->date);
    buf_printf(&line, "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", days + at.tm_wday * 3,
               at.tm_mday, months + at.tm_mon * 3, (at.tm_year + 1900) % 10000, at.tm_hour,
               at.tm_min, at.tm_sec);
    return (bay_str){self->date, HTTP_DATE_LINE};
}

static uint32_t shorter(uint32_t a, uint32_t b)
{
    return b > 0 && b < a ? b : a;
}

/* Before its first request a connection gets the time of a head, not that of an idle connection. */
uint64_t server_first_deadline(const http_server *self)
{
    const http_server_limits *limits = &self->options.limits;
    uint32_t least = self->is_draining ? DRAIN_LINGER_MS : UINT32_MAX;
    least = shorter(least, limits->head_timeout_ms);
    least = shorter(least, limits->idle_timeout_ms);
    return least < UINT32_MAX ? loop_now_ms(self->loop) + least : 0;
}

/* Time-outs are noticed up to an eighth late: checking a connection now and then costs less than a
 * timer that is armed and disarmed at every step of every request. */
static uint32_t sweep_interval(const http_server_limits *limits)
{
    uint32_t least = SWEEP_MAX_MS * 8;
    least = shorter(least, limits->head_timeout_ms);
    least = shorter(least, limits->body_timeout_ms);
    least = shorter(least, limits->body_total_ms);
    least = shorter(least, limits->idle_timeout_ms);
    least = shorter(least, limits->write_timeout_ms);
    return least / 8 < SWEEP_MIN_MS ? SWEEP_MIN_MS : least / 8;
}

static void arm_sweep(http_server *self)
{
    if (self->sweep.heap_index == 0 && !list_is_empty(&self->connections) &&
        loop_timer_start(self->loop, &self->sweep, self->sweep_ms) != BAY_OK) {
        LOG(LOG_ERROR, "http", "no memory for a timer: time-outs are suspended");
    }
}

static void trim(void *argument)
{
    (void)argument;
    mem_trim();
}

static void trimmed(void *argument)
{
    (void)argument;
}

/* After a flood of requests, replies or connections the heap is trimmed, on a pool thread, when the
 * memory in use has fallen from much to little. A server that stays below much, or above little, is
 * not affected. */
static void trim_after_flood(http_server *self)
{
    size_t now = reply_account_bytes() + self->held_bytes +
                 (size_t)self->connection_count * CONNECTION_BYTES;
    size_t peak = reply_account_take_peak();
    self->was_high = self->was_high || now >= TRIM_HIGH_BYTES || peak >= TRIM_HIGH_BYTES;
    if (self->was_high && now <= TRIM_LOW_BYTES) {
        self->was_high = false;
        err_ignore(loop_work(self->loop, trim, trimmed, NULL)); /* out of memory: another time */
    }
}

static void on_sweep(void *argument)
{
    http_server *self = argument;
    server_enter(self);
    uint64_t now = loop_now_ms(self->loop);
    (void)reply_rooms_wake(now); /* another answer's turn may have come */
    LIST_EACH(link, &self->connections)
    {
        connection_sweep(CONTAINER_OF(link, http_connection, link), now);
    }
    trim_after_flood(self);
    arm_sweep(self);
    server_leave(self);
}

/* --- entering and leaving --------------------------------------------------------------------- */

void server_enter(http_server *self)
{
    self->depth++;
}

static void destroy(http_server *self)
{
    while (self->spare != NULL) {
        http_memory *next = self->spare->next;
        memory_free(self->spare);
        self->spare = next;
    }
    loop_timer_stop(self->loop, &self->sweep);
    loop_timer_stop(self->loop, &self->linger);
    loop_timer_stop(self->loop, &self->grace);
    loop_undefer(self->loop, &self->drain_task);
    buf_fini(&self->head);
    buf_fini(&self->spare_cork);
    map_fini(&self->addresses);
    reply_book_free(self->book);
    mem_free(self);
}

void server_leave(http_server *self)
{
    if (self->depth > 1) {
        self->depth--;
        return;
    }
    for (list_link *link; (link = list_pop(&self->dead)) != NULL;) {
        connection_free(CONTAINER_OF(link, http_connection, link));
    }
    self->depth--;
    if (self->is_freed) {
        destroy(self);
    }
}

/* --- connections ------------------------------------------------------------------------------ */

/* Counts a connection of this address. False: it is at its limit. */
static bool address_join(http_server *self, net_socket *socket, http_address **out)
{
    *out = NULL;
    uint32_t most = self->options.limits.connections_per_ip;
    if (most == 0) {
        return true;
    }
    uint8_t key[16];
    socket_peer_key(socket, key);
    http_address *address = map_get(&self->addresses, (bay_str){(const char *)key, sizeof(key)});
    if (address == NULL) {
        address = mem_zalloc(sizeof(http_address));
        if (address == NULL) {
            return false;
        }
        memcpy(address->key, key, sizeof(key));
        bay_str stored = {(const char *)address->key, sizeof(address->key)};
        if (map_put(&self->addresses, stored, address, NULL) != BAY_OK) {
            mem_free(address);
            return false;
        }
    }
    if (address->connections >= most) {
        return false;
    }
    address->connections++;
    *out = address;
    return true;
}

static void address_leave(http_server *self, http_address *address)
{
    if (address == NULL || --address->connections > 0) {
        return;
    }
    map_remove(&self->addresses, (bay_str){(const char *)address->key, sizeof(address->key)});
    mem_free(address);
}

static void check_drained(http_server *self)
{
    if (self->is_draining && list_is_empty(&self->connections)) {
        loop_defer(self->loop, &self->drain_task);
    }
}

void server_forget(http_connection *connection)
{
    http_server *self = connection->server;
    if (connection->is_counted) {
        connection->listener->connections--;
        self->connection_count--;
    } else {
        self->refused_count--;
    }
    address_leave(self, connection->address);
    connection->address = NULL;
    list_remove(&connection->link);
    list_push(&self->dead, &connection->link);
    check_drained(self);
}

static void refuse_connection(http_server *self, http_connection *connection, int status,
                              const char *text)
{
    self->refused_count++;
    if (status == 503) {
        LOG(LOG_WARN, "http", "connection from %s refused: %s", connection->peer, text);
    }
    connection->refused = text; /* refused when the socket is connected */
    connection->refused_status = status;
    if (self->refused_count > REFUSED_MAX) {
        connection_set_state(connection, HTTP_CLOSING);
        socket_abort(connection->socket);
    }
}

static void on_accepted(void *user, net_socket *socket)
{
    http_listener *listener = user;
    http_server *self = listener->server;
    http_connection *connection = connection_new(self, listener, socket);
    if (connection == NULL) {
        socket_set_events(socket, NULL, NULL);
        socket_abort(socket);
        return;
    }
    const char *denied =
        self->options.admit != NULL ? self->options.admit(self->options.user, socket) : NULL;
    server_enter(self);
    list_push(&self->connections, &connection->link);
    arm_sweep(self);
    if (denied != NULL) {
        refuse_connection(self, connection, 403, denied); /* the code that denies it logs it */
    } else if (listener->connections >= self->options.limits.connections) {
        refuse_connection(self, connection, 503, "too many connections");
    } else if (!address_join(self, socket, &connection->address)) {
        refuse_connection(self, connection, 503, "too many connections from this address");
    } else {
        connection->is_counted = true;
        listener->connections++;
        self->connection_count++;
    }
    server_leave(self);
}

/* --- the public interface --------------------------------------------------------------------- */

static void on_drain_task(void *argument)
{
    http_server *self = argument;
    void (*done)(void *) = self->drain_done;
    if (done == NULL) {
        return;
    }
    server_enter(self);
    loop_timer_stop(self->loop, &self->linger);
    loop_timer_stop(self->loop, &self->grace);
    self->drain_done = NULL;
    done(self->drain_argument);
    server_leave(self);
}

static void cut_all(http_server *self)
{
    for (list_link *link; (link = list_first(&self->connections)) != NULL;) {
        connection_cut(CONTAINER_OF(link, http_connection, link));
    }
}

static void on_linger(void *argument)
{
    http_server *self = argument;
    server_enter(self);
    LIST_EACH(link, &self->connections)
    {
        connection_drain(CONTAINER_OF(link, http_connection, link));
    }
    check_drained(self);
    server_leave(self);
}

static void on_grace(void *argument)
{
    http_server *self = argument;
    server_enter(self);
    cut_all(self);
    check_drained(self);
    server_leave(self);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

/* Limits that were set by hand are those of HTTP/1.1. */
static void later_limits(http_server_limits *limits)
{
    const http_server_limits *usual = &http_server_default_limits;
    if (limits->reply_bytes == 0) {
        limits->reply_bytes = usual->reply_bytes;
    }
    limits->streams = or_default(limits->streams, usual->streams);
    limits->resets = or_default(limits->resets, usual->resets);
    limits->control_frames = or_default(limits->control_frames, usual->control_frames);
    limits->flood_window_ms = or_default(limits->flood_window_ms, usual->flood_window_ms);
}

bay_err http_server_new(loop *runs_on, const http_server_options *options, http_server **out)
{
    const http_server_limits *limits = &options->limits;
    if (options->handler == NULL || limits->head_bytes == 0 || limits->head_fields == 0 ||
        limits->connections == 0 || limits->body_bytes > SIZE_MAX / 32) {
        return BAY_ERR_INVALID;
    }
    http_server *self = mem_zalloc(sizeof(http_server));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->options = *options;
    later_limits(&self->options.limits);
    bay_err err =
        reply_book_new(runs_on, self->options.limits.reply_bytes, &connection_debts, &self->book);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->limits = http1_default_limits;
    self->limits.head_bytes = limits->head_bytes;
    self->limits.fields = limits->head_fields;
    self->limits.body_bytes = limits->body_bytes;
    if (self->limits.target_bytes > limits->head_bytes) {
        self->limits.target_bytes = limits->head_bytes;
    }
    list_init(&self->connections);
    list_init(&self->dead);
    map_init(&self->addresses, ADDRESSES_MAX);
    buf_init(&self->head, 1024 * 1024);
    buf_init(&self->spare_cork, SIZE_MAX / 2);
    self->sweep_ms = sweep_interval(limits);
    loop_timer_init(&self->sweep, on_sweep, self);
    loop_timer_init(&self->linger, on_linger, self);
    loop_timer_init(&self->grace, on_grace, self);
    self->drain_task = (loop_task){.function = on_drain_task, .argument = self};
    *out = self;
    return BAY_OK;
}

bay_err http_server_listen(http_server *self, bay_str address, bay_diag *diag)
{
    if (self->listener_count == HTTP_LISTENERS_MAX) {
        return diag_set(diag, BAY_ERR_LIMIT, "a server has at most %d listeners",
                        HTTP_LISTENERS_MAX);
    }
    if (self->is_draining) {
        return diag_set(diag, BAY_ERR_STATE, "the server is ending");
    }
    http_listener *listener = &self->listeners[self->listener_count];
    *listener = (http_listener){.server = self};
    socket_listener_options options = {.reuse_port = self->options.reuse_port,
                                       .is_local_only = self->options.is_local_only,
                                       .tls = self->options.tls,
                                       .handshake_timeout_ms =
                                           self->options.limits.head_timeout_ms};
    bay_err err = socket_listen(self->loop, address, &options, on_accepted, listener,
                                &listener->socket, diag);
    if (err == BAY_OK) {
        self->port =
            self->listener_count == 0 ? socket_listener_port(listener->socket) : self->port;
        self->listener_count++;
    }
    return err;
}

uint16_t http_server_port(const http_server *self)
{
    return self->port;
}

uint16_t http_server_port_at(const http_server *self, size_t index)
{
    return index < self->listener_count ? socket_listener_port(self->listeners[index].socket) : 0;
}

uint32_t http_server_connections(const http_server *self)
{
    return self->connection_count;
}

static void stop_listening(http_server *self)
{
    for (size_t i = 0; i < self->listener_count; i++) {
        socket_listener_close(self->listeners[i].socket);
        self->listeners[i].socket = NULL;
    }
}

void http_server_drain(http_server *self, uint32_t grace_ms, void (*done)(void *argument),
                       void *argument)
{
    if (self->is_draining) {
        return;
    }
    server_enter(self);
    for (size_t i = 0; i < self->listener_count; i++) {
        socket_listener_take_waiting(self->listeners[i].socket);
    }
    self->is_draining = true;
    self->drain_done = done;
    self->drain_argument = argument;
    stop_listening(self);
    LIST_EACH(link, &self->connections)
    {
        http2_warn(CONTAINER_OF(link, http_connection, link));
    }
    if (loop_timer_start(self->loop, &self->linger, DRAIN_LINGER_MS) != BAY_OK ||
        loop_timer_start(self->loop, &self->grace, grace_ms) != BAY_OK) {
        cut_all(self);
    }
    check_drained(self);
    server_leave(self);
}

void http_server_free(http_server *self)
{
    if (self == NULL || self->is_freed) {
        return;
    }
    server_enter(self);
    self->is_freed = true;
    self->is_draining = true;
    stop_listening(self);
    cut_all(self);
    if (self->drain_done != NULL) {
        void (*done)(void *) = self->drain_done;
        self->drain_done = NULL;
        done(self->drain_argument);
    }
    server_leave(self);
}
