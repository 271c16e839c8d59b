/* Sockets in clear text, over loopback: what a peer can do to us and what we promise our owner. */
#include "support/net_test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/socket.h"

/* One end of a connection and everything that happened to it. */
typedef struct end {
    net_socket *socket;
    buf got;
    size_t got_bytes;
    int connected;
    int failed;
    int eof;
    int drained;
    int closed;
    int late; /* events after an ending one */
    bay_err err;
    char text[200];
    bool echoes;
    bool discards;
    bool stays_silent; /* does not read by itself */
    bool aborts_on_data;
    bool closes_on_eof;
    bool stops_after_data;
    struct end *accepts_as; /* of a listener's owner */
} end;

static void note_text(end *self, bay_err err, const char *text)
{
    self->err = err;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static void on_connected(void *user)
{
    end *self = user;
    self->connected++;
    if (!self->stays_silent) {
        socket_read_start(self->socket);
    }
}

static void on_failed(void *user, bay_err err, const char *text)
{
    end *self = user;
    self->failed++;
    self->late += self->closed;
    note_text(self, err, text);
}

static void on_data(void *user, bay_str bytes)
{
    end *self = user;
    self->late += self->closed + self->eof;
    assert_true(bytes.len > 0);
    self->got_bytes += bytes.len;
    if (!self->discards) {
        buf_str(&self->got, bytes);
    }
    if (self->echoes) {
        bay_err err = socket_write_one(self->socket, bytes);
        if (err == BAY_ERR_AGAIN) {
            socket_read_stop(self->socket);
        }
    }
    if (self->stops_after_data) {
        socket_read_stop(self->socket);
    }
    if (self->aborts_on_data) {
        socket_abort(self->socket);
        socket_abort(self->socket);
    }
}

static void on_eof(void *user)
{
    end *self = user;
    self->eof++;
    self->late += self->closed;
    if (self->closes_on_eof) {
        socket_close(self->socket, 0);
    }
}

static void on_drained(void *user)
{
    end *self = user;
    self->drained++;
    self->late += self->closed;
    if (self->echoes) {
        socket_read_start(self->socket);
    }
}

static void on_closed(void *user, bay_err reason, const char *text)
{
    end *self = user;
    self->closed++;
    self->socket = NULL;
    if (self->failed == 0) {
        note_text(self, reason, text);
    }
}

static const socket_events events = {on_connected, on_failed,  on_data,
                                     on_eof,       on_drained, on_closed};

static void on_accepted(void *user, net_socket *socket)
{
    end *self = user;
    self->socket = socket;
    socket_set_events(socket, &events, self);
}

typedef struct fixture {
    loop *loop;
    socket_listener *listener;
    end server;
    end client;
} fixture;

static void fixture_init(fixture *self)
{
    *self = (fixture){.loop = test_loop()};
    buf_init(&self->server.got, (size_t)64 << 20);
    buf_init(&self->client.got, (size_t)64 << 20);
    bay_diag diag;
    assert_int_equal(socket_listen(self->loop, (bay_str){"127.0.0.1:0", 11}, NULL, on_accepted,
                                   &self->server, &self->listener, &diag),
                     BAY_OK);
    assert_true(socket_listener_port(self->listener) != 0);
}

static void start_client(fixture *self)
{
    assert_int_equal(socket_connect(self->loop, (bay_str){"127.0.0.1", 9},
                                    socket_listener_port(self->listener), NULL, (bay_str){NULL, 0},
                                    5000, &events, &self->client, &self->client.socket),
                     BAY_OK);
    assert_int_equal(self->client.connected, 0);
}

static void connect_both(fixture *self)
{
    start_client(self);
    turn_until(self->loop, self->client.connected == 1 && self->server.connected == 1);
}

static void fixture_fini(fixture *self)
{
    socket_listener_close(self->listener);
    socket_listener_close(self->listener);
    socket_abort(self->client.socket);
    socket_abort(self->server.socket);
    loop_free(self->loop);
    assert_int_equal(self->client.late, 0);
    assert_int_equal(self->server.late, 0);
    assert_true(self->client.closed <= 1);
    assert_true(self->server.closed <= 1);
    buf_fini(&self->client.got);
    buf_fini(&self->server.got);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void bad_arguments_are_refused_at_once(void **state)
{
    (void)state;
    loop *on = test_loop();
    end self = {.socket = NULL};
    static const char *const hosts[] = {"", "a\0b"};
    static const size_t lens[] = {0, 3};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(socket_connect(on, (bay_str){hosts[i], lens[i]}, 80, NULL,
                                        (bay_str){NULL, 0}, 0, &events, &self, &self.socket),
                         BAY_ERR_INVALID);
    }
    assert_int_equal(socket_connect(on, (bay_str){"127.0.0.1", 9}, 0, NULL, (bay_str){NULL, 0}, 0,
                                    &events, &self, &self.socket),
                     BAY_ERR_INVALID);
    assert_null(self.socket);
    static const char *const addresses[] = {
        "",        "127.0.0.1",    "127.0.0.1:",     "::1:80", "[::1:80",
        "x:65536", "127.0.0.1:1x", "[127.0.0.1]:-1", ":"};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        socket_listener *listener = NULL;
        bay_diag diag = {.code = BAY_OK};
        bay_str text = {addresses[i], strlen(addresses[i])};
        assert_int_equal(socket_listen(on, text, NULL, on_accepted, &self, &listener, &diag),
                         BAY_ERR_INVALID);
        assert_int_equal(diag.code, BAY_ERR_INVALID);
        assert_null(listener);
    }
    loop_free(on);
    assert_int_equal(self.closed + self.failed, 0);
}

static void a_port_in_use_is_said_so(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u",
             (unsigned)socket_listener_port(self.listener));
    socket_listener *second = NULL;
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(socket_listen(self.loop, (bay_str){address, strlen(address)}, NULL,
                                   on_accepted, &self.server, &second, &diag),
                     BAY_ERR_IO);
    assert_non_null(strstr(diag.text, "in use"));
    fixture_fini(&self);
}

static void a_refused_connection_fails_once_and_closes(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    uint16_t port = socket_listener_port(self.listener);
    socket_listener_close(self.listener);
    self.listener = NULL;
    assert_int_equal(socket_connect(self.loop, (bay_str){"127.0.0.1", 9}, port, NULL,
                                    (bay_str){NULL, 0}, 5000, &events, &self.client,
                                    &self.client.socket),
                     BAY_OK);
    turn_until(self.loop, self.client.closed == 1);
    assert_int_equal(self.client.failed, 1);
    assert_int_equal(self.client.connected, 0);
    assert_int_equal(self.client.err, BAY_ERR_CONNECT);
    assert_non_null(strstr(self.client.text, "127.0.0.1"));
    fixture_fini(&self);
}

static void every_address_of_a_name_is_tried(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    assert_int_equal(socket_connect(self.loop, (bay_str){"localhost", 9},
                                    socket_listener_port(self.listener), NULL, (bay_str){NULL, 0},
                                    5000, &events, &self.client, &self.client.socket),
                     BAY_OK);
    turn_until(self.loop, self.client.connected == 1);
    char peer[SOCKET_ADDRESS_BYTES];
    assert_int_equal(socket_peer(self.client.socket, peer), 9);
    assert_string_equal(peer, "127.0.0.1");
    fixture_fini(&self);
}

static void an_unresolvable_host_fails(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    static const char host[] = "no such host.invalid"; /* a space: no resolver asks the network */
    assert_int_equal(socket_connect(self.loop, (bay_str){host, sizeof(host) - 1}, 80, NULL,
                                    (bay_str){NULL, 0}, 5000, &events, &self.client,
                                    &self.client.socket),
                     BAY_OK);
    turn_until(self.loop, self.client.closed == 1);
    assert_int_equal(self.client.failed, 1);
    assert_int_equal(self.client.err, BAY_ERR_RESOLVE);
    fixture_fini(&self);
}

static void closing_while_connecting_says_closed_only(void **state)
{
    (void)state;
    for (int step = 0; step < 3; step++) {
        fixture self;
        fixture_init(&self);
        bay_str host = step == 1 ? (bay_str){"localhost", 9} : (bay_str){"127.0.0.1", 9};
        assert_int_equal(socket_connect(self.loop, host, socket_listener_port(self.listener), NULL,
                                        (bay_str){NULL, 0}, 5000, &events, &self.client,
                                        &self.client.socket),
                         BAY_OK);
        if (step == 2) {
            loop_turn(self.loop, 0);
        }
        if (self.client.connected == 0) {
            socket_close(self.client.socket, 0);
            assert_int_equal(self.client.closed, 0);
            turn_until(self.loop, self.client.closed == 1);
            assert_int_equal(self.client.failed, 0);
            assert_int_equal(self.client.err, BAY_OK);
        }
        fixture_fini(&self);
    }
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void bytes_come_back_in_order_however_they_are_split(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.echoes = true;
    start_client(&self);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"x", 1}), BAY_ERR_STATE);
    turn_until(self.loop, self.client.connected == 1);
    char expected[3000];
    for (size_t i = 0; i < sizeof(expected); i++) {
        expected[i] = (char)(i * 7);
    }
    size_t at = 0;
    for (size_t len = 0; at + len <= sizeof(expected); len = (len * 3 + 1) % 97) {
        bay_str spans[] = {{expected + at, len / 2}, {expected + at + len / 2, len - len / 2}};
        assert_int_equal(socket_write(self.client.socket, spans, 2), BAY_OK);
        at += len;
        if (len == 96) {
            loop_turn(self.loop, 0);
        }
        if (at == sizeof(expected)) {
            break;
        }
    }
    bay_str rest = {expected + at, sizeof(expected) - at};
    assert_int_equal(socket_write_one(self.client.socket, rest), BAY_OK);
    turn_until(self.loop, self.client.got.len == sizeof(expected));
    assert_memory_equal(self.client.got.at, expected, sizeof(expected));
    uint8_t key[16];
    socket_peer_key(self.client.socket, key);
    assert_int_equal(key[12], 127);
    assert_int_equal(socket_peer_port(self.client.socket), socket_listener_port(self.listener));
    fixture_fini(&self);
}

static void more_spans_than_one_writev_takes_arrive_whole(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    connect_both(&self);
    bay_str spans[100];
    char bytes[100];
    for (size_t i = 0; i < 100; i++) {
        bytes[i] = (char)i;
        spans[i] = (bay_str){&bytes[i], 1};
    }
    assert_int_equal(socket_write(self.client.socket, spans, 100), BAY_OK);
    turn_until(self.loop, self.server.got.len == 100);
    assert_memory_equal(self.server.got.at, bytes, 100);
    fixture_fini(&self);
}

static void a_slow_reader_holds_the_writer_back_until_it_reads(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stays_silent = true;
    self.server.discards = true;
    connect_both(&self);
    char *block = mem_zalloc(256 * 1024);
    socket_set_limits(self.client.socket, 64 * 1024, 64 << 20);
    size_t sent = 0;
    bay_err err = BAY_OK;
    for (int i = 0; i < 200 && err == BAY_OK; i++) {
        err = socket_write_one(self.client.socket, (bay_str){block, 256 * 1024});
        sent += 256 * 1024;
        if (err == BAY_OK) {
            loop_turn(self.loop, 0);
        }
    }
    assert_int_equal(err, BAY_ERR_AGAIN);
    assert_true(socket_queued_bytes(self.client.socket) > 64 * 1024);
    assert_int_equal(self.client.drained, 0);
    socket_read_start(self.server.socket);
    turn_until(self.loop, self.client.drained == 1);
    assert_true(socket_queued_bytes(self.client.socket) <= 32 * 1024);
    turn_until(self.loop, self.server.got_bytes == sent);
    mem_free(block);
    fixture_fini(&self);
}

static void a_reader_that_never_reads_is_cut_off_at_the_maximum(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stays_silent = true;
    connect_both(&self);
    char *block = mem_zalloc(1 << 20);
    socket_set_limits(self.client.socket, 1024, 3 << 20);
    bay_err err = BAY_OK;
    for (int i = 0; i < 200 && (err == BAY_OK || err == BAY_ERR_AGAIN); i++) {
        err = socket_write_one(self.client.socket, (bay_str){block, 1 << 20});
        assert_true(socket_queued_bytes(self.client.socket) <= 3 << 20);
    }
    assert_int_equal(err, BAY_ERR_LIMIT);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){block, 1}), BAY_ERR_CLOSED);
    assert_int_equal(self.client.closed, 0);
    turn_until(self.loop, self.client.closed == 1);
    assert_int_equal(self.client.err, BAY_ERR_LIMIT);
    mem_free(block);
    fixture_fini(&self);
}

static void reading_stops_when_told_and_goes_on_later(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stops_after_data = true;
    connect_both(&self);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"one", 3}), BAY_OK);
    turn_until(self.loop, self.server.got.len == 3);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"two", 3}), BAY_OK);
    for (int i = 0; i < 10; i++) {
        loop_turn(self.loop, 0);
    }
    assert_int_equal(self.server.got.len, 3);
    socket_read_start(self.server.socket);
    turn_until(self.loop, self.server.got.len == 6);
    fixture_fini(&self);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void after_half_close_the_other_half_still_carries(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    connect_both(&self);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"ask", 3}), BAY_OK);
    socket_shutdown(self.client.socket);
    socket_shutdown(self.client.socket);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"x", 1}), BAY_ERR_CLOSED);
    turn_until(self.loop, self.server.eof == 1);
    assert_int_equal(self.server.got.len, 3);
    assert_int_equal(socket_write_one(self.server.socket, (bay_str){"answer", 6}), BAY_OK);
    socket_close(self.server.socket, 0);
    turn_until(self.loop, self.client.eof == 1 && self.server.closed == 1);
    assert_int_equal(self.client.got.len, 6);
    assert_int_equal(self.server.err, BAY_OK);
    socket_close(self.client.socket, 0);
    turn_until(self.loop, self.client.closed == 1);
    fixture_fini(&self);
}

static void close_delivers_everything_queued_first(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stays_silent = true;
    self.server.discards = true;
    self.server.closes_on_eof = true;
    connect_both(&self);
    size_t len = (size_t)12 << 20;
    char *block = mem_zalloc(len);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){block, len}), BAY_ERR_AGAIN);
    mem_free(block);
    socket_close(self.client.socket, 60000);
    socket_close(self.client.socket, 1);
    assert_false(socket_is_connected(self.client.socket));
    socket_read_start(self.server.socket);
    turn_until(self.loop, self.server.closed == 1 && self.client.closed == 1);
    assert_int_equal(self.server.got_bytes, len);
    assert_int_equal(self.server.eof, 1);
    assert_int_equal(self.client.err, BAY_OK);
    fixture_fini(&self);
}

static void close_does_not_wait_for_ever(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stays_silent = true;
    connect_both(&self);
    size_t len = (size_t)12 << 20;
    char *block = mem_zalloc(len);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){block, len}), BAY_ERR_AGAIN);
    mem_free(block);
    socket_close(self.client.socket, 5);
    turn_until(self.loop, self.client.closed == 1);
    fixture_fini(&self);
}

static void the_last_reply_reaches_a_peer_that_is_still_sending(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.stays_silent = true;
    self.client.closes_on_eof = true;
    connect_both(&self);
    char *block = mem_zalloc(1 << 20);
    assert_int_equal(socket_write_one(self.server.socket, (bay_str){"too large", 9}), BAY_OK);
    (void)socket_write_one(self.client.socket, (bay_str){block, 1 << 20});
    mem_free(block);
    socket_close(self.server.socket, 60000);
    turn_until(self.loop, self.server.closed == 1 && self.client.closed == 1);
    assert_int_equal(self.client.got.len, 9);
    assert_int_equal(self.client.err, BAY_OK);
    fixture_fini(&self);
}

static void abort_inside_an_event_ends_it_there(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    self.server.aborts_on_data = true;
    connect_both(&self);
    assert_int_equal(socket_write_one(self.client.socket, (bay_str){"x", 1}), BAY_OK);
    turn_until(self.loop, self.server.closed == 1);
    assert_int_equal(self.server.got.len, 1);
    turn_until(self.loop, self.client.eof == 1 || self.client.closed == 1);
    fixture_fini(&self);
}

static void a_reset_is_told_as_closed_by_the_peer(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(socket_listener_port(self.listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    turn_until(self.loop, self.server.connected == 1);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(fd);
    turn_until(self.loop, self.server.closed == 1);
    assert_int_equal(self.server.err, BAY_ERR_CLOSED);
    assert_int_equal(self.server.eof, 0);
    fixture_fini(&self);
}

static void freeing_the_loop_closes_what_is_open(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    connect_both(&self);
    self.listener = NULL; /* left to the loop */
    net_socket *client = self.client.socket;
    socket_set_events(client, NULL, NULL);
    self.client.socket = NULL;
    fixture_fini(&self);
    assert_int_equal(self.server.closed, 1);
    assert_int_equal(self.client.closed, 0); /* it was silenced */
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void an_open_descriptor_is_a_socket_at_once(void **state)
{
    (void)state;
    loop *on = test_loop();
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    end self = {.discards = false};
    buf_init(&self.got, 100);
    assert_int_equal(socket_open(on, ends[0], &events, &self, &self.socket), BAY_OK);
    socket_read_start(self.socket);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    turn_until(on, self.got.len == 5);
    char peer[SOCKET_ADDRESS_BYTES];
    assert_int_equal(socket_peer(self.socket, peer), 0);
    close(ends[1]);
    turn_until(on, self.eof == 1);
    loop_free(on);
    assert_int_equal(self.closed, 1);
    buf_fini(&self.got);
}

static int plain_client(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)!connect(fd, (struct sockaddr *)&address, sizeof(address));
    return fd;
}

static void running_out_of_descriptors_does_not_end_the_listener(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    loop_turn(self.loop, 0);
    int shed = plain_client(socket_listener_port(self.listener));
    int second = plain_client(socket_listener_port(self.listener));
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)second + 1, .rlim_max = before.rlim_max};
    /* Every number below the limit is taken, so that accept4 has none. */
    int fillers[1024];
    int filled = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (filled < 1024 && (fillers[filled] = dup(second)) >= 0) {
        filled++;
    }
    loop_turn(self.loop, 20);
    int connected_while_full = self.server.connected;
    for (int i = 0; i < filled; i++) {
        close(fillers[i]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(connected_while_full, 0);
    turn_until(self.loop, self.server.connected == 1); /* the second, after the rest */
    close(shed);
    close(second);
    fixture_fini(&self);
}

static void a_paused_listener_leaves_them_waiting(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self);
    socket_listener_pause(self.listener);
    start_client(&self);
    turn_until(self.loop, self.client.connected == 1); /* by the kernel's backlog */
    for (int i = 0; i < 5; i++) {
        loop_turn(self.loop, 0);
    }
    assert_int_equal(self.server.connected, 0);
    socket_listener_resume(self.listener);
    turn_until(self.loop, self.server.connected == 1);
    fixture_fini(&self);
}

static void nothing_accepted(void *user, net_socket *socket)
{
    (void)user;
    socket_abort(socket);
}

/* Two programs with SO_REUSEPORT would share an address without noticing; whoever asks first does.
 */
static void an_address_that_is_shared_is_not_free(void **state)
{
    (void)state;
    loop *on = test_loop();
    socket_listener *first = NULL;
    socket_listener *second = NULL;
    socket_listener_options shared = {.reuse_port = true};
    char address[64];
    bay_diag diag = {0};
    assert_int_equal(
        socket_listen(on, STR("127.0.0.1:0"), &shared, nothing_accepted, NULL, &first, &diag),
        BAY_OK);
    snprintf(address, sizeof(address), "127.0.0.1:%u", socket_listener_port(first));
    assert_int_equal(socket_address_is_free(str_of(address), &diag), BAY_ERR_IO);
    assert_non_null(strstr(diag.text, address));
    assert_int_equal(
        socket_listen(on, str_of(address), &shared, nothing_accepted, NULL, &second, &diag),
        BAY_OK);
    socket_listener_close(first);
    socket_listener_close(second);
    assert_int_equal(socket_address_is_free(str_of(address), &diag), BAY_OK);
    loop_free(on);
}

/* Whatever a name resolves to by now. */
static void a_local_listener_is_on_loopback_only(void **state)
{
    (void)state;
    static const char *const others[] = {"0.0.0.0:0", "[::]:0", ":0", "*:0", "[::ffff:0.0.0.0]:0"};
    static const char *const own[] = {"127.0.0.1:0", "localhost:0", "127.0.0.2:0"};
    const socket_listener_options local = {.is_local_only = true};
    loop *on = test_loop();
    socket_listener *listener = NULL;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        bay_diag diag = {0};
        assert_int_equal(
            socket_listen(on, str_of(others[i]), &local, nothing_accepted, NULL, &listener, &diag),
            BAY_ERR_IO);
        assert_non_null(strstr(diag.text, others[i]));
        assert_null(listener);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        assert_int_equal(
            socket_listen(on, str_of(own[i]), &local, nothing_accepted, NULL, &listener, NULL),
            BAY_OK);
        socket_listener_close(listener);
    }
    loop_free(on);
}

static void an_idle_connection_is_small(void **state)
{
    (void)state;
    print_message("socket_struct_bytes: %zu\n", socket_struct_bytes());
    assert_true(socket_struct_bytes() < 700);
}

static void no_descriptor_is_left_behind(void **state)
{
    (void)state;
    int before = open_descriptors();
    fixture self;
    fixture_init(&self);
    connect_both(&self);
    fixture_fini(&self);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused_at_once),
        cmocka_unit_test(a_port_in_use_is_said_so),
        cmocka_unit_test(a_refused_connection_fails_once_and_closes),
        cmocka_unit_test(every_address_of_a_name_is_tried),
        cmocka_unit_test(an_unresolvable_host_fails),
        cmocka_unit_test(closing_while_connecting_says_closed_only),
        cmocka_unit_test(bytes_come_back_in_order_however_they_are_split),
        cmocka_unit_test(more_spans_than_one_writev_takes_arrive_whole),
        cmocka_unit_test(a_slow_reader_holds_the_writer_back_until_it_reads),
        cmocka_unit_test(a_reader_that_never_reads_is_cut_off_at_the_maximum),
        cmocka_unit_test(reading_stops_when_told_and_goes_on_later),
        cmocka_unit_test(after_half_close_the_other_half_still_carries),
        cmocka_unit_test(close_delivers_everything_queued_first),
        cmocka_unit_test(close_does_not_wait_for_ever),
        cmocka_unit_test(the_last_reply_reaches_a_peer_that_is_still_sending),
        cmocka_unit_test(abort_inside_an_event_ends_it_there),
        cmocka_unit_test(a_reset_is_told_as_closed_by_the_peer),
        cmocka_unit_test(freeing_the_loop_closes_what_is_open),
        cmocka_unit_test(an_open_descriptor_is_a_socket_at_once),
        cmocka_unit_test(running_out_of_descriptors_does_not_end_the_listener),
        cmocka_unit_test(a_paused_listener_leaves_them_waiting),
        cmocka_unit_test(an_address_that_is_shared_is_not_free),
        cmocka_unit_test(a_local_listener_is_on_loopback_only),
        cmocka_unit_test(an_idle_connection_is_small),
        cmocka_unit_test(no_descriptor_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
