/* Signatures of agent cards: JWS with detached payload over the card's canonical form (RFC 8785)
 * without `signatures`. Which key is trusted is the caller's affair. */
#ifndef AUTH_CARD_SIGNATURE_H
#define AUTH_CARD_SIGNATURE_H

#include "auth/jose.h"
#include "base/buf.h"
#include "json/json.h"

enum { CARD_SIGNATURES = 16 /* of one card that are looked at */ };

/* Appends the card with one more signature. Refuses (BAY_INVALID) a card with an empty REQUIRED
 * field: verifiers differ on it. `jku` may be "". */
bay_err card_sign(json_val card, const jose_key *key, bay_str jku, buf *out,
                  bay_diag *diag) BAY_MUST_CHECK;

/* Whether one of its signatures is good under one of the keys: first with the card as it stands
 * (the literal rule), then without empty REQUIRED fields. BAY_NOTFOUND: it has none; BAY_DENIED
 * with `diag`: none is good; BAY_UNSUPPORTED: a library without OpenSSL. */
bay_err card_verify(json_val card, const jose_keys *keys, bay_diag *diag) BAY_MUST_CHECK;

/* The key ids and `jku`s its signatures name, for whoever fetches key sets: at most `max`. */
typedef struct card_signer {
    bay_str key_id;
    bay_str jku;
} card_signer;
size_t card_signers(json_val card, arena *memory, card_signer *out, size_t max);

#endif
