/* Callers who are turned away whatever they bring: rows of the store, by a digest of the subject.
 *
 * For the whole header: Threads: any. */
#ifndef AUTH_BLOCK_H
#define AUTH_BLOCK_H

#include "auth/digest.h"

enum { BLOCKS = 10000 /* subjects that are blocked; a further one is not taken */ };

#define BLOCK_TABLE "blocked" /* of the store; the key is block_key, the value the subject */

/* The key of a subject's row, with a NUL. Errors: as digest_sha256. */
static inline bay_err block_key(bay_str subject, char out[DIGEST_TEXT_BYTES + 1])
{
    return digest_sha256(subject, out);
}

#endif
