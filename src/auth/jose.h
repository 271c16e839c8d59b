/* JSON Object Signing, on OpenSSL: keys, key sets, detached JWS. ES256, ES384, ES512, RS256, RS384,
 * RS512, PS256, PS384, PS512 and EdDSA (Ed25519); "none" and symmetric algorithms are refused
 * wherever they come from. In a library without OpenSSL every function answers
 * BAY_ERR_UNSUPPORTED. */
#ifndef AUTH_JOSE_H
#define AUTH_JOSE_H

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

typedef struct jose_key jose_key;   /* private */
typedef struct jose_keys jose_keys; /* a set of public keys */

enum {
    JOSE_KEYS = 100,               /* of one set */
    JOSE_KEYSET_BYTES = 256 << 10, /* of its text */
    JOSE_TOKEN_BYTES = 16 << 10,   /* of one JWT or JWS header */
};

/* A private key: PEM (PKCS 8; EC P-256, P-384 or P-521, Ed25519, RSA of 2,048 to 8,192 bits) or a
 * JWK, whose `alg` says how it signs; without one RSA signs by RS256. `key_id` "": the
 * JWK's, else its RFC 7638 thumbprint. Owns: the caller; copies, wiped at the end.
 * Errors: BAY_ERR_INVALID, BAY_ERR_SYNTAX with `diag` (never a part of the key), BAY_ERR_NOMEM. */
bay_err jose_key_new(bay_str text, bay_str key_id, jose_key **out, bay_diag *diag) BAY_MUST_CHECK;
void jose_key_free(jose_key *self);
bay_str jose_key_id(const jose_key *self);
/* Its public half as a JWK set, appended. */
bay_err jose_key_public(const jose_key *self, buf *out) BAY_MUST_CHECK;

/* A JWK set (RFC 7517) or one JWK. Keys that do not count are skipped: of other kinds, curves or
 * sizes, for encryption, for other algorithms, malformed, or private ones, which a public set must
 * not have.
 * Owns: the caller, one reference. Errors: BAY_ERR_SYNTAX (no such JSON, or a member twice),
 * BAY_ERR_LIMIT, BAY_ERR_NOMEM. Units: bytes. Threads: any; a set is immutable. Source: RFC 7517,
 * RFC 7518 section 6, RFC 8037 section 2. */
bay_err jose_keys_new(bay_str text, jose_keys **out, bay_diag *diag) BAY_MUST_CHECK;
jose_keys *jose_keys_ref(jose_keys *self); /* NULL is fine, also below */
void jose_keys_free(jose_keys *self);      /* gives one reference back */
size_t jose_keys_count(const jose_keys *self);
/* Does it have each key that `older` has, under the same name? */
bool jose_keys_have_all(const jose_keys *self, const jose_keys *older);
/* Appends the RFC 7638 thumbprint of a set of one key, base64url. Errors: BAY_ERR_INVALID: of
 * another number; BAY_ERR_NOMEM. */
bay_err jose_keys_thumbprint(const jose_keys *self, buf *out) BAY_MUST_CHECK;

/* Signs `payload`; appends the protected header and the signature, both base64url.
 * `typ` and `jku` may be "". */
bay_err jose_sign(const jose_key *key, bay_str payload, bay_str typ, bay_str jku,
                  buf *out_protected, buf *out_signature) BAY_MUST_CHECK;
/* Appends a compact JWS over `claims` (JSON). `shows_key`: its header has the public key in place
 * of the key's id, as proofs of possession do (RFC 9449 section 4.2).
 * Errors: BAY_ERR_LIMIT, BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a library without OpenSSL. */
bay_err jose_token_sign(const jose_key *key, bay_str typ, bool shows_key, bay_str claims,
                        buf *out) BAY_MUST_CHECK;
bay_str jose_key_algorithm(const jose_key *self); /* "ES256", "RS256" */
/* Appends a new private key, EC P-256, in PEM; to wipe. Errors: as above. */
bay_err jose_key_generate(buf *out) BAY_MUST_CHECK;
/* Appends the SHA-256 of `bytes` in base64url. Errors: as above. */
bay_err jose_hash(bay_str bytes, buf *out) BAY_MUST_CHECK;
/* BAY_ERR_DENIED: no key of that set made it, or its header is not understood (`crit`, `b64`, an
 * algorithm that is not ours, a member twice). Tried are the keys of the header's algorithm that
 * have its `kid`, or no `kid` at all; a header without one goes with all. `protected_header` and
 * `signature` are base64url. Source: RFC 7515 section 5.2. */
bay_err jose_verify(const jose_keys *keys, bay_str protected_header, bay_str payload,
                    bay_str signature) BAY_MUST_CHECK;

#endif
