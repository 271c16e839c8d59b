/* Cards whose signature is good, or not, under keys that are given or fetched. */
#include "unit/auth/jose_rig.h"

#include <openssl/opensslv.h> /* a library without it cannot verify */
#include <patchbay/caller.h>

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
        static const bay_err wanted[] = {BAY_OK,         BAY_OK, BAY_ERR_DENIED,
                                         BAY_ERR_DENIED, BAY_OK, BAY_ERR_DENIED};
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
                         allowed ? BAY_OK : BAY_ERR_DENIED);
        assert_int_equal(bay_caller_is_verified(caller), allowed);
        assert_null(strstr(agent.requests[0], "secret"));
        bay_caller_close(caller);
        scripted_agent_stop(&agent);
        bay_caller_options_free(options);
    }
}

/* How a card that names that set fares when the set is answered like this. */
static void check_answer(const agent_step *step, bay_err wanted, const char *text)
{
    static char card[4096];
    static const char plain[] = CARD_OF(INTERFACE("http://a/", "JSONRPC", "1.0"), "");
    char jku[128];
    bay_caller *caller = NULL;
    bay_diag diag = {0};
    bay_caller_options *options = bay_caller_options_new();
    scripted_agent_start(&agent, step, 1);
    snprintf(jku, sizeof(jku), "%s/keys.json", agent.url);
    sign_card(plain, jku, card, sizeof(card));
    bay_caller_options_key_url(options, jku);
    assert_int_equal(bay_caller_connect(card, options, &caller, &diag), wanted);
    assert_int_equal(bay_caller_is_verified(caller), wanted == BAY_OK);
    if (text != NULL && strstr(diag.text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", diag.text, text);
    }
    bay_caller_close(caller);
    scripted_agent_stop(&agent); /* that step, and nothing else, was asked for */
    bay_caller_options_free(options);
}

static void only_a_whole_set_of_json_counts(void **state)
{
    (void)state;
    static char keys[2048];
    public_keys(keys, sizeof(keys));
    static const int statuses[] = {201, 203, 206, 301, 302, 303, 307, 308, 404, 500};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        agent_step step = {.expects = "GET /keys.json",
                           .body = keys,
                           .status = statuses[i],
                           .fields = "Location: /elsewhere.json\r\n"};
        check_answer(&step, BAY_ERR_DENIED, "HTTP status");
    }
    agent_step step = {.expects = "GET /keys.json", .body = keys, .type = "text/html"};
    check_answer(&step, BAY_ERR_DENIED, "Content-Type");
    step.type = "application/json\r\nContent-Type: text/html";
    check_answer(&step, BAY_ERR_DENIED, "Content-Type");
    step.type = "application/jwk-set+json; charset=utf-8";
    check_answer(&step, BAY_OK, NULL);
    step.padding = JOSE_KEYSET_BYTES - strlen(keys);
    check_answer(&step, BAY_OK, NULL);
    step.padding++;
    check_answer(&step, BAY_ERR_DENIED, "too large");
    step.padding = (10 << 20) + 1;
    check_answer(&step, BAY_ERR_DENIED, "too large");
}

static void keys_for_something_else_are_refused(void **state)
{
    (void)state;
#define KEY(more)                                                                                  \
    "{\"keys\":[{" more "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X                       \
    "\",\"y\":\"" RIG_EC_Y "\"}]}"
    static const char *const bad[] = {
        KEY("\"kid\":\"k2\","),
        KEY("\"kid\":\"k1\",\"use\":\"enc\","),
        KEY("\"kid\":\"k1\",\"alg\":\"RS256\","),
        KEY("\"kid\":\"k1\",\"alg\":\"none\","),
        KEY("\"kid\":\"k1\",\"key_ops\":[\"encrypt\"],"),
        KEY("\"kid\":\"k1\",\"d\":\"" RIG_EC_D "\","),
        "{\"keys\":[]}",
        "",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        agent_step step = {.expects = "GET /keys.json", .body = bad[i]};
        check_answer(&step, BAY_ERR_DENIED, "its card is refused");
    }
    agent_step step = {.expects = "GET /keys.json",
                       .body = KEY("\"kid\":\"k1\",\"use\":\"sig\",\"alg\":\"ES256\",")};
    check_answer(&step, BAY_OK, NULL);
#undef KEY
}

/* Only the very text that is allowed; whatever else it may mean to somebody is not asked. */
static void other_spellings_are_other_addresses(void **state)
{
    (void)state;
    static char card[4096];
    static const char plain[] = CARD_OF(INTERFACE("http://a/", "JSONRPC", "1.0"), "");
    static const struct {
        const char *scheme, *host, *behind;
    } named[] = {
        {"http://a@", "127.0.0.1", "/keys.json"},
        {"http://a:b@", "127.0.0.1", "/keys.json"},
        {"HTTP://", "127.0.0.1", "/keys.json"},
        {"https://", "127.0.0.1", "/keys.json"},
        {" http://", "127.0.0.1", "/keys.json"},
        {"//", "127.0.0.1", "/keys.json"},
        {"http://", "127.0.0.1.", "/keys.json"},
        {"http://", "localhost", "/keys.json"},
        {"http://", "LOCALHOST", "/keys.json"},
        {"http://", "127.1", "/keys.json"},
        {"http://", "2130706433", "/keys.json"},
        {"http://", "[::ffff:127.0.0.1]", "/keys.json"},
        {"http://", "[::ffff:7f00:1]", "/keys.json"},
        {"http://", "127.0.0.1", "/%6beys.json"},
        {"http://", "127.0.0.1", "/KEYS.json"},
        {"http://", "127.0.0.1", "/./keys.json"},
        {"http://", "127.0.0.1", "/keys.json?"},
        {"http://", "127.0.0.1", "/keys.json#"},
        {"http://", "127.0.0.1", "/keys.json.evil"},
        {"http://", "127.0.0.1", "@elsewhere/keys.json"},
    };
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        char allowed[128], jku[128];
        bay_caller *caller = NULL;
        bay_caller_options *options = bay_caller_options_new();
        scripted_agent_start(&agent, NULL, 0);
        snprintf(allowed, sizeof(allowed), "%s/keys.json", agent.url);
        snprintf(jku, sizeof(jku), "%s%s%s%s", named[i].scheme, named[i].host,
                 strrchr(agent.url, ':'), named[i].behind);
        sign_card(plain, jku, card, sizeof(card));
        bay_caller_options_key_url(options, allowed);
        assert_int_equal(bay_caller_connect(card, options, &caller, NULL), BAY_ERR_DENIED);
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
        cmocka_unit_test(only_a_whole_set_of_json_counts),
        cmocka_unit_test(keys_for_something_else_are_refused),
        cmocka_unit_test(other_spellings_are_other_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
