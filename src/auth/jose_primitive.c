/* The one file that knows OpenSSL's keys: made of a JWK's members or of PEM, checked, signed and
 * verified with. Their memory is OpenSSL's. */
#include "auth/jose_primitive.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"

enum {
    RSA_BYTES_MOST = JOSE_RSA_BITS_MOST / 8,
    EC_SIGNATURE_BYTES = 2 * JOSE_EC_BYTES,
    POINT_BYTES = 1 + 2 * JOSE_EC_BYTES, /* uncompressed */
    FIRST_BYTES = (RSA_BYTES_MOST + 2) / 3 * 4,
    SECOND_BYTES = 64,
};

struct jose_raw {
    EVP_PKEY *key;
    jose_algorithm algorithm;
    buf first;  /* x or n, base64url */
    buf second; /* y or e */
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* Is it a key of that kind and a size we take? */
static bay_err check_key(EVP_PKEY *key, jose_algorithm algorithm, bool is_private)
{
    char group[32] = "";
    size_t len = 0;
    if (algorithm == JOSE_ES256) {
        if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
            EVP_PKEY_get_group_name(key, group, sizeof(group), &len) != 1 ||
            strcmp(group, "prime256v1") != 0) {
            return BAY_ERR_INVALID;
        }
    } else if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA ||
               EVP_PKEY_get_bits(key) < JOSE_RSA_BITS_LEAST ||
               EVP_PKEY_get_bits(key) > JOSE_RSA_BITS_MOST) {
        return BAY_ERR_INVALID;
    }
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    if (context == NULL) {
        return BAY_ERR_NOMEM;
    }
    bool is_sound = EVP_PKEY_public_check_quick(context) == 1 &&
                    (!is_private || EVP_PKEY_pairwise_check(context) == 1);
    EVP_PKEY_CTX_free(context);
    return is_sound ? BAY_OK : BAY_ERR_INVALID;
}

static void put_number(buf *out, EVP_PKEY *key, const char *name, int width)
{
    unsigned char bytes[RSA_BYTES_MOST];
    BIGNUM *number = NULL;
    int len = -1;
    if (EVP_PKEY_get_bn_param(key, name, &number) == 1 && BN_num_bytes(number) <= RSA_BYTES_MOST) {
        len = BN_bn2binpad(number, bytes, width > 0 ? width : BN_num_bytes(number));
    }
    BN_free(number);
    if (len > 0) {
        base64_encode(out, (bay_str){(char *)bytes, (size_t)len}, BASE64_URL);
    }
}

/* Takes `key`. */
static bay_err raw_of(EVP_PKEY *key, jose_algorithm algorithm, jose_raw **out)
{
    jose_raw *self = mem_alloc(sizeof(*self));
    if (self == NULL) {
        EVP_PKEY_free(key);
        return BAY_ERR_NOMEM;
    }
    *self = (jose_raw){.key = key, .algorithm = algorithm};
    buf_init(&self->first, FIRST_BYTES);
    buf_init(&self->second, SECOND_BYTES);
    if (algorithm == JOSE_ES256) {
        put_number(&self->first, key, OSSL_PKEY_PARAM_EC_PUB_X, JOSE_EC_BYTES);
        put_number(&self->second, key, OSSL_PKEY_PARAM_EC_PUB_Y, JOSE_EC_BYTES);
    } else {
        put_number(&self->first, key, OSSL_PKEY_PARAM_RSA_N, 0);
        put_number(&self->second, key, OSSL_PKEY_PARAM_RSA_E, 0);
    }
    if (self->first.len == 0 || self->second.len == 0) {
        jose_raw_free(self);
        return BAY_ERR_NOMEM;
    }
    *out = self;
    return BAY_OK;
}

/* What OpenSSL calls the members of an RSA key. */
static const char *number_name(const char *member)
{
    static const char *const names[][2] = {
        {"n", OSSL_PKEY_PARAM_RSA_N},          {"e", OSSL_PKEY_PARAM_RSA_E},
        {"d", OSSL_PKEY_PARAM_RSA_D},          {"p", OSSL_PKEY_PARAM_RSA_FACTOR1},
        {"q", OSSL_PKEY_PARAM_RSA_FACTOR2},    {"dp", OSSL_PKEY_PARAM_RSA_EXPONENT1},
        {"dq", OSSL_PKEY_PARAM_RSA_EXPONENT2}, {"qi", OSSL_PKEY_PARAM_RSA_COEFFICIENT1},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(member, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/* The members on their way into a key. */
typedef struct parts {
    OSSL_PARAM_BLD *builder;
    BIGNUM *numbers[JOSE_MEMBERS]; /* the builder reads them at its end */
    size_t count;
    unsigned char point[POINT_BYTES];
    bool has_private;
} parts;

static bay_err add_member(parts *self, jose_algorithm algorithm, const jose_member *member)
{
    buf bytes;
    buf_init(&bytes, RSA_BYTES_MOST + 1);
    bay_err err = base64_decode(&bytes, member->value, BASE64_URL);
    bool is_secret = strcmp(member->name, "d") == 0;
    self->has_private = self->has_private || is_secret;
    if (err == BAY_OK && algorithm == JOSE_ES256 && !is_secret) {
        size_t at = strcmp(member->name, "x") == 0 ? 1 : 1 + JOSE_EC_BYTES;
        err = bytes.len == JOSE_EC_BYTES ? BAY_OK : BAY_ERR_INVALID;
        memcpy(self->point + at, bytes.at, err == BAY_OK ? JOSE_EC_BYTES : 0);
    } else if (err == BAY_OK) {
        const char *name =
            algorithm == JOSE_ES256 ? OSSL_PKEY_PARAM_PRIV_KEY : number_name(member->name);
        BIGNUM *number = BN_secure_new();
        bool is_added = number != NULL && name != NULL && self->count < JOSE_MEMBERS &&
                        BN_bin2bn((unsigned char *)bytes.at, (int)bytes.len, number) != NULL &&
                        OSSL_PARAM_BLD_push_BN(self->builder, name, number) == 1;
        if (is_added) {
            self->numbers[self->count++] = number;
        } else {
            BN_clear_free(number);
            err = BAY_ERR_NOMEM;
        }
    }
    mem_wipe(bytes.at, bytes.len);
    buf_fini(&bytes);
    return err == BAY_ERR_SYNTAX || err == BAY_ERR_LIMIT ? BAY_ERR_INVALID : err;
}

static bay_err key_of(parts *self, jose_algorithm algorithm, EVP_PKEY **out)
{
    if (algorithm == JOSE_ES256 &&
        (OSSL_PARAM_BLD_push_utf8_string(self->builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1",
                                         0) != 1 ||
         OSSL_PARAM_BLD_push_octet_string(self->builder, OSSL_PKEY_PARAM_PUB_KEY, self->point,
                                          POINT_BYTES) != 1)) {
        return BAY_ERR_NOMEM;
    }
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(self->builder);
    EVP_PKEY_CTX *context =
        EVP_PKEY_CTX_new_from_name(NULL, algorithm == JOSE_ES256 ? "EC" : "RSA", NULL);
    bay_err err = parameters != NULL && context != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK &&
        (EVP_PKEY_fromdata_init(context) != 1 ||
         EVP_PKEY_fromdata(context, out, self->has_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                           parameters) != 1)) {
        err = BAY_ERR_INVALID;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return err;
}

bay_err jose_raw_new(jose_algorithm algorithm, const jose_member *members, size_t count,
                     jose_raw **out)
{
    parts made = {.builder = OSSL_PARAM_BLD_new(), .point = {POINT_CONVERSION_UNCOMPRESSED}};
    bay_err err = made.builder != NULL ? BAY_OK : BAY_ERR_NOMEM;
    EVP_PKEY *key = NULL;
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        err = add_member(&made, algorithm, &members[i]);
    }
    if (err == BAY_OK) {
        err = key_of(&made, algorithm, &key);
    }
    OSSL_PARAM_BLD_free(made.builder);
    for (size_t i = 0; i < made.count; i++) {
        BN_clear_free(made.numbers[i]);
    }
    if (err == BAY_OK) {
        err = check_key(key, algorithm, made.has_private);
    }
    if (err == BAY_OK) {
        err = raw_of(key, algorithm, out);
    } else {
        EVP_PKEY_free(key);
    }
    ERR_clear_error();
    return err;
}

static int no_passphrase(char *at, int cap, int is_writing, void *argument)
{
    (void)at;
    (void)cap;
    (void)is_writing;
    (void)argument;
    return -1;
}

bay_err jose_raw_from_pem(bay_str pem, jose_raw **out)
{
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(pem.at, (int)pem.len);
    if (bio == NULL) {
        return BAY_ERR_NOMEM;
    }
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    bay_err err = BAY_ERR_SYNTAX;
    if (key != NULL) {
        jose_algorithm algorithm =
            EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? JOSE_ES256 : JOSE_RS256;
        err = check_key(key, algorithm, true);
        if (err == BAY_OK) {
            err = raw_of(key, algorithm, out);
        } else {
            EVP_PKEY_free(key);
        }
    }
    ERR_clear_error();
    return err;
}

void jose_raw_free(jose_raw *self)
{
    if (self != NULL) {
        EVP_PKEY_free(self->key); /* OpenSSL wipes what is private */
        buf_fini(&self->first);
        buf_fini(&self->second);
        mem_free(self);
    }
}

jose_algorithm jose_raw_algorithm(const jose_raw *self)
{
    return self->algorithm;
}

bay_str jose_raw_member(const jose_raw *self, const char *name)
{
    bool is_ec = self->algorithm == JOSE_ES256;
    if (strcmp(name, is_ec ? "x" : "n") == 0) {
        return buf_view(&self->first);
    }
    if (strcmp(name, is_ec ? "y" : "e") == 0) {
        return buf_view(&self->second);
    }
    return (bay_str){"", 0};
}

bay_err jose_raw_thumbprint(const jose_raw *self, buf *out)
{
    unsigned char digest[JOSE_DIGEST_BYTES];
    buf text;
    buf_init(&text, FIRST_BYTES + 256);
    if (self->algorithm == JOSE_ES256) {
        buf_printf(&text, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%.*s\",\"y\":\"%.*s\"}",
                   BAY_STR(buf_view(&self->first)), BAY_STR(buf_view(&self->second)));
    } else {
        buf_printf(&text, "{\"e\":\"%.*s\",\"kty\":\"RSA\",\"n\":\"%.*s\"}",
                   BAY_STR(buf_view(&self->second)), BAY_STR(buf_view(&self->first)));
    }
    bool is_made = text.err == BAY_OK && jose_raw_digest(buf_view(&text), digest);
    buf_fini(&text);
    if (!is_made) {
        return BAY_ERR_NOMEM;
    }
    base64_encode(out, (bay_str){(char *)digest, sizeof(digest)}, BASE64_URL);
    return out->err;
}

bool jose_raw_digest(bay_str bytes, unsigned char out[JOSE_DIGEST_BYTES])
{
    unsigned int len = 0;
    bool is_made = EVP_Digest(bytes.at, bytes.len, out, &len, EVP_sha256(), NULL) == 1;
    ERR_clear_error();
    return is_made && len == JOSE_DIGEST_BYTES;
}

/* ---- signatures: over "header.payload"; of ES256 r and s, as JWS wants them, not ASN.1 ---------
 */

/* r and s of a signature in ASN.1. */
static bool flat_of(const unsigned char *signature, size_t len, unsigned char *out)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &signature, (long)len);
    bool is_made =
        pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, JOSE_EC_BYTES) == JOSE_EC_BYTES &&
        BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + JOSE_EC_BYTES, JOSE_EC_BYTES) == JOSE_EC_BYTES;
    ECDSA_SIG_free(pair);
    return is_made;
}

/* The reverse; its length, or 0. */
static size_t asn1_of(const unsigned char *flat, unsigned char *out, size_t cap)
{
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(flat, JOSE_EC_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(flat + JOSE_EC_BYTES, JOSE_EC_BYTES, NULL);
    int len = 0;
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair's now */
        len = i2d_ECDSA_SIG(pair, NULL);
        len = len > 0 && (size_t)len <= cap ? i2d_ECDSA_SIG(pair, &out) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return len > 0 ? (size_t)len : 0;
}

bay_err jose_raw_sign(const jose_raw *self, bay_str header, bay_str payload, buf *out)
{
    unsigned char made[RSA_BYTES_MOST];
    unsigned char flat[EC_SIGNATURE_BYTES];
    size_t len = sizeof(made);
    buf text;
    buf_init(&text, SIZE_MAX);
    buf_str(&text, header);
    buf_char(&text, '.');
    buf_str(&text, payload);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_made =
        text.err == BAY_OK && context != NULL &&
        EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, self->key) == 1 &&
        EVP_DigestSign(context, made, &len, (const unsigned char *)text.at, text.len) == 1 &&
        (self->algorithm != JOSE_ES256 || flat_of(made, len, flat));
    EVP_MD_CTX_free(context);
    buf_fini(&text);
    ERR_clear_error();
    if (!is_made) {
        return BAY_ERR_NOMEM;
    }
    bool is_ec = self->algorithm == JOSE_ES256;
    base64_encode(out, (bay_str){(char *)(is_ec ? flat : made), is_ec ? sizeof(flat) : len},
                  BASE64_URL);
    return out->err;
}

/* The signature as OpenSSL wants it; 0: it can be none of that key's. */
static size_t signature_of(const jose_raw *self, const buf *given, unsigned char *out, size_t cap)
{
    if (self->algorithm == JOSE_ES256) {
        return given->len == EC_SIGNATURE_BYTES
                   ? asn1_of((const unsigned char *)given->at, out, cap)
                   : 0;
    }
    if (given->len != (size_t)EVP_PKEY_get_size(self->key) || given->len > cap) {
        return 0;
    }
    memcpy(out, given->at, given->len);
    return given->len;
}

bay_err jose_raw_verify(const jose_raw *self, bay_str header, bay_str payload, bay_str signature)
{
    unsigned char bytes[RSA_BYTES_MOST];
    buf given;
    buf_init(&given, RSA_BYTES_MOST);
    bay_err err = base64_decode(&given, signature, BASE64_URL);
    size_t len = err == BAY_OK ? signature_of(self, &given, bytes, sizeof(bytes)) : 0;
    buf_fini(&given);
    if (len == 0) {
        return err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_DENIED;
    }
    err = BAY_ERR_NOMEM;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context != NULL &&
        EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, self->key) == 1 &&
        EVP_DigestVerifyUpdate(context, header.at, header.len) == 1 &&
        EVP_DigestVerifyUpdate(context, ".", 1) == 1 &&
        EVP_DigestVerifyUpdate(context, payload.at, payload.len) == 1) {
        err = EVP_DigestVerifyFinal(context, bytes, len) == 1 ? BAY_OK : BAY_ERR_DENIED;
    }
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return err;
}
