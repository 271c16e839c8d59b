/* Every bound of the server: sizes, counts, times, queues. The times in these tests are a few
 * milliseconds; nothing depends on how late they are noticed. */
#include "http_rig.h"

#include "http/http_internal.h"

#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"

static http_server_limits defaults(void)
{
    return http_server_default_limits;
}

static void expect_end(rig *on, raw *client, const char *status)
{
    raw_until(client, on, NULL);
    if (!raw_starts(client, status)) {
        fail_msg("wanted %s, got %.*s", status, (int)client->got.len, client->got.at);
    }
    assert_true(raw_has(client, "Connection: close\r\n"));
    assert_false(client->is_reset);
    raw_close(client);
}

static void test_head_flood(void **state)
{
    (void)state;
    rig on;
    raw client;
    http_server_limits limits = defaults();
    limits.head_bytes = 4096;
    limits.head_fields = 10;
    rig_init(&on, &limits);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /echo HTTP/1.1\r\nHost: a\r\n"));
    for (int i = 0; i < 11; i++) {
        (void)raw_say(&client, &on, "X: y\r\n");
    }
    expect_end(&on, &client, "HTTP/1.1 431 ");

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /echo HTTP/1.1\r\nHost: a\r\nX: "));
    for (int i = 0; i < 500; i++) { /* goes on long after the refusal: drained, not reset */
        (void)raw_say(&client, &on, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }
    expect_end(&on, &client, "HTTP/1.1 431 ");

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /"));
    for (int i = 0; i < 100; i++) {
        (void)raw_say(&client, &on, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }
    expect_end(&on, &client, "HTTP/1.1 4"); /* 414 or 431: the line alone is over both bounds */
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

static void test_body_too_large(void **state)
{
    (void)state;
    rig on;
    raw client;
    http_server_limits limits = defaults();
    limits.body_bytes = 100000;
    rig_init(&on, &limits);
    raw_open(&client, &on); /* at once: not a byte of it is waited for, 100 is not said */
    assert_true(
        raw_say(&client, &on, POST "Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n"));
    expect_end(&on, &client, "HTTP/1.1 413 ");

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, POST "Transfer-Encoding: chunked\r\n\r\n"));
    char chunk[8 + 4096 + 1] = "1000\r\n";
    memset(chunk + 6, 'c', 4096);
    chunk[6 + 4096] = '\r';
    chunk[7 + 4096] = '\n';
    for (int i = 0; i < 40; i++) {
        (void)raw_send(&client, &on, chunk, 8 + 4096);
    }
    expect_end(&on, &client, "HTTP/1.1 413 ");

    raw_open(&client, &on); /* the bound itself is fine */
    assert_true(raw_say(&client, &on, POST "Content-Length: 100000\r\n\r\n"));
    char *body = calloc(1, 100000);
    assert_non_null(body);
    assert_true(raw_send(&client, &on, body, 100000));
    free(body);
    raw_until(&client, &on, "HTTP/1.1 200 ");
    raw_close(&client);
    assert_int_equal(on.requests, 1);
    rig_fini(&on);
}

/* Three that hold their bodies back keep a fourth out, until one of them is over. */
static void test_bodies_together(void **state)
{
    (void)state;
    rig on;
    raw slow[3];
    raw client;
    http_server_limits limits = defaults();
    limits.body_bytes = 100000;
    limits.held_bytes = 250000;
    rig_init(&on, &limits);
    char *body = calloc(1, 100000);
    assert_non_null(body);
    for (size_t i = 0; i < 3; i++) {
        raw_open(&slow[i], &on);
        assert_true(raw_say(&slow[i], &on, POST "Content-Length: 100000\r\n\r\n"));
    }
    for (size_t i = 0; i < 3; i++) {
        size_t most = i < 2 ? 99999 : 30000;
        assert_true(raw_send(&slow[i], &on, body, most));
    }
    int64_t until = rig_now_ms() + RIG_GIVE_UP_MS;
    while (on.server->held_bytes < 229998) {
        assert_true(rig_now_ms() < until);
        (void)loop_turn(on.loop, 1);
    }
    raw_open(&client, &on); /* refused by its head alone */
    assert_true(raw_say(&client, &on, POST "Content-Length: 50000\r\n\r\n"));
    raw_until(&client, &on, NULL);
    assert_true(raw_starts(&client, "HTTP/1.1 503 "));
    assert_true(raw_has(&client, "Retry-After: 1\r\n"));
    raw_close(&client);
    (void)raw_send(&slow[2], &on, body, 70000); /* refused in the middle */
    raw_until(&slow[2], &on, NULL);
    assert_true(raw_starts(&slow[2], "HTTP/1.1 503 "));
    raw_close(&slow[2]);
    for (size_t i = 0; i < 2; i++) { /* who was there first gets through */
        assert_true(raw_send(&slow[i], &on, body, 1));
        raw_until(&slow[i], &on, "HTTP/1.1 200 ");
        raw_close(&slow[i]);
    }
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, POST "Content-Length: 100000\r\n\r\n"));
    assert_true(raw_send(&client, &on, body, 100000));
    raw_until(&client, &on, "HTTP/1.1 200 ");
    raw_close(&client);
    free(body);
    rig_fini(&on);
}

static void test_slow_writers(void **state)
{
    (void)state;
    rig on;
    raw client;
    http_server_limits limits = defaults();
    limits.head_timeout_ms = 20;
    limits.body_timeout_ms = 20;
    rig_init(&on, &limits);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /ec"));
    expect_end(&on, &client, "HTTP/1.1 408 ");
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, POST "Content-Length: 5\r\n\r\nhel"));
    expect_end(&on, &client, "HTTP/1.1 408 ");
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

/* A byte now and then keeps a connection alive, but not for ever. */
static void test_drip(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        rig on;
        raw client;
        http_server_limits limits = defaults();
        limits.head_timeout_ms = part == 0 ? 30 : 10000;
        limits.body_total_ms = part == 1 ? 30 : 300000;
        rig_init(&on, &limits);
        raw_open(&client, &on);
        assert_true(raw_say(&client, &on,
                            part == 0 ? "GET / HTTP/1.1\r\nHost: a\r\nX: "
                                      : POST "Content-Length: 1000000\r\n\r\n"));
        int64_t end = rig_now_ms() + RIG_GIVE_UP_MS;
        while (!client.is_over && !raw_has(&client, "408")) {
            (void)raw_say(&client, &on, "x");
            (void)loop_turn(on.loop, 1);
            raw_pump(&client);
            assert_true(rig_now_ms() < end);
        }
        assert_true(raw_starts(&client, "HTTP/1.1 408 "));
        raw_close(&client);
        rig_fini(&on);
    }
}

static void test_idle_connections_end(void **state)
{
    (void)state;
    rig on;
    raw silent, used;
    http_server_limits limits = defaults();
    limits.idle_timeout_ms = 20;
    rig_init(&on, &limits);
    raw_open(&silent, &on);
    raw_open(&used, &on);
    assert_true(raw_say(&used, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&silent, &on, NULL);
    raw_until(&used, &on, NULL);
    assert_int_equal(silent.got.len, 0);
    assert_int_equal(raw_count(&used, "HTTP/1.1 "), 1);
    raw_close(&silent);
    raw_close(&used);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    rig_fini(&on);
}

/* A connection that never speaks has the time of a head, one that was of use may rest longer. */
static void test_silent_connections_end(void **state)
{
    (void)state;
    rig on;
    raw used, silent;
    http_server_limits limits = defaults();
    limits.head_timeout_ms = 10;
    rig_init(&on, &limits);
    raw_open(&used, &on);
    assert_true(raw_say(&used, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&used, &on, "hi");
    for (int i = 0; i < 3; i++) { /* three times the time of a head */
        raw_open(&silent, &on);
        raw_until(&silent, &on, NULL);
        assert_int_equal(silent.got.len, 0);
        assert_false(silent.is_reset);
        raw_close(&silent);
    }
    buf_clear(&used.got);
    assert_true(raw_say(&used, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&used, &on, "hi");
    raw_close(&used);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    rig_fini(&on);
}

/* What takes its time is not idle. */
static void test_pending_is_not_idle(void **state)
{
    (void)state;
    rig on;
    raw waiting, streaming, idle;
    http_server_limits limits = defaults();
    limits.idle_timeout_ms = 10;
    limits.head_timeout_ms = 10;
    limits.body_timeout_ms = 10;
    limits.write_timeout_ms = 10;
    rig_init(&on, &limits);
    raw_open(&waiting, &on);
    assert_true(raw_say(&waiting, &on, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    raw_open(&streaming, &on);
    assert_true(raw_say(&streaming, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 2);
    for (int i = 0; i < 3; i++) { /* three life times of an idle connection */
        raw_open(&idle, &on);
        raw_until(&idle, &on, NULL);
        raw_close(&idle);
    }
    assert_int_equal(on.cut, 0);
    rig_reply(on.pending[0], 200, STR("late"));
    raw_until(&waiting, &on, "late");
    http_stream_end(on.pending[on.pending_count - 1]);
    raw_until(&streaming, &on, "0\r\n\r\n");
    raw_close(&waiting);
    raw_close(&streaming);
    rig_fini(&on);
}

static void test_connections(void **state)
{
    (void)state;
    rig on;
    raw first, second, third;
    http_server_limits limits = defaults();
    limits.connections = 2;
    rig_init(&on, &limits);
    raw_open(&first, &on);
    raw_open(&second, &on);
    RIG_UNTIL(&on, http_server_connections(on.server) == 2);
    raw_open(&third, &on);
    expect_end(&on, &third, "HTTP/1.1 503 ");
    assert_true(raw_say(&first, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&first, &on, "\r\n\r\nhi");
    raw_close(&second);
    RIG_UNTIL(&on, http_server_connections(on.server) == 1);
    raw_open(&third, &on);
    assert_true(raw_say(&third, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&third, &on, "\r\n\r\nhi");
    raw_close(&first);
    raw_close(&third);
    rig_fini(&on);
}

static void test_connections_per_address(void **state)
{
    (void)state;
    rig on;
    raw clients[3];
    http_server_limits limits = defaults();
    limits.connections_per_ip = 2;
    rig_init(&on, &limits);
    for (int round = 0; round < 3; round++) {
        raw_open(&clients[0], &on);
        raw_open(&clients[1], &on);
        RIG_UNTIL(&on, http_server_connections(on.server) == 2);
        raw_open(&clients[2], &on);
        expect_end(&on, &clients[2], "HTTP/1.1 503 ");
        raw_close(&clients[0]);
        raw_close(&clients[1]);
        RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    }
    rig_fini(&on);
}

/* Over the limit by far: the first are told, nobody is kept. */
static void test_connection_flood(void **state)
{
    (void)state;
    enum { FLOOD = 200 };
    rig on;
    raw clients[FLOOD];
    http_server_limits limits = defaults();
    limits.connections = 1;
    rig_init(&on, &limits);
    for (int i = 0; i < FLOOD; i++) {
        raw_open(&clients[i], &on);
        (void)loop_turn(on.loop, 0);
    }
    for (int i = 1; i < FLOOD; i++) {
        raw_until(&clients[i], &on, NULL);
    }
    assert_int_equal(http_server_connections(on.server), 1);
    for (int i = 0; i < FLOOD; i++) {
        raw_close(&clients[i]);
    }
    rig_fini(&on);
}

/* A slow reader stops its own stream; when it reads on, nothing is missing. */
static void test_slow_reader(void **state)
{
    (void)state;
    rig on;
    raw slow, good;
    http_server_limits limits = defaults();
    limits.stream_high_bytes = 64 * 1024;
    limits.stream_max_bytes = 64 * 1024 * 1024;
    rig_init(&on, &limits);
    raw_open(&slow, &on);
    raw_open(&good, &on);
    assert_true(raw_say(&slow, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange *stream = on.pending[0];
    static char piece[32 * 1024];
    memset(piece, 'p', sizeof(piece));
    size_t written = 0;
    for (bay_err err = BAY_OK; err != BAY_ERR_AGAIN; written++) {
        err = http_stream_write(stream, (bay_str){piece, sizeof(piece)});
        assert_true(err == BAY_OK || err == BAY_ERR_AGAIN);
        (void)loop_turn(on.loop, 0);
        assert_true(written < 10000);
    }
    assert_int_equal(on.drained, 0);
    assert_true(raw_say(&good, &on, POST "Content-Length: 2\r\n\r\nhi"));
    raw_until(&good, &on, "\r\n\r\nhi");
    RIG_UNTIL(&on, (raw_pump(&slow), on.drained == 1));
    assert_int_equal(http_stream_write(stream, STR("end")), BAY_OK);
    http_stream_end(stream);
    raw_until(&slow, &on, "3\r\nend\r\n0\r\n\r\n");
    assert_int_equal(raw_count(&slow, "8000\r\np"), written);
    RIG_UNTIL(&on, on.complete == 2);
    raw_close(&slow);
    raw_close(&good);
    rig_fini(&on);
}

static void test_stream_overflow(void **state)
{
    (void)state;
    rig on;
    raw slow;
    http_server_limits limits = defaults();
    limits.stream_high_bytes = 64 * 1024;
    limits.stream_max_bytes = 1024 * 1024;
    rig_init(&on, &limits);
    raw_open(&slow, &on);
    assert_true(raw_say(&slow, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange *stream = on.pending[0];
    static char piece[32 * 1024];
    bay_err err = BAY_OK;
    for (size_t i = 0; err != BAY_ERR_CLOSED; i++) { /* a writer that does not listen */
        err = http_stream_write(stream, (bay_str){piece, sizeof(piece)});
        assert_true(i < 10000);
    }
    assert_int_equal(on.cut, 0); /* not inside the call */
    RIG_UNTIL(&on, on.cut == 1);
    raw_close(&slow);
    rig_fini(&on);
}

/* A peer that takes nothing for too long is cut, from a stream and from a large reply. */
static void test_write_timeout(void **state)
{
    (void)state;
    enum { LARGE = 32 * 1024 * 1024 };
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    for (int part = 0; part < 2; part++) {
        rig on;
        raw slow;
        http_server_limits limits = defaults();
        limits.write_timeout_ms = 20;
        limits.stream_max_bytes = 2 * (size_t)LARGE;
        rig_init(&on, &limits);
        raw_open(&slow, &on);
        assert_true(raw_say(&slow, &on, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
        RIG_UNTIL(&on, on.pending_count == 1);
        if (part == 0) {
            http_exchange_reply(on.pending[0], 200, NULL, 0, (bay_str){large, LARGE});
        } else {
            assert_int_equal(http_stream_open(on.pending[0], 200, NULL, 0, false), BAY_OK);
            assert_int_equal(http_stream_write(on.pending[0], (bay_str){large, LARGE}),
                             BAY_ERR_AGAIN);
        }
        RIG_UNTIL(&on, on.cut == 1);
        raw_close(&slow);
        rig_fini(&on);
    }
    free(large);
}

/* A reader that is slow but not stuck gets everything, however large. */
static void test_large_reply_to_a_slow_reader(void **state)
{
    (void)state;
    enum { LARGE = 24 * 1024 * 1024 };
    char *large = malloc(LARGE);
    assert_non_null(large);
    memset(large, 'L', LARGE);
    rig on;
    raw slow;
    rig_init(&on, NULL); /* larger than what a stream may queue */
    raw_open(&slow, &on);
    assert_true(raw_say(&slow, &on,
                        "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n" POST "Content-Length: 2\r\n"
                        "Connection: close\r\n\r\nhi"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange_reply(on.pending[0], 200, NULL, 0, (bay_str){large, LARGE});
    free(large);
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(on.loop, 0);
    }
    assert_int_equal(on.complete, 0); /* not before the kernel has all of it */
    assert_int_equal(on.requests, 1); /* nor is the next request looked at */
    raw_until(&slow, &on, NULL);
    assert_true(str_ends(buf_view(&slow.got), STR("\r\n\r\nhi")));
    assert_true(slow.got.len > LARGE);
    assert_int_equal(on.complete, 2);
    raw_close(&slow);
    rig_fini(&on);
}

/* A pipeline as long as the kernel allows is held back, not stored. */
static void test_pipeline_is_bounded(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    static const char request[] = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";
    size_t sent = 0;
    for (int stuck = 0; stuck < 50;) {
        char many[64 * (sizeof(request) - 1)];
        for (size_t i = 0; i < 64; i++) {
            memcpy(many + i * (sizeof(request) - 1), request, sizeof(request) - 1);
        }
        size_t skip = sent % (sizeof(request) - 1);
        ssize_t put = send(client.fd, many + skip, sizeof(many) - skip, MSG_NOSIGNAL);
        stuck = put > 0 ? 0 : stuck + 1;
        sent += put > 0 ? (size_t)put : 0;
        (void)loop_turn(on.loop, 0);
        assert_true(sent < 256u * 1024 * 1024);
    }
    assert_int_equal(on.requests, 1);
    for (int i = 0; i < 3; i++) {
        rig_reply(on.pending[0], 200, STR("next"));
        RIG_UNTIL(&on, on.requests == i + 2 && on.pending_count == 1);
    }
    raw_close(&client);
    rig_fini(&on);
}

/* The heap of an idle connection, and of an idle stream (the kernel's share apart). */
static void test_idle_is_small(void **state)
{
    (void)state;
    size_t bytes = sizeof(http_connection) + socket_struct_bytes();
    print_message("idle connection or stream: %zu + %zu bytes\n", sizeof(http_connection),
                  socket_struct_bytes());
    assert_true(bytes < 1536);
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    raw_until(&client, &on, "\r\n\r\n");
    http_connection *connection = CONTAINER_OF(on.pending[0], http_connection, exchange);
    assert_null(connection->exchange.memory);
    assert_null(http_exchange_arena(on.pending[0]));
    assert_int_equal(connection->held.cap + connection->cork.cap, 0);
    raw_close(&client);
    rig_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_flood),
        cmocka_unit_test(test_body_too_large),
        cmocka_unit_test(test_bodies_together),
        cmocka_unit_test(test_slow_writers),
        cmocka_unit_test(test_drip),
        cmocka_unit_test(test_idle_connections_end),
        cmocka_unit_test(test_silent_connections_end),
        cmocka_unit_test(test_pending_is_not_idle),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_connections_per_address),
        cmocka_unit_test(test_connection_flood),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_stream_overflow),
        cmocka_unit_test(test_write_timeout),
        cmocka_unit_test(test_large_reply_to_a_slow_reader),
        cmocka_unit_test(test_pipeline_is_bounded),
        cmocka_unit_test(test_idle_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
