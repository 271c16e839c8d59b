/* What OpenSSL does for auth/jose: keys out of their members, a signature over given bytes, nothing
 * of policy. Private to auth/.
 *
 * A key has a kind, and an algorithm belongs to one kind: a signature is tried with no key of
 * another. RSA alone has several algorithms; which of them a key may be used with is policy. */
#ifndef AUTH_JOSE_PRIMITIVE_H
#define AUTH_JOSE_PRIMITIVE_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef enum jose_kind { JOSE_P256, JOSE_P384, JOSE_P521, JOSE_RSA, JOSE_ED25519 } jose_kind;

/* The names of RFC 7518 section 3.1, RFC 8037 section 3.1 and RFC 9864 section 2.2. */
typedef enum jose_algorithm {
    JOSE_ES256,
    JOSE_ES384,
    JOSE_ES512,
    JOSE_RS256,
    JOSE_RS384,
    JOSE_RS512,
    JOSE_PS256,
    JOSE_PS384,
    JOSE_PS512,
    JOSE_EDDSA,
    JOSE_ALGORITHMS,
} jose_algorithm;

enum {
    JOSE_RSA_BITS_LEAST = 2048,
    JOSE_RSA_BITS_MOST = 8192,
    JOSE_COORDINATE_MOST = 66, /* bytes of one of P-521 */
    JOSE_MEMBERS = 9,
};

/* A key. Any thread, also several at once. */
typedef struct jose_raw jose_raw;

typedef struct jose_member {
    const char *name; /* "x" */
    bay_str value;    /* base64url */
} jose_member;

const char *jose_algorithm_name(jose_algorithm algorithm);
/* False: none of ours. "EdDSA" and "Ed25519" are one. */
bool jose_algorithm_find(bay_str name, jose_algorithm *out);
jose_kind jose_algorithm_kind(jose_algorithm algorithm);
/* What a private key signs by, unless something else is asked: RS256, ES256 … */
jose_algorithm jose_kind_algorithm(jose_kind kind);
const char *jose_kind_curve(jose_kind kind); /* "P-256", "Ed25519"; NULL: RSA */
/* Of a coordinate, or of the whole key (Ed25519); 0: RSA. */
size_t jose_kind_bytes(jose_kind kind);

/* Members of a JWK, checked to be base64url; `kty` and `crv` follow from the kind.
 * Errors: BAY_ERR_INVALID: no such key exists (a point off the curve, a modulus that is none …);
 * BAY_ERR_NOMEM. */
bay_err jose_raw_new(jose_kind kind, const jose_member *members, size_t count,
                     jose_raw **out) BAY_MUST_CHECK;
/* A private key in PEM, without a passphrase. Errors: BAY_ERR_SYNTAX: no such thing in there;
 * BAY_ERR_INVALID: of another kind or size; BAY_ERR_NOMEM. */
bay_err jose_raw_from_pem(bay_str pem, jose_raw **out) BAY_MUST_CHECK;
/* Appends a new private key, EC P-256, in PEM; to wipe. Errors: BAY_ERR_NOMEM, those of `out`. */
bay_err jose_raw_generate(buf *out) BAY_MUST_CHECK;
void jose_raw_free(jose_raw *self); /* wiped; NULL is fine */

jose_kind jose_raw_kind(const jose_raw *self);
/* A member of the public half; empty when it has none of that name. Lives as long as the key. */
bay_str jose_raw_member(const jose_raw *self, const char *name);
/* Appends the RFC 7638 thumbprint, base64url. */
bay_err jose_raw_thumbprint(const jose_raw *self, buf *out) BAY_MUST_CHECK;
/* Appends "kty", "crv" and the members of the public half, as members of a JSON object. */
void jose_raw_write_public(const jose_raw *self, buf *out);

/* All in base64url; `header` is the protected header as it will be sent. Appends the signature.
 * The algorithm is one of the key's kind. */
bay_err jose_raw_sign(const jose_raw *self, jose_algorithm algorithm, bay_str header,
                      bay_str payload, buf *out) BAY_MUST_CHECK;
/* BAY_OK, BAY_ERR_DENIED (also of an algorithm of another kind), BAY_ERR_NOMEM. */
bay_err jose_raw_verify(const jose_raw *self, jose_algorithm algorithm, bay_str header,
                        bay_str payload, bay_str signature) BAY_MUST_CHECK;

#endif
