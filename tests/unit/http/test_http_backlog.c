/* Replies that their peers do not read, over HTTP/1.1: how much of them waits, who ends for it, and
 * that whoever reads gets everything. Bytes are asserted by the account of the process. */
#include "http_rig.h"

#include "http/http_internal.h"

enum { MIB = 1024 * 1024, LARGE = 8 * MIB };

#define LARGE_GET "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"

static char *large;
static size_t most_waiting;

static void on_request(void *user, http_exchange *exchange)
{
    if (str_eq(http_exchange_path(exchange), STR("/large"))) {
        ((rig *)user)->requests++;
        http_exchange_reply(exchange, 200, NULL, 0, (bay_str){large, LARGE});
    } else {
        rig_request(user, exchange);
    }
    size_t waiting = reply_account_bytes();
    most_waiting = waiting > most_waiting ? waiting : most_waiting;
}

static const http_handler handler = {
    .request = on_request, .closed = rig_closed, .drained = rig_on_drained};

static void begin(rig *on, const http_server_limits *limits)
{
    bay_diag diag;
    http_server_options options = {.limits = *limits, .handler = &handler, .user = on};
    memset(on, 0, sizeof(*on));
    most_waiting = 0;
    assert_int_equal(loop_new(&on->loop), BAY_OK);
    assert_int_equal(http_server_new(on->loop, &options, &on->server), BAY_OK);
    assert_int_equal(http_server_listen(on->server, STR("127.0.0.1:0"), &diag), BAY_OK);
}

static void end(rig *on)
{
    rig_fini(on);
    assert_int_equal(reply_account_bytes(), 0);
}

static int setup(void **state)
{
    (void)state;
    large = malloc(LARGE);
    memset(large, 'L', LARGE);
    return large == NULL;
}

static int teardown(void **state)
{
    (void)state;
    free(large);
    return 0;
}

static void expect_large(raw *client, rig *on)
{
    RIG_UNTIL(on, (raw_pump(client), client->got.len > LARGE));
    assert_true(client->got.at[client->got.len - 1] == 'L');
    assert_false(client->is_over);
}

/* Forty who do not read cost what the bound says, not forty replies; beside them others read. */
static void test_unread_replies(void **state)
{
    (void)state;
    enum { UNREAD = 40 };
    rig on;
    raw unread[UNREAD];
    raw good;
    http_server_limits limits = http_server_default_limits;
    limits.reply_bytes = 24 * MIB;
    begin(&on, &limits);
    raw_open(&good, &on);
    for (size_t i = 0; i < UNREAD; i++) {
        raw_open(&unread[i], &on);
        assert_true(raw_say(&unread[i], &on, LARGE_GET));
        RIG_UNTIL(&on, on.requests == (int)i + 1);
        assert_true(raw_say(&good, &on, "GET /info HTTP/1.1\r\nHost: a\r\n\r\n"));
        raw_until(&good, &on, "x=0");
        buf_clear(&good.got);
        on.requests--; /* of the good one */
        on.complete--;
    }
    assert_true(most_waiting > limits.reply_bytes - LARGE); /* else nobody had to end */
    assert_true(most_waiting <= limits.reply_bytes + limits.reply_bytes / 4 + LARGE);
    assert_true(reply_account_bytes() <= limits.reply_bytes + limits.reply_bytes / 4);
    RIG_UNTIL(&on, on.cut >= UNREAD / 2);
    raw_until(&unread[0], &on, NULL); /* the oldest ended … */
    assert_true(unread[0].got.len < LARGE);
    assert_true(raw_say(&good, &on, LARGE_GET));
    expect_large(&good, &on);
    RIG_UNTIL(&on,
              (raw_pump(&unread[UNREAD - 1]), unread[UNREAD - 1].got.len > LARGE)); /* … not this */
    for (size_t i = 0; i < UNREAD; i++) {
        raw_close(&unread[i]);
    }
    raw_close(&good);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

/* A reply many times as large as the bound, to who reads it, while others wait for little. */
static void test_a_large_reply_alone(void **state)
{
    (void)state;
    rig on;
    raw reads, idles;
    http_server_limits limits = http_server_default_limits;
    limits.reply_bytes = MIB;
    limits.stream_high_bytes = 64 * 1024;
    begin(&on, &limits);
    raw_open(&reads, &on);
    raw_open(&idles, &on);
    assert_true(raw_say(&reads, &on, LARGE_GET));
    RIG_UNTIL(&on, on.requests == 1);
    assert_true(reply_account_bytes() > limits.reply_bytes);
    assert_true(raw_say(&idles, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    static char piece[16 * 1024];
    for (bay_err err = BAY_OK; err == BAY_OK;) {
        err = http_stream_write(on.pending[0], (bay_str){piece, sizeof(piece)});
        assert_true(err == BAY_OK || err == BAY_ERR_AGAIN);
    }
    expect_large(&reads, &on);
    assert_int_equal(on.cut, 0);
    assert_int_equal(on.complete, 1);
    raw_close(&reads);
    raw_close(&idles);
    RIG_UNTIL(&on, on.cut == 1);
    end(&on);
}

/* The end of a stream behind more than a stream may queue is still its end. */
static void test_a_large_event_and_the_end(void **state)
{
    (void)state;
    rig on;
    raw client;
    http_server_limits limits = http_server_default_limits;
    limits.stream_max_bytes = MIB;
    begin(&on, &limits);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    assert_int_equal(http_stream_write(on.pending[0], (bay_str){large, LARGE}), BAY_ERR_AGAIN);
    http_stream_end(on.pending[0]);
    raw_until(&client, &on, "\r\n0\r\n\r\n");
    assert_true(client.got.len > LARGE);
    RIG_UNTIL(&on, on.complete == 1);
    raw_close(&client);
    end(&on);
}

/* A stream of HTTP/1.0 ends with its connection, also when less waits than its sender is told of.
 */
static void test_the_end_of_a_stream_without_chunks(void **state)
{
    (void)state;
    rig on;
    raw client;
    begin(&on, &http_server_default_limits);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /stream HTTP/1.0\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    static char piece[8 * 1024];
    size_t bytes = 0;
    while (reply_account_bytes() == 0) {
        assert_int_equal(http_stream_write(on.pending[0], (bay_str){piece, sizeof(piece)}), BAY_OK);
        (void)loop_turn(on.loop, 0);
        bytes += sizeof(piece);
    }
    http_stream_end(on.pending[0]);
    raw_until(&client, &on, NULL);
    assert_true(client.got.len > bytes);
    assert_int_equal(on.complete, 1);
    raw_close(&client);
    end(&on);
}

/* Turns the loop until its clock has gone on by `ms`. */
static void pass(rig *on, uint64_t ms)
{
    uint64_t until = loop_now_ms(on->loop) + ms;
    RIG_UNTIL(on, loop_now_ms(on->loop) >= until);
}

/* A body that comes octet by octet, each long before the silence that would end it. */
static void test_a_body_in_drips(void **state)
{
    (void)state;
    rig on;
    raw client;
    http_server_limits limits = http_server_default_limits;
    limits.body_timeout_ms = 100;
    begin(&on, &limits);
    raw_open(&client, &on);
    assert_true(
        raw_say(&client, &on, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"));
    int64_t give_up = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!client.is_over && !raw_has(&client, "408")) {
        (void)raw_say(&client, &on, "x");
        pass(&on, 20);
        raw_pump(&client);
        assert_true(rig_now_ms() < give_up);
    }
    assert_true(raw_starts(&client, "HTTP/1.1 408 "));
    assert_int_equal(on.requests, 0);
    raw_close(&client);
    end(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unread_replies),
        cmocka_unit_test(test_a_large_reply_alone),
        cmocka_unit_test(test_a_large_event_and_the_end),
        cmocka_unit_test(test_the_end_of_a_stream_without_chunks),
        cmocka_unit_test(test_a_body_in_drips),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
