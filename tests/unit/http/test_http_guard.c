/* Who a client with a guard may reach: the address counts in the moment of connecting, whatever the
 * URL calls it, and a reply that points elsewhere leads nowhere. */
#include "http_rig.h"

#include "http/http_client.h"

typedef struct outcome {
    int status;
    int ends;
    int failures;
    bay_err err;
    bool was_sent;
    char text[240];
} outcome;

typedef struct guard {
    const address_rules *rules;
    int asked;
    bay_str host;
    char host_text[64];
    bool changes; /* as a name server that answers something else the second time */
} guard;

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    outcome *self = user;
    (void)fields;
    (void)count;
    self->status = status;
}

static void on_end(void *user)
{
    ((outcome *)user)->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    outcome *self = user;
    self->failures++;
    self->err = err;
    self->was_sent = was_sent;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static const http_call_events events = {.head = on_head, .end = on_end, .failed = on_failed};

static bool permit(void *user, bay_str host, const net_address *address)
{
    guard *self = user;
    self->asked++;
    snprintf(self->host_text, sizeof(self->host_text), "%.*s", BAY_STR(host));
    if (self->changes && self->asked > 1) {
        return false;
    }
    return address_rules_permit(self->rules, host, address);
}

static address_rules *rules_of(const char *text)
{
    address_rules *rules = NULL;
    bay_str rule = str_of(text);
    assert_int_equal(address_rules_new(&rule, 1, &rules, NULL), BAY_OK);
    return rules;
}

static void call(rig *on, http_client *client, const char *host, const char *path, outcome *out)
{
    char url[160];
    http_call *call = NULL;
    memset(out, 0, sizeof(*out));
    snprintf(url, sizeof(url), "http://%s:%u%s", host, http_server_port(on->server), path);
    http_call_spec spec = {
        .method = STR("POST"), .url = str_of(url), .body = STR("x"), .has_body = true};
    assert_int_equal(http_client_call(client, &spec, &events, out, &call, NULL), BAY_OK);
    RIG_UNTIL(on, out->ends + out->failures > 0);
    assert_int_equal(out->ends + out->failures, 1);
}

static http_client *client_of(rig *on, guard *with)
{
    http_client *client = NULL;
    http_client_options options = {
        .limits = http_client_default_limits, .permit = permit, .permit_user = with};
    assert_int_equal(http_client_new(on->loop, &options, &client), BAY_OK);
    return client;
}

static void forbidden_addresses_get_no_byte(void **state)
{
    (void)state;
    /* Every spelling of this machine that a resolver or the parser of literals takes. */
    static const char *const hosts[] = {
        "127.0.0.1", "localhost",  "127.0.0.2", "[::1]",   "[::ffff:127.0.0.1]",
        "127.1",     "2130706433", "0x7f.1",    "0.0.0.0", "[::]"};
    rig on;
    rig_init(&on, NULL);
    guard with = {.rules = NULL};
    http_client *client = client_of(&on, &with);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        outcome out;
        call(&on, client, hosts[i], "/echo", &out);
        assert_int_equal(out.failures, 1);
        assert_false(out.was_sent);
        assert_true(out.err == BAY_ERR_DENIED || out.err == BAY_ERR_RESOLVE);
    }
    assert_int_equal(on.requests, 0);
    http_client_free(client);
    rig_fini(&on);
}

static void what_is_allowed_is_reached(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    address_rules *rules = rules_of("127.0.0.0/8");
    guard with = {.rules = rules};
    http_client *client = client_of(&on, &with);
    outcome out;
    call(&on, client, "127.0.0.1", "/echo", &out);
    assert_int_equal(out.status, 200);
    assert_int_equal(with.asked, 1);
    call(&on, client, "localhost", "/echo", &out); /* ::1 is refused, 127.0.0.1 is tried */
    assert_int_equal(out.status, 200);
    assert_string_equal(with.host_text, "localhost");
    http_client_free(client);
    address_rules_free(rules);
    rig_fini(&on);
}

/* DNS rebinding: the answer was fine when it was looked at, and another when it was used. Here the
 * address that is connected to is the one that is looked at, each time. */
static void each_connection_is_asked_for(void **state)
{
    (void)state;
    rig on;
    rig_init(&on, NULL);
    address_rules *rules = rules_of("127.0.0.1");
    guard with = {.rules = rules, .changes = true};
    http_client *first = client_of(&on, &with);
    outcome out;
    call(&on, first, "127.0.0.1", "/echo", &out);
    assert_int_equal(out.status, 200);
    http_client_free(first); /* and with it its connection */
    http_client *second = client_of(&on, &with);
    call(&on, second, "127.0.0.1", "/echo", &out);
    assert_int_equal(out.err, BAY_ERR_DENIED);
    assert_non_null(strstr(out.text, "not permitted"));
    assert_int_equal(on.requests, 1);
    http_client_free(second);
    address_rules_free(rules);
    rig_fini(&on);
}

/* --- redirects -------------------------------------------------------------------------------- */

static void redirect(void *user, http_exchange *exchange)
{
    rig *self = user;
    self->requests++;
    char where[80];
    snprintf(where, sizeof(where), "http://127.0.0.1:%u/inner", http_server_port(self->server));
    http_field field = {STR("Location"), str_of(where)};
    int status = http_exchange_query(exchange).len > 0 ? 307 : 302;
    http_exchange_reply(exchange, status, &field, 1, STR(""));
}

static void redirects_are_not_followed(void **state)
{
    (void)state;
    static const http_handler handler = {
        .request = redirect, .closed = rig_closed, .drained = rig_on_drained};
    rig on;
    memset(&on, 0, sizeof(on));
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = &on};
    assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
    assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    address_rules *rules = rules_of("127.0.0.1");
    guard with = {.rules = rules};
    http_client *client = client_of(&on, &with);
    outcome out;
    call(&on, client, "127.0.0.1", "/", &out);
    assert_int_equal(out.status, 302);
    call(&on, client, "127.0.0.1", "/?kept", &out);
    assert_int_equal(out.status, 307);
    assert_int_equal(on.requests, 2);
    http_client_free(client);
    address_rules_free(rules);
    rig_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forbidden_addresses_get_no_byte),
        cmocka_unit_test(what_is_allowed_is_reached),
        cmocka_unit_test(each_connection_is_asked_for),
        cmocka_unit_test(redirects_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
