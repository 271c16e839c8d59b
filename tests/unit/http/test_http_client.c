/* The HTTP client against a peer that says exactly what the script tells it to, and against our own
 * server. */
#include "http_rig.h"

#include "http/http_client.h"

typedef struct reply {
    http_call *call;
    http_client *client;
    buf body;
    int status;
    size_t fields;
    int heads;
    int ends;
    int failures;
    bay_err err;
    bool was_sent;
    char text[200];
    bool cancels_at_head, cancels_at_body, frees_at_head, frees_at_end, pauses_at_body;
    bool pauses_at_head;
} reply;

typedef struct bench {
    rig on; /* only its loop, unless a test starts the server too */
    http_client *client;
    int listener;
    uint16_t port;
    char url[64];
} bench;

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    reply *self = user;
    (void)fields;
    self->heads++;
    self->status = status;
    self->fields = count;
    if (self->cancels_at_head) {
        http_call_cancel(self->call);
    } else if (self->frees_at_head) {
        http_client_free(self->client);
    } else if (self->pauses_at_head) {
        http_call_pause(self->call);
    }
}

static void on_body(void *user, bay_str bytes)
{
    reply *self = user;
    assert_int_equal(self->heads, 1);
    buf_str(&self->body, bytes);
    if (self->cancels_at_body) {
        http_call_cancel(self->call);
    } else if (self->pauses_at_body) {
        http_call_pause(self->call);
    }
}

static void on_end(void *user)
{
    reply *self = user;
    assert_int_equal(self->heads, 1);
    self->ends++;
    http_call_cancel(self->call); /* of no effect any more */
    if (self->frees_at_end) {
        http_client_free(self->client);
    }
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    reply *self = user;
    self->failures++;
    self->err = err;
    self->was_sent = was_sent;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

static void bench_init(bench *self, const http_client_limits *limits)
{
    memset(self, 0, sizeof(*self));
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    http_client_options options = {.limits = limits != NULL ? *limits : http_client_default_limits};
    assert_int_equal(http_client_new(self->on.loop, &options, &self->client), BAY_OK);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    self->port = ntohs(address.sin_port);
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u/path?q=1#part", self->port);
}

static void bench_fini(bench *self)
{
    http_client_free(self->client);
    close(self->listener);
    loop_free(self->on.loop);
}

static void reply_init(reply *self, bench *on)
{
    memset(self, 0, sizeof(*self));
    self->client = on->client;
    buf_init(&self->body, SIZE_MAX / 2);
}

static bay_err try_call(bench *on, reply *out, http_call_spec spec)
{
    if (spec.url.at == NULL) {
        spec.url = str_of(on->url);
    }
    if (spec.method.at == NULL) {
        spec.method = STR("POST");
        spec.has_body = true;
    }
    bay_diag diag;
    return http_client_call(on->client, &spec, &events, out, &out->call, &diag);
}

static void call(bench *on, reply *out, http_call_spec spec)
{
    reply_init(out, on);
    assert_int_equal(try_call(on, out, spec), BAY_OK);
    assert_int_equal(out->ends + out->failures, 0);
}

static bool is_over(const reply *self)
{
    return self->ends + self->failures > 0;
}

static void reply_fini(reply *self)
{
    assert_true(self->ends + self->failures <= 1);
    buf_fini(&self->body);
}

/* Waits for the client's next connection. */
static void peer_accept(bench *on, raw *out)
{
    memset(out, 0, sizeof(*out));
    buf_init(&out->got, SIZE_MAX / 2);
    RIG_UNTIL(&on->on,
              (out->fd = accept4(on->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
}

static bool has_connection(bench *on)
{
    struct pollfd poll_one = {.fd = on->listener, .events = POLLIN};
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(on->on.loop, 0);
    }
    return poll(&poll_one, 1, 0) > 0;
}

static void peer_request(bench *on, raw *peer)
{
    raw_until(peer, &on->on, "\r\n\r\n");
}

static void peer_says(bench *on, raw *peer, const char *text)
{
    (void)raw_say(peer, &on->on, text);
}

/* One call on a connection of its own, answered with `text`, then the peer ends if `ends`. */
static void scripted(bench *on, reply *out, const char *text, bool ends)
{
    raw peer;
    call(on, out, (http_call_spec){.body = STR("hi"), .may_run_twice = true});
    peer_accept(on, &peer);
    peer_request(on, &peer);
    peer_says(on, &peer, text);
    if (ends) {
        shutdown(peer.fd, SHUT_WR);
    }
    RIG_UNTIL(&on->on, is_over(out));
    raw_close(&peer);
}

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"

static void test_request_bytes(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    bench_init(&on, NULL);
    http_field fields[] = {{STR("Accept"), STR("text/plain")},
                           {STR("content-length"), STR("999")},
                           {STR("Transfer-Encoding"), STR("chunked")}};
    call(&on, &out, (http_call_spec){.fields = fields, .field_count = 3, .body = STR("body!")});
    peer_accept(&on, &peer);
    raw_until(&peer, &on.on, "body!");
    char expected[256];
    snprintf(expected, sizeof(expected),
             "POST /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: text/plain\r\n"
             "Content-Length: 5\r\n\r\nbody!",
             on.port);
    assert_int_equal(peer.got.len, strlen(expected));
    assert_memory_equal(peer.got.at, expected, peer.got.len);
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.status, 200);
    assert_int_equal(out.fields, 2);
    assert_true(str_eq(buf_view(&out.body), STR("hello")));
    reply_fini(&out);

    call(&on, &out, (http_call_spec){.method = STR("GET")});
    buf_clear(&peer.got);
    raw_until(&peer, &on.on, "\r\n\r\n"); /* on the same connection */
    assert_false(raw_has(&peer, "Content-Length"));
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, out.ends == 1);
    reply_fini(&out);
    raw_close(&peer);
    bench_fini(&on);
}

static void test_calls_that_cannot_begin(void **state)
{
    (void)state;
    bench on;
    reply out;
    bench_init(&on, NULL);
    reply_init(&out, &on);
    const char *urls[] = {"",          "/path",         "ftp://a/",         "http://",
                          "http:///x", "http://u:p@h/", "http://h:99999/x", "http://h /"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_int_equal(try_call(&on, &out, (http_call_spec){.url = str_of(urls[i])}),
                         BAY_ERR_INVALID);
    }
    http_field evil = {STR("X"), STR("a\r\nB: c")};
    assert_int_equal(try_call(&on, &out, (http_call_spec){.fields = &evil, .field_count = 1}),
                     BAY_ERR_INVALID);
    assert_int_equal(try_call(&on, &out, (http_call_spec){.method = STR("GE T")}), BAY_ERR_INVALID);
    assert_false(has_connection(&on));
    assert_int_equal(out.failures, 0);
    reply_fini(&out);
    bench_fini(&on);
}

static void test_replies(void **state)
{
    (void)state;
    bench on;
    bench_init(&on, NULL);
    const struct {
        const char *text;
        bool ends;
        const char *body; /* NULL: the call fails */
        bay_err err;
    } cases[] = {
        {OK_HELLO, true, "hello", BAY_OK},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
         true, "abcde", BAY_OK},
        {"HTTP/1.1 200 OK\r\n\r\nuntil the end", true, "until the end", BAY_OK},
        {"HTTP/1.0 200 OK\r\n\r\nold", true, "old", BAY_OK},
        {"HTTP/1.1 204 No Content\r\n\r\n", true, "", BAY_OK},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK_HELLO, true,
         "hello", BAY_OK},
        {OK_HELLO "HTTP/1.1 200 OK\r\n", true, "hello", BAY_OK}, /* more than was asked for */
        {"", true, NULL, BAY_ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nContent-", true, NULL, BAY_ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", true, NULL, BAY_ERR_CLOSED},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true, NULL,
         BAY_ERR_CLOSED},
        {"HTTP/1.1 100 Continue\r\n\r\n", true, NULL, BAY_ERR_CLOSED},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", false, NULL, BAY_ERR_PROTOCOL},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false, NULL, BAY_ERR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", false, NULL,
         BAY_ERR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", false,
         NULL, BAY_ERR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", false, NULL,
         BAY_ERR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", false, NULL, BAY_ERR_PROTOCOL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        reply out;
        scripted(&on, &out, cases[i].text, cases[i].ends);
        if (cases[i].body != NULL) {
            assert_int_equal(out.ends, 1);
            assert_true(str_eq(buf_view(&out.body), str_of(cases[i].body)));
        } else {
            assert_int_equal(out.failures, 1);
            assert_int_equal(out.err, cases[i].err);
            assert_true(out.was_sent);
            assert_true(strlen(out.text) > 0);
        }
        reply_fini(&out);
    }
    bench_fini(&on);
}

static void test_endless_interim_replies(void **state)
{
    (void)state;
    bench on;
    reply out;
    bench_init(&on, NULL);
    char text[17 * 32 + 1] = {0};
    for (int i = 0; i < 17; i++) {
        memcpy(text + strlen(text), "HTTP/1.1 102 Processing\r\n\r\n", 27);
    }
    scripted(&on, &out, text, false);
    assert_int_equal(out.err, BAY_ERR_PROTOCOL);
    reply_fini(&out);
    bench_fini(&on);
}

static void test_reply_split_at_every_byte(void **state)
{
    (void)state;
    static const char text[] =
        "HTTP/1.1 100 Continue\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Long: aaaaaaaaaaaaaaaaaaaaa\r\n\r\n"
        "3\r\nabc\r\n4;ext\r\ndefg\r\n0\r\nX-Last: x\r\n\r\n";
    bench on;
    raw peer;
    reply out;
    bench_init(&on, NULL);
    call(&on, &out, (http_call_spec){.body = STR("x")});
    peer_accept(&on, &peer);
    for (size_t cut = 1; cut <= sizeof(text) - 1; cut++) {
        raw_until(&peer, &on.on, "\r\n\r\nx");
        buf_clear(&peer.got);
        assert_true(raw_send(&peer, &on.on, text, cut));
        for (int i = 0; i < 3; i++) {
            (void)loop_turn(on.on.loop, 0);
        }
        assert_true(cut == sizeof(text) - 1 || !is_over(&out));
        assert_true(raw_send(&peer, &on.on, text + cut, sizeof(text) - 1 - cut));
        RIG_UNTIL(&on.on, is_over(&out));
        assert_int_equal(out.ends, 1);
        assert_true(str_eq(buf_view(&out.body), STR("abcdefg")));
        assert_int_equal(out.fields, 2);
        reply_fini(&out);
        call(&on, &out, (http_call_spec){.body = STR("x")}); /* always the same connection */
    }
    raw_until(&peer, &on.on, "\r\n\r\nx");
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        assert_true(raw_send(&peer, &on.on, text + i, 1));
    }
    RIG_UNTIL(&on.on, is_over(&out));
    assert_true(str_eq(buf_view(&out.body), STR("abcdefg")));
    assert_false(has_connection(&on));
    reply_fini(&out);
    raw_close(&peer);
    bench_fini(&on);
}

static void test_head_limits(void **state)
{
    (void)state;
    http_client_limits limits = http_client_default_limits;
    limits.head_bytes = 1024;
    limits.head_fields = 4;
    limits.body_bytes = 4;
    bench on;
    reply out;
    bench_init(&on, &limits);
    char text[2048] = "HTTP/1.1 200 OK\r\nX: ";
    memset(text + strlen(text), 'x', 1500);
    scripted(&on, &out, text, false);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    reply_fini(&out);
    scripted(&on, &out, "HTTP/1.1 200 OK\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\n\r\n", false);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    reply_fini(&out);
    scripted(&on, &out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhellohell\r\n",
             false);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    reply_fini(&out);
    bench_fini(&on);
}

static void test_head_request(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    bench_init(&on, NULL);
    for (int i = 0; i < 2; i++) {
        call(&on, &out, (http_call_spec){.method = STR("HEAD")});
        if (i == 0) {
            peer_accept(&on, &peer);
        }
        buf_clear(&peer.got);
        peer_request(&on, &peer);
        peer_says(&on, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
        RIG_UNTIL(&on.on, is_over(&out));
        assert_int_equal(out.ends, 1);
        reply_fini(&out);
    }
    raw_close(&peer);
    bench_fini(&on);
}

/* Bytes on a pooled connection that nobody asked for: it is closed, not used. */
static void test_reply_before_the_request(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    raw second;
    bench_init(&on, NULL);
    call(&on, &out, (http_call_spec){.body = STR("1")});
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, out.ends == 1);
    reply_fini(&out);
    peer_says(&on, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
    raw_until(&peer, &on.on, NULL);
    raw_close(&peer);
    call(&on, &out, (http_call_spec){.body = STR("2")});
    peer_accept(&on, &second);
    peer_request(&on, &second);
    peer_says(&on, &second, OK_HELLO);
    RIG_UNTIL(&on.on, out.ends == 1);
    assert_true(str_eq(buf_view(&out.body), STR("hello")));
    reply_fini(&out);
    raw_close(&second);
    bench_fini(&on);
}

/* The peer ended a pooled connection just when a request went out on it: sent once more, once. */
static void test_stale_pooled_connection(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    raw second;
    bench_init(&on, NULL);
    for (int i = 0; i < 4; i++) {
        call(&on, &out, (http_call_spec){.body = STR("warm")});
        peer_accept(&on, &peer);
        peer_request(&on, &peer);
        peer_says(&on, &peer, OK_HELLO);
        RIG_UNTIL(&on.on, out.ends == 1);
        reply_fini(&out);

        /* No turn of the loop between the close and the call: the client cannot know. */
        if (i == 1) {
            struct linger hard = {.l_onoff = 1};
            setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        }
        raw_close(&peer);
        call(&on, &out, (http_call_spec){.body = STR("again"), .may_run_twice = i < 3});
        if (i == 3) { /* without leave it is told as it is: the peer may have executed it */
            RIG_UNTIL(&on.on, is_over(&out));
            assert_true(out.err == BAY_ERR_CLOSED && out.was_sent && !has_connection(&on));
            reply_fini(&out);
            break;
        }
        peer_accept(&on, &second);
        raw_until(&second, &on.on, "again");
        if (i == 2) { /* a fresh connection that fails is an answer */
            raw_close(&second);
            RIG_UNTIL(&on.on, is_over(&out));
            assert_int_equal(out.err, BAY_ERR_CLOSED);
            assert_true(out.was_sent);
            assert_false(has_connection(&on));
        } else {
            peer_says(&on, &second,
                      "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                      "Content-Length: 5\r\n\r\nfresh");
            RIG_UNTIL(&on.on, is_over(&out));
            assert_int_equal(out.ends, 1);
            assert_true(str_eq(buf_view(&out.body), STR("fresh")));
            raw_close(&second);
        }
        reply_fini(&out);
    }
    bench_fini(&on);
}

/* A byte of a reply came: then it is not sent again. */
static void test_no_second_send_after_a_byte(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    bench_init(&on, NULL);
    call(&on, &out, (http_call_spec){.body = STR("warm")});
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, out.ends == 1);
    reply_fini(&out);
    buf_clear(&peer.got);
    call(&on, &out, (http_call_spec){.body = STR("second")});
    raw_until(&peer, &on.on, "second");
    peer_says(&on, &peer, "H");
    raw_close(&peer);
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_CLOSED);
    assert_false(has_connection(&on));
    reply_fini(&out);
    bench_fini(&on);
}

static void test_connection_refused(void **state)
{
    (void)state;
    bench on;
    reply out;
    bench_init(&on, NULL);
    close(on.listener);
    call(&on, &out, (http_call_spec){.body = STR("x")});
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_CONNECT);
    assert_false(out.was_sent);
    reply_fini(&out);
    on.listener = -1;
    bench_fini(&on);
}

static void test_timeouts(void **state)
{
    (void)state;
    bench on;
    reply out;
    raw peer;
    bench_init(&on, NULL);
    call(&on, &out, (http_call_spec){.body = STR("x"), .timeout_ms = 10});
    peer_accept(&on, &peer);
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_TIMEOUT);
    raw_until(&peer, &on.on, NULL); /* the connection is given up */
    raw_close(&peer);
    reply_fini(&out);

    call(&on, &out, (http_call_spec){.body = STR("x"), .timeout_ms = 10000, .idle_ms = 10});
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    peer_says(&on, &peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhell");
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.err, BAY_ERR_TIMEOUT);
    assert_true(str_eq(buf_view(&out.body), STR("hell")));
    raw_close(&peer);
    reply_fini(&out);
    bench_fini(&on);
}

static void test_pool_forgets_idle_connections(void **state)
{
    (void)state;
    http_client_limits limits = http_client_default_limits;
    limits.idle_timeout_ms = 5;
    bench on;
    reply out;
    raw peer;
    bench_init(&on, &limits);
    call(&on, &out, (http_call_spec){.body = STR("x")});
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, out.ends == 1);
    raw_until(&peer, &on.on, NULL);
    raw_close(&peer);
    reply_fini(&out);
    bench_fini(&on);
}

static void test_queue(void **state)
{
    (void)state;
    http_client_limits limits = http_client_default_limits;
    limits.connections_per_origin = 1;
    limits.queue_per_origin = 2;
    bench on;
    reply out[5];
    raw peer;
    bench_init(&on, &limits);
    for (int i = 0; i < 3; i++) {
        char body[8];
        snprintf(body, sizeof(body), "call%d", i);
        call(&on, &out[i], (http_call_spec){.body = str_of(body)});
    }
    reply_init(&out[3], &on);
    assert_int_equal(try_call(&on, &out[3], (http_call_spec){.body = STR("no")}), BAY_ERR_BUSY);
    http_call_cancel(out[1].call); /* while it waits */
    call(&on, &out[4], (http_call_spec){.body = STR("call4")});
    peer_accept(&on, &peer);
    const char *order[] = {"call0", "call2", "call4"};
    const int index[] = {0, 2, 4};
    for (int i = 0; i < 3; i++) {
        raw_until(&peer, &on.on, order[i]);
        assert_int_equal(raw_count(&peer, "POST "), i + 1);
        peer_says(&on, &peer, OK_HELLO);
        RIG_UNTIL(&on.on, out[index[i]].ends == 1);
    }
    assert_false(has_connection(&on));
    assert_int_equal(out[1].ends + out[1].failures, 0);
    for (int i = 0; i < 5; i++) {
        reply_fini(&out[i]);
    }
    raw_close(&peer);
    bench_fini(&on);
}

/* The connection dies with calls waiting for it: they get the next one. */
static void test_queue_outlives_its_connection(void **state)
{
    (void)state;
    http_client_limits limits = http_client_default_limits;
    limits.connections_per_origin = 1;
    bench on;
    reply out[2];
    raw peer;
    bench_init(&on, &limits);
    call(&on, &out[0], (http_call_spec){.body = STR("a")});
    call(&on, &out[1], (http_call_spec){.body = STR("b")});
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    raw_close(&peer);
    RIG_UNTIL(&on.on, is_over(&out[0]));
    assert_int_equal(out[0].err, BAY_ERR_CLOSED);
    peer_accept(&on, &peer);
    raw_until(&peer, &on.on, "\r\n\r\nb");
    peer_says(&on, &peer, OK_HELLO);
    RIG_UNTIL(&on.on, out[1].ends == 1);
    reply_fini(&out[0]);
    reply_fini(&out[1]);
    raw_close(&peer);
    bench_fini(&on);
}

static void test_reuses_the_warmest(void **state)
{
    (void)state;
    bench on;
    reply out[2];
    raw peers[2];
    bench_init(&on, NULL);
    for (int i = 0; i < 2; i++) {
        call(&on, &out[i], (http_call_spec){.body = STR("x")});
        peer_accept(&on, &peers[i]);
    }
    for (int i = 0; i < 2; i++) {
        peer_request(&on, &peers[i]);
        peer_says(&on, &peers[i], OK_HELLO);
        RIG_UNTIL(&on.on, out[i].ends == 1);
        reply_fini(&out[i]);
    }
    buf_clear(&peers[1].got);
    call(&on, &out[0], (http_call_spec){.body = STR("again")});
    raw_until(&peers[1], &on.on, "again");
    peer_says(&on, &peers[1], OK_HELLO);
    RIG_UNTIL(&on.on, out[0].ends == 1);
    reply_fini(&out[0]);
    raw_close(&peers[0]);
    raw_close(&peers[1]);
    bench_fini(&on);
}

static void test_cancel_in_each_state(void **state)
{
    (void)state;
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    for (int at = 0; at < 5; at++) {
        bench on;
        reply out;
        raw peer;
        bench_init(&on, NULL);
        call(&on, &out, (http_call_spec){.body = STR("x")});
        out.cancels_at_head = at == 2;
        out.cancels_at_body = at == 3;
        if (at == 0) { /* connecting */
            http_call_cancel(out.call);
        } else {
            peer_accept(&on, &peer);
            raw_until(&peer, &on.on, "\r\n\r\nx");
            if (at == 1) { /* waiting */
                http_call_cancel(out.call);
            }
            peer_says(&on, &peer, text);
            if (at == 4) { /* in the body, from outside */
                RIG_UNTIL(&on.on, out.body.len == 5);
                http_call_cancel(out.call);
            }
            raw_until(&peer, &on.on, NULL);
            raw_close(&peer);
        }
        for (int i = 0; i < 10; i++) {
            (void)loop_turn(on.on.loop, 0);
        }
        assert_int_equal(out.ends + out.failures, 0);
        assert_int_equal(out.heads, at >= 2);
        reply_fini(&out);
        bench_fini(&on);
    }
}

static void test_free_in_each_state(void **state)
{
    (void)state;
    for (int at = 0; at < 5; at++) {
        bench on;
        reply out;
        raw peer;
        bench_init(&on, NULL);
        call(&on, &out, (http_call_spec){.body = STR("x")});
        out.frees_at_head = at == 2;
        out.frees_at_end = at == 3;
        if (at >= 1) {
            peer_accept(&on, &peer);
            raw_until(&peer, &on.on, "\r\n\r\nx");
            if (at >= 2) {
                peer_says(&on, &peer, OK_HELLO);
                RIG_UNTIL(&on.on, is_over(&out));
            }
        }
        if (at != 2 && at != 3) {
            http_client_free(on.client);
        }
        on.client = NULL;
        assert_int_equal(out.ends, at >= 3);
        assert_int_equal(out.failures, at < 3);
        if (at < 3) {
            assert_int_equal(out.err, BAY_ERR_CANCELLED);
            assert_int_equal(out.was_sent, at >= 1);
        }
        for (int i = 0; i < 10; i++) {
            (void)loop_turn(on.on.loop, 0);
        }
        if (at >= 1) {
            raw_close(&peer);
        }
        reply_fini(&out);
        bench_fini(&on);
    }
}

/* A paused call reads nothing, so the peer's writes stop; resumed, nothing is missing. */
static void test_pause(void **state)
{
    (void)state;
    enum { BODY = 64 * 1024 * 1024 };
    bench on;
    reply out;
    raw peer;
    bench_init(&on, NULL);
    call(&on, &out, (http_call_spec){.body = STR("x")});
    out.pauses_at_body = true;
    peer_accept(&on, &peer);
    peer_request(&on, &peer);
    char head[128];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
    peer_says(&on, &peer, head);
    static char piece[65536];
    size_t sent = 0;
    int stuck = 0;
    while (sent < BODY && stuck < 50) { /* until the kernel's buffers are full */
        ssize_t put = send(peer.fd, piece, sizeof(piece), MSG_NOSIGNAL);
        stuck = put > 0 ? 0 : stuck + 1;
        sent += put > 0 ? (size_t)put : 0;
        (void)loop_turn(on.on.loop, 0);
    }
    assert_true(sent < BODY);
    assert_true(out.body.len <= 2 * 65536);
    while (sent < BODY) {
        size_t rest = BODY - sent < sizeof(piece) ? BODY - sent : sizeof(piece);
        ssize_t put = send(peer.fd, piece, rest, MSG_NOSIGNAL);
        sent += put > 0 ? (size_t)put : 0;
        out.pauses_at_body = sent % 7 == 0;
        http_call_resume(out.call);
        (void)loop_turn(on.on.loop, 0);
    }
    out.pauses_at_body = false;
    http_call_resume(out.call);
    RIG_UNTIL(&on.on, is_over(&out));
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.body.len, BODY);
    reply_fini(&out);
    raw_close(&peer);
    bench_fini(&on);
}

/* The peer is gone before a paused call goes on: what it said still arrives, then its end. */
static void test_pause_past_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bench on;
        reply out;
        raw peer;
        bench_init(&on, NULL);
        call(&on, &out, (http_call_spec){.body = STR("x")});
        out.pauses_at_head = i % 2 == 0;
        out.pauses_at_body = i % 2 == 1;
        peer_accept(&on, &peer);
        peer_request(&on, &peer);
        peer_says(&on, &peer,
                  i < 2 ? OK_HELLO : "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
        RIG_UNTIL(&on.on, out.heads == 1);
        raw_close(&peer);
        for (int turn = 0; turn < 10; turn++) {
            (void)loop_turn(on.on.loop, 0);
        }
        assert_false(is_over(&out));
        out.pauses_at_body = false;
        http_call_resume(out.call);
        assert_false(is_over(&out));
        RIG_UNTIL(&on.on, is_over(&out));
        assert_true(str_eq(buf_view(&out.body), STR("hello")));
        assert_int_equal(out.ends, i < 2);
        reply_fini(&out);
        bench_fini(&on);
    }
}

static void test_against_our_server(void **state)
{
    (void)state;
    enum { CALLS = 40, ROUNDS = 5 };
    bench on;
    rig server;
    reply out[CALLS];
    bench_init(&on, NULL);
    memset(&server, 0, sizeof(server));
    server.loop = on.on.loop;
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &rig_handler, .user = &server};
    assert_int_equal(http_server_new(server.loop, &options, &server.server), BAY_OK);
    assert_int_equal(http_server_listen(server.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            char url[64];
            char body[32];
            snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", http_server_port(server.server),
                     i % 2 == 0 ? "echo" : "events");
            snprintf(body, sizeof(body), "body %d", i);
            call(&on, &out[i], (http_call_spec){.url = str_of(url), .body = str_of(body)});
        }
        for (int i = 0; i < CALLS; i++) {
            RIG_UNTIL(&on.on, is_over(&out[i]));
            char body[32];
            snprintf(body, sizeof(body), "body %d", i);
            assert_int_equal(out[i].ends, 1);
            assert_true(str_eq(buf_view(&out[i].body), i % 2 == 0 ? str_of(body) : STR("onetwo!")));
            reply_fini(&out[i]);
        }
    }
    assert_int_equal(server.requests, CALLS * ROUNDS);
    assert_int_equal(http_server_connections(server.server), CALLS);
    http_server_free(server.server);
    bench_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_bytes),
        cmocka_unit_test(test_calls_that_cannot_begin),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_endless_interim_replies),
        cmocka_unit_test(test_reply_split_at_every_byte),
        cmocka_unit_test(test_head_limits),
        cmocka_unit_test(test_head_request),
        cmocka_unit_test(test_reply_before_the_request),
        cmocka_unit_test(test_stale_pooled_connection),
        cmocka_unit_test(test_no_second_send_after_a_byte),
        cmocka_unit_test(test_connection_refused),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_pool_forgets_idle_connections),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_queue_outlives_its_connection),
        cmocka_unit_test(test_reuses_the_warmest),
        cmocka_unit_test(test_cancel_in_each_state),
        cmocka_unit_test(test_free_in_each_state),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_past_the_end),
        cmocka_unit_test(test_against_our_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
