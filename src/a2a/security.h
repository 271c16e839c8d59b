/* What a card declares about security, and whether a request satisfies it. Sans I/O: the schemes
 * are read from the card once; credentials are taken out of a request by names of fields; who
 * verifies them is given. */
#ifndef A2A_SECURITY_H
#define A2A_SECURITY_H

#include "a2a/protocol.h"
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

/* Who a credential is. `name` is the scheme's in the card. BAY_OK with the principal (in `memory`)
 * and the scopes it has (space separated); BAY_DENIED; BAY_UNSUPPORTED: nobody can verify this
 * scheme. */
typedef bay_err (*a2a_verify)(void *user, a2a_scheme_kind kind, bay_str name, bay_str credential,
                              arena *memory, bay_str *out_principal, bay_str *out_scopes);

/* What the request brought. */
typedef struct a2a_presented {
    bay_str (*field)(void *context, bay_str name); /* header, lower-case name */
    bay_str query;                                 /* still encoded */
    bay_str certificate; /* subject of the client certificate that TLS verified; "" */
    void *context;
} a2a_presented;

/* Reads schemes and requirements of a card (1.0). A requirement that names no scheme of the card is
 * BAY_INVALID with `fault`. Owns: the caller; copies. */
bay_err a2a_security_new(json_val card, a2a_security **out, a2a_fault *fault) BAY_MUST_CHECK;
void a2a_security_free(a2a_security *self);
bool a2a_security_is_open(const a2a_security *self); /* nothing is required */

/* One requirement of the list must hold whole (its schemes all, with their scopes). `skill`: whose
 * own requirements hold as well; "": none known. BAY_OK with the principal; BAY_DENIED with `fault`
 * (A2A_E_UNAUTHENTICATED or A2A_E_FORBIDDEN when only scopes are missing) and *out_challenge for
 * WWW-Authenticate. Credentials never stand in `fault`. */
bay_err a2a_security_check(const a2a_security *self, const a2a_presented *presented, bay_str skill,
                           a2a_verify verify, void *verify_user, arena *memory,
                           bay_str *out_principal, bay_str *out_challenge,
                           a2a_fault *fault) BAY_MUST_CHECK;

#endif
