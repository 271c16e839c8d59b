/* The user's logins, for the commands: one file for each server in the user's state folder, sealed
 * with a key that lies beside them.
 *
 *     $XDG_STATE_HOME/patchbay/logins/   (else ~/.local/state/patchbay/logins/), mode 0700
 *         key                            32 random bytes, mode 0600, made once
 *         HASH                           a sealed record, mode 0600; HASH is of the server's URL
 *         HASH.lock                      held while a token is refreshed
 *
 * Sealing protects copies of single files (backups, a synchronised folder without its key), not a
 * machine whose user is an attacker's. Each file is written beside and renamed, so a crash leaves
 * the old one or the new one. */
#ifndef CLI_LOGINS_H
#define CLI_LOGINS_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef struct cli_logins cli_logins;

/* `creates`: makes folder and key; without it a missing folder is BAY_ERR_NOT_FOUND.
 * Owns: the caller. Errors: BAY_ERR_IO (also a folder or key that others can read),
 * BAY_ERR_NOT_FOUND, BAY_ERR_UNSUPPORTED (a library without TLS), BAY_ERR_NOMEM, all with
 * `diag`. */
bay_err cli_logins_open(bool creates, cli_logins **out, bay_diag *diag) BAY_MUST_CHECK;
void cli_logins_close(cli_logins *self); /* NULL is fine */

/* The record for a server, appended; the caller wipes it. Errors: BAY_ERR_NOT_FOUND: there is none;
 * BAY_ERR_DENIED: it was sealed by another key, or for another server; BAY_ERR_IO;
 * BAY_ERR_NOMEM. */
bay_err cli_logins_read(cli_logins *self, bay_str url, buf *out) BAY_MUST_CHECK;
bay_err cli_logins_write(cli_logins *self, bay_str url, bay_str record) BAY_MUST_CHECK;
bay_err cli_logins_remove(cli_logins *self, bay_str url) BAY_MUST_CHECK; /* BAY_ERR_NOT_FOUND */

/* One process at a time refreshes the tokens of a server: waits for another one's end, at most ten
 * seconds, then goes on without. */
void cli_logins_lock(cli_logins *self, bay_str url);
void cli_logins_unlock(cli_logins *self); /* nothing if there is no lock */

#endif
