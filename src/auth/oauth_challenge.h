/* What a server that refuses a request says it wants: the challenges of WWW-Authenticate, as far as
 * OAuth uses them (Bearer, DPoP). Source: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9449
 * section 7.1, RFC 9728 section 5.1. */
#ifndef AUTH_OAUTH_CHALLENGE_H
#define AUTH_OAUTH_CHALLENGE_H

#include "base/arena.h"
#include "wire/field.h"

enum {
    OAUTH_CHALLENGES = 16,            /* of one reply that are looked at */
    OAUTH_CHALLENGE_PARAMS = 32,      /* of one challenge */
    OAUTH_CHALLENGE_BYTES = 16 << 10, /* of all WWW-Authenticate fields of one reply */
};

typedef struct oauth_challenge {
    bool is_present;
    bool is_dpop;              /* the scheme is DPoP, not Bearer */
    bay_str resource_metadata; /* each empty if it is absent */
    bay_str scope;
    bay_str error;
    bay_str description;
    bay_str algorithms; /* of DPoP, separated by spaces */
} oauth_challenge;

/* The challenge that counts: the first one for Bearer or DPoP with `resource_metadata`, else the
 * first one for either. `is_present` is false if there is none. A field that does not follow the
 * grammar ends the reading of that field; the challenges before it count.
 * Owns: texts in `memory`. Errors: BAY_ERR_NOMEM. */
bay_err oauth_challenge_read(const http_field *fields, size_t count, arena *memory,
                             oauth_challenge *out) BAY_MUST_CHECK;

#endif
