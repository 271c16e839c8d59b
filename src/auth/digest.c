/* SHA-256 by OpenSSL. */
#include "auth/digest.h"

#include <openssl/evp.h>
#include <string.h>

bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[32];
    unsigned int len = 0;
    if (EVP_Digest(bytes.len > 0 ? bytes.at : "", bytes.len, hash, &len, EVP_sha256(), NULL) != 1 ||
        len != sizeof(hash)) {
        return BAY_ERR_NOMEM;
    }
    memcpy(out, "sha256:", 7);
    for (size_t i = 0; i < sizeof(hash); i++) {
        out[7 + 2 * i] = digits[hash[i] >> 4];
        out[8 + 2 * i] = digits[hash[i] & 15];
    }
    out[DIGEST_TEXT_BYTES] = '\0';
    return BAY_OK;
}
