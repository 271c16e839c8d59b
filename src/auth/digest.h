/* Digests, as manifests of files write them: "sha256:" and 64 lower-case hexadecimal digits. */
#ifndef AUTH_DIGEST_H
#define AUTH_DIGEST_H

#include "patchbay/types.h"

enum { DIGEST_TEXT_BYTES = 7 + 64 };

/* Writes the SHA-256 digest of `bytes` as text, with a NUL behind it.
 * Owns: nothing. Errors: BAY_NOMEM; BAY_UNSUPPORTED in a library without OpenSSL. Units: bytes.
 * Threads: any. Source: FIPS 180-4; the skills extension, Integrity and Verification. */
bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1]) BAY_MUST_CHECK;

#endif
