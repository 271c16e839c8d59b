/* What jose.c and jose_token.c share. Private to auth/. */
#ifndef AUTH_JOSE_INTERNAL_H
#define AUTH_JOSE_INTERNAL_H

#include "auth/jose.h"
#include "auth/jose_primitive.h"

extern const json_limits jose_token_limits; /* of a header, and of a token's claims */

bool jose_list_has(json_val list, bay_str word);

/* A JSON object without a member twice, at any level. Errors: BAY_ERR_SYNTAX with `diag`,
 * BAY_ERR_NOMEM. */
bay_err jose_read_object(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                         const char *what, bay_diag *diag) BAY_MUST_CHECK;

typedef struct jose_header {
    json_doc doc;
    jose_algorithm algorithm;
    bay_str key_id; /* "": none */
} jose_header;

/* Errors: BAY_ERR_DENIED, BAY_ERR_NOMEM. */
bay_err jose_read_header(bay_str encoded, arena *memory, jose_header *out) BAY_MUST_CHECK;
/* `payload` in base64url. Errors: BAY_ERR_DENIED, BAY_ERR_NOMEM. */
bay_err jose_verify_encoded(const jose_keys *keys, const jose_header *header, bay_str encoded,
                            bay_str payload, bay_str signature) BAY_MUST_CHECK;
/* How many keys of the set may have made what this header is of: of its algorithm, and with its
 * `kid` if it has one. */
size_t jose_keys_named(const jose_keys *keys, const jose_header *header);

#endif
