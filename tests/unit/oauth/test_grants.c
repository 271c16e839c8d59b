/* Codes and tokens that the gateway gives out: what ends a grant, and what a token is good for. The clock
 * is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h> /* without it there are no digests */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "oauth/grants.h"
#include "support/failing_memory.h"

enum { NOW = 1000000, ACCESS = 60000, REFRESH = 600000 };

/* RFC 7636 appendix B. */
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

typedef struct table {
    oauth_grants *grants;
    const auth_principal *ann;
    char code[OAUTH_GIVEN_BYTES];
    oauth_given given;
} table;

static const auth_principal *person(const char *subject)
{
    const auth_principal *out = NULL;
    principal_parts parts = {
        .proof = PRINCIPAL_TOKEN, .issuer = STR("https://idp"), .subject = str_of(subject)};
    assert_int_equal(principal_new(&parts, &out), BAY_OK);
    return out;
}

static oauth_consent consent_of(const auth_principal *who)
{
    return (oauth_consent){.person = who,
                           .client_id = STR("c1"),
                           .redirect_uri = STR("https://c/cb"),
                           .challenge = STR(CHALLENGE),
                           .resource = STR("https://gw/mcp"),
                           .scope = STR("read write")};
}

static void table_init(table *self)
{
    const oauth_grants_options options = {.access_ms = ACCESS, .refresh_ms = REFRESH};
    *self = (table){.ann = person("ann")};
    assert_int_equal(oauth_grants_new(&options, &self->grants), BAY_OK);
}

static void table_fini(table *self)
{
    oauth_grants_unref(self->grants);
    principal_unref(self->ann);
}

static void open_one(table *self)
{
    oauth_consent consent = consent_of(self->ann);
    assert_int_equal(oauth_grants_open(self->grants, &consent, NOW, self->code), BAY_OK);
}

static oauth_redemption good(const table *self)
{
    return (oauth_redemption){.text = str_of(self->code),
                              .client_id = STR("c1"),
                              .redirect_uri = STR("https://c/cb"),
                              .verifier = STR(VERIFIER)};
}

static void redeemed(table *self)
{
    oauth_redemption asked = good(self);
    assert_null(oauth_grants_redeem(self->grants, &asked, NOW + 1, &self->given));
}

static bool is_good(const table *self, const char *token, uint64_t now_ms)
{
    const auth_principal *who = NULL;
    buf resource;
    buf_init(&resource, OAUTH_GRANT_TEXT);
    bool is = oauth_grants_find(self->grants, str_of(token), now_ms, &who, &resource);
    if (is) {
        assert_true(str_eq(buf_view(&resource), STR("https://gw/mcp")));
        assert_true(str_eq(principal_subject(who), STR("ann")));
        assert_true(str_eq(principal_issuer(who), STR("https://idp")));
        assert_true(str_eq(principal_client(who), STR("c1")));
    }
    principal_unref(who);
    buf_fini(&resource);
    return is;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Each ends the grant: the right code does not help afterwards. */
static void what_ends_a_code(void **state)
{
    (void)state;
    static const struct {
        const char *client, *redirect, *verifier, *resource;
        uint64_t after_ms;
        const char *error;
    } rows[] = {
        {"c2", "https://c/cb", VERIFIER, "", 1, "invalid_grant"},
        {"", "https://c/cb", VERIFIER, "", 1, "invalid_grant"},
        {"c1", "https://c/cb/", VERIFIER, "", 1, "invalid_grant"},
        {"c1", "", VERIFIER, "", 1, "invalid_grant"},
        {"c1", "https://c/cb", "", "", 1, "invalid_grant"}, /* the challenge is not optional */
        {"c1", "https://c/cb", CHALLENGE, "", 1, "invalid_grant"}, /* nor plain */
        {"c1", "https://c/cb", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK", "", 1,
         "invalid_grant"},
        {"c1", "https://c/cb", "short", "", 1, "invalid_grant"},
        {"c1", "https://c/cb", VERIFIER, "", OAUTH_CODE_MS, "invalid_grant"},
        {"c1", "https://c/cb", VERIFIER, "https://other", 1, "invalid_target"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        table self;
        table_init(&self);
        open_one(&self);
        oauth_redemption asked = {.text = str_of(self.code),
                                  .client_id = str_of(rows[i].client),
                                  .redirect_uri = str_of(rows[i].redirect),
                                  .verifier = str_of(rows[i].verifier),
                                  .resource = str_of(rows[i].resource)};
        const char *error =
            oauth_grants_redeem(self.grants, &asked, NOW + rows[i].after_ms, &self.given);
        if (error == NULL || strcmp(error, rows[i].error) != 0) {
            fail_msg("row %zu: %s", i, error != NULL ? error : "given");
        }
        asked = good(&self);
        assert_non_null(oauth_grants_redeem(self.grants, &asked, NOW + 1, &self.given));
        assert_int_equal(oauth_grants_count(self.grants), 0);
        table_fini(&self);
    }
}

static void a_code_that_comes_twice_ends_its_tokens(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    open_one(&self);
    redeemed(&self);
    assert_true(is_good(&self, self.given.access, NOW + 2));
    oauth_redemption asked = good(&self);
    oauth_given again;
    assert_string_equal(oauth_grants_redeem(self.grants, &asked, NOW + 3, &again), "invalid_grant");
    assert_false(is_good(&self, self.given.access, NOW + 4));
    table_fini(&self);
}

static void texts_that_are_no_codes(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    open_one(&self);
    char swapped[OAUTH_GIVEN_BYTES], cut[OAUTH_GIVEN_BYTES];
    snprintf(swapped, sizeof(swapped), "pbr%s", self.code + 3);
    snprintf(cut, sizeof(cut), "%.*s", (int)strlen(self.code) - 1, self.code);
    const char *const bad[] = {
        "",      "x", "pbo_",
        swapped, cut, "pbo_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        oauth_redemption asked = good(&self);
        asked.text = str_of(bad[i]);
        assert_string_equal(oauth_grants_redeem(self.grants, &asked, NOW, &self.given),
                            "invalid_grant");
        assert_false(is_good(&self, bad[i], NOW));
    }
    assert_false(is_good(&self, self.code, NOW)); /* a code is no token */
    assert_false(oauth_grants_is_token(str_of(self.code)));
    redeemed(&self); /* none of them ended it */
    assert_false(is_good(&self, self.given.refresh, NOW + 2));
    table_fini(&self);
}

static void what_is_no_consent(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    for (int i = 0; i < 6; i++) {
        oauth_consent consent = consent_of(i == 0 ? NULL : self.ann);
        bay_str *const parts[] = {&consent.client_id, &consent.redirect_uri, &consent.challenge,
                                  &consent.resource};
        if (i > 0 && i < 5) {
            *parts[i - 1] = STR("");
        }
        char longer[OAUTH_GRANT_TEXT + 1];
        memset(longer, 'a', sizeof(longer));
        if (i == 5) {
            consent.scope = (bay_str){longer, sizeof(longer)};
        }
        assert_int_equal(oauth_grants_open(self.grants, &consent, NOW, self.code),
                         i < 5 ? BAY_ERR_INVALID : BAY_ERR_LIMIT);
    }
    assert_int_equal(oauth_grants_count(self.grants), 0);
    table_fini(&self);
}

/* ---- refresh --------------------------------------------------------------------------------- */

static const char *refreshed(table *self, const char *token, const char *scope, uint64_t now_ms)
{
    oauth_redemption asked = {
        .text = str_of(token), .client_id = STR("c1"), .scope = str_of(scope)};
    return oauth_grants_refresh(self->grants, &asked, now_ms, &self->given);
}

static void a_refresh_token_is_good_once(void **state)
{
    (void)state;
    table self;
    char first[OAUTH_GIVEN_BYTES], access[OAUTH_GIVEN_BYTES], second[OAUTH_GIVEN_BYTES];
    table_init(&self);
    open_one(&self);
    redeemed(&self);
    memcpy(first, self.given.refresh, sizeof(first));
    memcpy(access, self.given.access, sizeof(access));
    assert_null(refreshed(&self, first, "", NOW + 10));
    memcpy(second, self.given.refresh, sizeof(second));
    assert_string_not_equal(first, second);
    assert_true(is_good(&self, access, NOW + 11)); /* requests under way go on */
    assert_true(is_good(&self, self.given.access, NOW + 11));
    assert_null(refreshed(&self, second, "", NOW + 12));
    /* the oldest, two generations later: the whole family ends */
    assert_string_equal(refreshed(&self, first, "", NOW + 13), "invalid_grant");
    assert_false(is_good(&self, self.given.access, NOW + 14));
    assert_string_equal(refreshed(&self, self.given.refresh, "", NOW + 15), "invalid_grant");
    assert_int_equal(oauth_grants_count(self.grants), 0);
    table_fini(&self);
}

static void what_a_refresh_may_ask_for(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    open_one(&self);
    redeemed(&self);
    assert_string_equal(self.given.scope, "read write");
    oauth_redemption asked = {.text = str_of(self.given.refresh), .client_id = STR("c2")};
    oauth_given other;
    assert_string_equal(oauth_grants_refresh(self.grants, &asked, NOW + 2, &other),
                        "invalid_grant");
    asked.client_id = STR("c1");
    asked.scope = STR("read admin");
    assert_string_equal(oauth_grants_refresh(self.grants, &asked, NOW + 2, &other),
                        "invalid_scope");
    asked.scope = STR("");
    asked.resource = STR("https://gw/mcp/other");
    assert_string_equal(oauth_grants_refresh(self.grants, &asked, NOW + 2, &other),
                        "invalid_target");
    /* less, and all of it again */
    assert_null(refreshed(&self, self.given.refresh, "read", NOW + 3));
    assert_string_equal(self.given.scope, "read");
    assert_null(refreshed(&self, self.given.refresh, "", NOW + 4));
    assert_string_equal(self.given.scope, "read write");
    /* until its time */
    assert_string_equal(refreshed(&self, self.given.refresh, "", NOW + 4 + REFRESH),
                        "invalid_grant");
    table_fini(&self);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void a_token_has_its_time(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    open_one(&self);
    redeemed(&self);
    assert_true(is_good(&self, self.given.access, NOW + ACCESS));
    assert_false(is_good(&self, self.given.access, NOW + 1 + ACCESS));
    table_fini(&self);
}

static void who_revokes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        table self;
        table_init(&self);
        open_one(&self);
        redeemed(&self);
        bay_str token = str_of(i == 0 ? self.given.access : self.given.refresh);
        oauth_grants_revoke(self.grants, token, STR("c2"), NOW + 2);
        oauth_grants_revoke(self.grants, STR("pbt_x"), STR("c1"), NOW + 2);
        assert_true(is_good(&self, self.given.access, NOW + 3));
        oauth_grants_revoke(self.grants, token, STR("c1"), NOW + 4);
        assert_false(is_good(&self, self.given.access, NOW + 5));
        assert_int_equal(oauth_grants_count(self.grants), 0);
        table_fini(&self);
    }
}

static void one_person_has_so_many(void **state)
{
    (void)state;
    table self;
    table_init(&self);
    const auth_principal *bob = person("bob");
    oauth_consent consent = consent_of(bob);
    char kept[OAUTH_GIVEN_BYTES];
    assert_int_equal(oauth_grants_open(self.grants, &consent, NOW, kept), BAY_OK);
    open_one(&self);
    char first[OAUTH_GIVEN_BYTES];
    memcpy(first, self.code, sizeof(first));
    for (int i = 0; i < OAUTH_GRANTS_OF_ONE; i++) {
        open_one(&self);
    }
    assert_int_equal(oauth_grants_count(self.grants), OAUTH_GRANTS_OF_ONE + 1);
    oauth_redemption asked = good(&self);
    asked.text = str_of(first);
    assert_non_null(oauth_grants_redeem(self.grants, &asked, NOW + 1, &self.given));
    asked.text = str_of(kept); /* another's is not touched */
    assert_null(oauth_grants_redeem(self.grants, &asked, NOW + 1, &self.given));
    /* what is over makes room by itself */
    oauth_consent late = consent_of(self.ann);
    assert_int_equal(oauth_grants_open(self.grants, &late, NOW + 2 * (uint64_t)REFRESH, self.code),
                     BAY_OK);
    assert_int_equal(oauth_grants_count(self.grants), 1);
    principal_unref(bob);
    table_fini(&self);
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        const oauth_grants_options options = {.access_ms = ACCESS, .refresh_ms = REFRESH};
        oauth_grants *grants = NULL;
        const auth_principal *ann = NULL;
        char code[OAUTH_GIVEN_BYTES] = "";
        oauth_given given;
        principal_parts parts = {.proof = PRINCIPAL_TOKEN, .subject = STR("ann")};
        bay_err err = principal_new(&parts, &ann);
        err = err == BAY_OK ? oauth_grants_new(&options, &grants) : err;
        if (err == BAY_OK) {
            oauth_consent consent = consent_of(ann);
            err = oauth_grants_open(grants, &consent, NOW, code);
        }
        if (err == BAY_OK) {
            const oauth_redemption asked = {.text = str_of(code),
                                            .client_id = STR("c1"),
                                            .redirect_uri = STR("https://c/cb"),
                                            .verifier = STR(VERIFIER)};
            const char *error = oauth_grants_redeem(grants, &asked, NOW + 1, &given);
            assert_true(error == NULL || failing_memory.has_failed);
        }
        oauth_grants_unref(grants);
        principal_unref(ann);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_a_code),
        cmocka_unit_test(a_code_that_comes_twice_ends_its_tokens),
        cmocka_unit_test(texts_that_are_no_codes),
        cmocka_unit_test(what_is_no_consent),
        cmocka_unit_test(a_refresh_token_is_good_once),
        cmocka_unit_test(what_a_refresh_may_ask_for),
        cmocka_unit_test(a_token_has_its_time),
        cmocka_unit_test(who_revokes),
        cmocka_unit_test(one_person_has_so_many),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
