/* SHA-256 by OpenSSL. */
#include "auth/digest.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

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

bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[DIGEST_BYTES];
    bay_err err = digest_bytes(bytes, hash);
    if (err != BAY_OK) {
        return err;
    }
    memcpy(out, "sha256:", 7);
    for (size_t i = 0; i < sizeof(hash); i++) {
        out[7 + 2 * i] = digits[hash[i] >> 4];
        out[8 + 2 * i] = digits[hash[i] & 15];
    }
    out[DIGEST_TEXT_BYTES] = '\0';
    return BAY_OK;
}
