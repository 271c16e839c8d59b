/* What the gateway gave out as an authorization server (`auth.proxy`): codes, access tokens, refresh
 * tokens. A grant is what one person allowed one client at one resource; all that follows from it
 * lives and ends with it.
 *
 *   consent ─► CODE ──redeemed once──► access + refresh ──refresh──► the next pair …
 *                └ a second time, ┐        └ a refresh token a second time, revocation,
 *                  another client ┴► over                    its time, too many ──► over
 *
 * - A token is "pbt_GRANT_SECRET" (access), "pbr_…" (refresh) or "pbo_…" (code). Only digests of
 *   secrets are kept, so each older refresh token of a grant is known to be one.
 * - A code is good for OAUTH_CODE_MS, once, for its client, its redirect URI and the verifier of its
 *   challenge (S256). Whatever does not fit ends the grant: a code that was seen by somebody else is
 *   good for nobody.
 * - Access tokens are good at one resource. They are no JSON Web Tokens: nobody else could check
 *   them, and nobody else shall.
 *
 * In memory, shared by all loops of a process, bounded. For the whole header: Units: ms of the wall
 * clock. Threads: any. Source: RFC 6749 sections 4.1 and 6, RFC 7009, RFC 7636, RFC 8707, RFC 9700
 * sections 2.1.1 and 4.14. */
#ifndef OAUTH_GRANTS_H
#define OAUTH_GRANTS_H

#include "auth/principal.h"
#include "base/buf.h"

enum {
    OAUTH_GRANTS = 16384,       /* of a process: the one that was not used for longest ends */
    OAUTH_GRANTS_OF_ONE = 64,   /* of a person: likewise */
    OAUTH_GRANT_TEXT = 8 << 10, /* the texts of one */
    OAUTH_GIVEN_BYTES = 96,     /* of a code or token, with a NUL */
    OAUTH_CODE_MS = 60000,
    OAUTH_VERIFIER_LEAST = 43, /* RFC 7636 section 4.1 */
    OAUTH_VERIFIER_MOST = 128,
};

typedef struct oauth_grants oauth_grants;

typedef struct oauth_grants_options {
    uint64_t access_ms;  /* an access token */
    uint64_t refresh_ms; /* a refresh token that is not used */
} oauth_grants_options;

/* Owns: the caller, one reference. Errors: BAY_ERR_NOMEM. */
bay_err oauth_grants_new(const oauth_grants_options *options, oauth_grants **out) BAY_MUST_CHECK;
oauth_grants *oauth_grants_ref(oauth_grants *self); /* NULL is fine, also below */
void oauth_grants_unref(oauth_grants *self);

/* A person allowed this. Everything is copied. */
typedef struct oauth_consent {
    const auth_principal *person;
    bay_str client_id;
    bay_str redirect_uri;
    bay_str challenge; /* S256 */
    bay_str resource;  /* absolute */
    bay_str scope;     /* granted, separated by spaces */
} oauth_consent;

/* Writes the code. Errors: BAY_ERR_INVALID: a part is missing; BAY_ERR_LIMIT, BAY_ERR_NOMEM,
 * BAY_ERR_UNSUPPORTED. */
bay_err oauth_grants_open(oauth_grants *self, const oauth_consent *consent, uint64_t now_ms,
                          char out_code[OAUTH_GIVEN_BYTES]) BAY_MUST_CHECK;

/* A request to the token endpoint. Texts that are absent are empty. */
typedef struct oauth_redemption {
    bay_str text; /* the code or the refresh token */
    bay_str client_id;
    bay_str redirect_uri; /* of a code */
    bay_str verifier;     /* of a code */
    bay_str resource;     /* "": the grant's */
    bay_str scope;        /* of a refresh: a part of what was granted; "": all of it */
} oauth_redemption;

typedef struct oauth_given {
    char access[OAUTH_GIVEN_BYTES]; /* to wipe, like the next one */
    char refresh[OAUTH_GIVEN_BYTES];
    char scope[PRINCIPAL_SCOPES_BYTES + 1];
    uint64_t access_ms; /* until it expires */
} oauth_given;

/* NULL: `out`. Else the error of RFC 6749 section 5.2 or RFC 8707 section 2 (static). */
const char *oauth_grants_redeem(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                                oauth_given *out);
const char *oauth_grants_refresh(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                                 oauth_given *out);

/* Is it an access token of ours, by its form? */
bool oauth_grants_is_token(bay_str text);
/* The principal, with one reference for the caller, and the resource, appended. False: it is none
 * that is good now. */
bool oauth_grants_find(oauth_grants *self, bay_str token, uint64_t now_ms,
                       const auth_principal **out_principal, buf *out_resource);
/* The grant of a token ends, if it is that client's. RFC 7009: nothing is told. */
void oauth_grants_revoke(oauth_grants *self, bay_str token, bay_str client_id, uint64_t now_ms);
size_t oauth_grants_count(oauth_grants *self);

#endif
