/* Cards whose signature is good, or not, under keys that are given or fetched. */
#include "unit/auth/jose_rig.h"

#include <openssl/opensslv.h> /* a library without it cannot verify */
#include <patchbay/a2a_client.h>

#include "auth/card_signature.h"
#include "support/scripted_agent.h"

#define CARD_OF(interfaces, more)                                                                  \
    "{\"name\":\"Ada\",\"description\":\"Reads \\\"it\\\".\",\"version\":\"1\","                   \
    "\"supportedInterfaces\":[" interfaces "],\"capabilities\":{\"streaming\":true},"              \
    "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"              \
    "\"skills\":[{\"id\":\"s1\",\"name\":\"Search\",\"description\":\"Looks.\",\"tags\":["         \
    "\"t\"]}]" more "}"
#define INTERFACE(url, binding, version)                                                           \
    "{\"url\":\"" url "\",\"protocolBinding\":\"" binding "\",\"protocolVersion\":\"" version "\"" \
    "}"

static scripted_agent agent;

static void sign_card(const char *card, const char *jku, char *out, size_t size)
{
    json_doc doc;
    arena memory;
    buf text;
    jose_key *key = NULL;
    arena_init(&memory, 16 << 20);
    buf_init(&text, 1 << 20);
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR("k1"), &key, NULL), BAY_OK);
    assert_int_equal(json_parse(&doc, str_of(card), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(card_sign(json_root(&doc), key, str_of(jku), &text, NULL), BAY_OK);
    snprintf(out, size, "%.*s", (int)text.len, text.at);
    jose_key_free(key);
    buf_fini(&text);
    arena_fini(&memory);
}

static void public_keys(char *out, size_t size)
{
    buf text;
    jose_key *key = NULL;
    buf_init(&text, 1 << 20);
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR("k1"), &key, NULL), BAY_OK);
    assert_int_equal(jose_key_public(key, &text), BAY_OK);
    snprintf(out, size, "%.*s", (int)text.len, text.at);
    jose_key_free(key);
    buf_fini(&text);
}

static void signatures_are_checked(void **state)
{
    (void)state;
    static char keys[2048];
    static char card[4096];
    static const char plain[] = CARD_OF(INTERFACE("http://a/", "JSONRPC", "1.0"), "");
    public_keys(keys, sizeof(keys));
    sign_card(plain, "", card, sizeof(card));
    for (int i = 0; i < 6; i++) {
        bay_caller *caller = NULL;
        bay_caller_options *options = bay_caller_options_new();
        static const bay_err wanted[] = {BAY_OK,     BAY_OK, BAY_DENIED,
                                         BAY_DENIED, BAY_OK, BAY_DENIED};
        char *name = strstr(card, "Ada");
        if (i == 1 || i == 4) { /* 1: signed and known; 4: not signed, which is not required */
            bay_caller_options_keys(options, keys);
        } else if (i == 2) { /* changed since */
            bay_caller_options_keys(options, keys);
            name[0] = 'O';
        } else if (i == 3) { /* signed, nothing is known */
            bay_caller_options_require_signature(options);
        } else if (i == 5) { /* not signed, which is required */
            bay_caller_options_keys(options, keys);
            bay_caller_options_require_signature(options);
        }
        bay_err err = bay_caller_connect(i < 4 ? card : plain, options, &caller, NULL);
        assert_int_equal(err, wanted[i]);
        assert_int_equal(bay_caller_is_verified(caller), i == 1);
        name[0] = 'A';
        bay_caller_close(caller);
        bay_caller_options_free(options);
    }
}

/* Only the URLs that are allowed, without credentials. */
static void keys_are_fetched(void **state)
{
    (void)state;
    static char keys[2048];
    static char card[4096];
    static char jku[128];
    static const char plain[] = CARD_OF(INTERFACE("http://a/", "JSONRPC", "1.0"), "");
    static agent_step steps[] = {{.expects = "GET /keys.json", .body = keys}};
    public_keys(keys, sizeof(keys));
    for (int allowed = 0; allowed < 2; allowed++) {
        bay_caller *caller = NULL;
        bay_caller_options *options = bay_caller_options_new();
        scripted_agent_start(&agent, steps, allowed ? 1 : 0);
        snprintf(jku, sizeof(jku), "%s/keys.json", agent.url);
        sign_card(plain, jku, card, sizeof(card));
        bay_caller_options_bearer(options, "secret");
        bay_caller_options_key_url(options, allowed ? jku : "http://127.0.0.1:1/keys.json");
        assert_int_equal(bay_caller_connect(card, options, &caller, NULL),
                         allowed ? BAY_OK : BAY_DENIED);
        assert_int_equal(bay_caller_is_verified(caller), allowed);
        assert_null(strstr(agent.requests[0], "secret"));
        bay_caller_close(caller);
        scripted_agent_stop(&agent);
        bay_caller_options_free(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_checked),
        cmocka_unit_test(keys_are_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
