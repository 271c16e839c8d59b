/* The keys that seal what the gateway gives away: session ids, request states, task ids, cursors.
 *
 * Where they come from, the first that applies: the configuration's `keys`; a key that was made
 * once and stands in the store's file; a key of this process alone. A key is never part of a
 * message, a log line or an error. */
#ifndef SESSIONS_KEYS_H
#define SESSIONS_KEYS_H

#include "auth/seal.h"
#include "config/config.h"

/* A ring for this configuration; NULL in *out where nothing can be sealed and nothing was asked
 * for. Blocks while it looks into the store's file.
 * Owns: the caller, until seal_ring_free. Errors: BAY_ERR_UNSUPPORTED: keys or a store are
 * configured and this build cannot seal; as store_open_sqlite; BAY_ERR_NOMEM. Threads: any. */
bay_err session_keys_open(const config *settings, seal_ring **out, bay_diag *diag) BAY_MUST_CHECK;

#endif
