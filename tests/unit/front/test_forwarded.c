/* Whom a request is from: whose fields count, which of the addresses in them, and what is ignored.
 */
#include "support/server_rig.h"

typedef struct rig {
    loop *loop;
    http_front *front;
    http_server *http;
    forwarded_proxies proxies;
    char seen[256]; /* "address host scheme" */
} rig;

static bool serve(void *user, const front_request *request)
{
    rig *self = user;
    snprintf(self->seen, sizeof(self->seen), "%.*s %.*s %s", BAY_STR(request->from.address),
             BAY_STR(request->from.host), request->from.is_https ? "https" : "http");
    http_exchange_reply(request->exchange, 200, NULL, 0, STR(""));
    return true;
}

static const front_row rows[] = {{STR_INIT("/"), false, FRONT_PUBLIC, NULL, serve, NULL}};
static const bay_str hosts[] = {STR_INIT("localhost"), STR_INIT("tools.example")};

static void open_rig(rig *self, const bay_str *proxies, size_t count)
{
    *self = (rig){0};
    assert_int_equal(forwarded_proxies_set(&self->proxies, proxies, count), BAY_OK);
    front_options options = {.rows = rows,
                             .row_count = 1,
                             .hosts = hosts,
                             .host_count = ARRAY_LEN(hosts),
                             .proxies = &self->proxies,
                             .user = self};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(front_new(&options, &self->front), BAY_OK);
    http_server_options http = {
        .limits = http_server_default_limits, .handler = &front_handler, .user = self->front};
    assert_int_equal(http_server_new(self->loop, &http, &self->http), BAY_OK);
    assert_int_equal(http_server_listen(self->http, STR("127.0.0.1:0"), NULL), BAY_OK);
}

static void close_rig(rig *self)
{
    http_server_free(self->http);
    front_free(self->front);
    loop_free(self->loop);
}

static int ask(rig *self, const char *fields)
{
    wire_client client;
    self->seen[0] = '\0';
    wire_exchange(&client, self->loop, http_server_port(self->http), "GET", "/", fields, NULL);
    int status = client.status;
    wire_close(&client);
    return status;
}

#define NOBODY "127.0.0.1 localhost http"
#define H "Host: localhost\r\n"

static void check(rig *self, const char *const cases[][2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ask(self, cases[i][0]), 200);
        if (strcmp(self->seen, cases[i][1]) != 0) {
            fail_msg("%s: %s", cases[i][0], self->seen);
        }
    }
}

static void nobody_else_is_believed(void **state)
{
    static const bay_str others[] = {STR_INIT("10.0.0.0/8"), STR_INIT("127.0.0.2"),
                                     STR_INIT("::1")};
    static const char *const cases[][2] = {
        {H "X-Forwarded-For: 192.0.2.1\r\n", NOBODY},
        {H "X-Forwarded-Proto: https\r\nX-Forwarded-Host: tools.example\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1;host=tools.example;proto=https\r\n", NOBODY},
    };
    rig self;
    (void)state;
    open_rig(&self, others, ARRAY_LEN(others));
    check(&self, cases, ARRAY_LEN(cases));
    assert_int_equal(ask(&self, "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n"), 403);
    close_rig(&self);
    open_rig(&self, NULL, 0);
    check(&self, cases, ARRAY_LEN(cases));
    close_rig(&self);
}

static const bay_str trusted[] = {STR_INIT("127.0.0.1"), STR_INIT("10.0.0.0/8"),
                                  STR_INIT("2001:db8::/32")};

/* What is wrong somewhere counts nowhere. */
static void bad_fields_are_ignored_as_a_whole(void **state)
{
    static const char *const cases[][2] = {
        {H, NOBODY},
        {H "X-Forwarded-For: \r\n", NOBODY},
        {H "X-Forwarded-For: 192.0.2.1,\r\n", NOBODY},
        {H "X-Forwarded-For: ,192.0.2.1\r\n", NOBODY},
        {H "X-Forwarded-For: 192.0.2\r\n", NOBODY},
        {H "X-Forwarded-For: client.example, 192.0.2.1\r\n", NOBODY},
        {H "X-Forwarded-For: 192.0.2.1:port\r\n", NOBODY},
        {H "X-Forwarded-For: [2001:db9::1\r\n", NOBODY},
        {H "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: ftp\r\n", NOBODY},
        {H "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: a b\r\n", NOBODY},
        {H "X-Forwarded-Host: tools.example, \r\n", NOBODY},
        {H "Forwarded: \r\n", NOBODY},
        {H "Forwarded: for\r\n", NOBODY},
        {H "Forwarded: for=\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1;\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1,\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1 host=tools.example\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1;for=192.0.2.2\r\n", NOBODY},
        {H "Forwarded: for=\"192.0.2.1\r\n", NOBODY},
        {H "Forwarded: for=\"192.0.2.\\1\"\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1;proto=gopher\r\n", NOBODY},
        {H "Forwarded: for=a.example\r\n", NOBODY},
        {H "Forwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n", NOBODY},
        {H "X-Forwarded-For: 1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
           "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
           "1.1.1.1,1.1.1.1,1.1.1.1\r\n",
         NOBODY},
    };
    rig self;
    char fields[FORWARDED_BYTES + 128] = H "X-Forwarded-For: 192.0.2.1";
    size_t len = strlen(fields);
    (void)state;
    open_rig(&self, trusted, ARRAY_LEN(trusted));
    check(&self, cases, ARRAY_LEN(cases));
    memset(fields + len, ' ', FORWARDED_BYTES);
    memcpy(fields + len + FORWARDED_BYTES - 16, ", 192.0.2.2\r\n", sizeof(", 192.0.2.2\r\n"));
    const char *const large[][2] = {{fields, NOBODY}};
    check(&self, large, 1);
    close_rig(&self);
}

static void the_right_most_untrusted_address_counts(void **state)
{
    static const char *const cases[][2] = {
        {H "X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1 localhost http"},
        {H "X-Forwarded-For: 6.6.6.6, 192.0.2.1\r\n", "192.0.2.1 localhost http"},
        {H "X-Forwarded-For: 10.9.9.9, 192.0.2.1, 10.1.2.3\r\n", "192.0.2.1 localhost http"},
        {H "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 192.0.2.1\r\n",
         "192.0.2.1 localhost http"},
        {H "X-Forwarded-For: 10.1.2.3, 10.1.2.4\r\n", "10.1.2.3 localhost http"},
        {H "X-Forwarded-For: 6.6.6.6, unknown, 10.1.2.3\r\n", "10.1.2.3 localhost http"},
        {H "X-Forwarded-For: 192.0.2.1:4711\r\n", "192.0.2.1 localhost http"},
        {H "X-Forwarded-For: 2001:db9::1, 2001:db8::7\r\n", "2001:db9::1 localhost http"},
        {H "X-Forwarded-For: [2001:db9::1]:80\r\n", "2001:db9::1 localhost http"},
        {H "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example, tools.example\r\n",
         "127.0.0.1 tools.example https"},
        {"Host: inside\r\nX-Forwarded-Host: tools.example:8443\r\nX-Forwarded-For: 192.0.2.1\r\n",
         "192.0.2.1 tools.example:8443 http"},
        {H "Forwarded: for=192.0.2.1\r\n", "192.0.2.1 localhost http"},
        {H "forwarded: For=\"[2001:db9::1]:4711\";Proto=HTTPS;by=_x , for=10.1.1.1\r\n",
         "2001:db9::1 localhost https"},
        {H "Forwarded: for=6.6.6.6;host=evil.example, for=192.0.2.1;host=tools.example\r\n",
         "192.0.2.1 tools.example http"},
        {H "Forwarded: for=6.6.6.6, for=_hidden, for=10.1.1.1\r\n", "10.1.1.1 localhost http"},
        {H "Forwarded: for=6.6.6.6, proto=https\r\n", "127.0.0.1 localhost https"},
    };
    rig self;
    (void)state;
    open_rig(&self, trusted, ARRAY_LEN(trusted));
    check(&self, cases, ARRAY_LEN(cases));
    /* the host that it was asked for is what is checked */
    assert_int_equal(ask(&self, H "X-Forwarded-Host: evil.example\r\n"), 403);
    assert_int_equal(ask(&self, H "Forwarded: host=evil.example\r\n"), 403);
    assert_int_equal(ask(&self, "Host: evil.example\r\nX-Forwarded-For: 192.0.2.1\r\n"), 403);
    close_rig(&self);
}

static void networks_are_checked(void **state)
{
    static const bay_str bad[] = {
        STR_INIT(""),       STR_INIT("10.0.0.0/"), STR_INIT("10.0.0.0/33"),
        STR_INIT("::/129"), STR_INIT("10.0.0/8"),  STR_INIT("proxy.example")};
    forwarded_proxies proxies = {.count = 0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(forwarded_proxies_set(&proxies, &bad[i], 1), BAY_ERR_SYNTAX);
        assert_int_equal(proxies.count, 0);
    }
    assert_int_equal(forwarded_proxies_set(&proxies, bad, FORWARDED_PROXIES + 1), BAY_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_checked),
        cmocka_unit_test(nobody_else_is_believed),
        cmocka_unit_test(bad_fields_are_ignored_as_a_whole),
        cmocka_unit_test(the_right_most_untrusted_address_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
