/* SHA-256 by OpenSSL. */
#include "auth/digest.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"

/* Found once: to look the algorithm up takes as long as to hash a short text. It lives as long as
 * the process. */
static EVP_MD *sha256;

static void find_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA2-256", NULL);
    ERR_clear_error();
}

bay_err digest_bytes(bay_str bytes, unsigned char out[DIGEST_BYTES])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned int len = 0;
    (void)pthread_once(&once, find_sha256);
    bool is_made = sha256 != NULL && EVP_Digest(bytes.len > 0 ? bytes.at : "", bytes.len, out, &len,
                                                sha256, NULL) == 1;
    if (!is_made || len != DIGEST_BYTES) {
        ERR_clear_error();
        return BAY_ERR_NOMEM;
    }
    return BAY_OK;
}

static void write_text(const unsigned char hash[DIGEST_BYTES], char out[DIGEST_TEXT_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "sha256:", 7);
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        out[7 + 2 * i] = digits[hash[i] >> 4];
        out[8 + 2 * i] = digits[hash[i] & 15];
    }
    out[DIGEST_TEXT_BYTES] = '\0';
}

bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1])
{
    unsigned char hash[DIGEST_BYTES];
    bay_err err = digest_bytes(bytes, hash);
    if (err == BAY_OK) {
        write_text(hash, out);
    }
    return err;
}

struct digest_stream {
    EVP_MD_CTX *context;
    bool is_good;
};

bay_err digest_stream_new(digest_stream **out)
{
    digest_stream *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->context = EVP_MD_CTX_new();
    self->is_good =
        self->context != NULL && EVP_DigestInit_ex(self->context, EVP_sha256(), NULL) == 1;
    *out = self;
    return BAY_OK;
}

void digest_stream_add(digest_stream *self, bay_str bytes)
{
    self->is_good = self->is_good &&
                    (bytes.len == 0 || EVP_DigestUpdate(self->context, bytes.at, bytes.len) == 1);
}

bay_err digest_stream_end(digest_stream *self, char out[DIGEST_TEXT_BYTES + 1])
{
    unsigned char hash[DIGEST_BYTES];
    unsigned int len = 0;
    bool is_good =
        self->is_good && EVP_DigestFinal_ex(self->context, hash, &len) == 1 && len == sizeof(hash);
    EVP_MD_CTX_free(self->context);
    mem_free(self);
    if (is_good) {
        write_text(hash, out);
    }
    return is_good ? BAY_OK : BAY_ERR_NOMEM;
}
