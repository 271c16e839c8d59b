/* Who gets which form of a card: a caller that names 1.0 one that a strict reader of 1.0 takes, the
 * public card and the extended one, whatever the card has in it; others one that they can read. And
 * that no cache mistakes one for the other. */
#include "agent_rig.h"

#include "auth/card_signature.h"
#include "support/strict_card.h"

#define CARD "/.well-known/agent-card.json"
#define KEY "X-API-Key: secret\r\n"

static void say_done(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    bay_task_complete(task, NULL);
}

static bool believe(bay_grant *grant, bay_str credential, void *user)
{
    (void)credential;
    (void)user;
    bay_grant_principal(grant, "bob");
    return true;
}

#ifndef BAY_NO_TLS
#define PUBLIC_MEMBERS                                                                             \
    "\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"mine\","                                           \
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","                                       \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\""
static const char signing_key[] =
    "{" PUBLIC_MEMBERS ",\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\"}";

static void expect_signed(bay_str text)
{
    json_doc doc;
    arena memory;
    jose_keys *keys = NULL;
    arena_init(&memory, 1 << 24);
    assert_int_equal(jose_keys_new(STR("{\"keys\":[{" PUBLIC_MEMBERS "}]}"), &keys, NULL), BAY_OK);
    assert_int_equal(json_parse(&doc, text, NULL, &memory, NULL), BAY_OK);
    assert_int_equal(card_verify(json_root(&doc), keys, NULL), BAY_OK);
    jose_keys_free(keys);
    arena_fini(&memory);
}
#else
static void expect_signed(bay_str text)
{
    (void)text;
}
#endif

/* With everything that 1.0 and 0.3 write in two ways. */
static bay_agent *rich_agent(void)
{
    bay_agent *agent = bay_agent_new("rich", "1.0.0", "Has all there is.");
    bay_skill *skill = bay_agent_skill(agent, "one", "One", "The first.", say_done, NULL);
    bay_skill_tag(skill, "tag");
    bay_skill_example(skill, "an example");
    bay_skill_input_mode(skill, "text/plain");
    bay_skill_output_mode(skill, "text/markdown");
    bay_skill_require(skill, "token", "run");
    bay_agent_provider(agent, "Org", "https://org.example");
    bay_agent_documentation(agent, "https://docs.example");
    bay_agent_icon(agent, "https://icon.example/i.png");
    bay_agent_extension(agent, "urn:x", "An extension.", true, "{\"url\":\"free\",\"a\":null}");
    bay_agent_api_key(agent, "key", "header", "X-API-Key", NULL, NULL);
    bay_agent_api_key_add(agent, "key", "secret", "alice", NULL);
    bay_agent_http_auth(agent, "token", "Bearer", believe, NULL);
    bay_agent_scheme(agent, "oauth",
                     "{\"oauth2SecurityScheme\":{\"flows\":{\"clientCredentials\":{\"tokenUrl\":"
                     "\"https://id.example/token\",\"scopes\":{\"run\":\"Run\"}}}}}",
                     NULL, believe, NULL);
    bay_agent_scheme(agent, "open",
                     "{\"openIdConnectSecurityScheme\":{\"openIdConnectUrl\":"
                     "\"https://id.example/.well-known/openid-configuration\"}}",
                     NULL, believe, NULL);
    bay_agent_require(agent, "key", NULL);
    bay_agent_require(agent, "oauth", "run");
    bay_agent_extended(agent, "{\"description\":\"For friends.\",\"skills\":[{\"id\":\"one\","
                              "\"name\":\"One\",\"description\":\"d\",\"tags\":[\"t\"],"
                              "\"security\":[{\"key\":[]}],\"extra\":1}],\"url\":\"http://old\"}");
#ifndef BAY_NO_TLS
    bay_agent_signing_key(agent, signing_key, "mine", "https://agent.example/keys");
#endif
    return agent;
}

typedef struct form_case {
    const char *target;
    const char *fields;
    bool is_pure;
} form_case;

static void who_names_one_zero_gets_nothing_else(void **state)
{
    (void)state;
    static const form_case cases[] = {
        {CARD, "A2A-Version: 1.0\r\n", true},
        {CARD, "A2A-Version: 1.0.1\r\n", true},
        {CARD, "a2a-version:  1.0 \r\n", true},
        {CARD "?A2A-Version=1.0", "", true},
        {CARD, "A2A-Version: 7.5\r\n", true}, /* a version to come knows 1.0 rather than 0.3 */
        {CARD, "A2A-Version: nonsense\r\n", true},
        {CARD, "A2A-Version: 0.3\r\nA2A-Version: 1.0\r\n", true},
        {CARD, "", false},
        {CARD, "A2A-Version:\r\n", false},
        {CARD, "A2A-Version: 0.3\r\n", false},
        {CARD, "A2A-Version: 0.2\r\n", false},
        {CARD "?A2A-Version=0.3", "", false},
        {"/.well-known/agent.json", "", false},
        {"/.well-known/agent.json", "A2A-Version: 1.0\r\n", false}, /* the path is of 0.2 */
    };
    bay_agent *agent = rich_agent();
    agent_listen(agent);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        wire_client client;
        agent_ask(agent, &client, "GET", cases[i].target, cases[i].fields, NULL);
        assert_int_equal(client.status, 200);
        if (cases[i].is_pure) {
            expect_strict(buf_view(&client.body));
            assert_true(wire_body_has(&client, "\"supportedInterfaces\""));
        } else { /* and the strict reader is one */
            assert_string_not_equal(strict_card(buf_view(&client.body)).at, "");
            assert_true(wire_body_has(&client, "\"preferredTransport\""));
        }
        expect_signed(buf_view(&client.body));
        assert_true(wire_head_has(&client, "Vary: A2A-Version, Origin\r\n"));
        wire_close(&client);
    }
    bay_agent_free(agent);
}

static void the_default_is_a_setting(void **state)
{
    (void)state;
    bay_agent *agent = rich_agent();
    wire_client client;
    bay_agent_hybrid_card(agent, false);
    agent_listen(agent);
    agent_ask(agent, &client, "GET", CARD, "", NULL);
    expect_strict(buf_view(&client.body));
    wire_close(&client);
    agent_ask(agent, &client, "GET", CARD, "A2A-Version: 0.3\r\n", NULL);
    assert_string_not_equal(strict_card(buf_view(&client.body)).at, "");
    wire_close(&client);
    bay_agent_free(agent);
}

/* {"jsonrpc":"2.0","id":1,"result":CARD} */
static bay_str result_of(const wire_client *client)
{
    static const char before[] = "\"result\":";
    char *at = memmem(client->body.at, client->body.len, before, sizeof(before) - 1);
    assert_non_null(at);
    at += sizeof(before) - 1;
    return (bay_str){at, client->body.len - (size_t)(at - client->body.at) - 1};
}

static void the_extended_card_comes_in_the_callers_form(void **state)
{
    (void)state;
    bay_agent *agent = rich_agent();
    wire_client client;
    agent_listen(agent);
    agent_ask(agent, &client, "POST", "/", AGENT_JSON KEY,
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetExtendedAgentCard\",\"params\":{}}");
    assert_int_equal(client.status, 200);
    assert_true(wire_body_has(&client, "For friends."));
    expect_strict(result_of(&client));
    expect_signed(result_of(&client));
    wire_close(&client);
    agent_ask(agent, &client, "GET", "/extendedAgentCard", "A2A-Version: 1.0\r\n" KEY, NULL);
    assert_int_equal(client.status, 200);
    expect_strict(buf_view(&client.body));
    expect_signed(buf_view(&client.body));
    /* it is for whoever has that key, which a cache does not know to be one */
    assert_true(wire_head_has(&client, "Cache-Control: no-store\r\n"));
    wire_close(&client);
    agent_ask(agent, &client, "GET", "/v1/card", KEY, NULL);
    assert_int_equal(client.status, 200);
    assert_true(wire_body_has(&client, "For friends."));
    assert_string_not_equal(strict_card(buf_view(&client.body)).at, "");
    assert_false(wire_body_has(&client, "\"signatures\"")); /* they hold for one form */
    wire_close(&client);
    bay_agent_free(agent);
}

/* The value of the ETag field. */
static void tag_of(const wire_client *client, char out[64])
{
    const char *at = strstr(client->head.at, "ETag: ");
    assert_non_null(at);
    (void)snprintf(out, 64, "%.*s", (int)strcspn(at + 6, "\r"), at + 6);
}

static void no_cache_takes_one_form_for_the_other(void **state)
{
    (void)state;
    static const char *const fields[] = {"A2A-Version: 1.0\r\n", ""};
    char tags[2][64];
    bay_agent *agent = rich_agent();
    wire_client client;
    agent_listen(agent);
    for (size_t i = 0; i < 2; i++) {
        agent_ask(agent, &client, "GET", CARD, fields[i], NULL);
        tag_of(&client, tags[i]);
        wire_close(&client);
    }
    assert_string_not_equal(tags[0], tags[1]);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) {
            char both[200];
            (void)snprintf(both, sizeof(both), "%sIf-None-Match: %s\r\n", fields[i], tags[k]);
            agent_ask(agent, &client, "GET", CARD, both, NULL);
            assert_int_equal(client.status, i == k ? 304 : 200);
            assert_true(wire_head_has(&client, "Vary: A2A-Version, Origin\r\n"));
            assert_true(wire_head_has(&client, tags[i]));
            wire_close(&client);
        }
    }
    bay_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_names_one_zero_gets_nothing_else),
        cmocka_unit_test(the_default_is_a_setting),
        cmocka_unit_test(the_extended_card_comes_in_the_callers_form),
        cmocka_unit_test(no_cache_takes_one_form_for_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
