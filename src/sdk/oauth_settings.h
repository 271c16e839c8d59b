/* The inside of patchbay/oauth.h: settings that several askers share, and the authority that an
 * asker makes of them. */
#ifndef SDK_OAUTH_SETTINGS_H
#define SDK_OAUTH_SETTINGS_H

#include "auth/oauth_form.h"
#include "oauth/authority.h"
#include "patchbay/oauth.h"

bay_oauth *sdk_oauth_ref(bay_oauth *self); /* NULL is fine */
/* The first fault of filling. */
bay_err sdk_oauth_check(const bay_oauth *self, bay_diag *diag) BAY_MUST_CHECK;
/* The extension of MCP that the grant is (SEP-1046 …); NULL: it is MCP itself. */
const char *sdk_oauth_extension(const bay_oauth *self);
bool sdk_oauth_wants_dpop(const bay_oauth *self);

/* A login at the server or agent at `url`.
 * Owns: the caller; holds `settings`. Errors: BAY_ERR_INVALID, BAY_ERR_NOMEM with `diag`. */
bay_err sdk_login_new(bay_oauth *settings, loop *on, bay_str url, tls_context *tls, bool is_agent,
                      bay_login **out, bay_diag *diag) BAY_MUST_CHECK;
void sdk_login_free(bay_login *self);            /* NULL is fine */
http_authority *sdk_login_http(bay_login *self); /* NULL of NULL */

#endif
