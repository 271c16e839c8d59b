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
#include <openssl/rsa.h>

#include "auth/digest.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"

enum {
    RSA_BYTES_MOST = JOSE_RSA_BITS_MOST / 8,
    POINT_BYTES_MOST = 1 + 2 * JOSE_COORDINATE_MOST, /* uncompressed */
    FIRST_BYTES = (RSA_BYTES_MOST + 2) / 3 * 4,
    SECOND_BYTES = 96,
    ED25519_BYTES = 32,
};

struct jose_raw {
    EVP_PKEY *key;
    jose_kind kind;
    buf first;  /* x or n, base64url */
    buf second; /* y or e; Ed25519: none */
};

/* ---- kinds and algorithms -------------------------------------------------------------------- */

static const struct {
    const char *curve; /* of a JWK */
    const char *group; /* OpenSSL's name for it */
    size_t bytes;
    jose_algorithm algorithm;
} kinds[] = {
    [JOSE_P256] = {"P-256", "prime256v1", 32, JOSE_ES256},
    [JOSE_P384] = {"P-384", "secp384r1", 48, JOSE_ES384},
    [JOSE_P521] = {"P-521", "secp521r1", 66, JOSE_ES512},
    [JOSE_RSA] = {NULL, NULL, 0, JOSE_RS256},
    [JOSE_ED25519] = {"Ed25519", NULL, ED25519_BYTES, JOSE_EDDSA},
};

static const struct {
    const char *name;
    jose_kind kind;
    bool is_pss;
    const EVP_MD *(*digest)(void); /* NULL: the algorithm hashes itself */
} algorithms[JOSE_ALGORITHMS] = {
    [JOSE_ES256] = {"ES256", JOSE_P256, false, EVP_sha256},
    [JOSE_ES384] = {"ES384", JOSE_P384, false, EVP_sha384},
    [JOSE_ES512] = {"ES512", JOSE_P521, false, EVP_sha512},
    [JOSE_RS256] = {"RS256", JOSE_RSA, false, EVP_sha256},
    [JOSE_RS384] = {"RS384", JOSE_RSA, false, EVP_sha384},
    [JOSE_RS512] = {"RS512", JOSE_RSA, false, EVP_sha512},
    [JOSE_PS256] = {"PS256", JOSE_RSA, true, EVP_sha256},
    [JOSE_PS384] = {"PS384", JOSE_RSA, true, EVP_sha384},
    [JOSE_PS512] = {"PS512", JOSE_RSA, true, EVP_sha512},
    [JOSE_EDDSA] = {"EdDSA", JOSE_ED25519, false, NULL},
};

const char *jose_algorithm_name(jose_algorithm algorithm)
{
    return algorithms[algorithm].name;
}

bool jose_algorithm_find(bay_str name, jose_algorithm *out)
{
    for (size_t i = 0; i < JOSE_ALGORITHMS; i++) {
        if (str_eq(name, str_of(algorithms[i].name))) {
            *out = (jose_algorithm)i;
            return true;
        }
    }
    *out = JOSE_EDDSA;
    return str_eq(name, STR("Ed25519"));
}

jose_kind jose_algorithm_kind(jose_algorithm algorithm)
{
    return algorithms[algorithm].kind;
}

jose_algorithm jose_kind_algorithm(jose_kind kind)
{
    return kinds[kind].algorithm;
}

const char *jose_kind_curve(jose_kind kind)
{
    return kinds[kind].curve;
}

size_t jose_kind_bytes(jose_kind kind)
{
    return kinds[kind].bytes;
}

static bool is_ec(jose_kind kind)
{
    return kinds[kind].group != NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Is it a key of that kind and a size we take? */
static bool is_of_kind(EVP_PKEY *key, jose_kind kind)
{
    char group[32] = "";
    size_t len = 0;
    if (is_ec(kind)) {
        return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
               EVP_PKEY_get_group_name(key, group, sizeof(group), &len) == 1 &&
               strcmp(group, kinds[kind].group) == 0;
    }
    if (kind == JOSE_ED25519) {
        return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
    }
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
           EVP_PKEY_get_bits(key) >= JOSE_RSA_BITS_LEAST &&
           EVP_PKEY_get_bits(key) <= JOSE_RSA_BITS_MOST;
}

static bay_err check_key(EVP_PKEY *key, jose_kind kind, bool is_private)
{
    if (!is_of_kind(key, kind)) {
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

static void put_number(buf *out, EVP_PKEY *key, const char *name, size_t width)
{
    unsigned char bytes[RSA_BYTES_MOST];
    BIGNUM *number = NULL;
    int len = -1;
    if (EVP_PKEY_get_bn_param(key, name, &number) == 1 && BN_num_bytes(number) <= RSA_BYTES_MOST) {
        len = BN_bn2binpad(number, bytes, width > 0 ? (int)width : BN_num_bytes(number));
    }
    BN_free(number);
    if (len > 0) {
        base64_encode(out, (bay_str){(char *)bytes, (size_t)len}, BASE64_URL);
    }
}

static void put_ed25519(buf *out, EVP_PKEY *key)
{
    unsigned char bytes[ED25519_BYTES];
    size_t len = sizeof(bytes);
    if (EVP_PKEY_get_raw_public_key(key, bytes, &len) == 1 && len == sizeof(bytes)) {
        base64_encode(out, (bay_str){(char *)bytes, len}, BASE64_URL);
    }
}

/* Takes `key`. */
static bay_err raw_of(EVP_PKEY *key, jose_kind kind, jose_raw **out)
{
    jose_raw *self = mem_alloc(sizeof(*self));
    if (self == NULL) {
        EVP_PKEY_free(key);
        return BAY_ERR_NOMEM;
    }
    *self = (jose_raw){.key = key, .kind = kind};
    buf_init(&self->first, FIRST_BYTES);
    buf_init(&self->second, SECOND_BYTES);
    if (is_ec(kind)) {
        put_number(&self->first, key, OSSL_PKEY_PARAM_EC_PUB_X, kinds[kind].bytes);
        put_number(&self->second, key, OSSL_PKEY_PARAM_EC_PUB_Y, kinds[kind].bytes);
    } else if (kind == JOSE_ED25519) {
        put_ed25519(&self->first, key);
    } else {
        put_number(&self->first, key, OSSL_PKEY_PARAM_RSA_N, 0);
        put_number(&self->second, key, OSSL_PKEY_PARAM_RSA_E, 0);
    }
    if (self->first.len == 0 || (self->second.len == 0 && kind != JOSE_ED25519)) {
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
    jose_kind kind;
    unsigned char point[POINT_BYTES_MOST];
    bool has_private;
} parts;

static bay_err add_number(parts *self, const char *name, const buf *bytes)
{
    BIGNUM *number = BN_secure_new();
    bool is_added = number != NULL && name != NULL && self->count < JOSE_MEMBERS &&
                    BN_bin2bn((unsigned char *)bytes->at, (int)bytes->len, number) != NULL &&
                    OSSL_PARAM_BLD_push_BN(self->builder, name, number) == 1;
    if (!is_added) {
        BN_clear_free(number);
        return BAY_ERR_NOMEM;
    }
    self->numbers[self->count++] = number;
    return BAY_OK;
}

static bay_err add_member(parts *self, const jose_member *member)
{
    buf bytes;
    buf_init_secret(&bytes, RSA_BYTES_MOST + 1);
    bay_err err = base64_decode(&bytes, member->value, BASE64_URL);
    bool is_secret = strcmp(member->name, "d") == 0;
    size_t width = kinds[self->kind].bytes;
    self->has_private = self->has_private || is_secret;
    if (err == BAY_OK && is_ec(self->kind) && !is_secret) {
        size_t at = strcmp(member->name, "x") == 0 ? 1 : 1 + width;
        err = bytes.len == width ? BAY_OK : BAY_ERR_INVALID;
        memcpy(self->point + at, bytes.at, err == BAY_OK ? width : 0);
    } else if (err == BAY_OK) {
        err = add_number(
            self, is_ec(self->kind) ? OSSL_PKEY_PARAM_PRIV_KEY : number_name(member->name), &bytes);
    }
    buf_fini(&bytes);
    return err == BAY_ERR_SYNTAX || err == BAY_ERR_LIMIT ? BAY_ERR_INVALID : err;
}

static bay_err key_of(parts *self, EVP_PKEY **out)
{
    const char *group = kinds[self->kind].group;
    if (group != NULL &&
        (OSSL_PARAM_BLD_push_utf8_string(self->builder, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) !=
             1 ||
         OSSL_PARAM_BLD_push_octet_string(self->builder, OSSL_PKEY_PARAM_PUB_KEY, self->point,
                                          1 + 2 * kinds[self->kind].bytes) != 1)) {
        return BAY_ERR_NOMEM;
    }
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(self->builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, group != NULL ? "EC" : "RSA", NULL);
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

static bay_err number_key(jose_kind kind, const jose_member *members, size_t count, bool *out_has_d,
                          EVP_PKEY **out)
{
    parts made = {
        .builder = OSSL_PARAM_BLD_new(), .kind = kind, .point = {POINT_CONVERSION_UNCOMPRESSED}};
    bay_err err = made.builder != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        err = add_member(&made, &members[i]);
    }
    if (err == BAY_OK) {
        err = key_of(&made, out);
    }
    OSSL_PARAM_BLD_free(made.builder);
    for (size_t i = 0; i < made.count; i++) {
        BN_clear_free(made.numbers[i]);
    }
    *out_has_d = made.has_private;
    return err;
}

/* Of its seed (`d`) where that is given: OpenSSL makes the public half of it, and a JWK whose `x`
 * is another key's is none. */
static bay_err ed25519_key(const jose_member *members, size_t count, bool *out_has_d,
                           EVP_PKEY **out)
{
    bay_str secret = {NULL, 0};
    bay_str public = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        *(strcmp(members[i].name, "d") == 0 ? &secret : &public) = members[i].value;
    }
    buf bytes;
    buf own;
    buf_init_secret(&bytes, ED25519_BYTES + 1);
    buf_init(&own, SECOND_BYTES);
    bay_err err = base64_decode(&bytes, secret.len > 0 ? secret : public, BASE64_URL);
    if (err == BAY_OK && bytes.len != ED25519_BYTES) {
        err = BAY_ERR_INVALID;
    }
    if (err == BAY_OK) {
        const unsigned char *at = (const unsigned char *)bytes.at;
        *out = secret.len > 0 ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, at, bytes.len)
                              : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, at, bytes.len);
        err = *out != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        put_ed25519(&own, *out);
        err = own.err != BAY_OK                ? own.err
              : str_eq(buf_view(&own), public) ? BAY_OK
                                               : BAY_ERR_INVALID;
    }
    buf_fini(&own);
    buf_fini(&bytes);
    *out_has_d = secret.len > 0;
    return err == BAY_ERR_SYNTAX || err == BAY_ERR_LIMIT ? BAY_ERR_INVALID : err;
}

bay_err jose_raw_new(jose_kind kind, const jose_member *members, size_t count, jose_raw **out)
{
    EVP_PKEY *key = NULL;
    bool is_private = false;
    bay_err err = kind == JOSE_ED25519 ? ed25519_key(members, count, &is_private, &key)
                                       : number_key(kind, members, count, &is_private, &key);
    if (err == BAY_OK) {
        err = check_key(key, kind, is_private);
    }
    if (err == BAY_OK) {
        err = raw_of(key, kind, out);
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
    bay_err err = key != NULL ? BAY_ERR_INVALID : BAY_ERR_SYNTAX;
    for (jose_kind kind = JOSE_P256; key != NULL && kind <= JOSE_ED25519; kind++) {
        if (is_of_kind(key, kind)) {
            err = check_key(key, kind, true);
            if (err == BAY_OK) {
                err = raw_of(key, kind, out);
                key = NULL;
            }
            break;
        }
    }
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}

bay_err jose_raw_generate(buf *out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = key != NULL ? BIO_new(BIO_s_secmem()) : NULL;
    char *text = NULL;
    bool is_made =
        bio != NULL && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1;
    long len = is_made ? BIO_get_mem_data(bio, &text) : 0;
    if (len > 0) {
        buf_append(out, text, (size_t)len);
    }
    BIO_free(bio); /* wipes */
    EVP_PKEY_free(key);
    ERR_clear_error();
    return len > 0 ? out->err : BAY_ERR_NOMEM;
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

jose_kind jose_raw_kind(const jose_raw *self)
{
    return self->kind;
}

bay_str jose_raw_member(const jose_raw *self, const char *name)
{
    bool is_rsa = self->kind == JOSE_RSA;
    if (strcmp(name, is_rsa ? "n" : "x") == 0) {
        return buf_view(&self->first);
    }
    if (self->kind != JOSE_ED25519 && strcmp(name, is_rsa ? "e" : "y") == 0) {
        return buf_view(&self->second);
    }
    return (bay_str){"", 0};
}

/* In the order of RFC 7638 section 3.3. */
void jose_raw_write_public(const jose_raw *self, buf *out)
{
    if (self->kind == JOSE_RSA) {
        buf_printf(out, "\"e\":\"%.*s\",\"kty\":\"RSA\",\"n\":\"%.*s\"",
                   BAY_STR(buf_view(&self->second)), BAY_STR(buf_view(&self->first)));
        return;
    }
    buf_printf(out, "\"crv\":\"%s\",\"kty\":\"%s\",\"x\":\"%.*s\"", kinds[self->kind].curve,
               is_ec(self->kind) ? "EC" : "OKP", BAY_STR(buf_view(&self->first)));
    if (is_ec(self->kind)) {
        buf_printf(out, ",\"y\":\"%.*s\"", BAY_STR(buf_view(&self->second)));
    }
}

bay_err jose_raw_thumbprint(const jose_raw *self, buf *out)
{
    unsigned char digest[DIGEST_BYTES];
    buf text;
    buf_init(&text, FIRST_BYTES + 256);
    buf_char(&text, '{');
    jose_raw_write_public(self, &text);
    buf_char(&text, '}');
    bay_err err = text.err == BAY_OK ? digest_bytes(buf_view(&text), digest) : text.err;
    buf_fini(&text);
    if (err != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    base64_encode(out, (bay_str){(char *)digest, sizeof(digest)}, BASE64_URL);
    return out->err;
}

/* ---- signatures: over "header.payload"; of ECDSA r and s, as JWS wants them, not ASN.1
 * --------- */

/* r and s of a signature in ASN.1, each `width` bytes. */
static bool flat_of(const unsigned char *signature, size_t len, size_t width, unsigned char *out)
{
    int each = (int)width;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &signature, (long)len);
    bool is_made = pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, each) == each &&
                   BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + width, each) == each;
    ECDSA_SIG_free(pair);
    return is_made;
}

/* The reverse; its length, or 0. */
static size_t asn1_of(const unsigned char *flat, size_t width, unsigned char *out, size_t cap)
{
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(flat, (int)width, NULL);
    BIGNUM *s = BN_bin2bn(flat + width, (int)width, NULL);
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

static const EVP_MD *digest_of(jose_algorithm algorithm)
{
    return algorithms[algorithm].digest != NULL ? algorithms[algorithm].digest() : NULL;
}

/* RFC 7518 section 3.5: MGF1 with the same hash, a salt as long as the hash. */
static bool set_padding(EVP_PKEY_CTX *context, jose_algorithm algorithm)
{
    return !algorithms[algorithm].is_pss ||
           (EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
            EVP_PKEY_CTX_set_rsa_mgf1_md(context, digest_of(algorithm)) == 1 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1);
}

static bay_err sign_text(const jose_raw *self, jose_algorithm algorithm, const buf *text,
                         unsigned char *out, size_t *len)
{
    EVP_PKEY_CTX *padding = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_made =
        context != NULL &&
        EVP_DigestSignInit(context, &padding, digest_of(algorithm), NULL, self->key) == 1 &&
        set_padding(padding, algorithm) &&
        EVP_DigestSign(context, out, len, (const unsigned char *)text->at, text->len) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return is_made ? BAY_OK : BAY_ERR_NOMEM;
}

bay_err jose_raw_sign(const jose_raw *self, jose_algorithm algorithm, bay_str header,
                      bay_str payload, buf *out)
{
    unsigned char made[RSA_BYTES_MOST];
    unsigned char flat[2 * JOSE_COORDINATE_MOST];
    size_t len = sizeof(made);
    buf text;
    CHECK(algorithms[algorithm].kind == self->kind);
    buf_init(&text, SIZE_MAX);
    buf_str(&text, header);
    buf_char(&text, '.');
    buf_str(&text, payload);
    bay_err err =
        text.err == BAY_OK ? sign_text(self, algorithm, &text, made, &len) : BAY_ERR_NOMEM;
    buf_fini(&text);
    size_t width = kinds[self->kind].bytes;
    if (err == BAY_OK && is_ec(self->kind)) {
        err = flat_of(made, len, width, flat) ? BAY_OK : BAY_ERR_NOMEM;
        ERR_clear_error();
    }
    if (err != BAY_OK) {
        return err;
    }
    base64_encode(
        out, is_ec(self->kind) ? (bay_str){(char *)flat, 2 * width} : (bay_str){(char *)made, len},
        BASE64_URL);
    return out->err;
}

/* The signature as OpenSSL wants it; 0: it can be none of that key's. */
static size_t signature_of(const jose_raw *self, const buf *given, unsigned char *out, size_t cap)
{
    size_t width = kinds[self->kind].bytes;
    if (is_ec(self->kind)) {
        return given->len == 2 * width ? asn1_of((const unsigned char *)given->at, width, out, cap)
                                       : 0;
    }
    if (given->len != (size_t)EVP_PKEY_get_size(self->key) || given->len > cap) {
        return 0;
    }
    memcpy(out, given->at, given->len);
    return given->len;
}

/* Ed25519 takes its text in one piece. */
static bay_err verify_whole(const jose_raw *self, bay_str header, bay_str payload,
                            const unsigned char *signature, size_t len)
{
    buf text;
    bay_err err = BAY_ERR_NOMEM;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    buf_init(&text, SIZE_MAX);
    buf_str(&text, header);
    buf_char(&text, '.');
    buf_str(&text, payload);
    if (text.err == BAY_OK && context != NULL &&
        EVP_DigestVerifyInit(context, NULL, NULL, NULL, self->key) == 1) {
        err =
            EVP_DigestVerify(context, signature, len, (const unsigned char *)text.at, text.len) == 1
                ? BAY_OK
                : BAY_ERR_DENIED;
    }
    EVP_MD_CTX_free(context);
    buf_fini(&text);
    return err;
}

static bay_err verify_parts(const jose_raw *self, jose_algorithm algorithm, bay_str header,
                            bay_str payload, const unsigned char *signature, size_t len)
{
    bay_err err = BAY_ERR_NOMEM;
    EVP_PKEY_CTX *padding = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context != NULL &&
        EVP_DigestVerifyInit(context, &padding, digest_of(algorithm), NULL, self->key) == 1 &&
        set_padding(padding, algorithm) &&
        EVP_DigestVerifyUpdate(context, header.at, header.len) == 1 &&
        EVP_DigestVerifyUpdate(context, ".", 1) == 1 &&
        EVP_DigestVerifyUpdate(context, payload.at, payload.len) == 1) {
        err = EVP_DigestVerifyFinal(context, signature, len) == 1 ? BAY_OK : BAY_ERR_DENIED;
    }
    EVP_MD_CTX_free(context);
    return err;
}

bay_err jose_raw_verify(const jose_raw *self, jose_algorithm algorithm, bay_str header,
                        bay_str payload, bay_str signature)
{
    unsigned char bytes[RSA_BYTES_MOST];
    buf given;
    if (algorithms[algorithm].kind != self->kind) {
        return BAY_ERR_DENIED;
    }
    buf_init(&given, RSA_BYTES_MOST);
    bay_err err = base64_decode(&given, signature, BASE64_URL);
    size_t len = err == BAY_OK ? signature_of(self, &given, bytes, sizeof(bytes)) : 0;
    buf_fini(&given);
    if (len == 0) {
        return err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_DENIED;
    }
    err = self->kind == JOSE_ED25519 ? verify_whole(self, header, payload, bytes, len)
                                     : verify_parts(self, algorithm, header, payload, bytes, len);
    ERR_clear_error();
    return err;
}
