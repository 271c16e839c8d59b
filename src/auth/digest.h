/* Digests, as manifests of files write them: "sha256:" and 64 lower-case hexadecimal digits. */
#ifndef AUTH_DIGEST_H
#define AUTH_DIGEST_H

#include "patchbay/types.h"
#include "json/json.h"

enum {
    DIGEST_BYTES = 32,
    DIGEST_TEXT_BYTES = 7 + 64,
    DIGEST_CANON_BYTES = 64 << 20, /* of a canonical form; a larger value counts as it is spelled */
};

/* SHA-256. Errors: as digest_sha256. Threads: any. Source: FIPS 180-4. */
bay_err digest_bytes(bay_str bytes, unsigned char out[DIGEST_BYTES]) BAY_MUST_CHECK;

/* Writes the SHA-256 digest of `bytes` as text, with a NUL behind it.
 * Owns: nothing. Errors: BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a library without OpenSSL. Units:
 * bytes.
 * Threads: any. Source: FIPS 180-4; the skills extension, Integrity and Verification. */
bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1]) BAY_MUST_CHECK;

/* The same of what comes in pieces. Errors: as digest_sha256; a failure of `add` is told by `end`,
 * which frees. */
typedef struct digest_stream digest_stream;
bay_err digest_stream_new(digest_stream **out) BAY_MUST_CHECK;
void digest_stream_add(digest_stream *self, bay_str bytes);
bay_err digest_stream_end(digest_stream *self, char out[DIGEST_TEXT_BYTES + 1]) BAY_MUST_CHECK;

/* The same of an object or array in its canonical form: another spelling has the same digest. An
 * empty or missing one counts as {}; what has no canonical form (a number beyond doubles) counts
 * byte for byte.
 * Owns: nothing. Errors: as digest_sha256. Threads: any. Source: RFC 8785. */
bay_err digest_json(json_val value, char out[DIGEST_TEXT_BYTES + 1]) BAY_MUST_CHECK;

#endif
