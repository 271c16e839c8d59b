/* The push sender with real sockets: what arrives at a webhook, what never leaves, and what is left
 * after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "sdk/agent_push.h" /* before cmocka, whose `fail` is a macro */

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "http/http_server.h"
#include "support/failing_memory.h"

enum { TURNS = 100000 };
#define EVENT                                                                                      \
    "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":"             \
    "\"TASK_STATE_WORKING\"}}}"

typedef struct office {
    loop *loop;
    http_server *server;
    store *store;
    agent_push *push_sender;
    a2a_push_limits limits;
    int answers[8]; /* the next ones; then 200 */
    size_t requests;
    buf seen; /* path, fields of interest, body, each behind the other */
    buf log;
    http_exchange *open; /* a webhook that does not answer */
    int closed;
    const char *allow;
} office;

static void put_field(office *self, const http_exchange *exchange, bay_str name)
{
    bay_str value = http_exchange_field(exchange, name);
    if (value.at != NULL) {
        buf_printf(&self->seen, "%.*s: %.*s\n", BAY_STR(name), BAY_STR(value));
    }
}

static void on_request(void *user, http_exchange *exchange)
{
    office *self = user;
    buf_printf(&self->seen, "%.*s %.*s\n", BAY_STR(http_exchange_method(exchange)),
               BAY_STR(http_exchange_path(exchange)));
    put_field(self, exchange, STR("Content-Type"));
    put_field(self, exchange, STR("A2A-Version"));
    put_field(self, exchange, STR("Authorization"));
    put_field(self, exchange, STR("X-A2A-Notification-Token"));
    put_field(self, exchange, STR("A2A-Notification-Token"));
    buf_printf(&self->seen, "%.*s\n", BAY_STR(http_exchange_body(exchange)));
    int status = self->requests < 8 ? self->answers[self->requests] : 0;
    self->requests++;
    if (status < 0) {
        self->open = exchange;
        return;
    }
    http_field where = {STR("Location"), STR("/elsewhere")};
    http_exchange_reply(exchange, status > 0 ? status : 200, &where, 1, STR("thanks"));
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    office *self = user;
    (void)is_complete;
    self->open = self->open == exchange ? NULL : self->open;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void on_log(bay_log_level level, const char *component, const char *text, void *user)
{
    office *self = user;
    (void)level;
    buf_printf(&self->log, "%s: %s\n", component, text);
}

static log_target target;

static void hire(office *self)
{
    bay_str allow = str_of(self->allow);
    agent_push_options options = {.loop = self->loop,
                                  .store = self->store,
                                  .limits = &self->limits,
                                  .allow = &allow,
                                  .allow_count = self->allow != NULL ? 1 : 0};
    assert_int_equal(agent_push_new(&options, &self->push_sender, NULL), BAY_OK);
}

static void office_init(office *self, const char *allow)
{
    memset(self, 0, sizeof(*self));
    self->allow = allow;
    self->limits = a2a_push_default_limits;
    self->limits.first_delay_ms = 1;
    self->limits.attempts = 3;
    buf_init(&self->seen, 1 << 20);
    buf_init(&self->log, 1 << 20);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    target = (log_target){.sink = on_log, .user = self, .most_verbose = LOG_DEBUG};
    loop_set_log(self->loop, &target);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    assert_int_equal(http_server_new(self->loop, &options, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), NULL), BAY_OK);
    assert_int_equal(store_open_memory(self->loop, NULL, &self->store), BAY_OK);
    hire(self);
}

#define UNTIL(self, condition)                                                                     \
    do {                                                                                           \
        int turns = TURNS;                                                                         \
        while (!(condition) && turns-- > 0) {                                                      \
            (void)loop_turn((self)->loop, 5);                                                      \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static void on_store_closed(void *user)
{
    ((office *)user)->closed++;
}

static void office_fini(office *self)
{
    agent_push_free(self->push_sender);
    store_close(self->store, on_store_closed, self);
    UNTIL(self, self->closed == 1);
    store_free(self->store);
    http_server_free(self->server);
    loop_free(self->loop);
    buf_fini(&self->seen);
    buf_fini(&self->log);
}

/* `url` with a '%' where the port goes. */
static void notify(office *self, const char *url, const char *more)
{
    char config[1024];
    char full[256];
    const char *mark = strchr(url, '%');
    if (mark != NULL) {
        snprintf(full, sizeof(full), "%.*s%u%s", (int)(mark - url), url,
                 http_server_port(self->server), mark + 1);
    } else {
        snprintf(full, sizeof(full), "%s", url);
    }
    snprintf(config, sizeof(config), "{\"id\":\"c\",\"taskId\":\"t1\",\"url\":\"%s\"%s}", full,
             more);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(config), NULL, &memory, NULL), BAY_OK);
    a2a_event *event = a2a_event_new(STR(EVENT), 1, false);
    agent_push_event(self->push_sender, STR("ann"), json_root(&doc), A2A_FORM_1_0, event, STR(""));
    a2a_event_unref(event);
    arena_fini(&memory);
}

static bool has(const buf *text, const char *needle)
{
    return text->len > 0 && memmem(text->at, text->len, needle, strlen(needle)) != NULL;
}

/* What a table or stream of the store has, as text. */
typedef struct rows {
    int calls;
    size_t count;
    buf text;
} rows;

static void on_rows(void *user, const store_result *result)
{
    rows *self = user;
    self->calls++;
    assert_int_equal(result->err, BAY_OK);
    self->count = result->count;
    for (size_t i = 0; i < result->count; i++) {
        buf_str(&self->text, result->rows[i].value);
    }
}

static void look(office *self, bool at_dead, rows *out)
{
    memset(out, 0, sizeof(*out));
    buf_init(&out->text, 1 << 20);
    bay_err err =
        at_dead ? store_read(self->store, STR("a2a/dead"), 0, 100, on_rows, out)
                : store_scan(self->store, STR("a2a/push"), STR(""), STR(""), 100, on_rows, out);
    assert_int_equal(err, BAY_OK);
    UNTIL(self, out->calls == 1);
}

static size_t kept(office *self)
{
    rows found;
    look(self, false, &found);
    buf_fini(&found.text);
    return found.count;
}

/* --- what never leaves ------------------------------------------------------------------------ */

static void webhooks_that_are_refused(void **state)
{
    (void)state;
    office self;
    office_init(&self, NULL);
    static const char *const urls[] = {
        "",
        "/x",
        "ftp://a.example/",
        "https://user:pw@a.example/",
        "http://127.0.0.1/",
        "http://127.9.9.9:80/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://localhost/",
        "http://LOCALHOST:8080/",
        "http://a.localhost/",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        a2a_fault fault = {.error = A2A_NO_ERROR};
        bay_err err = agent_push_url(self.push_sender, str_of(urls[i]), &fault);
        if (err != BAY_ERR_DENIED && err != BAY_ERR_INVALID) {
            fail_msg("allowed: %s", urls[i]);
        }
        assert_int_equal(fault.error, A2A_E_INVALID_PARAMS);
    }
    assert_int_equal(agent_push_url(self.push_sender, STR("https://hooks.example/x?y"), NULL),
                     BAY_OK);
    assert_int_equal(agent_push_url(self.push_sender, STR("http://93.184.216.34/"), NULL), BAY_OK);
    office_fini(&self);
}

/* Past the check at registration, by a name or a spelling that leads here: the guard is asked about
 * the address that is connected to. */
static void nothing_forbidden_is_connected_to(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://localhost:%/", "http://127.0.0.1:%/",
                                       "http://[::ffff:127.0.0.1]:%/", "http://0.0.0.0:%/"};
    office self;
    office_init(&self, "10.0.0.0/8");
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        notify(&self, urls[i], ",\"token\":\"s3cret\"");
        UNTIL(&self, agent_push_dead(self.push_sender) == i + 1);
    }
    assert_int_equal(self.requests, 0);
    assert_int_equal(kept(&self), 0);
    assert_true(has(&self.log, "not permitted"));
    assert_false(has(&self.log, "s3cret"));
    rows letters;
    look(&self, true, &letters);
    assert_int_equal(letters.count, 4);
    assert_true(has(&letters.text, "\"task\":\"t1\""));
    assert_false(has(&letters.text, "s3cret"));
    buf_fini(&letters.text);
    office_fini(&self);
}

/* --- what arrives ----------------------------------------------------------------------------- */

static void a_notification_arrives(void **state)
{
    (void)state;
    office self;
    office_init(&self, "127.0.0.1");
    notify(
        &self, "http://127.0.0.1:%/hook",
        ",\"token\":\"tok\",\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}");
    UNTIL(&self, self.requests == 1 && agent_push_waiting(self.push_sender) == 0);
    buf_char(&self.seen, '\0');
    assert_string_equal(self.seen.at,
                        "POST /hook\nContent-Type: application/a2a+json\nA2A-Version: 1.0\n"
                        "Authorization: Bearer s3cret\nX-A2A-Notification-Token: tok\n"
                        "A2A-Notification-Token: tok\n" EVENT "\n");
    assert_int_equal(kept(&self), 0);
    assert_int_equal(agent_push_dead(self.push_sender), 0);
    assert_false(has(&self.log, "s3cret"));
    office_fini(&self);
}

static void failures_are_tried_again(void **state)
{
    (void)state;
    office self;
    office_init(&self, "127.0.0.1");
    self.answers[0] = 503;
    self.answers[1] = 429;
    notify(&self, "http://127.0.0.1:%/hook", "");
    UNTIL(&self, agent_push_waiting(self.push_sender) == 0);
    assert_int_equal(self.requests, 3);
    assert_int_equal(agent_push_dead(self.push_sender), 0);
    office_fini(&self);
}

static void what_is_given_up_is_a_dead_letter(void **state)
{
    (void)state;
    static const int answers[] = {302, 404, 503};
    office self;
    office_init(&self, "127.0.0.1");
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 8; j++) {
            self.answers[j] = answers[i];
        }
        self.requests = 0;
        notify(&self, "http://127.0.0.1:%/secret-path?key=s3cret",
               ",\"authentication\":{\"scheme\":\"Bearer\",\"credentials\":\"s3cret\"}");
        UNTIL(&self, agent_push_dead(self.push_sender) == i + 1);
        assert_int_equal(self.requests, answers[i] == 503 ? 3 : 1); /* and no redirect followed */
    }
    assert_false(has(&self.seen, "/elsewhere"));
    rows letters;
    look(&self, true, &letters);
    assert_int_equal(letters.count, 3);
    assert_true(has(&letters.text, "redirects"));
    assert_true(has(&letters.text, "\"attempts\":3"));
    assert_true(has(&letters.text, "TASK_STATE_WORKING"));
    assert_false(has(&letters.text, "s3cret"));
    assert_false(has(&letters.text, "secret-path"));
    assert_false(has(&self.log, "s3cret"));
    assert_false(has(&self.log, "secret-path"));
    assert_int_equal(kept(&self), 0);
    buf_fini(&letters.text);
    office_fini(&self);
}

static void a_webhook_that_does_not_answer_is_left(void **state)
{
    (void)state;
    office self;
    office_init(&self, "127.0.0.1");
    agent_push_free(self.push_sender);
    self.limits.timeout_ms = 20;
    self.limits.attempts = 1;
    hire(&self);
    self.answers[0] = -1;
    notify(&self, "http://127.0.0.1:%/", "");
    UNTIL(&self, agent_push_dead(self.push_sender) == 1);
    assert_true(has(&self.log, "did not answer"));
    office_fini(&self);
}

/* --- restarts --------------------------------------------------------------------------------- */

static void deliveries_survive(void **state)
{
    (void)state;
    office self;
    office_init(&self, "127.0.0.1");
    self.answers[0] = -1; /* the process dies while the webhook thinks */
    notify(&self, "http://127.0.0.1:%/", ",\"token\":\"first\"");
    notify(&self, "http://127.0.0.1:%/", ",\"token\":\"second\"");
    UNTIL(&self, self.open != NULL);
    assert_int_equal(kept(&self), 2);
    agent_push_free(self.push_sender);
    buf_clear(&self.seen);
    UNTIL(&self, self.open == NULL);
    hire(&self);
    notify(&self, "http://127.0.0.1:%/", ",\"token\":\"third\""); /* before the store was read */
    UNTIL(&self, self.requests == 4 && agent_push_waiting(self.push_sender) == 0);
    buf_char(&self.seen, '\0');
    const char *first = strstr(self.seen.at, "\nA2A-Notification-Token: first");
    const char *second = strstr(self.seen.at, "\nA2A-Notification-Token: second");
    const char *third = strstr(self.seen.at, "\nA2A-Notification-Token: third");
    assert_true(first != NULL && second > first && third > second);
    assert_int_equal(kept(&self), 0);
    office_fini(&self);
}

/* --- what is kept before it is queued --------------------------------------------------------- */

typedef struct taker {
    int calls;
    bay_err err;
} taker;

static void on_taken(void *user, bay_err err)
{
    taker *self = user;
    self->calls++;
    self->err = err;
}

/* To `url`, where a '%' is the port. */
static bay_err take(office *self, const char *url, const char *id, taker *out)
{
    char config[512];
    arena memory;
    json_doc doc;
    a2a_push_item *item = NULL;
    const char *mark = strchr(url, '%');
    *out = (taker){0};
    arena_init(&memory, 1 << 16);
    snprintf(config, sizeof(config),
             "{\"id\":\"%s\",\"taskId\":\"t1\",\"token\":\"s3cret\",\"url\":\"%.*s%u%s\"}", id,
             (int)(mark - url), url, http_server_port(self->server), mark + 1);
    assert_int_equal(json_parse(&doc, str_of(config), NULL, &memory, NULL), BAY_OK);
    a2a_event *event = a2a_event_new(STR(EVENT), 1, false);
    assert_int_equal(
        a2a_push_prepare(json_root(&doc), A2A_FORM_1_0, event, JSON_NONE, 1 << 20, &item), BAY_OK);
    a2a_event_unref(event);
    arena_fini(&memory);
    return agent_push_take(self->push_sender, item, on_taken, out);
}

static void what_cannot_be_taken_is_nobodys(void **state)
{
    (void)state;
    office self;
    taker one, two, three;
    office_init(&self, "127.0.0.1");
    agent_push_free(self.push_sender);
    self.limits.waiting = 2;
    self.limits.per_webhook = 1;
    hire(&self);
    self.answers[0] = -1; /* it thinks about the first */
    assert_int_equal(take(&self, "http://127.0.0.1:%/", "a", &one), BAY_OK);
    assert_int_equal(one.calls, 0);
    UNTIL(&self, one.calls == 1);
    assert_int_equal(one.err, BAY_OK);
    assert_int_equal(take(&self, "http://127.0.0.1:%/", "a", &two), BAY_OK);
    UNTIL(&self, two.calls == 1);
    assert_int_equal(two.err, BAY_ERR_LIMIT); /* of the webhook */
    assert_int_equal(kept(&self), 1);         /* and its row is gone */
    assert_int_equal(take(&self, "http://127.0.0.1:%/", "b", &two), BAY_OK);
    assert_int_equal(take(&self, "http://127.0.0.1:%/", "c", &three), BAY_ERR_LIMIT); /* of all */
    assert_int_equal(three.calls, 0);
    UNTIL(&self, two.calls == 1);
    assert_int_equal(two.err, BAY_OK);
    assert_int_equal(agent_push_dead(self.push_sender), 0);
    assert_false(has(&self.log, "s3cret"));
    office_fini(&self);
}

/* Whoever is told that it is taken need not say it again: it is sent by the next process. */
static void what_was_taken_survives(void **state)
{
    (void)state;
    office self;
    taker one, two;
    office_init(&self, "127.0.0.1");
    self.answers[0] = -1;
    assert_int_equal(take(&self, "http://127.0.0.1:%/one", "a", &one), BAY_OK);
    UNTIL(&self, one.calls == 1 && self.open != NULL);
    assert_int_equal(kept(&self), 1);
    assert_int_equal(take(&self, "http://127.0.0.1:%/two", "b", &two), BAY_OK);
    agent_push_free(self.push_sender);
    UNTIL(&self, two.calls == 1);
    assert_int_equal(two.err, BAY_ERR_CANCELLED);
    buf_clear(&self.seen);
    hire(&self);
    UNTIL(&self, self.requests >= 3 && agent_push_waiting(self.push_sender) == 0);
    assert_true(has(&self.seen, "POST /one"));
    assert_true(has(&self.seen, "POST /two"));
    assert_int_equal(kept(&self), 0);
    office_fini(&self);
}

static void without_a_store_it_is_queued(void **state)
{
    (void)state;
    office self;
    taker one, two;
    office_init(&self, "127.0.0.1");
    agent_push_free(self.push_sender);
    store *kept_aside = self.store;
    self.store = NULL;
    hire(&self);
    assert_int_equal(take(&self, "http://127.0.0.1:%/one", "a", &one), BAY_OK);
    assert_int_equal(one.calls, 0);
    UNTIL(&self, one.calls == 1 && self.requests == 1);
    assert_int_equal(one.err, BAY_OK);
    assert_int_equal(take(&self, "http://127.0.0.1:%/two", "a", &two), BAY_OK);
    agent_push_free(self.push_sender);
    self.push_sender = NULL;
    assert_int_equal(two.calls, 1);
    assert_int_equal(two.err, BAY_ERR_CANCELLED);
    self.store = kept_aside;
    office_fini(&self);
}

static void a_store_that_fails_takes_nothing(void **state)
{
    (void)state;
    office self;
    taker one;
    store_options small = {.rows = 1, .total_bytes = 1 << 20};
    office_init(&self, "127.0.0.1");
    agent_push_free(self.push_sender);
    store_close(self.store, on_store_closed, &self);
    UNTIL(&self, self.closed == 1);
    store_free(self.store);
    self.closed = 0;
    assert_int_equal(store_open_memory(self.loop, &small, &self.store), BAY_OK);
    hire(&self);
    self.answers[0] = -1;
    assert_int_equal(take(&self, "http://127.0.0.1:%/one", "a", &one), BAY_OK);
    UNTIL(&self, one.calls == 1 && self.requests == 1);
    assert_int_equal(take(&self, "http://127.0.0.1:%/two", "b", &one), BAY_OK);
    UNTIL(&self, one.calls == 1);
    assert_int_equal(one.err, BAY_ERR_LIMIT);
    assert_int_equal(agent_push_waiting(self.push_sender), 1);
    office_fini(&self);
}

static void rules_become_others(void **state)
{
    (void)state;
    office self;
    office_init(&self, NULL);
    bay_str allow = STR("127.0.0.1"), wrong = STR("10.0.0");
    notify(&self, "http://127.0.0.1:%/", "");
    UNTIL(&self, agent_push_dead(self.push_sender) == 1);
    assert_int_equal(agent_push_allow(self.push_sender, &allow, 1, NULL), BAY_OK);
    assert_int_equal(agent_push_allow(self.push_sender, &wrong, 1, NULL), BAY_ERR_SYNTAX);
    notify(&self, "http://127.0.0.1:%/", "");
    UNTIL(&self, self.requests == 1);
    office_fini(&self);
}

static void rows_that_are_none_go(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        "{",
        "[]",
        "{\"url\":1}",
        "{\"url\":\"http://a/\"}",
        "{\"url\":\"http://a/\",\"body\":\"x\",\"fields\":{\"a\":1}}",
        "{\"url\":\"http://a/\",\"body\":\"x\",\"fields\":{\"a\":\"\","
        "\"b\":\"\",\"c\":\"\",\"d\":\"\",\"e\":\"\",\"f\":\"\","
        "\"g\":\"\",\"h\":\"\",\"i\":\"\"}}"};
    office self;
    office_init(&self, NULL);
    agent_push_free(self.push_sender);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char key[16];
        rows done;
        memset(&done, 0, sizeof(done));
        snprintf(key, sizeof(key), "0-%zu", i);
        store_put_request request = {.table = STR("a2a/push"),
                                     .key = str_of(key),
                                     .value = str_of(values[i]),
                                     .expected = STORE_ANY};
        assert_int_equal(store_put(self.store, &request, on_rows, &done), BAY_OK);
        UNTIL(&self, done.calls == 1);
    }
    hire(&self);
    UNTIL(&self, kept(&self) == 0);
    assert_int_equal(agent_push_waiting(self.push_sender), 0);
    office_fini(&self);
}

static void rules_that_are_none(void **state)
{
    (void)state;
    office self;
    office_init(&self, NULL);
    bay_str allow = STR("10.0.0");
    agent_push *push_sender = NULL;
    bay_diag diag = {.code = BAY_OK};
    agent_push_options options = {.loop = self.loop, .allow = &allow, .allow_count = 1};
    assert_int_equal(agent_push_new(&options, &push_sender, &diag), BAY_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "10.0.0"));
    agent_push_free(NULL);
    office_fini(&self);
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        loop *on = NULL;
        agent_push *push_sender = NULL;
        bay_str allow = STR("127.0.0.1");
        bay_err err = loop_new(&on);
        if (err == BAY_OK) {
            agent_push_options options = {.loop = on, .allow = &allow, .allow_count = 1};
            err = agent_push_new(&options, &push_sender, NULL);
            if (err == BAY_OK) {
                office self = {.push_sender = push_sender, .loop = on};
                arena memory;
                json_doc doc;
                arena_init(&memory, 1 << 16);
                a2a_event *event = a2a_event_new(STR(EVENT), 1, false);
                err =
                    json_parse(&doc, STR("{\"url\":\"http://127.0.0.2:9/\"}"), NULL, &memory, NULL);
                if (err == BAY_OK && event != NULL) {
                    agent_push_event(push_sender, STR(""), json_root(&doc), A2A_FORM_1_0, event,
                                     STR(""));
                    for (int i = 0; i < 20 && agent_push_dead(push_sender) == 0; i++) {
                        (void)loop_turn(self.loop, 0);
                    }
                    a2a_push_item *item = NULL;
                    taker one = {0};
                    err = a2a_push_prepare(json_root(&doc), A2A_FORM_1_0, event, JSON_NONE, 1 << 20,
                                           &item);
                    err = err == BAY_OK ? agent_push_take(push_sender, item, on_taken, &one) : err;
                    for (int i = 0; err == BAY_OK && one.calls == 0 && i < 20; i++) {
                        (void)loop_turn(self.loop, 0);
                    }
                    assert_int_equal(one.calls, err == BAY_OK ? 1 : 0);
                }
                a2a_event_unref(event);
                arena_fini(&memory);
            }
            agent_push_free(push_sender);
            loop_free(on);
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webhooks_that_are_refused),
        cmocka_unit_test(nothing_forbidden_is_connected_to),
        cmocka_unit_test(a_notification_arrives),
        cmocka_unit_test(failures_are_tried_again),
        cmocka_unit_test(what_is_given_up_is_a_dead_letter),
        cmocka_unit_test(a_webhook_that_does_not_answer_is_left),
        cmocka_unit_test(deliveries_survive),
        cmocka_unit_test(what_cannot_be_taken_is_nobodys),
        cmocka_unit_test(what_was_taken_survives),
        cmocka_unit_test(without_a_store_it_is_queued),
        cmocka_unit_test(a_store_that_fails_takes_nothing),
        cmocka_unit_test(rules_become_others),
        cmocka_unit_test(rows_that_are_none_go),
        cmocka_unit_test(rules_that_are_none),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
