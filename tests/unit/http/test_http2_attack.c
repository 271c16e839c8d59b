/* HTTP/2 as clients that mean harm speak it: frames by hand, floods, stalls, lies about lengths.
 * Each ends with an error on the wire and nothing left behind. */
#include "http2_rig.h"

#include "base/log.h"
#include "http/http2.h"

/* Sends what `out` has until the server has had enough, and says why it had. */
static int64_t until_goaway(raw *client, rig *on, buf *out)
{
    (void)hand_send(client, on, out);
    raw_until(client, on, NULL);
    int64_t code = hand_goaway(client);
    raw_close(client);
    buf_fini(out);
    return code;
}

static void put_get(buf *out, uint32_t id)
{
    frame_put(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
              HPACK_GET, sizeof(HPACK_GET) - 1);
}

static void test_rapid_reset(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t id = 2 * i + 1;
        put_get(&out, id);
        frame_put(&out, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x08", 4);
    }
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_true(on.requests < 250);
    rig_fini(&on);
}

/* The peer makes the server reset streams: a window update of nothing, again and again. */
static void test_made_to_reset(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t id = 2 * i + 1;
        frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, HPACK_GET,
                  sizeof(HPACK_GET) - 1);
        frame_put(&out, NGHTTP2_WINDOW_UPDATE, 0, id, "\0\0\0\0", 4);
    }
    int64_t code = until_goaway(&client, &on, &out);
    assert_true(code == NGHTTP2_ENHANCE_YOUR_CALM || code == NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

static void flood(uint8_t type, uint8_t flags, uint32_t id, const char *at, size_t len)
{
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    if (type == NGHTTP2_DATA || type == NGHTTP2_CONTINUATION) { /* a stream for them */
        frame_put(&out, NGHTTP2_HEADERS, type == NGHTTP2_DATA ? NGHTTP2_FLAG_END_HEADERS : 0, 1,
                  HPACK_GET, sizeof(HPACK_GET) - 1);
    }
    for (int i = 0; i < 5000; i++) {
        frame_put(&out, type, flags, id, at, len);
    }
    int64_t code = until_goaway(&client, &on, &out);
    if (code != NGHTTP2_ENHANCE_YOUR_CALM && type != NGHTTP2_CONTINUATION) {
        fail_msg("frame type %d: %lld", type, (long long)code);
    }
    assert_true(code > 0);
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

static void test_floods_of_frames_that_change_nothing(void **state)
{
    (void)state;
    flood(NGHTTP2_SETTINGS, 0, 0, "", 0);
    flood(NGHTTP2_PING, 0, 0, "12345678", 8);
    flood(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "12345678", 8);
    flood(NGHTTP2_PRIORITY, 0, 7, "\0\0\0\0\x01", 5);
    flood(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\x01", 4);
    flood(NGHTTP2_DATA, 0, 1, "", 0);
    flood(NGHTTP2_CONTINUATION, 0, 1, "", 0);
}

/* Frames that nghttp2 drops without a word: of types that it does not know, of streams that are
 * closed; and data that is only padding. */
static void test_floods_of_frames_that_nobody_sees(void **state)
{
    (void)state;
    flood(0xfa, 0, 0, "", 0);
    flood(0x20, 0, 1, "12345678", 8);
    flood(NGHTTP2_ALTSVC, 0, 0, "\0\0", 2);
    flood(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\x07\0\0\0\0\0\0\0", 8);
    flood(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\0", 1);
}

static void test_floods_of_closed_streams(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, flags;
        const char *at;
        size_t len;
    } cases[] = {
        {NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, "x", 1},
        {NGHTTP2_DATA, 0, "12345678", 8},
        {NGHTTP2_WINDOW_UPDATE, 0, "\0\0\0\x01", 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig on;
        raw client;
        buf out;
        rig_init(&on, NULL);
        hand_open(&client, &on, &out);
        frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, HPACK_GET,
                  sizeof(HPACK_GET) - 1);
        frame_put(&out, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
        for (int k = 0; k < 5000; k++) {
            frame_put(&out, cases[i].type, cases[i].flags, 1, cases[i].at, cases[i].len);
        }
        assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_ENHANCE_YOUR_CALM);
        rig_fini(&on);
    }
}

/* Octet by octet, and an octet with much padding: the stream is refused, the others go on. */
static void test_a_body_of_framing(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags;
        size_t len;
        int count; /* of which the last few are too many */
    } cases[] = {{0, 1, 8200}, {NGHTTP2_FLAG_PADDED, 200, 330}};
    static const char bytes[256] = "\xc6"
                                   "a"; /* 198 of padding, when it is padded */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig on;
        raw client;
        buf out;
        rig_init(&on, NULL);
        hand_open(&client, &on, &out);
        frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, HPACK_GET,
                  sizeof(HPACK_GET) - 1);
        for (int k = 0; k < cases[i].count; k++) {
            frame_put(&out, NGHTTP2_DATA, cases[i].flags, 1, bytes, cases[i].len);
        }
        assert_true(hand_send(&client, &on, &out));
        RIG_UNTIL(&on, (raw_pump(&client), hand_frames(&client, NGHTTP2_RST_STREAM, 1) == 1));
        assert_true(raw_has(&client, "framing"));
        assert_int_equal(on.requests, 0);
        put_get(&out, 3);
        assert_true(hand_send(&client, &on, &out));
        RIG_UNTIL(&on, on.pending_count == 1);
        raw_close(&client);
        buf_fini(&out);
        RIG_UNTIL(&on, on.cut == 1);
        rig_fini(&on);
    }
}

/* One such stream after the other is a flood. */
static void test_bodies_of_framing(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.resets = 5;
    rig_init(&on, &limits);
    hand_open(&client, &on, &out);
    for (uint32_t id = 1; id < 20; id += 2) {
        frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, HPACK_GET,
                  sizeof(HPACK_GET) - 1);
        for (int k = 0; k < 8200; k++) {
            frame_put(&out, NGHTTP2_DATA, 0, id, "a", 1);
        }
    }
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

/* Small frames of bodies that come whole are no flood: of gRPC, say, with an end of its own. */
static void test_small_bodies_are_fine(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    for (uint32_t i = 0; i < 3000; i++) {
        frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1, HPACK_GET,
                  sizeof(HPACK_GET) - 1);
        for (int k = 0; k < 10; k++) {
            frame_put(&out, NGHTTP2_DATA, 0, 2 * i + 1, "a", 1);
        }
        frame_put(&out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * i + 1, "", 0);
        assert_true(hand_send(&client, &on, &out));
        RIG_UNTIL(&on, on.requests == (int)i + 1);
        assert_int_equal(http_exchange_body(on.pending[0]).len, 10);
        rig_reply(on.pending[0], 200, STR(""));
        rig_forget(&on, on.pending[0]);
    }
    RIG_UNTIL(&on, on.complete == 3000);
    raw_pump(&client);
    assert_int_equal(hand_goaway(&client), -1);
    raw_close(&client);
    buf_fini(&out);
    rig_fini(&on);
}

/* Pings between requests that are answered are no flood. */
static void test_pings_beside_work_are_fine(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    int asked = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        put_get(&out, 2 * i + 1);
        frame_put(&out, NGHTTP2_PING, 0, 0, "12345678", 8);
        frame_put(&out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\x01", 4);
        assert_true(hand_send(&client, &on, &out));
        asked++;
        RIG_UNTIL(&on, on.requests == asked);
        rig_reply(on.pending[0], 200, STR(""));
        rig_forget(&on, on.pending[0]);
    }
    RIG_UNTIL(&on, on.complete == asked);
    raw_pump(&client);
    assert_int_equal(hand_goaway(&client), -1);
    raw_close(&client);
    buf_fini(&out);
    rig_fini(&on);
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void test_heads_too_large(void **state)
{
    (void)state;
    static char value[3000];
    memset(value, 'v', sizeof(value));
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.head_bytes = 4096;
    limits.head_fields = 10;
    rig_init(&on, &limits);
    peer_open(&client, &on);
    http_field fields[12];
    for (size_t i = 0; i < 12; i++) {
        fields[i] = (http_field){STR("x-y"), STR("z")};
    }
    peer_stream *many = peer_ask(&client, "GET", "/info", fields, 12, NULL);
    for (size_t i = 0; i < 3; i++) {
        fields[i].value = (bay_str){value, sizeof(value)};
    }
    peer_stream *large = peer_ask(&client, "GET", "/info", fields, 3, NULL);
    PEER_UNTIL(&client, &on, many->is_closed && large->is_closed);
    assert_string_equal(many->status, "431");
    assert_string_equal(large->status, "431");
    peer_stream *fine = peer_ask(&client, "GET", "/info", fields + 3, 5, NULL);
    PEER_UNTIL(&client, &on, fine->is_closed);
    assert_string_equal(fine->status, "200");
    for (size_t i = 0; i < 12; i++) {
        fields[i].value = (bay_str){value, sizeof(value)};
    }
    (void)peer_ask(&client, "GET", "/info", fields, 12, NULL); /* nobody writes that by mistake */
    PEER_UNTIL(&client, &on, client.raw.is_over);
    assert_int_equal(client.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(on.requests, 1);
    peer_close(&client);
    rig_fini(&on);
}

static void test_bodies_too_large(void **state)
{
    (void)state;
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.body_bytes = 100 * 1000;
    limits.held_bytes = 150 * 1000;
    rig_init(&on, &limits);
    peer_open(&client, &on);
    char *bytes = calloc(1, 1000 * 1000);
    bay_str body = {bytes, 200 * 1000};
    peer_stream *unsaid = peer_ask(&client, "POST", "/echo", NULL, 0, &body);
    PEER_UNTIL(&client, &on, unsaid->is_closed);
    assert_string_equal(unsaid->status, "413");
    assert_int_equal(unsaid->code, NGHTTP2_NO_ERROR);
    http_field length = {STR("content-length"), STR("1000000")};
    bay_str all = {bytes, 1000 * 1000};
    peer_stream *said = peer_ask(&client, "POST", "/echo", &length, 1, &all);
    PEER_UNTIL(&client, &on, said->is_closed);
    assert_string_equal(said->status, "413");
    assert_true(all.len > 0); /* it was told before it had sent everything */
    /* Together: the second waits in memory, the third finds no room. */
    bay_str one = {bytes, 90 * 1000};
    bay_str two = {bytes, 90 * 1000};
    peer_stream *first = peer_ask(&client, "POST", "/wait", NULL, 0, &one);
    PEER_UNTIL(&client, &on, on.pending_count == 1);
    peer_stream *second = peer_ask(&client, "POST", "/echo", NULL, 0, &two);
    PEER_UNTIL(&client, &on, second->is_closed);
    assert_string_equal(second->status, "503");
    assert_true(buf_has(&second->head, "retry-after: 1\n"));
    rig_reply(on.pending[0], 200, STR("ok"));
    PEER_UNTIL(&client, &on, first->is_closed);
    http_field lie = {STR("content-length"), STR("3")};
    bay_str four = STR("four");
    peer_stream *wrong = peer_ask(&client, "POST", "/echo", &lie, 1, &four);
    PEER_UNTIL(&client, &on, wrong->is_closed);
    assert_int_equal(wrong->code, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(on.requests, 1);
    free(bytes);
    peer_close(&client);
    rig_fini(&on);
}

static void test_too_many_streams(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.streams = 10;
    rig_init(&on, &limits);
    hand_open(&client, &on, &out);
    for (uint32_t i = 0; i < 30; i++) {
        put_get(&out, 2 * i + 1);
    }
    assert_true(hand_send(&client, &on, &out));
    RIG_UNTIL(&on, on.requests == 10);
    RIG_UNTIL(&on, (raw_pump(&client), hand_frames(&client, NGHTTP2_RST_STREAM, 0) == 20));
    assert_int_equal(on.requests, 10);
    raw_close(&client);
    buf_fini(&out);
    RIG_UNTIL(&on, on.cut == 10);
    rig_fini(&on);
}

static void count_line(log_level level, const char *component, const char *text, void *user)
{
    (void)level;
    (void)component;
    (void)text;
    ++*(size_t *)user;
}

/* Also when everything that the connection did wrong is found out at one time. */
static void test_a_connection_that_is_ended_is_one_line_in_the_log(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    size_t lines = 0;
    http_server_limits limits = http_server_default_limits;
    limits.streams = 10;
    limits.resets = 20;
    rig_init(&on, &limits);
    hand_open(&client, &on, &out);
    for (uint32_t i = 0; i < 200; i++) {
        put_get(&out, 2 * i + 1);
    }
    log_set_sink(LOG_WARN, count_line, &lines);
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_ENHANCE_YOUR_CALM);
    log_set_sink(LOG_WARN, NULL, NULL);
    assert_int_equal(lines, 1);
    rig_fini(&on);
}

/* --- time ------------------------------------------------------------------------------------- */

/* Also one that keeps its connection alive by pings, and one that opened it and says no more. */
static void test_connections_without_a_request(void **state)
{
    (void)state;
    for (int pings = 0; pings < 2; pings++) {
        rig on;
        raw client;
        buf out;
        http_server_limits limits = http_server_default_limits;
        limits.head_timeout_ms = 20;
        rig_init(&on, &limits);
        hand_open(&client, &on, &out);
        assert_true(hand_send(&client, &on, &out));
        RIG_UNTIL(&on, (raw_pump(&client), hand_frames(&client, NGHTTP2_SETTINGS, 0) == 2));
        int64_t end = rig_now_ms() + RIG_GIVE_UP_MS;
        while (!client.is_over) {
            assert_true(rig_now_ms() < end);
            if (pings) {
                frame_put(&out, NGHTTP2_PING, 0, 0, "12345678", 8);
                (void)hand_send(&client, &on, &out);
            }
            (void)loop_turn(on.loop, 1);
            raw_pump(&client);
        }
        assert_int_equal(hand_goaway(&client), NGHTTP2_NO_ERROR);
        raw_close(&client);
        buf_fini(&out);
        RIG_UNTIL(&on, http_server_connections(on.server) == 0);
        rig_fini(&on);
    }
}

/* One that was of use may rest for longer. */
static void test_connections_with_a_request_may_rest(void **state)
{
    (void)state;
    rig on;
    raw used, silent;
    buf out, other;
    http_server_limits limits = http_server_default_limits;
    limits.head_timeout_ms = 20;
    rig_init(&on, &limits);
    hand_open(&used, &on, &out);
    put_get(&out, 1);
    assert_true(hand_send(&used, &on, &out));
    RIG_UNTIL(&on, on.pending_count == 1);
    rig_reply(on.pending[0], 200, STR(""));
    RIG_UNTIL(&on, on.complete == 1);
    for (int i = 0; i < 3; i++) {
        hand_open(&silent, &on, &other);
        (void)until_goaway(&silent, &on, &other);
    }
    put_get(&out, 3);
    assert_true(hand_send(&used, &on, &out));
    RIG_UNTIL(&on, on.pending_count == 1);
    raw_close(&used);
    buf_fini(&out);
    RIG_UNTIL(&on, on.cut == 1);
    rig_fini(&on);
}

static void test_what_never_comes(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.head_timeout_ms = 30;
    limits.body_timeout_ms = 30;
    rig_init(&on, &limits);
    /* SETTINGS. */
    raw_open(&client, &on);
    buf_init(&out, 1000);
    buf_lit(&out, MAGIC);
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_SETTINGS_TIMEOUT);
    /* The rest of a preface. */
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "PRI * HTTP/2.0\r\n\r\nSM"));
    raw_until(&client, &on, "HTTP/1.1 408 ");
    raw_until(&client, &on, NULL);
    raw_close(&client);
    /* The rest of a head. */
    hand_open(&client, &on, &out);
    frame_put(&out, NGHTTP2_HEADERS, 0, 1, HPACK_GET, sizeof(HPACK_GET) - 1);
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_ENHANCE_YOUR_CALM);
    /* A body: its stream alone ends. */
    hand_open(&client, &on, &out);
    frame_put(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, HPACK_GET, sizeof(HPACK_GET) - 1);
    assert_true(hand_send(&client, &on, &out));
    RIG_UNTIL(&on, (raw_pump(&client), hand_frames(&client, NGHTTP2_RST_STREAM, 1) == 1));
    assert_true(raw_has(&client, "took too long"));
    assert_false(client.is_over);
    put_get(&out, 3);
    assert_true(hand_send(&client, &on, &out));
    RIG_UNTIL(&on, on.pending_count == 1);
    raw_close(&client);
    buf_fini(&out);
    RIG_UNTIL(&on, on.cut == 1);
    rig_fini(&on);
}

static void test_streams_never_read(void **state)
{
    (void)state;
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.write_timeout_ms = 40;
    limits.stream_high_bytes = 1000;
    limits.stream_max_bytes = 5000;
    rig_init(&on, &limits);
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    peer_open_with(&client, &on, &window, 1, true);
    peer_stream *full = peer_get(&client, "/stream");
    peer_stream *stalled = peer_get(&client, "/stream");
    peer_stream *whole = peer_get(&client, "/info");
    PEER_UNTIL(&client, &on, on.pending_count == 2 && full->has_head && stalled->has_head);
    static char bytes[3000];
    http_exchange *first = on.pending[0];
    assert_int_equal(http_stream_write(first, (bay_str){bytes, 3000}), BAY_ERR_AGAIN);
    assert_int_equal(http_stream_write(first, (bay_str){bytes, 3000}), BAY_ERR_CLOSED);
    assert_int_equal(http_stream_write(first, (bay_str){bytes, 1}), BAY_ERR_CLOSED);
    assert_int_equal(http_stream_write(on.pending[1], (bay_str){bytes, 1}), BAY_OK);
    PEER_UNTIL(&client, &on, full->is_closed && stalled->is_closed && whole->is_closed);
    assert_int_equal(full->code, NGHTTP2_CANCEL);
    assert_int_equal(stalled->code, NGHTTP2_CANCEL);
    assert_int_equal(whole->code, NGHTTP2_CANCEL);
    assert_int_equal(on.cut, 3);
    assert_false(client.raw.is_over);
    peer_close(&client);
    rig_fini(&on);
}

static void test_peer_that_went_silent(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.write_timeout_ms = 60;
    rig_init(&on, &limits);
    hand_open(&client, &on, &out);
    put_get(&out, 1);
    assert_true(hand_send(&client, &on, &out));
    RIG_UNTIL(&on, on.pending_count == 1);
    RIG_UNTIL(&on, on.cut == 1);
    raw_until(&client, &on, NULL);
    assert_int_equal(hand_frames(&client, NGHTTP2_PING, 0), 1);
    raw_close(&client);
    buf_fini(&out);
    rig_fini(&on);
}

static void test_connection_never_read(void **state)
{
    (void)state;
    rig on;
    raw client;
    buf out;
    http_server_limits limits = http_server_default_limits;
    limits.write_timeout_ms = 100;
    rig_init(&on, &limits);
    hand_open(&client, &on, &out);
    frame_put(&out, NGHTTP2_SETTINGS, 0, 0, "\0\x04\x7f\xff\xff\xff", 6);
    frame_put(&out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x3f\xff\xff\xff", 4);
    for (uint32_t i = 0; i < 20; i++) {
        put_get(&out, 2 * i + 1);
    }
    assert_true(hand_send(&client, &on, &out));
    RIG_UNTIL(&on, on.pending_count == 20);
    char *bytes = calloc(1, 4 * 1024 * 1024);
    while (on.pending_count > 0) {
        http_exchange *exchange = on.pending[0];
        rig_forget(&on, exchange);
        rig_reply(exchange, 200, (bay_str){bytes, 4 * 1024 * 1024});
    }
    RIG_UNTIL(&on, on.complete + on.cut == 20);
    assert_true(on.cut > 0);
    assert_int_equal(http_server_connections(on.server), 0);
    free(bytes);
    raw_close(&client);
    buf_fini(&out);
    rig_fini(&on);
}

/* --- frames that are none --------------------------------------------------------------------- */

static void test_broken_frames(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, flags;
        uint32_t id;
        const char *at;
        size_t len;
        int64_t code; /* -1: any, but the connection ends */
    } cases[] = {
        {NGHTTP2_PING, 0, 0, "1234", 4, NGHTTP2_FRAME_SIZE_ERROR},
        {NGHTTP2_PING, 0, 1, "12345678", 8, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_SETTINGS, 0, 0, "\0\x04\xff\xff\xff\xff", 6, NGHTTP2_FLOW_CONTROL_ERROR},
        {NGHTTP2_SETTINGS, 0, 0, "\0\x05\0\0\0\x01", 6, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_DATA, 0, 0, "x", 1, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_DATA, 0, 1, "x", 1, -1}, /* of a stream that is not open */
        {NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2, HPACK_GET, 6, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6,
         NGHTTP2_COMPRESSION_ERROR},
        {NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\xbf", 1, NGHTTP2_COMPRESSION_ERROR},
        {NGHTTP2_CONTINUATION, 0, 1, "x", 1, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_PRIORITY, 0, 0, "\0\0\0\0\x01", 5, NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, "\0\0\0\x02\x82", 5,
         NGHTTP2_PROTOCOL_ERROR},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig on;
        raw client;
        buf out;
        rig_init(&on, NULL);
        hand_open(&client, &on, &out);
        frame_put(&out, cases[i].type, cases[i].flags, cases[i].id, cases[i].at, cases[i].len);
        int64_t code = until_goaway(&client, &on, &out);
        if (code != cases[i].code && !(cases[i].code == -1 && code > 0)) {
            fail_msg("case %zu: %lld", i, (long long)code);
        }
        assert_int_equal(on.requests, 0);
        rig_fini(&on);
    }
    /* Longer than was agreed; no SETTINGS first. */
    rig on;
    raw client;
    buf out;
    rig_init(&on, NULL);
    hand_open(&client, &on, &out);
    buf_append(&out, "\xff\xff\xff\0\0\0\0\0\x01", 9);
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_FRAME_SIZE_ERROR);
    raw_open(&client, &on);
    buf_init(&out, 1000);
    buf_lit(&out, MAGIC);
    put_get(&out, 1);
    assert_int_equal(until_goaway(&client, &on, &out), NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(on.requests, 0);
    rig_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rapid_reset),
        cmocka_unit_test(test_made_to_reset),
        cmocka_unit_test(test_floods_of_frames_that_change_nothing),
        cmocka_unit_test(test_floods_of_frames_that_nobody_sees),
        cmocka_unit_test(test_floods_of_closed_streams),
        cmocka_unit_test(test_a_body_of_framing),
        cmocka_unit_test(test_bodies_of_framing),
        cmocka_unit_test(test_small_bodies_are_fine),
        cmocka_unit_test(test_pings_beside_work_are_fine),
        cmocka_unit_test(test_heads_too_large),
        cmocka_unit_test(test_bodies_too_large),
        cmocka_unit_test(test_too_many_streams),
        cmocka_unit_test(test_a_connection_that_is_ended_is_one_line_in_the_log),
        cmocka_unit_test(test_connections_without_a_request),
        cmocka_unit_test(test_connections_with_a_request_may_rest),
        cmocka_unit_test(test_what_never_comes),
        cmocka_unit_test(test_streams_never_read),
        cmocka_unit_test(test_peer_that_went_silent),
        cmocka_unit_test(test_connection_never_read),
        cmocka_unit_test(test_broken_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
