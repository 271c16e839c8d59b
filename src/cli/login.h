/* The authority of a command's requests: a stored login, or a login that is made now. */
#ifndef CLI_LOGIN_H
#define CLI_LOGIN_H

#include "cli/arguments.h"
#include "cli/logins.h"
#include "config/config.h"
#include "oauth/authority.h"

typedef struct cli_login cli_login;

typedef enum cli_login_mode {
    CLI_LOGIN_STORED,  /* what was stored; nobody is asked */
    CLI_LOGIN_MADE,    /* by a person, anew; the client that was registered goes on */
    CLI_LOGIN_ENDED,   /* it is revoked and removed */
    CLI_LOGIN_GRANTED, /* as made, for the gateway's vault: nothing is stored for this user */
} cli_login_mode;

/* `*out` is NULL with BAY_OK if there is nothing stored and the mode is CLI_LOGIN_STORED.
 * Owns: the caller; `tls` is borrowed. Errors: with `diag`, as cli_logins_open. */
bay_err cli_login_new(const cli_arguments *arguments, cli_login_mode mode, bay_str url, loop *on,
                      tls_context *tls, cli_login **out, bay_diag *diag) BAY_MUST_CHECK;
/* CLI_LOGIN_GRANTED: `client` is who the gateway is there; borrowed. */
bay_err cli_login_grant(const cli_arguments *arguments, const config_credentials *client,
                        bay_str url, loop *on, tls_context *tls, cli_login **out,
                        bay_diag *diag) BAY_MUST_CHECK;
void cli_login_free(cli_login *self); /* NULL is fine */

oauth_authority *cli_login_authority(cli_login *self);
const oauth_record *cli_login_record(const cli_login *self);
bay_err cli_login_remove(cli_login *self) BAY_MUST_CHECK; /* what is stored; BAY_ERR_IO */
/* A flow has ended; `out` says how. */
bool cli_login_is_settled(const cli_login *self, bay_diag *out);

#endif
