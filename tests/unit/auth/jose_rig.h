/* Keys made here, and signatures over whatever a test writes: what a forger with a genuine key, or
 * without one, could send. */
#ifndef TESTS_JOSE_RIG_H
#define TESTS_JOSE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

#include "auth/jose.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"

enum { RIG_TEXT = 1 << 20 };

/* RFC 7515, appendices A.2 and A.3. */
#define RIG_EC_X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define RIG_EC_Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define RIG_EC_D "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
#define RIG_RSA_N                                                                                  \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4" \
    "d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re" \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX" \
    "FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
#define RIG_RSA_SIGNATURE                                                                          \
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5" \
    "jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb" \
    "1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QO" \
    "YEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define RIG_EC_SIGNATURE                                                                           \
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
#define RIG_PAYLOAD                                                                                \
    "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}"
#define RIG_EC_JWK                                                                                 \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}"
#define RIG_EC_PRIVATE                                                                             \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y                   \
    "\",\"d\":\"" RIG_EC_D "\"}"
/* RFC 8037, appendix A. */
#define RIG_ED_X "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define RIG_ED_SIGNATURE                                                                           \
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
#define RIG_RSA_JWK "{\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N "\",\"e\":\"AQAB\"}"

static inline void rig_encode(buf *out, bay_str bytes)
{
    base64_encode(out, bytes, BASE64_URL);
    assert_int_equal(out->err, BAY_OK);
}

/* The private key of appendix A.3, as OpenSSL has it. */
static inline EVP_PKEY *rig_ec_key(void)
{
    static const unsigned char before[] = {0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20};
    static const unsigned char behind[] = {0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86,
                                           0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
    buf der; /* RFC 5915: ECPrivateKey with its curve */
    buf_init(&der, RIG_TEXT);
    buf_append(&der, before, sizeof(before));
    assert_int_equal(base64_decode(&der, STR(RIG_EC_D), BASE64_URL), BAY_OK);
    buf_append(&der, behind, sizeof(behind));
    const unsigned char *at = (const unsigned char *)der.at;
    EVP_PKEY *made = d2i_PrivateKey(EVP_PKEY_EC, NULL, &at, (long)der.len);
    buf_fini(&der);
    assert_non_null(made);
    return made;
}

/* r and s, 32 bytes each, in base64url, appended. */
static inline void rig_sign_ec(EVP_PKEY *key, bay_str input, buf *out)
{
    unsigned char der[128];
    size_t len = sizeof(der);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, der, &len, (const unsigned char *)input.at, input.len),
                     1);
    EVP_MD_CTX_free(context);
    const unsigned char *at = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)len);
    assert_non_null(pair);
    unsigned char raw[64];
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32), 32);
    ECDSA_SIG_free(pair);
    rig_encode(out, (bay_str){(const char *)raw, 64});
}

/* The public numbers of an RSA key, base64url. */
typedef struct rig_numbers {
    char n[700];
    char e[16];
} rig_numbers;

static inline void rig_number(EVP_PKEY *key, const char *name, char *out, size_t cap)
{
    BIGNUM *number = NULL;
    unsigned char bytes[1024];
    buf text = {.at = out, .cap = cap - 1, .max = cap - 1};
    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
    int len = BN_bn2bin(number, bytes);
    BN_free(number);
    rig_encode(&text, (bay_str){(const char *)bytes, (size_t)len});
    out[text.len] = '\0';
}

static inline void rig_numbers_read(EVP_PKEY *key, rig_numbers *out)
{
    rig_number(key, "n", out->n, sizeof(out->n));
    rig_number(key, "e", out->e, sizeof(out->e));
}

/* "RS256" … "PS512" over "header.payload", where `payload` is not encoded yet. */
static inline void rig_sign_rsa(EVP_PKEY *key, const char *algorithm, bay_str header,
                                bay_str payload, buf *out)
{
    unsigned char made[1024];
    size_t len = sizeof(made);
    EVP_PKEY_CTX *padding = NULL;
    const EVP_MD *digest = strstr(algorithm, "256") != NULL   ? EVP_sha256()
                           : strstr(algorithm, "384") != NULL ? EVP_sha384()
                                                              : EVP_sha512();
    buf input;
    buf_init(&input, RIG_TEXT);
    buf_str(&input, header);
    buf_char(&input, '.');
    rig_encode(&input, payload);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(context, &padding, digest, NULL, key), 1);
    if (algorithm[0] == 'P') {
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, RSA_PSS_SALTLEN_DIGEST), 1);
    }
    assert_int_equal(
        EVP_DigestSign(context, made, &len, (const unsigned char *)input.at, input.len), 1);
    EVP_MD_CTX_free(context);
    buf_fini(&input);
    rig_encode(out, (bay_str){(const char *)made, len});
}

/* "HEADER.PAYLOAD.SIGNATURE" over what the test writes; `key` NULL: an empty signature. */
static inline void rig_token(EVP_PKEY *key, const char *header, const char *payload, buf *out)
{
    buf_clear(out);
    rig_encode(out, str_of(header));
    buf_char(out, '.');
    rig_encode(out, str_of(payload));
    buf signature;
    buf_init(&signature, RIG_TEXT);
    if (key != NULL) {
        rig_sign_ec(key, buf_view(out), &signature);
    }
    buf_char(out, '.');
    buf_str(out, buf_view(&signature));
    buf_fini(&signature);
}

static inline jose_keys *rig_keys(const char *text)
{
    jose_keys *keys = NULL;
    bay_diag diag = {.text = ""};
    if (jose_keys_new(str_of(text), &keys, &diag) != BAY_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    return keys;
}

/* A PEM of a new key of that kind, for free(). */
static inline char *rig_pem(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    char *at = NULL;
    long len = BIO_get_mem_data(bio, &at);
    char *copy = calloc(1, (size_t)len + 1); /* it ends in no NUL */
    assert_non_null(copy);
    memcpy(copy, at, (size_t)len);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return copy;
}

#endif
