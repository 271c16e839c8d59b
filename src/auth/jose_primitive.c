/* The one file that knows libjose and jansson. Their memory is libc's, not ours, as OpenSSL's is.
 *
 * A peer's JSON never gets here: jose.c takes it apart strictly and hands over members that are
 * base64url. libjose is told the one algorithm in the key (`alg`), and refuses a header that names
 * another. */
#include "auth/jose_primitive.h"

#include <jose/jose.h>
#include <jose/openssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/mem.h"
#include "base/str.h"

struct jose_raw {
    json_t *jwk;
    jose_algorithm algorithm;
};

static const char *const names_of_algorithms[] = {"ES256", "RS256"};

/* libjose would print to the standard error stream, and name what it was given. */
static void say_nothing(void *misc, const char *file, int line, uint64_t err, const char *format,
                        va_list arguments)
{
    (void)misc;
    (void)file;
    (void)line;
    (void)err;
    (void)format;
    (void)arguments;
}

static jose_cfg_t *silent(void)
{
    jose_cfg_t *config = jose_cfg();
    if (config != NULL) {
        jose_cfg_set_err_func(config, say_nothing, NULL);
    }
    return config;
}

static bool set_text(json_t *object, const char *name, bay_str text)
{
    return json_object_set_new(object, name, json_stringn(text.at, text.len)) == 0;
}

/* jansson frees without wiping; a private member's text is ours to clear while nobody else refers
 * to it. */
static void wipe_and_drop(json_t *jwk)
{
    static const char *const secrets[] = {"d", "p", "q", "dp", "dq", "qi"};
    for (size_t i = 0; jwk != NULL && i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        json_t *member = json_object_get(jwk, secrets[i]);
        if (json_is_string(member)) {
            mem_wipe((void *)(uintptr_t)json_string_value(member), json_string_length(member));
        }
    }
    json_decref(jwk);
}

/* Is it a key of that kind and a size we take? */
static bay_err check_key(EVP_PKEY *key, jose_algorithm algorithm)
{
    char group[32] = "";
    size_t len = 0;
    if (algorithm == JOSE_ES256) {
        if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
            EVP_PKEY_get_group_name(key, group, sizeof(group), &len) != 1 ||
            strcmp(group, "prime256v1") != 0) {
            return BAY_INVALID;
        }
    } else if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA ||
               EVP_PKEY_get_bits(key) < JOSE_RSA_BITS_LEAST ||
               EVP_PKEY_get_bits(key) > JOSE_RSA_BITS_MOST) {
        return BAY_INVALID;
    }
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    if (context == NULL) {
        return BAY_NOMEM;
    }
    int is_sound = EVP_PKEY_public_check_quick(context);
    EVP_PKEY_CTX_free(context);
    return is_sound == 1 ? BAY_OK : BAY_INVALID;
}

static bay_err raw_of(json_t *jwk, jose_algorithm algorithm, jose_raw **out)
{
    jose_raw *self = mem_alloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    *self = (jose_raw){.jwk = jwk, .algorithm = algorithm};
    *out = self;
    return BAY_OK;
}

bay_err jose_raw_new(jose_algorithm algorithm, const jose_member *members, size_t count,
                     jose_raw **out)
{
    json_t *jwk = json_object();
    jose_cfg_t *config = silent();
    bool is_made = jwk != NULL && config != NULL &&
                   set_text(jwk, "kty", algorithm == JOSE_ES256 ? STR("EC") : STR("RSA")) &&
                   (algorithm != JOSE_ES256 || set_text(jwk, "crv", STR("P-256"))) &&
                   set_text(jwk, "alg", str_of(names_of_algorithms[algorithm]));
    for (size_t i = 0; i < count && is_made; i++) {
        is_made = set_text(jwk, members[i].name, members[i].value);
    }
    bay_err err = is_made ? BAY_OK : BAY_NOMEM;
    if (is_made) {
        EVP_PKEY *key = jose_openssl_jwk_to_EVP_PKEY(config, jwk);
        err = key != NULL ? check_key(key, algorithm) : BAY_INVALID;
        EVP_PKEY_free(key);
    }
    if (err == BAY_OK) {
        err = raw_of(jwk, algorithm, out);
    }
    if (err != BAY_OK) {
        wipe_and_drop(jwk);
    }
    jose_cfg_decref(config);
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

static bay_err raw_of_key(EVP_PKEY *key, jose_raw **out)
{
    jose_algorithm algorithm = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? JOSE_ES256 : JOSE_RS256;
    bay_err err = check_key(key, algorithm);
    if (err != BAY_OK) {
        return err;
    }
    jose_cfg_t *config = silent();
    json_t *jwk = config != NULL ? jose_openssl_jwk_from_EVP_PKEY(config, key) : NULL;
    jose_cfg_decref(config);
    if (jwk == NULL || !set_text(jwk, "alg", str_of(names_of_algorithms[algorithm]))) {
        wipe_and_drop(jwk);
        return BAY_NOMEM;
    }
    err = raw_of(jwk, algorithm, out);
    if (err != BAY_OK) {
        wipe_and_drop(jwk);
    }
    return err;
}

bay_err jose_raw_from_pem(bay_str pem, jose_raw **out)
{
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(pem.at, (int)pem.len);
    if (bio == NULL) {
        return BAY_NOMEM;
    }
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    bay_err err = key != NULL ? raw_of_key(key, out) : BAY_SYNTAX;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}

void jose_raw_free(jose_raw *self)
{
    if (self != NULL) {
        wipe_and_drop(self->jwk);
        mem_free(self);
    }
}

jose_algorithm jose_raw_algorithm(const jose_raw *self)
{
    return self->algorithm;
}

bay_str jose_raw_member(const jose_raw *self, const char *name)
{
    const json_t *member = json_object_get(self->jwk, name);
    return json_is_string(member) ? (bay_str){json_string_value(member), json_string_length(member)}
                                  : (bay_str){"", 0};
}

bay_err jose_raw_thumbprint(const jose_raw *self, buf *out)
{
    jose_cfg_t *config = silent();
    json_t *text = config != NULL ? jose_jwk_thp(config, self->jwk, "S256") : NULL;
    jose_cfg_decref(config);
    if (!json_is_string(text)) {
        json_decref(text);
        return BAY_NOMEM;
    }
    buf_append(out, json_string_value(text), json_string_length(text));
    json_decref(text);
    return out->err;
}

bool jose_raw_digest(bay_str bytes, unsigned char out[JOSE_DIGEST_BYTES])
{
    unsigned int len = 0;
    bool is_made = EVP_Digest(bytes.at, bytes.len, out, &len, EVP_sha256(), NULL) == 1;
    ERR_clear_error();
    return is_made && len == JOSE_DIGEST_BYTES;
}

bay_err jose_raw_sign(const jose_raw *self, bay_str header, bay_str payload, buf *out)
{
    bay_err err = BAY_NOMEM;
    jose_cfg_t *config = silent();
    json_t *jws = json_object();
    json_t *signature = json_object();
    if (config == NULL || jws == NULL || signature == NULL || !set_text(jws, "payload", payload) ||
        !set_text(signature, "protected", header)) {
        goto done;
    }
    if (jose_jws_sig(config, jws, signature, self->jwk)) {
        const json_t *made = json_object_get(jws, "signature");
        if (json_is_string(made)) {
            buf_append(out, json_string_value(made), json_string_length(made));
            err = out->err;
        }
    }
done:
    json_decref(signature);
    json_decref(jws);
    jose_cfg_decref(config);
    ERR_clear_error();
    return err;
}

bay_err jose_raw_verify(const jose_raw *self, bay_str header, bay_str payload, bay_str signature)
{
    bay_err err = BAY_NOMEM;
    jose_cfg_t *config = silent();
    json_t *jws = json_object();
    if (config != NULL && jws != NULL && set_text(jws, "payload", payload) &&
        set_text(jws, "protected", header) && set_text(jws, "signature", signature)) {
        err = jose_jws_ver(config, jws, NULL, self->jwk, true) ? BAY_OK : BAY_DENIED;
    }
    json_decref(jws);
    jose_cfg_decref(config);
    ERR_clear_error();
    return err;
}
