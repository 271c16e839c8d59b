/* Room for answers that are being received: who waits, who goes on, in which order; and the HTTP
 * client that asks for it, over HTTP/1.1: what waits is read later, and nothing is missing. */
#include "http_rig.h"

#include "http/http_client.h"
#include "net/reply_room.h"

enum { MIB = 1024 * 1024, MOST = 16 * MIB, NOW = 1000 };

/* --- rooms ------------------------------------------------------------------------------------ */

static reply_room *told[16];
static size_t told_count;

static void on_granted(reply_room *room)
{
    told[told_count++] = room;
}

static loop *runs_on;
static reply_rooms *rooms;

static int setup(void **state)
{
    (void)state;
    told_count = 0;
    assert_int_equal(loop_new(&runs_on), BAY_OK);
    return reply_rooms_new(runs_on, MOST, on_granted, &rooms) != BAY_OK;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(reply_account_bytes(), 0);
    reply_rooms_free(rooms);
    loop_free(runs_on);
    return 0;
}

static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        (void)loop_turn(runs_on, 0);
    }
}

static void test_those_that_wait_go_on_in_order(void **state)
{
    (void)state;
    reply_room all[5] = {{.bytes = 0}};
    assert_true(reply_room_ask(rooms, &all[0], 10 * MIB, NOW));
    assert_true(reply_room_ask(rooms, &all[1], 5 * MIB, NOW));
    assert_true(reply_room_ask(rooms, &all[1], 3 * MIB, NOW)); /* never less */
    assert_int_equal(reply_account_bytes(), 15 * MIB);
    assert_true(
        reply_room_ask(rooms, &all[2], 2 * MIB, NOW)); /* no room: it is the one that goes on */
    assert_false(reply_room_ask(rooms, &all[3], 3 * MIB, NOW));
    assert_false(reply_room_ask(rooms, &all[3], 5 * MIB, NOW)); /* asked already */
    assert_false(reply_room_ask(rooms, &all[4], 1, NOW));       /* there never is a way around */
    assert_int_equal(reply_account_bytes(), 17 * MIB);
    reply_room_release(&all[1], NOW);
    assert_int_equal(told_count, 0); /* not inside the call */
    turn();
    assert_int_equal(told_count, 2);
    assert_ptr_equal(told[0], &all[3]);
    assert_ptr_equal(told[1], &all[4]);
    assert_false(all[3].is_waiting);
    assert_int_equal(reply_account_bytes(), 15 * MIB + 1);
    for (size_t i = 0; i < 5; i++) {
        reply_room_release(&all[i], NOW);
        reply_room_release(&all[i], NOW); /* harmless */
    }
    assert_false(reply_rooms_wake(NOW));
}

/* Answers that came in part never wait for each other, however large they become. */
static void test_one_always_goes_on(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    reply_room all[COUNT] = {{.bytes = 0}};
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(reply_room_ask(rooms, &all[i], MOST / COUNT, NOW));
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(reply_room_ask(rooms, &all[i], MOST, NOW));
        assert_true(reply_room_ask(rooms, &all[i], 2 * MOST, NOW));
        for (size_t k = i + 1; k < COUNT; k++) {
            assert_true(reply_room_ask(rooms, &all[k], MOST / COUNT, NOW)); /* it has that */
            assert_false(reply_room_ask(rooms, &all[k], MOST, NOW));
        }
        told_count = 0;
        reply_room_release(&all[i], NOW);
        turn();
        for (size_t k = i + 1; k < COUNT; k++) {
            reply_room_release(&all[k], NOW); /* as if given up, and begun anew */
        }
        for (size_t k = i + 1; k < COUNT; k++) {
            assert_true(reply_room_ask(rooms, &all[k], MOST / COUNT, NOW));
        }
    }
    assert_int_equal(reply_account_bytes(), 0);
}

/* Who goes on and gets nothing for long holds up the next no more. */
static void test_the_turn_passes_on(void **state)
{
    (void)state;
    reply_room all[4] = {{.bytes = 0}};
    assert_true(reply_room_ask(rooms, &all[0], MOST, NOW));
    assert_true(reply_room_ask(rooms, &all[1], MIB, NOW));
    assert_false(reply_room_ask(rooms, &all[2], MIB, NOW));
    assert_false(reply_room_ask(rooms, &all[3], MIB, NOW));
    assert_true(reply_room_ask(rooms, &all[1], 2 * MIB, NOW + 10));
    assert_true(reply_rooms_wake(NOW + 10 + REPLY_ROOM_TURN_MS - 1));
    turn();
    assert_int_equal(told_count, 0);
    assert_true(reply_rooms_wake(NOW + 10 + REPLY_ROOM_TURN_MS));
    turn();
    assert_int_equal(told_count, 1);
    assert_ptr_equal(told[0], &all[2]);
    assert_true(all[3].is_waiting);
    assert_false(reply_room_ask(rooms, &all[1], 3 * MIB, NOW + 10 + REPLY_ROOM_TURN_MS));
    reply_room_release(&all[2], NOW + 10 + REPLY_ROOM_TURN_MS); /* to the next, not to the last */
    turn();
    assert_int_equal(told_count, 2);
    assert_ptr_equal(told[1], &all[3]);
    assert_true(all[1].is_waiting);
    for (size_t i = 0; i < 4; i++) {
        reply_room_release(&all[i], NOW);
    }
}

/* What is given up while it waits, or was told to go on and does not know yet, hears nothing. */
static void test_given_up(void **state)
{
    (void)state;
    reply_room all[4] = {{.bytes = 0}};
    assert_true(reply_room_ask(rooms, &all[0], MOST, NOW));
    assert_true(reply_room_ask(rooms, &all[1], 2 * MIB, NOW)); /* goes on all the same */
    assert_false(reply_room_ask(rooms, &all[2], MIB, NOW));
    assert_false(reply_room_ask(rooms, &all[3], MIB, NOW));
    reply_room_release(&all[2], NOW);
    reply_room_release(&all[0], NOW);
    assert_true(all[3].is_waiting);
    assert_int_equal(all[3].bytes, MIB);
    reply_room_release(&all[3], NOW);
    turn();
    assert_int_equal(told_count, 0);
    assert_int_equal(reply_account_bytes(), 2 * MIB);
    reply_room_release(&all[1], NOW);
}

/* --- the client ------------------------------------------------------------------------------- */

enum { PEERS = 6, LENGTH = 8 * MIB };

typedef struct answer {
    http_call *call;
    size_t bytes;
    int ends;
    int failures;
} answer;

static void on_body(void *user, bay_str bytes)
{
    ((answer *)user)->bytes += bytes.len;
}

static void on_end(void *user)
{
    ((answer *)user)->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)err;
    (void)was_sent;
    (void)text;
    ((answer *)user)->failures++;
}

static const http_call_events events = {.body = on_body, .end = on_end, .failed = on_failed};

typedef struct upstream {
    int fd;
    size_t left;
} upstream;

static int listen_on(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* As much as the kernel takes. Chunks of 256 KiB where the length is not told. */
static void pour(upstream *self, bool is_chunked)
{
    enum { CHUNK = 256 * 1024 };
    static char piece[CHUNK + 16];
    static bool is_made;
    if (!is_made) {
        memset(piece, 'a', sizeof(piece));
        memcpy(piece, "40000\r\n", 7);
        memcpy(piece + 7 + CHUNK, "\r\n", 2);
        is_made = true;
    }
    size_t unit = is_chunked ? CHUNK + 9 : CHUNK;
    size_t total = LENGTH / CHUNK * unit;
    while (self->left > 0) {
        size_t at = (total - self->left) % unit;
        size_t len = unit - at < self->left ? unit - at : self->left;
        ssize_t put = send(self->fd, piece + (is_chunked ? at : 16), len, MSG_NOSIGNAL);
        if (put <= 0) {
            return;
        }
        self->left -= (size_t)put;
    }
    if (is_chunked) {
        self->left = send(self->fd, "0\r\n\r\n", 5, MSG_NOSIGNAL) == 5 ? 0 : self->left;
    }
}

/* Six answers of 8 MiB and room for one and a half: they come one or two at a time, all of them
 * whole, in whichever framing; the least pace does not count against those that wait. */
static void test_answers_wait_at_their_source(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        bool is_chunked = part == 1;
        answer answers[PEERS] = {{.call = NULL}};
        upstream peers[PEERS];
        uint16_t port;
        int listener = listen_on(&port);
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
        http_client_options options = {.limits = http_client_default_limits};
        options.limits.reply_bytes = 12 * MIB;
        http_client *client;
        assert_int_equal(http_client_new(runs_on, &options, &client), BAY_OK);
        rig on = {.loop = runs_on};
        for (size_t i = 0; i < PEERS; i++) {
            http_call_spec spec = {.method = STR("GET"), .url = str_of(url), .idle_ms = 60000};
            assert_int_equal(
                http_client_call(client, &spec, &events, &answers[i], &answers[i].call, NULL),
                BAY_OK);
            RIG_UNTIL(&on, (peers[i].fd =
                                accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
            char head[128];
            snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
                     is_chunked ? "Transfer-Encoding: chunked" : "Content-Length: 8388608");
            RIG_UNTIL(&on, send(peers[i].fd, head, strlen(head), MSG_NOSIGNAL) > 0);
            peers[i].left = is_chunked ? LENGTH / (256 * 1024) * (256 * 1024 + 9) : LENGTH;
        }
        size_t most = 0;
        size_t ended = 0;
        int64_t give_up = rig_now_ms() + RIG_GIVE_UP_MS;
        while (ended < PEERS) {
            assert_true(rig_now_ms() < give_up);
            ended = 0;
            size_t under_way = 0;
            for (size_t i = 0; i < PEERS; i++) {
                pour(&peers[i], is_chunked);
                assert_int_equal(answers[i].failures, 0);
                ended += (size_t)answers[i].ends;
                under_way += answers[i].ends == 0 ? answers[i].bytes : 0;
            }
            (void)loop_turn(runs_on, 1);
            most = under_way > most ? under_way : most;
        }
        assert_in_range(most, REPLY_ROOM_SMALL,
                        12 * MIB + LENGTH + PEERS * (REPLY_ROOM_SMALL + 256 * 1024));
        for (size_t i = 0; i < PEERS; i++) {
            assert_int_equal(answers[i].bytes, LENGTH);
            close(peers[i].fd);
        }
        http_client_free(client);
        close(listener);
        turn();
    }
}

/* Calls that wait are cancelled, or their client freed: nothing of them is left in the account. */
static void test_calls_that_end_while_they_wait(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        answer answers[3] = {{.call = NULL}};
        int fds[3];
        uint16_t port;
        int listener = listen_on(&port);
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
        http_client_options options = {.limits = http_client_default_limits};
        options.limits.reply_bytes = MIB;
        http_client *client;
        assert_int_equal(http_client_new(runs_on, &options, &client), BAY_OK);
        rig on = {.loop = runs_on};
        for (size_t i = 0; i < 3; i++) {
            const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc";
            http_call_spec spec = {.method = STR("GET"), .url = str_of(url)};
            assert_int_equal(
                http_client_call(client, &spec, &events, &answers[i], &answers[i].call, NULL),
                BAY_OK);
            RIG_UNTIL(&on,
                      (fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
            RIG_UNTIL(&on, send(fds[i], head, sizeof(head) - 1, MSG_NOSIGNAL) > 0);
            RIG_UNTIL(&on, i == 2 || reply_account_bytes() == (i + 1) * 1000000);
        }
        turn();
        assert_int_equal(answers[2].bytes, 0); /* it waits */
        assert_int_equal(answers[0].bytes + answers[1].bytes, 6);
        if (part == 0) {
            http_call_cancel(answers[2].call);
            http_call_cancel(answers[0].call);
            assert_int_equal(reply_account_bytes(), 1000000);
        }
        http_client_free(client);
        assert_int_equal(reply_account_bytes(), 0);
        assert_int_equal(answers[2].failures, part);
        for (size_t i = 0; i < 3; i++) {
            close(fds[i]);
        }
        close(listener);
        turn();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_those_that_wait_go_on_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_always_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_turn_passes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_wait_at_their_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_that_end_while_they_wait, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
