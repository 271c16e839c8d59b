/* Calls over HTTP/2, against our own server and against peers that do not mean well. */
#include "http2_rig.h"

#include "../../support/failing_memory.h"
#include "http/http2.h"
#include "http/http_client.h"
#include "net/reply_room.h"

typedef struct answer {
    http_call *call;
    http_client *client;
    buf body;
    buf trailers;
    size_t body_bytes;
    int status;
    int heads;
    int ends;
    int failures;
    bay_err err;
    bool was_sent;
    bool pauses;
    bool frees;
    char text[200];
} answer;

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    answer *self = user;
    (void)fields;
    (void)count;
    self->heads++;
    self->status = status;
    if (self->pauses) {
        http_call_pause(self->call);
    }
    if (self->frees) {
        http_client_free(self->client);
    }
}

static void on_body(void *user, bay_str bytes)
{
    answer *self = user;
    assert_int_equal(self->heads, 1);
    self->body_bytes += bytes.len;
    if (self->body.len < 4096) {
        buf_str(&self->body, str_head(bytes, 4096));
    }
    if (self->pauses) {
        http_call_pause(self->call);
    }
}

static void on_trailers(void *user, const http_field *fields, size_t count)
{
    answer *self = user;
    assert_int_equal(self->ends, 0);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&self->trailers, "%.*s=%.*s;", BAY_STR(fields[i].name),
                   BAY_STR(fields[i].value));
    }
}

static void on_end(void *user)
{
    answer *self = user;
    self->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    answer *self = user;
    self->failures++;
    self->err = err;
    self->was_sent = was_sent;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed, .trailers = on_trailers};

static http_client *client_of(rig *on, const http_client_limits *limits)
{
    http_client *client = NULL;
    http_client_options options = {.limits = limits != NULL ? *limits : http_client_default_limits};
    assert_int_equal(http_client_new(on->loop, &options, &client), BAY_OK);
    return client;
}

static void answer_init(answer *self, http_client *client)
{
    memset(self, 0, sizeof(*self));
    self->client = client;
    buf_init(&self->body, SIZE_MAX / 2);
    buf_init(&self->trailers, SIZE_MAX / 2);
}

static void answer_fini(answer *self)
{
    assert_true(self->ends + self->failures <= 1);
    buf_fini(&self->body);
    buf_fini(&self->trailers);
}

static bool is_over(const answer *self)
{
    return self->ends + self->failures > 0;
}

static bay_err try_ask(answer *self, uint16_t port, const char *path, http_call_spec spec)
{
    char url[100];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
    spec.method = spec.method.at == NULL ? STR("POST") : spec.method;
    spec.url = str_of(url);
    spec.is_http2 = true;
    bay_diag diag;
    return http_client_call(self->client, &spec, &events, self, &self->call, &diag);
}

static void ask(answer *self, rig *on, const char *path, http_call_spec spec)
{
    assert_int_equal(try_ask(self, http_server_port(on->server), path, spec), BAY_OK);
    assert_int_equal(self->ends + self->failures + self->heads, 0);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void test_call(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer one;
    answer two;
    answer_init(&one, client);
    answer_init(&two, client);
    ask(&one, &on, "/echo?x", (http_call_spec){.body = STR("over HTTP/2")});
    const http_field fields[] = {{STR("X-Twice"), STR("1")}, {STR("Connection"), STR("close")}};
    ask(&two, &on, "/info?q",
        (http_call_spec){.method = STR("GET"), .fields = fields, .field_count = 2});
    RIG_UNTIL(&on, is_over(&one) && is_over(&two));
    assert_int_equal(one.ends + two.ends, 2);
    assert_int_equal(one.status, 200);
    assert_true(str_eq(buf_view(&one.body), STR("over HTTP/2")));
    char info[100];
    snprintf(info, sizeof(info), "GET /info ?q host=127.0.0.1:%u peer=127.0.0.1 x=1",
             http_server_port(on.server));
    assert_true(str_eq(buf_view(&two.body), str_of(info)));
    assert_int_equal(http_server_connections(on.server), 1);
    http_field evil = {STR("X"), STR("a\r\nb")};
    answer bad;
    answer_init(&bad, client);
    assert_int_equal(try_ask(&bad, 1, "/", (http_call_spec){.fields = &evil, .field_count = 1}),
                     BAY_ERR_INVALID);
    answer_fini(&bad);
    answer_fini(&one);
    answer_fini(&two);
    http_client_free(client);
    rig_fini(&on);
}

static void test_trailers_come_before_the_end(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer out;
    answer_init(&out, client);
    ask(&out, &on, "/stream", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, on.pending_count == 1);
    assert_int_equal(http_stream_write(on.pending[0], STR("part")), BAY_OK);
    RIG_UNTIL(&on, out.body.len == 4);
    const http_field trailers[] = {{STR("grpc-status"), STR("5")}, {STR("x"), STR("")}};
    http_stream_end_with(on.pending[0], trailers, 2);
    RIG_UNTIL(&on, is_over(&out));
    assert_int_equal(out.ends, 1);
    assert_true(str_eq(buf_view(&out.trailers), STR("grpc-status=5;x=;")));
    answer_fini(&out);
    http_client_free(client);
    rig_fini(&on);
}

static void test_many_calls_on_few_connections(void **state)
{
    (void)state;
    enum { CALLS = 700 };
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    static answer all[CALLS];
    for (int i = 0; i < CALLS; i++) {
        answer_init(&all[i], client);
        ask(&all[i], &on, "/echo", (http_call_spec){.body = STR("one of many")});
    }
    for (int i = 0; i < CALLS; i++) {
        RIG_UNTIL(&on, is_over(&all[i]));
        assert_int_equal(all[i].ends, 1);
        assert_true(str_eq(buf_view(&all[i].body), STR("one of many")));
        answer_fini(&all[i]);
    }
    assert_in_range(http_server_connections(on.server), 1, 4);
    assert_int_equal(on.requests, CALLS);
    http_client_free(client);
    rig_fini(&on);
}

static void test_refused_streams_go_out_again(void **state)
{
    (void)state;
    rig on;
    http_server_limits limits = http_server_default_limits;
    limits.streams = 3;
    rig_init(&on, &limits);
    http_client_limits few = http_client_default_limits;
    few.http2_connections = 1;
    http_client *client = client_of(&on, &few);
    answer all[30];
    for (int i = 0; i < 30; i++) {
        answer_init(&all[i], client);
        ask(&all[i], &on, "/echo", (http_call_spec){.body = STR("x")}); /* its limit is not known */
    }
    for (int i = 0; i < 30; i++) {
        RIG_UNTIL(&on, is_over(&all[i]));
        assert_int_equal(all[i].ends, 1);
        answer_fini(&all[i]);
    }
    assert_int_equal(on.requests, 30);
    assert_int_equal(http_server_connections(on.server), 1);
    http_client_free(client);
    rig_fini(&on);
}

static void test_back_pressure_of_one_call(void **state)
{
    (void)state;
    enum { LEN = 3 * 1024 * 1024 };
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    char *bytes = calloc(1, LEN);
    answer slow;
    answer quick;
    answer_init(&slow, client);
    answer_init(&quick, client);
    slow.pauses = true;
    ask(&slow, &on, "/echo", (http_call_spec){.body = {bytes, LEN}});
    RIG_UNTIL(&on, slow.heads == 1);
    assert_int_equal(slow.body_bytes, 0);
    ask(&quick, &on, "/echo", (http_call_spec){.body = {bytes, LEN}});
    RIG_UNTIL(&on, is_over(&quick));
    assert_int_equal(quick.body_bytes, LEN);
    assert_int_equal(slow.body_bytes, 0);
    int resumed = 0;
    while (!is_over(&slow)) {
        size_t before = slow.body_bytes;
        http_call_resume(slow.call);
        assert_int_equal(slow.body_bytes, before); /* not inside the call */
        RIG_UNTIL(&on, slow.body_bytes > before || is_over(&slow));
        resumed++;
    }
    assert_int_equal(slow.ends, 1);
    assert_int_equal(slow.body_bytes, LEN);
    assert_true(resumed > LEN / HTTP2_STREAM_WINDOW); /* never more than a window at one time */
    free(bytes);
    answer_fini(&slow);
    answer_fini(&quick);
    http_client_free(client);
    rig_fini(&on);
}

/* Large replies on one connection, and no room for all of them: each waits in its own window, a
 * small one among them does not, and all arrive. */
static void test_replies_wait_for_room(void **state)
{
    (void)state;
    enum { LEN = 2 * 1024 * 1024, CALLS = 6, MOST = 1024 * 1024 };
    rig on;
    rig_init(&on, NULL);
    http_client_limits limits = http_client_default_limits;
    limits.reply_bytes = MOST;
    http_client *client = client_of(&on, &limits);
    char *bytes = calloc(1, LEN);
    answer all[CALLS];
    answer small;
    for (size_t i = 0; i < CALLS; i++) {
        answer_init(&all[i], client);
        ask(&all[i], &on, "/wait", (http_call_spec){.method = STR("GET")});
    }
    RIG_UNTIL(&on, on.pending_count == CALLS);
    while (on.pending_count > 0) {
        http_exchange *exchange = on.pending[0];
        rig_forget(&on, exchange);
        rig_reply(exchange, 200, (bay_str){bytes, LEN});
    }
    answer_init(&small, client);
    ask(&small, &on, "/echo", (http_call_spec){.body = STR("small")});
    RIG_UNTIL(&on, is_over(&small));
    assert_int_equal(small.ends, 1);
    size_t most = 0;
    int ended = 0;
    int64_t give_up = rig_now_ms() + RIG_GIVE_UP_MS;
    while (ended < CALLS) {
        size_t under_way = 0;
        ended = 0;
        for (size_t i = 0; i < CALLS; i++) {
            assert_int_equal(all[i].failures, 0);
            ended += all[i].ends;
            under_way += all[i].ends == 0 ? all[i].body_bytes : 0;
        }
        most = under_way > most ? under_way : most;
        assert_true(rig_now_ms() < give_up);
        (void)loop_turn(on.loop, 1);
    }
    assert_in_range(most, 1, LEN + CALLS * 2 * REPLY_ROOM_SMALL);
    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(all[i].body_bytes, LEN);
        answer_fini(&all[i]);
    }
    answer_fini(&small);
    http_client_free(client);
    free(bytes);
    rig_fini(&on);
    assert_int_equal(reply_account_bytes(), 0);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void test_cancel(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer waits;
    answer other;
    answer_init(&waits, client);
    answer_init(&other, client);
    ask(&waits, &on, "/wait", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, on.pending_count == 1);
    http_call_cancel(waits.call);
    RIG_UNTIL(&on, on.cut == 1);
    ask(&other, &on, "/echo", (http_call_spec){.body = STR("x")});
    http_call_cancel(other.call); /* before anything was sent */
    answer_fini(&other);
    answer_init(&other, client);
    ask(&other, &on, "/echo", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, is_over(&other));
    assert_int_equal(other.ends, 1);
    assert_int_equal(waits.ends + waits.failures, 0);
    assert_int_equal(http_server_connections(on.server), 1);
    answer_fini(&waits);
    answer_fini(&other);
    http_client_free(client);
    rig_fini(&on);
}

static void test_time_outs(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer out;
    answer_init(&out, client);
    ask(&out, &on, "/wait", (http_call_spec){.body = STR("x"), .timeout_ms = 20});
    RIG_UNTIL(&on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_TIMEOUT);
    assert_true(out.was_sent);
    RIG_UNTIL(&on, on.cut == 1);
    answer_fini(&out);
    answer_init(&out, client);
    ask(&out, &on, "/stream", (http_call_spec){.body = STR("x"), .idle_ms = 20});
    RIG_UNTIL(&on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_TIMEOUT);
    assert_int_equal(out.heads, 1);
    RIG_UNTIL(&on, on.cut == 2);
    answer_fini(&out);
    http_client_free(client);
    rig_fini(&on);
}

static void test_server_drains(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer waits;
    answer_init(&waits, client);
    ask(&waits, &on, "/wait", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, on.pending_count == 1);
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    for (int i = 0; i < 200; i++) {
        (void)loop_turn(on.loop, 1);
    }
    rig_reply(on.pending[0], 200, STR("still"));
    RIG_UNTIL(&on, is_over(&waits) && on.is_drained);
    assert_int_equal(waits.ends, 1);
    assert_true(str_eq(buf_view(&waits.body), STR("still")));
    answer_fini(&waits);
    http_client_free(client);
    rig_fini(&on);
}

static void test_reply_is_cut(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer out;
    answer_init(&out, client);
    ask(&out, &on, "/stream", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, out.heads == 1);
    http_exchange_abort(on.pending[0]);
    RIG_UNTIL(&on, is_over(&out));
    assert_int_equal(out.failures, 1);
    assert_int_equal(out.err, BAY_ERR_CLOSED);
    assert_true(out.was_sent);
    answer_fini(&out);
    http_client_free(client);
    rig_fini(&on);
}

static void test_client_freed_inside_an_event(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client *client = client_of(&on, NULL);
    answer out[3];
    for (int i = 0; i < 3; i++) {
        answer_init(&out[i], client);
        ask(&out[i], &on, i == 1 ? "/echo" : "/wait", (http_call_spec){.body = STR("x")});
    }
    out[1].frees = true;
    RIG_UNTIL(&on, is_over(&out[0]) && is_over(&out[1]) && is_over(&out[2]));
    assert_int_equal(out[0].err, BAY_ERR_CANCELLED);
    assert_int_equal(out[1].failures, 1);
    RIG_UNTIL(&on, on.complete + on.cut == on.requests);
    for (int i = 0; i < 3; i++) {
        answer_fini(&out[i]);
    }
    rig_fini(&on);
}

static void test_lines_end_when_idle(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_client_limits limits = http_client_default_limits;
    limits.idle_timeout_ms = 20;
    http_client *client = client_of(&on, &limits);
    answer out;
    answer_init(&out, client);
    ask(&out, &on, "/echo", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, is_over(&out));
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    answer_fini(&out);
    answer_init(&out, client);
    ask(&out, &on, "/echo", (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on, is_over(&out));
    assert_int_equal(out.ends, 1);
    answer_fini(&out);
    http_client_free(client);
    rig_fini(&on);
}

/* --- peers that do not mean well -------------------------------------------------------------- */

/* A call and the peer that it goes to; its listener. */
static int meet(rig *on, const http_client_limits *limits, answer *out, raw *other)
{
    assert_int_equal(loop_new(&on->loop), BAY_OK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    answer_init(out, client_of(on, limits));
    assert_int_equal(try_ask(out, ntohs(address.sin_port), "/", (http_call_spec){.body = STR("x")}),
                     BAY_OK);
    *other = (raw){.fd = -1};
    buf_init(&other->got, SIZE_MAX / 2);
    RIG_UNTIL(on, (other->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    raw_until(other, on, "PRI * HTTP/2.0");
    return listener;
}

static void part(rig *on, int listener, answer *out, raw *other)
{
    assert_int_equal(out->failures, 1);
    raw_close(other);
    close(listener);
    http_client_free(out->client);
    loop_free(on->loop);
    answer_fini(out);
}

/* A peer that says `text` to whoever connects, then ends. */
static void against(const char *text, size_t len, const http_client_limits *limits, answer *out)
{
    rig on = {0};
    raw other;
    int listener = meet(&on, limits, out, &other);
    (void)raw_send(&other, &on, text, len);
    shutdown(other.fd, SHUT_WR);
    RIG_UNTIL(&on, is_over(out));
    part(&on, listener, out, &other);
}

static void test_peers_that_do_not_speak_it(void **state)
{
    (void)state;
    answer out;
    static const char http1[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    against(http1, sizeof(http1) - 1, NULL, &out);
    assert_int_equal(out.err, BAY_ERR_PROTOCOL);
    against("", 0, NULL, &out);
    assert_int_equal(out.err, BAY_ERR_CLOSED);

    buf frames;
    buf_init(&frames, SIZE_MAX / 2);
    frame_put(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    for (int i = 0; i < 20000; i++) {
        frame_put(&frames, NGHTTP2_PING, 0, 0, "12345678", 8);
    }
    against(frames.at, frames.len, NULL, &out);
    assert_int_equal(out.err, BAY_ERR_PROTOCOL);

    buf_clear(&frames);
    frame_put(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    frame_put(&frames, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x88", 1);
    frame_put(&frames, NGHTTP2_DATA, 0, 1, "abcdefgh", 8);
    http_client_limits limits = http_client_default_limits;
    against(frames.at, frames.len, &limits, &out);
    assert_int_equal(out.err, BAY_ERR_CLOSED);
    assert_int_equal(out.body_bytes, 8);
    limits.body_bytes = 7;
    against(frames.at, frames.len, &limits, &out);
    assert_int_equal(out.err, BAY_ERR_LIMIT);

    buf_clear(&frames);
    frame_put(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    char head[] =
        "\x88\x00\x01x\x7f\x00"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    frame_put(&frames, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, head, 6 + 127);
    limits = http_client_default_limits;
    limits.head_bytes = 100;
    against(frames.at, frames.len, &limits, &out);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    buf_fini(&frames);
}

/* Turns the loop until its clock has gone on by `ms`. */
static void pass(rig *on, uint64_t ms)
{
    uint64_t until = loop_now_ms(on->loop) + ms;
    RIG_UNTIL(on, loop_now_ms(on->loop) >= until);
}

typedef struct drips_case {
    const char *at; /* HPACK: one is sent at a time, far below the least pace … */
    size_t len;
    bool is_head; /* … of this head; or of a body behind it */
    bay_err err;  /* BAY_ERR_CLOSED: the peer ended it when all had come */
} drips_case;

/* A reply octet by octet, each long before the silence that would end it. */
static void test_replies_in_drips(void **state)
{
    (void)state;
    enum { DRIPS = 20, DRIP_MS = 20 };
    static const drips_case cases[] = {
        {"\x88\x00\x01x\x40"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         69, true, BAY_ERR_TIMEOUT},
        {"\x88", 1, false, BAY_ERR_TIMEOUT},
        {"\x88\x0f\x10\x10"
         "application/json",
         20, false, BAY_ERR_TIMEOUT},
        {"\x88\x0f\x10\x11"
         "text/event-stream",
         21, false, BAY_ERR_CLOSED},
        {"\x88\x0f\x10\x10"
         "application/grpc",
         20, false, BAY_ERR_CLOSED},
    };
    http_client_limits limits = http_client_default_limits;
    limits.head_timeout_ms = limits.body_timeout_ms = 100;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const drips_case *one = &cases[i];
        rig on = {0};
        buf frames;
        answer out;
        raw other;
        buf_init(&frames, SIZE_MAX / 2);
        int listener = meet(&on, &limits, &out, &other);
        frame_put(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        frame_put(&frames, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, one->at, one->len);
        frames.len -= one->is_head ? one->len - 5 : 0;
        (void)hand_send(&other, &on, &frames);
        for (int drip = 0; drip < DRIPS && !is_over(&out); drip++) {
            if (one->is_head) {
                buf_char(&frames, 'a');
            } else {
                frame_put(&frames, NGHTTP2_DATA, 0, 1, "a", 1);
            }
            (void)hand_send(&other, &on, &frames);
            pass(&on, DRIP_MS);
        }
        shutdown(other.fd, SHUT_WR);
        RIG_UNTIL(&on, is_over(&out));
        assert_int_equal(out.err, one->err);
        assert_int_equal(out.heads, one->is_head ? 0 : 1);
        buf_fini(&frames);
        part(&on, listener, &out, &other);
    }
}

typedef struct frames_case {
    uint8_t type, flags;
    const char *at;
    size_t len;
    int count;
    bool rests; /* the peer was silent between them, as far as that counts */
    bay_err err;
} frames_case;

/* What costs much and brings little, inside a reply. */
static void test_replies_of_framing(void **state)
{
    (void)state;
    static const frames_case cases[] = {
        {0xfa, 0, "", 0, 20000, false, BAY_ERR_PROTOCOL},
        {NGHTTP2_PRIORITY, 0, "\0\0\0\0\x01", 5, 20000, false, BAY_ERR_PROTOCOL},
        {NGHTTP2_DATA, 0, "", 0, 20000, false, BAY_ERR_LIMIT},
        {NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, "\x07\0\0\0\0\0\0\0", 8, 20000, false, BAY_ERR_LIMIT},
        {NGHTTP2_DATA, 0, "a", 1, 9000, false, BAY_ERR_LIMIT},
        {NGHTTP2_DATA, 0, "a", 1, 9000, true, BAY_ERR_CLOSED},
        {NGHTTP2_DATA, 0, "a", 1, 8000, false, BAY_ERR_CLOSED},
        {NGHTTP2_DATA, 0, "123456789", 9, 20000, false, BAY_ERR_CLOSED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const frames_case *one = &cases[i];
        answer out;
        buf frames;
        http_client_limits limits = http_client_default_limits;
        limits.framing_rest_ms = one->rests ? 0 : limits.framing_rest_ms;
        buf_init(&frames, SIZE_MAX / 2);
        frame_put(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        frame_put(&frames, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x88", 1);
        for (int k = 0; k < one->count; k++) {
            frame_put(&frames, one->type, one->flags, 1, one->at, one->len);
        }
        against(frames.at, frames.len, &limits, &out);
        if (out.err != one->err) {
            fail_msg("case %zu: %s, %s", i, bay_err_text(out.err), out.text);
        }
        if (one->err == BAY_ERR_CLOSED) { /* all of it was read */
            assert_int_equal(out.body_bytes, (size_t)one->count * one->len);
        }
        buf_fini(&frames);
    }
}

/* --- with any lack of memory ------------------------------------------------------------------ */

static void memory_body(uint16_t port, rig *server)
{
    loop *own = NULL;
    http_client *client = NULL;
    answer out[2];
    http_client_options options = {.limits = http_client_default_limits};
    if (loop_new(&own) != BAY_OK) {
        return;
    }
    if (http_client_new(own, &options, &client) != BAY_OK) {
        loop_free(own);
        return;
    }
    int open = 0;
    for (int i = 0; i < 2; i++) {
        memset(&out[i], 0, sizeof(out[i]));
        out[i].client = client;
        buf_init(&out[i].body, SIZE_MAX / 2);
        buf_init(&out[i].trailers, SIZE_MAX / 2);
        const http_field field = {STR("x-a"), STR("b")};
        if (try_ask(&out[i], port, "/echo",
                    (http_call_spec){.body = STR("hello"), .fields = &field, .field_count = 1}) !=
            BAY_OK) {
            out[i].failures = 1;
        }
        open++;
    }
    for (int i = 0; i < 5000 && !(is_over(&out[0]) && is_over(&out[1])); i++) {
        (void)loop_turn(server->loop, 0);
        (void)loop_turn(own, 0);
    }
    http_client_free(client);
    for (int i = 0; i < open; i++) {
        assert_true(is_over(&out[i]));
        answer_fini(&out[i]);
    }
    loop_free(own);
}

static void test_every_lack_of_memory(void **state)
{
    (void)state;
    size_t rounds = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        memset(&on, 0, sizeof(on));
        http_server_options options = {
            .limits = http_server_default_limits, .handler = &rig_handler, .user = &on};
        bay_err err = loop_new(&on.loop);
        if (err == BAY_OK) {
            err = http_server_new(on.loop, &options, &on.server);
        }
        if (err == BAY_OK) {
            err = http_server_listen(on.server, STR("127.0.0.1:0"), NULL);
        }
        if (err == BAY_OK) {
            memory_body(http_server_port(on.server), &on);
        }
        http_server_free(on.server);
        if (on.loop != NULL) {
            loop_free(on.loop);
        }
        assert_int_equal(on.requests, on.complete + on.cut);
        failing_memory_check();
        rounds++;
    }
    assert_true(rounds > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers_that_do_not_speak_it),
        cmocka_unit_test(test_replies_in_drips),
        cmocka_unit_test(test_replies_of_framing),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_trailers_come_before_the_end),
        cmocka_unit_test(test_many_calls_on_few_connections),
        cmocka_unit_test(test_refused_streams_go_out_again),
        cmocka_unit_test(test_back_pressure_of_one_call),
        cmocka_unit_test(test_replies_wait_for_room),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_time_outs),
        cmocka_unit_test(test_server_drains),
        cmocka_unit_test(test_reply_is_cut),
        cmocka_unit_test(test_client_freed_inside_an_event),
        cmocka_unit_test(test_lines_end_when_idle),
        cmocka_unit_test(test_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
