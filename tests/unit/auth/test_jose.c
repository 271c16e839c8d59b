/* Keys and signatures: what is refused, whoever signed it, and the vectors of RFC 7515. */
#include "jose_rig.h"

#include "support/failing_memory.h"

#define ES256 "eyJhbGciOiJFUzI1NiJ9"
#define RS256 "eyJhbGciOiJSUzI1NiJ9"

/* --- keys ------------------------------------------------------------------------------------- */

static void sets_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[],\"keys\":[]}",
        "{\"keys\":[{\"kty\":\"EC\",\"kty\":\"RSA\"}]}",
        "{\"keys\":[]",
        "{\"keys\":[]} x",
        "{\"kty\":1}",
        "{\"keys\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        jose_keys *keys = NULL;
        bay_diag diag = {.code = BAY_OK};
        if (jose_keys_new(str_of(texts[i]), &keys, &diag) != BAY_ERR_SYNTAX) {
            fail_msg("taken for a key set: %s", texts[i]);
        }
        assert_null(keys);
        assert_int_equal(diag.code, BAY_ERR_SYNTAX);
    }
    buf long_text;
    buf_init(&long_text, RIG_TEXT);
    buf_lit(&long_text, "{\"keys\":[]");
    while (long_text.len <= JOSE_KEYSET_BYTES) {
        buf_char(&long_text, ' ');
    }
    buf_char(&long_text, '}');
    jose_keys *keys = NULL;
    assert_int_equal(jose_keys_new(buf_view(&long_text), &keys, NULL), BAY_ERR_LIMIT);
    buf_fini(&long_text);
}

static void keys_that_do_not_count(void **state)
{
    (void)state;
#define EC_BUT(more)                                                                               \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"," more "}"
    static const char *const texts[] = {
        "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75\"}",
        /* Ed25519: short, long, for encryption, by another name, on another curve */
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_"
        "7TyWQHOg7hcvPapiMlrwIaaPcHUQ\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA" RIG_ED_X "\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" RIG_ED_X "\",\"use\":\"enc\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"" RIG_ED_X "\"}",
        "{\"kty\":\"OKP\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"Ed25519\",\"x\":\"" RIG_ED_X "\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" RIG_ED_X "\",\"alg\":\"ES256\"}",
        "{\"kty\":\"ec\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\"}",
        /* off the curve: y of another point */
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_X "\"}",
        /* the point at infinity has no such form */
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
        /* short, long, padded, other alphabet, loose bits */
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83O\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "=\",\"y\":\"" RIG_EC_Y "\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEV\","
        "\"y\":\"" RIG_EC_Y "\"}",
        /* a private key in a public set */
        RIG_EC_PRIVATE,
        EC_BUT("\"use\":\"enc\""),
        EC_BUT("\"use\":1"),
        EC_BUT("\"key_ops\":[\"sign\"]"),
        EC_BUT("\"key_ops\":[]"),
        EC_BUT("\"key_ops\":\"verify\""),
        EC_BUT("\"alg\":\"RS256\""),
        EC_BUT("\"alg\":\"HS256\""),
        EC_BUT("\"alg\":\"none\""),
        EC_BUT("\"kid\":1"),
        EC_BUT("\"kid\":\"a\\u0000b\""),
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\"}",
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQ\"}",   /* 1 */
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAA\"}", /* even */
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AAEAAQ\"}",
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAAAAE\"}",
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAB\",\"alg\":\"ES256\"}",
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAB\",\"alg\":\"RSA-OAEP\"}",
        "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAB\",\"oth\":[]}",
        /* 1,024 bits, and 2,040 */
        "{\"kty\":\"RSA\",\"n\":\"vrjOfz9Ccdgx5nQudyhdoR17V-IubWMeOZCwX_jj0hgAsz2J_pqYW08PLbK_"
        "PdiVGK"
        "PrqzmDIsLI7sA25VEnHU1uCLNwBuUiCO11_-7dYbsr4iJmG0Qu2j8DsVyT1azpJC_"
        "NG84Ty5KKthuCaPod7iI7w0LK9"
        "orSMhBEwwZDCxTWq4aYWAchc8t-emd9qOvWtVMDC2BXksRngh6X5bUYLy6AyHKvj-nUy1wgzjYQDwHMTplCoLtU-o-"
        "8"
        "SNnZ1tmRoGE9uJkBLdh5gFENabWnU5m1ZqZPdwS-qo-meMvVfJb6jJVWRpl2SUtCnYG2C32qvbWbjZ_jBPD5eunqsI"
        "vQ1\",\"e\":\"AQAB\"}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        jose_keys *keys = rig_keys(texts[i]);
        if (jose_keys_count(keys) != 0) {
            fail_msg("counts: %s", texts[i]);
        }
        jose_keys_free(keys);
    }
    /* … and they do not keep the good ones beside them from counting. */
    jose_keys *keys =
        rig_keys("{\"keys\":[1,null,{\"kty\":\"oct\"}," RIG_EC_JWK "," RIG_RSA_JWK "]}");
    assert_int_equal(jose_keys_count(keys), 2);
    jose_keys_free(keys);
    jose_keys_free(NULL);
}

static void too_many_keys(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, RIG_TEXT);
    for (int more = 0; more < 2; more++) {
        buf_clear(&text);
        buf_lit(&text, "{\"keys\":[");
        for (int i = 0; i < JOSE_KEYS + more; i++) {
            buf_str(&text, i > 0 ? STR(",") : STR(""));
            buf_lit(&text, RIG_EC_JWK);
        }
        buf_lit(&text, "]}");
        jose_keys *keys = NULL;
        assert_int_equal(jose_keys_new(buf_view(&text), &keys, NULL),
                         more ? BAY_ERR_LIMIT : BAY_OK);
        jose_keys_free(keys);
    }
    buf_fini(&text);
}

static void expect_no_private_key(const char *text, bay_err err)
{
    jose_key *key = NULL;
    bay_diag diag = {.code = BAY_OK};
    bay_err got = jose_key_new(str_of(text), STR(""), &key, &diag);
    if (got != err) {
        fail_msg("%d instead of %d: %.60s", got, err, text);
    }
    assert_int_equal(diag.code, err);
    assert_null(strstr(diag.text, RIG_EC_D));
}

static void private_keys_that_are_none(void **state)
{
    (void)state;
    expect_no_private_key("", BAY_ERR_INVALID);
    expect_no_private_key("x", BAY_ERR_SYNTAX);
    expect_no_private_key("{", BAY_ERR_SYNTAX);
    expect_no_private_key("{\"kty\":\"EC\",\"d\":\"" RIG_EC_D "\",\"d\":\"" RIG_EC_D "\"}",
                          BAY_ERR_SYNTAX);
    expect_no_private_key(RIG_EC_JWK, BAY_ERR_INVALID);
    expect_no_private_key(RIG_RSA_JWK, BAY_ERR_INVALID);
    expect_no_private_key("{\"kty\":\"oct\",\"k\":\"AAAA\",\"d\":\"AAAA\"}", BAY_ERR_INVALID);
    /* halves of two keys */
    expect_no_private_key("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
                          "\",\"y\":\"" RIG_EC_Y "\",\"d\":\"" RIG_EC_X "\"}",
                          BAY_ERR_INVALID);
    expect_no_private_key("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
                          "\",\"y\":\"" RIG_EC_Y "\",\"d\":\"" RIG_EC_D "\",\"use\":\"enc\"}",
                          BAY_ERR_INVALID);
    expect_no_private_key("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" RIG_ED_X
                          "\",\"d\":\"" RIG_EC_D "\"}",
                          BAY_ERR_INVALID);
    char *pem = rig_pem(EVP_EC_gen("secp256k1"));
    expect_no_private_key(pem, BAY_ERR_INVALID);
    free(pem);
    pem = rig_pem(EVP_RSA_gen(1024));
    expect_no_private_key(pem, BAY_ERR_INVALID);
    free(pem);
    pem = rig_pem(EVP_PKEY_Q_keygen(NULL, NULL, "ED448"));
    expect_no_private_key(pem, BAY_ERR_INVALID);
    free(pem);
    char *endless = malloc((64 << 10) + 2);
    memset(endless, 'A', (64 << 10) + 1);
    endless[(64 << 10) + 1] = '\0';
    expect_no_private_key(endless, BAY_ERR_INVALID);
    free(endless);
    jose_key *key = NULL;
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR("a\nb"), &key, NULL), BAY_ERR_INVALID);
    jose_key_free(NULL);
}

static void ids_of_keys(void **state)
{
    (void)state;
    jose_key *key = NULL;
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR(""), &key, NULL), BAY_OK);
    assert_int_equal(jose_key_id(key).len, 43); /* RFC 7638: a SHA-256 */
    bay_str thumbprint = jose_key_id(key);
    assert_memory_equal(thumbprint.at, "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U", 43);
    jose_key_free(key);
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR("mine"), &key, NULL), BAY_OK);
    assert_true(str_eq(jose_key_id(key), STR("mine")));
    buf text;
    buf_init(&text, RIG_TEXT);
    assert_int_equal(jose_key_public(key, &text), BAY_OK);
    buf_char(&text, '\0');
    assert_null(strstr(text.at, RIG_EC_D));
    assert_string_equal(text.at, "{\"keys\":[{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"" RIG_EC_X
                                 "\",\"y\":\"" RIG_EC_Y
                                 "\",\"use\":\"sig\",\"alg\":\"ES256\",\"kid\":\"mine\"}]}");
    jose_key_free(key);
    assert_int_equal(
        jose_key_new(STR("{\"kid\":\"own\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
                         "\",\"y\":\"" RIG_EC_Y "\",\"d\":\"" RIG_EC_D "\"}"),
                     STR(""), &key, NULL),
        BAY_OK);
    assert_true(str_eq(jose_key_id(key), STR("own")));
    jose_key_free(key);
    buf_fini(&text);
}

/* --- signatures ------------------------------------------------------------------------------- */

static void headers_that_are_refused(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{}",
        "[]",
        "\"ES256\"",
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":null}",
        "{\"alg\":[\"ES256\"]}",
        "{\"alg\":\"es256\"}",
        "{\"alg\":\"ES256 \"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"ES384\"}",
        "{\"alg\":\"ES256K\"}",
        "{\"alg\":\"PS256\"}",
        "{\"alg\":\"EdDSA\"}",
        "{\"alg\":\"ES256\",\"alg\":\"ES256\"}",
        "{\"alg\":\"none\",\"alg\":\"ES256\"}",
        "{\"alg\":\"ES256\",\"kid\":\"a\",\"kid\":\"b\"}",
        "{\"alg\":\"ES256\",\"x\":{\"a\":1,\"a\":2}}",
        "{\"alg\":\"ES256\",\"crit\":[\"exp\"],\"exp\":1}",
        "{\"alg\":\"ES256\",\"crit\":[]}",
        "{\"alg\":\"ES256\",\"b64\":false}",
        "{\"alg\":\"ES256\",\"b64\":false,\"crit\":[\"b64\"]}",
        "{\"alg\":\"ES256\",\"kid\":1}",
        "{\"alg\":\"ES256\",\"kid\":\"\\ud800\"}",
        "{\"alg\":\"ES256\",\"kid\":\"another\"}",
        "{\"alg\":\"ES256\"",
        "{\"alg\":\"ES256\"} ",
        "{\"alg\":\"ES256\"}x",
        "{\"alg\":\"ES256\",\"x\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}",
    };
    EVP_PKEY *genuine = rig_ec_key();
    jose_keys *keys =
        rig_keys("{\"keys\":[{\"kid\":\"me\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
                 "\",\"y\":\"" RIG_EC_Y "\"}]}");
    buf header;
    buf input;
    buf signature;
    buf_init(&header, RIG_TEXT);
    buf_init(&input, RIG_TEXT);
    buf_init(&signature, RIG_TEXT);
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        buf_clear(&header);
        buf_clear(&input);
        buf_clear(&signature);
        rig_encode(&header, str_of(headers[i]));
        buf_str(&input, buf_view(&header));
        buf_lit(&input, ".YWJj");
        rig_sign_ec(genuine, buf_view(&input), &signature);
        bay_err err = jose_verify(keys, buf_view(&header), STR("abc"), buf_view(&signature));
        bool is_padded = strcmp(headers[i], "{\"alg\":\"ES256\"} ") == 0; /* JSON may */
        if (err != (is_padded ? BAY_OK : BAY_ERR_DENIED)) {
            fail_msg("%d: %s", err, headers[i]);
        }
    }
    buf_fini(&signature);
    buf_fini(&input);
    buf_fini(&header);
    jose_keys_free(keys);
    EVP_PKEY_free(genuine);
}

/* CVE-2015-9235 and its kind: the public key as an HMAC's secret. */
static void a_public_key_is_no_secret(void **state)
{
    (void)state;
    static const char header[] = "{\"alg\":\"HS256\"}";
    const bay_str secrets[] = {STR(RIG_RSA_JWK), STR(RIG_RSA_N), STR(""), STR(RIG_EC_JWK)};
    jose_keys *keys = rig_keys("{\"keys\":[" RIG_EC_JWK "," RIG_RSA_JWK "]}");
    for (size_t i = 0; i < 4; i++) {
        unsigned char mac[32];
        buf input;
        buf encoded;
        buf signature;
        buf_init(&input, RIG_TEXT);
        buf_init(&encoded, RIG_TEXT);
        buf_init(&signature, RIG_TEXT);
        rig_encode(&encoded, str_of(header));
        buf_str(&input, buf_view(&encoded));
        buf_lit(&input, ".YWJj");
        assert_non_null(HMAC(EVP_sha256(), secrets[i].at, (int)secrets[i].len,
                             (const unsigned char *)input.at, input.len, mac, NULL));
        rig_encode(&signature, (bay_str){(const char *)mac, 32});
        assert_int_equal(jose_verify(keys, buf_view(&encoded), STR("abc"), buf_view(&signature)),
                         BAY_ERR_DENIED);
        /* … and under a header that names the key's own algorithm. */
        assert_int_equal(jose_verify(keys, STR(RS256), STR("abc"), buf_view(&signature)),
                         BAY_ERR_DENIED);
        buf_fini(&signature);
        buf_fini(&encoded);
        buf_fini(&input);
    }
    jose_keys_free(keys);
}

static void signatures_that_are_refused(void **state)
{
    (void)state;
    jose_keys *keys = rig_keys("{\"keys\":[" RIG_EC_JWK "," RIG_RSA_JWK "]}");
    static const char *const texts[] = {
        "",
        "AA",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AA",
        RIG_EC_SIGNATURE "=",
        RIG_EC_SIGNATURE "AA",
        "AA" RIG_EC_SIGNATURE,
        /* CVE-2022-21449: r and s are zero */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        /* unused bits that are not zero: another text for the same bytes */
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1R",
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6+Xx+F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3+Kg6NU1Q",
        RIG_RSA_SIGNATURE,
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(jose_verify(keys, STR(ES256), STR(RIG_PAYLOAD), str_of(texts[i])),
                         BAY_ERR_DENIED);
    }
    assert_int_equal(jose_verify(keys, STR(RS256), STR(RIG_PAYLOAD), STR(RIG_EC_SIGNATURE)),
                     BAY_ERR_DENIED);
    assert_int_equal(jose_verify(keys, STR(ES256 "="), STR(RIG_PAYLOAD), STR(RIG_EC_SIGNATURE)),
                     BAY_ERR_DENIED);
    /* Every bit of payload and signature counts. */
    char payload[] = RIG_PAYLOAD;
    for (size_t i = 0; i < sizeof(payload) - 1; i++) {
        payload[i] ^= 1;
        assert_int_equal(jose_verify(keys, STR(ES256), str_of(payload), STR(RIG_EC_SIGNATURE)),
                         BAY_ERR_DENIED);
        payload[i] ^= 1;
    }
    char signature[] = RIG_EC_SIGNATURE;
    for (size_t i = 0; i < sizeof(signature) - 2; i++) {
        char kept = signature[i];
        signature[i] = kept == 'A' ? 'B' : 'A';
        assert_int_equal(jose_verify(keys, STR(ES256), STR(RIG_PAYLOAD), str_of(signature)),
                         BAY_ERR_DENIED);
        signature[i] = kept;
    }
    assert_int_equal(jose_verify(keys, STR(ES256), str_of(payload), str_of(signature)), BAY_OK);
    jose_keys_free(keys);
    keys = rig_keys("{\"keys\":[]}");
    assert_int_equal(jose_verify(keys, STR(ES256), STR(RIG_PAYLOAD), STR(RIG_EC_SIGNATURE)),
                     BAY_ERR_DENIED);
    jose_keys_free(keys);
}

static void the_vectors_of_rfc_7515(void **state)
{
    (void)state;
    jose_keys *ec = rig_keys(RIG_EC_JWK);
    jose_keys *rsa = rig_keys(RIG_RSA_JWK);
    assert_int_equal(jose_verify(ec, STR(ES256), STR(RIG_PAYLOAD), STR(RIG_EC_SIGNATURE)), BAY_OK);
    assert_int_equal(jose_verify(rsa, STR(RS256), STR(RIG_PAYLOAD), STR(RIG_RSA_SIGNATURE)),
                     BAY_OK);
    assert_int_equal(jose_verify(rsa, STR(ES256), STR(RIG_PAYLOAD), STR(RIG_EC_SIGNATURE)),
                     BAY_ERR_DENIED);
    jose_keys_free(ec);
    jose_keys_free(rsa);
}

static void sign_and_verify(const char *text)
{
    jose_key *key = NULL;
    buf header;
    buf signature;
    buf public;
    buf_init(&header, RIG_TEXT);
    buf_init(&signature, RIG_TEXT);
    buf_init(&public, RIG_TEXT);
    assert_int_equal(jose_key_new(str_of(text), STR("k \"1\""), &key, NULL), BAY_OK);
    assert_int_equal(jose_key_public(key, &public), BAY_OK);
    jose_keys *keys = NULL;
    assert_int_equal(jose_keys_new(buf_view(&public), &keys, NULL), BAY_OK);
    assert_int_equal(jose_keys_count(keys), 1);
    assert_int_equal(jose_sign(key, STR("what"), STR("JOSE"), STR("https://a.example/keys"),
                               &header, &signature),
                     BAY_OK);
    assert_int_equal(jose_verify(keys, buf_view(&header), STR("what"), buf_view(&signature)),
                     BAY_OK);
    assert_int_equal(jose_verify(keys, buf_view(&header), STR("else"), buf_view(&signature)),
                     BAY_ERR_DENIED);
    jose_keys_free(keys);
    keys = rig_keys(RIG_EC_JWK);
    jose_keys *other = rig_keys(RIG_RSA_JWK);
    bool is_ec = strstr(text, RIG_EC_D) != NULL; /* that key without its id */
    assert_int_equal(jose_verify(keys, buf_view(&header), STR("what"), buf_view(&signature)),
                     is_ec ? BAY_OK : BAY_ERR_DENIED);
    assert_int_equal(jose_verify(other, buf_view(&header), STR("what"), buf_view(&signature)),
                     BAY_ERR_DENIED);
    jose_keys_free(keys);
    jose_keys_free(other);
    jose_key_free(key);
    buf_fini(&header);
    buf_fini(&signature);
    buf_fini(&public);
}

static void what_is_signed_is_verified(void **state)
{
    (void)state;
    sign_and_verify(RIG_EC_PRIVATE);
    char *pem = rig_pem(EVP_EC_gen("P-256"));
    sign_and_verify(pem);
    free(pem);
    pem = rig_pem(EVP_RSA_gen(2048));
    sign_and_verify(pem);
    free(pem);
    pem = rig_pem(EVP_EC_gen("P-384"));
    sign_and_verify(pem);
    free(pem);
    pem = rig_pem(EVP_EC_gen("P-521"));
    sign_and_verify(pem);
    free(pem);
    pem = rig_pem(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
    sign_and_verify(pem);
    free(pem);
}

static void the_vector_of_rfc_8037(void **state)
{
    (void)state;
    jose_keys *keys = rig_keys("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" RIG_ED_X "\"}");
    buf thumbprint;
    buf_init(&thumbprint, RIG_TEXT);
    assert_int_equal(jose_verify(keys, STR("eyJhbGciOiJFZERTQSJ9"),
                                 STR("Example of Ed25519 signing"), STR(RIG_ED_SIGNATURE)),
                     BAY_OK);
    assert_int_equal(jose_verify(keys, STR("eyJhbGciOiJFZERTQSJ9"),
                                 STR("Example of Ed25519 signinh"), STR(RIG_ED_SIGNATURE)),
                     BAY_ERR_DENIED);
    assert_int_equal(jose_keys_thumbprint(keys, &thumbprint), BAY_OK);
    assert_true(str_eq(buf_view(&thumbprint), STR("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")));
    buf_fini(&thumbprint);
    jose_keys_free(keys);
}

/* One RSA key and six algorithms: each signature is good under its own name alone, and a key that
 * names one algorithm is for that one. */
static void a_signature_has_one_algorithm(void **state)
{
    static const char *const names[] = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"};
    (void)state;
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    rig_numbers numbers;
    rig_numbers_read(rsa, &numbers);
    for (size_t by = 0; by < ARRAY_LEN(names); by++) {
        for (size_t as = 0; as < ARRAY_LEN(names); as++) {
            for (size_t pinned = 0; pinned <= ARRAY_LEN(names); pinned++) {
                char text[1024];
                bool is_pinned = pinned < ARRAY_LEN(names);
                snprintf(text, sizeof(text), "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s%s%s}",
                         numbers.n, numbers.e, is_pinned ? ",\"alg\":\"" : "",
                         is_pinned ? names[pinned] : "", is_pinned ? "\"" : "");
                jose_keys *keys = rig_keys(text);
                buf header, signature;
                buf_init(&header, RIG_TEXT);
                buf_init(&signature, RIG_TEXT);
                snprintf(text, sizeof(text), "{\"alg\":\"%s\"}", names[as]);
                rig_encode(&header, str_of(text));
                rig_sign_rsa(rsa, names[by], buf_view(&header), STR("what"), &signature);
                bool is_good = by == as && (!is_pinned || pinned == as);
                assert_int_equal(
                    jose_verify(keys, buf_view(&header), STR("what"), buf_view(&signature)),
                    is_good ? BAY_OK : BAY_ERR_DENIED);
                buf_fini(&header);
                buf_fini(&signature);
                jose_keys_free(keys);
            }
        }
    }
    EVP_PKEY_free(rsa);
}

static void without_memory(void **state)
{
    (void)state;
    for (int is_single = 0; is_single < 2; is_single++) {
        for (size_t at = 0; is_single ? failing_memory_start_single(at) : failing_memory_start(at);
             at++) {
            jose_key *key = NULL;
            jose_keys *keys = NULL;
            buf header;
            buf signature;
            buf_init(&header, RIG_TEXT);
            buf_init(&signature, RIG_TEXT);
            bay_err err = jose_key_new(STR(RIG_EC_PRIVATE), STR(""), &key, NULL);
            if (err == BAY_OK) {
                err = jose_sign(key, STR("what"), STR("JOSE"), STR(""), &header, &signature);
            }
            if (err == BAY_OK) {
                err = jose_keys_new(STR("{\"keys\":[" RIG_EC_JWK "]}"), &keys, NULL);
            }
            if (err == BAY_OK) {
                assert_int_equal(jose_keys_count(keys),
                                 1); /* none is left out for want of memory */
                err = jose_verify(keys, buf_view(&header), STR("what"), buf_view(&signature));
            }
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            jose_keys_free(keys);
            jose_key_free(key);
            buf_fini(&header);
            buf_fini(&signature);
            failing_memory_check();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_that_are_none),
        cmocka_unit_test(keys_that_do_not_count),
        cmocka_unit_test(too_many_keys),
        cmocka_unit_test(private_keys_that_are_none),
        cmocka_unit_test(ids_of_keys),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(a_public_key_is_no_secret),
        cmocka_unit_test(signatures_that_are_refused),
        cmocka_unit_test(the_vectors_of_rfc_7515),
        cmocka_unit_test(what_is_signed_is_verified),
        cmocka_unit_test(the_vector_of_rfc_8037),
        cmocka_unit_test(a_signature_has_one_algorithm),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
