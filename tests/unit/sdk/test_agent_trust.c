/* Whom an agent believes, and why it is believed: JWT, client certificates, a signed card. */
#include "agent_rig.h"
#include "auth/card_signature.h"
#include "support/identity.h"
#include "unit/auth/jose_rig.h"

#include <openssl/x509v3.h>

#include "patchbay/caller.h"

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

#define THUMBPRINT "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U"
#define BOUND(confirmation)                                                                        \
    "{\"sub\":\"ann\",\"iss\":\"https://issuer.example\",\"aud\":\"agent\",\"exp\":4102444800,"    \
    "\"scope\":\"run\",\"cnf\":{" confirmation "}}"

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
                     "jwt", NULL, NULL);
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
    /* bound to a key of its client, which nothing proves here */
    expect_token(agent, key, BOUND("\"jkt\":\"" THUMBPRINT "\""), 401);
    expect_token(agent, key, BOUND("\"x5t#S256\":\"" THUMBPRINT "\""), 401);
    expect_token(agent, key, BOUND(""), 401);
    assert_string_equal(principal, "");
    bay_agent_free(agent);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

/* ---- skills that need more ------------------------------------------------------------------- */

static void ask_on(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    snprintf(principal, sizeof(principal), "%s", (const char *)user);
    bay_task_ask(task, "and then?");
}

#define STRONG AGENT_JSON "X-Key: strong\r\n"
#define WEAK AGENT_JSON "X-Key: weak\r\n"

/* "open" needs what every skill does, "guarded" the scope "run"; both keys are the same person's.
 */
static bay_agent *guarded_new(bool has_handler, bool is_guarded_first)
{
    bay_agent *agent = bay_agent_new("trust", "1.0.0", "Trusts few.");
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == is_guarded_first) {
            bay_skill_require(bay_agent_skill(agent, "guarded", "Guarded", "Needs more.", ask_on,
                                              (void *)"guarded"),
                              "key", "run");
        } else {
            bay_agent_skill(agent, "open", "Open", "Needs little.", ask_on, (void *)"open");
        }
    }
    if (has_handler) {
        bay_agent_handler(agent, ask_on, (void *)"handler");
    }
    bay_agent_api_key(agent, "key", "header", "X-Key", NULL, NULL);
    bay_agent_api_key_add(agent, "key", "strong", "ann", "run");
    bay_agent_api_key_add(agent, "key", "weak", "ann", NULL);
    bay_agent_on_loop(agent);
    agent_listen(agent);
    return agent;
}

/* A message to that task is answered with `status`, by `who` ("": nobody). */
static void follow(bay_agent *agent, const char *task, const char *fields, const char *more,
                   int status, const char *who)
{
    char body[1024];
    snprintf(body, sizeof(body), AGENT_SEND("f", "on", ",\"taskId\":\"%s\"%s"), task, more);
    principal[0] = '\0';
    agent_expect(agent, "/", fields, body, status, status == 200 ? "INPUT_REQUIRED" : "error");
    assert_string_equal(principal, who);
}

static void begin_task(bay_agent *agent, const char *fields, const char *body, const char *who,
                       char task[64])
{
    wire_client client;
    agent_ask(agent, &client, "POST", "/", fields, body);
    const char *at = memmem(client.body.at, client.body.len, "\"task\":{\"id\":\"", 14);
    assert_non_null(at);
    snprintf(task, 64, "%.36s", at + 14);
    wire_close(&client);
    assert_string_equal(principal, who);
}

static void later_messages_of_a_task_need_what_its_skill_needs(void **state)
{
    (void)state;
    const char *to_guarded = AGENT_SEND("m", "x", ",\"metadata\":{\"skillId\":\"guarded\"}");
    for (int i = 0; i < 4; i++) {
        char task[64];
        bool has_handler = (i & 1) != 0;
        bool is_guarded_first = (i & 2) != 0;
        bay_agent *agent = guarded_new(has_handler, is_guarded_first);
        agent_expect(agent, "/", WEAK, to_guarded, 403, "error");
        begin_task(agent, STRONG, to_guarded, "guarded", task);
        follow(agent, task, WEAK, "", 403, "");
        follow(agent, task, WEAK, ",\"metadata\":{\"skillId\":\"open\"}", 403, "");
        follow(agent, task, WEAK, ",\"metadata\":{\"skillId\":\"guarded\"}", 403, "");
        follow(agent, task, STRONG, "", 200, "guarded");
        begin_task(agent, WEAK, AGENT_SEND("n", "x", ",\"metadata\":{\"skillId\":\"open\"}"),
                   "open", task);
        follow(agent, task, WEAK, "", 200, "open");
        follow(agent, task, WEAK, ",\"metadata\":{\"skillId\":\"guarded\"}", 403, "");
        bay_agent_free(agent);
    }
}

/* Who answers a message without a skill is the first one, however the message names its task. */
static void naming_a_task_is_no_way_around_the_first_skills_needs(void **state)
{
    (void)state;
    bay_agent *agent = guarded_new(false, true);
    principal[0] = '\0';
    agent_expect(agent, "/", WEAK, AGENT_SEND("a", "x", ""), 403, "error");
    agent_expect(agent, "/", WEAK, AGENT_SEND("b", "x", ",\"taskId\":\"\""), 403, "error");
    agent_expect(agent, "/", WEAK, AGENT_SEND("c", "x", ",\"taskId\":null"), 403, "error");
    agent_expect(agent, "/", "Content-Type: application/json\r\nX-Key: weak\r\n",
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/send\",\"params\":{\"id\":"
                 "\"mine\",\"message\":{\"role\":\"user\",\"parts\":[{\"type\":\"text\","
                 "\"text\":\"x\"}]}}}",
                 403, "error");
    assert_string_equal(principal, "");
    bay_agent_free(agent);
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
        assert_int_equal(card_verify(json_root(&doc), others, NULL), BAY_ERR_DENIED);
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

static void *serve(void *argument)
{
    return bay_agent_run(argument, NULL) == BAY_OK ? NULL : argument;
}

static bay_err call_as(uint16_t port, const identity *server, const identity *client)
{
    char address[64];
    bay_caller *caller = NULL;
    bay_caller_reply *response = NULL;
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
        bay_caller_reply_free(response);
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
    identity_new(&server, "server");
    identity_new(&client, "client");
    bay_agent *agent = agent_new();
    bay_agent_tls(agent, server.certificate, server.key, client.certificate);
    bay_agent_mtls(agent, "mtls");
    agent_listen(agent);
    uint16_t port = bay_agent_port(agent);
    assert_int_equal(pthread_create(&thread, NULL, serve, agent), 0);
    assert_int_equal(call_as(port, &server, NULL), BAY_ERR_REMOTE);
    assert_int_equal(call_as(port, &server, &client), BAY_OK);
    bay_agent_stop(agent);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_string_equal(principal, "CN=client");
    bay_agent_free(agent);
    identity_free(&server);
    identity_free(&client);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_must_be_for_this_agent),
        cmocka_unit_test(later_messages_of_a_task_need_what_its_skill_needs),
        cmocka_unit_test(naming_a_task_is_no_way_around_the_first_skills_needs),
        cmocka_unit_test(the_card_is_signed_in_each_of_its_forms),
        cmocka_unit_test(a_certificate_is_a_credential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
