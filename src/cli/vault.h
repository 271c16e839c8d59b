/* The vault of a gateway, as commands fill it: see auth/vault.h. */
#ifndef CLI_VAULT_H
#define CLI_VAULT_H

#include "auth/oauth_record.h"
#include "cli/arguments.h"
#include "config/config.h"

/* Keeps what the user was granted at `server`. `subject`: as --for; NULL: the user of this process. Says
 * itself what is wrong. */
cli_exit cli_vault_put(const config *settings, bay_str server, const char *subject,
                       const oauth_record *record);

#endif
