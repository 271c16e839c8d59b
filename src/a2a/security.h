/* What a card declares about security, and whether a request satisfies it. Sans I/O: the schemes
 * are read from the card once; credentials are read from a request by names of fields; the caller
 * supplies the verifier. */
#ifndef A2A_SECURITY_H
#define A2A_SECURITY_H

#include "a2a/protocol.h"
#include "auth/principal.h"
#include "base/arena.h"
#include "json/json.h"

typedef enum a2a_scheme_kind {
    A2A_SCHEME_API_KEY, /* in header, query or cookie */
    A2A_SCHEME_HTTP,    /* Bearer, Basic, … */
    A2A_SCHEME_OAUTH2,  /* a bearer token … */
    A2A_SCHEME_OPENID,  /* … the same */
    A2A_SCHEME_MTLS,
} a2a_scheme_kind;

typedef struct a2a_security a2a_security;

enum {
    A2A_SCHEMES = 32,            /* of one card */
    A2A_REQUIREMENTS = 32,       /* of the card, or of one skill: alternatives */
    A2A_REQUIREMENT_SCHEMES = 8, /* of one alternative */
    A2A_REQUIREMENT_SCOPES = 64, /* of one scheme of an alternative */
    A2A_SECURED_SKILLS = 1024,   /* of one card */
    A2A_CREDENTIAL_BYTES = 16 << 10,
    A2A_SECURITY_BYTES = 1 << 20, /* of all that is kept of a card */
};

/* Verifies a credential. `name` is the scheme's name in the card. The credential of HTTP Basic is
 * "user:password", of other schemes the text after the scheme's name, of mTLS the certificate's
 * subject. BAY_OK with the parts of its principal (texts in `memory`; an empty subject counts as
 * BAY_ERR_DENIED); BAY_ERR_DENIED; BAY_ERR_UNSUPPORTED: there is no verifier for this scheme;
 * BAY_ERR_NOMEM. Called at most once per scheme and check. */
typedef bay_err (*a2a_verify)(void *user, a2a_scheme_kind kind, bay_str name, bay_str credential,
                              arena *memory, principal_parts *out);

/* The credentials of a request. */
typedef struct a2a_presented {
    /* Header by lower-case name; `at` NULL: absent, or more than one, as two readers could choose
     * different ones. */
    bay_str (*field)(void *context, bay_str name);
    bay_str query;       /* still encoded */
    bay_str certificate; /* subject of the client certificate that TLS verified; "" */
    void *context;
} a2a_presented;

/* Reads schemes and requirements of a card (1.0). Ambiguous ones (a requirement that names no
 * scheme of the card, a scheme of two kinds, a name that is not valid in a header) are
 * BAY_ERR_INVALID with `fault`. Owns: the caller; copies. Errors: also BAY_ERR_LIMIT with `fault`,
 * BAY_ERR_NOMEM. Threads: any; immutable. Source: A2A 1.0.1 sections 4.5 and 7. */
bay_err a2a_security_new(json_val card, a2a_security **out, a2a_fault *fault) BAY_MUST_CHECK;
void a2a_security_free(a2a_security *self);
/* Nothing is required for all requests: there are no requirements, or one of them is empty. */
bool a2a_security_is_open(const a2a_security *self);

/* One requirement of the list must be satisfied completely (all its schemes, with their scopes).
 * `skill`: its own requirements must be satisfied, too; "": unknown. BAY_OK with the principal,
 * with one reference of the caller (NULL: anonymous); BAY_ERR_DENIED with `fault`
 * (A2A_E_UNAUTHENTICATED, or A2A_E_FORBIDDEN if only scopes are missing) and *out_challenge for
 * WWW-Authenticate. `fault` never has credentials. The principal comes from the card's requirement
 * if it has one, otherwise from the skill's; for schemes with different subjects it is combined
 * ("key=ann&cert=CN%3Dbox"); "" for an open card. Errors: also BAY_ERR_NOMEM. */
bay_err a2a_security_check(const a2a_security *self, const a2a_presented *presented, bay_str skill,
                           a2a_verify verify, void *verify_user, arena *memory,
                           const auth_principal **out_principal, bay_str *out_challenge,
                           a2a_fault *fault) BAY_MUST_CHECK;

#endif
