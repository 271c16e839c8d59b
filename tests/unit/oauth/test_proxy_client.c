/* Clients that register at the gateway: which redirects they may have, and that a client id is what was
 * registered and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h> /* without it nothing is sealed */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "oauth/proxy_client.h"

static const bay_str cursor = STR_INIT("cursor");
static const oauth_proxy_schemes schemes = {&cursor, 1};

static void redirects_that_a_client_may_have(void **state)
{
    (void)state;
    static const char *const good[] = {"https://c.example/cb",     "https://c.example",
                                       "https://c.example/cb?a=1", "http://127.0.0.1/cb",
                                       "http://127.0.0.1:7/cb",    "http://[::1]:7/cb",
                                       "http://localhost/cb",      "cursor://a.b/cb"};
    static const char *const bad[] = {
        "",
        "/cb",
        "c.example/cb",
        "http://c.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://localhost.evil.example/cb",
        "http://127.0.0.1@evil.example/cb",
        "https://good.example@evil.example/",
        "https:///cb",
        "https://*.example/cb",
        "https://c.example/*",
        "https://c.example/cb#x",
        "https://c.example\\@evil.example/",
        "https://c.example/ cb",
        "https://c.example/\tcb",
        /* the bypasses of lists of bad schemes */
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "jav\tascript:alert(1)",
        " javascript:alert(1)",
        "java%73cript:alert(1)",
        "javascript://c.example/%0aalert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://c.example/x",
        "view-source:https://c.example/",
        "vscode://x/cb",
        "Cursor://a.b/cb",
        "cursorx://a.b/cb",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const char *why = oauth_proxy_redirect_fault(str_of(good[i]), &schemes);
        if (why != NULL) {
            fail_msg("%s: %s", good[i], why);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (oauth_proxy_redirect_fault(str_of(bad[i]), &schemes) == NULL) {
            fail_msg("taken: %s", bad[i]);
        }
    }
    char longer[OAUTH_PROXY_REDIRECT_BYTES + 2] = "https://c.example/";
    memset(longer + strlen(longer), 'a', sizeof(longer) - 1 - strlen(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_non_null(oauth_proxy_redirect_fault(str_of(longer), &schemes));
    static const char *const no_schemes[] = {"http", "https", "javascript", "JAVASCRIPT", "data",
                                             "file", "",      "1a",         "a b",        "Cursor"};
    for (size_t i = 0; i < ARRAY_LEN(no_schemes); i++) {
        assert_false(oauth_proxy_scheme_is_fine(str_of(no_schemes[i])));
    }
}

static void which_redirect_is_the_registered_one(void **state)
{
    (void)state;
    static const struct {
        const char *registered, *asked;
        bool is;
    } rows[] = {
        {"https://c/cb", "https://c/cb", true},
        {"https://c/cb", "https://c/cb/", false},
        {"https://c/cb", "https://c/CB", false},
        {"https://c/cb", "https://C/cb", false},
        {"https://c/cb", "https://c:443/cb", false},
        {"https://c/cb", "https://c/cb?x=1", false},
        {"https://c/cb", "https://c/cb/../evil", false},
        {"https://c/cb", "https://c.evil/cb", false},
        {"https://c/", "https://c/cb", false},
        {"http://127.0.0.1/cb", "http://127.0.0.1:5000/cb", true},
        {"http://127.0.0.1:1/cb", "http://127.0.0.1:5000/cb", true},
        {"http://[::1]/cb", "http://[::1]:5000/cb", true},
        {"http://localhost/cb", "http://localhost:5000/cb", true},
        {"http://127.0.0.1/cb", "http://localhost:5000/cb", false},
        {"http://127.0.0.1/cb", "http://127.0.0.2:5000/cb", false},
        {"http://127.0.0.1/cb", "http://127.0.0.1:5000/cb2", false},
        {"http://127.0.0.1/cb", "http://127.0.0.1:5000/cb?x=1", false},
        {"http://127.0.0.1/cb", "https://127.0.0.1:5000/cb", false},
        {"http://127.0.0.1/cb", "http://127.0.0.1:5000@evil/cb", false},
        {"https://127.0.0.1/cb", "https://127.0.0.1:5000/cb", false},
        {"cursor://a/cb", "cursor://a:1/cb", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (oauth_proxy_redirect_is(str_of(rows[i].registered), str_of(rows[i].asked)) !=
            rows[i].is) {
            fail_msg("%s, %s", rows[i].registered, rows[i].asked);
        }
    }
}

static bay_err registers(const seal_ring *ring, const char *body, arena *memory, buf *out,
                         const char **out_error)
{
    bay_diag diag = {.text = ""};
    *out_error = "";
    bay_err err =
        oauth_proxy_register(ring, str_of(body), &schemes, 5000, memory, out, out_error, &diag);
    assert_true(err == BAY_OK || diag.text[0] != '\0');
    return err;
}

static void registrations_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body, *error;
    } rows[] = {
        {"", "invalid_client_metadata"},
        {"[]", "invalid_client_metadata"},
        {"{\"redirect_uris\":[\"https://c/cb\"],\"redirect_uris\":[\"https://d/cb\"]}",
         "invalid_client_metadata"},
        {"{}", "invalid_redirect_uri"},
        {"{\"redirect_uris\":[]}", "invalid_redirect_uri"},
        {"{\"redirect_uris\":\"https://c/cb\"}", "invalid_redirect_uri"},
        {"{\"redirect_uris\":[7]}", "invalid_redirect_uri"},
        {"{\"redirect_uris\":[\"https://c/cb\",\"javascript:alert(1)\"]}", "invalid_redirect_uri"},
        {"{\"redirect_uris\":[\"https://c/1\",\"https://c/2\",\"https://c/3\",\"https://c/4\","
         "\"https://c/5\",\"https://c/6\",\"https://c/7\",\"https://c/8\",\"https://c/9\"]}",
         "invalid_redirect_uri"},
        {"{\"client_name\":\"a\\u0007b\",\"redirect_uris\":[\"https://c/cb\"]}",
         "invalid_client_metadata"},
    };
    seal_ring *ring = NULL;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        arena memory;
        buf out;
        const char *error = "";
        arena_init(&memory, 1 << 20);
        buf_init(&out, 1 << 16);
        if (registers(ring, rows[i].body, &memory, &out, &error) != BAY_ERR_DENIED ||
            strcmp(error, rows[i].error) != 0) {
            fail_msg("%s: %s", rows[i].body, error);
        }
        assert_int_equal(out.len, 0);
        buf_fini(&out);
        arena_fini(&memory);
    }
    /* what does not fit into an id */
    char body[2000] = "{\"redirect_uris\":[\"https://c/", one[400];
    memset(one, 'a', sizeof(one) - 1);
    one[sizeof(one) - 1] = '\0';
    snprintf(body + strlen(body), sizeof(body) - strlen(body), "%s\",\"https://c/b%s\"]}", one,
             one);
    arena memory;
    buf out;
    const char *error = "";
    arena_init(&memory, 1 << 20);
    buf_init(&out, 1 << 16);
    assert_int_equal(registers(ring, body, &memory, &out, &error), BAY_ERR_DENIED);
    assert_string_equal(error, "invalid_client_metadata");
    buf_fini(&out);
    arena_fini(&memory);
    seal_ring_free(ring);
}

static void a_client_id_is_what_was_registered(void **state)
{
    (void)state;
    seal_ring *ring = NULL, *other = NULL;
    arena memory;
    buf out;
    const char *error = "";
    oauth_proxy_client client;
    json_doc doc;
    bay_str id = {"", 0};
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    assert_int_equal(seal_ring_new(&other), BAY_OK);
    assert_int_equal(seal_ring_generate(other), BAY_OK);
    arena_init(&memory, 1 << 20);
    buf_init(&out, 1 << 16);
    assert_int_equal(
        registers(ring,
                  "{\"client_name\":\"My <b>\",\"redirect_uris\":[\"https://c/cb\","
                  "\"http://127.0.0.1/cb\"],\"client_secret\":\"s\",\"scope\":\"admin\","
                  "\"token_endpoint_auth_method\":\"client_secret_post\"}",
                  &memory, &out, &error),
        BAY_OK);
    assert_int_equal(json_parse(&doc, buf_view(&out), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(json_str(json_get(json_root(&doc), STR("client_id")), &memory, &id), BAY_OK);
    /* a public one, whatever it wanted to be; the provider's secret is nowhere */
    assert_true(
        json_str_eq(json_get(json_root(&doc), STR("token_endpoint_auth_method")), STR("none")));
    assert_true(json_is(json_get(json_root(&doc), STR("client_secret")), JSON_MISSING));
    assert_true(json_is(json_get(json_root(&doc), STR("scope")), JSON_MISSING));
    assert_int_equal(oauth_proxy_client_read(ring, id, 5000, &memory, &client), BAY_OK);
    assert_true(str_eq(client.name, STR("My <b>")));
    assert_int_equal(client.redirect_count, 2);
    assert_true(oauth_proxy_client_has(&client, STR("https://c/cb")));
    assert_true(oauth_proxy_client_has(&client, STR("http://127.0.0.1:7/cb")));
    assert_false(oauth_proxy_client_has(&client, STR("https://d/cb")));
    /* made up, changed, of other keys, of no kind */
    assert_int_equal(oauth_proxy_client_read(other, id, 5000, &memory, &client), BAY_ERR_NOT_FOUND);
    bay_str changed = {"", 0};
    assert_int_equal(arena_dup(&memory, id, &changed), BAY_OK);
    ((char *)(uintptr_t)changed.at)[changed.len / 2] ^= 1;
    assert_int_equal(oauth_proxy_client_read(ring, changed, 5000, &memory, &client),
                     BAY_ERR_NOT_FOUND);
    static const char *const bad[] = {"", "web", "pbc_", "pbc_AAAA",
                                      "https://c.example/client.json"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(oauth_proxy_client_read(ring, str_of(bad[i]), 5000, &memory, &client),
                         BAY_ERR_NOT_FOUND);
    }
    buf_fini(&out);
    arena_fini(&memory);
    seal_ring_free(ring);
    seal_ring_free(other);
}

static void documents_that_describe_a_client(void **state)
{
    (void)state;
    static const char *const urls[] = {"https://c.example/client.json", "https://c.example/a/b",
                                       "http://127.0.0.1:7/client.json"};
    static const char *const no_urls[] = {
        "",
        "pbc_x",
        "https://c.example",
        "https://c.example/",
        "https://c.example/a/../client.json",
        "https://c.example/./client.json",
        "https://c.example/%2e%2e/client.json",
        "https://c.example/client.json#x",
        "https://c.example/client.json?x=1",
        "https://ann@c.example/client.json",
        "ftp://c.example/client.json",
        "HTTPS://c.example/client.json",
    };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        assert_true(oauth_proxy_client_is_document(str_of(urls[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(no_urls); i++) {
        if (oauth_proxy_client_is_document(str_of(no_urls[i]))) {
            fail_msg("taken: %s", no_urls[i]);
        }
    }
#define DESCRIBED(more)                                                                            \
    "{\"client_id\":\"https://c/x\",\"redirect_uris\":[\"https://c/cb\"]" more "}"
    static const struct {
        const char *text;
        bay_err err;
    } rows[] = {
        {DESCRIBED(""), BAY_OK},
        {DESCRIBED(",\"token_endpoint_auth_method\":\"none\""), BAY_OK},
        {DESCRIBED(",\"token_endpoint_auth_method\":\"private_key_jwt\""), BAY_ERR_DENIED},
        {DESCRIBED(",\"client_secret\":\"s\""), BAY_ERR_DENIED},
        {"{\"client_id\":\"https://c/y\",\"redirect_uris\":[\"https://c/cb\"]}", BAY_ERR_DENIED},
        {"{\"client_id\":\"https://c/x/\",\"redirect_uris\":[\"https://c/cb\"]}", BAY_ERR_DENIED},
        {"{\"redirect_uris\":[\"https://c/cb\"]}", BAY_ERR_DENIED},
        {"{\"client_id\":\"https://c/x\",\"redirect_uris\":[\"javascript:alert(1)\"]}",
         BAY_ERR_DENIED},
        {"{\"client_id\":\"https://c/x\"}", BAY_ERR_DENIED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        arena memory;
        json_doc doc;
        oauth_proxy_client client;
        bay_diag diag = {.text = ""};
        arena_init(&memory, 1 << 20);
        assert_int_equal(json_parse(&doc, str_of(rows[i].text), NULL, &memory, NULL), BAY_OK);
        if (oauth_proxy_document_read(STR("https://c/x"), json_root(&doc), &schemes, &memory,
                                      &client, &diag) != rows[i].err) {
            fail_msg("%s: %s", rows[i].text, diag.text);
        }
        arena_fini(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_that_a_client_may_have),
        cmocka_unit_test(which_redirect_is_the_registered_one),
        cmocka_unit_test(registrations_that_are_refused),
        cmocka_unit_test(a_client_id_is_what_was_registered),
        cmocka_unit_test(documents_that_describe_a_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
