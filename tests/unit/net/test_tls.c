/* TLS on sockets: who is believed, who is refused, and that bytes and back-pressure are as in clear
 * text. Certificates are made here, into a directory that goes away with the test. */
#include "support/net_test.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/socket.h"
#include "support/identity.h"

/* --- certificates ----------------------------------------------------------------------------- */

static char directory[] = "/tmp/patchbay-tls-XXXXXX";

static identity good, other, expired, client_identity;

static int make_identities(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    const char *names = "DNS:patchbay.test,IP:127.0.0.1";
    identity_make(&good, (identity_spec){.name = "good", .alternatives = names});
    identity_make(&other, (identity_spec){.name = "other", .alternatives = names});
    identity_make(&expired,
                  (identity_spec){.name = "expired", .alternatives = names, .valid_s = -3600});
    identity_make(&client_identity,
                  (identity_spec){.name = "client", .alternatives = "DNS:client.test"});
    return 0;
}

static int remove_identities(void **state)
{
    (void)state;
    identity *const all[] = {&good, &other, &expired, &client_identity};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        identity_free(all[i]);
    }
    return rmdir(directory);
}

/* --- ends ------------------------------------------------------------------------------------- */

typedef struct end {
    net_socket *socket;
    buf got;
    size_t got_bytes;
    uint32_t checksum;
    int connected, failed, eof, drained, closed;
    bay_err err;
    char text[240];
    bool echoes;
    bool discards;
    bool stays_silent;
    bool stops_after_data;
    bool closes_on_eof;
} end;

static void on_connected(void *user)
{
    end *self = user;
    self->connected++;
    if (!self->stays_silent) {
        socket_read_start(self->socket);
    }
}

static void on_failed(void *user, bay_err err, const char *text)
{
    end *self = user;
    self->failed++;
    self->err = err;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static void on_data(void *user, bay_str bytes)
{
    end *self = user;
    assert_true(bytes.len > 0);
    self->got_bytes += bytes.len;
    for (size_t i = 0; i < bytes.len; i++) {
        self->checksum = self->checksum * 31 + (unsigned char)bytes.at[i];
    }
    if (!self->discards) {
        buf_str(&self->got, bytes);
    }
    if (self->stops_after_data) {
        socket_read_stop(self->socket);
    }
    if (self->echoes && socket_write_one(self->socket, bytes) == BAY_ERR_AGAIN) {
        socket_read_stop(self->socket);
    }
}

static void on_eof(void *user)
{
    end *self = user;
    self->eof++;
    if (self->closes_on_eof) {
        socket_close(self->socket, 0);
    }
}

static void on_drained(void *user)
{
    end *self = user;
    self->drained++;
    if (self->echoes) {
        socket_read_start(self->socket);
    }
}

static void on_closed(void *user, bay_err reason, const char *text)
{
    end *self = user;
    self->closed++;
    self->socket = NULL;
    if (self->failed == 0) {
        self->err = reason;
        snprintf(self->text, sizeof(self->text), "%s", text);
    }
}

static const socket_events events = {on_connected, on_failed,  on_data,
                                     on_eof,       on_drained, on_closed};

static void on_accepted(void *user, net_socket *socket)
{
    end *self = user;
    self->socket = socket;
    socket_set_events(socket, &events, self);
}

typedef struct fixture {
    loop *loop;
    socket_listener *listener;
    end server;
    end client;
} fixture;

static void fixture_init(fixture *self, const tls_options *server, uint32_t handshake_ms)
{
    *self = (fixture){.loop = test_loop()};
    buf_init(&self->server.got, (size_t)64 << 20);
    buf_init(&self->client.got, (size_t)64 << 20);
    bay_diag diag;
    tls_context *tls = NULL;
    assert_int_equal(tls_server_new(server, &tls, &diag), BAY_OK);
    socket_listener_options options = {.tls = tls, .handshake_timeout_ms = handshake_ms};
    assert_int_equal(socket_listen(self->loop, STR("127.0.0.1:0"), &options, on_accepted,
                                   &self->server, &self->listener, &diag),
                     BAY_OK);
    tls_free(tls); /* borrowed for the call only */
}

static void start_client(fixture *self, const tls_options *options, const char *name)
{
    tls_context *tls = NULL;
    bay_diag diag;
    assert_int_equal(tls_client_new(options, &tls, &diag), BAY_OK);
    assert_int_equal(socket_connect(self->loop, STR("127.0.0.1"),
                                    socket_listener_port(self->listener), tls, str_of(name), 20000,
                                    &events, &self->client, &self->client.socket),
                     BAY_OK);
    tls_free(tls);
}

static void fixture_fini(fixture *self)
{
    socket_listener_close(self->listener);
    socket_abort(self->client.socket);
    socket_abort(self->server.socket);
    loop_free(self->loop);
    assert_true(self->client.closed <= 1 && self->server.closed <= 1);
    buf_fini(&self->client.got);
    buf_fini(&self->server.got);
    assert_int_equal(ERR_peek_error(), 0); /* nothing is left in the thread's queue */
}

static void connect_both(fixture *self)
{
    start_client(self, &(tls_options){.ca_file = good.certificate}, "patchbay.test");
    turn_until(self->loop, self->client.connected == 1 && self->server.connected == 1);
}

static const tls_options *good_server(void)
{
    static tls_options options;
    options = (tls_options){.certificate_file = good.certificate, .key_file = good.key};
    return &options;
}

/* --- contexts --------------------------------------------------------------------------------- */

static void unusable_files_are_named(void **state)
{
    (void)state;
    char garbage[64];
    snprintf(garbage, sizeof(garbage), "%s/garbage", directory);
    FILE *file = fopen(garbage, "w");
    assert_non_null(file);
    fputs("not a certificate\n", file);
    fclose(file);
    const tls_options servers[] = {
        {.certificate_file = NULL},
        {.certificate_file = good.certificate},
        {.certificate_file = "/nonexistent", .key_file = good.key},
        {.certificate_file = garbage, .key_file = good.key},
        {.certificate_file = good.certificate, .key_file = garbage},
        {.certificate_file = good.certificate, .key_file = other.key},
        {.certificate_file = good.certificate, .key_file = good.key, .ca_file = garbage},
        {.certificate_file = good.certificate,
         .key_file = good.key,
         .require_client_certificate = true},
    };
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
        tls_context *tls = NULL;
        bay_diag diag = {.code = BAY_OK};
        assert_int_not_equal(tls_server_new(&servers[i], &tls, &diag), BAY_OK);
        assert_null(tls);
        assert_int_not_equal(diag.code, BAY_OK);
        assert_true(strlen(diag.text) > 10);
    }
    const tls_options clients[] = {
        {.ca_file = "/nonexistent"}, {.ca_file = garbage}, {.certificate_file = good.certificate}};
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        tls_context *tls = NULL;
        assert_int_not_equal(tls_client_new(&clients[i], &tls, NULL), BAY_OK);
        assert_null(tls);
    }
    unlink(garbage);
    assert_int_equal(ERR_peek_error(), 0);
    tls_free(NULL);
}

/* --- who is refused --------------------------------------------------------------------------- */

static void expect_refusal(const tls_options *server, const tls_options *client, const char *name,
                           const char *needle)
{
    fixture self;
    fixture_init(&self, server, 0);
    start_client(&self, client, name);
    turn_until(self.loop, self.client.closed == 1 && self.server.closed == 1);
    assert_int_equal(self.client.connected, 0);
    assert_int_equal(self.server.connected, 0);
    assert_int_equal(self.client.failed, 1);
    assert_int_equal(self.server.failed, 1);
    assert_int_equal(self.client.err, BAY_ERR_TLS);
    if (strstr(self.client.text, needle) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", self.client.text, needle);
    }
    fixture_fini(&self);
}

static void a_server_that_is_not_who_it_should_be_is_refused(void **state)
{
    (void)state;
    tls_options trusting = {.ca_file = good.certificate};
    expect_refusal(good_server(), &trusting, "elsewhere.test", "ostname");
    expect_refusal(good_server(), &trusting, "127.0.0.2", "IP address");
    tls_options trusting_other = {.ca_file = other.certificate};
    expect_refusal(good_server(), &trusting_other, "patchbay.test", "self-signed");
    expect_refusal(good_server(), &(tls_options){.ca_file = NULL}, "patchbay.test", "self-signed");
    tls_options server = {.certificate_file = expired.certificate, .key_file = expired.key};
    tls_options trusting_expired = {.ca_file = expired.certificate};
    expect_refusal(&server, &trusting_expired, "patchbay.test", "expired");
}

static void a_name_that_cannot_be_one_is_refused_at_once(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    tls_context *tls = NULL;
    assert_int_equal(tls_client_new(&(tls_options){.ca_file = good.certificate}, &tls, NULL),
                     BAY_OK);
    char endless[300];
    memset(endless, 'a', sizeof(endless));
    const bay_str names[] = {{endless, sizeof(endless)}, {"a\0b", 3}, {".", 1}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(socket_connect(self.loop, STR("127.0.0.1"), 1, tls, names[i], 0, &events,
                                        &self.client, &self.client.socket),
                         BAY_ERR_INVALID);
    }
    tls_free(tls);
    fixture_fini(&self);
    assert_int_equal(self.client.failed + self.client.closed, 0);
}

static void who_shows_no_certificate_has_no_subject(void **state)
{
    (void)state;
    tls_options server = {.certificate_file = good.certificate,
                          .key_file = good.key,
                          .ca_file = client_identity.certificate};
    for (int i = 0; i < 2; i++) { /* one that asks for certificates, and one that does not */
        fixture self;
        fixture_init(&self, i == 0 ? &server : good_server(), 0);
        connect_both(&self);
        char subject[TLS_PART_BYTES] = "left";
        assert_int_equal(socket_peer_certificate(self.server.socket, TLS_SUBJECT, subject), 0);
        assert_string_equal(subject, "");
        fixture_fini(&self);
    }
}

static void a_client_certificate_may_be_required(void **state)
{
    (void)state;
    tls_options server = {.certificate_file = good.certificate,
                          .key_file = good.key,
                          .ca_file = client_identity.certificate,
                          .require_client_certificate = true};
    const identity *const shown[] = {NULL, &other, &client_identity};
    for (size_t i = 0; i < 3; i++) {
        fixture self;
        fixture_init(&self, &server, 0);
        tls_options client = {.ca_file = good.certificate};
        if (shown[i] != NULL) {
            client.certificate_file = shown[i]->certificate;
            client.key_file = shown[i]->key;
        }
        start_client(&self, &client, "patchbay.test");
        if (i == 2) {
            turn_until(self.loop, self.client.connected == 1 && self.server.connected == 1);
            char subject[TLS_PART_BYTES];
            assert_int_equal(socket_peer_certificate(self.server.socket, TLS_SUBJECT, subject), 9);
            assert_string_equal(subject, "CN=client");
        } else {
            /* Under TLS 1.3 the client learns of it after its own handshake is done. */
            turn_until(self.loop, self.server.closed == 1 && self.client.closed == 1);
            assert_int_equal(self.server.connected, 0);
            assert_int_equal(self.server.err, BAY_ERR_TLS);
            assert_int_equal(self.client.err, BAY_ERR_TLS);
        }
        fixture_fini(&self);
    }
}

/* A peer of OpenSSL's own making, on the other end of a blocking descriptor; returns whether the
 * handshake succeeded. Runs in a child, so that it may block. */
static pid_t fork_peer(uint16_t port, int max_version, const char *alpn)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0) {
        return pid;
    }
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, 0);
    SSL_CTX_set_max_proto_version(context, max_version);
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    BIO *bio = BIO_new_ssl_connect(context);
    SSL *ssl = NULL;
    BIO_get_ssl(bio, &ssl);
    BIO_set_conn_hostname(bio, address);
    unsigned char offer[32];
    offer[0] = (unsigned char)strlen(alpn);
    memcpy(offer + 1, alpn, offer[0]);
    SSL_set_alpn_protos(ssl, offer, 1U + offer[0]);
    bool is_done = BIO_do_connect(bio) == 1 && BIO_do_handshake(bio) == 1;
    if (is_done && max_version == TLS1_3_VERSION) {
        const unsigned char *chosen = NULL;
        unsigned chosen_len = 0;
        SSL_get0_alpn_selected(ssl, &chosen, &chosen_len);
        is_done = chosen_len == 8 && memcmp(chosen, "http/1.1", 8) == 0;
    }
    _exit(is_done ? 0 : 1);
}

static void old_versions_and_foreign_protocols_are_refused(void **state)
{
    (void)state;
    static const struct {
        int max_version;
        const char *alpn;
        bool is_taken;
    } cases[] = {{TLS1_1_VERSION, "http/1.1", false},
                 {TLS1_2_VERSION, "http/1.1", true},
                 {TLS1_3_VERSION, "http/1.1", true},
                 {TLS1_3_VERSION, "smtp", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture self;
        fixture_init(&self, good_server(), 0);
        uint16_t port = socket_listener_port(self.listener);
        pid_t peer = fork_peer(port, cases[i].max_version, cases[i].alpn);
        turn_until(self.loop, self.server.connected + self.server.failed == 1);
        int status = 0;
        assert_int_equal(waitpid(peer, &status, 0), peer);
        assert_int_equal(status, cases[i].is_taken ? 0 : 1 << 8);
        assert_int_equal(self.server.connected, cases[i].is_taken ? 1 : 0);
        fixture_fini(&self);
    }
}

static void garbage_and_silence_are_no_handshake(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 5);
    end *client = &self.client;
    uint16_t port = socket_listener_port(self.listener);
    client->stays_silent = true;
    assert_int_equal(socket_connect(self.loop, STR("127.0.0.1"), port, NULL, STR(""), 0, &events,
                                    client, &client->socket),
                     BAY_OK);
    turn_until(self.loop, self.server.closed == 1);
    assert_int_equal(self.server.err, BAY_ERR_TIMEOUT);
    fixture_fini(&self);

    fixture_init(&self, good_server(), 0);
    port = socket_listener_port(self.listener);
    assert_int_equal(socket_connect(self.loop, STR("127.0.0.1"), port, NULL, STR(""), 0, &events,
                                    client, &client->socket),
                     BAY_OK);
    turn_until(self.loop, client->connected == 1);
    assert_int_equal(socket_write_one(client->socket, STR("GET / HTTP/1.1\r\n\r\n")), BAY_OK);
    turn_until(self.loop, self.server.closed == 1);
    assert_int_equal(self.server.err, BAY_ERR_TLS);
    assert_int_equal(self.server.failed, 1);
    fixture_fini(&self);
}

/* --- what is carried -------------------------------------------------------------------------- */

static void a_good_server_is_believed_and_bytes_come_back(void **state)
{
    (void)state;
    static const char *const names[] = {"patchbay.test", "patchbay.test.", "127.0.0.1", ""};
    for (size_t i = 0; i < 4; i++) {
        fixture self;
        fixture_init(&self, good_server(), 0);
        self.server.echoes = true;
        start_client(&self, &(tls_options){.ca_file = good.certificate}, names[i]);
        turn_until(self.loop, self.client.connected == 1);
        assert_true(socket_is_tls(self.client.socket));
        bay_str spans[] = {STR("head "), {NULL, 0}, STR("body")};
        assert_int_equal(socket_write(self.client.socket, spans, 3), BAY_OK);
        turn_until(self.loop, self.client.got.len == 9);
        assert_memory_equal(self.client.got.at, "head body", 9);
        fixture_fini(&self);
    }
    fixture self;
    fixture_init(&self, good_server(), 0);
    start_client(&self, &(tls_options){.insecure_no_verify = true}, "elsewhere.test");
    turn_until(self.loop, self.client.connected == 1);
    fixture_fini(&self);
}

static void large_transfers_keep_to_back_pressure(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    self.server.stays_silent = true;
    self.server.discards = true;
    connect_both(&self);
    socket_set_limits(self.client.socket, 100000, (size_t)32 << 20);
    size_t len = (size_t)1 << 20;
    char *block = mem_alloc(len);
    uint32_t checksum = 0;
    size_t sent = 0;
    size_t queued = 0;
    bay_err err = BAY_OK;
    for (int i = 0; i < 30 && err == BAY_OK; i++) {
        for (size_t k = 0; k < len; k++) {
            block[k] = (char)((k * 2654435761U + (size_t)i) >> 7);
            checksum = checksum * 31 + (unsigned char)block[k];
        }
        err = socket_write_one(self.client.socket, (bay_str){block, len});
        queued = socket_queued_bytes(self.client.socket);
        sent += len;
        loop_turn(self.loop, 0); /* what the kernel takes now is its own affair */
    }
    assert_int_equal(err, BAY_ERR_AGAIN);
    assert_true(queued > 100000);
    socket_read_start(self.server.socket);
    turn_until(self.loop, self.server.got_bytes == sent);
    turn_until(self.loop, self.client.drained == 1);
    assert_int_equal(self.server.checksum, checksum);
    mem_free(block);
    fixture_fini(&self);
}

static void a_peer_that_never_reads_is_cut_off_at_the_maximum(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    self.server.stays_silent = true;
    connect_both(&self);
    socket_set_limits(self.client.socket, 1000, (size_t)2 << 20);
    char *block = mem_zalloc(1 << 20);
    bay_err err = BAY_OK;
    for (int i = 0; i < 100 && (err == BAY_OK || err == BAY_ERR_AGAIN); i++) {
        err = socket_write_one(self.client.socket, (bay_str){block, 1 << 20});
    }
    assert_int_equal(err, BAY_ERR_LIMIT);
    mem_free(block);
    turn_until(self.loop, self.client.closed == 1);
    assert_int_equal(self.client.err, BAY_ERR_LIMIT);
    fixture_fini(&self);
}

static void reading_may_stop_inside_every_event_without_loss(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    self.server.stops_after_data = true;
    connect_both(&self);
    char bytes[200000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i % 251);
    }
    bay_err err = socket_write_one(self.client.socket, (bay_str){bytes, sizeof(bytes)});
    assert_true(err == BAY_OK || err == BAY_ERR_AGAIN);
    socket_shutdown(self.client.socket);
    int stops = 0;
    while (self.server.eof == 0) {
        size_t before = self.server.got_bytes;
        turn_until(self.loop, self.server.got_bytes > before || self.server.eof == 1);
        size_t stopped_at = self.server.got_bytes;
        loop_turn(self.loop, 0);
        loop_turn(self.loop, 0);
        assert_int_equal(self.server.got_bytes, stopped_at);
        socket_read_start(self.server.socket);
        assert_int_equal(self.server.got_bytes, stopped_at);
        stops++;
    }
    assert_true(stops > 10);
    assert_int_equal(self.server.got.len, sizeof(bytes));
    assert_memory_equal(self.server.got.at, bytes, sizeof(bytes));
    fixture_fini(&self);
}

static void half_close_and_close_end_tls_properly(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    connect_both(&self);
    assert_int_equal(socket_write_one(self.client.socket, STR("ask")), BAY_OK);
    socket_shutdown(self.client.socket);
    turn_until(self.loop, self.server.eof == 1);
    assert_int_equal(socket_write_one(self.server.socket, STR("answer")), BAY_OK);
    self.client.closes_on_eof = true;
    socket_close(self.server.socket, 0);
    turn_until(self.loop, self.client.closed == 1 && self.server.closed == 1);
    assert_int_equal(self.client.got.len, 6);
    assert_int_equal(self.client.eof, 1);
    assert_int_equal(self.client.err, BAY_OK);
    assert_int_equal(self.server.err, BAY_OK);
    fixture_fini(&self);
}

static void an_end_without_close_notify_is_no_eof(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    connect_both(&self);
    socket_abort(self.client.socket);
    turn_until(self.loop, self.server.closed == 1);
    assert_int_equal(self.server.eof, 0);
    assert_int_equal(self.server.err, BAY_ERR_CLOSED);
    fixture_fini(&self);
}

static void a_renewed_certificate_serves_the_next_connection(void **state)
{
    (void)state;
    fixture self;
    fixture_init(&self, good_server(), 0);
    connect_both(&self);
    tls_context *renewed = NULL;
    tls_options options = {.certificate_file = other.certificate, .key_file = other.key};
    assert_int_equal(tls_server_new(&options, &renewed, NULL), BAY_OK);
    socket_listener_set_tls(self.listener, renewed);
    tls_free(renewed);
    assert_int_equal(socket_write_one(self.client.socket, STR("still here")), BAY_OK);
    turn_until(self.loop, self.server.got.len == 10);
    socket_abort(self.client.socket);
    turn_until(self.loop, self.client.closed == 1 && self.server.closed == 1);
    buf_fini(&self.server.got);
    self.client = self.server = (end){.connected = 0};
    start_client(&self, &(tls_options){.ca_file = other.certificate}, "patchbay.test");
    turn_until(self.loop, self.client.connected == 1);
    fixture_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable_files_are_named),
        cmocka_unit_test(a_server_that_is_not_who_it_should_be_is_refused),
        cmocka_unit_test(a_name_that_cannot_be_one_is_refused_at_once),
        cmocka_unit_test(who_shows_no_certificate_has_no_subject),
        cmocka_unit_test(a_client_certificate_may_be_required),
        cmocka_unit_test(old_versions_and_foreign_protocols_are_refused),
        cmocka_unit_test(garbage_and_silence_are_no_handshake),
        cmocka_unit_test(a_good_server_is_believed_and_bytes_come_back),
        cmocka_unit_test(large_transfers_keep_to_back_pressure),
        cmocka_unit_test(a_peer_that_never_reads_is_cut_off_at_the_maximum),
        cmocka_unit_test(reading_may_stop_inside_every_event_without_loss),
        cmocka_unit_test(half_close_and_close_end_tls_properly),
        cmocka_unit_test(an_end_without_close_notify_is_no_eof),
        cmocka_unit_test(a_renewed_certificate_serves_the_next_connection),
    };
    return cmocka_run_group_tests(tests, make_identities, remove_identities);
}
