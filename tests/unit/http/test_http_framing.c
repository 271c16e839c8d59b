/* Replies that are mostly framing, as HTTP/1.1 carries them: a client reads at most 64 KiB more of
 * it than data. Requests: test_http_attack.c; HTTP/2: test_http2_attack.c, test_http2_client.c. */
#include "http_rig.h"

#include "http/http_client.h"

enum { CHUNKS = 20000 };

typedef struct outcome {
    size_t bytes;
    int ends;
    int failures;
    bay_err err;
} outcome;

static void on_body(void *user, bay_str bytes)
{
    outcome *self = user;
    self->bytes += bytes.len;
}

static void on_end(void *user)
{
    outcome *self = user;
    self->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    outcome *self = user;
    (void)was_sent;
    (void)text;
    self->failures++;
    self->err = err;
}

static const http_call_events events = {.body = on_body, .end = on_end, .failed = on_failed};

/* A reply of CHUNKS chunks. `rests`: as far as that counts, its peer is silent between any two. */
static outcome read_reply(bay_str chunk, bool rests)
{
    rig on;
    outcome out = {.ends = 0};
    http_client *client = NULL;
    http_call *call = NULL;
    char url[64];
    rig_init(&on, NULL);
    http_client_options options = {.limits = http_client_default_limits};
    options.limits.framing_rest_ms = rests ? 0 : options.limits.framing_rest_ms;
    assert_int_equal(http_client_new(on.loop, &options, &client), BAY_OK);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/stream", http_server_port(on.server));
    http_call_spec spec = {.method = STR("GET"), .url = str_of(url)};
    assert_int_equal(http_client_call(client, &spec, &events, &out, &call, NULL), BAY_OK);
    RIG_UNTIL(&on, on.pending_count == 1);
    for (int i = 0; i < CHUNKS && on.pending_count == 1; i++) {
        bay_err err = http_stream_write(on.pending[0], chunk);
        while (err == BAY_ERR_AGAIN && on.pending_count == 1 && on.drained == 0) {
            (void)loop_turn(on.loop, 1);
        }
        on.drained = 0;
    }
    if (on.pending_count == 1) {
        http_stream_end(on.pending[0]);
    }
    RIG_UNTIL(&on, out.ends + out.failures > 0 && on.pending_count == 0);
    http_client_free(client);
    rig_fini(&on);
    return out;
}

static void test_reply_of_framing(void **state)
{
    (void)state;
    static const char *const chunks[] = {"a", ":\n\n"};
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        outcome out = read_reply(str_of(chunks[i]), false);
        bool is_fine = i == 1; /* 5 of framing, 3 of data: not too much yet */
        assert_int_equal(out.ends, is_fine);
        assert_int_equal(out.err, is_fine ? BAY_OK : BAY_ERR_LIMIT);
    }
}

static void test_reply_of_larger_chunks(void **state)
{
    (void)state;
    outcome out = read_reply(STR("abcdef"), false);
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.bytes, CHUNKS * 6);
}

/* A stream that is kept alive, chunk by small chunk, goes on for ever. */
static void test_reply_that_rests(void **state)
{
    (void)state;
    outcome out = read_reply(STR("a"), true);
    assert_int_equal(out.ends, 1);
    assert_int_equal(out.bytes, CHUNKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply_of_framing),
        cmocka_unit_test(test_reply_of_larger_chunks),
        cmocka_unit_test(test_reply_that_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
