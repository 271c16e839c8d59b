/* Addresses of the gateway's own webhooks: what opens, what does not, what is shown of them, and
 * what agents tell them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/webhook.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "a2a/push.h"
#include "base/check.h"
#include "support/failing_memory.h"
#include "support/skipped.h"

#define BASE STR("https://gateway.example")
#define AGENT STR("far")

enum { NOW = 1000000, DAY_MS = 86400 * 1000 };

/* ---- what agents tell -------------------------------------------------------------------------
 */

static void expect_read(a2a_form heard, const char *body, const char *part)
{
    arena memory;
    json_doc doc;
    buf out;
    a2a_fault fault = {0};
    arena_init(&memory, 16 << 20);
    buf_init(&out, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(body), &a2a_json_limits, &memory, NULL), BAY_OK);
    json_val event;
    bay_err err = agents_webhook_read(heard, json_root(&doc), &memory, &event, &fault);
    if (err == BAY_OK) {
        buf_str(&out, json_raw(event));
    }
    if (part == NULL) {
        if (err != BAY_ERR_PROTOCOL) {
            print_error("%s\nwas read as %.*s\n", body, (int)out.len, out.at);
        }
        assert_int_equal(err, BAY_ERR_PROTOCOL);
        assert_int_equal(out.len, 0);
    } else {
        if (err != BAY_OK || memmem(out.at, out.len, part, strlen(part)) == NULL) {
            print_error("%s\nwanted %s\ncame %.*s %s\n", body, part, (int)out.len, out.at,
                        fault.text);
        }
        assert_int_equal(err, BAY_OK);
        assert_non_null(memmem(out.at, out.len, part, strlen(part)));
    }
    buf_fini(&out);
    arena_fini(&memory);
}

static void what_is_no_notification(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "1",
        "[]",
        "{}",
        "{\"kind\":\"other\"}",
        "{\"kind\":1}",
        "{\"task\":{}}",
        "{\"task\":1}",
        "{\"task\":{\"id\":\"t\"}}",
        "{\"statusUpdate\":{\"taskId\":\"t\"}}",
        "{\"task\":{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}},\"message\":{"
        "\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}]}}",
        "{\"id\":\"t\"}",
        "{\"id\":\"t\",\"status\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"error\":{\"code\":1}}",
    };
    for (int form = 0; form < A2A_FORMS; form++) {
        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
            expect_read((a2a_form)form, bodies[i], NULL);
        }
    }
}

static void notifications_of_every_version(void **state)
{
    (void)state;
    static const char *const now[] = {
        "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_WORKING\"}}}",
        "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":"
        "\"a\",\"parts\":[{\"text\":\"x\"}]}}}",
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}]}}",
        "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_COMPLETED\"}}}",
    };
    for (int form = 0; form < A2A_FORMS; form++) { /* some SDKs tell so, whatever was asked for */
        for (size_t i = 0; i < ARRAY_LEN(now); i++) {
            expect_read((a2a_form)form, now[i], now[i]);
        }
    }
    static const char *const task = "{\"task\":{\"id\":\"t\"";
    static const char *const old[] = {
        "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"working\"}}",
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"working\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(old); i++) {
        expect_read(A2A_FORM_0_3, old[i], task);
        expect_read(A2A_FORM_0_3, old[i], "TASK_STATE_WORKING");
    }
    expect_read(A2A_FORM_0_3_PROTO, old[0], task); /* 0.3 has one body, whatever the binding */
    expect_read(A2A_FORM_0_3,
                "{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                "\"state\":\"completed\"},\"final\":true}",
                "{\"statusUpdate\":{\"taskId\":\"t\"");
    expect_read(A2A_FORM_0_3,
                "{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
                "\"parts\":[{\"kind\":\"text\",\"text\":\"x\"}]}}",
                "{\"artifactUpdate\":{\"taskId\":\"t\"");
    expect_read(A2A_FORM_0_3,
                "{\"kind\":\"message\",\"messageId\":\"m\",\"role\":\"agent\",\"parts\":[{"
                "\"kind\":\"text\",\"text\":\"x\"}]}",
                "{\"message\":{\"messageId\":\"m\"");
    expect_read(
        A2A_FORM_0_3_PROTO,
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_CANCELLED\"}}",
        "TASK_STATE_CANCELED");
    expect_read(A2A_FORM_0_3_PROTO,
                "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                "\"TASK_STATE_WORKING\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\","
                "\"content\":[{\"text\":\"x\"}]}}}}",
                "\"parts\":[{\"text\":\"x\"}]");
    expect_read(A2A_FORM_1_0,
                "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}",
                task);
    expect_read(A2A_FORM_0_1,
                "{\"id\":\"t\",\"sessionId\":\"c\",\"status\":{\"state\":\"completed\"}}", task);
    expect_read(A2A_FORM_0_1, "{\"id\":\"t\",\"status\":{\"state\":\"working\"},\"final\":false}",
                "{\"statusUpdate\":{\"taskId\":\"t\"");
}

#ifndef BAY_NO_TLS

/* ---- sealing ----------------------------------------------------------------------------------
 */

static const agents_webhook usual = {
    .caller_form = A2A_FORM_0_3,
    .agent_form = A2A_FORM_1_0,
    .url = STR_INIT("https://hooks.example/a?b=\"c\""),
    .token = STR_INIT("tok"),
    .scheme = STR_INIT("Bearer"),
    .credentials = STR_INIT("s3cret"),
    .id = STR_INIT("cfg"),
    .task_id = STR_INIT("t\0"
                        "1"),
    .client_id = STR_INIT("mine"),
    .principal = STR_INIT("ann"),
};

typedef struct sealed {
    seal_ring *ring;
    buf url;
    buf token;
    bay_str last; /* of url */
} sealed;

static void sealed_init(sealed *self, const agents_webhook *hook)
{
    a2a_fault fault = {0};
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    buf_init(&self->url, 1 << 16);
    buf_init(&self->token, 1 << 18);
    assert_int_equal(
        agents_webhook_seal(self->ring, BASE, AGENT, hook, NOW, &self->url, &self->token, &fault),
        BAY_OK);
    bay_str prefix = STR("https://gateway.example/a2a/far/push/");
    assert_true(str_starts(buf_view(&self->url), prefix));
    self->last = str_from(buf_view(&self->url), prefix.len);
}

static void sealed_fini(sealed *self)
{
    seal_ring_free(self->ring);
    buf_fini(&self->url);
    buf_fini(&self->token);
}

static bay_err open_url(const sealed *self, bay_str agent, bay_str text, uint64_t now,
                        agents_webhook *out, buf *plain)
{
    buf_init(plain, 1 << 16);
    return agents_webhook_open_url(self->ring, agent, text, now, plain, out);
}

static void expect_no_url(const sealed *self, bay_str agent, bay_str text, uint64_t now,
                          bay_err expected)
{
    buf plain;
    agents_webhook ignored = {0};
    assert_int_equal(open_url(self, agent, text, now, &ignored, &plain), expected);
    buf_fini(&plain);
}

static void expect_no_token(const sealed *self, bay_str agent, bay_str of, bay_str text,
                            uint64_t now, bay_err expected)
{
    buf plain;
    agents_webhook ignored = {0};
    buf_init(&plain, 1 << 16);
    assert_int_equal(agents_webhook_open_token(self->ring, agent, of, text, now, &plain, &ignored),
                     expected);
    buf_fini(&plain);
}

static void what_does_not_open(void **state)
{
    (void)state;
    sealed one, other;
    static char long_text[A2A_PUSH_CREDENTIAL_BYTES + 2];
    uint64_t late = NOW + (uint64_t)AGENTS_WEBHOOK_DAYS * DAY_MS;
    memset(long_text, 'A', sizeof(long_text));
    sealed_init(&one, &usual);
    sealed_init(&other, &usual);
    expect_no_url(&one, AGENT, STR(""), NOW, BAY_ERR_DENIED);
    expect_no_url(&one, AGENT, STR("x"), NOW, BAY_ERR_DENIED);
    expect_no_url(&one, AGENT, (bay_str){long_text, A2A_PUSH_URL_BYTES + 1}, NOW, BAY_ERR_DENIED);
    expect_no_url(&one, AGENT, other.last, NOW, BAY_ERR_DENIED); /* other keys */
    expect_no_url(&one, STR("near"), one.last, NOW, BAY_ERR_DENIED);
    expect_no_url(&one, STR("fa"), one.last, NOW, BAY_ERR_DENIED);
    expect_no_url(&one, AGENT, buf_view(&one.token), NOW, BAY_ERR_DENIED); /* another kind */
    expect_no_url(&one, AGENT, one.last, late, BAY_ERR_TIMEOUT);
    for (size_t len = 0; len < one.last.len; len++) {
        expect_no_url(&one, AGENT, str_head(one.last, len), NOW, BAY_ERR_DENIED);
    }
    char text[512];
    assert_true(one.last.len < sizeof(text));
    for (size_t i = 0; i < one.last.len; i++) {
        memcpy(text, one.last.at, one.last.len);
        text[i] = text[i] == 'A' ? 'B' : 'A';
        expect_no_url(&one, AGENT, (bay_str){text, one.last.len}, NOW, BAY_ERR_DENIED);
    }
    bay_str token = buf_view(&one.token);
    expect_no_token(&one, AGENT, one.last, STR(""), NOW, BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, one.last, one.last, NOW, BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, one.last, str_head(token, token.len - 1), NOW, BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, one.last, buf_view(&other.token), NOW, BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, other.last, token, NOW, BAY_ERR_DENIED); /* another address's */
    expect_no_token(&one, STR("near"), one.last, token, NOW, BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, one.last, (bay_str){long_text, sizeof(long_text)}, NOW,
                    BAY_ERR_DENIED);
    expect_no_token(&one, AGENT, one.last, token, late, BAY_ERR_TIMEOUT);
    /* of one ring, but of another registration */
    buf url, second;
    buf_init(&url, 1 << 16);
    buf_init(&second, 1 << 16);
    assert_int_equal(agents_webhook_seal(one.ring, BASE, AGENT, &usual, NOW, &url, &second, NULL),
                     BAY_OK);
    expect_no_token(&one, AGENT, one.last, buf_view(&second), NOW, BAY_ERR_DENIED);
    buf_fini(&url);
    buf_fini(&second);
    sealed_fini(&one);
    sealed_fini(&other);
}

static void assert_same(bay_str a, bay_str b)
{
    assert_true(str_eq(a, b));
}

static void what_was_sealed_comes_back(void **state)
{
    (void)state;
    sealed one;
    agents_webhook read = {0};
    buf plain, secrets;
    sealed_init(&one, &usual);
    assert_int_equal(open_url(&one, AGENT, one.last, NOW, &read, &plain), BAY_OK);
    buf_init(&secrets, 1 << 16);
    assert_int_equal(agents_webhook_open_token(one.ring, AGENT, one.last, buf_view(&one.token), NOW,
                                               &secrets, &read),
                     BAY_OK);
    assert_int_equal(read.caller_form, usual.caller_form);
    assert_int_equal(read.agent_form, usual.agent_form);
    assert_same(read.url, usual.url);
    assert_same(read.token, usual.token);
    assert_same(read.scheme, usual.scheme);
    assert_same(read.credentials, usual.credentials);
    assert_same(read.id, usual.id);
    assert_same(read.task_id, usual.task_id);
    assert_same(read.client_id, usual.client_id);
    assert_same(read.principal, usual.principal);
    buf_fini(&plain);
    buf_fini(&secrets);
    sealed_fini(&one);
}

/* What agents would refuse is refused here, in words that say what was too long. */
static void what_is_too_long(void **state)
{
    (void)state;
    static char text[A2A_PUSH_CREDENTIAL_BYTES];
    memset(text, 'a', sizeof(text));
    a2a_fault fault = {0};
    seal_ring *ring;
    buf url, token;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    buf_init(&url, 1 << 16);
    buf_init(&token, 1 << 18);
    assert_int_equal(agents_webhook_seal(ring, BASE, AGENT, &usual, NOW, &url, &token, &fault),
                     BAY_ERR_STATE); /* a ring without a key */
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    agents_webhook hook = usual;
    hook.url = (bay_str){text, A2A_PUSH_URL_BYTES};
    buf_clear(&url);
    assert_int_equal(agents_webhook_seal(ring, BASE, AGENT, &hook, NOW, &url, &token, &fault),
                     BAY_ERR_PROTOCOL);
    assert_int_equal(fault.error, A2A_E_INVALID_PARAMS);
    assert_true(str_starts(str_of(fault.text), STR("url:")));
    hook = usual;
    hook.credentials = (bay_str){text, sizeof(text)};
    hook.token = hook.credentials;
    buf_clear(&url);
    buf_clear(&token);
    assert_int_equal(agents_webhook_seal(ring, BASE, AGENT, &hook, NOW, &url, &token, &fault),
                     BAY_ERR_PROTOCOL);
    assert_true(str_starts(str_of(fault.text), STR("token, authentication:")));
    hook.token = STR("");
    hook.credentials = (bay_str){text, 5800};
    hook.url = (bay_str){text, 1400};
    buf_clear(&url);
    buf_clear(&token);
    assert_int_equal(agents_webhook_seal(ring, BASE, AGENT, &hook, NOW, &url, &token, &fault),
                     BAY_OK);
    buf_fini(&url);
    buf_fini(&token);
    seal_ring_free(ring);
}

/* ---- showing ----------------------------------------------------------------------------------
 */

static void show(const sealed *self, const char *answer, uint64_t now, buf *out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    buf_init(out, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(answer), NULL, &memory, NULL), BAY_OK);
    json_writer to;
    json_writer_init(&to, out);
    assert_int_equal(agents_webhook_show(self->ring, BASE, AGENT, json_root(&doc), now, &to),
                     BAY_OK);
    arena_fini(&memory);
}

static void expect_shown(const sealed *self, const char *answer, uint64_t now, const char *wanted)
{
    buf out;
    show(self, answer, now, &out);
    buf_char(&out, '\0');
    assert_string_equal(out.at, wanted);
    buf_fini(&out);
}

static void others_are_shown_as_they_are(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "{}",
        "{\"url\":\"https://hooks.example/\",\"token\":\"t\"}",
        "{\"url\":\"https://gateway.example/a2a/near/push/x\"}",
        "{\"url\":\"https://gateway.example.evil/a2a/far/push/x\"}",
        "{\"url\":1}",
        "{\"configs\":[]}",
        "{\"configs\":[{\"url\":\"https://hooks.example/\"}],\"nextPageToken\":\"\"}",
    };
    sealed one;
    sealed_init(&one, &usual);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        buf out;
        show(&one, answers[i], NOW, &out);
        assert_int_equal(out.len, 0);
        buf_fini(&out);
    }
    sealed_fini(&one);
}

#define SHOWN                                                                                      \
    "\"url\":\"https://hooks.example/a?b=\\\"c\\\"\",\"token\":\"tok\",\"authentication\":{"       \
    "\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}}"
#define CUT "{\"id\":\"cfg\",\"taskId\":\"t\",\"url\":\"https://gateway.example/a2a/far/push\"}"

static void ours_is_shown_as_it_was_registered(void **state)
{
    (void)state;
    sealed one;
    char answer[4096];
    uint64_t late = NOW + (uint64_t)AGENTS_WEBHOOK_DAYS * DAY_MS;
    sealed_init(&one, &usual);
    (void)snprintf(answer, sizeof(answer),
                   "{\"id\":\"cfg\",\"taskId\":\"t\",\"url\":\"%.*s\",\"token\":\"%.*s\"}",
                   (int)one.url.len, one.url.at, (int)one.token.len, one.token.at);
    expect_shown(&one, answer, NOW, "{\"id\":\"cfg\",\"taskId\":\"t\"," SHOWN);
    char many[8192];
    (void)snprintf(many, sizeof(many),
                   "{\"configs\":[{\"url\":\"https://b.example/\"},%s],\"nextPageToken\":\"\"}",
                   answer);
    expect_shown(
        &one, many, NOW,
        "{\"configs\":[{\"url\":\"https://b.example/\"},{\"id\":\"cfg\",\"taskId\":\"t\"," SHOWN
        "],\"nextPageToken\":\"\"}");
    /* an agent that shows no tokens: then secrets are not shown */
    (void)snprintf(many, sizeof(many), "{\"url\":\"%.*s\"}", (int)one.url.len, one.url.at);
    expect_shown(&one, many, NOW, "{\"url\":\"https://hooks.example/a?b=\\\"c\\\"\"}");
    /* slashes that are escaped */
    buf escaped;
    buf_init(&escaped, 1 << 16);
    buf_lit(&escaped, "{\"url\":\"");
    for (size_t i = 0; i < one.url.len; i++) {
        buf_str(&escaped, one.url.at[i] == '/' ? STR("\\/") : (bay_str){one.url.at + i, 1});
    }
    buf_lit(&escaped, "\"}");
    buf_char(&escaped, '\0');
    expect_shown(&one, escaped.at, NOW, "{\"url\":\"https://hooks.example/a?b=\\\"c\\\"\"}");
    buf_fini(&escaped);
    /* one that does not open shows nothing of what was sealed, nor its token */
    expect_shown(&one, answer, late, CUT);
    seal_ring *ring = one.ring;
    one.ring = NULL;
    expect_shown(&one, answer, NOW, CUT);
    one.ring = ring;
    (void)snprintf(many, sizeof(many),
                   "{\"id\":\"cfg\",\"taskId\":\"t\",\"url\":\"%.*s\",\"token\":\"forged\"}",
                   (int)one.url.len, one.url.at);
    expect_shown(
        &one, many, NOW,
        "{\"id\":\"cfg\",\"taskId\":\"t\",\"url\":\"https://hooks.example/a?b=\\\"c\\\"\"}");
    sealed_fini(&one);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void without_memory(void **state)
{
    (void)state;
    sealed one;
    sealed_init(&one, &usual);
    char answer[4096];
    (void)snprintf(answer, sizeof(answer), "{\"configs\":[{\"url\":\"%.*s\",\"token\":\"%.*s\"}]}",
                   (int)one.url.len, one.url.at, (int)one.token.len, one.token.at);
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf url, token, out;
        arena memory;
        json_doc doc;
        arena_init(&memory, 1 << 20);
        buf_init(&url, 1 << 16);
        buf_init(&token, 1 << 16);
        buf_init(&out, 1 << 16);
        bay_err err = agents_webhook_seal(one.ring, BASE, AGENT, &usual, NOW, &url, &token, NULL);
        err = err == BAY_OK ? json_parse(&doc, str_of(answer), NULL, &memory, NULL) : err;
        json_writer to;
        json_val event;
        json_writer_init(&to, &out);
        err = err == BAY_OK ? agents_webhook_show(one.ring, BASE, AGENT, json_root(&doc), NOW, &to)
                            : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        assert_true(err != BAY_OK || memmem(out.at, out.len, "s3cret", 6) != NULL);
        buf_clear(&out);
        if (err == BAY_OK) {
            err = json_parse(
                &doc,
                STR("{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                    "\"working\"}}"),
                NULL, &memory, NULL);
        }
        err = err == BAY_OK
                  ? agents_webhook_read(A2A_FORM_0_3, json_root(&doc), &memory, &event, NULL)
                  : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        buf_fini(&url);
        buf_fini(&token);
        buf_fini(&out);
        arena_fini(&memory);
        failing_memory_check();
    }
    sealed_fini(&one);
}
#else
#define WHY "this build has no TLS, so nothing is sealed"
SKIPPED(what_does_not_open, WHY)
SKIPPED(what_was_sealed_comes_back, WHY)
SKIPPED(what_is_too_long, WHY)
SKIPPED(others_are_shown_as_they_are, WHY)
SKIPPED(ours_is_shown_as_it_was_registered, WHY)
SKIPPED(without_memory, WHY)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_notification),
        cmocka_unit_test(notifications_of_every_version),
        cmocka_unit_test(what_does_not_open),
        cmocka_unit_test(what_was_sealed_comes_back),
        cmocka_unit_test(what_is_too_long),
        cmocka_unit_test(others_are_shown_as_they_are),
        cmocka_unit_test(ours_is_shown_as_it_was_registered),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
