/* HTTP/2 as clients that mean well speak it: streams are exchanges. */
#include "http2_rig.h"

#include "../../support/failing_memory.h"
#include "http/http2.h"

/* --- requests --------------------------------------------------------------------------------- */

static void test_first_bytes_that_are_almost_it(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    raw client;
    raw_whole(&client, &on, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r!");
    assert_true(raw_starts(&client, "HTTP/1.1 505 ") || raw_starts(&client, "HTTP/1.1 400 "));
    raw_close(&client);

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "P"));
    (void)loop_turn(on.loop, 1);
    assert_true(
        raw_say(&client, &on, "OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"));
    raw_until(&client, &on, "\r\n\r\nhi");
    assert_true(raw_say(&client, &on, MAGIC)); /* too late for it */
    raw_until(&client, &on, NULL);
    assert_true(raw_has(&client, "HTTP/1.1 505 ") || raw_has(&client, "HTTP/1.1 400 "));
    raw_close(&client);
    assert_int_equal(on.requests, 1);
    rig_fini(&on);
}

static void test_reply(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    bay_str body = STR("hello");
    const http_field twice[] = {{STR("x-twice"), STR("1")}, {STR("x-twice"), STR("2")}};
    peer_stream *echo = peer_ask(&client, "POST", "/echo", NULL, 0, &body);
    peer_stream *info = peer_ask(&client, "GET", "/info?a=b", twice, 2, NULL);
    PEER_UNTIL(&client, &on, echo->is_closed && info->is_closed);
    assert_string_equal(echo->status, "200");
    assert_int_equal(echo->code, 0);
    assert_true(str_eq(buf_view(&echo->body), STR("hello")));
    assert_true(buf_has(&echo->head, "content-length: 5\n"));
    assert_true(buf_has(&echo->head, "content-type: text/plain\n"));
    assert_true(buf_has(&echo->head, "date: "));
    assert_true(
        str_eq(buf_view(&info->body), STR("GET /info ?a=b host=a.example:1 peer=127.0.0.1 x=2")));
    assert_int_equal(on.complete, 2);
    peer_close(&client);
    rig_fini(&on);
}

static void on_cookie(void *user, http_exchange *exchange)
{
    rig *self = user;
    self->requests++;
    assert_true(http_exchange_is_http2(exchange));
    assert_int_equal(http_exchange_field_count(exchange, STR("Cookie")), 1);
    assert_true(str_eq(http_exchange_field(exchange, STR("Cookie")), STR("a=1; b=2; c=3")));
    assert_true(str_eq(http_exchange_field(exchange, STR("host")), STR("a.example:1")));
    assert_true(str_eq(http_exchange_field(exchange, STR("x-after")), STR("yes")));
    assert_true(str_eq(http_exchange_method(exchange), STR("GET")));
    assert_null(http_exchange_query(exchange).at);
    size_t count = 0;
    (void)http_exchange_fields(exchange, &count);
    assert_int_equal(count, 3); /* host, x-after, cookie */
    http_exchange_reply(exchange, 200, NULL, 0, STR(""));
}

static void test_cookie_crumbs_are_joined(void **state)
{
    (void)state;
    static const http_handler handler = {
        .request = on_cookie, .closed = rig_closed, .drained = rig_on_drained};
    rig on = {0};
    peer client;
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = &on};
    assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
    assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    peer_open(&client, &on);
    const http_field fields[] = {{STR("cookie"), STR("a=1")},
                                 {STR("cookie"), STR("b=2")},
                                 {STR("x-after"), STR("yes")},
                                 {STR("cookie"), STR("c=3")}};
    peer_stream *stream = peer_ask(&client, "GET", "/", fields, 4, NULL);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_string_equal(stream->status, "200");
    assert_int_equal(stream->frames, 1); /* one HEADERS that ends the stream */
    assert_true(stream->is_end);
    assert_false(buf_has(&stream->head, "content-length"));
    peer_close(&client);
    rig_fini(&on);
}

static void test_what_is_no_request(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    const http_field host = {STR("host"), STR("b.example")};
    const http_field expect = {STR("expect"), STR("a cake")};
    bay_str body = STR("x");
    peer_stream *no_path = peer_ask(&client, "GET", "info", NULL, 0, NULL);
    peer_stream *lower = peer_ask(&client, "GE:T", "/info", NULL, 0, NULL);
    peer_stream *escape = peer_ask(&client, "GET", "/%zz", NULL, 0, NULL);
    peer_stream *hosts = peer_ask(&client, "GET", "/info", &host, 1, NULL);
    peer_stream *cake = peer_ask(&client, "POST", "/echo", &expect, 1, &body);
    PEER_UNTIL(&client, &on,
               no_path->is_closed && lower->is_closed && escape->is_closed && hosts->is_closed &&
                   cake->is_closed);
    assert_true(no_path->code != 0 || strcmp(no_path->status, "400") == 0);
    assert_true(lower->code != 0 || strcmp(lower->status, "400") == 0);
    assert_string_equal(escape->status, "400");
    assert_string_equal(hosts->status, "400");
    assert_string_equal(cake->status, "417");
    peer_stream *fine = peer_get(&client, "/info");
    PEER_UNTIL(&client, &on, fine->is_closed);
    assert_string_equal(fine->status, "200");
    assert_int_equal(on.requests, 1);
    peer_close(&client);
    rig_fini(&on);
}

static void test_continue(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    const http_field expect = {STR("expect"), STR("100-continue")};
    bay_str body = STR("later");
    peer_stream *stream = peer_ask(&client, "POST", "/echo", &expect, 1, &body);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_string_equal(stream->status, "200");
    assert_int_equal(stream->frames, 3); /* 100, 200, the body */
    peer_close(&client);
    rig_fini(&on);
}

static void test_large_bodies_both_ways(void **state)
{
    (void)state;
    enum { LEN = 3 * 1024 * 1024 };
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    char *bytes = malloc(LEN);
    for (size_t i = 0; i < LEN; i++) {
        bytes[i] = (char)(i * 31 % 251);
    }
    bay_str first = {bytes, LEN};
    bay_str second = {bytes, LEN};
    peer_stream *one = peer_ask(&client, "POST", "/echo", NULL, 0, &first);
    peer_stream *two = peer_ask(&client, "POST", "/deferred", NULL, 0, &second);
    PEER_UNTIL(&client, &on, one->is_closed && two->is_closed);
    assert_int_equal(one->body.len, LEN);
    assert_int_equal(two->body.len, LEN);
    assert_memory_equal(one->body.at, bytes, LEN);
    assert_memory_equal(two->body.at, bytes, LEN);
    free(bytes);
    peer_close(&client);
    rig_fini(&on);
}

static void test_many_streams_answered_in_any_order(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    for (int i = 0; i < 60; i++) {
        (void)peer_get(&client, "/wait");
    }
    PEER_UNTIL(&client, &on, on.pending_count == 60);
    while (on.pending_count > 0) {
        http_exchange *exchange = on.pending[on.pending_count * 7 % 60 % on.pending_count];
        http_exchange_reply(exchange, 200, NULL, 0, STR("here"));
        http_exchange_reply(exchange, 500, NULL, 0, STR("twice")); /* nothing happens */
        rig_forget(&on, exchange);
    }
    PEER_UNTIL(&client, &on, on.complete == 60);
    for (size_t i = 0; i < client.count; i++) {
        PEER_UNTIL(&client, &on, client.streams[i].is_closed);
        assert_true(str_eq(buf_view(&client.streams[i].body), STR("here")));
    }
    peer_close(&client);
    rig_fini(&on);
}

static void test_replies_without_a_body(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    peer_stream *nothing = peer_get(&client, "/nothing");
    peer_stream *head = peer_ask(&client, "HEAD", "/info", NULL, 0, NULL);
    peer_stream *events = peer_ask(&client, "HEAD", "/events", NULL, 0, NULL);
    peer_stream *inject = peer_get(&client, "/inject");
    peer_stream *framing = peer_get(&client, "/framing");
    PEER_UNTIL(&client, &on, on.complete == 5);
    PEER_UNTIL(&client, &on, framing->is_closed && inject->is_closed && events->is_closed);
    assert_string_equal(nothing->status, "204");
    assert_int_equal(nothing->frames, 1);
    assert_string_equal(head->status, "200");
    assert_true(buf_has(&head->head, "content-length: "));
    assert_int_equal(head->body.len, 0);
    assert_int_equal(events->body.len, 0);
    assert_string_equal(inject->status, "500");
    assert_false(buf_has(&inject->head, "set-cookie"));
    assert_true(buf_has(&framing->head, "content-length: 12\n"));
    assert_true(buf_has(&framing->head, "x-kept: yes\n"));
    assert_false(buf_has(&framing->head, "transfer-encoding"));
    peer_close(&client);
    rig_fini(&on);
}

/* --- streams ---------------------------------------------------------------------------------- */

static http_exchange *stream_exchange(rig *on, peer *client, peer_stream **out)
{
    size_t before = on->pending_count;
    *out = peer_get(client, "/stream");
    PEER_UNTIL(client, on, on->pending_count > before && (*out)->has_head);
    return on->pending[on->pending_count - 1];
}

static void test_stream_with_trailers(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    peer_stream *stream = NULL;
    http_exchange *exchange = stream_exchange(&on, &client, &stream);
    assert_null(http_exchange_arena(exchange));
    assert_int_equal(http_stream_write(exchange, STR("one")), BAY_OK);
    PEER_UNTIL(&client, &on, stream->body.len == 3);
    assert_int_equal(http_stream_write(exchange, STR("two")), BAY_OK);
    const http_field trailers[] = {{STR("Grpc-Status"), STR("0")},
                                   {STR("grpc-message"), STR("fine")}};
    http_stream_end_with(exchange, trailers, 2);
    assert_int_equal(http_stream_write(exchange, STR("late")), BAY_ERR_CLOSED);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_int_equal(stream->code, 0);
    assert_true(str_eq(buf_view(&stream->body), STR("onetwo")));
    assert_true(str_eq(buf_view(&stream->trailers), STR("grpc-status: 0\ngrpc-message: fine\n")));

    /* All in one turn: three frames. Nothing at all but trailers: two. */
    stream = peer_get(&client, "/events");
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_true(str_eq(buf_view(&stream->body), STR("onetwo!")));
    assert_int_equal(stream->trailers.len, 0);
    exchange = stream_exchange(&on, &client, &stream);
    http_stream_end_with(exchange, trailers, 1);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_int_equal(stream->frames, 2);
    assert_true(str_eq(buf_view(&stream->trailers), STR("grpc-status: 0\n")));
    assert_int_equal(on.complete, 3);

    exchange = stream_exchange(&on, &client, &stream);
    const http_field evil = {STR("x"), STR("a\nb")};
    http_stream_end_with(exchange, &evil, 1);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_int_not_equal(stream->code, 0);
    assert_int_equal(on.cut, 1);
    peer_close(&client);
    rig_fini(&on);
}

static void test_trailers_mean_nothing_to_http1(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    assert_false(http_exchange_is_http2(on.pending[0]));
    const http_field trailer = {STR("x-t"), STR("1")};
    assert_int_equal(http_stream_write(on.pending[0], STR("hi")), BAY_OK);
    http_stream_end_with(on.pending[0], &trailer, 1);
    raw_until(&client, &on, "0\r\n\r\n");
    assert_false(raw_has(&client, "x-t"));
    raw_close(&client);
    RIG_UNTIL(&on, on.complete == 1);
    rig_fini(&on);
}

static void test_back_pressure(void **state)
{
    (void)state;
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.stream_high_bytes = 10000;
    rig_init(&on, &limits);
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000};
    peer_open_with(&client, &on, &window, 1, true);
    peer_stream *slow = NULL;
    http_exchange *exchange = stream_exchange(&on, &client, &slow);
    char bytes[4000];
    memset(bytes, 'x', sizeof(bytes));
    size_t written = 0;
    bay_err err = BAY_OK;
    while (err == BAY_OK) {
        err = http_stream_write(exchange, (bay_str){bytes, sizeof(bytes)});
        written += sizeof(bytes);
        PEER_UNTIL(&client, &on, slow->body.len >= 1000);
    }
    assert_int_equal(err, BAY_ERR_AGAIN);
    assert_int_equal(slow->body.len, 1000);
    assert_int_equal(on.drained, 0);
    /* Another stream of the connection does not wait for it. */
    peer_stream *other = peer_get(&client, "/info");
    PEER_UNTIL(&client, &on, other->is_closed);
    while (slow->body.len < written) {
        size_t before = slow->body.len;
        assert_int_equal(nghttp2_session_consume(client.session, slow->id, 1000), 0);
        PEER_UNTIL(&client, &on, slow->body.len >= before + 1000 || slow->body.len == written);
    }
    assert_int_equal(on.drained, 1);
    http_stream_end(exchange);
    assert_int_equal(nghttp2_session_consume(client.session, slow->id, 1000), 0);
    PEER_UNTIL(&client, &on, slow->is_closed);
    assert_int_equal(on.complete, 2);
    peer_close(&client);
    rig_fini(&on);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void test_reset_by_the_client(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    peer_stream *stream = NULL;
    http_exchange *exchange = stream_exchange(&on, &client, &stream);
    (void)nghttp2_submit_rst_stream(client.session, 0, stream->id, NGHTTP2_CANCEL);
    PEER_UNTIL(&client, &on, on.cut == 1);
    (void)exchange;
    stream = peer_get(&client, "/wait");
    PEER_UNTIL(&client, &on, on.pending_count == 1);
    (void)nghttp2_submit_rst_stream(client.session, 0, stream->id, NGHTTP2_CANCEL);
    PEER_UNTIL(&client, &on, on.cut == 2);
    stream = peer_get(&client, "/abort");
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_int_equal(stream->code, NGHTTP2_CANCEL);
    assert_int_equal(on.cut, 3);
    stream = peer_get(&client, "/info"); /* the connection is as good as ever */
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_string_equal(stream->status, "200");
    peer_close(&client);
    rig_fini(&on);
}

static void test_connection_lost(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    for (int i = 0; i < 5; i++) {
        (void)peer_get(&client, i % 2 == 0 ? "/wait" : "/stream");
    }
    PEER_UNTIL(&client, &on, on.pending_count == 5);
    peer_close(&client);
    RIG_UNTIL(&on, on.cut == 5);
    assert_int_equal(http_server_connections(on.server), 0);
    rig_fini(&on);
}

static void test_server_freed_by_its_handler(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    (void)peer_get(&client, "/wait");
    (void)peer_get(&client, "/free");
    (void)peer_get(&client, "/wait");
    PEER_UNTIL(&client, &on, client.raw.is_over);
    assert_null(on.server);
    assert_int_equal(on.requests, 2);
    assert_int_equal(on.cut, 2);
    peer_close(&client);
    rig_fini(&on);
}

static void test_drain(void **state)
{
    (void)state;
    rig on;
    peer client;
    peer idle;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    peer_open(&idle, &on);
    peer_stream *done = peer_get(&idle, "/info");
    PEER_UNTIL(&idle, &on, done->is_closed);
    peer_stream *waits = peer_get(&client, "/wait");
    PEER_UNTIL(&client, &on, on.pending_count == 1);
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    PEER_UNTIL(&idle, &on, idle.raw.is_over);
    assert_true(idle.goaways >= 1);
    assert_int_equal(idle.goaway, NGHTTP2_NO_ERROR);
    assert_false(on.is_drained);
    rig_reply(on.pending[0], 200, STR("still"));
    PEER_UNTIL(&client, &on, client.raw.is_over);
    assert_string_equal(waits->status, "200");
    assert_true(str_eq(buf_view(&waits->body), STR("still")));
    RIG_UNTIL(&on, on.is_drained);
    peer_close(&client);
    peer_close(&idle);
    assert_int_equal(on.complete, 2);
    rig_fini(&on);
}

/* A stream that is quiet for long: its peer is asked now and then, and answers. */
static void test_quiet_stream_is_kept(void **state)
{
    (void)state;
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.write_timeout_ms = 600;
    rig_init(&on, &limits);
    peer_open(&client, &on);
    peer_stream *stream = NULL;
    http_exchange *exchange = stream_exchange(&on, &client, &stream);
    PEER_UNTIL(&client, &on, client.pongs >= 4);
    assert_int_equal(on.cut, 0);
    http_stream_end(exchange);
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_int_equal(on.complete, 1);
    peer_close(&client);
    rig_fini(&on);
}

static void test_idle_connection_ends(void **state)
{
    (void)state;
    rig on;
    peer client;
    http_server_limits limits = http_server_default_limits;
    limits.idle_timeout_ms = 30;
    rig_init(&on, &limits);
    peer_open(&client, &on);
    peer_stream *stream = peer_get(&client, "/info");
    PEER_UNTIL(&client, &on, client.raw.is_over);
    assert_string_equal(stream->status, "200");
    assert_int_equal(client.goaways, 1);
    peer_close(&client);
    rig_fini(&on);
}

/* --- at any split, with any lack of memory ---------------------------------------------------- */

static void test_split_at_every_byte(void **state)
{
    (void)state;
    rig on;
    peer client;
    rig_init(&on, NULL);
    peer_open(&client, &on);
    bay_str body = STR("in pieces");
    peer_stream *stream = peer_ask(&client, "POST", "/echo", NULL, 0, &body);
    for (;;) {
        const uint8_t *at = NULL;
        ssize_t len = nghttp2_session_mem_send(client.session, &at);
        if (len <= 0) {
            break;
        }
        for (ssize_t i = 0; i < len; i++) {
            assert_true(raw_send(&client.raw, &on, (const char *)at + i, 1));
            (void)loop_turn(on.loop, 0);
        }
    }
    PEER_UNTIL(&client, &on, stream->is_closed);
    assert_true(str_eq(buf_view(&stream->body), STR("in pieces")));
    peer_close(&client);
    rig_fini(&on);
}

static void memory_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    self->requests++;
    if (str_eq(http_exchange_method(exchange), STR("POST"))) {
        rig_reply(exchange, 200, http_exchange_body(exchange));
        return;
    }
    const http_field trailer = {STR("x-end"), STR("1")};
    if (http_stream_open(exchange, 200, NULL, 0, true) != BAY_OK) {
        http_exchange_abort(exchange);
    } else if (http_stream_write(exchange, STR("one")) != BAY_ERR_CLOSED) {
        http_stream_end_with(exchange, &trailer, 1);
    }
}

static const http_handler memory_handler = {
    .request = memory_request, .closed = rig_closed, .drained = rig_on_drained};

/* What a client says, made while there is memory. */
static char memory_script[4096];
static size_t memory_script_len;

static void memory_body(void)
{
    rig on;
    memset(&on, 0, sizeof(on));
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &memory_handler, .user = &on};
    if (loop_new(&on.loop) != BAY_OK) {
        return;
    }
    if (http_server_new(on.loop, &options, &on.server) != BAY_OK ||
        http_server_listen(on.server, STR("127.0.0.1:0"), NULL) != BAY_OK) {
        http_server_free(on.server);
        loop_free(on.loop);
        return;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(on.server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, memory_script, memory_script_len, MSG_NOSIGNAL),
                     (ssize_t)memory_script_len);
    for (int i = 0; i < 30; i++) {
        (void)loop_turn(on.loop, 0);
    }
    close(fd);
    for (int i = 0; i < 30 && http_server_connections(on.server) > 0; i++) {
        (void)loop_turn(on.loop, 1);
    }
    http_server_free(on.server);
    assert_int_equal(on.requests, on.complete + on.cut);
    loop_free(on.loop);
}

static void test_every_lack_of_memory(void **state)
{
    (void)state;
    peer client = {0};
    peer_begin(&client, NULL, 0, false);
    bay_str body = STR("some body");
    const http_field fields[] = {{STR("cookie"), STR("a=1")}, {STR("cookie"), STR("b=2")}};
    (void)peer_ask(&client, "POST", "/echo", fields, 2, &body);
    (void)peer_get(&client, "/events");
    for (;;) {
        const uint8_t *at = NULL;
        ssize_t len = nghttp2_session_mem_send(client.session, &at);
        if (len <= 0) {
            break;
        }
        memcpy(memory_script + memory_script_len, at, (size_t)len);
        memory_script_len += (size_t)len;
    }
    client.raw.fd = -1;
    buf_init(&client.raw.got, 1);
    peer_close(&client);
    size_t rounds = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        memory_body();
        failing_memory_check();
        rounds++;
    }
    assert_true(rounds > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_bytes_that_are_almost_it),
        cmocka_unit_test(test_what_is_no_request),
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_cookie_crumbs_are_joined),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_large_bodies_both_ways),
        cmocka_unit_test(test_many_streams_answered_in_any_order),
        cmocka_unit_test(test_replies_without_a_body),
        cmocka_unit_test(test_stream_with_trailers),
        cmocka_unit_test(test_trailers_mean_nothing_to_http1),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_reset_by_the_client),
        cmocka_unit_test(test_connection_lost),
        cmocka_unit_test(test_server_freed_by_its_handler),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_quiet_stream_is_kept),
        cmocka_unit_test(test_idle_connection_ends),
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
