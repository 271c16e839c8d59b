/* A server over TLS, in HTTP/1.1 and HTTP/2: what cannot be read is told, hosts and origins are
 * held to the lists, clients are known by their certificates, and an end answers what is under way.
 */
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>

#include "sdk/server_parts.h" /* before cmocka, which has a macro "fail" */

#include "http/http_client.h"
#include "net/thread.h"
#include "support/failing_memory.h"
#include "support/identity.h"
#include "unit/sdk/sdk_bench.h"

static identity ours;
static identity theirs;

static int identities_new(void **state)
{
    (void)state;
    identity_new(&ours, "server");
    identity_new(&theirs, "client");
    return 0;
}

static int identities_free(void **state)
{
    (void)state;
    identity_free(&ours);
    identity_free(&theirs);
    return 0;
}

/* ---- a client -------------------------------------------------------------------------------- */

#define CALL_BODY                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META "}" \
    "}"                                                                                            \
    "}"

typedef struct asker {
    loop *loop;
    http_client *client;
    tls_context *tls;
    int status;
    int over;
    bay_err err;
    char body[4096];
    size_t len;
} asker;

static void asker_new(asker *self, loop *on, const identity *shown)
{
    *self = (asker){.loop = on};
    tls_options trust = {.ca_file = ours.certificate,
                         .certificate_file = shown != NULL ? shown->certificate : NULL,
                         .key_file = shown != NULL ? shown->key : NULL};
    assert_int_equal(tls_client_new(&trust, &self->tls, NULL), BAY_OK);
    http_client_options options = {.limits = http_client_default_limits, .tls = self->tls};
    assert_int_equal(http_client_new(on, &options, &self->client), BAY_OK);
}

static void asker_free(asker *self)
{
    http_client_free(self->client);
    tls_free(self->tls);
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    (void)fields;
    (void)count;
    ((asker *)user)->status = status;
}

static void on_body(void *user, bay_str bytes)
{
    asker *self = user;
    assert_true(self->len + bytes.len < sizeof(self->body));
    memcpy(self->body + self->len, bytes.at, bytes.len);
    self->len += bytes.len;
    self->body[self->len] = '\0';
}

static void on_end(void *user)
{
    ((asker *)user)->over++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    asker *self = user;
    (void)was_sent;
    (void)text;
    self->err = err;
    self->over++;
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

/* A tools/call; `name`: what Host says, NULL: the address; `origin`: NULL: none. */
static void ask(asker *self, uint16_t port, bool is_http2, const char *name, const char *origin)
{
    char url[64];
    http_call *call = NULL;
    http_field fields[8] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("Accept"), STR("application/json, text/event-stream")},
        {STR("MCP-Protocol-Version"), STR("2026-07-28")},
        {STR("Mcp-Method"), STR("tools/call")},
        {STR("Mcp-Name"), STR("t")},
    };
    size_t count = 5;
    if (name != NULL) {
        fields[count++] = (http_field){STR("Host"), str_of(name)};
    }
    if (origin != NULL) {
        fields[count++] = (http_field){STR("Origin"), str_of(origin)};
    }
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/mcp", port);
    http_call_spec spec = {.method = STR("POST"),
                           .url = str_of(url),
                           .fields = fields,
                           .field_count = count,
                           .body = STR(CALL_BODY),
                           .has_body = true,
                           .is_http2 = is_http2};
    self->status = self->over = 0;
    self->err = BAY_OK;
    self->len = 0;
    self->body[0] = '\0';
    assert_int_equal(http_client_call(self->client, &spec, &events, self, &call, NULL), BAY_OK);
}

static void await(asker *self)
{
    for (int left = 100000; self->over == 0 && left > 0; left--) {
        loop_turn(self->loop, 20);
    }
    assert_int_equal(self->over, 1);
}

static void expect(asker *self, uint16_t port, bool is_http2, const char *name, const char *origin,
                   int status, const char *part)
{
    ask(self, port, is_http2, name, origin);
    await(self);
    assert_int_equal(self->err, BAY_OK);
    if (self->status != status) {
        fail_msg("%d, not %d: %s", self->status, status, self->body);
    }
    assert_has(self->body, part);
}

/* ---- servers --------------------------------------------------------------------------------- */

static bay_server *server_of(bay_handler_fn handler, void *user)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, handler, user);
    return server;
}

static bay_server *tls_server(void)
{
    bay_server *server = server_of(reply_ok, NULL);
    bay_server_tls(server, ours.certificate, ours.key, NULL);
    return server;
}

static uint16_t listen_on(bay_server *server, const char *address)
{
    bay_diag diag = {0};
    if (bay_server_listen(server, address, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return bay_server_port(server);
}

static int versions(void)
{
    return http_server_speaks_http2() ? 2 : 1;
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void expect_error(bay_server *server, const char *part)
{
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, part);
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", NULL), BAY_ERR_INVALID);
    bay_server_free(server);
}

static void bad_registrations_are_told_before_serving(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    bay_server_tls(server, ours.certificate, NULL, NULL);
    expect_error(server, "bay_server_tls: a certificate and its key are wanted");
    server = server_of(reply_ok, NULL);
    bay_server_tls(server, "", ours.key, NULL);
    expect_error(server, "bay_server_tls: a certificate and its key are wanted");
    server = server_of(reply_ok, NULL);
    bay_server_allow_host(server, "");
    expect_error(server, "bay_server_allow_host: it is empty");
    server = server_of(reply_ok, NULL);
    bay_server_allow_origin(server, NULL);
    expect_error(server, "bay_server_allow_origin: it is empty");
    server = server_of(reply_ok, NULL);
    for (int i = 0; i <= HOST_TEXTS; i++) {
        bay_server_allow_host(server, "one.example");
    }
    expect_error(server, "bay_server_allow_host: there are too many");
    bay_server_tls(NULL, ours.certificate, ours.key, NULL);
    bay_server_allow_host(NULL, "x");
    bay_server_allow_origin(NULL, "x");
}

/* What a listener has copied would stay as it was: an address would stay in clear text. */
static void what_comes_too_late_is_told(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    listen_on(server, "127.0.0.1:0");
    bay_server_tls(server, ours.certificate, ours.key, NULL);
    expect_error(server, "bay_server_tls: the server is served already");
    server = server_of(reply_ok, NULL);
    listen_on(server, "127.0.0.1:0");
    bay_server_allow_host(server, "one.example");
    expect_error(server, "bay_server_allow_host: the server is served already");
}

/* Each is told by the listen, which opens nothing; the next try may succeed. */
static void files_that_do_not_fit_are_told_by_the_listen(void **state)
{
    (void)state;
    const struct {
        const char *certificate, *key, *ca, *part;
    } cases[] = {
        {"/nowhere/crt", ours.key, NULL, "the TLS certificate /nowhere/crt"},
        {ours.key, ours.key, NULL, "the TLS certificate"},
        {ours.certificate, "/nowhere/key", NULL, "the TLS key /nowhere/key"},
        {ours.certificate, theirs.key, NULL, "key"},
        {ours.certificate, ours.key, "/nowhere/ca", "the TLS authorities in /nowhere/ca"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_diag diag = {0};
        bay_server *server = server_of(reply_ok, NULL);
        bay_server_tls(server, cases[i].certificate, cases[i].key, cases[i].ca);
        assert_int_equal(bay_server_check(server, NULL), BAY_OK);
        assert_int_equal(bay_server_listen(server, "127.0.0.1:0", &diag), BAY_ERR_TLS);
        assert_has(diag.text, cases[i].part);
        assert_null(server->loop);
        assert_int_equal(bay_server_port(server), 0);
        assert_int_equal(bay_server_dispatch(server), BAY_ERR_STATE);
        bay_server_tls(server, ours.certificate, ours.key, NULL);
        assert_true(listen_on(server, "127.0.0.1:0") > 0);
        bay_server_free(server);
    }
}

/* ---- who may call ---------------------------------------------------------------------------- */

static void calls_are_answered_in_both_versions_of_http(void **state)
{
    (void)state;
    asker self;
    bay_server *server = tls_server();
    uint16_t port = listen_on(server, "127.0.0.1:0");
    for (int i = 0; i < versions(); i++) {
        asker_new(&self, server->loop, NULL);
        expect(&self, port, i == 1, NULL, NULL, 200, "\"ok\"");
        asker_free(&self);
    }
    bay_server_free(server);
}

static void who_does_not_speak_tls_gets_nothing(void **state)
{
    (void)state;
    asker self = {0};
    char url[64];
    http_call *call = NULL;
    bay_server *server = tls_server();
    uint16_t port = listen_on(server, "127.0.0.1:0");
    http_client_options options = {.limits = http_client_default_limits};
    self.loop = server->loop;
    assert_int_equal(http_client_new(server->loop, &options, &self.client), BAY_OK);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp", port);
    http_call_spec spec = {.method = STR("GET"), .url = str_of(url)};
    assert_int_equal(http_client_call(self.client, &spec, &events, &self, &call, NULL), BAY_OK);
    await(&self);
    assert_int_equal(self.status, 0);
    assert_true(self.err != BAY_OK);
    asker_free(&self);
    bay_server_free(server);
}

static void hosts_and_origins_are_held_to_the_lists(void **state)
{
    (void)state;
    asker self;
    bay_server *server = tls_server();
    bay_server_allow_host(server, "mcp.example.com");
    bay_server_allow_origin(server, "https://console.example");
    uint16_t port = listen_on(server, "127.0.0.1:0");
    for (int i = 0; i < versions(); i++) {
        bool is_2 = i == 1;
        asker_new(&self, server->loop, NULL);
        expect(&self, port, is_2, NULL, NULL, 403, "Host");
        expect(&self, port, is_2, "localhost", NULL, 403, "Host");
        expect(&self, port, is_2, "evil.example", "https://console.example", 403, "Host");
        expect(&self, port, is_2, "mcp.example.com", "https://evil.example", 403, "Origin");
        expect(&self, port, is_2, "mcp.example.com", "http://console.example", 403, "Origin");
        expect(&self, port, is_2, "mcp.example.com", NULL, 200, "\"ok\"");
        expect(&self, port, is_2, "mcp.example.com", "https://console.example", 200, "\"ok\"");
        asker_free(&self);
    }
    bay_server_free(server);
}

/* Without lists; a listener that other machines reach takes any host, but only its own pages. */
static void an_address_that_others_reach_has_its_own_rules(void **state)
{
    (void)state;
    asker self;
    bay_diag diag = {0};
    bay_server *server = tls_server();
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", &diag), BAY_ERR_DENIED);
    assert_null(server->loop); /* TLS is no proof of who calls */
    bay_server_open_on_purpose(server);
    uint16_t port = listen_on(server, "0.0.0.0:0");
    asker_new(&self, server->loop, NULL);
    expect(&self, port, false, "any.example", NULL, 200, "\"ok\"");
    expect(&self, port, false, "any.example", "https://evil.example", 403, "Origin");
    expect(&self, port, false, "any.example", "https://any.example", 200, "\"ok\"");
    asker_free(&self);
    bay_server_free(server);
    server = tls_server();
    bay_server_open_on_purpose(server);
    bay_server_allow_host(server, "mcp.example.com");
    port = listen_on(server, "0.0.0.0:0");
    asker_new(&self, server->loop, NULL);
    expect(&self, port, false, "any.example", NULL, 403, "Host");
    expect(&self, port, false, "mcp.example.com", NULL, 200, "\"ok\"");
    asker_free(&self);
    bay_server_free(server);
}

static bool by_certificate(bay_peer *peer, void *user)
{
    bay_str subject = bay_peer_certificate(peer);
    char name[64];
    (void)user;
    if (subject.len == 0) {
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", BAY_STR(subject));
    bay_peer_principal(peer, name);
    return true;
}

static void reply_principal(bay_call *call, void *user)
{
    (void)user;
    bay_call_replyf(call, "you are %.*s", BAY_STR(bay_call_principal(call)));
}

static void a_certificate_says_who_calls(void **state)
{
    (void)state;
    asker self;
    bay_server *server = server_of(reply_principal, NULL);
    bay_server_tls(server, ours.certificate, ours.key, theirs.certificate);
    bay_server_identify(server, by_certificate, NULL);
    uint16_t port = listen_on(server, "0.0.0.0:0"); /* whoever it does not know is refused */
    for (int i = 0; i < versions(); i++) {
        asker_new(&self, server->loop, NULL);
        expect(&self, port, i == 1, NULL, NULL, 401, "");
        asker_free(&self);
        asker_new(&self, server->loop, &theirs);
        expect(&self, port, i == 1, NULL, NULL, 200, "you are CN=client");
        asker_free(&self);
        asker_new(&self, server->loop, &ours); /* signed by nobody it trusts */
        ask(&self, port, i == 1, NULL, NULL);
        await(&self);
        assert_int_equal(self.status, 0);
        asker_free(&self);
    }
    bay_server_free(server);
}

/* ---- ends ------------------------------------------------------------------------------------ */

typedef struct gate {
    bay_call *call;
} gate;

static void hold(bay_call *call, void *user)
{
    gate *self = user;
    self->call = bay_call_defer(call);
}

/* From the program's own loop: what is under way when the stop comes is answered, then it is over,
 * and may begin again, with what the files say by then. */
static void a_stop_answers_what_is_under_way_and_it_may_begin_again(void **state)
{
    (void)state;
    for (int version = 0; version < versions(); version++) {
        gate self = {0};
        bay_server *server = server_of(hold, &self);
        bay_server_tls(server, ours.certificate, ours.key, NULL);
        for (int round = 0; round < 2; round++) {
            asker way;
            loop *apart = NULL;
            bay_err err = BAY_OK;
            assert_int_equal(loop_new(&apart), BAY_OK);
            asker_new(&way, apart, NULL);
            self.call = NULL;
            ask(&way, listen_on(server, "127.0.0.1:0"), version == 1, NULL, NULL);
            for (int left = 1000000; self.call == NULL && left > 0; left--) {
                loop_turn(apart, 0);
                assert_int_equal(bay_server_dispatch(server), BAY_OK);
            }
            assert_non_null(self.call);
            bay_server_stop(server);
            bay_server_stop(server); /* rung twice, heard once */
            assert_int_equal(bay_server_dispatch(server), BAY_OK);
            assert_int_equal(bay_server_listen(server, "127.0.0.1:0", NULL), BAY_ERR_STATE);
            bay_call_reply(self.call, "in the end");
            for (int left = 1000000; (err == BAY_OK || way.over == 0) && left > 0; left--) {
                loop_turn(apart, 0);
                err = bay_server_dispatch(server);
            }
            assert_int_equal(err, BAY_ERR_EOF);
            assert_int_equal(way.status, 200);
            assert_has(way.body, "in the end");
            assert_int_equal(bay_server_fd(server), -1);
            asker_free(&way);
            loop_free(apart);
        }
        bay_server_free(server);
    }
}

static void serve(void *argument)
{
    assert_int_equal(bay_server_run(argument, NULL), BAY_OK);
}

/* Pipes in clear text and HTTP over TLS at once, served on a thread of their own. */
static void pipes_and_tls_are_served_at_once(void **state)
{
    (void)state;
    int ends[2];
    char line[4096];
    asker self;
    loop *apart = NULL;
    net_thread thread;
    bay_server *server = tls_server();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    uint16_t port = listen_on(server, "127.0.0.1:0");
    assert_int_equal(bay_server_pipe(server, ends[0], ends[0], NULL), BAY_OK);
    assert_int_equal(net_thread_start(&thread, serve, server), BAY_OK);
    assert_int_equal(loop_new(&apart), BAY_OK);
    asker_new(&self, apart, NULL);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(send(ends[1], CALL_BODY "\n", strlen(CALL_BODY) + 1, MSG_NOSIGNAL),
                         (ssize_t)strlen(CALL_BODY) + 1);
        expect(&self, port, i % versions() == 1, NULL, NULL, 200, "\"ok\"");
        size_t len = 0;
        while (len == 0 || line[len - 1] != '\n') {
            ssize_t got = read(ends[1], line + len, sizeof(line) - 1 - len);
            assert_true(got > 0);
            len += (size_t)got;
        }
        line[len] = '\0';
        assert_has(line, "\"ok\"");
    }
    asker_free(&self);
    loop_free(apart);
    bay_server_stop(server);
    net_thread_join(&thread);
    bay_server_free(server);
    close(ends[0]);
    close(ends[1]);
}

/* ---- without memory -------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t runs = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        runs++;
        bay_server *server = bay_server_new("s", "1");
        bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
        bay_server_tls(server, ours.certificate, ours.key, theirs.certificate);
        bay_server_allow_host(server, "mcp.example.com");
        bay_server_allow_origin(server, "https://console.example");
        bay_err err = bay_server_listen(server, "127.0.0.1:0", NULL);
        if (err == BAY_OK) {
            bay_server_stop(server);
            assert_int_equal(bay_server_run(server, NULL), BAY_OK);
        } else {
            assert_int_equal(bay_server_port(server), 0);
        }
        bay_server_free(server);
        failing_memory_check();
    }
    assert_true(runs > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_registrations_are_told_before_serving),
        cmocka_unit_test(what_comes_too_late_is_told),
        cmocka_unit_test(files_that_do_not_fit_are_told_by_the_listen),
        cmocka_unit_test(calls_are_answered_in_both_versions_of_http),
        cmocka_unit_test(who_does_not_speak_tls_gets_nothing),
        cmocka_unit_test(hosts_and_origins_are_held_to_the_lists),
        cmocka_unit_test(an_address_that_others_reach_has_its_own_rules),
        cmocka_unit_test(a_certificate_says_who_calls),
        cmocka_unit_test(a_stop_answers_what_is_under_way_and_it_may_begin_again),
        cmocka_unit_test(pipes_and_tls_are_served_at_once),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, identities_new, identities_free);
}
