/* Replies that come octet by octet, each long before the silence that would end them. */
#include "http_rig.h"

#include "http/http_client.h"

enum { WINDOW_MS = 100, DRIPS = 20, DRIP_MS = 20 };

typedef struct reply {
    http_call *call;
    int heads, ends, failures;
    size_t bytes;
    bay_err err;
    char text[100];
} reply;

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    reply *self = user;
    (void)status;
    (void)fields;
    (void)count;
    self->heads++;
}

static void on_body(void *user, bay_str bytes)
{
    reply *self = user;
    self->bytes += bytes.len;
}

static void on_end(void *user)
{
    reply *self = user;
    self->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    reply *self = user;
    (void)was_sent;
    self->failures++;
    self->err = err;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

typedef struct meeting {
    rig on; /* only its loop */
    http_client *client;
    int listener;
    raw peer;
    reply out;
} meeting;

/* A call, and the peer that has read its request. */
static void meet(meeting *self, uint32_t idle_ms)
{
    memset(self, 0, sizeof(*self));
    http_client_options options = {.limits = http_client_default_limits};
    options.limits.head_timeout_ms = WINDOW_MS;
    options.limits.body_timeout_ms = WINDOW_MS;
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    assert_int_equal(http_client_new(self->on.loop, &options, &self->client), BAY_OK);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 4), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
    http_call_spec spec = {
        .method = STR("POST"), .url = str_of(url), .body = STR("x"), .idle_ms = idle_ms};
    assert_int_equal(
        http_client_call(self->client, &spec, &events, &self->out, &self->out.call, NULL), BAY_OK);
    buf_init(&self->peer.got, SIZE_MAX / 2);
    RIG_UNTIL(&self->on, (self->peer.fd = accept4(self->listener, NULL, NULL,
                                                  SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    raw_until(&self->peer, &self->on, "\r\n\r\nx");
}

static void part(meeting *self)
{
    assert_int_equal(self->out.ends + self->out.failures, 1);
    raw_close(&self->peer);
    close(self->listener);
    http_client_free(self->client);
    loop_free(self->on.loop);
}

static bool is_over(const meeting *self)
{
    return self->out.ends + self->out.failures > 0;
}

/* Turns the loop until its clock has gone on by `ms`. */
static void pass(meeting *self, uint64_t ms)
{
    uint64_t until = loop_now_ms(self->on.loop) + ms;
    RIG_UNTIL(&self->on, loop_now_ms(self->on.loop) >= until);
}

static void says(meeting *self, const char *text)
{
    (void)raw_say(&self->peer, &self->on, text); /* it may have been ended */
}

typedef struct drips_case {
    const char *first, *drip, *last;
    uint32_t idle_ms;
    bay_err err; /* BAY_OK: the reply is whole in the end */
    const char *text;
} drips_case;

#define OK "HTTP/1.1 200 OK\r\n"
#define SLOW_BODY "the reply stopped coming, or comes too slowly"
#define SLOW_HEAD "the reply's head comes too slowly"

static const drips_case slow[] = {
    {"HTTP/1.1 102 Processing\r\n\r", "", "\n" OK "Content-Length: 0\r\n\r\n", 0, BAY_ERR_TIMEOUT,
     SLOW_HEAD},
    {"H", "", "TTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, BAY_ERR_TIMEOUT, SLOW_HEAD},
    {OK "Content-Length: 0\r\nX: ", "a", "\r\n\r\n", 0, BAY_ERR_TIMEOUT, SLOW_HEAD},
    {"HTTP/1.1 103 Early\r\n\r\n" OK "Content-Length: 0\r\nX: ", "a", "\r\n\r\n", 0,
     BAY_ERR_TIMEOUT, SLOW_HEAD},
    {OK "Content-Length: 20\r\n\r\n", "a", "", 0, BAY_ERR_TIMEOUT, SLOW_BODY},
    {OK "Content-Length: 20\r\n\r\n", "a", "", WINDOW_MS, BAY_ERR_TIMEOUT, SLOW_BODY},
    {OK "Content-Length: 20\r\nContent-Type: application/json\r\n\r\n", "a", "", 0, BAY_ERR_TIMEOUT,
     SLOW_BODY},
    {OK "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n", 0, BAY_ERR_TIMEOUT,
     SLOW_BODY},
    {OK "Transfer-Encoding: chunked\r\n\r\n14\r\n12345678901234567890\r\n0\r\nX: ", "a", "\r\n\r\n",
     0, BAY_ERR_TIMEOUT, SLOW_BODY},
    {OK "Connection: close\r\n\r\n", "a", "", 0, BAY_ERR_TIMEOUT, SLOW_BODY},
};

static const drips_case patient[] = {
    {OK "Content-Length: 20\r\nContent-Type: text/event-stream\r\n\r\n", "\n", "", 0, BAY_OK, ""},
    {OK "Content-Length: 20\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n", "\n", "",
     RIG_GIVE_UP_MS, BAY_OK, ""},
    {OK "Content-Length: 0\r\nContent-Type: text/event-stream\r\n\r\n", "", "", 0, BAY_OK, ""},
    /* slow, but the call has credit enough */
    {OK "Content-Length: 20\r\n\r\n", "a", "", RIG_GIVE_UP_MS, BAY_OK, ""},
    {"HTTP/1.1 102 Processing\r\n\r\n", "", OK "Content-Length: 0\r\n\r\n", 0, BAY_OK, ""},
};

static void play(const drips_case *one)
{
    meeting self;
    meet(&self, one->idle_ms);
    says(&self, one->first);
    for (int i = 0; i < DRIPS && !is_over(&self); i++) {
        says(&self, one->drip);
        pass(&self, DRIP_MS);
    }
    says(&self, one->last);
    shutdown(self.peer.fd, SHUT_WR);
    RIG_UNTIL(&self.on, is_over(&self));
    if (self.out.err != one->err || strcmp(self.out.text, one->text) != 0) {
        fail_msg("\"%s\": %s (%s)", one->first, self.out.text, bay_err_text(self.out.err));
    }
    part(&self);
}

static void test_replies_in_drips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        play(&slow[i]);
    }
}

static void test_replies_that_may_take_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(patient) / sizeof(patient[0]); i++) {
        play(&patient[i]);
    }
}

/* An interim head in two pieces: the time for it ends with it. */
static void test_a_head_after_an_interim_one(void **state)
{
    (void)state;
    meeting self;
    meet(&self, 0);
    says(&self, "HTTP/1.1 103 Early");
    pass(&self, 1);
    says(&self, " Hints\r\n\r\n");
    pass(&self, 3 * WINDOW_MS);
    assert_false(is_over(&self));
    says(&self, OK "Content-Length: 0\r\n\r\n");
    RIG_UNTIL(&self.on, is_over(&self));
    assert_int_equal(self.out.ends, 1);
    part(&self);
}

/* What we do not take is not the peer's slowness. */
static void test_a_pause_is_not_the_peers(void **state)
{
    (void)state;
    meeting self;
    meet(&self, 0);
    says(&self, OK "Content-Length: 6\r\n\r\nabc");
    RIG_UNTIL(&self.on, self.out.bytes == 3);
    http_call_pause(self.out.call);
    says(&self, "def");
    pass(&self, 4 * WINDOW_MS);
    assert_false(is_over(&self));
    assert_int_equal(self.out.bytes, 3);
    http_call_resume(self.out.call);
    RIG_UNTIL(&self.on, is_over(&self));
    assert_int_equal(self.out.ends, 1);
    assert_int_equal(self.out.bytes, 6);
    part(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies_in_drips),
        cmocka_unit_test(test_replies_that_may_take_long),
        cmocka_unit_test(test_a_head_after_an_interim_one),
        cmocka_unit_test(test_a_pause_is_not_the_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
