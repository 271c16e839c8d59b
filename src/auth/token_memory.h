/* Credentials that were verified, remembered by their SHA-256 until they expire: a token comes with
 * every request of its bearer, and to verify it costs more than the rest of the request. One memory
 * serves all loops of a process. The same token at two endpoints is remembered for each: what is
 * remembered is that it is good *there*.
 *
 * When it is full, a token that was not used for a while makes room: it is verified again when it
 * comes again. What was refused is remembered apart, for seconds, so that a flood of bad tokens
 * moves no good one.
 *
 * For the whole header: Units: ms since 1970. Threads: any. */
#ifndef AUTH_TOKEN_MEMORY_H
#define AUTH_TOKEN_MEMORY_H

#include "auth/digest.h"
#include "auth/principal.h"

enum {
    TOKEN_MEMORY_SHARDS = 16,
    TOKEN_MEMORY_REFUSED = 4096,    /* refusals remembered; a further one takes another's place */
    TOKEN_MEMORY_REFUSED_MS = 5000, /* for how long */
    TOKEN_MEMORY_DEFAULT = 128 * 1024, /* tokens, unless the configuration says otherwise */
};

typedef struct token_memory token_memory;

/* `most`: tokens, rounded up to a multiple of TOKEN_MEMORY_SHARDS. Errors: BAY_ERR_NOMEM. */
bay_err token_memory_new(size_t most, token_memory **out) BAY_MUST_CHECK;
void token_memory_free(token_memory *self); /* NULL is fine */

/* A good credential. */
typedef struct token_entry {
    const auth_principal *principal;
    uint64_t until_ms;  /* it is not to be believed from then on without being verified again */
    unsigned char kind; /* the caller's: how it was verified, and what it is bound to */
} token_entry;

typedef enum token_verdict { TOKEN_UNKNOWN, TOKEN_GOOD, TOKEN_REFUSED } token_verdict;

/* `place`: the endpoint, a number of the caller's. TOKEN_GOOD: `out`, whose principal has one
 * reference for the caller. */
token_verdict token_memory_find(token_memory *self, const unsigned char digest[DIGEST_BYTES],
                                uint64_t place, uint64_t now_ms, token_entry *out);
/* Takes a reference of its own. Without memory the token is not remembered, and that is all. */
void token_memory_keep(token_memory *self, const unsigned char digest[DIGEST_BYTES], uint64_t place,
                       const token_entry *entry, uint64_t now_ms);
void token_memory_refuse(token_memory *self, const unsigned char digest[DIGEST_BYTES],
                         uint64_t place, uint64_t now_ms);

/* Forgets those of which this says true, and all refusals. */
void token_memory_forget(token_memory *self, bool (*is_gone)(void *user, const token_entry *entry),
                         void *user);
size_t token_memory_count(token_memory *self);

#endif
