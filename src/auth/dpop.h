/* DPoP proofs at a resource server (RFC 9449): whoever brings a token proves, for this very
 * request, to have the key that the token is bound to.
 *
 * For the whole header: Threads: any. */
#ifndef AUTH_DPOP_H
#define AUTH_DPOP_H

#include "auth/digest.h"
#include "auth/jose.h"
#include "auth/seal.h"

enum {
    DPOP_PROOF_BYTES = 8 << 10,
    DPOP_ID_BYTES = 256,     /* of `jti` */
    DPOP_WINDOW_MS = 300000, /* `iat` is at most so far from now, before or after */
    DPOP_NONCE_MS = 120000,  /* a nonce is good for this epoch and the next */
    DPOP_NONCE_BYTES = 32,   /* of its text, with a NUL */
    DPOP_REPLAYS_DEFAULT = 1000000,
};

/* ---- nonces: nothing is kept ----------------------------------------------------------------- */

/* Writes the nonce of this time, which replicas with the same keys agree on.
 * Errors: as seal_digest. Units: ms since 1970. */
bay_err dpop_nonce_write(const seal_ring *ring, uint64_t now_ms,
                         char out[DPOP_NONCE_BYTES]) BAY_MUST_CHECK;
/* Was it made by a key of the ring, in this epoch or the one before? */
bool dpop_nonce_is_good(const seal_ring *ring, uint64_t now_ms, bay_str nonce);

/* ---- proofs that were seen ------------------------------------------------------------------- */

/* One for all loops of a process; bounded. */
typedef struct dpop_replays dpop_replays;

/* Errors: BAY_ERR_NOMEM. */
bay_err dpop_replays_new(size_t most, dpop_replays **out) BAY_MUST_CHECK;
void dpop_replays_free(dpop_replays *self); /* NULL is fine */
/* Remembers the proof of that digest. Errors: BAY_ERR_DUPLICATE: it is remembered; BAY_ERR_LIMIT:
 * there is no room among those that are; BAY_ERR_NOMEM. Units: ms since 1970. */
bay_err dpop_replays_take(dpop_replays *self, const unsigned char digest[DIGEST_BYTES],
                          uint64_t until_ms, uint64_t now_ms) BAY_MUST_CHECK;

/* ---- proofs ---------------------------------------------------------------------------------- */

typedef struct dpop_expected {
    bay_str method;
    const bay_str *urls; /* of the request, as peers name it, without query: one of these */
    size_t url_count;
    bay_str thumbprint;    /* of the key that the token is bound to */
    bay_str token;         /* the access token */
    const seal_ring *ring; /* a nonce by one of its keys is demanded; NULL: none is */
    uint64_t now_ms;
} dpop_expected;

/* Errors: BAY_ERR_DENIED with `diag`; BAY_ERR_NOT_FOUND: it is good but for a nonce, which it lacks
 * or whose time is over (use_dpop_nonce); BAY_ERR_DUPLICATE: seen before; BAY_ERR_LIMIT: so many
 * were seen that this one could not be remembered, so it is not taken; BAY_ERR_NOMEM.
 * Source: RFC 9449 sections 4.3, 7.1, 9, 11.1. */
bay_err dpop_check(bay_str proof, const dpop_expected *expected, dpop_replays *replays,
                   bay_diag *diag) BAY_MUST_CHECK;

/* The same URL, whatever the case of scheme and host, with or without the default port. Neither
 * has a query or a fragment. Source: RFC 9449 section 4.3, RFC 3986 section 6.2. */
bool dpop_url_is(bay_str one, bay_str other);

#endif
