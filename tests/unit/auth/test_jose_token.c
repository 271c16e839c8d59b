/* Tokens: everything that must keep one from being believed, though a genuine key signed it. */
#include "jose_rig.h"

#include "support/failing_memory.h"

enum { NOW_S = 1000000 };
#define GOOD "{\"iss\":\"https://i.example\",\"sub\":\"ann\",\"aud\":\"me\",\"exp\":1000010}"

static const jose_expected strict = {
    .issuer = STR_INIT("https://i.example"),
    .audience = STR_INIT("me"),
    .now_ms = (uint64_t)NOW_S * 1000,
    .leeway_ms = 5000,
};

typedef struct court {
    EVP_PKEY *key;
    jose_keys *keys;
    buf token;
    arena memory;
    jose_claims claims;
    bay_diag diag;
} court;

static void court_init(court *self)
{
    *self = (court){.key = rig_ec_key(), .keys = rig_keys(RIG_EC_JWK)};
    buf_init(&self->token, RIG_TEXT);
    arena_init(&self->memory, RIG_TEXT);
}

static void court_fini(court *self)
{
    arena_fini(&self->memory);
    buf_fini(&self->token);
    jose_keys_free(self->keys);
    EVP_PKEY_free(self->key);
}

static bay_err judge(court *self, bay_str token, const jose_expected *expected)
{
    arena_reset(&self->memory);
    self->diag = (bay_diag){.code = BAY_OK};
    bay_err err =
        jose_token_verify(self->keys, token, expected, &self->memory, &self->claims, &self->diag);
    if (err != BAY_OK) {
        assert_int_equal(self->diag.code, err);
        assert_null(strstr(self->diag.text, "ann"));
    }
    return err;
}

static bay_err judge_claims(court *self, const char *claims, const jose_expected *expected)
{
    rig_token(self->key, "{\"alg\":\"ES256\"}", claims, &self->token);
    return judge(self, buf_view(&self->token), expected);
}

static void what_is_no_token(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    static const char *const texts[] = {"", ".", "a", "a.b", "a.b.c.d", "a.b.c.d.e"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(judge(&self, str_of(texts[i]), &strict), BAY_ERR_SYNTAX);
    }
    static const char *const denied[] = {"..", "a.b.c", "e30.e30.", "eyJhbGciOiJub25lIn0.e30."};
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        assert_int_equal(judge(&self, str_of(denied[i]), &strict), BAY_ERR_DENIED);
    }
    char *endless = malloc(JOSE_TOKEN_BYTES + 1);
    memset(endless, 'a', JOSE_TOKEN_BYTES + 1);
    assert_int_equal(judge(&self, (bay_str){endless, JOSE_TOKEN_BYTES + 1}, &strict),
                     BAY_ERR_LIMIT);
    free(endless);
    court_fini(&self);
}

static void headers_that_are_refused(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"ES256\",\"crit\":[\"x\"],\"x\":1}",
        "{\"alg\":\"ES256\",\"typ\":\"JOSE\"}",
        "{\"alg\":\"ES256\",\"typ\":\"dpop+jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":1}",
        "{\"alg\":\"ES256\",\"kid\":7}",
        "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"typ\":\"JWT\"}",
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        rig_token(self.key, headers[i], GOOD, &self.token);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    }
    rig_token(NULL, "{\"alg\":\"none\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    rig_token(NULL, "{\"alg\":\"ES256\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    EVP_PKEY *other = EVP_EC_gen("P-256");
    rig_token(other, "{\"alg\":\"ES256\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    EVP_PKEY_free(other);
    court_fini(&self);
}

static void claims_that_are_refused(void **state)
{
    (void)state;
    court self;
    court_init(&self);
#define WITH(more) "{\"iss\":\"https://i.example\",\"sub\":\"ann\",\"aud\":\"me\"," more "}"
    static const char *const denied[] = {
        WITH("\"x\":1"),
        WITH("\"exp\":\"1000010\""),
        WITH("\"exp\":null"),
        WITH("\"exp\":-1"),
        WITH("\"exp\":1e300"),
        WITH("\"exp\":1e999"),
        WITH("\"exp\":999995"),
        WITH("\"exp\":999994.9"),
        WITH("\"exp\":0"),
        WITH("\"exp\":1000010,\"nbf\":1000006"),
        WITH("\"exp\":1000010,\"nbf\":\"0\""),
        WITH("\"exp\":1000010,\"iat\":1000006"),
        WITH("\"exp\":1000010,\"iat\":{}"),
        WITH("\"exp\":1000010,\"scope\":1"),
        WITH("\"exp\":1000010,\"scope\":\"a\\nb\""),
        WITH("\"exp\":1000010,\"scp\":[1]"),
        WITH("\"exp\":1000010,\"scp\":[\"a b\"]"),
        WITH("\"exp\":1000010,\"scp\":{}"),
        "{\"iss\":\"https://i.example\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"aud\":\"you\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"aud\":\"ME\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"aud\":[],\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"aud\":[\"you\",[\"me\"]],\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"aud\":{\"me\":\"me\"},\"exp\":1000010}",
        "{\"aud\":\"me\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example/\",\"aud\":\"me\",\"exp\":1000010}",
        "{\"iss\":[\"https://i.example\"],\"aud\":\"me\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"sub\":1,\"aud\":\"me\",\"exp\":1000010}",
        "{\"iss\":\"https://i.example\",\"sub\":\"a\\u0000b\",\"aud\":\"me\",\"exp\":1000010}",
    };
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        if (judge_claims(&self, denied[i], &strict) != BAY_ERR_DENIED) {
            fail_msg("believed: %s", denied[i]);
        }
    }
    static const char *const malformed[] = {
        "",
        "[]",
        "x",
        "{\"exp\":1000010,\"exp\":1000010}",
        WITH("\"exp\":1000010,\"aud\":\"you\""),
        WITH("\"exp\":1000010,\"x\":{\"a\":1,\"a\":1}"),
        WITH("\"exp\":1000010,\"x\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]"),
    };
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        if (judge_claims(&self, malformed[i], &strict) != BAY_ERR_SYNTAX) {
            fail_msg("read: %s", malformed[i]);
        }
    }
    /* Who expects no audience takes no token that is for one. */
    jose_expected loose = strict;
    loose.audience = STR("");
    assert_int_equal(judge_claims(&self, GOOD, &loose), BAY_ERR_DENIED);
    court_fini(&self);
}

static void tokens_that_are_believed(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    assert_true(str_eq(self.claims.subject, STR("ann")));
    assert_true(str_eq(self.claims.issuer, STR("https://i.example")));
    assert_int_equal(self.claims.scopes.len, 0);
    assert_true(json_is(json_get(self.claims.all, STR("exp")), JSON_NUMBER));
    /* within the leeway, at both ends */
    assert_int_equal(judge_claims(&self, WITH("\"exp\":999995.001"), &strict), BAY_OK);
    assert_int_equal(
        judge_claims(&self, WITH("\"exp\":1000010,\"nbf\":1000005,\"iat\":1000005"), &strict),
        BAY_OK);
    assert_int_equal(judge_claims(&self, WITH("\"exp\":1000010,\"scope\":\"a b\""), &strict),
                     BAY_OK);
    assert_true(str_eq(self.claims.scopes, STR("a b")));
    assert_int_equal(judge_claims(&self, WITH("\"exp\":1000010,\"scp\":[\"a\",\"b\"]"), &strict),
                     BAY_OK);
    assert_true(str_eq(self.claims.scopes, STR("a b")));
    assert_int_equal(judge_claims(&self, WITH("\"exp\":1000010,\"scp\":\"a b\""), &strict), BAY_OK);
    assert_true(str_eq(self.claims.scopes, STR("a b")));
    assert_int_equal(
        judge_claims(&self,
                     "{\"iss\":\"https:\\/\\/i.example\",\"aud\":[\"you\",\"me\"],\"exp\":1000010}",
                     &strict),
        BAY_OK);
    assert_int_equal(self.claims.subject.len, 0);
    jose_expected loose = {.now_ms = strict.now_ms};
    assert_int_equal(judge_claims(&self, "{\"exp\":1000001}", &loose), BAY_OK);
    static const char *const headers[] = {"{\"alg\":\"ES256\",\"typ\":\"JWT\"}",
                                          "{\"typ\":\"at+JWT\",\"alg\":\"ES256\",\"kid\":\"x\"}"};
    for (size_t i = 0; i < 2; i++) {
        rig_token(self.key, headers[i], GOOD, &self.token);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
    }
    court_fini(&self);
}

static void every_byte_counts(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    for (size_t i = 0; i < self.token.len; i++) {
        char kept = self.token.at[i];
        self.token.at[i] = kept == 'A' ? 'B' : 'A';
        assert_int_not_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
        self.token.at[i] = kept;
    }
    for (size_t len = 0; len < self.token.len; len++) {
        assert_int_not_equal(judge(&self, str_head(buf_view(&self.token), len), &strict), BAY_OK);
    }
    court_fini(&self);
}

/* What is remembered of a token is that its signature was good, for these keys and these bytes. */
static void a_token_seen_before_is_judged_anew(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
    jose_expected later = strict;
    later.now_ms += 60000;
    assert_int_equal(judge(&self, buf_view(&self.token), &later), BAY_ERR_DENIED);
    jose_expected other = strict;
    other.audience = STR("you");
    assert_int_equal(judge(&self, buf_view(&self.token), &other), BAY_ERR_DENIED);
    jose_keys *good = self.keys;
    self.keys = rig_keys(RIG_RSA_JWK);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    jose_keys_free(self.keys);
    self.keys = good;
    for (size_t i = 0; i < self.token.len; i++) { /* also in the signature's last bits */
        for (int bit = 0; bit < 8; bit++) {
            self.token.at[i] ^= (char)(1 << bit);
            assert_int_not_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
            self.token.at[i] ^= (char)(1 << bit);
        }
    }
    /* One that was refused is refused again. */
    rig_token(NULL, "{\"alg\":\"ES256\"}", GOOD, &self.token);
    buf_lit(&self.token, RIG_EC_SIGNATURE);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    /* More tokens than are remembered. */
    for (int i = 0; i < 600; i++) {
        char claims[160];
        snprintf(claims, sizeof(claims),
                 "{\"iss\":\"https://i.example\",\"sub\":\"u%d\",\"aud\":\"me\",\"exp\":1000010}",
                 i);
        assert_int_equal(judge_claims(&self, claims, &strict), BAY_OK);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
        char subject[16];
        snprintf(subject, sizeof(subject), "u%d", i);
        assert_true(str_eq(self.claims.subject, str_of(subject)));
    }
    court_fini(&self);
}

static void without_memory(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    rig_token(self.key, "{\"alg\":\"ES256\",\"kid\":\"a\\u0062\"}",
              WITH("\"exp\":1000010,\"scp\":[\"a\",\"b\"]"), &self.token);
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        jose_claims claims;
        arena_init(&memory, RIG_TEXT);
        bay_err err =
            jose_token_verify(self.keys, buf_view(&self.token), &strict, &memory, &claims, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        arena_fini(&memory);
        failing_memory_check();
    }
    court_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_token),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(claims_that_are_refused),
        cmocka_unit_test(tokens_that_are_believed),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(a_token_seen_before_is_judged_anew),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
