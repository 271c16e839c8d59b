/* Sealed values by AES-256-GCM, and digests with keys derived from the same ring, by OpenSSL. */
#include "auth/seal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "wire/base64.h"

#define VERSION 1
#define ID_BYTES 4
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define EXPIRY_AT (1 + ID_BYTES)
#define NONCE_AT (EXPIRY_AT + 8)
#define HEADER_BYTES (NONCE_AT + NONCE_BYTES)

_Static_assert(SEAL_OVERHEAD_BYTES == HEADER_BYTES + TAG_BYTES, "the header says so");

typedef struct seal_key {
    unsigned char id[ID_BYTES];
    unsigned char bytes[SEAL_KEY_BYTES];
    unsigned char derived[SEAL_PURPOSES][SEAL_KEY_BYTES]; /* a key for each purpose */
} seal_key;

struct seal_ring {
    EVP_CIPHER *cipher;
    seal_key keys[SEAL_RING_KEYS]; /* the newest first */
    size_t count;
};

/* --- the ring --------------------------------------------------------------------------------- */

bay_err seal_ring_new(seal_ring **out)
{
    seal_ring *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    /* Fetched once: by name it would be looked up for each value. */
    self->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    if (self->cipher == NULL) {
        mem_free(self);
        return BAY_ERR_UNSUPPORTED;
    }
    *out = self;
    return BAY_OK;
}

void seal_ring_free(seal_ring *self)
{
    if (self == NULL) {
        return;
    }
    EVP_CIPHER_free(self->cipher);
    mem_wipe(self, sizeof(*self));
    mem_free(self);
}

/* A digest with a label of its own, so that an id is of no use for anything else. */
static bay_err name_key(seal_key *key)
{
    static const char label[] = "patchbay sealed value key id";
    unsigned char labelled[sizeof(label) + SEAL_KEY_BYTES];
    unsigned char digest[EVP_MAX_MD_SIZE];
    memcpy(labelled, label, sizeof(label));
    memcpy(labelled + sizeof(label), key->bytes, SEAL_KEY_BYTES);
    int is_done = EVP_Digest(labelled, sizeof(labelled), digest, NULL, EVP_sha256(), NULL);
    memcpy(key->id, digest, ID_BYTES);
    mem_wipe(labelled, sizeof(labelled));
    mem_wipe(digest, sizeof(digest));
    return is_done == 1 ? BAY_OK : BAY_ERR_NOMEM;
}

static bool hmac(const unsigned char key[SEAL_KEY_BYTES], bay_str text,
                 unsigned char out[SEAL_KEY_BYTES])
{
    unsigned int len = 0;
    const char *at = text.len > 0 ? text.at : "";
    return HMAC(EVP_sha256(), key, SEAL_KEY_BYTES, (const unsigned char *)at, text.len, out,
                &len) != NULL &&
           len == SEAL_KEY_BYTES;
}

/* RFC 5869: extract with a salt of zeros (section 2.2), then one block of expand (section 2.3),
 * which is as long as the key. The purpose and the block's number, 1, are the info. */
static bay_err derive(seal_key *key)
{
    static const bay_str infos[SEAL_PURPOSES] = {
        [SEAL_PRINCIPAL] = STR_INIT("patchbay principal\x01"),
        [SEAL_PROXY] = STR_INIT("patchbay relay\x01"),
        [SEAL_NONCE] = STR_INIT("patchbay DPoP nonce\x01"),
        [SEAL_OUTCOME] = STR_INIT("patchbay outcome\x01"),
        [SEAL_IDEMPOTENCY] = STR_INIT("patchbay idempotency\x01"),
        [SEAL_VAULT] = STR_INIT("patchbay vault\x01"),
        [SEAL_AUDIT] = STR_INIT("patchbay audit\x01"),
    };
    static const unsigned char salt[SEAL_KEY_BYTES] = {0};
    unsigned char extracted[SEAL_KEY_BYTES];
    bool is_done = hmac(salt, (bay_str){(const char *)key->bytes, SEAL_KEY_BYTES}, extracted);
    for (size_t i = 0; is_done && i < SEAL_PURPOSES; i++) {
        is_done = hmac(extracted, infos[i], key->derived[i]);
    }
    mem_wipe(extracted, sizeof(extracted));
    return is_done ? BAY_OK : BAY_ERR_NOMEM; /* nothing else can fail with fixed sizes */
}

bay_err seal_ring_add(seal_ring *self, bay_str key)
{
    if (key.len != SEAL_KEY_BYTES) {
        return BAY_ERR_INVALID;
    }
    seal_key fresh = {0};
    memcpy(fresh.bytes, key.at, SEAL_KEY_BYTES);
    bay_err err = name_key(&fresh);
    err = err == BAY_OK ? derive(&fresh) : err;
    if (err == BAY_OK) {
        bay_str bytes = {(const char *)fresh.bytes, SEAL_KEY_BYTES};
        size_t place = 0;
        while (place < self->count &&
               !str_eq_secret(bytes,
                              (bay_str){(const char *)self->keys[place].bytes, SEAL_KEY_BYTES})) {
            place++;
        }
        if (place == self->count && self->count < SEAL_RING_KEYS) {
            self->count++;
        }
        place = place < self->count ? place : self->count - 1;
        memmove(&self->keys[1], &self->keys[0], place * sizeof(self->keys[0]));
        self->keys[0] = fresh;
    }
    mem_wipe(&fresh, sizeof(fresh));
    return err;
}

bay_err seal_ring_generate(seal_ring *self)
{
    char key[SEAL_KEY_BYTES];
    rand_bytes(key, sizeof(key));
    bay_err err = seal_ring_add(self, (bay_str){key, sizeof(key)});
    mem_wipe(key, sizeof(key));
    return err;
}

/* --- sealing ---------------------------------------------------------------------------------- */

/* Starts the cipher and feeds it what the tag covers but the text does not hide. */
static bool seal_begin(EVP_CIPHER_CTX *context, const seal_ring *self, const seal_key *key,
                       const unsigned char *header, bay_str associated, int is_sealing)
{
    int fed;
    return EVP_CipherInit_ex2(context, self->cipher, key->bytes, header + NONCE_AT, is_sealing,
                              NULL) == 1 &&
           EVP_CipherUpdate(context, NULL, &fed, header, HEADER_BYTES) == 1 &&
           (associated.len == 0 ||
            EVP_CipherUpdate(context, NULL, &fed, (const unsigned char *)associated.at,
                             (int)associated.len) == 1);
}

static void write_header(unsigned char *at, const seal_key *key, uint64_t expires_at_ms)
{
    at[0] = VERSION;
    memcpy(at + 1, key->id, ID_BYTES);
    bytes_put_u64((char *)at + EXPIRY_AT, expires_at_ms);
    rand_bytes(at + NONCE_AT, NONCE_BYTES);
}

/* `to` has room for header, cipher text and tag. */
static bay_err encrypt(const seal_ring *self, bay_str plain, bay_str associated,
                       uint64_t expires_at_ms, unsigned char *to)
{
    const seal_key *key = &self->keys[0];
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL) {
        return BAY_ERR_NOMEM;
    }
    write_header(to, key, expires_at_ms);
    unsigned char *cipher_text = to + HEADER_BYTES;
    int made = 0;
    int rest = 0;
    bool is_done = seal_begin(context, self, key, to, associated, 1) &&
                   (plain.len == 0 ||
                    EVP_CipherUpdate(context, cipher_text, &made, (const unsigned char *)plain.at,
                                     (int)plain.len) == 1) &&
                   EVP_CipherFinal_ex(context, cipher_text + made, &rest) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES,
                                       cipher_text + plain.len) == 1;
    EVP_CIPHER_CTX_free(context);
    return is_done ? BAY_OK : BAY_ERR_NOMEM; /* nothing else can fail with fixed sizes */
}

bay_err seal_value(const seal_ring *self, bay_str plain, bay_str associated, uint64_t expires_at_ms,
                   buf *out)
{
    if (self->count == 0) {
        return BAY_ERR_STATE;
    }
    if (plain.len > SEAL_PLAIN_BYTES || associated.len > SEAL_ASSOCIATED_BYTES) {
        return BAY_ERR_LIMIT;
    }
    size_t len = plain.len + SEAL_OVERHEAD_BYTES;
    if (!buf_reserve(out, base64_encoded_len(len, BASE64_URL))) {
        return out->err;
    }
    unsigned char *bytes = mem_alloc(len);
    if (bytes == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = encrypt(self, plain, associated, expires_at_ms, bytes);
    if (err == BAY_OK) {
        base64_encode(out, (bay_str){(const char *)bytes, len}, BASE64_URL);
    }
    mem_free(bytes); /* cipher text: nothing to wipe */
    return err;
}

bay_err seal_ring_derive(const seal_ring *self, seal_purpose purpose, seal_ring **out)
{
    seal_ring *made = NULL;
    bay_err err = seal_ring_count(self) > 0 ? seal_ring_new(&made) : BAY_ERR_STATE;
    for (size_t i = seal_ring_count(self); err == BAY_OK && i-- > 0;) {
        err = seal_ring_add(
            made, (bay_str){(const char *)self->keys[i].derived[purpose], SEAL_KEY_BYTES});
    }
    if (err != BAY_OK) {
        seal_ring_free(made);
        return err;
    }
    *out = made;
    return BAY_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* BAY_ERR_DENIED when `key` did not make it. `to` then holds nothing of use to anybody. */
static bay_err decrypt(const seal_ring *self, const seal_key *key, bay_str sealed,
                       bay_str associated, char *to)
{
    unsigned char *header = (unsigned char *)sealed.at;
    unsigned char *cipher_text = header + HEADER_BYTES;
    size_t len = sealed.len - SEAL_OVERHEAD_BYTES;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL) {
        return BAY_ERR_NOMEM;
    }
    unsigned char none[1];
    int made = 0;
    int rest = 0;
    bay_err err = BAY_ERR_NOMEM;
    if (seal_begin(context, self, key, header, associated, 0) &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, cipher_text + len) == 1 &&
        (len == 0 ||
         EVP_CipherUpdate(context, (unsigned char *)to, &made, cipher_text, (int)len) == 1)) {
        err = EVP_CipherFinal_ex(context, none, &rest) == 1 ? BAY_OK : BAY_ERR_DENIED;
    }
    EVP_CIPHER_CTX_free(context);
    if (err != BAY_OK) {
        mem_wipe(to, len);
    }
    return err;
}

static uint64_t expiry_of(bay_str sealed)
{
    return bytes_get_u64(sealed.at + EXPIRY_AT);
}

static bay_err open_bytes(const seal_ring *self, bay_str sealed, bay_str associated,
                          uint64_t now_ms, buf *out)
{
    if (sealed.len < SEAL_OVERHEAD_BYTES || sealed.at[0] != VERSION) {
        return BAY_ERR_DENIED;
    }
    size_t len = sealed.len - SEAL_OVERHEAD_BYTES;
    if (!buf_reserve(out, len)) {
        return out->err;
    }
    char none[1];
    char *to = len > 0 ? out->at + out->len : none;
    bay_err err = BAY_ERR_DENIED;
    /* Two keys may share an id: unlikely, and no reason to fail. */
    for (size_t i = 0; i < self->count && err == BAY_ERR_DENIED; i++) {
        if (memcmp(self->keys[i].id, sealed.at + 1, ID_BYTES) == 0) {
            err = decrypt(self, &self->keys[i], sealed, associated, to);
        }
    }
    if (err != BAY_OK) {
        return err;
    }
    uint64_t expires_at_ms = expiry_of(sealed);
    if (expires_at_ms != 0 && now_ms >= expires_at_ms) {
        mem_wipe(to, len);
        return BAY_ERR_TIMEOUT;
    }
    out->len += len;
    return BAY_OK;
}

bay_err seal_open(const seal_ring *self, bay_str text, bay_str associated, uint64_t now_ms,
                  buf *out)
{
    size_t most = SEAL_PLAIN_BYTES + SEAL_OVERHEAD_BYTES;
    if (text.len > base64_encoded_len(most, BASE64_URL) || associated.len > SEAL_ASSOCIATED_BYTES) {
        return BAY_ERR_DENIED; /* seal_value makes none like that */
    }
    buf sealed;
    buf_init(&sealed, most);
    bay_err err = base64_decode(&sealed, text, BASE64_URL);
    if (err == BAY_ERR_SYNTAX) {
        err = BAY_ERR_DENIED;
    } else if (err == BAY_OK) {
        err = open_bytes(self, buf_view(&sealed), associated, now_ms, out);
    }
    buf_fini(&sealed);
    return err;
}

/* --- digests ---------------------------------------------------------------------------------- */

size_t seal_ring_count(const seal_ring *self)
{
    return self != NULL ? self->count : 0;
}

bay_err seal_digest(const seal_ring *self, size_t nth, seal_purpose purpose, bay_str text,
                    unsigned char out[SEAL_DIGEST_BYTES])
{
    unsigned char whole[SEAL_KEY_BYTES];
    if (nth >= seal_ring_count(self)) {
        return BAY_ERR_STATE;
    }
    if (!hmac(self->keys[nth].derived[purpose], text, whole)) {
        return BAY_ERR_NOMEM;
    }
    memcpy(out, whole, SEAL_DIGEST_BYTES);
    return BAY_OK;
}
