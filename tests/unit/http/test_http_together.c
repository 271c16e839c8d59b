/* Client and server together: over TLS, on several loops at one address, and with every allocation
 * failing in turn. */
#include "http_rig.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>

#include "http/http_client.h"
#include "support/failing_memory.h"
#include "support/identity.h"

typedef struct outcome {
    buf body;
    int status;
    int ends;
    int failures;
    bay_err err;
    bool was_sent;
} outcome;

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    (void)fields;
    (void)count;
    ((outcome *)user)->status = status;
}

static void on_body(void *user, bay_str bytes)
{
    buf_str(&((outcome *)user)->body, bytes);
}

static void on_end(void *user)
{
    ((outcome *)user)->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    outcome *self = user;
    assert_non_null(text);
    self->failures++;
    self->err = err;
    self->was_sent = was_sent;
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

/* --- TLS -------------------------------------------------------------------------------------- */

static identity ours;

static int make_certificate(void **state)
{
    (void)state;
    identity_make(&ours,
                  (identity_spec){.name = "test", .alternatives = "IP:127.0.0.1,DNS:localhost"});
    return 0;
}

static int remove_certificate(void **state)
{
    (void)state;
    identity_free(&ours);
    return 0;
}

typedef struct pair {
    rig on;
    http_client *client;
    tls_context *server_tls;
    tls_context *client_tls;
} pair;

static void pair_init(pair *self, bool is_trusted)
{
    memset(self, 0, sizeof(*self));
    tls_options server = {.certificate_file = ours.certificate, .key_file = ours.key};
    tls_options client = {.ca_file = is_trusted ? ours.certificate : NULL};
    assert_int_equal(tls_server_new(&server, &self->server_tls, NULL), BAY_OK);
    assert_int_equal(tls_client_new(&client, &self->client_tls, NULL), BAY_OK);
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    http_server_options options = {.limits = http_server_default_limits,
                                   .handler = &rig_handler,
                                   .user = &self->on,
                                   .tls = self->server_tls};
    assert_int_equal(http_server_new(self->on.loop, &options, &self->on.server), BAY_OK);
    assert_int_equal(http_server_listen(self->on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    http_client_options client_options = {.limits = http_client_default_limits,
                                          .tls = self->client_tls};
    assert_int_equal(http_client_new(self->on.loop, &client_options, &self->client), BAY_OK);
}

static void pair_fini(pair *self)
{
    http_client_free(self->client);
    rig_fini(&self->on);
    tls_free(self->server_tls);
    tls_free(self->client_tls);
}

static void begin_in(pair *on, outcome *out, const char *scheme, const char *path, bay_str body,
                     bool is_http2)
{
    char url[96];
    memset(out, 0, sizeof(*out));
    buf_init(&out->body, SIZE_MAX / 2);
    snprintf(url, sizeof(url), "%s://127.0.0.1:%u/%s", scheme, http_server_port(on->on.server),
             path);
    http_call_spec spec = {
        .method = STR("POST"), .url = str_of(url), .body = body, .is_http2 = is_http2};
    http_call *call = NULL;
    assert_int_equal(http_client_call(on->client, &spec, &events, out, &call, NULL), BAY_OK);
}

static void begin(pair *on, outcome *out, const char *scheme, const char *path, bay_str body)
{
    begin_in(on, out, scheme, path, body, false);
}

static void finish(pair *on, outcome *out)
{
    RIG_UNTIL(&on->on, out->ends + out->failures > 0);
}

/* The same listener, by ALPN: calls of both protocols side by side, each on connections of its own.
 */
static void test_http2_by_alpn(void **state)
{
    (void)state;
    enum { LARGE = 1024 * 1024 };
    pair on;
    outcome out[4];
    if (!http_server_speaks_http2()) {
        return;
    }
    pair_init(&on, true);
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    for (int i = 0; i < 4; i++) {
        begin_in(&on, &out[i], "https", i < 3 ? "echo" : "events", (bay_str){large, LARGE}, i > 0);
    }
    for (int i = 0; i < 4; i++) {
        finish(&on, &out[i]);
        assert_int_equal(out[i].ends, 1);
        assert_int_equal(out[i].body.len, i < 3 ? LARGE : 7);
        buf_fini(&out[i].body);
    }
    assert_int_equal(http_server_connections(on.on.server), 2);
    free(large);
    pair_fini(&on);
    pair_init(&on, false); /* nobody vouches for the server */
    begin_in(&on, &out[0], "https", "echo", STR("secret"), true);
    finish(&on, &out[0]);
    assert_int_equal(out[0].err, BAY_ERR_TLS);
    assert_false(out[0].was_sent);
    assert_int_equal(on.on.requests, 0);
    buf_fini(&out[0].body);
    pair_fini(&on);
}

static void test_tls_end_to_end(void **state)
{
    (void)state;
    enum { LARGE = 3 * 1024 * 1024 };
    pair on;
    outcome out;
    pair_init(&on, true);
    for (int i = 0; i < 3; i++) {
        begin(&on, &out, "https", i == 1 ? "events" : i == 2 ? "deferred" : "echo", STR("secret"));
        finish(&on, &out);
        assert_int_equal(out.ends, 1);
        assert_true(str_eq(buf_view(&out.body), i == 1 ? STR("onetwo!") : STR("secret")));
        buf_fini(&out.body);
    }
    char *large = malloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = (char)(i * 31 >> 3);
    }
    begin(&on, &out, "https", "echo", (bay_str){large, LARGE});
    finish(&on, &out);
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.body.len, LARGE);
    assert_memory_equal(out.body.at, large, LARGE);
    free(large);
    buf_fini(&out.body);
    assert_int_equal(http_server_connections(on.on.server), 1); /* all on one connection */
    pair_fini(&on);
}

static void test_tls_distrust(void **state)
{
    (void)state;
    pair on;
    outcome out;
    pair_init(&on, false);
    begin(&on, &out, "https", "echo", STR("secret"));
    finish(&on, &out);
    assert_int_equal(out.failures, 1);
    assert_int_equal(out.err, BAY_ERR_TLS);
    assert_false(out.was_sent);
    assert_int_equal(on.on.requests, 0);
    buf_fini(&out.body);
    pair_fini(&on);
}

static void test_clear_text_to_a_tls_port(void **state)
{
    (void)state;
    pair on;
    outcome out;
    pair_init(&on, true);
    begin(&on, &out, "http", "echo", STR("secret"));
    finish(&on, &out);
    assert_int_equal(out.failures, 1);
    assert_int_equal(on.on.requests, 0);
    buf_fini(&out.body);
    pair_fini(&on);
}

/* --- several loops ---------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    rig on;
    uint16_t port;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    loop_run(self->on.loop);
    return NULL;
}

static void worker_is_drained(void *argument)
{
    worker *self = argument;
    http_server_free(self->on.server);
    self->on.server = NULL;
    loop_release(self->on.loop);
}

static void worker_drain(void *argument)
{
    worker *self = argument;
    http_server_drain(self->on.server, 10000, worker_is_drained, self);
}

static void worker_start(worker *self, uint16_t port)
{
    memset(self, 0, sizeof(*self));
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    http_server_options options = {.limits = http_server_default_limits,
                                   .handler = &rig_handler,
                                   .user = &self->on,
                                   .reuse_port = true};
    assert_int_equal(http_server_new(self->on.loop, &options, &self->on.server), BAY_OK);
    assert_int_equal(http_server_listen(self->on.server, str_of(address), NULL), BAY_OK);
    self->port = http_server_port(self->on.server);
    loop_hold(self->on.loop);
}

/* Two loops, two threads, one address; the calls come from a third loop. */
static void test_two_loops_share_an_address(void **state)
{
    (void)state;
    enum { CALLS = 64, ROUNDS = 4 };
    worker workers[2];
    outcome out[CALLS];
    pair on;
    memset(&on, 0, sizeof(on));
    worker_start(&workers[0], 0);
    worker_start(&workers[1], workers[0].port);
    assert_int_equal(workers[0].port, workers[1].port);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    assert_int_equal(loop_new(&on.on.loop), BAY_OK);
    http_client_options options = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(on.on.loop, &options, &on.client), BAY_OK);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/echo", workers[0].port);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            memset(&out[i], 0, sizeof(out[i]));
            buf_init(&out[i].body, SIZE_MAX / 2);
            http_call_spec spec = {
                .method = STR("POST"), .url = str_of(url), .body = STR("shared nothing")};
            http_call *call = NULL;
            assert_int_equal(http_client_call(on.client, &spec, &events, &out[i], &call, NULL),
                             BAY_OK);
        }
        for (int i = 0; i < CALLS; i++) {
            finish(&on, &out[i]);
            assert_int_equal(out[i].ends, 1);
            assert_true(str_eq(buf_view(&out[i].body), STR("shared nothing")));
            buf_fini(&out[i].body);
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(loop_post(workers[i].on.loop, worker_drain, &workers[i]), BAY_OK);
    }
    http_client_free(on.client);
    int requests = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].on.requests > 0); /* the kernel spreads 64 connections */
        assert_int_equal(workers[i].on.cut, 0);
        requests += workers[i].on.requests;
        rig_fini(&workers[i].on);
    }
    assert_int_equal(requests, CALLS * ROUNDS);
    loop_free(on.on.loop);
}

/* Who wants to hear nothing hears nothing. */
static void test_events_may_be_missing(void **state)
{
    (void)state;
    static const http_call_events none;
    rig on;
    http_client *client = NULL;
    http_client_options options = {.limits = http_client_default_limits};
    rig_init(&on, NULL);
    assert_int_equal(http_client_new(on.loop, &options, &client), BAY_OK);
    for (int i = 0; i < 2; i++) {
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", http_server_port(on.server),
                 i == 0 ? "echo" : "abort");
        http_call_spec spec = {.method = STR("POST"), .url = str_of(url), .body = STR("x")};
        http_call *call = NULL;
        assert_int_equal(http_client_call(client, &spec, &none, NULL, &call, NULL), BAY_OK);
        RIG_UNTIL(&on, on.complete == 1 && on.cut == i);
    }
    http_client_free(client);
    rig_fini(&on);
}

/* --- lack of memory --------------------------------------------------------------------------- */

/* The rig's handler takes a stream that cannot be opened for a failure; here it is expected. */
static void frugal_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    if (!str_eq(http_exchange_path(exchange), STR("/events"))) {
        rig_request(user, exchange);
        return;
    }
    self->requests++;
    if (http_stream_open(exchange, 200, NULL, 0, true) != BAY_OK) {
        rig_reply(exchange, 500, STR("no memory"));
        return;
    }
    (void)http_stream_write(exchange, STR("onetwo!"));
    http_stream_end(exchange);
}

static bay_err try_server(rig *on)
{
    static const http_handler handler = {.request = frugal_request, .closed = rig_closed};
    http_server_limits limits = http_server_default_limits;
    limits.connections_per_ip = 10;
    http_server_options options = {.limits = limits, .handler = &handler, .user = on};
    bay_err err = http_server_new(on->loop, &options, &on->server);
    return err == BAY_OK ? http_server_listen(on->server, STR("127.0.0.1:0"), NULL) : err;
}

static void try_calls(rig *on, http_client *client)
{
    static const char *paths[] = {"echo", "deferred", "events", "echo"};
    static char body[20000]; /* more than one read, more than is kept */
    for (size_t i = 0; i < 4; i++) {
        outcome out = {.status = 0};
        buf_init(&out.body, SIZE_MAX / 2);
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", http_server_port(on->server),
                 paths[i]);
        http_call_spec spec = {.method = STR("POST"),
                               .url = str_of(url),
                               .body = {body, i == 3 ? sizeof(body) : 10},
                               .timeout_ms = 200,
                               .idle_ms = 200};
        http_call *call = NULL;
        if (http_client_call(client, &spec, &events, &out, &call, NULL) == BAY_OK) {
            RIG_UNTIL(on, out.ends + out.failures > 0);
        }
        assert_true(out.ends + out.failures <= 1);
        buf_fini(&out.body);
    }
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        memset(&on, 0, sizeof(on));
        if (loop_new(&on.loop) == BAY_OK) {
            http_client *client = NULL;
            http_client_options options = {.limits = http_client_default_limits};
            if (try_server(&on) == BAY_OK &&
                http_client_new(on.loop, &options, &client) == BAY_OK) {
                try_calls(&on, client);
            }
            http_client_free(client);
            http_server_free(on.server);
            assert_int_equal(on.requests, on.complete + on.cut);
            loop_free(on.loop);
        }
        failing_memory_check();
        assert_true(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_end_to_end),
        cmocka_unit_test(test_http2_by_alpn),
        cmocka_unit_test(test_tls_distrust),
        cmocka_unit_test(test_clear_text_to_a_tls_port),
        cmocka_unit_test(test_two_loops_share_an_address),
        cmocka_unit_test(test_events_may_be_missing),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
