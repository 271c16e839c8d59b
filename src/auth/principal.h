/* A principal: who makes a call, how that was proven, and until when. Whoever authenticates a peer
 * makes one; from there it goes, as one object, to every place that decides or records something:
 * across loops, bridges between protocols, suspended calls, tasks and stored rows.
 *
 * A principal is immutable and counted; any thread may hold, read and release it. NULL is the
 * anonymous principal everywhere: nobody was asked, or nobody proved anything. It has no scopes, so
 * a principal that is lost can only lose rights.
 *
 * Two texts say whether two principals are the same:
 *
 *     identity   kind:length:issuer:length:subject                  what is kept belongs to it
 *     binding    identity:length:client                             sessions, states and suspended
 *                                                                    calls belong to it
 *
 * The lengths make both unambiguous whatever the parts hold. Neither holds a credential. The
 * identity of the anonymous principal is empty.
 *
 * A principal may have the access token that proved it, to be exchanged for one of another resource
 * (RFC 8693). The token is in this process's memory alone, is wiped with the principal, and is sent
 * to nobody but the issuer that exchanges it. */
#ifndef AUTH_PRINCIPAL_H
#define AUTH_PRINCIPAL_H

#include "base/buf.h"
#include "json/json.h"

/* How a principal was proven; the kind of its identity. */
typedef enum principal_proof {
    PRINCIPAL_LOCAL,       /* the user of this process: stdio, in process */
    PRINCIPAL_PROGRAM,     /* the embedding program said so (bay_peer_principal) */
    PRINCIPAL_KEY,         /* an API key, or HTTP Basic */
    PRINCIPAL_TOKEN,       /* a token that an issuer signed or confirmed */
    PRINCIPAL_CERTIFICATE, /* a client certificate that TLS verified */
    PRINCIPAL_PROOFS,
} principal_proof;

enum {
    PRINCIPAL_TEXT_BYTES = 4096,                              /* issuer, subject, client, each */
    PRINCIPAL_IDENTITY_BYTES = 3 * PRINCIPAL_TEXT_BYTES + 64, /* and of a binding */
    PRINCIPAL_SCOPES_BYTES = 8 << 10,                         /* all scopes of one principal */
    PRINCIPAL_CLAIMS_BYTES = 32 << 10,
    PRINCIPAL_CLAIMS_DEPTH = 16,
    PRINCIPAL_TOKEN_BYTES = 8 << 10,
    PRINCIPAL_RIGHTS_BYTES = 32,
    PRINCIPAL_ACTORS = 4, /* principals that act for each other, the last one included */
};

typedef struct auth_principal auth_principal;

/* What somebody asks of principals. `who` may be NULL. */
typedef bool (*principal_test)(void *user, const auth_principal *who);

/* What a principal is made of; everything is copied. */
typedef struct principal_parts {
    principal_proof proof;
    bay_str issuer; /* who vouches for the subject; "": this process */
    bay_str subject;
    bay_str client;         /* the OAuth client id, or what stands for it; "": unknown */
    bay_str scopes;         /* separated by single spaces; "": none */
    json_val claims;        /* an object; JSON_NONE: none */
    uint64_t expires_at_ms; /* wall clock since 1970; 0: never */
    bay_str token;          /* the access token that proved it; "": it is not to be exchanged */
    /* Who makes the call on the subject's behalf (RFC 8693 section 4.1, "act"); NULL: the subject
     * itself. */
    const auth_principal *actor;
} principal_parts;

/* Makes a principal.
 * Owns: the caller holds one reference. Errors: BAY_ERR_INVALID for an empty subject or a text that
 * is not UTF-8; BAY_ERR_LIMIT for a part above its maximum or too many actors; BAY_ERR_TYPE for
 * claims that are not an object, BAY_ERR_DEPTH for those that nest deeper than
 * PRINCIPAL_CLAIMS_DEPTH; BAY_ERR_NOMEM. */
bay_err principal_new(const principal_parts *parts, const auth_principal **out) BAY_MUST_CHECK;

/* A principal that a stored identity names: proof, issuer and subject, with neither scopes nor
 * claims. An empty identity gives NULL, the anonymous principal.
 * Owns: the caller holds one reference. Errors: BAY_ERR_SYNTAX for a text that principal_identity
 * does not write; BAY_ERR_NOMEM. */
bay_err principal_of_identity(bay_str identity, const auth_principal **out) BAY_MUST_CHECK;

/* The user whose process this is, by its effective user id: who speaks through stdio, and to
 * servers and agents in process. The caller holds one reference; NULL: out of memory. */
const auth_principal *principal_local(void);

/* Both accept NULL. */
const auth_principal *principal_ref(const auth_principal *self);
void principal_unref(const auth_principal *self);

/* Views live as long as the principal. All accept NULL; the texts of nobody are empty. */
bay_str principal_identity(const auth_principal *self);
bay_str principal_binding(const auth_principal *self);
bay_str principal_issuer(const auth_principal *self);
bay_str principal_subject(const auth_principal *self);
bay_str principal_client(const auth_principal *self);
bay_str principal_scopes(const auth_principal *self);
bay_str principal_token(const auth_principal *self); /* a secret; "": none is kept */
const auth_principal *principal_actor(const auth_principal *self);
const char *principal_proof_name(const auth_principal *self); /* "anonymous" for NULL */
bool principal_has_proof(const auth_principal *self, principal_proof proof); /* false for NULL */
uint64_t principal_expires_at(const auth_principal *self); /* ms since 1970; 0: never */

/* Digests what a credential that was made from this principal depends on: its binding, its scopes and
 * who acts for it. Errors: as digest_bytes. */
bay_err principal_rights(const auth_principal *self,
                         unsigned char out[PRINCIPAL_RIGHTS_BYTES]) BAY_MUST_CHECK;

/* The same identity, in time that does not depend on what differs. */
bool principal_is_same(const auth_principal *one, const auth_principal *other);
/* Is exactly this scope in the list, whose scopes are separated by single spaces? */
bool scopes_have(bay_str scopes, bay_str scope);
/* Exactly this scope was granted. */
bool principal_has_scope(const auth_principal *self, bay_str scope);
/* All of them, separated by single spaces, were granted. The user of this process has every scope. */
bool principal_has_scopes(const auth_principal *self, bay_str scopes);
/* A claim by its JSON pointer (RFC 6901); JSON_MISSING where there is none. */
json_val principal_claim(const auth_principal *self, bay_str pointer);
/* `now_ms` is wall clock since 1970. The actor's expiry counts as well. */
bool principal_is_expired(const auth_principal *self, uint64_t now_ms);

#endif
