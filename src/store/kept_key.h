/* A key that is generated once and kept in a store's file, for programs without another key. It is
 * as safe as the file's permissions. */
#ifndef STORE_KEPT_KEY_H
#define STORE_KEPT_KEY_H

#include "store/store.h"

enum { STORE_KEY_LEN = 32 };

/* As store_open_sqlite. */
typedef bay_err (*store_opener)(loop *on_loop, bay_str path, const store_options *options,
                                store **out, bay_diag *diag);

/* Reads the key, or generates it: the first of several processes generates it, the others read it.
 * Opens the file for this time, and blocks.
 * Owns: the caller wipes `out`. Errors, with `diag`: those of `open` and of a store;
 * BAY_ERR_SYNTAX: the row holds something else.
 * Threads: any. */
bay_err store_kept_key(store_opener open, bay_str path, char out[STORE_KEY_LEN],
                       bay_diag *diag) BAY_MUST_CHECK;

#endif
