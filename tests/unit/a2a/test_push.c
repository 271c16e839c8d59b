/* The queue of push notifications, with a clock that the test turns and a network that it plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "a2a/push.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { SENT = 4096 };
#define EVENT                                                                                      \
    "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":"             \
    "\"TASK_STATE_WORKING\"}}}"
#define TASK "{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}"

typedef struct post {
    a2a_push *queue;
    uint64_t sent[SENT]; /* ids */
    uint32_t attempts[SENT];
    size_t count;
    size_t queued, delivered, dead;
    uint64_t dead_id;
    uint64_t wake_ms;
    char last[65536]; /* the last sent: url, fields, body */
    char reason[128];
} post;

static void show(const a2a_delivery *delivery, char *out, size_t cap)
{
    int len = snprintf(out, cap, "%.*s\n", BAY_STR(delivery->url));
    for (size_t i = 0; i < delivery->field_count; i++) {
        len += snprintf(out + len, cap - (size_t)len, "%.*s: %.*s\n",
                        BAY_STR(delivery->fields[i].name), BAY_STR(delivery->fields[i].value));
    }
    snprintf(out + len, cap - (size_t)len, "\n%.*s", BAY_STR(delivery->body));
}

static void on_queued(void *user, const a2a_delivery *delivery)
{
    post *self = user;
    assert_true(delivery->id > 0);
    assert_int_equal(delivery->attempt, 0);
    self->queued++;
}

static void on_send(void *user, const a2a_delivery *delivery)
{
    post *self = user;
    assert_true(self->count < SENT);
    self->attempts[self->count] = delivery->attempt;
    self->sent[self->count++] = delivery->id;
    show(delivery, self->last, sizeof(self->last));
}

static void on_delivered(void *user, const a2a_delivery *delivery)
{
    (void)delivery;
    ((post *)user)->delivered++;
}

static void on_dead(void *user, const a2a_delivery *delivery, const char *reason)
{
    post *self = user;
    self->dead++;
    self->dead_id = delivery->id;
    snprintf(self->reason, sizeof(self->reason), "%s", reason);
}

static void on_wake(void *user, uint64_t at_ms)
{
    ((post *)user)->wake_ms = at_ms;
}

static const a2a_push_ops ops = {on_queued, on_send, on_delivered, on_dead, on_wake};

static void post_init(post *self, const a2a_push_limits *limits)
{
    memset(self, 0, sizeof(*self));
    assert_int_equal(a2a_push_new(limits, &ops, self, &self->queue), BAY_OK);
}

static bay_err add(post *self, const char *config, a2a_form form, const char *event,
                   const char *task)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    a2a_event *shared = a2a_event_new(str_of(event), 1, false);
    assert_non_null(shared);
    assert_int_equal(json_parse(&doc, str_of(config), NULL, &memory, NULL), BAY_OK);
    bay_err err = a2a_push_add(self->queue, json_root(&doc), form, shared, str_of(task), 0);
    a2a_event_unref(shared);
    arena_fini(&memory);
    return err;
}

static void add_for(post *self, const char *id)
{
    char config[256];
    snprintf(config, sizeof(config),
             "{\"id\":\"%s\",\"taskId\":\"t1\",\"url\":\"https://a.example/\"}", id);
    assert_int_equal(add(self, config, A2A_FORM_1_0, EVENT, ""), BAY_OK);
}

/* --- configurations --------------------------------------------------------------------------- */

static void configurations_that_are_refused(void **state)
{
    (void)state;
#define URL "\"url\":\"https://a.example/\","
    static const char *const configs[] = {
        "{}",
        "{\"url\":\"\"}",
        "{\"url\":1}",
        "{\"url\":\"/hook\"}",
        "{\"url\":\"ftp://a.example/\"}",
        "{\"url\":\"file:///etc/passwd\"}",
        "{\"url\":\"javascript:alert(1)\"}",
        "{\"url\":\"https://\"}",
        "{\"url\":\"https:///x\"}",
        "{\"url\":\"https://user:pw@a.example/\"}",
        "{\"url\":\"https://user@a.example/\"}",
        "{\"url\":\"https://a.example/\\r\\nX: y\"}",
        "{\"url\":\"https://a.example/ x\"}",
        "{\"url\":\"https://a.example:99999/\"}",
        "{" URL "\"token\":\"a\\r\\nX-Evil: 1\"}",
        "{" URL "\"token\":\"a\\nb\"}",
        "{" URL "\"token\":\"a\\u0000b\"}",
        "{" URL "\"token\":\"a\\u007fb\"}",
        "{" URL "\"token\":\" a\"}",
        "{" URL "\"token\":[]}",
        "{" URL "\"token\":\"\\udc00\"}",
        "{" URL "\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":\"a\\r\\nX: y\"}}",
        "{" URL "\"authentication\":{\"scheme\":\"Bearer\\r\\nX:\",\"credentials\":\"a\"}}",
        "{" URL "\"authentication\":{\"scheme\":\"Bearer x\",\"credentials\":\"a\"}}",
        "{" URL "\"authentication\":{\"scheme\":\"\",\"credentials\":\"a\"}}",
        "{" URL "\"authentication\":{\"credentials\":\"a\"}}",
        "{" URL "\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":1}}",
    };
    post self;
    post_init(&self, NULL);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        arena memory;
        json_doc doc;
        a2a_fault fault = {.error = A2A_NO_ERROR};
        arena_init(&memory, 1 << 20);
        assert_int_equal(json_parse(&doc, str_of(configs[i]), NULL, &memory, NULL), BAY_OK);
        if (a2a_push_config_check(json_root(&doc), &fault) != BAY_ERR_PROTOCOL) {
            fail_msg("fine: %s", configs[i]);
        }
        assert_int_equal(fault.error, A2A_E_INVALID_PARAMS);
        assert_null(strstr(fault.text, "Evil"));
        arena_fini(&memory);
        assert_int_equal(add(&self, configs[i], A2A_FORM_1_0, EVENT, ""), BAY_ERR_INVALID);
    }
    assert_int_equal(self.count + self.dead + self.queued, 0);
    a2a_push_free(self.queue);
    char long_one[A2A_PUSH_CREDENTIAL_BYTES + 200];
    for (int more = 0; more < 2; more++) {
        arena memory;
        json_doc doc;
        int len = snprintf(long_one, sizeof(long_one), "{" URL "\"token\":\"");
        memset(long_one + len, 'x', A2A_PUSH_CREDENTIAL_BYTES + (size_t)more);
        memcpy(long_one + len + A2A_PUSH_CREDENTIAL_BYTES + more, "\"}", 3);
        arena_init(&memory, 1 << 20);
        assert_int_equal(json_parse(&doc, str_of(long_one), NULL, &memory, NULL), BAY_OK);
        assert_int_equal(a2a_push_config_check(json_root(&doc), NULL),
                         more ? BAY_ERR_PROTOCOL : BAY_OK);
        arena_fini(&memory);
    }
}

static void what_is_sent(void **state)
{
    (void)state;
    post self;
    post_init(&self, NULL);
    const char *config = "{\"id\":\"c\",\"taskId\":\"t1\",\"url\":\"https://a.example/h?x=1\","
                         "\"token\":\"tok\",\"authentication\":{\"scheme\":\"Bearer\","
                         "\"credentials\":\"s3cret\"}}";
    assert_int_equal(add(&self, config, A2A_FORM_1_0, EVENT, ""), BAY_OK);
    assert_string_equal(self.last, "https://a.example/h?x=1\nContent-Type: application/a2a+json\n"
                                   "A2A-Version: 1.0\nAuthorization: Bearer s3cret\n"
                                   "X-A2A-Notification-Token: tok\nA2A-Notification-Token: tok\n"
                                   "\n" EVENT);
    a2a_push_done(self.queue, self.sent[0], 200, "", 0);
    assert_int_equal(add(&self, "{\"url\":\"http://a.example\"}", A2A_FORM_0_3, EVENT, TASK),
                     BAY_OK);
    assert_non_null(strstr(self.last, "Content-Type: application/json\nA2A-Version: 0.3\n\n{"));
    assert_non_null(strstr(self.last, "\"kind\":\"task\""));
    assert_non_null(strstr(self.last, "\"state\":\"working\""));
    assert_null(strstr(self.last, "Authorization"));
    /* A scheme without credentials says nothing. */
    assert_int_equal(add(&self,
                         "{\"url\":\"http://b.example\",\"authentication\":{\"scheme\":\"Basic\"}}",
                         A2A_FORM_1_0, EVENT, ""),
                     BAY_OK);
    assert_null(strstr(self.last, "Authorization"));
    assert_int_equal(self.queued, 3);
    assert_int_equal(self.delivered, 1);
    assert_int_equal(a2a_push_waiting(self.queue), 2);
    a2a_push_free(self.queue);
    a2a_push_free(NULL);
}

static void events_that_are_none(void **state)
{
    (void)state;
    post self;
    post_init(&self, NULL);
    const char *config = "{\"url\":\"http://a.example\"}";
    assert_int_equal(add(&self, config, A2A_FORM_0_3, "{", ""), BAY_ERR_INVALID);
    assert_int_equal(add(&self, config, A2A_FORM_0_3, EVENT, "{"), BAY_ERR_INVALID);
    assert_int_equal(self.count, 0);
    a2a_push_free(self.queue);
}

/* --- order and bounds ------------------------------------------------------------------------- */

static void one_webhook_gets_one_at_a_time(void **state)
{
    (void)state;
    post self;
    post_init(&self, NULL);
    add_for(&self, "a");
    add_for(&self, "a");
    add_for(&self, "a");
    add_for(&self, "b");
    assert_int_equal(self.count, 2); /* the first of each */
    assert_int_equal(self.sent[0], 1);
    assert_int_equal(self.sent[1], 4);
    a2a_push_done(self.queue, 2, 200, "", 0); /* not under way: nothing */
    a2a_push_done(self.queue, 99, 200, "", 0);
    assert_int_equal(self.delivered, 0);
    a2a_push_done(self.queue, 1, 503, "busy", 10);
    assert_int_equal(self.count, 2); /* the second waits behind the first */
    assert_true(self.wake_ms >= 510 && self.wake_ms <= 1010);
    a2a_push_tick(self.queue, self.wake_ms - 1);
    assert_int_equal(self.count, 2);
    a2a_push_tick(self.queue, self.wake_ms);
    assert_int_equal(self.count, 3);
    assert_int_equal(self.sent[2], 1);
    assert_int_equal(self.attempts[2], 2);
    a2a_push_done(self.queue, 1, 204, "", 2000);
    assert_int_equal(self.sent[3], 2);
    a2a_push_done(self.queue, 2, 200, "", 2000);
    a2a_push_done(self.queue, 3, 200, "", 2000);
    a2a_push_done(self.queue, 4, 200, "", 2000);
    a2a_push_done(self.queue, 4, 200, "", 2000);
    assert_int_equal(self.delivered, 4);
    assert_int_equal(self.dead, 0);
    assert_int_equal(a2a_push_waiting(self.queue), 0);
    a2a_push_free(self.queue);
}

static void which_answers_are_final(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool is_again;
    } rows[] = {{0, true},    {-1, true},   {100, false}, {301, false}, {302, false},
                {307, false}, {400, false}, {401, false}, {404, false}, {408, true},
                {410, false}, {429, true},  {500, true},  {503, true},  {599, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        post self;
        post_init(&self, NULL);
        add_for(&self, "a");
        a2a_push_done(self.queue, 1, rows[i].status, "why", 0);
        assert_int_equal(self.dead, rows[i].is_again ? 0 : 1);
        assert_int_equal(a2a_push_waiting(self.queue), rows[i].is_again ? 1 : 0);
        if (!rows[i].is_again) {
            assert_string_equal(self.reason, "why");
        }
        a2a_push_free(self.queue);
    }
}

static void attempts_end(void **state)
{
    (void)state;
    post self;
    post_init(&self, NULL);
    add_for(&self, "a");
    add_for(&self, "a");
    uint64_t now = 0;
    uint64_t most = 1000;
    for (uint32_t i = 1; i < a2a_push_default_limits.attempts; i++) {
        assert_int_equal(self.count, i);
        a2a_push_done(self.queue, 1, 0, "no answer", now);
        assert_true(self.wake_ms >= now + most / 2 && self.wake_ms <= now + most);
        now = self.wake_ms;
        most = most * 2 > 300000 ? 300000 : most * 2;
        a2a_push_tick(self.queue, now);
    }
    a2a_push_done(self.queue, 1, 0, "no answer", now);
    assert_int_equal(self.dead, 1);
    assert_int_equal(self.dead_id, 1);
    assert_int_equal(self.sent[self.count - 1], 2); /* what stood behind it goes on */
    a2a_push_free(self.queue);
}

static void bounds(void **state)
{
    (void)state;
    a2a_push_limits limits = a2a_push_default_limits;
    limits.waiting = 5;
    limits.per_webhook = 3;
    limits.under_way = 2;
    limits.body_bytes = sizeof(EVENT) - 1;
    post self;
    post_init(&self, &limits);
    add_for(&self, "a");
    add_for(&self, "a");
    add_for(&self, "a");
    const char *config = "{\"id\":\"a\",\"taskId\":\"t1\",\"url\":\"https://a.example/\"}";
    assert_int_equal(add(&self, config, A2A_FORM_1_0, EVENT, ""), BAY_ERR_LIMIT);
    assert_int_equal(self.dead, 1);
    assert_int_equal(self.dead_id, 0);
    assert_non_null(strstr(self.reason, "webhook"));
    add_for(&self, "b");
    add_for(&self, "c");
    assert_int_equal(self.count, 2); /* under way */
    assert_int_equal(add(&self, "{\"url\":\"https://d.example/\"}", A2A_FORM_1_0, EVENT, ""),
                     BAY_ERR_LIMIT);
    assert_int_equal(self.dead, 2);
    a2a_push_done(self.queue, 1, 200, "", 0);
    assert_int_equal(self.count, 3);
    assert_int_equal(add(&self, "{\"url\":\"https://d.example/\"}", A2A_FORM_1_0, EVENT " ", ""),
                     BAY_ERR_LIMIT);
    assert_non_null(strstr(self.reason, "large"));
    a2a_push_free(self.queue);
}

static void what_was_kept_goes_on(void **state)
{
    (void)state;
    post self;
    post_init(&self, NULL);
    a2a_delivery kept = {.url = STR("https://a.example/"),
                         .body = STR("{}"),
                         .fields = {{STR("A"), STR("b")}},
                         .field_count = 1,
                         .task_id = STR("t1"),
                         .config_id = STR("a"),
                         .tag = STR("row"),
                         .attempt = 7};
    assert_int_equal(a2a_push_restore(self.queue, &kept, 0), BAY_ERR_STATE);
    a2a_push_hold(self.queue, true);
    add_for(&self, "a"); /* what happened meanwhile goes behind what was kept */
    assert_int_equal(a2a_push_restore(self.queue, &kept, 0), BAY_OK);
    kept.body = STR("{\"second\":true}");
    assert_int_equal(a2a_push_restore(self.queue, &kept, 0), BAY_OK);
    assert_int_equal(self.queued, 1);
    assert_int_equal(self.count, 0);
    a2a_push_hold(self.queue, false);
    assert_int_equal(self.count, 1);
    assert_int_equal(self.sent[0], 2);
    assert_int_equal(self.attempts[0], 1);
    assert_string_equal(self.last, "https://a.example/\nA: b\n\n{}");
    a2a_push_done(self.queue, 2, 200, "", 0);
    assert_int_equal(self.sent[1], 3);
    a2a_push_done(self.queue, 3, 200, "", 0);
    assert_int_equal(self.sent[2], 1);
    a2a_push_free(self.queue);
}

static a2a_push_item *prepare(const char *id, bay_err expected, size_t body_bytes)
{
    char config[256];
    arena memory;
    json_doc doc;
    a2a_push_item *made = NULL;
    arena_init(&memory, 1 << 20);
    snprintf(config, sizeof(config),
             "{\"id\":\"%s\",\"taskId\":\"t1\",\"url\":\"https://a.example/\",\"token\":\"tok\"}",
             id);
    a2a_event *shared = a2a_event_new(STR(EVENT), 1, false);
    assert_non_null(shared);
    assert_int_equal(json_parse(&doc, str_of(config), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(
        a2a_push_prepare(json_root(&doc), A2A_FORM_1_0, shared, JSON_NONE, body_bytes, &made),
        expected);
    a2a_event_unref(shared);
    arena_fini(&memory);
    return made;
}

/* What is kept before it is queued: the queue tells nobody of it, and whoever brings it hears of
 * bounds and keeps it. */
static void what_is_accepted(void **state)
{
    (void)state;
    a2a_push_limits limits = a2a_push_default_limits;
    limits.waiting = 3;
    limits.per_webhook = 2;
    post self;
    post_init(&self, &limits);
    assert_null(prepare("a", BAY_ERR_LIMIT, sizeof(EVENT) - 2));
    a2a_push_item_free(NULL);
    a2a_push_item *items[4];
    for (size_t i = 0; i < 4; i++) {
        items[i] = prepare(i < 3 ? "a" : "b", BAY_OK, sizeof(EVENT) - 1);
    }
    assert_true(str_eq(a2a_push_item_delivery(items[0])->url, STR("https://a.example/")));
    assert_int_equal(a2a_push_accept(self.queue, items[0], STR("row")), BAY_OK);
    assert_non_null(strstr(self.last, "A2A-Notification-Token"));
    assert_int_equal(a2a_push_accept(self.queue, items[1], STR("")), BAY_OK);
    assert_int_equal(a2a_push_accept(self.queue, items[2], STR("")),
                     BAY_ERR_LIMIT); /* of the hook */
    add_for(&self, "c");
    assert_int_equal(a2a_push_accept(self.queue, items[3], STR("")), BAY_ERR_LIMIT); /* of all */
    assert_int_equal(self.dead, 0);
    assert_int_equal(self.queued, 1); /* "c" */
    a2a_push_done(self.queue, 1, 200, "", 0);
    a2a_push_done(self.queue, 2, 200, "", 0);
    assert_int_equal(a2a_push_accept(self.queue, items[2], STR("")), BAY_OK);
    a2a_push_item_free(items[3]);
    a2a_push_free(self.queue);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    a2a_push_limits limits = a2a_push_default_limits;
    limits.held_bytes = 4096;
    post self;
    post_init(&self, &limits);
    const char *config = "{\"url\":\"https://a.example/\"}";
    size_t taken = 0;
    while (add(&self, config, A2A_FORM_1_0, EVENT, "") == BAY_OK) {
        assert_true(++taken < 40);
    }
    assert_true(taken > 1);
    assert_int_equal(self.dead, 1);
    assert_non_null(strstr(self.reason, "memory"));
    a2a_push_done(self.queue, 1, 200, "", 0);
    assert_int_equal(add(&self, config, A2A_FORM_1_0, EVENT, ""), BAY_OK);
    assert_int_equal(add(&self, config, A2A_FORM_1_0, EVENT, ""), BAY_ERR_LIMIT);
    a2a_push_free(self.queue);
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        post self;
        memset(&self, 0, sizeof(self));
        arena memory;
        json_doc doc;
        arena_init(&memory, 1 << 20);
        a2a_event *shared = a2a_event_new(STR(EVENT), 1, false);
        bay_err err = a2a_push_new(NULL, &ops, &self, &self.queue);
        if (err == BAY_OK) {
            err = json_parse(&doc,
                             STR("{\"url\":\"https://a.example\\/\",\"authentication\":{\"scheme\":"
                                 "\"Basic\",\"credentials\":\"x\"}}"),
                             NULL, &memory, NULL);
        }
        if (err == BAY_OK && shared != NULL) {
            err = a2a_push_add(self.queue, json_root(&doc), A2A_FORM_0_3, shared, STR(TASK), 0);
            assert_int_equal(a2a_push_waiting(self.queue), err == BAY_OK ? 1 : 0);
        }
        a2a_push_item *item = NULL;
        if (err == BAY_OK) {
            err = a2a_push_prepare(json_root(&doc), A2A_FORM_1_0, shared, JSON_NONE, 4096, &item);
        }
        if (err == BAY_OK) {
            err = a2a_push_accept(self.queue, item, STR("row"));
            if (err != BAY_OK) {
                a2a_push_item_free(item);
            }
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        a2a_push_free(self.queue);
        a2a_event_unref(shared);
        arena_fini(&memory);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_that_are_refused),
        cmocka_unit_test(what_is_sent),
        cmocka_unit_test(events_that_are_none),
        cmocka_unit_test(one_webhook_gets_one_at_a_time),
        cmocka_unit_test(which_answers_are_final),
        cmocka_unit_test(attempts_end),
        cmocka_unit_test(bounds),
        cmocka_unit_test(what_was_kept_goes_on),
        cmocka_unit_test(what_is_accepted),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
