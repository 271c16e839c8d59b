/* Clients of servers and callers of agents over TLS: what they trust, what they show, and what the
 * error says if it does not fit. Every way a request can go: Streamable HTTP, HTTP+SSE, JSON-RPC,
 * HTTP+JSON, and gRPC over HTTP/2. */
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <string.h>

#include "sdk/caller_parts.h" /* before cmocka, which has a macro "fail" */
#include "sdk/client_parts.h"
#include "sdk/server_parts.h"

#include "net/thread.h"
#include "patchbay/agent.h"
#include "support/failing_memory.h"
#include "support/identity.h"
#include "support/server_rig.h"

static identity good, other, expired, elsewhere, visitor;

static int identities_new(void **state)
{
    (void)state;
    identity_new(&good, "good");
    identity_new(&other, "other");
    identity_make(&expired, (identity_spec){.name = "expired", .valid_s = -3600});
    identity_make(&elsewhere,
                  (identity_spec){.name = "elsewhere", .alternatives = "DNS:elsewhere.test"});
    identity_new(&visitor, "visitor");
    return 0;
}

static int identities_free(void **state)
{
    (void)state;
    identity *const all[] = {&good, &other, &expired, &elsewhere, &visitor};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        identity_free(all[i]);
    }
    return 0;
}

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, part);
    }
}

/* ---- the log --------------------------------------------------------------------------------- */

static int warnings;

static void count_warnings(bay_log_level level, const char *component, const char *text, void *user)
{
    (void)user;
    (void)component;
    if (level == BAY_LOG_LEVEL_WARNING && strstr(text, "insecure") != NULL) {
        warnings++;
    }
}

/* ---- who asks -------------------------------------------------------------------------------- */

/* What a program sets, of a client and of a caller alike. */
typedef struct setting {
    const char *ca, *certificate, *key;
    bool is_insecure;
} setting;

typedef enum way {
    WAY_HTTP,
    WAY_SSE,
    WAY_JSONRPC,
    WAY_REST,
    WAY_GRPC,
    WAY_COUNT,
} way;

static const char *const bindings[WAY_COUNT] = {
    [WAY_JSONRPC] = "JSONRPC", [WAY_REST] = "HTTP+JSON", [WAY_GRPC] = "GRPC"};

static bay_client_options *client_options(way by, setting set)
{
    bay_client_options *options = bay_client_options_new();
    if (set.ca != NULL || set.certificate != NULL || set.key != NULL) {
        bay_client_options_tls(options, set.ca, set.certificate, set.key);
    }
    if (set.is_insecure) {
        bay_client_options_insecure(options);
    }
    bay_client_options_transport(options,
                                 by == WAY_SSE ? BAY_TRANSPORT_SSE_2024 : BAY_TRANSPORT_AUTO);
    bay_client_options_log_to(options, BAY_LOG_LEVEL_WARNING, count_warnings, NULL);
    return options;
}

static bay_caller_options *caller_options(way by, setting set)
{
    bay_caller_options *options = bay_caller_options_new();
    if (set.ca != NULL || set.certificate != NULL || set.key != NULL) {
        bay_caller_options_tls(options, set.ca, set.certificate, set.key);
    }
    if (set.is_insecure) {
        bay_caller_options_insecure(options);
    }
    bay_caller_options_interface(options, bindings[by], NULL);
    bay_caller_options_log_to(options, BAY_LOG_LEVEL_WARNING, count_warnings, NULL);
    return options;
}

static bay_err ask_server(way by, const char *url, setting set, bay_diag *diag)
{
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_client_options *options = client_options(by, set);
    bay_err err = bay_client_connect(url, options, &client, diag);
    bay_client_options_free(options);
    if (err == BAY_OK) {
        err = bay_client_call(client, "echo", NULL, &reply, diag);
        bay_reply_free(reply);
        bay_client_close(client);
    }
    return err;
}

/* `agent`: a URL, or a card. */
static bay_err ask_agent(way by, const char *agent, setting set, bay_diag *diag)
{
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
    bay_caller_options *options = caller_options(by, set);
    bay_err err = bay_caller_connect(agent, options, &caller, diag);
    bay_caller_options_free(options);
    if (err == BAY_OK) {
        err = bay_caller_send_wait(caller, "x", &response, diag);
        bay_caller_reply_free(response);
        bay_caller_close(caller);
    }
    return err;
}

static bay_err ask(way by, const char *target, setting set, bay_diag *diag)
{
    *diag = (bay_diag){0};
    return bindings[by] == NULL ? ask_server(by, target, set, diag)
                                : ask_agent(by, target, set, diag);
}

/* ---- who answers ----------------------------------------------------------------------------- */

/* One of each, on threads of their own. */
typedef struct peers {
    server_rig rig; /* Streamable HTTP and HTTP+SSE; its engine has the tool "echo" */
    tls_context *tls;
    bay_agent *agent;
    atomic_int heard; /* messages */
    net_thread threads[2];
    char targets[WAY_COUNT][64];
} peers;

static void serve_rig(void *argument)
{
    loop_run(((peers *)argument)->rig.loop);
}

static void serve_agent(void *argument)
{
    assert_int_equal(bay_agent_run(((peers *)argument)->agent, NULL), BAY_OK);
}

static void hear(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    atomic_fetch_add(&((peers *)user)->heard, 1);
    (void)bay_task_reply(task, "heard");
}

/* `client_ca` NULL: no certificates are asked for; else they are required. */
static void peers_open(peers *self, const identity *shown, const identity *client_ca)
{
    bay_diag diag = {0};
    memset(self, 0, sizeof(*self));
    tls_options tls = {.certificate_file = shown->certificate,
                       .key_file = shown->key,
                       .ca_file = client_ca != NULL ? client_ca->certificate : NULL,
                       .require_client_certificate = client_ca != NULL};
    assert_int_equal(tls_server_new(&tls, &self->tls, NULL), BAY_OK);
    rig_options change = {.front.is_loopback = true, .tls = self->tls};
    rig_open(&self->rig, &change, 0);
    self->agent = bay_agent_new("Peer", "1", "Hears.");
    bay_agent_skill(self->agent, "hear", "Hear", "Hears.", hear, self);
    bay_agent_tls(self->agent, shown->certificate, shown->key,
                  client_ca != NULL ? client_ca->certificate : NULL);
    if (client_ca != NULL) {
        bay_agent_mtls(self->agent, "mtls");
    }
    if (bay_agent_listen(self->agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    for (int i = 0; i < WAY_COUNT; i++) {
        bool is_agent = bindings[i] != NULL;
        uint16_t port = is_agent ? bay_agent_port(self->agent) : http_server_port(self->rig.http);
        const char *path = is_agent ? "" : i == WAY_SSE ? "/sse" : "/mcp";
        snprintf(self->targets[i], sizeof(self->targets[i]), "https://127.0.0.1:%u%s", port, path);
    }
    assert_int_equal(net_thread_start(&self->threads[0], serve_rig, self), BAY_OK);
    assert_int_equal(net_thread_start(&self->threads[1], serve_agent, self), BAY_OK);
}

static void peers_close(peers *self)
{
    loop_stop(self->rig.loop);
    bay_agent_stop(self->agent);
    net_thread_join(&self->threads[0]);
    net_thread_join(&self->threads[1]);
    rig_close(&self->rig);
    bay_agent_free(self->agent);
    tls_free(self->tls);
}

/* gRPC needs HTTP/2. */
static int ways(void)
{
    return http_server_speaks_http2() ? WAY_COUNT : WAY_GRPC;
}

static void expect(peers *self, way by, setting set, bay_err err, const char *part)
{
    bay_diag diag;
    bay_err got = ask(by, self->targets[by], set, &diag);
    if (got != err) {
        fail_msg("way %d: %s: %s", by, bay_err_text(got), diag.text);
    }
    if (part != NULL) {
        assert_says(diag.text, part);
    }
}

/* ---- files that do not fit ------------------------------------------------------------------- */

/* Nobody listens there: whatever is said of the files was said before a connection was tried. */
static const char *const nowhere = "https://127.0.0.1:1/mcp";

static void refuses(setting set, bay_err err, const char *part)
{
    bay_diag diag = {0};
    bay_client *client = NULL;
    bay_caller *caller = NULL;
    for (int round = 0; round < 2; round++) {
        bay_client_options *options = client_options(WAY_HTTP, set);
        diag = (bay_diag){0};
        assert_int_equal(
            round == 0 ? bay_client_connect(nowhere, options, &client, &diag)
                       : bay_client_connect_start(nowhere, options, &client, &diag, NULL, NULL),
            err);
        assert_int_equal(diag.code, err);
        assert_says(diag.text, part);
        assert_null(client);
        bay_client_options_free(options);
        bay_caller_options *others = caller_options(WAY_JSONRPC, set);
        diag = (bay_diag){0};
        assert_int_equal(
            round == 0 ? bay_caller_connect(nowhere, others, &caller, &diag)
                       : bay_caller_connect_start(nowhere, others, &caller, &diag, NULL, NULL),
            err);
        assert_int_equal(diag.code, err);
        assert_says(diag.text, part);
        assert_null(caller);
        bay_caller_options_free(others);
    }
}

static void files_that_do_not_fit_are_told_before_anything_is_tried(void **state)
{
    (void)state;
    refuses((setting){.certificate = good.certificate}, BAY_ERR_INVALID, "belong together");
    refuses((setting){.key = good.key}, BAY_ERR_INVALID, "belong together");
    refuses((setting){.ca = ""}, BAY_ERR_INVALID, "empty");
    refuses((setting){.certificate = "", .key = good.key}, BAY_ERR_INVALID, "empty");
    refuses((setting){.ca = good.certificate, .is_insecure = true}, BAY_ERR_INVALID, "one of them");
    refuses((setting){.ca = "/nowhere/ca"}, BAY_ERR_TLS, "the TLS authorities in /nowhere/ca");
    refuses((setting){.ca = good.key}, BAY_ERR_TLS, good.key);
    refuses((setting){.certificate = "/nowhere/crt", .key = good.key}, BAY_ERR_TLS,
            "the TLS certificate /nowhere/crt");
    refuses((setting){.certificate = good.certificate, .key = "/nowhere/key"}, BAY_ERR_TLS,
            "the TLS key /nowhere/key");
    refuses((setting){.certificate = good.certificate, .key = other.key}, BAY_ERR_TLS, "key");
    bay_client_options_tls(NULL, "x", NULL, NULL);
    bay_client_options_insecure(NULL);
    bay_caller_options_tls(NULL, "x", NULL, NULL);
    bay_caller_options_insecure(NULL);
}

/* Each call says what it names; what it leaves out stays. */
static void settings_add_up(void **state)
{
    (void)state;
    bay_client_options copy;
    bay_client_options *options = bay_client_options_new();
    bay_client_options_tls(options, "first", NULL, NULL);
    bay_client_options_tls(options, "ca", NULL, NULL);
    bay_client_options_tls(options, NULL, "crt", "key");
    assert_int_equal(sdk_options_copy(&copy, options, NULL), BAY_OK);
    bay_client_options_free(options);
    assert_string_equal(copy.base.ca_file, "ca");
    assert_string_equal(copy.base.certificate_file, "crt");
    assert_string_equal(copy.base.key_file, "key");
    sdk_options_fini(&copy);
}

/* ---- certificates of servers ----------------------------------------------------------------- */

static void only_a_good_certificate_is_accepted(void **state)
{
    (void)state;
    const struct {
        const identity *shown;
        const char *ca, *part;
    } cases[] = {
        {&good, other.certificate, "self-signed"},
        {&good, NULL, "self-signed"}, /* the system's authorities */
        {&expired, expired.certificate, "expired"},
        {&elsewhere, elsewhere.certificate, "mismatch"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        peers self;
        peers_open(&self, cases[i].shown, NULL);
        for (int by = 0; by < ways(); by++) {
            expect(&self, by, (setting){.ca = cases[i].ca}, BAY_ERR_TLS, cases[i].part);
        }
        peers_close(&self);
        assert_int_equal(self.rig.service.calls + self.heard, 0);
    }
}

static void the_authority_named_is_trusted(void **state)
{
    peers self;
    (void)state;
    peers_open(&self, &good, NULL);
    warnings = 0;
    for (int by = 0; by < ways(); by++) {
        expect(&self, by, (setting){.ca = good.certificate}, BAY_OK, NULL);
    }
    assert_int_equal(warnings, 0);
    peers_close(&self);
}

/* Whatever the certificate says; and every client that asks says so itself, once. */
static void insecure_accepts_anything_and_says_so(void **state)
{
    (void)state;
    const identity *const shown[] = {&good, &expired, &elsewhere};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        peers self;
        peers_open(&self, shown[i], NULL);
        for (int by = 0; by < ways(); by++) {
            warnings = 0;
            expect(&self, by, (setting){.is_insecure = true}, BAY_OK, NULL);
            assert_int_equal(warnings, 1);
        }
        peers_close(&self);
    }
}

/* A card that the program gave: the first connection is that of the operation itself. */
static void each_binding_checks_for_itself(void **state)
{
    peers self;
    bay_caller *caller = NULL;
    (void)state;
    peers_open(&self, &good, NULL);
    bay_caller_options *options = caller_options(WAY_JSONRPC, (setting){.ca = good.certificate});
    assert_int_equal(bay_caller_connect(self.targets[WAY_JSONRPC], options, &caller, NULL), BAY_OK);
    bay_caller_options_free(options);
    bay_str card = bay_caller_card(caller);
    char *text = mem_dup(card.at, card.len);
    assert_non_null(text);
    bay_caller_close(caller);
    for (int by = WAY_JSONRPC; by < ways(); by++) {
        bay_diag diag;
        assert_int_equal(ask(by, text, (setting){.ca = good.certificate}, &diag), BAY_OK);
        assert_int_equal(ask(by, text, (setting){.ca = other.certificate}, &diag), BAY_ERR_TLS);
        assert_says(diag.text, "self-signed");
        assert_int_equal(ask(by, text, (setting){0}, &diag), BAY_ERR_TLS);
    }
    mem_free(text);
    peers_close(&self);
}

/* ---- certificates of clients ----------------------------------------------------------------- */

static void a_server_gets_the_certificate_that_it_requires(void **state)
{
    peers self;
    setting none = {.ca = good.certificate};
    setting wrong = {.ca = good.certificate, .certificate = other.certificate, .key = other.key};
    setting right = {
        .ca = good.certificate, .certificate = visitor.certificate, .key = visitor.key};
    (void)state;
    peers_open(&self, &good, &visitor);
    for (int by = 0; by < ways(); by++) {
        bay_diag diag;
        /* TLS 1.3 tells a client behind its own handshake, perhaps by a reset: BAY_ERR_CLOSED */
        bay_err err = ask(by, self.targets[by], none, &diag);
        assert_true(err == BAY_ERR_TLS || err == BAY_ERR_CLOSED || err == BAY_ERR_REMOTE);
        err = ask(by, self.targets[by], wrong, &diag);
        assert_true(err == BAY_ERR_TLS || err == BAY_ERR_CLOSED);
    }
    for (int by = 0; by < ways(); by++) {
        expect(&self, by, right, BAY_OK, NULL);
    }
    peers_close(&self);
    assert_int_equal(self.rig.service.calls + self.heard, ways()); /* only those */
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void reply_ok(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "ok");
}

static void serve(void *argument)
{
    assert_int_equal(bay_server_run(argument, NULL), BAY_OK);
}

static bay_server *server_on(const char *address, net_thread *thread)
{
    bay_diag diag = {0};
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "echo", NULL, NULL, reply_ok, NULL);
    bay_server_tls(server, good.certificate, good.key, NULL);
    if (bay_server_listen(server, address, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(net_thread_start(thread, serve, server), BAY_OK);
    return server;
}

static void server_end(bay_server *server, net_thread *thread)
{
    bay_server_stop(server);
    net_thread_join(thread);
    bay_server_free(server);
}

/* The files are read once: a client that reconnects needs them no more, and warns no more. */
static void a_client_that_reconnects_keeps_what_it_trusts(void **state)
{
    (void)state;
    for (int is_insecure = 0; is_insecure < 2; is_insecure++) {
        identity moved = good;
        net_thread thread;
        bay_client *client = NULL;
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        char url[64], address[32];
        bay_server *server = server_on("127.0.0.1:0", &thread);
        snprintf(address, sizeof(address), "127.0.0.1:%u", bay_server_port(server));
        snprintf(url, sizeof(url), "https://%s/mcp", address);
        setting set = {.is_insecure = is_insecure == 1,
                       .ca = is_insecure == 1 ? NULL : good.certificate};
        warnings = 0;
        bay_client_options *options = client_options(WAY_HTTP, set);
        assert_int_equal(bay_client_connect(url, options, &client, &diag), BAY_OK);
        bay_client_options_free(options);
        assert_int_equal(bay_client_call(client, "echo", NULL, &reply, &diag), BAY_OK);
        bay_reply_free(reply);
        server_end(server, &thread);
        server = server_on(address, &thread);
        snprintf(moved.certificate, sizeof(moved.certificate), "%s/away", good.directory);
        assert_int_equal(rename(good.certificate, moved.certificate), 0);
        bay_err err = bay_client_call(client, "echo", NULL, &reply, &diag);
        assert_int_equal(rename(moved.certificate, good.certificate), 0);
        if (err != BAY_OK) {
            fail_msg("%s", diag.text);
        }
        bay_reply_free(reply);
        assert_int_equal(warnings, is_insecure);
        bay_client_close(client);
        server_end(server, &thread);
    }
}

/* Neither knows of the other's trust, though both are in one process. */
static void clients_do_not_share_their_trust(void **state)
{
    peers self;
    bay_client *trusting = NULL;
    bay_diag diag = {0};
    (void)state;
    peers_open(&self, &good, NULL);
    bay_client_options *options = client_options(WAY_HTTP, (setting){.is_insecure = true});
    assert_int_equal(bay_client_connect(self.targets[WAY_HTTP], options, &trusting, &diag), BAY_OK);
    expect(&self, WAY_HTTP, (setting){0}, BAY_ERR_TLS, "self-signed");
    expect(&self, WAY_JSONRPC, (setting){0}, BAY_ERR_TLS, "self-signed");
    bay_client_options_free(options);
    bay_client_close(trusting);
    peers_close(&self);
}

static void clear_text_is_as_before(void **state)
{
    (void)state;
    net_thread thread;
    bay_diag diag = {0};
    char url[64];
    peers self = {0};
    rig_open(&self.rig, NULL, 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp", http_server_port(self.rig.http));
    assert_int_equal(net_thread_start(&thread, serve_rig, &self), BAY_OK);
    assert_int_equal(ask_server(WAY_HTTP, url, (setting){.ca = good.certificate}, &diag), BAY_OK);
    loop_stop(self.rig.loop);
    net_thread_join(&thread);
    rig_close(&self.rig);
}

static void every_allocation_may_fail(void **state)
{
    size_t runs = 0;
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        setting set = {
            .ca = good.certificate, .certificate = visitor.certificate, .key = visitor.key};
        bay_client *client = NULL;
        bay_caller *caller = NULL;
        runs++;
        bay_client_options *options = client_options(WAY_HTTP, set);
        bay_err err = bay_client_connect_start(nowhere, options, &client, NULL, NULL, NULL);
        assert_true((err == BAY_OK) == (client != NULL));
        bay_client_close(client);
        bay_client_options_free(options);
        bay_caller_options *others = caller_options(WAY_JSONRPC, set);
        err = bay_caller_connect_start(nowhere, others, &caller, NULL, NULL, NULL);
        assert_true((err == BAY_OK) == (caller != NULL));
        bay_caller_close(caller);
        bay_caller_options_free(others);
        failing_memory_check();
    }
    assert_true(runs > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_do_not_fit_are_told_before_anything_is_tried),
        cmocka_unit_test(settings_add_up),
        cmocka_unit_test(only_a_good_certificate_is_accepted),
        cmocka_unit_test(the_authority_named_is_trusted),
        cmocka_unit_test(insecure_accepts_anything_and_says_so),
        cmocka_unit_test(each_binding_checks_for_itself),
        cmocka_unit_test(a_server_gets_the_certificate_that_it_requires),
        cmocka_unit_test(a_client_that_reconnects_keeps_what_it_trusts),
        cmocka_unit_test(clients_do_not_share_their_trust),
        cmocka_unit_test(clear_text_is_as_before),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, identities_new, identities_free);
}
