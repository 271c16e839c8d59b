/* The key of a principal: what stands in stored rows in the place of who owns them. It is a keyed
 * digest of the principal's identity (kind, issuer and subject, each with its length before it), as
 * 32 lower-case hexadecimal digits, so that whoever reads a store without its keys learns neither
 * names nor which row belongs to a known name. The key of the anonymous principal is empty.
 *
 * A ring with several keys gives a principal several keys. Rows are written with number 0, and a
 * row written with an older key of the ring still belongs to its owner. A ring without keys (NULL,
 * or a library without OpenSSL) hides nothing: the key is then the identity itself in hexadecimal
 * digits, and there is one. */
#ifndef AUTH_PRINCIPAL_KEY_H
#define AUTH_PRINCIPAL_KEY_H

#include "auth/principal.h"
#include "auth/seal.h"

enum {
    PRINCIPAL_KEY_BYTES = 2 * PRINCIPAL_IDENTITY_BYTES
}; /* of the longest key, without a ring */

/* How many keys each principal has: 1 to SEAL_RING_KEYS. */
size_t principal_key_count(const seal_ring *ring);

/* Appends the key number `nth` (0: the one to write).
 * Errors: as seal_digest, and of `out`. Threads: any, as the rest here. */
bay_err principal_key(const auth_principal *self, const seal_ring *ring, size_t nth,
                      buf *out) BAY_MUST_CHECK;

/* `out` is true if `key` is one of the principal's keys; an empty key is the anonymous principal's
 * alone. Errors: as principal_key; what cannot be decided is not the principal's. */
bay_err principal_has_key(const auth_principal *self, const seal_ring *ring, bay_str key,
                          bool *out) BAY_MUST_CHECK;

/* An identity in a stored row from which the principal must come back, because work goes on for it:
 * sealed, and bound to the row by its name. Without keys it is the identity itself; that of the
 * anonymous principal is empty. Appends to `out`. Errors: as seal_value. */
bay_err principal_row_write(bay_str identity, const seal_ring *ring, bay_str row,
                            buf *out) BAY_MUST_CHECK;
/* What that wrote. An identity that no key opens, or of another row, becomes
 * PRINCIPAL_ROW_OF_NOBODY, which is no principal's. Errors: BAY_ERR_NOMEM, those of `out`. */
bay_err principal_row_read(bay_str text, const seal_ring *ring, bay_str row,
                           buf *out) BAY_MUST_CHECK;
#define PRINCIPAL_ROW_OF_NOBODY "?"

/* Appends each byte as two lower-case hexadecimal digits. */
void principal_key_digits(bay_str bytes, buf *out);

#endif
