/* Cards as the gateway shows them: its address in all interfaces, nothing of the agent's security
 * or signatures, a signature of its own that verifies; and agents' skills by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/card.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include "auth/card_signature.h"
#include "base/check.h"
#include "base/mem.h"
#include "support/failing_memory.h"
#include "support/skipped.h"
#include <stdlib.h>

#ifndef BAY_NO_TLS
static const char key_text[] = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"gateway\","
                               "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                               "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\","
                               "\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\"}";
#endif

static const char source[] =
    "{\"name\":\"Far\",\"description\":\"Far away\",\"version\":\"3\","
    "\"supportedInterfaces\":[{\"url\":\"https://far.example/a2a\",\"protocolBinding\":\"JSONRPC\","
    "\"protocolVersion\":\"1.0\",\"tenant\":\"t\"}],"
    "\"capabilities\":{\"streaming\":true,\"pushNotifications\":true,\"extendedAgentCard\":true},"
    "\"securitySchemes\":{\"key\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":"
    "\"X-Key\"}}},\"securityRequirements\":[{\"schemes\":{\"key\":{\"list\":[]}}}],"
    "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"
    "\"skills\":[{\"id\":\"a\",\"name\":\"A\",\"description\":\"First\",\"tags\":[\"x\"],"
    "\"securityRequirements\":[{\"schemes\":{\"key\":{\"list\":[]}}}]},"
    "{\"id\":\"b\",\"name\":\"B\",\"description\":\"Second\",\"tags\":[\"x\"]}],"
    "\"signatures\":[{\"protected\":\"e30\",\"signature\":\"AA\"}],"
    "\"iconUrl\":\"https://far.example/icon.png\"}";

static agents_public public_of(const jose_key *key)
{
    return (agents_public){.base = STR("https://gateway.example"),
                           .grpc = STR("gateway.example:443"),
                           .key = key,
                           .jku = key != NULL ? STR("https://gateway.example/a2a/keys.json")
                                              : STR("")};
}

static json_val parse(bay_str text, json_doc *doc, arena *memory)
{
    assert_int_equal(json_parse(doc, text, NULL, memory, NULL), BAY_OK);
    return json_root(doc);
}

static bool says(bay_str text, const char *part)
{
    return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

/* Of a text. */
static bay_err card_of(bay_str name, bay_str text, const agents_public *public, unsigned told,
                       agents_card **out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    bay_err err = json_parse(&doc, text, NULL, &memory, NULL);
    err = err == BAY_OK ? agents_card_new(name, json_root(&doc), public, told, out) : err;
    arena_fini(&memory);
    return err;
}

/* A card promises webhooks to those who read it and can have them. */
static void webhooks_are_promised_to_those_who_are_told(void **state)
{
    (void)state;
    static const struct {
        unsigned told;
        bool now, hybrid, older;
    } rows[] = {{AGENTS_WEBHOOKS_ALL, true, true, true},
                {AGENTS_WEBHOOKS_NOW, true, false, false},
                {AGENTS_WEBHOOKS_OLDER, false, false, true},
                {0, false, false, false}};
    agents_public public = public_of(NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        agents_card *card = NULL;
        a2a_http_agent shown = {0};
        assert_int_equal(card_of(STR("far"), str_of(source), &public, rows[i].told, &card), BAY_OK);
        agents_card_show(card, &shown);
        const char *yes = "\"pushNotifications\":true", *no = "\"pushNotifications\":false";
        assert_true(says(shown.card_1_0, rows[i].now ? yes : no));
        assert_true(says(shown.card_hybrid, rows[i].hybrid ? yes : no));
        assert_true(says(shown.card_0_3, rows[i].older ? yes : no));
        assert_false(says(shown.card_1_0, rows[i].now ? no : yes));
        assert_false(says(shown.card_0_3, rows[i].older ? no : yes));
        assert_true(says(shown.card_1_0, "\"streaming\":true"));
        agents_card_free(card);
    }
}

static void the_gateway_stands_in_every_interface(void **state)
{
    (void)state;
    agents_public public = public_of(NULL);
    agents_card *card = NULL;
    a2a_http_agent shown = {0};
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 24);
    assert_int_equal(card_of(STR("far"), str_of(source), &public, AGENTS_WEBHOOKS_ALL, &card),
                     BAY_OK);
    agents_card_show(card, &shown);
    json_val root = parse(shown.card_1_0, &doc, &memory);
    json_val interfaces = json_get(root, STR("supportedInterfaces"));
    assert_int_equal(json_count(interfaces), 5); /* of 0.3 no gRPC: it names no tenant */
    size_t index = 0;
    for (json_iter at = json_iter_of(interfaces); json_next(&at); index++) {
        bool is_grpc = json_str_eq(json_get(at.value, STR("protocolBinding")), STR("GRPC"));
        assert_true(json_str_eq(json_get(at.value, STR("protocolVersion")),
                                index < 3 ? STR("1.0") : STR("0.3")));
        assert_true(json_str_eq(json_get(at.value, STR("url")),
                                is_grpc ? STR("gateway.example:443")
                                        : STR("https://gateway.example/a2a/far")));
        /* of its own the agent's tenant is nobody's affair */
        assert_true(
            json_is(json_get(at.value, STR("tenant")), is_grpc ? JSON_STRING : JSON_MISSING));
    }
    assert_true(json_is(json_get(root, STR("signatures")), JSON_MISSING));
    assert_true(json_is(json_get(root, STR("securitySchemes")), JSON_MISSING));
    assert_true(json_is(json_get(root, STR("securityRequirements")), JSON_MISSING));
    json_val skills = json_get(root, STR("skills"));
    assert_int_equal(json_count(skills), 2);
    assert_true(json_is(json_get(json_item(skills, 0), STR("securityRequirements")), JSON_MISSING));
    assert_true(json_str_eq(json_get(root, STR("iconUrl")), STR("https://far.example/icon.png")));
    agents_card_free(card);
    arena_fini(&memory);
}

static void older_clients_find_the_gateway_too(void **state)
{
    (void)state;
    agents_public public = public_of(NULL);
    agents_card *card = NULL;
    a2a_http_agent shown = {0};
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 24);
    assert_int_equal(card_of(STR("far"), str_of(source), &public, AGENTS_WEBHOOKS_ALL, &card),
                     BAY_OK);
    agents_card_show(card, &shown);
    bay_str texts[] = {shown.card_hybrid, shown.card_0_3};
    for (size_t i = 0; i < 2; i++) {
        json_val root = parse(texts[i], &doc, &memory);
        assert_true(
            json_str_eq(json_get(root, STR("url")), STR("https://gateway.example/a2a/far")));
        assert_true(json_is(json_get(root, STR("security")), JSON_MISSING));
        assert_true(json_is(json_get(root, STR("supportedInterfaces")),
                            i == 0 ? JSON_ARRAY : JSON_MISSING));
        assert_null(memmem(texts[i].at, texts[i].len, "far.example/a2a", 15));
    }
    assert_false(str_eq(shown.etag_1_0, shown.etag_hybrid));
    assert_false(str_eq(shown.etag_0_3, shown.etag_hybrid));
    agents_card_free(card);
    arena_fini(&memory);
}

#ifndef BAY_NO_TLS
static void every_form_is_signed_by_the_gateway(void **state)
{
    (void)state;
    jose_key *key = NULL;
    jose_keys *keys = NULL;
    bay_diag diag = {0};
    buf set;
    buf_init(&set, 1 << 16);
    assert_int_equal(jose_key_new(str_of(key_text), STR(""), &key, &diag), BAY_OK);
    assert_int_equal(jose_key_public(key, &set), BAY_OK);
    assert_int_equal(jose_keys_new(buf_view(&set), &keys, &diag), BAY_OK);
    agents_public public = public_of(key);
    agents_card *cards[2] = {NULL, NULL};
    a2a_http_agent shown[2] = {{0}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            card_of(STR("far"), str_of(source), &public, AGENTS_WEBHOOKS_ALL, &cards[i]), BAY_OK);
        agents_card_show(cards[i], &shown[i]);
    }
    bay_str texts[] = {shown[0].card_1_0, shown[0].card_hybrid, shown[0].card_0_3};
    for (size_t i = 0; i < 3; i++) {
        json_doc doc;
        arena memory;
        card_signer signer[2];
        arena_init(&memory, 1 << 24);
        json_val root = parse(texts[i], &doc, &memory);
        assert_int_equal(card_verify(root, keys, &diag), BAY_OK);
        assert_int_equal(card_signers(root, &memory, signer, 2), 1);
        assert_true(str_eq(signer[0].jku, STR("https://gateway.example/a2a/keys.json")));
        arena_fini(&memory);
    }
    /* signatures differ from one loop to the next, the card is the same */
    assert_true(str_eq(shown[0].etag_1_0, shown[1].etag_1_0));
    agents_card_free(cards[0]);
    agents_card_free(cards[1]);
    jose_keys_free(keys);
    jose_key_free(key);
    buf_fini(&set);
}

static void a_card_that_cannot_be_signed_is_shown_all_the_same(void **state)
{
    (void)state;
    static const char empty[] =
        "{\"name\":\"\",\"description\":\"\",\"version\":\"\",\"supportedInterfaces\":[],"
        "\"capabilities\":{},\"defaultInputModes\":[],\"defaultOutputModes\":[],\"skills\":[]}";
    jose_key *key = NULL;
    bay_diag diag = {0};
    agents_card *card = NULL;
    a2a_http_agent shown = {0};
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 24);
    assert_int_equal(jose_key_new(str_of(key_text), STR(""), &key, &diag), BAY_OK);
    agents_public public = public_of(key);
    assert_int_equal(card_of(STR("far"), str_of(empty), &public, AGENTS_WEBHOOKS_ALL, &card),
                     BAY_OK);
    agents_card_show(card, &shown);
    json_val root = parse(shown.card_1_0, &doc, &memory);
    assert_int_equal(json_count(json_get(root, STR("supportedInterfaces"))), 5);
    /* unsigned, or so that it can be verified: nothing between */
    buf set;
    jose_keys *keys = NULL;
    buf_init(&set, 1 << 16);
    assert_int_equal(jose_key_public(key, &set), BAY_OK);
    assert_int_equal(jose_keys_new(buf_view(&set), &keys, &diag), BAY_OK);
    bay_err err = card_verify(root, keys, &diag);
    assert_true(err == BAY_ERR_NOT_FOUND || err == BAY_OK);
    jose_keys_free(keys);
    buf_fini(&set);
    agents_card_free(card);
    jose_key_free(key);
    arena_fini(&memory);
}
#else
SKIPPED(every_form_is_signed_by_the_gateway,
        "this build has no TLS, and with it nothing that signs")
SKIPPED(a_card_that_cannot_be_signed_is_shown_all_the_same,
        "this build has no TLS, and with it nothing that signs")
#endif

static void skills_are_found_by_id(void **state)
{
    (void)state;
    agents_public public = public_of(NULL);
    agents_card *card = NULL;
    buf text;
    buf_init(&text, 1024);
    assert_int_equal(card_of(STR("far"), str_of(source), &public, AGENTS_WEBHOOKS_ALL, &card),
                     BAY_OK);
    assert_true(json_is(agents_card_skill(card, STR("a")), JSON_OBJECT));
    assert_true(json_is(agents_card_skill(card, STR("A")), JSON_MISSING));
    assert_true(json_is(agents_card_skill(card, STR("")), JSON_MISSING));
    agents_card_write_skills(card, &text);
    assert_true(str_eq(buf_view(&text), STR("a, b")));
    agents_card_free(card);
    buf_fini(&text);
}

static void what_is_no_card_is_refused(void **state)
{
    (void)state;
    agents_public public = public_of(NULL);
    agents_card *card = NULL;
    assert_int_not_equal(card_of(STR("far"), STR("{"), &public, AGENTS_WEBHOOKS_ALL, &card),
                         BAY_OK);
    assert_null(card);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    agents_public public = public_of(NULL);
    for (size_t at = 0; failing_memory_start(at); at++) {
        agents_card *card = NULL;
        bay_err err = card_of(STR("far"), str_of(source), &public, AGENTS_WEBHOOKS_ALL, &card);
        assert_true(err == BAY_ERR_NOMEM || err == BAY_OK);
        assert_true((err == BAY_OK) == (card != NULL));
        agents_card_free(card);
        failing_memory_check();
    }
}

static void patterns_match_names(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } rows[] = {
        {"a", "b", false},
        {"", "a", false},
        {"a?", "a", false},
        {"*.x", "a.y", false},
        {"a*b*c", "a.b.b", false},
        {"", "", true},
        {"*", "", true},
        {"**", "abc", true},
        {"a*", "a", true},
        {"files.*", "files.read", true},
        {"*read*", "files.read_all", true},
        {"a*b*c", "aXbbYc", true},
        {"?b?", "abc", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(str_glob(str_of(rows[i].pattern), str_of(rows[i].text)), rows[i].matches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_card_is_refused),
        cmocka_unit_test(patterns_match_names),
        cmocka_unit_test(the_gateway_stands_in_every_interface),
        cmocka_unit_test(webhooks_are_promised_to_those_who_are_told),
        cmocka_unit_test(older_clients_find_the_gateway_too),
        cmocka_unit_test(every_form_is_signed_by_the_gateway),
        cmocka_unit_test(a_card_that_cannot_be_signed_is_shown_all_the_same),
        cmocka_unit_test(skills_are_found_by_id),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
