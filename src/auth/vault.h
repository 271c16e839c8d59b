/* The vault: what a user was granted at a server, in a store, as rows that only the keys of the
 * configuration open. A row belongs to one user (kind, issuer and subject) and one server: both are in
 * the tag of its seal, so that it opens in no other place, and its name is a keyed digest of both, so
 * that whoever reads the store learns neither.
 *
 * A ring with several keys gives a row several names: it is written under number 0, and looked for
 * under all.
 *
 * For the whole header: Errors: BAY_ERR_UNSUPPORTED in a library without OpenSSL. Threads: any. */
#ifndef AUTH_VAULT_H
#define AUTH_VAULT_H

#include "auth/principal.h"
#include "auth/seal.h"

#define VAULT_TABLE "vault"
#define VAULT_LEASES "vault-refresh" /* of who refreshes a row's tokens */
/* In place of a user's identity: the row has the gateway's own registration at the server, and no
 * tokens. */
#define VAULT_CLIENT "client"

enum {
    VAULT_NAME_BYTES = 2 * SEAL_DIGEST_BYTES,
    VAULT_ROWS = 100000,      /* of one store */
    VAULT_READ_MS = 2000,     /* a row that is used is read again after so long */
    VAULT_REFRESH_MS = 30000, /* one process alone refreshes the tokens of a row */
    VAULT_SERVER_BYTES = 128,
    VAULT_PLAIN_BYTES = SEAL_PLAIN_BYTES,
};

/* Views into what was opened. */
typedef struct vault_row {
    bay_str identity; /* principal_identity of whose it is */
    bay_str server;   /* as the configuration names it */
    bay_str record;   /* an oauth_record as text: secret */
} vault_row;

/* Keys for rows alone, derived from those that seal what the gateway gives away. Owns: the caller. */
bay_err vault_keys_new(const seal_ring *ring, seal_ring **out) BAY_MUST_CHECK;

/* The name of the row under key number `nth`. Errors: also BAY_ERR_STATE: there is no such key. */
bay_err vault_name(const seal_ring *keys, size_t nth, bay_str identity, bay_str server,
                   char out[VAULT_NAME_BYTES]) BAY_MUST_CHECK;
/* Appends the value of the row of that name. */
bay_err vault_seal(const seal_ring *keys, bay_str name, const vault_row *row,
                   buf *out) BAY_MUST_CHECK;
/* Opens it into `plain`, which the row views. Errors: also BAY_ERR_DENIED: of another name, damaged, or
 * under a key that is gone. */
bay_err vault_open(const seal_ring *keys, bay_str name, bay_str value, buf *plain,
                   vault_row *out) BAY_MUST_CHECK;

#endif
