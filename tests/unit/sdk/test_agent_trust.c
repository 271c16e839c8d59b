/* Whom an agent believes, and why it is believed: JWT, client certificates, a signed card. */
#include "agent_rig.h"
#include "auth/card_signature.h"
#include "unit/auth/jose_rig.h"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "patchbay/a2a_client.h"

static char principal[256];

static void handle(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    snprintf(principal, sizeof(principal), "%.*s", BAY_STR(bay_task_principal(task)));
    bay_task_complete(task, NULL);
}

static bay_agent *agent_new(void)
{
    bay_agent *agent = bay_agent_new("trust", "1.0.0", "Trusts few.");
    bay_agent_skill(agent, "one", "One", "The first.", handle, NULL);
    bay_agent_on_loop(agent);
    return agent;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void expect_token(bay_agent *agent, EVP_PKEY *key, const char *claims, int status)
{
    buf token;
    char fields[2048];
    buf_init(&token, RIG_TEXT);
    rig_token(key, "{\"alg\":\"ES256\"}", claims, &token);
    snprintf(fields, sizeof(fields), AGENT_JSON "Authorization: Bearer %.*s\r\n",
             BAY_STR(buf_view(&token)));
    principal[0] = '\0';
    agent_expect(agent, "/", fields, AGENT_SEND("m", "x", ""), status,
                 status == 200 ? "TASK_STATE_COMPLETED" : "error");
    buf_fini(&token);
}

#define CLAIMS(issuer, audience, expires, scope)                                                   \
    "{\"sub\":\"ann\",\"iss\":\"" issuer "\",\"aud\":\"" audience "\",\"exp\":" expires            \
    ",\"scope\":\"" scope "\"}"

static void a_token_must_be_for_this_agent(void **state)
{
    (void)state;
    EVP_PKEY *key = rig_ec_key();
    EVP_PKEY *other = EVP_EC_gen("P-256");
    bay_agent *agent = agent_new();
    bay_agent_jwt(agent, "jwt", "https://issuer.example", "agent", " " RIG_EC_JWK);
    bay_agent_scheme(agent, "oauth",
                     "{\"oauth2SecurityScheme\":{\"flows\":{\"clientCredentials\":{\"tokenUrl\":"
                     "\"https://issuer.example/token\",\"scopes\":{\"run\":\"Runs.\"}}}}}",
                     NULL, NULL, "jwt");
    bay_agent_require(agent, "jwt", "run");
    agent_listen(agent);
    expect_token(agent, key, CLAIMS("https://issuer.example", "agent", "4102444800", "run"), 200);
    assert_string_equal(principal, "ann");
    expect_token(agent, other, CLAIMS("https://issuer.example", "agent", "4102444800", "run"), 401);
    expect_token(agent, key, CLAIMS("https://issuer.example", "other", "4102444800", "run"), 401);
    expect_token(agent, key, CLAIMS("https://elsewhere.example", "agent", "4102444800", "run"),
                 401);
    expect_token(agent, key, CLAIMS("https://issuer.example", "agent", "1000000000", "run"), 401);
    expect_token(agent, key, CLAIMS("https://issuer.example", "agent", "4102444800", "read"), 403);
    assert_string_equal(principal, "");
    bay_agent_free(agent);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

/* ---- the card -------------------------------------------------------------------------------- */

static void the_card_is_signed_in_each_of_its_forms(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{"/.well-known/agent-card.json", "A2A-Version: 1.0\r\n"},
                                           {"/.well-known/agent-card.json", ""},
                                           {"/.well-known/agent.json", ""}};
    jose_keys *keys = NULL;
    jose_keys *others = NULL;
    bay_agent *agent = agent_new();
    assert_int_equal(jose_keys_new(STR(RIG_EC_JWK), &keys, NULL), BAY_OK);
    assert_int_equal(jose_keys_new(STR(RIG_RSA_JWK), &others, NULL), BAY_OK);
    bay_agent_signing_key(agent, RIG_EC_PRIVATE, "mine", "https://agent.example/keys");
    agent_listen(agent);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        wire_client client;
        json_doc doc;
        arena memory;
        arena_init(&memory, 1 << 24);
        agent_ask(agent, &client, "GET", paths[i][0], paths[i][1], NULL);
        assert_int_equal(json_parse(&doc, buf_view(&client.body), NULL, &memory, NULL), BAY_OK);
        assert_int_equal(card_verify(json_root(&doc), keys, NULL), BAY_OK);
        assert_int_equal(card_verify(json_root(&doc), others, NULL), BAY_DENIED);
        card_signer signer;
        assert_int_equal(card_signers(json_root(&doc), &memory, &signer, 1), 1);
        assert_true(str_eq(signer.key_id, STR("mine")));
        arena_fini(&memory);
        wire_close(&client);
    }
    jose_keys_free(keys);
    jose_keys_free(others);
    bay_agent_free(agent);
}

/* ---- certificates ---------------------------------------------------------------------------- */

static char directory[] = "/tmp/patchbay-trust-XXXXXX";

typedef struct identity {
    char certificate[64];
    char key[64];
} identity;

static void make_identity(identity *self, const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -7200);
    X509_gmtime_adj(X509_getm_notAfter(made), 86400);
    X509_set_pubkey(made, key);
    X509_NAME *subject = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made, subject);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(made, names, -1);
    X509_EXTENSION_free(names);
    assert_true(X509_sign(made, key, EVP_sha256()) > 0);
    snprintf(self->certificate, sizeof(self->certificate), "%s/%s.crt", directory, name);
    snprintf(self->key, sizeof(self->key), "%s/%s.key", directory, name);
    FILE *file = fopen(self->certificate, "w");
    assert_int_equal(PEM_write_X509(file, made), 1);
    fclose(file);
    file = fopen(self->key, "w");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(made);
    EVP_PKEY_free(key);
}

static void *serve(void *argument)
{
    return bay_agent_run(argument, NULL) == BAY_OK ? NULL : argument;
}

static bay_err call_as(uint16_t port, const identity *server, const identity *client)
{
    char address[64];
    bay_caller *caller = NULL;
    bay_response *response = NULL;
    bay_diag diag = {.code = BAY_OK};
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_tls(options, server->certificate,
                           client != NULL ? client->certificate : NULL,
                           client != NULL ? client->key : NULL);
    snprintf(address, sizeof(address), "https://127.0.0.1:%u", port);
    bay_err err = bay_caller_connect(address, options, &caller, &diag);
    bay_caller_options_free(options);
    if (err == BAY_OK) {
        err = bay_caller_send_wait(caller, "x", &response, &diag);
        bay_response_free(response);
        bay_caller_close(caller);
    }
    return err;
}

static void a_certificate_is_a_credential(void **state)
{
    (void)state;
    identity server;
    identity client;
    pthread_t thread;
    void *failed = NULL;
    assert_non_null(mkdtemp(directory));
    make_identity(&server, "server");
    make_identity(&client, "client");
    bay_agent *agent = agent_new();
    bay_agent_tls(agent, server.certificate, server.key, client.certificate);
    bay_agent_mtls(agent, "mtls");
    agent_listen(agent);
    uint16_t port = bay_agent_port(agent);
    assert_int_equal(pthread_create(&thread, NULL, serve, agent), 0);
    assert_int_equal(call_as(port, &server, NULL), BAY_REMOTE);
    assert_int_equal(call_as(port, &server, &client), BAY_OK);
    bay_agent_stop(agent);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_string_equal(principal, "CN=client");
    bay_agent_free(agent);
    unlink(server.certificate);
    unlink(server.key);
    unlink(client.certificate);
    unlink(client.key);
    rmdir(directory);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_must_be_for_this_agent),
        cmocka_unit_test(the_card_is_signed_in_each_of_its_forms),
        cmocka_unit_test(a_certificate_is_a_credential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
