/* Whose certificate a request came with, as a handler sees it: over HTTP/1.1 and HTTP/2, and that
 * nothing a client merely says counts. */
#include "http_rig.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http/http_client.h"
#include "support/identity.h"

static identity server_identity, client_identity;

static int make_all(void **state)
{
    (void)state;
    identity_make(&server_identity, (identity_spec){.name = "server", .organisation = "Example"});
    identity_make(&client_identity, (identity_spec){.name = "client",
                                                    .organisation = "A, B\n+CN=root",
                                                    .alternatives = "DNS:client.test"});
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    identity_free(&server_identity);
    identity_free(&client_identity);
    return 0;
}

typedef struct scene {
    rig on;
    http_client *client;
    char subject[256], uri[256], digest[64];
    bool was_http2;
    int status, ends, failures;
} scene;

static void on_request(void *user, http_exchange *exchange)
{
    scene *self = user;
    bay_str subject = http_exchange_client_certificate(exchange, TLS_SUBJECT);
    bay_str uri = http_exchange_client_certificate(exchange, TLS_URI);
    bay_str digest = http_exchange_client_certificate(exchange, TLS_SHA256);
    snprintf(self->subject, sizeof(self->subject), "%.*s", BAY_STR(subject));
    snprintf(self->uri, sizeof(self->uri), "%.*s", BAY_STR(uri));
    snprintf(self->digest, sizeof(self->digest), "%.*s", BAY_STR(digest));
    self->was_http2 = http_exchange_is_http2(exchange);
    http_exchange_reply(exchange, 200, NULL, 0, STR(""));
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    (void)fields;
    (void)count;
    ((scene *)user)->status = status;
}

static void on_end(void *user)
{
    ((scene *)user)->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)err;
    (void)was_sent;
    (void)text;
    ((scene *)user)->failures++;
}

static const http_call_events events = {.head = on_head, .end = on_end, .failed = on_failed};

/* One request; `shows`: with the client's certificate; `asks`: the server verifies certificates. */
static void play(scene *self, bool shows, bool asks, bool is_http2)
{
    memset(self, 0, sizeof(*self));
    tls_options server = {.certificate_file = server_identity.certificate,
                          .key_file = server_identity.key,
                          .ca_file = asks ? client_identity.certificate : NULL};
    tls_options client = {.ca_file = server_identity.certificate,
                          .certificate_file = shows ? client_identity.certificate : NULL,
                          .key_file = shows ? client_identity.key : NULL};
    tls_context *server_tls = NULL;
    tls_context *client_tls = NULL;
    char url[64];
    http_call *call = NULL;
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    assert_int_equal(tls_server_new(&server, &server_tls, NULL), BAY_OK);
    assert_int_equal(tls_client_new(&client, &client_tls, NULL), BAY_OK);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self, .tls = server_tls};
    http_client_options client_options = {.limits = http_client_default_limits, .tls = client_tls};
    assert_int_equal(http_server_new(self->on.loop, &options, &self->on.server), BAY_OK);
    assert_int_equal(http_server_listen(self->on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    assert_int_equal(http_client_new(self->on.loop, &client_options, &self->client), BAY_OK);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", http_server_port(self->on.server));
    const http_field claims[] = {{STR("SSL-Client-S-DN"), STR("CN=root")},
                                 {STR("X-Forwarded-Client-Cert"), STR("Subject=\"CN=root\"")}};
    http_call_spec spec = {.method = STR("GET"),
                           .url = str_of(url),
                           .fields = claims,
                           .field_count = 2,
                           .is_http2 = is_http2};
    assert_int_equal(http_client_call(self->client, &spec, &events, self, &call, NULL), BAY_OK);
    RIG_UNTIL(&self->on, self->ends + self->failures > 0);
    assert_int_equal(self->ends, 1);
    assert_int_equal(self->status, 200);
    assert_int_equal(self->was_http2, is_http2);
    http_client_free(self->client);
    http_server_free(self->on.server);
    loop_free(self->on.loop);
    tls_free(server_tls);
    tls_free(client_tls);
}

static void what_is_shown_is_seen(void **state)
{
    (void)state;
    scene self;
    for (int is_http2 = 0; is_http2 <= (http_server_speaks_http2() ? 1 : 0); is_http2++) {
        play(&self, false, false, is_http2 == 1);
        assert_string_equal(self.subject, "");
        play(&self, false, true, is_http2 == 1);
        assert_string_equal(self.subject, "");
        play(&self, true, false, is_http2 == 1); /* not asked for, so not verified */
        assert_string_equal(self.subject, "");
        play(&self, true, true, is_http2 == 1);
        /* What would end a name or a line is escaped: the subject has one CN. */
        assert_string_equal(self.subject, "CN=client,O=A\\, B\\0A\\+CN=root");
        assert_string_equal(self.uri, "");
        assert_int_equal(strlen(self.digest), 43);
    }
}

/* Bytes of a record that never ends: unread at each look, and never a request. */
static void what_never_decrypts_keeps_no_idle_connection(void **state)
{
    (void)state;
    static const char record[] = {0x17, 3, 3, 0x40, 0};
    static const struct timespec busy = {.tv_nsec = 150000000}; /* more than its time */
    rig on = {0};
    raw peer;
    tls_context *tls = NULL;
    tls_options identity_of = {.certificate_file = server_identity.certificate,
                               .key_file = server_identity.key};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    assert_int_equal(tls_server_new(&identity_of, &tls, NULL), BAY_OK);
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &rig_handler, .user = &on, .tls = tls};
    options.limits.idle_timeout_ms = 100;
    assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
    assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), NULL), BAY_OK);
    raw_open(&peer, &on);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *session = SSL_new(context);
    assert_int_equal(fcntl(peer.fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(SSL_set_fd(session, peer.fd), 1);
    RIG_UNTIL(&on, SSL_connect(session) == 1);
    assert_int_equal(send(peer.fd, record, sizeof(record), MSG_NOSIGNAL), sizeof(record));
    for (int looks = 0; looks < 40 && http_server_connections(on.server) > 0; looks++) {
        (void)!send(peer.fd, "x", 1, MSG_NOSIGNAL); /* its end may be on its way */
        (void)nanosleep(&busy, NULL);
        (void)loop_turn(on.loop, 0);
    }
    assert_int_equal(http_server_connections(on.server), 0);
    SSL_free(session);
    SSL_CTX_free(context);
    raw_close(&peer);
    rig_fini(&on);
    tls_free(tls);
}

/* A workload's id is its only URI; two, or one that looks like another, are none. */
static void the_uri_of_a_certificate(void **state)
{
    static const char *const rows[][2] = {
        {"URI:spiffe://acme.example/gateway,DNS:client.test", "spiffe://acme.example/gateway"},
        {"URI:spiffe://acme.example/a,URI:spiffe://acme.example/b", ""},
        {"URI:spiffe://acme.example/a b", ""},
        {"DNS:spiffe.test", ""},
    };
    (void)state;
    identity before = client_identity;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        scene self;
        identity_make(&client_identity,
                      (identity_spec){.name = "client", .alternatives = rows[i][0]});
        play(&self, true, true, false);
        assert_string_equal(self.uri, rows[i][1]);
        identity_free(&client_identity);
    }
    client_identity = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_seen),
        cmocka_unit_test(the_uri_of_a_certificate),
        cmocka_unit_test(what_never_decrypts_keeps_no_idle_connection),
    };
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
