/* The vault of one worker: reads and writes what users were granted at servers, in the worker's store.
 * While tokens of a row are refreshed, this worker holds the row's lease: with tokens that are used
 * once, a second refresh would end the grant.
 *
 * For the whole header: Threads: the loop's. */
#ifndef GATEWAY_VAULT_H
#define GATEWAY_VAULT_H

#include "auth/seal.h"
#include "store/store.h"
#include "upstream/credentials.h"

typedef struct gateway_vault gateway_vault;

/* `rows` outlives it. Owns: the caller. Errors: BAY_ERR_NOMEM; as vault_keys_new. */
bay_err gateway_vault_new(loop *loop, store *rows, const seal_ring *ring,
                          gateway_vault **out) BAY_MUST_CHECK;
void gateway_vault_free(gateway_vault *self); /* after its users; NULL is fine */
/* Other keys from now on. Without memory rows stay as they are sealed now. */
void gateway_vault_set_ring(gateway_vault *self, const seal_ring *ring);
const upstream_vault *gateway_vault_of(const gateway_vault *self); /* NULL of NULL */

#endif
