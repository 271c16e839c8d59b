/* Access tokens that are JSON Web Tokens (RFC 7519, RFC 9068), and what an authorization server
 * says of others (RFC 7662). A token is taken apart first, and nothing of it is believed; then its
 * key is looked for, by the issuer that it names; then its claims and its signature are checked.
 * All refusals are one for the caller (invalid_token); why is for the log, and holds nothing of the
 * token.
 *
 * For the whole header: Errors: BAY_ERR_DENIED with `diag`; BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a
 * library without OpenSSL. Threads: any. */
#ifndef AUTH_ACCESS_TOKEN_H
#define AUTH_ACCESS_TOKEN_H

#include "auth/jose.h"
#include "auth/principal.h"

enum {
    ACCESS_TOKEN_BYTES = 8 << 10,        /* of one token, also of one that is no JWT */
    ACCESS_TOKEN_AUDIENCES = 64,         /* that one token names */
    ACCESS_TOKEN_SKEW_MOST_MS = 300000,  /* clocks that differ */
    ACCESS_TOKEN_THUMBPRINT_BYTES = 128, /* of a `cnf`; a SHA-256 in base64url has 43 */
};

/* A JWT that was taken apart. Views live as long as the arena and the text. */
typedef struct access_token {
    const struct jose_header *header;
    bay_str header_text; /* these three: base64url */
    bay_str payload_text;
    bay_str signature_text;
    bay_str issuer; /* not verified */
    bay_str key_id; /* "": none; not verified */
    json_val claims;
} access_token;

/* Two dots, of which the first part is JSON: worth to be read as a JWT? */
bool access_token_is_jwt(bay_str token);
/* Source: RFC 7519 section 7.2, RFC 9068 section 4, RFC 8725. */
bay_err access_token_read(bay_str token, arena *memory, access_token *out,
                          bay_diag *diag) BAY_MUST_CHECK;

/* What is demanded of a token. */
typedef struct access_rules {
    bay_str issuer;           /* exactly; of an introspected token only if it names one */
    const bay_str *audiences; /* one of them must be in `aud`; none: every token is refused */
    size_t audience_count;
    const bay_str *clients; /* one of them must be `client_id` or `azp`; none: any client */
    size_t client_count;
    unsigned algorithms; /* one bit each (access_algorithm); 0: all that auth/jose.h has */
    bool is_typed;       /* `typ` must be at+jwt, with all claims of RFC 9068 section 2.2 */
    uint64_t now_ms;     /* since 1970 */
    uint32_t skew_ms;
    uint64_t lifetime_ms; /* from `iat` to `exp` at most; 0: any */
} access_rules;

/* The bit of an algorithm by its name; 0: none of ours. */
unsigned access_algorithm(bay_str name);

/* What was found good. Views live as long as the token's arena. */
typedef struct access_claims {
    principal_parts who;            /* its `actor` is not set: access_claims_principal reads it */
    bay_str dpop_thumbprint;        /* `cnf`.`jkt`; ""; RFC 9449 section 6.1 */
    bay_str certificate_thumbprint; /* `cnf`.`x5t#S256`; ""; RFC 8705 section 3.1 */
    json_val all;
} access_claims;

bay_err access_token_check(const access_token *self, const access_rules *rules, arena *memory,
                           access_claims *out, bay_diag *diag) BAY_MUST_CHECK;
/* The signature, by the one key of the set that fits. BAY_ERR_NOT_FOUND: the set has no such key,
 * and a newer one may have. */
bay_err access_token_verify(const access_token *self, const jose_keys *keys,
                            bay_diag *diag) BAY_MUST_CHECK;

/* An ID token: who logged in. The one audience of the rules is the client id, and there are no
 * clients. It names no scopes: it grants nothing.
 * Source: OpenID Connect Core section 3.1.3.7. */
bay_err id_token_check(const access_token *self, const access_rules *rules, bay_str nonce,
                       arena *memory, access_claims *out, bay_diag *diag) BAY_MUST_CHECK;

/* An introspection response. Source: RFC 7662 section 2.2. */
bay_err access_introspected_check(json_val response, const access_rules *rules, arena *memory,
                                  access_claims *out, bay_diag *diag) BAY_MUST_CHECK;

/* The principal of the claims, with who acts on its behalf (`act`), and with the scopes that
 * `implied` adds: pairs of a scope and those that it includes, separated by spaces.
 * Owns: the caller holds one reference. */
typedef struct access_implied {
    bay_str scope;
    bay_str includes;
} access_implied;
bay_err access_claims_principal(const access_claims *self, const access_implied *implied,
                                size_t implied_count, const auth_principal **out,
                                bay_diag *diag) BAY_MUST_CHECK;

#endif
