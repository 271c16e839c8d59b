/* What a client keeps of its authorization at one resource: by which client it is known to the
 * authorization server, and the tokens it was given. All of it belongs to one issuer: a record of
 * another issuer counts for nothing (mcp 2026-07-28 basic/authorization, SEP-2352).
 *
 * Every text may be a secret. It is wiped when it is replaced or freed, and stands in no log. */
#ifndef AUTH_OAUTH_RECORD_H
#define AUTH_OAUTH_RECORD_H

#include "base/buf.h"

enum {
    OAUTH_TOKEN_BYTES = 32 << 10,   /* of an access or refresh token, an assertion */
    OAUTH_RECORD_BYTES = 256 << 10, /* of a record as text */
};

typedef struct oauth_record {
    buf issuer;     /* "": nothing is known */
    buf resource;   /* the `resource` of the tokens, byte for byte; "": none was sent */
    bool is_legacy; /* the resource has no metadata, its origin is the issuer's: mcp 2025-03-26 */

    buf client_id;
    buf client_secret;
    buf redirect_uri;              /* registered with it */
    unsigned method;               /* oauth_method that the registration said; 0: nothing */
    uint64_t secret_expires_at_ms; /* wall clock; 0: never */
    bool is_registered;            /* dynamically, at this issuer */

    buf access;
    buf refresh;
    buf scope; /* granted */
    buf key;   /* the private key that the tokens are bound to, PEM; "": none */
    bool is_dpop;
    bool is_scope_said;      /* the server said it, else it is what was asked for */
    uint64_t obtained_at_ms; /* wall clock */
    uint64_t expires_at_ms;  /* of the access token; 0: unknown */
} oauth_record;

void oauth_record_init(oauth_record *self);
void oauth_record_fini(oauth_record *self);

/* Replaces a text. Errors: BAY_ERR_LIMIT, BAY_ERR_NOMEM; it is then empty. */
bay_err oauth_text_set(buf *text, bay_str value) BAY_MUST_CHECK;

void oauth_record_drop_tokens(oauth_record *self);
void oauth_record_drop_client(oauth_record *self); /* and the tokens, which are the client's */

/* Appends the record as JSON. Errors: those of `out`. */
bay_err oauth_record_write(const oauth_record *self, buf *out) BAY_MUST_CHECK;
/* Replaces the record by what was written. Errors: BAY_ERR_SYNTAX; BAY_ERR_LIMIT; BAY_ERR_NOMEM; it
 * is then empty. */
bay_err oauth_record_read(oauth_record *self, bay_str text) BAY_MUST_CHECK;

#endif
