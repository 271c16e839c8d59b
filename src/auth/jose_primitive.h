/* What OpenSSL does for auth/jose: keys out of their members, a signature over given bytes, nothing
 * of policy. Private to auth/. */
#ifndef AUTH_JOSE_PRIMITIVE_H
#define AUTH_JOSE_PRIMITIVE_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef enum jose_algorithm { JOSE_ES256, JOSE_RS256 } jose_algorithm;

enum {
    JOSE_RSA_BITS_LEAST = 2048,
    JOSE_RSA_BITS_MOST = 8192,
    JOSE_EC_BYTES = 32, /* of a coordinate of P-256 */
    JOSE_MEMBERS = 9,
    JOSE_DIGEST_BYTES = 32,
};

/* A key for one algorithm. Any thread, also several at once. */
typedef struct jose_raw jose_raw;

typedef struct jose_member {
    const char *name; /* "x" */
    bay_str value;    /* base64url */
} jose_member;

/* Members of a JWK, checked to be base64url; `kty` and `crv` follow from the algorithm.
 * Errors: BAY_ERR_INVALID: no such key exists (a point off the curve, a modulus that is none …);
 * BAY_ERR_NOMEM. */
bay_err jose_raw_new(jose_algorithm algorithm, const jose_member *members, size_t count,
                     jose_raw **out) BAY_MUST_CHECK;
/* A private key in PEM, without a passphrase: EC P-256 or RSA. Errors: BAY_ERR_SYNTAX: no such
 * thing in there; BAY_ERR_INVALID: of another kind or size; BAY_ERR_NOMEM. */
bay_err jose_raw_from_pem(bay_str pem, jose_raw **out) BAY_MUST_CHECK;
void jose_raw_free(jose_raw *self); /* wiped; NULL is fine */

jose_algorithm jose_raw_algorithm(const jose_raw *self);
/* A member of the public half; empty when it has none of that name. Lives as long as the key. */
bay_str jose_raw_member(const jose_raw *self, const char *name);
/* Appends the RFC 7638 thumbprint, base64url. */
bay_err jose_raw_thumbprint(const jose_raw *self, buf *out) BAY_MUST_CHECK;

/* SHA-256. False: it could not be made. */
bool jose_raw_digest(bay_str bytes, unsigned char out[JOSE_DIGEST_BYTES]);

/* All in base64url; `header` is the protected header as it will be sent. Appends the signature. */
bay_err jose_raw_sign(const jose_raw *self, bay_str header, bay_str payload,
                      buf *out) BAY_MUST_CHECK;
/* BAY_OK, BAY_ERR_DENIED, BAY_ERR_NOMEM. */
bay_err jose_raw_verify(const jose_raw *self, bay_str header, bay_str payload,
                        bay_str signature) BAY_MUST_CHECK;

#endif
