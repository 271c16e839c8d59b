/* A guard in front of an agent: its card declares what the guard takes, nothing else is taken, and a
 * skill may need scopes. */
#include <openssl/evp.h> /* without it there is nothing to verify with */

#include "agent_rig.h"
#include "unit/auth/jose_rig.h"

#include "patchbay/guard.h"

#define ISSUER "https://issuer.example"
#define PUBLIC "https://agents.example"
#define KEYS                                                                                       \
    "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X                \
    "\",\"y\":\"" RIG_EC_Y "\"}]}"
#define KEY "pbk_0011223344556677_aSecretOf16BytesAndMore"

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
    bay_agent *agent = bay_agent_new("guarded", "1.0.0", "Lets in few.");
    bay_guard *guard = bay_guard_new(PUBLIC);
    bay_guard_issuer(guard, ISSUER, KEYS);
    bay_guard_api_key(guard, KEY, "ci", "run");
    bay_agent_guard(agent, guard);
    bay_guard_free(guard);
    bay_agent_skill(agent, "one", "One", "The first.", handle, NULL);
    bay_skill *two = bay_agent_skill(agent, "two", "Two", "The second.", handle, NULL);
    bay_skill_scope(two, "run deep");
    bay_agent_on_loop(agent);
    return agent;
}

static const char *bearer(const char *audience, const char *scopes)
{
    static char text[4096];
    char payload[1000];
    EVP_PKEY *key = rig_ec_key();
    buf token;
    long long now = (long long)(loop_time_ms() / 1000);
    buf_init(&token, RIG_TEXT);
    snprintf(payload, sizeof(payload),
             "{\"iss\":\"" ISSUER "\",\"sub\":\"ann\",\"aud\":\"%s\",\"iat\":%lld,\"exp\":%lld,"
             "\"scope\":\"%s\"}",
             audience, now - 10, now + 60, scopes);
    rig_token(key, "{\"alg\":\"ES256\",\"kid\":\"k1\"}", payload, &token);
    snprintf(text, sizeof(text), AGENT_JSON "Authorization: Bearer %.*s\r\n", (int)token.len,
             token.at);
    buf_fini(&token);
    EVP_PKEY_free(key);
    return text;
}

#define FOR_TWO ",\"metadata\":{\"skillId\":\"two\"}"

static void expect_challenge(bay_agent *agent, const char *fields, const char *more, int status,
                             const char *challenge)
{
    wire_client client;
    char body[1000];
    snprintf(body, sizeof(body), AGENT_SEND("m", "x", "%s"), more);
    agent_ask(agent, &client, "POST", "/", fields, body);
    if (client.status != status || !wire_head_has(&client, challenge)) {
        fail_msg("%d, not %d with %s: %.*s", client.status, status, challenge,
                 BAY_STR(buf_view(&client.head)));
    }
    wire_close(&client);
}

static void expect_card(const bay_agent *agent, const char *part)
{
    bay_str card = bay_agent_card(agent);
    if (memmem(card.at, card.len, part, strlen(part)) == NULL) {
        fail_msg("%s is not in %.*s", part, BAY_STR(card));
    }
}

static void the_card_declares_what_is_taken(void **state)
{
    (void)state;
    bay_agent *agent = agent_new();
    agent_listen(agent);
    expect_card(agent, "\"oauth\":{\"openIdConnectSecurityScheme\":{\"openIdConnectUrl\":\"" ISSUER
                       "/.well-known/openid-configuration\"}}");
    expect_card(agent, "\"key\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":"
                       "\"X-API-Key\"}}");
    expect_card(agent, "\"securityRequirements\":[{\"schemes\":{\"oauth\":{");
    expect_card(agent, "{\"schemes\":{\"oauth\":{\"list\":[\"run\",\"deep\"]}}}");
    agent_expect(agent, "/.well-known/oauth-protected-resource", "", NULL, 200,
                 "{\"resource\":\"" PUBLIC "\",\"authorization_servers\":[\"" ISSUER "\"]");
    agent_expect(agent, "/.well-known/oauth-protected-resource/x", "", NULL, 404, "");
    bay_agent_free(agent);
}

static void who_may_not_come_in_is_told_how(void **state)
{
    (void)state;
    bay_agent *agent = agent_new();
    agent_listen(agent);
    principal[0] = '\0';
    expect_challenge(agent, AGENT_JSON, "", 401,
                     "WWW-Authenticate: Bearer resource_metadata=\"" PUBLIC
                     "/.well-known/oauth-protected-resource\"\r\n");
    expect_challenge(agent, bearer("https://other.example", "run"), "", 401,
                     "error=\"invalid_token\"");
    expect_challenge(agent, AGENT_JSON "X-API-Key: pbk_0011223344556677_anotherSecretOfMine\r\n",
                     "", 401, "error=\"invalid_token\"");
    expect_challenge(agent, AGENT_JSON "X-API-Key: plain\r\n", "", 401, "error=\"invalid_token\"");
    assert_string_equal(principal, "");
    agent_expect(agent, "/", bearer(PUBLIC, ""), AGENT_SEND("a", "x", ""), 200,
                 "TASK_STATE_COMPLETED");
    assert_string_equal(principal, "ann");
    agent_expect(agent, "/", AGENT_JSON "X-API-Key: " KEY "\r\n", AGENT_SEND("b", "x", ""), 200,
                 "TASK_STATE_COMPLETED");
    assert_string_equal(principal, "ci");
    bay_agent_free(agent);
}

static void a_skill_may_need_scopes(void **state)
{
    (void)state;
    bay_agent *agent = agent_new();
    agent_listen(agent);
    principal[0] = '\0';
    expect_challenge(agent, bearer(PUBLIC, "run"), FOR_TWO, 403,
                     "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"run deep\", "
                     "resource_metadata=\"" PUBLIC "/.well-known/oauth-protected-resource\"\r\n");
    expect_challenge(agent, AGENT_JSON "X-API-Key: " KEY "\r\n", FOR_TWO, 403,
                     "error=\"insufficient_scope\"");
    assert_string_equal(principal, "");
    agent_expect(agent, "/", bearer(PUBLIC, "deep run"), AGENT_SEND("c", "x", FOR_TWO), 200,
                 "TASK_STATE_COMPLETED");
    assert_string_equal(principal, "ann");
    bay_agent_free(agent);
}

/* Declared is enforced: a card with a guard says nothing else. */
static void a_guard_stands_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"the agent has a guard, which declares what it takes",
                                        "the agent declares schemes of its own",
                                        "the agent has a guard", "scopes are a guard's",
                                        "the scope has no name"};
    for (int i = 0; i < (int)ARRAY_LEN(texts); i++) {
        bay_diag diag = {.text = ""};
        bay_agent *agent = bay_agent_new("guarded", "1.0.0", "Lets in few.");
        bay_guard *guard = bay_guard_new(PUBLIC);
        bay_skill *one = bay_agent_skill(agent, "one", "One", "The first.", handle, NULL);
        bay_guard_issuer(guard, ISSUER, KEYS);
        if (i == 1) {
            bay_agent_api_key(agent, "k", "header", "X-Key", NULL, NULL);
        }
        if (i == 3) {
            bay_skill_scope(one, "run");
        }
        bay_agent_guard(agent, guard);
        if (i == 0) {
            bay_agent_api_key(agent, "k", "header", "X-Key", NULL, NULL);
        } else if (i == 2) {
            bay_agent_guard(agent, guard);
        } else if (i == 4) {
            bay_skill_scope(one, "");
        }
        bay_guard_free(guard);
        assert_int_equal(bay_agent_check(agent, &diag), BAY_ERR_INVALID);
        if (strstr(diag.text, texts[i]) == NULL) {
            fail_msg("%d: wanted %s, came %s", i, texts[i], diag.text);
        }
        bay_agent_free(agent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_card_declares_what_is_taken),
        cmocka_unit_test(who_may_not_come_in_is_told_how),
        cmocka_unit_test(a_skill_may_need_scopes),
        cmocka_unit_test(a_guard_stands_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
