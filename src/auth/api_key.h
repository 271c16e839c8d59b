/* API keys: "pbk_ID_SECRET". The ID is public, and by it the key is found; what is kept of a key is a
 * row with a digest of the whole, a name, scopes and an expiry. The secret is 32 random bytes, so a
 * plain SHA-256 is as hard to guess as it is.
 *
 * For the whole header: Units: ms since 1970. Threads: any. */
#ifndef AUTH_API_KEY_H
#define AUTH_API_KEY_H

#include "auth/digest.h"
#include "base/arena.h"
#include "base/buf.h"

enum {
    API_KEY_ID_BYTES = 64,        /* that one may have; ours have 16 */
    API_KEY_NAME_BYTES = 256,     /* of its name: the subject of its principal */
    API_KEY_BYTES = 80,           /* of a key that api_key_make wrote, with a NUL */
    API_KEY_ROW_BYTES = 16 << 10, /* of a row: its scopes are its largest part */
    API_KEY_MEMORY_BYTES = 128 << 10,
};

#define API_KEY_TABLE "api-keys" /* of the store; the key of a row is the ID */

/* A key as it is kept: what it is, never itself. */
typedef struct api_key {
    bay_str name; /* its principal's subject */
    bay_str scopes;
    uint64_t made_at_ms;
    uint64_t expires_at_ms;             /* 0: never */
    unsigned char digest[DIGEST_BYTES]; /* of the whole key */
} api_key;

/* The ID of a text that may be a key. False: it is none. */
bool api_key_id(bay_str text, bay_str *out_id);

/* Makes a key, sets the digest of `row`, and writes the text: the caller shows it once and wipes
 * it. Errors: BAY_ERR_UNSUPPORTED in a library without OpenSSL; BAY_ERR_NOMEM. */
bay_err api_key_make(api_key *row, char out[API_KEY_BYTES]) BAY_MUST_CHECK;

void api_key_row_write(const api_key *self, buf *out);
/* Views are in `memory`. Errors: BAY_ERR_SYNTAX: it is no row of ours; BAY_ERR_NOMEM. */
bay_err api_key_row_read(bay_str row, arena *memory, api_key *out) BAY_MUST_CHECK;

#endif
