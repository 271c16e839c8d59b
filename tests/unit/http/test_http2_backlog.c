/* Replies that their peers do not read, over HTTP/2: windows that stay shut or open by an octet now
 * and then, and bodies that come as slowly. Bytes are asserted by the account of the process. */
#include "http2_rig.h"

#include "http/http2.h"

enum { MIB = 1024 * 1024, LARGE = MIB };

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

static const nghttp2_settings_entry shut = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

static void expect_large(peer *client, rig *on, int requests)
{
    peer_stream *reply = peer_get(client, "/large");
    PEER_UNTIL(client, on, reply->is_closed);
    assert_int_equal(reply->body.len, LARGE);
    assert_int_equal(reply->code, NGHTTP2_NO_ERROR);
    assert_true(on->requests > requests);
}

/* Ninety requests each of connections that never read: few of them are served at all, and the
 * connections end, the oldest first. */
static void test_connections_that_never_read(void **state)
{
    (void)state;
    enum { SHUT = 12, ASKED = 90 };
    static const nghttp2_settings_entry unread = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535};
    rig on;
    static peer clients[SHUT];
    peer good;
    http_server_limits limits = http_server_default_limits;
    limits.reply_bytes = 12 * MIB;
    begin(&on, &limits);
    const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LARGE};
    peer_open_with(&good, &on, &wide, 1, false);
    assert_int_equal(nghttp2_submit_window_update(good.session, NGHTTP2_FLAG_NONE, 0, 16 * LARGE),
                     0);
    for (size_t i = 0; i < SHUT; i++) {
        int before = on.requests;
        peer_open_with(&clients[i], &on, &unread, 1, true);
        for (int k = 0; k < ASKED; k++) {
            (void)peer_get(&clients[i], "/large");
        }
        PEER_UNTIL(&clients[i], &on, on.requests > before);
        peer_turn(&clients[i], &on);
        assert_true(on.requests - before <= HTTP2_AHEAD_BYTES / LARGE + 1);
        if (i % 4 == 3) {
            expect_large(&good, &on, on.requests);
        }
    }
    assert_true(most_waiting > limits.reply_bytes - LARGE); /* else nobody had to end */
    assert_true(most_waiting <= limits.reply_bytes + limits.reply_bytes / 4 + LARGE);
    PEER_UNTIL(&clients[0], &on, clients[0].raw.is_over);
    expect_large(&good, &on, on.requests);
    assert_false(good.raw.is_over);
    for (size_t i = 0; i < SHUT; i++) {
        peer_close(&clients[i]);
    }
    peer_close(&good);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

/* While others' replies fill the account, a peer whose windows would take no reply has none made,
 * so nobody ends for it and nobody waits behind it; one that reads is served. Its requests are
 * served once its window opens, or once there is room. */
static void test_shut_windows_wait_while_much_waits(void **state)
{
    (void)state;
    enum { SHUT = 6, PER_PEER = HTTP2_AHEAD_BYTES / LARGE + 1 };
    for (int part = 0; part < 2; part++) {
        rig on;
        peer clients[SHUT];
        peer good;
        http_server_limits limits = http_server_default_limits;
        limits.reply_bytes = 16 * MIB;
        limits.write_timeout_ms = part == 0 ? limits.write_timeout_ms : 400;
        begin(&on, &limits);
        for (size_t i = 0; i < SHUT; i++) {
            peer_open_with(&clients[i], &on, &shut, 1, true);
            for (int k = 0; k < 2 * PER_PEER; k++) {
                (void)peer_get(&clients[i], "/large");
            }
            for (int k = 0; k < 10; k++) {
                peer_turn(&clients[i], &on);
            }
        }
        assert_in_range(most_waiting, limits.reply_bytes / 2, limits.reply_bytes);
        assert_int_equal(on.requests, 8); /* MiB: half of the account */
        const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LARGE};
        peer_open_with(&good, &on, &wide, 1, false);
        assert_int_equal(nghttp2_submit_window_update(good.session, NGHTTP2_FLAG_NONE, 0, LARGE),
                         0);
        expect_large(&good, &on, on.requests);
        for (size_t i = 0; i < SHUT; i++) {
            assert_false(clients[i].raw.is_over);
        }
        int before = on.requests;
        if (part == 0) {
            const nghttp2_settings_entry open = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LARGE};
            assert_int_equal(
                nghttp2_submit_settings(clients[SHUT - 1].session, NGHTTP2_FLAG_NONE, &open, 1), 0);
        } /* else the first replies end by their least pace */
        PEER_UNTIL(&clients[SHUT - 1], &on, on.requests > before);
        for (size_t i = 0; i < SHUT; i++) {
            peer_close(&clients[i]);
        }
        peer_close(&good);
        RIG_UNTIL(&on, http_server_connections(on.server) == 0);
        end(&on);
    }
}

/* Requests that waited for their connection's replies to be read are served then, all of them. */
static void test_what_waits_is_served_later(void **state)
{
    (void)state;
    enum { ASKED = 20 };
    rig on;
    peer client;
    begin(&on, &http_server_default_limits);
    peer_open_with(&client, &on, &shut, 1, false);
    for (int i = 0; i < ASKED; i++) {
        (void)peer_get(&client, "/large");
    }
    PEER_UNTIL(&client, &on, on.requests > 0);
    for (int i = 0; i < 10; i++) {
        peer_turn(&client, &on);
    }
    assert_true(on.requests < ASKED);
    nghttp2_settings_entry open = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2 * MIB};
    assert_int_equal(nghttp2_submit_settings(client.session, NGHTTP2_FLAG_NONE, &open, 1), 0);
    assert_int_equal(
        nghttp2_submit_window_update(client.session, NGHTTP2_FLAG_NONE, 0, ASKED * LARGE), 0);
    PEER_UNTIL(&client, &on, on.complete == ASKED);
    for (size_t i = 0; i < ASKED; i++) {
        PEER_UNTIL(&client, &on, client.streams[i].is_closed);
        assert_int_equal(client.streams[i].body.len, LARGE);
    }
    peer_close(&client);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

/* A peer that has said that it will not read replies gets few made, and the others when it has: not
 * one is lost. */
static void test_shut_windows_wait_at_the_source(void **state)
{
    (void)state;
    enum { ASKED = 20 };
    rig on;
    peer client;
    begin(&on, &http_server_default_limits);
    peer_open_with(&client, &on, &shut, 1, false);
    for (int i = 0; i < ASKED; i++) {
        (void)peer_get(&client, "/wait");
    }
    PEER_UNTIL(&client, &on, on.pending_count == HTTP2_SHUT_REQUESTS);
    for (int i = 0; i < 10; i++) {
        peer_turn(&client, &on);
    }
    assert_int_equal(on.pending_count, HTTP2_SHUT_REQUESTS);
    http_exchange *first = on.pending[0];
    rig_forget(&on, first);
    rig_reply(first, 200, STR("one"));
    PEER_UNTIL(&client, &on, on.requests == HTTP2_SHUT_REQUESTS + 1);
    nghttp2_settings_entry open = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535};
    assert_int_equal(nghttp2_submit_settings(client.session, NGHTTP2_FLAG_NONE, &open, 1), 0);
    PEER_UNTIL(&client, &on, on.pending_count == ASKED - 1);
    while (on.pending_count > 0) {
        http_exchange *exchange = on.pending[0];
        rig_forget(&on, exchange);
        rig_reply(exchange, 200, STR("another"));
    }
    PEER_UNTIL(&client, &on, on.complete == ASKED);
    peer_close(&client);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

/* Replies that come later, when all requests are with the handler: beyond the connection's bound
 * they end their streams, and not the connection. */
static void test_late_replies_beyond_the_bound(void **state)
{
    (void)state;
    enum { ASKED = 20 };
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.reply_bytes = 64 * MIB;
    begin(&on, &limits);
    const nghttp2_settings_entry ajar = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1};
    peer_open_with(&client, &on, &ajar, 1, true);
    for (int i = 0; i < ASKED; i++) {
        (void)peer_get(&client, "/wait");
    }
    PEER_UNTIL(&client, &on, on.pending_count == ASKED);
    while (on.pending_count > 0) {
        http_exchange *exchange = on.pending[0];
        rig_forget(&on, exchange);
        rig_reply(exchange, 200, (bay_str){large, LARGE});
    }
    assert_in_range(reply_account_bytes(), HTTP2_QUEUED_BYTES - LARGE, HTTP2_QUEUED_BYTES);
    PEER_UNTIL(&client, &on, on.cut == ASKED - HTTP2_QUEUED_BYTES / LARGE);
    assert_false(client.raw.is_over);
    peer_close(&client);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

/* Turns the loop until its clock has gone on by `ms`. */
static void pass(rig *on, uint64_t ms)
{
    uint64_t until = loop_now_ms(on->loop) + ms;
    RIG_UNTIL(on, loop_now_ms(on->loop) >= until);
}

/* Opens windows by `octets` at a time until the reply is over; returns how often. */
static int open_slowly(peer *client, rig *on, peer_stream *reply, bool of_stream, int octets,
                       uint64_t every_ms)
{
    int64_t give_up = rig_now_ms() + RIG_GIVE_UP_MS;
    int updates = 0;
    while (!reply->is_closed && !client->raw.is_over) {
        (void)nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE,
                                           of_stream ? reply->id : 0, octets);
        updates++;
        peer_turn(client, on);
        pass(on, every_ms);
        assert_true(rig_now_ms() < give_up);
    }
    return updates;
}

/* An octet of window long before the silence that ends a stream: of the stream, or of the
 * connection. Who takes steadily more than the least pace gets everything. */
static void test_windows_that_open_by_an_octet(void **state)
{
    (void)state;
    enum { CONNECTION_WINDOW = 65535 };
    for (int part = 0; part < 3; part++) {
        rig on;
        peer client;
        bool of_stream = part != 1;
        bool is_slow = part < 2;
        http_server_limits limits = http_server_default_limits;
        limits.write_timeout_ms = is_slow ? 200 : 4000;
        begin(&on, &limits);
        if (of_stream) {
            peer_open_with(&client, &on, &shut, 1, true);
        } else {
            nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 16 * MIB};
            peer_open_with(&client, &on, &wide, 1, true);
        }
        peer_stream *reply = peer_get(&client, "/wait");
        PEER_UNTIL(&client, &on, on.pending_count == 1);
        rig_reply(on.pending[0], 200, (bay_str){large, of_stream ? 30000 : LARGE});
        if (!of_stream) {
            PEER_UNTIL(&client, &on, reply->body.len == CONNECTION_WINDOW);
        }
        (void)open_slowly(&client, &on, reply, of_stream, is_slow ? 1 : 1000, is_slow ? 40 : 1);
        if (is_slow) {
            assert_int_equal(reply->code, NGHTTP2_CANCEL);
            assert_int_equal(on.cut, 1);
        } else {
            assert_int_equal(reply->body.len, 30000);
            assert_int_equal(on.complete, 1);
        }
        peer_close(&client);
        RIG_UNTIL(&on, http_server_connections(on.server) == 0);
        end(&on);
    }
}

static void test_a_body_in_drips(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.body_timeout_ms = 100;
    begin(&on, &limits);
    hand_open(&client, &on, &out);
    frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, HPACK_GET, sizeof(HPACK_GET) - 1);
    int64_t give_up = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!raw_has(&client, "took too long")) {
        frame_put(&out, NGHTTP2_DATA, 0, 1, "x", 1);
        assert_true(hand_send(&client, &on, &out));
        pass(&on, 20);
        raw_pump(&client);
        assert_true(rig_now_ms() < give_up);
    }
    assert_int_equal(on.requests, 0);
    raw_close(&client);
    buf_fini(&out);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    end(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_that_never_read),
        cmocka_unit_test(test_shut_windows_wait_while_much_waits),
        cmocka_unit_test(test_what_waits_is_served_later),
        cmocka_unit_test(test_shut_windows_wait_at_the_source),
        cmocka_unit_test(test_late_replies_beyond_the_bound),
        cmocka_unit_test(test_windows_that_open_by_an_octet),
        cmocka_unit_test(test_a_body_in_drips),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
