/* Sealed values: bytes that leave the process and must come back unchanged, read by nobody, used by
 * nobody else, and not for ever. A text is bound to associated data (who may bring it back, for
 * which request), which is not part of the text and must be given again.
 *
 * A text is base64url without padding of
 *     version (1) | key id (4) | expires_at_ms (8, big endian) | nonce (12) | cipher text | tag
 * (16) by AES-256-GCM. The tag covers everything before the cipher text, then the associated data:
 * a header cannot be changed, and an expiry is believed only after the tag was right.
 *
 * A sealed value proves who made it, not that it comes for the first time: whoever must not take it
 * twice puts a number into it and remembers that. */
#ifndef AUTH_SEAL_H
#define AUTH_SEAL_H

#include "base/buf.h"
#include "patchbay/types.h"

enum {
    SEAL_KEY_BYTES = 32,
    SEAL_RING_KEYS = 8,              /* a further one drops the oldest */
    SEAL_PLAIN_BYTES = 256 * 1024,   /* of one sealed value */
    SEAL_ASSOCIATED_BYTES = 1 << 20, /* of what one value is bound to */
    SEAL_OVERHEAD_BYTES = 41,        /* what sealing adds, before base64 */
    SEAL_DIGEST_BYTES = 16,
};

/* What a key is used for beside sealing: a key of its own is derived for each purpose, so that a
 * digest made for one purpose says nothing about the same text under another. */
typedef enum seal_purpose {
    SEAL_PRINCIPAL,   /* who owns a stored row (auth/principal_key.h) */
    SEAL_PROXY,       /* whose the names are that a remote agent gets (agents/scope.h) */
    SEAL_NONCE,       /* which nonces are ours (auth/dpop.h) */
    SEAL_OUTCOME,     /* which stored outcome is a call's (policy/outcomes_store.h) */
    SEAL_IDEMPOTENCY, /* the key of a call that a server gets (policy/idempotency.h) */
    SEAL_VAULT,       /* what users were granted at servers (auth/vault.h) */
    SEAL_AUDIT,       /* digests of arguments in the audit (evidence/arguments.h) */
    SEAL_PURPOSES,
} seal_purpose;

/* 32 bytes as 64 hexadecimal digits or as base64 (either alphabet, padded or not).
 * Owns: the caller wipes `out`. Errors: false: neither. Threads: any. Source: RFC 4648 sections 4,
 * 5. */
bool seal_key_read(bay_str text, unsigned char out[SEAL_KEY_BYTES]);

/* The keys of a process or a group of replicas. The newest seals, all open. */
typedef struct seal_ring seal_ring;

/* An empty ring.
 * Owns: the caller, until seal_ring_free. Errors: BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED when OpenSSL
 * offers no AES-256-GCM. Threads: any. */
bay_err seal_ring_new(seal_ring **out) BAY_MUST_CHECK;

/* Frees the ring and wipes its keys. `self` may be NULL.
 * Owns: takes `self`. Threads: any, when nobody else uses it. */
void seal_ring_free(seal_ring *self);

/* Makes `key` the one that seals; those that were there still open. A key that is there already
 * moves to the front. Its id follows from its bytes, so that replicas given the same keys
 * understand each other. Nonces are random: bring a new key before 2^32 values were sealed by one.
 * Owns: a copy of `key`, wiped at the end. Errors: BAY_ERR_INVALID when it is not SEAL_KEY_BYTES
 * long; BAY_ERR_NOMEM. Units: bytes. Threads: one, while nobody seals or opens.
 * Source: NIST SP 800-38D section 8.3. */
bay_err seal_ring_add(seal_ring *self, bay_str key) BAY_MUST_CHECK;

/* The same with a random key, for what needs not outlive the process.
 * Owns: the key. Errors: BAY_ERR_NOMEM. Threads: as seal_ring_add. */
bay_err seal_ring_generate(seal_ring *self) BAY_MUST_CHECK;

/* A ring of the keys that are derived from this ring's for `purpose`: what they seal, this ring does not
 * open. Owns: the caller. Errors: BAY_ERR_STATE: it is empty; as seal_ring_new. Threads: any. */
bay_err seal_ring_derive(const seal_ring *self, seal_purpose purpose,
                         seal_ring **out) BAY_MUST_CHECK;

/* Appends the sealed text to `out`.
 * Owns: nothing; both inputs are borrowed. Errors: BAY_ERR_STATE when the ring is empty;
 * BAY_ERR_LIMIT for too many bytes (also of `out`); BAY_ERR_NOMEM; `out` is then as long as before.
 * Units: `expires_at_ms` wall clock since 1970, 0: never. Threads: any, also several at once.
 * Source: NIST SP 800-38D. */
bay_err seal_value(const seal_ring *self, bay_str plain, bay_str associated, uint64_t expires_at_ms,
                   buf *out) BAY_MUST_CHECK;

/* Appends what was sealed to `out`; a caller whose plain text is secret wipes it there.
 * Owns: nothing; inputs are borrowed. Errors: BAY_ERR_DENIED for whatever no key of this ring
 * sealed for this associated data: forged, damaged, cut, bound to something else, sealed by a key
 * that is gone; which of them is not said. BAY_ERR_TIMEOUT when it is genuine and `now_ms` has
 * reached its expiry. BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`. `out` is then as long as before.
 * Units: ms since 1970.
 * Threads: any, also several at once. Source: NIST SP 800-38D. */
bay_err seal_open(const seal_ring *self, bay_str text, bay_str associated, uint64_t now_ms,
                  buf *out) BAY_MUST_CHECK;

/* How many keys the ring has; 0 for NULL. Threads: as seal_value. */
size_t seal_ring_count(const seal_ring *self);

/* A keyed 128-bit digest: HMAC-SHA256, cut, with the key that HKDF derives for `purpose` from the
 * ring's key number `nth` (0: the newest).
 * Errors: BAY_ERR_STATE: the ring has no such key; BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a library
 * without OpenSSL. Threads: any, also several at once. Source: RFC 2104, RFC 5869. */
bay_err seal_digest(const seal_ring *self, size_t nth, seal_purpose purpose, bay_str text,
                    unsigned char out[SEAL_DIGEST_BYTES]) BAY_MUST_CHECK;

#endif
