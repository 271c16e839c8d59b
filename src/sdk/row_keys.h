/* The keys that hide in stored rows whose they are. */
#ifndef SDK_ROW_KEYS_H
#define SDK_ROW_KEYS_H

#include "auth/seal.h"
#include "store/kept_key.h"

/* A ring with the key that the store's file keeps; NULL in *out in a library that cannot seal.
 * Blocks. Owns: the caller, until seal_ring_free. Errors, with `diag`: those of store_kept_key. */
bay_err sdk_row_keys_open(store_opener open, bay_str path, seal_ring **out,
                          bay_diag *diag) BAY_MUST_CHECK;

#endif
