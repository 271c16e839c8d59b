/* DPoP proofs: a proof is good for one request, one token, one key, once. */
#include "jose_rig.h"

#include "auth/dpop.h"
#include "support/failing_memory.h"

#define NOW_S 1000000
#define NOW_MS (UINT64_C(1000) * NOW_S)
#define TOKEN "the.access.token"
#define THUMBPRINT "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U"
#define URL "https://gw.example/mcp"

static const bay_str urls[] = {STR_INIT(URL)};
static const dpop_expected expected = {
    .method = STR_INIT("POST"),
    .urls = urls,
    .url_count = 1,
    .thumbprint = STR_INIT(THUMBPRINT),
    .token = STR_INIT(TOKEN),
    .now_ms = NOW_MS,
};

typedef struct rig {
    EVP_PKEY *key;
    dpop_replays *replays;
    buf proof;
    char ath[48];
    bay_diag diag;
} rig;

static void rig_begin(rig *self)
{
    unsigned char digest[DIGEST_BYTES];
    *self = (rig){.key = rig_ec_key()};
    buf_init(&self->proof, RIG_TEXT);
    assert_int_equal(dpop_replays_new(1000, &self->replays), BAY_OK);
    assert_int_equal(digest_bytes(STR(TOKEN), digest), BAY_OK);
    buf text = {.at = self->ath, .cap = sizeof(self->ath) - 1, .max = sizeof(self->ath) - 1};
    rig_encode(&text, (bay_str){(const char *)digest, sizeof(digest)});
}

static void rig_end(rig *self)
{
    dpop_replays_free(self->replays);
    buf_fini(&self->proof);
    EVP_PKEY_free(self->key);
}

static bay_err check(rig *self, bay_str proof, const dpop_expected *against)
{
    self->diag = (bay_diag){.code = BAY_OK};
    bay_err err = dpop_check(proof, against, self->replays, &self->diag);
    assert_true(err == BAY_OK || self->diag.code == err);
    assert_null(strstr(self->diag.text, TOKEN));
    return err;
}

/* "$A" stands for the token's hash. */
static bay_err check_with(rig *self, const char *header, const char *claims,
                          const dpop_expected *against)
{
    char text[2048];
    const char *at = strstr(claims, "$A");
    if (at != NULL) {
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - claims), claims, self->ath, at + 2);
    } else {
        snprintf(text, sizeof(text), "%s", claims);
    }
    rig_token(self->key, header, text, &self->proof);
    return check(self, buf_view(&self->proof), against);
}

#define HEADER "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}"
#define CLAIMS(id, more)                                                                           \
    "{\"jti\":\"" id "\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000,\"ath\":\"$A\"" more \
    "}"

static void what_a_proof_must_say(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self);
    static const char *const claims[] = {
        "{}",
        "[]",
        "{\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000,\"ath\":\"$A\"}",
        CLAIMS("", ""),
        "{\"jti\":7,\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000,\"ath\":\"$A\"}",
#define BUT(members) "{\"jti\":\"j\"," members ",\"ath\":\"$A\"}"
        BUT("\"htm\":\"GET\",\"htu\":\"" URL "\",\"iat\":1000000"),
        BUT("\"htm\":\"post\",\"htu\":\"" URL "\",\"iat\":1000000"),
        BUT("\"htu\":\"" URL "\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://evil.example/mcp\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"http://gw.example/mcp\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://gw.example:8443/mcp\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://gw.example/mcp?x=1\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://gw.example/mcp#x\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://gw.example/mcp/\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://gw.example/MCP\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"https://a@gw.example/mcp\",\"iat\":1000000"),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\""),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":\"1000000\""),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":999699"),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000301"),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":-1"),
        BUT("\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1e400"),
        "{\"jti\":\"j\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000}",
        "{\"jti\":\"j\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000,\"ath\":\"x\"}",
        "{\"jti\":\"j\",\"htm\":\"POST\",\"htu\":\"" URL
        "\",\"iat\":1000000,\"ath\":\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\"}",
        CLAIMS("j", ",\"jti\":\"k\""),
    };
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        if (check_with(&self, HEADER, claims[i], &expected) != BAY_ERR_DENIED) {
            fail_msg("taken: %s", claims[i]);
        }
    }
    static const char *const good[] = {
        CLAIMS("a", ""),
        "{\"jti\":\"b\",\"htm\":\"POST\",\"htu\":\"HTTPS://GW.example:443/mcp\",\"iat\":1000000,"
        "\"ath\":\"$A\"}",
        "{\"jti\":\"c\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":999700,\"ath\":\"$A\"}",
        "{\"jti\":\"d\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000300,\"ath\":\"$A\"}",
        "{\"jti\":\"e\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000.5,\"ath\":\"$A\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (check_with(&self, HEADER, good[i], &expected) != BAY_OK) {
            fail_msg("%s: %s", good[i], self.diag.text);
        }
    }
    rig_end(&self);
}

static void what_a_header_must_say(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self);
#define OTHER_X "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
#define OTHER_Y "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}",
        "{\"typ\":\"JWT\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}",
        "{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"none\",\"jwk\":" RIG_EC_JWK "}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"HS256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"AAAA\"}}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"RS256\",\"jwk\":" RIG_EC_JWK "}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\"}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":\"x\"}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":{}}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_PRIVATE "}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
        "\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\",\"k\":\"\"}}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":{\"keys\":[" RIG_EC_JWK "]}}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_RSA_JWK "}",
        /* another key's, and this one's that did not sign */
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
        "\"" OTHER_X "\",\"y\":\"" OTHER_Y "\"}}",
        "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"crit\":[\"x\"],\"x\":1,\"jwk\":" RIG_EC_JWK "}",
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        bay_err err = check_with(&self, headers[i], CLAIMS("j", ""), &expected);
        if (err == BAY_OK && strstr(headers[i], "keys") != NULL) {
            continue; /* a set of one key is that key */
        }
        if (err != BAY_ERR_DENIED) {
            fail_msg("taken: %s", headers[i]);
        }
    }
    EVP_PKEY *other = EVP_EC_gen("P-256");
    EVP_PKEY *own = self.key;
    self.key = other; /* signs for the key that the token is bound to */
    assert_int_equal(check_with(&self, HEADER, CLAIMS("s", ""), &expected), BAY_ERR_DENIED);
    self.key = own;
    EVP_PKEY_free(other);
    assert_int_equal(check_with(&self, HEADER, CLAIMS("s", ""), &expected), BAY_OK);
    dpop_expected elsewhere = expected;
    elsewhere.thumbprint = STR("another-thumbprint-of-another-key-entirely-");
    assert_int_equal(check_with(&self, HEADER, CLAIMS("t", ""), &elsewhere), BAY_ERR_DENIED);
    rig_end(&self);
}

static void what_is_no_proof(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self);
    static const char *const texts[] = {"", ".", "..", "a.b.c", "a.b.c.d", "e30.e30.x"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(check(&self, str_of(texts[i]), &expected), BAY_ERR_DENIED);
    }
    assert_int_equal(check_with(&self, HEADER, CLAIMS("j", ""), &expected), BAY_OK);
    /* two in one field */
    buf both;
    buf_init(&both, RIG_TEXT);
    buf_str(&both, buf_view(&self.proof));
    buf_lit(&both, ", ");
    buf_str(&both, buf_view(&self.proof));
    assert_int_equal(check(&self, buf_view(&both), &expected), BAY_ERR_DENIED);
    buf_fini(&both);
    char *endless = malloc(DPOP_PROOF_BYTES + 2);
    memset(endless, 'a', DPOP_PROOF_BYTES + 1);
    assert_int_equal(check(&self, (bay_str){endless, DPOP_PROOF_BYTES + 1}, &expected),
                     BAY_ERR_DENIED);
    free(endless);
    /* an id of more than its bytes */
    static char claims[1024];
    snprintf(claims, sizeof(claims),
             "{\"jti\":\"%0*d\",\"htm\":\"POST\",\"htu\":\"" URL
             "\",\"iat\":1000000,\"ath\":\"$A\"}",
             DPOP_ID_BYTES + 1, 1);
    assert_int_equal(check_with(&self, HEADER, claims, &expected), BAY_ERR_DENIED);
    rig_end(&self);
}

static void a_proof_is_good_once(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self);
    assert_int_equal(check_with(&self, HEADER, CLAIMS("once", ""), &expected), BAY_OK);
    assert_int_equal(check(&self, buf_view(&self.proof), &expected), BAY_ERR_DUPLICATE);
    /* the same id in another proof of the same key */
    assert_int_equal(check_with(&self, HEADER, CLAIMS("once", ",\"x\":1"), &expected),
                     BAY_ERR_DUPLICATE);
    /* the same id of another key is its own */
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    rig_numbers numbers;
    char header[1200];
    char thumbprint[64];
    rig_numbers_read(rsa, &numbers);
    snprintf(header, sizeof(header), "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}", numbers.n,
             numbers.e);
    jose_keys *keys = rig_keys(header);
    buf text = {.at = thumbprint, .cap = sizeof(thumbprint), .max = sizeof(thumbprint)};
    assert_int_equal(jose_keys_thumbprint(keys, &text), BAY_OK);
    jose_keys_free(keys);
    snprintf(header, sizeof(header),
             "{\"typ\":\"dpop+jwt\",\"alg\":\"PS256\",\"jwk\":{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":"
             "\"%s\"}}",
             numbers.n, numbers.e);
    char claims[512];
    snprintf(claims, sizeof(claims),
             "{\"jti\":\"once\",\"htm\":\"POST\",\"htu\":\"" URL
             "\",\"iat\":1000000,\"ath\":\"%s\"}",
             self.ath);
    buf_clear(&self.proof);
    rig_encode(&self.proof, str_of(header));
    buf signature;
    buf_init(&signature, RIG_TEXT);
    rig_sign_rsa(rsa, "PS256", buf_view(&self.proof), str_of(claims), &signature);
    buf_char(&self.proof, '.');
    rig_encode(&self.proof, str_of(claims));
    buf_char(&self.proof, '.');
    buf_str(&self.proof, buf_view(&signature));
    buf_fini(&signature);
    dpop_expected other = expected;
    other.thumbprint = buf_view(&text);
    assert_int_equal(check(&self, buf_view(&self.proof), &other), BAY_OK);
    assert_int_equal(check(&self, buf_view(&self.proof), &other), BAY_ERR_DUPLICATE);
    EVP_PKEY_free(rsa);
    rig_end(&self);
}

static void proofs_are_remembered_as_long_as_they_are_taken(void **state)
{
    enum { MOST = 320 };
    (void)state;
    dpop_replays *self = NULL;
    unsigned char digest[DIGEST_BYTES];
    size_t refused = 0;
    assert_int_equal(dpop_replays_new(MOST, &self), BAY_OK);
    for (int i = 0; i < 4 * MOST; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d", i);
        assert_int_equal(digest_bytes(str_of(text), digest), BAY_OK);
        bay_err err = dpop_replays_take(self, digest, NOW_MS + DPOP_WINDOW_MS, NOW_MS);
        assert_true(err == BAY_OK || err == BAY_ERR_LIMIT);
        refused += err == BAY_ERR_LIMIT ? 1 : 0;
        if (err == BAY_OK) {
            assert_int_equal(
                dpop_replays_take(self, digest, NOW_MS + DPOP_WINDOW_MS, NOW_MS + 299000),
                BAY_ERR_DUPLICATE);
        }
    }
    assert_true(refused >= 3 * MOST); /* the first ones are all still there */
    uint64_t later = NOW_MS + DPOP_WINDOW_MS + 2000;
    for (int i = 0; i < MOST / 2; i++) {
        char text[32];
        snprintf(text, sizeof(text), "later %d", i);
        assert_int_equal(digest_bytes(str_of(text), digest), BAY_OK);
        assert_int_equal(dpop_replays_take(self, digest, later + DPOP_WINDOW_MS, later), BAY_OK);
    }
    dpop_replays_free(self);
    dpop_replays_free(NULL);
}

static void nonces(void **state)
{
    (void)state;
    static const char key[] = "0123456789abcdef0123456789abcdef";
    rig self;
    seal_ring *ring = NULL;
    seal_ring *other = NULL;
    char nonce[DPOP_NONCE_BYTES];
    char claims[512];
    rig_begin(&self);
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_new(&other), BAY_OK);
    assert_int_equal(seal_ring_add(ring, str_of(key)), BAY_OK);
    assert_int_equal(seal_ring_generate(other), BAY_OK);
    dpop_expected demanding = expected;
    demanding.ring = ring;
    assert_int_equal(check_with(&self, HEADER, CLAIMS("n", ""), &demanding), BAY_ERR_NOT_FOUND);
    assert_int_equal(check_with(&self, HEADER, CLAIMS("n", ",\"nonce\":\"made-up\""), &demanding),
                     BAY_ERR_NOT_FOUND);
    assert_int_equal(check_with(&self, HEADER, CLAIMS("n", ",\"nonce\":7"), &demanding),
                     BAY_ERR_NOT_FOUND);
    assert_int_equal(dpop_nonce_write(other, NOW_MS, nonce), BAY_OK);
    assert_false(dpop_nonce_is_good(ring, NOW_MS, str_of(nonce)));
    assert_int_equal(dpop_nonce_write(ring, NOW_MS, nonce), BAY_OK);
    snprintf(claims, sizeof(claims), CLAIMS("n", ",\"nonce\":\"%s\""), nonce);
    assert_int_equal(check_with(&self, HEADER, claims, &demanding), BAY_OK);
    /* this epoch and the next, and a key that was added since */
    uint64_t began = NOW_MS / DPOP_NONCE_MS * DPOP_NONCE_MS;
    assert_true(dpop_nonce_is_good(ring, began, str_of(nonce)));
    assert_true(dpop_nonce_is_good(ring, began + 2 * DPOP_NONCE_MS - 1, str_of(nonce)));
    assert_false(dpop_nonce_is_good(ring, began + 2 * DPOP_NONCE_MS, str_of(nonce)));
    assert_false(dpop_nonce_is_good(ring, began - 1, str_of(nonce)));
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    assert_true(dpop_nonce_is_good(ring, NOW_MS, str_of(nonce)));
    assert_false(dpop_nonce_is_good(NULL, NOW_MS, str_of(nonce)));
    seal_ring_free(ring);
    seal_ring_free(other);
    rig_end(&self);
}

static void without_memory(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self);
    char claims[512];
    snprintf(claims, sizeof(claims),
             "{\"jti\":\"m\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1000000,\"ath\":\"%s\"}",
             self.ath);
    rig_token(self.key, HEADER, claims, &self.proof);
    for (size_t at = 0; failing_memory_start(at); at++) {
        dpop_replays *replays = NULL;
        bay_err err = dpop_replays_new(16, &replays);
        err = err == BAY_OK ? dpop_check(buf_view(&self.proof), &expected, replays, NULL) : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        dpop_replays_free(replays);
        failing_memory_check();
    }
    rig_end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_proof_must_say),
        cmocka_unit_test(what_a_header_must_say),
        cmocka_unit_test(what_is_no_proof),
        cmocka_unit_test(a_proof_is_good_once),
        cmocka_unit_test(proofs_are_remembered_as_long_as_they_are_taken),
        cmocka_unit_test(nonces),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
