/* Client and server do everything they may do, in an order that a seeded generator chooses: replies
 * at once and later, streams, aborts, cancels, pauses, raw clients that leave in mid-word. What
 * must hold at the end: every exchange closed once, every call ended at most once, nothing left.
 * The seed is printed, so a failure can be run again (PATCHBAY_SEED). */
#include "http_rig.h"

#include "http/http_client.h"

enum { STEPS = 6000, CALLS = 24, RAWS = 12, LARGE = 200 * 1024 };

typedef struct storm storm;

typedef struct flight {
    storm *owner;
    http_call *call; /* NULL: over */
    int heads;
    size_t body_bytes;
    bool is_paused;
} flight;

struct storm {
    rig on;
    http_client *client;
    uint64_t random;
    flight flights[CALLS];
    raw raws[RAWS];
    int ends, failures, cancels, begun;
    char large[LARGE];
};

static uint32_t roll(storm *self, uint32_t below)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (uint32_t)(self->random >> 20) % below;
}

/* --- the server's side ------------------------------------------------------------------------ */

static void answer(storm *self, http_exchange *exchange)
{
    bay_str body = {self->large, roll(self, 4) == 0 ? LARGE : roll(self, 300)};
    switch (roll(self, 8)) {
    case 0:
        http_exchange_abort(exchange);
        break;
    case 1:
    case 2:
        if (http_stream_open(exchange, 200, NULL, 0, roll(self, 2) == 0) == BAY_OK) {
            (void)http_stream_write(exchange, body);
        }
        break;
    default:
        http_exchange_reply(exchange, 200, NULL, 0, body);
        break;
    }
}

static void storm_request(void *user, http_exchange *exchange)
{
    storm *self = user;
    self->on.requests++;
    if (self->on.pending_count < RIG_PENDING) {
        self->on.pending[self->on.pending_count++] = exchange;
        if (roll(self, 2) == 0) {
            answer(self, exchange);
        }
    } else {
        answer(self, exchange);
        http_stream_end(exchange);
    }
}

static void storm_closed(void *user, http_exchange *exchange, bool is_complete)
{
    rig_closed(&((storm *)user)->on, exchange, is_complete);
}

static void storm_drained(void *user, http_exchange *exchange)
{
    storm *self = user;
    if (roll(self, 2) == 0) {
        http_stream_end(exchange);
    }
}

static void poke_exchange(storm *self)
{
    if (self->on.pending_count == 0) {
        return;
    }
    http_exchange *exchange = self->on.pending[roll(self, (uint32_t)self->on.pending_count)];
    if (roll(self, 2) == 0) {
        answer(self, exchange);
    } else if (roll(self, 2) == 0) {
        (void)http_stream_write(exchange, (bay_str){self->large, roll(self, 70000)});
    } else {
        http_stream_end(exchange);
    }
}

/* --- the client's side ------------------------------------------------------------------------ */

static void surprise(flight *one)
{
    storm *self = one->owner;
    switch (roll(self, 16)) {
    case 0:
        http_call_cancel(one->call);
        one->call = NULL;
        self->cancels++;
        break;
    case 1:
    case 2:
        http_call_pause(one->call);
        one->is_paused = true;
        break;
    default:
        break;
    }
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    flight *one = user;
    assert_non_null(one->call);
    assert_true(status == 200 || status == 400);
    assert_true(count == 0 || fields[0].name.len > 0);
    assert_int_equal(one->heads++, 0);
    surprise(one);
}

static void on_body(void *user, bay_str bytes)
{
    flight *one = user;
    assert_non_null(one->call);
    assert_false(one->is_paused);
    one->body_bytes += bytes.len;
    surprise(one);
}

static void on_end(void *user)
{
    flight *one = user;
    assert_non_null(one->call);
    one->call = NULL;
    one->owner->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    flight *one = user;
    assert_non_null(one->call);
    assert_true(err != BAY_OK && text != NULL && (was_sent || one->heads == 0));
    one->call = NULL;
    one->owner->failures++;
}

static void begin_call(storm *self, flight *one)
{
    static const http_call_events events = {
        .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/x", http_server_port(self->on.server));
    http_call_spec spec = {.method = STR("POST"),
                           .url = str_of(url),
                           .body = {self->large, roll(self, 8) == 0 ? LARGE : roll(self, 500)}};
    spec.timeout_ms = roll(self, 8) == 0 ? 1 : 60000;
    *one = (flight){.owner = self};
    bay_err err = http_client_call(self->client, &spec, &events, one, &one->call, NULL);
    assert_true(err == BAY_OK || err == BAY_ERR_BUSY);
    self->begun += err == BAY_OK;
}

static void poke_call(storm *self)
{
    flight *one = &self->flights[roll(self, CALLS)];
    if (one->call == NULL) {
        begin_call(self, one);
    } else if (one->is_paused) {
        one->is_paused = false;
        http_call_resume(one->call);
    } else if (roll(self, 10) == 0) {
        http_call_cancel(one->call);
        one->call = NULL;
        self->cancels++;
    }
}

/* --- clients without manners ------------------------------------------------------------------ */

static void poke_raw(storm *self)
{
    static const char text[] = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"
                               "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"
                               "GET /bad HTTP/1.1\nHost: h\n\n";
    raw *one = &self->raws[roll(self, RAWS)];
    if (one->fd < 0) {
        raw_open(one, &self->on);
        return;
    }
    switch (roll(self, 6)) {
    case 0:
        if (roll(self, 2) == 0) {
            struct linger hard = {.l_onoff = 1};
            setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        }
        raw_close(one);
        break;
    case 1:
        shutdown(one->fd, SHUT_WR);
        break;
    case 2:
        raw_pump(one);
        buf_clear(&one->got);
        break;
    default:
        (void)!send(one->fd, text, roll(self, sizeof(text)), MSG_NOSIGNAL);
        break;
    }
}

/* --- the storm -------------------------------------------------------------------------------- */

static void begin(storm *self)
{
    static const http_handler handler = {storm_request, storm_closed, storm_drained};
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    options.limits.stream_high_bytes = 64 * 1024;
    options.limits.stream_max_bytes = 512 * 1024;
    options.limits.head_timeout_ms = 50;
    options.limits.write_timeout_ms = 200;
    assert_int_equal(http_server_new(self->on.loop, &options, &self->on.server), BAY_OK);
    assert_int_equal(http_server_listen(self->on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    http_client_options client = {.limits = http_client_default_limits};
    client.limits.connections_per_origin = 8;
    client.limits.queue_per_origin = 8;
    client.limits.idle_timeout_ms = 20;
    assert_int_equal(http_client_new(self->on.loop, &client, &self->client), BAY_OK);
    memset(self->large, 'l', LARGE);
    for (int i = 0; i < RAWS; i++) {
        self->raws[i].fd = -1;
    }
}

static void test_storm(void **state)
{
    (void)state;
    storm *self = calloc(1, sizeof(storm));
    assert_non_null(self);
    const char *seed = getenv("PATCHBAY_SEED");
    self->random = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)rig_now_ms() * 2654435761u;
    self->random |= 1;
    print_message("PATCHBAY_SEED=%llu\n", (unsigned long long)self->random);
    begin(self);
    for (int step = 0; step < STEPS; step++) {
        switch (roll(self, 4)) {
        case 0:
            poke_call(self);
            break;
        case 1:
            poke_exchange(self);
            break;
        case 2:
            poke_raw(self);
            break;
        default:
            (void)loop_turn(self->on.loop, 0);
            break;
        }
    }
    for (int i = 0; i < RAWS; i++) {
        raw_close(&self->raws[i]);
    }
    if (roll(self, 2) == 0) {
        http_server_drain(self->on.server, 20, rig_is_drained, &self->on);
        RIG_UNTIL(&self->on, self->on.is_drained);
    }
    http_client_free(self->client);
    assert_int_equal(self->begun, self->ends + self->failures + self->cancels);
    assert_true(self->ends > 0 && self->failures > 0 && self->cancels > 0);
    assert_true(self->on.complete > 0 && self->on.cut > 0);
    rig_fini(&self->on);
    free(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
