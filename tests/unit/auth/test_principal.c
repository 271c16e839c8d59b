/* A principal says who calls, unambiguously, and loses nothing but rights when it is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "auth/principal.h"
#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"

/* Claims for principal_parts: of memory that the principal does not need. */
typedef struct claims {
    arena memory;
    json_doc doc;
} claims;

static json_val claims_init(claims *self, const char *text)
{
    arena_init(&self->memory, 1 << 20);
    assert_int_equal(json_parse(&self->doc, str_of(text), NULL, &self->memory, NULL), BAY_OK);
    return json_root(&self->doc);
}

static const auth_principal *made(const principal_parts *parts)
{
    const auth_principal *self = NULL;
    assert_int_equal(principal_new(parts, &self), BAY_OK);
    return self;
}

static void assert_text(bay_str text, const char *expected)
{
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.at, expected, text.len);
}

static const principal_parts alice = {
    .proof = PRINCIPAL_TOKEN,
    .issuer = STR_INIT("https://login.example"),
    .subject = STR_INIT("alice"),
    .client = STR_INIT("web"),
    .scopes = STR_INIT("files.read files.write"),
    .expires_at_ms = 1000,
};

static void test_refused(void **state)
{
    (void)state;
    static char longest[PRINCIPAL_CLAIMS_BYTES + 2];
    memset(longest, 'a', sizeof(longest));
    const struct {
        principal_parts parts;
        bay_err err;
    } rows[] = {
        {{.proof = PRINCIPAL_KEY}, BAY_ERR_INVALID},
        {{.subject = {longest, PRINCIPAL_TEXT_BYTES + 1}}, BAY_ERR_LIMIT},
        {{.subject = STR("a"), .issuer = {longest, PRINCIPAL_TEXT_BYTES + 1}}, BAY_ERR_LIMIT},
        {{.subject = STR("a"), .client = {longest, PRINCIPAL_TEXT_BYTES + 1}}, BAY_ERR_LIMIT},
        {{.subject = STR("a"), .scopes = {longest, PRINCIPAL_SCOPES_BYTES + 1}}, BAY_ERR_LIMIT},
        {{.subject = STR("\xff")}, BAY_ERR_INVALID},
        {{.subject = STR("a"), .issuer = STR("\xc3")}, BAY_ERR_INVALID},
        {{.subject = STR("a"), .scopes = STR("\xed\xa0\x80")}, BAY_ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const auth_principal *out = NULL;
        assert_int_equal(principal_new(&rows[i].parts, &out), rows[i].err);
        assert_null(out);
    }
}

static void test_claims_refused(void **state)
{
    (void)state;
    static char longest[PRINCIPAL_CLAIMS_BYTES + 2] = "{\"a\":\"";
    size_t head = strlen(longest);
    memset(longest + head, 'a', PRINCIPAL_CLAIMS_BYTES + 1 - head);
    memcpy(longest + PRINCIPAL_CLAIMS_BYTES - 1, "\"}", 2);
    const struct {
        const char *claims;
        bay_err err;
    } rows[] = {
        {longest, BAY_ERR_LIMIT},
        {"[]", BAY_ERR_TYPE},
        {"null", BAY_ERR_TYPE},
        {"{\"a\":[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}", BAY_ERR_DEPTH},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        claims given;
        const auth_principal *out = NULL;
        principal_parts parts = alice;
        parts.claims = claims_init(&given, rows[i].claims);
        assert_int_equal(principal_new(&parts, &out), rows[i].err);
        assert_null(out);
        arena_fini(&given.memory);
    }
}

static void test_anonymous(void **state)
{
    (void)state;
    assert_text(principal_identity(NULL), "");
    assert_text(principal_binding(NULL), "");
    assert_text(principal_subject(NULL), "");
    assert_text(principal_issuer(NULL), "");
    assert_text(principal_client(NULL), "");
    assert_text(principal_scopes(NULL), "");
    assert_string_equal(principal_proof_name(NULL), "anonymous");
    assert_false(principal_has_scope(NULL, STR("files.read")));
    assert_false(principal_has_scope(NULL, STR("")));
    assert_false(principal_is_expired(NULL, UINT64_MAX));
    assert_true(principal_is_same(NULL, NULL));
    assert_false(json_is(principal_claim(NULL, STR("")), JSON_OBJECT));
    assert_null(principal_ref(NULL));
    assert_null(principal_actor(NULL));
    principal_unref(NULL);
}

static void test_parts(void **state)
{
    (void)state;
    claims given;
    principal_parts parts = alice;
    parts.claims =
        claims_init(&given, "{\"groups\":[\"ops\"],\"org\":{\"id\":12345678901234567890}}");
    const auth_principal *self = made(&parts);
    arena_fini(&given.memory);
    assert_text(principal_identity(self), "token:21:https://login.example:5:alice");
    assert_text(principal_binding(self), "token:21:https://login.example:5:alice:3:web");
    assert_text(principal_issuer(self), "https://login.example");
    assert_text(principal_subject(self), "alice");
    assert_text(principal_client(self), "web");
    assert_text(principal_scopes(self), "files.read files.write");
    assert_true(principal_has_scope(self, STR("files.read")));
    assert_true(principal_has_scope(self, STR("files.write")));
    const char *absent[] = {"",
                            "files",
                            "files.rea",
                            "files.read ",
                            "iles.read",
                            " ",
                            "files.read files.write",
                            "FILES.READ"};
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        assert_false(principal_has_scope(self, str_of(absent[i])));
    }
    assert_text(json_raw(principal_claim(self, STR("/org/id"))), "12345678901234567890");
    assert_text(json_raw(principal_claim(self, STR("/groups/0"))), "\"ops\"");
    assert_int_equal(json_raw(principal_claim(self, STR("/groups/1"))).len, 0);
    assert_false(principal_is_expired(self, 999));
    assert_true(principal_is_expired(self, 1000));
    principal_unref(self);
}

/* Whatever separates the parts may also stand in them. */
static void test_identities_differ(void **state)
{
    (void)state;
    const principal_parts rows[] = {
        {.proof = PRINCIPAL_KEY, .issuer = STR("a"), .subject = STR("b")},
        {.proof = PRINCIPAL_TOKEN, .issuer = STR("a"), .subject = STR("b")},
        {.proof = PRINCIPAL_KEY, .issuer = STR("ab"), .subject = STR("b")},
        {.proof = PRINCIPAL_KEY, .issuer = STR(""), .subject = STR("ab")},
        {.proof = PRINCIPAL_KEY, .issuer = STR(""), .subject = STR("a:1:b")},
        {.proof = PRINCIPAL_KEY, .issuer = STR("a:1:b"), .subject = STR("c")},
        {.proof = PRINCIPAL_KEY, .issuer = STR("a"), .subject = STR("b:1:c")},
        {.proof = PRINCIPAL_KEY, .issuer = STR("a"), .subject = {"b\0", 2}},
        {.proof = PRINCIPAL_KEY, .issuer = STR("a"), .subject = {"b\0c", 3}},
        {.proof = PRINCIPAL_KEY, .issuer = STR("a"), .subject = STR("B")},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const auth_principal *one = made(&rows[i]);
        for (size_t j = 0; j < ARRAY_LEN(rows); j++) {
            const auth_principal *other = made(&rows[j]);
            assert_int_equal(principal_is_same(one, other), i == j);
            principal_unref(other);
        }
        assert_false(principal_is_same(one, NULL));
        principal_unref(one);
    }
}

/* One subject by two clients: what is kept is shared, what is under way is not. */
static void test_clients(void **state)
{
    (void)state;
    principal_parts parts = alice;
    const auth_principal *web = made(&parts);
    parts.client = STR("cli");
    const auth_principal *cli = made(&parts);
    assert_true(principal_is_same(web, cli));
    assert_false(str_eq(principal_binding(web), principal_binding(cli)));
    principal_unref(web);
    principal_unref(cli);
}

static void test_stored(void **state)
{
    (void)state;
    const auth_principal *self = made(&alice);
    const auth_principal *found = NULL;
    assert_int_equal(principal_of_identity(principal_identity(self), &found), BAY_OK);
    assert_true(principal_is_same(self, found));
    assert_text(principal_issuer(found), "https://login.example");
    assert_text(principal_scopes(found), "");
    assert_text(principal_client(found), "");
    principal_unref(found);
    principal_unref(self);

    found = (const auth_principal *)&found;
    assert_int_equal(principal_of_identity(STR(""), &found), BAY_OK);
    assert_null(found);
    const char *broken[] = {"alice",
                            "token",
                            "token:",
                            "token:0::",
                            "token:0::0:",
                            "token:0::1:",
                            "token:0::1:ab",
                            "token:0::01:a",
                            "token:00::1:a",
                            "other:0::1:a",
                            ":0::1:a",
                            "token:0::1:a:0:",
                            "token:0:x:1:a",
                            "token:-1::1:a",
                            "anonymous:0::1:a",
                            "token:0::1:\xff",
                            "token:1:a",
                            "token:9:a:1:b",
                            "token:18446744073709551616::1:a"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        assert_int_equal(principal_of_identity(str_of(broken[i]), &found), BAY_ERR_SYNTAX);
        assert_null(found);
    }
}

static void test_actors(void **state)
{
    (void)state;
    principal_parts parts = {.proof = PRINCIPAL_TOKEN, .subject = STR("a"), .expires_at_ms = 50};
    const auth_principal *last = NULL;
    for (unsigned i = 0; i < PRINCIPAL_ACTORS; i++) {
        const auth_principal *next = made(&parts);
        principal_unref(last);
        last = next;
        parts.actor = last;
        parts.expires_at_ms = 0;
    }
    const auth_principal *out = NULL;
    assert_int_equal(principal_new(&parts, &out), BAY_ERR_LIMIT);
    assert_null(out);
    assert_non_null(principal_actor(last));
    assert_true(principal_is_expired(last, 50)); /* the first actor's */
    assert_false(principal_is_expired(last, 49));
    principal_unref(last);
}

/* For exchanges: in memory, and part of nothing that is stored, shown or compared. */
static void test_token(void **state)
{
    (void)state;
    static char longest[PRINCIPAL_TOKEN_BYTES + 1];
    principal_parts parts = alice;
    const auth_principal *without = made(&parts);
    memset(longest, 'a', sizeof(longest));
    parts.token = (bay_str){longest, sizeof(longest)};
    const auth_principal *self = NULL;
    assert_int_equal(principal_new(&parts, &self), BAY_ERR_LIMIT);
    parts.token.len--;
    const auth_principal *most = made(&parts);
    assert_int_equal(principal_token(most).len, PRINCIPAL_TOKEN_BYTES);
    parts.token = STR("canary");
    self = made(&parts);
    assert_text(principal_token(self), "canary");
    assert_text(principal_token(without), "");
    assert_text(principal_token(NULL), "");
    assert_text(principal_scopes(self), "files.read files.write");
    assert_true(str_eq(principal_binding(self), principal_binding(without)));
    const auth_principal *stored = NULL;
    assert_int_equal(principal_of_identity(principal_identity(self), &stored), BAY_OK);
    assert_text(principal_token(stored), "");
    principal_unref(stored);
    principal_unref(self);
    principal_unref(most);
    principal_unref(without);
}

#ifdef BAY_NO_TLS
static void test_rights(void **state)
{
    (void)state;
    unsigned char out[PRINCIPAL_RIGHTS_BYTES];
    const auth_principal *self = made(&alice);
    assert_int_equal(principal_rights(self, out), BAY_ERR_UNSUPPORTED);
    principal_unref(self);
}
#else
static void assert_rights(const principal_parts *one, const principal_parts *other, bool are_same)
{
    unsigned char a[PRINCIPAL_RIGHTS_BYTES], b[PRINCIPAL_RIGHTS_BYTES];
    const auth_principal *first = made(one);
    const auth_principal *second = made(other);
    assert_int_equal(principal_rights(first, a), BAY_OK);
    assert_int_equal(principal_rights(second, b), BAY_OK);
    assert_int_equal(memcmp(a, b, sizeof(a)) == 0, are_same);
    principal_unref(first);
    principal_unref(second);
}

static void test_rights(void **state)
{
    (void)state;
    const auth_principal *actor = principal_local();
    principal_parts parts = alice;
    parts.token = STR("t");
    parts.expires_at_ms = 5;
    assert_rights(&alice, &parts, true);
    parts.scopes = STR("files.read");
    assert_rights(&alice, &parts, false);
    parts = alice;
    parts.client = STR("cli");
    assert_rights(&alice, &parts, false);
    parts = alice;
    parts.issuer = STR("https://other.example");
    assert_rights(&alice, &parts, false);
    parts = alice;
    parts.actor = actor;
    assert_rights(&alice, &parts, false);
    principal_unref(actor);
}
#endif

static void test_local(void **state)
{
    (void)state;
    const auth_principal *one = principal_local();
    const auth_principal *other = principal_local();
    assert_string_equal(principal_proof_name(one), "local");
    assert_true(principal_is_same(one, other));
    principal_unref(one);
    principal_unref(other);
}

static void test_memory(void **state)
{
    (void)state;
    claims given;
    json_val all = claims_init(&given, "{\"groups\":[\"ops\"]}");
    for (size_t at = 0; failing_memory_start(at); at++) {
        const auth_principal *actor = principal_local();
        const auth_principal *self = NULL;
        principal_parts parts = alice;
        parts.claims = all;
        parts.actor = actor;
        bay_err err = principal_new(&parts, &self);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && self == NULL));
        principal_unref(actor);
        principal_unref(principal_ref(self));
        principal_unref(self);
        failing_memory_check();
    }
    arena_fini(&given.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_claims_refused),
        cmocka_unit_test(test_anonymous),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_identities_differ),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_actors),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
