/* Signatures of agent cards: JWS with detached payload over the card's canonical form (RFC 8785)
 * without `signatures`. Which key is trusted is the caller's affair.
 *
 * Verifiers differ on what is empty ("", null, [], {}, also inside each other): A2A's text has an
 * empty REQUIRED field in the payload, SDKs have none. The literal rule is the card as it stands,
 * the other one leaves out what is empty. What only the latter covers may say something empty that
 * nobody signed; it can say nothing else. */
#ifndef AUTH_CARD_SIGNATURE_H
#define AUTH_CARD_SIGNATURE_H

#include "auth/jose.h"
#include "base/buf.h"
#include "json/json.h"

enum {
    CARD_SIGNATURES = 16,        /* of one card that are looked at */
    CARD_SIGNED_BYTES = 1 << 20, /* of its canonical form */
    CARD_DEPTH = 48,             /* of values inside each other */
};

/* Appends the card with one more signature, or two where both rules make a difference, so that
 * every verifier finds one that is good. Signatures that are there stay. `jku` may be "".
 * Errors: BAY_ERR_TYPE (no object), BAY_ERR_DUPLICATE (a member twice), BAY_ERR_RANGE,
 * BAY_ERR_UTF8, BAY_ERR_DEPTH (no canonical form), BAY_ERR_LIMIT, BAY_ERR_NOMEM;
 * BAY_ERR_UNSUPPORTED: a library without OpenSSL. `out` is then as long as before. Units: bytes.
 * Threads: the key's. Source: A2A 1.0.1 section 8.4. */
bay_err card_sign(json_val card, const jose_key *key, bay_str jku, buf *out,
                  bay_diag *diag) BAY_MUST_CHECK;

/* Whether one of its signatures is good under one of the keys, by the literal rule or by the other.
 * A card that was kept in another spelling (normalised, with defaults) is another card: verify the
 * bytes that came. BAY_ERR_NOT_FOUND: it has none; BAY_ERR_DENIED with `diag`: none is good;
 * BAY_ERR_LIMIT: too large; BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED: a library without OpenSSL. */
bay_err card_verify(json_val card, const jose_keys *keys, bay_diag *diag) BAY_MUST_CHECK;

/* The key ids and `jku`s its signatures name, for whoever fetches key sets: at most `max`. Nothing
 * of them is verified: a `jku` may be asked only when it is one that is trusted anyway. */
typedef struct card_signer {
    bay_str key_id;
    bay_str jku;
} card_signer;
size_t card_signers(json_val card, arena *memory, card_signer *out, size_t max);

#endif
