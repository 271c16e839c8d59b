/* As whom the gateway calls a server or an agent: `credentials` of the configuration, as an authority
 * of requests. Tokens are obtained when a request first needs one, and stay in memory. */
#ifndef UPSTREAM_CREDENTIALS_H
#define UPSTREAM_CREDENTIALS_H

#include "config/config.h"
#include "http/http_client.h"

typedef struct upstream_credentials upstream_credentials;

/* For requests to `url`.
 * Owns: the caller; copies all but `tls`. Errors: BAY_ERR_INVALID with `diag`, BAY_ERR_UNSUPPORTED
 * (no TLS in this build, and a key), BAY_ERR_NOMEM. Threads: the loop's. */
bay_err upstream_credentials_new(loop *loop, const config_credentials *settings, bay_str url,
                                 tls_context *tls, upstream_credentials **out,
                                 bay_diag *diag) BAY_MUST_CHECK;
void upstream_credentials_free(upstream_credentials *self); /* after the requests; NULL is fine */

http_authority *upstream_credentials_http(upstream_credentials *self); /* NULL of NULL */

#endif
