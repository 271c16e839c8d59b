/* Requests that two readers could understand differently, or that no reader should: each is refused
 * with its status, the connection ends so that the client can read why, and the handler never hears
 * of it. */
#include "http_rig.h"

typedef struct attack {
    const char *name;
    const char *request;
    int status;
} attack;

#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const attack attacks[] = {
    {"CL and TE", POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX", 400},
    {"TE and CL", POST "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX", 400},
    {"two lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400},
    {"two lengths in one", POST "Content-Length: 5, 6\r\n\r\nhello!", 400},
    {"negative length", POST "Content-Length: -1\r\n\r\n", 400},
    {"length with a sign", POST "Content-Length: +5\r\n\r\nhello", 400},
    {"length in hex", POST "Content-Length: 0x5\r\n\r\nhello", 400},
    {"huge length", POST "Content-Length: 99999999999999999999999\r\n\r\n", 400},
    {"bare LF", "POST /echo HTTP/1.1\nHost: a\nContent-Length: 2\n\nhi", 400},
    {"one bare LF", "GET /echo HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
    {"bare CR", "GET /echo HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},
    {"obs-fold", "GET /echo HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400},
    {"space before the colon", POST "Content-Length : 2\r\n\r\nhi", 400},
    {"space before a name", "GET /echo HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"empty name", "GET /echo HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400},
    {"no colon", "GET /echo HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", 400},
    {"NUL by another name", "GET /echo HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
    {"two codings", POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400},
    {"two coding fields",
     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"coding in HTTP/1.0",
     "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"no host", "GET /echo HTTP/1.1\r\n\r\n", 400},
    {"two hosts", "GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
    {"host and another target", "GET http://b/echo HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"two spaces", "GET  /echo HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"no version", "GET /echo\r\nHost: a\r\n\r\n", 400},
    {"version 9.9", "GET /echo HTTP/9.9\r\nHost: a\r\n\r\n", 505},
    {"a TLS hello", "\x16\x03\x01\x02\x01\x01\r\n\r\n", 400},
    {"negative chunk", CHUNKED "-1\r\n\r\n", 400},
    {"huge chunk", CHUNKED "ffffffffffffffffff\r\n", 400},
    {"chunk in decimal", CHUNKED "5g\r\nhello\r\n0\r\n\r\n", 400},
    {"chunk with 0x", CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", 400},
    {"chunk without its end", CHUNKED "5\r\nhelloX\r\n0\r\n\r\n", 400},
    {"chunk ended by LF", CHUNKED "5\nhello\n0\n\n", 400},
    {"bare CR in an extension", CHUNKED "5;a\rb\r\nhello\r\n0\r\n\r\n", 400},
    {"bare LF in an extension", CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n", 400},
    {"a trailer that frames", CHUNKED "0\r\nContent-Length: 5\r\n\r\n", 400},
    {"another expectation", POST "Content-Length: 2\r\nExpect: x\r\n\r\nhi", 417},
    {"an unknown coding", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
};

static void check(rig *on, const attack *one, raw *client)
{
    char status[32];
    snprintf(status, sizeof(status), "HTTP/1.1 %d ", one->status);
    raw_until(client, on, NULL);
    if (!raw_starts(client, status) || on->requests != 0) {
        fail_msg("%s: %d requests, answer %.*s", one->name, on->requests, (int)client->got.len,
                 client->got.at);
    }
    assert_true(raw_has(client, "Connection: close\r\n"));
    assert_true(raw_has(client, "Content-Type: text/plain"));
    assert_int_equal(raw_count(client, "Connection: "), 1); /* one reply */
    assert_false(client->is_reset);
    assert_false(str_ends(buf_view(&client->got), STR("\r\n\r\n"))); /* it names what was wrong */
}

static void test_refused(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        raw client;
        raw_open(&client, &on);
        (void)raw_say(&client, &on, attacks[i].request);
        check(&on, &attacks[i], &client);
        raw_close(&client);
    }
    rig_fini(&on);
}

/* The verdict does not depend on how the bytes arrive. */
static void test_refused_byte_by_byte(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        raw client;
        raw_open(&client, &on);
        for (const char *at = attacks[i].request; *at != '\0'; at++) {
            if (!raw_send(&client, &on, at, 1)) {
                break;
            }
        }
        check(&on, &attacks[i], &client);
        raw_close(&client);
    }
    rig_fini(&on);
}

/* What follows a refused request on its connection is never read as a request. */
static void test_nothing_is_smuggled_behind(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        raw client;
        char text[1024];
        snprintf(text, sizeof(text), "%sGET /echo HTTP/1.1\r\nHost: a\r\n\r\n", attacks[i].request);
        if (str_ends(str_of(attacks[i].request), STR("\n")) || attacks[i].status == 417) {
            raw_open(&client, &on);
            (void)raw_say(&client, &on, text);
            check(&on, &attacks[i], &client);
            raw_close(&client);
        }
    }
    rig_fini(&on);
}

/* A request that was fine is answered before the attack behind it is. */
static void test_attack_behind_a_good_request(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_whole(&client, &on,
              "GET /deferred HTTP/1.1\r\nHost: a\r\n\r\n" POST
              "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
              "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(raw_starts(&client, "HTTP/1.1 200 "));
    assert_true(raw_has(&client, "HTTP/1.1 400 "));
    assert_int_equal(raw_count(&client, "HTTP/1.1 "), 2);
    assert_int_equal(on.requests, 1);
    raw_close(&client);
    rig_fini(&on);
}

/* A NUL cannot stand in the table above. */
static void test_nul_bytes(void **state)
{
    (void)state;
    static const char nul[] = "GET /echo HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n";
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    (void)raw_send(&client, &on, nul, sizeof(nul) - 1);
    check(&on, &(attack){"NUL", nul, 400}, &client);
    raw_close(&client);
    rig_fini(&on);
}

/* Others notice nothing while one connection after the other misbehaves. */
/* Octet by octet a body costs six times what it counts; with zeros before each size a hundred. */
static void test_a_body_of_framing(void **state)
{
    (void)state;
    static const char *const chunks[] = {"1\r\na\r\n", "0000000000000001\r\na\r\n"};
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        rig on;
        raw client;
        buf out;
        rig_init(&on, NULL);
        buf_init(&out, SIZE_MAX / 2);
        buf_lit(&out, CHUNKED);
        for (int k = 0; k < 20000; k++) {
            buf_str(&out, str_of(chunks[i]));
        }
        raw_open(&client, &on);
        (void)raw_send(&client, &on, out.at, out.len);
        raw_until(&client, &on, NULL);
        assert_true(raw_starts(&client, "HTTP/1.1 413 "));
        assert_true(raw_has(&client, "framing"));
        assert_int_equal(on.requests, 0);
        raw_close(&client);
        buf_fini(&out);
        rig_fini(&on);
    }
}

/* RFC 9110 section 5.6.3: bad white space in chunk extensions is read over. */
static void test_bad_white_space_in_extensions(void **state)
{
    (void)state;
    rig on;
    raw client;
    rig_init(&on, NULL);
    raw_open(&client, &on);
    assert_true(raw_say(&client, &on, CHUNKED "2 ; a\t=\t\"b\" ;c\r\nhi\r\n0 ;d\r\n\r\n"));
    raw_until(&client, &on, "hi");
    assert_true(raw_starts(&client, "HTTP/1.1 200 "));
    assert_int_equal(on.requests, 1);
    raw_close(&client);
    rig_fini(&on);
}

static void test_others_go_on(void **state)
{
    (void)state;
    rig on;
    raw good;
    rig_init(&on, NULL);
    raw_open(&good, &on);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        raw bad;
        raw_open(&bad, &on);
        (void)raw_say(&bad, &on, attacks[i].request);
        buf_clear(&good.got);
        assert_true(raw_say(&good, &on, POST "Content-Length: 4\r\n\r\ngood"));
        raw_until(&good, &on, "\r\n\r\ngood");
        raw_close(&bad);
    }
    assert_int_equal(on.complete, (int)(sizeof(attacks) / sizeof(attacks[0])));
    raw_close(&good);
    rig_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_byte_by_byte),
        cmocka_unit_test(test_nothing_is_smuggled_behind),
        cmocka_unit_test(test_attack_behind_a_good_request),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_a_body_of_framing),
        cmocka_unit_test(test_bad_white_space_in_extensions),
        cmocka_unit_test(test_others_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
