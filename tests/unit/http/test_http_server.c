/* What the HTTP server does with requests that are right, and with handlers that do anything they
 * are allowed to. */
#include "http_rig.h"

#include "http/http_internal.h"
#include "net/socket_internal.h"

#define HOST "Host: localhost\r\n"

static void test_reply_has_its_framing(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on,
              "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
    assert_true(raw_starts(&client, "HTTP/1.1 200 OK\r\n"));
    assert_true(raw_has(&client, "Content-Type: text/plain\r\n"));
    assert_true(raw_has(&client, "Content-Length: 5\r\n"));
    assert_true(raw_has(&client, "Connection: close\r\n"));
    assert_true(raw_has(&client, " GMT\r\n"));
    assert_int_equal(raw_count(&client, "Date: "), 1);
    assert_true(str_ends(buf_view(&client.got), STR("\r\n\r\nhello")));
    assert_false(client.is_reset);
    assert_int_equal(on.complete, 1);
    raw_close(&client);
    rig_fini(&on);
}

static void test_request_views(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on,
              "GET /info?a=b&c HTTP/1.1\r\n" HOST
              "X-Twice: 1\r\nx-twice: 2\r\nConnection: close\r\n\r\n");
    assert_true(raw_has(&client, "\r\n\r\nGET /info ?a=b&c host=localhost peer=127.0.0.1 x=2"));
    raw_close(&client);
    rig_fini(&on);
}

static void test_keep_alive(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    for (int i = 0; i < 20; i++) {
        char request[128];
        char answer[32];
        snprintf(answer, sizeof(answer), "\r\n\r\nnumber %02d", i);
        snprintf(request, sizeof(request),
                 "POST /%s HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nnumber %02d",
                 i % 2 == 0 ? "echo" : "deferred", i);
        assert_true(raw_say(&client, &on, request));
        raw_until(&client, &on, answer);
    }
    assert_false(raw_has(&client, "Connection:"));
    assert_int_equal(on.requests, 20);
    assert_int_equal(http_server_connections(on.server), 1);
    raw_close(&client);
    RIG_UNTIL(&on, http_server_connections(on.server) == 0);
    rig_fini(&on);
}

static void test_http_1_0(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on, "GET /info HTTP/1.0\r\n\r\n");
    assert_true(raw_has(&client, "Connection: close\r\n"));
    raw_close(&client);

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /info HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    raw_until(&client, &on, "x=0");
    assert_true(raw_has(&client, "Connection: keep-alive\r\n"));
    assert_true(raw_say(&client, &on, "GET /events HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    raw_until(&client, &on, NULL);
    assert_true(str_ends(buf_view(&client.got), STR("\r\n\r\nonetwo!")));
    assert_false(raw_has(&client, "chunked"));
    raw_close(&client);
    rig_fini(&on);
}

/* Every request of a pipeline is answered, in order, each after the one before it. */
static void test_pipelining(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on,
                        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                        "POST /deferred HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\ntwo"
                        "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nthree"
                        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nfour"
                        "POST /deferred HTTP/1.1\r\n" HOST
                        "Transfer-Encoding: chunked\r\n\r\n4\r\nfive\r\n0\r\n\r\n"
                        "GET /info HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    raw_until(&client, &on, "two");
    RIG_UNTIL(&on, on.pending_count == 1);
    for (int i = 0; i < 10; i++) {
        (void)loop_turn(on.loop, 0);
    }
    assert_int_equal(on.requests, 3);
    assert_true(str_eq(http_exchange_body(on.pending[0]), STR("three")));
    rig_reply(on.pending[0], 200, STR("three"));
    raw_until(&client, &on, NULL);
    assert_int_equal(raw_count(&client, "HTTP/1.1 200 OK"), 6);
    const char *order[] = {"one", "two", "three", "four", "five", "GET /info"};
    const char *at = client.got.at;
    for (size_t i = 0; i < 6; i++) {
        at = memmem(at, client.got.len - (size_t)(at - client.got.at), order[i], strlen(order[i]));
        assert_non_null(at);
    }
    raw_close(&client);
    rig_fini(&on);
}

/* However the bytes are cut, the same request arrives. */
static void test_split_at_every_byte(void **state)
{
    (void)state;
    static const char request[] = "POST /deferred HTTP/1.1\r\n" HOST
                                  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n"
                                  "0\r\nX: y\r\n\r\n"
                                  "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nlast";
    rig on;
    raw client;
    rig_init(&on, NULL);
    for (size_t cut = 1; cut < sizeof(request) - 1; cut++) {
        raw_open(&client, &on);
        assert_true(raw_send(&client, &on, request, cut));
        (void)loop_turn(on.loop, 0);
        assert_true(raw_send(&client, &on, request + cut, sizeof(request) - 1 - cut));
        raw_until(&client, &on, "last");
        assert_true(raw_has(&client, "\r\n\r\nabcdefg"));
        raw_close(&client);
    }
    raw_open(&client, &on);
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        assert_true(raw_send(&client, &on, request + i, 1));
    }
    raw_until(&client, &on, "last");
    raw_close(&client);
    rig_fini(&on);
}

/* A body of many reads: the head's views follow the buffer as it grows. */
static void test_large_body(void **state)
{
    (void)state;
    enum { BODY = 3 * 1024 * 1024 };
    rig on;
    raw client;
    rig_init(&on, NULL);
    char *body = malloc(BODY);
    assert_non_null(body);
    for (size_t i = 0; i < BODY; i++) {
        body[i] = (char)('a' + i * 7 % 26);
    }
    raw_open(&client, &on);
    char head[128];
    snprintf(head, sizeof(head), "POST /wait?big HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n",
             BODY);
    assert_true(raw_say(&client, &on, head));
    assert_true(raw_send(&client, &on, body, BODY));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange *exchange = on.pending[0];
    assert_true(str_eq(http_exchange_query(exchange), STR("big")));
    assert_true(str_eq(http_exchange_field(exchange, STR("host")), STR("localhost")));
    bay_str got = http_exchange_body(exchange);
    assert_int_equal(got.len, BODY);
    assert_memory_equal(got.at, body, BODY);
    rig_reply(exchange, 200, got);
    RIG_UNTIL(&on, (raw_pump(&client), client.got.len > BODY));
    assert_memory_equal(client.got.at + client.got.len - BODY, body, BODY);
    free(body);
    raw_close(&client);
    rig_fini(&on);
}

/* Requests of one read each that are too large to be recycled, one behind the other. */
static void test_requests_that_fill_one_read(void **state)
{
    (void)state;
    enum { BODY = 30000 };
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    char request[BODY + 256];
    int head = snprintf(request, sizeof(request),
                        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", BODY);
    memset(request + head, 'r', BODY);
    for (int i = 0; i < 4; i++) {
        size_t whole = (size_t)head + BODY; /* in one piece, without turning the loop between */
        assert_int_equal(send(client.fd, request, whole, MSG_NOSIGNAL), whole);
        if (i % 2 == 1) {
            RIG_UNTIL(&on, (raw_pump(&client), on.complete == i + 1));
        }
    }
    RIG_UNTIL(&on, (raw_pump(&client), client.got.len > 4 * BODY));
    assert_int_equal(raw_count(&client, "HTTP/1.1 200 OK"), 4);
    raw_close(&client);
    rig_fini(&on);
}

static void test_head_has_no_body(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on,
              "HEAD /info HTTP/1.1\r\n" HOST "\r\n"
              "HEAD /events HTTP/1.1\r\n" HOST "\r\n"
              "POST /nothing HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    assert_int_equal(raw_count(&client, "HTTP/1.1 20"), 3);
    assert_true(raw_has(&client, "HTTP/1.1 204 No Content\r\n"));
    assert_int_equal(raw_count(&client, "Content-Length: "), 1);
    assert_false(raw_has(&client, "HEAD"));
    assert_false(raw_has(&client, "one"));
    assert_false(raw_has(&client, "never"));
    assert_int_equal(on.complete, 3);
    raw_close(&client);
    rig_fini(&on);
}

static void test_expect_continue(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on,
                        "POST /echo HTTP/1.1\r\n" HOST
                        "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
    raw_until(&client, &on, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(on.requests, 0);
    assert_true(raw_say(&client, &on, "body"));
    raw_until(&client, &on, "\r\n\r\nbody");
    raw_close(&client);

    raw_whole(&client, &on,
              "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nExpect: miracles\r\n\r\nbody");
    assert_true(raw_starts(&client, "HTTP/1.1 417 "));
    raw_close(&client);
    rig_fini(&on);
}

static void test_reply_fields_cannot_inject(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on, "GET /inject HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    assert_true(raw_starts(&client, "HTTP/1.1 500 "));
    assert_false(raw_has(&client, "Set-Cookie"));
    raw_close(&client);

    raw_whole(&client, &on, "GET /framing HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    assert_true(raw_has(&client, "Content-Length: 12\r\n"));
    assert_true(raw_has(&client, "X-Kept: yes\r\n"));
    assert_int_equal(raw_count(&client, "ontent-"), 1);
    assert_false(raw_has(&client, "hunked"));
    assert_false(raw_has(&client, "upgrade"));
    raw_close(&client);
    rig_fini(&on);
}

static void test_stream(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(
        &client, &on, "GET /stream HTTP/1.1\r\n" HOST "\r\nGET /events HTTP/1.1\r\n" HOST "\r\n"));
    raw_until(&client, &on, "\r\n\r\n");
    assert_true(raw_has(&client, "Transfer-Encoding: chunked\r\n"));
    assert_false(raw_has(&client, "Content-Length"));
    http_exchange *stream = on.pending[0];
    assert_int_equal(http_stream_open(stream, 200, NULL, 0, false), BAY_ERR_STATE);
    assert_int_equal(http_stream_write(stream, STR("")), BAY_OK);
    assert_int_equal(http_stream_write(stream, STR("hello ")), BAY_OK);
    assert_int_equal(http_stream_write(stream, STR("world")), BAY_OK);
    raw_until(&client, &on, "\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n");
    http_stream_end(stream);
    http_stream_end(stream);
    assert_int_equal(http_stream_write(stream, STR("late")), BAY_ERR_CLOSED);
    raw_until(&client, &on, "world\r\n0\r\n\r\n");
    raw_until(&client, &on, "3\r\none\r\n4\r\ntwo!\r\n0\r\n\r\n");
    assert_int_equal(on.complete, 2);
    raw_close(&client);
    rig_fini(&on);
}

static void test_stream_that_outgrows_its_cork(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /later HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange *stream = on.pending[0];
    assert_int_equal(http_stream_open(stream, 200, NULL, 0, false), BAY_OK);
    char piece[1000];
    memset(piece, 'p', sizeof(piece));
    for (int i = 0; i < 40; i++) {
        assert_int_equal(http_stream_write(stream, (bay_str){piece, sizeof(piece)}), BAY_OK);
    }
    http_stream_end(stream);
    raw_until(&client, &on, "0\r\n\r\n");
    assert_int_equal(raw_count(&client, "3e8\r\nppp"), 40);
    RIG_UNTIL(&on, on.complete == 1);
    raw_close(&client);
    rig_fini(&on);
}

static void test_disconnect_while_pending(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    const char *paths[] = {"GET /wait HTTP/1.1\r\n" HOST "\r\n",
                           "GET /stream HTTP/1.1\r\n" HOST "\r\n"};
    for (int i = 0; i < 4; i++) {
        raw_open(&client, &on);
        assert_true(raw_say(&client, &on, paths[i % 2]));
        RIG_UNTIL(&on, on.pending_count == 1);
        if (i >= 2) { /* the hard way */
            struct linger hard = {.l_onoff = 1};
            setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        }
        raw_close(&client);
        RIG_UNTIL(&on, on.pending_count == 0);
        assert_int_equal(on.cut, i + 1);
    }
    assert_int_equal(on.complete, 0);
    rig_fini(&on);
}

/* A client that ends its half early: an answer made at once reaches it; who waits is told. */
static void test_half_closed(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    const struct {
        const char *request;
        const char *answer;
    } cases[] = {{"GET /info HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 OK"},
                 {"GET /wait HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 Bad Request"},
                 {"GET /wai", "HTTP/1.1 400 Bad Request"},
                 {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel",
                  "HTTP/1.1 400 Bad Request"}};
    for (size_t i = 0; i < 4; i++) {
        raw_open(&client, &on);
        assert_true(raw_say(&client, &on, cases[i].request));
        shutdown(client.fd, SHUT_WR);
        raw_until(&client, &on, NULL);
        assert_true(raw_starts(&client, cases[i].answer));
        assert_int_equal(raw_count(&client, "HTTP/1.1"), 1);
        raw_close(&client);
    }
    rig_fini(&on);
}

static void test_abort(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on, "GET /abort HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(client.got.len, 0);
    raw_close(&client);

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange_abort(on.pending[0]);
    assert_int_equal(on.pending_count, 1); /* never inside the call */
    raw_until(&client, &on, NULL);
    RIG_UNTIL(&on, on.cut == 2);
    raw_close(&client);

    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    http_exchange_abort(on.pending[0]);
    assert_int_equal(http_stream_write(on.pending[0], STR("x")), BAY_ERR_CLOSED);
    raw_until(&client, &on, NULL);
    RIG_UNTIL(&on, on.cut == 3);
    raw_close(&client);
    rig_fini(&on);
}

static void test_drain(void **state)
{
    (void)state;
    rig on;
    raw idle, late, waiting, streaming, begun;
    rig_init(&on, NULL);
    raw_open(&idle, &on);
    raw_open(&late, &on);
    raw_open(&waiting, &on);
    raw_open(&streaming, &on);
    raw_open(&begun, &on);
    assert_true(raw_say(&idle, &on, "GET /info HTTP/1.1\r\n" HOST "\r\n"));
    raw_until(&idle, &on, "x=0");
    assert_true(raw_say(&late, &on, "GET /info HTTP/1.1\r\n" HOST "\r\n"));
    raw_until(&late, &on, "x=0");
    assert_false(raw_has(&late, "Connection: close\r\n"));
    assert_true(raw_say(&begun, &on, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nha"));
    assert_true(raw_say(&waiting, &on, "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    assert_true(raw_say(&streaming, &on, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 2);
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    assert_true(raw_say(&late, &on, "GET /info HTTP/1.1\r\n" HOST "\r\n")); /* was on its way */
    raw_until(&late, &on, NULL);
    assert_true(raw_has(&late, "Connection: close\r\n"));
    raw_until(&idle, &on, NULL);
    assert_false(on.is_drained);
    assert_true(raw_say(&begun, &on, "lf"));
    raw_until(&begun, &on, NULL);
    assert_true(raw_has(&begun, "Connection: close\r\n"));
    assert_true(raw_has(&begun, "half"));
    rig_reply(on.pending[0], 200, STR("answered"));
    raw_until(&waiting, &on, NULL);
    assert_true(raw_has(&waiting, "Connection: close\r\n"));
    assert_true(raw_has(&waiting, "answered"));
    RIG_UNTIL(&on, on.pending_count == 1);
    assert_int_equal(http_stream_write(on.pending[0], STR("bye")), BAY_OK);
    http_stream_end(on.pending[0]);
    raw_until(&streaming, &on, "bye\r\n0\r\n\r\n");
    assert_false(raw_has(&streaming, "Connection: close\r\n"));
    assert_true(raw_say(&streaming, &on, "GET /info HTTP/1.1\r\n" HOST "\r\n")); /* nor was told */
    raw_until(&streaming, &on, NULL);
    assert_true(raw_has(&streaming, "Connection: close\r\n"));
    raw_close(&idle);
    raw_close(&late);
    raw_close(&waiting);
    raw_close(&streaming);
    raw_close(&begun);
    RIG_UNTIL(&on, on.is_drained);
    assert_int_equal(http_server_connections(on.server), 0);
    assert_int_equal(on.cut, 0);
    rig_fini(&on);
}

static void test_drain_cuts_after_its_grace(void **state)
{
    (void)state;
    rig on;
    raw waiting, streaming;
    rig_init(&on, NULL);
    raw_open(&waiting, &on);
    raw_open(&streaming, &on);
    assert_true(raw_say(&waiting, &on, "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    assert_true(raw_say(&streaming, &on, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 2);
    http_server_drain(on.server, 5, rig_is_drained, &on);
    RIG_UNTIL(&on, on.is_drained);
    assert_int_equal(on.cut, 2);
    raw_until(&waiting, &on, NULL);
    raw_until(&streaming, &on, NULL);
    raw_close(&waiting);
    raw_close(&streaming);
    rig_fini(&on);
}

static void test_drain_takes_who_waits_to_be_accepted(void **state)
{
    (void)state;
    static const char request[] = "GET /info HTTP/1.1\r\n" HOST "\r\n";
    rig on;
    raw waiting;
    rig_init(&on, NULL);
    raw_open(&waiting, &on);
    assert_int_equal(write(waiting.fd, request, sizeof(request) - 1), sizeof(request) - 1);
    assert_int_equal(http_server_connections(on.server), 0); /* no turn of the loop yet */
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    assert_int_equal(http_server_connections(on.server), 1);
    assert_false(on.is_drained);
    raw_until(&waiting, &on, NULL);
    assert_true(raw_has(&waiting, "200 OK"));
    assert_true(raw_has(&waiting, "Connection: close\r\n"));
    raw_close(&waiting);
    RIG_UNTIL(&on, on.is_drained);
    rig_fini(&on);
}

/* A machine that is busy: more time passes than any time-out of ours, and nothing is done. */
static void starve(void)
{
    static const struct timespec while_ms = {.tv_nsec = 150000000};
    (void)nanosleep(&while_ms, NULL);
}

static void test_drain_answers_what_came_while_it_starved(void **state)
{
    (void)state;
    static const char request[] = "GET /info HTTP/1.1\r\n" HOST "\r\n";
    rig on;
    raw known, silent;
    rig_init(&on, NULL);
    raw_open(&known, &on);
    raw_open(&silent, &on);
    assert_true(raw_say(&silent, &on, request));
    raw_until(&silent, &on, "x=0");
    assert_true(raw_say(&known, &on, request));
    raw_until(&known, &on, "x=0");
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    assert_int_equal(write(known.fd, request, sizeof(request) - 1), sizeof(request) - 1);
    starve(); /* the next turn finds the time of idle connections over, and a request */
    raw_until(&known, &on, NULL);
    assert_true(raw_has(&known, "Connection: close\r\n"));
    raw_until(&silent, &on, NULL);
    assert_false(raw_has(&silent, "Connection: close\r\n"));
    raw_close(&known);
    raw_close(&silent);
    RIG_UNTIL(&on, on.is_drained);
    rig_fini(&on);
}

/* Bytes that never become a request hold a drain up no longer than a head may take. */
static void test_drain_waits_for_no_half_a_request(void **state)
{
    (void)state;
    rig on;
    raw half;
    http_server_limits limits = http_server_default_limits;
    limits.head_timeout_ms = 50;
    rig_init(&on, &limits);
    raw_open(&half, &on);
    assert_true(raw_say(&half, &on, "GET /info HTTP/1.1\r\n" HOST "\r\n"));
    raw_until(&half, &on, "x=0");
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    assert_int_equal(write(half.fd, "GET /in", 7), 7);
    starve();
    raw_until(&half, &on, NULL);
    assert_true(raw_has(&half, "408 Request Timeout"));
    raw_close(&half);
    RIG_UNTIL(&on, on.is_drained);
    rig_fini(&on);
}

static void test_idle_timeout_answers_what_came_while_it_starved(void **state)
{
    (void)state;
    static const char request[] = "GET /info HTTP/1.1\r\n" HOST "\r\n";
    rig on;
    raw known;
    http_server_limits limits = http_server_default_limits;
    limits.idle_timeout_ms = 100;
    rig_init(&on, &limits);
    raw_open(&known, &on);
    assert_int_equal(write(known.fd, request, sizeof(request) - 1), sizeof(request) - 1);
    raw_until(&known, &on, "x=0");
    assert_int_equal(write(known.fd, request, sizeof(request) - 1), sizeof(request) - 1);
    starve();
    raw_until(&known, &on, NULL); /* idle again, and then over */
    assert_int_equal(raw_count(&known, "200 OK"), 2);
    raw_close(&known);
    rig_fini(&on);
}

/* What a request that waits is answered finds no room in the kernel. */
static void fill_kernel(http_exchange *exchange)
{
    static char junk[4096];
    uv_os_fd_t fd;
    int bytes = 4096;
    net_socket *socket = exchange_connection(exchange)->socket;
    memset(junk, '-', sizeof(junk));
    assert_int_equal(uv_fileno((const uv_handle_t *)&socket->tcp, &fd), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    do { /* what the peer's side still takes makes room again */
        while (send(fd, junk, sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
    } while (poll(&room, 1, 300) > 0);
    while (send(fd, junk, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

/* An answer that was gathered has an end of its exchange before the kernel has it: whoever reads
 * slowly gets it all the same, whether its connection then ends or is drained. */
static void test_slow_readers_get_the_last_answer(void **state)
{
    (void)state;
    static const char *const requests[] = {"GET /wait HTTP/1.1\r\n" HOST
                                           "Connection: close\r\n\r\n",
                                           "GET /wait HTTP/1.1\r\n" HOST "\r\n"};
    rig on;
    raw slow[2];
    rig_init(&on, NULL);
    for (size_t i = 0; i < 2; i++) {
        raw_open(&slow[i], &on);
        assert_true(raw_say(&slow[i], &on, requests[i]));
        RIG_UNTIL(&on, on.pending_count == 1);
        http_exchange *exchange = on.pending[0];
        fill_kernel(exchange);
        rig_reply(exchange, 200, STR("the last answer"));
        RIG_UNTIL(&on, on.complete == (int)i + 1);
        assert_true(socket_queued_bytes(exchange_connection(exchange)->socket) > 0);
    }
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    int64_t later = rig_now_ms() + 3500; /* more than a connection that is over may linger */
    RIG_UNTIL(&on, rig_now_ms() > later);
    for (size_t i = 0; i < 2; i++) {
        raw_until(&slow[i], &on, "the last answer");
        raw_close(&slow[i]);
    }
    RIG_UNTIL(&on, on.is_drained);
    rig_fini(&on);
}

/* … but not for ever. */
static void test_who_reads_nothing_is_cut_after_the_last_answer(void **state)
{
    (void)state;
    rig on;
    raw slow;
    http_server_limits limits = http_server_default_limits;
    limits.write_timeout_ms = 100;
    rig_init(&on, &limits);
    raw_open(&slow, &on);
    assert_true(raw_say(&slow, &on, "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    fill_kernel(on.pending[0]);
    rig_reply(on.pending[0], 200, STR("nobody hears"));
    RIG_UNTIL(&on, on.complete == 1);
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    RIG_UNTIL(&on, on.is_drained);
    raw_close(&slow);
    rig_fini(&on);
}

static void test_drain_of_nothing(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    http_server_drain(on.server, 60000, rig_is_drained, &on);
    assert_false(on.is_drained);
    RIG_UNTIL(&on, on.is_drained);
    assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_ERR_STATE);
    rig_fini(&on);
}

static void test_free_inside_the_handler(void **state)
{
    (void)state;
    rig on;
    raw first, second;
    rig_init(&on, NULL);
    raw_open(&first, &on);
    assert_true(raw_say(&first, &on, "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    RIG_UNTIL(&on, on.pending_count == 1);
    raw_open(&second, &on);
    assert_true(raw_say(&second, &on,
                        "GET /free HTTP/1.1\r\n" HOST "\r\nGET /info HTTP/1.1\r\n" HOST "\r\n"));
    raw_until(&second, &on, NULL);
    raw_until(&first, &on, NULL);
    assert_int_equal(on.requests, 2);
    assert_int_equal(on.cut, 2);
    raw_close(&first);
    raw_close(&second);
    rig_fini(&on);
}

static void free_in_closed(void *user, http_exchange *exchange, bool is_complete)
{
    rig *on = user;
    rig_closed(user, exchange, is_complete);
    http_server *server = on->server;
    on->server = NULL;
    http_server_free(server);
}

static void test_free_inside_closed(void **state)
{
    (void)state;
    static const http_handler handler = {.request = rig_request, .closed = free_in_closed};
    const char *requests[] = {"GET /info HTTP/1.1\r\n" HOST "\r\n",
                              "GET /deferred HTTP/1.1\r\n" HOST "\r\n",
                              "GET /wait HTTP/1.1\r\n" HOST "\r\n"};
    for (size_t i = 0; i < 3; i++) {
        rig on;
        raw client;
        memset(&on, 0, sizeof(on));
        assert_int_equal(loop_new(&on.loop), BAY_OK);
        http_server_options options = {
            .limits = http_server_default_limits, .handler = &handler, .user = &on};
        assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
        assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
        raw_open(&client, &on);
        assert_true(raw_say(&client, &on, requests[i]));
        RIG_UNTIL(&on, on.requests == 1);
        if (i == 2) {
            raw_close(&client);
        }
        RIG_UNTIL(&on, on.server == NULL);
        if (i != 2) {
            raw_close(&client);
        }
        rig_fini(&on);
    }
}

static void test_free_with_everything_open(void **state)
{
    (void)state;
    rig on;
    raw clients[4];
    rig_init(&on, NULL);
    const char *requests[] = {"GET /wait HTTP/1.1\r\n" HOST "\r\n",
                              "GET /stream HTTP/1.1\r\n" HOST "\r\n", "GET /wa",
                              "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nx"};
    for (size_t i = 0; i < 4; i++) {
        raw_open(&clients[i], &on);
        assert_true(raw_say(&clients[i], &on, requests[i]));
    }
    RIG_UNTIL(&on, on.pending_count == 2);
    rig_fini(&on);
    for (size_t i = 0; i < 4; i++) {
        raw_close(&clients[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply_has_its_framing),
        cmocka_unit_test(test_request_views),
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_http_1_0),
        cmocka_unit_test(test_pipelining),
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_large_body),
        cmocka_unit_test(test_requests_that_fill_one_read),
        cmocka_unit_test(test_head_has_no_body),
        cmocka_unit_test(test_expect_continue),
        cmocka_unit_test(test_reply_fields_cannot_inject),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_that_outgrows_its_cork),
        cmocka_unit_test(test_disconnect_while_pending),
        cmocka_unit_test(test_half_closed),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_cuts_after_its_grace),
        cmocka_unit_test(test_drain_takes_who_waits_to_be_accepted),
        cmocka_unit_test(test_drain_answers_what_came_while_it_starved),
        cmocka_unit_test(test_drain_waits_for_no_half_a_request),
        cmocka_unit_test(test_idle_timeout_answers_what_came_while_it_starved),
        cmocka_unit_test(test_slow_readers_get_the_last_answer),
        cmocka_unit_test(test_who_reads_nothing_is_cut_after_the_last_answer),
        cmocka_unit_test(test_drain_of_nothing),
        cmocka_unit_test(test_free_inside_the_handler),
        cmocka_unit_test(test_free_inside_closed),
        cmocka_unit_test(test_free_with_everything_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
